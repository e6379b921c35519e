//! The tables of the study, and its page.

use super::prediction::{published, shares, waits};
use super::{CONFIGURATIONS, Configuration, Figures, MODEL_NEVER, Mean, Name, Report, Row, Set, Variant};
use crate::study::fit;
use crate::study::table::{gain, markdown, plain, share};
use heddle_simt::{Capt, Compaction as Waits, Divergence, History};

/// A table with a line a kernel.
struct Table {
    title: &'static str,
    lines: Vec<Vec<String>>,
}

/// Columns with names.
const NAMES: usize = 3;

/// All tables of the configurations that the report has.
pub fn plain_text(report: &Report) -> String {
    let mut text = format!("{}\n", report.core);
    for configuration in configurations(report) {
        for Table { title, lines } in tables(report, configuration) {
            text += &format!("\n{}: {title}\n{}", configuration.name.text(), plain(&lines, NAMES));
        }
    }
    for failure in failures(report) {
        text += &format!("\n{failure}\n");
    }
    text
}

/// The page's text, with `{core}`, `{options}`, `{tbc-paper}`, `{capri-paper}` and `{failures}` filled in.
pub fn page(report: &Report) -> String {
    let core = format!("{} lanes × {} warps", report.lanes, report.warps);
    let mut text = include_str!("page.md").replace("{core}", &core).replace("{options}", &report.core);
    for configuration in configurations(report) {
        let tables = tables(report, configuration);
        let sections = tables.iter().map(|Table { title, lines }| format!("**{title}**\n\n{}", markdown(lines)));
        let sections = sections.collect::<Vec<_>>().join("\n").trim_end().to_string();
        text = text.replace(&format!("{{{}}}", configuration.name.text()), &sections);
    }
    let failures = failures(report);
    let none = || "All kernels ran on all variants.".into();
    let lines = || failures.iter().map(|failure| format!("* {failure}")).collect::<Vec<_>>().join("\n");
    text.replace("{failures}", &if failures.is_empty() { none() } else { lines() })
}

fn configurations(report: &Report) -> impl Iterator<Item = &'static Configuration> {
    CONFIGURATIONS.iter().filter(|configuration| report.rows.iter().any(|row| row.study == configuration.name))
}

fn failures(report: &Report) -> Vec<String> {
    let failure =
        |row: &Row| Some(format!("{}, {} on {}: {}", row.study.text(), row.kernel, row.variant, row.failure.as_ref()?));
    report.rows.iter().filter_map(failure).collect()
}

fn tables(report: &Report, configuration: &Configuration) -> Vec<Table> {
    let Configuration { name, variants, .. } = *configuration;
    let table =
        |title, variants: &[&Variant], cells: Cells| Table { title, lines: lines(report, name, variants, cells) };
    let is_main = |variant: &&Variant| variant.capt.entries == Capt::DEFAULT.entries && variant.name != MODEL_NEVER;
    let main: Vec<&Variant> = variants.iter().filter(is_main).collect();
    let others = &main[1..];
    let over = Cells {
        first: true,
        figure: |figures| figures.over_never.map_or("-".into(), gain),
        mean: |mean| Some(percent(mean.over_never, gain)),
        published: |mean| Some(percent(mean.published, gain)),
    };
    let mut tables = vec![
        table("thread IPC of never, and that of the others over it", others, over),
        table(
            "SIMT efficiency",
            &main,
            Cells {
                first: false,
                figure: |figures| share(figures.simt_efficiency),
                mean: |mean| Some(percent(mean.simt_efficiency, share)),
                published: |_| None,
            },
        ),
        table(
            "opportunities to issue that were not taken, of all",
            &main,
            Cells {
                first: false,
                figure: |figures| share(figures.idle_share),
                mean: |mean| Some(percent(mean.idle_share, share)),
                published: |_| None,
            },
        ),
        table(
            "opportunities to issue that the divergence unit takes away, of all",
            &main,
            Cells {
                first: false,
                figure: |figures| share(figures.divergence_share),
                mean: |mean| Some(percent(mean.divergence_share, share)),
                published: |_| None,
            },
        ),
    ];
    let is_latest = |variant: &&Variant| variant.waits == Waits::Predict && variant.capt.history == History::Latest;
    let mut sizes: Vec<&Variant> = variants.iter().filter(is_latest).collect();
    sizes.sort_by_key(|variant| variant.capt.entries);
    if !sizes.is_empty() {
        tables.push(table("thread IPC over never by branches that the prediction table holds", &sizes, over));
    }
    let compacts = |variant: &&Variant| variant.divergence.capabilities().mixes_warps && variant.waits != Waits::Off;
    let blocks: Vec<&Variant> = main.iter().copied().filter(compacts).collect();
    let warps = Cells {
        first: false,
        figure: |figures| figures.warps().map_or("-".into(), before_and_after),
        mean: |mean| Some(mean.warps.map_or("-".into(), before_and_after)),
        published: |_| None,
    };
    tables.push(table("warps before and after a compaction", &blocks, warps));
    if name == Name::CapriPaper {
        tables.push(Table { title: "cycles without an issue, over never's", lines: idle(report, name, others) });
        let decisions = Cells {
            first: false,
            figure: |figures| figures.prediction.as_ref().and_then(shares).map_or("-".into(), right),
            mean: |mean| Some(mean.decisions.map_or("-".into(), right)),
            published: |mean| Some(percent(published(mean.study, mean.set, mean.variant), share)),
        };
        tables.push(table("right decisions of warps at branches, of all", &blocks, decisions));
        let waiting = Cells {
            first: false,
            figure: |figures| percent(figures.prediction.as_ref().and_then(waits), share),
            mean: |mean| Some(percent(mean.bypass_waits, share)),
            published: |_| None,
        };
        tables.push(table(
            "bypasses of warps that wait all the same, where threads reconverge, of all decisions",
            &blocks,
            waiting,
        ));
    }
    if name == Name::TbcPaper {
        tables.push(Table { title: "levels of a stack in use at most", lines: levels(report, name, &main) });
        tables.push(Table { title: "cycles of never, of the core and of the cycle model", lines: fit(report, name) });
    }
    tables
}

/// How many more cycles have no issue: each kernel, the mean of all, and the paper's.
fn idle(report: &Report, name: Name, variants: &[&Variant]) -> Vec<Vec<String>> {
    let mut lines = vec![heading(["kernel", "paper's", "set"], variants)];
    for rows in kernels(report, name) {
        let names = [rows[0].kernel, rows[0].paper, rows[0].set.text()].map(String::from);
        let figure = |figures: &Figures| percent(figures.idle_over_never, gain);
        lines.push(names.into_iter().chain(variants.iter().map(|v| cell(rows, v.name, figure))).collect());
    }
    let mean = |variant: &&Variant| {
        let of_variant = report.rows.iter().filter(|row| row.study == name && row.variant == variant.name);
        let ratios: Vec<f64> = of_variant.filter_map(|row| row.figures.as_ref()?.idle_over_never).collect();
        percent((!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64), gain)
    };
    let summary = |first: &str, of: &dyn Fn(&&Variant) -> String| {
        [first, "", "all"].map(String::from).into_iter().chain(variants.iter().map(of)).collect()
    };
    lines.push(summary("mean", &mean));
    lines.push(summary("the paper's", &|variant| percent(variant.published_idle, gain)));
    lines
}

fn percent(value: Option<f64>, text: fn(f64) -> String) -> String {
    value.map_or("-".into(), text)
}

fn before_and_after([before, after]: [f64; 2]) -> String {
    format!("{before:.2} → {after:.2}")
}

/// Of the shares of the four classes.
fn right([bypass, stall, ..]: [f64; 4]) -> String {
    share(bypass + stall)
}

/// What stands in a table's cells.
#[derive(Clone, Copy)]
struct Cells {
    /// Whether the first column of figures is never's IPC.
    first: bool,
    figure: fn(&Figures) -> String,
    mean: fn(&Mean) -> Option<String>,
    published: fn(&Mean) -> Option<String>,
}

fn heading(columns: [&str; NAMES], variants: &[&Variant]) -> Vec<String> {
    columns.into_iter().chain(variants.iter().map(|variant| variant.name)).map(String::from).collect()
}

/// The rows of each kernel of a configuration.
fn kernels(report: &Report, name: Name) -> impl Iterator<Item = &[Row]> {
    report.rows.chunk_by(|a, b| (a.study, a.kernel) == (b.study, b.kernel)).filter(move |rows| rows[0].study == name)
}

/// What a kernel's row of a variant has.
fn cell(rows: &[Row], variant: &str, figure: impl Fn(&Figures) -> String) -> String {
    let figures = rows.iter().find(|row| row.variant == variant).and_then(|row| row.figures.as_ref());
    figures.map_or("fault".into(), figure)
}

/// The headings, the kernels, the means of each set, and the paper's.
fn lines(report: &Report, name: Name, variants: &[&Variant], cells: Cells) -> Vec<Vec<String>> {
    let with_never = |mut names: Vec<String>, never: String| {
        if cells.first {
            names.insert(NAMES, never);
        }
        names
    };
    let mut lines = vec![with_never(heading(["kernel", "paper's", "set"], variants), "never IPC".into())];
    for rows in kernels(report, name) {
        let names = [rows[0].kernel, rows[0].paper, rows[0].set.text()].map(String::from);
        let figures = variants.iter().map(|variant| cell(rows, variant.name, cells.figure));
        let never = cell(rows, "never", |figures| format!("{:.2}", figures.thread_ipc));
        lines.push(with_never(names.into_iter().chain(figures).collect(), never));
    }
    for set in [Set::Divergent, Set::Coherent] {
        let means = |text: fn(&Mean) -> Option<String>| -> Option<Vec<String>> {
            let of = |variant: &&Variant| {
                let mean = |mean: &&Mean| (mean.study, mean.set, mean.variant) == (name, set, variant.name);
                text(report.means.iter().find(mean)?)
            };
            variants.iter().map(of).collect()
        };
        for (title, text) in [("mean", cells.mean), ("paper", cells.published)] {
            if let Some(figures) = means(text) {
                let names = [title, "", set.text()].map(String::from);
                lines.push(with_never(names.into_iter().chain(figures).collect(), String::new()));
            }
        }
    }
    lines
}

/// How near the cycle model comes to the core.
fn fit(report: &Report, name: Name) -> Vec<Vec<String>> {
    let kernel = |rows: &[Row]| {
        let cycles = |variant: &str| Some(rows.iter().find(|row| row.variant == variant)?.figures.as_ref()?.cycles);
        let names = [rows[0].kernel, rows[0].paper, rows[0].set.text()].map(String::from);
        (names.to_vec(), cycles("never").zip(cycles(MODEL_NEVER)))
    };
    fit::lines(&["kernel", "paper's", "set"], kernels(report, name).map(kernel))
}

/// Of stacks, and the paper's Table 3.
fn levels(report: &Report, name: Name, variants: &[&Variant]) -> Vec<Vec<String>> {
    let stacks: Vec<&Variant> = variants
        .iter()
        .copied()
        .filter(|variant| variant.divergence != Divergence::PATH_TABLE && variant.model.is_none())
        .collect();
    let with_paper = |mut line: Vec<String>, paper: String| {
        line.push(paper);
        line
    };
    let mut lines = vec![with_paper(heading(["kernel", "paper's", "set"], &stacks), "paper".into())];
    for rows in kernels(report, name) {
        let names = [rows[0].kernel, rows[0].paper, rows[0].set.text()].map(String::from);
        let figures = stacks.iter().map(|variant| cell(rows, variant.name, |figures| figures.most_levels.to_string()));
        let paper = rows[0].published_entries.map_or("-".into(), |entries| entries.to_string());
        lines.push(with_paper(names.into_iter().chain(figures).collect(), paper));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn tables_have_a_line_a_kernel_the_means_and_the_papers() {
        let text = plain_text(&example());
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let tbc = lines.iter().position(|line| line.starts_with("tbc-paper: thread IPC")).unwrap();
        assert_eq!(lines[tbc + 1], "kernel paper's set never IPC wait tbc path-table dwf dwf-wb");
        assert_eq!(lines[tbc + 2], "bfs BFS2 divergent 10.00 +25.0 % +25.0 % +0.0 % +0.0 % +0.0 %");
        assert_eq!(lines[tbc + 4], "mean divergent +25.0 % +25.0 % +0.0 % +0.0 % +0.0 %");
        assert_eq!(lines[tbc + 5], "paper divergent - +22.0 % - +4.0 % +15.1 %");
        assert!(lines.contains(&"bfs BFS2 divergent 2 3 3 3".into()), "{text}");
        assert!(lines.contains(&"bfs BFS2 divergent 1000 1000 +0.0 %".into()), "{text}");
        assert!(lines.contains(&"mean absolute deviation 0.0 %".into()), "{text}");
        let failed = "bfs BFS divergent 10.00 +25.0 % fault +25.0 % +25.0 % +25.0 % +0.0 %";
        assert!(lines.contains(&failed.into()), "{text}");
        assert!(text.contains("\ncapri-paper, bfs on tbc+: stack overflow\n"), "{text}");
        let decisions = "bfs BFS divergent 80.0 % fault 80.0 % 80.0 % 80.0 %";
        assert!(
            lines.contains(&decisions.into()) && lines.contains(&"paper divergent - - 86.6 % - -".into()),
            "{text}"
        );
        assert!(lines.contains(&"bfs BFS2 divergent 2.50 → 1.75".into()), "{text}");
    }

    #[test]
    fn the_page_has_the_tables_and_nothing_open() {
        let text = page(&example());
        assert!(text.contains("| bfs | BFS2 | divergent | 10.00 | +25.0 % | +25.0 % | +0.0 % | +0.0 % |"), "{text}");
        assert!(text.contains("32 lanes × 16 warps") && !text.contains('{'), "{text}");
        assert!(text.contains("* capri-paper, bfs on tbc+: stack overflow"), "{text}");
    }
}

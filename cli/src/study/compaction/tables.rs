//! The tables of the study, and its page.

use super::papers::{MODEL_NEVER, SAID, STEADY_NEVER};
use super::prediction::{published, shares, waits};
use super::{By, CONFIGURATIONS, Configuration, Figures, Mean, Name, Report, Row, Set, Variant};
use crate::study::draws::Gain;
use crate::study::fit;
use crate::study::table::{gain, markdown, plain, share};
use crate::study::workloads;
use heddle_simt::{Capt, Compaction as Waits, Divergence, History};
use heddle_testbench::kernels::find;
use heddle_testbench::{Program, reconverge};

/// A table with a line a kernel.
struct Table {
    title: &'static str,
    lines: Vec<Vec<String>>,
}

/// Columns with names.
const NAMES: usize = 3;

/// In place of a figure that a failed run has not.
const FAULT: &str = "fault";

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

/// The page's text, with everything in braces filled in: a configuration's name stands for its tables.
pub fn page(report: &Report) -> String {
    let core = format!("{} lanes × {} warps", report.lanes, report.warps);
    let text = include_str!("page.md").replace("{core}", &core).replace("{options}", &report.core);
    let mut text = text.replace("{draws}", &report.draws.to_string());
    for configuration in configurations(report) {
        let tables = tables(report, configuration);
        let sections = tables.iter().map(|Table { title, lines }| format!("**{title}**\n\n{}", markdown(lines)));
        let sections = sections.collect::<Vec<_>>().join("\n").trim_end().to_string();
        text = text.replace(&format!("{{{}}}", configuration.name.text()), &sections);
    }
    let text = text.replace("{likely}", &with_likely()).replace("{raytrace}", &efficiency_of_raytrace(report));
    let text = text.replace("{limit}", &format!("{:.0} %", 100.0 * workloads::DIVERGENT_ON_STACK));
    let text = text.replace("{capri}", &capri(report));
    let failures = failures(report);
    let none = || "All kernels ran on all variants.".into();
    let lines = || failures.iter().map(|failure| format!("* {failure}")).collect::<Vec<_>>().join("\n");
    text.replace("{failures}", &if failures.is_empty() { none() } else { lines() })
}

/// Kernels of tbc-paper that have a point of likely convergence for threads that part.
fn with_likely() -> String {
    let has = |name: &&str| {
        let kernel = find(name).expect("every kernel of the study is there");
        let program = Program::parse(kernel.elf).expect("a built-in kernel is a program");
        let branches = reconverge::analyse(&program).expect("its branches are known").branches;
        branches.iter().any(|branch| branch.likely.is_some() && !branch.uniform)
    };
    let tbc = CONFIGURATIONS.iter().find(|configuration| configuration.name == Name::TbcPaper).expect("it is one");
    let names: Vec<String> =
        tbc.kernels.iter().map(|kernel| kernel.name).filter(has).map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "no kernel here has one".into() } else { format!("{} have some", names.join(", ")) }
}

fn efficiency_of_raytrace(report: &Report) -> String {
    let row = report.rows.iter().find(|row| row.is_of(Name::LikelyPoints, "never") && row.kernel() == "raytrace");
    percent(row.and_then(|row| row.figures.as_ref()).map(|figures| figures.simt_efficiency), share)
}

/// As much the paper's coherent kernels lose with CAPRI at most.
const COHERENT_LOSS: f64 = 0.01;

/// How CAPRI compares with what its paper says, without slack and with it.
fn capri(report: &Report) -> String {
    let [without, with] = ["capri-latest-32", "capri-slack-2"].map(|variant| {
        let wanted = (Name::CapriPaper, By::Paper, Set::Divergent, variant);
        let mean = report.means.iter().find(|mean| (mean.config, mean.by, mean.set, mean.variant) == wanted);
        let coherent = report.rows.iter().filter(|row| row.is_of(Name::CapriPaper, variant) && row.set() == "coherent");
        let lost = |row: &Row| Some((row.kernel(), row.figures.as_ref()?.compared.gain()?));
        let losing = listed(coherent.filter_map(lost).filter(|(_, gain)| gain.greatest < 1.0 - COHERENT_LOSS));
        (ranged(mean.and_then(Mean::gain)), percent(mean.and_then(|mean| mean.published), gain), losing)
    });
    let (ours, paper, losing) = without;
    let (with_slack, _, still_losing) = with;
    let least = share(COHERENT_LOSS);
    format!(
        "`capri-latest-32` does {ours} on the divergent set, the paper's {paper}. Coherent kernels that lose more than \
         {least} with it in every draw, the paper's most: {losing}. With two basic blocks of slack, which the paper does not \
         have, it is {with_slack}, and those that lose are: {still_losing}.\n\n{}",
        over_tbc(report, "capri-latest-32")
    )
}

/// On which kernels a variant does more than thread block compaction in every draw, and on which less.
fn over_tbc(report: &Report, variant: &str) -> String {
    let kernels: Vec<(&str, Gain)> = kernels(report, Name::CapriPaper)
        .filter_map(|rows| {
            let gains =
                |variant: &str| rows.iter().find(|row| row.of.variant == variant)?.figures.as_ref()?.gains.as_ref();
            Some((rows[0].kernel(), Gain::paired(gains("tbc+")?, gains(variant)?)))
        })
        .collect();
    let list = |is: fn(&Gain) -> bool| listed(kernels.iter().copied().filter(|(_, gain)| is(gain)));
    format!(
        "Kernels on which `{variant}` does more than `tbc+` in every draw: {}; less in every draw: {}.",
        list(|gain| gain.least > 1.0),
        list(|gain| gain.greatest < 1.0)
    )
}

/// Kernels with their gains, or that there are none.
fn listed<'a>(gains: impl Iterator<Item = (&'a str, Gain)>) -> String {
    let texts: Vec<String> = gains.map(|(kernel, gain)| format!("`{kernel}` ({})", gain.with_range())).collect();
    if texts.is_empty() { "none".into() } else { texts.join(", ") }
}

fn configurations(report: &Report) -> impl Iterator<Item = &'static Configuration> {
    CONFIGURATIONS.iter().filter(|configuration| report.rows.iter().any(|row| row.config == configuration.name))
}

fn failures(report: &Report) -> Vec<String> {
    let failure = |row: &Row| {
        Some(format!("{}, {} on {}: {}", row.config.text(), row.kernel(), row.of.variant, row.failed.as_ref()?))
    };
    report.rows.iter().filter_map(failure).collect()
}

fn tables(report: &Report, configuration: &Configuration) -> Vec<Table> {
    let Configuration { name, variants, .. } = *configuration;
    let table =
        |title, variants: &[&Variant], cells: Cells| Table { title, lines: lines(report, name, variants, cells) };
    let is_main = |variant: &&Variant| {
        let is_usual = variant.capt.entries == Capt::DEFAULT.entries && variant.slack <= 2;
        is_usual && ![MODEL_NEVER, STEADY_NEVER].contains(&variant.name)
    };
    let main: Vec<&Variant> = variants.iter().filter(is_main).collect();
    let others = &main[1..];
    let over = Cells {
        first: true,
        figure: |figures| ranged(figures.compared.gain()),
        mean: |mean| Some(ranged(mean.gain())),
        published: |mean| Some(percent(mean.published, gain)),
    };
    let gains = table("thread IPC of never, and that of the others over it", others, over);
    let title = "what kernels give the core to do, and SIMT efficiency of never beside the paper's";
    let mut tables = match name {
        // Its kernels are those of tbc-paper.
        Name::SmallCache => vec![gains],
        _ => vec![Table { title, lines: workload(report, name) }, gains],
    };
    let ways = ways(report, name);
    if ways.len() > 1 {
        tables
            .push(Table { title: "kernels of which the paper's text says whether they gain over never", lines: ways });
    }
    // Of what the paper has no figures.
    let ours = |title, variants: &[&Variant], figure: fn(&Figures) -> String, mean: fn(&Mean) -> Option<String>| {
        table(title, variants, Cells { first: false, figure, mean, published: |_| None })
    };
    let efficiency = ours(
        "SIMT efficiency",
        &main,
        |figures| share(figures.simt_efficiency),
        |mean| Some(percent(mean.simt_efficiency, share)),
    );
    match name {
        Name::SmallCache => return tables,
        Name::LikelyPoints => {
            tables.push(efficiency);
            return tables;
        }
        Name::TbcPaper | Name::CapriPaper => {}
    }
    let measured = Table { title: "the same means, by measured sets", lines: by_measurement(report, name, others) };
    tables.extend([measured, efficiency]);
    tables.push(ours(
        "opportunities to issue that were not taken, of all",
        &main,
        |figures| share(figures.idle_share),
        |mean| Some(percent(mean.idle_share, share)),
    ));
    tables.push(ours(
        "opportunities to issue that the divergence unit takes away, of all",
        &main,
        |figures| share(figures.divergence_share),
        |mean| Some(percent(mean.divergence_share, share)),
    ));
    let is_latest = |variant: &&Variant| variant.waits == Waits::Predict && variant.capt.history == History::Latest;
    let mut sizes: Vec<&Variant> = variants.iter().filter(is_latest).filter(|variant| variant.slack == 1).collect();
    sizes.sort_by_key(|variant| variant.capt.entries);
    if !sizes.is_empty() {
        tables.push(table("thread IPC over never by branches that the prediction table holds", &sizes, over));
    }
    let usual = |variant: &&Variant| is_latest(variant) && variant.capt.entries == Capt::DEFAULT.entries;
    let slacks: Vec<&Variant> = variants.iter().filter(usual).collect();
    if !slacks.is_empty() {
        tables.push(table("thread IPC over never by basic blocks that a warp may be ahead", &slacks, over));
    }
    let compacts = |variant: &&Variant| variant.divergence.capabilities().mixes_warps && variant.waits != Waits::Off;
    let blocks: Vec<&Variant> = main.iter().copied().filter(compacts).collect();
    tables.push(ours(
        "warps before and after a compaction",
        &blocks,
        |figures| figures.warps().map_or("-".into(), before_and_after),
        |mean| Some(mean.warps.map_or("-".into(), before_and_after)),
    ));
    tables.push(ours(
        "opportunities to issue not taken while a block waits for nothing but writes, of all",
        &blocks,
        |figures| percent(figures.owed_share, share),
        |mean| Some(percent(mean.owed_share, share)),
    ));
    let ratios = |title, figure: fn(&Figures) -> Option<f64>| Table {
        title,
        lines: ratios(report, name, others, figure).collect(),
    };
    if name == Name::CapriPaper {
        let mut idle = ratios("cycles without an issue, over never's", |figures| figures.idle_over_never);
        let of_paper = others.iter().map(|variant| percent(variant.published_idle, gain));
        idle.lines.push(["the paper's", "", "all"].map(String::from).into_iter().chain(of_paper).collect());
        tables.push(idle);
        tables.push(ratios("misses of the data cache, over never's", |figures| figures.misses_over_never));
        let decisions = Cells {
            first: false,
            figure: |figures| figures.prediction.as_ref().and_then(shares).map_or("-".into(), right),
            mean: |mean| Some(mean.decisions.map_or("-".into(), right)),
            published: |mean| Some(percent(published(mean.config, mean.set, mean.variant), share)),
        };
        tables.push(table("right decisions of warps at branches, of all", &blocks, decisions));
        tables.push(ours(
            "bypasses of warps that wait all the same, where threads reconverge, of all decisions",
            &blocks,
            |figures| percent(figures.prediction.as_ref().and_then(waits), share),
            |mean| Some(percent(mean.bypass_waits, share)),
        ));
    }
    if name == Name::TbcPaper {
        tables.push(ratios("accesses to memory and scratchpad, over never's", |figures| figures.accesses_over_never));
        tables.push(ratios("lines between cache and memory, over never's", |figures| figures.traffic_over_never));
        let title = "levels of a stack in use at most, and entries as the paper counts them";
        tables.push(Table { title, lines: levels(report, name, &main) });
        tables.push(Table {
            title: "cycles of never before memory without jitter, of the core and of the cycle model",
            lines: fit(report, name),
        });
    }
    tables
}

/// Ratios to never's: each kernel, and the arithmetic mean of all.
fn ratios(
    report: &Report,
    name: Name,
    variants: &[&Variant],
    figure: fn(&Figures) -> Option<f64>,
) -> impl Iterator<Item = Vec<String>> {
    let of_kernel = |rows: &[Row]| {
        let cells = variants.iter().map(|variant| cell(rows, variant.name, |figures| percent(figure(figures), gain)));
        names(&rows[0]).into_iter().chain(cells).collect()
    };
    let mean = |variant: &&Variant| {
        let of_variant = report.rows.iter().filter(|row| row.is_of(name, variant.name));
        let ratios: Vec<f64> = of_variant.filter_map(|row| figure(row.figures.as_ref()?)).collect();
        percent((!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64), gain)
    };
    let means = ["mean", "", "all"].map(String::from).into_iter().chain(variants.iter().map(mean)).collect();
    let mut lines = vec![heading(["kernel", "paper's", "set"], variants)];
    lines.extend(kernels(report, name).map(of_kernel));
    lines.push(means);
    lines.into_iter()
}

/// The means of thread IPC over never by what kernels measure, and which these are.
fn by_measurement(report: &Report, name: Name, variants: &[&Variant]) -> Vec<Vec<String>> {
    let mut lines = vec![heading(["set", "kernels", ""], variants)];
    for set in Set::ALL {
        let is_of = |rows: &&[Row]| rows[0].measured_set == Some(set.text());
        let kernels: Vec<&str> = kernels(report, name).filter(is_of).map(|rows| rows[0].kernel()).collect();
        let mean = |variant: &&Variant| {
            let wanted = (name, By::Measurement, set, variant.name);
            let is = |mean: &&Mean| (mean.config, mean.by, mean.set, mean.variant) == wanted;
            ranged(report.means.iter().find(is).and_then(Mean::gain))
        };
        let first = [set.text().to_string(), kernels.join(", "), String::new()];
        lines.push(first.into_iter().chain(variants.iter().map(mean)).collect());
    }
    lines
}

/// Kernel, namesake and the paper's set.
fn names(row: &Row) -> [String; NAMES] {
    [row.kernel(), row.paper, row.set()].map(String::from)
}

/// How much of the core each kernel fills, and the paper's SIMD utilisation beside its SIMT efficiency.
fn workload(report: &Report, name: Name) -> Vec<Vec<String>> {
    let line = |rows: &[Row]| {
        let figures = rows.iter().find(|row| row.of.variant == "never")?.figures.as_ref()?;
        Some(workloads::Line {
            kernel: rows[0].kernel(),
            paper: rows[0].paper,
            set: rows[0].set(),
            workload: figures.workload,
            efficiency: figures.simt_efficiency,
            published: rows[0].published_efficiency,
        })
    };
    workloads::table(report.warps, &kernels(report, name).filter_map(line).collect::<Vec<_>>())
}

/// A line for each kernel and variant of which the paper's text says which way it goes.
fn ways(report: &Report, name: Name) -> Vec<Vec<String>> {
    let mut lines =
        vec![["kernel", "paper's", "set", "on", "paper", "thread IPC over never", ""].map(String::from).into()];
    for said in SAID.iter().filter(|said| said.config == name) {
        for rows in kernels(report, name).filter(|rows| said.kernels.contains(&rows[0].kernel())) {
            let figures = figures_of(rows, said.variant);
            let gain = figures.and_then(|figures| figures.compared.gain());
            let reverse = gain.is_some_and(|gain| if said.faster { gain.greatest < 1.0 } else { gain.least > 1.0 });
            let ours = [
                said.variant.into(),
                if said.faster { "gains" } else { "loses" }.into(),
                figures.map_or(FAULT.into(), |_| ranged(gain)),
                if reverse { "the reverse" } else { "" }.into(),
            ];
            lines.push(names(&rows[0]).into_iter().chain(ours).collect());
        }
    }
    lines
}

fn percent(value: Option<f64>, text: fn(f64) -> String) -> String {
    value.map_or("-".into(), text)
}

/// A gain with its range over the draws.
fn ranged(gain: Option<Gain>) -> String {
    gain.map_or("-".into(), |gain| gain.with_range())
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
    let of_each = report.rows.chunk_by(|a, b| (a.config, a.kernel()) == (b.config, b.kernel()));
    of_each.filter(move |rows| rows[0].config == name)
}

/// What a kernel's row of a variant has.
fn cell(rows: &[Row], variant: &str, figure: impl Fn(&Figures) -> String) -> String {
    figures_of(rows, variant).map_or(FAULT.into(), figure)
}

/// None if it failed.
fn figures_of<'a>(rows: &'a [Row], variant: &str) -> Option<&'a Figures> {
    rows.iter().find(|row| row.of.variant == variant)?.figures.as_ref()
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
        let names = names(&rows[0]);
        let figures = variants.iter().map(|variant| cell(rows, variant.name, cells.figure));
        let never = cell(rows, "never", |figures| format!("{:.2}", figures.compared.thread_ipc));
        lines.push(with_never(names.into_iter().chain(figures).collect(), never));
    }
    for set in Set::ALL {
        let means = |text: fn(&Mean) -> Option<String>| -> Option<Vec<String>> {
            let of = |variant: &&Variant| {
                let wanted = (name, By::Paper, set, variant.name);
                let mean = |mean: &&Mean| (mean.config, mean.by, mean.set, mean.variant) == wanted;
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
        let cycles = |variant: &str| Some(rows.iter().find(|row| row.of.variant == variant)?.figures.as_ref()?.cycles);
        (names(&rows[0]).to_vec(), cycles(STEADY_NEVER).zip(cycles(MODEL_NEVER)))
    };
    fit::lines(&["kernel", "paper's", "set"], kernels(report, name).map(kernel))
}

/// Of stacks, with entries of thread block compaction's, and the paper's Table 3.
fn levels(report: &Report, name: Name, variants: &[&Variant]) -> Vec<Vec<String>> {
    let stacks: Vec<&Variant> = variants
        .iter()
        .copied()
        .filter(|variant| variant.divergence != Divergence::PATH_TABLE && variant.model.is_none())
        .collect();
    let with_entries = |mut line: Vec<String>, entries: [String; 2]| {
        line.extend(entries);
        line
    };
    let heads = ["tbc, entries", "paper"].map(String::from);
    let mut lines = vec![with_entries(heading(["kernel", "paper's", "set"], &stacks), heads)];
    for rows in kernels(report, name) {
        let names = names(&rows[0]);
        let figures = stacks.iter().map(|variant| cell(rows, variant.name, |figures| figures.most_levels.to_string()));
        let number = |entries: Option<String>| entries.unwrap_or("-".into());
        let ours = cell(rows, "tbc", |figures| number(figures.compaction.map(|made| made.most_entries.to_string())));
        let paper = number(rows[0].published_entries.map(|entries| entries.to_string()));
        lines.push(with_entries(names.into_iter().chain(figures).collect(), [ours, paper]));
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
        let measured = "divergent bfs, backprop +11.1 % +11.1 % +0.0 % +0.0 % +0.0 %";
        assert!(lines.contains(&measured.into()), "{text}");
        let more = "bfs BFS2 divergent +25.0 % +25.0 % +0.0 % +0.0 % +0.0 %";
        assert!(lines.contains(&more.into()) && lines.contains(&more.replace("+25.0", "+50.0")), "{text}");
        assert_eq!(lines[tbc + 1], "kernel paper's set never IPC wait tbc path-table dwf dwf-wb");
        assert_eq!(lines[tbc + 2], "bfs BFS2 divergent 10.00 +25.0 % +25.0 % +0.0 % +0.0 % +0.0 %");
        assert_eq!(lines[tbc + 4], "mean divergent +25.0 % +25.0 % +0.0 % +0.0 % +0.0 %");
        assert_eq!(lines[tbc + 5], "paper divergent - +22.0 % - +4.0 % +15.1 %");
        assert!(lines.contains(&"bfs BFS2 divergent 2 3 3 5 3".into()), "{text}");
        assert!(lines.contains(&"bfs BFS2 divergent 1000 1000 +0.0 %".into()), "{text}");
        assert!(lines.contains(&"mean absolute deviation 0.0 %".into()), "{text}");
        let failed = "bfs BFS divergent 10.00 +25.0 % fault +25.0 % +25.0 % +25.0 % +25.0 % +0.0 %";
        assert!(lines.contains(&failed.into()), "{text}");
        assert!(text.contains("\ncapri-paper, bfs on tbc+: stack overflow\n"), "{text}");
        let decisions = "bfs BFS divergent 80.0 % fault 80.0 % 80.0 % 80.0 % 80.0 %";
        assert!(
            lines.contains(&decisions.into()) && lines.contains(&"paper divergent - - 86.6 % - - -".into()),
            "{text}"
        );
        assert!(lines.contains(&"bfs BFS2 divergent 2.50 → 1.75".into()), "{text}");
    }

    #[test]
    fn what_goes_the_other_way_than_in_the_paper_is_told() {
        let mut report = example();
        let line = |report: &Report, wanted: [&str; 5]| {
            let lines = ways(report, Name::TbcPaper);
            let line = lines.iter().find(|line| line[..5] == wanted).map(|line| line[5..].join(" "));
            line.unwrap_or_else(|| panic!("{lines:?}"))
        };
        assert_eq!(line(&report, ["bfs", "BFS2", "divergent", "tbc", "gains"]), "+25.0 % ");
        assert_eq!(line(&report, ["bfs", "BFS2", "divergent", "dwf", "gains"]), "+0.0 % ");
        let is_tbc = |row: &&mut Row| row.config == Name::TbcPaper && row.kernel() == "bfs" && row.of.variant == "tbc";
        let tbc = report.rows.iter_mut().find(is_tbc).unwrap();
        let compared = &mut tbc.figures.as_mut().unwrap().compared;
        (compared.gain, compared.gain_range) = (Some(0.75), Some([0.5, 1.0]));
        assert!(!line(&report, ["bfs", "BFS2", "divergent", "tbc", "gains"]).ends_with("reverse"));
        let tbc = report.rows.iter_mut().find(is_tbc).unwrap();
        tbc.figures.as_mut().unwrap().compared.gain_range = Some([0.5, 0.9]);
        assert_eq!(
            line(&report, ["bfs", "BFS2", "divergent", "tbc", "gains"]),
            "-25.0 % (-50.0 … -10.0 %) the reverse"
        );
    }

    #[test]
    fn the_page_has_the_tables_and_nothing_open() {
        let text = page(&example());
        assert!(text.contains("| bfs | BFS2 | divergent | 10.00 | +25.0 % | +25.0 % | +0.0 % | +0.0 % |"), "{text}");
        assert!(text.contains("32 lanes × 16 warps") && !text.contains('{'), "{text}");
        assert!(text.contains("* capri-paper, bfs on tbc+: stack overflow"), "{text}");
        // Both have a SIMT efficiency of a half; the paper has one of 29 %.
        let filled =
            "| bfs | BFS | divergent | 1 | 4 | 8 | 100.0 % | 4 of 16 | 1 | 0.0 % | 0.0 % | 50.0 % | 29 % | divergent |";
        assert!(text.contains(filled), "{text}");
        assert!(text.contains("`capri-latest-32` does +25.0 % on the divergent set, the paper's +12.6 %"), "{text}");
        assert!(text.contains("has a SIMT efficiency of 50.0 % here") && text.contains("below 76 %"), "{text}");
    }
}

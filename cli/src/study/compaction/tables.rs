//! The tables of the study, and its page.

use super::papers::{ALONE, MODEL_NEVER, SAID, STEADY_NEVER};
use super::prediction::{self, published, shares, waits};
use super::{By, CONFIGURATIONS, Configuration, Figures, Mean, Name, Report, Row, Set, Variant, harmonic};
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
    let text = text.replace("{with-likely}", &likely_points(report)).replace("{second}", &second_level(report));
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
        let mean = report.mean(Name::CapriPaper, By::Paper, Set::Divergent, variant);
        let coherent = report.rows.iter().filter(|row| row.is_of(Name::CapriPaper, variant) && row.set() == "coherent");
        let lost = |row: &Row| Some((row.kernel(), row.figures.as_ref()?.compared.gain()?));
        let losing = listed(coherent.filter_map(lost).filter(|(_, gain)| gain.greatest < 1.0 - COHERENT_LOSS));
        (ranged(mean.and_then(Mean::gain)), percent(mean.and_then(|mean| mean.published), gain), losing)
    });
    let (ours, paper, losing) = without;
    let (with_slack, _, still_losing) = with;
    let least = share(COHERENT_LOSS);
    format!(
        "{}\n\n`capri-latest-32` does {ours} on the divergent set, the paper's {paper}. Coherent kernels that lose more than \
         {least} with it in every draw, the paper's most: {losing}. With two basic blocks of slack, which the paper does not \
         have, it is {with_slack}, and those that lose are: {still_losing}.\n\n{}",
        prediction::told(report),
        over_tbc(report, "capri-latest-32")
    )
}

/// On which kernels a variant does more than thread block compaction in every draw, and on which less.
fn over_tbc(report: &Report, variant: &str) -> String {
    let kernels: Vec<(&str, Gain)> = kernels(report, Name::CapriPaper)
        .filter_map(|rows| Some((rows[0].kernel(), over(rows, variant, "tbc+")?)))
        .collect();
    let list = |is: fn(&Gain) -> bool| listed(kernels.iter().copied().filter(|(_, gain)| is(gain)));
    format!(
        "Kernels on which `{variant}` does more than `tbc+` in every draw: {}; less in every draw: {}.",
        list(|gain| gain.least > 1.0),
        list(|gain| gain.greatest < 1.0)
    )
}

/// Whether likely points bring kernels more with compaction than without it, and the paper's.
fn likely_points(report: &Report) -> String {
    // §4: NVRT and MUM.
    let told = [("work_queue", "more"), ("suffix", "less")].map(|(kernel, paper)| {
        let rows = kernels(report, Name::LikelyPoints).find(|rows| rows[0].kernel() == kernel)?;
        let gain =
            Gain::paired(&ratios_of(rows, "never, likely", "never")?, &ratios_of(rows, "tbc", "tbc, no likely")?);
        let ours = match (gain.least > 1.0, gain.greatest < 1.0) {
            (true, _) => "more in every draw",
            (_, true) => "less in every draw",
            _ => "more in some draws and less in others",
        };
        Some(format!(" With compaction they bring `{kernel}` {ours} than without it; in the paper {paper}."))
    });
    let told: String = told.into_iter().flatten().collect();
    format!("Here:{}", if told.is_empty() { " neither kernel ran on all of these.".into() } else { told })
}

/// On which kernels thread block compaction gains less with the smaller second level, and on which not.
fn second_level(report: &Report) -> String {
    let gains = |config: Name, kernel: &str| {
        let rows = kernels(report, config).find(|rows| rows[0].kernel() == kernel)?;
        figures_of(rows, "tbc")?.gains.clone()
    };
    let of_kernel = |rows: &[Row]| {
        let kernel = rows[0].kernel();
        Some((kernel, Gain::paired(&gains(Name::SecondLevel, kernel)?, &gains(Name::SmallSecondLevel, kernel)?)))
    };
    let (seen, unseen): (Vec<_>, Vec<_>) = kernels(report, Name::SecondLevel).partition(|rows| serves(rows) >= SERVED);
    let all: Vec<(&str, Gain)> = seen.iter().filter_map(|rows| of_kernel(rows)).collect();
    let list = |is: fn(&Gain) -> bool| listed(all.iter().copied().filter(|(_, gain)| is(gain)));
    let unseen: Vec<String> = unseen.iter().map(|rows| format!("`{}`", rows[0].kernel())).collect();
    let without = match unseen[..] {
        [] => String::new(),
        _ => format!(
            " Of {} not even the larger one has {} of the lines that loads want, so they tell nothing.",
            unseen.join(", "),
            share(SERVED)
        ),
    };
    format!(
        "What `tbc` does over never with the smaller one, over that with the larger: less in every draw on {}; more on {}. In \
         the paper it is less on MUM and MUMpp, and robust on the others.{without}",
        list(|gain| gain.greatest < 1.0 - NOTICED),
        list(|gain| gain.least > 1.0 + NOTICED)
    )
}

/// A smaller difference is not spoken of.
const NOTICED: f64 = 0.005;

/// A second level that has fewer of the lines that loads of never want is of no account.
const SERVED: f64 = 0.01;

/// Of the lines that loads want of the first level on never, those that the second level has.
fn serves(rows: &[Row]) -> f64 {
    let of_never = || {
        let never = figures_of(rows, "never")?;
        let (first, second) = (never.cache?, never.second_level?.found);
        let wanted = first.hits + first.misses;
        (wanted > 0).then(|| second.hits as f64 / wanted as f64)
    };
    of_never().unwrap_or(0.0)
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

fn tables(report: &Report, configuration: &'static Configuration) -> Vec<Table> {
    let of = Tables::new(report, configuration);
    let mut tables = of.of_all();
    match of.name {
        Name::SecondLevel | Name::SmallSecondLevel => {}
        Name::LikelyPoints => tables.push(of.efficiency()),
        Name::TbcPaper => tables.extend(of.of_a_paper().into_iter().chain(of.of_tbc())),
        Name::CapriPaper => tables.extend(of.of_a_paper().into_iter().chain(of.of_capri())),
    }
    tables
}

/// The tables of a configuration.
struct Tables<'a> {
    report: &'a Report,
    name: Name,
    variants: &'static [Variant],
    /// Without those that differ only in how much CAPRI's have, and those that only others are compared with.
    main: Vec<&'static Variant>,
    /// Of them, those that form warps anew.
    blocks: Vec<&'static Variant>,
}

/// Thread IPC over never's, and never's own.
const OVER: Cells = Cells {
    first: true,
    figure: |figures| ranged(figures.compared.gain()),
    mean: |mean| Some(ranged(mean.gain())),
    published: |mean| Some(percent(mean.published, gain)),
};

impl Tables<'_> {
    fn new<'a>(report: &'a Report, configuration: &'static Configuration) -> Tables<'a> {
        let Configuration { name, variants, .. } = *configuration;
        let is_main = |variant: &&Variant| {
            let is_usual = variant.capt.entries == Capt::DEFAULT.entries && variant.slack <= 2;
            is_usual && ![MODEL_NEVER, STEADY_NEVER].contains(&variant.name)
        };
        let main: Vec<&Variant> = variants.iter().filter(is_main).collect();
        let compacts =
            |variant: &&Variant| variant.divergence.capabilities().mixes_warps && variant.waits != Waits::Off;
        let blocks = main.iter().copied().filter(compacts).collect();
        Tables { report, name, variants, main, blocks }
    }

    fn table(&self, title: &'static str, variants: &[&Variant], cells: Cells) -> Table {
        Table { title, lines: lines(self.report, self.name, variants, cells) }
    }

    /// Of what the papers have no figures.
    fn ours(
        &self,
        title: &'static str,
        variants: &[&Variant],
        figure: fn(&Figures) -> String,
        mean: fn(&Mean) -> Option<String>,
    ) -> Table {
        self.table(title, variants, Cells { first: false, figure, mean, published: |_| None })
    }

    fn ratios(&self, title: &'static str, figure: fn(&Figures) -> Option<f64>) -> Table {
        Table { title, lines: ratios(self.report, self.name, &self.main[1..], figure).collect() }
    }

    fn efficiency(&self) -> Table {
        self.ours(
            "SIMT efficiency",
            &self.main,
            |figures| share(figures.simt_efficiency),
            |mean| Some(percent(mean.simt_efficiency, share)),
        )
    }

    /// What runs, and the gains.
    fn of_all(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        // The others' kernels are those of tbc-paper.
        if ![Name::SecondLevel, Name::SmallSecondLevel].contains(&self.name) {
            let title = "what kernels give the core to do, and SIMT efficiency of never beside the paper's";
            tables.push(Table { title, lines: workload(self.report, self.name) });
        }
        tables.push(self.table("thread IPC of never, and that of the others over it", &self.main[1..], OVER));
        let ways = ways(self.report, self.name);
        if ways.len() > 1 {
            tables.push(Table { title: "kernels of which the paper's text says whether they gain", lines: ways });
        }
        let alone = ALONE.iter().filter(|(config, ..)| *config == self.name);
        let alone: Vec<[&str; 2]> = alone.map(|&(_, variant, over)| [variant, over]).collect();
        if !alone.is_empty() {
            let lines = one_over_another(self.report, self.name, &alone);
            tables.push(Table { title: "thread IPC of a variant over another's", lines });
        }
        tables
    }

    /// What both papers have.
    fn of_a_paper(&self) -> Vec<Table> {
        let lines = by_measurement(self.report, self.name, &self.main[1..]);
        let mut tables = vec![
            Table { title: "the same means, by measured sets", lines },
            self.efficiency(),
            self.ours(
                "opportunities to issue that were not taken, of all",
                &self.main,
                |figures| share(figures.idle_share),
                |mean| Some(percent(mean.idle_share, share)),
            ),
            self.ours(
                "opportunities to issue that memory or the divergence unit takes away, of all",
                &self.main,
                |figures| share(figures.held_share),
                |mean| Some(percent(mean.held_share, share)),
            ),
        ];
        let is_latest = |variant: &&Variant| variant.waits == Waits::Predict && variant.capt.history == History::Latest;
        let mut sizes: Vec<&Variant> = self.variants.iter().filter(is_latest).filter(|v| v.slack == 1).collect();
        sizes.sort_by_key(|variant| variant.capt.entries);
        if !sizes.is_empty() {
            tables.push(self.table("thread IPC over never by branches that the prediction table holds", &sizes, OVER));
        }
        let usual = |variant: &&Variant| is_latest(variant) && variant.capt.entries == Capt::DEFAULT.entries;
        let slacks: Vec<&Variant> = self.variants.iter().filter(usual).collect();
        if !slacks.is_empty() {
            tables.push(self.table("thread IPC over never by basic blocks that a warp may be ahead", &slacks, OVER));
        }
        tables.push(self.ours(
            "warps before and after a compaction",
            &self.blocks,
            |figures| figures.warps().map_or("-".into(), before_and_after),
            |mean| Some(mean.warps.map_or("-".into(), before_and_after)),
        ));
        tables.push(self.ours(
            "opportunities to issue not taken while a block waits for nothing but writes, of all",
            &self.blocks,
            |figures| percent(figures.owed_share, share),
            |mean| Some(percent(mean.owed_share, share)),
        ));
        tables
    }

    fn of_capri(&self) -> Vec<Table> {
        let mut idle = self.ratios("cycles without an issue, over never's", |figures| figures.idle_over_never);
        let of_paper = self.main[1..].iter().map(|variant| percent(variant.published_idle, gain));
        idle.lines.push(["the paper's", "", "all"].map(String::from).into_iter().chain(of_paper).collect());
        let decisions = Cells {
            first: false,
            figure: |figures| figures.prediction.as_ref().and_then(shares).map_or("-".into(), right),
            mean: |mean| Some(mean.decisions.map_or("-".into(), right)),
            published: |mean| Some(percent(published(mean.config, mean.set, mean.variant), share)),
        };
        vec![
            idle,
            self.ratios("misses of the data cache, over never's", |figures| figures.misses_over_never),
            self.table("right decisions of warps at branches, of all", &self.blocks, decisions),
            self.ours(
                "bypasses of warps that wait all the same, where threads reconverge, of all decisions",
                &self.blocks,
                |figures| percent(figures.prediction.as_ref().and_then(waits), share),
                |mean| Some(percent(mean.bypass_waits, share)),
            ),
        ]
    }

    fn of_tbc(&self) -> Vec<Table> {
        vec![
            self.ratios("accesses to memory and scratchpad, over never's", |figures| figures.accesses_over_never),
            self.ratios("lines between cache and memory, over never's", |figures| figures.traffic_over_never),
            Table {
                title: "levels of a stack in use at most, and entries as the paper counts them",
                lines: levels(self.report, self.name, &self.main),
            },
            Table {
                title: "cycles of never before memory without jitter, of the core and of the cycle model",
                lines: fit(self.report, self.name),
            },
        ]
    }
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
        let mean =
            |variant: &&Variant| ranged(report.mean(name, By::Measurement, set, variant.name).and_then(Mean::gain));
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

/// What a variant does over another, draw by draw; each stands over never, a cycle model over its own. None if one failed.
fn ratios_of(rows: &[Row], variant: &str, base: &str) -> Option<Vec<f64>> {
    let gains = |variant: &str| figures_of(rows, variant)?.gains.as_ref();
    let (base, own) = (gains(base)?, gains(variant)?);
    assert_eq!(base.len(), own.len(), "a pair a draw");
    Some(base.iter().zip(own).map(|(base, own)| own / base).collect())
}

fn over(rows: &[Row], variant: &str, base: &str) -> Option<Gain> {
    Some(Gain::of(ratios_of(rows, variant, base)?.into_iter()))
}

/// A column for each pair of a variant and what it is over, and the harmonic means of the sets.
fn one_over_another(report: &Report, name: Name, pairs: &[[&str; 2]]) -> Vec<Vec<String>> {
    let titles = pairs.iter().map(|[variant, base]| format!("{variant}: over {base}"));
    let mut lines = vec![["kernel", "paper's", "set"].map(String::from).into_iter().chain(titles).collect::<Vec<_>>()];
    for rows in kernels(report, name) {
        let gains = pairs
            .iter()
            .map(|[variant, base]| over(rows, variant, base).map_or(FAULT.into(), |gain| gain.with_range()));
        lines.push(names(&rows[0]).into_iter().chain(gains).collect());
    }
    for set in Set::ALL {
        let mean = |[variant, base]: &[&str; 2]| {
            let of_set = kernels(report, name).filter(|rows| rows[0].set() == set.text());
            let of_kernels: Vec<Vec<f64>> = of_set.filter_map(|rows| ratios_of(rows, variant, base)).collect();
            ranged(harmonic(&of_kernels.iter().map(Vec::as_slice).collect::<Vec<_>>()))
        };
        let heads = ["mean", "", set.text()].map(String::from);
        lines.push(heads.into_iter().chain(pairs.iter().map(mean)).collect());
    }
    lines
}

/// A line for each kernel and variant of which the paper's text says which way it goes.
fn ways(report: &Report, name: Name) -> Vec<Vec<String>> {
    let mut lines =
        vec![["kernel", "paper's", "set", "on", "over", "paper", "gain over that", ""].map(String::from).into()];
    for said in SAID.iter().filter(|said| said.config == name) {
        for rows in kernels(report, name).filter(|rows| said.kernels.contains(&rows[0].kernel())) {
            let gain = over(rows, said.variant, said.over);
            let reverse = gain.is_some_and(|gain| if said.faster { gain.greatest < 1.0 } else { gain.least > 1.0 });
            let ours = [
                said.variant.into(),
                said.over.into(),
                if said.faster { "gains" } else { "loses" }.into(),
                gain.map_or(FAULT.into(), |gain| gain.with_range()),
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
            let of = |variant: &&Variant| text(report.mean(name, By::Paper, set, variant.name)?);
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
        let measured = "divergent bfs, backprop +0.0 % +0.0 % +11.1 % +11.1 % +0.0 % +0.0 % +0.0 %";
        assert!(lines.contains(&measured.into()), "{text}");
        let more = "bfs BFS2 divergent +0.0 % +0.0 % +25.0 % +25.0 % +0.0 % +0.0 % +0.0 %";
        assert!(lines.contains(&more.into()) && lines.contains(&more.replace("+25.0", "+50.0")), "{text}");
        let all =
            "kernel paper's set never IPC never, block-age never, block-age, likely wait tbc path-table dwf dwf-wb";
        assert_eq!(lines[tbc + 1], all);
        let gains = "+0.0 % +0.0 % +25.0 % +25.0 % +0.0 % +0.0 % +0.0 %";
        assert_eq!(lines[tbc + 2], format!("bfs BFS2 divergent 10.00 {gains}"));
        assert_eq!(lines[tbc + 4], format!("mean divergent {gains}"));
        assert_eq!(lines[tbc + 5], "paper divergent - - - +22.0 % - +4.0 % +15.1 %");
        let alone = lines.iter().position(|line| line == "tbc-paper: thread IPC of a variant over another's").unwrap();
        assert_eq!(lines[alone + 2], "bfs BFS2 divergent +0.0 % +25.0 % +0.0 % +25.0 %");
        assert_eq!(lines[alone + 4], "mean divergent +0.0 % +25.0 % +0.0 % +25.0 %");
        assert!(lines.contains(&"bfs BFS2 divergent 2 2 2 3 3 5 3".into()), "{text}");
        assert!(lines.contains(&"bfs BFS2 divergent 1000 1000 +0.0 %".into()), "{text}");
        assert!(lines.contains(&"mean absolute deviation 0.0 %".into()), "{text}");
        let failed = "bfs BFS divergent 10.00 +25.0 % fault +25.0 % +25.0 % +25.0 % +25.0 % +0.0 %";
        assert!(lines.contains(&failed.into()), "{text}");
        assert!(text.contains("\ncapri-paper, bfs on tbc+: stack overflow\n"), "{text}");
        let decisions = "bfs BFS divergent 80.0 % fault 80.0 % 80.0 % 80.0 % 80.0 %";
        assert!(
            lines.contains(&decisions.into()) && lines.contains(&"paper divergent 12.0 % - 86.6 % - - -".into()),
            "{text}"
        );
        assert!(lines.contains(&"bfs BFS2 divergent 2.50 → 1.75".into()), "{text}");
    }

    #[test]
    fn what_goes_the_other_way_than_in_the_paper_is_told() {
        let mut report = example();
        let line = |report: &Report, wanted: [&str; 6]| {
            let lines = ways(report, Name::TbcPaper);
            let line = lines.iter().find(|line| line[..6] == wanted).map(|line| line[6..].join(" "));
            line.unwrap_or_else(|| panic!("{lines:?}"))
        };
        assert_eq!(line(&report, ["bfs", "BFS2", "divergent", "tbc", "never", "gains"]), "+25.0 % ");
        assert_eq!(line(&report, ["bfs", "BFS2", "divergent", "dwf", "never", "gains"]), "+0.0 % ");
        let is_bfs = |row: &&mut Row| row.config == Name::TbcPaper && row.kernel() == "bfs";
        for row in report.rows.iter_mut().filter(is_bfs) {
            row.figures.as_mut().unwrap().gains = Some(vec![1.0, 1.0]);
        }
        let is_tbc = |row: &&mut Row| row.config == Name::TbcPaper && row.kernel() == "bfs" && row.of.variant == "tbc";
        let tbc = report.rows.iter_mut().find(is_tbc).unwrap();
        tbc.figures.as_mut().unwrap().gains = Some(vec![0.5, 1.0]);
        assert!(!line(&report, ["bfs", "BFS2", "divergent", "tbc", "never", "gains"]).ends_with("reverse"));
        let tbc = report.rows.iter_mut().find(is_tbc).unwrap();
        tbc.figures.as_mut().unwrap().gains = Some(vec![0.5, 0.9]);
        assert_eq!(
            line(&report, ["bfs", "BFS2", "divergent", "tbc", "never", "gains"]),
            "-32.9 % (-50.0 … -10.0 %) the reverse"
        );
    }

    #[test]
    fn the_page_has_the_tables_and_nothing_open() {
        let text = page(&example());
        assert!(text.contains("| bfs | BFS2 | divergent | 10.00 | +0.0 % | +0.0 % | +25.0 % | +25.0 % |"), "{text}");
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

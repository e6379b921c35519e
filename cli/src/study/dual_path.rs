//! `heddle study dual-path`: two paths of a warp side by side, against one at a time, on the kernels of *The Dual-Path
//! Execution Model*; and what that paper compares with, dynamic warp subdivision, as a cycle model.

mod rows;
mod stacks;
mod subdivision;
mod variants;

use super::age;
use super::chart::{Bars, Chart};
use super::core::{CoreArgs, without_jitter};
use super::draws::{self, DrawsArgs, Gain};
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::{Run, usual};
use super::table::{gain, markdown, plain, share};
use super::told;
use crate::interrupt::Interrupt;
use crate::output::ResultFile;
use anyhow::{Context, Result, ensure};
use clap::Args;
use heddle_check::model::Mechanism;
use heddle_simt::{Divergence, PathScheduler, Scoreboard, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels::Kernel;
use rows::{Figures, Mean, Row, kernels, mean, of};
use serde::Serialize;
use stacks::Stack;
use std::io::Write as _;
use std::path::PathBuf;
use subdivision::Branches;
use variants::{Point, VARIANTS};

/// Thread instructions a cycle of 13 kernels on stack, dual-path, arbiter and path tables, which are otherwise one
/// core.
///
/// The kernels have the control structure of those that the paper on dual-path execution measured: seven that it calls
/// interleavable, as their branches have something to do on both sides, and six that it calls non-interleavable. Its
/// figures are beside ours. All cores serve the lanes of an access that do not go together one after the other
/// (--replay serialise). What the paper compares with, dynamic warp subdivision (DWS), is a cycle model of the same
/// core, with three thresholds, beside the model's own stack, all without jitter of memory.
///
/// Dual path has the paper's scheduler: one path stands for its warp (side-first). Variants change one thing each: one path
/// is considered until an access misses the cache, the paper's constrained scheduler (constrained-miss), or until any access
/// (constrained); each path takes part as if it were a warp (full); the scoreboard has no false dependencies (exact); branches
/// of both paths may be unresolved (two-unresolved). The last two are there together, too.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study dual-path                                all kernels on 32 lanes and 16 warps, a cache, memory after 200 cycles
  heddle study dual-path lu quicksort --warps 4         two of them on fewer warps
  heddle study dual-path --memory-model latency=400     a slower memory, which always takes as long
  heddle study dual-path quicksort --thresholds 1,2,3   warps that are subdivided less often
  heddle study dual-path lu --draws 1 --sensitivity     with fewer warps, faster and slower memory, other caches
  heddle study dual-path --json | jq '.rows[] | {kernel, variant, thread_ipc, gain_range}'
  heddle study dual-path --docs docs                    table and chart as a page",
    mut_arg("warps", |arg| arg.help("Warps of the core: 1, 2, 4 … 64 [default: 16]")),
    mut_arg("memory_model", |arg| arg.help("Memory behind it [default: latency=200,jitter=31]")),
)]
pub struct DualPath {
    /// Some of the kernels
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    /// Thresholds of dynamic warp subdivision: a branch subdivides a warp if the basic block where its threads reconverge
    /// has no more than so many instructions
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = THRESHOLDS)]
    thresholds: Vec<u32>,
    #[command(flatten)]
    core: CoreArgs,
    #[command(flatten)]
    draws: DrawsArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Also dual path over the stack on 4 and 16 warps, memory after 50 and 400 cycles, and caches of 4K and 64K, instead
    /// of those of the core
    #[arg(long)]
    sensitivity: bool,
    /// Print one JSON object with an array `rows` instead of a table
    #[arg(long)]
    json: bool,
    /// Write a chart
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Write studies/dual-path.md and studies/dual-path.svg into this folder, too, of the usual core
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels", "thresholds", "svg"])]
    docs: Option<PathBuf>,
}

/// A kernel, and the paper's of its structure.
struct Studied {
    name: &'static str,
    /// In the paper's Table 2.
    paper: &'static str,
    /// The paper's class: whether any branch has something to do on both sides.
    interleavable: bool,
    /// The paper's IPC of dual-path over stack, where its text gives it (§6.3; of LUD and QSort by way of DWS, which is
    /// 37.3 % and 12.8 % above the stack and 5.2 % and 4.9 % above dual-path).
    published: Option<f64>,
    /// The same of DWS with [`PUBLISHED_THRESHOLD`].
    published_dws: Option<f64>,
}

const KERNELS: [Studied; 13] = [
    Studied { name: "lu", paper: "LUD", interleavable: true, published: Some(1.305), published_dws: Some(1.373) },
    Studied {
        name: "quicksort",
        paper: "QSort",
        interleavable: true,
        published: Some(1.075),
        published_dws: Some(1.128),
    },
    Studied { name: "stencil3d", paper: "Stencil", interleavable: true, published: None, published_dws: None },
    Studied { name: "raytrace", paper: "RAY", interleavable: true, published: None, published_dws: None },
    Studied { name: "laplace3d", paper: "LPS", interleavable: true, published: None, published_dws: None },
    Studied { name: "suffix", paper: "MUMpp", interleavable: true, published: Some(0.989), published_dws: None },
    Studied { name: "photon", paper: "MCML", interleavable: true, published: None, published_dws: None },
    Studied { name: "bfs", paper: "BFS, BFS2", interleavable: false, published: Some(1.0), published_dws: None },
    Studied { name: "pathfinder", paper: "PathFind", interleavable: false, published: Some(1.0), published_dws: None },
    Studied { name: "needle", paper: "NW", interleavable: false, published: Some(1.0), published_dws: None },
    Studied { name: "hotspot", paper: "HOTSPOT", interleavable: false, published: Some(1.0), published_dws: None },
    Studied { name: "backprop", paper: "BACKP", interleavable: false, published: Some(1.0), published_dws: None },
    Studied { name: "dxtc", paper: "DXTC", interleavable: false, published: Some(1.0), published_dws: None },
];

/// With it the paper's DWS is fastest. (§6.3)
const PUBLISHED_THRESHOLD: u32 = 50;

/// The paper's mean AvgPath of the interleavable kernels. (§6.1)
const PUBLISHED_AVG_PATH: f64 = 1.2;

/// The paper's mean of the interleavable kernels, and with the constrained scheduler.
const PUBLISHED_MEAN: [f64; 2] = [1.149, 1.117];

/// What is compared.
#[derive(Clone)]
struct Unit {
    name: String,
    divergence: Divergence,
    /// What else it is.
    of: fn(Shape) -> Shape,
    /// The cycle model with this mechanism stands for the core.
    model: Option<Mechanism>,
    /// The unit that it is compared with.
    over: &'static str,
}

const STACK: &str = "stack";
/// The paper's dual path. (§3.2)
const DUAL_PATH: &str = "side-first";
/// The paper's constrained scheduler, which turns at control instructions, too. (§6.4)
const CONSTRAINED: &str = "constrained-miss";
/// Dual path with the scheduler that the core has unless another is asked for.
const FULL: &str = "full";
const MODEL_STACK: &str = "model-stack";
/// A stack before memory without jitter, as the models have it.
const STEADY_STACK: &str = "steady-stack";

/// Thresholds of subdivision: the paper's. (§6.1)
const THRESHOLDS: &str = "10,50,100";

/// How many of the units are in the first table; how many are cores, variants of dual path and the stack before steady
/// memory among them.
const CORES: usize = 6;
const HARDWARE: usize = CORES + VARIANTS.len() + 1;

/// The cores, the stack first; variants of dual path; then the models, their stack first.
fn units(thresholds: &[u32]) -> Vec<Unit> {
    let as_is = |shape| shape;
    let plain = |name: &str, divergence| Unit { name: name.into(), divergence, of: as_is, model: None, over: STACK };
    let variant = |name: &str, of| Unit { of, ..plain(name, Divergence::DUAL_PATH) };
    let steady = Unit { of: without_jitter, over: STEADY_STACK, ..plain(STEADY_STACK, Divergence::STACK) };
    let model =
        |name: &str, mechanism| Unit { name: name.into(), model: Some(mechanism), over: MODEL_STACK, ..steady.clone() };
    let [constrained, exact, two_unresolved, both] = VARIANTS;
    let cores: [Unit; HARDWARE] = [
        plain(STACK, Divergence::STACK),
        variant(DUAL_PATH, side_first),
        variant(CONSTRAINED, |shape| Shape { path_scheduler: PathScheduler::ConstrainedMiss, ..shape }),
        variant(FULL, |shape| Shape { path_scheduler: PathScheduler::Full, ..shape }),
        plain("arbiter", Divergence::ARBITER),
        plain("path-table", Divergence::PATH_TABLE),
        variant(constrained, |shape| Shape { path_scheduler: PathScheduler::Constrained, ..shape }),
        variant(exact, |shape| Shape { scoreboard: Scoreboard::Exact, ..side_first(shape) }),
        variant(two_unresolved, |shape| Shape { unresolved: 2, ..side_first(shape) }),
        variant(both, |shape| Shape { scoreboard: Scoreboard::Exact, unresolved: 2, ..side_first(shape) }),
        steady.clone(),
    ];
    let subdivided = thresholds.iter().map(|&threshold| model(&dws(threshold), Mechanism::Subdivision(threshold)));
    cores.into_iter().chain([model(MODEL_STACK, Mechanism::Stack)]).chain(subdivided).collect()
}

fn side_first(shape: Shape) -> Shape {
    Shape { path_scheduler: PathScheduler::SideFirst, ..shape }
}

fn dws(threshold: u32) -> String {
    format!("dws-{threshold}")
}

const STUDY: &str = "dual-path";
const WARPS: u32 = 16;

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    /// The options that choose the core, with the stack.
    core: String,
    draws: u32,
    /// Of dynamic warp subdivision.
    thresholds: Vec<u32>,
    rows: Vec<Row>,
    /// Of interleavable and of other kernels, by unit.
    means: Vec<Mean>,
    /// What the stacks of a warp take.
    stacks: Vec<Stack>,
    /// What the thresholds decide on.
    branches: Vec<Branches>,
    /// Gains on other cores, where they are asked for.
    sensitivity: Vec<Point>,
}

impl DualPath {
    pub fn run(self) -> Result<()> {
        let kernels = self.kernels()?;
        let shapes = self.shapes()?;
        let units = self.units()?;
        for (_, kernel) in &kernels {
            Program::parse(kernel.elf)?.check(&shapes[0]).context(kernel.name)?;
        }
        let svg = self.svg.as_deref().map(ResultFile::create).transpose()?;
        self.docs.as_deref().map(|folder| page::check(folder, self.core.shape.given(), STUDY, &[""])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let options = usual(self.core.shape.seed);
        let is_elsewhere = self.sensitivity || self.docs.is_some();
        let elsewhere = if is_elsewhere { variants::elsewhere(&kernels, &self.core())? } else { Vec::new() };
        let measured = |runs: &[Run]| draws::each_as(runs, self.draws, &options, kept.as_ref(), &interrupt);
        let results = measured(&runs)?;
        let sensitivity = if is_elsewhere { variants::points(&kernels, &measured(&elsewhere)?) } else { Vec::new() };
        let mut rows = Vec::new();
        for (&(kernel, _), results) in kernels.iter().zip(draws::by_program(&results, kernels.len())) {
            let drawn = |name: &str| &results[units.iter().position(|unit| unit.name == name).expect("it is a unit")];
            let row = |(unit, own): (&Unit, _)| Row::new(kernel, unit, shapes[0].lanes, own, drawn(unit.over));
            rows.extend(units.iter().zip(&results).map(row));
        }
        let report = Report {
            study: STUDY,
            lanes: shapes[0].lanes,
            warps: shapes[0].warps,
            core: shapes[0].options(),
            draws: self.draws.draws,
            thresholds: self.thresholds.clone(),
            branches: kernels
                .iter()
                .map(|&(kernel, of)| Branches::new(kernel, of, &self.thresholds))
                .collect::<Result<_>>()?,
            means: units.iter().map(|unit| mean(&unit.name, &rows)).collect(),
            stacks: stacks::of(&shapes, &rows)?,
            rows,
            sensitivity,
        };
        if let Some(mut file) = svg {
            file.writer().write_all(chart(&report).as_bytes())?;
            file.finish()?;
        }
        if let Some(folder) = &self.docs {
            page::write(
                folder,
                STUDY,
                &age::of_now(folder, &text(&report), &runs, &interrupt)?,
                &[("", chart(&report))],
            )?;
        }
        told(self.json, &report, table)
    }

    /// A machine runs all kernels before the next is built.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let kernels = self.kernels()?;
        let of = |(shape, unit): (&Shape, &Unit)| {
            let run = |&(_, kernel)| Run { model: unit.model, ..Run::new(kernel, shape.clone()) };
            kernels.iter().map(run).collect::<Vec<_>>()
        };
        Ok(self.shapes()?.iter().zip(&self.units()?).flat_map(of).collect())
    }

    /// Those that are asked for, or all.
    fn kernels(&self) -> Result<Vec<(&'static Studied, &'static Kernel)>> {
        let kernels = chosen(&self.kernels, &KERNELS.map(|kernel| kernel.name))?;
        Ok(kernels.into_iter().map(|(place, kernel)| (&KERNELS[place], kernel)).collect())
    }

    fn units(&self) -> Result<Vec<Unit>> {
        for (at, threshold) in self.thresholds.iter().enumerate() {
            ensure!(!self.thresholds[..at].contains(threshold), "thresholds: {threshold} is there twice");
        }
        Ok(units(&self.thresholds))
    }

    /// Options of the core, with memory of draws unless another is asked for.
    fn core(&self) -> CoreArgs {
        self.core.with_jitter(draws::JITTER)
    }

    /// A core for each unit.
    fn shapes(&self) -> Result<Vec<Shape>> {
        let shape = self.core().shape(Divergence::STACK, WARPS)?;
        let of = |&Unit { divergence, of, .. }: &Unit| {
            let levels = shape.levels.filter(|_| divergence.capabilities().reconverges);
            let shape = of(Shape { levels, ..shape.clone() }.with_divergence(divergence));
            shape.check()?;
            Ok(shape)
        };
        self.units()?.iter().map(of).collect()
    }
}

/// The cells of a kernel's line: name, the paper's name, thread IPC of the stack, the others over it, the paper's
/// figure, AvgPath, SIMT efficiency and idle cycles of dual-path.
fn cells(rows: &[Row]) -> Vec<String> {
    let [stack, dual] = [STACK, DUAL_PATH].map(|name| of(rows, name));
    let figure = |figures: Option<&Figures>, text: fn(&Figures) -> String| figures.map_or(NONE.into(), text);
    let over = rows[1..CORES].iter().map(|row| row.figures.as_ref().and_then(Figures::gain));
    [rows[0].kernel().into(), rows[0].paper.into(), figure(stack, |f| format!("{:.2}", f.compared.thread_ipc))]
        .into_iter()
        .chain(over.map(|over| over.map_or(NONE.into(), |gain| gain.with_range())))
        .chain([
            rows[1].published.map_or(NONE.into(), gain),
            figure(dual, |f| format!("{:.3}", f.avg_path)),
            figure(dual, |f| share(f.simt_efficiency)),
            figure(dual, |f| f.idle_over_stack.map_or(NONE.into(), gain)),
        ])
        .collect()
}

const NONE: &str = "-";

const COLUMNS: [&str; 12] = [
    "kernel",
    "paper's",
    "stack IPC",
    DUAL_PATH,
    CONSTRAINED,
    FULL,
    "arbiter",
    "path-table",
    "paper",
    "AvgPath",
    "efficiency",
    "idle",
];

/// With its range over the draws.
fn mean_text(mean: Option<Gain>) -> String {
    mean.map_or(NONE.into(), |mean| mean.with_range())
}

/// Lines of cells: the headings, the kernels, then the means.
fn lines(report: &Report) -> Vec<Vec<String>> {
    let kernels = kernels(report).map(cells);
    let mut lines: Vec<Vec<String>> = std::iter::once(COLUMNS.map(String::from).to_vec()).chain(kernels).collect();
    let means = |name: &str, value: fn(&Mean) -> String, paper: String, last: [String; 2]| {
        let [path, idle] = last;
        let over = report.means[1..CORES].iter().map(value);
        let first = [name.to_string(), String::new(), String::new()];
        first.into_iter().chain(over).chain([paper, path, String::new(), idle]).collect::<Vec<String>>()
    };
    let dual = &report.means[1];
    let [dual_path, constrained] = PUBLISHED_MEAN.map(gain);
    let path = dual.avg_path.map_or(NONE.into(), |path| format!("{path:.3}"));
    let idle = dual.idle.map_or(NONE.into(), gain);
    let both = format!("{dual_path}, {constrained}");
    lines.push(means("interleavable", |mean| mean_text(mean.interleavable), both, [path, idle]));
    lines.push(means("others", |mean| mean_text(mean.others), gain(1.0), ["".into(), "".into()]));
    lines.push(means("worst", |mean| mean.worst.map_or("none".into(), gain), gain(0.989), ["".into(), "".into()]));
    lines
}

const WORKLOADS: &str = "what the kernels give the core to do";
const OVER_DUAL_PATH: &str = "thread IPC of variants over dual path's, of one path for its warp";
const AT_MOST: &str = "what a second path has beside it, and what it gains";
const ELSEWHERE: &str = "thread IPC of dual path over the stack's on other cores";

fn table(report: &Report) -> String {
    let mut text = format!("{}\n{}", report.core, plain(&lines(report), 2));
    let workloads = (WORKLOADS, variants::workloads(report));
    let variants = [workloads, (OVER_DUAL_PATH, variants::table(report)), (AT_MOST, variants::bounds(report))];
    let sensitivity = (!report.sensitivity.is_empty()).then(|| (ELSEWHERE, variants::sensitivity(&report.sensitivity)));
    let of_dws = subdivision::tables(report).into_iter().chain([stacks::table(&report.stacks)]);
    for (title, lines) in variants.into_iter().chain(sensitivity).chain(of_dws) {
        text += &format!("\n{title}\n{}", plain(&lines, 2));
    }
    let failed = report.rows.iter().filter_map(|row| Some((row.kernel(), &row.of.variant, row.failed.as_ref()?)));
    for (kernel, variant, why) in failed {
        text += &format!("\n{kernel} on {variant}: {why}\n");
    }
    text
}

/// The page's text, with what stands in braces filled in.
fn text(report: &Report) -> String {
    let core = format!("{} lanes × {} warps", report.lanes, report.warps);
    let text = include_str!("dual_path/page.md").replace("{core}", &core).replace("{options}", &report.core);
    let table = |(title, lines): (&str, Vec<Vec<String>>)| format!("**{title}**\n\n{}", markdown(&lines));
    let subdivision: Vec<String> = subdivision::tables(report).into_iter().map(table).collect();
    text.replace("{table}", markdown(&lines(report)).trim_end())
        .replace("{subdivision}", subdivision.join("\n").trim_end())
        .replace("{ranking}", &variants::ranking(report))
        .replace("{kernels}", &kernels(report).count().to_string())
        .replace("{differ}", &variants::differing(report))
        .replace("{avg_path}", &variants::avg_paths(report))
        .replace("{published_hidden}", &gain(variants::hidden(PUBLISHED_AVG_PATH)))
        .replace("{beyond}", &variants::beyond(report))
        .replace("{signs}", &variants::signs(report))
        .replace("{workloads}", markdown(&variants::workloads(report)).trim_end())
        .replace("{draws}", &report.draws.to_string())
        .replace("{full_mean}", &variants::mean_of_full(report))
        .replace("{constrained}", &variants::constrained(report))
        .replace("{dws_gains}", &subdivision::listed(report, |gain| gain.least > 1.0))
        .replace("{dws_losses}", &subdivision::listed(report, |gain| gain.greatest < 1.0))
        .replace("{variants}", markdown(&variants::table(report)).trim_end())
        .replace("{bounds}", markdown(&variants::bounds(report)).trim_end())
        .replace("{sensitivity}", markdown(&variants::sensitivity(&report.sensitivity)).trim_end())
        .replace("{stacks}", markdown(&stacks::table(&report.stacks).1).trim_end())
}

fn chart(report: &Report) -> String {
    let group = |rows: &[Row]| Bars {
        heading: None,
        name: rows[0].kernel().into(),
        values: rows[..CORES].iter().map(|row| Some(row.figures.as_ref()?.compared.thread_ipc)).collect(),
        mark: of(rows, STACK).map(|stack| f64::from(report.lanes) * stack.simt_efficiency),
    };
    let title = format!("Thread instructions a cycle, {} lanes × {} warps", report.lanes, report.warps);
    let chart = Chart {
        title: &title,
        series: &report.rows[..CORES].iter().map(|row| row.of.variant.as_str()).collect::<Vec<_>>(),
        mark: "bound of the stack",
        most: report.lanes.into(),
        step: f64::from(report.lanes) / 8.0,
        groups: kernels(report).map(group).collect(),
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_testbench::kernels::find;
    use heddle_testbench::machine::Summary;
    use heddle_testbench::reconverge::analyse;

    /// Two kernels in two draws: on dual paths a tenth or a fifth more is done than on stacks, and as much.
    pub(super) fn example() -> Report {
        let stack = Summary {
            cycles: 1000,
            warp_instructions: 600,
            thread_ipc: 10.0,
            simt_efficiency: 0.5,
            avg_path: 1.0,
            ..Summary::default()
        };
        let dual = Summary { thread_ipc: 11.0, cycles: 900, avg_path: 1.25, ..stack };
        let [stacks, duals] =
            [(stack, stack), (dual, Summary { thread_ipc: 12.0, ..dual })].map(|(a, b)| Ok(vec![a, b]));
        let thresholds: Vec<u32> = THRESHOLDS.split(',').map(|threshold| threshold.parse().unwrap()).collect();
        let rows = |kernel: &Studied, dual| {
            let row = |unit: &Unit| {
                let parallel = unit.divergence == Divergence::DUAL_PATH || unit.name == "dws-50";
                Row::new(kernel, unit, 32, if parallel { dual } else { &stacks }, &stacks)
            };
            units(&thresholds).iter().map(row).collect::<Vec<_>>()
        };
        let rows: Vec<Row> = rows(&KERNELS[0], &duals).into_iter().chain(rows(&KERNELS[7], &stacks)).collect();
        Report {
            study: STUDY,
            lanes: 32,
            warps: 16,
            core: "--lanes 32 --warps 16".into(),
            draws: 2,
            branches: Vec::new(),
            means: units(&thresholds).iter().map(|unit| mean(&unit.name, &rows)).collect(),
            rows,
            thresholds,
            stacks: Vec::new(),
            sensitivity: Vec::new(),
        }
    }

    #[test]
    fn a_table_has_a_line_a_kernel_and_the_means() {
        let text = table(&example());
        let (first, others) = text.split_once("\n\n").unwrap();
        let words: Vec<Vec<&str>> = first.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words.len(), 2 + 2 + 3);
        let gains = format!("{} +0.0 % +0.0 %", ["+14.9 % (+10.0 … +20.0 %)"; 3].join(" "));
        assert_eq!(words[2].join(" "), format!("lu LUD 10.00 {gains} +30.5 % 1.250 50.0 % -25.0 %"));
        let bfs = format!("bfs BFS, BFS2 10.00 {} 1.000 50.0 % +0.0 %", ["+0.0 %"; 6].join(" "));
        assert_eq!(words[3].join(" "), bfs);
        assert_eq!(words[4].join(" "), format!("interleavable {gains} +14.9 %, +11.7 % 1.250 -25.0 %"));
        let titles = [WORKLOADS, OVER_DUAL_PATH, AT_MOST, "Figure 13: ", "the stack of a warp, "];
        let places = titles.map(|title| format!("\n\n{text}").find(&format!("\n\n{title}")));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{others}");
    }

    #[test]
    fn a_model_that_failed_has_no_figures_and_says_why() {
        let mut report = example();
        let row = report.rows.iter_mut().find(|row| row.of.variant == "dws-10").unwrap();
        (row.figures, row.failed) = (None, Some("it does not end".into()));
        let text = table(&report);
        let ipc = text.split_once("Figure 13").unwrap().1.lines().nth(2).unwrap();
        let cells: Vec<&str> = ipc.split_whitespace().collect();
        assert_eq!(cells[..10].join(" "), "lu LUD 10.00 +14.9 % (+10.0 … +20.0 %) -", "{ipc}");
        assert!(text.ends_with("\nlu on dws-10: it does not end\n"), "{text}");
    }

    #[test]
    fn the_page_has_a_line_a_kernel() {
        let text = text(&example());
        assert!(text.contains("| lu | LUD | 10.00 | +14.9 % (+10.0 … +20.0 %) |"), "{text}");
        assert!(text.contains("32 lanes × 16 warps, 2 kernels") && !text.contains('{'), "{text}");
        let agrees =
            "AvgPath is from 1.250 to 1.250 on the kernels that the paper calls interleavable, and from 1.000 to 1.000";
        assert!(text.contains(agrees) && text.contains("differ: none."), "{text}");
        let mut other = example();
        let dual = other.rows.iter_mut().find(|row| row.of.variant == DUAL_PATH).unwrap();
        dual.figures.as_mut().unwrap().simt_efficiency = 0.4;
        assert!(super::text(&other).contains("differ: `lu`."));
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(example()).unwrap();
        let row = &json["rows"][1];
        assert_eq!((row["kernel"].as_str(), row["variant"].as_str()), (Some("lu"), Some("side-first")));
        assert_eq!((row["set"].as_str(), row["draws"].as_u64()), (Some("interleavable"), Some(2)));
        for field in ["thread_ipc", "avg_path", "simt_efficiency", "gain", "idle", "cache", "most_levels"] {
            assert!(row.get(field).is_some(), "{field}");
        }
    }

    /// What dual path does to the others is then no gain of a second path.
    #[test]
    fn interleavable_kernels_alone_have_interleavable_branches() {
        for &Studied { name, interleavable, .. } in &KERNELS {
            let kernel = find(name).unwrap();
            for elf in [Some(kernel.elf), kernel.small_elf].into_iter().flatten() {
                let branches = analyse(&Program::parse(elf).unwrap()).unwrap().branches;
                let found = branches.iter().filter(|branch| branch.interleavable).map(|branch| branch.pc);
                let found: Vec<u32> = found.collect();
                assert_eq!(!found.is_empty(), interleavable, "{name}: {found:#x?}");
            }
        }
    }

    #[test]
    fn every_kernel_of_the_study_is_there() {
        for kernel in &KERNELS {
            assert_eq!(find(kernel.name).unwrap().name, kernel.name);
        }
    }

    #[test]
    fn the_chart_has_a_bar_a_unit() {
        let picture = chart(&example());
        assert_eq!(picture.matches("<rect ").count(), 2 * CORES + 1 + CORES);
    }
}

//! `heddle study dual-path`: two paths of a warp side by side, against one at a time, on the kernels of *The Dual-Path
//! Execution Model*; and what that paper compares with, dynamic warp subdivision, as a cycle model.

mod stacks;
mod subdivision;
mod variants;

use super::age;
use super::chart::{Bars, Chart};
use super::core::CoreArgs;
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::{Run, all, each, usual};
use super::table::{gain, markdown, plain, share};
use super::workloads::Workload;
use crate::interrupt::Interrupt;
use crate::output::{ResultFile, print, print_json};
use anyhow::{Context, Result, ensure};
use clap::Args;
use heddle_check::model::Mechanism;
use heddle_simt::{Divergence, PathScheduler, Scoreboard, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels::Kernel;
use heddle_testbench::machine::{CacheVisits, IdleCycles, SecondLevelVisits, Summary};
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
/// core, with three thresholds, beside the model's own stack. Variants of dual path change one thing each: one path
/// stands for its warp (side-first); one path is considered until an access misses the cache (constrained-miss); the
/// scoreboard has no false dependencies (exact); branches of both paths may be unresolved (two-unresolved).
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study dual-path                                all kernels on 32 lanes and 16 warps, a cache, memory after 200 cycles
  heddle study dual-path lu quicksort --warps 4         two of them on fewer warps
  heddle study dual-path --memory-model latency=400     a slower memory
  heddle study dual-path quicksort --thresholds 1,2,3   warps that are subdivided less often
  heddle study dual-path lu --sensitivity               with fewer warps, faster and slower memory, other caches
  heddle study dual-path --json | jq '.rows[] | {kernel, divergence, thread_ipc}'
  heddle study dual-path --docs docs                    table and chart as a page",
    mut_arg("warps", |arg| arg.help("Warps of the core: 1, 2, 4 … 64 [default: 16]")),
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
    /// Write studies/dual-path.md and studies/dual-path.svg into this folder, too
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
}

const STACK: &str = "stack";
const DUAL_PATH: &str = "dual-path";
const CONSTRAINED: &str = "constrained";
const MODEL_STACK: &str = "model-stack";

/// Thresholds of subdivision: the paper's. (§6.1)
const THRESHOLDS: &str = "10,50,100";

/// How many of the units are in the first table; how many are cores, variants of dual path among them.
const CORES: usize = 5;
const HARDWARE: usize = 9;

/// The cores, the stack first; variants of dual path; then the models, their stack first.
fn units(thresholds: &[u32]) -> Vec<Unit> {
    let plain = |name: &str, divergence| Unit { name: name.into(), divergence, of: |shape| shape, model: None };
    let variant = |name: &str, of| Unit { of, ..plain(name, Divergence::DUAL_PATH) };
    let model = |name: &str, mechanism| Unit { model: Some(mechanism), ..plain(name, Divergence::STACK) };
    let [side_first, constrained_miss, exact, two_unresolved] = VARIANTS;
    let cores: [Unit; HARDWARE] = [
        plain(STACK, Divergence::STACK),
        plain(DUAL_PATH, Divergence::DUAL_PATH),
        variant(CONSTRAINED, |shape| Shape { path_scheduler: PathScheduler::Constrained, ..shape }),
        plain("arbiter", Divergence::ARBITER),
        plain("path-table", Divergence::PATH_TABLE),
        variant(side_first, |shape| Shape { path_scheduler: PathScheduler::SideFirst, ..shape }),
        variant(constrained_miss, |shape| Shape { path_scheduler: PathScheduler::ConstrainedMiss, ..shape }),
        variant(exact, |shape| Shape { scoreboard: Scoreboard::Exact, ..shape }),
        variant(two_unresolved, |shape| Shape { unresolved: 2, ..shape }),
    ];
    let subdivided = thresholds.iter().map(|&threshold| model(&dws(threshold), Mechanism::Subdivision(threshold)));
    cores.into_iter().chain([model(MODEL_STACK, Mechanism::Stack)]).chain(subdivided).collect()
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
    seed: u64,
    /// Of dynamic warp subdivision.
    thresholds: Vec<u32>,
    rows: Vec<Row>,
    /// Mean IPC over the stack's, of interleavable and of other kernels, by unit.
    means: Vec<Mean>,
    /// What the stacks of a warp take.
    stacks: Vec<Stack>,
    /// What the thresholds decide on.
    branches: Vec<Branches>,
    /// Why a model has no row.
    failures: Vec<Failure>,
    /// Gains on other cores, where they are asked for.
    sensitivity: Vec<Point>,
}

#[derive(Serialize)]
struct Failure {
    kernel: &'static str,
    divergence: String,
    why: String,
}

/// A kernel on a unit.
#[derive(Serialize, Clone)]
struct Row {
    kernel: &'static str,
    /// Its namesake in the paper.
    paper: &'static str,
    interleavable: bool,
    divergence: String,
    /// From the cycle model, not from the core. What is of the stack's is then of the model's stack's.
    model: bool,
    cycles: u64,
    warp_instructions: u64,
    thread_instructions: u64,
    thread_ipc: f64,
    /// The thread IPC, of the stack's.
    over_stack: f64,
    /// The paper's figure for that, where it gives one.
    published: Option<f64>,
    /// Equation 1: paths that can be scheduled, an issued instruction.
    avg_path: f64,
    /// Active lanes an issued instruction, of all lanes.
    simt_efficiency: f64,
    /// Cycles without an issue, of the stack's.
    idle_over_stack: f64,
    idle: IdleCycles,
    /// What the data cache did.
    cache: Option<CacheVisits>,
    /// Lines that loads asked memory for, of the stack's.
    misses_over_stack: Option<f64>,
    /// Paths that a warp held at most; of a model, those that can be scheduled together.
    most_paths: u64,
    /// What its second level did.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_level: Option<SecondLevelVisits>,
    /// Levels of its stack that a warp had in use at most.
    most_levels: u64,
    /// What there was to do.
    workload: Workload,
}

#[derive(Serialize)]
struct Mean {
    divergence: String,
    interleavable: f64,
    others: f64,
    /// The lowest of all kernels.
    worst: f64,
    avg_path: f64,
    idle: f64,
}

fn idle_cycles(s: &Summary) -> u64 {
    s.cycles - s.warp_instructions
}

impl Row {
    fn new(kernel: &Studied, unit: &Unit, lanes: u32, s: &Summary, stack: &Summary) -> Row {
        let published = match unit.name.as_str() {
            DUAL_PATH => kernel.published,
            name if name == dws(PUBLISHED_THRESHOLD) => kernel.published_dws,
            _ => None,
        };
        let misses = |s: &Summary| s.cache.map(|cache| cache.misses).filter(|&misses| misses > 0);
        Row {
            kernel: kernel.name,
            paper: kernel.paper,
            interleavable: kernel.interleavable,
            divergence: unit.name.clone(),
            model: unit.model.is_some(),
            cycles: s.cycles,
            warp_instructions: s.warp_instructions,
            thread_instructions: s.thread_instructions,
            thread_ipc: s.thread_ipc,
            over_stack: s.thread_ipc / stack.thread_ipc,
            published,
            avg_path: s.avg_path,
            simt_efficiency: s.simt_efficiency,
            idle_over_stack: idle_cycles(s) as f64 / idle_cycles(stack).max(1) as f64,
            idle: s.idle,
            cache: s.cache,
            misses_over_stack: misses(s).zip(misses(stack)).map(|(misses, stack)| misses as f64 / stack as f64),
            most_paths: s.most_paths,
            second_level: s.second_level,
            most_levels: s.most_levels,
            workload: Workload::new(s, lanes),
        }
    }
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
        self.docs.as_deref().map(|folder| page::check(folder, STUDY, &[""])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let (cores, models) = runs.split_at(HARDWARE * kernels.len());
        let options = usual(self.core.shape.seed);
        let cores = all(cores, &options, kept.as_ref(), &interrupt)?;
        let models = each(models, &options, kept.as_ref(), &interrupt)?;
        let sensitivity = if self.sensitivity || self.docs.is_some() {
            variants::points(&kernels, &self.core, &options, kept.as_ref(), &interrupt)?
        } else {
            (Vec::new(), Vec::new())
        };
        let (sensitivity, elsewhere) = sensitivity;
        let results: Vec<Result<Summary, String>> = cores.into_iter().map(Ok).chain(models).collect();
        let (mut rows, mut failures) = (Vec::new(), elsewhere);
        for (at, &(kernel, _)) in kernels.iter().enumerate() {
            for (number, unit) in units.iter().enumerate() {
                let stack = if number < HARDWARE { 0 } else { HARDWARE };
                let [result, stack] = [number, stack].map(|number| results[number * kernels.len() + at].as_ref());
                match (result, stack) {
                    (Ok(summary), Ok(stack)) => rows.push(Row::new(kernel, unit, shapes[0].lanes, summary, stack)),
                    (Err(why), _) | (_, Err(why)) => {
                        let (divergence, why) = (unit.name.clone(), why.clone());
                        failures.push(Failure { kernel: kernel.name, divergence, why });
                    }
                }
            }
        }
        let report = Report {
            study: STUDY,
            lanes: shapes[0].lanes,
            warps: shapes[0].warps,
            core: shapes[0].options(),
            seed: self.core.shape.seed,
            thresholds: self.thresholds.clone(),
            branches: kernels
                .iter()
                .map(|&(kernel, of)| Branches::new(kernel, of, &self.thresholds))
                .collect::<Result<_>>()?,
            means: units.iter().map(|unit| mean(&unit.name, &rows)).collect(),
            stacks: stacks::of(&shapes, &rows)?,
            rows,
            failures,
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
        if self.json { print_json(&report) } else { print(&table(&report)) }
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

    /// A core for each unit.
    fn shapes(&self) -> Result<Vec<Shape>> {
        let shape = self.core.shape(Divergence::STACK, WARPS)?;
        let of = |&Unit { divergence, of, .. }: &Unit| {
            let levels = shape.levels.filter(|_| divergence.capabilities().reconverges);
            let shape = of(Shape { levels, ..shape.clone() }.with_divergence(divergence));
            shape.check()?;
            Ok(shape)
        };
        self.units()?.iter().map(of).collect()
    }
}

fn mean(divergence: &str, rows: &[Row]) -> Mean {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.divergence == divergence).collect();
    let mean = |value: fn(&Row) -> f64, interleavable: bool| {
        let values: Vec<f64> =
            rows.iter().filter(|row| row.interleavable == interleavable).map(|row| value(row)).collect();
        if values.is_empty() { f64::NAN } else { values.iter().sum::<f64>() / values.len() as f64 }
    };
    Mean {
        divergence: divergence.into(),
        interleavable: mean(|row| row.over_stack, true),
        others: mean(|row| row.over_stack, false),
        worst: rows.iter().map(|row| row.over_stack).fold(f64::INFINITY, f64::min),
        avg_path: mean(|row| row.avg_path, true),
        idle: mean(|row| row.idle_over_stack, true),
    }
}

/// The rows of each kernel.
fn kernels(report: &Report) -> impl Iterator<Item = &[Row]> {
    report.rows.chunk_by(|a, b| a.kernel == b.kernel)
}

/// A kernel's row of a unit.
fn row_of<'a>(rows: &'a [Row], unit: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.divergence == unit)
}

/// The cells of a kernel's line: name, the paper's name, thread IPC of the stack, the others over it, the paper's
/// figure, AvgPath, SIMT efficiency and idle cycles of dual-path.
fn cells(rows: &[Row]) -> Vec<String> {
    let [stack, dual, ..] = rows else { unreachable!("a kernel has a row a core") };
    let over = rows[1..CORES].iter().map(|row| gain(row.over_stack));
    [stack.kernel.into(), stack.paper.into(), format!("{:.2}", stack.thread_ipc)]
        .into_iter()
        .chain(over)
        .chain([
            dual.published.map_or("-".into(), gain),
            format!("{:.3}", dual.avg_path),
            share(dual.simt_efficiency),
            gain(dual.idle_over_stack),
        ])
        .collect()
}

const COLUMNS: [&str; 11] = [
    "kernel",
    "paper's",
    "stack IPC",
    "dual-path",
    "constrained",
    "arbiter",
    "path-table",
    "paper",
    "AvgPath",
    "efficiency",
    "idle",
];

/// Lines of cells: the headings, the kernels, then the means.
fn lines(report: &Report) -> Vec<Vec<String>> {
    let kernels = kernels(report).map(cells);
    let mut lines: Vec<Vec<String>> = std::iter::once(COLUMNS.map(String::from).to_vec()).chain(kernels).collect();
    let means = |name: &str, value: fn(&Mean) -> f64, paper: String, last: [String; 2]| {
        let [path, idle] = last;
        let over = report.means[1..CORES].iter().map(|mean| gain(value(mean)));
        let first = [name.to_string(), String::new(), String::new()];
        first.into_iter().chain(over).chain([paper, path, String::new(), idle]).collect::<Vec<String>>()
    };
    let dual = &report.means[1];
    let [full, constrained] = PUBLISHED_MEAN.map(gain);
    let path = if dual.avg_path.is_nan() { "-".into() } else { format!("{:.3}", dual.avg_path) };
    let both = format!("{full}, {constrained}");
    lines.push(means("interleavable", |mean| mean.interleavable, both, [path, gain(dual.idle)]));
    lines.push(means("others", |mean| mean.others, gain(1.0), ["".into(), "".into()]));
    lines.push(means("worst", |mean| mean.worst, gain(0.989), ["".into(), "".into()]));
    lines
}

const WORKLOADS: &str = "what the kernels give the core to do";
const OVER_DUAL_PATH: &str = "thread IPC of variants over dual path's";
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
    for Failure { kernel, divergence, why } in &report.failures {
        text += &format!("\n{kernel} on {divergence}: {why}\n");
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
        .replace("{published_hidden}", &gain(variants::hidden(PUBLISHED_AVG_PATH)))
        .replace("{beyond}", &variants::beyond(report))
        .replace("{workloads}", markdown(&variants::workloads(report)).trim_end())
        .replace("{full_mean}", &variants::mean_of_full(report))
        .replace("{over_side_first}", &variants::over_side_first(report))
        .replace("{variants}", markdown(&variants::table(report)).trim_end())
        .replace("{bounds}", markdown(&variants::bounds(report)).trim_end())
        .replace("{sensitivity}", markdown(&variants::sensitivity(&report.sensitivity)).trim_end())
        .replace("{stacks}", markdown(&stacks::table(&report.stacks).1).trim_end())
}

fn chart(report: &Report) -> String {
    let group = |rows: &[Row]| Bars {
        heading: None,
        name: rows[0].kernel.into(),
        values: rows[..CORES].iter().map(|row| Some(row.thread_ipc)).collect(),
        mark: Some(f64::from(report.lanes) * rows[0].simt_efficiency),
    };
    let title = format!("Thread instructions a cycle, {} lanes × {} warps", report.lanes, report.warps);
    let chart = Chart {
        title: &title,
        series: &report.rows[..CORES].iter().map(|row| row.divergence.as_str()).collect::<Vec<_>>(),
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
    use heddle_testbench::reconverge::analyse;

    /// Two kernels, on whose dual paths a tenth more and as much is done as on stacks.
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
        let thresholds: Vec<u32> = THRESHOLDS.split(',').map(|threshold| threshold.parse().unwrap()).collect();
        let rows = |kernel: &Studied, dual: &Summary| {
            let row = |unit: &Unit| {
                let parallel = unit.divergence == Divergence::DUAL_PATH || unit.name == "dws-50";
                Row::new(kernel, unit, 32, if parallel { dual } else { &stack }, &stack)
            };
            units(&thresholds).iter().map(row).collect::<Vec<_>>()
        };
        let rows: Vec<Row> = rows(&KERNELS[0], &dual).into_iter().chain(rows(&KERNELS[7], &stack)).collect();
        Report {
            study: STUDY,
            lanes: 32,
            warps: 16,
            core: "--lanes 32 --warps 16".into(),
            seed: 1,
            branches: Vec::new(),
            means: units(&thresholds).iter().map(|unit| mean(&unit.name, &rows)).collect(),
            rows,
            thresholds,
            stacks: Vec::new(),
            failures: Vec::new(),
            sensitivity: Vec::new(),
        }
    }

    #[test]
    fn a_table_has_a_line_a_kernel_and_the_means() {
        let text = table(&example());
        let (first, others) = text.split_once("\n\n").unwrap();
        let words: Vec<Vec<&str>> = first.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words.len(), 2 + 2 + 3);
        assert_eq!(words[2].join(" "), "lu LUD 10.00 +10.0 % +10.0 % +0.0 % +0.0 % +30.5 % 1.250 50.0 % -25.0 %");
        assert_eq!(words[3].join(" "), "bfs BFS, BFS2 10.00 +0.0 % +0.0 % +0.0 % +0.0 % +0.0 % 1.000 50.0 % +0.0 %");
        let mean = "interleavable +10.0 % +10.0 % +0.0 % +0.0 % +14.9 %, +11.7 % 1.250 -25.0 %";
        assert_eq!(words[4].join(" "), mean);
        let titles = [WORKLOADS, OVER_DUAL_PATH, AT_MOST, "Figure 13: ", "the stack of a warp, "];
        let places = titles.map(|title| format!("\n\n{text}").find(&format!("\n\n{title}")));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{others}");
    }

    #[test]
    fn a_model_that_failed_has_no_figures_and_says_why() {
        let mut report = example();
        report.rows.retain(|row| (row.kernel, row.divergence.as_str()) != ("lu", "dws-10"));
        report.failures.push(Failure { kernel: "lu", divergence: "dws-10".into(), why: "it does not end".into() });
        let text = table(&report);
        assert!(
            text.contains("lu             LUD                  10.00    +10.0 %       -  +10.0 %   +0.0 %"),
            "{text}"
        );
        assert!(text.ends_with("\nlu on dws-10: it does not end\n"), "{text}");
    }

    #[test]
    fn the_page_has_a_line_a_kernel() {
        let text = text(&example());
        assert!(text.contains("| lu | LUD | 10.00 | +10.0 % | +10.0 % |"), "{text}");
        assert!(text.contains("32 lanes × 16 warps") && !text.contains('{'), "{text}");
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(example()).unwrap();
        let row = &json["rows"][1];
        assert_eq!((row["kernel"].as_str(), row["divergence"].as_str()), (Some("lu"), Some("dual-path")));
        for field in ["thread_ipc", "avg_path", "simt_efficiency", "over_stack", "idle", "cache", "most_levels"] {
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

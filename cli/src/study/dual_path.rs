//! `heddle study dual-path`: two paths of a warp side by side, against one at a time, on the kernels of *The Dual-Path
//! Execution Model*.

use super::age;
use super::chart::{Bars, Chart};
use super::core::CoreArgs;
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::{Run, all, usual};
use super::table::{gain, markdown, plain, share};
use crate::interrupt::Interrupt;
use crate::output::{ResultFile, print, print_json};
use anyhow::{Context, Result};
use clap::Args;
use heddle_simt::{Divergence, PathScheduler, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels::Kernel;
use heddle_testbench::machine::{CacheVisits, IdleCycles, SecondLevelVisits, Summary};
use serde::Serialize;
use std::io::Write as _;
use std::path::PathBuf;

/// Thread instructions a cycle of 12 kernels on stack, dual-path, arbiter and path tables, which are otherwise one
/// core.
///
/// The kernels have the control structure of those that the paper on dual-path execution measured: seven that it calls
/// interleavable, as their branches have something to do on both sides, and five that it calls non-interleavable. Its
/// figures are beside ours. All cores serve the lanes of an access that do not go together one after the other
/// (--replay serialise).
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study dual-path                                all kernels on 32 lanes and 16 warps, a cache, memory after 200 cycles
  heddle study dual-path lu quicksort --warps 4         two of them on fewer warps
  heddle study dual-path --memory-model latency=400     a slower memory
  heddle study dual-path --json | jq '.rows[] | {kernel, divergence, thread_ipc}'
  heddle study dual-path --docs docs                    table and chart as a page",
    mut_arg("warps", |arg| arg.help("Warps of the core: 1, 2, 4 … 64 [default: 16]")),
)]
pub struct DualPath {
    /// Some of the kernels
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    #[command(flatten)]
    core: CoreArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Print one JSON object with an array `rows` instead of a table
    #[arg(long)]
    json: bool,
    /// Write a chart
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Write studies/dual-path.md and studies/dual-path.svg into this folder, too
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels", "svg"])]
    docs: Option<PathBuf>,
}

/// A kernel, and the paper's of its structure.
struct Studied {
    name: &'static str,
    /// In the paper's Table 2.
    paper: &'static str,
    /// The paper's class, by its benchmark: branches with something to do on both sides matter. Our kernel may have
    /// some in either.
    interleavable: bool,
    /// The paper's IPC of dual-path over stack, where its text gives it (§6.3; of LUD and QSort by way of DWS, which is
    /// 37.3 % and 12.8 % above the stack and 5.2 % and 4.9 % above dual-path).
    published: Option<f64>,
}

const KERNELS: [Studied; 12] = [
    Studied { name: "lu", paper: "LUD", interleavable: true, published: Some(1.305) },
    Studied { name: "quicksort", paper: "QSort", interleavable: true, published: Some(1.075) },
    Studied { name: "stencil3d", paper: "Stencil", interleavable: true, published: None },
    Studied { name: "raytrace", paper: "RAY", interleavable: true, published: None },
    Studied { name: "laplace3d", paper: "LPS", interleavable: true, published: None },
    Studied { name: "suffix", paper: "MUMpp", interleavable: true, published: Some(0.989) },
    Studied { name: "photon", paper: "MCML", interleavable: true, published: None },
    Studied { name: "bfs", paper: "BFS", interleavable: false, published: Some(1.0) },
    Studied { name: "pathfinder", paper: "PathFind", interleavable: false, published: Some(1.0) },
    Studied { name: "needle", paper: "NW", interleavable: false, published: Some(1.0) },
    Studied { name: "hotspot", paper: "HOTSPOT", interleavable: false, published: Some(1.0) },
    Studied { name: "backprop", paper: "BACKP", interleavable: false, published: Some(1.0) },
];

/// The paper's mean of the interleavable kernels, and with the constrained scheduler.
const PUBLISHED_MEAN: [f64; 2] = [1.149, 1.117];

/// What is compared, the stack first.
const UNITS: [(&str, Divergence, PathScheduler); 5] = [
    ("stack", Divergence::STACK, PathScheduler::Full),
    ("dual-path", Divergence::DUAL_PATH, PathScheduler::Full),
    ("constrained", Divergence::DUAL_PATH, PathScheduler::Constrained),
    ("arbiter", Divergence::ARBITER, PathScheduler::Full),
    ("path-table", Divergence::PATH_TABLE, PathScheduler::Full),
];

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
    rows: Vec<Row>,
    /// Mean IPC over the stack's, of interleavable and of other kernels, by unit.
    means: Vec<Mean>,
}

/// A kernel on a unit.
#[derive(Serialize, Clone)]
struct Row {
    kernel: &'static str,
    /// Its namesake in the paper.
    paper: &'static str,
    interleavable: bool,
    divergence: &'static str,
    cycles: u64,
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
    /// What its second level did.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_level: Option<SecondLevelVisits>,
    /// Levels of its stack that a warp had in use at most.
    most_levels: u64,
}

#[derive(Serialize)]
struct Mean {
    divergence: &'static str,
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
    fn new(kernel: &Studied, divergence: &'static str, s: &Summary, stack: &Summary) -> Row {
        let paper = divergence == "dual-path";
        Row {
            kernel: kernel.name,
            paper: kernel.paper,
            interleavable: kernel.interleavable,
            divergence,
            cycles: s.cycles,
            thread_instructions: s.thread_instructions,
            thread_ipc: s.thread_ipc,
            over_stack: s.thread_ipc / stack.thread_ipc,
            published: kernel.published.filter(|_| paper),
            avg_path: s.avg_path,
            simt_efficiency: s.simt_efficiency,
            idle_over_stack: idle_cycles(s) as f64 / idle_cycles(stack).max(1) as f64,
            idle: s.idle,
            cache: s.cache,
            second_level: s.second_level,
            most_levels: s.most_levels,
        }
    }
}

impl DualPath {
    pub fn run(self) -> Result<()> {
        let kernels = self.kernels()?;
        let shapes = self.shapes()?;
        for (_, kernel) in &kernels {
            Program::parse(kernel.elf)?.check(&shapes[0]).context(kernel.name)?;
        }
        let svg = self.svg.as_deref().map(ResultFile::create).transpose()?;
        self.docs.as_deref().map(|folder| page::check(folder, STUDY, &[""])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let summaries = all(&runs, &usual(self.core.shape.seed), kept.as_ref(), &interrupt)?;
        let row = |unit: usize, at: usize| {
            let summary = &summaries[unit * kernels.len() + at];
            Row::new(kernels[at].0, UNITS[unit].0, summary, &summaries[at])
        };
        let rows = (0..kernels.len()).flat_map(|at| (0..UNITS.len()).map(move |unit| (unit, at)));
        let rows: Vec<Row> = rows.map(|(unit, at)| row(unit, at)).collect();
        let report = Report {
            study: STUDY,
            lanes: shapes[0].lanes,
            warps: shapes[0].warps,
            core: shapes[0].options(),
            seed: self.core.shape.seed,
            means: UNITS.iter().map(|&(name, ..)| mean(name, &rows)).collect(),
            rows,
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
        let of = |shape: &Shape| kernels.iter().map(|&(_, kernel)| Run::new(kernel, shape.clone())).collect::<Vec<_>>();
        Ok(self.shapes()?.iter().flat_map(of).collect())
    }

    /// Those that are asked for, or all.
    fn kernels(&self) -> Result<Vec<(&'static Studied, &'static Kernel)>> {
        let kernels = chosen(&self.kernels, &KERNELS.map(|kernel| kernel.name))?;
        Ok(kernels.into_iter().map(|(place, kernel)| (&KERNELS[place], kernel)).collect())
    }

    /// A core for each unit.
    fn shapes(&self) -> Result<Vec<Shape>> {
        let shape = self.core.shape(Divergence::STACK, WARPS)?;
        let of = |&(_, divergence, path_scheduler): &(&str, Divergence, PathScheduler)| {
            let levels = shape.levels.filter(|_| divergence.capabilities().reconverges);
            let shape = Shape { path_scheduler, levels, ..shape.clone() }.with_divergence(divergence);
            shape.check()?;
            Ok(shape)
        };
        UNITS.iter().map(of).collect()
    }
}

fn mean(divergence: &'static str, rows: &[Row]) -> Mean {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.divergence == divergence).collect();
    let mean = |value: fn(&Row) -> f64, interleavable: bool| {
        let values: Vec<f64> =
            rows.iter().filter(|row| row.interleavable == interleavable).map(|row| value(row)).collect();
        if values.is_empty() { f64::NAN } else { values.iter().sum::<f64>() / values.len() as f64 }
    };
    Mean {
        divergence,
        interleavable: mean(|row| row.over_stack, true),
        others: mean(|row| row.over_stack, false),
        worst: rows.iter().map(|row| row.over_stack).fold(f64::INFINITY, f64::min),
        avg_path: mean(|row| row.avg_path, true),
        idle: mean(|row| row.idle_over_stack, true),
    }
}

/// The cells of a kernel's line: name, the paper's name, thread IPC of the stack, the others over it, the paper's
/// figure, AvgPath, SIMT efficiency and idle cycles of dual-path.
fn cells(rows: &[Row]) -> Vec<String> {
    let [stack, dual, ..] = rows else { unreachable!("a kernel has a row a unit") };
    let over = rows[1..].iter().map(|row| gain(row.over_stack));
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
    let kernels = report.rows.chunks(UNITS.len()).map(cells);
    let mut lines: Vec<Vec<String>> = std::iter::once(COLUMNS.map(String::from).to_vec()).chain(kernels).collect();
    let means = |name: &str, value: fn(&Mean) -> f64, paper: String, last: [String; 2]| {
        let [path, idle] = last;
        let over = report.means[1..].iter().map(|mean| gain(value(mean)));
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

fn table(report: &Report) -> String {
    format!("{}\n{}", report.core, plain(&lines(report), 2))
}

/// The page's text, with `{core}` and `{table}` filled in.
fn text(report: &Report) -> String {
    let core = format!("{} lanes × {} warps", report.lanes, report.warps);
    let text = include_str!("dual_path/page.md").replace("{core}", &core).replace("{options}", &report.core);
    text.replace("{table}", markdown(&lines(report)).trim_end())
}

fn chart(report: &Report) -> String {
    let group = |rows: &[Row]| Bars {
        heading: None,
        name: rows[0].kernel.into(),
        values: rows.iter().map(|row| Some(row.thread_ipc)).collect(),
        mark: Some(f64::from(report.lanes) * rows[0].simt_efficiency),
    };
    let title = format!("Thread instructions a cycle, {} lanes × {} warps", report.lanes, report.warps);
    let chart = Chart {
        title: &title,
        series: &UNITS.map(|(name, ..)| name),
        mark: "bound of the stack",
        most: report.lanes.into(),
        step: f64::from(report.lanes) / 8.0,
        groups: report.rows.chunks(UNITS.len()).map(group).collect(),
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_testbench::kernels::find;

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
        let rows = |kernel: &Studied, dual: &Summary| {
            UNITS.map(|(name, divergence, _)| {
                let summary = if divergence == Divergence::DUAL_PATH { dual } else { &stack };
                Row::new(kernel, name, summary, &stack)
            })
        };
        let rows: Vec<Row> = rows(&KERNELS[0], &dual).into_iter().chain(rows(&KERNELS[7], &stack)).collect();
        Report {
            study: STUDY,
            lanes: 32,
            warps: 16,
            core: "--lanes 32 --warps 16".into(),
            seed: 1,
            means: UNITS.iter().map(|&(name, ..)| mean(name, &rows)).collect(),
            rows,
        }
    }

    #[test]
    fn a_table_has_a_line_a_kernel_and_the_means() {
        let text = table(&example());
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words.len(), 2 + 2 + 3);
        assert_eq!(words[2].join(" "), "lu LUD 10.00 +10.0 % +10.0 % +0.0 % +0.0 % +30.5 % 1.250 50.0 % -25.0 %");
        assert_eq!(words[3].join(" "), "bfs BFS 10.00 +0.0 % +0.0 % +0.0 % +0.0 % +0.0 % 1.000 50.0 % +0.0 %");
        let mean = "interleavable +10.0 % +10.0 % +0.0 % +0.0 % +14.9 %, +11.7 % 1.250 -25.0 %";
        assert_eq!(words[4].join(" "), mean);
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

    #[test]
    fn every_kernel_of_the_study_is_there() {
        for kernel in &KERNELS {
            assert_eq!(find(kernel.name).unwrap().name, kernel.name);
        }
    }

    #[test]
    fn the_chart_has_a_bar_a_unit() {
        let picture = chart(&example());
        assert_eq!(picture.matches("<rect ").count(), 2 * UNITS.len() + 1 + UNITS.len());
    }
}

//! `heddle study simtight`: how busy the kernels of SIMTight's benchmarks keep 32 lanes, beside its published figures.

mod page;

use super::age;
use super::chart::{Bars, Chart};
use super::core::memory;
use super::draws::{Compared, Subject};
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page as files;
use super::runs::{Run, all, usual};
use super::table::plain;
use super::told;
use crate::interrupt::Interrupt;
use crate::output::ResultFile;
use crate::shape::ShapeArgs;
use anyhow::{Context, Result};
use clap::Args;
use heddle_simt::{Coalescing, Replay, Shape, Timing};
use heddle_testbench::kernels::Kernel;
use heddle_testbench::machine::{CacheVisits, IdleCycles, SecondLevelVisits, Summary};
use serde::Serialize;
use std::io::Write as _;
use std::path::PathBuf;

/// Thread instructions a cycle of 14 kernels on 32 lanes, beside SIMTight's.
///
/// The kernels do what those of SIMTight do, written anew. SIMTight is a RISC-V SIMT core of 32 lanes and 64 warps
/// before DRAM; its figures are read off published slides. No core does more than the bound: its lanes times the share
/// of them that is active when an instruction issues, which is the SIMT efficiency. Unless options choose the core,
/// kernels run on two: before memory on the chip, and with as many warps as SIMTight before memory that answers late.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study simtight                                 all kernels on 32 lanes and 32 warps, and before late memory
  heddle study simtight vecadd gcd --warps 8            two of them on fewer warps
  heddle study simtight --json | jq '.rows[] | {kernel, variant, thread_ipc, gain}'
  heddle study simtight --svg ipc.svg                   a chart
  heddle study simtight --docs docs                     table and chart as a page",
    mut_arg("lanes", |arg| arg.help("Threads of a warp: 1, 2, 4 … 64 [default: 32]")),
    mut_arg("warps", |arg| arg.help("Warps of the core: 1, 2, 4 … 64 [default: 32]")),
    mut_arg("coalescing", |arg| arg.help("Which lanes of an access go together [default: full]")),
    mut_arg("replay", |arg| arg.help("What becomes of those that do not [default: serialise]")),
    mut_arg("scratchpad", |arg| arg.help("Bytes of scratchpad [default: 64K]")),
    mut_arg("memory", |arg| arg.help("Bytes of memory; unless given, enough for the largest inputs")),
)]
pub struct Simtight {
    /// Some of the kernels
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Print one JSON object with an array `rows` instead of a table; there are no draws
    #[arg(long)]
    json: bool,
    /// Write a chart
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Write studies/simtight.md and studies/simtight.svg into this folder, too, of the usual core
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels", "svg"])]
    docs: Option<PathBuf>,
}

/// Each kernel and SIMTight's thread instructions a cycle, of 32, read off slides of its authors.
const PUBLISHED: [(&str, u32); 14] = [
    ("vecadd", 30),
    ("histogram", 31),
    ("reduce", 31),
    ("scan", 30),
    ("transpose", 31),
    ("matvec", 29),
    ("matmul", 31),
    ("bitonic_small", 26),
    ("bitonic_large", 25),
    ("spmv", 5),
    ("blocked_stencil", 24),
    ("striped_stencil", 30),
    ("gcd", 4),
    ("motion", 27),
];

const STUDY: &str = "simtight";
/// SIMTight's lanes.
const LANES: u32 = 32;
const WARPS: u32 = 32;
/// As much as SIMTight has.
const SCRATCHPAD: u32 = 64 << 10;

/// The variant of the second core, with as many warps as SIMTight before memory that answers late, and enough loads and
/// requests under way to wait for it.
const LATE: &str = "late-memory";
const LATE_WARPS: u32 = 64;
const LATE_LOADS: u32 = 64;
const LATE_REQUESTS: u32 = 16;
const LATENCY: u32 = 60;

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    divergence: &'static str,
    /// The options that choose the core.
    core: String,
    /// Those of the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<String>,
    seed: u64,
    /// Of the first core, then of the second, if there is one.
    rows: Vec<Row>,
}

impl Report {
    /// Of each core.
    fn cores(&self) -> (&[Row], &[Row]) {
        self.rows.split_at(self.rows.iter().take_while(|row| row.of.variant != LATE).count())
    }
}

/// A kernel's figures.
#[derive(Serialize, Clone)]
struct Row {
    #[serde(flatten)]
    of: Subject,
    /// With SIMTight's.
    #[serde(flatten)]
    compared: Compared,
    cycles: u64,
    launches: u32,
    /// Of a launch; all launches of a kernel have as many.
    threads: u64,
    /// Of the core.
    core_threads: u32,
    thread_instructions: u64,
    warp_instructions: u64,
    warp_ipc: f64,
    /// Active lanes an issued instruction, of all lanes.
    simt_efficiency: f64,
    /// The lanes times that.
    bound: f64,
    /// The thread instructions a cycle, of the bound.
    share_of_bound: f64,
    /// SIMTight's thread instructions a cycle.
    simtight_ipc: u32,
    idle: IdleCycles,
    /// What the data cache did.
    cache: Option<CacheVisits>,
    /// What its second level did.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_level: Option<SecondLevelVisits>,
    /// Why most of the cycles without an issue had none; nothing if there are none.
    idle_cause: Option<&'static str>,
}

impl Row {
    fn new(variant: &str, kernel: &'static str, published: u32, shape: &Shape, s: &Summary) -> Row {
        let divergence = shape.divergence.name();
        Row {
            of: Subject { study: STUDY, kernel: Some(kernel), set: None, variant: variant.into(), divergence },
            compared: Compared::once(s.thread_ipc, Some(s.thread_ipc / f64::from(published))),
            cycles: s.cycles,
            launches: s.launches,
            threads: s.threads / u64::from(s.launches),
            core_threads: shape.threads(),
            thread_instructions: s.thread_instructions,
            warp_instructions: s.warp_instructions,
            warp_ipc: s.warp_ipc,
            simt_efficiency: s.simt_efficiency,
            bound: f64::from(shape.lanes) * s.simt_efficiency,
            // Of instructions a cycle, an issue is the most.
            share_of_bound: s.warp_ipc,
            simtight_ipc: published,
            idle: s.idle,
            cache: s.cache,
            second_level: s.second_level,
            idle_cause: main_cause(&s.idle).map(|(name, _)| name),
        }
    }

    fn kernel(&self) -> &'static str {
        self.of.kernel.expect("a row is of one")
    }

    /// Ours, of SIMTight's.
    fn ratio(&self) -> f64 {
        self.compared.gain.expect("there is a figure of SIMTight's")
    }

    /// The main cause of idle cycles and its share of all cycles, as `memory 3.1 %`.
    fn idle_text(&self) -> String {
        let share = |cycles| 100.0 * cycles as f64 / self.cycles as f64;
        main_cause(&self.idle).map_or("-".into(), |(name, cycles)| format!("{name} {:.1} %", share(cycles)))
    }
}

fn main_cause(idle: &IdleCycles) -> Option<(&'static str, u64)> {
    let causes = [
        ("memory", idle.memory),
        ("scoreboard", idle.scoreboard),
        ("barrier", idle.barrier),
        ("divergence unit", idle.divergence),
        ("no instruction", idle.no_instruction),
    ];
    causes.into_iter().max_by_key(|(_, cycles)| *cycles).filter(|(_, cycles)| *cycles > 0)
}

impl Simtight {
    pub fn run(self) -> Result<()> {
        let kernels = self.kernels()?;
        let shapes = self.shapes()?;
        let shape = &shapes[0];
        for (shape, (kernel, _)) in shapes.iter().flat_map(|shape| kernels.iter().map(move |kernel| (shape, kernel))) {
            heddle_testbench::Program::parse(kernel.elf)?.check(shape).context(kernel.name)?;
        }
        let svg = self.svg.as_deref().map(ResultFile::create).transpose()?;
        self.docs.as_deref().map(|folder| files::check(folder, self.shape.given(), STUDY, &[""])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let summaries = all(&runs, &usual(self.shape.seed), kept.as_ref(), &interrupt)?;
        let variants = [shape.divergence.name(), LATE];
        let on = shapes.iter().zip(variants).zip(summaries.chunks(kernels.len()));
        let rows = on.flat_map(|((shape, variant), summaries)| {
            let row = move |((kernel, published), summary): (&(&'static Kernel, u32), &Summary)| {
                Row::new(variant, kernel.name, *published, shape, summary)
            };
            kernels.iter().zip(summaries).map(row)
        });
        let report = Report {
            study: STUDY,
            lanes: shape.lanes,
            warps: shape.warps,
            divergence: shape.divergence.name(),
            core: shape.options(),
            late: shapes.get(1).map(Shape::options),
            seed: self.shape.seed,
            rows: rows.collect(),
        };
        if let Some(mut file) = svg {
            file.writer().write_all(chart(&report).as_bytes())?;
            file.finish()?;
        }
        if let Some(folder) = &self.docs {
            files::write(
                folder,
                STUDY,
                &age::of_now(folder, &page::page(&report), &runs, &interrupt)?,
                &[("", chart(&report))],
            )?;
        }
        told(self.json, &report, table)
    }

    /// By core and kernel.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let (shapes, kernels) = (self.shapes()?, self.kernels()?);
        let run = |shape: &Shape, (kernel, _): &(&'static Kernel, u32)| Run::new(kernel, shape.clone());
        Ok(shapes.iter().flat_map(|shape| kernels.iter().map(|kernel| run(shape, kernel))).collect())
    }

    /// Those that are asked for, or all.
    fn kernels(&self) -> Result<Vec<(&'static Kernel, u32)>> {
        let kernels = chosen(&self.kernels, &PUBLISHED.map(|(name, _)| name))?;
        Ok(kernels.into_iter().map(|(place, kernel)| (kernel, PUBLISHED[place].1)).collect())
    }

    /// The core that suits, and a second unless options choose one.
    fn shapes(&self) -> Result<Vec<Shape>> {
        let first = self.shape.clone();
        let late = ShapeArgs {
            warps: Some(LATE_WARPS),
            loads: Some(LATE_LOADS),
            requests: Some(LATE_REQUESTS),
            memory_model: Some(Timing { latency: LATENCY, ..Timing::FASTEST }),
            ..first.clone()
        };
        let late = self.shape.asked().is_none().then_some(late);
        [first].into_iter().chain(late).map(Simtight::shape).collect()
    }

    /// All that coalesces does, and what does not follows while the warp runs on.
    fn shape(asked: ShapeArgs) -> Result<Shape> {
        let (lanes, warps) = (asked.lanes.unwrap_or(LANES), asked.warps.unwrap_or(WARPS));
        let args = ShapeArgs {
            lanes: Some(lanes),
            warps: Some(warps),
            memory: Some(memory(&asked, lanes, warps)),
            coalescing: asked.coalescing.or(Some(Coalescing::Full)),
            replay: asked.replay.or(Some(Replay::Serialise)),
            scratchpad: asked.scratchpad.or(Some(SCRATCHPAD)),
            ..asked
        };
        args.shape()
    }
}

fn table(report: &Report) -> String {
    let cores = [Some(&report.core), report.late.as_ref()].into_iter().flatten();
    let cores: String = cores.map(|core| format!("{}, {core}\n", report.divergence)).collect();
    cores + &plain(&page::lines(report), 1)
}

fn chart(report: &Report) -> String {
    let (first, late) = report.cores();
    let group = |(number, row): (usize, &Row)| {
        let ours = [Some(row), late.get(number)].into_iter().flatten().map(|row| Some(row.compared.thread_ipc));
        Bars {
            heading: None,
            name: row.kernel().into(),
            values: std::iter::once(Some(row.simtight_ipc.into())).chain(ours).collect(),
            mark: Some(row.bound),
        }
    };
    let title = format!("Thread instructions a cycle, {} lanes × {} warps", report.lanes, report.warps);
    let second = format!("Heddle (× {LATE_WARPS}, late memory)");
    let series = ["SIMTight (32 × 64)", "Heddle", &second];
    let chart = Chart {
        title: &title,
        series: if late.is_empty() { &series[..2] } else { &series },
        mark: "bound: lanes × SIMT efficiency",
        most: report.lanes.max(LANES).into(),
        step: f64::from(report.lanes.max(LANES)) / 8.0,
        groups: first.iter().enumerate().map(group).collect(),
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use heddle_testbench::kernels::find;

    /// One kernel that issues in every cycle and one that does not, which has few threads; both half as fast before late
    /// memory.
    pub(super) fn example() -> Report {
        let busy = Summary {
            launches: 2,
            threads: 2048,
            cycles: 1000,
            thread_instructions: 30_000,
            warp_instructions: 1000,
            thread_ipc: 30.0,
            warp_ipc: 1.0,
            simt_efficiency: 0.9375,
            ..Summary::default()
        };
        let idle = IdleCycles { memory: 50, scoreboard: 150, ..IdleCycles::default() };
        let waits = Summary { cycles: 2000, warp_ipc: 0.9, thread_ipc: 3.0, simt_efficiency: 0.1, idle, ..busy };
        let waits = Summary { launches: 1, threads: 256, ..waits };
        let late = |s: Summary| {
            let idle = IdleCycles { memory: s.cycles, ..IdleCycles::default() };
            Summary { cycles: 2 * s.cycles, thread_ipc: s.thread_ipc / 2.0, warp_ipc: s.warp_ipc / 2.0, idle, ..s }
        };
        let [first, second] = [Shape::new(32, 16), Shape::new(32, 64)];
        Report {
            study: STUDY,
            lanes: 32,
            warps: 16,
            divergence: "path-table",
            core: "--lanes 32 --warps 16 --coalescing full".into(),
            late: Some("--lanes 32 --warps 64 --coalescing full".into()),
            seed: 1,
            rows: vec![
                Row::new("path-table", "vecadd", 30, &first, &busy),
                Row::new("path-table", "gcd", 4, &first, &waits),
                Row::new(LATE, "vecadd", 30, &second, &late(busy)),
                Row::new(LATE, "gcd", 4, &second, &late(waits)),
            ],
        }
    }

    /// Without the second core.
    fn alone() -> Report {
        let mut report = example();
        report.rows.truncate(2);
        Report { late: None, ..report }
    }

    fn words(report: &Report) -> Vec<String> {
        table(report).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn a_table_has_a_line_a_kernel_and_more_columns_of_a_second_core() {
        let text = words(&alone());
        assert_eq!(text.len(), 4);
        assert_eq!(text[2], "vecadd 1024 1.0k 30.00 93.8 % 30.0 100.0 % - 30 1.00");
        assert_eq!(text[3], "gcd 256 2.0k 3.00 10.0 % 3.2 90.0 % scoreboard 7.5 % 4 0.75");
        let text = words(&example());
        assert_eq!(text.len(), 5);
        assert_eq!(text[1], "path-table, --lanes 32 --warps 64 --coalescing full");
        let late = "1.50 45.0 % memory 50.0 % 0.38";
        assert_eq!(text[4], format!("gcd 256 2.0k 3.00 10.0 % 3.2 90.0 % scoreboard 7.5 % 4 0.75 {late}"));
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(example()).unwrap();
        let row = &json["rows"][1];
        assert_eq!(row["kernel"], "gcd");
        assert_eq!(row["thread_ipc"], 3.0);
        assert_eq!(row["idle_cause"], "scoreboard");
        assert_eq!((row["threads"].as_u64(), row["core_threads"].as_u64()), (Some(256), Some(512)));
        assert_eq!((row["variant"].as_str(), json["rows"][3]["variant"].as_str()), (Some("path-table"), Some(LATE)));
        for field in ["cycles", "simt_efficiency", "bound", "share_of_bound", "simtight_ipc", "gain", "idle", "cache"] {
            assert!(row.get(field).is_some(), "{field}");
        }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        study: Simtight,
    }

    /// It is the usual core that the second is set beside.
    #[test]
    fn two_cores_run_unless_options_choose_one() {
        let runs = |line: &str| Line::parse_from(line.split_whitespace()).study.runs().unwrap();
        let both = runs("simtight --seed 2");
        assert_eq!(both.len(), 2 * PUBLISHED.len());
        let (first, late) = (&both[0], &both[PUBLISHED.len()]);
        assert_eq!((first.name.as_str(), late.name.as_str()), ("vecadd", "vecadd"));
        let timing = Some(Timing { latency: LATENCY, ..Timing::FASTEST });
        assert_eq!((first.shape.warps, first.shape.simulated_timing()), (WARPS, None));
        assert_eq!((late.shape.warps, late.shape.simulated_timing()), (LATE_WARPS, timing));
        let of = "simtight --warps 64 --loads 64 --requests 16 --memory-model latency=60";
        assert_eq!(runs(of)[0].shape, late.shape);
        assert_eq!(runs(of).len(), PUBLISHED.len());
    }

    #[test]
    fn every_kernel_of_the_study_is_there() {
        for (name, ipc) in PUBLISHED {
            assert_eq!(find(name).unwrap().name, name);
            assert!((1..=LANES).contains(&ipc));
        }
    }

    #[test]
    fn the_chart_has_a_bar_a_core_and_kernel() {
        let picture = chart(&alone());
        assert_eq!(picture.matches("<rect ").count(), 2 * 2 + 1 + 2);
        assert!(picture.contains("32 lanes × 16 warps"));
        let picture = chart(&example());
        assert_eq!(picture.matches("<rect ").count(), 2 * 3 + 1 + 3);
        assert!(picture.contains("late memory"));
    }
}

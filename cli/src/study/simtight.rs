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
use super::told;
use crate::interrupt::Interrupt;
use crate::output::ResultFile;
use crate::shape::ShapeArgs;
use anyhow::{Context, Result};
use clap::Args;
use heddle_simt::{Coalescing, Replay, Shape};
use heddle_testbench::kernels::Kernel;
use heddle_testbench::machine::{CacheVisits, IdleCycles, SecondLevelVisits, Summary};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

/// Thread instructions a cycle of 14 kernels on 32 lanes, beside SIMTight's.
///
/// The kernels do what those of SIMTight do, written anew. SIMTight is a RISC-V SIMT core of 32 lanes and 64 warps
/// before DRAM; its figures are read off published slides. No core does more than the bound: its lanes times the share
/// of them that is active when an instruction issues, which is the SIMT efficiency.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study simtight                                 all kernels on 32 lanes and 32 warps
  heddle study simtight vecadd gcd --warps 8            two of them on fewer warps
  heddle study simtight --json | jq '.rows[] | {kernel, thread_ipc, gain}'
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

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    divergence: &'static str,
    /// The options that choose the core.
    core: String,
    seed: u64,
    rows: Vec<Row>,
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
    fn new(kernel: &'static str, published: u32, shape: &Shape, s: &Summary) -> Row {
        let divergence = shape.divergence.name();
        Row {
            of: Subject { study: STUDY, kernel: Some(kernel), set: None, variant: divergence.into(), divergence },
            compared: Compared::once(s.thread_ipc, Some(s.thread_ipc / f64::from(published))),
            cycles: s.cycles,
            launches: s.launches,
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
        let shape = self.shape()?;
        for (kernel, _) in &kernels {
            heddle_testbench::Program::parse(kernel.elf)?.check(&shape).context(kernel.name)?;
        }
        let svg = self.svg.as_deref().map(ResultFile::create).transpose()?;
        self.docs.as_deref().map(|folder| files::check(folder, self.shape.given(), STUDY, &[""])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let summaries = all(&runs, &usual(self.shape.seed), kept.as_ref(), &interrupt)?;
        let row = |(&(kernel, published), summary): (&(&Kernel, u32), &Summary)| {
            Row::new(kernel.name, published, &shape, summary)
        };
        let report = Report {
            study: STUDY,
            lanes: shape.lanes,
            warps: shape.warps,
            divergence: shape.divergence.name(),
            core: shape.options(),
            seed: self.shape.seed,
            rows: kernels.iter().zip(&summaries).map(row).collect(),
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

    pub fn runs(&self) -> Result<Vec<Run>> {
        let shape = self.shape()?;
        Ok(self.kernels()?.into_iter().map(|(kernel, _)| Run::new(kernel, shape.clone())).collect())
    }

    /// Those that are asked for, or all.
    fn kernels(&self) -> Result<Vec<(&'static Kernel, u32)>> {
        let kernels = chosen(&self.kernels, &PUBLISHED.map(|(name, _)| name))?;
        Ok(kernels.into_iter().map(|(place, kernel)| (kernel, PUBLISHED[place].1)).collect())
    }

    /// The core that suits: all that coalesces does, and what does not follows while the warp runs on.
    fn shape(&self) -> Result<Shape> {
        let (lanes, warps) = (self.shape.lanes.unwrap_or(LANES), self.shape.warps.unwrap_or(WARPS));
        let args = ShapeArgs {
            lanes: Some(lanes),
            warps: Some(warps),
            memory: Some(memory(&self.shape, lanes, warps)),
            coalescing: self.shape.coalescing.or(Some(Coalescing::Full)),
            replay: self.shape.replay.or(Some(Replay::Serialise)),
            scratchpad: self.shape.scratchpad.or(Some(SCRATCHPAD)),
            ..self.shape.clone()
        };
        args.shape()
    }
}

fn table(report: &Report) -> String {
    let mut text = format!("{}, {}\n", report.divergence, report.core);
    let mut line = |cells: [&str; 9]| {
        let [kernel, cycles, ipc, efficiency, bound, share, published, ratio, idle] = cells;
        let _ = writeln!(
            text,
            "{kernel:<16}{cycles:>9}{ipc:>12}{efficiency:>12}{bound:>7}{share:>10}{published:>10}{ratio:>7}  {idle}"
        );
    };
    line(["kernel", "cycles", "thread IPC", "efficiency", "bound", "of bound", "SIMTight", "ratio", "idle, mainly"]);
    for row in &report.rows {
        line([
            row.kernel(),
            &row.cycles.to_string(),
            &format!("{:.2}", row.compared.thread_ipc),
            &format!("{:.1} %", 100.0 * row.simt_efficiency),
            &format!("{:.1}", row.bound),
            &format!("{:.1} %", 100.0 * row.share_of_bound),
            &row.simtight_ipc.to_string(),
            &format!("{:.2}", row.ratio()),
            &row.idle_text(),
        ]);
    }
    text
}

fn chart(report: &Report) -> String {
    let group = |row: &Row| Bars {
        heading: None,
        name: row.kernel().into(),
        values: vec![Some(row.simtight_ipc.into()), Some(row.compared.thread_ipc)],
        mark: Some(row.bound),
    };
    let title = format!("Thread instructions a cycle, {} lanes × {} warps", report.lanes, report.warps);
    let chart = Chart {
        title: &title,
        series: &["SIMTight (32 × 64)", "Heddle"],
        mark: "bound: lanes × SIMT efficiency",
        most: report.lanes.max(LANES).into(),
        step: f64::from(report.lanes.max(LANES)) / 8.0,
        groups: report.rows.iter().map(group).collect(),
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_testbench::kernels::find;

    /// One kernel that issues in every cycle and one that does not.
    pub(super) fn example() -> Report {
        let busy = Summary {
            launches: 1,
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
        let shape = Shape::new(32, 16);
        Report {
            study: STUDY,
            lanes: 32,
            warps: 16,
            divergence: "path-table",
            core: "--lanes 32 --warps 16 --coalescing full".into(),
            seed: 1,
            rows: vec![Row::new("vecadd", 30, &shape, &busy), Row::new("gcd", 4, &shape, &waits)],
        }
    }

    #[test]
    fn a_table_has_a_line_a_kernel() {
        let text = table(&example());
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words.len(), 4);
        assert_eq!(words[2], ["vecadd", "1000", "30.00", "93.8", "%", "30.0", "100.0", "%", "30", "1.00", "-"]);
        let gcd = ["gcd", "2000", "3.00", "10.0", "%", "3.2", "90.0", "%", "4", "0.75", "scoreboard", "7.5", "%"];
        assert_eq!(words[3], gcd);
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(example()).unwrap();
        let row = &json["rows"][1];
        assert_eq!(row["kernel"], "gcd");
        assert_eq!(row["thread_ipc"], 3.0);
        assert_eq!(row["idle_cause"], "scoreboard");
        for field in ["cycles", "simt_efficiency", "bound", "share_of_bound", "simtight_ipc", "gain", "idle", "cache"] {
            assert!(row.get(field).is_some(), "{field}");
        }
    }

    #[test]
    fn every_kernel_of_the_study_is_there() {
        for (name, ipc) in PUBLISHED {
            assert_eq!(find(name).unwrap().name, name);
            assert!((1..=LANES).contains(&ipc));
        }
    }

    #[test]
    fn the_chart_has_two_bars_a_kernel() {
        let picture = chart(&example());
        assert_eq!(picture.matches("<rect ").count(), 4 + 1 + 2);
        assert!(picture.contains("32 lanes × 16 warps"));
    }
}

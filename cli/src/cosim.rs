//! `heddle cosim`: simulation and Verilog, cycle by cycle.

use crate::output::{print, print_json};
use crate::report::si;
use crate::shape::ShapeArgs;
use crate::target::{TARGET, Target};
use crate::timed::Timed;
use crate::trace::Progress;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_sim::Simulation;
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::lockstep::Lockstep;
use heddle_sim::verilator::{Recipe, Verilator};
use heddle_testbench::machine::{Machine, MachineOptions, design};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Run a program on the Rust simulation and, in lock-step, on the generated Verilog in Verilator.
///
/// Every cycle, every output and every probe of the two is compared. The first difference ends the run with its signal,
/// cycle and both values, and leaves two waveforms of the cycles around it. Models are built when they are first needed
/// and kept in the user's cache folder (or $HEDDLE_CACHE).
#[derive(Args)]
#[command(after_help = "Examples:
  heddle cosim mandelbrot --lanes 16 --warps 4
  heddle cosim prog.elf --seed 7 --json")]
pub struct Cosim {
    /// A built-in kernel or an RV32IM ELF file
    #[arg(value_name = TARGET)]
    target: String,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Give up after so many cycles of a launch
    #[arg(long, default_value_t = 100_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_cycles: u64,
    /// Where waveforms of a difference go: PREFIX.rust.vcd and PREFIX.verilog.vcd
    #[arg(long, default_value = "difference", value_name = "PREFIX")]
    waves: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    kernel: String,
    lanes: u32,
    warps: u32,
    seed: u64,
    /// Cycles in which everything was compared.
    compared: u64,
    /// Outputs and probes that are compared in each.
    signals: usize,
    cycles_per_second: f64,
    /// To get the model: to build it, unless the cache has it.
    build_seconds: f64,
}

impl Cosim {
    pub fn run(self) -> Result<()> {
        let target = Target::find(&self.target)?;
        let shape = self.shape.shape()?;
        target.program.check(&shape).with_context(|| target.name.clone())?;
        let seed = self.shape.seed;
        let directory = Arc::new(Directory::new(&design(&shape)?));
        let signals = directory.outputs.len() + directory.probes.len();

        let started = Instant::now();
        let verilog = Verilator::new(&directory, seed, Recipe::default())?;
        let build_seconds = started.elapsed().as_secs_f64();
        let rust = Compiled::new(&directory, seed, OptLevel::default()).map_err(|error| anyhow::anyhow!("{error}"))?;
        let both = Lockstep::new(Box::new(rust), Box::new(verilog), seed);
        let options = MachineOptions { seed, max_cycles: self.max_cycles, ..MachineOptions::default() };
        let simulation = Simulation::over(Box::new(both), seed);
        let mut machine = Machine::over(&shape, simulation, target.program.clone(), &options)?;
        machine.watch(Box::new(Progress::new(shape.warps)));

        let mut timed = Timed::new(&mut machine);
        let result = target.drive(&mut timed, seed);
        let seconds = timed.time.as_secs_f64();
        let both = machine.simulation().engine().lockstep().context("the engine is two in lock-step")?;
        let compared = both.compared();
        if let Err(error) = result {
            let message = format!("{}: {error:#}", target.name);
            if heddle_sim::Engine::mismatch(both).is_none() {
                bail!("{message}");
            }
            let traced = Verilator::new(&directory, seed, Recipe { trace: true, ..Recipe::default() })?;
            let [left, right] = both.waveforms(&self.waves, traced)?;
            bail!("{message}; waveforms of the cycles around it: {}, {}", left.display(), right.display());
        }
        let report = Report {
            ok: true,
            kernel: target.name,
            lanes: shape.lanes,
            warps: shape.warps,
            seed,
            compared,
            signals,
            cycles_per_second: compared as f64 / seconds,
            build_seconds,
        };
        if self.json { print_json(&report) } else { print(&report.text()) }
    }
}

impl Report {
    fn text(&self) -> String {
        format!(
            "{} on {} lanes × {} warps: no difference in {} cycles, {} outputs and probes in each\n\
             {} cycles/s in lock-step; {:.1} s to get the model\n",
            self.kernel,
            self.lanes,
            self.warps,
            self.compared,
            self.signals,
            si(self.cycles_per_second),
            self.build_seconds
        )
    }
}

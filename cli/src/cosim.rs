//! `heddle cosim`: simulation and Verilog, cycle by cycle; or simulation and netlist, run by run.

mod netlist;

use crate::grid::GridArgs;
use crate::interrupt::{Interrupt, is_interruption};
use crate::limit::Limit;
use crate::output::{print, print_json};
use crate::progress::Progress;
use crate::report::si;
use crate::shape::ShapeArgs;
use crate::synth::board;
use crate::target::{TARGET, Target};
use crate::timed::Timed;
use anyhow::{Context, Error, Result, bail};
use clap::Args;
use heddle_check::synth::Board;
use heddle_sim::Simulation;
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::lockstep::Lockstep;
use heddle_sim::verilator::{Recipe, Verilator};
use heddle_testbench::machine::{Machine, MachineError, MachineOptions, design};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Run a program on the Rust simulation and, in lock-step, on the generated Verilog in Verilator.
///
/// Every cycle, every output and every probe of the two is compared. The first difference ends the run with its signal,
/// cycle and both values, and leaves two waveforms of the cycles around it. Models are built when they are first needed
/// and kept in the user's cache folder (or $HEDDLE_CACHE). Verilator is the one on the path, or $HEDDLE_VERILATOR.
///
/// With --netlist it is the netlist that Yosys maps the core and its host to, for a board
/// (docs/reference/synthesis.md): the program comes over the host's stream of bytes, and must have the same results and
/// take as many cycles as in the simulation.
///
/// Ctrl-C ends the comparison with the report so far; the exit code is then 130. A second Ctrl-C ends it at once. Long
/// runs show their progress if standard error is a terminal.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle cosim mandelbrot --lanes 16 --warps 4
  heddle cosim prog.elf --seed 7 --json
  heddle cosim prog.elf --blocks 100 --block-threads 32
  heddle cosim collatz --netlist ulx3s-85f --lanes 4 --warps 4 --memory 32K --program 8K --stack 512")]
pub struct Cosim {
    /// A built-in kernel, an RV32IMA ELF file, a source, or a folder with a host description
    #[arg(value_name = TARGET)]
    target: String,
    #[command(flatten)]
    grid: GridArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    limit: Limit,
    /// Where waveforms of a difference go: PREFIX.rust.vcd and PREFIX.verilog.vcd
    #[arg(long, default_value = "difference", value_name = "PREFIX")]
    waves: PathBuf,
    /// Instead of the Verilog, its netlist for this board
    #[arg(long, value_name = "BOARD", value_parser = board(), conflicts_with_all = ["waves", "max_cycles"])]
    netlist: Option<&'static Board>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    /// The program ended, and nothing differed.
    ok: bool,
    /// Ctrl-C ended it: nothing differed until then.
    interrupted: bool,
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
        let interrupt = Interrupt::catch()?;
        let target = Target::find(&self.target)?;
        let shape = self.shape.over(&target.core())?.shape()?;
        let mut target = self.grid.of(target, &shape)?;
        target.program.check(&shape).with_context(|| target.name.clone())?;
        let seed = self.shape.seed;
        if let Some(board) = self.netlist {
            return netlist::run(board, &target, &shape, seed, self.json, &interrupt);
        }
        target.end_at(&interrupt);
        let directory = Arc::new(Directory::new(&design(&shape)?));
        let signals = directory.outputs.len() + directory.probes.len();

        let started = Instant::now();
        let verilog = model(&directory, seed, Recipe::default(), &interrupt)?;
        let build_seconds = started.elapsed().as_secs_f64();
        let rust = Compiled::new(&directory, seed, OptLevel::default()).map_err(|error| anyhow::anyhow!("{error}"))?;
        let both = Lockstep::new(Box::new(rust), Box::new(verilog), seed);
        let options = MachineOptions { seed, max_cycles: self.limit.cycles(), ..MachineOptions::default() };
        let simulation = Simulation::over(Box::new(both), seed);
        let mut machine = Machine::over(&shape, simulation, target.program.clone(), &options)?;
        machine.watch(Box::new(Progress::new(&shape, self.limit.max_cycles, &interrupt)));

        let mut timed = Timed::new(&mut machine);
        let result = target.drive(&mut timed, seed).map_err(Error::from);
        let seconds = timed.time.as_secs_f64();
        machine.unwatch();
        let both = machine.simulation().engine().lockstep().context("the engine is two in lock-step")?;
        let compared = both.compared();
        let interrupted = result.as_ref().is_err_and(is_interruption);
        if let (Err(error), false) = (&result, interrupted) {
            let message = format!("{}: {error:#}", target.name);
            if heddle_sim::Engine::mismatch(both).is_none() {
                bail!("{message}");
            }
            let recipe = Recipe { trace: true, ..Recipe::default() };
            let traced = model(&directory, seed, recipe, &interrupt).with_context(|| message.clone())?;
            interrupt.release();
            let [left, right] = both.waveforms(&self.waves, traced)?;
            bail!("{message}; waveforms of the cycles around it: {}, {}", left.display(), right.display());
        }
        let report = Report {
            ok: !interrupted,
            interrupted,
            kernel: target.name.clone(),
            lanes: shape.lanes,
            warps: shape.warps,
            seed,
            compared,
            signals,
            cycles_per_second: if seconds > 0.0 { compared as f64 / seconds } else { 0.0 },
            build_seconds,
        };
        if self.json {
            print_json(&report)?
        } else {
            print(&report.text())?
        }
        result.map(|_| ()).context(target.name)
    }
}

/// Builds the model, unless it is in the cache. Ctrl-C ends the tools too, and what they leave is removed.
fn model(directory: &Arc<Directory>, seed: u64, recipe: Recipe, interrupt: &Interrupt) -> Result<Verilator> {
    match Verilator::new(directory, seed, recipe) {
        Err(_) if interrupt.poll().is_break() => Err(MachineError::Interrupted.into()),
        model => Ok(model?),
    }
}

impl Report {
    fn text(&self) -> String {
        format!(
            "{} on {} lanes × {} warps: {}no difference in {} cycles, {} outputs and probes in each\n\
             {} cycles/s in lock-step; {:.1} s to get the model\n",
            self.kernel,
            self.lanes,
            self.warps,
            if self.interrupted { "interrupted; " } else { "" },
            self.compared,
            self.signals,
            si(self.cycles_per_second),
            self.build_seconds
        )
    }
}

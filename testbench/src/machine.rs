//! The simulated core as a device: loads programs, launches them, says what happened.
//!
//! | file | what it has |
//! |---|---|
//! | `places.rs` | where things of the core are in its simulation |
//! | `memory.rs` | the machine as a device, its memory as bytes |
//! | `watch.rs` | what a launch tells while it runs; `pipeline.rs`: of each stage of the pipeline; `cycle.rs`: of where each cycle goes |
//! | `monitor.rs` | who looks at every cycle; `recorded.rs`: at many cycles at once |
//! | `end.rs` | what a launch came to; `error.rs`: in words |
//! | `whereabouts.rs` | where threads are if it does not end |
//! | `hang.rs` | whether it never will |

mod cycle;
mod end;
mod error;
mod hang;
mod memory;
mod monitor;
mod pipeline;
mod places;
mod recorded;
mod watch;
mod whereabouts;

use crate::grid::{Grid, GridError};
use crate::printed::Printed;
use crate::program::Program;
use crate::reconverge;
use crate::summary::Counted;
use heddle_hdl::Bits;
use heddle_hdl::netlist::Module;
use heddle_sim::Checks;
use heddle_sim::directory::Directory;
use heddle_sim::engine::{Engine, RunEnd, Why};
use heddle_sim::simulation::{EngineKind, Options, Simulation};
use heddle_simt::reconvergence::Reconvergence;
use heddle_simt::system::simulated;
use heddle_simt::{Shape, Timing};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use crate::summary::{
    CacheVisits, Compactions, Convergence, IdleCycles, Issues, MemoryLimits, PARTS, Prediction, SecondLevelVisits,
    Summary,
};
pub use cycle::{Cause, Chosen, Committed, Cycle, Found, Slot};
pub use error::{Fault, MachineError, ThreadExit};
pub use monitor::{Attach, Mismatch, Monitor, Stop};
pub use pipeline::{Fetched, IssuedFrom, Pipeline, Registers, Wait};
pub use watch::{Progress, TraceLine, Watch};

use places::Places;
use recorded::{Behind, Together};

/// How a machine is simulated.
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// The engine.
    pub engine: EngineKind,
    /// Of the random start values.
    pub seed: u64,
    /// Which of the design's properties to look at, as [`Options::checks`] says; unless asked for, assertions.
    pub checks: Checks,
    /// Who looks at every cycle. Needs registers and the core's probes; slow, unless all [record](Monitor::recorder)
    /// and there is neither a waveform nor a watch that wants each cycle.
    pub monitors: Vec<Attach>,
    /// A waveform, `.vcd` or `.fst`.
    pub wave: Option<PathBuf>,
    /// Cycles after which a launch is given up.
    pub max_cycles: u64,
    /// Cycles, at least one, after which it is looked at for the first time whether it never ends; then, when it has run
    /// twice as long.
    pub first_look: u64,
}

impl Default for MachineOptions {
    fn default() -> MachineOptions {
        let Options { engine, seed, wave, .. } = Options::default();
        let (max_cycles, first_look) = (100_000_000, hang::FIRST_LOOK);
        MachineOptions { engine, seed, checks: Checks::Assertions, monitors: Vec::new(), wave, max_cycles, first_look }
    }
}

/// A core with a program loaded.
pub struct Machine {
    shape: Shape,
    simulation: Simulation,
    places: Places,
    program: Program,
    max_cycles: u64,
    first_look: u64,
    seed: u64,
    counted: Counted,
    grid: Grid,
    /// [`MachineOptions::monitors`].
    attach: Vec<Attach>,
    /// What they made for the program that is loaded.
    monitors: Vec<Box<dyn Monitor>>,
    /// What they record in the present launch; none if one of them does not.
    together: Option<Together>,
    behind: Behind,
    watch: Option<Box<dyn Watch>>,
    printed: Printed,
    /// Cycles that take about [`BATCH_TIME`].
    batch: u64,
}

/// Wall time between two calls of [`Watch::progress`], about.
const BATCH_TIME: Duration = Duration::from_millis(70);

/// The netlist of a core with memories and work distributor; with a slave on the bus, if it has one.
pub fn design(shape: &Shape) -> Result<Arc<Module>, MachineError> {
    shape.check()?;
    Ok(simulated(shape).check()?.netlist)
}

impl Machine {
    /// A core of the shape with the program in memory.
    pub fn new(shape: &Shape, program: Program, options: &MachineOptions) -> Result<Machine, MachineError> {
        program.check(shape)?;
        Machine::with_design(shape, &design(shape)?, program, options)
    }

    /// A machine on a netlist that [`design`] made of the same shape.
    pub fn with_design(
        shape: &Shape,
        design: &Arc<Module>,
        program: Program,
        options: &MachineOptions,
    ) -> Result<Machine, MachineError> {
        let sim_options =
            Options { engine: options.engine, seed: options.seed, checks: options.checks, wave: options.wave.clone() };
        let recording = |directory: &Directory| recorded::wanted(directory, shape, &program, options);
        let simulation = Simulation::recording(design, &sim_options, recording)?;
        Machine::over(shape, simulation, program, options)
    }

    /// A machine on a simulation of [`design`]'s netlist of the same shape; of the options, `engine`, `checks` and
    /// `wave` do not count.
    pub fn over(
        shape: &Shape,
        simulation: Simulation,
        program: Program,
        options: &MachineOptions,
    ) -> Result<Machine, MachineError> {
        let places = Places::new(simulation.directory(), shape);
        let mut machine = Machine {
            shape: shape.clone(),
            simulation,
            places,
            program: program.clone(),
            max_cycles: options.max_cycles,
            first_look: options.first_look.max(1),
            seed: options.seed,
            counted: Counted::default(),
            grid: Grid::one_block(shape.threads()),
            attach: options.monitors.clone(),
            monitors: Vec::new(),
            together: None,
            behind: Behind::default(),
            printed: Printed::default(),
            watch: None,
            batch: 1,
        };
        machine.load(program)?;
        Ok(machine)
    }

    /// Starts over with another program: all state from the seed, memory from the program.
    pub fn load(&mut self, program: Program) -> Result<(), MachineError> {
        let memory = program.memory_image(&self.shape)?;
        let instructions = program.instruction_image(&self.shape)?;
        let side_table = match self.places.side_table {
            Some(at) => Some((at, reconverge::analyse(&program)?.side_image(&self.shape))),
            None => None,
        };
        self.counted = Counted::default();
        self.printed = Printed::default();
        let monitors = self.attach.iter().map(|attach| attach(self.simulation.directory(), &program, &self.shape));
        self.monitors = monitors.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        self.simulation.start(self.seed);
        let engine = self.simulation.engine();
        let words: Vec<u64> = instructions.into_iter().map(u64::from).collect();
        engine.memory_load(self.places.program, 0, &words);
        if let Some((at, image)) = side_table {
            for (pc, entry) in (0..).zip(image) {
                engine.memory_write(at, pc, &entry);
                if let Some(uniform) = self.places.uniform {
                    let bit = entry.bit(Reconvergence::uniform_bit(&self.shape));
                    engine.memory_write(uniform, pc, &Bits::from(bit));
                }
            }
        }
        let banks = self.places.banks.len();
        let words: Vec<u64> =
            memory.chunks_exact(4).map(|w| u64::from(u32::from_le_bytes([w[0], w[1], w[2], w[3]]))).collect();
        for (first, &bank) in self.places.banks.iter().enumerate() {
            let column: Vec<u64> = words.iter().skip(first).step_by(banks).copied().collect();
            engine.memory_load(bank, 0, &column);
        }
        engine.poke_u64(self.places.entry, u64::from(program.entry() / 4));
        engine.poke_u64(self.places.program_end, u64::from(program.program_end()));
        self.program = program;
        self.put_grid(Grid::one_block(self.shape.threads()));
        self.simulation.reset()?;
        Ok(())
    }

    /// Draws the times of a memory with jitter from this seed from now on, and up to this many cycles, instead of what
    /// the shape's [`Timing`] says; until another program is loaded. Before a launch.
    pub fn set_jitter(&mut self, seed: u32, jitter: u32) -> Result<(), MachineError> {
        let timing = self.shape.simulated_timing().unwrap_or(Timing::FASTEST);
        let asked = Timing { seed, jitter, ..timing };
        asked.check()?;
        match self.places.set_jitter {
            Some(places) if jitter <= timing.jitter => {
                let put = |engine: &mut dyn Engine, values: [u32; 3]| {
                    places.into_iter().zip(values).for_each(|(place, value)| engine.poke_u64(place, value.into()));
                };
                put(self.simulation.engine(), [1, seed, jitter]);
                self.simulation.step()?;
                put(self.simulation.engine(), [0; 3]);
            }
            None if jitter == 0 => {}
            _ => return Err(MachineError::Jitter { built: timing.jitter, jitter }),
        }
        Ok(())
    }

    /// Has `monitor` look at every cycle, too, until another program is loaded. Before a launch.
    pub fn attach(&mut self, monitor: Box<dyn Monitor>) {
        self.monitors.push(monitor);
    }

    /// Has what happens told to `watch` from now on.
    pub fn watch(&mut self, watch: Box<dyn Watch>) {
        self.watch = Some(watch);
    }

    /// Drops what [`Machine::watch`] was given.
    pub fn unwatch(&mut self) {
        self.watch = None;
    }

    /// Changes [`MachineOptions::max_cycles`].
    pub fn set_max_cycles(&mut self, max_cycles: u64) {
        self.max_cycles = max_cycles;
    }

    /// Changes [`MachineOptions::seed`] for the programs that are [loaded](Machine::load) from now on.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// The grid of the launches from now on; one block of all threads unless set.
    pub fn set_grid(&mut self, grid: Grid) -> Result<(), GridError> {
        grid.check(&self.shape, self.program.scratchpad())?;
        self.put_grid(grid);
        Ok(())
    }

    fn put_grid(&mut self, grid: Grid) {
        self.grid = grid;
        let engine = self.simulation.engine();
        engine.poke_u64(self.places.blocks, u64::from(grid.blocks));
        engine.poke_u64(self.places.block_threads, u64::from(grid.threads));
    }

    /// The simulation below.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// What threads printed since the program was loaded.
    pub fn printed(&self) -> &Printed {
        &self.printed
    }

    /// Thread instructions that [monitors](MachineOptions::monitors) compared since the program was loaded.
    pub fn compared(&self) -> u64 {
        self.monitors.iter().map(|monitor| monitor.compared()).sum()
    }

    /// What the core did so far.
    pub fn summary(&self) -> Summary {
        self.counted.summary
    }

    /// Completes the waveform.
    pub fn finish(self) -> Result<(), MachineError> {
        Ok(self.simulation.finish()?)
    }

    /// Runs a launch to its end.
    pub fn run(&mut self) -> Result<(), MachineError> {
        let before = self.simulation.engine().cycle();
        self.behind.forget();
        self.together = Together::of(&mut self.monitors);
        for monitor in &mut self.monitors {
            monitor.launch(self.simulation.engine(), self.grid, self.program.entry())?;
        }
        self.simulation.engine().poke_u64(self.places.launch, 1);
        self.simulation.step()?;
        self.simulation.engine().poke_u64(self.places.launch, 0);
        let result = self.run_to_stop();
        let cycles = self.simulation.engine().cycle() - before;
        self.count(cycles);
        // Cycles from here on are no part of the run: they tell where it stands.
        match result {
            Ok(Why::Limit) => Err(self.at_limit()),
            Err(MachineError::PartWaits { fault, .. }) => {
                Err(MachineError::PartWaits { fault, at: self.whereabouts() })
            }
            Err(error) => Err(error),
            Ok(_) => self.check_exit_codes(),
        }
    }

    /// Why the launch has come to its limit of cycles.
    fn at_limit(&mut self) -> MachineError {
        let watch = self.watch.take();
        let shown = self.simulation.engine().shows_registers();
        let looked = if shown { self.look_for_hang(self.max_cycles) } else { Ok((0, Why::Limit)) };
        let cycles = self.max_cycles;
        let error = match looked {
            Ok((_, Why::Stop)) => MachineError::Endless { cycles, at: "it ended soon after".into() },
            Ok(_) => MachineError::Endless { cycles, at: self.whereabouts() },
            Err(error) => error,
        };
        self.watch = watch;
        error
    }

    /// Batches of cycles with the watch between them; without a watch, one batch. Whether it ended, or came to its limit.
    fn run_to_stop(&mut self) -> Result<Why, MachineError> {
        let (mut cycles, mut look_at) = (0, self.first_look);
        loop {
            if cycles >= self.max_cycles {
                return Ok(Why::Limit);
            }
            // At the limit it is looked at in any case.
            let shown = self.simulation.engine().shows_registers();
            let looks = cycles >= look_at && shown && cycles + hang::MOST < self.max_cycles;
            if cycles >= look_at {
                look_at = if looks { 2 * cycles } else { self.max_cycles };
            }
            let (passed, why) = if looks {
                self.look_for_hang(cycles)?
            } else {
                let end = self.next_batch(cycles, look_at.min(self.max_cycles) - cycles)?;
                (end.cycles, end.why)
            };
            cycles += passed;
            if why == Why::Stop {
                self.simulation.engine().settle();
                return self.ended().map(|()| why);
            }
        }
    }

    /// Up to `most` cycles behind the first `cycles`; with a watch, which is told before, a batch.
    fn next_batch(&mut self, cycles: u64, most: u64) -> Result<RunEnd, MachineError> {
        let Some(mut watch) = self.watch.take() else { return self.run_cycles(most, None) };
        let end = match self.tell(watch.as_mut(), cycles) {
            ControlFlow::Continue(()) => self.run_batch(most, watch.as_mut()),
            ControlFlow::Break(()) => Err(MachineError::Interrupted),
        };
        self.watch = Some(watch);
        end
    }

    /// Up to `most` cycles, as many as take [`BATCH_TIME`].
    fn run_batch(&mut self, most: u64, watch: &mut dyn Watch) -> Result<RunEnd, MachineError> {
        let most = self.batch.min(most);
        let started = Instant::now();
        let end = self.run_cycles(most, Some(watch))?;
        // The end of a launch, or of its cycles, says little about time.
        if end.cycles == self.batch {
            let fits = BATCH_TIME.as_secs_f64() / started.elapsed().as_secs_f64().max(1e-9);
            self.batch = (self.batch as f64 * fits.min(8.0)).max(1.0) as u64;
        }
        Ok(end)
    }

    /// Up to `most` cycles, one by one if somebody looks at each and what is recorded of them does not do.
    fn run_cycles(&mut self, most: u64, watch: Option<&mut dyn Watch>) -> Result<RunEnd, MachineError> {
        let stop = Some(self.places.stopped);
        let mut trace = watch.filter(|watch| watch.wants_trace() || watch.wants_pipeline() || watch.wants_cycles());
        if trace.is_none() && self.monitors.is_empty() {
            return Ok(self.simulation.run(most, stop)?);
        }
        if trace.is_none()
            && !self.simulation.writes_wave()
            && self.together.is_some()
            && (!self.may_find() || self.keep_behind())
        {
            return self.run_recorded(most);
        }
        let mut end = RunEnd { cycles: 0, why: Why::Limit };
        while end.cycles < most && end.why == Why::Limit {
            if let Some(watch) = &mut trace {
                self.simulation.engine().settle();
                self.trace(*watch);
            }
            for monitor in &mut self.monitors {
                monitor.cycle(self.simulation.engine(), self.seed).map_err(MachineError::Commit)?;
                if monitor.quits() {
                    return Err(MachineError::Interrupted);
                }
            }
            end = RunEnd { cycles: end.cycles + 1, ..self.simulation.run(1, stop)? };
        }
        Ok(end)
    }
}

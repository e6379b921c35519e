//! The simulated core as a device: loads programs, launches them, says what happened.

mod monitor;

use crate::disassemble;
use crate::grid::{Grid, GridError, ThreadId, Whereabouts, thread_ranges};
use crate::kernels::{Device, DeviceError};
use crate::paths::{self, Parked, paths};
use crate::program::{Program, ProgramError};
use crate::reconverge::{self, ReconvergeError};
use crate::summary::Counted;
use heddle_hdl::netlist::Module;
use heddle_hdl::{Bits, Bundle, Errors};
use heddle_sim::compiled::Checks;
use heddle_sim::directory::Directory;
use heddle_sim::engine::{Engine, RunEnd, Why};
use heddle_sim::simulation::{EngineKind, Options, Simulation, SimulationError};
use heddle_simt::divergence::inspect::State;
use heddle_simt::isa::cause;
use heddle_simt::memory::banks;
use heddle_simt::metrics::Counts;
use heddle_simt::system::simulated;
use heddle_simt::{Shape, ShapeError, Timing};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

pub use crate::summary::{CacheVisits, Compactions, Convergence, IdleCycles, Prediction, Summary};
pub use monitor::{Attach, Mismatch, Monitor, Stop};

/// How a machine is simulated.
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// The engine.
    pub engine: EngineKind,
    /// Of the random start values.
    pub seed: u64,
    /// Which of the design's properties to look at, as [`Options::checks`] says; unless asked for, assertions.
    pub checks: Checks,
    /// Who looks at every cycle. Slow; needs registers and the core's probes.
    pub monitors: Vec<Attach>,
    /// A waveform, `.vcd` or `.fst`.
    pub wave: Option<PathBuf>,
    /// Cycles after which a launch is given up.
    pub max_cycles: u64,
}

impl Default for MachineOptions {
    fn default() -> MachineOptions {
        let Options { engine, seed, wave, .. } = Options::default();
        MachineOptions { engine, seed, checks: Checks::Assertions, monitors: Vec::new(), wave, max_cycles: 100_000_000 }
    }
}

/// Why a machine cannot be built, or a launch failed. One line each, but for a [`Mismatch`].
#[derive(Debug, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum MachineError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("{0}")]
    Design(#[from] Errors),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Reconverge(#[from] ReconvergeError),
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    #[error(transparent)]
    Grid(#[from] GridError),
    #[error("{0}")]
    Commit(Box<Mismatch>),
    #[error("byte {address:#x} of memory is {got:#04x} after the launch, should be {want:#04x}")]
    Memory { address: usize, got: u8, want: u8 },
    #[error("{0}")]
    Fault(Fault),
    #[error("{fault}; {at}")]
    PartWaits { fault: Fault, at: String },
    #[error("bus error: the memory on the bus refused the access to {address:#010x}")]
    Bus { address: u32 },
    #[error("{}", exit_codes(.first, *.count))]
    ExitCodes { first: Vec<ThreadExit>, count: u64 },
    #[error("the program did not end in {cycles} cycles; {at}")]
    Endless { cycles: u64, at: String },
    #[error("a jitter of {jitter} cycles: the memory that was built has {built} at most")]
    Jitter { built: u32, jitter: u32 },
    #[error("interrupted")]
    Interrupted,
    #[error("{start:#010x}..{end:#010x} is outside memory of {memory} bytes")]
    OutsideMemory { start: u32, end: u64, memory: u32 },
}

/// Why the core stopped.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{what} at {pc:#010x}{} in {} of block {block} (warp {warp}, lanes {mask:#x}){}",
    at(.symbol), thread_ranges(.threads), address_text(.address)
)]
#[allow(missing_docs)] // the message says what each field is
pub struct Fault {
    pub what: &'static str,
    pub pc: u32,
    pub symbol: Option<String>,
    pub block: u32,
    /// Their numbers in the block.
    pub threads: Vec<u32>,
    /// The warp slot.
    pub warp: u32,
    /// One bit a lane.
    pub mask: u64,
    /// Of a jump or memory access.
    pub address: Option<u32>,
}

fn at(symbol: &Option<String>) -> String {
    symbol.as_ref().map_or_else(String::new, |s| format!(" ({s})"))
}

fn address_text(address: &Option<u32>) -> String {
    address.map_or_else(String::new, |a| format!(": address {a:#010x}"))
}

/// A thread's exit code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct ThreadExit {
    /// The thread.
    #[serde(flatten)]
    pub thread: ThreadId,
    /// What it passed to exit.
    pub code: u32,
}

/// Of the first threads that failed, and of how many did.
fn exit_codes(first: &[ThreadExit], count: u64) -> String {
    let shown: Vec<String> = first.iter().take(8).map(|t| format!("{} with {}", t.thread, t.code as i32)).collect();
    let more = count.saturating_sub(shown.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("exit code not 0: {}{more}", shown.join(", "))
}

/// An instruction issued, for traces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceLine {
    /// Cycle of the simulation.
    pub cycle: u64,
    /// Warp.
    pub warp: u32,
    /// Byte address.
    pub pc: u32,
    /// One bit a lane, lane 0 lowest.
    pub mask: u64,
    /// It is the rest of an access to memory that issued before.
    pub replay: bool,
    /// The block of its threads.
    pub block: u32,
    /// In each lane, the number in the block of the thread that is active.
    pub threads: Vec<Option<u32>>,
    /// The instruction.
    pub text: String,
}

/// How far a launch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Number of the launch, from 1.
    pub launch: u32,
    /// Cycles of this launch.
    pub cycles: u64,
    /// Threads that have begun and not ended.
    pub live_threads: u32,
}

/// What a launch tells while it runs. The engine must show registers, which Verilator's does not.
pub trait Watch {
    /// Every instruction that issues, if [`Watch::wants_trace`].
    fn issued(&mut self, _line: TraceLine) {}
    /// Whether to look at every cycle: slow.
    fn wants_trace(&self) -> bool {
        false
    }
    /// Before each batch of cycles, some ten times a second. A break ends the launch with [`MachineError::Interrupted`].
    fn progress(&mut self, progress: Progress) -> ControlFlow<()>;
}

/// A core with a program loaded.
pub struct Machine {
    shape: Shape,
    simulation: Simulation,
    places: Places,
    program: Program,
    max_cycles: u64,
    seed: u64,
    counted: Counted,
    grid: Grid,
    /// [`MachineOptions::monitors`].
    attach: Vec<Attach>,
    /// What they made for the program that is loaded.
    monitors: Vec<Box<dyn Monitor>>,
    watch: Option<Box<dyn Watch>>,
    /// Cycles that take about [`BATCH_TIME`].
    batch: u64,
}

/// Where things are in the directory.
struct Places {
    launch: usize,
    entry: usize,
    blocks: usize,
    block_threads: usize,
    program_end: usize,
    stopped: usize,
    fault: [usize; 6],
    fault_homes: Option<usize>,
    /// Valid, seed and jitter, if memory has jitter.
    set_jitter: Option<[usize; 3]>,
    /// The memory with the number of each warp's block.
    block_of_slot: usize,
    program: usize,
    /// If the core has one.
    side_table: Option<usize>,
    /// The memories that [`banks`] names.
    banks: Vec<usize>,
    /// One of each a lane: the register with a bit a warp in which a thread failed, and the memory that says which.
    failed: Vec<(usize, usize)>,
}

/// Wall time between two calls of [`Watch::progress`], about.
const BATCH_TIME: Duration = Duration::from_millis(70);

/// Cycles in which a warp that is not stuck issues something.
const STUCK_AFTER: u64 = 1000;

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
        Machine::over(shape, Simulation::new(design, &sim_options)?, program, options)
    }

    /// A machine on a simulation of [`design`]'s netlist of the same shape; of the options, `engine`, `checks` and `wave` do
    /// not count.
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
            seed: options.seed,
            counted: Counted::default(),
            grid: Grid::one_block(shape.threads()),
            attach: options.monitors.clone(),
            monitors: Vec::new(),
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
        let monitors = self.attach.iter().map(|attach| attach(self.simulation.directory(), &program, &self.shape));
        self.monitors = monitors.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        self.simulation.start(self.seed);
        let engine = self.simulation.engine();
        let words: Vec<u64> = instructions.into_iter().map(u64::from).collect();
        engine.memory_load(self.places.program, 0, &words);
        if let Some((at, image)) = side_table {
            (0..).zip(image).for_each(|(pc, entry)| engine.memory_write(at, pc, &entry));
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

    /// Draws the times of a memory with jitter from this seed from now on, and up to this many cycles, instead of what the shape's
    /// [`Timing`] says; until another program is loaded. Before a launch.
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
        for monitor in &mut self.monitors {
            monitor.launch(self.simulation.engine(), self.grid, self.program.entry())?;
        }
        self.simulation.engine().poke_u64(self.places.launch, 1);
        self.simulation.step()?;
        self.simulation.engine().poke_u64(self.places.launch, 0);
        let result = self.run_to_stop();
        let cycles = self.simulation.engine().cycle() - before;
        self.count(cycles);
        result?;
        self.check_exit_codes()
    }

    /// Batches of cycles with the watch between them; without a watch, one batch.
    fn run_to_stop(&mut self) -> Result<(), MachineError> {
        let mut cycles = 0;
        loop {
            let left = self.max_cycles - cycles;
            let end = match self.watch.take() {
                None => self.run_cycles(left, None)?,
                Some(mut watch) => {
                    let progress = Progress {
                        launch: self.counted.summary.launches + 1,
                        cycles,
                        live_threads: self.live_threads(),
                    };
                    let end = match watch.progress(progress) {
                        ControlFlow::Continue(()) => self.run_batch(left, watch.as_mut()),
                        ControlFlow::Break(()) => Err(MachineError::Interrupted),
                    };
                    self.watch = Some(watch);
                    end?
                }
            };
            cycles += end.cycles;
            if end.why == Why::Stop {
                self.simulation.engine().settle();
                return self.ended();
            }
            if cycles >= self.max_cycles {
                self.simulation.engine().settle();
                return Err(MachineError::Endless { cycles, at: self.whereabouts() });
            }
        }
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

    /// Up to `most` cycles, one by one if somebody looks at each.
    fn run_cycles(&mut self, most: u64, watch: Option<&mut dyn Watch>) -> Result<RunEnd, MachineError> {
        let stop = Some(self.places.stopped);
        let mut trace = watch.filter(|watch| watch.wants_trace());
        if trace.is_none() && self.monitors.is_empty() {
            return Ok(self.simulation.run(most, stop)?);
        }
        let mut end = RunEnd { cycles: 0, why: Why::Limit };
        while end.cycles < most && end.why == Why::Limit {
            if let Some(watch) = &mut trace {
                self.simulation.engine().settle();
                self.trace(*watch);
            }
            for monitor in &mut self.monitors {
                monitor.cycle(self.simulation.engine(), self.seed).map_err(MachineError::Commit)?;
            }
            end = RunEnd { cycles: end.cycles + 1, ..self.simulation.run(1, stop)? };
        }
        Ok(end)
    }

    /// What a launch came to, from the settled cycle after its end.
    fn ended(&mut self) -> Result<(), MachineError> {
        let fault = self.fault();
        // The instruction-set simulator has no bus, and no instruction is to blame.
        if let Some((cause::BUS_ERROR, fault, _)) = &fault
            && self.shape.bus_width().is_some()
        {
            return Err(MachineError::Bus { address: fault.address.expect("a bus error has an address") });
        }
        let stop = fault.as_ref().map(|(code, Fault { pc, address, .. }, harts)| Stop {
            code: *code,
            pc: *pc,
            address: *address,
            harts,
        });
        for monitor in &mut self.monitors {
            let checked = monitor.end(self.simulation.engine(), self.seed, stop.as_ref());
            checked.map_err(MachineError::Commit)?;
        }
        match fault {
            Some((cause::BARRIER_OF_A_PART, fault, _)) => {
                Err(MachineError::PartWaits { fault, at: self.whereabouts() })
            }
            Some((_, fault, _)) => Err(MachineError::Fault(fault)),
            None => self.check_memory(),
        }
    }

    /// All of memory against what a monitor says.
    fn check_memory(&mut self) -> Result<(), MachineError> {
        let Some(want) = self.monitors.iter().find_map(|monitor| monitor.memory()) else { return Ok(()) };
        let (engine, banks) = (self.simulation.engine(), self.places.banks.len());
        let mut lines = vec![0; want.len() / 4 / banks];
        let mut differing = Vec::new();
        for (bank, &place) in self.places.banks.iter().enumerate() {
            engine.memory_save(place, 0, &mut lines);
            for (line, &got) in lines.iter().enumerate() {
                let address = 4 * (line * banks + bank);
                let (got, want) = ((got as u32).to_le_bytes(), &want[address..address + 4]);
                if got != *want {
                    let at = (0..4).find(|&at| got[at] != want[at]).expect("they differ");
                    differing.push((address + at, got[at], want[at]));
                    break;
                }
            }
        }
        match differing.into_iter().min() {
            Some((address, got, want)) => Err(MachineError::Memory { address, got, want }),
            None => Ok(()),
        }
    }

    /// Read from the state as it is, without computing anything.
    fn live_threads(&mut self) -> u32 {
        let (shape, engine) = (&self.shape, self.simulation.engine());
        paths::read(engine, "core", |state| shape.divergence.mechanism().live_threads(shape, state))
    }

    /// Of a settled cycle.
    fn trace(&mut self, watch: &mut dyn Watch) {
        if self.probe("issue_valid") == 0 {
            return;
        }
        let pc = self.probe("issue_pc") as u32 * 4;
        let (warp, mask) = (self.probe("issue_slot") as u32, self.probe("issue_mask"));
        let homes = self.shape.mixes().then(|| self.probe_bits("core.issue_homes"));
        let bits = self.shape.warp_bits();
        let home = |lane| homes.as_ref().map_or(warp, |homes| homes.extract(lane * bits, bits).low_u64() as u32);
        let members = (0..self.shape.lanes).map(|lane| (mask >> lane & 1 == 1).then(|| self.thread(home(lane), lane)));
        let members: Vec<Option<ThreadId>> = members.collect();
        let line = TraceLine {
            cycle: self.simulation.engine().cycle(),
            warp,
            pc,
            mask,
            replay: self.probe("issue_replay") != 0,
            block: members.iter().flatten().next().map_or(0, |member| member.block),
            threads: members.iter().map(|member| member.map(|member| member.thread)).collect(),
            text: self.program.word(pc).map_or_else(|| "?".into(), |word| disassemble(word, pc)),
        };
        watch.issued(line);
    }

    /// A probe of the core, low 64 bits.
    fn probe(&mut self, name: &str) -> u64 {
        self.probe_at(&format!("core.{name}"))
    }

    fn cache_counter(&mut self, name: &str) -> u64 {
        self.probe_at(&format!("memory.cache.metrics.{name}"))
    }

    fn probe_at(&mut self, path: &str) -> u64 {
        self.probe_bits(path).low_u64()
    }

    fn probe_bits(&mut self, path: &str) -> Bits {
        let engine = self.simulation.engine();
        let probe = engine.directory().probes.find(path);
        engine.probe(probe.expect("the system has this probe"))
    }

    /// The fault, the core's number of its cause, and the hardware threads that are at fault.
    fn fault(&mut self) -> Option<(u32, Fault, Vec<u32>)> {
        let [valid, code, slot, pc, mask, address] = self.places.fault.map(|o| self.simulation.engine().peek_u64(o));
        if valid == 0 {
            return None;
        }
        let code = code as u32;
        let has_address = !matches!(code, cause::ILLEGAL_INSTRUCTION | cause::BREAKPOINT | cause::UNKNOWN_ECALL)
            && !cause::is_of_divergence(code);
        let (pc, warp) = (pc as u32 * 4, slot as u32);
        let homes = self.places.fault_homes.map(|homes| self.simulation.engine().peek(homes));
        let bits = self.shape.warp_bits();
        let home = |lane| homes.as_ref().map_or(warp, |homes| homes.extract(lane * bits, bits).low_u64() as u32);
        let lanes = (0..self.shape.lanes).filter(|lane| mask >> lane & 1 == 1);
        let at: Vec<(u32, u32)> = lanes.map(|lane| (home(lane), lane)).collect();
        let threads: Vec<ThreadId> = at.iter().map(|&(warp, lane)| self.thread(warp, lane)).collect();
        let harts = at.iter().map(|(warp, lane)| warp * self.shape.lanes + lane).collect();
        let fault = Fault {
            what: cause::describe(code),
            pc,
            symbol: self.program.nearest_symbol(pc),
            block: threads.first().map_or(0, |thread| thread.block),
            threads: threads.iter().map(|thread| thread.thread).collect(),
            warp,
            mask,
            address: has_address.then_some(address as u32),
        };
        Some((code, fault, harts))
    }

    /// The thread of a lane of a warp slot.
    fn thread(&mut self, warp: u32, lane: u32) -> ThreadId {
        let block = self.simulation.engine().memory_read(self.places.block_of_slot, u64::from(warp)).low_u64() as u32;
        ThreadId { block, thread: warp % self.grid.slots(&self.shape) * self.shape.lanes + lane }
    }

    /// Where every live thread is: at the barrier where it waits; at the next instruction that its warp issues, in the cycles
    /// that follow; or where its path begins.
    fn whereabouts(&mut self) -> String {
        if self.shape.divergence.capabilities().mixes_warps {
            return self.whereabouts_of_blocks();
        }
        let (slots, sides) = (0..self.shape.warps, self.shape.sides());
        let engine = self.simulation.engine();
        let tables: Vec<_> = slots
            .flat_map(|warp| paths(engine, "core", &self.shape, warp).into_iter().map(move |path| (warp, path)))
            .collect();
        let runs: BTreeSet<u32> = tables.iter().filter(|(_, path)| !path.waits).map(|(warp, _)| *warp).collect();
        let mut next: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for _ in 0..STUCK_AFTER {
            self.simulation.engine().settle();
            if self.probe("issue_valid") == 1 {
                let (warp, pc) = (self.probe("issue_slot") as u32, self.probe("issue_pc") as u32 * 4);
                let (mask, seen) = (self.probe("issue_mask"), next.entry(warp).or_default());
                if seen.iter().all(|(_, other)| other & mask == 0) {
                    seen.push((pc, mask));
                }
            }
            if runs.iter().all(|warp| next.get(warp).is_some_and(|seen| seen.len() as u32 == sides))
                || self.simulation.step().is_err()
            {
                break;
            }
        }
        let mut places = Whereabouts::default();
        for (warp, path) in tables {
            for lane in (0..self.shape.lanes).filter(|lane| path.mask >> lane & 1 == 1) {
                let issues = next.get(&warp).and_then(|seen| seen.iter().find(|(_, mask)| mask >> lane & 1 == 1));
                let pc = issues.filter(|_| !path.waits).map_or(path.pc, |(pc, _)| *pc);
                places.add(self.thread(warp, lane), path.waits, pc);
            }
        }
        places.text(&self.program)
    }

    /// The same where blocks have a stack: those who wait, and those who run only after them.
    fn whereabouts_of_blocks(&mut self) -> String {
        let mut places = Whereabouts::default();
        for block in (0..self.shape.warps).step_by(self.grid.slots(&self.shape) as usize) {
            let (shape, slots) = (&self.shape, block..block + self.grid.slots(&self.shape));
            let read = |state: &State| shape.divergence.mechanism().parked(shape, state, slots);
            for Parked { thread, waits, pc } in paths::read(self.simulation.engine(), "core", read) {
                places.add(self.thread(thread / self.shape.lanes, thread % self.shape.lanes), waits, pc);
            }
        }
        places.text(&self.program)
    }

    /// Adds a launch's counters to the summary.
    fn count(&mut self, simulated: u64) {
        self.simulation.engine().settle();
        let counts = Counts::shape(&self.shape).map("", &mut |name, _| self.probe(&format!("metrics.{name}")));
        self.counted.add(&self.shape, self.grid, simulated, &counts);
        if self.shape.cache.is_some() {
            let visits = ["hits", "misses", "joined", "silent_hits", "silent_misses", "silent_joined"];
            let [hits, misses, joined, silent_hits, silent_misses, silent_joined] =
                visits.map(|name| self.cache_counter(name));
            let silent_hits = silent_hits + silent_joined;
            *self.counted.summary.cache.get_or_insert_default() +=
                CacheVisits { hits, misses, joined, silent_hits, silent_misses };
        }
        self.monitors.iter().for_each(|monitor| monitor.summarise(&mut self.counted.summary));
    }

    fn check_exit_codes(&mut self) -> Result<(), MachineError> {
        let count = self.probe("metrics.failures");
        if count == 0 {
            return Ok(());
        }
        let slots = self.grid.slots(&self.shape);
        let mut first = Vec::new();
        for (lane, &(failed, which)) in (0..).zip(&self.places.failed) {
            let engine = self.simulation.engine();
            let failed = engine.register(failed).low_u64();
            for warp in (0..self.shape.warps).filter(|warp| failed >> warp & 1 == 1) {
                let word = engine.memory_read(which, u64::from(warp));
                let [code, block] = [0, 32].map(|at| word.extract(at, 32).low_u64() as u32);
                let thread = ThreadId { block, thread: warp % slots * self.shape.lanes + lane };
                first.push(ThreadExit { thread, code });
            }
        }
        first.sort_unstable();
        Err(MachineError::ExitCodes { first, count })
    }

    fn range(&self, address: u32, length: usize) -> Result<Range<u32>, MachineError> {
        let end = u64::from(address) + length as u64;
        if end > u64::from(self.shape.memory) {
            return Err(MachineError::OutsideMemory { start: address, end, memory: self.shape.memory });
        }
        Ok(address..end as u32)
    }

    /// The bank and line of the word that holds a byte address.
    fn place(&self, address: u32) -> (usize, u64) {
        let (word, banks) = (address as usize / 4, &self.places.banks);
        (banks[word % banks.len()], (word / banks.len()) as u64)
    }
}

impl Places {
    fn new(directory: &Directory, shape: &Shape) -> Places {
        let input = |name: &str| directory.inputs.find(name).expect("the system has this input");
        let output = |name: &str| directory.outputs.find(name).expect("the system has this output");
        let register = |path: &str| directory.registers.find(path).expect("the system has this register");
        let memory = |path: &str| directory.memories.find(path).expect("the system has this memory");
        let fault = ["valid", "cause", "slot", "pc", "mask", "address"];
        Places {
            launch: input("launch"),
            entry: input("entry"),
            blocks: input("blocks"),
            block_threads: input("block_threads"),
            program_end: input("program_end"),
            stopped: output("stopped"),
            fault: fault.map(|field| output(&format!("fault_{field}"))),
            set_jitter: shape
                .simulated_timing()
                .filter(|timing| timing.jitter > 0)
                .map(|_| ["valid", "seed", "jitter"].map(|field| input(&format!("set_jitter_{field}")))),
            fault_homes: shape.mixes().then(|| output("fault_homes")),
            block_of_slot: memory("core.collect.block_of_slot"),
            program: memory("instructions"),
            side_table: shape.divergence.capabilities().reconverges.then(|| memory("side_table")),
            banks: banks(shape).iter().map(|path| memory(path)).collect(),
            failed: (0..shape.lanes)
                .map(|lane| format!("core.metrics.lane[{lane}]"))
                .map(|lane| (register(&format!("{lane}.failed")), memory(&format!("{lane}.first"))))
                .collect(),
        }
    }
}

/// The words that a range of byte addresses touches: the address of each, and which of its bytes.
fn words(range: Range<u32>) -> impl Iterator<Item = (u32, Range<usize>)> {
    let Range { start, end } = range;
    let parts = (start / 4..end.div_ceil(4)).map(|word| 4 * word);
    parts.map(move |word| (word, start.saturating_sub(word) as usize..(end - word).min(4) as usize))
}

impl Device for Machine {
    fn program(&self) -> &Program {
        &self.program
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        for (word, part) in words(self.range(address, bytes.len())?) {
            let (bank, line) = self.place(word);
            let engine = self.simulation.engine();
            let mut whole = [0; 4];
            if part.len() < 4 {
                whole = (engine.memory_read(bank, line).low_u64() as u32).to_le_bytes();
            }
            let from = (word + part.start as u32 - address) as usize;
            let length = part.len();
            whole[part].copy_from_slice(&bytes[from..from + length]);
            engine.memory_load(bank, line, &[u64::from(u32::from_le_bytes(whole))]);
        }
        self.monitors.iter_mut().try_for_each(|monitor| monitor.write(address, bytes))
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        let range = self.range(address, length)?;
        let mut bytes = Vec::with_capacity(length);
        for (word, part) in words(range) {
            let (bank, line) = self.place(word);
            let whole = self.simulation.engine().memory_read(bank, line).low_u64() as u32;
            bytes.extend_from_slice(&whole.to_le_bytes()[part]);
        }
        Ok(bytes)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        self.set_grid(grid)?;
        Ok(self.run()?)
    }
}

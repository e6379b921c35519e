//! The commit-stream check: what every thread does on the core, instruction by instruction, is what it does on the
//! instruction-set simulator ([`heddle_testbench::iss`]).
//!
//! The core's probes say when the warps of a block start: then the simulator's threads do, and blocks and their warps
//! must start in order. Their registers are those of the core before the launch, and then those that the thread before
//! left. The probes say in each cycle which threads' instruction took effect (at resolve, so in the order of issue; a
//! lane that must be replayed appears when it is served), what goes to memory, and what is written to registers. The
//! simulator follows: the moment a thread's instruction takes effect, it executes that thread's next instruction, so
//! that both see memory in the core's order, even if threads race. Then
//!
//! * the pc must be the same;
//! * the accesses that leave the core must have the addresses, operations, bytes and data of those lanes ([`port`]);
//! * the value of the register comes later, for loads and divisions out of order. It is joined by thread and register,
//!   which is unique as long as the scoreboard lets no second write be under way: that is checked, too;
//! * an `sc.w` succeeds in the core only where the simulator has the reservation; where it fails, somebody must have
//!   written in the word's set since the `lr.w` ([`reserved`]), and the simulator lets it fail, too;
//! * a vote or a shuffle is that of the lanes whose instruction takes effect together; no thread goes on behind a
//!   `sync` before those whom it names ([`sync`]);
//! * a counter's value is the core's, which the simulator takes over; so is the `count` of a convergence barrier, which
//!   must be at most the lanes;
//! * a thread goes on behind a barrier only when all live threads of its block are there, those of its warps that have
//!   not started yet, too;
//! * a fault must be the simulator's fault, an exit code the simulator's code;
//! * at the end every thread of every block must have started and ended, and every register been written.
//!
//! What is seen are rows of a [recording](heddle_sim::record), of many cycles at once or of one; [`follow`] goes through
//! them, cycle by cycle. Whether an `sc.w` succeeds is known when it goes to memory, after it took effect: rows are kept
//! until it is.
//!
//! It needs no knowledge of the divergence unit, so it holds for any. What it would miss: an instruction that is never
//! executed because a thread is forgotten for ever (the launch does not end), and whatever costs only time.

pub mod effects;
mod follow;
mod owed;
mod places;
mod port;
mod recent;
mod reserved;
mod sync;

use effects::Effect;
use follow::Follower;
use heddle_sim::directory::Directory;
use heddle_sim::{Engine, Recording, Records};
use heddle_simt::Shape;
use heddle_simt::isa::FaultCause;
use heddle_testbench::disassemble::disassemble;
use heddle_testbench::grid::{Grid, GridError};
use heddle_testbench::iss::{Cause, Iss};
use heddle_testbench::kernels::DeviceError;
use heddle_testbench::machine::{Monitor, Stop};
use heddle_testbench::paths::paths;
use heddle_testbench::program::{Program, ProgramError};
use std::sync::Arc;

pub use heddle_testbench::machine::Mismatch;

/// The check of a machine.
pub fn monitor(
    directory: &Directory,
    program: &Program,
    shape: &Shape,
) -> Result<Option<Box<dyn Monitor>>, ProgramError> {
    Ok(Some(Box::new(CommitCheck::new(directory, program, shape)?)))
}

/// How a thread on the core differs from the same thread on the simulator.
struct Difference {
    /// Number of the hardware thread.
    thread: u32,
    /// Byte address of the instruction.
    pc: u32,
    text: String,
}

/// An instruction of some threads takes effect.
#[derive(Clone, Copy)]
struct Committed<'a> {
    /// Byte address.
    pc: u32,
    /// By lane, the lowest first.
    threads: &'a [u32],
}

/// The check of one launch after another.
pub struct CommitCheck {
    follower: Follower,
    recording: Arc<Recording>,
    /// What was seen and not followed yet.
    records: Records,
    /// A difference, and the cycle that it is of.
    found: Option<(u64, Difference)>,
}

impl CommitCheck {
    /// For a machine with this program in its memory. The directory is that of [`heddle_simt::system`] or of a
    /// [`heddle_simt::core`](mod@heddle_simt::core) alone, with the core's probes; without them this panics.
    pub fn new(directory: &Directory, program: &Program, shape: &Shape) -> Result<CommitCheck, ProgramError> {
        let follower = Follower::new(directory, program, shape)?;
        let recording = follower.places.recording.clone();
        Ok(CommitCheck { follower, records: Records::new(&recording), recording, found: None })
    }

    /// The simulator.
    pub fn iss(&self) -> &Iss {
        &self.follower.iss
    }

    /// What threads did since this was called last, in order; from the first call on.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.follower.effects.replace(Vec::new()).unwrap_or_default()
    }

    /// What the host writes into the core's memory.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        use heddle_testbench::kernels::Device as _;
        self.follower.iss.write(address, bytes)
    }

    /// Thread instructions compared so far.
    pub fn compared(&self) -> u64 {
        self.follower.compared
    }

    /// Before a launch at this pc. Registers and the scratchpad hold what the core's do.
    pub fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        self.records.clear();
        self.found = None;
        self.follower.launch(engine, grid, entry)
    }

    /// Looks at a settled cycle, before its clock edge.
    pub fn cycle(&mut self, engine: &dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        self.records.note(engine, &self.recording);
        self.look(engine.cycle() + 1).map_err(|_| self.explain(engine, seed))
    }

    /// Follows what was recorded of cycles before `end`. At a difference, the cycle in which it shows.
    fn look(&mut self, end: u64) -> Result<(), u64> {
        self.follower.look(&mut self.records, end).map_err(|(cycle, difference)| {
            self.found = Some((cycle, difference));
            cycle.max(self.follower.known_since())
        })
    }

    /// After the last cycle of a launch that ended without a fault.
    pub fn end(&mut self, engine: &dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        let ended = self.follower.end(&self.records);
        ended.map_err(|difference| self.describe(difference, engine, seed, engine.cycle()))
    }

    /// After a launch that ended with a fault of these threads: the simulator must have the same. `address` is the
    /// first thread's. What other warps still did is not looked at.
    pub fn fault(
        &mut self,
        engine: &dyn Engine,
        seed: u64,
        cause: Option<FaultCause>,
        pc: u32,
        mut address: Option<u32>,
        threads: impl IntoIterator<Item = u32>,
    ) -> Result<(), Box<Mismatch>> {
        // What has not gone to memory does nothing any more.
        self.follower.fail_the_rest();
        self.look(engine.cycle()).map_err(|_| self.explain(engine, seed))?;
        let mut threads = threads.into_iter().peekable();
        if threads.peek().is_none() {
            let text = "the core stops because of no thread".into();
            return Err(self.describe(Difference { thread: 0, pc, text }, engine, seed, engine.cycle()));
        }
        for thread in threads {
            // The address is the first thread's.
            let checked = self.follower.faults(thread, cause, pc, address.take());
            checked.map_err(|difference| self.describe(difference, engine, seed, engine.cycle()))?;
        }
        Ok(())
    }

    /// What was found.
    fn explain(&mut self, engine: &dyn Engine, seed: u64) -> Box<Mismatch> {
        let (cycle, difference) = self.found.take().expect("a difference was found");
        self.describe(difference, engine, seed, cycle)
    }

    fn describe(&self, difference: Difference, engine: &dyn Engine, seed: u64, cycle: u64) -> Box<Mismatch> {
        let Difference { thread, pc, text } = difference;
        let Follower { program, shape, recent, places, iss, .. } = &self.follower;
        let line = |at: u32, mark: char| {
            let word = program.word(at)?;
            let symbol = program.nearest_symbol(at).map_or(String::new(), |s| format!("  ({s})"));
            Some(format!("{mark} {at:#010x}  {}{symbol}\n", disassemble(word, at)))
        };
        let mut listing = "last instructions of the thread:\n".to_string();
        listing.extend(recent.of(thread).filter_map(|at| line(at, ' ')));
        listing += "program:\n";
        let around = (-4i64..=4).filter_map(|k| u32::try_from(i64::from(pc) + 4 * k).ok());
        listing.extend(around.filter_map(|at| line(at, if at == pc { '>' } else { ' ' })));
        let (warp, lane) = (thread / shape.lanes, thread % shape.lanes);
        let instruction = program.word(pc).map_or("?".into(), |word| disassemble(word, pc));
        Box::new(Mismatch {
            cycle,
            seed,
            thread: iss.hart(thread).thread(),
            warp,
            lane,
            pc,
            what: format!("`{instruction}` at {pc:#010x}: {text}"),
            listing,
            paths: paths(engine, places.core, shape, warp),
        })
    }
}

impl Monitor for CommitCheck {
    fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        CommitCheck::launch(self, engine, grid, entry)
    }

    fn recorder(&mut self) -> Option<(&Arc<Recording>, &mut Records)> {
        Some((&self.recording, &mut self.records))
    }

    fn look(&mut self, end: u64) -> Result<(), u64> {
        CommitCheck::look(self, end)
    }

    fn explain(&mut self, engine: &dyn Engine, seed: u64) -> Box<Mismatch> {
        CommitCheck::explain(self, engine, seed)
    }

    fn end(&mut self, engine: &dyn Engine, seed: u64, stop: Option<&Stop>) -> Result<(), Box<Mismatch>> {
        match stop {
            // To the simulator, the instruction is right.
            Some(stop) if stop.cause.is_some_and(FaultCause::is_of_divergence) => Ok(()),
            Some(stop) => self.fault(engine, seed, stop.cause, stop.pc, stop.address, stop.harts.iter().copied()),
            None => CommitCheck::end(self, engine, seed),
        }
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        CommitCheck::write(self, address, bytes)
    }

    fn memory(&self) -> Option<&[u8]> {
        Some(self.iss().memory())
    }

    fn compared(&self) -> u64 {
        CommitCheck::compared(self)
    }
}

/// The core's cause for a simulator's, and the address of a jump or access.
pub fn core_code(simulator: Cause) -> (FaultCause, Option<u32>) {
    match simulator {
        Cause::MisalignedJump(address) => (FaultCause::FetchMisaligned, Some(address)),
        Cause::FetchOutside => (FaultCause::FetchOutOfRange, None),
        Cause::Illegal(_) => (FaultCause::IllegalInstruction, None),
        Cause::Breakpoint => (FaultCause::Breakpoint, None),
        Cause::Ecall(_) => (FaultCause::UnknownEcall, None),
        Cause::MisalignedLoad(address) => (FaultCause::LoadMisaligned, Some(address)),
        Cause::LoadOutside(address) => (FaultCause::LoadOutOfRange, Some(address)),
        Cause::MisalignedStore(address) => (FaultCause::StoreMisaligned, Some(address)),
        Cause::StoreOutside(address) => (FaultCause::StoreOutOfRange, Some(address)),
        Cause::StoreToProgram(address) => (FaultCause::StoreToProgram, Some(address)),
    }
}

/// The numbers of the bits that are 1.
fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        lowest
    })
}

//! The commit-stream check: what every thread does on the core, instruction by instruction, is what it does on the
//! instruction-set simulator ([`heddle_testbench::iss`]).
//!
//! The core's probes say when the warps of a block start: then the simulator's threads do, with the registers that they
//! have on the core, and blocks and their warps must start in order. They say in each cycle which threads' instruction
//! took effect (at resolve, so in the order of issue; a lane that must be replayed appears when it is served), what
//! goes to memory, and what is written to registers. The simulator follows: the moment a thread's instruction takes
//! effect, it executes that thread's next instruction, so that both see memory in the core's order, even if threads
//! race. Then
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
//! Whether an `sc.w` succeeds is known when it goes to memory, after it took effect. So what is seen is kept, cycle by
//! cycle ([`seen`]), and followed in order as soon as it is known.
//!
//! It needs no knowledge of the divergence unit, so it holds for any. What it would miss: an instruction that is never
//! executed because a thread is forgotten for ever (the launch does not end), and whatever costs only time.

mod places;
mod port;
mod reserved;
mod seen;
mod sync;

use heddle_sim::Engine;
use heddle_sim::directory::Directory;
use heddle_simt::Shape;
use heddle_simt::isa::{self, cause};
use heddle_simt::pipeline::timing::RESOLVE_TO_OUTCOME;
use heddle_testbench::disassemble::{REGISTERS, disassemble};
use heddle_testbench::grid::{Grid, GridError};
use heddle_testbench::iss::{Cause, Given, Iss};
use heddle_testbench::kernels::{Device, DeviceError};
use heddle_testbench::machine::{Monitor, Stop};
use heddle_testbench::paths::paths;
use heddle_testbench::program::{Program, ProgramError};
use places::Places;
use port::Ports;
use reserved::Reserved;
use seen::{Committed, Exits, Seen, Started, Written};
use std::collections::VecDeque;
use sync::Syncs;

pub use heddle_testbench::machine::Mismatch;

/// The check of a machine.
pub fn monitor(
    directory: &Directory,
    program: &Program,
    shape: &Shape,
) -> Result<Option<Box<dyn Monitor>>, ProgramError> {
    Ok(Some(Box::new(CommitCheck::new(directory, program, shape)?)))
}

/// Instructions of the thread that a [`Mismatch`] shows, before the one where it differs.
const RECENT: usize = 8;

/// How a thread on the core differs from the same thread on the simulator.
struct Difference {
    /// Number of the hardware thread.
    thread: u32,
    /// Byte address of the instruction.
    pc: u32,
    text: String,
}

/// A register write that has not come yet.
#[derive(Clone, Copy)]
struct Owed {
    pc: u32,
    value: Expected,
}

/// The value of a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Exactly(u32),
    /// Of a counter.
    Any,
    /// The threads of a convergence barrier.
    AtMost(u32),
}

/// The check of one launch after another.
pub struct CommitCheck {
    iss: Iss,
    shape: Shape,
    program: Program,
    places: Places,
    /// By thread and register.
    owed: Vec<Option<Owed>>,
    /// Threads that have ended, with the cycle in which the core says so, the pc and the exit code.
    ended: VecDeque<(u64, u32, u32, u32)>,
    /// The entry point of the launch; the block and the warp of it that start next.
    entry: u32,
    next: (u32, u32),
    ports: Ports,
    /// What was seen and not followed yet, the oldest first.
    seen: VecDeque<Seen>,
    reserved: Reserved,
    syncs: Syncs,
    /// Pcs of each thread's last instructions.
    recent: Vec<VecDeque<u32>>,
    compared: u64,
}

impl CommitCheck {
    /// For a machine with this program in its memory. The directory is that of [`heddle_simt::system`] or of a
    /// [`heddle_simt::core`](mod@heddle_simt::core) alone, with the core's probes; without them this panics.
    pub fn new(directory: &Directory, program: &Program, shape: &Shape) -> Result<CommitCheck, ProgramError> {
        let threads = shape.threads() as usize;
        Ok(CommitCheck {
            iss: Iss::new(program, shape)?,
            shape: shape.clone(),
            program: program.clone(),
            ports: Ports::new(shape, |name| Places::probe(directory, name)),
            places: Places::new(directory, shape),
            owed: vec![None; 32 * threads],
            ended: VecDeque::new(),
            entry: program.entry(),
            next: (0, 0),
            seen: VecDeque::new(),
            reserved: Reserved::new(directory, shape),
            syncs: Syncs::new(shape.threads(), shape.lanes),
            recent: vec![VecDeque::with_capacity(RECENT + 1); threads],
            compared: 0,
        })
    }

    /// The simulator.
    pub fn iss(&self) -> &Iss {
        &self.iss
    }

    /// The simulator, to change.
    pub fn iss_mut(&mut self) -> &mut Iss {
        &mut self.iss
    }

    /// What the host writes into the core's memory.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.iss.write(address, bytes)
    }

    /// Thread instructions compared so far.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// Before a launch at this pc. The scratchpad holds what the core's does.
    pub fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        self.iss.begin(grid)?;
        self.entry = entry;
        self.next = (0, 0);
        self.owed.fill(None);
        self.ports.clear();
        self.ended.clear();
        self.seen.clear();
        self.reserved.clear();
        self.syncs.clear();
        self.places.scratchpad(engine, self.iss.scratchpad_mut());
        self.recent.iter_mut().for_each(VecDeque::clear);
        Ok(())
    }

    /// Looks at a settled cycle, before its clock edge.
    pub fn cycle(&mut self, engine: &dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        self.reserved.cycle(engine);
        self.seen.push_back(Seen::of(engine, &self.places, &self.ports, &self.shape));
        self.follow(engine, seed)
    }

    /// Follows what was seen as far as it is known.
    fn follow(&mut self, engine: &dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        while let Some(seen) = self.seen.pop_front() {
            let commit = seen.commit.as_ref();
            if commit.is_some_and(|commit| self.is_conditional(commit.pc) && !self.reserved.is_decided(commit)) {
                self.seen.push_front(seen);
                return Ok(());
            }
            let followed = (self.ports.cycle(&seen))
                .and_then(|()| seen.written.iter().try_for_each(|written| self.writes(written)))
                .and_then(|()| self.exits(&seen.exits, seen.cycle))
                .and_then(|()| seen.started.iter().try_for_each(|started| self.starts(started)))
                .and_then(|()| seen.commit.iter().try_for_each(|commit| self.commits(commit, seen.cycle)));
            followed.map_err(|difference| self.explain(difference, engine, seed, seen.cycle))?;
        }
        Ok(())
    }

    /// Whether there is an `sc.w` at a pc.
    fn is_conditional(&self, pc: u32) -> bool {
        self.shape.reservations
            && self
                .program
                .word(pc)
                .is_some_and(|word| word & 0x707f == 0x202f && word >> 27 == isa::reservation::STORE_CONDITIONAL)
    }

    /// After the last cycle of a launch that ended without a fault.
    pub fn end(&mut self, engine: &dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        let check = || {
            if let Some(commit) = self.seen.front().and_then(|seen| seen.commit.as_ref()) {
                let text = "its sc.w never goes to memory".into();
                return Err(Difference { thread: commit.threads[0], pc: commit.pc, text });
            }
            let live = (0..self.shape.threads()).find(|&thread| self.iss.hart(thread).is_live());
            if let Some(thread) = live {
                let text = "the core says that it has ended".into();
                return Err(Difference { thread, pc: self.iss.hart(thread).pc(), text });
            }
            if let Some(at) = self.owed.iter().position(Option::is_some) {
                return Err(never_written(at, &self.owed));
            }
            let ((block, warp), blocks) = (self.next, self.iss.grid().blocks);
            match block < blocks {
                true => {
                    let text =
                        format!("the core says that all have ended; warp {warp} of block {block} has not started");
                    Err(Difference { thread: 0, pc: self.entry, text })
                }
                false => self.ports.end(),
            }
        };
        check().map_err(|difference| self.explain(difference, engine, seed, engine.cycle()))
    }

    /// After a launch that ended with a fault of these threads: the simulator must have the same. `address` is the
    /// first thread's. What other warps still did is not looked at.
    pub fn fault(
        &mut self,
        engine: &dyn Engine,
        seed: u64,
        code: u32,
        pc: u32,
        mut address: Option<u32>,
        threads: impl IntoIterator<Item = u32>,
    ) -> Result<(), Box<Mismatch>> {
        // What has not gone to memory does nothing any more.
        self.reserved.fail_the_rest();
        self.follow(engine, seed)?;
        let mut threads = threads.into_iter().peekable();
        if threads.peek().is_none() {
            let text = "the core stops because of no thread".into();
            return Err(self.explain(Difference { thread: 0, pc, text }, engine, seed, engine.cycle()));
        }
        for thread in threads {
            // The address is the first thread's.
            let checked = self.at(thread, pc).and_then(|()| self.faults(thread, code, pc, address.take()));
            checked.map_err(|difference| self.explain(difference, engine, seed, engine.cycle()))?;
        }
        Ok(())
    }

    /// The thread's next instruction must have this fault.
    fn faults(&mut self, thread: u32, code: u32, pc: u32, address: Option<u32>) -> Result<(), Difference> {
        let stepped = self.iss.step(thread);
        let (same, at) = match &stepped {
            Err(fault) => core_code(fault.cause),
            // The simulator blames the target.
            Ok(_) if self.iss.hart(thread).pc() >= self.shape.program => {
                (cause::FETCH_OUT_OF_RANGE, Some(self.iss.hart(thread).pc()))
            }
            Ok(_) => (u32::MAX, None),
        };
        let differs = |text: String| Err(Difference { thread, pc, text });
        if same != code {
            let says = stepped.map_or_else(|fault| fault.cause.to_string(), |_| "no fault".into());
            return differs(format!("the core stops with `{}`, should be: {says}", cause::describe(code)));
        }
        match (address, at) {
            (Some(got), Some(want)) if got != want => {
                differs(format!("the core stops because of address {got:#x}, should be {want:#x}"))
            }
            _ => Ok(()),
        }
    }

    /// A warp that starts: the next in order, in a slot where the simulator's threads have ended and nothing is to be
    /// written.
    fn starts(&mut self, started: &Started) -> Result<(), Difference> {
        let &Started { slot, pc, block, mask, ref registers } = started;
        let (lanes, grid) = (self.shape.lanes, self.iss.grid());
        let first = slot * lanes;
        let differs = |text: String| Err(Difference { thread: first, pc: 4 * pc, text });
        let warp = slot % grid.slots(&self.shape);
        let (next_block, next_warp) = self.next;
        if (block, warp) != self.next {
            return differs(format!("warp {warp} of block {block} starts, should be {next_warp} of {next_block}"));
        }
        if 4 * pc != self.entry {
            return differs(format!("a warp starts at {:#010x}, should be {:#010x}", 4 * pc, self.entry));
        }
        let want = match self.iss.start_warp(slot, block) {
            Ok(want) => want,
            Err(error) => return differs(error.to_string()),
        };
        if mask != want {
            return differs(format!("lanes {mask:#x} start, should be {want:#x}"));
        }
        self.next = if warp + 1 < grid.warps(&self.shape) { (block, warp + 1) } else { (block + 1, 0) };
        for thread in bits(mask).map(|lane| first + lane) {
            let owed = 32 * thread as usize..32 * (thread as usize + 1);
            if let Some(at) = owed.clone().find(|&at| self.owed[at].is_some()) {
                return Err(never_written(at, &self.owed));
            }
            let hart = self.iss.hart_mut(thread);
            hart.set_pc(self.entry);
            for (register, &value) in (1..).zip(&registers[(thread % lanes) as usize]) {
                hart.set_register(register, value);
            }
            self.recent[thread as usize].clear();
        }
        Ok(())
    }

    /// Exit codes against those of the instructions that ended threads.
    fn exits(&mut self, exits: &Exits, now: u64) -> Result<(), Difference> {
        let mut left = exits.clone();
        while let Some((_, thread, pc, want)) = self.ended.pop_front_if(|(due, ..)| *due <= now) {
            let Some(at) = left.iter().position(|&(ends, _)| ends == thread) else {
                return Err(Difference { thread, pc, text: "the core does not say that it ends".into() });
            };
            let (_, got) = left.swap_remove(at);
            if got != want {
                let text = format!("its exit code is {got} in the core, should be {want}");
                return Err(Difference { thread, pc, text });
            }
        }
        match left.first() {
            None => Ok(()),
            Some(&(thread, _)) => {
                let text = "the core says that it ends, without an exit".into();
                Err(Difference { thread, pc: self.last_pc(thread), text })
            }
        }
    }

    /// Register writes against those that are owed.
    fn writes(&mut self, written: &Written) -> Result<(), Difference> {
        let register = written.register;
        for &(thread, got) in &written.values {
            let Some(owed) = self.owed[32 * thread as usize + register as usize].take() else {
                let text = format!("{got:#x} is written to {}, which no instruction under way writes", name(register));
                return Err(Difference { thread, pc: self.last_pc(thread), text });
            };
            let want = match owed.value {
                Expected::Exactly(want) if want != got => format!("{want:#x}"),
                Expected::AtMost(most) if got > most => format!("at most {most}"),
                Expected::Exactly(_) => continue,
                Expected::Any | Expected::AtMost(_) => {
                    self.iss.hart_mut(thread).set_register(register, got);
                    continue;
                }
            };
            let text = format!("{} is {got:#x} in the core, should be {want}", name(register));
            return Err(Difference { thread, pc: owed.pc, text });
        }
        Ok(())
    }

    /// Instructions that take effect: the simulator executes them.
    fn commits(&mut self, commit: &Committed, now: u64) -> Result<(), Difference> {
        let pc = commit.pc;
        let mut accesses = Vec::new();
        // Of an `sc.w`, those that succeed come first: they may be why others fail.
        let conditional = self.is_conditional(pc);
        let decided = if conditional { self.reserved.take(commit) } else { vec![true; commit.threads.len()] };
        let mut order: Vec<(u32, bool)> = commit.threads.iter().copied().zip(decided).collect();
        order.sort_by_key(|&(_, succeeds)| !succeeds);
        commit.threads.iter().try_for_each(|&thread| self.at(thread, pc))?;
        let mut together = Vec::new();
        if self.shape.warp_primitives {
            let of_warp = self.program.word(pc).filter(|&word| isa::warp::has(word));
            let syncs = of_warp.is_some_and(isa::warp::syncs);
            let gone_on = self.syncs.go_on(&self.iss, commit, of_warp.is_some() && !syncs);
            let followed = gone_on.and_then(|()| if syncs { self.syncs.arrive(&self.iss, commit) } else { Ok(()) });
            followed.map_err(|(thread, text)| Difference { thread, pc, text })?;
            together = of_warp.map_or(together, |_| self.iss.together(&commit.threads));
        }
        for (thread, succeeds) in order {
            let differs = |text: String| Difference { thread, pc, text };
            let reserved = self.iss.reserved(thread);
            let step = self.iss.step_as(thread, Given { fails: !succeeds, together: &together });
            let step = step.map_err(|fault| differs(format!("takes effect, should be a fault: {}", fault.cause)))?;
            if let Some(access) = step.access.filter(|_| self.shape.reservations) {
                self.reserved.follow(thread, &step, access, reserved, succeeds).map_err(differs)?;
            }
            self.compared += 1;
            let recent = &mut self.recent[thread as usize];
            recent.push_back(pc);
            if recent.len() > RECENT {
                recent.pop_front();
            }
            if let Some((register, value)) = step.rd {
                let owed = &mut self.owed[32 * thread as usize + register as usize];
                if let Some(before) = owed {
                    let text = format!("{} is still to be written by {:#x}", name(register), before.pc);
                    return Err(differs(text));
                }
                let value = match step.counter {
                    false => Expected::Exactly(value),
                    true if step.word & 0x7f == isa::CUSTOM => {
                        let barriers = self.shape.convergence_barriers > 0;
                        Expected::AtMost(if barriers { self.shape.lanes } else { 0 })
                    }
                    true => Expected::Any,
                };
                *owed = Some(Owed { pc, value });
            }
            if let Some(code) = step.exit {
                self.ended.push_back((now + u64::from(RESOLVE_TO_OUTCOME), thread, pc, code));
            }
            accesses.extend(step.access.map(|access| (thread, access)));
        }
        self.reserved.scattered(&accesses);
        self.ports.expect(pc, accesses, now);
        Ok(())
    }

    /// The thread must be at this pc, and run.
    fn at(&self, thread: u32, pc: u32) -> Result<(), Difference> {
        let hart = self.iss.hart(thread);
        let text = match () {
            () if !hart.is_live() => "has ended, and executes an instruction".into(),
            () if hart.waits() => "waits at a barrier, and executes an instruction".into(),
            () if hart.pc() != pc => format!("is at {pc:#010x} in the core, should be at {:#010x}", hart.pc()),
            () => return Ok(()),
        };
        Err(Difference { thread, pc, text })
    }

    fn last_pc(&self, thread: u32) -> u32 {
        self.recent[thread as usize].back().copied().unwrap_or(0)
    }

    fn explain(&self, difference: Difference, engine: &dyn Engine, seed: u64, cycle: u64) -> Box<Mismatch> {
        let Difference { thread, pc, text } = difference;
        let line = |at: u32, mark: char| {
            let word = self.program.word(at)?;
            let symbol = self.program.nearest_symbol(at).map_or(String::new(), |s| format!("  ({s})"));
            Some(format!("{mark} {at:#010x}  {}{symbol}\n", disassemble(word, at)))
        };
        let mut listing = "last instructions of the thread:\n".to_string();
        listing.extend(self.recent[thread as usize].iter().filter_map(|&at| line(at, ' ')));
        listing += "program:\n";
        let around = (-4i64..=4).filter_map(|k| u32::try_from(i64::from(pc) + 4 * k).ok());
        listing.extend(around.filter_map(|at| line(at, if at == pc { '>' } else { ' ' })));
        let (warp, lane) = (thread / self.shape.lanes, thread % self.shape.lanes);
        let instruction = self.program.word(pc).map_or("?".into(), |word| disassemble(word, pc));
        Box::new(Mismatch {
            cycle,
            seed,
            thread: self.iss.hart(thread).thread(),
            warp,
            lane,
            pc,
            what: format!("`{instruction}` at {pc:#010x}: {text}"),
            listing,
            paths: paths(engine, self.places.core, &self.shape, warp),
        })
    }
}

impl Monitor for CommitCheck {
    fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        CommitCheck::launch(self, engine, grid, entry)
    }

    fn cycle(&mut self, engine: &mut dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        engine.settle();
        CommitCheck::cycle(self, engine, seed)
    }

    fn end(&mut self, engine: &dyn Engine, seed: u64, stop: Option<&Stop>) -> Result<(), Box<Mismatch>> {
        match stop {
            // To the simulator, the instruction is right.
            Some(stop) if cause::is_of_divergence(stop.code) => Ok(()),
            Some(stop) => self.fault(engine, seed, stop.code, stop.pc, stop.address, stop.harts.iter().copied()),
            None => CommitCheck::end(self, engine, seed),
        }
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        CommitCheck::write(self, address, bytes)
    }

    fn memory(&self) -> Option<&[u8]> {
        Some(self.iss.memory())
    }

    fn compared(&self) -> u64 {
        self.compared
    }
}

fn never_written(at: usize, owed: &[Option<Owed>]) -> Difference {
    let (thread, register) = (at as u32 / 32, (at % 32) as u8);
    let pc = owed[at].map_or(0, |owed| owed.pc);
    Difference { thread, pc, text: format!("{} is never written", name(register)) }
}

/// The core's code of a simulator's cause ([`cause`]), and the address of a jump or access.
pub fn core_code(simulator: Cause) -> (u32, Option<u32>) {
    match simulator {
        Cause::MisalignedJump(address) => (cause::FETCH_MISALIGNED, Some(address)),
        Cause::FetchOutside => (cause::FETCH_OUT_OF_RANGE, None),
        Cause::Illegal(_) => (cause::ILLEGAL_INSTRUCTION, None),
        Cause::Breakpoint => (cause::BREAKPOINT, None),
        Cause::Ecall(_) => (cause::UNKNOWN_ECALL, None),
        Cause::MisalignedLoad(address) => (cause::LOAD_MISALIGNED, Some(address)),
        Cause::LoadOutside(address) => (cause::LOAD_OUT_OF_RANGE, Some(address)),
        Cause::MisalignedStore(address) => (cause::STORE_MISALIGNED, Some(address)),
        Cause::StoreOutside(address) => (cause::STORE_OUT_OF_RANGE, Some(address)),
        Cause::StoreToProgram(address) => (cause::STORE_TO_PROGRAM, Some(address)),
    }
}

fn name(register: u8) -> &'static str {
    REGISTERS[register as usize]
}

/// The numbers of the bits that are 1.
fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros());
        mask &= mask.wrapping_sub(1);
        lowest
    })
}

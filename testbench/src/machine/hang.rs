//! Programs that never end, for certain: all of the simulation's state comes back.
//!
//! While a launch runs, core, memory and program are one machine without inputs. If its state is what it was some cycles
//! before, it goes on so for ever. That is looked for now and then, in a window of cycles, one by one: the state is kept
//! at cycles that are powers of two behind the start of the window, and each is compared with the last that was kept
//! (Brent's way to find a cycle).
//!
//! Left out of the state: what the core did so far ([`heddle_simt::metrics`]), and tables that only checks read; its
//! counters of cycles and instructions, unless an instruction that goes round reads one; and reservations, unless one is an
//! `sc.w`. So a program that spins for a time is no hang.
//!
//! What it does not find: programs whose threads wait for each other on a memory with jitter, which draws from a long
//! sequence; loops that go round in more than a window; engines that do not show registers. Those end at the limit of
//! cycles.

use super::whereabouts::Place;
use super::{Machine, MachineError};
use crate::grid::{ThreadId, Whereabouts, thread_ranges};
use crate::program::Program;
use heddle_hdl::Bits;
use heddle_sim::Engine;
use heddle_sim::directory::Directory;
use heddle_sim::engine::{RunEnd, Why};
use heddle_simt::csr;
use heddle_simt::isa::reservation;
use std::collections::{BTreeMap, BTreeSet};

/// [`MachineOptions::first_look`](super::MachineOptions::first_look), unless said otherwise: a look takes as long as
/// many times its cycles, which a program that is known to end in time should not pay for.
pub const FIRST_LOOK: u64 = 1 << 20;

/// Cycles that are looked at, but no more than the launch has run.
const WINDOW: u64 = 1 << 16;

/// Cycles that a look takes at most: a window, and once more round.
pub const MOST: u64 = 2 * WINDOW;

/// The first cycle of a window, but for its start, at which the state is kept: loops that are shorter are found then.
const FIRST_KEPT: u64 = 64;

/// What is compared: numbers in the directory.
pub struct Compared {
    registers: Vec<usize>,
    read_registers: Vec<usize>,
    /// The smaller ones first.
    memories: Vec<usize>,
}

impl Compared {
    pub fn new(directory: &Directory) -> Compared {
        let counts = |path: &str| {
            let name = path.rsplit('.').next().unwrap_or(path);
            let of_core =
                ["core.cycles", "core.instructions"].contains(&path) || path.starts_with("core.reservations.");
            of_core || path.contains("metrics.") || name.starts_with("ghost")
        };
        let of = |paths: &mut dyn Iterator<Item = &String>| -> Vec<usize> {
            paths.enumerate().filter(|(_, path)| !counts(path)).map(|(k, _)| k).collect()
        };
        let mut memories = of(&mut directory.memories.iter().map(|entry| &entry.path));
        memories.sort_by_key(|&k| directory.memory(k).address_width);
        Compared {
            registers: of(&mut directory.registers.iter().map(|entry| &entry.path)),
            read_registers: of(&mut directory.read_registers.iter().map(|entry| &entry.path)),
            memories,
        }
    }
}

/// The state at a cycle.
struct Kept {
    cycle: u64,
    registers: Vec<Bits>,
    read_registers: Vec<Bits>,
    memories: Vec<Words>,
}

/// A memory's words.
enum Words {
    /// Up to 64 bits each, read many at a time: main memory may be large.
    Narrow(Vec<u64>),
    Wide(Vec<Bits>),
}

/// Words that are read at a time.
const CHUNK: usize = 4096;

impl Words {
    fn of(engine: &dyn Engine, memory: usize) -> Words {
        let words = 1usize << engine.directory().memory(memory).address_width;
        if engine.directory().memories[memory].width > 64 {
            return Words::Wide((0..words as u64).map(|address| engine.memory_read(memory, address)).collect());
        }
        let mut kept = vec![0; words];
        engine.memory_save(memory, 0, &mut kept);
        Words::Narrow(kept)
    }

    fn are_now(&self, engine: &dyn Engine, memory: usize) -> bool {
        match self {
            Words::Wide(kept) => (0..).zip(kept).all(|(address, word)| engine.memory_read(memory, address) == *word),
            Words::Narrow(kept) => {
                let mut now = [0; CHUNK];
                kept.chunks(CHUNK).enumerate().all(|(chunk, kept)| {
                    let now = &mut now[..kept.len()];
                    engine.memory_save(memory, (chunk * CHUNK) as u64, now);
                    *now == *kept
                })
            }
        }
    }
}

impl Kept {
    fn of(engine: &dyn Engine, compared: &Compared, cycle: u64) -> Kept {
        Kept {
            cycle,
            registers: compared.registers.iter().map(|&k| engine.register(k)).collect(),
            read_registers: compared.read_registers.iter().map(|&k| engine.read_register(k)).collect(),
            memories: compared.memories.iter().map(|&k| Words::of(engine, k)).collect(),
        }
    }

    fn is_now(&self, engine: &dyn Engine, compared: &Compared) -> bool {
        let same = |kept: &[Bits], now: &[usize], read: &dyn Fn(usize) -> Bits| {
            kept.iter().zip(now).all(|(kept, &k)| *kept == read(k))
        };
        same(&self.registers, &compared.registers, &|k| engine.register(k))
            && same(&self.read_registers, &compared.read_registers, &|k| engine.read_register(k))
            && self.memories.iter().zip(&compared.memories).all(|(kept, &k)| kept.are_now(engine, k))
    }
}

impl Machine {
    /// Runs a window of cycles, after so many of the launch. An error if the program goes round in it without an end; how
    /// many cycles have passed, and whether the launch came to its end in them.
    pub(super) fn look_for_hang(&mut self, cycles: u64) -> Result<(u64, Why), MachineError> {
        let compared = Compared::new(self.simulation.directory());
        let mut kept = Kept::of(self.simulation.engine(), &compared, 0);
        let window = WINDOW.min(cycles);
        for cycle in 1..=window {
            let end = self.one_cycle()?;
            if end.why != Why::Limit {
                return Ok((cycle, end.why));
            }
            if kept.is_now(self.simulation.engine(), &compared) {
                return match self.name_hang(cycle - kept.cycle)? {
                    Some(who) => Err(MachineError::Hangs { cycles: cycles + cycle, who }),
                    None => Ok((2 * cycle - kept.cycle, Why::Limit)),
                };
            }
            if cycle.is_power_of_two() && cycle >= FIRST_KEPT {
                kept = Kept::of(self.simulation.engine(), &compared, cycle);
            }
        }
        Ok((window, Why::Limit))
    }

    /// A cycle, of which a watch is told as of any.
    fn one_cycle(&mut self) -> Result<RunEnd, MachineError> {
        let Some(mut watch) = self.watch.take() else { return self.run_cycles(1, None) };
        let end = self.run_cycles(1, Some(watch.as_mut()));
        self.watch = Some(watch);
        end
    }

    /// Who goes round and where, by what issues in the next `period` cycles, and where the others are. None if one of
    /// these asks for what was left out.
    fn name_hang(&mut self, period: u64) -> Result<Option<String>, MachineError> {
        let mut loops: BTreeMap<ThreadId, BTreeSet<u32>> = BTreeMap::new();
        for _ in 0..period {
            self.simulation.engine().settle();
            if let Some(issued) = self.issued() {
                if self.program.word(issued.pc).is_some_and(asks) {
                    return Ok(None);
                }
                for thread in issued.threads.into_iter().flatten() {
                    loops.entry(thread).or_default().insert(issued.pc);
                }
            }
            self.one_cycle()?;
        }
        let mut others = Whereabouts::default();
        for Place { thread, waits, pc } in self.places() {
            if !loops.contains_key(&thread) {
                others.add(thread, waits, pc);
            }
        }
        Ok(Some(text(&self.program, &loops, &others)))
    }
}

/// Whether an instruction reads a counter of cycles or instructions, or depends on a reservation.
fn asks(word: u32) -> bool {
    let is_of_csr = word & 0x7f == 0x73 && word >> 12 & 3 != 0;
    let reads_counter = is_of_csr && csr::find((word >> 20) as u16).is_some_and(|csr| csr.source.counts());
    reads_counter || reservation::stores(word)
}

/// Loops that are named.
const LOOPS: usize = 4;

/// Threads of a block that go round the same instructions together, loop after loop; then the others.
fn text(program: &Program, loops: &BTreeMap<ThreadId, BTreeSet<u32>>, others: &Whereabouts) -> String {
    let mut together: BTreeMap<(u32, &BTreeSet<u32>), Vec<u32>> = BTreeMap::new();
    for (thread, pcs) in loops {
        together.entry((thread.block, pcs)).or_default().push(thread.thread);
    }
    let one = |(&(block, pcs), threads): (&(u32, &BTreeSet<u32>), &Vec<u32>)| {
        let (first, last) = (pcs.first().copied().unwrap_or(0), pcs.last().copied().unwrap_or(0));
        let verb = if threads.len() == 1 { "goes" } else { "go" };
        let to = if first == last { String::new() } else { format!(" … {last:#010x}") };
        let place = format!("{first:#010x}{to}{}", program.named(first));
        format!("{} of block {block} {verb} round {place} for ever", thread_ranges(threads))
    };
    let mut parts: Vec<String> = together.iter().take(LOOPS).map(one).collect();
    if together.len() > LOOPS {
        parts.push(format!("so do threads in {} more loops", together.len() - LOOPS));
    }
    let others = others.suspended(program);
    if together.is_empty() {
        parts.push("no thread runs".into());
    }
    parts.extend((!others.is_empty()).then_some(others));
    parts.join("; ")
}

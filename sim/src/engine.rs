//! The one interface of everything that simulates a design: the interpreter, the compiled engine, Verilator.
//!
//! Things are addressed by their number in the [`Directory`]. A number that is out of range panics. Values that are
//! written are masked to their width.
//!
//! **A cycle.** Inputs are poked; [`Engine::settle`] computes all combinational values from the inputs and the state;
//! outputs, probes and signals can be read; [`Engine::step`] is the clock edge. Registers, read registers and memories
//! can be read at any time. After a poke, a step, a run or a write of state, outputs, probes and signals are
//! unspecified until the next `settle`. `step` and `run` settle by themselves first.
//!
//! **An edge**, from the settled values: properties are looked at if reset is off; then registers, read registers and
//! memories take their new values all at once; the cycle count goes up by one.
//!
//! Inputs are 0 and reset is off at the start. State starts as [`crate::init`] says.

use crate::directory::Directory;
use crate::lockstep::{Lockstep, Mismatch};
use crate::record::{Recording, Records};
use heddle_hdl::Bits;
use std::any::Any;
use std::sync::Arc;

/// The first failure of an assertion (or assumption).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// In [`Directory::properties`].
    pub property: usize,
    /// The number of edges before the one where it failed.
    pub cycle: u64,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunEnd {
    /// Clock edges in this run.
    pub cycles: u64,
    /// What ended it.
    pub why: Why,
}

/// Why a run ended, at or after its last edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The stop output was not 0 at the last edge.
    Stop,
    /// An assertion that had not failed before failed at the last edge ([`Engine::failures`]).
    Failure,
    /// `max_cycles` edges were made.
    Limit,
    /// Two engines in lock-step differ before the next edge ([`Engine::mismatch`]).
    Mismatch,
}

/// What an engine was in at some cycle, with room for it: [`Engine::save`].
#[derive(Default)]
#[cfg_attr(not(feature = "jit"), expect(dead_code, reason = "only the compiled engine saves"))]
pub struct Saved(pub(crate) Option<Box<dyn Any + Send>>);

/// Something that has a value in every cycle, by its number in the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// [`Engine::peek`].
    Output(usize),
    /// [`Engine::signal`].
    Signal(usize),
    /// [`Engine::register`].
    Register(usize),
    /// [`Engine::read_register`].
    ReadRegister(usize),
    /// [`Engine::probe`].
    Probe(usize),
}

/// A run of bits within one limb of [`Engine::image`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Which limb.
    pub limb: usize,
    /// Its lowest bit.
    pub shift: u32,
    /// How many bits; the limb has all of them.
    pub width: u32,
}

/// See the module's documentation.
pub trait Engine {
    /// What there is in the design, and the numbers of it.
    fn directory(&self) -> &Arc<Directory>;

    /// Back to the start: all state from `seed` or the initial contents, inputs 0, reset off, cycle 0, no failures and
    /// no cover hits.
    fn start(&mut self, seed: u64);

    /// Sets an input from the next `settle` on; it stays until it is set again. The value is masked to the input's
    /// width.
    fn poke(&mut self, input: usize, value: &Bits);

    /// The fast path for inputs of up to 64 bits; the upper limbs of a wider input become 0.
    fn poke_u64(&mut self, input: usize, value: u64);

    /// Turns reset on or off, from the next edge on.
    fn set_reset(&mut self, on: bool);

    /// Computes outputs, probes and signals from the inputs and the state.
    fn settle(&mut self);

    /// An output, as of the last `settle`.
    fn peek(&self, output: usize) -> Bits;

    /// The low 64 bits of an output.
    fn peek_u64(&self, output: usize) -> u64;

    /// A probe, as of the last `settle`.
    fn probe(&self, probe: usize) -> Bits;

    /// Appends the limbs of all outputs, then those of all probes: each as many as its width needs, the least
    /// significant first. For lock-step, which looks at all of them in every cycle.
    fn visible(&self, limbs: &mut Vec<u64>) {
        let directory = self.directory();
        let mut push = |value: Bits, width: u32| limbs.extend((0..width.div_ceil(64)).map(|k| value.limb(k as usize)));
        (directory.outputs.iter().enumerate()).for_each(|(k, output)| push(self.peek(k), output.width));
        (directory.probes.iter().enumerate()).for_each(|(k, probe)| push(self.probe(k), probe.width));
    }

    /// Asks for [`Engine::signal`] to work from the next `settle` on, which may make the engine slower. False: this
    /// engine cannot show signals.
    fn show_signals(&mut self) -> bool;

    /// A named signal; None if the engine does not keep it.
    fn signal(&self, signal: usize) -> Option<Bits>;

    /// Whether [`Engine::register`] and [`Engine::read_register`] can be asked.
    fn shows_registers(&self) -> bool {
        true
    }

    /// The present value of a register.
    fn register(&self, register: usize) -> Bits;

    /// The present value of the output register of a synchronous read port.
    fn read_register(&self, read_register: usize) -> Bits;

    /// Limbs in which every [`Item`] lies, as of the last `settle`, if signals are shown: for waveforms, which look at
    /// all of them in every cycle. None: this engine has no such thing, and is asked for one value after the other.
    fn image(&self) -> Option<&[u64]> {
        None
    }

    /// Where an item lies in the image, its lowest bits first; it stays there. Nothing if there is no image.
    fn pieces(&self, _: Item) -> Vec<Piece> {
        Vec::new()
    }

    /// A word of a memory; addresses beyond the memory panic.
    fn memory_read(&self, memory: usize, address: u64) -> Bits;

    /// Reads consecutive words from `address` on, the low 64 bits of each.
    fn memory_save(&self, memory: usize, address: u64, words: &mut [u64]) {
        for (address, word) in (address..).zip(words) {
            *word = self.memory_read(memory, address).low_u64();
        }
    }

    /// Where memories of words of 32 bits, word 0 of each side by side, then word 1 of each and so on, differ from these
    /// bytes: the first such byte, and what is there.
    fn memories_differ(&self, memories: &[usize], bytes: &[u8]) -> Option<(usize, u8)> {
        let mut words = (0..).flat_map(|address| memories.iter().map(move |&memory| (memory, address)));
        bytes.chunks(4).enumerate().find_map(|(word, want)| {
            let (memory, address) = words.next()?;
            let got = (self.memory_read(memory, address).low_u64() as u32).to_le_bytes();
            let at = want.iter().zip(got).position(|(&want, got)| want != got)?;
            Some((4 * word + at, got[at]))
        })
    }

    /// Host access: takes effect at once, and may come before the first cycle.
    fn memory_write(&mut self, memory: usize, address: u64, value: &Bits);

    /// Writes consecutive words from `address` on, the low 64 bits of each (the rest become 0).
    fn memory_load(&mut self, memory: usize, address: u64, words: &[u64]) {
        for (k, &word) in words.iter().enumerate() {
            self.memory_write(memory, address + k as u64, &Bits::from(word));
        }
    }

    /// One clock edge.
    fn step(&mut self);

    /// Makes clock edges with the inputs as they are until one of [`Why`]. The edge that ends the run is made and
    /// counted; if an assertion fails at an edge where the stop output is on, the reason is the failure.
    fn run(&mut self, max_cycles: u64, stop: Option<usize>) -> RunEnd {
        let mut cycles = 0;
        while cycles < max_cycles {
            let failed = self.failures().len();
            self.settle();
            let stopped = stop.is_some_and(|output| !self.peek(output).is_zero());
            self.step();
            cycles += 1;
            if self.failures().len() > failed {
                return RunEnd { cycles, why: Why::Failure };
            }
            if stopped {
                return RunEnd { cycles, why: Why::Stop };
            }
        }
        RunEnd { cycles, why: Why::Limit }
    }

    /// [`Engine::run`] that also appends the rows of a [recording](crate::record) of this design for every edge that it
    /// makes; where two engines in lock-step differ, those of that cycle, too.
    fn run_recording(
        &mut self,
        recording: &Arc<Recording>,
        max_cycles: u64,
        stop: Option<usize>,
        records: &mut Records,
    ) -> RunEnd {
        let mut end = RunEnd { cycles: 0, why: Why::Limit };
        while end.cycles < max_cycles && end.why == Why::Limit {
            self.settle();
            records.note(self, recording);
            let RunEnd { cycles, why } = self.run(1, stop);
            end = RunEnd { cycles: end.cycles + cycles, why };
        }
        end
    }

    /// Keeps inputs, state, failures and cover hits, for [`Engine::restore`]. False: this engine cannot.
    fn save(&self, _saved: &mut Saved) -> bool {
        false
    }

    /// Goes back to what this engine has saved. Panics if there is nothing, or another engine's.
    fn restore(&mut self, _saved: &Saved) {
        unreachable!("an engine that saves restores");
    }

    /// Edges since the start.
    fn cycle(&self) -> u64;

    /// Assertions and assumptions that failed since the start, each once, by the order of their first failure; those of
    /// one edge by their number.
    fn failures(&self) -> &[Failure];

    /// The number of edges at which a cover was 1; 0 for other properties.
    fn cover_hits(&self, property: usize) -> u64;

    /// How two engines in lock-step came to differ; None for all others.
    fn mismatch(&self) -> Option<&Mismatch> {
        None
    }

    /// This engine as two in lock-step; None for all others.
    fn lockstep(&mut self) -> Option<&mut Lockstep> {
        None
    }
}

//! Lock-step: two engines on one design, compared in every cycle.
//!
//! [`Lockstep`] is itself an [`Engine`]: whatever drives an engine can drive two at once. Each cycle, before the clock
//! edge, every output and every probe is compared. At the first difference it stops ([`Why::Mismatch`]) and says what
//! differs, and [`Lockstep::waveforms`] replays everything to leave a waveform of each side around that cycle.

#[cfg(all(feature = "verilator", feature = "wave"))]
mod waveforms;

use crate::directory::Directory;
use crate::engine::{Engine, Failure, RunEnd, Why};
use heddle_hdl::Bits;
use std::sync::Arc;

/// The first difference.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{path}` differs in cycle {cycle}: {left} in Rust, {right} in Verilog")]
pub struct Mismatch {
    /// Of the output or probe.
    pub path: String,
    /// The number of edges before the one where it shows.
    pub cycle: u64,
    /// In the first engine, the Rust simulation.
    pub left: Bits,
    /// In the second engine, the Verilog.
    pub right: Bits,
}

/// What was done to both engines, for the replay.
#[cfg_attr(not(all(feature = "verilator", feature = "wave")), expect(dead_code, reason = "only waveforms repeat them"))]
enum Action {
    Poke(usize, Bits),
    Reset(bool),
    Memory(usize, u64, Bits),
    Cycles(u64),
}

/// Two engines that are driven as one and compared in every cycle: every output and every probe, before the edge.
pub struct Lockstep {
    left: Box<dyn Engine>,
    right: Box<dyn Engine>,
    seed: u64,
    actions: Vec<Action>,
    mismatch: Option<Mismatch>,
    compared: u64,
    /// What each engine shows in the present cycle; kept, so that a cycle need not allocate for it.
    visible: [Vec<u64>; 2],
}

impl Lockstep {
    /// Both engines must be on one directory and at their start with `seed`.
    pub fn new(left: Box<dyn Engine>, right: Box<dyn Engine>, seed: u64) -> Lockstep {
        Lockstep { left, right, seed, actions: Vec::new(), mismatch: None, compared: 0, visible: Default::default() }
    }

    /// What `look` sees on the first engine and on the second.
    pub fn both<T>(&self, look: impl Fn(&dyn Engine) -> T) -> [T; 2] {
        [look(self.left.as_ref()), look(self.right.as_ref())]
    }

    /// Cycles compared since this was made.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    fn compare(&mut self) {
        self.left.settle();
        self.right.settle();
        self.compared += 1;
        let [left, right] = &mut self.visible;
        left.clear();
        right.clear();
        self.left.visible(left);
        self.right.visible(right);
        if left != right {
            self.mismatch = Some(self.difference());
        }
    }

    /// The first output or probe that differs; there is one.
    fn difference(&self) -> Mismatch {
        let directory = self.left.directory();
        let outputs =
            directory.outputs.iter().enumerate().map(|(k, o)| (&o.path, self.left.peek(k), self.right.peek(k)));
        let probes =
            directory.probes.iter().enumerate().map(|(k, p)| (&p.path, self.left.probe(k), self.right.probe(k)));
        let differs = outputs.chain(probes).find(|(_, left, right)| left != right);
        let (path, left, right) = differs.expect("what is visible differs");
        Mismatch { path: path.clone(), cycle: self.left.cycle(), left, right }
    }
}

impl Engine for Lockstep {
    fn directory(&self) -> &Arc<Directory> {
        self.left.directory()
    }

    fn start(&mut self, seed: u64) {
        self.left.start(seed);
        self.right.start(seed);
        self.seed = seed;
        self.actions.clear();
        self.mismatch = None;
    }

    fn poke(&mut self, input: usize, value: &Bits) {
        self.left.poke(input, value);
        self.right.poke(input, value);
        self.actions.push(Action::Poke(input, value.clone()));
    }

    fn poke_u64(&mut self, input: usize, value: u64) {
        self.poke(input, &Bits::from(value));
    }

    fn set_reset(&mut self, on: bool) {
        self.left.set_reset(on);
        self.right.set_reset(on);
        self.actions.push(Action::Reset(on));
    }

    fn settle(&mut self) {
        self.left.settle();
        self.right.settle();
    }

    fn peek(&self, output: usize) -> Bits {
        self.left.peek(output)
    }

    fn peek_u64(&self, output: usize) -> u64 {
        self.left.peek_u64(output)
    }

    fn probe(&self, probe: usize) -> Bits {
        self.left.probe(probe)
    }

    fn show_signals(&mut self) -> bool {
        self.left.show_signals()
    }

    fn signal(&self, signal: usize) -> Option<Bits> {
        self.left.signal(signal)
    }

    fn register(&self, register: usize) -> Bits {
        self.left.register(register)
    }

    fn read_register(&self, read_register: usize) -> Bits {
        self.left.read_register(read_register)
    }

    fn memory_read(&self, memory: usize, address: u64) -> Bits {
        self.left.memory_read(memory, address)
    }

    fn memory_write(&mut self, memory: usize, address: u64, value: &Bits) {
        self.left.memory_write(memory, address, value);
        self.right.memory_write(memory, address, value);
        self.actions.push(Action::Memory(memory, address, value.clone()));
    }

    fn step(&mut self) {
        self.run(1, None);
    }

    fn run(&mut self, max_cycles: u64, stop: Option<usize>) -> RunEnd {
        let mut end = RunEnd { cycles: 0, why: Why::Limit };
        while end.cycles < max_cycles && end.why == Why::Limit {
            self.compare();
            if self.mismatch.is_some() {
                end.why = Why::Mismatch;
                break;
            }
            let stopped = stop.is_some_and(|output| !self.left.peek(output).is_zero());
            let failed = self.left.failures().len();
            self.left.step();
            self.right.step();
            end.cycles += 1;
            if self.left.failures().len() > failed {
                end.why = Why::Failure;
            } else if stopped {
                end.why = Why::Stop;
            }
        }
        match self.actions.last_mut() {
            Some(Action::Cycles(before)) => *before += end.cycles,
            _ => self.actions.push(Action::Cycles(end.cycles)),
        }
        end
    }

    fn cycle(&self) -> u64 {
        self.left.cycle()
    }

    fn failures(&self) -> &[Failure] {
        self.left.failures()
    }

    fn cover_hits(&self, property: usize) -> u64 {
        self.left.cover_hits(property)
    }

    fn mismatch(&self) -> Option<&Mismatch> {
        self.mismatch.as_ref()
    }

    fn lockstep(&mut self) -> Option<&mut Lockstep> {
        Some(self)
    }
}

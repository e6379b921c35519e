//! Two engines on one design, side by side.

use super::design::random_bits;
use crate::directory::{Directory, Entry};
use crate::engine::Engine;
use fastrand::Rng;
use heddle_hdl::Bits;
use std::any::Any;
use std::fmt;

/// Random inputs, resets and host accesses: the same for every engine that is driven with the same seed.
pub struct Stimulus {
    rng: Rng,
}

impl Stimulus {
    /// The same seed gives the same inputs for the same design.
    pub fn new(seed: u64) -> Stimulus {
        Stimulus { rng: Rng::with_seed(seed ^ 0x5717_0000) }
    }

    /// Sets the inputs for the next cycle on all engines.
    pub fn drive(&mut self, engines: &mut [&mut dyn Engine]) {
        let directory = engines[0].directory().clone();
        for (k, input) in directory.inputs.iter().enumerate() {
            if self.rng.u32(0..4) > 0 {
                let value = random_bits(&mut self.rng, input.width);
                engines.iter_mut().for_each(|e| e.poke(k, &value));
            }
        }
        let reset = self.rng.u32(0..8) == 0;
        engines.iter_mut().for_each(|e| e.set_reset(reset));
        if !directory.memories.is_empty() && self.rng.u32(0..8) == 0 {
            let memory = self.rng.usize(0..directory.memories.len());
            let address = self.rng.u64(0..1 << directory.memory(memory).address_width);
            let value = random_bits(&mut self.rng, directory.memories[memory].width);
            engines.iter_mut().for_each(|e| e.memory_write(memory, address, &value));
        }
    }
}

/// The first difference between two engines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Edges before it.
    pub cycle: u64,
    /// Of the value that differs, from the top.
    pub path: String,
    /// In the first engine.
    pub left: String,
    /// In the second engine.
    pub right: String,
}

impl Mismatch {
    /// An engine that panicked.
    pub(super) fn of_panic(panic: Box<dyn Any + Send>) -> Mismatch {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let right = text.unwrap_or("no message").to_string();
        Mismatch { cycle: 0, path: "panic".into(), left: "none".into(), right }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in cycle {}: {} on the left, {} on the right", self.path, self.cycle, self.left, self.right)
    }
}

/// Starts both engines from `seed` and drives them for `cycles`, some of them as runs. Compared each cycle: outputs,
/// probes, signals that both keep, registers, read registers, all memory words, failures and covers. The design's
/// memories must be small.
pub fn compare(left: &mut dyn Engine, right: &mut dyn Engine, seed: u64, cycles: u64) -> Result<(), Box<Mismatch>> {
    left.start(seed);
    right.start(seed);
    left.show_signals();
    right.show_signals();
    let mut stimulus = Stimulus::new(seed);
    let mut rng = Rng::with_seed(seed);
    state(left, right)?;
    while left.cycle() < cycles {
        stimulus.drive(&mut [left, right]);
        left.settle();
        right.settle();
        settled(left, right)?;
        if rng.u32(0..6) == 0 {
            let stop = Some(rng.usize(0..left.directory().outputs.len())).filter(|_| rng.bool());
            let length = rng.u64(1..6);
            let (l, r) = (left.run(length, stop), right.run(length, stop));
            same(left, "end of the run", format!("{l:?}"), format!("{r:?}"))?;
        } else {
            left.step();
            right.step();
        }
        state(left, right)?;
    }
    Ok(())
}

type Outcome = Result<(), Box<Mismatch>>;

/// Combinational values.
fn settled(left: &dyn Engine, right: &dyn Engine) -> Outcome {
    let d = left.directory().clone();
    for (k, e) in d.signals.iter().enumerate() {
        if let (Some(l), Some(r)) = (left.signal(k), right.signal(k)) {
            value(left, e, l, r)?;
        }
    }
    for (k, e) in d.probes.iter().enumerate() {
        value(left, e, left.probe(k), right.probe(k))?;
    }
    for (k, e) in d.outputs.iter().enumerate() {
        value(left, e, left.peek(k), right.peek(k))?;
        value(left, e, left.peek_u64(k).into(), right.peek_u64(k).into())?;
    }
    Ok(())
}

/// State and what properties have counted.
pub(super) fn state(left: &dyn Engine, right: &dyn Engine) -> Outcome {
    let d: &Directory = left.directory();
    same(left, "cycle count", left.cycle().to_string(), right.cycle().to_string())?;
    for (k, e) in d.registers.iter().enumerate() {
        value(left, e, left.register(k), right.register(k))?;
    }
    for (k, e) in d.read_registers.iter().enumerate() {
        value(left, e, left.read_register(k), right.read_register(k))?;
    }
    for (k, e) in d.memories.iter().enumerate() {
        for address in 0..1 << d.memory(k).address_width {
            let (l, r) = (left.memory_read(k, address), right.memory_read(k, address));
            if l != r {
                same(left, &format!("{}[{address}]", e.path), l.to_string(), r.to_string())?;
            }
        }
    }
    for (k, e) in d.properties.iter().enumerate() {
        let failure = |engine: &dyn Engine| format!("{:?}", engine.failures().iter().find(|f| f.property == k));
        same(left, &e.path, failure(left), failure(right))?;
        let hits = |engine: &dyn Engine| format!("hit {} times", engine.cover_hits(k));
        same(left, &e.path, hits(left), hits(right))?;
    }
    let order = |engine: &dyn Engine| format!("{:?}", engine.failures());
    same(left, "failures", order(left), order(right))
}

fn value(engine: &dyn Engine, entry: &Entry, left: Bits, right: Bits) -> Outcome {
    if left == right { Ok(()) } else { same(engine, &entry.path, left.to_string(), right.to_string()) }
}

pub(super) fn same(engine: &dyn Engine, path: &str, left: String, right: String) -> Outcome {
    if left == right {
        return Ok(());
    }
    Err(Box::new(Mismatch { cycle: engine.cycle(), path: path.into(), left, right }))
}

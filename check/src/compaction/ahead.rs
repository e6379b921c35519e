//! What it takes that a warp ahead of its block stops at a control instruction where no thread could part: cycles without
//! an issue in which one is held at a branch or jump that the side table calls uniform, calls and returns left
//! out.

use heddle_sim::Engine;
use heddle_sim::directory::Directory;
use heddle_simt::Shape;
use std::collections::HashSet;

/// Watches the warps that are ahead. Where one is held is known when it has its outcome.
pub struct Ahead {
    /// One bit per slot each: the registers of its next instruction are there; that is a control instruction; the warp is
    /// ahead.
    held: [usize; 3],
    /// Where a warp that is ahead may pass some: a bit per slot, its next instruction is one of those; and by slot, how many
    /// it has passed, of how many.
    passes: Option<(usize, Vec<usize>, u32)>,
    /// 1 bit: an instruction has issued in the cycle before.
    issued: usize,
    /// Cycles that are left of the last issue's, where it takes several.
    turns: Option<usize>,
    now: u64,
    /// One bit per slot: it was held in the cycle before, which was not the last issue's.
    before: u64,
    /// For each slot, the cycles without an issue in which it was held, since its last outcome.
    idle: Vec<Vec<u64>>,
    /// Of those, the cycles that are counted already.
    counted: HashSet<u64>,
    pub cycles: u64,
}

impl Ahead {
    pub fn new(directory: &Directory, core: &str, shape: &Shape) -> Ahead {
        let register =
            |name: &str| directory.registers.find(&format!("{core}.{name}")).expect("a register of predictions");
        Ahead {
            held: ["issue.registers_ok", "issue.first_control", "divergence.ahead"].map(register),
            passes: shape.passes().then(|| {
                let passed = |slot| register(&format!("divergence.passed_{slot}"));
                (register("issue.first_passes"), (0..shape.warps).map(passed).collect(), shape.slack - 1)
            }),
            issued: register("issue.s5_reads"),
            turns: directory.registers.find(&format!("{core}.issue.turns_left")),
            now: 0,
            before: 0,
            idle: vec![Vec::new(); shape.warps as usize],
            counted: HashSet::new(),
            cycles: 0,
        }
    }

    /// Nothing is held at a launch.
    pub fn launch(&mut self) {
        self.before = 0;
        self.idle.iter_mut().for_each(Vec::clear);
        self.counted.clear();
    }

    /// In every cycle, before its outcome is told.
    pub fn cycle(&mut self, engine: &dyn Engine) {
        if !engine.register(self.issued).bit(0) {
            for slot in (0..self.idle.len()).filter(|slot| self.before >> slot & 1 == 1) {
                self.idle[slot].push(self.now);
            }
        }
        self.now += 1;
        let is_taken = self.turns.is_some_and(|turns| !engine.register(turns).is_zero());
        let goes = self.passes.as_ref().map_or(0, |(first, passed, most)| {
            let passed = passed.iter().map(|&register| engine.register(register).low_u64());
            let may = (0..).zip(passed).fold(0, |may, (slot, passed)| may | u64::from(passed < (*most).into()) << slot);
            may & engine.register(*first).low_u64()
        });
        let start = if is_taken { 0 } else { !goes };
        self.before = self.held.iter().fold(start, |held, &register| held & engine.register(register).low_u64());
    }

    /// A slot has an outcome: that of a uniform branch or jump, or another.
    pub fn outcome(&mut self, slot: usize, uniform: bool) {
        for cycle in self.idle[slot].drain(..).filter(|_| uniform) {
            self.cycles += u64::from(self.counted.insert(cycle));
        }
        if self.idle.iter().all(Vec::is_empty) {
            self.counted.clear();
        }
    }
}

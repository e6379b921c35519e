//! What it takes that a warp ahead of its block stops at a control instruction where no thread could part: cycles without
//! an issue in which one is held at a branch or jump that the side table calls uniform, calls and returns left
//! out.

use super::at;
use heddle_sim::directory::Directory;
use heddle_sim::{Channel, Seen};
use heddle_simt::Shape;
use std::collections::HashSet;

/// What is recorded while a warp is ahead: one bit per slot each, the registers of its next instruction are there; that is
/// a control instruction; the warp is ahead. Then the cycles that are left of the last issue's, where it takes several.
/// Where a warp that is ahead may pass some: one bit per slot, its next instruction is one of those; and by slot, how many
/// it has passed.
pub fn held(directory: &Directory, core: &str, shape: &Shape) -> Channel {
    let register = |name: &str| directory.registers.find(&format!("{core}.{name}")).map(Seen::Register);
    let there = |name: &str| register(name).expect("a register of predictions");
    let ahead = there("divergence.ahead");
    let mut values = vec![there("issue.registers_ok"), there("issue.first_control"), ahead];
    values.extend(register("issue.turns_left"));
    if shape.passes() {
        values.push(there("issue.first_passes"));
        values.extend((0..shape.warps).map(|slot| there(&format!("divergence.passed_{slot}"))));
    }
    Channel { guard: ahead, values }
}

/// Recorded of every cycle after one with an issue.
pub fn issued(directory: &Directory, core: &str) -> Channel {
    let issued = directory.registers.find(&format!("{core}.issue.s5_reads")).expect("a register of every core");
    Channel { guard: Seen::Register(issued), values: Vec::new() }
}

/// Watches the warps that are ahead. Where one is held is known when it has its outcome.
pub struct Ahead {
    /// Whether an issue takes several cycles.
    turns: bool,
    /// Where a warp that is ahead may pass some: how many.
    passes: Option<u64>,
    /// One bit per slot: it was held in the last cycle looked at, which was not the last issue's.
    before: u64,
    /// That cycle.
    last: u64,
    /// For each slot, the cycles without an issue in which it was held, since its last outcome.
    idle: Vec<Vec<u64>>,
    /// Of those, the cycles that are counted already.
    counted: HashSet<u64>,
    pub cycles: u64,
}

impl Ahead {
    pub fn new(directory: &Directory, core: &str, shape: &Shape) -> Ahead {
        Ahead {
            turns: directory.registers.find(&format!("{core}.issue.turns_left")).is_some(),
            passes: shape.passes().then(|| (shape.slack - 1).into()),
            before: 0,
            last: 0,
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

    /// The cycle that counts although there may be no row of it.
    pub fn next(&self) -> Option<u64> {
        (self.before != 0).then_some(self.last + 1)
    }

    /// In every cycle of which there is a row, and the [next](Ahead::next), before its outcome is told: whether one issued in
    /// the cycle before, and the row of [`held`].
    pub fn cycle(&mut self, now: u64, issued: bool, held: Option<&[u64]>) {
        if !issued {
            for slot in (0..self.idle.len()).filter(|slot| self.before >> slot & 1 == 1) {
                self.idle[slot].push(now);
            }
        }
        self.last = now;
        self.before = held.map_or(0, |row| {
            let (masks, others) = row[at(0)..].split_at(3);
            let (turns, others) = others.split_at(usize::from(self.turns));
            let is_taken = turns.iter().any(|&turns| turns != 0);
            let goes = self.passes.map_or(0, |most| {
                let (first, passed) = others.split_first().expect("which instructions may be passed");
                first & (0..).zip(passed).fold(0, |may, (slot, &passed)| may | u64::from(passed < most) << slot)
            });
            if is_taken { 0 } else { masks.iter().fold(!goes, |held, mask| held & mask) }
        });
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

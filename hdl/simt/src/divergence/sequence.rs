//! LR/SC sequences: from an `lr.w` until its `sc.w`, no path of the warp is chosen before the one that executes it.
//!
//! An `sc.w` fails if somebody wrote in between. Had its path to give way there, it would be other threads of its own
//! warp that write. So while a sequence lasts the path does not [give way](mod@super::fairness) by the time, and of the
//! sides of a branch, an [order](super::path_table::order) that counts threads has the one with the lesser pc first, as in a
//! sorted list: a sequence that always makes progress has only forward branches, says the RISC-V specification.
//!
//! A sequence *begins* with `lr.w`. It *ends* with an `sc.w` of all of its threads, a jump backwards, `jalr` or `ecall`;
//! and after [`LENGTH`] instructions at the most, which are at most [`longest`] outcomes behind the first.
//!
//! What it does not do: a path still goes to the end of its list where it comes to a greater pc than another one that
//! can run, as after a wake.

use super::interface::{Outcome, Sequence};
use crate::shape::{Replay, Shape};
use heddle_hdl::prelude::*;

/// Instructions of a sequence, those at both of its ends included.
pub const LENGTH: u32 = 16;

/// Outcomes behind the first one of its `lr.w` for which a sequence lasts, at the most; 0 where nothing is kept of them.
/// Where accesses split paths, `lr.w` and `sc.w` may take an outcome for each lane.
pub fn longest(s: &Shape) -> u32 {
    let replays = if s.replay == Replay::Split { 2 * (s.lanes - 1) } else { 0 };
    if s.keeps_sequences() { (LENGTH + replays).next_power_of_two() - 1 } else { 0 }
}

/// The sequences of the warps' active paths.
pub struct Sequences {
    /// By slot, for how many outcomes more it lasts.
    left: Mem<Width>,
}

impl Sequences {
    pub fn new(m: Builder, s: &Shape) -> Option<Sequences> {
        let left = || m.memory("sequences", longest(s).count_ones(), s.warp_bits()).style(MemoryStyle::Distributed);
        s.keeps_sequences().then(|| Sequences { left: left() })
    }

    /// For how many outcomes that of the slot lasts.
    pub fn left(&self, slot: Signal) -> Signal {
        self.left.read(slot)
    }

    /// Goes on by a cycle. Returns, 1 bit: the sequence lasts behind the outcome. If its path is `due`, to give way, an
    /// `lr.w` within a sequence does not begin another.
    pub fn goes_on(&self, told: Sequence<Signal>, outcome: &Outcome<Signal>, due: Signal) -> Signal {
        let left = self.left(outcome.slot);
        wire!(begins = told.begins & !(due & left.any()));
        wire!(lasts = begins | (left.from_bit(1).any() & !told.ends));
        // One that ends without an outcome has the next.
        let ended = left.any().zext(left.width());
        let after =
            pick([(begins, left.literal(Bits::ones(left.width()))), (outcome.valid, (left - 1).only_if(lasts))], ended);
        self.left.write(outcome.valid | begins | told.ends, outcome.slot, after);
        lasts
    }
}

//! LR/SC sequences: from an `lr.w` until its `sc.w`, no path of the warp is chosen before the one that executes it.
//!
//! An `sc.w` fails if somebody wrote in between. Were another path of the warp to run, it would be threads of its own warp
//! that write. So while a sequence lasts, its path does not [give way](mod@super::fairness) because its time is over; and in a
//! list of paths, what has become of the active path stays before all others that it does not meet, the side of a branch with
//! the lesser pc before the other: a sequence that always makes progress has only forward branches, says the RISC-V
//! specification.
//!
//! A sequence *begins* with `lr.w`. It *ends* with an `sc.w` of all threads of the path, a jump backwards, `jalr`, `ecall`
//! and where threads wait; and after [`longest`] outcomes at the latest. These are enough for [`LENGTH`] instructions, of which
//! only `lr.w` and `sc.w` access memory, as the specification has it.
//!
//! What it does not do: of several `sc.w` behind one `lr.w`, on two sides of a branch, the first ends the sequence. In the
//! arbiter, threads at a lesser pc come first whatever they are: so do those that a jump in a sequence leaves behind.

use super::interface::{Outcome, SequenceTold};
use crate::shape::{Replay, Shape};
use heddle_hdl::prelude::*;

/// Instructions that a sequence has room for, those at both of its ends included.
pub const LENGTH: u32 = 16;

/// Outcomes behind the first one of its `lr.w` for which a sequence lasts, at the most; 0 where nothing is kept of them.
/// Where accesses split paths, `lr.w` and `sc.w` may take an outcome for each lane.
pub fn longest(s: &Shape) -> u32 {
    let replays = if s.replay == Replay::Split { 2 * (s.lanes - 1) } else { 0 };
    if s.keeps_sequences() { (LENGTH + replays).next_power_of_two() - 1 } else { 0 }
}

/// Outcomes that a path has from when its time is over until it gives way, that with which it does included, at the most:
/// those of a sequence that was there, and of one that begins at its end.
pub fn latest(s: &Shape) -> u32 {
    (2 * longest(s)).max(1)
}

/// The sequences of the warps' active paths.
pub struct Sequences {
    s: Shape,
    /// One bit per slot: there is one, which lasts behind the next outcome unless that ends it. In registers, as it is the
    /// sooner known.
    more: Reg<Signal>,
    /// By slot, then, for how many outcomes it lasts.
    left: Mem<Width>,
    /// One bit per slot: it began when the time of its path was over.
    prolongs: Reg<Signal>,
}

impl Sequences {
    /// Where something is kept of them.
    pub fn new(m: Builder, s: &Shape) -> Option<Sequences> {
        s.keeps_sequences().then(|| Sequences {
            s: s.clone(),
            more: m.reg("sequence_more", s.warps).reset(0u32),
            left: m.memory("sequence_left", longest(s).count_ones(), s.warp_bits()).style(MemoryStyle::Distributed),
            prolongs: m.reg("sequence_prolongs", s.warps).reset(0u32),
        })
    }

    /// Of a slot: a sequence lasts behind the next outcome, 1 bit; then, for how many outcomes; it began when the time of its
    /// path was over, 1 bit.
    pub fn of(&self, slot: Signal) -> [Signal; 3] {
        [self.more.q.select(slot, 1), self.left.read(slot), self.prolongs.q.select(slot, 1)]
    }

    /// Goes on by a cycle. Returns, 1 bit, with an outcome: the sequence lasts behind it. If its path is `due`, to give way,
    /// only one more sequence begins.
    pub fn goes_on(&self, told: SequenceTold<Signal>, outcome: &Outcome<Signal>, due: Signal) -> Signal {
        let at = outcome.slot.decode(self.s.warps);
        let is_on = |bits: Reg<Signal>| (bits.q & at).any();
        wire!(begins = told.begins & !(due & is_on(self.prolongs)));
        wire!(lasts = begins | (is_on(self.more) & !told.ends));
        wire!(changes = outcome.valid | begins);
        let after = self.left.read(outcome.slot) - 1;
        self.left.write(changes, outcome.slot, begins.repeat(after.width()) | after);
        let more = begins | (lasts & after.from_bit(1).any());
        self.more.next_if(changes, (self.more.q & !at) | at.only_if(more));
        // Until its path gives way, which it does where no sequence lasts.
        let prolongs = (self.prolongs.q & at) | at.only_if(begins);
        self.prolongs.next_if(changes, (self.prolongs.q & !at) | prolongs.only_if(due & lasts));
        lasts & outcome.valid
    }
}

#[cfg(test)]
mod tests;

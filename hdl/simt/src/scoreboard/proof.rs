//! What the scoreboard is for: nobody issues over a pending write, and nobody waits without one.
//!
//! Any register of any slot is followed. It is *owed* from the issue of an instruction that writes it to its release.
//! The others are there to disturb. Who waits does so for a register that is pending, and what is pending is owed,
//! whichever it is.

use super::{Pending, RowOut, ScoreboardIn, described, row_shown};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ProofIn<T> {
    #[width(ScoreboardIn::shape(s).heads)]
    pub heads: T,
    pub issue: Pending<T>,
    pub early: Pending<T>,
    pub late: Pending<T>,
    /// The slot and the register that are followed.
    #[width(s.warp_bits())]
    pub slot: T,
    #[width(5)]
    pub followed: T,
}

/// The scoreboard with all legal inputs: only what is pending is released, and not twice in a cycle.
pub fn scoreboard_proof(s: &Shape) -> TypedModule<ProofIn<Width>, [Signal; 1]> {
    module("scoreboard_proof", ProofIn::shape(s), |m, i| {
        let on_slot = |p: Pending<Signal>| Pending { slot: index_of(s.warps, p.slot), ..p };
        let [issue, early, late] = [i.issue, i.early, i.late].map(on_slot);
        let shown = m.deferred("shown", s.warps * 32);
        let pending = |p: Pending<Signal>| shown.value.select(cat(&[p.rd, p.slot]).slice(0, s.bank_bits()), 1);
        let early = Pending { valid: early.valid & pending(early), ..early };
        let twice = early.valid & early.slot.eq(late.slot) & early.rd.eq(late.rd);
        let late = Pending { valid: late.valid & pending(late) & !twice, ..late };
        let legal = ScoreboardIn {
            heads: i.heads,
            issue,
            early: early.released(s),
            late: late.released(s),
            changed: None,
            threads: None,
        };
        let RowOut { clear, quiet, pending } = described(m, s, legal, &row_shown());
        shown.drive(pending);

        let slot = index_of(s.warps, held(m, "slot_followed", i.slot));
        let register = held(m, "register_followed", i.followed);
        let of = |p: Pending<Signal>| p.valid & p.slot.eq(slot) & p.rd.eq(register);
        let owed = m.reg("owed", 1).reset(0u32);
        // Heads are looked up for the next cycle.
        wire!(owed_after = (owed.q & !(of(early) | of(late))) | of(issue));
        owed.next(owed_after);
        wire!(row = pending.select(slot, 32));
        m.assert("pending_is_owed", row.select(register, 1).eq(owed.q));
        m.assert("quiet_owes_nothing", implies(quiet.select(slot, 1), !owed.q));
        wire!(head = i.heads.select(slot, 32));
        wire!(clear_here = clear.select(slot, 1));
        wire!(must_wait = head.select(register, 1) & owed_after);
        m.assert("never_released_early", implies(must_wait, !clear_here));
        let waited = m.pipe_reset("waited", !clear_here);
        let awaited = row & m.pipe("head_before", head);
        m.assert("never_stuck", implies(waited, awaited.any()));

        cover(m, "waits_for_another_too", must_wait & m.pipe("waits_for_another", (row & !register.decode(32)).any()));
        cover(m, "goes_after_a_release", waited & clear_here & head.any());
        [clear]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;

    #[test]
    fn holds_at_random_inputs() {
        for warps in [1, 8] {
            holds_at_random(&scoreboard_proof(&Shape::new(2, warps)).check().unwrap().netlist, 5000);
        }
    }
}

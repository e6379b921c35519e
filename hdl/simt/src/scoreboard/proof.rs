//! What the scoreboard is for: nobody issues over a pending write, and nobody waits without one.
//!
//! Any three registers of any slot are followed. Each is *owed* from the issue of an instruction that writes it to its
//! release. The others are there to disturb.

use super::{Pending, RowOut, ScoreboardIn, described, row_shown};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub heads: T,
    pub issue: Pending<T>,
    pub early: Pending<T>,
    pub late: Pending<T>,
    /// The slot and the registers that are followed.
    pub slot: T,
    pub registers: [T; 3],
}

/// The scoreboard with all legal inputs: only what is pending is released, and not twice in a cycle.
pub fn scoreboard_proof(s: &Shape) -> TypedModule<ProofIn<Width>, [Signal; 1]> {
    let pending = Pending::shape(s);
    let inputs = ProofIn {
        heads: ScoreboardIn::shape(s).heads,
        issue: pending,
        early: pending,
        late: pending,
        slot: s.warp_bits(),
        registers: [5; 3],
    };
    module("scoreboard_proof", inputs, |m, i| {
        let on_slot = |p: Pending<Signal>| Pending { slot: index_of(s.warps, p.slot), ..p };
        let [issue, early, late] = [i.issue, i.early, i.late].map(on_slot);
        let shown = m.deferred("shown", s.warps * 32);
        let pending = |p: Pending<Signal>| shown.value.select(cat(&[p.rd, p.slot]).slice(0, s.bank_bits()), 1);
        let early = Pending { valid: early.valid & pending(early), ..early };
        let twice = early.valid & early.slot.eq(late.slot) & early.rd.eq(late.rd);
        let late = Pending { valid: late.valid & pending(late) & !twice, ..late };
        let legal =
            ScoreboardIn { heads: i.heads, issue, early: early.released(s), late: late.released(s), changed: None };
        let RowOut { clear, quiet, pending } = described(m, s, legal, &row_shown());
        shown.drive(pending);

        let slot = index_of(s.warps, held(m, "slot_followed", i.slot));
        let registers = held(m, "registers_followed", i.registers);
        let owed = [0, 1, 2].map(|k| {
            let of = |p: Pending<Signal>| p.valid & p.slot.eq(slot) & p.rd.eq(registers[k]);
            let owed = m.reg(&format!("owed_{k}"), 1).reset(0u32);
            // Heads are looked up for the next cycle.
            let after = (owed.q & !(of(early) | of(late))) | of(issue);
            owed.next(after);
            let bit = pending.select(cat(&[registers[k], slot]).slice(0, s.bank_bits()), 1);
            m.assert(&format!("pending_is_owed_{k}"), bit.eq(owed.q));
            m.assert(&format!("quiet_owes_nothing_{k}"), implies(quiet.select(slot, 1), !owed.q));
            after
        });
        wire!(head = i.heads.select(slot, 32));
        wire!(clear_here = clear.select(slot, 1));
        let waits = [0, 1, 2].map(|k| head.select(registers[k], 1) & owed[k]);
        wire!(must_wait = cat(&waits).any());
        m.assert("never_released_early", implies(must_wait, !clear_here));
        wire!(followed = registers[0].decode(32) | registers[1].decode(32) | registers[2].decode(32));
        wire!(may_go = !(head & !followed).any() & !must_wait);
        m.assert("never_stuck", implies(may_go, clear_here));

        cover(m, "waits_for_two_of_three", owed[0] & owed[1] & !owed[2] & must_wait);
        cover(m, "goes_after_a_release", m.pipe_reset("waited", must_wait) & may_go & head.any());
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

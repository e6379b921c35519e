//! What the scoreboard is for: nobody issues over a pending write, and nobody waits without one.
//!
//! Any three registers of any slot are followed. Each is *owed* from the issue of an instruction that writes it to its
//! release. The others are there to disturb.

use super::{Needs, Pending, RowOut, ScoreboardIn, described, row_shown};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub heads: Vec<Needs<T>>,
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
        let legal = ScoreboardIn {
            heads: i.heads.clone(),
            issue,
            early: early.released(s),
            late: late.released(s),
            changed: None,
        };
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
        let head = select(&i.heads, slot);
        let Needs { rs1, rs2, rd, use1, use2, writes } = head;
        wire!(clear_here = clear.select(slot, 1));
        let needs = [(rs1, use1), (rs2, use2), (rd, writes)];
        let waits = needs.into_iter().flat_map(|(n, used)| [0, 1, 2].map(|k| n.eq(registers[k]) & used & owed[k]));
        wire!(must_wait = cat(&waits.collect::<Vec<_>>()).any());
        m.assert("never_released_early", implies(must_wait, !clear_here));
        let followed = [0, 1, 2].map(|k| needs[k].0.eq(registers[k]));
        wire!(may_go = cat(&[0, 1, 2].map(|k| followed[k] & !(needs[k].1 & owed[k]))).all());
        m.assert("never_stuck", implies(may_go, clear_here));

        cover(m, "waits_for_two_of_three", owed[0] & owed[1] & !owed[2] & must_wait);
        cover(m, "goes_after_a_release", m.pipe_reset("waited", must_wait) & may_go & use1);
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

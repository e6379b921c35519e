//! What the dual scoreboard is for: no thread reads or writes a register while a write of its own is under way; the
//! other path's writes since the last push or pop hold nobody back; whoever waits, waits for fewer and fewer writes.
//!
//! Any thread and any register of any warp are followed. Who waits does so for registers that are pending on its side
//! or in the shadow of the other, and each of those is under way, whichever it is. The thread is on the left, on the
//! right or, as one that is suspended or has ended, nowhere. Every push and every pop puts it anywhere, which is more
//! than any stack does; in between it may only leave. All else disturbs.

use super::{DualScoreboardIn, DualScoreboardOut, RowOut, SidePending, described, row_shown};
use crate::divergence::interface::PathsChange;
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub heads: [T; 2],
    pub issue: SidePending<T>,
    pub early: SidePending<T>,
    pub late: SidePending<T>,
    pub push: PathsChange<T>,
    pub pop: PathsChange<T>,
    /// The warp and the register that are followed.
    pub warp: T,
    pub followed: T,
    /// Where a push, a pop or a start puts the thread: nowhere or on one side.
    pub stays: T,
    pub goes: T,
    /// The warp starts, if it is quiet and the thread not in it.
    pub starts: T,
    /// The thread ends.
    pub ends: T,
}

/// The dual scoreboard with all legal inputs: only what is pending is released, and not twice in a cycle.
pub fn dual_scoreboard_proof(s: &Shape) -> TypedModule<ProofIn<Width>, DualScoreboardOut<Signal>> {
    let (pending, change) = (SidePending::shape(s), PathsChange::shape(s));
    let inputs = ProofIn {
        heads: DualScoreboardIn::shape(s).heads,
        issue: pending,
        early: pending,
        late: pending,
        push: change,
        pop: change,
        warp: s.warp_bits(),
        followed: 5,
        stays: 1,
        goes: 1,
        starts: 1,
        ends: 1,
    };
    module("dual_scoreboard_proof", inputs, |m, i| {
        let of_warp = |p: SidePending<Signal>| SidePending { warp: index_of(s.warps, p.warp), ..p };
        let [issue, early, late] = [i.issue, i.early, i.late].map(of_warp);
        let [push, pop] = [i.push, i.pop].map(|change| PathsChange { warp: index_of(s.warps, change.warp), ..change });
        let shown = m.deferred("shown", [s.warps * 32; 2]);
        let at = |sides: [Signal; 2], warp: Signal, register: Signal| {
            sides.map(|bits| bits.select(cat(&[register, warp]).slice(0, s.bank_bits()), 1))
        };
        let pending = |p: SidePending<Signal>| {
            let [left, right] = at(shown.value, p.warp, p.rd);
            p.side.mux(right, left)
        };
        let early = SidePending { valid: early.valid & pending(early), ..early };
        let twice = early.valid & early.warp.eq(late.warp) & early.side.eq(late.side) & early.rd.eq(late.rd);
        let late = SidePending { valid: late.valid & pending(late) & !twice, ..late };
        let [released_early, released_late] = [early, late].map(|p| p.released(s));
        let heads = i.heads;
        let legal = DualScoreboardIn { heads, issue, early: released_early, late: released_late, push, pop };
        let RowOut { clear, own_clear, quiet, pending, shadow } = described(m, s, legal, &row_shown(s));
        shown.drive(pending);

        let warp = index_of(s.warps, held(m, "warp_followed", i.warp));
        let register = held(m, "register_followed", i.followed);
        wire!(quiet_here = quiet.select(warp, 1));
        let here = |change: PathsChange<Signal>| change.valid & change.warp.eq(warp);
        wire!(moves = here(push) | here(pop));

        let thread = ["left", "right"].map(|name| m.reg(&format!("thread_{name}"), 1).reset(0u32));
        wire!(starts = i.starts & quiet_here & !(thread[0].q | thread[1].q));
        let side = |k: usize| if k == 0 { !i.goes } else { i.goes };
        // Heads are looked up for the next cycle: the other values are those after this one.
        let thread = [0, 1].map(|k: usize| {
            let after = (moves | starts).mux(!i.stays & side(k), thread[k].q & !i.ends);
            thread[k].next(after);
            (thread[k].q, after)
        });
        m.assert("thread_is_on_one_side", !(thread[0].0 & thread[1].0));

        // For each side: a write is under way; it was when the paths last changed; it is the thread's.
        let writes = [0, 1].map(|k: usize| {
            let of = |p: SidePending<Signal>| p.valid & p.warp.eq(warp) & p.side.eq(k as u32) & p.rd.eq(register);
            let [under_way, before, mine] =
                ["under_way", "before", "mine"].map(|what| m.reg(&format!("{what}_{k}"), 1).reset(0u32));
            let (kept, issues) = (!(of(early) | of(late)), of(issue));
            let under_way_after = (under_way.q & kept) | issues;
            let before_after = moves.mux(under_way_after, before.q & kept);
            let mine_after = (mine.q & kept) | (issues & thread[k].0);
            under_way.next(under_way_after);
            before.next(before_after);
            mine.next(mine_after);
            m.assert(&format!("pending_is_under_way_{k}"), at(pending, warp, register)[k].eq(under_way.q));
            m.assert(&format!("shadow_was_before_{k}"), at(shadow, warp, register)[k].eq(before.q));
            m.assert(&format!("quiet_has_none_{k}"), implies(quiet_here, !under_way.q));
            let elsewhere = thread[1 - k].0;
            m.assert(&format!("of_threads_on_the_side_{k}"), implies(mine.q & !before.q, !elsewhere));
            m.assert(&format!("mine_is_under_way_{k}"), implies(mine.q, under_way.q));
            ((under_way.q, before.q), (under_way_after, before_after, mine_after))
        });
        let under_way = writes.map(|(now, _)| now);
        let writes = writes.map(|(_, after)| after);

        for (k, name) in ["left", "right"].into_iter().enumerate() {
            wire!(head = i.heads[k].select(warp, 32));
            wire!(clear_here = clear[k].select(warp, 1));
            wire!(needed = head.select(register, 1));
            wire!(must_wait = thread[k].1 & needed & (writes[0].2 | writes[1].2));
            m.assert(&format!("{name}_never_before_a_write_of_a_thread"), implies(must_wait, !clear_here));
            let waited = m.pipe_reset(&format!("{name}_waited"), !clear_here);
            let awaited = pending[k].select(warp, 32) | shadow[1 - k].select(warp, 32);
            let awaited = awaited & m.pipe(&format!("{name}_head_before"), head);
            m.assert(&format!("{name}_never_held_back_by_others"), implies(waited, awaited.any()));

            // What this side would wait for: the register is not added unless it issues or the paths change.
            let waits = under_way[k].0 | under_way[1 - k].1;
            let issues = issue.valid & issue.warp.eq(warp) & issue.side.eq(k as u32);
            let same = m.pipe_reset(&format!("{name}_same"), !moves & !issues);
            let added = waits & !m.pipe_reset(&format!("{name}_waits_before"), waits);
            m.assert(&format!("{name}_waits_for_fewer"), implies(same, !added));

            cover(m, &format!("{name}_waits_for_a_shadow"), must_wait & !writes[k].0 & writes[1 - k].2);
            let passes = needed & writes[1 - k].0 & !(writes[k].0 | writes[1 - k].1);
            cover(m, &format!("{name}_passes_the_other_path"), clear_here & passes & thread[k].1);
            cover(m, &format!("{name}_goes_after_a_release"), waited & clear_here & head.any());
        }
        cover(m, "one_register_on_both_sides", writes[0].2 & writes[1].0 & !writes[1].1);
        DualScoreboardOut { clear, own_clear, quiet }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;

    #[test]
    fn holds_at_random_inputs() {
        for warps in [1, 2] {
            holds_at_random(&dual_scoreboard_proof(&Shape::new(2, warps)).check().unwrap().netlist, 20_000);
        }
    }
}

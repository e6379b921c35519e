//! What the dual scoreboard is for: no thread reads or writes a register while a write of its own is under way; the other
//! path's writes since the last push or pop hold nobody back; whoever waits, waits for fewer and fewer writes.
//!
//! Any thread and any three registers of any warp are followed. The thread is on the left, on the right or, as one that
//! is suspended or has ended, nowhere. Every push and every pop puts it anywhere, which is more than any stack does; in
//! between it may only leave. All else disturbs.

use super::{DualScoreboardIn, DualScoreboardOut, RowOut, SidePending, StackChange, described, row_shown};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub heads: [T; 2],
    pub issue: SidePending<T>,
    pub early: SidePending<T>,
    pub late: SidePending<T>,
    pub push: StackChange<T>,
    pub pop: StackChange<T>,
    /// The warp and the registers that are followed.
    pub warp: T,
    pub registers: [T; 3],
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
    let (pending, change) = (SidePending::shape(s), StackChange::shape(s));
    let inputs = ProofIn {
        heads: DualScoreboardIn::shape(s).heads,
        issue: pending,
        early: pending,
        late: pending,
        push: change,
        pop: change,
        warp: s.warp_bits(),
        registers: [5; 3],
        stays: 1,
        goes: 1,
        starts: 1,
        ends: 1,
    };
    module("dual_scoreboard_proof", inputs, |m, i| {
        let of_warp = |p: SidePending<Signal>| SidePending { warp: index_of(s.warps, p.warp), ..p };
        let [issue, early, late] = [i.issue, i.early, i.late].map(of_warp);
        let [push, pop] = [i.push, i.pop].map(|change| StackChange { warp: index_of(s.warps, change.warp), ..change });
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
        let registers = held(m, "registers_followed", i.registers);
        wire!(quiet_here = quiet.select(warp, 1));
        let here = |change: StackChange<Signal>| change.valid & change.warp.eq(warp);
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

        // For each side and register: a write is under way; it was when the paths last changed; it is the thread's.
        let writes = [0, 1].map(|k: usize| {
            [0, 1, 2].map(|r: usize| {
                let of =
                    |p: SidePending<Signal>| p.valid & p.warp.eq(warp) & p.side.eq(k as u32) & p.rd.eq(registers[r]);
                let name = format!("{k}_{r}");
                let [under_way, before, mine] =
                    ["under_way", "before", "mine"].map(|what| m.reg(&format!("{what}_{name}"), 1).reset(0u32));
                let (kept, issues) = (!(of(early) | of(late)), of(issue));
                let under_way_after = (under_way.q & kept) | issues;
                let before_after = moves.mux(under_way_after, before.q & kept);
                let mine_after = (mine.q & kept) | (issues & thread[k].0);
                under_way.next(under_way_after);
                before.next(before_after);
                mine.next(mine_after);
                m.assert(&format!("pending_is_under_way_{name}"), at(pending, warp, registers[r])[k].eq(under_way.q));
                m.assert(&format!("shadow_was_before_{name}"), at(shadow, warp, registers[r])[k].eq(before.q));
                m.assert(&format!("quiet_has_none_{name}"), implies(quiet_here, !under_way.q));
                let elsewhere = thread[1 - k].0;
                m.assert(&format!("of_threads_on_the_side_{name}"), implies(mine.q & !before.q, !elsewhere));
                m.assert(&format!("mine_is_under_way_{name}"), implies(mine.q, under_way.q));
                ((under_way.q, before.q), (under_way_after, before_after, mine_after))
            })
        });
        let under_way = writes.map(|side| side.map(|(now, _)| now));
        let writes = writes.map(|side| side.map(|(_, after)| after));

        for (k, name) in ["left", "right"].into_iter().enumerate() {
            wire!(head = i.heads[k].select(warp, 32));
            wire!(clear_here = clear[k].select(warp, 1));
            // All that it needs is among the registers that are followed, any of which may be the same.
            let followed = registers.map(|register| register.decode(32)).into_iter().reduce(|a, b| a | b);
            let others = (head & !followed.expect("there are three")).any();
            let [mut theirs, mut passed, mut free] = [vec![], vec![], vec![!others]];
            for (r, register) in registers.into_iter().enumerate() {
                let needed = head.select(register, 1);
                let holds = writes[k][r].0 | writes[1 - k][r].1;
                theirs.push(needed & (writes[0][r].2 | writes[1][r].2));
                passed.push(needed & writes[1 - k][r].0 & !holds);
                free.push(!(needed & holds));
            }
            wire!(must_wait = thread[k].1 & cat(&theirs).any());
            wire!(may_go = cat(&free).all());
            m.assert(&format!("{name}_never_before_a_write_of_a_thread"), implies(must_wait, !clear_here));
            m.assert(&format!("{name}_never_held_back_by_others"), implies(may_go, clear_here));

            // The registers that this side would wait for: none is added unless it issues or the paths change.
            let waits = cat(&[0, 1, 2].map(|r: usize| under_way[k][r].0 | under_way[1 - k][r].1));
            let issues = issue.valid & issue.warp.eq(warp) & issue.side.eq(k as u32);
            let same = m.pipe_reset(&format!("{name}_same"), !moves & !issues);
            let added = waits & !m.pipe_reset(&format!("{name}_waits_before"), waits);
            m.assert(&format!("{name}_waits_for_fewer"), implies(same, !added.any()));

            cover(
                m,
                &format!("{name}_waits_for_a_shadow"),
                must_wait & !writes[k].map(|w| w.0)[0] & writes[1 - k][0].2,
            );
            cover(m, &format!("{name}_passes_the_other_path"), may_go & cat(&passed).any() & thread[k].1);
            cover(
                m,
                &format!("{name}_goes_after_a_release"),
                m.pipe_reset(&format!("{name}_waited"), must_wait) & may_go,
            );
        }
        cover(m, "one_register_on_both_sides", writes[0][0].2 & writes[1][0].0 & !writes[1][0].1);
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

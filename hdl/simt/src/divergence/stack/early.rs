//! What pcs and depths say of all who may come to the top, side by side: who it is comes last.
//!
//! Each comparison is between two words that a cycle begins with, so that none waits for another.
//! [`levels`](super::super::levels) says what they mean; assertions hold both together.

use super::super::Outcome;
use super::super::levels::{Compared, Gathering, Level, Likely, Pop, Rpc, Top, at_branchs, at_own, has_likely};
use super::state::Store;
use heddle_hdl::prelude::*;

/// Of an outcome.
pub struct OfOutcome {
    pub compared: Compared<Signal>,
    /// 1 bit: it goes on where those are that take the branch, if it goes on at all. Sides that are not apart are at
    /// one place.
    pub is_at_takens: Signal,
    /// 1 bit: those who go on are at their likely point, if the outcome parts the threads; if not.
    pub at_point: [Signal; 2],
}

/// Of a pop.
pub struct OfPop {
    /// 1 bit: the new top is where it reconverges with others; it is at its likely point.
    pub arrives_again: Signal,
    pub at_point: Signal,
    /// Where it reconverges with others then.
    pub rpc: Rpc<Signal>,
}

impl Store {
    /// Compares the sides of an outcome.
    pub fn compare(&self, outcome: &Outcome<Signal>, taken_depth: Signal, top: &Top<Signal>) -> OfOutcome {
        let Store { m, s, .. } = self;
        let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads reconverge") };
        let (taken, rest, depths) = (outcome.taken, outcome.rest, (taken_depth, top.depth));
        let (taken_some, rest_some) = (taken.mask.any(), rest.mask.any());
        let same_group = top.rpc.is_of(meets, top.depth);
        let [taken_is_at_tops, rest_is_at_tops] = at_own(outcome, depths, top.rpc);
        let [taken_is_there, rest_is_there] = at_branchs(outcome, meets, depths, top.rpc, same_group);
        let same_depth = taken_depth.eq(top.depth);
        let both_stay = !taken_is_there & !rest_is_there;

        let never = m.lit(0u32, 1);
        let point = top.likely.unwrap_or(m.zero(Likely::shape(s)));
        let at = |pc: Signal| [pc.eq(point.pc), pc.eq(meets.likely_pc)];
        let (taken_at, rest_at) = (at(taken.pc), at(rest.pc));
        let inherits = same_group & point.valid;
        let gathers = both_stay & meets.likely & !(inherits & point.pc.eq(meets.likely_pc));
        let towards = |[of_top, of_branch]: [Signal; 2]| gathers.mux(of_branch, inherits & of_top);
        let rest_first = both_stay & towards(rest_at);
        let goes_as_taken = !taken_is_there & !rest_first;
        let parted = goes_as_taken.mux(same_depth & towards(taken_at), towards(rest_at));
        let at_tops = |[of_top, _]: [Signal; 2], depth: Signal| of_top & depth.eq(top.rpc.depth);
        let unparted = taken_some.mux(at_tops(taken_at, taken_depth), at_tops(rest_at, top.depth));
        let (likely, rest_first) = if has_likely(s) { (Some(gathers), rest_first) } else { (None, never) };
        OfOutcome {
            compared: Compared {
                apart: taken.pc.ne(rest.pc) | !same_depth,
                same_group,
                taken_is_there,
                rest_is_there,
                taken_is_at_tops,
                rest_is_at_tops,
                gathers: likely,
                rest_first: likely.map(|_| rest_first),
            },
            is_at_takens: taken_some & !(rest_some & (taken_is_there | rest_first)),
            at_point: [parted, point.valid & unparted].map(|at| if has_likely(s) { at } else { never }),
        }
    }

    /// Compares those whom the level `head` may bring to the top, of whom `pop` says who comes; `gathered` are at its
    /// likely point.
    pub fn compare_popped(
        &self,
        top: &Top<Signal>,
        head: &Level<Signal>,
        gathered: Signal,
        pop: &Pop<Signal>,
    ) -> OfPop {
        let Store { m, s, .. } = self;
        let &Pop { to_sibling, to_point, to_outer, .. } = pop;
        let (sibling, group) = (head.sibling, head.group);
        let (pc, depth) = (top.rpc.pc, top.rpc.depth);
        let group_depth = top.rpc.returns.mux(depth - 1, depth);
        let group_is_there = group.rpc.reached_early(pc, group_depth);
        let nowhere = m.zero(Likely::shape(s));
        let point = top.likely.unwrap_or(nowhere);
        let found_by = to_point.mux(point.pc, pc);
        let Some(Gathering { valid: gathering, outer }) = head.likely else {
            let arrives_again = !to_sibling & group_is_there;
            let rpc = to_sibling.mux(top.rpc, group.rpc.found_early(arrives_again, found_by));
            return OfPop { arrives_again, at_point: m.lit(0u32, 1), rpc };
        };
        let point_is_there = to_outer & group.rpc.reached_early(point.pc, depth);
        let arrives_again = !to_sibling & to_point.mux(point_is_there, group_is_there);
        let keeps = !gathering | gathered.any();
        let sibling_at = keeps
            .mux(point.valid & sibling.pc.eq(point.pc), outer.valid & !group.valid & sibling.pc.eq(outer.pc))
            & sibling.depth.eq(depth);
        let alone = !group.valid | (to_outer & group.rpc.depth.eq(depth));
        let point_at = outer.valid & alone & point.pc.eq(outer.pc);
        let group_at = outer.valid & pc.eq(outer.pc) & group.rpc.depth.eq(group_depth);
        OfPop {
            arrives_again,
            at_point: to_sibling.mux(sibling_at, to_point.mux(point_at, group_at)),
            rpc: to_outer.mux(group.rpc.found_early(arrives_again, found_by), top.rpc),
        }
    }
}

//! Whose turn it is, and what an outcome or a wake does to its path: it moves, diverges, or arrives where paths
//! reconverge.

use super::super::levels::{self, Sibling, levels};
use super::super::{Announced, Outcome, OutcomeKind, Start, side_of, warp_of};
use super::forwarding;
use super::state::{Level, Store, Top};
use heddle_hdl::prelude::*;

/// Whose turn it is.
#[derive(Clone, Copy)]
pub struct Turn {
    /// 1 bit: that of a start, if there is one.
    pub is_free: Signal,
    /// 1 bit each: a start's; a wake's; a pop's; that of a path that is owed its steering.
    pub starts: Signal,
    pub wakes: Signal,
    pub pops: Signal,
    pub sends: Signal,
    /// With path forwarding, 1 bit: that of a sibling that comes up. It gives way to an outcome that is announced,
    /// which needs the words of its warp as they are.
    pub takes: Option<Signal>,
    pub gives_way: Signal,
    /// The warp, one-hot too.
    pub warp: Signal,
    pub at: Signal,
    /// Its words.
    pub top: Top<Signal>,
    pub count: Signal,
}

impl Turn {
    /// 1 bit: the top is another.
    pub fn renews(&self) -> Signal {
        self.takes.map_or(self.pops, |takes| self.pops | takes)
    }
}

/// What becomes of a path.
pub struct Moved {
    /// 1 bit: the right side; its path, and the other.
    pub side: Signal,
    pub own: Sibling<Signal>,
    pub sibling: Sibling<Signal>,
    /// 1 bit each: it is an outcome or a wake; its threads wait.
    pub moves: Signal,
    pub waits: Signal,
    /// 1 bit each: its threads diverge, and both sides run on; the path is the side that takes the branch.
    pub both_go: Signal,
    pub goes_as_taken: Signal,
    /// 1 bit each, of an outcome: it goes on where those are that take the branch, if it goes on at all; and it goes on,
    /// and its threads do not wait. Of a wake, the latter.
    pub is_at_takens: Signal,
    pub runs_on: Signal,
    /// 1 bit each: there should be one more level, and is none; one is pushed; the other side of the top is another.
    pub full: Signal,
    pub pushes: Signal,
    pub changes: Signal,
    /// The level that is pushed.
    pub pushed: Level<Signal>,
    /// Threads that have not ended.
    pub stay: Signal,
    /// 1 bit: a path goes to the top's rpc then.
    pub runs: Signal,
    /// The top then.
    pub top: Top<Signal>,
}

impl Store {
    /// Whose turn it is.
    pub fn turn(&self, start: &Start<Signal>, announced: &Announced<Signal>) -> Turn {
        let Store { m, s, .. } = self;
        let (claim, words) = (self.claim.q, self.words.q);
        let claimed_warp = warp_of(s, claim.slot);
        wire!(sends = claim.send | (claim.follows & self.owed.q.select(claim.slot, 1)));
        let gives_way = announced.valid & warp_of(s, announced.slot).eq(claimed_warp);
        let takes = claim.take.map(|take| take & !gives_way);
        wire!(is_free = !claim.any(*m));
        wire!(starts = start.valid & is_free);
        wire!(warp = is_free.mux(start.slot, claimed_warp));
        wire!(count = words.count.only_if(!is_free));
        let (at, wakes, pops) = (warp.decode(s.warps), claim.wake, claim.pop);
        Turn { is_free, starts, wakes, pops, sends, takes, gives_way, warp, at, top: words.top, count }
    }

    /// What its outcome or wake does.
    pub fn moved(&self, turn: &Turn, outcome: &Outcome<Signal>) -> Moved {
        let Store { m, s, .. } = self;
        let one = m.lit(1u32, 1);
        let claim = self.claim.q;
        let Turn { top, wakes, count, .. } = *turn;
        let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads reconverge") };
        wire!(side = claim.outcome.mux(side_of(s, claim.slot), !top.left.valid));
        let (own, taken_depth) = (self.words.q.own, self.words.q.after);
        let (_, sibling) = top.of(side);
        let own_rpc = self.words.q.own_rpc.unwrap_or(top.rpc);
        let (taken, rest) = (outcome.taken, outcome.rest);
        let (taken_some, rest_some) = (taken.mask.any(), rest.mask.any());
        wire!(apart = taken.pc.ne(rest.pc) | taken_depth.ne(own.depth));
        wire!(parts = outcome.valid & taken_some & rest_some & apart);
        wire!(same_group = own_rpc.is_of(meets, own.depth));

        let depths = (taken_depth, own.depth);
        let [taken_at_own, rest_at_own] = levels::at_own(outcome, depths, own_rpc);
        let [taken_there, rest_there] = levels::at_branchs(outcome, meets, depths, own_rpc, same_group);
        wire!(taken_is_there = parts & taken_there);
        wire!(rest_is_there = parts & rest_there);
        wire!(both_go = parts & !taken_there & !rest_there);
        wire!(goes_as_taken = taken_some & !taken_is_there);
        // The same where it makes a difference: sides that are not apart are at one place.
        wire!(is_at_takens = taken_some & !(rest_some & taken_there));
        let went = Sibling { valid: one, pc: taken.pc, depth: taken_depth, mask: taken.mask };
        let stayed = Sibling { valid: one, pc: rest.pc, depth: own.depth, mask: rest.mask };
        let Sibling { pc, depth, .. } = claim.outcome.mux(is_at_takens.mux(went, stayed), own);
        wire!(stay = taken.mask | rest.mask);
        wire!(moves = outcome.valid | wakes);
        wire!(waits = outcome.valid & outcome.kind.eq(OutcomeKind::Wait));
        let at_own = taken_some.mux(taken_at_own, rest_at_own);
        wire!(is_there = claim.outcome.mux(at_own, own_rpc.reached(own.pc, own.depth)));
        wire!(arrives = moves & !waits & !parts & is_there);
        let (of_taken, of_rest) = (parts & !goes_as_taken, parts & goes_as_taken);
        let of_outcome = (taken.mask & !of_taken.repeat(s.lanes)) | (rest.mask & !of_rest.repeat(s.lanes));
        let mask = claim.outcome.mux(of_outcome, own.mask);
        let some_stay = claim.outcome.mux(taken_some | rest_some, own.mask.any());
        // Those who wait do not arrive.
        wire!(goes_on = moves & some_stay & (waits | parts | !is_there));
        wire!(runs_on = moves & some_stay & !waits & (parts | !is_there));
        let moved = Sibling { valid: goes_on, pc, depth, mask };
        // Who comes first to a place that is not known yet is of those that take the branch: `found` has their pc.
        m.assert("an_unknown_place_is_found_by_the_taken", !(outcome.valid & arrives & !own_rpc.known & !taken_some));
        let found = (arrives | taken_is_there, claim.outcome.mux(taken.pc, own.pc));
        let found = levels::meeting(meets, own.depth, own_rpc, parts & !same_group, found);

        // What a branch leaves, and where the sibling is.
        wire!(leaves = parts & (!same_group | (both_go & sibling.valid)));
        let full = if levels(s) < s.lanes - 1 { leaves & count.eq(levels(s)) } else { m.lit(0u32, 1) };
        wire!(pushes = leaves & !full);
        let (group, before) = forwarding::left_by(&top, side, stay, same_group);
        let pushed = Level { sibling, group, side, before };
        let beside = both_go.mux(stayed, pushes.mux(m.zero(Sibling::shape(s)), sibling));
        wire!(changes = both_go | pushes);
        let after = forwarding::moved(&top, side, (pushes, !sibling.valid), Top::with(side, moved, beside, found));

        let runs = forwarding::run(&after, moved.valid, beside.valid);
        let deepest = own.depth.all() & outcome.call & taken.mask.any();
        m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
        m.assert("a_push_has_room", !pushes | count.lt(levels(s)));
        m.assert("sides_that_are_there_are_one", !(taken_is_there & rest_is_there));
        if s.lanes > 1 {
            let one_is_there = taken_is_there | rest_is_there;
            m.cover("both_sides_run", both_go & !pushes);
            m.cover("one_side_is_there", one_is_there);
            m.cover("one_side_is_there_without_a_push", one_is_there & !pushes);
            m.cover("sides_go_to_one_place", outcome.valid & taken_some & rest_some & !apart);
            m.cover("one_arrives_first", arrives & sibling.valid);
            m.cover("meets_where_it_returns", arrives & top.rpc.returns);
            if levels(s) < s.lanes - 1 {
                m.cover("no_level_is_left", full);
            }
        }
        if let Some(f) = top.forwarded {
            let is_own = outcome.valid & f.is(side);
            m.cover("forwarded_parts", is_own & pushes);
            m.cover("forwarded_arrives", is_own & arrives);
            m.cover("forwarded_ends", is_own & !mask.any());
            m.cover("suspends_the_forwarded", pushes & f.is(!side));
        }
        Moved {
            side,
            own,
            sibling,
            moves,
            waits,
            both_go,
            goes_as_taken,
            is_at_takens,
            runs_on,
            full,
            pushes,
            changes,
            pushed,
            stay,
            runs,
            top: after,
        }
    }
}

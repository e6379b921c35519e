//! Whose turn comes next, whose it is, and what an outcome or a wake does: the threads move, and part or meet.

use super::super::levels::{Parting, Sibling, Top, is_at_point, meeting, part_compared};
use super::super::{Announced, Outcome, OutcomeKind, Start, Wake, depth_after};
use super::early::OfOutcome;
use super::state::{Claim, Store, Words};
use heddle_hdl::prelude::*;

/// Whose turn comes next.
pub struct Next {
    /// 1 bit each: a wake may come; it does; a level is popped.
    pub wake_ready: Signal,
    pub woken: Signal,
    pub pops: Signal,
    /// The warp, and how many levels it has.
    pub slot: Signal,
    pub count: Signal,
    /// One bit per warp: it could pop.
    pub could_pop: Signal,
}

/// Whose turn it is.
#[derive(Clone, Copy)]
pub struct Turn {
    /// 1 bit each: a start may come; its turn; a wake's; a pop's.
    pub start_ready: Signal,
    pub starts: Signal,
    pub wakes: Signal,
    pub pops: Signal,
    /// The warp, one-hot too.
    pub slot: Signal,
    pub at: Signal,
    /// Its words.
    pub top: Top<Signal>,
    pub count: Signal,
}

/// What becomes of the top's threads.
pub struct Moved {
    pub parting: Parting,
    /// 1 bit each: it is an outcome or a wake; they wait; they come to where they reconverge with others; none is left.
    pub moves: Signal,
    pub waits: Signal,
    pub arrives: Signal,
    pub ended: Signal,
    /// 1 bit: some are left.
    pub some: Signal,
    /// 1 bit each: they join others at their likely point; they go on. If it is an outcome and they do, it is where those
    /// are that take the branch.
    pub joins: Signal,
    pub runs_on: Signal,
    pub is_at_takens: Signal,
    /// The top then.
    pub top: Top<Signal>,
}

impl Store {
    /// Whose turn comes next: an outcome's, else a wake's, else a pop's. The words of its warp are read.
    pub fn claim_next(&self, announced: &Announced<Signal>, wake: &Wake<Signal>) -> Next {
        let Store { m, s, .. } = self;
        let claim = self.claim.q;
        let Announced { valid: announced, slot: announced_slot, call, ret } = *announced;
        wire!(wake_ready = !announced & m.lit(s.barriers, 1));
        wire!(woken = wake.valid & wake_ready);
        wire!(could_pop = self.popping.q & !claim.slot.decode(s.warps).only_if(claim.pop));
        wire!(pops_next = !announced & !woken & could_pop.any());
        let asked = [(announced, announced_slot), (wake.valid & m.lit(s.barriers, 1), wake.slot)];
        wire!(next_slot = pick(asked, could_pop.lowest_one().one_hot_index()));
        self.claim.next(Claim { slot: next_slot, outcome: announced, wake: woken, pop: pops_next });
        let top = self.tops.read(next_slot);
        let count = self.counts.read(next_slot);
        self.words.next(Words {
            top,
            after: depth_after(announced & call, announced & ret, top.depth),
            threads: self.threads.read(next_slot),
            count,
        });
        Next { wake_ready, woken, pops: pops_next, slot: next_slot, count, could_pop }
    }

    /// Whose turn it is.
    pub fn turn(&self, start: &Start<Signal>) -> Turn {
        let (claim, words) = (self.claim.q, self.words.q);
        let (pops, wakes) = (claim.pop, claim.wake);
        wire!(start_ready = !claim.outcome & !pops & !wakes);
        wire!(starts = start.valid & start_ready);
        wire!(slot = start_ready.mux(start.slot, claim.slot));
        wire!(count = words.count.only_if(!start_ready));
        Turn { start_ready, starts, wakes, pops, slot, at: slot.decode(self.s.warps), top: words.top, count }
    }

    /// What its outcome or wake does.
    pub fn moved(&self, turn: &Turn, outcome: &Outcome<Signal>) -> Moved {
        let Store { m, s, .. } = self;
        let &Turn { wakes, top, count, .. } = turn;
        let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads reconverge") };
        let (claim, taken_depth) = (self.claim.q, self.words.q.after);
        let OfOutcome { compared, is_at_takens, at_point } = self.compare(outcome, taken_depth, &top);
        let parting = part_compared(*m, s, outcome, taken_depth, top, count, compared);
        let Parting { parts, same_group, taken_is_there, towards, stay, .. } = parting;
        let (taken, rest) = (outcome.taken, outcome.rest);
        let valid = outcome.valid;
        let went = Sibling { valid, pc: taken.pc, depth: taken_depth, mask: taken.mask };
        let stayed = Sibling { valid, pc: rest.pc, depth: top.depth, mask: rest.mask };
        let here = Sibling { valid, pc: top.pc, depth: top.depth, mask: top.mask };
        let Sibling { pc, depth, .. } = claim.outcome.mux(is_at_takens.mux(went, stayed), here);
        wire!(moves = outcome.valid | wakes);
        wire!(waits = outcome.valid & outcome.kind.eq(OutcomeKind::Wait));
        wire!(is_there = claim.outcome.mux(parting.is_at_tops, top.rpc.reached(top.pc, top.depth)));
        wire!(arrives = moves & !waits & !parts & is_there);
        // Who comes first to a place that is not known yet is of those that take the branch: `found` has their pc.
        let found_by_rest = outcome.valid & arrives & !top.rpc.known & !taken.mask.any();
        m.assert("an_unknown_place_is_found_by_the_taken", !found_by_rest);
        let found = (arrives | taken_is_there, claim.outcome.mux(taken.pc, top.pc));
        let found = meeting(meets, top.depth, top.rpc, parts & !same_group, found);
        let (of_taken, of_rest) = (parts & !parting.goes_as_taken, parts & parting.goes_as_taken);
        let of_outcome = (taken.mask & !of_taken.repeat(s.lanes)) | (rest.mask & !of_rest.repeat(s.lanes));
        let mask = claim.outcome.mux(of_outcome, top.mask);
        let moved = Top { pc, depth, mask, rpc: found, likely: top.likely.map(|_| towards) };
        let [at_parted, at_tops] = at_point;
        let here_at = is_at_point(&top).unwrap_or(m.lit(0u32, 1));
        let unparted = claim.outcome.mux(at_tops, here_at);
        let some = claim.outcome.mux(stay.any(), top.mask.any());
        // Those who part do not arrive; those who do have come further than their likely point.
        wire!(joins = moves & !waits & parts.mux(at_parted, unparted & !is_there));
        wire!(runs_on = moves & !waits & some & parts.mux(!at_parted, !unparted & !(is_there & count.any())));
        wire!(ended = moves & !some);
        Moved { parting, moves, waits, arrives, joins, is_at_takens, runs_on, ended, some, top: moved }
    }
}

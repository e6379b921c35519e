//! What a turn writes: the levels, the top, and what is known of the warp.

use super::super::levels::{self, Level, Likely, Parting, Pop, Rpc, Top, is_at_point, pc_of, stop_of};
use super::super::{Outcome, Refused, Start, Steer};
use super::state::Store;
use super::turn::{Moved, Next, Turn};
use crate::isa::FaultCause;
use heddle_hdl::prelude::*;

/// A pop, of a level that was read in the cycle before.
pub struct Popped {
    pub head: Level<Signal>,
    pub pop: Pop<Signal>,
    /// 1 bit each: who comes joins others at their likely point; who comes goes on.
    joins: Signal,
    runs_on: Signal,
    /// 1 bit: nothing is left of the level.
    consumed: Signal,
}

/// What is written.
pub struct Updated {
    /// The threads that come to the top, and the top: without those that join others at their likely point.
    pub comes: Top<Signal>,
    pub top: Top<Signal>,
    pub joins: Signal,
    /// Levels that are left.
    pub left: Signal,
    /// 1 bit each: a level is to be popped, after a pop; something is written; the warp ends.
    pub pops_again: Signal,
    must_pop: Signal,
    pub updates: Signal,
    pub ends: Signal,
    /// Its threads.
    pub threads: Signal,
    /// 1 bit: they wait at a barrier, and others of their warp do not.
    pub part_waits: Signal,
    /// One bit per warp: all its threads wait; who was woken in the cycle before waits no more.
    pub still_waiting: Signal,
    pub refused: Refused<Signal>,
}

impl Store {
    /// Pops a level, which stays until nothing is left of it; or pushes the one that a branch leaves.
    pub fn pop(&self, turn: &Turn, next: &Next, parting: &Parting) -> Popped {
        let Store { m, s, .. } = self;
        let &Turn { pops, slot, top, count, .. } = turn;
        let &Parting { pushes, pushed, .. } = parting;
        let remaining = self.words.q.threads;
        let address = |level: Signal| self.entry_of(level, slot);
        let mut joins = m.lit(0u32, 1);
        let (head, pop) = if let Some(levels) = &self.levels {
            let read = self.entry_of(next.count - 1, next.slot);
            let head = levels.read_sync_if(next.pops, read, Collision::Never);
            let gathered = self.gathered.as_ref();
            let at_point = gathered.map_or(m.lit(0u32, s.lanes), |gathered| gathered.read(address(count - 1)));
            let pop = levels::pop(*m, s, top, head, at_point, remaining, pops);
            let early = self.compare_popped(&top, &head, at_point, &pop);
            m.assert("arrives_again_as_compared", !pops | early.arrives_again.eq(pop.arrives_again));
            let told = |rpc: Rpc<Signal>| Rpc { pc: rpc.pc.only_if(rpc.known), ..rpc };
            let same = told(early.rpc).same_as(told(pop.top.rpc));
            m.assert("reconverges_as_compared", !pops | pop.nobody | !early.rpc.valid | same);
            joins = pops & early.at_point & !early.arrives_again;
            let popped = Pop { top: Top { rpc: early.rpc, ..pop.top }, arrives_again: early.arrives_again, ..pop };
            let writes = pushes | (pops & popped.stays);
            levels.write(writes, address(pushes.mux(count, count - 1)), pushes.mux(pushed, popped.left));
            (head, popped)
        } else {
            (m.zero(Level::shape(s)), m.zero(Pop::shape(s)))
        };
        wire!(consumed = pops & !pop.stays);
        let others_left = pop.stays | count.ne(1);
        let runs_on = pops & !pop.nobody & !joins & !(pop.arrives_again & others_left);
        Popped { head, pop, joins, runs_on, consumed }
    }

    /// 1 bit: those who come join the ones at their likely point.
    fn join(&self, turn: &Turn, moved: &Moved, popped: &Popped, comes: &Top<Signal>) -> Signal {
        let Store { m, s, .. } = self;
        let &Turn { pops, slot, .. } = turn;
        let &Moved { moves, waits, arrives, .. } = moved;
        let Parting { gathers, towards, .. } = moved.parting;
        let next_point = comes.likely.unwrap_or(m.zero(Likely::shape(s)));
        let at_point = is_at_point(comes).unwrap_or(m.lit(0u32, 1));
        let pop = &popped.pop;
        let may_join = (moves & !waits & !arrives) | (pops & !pop.arrives_again);
        wire!(joins = moved.joins | popped.joins);
        m.assert("those_at_their_point_join", joins.eq(may_join & at_point));
        if let Some(gathered) = &self.gathered {
            // Of those that a pop lets run, only such with the outer point can be there.
            wire!(joined = pops.mux(pop.outer.level, towards.level));
            m.assert("the_point_is_that_of_its_level", !joins | joined.eq(next_point.level));
            let entry = self.entry_of(joined, slot);
            let before = gathered.read(entry);
            gathered.write(gathers | joins, entry, before.only_if(!gathers) | comes.mask.only_if(joins));
            m.assert("nobody_comes_to_a_point_twice", !(joins & !gathers) | !(before & comes.mask).any());
        }
        joins
    }

    /// Writes the top that follows, and what is known of the warp.
    pub fn update(
        &self,
        turn: &Turn,
        start: &Start<Signal>,
        outcome: &Outcome<Signal>,
        moved: &Moved,
        popped: &Popped,
    ) -> Updated {
        let Store { m, s, live, popping, .. } = self;
        let &Turn { starts, pops, slot, at, top, count, .. } = turn;
        let &Moved { moves, arrives, ended, .. } = moved;
        let Parting { pushes, stay, .. } = moved.parting;
        let begun = Top { pc: start.pc, mask: start.mask, ..m.zero(Top::shape(s)) };
        let comes = pick([(starts, begun), (pops, popped.pop.top)], moved.top);
        let joins = self.join(turn, moved, popped, &comes);
        let after = Top { mask: comes.mask & !joins.repeat(s.lanes), ..comes };
        let left = count + pushes.zext(count.width()) - popped.consumed.zext(count.width());
        let nobody = popped.pop.nobody;
        let others_left = popped.pop.stays | count.ne(1);
        wire!(pops_again = pops & (popped.pop.arrives_again | popped.joins | nobody) & others_left);
        wire!(moves_to_a_pop = (arrives | ended | moved.joins) & (pushes | count.any()));
        wire!(must_pop = moves_to_a_pop | pops_again);
        wire!(updates = moves | pops | starts);
        self.tops.write(updates, slot, after);
        self.counts.write(outcome.valid | pops | starts, slot, left);
        // Nothing is decoded of a slot in the cycle behind its steering.
        let stop = stop_of(m.pipe("updated_top", after));
        self.stops.write(m.pipe_reset("updated", updates), m.pipe("updated_slot", slot), stop);
        let remaining = self.words.q.threads;
        wire!(threads_after = starts.mux(start.mask, remaining & !(top.mask & !stay)));
        self.threads.write(outcome.valid | starts, slot, threads_after);
        // Those who join others are not the top, but have a level below.
        let some = pick([(starts, start.mask.any()), (pops, !nobody)], moved.some) & !joins;
        wire!(ends = updates & !must_pop & !some);
        live.next_if(updates, (live.q & !at) | at.only_if(!ends));
        popping.next_if(updates, (popping.q & !at) | at.only_if(must_pop));
        let (part_waits, still_waiting, refused) = self.wait(turn, outcome, moved, updates);
        Updated {
            comes,
            top: after,
            joins,
            left,
            pops_again,
            must_pop,
            updates,
            ends,
            threads: threads_after,
            part_waits,
            still_waiting,
            refused,
        }
    }

    /// Who waits at a barrier. Threads on levels below never come: where only a part of a warp does, that is refused,
    /// and so is a branch that finds no level left.
    fn wait(
        &self,
        turn: &Turn,
        outcome: &Outcome<Signal>,
        moved: &Moved,
        updates: Signal,
    ) -> (Signal, Signal, Refused<Signal>) {
        let m = self.m;
        let &Turn { wakes, at, top, .. } = turn;
        let waits = moved.waits;
        wire!(part_waits = waits & (outcome.rest.mask.any() | (self.words.q.threads & !top.mask).any()));
        if let Some(parked) = self.parked {
            parked.next_if(updates, (parked.q & !at) | at.only_if(waits & !part_waits));
        }
        wire!(still_waiting = self.waiting() & !at.only_if(wakes));
        let cause = part_waits.mux(m.code(FaultCause::BarrierOfAPart), m.code(FaultCause::StackOverflow));
        (part_waits, still_waiting, Refused { valid: part_waits | moved.parting.full, cause, because: None })
    }

    /// The warp is steered to its top, unless it pops, waits or has ended.
    pub fn steer(
        &self,
        turn: &Turn,
        (start, outcome): (&Start<Signal>, &Outcome<Signal>),
        moved: &Moved,
        popped: &Popped,
        updated: &Updated,
    ) -> Steer<Signal> {
        let m = self.m;
        let &Turn { start_ready, starts, slot, top, .. } = turn;
        let &Updated { updates, must_pop, ends, top: after, .. } = updated;
        let Pop { to_sibling, to_point, .. } = popped.pop;
        let claim = self.claim.q;
        let point = top.likely.map_or(top.rpc.pc, |point| to_point.mux(point.pc, top.rpc.pc));
        // If `valid` is off, it means nothing.
        let pc = pc_of(&[
            (claim.outcome & moved.is_at_takens, outcome.taken.pc),
            (claim.outcome & !moved.is_at_takens, outcome.rest.pc),
            (claim.pop & to_sibling, popped.head.sibling.pc),
            (claim.pop & !to_sibling, point),
            (claim.wake, top.pc),
            (start_ready, start.pc),
        ]);
        wire!(valid = (starts & start.mask.any()) | moved.runs_on | popped.runs_on);
        m.assert("steers_who_goes_on", valid.eq(updates & !must_pop & !moved.waits & !ends));
        m.assert("steers_to_the_top", !valid | pc.eq(after.pc));
        Steer { valid, slot, pc, replay: m.lit(0u32, 1) }
    }
}

//! What a warp is after its turn: its words, and whether it lives, waits, and has a level to pop.

use super::super::levels::Sibling;
use super::super::{Outcome, Refused, Start};
use super::forwarding::Forwarded;
use super::pop::Popped;
use super::state::{Stops, Store, Top};
use super::turn::{Moved, Turn};
use crate::isa::FaultCause;
use heddle_hdl::prelude::*;

/// The warp that had the turn.
pub struct Updated {
    /// 1 bit: its words are others.
    pub updates: Signal,
    pub top: Top<Signal>,
    /// Levels in use.
    pub count: Signal,
    pub threads: Signal,
    /// 1 bit: it has no threads more.
    pub ends: Signal,
    pub refused: Refused<Signal>,
    /// One bit per warp: it waits; and was not woken in this cycle.
    pub waiting: Signal,
    pub still_waiting: Signal,
    /// What is written into the stops in this cycle, if it is: enable, warp, word.
    pub next_stops: (Signal, Signal, Stops<Signal>),
}

impl Store {
    /// Writes the words.
    pub fn update(
        &self,
        turn: &Turn,
        start: &Start<Signal>,
        outcome: &Outcome<Signal>,
        moved: &Moved,
        popped: &Popped,
    ) -> Updated {
        let Store { m, s, tops, counts, live, popping, .. } = self;
        let m = *m;
        let Turn { starts, wakes, pops, takes, warp, at, count, .. } = *turn;
        let Moved { moves, waits, own, stay, pushes, full, .. } = *moved;
        let one = m.lit(1u32, 1);
        let count_bits = count.width();
        let head = &popped.head;
        let renews = turn.renews();
        let drops = takes.map_or(pops, |takes| pops | (takes & !head.group.valid));

        let lowest = m.zero(Top::shape(s));
        let begun = Sibling { valid: one, pc: start.pc, mask: start.mask, ..m.zero(Sibling::shape(s)) };
        let forwarded = lowest.forwarded.map(|nothing| Forwarded { taken: one, ..nothing });
        let begun = Top { left: begun, forwarded, ..lowest };
        let after = pick([(starts, begun), (renews, popped.top)], moved.top);
        wire!(runs = pick([(starts, one), (renews, popped.top.runs())], moved.runs));
        let left = count + pushes.zext(count_bits) - drops.zext(count_bits);
        wire!(updates = moves | renews | starts);
        wire!(must_pop = updates & !runs & left.any());
        wire!(pops_again = pops & must_pop);
        tops.write(updates, warp, after);
        counts.write(outcome.valid | renews | starts, warp, left);
        let remaining = self.words.q.threads;
        wire!(threads_after = starts.mux(start.mask, remaining & !(own.mask & !stay)));
        self.threads.write(outcome.valid | starts, warp, threads_after);
        wire!(ends = updates & !must_pop & !runs);
        live.next_if(updates, (live.q & !at) | at.only_if(!ends));
        popping.next_if(updates, (popping.q & !at) | at.only_if(must_pop));
        // Threads on levels below, or on the other side, never come.
        wire!(part_waits = waits & (outcome.rest.mask.any() | (remaining & !own.mask).any()));
        let waiting = self.parked.as_ref().map_or(m.lit(0u32, s.warps), |parked| {
            parked.next_if(updates, (parked.q & !at) | at.only_if(waits & !part_waits));
            parked.q
        });
        // Who was woken in the cycle before waits no more.
        wire!(still_waiting = waiting & !at.only_if(wakes));
        let cause = part_waits.mux(m.code(FaultCause::BarrierOfAPart), m.code(FaultCause::StackOverflow));
        let refuses = part_waits | full;
        if let Some(lends) = &self.lends {
            // A warp that was refused something stays as it is.
            wire!(room = after.has_room() & !refuses);
            lends.next_if(updates, (lends.q & !at) | at.only_if(room));
        }

        if s.lanes > 1 {
            m.cover("pops_again", pops_again);
            if s.barriers {
                m.cover("part_of_a_warp_waits", part_waits);
            }
        }
        if let (Some(f), Some(after)) = (turn.top.forwarded, after.forwarded) {
            m.cover("forwarded_is_still", pops & f.valid & after.is(f.right));
            m.cover("pops_again_beside_the_forwarded", pops_again & f.valid);
        }
        m.cover("warp_ends", ends);
        Updated {
            updates,
            top: after,
            count: left,
            threads: threads_after,
            ends,
            refused: Refused { valid: refuses, cause, because: None },
            waiting,
            still_waiting,
            next_stops: self.write_stops(updates, warp, after),
        }
    }

    /// What decode must know of a warp, a cycle later: nothing is decoded of a slot in the cycle behind its steering.
    fn write_stops(&self, updates: Signal, warp: Signal, after: Top<Signal>) -> (Signal, Signal, Stops<Signal>) {
        let m = self.m;
        let decoded = m.pipe("updated_top", after);
        let rpcs = [0u32, 1].map(|right| decoded.rpc_of(m.lit(right, 1)));
        let [left, right] = [0, 1].map(|side| {
            let path = [decoded.left, decoded.right][side];
            path.valid & rpcs[side].is_ahead(path.depth)
        });
        let right_pc = decoded.forwarded.map(|_| rpcs[1].pc);
        let updated = (m.pipe_reset("updated", updates), m.pipe("updated_warp", warp));
        let next = Stops { left, right, pc: rpcs[0].pc, right_pc };
        self.stops.write(updated.0, updated.1, next);
        (updated.0, updated.1, next)
    }

    /// That no thread is lost or doubled by a turn. Returns the live threads of each warp, as the checks know them.
    pub fn check_update(&self, turn: &Turn, outcome: &Outcome<Signal>, updated: &Updated) -> Mem<Width> {
        let Store { m, s, .. } = self;
        let Turn { starts, wakes, warp, .. } = *turn;
        let Updated { updates, top: after, count: left, threads: threads_after, .. } = *updated;
        let renews = turn.renews();
        let ghost_live = m.memory("ghost_live", s.lanes, s.warp_bits());
        ghost_live.write(outcome.valid | starts, warp, threads_after);
        let overlap = (after.left.mask & after.right.mask).any();
        m.assert("sides_are_apart", !(updates & after.left.valid & after.right.valid) | !overlap);
        wire!(live_after = (renews | wakes).mux(ghost_live.read(warp), threads_after));
        let masks = after.left.mask.only_if(after.left.valid) | after.right.mask.only_if(after.right.valid);
        m.assert("paths_have_live_threads", !updates | !(masks & !live_after).any());
        m.assert("the_lowest_have_all_threads", !(updates & !left.any() & !after.rpc.valid) | masks.eq(live_after));
        ghost_live
    }
}

//! What slots run, out of what starts, is formed, goes on or goes ahead; and which threads live, run and have arrived
//! then.

use super::super::levels::{Top, stop_of};
use super::super::{Start, Steer};
use super::act::Acting;
use super::ahead::{Arriving, Others};
use super::arrive::Arrival;
use super::form::Forming;
use super::state::{Mixing, Store, Warp};
use heddle_hdl::prelude::*;

impl Store {
    /// Writes the slot that is steered; the three have their turns one at a time.
    pub fn run(&self, starts: &Start<Signal>, arrival: &Arrival, forming: &Forming) -> Steer<Signal> {
        let Store { m, s, wide, .. } = self;
        let m = *m;
        let &Arrival { going, passing, passes, parks, alone, goes_on, goes_ahead, of_slot, .. } = arrival;
        let warp = of_slot.warp;
        let lanes_of = |top: Top<Signal>| Top { mask: warp.mask, ..top };
        let begun = Top { pc: starts.pc, ..m.zero(Top::shape(wide)) };
        let fresh = starts.valid | forming.valid;
        let new = starts.valid.mux(lanes_of(begun), lanes_of(forming.top));
        let runs = fresh.mux(new, going.map_or(alone, |going| going.goes.mux(going.at, alone)));
        let slot = pick([(starts.valid, starts.slot), (forming.valid, forming.into)], arrival.arriving.outcome.slot);
        let at_start = Warp { mask: starts.mask, homes: s.homes_bits().map(|_| starts.slot.repeat(s.lanes)) };
        let part_of_it = Warp { mask: going.map_or(warp.mask, |going| going.side.mask), ..warp };
        let written = pick([(starts.valid, at_start), (forming.valid, forming.warp)], part_of_it);
        self.warps.write(fresh | goes_ahead, slot, written);
        wire!(steers = fresh | goes_on | goes_ahead);
        self.depths.write(steers, slot, runs.depth);
        // Each is found before it is known which of them counts.
        let if_alone = passing.map_or(stop_of(alone), |passing| passes.mux(passing.stop, stop_of(alone)));
        let if_not_new = going.map_or(if_alone, |going| going.goes.mux(going.stop, if_alone));
        let stop = fresh.mux(stop_of(new), if_not_new);
        self.stops.write(steers | parks, slot, stop);
        Steer { valid: steers, slot, pc: runs.pc, replay: m.lit(0u32, 1) }
    }

    /// The bits of slots and threads, after all that.
    pub fn follow(&self, starts: &Start<Signal>, arrival: &Arrival, acting: &Acting, forming: &Forming) {
        let Store { s, running, arrived, recorded, taken, rest, live, .. } = self;
        let &Arrival { arrives, goes_ahead, exits, records, moved, .. } = arrival;
        let Arriving { outcome, block, .. } = arrival.arriving;
        let due = &acting.due;
        let slot = pick([(starts.valid, starts.slot), (forming.valid, forming.into)], outcome.slot);
        let begins = self.bit(slot, starts.valid | forming.valid);
        running.next((running.q | begins) & !self.bit(outcome.slot, arrives & !goes_ahead));
        let begun_here = due.slots.only_if(due.begins);
        arrived.next((arrived.q | self.bit(outcome.slot, arrives)) & !begun_here);
        recorded.next((recorded.q | self.bit(block, records)) & !begun_here);
        let clears = due.columns.only_if(due.begins);
        wire!(now_taken = (taken.q | arrival.joins_taken) & !clears);
        wire!(now_rest = (rest.q | arrival.joins_rest) & !clears);
        taken.next(now_taken);
        rest.next(now_rest);
        let homes = s.homes_bits().map(|_| starts.slot.repeat(s.lanes));
        let begins_live = self.spread(starts.mask, homes, starts.slot).only_if(starts.valid);
        wire!(now_live = (live.q | begins_live) & !moved.only_if(exits));
        live.next(now_live);
        if let Some(Mixing { regrouped, not_taken, not_rest }) = &self.mixing {
            regrouped.next((regrouped.q & !begins) | self.bit(forming.into, forming.valid & !forming.fixed));
            not_taken.next(self.static_warps(now_live & !now_taken));
            not_rest.next(self.static_warps(now_live & !now_rest));
        }
    }

    /// What follows for those that are ahead. One bit per slot: its warp is ahead no longer.
    pub fn follow_ahead(&self, arrival: &Arrival, acting: &Acting, forming: &Forming, restart: Signal) -> Signal {
        let Store { m, running, live, .. } = self;
        let (Some(ahead), Some(going), Some(turn)) = (&self.ahead, arrival.going, acting.turn) else {
            return self.ahead_slots();
        };
        ahead.check(*m, Others { running: running.q, live: live.q, forming: forming.threads });
        let goes = self.spread(going.side.mask, arrival.of_slot.warp.homes, arrival.arriving.outcome.slot);
        let passes = (arrival.passes, arrival.parks);
        ahead.follows(*m, (&arrival.arriving, going, goes), passes, turn, restart)
    }
}

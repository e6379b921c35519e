//! Where the sorted paths of a turn go.

use super::cct::{CctIn, Context};
use super::claim::Next;
use super::convergence::TableIn;
use super::state::Store;
use super::turn::{Sorted, Turn};
use crate::divergence::fairness::Told;
use crate::divergence::{Hints, Outcome, Start, Stop};
use heddle_hdl::prelude::*;

impl Store {
    /// Writes x, y and z to the tables. Where paths give way, returns whether all that could run have: now they have not, a
    /// new round.
    pub fn update(
        &self,
        next: &Next,
        turn: &Turn,
        sorted: &Sorted,
        (start, outcome): (&Start<Signal>, &Outcome<Signal>),
    ) -> Option<Signal> {
        let Store { s, cold, .. } = self;
        let claim = turn.claim;
        let &Turn { starts, wakes, updates, slot, at, phase, releases, .. } = turn;
        let &Sorted { ref ccs, c, parked, x, x_waits, x_parks, .. } = sorted;
        let (y, z) = (ccs.y, ccs.z);
        wire!(phase_changes = wakes | starts);
        wire!(next_phase = wakes & !phase);
        if let Some(phases) = &self.phases {
            phases.write(phase_changes, slot, next_phase);
        }
        self.live.next_if(updates, (self.live.q & !at) | at.only_if(x.valid));
        wire!(x_changes = updates | (cold.swap & parked));
        self.hct0.write(x_changes, slot, Context::of(self.kept(turn, x)));
        wire!(y_changes = updates | cold.swap);
        let new_y = self.kept(turn, y);
        if let Some(hct1) = &self.hct1 {
            hct1.write(y_changes, slot, new_y);
        }
        self.stops.write(y_changes, slot, Stop { valid: ccs.y_ahead, pc: y.pc });
        if let Some(cold_in) = &self.cold_in {
            cold_in.drive(CctIn {
                announced: claim.outcome,
                outcome: outcome.valid | releases,
                start: starts,
                wake: wakes,
                sort: claim.sort,
                gives_way: turn.gives_way,
                stale: self.stale.q,
                slot: claim.slot,
                start_slot: start.slot,
                next_slot: next.slot,
                has_y: c.valid,
                alone: x.valid & !y.valid,
                x_waits: x_parks,
                z: self.kept(turn, z),
                before_y: if s.may_park() { ccs.b_before_c & z.valid } else { ccs.b_before_c },
            });
        }
        let seen = if self.cold_in.is_some() { cold.seen } else { updates };
        if let Some(waiting) = &self.waiting {
            wire!(all_wait = x_waits & seen);
            waiting.next_if(updates | wakes | all_wait, (waiting.q & !at) | at.only_if(all_wait));
        }
        self.rounds.as_ref().zip(turn.round).map(|(rounds, round)| {
            wire!(new_round = x.valid & x.is_late(s) & (wakes | (seen & !x.waits)));
            let from_first = if s.fair { starts | wakes } else { starts };
            rounds.write(new_round | from_first, slot, new_round & !round);
            new_round
        })
    }

    /// Goes on with who gives way, where paths do. Returns, 1 bit each: patience of the outcome's slot is over; its path
    /// gives way.
    pub fn give_way(
        &self,
        (turn, sorted): (&Turn, &Sorted),
        (start, outcome): (&Start<Signal>, &Outcome<Signal>),
        new_round: Option<Signal>,
    ) -> Option<(Signal, Signal)> {
        let fairness = self.fairness.as_ref()?;
        Some(fairness.goes_on(&self.told((turn, sorted), (start, outcome), new_round)))
    }

    /// What of a turn tells time.
    pub fn told(
        &self,
        (turn, sorted): (&Turn, &Sorted),
        (start, outcome): (&Start<Signal>, &Outcome<Signal>),
        new_round: Option<Signal>,
    ) -> Told {
        Told {
            outcome: outcome.valid,
            slot: outcome.slot,
            at_once: self.queues(outcome),
            lasts: sorted.lasts,
            turn: turn.updates,
            turn_slot: turn.slot,
            alone: !sorted.ccs.y.valid & !self.cold.count.any(),
            new_round: new_round.expect("rounds where paths give way"),
            wakes: turn.wakes,
            start: turn.starts,
            start_slot: start.slot,
            holding: self.barriers.map(|barriers| barriers.holding),
        }
    }

    /// Tells the convergence barriers, if there are any, what the list does.
    pub fn tell_barriers(
        &self,
        hints: Option<Hints<Signal>>,
        (turn, sorted): (&Turn, &Sorted),
        (start, outcome): (&Start<Signal>, &Outcome<Signal>),
        tick: Option<Signal>,
    ) {
        let Store { m, s, cold, .. } = self;
        let Some(inputs) = &self.barriers_in else { return };
        let hints = hints.expect("told of instructions on convergence barriers");
        let stay = outcome.taken.mask | outcome.rest.mask;
        inputs.drive(TableIn {
            depth: self.call_depth(self.hct0.read(hints.ahead.slot).depth),
            hints,
            outcome: outcome.valid,
            outcome_slot: outcome.slot,
            ended: sorted.active.mask & !stay,
            tick: tick.expect("time where threads wait"),
            free: turn.claim.release & !turn.announced_here & !self.stale.q,
            start: turn.starts,
            start_slot: start.slot,
            start_mask: start.mask,
            stopped: !self.live.q | self.waiting(),
            busy: cold.busy.unwrap_or(m.lit(0u32, s.warps)),
        });
    }
}

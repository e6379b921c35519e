//! Cycle 0: whose turn it is, and what that writes to the tables.

use super::super::{OutcomeKind, UnitIn, depth_after};
use super::lane::{LaneIn, Place};
use super::state::{Active, Store};
use super::trees::Passes;
use heddle_hdl::{all, each, prelude::*};

/// A turn: an outcome's, else a start's, else a wake's.
pub struct Turn {
    /// 1 bit each: a start may come, a wake may; it does.
    pub start_ready: Signal,
    pub wake_ready: Signal,
    pub starts: Signal,
    pub wakes: Signal,
    /// The warp.
    pub slot: Signal,
    /// What runs of the outcome's warp.
    pub running: Active<Signal>,
    /// Where threads go: those of the outcome that take the branch, and the others; those that start.
    pub taken: Place<Signal>,
    pub rest: Place<Signal>,
    begun: Place<Signal>,
    /// The phase of the warp, and its round.
    phase: Signal,
    round: Option<Signal>,
    /// Threads of the outcome that have not ended.
    pub stay: Signal,
    /// Fair, 1 bit each: the path keeps its turn for a sequence; it has given way.
    pub lasts: Option<Signal>,
    pub late: Option<Signal>,
}

impl Store {
    /// Whose turn it is.
    pub fn turn(&self, i: &UnitIn<Signal>) -> Turn {
        let Store { m, s, fairness, sequences, .. } = self;
        let UnitIn { start, wake, outcome, .. } = i;
        wire!(start_ready = !outcome.valid);
        wire!(starts = start.valid & start_ready);
        wire!(wake_ready = start_ready & !start.valid & m.lit(s.barriers, 1));
        wire!(wakes = wake.valid & wake_ready);
        wire!(slot = pick([(outcome.valid, outcome.slot), (start.valid, start.slot)], wake.slot));
        wire!(phase = self.phase_of(slot));
        if let Some(phases) = &self.phases {
            phases.write(wakes, slot, !phase);
        }
        wire!(running = self.active.read(outcome.slot));
        let depth = depth_after(outcome.call, outcome.ret, running.depth);
        let waits = outcome.kind.eq(OutcomeKind::Wait);
        let runs = m.lit(0u32, 1);
        let lasts = fairness
            .as_ref()
            .zip(sequences.as_ref())
            .zip(i.sequence)
            .map(|((fairness, sequences), told)| sequences.goes_on(told, outcome, fairness.is_due(outcome.slot)));
        let late = fairness.as_ref().map(|fairness| fairness.gives_way(outcome.slot, lasts, None));
        let never = late.map(|_| runs);
        // Who waits has not given way.
        let taken_late = late.map(|late| if s.barriers { late & !waits } else { late });
        let taken = Place { depth, pc: outcome.taken.pc, late: taken_late, waits };
        let rest = Place { depth: running.depth, pc: outcome.rest.pc, late, waits: runs };
        let begun = Place { depth: depth.literal(0u32), pc: start.pc, late: never, waits: runs };
        wire!(round = self.round_of(slot).map(|round| round & outcome.valid));
        wire!(stay = outcome.taken.mask | outcome.rest.mask);
        Turn {
            start_ready,
            wake_ready,
            starts,
            wakes,
            slot,
            running,
            taken,
            rest,
            begun,
            phase,
            round,
            stay,
            lasts,
            late,
        }
    }

    /// What goes to the lanes: what is written; the warps that enter the first tree and leave it, with the `first` of
    /// the latter.
    pub fn lane_in(&self, i: &UnitIn<Signal>, turn: &Turn, passes: &Passes, first: Signal) -> LaneIn<LaneInput> {
        let Store { m, s, .. } = self;
        let UnitIn { start, outcome, .. } = i;
        let &Turn { starts, slot, running, taken, rest, begun, phase, round, stay, .. } = turn;
        let stored = |p: Place<Signal>| {
            let waits = if s.barriers { p.waits ^ phase } else { m.lit(0u32, 1) };
            Place { waits, ..p.of_round(round) }
        };
        let (entering, leaving) = (passes.entering(), passes.leaving());
        wire!(threads_written = outcome.valid.mux(running.mask, starts.repeat(s.lanes)));
        let sides = s.has_metrics().then(|| m.pipe("sides", [taken.rank(), rest.rank()]));
        LaneIn {
            write: each(threads_written),
            slot: all(slot),
            valid: each(outcome.valid.mux(stay, start.mask)),
            goes: each(outcome.taken.mask | starts.repeat(s.lanes)),
            taken: all(stored(outcome.valid.mux(taken, begun))),
            rest: all(stored(rest)),
            entering: all(entering.slot),
            entering_phase: all(self.phase_of(entering.slot)),
            entering_round: self.round_of(entering.slot).map(all),
            leaves: all(leaving.valid),
            leaving: all(leaving.slot),
            leaving_phase: all(self.phase_of(leaving.slot)),
            leaving_round: self.round_of(leaving.slot).map(all),
            first: all(first),
            sides: sides.map(|sides| sides.map(all)),
        }
    }
}

//! Whose turn it is, and the three paths that pass the compact-and-sort unit in it.

use super::ccs::{CcsIn, CcsOut, Stacks, ccs};
use super::claim::Next;
use super::convergence::Release;
use super::state::{Claim, Store};
use crate::divergence::{Announced, Outcome, OutcomeKind, Path, SequenceTold, Start, Steer, Wake};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Whose turn it is.
#[derive(Clone, Copy)]
pub struct Turn {
    /// What was claimed in the cycle before.
    pub claim: Claim<Signal>,
    pub starts: Signal,
    pub start_ready: Signal,
    pub returns: Signal,
    pub wakes: Signal,
    pub releases: Signal,
    /// 1 bit: an outcome, a return, a start or a release, which write x.
    pub updates: Signal,
    /// Whose it is, and its bit.
    pub slot: Signal,
    pub at: Signal,
    /// 1 bit: somebody else may have the next turn, and needs the tables as they are: of this slot, or wherever the
    /// warden is.
    pub gives_way: Signal,
    /// 1 bit: an outcome of the slot is announced.
    pub announced_here: Signal,
    /// 1 bit: the slot has paths; the phase and the round of its paths.
    pub live: Signal,
    pub phase: Signal,
    pub round: Option<Signal>,
    pub seen: Seen,
}

/// What the CCS is told of the slot whose words were read, 1 bit each. With convergence barriers it is known late whether
/// a start is taken: then the CCS sorts that slot's paths all the same, and the new path takes the place of what comes
/// out.
#[derive(Clone, Copy)]
pub struct Seen {
    pub live: Signal,
    pub phase: Signal,
    pub round: Option<Signal>,
    /// An outcome or a return.
    pub begins: Signal,
}

/// What passes the CCS, and what comes of it.
#[derive(Clone, Copy)]
pub struct Sorted {
    /// The path in HCT0, and without call depths' upper bit its depth.
    pub active: Path<Signal>,
    pub depth: Signal,
    /// The threads of the outcome that go on now.
    pub goes: Signal,
    pub a: Path<Signal>,
    pub b: Path<Signal>,
    pub c: Path<Signal>,
    /// 1 bit: HCT0 is kept where it is but for a path that can run, for its own waits or has given way.
    pub parked: Signal,
    pub ccs: CcsOut<Signal>,
    pub x: Path<Signal>,
    /// 1 bit: x waits; and it does not run, for it waits or has given way.
    pub x_waits: Signal,
    pub x_parks: Signal,
    /// Where something is kept of them, 1 bit: the outcome is in an LR/SC sequence, which lasts.
    pub lasts: Option<Signal>,
}

impl Store {
    /// Whose turn it is. A start needs nothing of the tables, and its slot is not that of the words.
    pub fn turn(
        &self,
        next: &Next,
        (start, wake): (&Start<Signal>, &Wake<Signal>),
        outcome: &Outcome<Signal>,
        announced: &Announced<Signal>,
    ) -> Turn {
        let Store { m, s, cold, .. } = self;
        let (claim, words, no) = (self.claim.q, self.words.q, m.lit(0u32, 1));
        let here = |valid: Signal, slot: Signal| valid & slot.eq(claim.slot);
        wire!(announced_here = here(announced.valid, announced.slot));
        let woken_here = here(wake.valid, wake.slot) & m.lit(s.barriers, 1);
        wire!(gives_way = announced_here | woken_here | next.visits);
        wire!(returns = cold.returned & !claim.outcome);
        let ready = !claim.outcome & !cold.returned & !claim.wake;
        wire!(start_ready = self.barriers_or(ready, |barriers| ready & !barriers.writes));
        wire!(starts = start.valid & start_ready);
        let releases = self.barriers_or(no, |barriers| barriers.release.valid);
        // A release adds to the list, and lets a path that runs do so.
        let begins = outcome.valid | returns | starts;
        wire!(updates = if self.barriers.is_some() { begins | releases } else { begins });
        wire!(slot = starts.mux(start.slot, claim.slot));
        wire!(slot_live = words.live & !starts);
        wire!(phase = words.phase.map_or(no, |phase| phase & !starts));
        let round = words.round.map(|round| round & !starts);
        let seen = if self.barriers.is_some() {
            let (live, round) = (words.live, words.round);
            Seen { live, phase: words.phase.unwrap_or(no), round, begins: outcome.valid | returns }
        } else {
            Seen { live: slot_live, phase, round, begins }
        };
        Turn {
            claim,
            starts,
            start_ready,
            returns,
            wakes: claim.wake,
            releases,
            updates,
            slot,
            at: slot.decode(s.warps),
            gives_way,
            announced_here,
            live: slot_live,
            phase,
            round,
            seen,
        }
    }

    /// Where there is `sync`, 1 bit: that of the outcome found its barrier in use.
    pub fn queues(&self, outcome: &Outcome<Signal>) -> Option<Signal> {
        self.s.syncs().then(|| outcome.valid & outcome.kind.eq(OutcomeKind::Queue))
    }

    /// Where something is kept of LR/SC sequences, 1 bit: that of the outcome's path lasts.
    fn keep_sequence(&self, told: Option<SequenceTold<Signal>>, outcome: &Outcome<Signal>) -> Option<Signal> {
        let due = self.fairness.as_ref().map_or(self.m.lit(0u32, 1), |fairness| fairness.is_due(outcome.slot));
        self.sequences.as_ref().zip(told).map(|(sequences, told)| sequences.goes_on(told, outcome, due))
    }

    /// A path of the tables, as it is.
    pub fn read(&self, turn: &Turn, p: Path<Signal>) -> Path<Signal> {
        from_tables(self.m, &self.s, (turn.seen.phase, turn.seen.round), p)
    }

    /// A path as the tables have it.
    pub fn kept(&self, turn: &Turn, p: Path<Signal>) -> Path<Signal> {
        Path { waits: p.waits ^ turn.phase, ..of_round(self.m, &self.s, turn.round, p) }.as_built(&self.s)
    }

    /// Sorts the paths of the turn, as the table at the head of [`super`] says.
    pub fn sort(
        &self,
        turn: &Turn,
        start: &Start<Signal>,
        (outcome, sequence): (&Outcome<Signal>, Option<SequenceTold<Signal>>),
    ) -> Sorted {
        let Store { m, s, cold, .. } = self;
        let words = self.words.q;
        let &Turn { starts, returns, releases, seen, .. } = turn;
        wire!(active = self.read(turn, words.hct0.path(seen.live)));
        let runs = m.lit(0u32, 1);
        let depth = self.call_depth(active.depth);
        let goes =
            self.barriers_or(outcome.taken.mask, |barriers| barriers.waited.mux(barriers.goes, outcome.taken.mask));
        let lasts = self.keep_sequence(sequence, outcome);
        let gives_way = |at_once| self.fairness.as_ref().map_or(runs, |f| f.gives_way(outcome.slot, lasts, at_once));
        let (late, rest_late) = (gives_way(None), gives_way(self.queues(outcome)));
        // Who tries next does so before the others come, or they would be one path again.
        let late = match self.queues(outcome) {
            Some(queues) if s.order.takes_turns() => late & !queues,
            _ => late,
        };
        // Who waits has not given way.
        let taken_late = if s.fair && s.barriers { late & outcome.kind.ne(OutcomeKind::Wait) } else { late };
        let taken = Path {
            valid: goes.any(),
            depth: self.ranked(words.after, taken_late),
            pc: outcome.taken.pc,
            mask: goes,
            waits: outcome.kind.eq(OutcomeKind::Wait),
        }
        .as_built(s);
        let side = outcome.rest;
        let rest = Path {
            valid: side.mask.any(),
            depth: self.ranked(depth, rest_late),
            pc: side.pc,
            mask: side.mask,
            waits: runs,
        };
        let as_it_is = Path { depth: self.ranked(words.after, active.is_late(s)), ..active };
        wire!(a = outcome.valid.mux(taken, as_it_is));
        let from_cold = self.read(turn, cold.entry.path(returns | cold.sorts));
        let second_path = self.barriers_or(from_cold, |barriers| {
            let Release { depth, pc, mask, slot, .. } = barriers.release;
            // In a round that is fair, threads come back as if they had had their turn.
            let others = self.fairness.as_ref().map_or(runs, |fairness| fairness.others.q.select(slot, 1));
            let late = if s.fair { others } else { runs };
            let released = Path { valid: releases, depth: self.ranked(depth, late), pc, mask, waits: runs };
            // Whose turn is kept for a release, has nothing of the cold table.
            turn.claim.release.mux(released, from_cold)
        });
        wire!(b = outcome.valid.mux(rest, second_path));
        let second = words.hct1.unwrap_or_else(|| m.zero(Path::shape(s)));
        wire!(c = self.read(turn, Path { valid: second.valid & seen.live, ..second }));
        let idles = if s.gives_way() { active.waits | active.is_late(s) } else { active.waits };
        wire!(parked = idles & !seen.begins);
        let stacks = s.order.is_stack().then(|| Stacks { outcome: outcome.valid, seeks: !(seen.begins | releases) });
        let a_first = seen.live & !seen.begins & !parked;
        let ccs = m.instance("ccs", &ccs(s), CcsIn { a, b, c, a_first, stacks, lasts });
        let ccs = self.barriers_or(ccs, |_| CcsOut {
            y: Path { valid: ccs.y.valid & !starts, ..ccs.y },
            z: Path { valid: ccs.z.valid & !starts, ..ccs.z },
            merges: ccs.merges.only_if(!starts),
            y_ahead: ccs.y_ahead & !starts,
            ..ccs
        });
        // At a start the new path is x. Without convergence barriers none of the three is valid then: the sort gives
        // zeros, and nothing waits for it.
        let begun = Path {
            valid: start.mask.any(),
            depth: self.ranked(depth.literal(0u32), runs),
            pc: start.pc,
            mask: start.mask,
            waits: runs,
        };
        let either = |sorted: Signal, begun: Signal| {
            self.barriers_or(sorted | begun.only_if(starts), |_| starts.mux(begun, sorted))
        };
        wire!(
            x = Path {
                valid: either(ccs.x.valid, begun.valid),
                depth: either(ccs.x.depth, begun.depth),
                pc: either(ccs.x.pc, begun.pc),
                mask: either(ccs.x.mask, begun.mask),
                waits: either(ccs.x.waits, begun.waits),
            }
        );
        wire!(x_waits = x.valid & x.waits);
        let x_parks = if s.gives_way() { x.valid & (x.waits | x.is_late(s)) } else { x_waits };
        Sorted { active, depth, goes, a, b, c, parked, ccs, x, x_waits, x_parks, lasts }
    }

    /// Where the slot fetches next, unless that is as it was.
    pub fn steer(
        &self,
        turn: &Turn,
        sorted: &Sorted,
        outcome: &Outcome<Signal>,
        new_round: Option<Signal>,
    ) -> Steer<Signal> {
        let &Turn { updates, wakes, .. } = turn;
        let &Sorted { x, x_parks, parked, .. } = sorted;
        let cold = self.cold;
        let steers = if self.barriers.is_some() { updates & !sorted.beside(turn) } else { updates };
        let steered = (steers & x.valid & !x_parks & !cold.more_returns) | wakes | (cold.swap & parked & !x_parks);
        Steer {
            valid: new_round.map_or(steered, |new_round| steered | new_round),
            slot: turn.slot,
            pc: x.pc,
            replay: outcome.valid & outcome.kind.eq(OutcomeKind::Memory) & sorted.ccs.x_is_b,
        }
    }
}

/// A path of the tables, as it is: they have whether it waits and whether it has given way as differences from a bit of
/// its slot each.
pub fn from_tables(m: Builder, s: &Shape, (phase, round): (Signal, Option<Signal>), p: Path<Signal>) -> Path<Signal> {
    of_round(m, s, round, Path { waits: p.waits ^ phase, ..p }.as_built(s))
}

/// Of a path that waits as `p.waits` says: whether it has given way, between the tables and as it is.
fn of_round(m: Builder, s: &Shape, round: Option<Signal>, p: Path<Signal>) -> Path<Signal> {
    let Some(round) = round else { return p };
    // Rounds pass by threads that wait, if it is fair.
    let round = if s.fair { round & !p.waits } else { round };
    Path { depth: p.depth ^ cat(&[m.lit(0u32, s.depth_bits), round]), ..p }
}

impl Sorted {
    /// 1 bit: a release beside a path that runs, which it leaves alone.
    pub fn beside(&self, turn: &Turn) -> Signal {
        turn.releases & turn.live & !self.parked
    }
}

//! The trees of comparators, and the passes of warps through them: who runs, and whom they may meet.

use super::super::fairness::Told;
use super::super::{OutcomeKind, Steer, Stop, UnitIn};
use super::lane::{LaneOut, Place, rank_bits, unpack_rank};
use super::state::{Active, Store};
use super::turn::Turn;
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*};

/// A warp on its way through the trees.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Pass<T> {
    pub valid: T,
    pub slot: T,
    /// After a memory access that left threads unserved.
    pub replay: T,
}

/// Comparators in a row in a cycle, of the first and of the second tree.
const LEVELS: u32 = 2;
const STOP_LEVELS: u32 = 3;

/// Cycles of the first tree.
pub fn first_cycles(s: &Shape) -> u32 {
    s.lanes.ilog2().div_ceil(LEVELS)
}

/// Cycles of the second tree; 0 without one.
pub fn stop_cycles(s: &Shape) -> u32 {
    s.lanes.ilog2().div_ceil(STOP_LEVELS)
}

/// The least of the numbers, with a register after every `levels` comparators but the last ones.
pub fn least(m: Builder, name: &str, numbers: Vec<Signal>, levels: u32) -> Signal {
    let (mut numbers, mut level) = (numbers, 0);
    while numbers.len() > 1 {
        if level > 0 && level % levels == 0 {
            let pipe = |(k, &n): (usize, &Signal)| m.pipe(&format!("{name}_{level}_{k}"), n);
            numbers = numbers.iter().enumerate().map(pipe).collect();
        }
        numbers = numbers.chunks(2).map(|pair| pair[0].lt(pair[1]).mux(pair[0], pair[1])).collect();
        level += 1;
    }
    numbers[0]
}

/// Passes by their cycle, from 1 on: the first tree, the comparison with its result, the second tree.
pub struct Passes {
    pub all: Vec<Pass<Signal>>,
    /// The warp is steered in the one of this number.
    pub steers: usize,
}

impl Passes {
    /// The warp that enters the first tree.
    pub fn entering(&self) -> Pass<Signal> {
        self.all[0]
    }

    /// The warp whose first threads are found.
    pub fn leaving(&self) -> Pass<Signal> {
        self.all[self.steers]
    }

    /// The warp whose stop pc is found.
    fn last(&self) -> Pass<Signal> {
        self.all[self.all.len() - 1]
    }
}

/// Who runs of the warp that leaves the first tree.
pub struct First {
    /// 1 bit: somebody is live; where the first threads are, and they.
    pub any: Signal,
    pub place: Place<Signal>,
    pub mask: Signal,
    pub steer: Steer<Signal>,
}

impl Store {
    /// The passes.
    pub fn passes(&self, i: &UnitIn<Signal>, turn: &Turn) -> Passes {
        let Store { m, s, .. } = self;
        let outcome = &i.outcome;
        let valid = outcome.valid | turn.starts | turn.wakes;
        // Behind the last instruction of all, pc + 1 is the first.
        let replay = outcome.kind.eq(OutcomeKind::Memory) & outcome.rest.mask.any() & !outcome.rest.pc.all();
        // Who gives way is not who runs next.
        let replay = turn.late.map_or(replay, |late| replay & !late);
        let mut all = vec![m.stage("entering", Pass { valid, slot: turn.slot, replay: outcome.valid & replay })];
        for cycle in 2..=1 + first_cycles(s) + stop_cycles(s) {
            all.push(m.stage(&format!("pass_{cycle}"), all[all.len() - 1]));
        }
        Passes { all, steers: first_cycles(s) as usize }
    }

    /// The least rank of the warp that leaves the first tree.
    pub fn first_rank(&self, lanes: &LaneOut<Signal>) -> Signal {
        let Store { m, s, .. } = self;
        let ranks = elements(lanes.rank, rank_bits(s));
        let found = least(*m, "ranks", ranks, LEVELS);
        if s.lanes > 1 { m.pipe("least_rank", found) } else { found }
    }

    /// Who runs: the threads whose rank is `first`.
    pub fn run(
        &self,
        i: &UnitIn<Signal>,
        turn: &Turn,
        leaving: Pass<Signal>,
        first: Signal,
        lanes: &LaneOut<Signal>,
    ) -> First {
        let Store { s, live, parked, .. } = self;
        wire!(any = !first.msb());
        let place = unpack_rank(s, first);
        wire!(mask = lanes.same.only_if(any));
        self.active.write(leaving.valid, leaving.slot, Active { depth: place.depth, mask });
        wire!(ends = leaving.slot.decode(s.warps).only_if(leaving.valid & !any));
        wire!(begins = i.start.slot.decode(s.warps).only_if(turn.starts));
        live.next((live.q & !ends) | begins);
        if let Some(waiting) = parked {
            wire!(woken = i.wake.slot.decode(s.warps).only_if(turn.wakes));
            wire!(parked = leaving.slot.decode(s.warps).only_if(leaving.valid & any & place.waits));
            waiting.next((waiting.q & !woken) | parked);
        }
        let valid = leaving.valid & any & !place.waits;
        First { any, place, mask, steer: Steer { valid, slot: leaving.slot, pc: place.pc, replay: leaving.replay } }
    }

    /// What fairness is told; and whether a path gave way, for counters. If all have given way that could run, nobody
    /// has.
    pub fn give_way(
        &self,
        i: &UnitIn<Signal>,
        turn: &Turn,
        leaving: Pass<Signal>,
        first: &First,
        lanes: &LaneOut<Signal>,
    ) -> (Option<Told>, Option<Signal>) {
        let Store { m, s, fairness, rounds, .. } = self;
        let UnitIn { start, outcome, .. } = i;
        let &Turn { starts, wakes, slot, lasts, .. } = turn;
        let &First { any, place, mask, .. } = first;
        let told = place.late.map(|late| Told {
            outcome: outcome.valid,
            slot: outcome.slot,
            at_once: None,
            lasts,
            turn: leaving.valid,
            turn_slot: leaving.slot,
            alone: !(lanes.live & !mask).any(),
            new_round: leaving.valid & any & !place.waits & late,
            wakes: m.lit(0u32, 1),
            start: starts,
            start_slot: start.slot,
            holding: None,
        });
        let gave_way = fairness.as_ref().zip(told.as_ref()).map(|(fairness, told)| fairness.goes_on(told).1);
        if let Some((rounds, told)) = rounds.as_ref().zip(told.as_ref()) {
            wire!(next_round = leaving.slot.decode(s.warps).only_if(told.new_round));
            wire!(first_round = slot.decode(s.warps).only_if(starts | wakes));
            rounds.next((rounds.q ^ next_round) & !first_round);
        }
        (told, gave_way)
    }

    /// Whom they may meet: the second tree finds the stop pc, if there are live threads.
    pub fn find_stop(&self, passes: &Passes, any: Signal, lanes: &LaneOut<Signal>) {
        let Store { m, s, .. } = self;
        let Some(stops) = &self.stops else { return };
        let others = elements(lanes.pc, s.pc_bits());
        let rank = |(k, pc): (u32, Signal)| m.pipe(&format!("other_{k}"), cat(&[pc, !(lanes.beside.bit(k) & any)]));
        let least = least(*m, "others", (0..).zip(others).map(rank).collect(), STOP_LEVELS);
        let last = passes.last();
        stops.write(last.valid, last.slot, Stop { valid: !least.msb(), pc: least.slice(0, s.pc_bits()) });
    }
}

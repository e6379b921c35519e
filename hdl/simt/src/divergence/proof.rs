//! What the proofs of divergence units have in common: their inputs, and the thread that is followed.

use super::{Announced, Outcome, OutcomeKind, Side, Start, Steer, UnitIn, UnitOut, Wake};
use crate::pipeline::timing::OUTCOMES_BEFORE_HOLD;
use crate::proof::{held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ProofIn<T> {
    pub unit: UnitIn<T>,
    /// The thread that is followed.
    #[width(s.warp_bits())]
    pub slot: T,
    #[width(s.lane_bits())]
    pub lane: T,
    /// The lanes of the active path that are given to taken and to rest.
    #[width(s.lanes)]
    pub taken: T,
    #[width(s.lanes)]
    pub rest: T,
    /// One bit per slot: a straight-line instruction issues if one can. Only where a warp has two slots.
    #[width(s.slots())]
    #[when(s.sides() > 1)]
    pub issues: Option<T>,
}

/// Bits of numbers of cycles.
const CYCLES: Width = 10;

/// `hold` one cycle ago, two, and so on up to `cycles`, those from issue to what it keeps back: till then it comes too
/// late for what has issued, and with the last nothing comes.
pub fn held_since(m: Builder, hold: Signal, cycles: u32) -> Vec<Signal> {
    let mut late = vec![m.pipe_reset("late_0", hold)];
    for k in 1..cycles as usize {
        late.push(m.pipe_reset(&format!("late_{k}"), late[k - 1]));
    }
    late
}

/// Any input, but for outcomes: one comes only if it was announced in the cycle before, and if its slot was not steered
/// then. `may`: something may be announced; `depth` gives the call depth of the path that runs on a slot.
pub fn with_announced(
    m: Builder,
    s: &Shape,
    i: &ProofIn<Signal>,
    steer: Steer<Signal>,
    may: Signal,
    depth: impl FnOnce(Signal) -> Signal,
) -> ProofIn<Signal> {
    let any = i.unit.announced.expect("outcomes are announced");
    let slot = index_of(s.slots(), any.slot);
    // The path that runs is the same when the outcome comes.
    let call = any.call & !depth(slot).all();
    let announced = Announced { valid: any.valid & may, slot, call, ret: any.ret & !call };
    let was_announced = m.pipe_reset("was_announced", announced.valid);
    let slot = m.pipe("announced_slot", slot);
    let (call, ret) = (m.pipe("call_announced", call), m.pipe("ret_announced", announced.ret));
    let just = m.pipe_reset("was_just_steered", steer.valid) & slot.eq(m.pipe("just_steered", steer.slot));
    let Outcome { valid, kind, .. } = i.unit.outcome;
    let outcome = Outcome {
        valid: valid & was_announced & !just,
        slot,
        kind: (call | ret).mux(m.code(OutcomeKind::Jump), kind),
        call,
        ret,
        ..i.unit.outcome
    };
    ProofIn { unit: UnitIn { outcome, announced: Some(announced), ..i.unit }, ..*i }
}

/// Every legal input of a unit that is told where threads reconverge, out of any: outcomes, if the slot `runs`, of
/// threads of its path, whose mask and call depth are given; starts of idle slots, wakes of those that wait.
pub fn legal(
    m: Builder,
    s: &Shape,
    i: &ProofIn<Signal>,
    (live, waiting): (Signal, Signal),
    runs: Signal,
    (mask, depth): (Signal, Signal),
) -> UnitIn<Signal> {
    let UnitIn { start, wake, outcome, .. } = i.unit;
    let (taken, rest) = (mask & i.taken, mask & i.rest & !i.taken);
    let never = outcome.kind.eq(OutcomeKind::Wait) & (m.lit(!s.barriers, 1) | !taken.any());
    let jump = outcome.kind.eq(OutcomeKind::Jump);
    let call = jump & outcome.call & !depth.all();
    let outcome = Outcome {
        valid: outcome.valid & runs,
        slot: index_of(s.slots(), outcome.slot),
        kind: never.mux(m.code(OutcomeKind::Branch), outcome.kind),
        taken: Side { mask: taken, ..outcome.taken },
        rest: Side { mask: rest, ..outcome.rest },
        call,
        ret: jump & outcome.ret & !call,
        meets: outcome.meets,
        homes: i.unit.outcome.homes,
    };
    let idle = index_of(s.warps, start.slot);
    let some = start.mask | (!start.mask.any()).zext(s.lanes);
    let start = Start { valid: start.valid & !live.select(idle, 1), slot: idle, mask: some, ..start };
    let waits = index_of(s.warps, wake.slot);
    let wake = Wake { valid: wake.valid & waiting.select(waits, 1), slot: waits };
    UnitIn { start, wake, outcome, ..i.unit }
}

/// What keeps a warp of a stack from running.
pub struct Waits {
    /// It pops, and has this many levels.
    pub popping: Signal,
    pub count: Signal,
    pub waiting: Signal,
    /// One turn is left: a start, or the steering of a side.
    pub one: Signal,
}

/// Whose turn it is, as a stack has chosen it in the cycle before; one bit each.
pub struct Turns {
    pub outcome: Signal,
    pub wake: Signal,
    /// A pop, or another turn that a warp has waited for.
    pub other: Signal,
}

/// No warp is busy for ever: popping, or with a side to be steered. Each cycle brings all of them nearer to the end.
/// What is left are two cycles a level of a warp that pops, one to choose it and one to pop, and two for the side that
/// it then has to be steered; the outcomes that may still be announced in spite of `hold`, each of which may make a
/// warp pop, end or wait; and starts and wakes.
pub fn in_time(
    m: Builder,
    levels: u32,
    warps: &[Waits],
    busy: Signal,
    turns: Turns,
    (hold, late, outcomes): (Signal, &[Signal], Signal),
) {
    let number = |n: u32| m.lit(n, CYCLES);
    let sum = |terms: &mut dyn Iterator<Item = Signal>| terms.fold(number(0), |sum, term| sum + term.zext(CYCLES));
    let to_come = OUTCOMES_BEFORE_HOLD + late.len() as u32;
    let of_a_pop = 2 * levels + 2;
    let of_a_warp = of_a_pop + 1;
    let of_an_outcome = of_a_warp + 1;
    let left = |warp: &Waits| {
        let pops = cat(&[m.lit(0u32, 1), warp.count]).zext(CYCLES) + 2;
        let one = number(2).only_if(warp.one);
        pick([(warp.popping, pops), (warp.waiting, number(of_a_warp))], one)
    };
    let of_turns = number(of_a_warp).only_if(turns.outcome) + number(of_a_pop).only_if(turns.wake);
    let of_warps = sum(&mut warps.iter().map(left)) + of_turns - turns.other.zext(CYCLES);
    let come_late = sum(&mut late.iter().map(|&held| !held));
    let outcomes_left = hold.mux(come_late, number(to_come) - outcomes.zext(CYCLES));
    let of_outcomes = outcomes_left.mul_full(number(of_an_outcome)).slice(0, CYCLES);
    wire!(left = of_warps + of_outcomes);
    let since = m.reg("busy_since", CYCLES).reset(0u32);
    since.next((since.q + 1).only_if(busy));
    let most = (warps.len() as u32 + 1) * of_a_warp + to_come * of_an_outcome;
    assert!(most < 1 << CYCLES, "{most} cycles need more than {CYCLES} bits");
    m.assert("warps_are_busy_in_time", implies(busy, (since.q + left).le(most) & since.q.le(most)));
    m.assert("outcomes_are_counted", hold.eq(outcomes.eq(OUTCOMES_BEFORE_HOLD)));
}

/// The thread that is followed, any of them.
#[derive(Clone, Copy)]
pub struct Followed {
    pub warp: Signal,
    pub lane: Signal,
}

/// Where it is.
pub struct Whereabouts {
    pub alive: Signal,
    pub pc: Signal,
    pub depth: Signal,
    pub waits: Signal,
    /// It comes with a start, in this cycle.
    pub begins: Signal,
    /// The outcome in this cycle leaves it where it is: the `rest`.
    pub stays: Signal,
}

impl Followed {
    pub fn any(m: Builder, s: &Shape, i: &ProofIn<Signal>) -> Followed {
        let warp = index_of(s.warps, held(m, "slot_followed", i.slot));
        Followed { warp, lane: index_of(s.lanes, held(m, "lane_followed", i.lane)) }
    }

    pub fn is_in(self, mask: Signal) -> Signal {
        mask.select(self.lane, 1)
    }

    /// Where instructions leave it. `acts`: it is of the path that has an outcome in this cycle; `issues`: of one of
    /// which a straight-line instruction issues.
    pub fn moved(
        self,
        m: Builder,
        s: &Shape,
        told: &UnitIn<Signal>,
        out: &UnitOut<Signal>,
        (acts, issues): (Signal, Signal),
    ) -> Whereabouts {
        let UnitIn { start, wake, outcome, .. } = *told;
        let alive = m.reg("alive", 1).reset(0u32);
        let pc = m.reg("pc", s.pc_bits());
        let depth = m.reg("depth", s.depth_bits);
        let waits = m.reg("waits", 1).reset(0u32);
        wire!(begins = start.valid & out.start_ready & start.slot.eq(self.warp));
        wire!(wakes = wake.valid & out.wake_ready & wake.slot.eq(self.warp));
        wire!(goes = acts & self.is_in(outcome.taken.mask));
        wire!(stays = acts & self.is_in(outcome.rest.mask));
        let deeper = pick([(outcome.call, depth.q + 1), (outcome.ret & depth.q.any(), depth.q - 1)], depth.q);
        let ways = [(begins, start.pc), (goes, outcome.taken.pc), (stays, outcome.rest.pc), (issues, pc.q + 1)];
        alive.next(pick([(begins, self.is_in(start.mask)), (acts, goes | stays)], alive.q));
        pc.next(pick(ways, pc.q));
        depth.next(pick([(begins, depth.q.literal(0u32)), (goes, deeper)], depth.q));
        let never = m.lit(0u32, 1);
        waits.next(pick([(begins | wakes, never), (goes, outcome.kind.eq(OutcomeKind::Wait))], waits.q));
        Whereabouts { alive: alive.q, pc: pc.q, depth: depth.q, waits: waits.q, begins, stays }
    }
}

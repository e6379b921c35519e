//! The arbiter as a whole: the threads that run are those in the first place, and the stop pc is that of the next.
//!
//! One thread is followed, any of them, by its pc, its depth and whether it waits, as outcomes and wakes change them.
//! The other assertions say of every warp what the tables hold while it is not on its way through the trees. What is on
//! the way was put there a few cycles before, which is why the induction goes that deep. The lanes are described in
//! place, so that their tables can be seen.

use super::lane::{LaneIn, LaneOut, Place, Thread, compared};
use super::trees::{Pass, first_cycles, stop_cycles};
use super::{Inside, described};
use crate::divergence::fairness::Fairness;
use crate::divergence::fairness::proof::{Warp, has_its_turn};
use crate::divergence::proof::ProofIn;
use crate::divergence::{Outcome, OutcomeKind, Side, Start, UnitIn, UnitOut, Wake};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use heddle_hdl::select;

/// The depth of the induction: one cycle more than a pass takes.
pub fn pass_cycles(s: &Shape) -> u32 {
    first_cycles(s) + stop_cycles(s) + 3
}

/// The lanes of a unit in its own module, with their tables.
fn lanes_in_place(m: Builder, s: &Shape, i: LaneIn<LaneInput>) -> (LaneOut<Signal>, Vec<Mem<Thread<Width>>>) {
    let (mut outs, mut tables) = (Vec::new(), Vec::new());
    for lane in 0..s.lanes {
        let threads = m.memory(&format!("threads_{lane}"), Thread::shape(s), s.warp_bits());
        let of_lane = i.map("", &mut |_, input| match input {
            LaneInput::All(s) => s,
            LaneInput::Each(packed) => packed.slice(lane * (packed.width() / s.lanes), packed.width() / s.lanes),
        });
        let (out, is_before) = compared(s, &threads, of_lane);
        m.assert(&format!("lane_{lane}_is_not_before_the_first"), !(of_lane.leaves & is_before));
        outs.push(out);
        tables.push(threads);
    }
    let leaves: Vec<Vec<Signal>> = outs.iter().map(|out| out.leaves()).collect();
    let mut place = 0;
    let packed = outs[0].map("", &mut |_, _| {
        place += 1;
        cat(&leaves.iter().map(|lane| lane[place - 1]).collect::<Vec<_>>())
    });
    (packed, tables)
}

/// The arbiter with every legal input: outcomes of warps that run, with threads of the active path; memory accesses
/// before the stop pc; starts of idle slots, wakes of those that wait.
pub fn arbiter_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "arbiter_proof", false)
}

/// The same of a shape that is fair, and that it is.
pub fn fair_arbiter_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "fair_arbiter_proof", true)
}

fn harness(s: &Shape, name: &str, is_fair: bool) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    module(name, ProofIn::shape(s), |m, i| {
        let unit_in = m.deferred("unit_in", UnitIn::shape(s));
        let mut tables = Vec::new();
        let (out, inside) = described(m, s, unit_in.value, |m, i| {
            let (out, places) = lanes_in_place(m, s, i);
            tables = places;
            out
        });
        let legal = legal(m, s, &i, &inside);
        unit_in.drive(legal);
        for warp in 0..s.warps {
            between_passes(m, s, warp, &tables, &inside);
            steers(m, s, warp, &tables, &inside, &legal, &out);
            if is_fair {
                let fairness = inside.store.fairness.as_ref().expect("paths give way");
                let warp = warp_of_fairness(m, s, warp, &tables, &inside);
                has_its_turn(m, s, fairness, &warp);
                counts_as_they_are(m, s, fairness, &warp, &inside);
            }
        }
        follow(m, s, &i, &tables, &inside, &legal, &out);
        cover(m, "ends", m.pipe_reset("was_live", inside.store.live.q.any()) & !inside.store.live.q.any());
        if s.lanes > 1 {
            cover(m, "replays", out.steer.valid & out.steer.replay);
            cover(m, "stops", out.stop.valid & out.live.select(i.unit.decode_slot, 1));
        }
        if s.barriers {
            cover(m, "wakes", legal.wake.valid & out.wake_ready);
        }
        out
    })
}

fn legal(m: Builder, s: &Shape, i: &ProofIn<Signal>, inside: &Inside) -> UnitIn<Signal> {
    let UnitIn { start, wake, outcome, .. } = i.unit;
    let number = index_of(s.warps, outcome.slot);
    let active = inside.store.active.read(number).mask;
    let passes = cat(&inside.passes.all.iter().map(|p| p.valid & p.slot.eq(number)).collect::<Vec<_>>()).any();
    let runs = inside.store.live.q.select(number, 1) & !inside.store.waiting().select(number, 1) & !passes;
    let (taken, rest) = (active & i.taken, active & i.rest & !i.taken);
    let stop = inside.store.stops.as_ref().map(|stops| stops.read(number));
    let beyond = stop.map_or(m.lit(0u32, 1), |stop| stop.valid & !outcome.rest.pc.lt(stop.pc));
    let never = outcome.kind.eq(OutcomeKind::Wait) & m.lit(!s.barriers, 1);
    let misplaced = outcome.kind.eq(OutcomeKind::Memory) & beyond;
    let to_next = outcome.kind.eq(OutcomeKind::Memory) & !beyond;
    let to = to_next.mux(outcome.rest.pc + 1, outcome.taken.pc);
    let jump = outcome.kind.eq(OutcomeKind::Jump);
    let call = jump & outcome.call & !inside.store.active.read(number).depth.all();
    let outcome = Outcome {
        valid: outcome.valid & runs,
        slot: number,
        kind: (never | misplaced).mux(m.code(OutcomeKind::Branch), outcome.kind),
        taken: Side { mask: taken, pc: to },
        rest: Side { mask: rest, ..outcome.rest },
        call,
        ret: jump & outcome.ret & !call,
        meets: None,
        homes: None,
    };
    let idle = index_of(s.warps, start.slot);
    let start = Start { valid: start.valid & !inside.store.live.q.select(idle, 1), slot: idle, ..start };
    let waits = index_of(s.warps, wake.slot);
    let wake = Wake { valid: wake.valid & inside.store.waiting().select(waits, 1), slot: waits };
    let sequence = i.unit.sequence.map(|sequence| sequence.legal(&outcome));
    UnitIn { start, wake, outcome, sequence, ..i.unit }
}

/// The threads of a warp as they stand in the table.
fn threads(s: &Shape, warp: Signal, tables: &[Mem<Thread<Width>>], inside: &Inside) -> Vec<Thread<Signal>> {
    let phase = inside.store.phase_of(warp);
    let round = inside.store.round_of(warp);
    tables.iter().map(|table| table.read(warp).turned(s, phase, round)).collect()
}

/// Where the first of the threads are: one that no other is before.
fn first(threads: &[Thread<Signal>]) -> Thread<Signal> {
    threads.iter().copied().reduce(|a, b| b.rank().lt(a.rank()).mux(b, a)).expect("a warp has a lane")
}

fn passes(warp: u32, passes: &[Pass<Signal>]) -> Signal {
    cat(&passes.iter().map(|p| p.valid & p.slot.eq(p.slot.literal(warp))).collect::<Vec<_>>())
}

/// What the tables hold of a warp that is in no tree.
fn between_passes(m: Builder, s: &Shape, warp: u32, tables: &[Mem<Thread<Width>>], inside: &Inside) {
    let at = m.lit(warp, s.warp_bits());
    let threads = threads(s, at, tables, inside);
    let (live, waiting) = (inside.store.live.q.bit(warp), inside.store.waiting().bit(warp));
    let to_steering = passes(warp, &inside.passes.all[..=inside.passes.steers]);
    let name = |what: &str| format!("slot_{warp}_{what}");
    m.assert(&name("passes_once"), to_steering.eq(to_steering.lowest_one()));
    m.assert(&name("passes_while_it_is_live"), implies(to_steering.any(), live));
    m.assert(&name("waits_while_it_is_live"), implies(waiting, live & !to_steering.any()));
    let valid = cat(&threads.iter().map(|t| t.valid).collect::<Vec<_>>());
    m.assert(&name("has_its_threads"), implies(live, valid.eq(inside.ghosts.live.read(at))));

    let settled = live & !to_steering.any();
    let first = first(&threads);
    let active = inside.store.active.read(at);
    let same = |t: &Thread<Signal>| t.rank().eq(first.rank());
    let mask = cat(&threads.iter().map(same).collect::<Vec<_>>());
    m.assert(&name("runs_the_first"), implies(settled, first.valid & active.mask.eq(mask)));
    m.assert(&name("is_at_their_depth"), implies(settled, active.depth.eq(first.place.depth)));
    m.assert(&name("waits_if_they_do"), implies(settled, waiting.eq(first.place.waits)));
    let Some(stops) = &inside.store.stops else { return };
    let stop = stops.read(at);
    let rank_above_pc = |t: &Thread<Signal>| t.rank().from_bit(s.pc_bits());
    let beside = |t: &Thread<Signal>| t.valid & rank_above_pc(t).eq(rank_above_pc(&first)) & !same(t);
    let others: Vec<Signal> = threads.iter().map(beside).collect();
    let pcs = threads.iter().zip(&others).map(|(t, &other)| cat(&[t.place.pc, !other]));
    let next = pcs.reduce(|a, b| b.lt(a).mux(b, a)).expect("a warp has a lane");
    let right = stop.valid.eq(!next.msb()) & implies(stop.valid, stop.pc.eq(next.slice(0, s.pc_bits())));
    let passed = settled & !passes(warp, &inside.passes.all).any();
    m.assert(&name("stops_at_the_next"), implies(passed, right));
    cover(m, &name("stops"), passed & stop.valid);
}

fn warp_of_fairness(m: Builder, s: &Shape, number: u32, tables: &[Mem<Thread<Width>>], inside: &Inside) -> Warp {
    let at = m.lit(number, s.warp_bits());
    let threads = threads(s, at, tables, inside);
    let late = |t: &Thread<Signal>| t.place.late.expect("threads give way");
    let live = inside.store.live.q.bit(number);
    let of = |which: &dyn Fn(&Thread<Signal>) -> Signal| {
        cat(&threads.iter().map(|t| t.valid & which(t)).collect::<Vec<_>>()).only_if(live)
    };
    let valid = of(&|_| m.lit(1u32, 1));
    Warp {
        number,
        live,
        settled: !passes(number, &inside.passes.all[..=inside.passes.steers]).any(),
        several: (valid & !inside.store.active.read(at).mask).any(),
        late: of(&|t| late(t) & !t.place.waits),
        in_time: of(&|t| !late(t) & !t.place.waits),
        held: None,
        waits_late: of(&|t| late(t) & t.place.waits).any(),
        since: inside.ghosts.fair.expect("it is fair")[0],
        sequence: inside.store.sequences.as_ref().map(|sequences| sequences.of(at)),
    }
}

/// What the counters are while a warp is on its way through the trees, and of threads that wait.
fn counts_as_they_are(m: Builder, s: &Shape, fairness: &Fairness, warp: &Warp, inside: &Inside) {
    let &Warp { number, live, settled, late, in_time, ref since, .. } = warp;
    let at = m.lit(number, s.warp_bits());
    let parted = fairness.parted.q.bit(number);
    let none_since = !since.read(at).any();
    m.assert(&format!("slot_{number}_was_alone_before_it_parts"), implies(live & !settled & !parted, none_since));
    // When all have given way, nobody has.
    let somebody = implies(live & settled & !inside.store.waiting().bit(number), in_time.any());
    m.assert(&format!("slot_{number}_somebody_has_not_given_way"), somebody);
    let [_, ghost_waits] = inside.ghosts.fair.expect("it is fair");
    let runnable = inside.ghosts.live.read(at) & !ghost_waits.read(at);
    m.assert(&format!("slot_{number}_runs_what_does_not_wait"), implies(live, runnable.eq(late | in_time)));
}

/// A warp is steered once after each outcome, start or wake, if it has threads that can run, and to the first.
fn steers(
    m: Builder,
    s: &Shape,
    warp: u32,
    tables: &[Mem<Thread<Width>>],
    inside: &Inside,
    told: &UnitIn<Signal>,
    out: &UnitOut<Signal>,
) {
    let is = |slot: Signal| slot.eq(slot.literal(warp));
    let begins = told.start.valid & out.start_ready & is(told.start.slot);
    let wakes = told.wake.valid & out.wake_ready & is(told.wake.slot);
    let acts = told.outcome.valid & is(told.outcome.slot);
    let steered = out.steer.valid & is(out.steer.slot);
    let first = first(&threads(s, m.lit(warp, s.warp_bits()), tables, inside));
    let owes = m.reg(&format!("owes_{warp}"), 1).reset(0u32);
    owes.next((owes.q & !steered & inside.store.live.q.bit(warp)) | begins | wakes | acts);
    let passes = passes(warp, &inside.passes.all[..=inside.passes.steers]).any();
    let name = |what: &str| format!("slot_{warp}_{what}");
    let owed = owes.q.eq(passes | inside.store.waiting().bit(warp));
    m.assert(&name("is_steered"), implies(inside.store.live.q.bit(warp), owed));
    m.assert(&name("is_steered_once"), implies(steered, owes.q));
    let right = first.valid & !first.place.waits & out.steer.pc.eq(first.place.pc);
    m.assert(&name("is_steered_to_the_first"), implies(steered, right));
}

/// One thread's place.
fn follow(
    m: Builder,
    s: &Shape,
    i: &ProofIn<Signal>,
    tables: &[Mem<Thread<Width>>],
    inside: &Inside,
    told: &UnitIn<Signal>,
    out: &UnitOut<Signal>,
) {
    let UnitIn { start, wake, outcome, .. } = *told;
    let slot = index_of(s.warps, held(m, "slot_followed", i.slot));
    let lane = index_of(s.lanes, held(m, "lane_followed", i.lane));
    let alive = m.reg("alive", 1).reset(0u32);
    let pc = m.reg("pc", s.pc_bits());
    let depth = m.reg("depth", s.depth_bits);
    let waits = m.reg("waits", 1).reset(0u32);
    let has = |mask: Signal| mask.select(lane, 1);
    wire!(begins = start.valid & out.start_ready & start.slot.eq(slot));
    wire!(wakes = wake.valid & out.wake_ready & wake.slot.eq(slot));
    wire!(acts = outcome.valid & outcome.slot.eq(slot) & has(inside.store.active.read(slot).mask));
    wire!(goes = acts & has(outcome.taken.mask));
    wire!(stays = acts & has(outcome.rest.mask));
    let deeper = pick([(outcome.call, depth.q + 1), (outcome.ret & depth.q.any(), depth.q - 1)], depth.q);
    alive.next(pick([(begins, has(start.mask)), (acts, goes | stays)], alive.q));
    pc.next(pick([(begins, start.pc), (goes, outcome.taken.pc), (stays, outcome.rest.pc)], pc.q));
    depth.next(pick([(begins, depth.q.literal(0u32)), (goes, deeper)], depth.q));
    let never = m.lit(0u32, 1);
    waits.next(pick([(begins | wakes, never), (goes, outcome.kind.eq(OutcomeKind::Wait))], waits.q));
    let thread = select(&threads(s, slot, tables, inside), lane);
    m.assert("thread_is_live", implies(inside.store.live.q.select(slot, 1), thread.valid.eq(alive.q)));
    m.assert("thread_of_a_warp_that_is_not_live", implies(!inside.store.live.q.select(slot, 1), !alive.q));
    let Place { pc: at, depth: of, waits: parked, .. } = thread.place;
    let right = at.eq(pc.q) & of.eq(depth.q) & parked.eq(waits.q);
    m.assert("thread_keeps_its_place", implies(alive.q, right));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::Metrics;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps, barriers) in [(1, 1, false), (2, 2, true), (4, 2, true), (8, 2, false)] {
            for (fair, reservations) in [(false, false), (true, false), (true, true)] {
                let s =
                    Shape { program: 16, depth_bits: 1, barriers, metrics: Metrics::Off, ..Shape::new(lanes, warps) };
                let s = Shape { fair, reservations, patience: 4, ..s };
                holds_at_random(&arbiter_proof(&s).check().unwrap().netlist, 20_000);
                if fair {
                    holds_at_random(&fair_arbiter_proof(&s).check().unwrap().netlist, 20_000);
                }
            }
        }
    }
}

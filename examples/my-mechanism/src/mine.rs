//! A mechanism from outside of heddle: a stack of reconvergence points whose levels lie in distributed RAM.
//!
//! It is the scheme of heddle's own `stack`, and has its parts from there: what a branch does to the path that runs is
//! [`part`], what becomes of the threads above a level is [`pop`]. But a level is read in the cycle in which it is
//! popped, and so nothing is fetched ahead. It has one capability beside the plain interface: it *reconverges*. So the
//! core tells it with each outcome where the threads of a branch meet, and it may refuse to go on.
//!
//! | turn | what follows |
//! |---|---|
//! | outcome | the top moves, or parts: a level is pushed; where it reconverges with others, or is empty, the warp pops |
//! | pop | a level's sibling is the top, or its group; it is steered unless it has to pop again |
//! | start | the new threads are the top, over no level |
//! | wake | as an outcome that does not move the top |
//!
//! What it does not do: likely-convergence points; memory accesses that split a path; barriers for a part of a warp.

use heddle_hdl::Errors;
use heddle_hdl::prelude::*;
use heddle_simt::divergence::inspect::{Path, State};
use heddle_simt::divergence::levels::{Found, Level, Parting, Sibling, Top, levels, part, pop, stop_of};
use heddle_simt::divergence::proof::{ProofIn, legal};
use heddle_simt::divergence::{
    Capabilities, Divergence, Events, Mechanism, MoreOut, OutcomeKind, Refused, Steer, Stop, UnitIn, UnitOut,
    assume_legal, depth_after, hold,
};
use heddle_simt::isa::FaultCause;
use heddle_simt::proof::{Block, Method, Proof, cover};
use heddle_simt::{Metrics, Shape};

/// The mechanism.
pub struct Mine;

impl Mechanism for Mine {
    fn name(&self) -> &'static str {
        "mine"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { reconverges: true, splits: false, ..Capabilities::NONE }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        module("mine", UnitIn::shape(s), |m, i| described(m, s, i).0)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        let at = |(lanes, warps, depth)| {
            let shape = Shape {
                program: 16,
                depth_bits: 1,
                metrics: Metrics::Off,
                barriers: false,
                ..Shape::new(lanes, warps)
            };
            PROVEN.at(&shape.with_divergence(Divergence::new(&Mine)), depth, true, harness)
        };
        [(2, 1, 10), (4, 1, 8), (2, 2, 8)].into_iter().map(at).collect()
    }

    /// The top, then level by level the side that has not run and those who have come to where they reconverge.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
        let slot = u64::from(warp);
        if !state.register(s.warps, "live").bit(warp) {
            return Vec::new();
        }
        let waits = s.barriers && state.register(s.warps, "waiting").bit(warp);
        let Top { pc, depth, mask, mut rpc, .. } = state.word(Top::shape(s), "tops", slot);
        let mut found = Found::new(&state.word(s.lanes, "threads", slot), s.lanes);
        found.add("top", (pc.low_u64(), depth.low_u64()), mask.low_u64(), waits);
        let count = state.word(count_width(levels(s)), "counts", slot).low_u64();
        for k in (0..count).rev() {
            let at = slot << index_width(levels(s)) | k;
            let Level { sibling, group, .. } = state.word(Level::shape(s), "levels", at);
            found.add_sibling(&format!("level[{k}]"), &sibling, false);
            if group.valid == 1 {
                found.add(&format!("met[{k}]"), rpc.place(), group.mask.low_u64(), false);
                rpc = group.rpc;
            }
        }
        found.rest_at(&rpc)
    }
}

/// What `heddle prove` proves: the assertions of the unit, whatever legal it is told.
const PROVEN: Block = Block {
    name: "mine",
    block: "my-mechanism",
    says: "Whatever it is told about where threads reconverge, a warp is steered to live threads of its own, and to all \
           of them where none wait below.",
    method: Method::Bounded,
    cover_depth: 10,
};

/// The unit with every legal input.
fn harness(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    module("mine_proof", ProofIn::shape(s), |m, i| {
        let unit_in = m.deferred("unit_in", UnitIn::shape(s));
        let (out, Inside { popping, top }) = described(m, s, unit_in.value);
        let runs = out.live & !out.waiting & !popping;
        let slot = i.unit.outcome.slot;
        let told = legal(m, s, &i, (out.live, out.waiting), runs.select(slot, 1), (top.mask, top.depth));
        unit_in.drive(told);
        cover(m, "parts", told.outcome.valid & told.outcome.taken.mask.any() & told.outcome.rest.mask.any());
        cover(m, "meets", out.events.merges.any());
        out
    })
}

/// What a proof must know of the unit: the warps that pop, a bit each, and the top of the one that has an outcome.
struct Inside {
    popping: Signal,
    top: Top<Signal>,
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a stack of reconvergence points in distributed RAM.");
    let UnitIn { start, wake, outcome, .. } = i;
    let (slot_bits, index_bits, count_bits) = (s.warp_bits(), index_width(levels(s)), count_width(levels(s)));
    let live = m.reg("live", s.warps).reset(0u32);
    let popping = m.reg("popping", s.warps).reset(0u32);
    let parked = s.barriers.then(|| m.reg("waiting", s.warps).reset(0u32));
    let tops = m.memory("tops", Top::shape(s), slot_bits).style(MemoryStyle::Distributed);
    let threads = m.memory("threads", s.lanes, slot_bits).style(MemoryStyle::Distributed);
    let stops = m.memory("stops", Stop::shape(s), slot_bits).style(MemoryStyle::Distributed);
    let counts = m.memory("counts", count_bits, slot_bits).style(MemoryStyle::Distributed);
    let stack = m.memory("levels", Level::shape(s), index_bits + s.warps.ilog2()).style(MemoryStyle::Distributed);

    // Whose turn it is: an outcome's always; then that of a warp that pops, of a start, of a wake.
    wire!(pops = popping.q.any() & !outcome.valid);
    wire!(start_ready = !outcome.valid & !pops);
    wire!(starts = start.valid & start_ready);
    let wake_possible = m.lit(s.barriers, 1);
    wire!(wake_ready = start_ready & !start.valid & wake_possible);
    wire!(wakes = wake.valid & wake_ready);
    let popped_slot = popping.q.lowest_one().one_hot_index();
    wire!(slot = pick([(outcome.valid, outcome.slot), (pops, popped_slot), (start.valid, start.slot)], wake.slot));
    let at = slot.decode(s.warps);
    let top = tops.read(slot);
    wire!(count = counts.read(slot).only_if(!starts));
    wire!(remaining = threads.read(slot));

    // Outcome and wake: the threads move, and part or meet.
    let taken_depth = depth_after(outcome.call, outcome.ret, top.depth);
    let parting = part(m, s, &outcome, taken_depth, top, count);
    let Parting { parts, meeting, taken_is_there, full, pushes, pushed, stay, .. } = parting;
    let here = Sibling { valid: outcome.valid, pc: top.pc, depth: top.depth, mask: top.mask };
    let side = outcome.valid.mux(parting.side, here);
    wire!(moves = outcome.valid | wakes);
    wire!(waits = outcome.valid & outcome.kind.eq(OutcomeKind::Wait));
    wire!(arrives = moves & !waits & !parts & top.rpc.reached(side.pc, side.depth));
    let rpc = meeting.found(arrives | taken_is_there, taken_is_there.mux(outcome.taken.pc, side.pc));
    let mask = outcome.valid.mux(parts.mux(side.mask, stay), top.mask);
    let moved = Top { pc: side.pc, depth: side.depth, mask, rpc, likely: None };

    // Pop: the level stays until nothing is left of it.
    let address = |level: Signal| {
        let level = level.slice(0, index_bits);
        if s.warps > 1 { cat(&[level, slot]) } else { level }
    };
    let head = stack.read(address(count - 1));
    let popped = pop(m, s, top, head, m.lit(0u32, s.lanes), remaining, pops);
    let written = pushes.mux(pushed, popped.left);
    stack.write(pushes | (pops & popped.stays), address(pushes.mux(count, count - 1)), written);

    // What is the top now, and where it goes.
    let begun = Top { pc: start.pc, mask: start.mask, ..m.zero(Top::shape(s)) };
    let after = pick([(starts, begun), (pops, popped.top)], moved);
    let left = count + pushes.zext(count_bits) - (pops & !popped.stays).zext(count_bits);
    let empty = !after.mask.any();
    wire!(must_pop = left.any() & ((pops & popped.arrives_again) | arrives | empty));
    wire!(updates = moves | pops | starts);
    wire!(threads_after = starts.mux(start.mask, remaining & !(top.mask & !stay).only_if(outcome.valid)));
    tops.write(updates, slot, after);
    counts.write(updates, slot, left);
    stops.write(updates, slot, stop_of(after));
    threads.write(updates, slot, threads_after);
    wire!(ends = updates & !must_pop & empty);
    live.next_if(updates, (live.q & !at) | at.only_if(!ends));
    popping.next_if(updates, (popping.q & !at) | at.only_if(must_pop));

    // Threads below the top never come to the barrier where it waits: the core must stop.
    wire!(part_waits = waits & (outcome.rest.mask.any() | moved.mask.ne(threads_after)));
    let waiting = parked.map_or(m.lit(0u32, s.warps), |parked| {
        parked.next_if(updates, (parked.q & !at) | at.only_if(waits & !part_waits));
        parked.q
    });
    let cause = part_waits.mux(m.code(FaultCause::BarrierOfAPart), m.code(FaultCause::StackOverflow));
    let refused = Some(Refused { valid: part_waits | full, cause, because: None });

    // Checks.
    assume_legal(m, s, &i, (live.q, waiting), tops.read(outcome.slot).mask, (starts, wakes));
    m.assume("no_outcome_of_a_popping_slot", !(outcome.valid & popping.q.select(outcome.slot, 1)));
    let never = m.lit(0u32, 1);
    let steer = Steer { valid: updates & !must_pop & !waits & !ends, slot, pc: after.pc, replay: never };
    m.assert("the_top_is_live", !steer.valid | !(after.mask & !threads_after).any());
    m.assert("the_lowest_has_all_threads", !(steer.valid & !left.any()) | after.mask.eq(threads_after));

    wire!(put_off = ((start.valid | (wake.valid & wake_possible)) & !start_ready) | popping.q.any());
    let (hold, _) = hold(m, outcome.valid, |_| put_off);
    let wide = s.lane_bits() + 1;
    let events = Events {
        merges: (pops & !popped.to_sibling & !empty).zext(2),
        levels: left.zext(wide).only_if(outcome.valid),
        paths: (left.zext(wide) + m.lit(1u32, wide)).only_if(outcome.valid & !ends),
        ..Events::none(m, s)
    };
    let out = UnitOut {
        start_ready,
        wake_ready,
        live: live.q,
        waiting,
        stop: stops.read(i.decode_slot),
        mask: tops.read(i.issue_slot).mask,
        steer,
        hold,
        more: MoreOut { refused, ..MoreOut::NONE },
        events,
    };
    (out, Inside { popping: popping.q, top: tops.read(outcome.slot) })
}

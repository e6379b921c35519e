//! What becomes of one thread, any of them; and that its slot is steered.

use super::{Harness, Slot};
use crate::divergence::{OutcomeKind, Path, UnitIn};
use crate::proof::{held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// A slot is steered once after each outcome that leaves it live, at once, or when its paths have returned, one was
/// found that can run, or all that wait are woken; and to x, which can run.
pub fn steers(m: Builder, h: &Harness) {
    let (UnitIn { start, outcome, .. }, out) = (h.told, &h.out);
    let steer = out.steer;
    for slot in h.slots {
        let n = slot.number;
        let is = |number: Signal| number.eq(number.literal(n));
        let (acts, begins) = (outcome.valid & is(outcome.slot), start.valid & out.start_ready & is(start.slot));
        let steered = steer.valid & is(steer.slot);
        let owes = m.reg(&format!("owes_{n}"), 1).reset(0u32);
        owes.next((owes.q | acts | begins) & !steered);
        m.assert(&format!("slot_{n}_is_steered"), implies(slot.live, owes.q.eq(slot.returning | slot.parks)));
        m.assert(&format!("slot_{n}_without_a_path_is_to_be_steered"), implies(!slot.live & slot.holds(m), owes.q));
        m.assert(&format!("slot_{n}_is_steered_once"), implies(steered, owes.q | acts | begins));
        let to_x = slot.live & !slot.parks & slot.x.pc.eq(m.pipe(&format!("steered_pc_{n}"), steer.pc));
        m.assert(&format!("slot_{n}_is_steered_to_x"), implies(m.pipe_reset(&format!("steered_{n}"), steered), to_x));
    }
}

/// One thread's pc and depth, in whatever path it is.
pub fn follow(m: Builder, s: &Shape, h: &Harness) {
    let Harness { i, slots, told, out, tables, .. } = h;
    let UnitIn { start, outcome, .. } = *told;
    let next = told.hints.map_or(m.lit(0u32, s.pc_bits()), |hints| m.pipe("next_of_hint", hints.hint.next));
    let slot = index_of(s.warps, held(m, "slot_followed", i.slot));
    let lane = index_of(s.lanes, held(m, "lane_followed", i.lane));
    let alive = m.reg("thread_lives", 1).reset(0u32);
    let pc = m.reg("pc", s.pc_bits());
    let depth = m.reg("depth", s.depth_bits);
    let has = |mask: Signal| mask.select(lane, 1);

    let here = |p: Path<Signal>| p.valid & has(p.mask);
    let mine = |slots: &Slot| slot.eq(slots.number);
    let active = cat(&slots.iter().map(|slot| mine(slot) & here(slot.x)).collect::<Vec<_>>()).any();
    wire!(acts = outcome.valid & outcome.slot.eq(slot) & active);
    let waits = m.reg("waits", 1).reset(0u32);
    wire!(begins = start.valid & out.start_ready & start.slot.eq(slot));
    // In the cycle after the one in which the wake was taken.
    wire!(wakes = tables.store.claim.q.wake & tables.store.claim.q.slot.eq(slot));
    wire!(goes = acts & has(outcome.taken.mask));
    wire!(stays = acts & has(outcome.rest.mask));
    let counts = m.lit(s.order.counts_calls(), 1);
    let (call, ret) = (outcome.call & counts, outcome.ret & counts);
    let deeper = pick([(call, depth.q + 1), (ret & depth.q.any(), depth.q - 1)], depth.q);
    alive.next(pick([(begins, has(start.mask)), (acts, goes | stays)], alive.q));
    pc.next(pick([(begins, start.pc), (goes, outcome.taken.pc), (stays, outcome.rest.pc)], pc.q));
    depth.next(pick([(begins, depth.q.literal(0u32)), (goes, deeper)], depth.q));

    let never = m.lit(0u32, 1);
    waits.next(pick([(begins | wakes, never), (goes, outcome.kind.eq(OutcomeKind::Wait))], waits.q));

    for slot in *slots {
        let places = cat(&slot.masks().into_iter().map(has).collect::<Vec<_>>());
        let one = places.any() & places.eq(places.lowest_one());
        let n = slot.number;
        m.assert(&format!("thread_of_slot_{n}_is_in_one_path"), implies(mine(slot), alive.q.mux(one, !places.any())));
        let deep = |p: Path<Signal>| p.depth.slice(0, s.depth_bits);
        let at = |p: Path<Signal>| deep(p).eq(depth.q) & p.waits.eq(waits.q);
        // Before its outcome a thread that waits is in its path, and where it goes on is where the barrier has it.
        let moved = slot.pending & here(slot.x);
        let paths = slot.paths().into_iter().map(|p| implies(here(p), p.pc.eq(pc.q) & at(p)));
        let to = moved.mux(next, pc.q);
        let held = slot.held.iter().map(|&p| implies(here(p), p.pc.eq(to) & deep(p).eq(depth.q) & !waits.q));
        let joins = slot.pending & has(slot.goes) & !here(slot.x);
        let goes_on = implies(joins, pc.q.eq(next) & depth.q.eq(deep(slot.x)) & !waits.q);
        let right = cat(&paths.chain(held).chain([goes_on]).collect::<Vec<_>>()).all();
        m.assert(&format!("thread_of_slot_{n}_keeps_pc_and_depth"), implies(mine(slot), right));
    }
}

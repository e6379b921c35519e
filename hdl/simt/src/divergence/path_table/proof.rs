//! The path-table unit as a whole: every live thread of a warp is in exactly one path, which has the thread's pc and
//! depth.
//!
//! One thread is followed, any of them, by its pc and call depth as outcomes change them. The other assertions here
//! make the proof inductive: they say what the tables hold between the turns, for every slot, where those in the unit
//! look at the slot whose turn it is. The cold table's state is described in place, so that they can see it.

mod hints;
mod slot;
mod tables;
mod thread;

use super::order::key;
use super::{Inside, cct, convergence, described};
use crate::divergence::path_table::cct::entries;
use crate::divergence::proof::{ProofIn, held_since};
use crate::divergence::{Announced, Outcome, OutcomeKind, Path, Side, Start, UnitIn, UnitOut, Wake};
use crate::pipeline::timing::ISSUE_TO_OUTCOME;
use crate::proof::{cover, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use heddle_hdl::select;
use hints::{hinted, reads};
use slot::{Slot, slot};
use tables::{between_turns, claims, cold_reads, sorter_passes};
use thread::{follow, steers};

/// The unit of a shape with every legal input: outcomes that were announced, of live slots that run, with threads of
/// the active path; starts of idle slots; wakes of those in which all wait.
pub fn path_table_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "path_table_proof", false, &|m, s, h| {
        follow(m, s, h);
        steers(m, h);
    })
}

/// The same, and what the sorter has done after [`sorted_after`] cycles without outcome and start, nor an announced
/// outcome.
pub fn sorter_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "sorter_proof", false, &|m, s, h| {
        let UnitIn { start, wake, .. } = h.told;
        let idle = m.reg("idle", count_width(sorted_after(s))).reset(0u32);
        wire!(enough = idle.q.eq(sorted_after(s)));
        let announced = h.announced.valid | h.tables.store.claim.q.outcome;
        idle.next(enough.mux(idle.q, idle.q + 1).only_if(!announced & !start.valid & !wake.valid));
        for slot in h.slots {
            let n = slot.number;
            // A path equal to an x that waits stays apart from it.
            let equal = |p: Path<Signal>| slot.parks & key(slot.x).eq(key(p));
            let behind_y = slot.cold.iter().map(|&p| implies(p.valid, key(slot.y).le(key(p)) | equal(p)));
            let sorted = !slot.returning & cat(&behind_y.collect::<Vec<_>>()).all();
            m.assert(&format!("slot_{n}_y_is_least_when_idle"), implies(enough, sorted));
            m.assert(&format!("slot_{n}_has_found_whether_all_wait"), implies(enough, !slot.seeking));
            cover(m, &format!("slot_{n}_sorted"), enough & slot.live & slot.count.any());
        }
    })
}

/// Cycles after which every path that was to return has, and the sorter has been through every stack: the rest of a
/// pass, with a cycle more for each exchange, a fetch and two cycles for each entry of each warp, then a pass of each.
pub fn sorted_after(s: &Shape) -> u32 {
    let (pass, returns) = (2 * entries(s) + 3, 2 * entries(s) + 2);
    pass + s.warps * (returns + pass)
}

/// What a proof sees.
struct Harness<'a> {
    i: &'a ProofIn<Signal>,
    slots: &'a [Slot],
    /// What the unit is told, and what it answers.
    told: UnitIn<Signal>,
    announced: Announced<Signal>,
    out: UnitOut<Signal>,
    tables: &'a Inside,
    cold: Option<&'a cct::Inside>,
    barriers: Option<&'a convergence::Inside>,
    /// The unit's `hold` one cycle ago, two, and so on, if the pipeline obeys it.
    late: &'a [Signal],
    /// 1 bit: an instruction on two barriers, which was named in the cycle before.
    comes: Signal,
}

/// What is special of a proof: its assertions.
type Specific<'a> = &'a dyn Fn(Builder, &Shape, &Harness);

/// The unit with legal inputs, and what all proofs of it assert. `obeys`: the pipeline does what `hold` says, and an
/// instruction that was named comes, as does an outcome that was announced; else it does as it likes.
fn harness(s: &Shape, name: &str, obeys: bool, specific: Specific) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    module(name, ProofIn::shape(s), |m, i| {
        let unit_in = m.deferred("unit_in", UnitIn::shape(s));
        let (mut cold, mut barriers) = (None, None);
        let place_cold = |m: Builder, i| {
            let (out, inside) = cct::described(m, s, i);
            cold = Some((out.entry, inside));
            out
        };
        let place_barriers = |m: Builder, i| {
            let (out, inside) = convergence::described(m, s, i);
            barriers = Some(inside);
            out
        };
        let (out, tables) = described(m, s, unit_in.value, place_cold, place_barriers);
        let inside = (cold.as_ref().map(|c| &c.1), barriers.as_ref());
        let slots: Vec<Slot> = (0..s.warps).map(|w| slot(m, s, w, &tables, inside)).collect();
        let late = if obeys { held_since(m, out.hold, ISSUE_TO_OUTCOME) } else { vec![] };
        let may = late.last().map_or(m.lit(1u32, 1), |&held| !held);

        let announced = m.deferred("announced", Announced { valid: 1, slot: s.warp_bits(), call: 1, ret: 1 });
        let unit = Unit { i: &i, out: &out, tables: &tables, slots: &slots };
        let legal = legal(m, s, &unit, obeys, may, announced.value);
        let Legal { start, wake, outcome, asked, was_announced, number, .. } = legal;
        let mut told = UnitIn { start, wake, outcome, announced: Some(announced.value), ..i.unit };
        let mut comes = m.lit(0u32, 1);
        let announce = if let (Some(hints), Some(barriers)) = (&mut told.hints, &barriers) {
            let announce;
            (told.outcome, announce, comes) = hinted(
                m,
                s,
                (&slots, &late),
                hints,
                (outcome, asked),
                (barriers, tables.store.hct0.read(barriers.act.waited_slot).mask, out.steer),
            );
            reads(m, s, hints, &slots, &tables, barriers);
            announce
        } else {
            asked
        };
        announced.drive(announce);
        let outcome = told.outcome;
        told.sequence = told.sequence.map(|sequence| sequence.legal(&outcome));
        unit_in.drive(told);

        for slot in &slots {
            between_turns(m, s, slot, &tables);
        }
        claims(m, s, &tables, inside, (was_announced, number, legal.outcome.call, legal.outcome.ret), legal.taken_wake);
        if obeys {
            m.assert("who_was_announced_runs", implies(was_announced, legal.runs));
        }
        if let Some((entry, cold)) = &cold {
            cold_reads(m, s, &slots, *entry, cold);
            if s.may_park() {
                sorter_passes(m, s, &slots, cold);
            }
        }
        let (cold, barriers) = inside;
        specific(
            m,
            s,
            &Harness {
                i: &i,
                slots: &slots,
                told,
                announced: announce,
                out,
                tables: &tables,
                cold,
                barriers,
                late: &late,
                comes,
            },
        );

        covers(m, s, &unit, outcome.valid & legal.all & legal.none, wake, cold.is_some());
        out
    })
}

/// The unit, and what it is told and answers.
struct Unit<'a> {
    i: &'a ProofIn<Signal>,
    out: &'a UnitOut<Signal>,
    tables: &'a Inside,
    slots: &'a [Slot],
}

/// Legal inputs.
struct Legal {
    start: Start<Signal>,
    wake: Wake<Signal>,
    /// The wake that was taken in the cycle before.
    taken_wake: Wake<Signal>,
    outcome: Outcome<Signal>,
    /// What may be announced.
    asked: Announced<Signal>,
    /// 1 bit: an outcome was announced; of which slot; 1 bit: that runs.
    was_announced: Signal,
    number: Signal,
    runs: Signal,
    /// 1 bit each: all live threads of that slot are in the path that runs; none of these would go on.
    all: Signal,
    none: Signal,
}

/// Legal inputs out of any. `may`: an outcome may come, as far as `hold` goes.
fn legal(m: Builder, s: &Shape, unit: &Unit, obeys: bool, may: Signal, announced: Announced<Signal>) -> Legal {
    let &Unit { i, out, tables, slots } = unit;
    let was_announced = m.pipe_reset("was_announced", announced.valid);
    let number = index_of(s.warps, m.pipe("announced_slot", announced.slot));
    let x = tables.store.hct0.read(number);
    let slot_of = |signal: fn(&Slot) -> Signal| select(&slots.iter().map(signal).collect::<Vec<_>>(), number);
    let runs = slot_of(Slot::runs);
    let (taken, rest) = (x.mask & i.taken, x.mask & i.rest & !i.taken);
    let waits = i.unit.outcome.kind.eq(OutcomeKind::Wait);
    let never = waits & (m.lit(!s.barriers, 1) | !taken.any());
    // What is announced of the call depth is so, and only jumps change it.
    let (call, ret) = (m.pipe("call_announced", announced.call), m.pipe("ret_announced", announced.ret));
    let goes_on = never.mux(m.code(OutcomeKind::Branch), i.unit.outcome.kind);
    // Nor does an outcome follow the steering in the next cycle.
    let just = m.pipe_reset("was_just_steered", out.steer.valid) & number.eq(m.pipe("just_steered", out.steer.slot));
    let outcome = Outcome {
        valid: if obeys { was_announced } else { i.unit.outcome.valid & was_announced & runs & may & !just },
        slot: number,
        kind: (call | ret).mux(m.code(OutcomeKind::Jump), goes_on),
        taken: Side { mask: taken, ..i.unit.outcome.taken },
        rest: Side { mask: rest, ..i.unit.outcome.rest },
        call,
        ret,
        meets: None,
        homes: None,
    };
    let idle = index_of(s.warps, i.unit.start.slot);
    let start = Start { valid: i.unit.start.valid & !out.live.select(idle, 1), slot: idle, ..i.unit.start };
    let woken = index_of(s.warps, i.unit.wake.slot);
    let wake = Wake { valid: i.unit.wake.valid & out.waiting.select(woken, 1), slot: woken };
    let taken_wake = m.pipe_reset("was_woken", wake.valid & out.wake_ready);
    let taken_wake = Wake { valid: taken_wake, slot: m.pipe("woken_slot", woken) };
    let asked = i.unit.announced.expect("outcomes are announced");
    let at = index_of(s.warps, asked.slot);
    // The path that runs is the same when the outcome comes.
    let deeper = asked.call & !tables.store.hct0.read(at).depth.slice(0, s.depth_bits).all();
    let asked = Announced { slot: at, call: deeper, ret: asked.ret & !deeper, ..asked };
    let all = x.mask.eq(tables.ghosts.ghost_live.read(number));
    let none = !(taken | rest).any();
    Legal { start, wake, taken_wake, outcome, asked, was_announced, number, runs, all, none }
}

/// What a proof should reach.
fn covers(m: Builder, s: &Shape, unit: &Unit, ends: Signal, wake: Wake<Signal>, is_cold: bool) {
    let &Unit { out, tables, slots, .. } = unit;
    let any = |f: &dyn Fn(&Slot) -> Signal| cat(&slots.iter().map(f).collect::<Vec<_>>()).any();
    cover(m, "a_warp_ends", ends);
    if s.lanes > 1 {
        cover(m, "two_paths", any(&|slot| slot.live & slot.y.valid));
        cover(m, "paths_merge", out.events.merges.any());
    }
    if let Some(releases) = out.events.releases
        && s.lanes > 1
    {
        cover(m, "some_wait_and_others_run", any(&|slot| slot.live & slot.holds(m)));
        cover(m, "the_list_is_empty", any(&|slot| !slot.live & slot.holds(m)));
        cover(m, "released_complete", releases.complete);
        cover(m, "released_stuck", releases.stuck);
    }
    if s.barriers {
        cover(m, "all_wait", tables.store.waiting().any());
        if s.lanes > 1 {
            cover(m, "one_waits", any(&|slot| slot.y.valid & slot.y.waits & !slot.x.waits));
            cover(m, "two_paths_are_woken", any(&|slot| slot.waiting & slot.y.valid) & wake.valid & out.wake_ready);
        }
    }
    if is_cold {
        cover(m, "a_cold_path", any(&|slot| slot.live & slot.count.any()));
        cover(m, "a_path_returns", out.events.extract);
        cover(m, "paths_are_exchanged", out.events.swap);
    }
}

pub mod fair;
pub mod release;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::Order;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps, barriers, convergence_barriers) in [
            (1, 1, false, 0),
            (2, 2, false, 0),
            (4, 2, false, 0),
            (8, 2, false, 0),
            (1, 2, true, 0),
            (2, 2, true, 0),
            (4, 2, true, 0),
            (8, 1, true, 0),
            (1, 2, true, 1),
            (2, 1, false, 1),
            (2, 2, true, 2),
            (4, 1, false, 1),
            (4, 2, true, 2),
            (8, 1, true, 3),
        ] {
            let s = Shape { program: 16, depth_bits: 1, barriers, ..Shape::new(lanes, warps) };
            let s = Shape { convergence_barriers, patience: 32, ..s };
            for order in [Order::DepthPc, Order::Pc, Order::Swap, Order::Minority, Order::Majority] {
                let reservations = warps == 2;
                let s = Shape { order, reservations, ..s.clone() };
                holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
            }
            if convergence_barriers > 0 {
                let s = Shape { warp_primitives: true, ..s.clone() };
                holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
            }
            let s = Shape { fair: true, order: Order::BreadthFirst, ..s };
            holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
            let s = Shape { order: Order::DepthPc, ..s };
            for patience in [2, 8, 32] {
                let s = Shape { patience, ..s.clone() };
                holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
            }
        }
    }
}

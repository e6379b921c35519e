//! The path-table unit as a whole: every live thread of a warp is in exactly one path, which has the thread's pc and depth.
//!
//! One thread is followed, any of them, by its pc and call depth as outcomes change them. The other assertions here make
//! the proof inductive: they say what the tables hold between the turns, for every slot, where those in the unit look at
//! the slot whose turn it is. The cold table's state is described in place, so that they can see it.

use super::super::cct;
use super::{Inside, described};
use crate::divergence::cct::{Context, entries};
use crate::divergence::proof::ProofIn;
use crate::divergence::{Outcome, Path, Side, Start, UnitIn, UnitOut, Wake, kind};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::*;

/// A slot's tables.
struct Slot {
    number: u32,
    live: Signal,
    x: Path<Signal>,
    y: Path<Signal>,
    cold: Vec<Path<Signal>>,
    count: Signal,
    returning: Signal,
}

impl Slot {
    fn paths(&self) -> Vec<Path<Signal>> {
        [self.x, self.y].into_iter().chain(self.cold.iter().copied()).collect()
    }
}

/// The number that paths are sorted by.
fn key(p: Path<Signal>) -> Signal {
    cat(&[p.pc, !p.depth])
}

/// The unit of a shape in which no path waits, with every legal input: outcomes of live slots that are not returning, with
/// threads of the active path; starts of idle slots.
pub fn path_table_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "path_table_proof", &|m, s, i, slots, (outcome, start), out| {
        follow(m, s, i, slots, outcome, start, out.start_ready);
        steers(m, slots, outcome, start, out);
    })
}

/// The same, and what the sorter has done after [`sorted_after`] cycles without outcome and start.
pub fn sorter_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "sorter_proof", &|m, s, _, slots, (outcome, start), _| {
        let idle = m.reg("idle", count_width(sorted_after(s))).reset(0u32);
        wire!(enough = idle.q.eq(sorted_after(s)));
        idle.next(enough.mux(idle.q, idle.q + 1).only_if(!outcome.valid & !start.valid));
        for slot in slots {
            let n = slot.number;
            let behind_y = slot.cold.iter().map(|&p| implies(p.valid, key(slot.y).le(key(p))));
            let sorted = !slot.returning & cat(&behind_y.collect::<Vec<_>>()).all();
            m.assert(&format!("slot_{n}_y_is_least_when_idle"), implies(enough, sorted));
            cover(m, &format!("slot_{n}_sorted"), enough & slot.live & slot.count.any());
        }
    })
}

/// Cycles after which every path that was to return has, and the sorter has been through every stack: the rest of a pass,
/// a fetch and the entries of each warp, then a pass of each.
pub fn sorted_after(s: &Shape) -> u32 {
    let pass = entries(s) + 2;
    (2 * s.warps + 1) * pass
}

/// What is special of a proof: its assertions from the inputs, the slots, what happens, and the outputs.
type Specific<'a> =
    &'a dyn Fn(Builder, &Shape, &ProofIn<Signal>, &[Slot], (&Outcome<Signal>, &Start<Signal>), &UnitOut<Signal>);

fn harness(s: &Shape, name: &str, specific: Specific) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    module(name, ProofIn::shape(s), |m, i| {
        let unit_in = m.deferred("unit_in", UnitIn::shape(s));
        let mut cold = None;
        let (out, tables) = described(m, s, unit_in.value, |m, i| {
            let (out, inside) = cct::described(m, s, i);
            cold = Some((out.entry, inside));
            out
        });
        let slots: Vec<Slot> = (0..s.warps).map(|w| slot(m, s, w, &tables, cold.as_ref().map(|c| &c.1))).collect();

        let number = index_of(s.warps, i.unit.outcome.slot);
        let x = tables.hct0.read(number);
        let returning = cold.as_ref().map_or(m.lit(0u32, 1), |(_, c)| c.returning.select(number, 1));
        let (taken, rest) = (x.mask & i.taken, x.mask & i.rest & !i.taken);
        let jump = i.unit.outcome.kind.eq(kind::JUMP);
        let call = jump & i.unit.outcome.call & !x.depth.all();
        let outcome = Outcome {
            valid: i.unit.outcome.valid & tables.live.select(number, 1) & !returning,
            slot: number,
            kind: i.unit.outcome.kind.eq(kind::WAIT).mux(m.lit(kind::BRANCH, kind::BITS), i.unit.outcome.kind),
            taken: Side { mask: taken, ..i.unit.outcome.taken },
            rest: Side { mask: rest, ..i.unit.outcome.rest },
            call,
            ret: jump & i.unit.outcome.ret & !call,
            meets: None,
            homes: None,
        };
        let idle = index_of(s.warps, i.unit.start.slot);
        let start = Start { valid: i.unit.start.valid & !tables.live.select(idle, 1), slot: idle, ..i.unit.start };
        let wake = Wake { valid: m.lit(0u32, 1), ..i.unit.wake };
        unit_in.drive(UnitIn { start, wake, outcome, ..i.unit });

        for slot in &slots {
            between_turns(m, s, slot, &tables);
        }
        if let Some((entry, inside)) = &cold {
            cold_reads(m, s, &slots, *entry, inside);
        }
        specific(m, s, &i, &slots, (&outcome, &start), &out);

        let any = |f: &dyn Fn(&Slot) -> Signal| cat(&slots.iter().map(f).collect::<Vec<_>>()).any();
        cover(m, "a_warp_ends", outcome.valid & x.mask.eq(tables.ghost_live.read(number)) & !(taken | rest).any());
        if s.lanes > 1 {
            cover(m, "two_paths", any(&|slot| slot.live & slot.y.valid));
            cover(m, "paths_merge", out.events.merges.any());
        }
        if cold.is_some() {
            cover(m, "a_cold_path", any(&|slot| slot.live & slot.count.any()));
            cover(m, "a_path_returns", out.events.extract);
            cover(m, "paths_are_exchanged", out.events.swap);
        }
        out
    })
}

fn slot(m: Builder, s: &Shape, number: u32, tables: &Inside, cold: Option<&cct::Inside>) -> Slot {
    let at = m.lit(number, s.warp_bits());
    let live = tables.live.bit(number);
    let entry_bits = index_width(entries(s));
    let none = m.zero(Path::shape(s));
    let count = cold.map_or(m.lit(0u32, 1), |c| c.counts.read(at));
    let cold_path = |c: &cct::Inside, k: u32| {
        let address = m.lit(number << entry_bits | k, entry_bits + s.warps.ilog2());
        c.cold.read(address).path(live & count.gt(k))
    };
    let y = tables.hct1.as_ref().map_or(none, |t| t.read(at));
    Slot {
        number,
        live,
        x: tables.hct0.read(at).path(live),
        y: Path { valid: y.valid & live, ..y },
        cold: cold.map_or(vec![], |c| (0..entries(s)).map(|k| cold_path(c, k)).collect()),
        count,
        returning: cold.map_or(m.lit(0u32, 1), |c| c.returning.bit(number)),
    }
}

/// What a live slot's tables hold at every cycle.
fn between_turns(m: Builder, s: &Shape, slot: &Slot, tables: &Inside) {
    let n = slot.number;
    let at = m.lit(n, s.warp_bits());
    let masks: Vec<Signal> = slot.paths().iter().map(|p| p.mask.only_if(p.valid)).collect();
    let none = m.lit(0u32, s.lanes);
    let (mut seen, mut twice) = (none, none);
    for &mask in &masks {
        twice = twice | (seen & mask);
        seen = seen | mask;
    }
    m.assert(&format!("slot_{n}_paths_are_disjoint"), !twice.any());
    m.assert(&format!("slot_{n}_paths_are_complete"), implies(slot.live, seen.eq(tables.ghost_live.read(at))));
    let full: Vec<Signal> = slot.paths().iter().zip(&masks).map(|(p, mask)| implies(p.valid, mask.any())).collect();
    m.assert(&format!("slot_{n}_paths_are_not_empty"), cat(&full).all());
    if slot.cold.is_empty() {
        m.assert(&format!("slot_{n}_is_sorted"), implies(slot.y.valid, key(slot.x).lt(key(slot.y))));
        m.assert(&format!("slot_{n}_has_no_cold_thread"), implies(slot.live, !tables.ghost_cold.read(at).any()));
        return;
    }
    let cold = masks[2..].iter().fold(none, |all, &mask| all | mask);
    m.assert(&format!("slot_{n}_cold_threads"), implies(slot.live, cold.eq(tables.ghost_cold.read(at))));
    m.assert(&format!("slot_{n}_count_is_bounded"), implies(slot.live, slot.count.le(entries(s))));
    let alone = implies(slot.live & !slot.y.valid, slot.returning | !slot.count.any());
    m.assert(&format!("slot_{n}_alone_is_returning"), alone);
    let returns = slot.live & !slot.y.valid & slot.count.any();
    m.assert(&format!("slot_{n}_returning_has_a_path"), implies(slot.returning, returns));
}

/// What the cold table has read is what it holds.
fn cold_reads(m: Builder, s: &Shape, slots: &[Slot], entry: Context<Signal>, c: &cct::Inside) {
    let is = |slot: &Slot, number: Signal| if s.warps > 1 { number.eq(slot.number) } else { m.lit(1u32, 1) };
    for slot in slots {
        let n = slot.number;
        let head = c.fetched.valid & is(slot, c.fetched.at);
        let sorted = c.compared.valid & is(slot, c.scan);
        let compared = c.compared.at;
        let width = slot.count.width();
        let held = |k: usize| slot.cold[k].valid & Context::of(slot.cold[k]).same_as(entry);
        let is_entry = |which: Signal| {
            cat(&(0..slot.cold.len()).map(|k| which.eq(m.lit(k as u32, width)) & held(k)).collect::<Vec<_>>()).any()
        };
        m.assert(&format!("slot_{n}_head_was_fetched"), implies(head, slot.returning & is_entry(slot.count - 1)));
        m.assert(&format!("slot_{n}_entry_was_read"), implies(sorted, slot.live & slot.y.valid & is_entry(compared)));
    }
    m.assert(
        "slots_are_there",
        c.scan.eq(index_of(s.warps, c.scan)) & c.fetched.at.eq(index_of(s.warps, c.fetched.at)),
    );
    m.assert("one_read_at_a_time", !(c.fetched.valid & c.compared.valid));
    m.assert("sorter_goes_up", implies(c.compared.valid, c.index.eq(c.compared.at + 1)));
}

/// A slot is steered once after each outcome that leaves it live, at once or when its paths have returned, and to x.
fn steers(m: Builder, slots: &[Slot], outcome: &Outcome<Signal>, start: &Start<Signal>, out: &UnitOut<Signal>) {
    let steer = out.steer;
    for slot in slots {
        let n = slot.number;
        let is = |number: Signal| number.eq(number.literal(n));
        let (acts, begins) = (outcome.valid & is(outcome.slot), start.valid & out.start_ready & is(start.slot));
        let steered = steer.valid & is(steer.slot);
        let owes = m.reg(&format!("owes_{n}"), 1).reset(0u32);
        owes.next((owes.q | acts | begins) & !steered);
        m.assert(&format!("slot_{n}_is_steered"), implies(slot.live, owes.q.eq(slot.returning)));
        m.assert(&format!("slot_{n}_is_steered_once"), implies(steered, owes.q | acts | begins));
        let to_x = slot.live & slot.x.pc.eq(m.pipe(&format!("steered_pc_{n}"), steer.pc));
        m.assert(&format!("slot_{n}_is_steered_to_x"), implies(m.pipe_reset(&format!("steered_{n}"), steered), to_x));
    }
}

/// One thread's pc and depth, in whatever path it is.
fn follow(
    m: Builder,
    s: &Shape,
    i: &ProofIn<Signal>,
    slots: &[Slot],
    outcome: &Outcome<Signal>,
    start: &Start<Signal>,
    start_ready: Signal,
) {
    let slot = index_of(s.warps, held(m, "slot_followed", i.slot));
    let lane = index_of(s.lanes, held(m, "lane_followed", i.lane));
    let alive = m.reg("alive", 1).reset(0u32);
    let pc = m.reg("pc", s.pc_bits());
    let depth = m.reg("depth", s.depth_bits);
    let has = |mask: Signal| mask.select(lane, 1);

    let here = |p: Path<Signal>| p.valid & has(p.mask);
    let mine = |slots: &Slot| slot.eq(slots.number);
    let active = cat(&slots.iter().map(|slot| mine(slot) & here(slot.x)).collect::<Vec<_>>()).any();
    wire!(acts = outcome.valid & outcome.slot.eq(slot) & active);
    wire!(begins = start.valid & start_ready & start.slot.eq(slot));
    wire!(goes = acts & has(outcome.taken.mask));
    wire!(stays = acts & has(outcome.rest.mask));
    let deeper = pick([(outcome.call, depth.q + 1), (outcome.ret & depth.q.any(), depth.q - 1)], depth.q);
    alive.next(pick([(begins, has(start.mask)), (acts, goes | stays)], alive.q));
    pc.next(pick([(begins, start.pc), (goes, outcome.taken.pc), (stays, outcome.rest.pc)], pc.q));
    depth.next(pick([(begins, depth.q.literal(0u32)), (goes, deeper)], depth.q));

    for slot in slots {
        let places = cat(&slot.paths().into_iter().map(here).collect::<Vec<_>>());
        let one = places.any() & places.eq(places.lowest_one());
        let n = slot.number;
        m.assert(&format!("thread_of_slot_{n}_is_in_one_path"), implies(mine(slot), alive.q.mux(one, !places.any())));
        let right = slot.paths().into_iter().map(|p| implies(here(p), p.pc.eq(pc.q) & p.depth.eq(depth.q)));
        let right = cat(&right.collect::<Vec<_>>()).all();
        m.assert(&format!("thread_of_slot_{n}_keeps_pc_and_depth"), implies(mine(slot), right));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps) in [(1, 1), (2, 2), (4, 2), (8, 2)] {
            let s = Shape { program: 16, depth_bits: 1, ..Shape::new(lanes, warps) };
            holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
        }
    }
}

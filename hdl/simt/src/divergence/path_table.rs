//! The path-table divergence unit: the paths of a warp in order, as in Simty.
//!
//! `path-lists-simty.txt` §3.2; `docs/path-tables.md` has the picture. Each warp has its two first paths in hot context
//! tables, x in HCT0 and y in HCT1; all others are in the cold context table ([`super::cct`]). Whatever changes a warp's
//! paths passes the compact-and-sort unit ([`super::ccs`]), one thing a cycle:
//!
//! | turn | a | b | c | what follows |
//! |---|---|---|---|---|
//! | outcome | taken | rest | HCT1 | x, y to HCT0, HCT1; z to the CCT; steers to x |
//! | return | HCT0 | head of the CCT | (invalid) | the same; never a z |
//! | start | the new path | – | – | the same; never y or z |
//! | wake | HCT0 | – | HCT1 | steers to x; the slot's phase changes |
//! | sort | HCT0, kept first | an entry of the CCT | HCT1 | y and z are exchanged if b belongs before c |
//! | sort, a waits | HCT0 | the same | HCT1 | x, y, z written if b is not z; steers to x if it does not wait |
//!
//! An outcome always has its turn; then a return, a start, a wake, the sorter. After an outcome that leaves only x while
//! the CCT holds paths of the warp, the slot is steered by the last return that follows. HCT1 is invalid only if the CCT
//! has no path of the warp, or while a return is under way.
//!
//! A path waits if its bit in the tables differs from its slot's phase. A wake comes when all paths of a slot wait, so one
//! change of the phase makes all of them run, and their order among each other stays.
//!
//! What it does not do: nothing is fair between paths. A path may wait forever for one before it, so locks between
//! threads of a warp may not make progress.

use super::ccs::{CcsIn, ccs};
use super::cct::{CctIn, CctOut, Context, cct, entries};
use super::{Events, Outcome, Path, Steer, Stop, UnitIn, UnitOut, assume_legal, depth_after, hold, kind};
use crate::shape::Shape;
use heddle_hdl::*;

/// The path-table unit of a shape.
pub fn path_table(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    let cold = |m: Builder, i: CctIn<Signal>| m.instance("cct", &cct(s), i);
    module("path_table", UnitIn::shape(s), |m, i| described(m, s, i, cold).0)
}

/// The tables, as a proof sees them.
struct Inside {
    live: Signal,
    hct0: Mem<Context<Width>>,
    hct1: Option<Mem<Path<Width>>>,
    ghost_live: Mem<Width>,
    ghost_cold: Mem<Width>,
}

/// The unit, with a cold table that `place_cold` makes.
fn described(
    m: Builder,
    s: &Shape,
    i: UnitIn<Signal>,
    place_cold: impl FnOnce(Builder, CctIn<Signal>) -> CctOut<Signal>,
) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: sorted path tables.");
    let UnitIn { start, wake, outcome, .. } = i;
    let live = m.reg("live", s.warps).reset(0u32);
    let hct0 = m.memory("hct0", Context::shape(s), s.warp_bits()).style(MemoryStyle::Distributed);
    let stops = m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, s.warp_bits()).style(MemoryStyle::Distributed);
    let (cold, cold_in) = cold_table(m, s, place_cold);

    // Whose turn it is.
    wire!(returns = cold.returned & !outcome.valid);
    wire!(start_ready = !outcome.valid & !cold.returned);
    wire!(starts = start.valid & start_ready);
    let wake_possible = m.lit(s.barriers, 1);
    wire!(wake_ready = start_ready & !start.valid & wake_possible);
    wire!(wakes = wake.valid & wake_ready);
    wire!(updates = outcome.valid | returns | starts);
    let others = [(outcome.valid, outcome.slot), (starts, start.slot), (wakes, wake.slot)];
    wire!(slot = pick(others, cold.idle_slot));
    wire!(slot_live = live.q.select(slot, 1));
    wire!(phase = phase(m, s, slot, wakes));
    // Between the tables and the CCS, either way.
    let turned = |p: Path<Signal>| Path { waits: p.waits ^ phase, ..p }.as_built(s);

    // What passes the CCS.
    wire!(active = turned(hct0.read(slot).path(slot_live)));
    let runs = m.lit(0u32, 1);
    let depth = active.depth.literal(0u32);
    let begun = Path { valid: start.mask.any(), depth, pc: start.pc, mask: start.mask, waits: runs };
    let taken = Path {
        valid: outcome.taken.mask.any(),
        depth: depth_after(m, &outcome, active.depth),
        pc: outcome.taken.pc,
        mask: outcome.taken.mask,
        waits: outcome.kind.eq(kind::WAIT),
    }
    .as_built(s);
    let side = outcome.rest;
    let rest = Path { valid: side.mask.any(), depth: active.depth, pc: side.pc, mask: side.mask, waits: runs };
    wire!(a = outcome.valid.mux(taken, starts.mux(begun, active)));
    wire!(b = outcome.valid.mux(rest, turned(cold.entry.path(returns | cold.sorts))));
    let hct1 = (s.lanes > 1).then(|| m.memory("hct1", Path::shape(s), s.warp_bits()).style(MemoryStyle::Distributed));
    let second = hct1.as_ref().map_or_else(|| m.zero(Path::shape(s)), |t| t.read(slot));
    wire!(c = turned(Path { valid: second.valid & slot_live, ..second }));
    wire!(parked = active.waits & !updates);
    let sorted = m.instance("ccs", &ccs(s), CcsIn { a, b, c, a_first: slot_live & !updates & !parked });
    let (x, y, z) = (sorted.x, sorted.y, sorted.z);
    wire!(x_waits = x.valid & x.waits);

    // Where it goes.
    let at = slot.decode(s.warps);
    live.next_if(updates, (live.q & !at) | at.only_if(x.valid));
    wire!(x_changes = updates | (cold.swap & parked));
    hct0.write(x_changes, slot, Context::of(turned(x)));
    wire!(y_changes = updates | cold.swap);
    if let Some(hct1) = &hct1 {
        hct1.write(y_changes, slot, turned(y));
    }
    stops.write(y_changes, slot, Stop { valid: sorted.y_ahead, pc: y.pc });
    if let Some(cold_in) = &cold_in {
        cold_in.drive(CctIn {
            outcome: outcome.valid,
            start: starts,
            wake: wakes,
            slot,
            has_y: c.valid,
            alone: x.valid & !y.valid,
            x_waits,
            z: turned(z),
            before_y: if s.barriers { sorted.b_before_c & z.valid } else { sorted.b_before_c },
        });
    }
    let waiting = if s.barriers {
        let seen = if cold_in.is_some() { cold.seen } else { updates };
        let waiting = m.reg("waiting", s.warps).reset(0u32);
        wire!(all_wait = x_waits & seen);
        waiting.next_if(updates | wakes | all_wait, (waiting.q & !at) | at.only_if(all_wait));
        waiting.q
    } else {
        m.lit(0u32, s.warps)
    };

    // Outcomes that come while something else waits for its turn. A head that was read needs only one cycle without an
    // outcome: it is asked for in one cycle, and again if that one is lost.
    wire!(put_off = (start.valid | (wake.valid & wake_possible)) & !start_ready);
    let asked = |hold: Signal| hold & cold.returned & !put_off;
    let (hold, _) = hold(m, outcome.valid, |hold| (cold.due | put_off) & !asked(hold));

    let wide = s.lane_bits() + 1;
    let paths = cold.count.zext(wide) + cat(&[x.valid, y.valid, z.valid]).count_ones().zext(wide);
    let events = Events {
        merges: sorted.merges.only_if(updates),
        insert: cold.insert,
        extract: cold.extract,
        swap: cold.swap,
        paths: paths.only_if(outcome.valid),
        levels: m.lit(0u32, s.lane_bits() + 1),
    };
    let steer = Steer {
        valid: (updates & x.valid & !x.waits & !cold.more_returns) | wakes | (cold.swap & parked & !x.waits),
        slot,
        pc: x.pc,
        replay: outcome.valid & outcome.kind.eq(kind::MEMORY) & sorted.x_is_b,
    };

    assume_legal(m, s, &i, (live.q, waiting), active.mask, (starts, wakes));
    let deepest = active.depth.all() & outcome.call & taken.valid;
    m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
    m.assert("third_path_goes_to_the_cold_table", !(updates & z.valid) | cold.insert);
    m.cover("returned_path_merges", returns & sorted.merges.any());
    m.cover("returned_path_is_first", returns & sorted.x_is_b);
    m.cover("replays", steer.replay);
    let arrives = outcome.valid & outcome.kind.eq(kind::ARRIVED);
    m.cover("arrives_and_merges", arrives & sorted.merges.any());
    m.cover("arrives_and_meets_none", arrives & !sorted.merges.any());
    m.cover("path_ends_and_others_go_on", outcome.valid & !a.valid & !b.valid & x.valid);
    let together = outcome.valid & y.valid & x.depth.eq(y.depth);
    m.cover("runs_towards_y", together & sorted.y_ahead);
    m.cover("runs_deeper_than_y", outcome.valid & y.valid & x.depth.ne(y.depth));
    m.cover("calls", outcome.valid & outcome.call & taken.valid);
    m.cover("returns_from_a_call", outcome.valid & outcome.ret & taken.valid & active.depth.any());
    m.cover("start_waits", start.valid & !start_ready);
    m.cover("warp_ends", outcome.valid & !x.valid);
    m.cover("holds_for_a_cycle", asked(hold));
    m.cover("returns_at_depth_zero", outcome.valid & outcome.ret & taken.valid & !active.depth.any());
    if cold_in.is_some() {
        m.cover("warp_goes_on_with_a_cold_path", outcome.valid & !a.valid & !b.valid & cold.more_returns);
    }
    let turn = Turn { outcome, starts, begun: start.mask, returns, slot, slot_live, active, second: c, b, x, z };
    let (ghost_live, ghost_cold, all) = every_thread_in_one_path(m, s, &turn, &cold);
    if s.barriers {
        m.assume("outcome_of_a_path_that_runs", !outcome.valid | !active.waits);
        m.cover("wakes_two_paths", wakes & y.valid);
        m.cover("arrives_at_a_waiting_path", outcome.valid & x_waits & sorted.merges.any());
        m.cover("runs_beside_a_waiting_path", outcome.valid & !x.waits & y.valid & y.waits);
        m.cover("returned_path_runs", returns & active.waits & !x.waits);
        paths_wait_with_their_threads(m, s, &turn, wakes, waiting.select(slot, 1), all);
    }

    m.probe("updates", updates);
    m.probe("slot", slot);
    m.probe("x", x);
    m.probe("y", y);
    m.probe("z", z);
    let out = UnitOut {
        start_ready,
        wake_ready,
        live: live.q,
        waiting,
        stop: stops.read(i.decode_slot),
        mask: hct0.read(i.issue_slot).mask,
        steer,
        hold,
        refused: None,
        dual: None,
        block: None,
        events,
    };
    (out, Inside { live: live.q, hct0, hct1, ghost_live, ghost_cold })
}

/// The cold table and its inputs, to be driven; with fewer than 4 lanes there is none, and its outputs are zeros.
fn cold_table(
    m: Builder,
    s: &Shape,
    place: impl FnOnce(Builder, CctIn<Signal>) -> CctOut<Signal>,
) -> (CctOut<Signal>, Option<Deferred<CctIn<Signal>>>) {
    if entries(s) == 0 {
        return (m.zero(CctOut::shape(s)), None);
    }
    let inputs = m.deferred("to_cct", CctIn::shape(s));
    (place(m, inputs.value), Some(inputs))
}

/// The phase of a slot: its paths wait if their bit differs from it. A wake changes it. Its first value does not matter.
fn phase(m: Builder, s: &Shape, slot: Signal, wakes: Signal) -> Signal {
    if !s.barriers {
        return m.lit(0u32, 1);
    }
    let phases = m.memory("phases", 1, s.warp_bits()).style(MemoryStyle::Distributed);
    let phase = phases.read(slot);
    phases.write(wakes, slot, !phase);
    phase
}

/// What happens in a cycle, for the invariant.
struct Turn {
    outcome: Outcome<Signal>,
    starts: Signal,
    begun: Signal,
    returns: Signal,
    slot: Signal,
    slot_live: Signal,
    active: Path<Signal>,
    second: Path<Signal>,
    b: Path<Signal>,
    x: Path<Signal>,
    z: Path<Signal>,
}

/// The invariant: every live thread of a warp is in exactly one path.
///
/// Two ghost tables, a word a warp, follow the threads: `ghost_live` has those that were started and have not ended,
/// `ghost_cold` those whose path is in the cold table. Whenever a slot has its turn (and the sorter visits all of them),
/// the threads of HCT0, of HCT1 and the cold ones must be disjoint and together the live ones. That the cold table itself
/// neither loses nor doubles a thread follows from three facts checked at its port: what enters is disjoint from what is
/// in it, what leaves was in it, and nothing is in it when its count is 0. Returns the two tables and the live threads of
/// the slot.
fn every_thread_in_one_path(
    m: Builder,
    s: &Shape,
    t: &Turn,
    cold: &CctOut<Signal>,
) -> (Mem<Width>, Mem<Width>, Signal) {
    let ghost_live = m.memory("ghost_live", s.lanes, s.warp_bits());
    let ghost_cold = m.memory("ghost_cold", s.lanes, s.warp_bits());
    let (all, away) = (ghost_live.read(t.slot), ghost_cold.read(t.slot).only_if(t.slot_live));
    let (first, second) = (t.active.mask, t.second.mask.only_if(t.second.valid));
    let stay = t.outcome.taken.mask | t.outcome.rest.mask;

    let remain = all & !(first & !stay).only_if(t.outcome.valid);
    ghost_live.write(t.outcome.valid | t.starts, t.slot, t.starts.mux(t.begun, remain));

    let leave = cold.entry.mask.only_if(cold.extract | cold.swap);
    let enter = t.z.mask.only_if(cold.insert | cold.swap);
    ghost_cold.write(cold.insert | cold.extract | cold.swap | t.starts, t.slot, (away & !leave) | enter);

    wire!(turn = t.slot_live & (t.outcome.valid | t.returns | cold.sorts));
    let apart = !((first & second) | (first & away) | (second & away)).any();
    m.assert("every_live_thread_is_in_one_path", !turn | (apart & (first | second | away).eq(all)));
    m.assert("x_is_not_empty", !turn | first.any());
    let read = t.returns | cold.sorts;
    m.assert("cold_paths_are_not_empty", !read | cold.entry.mask.any());
    m.assert("what_leaves_was_cold", !turn | !(leave & !away).any());
    m.assert("what_enters_was_not_cold", !turn | !(enter & away & !leave).any());
    m.assert("an_empty_cold_table_has_no_thread", !turn | cold.count.any() | !away.any());
    m.assert("a_warp_ends_with_its_last_thread", !t.outcome.valid | t.x.valid.eq(remain.any()));
    (ghost_live, ghost_cold, all)
}

/// A path waits exactly if its threads do, and a slot in `waiting` has no thread that could run. A ghost table follows the
/// threads: they wait from an outcome of the kind WAIT to a wake.
fn paths_wait_with_their_threads(m: Builder, s: &Shape, t: &Turn, wakes: Signal, waiting: Signal, all: Signal) {
    let ghost_waits = m.memory("ghost_waits", s.lanes, s.warp_bits());
    let wait = ghost_waits.read(t.slot);
    let arrive = t.outcome.taken.mask.only_if(t.outcome.kind.eq(kind::WAIT));
    ghost_waits.write(t.outcome.valid | t.starts | wakes, t.slot, (wait | arrive).only_if(!(t.starts | wakes)));

    let agrees = |p: Path<Signal>| !p.valid | (p.mask & wait).eq(p.mask.only_if(p.waits));
    m.assert("x_waits_with_its_threads", agrees(t.active));
    m.assert("y_waits_with_its_threads", agrees(t.second));
    m.assert("cold_paths_wait_with_their_threads", t.outcome.valid | agrees(t.b));
    m.assert("all_threads_of_a_waiting_slot_wait", !waiting | (t.slot_live & wait.eq(all)));
}

pub mod proof;
#[cfg(test)]
mod tests;

//! What the unit asserts of itself in every simulation, by tables that only checks read.

use super::cct::CctOut;
use crate::divergence::{Outcome, Path, kind};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// What happens in a cycle, for the invariant.
pub(super) struct Turn {
    pub(super) outcome: Outcome<Signal>,
    pub(super) starts: Signal,
    pub(super) begun: Signal,
    pub(super) returns: Signal,
    pub(super) slot: Signal,
    /// Of the slot's words.
    pub(super) stale: Signal,
    pub(super) slot_live: Signal,
    pub(super) active: Path<Signal>,
    pub(super) second: Path<Signal>,
    pub(super) b: Path<Signal>,
    pub(super) x: Path<Signal>,
    pub(super) z: Path<Signal>,
    /// The threads of the outcome that go to taken.pc now.
    pub(super) goes: Signal,
    pub(super) releases: Signal,
}

/// Tables that follow the threads, and the live threads of the slot that are in paths.
pub(super) struct Ghosts {
    pub(super) ghost_live: Mem<Width>,
    pub(super) ghost_cold: Mem<Width>,
    pub(super) ghost_held: Option<Mem<Width>>,
    pub(super) all: Signal,
}

/// The invariant: every live thread of a warp is in exactly one path.
///
/// Two ghost tables, a word per warp, follow the threads: `ghost_live` has those that were started and have not ended,
/// `ghost_cold` those whose path is in the cold table. Whenever a slot has its turn (and the sorter visits all of
/// them), the threads of HCT0, of HCT1 and the cold ones must be disjoint and together the live ones. That the cold
/// table itself neither loses nor doubles a thread follows from three facts checked at its port: what enters is
/// disjoint from what is in it, what leaves was in it, and nothing is in it when its count is 0.
pub(super) fn every_thread_in_one_path(m: Builder, s: &Shape, t: &Turn, cold: &CctOut<Signal>) -> Ghosts {
    let ghost_live = m.memory("ghost_live", s.lanes, s.warp_bits());
    let ghost_cold = m.memory("ghost_cold", s.lanes, s.warp_bits());
    let (all, away) = (ghost_live.read(t.slot), ghost_cold.read(t.slot).only_if(t.slot_live));
    let (first, second) = (t.active.mask, t.second.mask.only_if(t.second.valid));
    let stay = t.outcome.taken.mask | t.outcome.rest.mask;
    // Those who wait at convergence barriers are in no path.
    let ghost_held = (s.convergence_barriers > 0).then(|| m.memory("ghost_held", s.lanes, s.warp_bits()));
    let held = ghost_held.as_ref().map_or(m.lit(0u32, s.lanes), |held| held.read(t.slot));
    let mut held_after = held;
    if let Some(ghost_held) = &ghost_held {
        let come = t.outcome.taken.mask & !t.goes;
        let go = t.goes.only_if(t.outcome.valid) | t.b.mask.only_if(t.releases);
        held_after = (held & !go) | come.only_if(t.outcome.valid);
        let changes = t.outcome.valid | t.starts | t.releases;
        ghost_held.write(changes, t.slot, held_after.only_if(!t.starts));
        m.assert("who_goes_on_from_a_barrier_waited", !(t.releases & (t.b.mask & !held).any()));
        m.assert("who_goes_on_with_others_waited", !(t.outcome.valid & (t.goes & !first & !held).any()));
    }

    let remain = all & !(first & !stay).only_if(t.outcome.valid);
    ghost_live.write(t.outcome.valid | t.starts, t.slot, t.starts.mux(t.begun, remain));

    let leave = cold.entry.mask.only_if(cold.extract | cold.swap);
    let enter = t.z.mask.only_if(cold.insert | cold.swap);
    ghost_cold.write(cold.insert | cold.extract | cold.swap | t.starts, t.slot, (away & !leave) | enter);

    wire!(turn = t.slot_live & (t.outcome.valid | t.returns | t.releases | cold.sorts));
    let listed = first | second | away;
    let apart = !((first & second) | (first & away) | (second & away) | (listed & held)).any();
    m.assert("every_live_thread_is_in_one_path", !turn | (apart & (listed | held).eq(all)));
    if s.convergence_barriers > 0 {
        m.assert("without_a_list_all_are_held", !(t.releases & !t.slot_live) | held.eq(all));
    }
    m.assert("x_is_not_empty", !turn | first.any());
    let read = t.returns | cold.sorts;
    m.assert("cold_paths_are_not_empty", !read | cold.entry.mask.any());
    m.assert("what_leaves_was_cold", !turn | !(leave & !away).any());
    m.assert("what_enters_was_not_cold", !turn | !(enter & away & !leave).any());
    m.assert("an_empty_cold_table_has_no_thread", !turn | cold.count.any() | !away.any());
    m.assert("a_warp_ends_with_its_last_thread", !t.outcome.valid | t.x.valid.eq((remain & !held_after).any()));
    Ghosts { ghost_live, ghost_cold, ghost_held, all: all & !held }
}

/// A path waits exactly if its threads do, and a slot in `waiting` has no thread that could run. A ghost table follows
/// the threads: they wait from an outcome of the kind WAIT to a wake.
pub(super) fn paths_wait_with_their_threads(
    m: Builder,
    s: &Shape,
    t: &Turn,
    wakes: Signal,
    waiting: Signal,
    all: Signal,
) -> Mem<Width> {
    let ghost_waits = m.memory("ghost_waits", s.lanes, s.warp_bits());
    let wait = ghost_waits.read(t.slot);
    let arrive = t.outcome.taken.mask.only_if(t.outcome.kind.eq(kind::WAIT));
    ghost_waits.write(t.outcome.valid | t.starts | wakes, t.slot, (wait | arrive).only_if(!(t.starts | wakes)));

    let agrees = |p: Path<Signal>| t.stale | !p.valid | (p.mask & wait).eq(p.mask.only_if(p.waits));
    m.assert("x_waits_with_its_threads", agrees(t.active));
    m.assert("y_waits_with_its_threads", agrees(t.second));
    m.assert("cold_paths_wait_with_their_threads", t.outcome.valid | agrees(t.b));
    m.assert("all_threads_of_a_waiting_slot_wait", !waiting | t.stale | (t.slot_live & wait.eq(all)));
    ghost_waits
}

//! What the unit asserts of itself in every simulation, by tables that only checks read.

use super::state::Store;
use super::turn::{Sorted, Turn};
use crate::divergence::{Outcome, OutcomeKind, Path, Start};
use heddle_hdl::prelude::*;

/// Tables that follow the threads.
pub struct Ghosts {
    pub ghost_live: Mem<Width>,
    pub ghost_cold: Mem<Width>,
    pub ghost_held: Option<Mem<Width>>,
    pub ghost_waits: Option<Mem<Width>>,
    /// With [`crate::Shape::fair`], of each thread: outcomes since it ran.
    pub ghost_since: Option<Mem<Width>>,
}

/// The invariant: every live thread of a warp is in exactly one path.
///
/// Two ghost tables, a word per warp, follow the threads: `ghost_live` has those that were started and have not ended,
/// `ghost_cold` those whose path is in the cold table. Whenever a slot has its turn (and the sorter visits all of
/// them), the threads of HCT0, of HCT1 and the cold ones must be disjoint and together the live ones. That the cold
/// table itself neither loses nor doubles a thread follows from three facts checked at its port: what enters is
/// disjoint from what is in it, what leaves was in it, and nothing is in it when its count is 0.
///
/// Returns the live threads of the slot that are in paths, too.
pub fn every_thread_in_one_path(
    store: &Store,
    t: &Turn,
    sorted: &Sorted,
    (start, outcome): (&Start<Signal>, &Outcome<Signal>),
) -> (Ghosts, Signal) {
    let Store { m, s, cold, .. } = store;
    let (x, z) = (sorted.x, sorted.ccs.z);
    let ghost_live = m.memory("ghost_live", s.lanes, s.warp_bits());
    let ghost_cold = m.memory("ghost_cold", s.lanes, s.warp_bits());
    let (all, away) = (ghost_live.read(t.slot), ghost_cold.read(t.slot).only_if(t.live));
    let (first, second) = (sorted.active.mask, sorted.c.mask.only_if(sorted.c.valid));
    let stay = outcome.taken.mask | outcome.rest.mask;
    // Those who wait at convergence barriers are in no path.
    let ghost_held = (s.convergence_barriers > 0).then(|| m.memory("ghost_held", s.lanes, s.warp_bits()));
    let held = ghost_held.as_ref().map_or(m.lit(0u32, s.lanes), |held| held.read(t.slot));
    let mut held_after = held;
    if let Some(ghost_held) = &ghost_held {
        let come = outcome.taken.mask & !sorted.goes;
        let go = sorted.goes.only_if(outcome.valid) | sorted.b.mask.only_if(t.releases);
        held_after = (held & !go) | come.only_if(outcome.valid);
        let changes = outcome.valid | t.starts | t.releases;
        ghost_held.write(changes, t.slot, held_after.only_if(!t.starts));
        m.assert("who_goes_on_from_a_barrier_waited", !(t.releases & (sorted.b.mask & !held).any()));
        m.assert("who_goes_on_with_others_waited", !(outcome.valid & (sorted.goes & !first & !held).any()));
    }

    let remain = all & !(first & !stay).only_if(outcome.valid);
    ghost_live.write(outcome.valid | t.starts, t.slot, t.starts.mux(start.mask, remain));

    let leave = cold.entry.mask.only_if(cold.extract | cold.swap);
    let enter = z.mask.only_if(cold.insert | cold.swap);
    ghost_cold.write(cold.insert | cold.extract | cold.swap | t.starts, t.slot, (away & !leave) | enter);

    wire!(turn = t.live & (outcome.valid | t.returns | t.releases | cold.sorts));
    let listed = first | second | away;
    let apart = !((first & second) | (first & away) | (second & away) | (listed & held)).any();
    m.assert("every_live_thread_is_in_one_path", !turn | (apart & (listed | held).eq(all)));
    if s.convergence_barriers > 0 {
        m.assert("without_a_list_all_are_held", !(t.releases & !t.live) | held.eq(all));
    }
    m.assert("x_is_not_empty", !turn | first.any());
    let read = t.returns | cold.sorts;
    m.assert("cold_paths_are_not_empty", !read | cold.entry.mask.any());
    m.assert("what_leaves_was_cold", !turn | !(leave & !away).any());
    m.assert("what_enters_was_not_cold", !turn | !(enter & away & !leave).any());
    m.assert("an_empty_cold_table_has_no_thread", !turn | cold.count.any() | !away.any());
    m.assert("a_warp_ends_with_its_last_thread", !outcome.valid | x.valid.eq((remain & !held_after).any()));
    (Ghosts { ghost_live, ghost_cold, ghost_held, ghost_waits: None, ghost_since: None }, all & !held)
}

/// A path waits exactly if its threads do, and a slot in `waiting` has no thread that could run. A ghost table follows
/// the threads: they wait from an outcome of the kind WAIT to a wake. Returns it, and what it has of the slot.
pub fn paths_wait_with_their_threads(
    store: &Store,
    t: &Turn,
    sorted: &Sorted,
    outcome: &Outcome<Signal>,
    all: Signal,
) -> (Mem<Width>, Signal) {
    let Store { m, s, .. } = store;
    let (wakes, waiting, stale) = (t.wakes, store.waiting().select(t.slot, 1), store.stale.q);
    let ghost_waits = m.memory("ghost_waits", s.lanes, s.warp_bits());
    let wait = ghost_waits.read(t.slot);
    let arrive = outcome.taken.mask.only_if(outcome.kind.eq(OutcomeKind::Wait));
    ghost_waits.write(outcome.valid | t.starts | wakes, t.slot, (wait | arrive).only_if(!(t.starts | wakes)));

    // Of the slot of a start nothing was read.
    let agrees = |p: Path<Signal>| stale | t.starts | !p.valid | (p.mask & wait).eq(p.mask.only_if(p.waits));
    m.assert("x_waits_with_its_threads", agrees(sorted.active));
    m.assert("y_waits_with_its_threads", agrees(sorted.c));
    m.assert("cold_paths_wait_with_their_threads", outcome.valid | agrees(sorted.b));
    m.assert("all_threads_of_a_waiting_slot_wait", !waiting | stale | (t.live & wait.eq(all)));
    (ghost_waits, wait)
}

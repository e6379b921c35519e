//! What the unit asserts, and what tests should meet.

use super::super::fairness::{Told, assert_bound};
use super::super::{OutcomeKind, UnitIn, assume_legal};
use super::lane::LaneOut;
use super::state::Store;
use super::trees::{First, Passes};
use super::turn::Turn;
use heddle_hdl::prelude::*;

/// What is only there for checks.
pub struct Ghosts {
    /// By warp: its live threads.
    pub live: Mem<Width>,
    /// Fair, of each thread: outcomes since it ran, and whether it waits.
    pub fair: Option<[Mem<Width>; 2]>,
}

/// All checks of a turn, and of the pass that finds who runs.
pub fn check(
    store: &Store,
    i: &UnitIn<Signal>,
    (turn, passes): (&Turn, &Passes),
    (first, lanes): (&First, &LaneOut<Signal>),
    told: Option<&Told>,
) -> Ghosts {
    let Store { m, s, .. } = store;
    let UnitIn { start, outcome, .. } = i;
    let &Turn { starts, wakes, slot, running, stay, .. } = turn;
    let ghost_live = m.memory("ghost_live", s.lanes, s.warp_bits());
    let remain = ghost_live.read(slot) & !(running.mask & !stay);
    ghost_live.write(outcome.valid | starts, slot, outcome.valid.mux(remain, start.mask));
    assume_legal(*m, s, i, (store.live.q, store.waiting()), running.mask, (starts, wakes));
    check_outcome(store, i, turn, passes);
    let leaving = passes.leaving();
    let threads = ghost_live.read(leaving.slot);
    m.assert("every_live_thread_is_in_one_path", !leaving.valid | lanes.live.eq(threads));
    m.assert("a_live_warp_has_a_mask", !leaving.valid | first.mask.any().eq(threads.any()));
    let ghost_rest = m.memory("ghost_rest", s.lanes, s.warp_bits());
    ghost_rest.write(outcome.valid, outcome.slot, outcome.rest.mask);
    let alone = first.mask.eq(ghost_rest.read(leaving.slot));
    m.assert("a_replay_is_alone", !(leaving.valid & leaving.replay) | alone);
    let fair = told.map(|told| {
        let ghost_waits = m.memory("ghost_waits", s.lanes, s.warp_bits());
        let wait = ghost_waits.read(slot);
        let arrive = outcome.taken.mask.only_if(outcome.kind.eq(OutcomeKind::Wait));
        ghost_waits.write(outcome.valid | starts | wakes, slot, (wait | arrive).only_if(outcome.valid));
        let runnable = ghost_live.read(slot) & !wait;
        let since = assert_bound(*m, s, told, runnable, running.mask);
        m.cover("new_round", told.new_round);
        [since, ghost_waits]
    });
    covers(store, i, (turn, passes), (first, lanes), remain);
    Ghosts { live: ghost_live, fair }
}

/// Of an outcome.
fn check_outcome(store: &Store, i: &UnitIn<Signal>, turn: &Turn, passes: &Passes) {
    let Store { m, .. } = store;
    let outcome = &i.outcome;
    let deepest = turn.running.depth.all() & outcome.call & outcome.taken.mask.any();
    m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
    let under_way = cat(&passes.all.iter().map(|p| p.valid & p.slot.eq(outcome.slot)).collect::<Vec<_>>()).any();
    m.assume("no_outcome_before_the_stop_pc_is_there", !outcome.valid | !under_way);
    let left = outcome.valid & outcome.rest.mask.any();
    let ahead = store.stop(outcome.slot);
    let access = outcome.kind.eq(OutcomeKind::Memory);
    let before_stop = !ahead.valid | outcome.rest.pc.lt(ahead.pc);
    m.assume("memory_accesses_come_before_the_stop_pc", !(left & access) | before_stop);
}

/// `remain` of the outcome's warp.
fn covers(
    store: &Store,
    i: &UnitIn<Signal>,
    (turn, passes): (&Turn, &Passes),
    (first, lanes): (&First, &LaneOut<Signal>),
    remain: Signal,
) {
    let Store { m, s, .. } = store;
    let UnitIn { start, outcome, .. } = i;
    let Turn { start_ready, running, stay, .. } = *turn;
    let First { any, place, mask, steer } = *first;
    let passing = passes.leaving().valid;
    m.cover("warp_ends", passing & !any);
    m.cover("replays", steer.valid & steer.replay);
    m.cover("calls", outcome.valid & outcome.call & outcome.taken.mask.any());
    let returns = outcome.valid & outcome.ret & outcome.taken.mask.any();
    m.cover("returns_from_a_call", returns & running.depth.any());
    m.cover("returns_at_depth_zero", returns & !running.depth.any());
    m.cover("start_waits", start.valid & !start_ready);
    if s.warps > 1 {
        m.cover("several_pass", cat(&passes.all.iter().map(|p| p.valid).collect::<Vec<_>>()).all());
    }
    if s.lanes > 1 {
        let other = lanes.live & !mask;
        m.cover("path_ends_and_others_go_on", outcome.valid & !stay.any() & remain.any());
        m.cover("runs_towards_others", steer.valid & lanes.beside.any());
        m.cover("runs_deeper_than_others", steer.valid & other.any() & !lanes.beside.any());
    }
    if s.barriers {
        m.cover("all_wait", passing & any & place.waits);
    }
}

//! The arbiter divergence unit: every thread has a pc of its own, and a tree of comparators finds who runs.
//!
//! `path-lists-simty.txt` §3.1. A table, indexed by warp, holds pc and call depth of each thread. Of a warp's live
//! threads those at the greatest depth run, of these those at the least pc; threads that wait come after all others. A
//! second tree finds the stop pc: the least pc of the other threads at that depth. `docs/reference/arbiter.md` has the
//! picture.
//!
//! An outcome, a start or a wake changes the table, and then the warp *passes* the trees. One pass can begin in each
//! cycle:
//!
//! | cycle | what happens |
//! |---|---|
//! | 0 | the table is written |
//! | 1 … [`first_cycles`] | first tree, [`LEVELS`] comparators in a row a cycle |
//! | then | each thread is compared with the first: the mask; steers |
//! | 1 or 2 cycles | second tree, whose numbers are narrower, [`STOP_LEVELS`] in a row a cycle; the stop pc is written |
//!
//! Decode asks for the stop pc 3 cycles after the steering at the earliest, so it is always there. As every thread
//! takes part in each pass, no path runs beyond the stop pc, and the threads that a memory access left unserved are
//! always those that run next, alone.
//!
//! With [`Shape::fair`], threads that have given way ([`mod@super::fairness`]) come after all others that can run, and a
//! path is the threads that are at one place and have given way, or have not. A bit per warp, its *round*, changes where
//! all have, and then none has. Threads that wait have not, whatever the round; a wake begins with the first round.
//!
//! What it does not do: without [`Shape::fair`] nothing is fair between paths, as with the path tables. There is no list of paths, so what they
//! are is only known to counters, which [`Shape::metrics`] adds.

mod checks;
mod lane;
mod state;
mod trees;
mod turn;

use super::inspect::{Path, State};
use super::{Capabilities, Events, Mechanism, MoreOut, UnitIn, UnitOut, hold};
use crate::LaneMask;
use crate::proof::Proof;
use crate::shape::Shape;
use checks::{Ghosts, check};
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;
use lane::{LaneIn, LaneOut, Thread, lane, rank_bits};
use state::Store;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use trees::{Pass, Passes};

/// The mechanism: a pc a thread.
pub struct Arbiter;

impl Mechanism for Arbiter {
    fn name(&self) -> &'static str {
        "arbiter"
    }

    fn number(&self) -> u8 {
        1
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { fair: true, ..Capabilities::NONE }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        arbiter(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// The threads that are in the same place, in the order in which they run.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
        let slot = u64::from(warp);
        if !state.register(s.warps, "live").bit(warp) {
            return Vec::new();
        }
        // A thread waits if its bit is not that of its warp's phase, and else has given way likewise.
        let round = s.fair && state.register(s.warps, "rounds").bit(warp);
        let phase = s.barriers && state.word(1, "phases", slot).bit(0);
        let none = LaneMask::repeat(false, s.lanes as usize);
        let mut paths = BTreeMap::new();
        for lane in 0..s.lanes {
            let Thread { place, valid } =
                state.within(&format!("lane[{lane}]")).word(Thread::shape(s), "threads", slot);
            let (depth, pc) = (place.depth.low_u64(), place.pc.low_u64());
            let waits = s.barriers && place.waits.bit(0) != phase;
            if valid == 1 {
                let path = Path { place: "threads".into(), depth, pc: 4 * pc as u32, mask: none.clone(), waits };
                let late = !waits && place.late.is_some_and(|late| late.bit(0) != round);
                paths.entry((waits, late, Reverse(depth), pc)).or_insert(path).mask.set(lane as usize, true);
            }
        }
        paths.into_values().collect()
    }
}

/// The arbiter of a shape.
pub fn arbiter(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    let lanes = |m: Builder, i: LaneIn<LaneInput>| m.replicate("lane", s.lanes, &lane(s), i);
    module("arbiter", UnitIn::shape(s), |m, i| described(m, s, i, lanes).0)
}

/// The state, as a proof sees it.
struct Inside {
    store: Store,
    passes: Passes,
    ghosts: Ghosts,
}

/// The unit, with lanes that `place_lanes` makes.
fn described(
    m: Builder,
    s: &Shape,
    i: UnitIn<Signal>,
    place_lanes: impl FnOnce(Builder, LaneIn<LaneInput>) -> LaneOut<Signal>,
) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a pc a thread, and a tree of comparators.");
    let store = Store::new(m, s);
    let turn = store.turn(&i);
    let passes = store.passes(&i, &turn);
    let (entering, leaving) = (passes.entering(), passes.leaving());
    let first_rank = m.deferred("first", rank_bits(s));
    let lanes = place_lanes(m, store.lane_in(&i, &turn, &passes, first_rank.value));
    first_rank.drive(store.first_rank(&lanes));
    let first = store.run(&i, &turn, leaving, first_rank.value, &lanes);
    let (told, gave_way) = store.give_way(&i, &turn, leaving, &first, &lanes);
    store.find_stop(&passes, first.any, &lanes);
    let ghosts = check(&store, &i, (&turn, &passes), (&first, &lanes), told.as_ref());

    let wakes = i.wake.valid & m.lit(s.barriers, 1);
    wire!(put_off = (i.start.valid | wakes) & !turn.start_ready);
    let (hold, _) = hold(m, i.outcome.valid, |_| put_off);
    m.probe("updates", leaving.valid);
    m.probe("slot", leaving.slot);
    let out = UnitOut {
        start_ready: turn.start_ready,
        wake_ready: turn.wake_ready,
        live: store.live.q,
        waiting: store.waiting(),
        stop: store.stop(i.decode_slot),
        mask: store.active.read(i.issue_slot).mask,
        steer: first.steer,
        hold,
        more: MoreOut::NONE,
        events: Events { gave_way, ..events(m, s, &i, turn.starts, turn.running.mask, entering, lanes.at_sides) },
    };
    (out, Inside { store, passes, ghosts })
}

/// What counters want: how many paths per warp has, and which of them met. An outcome parts one path in up to two, and
/// each of these meets another path if a thread of that is in its place.
fn events(
    m: Builder,
    s: &Shape,
    i: &UnitIn<Signal>,
    starts: Signal,
    active: Signal,
    entering: Pass<Signal>,
    at_sides: Option<[Signal; 2]>,
) -> Events<Signal> {
    let count = s.lane_bits() + 1;
    let Some([at_taken, at_rest]) = at_sides else { return Events::none(m, s) };
    let [taken, rest] = [i.outcome.taken.mask, i.outcome.rest.mask];
    let came = m.pipe_reset("outcome_entering", i.outcome.valid);
    let started = m.pipe_reset("start_entering", starts);
    let [others, taken, rest] = m.pipe("masks_entering", [!active, taken, rest]);
    wire!(both = taken.any() & rest.any());
    wire!(meet = both & (at_taken & rest).any());
    wire!(taken_meets = taken.any() & (at_taken & others).any());
    wire!(rest_meets = rest.any() & !meet & (at_rest & others).any());
    wire!(merges = cat(&[meet, taken_meets, rest_meets]).count_ones());

    let counts = m.memory("paths", count, s.warp_bits());
    let narrow = |n: Signal| n.zext(count);
    let parts = narrow(taken.any()) + narrow(rest.any());
    let parted = counts.read(entering.slot) - m.lit(1u32, count) + parts - merges.zext(count);
    wire!(paths = started.mux(m.lit(1u32, count), parted));
    counts.write(came | started, entering.slot, paths);
    m.cover("paths_meet", came & merges.any());
    if s.lanes > 2 {
        m.cover("both_sides_meet_others", came & taken_meets & rest_meets);
    }
    Events { merges: merges.only_if(came), paths: paths.only_if(came), ..Events::none(m, s) }
}

pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;

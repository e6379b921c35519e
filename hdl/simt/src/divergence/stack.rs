//! The stack divergence unit: a warp runs one side of a branch to where both reconverge, then the other.
//!
//! `thread-block-compaction.txt` §2.2.2, the immediate post-dominator scheme. Of each warp the *top* {pc, call depth,
//! mask, rpc} runs until its threads reach the reconvergence place, the *rpc*. Below it lie levels, one for each branch
//! where the threads have diverged since: the side that has not run yet (the *sibling*), and the *group*: all threads
//! that meet at the top's rpc, and where these go on to reconverge with others. [`super::Outcome::meets`] says where
//! the threads of a branch meet.
//!
//! * A side that is at the rpc already is not pushed: its threads are in a group.
//! * If the branch's rpc is the top's, there is no new group; and if nothing is pushed then, no level.
//! * An rpc is a pc at a call depth, or, of a branch whose sides return, wherever the first of them returns to, one
//!   depth less.
//!
//! With [`Shape::likely`], threads also meet at likely-convergence points (§4): a branch that leaves both sides running
//! makes its level gather those who come to its point. They pop as at an rpc, and run on together when the sibling has
//! run, towards the rpc that they had. Branches of the same group with the same point or none inherit it (the level is
//! the paper's LPos); a new group has none, since it meets first.
//!
//! * If nobody has gathered when the sibling goes, nobody is to come either: it has the point outside of the level.
//! * If all of the group have gathered, nobody waits at its rpc: they have the rpc and the point outside.
//!
//! Each level parts the top's threads strictly, so `lanes - 1` levels per warp are always enough. With fewer
//! ([`Shape::levels`]) a branch that finds none left is refused, and the core stops with a fault: memory for what a
//! program is not expected to need would cost more than it saves.
//!
//! | turn | what follows |
//! |---|---|
//! | outcome | the top moves; parts (a level is pushed); or is where it reconverges with others, or is empty: the warp is *popping* |
//! | wake | as an outcome that does not move the top |
//! | pop | a level's sibling is the top; or those at its likely point; or its group. It is steered unless it has to pop again |
//! | start | the new threads are the top, over no level |
//!
//! An outcome always has its turn; then a wake, a pop, a start. Whose turn it is was chosen in the cycle before
//! ([`Claim`]), when an outcome is announced: so the words of the warp come from registers, and a pop's level from
//! block RAM. A warp that had the turn is not chosen for a pop in that cycle, since its words change: it pops two
//! cycles after its outcome.
//!
//! Whatever it is told about reconvergence, every thread does what its program says: threads become one path only at
//! one pc.
//!
//! What it does not do: siblings never run before the top has reached its rpc. So a barrier that the top reaches while
//! other threads of its warp live below is refused, and locks between threads of a warp can wait for ever. It cannot
//! replay a memory access for a part of its threads (`Replay::Split`).

mod checks;
mod early;
mod state;
mod turn;
mod update;

use super::inspect::{Path, State};
use super::levels::{Found, Level, Top, levels};
use super::{Capabilities, Events, Mechanism, MoreOut, UnitIn, UnitOut, hold};
use crate::proof::Proof;
use crate::shape::Shape;
use checks::{assume, check_likely, check_threads, covers};
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;
use state::Store;

/// What a proof must see of the unit.
struct Inside {
    store: Store,
    /// The level that was read.
    head: Level<Signal>,
    /// The live threads of each warp, as the checks know them.
    ghost_live: Mem<Width>,
    /// Outcomes towards `hold`.
    outcomes: Signal,
}

/// The mechanism: a stack per warp.
pub struct Stack;

impl Mechanism for Stack {
    fn name(&self) -> &'static str {
        "stack"
    }

    fn number(&self) -> u8 {
        2
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { reconverges: true, likely_points: true, splits: false, announced: true, ..Capabilities::NONE }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        stack(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// The top; then level by level the path that has not run on, and the threads that have come to where they are
    /// likely to meet or to where they reconverge.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
        let slot = u64::from(warp);
        if !state.register(s.warps, "live").bit(warp) {
            return Vec::new();
        }
        let waits = s.barriers && state.register(s.warps, "parked").bit(warp);
        let mut found = Found::new(&state.word(s.lanes, "threads", slot), s.lanes);
        let Top { pc, depth, mask, mut rpc, likely } = state.word(Top::shape(s), "tops", slot);
        found.add("top", (pc.low_u64(), depth.low_u64()), mask.low_u64(), waits);
        let mut point = likely.map_or(0, |likely| likely.pc.low_u64());
        // A broken core may count more than there are.
        let count = state.word(count_width(levels(s)), "counts", slot).low_u64().min(levels(s).into());
        for k in (0..count).rev() {
            let at = slot << index_width(levels(s)) | k;
            let Level { sibling, group, likely } = state.word(Level::shape(s), "levels", at);
            found.add_sibling(&format!("level[{k}]"), &sibling, false);
            if let Some(gathering) = likely {
                if gathering.valid == 1 {
                    let gathered = state.word(s.lanes, "gathered", at).low_u64();
                    found.add(&format!("likely[{k}]"), (point, rpc.depth.low_u64()), gathered, false);
                }
                if gathering.valid == 1 || group.valid == 1 {
                    point = gathering.outer.pc.low_u64();
                }
            }
            if group.valid == 1 {
                found.add(&format!("met[{k}]"), rpc.place(), group.mask.low_u64(), false);
                rpc = group.rpc;
            }
        }
        found.rest_at(&rpc)
    }
}

/// The stack unit of a shape.
pub fn stack(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    module("stack", UnitIn::shape(s), |m, i| described(m, s, i).0)
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a stack of reconvergence points.");
    let UnitIn { start, wake, outcome, .. } = &i;
    let announced = i.announced.expect("outcomes are announced");
    let store = Store::new(m, s);
    let next = store.claim_next(&announced, wake);
    let turn = store.turn(start);
    let moved = store.moved(&turn, outcome);
    let popped = store.pop(&turn, &next, &moved.parting);
    let updated = store.update(&turn, start, outcome, &moved, &popped);
    let steer = store.steer(&turn, (start, outcome), &moved, &popped, &updated);
    assume(&store, &i, (&next, &turn, &updated), steer);
    let ghost_live = check_threads(&store, &i, &turn, (&popped, &updated), steer);
    check_likely(&store, &turn, &moved, &popped, &updated);
    covers(&store, &announced, (&next, &turn, &moved, &updated));

    let wake_waits = wake.valid & announced.valid & m.lit(s.barriers, 1);
    wire!(put_off = (start.valid & !turn.start_ready) | wake_waits | store.popping.q.any());
    let (hold, outcomes) = hold(m, announced.valid, |_| put_off);
    m.probe("updates", updated.updates);
    m.probe("slot", turn.slot);
    let (left, wide) = (updated.left, s.lane_bits() + 1);
    let events = Events {
        merges: (turn.pops & !popped.pop.to_sibling & updated.comes.mask.any()).zext(2),
        levels: left.zext(wide).only_if(outcome.valid),
        paths: (left.zext(wide) + m.lit(1u32, wide)).only_if(outcome.valid & !updated.ends),
        ..Events::none(m, s)
    };
    let out = UnitOut {
        start_ready: turn.start_ready,
        wake_ready: next.wake_ready,
        live: store.live.q,
        waiting: updated.still_waiting,
        stop: store.stops.read(i.decode_slot),
        mask: store.tops.read(i.issue_slot).mask,
        steer,
        hold,
        more: MoreOut { refused: Some(updated.refused), ..MoreOut::NONE },
        events,
    };
    (out, Inside { head: popped.head, store, ghost_live, outcomes })
}

pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;

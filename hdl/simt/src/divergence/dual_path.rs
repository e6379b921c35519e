//! The dual-path divergence unit: a stack whose entries hold both sides of a branch, which run side by side.
//!
//! `dual-path-execution.txt` §3.1. Of each warp the *top* has two paths, left and right, each a slot of the pipeline of
//! its own, and the place where both reconverge, the *rpc* ([`super::levels::Rpc`]). Below lie levels, one for each
//! path of a top that diverged since: the *sibling*, the other path of that top, suspended where its next instruction
//! had not issued yet; and the *group*: all threads of the path that diverged, where they go on to reconverge with the
//! sibling, and on which side.
//!
//! * A side that is at the rpc already does not run: its threads are in a group. Sides that go to one place do not
//!   diverge.
//! * If the branch's rpc is the top's, there is no new group. Then a path that diverges puts its other side into the
//!   free place of the top, if there is one, and nothing is pushed.
//! * A path that has come to the rpc is no more; when neither is left, the level above them is popped.
//!
//! Each level belongs to a path with fewer threads than the level below it, so `lanes - 1` levels are always enough.
//! With fewer ([`Shape::levels`]), a branch that finds none left is refused.
//!
//! | turn | what follows |
//! |---|---|
//! | outcome | the path moves; or parts (its sibling is flushed, a level pushed); or reaches the rpc or ends |
//! | wake | as an outcome that does not move the path |
//! | pop | the group and the sibling of a level are the top |
//! | send | a path that came to the top beside another is steered |
//! | start | the new threads are the left path, over no level |
//!
//! An outcome always has its turn; then a wake, a pop or a send, a start. Whose turn it is was chosen in the cycle
//! before ([`Claim`]), when an outcome is announced: so the words of the warp come from registers, and a pop's level
//! from block RAM. A warp that popped is not chosen for the next pop in that cycle, since its words change. Of two
//! paths that come to the top at once, one is steered at once, the other *owed*: it is sent in the next cycle, if
//! nobody else has waited for that.
//!
//! The pipeline sees to it that outcomes of a warp are two cycles apart at least, and that none comes while it is
//! [busy](super::TwoPaths::busy).
//! The scoreboard is [`crate::scoreboard::dual`]; `docs/reference/dual-path.md`.
//!
//! Under [`Replay::Split`], an access to memory that serves only some threads splits the path like a branch: those
//! served go on as the path, the others are the other side, which issues the access again, as far as the side table
//! says (§7.2).
//!
//! With [`Shape::path_forwarding`], the sibling of the uppermost level comes up where a side of the top is free
//! ([`forwarding`]).
//!
//! What it does not do: like [`super::stack`], it refuses a barrier that only a part of a warp reaches.

mod claim;
mod forwarding;
mod pop;
mod state;
mod steer;
mod turn;
mod update;

use super::inspect::{Path, State};
use super::levels::{Found, levels};
use super::{
    Capabilities, Events, Mechanism, MoreOut, Outcome, Steer, Stop, TwoPaths, UnitIn, UnitOut, assume_announced,
    assume_legal, hold, side_of, warp_of,
};
use crate::proof::Proof;
use crate::shape::Shape;
use claim::Next;
pub use forwarding::forwards;
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;
use pop::Popped;
use state::{Level, Store, Top};
use std::mem::swap;
use turn::{Moved, Turn};
use update::Updated;

/// The mechanism: a stack per warp with both sides of a branch.
pub struct DualPath;

impl Mechanism for DualPath {
    fn name(&self) -> &'static str {
        "dual-path"
    }

    fn number(&self) -> u8 {
        3
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { reconverges: true, two_paths: true, announced: true, ..Capabilities::NONE }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        dual_path(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// Both paths of the top; then level by level the path that has not run on, and the threads that have come to where
    /// they reconverge.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
        let slot = u64::from(warp);
        if !state.register(s.warps, "live").bit(warp) {
            return Vec::new();
        }
        let waits = s.barriers && state.register(s.warps, "parked").bit(warp);
        let mut found = Found::new(&state.word(s.lanes, "threads", slot), s.lanes);
        let Top { left, right, mut rpc, forwarded } = state.word(Top::shape(s), "tops", slot);
        found.add_sibling("left", &left, waits);
        found.add_sibling("right", &right, waits);
        // The sibling of the uppermost level: whether it has come up, and where it reconverges with others.
        let (mut taken, mut its) = forwarded.map_or((false, None), |f| (f.taken == 1, Some(f.rpc)));
        // A broken core may count more than there are.
        let count = state.word(count_width(levels(s)), "counts", slot).low_u64().min(levels(s).into());
        for k in (0..count).rev() {
            let at = slot << index_width(levels(s)) | k;
            let is_pushed = k == count - 1 && state.register(s.warps, "pushed_warps").bit(warp);
            let Level { sibling, group, before, .. } = match is_pushed {
                true => state.register(Level::shape(s), "pushed_level"),
                false => state.word(Level::shape(s), "levels", at),
            };
            if !taken {
                found.add_sibling(&format!("level[{k}]"), &sibling, false);
            }
            let mut outer = group.rpc;
            if let (Some(before), Some(its)) = (before, &mut its) {
                taken = before.taken == 1;
                if before.sibling == 0 {
                    swap(&mut outer, its);
                }
            }
            if group.valid == 1 {
                found.add(&format!("met[{k}]"), rpc.place(), group.mask.low_u64(), false);
                rpc = outer;
            }
        }
        found.rest_at(&rpc)
    }
}

/// The dual-path unit of a shape.
pub fn dual_path(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    module("dual_path", UnitIn::shape(s), |m, i| described(m, s, i).0)
}

/// What a proof must see of the unit.
struct Inside {
    store: Store,
    updated: Updated,
    popped: Popped,
    /// The live threads of each warp, as the checks know them.
    ghost_live: Mem<Width>,
    /// Outcomes towards `hold`.
    outcomes: Signal,
}

impl Inside {
    /// One bit per slot: it is to be steered to an access that left its threads unserved.
    fn replays(&self, m: Builder) -> Signal {
        self.store.replays.as_ref().map_or(m.lit(0u32, self.store.s.slots()), |replays| replays.q)
    }
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a stack of reconvergence points whose entries hold both sides of a branch.");
    let UnitIn { start, wake, outcome, .. } = &i;
    let announced = i.announced.expect("outcomes are announced");
    let Some(unissued) = i.unissued else { unreachable!("the pipeline says where the sibling is") };
    let store = Store::new(m, s);
    let next = store.claim_next(&announced, wake);
    let turn = store.turn(start, &announced);
    let moved = store.moved(&turn, outcome);
    let popped = store.pop(&turn, &next, &moved, &unissued);
    let updated = store.update(&turn, start, outcome, &moved, &popped);
    let steer = store.steer(&turn, (start, outcome), &moved, &popped, &updated);
    let two_paths = store.two_paths(&i, &turn, &moved);
    assume(&store, &i, (&next, &turn, &moved, &updated), steer, two_paths);
    let ghost_live = store.check_update(&turn, outcome, &updated);

    let start_ready = !store.claim.q.any(m);
    let wake_waits = wake.valid & announced.valid & m.lit(s.barriers, 1);
    wire!(put_off = (start.valid & !start_ready) | wake_waits | store.popping.q.any() | store.owed.q.any());
    let (hold, outcomes) = hold(m, announced.valid, |_| put_off);
    let right = side_of(s, i.decode_slot);
    let of_decode = store.stops.read(warp_of(s, i.decode_slot));
    let pc = of_decode.right_pc.map_or(of_decode.pc, |pc| right.mux(pc, of_decode.pc));
    let (of_issue, _) = store.tops.read(warp_of(s, i.issue_slot)).of(side_of(s, i.issue_slot));
    let out = UnitOut {
        start_ready,
        wake_ready: next.wake_ready,
        live: store.live.q,
        waiting: updated.still_waiting,
        stop: Stop { valid: right.mux(of_decode.right, of_decode.left), pc },
        mask: of_issue.mask,
        steer,
        hold,
        more: MoreOut { refused: Some(updated.refused), two_paths: Some(two_paths), ..MoreOut::NONE },
        events: events(&store, outcome, (&turn, &moved, &popped, &updated)),
    };
    (out, Inside { store, updated, popped, ghost_live, outcomes })
}

/// What the pipeline sees to.
fn assume(
    store: &Store,
    i: &UnitIn<Signal>,
    (next, turn, moved, updated): (&Next, &Turn, &Moved, &Updated),
    steer: Steer<Signal>,
    two_paths: TwoPaths<Signal>,
) {
    let Store { m, s, .. } = store;
    let UnitIn { outcome, .. } = i;
    let claim = store.claim.q;
    let of_next = turn.warp.eq(next.warp);
    let masks = (store.live.q, updated.still_waiting);
    assume_legal(*m, s, i, masks, moved.own.mask, (turn.starts, next.woken));
    assume_announced(*m, i, (claim.outcome, claim.slot), steer);
    let changes_now = (moved.moves | turn.pops | turn.starts) & of_next;
    let changed = m.pipe_reset("changed", changes_now);
    m.assume("no_outcome_of_a_warp_that_had_a_turn_just_before", !(outcome.valid & changed));
    let stale = m.pipe_reset("stale", updated.updates & of_next);
    let uses = outcome.valid | turn.wakes | turn.pops | claim.send | turn.takes.unwrap_or(m.lit(0u32, 1));
    m.assert("nobody_uses_stale_words", !(stale & uses));
    m.assume("outcome_of_a_path", !outcome.valid | moved.own.valid);
    let busy = two_paths.busy.select(warp_of(s, outcome.slot), 1);
    m.assume("no_outcome_of_a_busy_warp", !(outcome.valid & busy));
}

/// What is counted. The siblings on the levels of each warp are counted for it.
fn events(
    store: &Store,
    outcome: &Outcome<Signal>,
    (turn, moved, popped, updated): (&Turn, &Moved, &Popped, &Updated),
) -> Events<Signal> {
    let Store { m, s, .. } = store;
    let &Turn { starts, pops, warp, .. } = turn;
    let renews = turn.renews();
    let wide = s.lane_bits() + 1;
    let siblings = m.memory("siblings", wide, s.warp_bits());
    let untaken = turn.top.forwarded.map_or(popped.head.sibling.valid, |forwarded| !forwarded.taken);
    let more = (moved.pushes & moved.sibling.valid).zext(wide) - (renews & untaken).zext(wide);
    let suspended = siblings.read(warp).only_if(!starts) + more;
    siblings.write(outcome.valid | renews | starts, warp, suspended);
    let Top { left, right, .. } = updated.top;
    let paths = suspended + left.valid.zext(wide) + right.valid.zext(wide);
    Events {
        merges: (pops & popped.group_runs).zext(2),
        levels: updated.count.zext(wide).only_if(outcome.valid),
        paths: paths.only_if(outcome.valid & !updated.ends),
        ..Events::none(*m, s)
    }
}

pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;

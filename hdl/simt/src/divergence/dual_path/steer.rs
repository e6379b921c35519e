//! Who is steered: the path that moved, or one that came to the top. If two came to it at once, the other is *owed* its
//! steering.

use super::super::levels::Sibling;
use super::super::{Outcome, OutcomeKind, PathsChange, Steer, TwoPaths, UnitIn, by_slot, side_of, warp_of};
use super::state::Store;
use super::turn::{Moved, Turn};
use super::update::Updated;
use crate::shape::Scoreboard;
use heddle_hdl::prelude::*;

impl Store {
    /// Steers it, and notes who is owed that.
    pub fn steer(&self, turn: &Turn, outcome: &Outcome<Signal>, moved: &Moved, updated: &Updated) -> Steer<Signal> {
        let Store { m, s, owed, active, came, .. } = self;
        let Turn { starts, pops, sends, takes, warp, at, top, .. } = *turn;
        let Moved { side, waits, both_go, goes_as_taken, changes, .. } = *moved;
        let Updated { updates, top: after, .. } = *updated;
        let (no, one) = (m.lit(0u32, 1), m.lit(1u32, 1));
        let claim = self.claim.q;
        let comes = |right: Signal, path: Sibling<Signal>| {
            let comes = path.valid & (starts | turn.renews() | changes | side.eq(right));
            let runs_on = takes.zip(top.forwarded).map(|(takes, forwarded)| {
                let (before, _) = top.of(right);
                (pops & forwarded.is(right)) | (takes & before.valid)
            });
            runs_on.map_or(comes, |runs_on| comes & !runs_on)
        };
        let (left_comes, right_comes) = (comes(no, after.left), comes(one, after.right));
        let steers_right = outcome.valid.mux(side, !left_comes);
        let steered = steers_right.mux(right_comes, left_comes);
        let other_comes = steers_right.mux(left_comes, right_comes);
        let slot = self.slot(warp, steers_right);
        wire!(renewed = starts | pops | changes);
        let other_slot = self.slot(warp, !steers_right).decode(s.slots());
        let slots_of_it = by_slot(at, at);
        let sent = claim.slot;
        let sent_now = sent.decode(s.slots()).only_if(sends);
        let dropped = slots_of_it.only_if(renewed);
        owed.next((owed.q & !sent_now & !dropped) | other_slot.only_if(renewed & (steered & other_comes)));
        let actives = cat(&[after.left.valid, after.right.valid]).repeat(s.warps);
        let replay = self.replays.as_ref().map_or(no, |replays| {
            let left_unserved = outcome.valid & outcome.kind.eq(OutcomeKind::Memory);
            let rest_alone = left_unserved & !goes_as_taken;
            let beside = other_slot.only_if(left_unserved & both_go);
            replays.next((replays.q & !sent_now & !dropped) | beside);
            sends.mux(replays.q.select(sent, 1), rest_alone & steered)
        });
        active.next_if(updates, (active.q & !slots_of_it) | (slots_of_it & actives));
        // Its place is not in the words yet, if it came with the last turn.
        came.next(steers_right.mux(after.left, after.right).pc);
        let (waited, _) = top.of(side_of(s, sent));
        let sent_pc = claim.follows.mux(came.q, waited.pc);
        if s.lanes > 1 {
            m.cover("sent_in_the_next_cycle", claim.follows & sends);
            m.cover("sent_later", claim.send);
        }
        Steer {
            valid: sends | (updates & !waits & steered),
            slot: sends.mux(sent, slot),
            pc: sends.mux(sent_pc, steers_right.mux(after.right, after.left).pc),
            replay,
        }
    }

    /// What the pipeline must know of both paths.
    pub fn two_paths(&self, i: &UnitIn<Signal>, turn: &Turn, moved: &Moved) -> TwoPaths<Signal> {
        let Store { s, .. } = self;
        let of = self.tops.read(warp_of(s, i.issue_slot));
        let owes = (0..s.warps).map(|warp| self.owed.q.slice(2 * warp, 2).any());
        TwoPaths {
            flush: moved.pushes & moved.sibling.valid,
            flushed: self.slot(turn.warp, !moved.side),
            changed: PathsChange { valid: moved.changes | turn.renews(), warp: turn.warp },
            busy: self.popping.q | cat(&owes.collect::<Vec<_>>()),
            active: self.active.q,
            changes_side: turn.sends,
            threads: (s.scoreboard == Scoreboard::Exact).then(|| self.threads_of_sides()),
            paths: of.left.valid.zext(2) + of.right.valid.zext(2),
        }
    }

    /// One bit per lane and slot: the threads of its path.
    fn threads_of_sides(&self) -> Signal {
        let tops = (0..self.s.warps).map(|warp| self.tops.read(self.m.lit(warp, self.s.warp_bits())));
        cat(&tops.flat_map(|top| [top.left.mask, top.right.mask]).collect::<Vec<_>>())
    }
}

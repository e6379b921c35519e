//! Who is steered: the path that moved, or one that came to the top. If two came to it at once, the other is *owed* its
//! steering.

use super::super::levels::pc_of;
use super::super::{Outcome, OutcomeKind, PathsChange, Start, Steer, TwoPaths, UnitIn, by_slot, side_of, warp_of};
use super::pop::Popped;
use super::state::Store;
use super::turn::{Moved, Turn};
use super::update::Updated;
use crate::shape::Scoreboard;
use heddle_hdl::prelude::*;

impl Store {
    /// Steers it, and notes who is owed that.
    pub fn steer(
        &self,
        turn: &Turn,
        (start, outcome): (&Start<Signal>, &Outcome<Signal>),
        moved: &Moved,
        popped: &Popped,
        updated: &Updated,
    ) -> Steer<Signal> {
        let Store { m, s, owed, active, came, .. } = self;
        let Turn { is_free, starts, pops, sends, takes, warp, at, top, .. } = *turn;
        let Moved { side, own, both_go, goes_as_taken, is_at_takens, runs_on, .. } = *moved;
        let &Popped { head, right, sibling_comes, group_comes, .. } = popped;
        let Updated { updates, top: after, .. } = *updated;
        let no = m.lit(0u32, 1);
        let claim = self.claim.q;
        let renews = claim.take.map_or(claim.pop, |take| claim.pop | take);
        // Of a group and a sibling that come to the top, the left one.
        wire!(to_group = right.mux(group_comes, !sibling_comes));
        let comes = sibling_comes | group_comes;
        let both_come = sibling_comes & group_comes;
        let (waited, _) = top.of(side_of(s, claim.slot));
        // If `valid` is off, it means nothing.
        let pc = pc_of(&[
            (claim.outcome & is_at_takens, outcome.taken.pc),
            (claim.outcome & !is_at_takens, outcome.rest.pc),
            (renews & to_group, top.rpc.pc),
            (renews & !to_group, head.sibling.pc),
            (claim.wake, own.pc),
            (claim.send, waited.pc),
            (claim.follows, came.q),
            (is_free, start.pc),
        ]);
        let its_own = claim.outcome | claim.send | claim.follows;
        wire!(steers_right = (its_own & side_of(s, claim.slot)) | (claim.wake & side) | (renews & (to_group ^ right)));
        let slot = self.slot(warp, steers_right);

        // The sides of a branch, or what comes to the top.
        let other_slot = self.slot(warp, claim.pop | !side).decode(s.slots());
        let slots_of_it = by_slot(at, at);
        let sent_now = claim.slot.decode(s.slots()).only_if(sends);
        wire!(owes = both_go | (pops & both_come));
        owed.next((owed.q & !sent_now) | other_slot.only_if(owes));
        let actives = cat(&[after.left.valid, after.right.valid]).repeat(s.warps);
        let replay = self.replays.as_ref().map_or(no, |replays| {
            let left_unserved = outcome.valid & outcome.kind.eq(OutcomeKind::Memory);
            let beside = other_slot.only_if(left_unserved & both_go);
            replays.next((replays.q & !sent_now) | beside);
            sends.mux(replays.q.select(claim.slot, 1), left_unserved & !goes_as_taken)
        });
        active.next_if(updates, (active.q & !slots_of_it) | (slots_of_it & actives));
        // Its place is not in the words yet, if it came with the last turn.
        came.next(claim.outcome.mux(outcome.rest.pc, right.mux(head.sibling.pc, top.rpc.pc)));
        let renewed = takes.map_or(pops, |takes| pops | takes);
        wire!(valid = sends | runs_on | starts | (renewed & comes));
        if s.lanes > 1 {
            m.cover("sent_in_the_next_cycle", claim.follows & sends);
            m.cover("sent_later", claim.send);
        }
        let there = steers_right.mux(after.right, after.left);
        m.assert("steers_to_the_path", !(valid & !sends) | (there.valid & pc.eq(there.pc)));
        let comes_anew = starts | owes | pops | moved.pushes;
        m.assert("owes_nobody_of_a_warp_that_comes", !comes_anew | !(owed.q & slots_of_it).any());
        Steer { valid, slot, pc, replay }
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

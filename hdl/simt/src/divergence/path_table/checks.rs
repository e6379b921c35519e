//! What the unit asserts of a turn, what the pipeline sees to, and what is to happen in a test.

use super::invariant::{Ghosts, every_thread_in_one_path, paths_wait_with_their_threads};
use super::state::Store;
use super::turn::{Sorted, Turn};
use crate::divergence::fairness;
use crate::divergence::{Hints, Outcome, OutcomeKind, Start, Steer};
use crate::isa::HintKind;
use heddle_hdl::prelude::*;

impl Store {
    /// Of any turn.
    pub fn check(
        &self,
        turn: &Turn,
        sorted: &Sorted,
        (start, outcome): (&Start<Signal>, &Outcome<Signal>),
        steer: Steer<Signal>,
    ) {
        let Store { m, cold, .. } = self;
        let &Turn { claim, returns, updates, .. } = turn;
        let &Sorted { active, depth, a, b, x, ref ccs, .. } = sorted;
        let (y, z) = (ccs.y, ccs.z);
        let uses = outcome.valid | returns | turn.releases | turn.wakes | cold.sorts;
        m.assert("nobody_uses_stale_words", !(uses & self.stale.q));
        m.assert("who_is_woken_waits", !turn.wakes | self.waiting().select(turn.slot, 1));
        m.assert("one_claim", cat(&[claim.outcome, claim.release, claim.wake, claim.sort]).count_ones().le(1));
        m.cover("announced_outcome_does_not_come", claim.outcome & !outcome.valid);
        let taken = outcome.valid & a.valid;
        m.assert("call_depth_does_not_overflow", !(taken & depth.all() & outcome.call));
        m.assert("third_path_goes_to_the_cold_table", !(updates & z.valid) | cold.insert);
        m.cover("returned_path_merges", returns & ccs.merges.any());
        m.cover("returned_path_is_first", returns & ccs.x_is_b);
        m.cover("replays", steer.replay);
        let arrives = outcome.valid & outcome.kind.eq(OutcomeKind::Arrived);
        m.cover("arrives_and_merges", arrives & ccs.merges.any());
        m.cover("arrives_and_meets_none", arrives & !ccs.merges.any());
        let goes_on = outcome.valid & !a.valid & !b.valid;
        m.cover("path_ends_and_others_go_on", goes_on & x.valid);
        m.cover("runs_towards_y", outcome.valid & y.valid & x.depth.eq(y.depth) & ccs.y_ahead);
        m.cover("runs_deeper_than_y", outcome.valid & y.valid & x.depth.ne(y.depth));
        m.cover("calls", taken & outcome.call);
        m.cover("returns_from_a_call", taken & outcome.ret & active.depth.any());
        m.cover("start_waits", start.valid & !turn.start_ready);
        m.cover("warp_ends", outcome.valid & !x.valid);
        m.cover("returns_at_depth_zero", taken & outcome.ret & !active.depth.any());
        if self.cold_in.is_some() {
            m.cover("warp_goes_on_with_a_cold_path", goes_on & cold.more_returns);
        }
    }

    /// Of its paths together: the invariants, with their ghost tables.
    pub fn check_invariant(
        &self,
        turn: &Turn,
        sorted: &Sorted,
        (start, outcome): (&Start<Signal>, &Outcome<Signal>),
        new_round: Option<Signal>,
    ) -> Ghosts {
        let (mut ghosts, all) = every_thread_in_one_path(self, turn, sorted, (start, outcome));
        let mut runnable = all;
        if self.s.barriers {
            let (ghost_waits, wait) = self.check_waits(turn, sorted, outcome, all);
            ghosts.ghost_waits = Some(ghost_waits);
            runnable = all & !wait;
        }
        if self.s.fair {
            let told = self.told((turn, sorted), (start, outcome), new_round);
            let active = sorted.active.mask;
            ghosts.ghost_since = Some(fairness::assert_bound(self.m, &self.s, &told, runnable, active));
            self.m.cover("new_round", told.new_round);
        }
        ghosts
    }

    /// Of paths that wait at a barrier: their threads, and the table that follows them.
    fn check_waits(
        &self,
        turn: &Turn,
        sorted: &Sorted,
        outcome: &Outcome<Signal>,
        all: Signal,
    ) -> (Mem<Width>, Signal) {
        let &Sorted { active, x, ref ccs, .. } = sorted;
        let m = self.m;
        m.assume("outcome_of_a_path_that_runs", !outcome.valid | !active.waits);
        m.cover("wakes_two_paths", turn.wakes & ccs.y.valid);
        m.cover("arrives_at_a_waiting_path", outcome.valid & sorted.x_waits & ccs.merges.any());
        m.cover("runs_beside_a_waiting_path", outcome.valid & !x.waits & ccs.y.valid & ccs.y.waits);
        m.cover("returned_path_runs", turn.returns & active.waits & !x.waits);
        paths_wait_with_their_threads(self, turn, sorted, outcome, all)
    }

    /// Of convergence barriers, if there are any.
    pub fn check_barriers(
        &self,
        Hints { first, ahead, hint, .. }: &Hints<Signal>,
        turn: &Turn,
        sorted: &Sorted,
        (outcome, steer): (&Outcome<Signal>, Steer<Signal>),
        new_round: Option<Signal>,
    ) {
        let m = self.m;
        let Some(barriers) = self.barriers else { return };
        let &Turn { claim, releases, .. } = turn;
        let active = sorted.active;
        let here = claim.release & claim.slot.eq(barriers.release.slot);
        m.assert("a_release_has_the_turn", !releases | here);
        let runs = |slot: Signal| self.live.q.select(slot, 1) & !self.waiting().select(slot, 1);
        m.assume("outcome_of_a_path_of_the_list", !outcome.valid | runs(outcome.slot));
        let of_path = runs(hint.slot) & hint.mask.eq(self.hct0.read(hint.slot).mask);
        m.assume("hints_of_the_active_path", !hint.valid | of_path);
        let depth = m.pipe("depth_looked_up", self.call_depth(self.hct0.read(ahead.slot).depth));
        let depth_now = self.call_depth(self.hct0.read(hint.slot).depth);
        m.assert("the_depth_that_was_looked_up_is_so", !hint.valid | depth.eq(depth_now));
        let was_first = m.pipe("was_first", *first);
        let told = m.pipe("told_twice", was_first.slot.eq(ahead.slot) & was_first.barrier.eq(ahead.barrier));
        let was_ahead = m.pipe("was_ahead", *ahead);
        let same = was_ahead.slot.eq(hint.slot) & was_ahead.barrier.eq(hint.barrier) & was_ahead.next.eq(hint.next);
        let same = same & was_ahead.mask.eq(hint.mask) & was_ahead.counts.eq(hint.operation.eq(HintKind::Count));
        m.assume("what_comes_was_told", !hint.valid | (told & same));
        let just_steered = m.pipe_reset("had_just_a_steering", steer.valid)
            & m.pipe("who_had_just_a_steering", steer.slot).eq(hint.slot);
        m.assume("no_instruction_right_after_a_steering", !(hint.valid & just_steered));
        m.assume("no_hint_after_an_outcome", !(hint.valid & outcome.valid & hint.slot.eq(outcome.slot)));
        let converges = outcome.valid & outcome.kind.eq(OutcomeKind::Converge);
        let follows = converges & outcome.slot.eq(barriers.waited_slot);
        let nobody = m.lit(0u32, self.s.lanes);
        let stays = barriers.stays.unwrap_or(nobody);
        let all_taken = (outcome.taken.mask | outcome.rest.mask).eq(active.mask) & outcome.rest.mask.eq(stays);
        m.assume("a_wait_and_its_outcome", (barriers.waited | converges).eq(barriers.waited & follows));
        m.assume("all_threads_of_a_path_wait_or_stay", !converges | all_taken);
        m.probe("release", barriers.release);
        m.cover("released_beside_a_path_that_runs", sorted.beside(turn));
        m.cover("released_to_an_empty_list", releases & !turn.live);
        m.cover("released_third_path", releases & sorted.ccs.z.valid);
        if let Some(queues) = self.queues(outcome) {
            m.cover("a_sync_gives_way", queues & sorted.ccs.y.valid & !sorted.x_parks);
            m.cover("a_sync_tries_again", queues & sorted.x.valid & !sorted.x_parks);
        }
        let holds = barriers.holding.select(turn.slot, 1);
        m.cover("list_becomes_empty", outcome.valid & !sorted.x.valid & holds);
        if !self.s.fair {
            m.cover("new_round", new_round.expect("rounds where paths give way"));
        }
        if self.s.barriers {
            m.cover("released_before_paths_that_wait", releases & turn.live & sorted.parked);
        }
    }
}

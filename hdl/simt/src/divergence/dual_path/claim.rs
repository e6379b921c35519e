//! Whose turn comes next: an outcome's that is announced, else that of a wake, a pop or a send, else a sibling's that
//! comes up. The words of its warp are read in this cycle.

use super::super::{Announced, Wake, by_side, by_slot, depth_after, side_of, warp_of};
use super::state::{Claim, Store, Words};
use heddle_hdl::prelude::*;

/// The next turn.
pub struct Next {
    /// 1 bit each: a wake can be taken, and is.
    pub wake_ready: Signal,
    pub woken: Signal,
    /// 1 bit each: a level is popped; its sibling comes up.
    pub pops: Signal,
    pub takes: Signal,
    /// Its warp, and levels of that.
    pub warp: Signal,
    pub count: Signal,
}

impl Store {
    /// Chooses it, and reads the words.
    pub fn claim_next(&self, outcome: &Announced<Signal>, wake: &Wake<Signal>) -> Next {
        let Store { m, s, popping, owed, lends, .. } = self;
        let m = *m;
        let no = m.lit(0u32, 1);
        let claim = self.claim.q;
        let claimed_warp = warp_of(s, claim.slot);
        let claimed = claimed_warp.decode(s.warps);
        let Announced { valid: announced, slot: announced_slot, call, ret } = *outcome;
        let wake_possible = m.lit(s.barriers, 1);
        wire!(wake_ready = !announced & wake_possible);
        wire!(woken = wake.valid & wake_ready);
        wire!(could_send = owed.q & !claim.slot.decode(s.slots()).only_if(claim.send | claim.follows));
        wire!(could_pop = by_slot(popping.q & !claimed.only_if(claim.pop), m.lit(0u32, s.warps)));
        wire!(could = could_send | could_pop);
        // The lowest slot of the lowest warp: that one's words are read, whichever side it is.
        let [left_could, right_could] = by_side(could, 1);
        wire!(chosen_warp = (left_could | right_could).lowest_one());
        wire!(chosen = by_slot(chosen_warp & left_could, chosen_warp & !left_could));
        wire!(unclaimed = !announced & !woken);
        wire!(waits_for_a_turn = could.any());
        // A turn may bring two paths to the top. Then the one that is not steered is the other side of an outcome, else
        // the right one.
        wire!(may_owe = claim.outcome | claim.pop);
        wire!(beside = self.slot(claimed_warp, !(claim.outcome & side_of(s, claim.slot))));
        wire!(has_turn = claim.any(m));
        let could_take = lends
            .as_ref()
            .map_or(m.lit(0u32, s.warps), |lends| lends.q & !claimed.only_if(has_turn) & !self.pushed_warps.q);
        let wakes = wake.valid & wake_possible;
        let asked = [
            (announced, announced_slot),
            (wakes, self.slot(wake.slot, no)),
            (waits_for_a_turn, chosen.one_hot_index()),
            (may_owe, beside),
        ];
        let lent = could_take.lowest_one().one_hot_index();
        wire!(next_slot = pick(asked, self.slot(lent, no)));
        let unasked = may_owe.mux(claimed_warp, lent);
        let asked = [(announced, warp_of(s, announced_slot)), (wakes, wake.slot)];
        wire!(next_warp = pick(asked, waits_for_a_turn.mux(chosen_warp.one_hot_index(), unasked)));
        wire!(pops_next = unclaimed & (chosen & could_pop).any());
        wire!(takes_next = unclaimed & !waits_for_a_turn & !may_owe & could_take.any());
        self.claim.next(Claim {
            slot: next_slot,
            outcome: announced,
            wake: woken,
            pop: pops_next,
            send: unclaimed & (chosen & could_send).any(),
            follows: unclaimed & !waits_for_a_turn & may_owe,
            take: claim.take.map(|_| takes_next),
        });
        let next_top = self.tops.read(next_warp);
        let next_count = self.counts.read(next_warp);
        wire!(next_side = announced.mux(side_of(s, announced_slot), !next_top.left.valid));
        let (next_own, _) = next_top.of(next_side);
        // Its depth is read by what is announced alone, since there is a sum behind it.
        let (announced_path, _) = self.tops.read(warp_of(s, announced_slot)).of(side_of(s, announced_slot));
        self.words.next(Words {
            top: next_top,
            own: next_own,
            own_rpc: next_top.forwarded.map(|_| next_top.rpc_of(next_side)),
            after: depth_after(call, ret, announced_path.depth),
            threads: self.threads.read(next_warp),
            count: next_count,
        });
        if s.lanes > 1 {
            m.cover("pop_waits_for_an_outcome", could_pop.any() & announced);
        }
        m.assert("the_warp_is_that_of_the_slot", next_warp.eq(warp_of(s, next_slot)));
        let (pops, takes, warp, count) = (pops_next, takes_next, next_warp, next_count);
        Next { wake_ready, woken, pops, takes, warp, count }
    }
}

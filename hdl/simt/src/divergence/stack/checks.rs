//! What the unit asserts, and what tests should meet.

use super::super::levels::{Likely, Pop, has_likely};
use super::super::{Announced, Steer, UnitIn, assume_announced, assume_legal};
use super::state::Store;
use super::turn::{Moved, Next, Turn};
use super::update::{Popped, Updated};
use heddle_hdl::prelude::*;

/// What the pipeline sees to.
pub fn assume(
    store: &Store,
    i: &UnitIn<Signal>,
    (next, turn, updated): (&Next, &Turn, &Updated),
    steer: Steer<Signal>,
) {
    let Store { m, s, popping, .. } = store;
    let (claim, outcome) = (store.claim.q, &i.outcome);
    let masks = (store.live.q, updated.still_waiting);
    assume_legal(*m, s, i, masks, turn.top.mask, (turn.starts, next.woken));
    assume_announced(*m, i, (claim.outcome, claim.slot), steer);
    let stale = m.pipe_reset("stale", updated.updates & turn.slot.eq(next.slot));
    m.assert("nobody_uses_stale_words", !(stale & (outcome.valid | turn.wakes | turn.pops)));
    m.assume("no_outcome_of_a_popping_slot", !(outcome.valid & popping.q.select(outcome.slot, 1)));
    m.assert("pops_of_popping_slots", !turn.pops | (popping.q.select(turn.slot, 1) & turn.count.any()));
}

/// Every live thread is in one place. Returns the live threads of each warp, as the checks know them.
pub fn check_threads(
    store: &Store,
    i: &UnitIn<Signal>,
    turn: &Turn,
    (popped, updated): (&Popped, &Updated),
    steer: Steer<Signal>,
) -> Mem<Width> {
    let Store { m, s, .. } = store;
    let &Turn { starts, wakes, pops, slot, top, .. } = turn;
    let &Updated { top: after, left, pops_again, threads, .. } = updated;
    let (head, Pop { to_sibling, stays, .. }) = (popped.head, popped.pop);
    let ghost_live = m.memory("ghost_live", s.lanes, s.warp_bits());
    ghost_live.write(i.outcome.valid | starts, slot, threads);
    wire!(live_after = (pops | wakes).mux(ghost_live.read(slot), threads));
    let top_is_live = after.mask.any() & !(after.mask & !live_after).any();
    m.assert("the_top_has_live_threads", !steer.valid | top_is_live);
    m.assert("the_lowest_has_all_threads", !(steer.valid & !left.any()) | after.mask.eq(live_after));
    m.assert("what_stays_does_not_pop", !(pops_again & stays));
    let sibling = head.sibling.mask;
    m.assert("a_sibling_is_apart", !(pops & to_sibling) | !(sibling & top.mask).any());
    let of_the_group = !(top.mask & store.words.q.threads & !head.group.mask).any();
    m.assert("the_top_is_of_its_group", !(pops & head.group.valid & !to_sibling) | of_the_group);
    ghost_live
}

/// Of likely-convergence points.
pub fn check_likely(store: &Store, turn: &Turn, moved: &Moved, popped: &Popped, updated: &Updated) {
    let Store { m, s, .. } = store;
    if !has_likely(s) {
        return;
    }
    let &Turn { pops, top, count, .. } = turn;
    let &Updated { comes, joins, left, .. } = updated;
    let nowhere = m.zero(Likely::shape(s));
    let gathering = popped.head.likely.map_or(m.lit(0u32, 1), |gathering| gathering.valid);
    let (point, next_point) = (top.likely.unwrap_or(nowhere), comes.likely.unwrap_or(nowhere));
    let its_own = point.valid & point.level.eq((count - 1).slice(0, point.level.width()));
    m.assert("the_top_goes_to_the_point_of_its_level", !(pops & gathering) | its_own);
    m.assert("those_at_a_point_are_apart", !(pops & popped.pop.to_point) | !(comes.mask & top.mask).any());
    m.assert("a_point_has_its_level", !joins | next_point.level.zext(count.width()).lt(left));
    m.cover("a_side_is_at_the_point", moved.parting.pushes & joins);
    m.cover("joins_after_a_pop", pops & joins);
}

/// What tests should meet.
pub fn covers(
    store: &Store,
    announced: &Announced<Signal>,
    (next, turn, moved, updated): (&Next, &Turn, &Moved, &Updated),
) {
    let m = store.m;
    if store.s.barriers {
        m.cover("part_of_a_warp_waits", updated.part_waits);
    }
    m.cover("pops_again", updated.pops_again);
    m.cover("pop_waits_for_an_outcome", next.could_pop.any() & announced.valid);
    m.cover("meets_where_it_returns", moved.arrives & turn.top.rpc.returns);
    m.cover("warp_ends", updated.ends);
}

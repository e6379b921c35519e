//! What instructions on convergence barriers assert, and what tests should meet.

use super::TableIn;
use super::act::{Arrival, Decided, Seen};
use super::state::{BySync, Entry, Store, has};
use heddle_hdl::prelude::*;

/// Of an instruction that writes `entry`, if it changes it.
pub fn check(
    store: &Store,
    i: &TableIn<Signal>,
    seen: &Seen,
    decided: &Decided,
    sync: Option<Arrival>,
    entry: Entry<Signal>,
) {
    let Store { m, s, .. } = store;
    let &Seen { valid, mask, waits, living, held, waiters, expected, .. } = seen;
    let &Decided { enters, falls, still_expected, go, .. } = decided;
    looked_up(store, i, seen);
    m.assert("an_instruction_is_present", !valid | i.hints.present);
    m.assert("who_waits_is_alive", !valid | !(waiters & !living).any());
    m.assert("who_executes_does_not_wait", !valid | !(waiters & mask).any());
    m.assert("who_executes_is_alive", !valid | !(mask & !living).any());
    m.assert("somebody_waits_where_it_says_so", !valid | !held | waiters.any());
    let as_before = !enters & entry.expected.eq(still_expected);
    m.assert("only_who_falls_through_leaves", !(valid & falls) | (as_before & go.eq(mask)));
    let nobody = m.lit(0u32, s.lanes);
    m.assert("only_who_waits_stays", !(valid & waits) | (mask & !go & !expected).eq(nobody));
    if let Some((sync, by_sync)) = sync.zip(seen.word.by_sync) {
        check_sync(store, seen, decided, (sync, by_sync), entry);
    }
    covers(store, seen, decided);
}

/// What was looked up of an instruction's barrier a cycle ago is what the tables say now.
fn looked_up(store: &Store, i: &TableIn<Signal>, seen: &Seen) {
    let m = store.m;
    let &Seen { valid, slot, barrier, mask, next, waits, counts, word, at_b, .. } = seen;
    let &Seen { living, depth, held, expected, waiters, same_place, some_arrive, others_lack, count, .. } = seen;
    let Entry { expected: entered, place } = store.entry(store.address(slot, barrier));
    let alive = store.alive.read(slot);
    let who = living.eq(alive) & expected.eq(entered & alive.only_if(has(word.expects, at_b)));
    let waits_there = held.eq(has(word.holds, at_b)) & waiters.eq(place.waiting.only_if(held));
    let at_place = same_place.eq(place.pc.eq(next) & place.depth.eq(depth));
    let comes = some_arrive.eq((expected & mask).any()) & others_lack.eq((expected & !mask).any());
    let counted = (waiters | counts.mux(expected, expected & mask)).count_ones();
    m.assert("what_was_looked_up_is_so", !valid | (who & waits_there & at_place & comes));
    m.assert("what_was_counted_is_so", !(valid & (waits | counts)) | count.eq(counted));
    let just = m.pipe_reset("just_had_an_instruction", valid) & m.pipe("just_had", slot).eq(slot);
    m.assume("instructions_of_a_warp_are_apart", !(valid & just));
    let ended = m.pipe_reset("just_had_an_outcome", i.outcome) & m.pipe("whose_outcome", i.outcome_slot).eq(slot);
    m.assume("no_instruction_right_after_an_outcome", !(valid & ended));
}

/// Of a `sync`, and of hints where threads wait by one.
fn check_sync(
    store: &Store,
    seen: &Seen,
    decided: &Decided,
    (sync, by_sync): (Arrival, BySync<Signal>),
    entry: Entry<Signal>,
) {
    let m = store.m;
    let BySync { hard, wanted } = by_sync;
    let &Seen { valid, operand, mask, waits, word, at_b, held, expected, waiters, same_place, .. } = seen;
    let &Decided { changes, full, completes, go, .. } = decided;
    let Arrival { valid: is_sync, participants, here, enters, passes, queues, .. } = sync;
    let (is_sync, enters, queues) = (valid & is_sync, valid & enters, valid & queues);
    m.assume("a_sync_has_no_threshold", !is_sync | !operand.any());
    let of_it = (here & mask & participants).eq(here) & here.any();
    m.assume("who_is_here_of_a_sync_executes_it", !is_sync | of_it);
    m.assert("hard_where_threads_wait", !valid | !(hard & !word.holds).any());
    let all = waiters | here;
    m.assert("who_syncs_goes_on_when_all_are_there", !(enters & completes) | all.eq(participants));
    let at_sync = valid & waits & has(hard, at_b);
    m.assert("a_hint_leaves_a_sync_alone", !at_sync | (go.eq(mask) & !changes));
    let same = !decided.enters & entry.expected.eq(expected);
    m.assert("who_queues_leaves_the_entry_alone", !(queues & changes) | same);
    m.cover("sync_arrives_first", enters & !held);
    m.cover("sync_completes", enters & held & full);
    m.cover("sync_passes_beside_others", valid & passes & held);
    m.cover("sync_finds_threads_that_wait_softly", queues & !has(hard, at_b));
    m.cover("sync_of_others", queues & has(hard, at_b) & same_place);
    m.cover("hint_at_a_sync", at_sync);
    m.cover("hint_where_a_sync_queues", valid & waits & has(wanted, at_b) & expected.any());
}

fn covers(store: &Store, seen: &Seen, decided: &Decided) {
    let m = store.m;
    let &Seen { valid, mask, joins, waits, cancels, counts, moves, copies, held, .. } = seen;
    let &Decided { changes, arrive, some_arrive, enters, falls, full, completes, .. } = decided;
    m.cover("joins", changes & joins);
    m.cover("cancels_where_others_wait", changes & cancels & held);
    m.cover("counts_some", valid & counts & seen.count.any());
    m.cover("copies", changes & copies & !moves);
    m.cover("moves_with_waiting_threads", changes & moves & held);
    m.cover("completes_with_others", valid & completes & full & held);
    m.cover("completes_by_threshold", valid & completes & !full);
    m.cover("waits_without_participants", valid & waits & !some_arrive);
    m.cover("waits_with_some_participants", valid & enters & (mask & !arrive).any());
    m.cover("falls_through", valid & falls);
}

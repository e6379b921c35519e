//! What the table asserts, and what tests should meet.

use super::sorter::Sorted;
use super::{CctIn, Next, Ports, Read, Stacked, Table, Turn, entries};
use heddle_hdl::prelude::*;

/// All checks of a cycle.
pub fn check(
    table: &Table,
    i: &CctIn<Signal>,
    (turn, stack): (&Turn, &Stacked),
    sorted: &Sorted,
    (next, ports): (&Next, &Ports),
) {
    let Table { m, s, reading, fetched, returning, scan, compared, .. } = table;
    let &Turn { back, fetch, is_returning, sort, .. } = turn;
    let &Stacked { count, left, insert, more_returns, .. } = stack;
    let &Next { stays, any_returning, .. } = next;
    let (swap, room) = (sorted.swap, ports.room);
    let others = i.start | i.wake;
    m.assume("one_turn", !(others & (i.announced | i.outcome | fetched.q.valid)) & !(i.start & i.wake));
    m.assume("sorter_or_others", !(i.sort & (i.announced | i.outcome | i.wake)));
    m.assume("no_outcome_of_a_returning_warp", !(i.outcome & is_returning));
    m.assume("no_start_of_a_returning_warp", !(i.start & returning.q.select(i.start_slot, 1)));
    m.assume("stale_for_nobody_but_the_sorter", !(i.stale & (i.outcome | back | i.wake)));
    m.assert("fetches_what_was_counted", !(fetch & i.stale));
    m.assert("insert_has_room", !insert | count.lt(entries(s)));
    m.assert("returns_of_returning_warps", !back | (is_returning & count.any() & !i.z.valid));
    let returns = |head: Read<Signal>| !head.valid | returning.q.select(head.at, 1);
    m.assert("fetched_is_returning", returns(reading.q) & returns(fetched.q));
    m.assert("heads_of_two_warps", !(reading.q.valid & fetched.q.valid & reading.q.at.eq(fetched.q.at)));
    m.assert("returns_where_it_was_fetched", !back | i.slot.eq(fetched.q.at));
    m.assert("sorts_where_nobody_returns", !i.sort | (!any_returning & !reading.q.valid & !fetched.q.valid));
    m.assert("sorts_what_is_scanned", !sort | i.slot.eq(scan.q));
    m.assert("swap_within_the_stack", !swap | compared.q.at.lt(count));
    m.cover("inserts", insert);
    m.cover("returns", back);
    m.cover("returns_twice_running", back & more_returns);
    m.cover("returned_path_waits", fetched.q.valid & i.outcome);
    m.cover("fetches", fetch);
    m.cover("reads_a_head_while_one_waits", more_returns & stays & room);
    m.cover("has_no_room_for_a_head", more_returns & !room);
    m.cover("kept_for_a_return_that_does_not_come", (i.outcome | back) & left.any() & !i.alone);
    check_sorter(table, i, turn, sorted);
}

/// Of the sorter.
fn check_sorter(table: &Table, i: &CctIn<Signal>, turn: &Turn, sorted: &Sorted) {
    let Table { m, s, returning, scan, scanned, compared, .. } = table;
    let &Turn { back, fetch, sort, waits, .. } = turn;
    let &Sorted { goes_here, more, ends, sorts, swap, .. } = sorted;
    let seekers = table.seekers();
    m.cover("sorter_reads", more);
    m.cover("sorter_leaves_in_order", sorts & !i.start & !i.before_y);
    m.cover("sorter_swaps", swap);
    m.cover("sorter_waits", waits & compared.q.valid);
    m.cover("sorter_gives_way", sorts & !i.start & i.before_y & i.gives_way);
    m.cover("sorter_next_warp", ends);
    m.cover("read_abandoned", scanned.q.valid & !compared.q.valid & !sort);
    wire!(of_scanned = i.slot.eq(scan.q));
    let in_flight = scanned.q.valid | compared.q.valid;
    m.assert("no_return_between_read_and_swap", !(in_flight & (back | fetch)));
    m.assert("swap_is_not_put_off_by_its_own_warp", !(in_flight & i.announced & of_scanned));
    m.cover("swap_put_off_by_another_warp", compared.q.valid & i.outcome & !of_scanned);
    m.cover("swap_put_off_by_start", compared.q.valid & i.start);
    m.cover("several_return", (returning.q & !returning.q.lowest_one()).any());
    if s.may_park() {
        m.cover("sorter_finds_a_path_that_can_run", swap & seekers.select(i.slot, 1) & !i.x_waits);
        m.cover("sorter_finds_that_all_wait", ends & seekers.select(i.slot, 1) & i.x_waits);
        m.cover("sorter_passes_over", sort & !goes_here);
        m.cover("several_seek", (seekers & !seekers.lowest_one()).any());
    }
}

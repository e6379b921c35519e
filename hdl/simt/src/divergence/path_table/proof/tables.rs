//! What the tables hold between the turns, and what was read of them.

use super::super::Inside;
use super::super::cct::{self, Context, Read, entries};
use super::super::convergence;
use super::super::order::{key, rank};
use super::super::turn::from_tables;
use super::Slot;
use crate::divergence::{Path, Wake, depth_after};
use crate::proof::{implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// What the claim register says: what is claimed, and that the words that were read are those of the slot, as the
/// tables have them.
pub fn claims(
    m: Builder,
    s: &Shape,
    tables: &Inside,
    (cold, barriers): (Option<&cct::Inside>, Option<&convergence::Inside>),
    (was_announced, announced, call, ret): (Signal, Signal, Signal, Signal),
    taken: Wake<Signal>,
) {
    let (claim, words, stale) = (tables.store.claim.q, tables.store.words.q, tables.store.stale.q);
    let slot = claim.slot;
    m.assert("claimed_slot_is_there", slot.eq(index_of(s.warps, slot)));
    m.assert("announced_slot_is_there", announced.eq(index_of(s.warps, announced)));
    let of_announced = claim.outcome.eq(was_announced) & implies(was_announced, slot.eq(announced));
    m.assert("announced_outcome_is_claimed", of_announced);
    let of_woken = claim.wake.eq(taken.valid) & implies(taken.valid, slot.eq(taken.slot));
    m.assert("wake_that_was_taken_is_claimed", of_woken);
    m.assert("claimed_wake_is_of_one_that_waits", implies(claim.wake, tables.store.waiting().select(slot, 1)));
    let claims = [claim.outcome, claim.release, claim.wake, claim.sort];
    let twos = (1..claims.len()).flat_map(|k| (0..k).map(move |j| (j, k)));
    m.assert("nothing_else_is_claimed", !cat(&twos.map(|(j, k)| claims[j] & claims[k]).collect::<Vec<_>>()).any());

    let read = m.pipe_reset("has_read_words", m.lit(1u32, 1)) & !stale;
    m.assert("live_bit_of_the_claim", implies(read, words.live.eq(tables.store.live.q.select(slot, 1))));
    m.assert("hct0_of_the_claim", implies(read, tables.store.hct0.read(slot).same_as(words.hct0)));
    let depth = words.hct0.depth.slice(0, s.depth_bits);
    let counts = |change: Signal| was_announced & change & m.lit(s.order.counts_calls(), 1);
    let after = depth_after(counts(call), counts(ret), depth);
    m.assert("depth_after_the_claim", implies(read, words.after.eq(after)));
    let tabled = |name: &str, table: Option<Signal>, word: Option<Signal>| {
        if let Some((table, word)) = table.zip(word) {
            m.assert(&format!("{name}_of_the_claim"), implies(read, table.eq(word)));
        }
    };
    tabled("hct1", tables.store.hct1.as_ref().map(|t| t.read(slot).pack()), words.hct1.map(|word| word.pack()));
    tabled("phase", tables.store.phases.as_ref().map(|t| t.read(slot)), words.phase);
    tabled("round", tables.store.rounds.as_ref().map(|t| t.read(slot)), words.round);
    tabled("count", cold.map(|c| c.counts.read(slot)), cold.map(|c| c.counted));
    if let Some(c) = cold {
        let other = claim.release | claim.wake | claim.sort;
        let returns = implies(!claim.outcome, slot.eq(c.fetched.at) & !other);
        m.assert("head_that_was_fetched_has_the_turn", implies(c.fetched.valid, returns));
        m.assert("turn_is_kept_while_a_head_is_read", implies(c.reading.valid, !other));
        m.assert("sorter_is_where_it_scans", implies(claim.sort, slot.eq(c.scan) & !c.returning.any()));
    }
    if let Some(b) = barriers {
        m.assert("claimed_wake_is_of_one_without_barriers", implies(claim.wake, !b.store.holding.q.select(slot, 1)));
        m.assert("release_is_where_the_warden_is", implies(claim.release, slot.eq(b.store.at_slot.q)));
        m.assert("a_wait_is_announced", implies(b.act.waited, was_announced & announced.eq(b.act.waited_slot)));
    }
}

/// What a live slot's tables hold at every cycle.
pub fn between_turns(m: Builder, s: &Shape, slot: &Slot, tables: &Inside) {
    let n = slot.number;
    let at = m.lit(n, s.warp_bits());
    let live = slot.live | slot.holds(m);
    let masks = slot.masks();
    let none = m.lit(0u32, s.lanes);
    let (mut seen, mut twice) = (none, none);
    for &mask in &masks {
        twice = twice | (seen & mask);
        seen = seen | mask;
    }
    m.assert(&format!("slot_{n}_paths_are_disjoint"), !twice.any());
    m.assert(&format!("slot_{n}_paths_are_complete"), implies(live, seen.eq(tables.ghosts.ghost_live.read(at))));
    let full: Vec<Signal> = slot.paths().iter().map(|p| implies(p.valid, p.mask.any())).collect();
    m.assert(&format!("slot_{n}_paths_are_not_empty"), cat(&full).all());
    let all_wait = slot.paths().into_iter().map(|p| implies(p.valid, p.waits));
    let all_wait = cat(&all_wait.collect::<Vec<_>>()).all();
    m.assert(&format!("slot_{n}_waits_with_all_its_paths"), implies(slot.waiting, slot.live & all_wait));
    let busy = slot.returning | slot.seeking | slot.waiting;
    m.assert(&format!("slot_{n}_finds_out_whether_all_wait"), implies(slot.live & slot.parks, busy));
    m.assert(&format!("slot_{n}_waits_or_not"), implies(slot.waiting, !slot.returning & !slot.seeking));
    m.assert(
        &format!("slot_{n}_seeks_where_x_waits"),
        implies(slot.seeking, slot.live & slot.parks & slot.count.any()),
    );
    if let Some(ghost_waits) = &tables.ghosts.ghost_waits {
        let waits = slot.paths().into_iter().map(|p| p.mask.only_if(p.valid & p.waits));
        let waits = waits.fold(none, |all, mask| all | mask);
        m.assert(&format!("slot_{n}_ghost_waits"), implies(live, waits.eq(ghost_waits.read(at))));
    }
    let y_waits = implies(slot.y.valid & slot.x.waits, slot.y.waits)
        & implies(slot.y.valid & slot.parks, slot.y.waits | slot.y.is_late(s));
    m.assert(&format!("slot_{n}_y_waits_if_x_does"), implies(slot.live, y_waits));
    if slot.cold.is_empty() {
        // But for a path that came from a convergence barrier beside one that runs, or that one in an LR/SC sequence.
        let beside = s.convergence_barriers > 0 || s.keeps_sequences();
        let sorted = before(s, slot.x, slot.y) | (m.lit(beside, 1) & !slot.parks);
        m.assert(&format!("slot_{n}_is_sorted"), implies(slot.y.valid, sorted));
        m.assert(&format!("slot_{n}_has_no_cold_thread"), implies(live, !tables.ghosts.ghost_cold.read(at).any()));
        return;
    }
    let cold = masks[2..2 + slot.cold.len()].iter().fold(none, |all, &mask| all | mask);
    m.assert(&format!("slot_{n}_cold_threads"), implies(live, cold.eq(tables.ghosts.ghost_cold.read(at))));
    m.assert(&format!("slot_{n}_count_is_bounded"), implies(slot.live, slot.count.le(entries(s))));
    let empty = !slot.live & slot.holds(m);
    m.assert(&format!("slot_{n}_without_a_path_has_no_cold_one"), implies(empty, !slot.count.any() & !slot.returning));
    // A wake does not write x, so it must be the first of those that are woken.
    let first = implies(slot.y.valid & slot.parks, before(s, slot.x, slot.y));
    m.assert(&format!("slot_{n}_x_that_does_not_run_is_first"), first);
    let alone = implies(slot.live & !slot.y.valid, slot.returning | !slot.count.any());
    m.assert(&format!("slot_{n}_alone_is_returning"), alone);
    let returns = slot.live & !slot.y.valid & slot.count.any();
    m.assert(&format!("slot_{n}_returning_has_a_path"), implies(slot.returning, returns));
}

/// x may be before y: in a sorted list only by its key. In no list are they in one place.
fn before(s: &Shape, x: Path<Signal>, y: Path<Signal>) -> Signal {
    if s.order.is_stack() { rank(s, x).le(rank(s, y)) & key(x).ne(key(y)) } else { key(x).lt(key(y)) }
}

/// What the sorter has passed of a slot that is seeking waits.
pub fn sorter_passes(m: Builder, s: &Shape, slots: &[Slot], c: &cct::Inside) {
    // If x waits, all wait; if it has given way, all wait or have.
    let parks = |slot: &Slot, p: Path<Signal>| p.waits | (p.is_late(s) & !slot.x.waits);
    for slot in slots {
        let n = slot.number;
        let here = if s.warps > 1 { c.scan.eq(n) } else { m.lit(1u32, 1) };
        let width = slot.count.width();
        let passed = |k: usize| {
            let k = m.lit(k as u32, width);
            let under_way = |read: Read<Signal>| read.valid & read.at.eq(k);
            c.index.gt(k) & !under_way(c.scanned) & !under_way(c.compared)
        };
        let waits = (0..slot.cold.len()).map(|k| implies(passed(k) & slot.cold[k].valid, parks(slot, slot.cold[k])));
        let all = cat(&waits.collect::<Vec<_>>()).all();
        m.assert(&format!("slot_{n}_has_passed_paths_that_wait"), implies(here & slot.seeking & !slot.returning, all));
    }
}

/// What the cold table has read is what it holds.
pub fn cold_reads(m: Builder, s: &Shape, slots: &[Slot], entry: Context<Signal>, c: &cct::Inside) {
    let is = |slot: &Slot, number: Signal| if s.warps > 1 { number.eq(slot.number) } else { m.lit(1u32, 1) };
    for slot in slots {
        let n = slot.number;
        let width = slot.count.width();
        let is_entry = |read: Context<Signal>, which: Signal| {
            let read = Context::of(from_tables(m, s, slot.differ, read.path(slot.live)));
            let held = |k: usize| slot.cold[k].valid & Context::of(slot.cold[k]).same_as(read);
            cat(&(0..slot.cold.len()).map(|k| which.eq(m.lit(k as u32, width)) & held(k)).collect::<Vec<_>>()).any()
        };
        let reads = [("was_read", c.read, c.reading, c.scanned), ("is_there", entry, c.fetched, c.compared)];
        for (name, read, returns, sorts) in reads {
            let head = returns.valid & is(slot, returns.at);
            let is_head = slot.returning & is_entry(read, slot.count - 1);
            m.assert(&format!("slot_{n}_head_{name}"), implies(head, is_head));
            let sorted = sorts.valid & is(slot, c.scan);
            let of_sorter = slot.live & slot.y.valid & is_entry(read, sorts.at);
            m.assert(&format!("slot_{n}_entry_{name}"), implies(sorted, of_sorter));
        }
    }
    let there = |number: Signal| number.eq(index_of(s.warps, number));
    m.assert("slots_are_there", there(c.scan) & there(c.reading.at) & there(c.fetched.at));
    let both = |returns: Read<Signal>, sorts: Read<Signal>| returns.valid & sorts.valid;
    let of_one = !(both(c.reading, c.scanned) | both(c.reading, c.compared))
        & !(both(c.fetched, c.scanned) | both(c.fetched, c.compared));
    m.assert("heads_or_the_sorter", of_one);
    let next = |later: Signal, at: Signal| later.eq(at + 1);
    m.assert("sorter_goes_up", implies(c.scanned.valid, next(c.index, c.scanned.at)));
    let after = c.scanned.valid.mux(c.scanned.at, c.index);
    m.assert("sorter_compares_in_order", implies(c.compared.valid, next(after, c.compared.at)));
}

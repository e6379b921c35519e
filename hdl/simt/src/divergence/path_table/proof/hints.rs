//! Instructions on convergence barriers: which are legal, and what is read for them.

use super::super::Inside;
use super::super::convergence::{self, BySync, Entry};
use super::Slot;
use crate::divergence::interface::{Ahead, First, Hint, Hints};
use crate::divergence::{Announced, Outcome, OutcomeKind, Side, Steer};
use crate::isa::HintKind;
use crate::pipeline::primitives::Named;
use crate::pipeline::timing::{ISSUE_TO_RESOLVE, ISSUE_TO_SECOND};
use crate::proof::{cover, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use heddle_hdl::select;

/// Legal instructions on convergence barriers out of any: of slots that run and have no outcome in this cycle, nor were
/// steered or had another one in the cycle before; of all threads of the path, as was said in the two cycles before.
/// Returns the outcome: a `wait` has its own, and nobody else such a one; and which is announced: that of a `wait`, or
/// as `asked`.
pub fn hinted(
    m: Builder,
    s: &Shape,
    (slots, late): (&[Slot], &[Signal]),
    hints: &mut Hints<Signal>,
    (outcome, asked): (Outcome<Signal>, Announced<Signal>),
    (barriers, all, steer): (&convergence::Inside, Signal, Steer<Signal>),
) -> (Outcome<Signal>, Announced<Signal>, Signal) {
    let n = s.convergence_barriers;
    let barrier = |index: Signal| {
        if n.is_power_of_two() { index_of(n, index) } else { index.lt(n).mux(index, index.literal(0u32)) }
    };
    let at =
        |number: Signal, signal: fn(&Slot) -> Signal| select(&slots.iter().map(signal).collect::<Vec<_>>(), number);
    let first = hints.first;
    hints.first = First { slot: index_of(s.warps, first.slot), barrier: barrier(first.barrier) };
    let First { slot, barrier: told } = m.pipe("told_first", hints.first);
    // Before the first cycle nothing was told.
    let (slot, told) = (index_of(s.warps, slot), barrier(told));
    let ahead = hints.ahead;
    let ahead = Ahead { slot, barrier: told, other: barrier(ahead.other), mask: at(slot, |slot| slot.x.mask), ..ahead };
    let names = m.deferred("names_another", 1);
    hints.ahead = Ahead { both: names.value, counts: ahead.counts & !names.value, ..ahead };
    let named = m.pipe("named", hints.ahead);
    let comes = m.pipe_reset("comes", names.value);
    let named = Ahead { both: comes, ..named };
    let hint = Hint { next: named.next, ..hints.hint };
    let next = m.pipe("next_of_wait", hint.next);
    let had = m.reg("had_an_instruction", 1).reset(0u32);
    let apart = !(had.q & m.pipe("whose_instruction", named.slot).eq(named.slot))
        & !(m.pipe_reset("had_a_steering", steer.valid) & m.pipe("whose_steering", steer.slot).eq(named.slot));

    let operation = if late.is_empty() {
        hint.operation
    } else {
        // What was named comes.
        let copies = hint.operation.bit(0).mux(m.code(HintKind::Copy), m.code(HintKind::Move));
        comes.mux(copies, hint.operation)
    };
    let may = |back: u32| late.get(back as usize - 1).map_or(m.lit(1u32, 1), |&held| !held);
    let copies = operation.eq(HintKind::Copy) | operation.eq(HintKind::Move);
    let is_sync = operation.eq(HintKind::Sync) & m.lit(s.syncs(), 1);
    let known = operation.ne(0) & (operation.ne(HintKind::Sync) | is_sync) & !(copies & !named.both);
    let known = known & operation.eq(HintKind::Count).eq(named.counts);
    let of_named = |slot: Signal| outcome.valid & outcome.slot.eq(slot);
    let lacks = hints.hint.sync.map_or(m.lit(0u32, 1), |told| told.lacks);
    let is_wait = operation.eq(HintKind::Wait) | (is_sync & lacks);
    let runs = at(named.slot, |slot| slot.runs() & !slot.pending);
    let free = runs & apart & !(of_named(named.slot) & !barriers.act.waited);
    let valid = if late.is_empty() {
        hint.valid & known & free
    } else {
        comes | (hint.valid & known & free & may(ISSUE_TO_RESOLVE))
    };
    let stays = |slot: Signal| {
        let waits = valid & is_wait & named.slot.eq(slot);
        at(slot, |slot| slot.runs() & !slot.pending) & !of_named(slot) & !waits
    };
    had.next(valid);
    let alone = stays(ahead.slot) & !(valid & named.slot.eq(ahead.slot));
    names.drive(if late.is_empty() { ahead.both } else { ahead.both & alone & may(ISSUE_TO_SECOND) });
    let asked = if late.is_empty() {
        asked
    } else {
        // What was announced comes, and what was named does not have to give way to it.
        let named_too = names.value & asked.slot.eq(ahead.slot);
        Announced { valid: asked.valid & stays(asked.slot) & !named_too & may(ISSUE_TO_RESOLVE), ..asked }
    };
    let no = m.lit(0u32, 1);
    let of_wait = Announced { valid: m.lit(1u32, 1), slot: named.slot, call: no, ret: no };
    let announce = (valid & is_wait).mux(of_wait, asked);
    let operand = cat(&[named.other, hint.operand.from_bit(s.barrier_bits())]);
    let mask = at(named.slot, |slot| slot.x.mask);
    // Somebody executes a sync and names the same as it does; a sync has no threshold.
    let sync = hints.hint.sync.map(|told| {
        let first = mask.lowest_one();
        let all = told.all | first;
        // Those of whom all are here go on by a jump.
        let lacks = is_sync & lacks;
        let here = (told.here & mask & all) | first;
        Named { all: lacks.mux(all, here), here, lacks }
    });
    let operand = operand.only_if(!is_sync);
    hints.hint = Hint { valid, operation, slot: named.slot, barrier: named.barrier, operand, mask, sync, ..hint };
    // One without effect would be that of a core that has stopped.
    hints.present = if late.is_empty() { hints.present | valid } else { valid };
    cover(m, "waits", valid & is_wait);

    let usual = Outcome {
        valid: outcome.valid & !(m.lit(!late.is_empty(), 1) & comes & of_named(named.slot)),
        kind: outcome.kind.eq(OutcomeKind::Converge).mux(m.code(OutcomeKind::Branch), outcome.kind),
        ..outcome
    };
    let stay = barriers.act.stays.unwrap_or(m.lit(0u32, s.lanes));
    let of_wait = Outcome {
        valid: m.lit(1u32, 1),
        slot: barriers.act.waited_slot,
        kind: m.code(OutcomeKind::Converge),
        taken: Side { mask: all & !stay, pc: next },
        rest: Side { mask: stay, ..outcome.rest },
        call: no,
        ret: no,
        ..outcome
    };
    (barriers.act.waited.mux(of_wait, usual), announce, comes)
}

/// What was read of the entries is what they hold, and where the words say that a barrier is held, threads wait.
pub fn reads(m: Builder, s: &Shape, hints: &Hints<Signal>, slots: &[Slot], tables: &Inside, b: &convergence::Inside) {
    let Ahead { slot, other, both, .. } = m.pipe("reads", hints.ahead);
    let reset = m.pipe_reset("has_read", m.lit(1u32, 1));
    let is = |slot: Signal, barrier: Signal, entry: Entry<Signal>| {
        b.store.entry(b.store.address(slot, barrier)).same_as(entry)
    };
    let ahead = hints.ahead;
    m.assert("entry_that_is_ahead", implies(reset, is(ahead.slot, ahead.barrier, b.act.found.first)));
    m.assert("other_entry_in_stage_8", implies(reset & both, is(slot, other, b.act.found.other)));
    m.assert(
        "entry_of_the_warden",
        implies(
            b.store.read.q,
            is(b.store.at_slot.q, b.store.read_barrier.q, b.act.found.other) & b.store.at.q & !(reset & both),
        ),
    );
    m.assert(
        "entry_that_is_weighed",
        implies(b.store.weighed.q, b.store.read.q & b.visit.entry.same_as(b.act.found.other)),
    );
    let holds =
        (b.store.words.read(b.store.at_slot.q).holds & b.store.read_barrier.q.decode(s.convergence_barriers)).any();
    if let Some(BySync { hard, .. }) = b.store.words.read(b.store.at_slot.q).by_sync {
        let is_hard = (hard & b.store.read_barrier.q.decode(s.convergence_barriers)).any();
        let by_force = b.store.read.q & b.store.forced.q;
        let early = b.store.weighed.q & b.visit.reason.wanted & !b.visit.reason.complete;
        m.assert("the_warden_forces_no_sync", implies(by_force | early, !is_hard));
    }
    m.assert("who_is_to_be_released_waits", implies(b.store.weighed.q & b.visit.reason.wanted, holds));
    m.assert("warden_reads_a_barrier", b.store.read_barrier.q.zext(5).lt(s.convergence_barriers) | !b.store.read.q);
    m.assert("warden_is_somewhere", b.store.at_slot.q.eq(index_of(s.warps, b.store.at_slot.q)));
    for slot in slots {
        let n = slot.number;
        let w = m.lit(n, s.warp_bits());
        let (word, none) = (b.store.words.read(w), m.lit(0u32, s.lanes));
        let alive = b.store.alive.read(w).eq(tables.ghosts.ghost_live.read(w));
        m.assert(&format!("slot_{n}_alive"), implies(slot.live | b.store.holding.q.bit(n), alive));
        let held = slot.held.iter().fold(none, |all, p| all | p.mask.only_if(p.valid));
        let ghost = tables.ghosts.ghost_held.as_ref().expect("a table of those who wait").read(w);
        let after = slot.pending.mux((ghost | slot.x.mask) & !slot.goes, ghost);
        m.assert(&format!("slot_{n}_held_threads"), implies(slot.live | b.store.holding.q.bit(n), held.eq(after)));
        m.assert(&format!("slot_{n}_pending_runs"), implies(slot.pending, slot.live & !slot.parks & !slot.returning));
        let at = b.store.at.q & b.store.at_slot.q.eq(b.store.at_slot.q.literal(n));
        let known = slot.live | b.store.holding.q.bit(n) | b.store.looking.q.bit(n) | b.store.noted().bit(n) | at;
        let known = b.store.softly.as_ref().map_or(known, |softly| known | softly.q.bit(n));
        let within = !((word.look | word.old | word.tired) & !word.holds).any();
        let within = word.by_sync.map_or(within, |BySync { hard, .. }| {
            let not_hard = word.old | word.tired | !word.holds;
            within & !(hard & not_hard).any()
        });
        let told = b.store.holding.q.bit(n).eq(word.holds.any()) & b.store.looking.q.bit(n).eq(word.look.any());
        let told = b.store.softly.as_ref().map_or(told, |softly| told & softly.q.bit(n).eq(word.soft().any()));
        m.assert(&format!("slot_{n}_word_is_told"), implies(known, within & told));
        let somebody = slot.held.iter().map(|p| implies(p.valid, p.mask.any())).collect::<Vec<_>>();
        m.assert(&format!("slot_{n}_somebody_waits"), cat(&somebody).all());
    }
}

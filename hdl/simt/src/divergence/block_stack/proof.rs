//! The block stack as a whole, from reset on: whatever it is told about reconvergence, a live thread is in one warp at
//! most, or waits; where it runs, it has the pc and call depth that outcomes gave it. No warp runs a thread of which
//! another still owes a write, and a slot knows the home of each write that it owes.
//!
//! One thread is followed, any of them; blocks are all of the core or one warp each.

use super::state::{OfSlot, PlaceKind, Warp, as_one_warp};
use super::{Inside, described};
use crate::block::same_group;
use crate::divergence::levels::levels;
use crate::divergence::proof::{Followed, ProofIn, Whereabouts, held_since, with_announced};
use crate::divergence::{MixedIn, Outcome, OutcomeKind, Side, Start, UnitIn, UnitOut, depth_after};
use crate::pipeline::timing::ISSUE_TO_RESOLVE;
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Inputs beside those of other units.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct BlockProofIn<T> {
    pub unit: ProofIn<T>,
    /// 1 bit: blocks are all of the core.
    pub one_block: T,
    /// One bit per slot: an instruction issues whose write comes later, if the slot runs; and the last such write is
    /// done.
    #[width(s.warps)]
    pub issues: T,
    #[width(s.warps)]
    pub writes: T,
}

/// The writes that slots owe.
struct Owed {
    /// One bit per slot: any; and one of the followed thread.
    any: Reg<Signal>,
    of_thread: Reg<Signal>,
}

/// The unit with every legal input: blocks start warp after warp where no thread lives and no write is due; outcomes of
/// warps that run, with threads of the warp and anything about reconvergence, until one is refused; `hold` is obeyed.
pub fn block_stack_proof(s: &Shape) -> TypedModule<BlockProofIn<Width>, UnitOut<Signal>> {
    module("block_stack_proof", BlockProofIn::shape(s), |m, i| {
        let unit_in = m.deferred("unit_in", UnitIn::shape(s));
        let (out, inside) = described(m, s, unit_in.value);
        let late = held_since(m, out.hold, ISSUE_TO_RESOLVE);
        let may = !late[late.len() - 1];
        let i = BlockProofIn {
            unit: with_announced(m, s, &i.unit, out.steer, may, |slot| inside.store.depths.read(slot)),
            ..i
        };
        let any = i.unit.unit;
        let refused = m.reg("refused", 1).reset(0u32);
        let owed = |name: &str| m.reg(name, s.warps).reset(0u32);
        let owed = Owed { any: owed("owed"), of_thread: owed("owed_of_thread") };
        let one_block = held(m, "block_size", i.one_block);
        let group = m.lit(s.warps - 1, s.warp_bits()).only_if(one_block);

        // Starts: a block's warps, one after another.
        let filling = m.reg("filling", 1).reset(0u32);
        let next = m.reg("next_to_start", s.warp_bits()).reset(0u32);
        let lowest = index_of(s.warps, any.start.slot) & !group;
        let its_slots = same_group(lowest, group, s.warps);
        wire!(may_begin = !filling.q & !(its_slots & (out.live | owed.any.q)).any());
        wire!(begins = any.start.valid & may_begin);
        let some = any.start.mask | (!any.start.mask.any()).zext(s.lanes);
        let start = Start { valid: any.start.valid & filling.q, slot: next.q, mask: some, ..any.start };
        wire!(started = start.valid & out.start_ready);
        wire!(is_last = (next.q & group).eq(group));
        filling.next(begins | (filling.q & !(started & is_last)));
        next.next(pick([(begins, lowest), (started, next.q + 1)], next.q));

        // Outcomes.
        let slot = any.outcome.slot;
        // What was ahead of its block is held back at issue.
        let was_ahead = m.pipe_reset("were_ahead", inside.ahead);
        let is_ahead = inside.ahead | was_ahead;
        let passes = (inside.may_pass | !inside.ahead) & !inside.parked & is_ahead;
        let passes = passes.only_if(m.lit(s.passes(), 1));
        let may = (inside.store.running.q & !inside.parked & (!is_ahead | passes)).select(slot, 1) & !refused.q;
        let passes = passes.select(slot, 1);
        let warp = inside.store.warps.read(slot);
        let outcome = any_outcome(m, s, &i, (slot, may, passes), warp, &inside, group);
        let (depth, block) = (inside.store.depths.read(slot), slot & !group);
        let read = OfSlot {
            warp,
            depth,
            after: depth_after(outcome.call, outcome.ret, depth),
            ends: inside.store.ends.read(block),
            count: inside.store.counts.read(block),
            first: inside.store.places.read(block),
        };
        m.assert("words_of_the_outcome", implies(outcome.valid, read.same_as(inside.of_slot)));
        let mixed = MixedIn {
            group,
            filling: same_group(next.q, group, s.warps).only_if(filling.q),
            quiet: !owed.any.q,
            ..any.mixed.expect("a unit for blocks is told of them")
        };
        let told = UnitIn { start, outcome, mixed: Some(mixed), ..any };
        unit_in.drive(told);
        let refuses = out.more.refused.map_or(m.lit(0u32, 1), |refusal| refusal.valid);
        refused.next(refused.q | refuses);

        let thread = Followed::any(m, s, &i.unit);
        let runs = follow(m, s, (&told, &out, &inside), thread, refused.q);
        let (owed_by, owes) = (owed.of_thread.q, owed.any.q);
        writes(m, s, &i, owed, (runs, &told.outcome), (thread, &inside));

        let was_live = m.pipe_reset("was_live", out.live);
        cover(m, "a_warp_ends", (was_live & !out.live).any());
        cover(m, "a_block_ends", was_live.any() & !out.live.any());
        if s.lanes > 1 {
            cover(m, "parts", inside.store.counts.read(slot & !group).now.any());
        }
        if s.mixes() {
            let moved = runs & !thread.warp.decode(s.warps);
            cover(m, "runs_in_another_slot", moved.any());
            cover(m, "owes_in_another_slot", (moved & owed_by).any());
        }
        let forms = inside.store.formed.q.valid & out.steer.valid & !told.outcome.valid;
        cover(m, "forms_a_warp_that_is_owed", forms & owes.select(out.steer.slot, 1));
        if s.predicts() {
            cover(m, "goes_ahead", inside.ahead.any());
        }
        if s.passes() {
            cover(m, "is_parked", inside.parked.any());
            cover(m, "goes_on_from_there", m.pipe_reset("was_parked", inside.parked.any()) & !inside.parked.any());
        }
        out
    })
}

/// What a warp of this slot may do, if it `may` do anything; and `passes`, if it is ahead.
fn any_outcome(
    m: Builder,
    s: &Shape,
    i: &BlockProofIn<Signal>,
    (slot, may, passes): (Signal, Signal, Signal),
    warp: Warp<Signal>,
    inside: &Inside,
    group: Signal,
) -> Outcome<Signal> {
    let any = i.unit.unit.outcome;
    let is = |kind: OutcomeKind| any.kind.eq(kind);
    let waits = is(OutcomeKind::Wait) & m.lit(s.barriers, 1);
    let legal = is(OutcomeKind::Jump) | is(OutcomeKind::Arrived) | is(OutcomeKind::Exit) | waits;
    let kind = legal.mux(any.kind, m.code(OutcomeKind::Branch));
    let (jump, branch) = (is(OutcomeKind::Jump), !legal);
    let some = (branch | jump).mux(warp.mask & i.unit.taken, warp.mask);
    let taken = some.only_if(!is(OutcomeKind::Exit));
    // Another warp's branch is the same one; and a jump serves those who go where the first of the block went.
    let known = inside.store.places.read(slot & !group);
    let recorded = inside.store.recorded.q.select(slot & !group, 1);
    let same = !passes & recorded & known.kind.eq(PlaceKind::Branch) & known.jump.eq(jump) & known.pc.eq(any.rest.pc);
    let differs = same & (known.call.ne(any.call) | known.ret.ne(any.ret));
    let uniform = any.meets.map_or(m.lit(0u32, 1), |meets| meets.uniform);
    let whole = (warp.mask & !taken).any().ne(taken.any());
    let may_pass = (branch | jump) & uniform & whole & !any.call & !any.ret;
    Outcome {
        valid: any.valid & may & !differs & (!passes | may_pass),
        slot,
        kind,
        taken: Side { mask: taken, pc: ((branch | jump) & same).mux(known.target, any.taken.pc) },
        rest: Side { mask: (warp.mask & !taken).only_if(branch | jump), ..any.rest },
        meets: any.meets.map(|meets| same.mux(known.meets, meets)),
        homes: warp.homes,
        ..any
    }
}

/// One thread is in one warp at most, with its pc and call depth, or it waits. A bit per slot: its warp has the thread.
fn follow(
    m: Builder,
    s: &Shape,
    (told, out, inside): (&UnitIn<Signal>, &UnitOut<Signal>, &Inside),
    thread: Followed,
    refused: Signal,
) -> Signal {
    let of_slot = |slot: u32| {
        let warp = inside.store.warps.read(m.lit(slot, s.warp_bits()));
        inside.store.running.q.bit(slot) & thread.is_in(warp.mask) & is_home(m, s, slot, warp, thread)
    };
    let runs = cat(&(0..s.warps).map(of_slot).collect::<Vec<_>>()).named("thread_runs");
    wire!(acts = told.outcome.valid & runs.select(told.outcome.slot, 1));
    let Whereabouts { alive, pc, depth, .. } = thread.moved(m, s, told, out, (acts, m.lit(0u32, 1)));

    let all = |what: &str, holds: Signal| m.assert(what, implies(!refused, holds));
    all("thread_runs_once", !(runs & (runs - 1)).any());
    all("thread_that_runs_lives", implies(runs.any(), alive));
    for slot in 0..s.warps {
        let steered = out.steer.valid & out.steer.slot.eq(slot);
        let at = m.pipe_if(&format!("slot_{slot}_steered_pc"), steered, out.steer.pc);
        let stop = inside.store.stops.read(m.lit(slot, s.warp_bits()));
        let at = inside.parked.bit(slot).mux(stop.pc, at);
        let here = at.eq(pc) & inside.store.depths.read(m.lit(slot, s.warp_bits())).eq(depth);
        all(&format!("slot_{slot}_runs_the_thread_where_it_is"), implies(runs.bit(slot), here));
    }

    let of_thread = |threads: Signal| threads.select(thread.lane, s.warps).select(thread.warp, 1);
    let wide = as_one_warp(s);
    let count = inside.store.counts.read(told.mixed.map_or(thread.warp, |mixed| thread.warp & !mixed.group)).now;
    let level = |words: &Mem<Width>, level: u32| {
        of_thread(words.read(m.lit(level, index_width(levels(&wide))))) & count.gt(level)
    };
    let in_levels = inside.levels.iter().flat_map(|words| (0..levels(&wide)).map(|k| level(words, k)));
    let held = in_levels.fold(m.lit(0u32, 1), |any, level| any | level);
    let waits = of_thread(inside.arrived) | of_thread(inside.forming) | held;
    all("thread_is_not_lost", implies(alive, runs.any() | waits));
    all("thread_runs_or_is_formed", implies(of_thread(inside.forming), alive & !runs.any()));
    let is_ahead = (runs & inside.ahead).any();
    all("thread_runs_or_has_arrived", implies(of_thread(inside.arrived) & !is_ahead, alive & !runs.any()));
    runs
}

/// The home of the thread's lane in a slot is the thread's static warp.
fn is_home(m: Builder, s: &Shape, slot: u32, warp: Warp<Signal>, thread: Followed) -> Signal {
    let home = |homes: Signal| homes.select(thread.lane, s.warp_bits());
    warp.homes.map_or(m.lit(slot, s.warp_bits()), home).eq(thread.warp)
}

/// Writes of a thread come back where its warp was, before another runs it, and find its home there.
fn writes(
    m: Builder,
    s: &Shape,
    i: &BlockProofIn<Signal>,
    owed: Owed,
    (runs, outcome): (Signal, &Outcome<Signal>),
    (thread, inside): (Followed, &Inside),
) {
    // Behind an instruction with an outcome nothing issues, nor where a warp is parked.
    let begin =
        inside.store.running.q & !inside.parked & i.issues & !outcome.slot.decode(s.warps).only_if(outcome.valid);
    let any = (owed.any.q & !i.writes) | begin;
    owed.any.next(any);
    owed.of_thread.next(((owed.of_thread.q & !i.writes) | (begin & runs)) & any);
    for slot in 0..s.warps {
        let elsewhere = owed.of_thread.q & !m.lit(1u64 << slot, s.warps);
        m.assert(&format!("slot_{slot}_runs_nobody_who_is_owed_elsewhere"), !(runs.bit(slot) & elsewhere.any()));
        let warp = inside.store.warps.read(m.lit(slot, s.warp_bits()));
        let stays = implies(owed.of_thread.q.bit(slot), is_home(m, s, slot, warp, thread));
        m.assert(&format!("slot_{slot}_keeps_the_home_of_a_write"), stays);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Divergence;
    use crate::proof::testing::holds_at_random;
    use crate::shape::{Capt, Compaction, History};

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps, barriers) in [(1, 1, false), (1, 4, false), (2, 2, true), (4, 2, false), (2, 4, true)] {
            let ways = Compaction::ALL.iter().map(|&(_, compaction)| (compaction, 1));
            for (compaction, slack) in ways.chain([(Compaction::Predict, 3)]) {
                let capt = Capt { entries: 2, history: History::Latest };
                let s = Shape { compaction, capt, slack, barriers, ..Shape::new(lanes, warps) };
                let s = Shape { program: 16, depth_bits: 1, ..s };
                let s = s.with_divergence(Divergence::BLOCK_STACK);
                holds_at_random(&block_stack_proof(&s).check().unwrap().netlist, 20_000);
            }
        }
    }
}

//! The block-stack divergence unit: thread block compaction. All warps of a block share a stack of reconvergence
//! points; where its threads diverge, they form new warps.
//!
//! `thread-block-compaction.txt` §3. A *dynamic warp* is what a slot runs: threads of any of the block's static warps,
//! each in its own lane. All dynamic warps of a block run between the same two places: from where they were formed to
//! the next branch where they may diverge, or to where threads reconverge. There each *arrives*, and waits for the
//! others.
//!
//! ```text
//!  outcome ─► goes on alone (none diverge) ─────────────────────────────────────────────────────────────────────► steer
//!     │ (arrive.rs)                                                                                            (run.rs)
//!     └─► arrives: its threads join the block's two targets, in any order of warps
//!                       │ when the last warp of the block has arrived, and no write would be left behind
//!                       ▼
//!               the stack: push, pop ─► what runs next: pc, threads ─► compactor ─► a warp a cycle: slot, threads ─► steer
//!                 (act.rs, super::levels)                            (form.rs, compactor.rs)
//! ```
//!
//! * A branch that the side table calls uniform is no place to wait, unless [`Compaction::Always`] or
//!   [`Compaction::Every`]. A warp whose threads diverge there all the same waits for the others. If they are at another
//!   branch, the table was wrong: the core stops with a fault.
//! * The only warp of a block that runs, while none has arrived, waits for nobody if its threads stay together.
//! * Each thread that arrives is put on its side at once. So the stack sees one branch of the whole block, as
//!   [`super::stack`] sees one of a warp; sides without threads are never pushed.
//! * A `jalr` that may diverge is served for the target of the first warp's first thread ([`MixedOut::jump`]).
//! * At a barrier all live threads of the block must arrive. If some of them are in the stack, they never come: a
//!   fault.
//! * When threads are formed anew, no register of any warp of the block awaits a write; so no instruction reads a
//!   register that another dynamic warp still owes, and a slot's homes stay while a write of it is under way. Static
//!   warps that stay as they are wait for no write.
//! * An entry with all live threads of the block has the static warps; any has them with [`Compaction::Off`].
//!
//! The paper's warp count is a bit per slot here, `running`: the count is 0 when none is on. It holds the two targets
//! of a branch as the block's two uppermost entries; here they become entries when the last warp has arrived.
//!
//! With [`Compaction::Predict`] some of the warps that arrive go on at once, [`ahead`] of their block, with
//! [`Shape::slack`] for more than a basic block.
//!
//! Each of [`Shape::levels`] is a branch where the block's threads diverged. A program that needs more stops with a
//! fault.

mod act;
pub mod ahead;
mod arrive;
pub mod capt;
pub mod compactor;
mod form;
mod run;
mod slack;
mod state;

use super::inspect::{Parked, Path, State};
use super::{
    Capabilities, Culprit, Events, Jump, Mechanism, MixedIn, MixedOut, MoreOut, Outcome, OutcomeKind, Refused, Start,
    Stop, UnitIn, UnitOut, assume_announced, assume_legal, hold,
};
use crate::isa::FaultCause;
use crate::proof::Proof;
use crate::shape::{Capt, Compaction, Shape, ShapeError, range};
use act::Acting;
use ahead::Arriving;
use arrive::Arrival;
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;
use state::{Count, Ends, Formed, Held, OfSlot, Place, PlaceKind, Store, Warp, as_one_warp};
use std::ops::Range;

/// Levels of a block's stack.
pub fn block_levels(s: &Shape) -> u32 {
    s.levels.unwrap_or(DEFAULT_LEVELS).min(s.threads() - 1)
}

/// Levels of a block's stack, unless said otherwise. The paper's programs need 14 entries at most, but for one with 38
/// (Table 3); ours, one with 69.
pub const DEFAULT_LEVELS: u32 = 128;

/// The mechanism: a stack per block.
pub struct BlockStack;

impl Mechanism for BlockStack {
    fn name(&self) -> &'static str {
        "block-stack"
    }

    fn number(&self) -> u8 {
        4
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reconverges: true,
            likely_points: true,
            mixes_warps: true,
            splits: false,
            announced: true,
            ..Capabilities::NONE
        }
    }

    fn check(&self, s: &Shape) -> Result<(), ShapeError> {
        range("capt.entries", s.capt.entries, 1, 32)?;
        if s.capt != Capt::DEFAULT && s.compaction != Compaction::Predict {
            let why = format!("compaction = {} predicts nothing", s.compaction.name());
            return Err(ShapeError::new("capt", s.capt.text(), why));
        }
        range("slack", s.slack, 1, 4)?;
        if s.slack > 1 && s.compaction != Compaction::Predict {
            let why = format!("compaction = {} lets no warp go ahead", s.compaction.name());
            return Err(ShapeError::new("slack", s.slack, why));
        }
        Ok(())
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        block_stack(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// Threads of several warps run together.
    fn paths(&self, _: &Shape, _: &State, _: u32) -> Vec<Path> {
        Vec::new()
    }

    /// Threads that have arrived at a branch or barrier, or were ahead and are parked, those that are being formed into
    /// warps, those that have not run since they diverged from others, and those that have come to where they meet others.
    fn parked(&self, s: &Shape, state: &State, block: Range<u32>) -> Vec<Parked> {
        let first = u64::from(block.start);
        // A lane's warps are side by side.
        let of_warp = |warp| (0..s.lanes).map(move |lane| (lane * s.warps + warp, warp * s.lanes + lane));
        // Where no block runs yet, levels hold anything.
        let live = state.register(s.threads(), "live_threads");
        let parked = |mask: Bits, waits: bool, pc: &Bits| {
            let pc = 4 * pc.low_u64() as u32;
            let threads = block.clone().flat_map(of_warp).filter(|(bit, _)| mask.bit(*bit) && live.bit(*bit));
            threads.map(|(_, thread)| Parked { thread, waits, pc }).collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        for slot in block.clone().filter(|&slot| is_parked(s, state, slot)) {
            let stop = state.word(Stop { valid: 1, pc: s.pc_bits() }, "stops", slot.into());
            let pc = 4 * stop.pc.low_u64() as u32;
            let threads = self.runs(s, state, slot).into_iter().flatten();
            found.extend(threads.map(|thread| Parked { thread, waits: false, pc }));
        }
        let first_arrived = state.word(Place::shape(s), "places", first);
        if state.register(s.warps, "recorded").bit(block.start) {
            let Place { kind, pc, target, .. } = &first_arrived;
            let taken_to = if *kind == PlaceKind::Branch { target } else { pc };
            found.extend(parked(state.register(s.threads(), "taken"), *kind == PlaceKind::Barrier, taken_to));
            found.extend(parked(state.register(s.threads(), "rest"), false, pc));
        }
        let Formed { valid, block: of, top, .. } = state.register(Formed::of(s), "formed");
        if valid == 1 && of == first {
            found.extend(parked(top.mask, false, &top.pc));
        }
        if s.threads() == 1 {
            return found;
        }
        // Groups are within each other: who is in the uppermost meets others at the rpc of now.
        let mut meets = Vec::new();
        let mut rpc = state.word(Ends::shape(s), "ends", first).rpc.pc;
        let most = block_levels(s);
        let count = state.word(Count::shape(s), "counts", first).now.low_u64().min(most.into());
        for level in (0..count).rev() {
            let held = state.word(Held::shape(&as_one_warp(s)), "levels", first << index_width(most) | level);
            if held.sibling == 1 {
                found.extend(parked(state.word(s.threads(), "siblings", level), false, &held.pc));
            }
            if held.group == 1 {
                meets.extend(parked(state.word(s.threads(), "groups", level), false, &rpc));
                rpc = held.rpc.pc;
            }
        }
        let runs: Vec<u32> = block.clone().flat_map(|slot| self.formed(s, state, slot)).flatten().collect();
        for thread in meets {
            if !runs.contains(&thread.thread) && found.iter().all(|other| other.thread != thread.thread) {
                found.push(thread);
            }
        }
        found
    }

    fn formed(&self, s: &Shape, state: &State, slot: u32) -> Vec<Option<u32>> {
        if is_parked(s, state, slot) { Vec::new() } else { self.runs(s, state, slot) }
    }

    fn live_threads(&self, s: &Shape, state: &State) -> u32 {
        state.register(s.threads(), "live_threads").count_ones()
    }
}

/// Whether a slot's warp, which is ahead or was, waits where threads reconverge.
fn is_parked(s: &Shape, state: &State, slot: u32) -> bool {
    s.passes() && state.register(s.warps, "parked").bit(slot)
}

impl BlockStack {
    /// The thread on each lane of a slot's warp, parked or not; none if it has none.
    fn runs(&self, s: &Shape, state: &State, slot: u32) -> Vec<Option<u32>> {
        if !state.register(s.warps, "running").bit(slot) {
            return Vec::new();
        }
        let Warp { mask, homes } = state.word(Warp { mask: s.lanes, homes: s.homes_bits() }, "warps", slot.into());
        let thread = |lane| {
            let bits = s.warp_bits();
            let home = homes.as_ref().map_or(slot, |homes| homes.extract(lane * bits, bits).low_u64() as u32);
            home * s.lanes + lane
        };
        (0..s.lanes).map(|lane| mask.bit(lane).then(|| thread(lane))).collect()
    }
}

/// The block-stack unit of a shape.
pub fn block_stack(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    module("block_stack", UnitIn::shape(s), |m, i| described(m, s, i).0)
}

/// The state, for proofs.
struct Inside {
    store: Store,
    of_slot: OfSlot<Signal>,
    /// One bit per slot: its warp is ahead; and parked; one that is ahead may pass.
    ahead: Signal,
    parked: Signal,
    may_pass: Signal,
    /// One bit per thread: it has arrived; it is being formed into a warp.
    arrived: Signal,
    forming: Signal,
    /// Words of masks of levels: siblings, groups, and those at likely points.
    levels: Vec<Mem<Width>>,
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a stack of reconvergence points a block, whose threads form new warps where they diverge.");
    let UnitIn { start, outcome: told, announced, .. } = &i;
    let Some(mixed) = i.mixed else { unreachable!("a unit for blocks is told of them") };
    let announced = announced.expect("outcomes are announced");
    let store = Store::new(m, s, mixed.group);
    let outcome = &store.outcome(*told);

    // Whose turn it is: an outcome's; else that of the next warp that is formed; else a start's.
    let formed = store.formed.q;
    wire!(forms = formed.valid & !outcome.valid);
    wire!(start_ready = !outcome.valid & !formed.valid & !store.step.q.valid);
    wire!(starts = start.valid & start_ready);

    let starts = Start { valid: starts, ..*start };
    let arrival = store.arrive(outcome, &store.announce(announced), mixed.filling);
    let acting = store.act(&mixed, &starts, &arrival);
    let forming = store.form(forms, &acting, mixed.quiet);
    let steer = store.run(&starts, &arrival, &forming);
    store.follow(&starts, &arrival, &acting, &forming);
    let released = store.follow_ahead(&arrival, &acting, &forming, mixed.restart);
    store.probe_outcome(&arrival);
    store.probe_stack(&acting);

    let live = store.live_slots();
    let is_ahead = store.ahead_slots();
    let (never, no_slot) = (m.lit(0u32, 1), m.lit(0u32, s.warps));
    assume_legal(m, s, &i, (live, no_slot), arrival.of_slot.warp.mask, (starts.valid, never));
    let was_announced = (m.pipe_reset("told_ahead", announced.valid), m.pipe("told_ahead_slot", announced.slot));
    assume_announced(m, &i, was_announced, steer);
    let parked = store.parked();
    let may_come = may_come(&store, told);
    m.assume("outcome_of_a_warp_that_runs", !told.valid | may_come.select(told.slot, 1));
    let had_owed_nothing = m.pipe_reset("had_owed_nothing", told.valid & mixed.quiet.select(told.slot, 1));
    let owes_nothing = mixed.quiet.select(m.pipe("had_outcome", told.slot), 1);
    m.assume("nothing_issues_behind_an_outcome", !had_owed_nothing | owes_nothing);
    let (taken, rest) = (store.taken.q, store.rest.q);
    m.assert("sides_are_apart", !(taken & rest).any());
    m.cover("arrives_while_the_stack_acts", arrival.arrives & acting.acts);
    if s.barriers {
        m.cover("part_of_a_block_waits", acting.due.part_waits);
        m.cover("barrier", acting.due.barrier);
    }

    let resumes = parked.map_or(never, |(_, waits)| waits.any());
    wire!(put_off = formed.valid | (start.valid & !start_ready) | resumes);
    let (hold, _) = hold(m, outcome.valid, |_| put_off);
    let issued = store.warps.read(i.issue_slot);
    let refusal = refused(&store, &arrival, &acting);
    // The core stops then, until nobody lives and it is launched again. What ran elsewhere than its block may have gone
    // ahead.
    let had_refused = m.reg("had_refused", 1).reset(0u32);
    let anew = mixed.restart & !store.live.q.any();
    had_refused.next((had_refused.q & !anew) | refusal.valid);
    let formed_where_one_runs = forms & store.running.q.select(forming.into, 1);
    m.assert("a_warp_is_formed_where_none_runs", had_refused.q | !formed_where_one_runs);
    if s.predicts() {
        m.assert("who_is_released_runs", had_refused.q | !released.any() | acting.forms);
        let part_ahead = acting.due.slots & is_ahead & !store.whole_slots();
        let all_meet = acting.forms & acting.comes.mask.eq(acting.due.live);
        m.assert("who_is_ahead_where_all_meet_is_a_static_warp", had_refused.q | !(all_meet & part_ahead.any()));
        let some_ahead = (acting.due.columns & store.ahead_threads()).any();
        let others = (acting.comes.mask & !store.ahead_threads()).any();
        m.cover("static_warps_beside_those_ahead", all_meet & some_ahead & others);
    }
    let refused = Some(refusal);
    let mixed_out = MixedOut {
        homes: issued.homes,
        written_homes: s.homes_bits().and_then(|_| store.warps.read(mixed.written).homes),
        ahead: s.predicts().then_some(is_ahead),
        may_pass: store.may_pass(),
        jump: jump(&store, &arrival, &mixed),
    };
    let out = UnitOut {
        start_ready,
        wake_ready: never,
        live,
        waiting: no_slot,
        stop: store.stops.read(i.decode_slot),
        mask: issued.mask,
        steer,
        hold,
        more: MoreOut { refused, mixed: Some(mixed_out), ..MoreOut::NONE },
        events: Events { levels: acting.left.now.zext(s.levels_bits()).only_if(acting.acts), ..Events::none(m, s) },
    };
    let (of_slot, levels) = (arrival.of_slot, acting.levels);
    let (parked, may_pass) = (parked.map_or(no_slot, |(parked, _)| parked), store.may_pass().unwrap_or(no_slot));
    let inside = Inside {
        of_slot,
        ahead: is_ahead,
        parked,
        may_pass,
        arrived: taken | rest,
        forming: forming.threads,
        levels,
        store,
    };
    (out, inside)
}

/// One bit per slot: an outcome of it may come. Its warp runs with its block; or is ahead, or was just now, and passes.
fn may_come(store: &Store, outcome: &Outcome<Signal>) -> Signal {
    let m = store.m;
    let is_ahead = store.ahead_slots();
    let was_ahead = m.pipe_reset("was_ahead", is_ahead);
    let with_block = store.running.q & !is_ahead & !was_ahead;
    let Some(((parked, _), may_pass)) = store.parked().zip(store.may_pass()) else { return with_block };
    let moves = outcome.kind.eq(OutcomeKind::Branch) | outcome.kind.eq(OutcomeKind::Jump);
    let uniform = outcome.meets.expect("a stack is told where threads reconverge").uniform;
    let passes = moves & uniform & !outcome.call & !outcome.ret;
    let ahead = store.running.q & ((was_ahead & !is_ahead) | (is_ahead & may_pass));
    (with_block | ahead.only_if(passes)) & !parked
}

/// What stops the core: a warp is elsewhere than the first of its block, no level is left, or not all come to a
/// barrier.
fn refused(store: &Store, arrival: &Arrival, acting: &Acting) -> Refused<Signal> {
    let Store { m, s, .. } = store;
    let (&Arrival { elsewhere, .. }, Acting { due, parting, .. }) = (arrival, acting);
    let causes = [(elsewhere, m.code(FaultCause::NotUniform)), (due.part_waits, m.code(FaultCause::BarrierOfAPart))];
    let cause = pick(causes, m.code(FaultCause::StackOverflow));
    let outcome = arrival.arriving.outcome;
    let slot = elsewhere.mux(outcome.slot, due.at);
    let blamed = store.warps.read(slot);
    // The instruction before the place, unless that is a jump, which may be executed again.
    let of_place = due.place.pc - (!due.place.jump).zext(s.pc_bits());
    let pc = elsewhere.mux(outcome.rest.pc - arrival.branches.zext(s.pc_bits()), of_place);
    let because = Some(Culprit { slot, pc, mask: blamed.mask, homes: blamed.homes });
    Refused { valid: elsewhere | parting.full | due.part_waits, cause, because }
}

/// The target of the `jalr` in stage 8, if the first of its block has arrived at it.
fn jump(store: &Store, arrival: &Arrival, mixed: &MixedIn<Signal>) -> Jump<Signal> {
    let &Arrival { arriving: Arriving { outcome, block, is_first, .. }, jumps, parts, .. } = arrival;
    let resolving = store.block_of(mixed.resolving);
    let theirs = store.places.read(resolving);
    // Nothing else decides whether a jump that may diverge arrives; so stage 8 waits for nothing else.
    wire!(just_now = jumps & parts & is_first & block.eq(resolving) & outcome.rest.pc.eq(mixed.pc));
    let known = store.recorded.q.select(resolving, 1) & theirs.jump & theirs.pc.eq(mixed.pc);
    store.m.cover("jumps_with_the_first", known & outcome.valid & outcome.kind.eq(OutcomeKind::Jump));
    Jump { valid: just_now | known, pc: just_now.mux(outcome.taken.pc, theirs.target) }
}

pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;

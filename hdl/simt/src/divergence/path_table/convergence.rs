//! The convergence barriers of the path tables: threads that wait leave the path list for a table of N entries per
//! warp.
//!
//! `speculative-reconvergence.txt` Table 1 and §4.6; `docs/reference/convergence-barriers.md` has the instructions, a
//! trace and the corner cases. Of barrier b of a warp, W(b) are the threads that wait and E(b) those that are still
//! expected; those that participate are P(b) = E(b) ∪ W(b). With E instead of P a release writes no entry, and W = P is
//! "no thread of E lives".
//!
//! | state | of | what |
//! |---|---|---|
//! | `expected_threads` | a barrier of a warp | of its entry, E; written by instructions only |
//! | `places` | a barrier of a warp | the rest of it: W, and the pc and call depth at which W goes on; written where threads come to wait |
//! | `words` | a warp | a few bits a barrier, [`Word`]: whether E and W mean something, and what is to be looked at |
//! | `alive` | a warp | the threads that have not ended; a thread that ends stays in E, where this masks it |
//!
//! **Instructions** act in stage 8, in order, one a cycle. Their barrier is looked up in the cycle before: who is there
//! and how many, and whether at their place, goes to registers. An instruction of the same warp is neither in the cycle
//! before nor behind, so nothing else changes what was looked up but the warden, which tells. What a `wait` does to the
//! path list follows in stage 9, as its outcome: [`TableOut::goes`] says who goes on.
//!
//! **Releases.** A `wait` that completes its barrier releases it by itself: its threads and those that waited are at
//! one pc and depth. Every other release is found by the *warden*, which visits one barrier at a time, and takes a turn
//! of its own at the compact-and-sort unit, which it claims a cycle before as long as it is at a warp:
//!
//! | step | what it does |
//! |---|---|
//! | choose a warp | in turn, of those with something to look at, or where nobody can run |
//! | choose a barrier | first notes what ended threads or passed time give reason to look at; then in turn, of those to look at; else, where nobody can run, of those where threads wait; reads its entry |
//! | weigh | W = P, or patience is over, or nobody can run: they are to be released; else there is nothing to do |
//! | decide | in a cycle without an instruction here: released if the CCS was claimed for it, or nothing |
//!
//! It begins anew if an instruction of the warp comes in between, so it never decides about what has changed. Only
//! threads that end while it weighs may be missed, and those are noted for the next visit.
//!
//! **Patience.** Of a warp that is *parted* outcomes are counted. Every [`Shape::patience`] of them, who has waited
//! since the last time without an arrival is released.
//!
//! **Giving way.** The path list runs the least pc and is not fair. That is no reason for a program to hang that ends
//! without hints, unless a hint has kept a thread back that others now wait for. So from when threads wait until the
//! warp is one path again, it is parted, and its paths [give way](mod@crate::divergence::fairness) to each other.
//!
//! **`sync`** ([`warp`](crate::isa::warp)) is not a hint: an entry at which threads wait by it is *hard*, a bit of the word.
//! W of it goes on when E has nobody left who lives, and for no other reason; no hint changes it. The threads that it
//! names are P(b) from the first arrival on. Who comes to an entry that is hard for other threads, or at another place,
//! stays at its pc ([`TableOut::in_use`]) and tries again; so that those whom it waits for may run, its path gives way at
//! once. Threads that wait softly have to leave the entry to it: they are released, and none waits softly there before it
//! has come.
//!
//! What it does not do: it does not know why a program waits. A thread that waits for others which never come costs
//! time.

mod act;
mod checks;
mod patience;
mod state;
mod warden;

use crate::divergence::inspect::{self, State};
use crate::divergence::interface::{Hints, Releases};
use crate::shape::Shape;
use act::Act;
use heddle_hdl::prelude::*;
use state::Store;
pub use state::{BySync, Entry, Place, Word};
use warden::Visit;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct TableIn<T> {
    pub hints: Hints<T>,
    /// Call depth of the active path of the slot that is ahead.
    #[width(s.depth_bits)]
    pub depth: T,
    /// An outcome, and the threads that end with it.
    pub outcome: T,
    #[width(s.warp_bits())]
    pub outcome_slot: T,
    #[width(s.lanes)]
    pub ended: T,
    /// 1 bit: patience of the outcome's slot is over.
    pub tick: T,
    /// 1 bit: the CCS takes a release in this cycle; only if [`TableOut::visits`] was 1 in the cycle before, and not of
    /// a warp that is busy.
    pub free: T,
    /// A start that is taken.
    pub start: T,
    #[width(s.warp_bits())]
    pub start_slot: T,
    #[width(s.lanes)]
    pub start_mask: T,
    /// One bit per warp: no path of the list can run.
    #[width(s.warps)]
    pub stopped: T,
    /// One bit per warp: it is returning or seeking.
    #[width(s.warps)]
    pub busy: T,
}

/// Threads that go on from a barrier.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Release<T> {
    /// 1 bit: they enter the path list in this cycle.
    pub valid: T,
    pub slot: T,
    pub depth: T,
    pub pc: T,
    pub mask: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct TableOut<T> {
    /// Of the hint: the number of P(b), `count_width(lanes)`.
    pub count: T,
    /// Of the `wait` in the cycle before: the threads that go on behind it.
    pub goes: T,
    /// With warp primitives: the `sync` of the hint stays at its pc, for its barrier is in use; 1 bit.
    pub in_use: Option<T>,
    /// The same, of the `sync` in the cycle before: the threads that stay at its pc, as its outcome says.
    pub stays: Option<T>,
    /// There was one, of this slot.
    pub waited: T,
    pub waited_slot: T,
    /// One bit per warp: threads of it wait.
    pub holding: T,
    /// 1 bit: the warden is at `release.slot`, and may release threads in the next cycle. Else it does not.
    pub visits: T,
    pub release: Release<T>,
    /// 1 bit: a start must wait.
    pub writes: T,
    /// 1 bit: there is something to look at, and nothing is decided in this cycle.
    pub put_off: T,
    pub releases: Releases<T>,
}

/// The threads of a warp that wait at each barrier, in the table's state. They go on at `pc`.
pub fn held(s: &Shape, state: &State, warp: u32) -> Vec<inspect::Path> {
    let Word { holds, .. } = state.word(Word::shape(s), "words", warp.into());
    let path = |barrier: u32| {
        let address = u64::from(warp) << s.barrier_bits() | u64::from(barrier);
        let Place { waiting, depth, pc } = state.word(Place::shape(s), "places", address);
        let (place, pc) = (format!("wait {barrier}"), 4 * pc.low_u64() as u32);
        inspect::Path { place, depth: depth.low_u64(), pc, mask: waiting.to_bitvec(s.lanes), waits: true }
    };
    (0..s.convergence_barriers).filter(|&barrier| holds.bit(barrier)).map(path).collect()
}

/// The table of a shape with convergence barriers.
pub fn convergence_table(s: &Shape) -> TypedModule<TableIn<Width>, TableOut<Signal>> {
    module("convergence", TableIn::shape(s), |m, i| described(m, s, i).0)
}

/// What a proof must see of the table.
pub(super) struct Inside {
    pub store: Store,
    pub act: Act,
    pub visit: Visit,
}

pub(super) fn described(m: Builder, s: &Shape, i: TableIn<Signal>) -> (TableOut<Signal>, Inside) {
    m.doc("Convergence barriers: who participates, who waits, and who may go on.");
    let store = Store::new(m, s);
    let (act, reads) = store.act(&i);
    let visit = store.visit(&i, &act, reads);
    let none = m.lit(0u32, s.convergence_barriers);
    let by_sync = Word::shape(s).by_sync.map(|_| BySync { hard: none, wanted: none });
    let fresh = Word { expects: none, holds: none, old: none, tired: none, look: none, by_sync };
    let word = act.changes.mux(act.word, i.start.mux(fresh, visit.word));
    let slot = pick([(act.changes, i.hints.hint.slot), (i.start, i.start_slot)], store.at_slot.q);
    wire!(writes = act.changes | i.start | visit.acts);
    store.write_word(writes, slot, word);
    store.end_threads(&i, &visit);
    store.tick(&i, &visit);
    m.assume("no_start_while_it_writes", !(i.start & (act.changes | visit.acts)));
    m.assume("no_start_with_an_outcome", !(i.start & i.outcome));

    let Visit { entry, reason, releases, .. } = visit;
    let out = TableOut {
        count: act.count,
        goes: act.goes,
        in_use: act.in_use,
        stays: act.stays,
        waited: act.waited,
        waited_slot: act.waited_slot,
        holding: store.holding.q,
        visits: store.at.q,
        release: Release {
            valid: releases,
            slot: store.at_slot.q,
            depth: entry.place.depth,
            pc: entry.place.pc,
            mask: entry.place.waiting,
        },
        // Whether an instruction that is present has an effect is known late.
        writes: i.hints.present | visit.acts,
        put_off: visit.put_off,
        releases: Releases {
            complete: act.completed | (releases & reason.complete),
            threshold: act.reached,
            stuck: releases & !reason.complete & !reason.tired,
            patience: releases & !reason.complete & reason.tired,
            fell_through: act.fell_through,
        },
    };
    (out, Inside { store, act, visit })
}

#[cfg(test)]
mod tests;

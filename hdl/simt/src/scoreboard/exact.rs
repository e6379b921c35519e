//! The scoreboard without false dependencies, for two paths of a warp at once: which register of which thread awaits a
//! write.
//!
//! What `dual-path-execution.txt` calls optimistic (§4, §6.4): the yardstick of [`super::dual`], which knows sides and
//! not threads. One pending bit a (thread, register); a thread takes its bits along, whatever the stack does. A path
//! waits exactly if a register that the head of its buffer reads or writes is pending for one of its threads.
//!
//! | event | pending |
//! |---|---|
//! | issue | set for the threads that issue |
//! | push, pop | |
//! | write | cleared for the threads that are written |
//!
//! A path may issue while writes of the same number are under way to other threads, on its own side, too: so loads of
//! one (slot, register) may be under way twice, and what is written late is released write by write.
//!
//! It has `lanes` times the bits of a scoreboard for one path a warp: for studies. An access must not be issued again
//! for a part of its threads, so it needs [`Replay::Serialise`](crate::shape::Replay::Serialise).

use super::{Release, ScoreboardIn, ScoreboardOut};
use crate::divergence::interface::{by_side, by_slot, warp_of};
use crate::shape::{Scoreboard, Shape};
use heddle_hdl::{all, each, elements, prelude::*};

/// Whose registers it is about.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ThreadsIn<T> {
    /// The threads that issue, and those whose result has a fixed time, of [`ScoreboardIn::issue`] and
    /// [`ScoreboardIn::early`].
    #[width(s.lanes)]
    pub issue: T,
    #[width(s.lanes)]
    pub early: T,
    /// Written late: the last of its register, or not.
    pub late: Written<T>,
    /// One bit per lane and slot: the threads of the slot's path. They mean nothing where it has none.
    #[width(s.lanes * s.slots())]
    pub paths: T,
}

impl ThreadsIn<Width> {
    /// In a core that has the scoreboard.
    pub fn of(s: &Shape) -> Option<ThreadsIn<Width>> {
        (s.scoreboard == Scoreboard::Exact).then(|| ThreadsIn::shape(s))
    }
}

/// A late write into the register banks.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Written<T> {
    /// One bit per lane; none if nothing is written.
    #[width(s.lanes)]
    pub lanes: T,
    #[width(s.warp_bits())]
    pub warp: T,
    #[width(5)]
    pub rd: T,
}

/// A register of some threads of one warp: one bit per lane, one per register.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Mark<T> {
    threads: T,
    registers: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowIn<T> {
    /// Registers that the heads of both sides read or write, and the sides' threads.
    needs: [T; 2],
    paths: [T; 2],
    set: Mark<T>,
    early: Mark<T>,
    late: Mark<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowOut<T> {
    clear: [T; 2],
    quiet: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct ThreadOut<T> {
    /// For each side: its head would wait for this thread.
    waits: [T; 2],
    quiet: T,
}

fn thread_in() -> RowIn<Width> {
    let mark = Mark { threads: 1, registers: 32 };
    RowIn { needs: [32; 2], paths: [1; 2], set: mark, early: mark, late: mark }
}

/// One thread's pending bits.
fn thread() -> TypedModule<RowIn<Width>, ThreadOut<Signal>> {
    module("exact_scoreboard_thread", thread_in(), |m, i| {
        m.doc("The pending bits of one thread's registers.");
        let pending = m.reg("pending", 32).reset(0u32);
        let [set, early, late] = [i.set, i.early, i.late].map(|mark| mark.registers.only_if(mark.threads));
        wire!(released = early | late);
        wire!(left = pending.q & !released);
        wire!(following = left | set);
        pending.next(following);
        m.assert("early_and_late_apart", !(early & late).any());
        m.assert("released_was_pending", !(released & !pending.q).any());
        m.assert("one_write_at_a_time", !(set & left).any());
        let waits = [0, 1].map(|side| (following & i.needs[side]).any() & i.paths[side]);
        ThreadOut { waits, quiet: !pending.q.any() }
    })
}

/// One warp's threads.
fn row(s: &Shape) -> TypedModule<RowIn<Width>, RowOut<Signal>> {
    let mark = Mark { threads: s.lanes, registers: 32 };
    let inputs = RowIn { needs: [32; 2], paths: [s.lanes; 2], set: mark, early: mark, late: mark };
    module("exact_scoreboard_row", inputs, |m, i| {
        m.doc("The pending bits of one warp's threads.");
        let of = |mark: Mark<Signal>| Mark { threads: each(mark.threads), registers: all(mark.registers) };
        let inputs = RowIn {
            needs: i.needs.map(all),
            paths: i.paths.map(each),
            set: of(i.set),
            early: of(i.early),
            late: of(i.late),
        };
        let threads = m.replicate("thread", s.lanes, &thread(), inputs);
        let waits = threads.waits.map(|waits| waits.any());
        m.cover("one_side_waits", waits[0] ^ waits[1]);
        m.cover("both_sides_wait", waits[0] & waits[1]);
        RowOut { clear: waits.map(|waits| !waits), quiet: threads.quiet.all() }
    })
}

/// The scoreboard of a core whose slots are the sides of warps.
pub(super) fn over_slots(
    s: &Shape,
    m: Builder,
    i: ScoreboardIn<Signal>,
    threads: ThreadsIn<Signal>,
) -> ScoreboardOut<Signal> {
    // One bit per warp of whichever side.
    let warps = |release: Release<Signal>| {
        let [left, right] = by_side(release.slots, 1);
        left | right
    };
    let on = |warps: Signal, of: Signal, registers: Signal| {
        let of_warp = |here: Signal| of.only_if(here);
        let threads = cat(&elements(warps, 1).into_iter().map(of_warp).collect::<Vec<_>>());
        Mark { threads: each(threads), registers: all(registers) }
    };
    let issue = i.issue;
    let issuing = warp_of(s, issue.slot).decode(s.warps).only_if(issue.valid);
    let late = threads.late;
    let inputs = RowIn {
        needs: by_side(i.heads, 32).map(each),
        paths: by_side(threads.paths, s.lanes).map(each),
        set: on(issuing, threads.issue, issue.rd.decode(32)),
        early: on(warps(i.early), threads.early, i.early.registers),
        late: on(late.warp.decode(s.warps), late.lanes, late.rd.decode(32)),
    };
    let RowOut { clear: [left, right], quiet } = m.replicate("row", s.warps, &row(s), inputs);
    ScoreboardOut { clear: by_slot(left, right), own_clear: None, quiet }
}

#[cfg(test)]
mod tests;

//! The scoreboard: which registers await a write.
//!
//! One pending bit a (warp, register). What the first instruction of a slot needs is told decoded, one bit per
//! register, so that a lookup is an AND and an OR. Where several writes of one register are under way (a replayed
//! load), the load queue counts them and releases the last. It stands beside the divergence unit behind an interface of
//! its own, which carries masks, because mechanisms that run two paths of a warp at once need
//! another one: [`dual`], and beside it, for studies, [`exact`].

use crate::divergence::interface::PathsChange;
use crate::shape::Shape;
use exact::ThreadsIn;
use heddle_hdl::{all, each, prelude::*};

/// A register of a slot that gets or has got its value.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Pending<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(5)]
    pub rd: T,
}

impl Pending<Signal> {
    /// That it has got it.
    pub fn released(self, s: &Shape) -> Release<Signal> {
        Release { slots: self.slot.decode(s.slots()).only_if(self.valid), registers: self.rd.decode(32) }
    }
}

/// A register of a slot that has got its value. Decoded, as it comes out of registers: what is released decides late in
/// the cycle who may issue.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Release<T> {
    /// One bit per slot, one of them at most; none if nothing is released.
    #[width(s.slots())]
    pub slots: T,
    /// One bit per register, one of them.
    #[width(32)]
    pub registers: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ScoreboardIn<T> {
    /// For each slot, 32 bits: the registers that the head of its buffer reads or writes.
    #[width(32 * s.slots())]
    pub heads: T,
    /// An instruction that writes a register issues.
    pub issue: Pending<T>,
    /// A write whose time is fixed: the value is there for whoever issues from the next cycle on.
    pub early: Release<T>,
    /// The last late write (load, divide) of the register is done.
    pub late: Release<T>,
    /// The paths of a warp change, where a warp has two slots.
    #[when(s.sides() > 1)]
    pub changed: Option<PathsChange<T>>,
    /// Where threads are told from each other.
    #[width(ThreadsIn::of(s))]
    pub threads: Option<ThreadsIn<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ScoreboardOut<T> {
    /// One bit per slot: no register of its head will be pending in the next cycle.
    pub clear: T,
    /// One bit per slot, where a warp has two, under [`Replay::Split`](crate::shape::Replay::Split): none will be of
    /// the slot's own writes.
    pub own_clear: Option<T>,
    /// One bit per warp: none of its registers is pending.
    pub quiet: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowIn<T> {
    /// Registers that the head reads or writes.
    needs: T,
    set: Mark<T>,
    early: Mark<T>,
    late: Mark<T>,
}

/// A register of a slot: whether it is this slot's, and one bit per register.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Mark<T> {
    here: T,
    registers: T,
}

/// A row as a proof sees it.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowOut<T> {
    clear: T,
    quiet: T,
    /// One bit per register.
    pending: T,
}

fn row_inputs() -> RowIn<Width> {
    let mark = Mark { here: 1, registers: 32 };
    RowIn { needs: 32, set: mark, early: mark, late: mark }
}

/// One slot's pending bits.
fn row() -> TypedModule<RowIn<Width>, ScoreboardOut<Signal>> {
    module("scoreboard_row", row_inputs(), |m, i| {
        let RowOut { clear, quiet, .. } = row_described(m, i);
        ScoreboardOut { clear, own_clear: None, quiet }
    })
}

/// The same for proofs, which see the bits.
fn row_shown() -> TypedModule<RowIn<Width>, RowOut<Signal>> {
    module("scoreboard_row", row_inputs(), row_described)
}

fn row_described(m: Builder, i: RowIn<Signal>) -> RowOut<Signal> {
    m.doc("The pending bits of one slot's registers.");
    let pending = m.reg("pending", 32).reset(0u32);
    wire!(set = i.set.registers.only_if(i.set.here));
    wire!(early = i.early.registers.only_if(i.early.here));
    wire!(late = i.late.registers.only_if(i.late.here));
    wire!(released = early | late);
    // A bit is two tables of four inputs; mapping would find three.
    m.keep(released);
    wire!(following = (pending.q & !released) | set);
    pending.next(following);
    m.assert("early_and_late_apart", !(early & late).any());
    m.assert("released_was_pending", !(released & !pending.q).any());
    wire!(awaited = following & i.needs);
    wire!(waits = awaited.any());
    m.cover("waits", waits);
    m.cover("waits_for_two_registers", !awaited.eq(awaited.lowest_one()));
    RowOut { clear: !waits, quiet: !pending.q.any(), pending: pending.q }
}

pub fn scoreboard(s: &Shape) -> TypedModule<ScoreboardIn<Width>, ScoreboardOut<Signal>> {
    module("scoreboard", ScoreboardIn::shape(s), |m, i| {
        m.doc("Which registers of which slot await a write.");
        match (i.threads, i.changed) {
            (Some(threads), _) => exact::over_slots(s, m, i, threads),
            (None, Some(changed)) => dual::over_slots(s, m, i, changed),
            (None, None) => described(m, s, i, &row()),
        }
    })
}

/// The scoreboard over rows of either kind.
fn described<O: Signals>(m: Builder, s: &Shape, i: ScoreboardIn<Signal>, row: &TypedModule<RowIn<Width>, O>) -> O {
    let on = |r: Release<Signal>| Mark { here: each(r.slots), registers: all(r.registers) };
    let (set, early, late) = (on(i.issue.released(s)), on(i.early), on(i.late));
    m.replicate("row", s.warps, row, RowIn { needs: each(i.heads), set, early, late })
}

pub mod dual;
pub mod exact;
pub mod proof;

/// What models of the scoreboards know of an instruction.
#[cfg(test)]
pub(crate) mod testing {
    /// The registers that it reads and writes.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct Needs {
        pub rs1: Option<u32>,
        pub rs2: Option<u32>,
        pub rd: Option<u32>,
    }

    impl Needs {
        /// Of few registers, so that they meet.
        pub fn random(r: &mut fastrand::Rng) -> Needs {
            let mut register = || r.bool().then(|| r.u32(..6) * 6);
            Needs { rs1: register(), rs2: register(), rd: register() }
        }

        pub fn names(&self, register: u32) -> bool {
            [self.rs1, self.rs2, self.rd].contains(&Some(register))
        }

        /// One bit per register.
        pub fn registers(&self) -> u32 {
            (0..32).filter(|&register| self.names(register)).fold(0, |bits, register| bits | 1 << register)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Needs;
    use super::*;
    use crate::pipeline::testing::packed;
    use heddle_sim::Sim;
    use std::collections::HashSet;

    /// Against a set of pending (slot, register): random writers, each released once, early or late.
    #[test]
    fn pending_is_a_set_of_registers() {
        for (warps, seed) in [(1, 1), (2, 2), (8, 3), (64, 4)] {
            println!("{warps} warps, seed {seed}");
            let s = Shape::new(2, warps);
            let mut r = fastrand::Rng::with_seed(seed);
            let mut t = Sim::new(&scoreboard(&s).check().unwrap());
            t.reset();
            let mut pending: HashSet<(u32, u32)> = HashSet::new();
            for _ in 0..1500 {
                let heads: Vec<Needs> = (0..warps).map(|_| Needs::random(&mut r)).collect();
                let clear = |pending: &HashSet<(u32, u32)>, w: u32, n: &Needs| {
                    !pending.iter().any(|&(warp, register)| warp == w && n.names(register))
                };
                // What issues: a head that is clear and writes; or a replay, whose register may be pending.
                let mut issue = None;
                let w = r.u32(..warps);
                let head = heads[w as usize];
                if let Some(rd) = head.rd.filter(|_| clear(&pending, w, &head)) {
                    issue = Some((w, rd));
                } else if !pending.is_empty() && r.u8(..4) == 0 {
                    issue = pending.iter().min().copied();
                }
                let mut waiting: Vec<(u32, u32)> = pending.iter().copied().collect();
                waiting.sort_unstable();
                r.shuffle(&mut waiting);
                let mut release = |odds: u8| if r.u8(..4) < odds { waiting.pop() } else { None };
                let (early, late) = (release(2), release(1));

                let port = |p: Option<(u32, u32)>| {
                    let (slot, rd) = p.unwrap_or((warps - 1, 5));
                    Pending { valid: p.is_some().into(), slot: slot.into(), rd: rd.into() }
                };
                let quiet: Vec<bool> = (0..warps).map(|w| pending.iter().all(|p| p.0 != w)).collect();
                for released in [early, late].into_iter().flatten() {
                    pending.remove(&released);
                }
                pending.extend(issue);
                let clear: Vec<bool> = (0..).zip(&heads).map(|(w, head)| clear(&pending, w, head)).collect();
                let heads = packed(&heads.iter().map(Needs::registers).collect::<Vec<_>>());
                let released = |p: Option<(u32, u32)>| Release {
                    slots: p.map_or(0, |(slot, _)| 1u64 << slot).into(),
                    registers: (1u64 << p.map_or(5, |(_, rd)| rd)).into(),
                };
                t.poke(ScoreboardIn {
                    heads,
                    issue: port(issue),
                    early: released(early),
                    late: released(late),
                    changed: None,
                    threads: None,
                });
                let out = t.peek();
                for w in 0..warps {
                    assert_eq!(out.clear.bit(w), clear[w as usize], "warp {w}, pending {pending:?}");
                    assert_eq!(out.quiet.bit(w), quiet[w as usize], "warp {w}, pending {pending:?}");
                }
                t.step();
            }
        }
    }
}

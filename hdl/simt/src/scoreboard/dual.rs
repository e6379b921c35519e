//! The scoreboard for two paths of a warp at once: left and right sides, with shadow bits.
//!
//! Two bits a (warp, side, register): *pending* (P), a write of the register issued on the side is under way; *shadow*
//! (S), it was already when the warp's paths last changed. A path may issue if no register it reads or writes has P on
//! its own side or S on the other: the latest writes of the other path are not its business, but of those before a
//! divergence or a reconvergence the threads may be its own. (`dual-path-execution.txt` §3.2;
//! `docs/reference/dual-path.md` says why this is safe and waits for nothing for ever)
//!
//! | event | P | S |
//! |---|---|---|
//! | issue | set on the side that issues | |
//! | push, pop | | becomes P, on both sides |
//! | write back | cleared on the side the instruction carries | likewise |
//!
//! An instruction carries the side on which it issued, whatever happens to the stack before it writes. All events of a
//! cycle see the sides as they are before its edge; what issues in the cycle of a push or a pop, and is not released in
//! it, is part of the copy.
//!
//! As in [`super::scoreboard`], several writes of one (warp, side, register) under way are counted elsewhere, and the
//! last releases the register. It knows no masks, no stack, and not which sides have a path: the bits of a side without
//! one mean nothing. It is for the dual-path divergence unit.

use super::{Mark, Pending, Release, ScoreboardIn, ScoreboardOut};
use crate::divergence::interface::{PathsChange, by_side, by_slot, side_of, warp_of};
use crate::shape::{Replay, Shape};
use heddle_hdl::{all, each, prelude::*};

/// The sides of a warp, as `side` says them and as an index into what there is for each side.
pub const LEFT: u32 = 0;
pub const RIGHT: u32 = 1;

/// A register of a warp that gets or has got its value.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct SidePending<T> {
    /// 1 bit.
    pub valid: T,
    #[width(s.warp_bits())]
    pub warp: T,
    /// 1 bit: where the instruction issued, [`LEFT`] or [`RIGHT`].
    pub side: T,
    #[width(5)]
    pub rd: T,
}

impl SidePending<Signal> {
    /// That it has got it.
    fn released(self, s: &Shape) -> Release<Signal> {
        let [left, right] = [!self.side, self.side].map(|here| self.warp.decode(s.warps).only_if(self.valid & here));
        Release { slots: by_slot(left, right), registers: self.rd.decode(32) }
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct DualScoreboardIn<T> {
    /// For each side, 32 bits per warp: the registers that the head of its buffer reads or writes.
    #[width(32 * s.warps)]
    pub heads: [T; 2],
    /// An instruction that writes a register issues.
    pub issue: SidePending<T>,
    /// A write whose time is fixed: the value is there for whoever issues from the next cycle on.
    #[width(Release { slots: 2 * s.warps, registers: 32 })]
    pub early: Release<T>,
    /// The last late write (load, divide) of the register is done.
    #[width(Release { slots: 2 * s.warps, registers: 32 })]
    pub late: Release<T>,
    /// A path diverges. Whatever else gives a thread another side counts as a push too, except the start of a warp,
    /// which must be quiet then.
    pub push: PathsChange<T>,
    /// Both paths have reconverged.
    pub pop: PathsChange<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DualScoreboardOut<T> {
    /// For each side, one bit per warp: the side's head will wait for no register in the next cycle.
    pub clear: [T; 2],
    /// The same, of the side's own writes; under [`Replay::Split`], where an access may be issued again on the other
    /// side.
    pub own_clear: Option<[T; 2]>,
    /// One bit per warp: none of its registers is pending on any side.
    pub quiet: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowIn<T> {
    /// Registers that the heads read or write.
    needs: [T; 2],
    set: [Mark<T>; 2],
    early: [Mark<T>; 2],
    late: [Mark<T>; 2],
    /// The stack changes.
    copy: T,
}

/// A row as proofs and tests see it.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowOut<T> {
    clear: [T; 2],
    own_clear: Option<[T; 2]>,
    quiet: T,
    /// For each side, one bit per register.
    pending: [T; 2],
    shadow: [T; 2],
}

fn row_inputs() -> RowIn<Width> {
    let marks = [Mark { here: 1, registers: 32 }; 2];
    RowIn { needs: [32; 2], set: marks, early: marks, late: marks, copy: 1 }
}

/// One warp's pending and shadow bits.
fn row(s: &Shape) -> TypedModule<RowIn<Width>, DualScoreboardOut<Signal>> {
    module("dual_scoreboard_row", row_inputs(), |m, i| {
        let RowOut { clear, own_clear, quiet, .. } = row_described(s, m, i);
        DualScoreboardOut { clear, own_clear, quiet }
    })
}

/// The same for proofs and tests, which see the bits.
fn row_shown(s: &Shape) -> TypedModule<RowIn<Width>, RowOut<Signal>> {
    module("dual_scoreboard_row", row_inputs(), |m, i| row_described(s, m, i))
}

fn row_described(s: &Shape, m: Builder, i: RowIn<Signal>) -> RowOut<Signal> {
    m.doc("The pending and shadow bits of one warp's registers.");
    let bits = [("left", 0), ("right", 1)].map(|(name, k)| {
        let pending = m.reg(&format!("pending_{name}"), 32).reset(0u32);
        let shadow = m.reg(&format!("shadow_{name}"), 32).reset(0u32);
        let [set, early, late] = [i.set, i.early, i.late].map(|marks| marks[k].registers.only_if(marks[k].here));
        let released = (early | late).named(&format!("{name}_released"));
        m.keep(released);
        let after = (pending.q & !released) | set;
        let shadow_after = i.copy.mux(after, shadow.q & !released);
        pending.next(after);
        shadow.next(shadow_after);
        m.assert(&format!("{name}_early_and_late_apart"), !(early & late).any());
        m.assert(&format!("{name}_released_was_pending"), !(released & !pending.q).any());
        m.assert(&format!("{name}_shadow_is_pending"), !(shadow.q & !pending.q).any());
        m.cover(&format!("{name}_copies_again"), i.copy & shadow.q.any());
        m.cover(&format!("{name}_copies_what_issues"), i.copy & set.any());
        m.cover(&format!("{name}_copies_less_what_is_released"), i.copy & released.any());
        ([pending.q, after], [shadow.q, shadow_after])
    });
    let [(left, left_shadow), (right, right_shadow)] = bits;
    let sides = [("left", 0, left[1], right_shadow[1]), ("right", 1, right[1], left_shadow[1])];
    let clear = sides.map(|(name, k, own, other)| {
        let waits = |bits: Signal| (bits & i.needs[k]).any();
        m.cover(&format!("{name}_waits_for_a_shadow_only"), waits(other) & !waits(own));
        m.cover(&format!("{name}_waits_for_its_own_only"), waits(own) & !waits(other));
        (!waits(own | other), !waits(own))
    });
    let own_clear = (s.replay == Replay::Split).then(|| clear.map(|(_, own)| own));
    let clear = clear.map(|(all, _)| all);
    RowOut {
        clear,
        own_clear,
        quiet: !(left[0] | right[0]).any(),
        pending: [left[0], right[0]],
        shadow: [left_shadow[0], right_shadow[0]],
    }
}

/// The scoreboard of a core whose slots are the sides of warps.
pub(super) fn over_slots(
    s: &Shape,
    m: Builder,
    i: ScoreboardIn<Signal>,
    changed: PathsChange<Signal>,
) -> ScoreboardOut<Signal> {
    let of = |p: Pending<Signal>| {
        let (warp, side) = (warp_of(s, p.slot), side_of(s, p.slot));
        SidePending { valid: p.valid, warp, side, rd: p.rd }
    };
    let inputs = DualScoreboardIn {
        heads: by_side(i.heads, 32),
        issue: of(i.issue),
        early: i.early,
        late: i.late,
        push: changed,
        pop: m.zero(PathsChange::shape(s)),
    };
    let DualScoreboardOut { clear, own_clear, quiet } = m.instance("sides", &dual_scoreboard(s), inputs);
    let slots = |[left, right]: [Signal; 2]| by_slot(left, right);
    ScoreboardOut { clear: slots(clear), own_clear: own_clear.map(slots), quiet }
}

pub fn dual_scoreboard(s: &Shape) -> TypedModule<DualScoreboardIn<Width>, DualScoreboardOut<Signal>> {
    module("dual_scoreboard", DualScoreboardIn::shape(s), |m, i| {
        m.doc("Which registers of which path of which warp await a write.");
        described(m, s, i, &row(s))
    })
}

/// The scoreboard over rows of either kind.
fn described<O: Signals>(m: Builder, s: &Shape, i: DualScoreboardIn<Signal>, row: &TypedModule<RowIn<Width>, O>) -> O {
    let on =
        |r: Release<Signal>| by_side(r.slots, 1).map(|side| Mark { here: each(side), registers: all(r.registers) });
    let needs = i.heads.map(each);
    let [push, pop] = [i.push, i.pop].map(|change| change.warp.decode(s.warps).only_if(change.valid));
    let (set, early, late) = (on(i.issue.released(s)), on(i.early), on(i.late));
    m.replicate("row", s.warps, row, RowIn { needs, set, early, late, copy: each(push | pop) })
}

pub mod proof;

#[cfg(test)]
mod tests;

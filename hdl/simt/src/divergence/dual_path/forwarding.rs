//! Path forwarding: while one side of the top is free, the sibling of the uppermost level runs there, beside the path
//! that is left.
//!
//! `dual-path-execution.txt` §7.1, which leaves the logic open. What comes up so is *forwarded*: it goes to the rpc
//! that it has below, not to the top's.
//!
//! * The sibling of a level without a group has the top's rpc. It comes up for good, and the level goes.
//! * When the other side is no more, the level is popped around the forwarded path, which runs on where it is.
//! * If one of the two parts, the other is the sibling of a new level, which may be forwarded in turn. The level has a
//!   group then if it is the forwarded one that parts, since the sibling reconverges with others elsewhere.
//!
//! Each rpc is in one place, so that one that is [found](Rpc::found) is so for all who go there. The top has its own
//! and that of the uppermost level's sibling, wherever this is; a level has the one that was in the top beside its
//! sibling's, or, if that one was its sibling's as well, the other.
//!
//! It has the last turn of all: a cycle is chosen for it, and the level read, if nothing else wants one; and it gives
//! way to an outcome of its warp that is announced in that cycle.
//!
//! What it does not do: bring up paths from below the uppermost level.

use super::super::levels::{Group, Rpc, Sibling};
use super::state::{Level, Top};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// The sibling of the uppermost level.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Forwarded<T> {
    /// 1 bit: it has come up, or there is none.
    pub taken: T,
    /// 1 bit: it has come up and is no more where others meet it; then its side.
    pub valid: T,
    pub right: T,
    /// Where it reconverges with others. It means nothing if the level has no group.
    pub rpc: Rpc<T>,
}

/// What was forwarded when the path of a level parted.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Before<T> {
    /// 1 bit: the sibling of the level below had come up, or there was none.
    pub taken: T,
    /// 1 bit each, not both: the level's group, or its sibling, was forwarded.
    pub group: T,
    pub sibling: T,
}

/// Whether paths can be forwarded: beside a path that diverges there is a third thread.
pub fn forwards(s: &Shape) -> bool {
    s.path_forwarding && s.lanes > 2
}

impl Forwarded<Width> {
    pub fn shape(s: &Shape) -> Option<Forwarded<Width>> {
        forwards(s).then(|| Forwarded { taken: 1, valid: 1, right: 1, rpc: Rpc::shape(s) })
    }
}

impl Before<Width> {
    pub fn shape(s: &Shape) -> Option<Before<Width>> {
        forwards(s).then_some(Before { taken: 1, group: 1, sibling: 1 })
    }
}

impl Forwarded<Signal> {
    /// It runs on this side.
    pub fn is(self, right: Signal) -> Signal {
        self.valid & self.right.eq(right)
    }

    /// If the path of a side parts.
    fn before(self, side: Signal) -> Before<Signal> {
        Before { taken: self.taken, group: self.is(side), sibling: self.is(!side) }
    }
}

impl Top<Signal> {
    /// Where the path of a side reconverges with others.
    pub(super) fn rpc_of(self, right: Signal) -> Rpc<Signal> {
        self.forwarded.map_or(self.rpc, |forwarded| forwarded.is(right).mux(forwarded.rpc, self.rpc))
    }

    /// 1 bit: a path goes to the top's rpc.
    pub(super) fn runs(self) -> Signal {
        run(&self, self.left.valid, self.right.valid)
    }

    /// 1 bit: a side is free, and the uppermost level has a sibling for it.
    pub(super) fn has_room(self) -> Signal {
        let taken = self.forwarded.map_or(self.left.valid.literal(1u32), |forwarded| forwarded.taken);
        (self.left.valid ^ self.right.valid) & !taken
    }
}

/// 1 bit: a path goes to the rpc of the top whose sides these are, in any order.
pub(super) fn run(top: &Top<Signal>, one: Signal, other: Signal) -> Signal {
    let any = one | other;
    top.forwarded.map_or(any, |forwarded| forwarded.valid.mux(one & other, any))
}

/// The group and the rest of a level that the path of a side leaves, `same_group` if it meets where that path does.
pub(super) fn left_by(
    top: &Top<Signal>,
    side: Signal,
    mask: Signal,
    same_group: Signal,
) -> (Group<Signal>, Option<Before<Signal>>) {
    let Some(forwarded) = top.forwarded else { return (Group { valid: !same_group, mask, rpc: top.rpc }, None) };
    let before = forwarded.before(side);
    let rpc = before.sibling.mux(top.rpc, forwarded.rpc);
    (Group { valid: !same_group | before.group, mask, rpc }, Some(before))
}

/// What the path of a side does to the top: `moved`, whose rpc is where that path reconverges with others now. `alone`:
/// it has no sibling.
pub(super) fn moved(
    top: &Top<Signal>,
    side: Signal,
    (pushes, alone): (Signal, Signal),
    moved: Top<Signal>,
) -> Top<Signal> {
    let Some(forwarded) = top.forwarded else { return moved };
    let (own, _) = moved.of(side);
    let below = Forwarded { taken: alone, valid: alone.literal(0u32), rpc: top.rpc_of(!side), ..forwarded };
    let went = Forwarded { valid: own.valid, rpc: moved.rpc, ..forwarded };
    let of_forwarded = !pushes & forwarded.is(side);
    let forwarded = pick([(pushes, below), (of_forwarded, went)], forwarded);
    Top { rpc: of_forwarded.mux(top.rpc, moved.rpc), forwarded: Some(forwarded), ..moved }
}

impl Level<Signal> {
    /// Where its group reconverges with others; it is the uppermost level below the top.
    pub(super) fn rpc(self, top: &Top<Signal>) -> Rpc<Signal> {
        of_group(top, &self, |rpc| rpc)
    }
}

/// What is asked about the place where the group of the uppermost level reconverges with others. Both places are asked
/// about, since which of them it is comes with the level.
pub(super) fn of_group<B: Signals>(top: &Top<Signal>, head: &Level<Signal>, ask: impl Fn(Rpc<Signal>) -> B) -> B {
    let its = ask(head.group.rpc);
    let Some((before, forwarded)) = head.before.zip(top.forwarded) else { return its };
    (before.group | before.sibling).mux(its, ask(forwarded.rpc))
}

/// 1 bit: the sibling of the uppermost level is the right side of the top when that is popped or, if it `takes`, when
/// the sibling comes up.
pub(super) fn side_of_sibling(takes: Option<Signal>, top: &Top<Signal>, head: &Level<Signal>) -> Signal {
    let Some((takes, forwarded)) = takes.zip(top.forwarded) else { return !head.side };
    takes.mux(top.left.valid, forwarded.valid.mux(forwarded.right, !head.side))
}

/// The top without the level `head`, whose group is `group` now and reconverges with others at `rpc`; or if it `takes`,
/// with the head's sibling beside what is left. The sibling is on the side `right`.
pub(super) fn popped(
    takes: Option<Signal>,
    top: &Top<Signal>,
    head: &Level<Signal>,
    right: Signal,
    group: Sibling<Signal>,
    rpc: Rpc<Signal>,
) -> Top<Signal> {
    let Some(((takes, forwarded), before)) = takes.zip(top.forwarded).zip(head.before) else {
        return Top::with(!right, group, head.sibling, head.group.valid.mux(rpc, top.rpc));
    };
    let (up, beside) = top.of(right);
    let sibling = forwarded.valid.mux(up, Sibling { valid: !forwarded.taken, ..head.sibling });
    let own = takes.mux(beside, group);
    let rpc_below = pick([(takes | !head.group.valid, top.rpc), (before.group, forwarded.rpc)], rpc);
    let one = takes.literal(1u32);
    let up = Forwarded { taken: one, valid: one, right, ..forwarded };
    let as_before = Forwarded {
        taken: before.taken,
        valid: (before.sibling & sibling.valid) | (before.group & own.valid),
        right: right ^ before.group,
        rpc: pick([(before.sibling, forwarded.rpc), (before.group, rpc)], head.group.rpc),
    };
    let forwarded = Some((takes & head.group.valid).mux(up, as_before));
    Top { forwarded, ..Top::with(!right, own, sibling, rpc_below) }
}

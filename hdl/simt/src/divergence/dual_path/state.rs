//! What the unit keeps: the words of a warp, and the registers and memories that hold them.

use super::super::levels::{Group, Rpc, Sibling, levels};
use super::forwarding::{Before, Forwarded, forwards};
use crate::shape::{Replay, Shape};
use heddle_hdl::prelude::*;

/// What runs: left and right, and where they reconverge.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Top<T> {
    pub left: Sibling<T>,
    pub right: Sibling<T>,
    pub rpc: Rpc<T>,
    /// With [`Shape::path_forwarding`].
    #[width(Forwarded::shape(s))]
    pub forwarded: Option<Forwarded<T>>,
}

/// What a path that diverged has left. At least one of `sibling` and `group` is valid.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Level<T> {
    pub sibling: Sibling<T>,
    pub group: Group<T>,
    /// 1 bit: the group is the right path.
    pub side: T,
    /// With [`Shape::path_forwarding`].
    #[width(Before::shape(s))]
    pub before: Option<Before<T>>,
}

/// Whose turn it is, chosen in the cycle before. With no bit set it is that of a start, or of nobody. A warp is its
/// left slot, unless one of its sides is meant.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Claim<T> {
    pub slot: T,
    /// 1 bit: an outcome was announced. If it does not come, the turn is lost.
    pub outcome: T,
    /// 1 bit: a wake was taken.
    pub wake: T,
    /// 1 bit: the warp is popping, and its uppermost level was read.
    pub pop: T,
    /// 1 bit: the slot is owed its steering.
    pub send: T,
    /// 1 bit: the same, if it is owed that since the last turn.
    pub follows: T,
    /// With path forwarding, 1 bit: a side of the warp is free for the sibling of the uppermost level, which was read.
    pub take: Option<T>,
}

/// A warp's words in the memories, read in the cycle before.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Words<T> {
    pub top: Top<T>,
    /// The path that may have an outcome or be woken: that of the slot, if an outcome was announced; else the only one
    /// of a warp that waits. And with path forwarding, where it reconverges with others; else that is the top's.
    pub own: Sibling<T>,
    #[width(forwards(s).then(|| Rpc::shape(s)))]
    pub own_rpc: Option<Rpc<T>>,
    /// The call depth of its threads that take the branch, if an outcome was announced.
    #[width(s.depth_bits)]
    pub after: T,
    #[width(s.lanes)]
    pub threads: T,
    #[width(count_width(levels(s)))]
    pub count: T,
}

/// What decode must know of a warp: the rpc, and for which sides it lies ahead.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Stops<T> {
    pub left: T,
    pub right: T,
    #[width(s.pc_bits())]
    pub pc: T,
    /// With [`Shape::path_forwarding`], the right side's.
    #[width(Forwarded::shape(s).map(|_| s.pc_bits()))]
    pub right_pc: Option<T>,
}

impl Claim<Signal> {
    /// 1 bit: it is somebody's.
    pub fn any(&self, m: Builder) -> Signal {
        let take = self.take.unwrap_or(m.lit(0u32, 1));
        cat(&[self.outcome, self.wake, self.pop, self.send, self.follows, take]).any()
    }
}

impl Top<Signal> {
    /// The path of a side, and the other.
    pub fn of(self, right: Signal) -> (Sibling<Signal>, Sibling<Signal>) {
        (right.mux(self.right, self.left), right.mux(self.left, self.right))
    }

    /// A top of a path on a side, and the other.
    pub fn with(right: Signal, own: Sibling<Signal>, other: Sibling<Signal>, rpc: Rpc<Signal>) -> Top<Signal> {
        Top { left: right.mux(other, own), right: right.mux(own, other), rpc, forwarded: None }
    }
}

/// A level that was pushed in the cycle before, and is written in this one.
#[derive(Clone, Copy)]
pub struct Pushed {
    pub valid: Signal,
    pub address: Signal,
    pub level: Level<Signal>,
}

/// The registers and memories.
pub struct Store {
    pub m: Builder,
    pub s: Shape,
    /// One bit per warp: it has threads.
    pub live: Reg<Signal>,
    /// With [`Shape::barriers`], one bit per warp: all its threads wait.
    pub parked: Option<Reg<Signal>>,
    /// By warp.
    pub tops: Mem<Top<Width>>,
    pub threads: Mem<Width>,
    pub stops: Mem<Stops<Width>>,
    pub counts: Mem<Width>,
    /// By level and warp; none with one lane.
    pub levels: Option<Mem<Level<Width>>>,
    /// One bit per warp: a level of it is to be popped.
    pub popping: Reg<Signal>,
    /// One bit per slot: its path is to be steered; it has one.
    pub owed: Reg<Signal>,
    pub active: Reg<Signal>,
    /// With [`Replay::Split`], one bit per slot: it is to be steered to an access that left its threads unserved.
    pub replays: Option<Reg<Signal>>,
    /// With path forwarding, one bit per warp: a side is free, and the uppermost level has a sibling for it.
    pub lends: Option<Reg<Signal>>,
    /// One bit per warp: it pushed a level in the cycle before.
    pub pushed_warps: Reg<Signal>,
    pub claim: Reg<Claim<Signal>>,
    /// Of the warp that has the turn.
    pub words: Reg<Words<Signal>>,
    /// The pc of the side that may have come beside another in the last turn.
    pub came: Reg<Signal>,
}

impl Store {
    /// All of it, as at reset.
    pub fn new(m: Builder, s: &Shape) -> Store {
        let (warp_bits, slots) = (s.warp_bits(), s.slots());
        let level_bits = index_width(levels(s)) + s.warps.ilog2();
        let lends = forwards(s).then(|| m.reg("lends", s.warps).reset(0u32));
        let take = lends.as_ref().map(|_| 1);
        let claim = Claim { slot: s.slot_bits(), outcome: 1, wake: 1, pop: 1, send: 1, follows: 1, take };
        let count_bits = count_width(levels(s));
        Store {
            live: m.reg("live", s.warps).reset(0u32),
            parked: s.barriers.then(|| m.reg("parked", s.warps).reset(0u32)),
            tops: m.memory("tops", Top::shape(s), warp_bits).style(MemoryStyle::Distributed),
            threads: m.memory("threads", s.lanes, warp_bits).style(MemoryStyle::Distributed),
            stops: m.memory("stops", Stops::shape(s), warp_bits).style(MemoryStyle::Distributed),
            counts: m.memory("counts", count_bits, warp_bits).style(MemoryStyle::Distributed),
            levels: (s.lanes > 1).then(|| m.memory("levels", Level::shape(s), level_bits)),
            popping: m.reg("popping", s.warps).reset(0u32),
            owed: m.reg("owed", slots).reset(0u32),
            active: m.reg("active", slots).reset(0u32),
            replays: (s.replay == Replay::Split).then(|| m.reg("replays", slots).reset(0u32)),
            lends,
            pushed_warps: m.reg("pushed_warps", s.warps).reset(0u32),
            claim: m.reg("claim", claim).reset_zero(),
            words: m.reg("words", Words::shape(s)).reset_zero(),
            came: m.reg("came", s.pc_bits()),
            m,
            s: s.clone(),
        }
    }

    /// Where a level of a warp is.
    pub fn address(&self, entry: Signal, warp: Signal) -> Signal {
        let entry = entry.slice(0, index_width(levels(&self.s)));
        if self.s.warps > 1 { cat(&[entry, warp]) } else { entry }
    }

    /// The slot of a side of a warp.
    pub fn slot(&self, warp: Signal, right: Signal) -> Signal {
        if self.s.warps > 1 { cat(&[right, warp]) } else { right }
    }
}

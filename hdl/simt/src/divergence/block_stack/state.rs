//! What the unit keeps: words of slots and of blocks, and the registers and memories that hold them.
//!
//! Masks of a block have a bit per thread of the core, `lanes` groups of `warps` bits: those of a lane are side by
//! side. Blocks that are resident together share the words of masks, each has the bits of its own warps.

use super::super::Stop;
use super::super::levels::{Compared, Gathering, Group, Level, Likely, Rpc, Sibling, Top, levels};
use super::ahead::{Ahead, Branch};
use super::block_levels;
use crate::block::same_group;
use crate::reconvergence::Reconvergence;
use crate::shape::{Compaction, Shape};
use heddle_hdl::elements;
use heddle_hdl::prelude::*;

/// What a slot runs.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Warp<T> {
    pub mask: T,
    /// The static warp of each lane.
    pub homes: Option<T>,
}

/// Where the first warp of a block has arrived, and so where all of them arrive.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Place<T> {
    /// A [`PlaceKind`].
    #[width(PlaceKind::WIDTH)]
    pub kind: T,
    /// The pc of the instruction, or for what is no branch, behind it.
    #[width(s.pc_bits())]
    pub pc: T,
    #[width(s.depth_bits)]
    pub depth: T,
    /// Of a branch or jump.
    pub jump: T,
    pub call: T,
    pub ret: T,
    #[width(s.pc_bits())]
    pub target: T,
    pub meets: Reconvergence<T>,
    /// Of the sides of a branch, with the block's top; or of where a barrier goes on, as its taken side.
    #[width(Compared::shape(&as_one_warp(s)))]
    pub sides: Compared<T>,
}

/// The kind of a place where warps arrive.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceKind {
    /// A branch or jump.
    Branch,
    /// The rpc of the top.
    Rpc,
    /// Its likely-convergence point.
    Point,
    Barrier,
}

/// What the stack does for a block.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Step<T> {
    pub valid: T,
    /// The block's lowest slot; its slots, a bit each.
    pub block: T,
    pub slots: T,
    /// All have arrived; else the uppermost level is popped.
    pub arrived: T,
    /// The words of the block are there, and of one that has not arrived, the level that is popped.
    pub read: T,
    /// Of one that has arrived: its uppermost level is there, if it has one.
    pub level: T,
}

/// A block's levels in use.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Count<T> {
    #[width(count_width(levels(&as_one_warp(s))))]
    pub now: T,
    /// One less: the uppermost level; anything, if there is none.
    #[width(count_width(levels(&as_one_warp(s))))]
    pub below: T,
}

/// What the memories say of a slot and its block, read when an outcome of it was announced.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct OfSlot<T> {
    #[width(Warp { mask: s.lanes, homes: s.homes_bits() })]
    pub warp: Warp<T>,
    #[width(s.depth_bits)]
    pub depth: T,
    /// The depth of those that take the branch.
    #[width(s.depth_bits)]
    pub after: T,
    #[width(Ends::shape(s))]
    pub ends: Ends<T>,
    #[width(Count::shape(s))]
    pub count: Count<T>,
    #[width(Place::shape(s))]
    pub first: Place<T>,
}

/// What they say of the block that the stack does something for, read in the cycle before.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct OfBlock<T> {
    #[width(Count::shape(s))]
    pub count: Count<T>,
    #[width(Place::shape(s))]
    pub place: Place<T>,
    #[width(Ends::shape(s))]
    pub ends: Ends<T>,
}

/// What a block's top is from the next cycle on.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct TopBegins<T> {
    pub valid: T,
    /// The block's lowest slot.
    #[width(s.warp_bits())]
    pub block: T,
    #[width(Count::shape(s))]
    pub count: Count<T>,
    #[width(Ends::shape(s))]
    pub ends: Ends<T>,
}

/// Threads that are being formed into warps.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Formed<T> {
    pub valid: T,
    /// As they are in static warps.
    pub fixed: T,
    /// The block's lowest slot.
    pub block: T,
    /// Those that are left.
    pub top: Top<T>,
}

impl Formed<Width> {
    /// Of a shape.
    pub fn of(s: &Shape) -> Formed<Width> {
        Formed { valid: 1, fixed: 1, block: s.warp_bits(), top: Top::shape(&as_one_warp(s)) }
    }
}

/// Where a block's threads reconverge: the part of a [`Top`] that is kept while warps run.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Ends<T> {
    pub rpc: Rpc<T>,
    pub likely: Option<Likely<T>>,
}

impl Ends<Signal> {
    pub fn of(top: Top<Signal>) -> Ends<Signal> {
        Ends { rpc: top.rpc, likely: top.likely }
    }
}

impl Ends<Width> {
    pub fn shape(s: &Shape) -> Ends<Width> {
        let Top { rpc, likely, .. } = Top::shape(&as_one_warp(s));
        Ends { rpc, likely }
    }
}

/// A [`Level`] without its masks.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Held<T> {
    pub sibling: T,
    pub pc: T,
    pub depth: T,
    pub group: T,
    pub rpc: Rpc<T>,
    pub likely: Option<Gathering<T>>,
    /// The branch, where it is [predicted](super::ahead).
    pub branch: Option<Branch<T>>,
}

impl Held<Width> {
    pub fn shape(s: &Shape) -> Held<Width> {
        let Level { sibling, group, likely } = Level::shape(s);
        let branch = s.predicts().then(|| Branch::shape(s));
        Held { sibling: 1, pc: sibling.pc, depth: sibling.depth, group: 1, rpc: group.rpc, likely, branch }
    }
}

impl Held<Signal> {
    pub fn of(level: Level<Signal>, branch: Option<Branch<Signal>>) -> Held<Signal> {
        let Level { sibling, group, likely } = level;
        let (pc, depth) = (sibling.pc, sibling.depth);
        Held { sibling: sibling.valid, pc, depth, group: group.valid, rpc: group.rpc, likely, branch }
    }

    pub fn with(self, sibling: Signal, group: Signal) -> Level<Signal> {
        Level {
            sibling: Sibling { valid: self.sibling, pc: self.pc, depth: self.depth, mask: sibling },
            group: Group { valid: self.group, mask: group, rpc: self.rpc },
            likely: self.likely,
        }
    }
}

/// The shape whose one warp has the threads of all blocks: what [`super::super::levels`] sees.
pub fn as_one_warp(s: &Shape) -> Shape {
    Shape { lanes: s.threads(), levels: Some(block_levels(s)), ..s.clone() }
}

/// Which threads are not in their static warps.
pub struct Mixing {
    /// One bit per slot: its last warp was formed of threads of any static warps.
    pub regrouped: Reg<Signal>,
    /// One bit per static warp: it has a live thread that is not in [`Store::taken`]; that is not in [`Store::rest`].
    pub not_taken: Reg<Signal>,
    pub not_rest: Reg<Signal>,
}

/// The registers and memories.
pub struct Store {
    pub m: Builder,
    pub s: Shape,
    /// The core as [`super::super::levels`] sees it.
    pub wide: Shape,
    /// See [`crate::block::Grid::group`].
    pub group: Signal,
    /// By slot.
    pub warps: Mem<Warp<Width>>,
    pub depths: Mem<Width>,
    pub stops: Mem<Stop<Width>>,
    /// One bit per slot: it runs a warp; its warp has arrived.
    pub running: Reg<Signal>,
    pub arrived: Reg<Signal>,
    /// One bit per thread: it lives; it has arrived, on the side of its block that takes the branch, or on the other.
    pub live: Reg<Signal>,
    pub taken: Reg<Signal>,
    pub rest: Reg<Signal>,
    /// Where warps are formed of threads of any static warps.
    pub mixing: Option<Mixing>,
    /// By a block's lowest slot.
    pub places: Mem<Place<Width>>,
    pub ends: Mem<Ends<Width>>,
    pub counts: Mem<Count<Width>>,
    /// One bit per slot, that of a block's lowest: its first warp has arrived.
    pub recorded: Reg<Signal>,
    /// The words of the next outcome's slot and block, and of the block that the stack does something for.
    pub of_slot: Reg<OfSlot<Signal>>,
    pub of_block: Reg<OfBlock<Signal>>,
    pub step: Reg<Step<Signal>>,
    /// One bit per slot: it is above those of the block for which the stack did something last.
    pub after: Reg<Signal>,
    pub formed: Reg<Formed<Signal>>,
    /// With [`Shape::predicts`].
    pub ahead: Option<Ahead>,
    /// With [`Shape::passes`].
    pub top_begins: Option<Deferred<TopBegins<Signal>>>,
}

impl Store {
    /// All of it, as at reset.
    pub fn new(m: Builder, s: &Shape, group: Signal) -> Store {
        let wide = as_one_warp(s);
        let (slot_bits, threads) = (s.warp_bits(), s.threads());
        let distributed = |name: &str, width: Width| m.memory(name, width, slot_bits).style(MemoryStyle::Distributed);
        let warp_shape = Warp { mask: s.lanes, homes: s.homes_bits() };
        let stop_shape = Stop { valid: 1, pc: s.pc_bits() };
        let mixes = s.homes_bits().is_some() && s.compaction != Compaction::Off;
        let by_warp = |name| m.reg(name, s.warps).reset(0u32);
        let mixing = || Mixing {
            regrouped: by_warp("regrouped"),
            not_taken: by_warp("not_taken"),
            not_rest: by_warp("not_rest"),
        };
        let step_shape = Step { valid: 1, block: slot_bits, slots: s.warps, arrived: 1, read: 1, level: 1 };
        Store {
            warps: m.memory("warps", warp_shape, slot_bits).style(MemoryStyle::Distributed),
            depths: distributed("depths", s.depth_bits),
            stops: m.memory("stops", stop_shape, slot_bits).style(MemoryStyle::Distributed),
            running: m.reg("running", s.warps).reset(0u32),
            arrived: m.reg("arrived", s.warps).reset(0u32),
            live: m.reg("live_threads", threads).reset(0u32),
            taken: m.reg("taken", threads).reset(0u32),
            rest: m.reg("rest", threads).reset(0u32),
            mixing: mixes.then(mixing),
            places: m.memory("places", Place::shape(s), slot_bits).style(MemoryStyle::Distributed),
            ends: m.memory("ends", Ends::shape(s), slot_bits).style(MemoryStyle::Distributed),
            counts: m.memory("counts", Count::shape(s), slot_bits).style(MemoryStyle::Distributed),
            recorded: m.reg("recorded", s.warps).reset(0u32),
            of_slot: m.reg("of_slot", OfSlot::shape(s)),
            of_block: m.reg("of_block", OfBlock::shape(s)),
            after: m.reg("after", s.warps).reset(0u32),
            step: m.reg("step", step_shape).reset_zero(),
            formed: m.reg("formed", Formed::of(s)).reset_zero(),
            ahead: s.predicts().then(|| Ahead::new(m, s, &wide)),
            top_begins: s.passes().then(|| m.deferred("top_begins", TopBegins::shape(s))),
            m,
            s: s.clone(),
            wide,
            group,
        }
    }

    /// The lowest slot of a slot's block.
    pub fn block_of(&self, slot: Signal) -> Signal {
        slot & !self.group
    }

    /// One bit per slot: it is of the same block as `slot`.
    pub fn slots_of(&self, slot: Signal) -> Signal {
        same_group(slot, self.group, self.s.warps)
    }

    /// One bit per slot: it is `slot`, and `on`.
    pub fn bit(&self, slot: Signal, on: Signal) -> Signal {
        slot.decode(self.s.warps).only_if(on)
    }

    /// One bit per thread, out of one per lane of a slot, whose lanes have threads of these static warps: of the slot's
    /// own, if of none.
    pub fn spread(&self, mask: Signal, homes: Option<Signal>, slot: Signal) -> Signal {
        let warps = homes.map_or(vec![slot; self.s.lanes as usize], |homes| elements(homes, self.s.warp_bits()));
        let lanes = (0..).zip(warps).map(|(lane, warp)| warp.decode(self.s.warps).only_if(mask.bit(lane)));
        cat(&lanes.collect::<Vec<_>>())
    }

    /// One bit per static warp: it has one of these threads.
    pub fn static_warps(&self, threads: Signal) -> Signal {
        elements(threads, self.s.warps).into_iter().reduce(|a, b| a | b).expect("a lane")
    }

    /// One bit per slot: if its warp is ahead, that has all live threads of its own static warp, and no others.
    pub fn whole_slots(&self) -> Signal {
        let regrouped = self.mixing.as_ref().map_or(self.m.lit(0u32, self.s.warps), |mixing| mixing.regrouped.q);
        !regrouped & !self.static_warps(self.live.q & !self.ahead_threads())
    }

    /// One bit per slot: it runs a warp, its warp has arrived, or threads of its static warp live.
    pub fn live_slots(&self) -> Signal {
        let by_warp = self.static_warps(self.live.q);
        wire!(is_live = by_warp | self.running.q | self.arrived.q);
        is_live
    }

    /// One bit per slot: its warp is ahead.
    pub fn ahead_slots(&self) -> Signal {
        self.ahead.as_ref().map_or(self.m.lit(0u32, self.s.warps), Ahead::slots)
    }

    /// One bit per thread: it is ahead.
    pub fn ahead_threads(&self) -> Signal {
        self.ahead.as_ref().map_or(self.m.lit(0u32, self.s.threads()), Ahead::threads)
    }
}

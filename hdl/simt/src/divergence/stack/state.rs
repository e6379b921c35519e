//! What the unit keeps: the words of a warp, and the registers and memories that hold them.

use super::super::Stop;
use super::super::levels::{Level, Top, has_likely, levels};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Whose turn it is, chosen in the cycle before. With no bit set it is that of a start, or of nobody.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Claim<T> {
    pub slot: T,
    /// 1 bit: an outcome was announced. If it does not come, the turn is lost.
    pub outcome: T,
    /// 1 bit: a wake was taken.
    pub wake: T,
    /// 1 bit: the slot is popping, and its uppermost level was read.
    pub pop: T,
}

/// A slot's words in the memories, read in the cycle before.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Words<T> {
    pub top: Top<T>,
    /// The call depth of the top's threads that take the branch, if an outcome was announced; else the top's.
    #[width(s.depth_bits)]
    pub after: T,
    #[width(s.lanes)]
    pub threads: T,
    #[width(count_width(levels(s)))]
    pub count: T,
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
    pub stops: Mem<Stop<Width>>,
    pub counts: Mem<Width>,
    /// By level and warp; none with one lane.
    pub levels: Option<Mem<Level<Width>>>,
    /// The same, with [`Shape::likely`]: those at the likely point.
    pub gathered: Option<Mem<Width>>,
    /// One bit per warp: a level of it is to be popped.
    pub popping: Reg<Signal>,
    pub claim: Reg<Claim<Signal>>,
    /// Of the warp that has the turn.
    pub words: Reg<Words<Signal>>,
}

impl Store {
    /// All of it, as at reset.
    pub fn new(m: Builder, s: &Shape) -> Store {
        let slot_bits = s.warp_bits();
        let entry_bits = index_width(levels(s)) + s.warps.ilog2();
        let distributed = |name| m.memory(name, s.lanes, entry_bits).style(MemoryStyle::Distributed);
        let stop = Stop { valid: 1, pc: s.pc_bits() };
        Store {
            live: m.reg("live", s.warps).reset(0u32),
            parked: s.barriers.then(|| m.reg("parked", s.warps).reset(0u32)),
            tops: m.memory("tops", Top::shape(s), slot_bits).style(MemoryStyle::Distributed),
            threads: m.memory("threads", s.lanes, slot_bits).style(MemoryStyle::Distributed),
            stops: m.memory("stops", stop, slot_bits).style(MemoryStyle::Distributed),
            counts: m.memory("counts", count_width(levels(s)), slot_bits).style(MemoryStyle::Distributed),
            levels: (s.lanes > 1).then(|| m.memory("levels", Level::shape(s), entry_bits)),
            gathered: has_likely(s).then(|| distributed("gathered")),
            popping: m.reg("popping", s.warps).reset(0u32),
            claim: m.reg("claim", Claim { slot: slot_bits, outcome: 1, wake: 1, pop: 1 }).reset_zero(),
            words: m.reg("words", Words::shape(s)).reset_zero(),
            m,
            s: s.clone(),
        }
    }

    /// One bit per warp: all its threads wait, or were woken in the cycle before.
    pub fn waiting(&self) -> Signal {
        self.parked.map_or(self.m.lit(0u32, self.s.warps), |parked| parked.q)
    }

    /// The place of a warp's level in the memories.
    pub fn entry_of(&self, level: Signal, slot: Signal) -> Signal {
        let level = level.slice(0, index_width(levels(&self.s)));
        if self.s.warps > 1 { cat(&[level, slot]) } else { level }
    }
}

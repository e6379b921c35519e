//! What the unit keeps beside the tables of its lanes.

use super::super::Stop;
use super::super::fairness::Fairness;
use super::super::sequence::Sequences;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// The threads that run, and their depth.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Active<T> {
    pub depth: T,
    pub mask: T,
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
    pub active: Mem<Active<Width>>,
    /// Unless a warp has one thread.
    pub stops: Option<Mem<Stop<Width>>>,
    /// With [`Shape::barriers`].
    pub phases: Option<Mem<Width>>,
    /// With [`Shape::fair`], one bit per warp.
    pub rounds: Option<Reg<Signal>>,
    pub fairness: Option<Fairness>,
    pub sequences: Option<Sequences>,
}

impl Store {
    /// All of it, as at reset.
    pub fn new(m: Builder, s: &Shape) -> Store {
        let live = m.reg("live", s.warps).reset(0u32);
        let parked = s.barriers.then(|| m.reg("waiting", s.warps).reset(0u32));
        let active = m.memory("active", Active { depth: s.depth_bits, mask: s.lanes }, s.warp_bits());
        let phases = s.barriers.then(|| m.memory("phases", 1, s.warp_bits()).style(MemoryStyle::Distributed));
        let fairness = s.fair.then(|| Fairness::new(m, s));
        let rounds = s.fair.then(|| m.reg("rounds", s.warps).reset(0u32));
        let stops = (s.lanes > 1).then(|| m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, s.warp_bits()));
        Store {
            m,
            s: s.clone(),
            live,
            parked,
            active: active.style(MemoryStyle::Distributed),
            stops: stops.map(|stops| stops.style(MemoryStyle::Distributed)),
            phases,
            rounds,
            fairness,
            sequences: Sequences::new(m, s),
        }
    }

    /// One bit per warp: all its threads wait.
    pub fn waiting(&self) -> Signal {
        self.parked.map_or(self.m.lit(0u32, self.s.warps), |parked| parked.q)
    }

    /// The phase of a warp.
    pub fn phase_of(&self, slot: Signal) -> Signal {
        self.phases.as_ref().map_or(self.m.lit(0u32, 1), |phases| phases.read(slot))
    }

    /// Its round.
    pub fn round_of(&self, slot: Signal) -> Option<Signal> {
        self.rounds.as_ref().map(|rounds| rounds.q.select(slot, 1))
    }

    /// Its stop pc.
    pub fn stop(&self, slot: Signal) -> Stop<Signal> {
        match &self.stops {
            Some(stops) => stops.read(slot),
            None => self.m.zero(Stop { valid: 1, pc: self.s.pc_bits() }),
        }
    }
}

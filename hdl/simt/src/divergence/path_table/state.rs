//! What the unit keeps: the tables of a warp's first paths, and the cold table and the convergence barriers beside them.

use super::cct::{CctIn, CctOut, Context, entries};
use super::convergence::{TableIn, TableOut};
use super::live_name;
use crate::divergence::fairness::Fairness;
use crate::divergence::sequence::Sequences;
use crate::divergence::{Path, Stop};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Whose turn it is, chosen in the cycle before. With no bit set it is that of a path that returns, or of nobody.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Claim<T> {
    pub slot: T,
    /// 1 bit: an outcome was announced. If it does not come, the turn is lost.
    pub outcome: T,
    /// 1 bit: threads of a convergence barrier may be released.
    pub release: T,
    /// 1 bit: a wake was taken.
    pub wake: T,
    /// 1 bit: the sorter.
    pub sort: T,
}

/// A slot's words in the tables, read in the cycle before, as the tables have them now.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Words<T> {
    pub live: T,
    pub phase: Option<T>,
    pub round: Option<T>,
    pub hct0: Context<T>,
    /// The call depth of x's threads that take the branch, if an outcome was announced; else x's.
    pub after: T,
    pub hct1: Option<Path<T>>,
}

/// The registers and memories, and what the tables beside say.
pub struct Store {
    pub m: Builder,
    pub s: Shape,
    /// One bit per slot: it has paths.
    pub live: Reg<Signal>,
    /// By slot.
    pub hct0: Mem<Context<Width>>,
    pub hct1: Option<Mem<Path<Width>>>,
    pub stops: Mem<Stop<Width>>,
    /// By slot, 1 bit: its paths wait if their bit differs from it. A start sets it to 0, a wake changes it.
    pub phases: Option<Mem<Width>>,
    /// Where paths give way, by slot, 1 bit: what their bit differs from that have.
    pub rounds: Option<Mem<Width>>,
    /// With [`Shape::barriers`], one bit per slot: all its paths wait.
    pub waiting: Option<Reg<Signal>>,
    pub claim: Reg<Claim<Signal>>,
    /// Of the slot that has the turn.
    pub words: Reg<Words<Signal>>,
    /// 1 bit: they are not what the tables hold.
    pub stale: Reg<Signal>,
    /// With fewer than 4 lanes there is no cold table, and its outputs are zeros.
    pub cold: CctOut<Signal>,
    pub cold_in: Option<Deferred<CctIn<Signal>>>,
    /// Where paths give way.
    pub fairness: Option<Fairness>,
    /// Where something is kept of LR/SC sequences.
    pub sequences: Option<Sequences>,
    pub barriers: Option<TableOut<Signal>>,
    pub barriers_in: Option<Deferred<TableIn<Signal>>>,
}

impl Store {
    /// All of it, as at reset, with a cold table and a table of convergence barriers that are made here.
    pub fn new(
        m: Builder,
        s: &Shape,
        place_cold: impl FnOnce(Builder, CctIn<Signal>) -> CctOut<Signal>,
        place_barriers: impl FnOnce(Builder, TableIn<Signal>) -> TableOut<Signal>,
    ) -> Store {
        let distributed = MemoryStyle::Distributed;
        let with_barriers = s.convergence_barriers > 0;
        let bits = |name: &str| m.memory(name, 1, s.warp_bits()).style(distributed);
        let phases = s.barriers.then(|| bits("phases"));
        let rounds = s.gives_way().then(|| bits("rounds"));
        let hct1 = (s.lanes > 1).then(|| m.memory("hct1", Path::shape(s), s.warp_bits()).style(distributed));
        let words = Words {
            live: 1,
            phase: phases.as_ref().map(|_| 1),
            round: rounds.as_ref().map(|_| 1),
            hct0: Context::shape(s),
            after: s.depth_bits,
            hct1: hct1.as_ref().map(|_| Path::shape(s)),
        };
        let claim = Claim { slot: s.warp_bits(), outcome: 1, release: 1, wake: 1, sort: 1 };
        let cold_in = (entries(s) > 0).then(|| m.deferred("to_cct", CctIn::shape(s)));
        let cold = match &cold_in {
            Some(inputs) => place_cold(m, inputs.value),
            None => m.zero(CctOut::shape(s)),
        };
        let barriers_in = with_barriers.then(|| m.deferred("to_barriers", TableIn::shape(s)));
        Store {
            live: m.reg(live_name(s), s.warps).reset(0u32),
            hct0: m.memory("hct0", Context::shape(s), s.warp_bits()).style(distributed),
            hct1,
            stops: m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, s.warp_bits()).style(distributed),
            phases,
            rounds,
            waiting: s.barriers.then(|| m.reg("list_waits", s.warps).reset(0u32)),
            claim: m.reg("claim", claim).reset_zero(),
            // With a reset: without one, Yosys has the address in a register instead, and the read in the cycle of the turn.
            words: m.reg("words", words).reset_zero(),
            stale: m.reg("stale", 1).reset(0u32),
            cold,
            cold_in,
            fairness: s.gives_way().then(|| Fairness::new(m, s)),
            sequences: Sequences::new(m, s),
            barriers: barriers_in.as_ref().map(|inputs| place_barriers(m, inputs.value)),
            barriers_in,
            m,
            s: s.clone(),
        }
    }

    /// `with` of the convergence barriers, if there are any; else `without`.
    pub fn barriers_or<T>(&self, without: T, with: impl FnOnce(&TableOut<Signal>) -> T) -> T {
        self.barriers.as_ref().map_or(without, with)
    }

    /// The call depth of a depth as paths have it: where they give way, its upper bit says that one has not.
    pub fn call_depth(&self, depth: Signal) -> Signal {
        if self.s.gives_way() { depth.slice(0, self.s.depth_bits) } else { depth }
    }

    /// A depth as paths have it.
    pub fn ranked(&self, depth: Signal, late: Signal) -> Signal {
        if self.s.gives_way() { cat(&[depth, !late]) } else { depth }
    }

    /// One bit per slot: all its paths wait.
    pub fn waiting(&self) -> Signal {
        self.waiting.as_ref().map_or(self.m.lit(0u32, self.s.warps), |waiting| waiting.q)
    }
}

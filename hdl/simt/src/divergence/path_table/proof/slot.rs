//! A slot's paths, as the tables hold them.

use super::super::Inside;
use super::super::cct::{self, entries};
use super::super::convergence;
use super::super::turn::from_tables;
use crate::divergence::Path;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// A slot's tables.
pub struct Slot {
    pub number: u32,
    pub live: Signal,
    pub x: Path<Signal>,
    pub y: Path<Signal>,
    pub cold: Vec<Path<Signal>>,
    pub count: Signal,
    pub returning: Signal,
    pub seeking: Signal,
    pub waiting: Signal,
    /// What the tables' bits differ by from those of the paths: in `waits`, and in whether they have given way.
    pub differ: (Signal, Option<Signal>),
    /// 1 bit: x does not run.
    pub parks: Signal,
    /// The threads at each convergence barrier, with where they go on.
    pub held: Vec<Path<Signal>>,
    /// 1 bit: an outcome of x will say that its threads wait, and those of `goes` go on, or stay in its path.
    pub pending: Signal,
    pub goes: Signal,
}

impl Slot {
    pub fn paths(&self) -> Vec<Path<Signal>> {
        [self.x, self.y].into_iter().chain(self.cold.iter().copied()).collect()
    }

    /// x has been steered to, and runs; said by registers alone, so that what is read from the tables is not part of
    /// where it is read.
    pub fn runs(&self) -> Signal {
        self.live & !self.returning & !self.seeking & !self.waiting
    }

    /// The threads of each path and of each convergence barrier, as they will be once an outcome that is on its way has
    /// come.
    pub fn masks(&self) -> Vec<Signal> {
        let mut masks: Vec<Signal> = self.paths().iter().map(|p| p.mask.only_if(p.valid)).collect();
        masks[0] = self.pending.mux(self.goes, masks[0]);
        masks.extend(self.held.iter().map(|p| p.mask.only_if(p.valid)));
        masks
    }

    pub fn holds(&self, m: Builder) -> Signal {
        let holds: Vec<Signal> = self.held.iter().map(|p| p.valid).collect();
        if holds.is_empty() { m.lit(0u32, 1) } else { cat(&holds).any() }
    }
}

/// The slot of this number.
pub fn slot(
    m: Builder,
    s: &Shape,
    number: u32,
    tables: &Inside,
    (cold, barriers): (Option<&cct::Inside>, Option<&convergence::Inside>),
) -> Slot {
    let at = m.lit(number, s.warp_bits());
    let live = tables.store.live.q.bit(number);
    let entry_bits = index_width(entries(s));
    let none = m.zero(Path::shape(s));
    let bit = |bits: Option<Signal>| bits.map_or(m.lit(0u32, 1), |bits| bits.bit(number));
    let count = cold.map_or(m.lit(0u32, 1), |c| c.counts.read(at));
    // Paths as they are, not as the tables have them.
    let phase = tables.store.phases.as_ref().map_or(m.lit(0u32, 1), |phases| phases.read(at));
    let round = tables.store.rounds.as_ref().map(|rounds| rounds.read(at));
    let turned = |p: Path<Signal>| from_tables(m, s, (phase, round), p);
    let x = turned(tables.store.hct0.read(at).path(live));
    let cold_path = |c: &cct::Inside, k: u32| {
        let address = m.lit(number << entry_bits | k, entry_bits + s.warps.ilog2());
        turned(c.path(address).path(live & count.gt(k)))
    };
    let y = tables.store.hct1.as_ref().map_or(none, |t| t.read(at));
    Slot {
        number,
        live,
        x,
        differ: (phase, round),
        parks: x.waits | x.is_late(s),
        held: barriers.map_or(vec![], |barriers| held_at(m, s, number, barriers)),
        pending: barriers.map_or(m.lit(0u32, 1), |b| b.act.waited & b.act.waited_slot.eq(at)),
        goes: barriers.map_or(m.lit(0u32, s.lanes), |b| b.act.stays.map_or(b.act.goes, |stays| b.act.goes | stays)),
        y: turned(Path { valid: y.valid & live, ..y }),
        cold: cold.map_or(vec![], |c| (0..entries(s)).map(|k| cold_path(c, k)).collect()),
        count,
        returning: bit(cold.map(|c| c.returning)),
        seeking: bit(cold.map(|c| c.seeking)),
        waiting: tables.store.waiting().bit(number),
    }
}

/// The threads at the convergence barriers of a warp, as paths that wait.
fn held_at(m: Builder, s: &Shape, number: u32, barriers: &convergence::Inside) -> Vec<Path<Signal>> {
    let at = m.lit(number, s.warp_bits());
    let holds = barriers.store.words.read(at).holds;
    let path = |k: u32| {
        let place = barriers.store.places.read(barriers.store.address(at, m.lit(k, s.barrier_bits())));
        let (depth, waits) = (cat(&[place.depth, m.lit(1u32, 1)]), m.lit(1u32, 1));
        Path {
            valid: holds.bit(k) & barriers.store.holding.q.bit(number),
            depth,
            pc: place.pc,
            mask: place.waiting,
            waits,
        }
    };
    (0..s.convergence_barriers).map(path).collect()
}

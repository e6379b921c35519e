//! The SIMT core and every divergence mechanism, described in the language of `heddle-hdl`.
//!
//! Start at [`Shape`], the configuration, and [`core`](mod@core), which wires everything together; [`system::system`]
//! is the whole with memories and work distributor. [`pipeline`] has the stages, [`divergence`] the mechanisms,
//! [`lane`] the arithmetic of one lane. `docs/reference/pipeline.md` says what happens in which cycle.
//!
//! Every part is a function from the shape to a module, with its ports as bundles (`FetchIn`, `FetchOut`) above it.
//! Their widths stand where the function makes the shape of its inputs; everywhere, `slot` is [`Shape::warp_bits`],
//! `pc` is [`Shape::pc_bits`], a mask is a bit per lane, and lists of lanes are packed with lane 0 lowest.

pub mod address;
pub mod arbiter;
pub mod barrier;
pub mod block;
pub mod core;
pub mod csr;
pub mod distributor;
pub mod divergence;
pub mod host;
pub mod hosted;
pub mod isa;
pub mod lane;
pub mod memory;
pub mod metrics;
pub mod pipeline;
pub mod proof;
pub mod queue;
pub mod reconvergence;
pub mod scoreboard;
pub mod shape;
pub mod system;
#[cfg(test)]
mod testing;

/// Threads of a warp, for the host: a bit for each lane of the shape, lane 0 first.
pub type LaneMask = bitvec::vec::BitVec<u64, bitvec::order::Lsb0>;

pub use divergence::Divergence;
pub use shape::{
    Backing, BankAddress, Cache, Capt, Coalescing, Compaction, History, MOST_ALU_LATENCY, Merge, Metrics, Order,
    PathScheduler, Replay, Schedule, Scoreboard, SecondLevel, Shape, ShapeError, SlaveModel, Timing,
};

//! What is proven of the arbiter, and at which shapes.

use super::proof::{arbiter_proof, fair_arbiter_proof, pass_cycles};
use crate::proof::{Block, Method, Proof};
use crate::shape::{Metrics, Shape};
use heddle_hdl::Errors;

const ARBITER: Block = Block {
    name: "arbiter",
    block: "divergence/arbiter.rs",
    says: "Every live thread of a warp has the pc and call depth that outcomes gave it and waits from its barrier to the wake; \
           the mask is the threads in the first place, the stop pc that of the next at their depth; what a memory access \
           left is replayed alone; after an outcome, a start or a wake a warp is steered once if a thread can run.",
    method: Method::Induction,
    cover_depth: 14,
};

const FAIR: Block = Block {
    name: "fair-arbiter",
    block: "divergence/fairness.rs",
    says: "Under the arbiter, a thread that does not wait at a barrier runs at least once in as many outcomes of its warp as \
           patience, and two brief turns of each other thread, each with an LR/SC sequence at its end where there may be \
           one.",
    method: Method::Induction,
    cover_depth: 32,
};

/// All of them.
pub fn proofs() -> Result<Vec<Proof>, Errors> {
    let mut all = Vec::new();
    let shape = |lanes, warps| Shape { barriers: false, ..Shape::new(lanes, warps) };
    for (lanes, warps, barriers) in
        [(1, 1, true), (2, 1, true), (2, 2, true), (4, 1, true), (4, 2, false), (8, 1, false)]
    {
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, barriers, ..shape(lanes, warps) };
        all.push(ARBITER.at(&s, pass_cycles(&s), (lanes, warps) == (2, 2), arbiter_proof)?);
    }
    for (lanes, warps, barriers) in [(2, 1, false), (2, 1, true), (2, 2, true), (4, 1, true)] {
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, barriers, ..shape(lanes, warps) };
        let s = Shape { fair: true, patience: 2, ..s };
        all.push(FAIR.at(&s, pass_cycles(&s), (lanes, warps, barriers) == (2, 1, true), fair_arbiter_proof)?);
        let s = Shape { reservations: true, ..s };
        all.push(FAIR.at(&s, pass_cycles(&s), false, fair_arbiter_proof)?);
    }
    Ok(all)
}

//! What is proven of the stack, and at which shapes.

use super::proof::stack_proof;
use crate::divergence::Divergence;
use crate::proof::{Block, Method, Proof};
use crate::shape::{Metrics, Shape};
use heddle_hdl::Errors;

const STACK: Block = Block {
    name: "stack",
    block: "divergence/stack.rs",
    says: "Whatever it is told about where threads reconverge, every live thread of a warp is in exactly one place, which has the pc \
           and call depth that outcomes gave it; lanes - 1 levels are enough; after an outcome, a start or a wake a warp is \
           steered once, to its top, in a bounded time, unless it waits, ends or is refused.",
    method: Method::Induction,
    cover_depth: 14,
};

/// All of them.
pub fn proofs() -> Result<Vec<Proof>, Errors> {
    let mut all = Vec::new();
    let shape = |lanes, warps| Shape { barriers: false, ..Shape::new(lanes, warps) };
    for (lanes, warps, barriers, likely) in [
        (1, 1, true, false),
        (2, 1, false, false),
        (2, 2, true, false),
        (2, 2, false, true),
        (4, 1, true, false),
        (4, 1, false, true),
    ] {
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, barriers, likely, ..shape(lanes, warps) };
        let quick = if likely { lanes == 2 } else { lanes == 4 };
        let proof = STACK.at(&s.with_divergence(Divergence::STACK), 2, quick, stack_proof)?;
        let (letter, with) = if likely { ("l", ", likely") } else { ("", "") };
        all.push(Proof { name: proof.name + letter, shape: proof.shape + with, ..proof });
    }
    Ok(all)
}

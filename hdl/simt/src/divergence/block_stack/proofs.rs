//! What is proven of the block stack and its parts, and at which shapes.

use super::capt::proof::capt_proof;
use super::compactor::proof::compactor_proof;
use super::proof::block_stack_proof;
use crate::divergence::Divergence;
use crate::proof::{Block, Method, Proof};
use crate::shape::{Capt, Compaction, History, Metrics, Shape};
use heddle_hdl::Errors;

const COMPACTOR: Block = Block {
    name: "compactor",
    block: "divergence/block_stack/compactor.rs",
    says: "Iterated, it puts each thread into exactly one warp, in its lane, the lowest static warp of a lane first; the warps are \
           as many as one lane has threads at most, or, where static warps are wanted, exactly those.",
    method: Method::Induction,
    cover_depth: 4,
};

const CAPT: Block = Block {
    name: "capt",
    block: "divergence/block_stack/capt.rs",
    says: "A branch has an entry exactly if a warp has parted there, and fewer other branches than there are entries since; it \
           has one only, which says what was learned since it came; a branch without one is adequate.",
    method: Method::Induction,
    cover_depth: 8,
};

const BLOCK_STACK: Block = Block {
    name: "block-stack",
    block: "divergence/block_stack.rs",
    says: "Whatever it is told about where threads reconverge, a live thread is in exactly one warp, with the pc and call depth that \
           outcomes gave it, or waits; no warp runs a thread of which another owes a write; the home of a write stays until \
           it is done; no warp is formed where one runs.",
    method: Method::Bounded,
    cover_depth: 16,
};

/// All of them.
pub fn proofs() -> Result<Vec<Proof>, Errors> {
    let mut all = Vec::new();
    let shape = |lanes, warps| Shape { barriers: false, ..Shape::new(lanes, warps) };
    for (lanes, warps) in [(1, 1), (2, 2), (4, 2), (2, 4), (4, 4)] {
        let s = shape(lanes, warps).with_divergence(Divergence::BLOCK_STACK);
        all.push(COMPACTOR.at(&s, 2, lanes == warps && lanes > 1, compactor_proof)?);
    }
    for (entries, program) in [(2, 16), (4, 32)] {
        for &(name, history) in History::ALL {
            let s = Shape { program, capt: Capt { entries, history }, ..shape(2, 2) };
            let proof = CAPT.at(&s, 2, entries <= 2, capt_proof)?;
            all.push(Proof {
                name: format!("capt-{entries}-{name}"),
                shape: format!("{entries} entries, {name}"),
                ..proof
            });
        }
    }
    for (lanes, warps, compaction, slack, depth) in [
        (1, 2, Compaction::SkipUniform, 1, 11),
        (2, 2, Compaction::SkipUniform, 1, 12),
        (2, 2, Compaction::Predict, 1, 12),
        (2, 2, Compaction::Predict, 2, 12),
    ] {
        let capt = Capt { entries: 1, ..Capt::DEFAULT };
        let s =
            Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, compaction, capt, slack, ..shape(lanes, warps) };
        let proof =
            BLOCK_STACK.at(&s.with_divergence(Divergence::BLOCK_STACK), depth, lanes == 1, block_stack_proof)?;
        let (letter, with) = match (compaction, slack) {
            (Compaction::Predict, 1) => ("p", ", predict"),
            (Compaction::Predict, _) => ("s", ", predict, slack"),
            _ => ("", ""),
        };
        all.push(Proof { name: proof.name + letter, shape: proof.shape + with, ..proof });
    }
    // With places to wait at that are no branches.
    for (lanes, warps) in [(2, 2), (4, 2)] {
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, ..Shape::new(lanes, warps) };
        let s = Shape { likely: true, barriers: true, ..s }.with_divergence(Divergence::BLOCK_STACK);
        let proof = BLOCK_STACK.at(&s, 12, false, block_stack_proof)?;
        all.push(Proof { name: proof.name + "l", shape: proof.shape + ", likely points", ..proof });
    }
    Ok(all)
}

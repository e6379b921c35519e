//! What is proven of dual path, and at which shapes.

use super::proof::dual_path_proof;
use crate::divergence::Divergence;
use crate::proof::{Block, Method, Proof};
use crate::shape::{Metrics, Replay, Shape};
use heddle_hdl::Errors;

const DUAL_PATH: Block = Block {
    name: "dual-path",
    block: "divergence/dual_path.rs",
    says: "Whatever it is told about where threads reconverge, every live thread of a warp is in exactly one place, at the pc and call \
           depth that outcomes and the instructions between them gave it; both sides are apart, and lanes - 1 levels are \
           enough; each side that comes to the top is steered once, in a bounded time, and only sides that run are flushed; \
           exactly the barriers of a part of a warp are refused.",
    method: Method::Induction,
    cover_depth: 14,
};

/// All of them.
pub fn proofs() -> Result<Vec<Proof>, Errors> {
    let mut all = Vec::new();
    let shape = |lanes, warps| Shape { barriers: false, ..Shape::new(lanes, warps) };
    for (lanes, warps, barriers, replay, path_forwarding) in [
        (1, 1, true, Replay::Serialise, false),
        (2, 1, false, Replay::Serialise, false),
        (2, 1, true, Replay::Split, false),
        (2, 2, true, Replay::Serialise, false),
        (4, 1, true, Replay::Serialise, false),
        (4, 1, false, Replay::Split, false),
        (4, 1, false, Replay::Serialise, true),
    ] {
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, barriers, ..shape(lanes, warps) };
        let s = Shape { replay, path_forwarding, ..s.with_divergence(Divergence::DUAL_PATH) };
        let quick = lanes == 2 && barriers;
        let proof = DUAL_PATH.at(&s, 2, quick, dual_path_proof)?;
        let (letter, with) = if replay == Replay::Split { ("s", ", split") } else { ("", "") };
        let (forwards, forwarding) = if path_forwarding { ("f", ", forwarding") } else { ("", "") };
        let (name, shape) = (proof.name + letter + forwards, proof.shape + with + forwarding);
        all.push(Proof { name, shape, ..proof });
    }
    Ok(all)
}

//! What the proofs of divergence units have in common: their inputs.

use super::UnitIn;
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub unit: UnitIn<T>,
    /// The thread that is followed.
    pub slot: T,
    pub lane: T,
    /// The lanes of the active path that are given to taken and to rest.
    pub taken: T,
    pub rest: T,
}

impl ProofIn<Width> {
    pub fn shape(s: &Shape) -> ProofIn<Width> {
        ProofIn { unit: UnitIn::shape(s), slot: s.warp_bits(), lane: s.lane_bits(), taken: s.lanes, rest: s.lanes }
    }
}

//! A mechanism for divergence.

use super::capabilities::Divergence;
use super::interface::{UnitIn, UnitOut};
use crate::shape::Shape;
use heddle_hdl::*;

/// A mechanism: a value of a type of its own, in the list [`MECHANISMS`](super::MECHANISMS).
pub trait Mechanism: Sync {
    /// What a configuration calls it, and what it is capable of.
    fn divergence(&self) -> Divergence;

    /// The divergence unit of a shape that has this mechanism.
    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>>;
}

//! A mechanism for divergence.

use super::capabilities::Divergence;
use super::interface::{UnitIn, UnitOut};
use crate::shape::Shape;
use heddle_hdl::*;

/// A row of the list [`MECHANISMS`](super::MECHANISMS).
#[derive(Clone, Copy)]
pub struct Mechanism {
    /// What a configuration calls it, and what it is capable of.
    pub divergence: Divergence,
    /// The divergence unit of a shape that has this mechanism.
    pub unit: fn(&Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>>,
}

//! The SIMT core and every divergence mechanism, described in the language of `heddle-hdl`.

pub mod csr;
pub mod divergence;
pub mod shape;

pub use divergence::Divergence;
pub use shape::{BankAddress, Shape, ShapeError};

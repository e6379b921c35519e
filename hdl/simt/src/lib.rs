//! The SIMT core and every divergence mechanism, described in the language of `heddle-hdl`.
//!
//! [`system::system`] is the whole: a [`core`](mod@core) with memories and launcher. [`pipeline`] has the stages,
//! [`divergence`] the mechanisms, [`lane`] the arithmetic of one lane, [`Shape`] the configuration.

pub mod arbiter;
pub mod core;
pub mod csr;
pub mod divergence;
pub mod isa;
pub mod lane;
pub mod metrics;
pub mod pipeline;
pub mod scoreboard;
pub mod shape;
pub mod system;

pub use divergence::Divergence;
pub use shape::{BankAddress, Shape, ShapeError};

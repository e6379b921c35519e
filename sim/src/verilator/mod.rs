//! Verilator: the generated Verilog as an engine.
//!
//! The Verilog of a design (in its co-simulation form) and a generated C++ shim are compiled at run time with whatever
//! Verilator is installed ([`Tool`]), loaded as a library, and driven through [`crate::Engine`]. Models are cached by a hash of all
//! that they are made from.
//!
//! Outputs, memories and, if the [`Recipe`] has them, probes can be seen; registers and named signals only in the model's
//! own waveform ([`Verilator::trace`]). Assertions are not looked at: the Rust side checks them on the same values.

mod build;
mod model;
mod shim;
mod tool;

pub use build::{BuildError, Built, Optimise, Recipe, cache};
pub use model::Verilator;
pub use tool::Tool;

//! Verilator: the generated Verilog as an engine.
//!
//! The Verilog of a design (in its co-simulation form) is compiled at run time by `heddle-verilated`, with whatever
//! Verilator is installed ([`Tool`]), and driven through [`crate::Engine`]. Models are cached by a hash of all that
//! they are made from.
//!
//! Outputs, memories and, if the [`Recipe`] has them, probes can be seen; registers and named signals only in the
//! model's own waveform ([`Verilator::trace`]). Assertions are not looked at: the Rust side checks them on the same
//! values.

mod model;
mod recipe;

pub use heddle_verilated::{BuildError, Optimise, Tool, cache};
pub use model::Verilator;
pub use recipe::Recipe;

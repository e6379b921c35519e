//! Random designs, to compare engines (and the Verilog) with each other.
//!
//! [`design`] makes a netlist from a seed, [`compare`] drives two engines on it with the same random inputs and looks at
//! everything each cycle, [`shrink`] makes a design that shows a mismatch smaller, and [`cone`] prints what a mismatch
//! depends on. All is a function of the seeds: a test prints them and can be repeated.

mod compare;
mod cone;
mod design;
mod shrink;

pub use compare::{Mismatch, Stimulus, compare};
pub use cone::cone;
pub use design::{Limits, design};
pub use shrink::shrink;

#[cfg(test)]
mod tests;

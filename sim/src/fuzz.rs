//! Random designs, to compare engines (and the Verilog) with each other.
//!
//! [`design`] makes a netlist from a seed, [`compare`] drives two engines on it with the same random inputs and looks at
//! everything each cycle, [`shrink`] makes a design that shows a mismatch smaller, and [`cone`] prints what a mismatch
//! depends on; [`hunt`] does all of it for one seed. All is a function of the seeds: a test prints them and can be
//! repeated.

mod compare;
mod cone;
mod design;
mod shrink;

pub use compare::{Mismatch, Stimulus, compare};
pub use cone::cone;
pub use design::{Limits, design, random_bits};
pub use shrink::shrink;

use crate::directory::Directory;
use heddle_hdl::netlist::Module;
use std::sync::Arc;

/// How many random designs a test tries: the environment variable `HEDDLE_FUZZ`, or `usual`.
pub fn count(usual: u64) -> u64 {
    std::env::var("HEDDLE_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Looks for a mismatch on the design of a seed, which `differs` finds with [`compare`] on engines that it makes. The
/// error is a report for people: the seed, the mismatch, and, for the shrunk design, the mismatch and its cone.
pub fn hunt(
    seed: u64,
    limits: &Limits,
    differs: impl Fn(&Arc<Module>) -> Result<(), Box<Mismatch>>,
) -> Result<(), String> {
    let top = design(seed, limits);
    let Err(first) = differs(&top) else { return Ok(()) };
    let small = shrink(&top, |candidate| differs(candidate).is_err());
    let found = differs(&small).expect_err("shrinking keeps the mismatch");
    let text = cone(&Directory::new(&small), &found.nodes, 60);
    Err(format!("seed {seed}: {first}\nshrunk: {found}\n{text}"))
}

#[cfg(test)]
mod tests;

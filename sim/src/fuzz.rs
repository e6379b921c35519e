//! Random designs, to compare engines (and the Verilog) with each other.
//!
//! [`design`] makes a netlist from a seed, [`compare`] drives two engines on it with the same random inputs and looks
//! at everything each cycle, [`compare_recordings`] holds their recordings together, [`shrink`] makes a design that
//! shows a mismatch smaller, and [`listing`] prints it; [`hunt`] does all of it for one seed. All is a function of the seeds: a test prints them and can be repeated.

mod compare;
mod design;
#[cfg(test)]
mod features;
mod lanes;
mod legal;
mod listing;
mod recordings;
mod shrink;

pub use compare::{Mismatch, Stimulus, compare};
pub use design::{Limits, design, random_bits};
pub use legal::is_legal;
pub use listing::listing;
pub use recordings::compare_recordings;
pub use shrink::shrink;

use heddle_hdl::netlist::Module;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The seeds that a test tries: the one in the environment variable `HEDDLE_SEED`; or the first `HEDDLE_FUZZ`, or
/// `usual`.
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    match number("HEDDLE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HEDDLE_FUZZ").unwrap_or(usual),
    }
}

/// Whether the environment asks for designs of its own, so that a test leaves none of its usual ones out: it has
/// `HEDDLE_LONG`, `HEDDLE_FUZZ` or `HEDDLE_SEED`.
pub fn none_left_out() -> bool {
    ["HEDDLE_LONG", "HEDDLE_FUZZ", "HEDDLE_SEED"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Looks for a mismatch on the design of a seed, which `differs` finds with [`compare`] on engines that it makes; a
/// panic counts as one. The error is a report for people: the seed, the mismatch, and, for the shrunk design, the
/// mismatch and all of it.
pub fn hunt(
    seed: u64,
    limits: &Limits,
    differs: impl Fn(&Arc<Module>) -> Result<(), Box<Mismatch>>,
) -> Result<(), String> {
    let differs = |top: &Arc<Module>| {
        catch_unwind(AssertUnwindSafe(|| differs(top))).unwrap_or_else(|panic| Err(Box::new(Mismatch::of_panic(panic))))
    };
    let top = design(seed, limits);
    let Err(first) = differs(&top) else { return Ok(()) };
    let small = shrink(&top, |candidate| differs(candidate).is_err());
    let found = differs(&small).expect_err("shrinking keeps the mismatch");
    Err(format!("seed {seed} (HEDDLE_SEED={seed} runs it alone): {first}\nshrunk: {found}\n{}", listing(&small, 120)))
}

#[cfg(test)]
mod tests;

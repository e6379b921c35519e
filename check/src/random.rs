//! Random programs: RV32IMA code whose threads diverge and meet in every way, on memory of their own and on some that
//! all share.
//!
//! A [`RandomProgram`] is a few functions of basic blocks whose edges go anywhere: forward, backward, nested, crossing,
//! through tables of jumps; with calls, recursion and threads that end early. Few registers, so that instructions wait
//! for each other; loads, multiplications and divisions, so that they wait for results that come late.
//!
//! Threads race in main memory and in the scratchpad, by atomics too; they come to barriers anywhere, in groups or
//! alone, but each to as many as the others, unless it ends before. A launch may have many blocks.
//!
//! It ends by construction: an edge backward takes one from a count that only falls ([`RandomProgram::fuel`]), a call
//! from another, and all other edges lead forward.
//!
//! [`RandomProgram::assemble`] makes instructions for a shape. [`search`] runs programs through a check and makes the
//! first that fails as small as it can.

mod assemble;
mod program;

pub use assemble::{DATA, Features};
pub use program::{Access, Block, Condition, End, Function, GridSize, Hint, Init, Op, RandomProgram, Shared};

use fastrand::Rng;

/// Programs that [`search`] tries to make a failing one smaller.
const SHRINKING: usize = 3000;

/// The program of a seed.
pub fn program(seed: u64) -> RandomProgram {
    RandomProgram::new(&mut Rng::with_seed(seed))
}

/// A program that fails a check.
#[derive(Clone, Debug)]
pub struct Failing {
    /// The seed it began with.
    pub seed: u64,
    /// As small as it became.
    pub program: RandomProgram,
    /// What the check says of it.
    pub message: String,
}

/// The first seed whose program fails the check, and the smallest program made from it that still fails.
pub fn search(
    seeds: impl IntoIterator<Item = u64>,
    mut check: impl FnMut(&RandomProgram) -> Result<(), String>,
) -> Option<Failing> {
    for seed in seeds {
        let program = program(seed);
        let Err(message) = check(&program) else { continue };
        let mut failing = Failing { seed, program, message };
        let mut tries = SHRINKING;
        let mut smaller = |failing: &Failing| {
            failing.program.smaller().take(tries).find_map(|program| {
                tries -= 1;
                check(&program).err().map(|message| Failing { seed, program, message })
            })
        };
        while let Some(found) = smaller(&failing) {
            failing = found;
        }
        return Some(failing);
    }
    None
}

#[cfg(test)]
mod tests;

//! The mechanisms of `docs/guide/add-a-mechanism.md`: kernels on both, and on that from outside what others have by
//! their row in the list, random programs. `cli/tests/command/mechanism.rs` builds the latter as a command of its own.

use crate::random::programs_on;
use crate::sweep::kernels;
use heddle_simt::divergence::Divergence;
use heddle_simt::divergence::list::List;
use heddle_simt::{Schedule, Shape};

#[path = "../../../examples/my-mechanism/src/mine.rs"]
mod mine;

const MINE: Divergence = Divergence::new(&mine::Mine);

#[test]
fn kernels_on_a_list() {
    kernels(&Shape::new(8, 2).with_divergence(Divergence::new(&List)), 6);
}

#[test]
fn kernels_on_a_mechanism_from_outside() {
    kernels(&Shape::new(8, 2).with_divergence(MINE), 6);
}

#[test]
fn random_programs_on_a_mechanism_from_outside() {
    for (lanes, warps) in [(1, 1), (2, 8), (4, 2), (16, 4), (64, 1)] {
        programs_on(&Shape { schedule: Schedule::Sticky, ..Shape::new(lanes, warps).with_divergence(MINE) });
    }
}

//! `minority` and `majority`: depth first, the side of a branch with fewer threads before the other, or the one with
//! more; of as many, the one with the lesser pc. (`path-lists-simty.txt` §2.2)
//!
//! With the smaller side first the active path is at least halved by each branch, so that a stack of log2(lanes) paths
//! is enough where no thread comes back to it.

use super::stack::First;
use crate::divergence::path_table::ccs::CcsIn;
use heddle_hdl::prelude::*;

pub fn fewer_first(i: &CcsIn<Signal>) -> First {
    let (a, b) = counts(i);
    sides(i, a.lt(b) | (a.eq(b) & i.a.pc.le(i.b.pc)))
}

pub fn more_first(i: &CcsIn<Signal>) -> First {
    let (a, b) = counts(i);
    sides(i, b.lt(a) | (a.eq(b) & i.a.pc.le(i.b.pc)))
}

fn counts(i: &CcsIn<Signal>) -> (Signal, Signal) {
    (i.a.mask.count_ones(), i.b.mask.count_ones())
}

/// Else than at a branch, `a` is the active path and `b` what is behind it.
fn sides(i: &CcsIn<Signal>, a_of_b: Signal) -> First {
    let branch = i.stacks.expect("a stack").outcome;
    let always = branch.literal(1u32);
    First { a_of_b: a_of_b | !branch, a_of_c: always, b_of_c: always }
}

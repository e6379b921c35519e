//! `minority` and `majority`: depth first, the side of a branch with fewer threads before the other, or the one with
//! more; of as many, the one with the lesser pc. (`path-lists-simty.txt` §2.2)
//!
//! With the smaller side first the active path is at least halved by each branch, so that a stack of log2(lanes) paths
//! is enough where no thread comes back to it. Not in an [LR/SC sequence](crate::divergence::sequence), in which the side with
//! the lesser pc is first: behind it may be the `sc.w`.

use super::stack::First;
use crate::divergence::path_table::ccs::CcsIn;
use heddle_hdl::prelude::*;

pub fn fewer_first(i: &CcsIn<Signal>) -> First {
    first(i, |a, b| a.lt(b))
}

pub fn more_first(i: &CcsIn<Signal>) -> First {
    first(i, |a, b| b.lt(a))
}

/// By numbers of threads. Else than at a branch, `a` is the active path and `b` what is behind it.
fn first(i: &CcsIn<Signal>, before: impl Fn(Signal, Signal) -> Signal) -> First {
    let (a, b) = (i.a.mask.count_ones(), i.b.mask.count_ones());
    let lesser_pc = i.a.pc.le(i.b.pc);
    let counted = before(a, b) | (a.eq(b) & lesser_pc);
    let a_of_b = i.lasts.map_or(counted, |lasts| lasts.mux(lesser_pc, counted));
    let branch = i.stacks.expect("a stack").outcome;
    let always = branch.literal(1u32);
    First { a_of_b: a_of_b | !branch, a_of_c: always, b_of_c: always }
}

//! The order in which the paths of a warp are traversed: which of three paths comes first.
//!
//! `path-lists-simty.txt` §2 describes mechanisms for divergence as traversals of the control-flow graph by a list of
//! paths, whose first runs. Here each is what the comparators of the compact-and-sort unit ([`super::ccs`]) say.
//!
//! | order | paper | the list |
//! |---|---|---|
//! | `depth-pc` | §2.4, Figure 1e | [sorted] by call depth, then pc |
//! | `pc` | §2.4, Figure 1e | [sorted] by pc: no call is counted |
//! | `swap` | §2.1, Figure 1b | a [stack] on which the [lesser pc](swap) is first |
//! | `minority`, `majority` | §2.2, Figure 1c | a [stack] on which the side with [fewer or more threads](activity) is first |
//! | `breadth-first` | §2.3, Figure 1d | sorted as `depth-pc`, but each path has [given way](crate::divergence::fairness) after an outcome |
//!
//! In all of them, paths that wait come after those that have given way, and these after all others: their *rank* is
//! greater. Within a rank an order does as it likes; paths of a rank in one place become one where they meet in the
//! unit, unless [`Merge::Barriers`] keeps them apart. Only sorted lists bring such paths side by side; the others need
//! convergence barriers where threads are to meet, the synchronisation points of Figure 1.

mod activity;
mod sorted;
mod stack;
mod swap;
#[cfg(test)]
pub mod testing;

use super::ccs::CcsIn;
use crate::divergence::Path;
use crate::shape::{Merge, Order, Shape};
use heddle_hdl::prelude::*;

/// What an order says of two paths p and q that both are valid, 1 bit each; neither, if both are in the same place.
#[derive(Clone, Copy)]
pub struct Relation {
    /// p comes before q.
    pub less: Signal,
    /// q comes before p.
    pub greater: Signal,
}

/// What it says of a and b, of a and c, and of b and c.
pub fn relations(s: &Shape, i: &CcsIn<Signal>) -> [Relation; 3] {
    let first = match s.order {
        Order::DepthPc | Order::Pc | Order::BreadthFirst => return sorted::relations(s, i),
        Order::Swap => swap::first(i),
        Order::Minority => activity::fewer_first(i),
        Order::Majority => activity::more_first(i),
    };
    stack::relations(s, i, first)
}

/// The number that paths of a sorted list are sorted by, least first: those that can run, of these those that have not
/// given way, greatest depth, least pc. Paths in the same place have the same.
pub fn key(p: Path<Signal>) -> Signal {
    cat(&[p.pc, !p.depth, p.waits])
}

/// The upper bits of the key, whatever the order: whether a path waits, and whether it has given way.
pub fn rank(s: &Shape, p: Path<Signal>) -> Signal {
    if s.gives_way() { cat(&[!p.depth.msb(), p.waits]) } else { p.waits }
}

/// Whether paths that meet in the unit become one.
pub fn merges(s: &Shape) -> bool {
    s.merge == Merge::Pc
}

//! Sorted lists: `depth-pc`, `pc` and `breadth-first`. (`path-lists-simty.txt` §2.4)
//!
//! They differ in what a path's depth says. Under `pc` no call is counted, so it is 0. Under `breadth-first` the bit
//! above it is set by every outcome, so that whoever has had one comes after all who have not. In an
//! [LR/SC sequence](crate::divergence::sequence) the active path stays first, and the sorter mends the list behind it.

use super::{Relation, key, rank};
use crate::divergence::Path;
use crate::divergence::path_table::ccs::CcsIn;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

pub fn relations(s: &Shape, i: &CcsIn<Signal>) -> [Relation; 3] {
    let &CcsIn { a, b, c, lasts, .. } = i;
    let sorted = [(a, b), (a, c), (b, c)].map(|(p, q)| {
        // Two carry chains: that neither is less comes sooner than a comparison bit by bit says that they are equal.
        let (less, greater) = (key(p).lt(key(q)), key(q).lt(key(p)));
        Relation { less, greater }
    });
    let Some(lasts) = lasts else { return sorted };
    let [ab, ac, bc] = sorted;
    // In a sequence a and b stay before c; if one of them meets it, c is where that is.
    let stays = |p: Path<Signal>, of: Relation, other: Path<Signal>, of_other: Relation| {
        let is_other = other.valid & !of_other.less & !of_other.greater;
        let stays = lasts & rank(s, p).eq(rank(s, c)) & !is_other;
        Relation { less: of.less | (stays & of.greater), greater: of.greater & !stays }
    };
    [ab, stays(a, ac, b, bc), stays(b, bc, a, ac)]
}

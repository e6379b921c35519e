//! Sorted lists: `depth-pc`, `pc` and `breadth-first`. (`path-lists-simty.txt` §2.4)
//!
//! They differ in what a path's depth says. Under `pc` no call is counted, so it is 0. Under `breadth-first` the bit
//! above it is set by every outcome, so that whoever has had one comes after all who have not.

use super::{Relation, key};
use crate::divergence::path_table::ccs::CcsIn;
use heddle_hdl::prelude::*;

pub fn relations(i: &CcsIn<Signal>) -> [Relation; 3] {
    [(i.a, i.b), (i.a, i.c), (i.b, i.c)].map(|(p, q)| {
        // Two carry chains: that neither is less comes sooner than a comparison bit by bit says that they are equal.
        let (less, greater) = (key(p).lt(key(q)), key(q).lt(key(p)));
        Relation { less, greater }
    })
}

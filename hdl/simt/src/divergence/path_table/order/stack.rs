//! A list that is a stack: what has become of the active path is before what was there. (`path-lists-simty.txt` §2.1)
//!
//! `a` and `b`, the sides of a branch, are pushed onto `c`, the one that runs last. A side in the place of `c` becomes
//! one with it, and `c` is then where that side is. Paths below `c` are not compared.

use super::{Relation, key, merges, rank};
use crate::divergence::Path;
use crate::divergence::path_table::ccs::CcsIn;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Which of two paths comes before the other, if they are of one rank and not in one place, 1 bit each.
#[derive(Clone, Copy)]
pub struct First {
    /// `a` before `b`.
    pub a_of_b: Signal,
    /// `a` before `c` where there is no `b`, and `b` before `c` where there is no `a`.
    pub a_of_c: Signal,
    pub b_of_c: Signal,
}

pub fn relations(s: &Shape, i: &CcsIn<Signal>, first: First) -> [Relation; 3] {
    let &CcsIn { a, b, c, a_first, stacks, .. } = i;
    let seeks = stacks.expect("a stack").seeks;
    let same = |p: Path<Signal>, q: Path<Signal>| key(p).eq(key(q));
    let of_rank = |p: Path<Signal>, q: Path<Signal>, first: Signal| {
        let one_rank = rank(s, p).eq(rank(s, q));
        let apart = if merges(s) { one_rank & !same(p, q) } else { one_rank };
        Relation {
            less: rank(s, p).lt(rank(s, q)) | (apart & first),
            greater: rank(s, q).lt(rank(s, p)) | (apart & !first),
        }
    };
    let ab = of_rank(a, b, first.a_of_b | seeks);
    let ac = of_rank(a, c, b.valid | seeks | first.a_of_c);
    let bc = of_rank(b, c, (a.valid | first.b_of_c) & !seeks);
    if !merges(s) {
        return [ab, ac, bc];
    }
    // Two that become one are to the third what the one is that comes first.
    let one = |p: Path<Signal>, q: Path<Signal>| p.valid & q.valid & same(p, q) & !a_first;
    let either = |one: Signal, [less, greater]: [Signal; 2], other: Relation| Relation {
        less: one.mux(less, other.less),
        greater: one.mux(greater, other.greater),
    };
    let bc_of_a = either(one(a, b), [ac.less, ac.greater], bc);
    [ab, either(one(b, c), [ab.less, ab.greater], ac), either(one(a, c), [ab.greater, ab.less], bc_of_a)]
}

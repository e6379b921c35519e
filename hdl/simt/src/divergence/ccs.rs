//! The compact-and-sort unit of the path tables: three paths in, merged and sorted paths out, in one cycle.
//!
//! `path-lists-simty.txt` §3.2: all pairwise comparators work in parallel, and Boolean functions of their results drive
//! three-input multiplexers, so that the delay is one comparator and one multiplexer and not a sorting network.
//!
//! Combinational. Paths of equal depth and pc become one; the others come out by greatest depth, then least pc, as
//! x, y, z with no gap. Paths that wait come after all others, in the same order, and meet only each other. Fields of an invalid path mean nothing, on both sides.
//!
//! Under [`Merge::Barriers`] no paths become one; equals stay in the order a, b, c.
//!
//! What it does not do: it keeps no state, and it does not know where the paths come from.

use super::Path;
use crate::shape::{Merge, Shape};
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CcsIn<T> {
    /// Valid paths have disjoint masks.
    pub a: Path<T>,
    pub b: Path<T>,
    pub c: Path<T>,
    /// 1 bit, only with a valid `a`: x is `a`, wherever it belongs and without a merge. Sorts `b` and `c` below a path
    /// that is running.
    pub a_first: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CcsOut<T> {
    pub x: Path<T>,
    pub y: Path<T>,
    pub z: Path<T>,
    /// How many paths became one with another, 2 bits.
    pub merges: T,
    /// 1 bit: x is `b` with nothing merged into it.
    pub x_is_b: T,
    /// 1 bit: `b` and `c` are valid, and `b` belongs before `c`.
    pub b_before_c: T,
    /// 1 bit: y is valid, at x's depth and at a greater pc, and waits if x does: x will meet it if it goes straight on.
    pub y_ahead: T,
}

impl CcsIn<Width> {
    pub fn shape(s: &Shape) -> CcsIn<Width> {
        let path = Path::shape(s);
        CcsIn { a: path, b: path, c: path, a_first: 1 }
    }
}

/// What the comparators say of two paths, 1 bit each, whether they are valid or not.
struct Compared {
    /// The same depth, and both wait or neither does.
    same_depth: Signal,
    same: Signal,
    /// The second belongs before the first.
    reversed: Signal,
}

fn compare(p: Path<Signal>, q: Path<Signal>) -> Compared {
    let same_depth = p.depth.eq(q.depth) & p.waits.eq(q.waits);
    Compared { same_depth, same: same_depth & p.pc.eq(q.pc), reversed: key(q).lt(key(p)) }
}

/// The number that paths are sorted by, least first: those that can run, greatest depth, least pc.
fn key(p: Path<Signal>) -> Signal {
    cat(&[p.pc, !p.depth, p.waits])
}

/// Which of `a`, `b`, `c` a multiplexer lets through, 1 bit each.
type Choice = [Signal; 3];

/// One of the paths, with the masks of all that are part of it.
fn choose(paths: [Path<Signal>; 3], valid: Signal, [ia, ib, _]: Choice, parts: Choice) -> Path<Signal> {
    let [a, b, c] = paths;
    let masks = a.mask.only_if(parts[0]) | b.mask.only_if(parts[1]) | c.mask.only_if(parts[2]);
    Path {
        valid,
        depth: pick([(ia, a.depth), (ib, b.depth)], c.depth),
        pc: pick([(ia, a.pc), (ib, b.pc)], c.pc),
        mask: masks,
        waits: pick([(ia, a.waits), (ib, b.waits)], c.waits),
    }
}

/// The compact-and-sort unit of a shape.
pub fn ccs(s: &Shape) -> TypedModule<CcsIn<Width>, CcsOut<Signal>> {
    module("ccs", CcsIn::shape(s), |m, i| {
        m.doc("Compact and sort: merges equal paths and puts the others in order.");
        let i = CcsIn { a: i.a.as_built(s), b: i.b.as_built(s), c: i.c.as_built(s), a_first: i.a_first };
        let CcsIn { a, b, c, a_first } = i;
        let (to_b, to_c, b_to_c) = (compare(a, b), compare(a, c), compare(b, c));
        let merges = s.merge == Merge::Pc;
        let meet = |met: Signal| if merges { met } else { m.lit(0u32, 1) };
        wire!(ab = meet(a.valid & b.valid & to_b.same & !a_first));
        wire!(ac = meet(a.valid & c.valid & to_c.same & !a_first));
        wire!(bc = meet(b.valid & c.valid & b_to_c.same));

        // A path that merges becomes part of the first of its equals; the paths that remain are in strict order.
        wire!(b_remains = b.valid & !ab);
        wire!(c_remains = c.valid & !ac & !bc);
        wire!(ba = b_remains & (!a.valid | (to_b.reversed & !a_first)));
        wire!(ca = c_remains & (!a.valid | (to_c.reversed & !a_first)));
        wire!(cb = c_remains & (!b_remains | b_to_c.reversed));

        let first = [!ba & !ca, ba & !cb, ca & cb];
        let second = [ba ^ ca, !(ba ^ ca) & !(ba ^ cb), !(ba ^ ca) & (ba ^ cb)];
        let third = [ba & ca, !ba & cb, !ca & !cb];
        let parts = |[ia, ib, ic]: Choice| [ia, ib | (ia & ab), ic | (ia & ac) | (ib & bc)];

        let paths = [a, b, c];
        let two = (a.valid & b_remains) | (a.valid & c_remains) | (b_remains & c_remains);
        wire!(x = choose(paths, a.valid | b.valid | c.valid, first, parts(first)));
        wire!(y = choose(paths, two, second, parts(second)));
        wire!(z = choose(paths, a.valid & b_remains & c_remains, third, third));

        let met = |pair: &Compared| pair.same_depth & (!a_first | !(pair.reversed | pair.same));
        let ahead = (third[0] & b_to_c.same_depth) | (third[1] & met(&to_c)) | (third[2] & met(&to_b));
        let out = CcsOut {
            x,
            y,
            z,
            merges: (ab | bc).zext(2) + ac.zext(2),
            x_is_b: first[1] & !bc,
            b_before_c: b.valid & c.valid & !b_to_c.reversed & !b_to_c.same,
            y_ahead: meet(two & ahead),
        };
        properties(m, &i, &out, merges);
        m.cover("order_abc", z.valid & !ba & !ca & !cb);
        m.cover("order_acb", z.valid & !ba & !ca & cb);
        m.cover("order_bac", z.valid & ba & !ca & !cb);
        m.cover("order_bca", z.valid & ba & ca & !cb);
        m.cover("order_cab", z.valid & !ba & ca & cb);
        m.cover("order_cba", z.valid & ba & ca & cb);
        let pair = |p: Signal, q: Signal| two & !z.valid & p & q;
        m.cover("a_before_b", pair(a.valid, b_remains) & !ba);
        m.cover("b_before_a", pair(a.valid, b_remains) & ba);
        m.cover("a_before_c", pair(a.valid, c_remains) & !ca);
        m.cover("c_before_a", pair(a.valid, c_remains) & ca);
        m.cover("b_before_c", pair(b_remains, c_remains) & !cb);
        m.cover("c_before_b", pair(b_remains, c_remains) & cb);
        m.cover("a_alone", a.valid & !two);
        m.cover("b_alone", b_remains & !two);
        m.cover("c_alone", c_remains & !two);
        if merges {
            m.cover("a_meets_b", ab & !ac);
            m.cover("a_meets_c", ac & !ab);
            m.cover("b_meets_c", bc & !ab);
            m.cover("all_meet", ab & ac);
        }
        if s.barriers {
            m.cover("one_waits", y.valid & y.waits & !x.waits);
        }
        if s.barriers && merges {
            m.cover("waiting_paths_meet", x.valid & x.waits & (ab | ac | bc));
        }
        out
    })
}

/// What must hold of the outputs, said without the selection above.
fn properties(m: Builder, i: &CcsIn<Signal>, o: &CcsOut<Signal>, merges: bool) {
    let held = |p: Path<Signal>| p.mask.only_if(p.valid);
    let disjoint = |[p, q, r]: [Signal; 3]| !((p & q) | (p & r) | (q & r)).any();
    let (ins, outs) = ([i.a, i.b, i.c].map(held), [o.x, o.y, o.z].map(held));
    m.assume("inputs_disjoint", disjoint(ins));
    m.assume("a_first_is_valid", i.a.valid | !i.a_first);
    m.assert("no_thread_lost", (ins[0] | ins[1] | ins[2]).eq(outs[0] | outs[1] | outs[2]));
    m.assert("outputs_disjoint", disjoint(outs));
    m.assert("no_gap", (o.x.valid | !o.y.valid) & (o.y.valid | !o.z.valid));
    let before = |p: Signal, q: Signal| if merges { p.lt(q) } else { p.le(q) };
    m.assert("x_before_y", !o.y.valid | i.a_first | before(key(o.x), key(o.y)));
    m.assert("y_before_z", !o.z.valid | before(key(o.y), key(o.z)));
    m.assert("a_stays_first", !i.a_first | o.x.same_as(i.a));
    let ahead = o.y.valid & o.x.depth.eq(o.y.depth) & o.x.waits.eq(o.y.waits) & o.x.pc.lt(o.y.pc);
    m.assert("ahead_is_at_a_greater_pc", o.y_ahead.eq(if merges { ahead } else { m.lit(0u32, 1) }));
}

pub mod proof;
#[cfg(test)]
mod tests;

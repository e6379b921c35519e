//! The compact-and-sort unit of the path tables: three paths in, merged and sorted paths out, in one cycle.
//!
//! `path-lists-simty.txt` §3.2: all pairwise comparators work in parallel, and Boolean functions of their results drive
//! three-input multiplexers, so that the delay is one comparator and one multiplexer and not a sorting network.
//!
//! Combinational. Paths of equal depth and pc become one; the others come out by greatest depth, then least pc, as x,
//! y, z with no gap. Paths that wait come after all others, in the same order, and meet only each other. Fields of an
//! invalid path mean nothing, on both sides.
//!
//! Under [`Merge::Barriers`] no paths become one; equals stay in the order a, b, c. Other [orders](super::order) have other
//! ideas of what comes first.
//!
//! What it does not do: it keeps no state, and it does not know where the paths come from.

use super::order::{self, Relation, key, rank, relations};
use crate::divergence::Path;
use crate::shape::{Order, Shape};
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CcsIn<T> {
    /// Valid paths have disjoint masks.
    pub a: Path<T>,
    pub b: Path<T>,
    pub c: Path<T>,
    /// 1 bit, only with a valid `a`: x is `a`, wherever it belongs and without a merge. Sorts `b` and `c` below a path
    /// that is running.
    pub a_first: T,
    /// What the turn is to a stack, of [orders](super::order) that are one.
    #[when(s.order.is_stack())]
    pub stacks: Option<Stacks<T>>,
    /// 1 bit: `a` and `b` have become of the active path within an [LR/SC sequence](crate::divergence::sequence): they stay
    /// before `c`, unless they meet it, and the one with the lesser pc is first. Where something is kept of sequences.
    #[when(s.keeps_sequences())]
    pub lasts: Option<T>,
}

/// What a turn does to a stack.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(_s: &Shape)]
pub struct Stacks<T> {
    /// 1 bit: `a` and `b` are what has become of the active path.
    pub outcome: T,
    /// 1 bit: `b` is from below `c`, and goes before it only if it can run and `c` cannot.
    pub seeks: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CcsOut<T> {
    /// All zeros if no path is valid.
    pub x: Path<T>,
    pub y: Path<T>,
    pub z: Path<T>,
    /// How many paths became one with another, 2 bits.
    pub merges: T,
    /// 1 bit: x is `b` with nothing merged into it.
    pub x_is_b: T,
    /// 1 bit: `b` and `c` are valid, and `b` belongs before `c`; of orders that are a stack, only if none are merged.
    pub b_before_c: T,
    /// 1 bit: y is valid, at x's depth and at a greater pc, and waits if x does: x will meet it if it goes straight on.
    pub y_ahead: T,
}

/// What the comparators say of two paths p and q, 1 bit each. Nothing, if not both are valid.
#[derive(Clone, Copy)]
struct Pair {
    /// They become one.
    meet: Signal,
    /// p comes before q, and the other way round; neither where they reconverge.
    before: Signal,
    after: Signal,
    /// One comes before the other at the same depth and by a lesser pc, and both wait or neither does.
    ahead: Signal,
    /// Whatever is held first: p comes before q.
    less: Signal,
}

/// `p_first`: p comes before q whatever they are, and does not meet it.
fn compare(merges: bool, p: Path<Signal>, q: Path<Signal>, relation: Relation, p_first: Signal) -> Pair {
    let both = p.valid & q.valid;
    let same_depth = p.depth.eq(q.depth) & p.waits.eq(q.waits);
    let Relation { less, greater } = relation;
    let after = greater & !p_first;
    Pair {
        // Equals that do not meet stay as they are.
        meet: if merges { both & !less & !greater & !p_first } else { both.literal(0u32) },
        before: both & (p_first | if merges { less } else { !greater }),
        after: both & after,
        ahead: both & same_depth & (less | after),
        less: both & less,
    }
}

/// Which of `a`, `b`, `c` are part of an output, 1 bit each. If there are several they have met.
type Parts = [Signal; 3];

/// One of the paths, with the masks of all that are part of it. Zeros without a part.
fn choose(paths: [Path<Signal>; 3], valid: Signal, parts: Parts) -> Path<Signal> {
    let sum = |field: fn(&Path<Signal>) -> Signal| {
        let [a, b, c] = [0, 1, 2].map(|k| field(&paths[k]).only_if(parts[k]));
        a | b | c
    };
    Path { valid, depth: sum(|p| p.depth), pc: sum(|p| p.pc), mask: sum(|p| p.mask), waits: sum(|p| p.waits) }
}

/// The compact-and-sort unit of a shape.
pub fn ccs(s: &Shape) -> TypedModule<CcsIn<Width>, CcsOut<Signal>> {
    module("ccs", CcsIn::shape(s), |m, i| {
        m.doc("Compact and sort: merges equal paths and puts the others in order.");
        let i = CcsIn { a: i.a.as_built(s), b: i.b.as_built(s), c: i.c.as_built(s), ..i };
        let CcsIn { a, b, c, a_first, .. } = i;
        let merges = order::merges(s);
        let free = m.lit(0u32, 1);
        let [ab, ac, bc] = relations(s, &i);
        let ab = compare(merges, a, b, ab, a_first);
        let ac = compare(merges, a, c, ac, a_first);
        let bc = compare(merges, b, c, bc, free);

        // Each path looks at the other two. Nobody before it: it is part of x. One, or two that meet: of y. Two: of z.
        let first =
            [a.valid & !ab.after & !ac.after, b.valid & !ab.before & !bc.after, c.valid & !ac.before & !bc.before];
        let second = |one: Signal, other: Signal, meet: Signal| (one | other) & !(one & other & !meet);
        let second = [
            second(ab.after, ac.after, bc.meet),
            second(ab.before, bc.after, ac.meet),
            second(ac.before, bc.before, ab.meet),
        ];
        let third = [ab.after & ac.after, ab.before & bc.after, ac.before & bc.before];
        let differ = |pair: Pair| pair.before | pair.after;
        wire!(two = differ(ab) | differ(ac) | differ(bc));
        wire!(three = differ(ab) & differ(ac) & differ(bc));

        let paths = [a, b, c];
        wire!(x = choose(paths, a.valid | b.valid | c.valid, first));
        wire!(y = choose(paths, two, second));
        wire!(z = choose(paths, three, third));

        // Two are x and y if neither is z.
        let last = third.map(|third| third & three);
        let ahead =
            (ab.ahead & !last[0] & !last[1]) | (ac.ahead & !last[0] & !last[2]) | (bc.ahead & !last[1] & !last[2]);
        let ahead = if s.order.is_stack() || s.keeps_sequences() { is_ahead(x, y) } else { ahead };
        let out = CcsOut {
            x,
            y,
            z,
            merges: (ab.meet | bc.meet).zext(2) + ac.meet.zext(2),
            x_is_b: first[1] & !first[0] & !first[2],
            b_before_c: bc.less,
            y_ahead: if merges { ahead } else { m.lit(0u32, 1) },
        };
        properties(m, s, &i, &out);
        let order = |[p, q, r]: [usize; 3]| three & first[p] & second[q] & third[r];
        m.cover("order_abc", order([0, 1, 2]));
        m.cover("order_acb", order([0, 2, 1]));
        m.cover("order_bac", order([1, 0, 2]));
        m.cover("order_bca", order([1, 2, 0]));
        m.cover("order_cab", order([2, 0, 1]));
        m.cover("order_cba", order([2, 1, 0]));
        m.cover("a_before_b", two & !three & ab.before);
        m.cover("b_before_a", two & !three & ab.after);
        m.cover("a_before_c", two & !three & ac.before);
        m.cover("c_before_a", two & !three & ac.after);
        m.cover("b_before_c", two & !three & bc.before);
        m.cover("c_before_b", two & !three & bc.after);
        m.cover("a_alone", a.valid & !two);
        m.cover("b_alone", b.valid & !a.valid & !two);
        m.cover("c_alone", c.valid & !a.valid & !b.valid & !two);
        if merges {
            m.cover("a_meets_b", ab.meet & !ac.meet);
            m.cover("a_meets_c", ac.meet & !ab.meet);
            m.cover("b_meets_c", bc.meet & !ab.meet);
            m.cover("all_meet", ab.meet & ac.meet);
        }
        if s.barriers {
            m.cover("one_waits", y.valid & y.waits & !x.waits);
        }
        if s.barriers && merges {
            m.cover("waiting_paths_meet", x.valid & x.waits & (ab.meet | ac.meet | bc.meet));
        }
        out
    })
}

/// 1 bit: y is valid, at x's depth and at a greater pc, and waits if x does.
fn is_ahead(x: Path<Signal>, y: Path<Signal>) -> Signal {
    y.valid & x.depth.eq(y.depth) & x.waits.eq(y.waits) & x.pc.lt(y.pc)
}

/// What must hold of the outputs, said without the selection above.
fn properties(m: Builder, s: &Shape, i: &CcsIn<Signal>, o: &CcsOut<Signal>) {
    let merges = order::merges(s);
    let held = |p: Path<Signal>| p.mask.only_if(p.valid);
    let disjoint = |[p, q, r]: [Signal; 3]| !((p & q) | (p & r) | (q & r)).any();
    let (ins, outs) = ([i.a, i.b, i.c].map(held), [o.x, o.y, o.z].map(held));
    m.assume("inputs_disjoint", disjoint(ins));
    m.assume("a_first_is_valid", i.a.valid | !i.a_first);
    m.assert("no_thread_lost", (ins[0] | ins[1] | ins[2]).eq(outs[0] | outs[1] | outs[2]));
    m.assert("outputs_disjoint", disjoint(outs));
    m.assert("no_path_is_zeros", o.x.valid | !o.x.pack().any());
    m.assert("no_gap", (o.x.valid | !o.y.valid) & (o.y.valid | !o.z.valid));
    let lasts = i.lasts.unwrap_or(m.lit(0u32, 1));
    let before = |p: Path<Signal>, q: Path<Signal>| match (s.order.is_stack(), merges) {
        (true, _) => rank(s, p).le(rank(s, q)),
        (false, true) => lasts.mux(rank(s, p).le(rank(s, q)), key(p).lt(key(q))),
        (false, false) => lasts.mux(rank(s, p).le(rank(s, q)), key(p).le(key(q))),
    };
    m.assert("x_before_y", !o.y.valid | i.a_first | before(o.x, o.y));
    m.assert("y_before_z", !o.z.valid | before(o.y, o.z));
    if let Some(stacks) = &i.stacks {
        let one_rank = rank(s, i.a).eq(rank(s, i.b)) & rank(s, i.a).eq(rank(s, i.c));
        let third = o.z.valid & one_rank & !stacks.seeks;
        m.assert("what_was_there_is_below_what_has_come", !third | o.z.mask.eq(i.c.mask));
        let chosen = |order: Order, least: fn(Signal, Signal) -> Signal| {
            let counts = (o.x.mask.count_ones(), o.y.mask.count_ones());
            m.lit(s.order != order, 1) | least(counts.0, counts.1)
        };
        let parts = third & stacks.outcome & !i.a_first;
        let counted = parts & !lasts;
        m.assert("the_minority_runs", !counted | chosen(Order::Minority, Signal::le));
        m.assert("the_majority_runs", !counted | chosen(Order::Majority, Signal::ge));
        let by_pc = lasts | m.lit(s.order == Order::Swap, 1);
        m.assert("the_lesser_pc_runs", !parts | !by_pc | o.x.pc.le(o.y.pc));
    }
    m.assert("a_stays_first", !i.a_first | o.x.same_as(i.a));
    let ahead = is_ahead(o.x, o.y);
    m.assert("ahead_is_at_a_greater_pc", o.y_ahead.eq(if merges { ahead } else { m.lit(0u32, 1) }));
}

pub mod proof;
#[cfg(test)]
mod tests;

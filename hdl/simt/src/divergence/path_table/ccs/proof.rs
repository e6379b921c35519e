//! What the compact-and-sort unit does to paths, for every input.
//!
//! One thread is followed, any of them: it comes out exactly if it came in, in one path, which has the depth and pc of
//! the path that it came in with. Order and merging are assertions of the unit itself.

use super::{CcsIn, CcsOut, ccs, key, rank};
use crate::divergence::Path;
use crate::proof::{cover, implies};
use crate::shape::Shape;
use heddle_hdl::elements;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ProofIn<T> {
    /// The paths; their masks are made from `owners`.
    pub ccs: CcsIn<T>,
    /// Two bits per lane: its thread is in a, b, c or in none.
    #[width(2 * s.lanes)]
    pub owners: T,
    /// The thread that is followed.
    #[width(s.lane_bits())]
    pub thread: T,
}

/// The unit with all legal inputs: a path is valid exactly if it has threads, each thread is in one path or in none.
pub fn ccs_proof(s: &Shape) -> TypedModule<ProofIn<Width>, CcsOut<Signal>> {
    module("ccs_proof", ProofIn::shape(s), |m, i| {
        let owners = elements(i.owners, 2);
        let path = |p: Path<Signal>, number: u32| {
            let mask = cat(&owners.iter().map(|owner| owner.eq(number)).collect::<Vec<_>>());
            Path { valid: mask.any(), mask, ..p }.as_built(s)
        };
        let [a, b, c] = [path(i.ccs.a, 0), path(i.ccs.b, 1), path(i.ccs.c, 2)];
        wire!(a_first = i.ccs.a_first & a.valid);
        let (stacks, lasts) = (i.ccs.stacks, i.ccs.lasts);
        let o = m.instance("ccs", &ccs(s), CcsIn { a, b, c, a_first, stacks, lasts });
        let (ins, outs) = ([a, b, c], [o.x, o.y, o.z]);

        let holds = |p: Path<Signal>| p.valid & p.mask.select(i.thread, 1);
        let [came, went] = [ins, outs].map(|paths| cat(&paths.map(holds)));
        m.assert("thread_is_in_one_path", went.count_ones().eq(came.any().zext(2)));
        let keeps = ins.into_iter().flat_map(|p| outs.map(|q| implies(holds(p) & holds(q), key(p).eq(key(q)))));
        m.assert("thread_keeps_depth_and_pc", cat(&keeps.collect::<Vec<_>>()).all());
        let full = outs.map(|p| implies(p.valid, p.mask.any()));
        m.assert("no_path_is_empty", cat(&full).all());
        let count = |paths: [Path<Signal>; 3]| cat(&paths.map(|p| p.valid)).count_ones();
        m.assert("merges_are_counted", (count(outs) + o.merges).eq(count(ins)));
        m.assert("x_is_b_alone", o.x_is_b.eq(o.x.valid & o.x.same_as(b)));
        let (b_first, asked) = match stacks {
            Some(stacks) => (rank(s, b).lt(rank(s, c)), stacks.seeks & !o.merges.any()),
            None => (key(b).lt(key(c)), m.lit(1u32, 1)),
        };
        let asked = lasts.map_or(asked, |lasts| asked & !lasts);
        m.assert("b_before_c_says_it", implies(asked, o.b_before_c.eq(b.valid & c.valid & b_first)));

        cover(m, "thread_goes_from_c_to_x", holds(c) & holds(o.x));
        if s.lanes > 1 {
            cover(m, "two_meet", o.merges.eq(1));
            cover(m, "b_first", o.x_is_b & o.y.valid);
        }
        if s.lanes > 2 {
            cover(m, "two_meet_beside_a_third", o.merges.eq(1) & o.y.valid);
            cover(m, "three_paths", o.z.valid);
            cover(m, "three_meet", o.merges.eq(2));
            cover(m, "a_held_first_though_last", a_first & o.z.valid & key(o.z).lt(key(o.x)));
            if let Some(stacks) = stacks {
                cover(m, "a_side_is_part_of_what_was_there", stacks.outcome & o.merges.eq(1) & holds(c) & holds(o.x));
                cover(m, "b_stays_below", stacks.seeks & o.z.valid & holds(b) & holds(o.z));
            }
        }
        if s.barriers {
            cover(m, "one_waits", o.y.valid & o.y.waits & !o.x.waits);
        }
        o
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::{Merge, Order};

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, barriers, merge) in [
            (1, false, Merge::Pc),
            (2, true, Merge::Pc),
            (4, true, Merge::Pc),
            (64, true, Merge::Pc),
            (4, true, Merge::Barriers),
        ] {
            // Few keys, so that they meet.
            for order in [Order::DepthPc, Order::Swap, Order::Minority, Order::Majority] {
                let s = Shape { barriers, merge, order, program: 16, depth_bits: 1, ..Shape::new(lanes, 1) };
                holds_at_random(&ccs_proof(&s).check().unwrap().netlist, 20_000);
            }
        }
    }
}

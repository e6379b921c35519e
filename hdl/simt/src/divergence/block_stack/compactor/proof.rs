//! What the compactor makes of any threads: iterated, it puts each into exactly one warp, in its lane, lowest static
//! warp first, in as few warps as can be.
//!
//! One thread is followed, any of them, and another one of its lane. What is left goes in again, until a new set comes.

use super::{CompactorIn, CompactorOut, compactor};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::elements;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub compactor: CompactorIn<T>,
    /// 1 bit: a new set comes, though there may be threads left.
    pub comes: T,
    /// The threads that are followed.
    pub lane: T,
    pub warp: T,
    pub other: T,
}

/// The compactor with all inputs.
pub fn compactor_proof(s: &Shape) -> TypedModule<ProofIn<Width>, CompactorOut<Signal>> {
    let compactor_in = CompactorIn { threads: s.threads(), fixed: 1 };
    let (lane, warp) = (s.lane_bits(), s.warp_bits());
    module("compactor_proof", ProofIn { compactor: compactor_in, comes: 1, lane, warp, other: warp }, |m, i| {
        let remaining = m.reg("remaining", s.threads()).reset(0u32);
        let kept_fixed = m.reg("fixed", 1).reset(0u32);
        wire!(comes = i.comes | !remaining.q.any());
        let threads = comes.mux(i.compactor.threads, remaining.q).named("threads");
        wire!(fixed = comes.mux(i.compactor.fixed, kept_fixed.q));
        let out = m.instance("compactor", &compactor(s), CompactorIn { threads, fixed });
        remaining.next(out.left);
        kept_fixed.next(fixed);

        let lane = index_of(s.lanes, held(m, "lane_followed", i.lane));
        let warp = index_of(s.warps, held(m, "warp_followed", i.warp));
        let other = index_of(s.warps, held(m, "other_followed", i.other));
        let is_in = |threads: Signal, warp: Signal| threads.select(lane, s.warps).select(warp, 1);
        let home = out.homes.map_or(m.lit(0u32, s.warp_bits()), |homes| homes.select(lane, s.warp_bits()));
        wire!(goes = out.mask.select(lane, 1) & home.eq(warp));
        m.assert("thread_goes_or_is_left", is_in(threads, warp).eq(goes ^ is_in(out.left, warp)));
        m.assert("thread_goes_or_is_left_not_both", !(goes & is_in(out.left, warp)));
        m.assert("lowest_of_the_lane_goes", implies(goes & is_in(threads, other), warp.le(other)));
        m.assert("fixed_goes_as_its_static_warp", implies(fixed, goes.eq(is_in(threads, warp) & warp.eq(out.first))));
        m.assert("first_is_the_lowest", implies(is_in(threads, warp), out.first.le(warp)));
        m.assert(
            "not_fixed_each_lane_gives_one",
            implies(!fixed, out.mask.select(lane, 1).eq(threads.select(lane, s.warps).any())),
        );
        m.assert("mixes_if_another_goes", implies(goes & warp.ne(out.first), out.mixes));
        m.assert("mixes_only_if_not_fixed", !(fixed & out.mixes));

        // The thread has gone once when its set is through.
        let came = m.reg("came", 1).reset(0u32);
        came.next(comes.mux(is_in(threads, warp), came.q));
        let gone = m.reg("gone", 1).reset(0u32);
        m.assert("thread_goes_once", !(goes & !comes & gone.q));
        gone.next((gone.q & !comes) | goes);
        m.assert(
            "thread_has_gone_or_is_left",
            came.q.eq(gone.q | is_in(remaining.q, warp)) & !(gone.q & is_in(remaining.q, warp)),
        );

        // Warps that the set makes: as many as a lane has threads at most, or as there are static warps.
        let bits = count_width(s.warps);
        let most = |threads: Signal| {
            let lanes = elements(threads, s.warps).into_iter().map(|lane| lane.count_ones());
            lanes.reduce(|a, b| a.gt(b).mux(a, b)).expect("a lane")
        };
        let present = |threads: Signal| elements(threads, s.warps).into_iter().reduce(|a, b| a | b).expect("a lane");
        let warps = |threads: Signal, fixed: Signal| fixed.mux(present(threads).count_ones(), most(threads));
        let should = m.reg("should", bits).reset(0u32);
        should.next(comes.mux(warps(threads, fixed), should.q));
        let formed = m.reg("formed", bits).reset(0u32);
        formed.next(formed.q.only_if(!comes) + threads.any().zext(bits));
        m.assert("warps_are_as_few_as_can_be", (formed.q + warps(remaining.q, kept_fixed.q)).eq(should.q));

        cover(m, "one_warp_has_all", comes & threads.any() & !out.left.any());
        if s.warps > 1 {
            cover(m, "static_warps", fixed & out.left.any());
            cover(m, "second_warp", !comes & !fixed & out.mask.any());
        }
        if s.lanes > 1 && s.warps > 1 {
            cover(m, "mixes", out.mixes & out.left.any());
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Divergence;
    use crate::proof::testing::holds_at_random;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps) in [(1, 1), (1, 4), (4, 1), (2, 2), (8, 8)] {
            let s = Shape::new(lanes, warps).with_divergence(Divergence::BLOCK_STACK);
            holds_at_random(&compactor_proof(&s).check().unwrap().netlist, 5000);
        }
    }
}

//! The thread compactor: takes as many threads as fit into one warp, at most one per lane.
//!
//! `thread-block-compaction.txt` §3.3. One priority encoder per lane: of the threads of its lane that are left, the one
//! of the lowest static warp goes. So the warps are as few as can be without a thread leaving its lane: as many as one
//! lane has threads at most. Or, with `fixed`, one static warp goes, the lowest that has a thread.

use crate::shape::Shape;
use heddle_hdl::prelude::*;
use heddle_hdl::{all, each, elements};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CompactorIn<T> {
    /// One bit per thread: `warps` bits per lane.
    #[width(s.threads())]
    pub threads: T,
    /// 1 bit: no threads of several static warps together.
    pub fixed: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CompactorOut<T> {
    /// The lanes of the warp, and the static warp of each (`warp_bits` a lane, 0 where the lane is not in the mask).
    pub mask: T,
    pub homes: Option<T>,
    /// The lowest static warp that has a thread.
    pub first: T,
    /// The threads that are left then.
    pub left: T,
    /// 1 bit: the warp has threads of several static warps.
    pub mixes: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneIn<T> {
    threads: T,
    fixed: T,
    /// The lowest static warp that has a thread, one-hot.
    first: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneOut<T> {
    goes: T,
    home: T,
    left: T,
    elsewhere: T,
}

/// One lane's priority encoder.
fn lane(s: &Shape) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    module("compactor_lane", LaneIn { threads: s.warps, fixed: 1, first: s.warps }, |m, i| {
        m.doc("One lane of the thread compactor: a priority encoder over the static warps.");
        wire!(chosen = i.fixed.mux(i.threads & i.first, i.threads.lowest_one()));
        let goes = chosen.any();
        let elsewhere = (chosen & !i.first).any();
        LaneOut { goes, home: chosen.one_hot_index(), left: i.threads & !chosen, elsewhere }
    })
}

/// The compactor of a shape; without state.
pub fn compactor(s: &Shape) -> TypedModule<CompactorIn<Width>, CompactorOut<Signal>> {
    module("compactor", CompactorIn::shape(s), |m, i| {
        m.doc("Forms one warp of a block's threads, at most one a lane.");
        let of_lanes = elements(i.threads, s.warps);
        wire!(present = of_lanes.into_iter().reduce(|a, b| a | b).expect("a lane"));
        wire!(first = present.lowest_one());
        let inputs = LaneIn { threads: each(i.threads), fixed: all(i.fixed), first: all(first) };
        let lanes = m.replicate("lane", s.lanes, &lane(s), inputs);
        CompactorOut {
            mask: lanes.goes,
            homes: s.homes_bits().map(|_| lanes.home),
            first: first.one_hot_index(),
            left: lanes.left,
            mixes: lanes.elsewhere.any(),
        }
    })
}

pub mod proof;
#[cfg(test)]
mod tests;

//! Likely-convergence points (thread block compaction, section 4): where threads that diverge at a branch are likely to
//! meet long before its RPC, because only a `break`, a `return` or the like in a loop puts the RPC behind that loop.
//!
//! As in the paper's footnote 6, they are the blocks of backward-taken branches: the last block of a loop, with `i++`
//! and the way back, E in Figure 10. A branch has that of the closest loop around it whose last block is of use: where
//! threads from both sides of some branch can meet before they leave the loop or come to the RPC. A branch of which one
//! side alone leads there has it, too (C in Figure 10), as its threads may be some of those that parted before.

use super::graph::Graph;
use std::cmp::Reverse;

/// A loop that a backward-taken branch closes.
struct Loop {
    /// The block that ends with the branch.
    last: usize,
    /// Its blocks, and how many they are.
    inside: Vec<bool>,
    size: usize,
}

/// Likely-convergence block of each block that is a `branch`, where it differs from the RPC: the block in `behind`, if
/// any.
pub fn points(graph: &Graph, behind: &[Option<usize>], branch: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let around = |of: &Loop, block: usize| of.inside[block] && of.last != block;
    // Whether so many sides of a branch lead to the end of a loop within it.
    let leads = |of: &Loop, block: usize, sides: usize| {
        let inside = graph.next[block].iter().filter(|&&next| of.inside[next]);
        let before_rpc = |other: usize| of.inside[other] && Some(other) != behind[block];
        match behind[block].is_some_and(|behind| of.inside[behind]) {
            true => inside.filter(|&&next| graph.reachable(next, before_rpc)[of.last]).count() >= sides,
            // Everything in a loop leads to its end.
            false => inside.count() >= sides,
        }
    };
    let mut useful = loops(graph);
    let branches = || (0..graph.blocks()).filter(|&block| branch(block));
    useful.retain(|of| branches().any(|block| around(of, block) && leads(of, block, 2)));
    useful.sort_by_key(|of| (of.size, Reverse(of.last)));
    let point = |block: usize| useful.iter().find(|of| branch(block) && around(of, block) && leads(of, block, 1));
    (0..graph.blocks()).map(|block| point(block).map(|of| of.last)).collect()
}

/// All loops of a graph, one for each edge that leads backward and closes one.
fn loops(graph: &Graph) -> Vec<Loop> {
    let edges = graph.next.iter().enumerate().flat_map(|(from, next)| next.iter().map(move |&to| (from, to)));
    let backward = edges.filter(|(from, to)| to <= from);
    let close = |(last, top): (usize, usize)| {
        let below = graph.reachable(top, |_| true);
        // From the end of the loop back to its top, and no further.
        let mut inside = graph.leading(last, |block| block != top && below[block]);
        inside[top] = true;
        let size = inside.iter().filter(|&&inside| inside).count();
        below[last].then_some(Loop { last, inside, size })
    };
    backward.filter_map(close).collect()
}

#[cfg(test)]
mod tests;

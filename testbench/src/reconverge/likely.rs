//! Likely-convergence points (thread block compaction, section 4): where threads that part at a branch are likely to meet
//! long before its RPC, because only a `break`, a `return` or the like in a loop puts the RPC behind that loop.
//!
//! As in the paper's footnote 6, they are the blocks of backward-taken branches: the last block of a loop, with `i++` and the way
//! back, E in Figure 10. A branch has that of the closest loop around it whose last block is of use: where threads
//! from both sides of some branch can meet before they leave the loop or come to the RPC. A branch of which one side alone
//! leads there has it, too (C in Figure 10), as its threads may be some of those that parted before.

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

/// Likely-convergence block of each block that is a `branch`, where it differs from the RPC: the block in `behind`, if any.
pub fn points(graph: &Graph, behind: &[Option<usize>], branch: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
    let loops = loops(graph);
    let around = |around: &Loop, block: usize| around.inside[block] && around.last != block;
    // Sides of a branch from which the end of a loop is reached within it.
    let sides = |around: &Loop, block: usize| {
        let open = |other: usize| around.inside[other] && Some(other) != behind[block];
        graph.next[block].iter().filter(|&&next| graph.reachable(next, open)[around.last]).count()
    };
    let branches = || (0..graph.blocks()).filter(|&block| branch(block));
    let meet = |of: &&Loop| branches().any(|block| around(of, block) && sides(of, block) > 1);
    let useful: Vec<&Loop> = loops.iter().filter(meet).collect();
    let point = |block: usize| {
        let leads = useful.iter().filter(|of| branch(block) && around(of, block) && sides(of, block) > 0);
        leads.min_by_key(|of| (of.size, Reverse(of.last))).map(|of| of.last)
    };
    (0..graph.blocks()).map(point).collect()
}

/// All loops of a graph, one for each edge that leads backward and closes one.
fn loops(graph: &Graph) -> Vec<Loop> {
    let backwards = Graph { next: graph.previous(), ..Graph::default() };
    let edges = graph.next.iter().enumerate().flat_map(|(from, next)| next.iter().map(move |&to| (from, to)));
    let backward = edges.filter(|(from, to)| to <= from);
    let close = |(last, top): (usize, usize)| {
        let below = graph.reachable(top, |_| true);
        // From the end of the loop back to its top, and no further.
        let mut inside = backwards.reachable(last, |block| block != top && below[block]);
        inside[top] = true;
        let size = inside.iter().filter(|&&inside| inside).count();
        below[last].then_some(Loop { last, inside, size })
    };
    backward.filter_map(close).collect()
}

#[cfg(test)]
mod tests;

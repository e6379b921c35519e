//! Likely-convergence points (thread block compaction, section 4): where threads that part at a branch are likely to meet
//! long before its RPC, because only a `break`, a `return` or the like in a loop puts the RPC behind that loop.
//!
//! As in the paper's footnote 6, it is the block of the closest enclosing backward-taken branch: the last of the smallest loop
//! around the branch, `i++` and the way back, block E of Figure 10. It counts only if the branch's threads can come there
//! before they come to the RPC.

use super::graph::Graph;
use std::cmp::Reverse;

/// A loop that a backward-taken branch closes.
pub struct Loop {
    /// The block that ends with the branch.
    last: usize,
    /// Its blocks, and how many they are.
    inside: Vec<bool>,
    size: usize,
}

/// All loops of a graph, one for each edge that leads backward and closes one.
pub fn loops(graph: &Graph) -> Vec<Loop> {
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

/// The likely-convergence block of the branch that ends a block, where it differs from the RPC: the block `behind`, if any.
pub fn point(graph: &Graph, loops: &[Loop], block: usize, behind: Option<usize>) -> Option<usize> {
    let around =
        loops.iter().filter(|around| around.inside[block] && around.last != block && Some(around.last) != behind);
    let closest = around.min_by_key(|around| (around.size, Reverse(around.last)))?;
    let open = |other: usize| Some(other) != behind;
    let comes_there = graph.next[block].iter().any(|&next| graph.reachable(next, open)[closest.last]);
    comes_there.then_some(closest.last)
}

#[cfg(test)]
mod tests;

//! Immediate post-dominators of a graph in which not everything returns.
//!
//! A block p post-dominates a block b if every way from b to a return goes through p. A way that ends otherwise does
//! not count, as a thread that takes it leaves all masks: edges from a block that can come to a return to one that
//! cannot are left out. Blocks that cannot come to a return are treated among themselves in the same manner: there the
//! ways to an `ecall` count, and where there is none either, the loop that never ends is cut behind its last block.

use super::graph::Graph;
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Reversed;

/// Of each block, the block nearest behind it that post-dominates it; none if that is the end of the function.
pub fn immediate(graph: &Graph) -> Vec<Option<usize>> {
    let count = graph.blocks();
    let mut ways: DiGraph<(), ()> = DiGraph::with_capacity(count + 1, 2 * count);
    (0..=count).for_each(|_| {
        ways.add_node(());
    });
    let end = NodeIndex::new(count);
    let rank = ranks(graph);
    for block in 0..count {
        let ends = match rank[block] {
            Rank::Returns => graph.returns[block],
            Rank::Exits => graph.exits[block],
            Rank::Endless { last } => last,
        };
        let level = rank[block].level();
        let next = graph.next[block].iter().filter(|&&next| rank[next].level() == level);
        let targets = next.map(|&next| NodeIndex::new(next)).chain(ends.then_some(end));
        for target in targets {
            ways.update_edge(NodeIndex::new(block), target, ());
        }
    }
    let dominators = simple_fast(Reversed(&ways), end);
    let immediate = |block| {
        let node = dominators.immediate_dominator(NodeIndex::new(block)).expect("every block comes to the end");
        (node != end).then(|| node.index())
    };
    (0..count).map(immediate).collect()
}

/// How a thread may end that is in a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Returns,
    Exits,
    /// Whether the loop is cut behind this block.
    Endless {
        last: bool,
    },
}

impl Rank {
    fn level(self) -> u8 {
        match self {
            Rank::Returns => 0,
            Rank::Exits => 1,
            Rank::Endless { .. } => 2,
        }
    }
}

fn ranks(graph: &Graph) -> Vec<Rank> {
    let returns = graph.reaching(&graph.returns);
    let exits = graph.reaching(&graph.exits);
    let mut last = vec![false; graph.blocks()];
    for component in graph.components() {
        let inside = |block: &usize| component.binary_search(block).is_ok();
        if component.iter().all(|&block| graph.next[block].iter().all(inside)) {
            last[*component.last().expect("a component has a block")] = true;
        }
    }
    let rank = |block: usize| match (returns[block], exits[block]) {
        (true, _) => Rank::Returns,
        (false, true) => Rank::Exits,
        (false, false) => Rank::Endless { last: last[block] },
    };
    (0..graph.blocks()).map(rank).collect()
}

#[cfg(test)]
mod tests;

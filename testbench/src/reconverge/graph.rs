//! The blocks of a function as a plain graph.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

/// Blocks by number, in order of address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Where each block leads, each once.
    pub next: Vec<Vec<usize>>,
    /// The blocks that lead to each.
    pub previous: Vec<Vec<usize>>,
    /// Whether a thread may return behind the block.
    pub returns: Vec<bool>,
    /// Whether a thread may end behind the block.
    pub exits: Vec<bool>,
}

impl Graph {
    /// `next`: where each block leads, each once.
    pub fn new(next: Vec<Vec<usize>>, returns: Vec<bool>, exits: Vec<bool>) -> Graph {
        let mut previous = vec![Vec::new(); next.len()];
        for (block, next) in next.iter().enumerate() {
            next.iter().for_each(|&next| previous[next].push(block));
        }
        Graph { next, previous, returns, exits }
    }

    pub fn blocks(&self) -> usize {
        self.next.len()
    }

    /// The blocks from which one of `goals` can be reached, the goals among them.
    pub fn reaching(&self, goals: &[bool]) -> Vec<bool> {
        let starts = (0..self.blocks()).filter(|&block| goals[block]);
        reach(&self.previous, starts, |_| true)
    }

    /// The blocks that can be reached from `start` through `open` blocks alone, itself among them if it is open.
    pub fn reachable(&self, start: usize, open: impl Fn(usize) -> bool) -> Vec<bool> {
        reach(&self.next, [start], open)
    }

    /// The blocks from which `end` can be reached through `open` blocks alone, itself among them if it is open.
    pub fn leading(&self, end: usize, open: impl Fn(usize) -> bool) -> Vec<bool> {
        reach(&self.previous, [end], open)
    }

    /// The blocks that can be reached from `block` through `open` blocks and that reach it so: all blocks that lie on a
    /// cycle with it. Empty if it lies on none.
    pub fn cycle(&self, block: usize, open: impl Fn(usize) -> bool) -> Vec<bool> {
        let starts = |edges: &[Vec<usize>]| edges[block].clone();
        let behind = reach(&self.next, starts(&self.next), &open);
        let before = reach(&self.previous, starts(&self.previous), &open);
        (0..self.blocks()).map(|other| behind[other] && before[other] && behind[block]).collect()
    }

    /// Strongly connected components, the blocks of each in order.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let edges =
            self.next.iter().enumerate().flat_map(|(from, next)| next.iter().map(move |&to| (from as u32, to as u32)));
        let mut graph: DiGraph<(), ()> = DiGraph::from_edges(edges);
        while graph.node_count() < self.blocks() {
            graph.add_node(());
        }
        let sorted = |component: Vec<NodeIndex>| {
            let mut blocks: Vec<usize> = component.into_iter().map(NodeIndex::index).collect();
            blocks.sort_unstable();
            blocks
        };
        kosaraju_scc(&graph).into_iter().map(sorted).collect()
    }
}

fn reach(edges: &[Vec<usize>], starts: impl IntoIterator<Item = usize>, open: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut left: Vec<usize> = starts.into_iter().collect();
    while let Some(block) = left.pop() {
        if open(block) && !seen[block] {
            seen[block] = true;
            left.extend(&edges[block]);
        }
    }
    seen
}

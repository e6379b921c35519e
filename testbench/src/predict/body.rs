//! The instructions of a function as a graph.

use super::PredictError;
use super::linked::Linked;
use crate::reconverge::FunctionBlocks;
use crate::reconverge::graph::Graph;
use crate::reconverge::instruction::Flow;
use crate::reconverge::postdominators;
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};

/// A function, an instruction a node.
pub struct Body {
    pub entry: u32,
    /// Address of each node, in order.
    pub pcs: Vec<u32>,
    pub graph: Graph,
    /// Node at the entry.
    pub first: usize,
    /// Where a branch leads that leaves the function, in place of a call and a return.
    pub leaves: Vec<Vec<u32>>,
    /// Immediate post-dominator of each node; none is the end of the function.
    pub behind: Vec<Option<usize>>,
    /// Immediate dominator of each node, and how many dominate it.
    above: Vec<Option<usize>>,
    pub depth: Vec<usize>,
    /// When a walk down the tree of dominators enters each node, and leaves it.
    walk: Vec<(usize, usize)>,
}

/// Instructions of the largest function that the pass takes.
const MOST: usize = 1 << 12;

impl Body {
    pub fn of(linked: &Linked, function: &FunctionBlocks) -> Result<Body, PredictError> {
        let pcs: Vec<u32> = function.blocks.iter().flat_map(|block| (block.start..block.end).step_by(4)).collect();
        if pcs.len() > MOST {
            let place = linked.place(function.entry);
            return Err(PredictError::Function { place, instructions: pcs.len(), most: MOST });
        }
        let number = |pc: u32| pcs.binary_search(&pc).expect("blocks lead to blocks");
        let (mut next, mut returns, mut exits, mut leaves) = (vec![], vec![], vec![], vec![]);
        for block in &function.blocks {
            for pc in (block.start..block.end).step_by(4) {
                let last = pc + 4 == block.end;
                next.push(if last { block.next.iter().map(|&pc| number(pc)).collect() } else { vec![number(pc + 4)] });
                returns.push(last && block.returns);
                exits.push(last && block.exits);
                let ways = match linked.instruction(pc).flow() {
                    Flow::Branch { target } if last => vec![target, pc + 4],
                    Flow::Next if last => vec![pc + 4],
                    _ => vec![],
                };
                let outside = |to: &u32| (block.returns || block.exits) && !block.next.contains(to);
                leaves.push(ways.into_iter().filter(outside).collect());
            }
        }
        let graph = Graph::new(next, returns, exits);
        let first = number(function.entry);
        let edges = graph.next.iter().enumerate();
        let edges = edges.flat_map(|(from, next)| next.iter().map(move |&to| (from as u32, to as u32)));
        let mut ways: DiGraph<(), ()> = DiGraph::from_edges(edges);
        while ways.node_count() < graph.blocks() {
            ways.add_node(());
        }
        let dominators = simple_fast(&ways, NodeIndex::new(first));
        let above: Vec<Option<usize>> =
            (0..pcs.len()).map(|n| dominators.immediate_dominator(NodeIndex::new(n)).map(NodeIndex::index)).collect();
        let (depth, walk) = walk(&above, first);
        let behind = postdominators::immediate(&graph);
        Ok(Body { entry: function.entry, pcs, graph, first, leaves, behind, above, depth, walk })
    }

    pub fn node(&self, pc: u32) -> Option<usize> {
        self.pcs.binary_search(&pc).ok()
    }

    /// Every way from the entry to `node` goes through `by`.
    pub fn dominates(&self, by: usize, node: usize) -> bool {
        self.walk[by].0 <= self.walk[node].0 && self.walk[node].1 <= self.walk[by].1
    }

    /// The nearest node that dominates all.
    pub fn dominator(&self, nodes: &[usize]) -> Option<usize> {
        let mut all = std::iter::successors(nodes.first().copied(), |&node| self.above[node]);
        all.find(|&dominator| nodes.iter().all(|&node| self.dominates(dominator, node)))
    }

    /// The nearest node behind a node that post-dominates it and is not among some.
    pub fn behind_all(&self, node: usize, among: &[bool]) -> Option<usize> {
        let mut node = self.behind[node]?;
        while among[node] {
            node = self.behind[node]?;
        }
        Some(node)
    }
}

/// Of each node, its depth in the tree of dominators, and when a walk down the tree enters and leaves it.
fn walk(above: &[Option<usize>], first: usize) -> (Vec<usize>, Vec<(usize, usize)>) {
    let mut below = vec![Vec::new(); above.len()];
    for (node, by) in above.iter().enumerate() {
        if let Some(by) = by.filter(|&by| by != node) {
            below[by].push(node);
        }
    }
    let (mut depth, mut walk) = (vec![0; above.len()], vec![(0, 0); above.len()]);
    let mut time = 0;
    let mut left = vec![(first, false)];
    while let Some((node, done)) = left.pop() {
        time += 1;
        if done {
            walk[node].1 = time;
            continue;
        }
        walk[node].0 = time;
        left.push((node, true));
        for &next in &below[node] {
            depth[next] = depth[node] + 1;
            left.push((next, false));
        }
    }
    (depth, walk)
}

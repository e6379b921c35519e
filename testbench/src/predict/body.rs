//! The instructions of a function as a graph.

use super::linked::Linked;
use crate::reconverge::FunctionBlocks;
use crate::reconverge::graph::Graph;
use crate::reconverge::instruction::Flow;
use crate::reconverge::postdominators;
use petgraph::algo::dominators::{Dominators, simple_fast};
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
    dominators: Dominators<NodeIndex>,
}

impl Body {
    pub fn of(linked: &Linked, function: &FunctionBlocks) -> Body {
        let pcs: Vec<u32> = function.blocks.iter().flat_map(|block| (block.start..block.end).step_by(4)).collect();
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
        let behind = postdominators::immediate(&graph);
        Body { entry: function.entry, pcs, graph, first, leaves, behind, dominators }
    }

    pub fn node(&self, pc: u32) -> Option<usize> {
        self.pcs.binary_search(&pc).ok()
    }

    /// Every way from the entry to `node` goes through `by`.
    pub fn dominates(&self, by: usize, node: usize) -> bool {
        let mut all = self.dominators.dominators(NodeIndex::new(node)).into_iter().flatten();
        all.any(|dominator| dominator.index() == by)
    }

    /// The nearest node that dominates all.
    pub fn dominator(&self, nodes: &[usize]) -> Option<usize> {
        let (&first, rest) = nodes.split_first()?;
        let mut all = self.dominators.dominators(NodeIndex::new(first)).into_iter().flatten();
        all.map(|dominator| dominator.index())
            .find(|&dominator| rest.iter().all(|&node| self.dominates(dominator, node)))
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

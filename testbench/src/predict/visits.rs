//! How a thread comes to the instructions of a loop again before it comes to a point of it.

use crate::reconverge::graph::Graph;
use std::collections::BTreeMap;

/// Turns after which what has not ended of a search is left out.
const TURNS: usize = 200;

pub struct Visits {
    /// Of each node, the chance that a thread that is there is there once more before it comes to the point or leaves
    /// the loop.
    again: Vec<f64>,
}

impl Visits {
    /// For so many threads in all at each node of a function that begins at the node `first`.
    pub fn new(graph: &Graph, first: usize, lanes: &[f64], inside: &[bool], point: usize) -> Visits {
        let open: Vec<bool> = (0..lanes.len()).map(|node| inside[node] && node != point).collect();
        let flow = flow(graph, first, lanes);
        let mut again: Vec<f64> = Vec::with_capacity(lanes.len());
        for node in 0..lanes.len() {
            // As often as the one before, where nothing comes in between.
            let before = match graph.previous[node][..] {
                [before] if before < node && open[before] && graph.next[before].len() == 1 => Some(again[before]),
                _ => None,
            };
            let chance = || if open[node] { returning(graph, &flow, &open, node) } else { 0.0 };
            again.push(before.filter(|_| open[node]).unwrap_or_else(chance));
        }
        Visits { again }
    }

    pub fn again(&self, node: usize) -> f64 {
        self.again[node]
    }
}

/// Of each way in the graph, as in `next`, how many threads take it: what comes in goes out. Where that leaves it open,
/// in proportion to how many are at its ends.
fn flow(graph: &Graph, first: usize, lanes: &[f64]) -> Vec<Vec<f64>> {
    let mut known: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    loop {
        let before = known.len();
        for (node, &all) in lanes.iter().enumerate() {
            let ends = graph.returns[node] || graph.exits[node];
            let out = graph.next[node].iter().filter(|_| !ends).map(|&next| (node, next));
            let into = graph.previous[node].iter().filter(|_| node != first).map(|&from| (from, node));
            for ways in [out.collect::<Vec<_>>(), into.collect()] {
                let mut open = ways.iter().filter(|way| !known.contains_key(way));
                if let (Some(&way), None) = (open.next(), open.next()) {
                    let others: f64 = ways.iter().filter_map(|way| known.get(way)).sum();
                    known.insert(way, (all - others).max(0.0));
                }
            }
        }
        if known.len() == before {
            break;
        }
    }
    let way = |from: usize, to: usize| known.get(&(from, to)).copied().unwrap_or(lanes[from].min(lanes[to]));
    (0..lanes.len()).map(|node| graph.next[node].iter().map(|&next| way(node, next)).collect()).collect()
}

/// The chance to come back to a node through open ones.
fn returning(graph: &Graph, flow: &[Vec<f64>], open: &[bool], node: usize) -> f64 {
    let cycle = graph.cycle(node, |other| open[other]);
    if !cycle[node] {
        return 0.0;
    }
    let nodes: Vec<usize> = (0..cycle.len()).filter(|&other| cycle[other]).collect();
    // What is under way at each of these nodes, all of it at the node first; and behind them, what came back and what
    // is gone.
    let (back, gone) = (nodes.len(), nodes.len() + 1);
    let mut at = vec![0.0; nodes.len() + 2];
    let mut places = vec![gone; cycle.len()];
    nodes.iter().enumerate().for_each(|(place, &other)| places[other] = place);
    at[places[node]] = 1.0;
    places[node] = back;
    // How many threads leave each node in all, and by which ways.
    let ways = |&from: &usize| -> (f64, Vec<(usize, f64)>) {
        let ends = graph.next[from].iter().map(|&to| places[to]);
        (flow[from].iter().sum(), ends.zip(flow[from].iter().copied()).collect())
    };
    let ways: Vec<_> = nodes.iter().map(ways).collect();
    for _ in 0..TURNS {
        for (from, (all, ways)) in ways.iter().enumerate() {
            let here = std::mem::take(&mut at[from]);
            if here == 0.0 || *all == 0.0 {
                at[gone] += here;
                continue;
            }
            for &(to, lanes) in ways {
                at[to] += here * lanes / all;
            }
        }
        if at[back] + at[gone] > 1.0 - 1e-3 {
            break;
        }
    }
    if at[back] > 0.0 { at[back] / (at[back] + at[gone]) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 → 1 ⇄ 2, 2 → 3 → 1, 3 → 4: of 100 threads that come to 3, half go on to 1 and half leave.
    fn graph() -> Graph {
        Graph::new(vec![vec![1], vec![2], vec![1, 3], vec![1, 4], vec![]], vec![false; 5], vec![false; 5])
    }

    #[test]
    fn what_comes_in_goes_out() {
        let ways = flow(&graph(), 0, &[50.0, 400.0, 400.0, 100.0, 50.0]);
        assert_eq!(ways, [vec![50.0], vec![400.0], vec![300.0, 100.0], vec![50.0, 50.0], vec![]]);
    }

    #[test]
    fn a_thread_comes_again_without_passing_the_point() {
        let lanes = [50.0, 400.0, 400.0, 100.0, 50.0];
        let inside = [false, true, true, true, false];
        let again = |point: usize| Visits::new(&graph(), 0, &lanes, &inside, point).again;
        // From 1 always to 2, and from there to 1 by three of four.
        assert_eq!(again(3), [0.0, 0.75, 0.75, 0.0, 0.0]);
        // All cycles go through 1.
        assert_eq!(again(1), [0.0; 5]);
        // Some leave the loop at 3: from 1 one comes back by 2, or by 3 for half of the others.
        let all = Visits::new(&graph(), 0, &lanes, &inside, 0).again;
        assert!((all[1] - 0.875).abs() < 1e-9 && (all[3] - 0.5).abs() < 0.01, "{all:?}");
    }

    #[test]
    fn where_counts_leave_it_open_all_ways_are_taken() {
        let graph = Graph::new(vec![vec![1, 2], vec![0, 2], vec![0, 1]], vec![false; 3], vec![false; 3]);
        let again = Visits::new(&graph, 0, &[8.0, 8.0, 8.0], &[true; 3], 2).again;
        assert!((again[0] - 0.25).abs() < 1e-9, "{again:?}");
        // Nobody was there.
        assert_eq!(Visits::new(&graph, 0, &[0.0; 3], &[true; 3], 2).again, [0.0; 3]);
    }
}

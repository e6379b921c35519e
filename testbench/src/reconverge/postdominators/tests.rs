use super::*;
use proptest::prelude::*;

/// A graph from its edges; the blocks after which threads return, and after which they end.
fn graph(blocks: usize, edges: &[(usize, usize)], returns: &[usize], exits: &[usize]) -> Graph {
    let mut next = vec![Vec::new(); blocks];
    for &(from, to) in edges {
        if !next[from].contains(&to) {
            next[from].push(to);
        }
    }
    let flags = |of: &[usize]| (0..blocks).map(|block| of.contains(&block)).collect();
    Graph::new(next, flags(returns), flags(exits))
}

/// Immediate post-dominators by their definition: p post-dominates b if without p no way leads from b to a goal.
fn by_removal(graph: &Graph) -> Vec<Option<usize>> {
    let all = 0..graph.blocks();
    let reaches = |from: usize, goals: &[bool], removed: Option<usize>| {
        let reached = graph.reachable(from, |block| Some(block) != removed);
        all.clone().any(|block| reached[block] && goals[block])
    };
    let ways = |from: usize| -> Vec<usize> {
        let reached = graph.reachable(from, |_| true);
        all.clone().filter(|&block| reached[block]).collect()
    };
    // The last block of a loop that nothing leaves.
    let endless: Vec<bool> =
        all.clone().map(|last| ways(last).iter().all(|&block| block <= last && ways(block).contains(&last))).collect();
    let immediate = |block: usize| {
        let goals =
            [&graph.returns, &graph.exits, &endless].into_iter().find(|goals| reaches(block, goals, None)).unwrap();
        let post_dominates = |p: usize, b: usize| p != b && !reaches(b, goals, Some(p));
        let candidates: Vec<usize> = all.clone().filter(|&p| post_dominates(p, block)).collect();
        let nearest = |&&p: &&usize| candidates.iter().all(|&other| other == p || post_dominates(other, p));
        candidates.iter().find(nearest).copied()
    };
    all.clone().map(immediate).collect()
}

#[track_caller]
fn check(graph: &Graph, want: &[Option<usize>]) {
    assert_eq!(immediate(graph), want);
    assert_eq!(by_removal(graph), want);
}

#[test]
fn nested_ifs() {
    // Figure 8 of dual-path execution: A skips to E, B skips to D.
    check(
        &graph(5, &[(0, 1), (0, 4), (1, 2), (1, 3), (2, 3), (3, 4)], &[4], &[]),
        &[Some(4), Some(3), Some(3), Some(4), None],
    );
    // Figure 9: A leads to B or C, both to D.
    check(&graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[3], &[]), &[Some(3), Some(3), Some(3), None]);
}

#[test]
fn a_loop_with_a_break() {
    // Figure 10 of thread block compaction: blocks A to F; D breaks.
    let edges = [(0, 1), (0, 2), (1, 4), (2, 3), (2, 4), (3, 5), (4, 0), (4, 5)];
    check(&graph(6, &edges, &[5], &[]), &[Some(5), Some(4), Some(5), Some(5), Some(5), None]);
}

#[test]
fn short_circuit() {
    // Figure 1 of the path lists: if (A && B) C; else D; E.
    let edges = [(0, 1), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)];
    check(&graph(5, &edges, &[4], &[]), &[Some(4), Some(4), Some(4), Some(4), None]);
}

#[test]
fn a_switch() {
    let edges = [(0, 1), (0, 2), (0, 3), (1, 2), (2, 4), (3, 4)];
    check(&graph(5, &edges, &[4], &[]), &[Some(4), Some(2), Some(4), Some(4), None]);
}

#[test]
fn a_loop_with_two_entries() {
    let edges = [(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)];
    check(&graph(4, &edges, &[3], &[]), &[Some(2), Some(2), Some(3), None]);
}

#[test]
fn ways_to_an_exit_do_not_count() {
    // The exit is on one side; then on both; then there is no return at all.
    check(&graph(3, &[(0, 1), (0, 2)], &[2], &[1]), &[Some(2), None, None]);
    check(&graph(5, &[(0, 1), (0, 4), (1, 2), (1, 3), (2, 3)], &[4], &[3]), &[Some(4), Some(3), Some(3), None, None]);
    check(&graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[], &[3]), &[Some(3), Some(3), Some(3), None]);
    check(&graph(3, &[(0, 1), (0, 2)], &[], &[1, 2]), &[None, None, None]);
}

#[test]
fn several_returns() {
    check(&graph(3, &[(0, 1), (0, 2)], &[1, 2], &[]), &[None, None, None]);
}

#[test]
fn loops_without_end() {
    // An if in an endless loop meets before the loop's last block.
    check(&graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 0)], &[], &[]), &[Some(3), Some(3), Some(3), None]);
    check(&graph(1, &[(0, 0)], &[], &[]), &[None]);
    // One way never ends, the other does.
    check(&graph(3, &[(0, 1), (1, 1), (0, 2)], &[2], &[]), &[Some(2), None, None]);
}

/// Graphs in which every block goes on somehow.
fn graphs() -> impl Strategy<Value = Graph> {
    (1..12usize).prop_flat_map(|blocks| {
        let edges = prop::collection::vec((0..blocks, 0..blocks), 0..3 * blocks);
        let ends = || prop::collection::vec(prop::bool::weighted(0.1), blocks);
        (edges, ends(), ends()).prop_map(move |(edges, returns, exits)| {
            let mut graph = Graph { returns, exits, ..graph(blocks, &edges, &[], &[]) };
            for block in 0..blocks {
                graph.exits[block] |= graph.next[block].is_empty() && !graph.returns[block];
            }
            graph
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs(graph in graphs()) {
        prop_assert_eq!(immediate(&graph), by_removal(&graph));
    }
}

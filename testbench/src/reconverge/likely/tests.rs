use super::*;
use crate::reconverge::postdominators;

/// Likely-convergence blocks of all blocks with two ways.
fn points(next: &[&[usize]], returns: &[usize]) -> Vec<(usize, usize)> {
    let blocks = next.len();
    let returns = (0..blocks).map(|block| returns.contains(&block)).collect();
    let graph = Graph::new(next.iter().map(|next| next.to_vec()).collect(), returns, vec![false; blocks]);
    let behind = postdominators::immediate(&graph);
    let branch = |block: usize| next[block].len() > 1;
    let points = super::points(&graph, &behind, branch).into_iter().enumerate();
    points.filter_map(|(block, point)| Some((block, point?))).collect()
}

#[test]
fn a_loop_with_a_break() {
    // Figure 10: A and C are likely to meet at E.
    assert_eq!(points(&[&[1, 2], &[4], &[3, 4], &[5], &[0, 5], &[]], &[5]), [(0, 4), (2, 4)]);
}

#[test]
fn without_a_break_there_is_none() {
    // if in a loop: its RPC is the end of the loop, or before it.
    assert_eq!(points(&[&[1, 2], &[2], &[0, 3], &[]], &[3]), []);
    assert_eq!(points(&[&[1, 2], &[2], &[3], &[0, 4], &[]], &[4]), []);
    // The loop's own test, first or last.
    assert_eq!(points(&[&[1, 2], &[0], &[]], &[2]), []);
}

#[test]
fn the_closest_loop_counts() {
    // A loop in a loop, both left for 6 from the inner one (block 1), which goes back in 2; the outer one goes back in
    // 4.
    let next: &[&[usize]] = &[&[1], &[2, 6], &[1, 3], &[4], &[0, 5], &[6], &[]];
    // Threads leave the inner loop in different turns and are likely to meet at the end of the outer one.
    assert_eq!(points(next, &[6]), [(1, 4), (2, 4)]);
}

#[test]
fn where_threads_of_one_side_come_alone_nobody_meets() {
    // for (...) { if (..) return; }
    assert_eq!(points(&[&[1, 2], &[], &[0, 3], &[]], &[1, 3]), []);
}

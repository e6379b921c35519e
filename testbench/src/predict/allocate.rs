//! Numbers of barriers.
//!
//! Barriers whose live ranges meet have different numbers. Others may share one; but threads of a warp that have parted
//! can be in both ranges at a time, and then leave one barrier at the wait of the other. So all have different numbers
//! as long as there are any, and then share those that have the fewest. A function that is called uses none that may be
//! live at its calls, so numbers are chosen from callers to callees. No barrier stays live across recursion, or across
//! a call of which nobody knows where it leads. What is left without a number is not placed.

use super::body::Body;
use super::calls::Calls;
use super::linked::Linked;
use super::place::{Barrier, Why};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The numbers of each barrier, as many as it wants; or why it has none.
pub type Numbers = Result<Vec<u32>, &'static str>;

/// `wants`: how many numbers each barrier needs.
pub fn numbers(
    linked: &Linked,
    bodies: &[Body],
    calls: &Calls,
    barriers: &[Barrier],
    wants: impl Fn(&Barrier) -> u32,
    most: u32,
) -> Vec<Numbers> {
    let mut numbers: Vec<Option<Numbers>> = vec![None; barriers.len()];
    let extents: Vec<BTreeSet<u32>> = barriers.iter().map(Barrier::extent).collect();
    let ranges: Vec<BTreeSet<u32>> = barriers.iter().map(Barrier::range).collect();
    let mut everywhere: BTreeSet<u32> = BTreeSet::new();
    for (at, barrier) in barriers.iter().enumerate() {
        for call in ranges[at].iter().filter(|pc| is_call(linked, **pc)) {
            if calls.unknown.contains(call) && calls.from(linked, *call).is_empty() {
                numbers[at] = Some(Err("it would be live at a call of which nobody knows where it leads"));
            } else if bodies.iter().any(|b| b.node(*call).is_some() && calls.from(linked, *call).contains(&b.entry)) {
                numbers[at] = Some(Err("it would be live across recursion"));
            }
        }
        if matches!(barrier.why, Why::Function(_)) && numbers[at].is_none() {
            // From the greatest on, so that the others are small.
            let free: Vec<u32> = (0..most).rev().filter(|number| !everywhere.contains(number)).collect();
            numbers[at] = Some(take(&free, wants(barrier)));
            everywhere.extend(numbers[at].iter().flatten().flatten());
        }
    }
    let mut forbidden: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    // What is used where, and by how many barriers.
    let mut shared = vec![0; most as usize];
    let mut used: HashSet<(u32, u32)> = HashSet::new();
    for &entry in &calls.callers_first {
        let mine: BTreeSet<u32> = forbidden.get(&entry).into_iter().flatten().chain(&everywhere).copied().collect();
        let mut order: Vec<usize> =
            (0..barriers.len()).filter(|&at| barriers[at].function == entry && numbers[at].is_none()).collect();
        // What was asked for first, then what is in the most loops, then what serves most instructions.
        order.sort_by_key(|&at| {
            let rank = match barriers[at].why {
                Why::Predicted(_) | Why::Function(_) => 0,
                Why::Region(_) => 1,
                Why::PostDominator => 2,
            };
            (rank, std::cmp::Reverse(depth(bodies, entry, &barriers[at])), std::cmp::Reverse(ranges[at].len()))
        });
        for at in order {
            let taken = |number: u32| extents[at].iter().any(|pc| used.contains(&(number, *pc)));
            let mut free: Vec<u32> = (0..most).filter(|&number| !mine.contains(&number) && !taken(number)).collect();
            free.sort_by_key(|&number| shared[number as usize]);
            let found = take(&free, wants(&barriers[at]));
            for &number in found.iter().flatten() {
                used.extend(extents[at].iter().map(|&pc| (number, pc)));
                shared[number as usize] += 1;
            }
            numbers[at] = Some(found);
        }
        let Some(body) = bodies.iter().find(|body| body.entry == entry) else { continue };
        for &pc in body.pcs.iter().filter(|pc| linked.analysis.callees.contains_key(pc)) {
            let mut live = forbidden.get(&entry).cloned().unwrap_or_default();
            let across = (0..barriers.len()).filter(|&at| ranges[at].contains(&pc));
            live.extend(across.flat_map(|at| numbers[at].iter().flatten().flatten()));
            for callee in linked.analysis.callees.get(&pc).into_iter().flatten() {
                forbidden.entry(*callee).or_default().extend(&live);
            }
        }
    }
    numbers.into_iter().map(|numbers| numbers.unwrap_or(Err("its function is called by nobody"))).collect()
}

fn take(free: &[u32], wants: u32) -> Numbers {
    match free.get(..wants as usize) {
        Some(numbers) => Ok(numbers.to_vec()),
        None => Err("no barrier is left for it"),
    }
}

fn is_call(linked: &Linked, pc: u32) -> bool {
    use crate::reconverge::instruction::Flow;
    matches!(linked.instruction(pc).flow(), Flow::Call { .. } | Flow::IndirectCall)
}

/// How many branches of its function go round the wait of a barrier.
fn depth(bodies: &[Body], entry: u32, barrier: &Barrier) -> usize {
    let Some(body) = bodies.iter().find(|body| body.entry == entry) else { return 0 };
    let Some(wait) = barrier.waits.first().and_then(|&pc| body.node(pc)) else { return 0 };
    let back = |from: usize| body.graph.next[from].iter().filter(move |&&to| body.dominates(to, from)).count();
    let cycle = body.graph.cycle(wait, |_| true);
    (0..body.pcs.len()).filter(|&node| cycle[node]).map(back).sum()
}

//! Barriers at the post-dominators of branches, as a compiler for hardware without path tables places them (§4.3).
//!
//! Threads that part at a branch meet at its immediate post-dominator, so that is where they wait. All branches with
//! one post-dominator share a barrier. A branch in a loop that its post-dominator is outside of has its join where
//! threads enter the loop, else before the branch; a branch whose threads have joined already has none.
//!
//! A branch whose threads reconverge behind the return only has no barrier: there is no place for the wait.

use super::body::Body;
use super::dataflow::{Event, Events};
use super::linked::Linked;
use super::place::{Barrier, Place, Why, range};
use crate::reconverge::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// The barriers of a function, for all branches where threads may diverge. In regions, any may.
pub fn barriers(linked: &Linked, body: &Body, regions: &BTreeSet<u32>) -> Vec<Barrier> {
    let mut of_meeting: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for branch in &linked.analysis.branches {
        let parts = matches!(branch.kind, Kind::Branch | Kind::IndirectJump) && branch.next.len() > 1;
        if !parts || branch.function != body.entry || branch.uniform && !regions.contains(&branch.pc) {
            continue;
        }
        let node = body.node(branch.pc).expect("the branch is in its function");
        if let Some(meeting) = body.behind[node] {
            of_meeting.entry(meeting).or_default().push(node);
        }
    }
    of_meeting.into_iter().map(|(meeting, branches)| barrier(body, meeting, branches)).collect()
}

fn barrier(body: &Body, meeting: usize, mut branches: Vec<usize>) -> Barrier {
    // Those that dominate others come before them.
    branches.sort_by_key(|&node| body.depth[node]);
    let mut events = Events::none(body);
    events.before[meeting].push(Event::Wait);
    let mut joins: Vec<(Place, usize)> = Vec::new();
    let mut ranges: Vec<BTreeSet<u32>> = Vec::new();
    for node in branches {
        let joined = joins.iter().zip(&ranges);
        if joined.into_iter().any(|(&(_, start), range)| body.dominates(start, node) && range.contains(&body.pcs[node]))
        {
            continue;
        }
        for (place, start) in starts(body, node, meeting) {
            if !joins.contains(&(place, start)) {
                joins.push((place, start));
                ranges.push(range(body, &events, &[], start));
            }
        }
    }
    Barrier {
        why: Why::PostDominator,
        function: body.entry,
        threshold: 0,
        joins: joins.into_iter().map(|(place, _)| place).collect(),
        waits: vec![body.pcs[meeting]],
        calls: vec![],
        rejoins: vec![],
        cancels: vec![],
        gives_way: vec![],
        ranges,
    }
}

/// Where the threads of a branch join, and the first node where they have.
fn starts(body: &Body, node: usize, meeting: usize) -> Vec<(Place, usize)> {
    let turns = body.graph.cycle(node, |other| other != meeting);
    if !turns.contains(&true) {
        return vec![(Place::Before(body.pcs[node]), node)];
    }
    let mut starts = Vec::new();
    for head in (0..body.pcs.len()).filter(|&head| turns[head]) {
        let outside = body.graph.previous[head].iter().filter(|&&from| !turns[from]);
        starts.extend(outside.map(|&from| (Place::Edge(body.pcs[from], body.pcs[head]), head)));
        if head == body.first {
            starts.push((Place::Before(body.pcs[head]), head));
        }
    }
    starts
}

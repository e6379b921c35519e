//! Where the instructions of a barrier go (§4.2).
//!
//! Joins and waits are given. A thread that has waited and may wait again joins again at once. A thread that has joined
//! and can no longer come to a wait is cancelled: at the head of the block to which all come that way, else on the
//! edge.
//!
//! A *live range* is the instructions that a thread of one join executes as a participant, until it waits or is
//! cancelled.

use super::body::Body;
use super::dataflow::{Event, Events, States};
use std::collections::BTreeSet;

/// Where instructions are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Before(u32),
    Edge(u32, u32),
}

/// What a barrier is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Of a region of this name.
    Predicted(String),
    /// Meets the threads of that region behind it.
    Region(String),
    /// Of a region whose threads call this function.
    Function(String),
    /// Meets the threads that diverge at branches.
    PostDominator,
}

/// A barrier, before it has a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    pub why: Why,
    /// Entry of the function.
    pub function: u32,
    pub threshold: u32,
    pub joins: Vec<Place>,
    pub waits: Vec<u32>,
    /// Calls in which threads may come to the wait.
    pub calls: Vec<u32>,
    /// The waits behind which threads join again.
    pub rejoins: Vec<u32>,
    pub cancels: Vec<Place>,
    /// Cancelled before the wait of another barrier.
    pub gives_way: Vec<u32>,
    /// Live ranges, one for each join and rejoin.
    pub ranges: Vec<BTreeSet<u32>>,
}

impl Barrier {
    /// Instructions that participants execute.
    pub fn range(&self) -> BTreeSet<u32> {
        self.ranges.iter().flatten().copied().collect()
    }

    /// Every instruction where it matters which barriers have this number.
    pub fn extent(&self) -> BTreeSet<u32> {
        let mut all = self.range();
        let places = self.joins.iter().chain(&self.cancels).flat_map(|place| match *place {
            Place::Before(pc) => vec![pc],
            Place::Edge(from, to) => vec![from, to],
        });
        all.extend(places);
        all.extend(&self.waits);
        all
    }
}

/// What is placed for joins and waits.
pub struct Placed {
    /// Nodes that join again behind their wait.
    pub rejoins: Vec<usize>,
    pub cancels: Vec<Place>,
    /// Equation 1 with the rejoins.
    pub joined: States,
    pub live: States,
}

/// Rejoins and cancels. If `rejoined`, threads that wait in a function that is called join again there.
pub fn place(body: &Body, events: &mut Events, rejoined: bool) -> Placed {
    let live = events.live(body);
    let mut rejoins = Vec::new();
    for node in 0..body.pcs.len() {
        // No join follows a wait at one instruction, so what is live when it is executed is so behind the wait.
        if events.before[node].last() == Some(&Event::Wait) && live.at[node] {
            rejoins.push(node);
            events.before[node].push(Event::Join);
        }
        if rejoined && !events.called[node].is_empty() {
            events.called[node].push(Event::Join);
        }
    }
    let joined = events.joined(body);
    let mut cancels = BTreeSet::new();
    // Threads leave on the edge from one node to another.
    let leave = |from: usize, to: usize| {
        let came = live.out[from] || rejoined && !events.called[from].is_empty();
        joined.out[from] && came && !live.into[to]
    };
    for node in 0..body.pcs.len() {
        let previous = &body.graph.previous[node];
        let all = node != body.first && previous.iter().all(|&from| leave(from, node));
        if all && !previous.is_empty() {
            cancels.insert(Place::Before(body.pcs[node]));
        } else {
            let leaving = previous.iter().filter(|&&from| leave(from, node));
            cancels.extend(leaving.map(|&from| Place::Edge(body.pcs[from], body.pcs[node])));
        }
        if joined.out[node] && live.out[node] {
            cancels.extend(body.leaves[node].iter().map(|&to| Place::Edge(body.pcs[node], to)));
        }
    }
    Placed { rejoins, cancels: cancels.into_iter().collect(), joined, live }
}

/// The live range of a join that takes effect when this node is executed, or on the edge to it.
pub fn range(body: &Body, events: &Events, cancels: &[Place], start: usize) -> BTreeSet<u32> {
    let mut seen = BTreeSet::new();
    let mut left = vec![start];
    while let Some(node) = left.pop() {
        if !seen.insert(body.pcs[node]) || events.called[node].contains(&Event::Wait) {
            continue;
        }
        for &next in &body.graph.next[node] {
            let cancelled = cancels.contains(&Place::Before(body.pcs[next]))
                || cancels.contains(&Place::Edge(body.pcs[node], body.pcs[next]));
            if !cancelled && !events.before[next].contains(&Event::Wait) {
                left.push(next);
            }
        }
    }
    seen
}

/// The barrier of a region with one point, and the one that meets its threads behind it, if they meet in the function.
pub fn region(body: &Body, why: Why, joins: &[u32], point: u32, threshold: u32) -> (Barrier, Option<Barrier>) {
    let mut events = Events::none(body);
    let node = |pc: u32| body.node(pc).expect("directives stand at instructions of the function");
    for &join in joins {
        events.before[node(join)].push(Event::Join);
    }
    events.before[node(point)].push(Event::Wait);
    let placed = place(body, &mut events, false);
    let starts = joins.iter().copied().filter(|&join| join != point).chain(placed.rejoins.iter().map(|&n| body.pcs[n]));
    let ranges = starts.map(|pc| range(body, &events, &placed.cancels, node(pc))).collect();
    let barrier = Barrier {
        why,
        function: body.entry,
        threshold,
        joins: joins.iter().map(|&pc| Place::Before(pc)).collect(),
        waits: vec![point],
        calls: vec![],
        rejoins: placed.rejoins.iter().map(|&node| body.pcs[node]).collect(),
        cancels: placed.cancels.clone(),
        gives_way: vec![],
        ranges,
    };
    let meets = meet(body, &barrier.why, joins, &placed);
    (barrier, meets)
}

/// The barrier at the dominator and the post-dominator of a region, which is where its barrier is live.
pub fn meet(body: &Body, why: &Why, joins: &[u32], placed: &Placed) -> Option<Barrier> {
    let nodes: Vec<usize> = joins.iter().filter_map(|&pc| body.node(pc)).collect();
    let first = body.dominator(&nodes)?;
    let mut inside: Vec<bool> =
        placed.joined.at.iter().zip(&placed.live.at).map(|(&joined, &live)| joined && live).collect();
    nodes.iter().for_each(|&node| inside[node] = true);
    inside[first] = true;
    let behind = body.behind_all(first, &inside)?;
    let name = match why {
        Why::Predicted(name) | Why::Function(name) | Why::Region(name) => name.clone(),
        Why::PostDominator => return None,
    };
    let mut events = Events::none(body);
    events.before[behind].push(Event::Wait);
    // Every thread comes to the post-dominator, or ends.
    Some(Barrier {
        why: Why::Region(name),
        function: body.entry,
        threshold: 0,
        joins: vec![Place::Before(body.pcs[first])],
        waits: vec![body.pcs[behind]],
        calls: vec![],
        rejoins: vec![],
        cancels: vec![],
        gives_way: vec![],
        ranges: vec![range(body, &events, &[], first)],
    })
}

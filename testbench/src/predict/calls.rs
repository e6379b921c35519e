//! Regions whose threads wait where a function begins (§4.4).
//!
//! What a call does is propagated upward through the call graph: a call of the function, or of one that calls it, is a
//! wait in the caller. The wait itself stands at the beginning of the function. If threads may call it again, they join
//! again right behind the wait, and who will not is cancelled where the call comes back.
//!
//! All regions of one function share a barrier, which has a number of its own in the whole program.

use super::PredictError;
use super::body::Body;
use super::dataflow::{Event, Events};
use super::directives::{Directive, Kind};
use super::linked::Linked;
use super::place::{self, Barrier, Place, Why};
use crate::reconverge::graph::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// Which functions each function may come to by calls, and which calls may come to any.
pub struct Calls {
    pub reaches: BTreeMap<u32, BTreeSet<u32>>,
    /// Each function after those that call it; those that call each other in any order.
    pub callers_first: Vec<u32>,
    pub unknown: BTreeSet<u32>,
}

impl Calls {
    pub fn of(linked: &Linked, bodies: &[Body]) -> Calls {
        let called = |body: &Body| -> BTreeSet<u32> {
            let all = body.pcs.iter().filter_map(|pc| linked.analysis.callees.get(pc));
            all.flatten().copied().collect()
        };
        let direct: BTreeMap<u32, BTreeSet<u32>> = bodies.iter().map(|body| (body.entry, called(body))).collect();
        let number = |entry: &u32| bodies.binary_search_by_key(entry, |body| body.entry).ok();
        let next = direct.values().map(|of| of.iter().filter_map(number).collect()).collect();
        let graph = Graph::new(next, vec![false; bodies.len()], vec![false; bodies.len()]);
        let mut callers_first: Vec<u32> =
            graph.components().iter().flatten().map(|&function| bodies[function].entry).collect();
        callers_first.reverse();
        let reach = |entry: u32| {
            let mut seen = BTreeSet::new();
            let mut left: Vec<u32> = direct[&entry].iter().copied().collect();
            while let Some(callee) = left.pop() {
                if seen.insert(callee) {
                    left.extend(direct.get(&callee).into_iter().flatten());
                }
            }
            seen
        };
        Calls {
            reaches: direct.keys().map(|&entry| (entry, reach(entry))).collect(),
            callers_first,
            unknown: linked.analysis.unknown.iter().copied().collect(),
        }
    }

    /// The functions that a call may come to.
    pub fn from(&self, linked: &Linked, call: u32) -> BTreeSet<u32> {
        let callees = linked.analysis.callees.get(&call).into_iter().flatten();
        callees.flat_map(|callee| self.reaches.get(callee).into_iter().flatten().chain([callee])).copied().collect()
    }
}

/// The barriers of all functions that regions name, and what should be said.
pub fn barriers(
    linked: &Linked,
    bodies: &[Body],
    calls: &Calls,
    directives: &[Directive],
) -> Result<(Vec<Barrier>, Vec<String>), PredictError> {
    let mut of_name: BTreeMap<&str, Vec<&Directive>> = BTreeMap::new();
    for directive in directives.iter().filter(|d| d.kind == Kind::PredictFunction) {
        of_name.entry(&directive.name).or_default().push(directive);
    }
    let (mut barriers, mut notes) = (Vec::new(), Vec::new());
    for (name, starts) in of_name {
        let text = format!("{} at {}", starts[0].text(), linked.place(starts[0].pc));
        let refused = |why: &str| PredictError::Directive { line: format!("{text} {why}") };
        let symbol = linked.program.symbols().iter().find(|s| s.function && s.name == name);
        let symbol = symbol.ok_or_else(|| refused("names no function of the program: was it inlined?"))?;
        let function = symbol.address;
        let target = bodies.iter().find(|body| body.entry == function);
        let target = target.ok_or_else(|| refused("names a function that nobody calls"))?;
        if calls.reaches[&function].contains(&function) {
            notes.push(format!("{text}: {name} calls itself, so nothing is placed"));
            continue;
        }
        for &caller in linked.analysis.callees.iter().filter(|(_, to)| to.contains(&function)).map(|(pc, _)| pc) {
            use crate::reconverge::instruction::Flow;
            if !matches!(linked.instruction(caller).flow(), Flow::Call { .. } | Flow::IndirectCall) {
                let place = linked.place(caller);
                notes.push(format!(
                    "{text}: the tail call at {place} comes to {name} at another call depth, where its threads wait for no others: \
                     build with -fno-optimize-sibling-calls"
                ));
            }
        }
        let mut all: Vec<Barrier> = Vec::new();
        let mut rejoins = false;
        // The functions in which regions begin, where they do, and what happens there.
        let mut begun = Vec::new();
        for body in bodies {
            let joins: Vec<u32> = starts.iter().map(|start| start.pc).filter(|&pc| body.node(pc).is_some()).collect();
            if joins.is_empty() {
                continue;
            }
            let mut events = called(linked, body, calls, function);
            for &pc in &joins {
                events.before[body.node(pc).expect("it is in the function")].push(Event::Join);
            }
            let live = events.live(body);
            if !joins.iter().any(|&pc| live.at[body.node(pc).expect("it is in the function")]) {
                return Err(refused(&format!("begins a region that calls {name} nowhere")));
            }
            rejoins |= (0..body.pcs.len()).any(|node| !events.called[node].is_empty() && live.out[node]);
            begun.push((body, joins, events));
        }
        let threshold = starts.iter().map(|start| start.threshold).max().unwrap_or(0);
        for (body, joins, mut events) in begun {
            let node = |pc: u32| body.node(pc).expect("it is in the function");
            let placed = place::place(body, &mut events, rejoins);
            let why = Why::Function(name.to_string());
            let meets = place::meet(body, &why, &joins, &placed);
            let ranges = joins.iter().map(|&pc| place::range(body, &events, &placed.cancels, node(pc))).collect();
            let waiting =
                (0..body.pcs.len()).filter(|&node| !events.called[node].is_empty()).map(|node| body.pcs[node]);
            all.push(Barrier {
                why,
                function: body.entry,
                threshold,
                joins: joins.iter().map(|&pc| Place::Before(pc)).collect(),
                waits: vec![],
                calls: waiting.collect(),
                rejoins: vec![],
                cancels: placed.cancels,
                gives_way: vec![],
                ranges,
            });
            barriers.extend(meets);
        }
        let Some(mut one) = all.pop() else { continue };
        for other in all {
            one.joins.extend(other.joins);
            one.cancels.extend(other.cancels);
            one.ranges.extend(other.ranges);
            one.calls.extend(other.calls);
        }
        one.waits = vec![function];
        if rejoins {
            one.rejoins = vec![function];
            one.ranges.push(target.pcs.iter().copied().collect());
        }
        barriers.push(one);
    }
    Ok((barriers, notes))
}

/// What calls do to the barrier of a function.
fn called(linked: &Linked, body: &Body, calls: &Calls, function: u32) -> Events {
    let mut events = Events::none(body);
    for (node, &pc) in body.pcs.iter().enumerate() {
        let Some(callees) = linked.analysis.callees.get(&pc) else { continue };
        if callees.iter().all(|&callee| callee == function) {
            events.called[node].push(Event::Wait);
        } else if calls.from(linked, pc).contains(&function) {
            events.called[node].push(Event::MayWait);
        }
    }
    events
}

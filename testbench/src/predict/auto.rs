//! Regions that nobody asked for (§4.5): two patterns in the graph, and whether what they gain is worth what they cost.
//!
//! * **Loop merge**: a loop in a loop, with turns that differ from thread to thread. Threads wait at the head of the
//!   inner loop, so that those in another turn of the outer loop take part.
//! * **Iteration delay**: one side of a branch in a loop. Threads wait where it begins, for those that come to it in
//!   later turns.
//!
//! The three costs of the paper:
//!
//! * The rest of the outer loop (prolog and epilog) issues for fewer threads at a time, and branches inside part more
//!   threads. A thread executes an instruction of it so many times from one wait to the next, some threads never and
//!   some again and again ([`Visits`]); a warp issues it as often as the thread of its lanes that does so most often
//!   ([`most`]).
//! * An access to memory at a thread's own address costs as much as several instructions, there and inside: with fewer
//!   threads at a time fewer of them go together. In a profile it costs what it cost: the cycles until the next issue
//!   of its warp.
//! * A loop with a block's barrier, hints of its own, or a call of which nobody knows where it leads is left as it is.
//!
//! Inside, a warp waits as often as the thread that comes to the point most often. How often instructions issue, for
//! how many threads, and how often for one thread is known from a profile of runs, or guessed from the graph alone
//! ([`estimate`]). The paper leaves profiles as future work.

use super::body::Body;
use super::calls::Calls;
use super::linked::Linked;
use super::profile::Profile;
use super::regions::Region;
use super::visits::Visits;
use heddle_simt::isa::BARRIER;
use std::collections::{BTreeMap, BTreeSet};

/// How many other instructions waits, rejoins and cancels of one wait cost as much as.
const HINTS: f64 = 4.0;
/// What must be gained, of what the outer loop costs, and of what the program costs. With less, kernels lose that gain
/// nothing (docs/studies/speculative.md).
const LEAST: f64 = 0.2;
const LEAST_OF_ALL: f64 = 0.03;
/// Guesses without a profile: how many other instructions an access to memory at a thread's own address costs as much
/// as, turns of a loop, threads of a warp.
const ACCESS: f64 = 8.0;
const TURNS: f64 = 8.0;
const THREADS: f64 = 32.0;

/// How often the instructions of a function issue, for how many lanes in all, how often they would if threads were
/// together, and what an issue costs.
struct Counts {
    issues: Vec<f64>,
    lanes: Vec<f64>,
    least: Vec<f64>,
    cost: Vec<f64>,
}

/// A loop with one head.
struct Loop {
    head: usize,
    nodes: Vec<bool>,
    /// All threads leave it in the same turn.
    uniform: bool,
}

/// Threads may wait here for each other.
struct Candidate {
    region: Region,
    /// The outer loop.
    pcs: BTreeSet<u32>,
    /// Issues of the outer loop, as it is and as it would be.
    now: f64,
    then: f64,
}

/// The regions that gain most, outside of `taken`, and a line about each.
pub fn find(
    linked: &Linked,
    bodies: &[Body],
    calls: &Calls,
    taken: &BTreeSet<u32>,
    profile: Option<&Profile>,
) -> (Vec<Region>, Vec<String>) {
    let threads = profile.map_or(THREADS, |profile| profile.lanes.into());
    let loops: Vec<Vec<Loop>> = bodies.iter().map(|body| loops(linked, body)).collect();
    let counts = bodies.iter().zip(&loops).map(|(body, loops)| match profile {
        Some(profile) => counts(body, profile),
        None => estimate(linked, body, loops),
    });
    let counts: Vec<Counts> = counts.collect();
    let weights = weights(linked, bodies, calls, &counts);
    let cost = |at: usize| counts[at].issues.iter().zip(&weights[at]).map(|(issues, weight)| issues * weight);
    // A function's cost is in its callers', too: the program costs what its costliest function does.
    let all = (0..bodies.len()).map(|at| cost(at).sum::<f64>()).fold(0.0, f64::max);
    let mut candidates = Vec::new();
    for (at, body) in bodies.iter().enumerate() {
        let found = patterns(linked, body, &loops[at]).into_iter();
        candidates.extend(found.filter(|found| suits(linked, body, calls, found.outer)).map(|found| {
            let (now, then) = costs(body, &counts[at], &weights[at], threads, &found);
            let name = format!("{} at {}", found.name, linked.place(body.pcs[found.point]));
            let (joins, point) = (vec![body.pcs[found.join]], body.pcs[found.point]);
            let pcs = (0..body.pcs.len()).filter(|&node| found.outer[node]).map(|node| body.pcs[node]).collect();
            Candidate { region: Region { name, function: body.entry, joins, point, threshold: 0 }, pcs, now, then }
        }));
    }
    let gain = |candidate: &Candidate| candidate.now - candidate.then;
    candidates.retain(|candidate| {
        let gain = gain(candidate);
        candidate.now > 0.0 && gain >= LEAST * candidate.now && (profile.is_none() || gain >= LEAST_OF_ALL * all)
    });
    candidates.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
    let mut taken = taken.clone();
    let (mut regions, mut notes) = (Vec::new(), Vec::new());
    for Candidate { region, pcs, now, then } in candidates {
        // One of several that overlap, functions that they call included.
        let called: BTreeSet<u32> = pcs.iter().flat_map(|&pc| calls.from(linked, pc)).collect();
        let inside = bodies.iter().filter(|body| called.contains(&body.entry)).flat_map(|body| &body.pcs);
        let all: BTreeSet<u32> = pcs.iter().chain(inside).copied().collect();
        if all.is_disjoint(&taken) {
            taken.extend(&all);
            notes.push(format!(
                "{}: its outer loop is expected to cost {:.0} % of what it does",
                region.name,
                100.0 * then / now
            ));
            regions.push(region);
        }
    }
    if regions.is_empty() {
        notes.push("no loop merge or iteration delay was found that should pay".into());
    }
    (regions, notes)
}

fn counts(body: &Body, profile: &Profile) -> Counts {
    let of = |pc: &u32| profile.instructions.get(pc).copied().unwrap_or_default();
    Counts {
        issues: body.pcs.iter().map(|pc| of(pc).issues as f64).collect(),
        lanes: body.pcs.iter().map(|pc| of(pc).lanes as f64).collect(),
        least: body.pcs.iter().map(|pc| of(pc).least as f64).collect(),
        cost: body.pcs.iter().map(|pc| of(pc).cycles as f64 / (of(pc).issues as f64).max(1.0)).collect(),
    }
}

/// The loops of a function that have one head, which dominates them.
fn loops(linked: &Linked, body: &Body) -> Vec<Loop> {
    let nodes = 0..body.pcs.len();
    let mut by_head: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
    for from in nodes.clone() {
        for &head in body.graph.next[from].iter().filter(|&&head| body.dominates(head, from)) {
            let mut turn = body.graph.leading(from, |node| node != head);
            turn[head] = true;
            let all = by_head.entry(head).or_insert_with(|| vec![false; body.pcs.len()]);
            all.iter_mut().zip(turn).for_each(|(all, turn)| *all |= turn);
        }
    }
    let uniform = |nodes: &[bool]| {
        let leaves = |node: usize| nodes[node] && body.graph.next[node].iter().any(|&next| !nodes[next]);
        (0..nodes.len()).filter(|&node| leaves(node)).all(|node| !parts(linked, body, node))
    };
    by_head.into_iter().map(|(head, nodes)| Loop { head, uniform: uniform(&nodes), nodes }).collect()
}

/// Threads may part behind this instruction.
fn parts(linked: &Linked, body: &Body, node: usize) -> bool {
    linked.analysis.branch(body.pcs[node]).is_some_and(|branch| branch.next.len() > 1 && !branch.uniform)
}

/// A pattern: the outer loop, what should be executed together and where that begins, and where threads join.
struct Pattern<'a> {
    name: &'static str,
    outer: &'a [bool],
    inner: Vec<bool>,
    point: usize,
    join: usize,
}

fn patterns<'a>(linked: &Linked, body: &Body, loops: &'a [Loop]) -> Vec<Pattern<'a>> {
    let mut found = Vec::new();
    for outer in loops {
        let before: Vec<usize> =
            body.graph.previous[outer.head].iter().copied().filter(|&node| !outer.nodes[node]).collect();
        let Some(join) = body.dominator(&before) else { continue };
        let inside = |nodes: &[bool]| nodes.iter().zip(&outer.nodes).all(|(&inner, &outer)| outer || !inner);
        for inner in loops.iter().filter(|inner| inner.head != outer.head && !inner.uniform && inside(&inner.nodes)) {
            let (point, inner) = (inner.head, inner.nodes.clone());
            found.push(Pattern { name: "loop merge", outer: &outer.nodes, inner, point, join });
        }
        let turns: Vec<usize> =
            body.graph.previous[outer.head].iter().copied().filter(|&node| outer.nodes[node]).collect();
        for branch in (0..body.pcs.len()).filter(|&node| outer.nodes[node] && parts(linked, body, node)) {
            for &point in &body.graph.next[branch] {
                let alone = body.graph.previous[point] == [branch] && outer.nodes[point];
                // What every turn comes to is no side.
                if !alone || turns.iter().any(|&last| body.dominates(point, last)) {
                    continue;
                }
                let inner = (0..body.pcs.len()).map(|node| outer.nodes[node] && body.dominates(point, node)).collect();
                found.push(Pattern { name: "iteration delay", outer: &outer.nodes, inner, point, join });
            }
        }
    }
    found
}

/// Nothing in the loop asks for threads to be together.
fn suits(linked: &Linked, body: &Body, calls: &Calls, nodes: &[bool]) -> bool {
    let opcode = BARRIER & 0x7f;
    let pcs = || (0..nodes.len()).filter(|&node| nodes[node]).map(|node| body.pcs[node]);
    let called: BTreeSet<u32> = pcs().flat_map(|pc| calls.from(linked, pc)).collect();
    let functions = linked.analysis.functions.iter().filter(|function| called.contains(&function.entry));
    let inside = functions.flat_map(|function| &function.blocks).flat_map(|block| (block.start..block.end).step_by(4));
    let mut all = pcs().chain(inside);
    all.all(|pc| linked.instruction(pc).opcode() != opcode && !calls.unknown.contains(&pc))
}

/// What an issue of each instruction costs, the functions that it calls included.
fn weights(linked: &Linked, bodies: &[Body], calls: &Calls, counts: &[Counts]) -> Vec<Vec<f64>> {
    let mut of_call: BTreeMap<u32, f64> = BTreeMap::new();
    let mut weights = vec![Vec::new(); bodies.len()];
    for entry in calls.callers_first.iter().rev() {
        let Some(at) = bodies.iter().position(|body| body.entry == *entry) else { continue };
        let (body, counts) = (&bodies[at], &counts[at]);
        let weight = |(pc, cost): (&u32, &f64)| {
            let callees = linked.analysis.callees.get(pc).into_iter().flatten();
            // Of calls in a circle, some are not known yet, and count nothing.
            let called = callees.map(|callee| of_call.get(callee).copied().unwrap_or(0.0)).fold(0.0, f64::max);
            cost + called
        };
        let of_body: Vec<f64> = body.pcs.iter().zip(&counts.cost).map(weight).collect();
        let cost: f64 = counts.issues.iter().zip(&of_body).map(|(issues, weight)| issues * weight).sum();
        of_call.insert(body.entry, cost / counts.issues[body.first].max(1.0));
        weights[at] = of_body;
    }
    weights
}

/// What the outer loop costs now, and what it would cost.
fn costs(body: &Body, counts: &Counts, weights: &[f64], threads: f64, pattern: &Pattern) -> (f64, f64) {
    let Counts { issues, lanes, least, .. } = counts;
    let (at_point, of_point) = (issues[pattern.point], lanes[pattern.point]);
    if at_point <= 0.0 {
        return (0.0, 0.0);
    }
    let visits = Visits::new(&body.graph, body.first, lanes, pattern.outer, pattern.point);
    let waits = least[pattern.point].min(at_point);
    let (threads_now, threads_then) = (of_point / at_point, (of_point / waits).min(threads));
    // What no memory is waited for costs least.
    let inserted =
        (0..body.pcs.len()).filter(|&node| pattern.outer[node] && issues[node] > 0.0).map(|node| weights[node]);
    let (mut now, mut then) = (0.0, HINTS * waits * inserted.fold(f64::INFINITY, f64::min));
    for node in (0..body.pcs.len()).filter(|&node| pattern.outer[node]) {
        let times = lanes[node] / of_point;
        let a_wait = match pattern.inner[node] {
            true => more(times, visits.again(node), issues[node] / at_point, threads_now, threads_then),
            false => most(times, visits.again(node), threads),
        };
        now += weights[node] * issues[node];
        then += weights[node] * (waits * a_wait).clamp(least[node].min(lanes[node]), lanes[node]);
    }
    (now, then)
}

/// How often an instruction issues for more threads, which for some issues `now` times and each executes `times` times,
/// once more with the chance `again`: between doing so in step with each other and without knowing of each other as
/// much as now. Where it issues less often than in step, threads that have parted meet already, which those that wait
/// elsewhere cannot: they count as not knowing of each other.
fn more(times: f64, again: f64, now: f64, threads_now: f64, threads_then: f64) -> f64 {
    let (apart_now, apart_then) = (most(times, again, threads_now) - times, most(times, again, threads_then) - times);
    let meets = now < 0.95 * times;
    let apart = if apart_now > 1e-6 && !meets { ((now - times) / apart_now).clamp(0.0, 1.0) } else { 1.0 };
    times + apart * apart_then
}

/// If a thread does something `mean` times on the average, once more with the chance `again` when it has done it (and
/// more probably, if the mean says so), how often the thread does it that does it most often of so many.
fn most(mean: f64, again: f64, threads: f64) -> f64 {
    if mean > 100.0 {
        return mean * (1..=threads.round() as u32).map(|k| 1.0 / f64::from(k)).sum::<f64>();
    }
    let ever = (mean * (1.0 - again)).min(1.0);
    let mut sum = 0.0;
    // The chance that a thread does it more than so many times.
    let mut more = ever;
    loop {
        let any = 1.0 - (1.0 - more).powf(threads);
        sum += any;
        if any < 1e-3 {
            return sum;
        }
        more *= 1.0 - ever / mean;
    }
}

/// Counts without a profile: a warp enters the function once, loops have [`TURNS`] turns on the average, a branch goes
/// both ways alike, and threads do not know of each other.
fn estimate(linked: &Linked, body: &Body, loops: &[Loop]) -> Counts {
    let inmost = |node: usize| {
        let around = loops.iter().enumerate().filter(|(_, one)| one.nodes[node]);
        around.min_by_key(|(_, one)| one.nodes.iter().filter(|&&inside| inside).count()).map(|(at, _)| at)
    };
    let around: Vec<Option<usize>> = (0..body.pcs.len()).map(inmost).collect();
    let share = |from: usize, to: usize| {
        let next = &body.graph.next[from];
        let stays = |to: usize| around[from].is_none_or(|at| loops[at].nodes[to]);
        let staying = next.iter().filter(|&&next| stays(next)).count();
        match (staying, next.len() - staying) {
            (staying, 0) => 1.0 / staying as f64,
            (0, leaving) => 1.0 / leaving as f64,
            (staying, _) if stays(to) => (1.0 - 1.0 / TURNS) / staying as f64,
            (_, leaving) => 1.0 / TURNS / leaving as f64,
        }
    };
    let mut times = vec![0.0; body.pcs.len()];
    // Turn after turn, until what changes is little; a loop that nothing leaves would never end.
    for _ in 0..1000 {
        let mut change: f64 = 0.0;
        for node in 0..body.pcs.len() {
            let into: f64 = body.graph.previous[node].iter().map(|&from| times[from] * share(from, node)).sum();
            let new = into + if node == body.first { 1.0 } else { 0.0 };
            change = change.max((new - times[node]).abs() / new.max(1.0));
            times[node] = new;
        }
        if change < 1e-3 {
            break;
        }
    }
    // Outer loops before those inside, so that issues of their heads are known.
    let mut order: Vec<usize> = (0..loops.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(loops[at].nodes.iter().filter(|&&inside| inside).count()));
    let mut heads = vec![0.0; loops.len()];
    let ratio = |times: f64, of: f64| if of > 0.0 { times / of } else { 0.0 };
    for (place, &at) in order.iter().enumerate() {
        let Loop { head, uniform, .. } = loops[at];
        let outer = order[..place].iter().rev().copied().find(|&outer| loops[outer].nodes[head]);
        let (issues, entered) = outer.map_or((1.0, 1.0), |outer| (heads[outer], times[loops[outer].head]));
        let turns = ratio(times[head], entered);
        heads[at] = issues * if uniform { turns } else { most(turns, 0.0, THREADS) };
    }
    let issues = (0..body.pcs.len()).map(|node| match around[node] {
        Some(at) => heads[at] * most(ratio(times[node], times[loops[at].head]).min(1.0), 0.0, THREADS),
        None => most(times[node].min(1.0), 0.0, THREADS),
    });
    let lanes = times.iter().map(|times| times * THREADS);
    let cost = body.pcs.iter().map(|pc| if linked.analysis.scattered.contains(pc) { ACCESS } else { 1.0 });
    Counts { issues: issues.collect(), lanes: lanes.collect(), cost: cost.collect(), least: times }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;
    use crate::predict::{Automatic, Issue, Options, Prediction, Recording, predict};

    fn automatic(kernel: &str, profile: Option<Profile>) -> Prediction {
        let options = Options { directives: false, automatic: Some(Automatic { profile }), ..Options::default() };
        predict(kernels::find(kernel).unwrap().elf, &options).unwrap()
    }

    #[test]
    fn the_thread_that_does_most() {
        assert_eq!(most(0.0, 0.0, 32.0), 0.0);
        assert_eq!(most(1.0, 0.0, 32.0), 1.0);
        assert!((most(0.5, 0.0, 1.0) - 0.5).abs() < 1e-9 && (most(4.0, 0.0, 1.0) - 4.0).abs() < 0.01);
        assert!((most(0.1, 0.0, 2.0) - 0.19).abs() < 1e-9);
        // Both ways of counting agree where they reconverge.
        assert!((most(100.0, 0.0, 32.0) / most(100.1, 0.0, 32.0) - 1.0).abs() < 0.05);
        assert!(most(2.0, 0.0, 32.0) > 5.0 && most(2.0, 0.0, 32.0) < 8.0);
        // One thread does it on the average as often, many more often when those that do it at all repeat it.
        assert!((most(0.6, 0.3, 1.0) - 0.6).abs() < 0.01);
        assert!(most(0.6, 0.3, 32.0) > 2.0 * most(0.6, 0.0, 32.0));
        // A chance that would make it more rare than always is too small.
        assert_eq!(most(2.0, 0.1, 32.0), most(2.0, 0.0, 32.0));
    }

    /// The microbenchmarks of the two patterns, whose directives stand at the places that the paper's Figure 2 names.
    #[test]
    fn patterns_are_found_where_directives_stand() {
        for (kernel, name) in [("loop_merge", "loop merge"), ("iteration_delay", "iteration delay")] {
            let asked = predict(kernels::find(kernel).unwrap().elf, &Options::default()).unwrap();
            let found = automatic(kernel, None);
            let waits = |prediction: &Prediction| -> BTreeSet<u32> {
                let first = &prediction.placements[0].instructions;
                first.iter().filter(|row| row.instruction == "wait").map(|row| row.pc).collect()
            };
            assert!(found.notes.iter().any(|note| note.starts_with(name)), "{kernel}: {:?}", found.notes);
            assert_eq!(waits(&found), waits(&asked), "{kernel}: {:?}", found.notes);
        }
    }

    /// Whatever is found, the programs can be laid out.
    #[test]
    fn every_kernel_can_be_looked_at() {
        for kernel in kernels::ALL {
            let found = automatic(kernel.name, None);
            assert!(!found.notes.is_empty(), "{}", kernel.name);
        }
    }

    /// A profile in which all lanes are active wherever they are says that nothing is to be gained.
    #[test]
    fn nothing_is_placed_where_threads_are_together() {
        for kernel in ["loop_merge", "iteration_delay", "rsbench"] {
            let program = crate::Program::parse(kernels::find(kernel).unwrap().elf).unwrap();
            let mut recording = Recording::new(&program, 8);
            let issue = |cycle, pc| Issue { cycle, warp: 0, pc, block: 0 };
            for pc in (0..program.program_end()).step_by(4) {
                (0..1000).for_each(|n| recording.issued(issue(u64::from(pc) * 1000 + n, pc), 0..8));
            }
            let found = automatic(kernel, Some(recording.profile()));
            assert!(found.placements.is_empty() && found.notes.len() == 1, "{kernel}: {:?}", found.notes);
        }
    }
}

//! Dynamic warp subdivision with PC-based reconvergence, as *The Dual-Path Execution Model* describes it and compares
//! with it (`dual-path-execution.txt` §2.2, §4).
//!
//! A warp is on its [stack](super::stack) until a branch parts it whose immediate post-dominator begins a basic block of
//! no more than *threshold* instructions. From there on it is *subdivided*: each side is a warp-split, an entry of the
//! warp-split table, and the stack stands still.
//!
//! * Splits of a warp fetch and issue as if each were a warp of its own.
//! * A branch that parts a split makes two of it, whatever its post-dominator.
//! * A split that comes to the RPC of the stack's top, which is that of all splits, waits there and is no entry any
//!   more. When all have come, the stack goes on.
//! * Two splits that stand at one pc become one, in any cycle, if their calls return to the same places: otherwise one
//!   return would part what no branch did. If that has all threads of the top that live, the warp is on its stack again.
//!
//! Nothing is limited: any number of splits, found and joined in no time, and a scoreboard that knows threads. A warp
//! on its stack waits for results as on the core, whose scoreboard knows warps.

use super::policy::{Outcome, Policy, Thread, Warp, by_pc};
use super::stack::Stacks;
use heddle_testbench::reconverge::{Analysis, Reconvergence};
use std::collections::{BTreeMap, BTreeSet};

/// Of each control instruction, the instructions of the basic block where its threads reconverge, if that is a place.
pub fn behind(analysis: &Analysis) -> BTreeMap<u32, u32> {
    let blocks = analysis.functions.iter().flat_map(|function| &function.blocks);
    let lengths: BTreeMap<u32, u32> = blocks.map(|block| (block.start, (block.end - block.start) / 4)).collect();
    let behind = |rpc: Reconvergence| match rpc {
        Reconvergence::At(pc) => lengths.get(&pc).copied(),
        Reconvergence::Return => None,
    };
    analysis.branches.iter().filter_map(|branch| Some((branch.pc, behind(branch.rpc)?))).collect()
}

/// The stacks of all static warps, and how they are subdivided.
pub struct Subdivision {
    lanes: u32,
    stacks: Stacks,
    threshold: u32,
    /// Of each control instruction, the instructions of the basic block where its threads reconverge.
    behind: BTreeMap<u32, u32>,
    /// Of each static warp, the splits that have yet to come to the RPC, a bit a lane. None, if it is not subdivided.
    table: Vec<Vec<u64>>,
    /// Of the split that issued last.
    last: u32,
}

impl Subdivision {
    pub fn new(lanes: u32, warps: u32, threshold: u32, behind: BTreeMap<u32, u32>) -> Subdivision {
        let table = vec![Vec::new(); warps as usize];
        Subdivision { lanes, stacks: Stacks::new(lanes, warps), threshold, behind, table, last: 0 }
    }

    fn lanes_of(&self, harts: impl Iterator<Item = u32>) -> u64 {
        harts.fold(0, |lanes, hart| lanes | 1 << (hart % self.lanes))
    }

    fn split(&self, warp: &Warp) -> u64 {
        self.lanes_of(warp.harts.iter().copied())
    }

    fn splits(&self, warp: &Warp) -> &[u64] {
        &self.table[self.stacks.slot(warp) as usize]
    }

    /// Where a warp stands among those that take turns: one on its stack as its first thread would.
    fn place(&self, warp: &Warp) -> u32 {
        if self.splits(warp).is_empty() { self.stacks.slot(warp) * self.lanes } else { warp.harts[0] }
    }

    /// Whether a branch that parts threads has them subdivided.
    fn subdivides(&self, outcome: &Outcome) -> bool {
        let behind = outcome.meets.and_then(|_| self.behind.get(&(outcome.next - 4)));
        behind.is_some_and(|&behind| behind <= self.threshold)
    }

    /// The warp is on its stack, if one split has all its threads. Each that lives is in one split, or has arrived.
    fn check_in(&mut self, slot: u32, live: &[Thread], arrived: impl Fn(&Thread) -> bool) {
        let splits = &self.table[slot as usize];
        let all = splits.iter().fold(0, |all, split| all | split);
        assert_eq!(all.count_ones(), splits.iter().map(|split| split.count_ones()).sum::<u32>(), "splits are disjoint");
        let (within, out): (Vec<Thread>, Vec<Thread>) =
            live.iter().partition(|thread| all >> (thread.hart % self.lanes) & 1 == 1);
        assert_eq!(within.len() as u32, all.count_ones(), "splits have threads of the top alone");
        assert!(out.iter().all(arrived), "who is in no split has arrived");
        if let ([_], []) = (&splits[..], &out[..]) {
            self.table[slot as usize].clear();
        }
    }
}

/// Threads as a warp for each pc and place to return to.
fn by_place(threads: &[Thread]) -> Vec<Warp> {
    let calls = |thread: &Thread| (thread.depth, thread.calls);
    let all: BTreeSet<(u32, u64)> = threads.iter().map(calls).collect();
    let at = |of| threads.iter().copied().filter(|thread| calls(thread) == of).collect::<Vec<_>>();
    all.into_iter().flat_map(|of| by_pc(&at(of))).collect()
}

impl Policy for Subdivision {
    fn outcome(&mut self, outcome: &Outcome) -> Vec<(u64, Warp)> {
        let Some(slot) = self.stacks.note(outcome) else { return Vec::new() };
        let (live, rpc) = self.stacks.top(slot);
        let arrived = |thread: &Thread| rpc.is_some_and(|rpc| rpc.reached(*thread));
        if self.table[slot as usize].is_empty() {
            let parts = by_pc(&live).len() > 1 && !live.iter().all(arrived);
            if !parts || !self.subdivides(outcome) {
                return self.stacks.settle(slot, outcome);
            }
        }
        let moved = outcome.going.iter().map(|thread| thread.hart).chain(outcome.ended.iter().copied());
        let moved = self.lanes_of(moved);
        let going: Vec<Thread> = outcome.going.iter().copied().filter(|thread| !arrived(thread)).collect();
        let warps = by_place(&going);
        let new: Vec<u64> = warps.iter().map(|warp| self.split(warp)).collect();
        let splits = &mut self.table[slot as usize];
        splits.iter_mut().for_each(|split| *split &= !moved);
        splits.retain(|&split| split != 0);
        splits.extend(new);
        if splits.is_empty() {
            return self.stacks.settle(slot, outcome);
        }
        self.check_in(slot, &live, arrived);
        warps.into_iter().map(|warp| (0, warp)).collect()
    }

    fn stops(&self, warp: &Warp, pc: u32) -> bool {
        self.stacks.stops(warp, pc)
    }

    fn is_one(&self, warp: &Warp) -> bool {
        self.splits(warp).is_empty()
    }

    fn joins(&mut self, standing: &Warp, comes: &Warp) -> bool {
        let slot = self.stacks.slot(comes);
        let place = |warp: &Warp| (self.stacks.slot(warp), warp.pc, self.stacks.calls(warp));
        if place(standing) != place(comes) {
            return false;
        }
        let [one, other] = [standing, comes].map(|warp| self.split(warp));
        let (live, rpc) = self.stacks.top(slot);
        let splits = &mut self.table[slot as usize];
        splits.retain(|&split| split != one && split != other);
        splits.push(one | other);
        self.check_in(slot, &live, |thread| rpc.is_some_and(|rpc| rpc.reached(*thread)));
        true
    }

    fn paths(&self, warp: &Warp) -> u64 {
        let splits = self.splits(warp);
        assert!(splits.is_empty() || splits.contains(&self.split(warp)), "what issues is a split");
        splits.len().max(1) as u64
    }

    /// The next one after the last.
    fn choose(&mut self, pool: &[Warp], can: &[usize]) -> usize {
        let all = self.table.len() as u32 * self.lanes;
        let turn = |&at: &usize| (self.place(&pool[at]) + all - self.last - 1) % all;
        let choice = can.iter().copied().min_by_key(turn).expect("one can");
        self.last = self.place(&pool[choice]);
        choice
    }
}

#[cfg(test)]
mod tests;

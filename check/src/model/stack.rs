//! A stack of reconvergence points a static warp, round robin: the mechanism that the papers call PDOM, here to compare
//! the model with the core's own ([`heddle_simt::Divergence::STACK`]).

use super::policy::{Meeting, Outcome, Policy, Thread, Warp, by_pc};
use heddle_testbench::reconverge::Reconvergence;

/// Threads, and where they are to reconverge with others.
struct Entry {
    harts: Vec<u32>,
    rpc: Option<Meeting>,
}

/// The stacks of all static warps.
pub struct Stacks {
    lanes: u32,
    /// Of each hart; nothing if it has no thread.
    threads: Vec<Option<Thread>>,
    stacks: Vec<Vec<Entry>>,
    last: u32,
}

impl Stacks {
    pub fn new(lanes: u32, warps: u32) -> Stacks {
        let stacks = (0..warps).map(|_| Vec::new()).collect();
        Stacks { lanes, threads: vec![None; (lanes * warps) as usize], stacks, last: 0 }
    }

    /// The static warp that a warp is of.
    pub fn slot(&self, warp: &Warp) -> u32 {
        warp.harts[0] / self.lanes
    }

    /// The call depth of its threads.
    fn depth(&self, warp: &Warp) -> Option<u32> {
        self.calls(warp).map(|(depth, _)| depth)
    }

    /// Call depth of its threads, and where their calls return to.
    pub fn calls(&self, warp: &Warp) -> Option<(u32, u64)> {
        self.threads[warp.harts[0] as usize].map(|thread| (thread.depth, thread.calls))
    }

    /// Knows where the threads are now, and returns their static warp; nothing, if there are none.
    pub fn note(&mut self, outcome: &Outcome) -> Option<u32> {
        let hart = outcome.going.first().map(|thread| thread.hart).or(outcome.ended.first().copied())?;
        for &thread in &outcome.going {
            self.threads[thread.hart as usize] = Some(thread);
        }
        for &hart in &outcome.ended {
            self.threads[hart as usize] = None;
        }
        let stack = &mut self.stacks[(hart / self.lanes) as usize];
        if stack.is_empty() {
            stack.push(Entry { harts: outcome.going.iter().map(|thread| thread.hart).collect(), rpc: None });
        }
        Some(hart / self.lanes)
    }

    /// Of the top, the threads that live, as they are known, and where they reconverge.
    pub fn top(&self, slot: u32) -> (Vec<Thread>, Option<Meeting>) {
        let top = self.stacks[slot as usize].last().expect("who has threads has a top");
        (top.harts.iter().filter_map(|&hart| self.threads[hart as usize]).collect(), top.rpc)
    }

    /// What goes on, now that all threads of the top are where they are known to be: with how many levels popped.
    pub fn settle(&mut self, slot: u32, outcome: &Outcome) -> Vec<(u64, Warp)> {
        let (mut meets, mut pops) = (outcome.meets, 0);
        while !self.stacks[slot as usize].is_empty() {
            let (live, rpc) = self.top(slot);
            let stack = &mut self.stacks[slot as usize];
            if live.iter().all(|&thread| rpc.is_some_and(|rpc| rpc.reached(thread))) {
                stack.pop();
                pops += 1;
                continue;
            }
            let mut sides = by_pc(&live);
            if let [warp] = &mut sides[..] {
                return vec![(pops, Warp { whole: true, ..warp.clone() })];
            }
            let meeting = meets.take().or(rpc);
            if meeting == rpc {
                stack.pop();
            }
            // The taken side goes first.
            sides.sort_by_key(|side| side.pc != outcome.next);
            for side in sides {
                let there = live.iter().filter(|thread| thread.pc == side.pc);
                if !there.clone().all(|&thread| meeting.is_some_and(|meeting| meeting.reached(thread))) {
                    stack.push(Entry { harts: side.harts, rpc: meeting });
                }
            }
        }
        Vec::new()
    }
}

impl Policy for Stacks {
    fn outcome(&mut self, outcome: &Outcome) -> Vec<(u64, Warp)> {
        self.note(outcome).map_or(Vec::new(), |slot| self.settle(slot, outcome))
    }

    fn stops(&self, warp: &Warp, pc: u32) -> bool {
        let top = self.stacks[self.slot(warp) as usize].last();
        let depth = self.depth(warp);
        let stop = |rpc: Meeting| rpc.at == Reconvergence::At(pc) && depth == Some(rpc.depth);
        top.and_then(|top| top.rpc).is_some_and(stop)
    }

    fn is_one(&self, _: &Warp) -> bool {
        true
    }

    /// The next one after the last.
    fn choose(&mut self, pool: &[Warp], can: &[usize]) -> usize {
        let warps = self.stacks.len() as u32;
        let turn = |&at: &usize| (self.slot(&pool[at]) + warps - self.last - 1) % warps;
        let choice = can.iter().copied().min_by_key(turn).expect("one can");
        self.last = self.slot(&pool[choice]);
        choice
    }
}

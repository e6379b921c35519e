//! What a mechanism decides: which threads issue together, and which of those that can does.

use super::cycles;
use heddle_simt::pipeline::timing::{CHOICE_TO_ISSUE, ISSUE_TO_NEXT};
use heddle_testbench::reconverge::Reconvergence;
use std::collections::VecDeque;

/// A thread, and where it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Its hart, of which its lane and its static warp follow.
    pub hart: u32,
    pub pc: u32,
    /// Calls that it has not returned from, modulo 2^32.
    pub depth: u32,
    /// A number of where these return to, the same for threads that return alike.
    pub calls: u64,
}

/// Threads with one pc, each in its own lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warp {
    /// In order of their lanes.
    pub harts: Vec<u32>,
    pub pc: u32,
    /// They stay together: no others join.
    pub whole: bool,
    pub front: Front,
}

/// How far the front end is with a warp.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Front {
    /// The cycle of the first fetch at the earliest, which is the first in which it can be chosen for the next.
    pub from: u64,
    /// The cycle of the last fetch, be it squashed.
    pub chosen: Option<u64>,
    /// Of the instructions that wait for issue, the cycles in which they were fetched.
    pub fetched: VecDeque<u64>,
    /// The cycle in which it issued last.
    pub issued: Option<u64>,
    /// The last cycle in which it fetches: the last of them is seen to be one that the front end waits for.
    pub stops: Option<u64>,
}

/// Where threads that diverge meet again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meeting {
    pub at: Reconvergence,
    /// Call depth of the branch.
    pub depth: u32,
}

impl Front {
    /// Whether the warp's next instruction is in its buffer, and could be looked up in the scoreboard there.
    pub fn is_buffered(&self, now: u64) -> bool {
        self.ready().is_some_and(|ready| ready <= now)
    }

    /// Since when, or from when on, if it is fetched.
    fn ready(&self) -> Option<u64> {
        let fetched = self.fetched.front()? + cycles(CHOICE_TO_ISSUE);
        Some(self.issued.map_or(fetched, |issued| fetched.max(issued + cycles(ISSUE_TO_NEXT))))
    }

    /// Instructions on their way and in the buffer, as fetch knows it: a cycle late.
    pub fn counted(&self, now: u64) -> usize {
        self.fetched.len() + usize::from(self.issued.is_some_and(|issued| issued + 1 == now))
    }
}

impl Warp {
    /// With the threads of another at the same pc; of both front ends that which can issue first.
    pub fn and(mut self, other: Warp) -> Warp {
        let order = |front: &Front| (front.ready().unwrap_or(u64::MAX), front.from);
        if order(&other.front) < order(&self.front) {
            self.front = other.front;
        }
        self.harts.extend(other.harts);
        self.harts.sort_unstable();
        self
    }
}

impl Meeting {
    pub fn reached(self, thread: Thread) -> bool {
        match self.at {
            Reconvergence::At(pc) => (thread.pc, thread.depth) == (pc, self.depth),
            Reconvergence::Return => thread.depth == self.depth.wrapping_sub(1),
        }
    }
}

/// What became of threads that stood still: those of a warp behind an instruction that may diverge them, or those of a
/// static warp that start, or go on behind a barrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Those that go on, in order of their harts.
    pub going: Vec<Thread>,
    pub ended: Vec<u32>,
    /// The pc behind the instruction, and where its threads reconverge.
    pub next: u32,
    pub meets: Option<Meeting>,
}

/// A mechanism.
pub trait Policy {
    /// The warps that go on, each after so many levels were popped.
    fn outcome(&mut self, outcome: &Outcome) -> Vec<(u64, Warp)>;

    /// Whether one of the threads may stop at a pc that they come to without a jump.
    fn stops(&self, warp: &Warp, pc: u32) -> bool;

    /// Whether a warp waits for results of all threads of its static warp, as on the core, whose scoreboard knows warps
    /// and not threads; else for those of its own.
    fn is_one(&self, _: &Warp) -> bool {
        false
    }

    /// Whether a warp that comes to its next instruction goes on as one with another that stands at its own.
    fn joins(&mut self, _standing: &Warp, _comes: &Warp) -> bool {
        false
    }

    /// Parts of the static warp that could be scheduled when this one issues. (`dual-path-execution.txt` Equation 1)
    fn paths(&self, _: &Warp) -> u64 {
        1
    }

    /// A warp whose instruction can issue joins those that have been waiting to.
    fn enter(&mut self, pool: &mut Vec<Warp>, warp: Warp) {
        pool.push(warp);
    }

    /// Which of the pool's warps, of those that can issue, does.
    fn choose(&mut self, pool: &[Warp], can: &[usize]) -> usize;
}

/// Threads as a warp for each pc, in order of the pcs.
pub fn by_pc(threads: &[Thread]) -> Vec<Warp> {
    let mut pcs: Vec<u32> = threads.iter().map(|thread| thread.pc).collect();
    pcs.sort_unstable();
    pcs.dedup();
    let warp = |pc: u32| {
        let harts = threads.iter().filter(|thread| thread.pc == pc).map(|thread| thread.hart);
        Warp { harts: harts.collect(), pc, whole: false, front: Front::default() }
    };
    pcs.into_iter().map(warp).collect()
}

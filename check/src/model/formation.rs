//! Dynamic warp formation with majority scheduling (`thread-block-compaction.txt` §2.3), and with warp barriers (§2.4).
//!
//! Threads keep their lanes and join, from any static warp, an open warp of their pc if there is one and it has their
//! lane free; those that find it taken begin a new one, which is open instead. Warps that issue leave the pool. Those
//! of the pc at which most threads of the pool are go one after the other until none of them can; then the next such pc
//! is chosen.
//!
//! With *warp barriers*, a static warp stays whole until it comes to a branch that parts it. From there on its threads
//! join others whose static warps have parted, up to where that branch's threads reconverge: there each waits until all
//! that live have come, and the warp is whole again, unless they returned to several places.

use super::policy::{Meeting, Outcome, Policy, Thread, Warp, by_pc};
use heddle_testbench::reconverge::Reconvergence;

/// A static warp.
#[derive(Default)]
struct Static {
    live: Vec<u32>,
    /// The warp barrier, if the warp has parted, and those who wait at it.
    barrier: Option<Meeting>,
    waiting: Vec<Thread>,
}

/// Which threads are in open warps, and of which static warps.
pub struct Formation {
    lanes: u32,
    /// With warp barriers.
    statics: Option<Vec<Static>>,
    /// The majority's pc.
    majority: Option<u32>,
}

impl Formation {
    pub fn new(lanes: u32, warps: u32, with_barriers: bool) -> Formation {
        let statics = with_barriers.then(|| (0..warps).map(|_| Static::default()).collect());
        Formation { lanes, statics, majority: None }
    }
}

impl Static {
    /// What goes on when all have come: the whole static warp. If it parted in a function, and returns of it lead to
    /// several places, it is still parted, and its threads meet where the next function returns.
    fn release(&mut self) -> Vec<Warp> {
        if self.barrier.is_none() || self.waiting.len() < self.live.len() {
            return Vec::new();
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|thread| thread.hart);
        let mut warps = by_pc(&waiting);
        self.barrier = match &mut warps[..] {
            [] => None,
            [warp] => {
                warp.whole = true;
                None
            }
            _ => Some(Meeting { at: Reconvergence::Return, depth: waiting[0].depth }),
        };
        warps
    }
}

impl Policy for Formation {
    fn outcome(&mut self, outcome: &Outcome) -> Vec<(u64, Warp)> {
        let lanes = self.lanes;
        let now = |warp: Warp| (0, warp);
        let Some(statics) = &mut self.statics else { return by_pc(&outcome.going).into_iter().map(now).collect() };
        let number = |hart: u32| (hart / lanes) as usize;
        let harts = outcome.going.iter().map(|thread| thread.hart).chain(outcome.ended.iter().copied());
        let mut concerned: Vec<usize> = harts.map(number).collect();
        concerned.sort_unstable();
        concerned.dedup();

        let mut warps = Vec::new();
        let mut free = Vec::new();
        for concerned in concerned {
            let of = &mut statics[concerned];
            let going: Vec<Thread> =
                outcome.going.iter().copied().filter(|thread| number(thread.hart) == concerned).collect();
            if of.live.is_empty() {
                of.live = going.iter().map(|thread| thread.hart).collect();
            }
            of.live.retain(|hart| !outcome.ended.contains(hart));
            if of.barrier.is_none() {
                match &by_pc(&going)[..] {
                    [warp] => {
                        warps.push(Warp { whole: true, ..warp.clone() });
                        continue;
                    }
                    [] => continue,
                    // Without knowledge, where the function returns to.
                    _ => {
                        let returns = Meeting { at: Reconvergence::Return, depth: going[0].depth };
                        of.barrier = Some(outcome.meets.unwrap_or(returns));
                    }
                }
            }
            let (waiting, others): (Vec<Thread>, Vec<Thread>) =
                going.iter().partition(|&&thread| of.barrier.is_some_and(|barrier| barrier.reached(thread)));
            of.waiting.extend(waiting);
            free.extend(others);
            warps.extend(of.release());
        }
        free.sort_by_key(|thread| thread.hart % lanes);
        warps.extend(by_pc(&free));
        warps.into_iter().map(now).collect()
    }

    fn stops(&self, warp: &Warp, pc: u32) -> bool {
        let Some(statics) = &self.statics else { return false };
        let barrier = |&hart: &u32| statics[(hart / self.lanes) as usize].barrier;
        warp.harts.iter().filter_map(barrier).any(|barrier| barrier.at == Reconvergence::At(pc))
    }

    fn enter(&mut self, pool: &mut Vec<Warp>, mut warp: Warp) {
        let lanes = self.lanes;
        // The last that was begun is the open one.
        let open = pool.iter_mut().rfind(|other| other.pc == warp.pc && !other.whole);
        if let Some(open) = open.filter(|_| !warp.whole) {
            let taken = open.harts.iter().fold(0u64, |taken, hart| taken | 1 << (hart % lanes));
            let (joins, stays): (Vec<u32>, Vec<u32>) =
                warp.harts.iter().partition(|&hart| taken >> (hart % lanes) & 1 == 0);
            open.harts.extend(joins);
            open.harts.sort_by_key(|hart| hart % lanes);
            warp.harts = stays;
        }
        if !warp.harts.is_empty() {
            pool.push(warp);
        }
    }

    fn choose(&mut self, pool: &[Warp], can: &[usize]) -> usize {
        let of = |pc: u32| can.iter().copied().find(|&at| pool[at].pc == pc);
        if let Some(at) = self.majority.and_then(of) {
            return at;
        }
        let threads = |&at: &usize| -> usize {
            pool.iter().filter(|warp| warp.pc == pool[at].pc).map(|warp| warp.harts.len()).sum()
        };
        // Of several, the oldest.
        let choice = can.iter().copied().rev().max_by_key(threads).expect("one can");
        self.majority = Some(pool[choice].pc);
        choice
    }
}

#[cfg(test)]
mod tests;

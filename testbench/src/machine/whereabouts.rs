//! Where the threads of a launch are that does not end.

use super::Machine;
use crate::grid::{ThreadId, Whereabouts};
use crate::paths::{Parked, parked, paths};
use std::collections::BTreeMap;

/// Cycles in which a warp that is not stuck issues something.
const STUCK_AFTER: u64 = 1000;

/// Where a thread is as its divergence unit has it: the byte address where its path goes on, and whether it waits at a
/// barrier before that.
pub(super) struct Place {
    pub thread: ThreadId,
    pub waits: bool,
    pub pc: u32,
}

impl Machine {
    /// Where every live thread is: at the barrier where it waits; at the next instruction that it issues, in the cycles
    /// that follow; or where its path begins.
    pub(super) fn whereabouts(&mut self) -> String {
        if !self.simulation.engine().shows_registers() {
            return "the engine does not show where".into();
        }
        let tables = self.places();
        let mut next: BTreeMap<ThreadId, u32> = BTreeMap::new();
        for _ in 0..STUCK_AFTER {
            self.simulation.engine().settle();
            if let Some(issued) = self.issued() {
                issued.threads.into_iter().flatten().for_each(|thread| {
                    next.entry(thread).or_insert(issued.pc);
                });
            }
            if self.simulation.step().is_err() {
                break;
            }
        }
        let mut places = Whereabouts::default();
        for Place { thread, waits, pc } in tables {
            let issues = next.remove(&thread).filter(|_| !waits);
            places.add(thread, waits, issues.unwrap_or(pc));
        }
        // Of blocks that share a stack, those that run are in no table.
        next.into_iter().for_each(|(thread, pc)| places.add(thread, false, pc));
        places.text(&self.program)
    }

    /// Every live thread; where blocks have a stack, those that wait, and those that run only after them.
    pub(super) fn places(&mut self) -> Vec<Place> {
        let mut places = Vec::new();
        if self.shape.divergence.capabilities().mixes_warps {
            for slots in self.grid.slots_of_blocks(&self.shape) {
                for Parked { thread, waits, pc } in parked(self.simulation.engine(), "core", &self.shape, slots) {
                    let thread = self.thread(thread / self.shape.lanes, thread % self.shape.lanes);
                    places.push(Place { thread, waits, pc });
                }
            }
            return places;
        }
        for warp in 0..self.shape.warps {
            for path in paths(self.simulation.engine(), "core", &self.shape, warp) {
                for lane in (0..self.shape.lanes).filter(|&lane| path.mask[lane as usize]) {
                    places.push(Place { thread: self.thread(warp, lane), waits: path.waits, pc: path.pc });
                }
            }
        }
        places
    }
}

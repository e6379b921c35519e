//! Where the threads of a launch are that does not end.

use super::Machine;
use crate::grid::Whereabouts;
use crate::paths::{self, Parked, paths};
use heddle_simt::divergence::inspect::State;
use std::collections::{BTreeMap, BTreeSet};

/// Cycles in which a warp that is not stuck issues something.
const STUCK_AFTER: u64 = 1000;

impl Machine {
    /// Where every live thread is: at the barrier where it waits; at the next instruction that its warp issues, in the
    /// cycles that follow; or where its path begins.
    pub(super) fn whereabouts(&mut self) -> String {
        if self.shape.divergence.capabilities().mixes_warps {
            return self.whereabouts_of_blocks();
        }
        let (slots, sides) = (0..self.shape.warps, self.shape.sides());
        let engine = self.simulation.engine();
        let tables: Vec<_> = slots
            .flat_map(|warp| paths(engine, "core", &self.shape, warp).into_iter().map(move |path| (warp, path)))
            .collect();
        let runs: BTreeSet<u32> = tables.iter().filter(|(_, path)| !path.waits).map(|(warp, _)| *warp).collect();
        let mut next: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for _ in 0..STUCK_AFTER {
            self.simulation.engine().settle();
            if self.probe("issue_valid") == 1 {
                let (warp, pc) = (self.probe("issue_slot") as u32, self.probe("issue_pc") as u32 * 4);
                let (mask, seen) = (self.probe("issue_mask"), next.entry(warp).or_default());
                if seen.iter().all(|(_, other)| other & mask == 0) {
                    seen.push((pc, mask));
                }
            }
            if runs.iter().all(|warp| next.get(warp).is_some_and(|seen| seen.len() as u32 == sides))
                || self.simulation.step().is_err()
            {
                break;
            }
        }
        let mut places = Whereabouts::default();
        for (warp, path) in tables {
            for lane in (0..self.shape.lanes).filter(|&lane| path.mask[lane as usize]) {
                let issues = next.get(&warp).and_then(|seen| seen.iter().find(|(_, mask)| mask >> lane & 1 == 1));
                let pc = issues.filter(|_| !path.waits).map_or(path.pc, |(pc, _)| *pc);
                places.add(self.thread(warp, lane), path.waits, pc);
            }
        }
        places.text(&self.program)
    }

    /// The same where blocks have a stack: those who wait, and those who run only after them.
    fn whereabouts_of_blocks(&mut self) -> String {
        let mut places = Whereabouts::default();
        for block in (0..self.shape.warps).step_by(self.grid.slots(&self.shape) as usize) {
            let (shape, slots) = (&self.shape, block..block + self.grid.slots(&self.shape));
            let read = |state: &State| shape.divergence.mechanism().parked(shape, state, slots);
            for Parked { thread, waits, pc } in paths::read(self.simulation.engine(), "core", read) {
                places.add(self.thread(thread / self.shape.lanes, thread % self.shape.lanes), waits, pc);
            }
        }
        places.text(&self.program)
    }
}

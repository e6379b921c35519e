//! Launches: blocks on the core's warp slots, barriers, and whose turn it is.

use super::{Hart, Iss, LaunchError, Reservations, StartError, State};
use crate::grid::{Grid, GridError, ThreadId, Whereabouts};

/// Instructions that a thread executes before it is another's turn. Any number will do: more make threads that wait for
/// others in a loop take longer, fewer make everything take longer.
const QUANTUM: u32 = 64;

/// A block that has begun and not ended.
#[derive(Clone, Debug)]
pub struct Resident {
    block: u32,
    /// Threads in each state; a thread that has not started counts as neither.
    waiting: u32,
    ended: u32,
}

impl Iss {
    /// Begins a launch: no thread has started. Memory stays.
    pub fn begin(&mut self, grid: Grid) -> Result<(), GridError> {
        grid.check(&self.shape, self.program.scratchpad())?;
        self.grid = grid;
        self.reservations = Reservations::default();
        self.residents = vec![None; grid.resident(&self.shape) as usize];
        for hart in &mut self.harts {
            hart.state = State::Idle;
        }
        self.executed_before += self.executed;
        self.executed = 0;
        Ok(())
    }

    /// Puts every thread at the entry point, in one block. Memory stays.
    pub fn restart(&mut self) {
        self.begin(Grid::one_block(self.shape.threads())).expect("the core holds a block of all its threads");
        for slot in 0..self.shape.warps {
            self.start_warp(slot, 0).expect("all slots are free");
        }
    }

    /// Puts the threads of one warp of a block at the entry point; the grid says which: the mask of their lanes is
    /// returned.
    pub fn start_warp(&mut self, slot: u32, block: u32) -> Result<u64, StartError> {
        let Grid { blocks, threads } = self.grid;
        let (lanes, slots) = (self.shape.lanes, self.grid.slots(&self.shape));
        if block >= blocks {
            return Err(StartError::NoSuchBlock { block, blocks });
        }
        let first = slot % slots * lanes;
        if slot >= self.shape.warps || first >= threads {
            return Err(StartError::UnusedSlot { block, slot });
        }
        let before = &self.harts[(slot * lanes) as usize];
        if before.state != State::Idle && before.thread.block == block {
            return Err(StartError::Again { block, slot });
        }
        let resident = self.residents[(slot / slots) as usize].get_or_insert(Resident { block, waiting: 0, ended: 0 });
        if resident.block != block {
            return Err(StartError::Occupied { block, slot, resident: resident.block });
        }
        let scratchpad = self.grid.scratchpad(&self.shape);
        let count = lanes.min(threads - first);
        for lane in 0..count {
            let number = slot * lanes + lane;
            let thread = ThreadId { block, thread: first + lane };
            let start = slot / slots * scratchpad;
            self.harts[number as usize] = Hart::new(number, thread, start..start + scratchpad, self.program.entry());
        }
        Ok(u64::MAX >> (64 - count))
    }

    /// The grid of the launch.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// A thread waits or has ended: that may be what its block waits for, or the end of the block.
    pub(super) fn stopped(&mut self, hart: u32) {
        let slots = self.grid.slots(&self.shape);
        let group = (hart / self.shape.lanes / slots) as usize;
        let resident = self.residents[group].as_mut().expect("a thread that executes has a block");
        match self.harts[hart as usize].state {
            State::Waiting => resident.waiting += 1,
            _ => resident.ended += 1,
        }
        if resident.ended == self.grid.threads {
            self.residents[group] = None;
        } else if resident.waiting + resident.ended == self.grid.threads {
            resident.waiting = 0;
            let first = group * (slots * self.shape.lanes) as usize;
            let block = &mut self.harts[first..first + self.grid.threads as usize];
            for hart in block.iter_mut().filter(|hart| hart.state == State::Waiting) {
                hart.state = State::Running;
            }
        }
    }

    /// Runs every thread of every block from the entry point to its end: blocks in order as others end, the threads of
    /// resident blocks in turn.
    pub fn run_grid(&mut self, grid: Grid) -> Result<(), LaunchError> {
        self.begin(grid)?;
        let slots = grid.slots(&self.shape);
        let mut blocks = 0..grid.blocks;
        let mut failed: Option<(ThreadId, u32)> = None;
        loop {
            for group in 0..self.residents.len() as u32 {
                if self.residents[group as usize].is_none()
                    && let Some(block) = blocks.next()
                {
                    for warp in 0..grid.warps(&self.shape) {
                        self.start_warp(group * slots + warp, block).expect("the slots of a block that ended are free");
                    }
                }
                let first = group * slots * self.shape.lanes;
                for hart in first..first + grid.threads {
                    if let Some(code) = self.turn(hart)?.filter(|&code| code != 0) {
                        let thread = self.harts[hart as usize].thread;
                        failed = Some(failed.map_or((thread, code), |first| first.min((thread, code))));
                    }
                }
            }
            if blocks.is_empty() && self.residents.iter().all(Option::is_none) {
                break;
            }
        }
        failed.map_or(Ok(()), |(thread, code)| Err(LaunchError::Exit { thread, code }))
    }

    /// [`Iss::run_grid`] of one block of all threads of the core.
    pub fn run(&mut self) -> Result<(), LaunchError> {
        self.run_grid(Grid::one_block(self.shape.threads()))
    }

    /// Up to [`QUANTUM`] instructions of one thread, if it runs; its exit code, if it ends with them.
    fn turn(&mut self, hart: u32) -> Result<Option<u32>, LaunchError> {
        for _ in 0..QUANTUM {
            if self.harts[hart as usize].state != State::Running {
                break;
            }
            if self.executed >= self.limit {
                return Err(LaunchError::Limit { limit: self.limit, at: self.whereabouts() });
            }
            let step = self.step(hart)?;
            if step.exit.is_some() {
                return Ok(step.exit);
            }
        }
        Ok(None)
    }

    fn whereabouts(&self) -> String {
        let mut places = Whereabouts::default();
        for hart in self.harts.iter().filter(|hart| hart.is_live()) {
            places.add(hart.thread, hart.waits(), hart.pc);
        }
        places.text(&self.program)
    }
}

#[cfg(test)]
mod tests;

//! What a launch tells while it runs: instructions that issue, and how far it is.

use super::{Cycle, Machine, Pipeline};
use crate::disassemble;
use crate::grid::ThreadId;
use crate::paths::{self, Path, Together};
use heddle_simt::LaneMask;
use std::ops::ControlFlow;

/// An instruction issued, for traces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceLine {
    /// Cycle of the simulation.
    pub cycle: u64,
    /// Warp.
    pub warp: u32,
    /// Byte address.
    pub pc: u32,
    /// Lanes that are active.
    pub mask: LaneMask,
    /// It is the rest of an access to memory that issued before.
    pub replay: bool,
    /// The block of its threads.
    pub block: u32,
    /// In each lane, the number in the block of the thread that is active.
    pub threads: Vec<Option<u32>>,
    /// The instruction.
    pub text: String,
}

/// How far a launch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Number of the launch, from 1.
    pub launch: u32,
    /// Cycles of this launch.
    pub cycles: u64,
    /// Threads that have begun and not ended.
    pub live_threads: u32,
    /// Instructions that issued in this launch.
    pub warp_instructions: u64,
    /// Thread instructions of them that took effect.
    pub thread_instructions: u64,
}

/// What a launch tells while it runs. The engine must show registers, which Verilator's does not.
pub trait Watch {
    /// Every instruction that issues, if [`Watch::wants_trace`].
    fn issued(&mut self, _line: TraceLine) {}
    /// Whether to look at every cycle: slow.
    fn wants_trace(&self) -> bool {
        false
    }
    /// The pipeline in each cycle, if [`Watch::wants_pipeline`].
    fn pipeline(&mut self, _pipeline: &Pipeline) {}
    /// Whether to look at every stage in every cycle: slower.
    fn wants_pipeline(&self) -> bool {
        false
    }
    /// Where each cycle goes, behind what issues in it, if [`Watch::wants_cycles`].
    fn cycle(&mut self, _cycle: &Cycle) {}
    /// Whether to account for every cycle: slower.
    fn wants_cycles(&self) -> bool {
        false
    }
    /// Before each batch of cycles, some ten times a second. A break ends the launch with
    /// [`MachineError::Interrupted`].
    fn progress(&mut self, progress: Progress) -> ControlFlow<()>;
    /// Whether to tell of each warp's paths at the same time.
    fn wants_paths(&self) -> bool {
        false
    }
    /// Before [`Watch::progress`], the paths of each warp, if [`Watch::wants_paths`] and threads of several warps do not
    /// run together.
    fn paths(&mut self, _warps: Vec<Vec<Path>>) {}
    /// Before [`Watch::progress`], who runs on the slots of each block, if [`Watch::wants_paths`] and threads of several
    /// warps run together.
    fn together(&mut self, _blocks: Vec<Together>) {}
}

impl Machine {
    /// Read from the state as it is, without computing anything.
    pub(super) fn live_threads(&mut self) -> u32 {
        let (shape, engine) = (&self.shape, self.simulation.engine());
        paths::read(engine, "core", |state| shape.divergence.mechanism().live_threads(shape, state))
    }

    /// How far the launch is, of which so many cycles are over. Whoever wants paths is told of them.
    pub(super) fn tell(&mut self, watch: &mut dyn Watch, cycles: u64) -> ControlFlow<()> {
        if watch.wants_paths() {
            let (shape, engine) = (&self.shape, self.simulation.engine());
            if shape.divergence.capabilities().mixes_warps {
                let block = |slots| paths::together(engine, "core", shape, slots);
                watch.together(self.grid.slots_of_blocks(shape).map(block).collect());
            } else {
                let paths = |warp| paths::paths(engine, "core", shape, warp);
                watch.paths((0..shape.warps).map(paths).collect());
            }
        }
        let live_threads = self.live_threads();
        self.simulation.engine().settle();
        watch.progress(Progress {
            launch: self.counted.summary.launches + 1,
            cycles,
            live_threads,
            warp_instructions: self.probe("metrics.issued"),
            thread_instructions: self.probe("metrics.committed"),
        })
    }

    /// Tells of a settled cycle.
    pub(super) fn trace(&mut self, watch: &mut dyn Watch) {
        let line = if watch.wants_pipeline() {
            let pipeline = self.pipeline();
            watch.pipeline(&pipeline);
            pipeline.issued.map(|issued| issued.line)
        } else {
            self.line()
        };
        if let Some(line) = line.filter(|_| watch.wants_trace()) {
            watch.issued(line);
        }
        if watch.wants_cycles() {
            watch.cycle(&self.cycle());
        }
    }

    /// What issues in this settled cycle, if anything does.
    pub(super) fn line(&mut self) -> Option<TraceLine> {
        let Issued { warp, pc, mask, threads } = self.issued()?;
        Some(TraceLine {
            cycle: self.simulation.engine().cycle(),
            warp,
            pc,
            mask,
            replay: self.probe("issue_replay") != 0,
            block: threads.iter().flatten().next().map_or(0, |thread| thread.block),
            threads: threads.iter().map(|thread| thread.map(|thread| thread.thread)).collect(),
            text: self.program.word(pc).map_or_else(|| "?".into(), |word| disassemble(word, pc)),
        })
    }

    /// The instruction that issues in this settled cycle, if one does.
    pub(super) fn issued(&mut self) -> Option<Issued> {
        if self.probe("issue_valid") == 0 {
            return None;
        }
        let pc = self.probe("issue_pc") as u32 * 4;
        let (warp, mask) =
            (self.probe("issue_slot") as u32, self.probe_bits("core.issue_mask").to_bitvec(self.shape.lanes));
        let homes = self.shape.mixes().then(|| self.probe_bits("core.issue_homes"));
        let bits = self.shape.warp_bits();
        let home = |lane| homes.as_ref().map_or(warp, |homes| homes.extract(lane * bits, bits).low_u64() as u32);
        let threads = (0..self.shape.lanes).map(|lane| mask[lane as usize].then(|| self.thread(home(lane), lane)));
        Some(Issued { warp, pc, threads: threads.collect(), mask })
    }
}

/// An instruction that issues: its warp, byte address and lanes; and in each lane the thread that is active.
pub(super) struct Issued {
    pub warp: u32,
    pub pc: u32,
    pub mask: LaneMask,
    pub threads: Vec<Option<ThreadId>>,
}

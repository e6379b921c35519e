//! What a cycle shows to whoever accounts for each: why nothing issues, what each warp waits for, what takes effect, and
//! what goes to memory.

use super::{Machine, Wait};
use heddle_hdl::Bits;

/// Why a cycle has no issue, as [`IdleCycles`](super::IdleCycles) has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// Front ends wait for outcomes.
    NoInstruction,
    /// The divergence unit holds back what could issue, or has all threads of a warp.
    Divergence,
    /// An issue takes several cycles.
    Interval,
    /// Instructions wait for registers.
    Scoreboard,
    /// Instructions wait for loads or for a unit.
    Memory,
    /// All threads wait at barriers.
    Barrier,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 6] =
        [Cause::NoInstruction, Cause::Divergence, Cause::Interval, Cause::Scoreboard, Cause::Memory, Cause::Barrier];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        ["no_instruction", "divergence", "interval", "scoreboard", "memory", "barrier"][self as usize]
    }
}

/// A slot: a warp, or one of its two paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Its warp.
    pub warp: u32,
    /// Its buffer has an instruction.
    pub filled: bool,
    /// Why the first of them does not issue. One that waits for nothing issues, or could but for another slot.
    pub wait: Option<Wait>,
    /// Address of the first, in a cycle without an issue.
    pub pc: Option<u32>,
}

/// An instruction that takes effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Committed {
    /// Its warp.
    pub warp: u32,
    /// Byte address.
    pub pc: u32,
    /// Threads for which it does.
    pub lanes: u32,
    /// Of a branch those of them that do not take it; of others, threads that stay.
    pub rest: u32,
}

/// Lanes of an instruction that go to memory together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// How many.
    pub lanes: u32,
    /// They leave others behind.
    pub parts: bool,
    /// They go to the scratchpad.
    pub to_scratchpad: bool,
}

/// What a request found in the data cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Its line.
    Hit,
    /// Not its line.
    Miss,
    /// That its line was asked for.
    Joined,
}

/// A settled cycle.
#[derive(Clone, PartialEq, Debug)]
pub struct Cycle {
    /// Of the simulation.
    pub cycle: u64,
    /// The cause if threads are live and nothing issues.
    pub lost: Option<Cause>,
    /// By slot.
    pub slots: Vec<Slot>,
    /// One bit per warp: it has live threads; all of them wait at a barrier; the divergence unit has all of them.
    pub live: Bits,
    /// See `live`.
    pub waiting: Bits,
    /// See `live`.
    pub in_unit: Bits,
    /// An access to memory is under way.
    pub loads_under_way: bool,
    /// A warp begins at a byte address.
    pub started: Option<(u32, u32)>,
    /// What takes effect; it is counted a cycle later.
    pub committed: Option<Committed>,
    /// What goes to memory, of the instructions that took effect in the order in which they did.
    pub chosen: Option<Chosen>,
    /// What one of them found, in the order in which they went to memory.
    pub found: Option<Found>,
}

impl Machine {
    /// What this settled cycle shows.
    pub(super) fn cycle(&mut self) -> Cycle {
        let lost = Cause::ALL.into_iter().find(|&cause| {
            (cause != Cause::Interval || self.shape.issue_interval > 1)
                && self.probe(&format!("metrics.lost_{}", cause.name())) != 0
        });
        let started = self.probe("start_taken") != 0;
        let started = started.then(|| (self.probe("start_slot") as u32, self.probe("start_pc") as u32 * 4));
        Cycle {
            cycle: self.simulation.engine().cycle(),
            lost,
            slots: self.slots(lost.is_some()),
            live: self.probe_bits("core.live"),
            waiting: self.probe_bits("core.waiting"),
            in_unit: self.probe_bits("core.metrics.in_unit"),
            loads_under_way: self.probe("metrics.loads_under_way") != 0,
            started,
            committed: self.committed(),
            chosen: self.chosen(),
            found: self.shape.cache.is_some().then(|| self.found()).flatten(),
        }
    }

    fn slots(&mut self, with_pcs: bool) -> Vec<Slot> {
        let filled = self.probe_bits("core.heads_filled");
        let sides = self.shape.sides();
        let slots = (0..).zip(self.waits()).map(|(slot, wait)| {
            let filled = filled.bit(slot);
            let pc = (with_pcs && filled).then(|| self.pc_of_head(slot));
            Slot { warp: slot / sides, filled, wait, pc }
        });
        slots.collect()
    }

    /// The address of the first instruction of a slot's buffer, which has one.
    fn pc_of_head(&mut self, slot: u32) -> u32 {
        let buffer = u64::from(self.shape.buffer);
        let engine = self.simulation.engine();
        let directory = engine.directory();
        let first = directory.registers.find(&format!("core.issue.row[{slot}].first")).expect("each slot has a buffer");
        let pcs = directory.memories.find("core.issue.pcs").expect("issue keeps pcs");
        let place = engine.register(first).low_u64() + u64::from(slot) * buffer;
        engine.memory_read(pcs, place).low_u64() as u32 * 4
    }

    fn committed(&mut self) -> Option<Committed> {
        let lanes = self.probe_bits("core.resolve.commit_lanes").count_ones();
        (lanes > 0).then(|| Committed {
            warp: self.probe("resolve.commit_slot") as u32,
            pc: self.probe("resolve.commit_pc") as u32 * 4,
            lanes,
            rest: self.probe_bits("core.resolve.commit_rest").count_ones(),
        })
    }

    fn chosen(&mut self) -> Option<Chosen> {
        let valid = self.probe("access_valid") != 0;
        valid.then(|| Chosen {
            lanes: self.probe_bits("core.access_served").count_ones(),
            parts: self.probe("access_parts") != 0,
            to_scratchpad: self.shape.scratchpad > 0 && self.probe("access_to_scratchpad") != 0,
        })
    }

    fn found(&mut self) -> Option<Found> {
        let all = [("hit", Found::Hit), ("missed", Found::Miss), ("joined", Found::Joined)];
        all.into_iter().find(|(name, _)| self.memory_probe(&format!("cache.found_{name}")) != 0).map(|(_, found)| found)
    }
}

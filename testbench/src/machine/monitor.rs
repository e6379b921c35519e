//! Who looks at a machine in every cycle. The machine knows only this trait: what compares it with something else, or
//! counts what no counter of the core does, is in crates above it (`heddle-check`).

use super::Summary;
use crate::Program;
use crate::grid::{Grid, GridError, ThreadId};
use crate::kernels::DeviceError;
use crate::paths::Path;
use crate::program::ProgramError;
use heddle_sim::directory::Directory;
use heddle_sim::engine::Engine;
use heddle_sim::{Recording, Records};
use heddle_simt::Shape;
use heddle_simt::isa::FaultCause;
use std::fmt;
use std::sync::Arc;

/// Makes a monitor of a machine that has this program loaded; none where there is nothing to look at in a core of this
/// shape.
pub type Attach = fn(&Directory, &Program, &Shape) -> Result<Option<Box<dyn Monitor>>, ProgramError>;

/// Looks at every cycle of one launch after another, until another program is loaded. The engine must show the core's
/// probes.
pub trait Monitor {
    /// Before a launch at this pc.
    fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError>;

    /// Looks at a cycle, before its clock edge: unless told otherwise, at what is [recorded](Monitor::recorder) of it. Who
    /// reads more than registers and memories must let the engine settle first. `seed` is that of the start values.
    fn cycle(&mut self, engine: &mut dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        engine.settle();
        if let Some((recording, records)) = self.recorder() {
            records.note(engine, recording);
        }
        self.look(engine.cycle() + 1).map_err(|_| self.explain(engine, seed))
    }

    /// Whether the launch is to end here as if it were interrupted; asked after [`Monitor::cycle`].
    fn quits(&self) -> bool {
        false
    }

    /// Whether it may find that something is wrong; else it only counts, and [`Monitor::cycle`] and [`Monitor::look`] never
    /// fail.
    fn may_find(&self) -> bool {
        true
    }

    /// What is to be recorded of every cycle, and where; a launch drops what is left of the one before. Where all monitors of
    /// a machine have this and it can run many cycles at once, they are not asked to look at each: they look at what was
    /// recorded of them instead.
    fn recorder(&mut self) -> Option<(&Arc<Recording>, &mut Records)> {
        None
    }

    /// Looks at what was recorded of the cycles before `end`; later ones may be there, too. An error is the cycle in which it
    /// shows that something is wrong: the machine goes back to it, and asks to [explain](Monitor::explain) it.
    fn look(&mut self, _end: u64) -> Result<(), u64> {
        Ok(())
    }

    /// What [`Monitor::look`] has found, in the settled cycle that it has named.
    fn explain(&mut self, _engine: &dyn Engine, _seed: u64) -> Box<Mismatch> {
        unreachable!("who finds something in records explains it")
    }

    /// In the settled cycle after a launch that the core ended, with the fault if it ended by one.
    fn end(&mut self, _engine: &dyn Engine, _seed: u64, _stop: Option<&Stop>) -> Result<(), Box<Mismatch>> {
        Ok(())
    }

    /// What the host writes into the core's memory.
    fn write(&mut self, _address: u32, _bytes: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    /// What main memory must hold after a launch, if the monitor knows.
    fn memory(&self) -> Option<&[u8]> {
        None
    }

    /// Thread instructions compared so far.
    fn compared(&self) -> u64 {
        0
    }

    /// Adds to a summary what was counted in all launches so far.
    fn summarise(&self, _summary: &mut Summary) {}
}

/// The fault that stopped the core.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    /// None if the core tells another number.
    pub cause: Option<FaultCause>,
    /// Byte address of the instruction.
    pub pc: u32,
    /// Of the first thread's jump or memory access.
    pub address: Option<u32>,
    /// Numbers of the hardware threads that are at fault.
    pub harts: &'a [u32],
}

/// The first difference between the core and what a monitor compares it with, with what is needed to understand it.
/// Several lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Cycle of the simulation.
    pub cycle: u64,
    /// Of the simulation's random start values.
    pub seed: u64,
    /// The thread.
    pub thread: ThreadId,
    /// Its warp slot.
    pub warp: u32,
    /// Its lane.
    pub lane: u32,
    /// Byte address of the instruction.
    pub pc: u32,
    /// What differs, with both values.
    pub what: String,
    /// The last instructions of this thread, and the instructions around this one.
    pub listing: String,
    /// The warp's paths at this moment.
    pub paths: Vec<Path>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { cycle, seed, thread, warp, lane, what, .. } = self;
        writeln!(f, "{thread} (warp {warp}, lane {lane}) is not what the instruction-set simulator says: {what}")?;
        writeln!(f, "cycle {cycle}, seed {seed}")?;
        write!(f, "{}", self.listing)?;
        write!(f, "paths of warp {warp}:")?;
        for path in &self.paths {
            write!(f, "\n  {path}")?;
        }
        if self.paths.is_empty() { write!(f, " none") } else { Ok(()) }
    }
}

impl std::error::Error for Mismatch {}

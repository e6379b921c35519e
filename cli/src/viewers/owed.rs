//! What an instruction that has issued still has to write.

use heddle_simt::LaneMask;
use heddle_simt::pipeline::timing::{ISSUE_TO_OUTCOME, ISSUE_TO_READ, ISSUE_TO_RESOLVE, ISSUE_TO_WRITE};
use heddle_testbench::machine::Pipeline;

/// Its register, known from stage 5 on, and the lanes whose write is to come, from stage 8 on.
#[derive(Default)]
pub struct Owed {
    destination: Option<u32>,
    lanes: LaneMask,
}

/// What becomes of it in a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is under way.
    Goes,
    /// It has no effect: it issues again, or a fault was before it.
    Squashed,
    /// The last of its lanes is written in this cycle.
    Writes,
    /// It has ended before this cycle.
    Ended,
}

impl Owed {
    /// The register that it writes.
    pub fn destination(&self) -> Option<u32> {
        self.destination
    }

    /// In a cycle, so many after its issue.
    pub fn follow(&mut self, warp: u32, age: u32, pipeline: &Pipeline) -> Fate {
        if age == ISSUE_TO_READ {
            self.destination = pipeline.reads.as_ref().and_then(|registers| registers.destination);
        }
        if age == ISSUE_TO_RESOLVE {
            self.lanes = pipeline.resolved.as_ref().map_or(LaneMask::new(), |(_, lanes)| lanes.clone());
        }
        if age == ISSUE_TO_OUTCOME && self.lanes.not_any() {
            return Fate::Squashed;
        }
        if age < ISSUE_TO_WRITE {
            return Fate::Goes;
        }
        let Some(destination) = self.destination.filter(|_| self.lanes.any()) else { return Fate::Ended };
        // No two of a warp owe the same lane of a register.
        if let Some((to, register, lanes)) = &pipeline.written
            && (*to, *register) == (warp, destination)
        {
            self.lanes &= !lanes.clone();
        }
        if self.lanes.any() { Fate::Goes } else { Fate::Writes }
    }
}

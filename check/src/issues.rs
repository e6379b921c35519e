//! How many lanes are active when a simulated core issues: every issue, from its probes, many cycles at a time.
//!
//! It is the breakdown of `thread-block-compaction.txt` Figures 13(a) and 14(a), without the cycles that have no issue:
//! those the core counts by cause.

use heddle_sim::directory::Directory;
use heddle_sim::{Channel, Engine, Recording, Records, Seen};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::grid::{Grid, GridError};
use heddle_testbench::machine::{Issues, Monitor, Summary};
use heddle_testbench::program::ProgramError;
use std::sync::Arc;

/// Counts on any machine.
pub fn monitor(
    directory: &Directory,
    _program: &Program,
    shape: &Shape,
) -> Result<Option<Box<dyn Monitor>>, ProgramError> {
    let probe =
        |name: &str| Seen::Probe(directory.probes.find(&format!("core.{name}")).expect("every core has this probe"));
    let channel = Channel { guard: probe("issue_valid"), values: vec![probe("issue_mask")] };
    let recording = Recording::new(directory, vec![channel]);
    let records = Records::new(&recording);
    Ok(Some(Box::new(Counting { recording, records, lanes: shape.lanes, issues: Issues::default() })))
}

struct Counting {
    recording: Arc<Recording>,
    records: Records,
    lanes: u32,
    issues: Issues,
}

impl Monitor for Counting {
    fn launch(&mut self, _engine: &dyn Engine, _grid: Grid, _entry: u32) -> Result<(), GridError> {
        self.records.clear();
        Ok(())
    }

    fn may_find(&self) -> bool {
        false
    }

    fn recorder(&mut self) -> Option<(&Arc<Recording>, &mut Records)> {
        Some((&self.recording, &mut self.records))
    }

    fn look(&mut self, end: u64) -> Result<(), u64> {
        let mask = self.recording.start(0, 0);
        while let Some(row) = self.records.first(0).filter(|row| row[0] < end) {
            self.issues.count(row[mask].count_ones(), self.lanes);
            self.records.take(0);
        }
        Ok(())
    }

    fn summarise(&self, summary: &mut Summary) {
        summary.issues = Some(self.issues);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_simt::{Divergence, Replay};
    use heddle_testbench::kernels::find;
    use heddle_testbench::machine::{Machine, MachineOptions};

    /// On as many lanes as there are parts, part k has the issues of k + 1 threads.
    #[test]
    fn all_issues_are_counted_with_their_threads() {
        for divergence in [Divergence::PATH_TABLE, Divergence::STACK, Divergence::BLOCK_STACK] {
            let shape = Shape { replay: Replay::Serialise, ..Shape::new(8, 4) }.with_divergence(divergence);
            let with = |monitors| {
                let kernel = find("quicksort").unwrap();
                let options = MachineOptions { monitors, ..MachineOptions::default() };
                let mut machine = Machine::new(&shape, Program::parse(kernel.elf).unwrap(), &options).unwrap();
                (kernel.drive)(&mut machine, 1).unwrap();
                machine.summary()
            };
            let alone = with(vec![monitor]);
            let Issues(issues) = alone.issues.unwrap();
            assert_eq!(issues.iter().sum::<u64>(), alone.warp_instructions, "{}", divergence.name());
            let threads: u64 = (1..).zip(issues).map(|(threads, issues)| threads * issues).sum();
            assert_eq!(threads, alone.thread_instructions, "{}", divergence.name());
            assert!(issues.iter().filter(|count| **count > 0).count() > 3, "{issues:?}");
            // Beside another.
            let both = with(vec![crate::compaction::monitor, monitor]);
            assert_eq!((both.issues, both.cycles), (alone.issues, alone.cycles), "{}", divergence.name());
        }
    }

    #[test]
    fn parts_of_a_warp_are_eighths() {
        let part = |active, lanes| {
            let mut issues = Issues::default();
            issues.count(active, lanes);
            issues.0.iter().position(|count| *count == 1).unwrap()
        };
        assert_eq!([1, 4, 5, 28, 29, 32].map(|active| part(active, 32)), [0, 0, 1, 6, 7, 7]);
        assert_eq!([1, 2].map(|active| part(active, 2)), [3, 7]);
        assert_eq!((part(1, 1), part(64, 64)), (7, 7));
    }
}

//! Cycles that a monitor looks at when many of them are over, by what was recorded of them.
//!
//! The state is saved now and then. If the monitor finds something, the machine goes back to the cycle in which it shows,
//! so that all is as if the monitor had looked at each cycle before its edge.

use super::{Machine, MachineError, MachineOptions};
use crate::program::Program;
use heddle_sim::directory::Directory;
use heddle_sim::engine::{RunEnd, Saved, Why};
use heddle_sim::{Recording, Records};
use heddle_simt::Shape;
use std::sync::Arc;

/// Cycles between two looks: as many as the engine records without a break.
const LOOK: u64 = 512;

/// Cycles from one saved state to the next: few enough to be made again in a moment, and so many that saving costs
/// nothing.
const SAVE: u64 = 1 << 15;

/// What a machine with these options is going to record. Where a program is refused, that is said when it is loaded.
pub fn wanted(
    directory: &Directory,
    shape: &Shape,
    program: &Program,
    options: &MachineOptions,
) -> Option<Arc<Recording>> {
    let monitors = options.monitors.iter().filter_map(|attach| attach(directory, program, shape).ok().flatten());
    let mut recordings = monitors.filter_map(|mut monitor| Some(monitor.recorder()?.0.clone()));
    recordings.next().filter(|_| options.wave.is_none())
}

/// A state of the present launch.
#[derive(Default)]
pub struct Behind {
    saved: Saved,
    /// The cycle that it is of.
    cycle: Option<u64>,
}

impl Behind {
    /// The host may change what it likes.
    pub fn forget(&mut self) {
        self.cycle = None;
    }
}

impl Machine {
    /// Saves the state if the last one saved is long ago. False if the engine cannot.
    pub(super) fn keep_behind(&mut self) -> bool {
        let engine = self.simulation.engine();
        let cycle = engine.cycle();
        if self.behind.cycle.is_none_or(|kept| cycle - kept >= SAVE) {
            self.behind.cycle = engine.save(&mut self.behind.saved).then_some(cycle);
        }
        self.behind.cycle.is_some()
    }

    /// Up to `most` cycles of a machine one of whose monitors records. Others look at each.
    pub(super) fn run_recorded(&mut self, most: u64) -> Result<RunEnd, MachineError> {
        let stop = Some(self.places.stopped);
        let records = |monitor: &mut Box<dyn super::Monitor>| monitor.recorder().is_some();
        let recorder = self.monitors.iter_mut().position(records).expect("one of them records");
        let at_once = if self.monitors.len() > 1 { 1 } else { LOOK };
        let mut end = RunEnd { cycles: 0, why: Why::Limit };
        while end.cycles < most && end.why == Why::Limit {
            self.keep_behind();
            for (_, monitor) in self.monitors.iter_mut().enumerate().filter(|(k, _)| *k != recorder) {
                monitor.cycle(self.simulation.engine(), self.seed).map_err(MachineError::Commit)?;
            }
            let monitor = &mut self.monitors[recorder];
            let (recording, records) = monitor.recorder().expect("it records");
            let engine = self.simulation.engine();
            let run = engine.run_recording(recording, at_once.min(most - end.cycles), stop, records);
            if let Err(cycle) = monitor.look(engine.cycle()) {
                return Err(self.go_back(recorder, cycle));
            }
            self.simulation.check()?;
            end = RunEnd { cycles: end.cycles + run.cycles, why: run.why };
        }
        Ok(end)
    }

    /// What the monitor has found that shows in a cycle.
    fn go_back(&mut self, monitor: usize, cycle: u64) -> MachineError {
        let monitor = &mut self.monitors[monitor];
        self.simulation.restore(&self.behind.saved);
        let engine = self.simulation.engine();
        if let Some((recording, _)) = monitor.recorder() {
            // The code that records is there already.
            let mut again = Records::new(recording);
            while engine.cycle() < cycle {
                again.clear();
                engine.run_recording(recording, LOOK.min(cycle - engine.cycle()), None, &mut again);
            }
        }
        engine.settle();
        MachineError::Commit(monitor.explain(engine, self.seed))
    }
}

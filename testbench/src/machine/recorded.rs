//! Cycles that monitors look at when many of them are over, by what was recorded of them.
//!
//! What all of them ask for is one recording. Where one of them may find something, the state is saved now and then. If it
//! does, the machine goes back to the cycle in which it shows, and those that count have looked at no later one: so all is
//! as if each had looked at every cycle before its edge.

use super::{Machine, MachineError, MachineOptions, Monitor};
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

/// What holds where cycles are looked at when many of them are over.
const RECORD: &str = "all monitors of the machine record";

/// What a machine with these options is going to record. Where a program is refused, that is said when it is loaded.
pub fn wanted(
    directory: &Directory,
    shape: &Shape,
    program: &Program,
    options: &MachineOptions,
) -> Option<Arc<Recording>> {
    let monitors = options.monitors.iter().filter_map(|attach| attach(directory, program, shape).ok().flatten());
    let mut monitors: Vec<_> = monitors.collect();
    Together::of(&mut monitors).filter(|_| options.wave.is_none()).map(|together| together.recording)
}

/// What the monitors record.
pub struct Together {
    recording: Arc<Recording>,
    records: Records,
}

impl Together {
    /// None if one of them does not, or if there are none.
    pub fn of(monitors: &mut [Box<dyn Monitor>]) -> Option<Together> {
        let recordings = monitors.iter_mut().map(|monitor| Some(monitor.recorder()?.0.clone()));
        let recordings: Vec<Arc<Recording>> = recordings.collect::<Option<_>>()?;
        if recordings.is_empty() {
            return None;
        }
        let recording = Recording::together(&recordings);
        Some(Together { records: Records::new(&recording), recording })
    }

    /// Gives each monitor its rows.
    fn share(&mut self, monitors: &mut [Box<dyn Monitor>]) {
        let mut first = 0;
        for (recording, records) in monitors.iter_mut().filter_map(|monitor| monitor.recorder()) {
            self.records.give(first, records);
            first += recording.channels().len();
        }
    }
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
    pub(super) fn may_find(&self) -> bool {
        self.monitors.iter().any(|monitor| monitor.may_find())
    }

    /// Saves the state if the last one saved is long ago. False if the engine cannot.
    pub(super) fn keep_behind(&mut self) -> bool {
        let engine = self.simulation.engine();
        let cycle = engine.cycle();
        if self.behind.cycle.is_none_or(|kept| cycle - kept >= SAVE) {
            self.behind.cycle = engine.save(&mut self.behind.saved).then_some(cycle);
        }
        self.behind.cycle.is_some()
    }

    /// Up to `most` cycles of a machine whose monitors all record.
    pub(super) fn run_recorded(&mut self, most: u64) -> Result<RunEnd, MachineError> {
        let stop = Some(self.places.stopped);
        let mut end = RunEnd { cycles: 0, why: Why::Limit };
        while end.cycles < most && end.why == Why::Limit {
            if self.may_find() {
                self.keep_behind();
            }
            let together = self.together.as_mut().expect(RECORD);
            let Together { recording, records } = together;
            let engine = self.simulation.engine();
            let run = engine.run_recording(recording, LOOK.min(most - end.cycles), stop, records);
            let now = engine.cycle();
            together.share(&mut self.monitors);
            let finders = self.monitors.iter_mut().enumerate().filter(|(_, monitor)| monitor.may_find());
            let found = finders.filter_map(|(number, monitor)| Some((monitor.look(now).err()?, number))).min();
            let until = found.map_or(now, |(cycle, _)| cycle + 1);
            for monitor in self.monitors.iter_mut().filter(|monitor| !monitor.may_find()) {
                monitor.look(until).expect("it only counts");
            }
            if let Some((cycle, number)) = found {
                return Err(self.go_back(number, cycle));
            }
            self.simulation.check()?;
            end = RunEnd { cycles: end.cycles + run.cycles, why: run.why };
        }
        Ok(end)
    }

    /// What the monitor has found that shows in a cycle.
    fn go_back(&mut self, monitor: usize, cycle: u64) -> MachineError {
        self.simulation.restore(&self.behind.saved);
        let engine = self.simulation.engine();
        // The code that records is there already.
        let recording = &self.together.as_ref().expect(RECORD).recording;
        let mut again = Records::new(recording);
        while engine.cycle() < cycle {
            again.clear();
            engine.run_recording(recording, LOOK.min(cycle - engine.cycle()), None, &mut again);
        }
        engine.settle();
        MachineError::Commit(self.monitors[monitor].explain(engine, self.seed))
    }
}

//! Rows that the code has made, and going back to a state that was saved.

use super::Compiled;
use super::layout::LINE;
use super::tier::Tiers;
use crate::engine::{Failure, Saved};
use crate::flat::Purpose;
use crate::flat::recorder::ROWS;
use crate::record::{Recording, Records};
use aligned_vec::{AVec, ConstAlign};
use std::sync::Arc;

/// What [`super::Compiled`] saves.
struct Kept {
    state: AVec<u64, ConstAlign<LINE>>,
    reset: bool,
    cycle: u64,
    failures: Vec<Failure>,
}

impl Compiled {
    /// Has edges that record make the rows of this recording.
    pub(super) fn record(&mut self, recording: &Arc<Recording>) {
        let plan = Arc::make_mut(&mut self.plan);
        match &mut plan.cells.recorder {
            Some(recorder) if Arc::ptr_eq(&recorder.recording, recording) => return,
            Some(recorder) if recorder.recording == *recording => return recorder.recording = recording.clone(),
            _ => {}
        }
        self.functions.retain(|made| !matches!(made.purpose, Purpose::Edge { record: true, .. }));
        plan.cells.record(recording);
        plan.layout.grow(&plan.cells, ROWS);
        self.state.resize(plan.layout.size / 8, 0);
        self.report.state_bytes = plan.layout.size;
        self.tiers.iter_mut().for_each(Tiers::restart);
    }

    /// Moves the rows of a call to the records, if somebody wants them.
    pub(super) fn take_rows(&mut self, mut records: Option<&mut Records>) {
        let Some(recorder) = &self.plan.cells.recorder else { return };
        for (channel, (&count, &rows)) in recorder.counts.iter().zip(&recorder.rows).enumerate() {
            let count = &self.plan.layout.cells[count as usize];
            let made = count.read_u64(&self.state, 0, 0);
            if made > 0 {
                if let Some(records) = &mut records {
                    let form = &self.plan.layout.memories[rows as usize];
                    let first = form.offset / 8;
                    records.push(channel, &self.state[first..first + made as usize * form.stride / 8]);
                }
                count.write_u64(&mut self.state, 0, 0, 0);
            }
        }
    }

    pub(super) fn save_state(&self, saved: &mut Saved) {
        let room = saved.0.take().and_then(|kept| kept.downcast::<Kept>().ok());
        let mut kept = room
            .unwrap_or_else(|| Box::new(Kept { state: AVec::new(LINE), reset: false, cycle: 0, failures: Vec::new() }));
        kept.state.resize(self.state.len(), 0);
        kept.state.copy_from_slice(&self.state);
        kept.failures.clone_from(&self.failures);
        (kept.reset, kept.cycle) = (self.reset, self.cycle);
        saved.0 = Some(kept);
    }

    pub(super) fn restore_state(&mut self, saved: &Saved) {
        let kept = saved.0.as_ref().and_then(|kept| kept.downcast_ref::<Kept>()).expect("this engine has saved");
        // What was numbered since has no part in the state.
        self.state[..kept.state.len()].copy_from_slice(&kept.state);
        self.failures.clone_from(&kept.failures);
        (self.reset, self.cycle) = (kept.reset, kept.cycle);
        self.settled = false;
    }
}

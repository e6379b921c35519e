//! Rows of a recording: see [`crate::record`].

use super::Flatten;
use crate::flat::recorder::{ROWS, Recorder};
use crate::flat::{Action, Effect, Flat, Id, Op, Part, limb_width, limbs};
use crate::record::Seen;

impl Flatten<'_> {
    /// A row for each channel whose guard is not 0, with values from before the edge.
    pub(super) fn record(&mut self, flat: &mut Flat, recorder: &Recorder) {
        let one = self.b.constant(1, 1);
        let count = |cell| Effect::Count { cell, lane: None, value: one };
        let now = self.b.node(Op::Cell { cell: recorder.now, lane: 0, low: 0 }, 64, &[]);
        for (k, channel) in recorder.recording.channels().iter().enumerate() {
            let limbs = self.seen(channel.guard);
            let guard = self.b.word_any(&limbs);
            if self.b.value(guard) == Some(0) {
                continue;
            }
            let mut row = vec![now];
            channel.values.iter().for_each(|&value| row.extend(self.seen(value)));
            let part = |(at, &data): (usize, &Id)| Part { low: 64 * at as u32, data, mask: None };
            let parts = row.iter().enumerate().map(part).collect();
            let cell = recorder.counts[k];
            let rows = self.b.node(Op::Cell { cell, lane: 0, low: 0 }, 64, &[]);
            let address = self.b.slice(rows, 0, ROWS.trailing_zeros());
            let write = Effect::Write { memory: recorder.rows[k], lane: None, address, enable: None, parts };
            let guard = Some(guard).filter(|&guard| self.b.value(guard).is_none());
            flat.actions.push(vec![Action { guard, effects: vec![write, count(cell)] }]);
        }
        flat.actions.push(vec![Action { guard: None, effects: vec![count(recorder.now)] }]);
    }

    /// The limbs of a value.
    fn seen(&mut self, seen: Seen) -> Vec<Id> {
        let directory = self.directory;
        let (entry, node) = match seen {
            Seen::Probe(probe) => {
                let entry = &directory.probes[probe];
                (entry, directory.scopes[entry.scope].module.probes[entry.index].node)
            }
            Seen::Register(register) => (&directory.registers[register], directory.register(register).out),
        };
        let Some(lane) = self.lane(entry.scope) else { return self.word(entry.scope, node) };
        // Inside a lane, all lanes' values are made at once.
        self.inside.push(lane.group);
        let limb = |this: &mut Self, k| {
            let all = this.bits(lane.first, node, k * 64, limb_width(entry.width, k));
            this.b.lane(all, lane.number)
        };
        let word = (0..limbs(entry.width)).map(|k| limb(self, k)).collect();
        self.inside.pop();
        word
    }
}

//! What a run records: values of probes, of the cycles in which something happens.
//!
//! A [`Recording`] is a list of channels. In each cycle, before the edge and with reset on or off, every [`Channel`] whose
//! guard is not 0 leaves a row in the [`Records`]: the cycle, then the values of its probes. The compiled engine makes
//! rows in the function that makes edges ([`Engine::run_recording`]), other engines cycle by cycle. [`Records::note`]
//! does the same for the one settled cycle that an engine is in.

use crate::directory::Directory;
use crate::engine::Engine;
use std::sync::Arc;

/// In every cycle in which the guard is not 0, the values of the probes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// A probe.
    pub guard: usize,
    /// Probes, by their numbers in the [`Directory`].
    pub probes: Vec<usize>,
}

/// Channels, and how their rows lie.
#[derive(PartialEq, Eq, Debug)]
pub struct Recording {
    channels: Vec<Channel>,
    /// For each channel: where its probes' values begin in a row, and how long a row is.
    starts: Vec<Vec<usize>>,
}

impl Recording {
    /// Of probes of this directory.
    pub fn new(directory: &Directory, channels: Vec<Channel>) -> Arc<Recording> {
        let starts = |channel: &Channel| {
            let mut starts = vec![1];
            for &probe in &channel.probes {
                let limbs = directory.probes[probe].width.div_ceil(64) as usize;
                starts.push(starts[starts.len() - 1] + limbs);
            }
            starts
        };
        Arc::new(Recording { starts: channels.iter().map(starts).collect(), channels })
    }

    /// In the order that was given.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Limbs of a row of a channel: the cycle, then the limbs of each probe, as many as its width needs, the least
    /// significant first.
    pub fn row(&self, channel: usize) -> usize {
        self.starts[channel][self.channels[channel].probes.len()]
    }

    /// The limb of a row at which the value of a channel's `k`-th probe begins.
    pub fn start(&self, channel: usize, k: usize) -> usize {
        self.starts[channel][k]
    }
}

/// The rows of a channel that nobody has taken yet.
#[derive(Debug)]
struct Rows {
    limbs: Vec<u64>,
    row: usize,
    /// Limbs that have been taken.
    taken: usize,
}

/// For each channel its rows, the oldest first, until they are taken.
#[derive(Debug)]
pub struct Records {
    channels: Vec<Rows>,
}

impl Records {
    /// Without rows.
    pub fn new(recording: &Recording) -> Records {
        let rows = |channel| Rows { limbs: Vec::new(), row: recording.row(channel), taken: 0 };
        Records { channels: (0..recording.channels.len()).map(rows).collect() }
    }

    /// The oldest row of a channel.
    pub fn first(&self, channel: usize) -> Option<&[u64]> {
        let Rows { limbs, row, taken } = &self.channels[channel];
        limbs.get(*taken..taken + row)
    }

    /// Drops the oldest row of a channel, which there is.
    pub fn take(&mut self, channel: usize) {
        let rows = &mut self.channels[channel];
        rows.taken += rows.row;
    }

    /// Drops all rows.
    pub fn clear(&mut self) {
        for rows in &mut self.channels {
            rows.limbs.clear();
            rows.taken = 0;
        }
    }

    /// Appends rows of a channel.
    pub fn push(&mut self, channel: usize, rows: &[u64]) {
        let room = self.room(channel);
        room.extend_from_slice(rows);
    }

    /// Where the next rows of a channel go.
    fn room(&mut self, channel: usize) -> &mut Vec<u64> {
        let Rows { limbs, taken, .. } = &mut self.channels[channel];
        if *taken > 0 {
            limbs.drain(..*taken);
            *taken = 0;
        }
        limbs
    }

    /// Appends the rows of the settled cycle that an engine is in.
    pub fn note<E: Engine + ?Sized>(&mut self, engine: &E, recording: &Recording) {
        for (k, channel) in recording.channels.iter().enumerate() {
            if engine.probe(channel.guard).is_zero() {
                continue;
            }
            let limbs = self.room(k);
            limbs.push(engine.cycle());
            for (at, &probe) in channel.probes.iter().enumerate() {
                let value = engine.probe(probe);
                let width = recording.start(k, at + 1) - recording.start(k, at);
                limbs.extend((0..width).map(|limb| value.limb(limb)));
            }
        }
    }
}

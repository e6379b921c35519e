//! What a run records: values of probes and registers, of the cycles in which something happens.
//!
//! A [`Recording`] is a list of channels. In each cycle, before the edge and with reset on or off, every [`Channel`] whose
//! guard is not 0 leaves a row in the [`Records`]: the cycle, then the values that it asks for. The compiled engine makes
//! rows in the function that makes edges ([`Engine::run_recording`]), other engines cycle by cycle. [`Records::note`]
//! does the same for the one settled cycle that an engine is in.

use crate::directory::Directory;
use crate::engine::Engine;
use heddle_hdl::Bits;
use std::sync::Arc;

/// What can be recorded, by its number in the [`Directory`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    Probe(usize),
    Register(usize),
}

impl Seen {
    /// In bits.
    pub fn width(self, directory: &Directory) -> u32 {
        match self {
            Seen::Probe(probe) => directory.probes[probe].width,
            Seen::Register(register) => directory.registers[register].width,
        }
    }

    /// Its value in the settled cycle that an engine is in.
    fn value<E: Engine + ?Sized>(self, engine: &E) -> Bits {
        match self {
            Seen::Probe(probe) => engine.probe(probe),
            Seen::Register(register) => engine.register(register),
        }
    }
}

/// In every cycle in which the guard is not 0, these values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    pub guard: Seen,
    pub values: Vec<Seen>,
}

/// Channels, and how their rows lie.
#[derive(PartialEq, Eq, Debug)]
pub struct Recording {
    channels: Vec<Channel>,
    /// For each channel: where its values begin in a row, and how long a row is.
    starts: Vec<Vec<usize>>,
}

impl Recording {
    /// Of what is in this directory.
    pub fn new(directory: &Directory, channels: Vec<Channel>) -> Arc<Recording> {
        let starts = |channel: &Channel| {
            let mut starts = vec![1];
            for value in &channel.values {
                let limbs = value.width(directory).div_ceil(64) as usize;
                starts.push(starts[starts.len() - 1] + limbs);
            }
            starts
        };
        Arc::new(Recording { starts: channels.iter().map(starts).collect(), channels })
    }

    /// Several as one: the channels of the first, then those of the next.
    pub fn together(recordings: &[Arc<Recording>]) -> Arc<Recording> {
        match recordings {
            [one] => one.clone(),
            _ => Arc::new(Recording {
                channels: recordings.iter().flat_map(|recording| recording.channels.clone()).collect(),
                starts: recordings.iter().flat_map(|recording| recording.starts.clone()).collect(),
            }),
        }
    }

    /// In the order that was given.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Limbs of a row of a channel: the cycle, then the limbs of each value, as many as its width needs, the least
    /// significant first.
    pub fn row(&self, channel: usize) -> usize {
        self.starts[channel][self.channels[channel].values.len()]
    }

    /// The limb of a row at which a channel's `k`-th value begins.
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

    /// The oldest row of a channel, if it is of this cycle; it is dropped.
    pub fn take_of(&mut self, channel: usize, cycle: u64) -> Option<&[u64]> {
        let Rows { limbs, row, taken } = &mut self.channels[channel];
        let of_cycle = limbs.get(*taken..*taken + *row).filter(|limbs| limbs[0] == cycle)?;
        *taken += *row;
        Some(of_cycle)
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

    /// Moves all rows of as many channels as `to` has, from channel `first` on, to `to`.
    pub fn give(&mut self, first: usize, to: &mut Records) {
        for (k, from) in self.channels[first..].iter_mut().take(to.channels.len()).enumerate() {
            from.limbs.drain(..std::mem::take(&mut from.taken));
            let room = to.room(k);
            if room.is_empty() {
                std::mem::swap(room, &mut from.limbs);
            } else {
                room.append(&mut from.limbs);
            }
        }
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
            if channel.guard.value(engine).is_zero() {
                continue;
            }
            let limbs = self.room(k);
            limbs.push(engine.cycle());
            for (at, seen) in channel.values.iter().enumerate() {
                let value = seen.value(engine);
                let width = recording.start(k, at + 1) - recording.start(k, at);
                limbs.extend((0..width).map(|limb| value.limb(limb)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of one limb, the cycle, of as many channels as there are lists.
    fn records(channels: &[&[u64]]) -> Records {
        let rows = |cycles: &&[u64]| Rows { limbs: cycles.to_vec(), row: 1, taken: 0 };
        Records { channels: channels.iter().map(rows).collect() }
    }

    fn left(records: &mut Records) -> Vec<Vec<u64>> {
        let channels = records.channels.len();
        let mut of = |channel| {
            let mut cycles = Vec::new();
            while let Some(row) = records.first(channel) {
                cycles.push(row[0]);
                records.take(channel);
            }
            cycles
        };
        (0..channels).map(&mut of).collect()
    }

    #[test]
    fn rows_are_given_behind_those_that_are_left() {
        let mut all = records(&[&[1, 2], &[3], &[4, 5, 6]]);
        all.take(2);
        let (mut one, mut two) = (records(&[&[]]), records(&[&[1, 2], &[0]]));
        two.take(0);
        two.take(1);
        all.give(0, &mut one);
        all.give(1, &mut two);
        assert_eq!(left(&mut one), [[1, 2]]);
        assert_eq!(left(&mut two), [vec![2, 3], vec![5, 6]]);
        assert!(left(&mut all).iter().all(Vec::is_empty));
        // Room that was exchanged has nothing of before.
        all.push(0, &[7]);
        all.push(1, &[8]);
        all.give(0, &mut one);
        all.give(1, &mut two);
        assert_eq!((left(&mut one), left(&mut two)), (vec![vec![7]], vec![vec![8], vec![]]));
    }

    #[test]
    fn the_oldest_row_is_taken_if_it_is_of_the_cycle() {
        let mut all = records(&[&[1, 3], &[]]);
        assert_eq!(all.take_of(0, 2), None);
        assert_eq!(all.take_of(1, 1), None);
        assert_eq!(all.take_of(0, 1), Some(&[1][..]));
        assert_eq!(left(&mut all), [vec![3], vec![]]);
    }
}

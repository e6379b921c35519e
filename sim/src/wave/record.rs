//! From changed limbs to changed variables, on a thread of its own.
//!
//! The simulation sends batches of cycles, each with the limbs that changed. A few batches wait at most: then the
//! simulation waits, too, so that a slow disk costs time and no memory.

use super::format::Format;
use super::{CLOCK, PERIOD, RESET};
use crate::engine::Piece;
use heddle_hdl::bits::low_mask;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// A batch is sent when it has so many limbs, or so many cycles.
const LIMBS: usize = 1 << 14;
const CYCLES: usize = 1 << 12;
/// So many batches may wait.
const WAITING: usize = 8;

/// Cycles in a row.
struct Batch {
    cycles: Vec<Cycle>,
    limbs: Vec<u32>,
    values: Vec<u64>,
}

impl Batch {
    fn new() -> Batch {
        // The last cycle may go beyond.
        let limbs = LIMBS + LIMBS / 4;
        Batch {
            cycles: Vec::with_capacity(CYCLES),
            limbs: Vec::with_capacity(limbs),
            values: Vec::with_capacity(limbs),
        }
    }
}

struct Cycle {
    start: u64,
    reset: bool,
    /// Where its limbs end.
    end: usize,
}

/// The simulation's end of the thread.
pub struct Recorder {
    batch: Batch,
    batches: SyncSender<Batch>,
    thread: JoinHandle<io::Result<()>>,
}

impl Recorder {
    /// Variable k has `pieces[k]`; they are among so many limbs.
    pub fn start(format: impl Format, pieces: &[Vec<Piece>], limbs: usize) -> io::Result<Recorder> {
        let (batches, received) = sync_channel(WAITING);
        let decoder = Decoder::new(format, pieces, limbs);
        let thread = std::thread::Builder::new().name("waveform".into()).spawn(move || decoder.run(&received))?;
        Ok(Recorder { batch: Batch::new(), batches, thread })
    }

    /// Adds a limb's new value to the cycle that `cycle` is called for next.
    pub fn limb(&mut self, limb: u32, value: u64) {
        self.batch.limbs.push(limb);
        self.batch.values.push(value);
    }

    /// A cycle with the limbs that have been added. False: the thread has ended, and `finish` says why.
    pub fn cycle(&mut self, start: u64, reset: bool) -> bool {
        self.batch.cycles.push(Cycle { start, reset, end: self.batch.limbs.len() });
        let is_full = self.batch.limbs.len() >= LIMBS || self.batch.cycles.len() >= CYCLES;
        !is_full || self.batches.send(std::mem::replace(&mut self.batch, Batch::new())).is_ok()
    }

    /// Sends the rest and waits until all is written.
    pub fn finish(self) -> io::Result<()> {
        // If nobody receives it, the thread has failed and says why.
        let _ = self.batches.send(self.batch);
        drop(self.batches);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes it panicked")))
    }
}

/// The thread.
struct Decoder<F> {
    format: F,
    image: Vec<u64>,
    /// For each limb, the end of its parts.
    ends: Vec<u32>,
    parts: Vec<Part>,
    variables: Vec<Vec<Piece>>,
    /// Variables of several pieces with changes in this cycle, and for each variable, whether it is among them.
    pending: Vec<u32>,
    is_pending: Vec<bool>,
    reset: Option<bool>,
    value: Vec<u64>,
}

/// A piece of a variable.
struct Part {
    mask: u64,
    shift: u32,
    variable: u32,
    is_all: bool,
}

impl<F: Format> Decoder<F> {
    fn new(format: F, pieces: &[Vec<Piece>], limbs: usize) -> Decoder<F> {
        let mut parts: Vec<Vec<Part>> = (0..limbs).map(|_| Vec::new()).collect();
        for (variable, pieces) in (0..).zip(pieces) {
            for piece in pieces {
                let (mask, shift) = (low_mask(piece.width) << piece.shift, piece.shift);
                parts[piece.limb].push(Part { mask, shift, variable, is_all: pieces.len() == 1 });
            }
        }
        let mut end = 0;
        let mut end_of = |parts: &Vec<Part>| {
            end += parts.len() as u32;
            end
        };
        Decoder {
            format,
            image: vec![0; limbs],
            ends: parts.iter().map(&mut end_of).collect(),
            parts: parts.into_iter().flatten().collect(),
            variables: pieces.to_vec(),
            pending: Vec::new(),
            is_pending: vec![false; pieces.len()],
            reset: None,
            value: Vec::new(),
        }
    }

    fn run(mut self, batches: &Receiver<Batch>) -> io::Result<()> {
        let mut end = 0;
        for batch in batches {
            let mut from = 0;
            for cycle in &batch.cycles {
                let (limbs, values) = (&batch.limbs[from..cycle.end], &batch.values[from..cycle.end]);
                self.format.time(cycle.start)?;
                self.format.narrow(CLOCK, 1)?;
                let is_first = self.reset.is_none();
                if self.reset.replace(cycle.reset) != Some(cycle.reset) {
                    self.format.narrow(RESET, cycle.reset.into())?;
                }
                for (&limb, &value) in limbs.iter().zip(values) {
                    self.limb(limb as usize, value, is_first)?;
                }
                self.pending()?;
                self.format.time(cycle.start + PERIOD / 2)?;
                self.format.narrow(CLOCK, 0)?;
                from = cycle.end;
                end = cycle.start + PERIOD;
            }
        }
        self.format.time(end)?;
        self.format.narrow(CLOCK, 1)?;
        self.format.finish()
    }

    /// A limb has a new value; `is_first`: its first one.
    fn limb(&mut self, limb: usize, value: u64, is_first: bool) -> io::Result<()> {
        let start = if limb == 0 { 0 } else { self.ends[limb - 1] };
        let changed = std::mem::replace(&mut self.image[limb], value) ^ value;
        for part in &self.parts[start as usize..self.ends[limb] as usize] {
            if changed & part.mask == 0 && !is_first {
                continue;
            }
            if part.is_all {
                self.format.narrow(part.variable, (value & part.mask) >> part.shift)?;
            } else if !std::mem::replace(&mut self.is_pending[part.variable as usize], true) {
                self.pending.push(part.variable);
            }
        }
        Ok(())
    }

    /// Variables of several pieces, when all of them are known.
    fn pending(&mut self) -> io::Result<()> {
        for variable in self.pending.drain(..) {
            self.is_pending[variable as usize] = false;
            self.value.clear();
            let mut width = 0;
            for piece in &self.variables[variable as usize] {
                let bits = self.image[piece.limb] >> piece.shift & low_mask(piece.width);
                let at = width % 64;
                if at == 0 {
                    self.value.push(bits);
                } else {
                    *self.value.last_mut().expect("it has its lowest bits") |= bits << at;
                    if at + piece.width > 64 {
                        self.value.push(bits >> (64 - at));
                    }
                }
                width += piece.width;
            }
            match self.value.as_slice() {
                &[value] => self.format.narrow(variable, value)?,
                limbs => self.format.wide(variable, limbs)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

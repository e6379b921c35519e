//! Where a compiled design's rows go: see [`crate::record`].
//!
//! Each channel has a memory of [`ROWS`] rows and a cell that counts those that are there. A run is broken off and the
//! counts set to 0 before a memory can be full, so the code need not look.

use super::cells::{CellShape, Cells};
use crate::record::Recording;
use std::sync::Arc;

/// Rows that a channel has room for, a power of two. Enough that breaking off costs nothing, and few enough that rows of
/// some hundred bytes stay in the processor's cache.
pub const ROWS: u64 = 512;

/// The cells and memories of a recording.
#[derive(Clone)]
pub struct Recorder {
    pub recording: Arc<Recording>,
    /// The cell with the number of the cycle, 64 bits.
    pub now: u32,
    /// For each channel, the cell with the number of its rows, 64 bits.
    pub counts: Vec<u32>,
    /// For each channel, its memory.
    pub rows: Vec<u32>,
}

impl Cells {
    /// Numbers cells and memories for a recording, behind all others.
    pub fn record(&mut self, recording: &Arc<Recording>) {
        let channels = recording.channels().len();
        let (cell, memory) = (self.shapes.len() as u32, self.memory_shapes.len() as u32);
        self.shapes.extend((0..=channels).map(|_| CellShape { width: 64, lanes: 1 }));
        self.memory_shapes.extend((0..channels).map(|k| CellShape { width: 64 * recording.row(k) as u32, lanes: 1 }));
        self.recorder = Some(Recorder {
            recording: recording.clone(),
            now: cell,
            counts: (1..).take(channels).map(|k| cell + k).collect(),
            rows: (0..).take(channels).map(|k| memory + k).collect(),
        });
    }
}

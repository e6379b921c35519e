//! The numbering of everything in the state of a compiled design that is not a memory.

use crate::directory::{Directory, Table};
use std::ops::Range;

/// Cells by kind. Within a range they are in the order of the directory's table.
pub struct Cells {
    /// In bits.
    pub widths: Vec<u32>,
    pub inputs: Range<u32>,
    pub registers: Range<u32>,
    pub read_registers: Range<u32>,
    pub outputs: Range<u32>,
    pub probes: Range<u32>,
    pub signals: Range<u32>,
    /// For each property: 0 if it failed, for assertions and assumptions; the number of hits for covers.
    pub properties: Range<u32>,
    /// Which output ends a run when it is not 0: its number plus one, or 0 for none.
    pub stop: u32,
    /// Not 0 if the run is to end with this edge: because of that output, or because a property failed.
    pub stopped: u32,
    pub failed: u32,
}

impl Cells {
    pub fn new(d: &Directory) -> Cells {
        let mut widths = Vec::new();
        let mut add = |table: &mut dyn Iterator<Item = u32>| {
            let start = widths.len() as u32;
            widths.extend(table);
            start..widths.len() as u32
        };
        let of = |table: &Table| table.iter().map(|e| e.width).collect::<Vec<_>>().into_iter();
        let stop = add(&mut [32, 1, 1].into_iter()).start;
        Cells {
            stop,
            stopped: stop + 1,
            failed: stop + 2,
            inputs: add(&mut of(&d.inputs)),
            registers: add(&mut of(&d.registers)),
            read_registers: add(&mut of(&d.read_registers)),
            properties: add(&mut d.properties.iter().map(|_| 64)),
            outputs: add(&mut of(&d.outputs)),
            probes: add(&mut of(&d.probes)),
            signals: add(&mut of(&d.signals)),
            widths,
        }
    }
}

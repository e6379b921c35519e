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
    /// For each property: its value for assertions and assumptions, the number of hits for covers.
    pub properties: Range<u32>,
    /// Which output ends a run when it is not 0: its number plus one, or 0 for none.
    pub stop: u32,
    /// Whether a failed assertion keeps an edge from being made.
    pub check: u32,
    /// Why a run ended; see `compiled`.
    pub reason: u32,
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
        let check = add(&mut [1, 32, 32].into_iter()).start;
        Cells {
            check,
            stop: check + 1,
            reason: check + 2,
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

//! The numbering of everything in the state of a compiled design.

use super::lanes::Lanes;
use super::on_deep_stack;
use super::recorder::Recorder;
use super::views::Views;
use crate::directory::{Directory, Entry, Scope, Table};
use std::ops::Range;

/// Bits in each lane, and how many lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellShape {
    pub width: u32,
    pub lanes: u32,
}

/// Where something is: in a cell or memory, or in one lane of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub number: u32,
    pub lane: Option<u32>,
}

/// Cells, and which of them, or which lane, everything in the directory's tables has.
#[derive(Clone)]
pub struct Cells {
    pub shapes: Vec<CellShape>,
    pub inputs: Range<u32>,
    pub outputs: Range<u32>,
    pub registers: Vec<Place>,
    pub read_registers: Vec<Place>,
    pub probes: Vec<Place>,
    pub signals: Vec<Place>,
    /// For each property: 0 if it failed, for assertions and assumptions; the number of hits for covers.
    pub properties: Vec<Place>,
    /// Which output ends a run when it is not 0: its number plus one, or 0 for none.
    pub stop: u32,
    /// Not 0 if the run is to end with this edge: because of that output, or because a property failed.
    pub stopped: u32,
    pub failed: u32,
    /// The memories, which are no cells, are numbered in the same way.
    pub memory_shapes: Vec<CellShape>,
    pub memories: Vec<Place>,
    /// If a run is to record something.
    pub recorder: Option<Recorder>,
}

impl Cells {
    pub fn new(d: &Directory, lanes: &Lanes) -> Cells {
        on_deep_stack(|| Cells::numbered(d, lanes))
    }

    fn numbered(d: &Directory, lanes: &Lanes) -> Cells {
        let mut shapes = Vec::new();
        let mut plain = |widths: &[u32]| {
            let start = shapes.len() as u32;
            shapes.extend(widths.iter().map(|&width| CellShape { width, lanes: 1 }));
            start..shapes.len() as u32
        };
        let own = plain(&[32, 1, 1]);
        let mut ports = |table: &Table| plain(&table.iter().map(|e| e.width).collect::<Vec<_>>());
        let (inputs, outputs) = (ports(&d.inputs), ports(&d.outputs));

        let mut views = Views::new(d, lanes);
        let register = |e: &Entry| {
            let view = views.view(e.scope, d.scopes[e.scope].module.registers[e.index].out);
            view.map_or(CellShape { width: e.width, lanes: 1 }, |view| CellShape {
                width: view.width,
                lanes: view.lanes,
            })
        };
        let plain = |e: &Entry| CellShape { width: e.width, lanes: 1 };
        let count = |_: &Entry| CellShape { width: 64, lanes: 1 };
        let mut memory_shapes = Vec::new();
        Cells {
            inputs,
            outputs,
            registers: places(d, lanes, &mut shapes, &d.registers, |s| s.registers.start, register),
            read_registers: places(d, lanes, &mut shapes, &d.read_registers, |s| s.read_registers.start, plain),
            probes: places(d, lanes, &mut shapes, &d.probes, |s| s.probes.start, plain),
            signals: places(d, lanes, &mut shapes, &d.signals, |s| s.signals.start, plain),
            properties: places(d, lanes, &mut shapes, &d.properties, |s| s.properties.start, count),
            stop: own.start,
            stopped: own.start + 1,
            failed: own.start + 2,
            shapes,
            memories: places(d, lanes, &mut memory_shapes, &d.memories, |s| s.memories.start, plain),
            memory_shapes,
            recorder: None,
        }
    }
}

/// Places for a table's entries. What is one thing in several lanes has one number; all else has a shape of its own.
fn places(
    d: &Directory,
    lanes: &Lanes,
    shapes: &mut Vec<CellShape>,
    table: &Table,
    start: impl Fn(&Scope) -> usize,
    mut shape: impl FnMut(&Entry) -> CellShape,
) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (k, entry) in table.iter().enumerate() {
        let lane = lanes.of(entry.scope);
        let number = match lane {
            Some(lane) if lane.number > 0 => {
                let inside = k - start(&d.scopes[entry.scope]);
                places[start(&d.scopes[lane.first]) + inside].number
            }
            _ => {
                let shape = shape(entry);
                shapes.push(CellShape { lanes: lane.map_or(shape.lanes, |lane| lane.lanes), ..shape });
                shapes.len() as u32 - 1
            }
        };
        places.push(Place { number, lane: lane.map(|lane| lane.number) });
    }
    places
}

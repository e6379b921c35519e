//! The numbering of everything in the state of a compiled design.

use super::lanes::Lanes;
use super::on_deep_stack;
use super::recorder::Recorder;
use super::views::Views;
use crate::directory::{Directory, Entry, Scope, Table};
use crate::engine::Item;
use crate::origin::Origins;
use std::collections::HashMap;
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
    /// For each signal, whether it has the place of something else that is the same value.
    pub is_alias: Vec<bool>,
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
        let none = |_: usize, _: &[Place]| None;
        let registers = places(d, lanes, &mut shapes, &d.registers, |s| s.registers.start, register, none);
        let read_registers = places(d, lanes, &mut shapes, &d.read_registers, |s| s.read_registers.start, plain, none);
        let probes = places(d, lanes, &mut shapes, &d.probes, |s| s.probes.start, plain, none);
        let aliases = aliases(d, lanes);
        let alias = |signal: usize, before: &[Place]| match aliases[signal]? {
            Item::Register(k) => Some(registers[k]),
            Item::ReadRegister(k) => Some(read_registers[k]),
            Item::Signal(k) => Some(before[k]),
            Item::Output(_) | Item::Probe(_) => None,
        };
        Cells {
            inputs,
            outputs,
            signals: places(d, lanes, &mut shapes, &d.signals, |s| s.signals.start, plain, alias),
            is_alias: aliases.iter().map(Option::is_some).collect(),
            registers,
            read_registers,
            probes,
            properties: places(d, lanes, &mut shapes, &d.properties, |s| s.properties.start, count, none),
            stop: own.start,
            stopped: own.start + 1,
            failed: own.start + 2,
            shapes,
            memories: places(d, lanes, &mut memory_shapes, &d.memories, |s| s.memories.start, plain, none),
            memory_shapes,
            recorder: None,
        }
    }
}

/// For each signal, the first register, read register or signal that is the same value, if it is another one. Copies
/// that share a cell have it if one of them has nothing else.
fn aliases(d: &Directory, lanes: &Lanes) -> Vec<Option<Item>> {
    let origins = Origins::new(d);
    let mut known = HashMap::new();
    for item in (0..d.registers.len()).map(Item::Register).chain((0..d.read_registers.len()).map(Item::ReadRegister)) {
        known.entry(origins.of(item)).or_insert(item);
    }
    let signals = (0..d.signals.len()).map(Item::Signal);
    let other = |item| Some(*known.entry(origins.of(item)).or_insert(item)).filter(|&first| first != item);
    let mut aliases: Vec<Option<Item>> = signals.map(other).collect();
    let with_the_first = |k: usize| {
        let scope = d.signals[k].scope;
        let lane = lanes.of(scope).filter(|lane| lane.number > 0)?;
        Some(d.scopes[lane.first].signals.start + k - d.scopes[scope].signals.start)
    };
    for k in 0..aliases.len() {
        if let Some(shared) = with_the_first(k).filter(|_| aliases[k].is_none()) {
            aliases[shared] = None;
        }
    }
    for k in 0..aliases.len() {
        if with_the_first(k).is_some_and(|shared| aliases[shared].is_none()) {
            aliases[k] = None;
        }
    }
    aliases
}

/// Places for a table's entries. What is one thing in several lanes has one number; all else has a shape of its own, or
/// the place that `other` gives it, to which it gives the places before.
fn places(
    d: &Directory,
    lanes: &Lanes,
    shapes: &mut Vec<CellShape>,
    table: &Table,
    start: impl Fn(&Scope) -> usize,
    mut shape: impl FnMut(&Entry) -> CellShape,
    other: impl Fn(usize, &[Place]) -> Option<Place>,
) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (k, entry) in table.iter().enumerate() {
        if let Some(place) = other(k, &places) {
            places.push(place);
            continue;
        }
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

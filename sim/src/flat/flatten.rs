//! From the hierarchy to the flat netlist.
//!
//! Values are asked for a few bits at a time: a node that only moves bits passes the question on to where those bits
//! come from, so that it costs nothing, and a chain from copy to copy of a replicated instance through its packed
//! output is no loop. Of lanes, only the first is followed, and its values stand for all: so a replicated instance is
//! made once, however many copies it has. Where it takes its copy's part of a packed value, the parts are asked for all
//! at once, and again a node that only moves bits, or a bitwise one, passes that on. If lanes depend on each other
//! within a cycle, so that this finds a loop, those copies are followed one by one. A node that computes is made whole,
//! and bits of it are slices, except that bitwise operations and choices wider than 64 bits are made for just the bits
//! in question.

mod choose;
mod edge;
mod record;
mod spread;

use super::builder::Builder;
use super::cells::{Cells, Place};
use super::lanes::{Lane, Lanes};
use super::views::Views;
use super::{Action, Effect, Flat, Id, Op, Word, aligned, limb_width, limbs, on_deep_stack};
use crate::checks::Checks;
use crate::directory::Directory;
use heddle_hdl::netlist::{self, Connection, NodeId};
use heddle_hdl::order::moves_bits;
use std::collections::HashMap;

/// What a flat netlist is made for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// A clock edge, with reset on or off.
    ///
    /// Properties are looked at as `checks` says. With `record`, rows are made of what [`Cells::recorder`] says.
    Edge { reset: bool, checks: Checks, record: bool },
    /// Outputs and probes into their cells.
    Settle,
    /// Outputs, probes and signals into their cells.
    SettleAll,
}

/// The flat netlist; None if the design has a combinational loop.
pub fn flatten(directory: &Directory, lanes: &Lanes, cells: &Cells, purpose: Purpose) -> Option<Flat> {
    on_deep_stack(|| {
        let mut apart = vec![false; lanes.groups];
        loop {
            match Flatten::new(directory, lanes, cells, apart).flat(purpose) {
                Ok(flat) => return Some(flat),
                Err(again) => apart = again?,
            }
        }
    })
}

/// A value that is being made, or that has been.
#[derive(Clone)]
enum Slot<T> {
    New,
    /// So many groups were being followed when it was begun.
    Open(usize),
    Done(T),
}

/// As many parts of a node as there are lanes: that of lane k from `low + k * stride` on, `width` bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Parts {
    low: u32,
    width: u32,
    stride: u32,
    lanes: u32,
}

struct Flatten<'a> {
    directory: &'a Directory,
    lanes: &'a Lanes,
    cells: &'a Cells,
    views: Views<'a>,
    b: Builder,
    /// For each scope below the top: the instance in its parent, and the copy.
    places: Vec<(u32, u32)>,
    /// For each scope and node, if it has been made whole.
    whole: Vec<Vec<Slot<Word>>>,
    /// Bits (scope, node, low, width) of nodes that are made in parts.
    parts: HashMap<(u32, u32, u32, u32), Slot<Id>>,
    /// Parts of a node (scope, node), asked for all lanes at once.
    spread: HashMap<(u32, u32, Parts), Option<Id>>,
    /// Groups whose copies are followed one by one.
    apart: Vec<bool>,
    /// Groups that are being followed, the innermost last.
    inside: Vec<usize>,
    /// Groups in loops.
    caught: Vec<usize>,
    looped: bool,
}

impl<'a> Flatten<'a> {
    fn new(directory: &'a Directory, lanes: &'a Lanes, cells: &'a Cells, apart: Vec<bool>) -> Flatten<'a> {
        let mut places = vec![(0, 0); directory.scopes.len()];
        for scope in &directory.scopes {
            for (instance, copies) in scope.children.iter().enumerate() {
                for (copy, &child) in copies.iter().enumerate() {
                    places[child] = (instance as u32, copy as u32);
                }
            }
        }
        let whole = directory.scopes.iter().map(|s| vec![Slot::New; s.module.nodes.len()]).collect();
        Flatten {
            directory,
            lanes,
            cells,
            views: Views::new(directory, lanes),
            b: Builder::new(cells, lanes.groups > 0),
            places,
            whole,
            parts: HashMap::new(),
            spread: HashMap::new(),
            apart,
            inside: Vec::new(),
            caught: Vec::new(),
            looped: false,
        }
    }

    /// If there is a loop: which groups to try apart, or None if none is in it.
    fn flat(mut self, purpose: Purpose) -> Result<Flat, Option<Vec<bool>>> {
        let (mut flat, cells) = (Flat::default(), self.cells);
        match purpose {
            Purpose::Edge { reset, checks, record } => {
                self.edge(&mut flat, reset, checks);
                if let (true, Some(recorder)) = (record, &cells.recorder) {
                    self.record(&mut flat, recorder);
                }
            }
            Purpose::Settle => self.shown(&mut flat, false),
            Purpose::SettleAll => self.shown(&mut flat, true),
        }
        flat.nodes = self.b.nodes;
        match (self.looped, self.caught.is_empty()) {
            (false, _) => Ok(flat),
            (true, true) => Err(None),
            (true, false) => {
                self.caught.iter().for_each(|&group| self.apart[group] = true);
                Err(Some(self.apart))
            }
        }
    }

    /// A scope as a lane, unless its group's copies are followed one by one.
    fn lane(&self, scope: usize) -> Option<Lane> {
        self.lanes.of(scope).filter(|lane| !self.apart[lane.group])
    }

    /// Whether something in this scope is made with another lane's.
    fn is_made_elsewhere(&self, scope: usize) -> bool {
        self.lane(scope).is_some_and(|lane| lane.number > 0)
    }

    fn node(&self, scope: usize, node: NodeId) -> &'a netlist::Node {
        let directory = self.directory;
        directory.scopes[scope].module.node(node)
    }

    /// Bits of a node, at most 64.
    fn bits(&mut self, scope: usize, node: NodeId, low: u32, width: u32) -> Id {
        let n = self.node(scope, node);
        match &n.op {
            netlist::Op::Const(value) => return self.b.constant(value.extract(low, width).low_u64(), width),
            netlist::Op::Reg(k) => {
                let register = self.directory.scopes[scope].registers.start + *k as usize;
                return self.cell(scope, self.cells.registers[register], low, width);
            }
            netlist::Op::Input(port) if scope == 0 => {
                return self.cell(scope, Place { number: self.cells.inputs.start + port, lane: None }, low, width);
            }
            netlist::Op::MemRead { mem, port } => {
                if let Some(place) = self.read_register(scope, *mem as usize, *port as usize) {
                    return self.cell(scope, place, low, width);
                }
            }
            _ => {}
        }
        let in_parts = match n.op {
            netlist::Op::Not | netlist::Op::And | netlist::Op::Or | netlist::Op::Xor => n.width > 64,
            netlist::Op::Mux | netlist::Op::Case(_) | netlist::Op::Select => n.width > 64,
            netlist::Op::MemRead { .. } => true,
            _ => moves_bits(&n.op, scope == 0),
        };
        if !in_parts {
            let word = self.whole(scope, node);
            return self.b.word_slice(&word, low, width);
        }
        let key = (scope as u32, node.0, low, width);
        match self.parts.get(&key) {
            Some(&Slot::Done(id)) => return id,
            Some(&Slot::Open(begun)) => return self.in_loop(begun, width),
            _ => self.parts.insert(key, Slot::Open(self.inside.len())),
        };
        let id = self.part(scope, n, low, width);
        self.parts.insert(key, Slot::Done(id));
        id
    }

    /// For bits that are asked for on the way to themselves. `begun` groups were being followed when they were first
    /// asked for: the loop goes through those after them, and the others only lead to it.
    fn in_loop(&mut self, begun: usize, width: u32) -> Id {
        self.looped = true;
        self.caught.extend(&self.inside[begun..]);
        self.b.constant(0, width)
    }

    /// A whole node; its limbs.
    fn word(&mut self, scope: usize, node: NodeId) -> Word {
        let width = self.node(scope, node).width;
        (0..limbs(width)).map(|k| self.bits(scope, node, k * 64, limb_width(width, k))).collect()
    }

    fn bit(&mut self, scope: usize, node: NodeId) -> Id {
        self.bits(scope, node, 0, 1)
    }

    /// Bits of a cell, made of parts that can be loaded; of all lanes if the scope is one, else of one lane, or of the
    /// lanes side by side.
    fn cell(&mut self, scope: usize, place: Place, low: u32, width: u32) -> Id {
        let (cell, shape) = (place.number, self.cells.shapes[place.number as usize]);
        let whole = if self.lane(scope).is_some() { shape.lanes } else { 1 };
        let load = |b: &mut Builder, lane, low, width| b.with_lanes(Op::Cell { cell, lane, low }, width, whole, &[]);
        match place.lane {
            Some(_) if whole > 1 => self.load(shape.width, low, width, whole, |b, low, width| load(b, 0, low, width)),
            Some(lane) => self.load(shape.width, low, width, whole, |b, low, width| load(b, lane, low, width)),
            None => {
                let mut parts = Vec::new();
                let mut at = low;
                while at < low + width {
                    let lane = at / shape.width;
                    let from = at - lane * shape.width;
                    let take = (shape.width - from).min(low + width - at);
                    parts.push(self.load(shape.width, from, take, 1, |b, low, width| load(b, lane, low, width)));
                    at += take;
                }
                self.b.cat(&parts)
            }
        }
    }

    /// Bits of a memory word; lanes as for cells.
    fn read(&mut self, scope: usize, place: Place, address: Id, low: u32, width: u32) -> Id {
        let (memory, shape) = (place.number, self.cells.memory_shapes[place.number as usize]);
        let (whole, lane) = match self.lane(scope) {
            Some(_) => (shape.lanes, 0),
            None => (1, place.lane.unwrap_or(0)),
        };
        let load = |b: &mut Builder, low, width| b.with_lanes(Op::Read { memory, lane, low }, width, whole, &[address]);
        self.load(shape.width, low, width, whole, load)
    }

    /// Bits of something that is `all` wide, of which `load` gets aligned parts.
    fn load(&mut self, all: u32, low: u32, width: u32, lanes: u32, load: impl Fn(&mut Builder, u32, u32) -> Id) -> Id {
        if all > 64 && lanes == 1 && matches!(width, 8 | 16 | 32) && aligned(low, width) {
            return load(&mut self.b, low, width);
        }
        // A limb of lanes is loaded as it lies.
        let limb_width = |k| if lanes > 1 && all > 64 { 64 } else { limb_width(all, k) };
        let limb = |b: &mut Builder, k: u32| load(b, k * 64, limb_width(k));
        let (first, last) = (low / 64, (low + width - 1) / 64);
        let parts: Vec<Id> = (first..=last)
            .map(|k| {
                let whole = limb(&mut self.b, k);
                let from = low.max(k * 64) - k * 64;
                let to = (low + width).min(k * 64 + 64) - k * 64;
                self.b.slice(whole, from, to - from)
            })
            .collect();
        self.b.cat(&parts)
    }

    /// The cell of a synchronous read port.
    fn read_register(&self, scope: usize, memory: usize, port: usize) -> Option<Place> {
        let range = self.directory.scopes[scope].read_registers.clone();
        let table = &self.directory.read_registers;
        range
            .into_iter()
            .find(|&r| table[r].index == memory && table[r].port == port)
            .map(|r| self.cells.read_registers[r])
    }

    /// Bits of a node that is made in parts.
    fn part(&mut self, scope: usize, n: &'a netlist::Node, low: u32, width: u32) -> Id {
        let place = &self.directory.scopes[scope];
        let module = &place.module;
        match &n.op {
            netlist::Op::Buf => self.bits(scope, n.args[0], low, width),
            netlist::Op::Slice(from) => self.bits(scope, n.args[0], from + low, width),
            netlist::Op::Cat => {
                let parts: Vec<_> = n.args.iter().map(|&a| (scope, a, module.node(a).width)).collect();
                self.side_by_side(&parts, low, width)
            }
            netlist::Op::ZExt => {
                let inner = module.node(n.args[0]).width;
                if low >= inner {
                    return self.b.constant(0, width);
                }
                let part = self.bits(scope, n.args[0], low, width.min(inner - low));
                self.b.zext(part, width)
            }
            netlist::Op::InstOut { inst, port } => {
                let output = &module.instances[*inst as usize].module.outputs[*port as usize];
                let copies = &place.children[*inst as usize];
                if let Some(lane) = self.lane(copies[0]).filter(|_| self.lane(scope).is_none()) {
                    return self.output_of_lanes(copies[0], lane, output.node, low, width);
                }
                let parts: Vec<_> = copies.iter().map(|&copy| (copy, output.node, output.width)).collect();
                self.side_by_side(&parts, low, width)
            }
            netlist::Op::Input(port) => {
                let parent = place.parent.expect("the top's inputs are cells");
                let (instance, copy) = self.places[scope];
                let instance = &self.directory.scopes[parent].module.instances[instance as usize];
                match instance.inputs[*port as usize] {
                    Connection::All(node) => self.bits(parent, node, low, width),
                    Connection::Each(node) => match self.lane(scope).filter(|_| self.lane(parent).is_none()) {
                        None => self.bits(parent, node, copy * n.width + low, width),
                        Some(lane) => {
                            let parts = Parts { low, width, stride: n.width, lanes: lane.lanes };
                            self.spread(parent, node, parts)
                        }
                    },
                }
            }
            netlist::Op::MemRead { mem, port } => {
                let address = self.address(scope, module.memories[*mem as usize].reads[*port as usize].address);
                let memory = self.cells.memories[place.memories.start + *mem as usize];
                self.read(scope, memory, address, low, width)
            }
            netlist::Op::Not => {
                let a = self.bits(scope, n.args[0], low, width);
                self.b.not(a)
            }
            netlist::Op::And | netlist::Op::Or | netlist::Op::Xor => {
                if n.op == netlist::Op::Or
                    && let Some(id) = self.or_of_lanes(scope, n, low, width)
                {
                    return id;
                }
                let (a, b) = (self.bits(scope, n.args[0], low, width), self.bits(scope, n.args[1], low, width));
                match n.op {
                    netlist::Op::And => self.b.and(a, b),
                    netlist::Op::Or => self.b.or(a, b),
                    _ => self.b.xor(a, b),
                }
            }
            netlist::Op::Mux => {
                let selector = self.bit(scope, n.args[0]);
                let (on, off) = (self.bits(scope, n.args[1], low, width), self.bits(scope, n.args[2], low, width));
                self.b.mux(selector, on, off)
            }
            netlist::Op::Case(labels) => self.case(scope, n, labels, low, width),
            netlist::Op::Select => self.select(scope, n, low, width),
            _ => unreachable!("{:?} is made whole", n.op),
        }
    }

    /// Bits `low .. low + width` of nodes (scope, node, width) that lie side by side.
    fn side_by_side(&mut self, parts: &[(usize, NodeId, u32)], low: u32, width: u32) -> Id {
        let mut pieces = Vec::new();
        let mut start = 0;
        for &(scope, node, part) in parts {
            let (from, to) = (low.max(start), (low + width).min(start + part));
            if from < to {
                pieces.push(self.bits(scope, node, from - start, to - from));
            }
            start += part;
        }
        self.b.cat(&pieces)
    }

    /// A memory address as one node.
    fn address(&mut self, scope: usize, node: NodeId) -> Id {
        let width = self.node(scope, node).width;
        self.bits(scope, node, 0, width.min(64))
    }

    /// All limbs of a node that computes.
    fn whole(&mut self, scope: usize, node: NodeId) -> Word {
        match &self.whole[scope][node.index()] {
            Slot::Done(word) => return word.clone(),
            &Slot::Open(begun) => {
                let width = self.node(scope, node).width;
                return (0..limbs(width)).map(|k| self.in_loop(begun, limb_width(width, k))).collect();
            }
            Slot::New => self.whole[scope][node.index()] = Slot::Open(self.inside.len()),
        }
        let word = self.compute(scope, node);
        self.whole[scope][node.index()] = Slot::Done(word.clone());
        word
    }

    fn compute(&mut self, scope: usize, node: NodeId) -> Word {
        let n = self.node(scope, node);
        match &n.op {
            netlist::Op::Not
            | netlist::Op::And
            | netlist::Op::Or
            | netlist::Op::Xor
            | netlist::Op::Mux
            | netlist::Op::Case(_)
            | netlist::Op::Select => return vec![self.part(scope, n, 0, n.width)],
            _ => {}
        }
        let args: Vec<Word> = n.args.iter().map(|&a| self.word(scope, a)).collect();
        let b = &mut self.b;
        match &n.op {
            netlist::Op::Add => b.word_add(&args[0], &args[1]),
            netlist::Op::Sub => b.word_sub(&args[0], &args[1]),
            netlist::Op::Mul if n.width <= 64 => vec![b.mul(args[0][0], args[1][0])],
            netlist::Op::MulFull if n.width <= 64 => {
                let (x, y) = (b.zext(args[0][0], n.width), b.zext(args[1][0], n.width));
                vec![b.mul(x, y)]
            }
            netlist::Op::MulFullSigned if n.width <= 64 => {
                let (x, y) = (b.sext(args[0][0], n.width), b.sext(args[1][0], n.width));
                vec![b.mul(x, y)]
            }
            netlist::Op::Mul | netlist::Op::MulFull => b.word_mul(&args[0], &args[1], n.width),
            netlist::Op::MulFullSigned => b.word_mul_signed(&args[0], &args[1]),
            netlist::Op::Shl => b.word_shl(&args[0], &args[1]),
            netlist::Op::Shr => b.word_shr(&args[0], &args[1], false),
            netlist::Op::Sar => b.word_shr(&args[0], &args[1], true),
            netlist::Op::Eq => vec![b.word_eq(&args[0], &args[1])],
            netlist::Op::Ne => {
                let equal = b.word_eq(&args[0], &args[1]);
                vec![b.not(equal)]
            }
            netlist::Op::Lt => vec![b.word_lt(&args[0], &args[1], false)],
            netlist::Op::LtSigned => vec![b.word_lt(&args[0], &args[1], true)],
            netlist::Op::SExt => b.word_sext(&args[0], n.width),
            netlist::Op::Any => vec![b.word_any(&args[0])],
            netlist::Op::All => vec![b.word_all(&args[0])],
            netlist::Op::Parity => vec![b.word_parity(&args[0])],
            netlist::Op::CountOnes => b.word_count_ones(&args[0], n.width),
            _ => unreachable!("{:?} is not made whole", n.op),
        }
    }

    /// The one lane of its cell or memory that something has; None if it has all.
    fn one_lane(&self, scope: usize, place: Place) -> Option<u32> {
        place.lane.filter(|_| self.lane(scope).is_none())
    }

    /// Stores of a cell's limbs, in one lane or all.
    fn stores(&self, cell: u32, lane: Option<u32>, word: &[Id]) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut low = 0;
        for &limb in word {
            let values = if self.cells.shapes[cell as usize].lanes == 1 { self.storable(limb) } else { vec![limb] };
            for value in values {
                effects.push(Effect::Store { cell, lane, low, value });
                low += self.b.width(value);
            }
        }
        effects
    }

    /// A limb's parts, if each can be stored by itself, so that they need not be put together.
    fn storable(&self, limb: Id) -> Vec<Id> {
        let mut low = 0;
        let mut fits = |&part: &Id| {
            let width = self.b.width(part);
            low += width;
            matches!(width, 8 | 16 | 32) && (low - width).is_multiple_of(width)
        };
        match self.b.op(limb) {
            Op::Cat if self.b.width(limb) == 64 && self.b.args(limb).iter().all(&mut fits) => {
                self.b.args(limb).to_vec()
            }
            _ => vec![limb],
        }
    }

    /// Outputs, probes, and signals into their cells.
    fn shown(&mut self, flat: &mut Flat, signals: bool) {
        let d = self.directory;
        let mut nodes: Vec<(Place, usize, NodeId)> = Vec::new();
        let outputs = self.cells.outputs.clone().map(|number| Place { number, lane: None });
        nodes.extend(d.top.outputs.iter().zip(outputs).map(|(o, place)| (place, 0, o.node)));
        let probe = |scope: usize, index: usize| d.scopes[scope].module.probes[index].node;
        nodes.extend(d.probes.iter().zip(&self.cells.probes).map(|(e, &p)| (p, e.scope, probe(e.scope, e.index))));
        if signals {
            let signals = d.signals.iter().zip(&self.cells.signals).zip(&self.cells.is_alias);
            let signals = signals.filter(|&(_, &is_alias)| !is_alias);
            nodes.extend(signals.map(|((e, &p), _)| (p, e.scope, NodeId(e.index as u32))));
        }
        for (place, scope, node) in nodes {
            if !self.is_made_elsewhere(scope) {
                let word = self.word(scope, node);
                let effects = self.stores(place.number, self.one_lane(scope, place), &word);
                flat.actions.push(vec![Action { guard: None, effects }]);
            }
        }
    }
}

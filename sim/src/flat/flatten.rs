//! From the hierarchy to the flat netlist.
//!
//! Values are asked for a few bits at a time: a node that only moves bits passes the question on to where those bits
//! come from, so that it costs nothing, and a chain from copy to copy of a replicated instance through its packed
//! output is no loop. Of lanes, only the first is followed, and its values stand for all: so a replicated instance is made
//! once, however many copies it has. Where it takes its copy's part of a packed value, the parts are asked for all at
//! once, and again a node that only moves bits, or a bitwise one, passes that on. If lanes depend on each other within a
//! cycle, so that this finds a loop, those copies are followed one by one. A node that computes is made whole, and bits
//! of it are slices, except that bitwise operations and choices wider than 64 bits are made for just the bits in question.

use super::builder::Builder;
use super::cells::{Cells, Place, Shape};
use super::lanes::{Lane, Lanes, MOST};
use super::views::{View, Views};
use super::{Action, Effect, Flat, Id, Op, Part, Word, aligned, limb_width, limbs, on_deep_stack};
use crate::checks::Checks;
use crate::directory::Directory;
use heddle_hdl::Bits;
use heddle_hdl::bits::low_mask;
use heddle_hdl::netlist::{self, Collision, Connection, NodeId, PropertyKind, ReadTiming};
use heddle_hdl::order::moves_bits;
use std::collections::HashMap;

/// What a flat netlist is made for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// A clock edge, with reset on or off.
    ///
    /// Properties are looked at as `checks` says.
    Edge { reset: bool, checks: Checks },
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
        let mut flat = Flat::default();
        match purpose {
            Purpose::Edge { reset, checks } => self.edge(&mut flat, reset, checks),
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

    /// For bits that are asked for on the way to themselves. `begun` groups were being followed when they were first asked
    /// for: the loop goes through those after them, and the others only lead to it.
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

    /// Bits of an or of many values, if these are the lanes of one.
    fn or_of_lanes(&mut self, scope: usize, n: &netlist::Node, low: u32, width: u32) -> Option<Id> {
        const LEAST: usize = 4;
        if self.lane(scope).is_some() || self.lanes.groups == 0 {
            return None;
        }
        let mut leaves = Vec::new();
        let mut stack: Vec<NodeId> = n.args.iter().rev().copied().collect();
        while let Some(node) = stack.pop() {
            match self.node(scope, node) {
                inner if inner.op == netlist::Op::Or => stack.extend(inner.args.iter().rev()),
                _ => leaves.push(node),
            }
            // Ors may share operands, which are found again and again.
            if leaves.len() > MOST as usize {
                return None;
            }
        }
        if leaves.len() < LEAST {
            return None;
        }
        let values: Vec<Id> = leaves.into_iter().map(|leaf| self.bits(scope, leaf, low, width)).collect();
        self.b.or_lanes(&values)
    }

    /// Bits of an output's values in all lanes, side by side.
    fn output_of_lanes(&mut self, first: usize, lane: Lane, node: NodeId, low: u32, width: u32) -> Id {
        self.inside.push(lane.group);
        let each = self.node(first, node).width;
        let id = if each == 1 {
            let bit = self.bits(first, node, 0, 1);
            let packed = self.b.pack(bit, lane.lanes);
            self.b.slice(packed, low, width)
        } else {
            let mut parts = Vec::new();
            let mut at = low;
            while at < low + width {
                let (number, from) = (at / each, at % each);
                let take = (each - from).min(low + width - at);
                let part = self.bits(first, node, from, take);
                parts.push(self.b.lane(part, number));
                at += take;
            }
            self.b.cat(&parts)
        };
        self.inside.pop();
        id
    }

    /// Parts of a node of a scope that is no lane, one for each lane.
    fn spread(&mut self, scope: usize, node: NodeId, parts: Parts) -> Id {
        if parts.stride == 1 {
            let packed = self.bits(scope, node, parts.low, parts.lanes);
            return self.b.unpack(packed);
        }
        let key = (scope as u32, node.0, parts);
        match self.spread.insert(key, None) {
            Some(Some(id)) => {
                self.spread.insert(key, Some(id));
                return id;
            }
            // On the way from the parts of all lanes to themselves: those of one lane may not depend on themselves.
            Some(None) => return self.gather(scope, node, parts),
            None => {}
        }
        let id = match self.spread_through(scope, node, parts) {
            Some(id) => id,
            None => self.gather(scope, node, parts),
        };
        self.spread.insert(key, Some(id));
        id
    }

    /// The parts, each made by itself.
    fn gather(&mut self, scope: usize, node: NodeId, parts: Parts) -> Id {
        let Parts { low, width, stride, lanes } = parts;
        let values: Vec<Id> = (0..lanes).map(|k| self.bits(scope, node, low + k * stride, width)).collect();
        self.b.gather(&values)
    }

    /// The parts from what the node is made of; None if they come from various places.
    fn spread_through(&mut self, scope: usize, node: NodeId, parts: Parts) -> Option<Id> {
        let n = self.node(scope, node);
        let Parts { low, width, stride, lanes } = parts;
        let place = &self.directory.scopes[scope];
        let module = &place.module;
        let end = low + (lanes - 1) * stride + width;
        match &n.op {
            netlist::Op::Buf => Some(self.spread(scope, n.args[0], parts)),
            netlist::Op::Slice(from) => Some(self.spread(scope, n.args[0], Parts { low: low + from, ..parts })),
            netlist::Op::ZExt if end <= module.node(n.args[0]).width => Some(self.spread(scope, n.args[0], parts)),
            netlist::Op::Input(port) if scope > 0 => {
                let parent = place.parent?;
                let (instance, copy) = self.places[scope];
                match self.directory.scopes[parent].module.instances[instance as usize].inputs[*port as usize] {
                    Connection::All(node) => Some(self.spread(parent, node, parts)),
                    Connection::Each(node) => {
                        Some(self.spread(parent, node, Parts { low: copy * n.width + low, ..parts }))
                    }
                }
            }
            netlist::Op::InstOut { inst, port } => {
                let output = &module.instances[*inst as usize].module.outputs[*port as usize];
                let copies = &place.children[*inst as usize];
                match self.lane(copies[0]) {
                    Some(lane) => {
                        if lane.lanes != lanes || output.width != stride || low + width > stride {
                            return None;
                        }
                        self.inside.push(lane.group);
                        let id = self.bits(copies[0], output.node, low, width);
                        self.inside.pop();
                        Some(id)
                    }
                    None if copies.len() == 1 => Some(self.spread(copies[0], output.node, parts)),
                    None => None,
                }
            }
            netlist::Op::Reg(k) => {
                let cell = self.cells.registers[place.registers.start + *k as usize];
                let shape = self.cells.shapes[cell.number as usize];
                if cell.lane.is_some() || (shape.lanes, shape.width) != (lanes, stride) || low + width > stride {
                    return None;
                }
                let op = Op::Cell { cell: cell.number, lane: 0, low: 0 };
                let whole = self.b.with_lanes(op, shape.width, lanes, &[]);
                Some(self.b.slice(whole, low, width))
            }
            netlist::Op::Not => {
                let a = self.spread(scope, n.args[0], parts);
                Some(self.b.not(a))
            }
            netlist::Op::And | netlist::Op::Or | netlist::Op::Xor => {
                let (a, b) = (self.spread(scope, n.args[0], parts), self.spread(scope, n.args[1], parts));
                Some(match n.op {
                    netlist::Op::And => self.b.and(a, b),
                    netlist::Op::Or => self.b.or(a, b),
                    _ => self.b.xor(a, b),
                })
            }
            netlist::Op::Mux => {
                let selector = self.bit(scope, n.args[0]);
                let (on, off) = (self.spread(scope, n.args[1], parts), self.spread(scope, n.args[2], parts));
                Some(self.b.mux(selector, on, off))
            }
            netlist::Op::Case(labels) => {
                let [subject] = self.word(scope, n.args[0])[..] else { return None };
                let default = self.spread(scope, n.args[1], parts);
                let arms = n.args[2..].iter().map(|&a| self.spread(scope, a, parts)).collect();
                let labels = labels.iter().map(heddle_hdl::Bits::low_u64).collect();
                Some(self.b.case(subject, labels, default, arms))
            }
            netlist::Op::Cat => {
                let mut start = 0;
                for &arg in &n.args {
                    let wide = module.node(arg).width;
                    if low >= start && end <= start + wide {
                        return Some(self.spread(scope, arg, Parts { low: low - start, ..parts }));
                    }
                    start += wide;
                }
                None
            }
            _ => None,
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

    fn case(&mut self, scope: usize, n: &netlist::Node, labels: &[Bits], low: u32, width: u32) -> Id {
        let subject = self.word(scope, n.args[0]);
        let default = self.bits(scope, n.args[1], low, width);
        let arms: Vec<Id> = n.args[2..].iter().map(|&a| self.bits(scope, a, low, width)).collect();
        if let [subject] = subject[..] {
            let labels = labels.iter().map(Bits::low_u64).collect();
            return self.b.case(subject, labels, default, arms);
        }
        labels.iter().zip(arms).rev().fold(default, |value, (label, arm)| {
            let label: Word =
                (0..subject.len()).map(|k| self.b.constant(label.limb(k), self.b.width(subject[k]))).collect();
            let hit = self.b.word_eq(&subject, &label);
            self.b.mux(hit, arm, value)
        })
    }

    /// Bits of an element of a vector.
    fn select(&mut self, scope: usize, n: &netlist::Node, low: u32, width: u32) -> Id {
        let vector_width = self.node(scope, n.args[0]).width;
        let (element, elements) = (n.width, vector_width / n.width);
        let index = self.word(scope, n.args[1]);
        let index_width = self.b.word_width(&index);
        let needed = (32 - (elements - 1).leading_zeros()).clamp(1, index_width);
        let near = self.b.word_slice(&index, 0, needed);
        let view = self.views.view(scope, n.args[0]);
        let value = if view == Some(View { lanes: elements, width: element }) {
            let parts = Parts { low: 0, width: element, stride: element, lanes: elements };
            let vector = self.spread(scope, n.args[0], parts);
            self.b.pick(vector, elements, near)
        } else if element <= 16 && 64 % element == 0 {
            self.select_in_limb(scope, n, near)
        } else {
            let zero = self.b.constant(0, width);
            let count = elements.min(1 << needed);
            let arms = (0..count).map(|k| self.bits(scope, n.args[0], k * element + low, width)).collect();
            self.b.case(near, (0..count as u64).collect(), zero, arms)
        };
        let value = if self.b.width(value) == width { value } else { self.b.slice(value, low, width) };
        if needed == index_width {
            return value;
        }
        let mut beyond = self.b.constant(0, 1);
        let mut at = needed;
        while at < index_width {
            let part = self.b.word_slice(&index, at, (index_width - at).min(64));
            let any = self.b.any(part);
            beyond = self.b.or(beyond, any);
            at += 64;
        }
        let zero = self.b.constant(0, width);
        self.b.mux(beyond, zero, value)
    }

    /// A whole element whose width divides 64: its limb is chosen, then shifted down.
    fn select_in_limb(&mut self, scope: usize, n: &netlist::Node, index: Id) -> Id {
        let vector = self.word(scope, n.args[0]);
        let inside = (64 / n.width).trailing_zeros();
        let index_width = self.b.width(index);
        let limb = if index_width <= inside || vector.len() == 1 {
            vector[0]
        } else {
            let vector: Word = vector.iter().map(|&limb| self.b.zext(limb, 64)).collect();
            let which = self.b.slice(index, inside, index_width - inside);
            let zero = self.b.constant(0, 64);
            let count = vector.len().min(1 << (index_width - inside));
            self.b.case(which, (0..count as u64).collect(), zero, vector[..count].to_vec())
        };
        let low = self.b.slice(index, 0, if vector.len() == 1 { index_width } else { index_width.min(inside) });
        let amount = match n.width.trailing_zeros() {
            0 => low,
            zeros => {
                let zeros = self.b.constant(0, zeros);
                self.b.cat(&[zeros, low])
            }
        };
        let shifted = self.b.shr(limb, amount);
        self.b.slice(shifted, 0, n.width)
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

    /// What happens at a clock edge.
    fn edge(&mut self, flat: &mut Flat, reset: bool, checks: Checks) {
        let stop = self.stop();
        let effects = vec![Effect::Store { cell: self.cells.stopped, lane: None, low: 0, value: stop }];
        flat.actions.push(vec![Action { guard: None, effects }]);
        // Guarded changes of one guard go together.
        let mut guarded: HashMap<Id, usize> = HashMap::new();
        let mut add = |flat: &mut Flat, guard: Option<Id>, effects: Vec<Effect>| {
            if let Some(&list) = guard.and_then(|g| guarded.get(&g)) {
                flat.actions[list][0].effects.extend(effects);
            } else {
                guard.map(|g| guarded.insert(g, flat.actions.len()));
                flat.actions.push(vec![Action { guard, effects }]);
            }
        };
        if !reset {
            let looked_at = |&k: &usize| checks.look_at(self.directory.property_kind(k));
            let properties: Vec<usize> = (0..self.directory.properties.len()).filter(looked_at).collect();
            for k in properties {
                if let Some((guard, effect)) = self.property(k) {
                    add(flat, guard, vec![effect]);
                }
            }
        }
        for k in 0..self.directory.registers.len() {
            if let Some((guard, effects)) = self.register(k, reset) {
                add(flat, guard, effects);
            }
        }
        for k in 0..self.directory.read_registers.len() {
            for (guard, effect) in self.read_port(k) {
                match effect {
                    ReadEffect::Late(effect) => flat.late.push(Action { guard, effects: vec![effect] }),
                    ReadEffect::Stores(effects) => add(flat, guard, effects),
                }
            }
        }
        if reset {
            return;
        }
        for memory in 0..self.directory.memories.len() {
            let list = self.writes(memory);
            if !list.is_empty() {
                flat.actions.push(list);
            }
        }
    }

    /// An enable as a guard; None if it is never on.
    fn guard(&mut self, scope: usize, enable: Option<NodeId>) -> Option<Guard> {
        let enable = match enable {
            Some(enable) => self.bit(scope, enable),
            None => self.b.constant(1, 1),
        };
        self.guarded_by(enable)
    }

    fn guarded_by(&mut self, enable: Id) -> Option<Guard> {
        match self.b.value(enable) {
            Some(0) => None,
            Some(_) => Some(Guard { any: None, lanes: None }),
            None if self.b.lanes(enable) == 1 => Some(Guard { any: Some(enable), lanes: None }),
            None => {
                let packed = self.b.pack(enable, self.b.lanes(enable));
                let any = self.b.any(packed);
                Some(Guard { any: (self.b.value(any) != Some(1)).then_some(any), lanes: Some(enable) })
            }
        }
    }

    /// What a synchronous read port does; nothing if it never reads, or is made with another lane's.
    fn read_port(&mut self, read_register: usize) -> Vec<(Option<Id>, ReadEffect)> {
        let entry = &self.directory.read_registers[read_register];
        if self.is_made_elsewhere(entry.scope) {
            return Vec::new();
        }
        let scope = &self.directory.scopes[entry.scope];
        let read = &scope.module.memories[entry.index].reads[entry.port];
        let ReadTiming::Sync { enable, collision, or_zero } = read.timing else {
            unreachable!("{} is registered", entry.path)
        };
        let address = self.address(entry.scope, read.address);
        let memory = self.cells.memories[scope.memories.start + entry.index];
        let place = self.cells.read_registers[read_register];
        let lane = self.one_lane(entry.scope, place);
        let always = Guard { any: None, lanes: None };
        if collision == Collision::ReadNew {
            let mut effects = Vec::new();
            if or_zero {
                let zero: Word =
                    (0..limbs(entry.width)).map(|l| self.b.constant(0, limb_width(entry.width, l))).collect();
                effects.push((always.any, ReadEffect::Stores(self.stores(place.number, lane, &zero))));
            }
            let (memory, cell) = (memory.number, place.number);
            effects.extend(self.guard(entry.scope, enable).map(|guard| {
                (guard.any, ReadEffect::Late(Effect::ReadNew { memory, lane, address, enable: guard.lanes, cell }))
            }));
            return effects;
        }
        let present = enable.filter(|_| or_zero).map(|enable| self.bit(entry.scope, enable));
        let Some(guard) = (if or_zero { Some(always) } else { self.guard(entry.scope, enable) }) else {
            return Vec::new();
        };
        let mut word: Word = (0..limbs(entry.width))
            .map(|l| self.read(entry.scope, memory, address, l * 64, limb_width(entry.width, l)))
            .collect();
        if let Some(present) = present {
            let or_zero = |part| {
                let zero = self.b.constant(0, self.b.width(part));
                self.b.mux(present, part, zero)
            };
            word = word.into_iter().map(or_zero).collect();
        }
        if let Some(enable) = guard.lanes {
            let now: Word = (0..limbs(entry.width))
                .map(|l| self.cell(entry.scope, place, l * 64, limb_width(entry.width, l)))
                .collect();
            word = word.iter().zip(now).map(|(&new, now)| self.b.mux(enable, new, now)).collect();
        }
        vec![(guard.any, ReadEffect::Stores(self.stores(place.number, lane, &word)))]
    }

    /// The one lane of its cell or memory that something has; None if it has all.
    fn one_lane(&self, scope: usize, place: Place) -> Option<u32> {
        place.lane.filter(|_| self.lane(scope).is_none())
    }

    /// The guard and the effect of a property; None if it cannot fail, or be hit, or is made with another lane's.
    fn property(&mut self, property: usize) -> Option<(Option<Id>, Effect)> {
        let entry = &self.directory.properties[property];
        if self.is_made_elsewhere(entry.scope) {
            return None;
        }
        let value = self.bit(entry.scope, self.directory.scopes[entry.scope].module.properties[entry.index].node);
        let place = self.cells.properties[property];
        let (cell, lane) = (place.number, self.one_lane(entry.scope, place));
        if self.directory.property_kind(property) == PropertyKind::Cover {
            let guard = self.guarded_by(value)?;
            let value = if guard.lanes.is_some() { value } else { self.b.constant(1, 1) };
            return Some((guard.any, Effect::Count { cell, lane, value }));
        }
        if self.b.value(value) == Some(1) {
            return None;
        }
        // "If a, then b" is not (a and not b): b is of interest only if a.
        let args = |b: &Builder, id: Id| b.args(id).to_vec();
        if *self.b.op(value) == Op::Not && self.b.lanes(value) == 1 {
            let inner = args(&self.b, value)[0];
            match *self.b.op(inner) {
                Op::AndNot => {
                    let (guard, value) = (args(&self.b, inner)[0], args(&self.b, inner)[1]);
                    return Some((Some(guard), Effect::Check { cell, lane, value }));
                }
                Op::And => {
                    let (guard, off) = (args(&self.b, inner)[0], args(&self.b, inner)[1]);
                    let value = self.b.not(off);
                    return Some((Some(guard), Effect::Check { cell, lane, value }));
                }
                _ => {}
            }
        }
        Some((None, Effect::Check { cell, lane, value }))
    }

    /// Whether the output that the cell [`Cells::stop`] names is on.
    fn stop(&mut self) -> Id {
        let on: Vec<Id> = (0..self.directory.outputs.len())
            .map(|k| {
                let word = self.word(0, self.directory.top.outputs[k].node);
                self.b.word_any(&word)
            })
            .collect();
        let which = self.b.node(Op::Cell { cell: self.cells.stop, lane: 0, low: 0 }, 32, &[]);
        let off = self.b.constant(0, 1);
        self.b.case(which, (1..=on.len() as u64).collect(), off, on)
    }

    /// The guard and the stores of a register; None if it keeps its value, or is made with another lane's.
    fn register(&mut self, register: usize, reset: bool) -> Option<(Option<Id>, Vec<Effect>)> {
        let entry = &self.directory.registers[register];
        if self.is_made_elsewhere(entry.scope) {
            return None;
        }
        let r = self.directory.register(register);
        let place = self.cells.registers[register];
        let (cell, lane) = (place.number, self.one_lane(entry.scope, place));
        let shape = self.cells.shapes[cell as usize];
        // A packed value that is kept in lanes.
        let packed = place.lane.is_none() && shape.lanes > 1;
        if let Some(value) = r.reset.as_ref().filter(|_| reset) {
            let word = if packed {
                let part = |b: &mut Builder, k| {
                    let bits = value.extract(k * shape.width, shape.width).low_u64();
                    b.constant(bits, shape.width)
                };
                let values: Vec<Id> = (0..shape.lanes).map(|k| part(&mut self.b, k)).collect();
                vec![self.b.gather(&values)]
            } else {
                let limb = |k| self.b.constant(value.limb(k as usize), limb_width(r.width, k));
                (0..limbs(r.width)).map(limb).collect()
            };
            return Some((None, self.stores(cell, lane, &word)));
        }
        let mut guard = self.guard(entry.scope, r.enable)?;
        let mut value = |node| {
            if !packed {
                return self.word(entry.scope, node);
            }
            let Shape { width, lanes } = shape;
            vec![self.spread(entry.scope, node, Parts { low: 0, width, stride: width, lanes })]
        };
        let (mut next, now) = (value(r.next), value(r.out));
        while let Some((selector, taken)) = self.held(&next, &now) {
            guard.any = Some(guard.any.map_or(selector, |g| self.b.and(g, selector)));
            next = taken;
        }
        if let Some(enable) = guard.lanes {
            next = next.iter().zip(&now).map(|(&next, &now)| self.b.mux(enable, next, now)).collect();
        }
        (next != now).then(|| (guard.any, self.stores(cell, lane, &next)))
    }

    /// If `next` is a choice between the present value and another: when it is the other, and the other.
    fn held(&mut self, next: &[Id], now: &[Id]) -> Option<(Id, Word)> {
        if *self.b.op(next[0]) != Op::Mux {
            return None;
        }
        let selector = self.b.args(next[0])[0];
        let arm = |b: &Builder, arm: usize| -> Option<Word> {
            let of = |&id: &Id| (*b.op(id) == Op::Mux && b.args(id)[0] == selector).then(|| b.args(id)[arm]);
            next.iter().map(of).collect()
        };
        let (on, off) = (arm(&self.b, 1)?, arm(&self.b, 2)?);
        if off == now {
            Some((selector, on))
        } else if on == now {
            Some((self.b.not(selector), off))
        } else {
            None
        }
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

    /// The write ports of a memory.
    fn writes(&mut self, memory: usize) -> Vec<Action> {
        let entry = &self.directory.memories[memory];
        if self.is_made_elsewhere(entry.scope) {
            return Vec::new();
        }
        let description = self.directory.memory(memory);
        let place = self.cells.memories[memory];
        let lane = self.one_lane(entry.scope, place);
        let mut list = Vec::new();
        for port in &description.writes {
            let granules = self.node(entry.scope, port.enable).width;
            let enable = self.word(entry.scope, port.enable);
            let any = self.b.word_any(&enable);
            let Some(mut guard) = self.guarded_by(any) else { continue };
            if let ([enable], true) = (&enable[..], guard.lanes.is_some()) {
                guard.any = self.early_guard(*enable).or(guard.any);
            }
            let address = self.address(entry.scope, port.address);
            let data = self.word(entry.scope, port.data);
            let parts = (0..data.len() as u32)
                .map(|k| {
                    let width = limb_width(entry.width, k);
                    let mask =
                        (granules > 1).then(|| self.granule_mask(&enable, entry.width / granules, k * 64, width));
                    let mask = mask.filter(|&m| self.b.value(m) != Some(low_mask(width)));
                    Part { low: k * 64, data: data[k as usize], mask }
                })
                .collect();
            let enable = guard.lanes.filter(|_| granules == 1);
            let write = Effect::Write { memory: place.number, lane, address, enable, parts };
            list.push(Action { guard: guard.any, effects: vec![write] });
        }
        list
    }

    /// Of an enable in lanes that takes arithmetic to find: whether some lane has all that is known without. What is written
    /// has the enable in its mask anyhow.
    fn early_guard(&mut self, enable: Id) -> Option<Id> {
        let mut all = Vec::new();
        self.conditions(enable, &mut all);
        let count = all.len();
        all.retain(|&condition| !self.b.takes_arithmetic(condition));
        if all.len() == count {
            return None;
        }
        let early = all.into_iter().reduce(|a, b| self.b.and(a, b))?;
        self.guarded_by(early)?.any
    }

    /// Bits that are all on where some bit of the value is.
    fn conditions(&mut self, value: Id, all: &mut Vec<Id>) {
        let args = self.b.args(value).to_vec();
        match self.b.op(value) {
            Op::And => args.into_iter().for_each(|a| self.conditions(a, all)),
            Op::AndNot if self.b.width(value) == 1 => {
                self.conditions(args[0], all);
                all.push(self.b.not(args[1]));
            }
            // Copies of a bit.
            Op::SExt if self.b.width(args[0]) == 1 => self.conditions(args[0], all),
            _ if self.b.width(value) == 1 => all.push(value),
            _ => all.push(self.b.any(value)),
        }
    }

    /// Bits of the mask in which every enable stands `size` times.
    fn granule_mask(&mut self, enable: &[Id], size: u32, low: u32, width: u32) -> Id {
        let mut parts = Vec::new();
        let mut at = low;
        while at < low + width {
            let granule = at / size;
            let take = ((granule + 1) * size).min(low + width) - at;
            let bit = self.b.word_slice(enable, granule, 1);
            parts.push(self.b.sext(bit, take));
            at += take;
        }
        self.b.cat(&parts)
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
            let signals = d.signals.iter().zip(&self.cells.signals);
            nodes.extend(signals.map(|(e, &p)| (p, e.scope, NodeId(e.index as u32))));
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

/// When something happens.
struct Guard {
    /// If this bit, of one lane, is on; None for always.
    any: Option<Id>,
    /// Only in the lanes in which this bit is on; `any` is whether there are such.
    lanes: Option<Id>,
}

enum ReadEffect {
    Stores(Vec<Effect>),
    /// After all writes.
    Late(Effect),
}

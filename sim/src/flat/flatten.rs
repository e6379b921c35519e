//! From the hierarchy to the flat netlist.
//!
//! Values are asked for a few bits at a time: a node that only moves bits passes the question on to where those bits
//! come from, so that it costs nothing, and a chain from copy to copy of a replicated instance through its packed
//! output is no loop. A node that computes is made whole, and bits of it are slices, except that bitwise operations and
//! choices wider than 64 bits are made for just the bits in question.

use super::builder::Builder;
use super::cells::Cells;
use super::{Action, Effect, Flat, Id, Op, Part, Word, aligned, limb_width, limbs};
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
    Edge { reset: bool },
    /// Outputs and probes into their cells.
    Settle,
    /// Outputs, probes and signals into their cells.
    SettleAll,
}

/// The flat netlist; None if the design has a combinational loop.
pub fn flatten(directory: &Directory, cells: &Cells, purpose: Purpose) -> Option<Flat> {
    // The recursion is as deep as the longest combinational path.
    const STACK: usize = 1 << 30;
    std::thread::scope(|scope| {
        let run = || Flatten::new(directory, cells).flat(purpose);
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.expect("a thread can be started").join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A value that is being made, or that has been.
#[derive(Clone)]
enum Slot<T> {
    New,
    Open,
    Done(T),
}

struct Flatten<'a> {
    directory: &'a Directory,
    cells: &'a Cells,
    b: Builder,
    /// For each scope below the top: the instance in its parent, and the copy.
    places: Vec<(u32, u32)>,
    /// For each scope and node, if it has been made whole.
    whole: Vec<Vec<Slot<Word>>>,
    /// Bits (scope, node, low, width) of nodes that are made in parts.
    parts: HashMap<(u32, u32, u32, u32), Option<Id>>,
    looped: bool,
}

impl<'a> Flatten<'a> {
    fn new(directory: &'a Directory, cells: &'a Cells) -> Flatten<'a> {
        let mut places = vec![(0, 0); directory.scopes.len()];
        for scope in &directory.scopes {
            for (instance, copies) in scope.children.iter().enumerate() {
                for (copy, &child) in copies.iter().enumerate() {
                    places[child] = (instance as u32, copy as u32);
                }
            }
        }
        let whole = directory.scopes.iter().map(|s| vec![Slot::New; s.module.nodes.len()]).collect();
        Flatten { directory, cells, b: Builder::default(), places, whole, parts: HashMap::new(), looped: false }
    }

    fn flat(mut self, purpose: Purpose) -> Option<Flat> {
        let mut flat = Flat::default();
        match purpose {
            Purpose::Edge { reset } => self.edge(&mut flat, reset),
            Purpose::Settle => self.shown(&mut flat, false),
            Purpose::SettleAll => self.shown(&mut flat, true),
        }
        flat.nodes = self.b.nodes;
        (!self.looped).then_some(flat)
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
                let cell = self.directory.scopes[scope].registers.start + *k as usize;
                return self.cell(self.cells.registers.start + cell as u32, low, width);
            }
            netlist::Op::Input(port) if scope == 0 => return self.cell(self.cells.inputs.start + port, low, width),
            netlist::Op::MemRead { mem, port } => {
                if let Some(cell) = self.read_register(scope, *mem as usize, *port as usize) {
                    return self.cell(cell, low, width);
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
        match self.parts.insert(key, None) {
            Some(Some(id)) => {
                self.parts.insert(key, Some(id));
                return id;
            }
            Some(None) => return self.in_loop(width),
            None => {}
        }
        let id = self.part(scope, n, low, width);
        self.parts.insert(key, Some(id));
        id
    }

    fn in_loop(&mut self, width: u32) -> Id {
        self.looped = true;
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

    /// Bits of a cell, made of parts that can be loaded.
    fn cell(&mut self, cell: u32, low: u32, width: u32) -> Id {
        let all = self.cells.widths[cell as usize];
        let load = |b: &mut Builder, low, width| b.node(Op::Cell { cell, low }, width, &[]);
        self.load(all, low, width, load)
    }

    /// Bits of a memory word.
    fn read(&mut self, memory: usize, address: Id, low: u32, width: u32) -> Id {
        let all = self.directory.memories[memory].width;
        let memory = memory as u32;
        let load = |b: &mut Builder, low, width| b.node(Op::Read { memory, low }, width, &[address]);
        self.load(all, low, width, load)
    }

    /// Bits of something that is `all` wide, of which `load` gets aligned parts.
    fn load(&mut self, all: u32, low: u32, width: u32, load: impl Fn(&mut Builder, u32, u32) -> Id) -> Id {
        if all > 64 && matches!(width, 8 | 16 | 32) && aligned(low, width) {
            return load(&mut self.b, low, width);
        }
        let limb = |b: &mut Builder, k: u32| load(b, k * 64, limb_width(all, k));
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
    fn read_register(&self, scope: usize, memory: usize, port: usize) -> Option<u32> {
        let range = self.directory.scopes[scope].read_registers.clone();
        let table = &self.directory.read_registers;
        range
            .into_iter()
            .find(|&r| table[r].index == memory && table[r].port == port)
            .map(|r| self.cells.read_registers.start + r as u32)
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
                let parts: Vec<_> = copies.iter().map(|&copy| (copy, output.node, output.width)).collect();
                self.side_by_side(&parts, low, width)
            }
            netlist::Op::Input(port) => {
                let parent = place.parent.expect("the top's inputs are cells");
                let (instance, copy) = self.places[scope];
                let instance = &self.directory.scopes[parent].module.instances[instance as usize];
                match instance.inputs[*port as usize] {
                    Connection::All(node) => self.bits(parent, node, low, width),
                    Connection::Each(node) => self.bits(parent, node, copy * n.width + low, width),
                }
            }
            netlist::Op::MemRead { mem, port } => {
                let address = self.address(scope, module.memories[*mem as usize].reads[*port as usize].address);
                self.read(place.memories.start + *mem as usize, address, low, width)
            }
            netlist::Op::Not => {
                let a = self.bits(scope, n.args[0], low, width);
                self.b.not(a)
            }
            netlist::Op::And | netlist::Op::Or | netlist::Op::Xor => {
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
        let value = if element <= 16 && 64 % element == 0 {
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
            Slot::Open => {
                let width = self.node(scope, node).width;
                return (0..limbs(width)).map(|k| self.in_loop(limb_width(width, k))).collect();
            }
            Slot::New => self.whole[scope][node.index()] = Slot::Open,
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
    fn edge(&mut self, flat: &mut Flat, reset: bool) {
        let stop = self.stop();
        let effects = vec![Effect::Store { cell: self.cells.stopped, low: 0, value: stop }];
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
            for k in 0..self.directory.properties.len() {
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
            let entry = &self.directory.read_registers[k];
            let place = &self.directory.scopes[entry.scope];
            let read = &place.module.memories[entry.index].reads[entry.port];
            let ReadTiming::Sync { enable, collision } = read.timing else {
                unreachable!("{} is registered", entry.path)
            };
            let Some(guard) = self.guard(entry.scope, enable) else { continue };
            let address = self.address(entry.scope, read.address);
            let memory = place.memories.start + entry.index;
            let cell = self.cells.read_registers.start + k as u32;
            if collision == Collision::ReadNew {
                let effects = vec![Effect::ReadNew { memory: memory as u32, address, cell }];
                flat.late.push(Action { guard, effects });
            } else {
                let word: Word = (0..limbs(entry.width))
                    .map(|l| self.read(memory, address, l * 64, limb_width(entry.width, l)))
                    .collect();
                add(flat, guard, self.stores(cell, &word));
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
    fn guard(&mut self, scope: usize, enable: Option<NodeId>) -> Option<Option<Id>> {
        let Some(enable) = enable else { return Some(None) };
        let enable = self.bit(scope, enable);
        match self.b.value(enable) {
            Some(0) => None,
            Some(_) => Some(None),
            None => Some(Some(enable)),
        }
    }

    /// The guard and the effect of a property; None if it cannot fail, or be hit.
    fn property(&mut self, property: usize) -> Option<(Option<Id>, Effect)> {
        let entry = &self.directory.properties[property];
        let value = self.bit(entry.scope, self.directory.scopes[entry.scope].module.properties[entry.index].node);
        let cell = self.cells.properties.start + property as u32;
        if self.directory.property_kind(property) == PropertyKind::Cover {
            return (self.b.value(value) != Some(0)).then_some((None, Effect::Count { cell, value }));
        }
        if self.b.value(value) == Some(1) {
            return None;
        }
        // "If a, then b" is not (a and not b): b is of interest only if a.
        let args = |b: &Builder, id: Id| b.args(id).to_vec();
        if *self.b.op(value) == Op::Not {
            let inner = args(&self.b, value)[0];
            match *self.b.op(inner) {
                Op::AndNot => {
                    let (guard, value) = (args(&self.b, inner)[0], args(&self.b, inner)[1]);
                    return Some((Some(guard), Effect::Check { cell, value }));
                }
                Op::And => {
                    let (guard, off) = (args(&self.b, inner)[0], args(&self.b, inner)[1]);
                    let value = self.b.not(off);
                    return Some((Some(guard), Effect::Check { cell, value }));
                }
                _ => {}
            }
        }
        Some((None, Effect::Check { cell, value }))
    }

    /// Whether the output that the cell [`Cells::stop`] names is on.
    fn stop(&mut self) -> Id {
        let on: Vec<Id> = (0..self.directory.outputs.len())
            .map(|k| {
                let word = self.word(0, self.directory.top.outputs[k].node);
                self.b.word_any(&word)
            })
            .collect();
        let which = self.b.node(Op::Cell { cell: self.cells.stop, low: 0 }, 32, &[]);
        let off = self.b.constant(0, 1);
        self.b.case(which, (1..=on.len() as u64).collect(), off, on)
    }

    /// The guard and the stores of a register; None if it keeps its value.
    fn register(&mut self, register: usize, reset: bool) -> Option<(Option<Id>, Vec<Effect>)> {
        let entry = &self.directory.registers[register];
        let r = self.directory.register(register);
        let cell = self.cells.registers.start + register as u32;
        if let Some(value) = r.reset.as_ref().filter(|_| reset) {
            let word: Word =
                (0..limbs(r.width)).map(|k| self.b.constant(value.limb(k as usize), limb_width(r.width, k))).collect();
            return Some((None, self.stores(cell, &word)));
        }
        let mut guard = self.guard(entry.scope, r.enable)?;
        let mut next = self.word(entry.scope, r.next);
        let now = self.word(entry.scope, r.out);
        while let Some((selector, taken)) = self.held(&next, &now) {
            guard = Some(guard.map_or(selector, |g| self.b.and(g, selector)));
            next = taken;
        }
        (next != now).then(|| (guard, self.stores(cell, &next)))
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

    /// A whole cell takes a word.
    fn stores(&self, cell: u32, word: &[Id]) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (k, &limb) in word.iter().enumerate() {
            let mut low = k as u32 * 64;
            for value in self.storable(limb) {
                effects.push(Effect::Store { cell, low, value });
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
        let description = self.directory.memory(memory);
        let mut list = Vec::new();
        for port in &description.writes {
            let granules = self.node(entry.scope, port.enable).width;
            let enable = self.word(entry.scope, port.enable);
            let guard = self.b.word_any(&enable);
            if self.b.value(guard) == Some(0) {
                continue;
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
            let guard = (self.b.value(guard) != Some(1)).then_some(guard);
            list.push(Action { guard, effects: vec![Effect::Write { memory: memory as u32, address, parts }] });
        }
        list
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
        let mut nodes: Vec<(u32, usize, NodeId)> = Vec::new();
        nodes.extend(d.top.outputs.iter().zip(self.cells.outputs.clone()).map(|(o, cell)| (cell, 0, o.node)));
        let probe = |scope: usize, index: usize| d.scopes[scope].module.probes[index].node;
        let probes = d.probes.iter().zip(self.cells.probes.clone());
        nodes.extend(probes.map(|(e, cell)| (cell, e.scope, probe(e.scope, e.index))));
        if signals {
            let signals = d.signals.iter().zip(self.cells.signals.clone());
            nodes.extend(signals.map(|(e, cell)| (cell, e.scope, NodeId(e.index as u32))));
        }
        for (cell, scope, node) in nodes {
            let word = self.word(scope, node);
            let effects = self.stores(cell, &word);
            flat.actions.push(vec![Action { guard: None, effects }]);
        }
    }
}

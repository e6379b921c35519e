//! Random designs as plain netlist data.

use fastrand::Rng;
use heddle_hdl::Bits;
use heddle_hdl::netlist::{
    Collision, Connection, Instance, Memory, MemoryStyle, Module, Node, NodeId, Op, Port, Probe, Property,
    PropertyKind, ReadPort, ReadTiming, Register, WritePort,
};
use heddle_hdl::order::order;
use std::ops::RangeInclusive;
use std::panic::Location;
use std::sync::Arc;

/// How large a random design may be.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Levels of instances below the top.
    pub depth: u32,
    /// Operations in a module, about.
    pub nodes: usize,
    /// The widest operation, in bits. Packed outputs of replicated instances may be wider.
    pub width: u32,
    /// The most copies in a replicated instance.
    pub replicas: u32,
    /// Some: a design about replicated instances (`lanes.rs`); how many copies those in the top have.
    pub lanes: Option<RangeInclusive<u32>>,
}

impl Limits {
    /// Designs about replicated instances.
    pub fn lanes(copies: RangeInclusive<u32>) -> Limits {
        Limits { lanes: Some(copies), ..Limits::default() }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { depth: 2, nodes: 40, width: 200, replicas: 5, lanes: None }
    }
}

/// The design of a seed: all operations, registers, memories, properties, probes, plain and replicated instances with
/// chains from copy to copy, nodes in any order. It has no combinational loop.
pub fn design(seed: u64, limits: &Limits) -> Arc<Module> {
    let mut generator = Generator { rng: Rng::with_seed(seed), limits: limits.clone(), widths: Vec::new(), count: 0 };
    match &limits.lanes {
        Some(copies) => generator.lanes(copies.clone()),
        None => {
            let depth = generator.rng.u32(0..=limits.depth);
            generator.module(depth)
        }
    }
}

pub(super) struct Generator {
    pub rng: Rng,
    pub limits: Limits,
    /// What most values are wide; empty: all widths.
    pub widths: Vec<u32>,
    /// Modules made so far.
    count: u32,
}

impl Generator {
    /// A module with `depth` levels below it.
    fn module(&mut self, depth: u32) -> Arc<Module> {
        let children: Vec<Arc<Module>> = match depth {
            0 => Vec::new(),
            _ => (0..self.rng.u32(1..=2)).map(|_| self.module(depth - 1)).collect(),
        };
        let mut draft = self.draft();
        draft.fill(&children);
        Arc::new(draft.module)
    }

    /// The next module, empty.
    pub fn draft(&mut self) -> Draft<'_> {
        let module = Module { doc: "A random module.".into(), ..Module::empty(format!("m{}", self.count)) };
        self.count += 1;
        Draft { rng: &mut self.rng, limits: self.limits.clone(), widths: self.widths.clone(), module }
    }
}

/// A module in the making. Every node so far may be used as an operand of the next.
pub(super) struct Draft<'a> {
    pub rng: &'a mut Rng,
    pub limits: Limits,
    pub widths: Vec<u32>,
    pub module: Module,
}

impl Draft<'_> {
    pub fn fill(&mut self, children: &[Arc<Module>]) {
        self.inputs();
        self.registers();
        self.memories();
        let mut instances: Vec<Arc<Module>> = children.to_vec();
        if let Some(child) = children.first().filter(|_| self.rng.bool()) {
            instances.push(child.clone());
        }
        let least = if self.is_about_lanes() { self.limits.nodes / 2 } else { 1 };
        let nodes = self.rng.usize(least..=self.limits.nodes);
        for left in (0..nodes).rev() {
            if !instances.is_empty() && self.rng.usize(0..=left) < instances.len() {
                let child = instances.pop().expect("not empty");
                self.instance(&child);
            }
            self.operation();
        }
        while let Some(child) = instances.pop() {
            self.instance(&child);
        }
        self.finish();
    }

    /// Everything that needs the logic to be there.
    pub fn finish(&mut self) {
        self.drive_state();
        if self.is_about_lanes() {
            self.keep_unused();
        }
        self.outputs();
        self.observers();
        self.names();
        self.rewire();
        if self.rng.bool() {
            self.shuffle();
        }
    }

    pub fn is_about_lanes(&self) -> bool {
        self.limits.lanes.is_some()
    }

    pub fn node(&mut self, op: Op, width: u32, args: &[NodeId]) -> NodeId {
        let loc = Location::caller();
        self.module.nodes.push(Node { op, width, args: args.to_vec(), name: None, loc });
        NodeId(self.module.nodes.len() as u32 - 1)
    }

    fn named(&mut self, op: Op, width: u32, name: &str) -> NodeId {
        let node = self.node(op, width, &[]);
        self.module.nodes[node.index()].name = Some(name.into());
        node
    }

    /// Widths where engines differ are likelier: one bit, a byte, around 32, 64 and 128, several limbs.
    pub fn width(&mut self) -> u32 {
        if !self.widths.is_empty() && self.rng.u32(0..8) > 0 {
            return self.widths[self.rng.usize(0..self.widths.len())];
        }
        let width = match self.rng.u32(0..10) {
            0..=2 => 1,
            3..=4 => self.rng.u32(2..=8),
            5..=6 => self.rng.u32(9..=32),
            7 => [8, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129][self.rng.usize(0..11)],
            8 => self.rng.u32(33..=64),
            _ => self.rng.u32(65..=200),
        };
        width.min(self.limits.width)
    }

    pub fn bits(&mut self, width: u32) -> Bits {
        random_bits(self.rng, width)
    }

    pub fn any_node(&mut self) -> NodeId {
        NodeId(self.rng.u32(0..self.module.nodes.len() as u32))
    }

    pub fn width_of(&self, node: NodeId) -> u32 {
        self.module.node(node).width
    }

    /// A node of this width: an existing one, or one adapted to it.
    pub fn of_width(&mut self, width: u32) -> NodeId {
        if self.is_about_lanes() && self.rng.u32(0..8) > 0 {
            // The later of two: long paths, and little that nobody uses.
            if let Some(node) = self.existing(width).max(self.existing(width)) {
                return node;
            }
        }
        let mut node = self.any_node();
        for _ in 0..6 {
            if self.width_of(node) == width {
                return node;
            }
            node = self.any_node();
        }
        let have = self.width_of(node);
        match have.cmp(&width) {
            std::cmp::Ordering::Equal => node,
            std::cmp::Ordering::Greater => {
                let low = self.rng.u32(0..=have - width);
                self.node(Op::Slice(low), width, &[node])
            }
            std::cmp::Ordering::Less => match self.rng.u32(0..4) {
                0 => self.node(Op::ZExt, width, &[node]),
                1 => self.node(Op::SExt, width, &[node]),
                _ if have * 8 < width => {
                    let value = self.bits(width);
                    self.node(Op::Const(value), width, &[])
                }
                _ => {
                    let rest = self.of_width(width - have);
                    self.node(Op::Cat, width, &[node, rest])
                }
            },
        }
    }

    pub fn bit(&mut self) -> NodeId {
        self.of_width(1)
    }

    fn inputs(&mut self) {
        for _ in 0..self.rng.u32(1..=5) {
            let width = self.width();
            self.input(width);
        }
    }

    pub fn input(&mut self, width: u32) -> NodeId {
        let k = self.module.inputs.len() as u32;
        let name = format!("i{k}");
        let node = self.named(Op::Input(k), width, &name);
        self.module.inputs.push(Port { name, width, node, loc: Location::caller() });
        node
    }

    fn registers(&mut self) {
        for _ in 0..self.rng.u32(0..=4) {
            let width = self.width();
            self.register(width);
        }
    }

    /// A register that [`Draft::drive_state`] drives, unless somebody does before.
    pub fn register(&mut self, width: u32) -> NodeId {
        let k = self.module.registers.len() as u32;
        let name = format!("r{k}");
        let out = self.named(Op::Reg(k), width, &name);
        let reset = self.rng.bool().then(|| self.bits(width));
        let loc = Location::caller();
        self.module.registers.push(Register { name, width, reset, enable: None, next: out, out, loc });
        out
    }

    /// Memories with their synchronous reads; addresses and writes come when there is logic to drive them.
    pub fn memories(&mut self) {
        for mem in 0..self.rng.u32(0..=2) {
            let widest = if self.is_about_lanes() { 3 } else { 5 };
            let (width, address_width) = (self.width(), self.rng.u32(1..=widest));
            let words = self.rng.usize(0..=1 << address_width);
            let init = self.rng.bool().then(|| (0..words).map(|_| self.bits(width)).collect());
            let style = [MemoryStyle::Auto, MemoryStyle::Block, MemoryStyle::Distributed][self.rng.usize(0..3)];
            let (name, loc) = (format!("mem{mem}"), Location::caller());
            let (reads, writes) = (vec![], vec![]);
            self.module.memories.push(Memory { name, width, address_width, init, reads, writes, style, loc });
            for port in 0..self.rng.u32(0..=3) {
                let out = self.node(Op::MemRead { mem, port }, width, &[]);
                let kind = self.rng.usize(0..6);
                let collision = [Collision::ReadOld, Collision::ReadNew, Collision::Never][kind % 3];
                let timing = ReadTiming::Sync { enable: None, collision, or_zero: kind > 2 };
                self.module.memories[mem as usize].reads.push(ReadPort { address: out, out, timing });
            }
        }
    }

    fn asynchronous_read(&mut self) {
        if self.module.memories.is_empty() {
            return;
        }
        let mem = self.rng.usize(0..self.module.memories.len());
        let (width, address_width) = (self.module.memories[mem].width, self.module.memories[mem].address_width);
        let address = self.control(address_width);
        let port = self.module.memories[mem].reads.len() as u32;
        let out = self.node(Op::MemRead { mem: mem as u32, port }, width, &[]);
        self.module.memories[mem].reads.push(ReadPort { address, out, timing: ReadTiming::Async });
    }

    fn drive_state(&mut self) {
        for k in 0..self.module.registers.len() {
            if self.module.registers[k].next != self.module.registers[k].out {
                continue;
            }
            let next = self.of_width(self.module.registers[k].width);
            let enable = self.rng.bool().then(|| self.control(1));
            (self.module.registers[k].next, self.module.registers[k].enable) = (next, enable);
        }
        for mem in 0..self.module.memories.len() {
            let (width, address_width) = (self.module.memories[mem].width, self.module.memories[mem].address_width);
            for port in 0..self.module.memories[mem].reads.len() {
                if let ReadTiming::Sync { collision, or_zero, .. } = self.module.memories[mem].reads[port].timing {
                    let enable = self.rng.bool().then(|| self.control(1));
                    let address = self.control(address_width);
                    let read = &mut self.module.memories[mem].reads[port];
                    (read.address, read.timing) = (address, ReadTiming::Sync { enable, collision, or_zero });
                }
            }
            let mut last_address = None;
            for _ in 0..self.rng.u32(0..=3) {
                let granules: Vec<u32> = (1..=width.min(16)).filter(|g| width.is_multiple_of(*g)).collect();
                let granules = granules[self.rng.usize(0..granules.len())];
                let enable = self.control(granules);
                let address = match last_address {
                    Some(address) if self.rng.bool() => address,
                    _ => self.control(address_width),
                };
                last_address = Some(address);
                let data = self.of_width(width);
                self.module.memories[mem].writes.push(WritePort { enable, address, data });
            }
        }
    }

    fn outputs(&mut self) {
        for k in 0..self.rng.u32(1..=4) {
            // Outputs as wide as inputs make chains from copy to copy possible.
            let input = self.rng.usize(0..self.module.inputs.len());
            let width = self.module.inputs[input].width;
            let node = if self.rng.bool() { self.of_width(width) } else { self.any_node() };
            let (name, width) = (format!("o{k}"), self.width_of(node));
            self.module.outputs.push(Port { name, width, node, loc: Location::caller() });
        }
    }

    fn observers(&mut self) {
        for k in 0..self.rng.u32(0..=3) {
            let node = self.any_node();
            self.module.probes.push(Probe { name: format!("p{k}"), node });
        }
        for k in 0..self.rng.u32(0..=3) {
            let mut node = self.bit();
            if self.rng.bool() {
                let not = self.node(Op::Not, 1, &[node]);
                node = self.node(Op::Or, 1, &[node, not]);
            }
            let kind = [PropertyKind::Assert, PropertyKind::Assume, PropertyKind::Cover][self.rng.usize(0..3)];
            self.module.properties.push(Property { kind, name: format!("a{k}"), node, loc: Location::caller() });
        }
    }

    fn names(&mut self) {
        for k in 0..self.module.nodes.len() {
            if self.module.nodes[k].name.is_none() && self.rng.u32(0..4) == 0 {
                self.module.nodes[k].name = Some(format!("n{k}"));
            }
        }
    }

    pub fn operation(&mut self) {
        let width = self.width();
        match self.rng.u32(0..24) {
            0..=4 => {
                let op = [Op::Add, Op::Sub, Op::Mul, Op::And, Op::Or, Op::Xor][self.rng.usize(0..6)].clone();
                let (a, b) = (self.of_width(width), self.of_width(width));
                self.node(op, width, &[a, b]);
            }
            5..=6 => {
                let op = [Op::Eq, Op::Ne, Op::Lt, Op::LtSigned][self.rng.usize(0..4)].clone();
                let (a, b) = (self.of_width(width), self.of_width(width));
                self.node(op, 1, &[a, b]);
            }
            7..=8 => {
                let op = [Op::Shl, Op::Shr, Op::Sar][self.rng.usize(0..3)].clone();
                let amount_width = if self.rng.bool() { self.rng.u32(1..=8) } else { self.width() };
                let (value, amount) = (self.of_width(width), self.control(amount_width));
                self.node(op, width, &[value, amount]);
            }
            9..=10 => {
                let (sel, a, b) = (self.bit(), self.of_width(width), self.of_width(width));
                self.node(Op::Mux, width, &[sel, a, b]);
            }
            11 => self.case(width),
            12 => self.mux_chain(width),
            13 => {
                let op = [Op::MulFull, Op::MulFullSigned][self.rng.usize(0..2)].clone();
                let (a, b) = (self.width().min(100), self.width().min(100));
                let args = [self.of_width(a), self.of_width(b)];
                self.node(op, a + b, &args);
            }
            14 => {
                let elements = self.rng.u32(1..=9);
                let index_width = self.rng.u32(1..=5);
                let (vector, index) = (self.of_width(width * elements), self.of_width(index_width));
                self.node(Op::Select, width, &[vector, index]);
            }
            15..=16 => {
                let op = [Op::Any, Op::All, Op::Parity][self.rng.usize(0..3)].clone();
                let a = self.any_node();
                self.node(op, 1, &[a]);
            }
            17 => {
                let a = self.any_node();
                let needs = 32 - self.width_of(a).leading_zeros();
                let width = needs + self.rng.u32(0..3);
                self.node(Op::CountOnes, width, &[a]);
            }
            18 => {
                let a = self.any_node();
                let width = self.width_of(a);
                let op = [Op::Not, Op::Buf][self.rng.usize(0..2)].clone();
                self.node(op, width, &[a]);
            }
            19 => {
                let parts: Vec<NodeId> = (0..self.rng.u32(1..=4)).map(|_| self.of_width(width.min(50))).collect();
                let width = parts.iter().map(|p| self.width_of(*p)).sum();
                self.node(Op::Cat, width, &parts);
            }
            20 => {
                let a = self.any_node();
                let width = self.width_of(a) + self.rng.u32(1..=64);
                let op = [Op::ZExt, Op::SExt][self.rng.usize(0..2)].clone();
                self.node(op, width, &[a]);
            }
            21 => {
                let a = self.any_node();
                let low = self.rng.u32(0..self.width_of(a));
                let width = self.rng.u32(1..=self.width_of(a) - low);
                self.node(Op::Slice(low), width, &[a]);
            }
            22 => {
                let value = self.bits(width);
                self.node(Op::Const(value), width, &[]);
            }
            _ => self.asynchronous_read(),
        }
    }

    pub fn labels(&mut self, selector_width: u32) -> Vec<Bits> {
        let mut labels: Vec<Bits> = (0..self.rng.u32(1..=6)).map(|_| self.bits(selector_width)).collect();
        labels.sort();
        labels.dedup();
        self.rng.shuffle(&mut labels);
        labels
    }

    fn case(&mut self, width: u32) {
        let selector_width = if self.rng.u32(0..4) == 0 { self.width() } else { self.rng.u32(1..=3) };
        let labels = self.labels(selector_width);
        let mut args = vec![self.of_width(selector_width)];
        args.extend((0..=labels.len()).map(|_| self.of_width(width)));
        self.node(Op::Case(labels), width, &args);
    }

    /// Muxes on one selector that is compared with constants, as descriptions of decoders have them.
    fn mux_chain(&mut self, width: u32) {
        let selector_width = self.rng.u32(1..=3);
        let selector = self.of_width(selector_width);
        let mut value = self.of_width(width);
        for label in self.labels(selector_width) {
            let label = self.node(Op::Const(label), selector_width, &[]);
            let hit = self.node(Op::Eq, 1, &[selector, label]);
            let arm = self.of_width(width);
            value = self.node(Op::Mux, width, &[hit, arm, value]);
        }
    }

    /// An address, an enable or the like. In designs about lanes often an input of its own, so that it can be common to
    /// all copies.
    fn control(&mut self, width: u32) -> NodeId {
        if !self.is_about_lanes() || self.rng.bool() {
            return self.of_width(width);
        }
        let inputs: Vec<NodeId> = self.module.inputs.iter().filter(|i| i.width == width).map(|i| i.node).collect();
        match inputs.len() {
            0 if self.module.inputs.len() < 8 => self.input(width),
            0 => self.of_width(width),
            n => inputs[self.rng.usize(0..n)],
        }
    }

    /// An instance, plain or replicated. Inputs come from what there is so far and, from copy to copy in one direction,
    /// from its own outputs.
    fn instance(&mut self, child: &Arc<Module>) {
        let replicas = (self.rng.u32(0..4) > 0).then(|| self.rng.u32(1..=self.limits.replicas));
        let count = replicas.unwrap_or(1);
        let upwards = self.rng.bool();
        let inst = self.module.instances.len() as u32;
        let mut inputs = Vec::new();
        let mut chained = Vec::new();
        for (index, port) in child.inputs.iter().enumerate() {
            let same_width: Vec<usize> =
                (0..child.outputs.len()).filter(|o| child.outputs[*o].width == port.width).collect();
            if count > 1 && !same_width.is_empty() && self.rng.u32(0..3) > 0 {
                let end = self.of_width(port.width);
                chained.push((index, same_width[self.rng.usize(0..same_width.len())], end));
                inputs.push(Connection::Each(end));
            } else if replicas.is_some() && self.rng.bool() {
                inputs.push(Connection::Each(self.of_width(port.width * count)));
            } else {
                inputs.push(Connection::All(self.of_width(port.width)));
            }
        }
        let outs: Vec<NodeId> = child
            .outputs
            .iter()
            .enumerate()
            .map(|(port, o)| self.node(Op::InstOut { inst, port: port as u32 }, o.width * count, &[]))
            .collect();
        for (input, output, end) in chained {
            let width = child.inputs[input].width;
            let low = if upwards { 0 } else { width };
            let rest = self.node(Op::Slice(low), width * (count - 1), &[outs[output]]);
            let parts = if upwards { [end, rest] } else { [rest, end] };
            inputs[input] = Connection::Each(self.node(Op::Cat, width * count, &parts));
        }
        let (name, module, loc) = (format!("u{inst}"), child.clone(), Location::caller());
        self.module.instances.push(Instance { name, module, replicas, inputs, loc });
    }

    /// Replaces some operands by any node of that width, if that makes no loop: so that operands have larger numbers
    /// than their users, and outputs of an instance feed inputs that they do not depend on.
    fn rewire(&mut self) {
        for _ in 0..self.rng.u32(0..6) {
            let before = self.module.clone();
            if !self.module.instances.is_empty() && self.rng.bool() {
                let k = self.rng.usize(0..self.module.instances.len());
                let input = self.rng.usize(0..self.module.instances[k].inputs.len());
                let connection = self.module.instances[k].inputs[input];
                let node = self.twin(connection.node());
                self.module.instances[k].inputs[input] = match connection {
                    Connection::All(_) => Connection::All(node),
                    Connection::Each(_) => Connection::Each(node),
                };
            } else {
                let user = self.any_node();
                if let Some(arg) = self.module.nodes[user.index()].args.first().copied() {
                    self.module.nodes[user.index()].args[0] = self.twin(arg);
                }
            }
            if order(&Arc::new(self.module.clone())).is_err() {
                self.module = before;
            }
        }
    }

    /// A node as wide as this one.
    fn twin(&mut self, node: NodeId) -> NodeId {
        self.existing(self.width_of(node)).expect("the node is one")
    }

    /// A node of this width, if there is one.
    pub fn existing(&mut self, width: u32) -> Option<NodeId> {
        let nodes = self.all(width);
        (!nodes.is_empty()).then(|| nodes[self.rng.usize(0..nodes.len())])
    }

    /// All nodes of this width.
    pub fn all(&self, width: u32) -> Vec<NodeId> {
        (0..self.module.nodes.len() as u32).map(NodeId).filter(|&n| self.width_of(n) == width).collect()
    }

    /// Numbers the nodes anew.
    fn shuffle(&mut self) {
        let mut old: Vec<usize> = (0..self.module.nodes.len()).collect();
        self.rng.shuffle(&mut old);
        let mut new = vec![NodeId(0); old.len()];
        old.iter().enumerate().for_each(|(k, &o)| new[o] = NodeId(k as u32));
        let module = &mut self.module;
        module.nodes = old.iter().map(|&o| module.nodes[o].clone()).collect();
        let change = |node: &mut NodeId| *node = new[node.index()];
        module.nodes.iter_mut().flat_map(|n| &mut n.args).for_each(change);
        module.inputs.iter_mut().chain(&mut module.outputs).for_each(|p| change(&mut p.node));
        for r in &mut module.registers {
            [&mut r.next, &mut r.out].into_iter().chain(&mut r.enable).for_each(change);
        }
        for m in &mut module.memories {
            for read in &mut m.reads {
                change(&mut read.address);
                change(&mut read.out);
                if let ReadTiming::Sync { enable: Some(enable), .. } = &mut read.timing {
                    change(enable);
                }
            }
            m.writes.iter_mut().for_each(|w| [&mut w.enable, &mut w.address, &mut w.data].into_iter().for_each(change));
        }
        for connection in module.instances.iter_mut().flat_map(|i| &mut i.inputs) {
            let (Connection::All(node) | Connection::Each(node)) = connection;
            change(node);
        }
        module.properties.iter_mut().for_each(|p| change(&mut p.node));
        module.probes.iter_mut().for_each(|p| change(&mut p.node));
    }
}

/// Random bits, often all zeros, all ones, or a small number.
pub fn random_bits(rng: &mut Rng, width: u32) -> Bits {
    match rng.u32(0..8) {
        0 => Bits::ZERO,
        1 => Bits::ones(width),
        2 => Bits::from(rng.u32(0..4)).truncate(width),
        3 => Bits::from_big(Bits::from(1u8).to_big() << (width - 1)),
        _ => {
            let limbs: Vec<u64> = (0..width.div_ceil(64)).map(|_| rng.u64(..)).collect();
            Bits::from_limbs(&limbs).truncate(width)
        }
    }
}

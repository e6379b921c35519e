//! Random designs about replicated instances.
//!
//! A parent has several replicated instances, of one count and of others, and *packed* values: the elements of all
//! copies side by side. Packed values go from output to input directly, through registers and memories of the parent,
//! through choices and bitwise operations, through moves that keep, shift, permute or break the lanes, and through
//! dynamic selection. A copy may have replicated instances of its own.

use super::design::{Draft, Generator};
use heddle_hdl::Bits;
use heddle_hdl::netlist::{Connection, Instance, Module, NodeId, Op};
use std::ops::RangeInclusive;
use std::panic::Location;
use std::sync::Arc;

/// Element widths where vectors of 32 or 64 bits end, and some that fit neither.
pub(super) const WIDTHS: [u32; 14] = [1, 2, 3, 5, 8, 16, 31, 32, 33, 48, 63, 64, 65, 100];

/// Operations in a design, about, counted in every copy.
const SIZE: usize = 900;

/// A packed value's form.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    lanes: u32,
    width: u32,
}

impl Shape {
    fn bits(self) -> u32 {
        self.lanes * self.width
    }
}

impl Generator {
    /// A design whose replicated instances have that many copies.
    pub fn lanes(&mut self, copies: RangeInclusive<u32>) -> Arc<Module> {
        let (least, most) = (*copies.start(), *copies.end());
        let count = match self.rng.u32(0..4) {
            0 | 1 => self.rng.u32(1..=9),
            2 => 1 << self.rng.u32(0..=6),
            _ => self.rng.u32(least..=most),
        };
        self.widths = (0..self.rng.u32(1..=3)).map(|_| WIDTHS[self.rng.usize(0..WIDTHS.len())]).collect();
        // A half and a double: packed values of different counts of copies may be equally wide.
        let width = self.widths[0];
        self.widths.extend([1, width.div_ceil(2), (width * 2).min(100)].into_iter().filter(|_| self.rng.bool()));
        self.parent(count.clamp(least, most), SIZE, 2)
    }

    /// A parent of replicated instances, most with `count` copies, with at most `depth` levels of replication.
    fn parent(&mut self, count: u32, size: usize, depth: u32) -> Arc<Module> {
        let each = size / (2 * count as usize);
        let modules = self.rng.usize(1..=2);
        let children: Vec<Arc<Module>> = (0..modules)
            .map(|_| match each {
                // A copy with copies.
                30.. if depth > 1 && self.rng.u32(0..3) == 0 => {
                    let most = (each as u32 / 10).min(9);
                    let count = self.rng.u32(1..=most);
                    self.parent(count, each, depth - 1)
                }
                _ => self.lane(each / modules),
            })
            .collect();
        let mut draft = self.draft();
        draft.parent(&children, count);
        Arc::new(draft.module)
    }

    /// A module to replicate, with a plain instance in it at times.
    fn lane(&mut self, size: usize) -> Arc<Module> {
        let nodes = size.clamp(4, self.limits.nodes);
        let inner = (nodes >= 8 && self.rng.u32(0..3) == 0).then(|| self.lane(nodes / 2));
        let mut draft = self.draft();
        draft.limits.nodes = nodes;
        draft.limits.replicas = 2;
        draft.fill(&Vec::from_iter(inner));
        Arc::new(draft.module)
    }
}

impl Draft<'_> {
    fn parent(&mut self, children: &[Arc<Module>], count: u32) {
        let mut shapes: Vec<Shape> = self.widths.iter().map(|&width| Shape { lanes: count, width }).collect();
        shapes.push(Shape { lanes: count, width: 1 });
        for shape in shapes.clone() {
            if self.rng.bool() {
                self.input(shape.bits());
            }
        }
        for width in [1, count.ilog2() + 1, self.width()] {
            self.input(width);
        }
        for _ in 0..self.rng.u32(0..=2) {
            let shape = self.choose(&shapes);
            self.register(shape.bits());
        }
        if self.rng.u32(0..3) == 0 {
            self.memories();
        }
        let mut left: Vec<Arc<Module>> = children.to_vec();
        left.extend((0..self.rng.u32(0..=2)).map(|_| children[self.rng.usize(0..children.len())].clone()));
        while let Some(child) = left.pop() {
            for _ in 0..self.rng.u32(0..6) {
                let shape = self.choose(&shapes);
                self.packed_operation(shape, &shapes);
            }
            if self.rng.bool() {
                self.operation();
            }
            let replicas = match self.rng.u32(0..8) {
                0 => None,
                1 => Some(self.rng.u32(1..=count)),
                2 => Some(count.div_ceil(2)),
                3 if count <= 32 => Some(count * 2),
                _ => Some(count),
            };
            shapes.extend(self.replicated(&child, replicas));
        }
        for _ in 0..self.rng.u32(2..8) {
            let shape = self.choose(&shapes);
            self.packed_operation(shape, &shapes);
        }
        self.finish();
    }

    fn choose(&mut self, shapes: &[Shape]) -> Shape {
        shapes[self.rng.usize(0..shapes.len())]
    }

    /// A packed value: one that is there, or elements put together.
    fn packed(&mut self, shape: Shape) -> NodeId {
        if self.rng.bool() {
            let from_copies = |n: &NodeId| matches!(self.module.node(*n).op, Op::InstOut { .. });
            let outputs: Vec<NodeId> = self.all(shape.bits()).into_iter().filter(from_copies).collect();
            if !outputs.is_empty() {
                return outputs[self.rng.usize(0..outputs.len())];
            }
        }
        if self.rng.u32(0..10) > 0 {
            // The later of two: long paths, and little that nobody uses.
            if let Some(node) = self.existing(shape.bits()).max(self.existing(shape.bits())) {
                return node;
            }
        }
        match self.rng.u32(0..3) {
            0 => {
                let element = self.of_width(shape.width);
                self.side_by_side(&vec![element; shape.lanes as usize])
            }
            1 => self.of_width(shape.bits()),
            _ => {
                let elements: Vec<NodeId> = (0..shape.lanes).map(|_| self.of_width(shape.width)).collect();
                self.side_by_side(&elements)
            }
        }
    }

    fn side_by_side(&mut self, parts: &[NodeId]) -> NodeId {
        let width = parts.iter().map(|&p| self.width_of(p)).sum();
        self.node(Op::Cat, width, parts)
    }

    fn slice(&mut self, node: NodeId, low: u32, width: u32) -> NodeId {
        self.node(Op::Slice(low), width, &[node])
    }

    fn element(&mut self, node: NodeId, shape: Shape, lane: u32) -> NodeId {
        self.slice(node, lane * shape.width, shape.width)
    }

    /// The elements `lanes` of a packed value, side by side.
    fn elements(&mut self, node: NodeId, shape: Shape, lanes: impl Iterator<Item = u32>) -> NodeId {
        let parts: Vec<NodeId> = lanes.map(|lane| self.element(node, shape, lane)).collect();
        self.side_by_side(&parts)
    }

    /// The number of each lane, as far as it fits.
    fn lane_numbers(&mut self, shape: Shape) -> NodeId {
        let number = |k: u32| Bits::from(k as u64).truncate(shape.width).to_big() << (k * shape.width);
        let value = (0..shape.lanes).map(number).fold(Bits::ZERO.to_big(), |all, one| all | one);
        self.node(Op::Const(Bits::from_big(value)), shape.bits(), &[])
    }

    /// What a parent does with packed values.
    fn packed_operation(&mut self, shape: Shape, shapes: &[Shape]) {
        let Shape { lanes, width } = shape;
        let all = shape.bits();
        match self.rng.u32(0..26) {
            0..=2 => {
                let op = [Op::And, Op::Or, Op::Xor][self.rng.usize(0..3)].clone();
                let (a, b) = (self.packed(shape), self.packed(shape));
                self.node(op, all, &[a, b]);
            }
            3..=4 => {
                let a = self.packed(shape);
                let op = [Op::Not, Op::Buf][self.rng.usize(0..2)].clone();
                self.node(op, all, &[a]);
            }
            5..=6 => {
                let (selector, a, b) = (self.bit(), self.packed(shape), self.packed(shape));
                self.node(Op::Mux, all, &[selector, a, b]);
            }
            7 => {
                let selector_width = self.rng.u32(1..=3);
                let labels = self.labels(selector_width);
                let mut args = vec![self.of_width(selector_width)];
                args.extend((0..=labels.len()).map(|_| self.packed(shape)));
                self.node(Op::Case(labels), all, &args);
            }
            // A register between instances.
            8..=10 => {
                let next = self.packed(shape);
                let enable = self.rng.bool().then(|| self.bit());
                self.register(all);
                let register = self.module.registers.last_mut().expect("just made");
                (register.next, register.enable) = (next, enable);
            }
            // A choice in each lane: of a value or zero, or of two values.
            11 => {
                let (mask, a) = (self.packed(Shape { lanes, width: 1 }), self.packed(shape));
                let bits: Vec<NodeId> = (0..lanes).map(|k| self.slice(mask, k, 1)).collect();
                let wide: Vec<NodeId> = match width {
                    1 => bits,
                    _ => bits.iter().map(|&bit| self.node(Op::SExt, width, &[bit])).collect(),
                };
                let wide = self.side_by_side(&wide);
                self.node(Op::And, all, &[wide, a]);
            }
            12 => {
                let mask = self.packed(Shape { lanes, width: 1 });
                let (a, b) = (self.packed(shape), self.packed(shape));
                let lanes: Vec<NodeId> = (0..lanes)
                    .map(|k| {
                        let args = [self.slice(mask, k, 1), self.element(a, shape, k), self.element(b, shape, k)];
                        self.node(Op::Mux, width, &args)
                    })
                    .collect();
                self.side_by_side(&lanes);
            }
            // A rotation by lanes, or by bits.
            13..=14 if all > 1 => {
                let a = self.packed(shape);
                let by = match self.rng.u32(0..4) {
                    0 => self.rng.u32(1..all),
                    _ if lanes == 1 => self.rng.u32(1..all),
                    _ => self.rng.u32(1..lanes) * width,
                };
                let (high, low) = (self.slice(a, by, all - by), self.slice(a, 0, by));
                self.side_by_side(&[high, low]);
            }
            // A shift by lanes, with values at the end.
            15 if lanes > 1 => {
                let a = self.packed(shape);
                let by = self.rng.u32(1..lanes) * width;
                let end = self.of_width(by);
                if self.rng.bool() {
                    let rest = self.slice(a, 0, all - by);
                    self.side_by_side(&[end, rest]);
                } else {
                    let rest = self.slice(a, by, all - by);
                    self.side_by_side(&[rest, end]);
                }
            }
            16..=17 => {
                let a = self.packed(shape);
                self.elements(a, shape, (0..lanes).rev());
            }
            // Any lane anywhere, some in several places.
            18 => {
                let a = self.packed(shape);
                let from: Vec<u32> = (0..lanes).map(|_| self.rng.u32(0..lanes)).collect();
                self.elements(a, shape, from.into_iter());
            }
            // An element by number, for all lanes or for each.
            19..=20 => {
                let a = self.packed(shape);
                let index_width = lanes.ilog2() + self.rng.u32(0..=1) + 1;
                if self.rng.bool() {
                    let index = self.of_width(index_width);
                    let one = self.node(Op::Select, width, &[a, index]);
                    if self.rng.bool() {
                        self.side_by_side(&vec![one; lanes as usize]);
                    }
                } else {
                    let index_shape = Shape { lanes, width: index_width };
                    let indices = self.packed(index_shape);
                    let parts: Vec<NodeId> = (0..lanes)
                        .map(|k| {
                            let index = self.element(indices, index_shape, k);
                            self.node(Op::Select, width, &[a, index])
                        })
                        .collect();
                    self.side_by_side(&parts);
                }
            }
            // A comparison in each lane.
            21 => {
                let op = [Op::Eq, Op::Ne, Op::Lt, Op::LtSigned][self.rng.usize(0..4)].clone();
                let (a, b) = (self.packed(shape), self.packed(shape));
                let parts: Vec<NodeId> = (0..lanes)
                    .map(|k| {
                        let args = [self.element(a, shape, k), self.element(b, shape, k)];
                        self.node(op.clone(), 1, &args)
                    })
                    .collect();
                self.side_by_side(&parts);
            }
            // The whole as one number.
            22 => {
                let a = self.packed(shape);
                match self.rng.u32(0..4) {
                    0 => {
                        let op = [Op::Any, Op::All, Op::Parity][self.rng.usize(0..3)].clone();
                        self.node(op, 1, &[a]);
                    }
                    1 => {
                        self.node(Op::CountOnes, 32 - all.leading_zeros(), &[a]);
                    }
                    2 => {
                        let op = [Op::Add, Op::Sub][self.rng.usize(0..2)].clone();
                        let b = self.packed(shape);
                        self.node(op, all, &[a, b]);
                    }
                    _ => {
                        let op = [Op::Shl, Op::Shr, Op::Sar][self.rng.usize(0..3)].clone();
                        let amount_width = 32 - all.leading_zeros();
                        let amount = self.of_width(amount_width);
                        self.node(op, all, &[a, amount]);
                    }
                }
            }
            // Part of one packed value beside part of another.
            23 => {
                let other = self.choose(shapes);
                let (a, b) = (self.packed(shape), self.packed(other));
                let (low, from) = (self.rng.u32(0..lanes), self.rng.u32(0..other.lanes));
                let a = self.slice(a, low * width, (lanes - low) * width);
                let b = self.slice(b, 0, (from + 1) * other.width);
                self.side_by_side(&[a, b]);
            }
            _ => {
                self.lane_numbers(shape);
            }
        }
    }

    /// An instance with inputs from packed values, common ones, and, in one direction, other copies; the shapes of its
    /// outputs.
    fn replicated(&mut self, child: &Arc<Module>, replicas: Option<u32>) -> Vec<Shape> {
        let lanes = replicas.unwrap_or(1);
        let upwards = self.rng.bool();
        let inst = self.module.instances.len() as u32;
        let mut inputs = Vec::new();
        let mut chained = Vec::new();
        for (index, port) in child.inputs.iter().enumerate() {
            let shape = Shape { lanes, width: port.width };
            let same_width: Vec<usize> =
                (0..child.outputs.len()).filter(|&o| child.outputs[o].width == port.width).collect();
            let connection = match self.rng.u32(0..12) {
                0..=3 => Connection::All(self.of_width(port.width)),
                _ if replicas.is_none() => Connection::All(self.of_width(port.width)),
                4..=5 if lanes > 1 && !same_width.is_empty() => {
                    chained.push((index, same_width[self.rng.usize(0..same_width.len())]));
                    Connection::Each(self.packed(shape))
                }
                6 => Connection::Each(self.lane_numbers(shape)),
                7..=9 => {
                    self.packed_operation(shape, &[shape]);
                    let last = self.all(shape.bits()).pop();
                    Connection::Each(last.unwrap_or_else(|| self.packed(shape)))
                }
                _ => Connection::Each(self.packed(shape)),
            };
            inputs.push(connection);
        }
        let mut outs = Vec::new();
        for (port, output) in child.outputs.iter().enumerate() {
            outs.push(self.node(Op::InstOut { inst, port: port as u32 }, output.width * lanes, &[]));
        }
        for (input, output) in chained {
            let shape = Shape { lanes, width: child.inputs[input].width };
            let node = self.chain(outs[output], inputs[input].node(), shape, upwards);
            inputs[input] = Connection::Each(node);
        }
        let (name, module, loc) = (format!("u{inst}"), child.clone(), Location::caller());
        self.module.instances.push(Instance { name, module, replicas, inputs, loc });
        child.outputs.iter().map(|o| Shape { lanes, width: o.width }).collect()
    }

    /// What copies get from copies before them (after them, if not `upwards`): each from its neighbour, from one some
    /// lanes away, or from its parent in a tree; the first ones from `ends`.
    fn chain(&mut self, outs: NodeId, ends: NodeId, shape: Shape, upwards: bool) -> NodeId {
        let lanes = shape.lanes;
        if self.rng.u32(0..4) == 0 {
            let place = |k: u32| if upwards { k } else { lanes - 1 - k };
            let parts: Vec<NodeId> = (0..lanes)
                .map(|k| match place(k) {
                    0 => self.element(ends, shape, k),
                    child => self.element(outs, shape, place((child - 1) / 2)),
                })
                .collect();
            return self.side_by_side(&parts);
        }
        let by = if self.rng.bool() { 1 } else { self.rng.u32(1..lanes) };
        let (end, rest) = (by * shape.width, (lanes - by) * shape.width);
        if upwards {
            let parts = [self.slice(ends, 0, end), self.slice(outs, 0, rest)];
            self.side_by_side(&parts)
        } else {
            let parts = [self.slice(outs, end, rest), self.slice(ends, rest, end)];
            self.side_by_side(&parts)
        }
    }

    /// Keeps values that nobody uses in registers, so that what is wrong in them shows.
    pub fn keep_unused(&mut self) {
        let mut used = vec![false; self.module.nodes.len()];
        let m = &self.module;
        let state = m.registers.iter().flat_map(|r| [r.next].into_iter().chain(r.enable));
        let ports = m.instances.iter().flat_map(|i| &i.inputs).map(|c| c.node());
        let writes = m.memories.iter().flat_map(|m| &m.writes).flat_map(|w| [w.enable, w.address, w.data]);
        let operands = m.nodes.iter().flat_map(|n| n.args.iter().copied());
        state.chain(ports).chain(writes).chain(operands).for_each(|n| used[n.index()] = true);
        let mut unused: Vec<NodeId> = (0..used.len() as u32).map(NodeId).filter(|n| !used[n.index()]).collect();
        self.rng.shuffle(&mut unused);
        unused.truncate(12);
        for node in unused {
            let width = self.width_of(node);
            self.register(width);
            self.module.registers.last_mut().expect("just made").next = node;
        }
    }
}

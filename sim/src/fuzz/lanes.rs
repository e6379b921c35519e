//! Random designs about replicated instances.
//!
//! A parent has several replicated instances, of one count and of others, and *packed* values: the elements of all
//! copies side by side. Packed values go from output to input directly, through registers and memories of the parent,
//! through choices and bitwise operations, through moves that keep, shift, permute or break the lanes, and through
//! dynamic selection. A copy may have replicated instances of its own.

mod packed;

use super::design::{Draft, Generator};
use heddle_hdl::netlist::{Connection, Instance, Module, NodeId, Op};
use packed::Packed;
use std::ops::RangeInclusive;
use std::panic::Location;
use std::sync::Arc;

/// Element widths where vectors of 32 or 64 bits end, and some that fit neither.
pub(super) const WIDTHS: [u32; 14] = [1, 2, 3, 5, 8, 16, 31, 32, 33, 48, 63, 64, 65, 100];

/// Operations in a design, about, counted in every copy.
const SIZE: usize = 900;

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
        let mut shapes: Vec<Packed> = self.widths.iter().map(|&width| Packed { lanes: count, width }).collect();
        shapes.push(Packed { lanes: count, width: 1 });
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

    /// An instance with inputs from packed values, common ones, and, in one direction, other copies; the shapes of its
    /// outputs.
    fn replicated(&mut self, child: &Arc<Module>, replicas: Option<u32>) -> Vec<Packed> {
        let lanes = replicas.unwrap_or(1);
        let upwards = self.rng.bool();
        let inst = self.module.instances.len() as u32;
        let mut inputs = Vec::new();
        let mut chained = Vec::new();
        for (index, port) in child.inputs.iter().enumerate() {
            let shape = Packed { lanes, width: port.width };
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
            let shape = Packed { lanes, width: child.inputs[input].width };
            let node = self.chain(outs[output], inputs[input].node(), shape, upwards);
            inputs[input] = Connection::Each(node);
        }
        let (name, module, loc) = (format!("u{inst}"), child.clone(), Location::caller());
        self.module.instances.push(Instance { name, module, replicas, inputs, loc });
        child.outputs.iter().map(|o| Packed { lanes, width: o.width }).collect()
    }

    /// What copies get from copies before them (after them, if not `upwards`): each from its neighbour, from one some
    /// lanes away, or from its parent in a tree; the first ones from `ends`.
    fn chain(&mut self, outs: NodeId, ends: NodeId, shape: Packed, upwards: bool) -> NodeId {
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

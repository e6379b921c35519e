//! Parts of a node for all lanes at once, and values of all lanes side by side.

use super::{Flatten, Parts};
use crate::flat::lanes::{Lane, MOST};
use crate::flat::{Id, Op};
use heddle_hdl::netlist::{self, Connection, NodeId};

impl Flatten<'_> {
    /// Bits of an or of many values, if these are the lanes of one.
    pub(super) fn or_of_lanes(&mut self, scope: usize, n: &netlist::Node, low: u32, width: u32) -> Option<Id> {
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
    pub(super) fn output_of_lanes(&mut self, first: usize, lane: Lane, node: NodeId, low: u32, width: u32) -> Id {
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
    pub(super) fn spread(&mut self, scope: usize, node: NodeId, parts: Parts) -> Id {
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
}

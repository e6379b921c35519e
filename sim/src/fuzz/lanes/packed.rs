//! Packed values, and what a parent does with them.

use crate::fuzz::design::Draft;
use heddle_hdl::Bits;
use heddle_hdl::netlist::{NodeId, Op};

/// A packed value's form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    pub lanes: u32,
    pub width: u32,
}

impl Packed {
    pub fn bits(self) -> u32 {
        self.lanes * self.width
    }
}

impl Draft<'_> {
    pub(super) fn choose(&mut self, shapes: &[Packed]) -> Packed {
        shapes[self.rng.usize(0..shapes.len())]
    }

    /// A packed value: one that is there, or elements put together.
    pub(super) fn packed(&mut self, shape: Packed) -> NodeId {
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

    pub(super) fn side_by_side(&mut self, parts: &[NodeId]) -> NodeId {
        let width = parts.iter().map(|&p| self.width_of(p)).sum();
        self.node(Op::Cat, width, parts)
    }

    pub(super) fn slice(&mut self, node: NodeId, low: u32, width: u32) -> NodeId {
        self.node(Op::Slice(low), width, &[node])
    }

    pub(super) fn element(&mut self, node: NodeId, shape: Packed, lane: u32) -> NodeId {
        self.slice(node, lane * shape.width, shape.width)
    }

    /// The elements `lanes` of a packed value, side by side.
    fn elements(&mut self, node: NodeId, shape: Packed, lanes: impl Iterator<Item = u32>) -> NodeId {
        let parts: Vec<NodeId> = lanes.map(|lane| self.element(node, shape, lane)).collect();
        self.side_by_side(&parts)
    }

    /// The number of each lane, as far as it fits.
    pub(super) fn lane_numbers(&mut self, shape: Packed) -> NodeId {
        let number = |k: u32| Bits::from(k as u64).truncate(shape.width).to_big() << (k * shape.width);
        let value = (0..shape.lanes).map(number).fold(Bits::ZERO.to_big(), |all, one| all | one);
        self.node(Op::Const(Bits::from_big(value)), shape.bits(), &[])
    }

    /// What a parent does with packed values.
    pub(super) fn packed_operation(&mut self, shape: Packed, shapes: &[Packed]) {
        let (lanes, all) = (shape.lanes, shape.bits());
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
            11 => self.value_or_zero(shape),
            12 => self.choice_in_each_lane(shape),
            13..=14 if all > 1 => self.rotation(shape),
            15 if lanes > 1 => self.shift_by_lanes(shape),
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
            19..=20 => self.element_by_number(shape),
            21 => self.comparison_in_each_lane(shape),
            22 => self.as_one_number(shape),
            23 => self.part_beside_part(shape, shapes),
            _ => {
                self.lane_numbers(shape);
            }
        }
    }

    /// In each lane, a value or zero.
    fn value_or_zero(&mut self, shape: Packed) {
        let Packed { lanes, width } = shape;
        let all = shape.bits();
        let (mask, a) = (self.packed(Packed { lanes, width: 1 }), self.packed(shape));
        let bits: Vec<NodeId> = (0..lanes).map(|k| self.slice(mask, k, 1)).collect();
        let wide: Vec<NodeId> = match width {
            1 => bits,
            _ => bits.iter().map(|&bit| self.node(Op::SExt, width, &[bit])).collect(),
        };
        let wide = self.side_by_side(&wide);
        self.node(Op::And, all, &[wide, a]);
    }

    /// In each lane, one of two values.
    fn choice_in_each_lane(&mut self, shape: Packed) {
        let Packed { lanes, width } = shape;
        let mask = self.packed(Packed { lanes, width: 1 });
        let (a, b) = (self.packed(shape), self.packed(shape));
        let lanes: Vec<NodeId> = (0..lanes)
            .map(|k| {
                let args = [self.slice(mask, k, 1), self.element(a, shape, k), self.element(b, shape, k)];
                self.node(Op::Mux, width, &args)
            })
            .collect();
        self.side_by_side(&lanes);
    }

    /// A rotation by lanes, or by bits.
    fn rotation(&mut self, shape: Packed) {
        let Packed { lanes, width } = shape;
        let all = shape.bits();
        let a = self.packed(shape);
        let by = match self.rng.u32(0..4) {
            0 => self.rng.u32(1..all),
            _ if lanes == 1 => self.rng.u32(1..all),
            _ => self.rng.u32(1..lanes) * width,
        };
        let (high, low) = (self.slice(a, by, all - by), self.slice(a, 0, by));
        self.side_by_side(&[high, low]);
    }

    /// A shift by lanes, with values at the end.
    fn shift_by_lanes(&mut self, shape: Packed) {
        let Packed { lanes, width } = shape;
        let all = shape.bits();
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

    /// An element by number, for all lanes or for each.
    fn element_by_number(&mut self, shape: Packed) {
        let Packed { lanes, width } = shape;
        let a = self.packed(shape);
        let index_width = lanes.ilog2() + self.rng.u32(0..=1) + 1;
        if self.rng.bool() {
            let index = self.of_width(index_width);
            let one = self.node(Op::Select, width, &[a, index]);
            if self.rng.bool() {
                self.side_by_side(&vec![one; lanes as usize]);
            }
        } else {
            let index_shape = Packed { lanes, width: index_width };
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

    /// A comparison in each lane.
    fn comparison_in_each_lane(&mut self, shape: Packed) {
        let lanes = shape.lanes;
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

    /// The whole as one number.
    fn as_one_number(&mut self, shape: Packed) {
        let all = shape.bits();
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

    /// Part of one packed value beside part of another.
    fn part_beside_part(&mut self, shape: Packed, shapes: &[Packed]) {
        let Packed { lanes, width } = shape;
        let other = self.choose(shapes);
        let (a, b) = (self.packed(shape), self.packed(other));
        let (low, from) = (self.rng.u32(0..lanes), self.rng.u32(0..other.lanes));
        let a = self.slice(a, low * width, (lanes - low) * width);
        let b = self.slice(b, 0, (from + 1) * other.width);
        self.side_by_side(&[a, b]);
    }
}

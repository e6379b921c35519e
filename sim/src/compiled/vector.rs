//! Values with lanes, as vectors of 128 bits.
//!
//! Lanes are computed in strips of [`STRIP`]: of values of up to 32 bits a strip is one `i32x4`, of wider ones two
//! `i64x2`. The last strip may have lanes that nobody asked for; what is in them is never seen. Bits above a value's
//! width are 0.
//!
//! Nodes that are computed lane by lane wait until there is something that cannot: then the first strip of all of them
//! is computed, then the second, so that few vectors are alive at any time.
//!
//! Values of 1 bit per lane are packed into one value, where logic is one instruction for all lanes. An operation of
//! which the machine has no vector form is done one lane after the other.

mod operation;
mod part;

use super::layout::STRIP;
use super::lower::{Lower, value_type};
use crate::flat::{Id, Op, container};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value};
use heddle_hdl::bits::low_mask;
use std::collections::{BTreeMap, HashMap};

/// What waits to be computed strip by strip, and what has been made for the strips in hand.
#[derive(Default)]
pub struct Strip {
    /// How many lanes the strips in hand have.
    pub size: u32,
    waiting: Vec<Id>,
    /// Values of one lane that were copied into all lanes.
    copied: HashMap<(Id, u32), Value>,
    /// Halves of packed bits that were copied into all lanes.
    halves: HashMap<(Value, u32), Value>,
    /// Where words at an address that is the same in all lanes are.
    pub words: HashMap<Id, (Value, usize)>,
    /// Words of many single bits, of eight lanes that begin at a multiple of 8.
    of_bits: HashMap<(Id, u32), Vec<Value>>,
}

impl Strip {
    pub fn holds(&self, id: Id) -> bool {
        self.waiting.contains(&id)
    }

    /// Nothing of before is to be used again, as from another block.
    pub fn forget(&mut self) {
        self.copied.clear();
        self.halves.clear();
        self.words.clear();
        self.of_bits.clear();
    }
}

/// Of how many single bits a word is put together by exchanging rows and columns.
const LEAST_BITS: u32 = 8;

/// How wide the vectors are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vectors {
    pub bits: u32,
}

impl Vectors {
    /// All that Cranelift has.
    pub const NARROW: Vectors = Vectors { bits: 32 * STRIP };

    /// How many lanes are computed together, of values with so many lanes: a power of two that divides the number of
    /// lanes for which the layout has room.
    fn strip(self, lanes: u32) -> u32 {
        let room = lanes.next_multiple_of(STRIP);
        (self.bits / 32).min(1 << room.trailing_zeros())
    }
}

/// Of a strip of `size` lanes: one vector of up to 32 bits a lane, or one of two of 64 bits a lane.
fn vector_type(size: u32, container: u32) -> Type {
    let (lane, lanes) = if container == 32 { (I32, size) } else { (I64, size / 2) };
    lane.by(lanes).expect("vectors have a power of two of lanes")
}

/// The vectors of one strip: one, or two of 64-bit values.
pub type Part = Vec<Value>;

impl Lower<'_, '_> {
    /// Whether a node has lanes of several bits.
    pub fn is_vector(&self, id: Id) -> bool {
        self.lanes(id) > 1 && self.width(id) > 1
    }

    /// The types of all values of a node.
    pub fn types(&self, id: Id) -> Vec<Type> {
        let node = self.flat.node(id);
        match (node.lanes, node.width) {
            (1, width) => vec![value_type(width)],
            (lanes, 1) => vec![value_type(lanes)],
            (lanes, width) => {
                let size = self.vectors.strip(lanes);
                let count = lanes.div_ceil(size) * container(width) / 32;
                vec![vector_type(size, container(width)); count as usize]
            }
        }
    }

    pub fn strips(&self, lanes: u32) -> u32 {
        lanes.div_ceil(self.vectors.strip(lanes))
    }

    /// What is made from now on is made for strips of values with so many lanes.
    pub fn enter(&mut self, lanes: u32) {
        let size = self.vectors.strip(lanes);
        if size != self.strip.size {
            self.strip.forget();
            self.strip.size = size;
        }
    }

    /// The type of the vectors of the strips in hand.
    pub fn vector(&self, container: u32) -> Type {
        vector_type(self.strip.size, container)
    }

    pub fn goes_by_strips(&self, id: Id) -> bool {
        let node = self.flat.node(id);
        let logic = node.width == 1 && matches!(node.op, Op::Not | Op::And | Op::AndNot | Op::Or | Op::Xor | Op::Mux);
        node.lanes > 1 && !logic && !matches!(node.op, Op::Case(_) | Op::Unpack | Op::Consts(_))
    }

    /// Has a node computed with the next strips.
    pub fn add_to_strips(&mut self, id: Id) {
        let node = self.flat.node(id);
        let fits = |&other: &Id| self.lanes(other) == node.lanes;
        // Packed bits are there only when all strips are done; so is what is used as a value of one lane.
        let needs_packed = |&arg: &Id| !self.is_vector(arg) && self.strip.holds(arg);
        if !self.strip.waiting.iter().all(fits) || node.args.iter().any(needs_packed) {
            self.finish_strips();
        }
        self.strip.waiting.push(id);
    }

    /// Computes what waits.
    pub fn finish_strips(&mut self) {
        let ids = std::mem::take(&mut self.strip.waiting);
        let Some(&first) = ids.first() else { return };
        self.strip.forget();
        let lanes = self.lanes(first);
        self.enter(lanes);
        let mut packed: BTreeMap<Id, Value> = BTreeMap::new();
        for strip in 0..self.strips(lanes) {
            for &id in &ids {
                if self.width(id) > 1 {
                    let part = self.strip_of(id, strip);
                    self.values[id.index()].get_or_insert_default().extend(part);
                } else {
                    let bits = self.bits_of(id, strip);
                    let ty = value_type(lanes);
                    let bits = self.convert(bits, ty);
                    let all = match packed.get(&id) {
                        None => bits,
                        Some(&all) => {
                            let up = self.b.ins().ishl_imm_u(bits, i64::from(strip * self.strip.size));
                            self.b.ins().bor(all, up)
                        }
                    };
                    packed.insert(id, all);
                }
            }
        }
        for (id, all) in packed {
            let all = self.mask(all, lanes);
            self.values[id.index()] = Some(vec![all]);
        }
        self.strip.forget();
    }

    /// All strips of a cell or of constants.
    pub fn whole_vector(&mut self, id: Id) -> Vec<Value> {
        self.strip.forget();
        self.enter(self.lanes(id));
        (0..self.strips(self.lanes(id))).flat_map(|strip| self.part(id, strip, container(self.width(id)))).collect()
    }

    /// The values of a node in the form that `other` has.
    pub fn values_like(&mut self, id: Id, other: Id) -> Vec<Value> {
        let (lanes, width) = (self.lanes(other), self.width(other));
        self.strip.forget();
        match (lanes, width) {
            (1, _) => vec![self.value(id)],
            (_, 1) => vec![self.packed(id, lanes)],
            _ => {
                self.enter(lanes);
                (0..self.strips(lanes)).flat_map(|strip| self.part(id, strip, container(width))).collect()
            }
        }
    }

    /// A value of 1 bit with or without lanes as packed bits.
    pub fn packed(&mut self, id: Id, lanes: u32) -> Value {
        let value = self.value(id);
        if self.lanes(id) > 1 {
            return value;
        }
        if let Some(constant) = self.flat.constant(id) {
            return self.constant(if constant == 1 { low_mask(lanes) } else { 0 }, value_type(lanes));
        }
        let copies = self.b.ins().bmask(value_type(lanes), value);
        self.mask(copies, lanes)
    }

    /// Logic on values of 1 bit per lane.
    pub fn packed_logic(&mut self, id: Id) -> Value {
        let node = self.flat.node(id);
        let lanes = node.lanes;
        match node.op {
            Op::Mux => {
                let selector = self.value(node.args[0]);
                let (on, off) = (self.packed(node.args[1], lanes), self.packed(node.args[2], lanes));
                self.b.ins().select(selector, on, off)
            }
            Op::Not | Op::And | Op::AndNot | Op::Or | Op::Xor => {
                let args: Vec<Value> = node.args.iter().map(|&a| self.packed(a, lanes)).collect();
                self.apply(&node.op, lanes, &args, &vec![lanes; args.len()])
            }
            ref op => unreachable!("{op:?} of 1 bit a lane"),
        }
    }

    /// What is made from a vector and has one lane, and packed constants.
    pub fn value_of_vector(&mut self, id: Id) -> Value {
        let node = self.flat.node(id);
        match &node.op {
            Op::Consts(bits) => {
                let packed = bits.iter().rev().fold(0, |packed, bit| packed << 1 | bit);
                self.constant(packed, value_type(node.lanes))
            }
            Op::Lane(lane) => self.lane_of(node.args[0], *lane),
            Op::Pick => self.pick(node.args[0], node.args[1]),
            Op::OrLanes => self.or_lanes(node.args[0]),
            op => unreachable!("{op:?} is made otherwise"),
        }
    }

    /// The value of one lane.
    pub fn lane_of(&mut self, id: Id, lane: u32) -> Value {
        let width = self.width(id);
        if self.lanes(id) == 1 {
            return self.value(id);
        }
        if width == 1 {
            let packed = self.value(id);
            let down = if lane > 0 { self.b.ins().ushr_imm_u(packed, i64::from(lane)) } else { packed };
            let bit = self.mask(down, 1);
            return self.convert(bit, I8);
        }
        let size = self.vectors.strip(self.lanes(id));
        let each = size * 32 / container(width);
        let vector = match &self.values[id.index()] {
            Some(values) => values[(lane / each) as usize],
            None => {
                let before = self.strip.size;
                self.strip.size = size;
                let part = self.part(id, lane / size, container(width));
                self.strip.size = before;
                part[(lane % size / each) as usize]
            }
        };
        self.b.ins().extractlane(vector, (lane % each) as u8)
    }

    /// The lane that a value of one lane names; 0 if there is none.
    fn pick(&mut self, vector: Id, index: Id) -> Value {
        let (lanes, width) = (self.lanes(vector), self.width(vector));
        let name = self.value(index);
        let name = self.convert(name, I64);
        let may_miss = low_mask(self.width(index)) >= u64::from(lanes);
        let inside = may_miss.then(|| self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, name, i64::from(lanes)));
        let zero = self.constant(0, I64);
        let name = inside.map_or(name, |inside| self.b.ins().select(inside, name, zero));
        let bytes = container(width) / 8;
        let distance = self.b.ins().ishl_imm_u(name, i64::from(bytes.trailing_zeros()));
        let (base, offset) = match (&self.values[vector.index()], &self.flat.node(vector).op) {
            (None, Op::Cell { cell, low, .. }) => (self.state, self.cell_at(*cell, *low)),
            _ => {
                let values = match &self.values[vector.index()] {
                    Some(values) => values.clone(),
                    None => self.whole_vector(vector),
                };
                let bytes = self.b.func.dfg.value_type(values[0]).bytes();
                let size = bytes * values.len() as u32;
                let slot = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 4));
                for (k, value) in (0..).zip(values) {
                    self.b.ins().stack_store(I64, value, slot, (bytes * k) as i32);
                }
                (self.b.ins().stack_addr(I64, slot, 0), 0)
            }
        };
        let at = self.b.ins().iadd(base, distance);
        let value = self.load(at, offset, bytes as usize, value_type(width));
        match inside {
            None => value,
            Some(inside) => {
                let zero = self.constant(0, value_type(width));
                self.b.ins().select(inside, value, zero)
            }
        }
    }

    /// The or of all lanes.
    fn or_lanes(&mut self, id: Id) -> Value {
        let (lanes, width) = (self.lanes(id), self.width(id));
        let own = container(width);
        let mut all: Option<Value> = None;
        self.strip.forget();
        self.enter(lanes);
        for strip in 0..self.strips(lanes) {
            let mut part = self.part(id, strip, own);
            let size = self.strip.size;
            if (strip + 1) * size > lanes {
                let asked = self.constants(|k| if strip * size + k < lanes { u64::MAX } else { 0 }, own);
                part = part.into_iter().zip(asked).map(|(v, asked)| self.b.ins().band(v, asked)).collect();
            }
            for vector in part {
                all = Some(all.map_or(vector, |all| self.b.ins().bor(all, vector)));
            }
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        let wide = self.vector(64);
        let all = self.b.ins().bitcast(wide, flags, all.expect("there are lanes"));
        let limbs = (0..wide.lane_count() as u8).map(|lane| self.b.ins().extractlane(all, lane)).collect::<Vec<_>>();
        let both = limbs.into_iter().reduce(|a, b| self.b.ins().bor(a, b)).expect("a vector has lanes");
        if own == 64 {
            return both;
        }
        let high = self.b.ins().ushr_imm_u(both, 32);
        let both = self.b.ins().bor(both, high);
        self.b.ins().ireduce(I32, both)
    }

    /// A strip from the values of its lanes; the last strip may have fewer.
    pub fn side_by_side(&mut self, lanes: &[Value], container: u32) -> Part {
        let ty = self.vector(container);
        let each = ty.lane_count() as usize;
        let mut part: Part = Vec::new();
        for k in 0..container as usize / 32 {
            let values = &lanes[(k * each).min(lanes.len())..((k + 1) * each).min(lanes.len())];
            let vector = match *values {
                [] => self.splat(0, container)[0],
                [first, ref rest @ ..] => {
                    let first = self.convert(first, ty.lane_type());
                    let mut vector = self.b.ins().scalar_to_vector(ty, first);
                    for (at, &value) in (1..).zip(rest) {
                        let value = self.convert(value, ty.lane_type());
                        vector = self.b.ins().insertlane(vector, value, at);
                    }
                    vector
                }
            };
            part.push(vector);
        }
        part
    }

    /// One bit: a value of 1 bit is on in all lanes.
    pub fn holds_everywhere(&mut self, id: Id) -> Value {
        let (value, lanes) = (self.value(id), self.lanes(id));
        if lanes == 1 {
            return value;
        }
        let all = self.constant(low_mask(lanes), value_type(lanes));
        self.b.ins().icmp(IntCC::Equal, value, all)
    }
}

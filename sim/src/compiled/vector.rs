//! Values with lanes, as vectors of 128 bits.
//!
//! Lanes are computed in strips of [`STRIP`]: of values of up to 32 bits a strip is one `i32x4`, of wider ones two `i64x2`.
//! The last strip may have lanes that nobody asked for; what is in them is never seen. Bits above a value's width are 0.
//!
//! Nodes that are computed lane by lane wait until there is something that cannot: then the first strip of all of them
//! is computed, then the second, so that few vectors are alive at any time.
//!
//! Values of 1 bit a lane are packed into one value, where logic is one instruction for all lanes. An operation of which
//! the machine has no vector form is done one lane after the other.

use super::layout::STRIP;
use super::lower::{Lower, value_type};
use crate::flat::{Id, Op, container};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32X4, I8, I8X16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{
    ConstantData, Endianness, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value,
};
use heddle_hdl::bits::low_mask;
use std::collections::{BTreeMap, HashMap};

/// What waits to be computed strip by strip, and what has been made for the strips in hand.
#[derive(Default)]
pub struct Strip {
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
            (lanes, width) if container(width) == 32 => vec![I32X4; lanes.div_ceil(STRIP) as usize],
            (lanes, _) => vec![I64X2; 2 * lanes.div_ceil(STRIP) as usize],
        }
    }

    pub fn strips(&self, lanes: u32) -> u32 {
        lanes.div_ceil(STRIP)
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
                            let up = self.b.ins().ishl_imm_u(bits, i64::from(strip * STRIP));
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
        (0..self.strips(self.lanes(id))).flat_map(|strip| self.part(id, strip, container(self.width(id)))).collect()
    }

    /// The values of a node in the form that `other` has.
    pub fn values_like(&mut self, id: Id, other: Id) -> Vec<Value> {
        let (lanes, width) = (self.lanes(other), self.width(other));
        self.strip.forget();
        match (lanes, width) {
            (1, _) => vec![self.value(id)],
            (_, 1) => vec![self.packed(id, lanes)],
            _ => (0..self.strips(lanes)).flat_map(|strip| self.part(id, strip, container(width))).collect(),
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

    /// Logic on values of 1 bit a lane.
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
        let each = 128 / container(width);
        let vector = match &self.values[id.index()] {
            Some(values) => values[(lane / each) as usize],
            None => self.part(id, lane / STRIP, container(width))[(lane % STRIP / each) as usize],
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
                let size = 16 * values.len() as u32;
                let slot = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 4));
                for (k, value) in (0..).zip(values) {
                    self.b.ins().stack_store(I64, value, slot, 16 * k);
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
        for strip in 0..self.strips(lanes) {
            let mut part = self.part(id, strip, own);
            if (strip + 1) * STRIP > lanes {
                let asked = |k: u32| if strip * STRIP + k < lanes { u64::MAX } else { 0 };
                let asked = self.constants([asked(0), asked(1), asked(2), asked(3)], own);
                part = part.into_iter().zip(asked).map(|(v, asked)| self.b.ins().band(v, asked)).collect();
            }
            for vector in part {
                all = Some(all.map_or(vector, |all| self.b.ins().bor(all, vector)));
            }
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        let all = self.b.ins().bitcast(I64X2, flags, all.expect("there are lanes"));
        let (low, high) = (self.b.ins().extractlane(all, 0), self.b.ins().extractlane(all, 1));
        let both = self.b.ins().bor(low, high);
        if own == 64 {
            return both;
        }
        let high = self.b.ins().ushr_imm_u(both, 32);
        let both = self.b.ins().bor(both, high);
        self.b.ins().ireduce(I32, both)
    }

    fn vconst(&mut self, bytes: Vec<u8>, ty: Type) -> Value {
        let handle = self.b.func.dfg.constants.insert(ConstantData::from(bytes));
        self.b.ins().vconst(ty, handle)
    }

    /// Constants of a strip.
    fn constants(&mut self, values: [u64; STRIP as usize], container: u32) -> Part {
        if container == 32 {
            let bytes = values.iter().flat_map(|&v| (v as u32).to_le_bytes()).collect();
            return vec![self.vconst(bytes, I32X4)];
        }
        values.chunks(2).map(|two| self.vconst(two.iter().flat_map(|v| v.to_le_bytes()).collect(), I64X2)).collect()
    }

    pub fn splat(&mut self, value: u64, container: u32) -> Part {
        self.constants([value; STRIP as usize], container)
    }

    /// A strip of an operand, in a container that is at least its own; of packed bits, 0 or 1 in each lane.
    pub fn part(&mut self, id: Id, strip: u32, container_: u32) -> Part {
        let node = self.flat.node(id);
        if let Op::Const(value) = node.op {
            return self.splat(value, container_);
        }
        if node.lanes == 1 {
            let copied = self.copied(id, container_);
            return vec![copied; container_ as usize / 32];
        }
        if node.width == 1 {
            let ones = self.copies(id, strip, container_);
            let one = self.splat(1, container_);
            return ones.into_iter().zip(one).map(|(v, one)| self.b.ins().band(v, one)).collect();
        }
        let own = container(node.width);
        let part = match (&self.values[id.index()], &node.op) {
            (Some(values), _) => {
                let each = own as usize / 32;
                values[strip as usize * each..][..each].to_vec()
            }
            (None, Op::Cell { cell, low, .. }) => self.load_strip(*cell, *low, strip),
            (None, Op::Consts(values)) => {
                let at = |k: u32| values.get((strip * STRIP + k) as usize).copied().unwrap_or(0);
                self.constants([at(0), at(1), at(2), at(3)], own)
            }
            (None, op) => unreachable!("{op:?} is computed before its users"),
        };
        if own < container_ { self.widen(part[0], false) } else { part }
    }

    /// A value of one lane in all lanes.
    fn copied(&mut self, id: Id, container: u32) -> Value {
        if let Some(&copied) = self.strip.copied.get(&(id, container)) {
            return copied;
        }
        let value = self.value(id);
        let (one, all) = if container == 32 { (I32, I32X4) } else { (I64, I64X2) };
        let value = self.convert(value, one);
        let copied = self.b.ins().splat(all, value);
        self.strip.copied.insert((id, container), copied);
        copied
    }

    /// All bits of each lane on where its bit is.
    pub fn copies(&mut self, id: Id, strip: u32, container: u32) -> Part {
        if self.lanes(id) == 1 {
            let value = self.value(id);
            let ones = self.b.ins().bmask(if container == 32 { I32 } else { I64 }, value);
            let all = self.b.ins().splat(if container == 32 { I32X4 } else { I64X2 }, ones);
            return vec![all; container as usize / 32];
        }
        if matches!(self.flat.node(id).op, Op::Consts(_)) {
            let Op::Consts(bits) = &self.flat.node(id).op else { unreachable!("as just seen") };
            let at = |k: u32| if bits.get((strip * STRIP + k) as usize) == Some(&1) { u64::MAX } else { 0 };
            return self.constants([at(0), at(1), at(2), at(3)], container);
        }
        let packed = match self.values[id.index()].as_ref().map(|values| values[0]) {
            Some(packed) => packed,
            None => match self.strip.copied.get(&(id, 1)) {
                Some(&packed) => packed,
                None => {
                    let packed = self.value(id);
                    self.strip.copied.insert((id, 1), packed);
                    packed
                }
            },
        };
        let (half, first) = (strip / 8, strip % 8 * STRIP);
        let all = match self.strip.halves.get(&(packed, half)) {
            Some(&all) => all,
            None => {
                let down = if half > 0 { self.b.ins().ushr_imm_u(packed, 32) } else { packed };
                let down = self.convert(down, I32);
                let all = self.b.ins().splat(I32X4, down);
                self.strip.halves.insert((packed, half), all);
                all
            }
        };
        let bits = self.constants(std::array::from_fn(|k| 1 << (first + k as u32)), 32)[0];
        let chosen = self.b.ins().band(all, bits);
        let ones = self.b.ins().icmp(IntCC::Equal, chosen, bits);
        if container == 32 { vec![ones] } else { self.widen(ones, true) }
    }

    /// From 32 to 64 bits a lane.
    fn widen(&mut self, vector: Value, signed: bool) -> Part {
        if signed {
            return vec![self.b.ins().swiden_low(vector), self.b.ins().swiden_high(vector)];
        }
        vec![self.b.ins().uwiden_low(vector), self.b.ins().uwiden_high(vector)]
    }

    /// The lower 32 bits of each lane of 64.
    fn narrow(&mut self, part: &[Value]) -> Value {
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        let (low, high) = (self.b.ins().bitcast(I8X16, flags, part[0]), self.b.ins().bitcast(I8X16, flags, part[1]));
        let order: Vec<u8> = (0..4).flat_map(|lane| (0..4).map(move |byte| lane * 8 + byte)).collect();
        let order = self.b.func.dfg.immediates.push(ConstantData::from(order));
        let bytes = self.b.ins().shuffle(low, high, order);
        self.b.ins().bitcast(I32X4, flags, bytes)
    }

    /// Without bits above the width.
    fn mask_part(&mut self, part: Part, width: u32) -> Part {
        if width == container(width) {
            return part;
        }
        let mask = self.splat(low_mask(width), container(width));
        part.into_iter().zip(mask).map(|(v, mask)| self.b.ins().band(v, mask)).collect()
    }

    /// With copies of the sign above the width.
    fn signed_part(&mut self, part: Part, width: u32) -> Part {
        let shift = i64::from(container(width) - width);
        if shift == 0 {
            return part;
        }
        part.into_iter()
            .map(|v| {
                let up = self.b.ins().ishl_imm_u(v, shift);
                self.b.ins().sshr_imm_u(up, shift)
            })
            .collect()
    }

    /// The highest bit of each lane of a strip, packed.
    fn high_bits(&mut self, part: &[Value]) -> Value {
        let low = self.b.ins().vhigh_bits(I32, part[0]);
        match part.get(1) {
            None => low,
            Some(&high) => {
                let high = self.b.ins().vhigh_bits(I32, high);
                let high = self.b.ins().ishl_imm_u(high, 2);
                self.b.ins().bor(low, high)
            }
        }
    }

    /// The bits that a node of 1 bit a lane has in a strip, packed.
    fn bits_of(&mut self, id: Id, strip: u32) -> Value {
        let node = self.flat.node(id);
        match &node.op {
            Op::Eq | Op::Ne | Op::Lt | Op::LtSigned => {
                let part = self.comparison(id, strip);
                self.high_bits(&part)
            }
            Op::Slice(low) => {
                let own = container(self.width(node.args[0]));
                let part = self.part(node.args[0], strip, own);
                let up = i64::from(own - 1 - low);
                let part: Part = part.into_iter().map(|v| self.b.ins().ishl_imm_u(v, up)).collect();
                self.high_bits(&part)
            }
            Op::Read { memory, lane: _, low } if self.lanes(node.args[0]) == 1 => {
                let part = self.load_words(id, *memory, *low, strip);
                let part: Part = part.into_iter().map(|v| self.b.ins().ishl_imm_u(v, 31)).collect();
                self.high_bits(&part)
            }
            _ => {
                let zero = self.constant(0, I32);
                let lanes: Vec<Value> = self.lane_by_lane(id, strip);
                (0..).zip(lanes).fold(zero, |all, (k, bit)| {
                    let bit = self.convert(bit, I32);
                    let up = self.b.ins().ishl_imm_u(bit, k);
                    self.b.ins().bor(all, up)
                })
            }
        }
    }

    /// A strip of a node of several bits a lane.
    fn strip_of(&mut self, id: Id, strip: u32) -> Part {
        let node = self.flat.node(id);
        let (width, own) = (node.width, container(node.width));
        let args = &node.args;
        let first_width = args.first().map_or(width, |&a| self.width(a));
        match &node.op {
            Op::Not => {
                let ones = self.splat(low_mask(width), own);
                let part = self.part(args[0], strip, own);
                part.into_iter().zip(ones).map(|(v, ones)| self.b.ins().bxor(v, ones)).collect()
            }
            Op::And => self.two(id, strip, |lower, a, b| lower.b.ins().band(a, b)),
            Op::AndNot => self.two(id, strip, |lower, a, b| lower.b.ins().band_not(a, b)),
            Op::Or => self.two(id, strip, |lower, a, b| lower.b.ins().bor(a, b)),
            Op::Xor => self.two(id, strip, |lower, a, b| lower.b.ins().bxor(a, b)),
            Op::Add => {
                let sum = self.two(id, strip, |lower, a, b| lower.b.ins().iadd(a, b));
                self.mask_part(sum, width)
            }
            Op::Sub => {
                let difference = self.two(id, strip, |lower, a, b| lower.b.ins().isub(a, b));
                self.mask_part(difference, width)
            }
            Op::Mul => {
                let product = self.two(id, strip, |lower, a, b| lower.b.ins().imul(a, b));
                self.mask_part(product, width)
            }
            Op::Shl | Op::Shr | Op::Sar if self.lanes(args[1]) == 1 => self.shift_all(id, strip),
            Op::Shl if own == 32 && self.width(args[1]) <= 32 && cfg!(target_arch = "x86_64") => {
                self.shift_left(id, strip)
            }
            Op::Eq | Op::Ne | Op::Lt | Op::LtSigned => {
                let part = self.comparison(id, strip);
                let part = match (part.len(), own) {
                    (1, 64) => self.widen(part[0], true),
                    (2, 32) => vec![self.narrow(&part)],
                    _ => part,
                };
                self.mask_part(part, width)
            }
            Op::Blend => {
                let selector = self.part(args[0], strip, own);
                self.choose(&selector, args[1], args[2], strip, own)
            }
            Op::Mux => {
                let ones = self.copies(args[0], strip, own);
                self.choose(&ones, args[1], args[2], strip, own)
            }
            Op::Slice(low) => {
                let from = container(first_width);
                let part = self.part(args[0], strip, from);
                let part: Part = match low {
                    0 => part,
                    _ => part.into_iter().map(|v| self.b.ins().ushr_imm_u(v, i64::from(*low))).collect(),
                };
                let part = if from > own { vec![self.narrow(&part)] } else { part };
                if low + width == first_width { part } else { self.mask_part(part, width) }
            }
            Op::Cat if own == 32 && width >= LEAST_BITS && args.len() == width as usize => self.word_of_bits(id, strip),
            Op::Cat => {
                let mut at = 0;
                let mut all: Option<Part> = None;
                for &arg in args {
                    let part = self.part(arg, strip, own);
                    let up: Part = match at {
                        0 => part,
                        _ => part.into_iter().map(|v| self.b.ins().ishl_imm_u(v, i64::from(at))).collect(),
                    };
                    at += self.width(arg);
                    all = Some(match all {
                        None => up,
                        Some(all) => all.into_iter().zip(up).map(|(a, b)| self.b.ins().bor(a, b)).collect(),
                    });
                }
                all.expect("a concatenation has parts")
            }
            Op::ZExt => self.part(args[0], strip, own),
            Op::SExt if first_width == 1 => {
                let ones = self.copies(args[0], strip, own);
                self.mask_part(ones, width)
            }
            Op::SExt => {
                let part = self.part(args[0], strip, container(first_width));
                let part = self.signed_part(part, first_width);
                let part = if container(first_width) < own { self.widen(part[0], true) } else { part };
                self.mask_part(part, width)
            }
            Op::Read { memory, low, .. } if self.lanes(args[0]) == 1 => self.load_words(id, *memory, *low, strip),
            _ => {
                let lanes = self.lane_by_lane(id, strip);
                self.side_by_side(&lanes, own)
            }
        }
    }

    /// A strip of a concatenation of single bits, whose values in all lanes are there packed: rows and columns of a matrix of bits are
    /// exchanged. A byte of each row, which is eight lanes, goes into a vector, of which the highest bits of all bytes are a column.
    fn word_of_bits(&mut self, id: Id, strip: u32) -> Part {
        const LANES: u32 = 8;
        const ROWS: usize = 16;
        let node = self.flat.node(id);
        let (lanes, group) = (node.lanes, strip * STRIP / LANES);
        let words = match self.strip.of_bits.get(&(id, group)) {
            Some(words) => words.clone(),
            None => {
                let mut words: Vec<Option<Value>> = vec![None; LANES as usize];
                for (part, rows) in node.args.chunks(ROWS).enumerate() {
                    let mut matrix = self.vconst(vec![0; ROWS], I8X16);
                    for (at, &row) in (0..).zip(rows) {
                        let packed = self.packed(row, lanes);
                        let down =
                            if group == 0 { packed } else { self.b.ins().ushr_imm_u(packed, i64::from(group * LANES)) };
                        let byte = self.convert(down, I8);
                        matrix = self.b.ins().insertlane(matrix, byte, at);
                    }
                    for word in words.iter_mut().rev() {
                        let column = self.b.ins().vhigh_bits(I32, matrix);
                        matrix = self.b.ins().iadd(matrix, matrix);
                        *word = Some(match *word {
                            None => column,
                            Some(below) => {
                                let up = self.b.ins().ishl_imm_u(column, (part * ROWS) as i64);
                                self.b.ins().bor(below, up)
                            }
                        });
                    }
                }
                let words: Vec<Value> = words.into_iter().flatten().collect();
                self.strip.of_bits.insert((id, group), words.clone());
                words
            }
        };
        let first = (strip * STRIP % LANES) as usize;
        self.side_by_side(&words[first..first + STRIP as usize], 32)
    }

    fn two(&mut self, id: Id, strip: u32, op: fn(&mut Self, Value, Value) -> Value) -> Part {
        let node = self.flat.node(id);
        let own = container(node.width);
        let (a, b) = (self.part(node.args[0], strip, own), self.part(node.args[1], strip, own));
        a.into_iter().zip(b).map(|(a, b)| op(self, a, b)).collect()
    }

    fn choose(&mut self, selector: &[Value], on: Id, off: Id, strip: u32, own: u32) -> Part {
        let zero = |id: Id| self.flat.constant(id) == Some(0);
        let (no_on, no_off) = (zero(on), zero(off));
        let (on, off) = (self.part(on, strip, own), self.part(off, strip, own));
        let choice = |lower: &mut Self, k: usize| match (no_on, no_off) {
            (_, true) => lower.b.ins().band(selector[k], on[k]),
            (true, _) => lower.b.ins().band_not(off[k], selector[k]),
            _ => lower.b.ins().bitselect(selector[k], on[k], off[k]),
        };
        (0..selector.len()).map(|k| choice(self, k)).collect()
    }

    /// All bits of each lane on where the comparison holds, in the container of what is compared.
    fn comparison(&mut self, id: Id, strip: u32) -> Part {
        let node = self.flat.node(id);
        let width = self.width(node.args[0]);
        let own = container(width);
        let (mut a, mut b) = (self.part(node.args[0], strip, own), self.part(node.args[1], strip, own));
        let condition = match node.op {
            Op::Eq => IntCC::Equal,
            Op::Ne => IntCC::NotEqual,
            // Narrow values are not negative.
            Op::Lt if width < own => IntCC::SignedLessThan,
            Op::Lt => IntCC::UnsignedLessThan,
            _ => IntCC::SignedLessThan,
        };
        if node.op == Op::LtSigned && width < own {
            let up = |lower: &mut Self, v| lower.b.ins().ishl_imm_u(v, i64::from(own - width));
            a = a.into_iter().map(|v| up(self, v)).collect();
            b = b.into_iter().map(|v| up(self, v)).collect();
        }
        a.into_iter().zip(b).map(|(a, b)| self.b.ins().icmp(condition, a, b)).collect()
    }

    /// A shift by the same amount in all lanes.
    fn shift_all(&mut self, id: Id, strip: u32) -> Part {
        let node = self.flat.node(id);
        let (width, own) = (node.width, container(node.width));
        let amount_width = self.width(node.args[1]);
        let amount = self.value(node.args[1]);
        let part = self.part(node.args[0], strip, own);
        // Whether the amount can be too large for the machine's shift.
        let far = amount_width >= 32 || (1 << amount_width) > own;
        let ty = self.b.func.dfg.value_type(amount);
        if node.op == Op::Sar {
            let part = self.signed_part(part, width);
            let most = self.constant(u64::from(own) - 1, ty);
            let amount = if far { self.b.ins().umin(amount, most) } else { amount };
            let part = part.into_iter().map(|v| self.b.ins().sshr(v, amount)).collect();
            return self.mask_part(part, width);
        }
        let left = node.op == Op::Shl;
        let shifted: Part = part
            .into_iter()
            .map(|v| if left { self.b.ins().ishl(v, amount) } else { self.b.ins().ushr(v, amount) })
            .collect();
        let shifted = if left { self.mask_part(shifted, width) } else { shifted };
        if !far {
            return shifted;
        }
        let limit = self.constant(u64::from(width), ty);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, limit);
        let (one, all) = if own == 32 { (I32, I32X4) } else { (I64, I64X2) };
        let ones = self.b.ins().bmask(one, inside);
        let ones = self.b.ins().splat(all, ones);
        shifted.into_iter().map(|v| self.b.ins().band(v, ones)).collect()
    }

    /// A shift to the left by an amount in each lane, as a product with a power of two, which is made as the exponent of a
    /// floating-point number.
    fn shift_left(&mut self, id: Id, strip: u32) -> Part {
        const EXPONENT: i64 = 23;
        const ONE: u64 = 127 << EXPONENT;
        let node = self.flat.node(id);
        let (width, amount_width) = (node.width, self.width(node.args[1]));
        let amount = self.part(node.args[1], strip, 32)[0];
        let exponent = self.b.ins().ishl_imm_u(amount, EXPONENT);
        let one = self.splat(ONE, 32)[0];
        let power = self.b.ins().iadd(exponent, one);
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        let power = self.b.ins().bitcast(F32X4, flags, power);
        // 2^31 is out of range, for which the machine gives its bits all the same.
        let power = self.b.ins().x86_cvtt2dq(I32X4, power);
        let shifted = if self.flat.constant(node.args[0]) == Some(1) {
            power
        } else {
            let value = self.part(node.args[0], strip, 32)[0];
            self.b.ins().imul(value, power)
        };
        let shifted = self.mask_part(vec![shifted], width);
        if amount_width <= 5 {
            return shifted;
        }
        let limit = self.splat(u64::from(width), 32)[0];
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, limit);
        vec![self.b.ins().band(shifted[0], inside)]
    }

    /// The values of a node in the lanes of a strip, each computed by itself.
    fn lane_by_lane(&mut self, id: Id, strip: u32) -> Vec<Value> {
        let node = self.flat.node(id);
        let lanes = strip * STRIP..((strip + 1) * STRIP).min(node.lanes);
        let widths: Vec<u32> = node.args.iter().map(|&a| self.width(a)).collect();
        lanes
            .map(|lane| match &node.op {
                Op::Gather => self.value(node.args[lane as usize]),
                Op::Read { memory, low, .. } => self.load_lane(id, *memory, *low, lane),
                op => {
                    let args: Vec<Value> = node.args.iter().map(|&a| self.lane_of(a, lane)).collect();
                    self.apply(op, node.width, &args, &widths)
                }
            })
            .collect()
    }

    /// A strip from the values of its lanes; the last strip may have fewer.
    pub fn side_by_side(&mut self, lanes: &[Value], container: u32) -> Part {
        let (ty, each) = if container == 32 { (I32X4, 4) } else { (I64X2, 2) };
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

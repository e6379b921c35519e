//! A strip of a value: made of constants, copies and packed bits, widened, narrowed and masked.

use super::Part;
use crate::compiled::layout::STRIP;
use crate::compiled::lower::Lower;
use crate::flat::{Id, Op, container};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I32, I32X4, I64};
use cranelift_codegen::ir::{ConstantData, Endianness, InstBuilder, MemFlagsData, Type, Value};
use heddle_hdl::bits::low_mask;

impl Lower<'_, '_> {
    pub fn vconst(&mut self, bytes: Vec<u8>, ty: Type) -> Value {
        let handle = self.b.func.dfg.constants.insert(ConstantData::from(bytes));
        self.b.ins().vconst(ty, handle)
    }

    /// Constants of a strip.
    pub(super) fn constants(&mut self, value: impl Fn(u32) -> u64, container: u32) -> Part {
        let (bytes, ty) = (container as usize / 8, self.vector(container));
        let values: Vec<u64> = (0..self.strip.size).map(value).collect();
        let vectors = values.chunks(ty.lane_count() as usize);
        vectors
            .map(|lanes| self.vconst(lanes.iter().flat_map(|v| v.to_le_bytes()[..bytes].to_vec()).collect(), ty))
            .collect()
    }

    pub fn splat(&mut self, value: u64, container: u32) -> Part {
        self.constants(|_| value, container)
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
                let first = strip * self.strip.size;
                self.constants(|k| values.get((first + k) as usize).copied().unwrap_or(0), own)
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
        let (one, all) = (if container == 32 { I32 } else { I64 }, self.vector(container));
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
            let ty = self.vector(container);
            let all = self.b.ins().splat(ty, ones);
            return vec![all; container as usize / 32];
        }
        if matches!(self.flat.node(id).op, Op::Consts(_)) {
            let Op::Consts(bits) = &self.flat.node(id).op else { unreachable!("as just seen") };
            let first = strip * self.strip.size;
            return self
                .constants(|k| if bits.get((first + k) as usize) == Some(&1) { u64::MAX } else { 0 }, container);
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
        let first = strip * self.strip.size;
        let (half, first) = (first / 32, first % 32);
        let all = match self.strip.halves.get(&(packed, half)) {
            Some(&all) => all,
            None => {
                let down = if half > 0 { self.b.ins().ushr_imm_u(packed, 32) } else { packed };
                let down = self.convert(down, I32);
                let ty = self.vector(32);
                let all = self.b.ins().splat(ty, down);
                self.strip.halves.insert((packed, half), all);
                all
            }
        };
        let bits = self.constants(|k| 1 << (first + k), 32)[0];
        let chosen = self.b.ins().band(all, bits);
        let ones = self.b.ins().icmp(IntCC::Equal, chosen, bits);
        if container == 32 { vec![ones] } else { self.widen(ones, true) }
    }

    /// From 32 to 64 bits per lane.
    pub(super) fn widen(&mut self, vector: Value, signed: bool) -> Part {
        if signed {
            return vec![self.b.ins().swiden_low(vector), self.b.ins().swiden_high(vector)];
        }
        vec![self.b.ins().uwiden_low(vector), self.b.ins().uwiden_high(vector)]
    }

    /// The lower 32 bits of each lane of 64.
    pub(super) fn narrow(&mut self, part: &[Value]) -> Value {
        if self.strip.size > STRIP {
            let low = self.splat(u64::from(u32::MAX), 64);
            let (a, b) = (self.b.ins().band(part[0], low[0]), self.b.ins().band(part[1], low[1]));
            return self.b.ins().uunarrow(a, b);
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        let (low, high) = (self.b.ins().bitcast(I8X16, flags, part[0]), self.b.ins().bitcast(I8X16, flags, part[1]));
        let order: Vec<u8> = (0..4).flat_map(|lane| (0..4).map(move |byte| lane * 8 + byte)).collect();
        let order = self.b.func.dfg.immediates.push(ConstantData::from(order));
        let bytes = self.b.ins().shuffle(low, high, order);
        self.b.ins().bitcast(I32X4, flags, bytes)
    }

    /// Without bits above the width.
    pub(super) fn mask_part(&mut self, part: Part, width: u32) -> Part {
        if width == container(width) {
            return part;
        }
        let mask = self.splat(low_mask(width), container(width));
        part.into_iter().zip(mask).map(|(v, mask)| self.b.ins().band(v, mask)).collect()
    }

    /// With copies of the sign above the width.
    pub(super) fn signed_part(&mut self, part: Part, width: u32) -> Part {
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
                let high = self.b.ins().ishl_imm_u(high, i64::from(self.strip.size / 2));
                self.b.ins().bor(low, high)
            }
        }
    }

    /// The bits that a node of 1 bit per lane has in a strip, packed.
    pub(super) fn bits_of(&mut self, id: Id, strip: u32) -> Value {
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
}

//! Parts of values, and values put together or extended.

use super::{Builder, NARROW, PACKED_AT_ONCE, UNIFIED_DEPTH};
use crate::flat::{Id, Op, aligned};

/// Of how many comparisons in lanes a word is put together by their copies.
const LEAST_COMPARISONS: usize = 8;

impl Builder {
    pub fn slice(&mut self, a: Id, low: u32, width: u32) -> Id {
        let all = self.width(a);
        if width == all {
            return a;
        }
        let args = self.args(a).to_vec();
        match *self.op(a) {
            // A bit that is looked up in each lane.
            Op::Shr if width == 1 && low == 0 && self.lanes(args[1]) > 1 => {
                let one = self.constant(1, all);
                let place = self.shl(one, args[1]);
                let found = self.and(args[0], place);
                self.any(found)
            }
            // Copies of a bit.
            ref op if op.is_comparison() => {
                let op = op.clone();
                self.node(op, width, &args)
            }
            Op::Reverse if width == 1 => self.slice(args[0], all - 1 - low, 1),
            Op::Add | Op::Mul => match self.of_narrow_lanes(a, low, width) {
                Some(narrow) => narrow,
                None => self.node(Op::Slice(low), width, &[a]),
            },
            Op::Slice(inner) => self.slice(args[0], low + inner, width),
            Op::Cat => {
                let mut parts = Vec::new();
                let mut start = 0;
                for part in args {
                    let end = start + self.width(part);
                    let (from, to) = (low.max(start), (low + width).min(end));
                    if from < to {
                        parts.push(self.slice(part, from - start, to - from));
                    }
                    start = end;
                }
                self.cat(&parts)
            }
            Op::ZExt | Op::SExt => {
                let signed = *self.op(a) == Op::SExt;
                let inner = self.width(args[0]);
                if low + width <= inner {
                    self.slice(args[0], low, width)
                } else if low >= inner && !signed {
                    self.constant(0, width)
                } else {
                    let low = if signed { low.min(inner - 1) } else { low };
                    let part = self.slice(args[0], low, inner - low);
                    if signed { self.sext(part, width) } else { self.zext(part, width) }
                }
            }
            Op::Cell { cell, lane, low: base }
                if all == 64 && self.lanes(a) == 1 && matches!(width, 8 | 16 | 32) && aligned(base + low, width) =>
            {
                self.node(Op::Cell { cell, lane, low: base + low }, width, &[])
            }
            _ => self.node(Op::Slice(low), width, &[a]),
        }
    }

    /// Side by side, the first lowest; at most 64 bits.
    pub fn cat(&mut self, parts: &[Id]) -> Id {
        let mut flat: Vec<Id> = Vec::new();
        for &part in parts {
            let pieces = match self.op(part) {
                Op::Cat => self.args(part).to_vec(),
                Op::ZExt => {
                    let inner = self.args(part)[0];
                    let zeros = self.constant(0, self.width(part) - self.width(inner));
                    let inner = if *self.op(inner) == Op::Cat { self.args(inner).to_vec() } else { vec![inner] };
                    [inner, vec![zeros]].concat()
                }
                _ => vec![part],
            };
            for piece in pieces {
                match flat.last().and_then(|&last| self.joined(last, piece)) {
                    Some(joined) => *flat.last_mut().expect("not empty") = joined,
                    None => flat.push(piece),
                }
            }
        }
        let width: u32 = flat.iter().map(|&p| self.width(p)).sum();
        let reversed = |first, k| u32::wrapping_sub(first, k);
        if let [first, _, ..] = flat[..]
            && flat.iter().all(|&p| self.width(p) == 1)
            && let Op::Slice(high) = *self.op(first)
            && self.neighbours(&flat, high, reversed)
        {
            let straight = self.slice(self.args(first)[0], high + 1 - width, width);
            return self.node(Op::Reverse, width, &[straight]);
        }
        if let Some(word) = self.of_comparisons(&flat) {
            return word;
        }
        let one_bit_each = flat.len() > 1 && flat.len() == width as usize;
        if one_bit_each
            && self.vectors
            && flat.iter().all(|&p| self.lanes(p) == 1)
            && let Some(whole) = self.unified(&flat, UNIFIED_DEPTH)
        {
            return self.pack(whole, width);
        }
        if flat.len() > 1 && self.is(flat[flat.len() - 1], 0) {
            flat.pop();
            let rest = self.cat(&flat);
            return self.zext(rest, width);
        }
        if let [one] = flat[..] { one } else { self.node(Op::Cat, width, &flat) }
    }

    /// A word in each lane of many bits that are comparisons: their copies where each one's bit is, ored, so that no bits
    /// need be packed and no rows and columns exchanged.
    fn of_comparisons(&mut self, bits: &[Id]) -> Option<Id> {
        let is_one =
            |&bit: &Id| self.width(bit) == 1 && self.lanes(bit) > PACKED_AT_ONCE && self.op(bit).is_comparison();
        if bits.len() < LEAST_COMPARISONS || !bits.iter().all(is_one) {
            return None;
        }
        let width = bits.len() as u32;
        if width > NARROW {
            let parts: Vec<Id> = bits.chunks(NARROW as usize).map(|part| self.cat(part)).collect();
            return Some(self.node(Op::Cat, width, &parts));
        }
        let mut word = self.constant(0, width);
        for (k, &bit) in (0..).zip(bits) {
            let (copies, there) = (self.sext(bit, width), self.constant(1 << k, width));
            let alone = self.and(copies, there);
            word = self.or(word, alone);
        }
        Some(word)
    }

    /// Two neighbours as one value, if they are constants or neighbours in one place.
    fn joined(&mut self, low: Id, high: Id) -> Option<Id> {
        let (low_width, high_width) = (self.width(low), self.width(high));
        let width = low_width + high_width;
        if let (Some(l), Some(h)) = (self.value(low), self.value(high)) {
            return Some(self.constant(l | h << low_width, width));
        }
        let origin = |id: Id| match self.op(id) {
            Op::Slice(from) => (self.args(id)[0], *from),
            _ => (id, 0),
        };
        let ((source, from), (other, next)) = (origin(low), origin(high));
        if source == other && next == from + low_width {
            return Some(self.slice(source, from, width));
        }
        match (self.op(low).clone(), self.op(high).clone()) {
            (Op::Cell { cell, lane, low: l }, Op::Cell { cell: c, lane: other, low: h })
                if (cell, lane) == (c, other)
                    && (self.lanes(low), self.lanes(high)) == (1, 1)
                    && h == l + low_width
                    && matches!(width, 8 | 16 | 32 | 64)
                    && l.is_multiple_of(width) =>
            {
                Some(self.node(Op::Cell { cell, lane, low: l }, width, &[]))
            }
            (Op::Read { memory, lane, low: l }, Op::Read { memory: m, lane: other, low: h })
                if (memory, lane) == (m, other)
                    && (self.lanes(low), self.lanes(high)) == (1, 1)
                    && h == l + low_width
                    && matches!(width, 8 | 16 | 32 | 64)
                    && l.is_multiple_of(width)
                    && self.args(low) == self.args(high) =>
            {
                let args = self.args(low).to_vec();
                Some(self.node(Op::Read { memory, lane, low: l }, width, &args))
            }
            _ => None,
        }
    }

    pub fn zext(&mut self, a: Id, width: u32) -> Id {
        match *self.op(a) {
            _ if self.width(a) == width => a,
            Op::ZExt => self.zext(self.args(a)[0], width),
            _ => self.node(Op::ZExt, width, &[a]),
        }
    }

    pub fn sext(&mut self, a: Id, width: u32) -> Id {
        match *self.op(a) {
            _ if self.width(a) == width => a,
            Op::SExt => self.sext(self.args(a)[0], width),
            Op::ZExt => self.zext(a, width),
            ref op if op.is_comparison() && self.lanes(a) > 1 => {
                let (op, args) = (op.clone(), self.args(a).to_vec());
                self.node(op, width, &args)
            }
            // A bit in each lane need not be packed to be copied.
            Op::Slice(low) if self.lanes(a) > PACKED_AT_ONCE && self.width(a) == 1 => {
                let whole = self.args(a)[0];
                let first = low / NARROW * NARROW;
                let part = self.slice(whole, first, NARROW.min(self.width(whole) - first));
                let bit = self.constant(1 << (low - first), self.width(part));
                let alone = self.and(part, bit);
                self.node(Op::Eq, width, &[alone, bit])
            }
            _ => self.node(Op::SExt, width, &[a]),
        }
    }
}

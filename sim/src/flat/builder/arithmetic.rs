//! Arithmetic, shifts and comparisons.

use super::{Builder, NARROW};
use crate::flat::{Id, Op};
use heddle_hdl::bits::low_mask;

impl Builder {
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.sorted(a, b);
        if self.bits_in_lanes(&[a, b]) {
            return self.xor(a, b);
        }
        if self.vectors
            && let (Some((below, a)), Some((other, b))) = (self.above_a_bit(a), self.above_a_bit(b))
            && below == other
        {
            let (zero, carry) = (self.constant(0, 1), self.zext(below, self.width(a)));
            let sum = self.add(a, b);
            let sum = self.add(sum, carry);
            return self.cat(&[zero, sum]);
        }
        if self.is(b, 0) { a } else { self.node(Op::Add, self.width(a), &[a, b]) }
    }

    /// A value as its lowest bit and what is above it, if that bit was put there by itself: as a carry into a sum is.
    fn above_a_bit(&mut self, a: Id) -> Option<(Id, Id)> {
        let (width, args) = (self.width(a), self.args(a).to_vec());
        match self.op(a) {
            Op::Cat if self.width(args[0]) == 1 => Some((args[0], self.cat(&args[1..]))),
            Op::ZExt if self.width(args[0]) == 1 => Some((args[0], self.constant(0, width - 1))),
            Op::ZExt => {
                let (bit, above) = self.above_a_bit(args[0])?;
                Some((bit, self.zext(above, width - 1)))
            }
            _ => None,
        }
    }

    /// Bits of a sum or product of more than 32 bits per lane that can be made in lanes half as wide: those up to 32,
    /// and of a sum the carry out of them.
    pub(super) fn of_narrow_lanes(&mut self, a: Id, low: u32, width: u32) -> Option<Id> {
        let [x, y] = self.args(a)[..] else { return None };
        let (op, all) = (self.op(a).clone(), self.width(a));
        if self.lanes(a) == 1 || all <= NARROW {
            return None;
        }
        match op {
            Op::Add | Op::Mul if low + width <= NARROW => {
                let [x, y] = [x, y].map(|operand| self.slice(operand, 0, NARROW));
                let narrow = if op == Op::Add { self.add(x, y) } else { self.mul(x, y) };
                Some(self.slice(narrow, low, width))
            }
            Op::Add if low == NARROW && all == NARROW + 1 => {
                let is_narrow = |b: &Builder, id: Id, most: u32| {
                    *b.op(id) == Op::ZExt && b.width(b.args(id)[0]) <= most
                        || b.value(id).is_some_and(|v| v >> most == 0)
                };
                // With a carry in: a sum of two and a bit.
                let (x, y) = match (self.op(x), self.op(y)) {
                    (Op::Add, _) if is_narrow(self, y, 1) => (self.args(x)[0], self.args(x)[1]),
                    (_, Op::Add) if is_narrow(self, x, 1) => (self.args(y)[0], self.args(y)[1]),
                    _ => (x, y),
                };
                if !is_narrow(self, x, NARROW) || !is_narrow(self, y, NARROW) {
                    return None;
                }
                // There is one out of the highest place if both are on there, or one of them is and the sum is not.
                let [x, y, sum] = [x, y, a].map(|id| self.slice(id, 0, NARROW));
                let (both, either) = (self.and(x, y), self.or(x, y));
                let carried = self.and_not(either, sum);
                let carry = self.or(both, carried);
                Some(self.slice(carry, NARROW - 1, 1))
            }
            _ => None,
        }
    }

    pub fn sub(&mut self, a: Id, b: Id) -> Id {
        match () {
            _ if self.bits_in_lanes(&[a, b]) => self.xor(a, b),
            _ if self.is(b, 0) => a,
            _ if a == b => self.constant(0, self.width(a)),
            _ => self.node(Op::Sub, self.width(a), &[a, b]),
        }
    }

    pub fn mul(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.sorted(a, b);
        if self.bits_in_lanes(&[a, b]) {
            return self.and(a, b);
        }
        match self.value(b) {
            Some(0) => b,
            Some(1) => a,
            _ => self.node(Op::Mul, self.width(a), &[a, b]),
        }
    }

    /// The upper 64 bits of the product of 64-bit values.
    pub fn mul_high(&mut self, a: Id, b: Id, signed: bool) -> Id {
        let (a, b) = self.sorted(a, b);
        match self.value(b) {
            Some(0) => b,
            Some(1) if !signed => self.constant(0, 64),
            _ => self.node(if signed { Op::MulHighSigned } else { Op::MulHigh }, 64, &[a, b]),
        }
    }

    pub fn shl(&mut self, a: Id, amount: Id) -> Id {
        let width = self.width(a);
        if self.bits_in_lanes(&[a, amount]) {
            let moved = self.any(amount);
            return self.and_not(a, moved);
        }
        match self.value(amount) {
            Some(0) => a,
            Some(n) if n >= width as u64 => self.constant(0, width),
            Some(n) => {
                let (zeros, rest) = (self.constant(0, n as u32), self.slice(a, 0, width - n as u32));
                self.cat(&[zeros, rest])
            }
            None => self.node(Op::Shl, width, &[a, amount]),
        }
    }

    pub fn shr(&mut self, a: Id, amount: Id) -> Id {
        let width = self.width(a);
        if self.bits_in_lanes(&[a, amount]) {
            let moved = self.any(amount);
            return self.and_not(a, moved);
        }
        match self.value(amount) {
            Some(n) if n >= width as u64 => self.constant(0, width),
            Some(n) => {
                let rest = self.slice(a, n as u32, width - n as u32);
                self.zext(rest, width)
            }
            None => self.node(Op::Shr, width, &[a, amount]),
        }
    }

    pub fn sar(&mut self, a: Id, amount: Id) -> Id {
        let width = self.width(a);
        if self.bits_in_lanes(&[a, amount]) {
            return a;
        }
        match self.value(amount) {
            Some(n) => {
                let n = n.min(width as u64 - 1) as u32;
                let rest = self.slice(a, n, width - n);
                self.sext(rest, width)
            }
            None => self.node(Op::Sar, width, &[a, amount]),
        }
    }

    pub fn eq(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.sorted(a, b);
        if a == b {
            return self.constant(1, 1);
        }
        if self.bits_in_lanes(&[a, b]) {
            let differ = self.xor(a, b);
            return self.not(differ);
        }
        if let Some(value) = self.value(b) {
            if self.width(a) == 1 {
                return if value == 1 { a } else { self.not(a) };
            }
            if *self.op(a) == Op::ZExt {
                let inner = self.args(a)[0];
                if value > low_mask(self.width(inner)) {
                    return self.constant(0, 1);
                }
                let value = self.constant(value, self.width(inner));
                return self.eq(inner, value);
            }
        }
        self.node(Op::Eq, 1, &[a, b])
    }

    pub fn ne(&mut self, a: Id, b: Id) -> Id {
        let equal = self.eq(a, b);
        self.not(equal)
    }

    /// Whether any bit is set.
    pub fn any(&mut self, a: Id) -> Id {
        let args = self.args(a).to_vec();
        match self.op(a) {
            Op::ZExt | Op::SExt => return self.any(args[0]),
            // What counts only under a condition: the condition first.
            Op::Mux if self.is(args[2], 0) => {
                let any = self.any(args[1]);
                return self.and(args[0], any);
            }
            Op::Mux if self.is(args[1], 0) => {
                let any = self.any(args[2]);
                return self.and_not(any, args[0]);
            }
            Op::Pack if *self.op(args[0]) == Op::And => {
                let bits = self.args(args[0]).to_vec();
                if let (1, lanes) | (lanes, 1) = (self.lanes(bits[0]), self.lanes(bits[1])) {
                    let (common, each) = if self.lanes(bits[0]) == 1 { (bits[0], bits[1]) } else { (bits[1], bits[0]) };
                    let packed = self.pack(each, lanes);
                    let any = self.any(packed);
                    return self.and(common, any);
                }
            }
            _ => {}
        }
        let zero = self.constant(0, self.width(a));
        self.ne(a, zero)
    }

    pub fn lt(&mut self, a: Id, b: Id) -> Id {
        if self.bits_in_lanes(&[a, b]) {
            return self.and_not(b, a);
        }
        if a == b || self.is(b, 0) { self.constant(0, 1) } else { self.node(Op::Lt, 1, &[a, b]) }
    }

    pub fn lt_signed(&mut self, a: Id, b: Id) -> Id {
        if self.bits_in_lanes(&[a, b]) {
            return self.and_not(a, b);
        }
        if a == b { self.constant(0, 1) } else { self.node(Op::LtSigned, 1, &[a, b]) }
    }

    pub fn parity(&mut self, a: Id) -> Id {
        if self.width(a) == 1 { a } else { self.node(Op::Parity, 1, &[a]) }
    }

    /// How many bits are set, `width` bits wide.
    pub fn count_ones(&mut self, a: Id, width: u32) -> Id {
        if self.width(a) == 1 { self.zext(a, width) } else { self.node(Op::CountOnes, width, &[a]) }
    }
}

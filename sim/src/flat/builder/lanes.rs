//! Values in lanes.

use super::{Builder, UNIFIED_DEPTH};
use crate::flat::{Id, Op};
use heddle_hdl::bits::low_mask;

impl Builder {
    /// One value of one lane each, as one with lanes.
    pub fn gather(&mut self, values: &[Id]) -> Id {
        let first = values[0];
        let (width, lanes) = (self.width(first), values.len() as u32);
        if values.iter().all(|&v| v == first) {
            return first;
        }
        if let Some(constants) = values.iter().map(|&v| self.value(v)).collect() {
            return self.consts(constants, width);
        }
        if let Some(whole) = self.unified(values, UNIFIED_DEPTH) {
            return whole;
        }
        if width == 1 {
            let packed = self.cat(values);
            return self.unpack(packed);
        }
        self.with_lanes(Op::Gather, width, lanes, values)
    }

    /// Values that are the lanes of one value, in order, or computed from such in the same way by at most `depth`
    /// steps.
    pub(super) fn unified(&mut self, values: &[Id], depth: u32) -> Option<Id> {
        let (first, lanes) = (values[0], values.len() as u32);
        let (op, width) = (self.op(first).clone(), self.width(first));
        match op {
            Op::Lane(0) => {
                let whole = self.args(first)[0];
                let in_order = |(k, &v): (u32, &Id)| {
                    *self.op(v) == Op::Lane(k) && self.args(v)[0] == whole && self.width(v) == width
                };
                (self.lanes(whole) == lanes && (0..).zip(values).all(in_order)).then_some(whole)
            }
            Op::Cell { cell, lane, low } => {
                let shape = self.shapes[cell as usize];
                let all = shape.lanes == lanes && (width == shape.width || width == 64);
                let are = |at: &dyn Fn(u32) -> u32| {
                    all && (0..).zip(values).all(|(k, &v)| *self.op(v) == Op::Cell { cell, lane: at(k), low })
                };
                // Reversed, only as a step on the way to something.
                let is_step = depth < UNIFIED_DEPTH && width > 1;
                match lane {
                    0 if are(&|k| k) => Some(self.with_lanes(op.clone(), width, lanes, &[])),
                    _ if is_step && are(&|k| lanes - 1 - k) => Some(self.with_lanes(Op::Gather, width, lanes, values)),
                    _ => None,
                }
            }
            Op::Slice(low) if width == 1 && self.neighbours(values, low, |first, k| first + k) => {
                let packed = self.slice(self.args(first)[0], low, lanes);
                Some(self.unpack(packed))
            }
            Op::Pack => self.transposed(values),
            Op::Const(_) | Op::Read { .. } | Op::Lane(_) | Op::Pick | Op::Case(_) => None,
            _ if depth == 0 => None,
            _ => {
                let count = self.args(first).len();
                let alike = |&v: &Id| *self.op(v) == op && self.args(v).len() == count && self.width(v) == width;
                if !values.iter().all(alike) {
                    return None;
                }
                let given: Vec<Vec<Id>> =
                    (0..count).map(|k| values.iter().map(|&v| self.args(v)[k]).collect()).collect();
                let has_common = given.iter().any(|column| column.iter().all(|&v| v == column[0]));
                let columns = if has_common { given } else { self.common_operand(values).unwrap_or(given) };
                let same_widths = |column: &Vec<Id>| column.iter().all(|&v| self.width(v) == self.width(column[0]));
                if !columns.iter().all(same_widths) {
                    return None;
                }
                let args: Vec<Id> = columns
                    .iter()
                    .map(|column| {
                        if column.iter().all(|&v| v == column[0]) {
                            return Some(column[0]);
                        }
                        match column.iter().map(|&v| self.value(v)).collect() {
                            Some(constants) => Some(self.consts(constants, self.width(column[0]))),
                            None => self.unified(column, depth - 1),
                        }
                    })
                    .collect::<Option<_>>()?;
                self.rebuilt(&op, width, &args)
            }
        }
    }

    /// The operands, column by column, of operations whose operands may change places, if one of them is in all.
    fn common_operand(&self, values: &[Id]) -> Option<Vec<Vec<Id>>> {
        if !matches!(self.op(values[0]), Op::And | Op::Or | Op::Xor | Op::Add) {
            return None;
        }
        let common = self.args(values[0]).iter().find(|&common| values.iter().all(|&v| self.args(v).contains(common)));
        let &common = common?;
        let other = |&v: &Id| match *self.args(v) {
            [a, b] if a == common => b,
            [a, _] => a,
            _ => unreachable!("two operands"),
        };
        Some(vec![vec![common; values.len()], values.iter().map(other).collect()])
    }

    /// Values of which the k-th has, packed, bit k of `1 << amount` in every lane: bit j of lane k of the result is on where
    /// the amount in lane j is k.
    fn transposed(&mut self, values: &[Id]) -> Option<Id> {
        let bit = self.args(values[0])[0];
        let Op::Slice(_) = self.op(bit) else { return None };
        let whole = self.args(bit)[0];
        let is_bit = |(k, &v): (u32, &Id)| {
            let is = |id: Id, op: Op| *self.op(id) == op;
            is(v, Op::Pack) && is(self.args(v)[0], Op::Slice(k)) && self.args(self.args(v)[0])[0] == whole
        };
        if *self.op(whole) != Op::Shl || !(0..).zip(values).all(is_bit) {
            return None;
        }
        let (shifted, amount) = (self.args(whole)[0], self.args(whole)[1]);
        let fits = low_mask(self.width(amount)) >= values.len() as u64 - 1;
        if self.value(shifted) != Some(1) || self.lanes(amount) != self.width(values[0]) || !fits {
            return None;
        }
        let numbers = self.consts((0..values.len() as u64).collect(), self.width(amount));
        let rows: Vec<Id> = (0..self.lanes(amount))
            .map(|lane| {
                let amount = self.lane(amount, lane);
                self.eq(amount, numbers)
            })
            .collect();
        Some(self.cat(&rows))
    }

    /// Whether these are slices of one value of one lane, the k-th from `at(low, k)` on.
    pub(super) fn neighbours(&self, values: &[Id], low: u32, at: impl Fn(u32, u32) -> u32) -> bool {
        let source = self.args(values[0])[0];
        let is_next = |(k, &v): (u32, &Id)| *self.op(v) == Op::Slice(at(low, k)) && self.args(v)[0] == source;
        self.lanes(source) == 1 && (0..).zip(values).all(is_next)
    }

    /// The or of values of one lane each, if they are the lanes of one value.
    pub fn or_lanes(&mut self, values: &[Id]) -> Option<Id> {
        let whole = self.unified(values, UNIFIED_DEPTH)?;
        if self.lanes(whole) == 1 {
            return Some(whole);
        }
        if self.width(whole) == 1 {
            let packed = self.pack(whole, values.len() as u32);
            return Some(self.any(packed));
        }
        Some(self.with_lanes(Op::OrLanes, self.width(whole), 1, &[whole]))
    }

    /// The operation on operands of which some have lanes.
    fn rebuilt(&mut self, op: &Op, width: u32, args: &[Id]) -> Option<Id> {
        Some(match (op, args) {
            (Op::Not, &[a]) => self.not(a),
            (Op::And, &[a, b]) => self.and(a, b),
            (Op::AndNot, &[a, b]) => self.and_not(a, b),
            (Op::Or, &[a, b]) => self.or(a, b),
            (Op::Xor, &[a, b]) => self.xor(a, b),
            (Op::Add, &[a, b]) => self.add(a, b),
            (Op::Sub, &[a, b]) => self.sub(a, b),
            (Op::Shl, &[a, b]) => self.shl(a, b),
            (Op::Eq, &[a, b]) => self.eq(a, b),
            (Op::Ne, &[a, b]) => self.ne(a, b),
            (Op::Lt, &[a, b]) => self.lt(a, b),
            (Op::LtSigned, &[a, b]) => self.lt_signed(a, b),
            (Op::Mux, &[selector, on, off]) => self.mux(selector, on, off),
            (Op::Slice(low), &[a]) => self.slice(a, *low, width),
            (Op::ZExt, &[a]) => self.zext(a, width),
            (Op::SExt, &[a]) => self.sext(a, width),
            (Op::Cat, parts) => self.cat(parts),
            _ => return None,
        })
    }

    /// One bit per lane as one value of one lane; what is the same in all lanes is copied.
    pub fn pack(&mut self, a: Id, lanes: u32) -> Id {
        debug_assert_eq!(self.width(a), 1);
        match self.op(a) {
            _ if self.lanes(a) == 1 => self.sext(a, lanes),
            Op::Unpack => self.args(a)[0],
            Op::Consts(values) => {
                let value = values.iter().rev().fold(0, |packed, bit| packed << 1 | bit);
                self.constant(value, lanes)
            }
            _ => self.with_lanes(Op::Pack, lanes, 1, &[a]),
        }
    }

    /// Each bit of a value of one lane as one lane.
    pub fn unpack(&mut self, a: Id) -> Id {
        let lanes = self.width(a);
        debug_assert!(lanes > 1 && self.lanes(a) == 1);
        match *self.op(a) {
            Op::Pack => self.args(a)[0],
            Op::SExt if self.width(self.args(a)[0]) == 1 => self.args(a)[0],
            Op::Const(value) => self.consts((0..lanes).map(|k| value >> k & 1).collect(), 1),
            _ => self.with_lanes(Op::Unpack, 1, lanes, &[a]),
        }
    }

    /// The value of one lane.
    pub fn lane(&mut self, a: Id, lane: u32) -> Id {
        let width = self.width(a);
        match self.op(a).clone() {
            _ if self.lanes(a) == 1 => a,
            Op::Consts(values) => self.constant(values[lane as usize], width),
            Op::Gather => self.args(a)[lane as usize],
            Op::Cell { cell, low, .. } => self.with_lanes(Op::Cell { cell, lane, low }, width, 1, &[]),
            _ if width == 1 => {
                let packed = self.pack(a, self.lanes(a));
                self.slice(packed, lane, 1)
            }
            _ => self.with_lanes(Op::Lane(lane), width, 1, &[a]),
        }
    }

    /// Of a value in so many lanes, the one of the lane that the index (of one lane) names, 0 if there is none.
    pub fn pick(&mut self, a: Id, lanes: u32, index: Id) -> Id {
        let (width, index_width) = (self.width(a), self.width(index));
        let zero = self.constant(0, width);
        match self.value(index) {
            Some(lane) if lane >= lanes as u64 => zero,
            Some(lane) => self.lane(a, lane as u32),
            None if self.lanes(a) > 1 => self.with_lanes(Op::Pick, width, 1, &[a, index]),
            None if low_mask(index_width) < lanes as u64 => a,
            None => {
                let limit = self.constant(lanes as u64, index_width);
                let inside = self.lt(index, limit);
                self.mux(inside, a, zero)
            }
        }
    }

    /// Whether these are bits of which some have lanes: operations on them are made of logic, which is the same on
    /// packed bits.
    pub(super) fn bits_in_lanes(&self, args: &[Id]) -> bool {
        self.width(args[0]) == 1 && args.iter().any(|&a| self.lanes(a) > 1)
    }
}

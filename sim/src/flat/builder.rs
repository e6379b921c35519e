//! Makes nodes: each once, with constants folded and identities applied.

use super::cells::{Cells, Shape};
use super::{Id, Node, Op, aligned, container};
use heddle_hdl::bits::low_mask;
use std::collections::HashMap;

/// How long the computations are that are found to be the same in every lane where one value is made of many.
const UNIFIED_DEPTH: u32 = 6;

pub struct Builder {
    pub nodes: Vec<Node>,
    known: HashMap<Node, Id>,
    /// Of each cell.
    shapes: Vec<Shape>,
    /// Whether values of one lane may be made as one of many.
    vectors: bool,
}

impl Builder {
    pub fn new(cells: &Cells, vectors: bool) -> Builder {
        Builder { nodes: Vec::new(), known: HashMap::new(), shapes: cells.shapes.clone(), vectors }
    }

    pub fn width(&self, id: Id) -> u32 {
        self.nodes[id.index()].width
    }

    pub fn op(&self, id: Id) -> &Op {
        &self.nodes[id.index()].op
    }

    pub fn args(&self, id: Id) -> &[Id] {
        &self.nodes[id.index()].args
    }

    pub fn value(&self, id: Id) -> Option<u64> {
        match self.op(id) {
            Op::Const(value) => Some(*value),
            _ => None,
        }
    }

    fn is(&self, id: Id, value: u64) -> bool {
        self.value(id) == Some(value)
    }

    pub fn lanes(&self, id: Id) -> u32 {
        self.nodes[id.index()].lanes
    }

    /// The node as it is, or the constant that it comes to, with the lanes of its operands.
    pub fn node(&mut self, op: Op, width: u32, args: &[Id]) -> Id {
        let lanes = args.iter().map(|&a| self.lanes(a)).max().unwrap_or(1);
        self.with_lanes(op, width, lanes, args)
    }

    /// The node as it is, or the constant that it comes to.
    pub fn with_lanes(&mut self, op: Op, width: u32, lanes: u32, args: &[Id]) -> Id {
        debug_assert!((1..=64).contains(&width), "{op:?} of {width} bits");
        match self.fold(&op, width, lanes, args) {
            Some(constant) => constant,
            None => self.enter(Node { op, width, lanes, args: args.to_vec() }),
        }
    }

    fn enter(&mut self, node: Node) -> Id {
        *self.known.entry(node).or_insert_with_key(|node| {
            self.nodes.push(node.clone());
            Id(self.nodes.len() as u32 - 1)
        })
    }

    /// What a node with constant operands comes to.
    fn fold(&mut self, op: &Op, width: u32, lanes: u32, args: &[Id]) -> Option<Id> {
        if matches!(op, Op::Gather | Op::Lane(_) | Op::Pack | Op::Unpack | Op::Pick | Op::OrLanes | Op::Blend) {
            return None;
        }
        let constants: Vec<Vec<u64>> = args.iter().map(|&a| self.constants(a, lanes)).collect::<Option<_>>()?;
        let widths: Vec<u32> = args.iter().map(|&a| self.width(a)).collect();
        let lane = |k: usize| {
            let values: Vec<u64> = constants.iter().map(|c| c[k]).collect();
            evaluate(op, width, &values, &widths)
        };
        let values: Vec<u64> = (0..lanes as usize).map(lane).collect::<Option<_>>()?;
        Some(self.consts(values, width))
    }

    /// The value in each of so many lanes, if it is constant.
    fn constants(&self, id: Id, lanes: u32) -> Option<Vec<u64>> {
        match self.op(id) {
            Op::Const(value) => Some(vec![*value; lanes as usize]),
            Op::Consts(values) => Some(values.clone()),
            _ => None,
        }
    }

    pub fn constant(&mut self, value: u64, width: u32) -> Id {
        self.enter(Node { op: Op::Const(value & low_mask(width)), width, lanes: 1, args: Vec::new() })
    }

    /// One constant a lane.
    fn consts(&mut self, values: Vec<u64>, width: u32) -> Id {
        match values[..] {
            [first, ref rest @ ..] if rest.iter().all(|&v| v == first) => self.constant(first, width),
            _ => {
                let lanes = values.len() as u32;
                self.enter(Node { op: Op::Consts(values), width, lanes, args: Vec::new() })
            }
        }
    }

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

    /// Values that are the lanes of one value, in order, or computed from such in the same way by at most `depth` steps.
    fn unified(&mut self, values: &[Id], depth: u32) -> Option<Id> {
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
            Op::Cell { cell, lane: 0, low } => {
                let in_order = |(k, &v): (u32, &Id)| *self.op(v) == Op::Cell { cell, lane: k, low };
                let shape = self.shapes[cell as usize];
                let all = shape.lanes == lanes && (width == shape.width || width == 64);
                (all && (0..).zip(values).all(in_order)).then(|| self.with_lanes(op.clone(), width, lanes, &[]))
            }
            Op::Slice(low) if width == 1 && self.neighbours(values, low, |first, k| first + k) => {
                let packed = self.slice(self.args(first)[0], low, lanes);
                Some(self.unpack(packed))
            }
            Op::Const(_) | Op::Cell { .. } | Op::Read { .. } | Op::Lane(_) | Op::Pick | Op::Pack | Op::Case(_) => None,
            _ if depth == 0 => None,
            _ => {
                let count = self.args(first).len();
                let alike = |&v: &Id| *self.op(v) == op && self.args(v).len() == count && self.width(v) == width;
                if !values.iter().all(alike) {
                    return None;
                }
                let columns: Vec<Vec<Id>> =
                    (0..count).map(|k| values.iter().map(|&v| self.args(v)[k]).collect()).collect();
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

    /// Whether these are slices of one value of one lane, the k-th from `at(low, k)` on.
    fn neighbours(&self, values: &[Id], low: u32, at: impl Fn(u32, u32) -> u32) -> bool {
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

    /// One bit a lane as one value of one lane; what is the same in all lanes is copied.
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

    /// Smaller number first, so that equal computations are found; constants last.
    fn sorted(&self, a: Id, b: Id) -> (Id, Id) {
        let key = |id: Id| (self.value(id).is_some(), id);
        if key(a) <= key(b) { (a, b) } else { (b, a) }
    }

    pub fn not(&mut self, a: Id) -> Id {
        let inverse = match self.op(a) {
            Op::Not => return self.args(a)[0],
            Op::Eq => Op::Ne,
            Op::Ne => Op::Eq,
            _ => Op::Not,
        };
        let args = if inverse == Op::Not { vec![a] } else { self.args(a).to_vec() };
        self.node(inverse, self.width(a), &args)
    }

    /// Whether a value is computed by adding words of several lanes, as far as a look at some nodes before it shows.
    pub fn takes_arithmetic(&self, id: Id) -> bool {
        const MOST: usize = 64;
        let mut ahead = vec![id];
        let mut seen = std::collections::HashSet::new();
        while let Some(id) = ahead.pop() {
            if seen.len() < MOST && seen.insert(id) {
                if matches!(self.op(id), Op::Add | Op::Sub | Op::Mul) && self.lanes(id) > 1 {
                    return true;
                }
                ahead.extend(self.args(id));
            }
        }
        false
    }

    /// What a value is the inverse of, if it is made as one.
    fn inverse(&self, a: Id) -> Option<Id> {
        (*self.op(a) == Op::Not).then(|| self.args(a)[0])
    }

    /// The bit that a value, the same in all lanes, consists of copies of.
    fn copied_bit(&self, a: Id) -> Option<Id> {
        let copied = *self.op(a) == Op::SExt && self.width(self.args(a)[0]) == 1 && self.lanes(a) == 1;
        copied.then(|| self.args(a)[0])
    }

    pub fn and(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.sorted(a, b);
        let width = self.width(a);
        match self.value(b) {
            _ if a == b => return a,
            Some(0) => return b,
            Some(v) if v == low_mask(width) => return a,
            _ => {}
        }
        for (bit, value) in [(self.copied_bit(a), b), (self.copied_bit(b), a)] {
            if let Some(bit) = bit {
                let zero = self.constant(0, width);
                return self.mux(bit, value, zero);
            }
        }
        match (self.inverse(a), self.inverse(b)) {
            (Some(a), Some(b)) => {
                let either = self.or(a, b);
                self.not(either)
            }
            (Some(not), None) => self.and_not(b, not),
            (None, Some(not)) => self.and_not(a, not),
            (None, None) => self.node(Op::And, width, &[a, b]),
        }
    }

    /// `a` and not `b`.
    fn and_not(&mut self, a: Id, b: Id) -> Id {
        let width = self.width(a);
        match (self.value(a), self.value(b)) {
            _ if a == b => self.constant(0, width),
            (Some(0), _) | (_, Some(0)) => a,
            (_, Some(v)) if v == low_mask(width) => self.constant(0, width),
            (Some(v), _) if v == low_mask(width) => self.not(b),
            _ => self.node(Op::AndNot, width, &[a, b]),
        }
    }

    pub fn or(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.sorted(a, b);
        match self.value(b) {
            _ if a == b => return a,
            Some(0) => return a,
            Some(v) if v == low_mask(self.width(a)) => return b,
            _ => {}
        }
        match (self.inverse(a), self.inverse(b)) {
            (None, None) => self.node(Op::Or, self.width(a), &[a, b]),
            (Some(a), Some(b)) => {
                let both = self.and(a, b);
                self.not(both)
            }
            (Some(not), None) => {
                let neither = self.and_not(not, b);
                self.not(neither)
            }
            (None, Some(not)) => {
                let neither = self.and_not(not, a);
                self.not(neither)
            }
        }
    }

    pub fn xor(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.sorted(a, b);
        match self.value(b) {
            _ if a == b => self.constant(0, self.width(a)),
            Some(0) => a,
            Some(v) if v == low_mask(self.width(a)) => self.not(a),
            _ => self.node(Op::Xor, self.width(a), &[a, b]),
        }
    }

    /// Whether these are bits of which some have lanes: operations on them are made of logic, which is the same on packed
    /// bits.
    fn bits_in_lanes(&self, args: &[Id]) -> bool {
        self.width(args[0]) == 1 && args.iter().any(|&a| self.lanes(a) > 1)
    }

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

    /// Bits of a sum or product of more than 32 bits a lane that can be made in lanes half as wide: those up to 32, and of a sum
    /// the carry out of them.
    fn of_narrow_lanes(&mut self, a: Id, low: u32, width: u32) -> Option<Id> {
        const NARROW: u32 = 32;
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

    pub fn mux(&mut self, selector: Id, mut on: Id, mut off: Id) -> Id {
        if let Some(value) = self.value(selector) {
            return if value == 1 { on } else { off };
        }
        if *self.op(selector) == Op::Not {
            return self.mux(self.args(selector)[0], off, on);
        }
        let width = self.width(on);
        if *self.op(on) == Op::Mux && self.args(on)[0] == selector {
            on = self.args(on)[1];
        }
        if *self.op(off) == Op::Mux && self.args(off)[0] == selector {
            off = self.args(off)[2];
        }
        if on == off {
            return on;
        }
        if width == 1 && self.is(on, 1) && self.is(off, 0) {
            return selector;
        }
        if width == 1 && self.is(on, 0) && self.is(off, 1) {
            return self.not(selector);
        }
        if self.lanes(selector) > 1 {
            return self.blend(selector, on, off);
        }
        if let Some((subject, labels)) = self.labels(selector)
            && self.continues(subject, off)
        {
            let arms = vec![on; labels.len()];
            return self.case(subject, labels, off, arms);
        }
        self.node(Op::Mux, width, &[selector, on, off])
    }

    /// A choice lane by lane.
    fn blend(&mut self, selector: Id, on: Id, off: Id) -> Id {
        let width = self.width(on);
        if width == 1 {
            let (on, off) = (self.and(selector, on), self.and_not(off, selector));
            return self.or(on, off);
        }
        let copies = self.sext(selector, container(width));
        self.node(Op::Blend, width, &[copies, on, off])
    }

    /// The selector, of one lane, as "subject is one of these labels".
    fn labels(&self, selector: Id) -> Option<(Id, Vec<u64>)> {
        match *self.op(selector) {
            _ if self.lanes(selector) > 1 => None,
            Op::Eq => Some((self.args(selector)[0], vec![self.value(self.args(selector)[1])?])),
            Op::Or => {
                let (subject, mut labels) = self.labels(self.args(selector)[0])?;
                let (other, more) = self.labels(self.args(selector)[1])?;
                labels.extend(more);
                (subject == other && labels.len() <= 16).then_some((subject, labels))
            }
            _ => None,
        }
    }

    /// Whether a choice by labels of the subject can take this value's labels in.
    fn continues(&self, subject: Id, value: Id) -> bool {
        match self.op(value) {
            Op::Case(_) => self.args(value)[0] == subject,
            Op::Mux => self.labels(self.args(value)[0]).is_some_and(|(other, _)| other == subject),
            _ => false,
        }
    }

    /// The arm of the first label that the subject has, or the default.
    pub fn case(&mut self, subject: Id, mut labels: Vec<u64>, mut default: Id, mut arms: Vec<Id>) -> Id {
        if let Some(value) = self.value(subject) {
            return labels.iter().position(|&l| l == value).map_or(default, |k| arms[k]);
        }
        while self.continues(subject, default) {
            let (more, inner) = match self.op(default) {
                Op::Case(more) => (more.clone(), self.args(default)[1]),
                _ => (self.labels(self.args(default)[0]).expect("as checked").1, self.args(default)[2]),
            };
            match self.op(default) {
                Op::Case(_) => arms.extend_from_slice(&self.args(default)[2..]),
                _ => arms.extend(std::iter::repeat_n(self.args(default)[1], more.len())),
            }
            labels.extend(more);
            default = inner;
        }
        let mut pairs: Vec<(u64, Id)> = labels.into_iter().zip(arms).collect();
        pairs.sort_by_key(|p| p.0);
        pairs.dedup_by_key(|p| p.0);
        let subject_width = self.width(subject);
        if self.lanes(subject) > 1 {
            return pairs.iter().rev().fold(default, |value, &(label, arm)| {
                let label = self.constant(label, subject_width);
                let hit = self.eq(subject, label);
                self.mux(hit, arm, value)
            });
        }
        if subject_width < 32 && pairs.len() == 1 << subject_width {
            default = pairs.pop().expect("at least two").1;
        }
        pairs.retain(|p| p.1 != default);
        match pairs[..] {
            [] => default,
            [(label, arm)] => {
                let label = self.constant(label, subject_width);
                let selector = self.eq(subject, label);
                self.mux(selector, arm, default)
            }
            _ => self.table(subject, &pairs, default).unwrap_or_else(|| {
                let width = self.width(default);
                let args: Vec<Id> = [subject, default].into_iter().chain(pairs.iter().map(|p| p.1)).collect();
                self.node(Op::Case(pairs.iter().map(|p| p.0).collect()), width, &args)
            }),
        }
    }

    /// A choice between constants that fit in 64 bits together, as a shift of all of them.
    fn table(&mut self, subject: Id, pairs: &[(u64, Id)], default: Id) -> Option<Id> {
        let width = self.width(default);
        let subject_width = self.width(subject);
        if !width.is_power_of_two() || subject_width > 6 || (width << subject_width) > 64 {
            return None;
        }
        let default = self.value(default)?;
        let mut table = (0..1 << subject_width).fold(0, |t, k| t | default << (k * width));
        for &(label, arm) in pairs {
            let at = label as u32 * width;
            table = table & !(low_mask(width) << at) | self.value(arm)? << at;
        }
        let table = self.constant(table, (width << subject_width).max(2));
        let amount = match width.trailing_zeros() {
            0 => subject,
            zeros => {
                let zeros = self.constant(0, zeros);
                self.cat(&[zeros, subject])
            }
        };
        let shifted = self.shr(table, amount);
        Some(self.slice(shifted, 0, width))
    }

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
            ref op @ (Op::Eq | Op::Ne | Op::Lt | Op::LtSigned) if self.lanes(a) > 1 => {
                let (op, args) = (op.clone(), self.args(a).to_vec());
                self.node(op, width, &args)
            }
            _ => self.node(Op::SExt, width, &[a]),
        }
    }

    pub fn parity(&mut self, a: Id) -> Id {
        if self.width(a) == 1 { a } else { self.node(Op::Parity, 1, &[a]) }
    }

    /// How many bits are set, `width` bits wide.
    pub fn count_ones(&mut self, a: Id, width: u32) -> Id {
        if self.width(a) == 1 { self.zext(a, width) } else { self.node(Op::CountOnes, width, &[a]) }
    }
}

/// The value of a node with constant operands; None if it does not depend on them alone.
fn evaluate(op: &Op, width: u32, args: &[u64], widths: &[u32]) -> Option<u64> {
    let signed = |k: usize| {
        let shift = 64 - widths[k];
        ((args[k] << shift) as i64) >> shift
    };
    let amount = || u32::try_from(args[1]).unwrap_or(u32::MAX);
    let copies = |bit: bool| if bit { u64::MAX } else { 0 };
    let value = match op {
        Op::Const(_) | Op::Consts(_) | Op::Cell { .. } | Op::Read { .. } => return None,
        Op::Lane(_) | Op::Gather | Op::Pack | Op::Unpack | Op::Pick | Op::OrLanes | Op::Blend => return None,
        Op::Not => !args[0],
        Op::And => args[0] & args[1],
        Op::AndNot => args[0] & !args[1],
        Op::Or => args[0] | args[1],
        Op::Xor => args[0] ^ args[1],
        Op::Add => args[0].wrapping_add(args[1]),
        Op::Sub => args[0].wrapping_sub(args[1]),
        Op::Mul => args[0].wrapping_mul(args[1]),
        Op::MulHigh => ((args[0] as u128 * args[1] as u128) >> 64) as u64,
        Op::MulHighSigned => ((args[0] as i64 as i128 * args[1] as i64 as i128) >> 64) as u64,
        Op::Shl => args[0].checked_shl(amount()).unwrap_or(0),
        Op::Shr => args[0].checked_shr(amount()).unwrap_or(0),
        Op::Sar => (signed(0) >> amount().min(63)) as u64,
        Op::Eq => copies(args[0] == args[1]),
        Op::Ne => copies(args[0] != args[1]),
        Op::Lt => copies(args[0] < args[1]),
        Op::LtSigned => copies(signed(0) < signed(1)),
        Op::Mux => args[if args[0] == 1 { 1 } else { 2 }],
        Op::Case(labels) => labels.iter().position(|&l| l == args[0]).map_or(args[1], |k| args[2 + k]),
        Op::Slice(low) => args[0] >> low,
        Op::Cat => {
            let mut at = 0;
            args.iter().zip(widths).fold(0, |value, (&part, width)| {
                at += width;
                value | part << (at - width)
            })
        }
        Op::ZExt => args[0],
        Op::SExt => signed(0) as u64,
        Op::Parity => (args[0].count_ones() % 2) as u64,
        Op::CountOnes => args[0].count_ones() as u64,
        Op::Reverse => args[0].reverse_bits() >> (64 - width),
    };
    Some(value & low_mask(width))
}

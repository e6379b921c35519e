//! Makes nodes: each once, with constants folded and identities applied.

mod arithmetic;
mod bits;
mod choose;
mod lanes;

use super::cells::{CellShape, Cells};
use super::{Id, Node, Op, container};
use heddle_hdl::bits::low_mask;
use std::collections::HashMap;

/// How long the computations are that are found to be the same in every lane where one value is made of many.
const UNIFIED_DEPTH: u32 = 6;

/// Up to so many lanes, a bit in each is packed by one instruction, and copied from there; with more, copies of it in its own
/// lane are cheaper.
const PACKED_AT_ONCE: u32 = 8;

/// Bits of the narrower of the two containers.
const NARROW: u32 = 32;

pub struct Builder {
    pub nodes: Vec<Node>,
    known: HashMap<Node, Id>,
    /// Of each cell.
    shapes: Vec<CellShape>,
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

    /// Of a value in lanes that is narrower than its container and copies of a bit: the same in all of the container, which
    /// chooses without being masked.
    fn wider_copies(&mut self, a: Id) -> Option<Id> {
        let (width, op) = (self.width(a), self.op(a).clone());
        if self.lanes(a) <= PACKED_AT_ONCE || width == 1 || width == container(width) {
            return None;
        }
        let args = self.args(a).to_vec();
        match op {
            Op::SExt if self.width(args[0]) == 1 => Some(self.sext(args[0], container(width))),
            _ if op.is_comparison() => Some(self.node(op, container(width), &args)),
            _ => None,
        }
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
        for (copies, value) in [(a, b), (b, a)] {
            if let Some(copies) = self.wider_copies(copies) {
                let zero = self.constant(0, width);
                return self.node(Op::Blend, width, &[copies, value, zero]);
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
        Op::Const(_) | Op::Consts(_) | Op::Cell { .. } | Op::Read { .. } | Op::Kept { .. } => return None,
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

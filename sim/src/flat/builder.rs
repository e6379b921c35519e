//! Makes nodes: each once, with constants folded and identities applied.

use super::{Id, Node, Op, aligned};
use heddle_hdl::bits::low_mask;
use std::collections::HashMap;

#[derive(Default)]
pub struct Builder {
    pub nodes: Vec<Node>,
    known: HashMap<Node, Id>,
}

impl Builder {
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

    /// The node as it is, or the constant that it comes to.
    pub fn node(&mut self, op: Op, width: u32, args: &[Id]) -> Id {
        debug_assert!((1..=64).contains(&width), "{op:?} of {width} bits");
        if let Some(values) = args.iter().map(|&a| self.value(a)).collect::<Option<Vec<u64>>>()
            && let Some(value) = evaluate(&op, width, &values, || args.iter().map(|&a| self.width(a)).collect())
        {
            return self.constant(value, width);
        }
        let node = Node { op, width, args: args.to_vec() };
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    pub fn constant(&mut self, value: u64, width: u32) -> Id {
        let value = value & low_mask(width);
        let node = Node { op: Op::Const(value), width, args: Vec::new() };
        *self.known.entry(node).or_insert_with_key(|node| {
            self.nodes.push(node.clone());
            Id(self.nodes.len() as u32 - 1)
        })
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

    /// What a value is the inverse of, if it is made as one.
    fn inverse(&self, a: Id) -> Option<Id> {
        (*self.op(a) == Op::Not).then(|| self.args(a)[0])
    }

    /// The bit that a value consists of copies of.
    fn copied_bit(&self, a: Id) -> Option<Id> {
        (*self.op(a) == Op::SExt && self.width(self.args(a)[0]) == 1).then(|| self.args(a)[0])
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
        if a == b { self.constant(0, self.width(a)) } else { self.node(Op::AndNot, self.width(a), &[a, b]) }
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

    pub fn add(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.sorted(a, b);
        if self.is(b, 0) { a } else { self.node(Op::Add, self.width(a), &[a, b]) }
    }

    pub fn sub(&mut self, a: Id, b: Id) -> Id {
        match () {
            _ if self.is(b, 0) => a,
            _ if a == b => self.constant(0, self.width(a)),
            _ => self.node(Op::Sub, self.width(a), &[a, b]),
        }
    }

    pub fn mul(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = self.sorted(a, b);
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
        let zero = self.constant(0, self.width(a));
        self.ne(a, zero)
    }

    pub fn lt(&mut self, a: Id, b: Id) -> Id {
        if a == b || self.is(b, 0) { self.constant(0, 1) } else { self.node(Op::Lt, 1, &[a, b]) }
    }

    pub fn lt_signed(&mut self, a: Id, b: Id) -> Id {
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
        if let Some((subject, labels)) = self.labels(selector)
            && self.continues(subject, off)
        {
            let arms = vec![on; labels.len()];
            return self.case(subject, labels, off, arms);
        }
        self.node(Op::Mux, width, &[selector, on, off])
    }

    /// The selector as "subject is one of these labels".
    fn labels(&self, selector: Id) -> Option<(Id, Vec<u64>)> {
        match *self.op(selector) {
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
            Op::Cell { cell, low: base } if all == 64 && matches!(width, 8 | 16 | 32) && aligned(base + low, width) => {
                self.node(Op::Cell { cell, low: base + low }, width, &[])
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
        let width = flat.iter().map(|&p| self.width(p)).sum();
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
            (Op::Cell { cell, low: l }, Op::Cell { cell: other, low: h })
                if cell == other && h == l + low_width && aligned(l, width) && l % 64 + width <= 64 =>
            {
                Some(self.node(Op::Cell { cell, low: l }, width, &[]))
            }
            (Op::Read { memory, low: l }, Op::Read { memory: other, low: h })
                if memory == other
                    && h == l + low_width
                    && aligned(l, width)
                    && l % 64 + width <= 64
                    && self.args(low) == self.args(high) =>
            {
                let args = self.args(low).to_vec();
                Some(self.node(Op::Read { memory, low: l }, width, &args))
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
fn evaluate(op: &Op, width: u32, args: &[u64], widths: impl Fn() -> Vec<u32>) -> Option<u64> {
    let signed = |k: usize| {
        let shift = 64 - widths()[k];
        ((args[k] << shift) as i64) >> shift
    };
    let amount = || u32::try_from(args[1]).unwrap_or(u32::MAX);
    let value = match op {
        Op::Const(_) | Op::Cell { .. } | Op::Read { .. } => return None,
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
        Op::Eq => (args[0] == args[1]) as u64,
        Op::Ne => (args[0] != args[1]) as u64,
        Op::Lt => (args[0] < args[1]) as u64,
        Op::LtSigned => (signed(0) < signed(1)) as u64,
        Op::Mux => args[if args[0] == 1 { 1 } else { 2 }],
        Op::Case(labels) => labels.iter().position(|&l| l == args[0]).map_or(args[1], |k| args[2 + k]),
        Op::Slice(low) => args[0] >> low,
        Op::Cat => {
            let mut at = 0;
            args.iter().zip(widths()).fold(0, |value, (&part, width)| {
                at += width;
                value | part << (at - width)
            })
        }
        Op::ZExt => args[0],
        Op::SExt => signed(0) as u64,
        Op::Parity => (args[0].count_ones() % 2) as u64,
        Op::CountOnes => args[0].count_ones() as u64,
    };
    Some(value & low_mask(width))
}

//! Signals and their operators.
//!
//! A [`Signal`] is a small `Copy` handle of a value in the module that is being described. No operator changes a width
//! silently: operands of unequal width are an error that `check()` reports with both names, widths and places. A Rust
//! integer as the second operand is a literal of the first one's width, and an error if it does not fit.
//!
//! Mistakes never panic: they are recorded, and the result is a poisoned signal of the width that was expected.

use crate::bits::Bits;
use crate::builder::{Draft, with_draft_of};
use crate::bundle::{Signals, Width, cat, count_width};
use crate::netlist::{Loc, NodeId, Op};
use std::fmt;
use std::ops;
use std::panic::Location;

/// A value of the module being described, with an explicit width of 1 bit or more.
///
/// There is no `PartialEq`: `a == b` on handles would compare places, not values. Use [`Signal::eq`].
#[derive(Clone, Copy)]
pub struct Signal {
    pub(crate) module: u32,
    pub(crate) node: NodeId,
    pub(crate) width: Width,
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signal({} bits)", self.width)
    }
}

/// The second operand of an operator: a signal, or a literal that takes the first one's width.
pub trait Operand {
    /// The operand as a signal beside `first`.
    #[track_caller]
    fn beside(self, first: Signal) -> Signal;
}

impl Operand for Signal {
    fn beside(self, _: Signal) -> Signal {
        self
    }
}

macro_rules! literal_operand {
    ($($t:ty),*) => { $(impl Operand for $t {
        #[track_caller]
        fn beside(self, first: Signal) -> Signal {
            first.literal(Bits::from(self))
        }
    })* };
}
literal_operand!(u8, u16, u32, u64, u128, usize, bool);

impl Operand for i32 {
    #[track_caller]
    fn beside(self, first: Signal) -> Signal {
        match u32::try_from(self) {
            Ok(v) => first.literal(Bits::from(v)),
            Err(_) => {
                let loc = Location::caller();
                with_draft_of(first, loc, |d| {
                    d.error(loc, format!("literal {self} is negative; signals are unsigned"));
                    d.poison(first.width, loc)
                })
            }
        }
    }
}

impl Operand for Bits {
    #[track_caller]
    fn beside(self, first: Signal) -> Signal {
        first.literal(self)
    }
}

/// Which bits are below a place is found by tables of gates in vectors up to this width, which are fast, and by a carry
/// chain in longer ones.
const PREFIX_BITS: Width = 16;

#[expect(clippy::should_implement_trait, reason = "`a << b` in Rust would promise Rust's rules for amounts")]
impl Signal {
    /// In bits.
    pub fn width(self) -> Width {
        self.width
    }

    /// A literal of this signal's width.
    #[track_caller]
    pub fn literal(self, value: impl Into<Bits>) -> Signal {
        let (value, loc) = (value.into(), Location::caller());
        with_draft_of(self, loc, |d| d.literal(value, self.width, loc))
    }

    pub(crate) fn named_at(self, name: &str, loc: Loc) -> Signal {
        with_draft_of(self, loc, |d| d.name_wire(self, name, loc))
    }

    /// This where `condition` is 1, else zeros.
    #[track_caller]
    pub(crate) fn gated(self, condition: Signal) -> Signal {
        let loc = Location::caller();
        with_draft_of(condition, loc, |d| {
            if !d.is_bit("the condition of only_if", condition, loc) {
                return d.poison(self.width, loc);
            }
            let wide = self.width > 1;
            let mask = if wide { d.node(Op::SExt, self.width, &[condition], loc) } else { condition };
            d.node(Op::And, self.width, &[self, mask], loc)
        })
    }

    #[track_caller]
    fn unary(self, op: Op, width: Width, loc: Loc) -> Signal {
        with_draft_of(self, loc, |d| d.node(op, width, &[self], loc))
    }

    /// A binary operator whose operands must have one width.
    #[track_caller]
    pub(crate) fn binary(self, op: Op, symbol: &str, other: Signal, width: Option<Width>, loc: Loc) -> Signal {
        with_draft_of(self, loc, |d| {
            if d.same_width(symbol, self, other, loc) {
                d.node(op, width.unwrap_or(self.width), &[self, other], loc)
            } else {
                d.poison(width.unwrap_or(self.width), loc)
            }
        })
    }

    /// 1 where equal, as a 1-bit signal. (Not `==`, which Rust wants to be a `bool`.)
    #[track_caller]
    pub fn eq(self, other: impl Operand) -> Signal {
        self.binary(Op::Eq, "eq", other.beside(self), Some(1), Location::caller())
    }
    /// 1 where not equal.
    #[track_caller]
    pub fn ne(self, other: impl Operand) -> Signal {
        self.binary(Op::Ne, "ne", other.beside(self), Some(1), Location::caller())
    }
    /// 1 where less, as unsigned numbers.
    #[track_caller]
    pub fn lt(self, other: impl Operand) -> Signal {
        self.binary(Op::Lt, "lt", other.beside(self), Some(1), Location::caller())
    }
    /// 1 where greater, as unsigned numbers.
    #[track_caller]
    pub fn gt(self, other: impl Operand) -> Signal {
        other.beside(self).binary(Op::Lt, "gt", self, Some(1), Location::caller())
    }
    /// 1 where less or equal, as unsigned numbers.
    #[track_caller]
    pub fn le(self, other: impl Operand) -> Signal {
        !other.beside(self).binary(Op::Lt, "le", self, Some(1), Location::caller())
    }
    /// 1 where greater or equal, as unsigned numbers.
    #[track_caller]
    pub fn ge(self, other: impl Operand) -> Signal {
        !self.binary(Op::Lt, "ge", other.beside(self), Some(1), Location::caller())
    }
    /// 1 where less, as two's complement numbers.
    #[track_caller]
    pub fn lt_signed(self, other: impl Operand) -> Signal {
        self.binary(Op::LtSigned, "lt_signed", other.beside(self), Some(1), Location::caller())
    }

    /// Full unsigned product: as wide as both operands together.
    #[track_caller]
    pub fn mul_full(self, other: Signal) -> Signal {
        let loc = Location::caller();
        with_draft_of(self, loc, |d| d.node(Op::MulFull, self.width + other.width, &[self, other], loc))
    }
    /// Full signed product: as wide as both operands together.
    #[track_caller]
    pub fn mul_full_signed(self, other: Signal) -> Signal {
        let loc = Location::caller();
        with_draft_of(self, loc, |d| d.node(Op::MulFullSigned, self.width + other.width, &[self, other], loc))
    }

    /// Logical shift left by a signal of any width or a literal; an amount of the width or more gives 0.
    #[track_caller]
    pub fn shl(self, amount: impl Operand) -> Signal {
        self.shift(Op::Shl, amount.beside(self), Location::caller())
    }
    /// Logical shift right; an amount of the width or more gives 0.
    #[track_caller]
    pub fn shr(self, amount: impl Operand) -> Signal {
        self.shift(Op::Shr, amount.beside(self), Location::caller())
    }
    /// Arithmetic shift right; an amount of the width or more gives copies of the sign.
    #[track_caller]
    pub fn sar(self, amount: impl Operand) -> Signal {
        self.shift(Op::Sar, amount.beside(self), Location::caller())
    }
    #[track_caller]
    fn shift(self, op: Op, amount: Signal, loc: Loc) -> Signal {
        with_draft_of(self, loc, |d| d.node(op, self.width, &[self, amount], loc))
    }

    /// `a` where this (1 bit) is 1, else `b`; on bundles leaf by leaf.
    #[track_caller]
    pub fn mux<B: Signals>(self, a: B, b: B) -> B {
        let loc = Location::caller();
        a.zip(b, &mut |x, y| {
            with_draft_of(self, loc, |d| {
                if d.is_bit("the condition of mux", self, loc) & d.same_width("mux", x, y, loc) {
                    d.node(Op::Mux, x.width, &[self, x, y], loc)
                } else {
                    d.poison(x.width, loc)
                }
            })
        })
    }

    #[track_caller]
    pub(crate) fn case(selector: Signal, labels: &[Bits], values: &[Signal], default: Signal) -> Signal {
        let loc = Location::caller();
        with_draft_of(selector, loc, |d| d.case(selector, labels, values, default, loc))
    }

    /// Element `index` of this vector of elements of `width` bits, element 0 lowest; zero beyond the end.
    #[track_caller]
    pub fn select(self, index: Signal, width: Width) -> Signal {
        let loc = Location::caller();
        with_draft_of(self, loc, |d| {
            if !d.is_vector("select", self, width, loc) {
                return d.poison(width, loc);
            }
            d.node(Op::Select, width, &[self, index], loc)
        })
    }

    /// Bits `low .. low + width`.
    #[track_caller]
    pub fn slice(self, low: Width, width: Width) -> Signal {
        self.slice_at(low, width, Location::caller())
    }
    #[track_caller]
    pub(crate) fn slice_at(self, low: Width, width: Width, loc: Loc) -> Signal {
        if low == 0 && width == self.width {
            return self;
        }
        with_draft_of(self, loc, |d| {
            if width == 0 || low.saturating_add(width) > self.width {
                let (name, why) = (d.describe(self), if width == 0 { "is empty" } else { "goes beyond the end" });
                d.error_about(&[self], loc, format!("slice({low}, {width}) {why}: {name}"));
                return d.poison(width, loc);
            }
            d.node(Op::Slice(low), width, &[self], loc)
        })
    }
    /// Bit `index`.
    #[track_caller]
    pub fn bit(self, index: Width) -> Signal {
        self.slice(index, 1)
    }
    /// The highest bit.
    #[track_caller]
    pub fn msb(self) -> Signal {
        self.bit(self.width - 1)
    }
    /// All bits from `low` up.
    #[track_caller]
    pub fn from_bit(self, low: Width) -> Signal {
        self.slice(low, self.width.saturating_sub(low))
    }

    /// Wider (or equal), with zeros above.
    #[track_caller]
    pub fn zext(self, width: Width) -> Signal {
        self.extend(Op::ZExt, "zext", width, Location::caller())
    }
    /// Wider (or equal), with copies of the sign above.
    #[track_caller]
    pub fn sext(self, width: Width) -> Signal {
        self.extend(Op::SExt, "sext", width, Location::caller())
    }
    #[track_caller]
    fn extend(self, op: Op, what: &str, width: Width, loc: Loc) -> Signal {
        if width == self.width {
            return self;
        }
        with_draft_of(self, loc, |d| {
            if width < self.width {
                let name = d.describe(self);
                d.error_about(&[self], loc, format!("{what}({width}): {name}; use slice to make it narrower"));
                return d.poison(width, loc);
            }
            d.node(op, width, &[self], loc)
        })
    }

    #[track_caller]
    pub(crate) fn concat(parts: &[Signal]) -> Signal {
        let loc = Location::caller();
        match parts {
            [] => crate::builder::with_draft(|d| {
                d.error(loc, "cat of nothing".into());
                d.poison(1, loc)
            }),
            [one] => *one,
            [first, ..] => {
                with_draft_of(*first, loc, |d| d.node(Op::Cat, parts.iter().map(|p| p.width).sum(), parts, loc))
            }
        }
    }

    /// `count` copies side by side.
    #[track_caller]
    pub fn repeat(self, count: u32) -> Signal {
        if self.width == 1 && count > 0 { self.sext(count) } else { cat(&vec![self; count as usize]) }
    }

    /// Is any bit on? (1 bit)
    #[track_caller]
    pub fn any(self) -> Signal {
        if self.width == 1 { self } else { self.unary(Op::Any, 1, Location::caller()) }
    }
    /// Are all bits on? (1 bit)
    #[track_caller]
    pub fn all(self) -> Signal {
        if self.width == 1 { self } else { self.unary(Op::All, 1, Location::caller()) }
    }
    /// Is the number of bits that are on odd? (1 bit)
    #[track_caller]
    pub fn parity(self) -> Signal {
        if self.width == 1 { self } else { self.unary(Op::Parity, 1, Location::caller()) }
    }
    /// How many bits are on; as wide as a count up to this width needs.
    #[track_caller]
    pub fn count_ones(self) -> Signal {
        if self.width == 1 { self } else { self.unary(Op::CountOnes, count_width(self.width), Location::caller()) }
    }

    /// The lowest bit that is on, alone; zero if none is.
    #[track_caller]
    pub fn lowest_one(self) -> Signal {
        if self.width <= PREFIX_BITS { self & !self.any_below() } else { self & (!self + self.literal(1u32)) }
    }

    /// One bit a place: some bit below it is on.
    #[track_caller]
    pub fn any_below(self) -> Signal {
        if self.width > PREFIX_BITS {
            return self ^ (!self + self.literal(1u32));
        }
        let up = |bits: Signal, by: Width| cat(&[bits.literal(0u32).slice(0, by), bits.slice(0, self.width - by)]);
        let mut below = if self.width > 1 { up(self, 1) } else { self.literal(0u32) };
        let mut reach = 1;
        while reach + 1 < self.width {
            below = below | up(below, reach);
            reach *= 2;
        }
        below
    }

    /// The place of the only bit that is on in a one-hot value, `index_width(width)` bits; zero if none is.
    #[track_caller]
    pub fn one_hot_index(self) -> Signal {
        let width = crate::bundle::index_width(self.width);
        let mut bits = Vec::new();
        for b in 0..width {
            let mut places = Vec::new();
            for i in (0..self.width).filter(|i| i >> b & 1 == 1) {
                places.push(self.bit(i));
            }
            bits.push(if places.is_empty() { self.bit(0).literal(0u32) } else { cat(&places).any() });
        }
        cat(&bits)
    }

    /// One bit on for every value of this index below `count`: bit i is on when this is i.
    #[track_caller]
    pub fn decode(self, count: u32) -> Signal {
        let loc = Location::caller();
        let one = with_draft_of(self, loc, |d| d.literal(Bits::from(1u32), count, loc));
        one.shl(self)
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident $symbol:literal),*) => { $(impl<R: Operand> ops::$trait<R> for Signal {
        type Output = Signal;
        #[track_caller]
        fn $method(self, other: R) -> Signal {
            self.binary(operator!(@op $trait), $symbol, other.beside(self), None, Location::caller())
        }
    })* };
    (@op Add) => { Op::Add };
    (@op Sub) => { Op::Sub };
    (@op Mul) => { Op::Mul };
    (@op BitAnd) => { Op::And };
    (@op BitOr) => { Op::Or };
    (@op BitXor) => { Op::Xor };
}
operator!(Add add "+", Sub sub "-", Mul mul "*", BitAnd bitand "&", BitOr bitor "|", BitXor bitxor "^");

impl ops::Not for Signal {
    type Output = Signal;
    #[track_caller]
    fn not(self) -> Signal {
        self.unary(Op::Not, self.width, Location::caller())
    }
}

impl Draft {
    /// Records an error unless the widths are equal.
    pub(crate) fn same_width(&mut self, symbol: &str, a: Signal, b: Signal, loc: Loc) -> bool {
        if a.width == b.width {
            return true;
        }
        let (left, right) = (self.describe(a), self.describe(b));
        let (narrow, wide) = if a.width < b.width { (a, b) } else { (b, a) };
        let hint = match self.known_name(narrow) {
            Some(name) => format!("{name}.zext({0}) or .sext({0})", wide.width),
            None => format!(".zext({0}) or .sext({0}) on the narrower", wide.width),
        };
        self.error_about(&[a, b], loc, format!("`{symbol}`: {left}, {right}; try {hint}"));
        false
    }

    /// Records an error unless both bundles have as many leaves; they differ only in the lengths of their lists.
    pub(crate) fn same_count(&mut self, what: &str, a: usize, b: usize, loc: Loc) -> bool {
        if a != b {
            self.error(loc, format!("{what}: bundles of {a} and of {b} signals; their lists differ in length"));
        }
        a == b
    }

    /// Records an error unless the signal is 1 bit.
    pub(crate) fn is_bit(&mut self, what: &str, s: Signal, loc: Loc) -> bool {
        if s.width != 1 {
            let name = self.describe(s);
            self.error_about(&[s], loc, format!("{what} must be 1 bit: {name}"));
        }
        s.width == 1
    }

    /// Records an error unless the signal is a whole number of elements of `width` bits.
    pub(crate) fn is_vector(&mut self, what: &str, s: Signal, width: Width, loc: Loc) -> bool {
        let whole = width > 0 && s.width.is_multiple_of(width);
        if !whole {
            let name = self.describe(s);
            self.error_about(&[s], loc, format!("{what}: elements of {width} bits do not divide the vector: {name}"));
        }
        whole
    }

    fn case(&mut self, selector: Signal, labels: &[Bits], values: &[Signal], default: Signal, loc: Loc) -> Signal {
        let mut sound = true;
        for (i, label) in labels.iter().enumerate() {
            if label.bit_length() > selector.width {
                let name = self.describe(selector);
                self.error_about(&[selector], loc, format!("case: label {label} does not fit the selector: {name}"));
                sound = false;
            }
            if labels[..i].contains(label) {
                self.error(loc, format!("case: label {label} stands twice"));
                sound = false;
            }
        }
        for &value in values {
            sound &= self.same_width("case", default, value, loc);
        }
        if !sound {
            return self.poison(default.width, loc);
        }
        let args: Vec<Signal> = [selector, default].into_iter().chain(values.iter().copied()).collect();
        self.node(Op::Case(labels.to_vec()), default.width, &args, loc)
    }
}

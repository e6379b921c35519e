//! What each combinational operation means. This is the definition: the interpreter calls it, and the compiled engine
//! and the Verilog are tested against it.

use crate::bits::{Bits, low_mask};
use crate::netlist::Op;
use num_bigint::BigUint;
use std::borrow::Borrow;

/// The value of a node from those of its operands.
///
/// `width` is the node's width; `args` and `arg_widths` are its operands in order; no value has bits above its width,
/// and neither has the result.
///
/// Panics for operations that are not combinational (ports, instances, registers, memories) and for [`Op::Poison`].
pub fn eval<B: Borrow<Bits>>(op: &Op, width: u32, args: &[B], arg_widths: &[u32]) -> Bits {
    let arg = |k: usize| args[k].borrow();
    match op {
        Op::Const(value) => value.clone(),
        Op::Buf | Op::ZExt => arg(0).clone(),
        Op::Eq => Bits::from(arg(0) == arg(1)),
        Op::Ne => Bits::from(arg(0) != arg(1)),
        Op::Lt => Bits::from(arg(0) < arg(1)),
        Op::LtSigned => {
            let negative = |k: usize| arg(k).bit(arg_widths[k] - 1);
            Bits::from(if negative(0) == negative(1) { arg(0) < arg(1) } else { negative(0) })
        }
        Op::Mux => arg(if arg(0).is_zero() { 2 } else { 1 }).clone(),
        Op::Case(labels) => match labels.iter().position(|label| label == arg(0)) {
            Some(k) => arg(2 + k).clone(),
            None => arg(1).clone(),
        },
        Op::Select => match arg(1).to_u64() {
            Some(index) if index < (arg_widths[0] / width) as u64 => arg(0).extract(index as u32 * width, width),
            _ => Bits::ZERO,
        },
        Op::Slice(low) => arg(0).extract(*low, width),
        Op::Cat => concat(args.iter().map(B::borrow).zip(arg_widths.iter().copied())),
        Op::Any => Bits::from(!arg(0).is_zero()),
        Op::All => Bits::from(arg(0).count_ones() == arg_widths[0]),
        Op::Parity => Bits::from(arg(0).count_ones() % 2 == 1),
        Op::CountOnes => Bits::from(arg(0).count_ones()),
        Op::Input(_) | Op::InstOut { .. } | Op::Reg(_) | Op::MemRead { .. } | Op::Poison => {
            panic!("{op:?} has no value of its own")
        }
        Op::Not
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Add
        | Op::Sub
        | Op::Mul
        | Op::MulFull
        | Op::MulFullSigned
        | Op::Shl
        | Op::Shr
        | Op::Sar
        | Op::SExt => match args {
            [a] if width <= 64 => Bits::from(narrow(op, width, (a.borrow().low_u64(), 0), arg_widths[0])),
            [a, b] if width <= 64 && arg_widths[1] <= 64 => {
                Bits::from(narrow(op, width, (a.borrow().low_u64(), b.borrow().low_u64()), arg_widths[0]))
            }
            _ => wide(op, width, &args.iter().map(B::borrow).collect::<Vec<_>>(), arg_widths),
        },
    }
}

/// Values side by side, the first lowest, each with its width.
pub fn concat<'a>(parts: impl Iterator<Item = (&'a Bits, u32)> + Clone) -> Bits {
    // Most have a limb, which needs no allocation.
    if parts.clone().map(|(_, width)| width).sum::<u32>() <= 64 {
        let join = |(all, end), (value, width): (&Bits, u32)| (all | value.low_u64() << end, end + width);
        return Bits::from(parts.fold((0, 0), join).0);
    }
    let mut limbs: Vec<u64> = Vec::new();
    let mut end = 0;
    for (value, width) in parts {
        let (limb, shift) = (end / 64, end % 64);
        end += width as usize;
        limbs.resize(end.div_ceil(64), 0);
        for k in 0..width.div_ceil(64) as usize {
            let v = value.limb(k);
            limbs[limb + k] |= v << shift;
            if shift > 0 && v >> (64 - shift) != 0 {
                limbs[limb + k + 1] |= v >> (64 - shift);
            }
        }
    }
    Bits::from_limbs(&limbs)
}

/// Arithmetic where result and operands have at most 64 bits. `a_width` is the width of `a`.
fn narrow(op: &Op, width: u32, (a, b): (u64, u64), a_width: u32) -> u64 {
    let signed = |v: u64, w: u32| ((v << (64 - w)) as i64) >> (64 - w);
    let result = match op {
        Op::Not => !a,
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul | Op::MulFull => a.wrapping_mul(b),
        Op::MulFullSigned => signed(a, a_width).wrapping_mul(signed(b, width - a_width)) as u64,
        Op::Shl => a.checked_shl(amount(b)).unwrap_or(0),
        Op::Shr => a.checked_shr(amount(b)).unwrap_or(0),
        Op::Sar => (signed(a, width) >> amount(b).min(63)) as u64,
        Op::SExt => signed(a, a_width) as u64,
        _ => unreachable!("{op:?} is not arithmetic"),
    };
    result & low_mask(width)
}

/// A shift amount, cut to what a shift can tell apart.
fn amount(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The same for any width.
fn wide(op: &Op, width: u32, args: &[&Bits], arg_widths: &[u32]) -> Bits {
    let big = |k: usize| args[k].to_big();
    let extended = |k: usize| sign_extend(args[k], arg_widths[k], width);
    let shift = || args[1].to_u64().map_or(width, |n| amount(n).min(width));
    let result = match op {
        Op::Not => Bits::ones(width).to_big() ^ big(0),
        Op::And => big(0) & big(1),
        Op::Or => big(0) | big(1),
        Op::Xor => big(0) ^ big(1),
        Op::Add => big(0) + big(1),
        Op::Sub => (BigUint::from(1u8) << width) + big(0) - big(1),
        Op::Mul | Op::MulFull => big(0) * big(1),
        Op::MulFullSigned => extended(0) * extended(1),
        Op::Shl => big(0) << shift(),
        Op::Shr => big(0) >> shift(),
        Op::Sar => sign_extend(args[0], width, 2 * width) >> shift(),
        Op::SExt => extended(0),
        _ => unreachable!("{op:?} is not arithmetic"),
    };
    Bits::from_big(result).truncate(width)
}

/// The value as `to` bits, the bits from `from` on copies of its highest.
fn sign_extend(value: &Bits, from: u32, to: u32) -> BigUint {
    let copies = if value.bit(from - 1) { Bits::ones(to - from).to_big() << from } else { BigUint::ZERO };
    value.to_big() | copies
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn run(op: Op, width: u32, args: &[(u64, u32)]) -> u64 {
        let values: Vec<Bits> = args.iter().map(|a| Bits::from(a.0)).collect();
        let widths: Vec<u32> = args.iter().map(|a| a.1).collect();
        eval(&op, width, &values.iter().collect::<Vec<_>>(), &widths).to_u64().unwrap()
    }

    #[test]
    fn arithmetic_wraps_at_the_width() {
        assert_eq!(run(Op::Add, 8, &[(0xff, 8), (2, 8)]), 1);
        assert_eq!(run(Op::Sub, 8, &[(1, 8), (2, 8)]), 0xff);
        assert_eq!(run(Op::Sub, 64, &[(0, 64), (1, 64)]), u64::MAX);
        assert_eq!(run(Op::Mul, 8, &[(0x10, 8), (0x11, 8)]), 0x10);
        assert_eq!(run(Op::MulFull, 16, &[(0xff, 8), (0xff, 8)]), 0xfe01);
        assert_eq!(run(Op::MulFullSigned, 16, &[(0xff, 8), (0xff, 8)]), 1);
        assert_eq!(run(Op::MulFullSigned, 11, &[(0x80, 8), (3, 3)]), 0x680);
        assert_eq!(run(Op::MulFullSigned, 11, &[(0x80, 8), (7, 3)]), 0x80);
        assert_eq!(run(Op::Not, 1, &[(1, 1)]), 0);
    }

    #[test]
    fn shifts_by_the_width_or_more() {
        for amount in [8, 9, 63, 64, 65, 255, 256, 1 << 32] {
            assert_eq!(run(Op::Shl, 8, &[(0xff, 8), (amount, 40)]), 0, "{amount}");
            assert_eq!(run(Op::Shr, 8, &[(0xff, 8), (amount, 40)]), 0, "{amount}");
            assert_eq!(run(Op::Sar, 8, &[(0x80, 8), (amount, 40)]), 0xff, "{amount}");
            assert_eq!(run(Op::Sar, 8, &[(0x7f, 8), (amount, 40)]), 0, "{amount}");
        }
        assert_eq!(run(Op::Sar, 8, &[(0x90, 8), (4, 3)]), 0xf9);
        assert_eq!(run(Op::Shl, 64, &[(3, 64), (63, 6)]), 1 << 63);
        let far = Bits::ones(100);
        assert_eq!(eval(&Op::Sar, 8, &[&Bits::from(0x80u8), &far], &[8, 100]), 0xff);
        assert_eq!(eval(&Op::Shl, 8, &[&Bits::from(0x80u8), &far], &[8, 100]), 0);
    }

    #[test]
    fn comparisons() {
        assert_eq!(run(Op::Lt, 1, &[(0x7f, 8), (0x80, 8)]), 1);
        assert_eq!(run(Op::LtSigned, 1, &[(0x7f, 8), (0x80, 8)]), 0);
        assert_eq!(run(Op::LtSigned, 1, &[(0xfe, 8), (0xff, 8)]), 1);
        assert_eq!(run(Op::LtSigned, 1, &[(1, 1), (0, 1)]), 1);
        assert_eq!(run(Op::Eq, 1, &[(5, 8), (5, 8)]), 1);
        assert_eq!(run(Op::Ne, 1, &[(5, 8), (5, 8)]), 0);
    }

    #[test]
    fn choices() {
        assert_eq!(run(Op::Mux, 4, &[(1, 1), (3, 4), (7, 4)]), 3);
        assert_eq!(run(Op::Mux, 4, &[(0, 1), (3, 4), (7, 4)]), 7);
        let case = Op::Case(vec![Bits::from(2u8), Bits::from(0u8)]);
        assert_eq!([0, 1, 2].map(|sel| run(case.clone(), 4, &[(sel, 2), (15, 4), (3, 4), (7, 4)])), [7, 15, 3]);
        assert_eq!([0, 1, 2, 3].map(|index| run(Op::Select, 4, &[(0xcba, 12), (index, 2)])), [0xa, 0xb, 0xc, 0]);
    }

    #[test]
    fn wiring_and_reductions() {
        assert_eq!(run(Op::Slice(4), 4, &[(0xabc, 12)]), 0xb);
        assert_eq!(run(Op::Cat, 12, &[(0xc, 4), (0xab, 8)]), 0xabc);
        assert_eq!(run(Op::ZExt, 8, &[(0xf, 4)]), 0xf);
        assert_eq!(run(Op::SExt, 8, &[(0x8, 4)]), 0xf8);
        assert_eq!(run(Op::SExt, 8, &[(0x7, 4)]), 0x7);
        assert_eq!(run(Op::Any, 1, &[(0, 4)]), 0);
        assert_eq!(run(Op::All, 1, &[(0xf, 4)]), 1);
        assert_eq!(run(Op::All, 1, &[(0xf, 5)]), 0);
        assert_eq!(run(Op::Parity, 1, &[(7, 5)]), 1);
        assert_eq!(run(Op::CountOnes, 3, &[(0xf, 4)]), 4);
    }

    /// A value as its bits, lowest first.
    type Vector = Vec<bool>;

    fn bits(v: &[bool]) -> Bits {
        let mut limbs = vec![0; v.len().div_ceil(64)];
        v.iter().enumerate().for_each(|(k, &b)| limbs[k / 64] |= (b as u64) << (k % 64));
        Bits::from_limbs(&limbs)
    }

    fn vector(v: &Bits, width: u32) -> Vector {
        (0..width).map(|k| v.bit(k)).collect()
    }

    fn add(a: &[bool], b: &[bool], mut carry: bool) -> Vector {
        a.iter()
            .zip(b)
            .map(|(&a, &b)| {
                let sum = a ^ b ^ carry;
                carry = a & b | carry & (a ^ b);
                sum
            })
            .collect()
    }

    /// Shift and add; the result is as wide as `a`.
    fn multiply(a: &[bool], b: &[bool]) -> Vector {
        let mut sum = vec![false; a.len()];
        for (k, _) in b.iter().enumerate().filter(|(k, b)| **b && *k < a.len()) {
            let shifted: Vector = (0..a.len()).map(|i| i >= k && a[i - k]).collect();
            sum = add(&sum, &shifted, false);
        }
        sum
    }

    fn extend(v: &[bool], width: u32, fill: bool) -> Vector {
        (0..width as usize).map(|k| v.get(k).copied().unwrap_or(fill)).collect()
    }

    /// Widths of interest and everything between.
    fn a_width() -> impl Strategy<Value = u32> {
        prop_oneof![1..200u32, prop_oneof![Just(1u32), Just(32), Just(63), Just(64), Just(65), Just(128)]]
    }

    fn pair() -> impl Strategy<Value = (Vector, Vector)> {
        let dense = a_width().prop_flat_map(|w| (vec(any::<bool>(), w as usize), vec(any::<bool>(), w as usize)));
        let equal = a_width().prop_flat_map(|w| vec(any::<bool>(), w as usize)).prop_map(|v| (v.clone(), v));
        prop_oneof![4 => dense, 1 => equal]
    }

    proptest! {
        #[test]
        fn pairs_of_equal_width((a, b) in pair()) {
            let w = a.len() as u32;
            let run = |op: Op, width| vector(&eval(&op, width, &[&bits(&a), &bits(&b)], &[w, w]), width);
            let each = |f: fn(bool, bool) -> bool| a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect::<Vector>();
            prop_assert_eq!(run(Op::And, w), each(|a, b| a & b));
            prop_assert_eq!(run(Op::Or, w), each(|a, b| a | b));
            prop_assert_eq!(run(Op::Xor, w), each(|a, b| a ^ b));
            let not_b = each(|_, b| !b);
            prop_assert_eq!(run(Op::Add, w), add(&a, &b, false));
            prop_assert_eq!(run(Op::Sub, w), add(&a, &not_b, true));
            prop_assert_eq!(run(Op::Mul, w), multiply(&a, &b));
            let less = a.iter().rev().lt(b.iter().rev());
            let (sign_a, sign_b) = (a[a.len() - 1], b[b.len() - 1]);
            prop_assert_eq!(run(Op::Lt, 1), [less]);
            prop_assert_eq!(run(Op::LtSigned, 1), [if sign_a == sign_b { less } else { sign_a }]);
            prop_assert_eq!(run(Op::Eq, 1), [a == b]);
            prop_assert_eq!(run(Op::Ne, 1), [a != b]);
        }

        #[test]
        fn pairs_of_any_width((a, _) in pair(), (b, _) in pair()) {
            let (wa, wb) = (a.len() as u32, b.len() as u32);
            let run = |op: Op, width| vector(&eval(&op, width, &[&bits(&a), &bits(&b)], &[wa, wb]), width);
            let (sign_a, sign_b) = (a[a.len() - 1], b[b.len() - 1]);
            let full = wa + wb;
            prop_assert_eq!(run(Op::MulFull, full), multiply(&extend(&a, full, false), &b));
            prop_assert_eq!(
                run(Op::MulFullSigned, full),
                multiply(&extend(&a, full, sign_a), &extend(&b, full, sign_b))
            );
            prop_assert_eq!(run(Op::Cat, full), [a, b].concat());
        }

        #[test]
        fn shifts((a, _) in pair(), amount in 0..250u32, amount_width in 8..100u32) {
            let w = a.len();
            let run = |op: Op| vector(&eval(&op, w as u32, &[&bits(&a), &amount.into()], &[w as u32, amount_width]), w as u32);
            let n = amount as usize;
            let left: Vector = (0..w).map(|k| k >= n && a[k - n]).collect();
            let right = |fill: bool| (0..w).map(|k| a.get(k + n).copied().unwrap_or(fill)).collect::<Vector>();
            prop_assert_eq!(run(Op::Shl), left);
            prop_assert_eq!(run(Op::Shr), right(false));
            prop_assert_eq!(run(Op::Sar), right(a[w - 1]));
        }

        #[test]
        fn single_operands((a, _) in pair(), low in 0..200usize, part in 1..200usize, more in 0..100u32) {
            let w = a.len() as u32;
            let run = |op: Op, width| vector(&eval(&op, width, &[&bits(&a)], &[w]), width);
            prop_assert_eq!(run(Op::Not, w), a.iter().map(|b| !b).collect::<Vector>());
            prop_assert_eq!(run(Op::SExt, w + more), extend(&a, w + more, a[a.len() - 1]));
            prop_assert_eq!(run(Op::ZExt, w + more), extend(&a, w + more, false));
            let ones = a.iter().filter(|b| **b).count();
            prop_assert_eq!(run(Op::Any, 1), [ones > 0]);
            prop_assert_eq!(run(Op::All, 1), [ones == a.len()]);
            prop_assert_eq!(run(Op::Parity, 1), [ones % 2 == 1]);
            prop_assert_eq!(eval(&Op::CountOnes, 8, &[&bits(&a)], &[w]), ones as u64);
            let low = low % a.len();
            let part = 1 + part % (a.len() - low);
            prop_assert_eq!(run(Op::Slice(low as u32), part as u32), &a[low..low + part]);
        }

        #[test]
        fn many_parts(parts in vec(vec(any::<bool>(), 1..80), 1..12), element in 1..70u32, index in 0..20u64) {
            let values: Vec<Bits> = parts.iter().map(|p| bits(p)).collect();
            let widths: Vec<u32> = parts.iter().map(|p| p.len() as u32).collect();
            let total: u32 = widths.iter().sum();
            let cat = eval(&Op::Cat, total, &values.iter().collect::<Vec<_>>(), &widths);
            prop_assert_eq!(vector(&cat, total), parts.concat());
            let elements = total / element;
            if elements > 0 {
                let v = cat.truncate(elements * element);
                let got = eval(&Op::Select, element, &[&v, &index.into()], &[elements * element, 64]);
                let want = parts.concat();
                let at = |k: u32| index < elements as u64 && want[(index as u32 * element + k) as usize];
                prop_assert_eq!(vector(&got, element), (0..element).map(at).collect::<Vector>());
            }
        }
    }
}

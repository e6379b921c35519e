//! The multiplier of one lane, pipelined, which also shifts: the result is there [`MULTIPLIER_STAGES`] clock edges
//! after the operands.
//!
//! One signed 33 × 33 bit product serves all. It is put together from four smaller ones, whose factors and results are
//! registers, since a DSP block takes most of a cycle; the last stage takes half of it. To shift by n to the left is to
//! multiply by 2ⁿ. To the right it is to multiply by 2³²⁻ⁿ and to take the upper half; but 2³² is no factor, so by 0 it
//! is to multiply by 1 and to take the lower.

use crate::pipeline::timing::MULTIPLIER_STAGES;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MultiplierIn<T> {
    /// One bit a stage, the first lowest: it has an instruction in this cycle.
    pub valid: T,
    /// funct3 of the instruction: mul, mulh, mulhsu, mulhu; of a shift, bit 2 says that it is to the right.
    pub operation: T,
    /// It is a shift, by the lowest 5 bits of b; one that keeps the sign.
    pub shift: T,
    pub arithmetic: T,
    pub a: T,
    pub b: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MultiplierOut<T> {
    /// 0 if the last stage had no instruction.
    pub result: T,
}

pub fn multiplier() -> TypedModule<MultiplierIn<Width>, MultiplierOut<Signal>> {
    let inputs = MultiplierIn { valid: MULTIPLIER_STAGES, operation: 3, shift: 1, arithmetic: 1, a: 32, b: 32 };
    module("multiplier", inputs, |m, i| {
        let MultiplierIn { valid, operation, shift, arithmetic, a, b } = i;
        m.doc("The multiplier of one lane, pipelined.");
        let right = operation.bit(2);
        wire!(factor = shift.mux(power(b.slice(0, 5), right), b));
        // a is signed in all but mulhu (3), b in mul (0) and mulh (1); for mul it makes no difference.
        wire!(a_signed = shift.mux(arithmetic, operation.slice(0, 2).ne(3)));
        wire!(b_signed = !shift & !operation.bit(1));
        wire!(low = shift.mux(!right | !i.b.slice(0, 5).any(), operation.slice(0, 2).eq(0)));
        let a = m.pipe_if("a_factor", valid.bit(0), parts(a, a_signed));
        let b = m.pipe_if("b_factor", valid.bit(0), parts(factor, b_signed));
        let low = m.pipe_if("low_of_factors", valid.bit(0), low);

        let of_products = |name: &str, product: Signal| m.pipe_if(name, valid.bit(1), product);
        let (a_low, b_low) = (a.low.zext(17), b.low.zext(17));
        let low_low = of_products("low_low", a_low.mul_full_signed(b_low).slice(0, 32));
        let low_high = of_products("low_high", a_low.mul_full_signed(b.high));
        let high_low = of_products("high_low", a.high.mul_full_signed(b_low));
        let high_high = of_products("high_high", a.high.mul_full_signed(b.high).slice(0, 32));
        wire!(middle = low_high.sext(48) + high_low.sext(48));
        wire!(upper = cat(&[low_low.slice(16, 16), high_high]) + middle);
        let (mut whole, mut low) = (cat(&[low_low.slice(0, 16), upper]), of_products("low", low));
        for stage in 2..MULTIPLIER_STAGES - 1 {
            let number = if stage == 2 { String::new() } else { format!("_{stage}") };
            whole = m.pipe_if(&format!("product{number}"), valid.bit(stage), whole);
            low = m.pipe_if(&format!("low_of_product{number}"), valid.bit(stage), low);
        }
        let half = low.mux(whole.slice(0, 32), whole.slice(32, 32));
        MultiplierOut { result: m.pipe("half", valid.msb().mux(half, half.literal(0u32))) }
    })
}

/// A factor as two: low + high × 2¹⁶, the upper one signed, 16 and 17 bits.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Parts<T> {
    low: T,
    high: T,
}

fn parts(word: Signal, signed: Signal) -> Parts<Signal> {
    Parts { low: word.slice(0, 16), high: cat(&[word.slice(16, 16), word.msb() & signed]) }
}

/// 32 bits: 2 to the power of a 5-bit amount, or of 32 less the amount, modulo 32.
fn power(amount: Signal, negative: Signal) -> Signal {
    // 8 high + low: both as one bit of several, so that each bit of the power is an AND of two.
    let low = amount.slice(0, 3);
    let bits = |index: Signal, count: u32| (0..count).map(|k| index.eq(k)).collect::<Vec<_>>();
    let (lows, highs) = (bits(low, 8), bits(amount.slice(3, 2), 4));
    let low = |k: usize| negative.mux(lows[(8 - k) % 8], lows[k]);
    // -(8 high + low) is 8 (-high) if low is 0, else 8 (-high - 1) + (8 - low).
    let borrows = !lows[0];
    let high = |k: usize| negative.mux(borrows.mux(highs[3 - k], highs[(4 - k) % 4]), highs[k]);
    cat(&(0..32).map(|k| low(k % 8) & high(k / 8)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;

    /// A funct3, whether it shifts, whether it keeps the sign.
    type Operation = (u32, bool, bool);

    #[test]
    fn all_products_and_shifts_after_as_many_cycles() {
        let mut t = Sim::new(&multiplier().check().unwrap());
        let mut r = fastrand::Rng::with_seed(1);
        let values = [0u32, 1, 3, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678, 0xffff, 0x1_0000, 0x8000];
        let pairs = values.into_iter().flat_map(|a| values.map(|b| (a, b)));
        let amounts = values.into_iter().flat_map(|a| (0..32).map(move |n| (a, n | 0xabcd_ef00)));
        for (a, b) in pairs.chain(amounts) {
            let (ua, ub, sa, sb) = (u64::from(a), u64::from(b), i64::from(a as i32), i64::from(b as i32));
            let n = b & 31;
            let wants: [(Operation, u32); 7] = [
                ((0, false, false), ua.wrapping_mul(ub) as u32),
                ((1, false, false), ((sa * sb) >> 32) as u32),
                ((2, false, false), ((sa * ub as i64) >> 32) as u32),
                ((3, false, false), ((ua * ub) >> 32) as u32),
                ((1, true, false), a << n),
                ((5, true, false), a >> n),
                ((5, true, true), (a as i32 >> n) as u32),
            ];
            for ((operation, shift, arithmetic), want) in wants {
                for stage in 0..MULTIPLIER_STAGES {
                    // In each stage alone: whatever comes after it must not disturb it.
                    let mut or_other =
                        |value: u64, most: u64| Bits::from(if stage == 0 { value } else { r.u64(..=most) });
                    t.poke(MultiplierIn {
                        operation: or_other(operation.into(), 7),
                        shift: or_other(shift.into(), 1),
                        arithmetic: or_other(arithmetic.into(), 1),
                        a: or_other(ua, u32::MAX.into()),
                        b: or_other(ub, u32::MAX.into()),
                        valid: Bits::from(1u64 << stage),
                    });
                    t.step();
                }
                let got = t.peek().result;
                assert_eq!(got, u64::from(want), "{operation} {shift} {arithmetic} of {a:#x}, {b:#x}");
                t.poke_port("valid", 0u32);
                t.step();
                assert_eq!(t.peek().result, 0u64);
            }
        }
    }
}

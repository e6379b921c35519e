//! The divider of one lane, iterative: one quotient bit a step,
//! [`DIVIDER_STEPS`](crate::pipeline::timing::DIVIDER_STEPS) of them after the start.
//!
//! Division by zero gives all ones and the dividend, as RISC-V asks; so does the overflow of the most negative number
//! by -1, which gives itself and 0.
//!
//! Magnitudes are divided, without computing them ([`super::alu`] inverts the divisor on the way):
//!
//! * Of a negative divisor, the divisor is added, else it is subtracted.
//! * Of a negative dividend a, ~a is divided, which is |a| - 1. It leaves a quotient q and a remainder r < |b|. If r is
//!   |b| - 1, b divides a: the quotient is q + 1 and the remainder 0. Else they are q and r + 1, and -(r + 1) is ~r.
//! * To negate a quotient is to invert it and to add 1, so q + 1 costs nothing.

use super::sum_of;
use heddle_hdl::{elements, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DividerIn<T> {
    /// Take the operands.
    pub start: T,
    /// Compute one bit; not in the cycle of `start`.
    pub step: T,
    /// All bits are there: what is not the result is emptied.
    pub ends: T,
    /// funct3 of the instruction at the start: div, divu, rem, remu.
    pub operation: T,
    pub a: T,
    /// What is added for a bit of the quotient, less the 1 that makes -b of ~b: b if it is negative, else ~b. The ALU
    /// has it.
    pub divisor: T,
    pub b_negative: T,
    /// Else the result is 0.
    pub shown: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DividerOut<T> {
    /// Valid after the end, until the next start.
    pub result: T,
}

/// Parts of a sum of which it is known whether all bits are on: each is one table of four inputs.
const ONES: Width = 8;

/// For each part of the sum, whether all its bits are on.
fn parts(sum: Signal) -> Signal {
    cat(&elements(sum, sum.width() / ONES).into_iter().map(Signal::all).collect::<Vec<_>>())
}

pub fn divider() -> TypedModule<DividerIn<Width>, DividerOut<Signal>> {
    let inputs = DividerIn { start: 1, step: 1, ends: 1, operation: 3, a: 32, divisor: 32, b_negative: 1, shown: 1 };
    module("divider_lane", inputs, |m, i| {
        m.doc("The divider of one lane: restoring division, one bit a step.");
        wire!(is_signed = !i.operation.bit(0));
        wire!(a_negative = is_signed & i.a.msb());
        let remains = m.pipe_if("remains", i.start, i.operation.bit(1));
        let negative = m.pipe_if("negative", i.start, a_negative);
        let opposite = m.pipe_if("opposite", i.start, a_negative ^ i.b_negative);
        // Above it, both b and ~b have a bit more that is on.
        let addend = m.pipe_if("addend", i.start, i.divisor);
        let subtracts = m.pipe_if("subtracts", i.start, !i.b_negative);

        // The dividend leaves the quotient register at the top while quotient bits enter at the bottom.
        let quotient = m.reg("quotient", 32);
        let remainder = m.reg("remainder", 32);
        // The remainder was the divisor less 1 before the last step; and what the last step says of that. All bits of a
        // sum are looked at, late in the cycle, so a part of them is put together in the next one.
        let most = m.reg("most", 1);
        let fitted = m.reg("fitted", 1);
        let brought = m.reg("brought", 1);
        let ones = m.reg("ones", ONES);
        let bit = quotient.q.msb();
        wire!(shifted = cat(&[bit, remainder.q]));
        wire!(rest = sum_of(shifted, cat(&[addend, m.lit(1u32, 1)]), subtracts).sum);
        wire!(fits = !rest.msb());
        wire!(is_most = fitted.q.mux(most.q & brought.q, ones.q.all()));
        // In the end, the register that is not the result is empty: so the result needs no choice, and a bit of it is
        // one table.
        wire!(empties = i.start | (i.ends & (!remains | (negative & is_most))));
        wire!(forgets = i.ends & remains);
        let active = i.start | i.step;
        let next_remainder = fits.mux(rest, shifted).slice(0, 32);
        let next_quotient = i.start.mux(i.a ^ a_negative.repeat(32), cat(&[fits, quotient.q.slice(0, 31)]));
        quotient.next_if(active | forgets, forgets.mux(next_quotient.literal(0u32), next_quotient));
        remainder.next_if(active | empties, empties.mux(next_remainder.literal(0u32), next_remainder));
        most.next_if(active | i.ends, is_most);
        // At the start it is not.
        fitted.next_if(active, fits | i.start);
        brought.next_if(active, bit & !i.start);
        ones.next_if(active, parts(rest.slice(0, 32)));

        wire!(divides = negative & most.q);
        // With signs, the first bit of the dividend is 0: it is in no divisor but 0, whose quotient stays.
        wire!(by_zero = quotient.q.msb());
        wire!(inverts = remains.mux(negative & !divides, opposite & !by_zero));
        wire!(value = ((remainder.q | quotient.q) ^ inverts.repeat(32)).only_if(i.shown));
        wire!(one_more = i.shown & !remains & (inverts ^ divides));
        DividerOut { result: sum_of(value, value.literal(0u32), one_more).sum }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::timing::DIVIDER_STEPS;
    use heddle_sim::Sim;

    #[test]
    fn all_four_operations_at_the_edges() {
        let mut t = Sim::new(&divider().check().unwrap());
        let values = [0u32, 1, 2, 7, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678, 0xffff_fff9];
        let edges = values.into_iter().flat_map(|a| values.map(|b| (a, b)));
        let mut r = fastrand::Rng::with_seed(1);
        // Of all sizes, half of them multiples.
        let random = (0..300).map(|k| {
            let b = r.u32(..) as i32 >> r.u32(..32);
            let a = (r.u32(..) as i32 >> r.u32(..32)) as u32;
            let multiple = (a as i32).checked_rem(b).map_or(a, |rest| a.wrapping_sub(rest as u32));
            (if k % 2 == 0 { a } else { multiple }, b as u32)
        });
        for (a, b) in edges.chain(random.collect::<Vec<_>>()) {
            let (sa, sb) = (a as i32, b as i32);
            let wants = [
                (4, if b == 0 { u32::MAX } else { sa.wrapping_div(sb) as u32 }),
                (5, a.checked_div(b).unwrap_or(u32::MAX)),
                (6, if b == 0 { a } else { sa.wrapping_rem(sb) as u32 }),
                (7, a.checked_rem(b).unwrap_or(a)),
            ];
            let negative = |operation: u32| operation & 1 == 0 && sb < 0;
            for (operation, want) in wants {
                let drive = |start: bool, step: bool, ends: bool| DividerIn {
                    start: Bits::from(start),
                    step: Bits::from(step),
                    ends: Bits::from(ends),
                    operation: Bits::from(operation as u64),
                    a: Bits::from(a),
                    divisor: Bits::from(if negative(operation) { b } else { !b }),
                    b_negative: Bits::from(negative(operation)),
                    shown: true.into(),
                };
                t.poke(drive(true, false, false));
                t.step();
                t.poke(drive(false, true, false));
                t.steps(u64::from(DIVIDER_STEPS));
                t.poke(drive(false, false, true));
                t.step();
                t.poke(drive(false, false, false));
                t.settle();
                assert_eq!(t.peek().result, u64::from(want), "operation {operation} of {a:#x}, {b:#x}");
                t.poke(DividerIn { shown: false.into(), ..drive(false, false, false) });
                assert_eq!(t.peek().result, 0, "operation {operation} of {a:#x}, {b:#x}, not shown");
            }
        }
    }
}

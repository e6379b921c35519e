//! The divider of one lane, iterative: one quotient bit a step, [`DIVIDER_STEPS`](crate::pipeline::timing::DIVIDER_STEPS) of them after the start.
//!
//! Division by zero gives all ones and the dividend, as RISC-V asks; so does the overflow of the most negative number by
//! -1, which gives itself and 0.

use super::sum_of;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DividerIn<T> {
    /// Take the operands.
    pub start: T,
    /// Compute one bit; not in the cycle of `start`.
    pub step: T,
    /// funct3 of the instruction at the start: div, divu, rem, remu.
    pub operation: T,
    pub a: T,
    pub b: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DividerOut<T> {
    /// Valid after [`DIVIDER_STEPS`](crate::pipeline::timing::DIVIDER_STEPS), until the next start.
    pub result: T,
}

pub fn divider() -> TypedModule<DividerIn<Width>, DividerOut<Signal>> {
    module("divider_lane", DividerIn { start: 1, step: 1, operation: 3, a: 32, b: 32 }, |m, i| {
        m.doc("The divider of one lane: restoring division, one bit a step.");
        wire!(is_signed = !i.operation.bit(0));
        wire!(a_negative = is_signed & i.a.msb());
        wire!(b_negative = is_signed & i.b.msb());
        let magnitude = |v: Signal, negative: Signal| sum_of(v ^ negative.repeat(32), v.literal(0u32), negative).sum;
        let remains = m.pipe_if("remains", i.start, i.operation.bit(1));
        let negate_quotient = m.pipe_if("negate_quotient", i.start, (a_negative ^ b_negative) & i.b.any());
        let negate_remainder = m.pipe_if("negate_remainder", i.start, a_negative);
        // What is added for a bit of the quotient: b if it is negative, else ~b + 1. Above it, both have a bit more that is on.
        let addend = m.pipe_if("addend", i.start, i.b ^ (!b_negative).repeat(32));
        let subtracts = m.pipe_if("subtracts", i.start, !b_negative);

        // The dividend leaves the quotient register at the top while quotient bits enter at the bottom.
        let quotient = m.reg("quotient", 32);
        let remainder = m.reg("remainder", 32);
        wire!(shifted = cat(&[quotient.q.msb(), remainder.q]));
        wire!(rest = sum_of(shifted, cat(&[addend, m.lit(1u32, 1)]), subtracts).sum);
        wire!(fits = !rest.msb());
        wire!(next_quotient = cat(&[fits, quotient.q.slice(0, 31)]));
        wire!(next_remainder = fits.mux(rest, shifted).slice(0, 32));
        let active = i.start | i.step;
        quotient.next_if(active, i.start.mux(magnitude(i.a, a_negative), next_quotient));
        remainder.next_if(active, i.start.mux(next_remainder.literal(0u32), next_remainder));

        wire!(value = remains.mux(remainder.q, quotient.q));
        wire!(negate = remains.mux(negate_remainder, negate_quotient));
        DividerOut { result: magnitude(value, negate) }
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
        for (a, b) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
            let (sa, sb) = (a as i32, b as i32);
            let wants = [
                (4, if b == 0 { u32::MAX } else { sa.wrapping_div(sb) as u32 }),
                (5, a.checked_div(b).unwrap_or(u32::MAX)),
                (6, if b == 0 { a } else { sa.wrapping_rem(sb) as u32 }),
                (7, a.checked_rem(b).unwrap_or(a)),
            ];
            for (operation, want) in wants {
                let drive = |start: bool, step: bool| DividerIn {
                    start: Bits::from(start),
                    step: Bits::from(step),
                    operation: Bits::from(operation as u64),
                    a: Bits::from(a),
                    b: Bits::from(b),
                };
                t.poke(drive(true, false));
                t.step();
                t.poke(drive(false, true));
                t.steps(u64::from(DIVIDER_STEPS));
                t.poke(drive(false, false));
                t.settle();
                assert_eq!(t.peek().result, u64::from(want), "operation {operation} of {a:#x}, {b:#x}");
            }
        }
    }
}

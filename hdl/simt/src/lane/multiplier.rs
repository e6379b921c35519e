//! The multiplier of one lane, pipelined: the result is there three clock edges after the operands.
//!
//! One signed 33 × 33 bit product serves all four instructions; two registers behind it let synthesis use the pipeline
//! registers of DSP blocks.

use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MultiplierIn<T> {
    /// funct3 of the instruction: mul, mulh, mulhsu, mulhu.
    pub operation: T,
    pub a: T,
    pub b: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MultiplierOut<T> {
    pub result: T,
}

pub fn multiplier() -> TypedModule<MultiplierIn<Width>, MultiplierOut<Signal>> {
    module("multiplier", MultiplierIn { operation: 3, a: 32, b: 32 }, |m, MultiplierIn { operation, a, b }| {
        m.doc("The multiplier of one lane: three stages.");
        // a is signed in all but mulhu (3), b in mul (0) and mulh (1); for mul it makes no difference.
        wire!(a_wide = cat(&[a, a.msb() & operation.slice(0, 2).ne(3)]));
        wire!(b_wide = cat(&[b, b.msb() & !operation.bit(1)]));
        wire!(product = a_wide.mul_full_signed(b_wide));
        let first = m.pipe("first", product.slice(0, 64));
        let low = m.pipe("low", operation.slice(0, 2).eq(0));
        let second = m.pipe("second", first);
        let low = m.pipe("low_2", low);
        let result = m.pipe("third", low.mux(second.slice(0, 32), second.slice(32, 32)));
        MultiplierOut { result }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;

    #[test]
    fn all_four_products_three_cycles_later() {
        let mut t = Sim::new(&multiplier().check().unwrap());
        let values = [0u32, 1, 3, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678];
        for (a, b) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
            let (ua, ub, sa, sb) = (u64::from(a), u64::from(b), i64::from(a as i32), i64::from(b as i32));
            let wants = [
                (0, ua.wrapping_mul(ub) as u32),
                (1, ((sa * sb) >> 32) as u32),
                (2, ((sa * ub as i64) >> 32) as u32),
                (3, ((ua * ub) >> 32) as u32),
            ];
            for (operation, want) in wants {
                let input =
                    MultiplierIn { operation: Bits::from(operation as u64), a: Bits::from(ua), b: Bits::from(ub) };
                t.poke(input);
                t.steps(3);
                assert_eq!(t.peek().result, u64::from(want), "operation {operation} of {a:#x}, {b:#x}");
            }
        }
    }
}

//! The multiplier of one lane, pipelined: the result is there three clock edges after the operands.
//!
//! One signed 33 × 33 bit product serves all four instructions; two registers behind it let synthesis use the pipeline
//! registers of DSP blocks.

use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MultiplierIn<T> {
    /// Three bits: the first, second, third stage has an instruction in this cycle.
    pub valid: T,
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
    module("multiplier", MultiplierIn { valid: 3, operation: 3, a: 32, b: 32 }, |m, i| {
        let MultiplierIn { valid, operation, a, b } = i;
        m.doc("The multiplier of one lane: three stages.");
        // a is signed in all but mulhu (3), b in mul (0) and mulh (1); for mul it makes no difference.
        wire!(a_wide = cat(&[a, a.msb() & operation.slice(0, 2).ne(3)]));
        wire!(b_wide = cat(&[b, b.msb() & !operation.bit(1)]));
        wire!(product = a_wide.mul_full_signed(b_wide));
        let first = m.pipe_if("first", valid.bit(0), product.slice(0, 64));
        let low = m.pipe_if("low", valid.bit(0), operation.slice(0, 2).eq(0));
        let second = m.pipe_if("second", valid.bit(1), first);
        let low = m.pipe_if("low_2", valid.bit(1), low);
        let result = m.pipe_if("third", valid.bit(2), low.mux(second.slice(0, 32), second.slice(32, 32)));
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
        let mut r = fastrand::Rng::with_seed(1);
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
                for stage in 0..3 {
                    // In each stage alone: whatever comes after it must not disturb it.
                    let mut or_other =
                        |value: u64| Bits::from(if stage == 0 { value } else { r.u64(..) & 0xffff_ffff });
                    t.poke(MultiplierIn {
                        operation: Bits::from(if stage == 0 { operation as u64 } else { 3 - operation as u64 }),
                        a: or_other(ua),
                        b: or_other(ub),
                        valid: Bits::from(1u64 << stage),
                    });
                    t.step();
                }
                assert_eq!(t.peek().result, u64::from(want), "operation {operation} of {a:#x}, {b:#x}");
            }
        }
    }
}

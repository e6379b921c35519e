//! The multiplier of one lane, pipelined: the result is there [`MULTIPLIER_STAGES`] clock edges after the operands.
//!
//! One signed 33 × 33 bit product serves all four instructions; the registers behind it let synthesis use the pipeline
//! registers of DSP blocks. The last one takes half of the product.

use crate::pipeline::timing::MULTIPLIER_STAGES;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MultiplierIn<T> {
    /// One bit a stage, the first lowest: it has an instruction in this cycle.
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
    module("multiplier", MultiplierIn { valid: MULTIPLIER_STAGES, operation: 3, a: 32, b: 32 }, |m, i| {
        let MultiplierIn { valid, operation, a, b } = i;
        m.doc("The multiplier of one lane, pipelined.");
        // a is signed in all but mulhu (3), b in mul (0) and mulh (1); for mul it makes no difference.
        wire!(a_wide = cat(&[a, a.msb() & operation.slice(0, 2).ne(3)]));
        wire!(b_wide = cat(&[b, b.msb() & !operation.bit(1)]));
        wire!(product = a_wide.mul_full_signed(b_wide));
        let names = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
        let names = &names[..MULTIPLIER_STAGES as usize];
        let (mut whole, mut low) = (product.slice(0, 64), operation.slice(0, 2).eq(0));
        for (stage, name) in (0..MULTIPLIER_STAGES - 1).zip(names) {
            whole = m.pipe_if(name, valid.bit(stage), whole);
            let name = if stage == 0 { "low".to_string() } else { format!("low_{}", stage + 1) };
            low = m.pipe_if(&name, valid.bit(stage), low);
        }
        let half = low.mux(whole.slice(0, 32), whole.slice(32, 32));
        MultiplierOut { result: m.pipe_if(names[names.len() - 1], valid.msb(), half) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;

    #[test]
    fn all_four_products_after_as_many_cycles() {
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
                for stage in 0..MULTIPLIER_STAGES {
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

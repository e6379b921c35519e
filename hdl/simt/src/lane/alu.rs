//! The ALU of one lane: results, addresses, branch conditions. Combinational.

use crate::isa::alu;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct AluIn<T> {
    /// One of [`mod@alu`].
    pub operation: T,
    /// Branch condition, as in the instruction.
    pub condition: T,
    pub a: T,
    pub b: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct AluOut<T> {
    pub result: T,
    /// 1 bit: the branch condition holds between a and b.
    pub taken: T,
}

pub fn alu() -> TypedModule<AluIn<Width>, AluOut<Signal>> {
    module(
        "alu",
        AluIn { operation: alu::BITS, condition: 3, a: 32, b: 32 },
        |m, AluIn { operation, condition, a, b }| {
            m.doc("The ALU of one lane.");
            wire!(sum = a + b);
            wire!(difference = a - b);
            wire!(below = a.lt(b));
            wire!(below_signed = a.lt_signed(b));
            let amount = b.slice(0, 5);
            let result = case(
                operation,
                &[
                    (alu::SUB, difference),
                    (alu::SLL, a.shl(amount)),
                    (alu::SLT, below_signed.zext(32)),
                    (alu::SLTU, below.zext(32)),
                    (alu::XOR, a ^ b),
                    (alu::SRL, a.shr(amount)),
                    (alu::SRA, a.sar(amount)),
                    (alu::OR, a | b),
                    (alu::AND, a & b),
                ],
                sum,
            );
            // Bit 0 of the condition negates; bits 2..1 choose equal, signed or unsigned order.
            wire!(holds = condition.bit(2).mux(condition.bit(1).mux(below, below_signed), a.eq(b)));
            AluOut { result, taken: holds ^ condition.bit(0) }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;

    #[test]
    fn every_operation_at_the_edges() {
        let mut t = Sim::new(&alu().check().unwrap());
        let values = [0u32, 1, 2, 31, 32, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff, 0x1234_5678];
        for (a, b) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
            let (sa, sb) = (a as i32, b as i32);
            let results = [
                (alu::ADD, a.wrapping_add(b)),
                (alu::SUB, a.wrapping_sub(b)),
                (alu::SLL, a << (b & 31)),
                (alu::SLT, u32::from(sa < sb)),
                (alu::SLTU, u32::from(a < b)),
                (alu::XOR, a ^ b),
                (alu::SRL, a >> (b & 31)),
                (alu::SRA, (sa >> (b & 31)) as u32),
                (alu::OR, a | b),
                (alu::AND, a & b),
            ];
            let conditions = [(0, a == b), (1, a != b), (4, sa < sb), (5, sa >= sb), (6, a < b), (7, a >= b)];
            for (operation, want) in results {
                t.poke(AluIn { operation, condition: 0, a, b }.map("", &mut |_, v: u32| Bits::from(v)));
                t.settle();
                assert_eq!(t.peek().result, u64::from(want), "operation {operation} of {a:#x}, {b:#x}");
            }
            for (condition, want) in conditions {
                t.poke(AluIn { operation: 0, condition, a, b }.map("", &mut |_, v: u32| Bits::from(v)));
                t.settle();
                assert_eq!(t.peek().taken, u64::from(want), "condition {condition} of {a:#x}, {b:#x}");
            }
        }
    }
}

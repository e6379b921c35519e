//! The ALU of one lane: results, addresses, differences with the order of their operands. Combinational.
//!
//! One carry chain adds, subtracts and compares, and does what is done bit by bit:
//!
//! | operation | is |
//! |---|---|
//! | `a \| b` | `a + (b & ~a)`, which carries nothing |
//! | `a ^ b` | `(a & ~b) + (b & ~a)`, neither |
//! | `a & b` | `a - (a & ~b)`: `a + (b \| ~a) + 1` |
//!
//! So each bit of its two words is a function of four inputs, one table, and nothing is chosen behind it. Shifts are
//! here only in a core without a [multiplier](super::multiplier), which shifts otherwise.

use super::{Sum, sum_of};
use crate::isa::Alu;
use heddle_hdl::prelude::*;

/// What an operation asks of the ALUs of all lanes, found a stage before: it goes to every bit.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Control<T> {
    /// An [`Alu`]; of what has a condition, [`Alu::Sub`].
    pub operation: T,
    /// 1 bit each: it is XOR; it takes the second operand inverted, if it does not divide; it is SLT or SLTU, whose
    /// result is [`AluOut::below`], a bit.
    pub xor: T,
    pub inverts: T,
    pub compares: T,
    /// 1 bit: the operation is ADD, and [`AluOut::addend`] is for the [divider](super::divider).
    pub divides: T,
}

impl Control<Width> {
    pub fn shape() -> Control<Width> {
        Control { operation: Alu::WIDTH, xor: 1, inverts: 1, compares: 1, divides: 1 }
    }
}

impl Control<Signal> {
    pub fn of(operation: Signal, divides: Signal) -> Control<Signal> {
        let is = |one: Alu| operation.slice(0, 3).eq(one.code() & 7);
        let compares = operation.slice(1, 3).eq(Alu::Slt.code() >> 1);
        let inverts = operation.bit(2).mux(is(Alu::And), operation.bit(3) | compares);
        Control { operation, xor: is(Alu::Xor), inverts, compares, divides }
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct AluIn<T> {
    pub control: Control<T>,
    /// Condition of a branch, as in the instruction.
    pub condition: T,
    pub a: T,
    pub b: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct AluOut<T> {
    /// Of a comparison, and of a shift in an ALU that does not shift, nothing of use.
    pub result: T,
    /// 1 bit, of a comparison: its result.
    pub below: T,
    /// 1 bit, of a difference: a is below b, with or without a sign as bit 1 of the condition says.
    pub order: T,
    /// 32 bits, of a division: b if it is negative, else ~b. Bit 0 of the condition says that it has no sign.
    pub addend: T,
    /// 1 bit, of a division: b is negative.
    pub b_negative: T,
}

pub fn alu(shifts: bool) -> TypedModule<AluIn<Width>, AluOut<Signal>> {
    let inputs = AluIn { control: Control::shape(), condition: 3, a: 32, b: 32 };
    module("alu", inputs, |m, AluIn { control, condition, a, b }| {
        m.doc("The ALU of one lane.");
        let Control { operation, xor, inverts, divides, .. } = control;
        let by_bits = operation.bit(2);
        wire!(b_negative = b.msb() & !condition.bit(0));
        wire!(inverts = inverts | (divides & !b_negative));
        wire!(first = a & !(b & xor.repeat(32)));
        let all = |bit: Signal| bit.repeat(32);
        wire!(second = by_bits.mux(inverts.mux(b | !a, b & !a), b ^ all(inverts)));
        let Sum { sum, carry } = sum_of(first, second, inverts);
        wire!(unsigned_below = !carry);
        wire!(signed_below = unsigned_below ^ a.msb() ^ b.msb());
        let result = if shifts {
            let shifts = operation.slice(0, 2).eq(Alu::Sll);
            shifts.mux(shifted(operation, a, b.slice(0, 5)), sum)
        } else {
            sum
        };
        wire!(order = condition.bit(1).mux(unsigned_below, signed_below));
        let below = operation.bit(0).mux(unsigned_below, signed_below);
        AluOut { result, below, order, addend: second, b_negative }
    })
}

/// All shifts by one shifter to the right: to the left is to the right, with the bits in the opposite order before and
/// behind it.
fn shifted(operation: Signal, a: Signal, amount: Signal) -> Signal {
    let reversed = |word: Signal| cat(&(0..32).rev().map(|bit| word.bit(bit)).collect::<Vec<_>>());
    let left = !operation.bit(2);
    let fill = a.msb() & operation.bit(3);
    let right = cat(&[left.mux(reversed(a), a), fill]).sar(amount).slice(0, 32);
    left.mux(reversed(right), right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;

    #[derive(Bundle, Clone, Copy, PartialEq, Debug)]
    struct Told<T> {
        operation: T,
        condition: T,
        divides: T,
        a: T,
        b: T,
    }

    /// The ALU with what tells it.
    fn told(shifts: bool) -> TypedModule<Told<Width>, AluOut<Signal>> {
        let inputs = Told { operation: Alu::WIDTH, condition: 3, divides: 1, a: 32, b: 32 };
        module("told", inputs, |m, Told { operation, condition, divides, a, b }| {
            let control = Control::of(operation, divides);
            m.instance("alu", &super::alu(shifts), AluIn { control, condition, a, b })
        })
    }

    #[test]
    fn every_operation_at_the_edges() {
        for shifts in [true, false] {
            let mut t = Sim::new(&told(shifts).check().unwrap());
            let values = [0u32, 1, 2, 31, 32, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff, 0x1234_5678];
            for (a, b) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
                let (sa, sb) = (a as i32, b as i32);
                let mut results = vec![
                    (Alu::Add, a.wrapping_add(b)),
                    (Alu::Sub, a.wrapping_sub(b)),
                    (Alu::Slt, u32::from(sa < sb)),
                    (Alu::Sltu, u32::from(a < b)),
                    (Alu::Xor, a ^ b),
                    (Alu::Or, a | b),
                    (Alu::And, a & b),
                ];
                if shifts {
                    let arithmetic = (sa >> (b & 31)) as u32;
                    results.extend([(Alu::Sll, a << (b & 31)), (Alu::Srl, a >> (b & 31)), (Alu::Sra, arithmetic)]);
                }
                let told = |operation: Alu, condition: u32, divides: bool| Told {
                    operation: operation.into(),
                    condition: condition.into(),
                    divides: divides.into(),
                    a: a.into(),
                    b: b.into(),
                };
                let conditions = [(4, sa < sb), (5, sa < sb), (6, a < b), (7, a < b)];
                for (operation, want) in results {
                    t.poke(told(operation, 0, false));
                    t.settle();
                    let compares = operation == Alu::Slt || operation == Alu::Sltu;
                    let got = if compares { t.peek().below } else { t.peek().result };
                    assert_eq!(got, u64::from(want), "{operation:?} of {a:#x}, {b:#x}");
                }
                for condition in [4, 5] {
                    let operation = Alu::Add;
                    t.poke(told(operation, condition, true));
                    t.settle();
                    let negative = condition == 4 && sb < 0;
                    let addend = if negative { b } else { !b };
                    assert_eq!((t.peek().addend, t.peek().b_negative), (addend.into(), negative.into()), "{b:#x}");
                }
                for (condition, want) in conditions {
                    let operation = Alu::Sub;
                    t.poke(told(operation, condition, false));
                    t.settle();
                    assert_eq!(t.peek().order, u64::from(want), "condition {condition} of {a:#x}, {b:#x}");
                }
            }
        }
    }
}

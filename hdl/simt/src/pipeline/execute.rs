//! Stage 7, execute, in two cycles. In the first, each lane's ALU computes a result, an address or a difference; the
//! target of a branch or `jal` is the same for all lanes. Multiplier, which shifts too, and divider start here beside
//! it ([`crate::lane`], [`super::divide`]). In the second, an address becomes a place ([`super::place`]), a difference
//! the condition of a branch, lanes see each other's values ([`super::primitives`]), and the leader's result is chosen.

use super::collect::{Instruction, Operands};
use super::divide::Divisors;
use super::place::{PlaceIn, Wrong, place};
use super::primitives::{Named, PrimitivesIn, PrimitivesOut, primitives};
use super::timing::EXECUTE_TO_RESOLVE;
use crate::divergence::interface::warp_of;
use crate::lane::alu::{AluIn, alu};
use crate::scoreboard::{Pending, Release};
use crate::shape::Shape;
use heddle_hdl::{all, each, elements, prelude::*};

/// An executed instruction, for stage 8.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Executed<T> {
    pub instruction: Instruction<T>,
    /// The lowest lane of the mask, alone.
    #[width(s.lanes)]
    pub leader: T,
    /// 32 bits: its result.
    #[width(32)]
    pub leader_result: T,
    /// 32 bits per lane: result, place of a memory access ([`super::place`]), or target of a `jalr`.
    #[width(32 * s.lanes)]
    pub result: T,
    /// Of a memory access.
    #[width(Wrong::shape(s.lanes))]
    pub wrong: Wrong<T>,
    /// One bit per lane: the branch condition holds; of an `ecall`, a7 asks for exit.
    #[width(s.lanes)]
    pub taken: T,
    /// Byte address, 32 bits: target of a branch or `jal`.
    #[width(32)]
    pub target: T,
    /// 32 bits per lane: rs2.
    #[width(32 * s.lanes)]
    pub data: T,
    /// Of a `sync`, in a core with warp primitives.
    #[width(Named::of(s))]
    pub named: Option<Named<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ExecuteIn<T> {
    pub operands: Operands<T>,
    /// Bits of a warp number that differ among the warps of a block: ones at the bottom, `warp_bits`.
    #[width(s.warp_bits())]
    pub group: T,
    /// First byte address that may be stored to, a multiple of 256; 32 bits.
    #[width(32)]
    pub program_end: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ExecuteOut<T> {
    /// For stage 8.
    pub executed: Executed<T>,
    /// In stage 8, a register whose write is two stages away, for the scoreboard.
    pub early: Release<T>,
    /// What is in the second cycle of stage 7: it comes to stage 8 next.
    pub second: Instruction<T>,
    /// Of a division, in the first cycle of stage 7.
    pub divisors: Divisors<T>,
}

/// An instruction between the two cycles.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct First<T> {
    instruction: Instruction<T>,
    leader: T,
    /// 32 bits per lane, of the ALU.
    result: T,
    /// One bit per lane: of a difference, [`AluOut::order`](crate::lane::alu::AluOut::order).
    order: T,
    target: T,
    data: T,
}

/// A stage more between them would want registers here.
const _: () = assert!(EXECUTE_TO_RESOLVE == 2, "execute takes two cycles");

pub fn execute(s: &Shape) -> TypedModule<ExecuteIn<Width>, ExecuteOut<Signal>> {
    module("execute", ExecuteIn::shape(s), |m, i| {
        m.doc("Stage 7: ALUs and targets.");
        let Operands { instruction, alu: control, a, b, data } = i.operands;
        let d = instruction.decoded;
        // Addresses and jalr targets are sums: decode leaves the operation at ADD.
        let lanes = m.replicate(
            "alu",
            s.lanes,
            &alu(!s.multiply),
            AluIn { control: control.map("", &mut |_, c| all(c)), condition: all(d.funct3), a: each(a), b: each(b) },
        );
        // Of a comparison, all bits but one are 0: registers with a reset do that for nothing.
        let result = elements(lanes.result, 32).into_iter().zip(elements(lanes.below, 1)).map(|(result, below)| {
            let upper = control.compares.mux(m.lit(0u32, 31), result.slice(1, 31));
            cat(&[control.compares.mux(below, result.bit(0)), upper])
        });
        wire!(target = cat(&[m.lit(0u32, 2), d.pc]).zext(32) + d.imm);
        let first = First {
            instruction,
            leader: instruction.mask.lowest_one(),
            result: cat(&result.collect::<Vec<_>>()),
            order: lanes.order,
            target,
            data,
        };

        let First { instruction, leader, result, order, target, data } = m.stage("s7_second", first);
        let d = instruction.decoded;
        let numbers: Vec<Signal> = (0..s.lanes).map(|k| m.lit(k, s.lane_bits())).collect();
        let placed = m.replicate(
            "place",
            s.lanes,
            &place(s),
            PlaceIn {
                computed: each(result),
                accesses: all(d.accesses()),
                writes: all(d.store | d.atomic),
                size: all(d.funct3.slice(0, 2)),
                slot: instruction.homes.map_or(all(warp_of(s, instruction.slot)), each),
                number: each(cat(&numbers)),
                group: all(i.group),
                program_end: all(i.program_end),
            },
        );
        // Bit 0 of the condition negates; bit 2 chooses order instead of equality.
        let holds = elements(result, 32).into_iter().zip(elements(order, 1)).map(|(difference, order)| {
            let equal = !difference.any();
            d.funct3.bit(2).mux(order, equal) ^ d.funct3.bit(0)
        });
        let between = d.primitive.map(|primitive| {
            let inputs = PrimitivesIn { primitive, mask: instruction.mask, leader, values: result, operands: data };
            (primitive, m.instance("primitives", &primitives(s), inputs))
        });
        let result = between.map_or(placed.result, |(primitive, PrimitivesOut { result, .. })| {
            (primitive.votes | primitive.shuffles).mux(result, placed.result)
        });
        let executed = Executed {
            instruction,
            leader,
            leader_result: select_one_hot(&elements(result, 32), leader),
            result,
            wrong: placed.wrong,
            taken: cat(&holds.collect::<Vec<_>>()),
            target,
            data,
            named: between.map(|(_, out)| out.named),
        };
        let divisors = Divisors { addends: lanes.addend, negative: lanes.b_negative };
        let early = Pending { valid: instruction.valid & d.computes(), slot: instruction.slot, rd: d.rd };
        let early = m.pipe_reset("s8_early", early.released(s));
        ExecuteOut { executed: m.stage("s8", executed), second: instruction, early, divisors }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Alu;
    use crate::lane::alu::Control;
    use crate::pipeline::testing::packed;
    use heddle_sim::Sim;

    /// The lanes work alone; targets are there in stage 8, and the registers of results that will be written then.
    /// ([`crate::lane::alu`] tests operations.)
    #[test]
    fn lanes_and_targets() {
        for (lanes, seed) in [(1, 1), (2, 2), (8, 3), (64, 4)] {
            println!("{lanes} lanes, seed {seed}");
            let s = Shape::new(lanes, 2);
            let mut r = fastrand::Rng::with_seed(seed);
            let mut t = Sim::new(&execute(&s).check().unwrap());
            t.reset();
            let zero = Operands::shape(&s).map("", &mut |_, _| Bits::ZERO);
            for _ in 0..200 {
                let mut words = |special: u32| -> Vec<u32> {
                    (0..lanes).map(|_| if r.u8(..3) == 0 { special } else { r.u32(..) }).collect()
                };
                let (a, mut b) = (words(93), words(0));
                (0..lanes as usize).filter(|k| k % 2 == 0).for_each(|k| b[k] = if b[k] == 0 { a[k] } else { b[k] });
                let operation = [Alu::Add, Alu::Sub, Alu::Xor][r.usize(..3)];
                let (pc, imm) = (r.u32(..1 << s.pc_bits()), r.u32(..));
                let condition = [0u32, 1, 4, 5, 6, 7][r.usize(..6)];
                let (slot, rd) = (r.u32(..2), r.u32(1..32));
                let [writes, answers, divide] = [(); 3].map(|()| r.bool());
                let decoded = crate::pipeline::decoded::Decoded {
                    rd: rd.into(),
                    writes: writes.into(),
                    answers: answers.into(),
                    divide: divide.into(),
                    pc: pc.into(),
                    imm: imm.into(),
                    alu: operation.into(),
                    funct3: condition.into(),
                    ..zero.instruction.decoded.clone()
                };
                let instruction =
                    Instruction { valid: true.into(), slot: slot.into(), decoded, ..zero.instruction.clone() };
                let alu = Control {
                    operation: operation.into(),
                    xor: (operation == Alu::Xor).into(),
                    inverts: (operation == Alu::Sub).into(),
                    ..zero.alu.clone()
                };
                let operands = Operands { instruction, alu, a: packed(&a), b: packed(&b), data: packed(&b) };
                t.poke(ExecuteIn { operands, group: 0u32.into(), program_end: 0u32.into() });
                t.steps(u64::from(EXECUTE_TO_RESOLVE));
                let out = t.peek();
                let releases = writes && !answers && !divide;
                assert_eq!(out.early.slots, u64::from(releases) << slot);
                assert_eq!(out.early.registers, 1u64 << rd);
                let out = out.executed;
                assert_eq!(out.target, u64::from((pc * 4).wrapping_add(imm)));
                for k in 0..lanes {
                    let (x, y) = (a[k as usize], b[k as usize]);
                    let result = match operation {
                        Alu::Add => x.wrapping_add(y),
                        Alu::Sub => x.wrapping_sub(y),
                        _ => x ^ y,
                    };
                    assert_eq!(out.result.extract(32 * k, 32), u64::from(result), "lane {k}");
                    assert_eq!(out.data.extract(32 * k, 32), u64::from(y));
                    let holds = match condition {
                        0 => x == y,
                        1 => x != y,
                        4 => (x as i32) < y as i32,
                        5 => x as i32 >= y as i32,
                        6 => x < y,
                        _ => x >= y,
                    };
                    assert!(
                        operation != Alu::Sub || out.taken.bit(k) == holds,
                        "condition {condition} of {x:#x}, {y:#x}"
                    );
                }
            }
        }
    }
}

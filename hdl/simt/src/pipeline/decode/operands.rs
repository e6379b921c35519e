//! What the instruction reads and writes: its registers and its immediate.

use super::kinds::{Accesses, Computes, Jumps, any_of};
use super::{Fields, Instruction};
use crate::isa::{CUSTOM, EXIT, warp};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Registers and immediate.
pub struct Operands {
    /// The registers that it reads; 0 where it reads none.
    pub source1: Signal,
    pub source2: Signal,
    /// 1 bit each: it reads them; it writes `rd`.
    pub use1: Signal,
    pub use2: Signal,
    pub writes: Signal,
    /// 32 bits.
    pub imm: Signal,
}

impl Operands {
    pub fn of(m: Builder, f: &Fields, instruction: &Instruction) -> Operands {
        let &Fields { rd, rs1, rs2, .. } = f;
        let &Jumps { jal, jalr, branch, .. } = &instruction.jumps;
        let &Accesses { load, store, atomic, .. } = &instruction.accesses;
        let &Computes { op_imm, op, muldiv, csr, upper, .. } = &instruction.computes;
        let (of_warp, counts, ecall) = (instruction.between.any, instruction.hints.counts, instruction.ecall);
        wire!(use1 = (jalr | branch | load | store | atomic | op_imm | op | muldiv | of_warp) & rs1.ne(0) | ecall);
        wire!(use2 = (branch | store | atomic | op | muldiv | of_warp) & rs2.ne(0) | ecall);
        wire!(writes = (upper | jal | jalr | load | atomic | op_imm | op | muldiv | csr | counts | of_warp) & rd.ne(0));
        // The exit code is in a0, the number of the system call in a7: the ALU compares it with the immediate.
        wire!(source1 = ecall.mux(rs1.literal(17u32), rs1.only_if(use1)));
        wire!(source2 = ecall.mux(rs2.literal(10u32), rs2.only_if(use2)));
        Operands { source1, source2, use1, use2, writes, imm: immediate(m, f, instruction) }
    }

    /// See [`super::DecodeOut::registers`].
    pub fn registers(&self, m: Builder, s: &Shape, f: &Fields, illegal: Signal) -> Signal {
        let &Fields { word, opcode, funct3, rd, rs1, rs2, .. } = f;
        let opcode_is = |codes: &[u32]| any_of(codes.iter().map(|&code| opcode.slice(2, 5).eq(code >> 2)));
        let mut with_rs2 = vec![0x63, 0x23, 0x2f, 0x33];
        with_rs2.extend(s.warp_primitives.then_some(warp::OPCODE));
        wire!(may_use2 = opcode_is(&with_rs2));
        wire!(may_use1 = may_use2 | opcode_is(&[0x67, 0x03, 0x13]));
        let mut with_rd = vec![0x37, 0x17, 0x6f, 0x67, 0x03, 0x2f, 0x13, 0x33, 0x73, CUSTOM];
        with_rd.extend(s.warp_primitives.then_some(warp::OPCODE));
        wire!(may_write = opcode_is(&with_rd));
        wire!(may_call = opcode_is(&[0x73]) & funct3.eq(0) & !word.bit(20));
        // The flag is the latest: it gates 8 bits, not 32.
        let field = |register: Signal, used: Signal| {
            let (lower, upper) = (register.slice(0, 2).decode(4), register.slice(2, 3).decode(8).only_if(used));
            cat(&(0..8).map(|k| lower.only_if(upper.bit(k))).collect::<Vec<_>>())
        };
        let of_call = m.lit(1u32 << 10 | 1 << 17, 32);
        wire!(
            registers = field(rs1, may_use1) | field(rs2, may_use2) | field(rd, may_write) | of_call.only_if(may_call)
        );
        let exact = self.source1.decode(32) | self.source2.decode(32) | rd.only_if(self.writes).decode(32);
        m.assert("registers_are_those_of_the_fields", illegal | registers.slice(1, 31).eq(exact.slice(1, 31)));
        registers
    }
}

fn immediate(m: Builder, f: &Fields, instruction: &Instruction) -> Signal {
    let &Fields { word, funct7, rd, .. } = f;
    let (zero, sign) = (m.lit(0u32, 1), word.bit(31));
    wire!(imm_i = word.slice(20, 12).sext(32));
    wire!(imm_s = cat(&[rd, funct7]).sext(32));
    wire!(imm_b = cat(&[zero, word.slice(8, 4), word.slice(25, 6), word.bit(7), sign]).sext(32));
    wire!(imm_u = cat(&[m.lit(0u32, 12), word.slice(12, 20)]));
    wire!(imm_j = cat(&[zero, word.slice(21, 10), word.bit(20), word.slice(12, 8), sign]).sext(32));
    let none = m.lit(0u32, 32);
    let Instruction { jumps, accesses, computes, between, ecall, .. } = instruction;
    wire!(
        imm = pick(
            [
                (computes.upper, imm_u),
                (jumps.jal, imm_j),
                (jumps.branch, imm_b),
                (accesses.store, imm_s),
                (accesses.without_offset | between.any, none),
                (*ecall, none.literal(EXIT))
            ],
            imm_i
        )
    );
    imm
}

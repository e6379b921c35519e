//! Stage 3, decode: an instruction word becomes a [`Decoded`] bundle on its way into the slot's buffer.
//!
//! Combinational. Instructions on convergence barriers that the core does not have do nothing; `count` of one is 0 + 0.
//! It also says whether the front end must stop behind the instruction: at everything that produces an outcome at
//! resolve, and at the instruction before the stop pc.

mod kinds;
mod operands;
#[cfg(test)]
mod tests;

use super::decoded::Decoded;
use super::primitives::Primitive;
use crate::divergence::interface::Stop;
use crate::isa::{Alu, BARRIER};
use crate::shape::{Replay, Shape};
use heddle_hdl::prelude::*;
use kinds::{Accesses, Between, Computes, Hints, Jumps};
use operands::Operands;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct DecodeIn<T> {
    /// The instruction word, 32 bits, and its pc.
    #[width(32)]
    pub word: T,
    #[width(s.pc_bits())]
    pub pc: T,
    /// The stop pc of the slot.
    pub stop: Stop<T>,
    /// 1 bit: the side table calls it uniform.
    #[when(s.passes())]
    pub uniform: Option<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DecodeOut<T> {
    pub decoded: Decoded<T>,
    /// 32 bits: the registers that it reads or writes. x0 counts where a field is unused; an illegal instruction may
    /// have more. By the opcode alone, since it is looked up right away.
    pub registers: T,
    /// 1 bit: a uniform branch, or jump that neither calls nor returns.
    pub passes: Option<T>,
}

/// The word and its fields.
#[derive(Clone, Copy)]
struct Fields {
    word: Signal,
    opcode: Signal,
    funct3: Signal,
    funct7: Signal,
    rd: Signal,
    rs1: Signal,
    rs2: Signal,
}

impl Fields {
    fn of(word: Signal) -> Fields {
        wire!(opcode = word.slice(0, 7));
        wire!(funct3 = word.slice(12, 3));
        wire!(funct7 = word.slice(25, 7));
        let (rd, rs1, rs2) = (word.slice(7, 5), word.slice(15, 5), word.slice(20, 5));
        Fields { word, opcode, funct3, funct7, rd, rs1, rs2 }
    }
}

/// What the instruction is: by kind, 1 bit each.
struct Instruction {
    jumps: Jumps,
    accesses: Accesses,
    computes: Computes,
    between: Between,
    hints: Hints,
    barrier: Signal,
    ecall: Signal,
    ebreak: Signal,
    illegal: Signal,
}

impl Instruction {
    fn of(m: Builder, s: &Shape, f: &Fields) -> Instruction {
        let jumps = Jumps::of(f);
        let accesses = Accesses::of(m, s, f);
        let computes = Computes::of(m, s, f);
        wire!(fence = f.opcode.eq(0x0f) & f.funct3.lt(2));
        wire!(barrier = f.word.eq(BARRIER) & m.lit(s.barriers, 1));
        let between = Between::of(m, s, f);
        let hints = Hints::of(m, s, f, between.syncs);
        wire!(ecall = f.word.eq(0x73));
        wire!(ebreak = f.word.eq(0x0010_0073));
        let (upper, computing, jumping, accessing) = (computes.upper, computes.any, jumps.any, accesses.any);
        let (converges, of_warp) = (hints.any, between.any);
        wire!(known = upper | computing | jumping | accessing | fence | barrier | converges | ecall | ebreak | of_warp);
        wire!(illegal = !known);
        Instruction { jumps, accesses, computes, between, hints, barrier, ecall, ebreak, illegal }
    }
}

pub fn decode(s: &Shape) -> TypedModule<DecodeIn<Width>, DecodeOut<Signal>> {
    module("decode", DecodeIn::shape(s), |m, DecodeIn { word, pc, stop, uniform }| {
        m.doc("Stage 3: decodes one RV32IMA instruction.");
        let f = Fields::of(word);
        let instruction = Instruction::of(m, s, &f);
        let operands = Operands::of(m, &f, &instruction);
        let registers = operands.registers(m, s, &f, instruction.illegal);
        wire!(last = stop.valid & stop.pc.eq(pc + 1));
        let decoded = decoded(m, s, &f, &instruction, &operands, (pc, last));
        let passes = uniform.map(|uniform| uniform & (decoded.branch | (decoded.jal & !decoded.call)));
        DecodeOut { decoded, registers, passes }
    })
}

/// The bundle, of the instruction at `pc`, which is the last one before the stop pc or not.
fn decoded(
    m: Builder,
    s: &Shape,
    f: &Fields,
    instruction: &Instruction,
    operands: &Operands,
    (pc, last): (Signal, Signal),
) -> Decoded<Signal> {
    let &Fields { funct3, funct7, rd, .. } = f;
    let Instruction { barrier, ecall, ebreak, illegal, between, hints, .. } = instruction;
    let &Jumps { jal, jalr, branch, .. } = &instruction.jumps;
    let &Accesses { load, store, atomic, reserving, answers, function, .. } = &instruction.accesses;
    let &Computes { op_imm, op, muldiv, shift, csr, auipc, .. } = &instruction.computes;
    let &Operands { source1, source2, use1, use2, writes, imm, .. } = operands;
    wire!(code = cat(&[funct3, f.word.bit(30) & (op | shift)]));
    wire!(operation = (op | op_imm).mux(code, (branch | *ecall).mux(code.literal(Alu::Sub), code.literal(Alu::Add))));
    let (call, ret) = call_and_return(f, jal, jalr);
    Decoded {
        pc,
        rs1: source1,
        rs2: source2,
        rd: rd.only_if(writes),
        use1,
        use2,
        writes,
        imm,
        alu: operation,
        a_pc: auipc,
        b_imm: !(branch | op | muldiv),
        funct3,
        branch,
        jal,
        jalr,
        load,
        store,
        atomic,
        function,
        reserving,
        answers,
        multiply: (muldiv & !funct3.bit(2)) | ((op | op_imm) & shift & m.lit(s.multiply, 1)),
        divide: muldiv & funct3.bit(2) & writes,
        csr,
        barrier: *barrier,
        converges: hints.here,
        primitive: Primitive::shape(s).map(|_| Primitive {
            votes: between.votes,
            shuffles: between.shuffles,
            syncs: between.syncs,
            function: funct7.slice(0, 2),
        }),
        ecall: *ecall,
        ebreak: *ebreak,
        illegal: *illegal,
        call,
        ret,
        last,
        control: control(m, s, instruction, last),
    }
}

/// 1 bit each: the jump is a call; a return.
fn call_and_return(f: &Fields, jal: Signal, jalr: Signal) -> (Signal, Signal) {
    let &Fields { rd, rs1, .. } = f;
    wire!(link_rd = rd.eq(1) | rd.eq(5));
    wire!(link_rs1 = rs1.eq(1) | rs1.eq(5));
    wire!(call = link_rd & (jal | (jalr & (!link_rs1 | rd.eq(rs1)))));
    wire!(ret = jalr & link_rs1 & !link_rd);
    (call, ret)
}

/// 1 bit: the front end must stop behind the instruction.
fn control(m: Builder, s: &Shape, instruction: &Instruction, last: Signal) -> Signal {
    let Instruction { jumps, accesses, hints, barrier, ecall, ebreak, illegal, .. } = instruction;
    // Lanes of a memory access may stay behind.
    let parts = accesses.any & m.lit(s.replay == Replay::Split, 1);
    // With the end of an LR/SC sequence its path may give way.
    let parts = match accesses.reserving.filter(|_| s.keeps_sequences()) {
        Some(reserving) => parts | reserving.conditional,
        None => parts,
    };
    wire!(control = jumps.any | parts | *barrier | hints.waits_here | *ecall | *ebreak | *illegal | last);
    control
}

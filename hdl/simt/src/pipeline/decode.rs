//! Stage 3, decode: an instruction word becomes a [`Decoded`] bundle on its way into the slot's buffer.
//!
//! Combinational. Instructions on convergence barriers that the core does not have do nothing; `count` of one is 0 + 0.
//! It also says whether the front end must stop behind the instruction: at everything that produces an outcome at
//! resolve, and at the instruction before the stop pc.

use super::decoded::{Converges, Decoded};
use super::primitives::Primitive;
use super::reservations::Reserving;
use crate::csr;
use crate::divergence::interface::Stop;
use crate::isa::{BARRIER, CUSTOM, EXIT, alu, atomic, convergence, reservation, warp};
use crate::shape::{Replay, Shape};
use heddle_hdl::prelude::*;

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
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DecodeOut<T> {
    pub decoded: Decoded<T>,
    /// 32 bits: the registers that it reads or writes. x0 counts where a field is unused; an illegal instruction may
    /// have more. By the opcode alone, since it is looked up right away.
    pub registers: T,
}

pub fn decode(s: &Shape) -> TypedModule<DecodeIn<Width>, DecodeOut<Signal>> {
    module("decode", DecodeIn::shape(s), |m, DecodeIn { word, pc, stop }| {
        m.doc("Stage 3: decodes one RV32IMA instruction.");
        wire!(opcode = word.slice(0, 7));
        wire!(funct3 = word.slice(12, 3));
        wire!(funct7 = word.slice(25, 7));
        let (rd, rs1, rs2) = (word.slice(7, 5), word.slice(15, 5), word.slice(20, 5));

        wire!(lui = opcode.eq(0x37));
        wire!(auipc = opcode.eq(0x17));
        wire!(jal = opcode.eq(0x6f));
        wire!(jalr = opcode.eq(0x67) & funct3.eq(0));
        wire!(branch = opcode.eq(0x63) & funct3.ne(2) & funct3.ne(3));
        wire!(plain_load = opcode.eq(0x03) & funct3.ne(3) & funct3.lt(6));
        wire!(store = opcode.eq(0x23) & funct3.lt(3));
        let with_a = m.lit(s.atomics, 1);
        let function = word.slice(27, 5);
        wire!(atomic_known = any_of(atomic::ALL.iter().map(|&(code, _)| function.eq(code))));
        wire!(of_memory = opcode.eq(0x2f) & funct3.eq(2) & atomic_known & with_a);
        // To memory, `lr.w` is a load, and `sc.w` an exchange.
        let reserving = Reserving::shape(s).map(|_| {
            let is = |code: u32| opcode.eq(0x2f) & funct3.eq(2) & function.eq(code);
            wire!(reserves = is(reservation::LOAD_RESERVED) & rs2.eq(0));
            wire!(conditional = is(reservation::STORE_CONDITIONAL));
            Reserving { reserves, conditional }
        });
        let (load, atomic, without_offset) = match reserving {
            Some(Reserving { reserves, conditional }) => {
                (plain_load | reserves, of_memory | conditional, of_memory | conditional | reserves)
            }
            None => (plain_load, of_memory, of_memory),
        };
        wire!(shift = funct3.eq(1) | funct3.eq(5));
        wire!(plain = funct7.eq(0));
        wire!(alternative = funct7.eq(0x20));
        wire!(shift_ok = plain | (alternative & funct3.eq(5)));
        wire!(op_imm = opcode.eq(0x13) & (!shift | shift_ok));
        let is_op = opcode.eq(0x33);
        wire!(op = is_op & (plain | (alternative & (funct3.eq(0) | funct3.eq(5)))));
        let with_m = m.lit(s.multiply, 1);
        wire!(muldiv = is_op & funct7.eq(1) & with_m);
        wire!(fence = opcode.eq(0x0f) & funct3.lt(2));
        wire!(system = opcode.eq(0x73));
        let with_barriers = m.lit(s.barriers, 1);
        wire!(barrier = word.eq(BARRIER) & with_barriers);
        let with_primitives = m.lit(s.warp_primitives, 1);
        wire!(between_lanes = opcode.eq(warp::OPCODE) & with_primitives);
        wire!(votes = between_lanes & funct3.eq(warp::VOTE) & funct7.lt(4) & rs2.eq(0));
        wire!(shuffles = between_lanes & funct3.eq(warp::SHUFFLE) & funct7.lt(4));
        wire!(syncs = between_lanes & funct3.eq(warp::SYNC) & funct7.lt(convergence::BARRIERS) & rd.eq(0));
        wire!(of_warp = votes | shuffles | syncs);
        // On convergence barriers: rs1 is the barrier, the immediate the other one or the threshold.
        wire!(custom = opcode.eq(CUSTOM) & !rs1.msb());
        let operand = word.slice(20, 12);
        let is = |code: u32| funct3.eq(code);
        wire!(counts = custom & is(convergence::COUNT) & operand.eq(0));
        wire!(joins = (is(convergence::JOIN) | is(convergence::CANCEL)) & operand.eq(0));
        wire!(waits = is(convergence::WAIT) & operand.le(convergence::MOST_THRESHOLD));
        wire!(copies = (is(convergence::COPY) | is(convergence::MOVE)) & operand.lt(convergence::BARRIERS));
        wire!(converges = counts | (custom & (joins | waits | copies) & rd.eq(0)));
        let converges_here = Decoded::shape(s).converges.map(|shape| {
            let barriers = s.convergence_barriers;
            let has = |number: Signal| match barriers {
                convergence::BARRIERS => m.lit(1u32, 1),
                _ => number.lt(barriers),
            };
            let barrier = syncs.mux(funct7.slice(0, shape.barrier), rs1.slice(0, shape.barrier));
            let hints = converges & has(rs1.slice(0, 4)) & (!copies | has(operand.slice(0, 4)));
            Converges { valid: hints | (syncs & has(funct7.slice(0, 4))), barrier }
        });
        wire!(waits_here = converges_here.map_or(m.lit(0u32, 1), |here| here.valid & (waits | syncs)));
        wire!(ecall = word.eq(0x73));
        wire!(ebreak = word.eq(0x0010_0073));
        wire!(csr_known = any_of(csr::map(s.counters).map(|c| word.slice(20, 12).eq(u32::from(c.address)))));
        // Reading only: csrrs, csrrc, csrrsi, csrrci with nothing to set or clear.
        wire!(csr = system & funct3.bit(1) & rs1.eq(0) & csr_known);
        wire!(upper = lui | auipc);
        wire!(computes = op_imm | op | muldiv | csr);
        wire!(jumps = jal | jalr | branch);
        wire!(accesses = load | store | atomic);
        wire!(known = upper | computes | jumps | accesses | fence | barrier | converges | ecall | ebreak | of_warp);
        wire!(illegal = !known);

        let sign = word.bit(31);
        wire!(imm_i = word.slice(20, 12).sext(32));
        wire!(imm_s = cat(&[rd, funct7]).sext(32));
        let zero = m.lit(0u32, 1);
        wire!(imm_b = cat(&[zero, word.slice(8, 4), word.slice(25, 6), word.bit(7), sign]).sext(32));
        wire!(imm_u = cat(&[m.lit(0u32, 12), word.slice(12, 20)]));
        wire!(imm_j = cat(&[zero, word.slice(21, 10), word.bit(20), word.slice(12, 8), sign]).sext(32));
        let none = m.lit(0u32, 32);
        wire!(
            imm = pick(
                [
                    (upper, imm_u),
                    (jal, imm_j),
                    (branch, imm_b),
                    (store, imm_s),
                    (without_offset | of_warp, none),
                    (ecall, none.literal(EXIT))
                ],
                imm_i
            )
        );

        wire!(use1 = (jalr | branch | load | store | atomic | op_imm | op | muldiv | of_warp) & rs1.ne(0) | ecall);
        wire!(use2 = (branch | store | atomic | op | muldiv | of_warp) & rs2.ne(0) | ecall);
        wire!(writes = (upper | jal | jalr | load | atomic | op_imm | op | muldiv | csr | counts | of_warp) & rd.ne(0));
        // The exit code is in a0, the number of the system call in a7: the ALU compares it with the immediate.
        wire!(source1 = ecall.mux(rs1.literal(17u32), rs1.only_if(use1)));
        wire!(source2 = ecall.mux(rs2.literal(10u32), rs2.only_if(use2)));
        wire!(code = cat(&[funct3, word.bit(30) & (op | shift)]));
        wire!(
            operation = (op | op_imm).mux(code, (branch | ecall).mux(code.literal(alu::SUB), code.literal(alu::ADD)))
        );

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
        let exact = source1.decode(32) | source2.decode(32) | rd.only_if(writes).decode(32);
        m.assert("registers_are_those_of_the_fields", illegal | registers.slice(1, 31).eq(exact.slice(1, 31)));

        wire!(link_rd = rd.eq(1) | rd.eq(5));
        wire!(link_rs1 = rs1.eq(1) | rs1.eq(5));
        wire!(call = link_rd & (jal | (jalr & (!link_rs1 | rd.eq(rs1)))));
        wire!(ret = jalr & link_rs1 & !link_rd);
        wire!(last = stop.valid & stop.pc.eq(pc + 1));
        // Lanes of a memory access may stay behind.
        let parts = accesses & m.lit(s.replay == Replay::Split, 1);
        // With the end of an LR/SC sequence its path may give way.
        let parts = match reserving.filter(|_| s.keeps_sequences()) {
            Some(reserving) => parts | reserving.conditional,
            None => parts,
        };
        wire!(control = jumps | parts | barrier | waits_here | ecall | ebreak | illegal | last);
        let decoded = Decoded {
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
            function: match reserving {
                Some(r) => r.conditional.mux(function.literal(atomic::SWAP), function.only_if(of_memory)),
                None => function.only_if(of_memory),
            },
            reserving,
            answers: match reserving {
                Some(r) => load | r.conditional | (of_memory & rd.ne(0)),
                None => load | (of_memory & rd.ne(0)),
            },
            multiply: (muldiv & !funct3.bit(2)) | ((op | op_imm) & shift & with_m),
            divide: muldiv & funct3.bit(2) & writes,
            csr,
            barrier,
            converges: converges_here,
            primitive: Primitive::shape(s).map(|_| Primitive { votes, shuffles, syncs, function: funct7.slice(0, 2) }),
            ecall,
            ebreak,
            illegal,
            call,
            ret,
            last,
            control,
        };
        DecodeOut { decoded, registers }
    })
}

fn any_of(conditions: impl IntoIterator<Item = Signal>) -> Signal {
    conditions.into_iter().reduce(|a, b| a | b).expect("at least one condition")
}

#[cfg(test)]
mod tests;

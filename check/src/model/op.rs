//! What the model knows of an instruction before a thread executes it.

use heddle_hdl::Code;
use heddle_simt::isa::{HintKind, warp};
use heddle_testbench::reconverge::instruction::{Flow, Instruction};

/// What the model knows of an instruction.
#[derive(Clone, Copy)]
pub struct Op {
    /// Registers that must not be pending, a bit each.
    pub needs: u32,
    /// 0 if it has no result.
    pub rd: u8,
    pub class: Class,
    pub flow: Flow,
}

/// What becomes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Computed,
    Divide,
    Access,
    /// The front end waits for what becomes of it.
    Control,
}

impl Op {
    pub fn new(instruction: Instruction) -> Op {
        let (rd, rs1, rs2) = (instruction.rd(), instruction.rs1(), instruction.rs2());
        let (reads, writes, class) = match instruction.opcode() {
            0x63 => (vec![rs1, rs2], false, Class::Control),
            0x23 => (vec![rs1, rs2], false, Class::Access),
            0x2f => (vec![rs1, rs2], true, Class::Access),
            0x03 => (vec![rs1], true, Class::Access),
            0x33 if instruction.word >> 25 == 1 && instruction.funct3() >= 4 => (vec![rs1, rs2], true, Class::Divide),
            0x33 => (vec![rs1, rs2], true, Class::Computed),
            0x13 => (vec![rs1], true, Class::Computed),
            0x67 => (vec![rs1], true, Class::Control),
            0x6f => (vec![], true, Class::Control),
            0x73 if instruction.funct3() == 0 => (vec![10, 17], false, Class::Control),
            // `barrier`; what the model has no barriers for does nothing, but `count` has a result.
            0x0b if instruction.funct3() == 0 => (vec![], false, Class::Control),
            0x0b => (vec![], HintKind::from_bits(instruction.funct3()) == Some(HintKind::Count), Class::Computed),
            // A sync that would have to wait is a fault on the mechanisms that there are models of.
            warp::OPCODE => (vec![rs1, rs2], !warp::syncs(instruction.word), Class::Computed),
            0x0f => (vec![], false, Class::Computed),
            _ => (vec![], true, Class::Computed),
        };
        let rd = if writes { rd } else { 0 };
        let needs = reads.iter().fold(1 << rd, |needs, register| needs | 1u32 << register) & !1;
        Op { needs, rd, class, flow: instruction.flow() }
    }
}

//! Stage 7, execute: each lane's ALU computes a result, an address or a branch condition; the target of a branch or `jal`
//! is the same for all lanes. Multiplier and divider start here beside it ([`crate::lane`], [`super::divide`]).

use super::collect::{Issued, Operands};
use crate::lane::alu::{AluIn, alu};
use crate::shape::Shape;
use heddle_hdl::*;

/// An executed instruction, for stage 8.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Executed<T> {
    pub issued: Issued<T>,
    /// 32 bits a lane: result, address of a memory access, or target of a `jalr`.
    pub result: T,
    /// One bit a lane: the branch condition holds.
    pub taken: T,
    /// Byte address, 32 bits: target of a branch or `jal`.
    pub target: T,
    /// 32 bits a lane: rs2.
    pub data: T,
    /// One bit a lane: a7 asks for exit (`ecall` only).
    pub exits: T,
}

impl Executed<Width> {
    pub fn shape(s: &Shape) -> Executed<Width> {
        let word = 32 * s.lanes;
        Executed { issued: Issued::shape(s), result: word, taken: s.lanes, target: 32, data: word, exits: s.lanes }
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ExecuteIn<T> {
    pub operands: Operands<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ExecuteOut<T> {
    pub executed: Executed<T>,
}

/// The system call that ends a thread, in a7.
pub const EXIT: u32 = 93;

pub fn execute(s: &Shape) -> TypedModule<ExecuteIn<Width>, ExecuteOut<Signal>> {
    module("execute", ExecuteIn { operands: Operands::shape(s) }, |m, ExecuteIn { operands }| {
        m.doc("Stage 7: ALUs and targets.");
        let Operands { issued, a, b, data } = operands;
        let d = issued.decoded;
        // Addresses and jalr targets are sums: decode leaves the operation at ADD.
        let lanes = m.replicate(
            "alu",
            s.lanes,
            &alu(),
            AluIn { operation: all(d.alu), condition: all(d.funct3), a: each(a), b: each(b) },
        );
        wire!(target = cat(&[m.lit(0u32, 2), d.pc]).zext(32) + d.imm);
        wire!(exits = cat(&elements(a, 32).into_iter().map(|a7| a7.eq(EXIT)).collect::<Vec<_>>()));
        let executed = Executed { issued, result: lanes.result, taken: lanes.taken, target, data, exits };
        ExecuteOut { executed: m.stage("s8", executed) }
    })
}

//! The decoded instruction, which goes from stage 3 on.

use super::memory::Asked;
use super::primitives::Primitive;
use super::reservations::Reserving;
use crate::isa::{Alu, HintKind};
use crate::shape::Shape;
use heddle_hdl::{Bundle, Code, Signal, cat};

/// An instruction after decode, ready to issue. One-bit fields unless stated.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Decoded<T> {
    /// Instruction number, `pc_bits`.
    #[width(s.pc_bits())]
    pub pc: T,
    /// Register numbers, 5 bits; 0 where not used.
    #[width(5)]
    pub rs1: T,
    #[width(5)]
    pub rs2: T,
    #[width(5)]
    pub rd: T,
    /// The register is read / written (never x0).
    pub use1: T,
    pub use2: T,
    pub writes: T,
    /// Immediate, 32 bits; for a CSR instruction the CSR's number, for an `ecall` [`crate::isa::EXIT`].
    #[width(32)]
    pub imm: T,
    /// [`mod@alu`] operation, 4 bits: of a branch, `SUB`; of what is no operation of the ALU, `ADD`.
    #[width(Alu::WIDTH)]
    pub alu: T,
    /// Operand a is the pc instead of rs1; operand b is the immediate instead of rs2.
    pub a_pc: T,
    pub b_imm: T,
    /// Bits 14..12 of the instruction: branch condition, size and sign of a load or store, multiply and divide
    /// operation.
    #[width(3)]
    pub funct3: T,
    pub branch: T,
    pub jal: T,
    pub jalr: T,
    pub load: T,
    pub store: T,
    /// An atomic memory operation, and which: an [`Atomic`](crate::isa::Atomic), 5 bits.
    pub atomic: T,
    #[width(5)]
    pub function: T,
    /// `lr.w`, which is a `load` too, and `sc.w`, which is `atomic` too and always answered. In a core with them.
    #[width(Reserving::shape(s))]
    pub reserving: Option<Reserving<T>>,
    /// Memory answers, with a word for rd (a load also without rd).
    pub answers: T,
    /// The multiplier has the result: in a core with RV32M, of shifts, too.
    pub multiply: T,
    /// The divider has work: not with x0 as the destination.
    pub divide: T,
    pub csr: T,
    pub barrier: T,
    /// An instruction on convergence barriers that the core has; `funct3` says which, and the other barrier or the
    /// threshold is in `imm`. Absent in a core without any.
    #[when(s.convergence_barriers > 0)]
    pub converges: Option<Converges<T>>,
    /// Which warp primitive it is, if it is one. In a core with them.
    #[width(Primitive::shape(s))]
    pub primitive: Option<Primitive<T>>,
    pub ecall: T,
    pub ebreak: T,
    pub illegal: T,
    /// The jump makes the call depth grow / shrink.
    pub call: T,
    pub ret: T,
    /// The next instruction is at the stop pc.
    pub last: T,
    /// Produces an outcome at resolve, for which the front end waits.
    pub control: T,
}

/// An instruction on convergence barriers: whether it is one, and the barrier that it names.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Converges<T> {
    pub valid: T,
    #[width(s.barrier_bits())]
    pub barrier: T,
}

impl Decoded<Signal> {
    /// It is this instruction on a convergence barrier.
    pub fn converges_by(&self, kind: HintKind) -> Signal {
        let none = self.control.literal(0u32);
        self.converges.map_or(none, |converges| converges.valid & self.funct3.eq(kind))
    }

    /// It is `sync`.
    pub fn syncs(&self) -> Signal {
        self.primitive.map_or(self.control.literal(0u32), |primitive| primitive.syncs)
    }

    /// The divergence unit may hold it back: what it does takes a turn there.
    pub fn takes_turn(&self) -> Signal {
        self.converges.map_or(self.control, |converges| self.control | converges.valid)
    }

    /// The instruction accesses memory.
    pub fn accesses(&self) -> Signal {
        self.load | self.store | self.atomic
    }

    /// Its result is written at a fixed time, by the pipeline itself.
    pub fn computes(&self) -> Signal {
        self.writes & !self.answers & !self.divide
    }

    /// What it asks of memory.
    pub fn asked(&self) -> Asked<Signal> {
        // Bit 0 of the operation: there is no response; bit 1: it is atomic.
        let operation = cat(&[!self.answers, self.atomic]);
        Asked { operation, function: self.function, size: self.funct3, reserving: self.reserving }
    }
}

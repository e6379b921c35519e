//! RV32IMA, `barrier` and the convergence barriers as the pipeline sees them: the decoded instruction and the codes that select
//! operations.

use crate::pipeline::memory::Asked;
use crate::shape::Shape;
use heddle_hdl::{Bundle, Signal, cat};

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
    /// Immediate, 32 bits; for a CSR instruction the CSR's number, for an `ecall` [`EXIT`].
    #[width(32)]
    pub imm: T,
    /// [`alu`] operation, 4 bits: of a branch, `SUB`; of what is no operation of the ALU, `ADD`.
    #[width(alu::BITS)]
    pub alu: T,
    /// Operand a is the pc instead of rs1; operand b is the immediate instead of rs2.
    pub a_pc: T,
    pub b_imm: T,
    /// Bits 14..12 of the instruction: branch condition, size and sign of a load or store, multiply and divide operation.
    #[width(3)]
    pub funct3: T,
    pub branch: T,
    pub jal: T,
    pub jalr: T,
    pub load: T,
    pub store: T,
    /// An atomic memory operation, and which: one of [`atomic`], 5 bits.
    pub atomic: T,
    #[width(5)]
    pub function: T,
    /// Memory answers, with a word for rd (a load also without rd).
    pub answers: T,
    /// The multiplier has the result: in a core with RV32M, of shifts, too.
    pub multiply: T,
    /// The divider has work: not with x0 as the destination.
    pub divide: T,
    pub csr: T,
    pub barrier: T,
    /// An instruction on convergence barriers that the core has; `funct3` says which, and the other barrier or the threshold is
    /// in `imm`. Absent in a core without any.
    #[when(s.convergence_barriers > 0)]
    pub converges: Option<Converges<T>>,
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
    /// It is this one of [`convergence`].
    pub fn converges_by(&self, operation: u32) -> Signal {
        let none = self.control.literal(0u32);
        self.converges.map_or(none, |converges| converges.valid & self.funct3.eq(operation))
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
        Asked { operation: cat(&[!self.answers, self.atomic]), function: self.function, size: self.funct3 }
    }
}

/// ALU operations: bit 30 of the instruction above funct3.
pub mod alu {
    use heddle_hdl::Width;

    pub const BITS: Width = 4;
    pub const ADD: u32 = 0;
    pub const SLL: u32 = 1;
    pub const SLT: u32 = 2;
    pub const SLTU: u32 = 3;
    pub const XOR: u32 = 4;
    pub const SRL: u32 = 5;
    pub const OR: u32 = 6;
    pub const AND: u32 = 7;
    pub const SUB: u32 = 8;
    pub const SRA: u32 = 13;
}

/// The system call that ends a thread, in a7.
pub const EXIT: u32 = 93;

/// Atomic operations: bits 31..27 of the instruction (RV32A without `lr.w` and `sc.w`).
pub mod atomic {
    pub const ADD: u32 = 0b00000;
    pub const SWAP: u32 = 0b00001;
    pub const XOR: u32 = 0b00100;
    pub const OR: u32 = 0b01000;
    pub const AND: u32 = 0b01100;
    pub const MIN: u32 = 0b10000;
    pub const MAX: u32 = 0b10100;
    pub const MINU: u32 = 0b11000;
    pub const MAXU: u32 = 0b11100;

    /// Every operation, with its name in assembly.
    pub const ALL: &[(u32, &str)] = &[
        (ADD, "amoadd.w"),
        (SWAP, "amoswap.w"),
        (XOR, "amoxor.w"),
        (OR, "amoor.w"),
        (AND, "amoand.w"),
        (MIN, "amomin.w"),
        (MAX, "amomax.w"),
        (MINU, "amominu.w"),
        (MAXU, "amomaxu.w"),
    ];
}

/// The opcode custom-0.
pub const CUSTOM: u32 = 0x0b;

/// The `barrier` instruction, opcode custom-0 with all other bits 0: all live threads of a block wait for each other.
pub const BARRIER: u32 = 0x0000_000b;

/// Convergence barriers: opcode custom-0, where funct3 says which instruction it is. The barrier is bits 18..15, bit 19 is 0;
/// bits 31..20 are a threshold, another barrier, or 0; rd is x0 but for `count`. See `docs/convergence-barriers.md`.
pub mod convergence {
    pub const JOIN: u32 = 1;
    /// Bits 31..20 are the threshold.
    pub const WAIT: u32 = 2;
    pub const CANCEL: u32 = 3;
    /// Writes rd.
    pub const COUNT: u32 = 4;
    /// Bits 31..20 are the other barrier, which stays as it is.
    pub const COPY: u32 = 5;
    /// Bits 31..20 are the other barrier.
    pub const MOVE: u32 = 6;

    /// Barriers that an instruction can name.
    pub const BARRIERS: u32 = 16;
    /// The largest threshold; 0 is none.
    pub const MOST_THRESHOLD: u32 = 64;
}

/// Why the core stopped, 4 bits; the numbers are those of the RISC-V `mcause` register where it has one.
pub mod cause {
    use heddle_hdl::Width;

    pub const BITS: Width = 4;
    pub const FETCH_MISALIGNED: u32 = 0;
    pub const FETCH_OUT_OF_RANGE: u32 = 1;
    pub const ILLEGAL_INSTRUCTION: u32 = 2;
    pub const BREAKPOINT: u32 = 3;
    pub const LOAD_MISALIGNED: u32 = 4;
    pub const LOAD_OUT_OF_RANGE: u32 = 5;
    pub const STORE_MISALIGNED: u32 = 6;
    pub const STORE_OUT_OF_RANGE: u32 = 7;
    pub const UNKNOWN_ECALL: u32 = 8;
    pub const STORE_TO_PROGRAM: u32 = 9;
    /// Of no instruction in particular: when the bus refuses an access, its instruction is long done.
    pub const BUS_ERROR: u32 = 10;
    /// Of a divergence unit: it has no level left for the branch.
    pub const STACK_OVERFLOW: u32 = 11;
    /// Of a divergence unit: other threads of the warp run only after those that wait here.
    pub const BARRIER_OF_A_PART: u32 = 12;
    /// Of a divergence unit: warps that run together are at different branches, although the side table says that none in
    /// between parts them.
    pub const NOT_UNIFORM: u32 = 13;

    /// Whether a divergence unit could not go on; the instruction itself is right.
    pub fn is_of_divergence(code: u32) -> bool {
        matches!(code, STACK_OVERFLOW | BARRIER_OF_A_PART | NOT_UNIFORM)
    }

    /// What a cause means, for messages.
    pub fn describe(code: u32) -> &'static str {
        match code {
            FETCH_MISALIGNED => "jump to a misaligned address",
            FETCH_OUT_OF_RANGE => "jump outside instruction memory",
            ILLEGAL_INSTRUCTION => "illegal instruction",
            BREAKPOINT => "breakpoint (ebreak)",
            LOAD_MISALIGNED => "misaligned load",
            LOAD_OUT_OF_RANGE => "load outside memory",
            STORE_MISALIGNED => "misaligned store or atomic",
            STORE_OUT_OF_RANGE => "store or atomic outside memory",
            UNKNOWN_ECALL => "unknown system call (ecall with a7 other than 93)",
            STORE_TO_PROGRAM => "store or atomic into the program",
            BUS_ERROR => "bus error",
            STACK_OVERFLOW => "no level left on the reconvergence stack",
            BARRIER_OF_A_PART => "barrier that only a part of the warp has reached",
            NOT_UNIFORM => "a branch that the side table calls uniform has parted the warps of a block",
            _ => "unknown cause",
        }
    }
}

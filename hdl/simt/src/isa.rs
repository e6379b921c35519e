//! RV32IMA, `barrier`, the convergence barriers and the warp primitives as the pipeline sees them: the codes that select
//! operations, and causes of faults.

use heddle_hdl::Code;

/// ALU operations: bit 30 of the instruction above funct3.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alu {
    Add,
    Sll,
    Slt,
    Sltu,
    Xor,
    Srl,
    Or,
    And,
    Sub,
    Sra = 13,
}

/// The system call that ends a thread, in a7.
pub const EXIT: u32 = 93;

/// Atomic operations: bits 31..27 of the instruction (RV32A; for `lr.w` and `sc.w` see [`reservation`]).
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

/// The other instructions of RV32A: bits 31..27.
pub mod reservation {
    /// `lr.w`; rs2 is x0.
    pub const LOAD_RESERVED: u32 = 0b00010;
    /// `sc.w`.
    pub const STORE_CONDITIONAL: u32 = 0b00011;

    /// Whether an instruction is one of them.
    pub fn has(word: u32) -> bool {
        let loads = word >> 27 == LOAD_RESERVED && word >> 20 & 31 == 0;
        word & 0x707f == 0x202f && loads || stores(word)
    }

    /// Whether it is `sc.w`.
    pub fn stores(word: u32) -> bool {
        word & 0x707f == 0x202f && word >> 27 == STORE_CONDITIONAL
    }
}

/// The opcode custom-0.
pub const CUSTOM: u32 = 0x0b;

/// The `barrier` instruction, opcode custom-0 with all other bits 0: all live threads of a block wait for each other.
pub const BARRIER: u32 = 0x0000_000b;

/// Convergence barriers: opcode custom-0, where funct3 says which instruction it is. The barrier is bits 18..15, bit 19
/// is 0; bits 31..20 are a threshold, another barrier, or 0; rd is x0 but for `count`. See
/// `docs/reference/convergence-barriers.md`.
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

    /// [`warp::SYNC`](super::warp::SYNC), as the operation of a hint.
    pub const SYNC: u32 = super::warp::SYNC;

    /// Barriers that an instruction can name.
    pub const BARRIERS: u32 = 16;
    /// The largest threshold; 0 is none.
    pub const MOST_THRESHOLD: u32 = 64;
}

/// The warp primitives: opcode custom-1, format R, where funct3 says which kind it is, and funct7 what it does. See
/// `docs/reference/warp-primitives.md`.
pub mod warp {
    pub const OPCODE: u32 = 0x2b;

    /// rd = what the executing threads say by whether rs1 is 0; rs2 is x0.
    pub const VOTE: u32 = 0;
    /// rd = rs1 of another lane, which rs2 names.
    pub const SHUFFLE: u32 = 1;
    /// Waits for the threads that rs1 and rs2 name, a bit a lane; funct7 is the convergence barrier, rd is x0.
    pub const SYNC: u32 = 7;

    /// Votes: a bit a lane, of lanes 0 to 31 and from 32 on; 1 if one says so, if all do.
    pub const BALLOT: u32 = 0;
    pub const BALLOT_UPPER: u32 = 1;
    pub const ANY: u32 = 2;
    pub const ALL: u32 = 3;

    /// Which lane rs2 names: that number; the own one XOR it; the own one less it; the own one plus it.
    pub const INDEX: u32 = 0;
    pub const XOR: u32 = 1;
    pub const UP: u32 = 2;
    pub const DOWN: u32 = 3;

    /// Whether an instruction is one of them.
    pub fn has(word: u32) -> bool {
        let (rd, funct3, rs2, funct7) = (word >> 7 & 31, word >> 12 & 7, word >> 20 & 31, word >> 25);
        word & 0x7f == OPCODE
            && match funct3 {
                VOTE => funct7 < 4 && rs2 == 0,
                SHUFFLE => funct7 < 4,
                SYNC => funct7 < super::convergence::BARRIERS && rd == 0,
                _ => false,
            }
    }

    /// Whether it is `sync`.
    pub fn syncs(word: u32) -> bool {
        has(word) && word >> 12 & 7 == SYNC
    }
}

/// Why the core stopped; the numbers are those of the RISC-V `mcause` register where it has one.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultCause {
    FetchMisaligned = 0,
    FetchOutOfRange = 1,
    IllegalInstruction = 2,
    Breakpoint = 3,
    LoadMisaligned = 4,
    LoadOutOfRange = 5,
    StoreMisaligned = 6,
    StoreOutOfRange = 7,
    UnknownEcall = 8,
    StoreToProgram = 9,
    /// Of no instruction in particular: when the bus refuses an access, its instruction is long done.
    BusError = 10,
    /// Of a divergence unit: it has no level left for the branch.
    StackOverflow = 11,
    /// Of a divergence unit: other threads of the warp run only after those that wait here.
    BarrierOfAPart = 12,
    /// Of a divergence unit: warps that run together are at different branches, although the side table says that none
    /// in between makes them diverge.
    NotUniform = 13,
    /// Of `sync` where no convergence barrier can keep threads: it names others than those that execute it now.
    NamedIsAbsent = 14,
}

impl FaultCause {
    /// Whether a divergence unit could not go on; the instruction itself is right.
    pub fn is_of_divergence(self) -> bool {
        matches!(
            self,
            FaultCause::StackOverflow | FaultCause::BarrierOfAPart | FaultCause::NotUniform | FaultCause::NamedIsAbsent
        )
    }

    /// Whether a jump or an access, and so an address, is to blame.
    pub fn has_address(self) -> bool {
        !self.is_of_divergence()
            && !matches!(self, FaultCause::IllegalInstruction | FaultCause::Breakpoint | FaultCause::UnknownEcall)
    }

    /// What it means, for messages.
    pub fn describe(self) -> &'static str {
        match self {
            FaultCause::FetchMisaligned => "jump to a misaligned address",
            FaultCause::FetchOutOfRange => "jump outside instruction memory",
            FaultCause::IllegalInstruction => "illegal instruction",
            FaultCause::Breakpoint => "breakpoint (ebreak)",
            FaultCause::LoadMisaligned => "misaligned load",
            FaultCause::LoadOutOfRange => "load outside memory",
            FaultCause::StoreMisaligned => "misaligned store or atomic",
            FaultCause::StoreOutOfRange => "store or atomic outside memory",
            FaultCause::UnknownEcall => "unknown system call (ecall with a7 other than 93)",
            FaultCause::StoreToProgram => "store or atomic into the program",
            FaultCause::BusError => "bus error",
            FaultCause::StackOverflow => "no level left on the reconvergence stack",
            FaultCause::BarrierOfAPart => "barrier that only a part of the warp has reached",
            FaultCause::NotUniform => {
                "a branch that the side table calls uniform has made the warps of a block diverge"
            }
            FaultCause::NamedIsAbsent => {
                "sync of other threads than those that execute it, where none can be kept waiting (it needs path tables, and its \
                 barrier among --convergence-barriers)"
            }
        }
    }
}

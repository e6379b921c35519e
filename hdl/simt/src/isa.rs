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
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomic {
    Add = 0b00000,
    Swap = 0b00001,
    Xor = 0b00100,
    Or = 0b01000,
    And = 0b01100,
    Min = 0b10000,
    Max = 0b10100,
    Minu = 0b11000,
    Maxu = 0b11100,
}

impl Atomic {
    /// In assembly.
    pub fn name(self) -> &'static str {
        match self {
            Atomic::Add => "amoadd.w",
            Atomic::Swap => "amoswap.w",
            Atomic::Xor => "amoxor.w",
            Atomic::Or => "amoor.w",
            Atomic::And => "amoand.w",
            Atomic::Min => "amomin.w",
            Atomic::Max => "amomax.w",
            Atomic::Minu => "amominu.w",
            Atomic::Maxu => "amomaxu.w",
        }
    }
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

/// Instructions on convergence barriers: opcode custom-0, where funct3 says which it is. The barrier is bits 18..15, bit
/// 19 is 0; bits 31..20 are a threshold, another barrier, or 0; rd is x0 but for `count`. See
/// `docs/reference/convergence-barriers.md`.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum HintKind {
    Join = 1,
    /// Bits 31..20 are the threshold.
    Wait = 2,
    Cancel = 3,
    /// Writes rd.
    Count = 4,
    /// Bits 31..20 are the other barrier, which stays as it is.
    Copy = 5,
    /// Bits 31..20 are the other barrier.
    Move = 6,
    /// [`warp::SYNC`], as the operation of a hint.
    Sync = warp::SYNC as isize,
}

/// What convergence barriers are limited to.
pub mod convergence {
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

/// What a vote tells, by funct7.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vote {
    /// A bit a lane, of lanes 0 to 31.
    Ballot,
    /// Of those from 32 on.
    BallotUpper,
    /// 1 if one says so.
    Any,
    /// 1 if all do.
    All,
}

/// Which lane rs2 of a shuffle names, by funct7.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shuffle {
    /// That number.
    Index,
    /// The own one XOR it.
    Xor,
    /// The own one less it.
    Up,
    /// The own one plus it.
    Down,
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

    /// As [`FaultCause::describe`], of what a core told: None is a number that is no cause.
    pub fn describe_told(told: Option<FaultCause>) -> &'static str {
        told.map_or("unknown cause", FaultCause::describe)
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

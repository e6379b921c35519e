//! What can go wrong in a launch.

use thiserror::Error;

use super::EXIT;
use crate::grid::{GridError, ThreadId};

/// Why an instruction cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Cause {
    /// A taken branch or jump to an address that is not a multiple of 4; the fault is the branch's.
    #[error("jump to misaligned address {0:#010x}")]
    MisalignedJump(u32),
    /// The pc is outside program memory.
    #[error("instruction fetch outside program memory")]
    FetchOutside,
    /// Not an instruction of the core; also an unknown CSR, and any write to one.
    #[error("illegal instruction {0:#010x}")]
    Illegal(u32),
    /// `ebreak`.
    #[error("ebreak")]
    Breakpoint,
    /// An `ecall` other than exit, with its `a7`.
    #[error("ecall with a7 = {0}, not {EXIT}")]
    Ecall(u32),
    /// A load whose address is not a multiple of its size.
    #[error("misaligned load from {0:#010x}")]
    MisalignedLoad(u32),
    /// A load outside memory.
    #[error("load outside memory, from {0:#010x}")]
    LoadOutside(u32),
    /// A store or atomic whose address is not a multiple of its size.
    #[error("misaligned store or atomic to {0:#010x}")]
    MisalignedStore(u32),
    /// A store or atomic outside memory.
    #[error("store or atomic outside memory, to {0:#010x}")]
    StoreOutside(u32),
    /// A store or atomic below the end of the program.
    #[error("store or atomic into the program, to {0:#010x}")]
    StoreToProgram(u32),
}

/// An instruction that stopped the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{thread} at pc {pc:#010x}: {cause}")]
pub struct Fault {
    /// What is wrong.
    pub cause: Cause,
    /// Address of the instruction.
    pub pc: u32,
    /// The thread that executed it.
    pub thread: ThreadId,
}

/// Why a launch did not end well.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// There can be no such launch.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// An instruction stopped the machine.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A thread ended with a code that is not 0.
    #[error("{thread} ended with exit code {code}")]
    Exit {
        /// The first such thread.
        thread: ThreadId,
        /// Its `a0`.
        code: u32,
    },
    /// The launch took more instructions than [`super::Iss::set_limit`] allows.
    #[error("still running after {limit} instructions: {at}")]
    Limit {
        /// Instructions allowed.
        limit: u64,
        /// Which threads run where, and which wait at which barrier.
        at: String,
    },
}

/// Why a warp cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum StartError {
    #[error("block {block} is started, but the grid has {blocks}")]
    NoSuchBlock { block: u32, blocks: u32 },
    #[error("block {block} is started in warp slot {slot}, of which a block has no use")]
    UnusedSlot { block: u32, slot: u32 },
    #[error("block {block} is started in warp slot {slot} again")]
    Again { block: u32, slot: u32 },
    #[error("block {block} is started in warp slot {slot}, where block {resident} has not ended")]
    Occupied { block: u32, slot: u32, resident: u32 },
}

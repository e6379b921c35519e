//! Why a machine cannot be built or a launch failed, in words.

use super::Mismatch;
use crate::StackOverflow;
use crate::grid::{GridError, ThreadId, thread_ranges};
use crate::program::ProgramError;
use crate::reconverge::ReconvergeError;
use heddle_hdl::{Bits, Errors};
use heddle_sim::simulation::SimulationError;
use heddle_simt::{LaneMask, ShapeError};
use serde::Serialize;
use thiserror::Error;

/// Why a machine cannot be built, or a launch failed. One line each, but for a [`Mismatch`].
#[derive(Debug, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum MachineError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("{0}")]
    Design(#[from] Errors),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Reconverge(#[from] ReconvergeError),
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    #[error(transparent)]
    Grid(#[from] GridError),
    #[error("{0}")]
    Commit(Box<Mismatch>),
    #[error("byte {address:#x} of memory is {got:#04x} after the launch, should be {want:#04x}")]
    Memory { address: usize, got: u8, want: u8 },
    #[error("{0}")]
    Fault(Box<Fault>),
    #[error("{fault}; {at}")]
    PartWaits { fault: Box<Fault>, at: String },
    #[error("bus error: the memory on the bus refused the access to {address:#010x}")]
    Bus { address: u32 },
    #[error("{}", exit_codes(.first, *.count))]
    ExitCodes { first: Vec<ThreadExit>, count: u64 },
    #[error("the program did not end in {cycles} cycles; {at}")]
    Endless { cycles: u64, at: String },
    #[error("the program hangs, as its state after {cycles} cycles is one that it had before: {who}")]
    Hangs { cycles: u64, who: String },
    #[error("a jitter of {jitter} cycles: the memory that was built has {built} at most")]
    Jitter { built: u32, jitter: u32 },
    #[error("interrupted")]
    Interrupted,
    #[error("{start:#010x}..{end:#010x} is outside memory of {memory} bytes")]
    OutsideMemory { start: u32, end: u64, memory: u32 },
}

impl MachineError {
    /// Whether it is what the program does on this core: it stops it, or does not end.
    pub fn is_of_the_program(&self) -> bool {
        use MachineError::{Endless, Fault, Hangs, PartWaits};
        matches!(self, Fault(_) | PartWaits { .. } | Hangs { .. } | Endless { .. })
    }
}

/// Why the core stopped.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{what} at {pc:#010x}{} in {} of block {block} (warp {warp}, lanes {}){}",
    at(.symbol), thread_ranges(.threads), Bits::from(.mask.as_bitslice()), address_text(.address, .overflow)
)]
#[allow(missing_docs)] // the message says what each field is
pub struct Fault {
    pub what: &'static str,
    pub pc: u32,
    pub symbol: Option<String>,
    pub block: u32,
    /// Their numbers in the block.
    pub threads: Vec<u32>,
    /// The warp slot.
    pub warp: u32,
    /// The lanes of those threads.
    pub mask: LaneMask,
    /// Of a jump or memory access.
    pub address: Option<u32>,
    /// It is below the thread's stack.
    pub overflow: Option<StackOverflow>,
}

fn at(symbol: &Option<String>) -> String {
    symbol.as_ref().map_or_else(String::new, |s| format!(" ({s})"))
}

fn address_text(address: &Option<u32>, overflow: &Option<StackOverflow>) -> String {
    let overflow = overflow.map_or_else(String::new, |overflow| overflow.to_string());
    address.map_or_else(String::new, |a| format!(": address {a:#010x}{overflow}"))
}

/// A thread's exit code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct ThreadExit {
    /// The thread.
    #[serde(flatten)]
    pub thread: ThreadId,
    /// What it passed to exit.
    pub code: u32,
}

/// Of the first threads that failed, and of how many did.
fn exit_codes(first: &[ThreadExit], count: u64) -> String {
    let shown: Vec<String> = first.iter().take(8).map(|t| format!("{} with {}", t.thread, t.code as i32)).collect();
    let more = count.saturating_sub(shown.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("exit code not 0: {}{more}", shown.join(", "))
}

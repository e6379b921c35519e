//! `heddle predict`: a pass over linked programs that places convergence barriers.
//!
//! | file | what it does |
//! |---|---|
//! | `linked.rs` | reads a program with its relocations |
//! | `relocation.rs` | the fields that hold addresses |
//! | `layout.rs` | where everything lies once instructions are inserted |
//! | `write.rs` | the file of that |

mod layout;
mod linked;
mod relocation;
mod write;

use crate::program::ProgramError;
use crate::reconverge::ReconvergeError;
use thiserror::Error;

/// Why a program is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum PredictError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Reconverge(#[from] ReconvergeError),
    #[error("the file cannot be laid out again: {}", one_line(what))]
    File { what: String },
    #[error("the file has no relocations, so it cannot be laid out again: {FLAGS}")]
    NoRelocations,
    #[error("{what} at {address:#010x} has no relocation of its own: {FLAGS}")]
    Relaxed { address: u32, what: String },
    #[error("the relocation of {address:#010x} {what}")]
    Relocation { address: u32, what: String },
    #[error("the jump at {pc:#010x} computes its target {target:#010x} without a table, so code cannot be moved")]
    Computed { pc: u32, target: u32 },
    #[error("from {from:#010x} no instruction reaches {to:#010x}, once code is inserted")]
    Far { from: u32, to: u32 },
    #[error("there is no instruction at {pc:#010x}")]
    NoInstruction { pc: u32 },
    #[error("nothing leads from {from:#010x} to {to:#010x}")]
    NoEdge { from: u32, to: u32 },
}

const FLAGS: &str = "link with -Wl,--emit-relocs -Wl,--no-relax";

/// What comes from elsewhere may have any characters.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;

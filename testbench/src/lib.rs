//! Programs for the core, and what runs them. What checks and measures the core with them is in `heddle-check`.
//!
//! * [`program`]: an ELF file as the core sees it.
//! * [`kernels`]: the built-in C kernels, each with a driver that fills inputs and checks results on any
//!   [`kernels::Device`].
//! * [`grid`]: how many blocks of how many threads a launch has.
//! * [`iss`]: a RISC-V instruction-set simulator that shares nothing with the core.
//! * [`paths`](mod@paths): what the divergence unit's tables hold.
//! * [`disassemble`](mod@disassemble): the text of an instruction.
//! * [`machine`]: the simulated core as a device.
//! * [`remote`]: a core behind a stream of bytes, as a device.
//! * [`asm`]: programs that tests make up.
//! * [`costs`]: where the cycles of a run went, by instruction and over time.
//! * [`lines`]: the source line of an instruction.
//! * [`compile`]: sources to a program, by the compiler that is there.
//! * [`described`]: a host description in TOML, and the driver that it is.
//! * [`reconverge`]: where the threads of a program meet again, for stacks.
//! * [`predict`]: convergence barriers placed in linked programs.
//! * [`nearest`]: the name that was probably meant.
//! * [`image`]: pictures that kernels make, for terminals and as PNG.
//! * [`csr_text`]: the C header and the docs table made from the CSR map.
//!
//! `docs/reference/programs.md` is the page for those who write programs. Disassembly is our own table: the crates that
//! do it (`disc-v` comes nearest, at 0.1) cannot be told our CSR names, and give text for many instructions that stop
//! this core.

#![warn(missing_docs)]

pub mod asm;
pub mod compile;
pub mod costs;
pub mod csr_text;
pub mod described;
pub mod disassemble;
pub mod grid;
pub mod image;
pub mod iss;
pub mod kernels;
pub mod lines;
pub mod machine;
pub mod nearest;
mod overflow;
pub mod paths;
pub mod predict;
pub mod printed;
pub mod program;
pub mod reconverge;
pub mod remote;
mod summary;

pub use disassemble::disassemble;
pub use overflow::StackOverflow;
pub use program::Program;

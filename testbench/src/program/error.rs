//! Why a program is refused.

use super::MOST_MEMORY;
use heddle_simt::ShapeError;
use object::elf::{EM_RISCV, ET_EXEC};
use thiserror::Error;

/// Why a program is refused. One line each.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum ProgramError {
    #[error("not an ELF file")]
    NotElf,
    #[error("the file is truncated or damaged: {what}")]
    Damaged { what: String },
    #[error("a 64-bit ELF file: the core is RV32IMA, build with -march=rv32ima -mabi=ilp32")]
    Class64,
    #[error("a big-endian ELF file: the core is little-endian")]
    BigEndian,
    #[error("not a RISC-V ELF file: machine {machine}, not {}", EM_RISCV.0)]
    Machine { machine: u16 },
    #[error("not a linked executable: ELF type {kind}, not {} (relocatable and position-independent files cannot run)", ET_EXEC.0)]
    NotExecutable { kind: u16 },
    #[error("uses compressed instructions: build with -march=rv32ima, without c")]
    Compressed,
    #[error("uses floating-point registers for arguments: build with -mabi=ilp32")]
    FloatAbi,
    #[error("nothing to load: the file has no segments")]
    NoSegments,
    #[error("no entry point: link with a start symbol, as in crt0.S")]
    NoEntry,
    #[error("the entry point {entry:#010x} is not in an executable segment")]
    EntryOutside { entry: u32 },
    #[error("the entry point {entry:#010x} is not a multiple of 4")]
    EntryMisaligned { entry: u32 },
    #[error("the segment at {start:#010x}..{end:#010x} is writable and executable: stores cannot change instructions")]
    WritableProgram { start: u32, end: u64 },
    #[error("the segments at {first:#010x} and {second:#010x} overlap")]
    Overlap { first: u32, second: u32 },
    #[error(
        "writable data at {data:#010x} lies below the end of the program at {program_end:#010x}: data must follow all read-only segments"
    )]
    DataInProgram { data: u32, program_end: u64 },
    #[error("the segment at {start:#010x}..{end:#010x} is outside memory of {memory} bytes: {}", wanted(*.end))]
    SegmentOutside { start: u32, end: u64, memory: u32 },
    #[error("the program ends at {end:#010x} but program memory is {program} bytes: use at least {}", (*.end).next_power_of_two())]
    TooLarge { end: u64, program: u32 },
    #[error(
        "data ends at {data_end:#010x}, in the stacks that begin at {stacks_start:#010x}: use more memory or smaller stacks"
    )]
    StacksOverlap { data_end: u64, stacks_start: u32 },
    #[error("the segment at {start:#010x} is in the scratchpad but has contents: nothing there can have a first value")]
    ScratchpadContents { start: u32 },
    #[error(
        "a block of the program needs {wanted} bytes of scratchpad, the core has {scratchpad}: use at least {}",
        u64::from(*.wanted).next_power_of_two()
    )]
    Scratchpad { wanted: u32, scratchpad: u32 },
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// What memory would hold an end address.
fn wanted(end: u64) -> String {
    let bytes = end.next_power_of_two();
    if bytes <= MOST_MEMORY { format!("use at least {bytes}") } else { "no memory would hold it, link it lower".into() }
}

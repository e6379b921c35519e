//! A program as the core sees it: the segments, symbols and entry point of a statically linked RV32IMA ELF file.
//!
//! A segment at the scratchpad's addresses is not loaded: it says how much of the scratchpad a block needs.
//!
//! [`Program::parse`] refuses what no shape of the core could run; [`Program::check`] what does not fit one memory
//! shape. Debug information, section names and physical addresses are ignored.

use heddle_simt::Shape;
use std::ops::Range;

mod elf;
mod error;

pub use error::ProgramError;

/// Bytes of the largest memory of any shape.
const MOST_MEMORY: u64 = 64 << 20;

/// A loadable program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    entry: u32,
    segments: Vec<Segment>,
    scratchpad: u32,
    symbols: Vec<Symbol>,
}

/// A range of memory that the file fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address.
    pub address: u32,
    /// Bytes of memory; what `data` does not cover is zero.
    pub size: u32,
    /// Contents, at most `size` bytes.
    pub data: Vec<u8>,
    /// Whether the program may store here.
    pub writable: bool,
    /// Whether instructions lie here.
    pub executable: bool,
}

impl Segment {
    /// First address after the segment.
    pub fn end(&self) -> u64 {
        self.address as u64 + self.size as u64
    }

    fn contains(&self, address: u32) -> bool {
        self.address <= address && (address as u64) < self.end()
    }
}

/// A named address: a function, a variable or a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Name in the symbol table.
    pub name: String,
    /// First address.
    pub address: u32,
    /// Bytes; 0 if the file does not say.
    pub size: u32,
    /// Whether other files could refer to it (in C: not `static`).
    pub global: bool,
    /// Whether the file says that it is a function.
    pub function: bool,
}

impl Symbol {
    /// Whether the address is in what the symbol names.
    pub fn contains(&self, address: u32) -> bool {
        self.address <= address && address - self.address < self.size
    }
}

/// Words of memory, the first at the first byte; a part of one at the end is left out.
pub fn from_bytes(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

impl Program {
    /// A program of instructions from address 0, where it begins, with named addresses.
    ///
    /// # Panics
    /// Without instructions.
    pub fn assembled<'a>(words: &[u32], labels: impl IntoIterator<Item = (&'a str, u32)>) -> Program {
        assert!(!words.is_empty(), "a program has instructions");
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = data.len() as u32;
        let symbol = |(name, address): (&str, u32)| Symbol {
            name: name.into(),
            address,
            size: 0,
            global: true,
            function: false,
        };
        let mut symbols: Vec<Symbol> = labels.into_iter().map(symbol).collect();
        symbols.sort_by_key(|s| s.address);
        let segment = Segment { address: 0, size, data, writable: false, executable: true };
        Program { entry: 0, segments: vec![segment], scratchpad: 0, symbols }
    }

    /// Whether the program fits a core's memory: segments in memory, program in program memory, data below the stacks,
    /// a block's arrays in the scratchpad.
    pub fn check(&self, shape: &Shape) -> Result<(), ProgramError> {
        shape.check()?;
        let stacks_start = stacks_start(shape);
        for segment in &self.segments {
            if segment.end() > shape.memory as u64 {
                return Err(ProgramError::SegmentOutside {
                    start: segment.address,
                    end: segment.end(),
                    memory: shape.memory,
                });
            }
        }
        if self.program_end() > shape.program {
            return Err(ProgramError::TooLarge { end: self.program_end() as u64, program: shape.program });
        }
        let data_end = self.data_end();
        if data_end > stacks_start as u64 {
            return Err(ProgramError::StacksOverlap { data_end, stacks_start });
        }
        if self.scratchpad > shape.scratchpad {
            return Err(ProgramError::Scratchpad { wanted: self.scratchpad, scratchpad: shape.scratchpad });
        }
        Ok(())
    }

    /// Address of the first instruction of every thread.
    pub fn entry(&self) -> u32 {
        self.entry
    }

    /// Bytes of scratchpad that a block needs.
    pub fn scratchpad(&self) -> u32 {
        self.scratchpad
    }

    /// Memory that the program leaves to its host, between data and stacks; at a multiple of [`GRAIN`].
    pub fn room(&self, shape: &Shape) -> Range<u32> {
        let end = stacks_start(shape);
        let start = self.data_end().next_multiple_of(GRAIN).min(end.into());
        start as u32..end
    }

    fn data_end(&self) -> u64 {
        self.segments.iter().map(Segment::end).max().unwrap_or(0)
    }

    /// The segments of main memory, in order of address.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The functions, variables and labels, in order of address.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// End of the program in bytes, a multiple of [`GRAIN`]: a store below it stops the core.
    pub fn program_end(&self) -> u32 {
        program_end(&self.segments) as u32
    }

    /// The contents of all `shape.memory` bytes of memory before the first launch.
    pub fn memory_image(&self, shape: &Shape) -> Result<Vec<u8>, ProgramError> {
        self.check(shape)?;
        let mut image = vec![0; shape.memory as usize];
        for segment in &self.segments {
            let start = segment.address as usize;
            image[start..start + segment.data.len()].copy_from_slice(&segment.data);
        }
        Ok(image)
    }

    /// The contents of program memory, `shape.program / 4` words. Words after the program are 0, an illegal
    /// instruction.
    pub fn instruction_image(&self, shape: &Shape) -> Result<Vec<u32>, ProgramError> {
        self.check(shape)?;
        let mut image = vec![0; shape.program as usize];
        for segment in self.segments.iter().filter(|s| !s.writable) {
            let start = segment.address as usize;
            image[start..start + segment.data.len()].copy_from_slice(&segment.data);
        }
        Ok(from_bytes(&image))
    }

    /// The word of the program at an address that is a multiple of 4; `None` from [`Program::program_end`] on.
    pub fn word(&self, address: u32) -> Option<u32> {
        if !address.is_multiple_of(4) || address >= self.program_end() {
            return None;
        }
        let bytes = std::array::from_fn(|i| self.byte(address + i as u32));
        Some(u32::from_le_bytes(bytes))
    }

    fn byte(&self, address: u32) -> u8 {
        let segment = self.segments.iter().find(|s| s.contains(address));
        let data = segment.and_then(|s| s.data.get((address - s.address) as usize));
        data.copied().unwrap_or(0)
    }

    /// The symbol of a name; a global one if several have it.
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        let named = self.symbols.iter().filter(|s| s.name == name);
        named.max_by_key(|s| s.global)
    }

    /// The end of a message that names an address: its [nearest symbol](Program::nearest_symbol) as ` (name+0x10)`, or
    /// nothing without one.
    pub fn named(&self, address: u32) -> String {
        self.nearest_symbol(address).map_or_else(String::new, |symbol| format!(" ({symbol})"))
    }

    /// Where an address is, for people: `name+0x10`, or `name` at its start. The symbol that contains the address, else
    /// the last before it in the same segment; `None` without either.
    pub fn nearest_symbol(&self, address: u32) -> Option<String> {
        let segment = self.segments.iter().find(|s| s.contains(address))?;
        let before = self.symbols.iter().filter(|s| s.address <= address && segment.contains(s.address));
        let symbol = before.max_by_key(|s| (s.contains(address), s.address, s.global))?;
        Some(match address - symbol.address {
            0 => symbol.name.clone(),
            offset => format!("{}+{offset:#x}", symbol.name),
        })
    }
}

fn stacks_start(shape: &Shape) -> u32 {
    shape.memory - shape.threads() * shape.stack
}

fn program_end(segments: &[Segment]) -> u64 {
    let fixed = segments.iter().filter(|s| !s.writable);
    fixed.map(Segment::end).max().unwrap_or(0).next_multiple_of(GRAIN)
}

/// The core tells program from data in blocks of so many bytes.
pub const GRAIN: u64 = 256;

#[cfg(test)]
mod tests;

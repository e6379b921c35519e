//! A program as the core sees it: the segments, symbols and entry point of a statically linked RV32IMA ELF file.
//!
//! A segment at the scratchpad's addresses is not loaded: it says how much of the scratchpad a block needs.
//!
//! [`Program::parse`] refuses what no shape of the core could run; [`Program::check`] what does not fit one memory shape. Debug
//! information, section names and physical addresses are ignored.

use heddle_simt::{
    Shape, ShapeError,
    address::{SCRATCHPAD, STACK},
};
use object::{
    LittleEndian,
    elf::{
        EM_RISCV, ET_EXEC, FileHeader32, PF_W, PF_X, PT_LOAD, SHT_SYMTAB, STB_LOCAL, STT_FUNC, STT_NOTYPE, STT_OBJECT,
    },
    read::elf::{FileHeader, ProgramHeader, Sym},
};
use std::ops::Range;
use thiserror::Error;

/// Flags of a RISC-V ELF header: compressed instructions, and the floating-point argument registers.
const FLAG_COMPRESSED: u32 = 1;
const FLAGS_FLOAT: u32 = 6;

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

impl Program {
    /// Reads an ELF file. Any bytes are safe to pass.
    pub fn parse(bytes: &[u8]) -> Result<Program, ProgramError> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ProgramError::NotElf);
        }
        match bytes.get(4) {
            Some(2) => return Err(ProgramError::Class64),
            Some(1) => {}
            _ => return Err(damaged("no ELF class")),
        }
        if bytes.get(5) == Some(&2) {
            return Err(ProgramError::BigEndian);
        }

        let endian = LittleEndian;
        let header = FileHeader32::<LittleEndian>::parse(bytes).map_err(damaged)?;
        let machine = header.e_machine(endian);
        if machine != EM_RISCV {
            return Err(ProgramError::Machine { machine: machine.0 });
        }
        let kind = header.e_type(endian);
        if kind != ET_EXEC {
            return Err(ProgramError::NotExecutable { kind: kind.0 });
        }
        let flags = header.e_flags(endian).0;
        if flags & FLAG_COMPRESSED != 0 {
            return Err(ProgramError::Compressed);
        }
        if flags & FLAGS_FLOAT != 0 {
            return Err(ProgramError::FloatAbi);
        }

        let (shared, segments): (Vec<Segment>, Vec<Segment>) =
            read_segments(header, bytes)?.into_iter().partition(in_scratchpad);
        let scratchpad = scratchpad_bytes(&shared)?;
        let entry = header.e_entry(endian);
        check_layout(&segments, entry)?;
        let symbols = read_symbols(header, bytes)?;
        Ok(Program { entry, segments, scratchpad, symbols })
    }

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

    /// The program as an ELF file, without symbols.
    pub fn elf(&self) -> Vec<u8> {
        const HEADER: u32 = 52;
        const ENTRY: u32 = 32;
        let shared =
            Segment { address: SCRATCHPAD, size: self.scratchpad, data: vec![], writable: true, executable: false };
        let segments = || self.segments.iter().chain((self.scratchpad > 0).then_some(&shared));
        let count = segments().count() as u32;
        let mut file = b"\x7fELF".to_vec();
        // 32 bits, little-endian, version 1.
        file.extend([1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let half = |low: u32, high: u32| low | high << 16;
        let kind = half(u32::from(ET_EXEC.0), u32::from(EM_RISCV.0));
        let header = [kind, 1, self.entry, HEADER, 0, 0, half(HEADER, ENTRY), half(count, 0), 0];
        file.extend(header.iter().flat_map(|word| word.to_le_bytes()));
        let mut offset = HEADER + count * ENTRY;
        for segment in segments() {
            let length = segment.data.len() as u32;
            let flags = 4 | u32::from(segment.writable) << 1 | u32::from(segment.executable);
            let entry = [PT_LOAD.0, offset, segment.address, segment.address, length, segment.size, flags, 4];
            file.extend(entry.iter().flat_map(|word| word.to_le_bytes()));
            offset += length;
        }
        file.extend(segments().flat_map(|segment| &segment.data));
        file
    }

    /// Whether the program fits a core's memory: segments in memory, program in program memory, data below the stacks, a
    /// block's arrays in the scratchpad.
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

    /// The contents of program memory, `shape.program / 4` words. Words after the program are 0, an illegal instruction.
    pub fn instruction_image(&self, shape: &Shape) -> Result<Vec<u32>, ProgramError> {
        self.check(shape)?;
        let mut image = vec![0; shape.program as usize];
        for segment in self.segments.iter().filter(|s| !s.writable) {
            let start = segment.address as usize;
            image[start..start + segment.data.len()].copy_from_slice(&segment.data);
        }
        Ok(image.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
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

    /// Where an address is, for people: `name+0x10`, or `name` at its start. The symbol that contains the address, else the
    /// last before it in the same segment; `None` without either.
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

fn damaged(what: impl ToString) -> ProgramError {
    ProgramError::Damaged { what: what.to_string() }
}

fn read_segments(header: &FileHeader32<LittleEndian>, bytes: &[u8]) -> Result<Vec<Segment>, ProgramError> {
    let endian = LittleEndian;
    let mut segments = Vec::new();
    let mut contents = 0;
    for entry in header.program_headers(endian, bytes).map_err(damaged)? {
        let (address, size) = (entry.p_vaddr(endian), entry.p_memsz(endian));
        if entry.p_type(endian) != PT_LOAD || size == 0 {
            continue;
        }
        let data = entry
            .data(endian, bytes)
            .map_err(|()| damaged(format!("the contents of the segment at {address:#010x} are missing")))?;
        if data.len() > size as usize {
            return Err(damaged(format!("the segment at {address:#010x} has more contents than memory")));
        }
        // Segments that share contents could take any amount of memory.
        contents += data.len();
        if contents > bytes.len() {
            return Err(damaged("segments have more contents than the file"));
        }
        let flags = entry.p_flags(endian);
        segments.push(Segment {
            address,
            size,
            data: data.to_vec(),
            writable: flags.contains(PF_W),
            executable: flags.contains(PF_X),
        });
    }
    segments.sort_by_key(|s| s.address);
    Ok(segments)
}

fn in_scratchpad(segment: &Segment) -> bool {
    (SCRATCHPAD..STACK).contains(&segment.address) && !segment.executable
}

/// Bytes from the start of the scratchpad to the end of what lies there.
fn scratchpad_bytes(shared: &[Segment]) -> Result<u32, ProgramError> {
    match shared.iter().find(|segment| !segment.data.is_empty()) {
        Some(segment) => Err(ProgramError::ScratchpadContents { start: segment.address }),
        None => {
            let end = shared.iter().map(Segment::end).max().unwrap_or(0);
            let bytes = end.saturating_sub(SCRATCHPAD.into());
            Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
        }
    }
}

fn stacks_start(shape: &Shape) -> u32 {
    shape.memory - shape.threads() * shape.stack
}

fn check_layout(segments: &[Segment], entry: u32) -> Result<(), ProgramError> {
    if segments.is_empty() {
        return Err(ProgramError::NoSegments);
    }
    if !segments.iter().any(|s| s.executable && s.contains(entry)) {
        return Err(match entry {
            0 => ProgramError::NoEntry,
            _ => ProgramError::EntryOutside { entry },
        });
    }
    if !entry.is_multiple_of(4) {
        return Err(ProgramError::EntryMisaligned { entry });
    }
    for pair in segments.windows(2) {
        if pair[0].end() > pair[1].address as u64 {
            return Err(ProgramError::Overlap { first: pair[0].address, second: pair[1].address });
        }
    }
    let program_end = program_end(segments);
    for segment in segments.iter().filter(|s| s.writable) {
        if segment.executable {
            return Err(ProgramError::WritableProgram { start: segment.address, end: segment.end() });
        }
        if (segment.address as u64) < program_end {
            return Err(ProgramError::DataInProgram { data: segment.address, program_end });
        }
    }
    if program_end > u32::MAX as u64 {
        let last = segments.iter().rfind(|s| !s.writable);
        return Err(ProgramError::SegmentOutside {
            start: last.map_or(0, |s| s.address),
            end: program_end,
            memory: MOST_MEMORY as u32,
        });
    }
    Ok(())
}

fn program_end(segments: &[Segment]) -> u64 {
    let fixed = segments.iter().filter(|s| !s.writable);
    fixed.map(Segment::end).max().unwrap_or(0).next_multiple_of(GRAIN)
}

/// The core tells program from data in blocks of so many bytes.
pub const GRAIN: u64 = 256;

fn read_symbols(header: &FileHeader32<LittleEndian>, bytes: &[u8]) -> Result<Vec<Symbol>, ProgramError> {
    let endian = LittleEndian;
    let sections = header.sections(endian, bytes).map_err(damaged)?;
    let table = sections.symbols(endian, bytes, SHT_SYMTAB).map_err(damaged)?;
    let mut symbols = Vec::new();
    let mut names = 0;
    for symbol in table.iter() {
        let kind = symbol.st_type();
        let named = kind == STT_FUNC || kind == STT_OBJECT || kind == STT_NOTYPE;
        let name = table.symbol_name(endian, symbol).map_err(damaged)?;
        // Symbols that share a name could take any amount of memory.
        names += name.len();
        if names > bytes.len() {
            return Err(damaged("symbols have longer names than the file"));
        }
        let name = String::from_utf8_lossy(name).into_owned();
        // A `$` marks what assembler and linker made for themselves; names are part of one-line messages.
        let odd = |c: char| c == '$' || c.is_control();
        if !named || symbol.is_undefined(endian) || name.is_empty() || name.contains(odd) {
            continue;
        }
        symbols.push(Symbol {
            name,
            address: symbol.st_value(endian),
            size: symbol.st_size(endian),
            global: symbol.st_bind() != STB_LOCAL,
            function: kind == STT_FUNC,
        });
    }
    symbols.sort_by_key(|s| s.address);
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VECADD: &[u8] = include_bytes!("../programs/elf/vecadd.elf");
    const HISTOGRAM: &[u8] = include_bytes!("../programs/elf/histogram.elf");

    // Offsets in the ELF header, and of the fields of a program header.
    const CLASS: usize = 4;
    const DATA: usize = 5;
    const TYPE: usize = 16;
    const MACHINE: usize = 18;
    const ENTRY: usize = 24;
    const PHOFF: usize = 28;
    const FLAGS: usize = 36;
    const PHNUM: usize = 44;
    const P_OFFSET: usize = 4;
    const P_VADDR: usize = 8;
    const P_FILESZ: usize = 16;
    const P_MEMSZ: usize = 20;
    const P_FLAGS: usize = 24;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn patched(at: usize, value: u32) -> Vec<u8> {
        let mut bytes = VECADD.to_vec();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    fn patched_byte(at: usize, value: u8) -> Vec<u8> {
        let mut bytes = VECADD.to_vec();
        bytes[at] = value;
        bytes
    }

    /// Offset of a field of the n-th loaded segment's header: 0 is the program, 1 is data.
    fn header_field(n: usize, field: usize) -> usize {
        let start = word(VECADD, PHOFF) as usize;
        let headers = (0..VECADD[PHNUM] as usize).map(|i| start + 32 * i);
        let mut loaded = headers.filter(|&h| word(VECADD, h) == 1);
        loaded.nth(n).unwrap() + field
    }

    #[test]
    fn a_written_file_is_read_back() {
        for bytes in [VECADD, HISTOGRAM] {
            let program = Program::parse(bytes).unwrap();
            let again = Program::parse(&program.elf()).unwrap();
            assert_eq!(again, Program { symbols: vec![], ..program });
        }
    }

    #[test]
    fn arrays_in_the_scratchpad_have_a_place_and_no_contents() {
        let program = Program::parse(HISTOGRAM).unwrap();
        assert_eq!(program.scratchpad(), 1024);
        assert_eq!(program.symbol("bins").unwrap().address, SCRATCHPAD);
        assert!(program.segments().iter().all(|segment| segment.end() < SCRATCHPAD.into()));
        let error = program.check(&Shape { scratchpad: 512, ..Shape::default() }).unwrap_err().to_string();
        assert_eq!(error, "a block of the program needs 1024 bytes of scratchpad, the core has 512: use at least 1024");
        program.check(&Shape { scratchpad: 1024, ..Shape::default() }).unwrap();

        let mut bytes = patched(header_field(1, P_VADDR), SCRATCHPAD + 256);
        bytes[header_field(1, P_FILESZ)] = 4;
        assert_eq!(self::error(&bytes), ProgramError::ScratchpadContents { start: SCRATCHPAD + 256 });
        bytes[header_field(1, P_FILESZ)..][..4].fill(0);
        assert_eq!(Program::parse(&bytes).unwrap().scratchpad(), 256 + word(VECADD, header_field(1, P_MEMSZ)));
    }

    #[test]
    fn between_data_and_stacks_there_is_room() {
        let shape = Shape::new(2, 2);
        let program = Program::parse(VECADD).unwrap();
        let room = program.room(&shape);
        assert_eq!((room.start % 256, room.end), (0, shape.memory - 4 * shape.stack));
        assert!((0..256).contains(&(room.start as i64 - program.segments()[1].end() as i64)));
        let full =
            Program { segments: vec![Segment { size: room.end - 1, ..program.segments()[1].clone() }], ..program };
        assert!(full.room(&shape).is_empty());
    }

    fn error(bytes: &[u8]) -> ProgramError {
        Program::parse(bytes).unwrap_err()
    }

    #[test]
    fn a_good_program_has_two_segments_and_its_symbols() {
        let program = Program::parse(VECADD).unwrap();
        let [text, data] = program.segments() else {
            panic!("{:?}", program.segments());
        };
        assert!(text.executable && !text.writable && data.writable && !data.executable);
        assert_eq!(program.entry(), program.symbol("_start").unwrap().address);
        let a = program.symbol("a").unwrap();
        assert_eq!((a.size, a.address % 256), (65536, 0));
        assert!(a.address >= program.program_end());
        program.check(&Shape::new(64, 64)).unwrap();
    }

    #[test]
    fn nearest_symbols() {
        let program = Program::parse(VECADD).unwrap();
        let main = program.symbol("main").unwrap();
        let name = |a| program.nearest_symbol(a).unwrap();
        assert_eq!(name(main.address), "main");
        assert_eq!(name(main.address + 0x10), "main+0x10");
        assert_eq!(name(program.symbol("b").unwrap().address + 4), "b+0x4");
        assert_eq!(program.nearest_symbol(0x7fff_0000), None);
        assert_eq!(program.symbol("no such name"), None);
    }

    #[test]
    fn images_hold_the_segments_and_zeros() {
        let shape = Shape::new(1, 1);
        let program = Program::parse(VECADD).unwrap();
        let memory = program.memory_image(&shape).unwrap();
        let instructions = program.instruction_image(&shape).unwrap();
        assert_eq!(memory.len(), shape.memory as usize);
        assert_eq!(instructions.len(), shape.program as usize / 4);
        let end = program.program_end() as usize;
        for (i, &instruction) in instructions[..end / 4].iter().enumerate() {
            assert_eq!(instruction, word(&memory, 4 * i));
        }
        assert!(instructions[end / 4..].iter().all(|&w| w == 0));
        let length = program.symbol("length").unwrap().address as usize;
        assert_eq!(word(&memory, length), 16384);
    }

    #[test]
    fn foreign_files_are_named() {
        assert_eq!(error(b"#!/bin/sh"), ProgramError::NotElf);
        assert_eq!(error(b""), ProgramError::NotElf);
        assert_eq!(error(&patched_byte(CLASS, 2)), ProgramError::Class64);
        assert_eq!(error(&patched_byte(DATA, 2)), ProgramError::BigEndian);
        assert_eq!(error(&patched_byte(MACHINE, 62)), ProgramError::Machine { machine: 62 });
        for kind in [1, 3] {
            assert_eq!(error(&patched_byte(TYPE, kind)), ProgramError::NotExecutable { kind: kind as u16 });
        }
        assert_eq!(error(&patched_byte(FLAGS, 1)), ProgramError::Compressed);
        assert_eq!(error(&patched_byte(FLAGS, 4)), ProgramError::FloatAbi);
    }

    #[test]
    fn damaged_files_are_named() {
        for length in [4, 5, 20, 60, 100, VECADD.len() / 2, VECADD.len() - 1] {
            let e = error(&VECADD[..length]);
            assert!(matches!(e, ProgramError::Damaged { .. }), "{length}: {e}");
        }
        for field in [P_OFFSET, P_FILESZ] {
            let e = error(&patched(header_field(0, field), 0xffff_fff0));
            assert!(matches!(e, ProgramError::Damaged { .. }), "{e}");
        }
        let e = error(&patched(header_field(0, P_MEMSZ), 4));
        assert!(e.to_string().contains("more contents than memory"), "{e}");
    }

    #[test]
    fn entry_points_are_checked() {
        assert_eq!(error(&patched(PHNUM, 0)), ProgramError::NoSegments);
        assert_eq!(error(&patched(ENTRY, 0x4000_0000)), ProgramError::EntryOutside { entry: 0x4000_0000 });
        assert_eq!(error(&patched(ENTRY, 2)), ProgramError::EntryMisaligned { entry: 2 });
        let mut moved = patched(header_field(0, P_VADDR), 0x10);
        assert_eq!(error(&moved), ProgramError::NoEntry);
        moved[ENTRY] = 0x10;
        assert_eq!(Program::parse(&moved).unwrap().entry(), 0x10);
    }

    #[test]
    fn layouts_are_checked() {
        let data = Program::parse(VECADD).unwrap().segments()[1].address;
        assert_eq!(error(&patched(header_field(1, P_VADDR), 8)), ProgramError::Overlap { first: 0, second: 8 });
        assert!(matches!(error(&patched(header_field(0, P_FLAGS), 7)), ProgramError::WritableProgram { start: 0, .. }));
        let mut above = patched(header_field(0, P_VADDR), 0x10_0000);
        above[ENTRY..ENTRY + 4].copy_from_slice(&0x10_0000u32.to_le_bytes());
        assert!(matches!(
            error(&above),
            ProgramError::DataInProgram { data: d, .. } if d == data
        ));
        // A read-only segment that reaches the end of the address space.
        let mut high = patched(header_field(0, P_VADDR), 0xffff_ff00);
        let memsz = header_field(0, P_MEMSZ);
        high[memsz..memsz + 4].copy_from_slice(&0x1000u32.to_le_bytes());
        high[ENTRY..ENTRY + 4].copy_from_slice(&0xffff_ff00u32.to_le_bytes());
        let flags = header_field(1, P_FLAGS);
        high[flags] = 4;
        assert!(matches!(error(&high), ProgramError::SegmentOutside { start: 0xffff_ff00, .. }));
    }

    #[test]
    fn fit_is_checked_against_the_shape() {
        let program = Program::parse(VECADD).unwrap();
        let shape = Shape::new(8, 8);
        let message = |shape: Shape| program.check(&shape).unwrap_err().to_string();

        let small = message(Shape { memory: 128 << 10, ..shape.clone() });
        assert!(small.contains("outside memory of 131072 bytes: use at least 262144"), "{small}");
        let crowded = message(Shape { memory: 256 << 10, ..shape.clone() });
        assert!(crowded.contains("in the stacks"), "{crowded}");
        assert!(message(Shape { lanes: 3, ..shape.clone() }).starts_with("lanes = 3"));

        let large = Program::parse(&patched(header_field(0, P_MEMSZ), 0x200)).unwrap_err();
        assert!(matches!(large, ProgramError::Overlap { .. }), "{large}");
        let mut bytes = patched(header_field(0, P_MEMSZ), 0x1_0004);
        let vaddr = header_field(1, P_VADDR);
        bytes[vaddr..vaddr + 4].copy_from_slice(&0x2_0000u32.to_le_bytes());
        let large = Program::parse(&bytes).unwrap().check(&shape).unwrap_err();
        assert_eq!(
            large.to_string(),
            "the program ends at 0x00010100 but program memory is 65536 bytes: use at least 131072"
        );

        let far = Program::parse(&patched(vaddr, 0xf000_0000)).unwrap();
        let far = far.check(&shape).unwrap_err().to_string();
        assert!(far.contains("no memory would hold it"), "{far}");
    }

    #[test]
    fn a_file_without_sections_loads_without_symbols() {
        let mut bytes = patched(32, 0);
        bytes[48..52].fill(0);
        let program = Program::parse(&bytes).unwrap();
        assert!(program.symbols().is_empty());
        assert_eq!(program.nearest_symbol(0), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            changes in prop::collection::vec((0..VECADD.len(), any::<u8>()), 1..12),
            header_changes in prop::collection::vec((0..160usize, any::<u8>()), 0..6),
            length in 0..=VECADD.len(),
            cut in any::<bool>(),
        ) {
            let mut bytes = VECADD.to_vec();
            for (at, value) in changes.into_iter().chain(header_changes) {
                // The first half of the identification stays, or nearly every case would end there.
                if at >= 8 {
                    bytes[at] = value;
                }
            }
            if cut {
                bytes.truncate(length);
            }
            if let Ok(program) = Program::parse(&bytes) {
                let shape = Shape::new(8, 8);
                let fits = program.check(&shape).is_ok();
                prop_assert_eq!(program.memory_image(&shape).is_ok(), fits);
                prop_assert_eq!(program.instruction_image(&shape).is_ok(), fits);
                program.nearest_symbol(0x40);
                program.word(0xffff_fffc);
            }
        }
    }
}

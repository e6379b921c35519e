//! Programs from ELF files, and as ELF files. Any bytes are safe to read.

use super::{MOST_MEMORY, Program, ProgramError, Segment, Symbol, program_end};
use heddle_simt::address::{SCRATCHPAD, STACK};
use object::{
    LittleEndian,
    elf::{
        EM_RISCV, ET_EXEC, FileHeader32, PF_W, PF_X, PT_LOAD, SHT_SYMTAB, STB_LOCAL, STT_FUNC, STT_NOTYPE, STT_OBJECT,
    },
    read::elf::{FileHeader, ProgramHeader, Sym},
};

/// Flags of a RISC-V ELF header: compressed instructions, and the floating-point argument registers.
const FLAG_COMPRESSED: u32 = 1;

const FLAGS_FLOAT: u32 = 6;

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
}

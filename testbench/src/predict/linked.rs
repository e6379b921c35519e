//! A linked program of which the relocations are kept, so that it can be laid out again.
//!
//! Linked with `--emit-relocs --no-relax`. Relaxation leaves code without relocations, or with some that say nothing of
//! where it leads. What is read is checked: a relocation of an instruction gives what the file has there.

use super::PredictError;
use super::relocation::{self, Field, Format, Kind, Term};
use crate::Program;
use crate::reconverge::instruction::{Flow, Instruction};
use crate::reconverge::{Analysis, analyse};
use heddle_simt::address::SCRATCHPAD;
use object::build::{Id, elf::*};
use object::elf::{PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHF_INFO_LINK, SHN_UNDEF, STT_SECTION};
use std::collections::{BTreeMap, BTreeSet};

/// The file, and what was found out about it.
pub struct Linked<'a> {
    pub builder: Builder<'a>,
    pub program: Program,
    pub analysis: Analysis,
    /// Sections that are in memory, in order of address, and number of each section among them.
    pub sections: Vec<Section>,
    /// The instructions of executable sections that hold an address.
    pub fields: BTreeMap<u32, (Field, To)>,
    /// The terms of fields of data: section in the file, offset, what is added.
    pub terms: Vec<(SectionId, u32, Term, To)>,
    /// Instructions that are reached.
    pub reached: BTreeSet<u32>,
}

/// A section in memory.
pub struct Section {
    pub id: SectionId,
    pub address: u32,
    pub size: u32,
    pub align: u32,
    pub executable: bool,
    /// It has contents in the file.
    pub contents: bool,
    /// Number of the segment that it is in, in the file.
    pub segment: usize,
}

/// What a relocation refers to: an address, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct To {
    /// Number of the section in memory that the symbol is in; none of a symbol that never moves.
    pub section: Option<usize>,
    pub address: u32,
}

impl<'a> Linked<'a> {
    /// Reads an ELF file. Any bytes are safe to pass.
    pub fn read(bytes: &'a [u8]) -> Result<Linked<'a>, PredictError> {
        let program = Program::parse(bytes)?;
        let analysis = analyse(&program)?;
        let builder = Builder::read32(bytes).map_err(|error| PredictError::File { what: error.to_string() })?;
        let sections = sections(&builder, bytes.len() as u64, program.program_end())?;
        let blocks = analysis.functions.iter().flat_map(|function| &function.blocks);
        let reached = blocks.flat_map(|block| (block.start..block.end).step_by(4)).collect();
        let mut linked =
            Linked { builder, program, analysis, sections, fields: BTreeMap::new(), terms: vec![], reached };
        linked.read_relocations()?;
        linked.check_code()?;
        linked.check_fields()?;
        Ok(linked)
    }

    /// The word of an instruction.
    pub fn word(&self, pc: u32) -> u32 {
        self.program.word(pc).unwrap_or(0)
    }

    pub fn instruction(&self, pc: u32) -> Instruction {
        Instruction { pc, word: self.word(pc) }
    }

    /// Where an address is, for people.
    pub fn place(&self, pc: u32) -> String {
        self.program.nearest_symbol(pc).unwrap_or_else(|| format!("{pc:#x}"))
    }

    /// Number among the sections in memory.
    pub fn number(&self, id: SectionId) -> Option<usize> {
        self.sections.iter().position(|section| section.id == id)
    }

    /// What a symbol refers to, with something added.
    fn to(&self, symbol: Option<SymbolId>, addend: i64) -> Result<To, PredictError> {
        let Some(symbol) = symbol else { return Ok(To { section: None, address: addend as u32 }) };
        let symbol = self.builder.symbols.get(symbol);
        let address = (symbol.st_value as u32).wrapping_add(addend as u32);
        Ok(To { section: symbol.section.and_then(|id| self.number(id)), address })
    }

    fn read_relocations(&mut self) -> Result<(), PredictError> {
        let mut any = false;
        let mut fields = BTreeMap::new();
        let mut terms = Vec::new();
        for table in &self.builder.sections {
            let SectionData::Relocation(relocations) = &table.data else { continue };
            any |= !relocations.is_empty();
            let of = match table.sh_info_section {
                Some(of) if table.sh_flags.contains(SHF_INFO_LINK) => Some(of),
                _ => self.builder.sections.iter().map(|s| s.id()).find(|id| id.index() + 1 == table.sh_info as usize),
            };
            let of = of.ok_or_else(|| damaged("relocations of no section"))?;
            let section = self.builder.sections.get(of);
            let executable = section.sh_flags.contains(SHF_ALLOC | SHF_EXECINSTR);
            let start = if section.sh_flags.contains(SHF_ALLOC) { section.sh_addr as u32 } else { 0 };
            let size = match &section.data {
                SectionData::Data(data) => data.len() as u32,
                _ => continue,
            };
            for relocation in relocations {
                let address = relocation.r_offset as u32;
                let offset = address.wrapping_sub(start);
                let refused = |what: &str| PredictError::Relocation { address, what: what.into() };
                let to = self.to(relocation.symbol, relocation.r_addend)?;
                let room = |bytes: u32| {
                    let inside = offset.checked_add(bytes).is_some_and(|end| end <= size);
                    if inside { Ok(()) } else { Err(refused("is not in its section")) }
                };
                match Kind::of(relocation.r_type) {
                    Kind::Nothing => {}
                    Kind::Gprel => return Err(PredictError::Relaxed { address, what: "an offset from gp".into() }),
                    Kind::Unknown => {
                        return Err(refused(&format!("is of type {}, which cannot be put anew", relocation.r_type.0)));
                    }
                    Kind::Instruction(field) if executable && offset.is_multiple_of(4) => {
                        room(if field == Field::Call { 8 } else { 4 })?;
                        if fields.insert(address, (field, to)).is_some() {
                            return Err(refused("is not the only one of its instruction"));
                        }
                    }
                    Kind::Instruction(_) => return Err(refused("is of an instruction where there is none")),
                    Kind::Data(term) => {
                        room(term.bits.div_ceil(8))?;
                        terms.push((of, offset, term, to));
                    }
                }
            }
        }
        if !any {
            return Err(PredictError::NoRelocations);
        }
        (self.fields, self.terms) = (fields, terms);
        Ok(())
    }

    /// The `auipc` that a lower part belongs to.
    pub fn upper_of(&self, pc: u32) -> Option<(u32, Field, To)> {
        let (_, to) = self.fields.get(&pc)?;
        let &(field, of) = self.fields.get(&to.address)?;
        matches!(field, Field::Upper | Field::UpperOfGot).then_some((to.address, field, of))
    }

    /// The place in the global offset table whose address an `auipc` and an instruction with a lower part make.
    pub fn got_place(&self, upper: u32, lower: u32, format: Format) -> u32 {
        let base = upper.wrapping_add(relocation::upper(self.word(upper)));
        base.wrapping_add(relocation::lower(self.word(lower), format))
    }

    /// Relocations of instructions give what is there.
    fn check_fields(&self) -> Result<(), PredictError> {
        for (&pc, &(field, to)) in &self.fields {
            let word = self.word(pc);
            let wrong =
                || PredictError::Relocation { address: pc, what: "does not give what the file has there".into() };
            let offset = to.address.wrapping_sub(pc);
            let good = match field {
                Field::Branch => word & 0x7f == 0x63 && relocation::with_offset(word, offset) == Some(word),
                Field::Jal => word & 0x7f == 0x6f && relocation::with_offset(word, offset) == Some(word),
                Field::Call => {
                    let behind = self.word(pc.wrapping_add(4));
                    word & 0x7f == 0x17
                        && behind & 0x707f == 0x67
                        && !self.fields.contains_key(&pc.wrapping_add(4))
                        && relocation::with_upper(word, offset) == word
                        && relocation::with_lower(behind, Format::I, offset) == behind
                }
                Field::Upper => word & 0x7f == 0x17 && relocation::with_upper(word, offset) == word,
                Field::UpperOfGot => word & 0x7f == 0x17,
                Field::Absolute => word & 0x7f == 0x37 && relocation::with_upper(word, to.address) == word,
                Field::AbsoluteLower(format) => relocation::with_lower(word, format, to.address) == word,
                Field::Lower(format) => match self.upper_of(pc) {
                    Some((upper, Field::Upper, of)) => {
                        relocation::with_lower(word, format, of.address.wrapping_sub(upper)) == word
                    }
                    Some((upper, _, of)) => {
                        let place = self.got_place(upper, pc, format);
                        self.place_of_data(place).is_some() && self.program_word(place) == Some(of.address)
                    }
                    None => false,
                },
            };
            if !good {
                return Err(wrong());
            }
        }
        Ok(())
    }

    /// Number of the section with contents, and the offset in it, of a word of data.
    pub fn place_of_data(&self, address: u32) -> Option<(usize, u32)> {
        let inside = |s: &Section| {
            let offset = address.checked_sub(s.address).filter(|_| s.contents && !s.executable)?;
            (offset.is_multiple_of(4) && offset.checked_add(4)? <= s.size).then_some(offset)
        };
        self.sections.iter().enumerate().find_map(|(number, section)| Some((number, inside(section)?)))
    }

    fn program_word(&self, address: u32) -> Option<u32> {
        let (number, offset) = self.place_of_data(address)?;
        let SectionData::Data(data) = &self.builder.sections.get(self.sections[number].id).data else { return None };
        let bytes = data.as_slice().get(offset as usize..offset as usize + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// What is reached can be laid out again.
    fn check_code(&self) -> Result<(), PredictError> {
        let mut named: BTreeSet<u32> = self.terms.iter().map(|(.., to)| to.address).collect();
        named.extend(
            self.fields.values().filter(|(field, _)| !matches!(field, Field::Lower(_))).map(|(_, to)| to.address),
        );
        for &pc in &self.reached {
            let instruction = self.instruction(pc);
            if !self.sections.iter().any(|s| s.executable && s.contents && s.address <= pc && pc - s.address < s.size) {
                return Err(PredictError::Relocation {
                    address: pc,
                    what: "is missing: no section has this code".into(),
                });
            }
            let missing = |what: &str| Err(PredictError::Relaxed { address: pc, what: what.into() });
            let has = self.fields.contains_key(&pc);
            match instruction.opcode() {
                0x63 if !has => return missing("a branch"),
                0x6f if !has => return missing("jal"),
                0x17 if !has => return missing("auipc"),
                _ => {}
            }
            // Where it leads is computed, not read from a table.
            let targets = self.analysis.branch(pc).filter(|_| instruction.flow() == Flow::IndirectJump);
            if let Some(target) = targets.into_iter().flat_map(|branch| &branch.next).find(|to| !named.contains(to)) {
                return Err(PredictError::Computed { pc, target: *target });
            }
        }
        Ok(())
    }
}

fn damaged(what: &str) -> PredictError {
    PredictError::File { what: what.into() }
}

/// Sections in memory that the pass takes.
const MOST_SECTIONS: usize = 1000;

/// The sections in memory. `length` of the file, `program_end` of what can be executed.
fn sections(builder: &Builder, length: u64, program_end: u32) -> Result<Vec<Section>, PredictError> {
    let bytes = |section: &object::build::elf::Section| match &section.data {
        SectionData::Data(data) => data.len() as u64,
        _ => 0,
    };
    if builder.sections.iter().map(bytes).sum::<u64>() > length {
        return Err(damaged("sections have more contents than the file"));
    }
    let loads: Vec<&Segment> = builder.segments.iter().filter(|s| s.p_type == PT_LOAD && s.p_memsz > 0).collect();
    let mut sections = Vec::new();
    for section in &builder.sections {
        if !section.sh_flags.contains(SHF_ALLOC) {
            continue;
        }
        let name = String::from_utf8_lossy(section.name.as_slice()).escape_debug().to_string();
        let refused = |what: &str| PredictError::File { what: format!("section {name} {what}") };
        let contents = match &section.data {
            SectionData::Data(_) => true,
            SectionData::UninitializedData(_) => false,
            _ => return Err(refused("is in memory, but is neither data nor code")),
        };
        let (address, size) = (section.sh_addr, section.sh_size);
        let executable = section.sh_flags.contains(SHF_EXECINSTR);
        let align = section.sh_addralign.max(1);
        if !align.is_power_of_two() || align > 1 << 20 || address % align != 0 {
            return Err(refused("has an address that its alignment does not allow"));
        }
        if executable && (!contents || address % 4 != 0 || size % 4 != 0) {
            return Err(refused("is executable, but its instructions are not whole words"));
        }
        let end = address.checked_add(size).filter(|&end| end <= u64::from(u32::MAX));
        let end = end.ok_or_else(|| refused("ends outside memory"))?;
        if executable && end > program_end.into() {
            return Err(refused("is executable, but not in the program"));
        }
        let inside = |s: &&&Segment| s.p_vaddr <= address && end <= s.p_vaddr.saturating_add(s.p_memsz);
        let Some(segment) = loads.iter().find(inside) else {
            if size == 0 {
                continue;
            }
            return Err(refused("is in no segment"));
        };
        sections.push(Section {
            id: section.id(),
            address: address as u32,
            size: size as u32,
            align: align as u32,
            executable,
            contents,
            segment: segment.id().index(),
        });
    }
    if sections.len() > MOST_SECTIONS {
        return Err(damaged(&format!("{} sections in memory, of which it takes {MOST_SECTIONS}", sections.len())));
    }
    sections.sort_by_key(|section| (section.address, section.size));
    for pair in sections.windows(2) {
        if pair[0].address + pair[0].size > pair[1].address {
            return Err(damaged(&format!("sections overlap at {:#010x}", pair[1].address)));
        }
    }
    for segment in loads.iter().filter(|s| s.p_vaddr < u64::from(SCRATCHPAD)) {
        let first = sections.iter().find(|section| section.segment == segment.id().index());
        if first.is_none_or(|section| u64::from(section.address) != segment.p_vaddr) {
            let at = segment.p_vaddr;
            return Err(damaged(&format!(
                "the segment at {at:#010x} does not begin with a section: link with heddle.ld"
            )));
        }
    }
    Ok(sections)
}

/// Whether a symbol stands for its section.
pub fn is_section(symbol: &Symbol) -> bool {
    symbol.st_type() == STT_SECTION
}

/// Whether a symbol is of another file.
pub fn is_undefined(symbol: &Symbol) -> bool {
    symbol.section.is_none() && symbol.st_shndx == SHN_UNDEF
}

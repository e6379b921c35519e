//! An assembled program as an ELF file with relocations. `heddle-check` has tests with this file, too.

use super::{Flow, Instruction, Program, Symbol};
use object::Endianness;
use object::build::elf::*;
use object::elf::*;

/// Branches and jumps, and pairs of `lui` and `addi` that make the address of a function `f0`, `f1`, …
pub fn elf(program: &Program) -> Vec<u8> {
    let [segment] = program.segments() else { panic!("an assembled program is one segment") };
    let word = |pc: u32| program.word(pc).unwrap();
    let is_function = |s: &&Symbol| s.name.strip_prefix('f').is_some_and(|n| n.parse::<u32>().is_ok());
    let functions: Vec<u32> = program.symbols().iter().filter(is_function).map(|s| s.address).collect();
    let mut relocations: Vec<(u32, RelocationType, u32)> = Vec::new();
    for pc in (0..segment.size).step_by(4) {
        let instruction = Instruction { pc, word: word(pc) };
        match instruction.flow() {
            Flow::Branch { target } => relocations.push((pc, R_RISCV_BRANCH, target)),
            Flow::Jump { target } | Flow::Call { target } => relocations.push((pc, R_RISCV_JAL, target)),
            _ if instruction.opcode() == 0x37 && pc + 4 < segment.size => {
                let next = Instruction { pc: pc + 4, word: word(pc + 4) };
                let value = (instruction.word & 0xffff_f000).wrapping_add(next.immediate());
                let adds =
                    next.word & 0x707f == 0x13 && (next.rd(), next.rs1()) == (instruction.rd(), instruction.rd());
                if adds && functions.contains(&value) {
                    relocations.extend([(pc, R_RISCV_HI20, value), (pc + 4, R_RISCV_LO12_I, value)]);
                }
            }
            _ => {}
        }
    }

    let mut builder = Builder::new(Endianness::Little, false);
    builder.header.e_type = ET_EXEC;
    builder.header.e_machine = EM_RISCV;
    builder.header.e_phoff = 52;
    let text = builder.sections.add();
    let id = text.id();
    text.name = b".text"[..].into();
    text.sh_type = SHT_PROGBITS;
    text.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    text.sh_addralign = 4;
    text.sh_offset = 0x100;
    text.sh_size = segment.size.into();
    text.data = SectionData::Data(segment.data.clone().into());
    let load = builder.segments.add();
    (load.p_type, load.p_flags, load.p_offset) = (PT_LOAD, PF_R | PF_X, 0x100);
    (load.p_filesz, load.p_memsz, load.p_align) = (segment.size.into(), segment.size.into(), 0x100);
    let symbol = builder.symbols.add();
    let text_symbol = symbol.id();
    symbol.section = Some(id);
    symbol.set_st_info(STB_LOCAL, STT_SECTION);
    let relocation = |(pc, kind, to): (u32, RelocationType, u32)| Relocation {
        r_offset: pc.into(),
        symbol: Some(text_symbol),
        r_type: kind,
        r_addend: to.into(),
    };
    let relocations = relocations.into_iter().map(relocation).collect();
    let mut table = |name: &'static [u8], kind, data| {
        let section = builder.sections.add();
        section.name = name.into();
        section.sh_type = kind;
        section.sh_addralign = 4;
        section.data = data;
        section.id()
    };
    let strings = table(b".strtab", SHT_STRTAB, SectionData::String);
    table(b".shstrtab", SHT_STRTAB, SectionData::SectionString);
    let symbols = table(b".symtab", SHT_SYMTAB, SectionData::Symbol);
    let rela = table(b".rela.text", SHT_RELA, SectionData::Relocation(relocations));
    builder.sections.get_mut(symbols).sh_link_section = Some(strings);
    let rela = builder.sections.get_mut(rela);
    (rela.sh_link_section, rela.sh_info_section, rela.sh_flags) = (Some(symbols), Some(id), SHF_INFO_LINK);
    let mut bytes = Vec::new();
    builder.write(&mut bytes).unwrap();
    bytes
}

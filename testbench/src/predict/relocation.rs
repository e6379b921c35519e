//! What relocations put where: the fields of instructions and of data.
//!
//! Names are those of the RISC-V ELF psABI. The linker has resolved them all; they say which fields hold an address, or
//! the difference of two, so that it can be put there anew.

use object::elf::{
    R_RISCV_32, R_RISCV_32_PCREL, R_RISCV_ADD8, R_RISCV_ADD16, R_RISCV_ADD32, R_RISCV_ADD64, R_RISCV_ALIGN,
    R_RISCV_BRANCH, R_RISCV_CALL, R_RISCV_CALL_PLT, R_RISCV_GOT_HI20, R_RISCV_GPREL_I, R_RISCV_GPREL_S, R_RISCV_HI20,
    R_RISCV_JAL, R_RISCV_LO12_I, R_RISCV_LO12_S, R_RISCV_NONE, R_RISCV_PCREL_HI20, R_RISCV_PCREL_LO12_I,
    R_RISCV_PCREL_LO12_S, R_RISCV_RELAX, R_RISCV_SET6, R_RISCV_SET8, R_RISCV_SET16, R_RISCV_SET32, R_RISCV_SUB6,
    R_RISCV_SUB8, R_RISCV_SUB16, R_RISCV_SUB32, R_RISCV_SUB64, RelocationType,
};

/// What a relocation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing that matters once the file is linked.
    Nothing,
    /// The field of an instruction.
    Instruction(Field),
    /// A term of a field of data.
    Data(Term),
    /// An offset from the global pointer.
    Gprel,
    /// Anything else.
    Unknown,
}

/// The field of an instruction that holds an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Offset of a branch.
    Branch,
    /// Offset of `jal`.
    Jal,
    /// `auipc` and the `jalr` behind it.
    Call,
    /// Of `auipc`: the upper part of an offset.
    Upper,
    /// Of `auipc`: the upper part of the offset of the address's place in the global offset table.
    UpperOfGot,
    /// The lower part of the offset of which the `auipc` at the address has the upper; format I or S.
    Lower(Format),
    /// Of `lui`: the upper part of an address.
    Absolute,
    /// The lower part of an address.
    AbsoluteLower(Format),
}

/// Where an instruction has its 12 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    I,
    S,
}

/// A term of a field of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Of the field.
    pub bits: u32,
    pub negative: bool,
    /// Less the address of the field.
    pub relative: bool,
}

impl Kind {
    pub fn of(kind: RelocationType) -> Kind {
        let data = |bits| Kind::Data(Term { bits, negative: false, relative: false });
        let less = |bits| Kind::Data(Term { bits, negative: true, relative: false });
        match kind {
            R_RISCV_NONE | R_RISCV_RELAX | R_RISCV_ALIGN => Kind::Nothing,
            R_RISCV_BRANCH => Kind::Instruction(Field::Branch),
            R_RISCV_JAL => Kind::Instruction(Field::Jal),
            R_RISCV_CALL | R_RISCV_CALL_PLT => Kind::Instruction(Field::Call),
            R_RISCV_PCREL_HI20 => Kind::Instruction(Field::Upper),
            R_RISCV_GOT_HI20 => Kind::Instruction(Field::UpperOfGot),
            R_RISCV_PCREL_LO12_I => Kind::Instruction(Field::Lower(Format::I)),
            R_RISCV_PCREL_LO12_S => Kind::Instruction(Field::Lower(Format::S)),
            R_RISCV_HI20 => Kind::Instruction(Field::Absolute),
            R_RISCV_LO12_I => Kind::Instruction(Field::AbsoluteLower(Format::I)),
            R_RISCV_LO12_S => Kind::Instruction(Field::AbsoluteLower(Format::S)),
            R_RISCV_SET6 => data(6),
            R_RISCV_ADD8 | R_RISCV_SET8 => data(8),
            R_RISCV_ADD16 | R_RISCV_SET16 => data(16),
            R_RISCV_32 | R_RISCV_ADD32 | R_RISCV_SET32 => data(32),
            R_RISCV_ADD64 => data(64),
            R_RISCV_SUB6 => less(6),
            R_RISCV_SUB8 => less(8),
            R_RISCV_SUB16 => less(16),
            R_RISCV_SUB32 => less(32),
            R_RISCV_SUB64 => less(64),
            R_RISCV_32_PCREL => Kind::Data(Term { bits: 32, negative: false, relative: true }),
            R_RISCV_GPREL_I | R_RISCV_GPREL_S => Kind::Gprel,
            _ => Kind::Unknown,
        }
    }
}

/// The instruction with another offset, if it can have it: a branch or `jal`.
pub fn with_offset(word: u32, offset: u32) -> Option<u32> {
    let reaches = |bits: u32| {
        let rest = offset as i32 >> (bits - 1);
        offset & 1 == 0 && (rest == 0 || rest == -1)
    };
    let bit = |n: u32, to: u32| (offset >> n & 1) << to;
    let bits = |low: u32, count: u32, to: u32| (offset >> low & ((1 << count) - 1)) << to;
    match word & 0x7f {
        0x63 => reaches(13).then(|| word & 0x01ff_f07f | bit(12, 31) | bits(5, 6, 25) | bits(1, 4, 8) | bit(11, 7)),
        0x6f => reaches(21).then(|| word & 0xfff | bit(20, 31) | bits(1, 10, 21) | bit(11, 20) | bits(12, 8, 12)),
        _ => None,
    }
}

/// `lui` or `auipc` with the upper part of a value.
pub fn with_upper(word: u32, value: u32) -> u32 {
    word & 0xfff | value.wrapping_add(0x800) & 0xffff_f000
}

/// The instruction with the lower part of a value.
pub fn with_lower(word: u32, format: Format, value: u32) -> u32 {
    match format {
        Format::I => word & 0x000f_ffff | value << 20,
        Format::S => word & 0x01ff_f07f | (value >> 5 & 127) << 25 | (value & 31) << 7,
    }
}

/// The upper part of an immediate, and the lower.
pub fn upper(word: u32) -> u32 {
    word & 0xffff_f000
}

/// As [`with_lower`] has put it there.
pub fn lower(word: u32, format: Format) -> u32 {
    match format {
        Format::I => (word as i32 >> 20) as u32,
        Format::S => (word as i32 >> 25 << 5) as u32 | word >> 7 & 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disassemble::{branch_offset, jump_offset};

    #[test]
    fn offsets_are_put_where_they_are_read() {
        for offset in [0u32, 2, 4, 0x7fe, 0x800, 0xffe, 0x1000u32.wrapping_neg(), 4u32.wrapping_neg()] {
            let word = with_offset(0x00b5_0063, offset).unwrap();
            assert_eq!((branch_offset(word), word & 0x01ff_f07f), (offset, 0x00b5_0063));
            let word = with_offset(0x0000_00ef, offset << 8).unwrap();
            assert_eq!((jump_offset(word), word & 0xfff), (offset << 8, 0xef));
        }
        assert_eq!(with_offset(0x63, 0x1000), None);
        assert_eq!(with_offset(0x63, 0x1002u32.wrapping_neg()), None);
        assert_eq!(with_offset(0x6f, 0x10_0000), None);
        assert_eq!(with_offset(0x6f, 3), None);
    }

    #[test]
    fn parts_add_up() {
        for value in [0u32, 1, 0x7ff, 0x800, 0xfff, 0x1234_5678, u32::MAX, 0x8000_0800] {
            for (format, word) in [(Format::I, 0x0005_2503), (Format::S, 0x00b5_2023)] {
                let low = lower(with_lower(word, format, value), format);
                assert_eq!(upper(with_upper(0x37, value)).wrapping_add(low), value);
            }
        }
    }
}

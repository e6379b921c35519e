//! A tiny assembler: instruction words from functions, labels for branches and jumps.

use std::collections::HashMap;

pub const ZERO: u32 = 0;
pub const RA: u32 = 1;
pub const A0: u32 = 10;
pub const A7: u32 = 17;

pub const MHARTID: u32 = 0xf14;
pub const LANE: u32 = 0xfc3;

pub fn r(funct7: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn i(imm: i32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    assert!((-2048..2048).contains(&imm), "{imm} does not fit");
    r(0, 0, rs1, funct3, rd, opcode) | (imm as u32) << 20
}

pub fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, 0, rd, 0x13)
}
pub fn slli(rd: u32, rs1: u32, by: u32) -> u32 {
    i(by as i32, rs1, 1, rd, 0x13)
}
pub fn andi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, 7, rd, 0x13)
}
pub fn sltiu(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, 3, rd, 0x13)
}
pub fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0, rs2, rs1, 0, rd, 0x33)
}
pub fn mul(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(1, rs2, rs1, 0, rd, 0x33)
}
pub fn divu(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(1, rs2, rs1, 5, rd, 0x33)
}
pub fn lui(rd: u32, upper: u32) -> u32 {
    upper << 12 | rd << 7 | 0x37
}
pub fn jalr(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, 0, rd, 0x67)
}
/// `funct3`: 0 byte, 1 half, 2 word, 4 and 5 unsigned.
pub fn load(funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, funct3, rd, 0x03)
}
pub fn store(funct3: u32, rs2: u32, rs1: u32, imm: i32) -> u32 {
    let imm = imm as u32 & 0xfff;
    r(imm >> 5, rs2, rs1, funct3, imm & 31, 0x23)
}
pub fn lw(rd: u32, rs1: u32, imm: i32) -> u32 {
    load(2, rd, rs1, imm)
}
pub fn sw(rs2: u32, rs1: u32, imm: i32) -> u32 {
    store(2, rs2, rs1, imm)
}
/// Reads a CSR.
pub fn csrr(rd: u32, csr: u32) -> u32 {
    csr << 20 | 2 << 12 | rd << 7 | 0x73
}
pub const ECALL: u32 = 0x73;
pub const EBREAK: u32 = 0x0010_0073;
pub const NOP: u32 = 0x13;

pub const BEQ: u32 = 0;
pub const BNE: u32 = 1;
pub const BLT: u32 = 4;

/// A program under construction, from address 0.
#[derive(Default)]
pub struct Asm {
    words: Vec<u32>,
    labels: HashMap<String, usize>,
    /// Instructions whose offset is not known yet.
    holes: Vec<(usize, String)>,
}

impl Asm {
    /// Appends instructions.
    pub fn put(mut self, words: impl IntoIterator<Item = u32>) -> Asm {
        self.words.extend(words);
        self
    }

    pub fn label(mut self, name: &str) -> Asm {
        self.labels.insert(name.to_string(), self.words.len());
        self
    }

    pub fn branch(mut self, condition: u32, rs1: u32, rs2: u32, to: &str) -> Asm {
        self.holes.push((self.words.len(), to.to_string()));
        self.words.push(r(0, rs2, rs1, condition, 0, 0x63));
        self
    }

    pub fn jal(mut self, rd: u32, to: &str) -> Asm {
        self.holes.push((self.words.len(), to.to_string()));
        self.words.push(rd << 7 | 0x6f);
        self
    }

    /// `rd` = the address of a label, which must be below 2048.
    pub fn la(mut self, rd: u32, of: &str) -> Asm {
        self.holes.push((self.words.len(), of.to_string()));
        self.words.push(addi(rd, ZERO, 0));
        self
    }

    /// Ends the thread with the code in a0.
    pub fn exit(self) -> Asm {
        self.put([addi(A7, ZERO, 93), ECALL])
    }

    /// Instruction number of a label.
    pub fn at(&self, label: &str) -> u64 {
        self.labels[label] as u64
    }

    /// The instruction words.
    pub fn words(&self) -> Vec<u32> {
        let mut words = self.words.clone();
        for (at, label) in &self.holes {
            let at = *at;
            let target = self.labels[label] as u32 * 4;
            let offset = target.wrapping_sub(at as u32 * 4);
            let bit = |n: u32, to: u32| (offset >> n & 1) << to;
            let bits = |low: u32, count: u32, to: u32| (offset >> low & ((1 << count) - 1)) << to;
            words[at] |= match words[at] & 0x7f {
                0x63 => bit(12, 31) | bits(5, 6, 25) | bits(1, 4, 8) | bit(11, 7),
                0x6f => bit(20, 31) | bits(1, 10, 21) | bit(11, 20) | bits(12, 8, 12),
                _ => target << 20,
            };
        }
        words
    }
}

//! What the analysis wants to know of an instruction: where it leads, which registers it reads and writes.

use crate::disassemble::{branch_offset, is_instruction, jump_offset};

/// One word of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Byte address.
    pub pc: u32,
    /// The word there.
    pub word: u32,
}

/// Where an instruction leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To pc + 4 alone.
    Next,
    /// Conditional.
    Branch {
        /// Where it goes, taken.
        target: u32,
    },
    /// `jal` without a link register.
    Jump {
        /// Where it goes.
        target: u32,
    },
    /// `jal` with one: the call depth grows.
    Call {
        /// The function.
        target: u32,
    },
    /// `jalr` without a link register.
    IndirectJump,
    /// `jalr` into a link register: the call depth grows.
    IndirectCall,
    /// `jalr` to a link register: the call depth shrinks.
    Return,
    /// `jalr` to one link register and into the other: the call depth stays, so the activation ends and another begins.
    Exchange,
    /// `ecall`, and what stops the core.
    End,
}

/// The registers that hold return addresses.
fn is_link(register: u8) -> bool {
    register == 1 || register == 5
}

impl Instruction {
    /// Bits 6..0.
    pub fn opcode(self) -> u32 {
        self.word & 0x7f
    }

    /// Bits 14..12.
    pub fn funct3(self) -> u32 {
        self.word >> 12 & 7
    }

    /// The register that is written, in formats that have one.
    pub fn rd(self) -> u8 {
        (self.word >> 7 & 31) as u8
    }

    /// The first register that is read, in formats that have one.
    pub fn rs1(self) -> u8 {
        (self.word >> 15 & 31) as u8
    }

    /// The second one.
    pub fn rs2(self) -> u8 {
        (self.word >> 20 & 31) as u8
    }

    /// Of format I.
    pub fn immediate(self) -> u32 {
        (self.word as i32 >> 20) as u32
    }

    /// Of format S.
    pub fn store_offset(self) -> u32 {
        (self.word as i32 >> 25 << 5) as u32 | self.word >> 7 & 31
    }

    /// Bytes that a load, store or atomic operation accesses.
    pub fn bytes(self) -> u32 {
        1 << (self.funct3() & 3)
    }

    /// Where it leads.
    pub fn flow(self) -> Flow {
        if !is_instruction(self.word) {
            return Flow::End;
        }
        match self.opcode() {
            0x63 => Flow::Branch { target: self.pc.wrapping_add(branch_offset(self.word)) },
            0x6f => {
                let target = self.pc.wrapping_add(jump_offset(self.word));
                if is_link(self.rd()) { Flow::Call { target } } else { Flow::Jump { target } }
            }
            0x67 => match (is_link(self.rd()), is_link(self.rs1())) {
                (true, true) if self.rd() != self.rs1() => Flow::Exchange,
                (true, _) => Flow::IndirectCall,
                (false, true) => Flow::Return,
                (false, false) => Flow::IndirectJump,
            },
            // A fence, a barrier or the reading of a CSR goes on; `ecall`, `ebreak` and `unimp` do not.
            0x73 if matches!(self.funct3(), 0 | 1 | 5) => Flow::End,
            _ => Flow::Next,
        }
    }

    /// The register written, 1 to 31.
    pub fn writes(self) -> Option<u8> {
        let writes =
            matches!(self.opcode(), 0x37 | 0x17 | 0x6f | 0x67 | 0x03 | 0x13 | 0x33 | 0x2f | 0x73 | 0x0b | 0x2b);
        (writes && self.rd() != 0).then_some(self.rd())
    }

    /// The registers read, x0 among them.
    pub fn reads(self) -> impl Iterator<Item = u8> {
        let first = matches!(self.opcode(), 0x67 | 0x63 | 0x03 | 0x23 | 0x13 | 0x33 | 0x2f | 0x2b);
        let second = matches!(self.opcode(), 0x63 | 0x23 | 0x33 | 0x2f | 0x2b);
        first.then(|| self.rs1()).into_iter().chain(second.then(|| self.rs2()))
    }
}

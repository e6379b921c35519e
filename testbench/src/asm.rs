//! A tiny assembler for tests: instruction words from functions, labels for branches and jumps.
//!
//! Registers are numbers. Programs in C, and in assembly for people, are GNU's business (`programs/build.sh`); this one
//! is for programs that a test makes up while it runs, where no cross compiler need be installed.

use crate::program::Program;
use heddle_simt::isa::{HintKind, Shuffle, Vote, convergence, reservation, warp};
use std::collections::BTreeMap;

/// Register x0.
pub const ZERO: u32 = 0;
/// Register x1, the return address.
pub const RA: u32 = 1;
/// Register x10, the exit code.
pub const A0: u32 = 10;
/// Register x17, which call an `ecall` is.
pub const A7: u32 = 17;

/// CSR: number of the thread.
pub const MHARTID: u32 = 0xf14;
/// CSR: number of the thread's block.
pub const BLOCK: u32 = 0xfc4;
/// CSR: number of the thread in its block.
pub const THREAD_IN_BLOCK: u32 = 0xfc5;
/// CSR: threads of a block.
pub const BLOCK_THREADS: u32 = 0xfca;
/// CSR: lane of the thread.
pub const LANE: u32 = 0xfc3;

/// An instruction of format R.
pub fn r(funct7: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn i(imm: i32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    assert!((-2048..2048).contains(&imm), "{imm} does not fit");
    r(0, 0, rs1, funct3, rd, opcode) | (imm as u32) << 20
}

/// rd = rs1 + imm.
pub fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, 0, rd, 0x13)
}
/// rd = rs1 << by.
pub fn slli(rd: u32, rs1: u32, by: u32) -> u32 {
    i(by as i32, rs1, 1, rd, 0x13)
}
/// rd = rs1 & imm.
pub fn andi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, 7, rd, 0x13)
}
/// rd = rs1 < imm, unsigned.
pub fn sltiu(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, 3, rd, 0x13)
}
/// rd = rs1 + rs2.
pub fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0, rs2, rs1, 0, rd, 0x33)
}
/// rd = rs1 * rs2.
pub fn mul(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(1, rs2, rs1, 0, rd, 0x33)
}
/// rd = rs1 / rs2, unsigned.
pub fn divu(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(1, rs2, rs1, 5, rd, 0x33)
}
/// rd = upper << 12.
pub fn lui(rd: u32, upper: u32) -> u32 {
    upper << 12 | rd << 7 | 0x37
}
/// rd = any value, in two instructions.
pub fn li(rd: u32, value: u32) -> [u32; 2] {
    [lui(rd, value.wrapping_add(0x800) >> 12), addi(rd, rd, (value << 20) as i32 >> 20)]
}
/// rd = pc + 4; to rs1 + imm.
pub fn jalr(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, 0, rd, 0x67)
}
/// A load. `funct3`: 0 byte, 1 half, 2 word, 4 and 5 the first two unsigned.
pub fn load(funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    i(imm, rs1, funct3, rd, 0x03)
}
/// A store. `funct3`: 0 byte, 1 half, 2 word.
pub fn store(funct3: u32, rs2: u32, rs1: u32, imm: i32) -> u32 {
    let imm = imm as u32 & 0xfff;
    r(imm >> 5, rs2, rs1, funct3, imm & 31, 0x23)
}
/// rd = the word at rs1 + imm.
pub fn lw(rd: u32, rs1: u32, imm: i32) -> u32 {
    load(2, rd, rs1, imm)
}
/// the word at rs1 + imm = rs2.
pub fn sw(rs2: u32, rs1: u32, imm: i32) -> u32 {
    store(2, rs2, rs1, imm)
}
/// rd = the word at rs1, which is reserved.
pub fn lr(rd: u32, rs1: u32) -> u32 {
    amo(reservation::LOAD_RESERVED, rd, 0, rs1)
}

/// The word at rs1 becomes rs2 if it is reserved, and rd 0; else rd is 1.
pub fn sc(rd: u32, rs2: u32, rs1: u32) -> u32 {
    amo(reservation::STORE_CONDITIONAL, rd, rs2, rs1)
}

/// rd = the word at rs1, which becomes the result of an atomic operation on it and rs2. `funct5`: an
/// [`Atomic`](heddle_simt::isa::Atomic).
pub fn amo(funct5: u32, rd: u32, rs2: u32, rs1: u32) -> u32 {
    r(funct5 << 2, rs2, rs1, 2, rd, 0x2f)
}
/// Reads a CSR.
pub fn csrr(rd: u32, csr: u32) -> u32 {
    csr << 20 | 2 << 12 | rd << 7 | 0x73
}
/// Ends the thread if a7 is 93.
pub const ECALL: u32 = 0x73;
/// Stops the core.
pub const EBREAK: u32 = 0x0010_0073;
/// Waits for all live threads of the block.
pub const BARRIER: u32 = 0x0b;
/// The threads enter convergence barrier `b`.
pub fn join(b: u32) -> u32 {
    convergence(HintKind::Join, b, 0, 0)
}
/// The threads wait at convergence barrier `b` until at least `threshold` wait, if it is not 0, or all that
/// participate.
pub fn wait(b: u32, threshold: u32) -> u32 {
    convergence(HintKind::Wait, b, threshold, 0)
}
/// The threads leave convergence barrier `b`.
pub fn cancel(b: u32) -> u32 {
    convergence(HintKind::Cancel, b, 0, 0)
}
/// rd = how many threads participate in convergence barrier `b`.
pub fn count(rd: u32, b: u32) -> u32 {
    convergence(HintKind::Count, b, 0, rd)
}
/// Those that participate in convergence barrier `c`, and those that wait at `b`, participate in `b`.
pub fn copy(b: u32, c: u32) -> u32 {
    convergence(HintKind::Copy, b, c, 0)
}
/// As [`copy`]; in `c` those are left that wait there.
pub fn move_(b: u32, c: u32) -> u32 {
    convergence(HintKind::Move, b, c, 0)
}

fn convergence(kind: HintKind, b: u32, other: u32, rd: u32) -> u32 {
    let most = if kind == HintKind::Wait { convergence::MOST_THRESHOLD } else { convergence::BARRIERS - 1 };
    assert!(b < convergence::BARRIERS && other <= most, "no barrier {b}, or no {other}");
    i(other as i32, b, kind as u32, rd, 0x0b)
}
/// A vote: rd = what the threads say by whether rs1 is 0.
pub fn vote(function: Vote, rd: u32, rs1: u32) -> u32 {
    r(function as u32, 0, rs1, warp::VOTE, rd, warp::OPCODE)
}
/// A shuffle: rd = rs1 of the lane that rs2 names.
pub fn shuffle(function: Shuffle, rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(function as u32, rs2, rs1, warp::SHUFFLE, rd, warp::OPCODE)
}
/// Waits at convergence barrier `b` for the threads that rs1 (lanes 0 to 31) and rs2 name.
pub fn sync(b: u32, rs1: u32, rs2: u32) -> u32 {
    r(b, rs2, rs1, warp::SYNC, 0, warp::OPCODE)
}
/// addi x0, x0, 0.
pub const NOP: u32 = 0x13;

/// Condition of a branch: rs1 = rs2.
pub const BEQ: u32 = 0;
/// Condition of a branch: rs1 ≠ rs2.
pub const BNE: u32 = 1;
/// Condition of a branch: rs1 < rs2, signed.
pub const BLT: u32 = 4;
/// Condition of a branch: rs1 < rs2, unsigned.
pub const BLTU: u32 = 6;

/// A program under construction, from address 0.
#[derive(Default)]
pub struct Asm {
    words: Vec<u32>,
    labels: BTreeMap<String, usize>,
    /// Instructions whose offset is not known yet.
    holes: Vec<(usize, String)>,
}

impl Asm {
    /// Appends instructions.
    pub fn put(mut self, words: impl IntoIterator<Item = u32>) -> Asm {
        self.words.extend(words);
        self
    }

    /// Names the place.
    pub fn label(mut self, name: &str) -> Asm {
        self.labels.insert(name.to_string(), self.words.len());
        self
    }

    /// A branch; `condition` is its funct3.
    pub fn branch(mut self, condition: u32, rs1: u32, rs2: u32, to: &str) -> Asm {
        self.holes.push((self.words.len(), to.to_string()));
        self.words.push(r(0, rs2, rs1, condition, 0, 0x63));
        self
    }

    /// rd = pc + 4; to the label.
    pub fn jal(mut self, rd: u32, to: &str) -> Asm {
        self.holes.push((self.words.len(), to.to_string()));
        self.words.push(rd << 7 | 0x6f);
        self
    }

    /// `rd` = the address of a label, in two instructions.
    pub fn la(mut self, rd: u32, of: &str) -> Asm {
        self.holes.push((self.words.len(), of.to_string()));
        self.words.extend([lui(rd, 0), addi(rd, rd, 0)]);
        self
    }

    /// Ends the thread with the code in a0.
    pub fn exit(self) -> Asm {
        self.put([addi(A7, ZERO, 93), ECALL])
    }

    /// Number of the next instruction.
    pub fn here(&self) -> usize {
        self.words.len()
    }

    /// Instruction number of a label.
    pub fn at(&self, label: &str) -> u64 {
        self.labels[label] as u64
    }

    /// The program, with the labels as its symbols.
    pub fn program(&self) -> Program {
        Program::assembled(&self.words(), self.labels.iter().map(|(name, &at)| (name.as_str(), 4 * at as u32)))
    }

    /// The instruction words.
    ///
    /// # Panics
    /// If a label is not there, or too far for the instruction that names it.
    pub fn words(&self) -> Vec<u32> {
        let mut words = self.words.clone();
        for (at, label) in &self.holes {
            let at = *at;
            let target = self.labels[label] as u32 * 4;
            let offset = target.wrapping_sub(at as u32 * 4);
            let reaches = |bits: u32| {
                let far = offset as i32 >> (bits - 1);
                assert!(far == 0 || far == -1, "{label} is too far from instruction {at}");
            };
            let bit = |n: u32, to: u32| (offset >> n & 1) << to;
            let bits = |low: u32, count: u32, to: u32| (offset >> low & ((1 << count) - 1)) << to;
            words[at] |= match words[at] & 0x7f {
                0x63 => {
                    reaches(13);
                    bit(12, 31) | bits(5, 6, 25) | bits(1, 4, 8) | bit(11, 7)
                }
                0x6f => {
                    reaches(21);
                    bit(20, 31) | bits(1, 10, 21) | bit(11, 20) | bits(12, 8, 12)
                }
                _ => {
                    words[at + 1] |= target << 20;
                    target.wrapping_add(0x800) & !0xfff
                }
            };
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disassemble;
    use heddle_hdl::Code;
    use heddle_simt::isa::Atomic;

    #[test]
    fn labels_are_reached_both_ways() {
        let far = |a: Asm, n| a.put(std::iter::repeat_n(NOP, n));
        let a = far(Asm::default().label("a").branch(BNE, A0, ZERO, "b").jal(RA, "b").la(A7, "b"), 1000);
        let a = a.label("b").branch(BEQ, A0, RA, "a").jal(ZERO, "a").la(A0, "a");
        let text = |at: u64| disassemble(a.words()[at as usize], 4 * at as u32);
        let b = a.at("b");
        let shown = [0, 1, 2, 3, b, b + 1, b + 2, b + 3].map(text);
        let want = [
            "bnez a0,0xfb0",
            "jal 0xfb0",
            "lui a7,0x1",
            "addi a7,a7,-80",
            "beq a0,ra,0x0",
            "j 0x0",
            "lui a0,0x0",
            "mv a0,a0",
        ];
        assert_eq!(shown, want);
    }

    #[test]
    fn atomics_have_their_names() {
        for &operation in Atomic::ALL {
            assert_eq!(disassemble(amo(operation as u32, 10, 11, 12), 0), format!("{} a0,a1,(a2)", operation.name()));
        }
        for (word, text) in [(lr(10, 12), "lr.w a0,(a2)"), (sc(10, 11, 12), "sc.w a0,a1,(a2)")] {
            assert_eq!(disassemble(word, 0), text);
        }
        assert_eq!(disassemble(BARRIER, 0), "barrier");
    }

    #[test]
    fn convergence_barriers_have_their_names() {
        let words =
            [join(0), wait(3, 0), wait(15, 1), wait(15, 64), cancel(9), count(A0, 2), copy(1, 15), move_(15, 0)];
        let texts = words.map(|word| disassemble(word, 0));
        let want = [
            "join b0",
            "wait b3",
            "wait b15,1",
            "wait b15,64",
            "cancel b9",
            "count a0,b2",
            "copy b1,b15",
            "move b15,b0",
        ];
        assert_eq!(texts, want);
    }

    #[test]
    #[should_panic(expected = "no barrier 3, or no 65")]
    fn a_threshold_over_the_most_is_refused() {
        wait(3, 65);
    }

    #[test]
    #[should_panic(expected = "b is too far from instruction 0")]
    fn a_branch_that_cannot_reach_is_refused() {
        Asm::default().branch(BEQ, A0, RA, "b").put([NOP; 1023]).put([NOP]).label("b").words();
    }
}

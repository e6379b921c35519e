//! An instruction word as what it does, found once a program: with which operation, on which registers, with which
//! immediate.

use super::arithmetic::{atomic, immediate_b, immediate_j, immediate_s, multiply_or_divide};
use heddle_simt::Shape;
use heddle_simt::csr::{self, Source};
use heddle_simt::isa::reservation::{LOAD_RESERVED, STORE_CONDITIONAL};

/// An instruction and its registers, whether it uses them or not.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub word: u32,
    pub rd: u8,
    pub rs1: u8,
    pub rs2: u8,
    pub kind: Kind,
}

/// What an instruction does. Operations are on the values of `rs1` and `rs2`, or of `rs1` and an immediate.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Compute(fn(u32, u32) -> u32),
    ComputeImmediate(fn(u32, u32) -> u32, u32),
    AddToPc(u32),
    Jump(u32),
    JumpRegister(u32),
    Branch(fn(u32, u32) -> bool, u32),
    Load {
        bytes: u32,
        extend: fn(u32) -> u32,
        offset: u32,
    },
    Store {
        bytes: u32,
        offset: u32,
    },
    LoadReserved,
    StoreConditional,
    /// Bits 31..27 of the instruction.
    Atomic(u32),
    Barrier,
    /// A hint, which does nothing.
    Nothing,
    /// How many participate in a convergence barrier.
    Count,
    Vote(u32),
    Shuffle(u32),
    Ecall,
    Breakpoint,
    Csr(Source),
    Illegal,
}

impl Instruction {
    /// On a core of this shape.
    pub fn decode(word: u32, shape: &Shape) -> Instruction {
        let register = |low: u32| (word >> low & 31) as u8;
        let kind = kind(word, shape).unwrap_or(Kind::Illegal);
        Instruction { word, rd: register(7), rs1: register(15), rs2: register(20), kind }
    }
}

fn kind(word: u32, shape: &Shape) -> Option<Kind> {
    let (funct3, funct7) = (word >> 12 & 7, word >> 25);
    let (rd, rs1, rs2) = (word >> 7 & 31, word >> 15 & 31, word >> 20 & 31);
    let immediate_i = (word as i32 >> 20) as u32;
    Some(match word & 0x7f {
        0x37 => Kind::ComputeImmediate(|_, immediate| immediate, word & 0xffff_f000),
        0x17 => Kind::AddToPc(word & 0xffff_f000),
        0x6f => Kind::Jump(immediate_j(word)),
        0x67 if funct3 == 0 => Kind::JumpRegister(immediate_i),
        0x63 => Kind::Branch(condition(funct3)?, immediate_b(word)),
        0x03 => {
            let (bytes, extend): (u32, fn(u32) -> u32) = match funct3 {
                0 => (1, |value| value as u8 as i8 as u32),
                1 => (2, |value| value as u16 as i16 as u32),
                2 => (4, |value| value),
                4 => (1, |value| value),
                5 => (2, |value| value),
                _ => return None,
            };
            Kind::Load { bytes, extend, offset: immediate_i }
        }
        0x23 if funct3 <= 2 => Kind::Store { bytes: 1 << funct3, offset: immediate_s(word) },
        // The bits aq and rl ask for an order that accesses have anyway.
        0x2f if funct3 == 2 => match word >> 27 {
            LOAD_RESERVED if shape.reservations && rs2 == 0 => Kind::LoadReserved,
            STORE_CONDITIONAL if shape.reservations => Kind::StoreConditional,
            funct5 if shape.atomics && atomic(funct5, 0, 0).is_some() => Kind::Atomic(funct5),
            _ => return None,
        },
        0x0b if word == 0x0000_000b && shape.barriers => Kind::Barrier,
        // Convergence barriers are hints, which decide nothing but when threads run. How many participate depends on
        // that.
        0x0b if is_convergence(word) => {
            if funct3 == 4 {
                Kind::Count
            } else {
                Kind::Nothing
            }
        }
        0x2b if shape.warp_primitives => match (funct3, funct7) {
            (0, 0..4) if rs2 == 0 => Kind::Vote(funct7),
            (1, 0..4) => Kind::Shuffle(funct7),
            (7, 0..16) if rd == 0 => Kind::Nothing,
            _ => return None,
        },
        0x13 => match (funct3, funct7) {
            (1, 0) | (5, 0 | 0x20) => Kind::ComputeImmediate(operation(funct7, funct3)?, rs2),
            (1 | 5, _) => return None,
            _ => Kind::ComputeImmediate(operation(0, funct3)?, immediate_i),
        },
        0x33 if funct7 == 1 && shape.multiply => Kind::Compute(multiplication(funct3)),
        0x33 => Kind::Compute(operation(funct7, funct3)?),
        // `fence`: a thread's own accesses are in order already. `fence.i`: no program changes.
        0x0f if funct3 <= 1 => Kind::Nothing,
        0x73 if word == 0x0000_0073 => Kind::Ecall,
        0x73 if word == 0x0010_0073 => Kind::Breakpoint,
        0x73 if matches!(funct3, 2 | 3 | 6 | 7) && rs1 == 0 => {
            let csr = csr::map(shape.counters).find(|csr| u32::from(csr.address) == word >> 20)?;
            Kind::Csr(csr.source)
        }
        _ => return None,
    })
}

/// When a branch is taken.
fn condition(funct3: u32) -> Option<fn(u32, u32) -> bool> {
    Some(match funct3 {
        0 => |a, b| a == b,
        1 => |a, b| a != b,
        4 => |a, b| (a as i32) < b as i32,
        5 => |a, b| a as i32 >= b as i32,
        6 => |a, b| a < b,
        7 => |a, b| a >= b,
        _ => return None,
    })
}

/// An operation of RV32I.
fn operation(funct7: u32, funct3: u32) -> Option<fn(u32, u32) -> u32> {
    Some(match (funct7, funct3) {
        (0, 0) => u32::wrapping_add,
        (0x20, 0) => u32::wrapping_sub,
        (0, 1) => |a, b| a << (b & 31),
        (0, 2) => |a, b| ((a as i32) < b as i32) as u32,
        (0, 3) => |a, b| (a < b) as u32,
        (0, 4) => |a, b| a ^ b,
        (0, 5) => |a, b| a >> (b & 31),
        (0x20, 5) => |a, b| (a as i32 >> (b & 31)) as u32,
        (0, 6) => |a, b| a | b,
        (0, 7) => |a, b| a & b,
        _ => return None,
    })
}

/// An operation of RV32M.
fn multiplication(funct3: u32) -> fn(u32, u32) -> u32 {
    match funct3 {
        0 => |a, b| multiply_or_divide(0, a, b),
        1 => |a, b| multiply_or_divide(1, a, b),
        2 => |a, b| multiply_or_divide(2, a, b),
        3 => |a, b| multiply_or_divide(3, a, b),
        4 => |a, b| multiply_or_divide(4, a, b),
        5 => |a, b| multiply_or_divide(5, a, b),
        6 => |a, b| multiply_or_divide(6, a, b),
        _ => |a, b| multiply_or_divide(7, a, b),
    }
}

/// Whether the word is an instruction of convergence barriers.
fn is_convergence(word: u32) -> bool {
    let (rd, b, immediate) = (word >> 7 & 31, word >> 15 & 31, word >> 20);
    let most = match word >> 12 & 7 {
        1 | 3 | 4 => 0,
        2 => 64,
        5 | 6 => 15,
        _ => return false,
    };
    b < 16 && immediate <= most && (rd == 0 || word >> 12 & 7 == 4)
}

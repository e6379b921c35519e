//! What an instruction does. Nothing is changed here.

use heddle_simt::{
    csr::{self, Source},
    isa::{
        atomic::SWAP,
        reservation::{LOAD_RESERVED, STORE_CONDITIONAL},
    },
};

use super::arithmetic::{immediate_b, immediate_j, immediate_s, multiply_or_divide};
use super::{Access, Cause, EXIT, Given, Hart, Iss, Operation, Step, atomic};

/// The fields of a word, and what its thread has in the registers that they name.
struct Instruction {
    word: u32,
    funct3: u32,
    funct7: u32,
    rd: u8,
    rs1: u8,
    rs2: u8,
    a: u32,
    b: u32,
    /// Of the I-type.
    immediate: u32,
}

impl Instruction {
    fn of(word: u32, hart: &Hart) -> Instruction {
        let register = |low: u32| (word >> low & 31) as u8;
        let (rd, rs1, rs2) = (register(7), register(15), register(20));
        Instruction {
            word,
            funct3: word >> 12 & 7,
            funct7: word >> 25,
            rd,
            rs1,
            rs2,
            a: hart.register(rs1),
            b: hart.register(rs2),
            immediate: (word as i32 >> 20) as u32,
        }
    }

    /// Bits 31..27.
    fn funct5(&self) -> u32 {
        self.word >> 27
    }

    /// Whether a branch is taken.
    fn is_taken(&self) -> Option<bool> {
        let (a, b) = (self.a, self.b);
        Some(match self.funct3 {
            0 => a == b,
            1 => a != b,
            4 => (a as i32) < b as i32,
            5 => a as i32 >= b as i32,
            6 => a < b,
            7 => a >= b,
            _ => return None,
        })
    }

    /// What an operation with an immediate gives.
    fn with_immediate(&self) -> Option<u32> {
        let &Instruction { a, rs2, immediate, .. } = self;
        Some(match (self.funct3, self.funct7) {
            (0, _) => a.wrapping_add(immediate),
            (1, 0) => a << rs2,
            (2, _) => ((a as i32) < immediate as i32) as u32,
            (3, _) => (a < immediate) as u32,
            (4, _) => a ^ immediate,
            (5, 0) => a >> rs2,
            (5, 0x20) => (a as i32 >> rs2) as u32,
            (6, _) => a | immediate,
            (7, _) => a & immediate,
            _ => return None,
        })
    }

    /// What an operation on two registers gives; `multiply` says that there is RV32M.
    fn of_registers(&self, multiply: bool) -> Option<u32> {
        let &Instruction { a, b, funct3, .. } = self;
        Some(match (self.funct7, funct3) {
            (0, 0) => a.wrapping_add(b),
            (0x20, 0) => a.wrapping_sub(b),
            (0, 1) => a << (b & 31),
            (0, 2) => ((a as i32) < b as i32) as u32,
            (0, 3) => (a < b) as u32,
            (0, 4) => a ^ b,
            (0, 5) => a >> (b & 31),
            (0x20, 5) => (a as i32 >> (b & 31)) as u32,
            (0, 6) => a | b,
            (0, 7) => a & b,
            (1, _) if multiply => multiply_or_divide(funct3, a, b),
            _ => return None,
        })
    }
}

/// What an access does, and the value for rd.
struct Accessed {
    access: Access,
    result: Option<u32>,
    /// Whether an `sc.w` succeeded.
    conditional: Option<bool>,
}

impl Iss {
    /// What the next instruction of a hart's thread does, and the pc after it. Changes nothing. An `sc.w` fails without
    /// a reservation, and if it is told to.
    pub(super) fn execute(&self, number: u32, given: Given) -> Result<(Step, u32), Cause> {
        let hart = &self.harts[number as usize];
        let pc = hart.pc;
        let word = *self.instructions.get(pc as usize / 4).ok_or(Cause::FetchOutside)?;
        let illegal = Cause::Illegal(word);
        let i = Instruction::of(word, hart);
        let &Instruction { funct3, rd, rs1, .. } = &i;
        let immediate_u = word & 0xffff_f000;

        let mut step =
            Step { pc, word, rd: None, access: None, counter: false, conditional: None, exit: None, barrier: false };
        let mut next = pc.wrapping_add(4);
        let mut result = None;
        match word & 0x7f {
            0x37 => result = Some(immediate_u),
            0x17 => result = Some(pc.wrapping_add(immediate_u)),
            0x6f => {
                result = Some(next);
                next = aligned_target(pc.wrapping_add(immediate_j(word)))?;
            }
            0x67 if funct3 == 0 => {
                result = Some(next);
                next = aligned_target(i.a.wrapping_add(i.immediate) & !1)?;
            }
            0x63 => {
                if i.is_taken().ok_or(illegal)? {
                    next = aligned_target(pc.wrapping_add(immediate_b(word)))?;
                }
            }
            0x03 | 0x23 | 0x2f => {
                let accessed = self.access(hart, &i, given.fails)?;
                step.access = Some(accessed.access);
                step.conditional = accessed.conditional;
                result = accessed.result;
            }
            0x0b if word == 0x0000_000b && self.shape.barriers => step.barrier = true,
            // Convergence barriers are hints, which decide nothing but when threads run. How many participate depends
            // on that.
            0x0b if is_convergence(word) => {
                step.counter = funct3 == 4;
                result = Some(0).filter(|_| step.counter);
            }
            0x2b if self.shape.warp_primitives => result = self.with_others(number, &i, given.together)?,
            0x13 => result = Some(i.with_immediate().ok_or(illegal)?),
            0x33 => result = Some(i.of_registers(self.shape.multiply).ok_or(illegal)?),
            // `fence`: a thread's own accesses are in order already. `fence.i`: no program changes.
            0x0f if funct3 <= 1 => {}
            0x73 if word == 0x0000_0073 => match hart.register(17) {
                EXIT => step.exit = Some(hart.register(10)),
                other => return Err(Cause::Ecall(other)),
            },
            0x73 if word == 0x0010_0073 => return Err(Cause::Breakpoint),
            0x73 if matches!(funct3, 2 | 3 | 6 | 7) && rs1 == 0 => {
                let csr = csr::map(self.shape.counters).find(|csr| u32::from(csr.address) == word >> 20);
                let source = csr.ok_or(illegal)?.source;
                step.counter = source.counts();
                result = Some(self.csr(source, hart));
            }
            _ => return Err(illegal),
        }
        step.rd = result.filter(|_| rd != 0).map(|value| (rd, value));
        Ok((step, next))
    }

    /// A load, a store or an atomic operation.
    fn access(&self, hart: &Hart, i: &Instruction, fails: bool) -> Result<Accessed, Cause> {
        match i.word & 0x7f {
            0x03 => self.load(hart, i),
            0x23 => self.store(hart, i),
            _ if i.funct3 == 2 => self.atomic(hart, i, fails),
            _ => Err(Cause::Illegal(i.word)),
        }
    }

    fn load(&self, hart: &Hart, i: &Instruction) -> Result<Accessed, Cause> {
        let bytes = match i.funct3 {
            0 | 4 => 1,
            1 | 5 => 2,
            2 => 4,
            _ => return Err(Cause::Illegal(i.word)),
        };
        let address = i.a.wrapping_add(i.immediate);
        let place = self.memory.load_place(hart, address, bytes)?;
        let value = self.memory.read(place, bytes);
        let result = match i.funct3 {
            0 => value as u8 as i8 as u32,
            1 => value as u16 as i16 as u32,
            _ => value,
        };
        let access = Access { operation: Operation::Load, address, place, bytes, value };
        Ok(Accessed { access, result: Some(result), conditional: None })
    }

    fn store(&self, hart: &Hart, i: &Instruction) -> Result<Accessed, Cause> {
        let (bytes, value) = match i.funct3 {
            0 => (1, i.b & 0xff),
            1 => (2, i.b & 0xffff),
            2 => (4, i.b),
            _ => return Err(Cause::Illegal(i.word)),
        };
        let address = i.a.wrapping_add(immediate_s(i.word));
        let place = self.memory.store_place(hart, address, bytes)?;
        let access = Access { operation: Operation::Store, address, place, bytes, value };
        Ok(Accessed { access, result: None, conditional: None })
    }

    /// The bits aq and rl ask for an order that accesses have anyway.
    fn atomic(&self, hart: &Hart, i: &Instruction, fails: bool) -> Result<Accessed, Cause> {
        let &Instruction { a: address, b, .. } = i;
        let access = |operation, place, value| Access { operation, address, place, bytes: 4, value };
        match i.funct5() {
            LOAD_RESERVED if self.shape.reservations && i.rs2 == 0 => {
                let place = self.memory.load_place(hart, address, 4)?;
                let value = self.memory.read(place, 4);
                let access = access(Operation::Load, place, value);
                Ok(Accessed { access, result: Some(value), conditional: None })
            }
            STORE_CONDITIONAL if self.shape.reservations => {
                let place = self.memory.store_place(hart, address, 4)?;
                let succeeds = !fails && self.reserved(hart.number) == Some(place);
                let old = self.memory.read(place, 4);
                let operation = if succeeds { Operation::Atomic { funct5: SWAP, old } } else { Operation::Failed };
                let result = Some(u32::from(!succeeds));
                Ok(Accessed { access: access(operation, place, b), result, conditional: Some(succeeds) })
            }
            funct5 if self.shape.atomics && atomic(funct5, 0, 0).is_some() => {
                let place = self.memory.store_place(hart, address, 4)?;
                let old = self.memory.read(place, 4);
                let access = access(Operation::Atomic { funct5, old }, place, b);
                Ok(Accessed { access, result: Some(old), conditional: None })
            }
            _ => Err(Cause::Illegal(i.word)),
        }
    }

    /// A vote, a shuffle or a `sync` of a hart with those that execute it together.
    fn with_others(&self, number: u32, i: &Instruction, together: &[(u32, u32)]) -> Result<Option<u32>, Cause> {
        let lane = number % self.shape.lanes;
        let alone = [(lane, i.a)];
        let together = if together.is_empty() { &alone } else { together };
        match (i.funct3, i.funct7) {
            (0, 0..4) if i.rs2 == 0 => Ok(Some(vote(i.funct7, together))),
            (1, 0..4) => Ok(Some(shuffle(i.funct7, lane, i.b, together).unwrap_or(i.a))),
            (7, 0..16) if i.rd == 0 => Ok(None),
            _ => Err(Cause::Illegal(i.word)),
        }
    }

    fn csr(&self, source: Source, hart: &Hart) -> u32 {
        match source {
            Source::Thread => hart.number,
            Source::Warp => hart.number / self.shape.lanes,
            Source::Lane => hart.number % self.shape.lanes,
            Source::Block => hart.thread.block,
            Source::ThreadInBlock => hart.thread.thread,
            Source::Blocks => self.grid.blocks,
            Source::BlockThreads => self.grid.threads,
            Source::Lanes => self.shape.lanes,
            Source::Warps => self.shape.warps,
            Source::Threads => self.shape.threads(),
            Source::MemoryBytes => self.shape.memory,
            Source::Log2StackBytes => self.shape.stack.ilog2(),
            Source::CycleLow | Source::InstructionsLow => self.executed as u32,
            Source::CycleHigh | Source::InstructionsHigh => (self.executed >> 32) as u32,
        }
    }
}

/// What lanes get from a vote: which of them, of 0 to 31 or from 32 on, do not have 0; whether any; whether all.
fn vote(function: u32, together: &[(u32, u32)]) -> u32 {
    let ballot = together.iter().filter(|(_, value)| *value != 0).fold(0u64, |ballot, (lane, _)| ballot | 1 << lane);
    match function {
        0 => ballot as u32,
        1 => (ballot >> 32) as u32,
        2 => u32::from(ballot != 0),
        _ => u32::from(together.iter().all(|(_, value)| *value != 0)),
    }
}

/// What a lane gets from the one that it asks for, if that is there.
fn shuffle(function: u32, lane: u32, asked: u32, together: &[(u32, u32)]) -> Option<u32> {
    let source = match function {
        0 => Some(asked),
        1 => Some(lane ^ asked),
        2 => lane.checked_sub(asked),
        _ => lane.checked_add(asked),
    };
    together.iter().find(|(lane, _)| Some(*lane) == source).map(|&(_, value)| value)
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

fn aligned_target(target: u32) -> Result<u32, Cause> {
    if target.is_multiple_of(4) { Ok(target) } else { Err(Cause::MisalignedJump(target)) }
}

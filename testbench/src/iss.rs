//! An instruction-set simulator of RV32IM + Zicsr: each thread for itself, one instruction a step, straight from the manual.
//!
//! It is the reference that the core is compared with, so it shares nothing with it but the CSR map. It knows no cycles:
//! counters read the number of instructions executed so far, and a comparison puts the core's value in their place with
//! [`Hart::set_register`]. A launch runs thread after thread; programs whose threads race within a launch are not for it.
//!
//! `tests/qemu.rs` compares it with QEMU.

use heddle_simt::{
    Shape,
    csr::{self, Source},
};
use thiserror::Error;

use crate::{
    kernels::{Device, DeviceError},
    program::{Program, ProgramError},
};

/// `a7` of the `ecall` that ends a thread.
pub const EXIT: u32 = 93;

/// Why an instruction cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Cause {
    /// A taken branch or jump to an address that is not a multiple of 4; the fault is the branch's.
    #[error("jump to misaligned address {0:#010x}")]
    MisalignedJump(u32),
    /// The pc is outside program memory.
    #[error("instruction fetch outside program memory")]
    FetchOutside,
    /// Not an instruction of the core; also an unknown CSR, and any write to one.
    #[error("illegal instruction {0:#010x}")]
    Illegal(u32),
    /// `ebreak`.
    #[error("ebreak")]
    Breakpoint,
    /// An `ecall` other than exit, with its `a7`.
    #[error("ecall with a7 = {0}, not {EXIT}")]
    Ecall(u32),
    /// A load whose address is not a multiple of its size.
    #[error("misaligned load from {0:#010x}")]
    MisalignedLoad(u32),
    /// A load outside memory.
    #[error("load outside memory, from {0:#010x}")]
    LoadOutside(u32),
    /// A store whose address is not a multiple of its size.
    #[error("misaligned store to {0:#010x}")]
    MisalignedStore(u32),
    /// A store outside memory.
    #[error("store outside memory, to {0:#010x}")]
    StoreOutside(u32),
    /// A store below the end of the program.
    #[error("store into the program, to {0:#010x}")]
    StoreToProgram(u32),
}

/// An instruction that stopped the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("thread {thread} at pc {pc:#010x}: {cause}")]
pub struct Fault {
    /// What is wrong.
    pub cause: Cause,
    /// Address of the instruction.
    pub pc: u32,
    /// The thread that executed it.
    pub thread: u32,
}

/// Why a launch did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// An instruction stopped the machine.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A thread ended with a code that is not 0.
    #[error("thread {thread} ended with exit code {code}")]
    Exit {
        /// The first such thread.
        thread: u32,
        /// Its `a0`.
        code: u32,
    },
    /// The launch took more instructions than [`Iss::set_limit`] allows.
    #[error("still running after {limit} instructions: thread {thread} at pc {pc:#010x}")]
    Limit {
        /// Instructions allowed.
        limit: u64,
        /// The thread that was running.
        thread: u32,
        /// Its pc.
        pc: u32,
    },
}

/// A load or store as it was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether memory was written.
    pub store: bool,
    /// First byte.
    pub address: u32,
    /// Size, 1, 2 or 4.
    pub bytes: u32,
    /// The bytes read or written, zero-extended.
    pub value: u32,
}

/// What one instruction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Address of the instruction.
    pub pc: u32,
    /// The instruction.
    pub word: u32,
    /// The register written, 1 to 31, and its value.
    pub rd: Option<(u8, u32)>,
    /// The memory access, if there was one.
    pub access: Option<Access>,
    /// Whether the value of `rd` is a cycle or instruction counter, which another machine counts differently.
    pub counter: bool,
    /// The exit code, if the thread ended here.
    pub exit: Option<u32>,
}

/// The state of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hart {
    pc: u32,
    registers: [u32; 32],
    exit: Option<u32>,
}

impl Hart {
    /// Registers start with a value that no program expects, as nothing but pc is defined at the start.
    fn new(entry: u32) -> Hart {
        let mut registers = [0xdead_beef; 32];
        registers[0] = 0;
        Hart { pc: entry, registers, exit: None }
    }

    /// Address of the next instruction.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Goes on elsewhere.
    pub fn set_pc(&mut self, pc: u32) {
        self.pc = pc;
    }

    /// The exit code, once the thread has ended.
    pub fn exit(&self) -> Option<u32> {
        self.exit
    }

    /// Value of register x0 to x31.
    pub fn register(&self, number: u8) -> u32 {
        self.registers[number as usize]
    }

    /// Replaces the value of register x1 to x31; x0 stays 0.
    pub fn set_register(&mut self, number: u8, value: u32) {
        if number != 0 {
            self.registers[number as usize] = value;
        }
    }
}

/// A machine with a program: all threads and their memory.
#[derive(Clone, Debug)]
pub struct Iss {
    program: Program,
    shape: Shape,
    instructions: Vec<u32>,
    memory: Vec<u8>,
    harts: Vec<Hart>,
    executed: u64,
    executed_before: u64,
    limit: u64,
}

impl Iss {
    /// A machine with the program loaded, ready for the first launch. Fails if the program does not fit the shape.
    pub fn new(program: &Program, shape: &Shape) -> Result<Iss, ProgramError> {
        Ok(Iss {
            instructions: program.instruction_image(shape)?,
            memory: program.memory_image(shape)?,
            harts: vec![Hart::new(program.entry()); shape.threads() as usize],
            program: program.clone(),
            shape: shape.clone(),
            executed: 0,
            executed_before: 0,
            limit: 1 << 32,
        })
    }

    /// Instructions that one launch may take; 2^32 unless set.
    pub fn set_limit(&mut self, instructions: u64) {
        self.limit = instructions;
    }

    /// Puts every thread at the entry point. Memory stays.
    pub fn restart(&mut self) {
        self.harts.fill(Hart::new(self.program.entry()));
        self.executed_before += self.executed;
        self.executed = 0;
    }

    /// Instructions executed by all threads in all launches.
    pub fn executed(&self) -> u64 {
        self.executed_before + self.executed
    }

    /// A thread's state.
    pub fn hart(&self, thread: u32) -> &Hart {
        &self.harts[thread as usize]
    }

    /// A thread's state, to change.
    pub fn hart_mut(&mut self, thread: u32) -> &mut Hart {
        &mut self.harts[thread as usize]
    }

    /// All of memory.
    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// Carries out one instruction of one thread, which must not have ended. After a fault the thread is as it was before.
    pub fn step(&mut self, thread: u32) -> Result<Step, Fault> {
        let hart = &self.harts[thread as usize];
        assert!(hart.exit.is_none(), "thread {thread} has ended");
        let pc = hart.pc;
        let (step, next) = self.execute(thread).map_err(|cause| Fault { cause, pc, thread })?;

        if let Some(Access { store: true, address, bytes, value }) = step.access {
            let start = address as usize;
            self.memory[start..start + bytes as usize].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        }
        let hart = &mut self.harts[thread as usize];
        if let Some((number, value)) = step.rd {
            hart.set_register(number, value);
        }
        hart.pc = next;
        hart.exit = step.exit;
        self.executed += 1;
        Ok(step)
    }

    /// What the thread's next instruction does, and the pc after it. Changes nothing.
    fn execute(&self, thread: u32) -> Result<(Step, u32), Cause> {
        let hart = &self.harts[thread as usize];
        let pc = hart.pc;
        let word = *self.instructions.get(pc as usize / 4).ok_or(Cause::FetchOutside)?;
        let illegal = Err(Cause::Illegal(word));

        let funct3 = word >> 12 & 7;
        let funct7 = word >> 25;
        let rd = (word >> 7 & 31) as u8;
        let rs1 = (word >> 15 & 31) as u8;
        let rs2 = (word >> 20 & 31) as u8;
        let a = hart.register(rs1);
        let b = hart.register(rs2);
        let immediate_i = (word as i32 >> 20) as u32;
        let immediate_u = word & 0xffff_f000;

        let mut step = Step { pc, word, rd: None, access: None, counter: false, exit: None };
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
                next = aligned_target(a.wrapping_add(immediate_i) & !1)?;
            }
            0x63 => {
                let taken = match funct3 {
                    0 => a == b,
                    1 => a != b,
                    4 => (a as i32) < b as i32,
                    5 => a as i32 >= b as i32,
                    6 => a < b,
                    7 => a >= b,
                    _ => return illegal,
                };
                if taken {
                    next = aligned_target(pc.wrapping_add(immediate_b(word)))?;
                }
            }
            0x03 => {
                let bytes = match funct3 {
                    0 | 4 => 1,
                    1 | 5 => 2,
                    2 => 4,
                    _ => return illegal,
                };
                let address = a.wrapping_add(immediate_i);
                let value = self.load(address, bytes)?;
                result = Some(match funct3 {
                    0 => value as u8 as i8 as u32,
                    1 => value as u16 as i16 as u32,
                    _ => value,
                });
                step.access = Some(Access { store: false, address, bytes, value });
            }
            0x23 => {
                let (bytes, value) = match funct3 {
                    0 => (1, b & 0xff),
                    1 => (2, b & 0xffff),
                    2 => (4, b),
                    _ => return illegal,
                };
                let address = a.wrapping_add(immediate_s(word));
                self.check_store(address, bytes)?;
                step.access = Some(Access { store: true, address, bytes, value });
            }
            0x13 => {
                result = Some(match (funct3, funct7) {
                    (0, _) => a.wrapping_add(immediate_i),
                    (1, 0) => a << rs2,
                    (2, _) => ((a as i32) < immediate_i as i32) as u32,
                    (3, _) => (a < immediate_i) as u32,
                    (4, _) => a ^ immediate_i,
                    (5, 0) => a >> rs2,
                    (5, 0x20) => (a as i32 >> rs2) as u32,
                    (6, _) => a | immediate_i,
                    (7, _) => a & immediate_i,
                    _ => return illegal,
                });
            }
            0x33 => {
                result = Some(match (funct7, funct3) {
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
                    (1, _) if self.shape.multiply => multiply_or_divide(funct3, a, b),
                    _ => return illegal,
                });
            }
            // `fence`: a thread's own accesses are in order already. `fence.i`: no program changes.
            0x0f if funct3 <= 1 => {}
            0x73 if word == 0x0000_0073 => match hart.register(17) {
                EXIT => step.exit = Some(hart.register(10)),
                other => return Err(Cause::Ecall(other)),
            },
            0x73 if word == 0x0010_0073 => return Err(Cause::Breakpoint),
            0x73 if matches!(funct3, 2 | 3 | 6 | 7) && rs1 == 0 => {
                let Some(csr) = csr::find((word >> 20) as u16) else {
                    return illegal;
                };
                step.counter = is_counter(csr.source);
                result = Some(self.csr(csr.source, thread));
            }
            _ => return illegal,
        }
        step.rd = result.filter(|_| rd != 0).map(|value| (rd, value));
        Ok((step, next))
    }

    fn load(&self, address: u32, bytes: u32) -> Result<u32, Cause> {
        if !address.is_multiple_of(bytes) {
            return Err(Cause::MisalignedLoad(address));
        }
        let start = address as usize;
        let slice = self.memory.get(start..start + bytes as usize);
        let slice = slice.ok_or(Cause::LoadOutside(address))?;
        Ok(slice.iter().rev().fold(0, |v, &byte| v << 8 | byte as u32))
    }

    fn check_store(&self, address: u32, bytes: u32) -> Result<(), Cause> {
        if !address.is_multiple_of(bytes) {
            Err(Cause::MisalignedStore(address))
        } else if address < self.program.program_end() {
            Err(Cause::StoreToProgram(address))
        } else if address >= self.shape.memory {
            Err(Cause::StoreOutside(address))
        } else {
            Ok(())
        }
    }

    fn csr(&self, source: Source, thread: u32) -> u32 {
        match source {
            Source::Thread | Source::ThreadInBlock => thread,
            Source::Warp => thread / self.shape.lanes,
            Source::Lane => thread % self.shape.lanes,
            Source::Block => 0,
            Source::Lanes => self.shape.lanes,
            Source::Warps => self.shape.warps,
            Source::Threads => self.shape.threads(),
            Source::MemoryBytes => self.shape.memory,
            Source::Log2StackBytes => self.shape.stack.ilog2(),
            Source::CycleLow | Source::InstructionsLow => self.executed as u32,
            Source::CycleHigh | Source::InstructionsHigh => (self.executed >> 32) as u32,
        }
    }

    /// Runs every thread from the entry point to its end.
    pub fn run(&mut self) -> Result<(), LaunchError> {
        self.restart();
        for thread in 0..self.shape.threads() {
            while self.hart(thread).exit.is_none() {
                if self.executed >= self.limit {
                    return Err(LaunchError::Limit { limit: self.limit, thread, pc: self.hart(thread).pc });
                }
                self.step(thread)?;
            }
        }
        let codes = self.harts.iter().map(|hart| hart.exit.unwrap_or(0));
        match (0..).zip(codes).find(|(_, code)| *code != 0) {
            Some((thread, code)) => Err(LaunchError::Exit { thread, code }),
            None => Ok(()),
        }
    }
}

impl Device for Iss {
    fn program(&self) -> &Program {
        &self.program
    }

    fn threads(&self) -> u32 {
        self.shape.threads()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        let start = address as usize;
        let memory = self.memory.get_mut(start..start + bytes.len());
        memory.ok_or("write outside memory")?.copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        let start = address as usize;
        let memory = self.memory.get(start..start + length);
        Ok(memory.ok_or("read outside memory")?.to_vec())
    }

    fn launch(&mut self) -> Result<(), DeviceError> {
        Ok(self.run()?)
    }
}

fn is_counter(source: Source) -> bool {
    matches!(source, Source::CycleLow | Source::CycleHigh | Source::InstructionsLow | Source::InstructionsHigh)
}

fn aligned_target(target: u32) -> Result<u32, Cause> {
    if target.is_multiple_of(4) { Ok(target) } else { Err(Cause::MisalignedJump(target)) }
}

fn multiply_or_divide(funct3: u32, a: u32, b: u32) -> u32 {
    let (signed_a, signed_b) = (a as i32, b as i32);
    match funct3 {
        0 => a.wrapping_mul(b),
        1 => ((signed_a as i64 * signed_b as i64) >> 32) as u32,
        2 => ((signed_a as i64 * b as i64) >> 32) as u32,
        3 => ((a as u64 * b as u64) >> 32) as u32,
        4 if b == 0 => u32::MAX,
        4 => signed_a.wrapping_div(signed_b) as u32,
        5 => a.checked_div(b).unwrap_or(u32::MAX),
        6 if b == 0 => a,
        6 => signed_a.wrapping_rem(signed_b) as u32,
        _ => a.checked_rem(b).unwrap_or(a),
    }
}

/// Bits `high..=low` of a word, moved to the bottom.
fn bits(word: u32, high: u32, low: u32) -> u32 {
    word >> low & ((1 << (high - low + 1)) - 1)
}

/// A value of `width` bits, sign-extended.
fn sign_extend(value: u32, width: u32) -> u32 {
    ((value << (32 - width)) as i32 >> (32 - width)) as u32
}

fn immediate_s(word: u32) -> u32 {
    sign_extend(bits(word, 31, 25) << 5 | bits(word, 11, 7), 12)
}

fn immediate_b(word: u32) -> u32 {
    let high = bits(word, 31, 31) << 12 | bits(word, 7, 7) << 11;
    sign_extend(high | bits(word, 30, 25) << 5 | bits(word, 11, 8) << 1, 13)
}

fn immediate_j(word: u32) -> u32 {
    let high = bits(word, 31, 31) << 20 | bits(word, 19, 12) << 12;
    sign_extend(high | bits(word, 20, 20) << 11 | bits(word, 30, 21) << 1, 21)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm;

    const VECADD: &[u8] = include_bytes!("../programs/elf/vecadd.elf");

    /// A machine of one thread that runs the given words in place of vecadd's.
    fn machine(words: &[u32]) -> Iss {
        let program = Program::parse(VECADD).unwrap();
        let mut iss = Iss::new(&program, &Shape::new(1, 1)).unwrap();
        iss.instructions[..words.len()].copy_from_slice(words);
        iss
    }

    /// The cause that a single instruction stops with, when every register but x0 holds `value`.
    fn cause(word: u32, value: u32) -> Option<Cause> {
        let mut iss = machine(&[word]);
        iss.harts[0].registers[1..].fill(value);
        iss.step(0).err().map(|fault| fault.cause)
    }

    #[test]
    fn faults_have_causes() {
        let cases = [
            (0x0000_0000, 0, Cause::Illegal(0)),
            (0x0010_0073, 0, Cause::Breakpoint),
            (0x0000_0073, 64, Cause::Ecall(64)),
            (0x3020_0073, 0, Cause::Illegal(0x3020_0073)),        // mret
            (0x0000_200f, 0, Cause::Illegal(0x0000_200f)),        // a fence of another kind
            (0x3000_2573, 0, Cause::Illegal(0x3000_2573)),        // csrr a0,mstatus
            (0xf140_1073, 0, Cause::Illegal(0xf140_1073)),        // csrw mhartid,zero
            (0xf140_a573, 0, Cause::Illegal(0xf140_a573)),        // csrrs a0,mhartid,ra
            (0xf140_d573, 0, Cause::Illegal(0xf140_d573)),        // csrrwi a0,mhartid,1
            (0x0020_006f, 0, Cause::MisalignedJump(2)),           // j 2
            (0x0000_8067, 6, Cause::MisalignedJump(6)),           // ret
            (0x0020_2503, 0, Cause::MisalignedLoad(2)),           // lw a0,2(zero)
            (0x0000_9503, 0xffff, Cause::MisalignedLoad(0xffff)), // lh a0,0(ra)
            (0x0000_a503, 0x8000_0000, Cause::LoadOutside(0x8000_0000)), // lw a0,0(ra)
            (0x0000_a023, 0x10001, Cause::MisalignedStore(0x10001)), // sw zero,0(ra)
            (0x0000_8023, 0xffff_ffff, Cause::StoreOutside(0xffff_ffff)), // sb zero,0(ra)
            (0x0000_2023, 0, Cause::StoreToProgram(0)),           // sw zero,0(zero)
        ];
        for (word, value, expected) in cases {
            assert_eq!(cause(word, value), Some(expected), "{word:#010x}");
        }
    }

    #[test]
    fn reads_of_csrs_and_fences_are_fine() {
        // csrr a0,mhartid; csrrsi a0,mhartid,0; csrrc a0,cycle,zero; fence; fence.tso; fence.i
        for word in [0xf140_2573, 0xf140_6573, 0xc000_3573, 0x0ff0_000f, 0x8330_000f, 0x0000_100f] {
            assert_eq!(cause(word, 0), None, "{word:#010x}");
        }
    }

    #[test]
    fn a_fetch_outside_program_memory_is_the_targets_fault() {
        // lui ra,0x80000; ret
        let mut iss = machine(&[0x8000_00b7, 0x0000_8067]);
        iss.step(0).unwrap();
        iss.step(0).unwrap();
        let fault = iss.step(0).unwrap_err();
        assert_eq!((fault.cause, fault.pc), (Cause::FetchOutside, 0x8000_0000));
        assert_eq!(fault.to_string(), "thread 0 at pc 0x80000000: instruction fetch outside program memory");
    }

    #[test]
    fn division_follows_the_manual_at_its_edges() {
        let least = i32::MIN as u32;
        assert_eq!(multiply_or_divide(4, 7, 0), u32::MAX);
        assert_eq!(multiply_or_divide(5, 7, 0), u32::MAX);
        assert_eq!(multiply_or_divide(6, 7, 0), 7);
        assert_eq!(multiply_or_divide(7, 7, 0), 7);
        assert_eq!(multiply_or_divide(4, least, u32::MAX), least);
        assert_eq!(multiply_or_divide(6, least, u32::MAX), 0);
        assert_eq!(multiply_or_divide(4, -7i32 as u32, 2), -3i32 as u32);
        assert_eq!(multiply_or_divide(6, -7i32 as u32, 2), -1i32 as u32);
    }

    /// x3 after one instruction, with x1 and x2 given.
    fn x3(word: u32, x1: u32, x2: u32) -> u32 {
        let mut iss = machine(&[word]);
        iss.hart_mut(0).set_register(1, x1);
        iss.hart_mut(0).set_register(2, x2);
        iss.step(0).unwrap();
        iss.hart(0).register(3)
    }

    #[test]
    fn shifts_take_five_bits_of_the_amount() {
        let [sll, srl, sra] = [(0, 1), (0, 5), (0x20, 5)].map(|(funct7, funct3)| asm::r(funct7, 2, 1, funct3, 3, 0x33));
        for (amount, left, right, signed) in [
            (0, 0x8000_0001, 0x8000_0001, 0x8000_0001),
            (1, 2, 0x4000_0000, 0xc000_0000),
            (31, 0x8000_0000, 1, u32::MAX),
            (32, 0x8000_0001, 0x8000_0001, 0x8000_0001),
            (33, 2, 0x4000_0000, 0xc000_0000),
            (u32::MAX, 0x8000_0000, 1, u32::MAX),
        ] {
            assert_eq!([sll, srl, sra].map(|word| x3(word, 0x8000_0001, amount)), [left, right, signed], "{amount}");
        }
        let immediate = |funct7, funct3, by| x3(asm::r(funct7, by, 1, funct3, 3, 0x13), 0x8000_0001, 0);
        assert_eq!([immediate(0, 1, 31), immediate(0, 5, 31), immediate(0x20, 5, 31)], [0x8000_0000, 1, u32::MAX]);
        assert_eq!([immediate(0, 1, 0), immediate(0, 5, 0), immediate(0x20, 5, 0)], [0x8000_0001; 3]);
        assert_eq!(x3(asm::r(0x20, 31, 1, 5, 3, 0x13), 0x7fff_ffff, 0), 0, "srai of a positive number");
    }

    /// slt, sltu, slti, sltiu and all branches on pairs whose order depends on the sign.
    #[test]
    fn compares_are_signed_or_not() {
        let least = i32::MIN as u32;
        // Operands, signed less, unsigned less.
        for (a, b, signed, unsigned) in [
            (0, 0, false, false),
            (least, least, false, false),
            (0, u32::MAX, false, true),
            (u32::MAX, 0, true, false),
            (least, 0x7fff_ffff, true, false),
            (0x7fff_ffff, least, false, true),
            (u32::MAX - 1, u32::MAX, true, true),
        ] {
            let compare = |funct3| x3(asm::r(0, 2, 1, funct3, 3, 0x33), a, b) == 1;
            assert_eq!([compare(2), compare(3)], [signed, unsigned], "{a:#x} {b:#x}");
            let taken = |funct3| {
                let mut iss = machine(&[asm::r(0, 2, 1, funct3, 8, 0x63)]); // over one instruction
                iss.hart_mut(0).set_register(1, a);
                iss.hart_mut(0).set_register(2, b);
                iss.step(0).unwrap();
                iss.hart(0).pc() == 8
            };
            assert_eq!([0, 1].map(taken), [a == b, a != b], "{a:#x} {b:#x}");
            assert_eq!([4, 5, 6, 7].map(taken), [signed, !signed, unsigned, !unsigned], "{a:#x} {b:#x}");
        }
        let [slti, sltiu] = [2, 3].map(|funct3| asm::addi(3, 1, -1) | funct3 << 12);
        assert_eq!([x3(slti, 0, 0), x3(slti, least, 0), x3(sltiu, 0, 0), x3(sltiu, u32::MAX, 0)], [0, 1, 1, 0]);
    }

    #[test]
    fn immediates_are_sign_extended_at_their_extremes() {
        for (imm, value) in [(-2048, 0xffff_f800), (2047, 0x7ff), (-1, u32::MAX)] {
            assert_eq!(x3(asm::addi(3, 0, imm), 0, 0), value);
            let [xori, ori, andi] = [4, 6, 7].map(|funct3| asm::addi(3, 1, imm) | funct3 << 12);
            assert_eq!([x3(xori, 0, 0), x3(ori, 0, 0), x3(andi, u32::MAX, 0)], [value; 3]);
            // The base is far enough from both ends of memory.
            let base = 0x2_0000u32;
            let address = base.wrapping_add(value) & !3;
            for word in [asm::load(0, 3, 1, imm), asm::store(0, 3, 1, imm)] {
                let mut iss = machine(&[word]);
                iss.hart_mut(0).set_register(1, base);
                assert_eq!(iss.step(0).unwrap().access.unwrap().address & !3, address, "{word:#010x}");
            }
        }
        assert_eq!([x3(asm::lui(3, 0xfffff), 0, 0), x3(asm::lui(3, 0x7ffff), 0, 0)], [0xffff_f000, 0x7fff_f000]);
        let mut iss = machine(&[asm::NOP, asm::lui(3, 0xfffff) & !0x7f | 0x17]); // auipc
        iss.step(0).unwrap();
        assert_eq!(iss.step(0).unwrap().rd, Some((3, 0xffff_f004)));
    }

    /// Branches reach from -4096 to 4094 bytes, jal from -1048576 to 1048574, each multiple of 2 by its own bit.
    #[test]
    fn offsets_of_jumps_reach_their_extremes() {
        // The target of a taken branch or jump at address 0, whether it can be fetched or not.
        let target = |word: u32| {
            let mut iss = machine(&[word]);
            match iss.step(0) {
                Err(Fault { cause: Cause::MisalignedJump(to), .. }) => to,
                stepped => stepped.map(|_| iss.hart(0).pc()).unwrap(),
            }
        };
        let beq = |bits: u32| target(bits | 0x63);
        assert_eq!(beq(0x8000_0000), -4096i32 as u32);
        assert_eq!(beq(0x7e00_0f80), 4094);
        assert_eq!(beq(0xfe00_0f80), -2i32 as u32);
        let places = [(8, 2), (9, 4), (10, 8), (11, 16), (25, 32), (28, 256), (30, 1024), (7, 2048)];
        places.into_iter().for_each(|(bit, offset)| assert_eq!(beq(1 << bit), offset, "bit {bit}"));
        let jal = |bits: u32| target(bits | 0x6f);
        assert_eq!(jal(0x8000_0000), -0x10_0000i32 as u32);
        assert_eq!(jal(0x7fff_f000), 0xf_fffe);
        assert_eq!(jal(0xffff_f000), -2i32 as u32);
        let places = [(21, 2), (22, 4), (30, 1024), (20, 2048), (12, 4096), (19, 0x8_0000)];
        places.into_iter().for_each(|(bit, offset)| assert_eq!(jal(1 << bit), offset, "bit {bit}"));
    }

    #[test]
    fn jalr_clears_the_lowest_bit_and_may_use_its_base_as_link() {
        for (base, imm, to) in [(0x101, 0, 0x100), (0x100, 1, 0x100), (0x101, -1, 0x100), (0x103, 1, 0x104), (1, -1, 0)]
        {
            let mut iss = machine(&[asm::jalr(1, 1, imm)]);
            iss.hart_mut(0).set_register(1, base);
            assert_eq!(iss.step(0).unwrap().rd, Some((1, 4)));
            assert_eq!(iss.hart(0).pc(), to, "{base:#x} {imm}");
        }
        assert_eq!(cause(asm::jalr(1, 1, -1), 0x104), Some(Cause::MisalignedJump(0x102)));
    }

    /// Each size at each offset; what is misaligned changes nothing.
    #[test]
    fn accesses_are_aligned_to_their_size() {
        let base = 0x2_0000;
        for (funct3, bytes) in [(0, 1), (1, 2), (2, 4), (4, 1), (5, 2)] {
            for offset in 0..8 {
                let address = base + offset;
                let aligned = offset % bytes == 0;
                let want = (!aligned).then_some(Cause::MisalignedLoad(address));
                assert_eq!(cause(asm::load(funct3, 3, 1, offset as i32), base), want, "load {funct3} at {address:#x}");
                if funct3 < 4 {
                    let mut iss = machine(&[asm::store(funct3, 2, 1, 0)]);
                    iss.hart_mut(0).set_register(1, address);
                    iss.hart_mut(0).set_register(2, u32::MAX);
                    let stored = iss.step(0).map_err(|fault| fault.cause);
                    assert_eq!(stored.err(), (!aligned).then_some(Cause::MisalignedStore(address)));
                    let ones = iss.memory()[base as usize..base as usize + 12].iter().filter(|&&b| b == 0xff).count();
                    assert_eq!(ones, if aligned { bytes as usize } else { 0 });
                }
            }
        }
    }

    #[test]
    fn loads_extend_as_they_say() {
        let word = 0x80ff_7f81u32;
        for (funct3, offset, value) in [
            (0, 0, 0xffff_ff81),
            (0, 1, 0x7f),
            (0, 2, u32::MAX),
            (4, 0, 0x81),
            (4, 2, 0xff),
            (1, 0, 0x7f81),
            (1, 2, 0xffff_80ff),
            (5, 2, 0x80ff),
            (2, 0, word),
        ] {
            let mut iss = machine(&[asm::load(funct3, 3, 1, offset)]);
            iss.write(0x2_0000, &word.to_le_bytes()).unwrap();
            iss.hart_mut(0).set_register(1, 0x2_0000);
            assert_eq!(iss.step(0).unwrap().rd, Some((3, value)), "{funct3} {offset}");
        }
    }

    #[test]
    fn high_products_respect_signs() {
        let minus_one = u32::MAX;
        assert_eq!(multiply_or_divide(1, minus_one, minus_one), 0);
        assert_eq!(multiply_or_divide(2, minus_one, minus_one), minus_one);
        assert_eq!(multiply_or_divide(3, minus_one, minus_one), minus_one - 1);
        let least = i32::MIN as u32;
        assert_eq!([1, 2, 3].map(|funct3| multiply_or_divide(funct3, least, least)), [1 << 30, 0xc000_0000, 1 << 30]);
        assert_eq!([1, 2, 3].map(|funct3| multiply_or_divide(funct3, 1, minus_one)), [minus_one, 0, 0]);
        assert_eq!([1, 2, 3].map(|funct3| multiply_or_divide(funct3, minus_one, 1)), [minus_one, minus_one, 0]);
    }

    #[test]
    fn steps_say_what_happened() {
        // lui ra,0x10; sb ra,1(ra); lbu a0,1(ra); csrr a1,cycle
        let mut iss = machine(&[0x0001_00b7, 0x0010_80a3, 0x0010_c503, 0xc000_25f3]);
        iss.hart_mut(0).set_register(1, 0);
        assert_eq!(iss.step(0).unwrap().rd, Some((1, 0x10000)));
        let store = iss.step(0).unwrap();
        assert_eq!((store.pc, store.rd), (4, None));
        let access = store.access.unwrap();
        assert!(access.store);
        assert_eq!((access.address, access.bytes, access.value), (0x10001, 1, 0));
        let load = iss.step(0).unwrap();
        assert_eq!(load.rd, Some((10, 0)));
        assert!(!load.access.unwrap().store);
        let counter = iss.step(0).unwrap();
        assert!(counter.counter);
        assert_eq!(counter.rd, Some((11, 3)));
    }

    #[test]
    fn launches_report_exit_codes_and_endless_loops() {
        // csrr a0,mhartid; li a7,93; ecall
        let words = [0xf140_2573, 0x05d0_0893, 0x0000_0073];
        let program = Program::parse(VECADD).unwrap();
        let mut iss = Iss::new(&program, &Shape::new(2, 2)).unwrap();
        iss.instructions[..3].copy_from_slice(&words);
        assert_eq!(iss.run(), Err(LaunchError::Exit { thread: 1, code: 1 }));
        assert_eq!(iss.hart(3).exit(), Some(3));

        let mut iss = machine(&[0x0000_006f]);
        iss.set_limit(100);
        assert_eq!(iss.run(), Err(LaunchError::Limit { limit: 100, thread: 0, pc: 0 }));
    }
}

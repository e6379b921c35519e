//! An instruction-set simulator of RV32IMA + Zicsr, `barrier`, convergence barriers and warp primitives: each thread for
//! itself, one instruction a step, straight from the manual. Convergence barriers have no effect. With whom a thread
//! executes a warp primitive is told with [`Iss::step_as`]; else it is alone, and `sync` waits for nobody.
//!
//! It is the reference that the core is compared with, so it shares nothing with it but the CSR map, the address map
//! and the shape of a grid. It knows no cycles: counters read the number of instructions executed so far, and a
//! comparison puts the core's value in their place with [`Hart::set_register`]. An instruction takes effect at once and
//! for all threads, so memory is as the order of steps says. [`Iss::run_grid`] chooses an order of its own; whoever
//! wants another starts warps with [`Iss::start_warp`] and calls [`Iss::step`].
//!
//! A *hart* is a hardware thread, numbered warp slot × lanes + lane; it runs one thread of the grid after another.
//!
//! `tests/qemu.rs` compares it with QEMU.

use std::ops::Range;

use heddle_simt::{Shape, csr::Source, isa::Atomic};

use crate::{
    grid::{Grid, ThreadId},
    kernels::{Device, DeviceError},
    program::{Program, ProgramError},
};

mod arithmetic;
mod decode;
mod fault;
mod launch;
mod memory;
mod reservations;
mod together;

pub use arithmetic::atomic;
use decode::{Instruction, Kind};
pub use fault::{Cause, Fault, LaunchError, StartError};
use launch::Resident;
use memory::Memory;
pub use memory::Place;
use reservations::Reservations;
pub use together::{MOST, Together};

/// `a7` of the `ecall` that ends a thread.
pub const EXIT: u32 = 93;

/// What is done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The value is what was read.
    Load,
    /// The value is what was written.
    Store,
    /// The value is the operand, rs2.
    Atomic {
        /// Bits 31..27 of the instruction.
        funct5: u32,
        /// What memory held before.
        old: u32,
    },
    /// Nothing, by an `sc.w` that failed. The value is the operand, rs2.
    Failed,
}

/// A load, store or atomic as it was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What was done.
    pub operation: Operation,
    /// First byte, as the program says.
    pub address: u32,
    /// Where that is.
    pub place: Place,
    /// Size, 1, 2 or 4.
    pub bytes: u32,
    /// As [`Operation`] says, zero-extended.
    pub value: u32,
}

/// What a thread does not decide alone of its next instruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// An `sc.w` that would succeed fails.
    pub fails: bool,
    /// The lanes that execute it together, with what each has in rs1; empty if the thread is alone.
    pub together: &'a [(u32, u32)],
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
    /// Whether the value of `rd` is a cycle or instruction counter, or the `count` of a convergence barrier, which
    /// another machine counts differently.
    pub counter: bool,
    /// Whether an `sc.w` succeeded.
    pub conditional: Option<bool>,
    /// The exit code, if the thread ended here.
    pub exit: Option<u32>,
    /// Whether this is a barrier.
    pub barrier: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no thread.
    Idle,
    Running,
    /// At a barrier.
    Waiting,
    /// With this exit code.
    Ended(u32),
}

/// A hart and the state of its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hart {
    number: u32,
    thread: ThreadId,
    /// Its block's share.
    scratchpad: Range<u32>,
    state: State,
    pc: u32,
    registers: [u32; 32],
}

impl Hart {
    /// Registers start with a value that no program expects, as nothing but pc is defined at the start.
    fn new(number: u32, thread: ThreadId, scratchpad: Range<u32>, entry: u32) -> Hart {
        let mut registers = [0xdead_beef; 32];
        registers[0] = 0;
        Hart { number, thread, scratchpad, state: State::Running, pc: entry, registers }
    }

    /// Block and number of the thread that runs here, or last ran.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Whether there is a thread that has not ended.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Running | State::Waiting)
    }

    /// Whether the thread waits at a barrier, which is behind it.
    pub fn waits(&self) -> bool {
        self.state == State::Waiting
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
        match self.state {
            State::Ended(code) => Some(code),
            _ => None,
        }
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
    instructions: Vec<Instruction>,
    memory: Memory,
    grid: Grid,
    harts: Vec<Hart>,
    reservations: Reservations,
    /// The block in each group of warp slots.
    residents: Vec<Option<Resident>>,
    executed: u64,
    executed_before: u64,
    limit: u64,
}

impl Iss {
    /// A machine with the program loaded and every thread at its entry, in one block. Fails if the program does not fit
    /// the shape.
    pub fn new(program: &Program, shape: &Shape) -> Result<Iss, ProgramError> {
        let idle = |number| Hart { state: State::Idle, ..Hart::new(number, ThreadId::default(), 0..0, 0) };
        let image = program.instruction_image(shape)?;
        let mut iss = Iss {
            instructions: image.into_iter().map(|word| Instruction::decode(word, shape)).collect(),
            memory: Memory::new(program, shape)?,
            grid: Grid::one_block(shape.threads()),
            harts: (0..shape.threads()).map(idle).collect(),
            reservations: Reservations::default(),
            residents: Vec::new(),
            program: program.clone(),
            shape: shape.clone(),
            executed: 0,
            executed_before: 0,
            limit: 1 << 32,
        };
        iss.restart();
        Ok(iss)
    }

    /// Instructions that one launch may take; 2^32 unless set.
    pub fn set_limit(&mut self, instructions: u64) {
        self.limit = instructions;
    }

    /// Instructions executed by all threads in all launches.
    pub fn executed(&self) -> u64 {
        self.executed_before + self.executed
    }

    /// A hart's state.
    pub fn hart(&self, hart: u32) -> &Hart {
        &self.harts[hart as usize]
    }

    /// A hart's state, to change.
    pub fn hart_mut(&mut self, hart: u32) -> &mut Hart {
        &mut self.harts[hart as usize]
    }

    /// A byte as the thread of a hart would load it; none if that is a fault.
    pub fn byte(&self, hart: u32, address: u32) -> Option<u8> {
        let place = self.memory.load_place(self.hart(hart), address, 1).ok()?;
        Some(self.memory.read(place, 1) as u8)
    }

    /// All of main memory.
    pub fn memory(&self) -> &[u8] {
        &self.memory.main
    }

    /// All of the scratchpad memory, whose contents no launch and no block sets.
    pub fn scratchpad(&self) -> &[u8] {
        &self.memory.scratchpad
    }

    /// All of the scratchpad memory, to change.
    pub fn scratchpad_mut(&mut self) -> &mut [u8] {
        &mut self.memory.scratchpad
    }

    /// Carries out one instruction of the thread of a hart. After a fault the thread is as it was before. The last
    /// thread of a block to reach a barrier, or to end while the others wait, lets the others go on.
    ///
    /// # Panics
    /// If there is no thread, or it waits.
    pub fn step(&mut self, hart: u32) -> Result<Step, Fault> {
        self.step_as(hart, Given::default())
    }

    /// What these harts bring to their next instruction, if they execute it together.
    pub fn together(&self, harts: &[u32]) -> Vec<(u32, u32)> {
        let brings = |&hart: &u32| (hart % self.shape.lanes, self.operands(hart).0);
        harts.iter().map(brings).collect()
    }

    /// The lanes that a `sync` at the hart's pc names, a bit each, and its own.
    pub fn named(&self, hart: u32) -> u64 {
        let (lower, upper) = self.operands(hart);
        let own = 1 << (hart % self.shape.lanes);
        (u64::from(upper) << 32 | u64::from(lower) | own) & u64::MAX >> (64 - self.shape.lanes)
    }

    /// The registers that the fields rs1 and rs2 of a hart's next instruction name.
    fn operands(&self, hart: u32) -> (u32, u32) {
        let hart = &self.harts[hart as usize];
        let instruction = self.instructions.get(hart.pc as usize / 4);
        instruction.map_or((0, 0), |instruction| (hart.register(instruction.rs1), hart.register(instruction.rs2)))
    }

    /// [`Iss::step`], where something is given.
    pub fn step_as(&mut self, hart: u32, given: Given) -> Result<Step, Fault> {
        let Hart { pc, thread, state, .. } = self.harts[hart as usize];
        assert!(state == State::Running, "hart {hart} cannot go on: {state:?}");
        let (step, next) = self.execute(hart, given).map_err(|cause| Fault { cause, pc, thread })?;

        if step.conditional.is_some() {
            self.reservations.end(hart);
        }
        if let Some(access) = step.access {
            match access.operation {
                Operation::Load if step.word & 0x7f == 0x2f => self.reservations.make(hart, access.place),
                _ => self.carry_out(access),
            }
        }
        let state = &mut self.harts[hart as usize];
        if let Some((number, value)) = step.rd {
            state.set_register(number, value);
        }
        state.pc = next;
        if let Some(code) = step.exit {
            state.state = State::Ended(code);
        } else if step.barrier {
            state.state = State::Waiting;
        }
        self.executed += 1;
        if step.exit.is_some() || step.barrier {
            self.stopped(hart);
        }
        Ok(step)
    }

    fn write_memory(&mut self, place: Place, bytes: u32, value: u32) {
        self.reservations.written(place.word());
        self.memory.write(place, bytes, value);
    }

    /// The word that a hart has reserved.
    pub fn reserved(&self, hart: u32) -> Option<Place> {
        self.reservations.of(hart)
    }

    /// What the next instruction of a hart's thread does, and the pc after it. Changes nothing. An `sc.w` fails without
    /// a reservation, and if it is told to.
    fn execute(&self, number: u32, given: Given) -> Result<(Step, u32), Cause> {
        let hart = &self.harts[number as usize];
        let pc = hart.pc;
        let Instruction { word, rd, rs1, rs2, kind } =
            *self.instructions.get(pc as usize / 4).ok_or(Cause::FetchOutside)?;
        let a = hart.registers[rs1 as usize];
        let b = hart.registers[rs2 as usize];

        let mut step =
            Step { pc, word, rd: None, access: None, counter: false, conditional: None, exit: None, barrier: false };
        let mut next = pc.wrapping_add(4);
        let mut result = None;
        match kind {
            Kind::Compute(operation) => result = Some(operation(a, b)),
            Kind::ComputeImmediate(operation, immediate) => result = Some(operation(a, immediate)),
            Kind::AddToPc(immediate) => result = Some(pc.wrapping_add(immediate)),
            Kind::Jump(offset) => {
                result = Some(next);
                next = aligned_target(pc.wrapping_add(offset))?;
            }
            Kind::JumpRegister(offset) => {
                result = Some(next);
                next = aligned_target(a.wrapping_add(offset) & !1)?;
            }
            Kind::Branch(condition, offset) => {
                if condition(a, b) {
                    next = aligned_target(pc.wrapping_add(offset))?;
                }
            }
            Kind::Load { bytes, extend, offset } => {
                let address = a.wrapping_add(offset);
                let place = self.memory.load_place(hart, address, bytes)?;
                let value = self.memory.read(place, bytes);
                result = Some(extend(value));
                step.access = Some(Access { operation: Operation::Load, address, place, bytes, value });
            }
            Kind::Store { bytes, offset } => {
                let address = a.wrapping_add(offset);
                let place = self.memory.store_place(hart, address, bytes)?;
                let value = b & u32::MAX >> (32 - 8 * bytes);
                step.access = Some(Access { operation: Operation::Store, address, place, bytes, value });
            }
            Kind::LoadReserved => {
                let place = self.memory.load_place(hart, a, 4)?;
                let value = self.memory.read(place, 4);
                result = Some(value);
                step.access = Some(Access { operation: Operation::Load, address: a, place, bytes: 4, value });
            }
            Kind::StoreConditional => {
                let place = self.memory.store_place(hart, a, 4)?;
                let succeeds = !given.fails && self.reserved(number) == Some(place);
                let old = self.memory.read(place, 4);
                let operation =
                    if succeeds { Operation::Atomic { funct5: Atomic::Swap as u32, old } } else { Operation::Failed };
                step.access = Some(Access { operation, address: a, place, bytes: 4, value: b });
                step.conditional = Some(succeeds);
                result = Some(u32::from(!succeeds));
            }
            Kind::Atomic(funct5) => {
                let place = self.memory.store_place(hart, a, 4)?;
                let old = self.memory.read(place, 4);
                result = Some(old);
                let operation = Operation::Atomic { funct5, old };
                step.access = Some(Access { operation, address: a, place, bytes: 4, value: b });
            }
            Kind::Barrier => step.barrier = true,
            Kind::Nothing => {}
            Kind::Count => {
                step.counter = true;
                result = Some(0);
            }
            Kind::Vote(_) | Kind::Shuffle(_) => {
                let lane = number % self.shape.lanes;
                let alone = [(lane, a)];
                let together = if given.together.is_empty() { &alone } else { given.together };
                result = Some(match kind {
                    Kind::Vote(function) => vote(function, together),
                    Kind::Shuffle(function) => shuffle(function, lane, b, together).unwrap_or(a),
                    _ => unreachable!("it is one of these"),
                });
            }
            Kind::Ecall => match hart.register(17) {
                EXIT => step.exit = Some(hart.register(10)),
                other => return Err(Cause::Ecall(other)),
            },
            Kind::Breakpoint => return Err(Cause::Breakpoint),
            Kind::Csr(source) => {
                step.counter = source.counts();
                result = Some(self.csr(source, hart));
            }
            Kind::Illegal => return Err(Cause::Illegal(word)),
        }
        step.rd = result.filter(|_| rd != 0).map(|value| (rd, value));
        Ok((step, next))
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

impl Device for Iss {
    fn program(&self) -> &Program {
        &self.program
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        let start = address as usize;
        let memory = self.memory.main.get_mut(start..start + bytes.len());
        memory.ok_or("write outside memory")?.copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        let start = address as usize;
        let memory = self.memory.main.get(start..start + length);
        Ok(memory.ok_or("read outside memory")?.to_vec())
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        Ok(self.run_grid(grid)?)
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

fn aligned_target(target: u32) -> Result<u32, Cause> {
    if target.is_multiple_of(4) { Ok(target) } else { Err(Cause::MisalignedJump(target)) }
}

#[cfg(test)]
mod tests;

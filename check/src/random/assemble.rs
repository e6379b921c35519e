//! From a random program to instructions.

use super::program::{Access, Block, Condition, End, GridSize, Hint, Init, Op, RandomProgram, Shared, VALUES, WORDS};
use heddle_simt::address::{SCRATCHPAD, STACK};
use heddle_simt::isa::{atomic, convergence};
use heddle_simt::{Shape, csr};
use heddle_testbench::asm::*;
use heddle_testbench::grid::Grid;

/// What a program may use that not every machine has. It does other things instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// CSRs, and memory that threads share. Without, there is one thread, whose number is 0.
    pub threads: bool,
    /// The addresses of each thread's own stack.
    pub stack_window: bool,
    /// Atomic operations.
    pub atomics: bool,
    /// The scratchpad.
    pub scratchpad: bool,
    /// `barrier`.
    pub barriers: bool,
    /// Instructions on convergence barriers, which do nothing on a core without any.
    pub hints: bool,
    /// The counters of cycles and instructions.
    pub counters: bool,
    /// What depends on the order in which threads execute: memory that they share, counters, counts of convergence barriers.
    pub races: bool,
}

impl Features {
    /// RV32IM alone.
    pub const ONE_HART: Features = Features {
        threads: false,
        stack_window: false,
        atomics: false,
        scratchpad: false,
        barriers: false,
        hints: false,
        counters: false,
        races: true,
    };

    /// All that a core of this shape has.
    pub fn of(shape: &Shape) -> Features {
        Features {
            threads: true,
            stack_window: true,
            atomics: shape.atomics,
            scratchpad: shape.scratchpad > 0,
            // Threads come to them anywhere, alone too.
            barriers: shape.barriers && !shape.divergence.capabilities().reconverges,
            hints: shape.convergence_barriers > 0,
            counters: shape.counters,
            races: true,
        }
    }
}

/// Launches of more threads than the core has are up to so many times as large.
const MOST_TURNS: u32 = 3;

/// Calls of a thread. The smallest stack has room for 16 return addresses.
const MOST_CALLS: i32 = 14;

/// Bytes of main memory that threads share, behind their own.
const SHARED: u32 = 256;
/// Which bits of a number say where a thread is in it: all threads at one place, in one word, in some words, anywhere.
const SPREAD: [i32; 4] = [0, 3, 0x3f, 0xff];

/// First byte of the threads' memory; instructions are below.
pub const DATA: u32 = 0x4000;

const SP: u32 = 2;
/// The alternate link register.
const LINK: u32 = 5;
const VALUE: [u32; VALUES as usize] = [6, 7, 8, 9, 11, 12];
/// Address of the thread's words.
const BASE: u32 = 20;
/// Ways back that are left, and calls.
const FUEL: u32 = 21;
const CALLS: u32 = 22;
/// The thread's number in the launch.
const THREAD: u32 = 23;
/// Barriers that are left.
const BARRIERS: u32 = 24;
const SCRATCH: [u32; 2] = [28, 29];

/// funct7 and funct3 of all instructions on two registers.
const COMPUTE: [(u32, u32); 18] = [
    (0, 0),
    (0x20, 0),
    (0, 1),
    (0, 2),
    (0, 3),
    (0, 4),
    (0, 5),
    (0x20, 5),
    (0, 6),
    (0, 7),
    (1, 0),
    (1, 1),
    (1, 2),
    (1, 3),
    (1, 4),
    (1, 5),
    (1, 6),
    (1, 7),
];

/// Threads that a launch may have: as many as the core has, or a few times as many if there is memory for them.
fn most_threads(shape: &Shape) -> u32 {
    let threads = shape.threads();
    let room = (shape.memory - threads * shape.stack).saturating_sub(DATA + SHARED);
    threads * (room / (4 * u32::from(WORDS) * threads)).min(MOST_TURNS)
}

impl RandomProgram {
    /// The program as instructions for a shape. It can be launched with one block of all threads of the core, or with
    /// [`RandomProgram::grid`].
    ///
    /// # Panics
    /// If the threads' words do not fit between 16 KiB and the stacks, which [`Shape::default_memory`] sees to.
    pub fn assemble(&self, shape: &Shape, features: Features) -> Asm {
        let threads = most_threads(shape);
        assert!(threads > 0, "memory of {} bytes is too small", shape.memory);
        let shape = shape.clone();
        let places = self.functions.iter().flat_map(|f| &f.blocks).map(|block| block.ops.len() + 1).sum();
        let a = Asm::default();
        let mut writer =
            Writer { program: self, shape, features, threads, a, labels: 0, function: 0, places, next_place: 0 };
        writer.begin();
        for number in 0..self.functions.len() {
            writer.function(number);
        }
        assert!(writer.a.here() as u32 * 4 <= DATA, "the program is too long");
        writer.a
    }

    /// The grid to launch it with on this shape.
    pub fn grid(&self, shape: &Shape) -> Grid {
        let all = shape.threads();
        let GridSize::Blocks(size, quarters) = self.grid else { return Grid::one_block(all) };
        let threads = 1 + (all - 1) * u32::from(size) / 255;
        let resident = Grid::one_block(threads).resident(shape);
        let blocks = (resident * u32::from(quarters)).div_ceil(4);
        Grid { blocks: blocks.clamp(1, most_threads(shape) / threads), threads }
    }
}

struct Writer<'a> {
    program: &'a RandomProgram,
    shape: Shape,
    features: Features,
    /// That have words of their own.
    threads: u32,
    a: Asm,
    labels: u32,
    /// The one that is written.
    function: usize,
    /// Where hints may be: how many places, and the next one.
    places: usize,
    next_place: usize,
}

/// A value register; one number more is x0.
fn value(number: u8) -> u32 {
    VALUE.get(number as usize).copied().unwrap_or(ZERO)
}

impl Writer<'_> {
    fn put(&mut self, words: impl IntoIterator<Item = u32>) {
        self.a = std::mem::take(&mut self.a).put(words);
    }

    fn place(&mut self, label: &str) {
        self.a = std::mem::take(&mut self.a).label(label);
    }

    fn branch(&mut self, condition: u32, rs1: u32, rs2: u32, to: &str) {
        self.a = std::mem::take(&mut self.a).branch(condition, rs1, rs2, to);
    }

    fn jump(&mut self, link: u32, to: &str) {
        self.a = std::mem::take(&mut self.a).jal(link, to);
    }

    fn address(&mut self, rd: u32, of: &str) {
        self.a = std::mem::take(&mut self.a).la(rd, of);
    }

    fn fresh(&mut self, name: &str) -> String {
        self.labels += 1;
        format!("{name}{}", self.labels)
    }

    fn link(&self, function: usize) -> u32 {
        if self.program.functions[function].alternate_link { LINK } else { RA }
    }

    fn has_stack_window(&self) -> bool {
        self.features.stack_window && self.program.stack_window
    }

    /// Registers, the thread's memory, a call of the first function, and the end: all values are stored.
    fn begin(&mut self) {
        if self.features.threads {
            self.put([csrr(THREAD, BLOCK), csrr(SCRATCH[0], BLOCK_THREADS), mul(THREAD, THREAD, SCRATCH[0])]);
            self.put([csrr(SCRATCH[0], THREAD_IN_BLOCK), add(THREAD, THREAD, SCRATCH[0])]);
        } else {
            self.put([addi(THREAD, ZERO, 0)]);
        }
        let program = self.program;
        for (init, rd) in program.init.iter().zip(VALUE) {
            match *init {
                Init::Constant(value) => self.put(li(rd, value as u32)),
                Init::Linear(factor, term) => {
                    self.put(li(rd, i32::from(factor) as u32));
                    self.put([mul(rd, rd, THREAD)]);
                    self.put(li(SCRATCH[0], i32::from(term) as u32));
                    self.put([add(rd, rd, SCRATCH[0])]);
                }
                Init::Masked(mask) => self.put([andi(rd, THREAD, i32::from(mask))]),
            }
        }
        let shift = if program.interleaved { 2 } else { 2 + u32::from(WORDS).ilog2() };
        self.put([slli(BASE, THREAD, shift), lui(SCRATCH[0], DATA >> 12), add(BASE, BASE, SCRATCH[0])]);
        let Shape { memory, stack, .. } = self.shape;
        if self.has_stack_window() {
            self.put(li(SP, STACK + stack));
        } else {
            self.put(li(SP, memory));
            if self.features.threads {
                let sub = |rd, a, b| r(0x20, b, a, 0, rd, 0x33);
                self.put([csrr(SCRATCH[0], MHARTID), slli(SCRATCH[0], SCRATCH[0], stack.ilog2())]);
                self.put([sub(SP, SP, SCRATCH[0])]);
            }
        }
        self.put([addi(FUEL, ZERO, i32::from(program.fuel)), addi(CALLS, ZERO, MOST_CALLS)]);
        self.put([addi(BARRIERS, ZERO, i32::from(program.barriers))]);
        for word in 0..WORDS {
            self.access(word, |base, offset| sw(value(word % VALUES), base, offset));
        }
        self.jump(self.link(0), "f0");
        for word in 0..VALUES {
            self.access(word, |base, offset| sw(value(word), base, offset));
        }
        if self.features.barriers {
            self.place("left");
            self.branch(BEQ, BARRIERS, ZERO, "end");
            self.put([BARRIER, addi(BARRIERS, BARRIERS, -1)]);
            self.jump(ZERO, "left");
            self.place("end");
        }
        self.leave();
    }

    fn leave(&mut self) {
        self.put([addi(A0, ZERO, 0), addi(A7, ZERO, 93), ECALL]);
    }

    fn function(&mut self, number: usize) {
        self.function = number;
        let blocks = &self.program.functions[number].blocks;
        let link = self.link(number);
        self.place(&format!("f{number}"));
        self.put([addi(SP, SP, -4), sw(link, SP, 0)]);
        for (at, block) in blocks.iter().enumerate() {
            self.block(block, at, blocks.len());
        }
        self.place(&self.block_label(blocks.len()));
        self.put([lw(link, SP, 0), addi(SP, SP, 4), jalr(ZERO, link, 0)]);
    }

    /// The hints of this place.
    fn hints(&mut self) {
        let (built, program) = (self.features.hints, self.program);
        let here = |hint: &&Hint| built && usize::from(hint.at) % self.places == self.next_place;
        let hints: Vec<Hint> = program.hints.iter().filter(here).copied().collect();
        self.next_place += 1;
        for Hint { operation, barrier, operand, rd, .. } in hints {
            let (b, c) = (u32::from(barrier), u32::from(operand) % convergence::BARRIERS);
            let word = match u32::from(operation) {
                convergence::JOIN => join(b),
                convergence::WAIT => wait(b, operand.into()),
                convergence::CANCEL => cancel(b),
                convergence::COUNT => count(if self.features.races { value(rd) } else { ZERO }, b),
                convergence::COPY => copy(b, c),
                _ => move_(b, c),
            };
            self.put([word]);
        }
    }

    fn block_label(&self, block: usize) -> String {
        format!("f{}b{block}", self.function)
    }

    fn block(&mut self, block: &Block, at: usize, blocks: usize) {
        self.place(&self.block_label(at));
        for op in &block.ops {
            self.hints();
            self.op(op);
        }
        self.hints();
        let next = at + 1;
        let target = |distance: i8| (next as isize + isize::from(distance)).clamp(0, blocks as isize) as usize;
        match block.end {
            End::Next => {}
            End::Jump(distance) => {
                let to = target(distance);
                self.pay_for(to, next, blocks);
                self.jump(ZERO, &self.block_label(to));
            }
            End::Branch(ref condition, distance) => {
                let to = target(distance);
                self.pay_for(to, next, blocks);
                self.condition(condition, &self.block_label(to));
            }
            End::Switch(by, distances) => {
                let table = self.fresh("table");
                self.address(SCRATCH[0], &table);
                self.put([andi(SCRATCH[1], value(by), 3), slli(SCRATCH[1], SCRATCH[1], 2)]);
                self.put([add(SCRATCH[0], SCRATCH[0], SCRATCH[1]), jalr(ZERO, SCRATCH[0], 0)]);
                self.place(&table);
                for distance in distances {
                    let to = target(distance as i8);
                    self.jump(ZERO, &self.block_label(to));
                }
            }
        }
    }

    /// A way back costs fuel; without any the function ends.
    fn pay_for(&mut self, to: usize, next: usize, blocks: usize) {
        if to < next {
            self.put([addi(FUEL, FUEL, -1)]);
            self.branch(BLT, FUEL, ZERO, &self.block_label(blocks));
        }
    }

    fn pay_for_call(&mut self, otherwise: &str) {
        self.put([addi(CALLS, CALLS, -1)]);
        self.branch(BLT, CALLS, ZERO, otherwise);
    }

    fn condition(&mut self, condition: &Condition, to: &str) {
        match *condition {
            Condition::Compare(kind, a, b) => self.branch([0, 1, 4, 5, 6, 7][kind as usize], value(a), value(b), to),
            Condition::Bit(by, bit) => {
                self.put([add(SCRATCH[0], value(by), THREAD), andi(SCRATCH[0], SCRATCH[0], 1 << bit)]);
                self.branch(BNE, SCRATCH[0], ZERO, to);
            }
            Condition::Thread(bit) => {
                self.put([andi(SCRATCH[0], THREAD, 1 << bit)]);
                self.branch(BEQ, SCRATCH[0], ZERO, to);
            }
        }
    }

    /// An access to one of the thread's words: `instruction` gets the base register and the offset.
    fn access(&mut self, word: u8, instruction: impl Fn(u32, i32) -> u32) {
        let stride = if self.program.interleaved { 4 * self.threads } else { 4 };
        let offset = (u32::from(word) * stride) as i32;
        if offset < 2044 {
            self.put([instruction(BASE, offset)]);
        } else {
            self.put(li(SCRATCH[0], offset as u32));
            self.put([add(SCRATCH[0], SCRATCH[0], BASE), instruction(SCRATCH[0], 0)]);
        }
    }

    fn op(&mut self, op: &Op) {
        match *op {
            Op::Compute(kind, rd, a, b) => {
                let (funct7, funct3) = COMPUTE[kind as usize % COMPUTE.len()];
                self.put([r(funct7, value(b), value(a), funct3, value(rd), 0x33)]);
            }
            Op::Immediate(kind, rd, a, immediate) => {
                let (rd, a) = (value(rd), value(a));
                let immediate = u32::from(immediate as u16) & 0xfff;
                // Shifts have an amount and a bit that says which; the others take all 12 bits.
                let field = match kind % 9 {
                    1 | 5 => immediate & 31,
                    8 => 0x400 | immediate & 31,
                    _ => immediate,
                };
                let funct3 = if kind % 9 == 8 { 5 } else { u32::from(kind % 9) };
                self.put([field << 20 | r(0, 0, a, funct3, rd, 0x13)]);
            }
            Op::Upper(pc, rd, upper) => {
                let opcode = if pc { 0x17 } else { 0x37 };
                self.put([upper << 12 | value(rd) << 7 | opcode]);
            }
            Op::Own(stack, access, register, word, byte) => self.own(stack, access, value(register), word, byte),
            Op::Share(shared, access, register, by, spread, apart) => {
                if self.features.threads && self.features.races {
                    self.share(shared, access, value(register), value(by), SPREAD[spread as usize], apart);
                }
            }
            Op::Late(kind, rd, a, over) => {
                let (rd, a) = (value(rd), value(a));
                self.put([r(1, THREAD, a, 4 + u32::from(kind), rd, 0x33)]);
                self.put([if over { addi(rd, a, 1) } else { add(a, rd, a) }]);
            }
            Op::Csr(at, rd) => {
                if self.features.threads && self.features.races {
                    let csr = &csr::MAP[at as usize % csr::MAP.len()];
                    if self.features.counters || !csr.source.counts() {
                        self.put([csrr(value(rd), u32::from(csr.address))]);
                    }
                }
            }
            Op::Fence => self.put([0x0ff0_000f]),
            Op::Barrier => {
                if self.features.barriers {
                    let over = self.fresh("over");
                    self.branch(BEQ, BARRIERS, ZERO, &over);
                    self.put([addi(BARRIERS, BARRIERS, -1), BARRIER]);
                    self.place(&over);
                }
            }
            Op::Call(which) => {
                let callee = self.callee(which);
                let over = self.fresh("over");
                self.pay_for_call(&over);
                self.jump(self.link(callee), &format!("f{callee}"));
                self.place(&over);
            }
            Op::CallEither(by, f, g, through_link) => self.call_either(value(by), f, g, through_link),
            Op::Scatter(rd, by, bits) => self.scatter(value(rd), value(by), bits),
            Op::Leave(a, b, bits) => {
                let over = self.fresh("stay");
                let mask = (1 << bits) - 1;
                self.put([andi(SCRATCH[0], value(a), mask), andi(SCRATCH[1], value(b), mask)]);
                self.branch(BNE, SCRATCH[0], SCRATCH[1], &over);
                self.leave();
                self.place(&over);
            }
        }
    }

    /// An access as the machine has it, and the mask of its address. Atomics have no offset.
    fn access_at(&self, access: Access, register: u32) -> (i32, impl Fn(u32, i32) -> u32 + use<>) {
        let access = match access {
            Access::Atomic(..) if !self.features.atomics => Access::Load(2),
            other => other,
        };
        let funct3 = |kind: u8| [0, 1, 2, 4, 5][kind as usize];
        let aligned = |funct3: u32| !((1 << (funct3 & 3)) - 1);
        let mask = match access {
            Access::Load(kind) => aligned(funct3(kind)),
            Access::Store(size) => aligned(u32::from(size)),
            Access::Atomic(..) => aligned(2),
        };
        let instruction = move |base, offset| match access {
            Access::Load(kind) => load(funct3(kind), register, base, offset),
            Access::Store(size) => store(u32::from(size), register, base, offset),
            Access::Atomic(operation, operand) => {
                amo(atomic::ALL[operation as usize].0, register, value(operand), base)
            }
        };
        (mask, instruction)
    }

    fn own(&mut self, stack: bool, access: Access, register: u32, word: u8, byte: u8) {
        let (mask, instruction) = self.access_at(access, register);
        let byte = i32::from(byte) & mask;
        // Return addresses are at the other end of the stack; without the window they are where the words would be.
        let room = self.shape.stack >= 4 * (MOST_CALLS as u32 + 2 + u32::from(WORDS));
        if stack && room && self.has_stack_window() {
            self.put([lui(SCRATCH[0], STACK >> 12), addi(SCRATCH[0], SCRATCH[0], 4 * i32::from(word) + byte)]);
            self.put([instruction(SCRATCH[0], 0)]);
        } else if matches!(access, Access::Atomic(..)) {
            self.access(word, |base, offset| addi(SCRATCH[1], base, offset + byte));
            self.put([instruction(SCRATCH[1], 0)]);
        } else {
            self.access(word, |base, offset| instruction(base, offset + byte));
        }
    }

    fn share(&mut self, shared: Shared, access: Access, register: u32, by: u32, spread: i32, apart: u8) {
        let (mask, instruction) = self.access_at(access, register);
        let (base, bytes) = match shared {
            // Of the smallest block.
            Shared::Scratchpad if self.features.scratchpad => (SCRATCHPAD, self.shape.scratchpad / self.shape.warps),
            _ => (DATA + 4 * u32::from(WORDS) * self.threads, SHARED),
        };
        // The mask of an `andi` is positive.
        let within = bytes.min(1 << 11) as i32 - 1;
        self.put([add(SCRATCH[1], by, THREAD), andi(SCRATCH[1], SCRATCH[1], spread)]);
        self.put([slli(SCRATCH[1], SCRATCH[1], 2 * u32::from(apart)), andi(SCRATCH[1], SCRATCH[1], within & mask)]);
        self.put(li(SCRATCH[0], base));
        self.put([add(SCRATCH[0], SCRATCH[0], SCRATCH[1]), instruction(SCRATCH[0], 0)]);
    }

    fn scatter(&mut self, rd: u32, by: u32, bits: u8) {
        let (places, over) = (self.fresh("places"), self.fresh("over"));
        self.address(SCRATCH[0], &places);
        self.put([add(SCRATCH[1], by, THREAD), andi(SCRATCH[1], SCRATCH[1], (1 << bits) - 1)]);
        self.put([slli(SCRATCH[1], SCRATCH[1], 3), add(SCRATCH[0], SCRATCH[0], SCRATCH[1]), jalr(ZERO, SCRATCH[0], 0)]);
        self.place(&places);
        for place in 0..1 << bits {
            self.put([addi(rd, rd, place)]);
            self.jump(ZERO, &over);
        }
        self.place(&over);
    }

    /// This function or a later one.
    fn callee(&self, which: u8) -> usize {
        let left = self.program.functions.len() - self.function;
        self.function + which as usize % left
    }

    /// Both must have the same link register; the second is the first otherwise.
    fn call_either(&mut self, by: u32, f: u8, g: u8, through_link: bool) {
        let f = self.callee(f);
        let link = self.link(f);
        let g = Some(self.callee(g)).filter(|&g| self.link(g) == link).unwrap_or(f);
        let over = self.fresh("over");
        self.pay_for_call(&over);
        let target = if through_link { link } else { SCRATCH[0] };
        let chosen = self.fresh("chosen");
        self.address(target, &format!("f{f}"));
        self.address(SCRATCH[1], &format!("f{g}"));
        self.branch(BLT, by, ZERO, &chosen);
        self.put([addi(target, SCRATCH[1], 0)]);
        self.place(&chosen);
        self.put([jalr(link, target, 0)]);
        self.place(&over);
    }
}

//! From a random program to instructions.

use super::program::{Block, Condition, End, Init, Op, RandomProgram, VALUES, WORDS};
use crate::asm::*;
use heddle_simt::{Shape, csr};

/// What a program may use that not every machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Features {
    /// All that the core has.
    Core,
    /// RV32IM alone and one thread, whose number is 0: no CSRs.
    OneHart,
}

/// Calls of a thread. The smallest stack has room for 16 return addresses.
const MOST_CALLS: i32 = 14;

/// Bytes of the memory that threads share, behind their own.
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
/// The thread's number.
const THREAD: u32 = 23;
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

impl RandomProgram {
    /// The program as instructions for a shape.
    ///
    /// # Panics
    /// If the threads' words do not fit between 16 KiB and the stacks, which [`Shape::default_memory`] sees to.
    pub fn assemble(&self, shape: &Shape, features: Features) -> Asm {
        let threads = shape.threads();
        let stacks = shape.memory - threads * shape.stack;
        assert!(
            DATA + 4 * u32::from(WORDS) * threads + SHARED <= stacks,
            "memory of {} bytes is too small",
            shape.memory
        );
        let mut writer = Writer { program: self, features, threads, a: Asm::default(), labels: 0, function: 0 };
        writer.begin(shape);
        for number in 0..self.functions.len() {
            writer.function(number);
        }
        assert!(writer.a.here() as u32 * 4 <= DATA, "the program is too long");
        writer.a
    }
}

struct Writer<'a> {
    program: &'a RandomProgram,
    features: Features,
    threads: u32,
    a: Asm,
    labels: u32,
    /// The one that is written.
    function: usize,
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

    /// Registers, the thread's memory, a call of the first function, and the end: all values are stored.
    fn begin(&mut self, shape: &Shape) {
        let hart = match self.features {
            Features::Core => csrr(THREAD, MHARTID),
            Features::OneHart => addi(THREAD, ZERO, 0),
        };
        self.put([hart]);
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
        self.put(li(SP, shape.memory));
        let sub = |rd, a, b| r(0x20, b, a, 0, rd, 0x33);
        self.put([slli(SCRATCH[0], THREAD, shape.stack.ilog2()), sub(SP, SP, SCRATCH[0])]);
        self.put([addi(FUEL, ZERO, i32::from(program.fuel)), addi(CALLS, ZERO, MOST_CALLS)]);
        for word in 0..WORDS {
            self.access(word, |base, offset| sw(value(word % VALUES), base, offset));
        }
        self.jump(self.link(0), "f0");
        for word in 0..VALUES {
            self.access(word, |base, offset| sw(value(word), base, offset));
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

    fn block_label(&self, block: usize) -> String {
        format!("f{}b{block}", self.function)
    }

    fn block(&mut self, block: &Block, at: usize, blocks: usize) {
        self.place(&self.block_label(at));
        for op in &block.ops {
            self.op(op);
        }
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
            Op::Load(kind, rd, word, byte) => {
                let funct3 = [0, 1, 2, 4, 5][kind as usize];
                let byte = i32::from(byte >> (funct3 & 3) << (funct3 & 3)) & 3;
                self.access(word, |base, offset| load(funct3, value(rd), base, offset + byte));
            }
            Op::Store(size, from, word, byte) => {
                let byte = i32::from(byte >> size << size) & 3;
                self.access(word, |base, offset| store(u32::from(size), value(from), base, offset + byte));
            }
            Op::Share(stores, kind, register, by, spread) => {
                if self.features == Features::Core {
                    self.share(stores, kind, value(register), value(by), SPREAD[spread as usize]);
                }
            }
            Op::Late(kind, rd, a, over) => {
                let (rd, a) = (value(rd), value(a));
                self.put([r(1, THREAD, a, 4 + u32::from(kind), rd, 0x33)]);
                self.put([if over { addi(rd, a, 1) } else { add(a, rd, a) }]);
            }
            Op::Csr(at, rd) => {
                if self.features == Features::Core {
                    let csr = &csr::MAP[at as usize % csr::MAP.len()];
                    self.put([csrr(value(rd), u32::from(csr.address))]);
                }
            }
            Op::Fence => self.put([0x0ff0_000f]),
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

    fn share(&mut self, stores: bool, kind: u8, register: u32, by: u32, spread: i32) {
        let funct3 = [0, 1, 2, 4, 5][kind as usize];
        let aligned = !((1 << (funct3 & 3)) - 1);
        self.put([add(SCRATCH[1], by, THREAD), andi(SCRATCH[1], SCRATCH[1], spread & aligned)]);
        self.put(li(SCRATCH[0], DATA + 4 * u32::from(WORDS) * self.threads));
        self.put([add(SCRATCH[0], SCRATCH[0], SCRATCH[1])]);
        self.put([match stores {
            true => store(funct3 & 3, register, SCRATCH[0], 0),
            false => load(funct3, register, SCRATCH[0], 0),
        }]);
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

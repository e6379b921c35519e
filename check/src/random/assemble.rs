//! From a random program to instructions.

mod operation;

use super::program::{Block, Condition, End, GridSize, Hint, Init, RandomProgram, VALUES, WORDS};
use heddle_hdl::Code;
use heddle_simt::Shape;
use heddle_simt::address::STACK;
use heddle_simt::isa::{HintKind, Shuffle, Vote, convergence};
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
    /// `lr.w` and `sc.w` in place of some of them.
    pub reservations: bool,
    /// Votes and shuffles in place of some operations, and `sync`, with whom threads are together and at their ends.
    pub warp_primitives: bool,
    /// The scratchpad.
    pub scratchpad: bool,
    /// `barrier`.
    pub barriers: bool,
    /// Instructions on convergence barriers, which do nothing on a core without any.
    pub hints: bool,
    /// The counters of cycles and instructions.
    pub counters: bool,
    /// What depends on the order in which threads execute: memory that they share, counters, counts of convergence
    /// barriers, votes and shuffles.
    pub races: bool,
}

impl Features {
    /// RV32IM alone.
    pub const ONE_HART: Features = Features {
        threads: false,
        stack_window: false,
        atomics: false,
        reservations: false,
        warp_primitives: false,
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
            reservations: shape.reservations,
            warp_primitives: shape.warp_primitives,
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

    /// Whether threads access words of their stacks. Return addresses are at the other end; without the window they are
    /// where the words would be.
    fn has_stack_words(&self) -> bool {
        let room = self.shape.stack >= 4 * (MOST_CALLS as u32 + 2 + u32::from(WORDS));
        room && self.has_stack_window()
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
        if self.has_stack_words() {
            // Else there would be what another block has left, whichever that was.
            self.put([lui(SCRATCH[0], STACK >> 12)]);
            self.put((0..WORDS).map(|word| sw(value(word % VALUES), SCRATCH[0], 4 * i32::from(word))));
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
        if self.features.warp_primitives && self.shape.syncs() {
            // Here all come that have not ended, at any time; some name each other by halves of the warp.
            self.put([addi(SCRATCH[0], ZERO, -1), sync(0, SCRATCH[0], SCRATCH[0]), csrr(SCRATCH[1], LANE)]);
            self.put([andi(SCRATCH[1], SCRATCH[1], 1), addi(SCRATCH[1], SCRATCH[1], 1)]);
            self.put(li(SCRATCH[0], 0x5555_5555));
            self.put([mul(SCRATCH[0], SCRATCH[0], SCRATCH[1]), sync(0, SCRATCH[0], SCRATCH[0])]);
            self.put([vote(Vote::Ballot, value(0), THREAD), shuffle(Shuffle::Xor, value(1), value(2), value(0))]);
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
            let word = match HintKind::from_bits(operation) {
                Some(HintKind::Join) => join(b),
                Some(HintKind::Wait) => wait(b, operand.into()),
                Some(HintKind::Cancel) => cancel(b),
                Some(HintKind::Count) => count(if self.features.races { value(rd) } else { ZERO }, b),
                Some(HintKind::Copy) => copy(b, c),
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
}

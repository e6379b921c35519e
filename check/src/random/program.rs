//! What a random program is made of, how likely each thing is, and how a program becomes smaller.

use fastrand::Rng;
use std::ops::RangeInclusive;

/// Registers that hold random values are numbered 0 to 5 here.
pub const VALUES: u8 = 6;
/// Words of memory that each thread has, and of its stack that it accesses as it likes.
pub const WORDS: u8 = 8;

/// A program, before it knows the shape it runs on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RandomProgram {
    /// First values of the registers.
    pub init: Vec<Init>,
    /// How many times a thread goes backward.
    pub fuel: u8,
    /// Words of the same number lie side by side for all threads, so that a warp's accesses are one; else a thread's
    /// words do.
    pub interleaved: bool,
    /// The stack is at the addresses that are each thread's own; else where the thread computes that it is.
    pub stack_window: bool,
    /// Barriers that each thread comes to, if it does not end before: in the code, and what is left at its end.
    pub barriers: u8,
    /// Of the launch.
    pub grid: GridSize,
    /// The first is where threads begin; a function calls only those after it, and itself.
    pub functions: Vec<Function>,
    /// Instructions on convergence barriers, anywhere.
    pub hints: Vec<Hint>,
}

/// An instruction on convergence barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Before which operation or end of a block it is, modulo their number.
    pub at: u16,
    /// 1 … 6: a [`HintKind`](heddle_simt::isa::HintKind).
    pub operation: u8,
    /// The barrier, 0 … 15.
    pub barrier: u8,
    /// The threshold, 0 … 64, or modulo 16 the other barrier.
    pub operand: u8,
    /// Register of a count.
    pub rd: u8,
}

/// How many blocks a launch has and how large they are, for any shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridSize {
    /// One block of all threads of the core.
    Whole,
    /// Blocks of 1 + so many 256ths of the core's other threads, and so many quarters of the blocks that the core
    /// holds.
    Blocks(u8, u8),
}

/// Memory that several threads access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// A few words for all.
    Main,
    /// The block's scratchpad.
    Scratchpad,
}

/// What is done to memory, with the number of its size and sign or of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Into the register.
    Load(u8),
    /// Of the register.
    Store(u8),
    /// Old value into the register; the operand is another one.
    Atomic(u8, u8),
}

/// A function: its blocks in order; the last one returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// It returns through x5 instead of x1.
    pub alternate_link: bool,
    /// At least one.
    pub blocks: Vec<Block>,
}

/// Instructions without a way out of them, and the way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// In order.
    pub ops: Vec<Op>,
    /// What comes after.
    pub end: End,
}

/// How a register begins, as a function of the thread's number `t`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Init {
    /// The same for all threads.
    Constant(i32),
    /// t × factor + term.
    Linear(i16, i16),
    /// Some of the bits of t.
    Masked(u8),
}

/// One instruction, or a few that belong together. Registers are taken modulo their number, x0 among them now and then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// An instruction on two registers: number in [`super::assemble`]'s list, rd, rs1, rs2.
    Compute(u8, u8, u8, u8),
    /// The same with an immediate: number, rd, rs1, immediate.
    Immediate(u8, u8, u8, i16),
    /// `lui` or `auipc`: which, rd, upper 20 bits.
    Upper(bool, u8, u32),
    /// An access to one of the thread's words, or to one of its stack's if the flag is on and the stack has the window:
    /// register, word, byte.
    Own(bool, Access, u8, u8, u8),
    /// An access to memory where threads race: register, register that says where, how far the threads' places are
    /// apart, and by how many bits they are moved further apart.
    Share(Shared, Access, u8, u8, u8, u8),
    /// A division, and a use or an overwriting of its result: number, rd, rs1, then which.
    Late(u8, u8, u8, bool),
    /// A CSR: place in the map, rd.
    Csr(u8, u8),
    /// `fence`.
    Fence,
    /// `barrier`, while the thread has some left.
    Barrier,
    /// A call of a later function, or of this one.
    Call(u8),
    /// A call of one of two functions, by a register that may differ between threads; through the link register itself
    /// if the flag is on.
    CallEither(u8, u8, u8, bool),
    /// Each thread jumps to one of up to 64 places, by a register added to its number, and all go on behind them:
    /// register that is changed, register, log2 of the places.
    Scatter(u8, u8, u8),
    /// Threads whose low bits of two registers agree end here: registers, bits.
    Leave(u8, u8, u8),
}

/// How a block ends. Distances count blocks from the next one: 0 is the next, -1 this one again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The next block.
    Next,
    /// A jump.
    Jump(i8),
    /// A branch, else the next block.
    Branch(Condition, i8),
    /// A jump to one of four blocks ahead, by a register: the register and the distances.
    Switch(u8, [u8; 4]),
}

/// When a branch is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Number of the comparison, rs1, rs2.
    Compare(u8, u8, u8),
    /// A bit of a register added to the thread's number.
    Bit(u8, u8),
    /// A bit of the thread's number.
    Thread(u8),
}

impl RandomProgram {
    /// A program of up to 4 functions.
    pub(super) fn new(r: &mut Rng) -> RandomProgram {
        RandomProgram {
            init: (0..VALUES).map(|_| init(r)).collect(),
            fuel: r.u8(0..=10),
            interleaved: r.bool(),
            stack_window: r.bool(),
            barriers: r.u8(0..=6),
            grid: if r.bool() { GridSize::Whole } else { GridSize::Blocks(r.u8(..), r.u8(..)) },
            functions: some(r, 1..=4, |r| Function { alternate_link: r.bool(), blocks: some(r, 1..=7, block) }),
            hints: some(r, 0..=48, hint),
        }
    }

    /// Programs that have one thing less than this, the largest things first.
    pub(super) fn smaller(&self) -> impl Iterator<Item = RandomProgram> {
        let place = |(f, function): (usize, &Function)| (0..function.blocks.len()).map(move |b| (f, b));
        let blocks: Vec<(usize, usize)> = self.functions.iter().enumerate().flat_map(place).collect();
        let functions = 0..self.functions.len();
        let without_function = functions.filter(|_| self.functions.len() > 1).map(|f| {
            self.but(|p| {
                p.functions.remove(f);
            })
        });
        let several = blocks.clone().into_iter().filter(|&(f, _)| self.functions[f].blocks.len() > 1);
        let without_block = several.map(|(f, b)| {
            self.but(|p| {
                p.functions[f].blocks.remove(b);
            })
        });
        let ends = blocks.clone().into_iter();
        let ends = ends.filter(|&(f, b)| !matches!(self.functions[f].blocks[b].end, End::Next));
        let without_end = ends.map(|(f, b)| self.but(|p| p.functions[f].blocks[b].end = End::Next));
        let op = |(f, b): (usize, usize)| (0..self.functions[f].blocks[b].ops.len()).map(move |op| (f, b, op));
        let without_op = blocks.into_iter().flat_map(op).map(|(f, b, op)| {
            self.but(|p| {
                p.functions[f].blocks[b].ops.remove(op);
            })
        });
        let without_hint = (0..self.hints.len()).map(|hint| {
            self.but(|p| {
                p.hints.remove(hint);
            })
        });
        let simple: [fn(&mut RandomProgram); 6] = [
            |p| p.grid = GridSize::Whole,
            |p| p.barriers = 0,
            |p| p.fuel /= 2,
            |p| p.interleaved = false,
            |p| p.stack_window = false,
            |p| p.init.fill(Init::Constant(0)),
        ];
        let simpler = simple.into_iter().map(|change| self.but(change)).filter(move |p| p != self);
        without_function.chain(without_block).chain(without_end).chain(without_op).chain(without_hint).chain(simpler)
    }

    fn but(&self, change: impl FnOnce(&mut RandomProgram)) -> RandomProgram {
        let mut program = self.clone();
        change(&mut program);
        program
    }
}

/// So many of them.
fn some<T>(r: &mut Rng, count: RangeInclusive<usize>, mut one: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    (0..r.usize(count)).map(|_| one(r)).collect()
}

/// The number of a weight, as often as it weighs.
fn weighted<const N: usize>(r: &mut Rng, weights: [u32; N]) -> usize {
    let mut left = r.u32(0..weights.iter().sum());
    let mut number = 0;
    while left >= weights[number] {
        left -= weights[number];
        number += 1;
    }
    number
}

/// Of a few barriers, so that threads reconverge at them; now and then of any.
fn hint(r: &mut Rng) -> Hint {
    Hint {
        at: r.u16(..),
        operation: 1 + weighted(r, [3, 4, 1, 1, 1, 1]) as u8,
        barrier: if r.u8(0..5) > 0 { r.u8(0..3) } else { r.u8(0..16) },
        operand: if r.u8(0..5) > 0 { r.u8(0..3) } else { r.u8(0..=64) },
        rd: register(r),
    }
}

fn init(r: &mut Rng) -> Init {
    match r.u8(0..3) {
        0 => Init::Constant(match r.u8(0..6) {
            0 => 0,
            1 => 1,
            2 => -1,
            3 => i32::MIN,
            4 => i32::MAX,
            _ => r.i32(..),
        }),
        1 => Init::Linear(r.i16(..), r.i16(..)),
        _ => Init::Masked(r.u8(..)),
    }
}

fn block(r: &mut Rng) -> Block {
    Block { ops: some(r, 0..=6, op), end: end(r) }
}

fn register(r: &mut Rng) -> u8 {
    r.u8(0..=VALUES)
}

fn access(r: &mut Rng) -> Access {
    match weighted(r, [5, 5, 2]) {
        0 => Access::Load(r.u8(0..5)),
        1 => Access::Store(r.u8(0..3)),
        _ => Access::Atomic(r.u8(0..9), register(r)),
    }
}

fn op(r: &mut Rng) -> Op {
    match weighted(r, [8, 4, 1, 10, 4, 1, 1, 1, 2, 2, 2, 1, 1]) {
        0 => Op::Compute(r.u8(..), register(r), register(r), register(r)),
        1 => Op::Immediate(r.u8(..), register(r), register(r), r.i16(..)),
        2 => Op::Upper(r.bool(), register(r), r.u32(..)),
        3 => Op::Own(r.f64() < 0.3, access(r), register(r), r.u8(0..WORDS), r.u8(0..4)),
        4 => {
            let shared = if r.bool() { Shared::Main } else { Shared::Scratchpad };
            Op::Share(shared, access(r), register(r), register(r), r.u8(0..4), r.u8(0..4))
        }
        5 => Op::Late(r.u8(0..4), register(r), register(r), r.bool()),
        6 => Op::Csr(r.u8(..), register(r)),
        7 => Op::Fence,
        8 => Op::Barrier,
        9 => Op::Call(r.u8(..)),
        10 => Op::CallEither(register(r), r.u8(..), r.u8(..), r.bool()),
        11 => Op::Scatter(register(r), register(r), r.u8(1..=6)),
        _ => Op::Leave(register(r), register(r), r.u8(2..=5)),
    }
}

fn end(r: &mut Rng) -> End {
    match weighted(r, [2, 2, 6, 1]) {
        0 => End::Next,
        1 => End::Jump(distance(r)),
        2 => End::Branch(condition(r), distance(r)),
        _ => End::Switch(r.u8(0..VALUES), std::array::from_fn(|_| r.u8(0..5))),
    }
}

fn distance(r: &mut Rng) -> i8 {
    if weighted(r, [3, 2]) == 0 { r.i8(0..=4) } else { r.i8(-4..=-1) }
}

fn condition(r: &mut Rng) -> Condition {
    match weighted(r, [3, 3, 2]) {
        0 => Condition::Compare(r.u8(0..6), register(r), register(r)),
        1 => Condition::Bit(r.u8(0..VALUES), r.u8(0..5)),
        _ => Condition::Thread(r.u8(0..6)),
    }
}

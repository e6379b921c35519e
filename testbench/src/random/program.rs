//! What a random program is made of, and how likely each thing is.

use proptest::collection::vec;
use proptest::prelude::*;

/// Registers that hold random values are numbered 0 to 5 here.
pub const VALUES: u8 = 6;
/// Words of memory that each thread has, and of its stack that it accesses as it likes.
pub const WORDS: u8 = 8;

/// A program, before it knows the shape it runs on.
#[derive(Clone, Debug)]
pub struct RandomProgram {
    /// First values of the registers.
    pub init: Vec<Init>,
    /// How many times a thread goes backward.
    pub fuel: u8,
    /// Words of the same number lie side by side for all threads, so that a warp's accesses are one; else a thread's words
    /// do.
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
    /// 1 … 6: [`heddle_simt::isa::convergence`].
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
    /// Blocks of 1 + so many 256ths of the core's other threads, and so many quarters of the blocks that the core holds.
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
#[derive(Clone, Debug)]
pub struct Function {
    /// It returns through x5 instead of x1.
    pub alternate_link: bool,
    /// At least one.
    pub blocks: Vec<Block>,
}

/// Instructions without a way out of them, and the way out.
#[derive(Clone, Debug)]
pub struct Block {
    /// In order.
    pub ops: Vec<Op>,
    /// What comes after.
    pub end: End,
}

/// How a register begins, as a function of the thread's number `t`.
#[derive(Clone, Debug)]
pub enum Init {
    /// The same for all threads.
    Constant(i32),
    /// t × factor + term.
    Linear(i16, i16),
    /// Some of the bits of t.
    Masked(u8),
}

/// One instruction, or a few that belong together. Registers are taken modulo their number, x0 among them now and then.
#[derive(Clone, Debug)]
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
    /// An access to memory where threads race: register, register that says where, how far the threads' places are apart,
    /// and by how many bits they are moved further apart.
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
    /// A call of one of two functions, by a register that may differ between threads; through the link register itself if
    /// the flag is on.
    CallEither(u8, u8, u8, bool),
    /// Each thread jumps to one of up to 64 places, by a register added to its number, and all go on behind them: register
    /// that is changed, register, log2 of the places.
    Scatter(u8, u8, u8),
    /// Threads whose low bits of two registers agree end here: registers, bits.
    Leave(u8, u8, u8),
}

/// How a block ends. Distances count blocks from the next one: 0 is the next, -1 this one again.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub enum Condition {
    /// Number of the comparison, rs1, rs2.
    Compare(u8, u8, u8),
    /// A bit of a register added to the thread's number.
    Bit(u8, u8),
    /// A bit of the thread's number.
    Thread(u8),
}

/// Programs of up to 4 functions.
pub fn programs() -> impl Strategy<Value = RandomProgram> {
    let memory = (any::<bool>(), any::<bool>());
    let grid =
        prop_oneof![Just(GridSize::Whole), any::<(u8, u8)>().prop_map(|(size, count)| GridSize::Blocks(size, count))];
    let parts =
        (vec(init(), VALUES as usize), 0..=10u8, memory, 0..=6u8, grid, vec(function(), 1..=4), vec(hint(), 0..=48));
    parts.prop_map(|(init, fuel, (interleaved, stack_window), barriers, grid, functions, hints)| RandomProgram {
        init,
        fuel,
        interleaved,
        stack_window,
        barriers,
        grid,
        functions,
        hints,
    })
}

/// Of a few barriers, so that threads meet at them; now and then of any.
fn hint() -> impl Strategy<Value = Hint> {
    let barrier = prop_oneof![4 => 0..3u8, 1 => 0..16u8];
    let operation =
        prop_oneof![3 => Just(1u8), 4 => Just(2u8), 1 => Just(3u8), 1 => Just(4u8), 1 => Just(5u8), 1 => Just(6u8)];
    let operand = prop_oneof![4 => 0..3u8, 1 => 0..=64u8];
    (any::<u16>(), operation, barrier, operand, 0..=VALUES).prop_map(|(at, operation, barrier, operand, rd)| Hint {
        at,
        operation,
        barrier,
        operand,
        rd,
    })
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        5 => (0..5u8).prop_map(Access::Load),
        5 => (0..3u8).prop_map(Access::Store),
        2 => (0..9u8, 0..=VALUES).prop_map(|(operation, operand)| Access::Atomic(operation, operand)),
    ]
}

fn function() -> impl Strategy<Value = Function> {
    (any::<bool>(), vec(block(), 1..=7)).prop_map(|(alternate_link, blocks)| Function { alternate_link, blocks })
}

fn block() -> impl Strategy<Value = Block> {
    (vec(op(), 0..=6), end()).prop_map(|(ops, end)| Block { ops, end })
}

fn init() -> impl Strategy<Value = Init> {
    let edge = prop_oneof![Just(0), Just(1), Just(-1), Just(i32::MIN), Just(i32::MAX), any::<i32>()];
    prop_oneof![
        edge.prop_map(Init::Constant),
        any::<(i16, i16)>().prop_map(|(factor, term)| Init::Linear(factor, term)),
        any::<u8>().prop_map(Init::Masked),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let register = || 0..=VALUES;
    let word = || 0..WORDS;
    let shared = prop_oneof![Just(Shared::Main), Just(Shared::Scratchpad)];
    prop_oneof![
        8 => (any::<u8>(), register(), register(), register()).prop_map(|(k, d, a, b)| Op::Compute(k, d, a, b)),
        4 => (any::<u8>(), register(), register(), any::<i16>()).prop_map(|(k, d, a, v)| Op::Immediate(k, d, a, v)),
        1 => (any::<bool>(), register(), any::<u32>()).prop_map(|(pc, d, v)| Op::Upper(pc, d, v)),
        10 => (prop::bool::weighted(0.3), access(), register(), word(), 0..4u8)
            .prop_map(|(stack, a, r, w, b)| Op::Own(stack, a, r, w, b)),
        4 => (shared, access(), register(), register(), 0..4u8, 0..4u8)
            .prop_map(|(shared, a, r, by, spread, apart)| Op::Share(shared, a, r, by, spread, apart)),
        1 => (0..4u8, register(), register(), any::<bool>()).prop_map(|(k, d, a, over)| Op::Late(k, d, a, over)),
        1 => (any::<u8>(), register()).prop_map(|(k, d)| Op::Csr(k, d)),
        1 => Just(Op::Fence),
        2 => Just(Op::Barrier),
        2 => any::<u8>().prop_map(Op::Call),
        2 => (register(), any::<u8>(), any::<u8>(), any::<bool>()).prop_map(|(v, f, g, l)| Op::CallEither(v, f, g, l)),
        1 => (register(), register(), 1..=6u8).prop_map(|(d, by, bits)| Op::Scatter(d, by, bits)),
        1 => (register(), register(), 2..=5u8).prop_map(|(a, b, bits)| Op::Leave(a, b, bits)),
    ]
}

fn end() -> impl Strategy<Value = End> {
    let distance = || prop_oneof![3 => 0..=4i8, 2 => -4..=-1i8];
    let condition = prop_oneof![
        3 => (0..6u8, 0..=VALUES, 0..=VALUES).prop_map(|(k, a, b)| Condition::Compare(k, a, b)),
        3 => (0..VALUES, 0..5u8).prop_map(|(v, bit)| Condition::Bit(v, bit)),
        2 => (0..6u8).prop_map(Condition::Thread),
    ];
    prop_oneof![
        2 => Just(End::Next),
        2 => distance().prop_map(End::Jump),
        6 => (condition, distance()).prop_map(|(c, d)| End::Branch(c, d)),
        1 => (0..VALUES, [0..5u8, 0..5u8, 0..5u8, 0..5u8]).prop_map(|(v, to)| End::Switch(v, to)),
    ]
}

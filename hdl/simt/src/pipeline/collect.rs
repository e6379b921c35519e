//! Stages 5 and 6, operand collection: register banks, one per lane, and the choice of operands.
//!
//! Stage 5 presents the addresses; stage 6 has the words, or the value of a CSR, and selects. A word that is written at
//! the clock edge at which it is read is read new, so an instruction may issue 6 cycles after the one that computes its
//! operand.

use crate::block::Grid;
use crate::csr::{self, Source};
use crate::divergence::interface::warp_of;
use crate::lane::alu;
use crate::pipeline::decoded::Decoded;
use crate::pipeline::issue::Reading;
use crate::shape::{BankAddress, Shape};
use heddle_hdl::{all, case, each, elements, prelude::*};

/// An instruction past issue: its slot, its threads, what it is.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Instruction<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(s.lanes)]
    pub mask: T,
    /// The static warp of each lane, where a slot [mixes](Shape::mixes) them.
    #[width(s.homes_bits())]
    pub homes: Option<T>,
    pub decoded: Decoded<T>,
    /// Entry of the load queue, of an access that is answered; only under [`crate::shape::Replay::Split`].
    #[width(index_width(s.loads))]
    pub tag: T,
}

/// A write into the register banks.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Write<T> {
    /// One bit per lane.
    #[width(s.lanes)]
    pub lanes: T,
    /// The warp, or where a slot mixes warps, the slot; and then the static warp of each lane.
    #[width(s.warp_bits())]
    pub warp: T,
    #[width(s.homes_bits())]
    pub homes: Option<T>,
    #[width(5)]
    pub rd: T,
    /// 32 bits per lane.
    #[width(32 * s.lanes)]
    pub data: T,
}

/// A slot that gets a warp of a block.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Started<T> {
    pub valid: T,
    #[width(s.warp_bits())]
    pub slot: T,
    /// Number of the block in the grid, 32 bits.
    #[width(32)]
    pub block: T,
}

/// What goes with an instruction from its issue, as in [`Instruction`].
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct IssuedThreads<T> {
    pub valid: T,
    pub slot: T,
    pub mask: T,
    pub homes: Option<T>,
    pub tag: T,
}

impl IssuedThreads<Width> {
    pub fn shape(s: &Shape) -> IssuedThreads<Width> {
        let Instruction { valid, slot, mask, homes, tag, .. } = Instruction::shape(s);
        IssuedThreads { valid, slot, mask, homes, tag }
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CollectIn<T> {
    /// Stage 4; what stage 5 knows of its instruction; and the instruction, in stage 6.
    pub issued: IssuedThreads<T>,
    pub reading: Reading<T>,
    pub decoded: Decoded<T>,
    pub write: Write<T>,
    pub grid: Grid<T>,
    /// A warp of the block `block` (32 bits) starts on `slot`.
    pub started: Started<T>,
    #[width(Counters::shape(s))]
    pub counters: Option<Counters<T>>,
}

/// Since the launch, 64 bits each; in a core that has them.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Counters<T> {
    pub cycles: T,
    /// Thread instructions committed.
    pub instructions: T,
}

impl Counters<Width> {
    pub fn shape(s: &Shape) -> Option<Counters<Width>> {
        s.counters.then_some(Counters { cycles: 64, instructions: 64 })
    }
}

/// An instruction with its operands, for stage 7.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Operands<T> {
    pub instruction: Instruction<T>,
    /// What the ALUs do.
    #[width(alu::Control::shape())]
    pub alu: alu::Control<T>,
    /// 32 bits per lane each: the operands of the ALU, and rs2 for stores.
    #[width(32 * s.lanes)]
    pub a: T,
    #[width(32 * s.lanes)]
    pub b: T,
    #[width(32 * s.lanes)]
    pub data: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CollectOut<T> {
    pub operands: Operands<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct LaneIn<T> {
    /// Stage 5.
    #[width(s.bank_bits())]
    read1: T,
    #[width(s.bank_bits())]
    read2: T,
    write: T,
    #[width(s.bank_bits())]
    write_address: T,
    #[width(32)]
    write_data: T,
    use1: T,
    use2: T,
    /// Stage 6: the first operand if it is no register, else 0; the second, where `b_imm` says so.
    #[width(32)]
    pc: T,
    #[width(32)]
    imm: T,
    b_imm: T,
    /// The lane's number is added to the immediate (which has zeros there).
    b_lane: T,
    #[width(s.lane_bits())]
    number: T,
    #[when(s.mixes())]
    home: Option<HomeIn<T>>,
}

/// Where a slot mixes warps: a lane's static warp, and whether the number of its thread in the core, in the block, or
/// of the warp is added, too.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct HomeIn<T> {
    #[width(s.warp_bits())]
    warp: T,
    #[width(s.warp_bits())]
    in_block: T,
    thread: T,
    thread_in_block: T,
    warp_itself: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneOut<T> {
    a: T,
    b: T,
    data: T,
}

/// One lane: its register bank and its operand multiplexers.
fn lane(s: &Shape) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    module("collect_lane", LaneIn::shape(s), |m, i| {
        m.doc("One lane of stages 5 and 6: the register bank and the operands.");
        let registers = m.memory("registers", 32, s.bank_bits()).style(MemoryStyle::Block);
        registers.write(i.write, i.write_address, i.write_data);
        // What is not used is 0, so that a bit of an operand is one table of four inputs: two words, which of them, and
        // the pc.
        wire!(rs1 = registers.read_sync_or_zero(i.use1, i.read1, Collision::ReadNew));
        wire!(rs2 = registers.read_sync_or_zero(i.use2, i.read2, Collision::ReadNew));
        let of_lane = i.imm | i.number.zext(32).only_if(i.b_lane);
        let immediate = i.home.map_or(of_lane, |home| {
            let first = first_thread(s, m, home.warp).only_if(home.thread);
            let in_block = first_thread(s, m, home.in_block).only_if(home.thread_in_block);
            of_lane | first | in_block | home.warp.zext(32).only_if(home.warp_itself)
        });
        wire!(immediate = immediate);
        LaneOut { a: rs1 | i.pc, b: i.b_imm.mux(immediate, rs2), data: rs2 }
    })
}

pub fn collect(s: &Shape) -> TypedModule<CollectIn<Width>, CollectOut<Signal>> {
    module("collect", CollectIn::shape(s), |m, i| {
        m.doc("Stages 5 and 6: register banks and operands.");
        let at_5 = m.stage("s5", i.issued);
        let IssuedThreads { valid, slot, mask, homes, tag } = m.stage("s6", at_5);
        let d = i.decoded;
        let at_6 = Instruction { valid, slot, mask, homes, decoded: d, tag };
        let Reading { valid: reads, registers: read, .. } = m.stage("s6_reading", i.reading);
        m.assert("a_pc_is_instead_of_a_register", !(valid & d.a_pc & d.use1));
        let said = read.use1.eq(d.use1) & read.use2.eq(d.use2) & read.rs1.eq(d.rs1) & read.rs2.eq(d.rs2);
        m.assert("what_is_read_was_said", !valid | (reads & said));
        m.assert("the_csr_was_said", !(valid & d.csr) | read.csr.eq(d.imm.slice(0, csr::BITS)));
        let blocks = m.memory("block_of_slot", 32, s.warp_bits()).style(MemoryStyle::Distributed);
        blocks.write(i.started.valid, i.started.slot, i.started.block);
        let (csr_value, csr_lane, of_homes) = csr_value(s, m, &at_6, read.csr, &i, blocks.read(warp_of(s, at_6.slot)));

        // A bank is addressed by warp and register.
        let bank = |warp: Signal, register: Signal| if s.warps == 1 { register } else { cat(&[register, warp]) };
        let read_warp = warp_of(s, at_5.slot);
        let address = |warp: Signal, homes: Option<Signal>, register: Signal| match (s.bank_address, homes) {
            (_, Some(homes)) => {
                let of_lane = elements(homes, s.warp_bits()).into_iter().map(|warp| bank(warp, register));
                each(cat(&of_lane.collect::<Vec<_>>()))
            }
            (BankAddress::Shared, None) => all(bank(warp, register)),
            (BankAddress::PerLane, None) => each(bank(warp, register).repeat(s.lanes)),
        };
        let home = at_6.homes.zip(of_homes).map(|(homes, of_homes)| {
            let [thread, thread_in_block, warp_itself] = of_homes.map(all);
            let in_block = homes & i.grid.group.repeat(s.lanes);
            HomeIn { warp: each(homes), in_block: each(in_block), thread, thread_in_block, warp_itself }
        });
        let numbers: Vec<Signal> = (0..s.lanes).map(|k| m.lit(k, s.lane_bits())).collect();
        let c = at_6.decoded;
        wire!(immediate = c.csr.mux(csr_value, c.imm));
        let pc = cat(&[m.lit(0u32, 2), c.pc]).zext(32);
        let lanes = m.replicate(
            "lane",
            s.lanes,
            &lane(s),
            LaneIn {
                read1: address(read_warp, at_5.homes, i.reading.registers.rs1),
                read2: address(read_warp, at_5.homes, i.reading.registers.rs2),
                write: each(i.write.lanes),
                write_address: address(i.write.warp, i.write.homes, i.write.rd),
                write_data: each(i.write.data),
                use1: all(i.reading.registers.use1),
                use2: all(i.reading.registers.use2),
                pc: all(pc.only_if(c.a_pc)),
                imm: all(immediate),
                b_imm: all(c.b_imm),
                b_lane: all(c.csr & csr_lane),
                number: each(cat(&numbers)),
                home,
            },
        );
        let alu = alu::Control::of(c.alu, c.divide & m.lit(s.multiply, 1));
        let operands = Operands { instruction: at_6, alu, a: lanes.a, b: lanes.b, data: lanes.data };
        CollectOut { operands: m.stage("s7", operands) }
    })
}

/// The number of a warp's first thread, 32 bits.
fn first_thread(s: &Shape, m: Builder, warp: Signal) -> Signal {
    match s.lanes.ilog2() {
        _ if s.warps == 1 => m.lit(0u32, 32),
        0 => warp.zext(32),
        shift => cat(&[m.lit(0u32, shift), warp]).zext(32),
    }
}

/// The value of the CSR with this number, without what depends on the lane: whether its number is to be added; and
/// where a slot mixes warps, whether that of its thread, of its thread in the block, or of its static warp is.
fn csr_value(
    s: &Shape,
    m: Builder,
    at: &Instruction<Signal>,
    number: Signal,
    i: &CollectIn<Signal>,
    block: Signal,
) -> (Signal, Signal, Option<[Signal; 3]>) {
    let constant = |v: u32| m.lit(v, 32);
    let warp = if s.mixes() { m.lit(0u32, s.warp_bits()) } else { warp_of(s, at.slot) };
    let CollectIn { grid, counters, .. } = *i;
    let count = |which: fn(Counters<Signal>) -> Signal, low| match counters {
        Some(counters) => (which(counters).slice(low, 32), false),
        None => (constant(0), false),
    };
    let value = |source: Source| match source {
        Source::Thread => (first_thread(s, m, warp), true),
        Source::ThreadInBlock => (first_thread(s, m, warp & grid.group), true),
        Source::Lane => (constant(0), true),
        Source::Warp => (warp.zext(32), false),
        Source::Block => (block, false),
        Source::Blocks => (grid.blocks, false),
        Source::BlockThreads => (grid.block_threads.zext(32), false),
        Source::Lanes => (constant(s.lanes), false),
        Source::Warps => (constant(s.warps), false),
        Source::Threads => (constant(s.threads()), false),
        Source::MemoryBytes => (constant(s.memory), false),
        Source::Log2StackBytes => (constant(s.stack.ilog2()), false),
        Source::CycleLow => count(|c| c.cycles, 0),
        Source::CycleHigh => count(|c| c.cycles, 32),
        Source::InstructionsLow => count(|c| c.instructions, 0),
        Source::InstructionsHigh => count(|c| c.instructions, 32),
    };
    let arms: Vec<(u32, (Signal, bool))> =
        csr::map(s.counters).map(|c| (u32::from(c.address), value(c.source))).collect();
    let values: Vec<(u32, Signal)> = arms.iter().map(|(a, (v, _))| (*a, *v)).collect();
    let lanes: Vec<(u32, Signal)> = arms.iter().map(|(a, (_, lane))| (*a, m.lit(*lane, 1))).collect();
    wire!(csr_value = case(number, &values, constant(0)));
    wire!(csr_lane = case(number, &lanes, m.lit(0u32, 1)));
    let of_homes = s.mixes().then(|| {
        [Source::Thread, Source::ThreadInBlock, Source::Warp].map(|source| {
            let registers = csr::MAP.iter().filter(|c| c.source == source);
            let named = registers.map(|c| number.eq(u32::from(c.address))).collect::<Vec<_>>();
            at.decoded.csr & cat(&named).any()
        })
    });
    (csr_value, csr_lane, of_homes)
}

#[cfg(test)]
mod tests;

//! Stage 4, issue: the instruction buffers, and the choice of a slot ([`crate::pipeline::schedule`]) whose first
//! instruction can go.
//!
//! The first instruction of a slot is looked up in the scoreboard ([`crate::scoreboard`]) in one cycle, and may go from
//! the next one on, if its registers are not pending then; so a slot issues in every other cycle at most. It goes when
//! its unit has room: an access to memory needs a place in the queue before the memory port (where there is one), one
//! that memory answers a free entry of the load queue (if it is taken here), a divide the divider. A memory instruction
//! that is replayed for threads that were left unserved does not wait for registers: it waited when it issued first.
//!
//! What a choice and the scoreboard need of an instruction is kept a slot, in the [row](row) of its buffer. The
//! instruction itself is in a memory for all slots, which is addressed in stage 5, out of registers, and has it for
//! stage 6; what stage 5 itself needs of it is in a memory of tables.
//!
//! Nothing stalls after this stage. `bubble` holds all issue for a cycle, so that a late result gets the write port;
//! and each issue holds it for [`Shape::issue_interval`] less one.

use super::pairs::{Pairs, PairsIn};
use super::schedule::{Candidates, by_age, by_block, choose};
use crate::csr;
use crate::divergence::interface::{Steer, Unissued};
use crate::pipeline::decoded::Decoded;
use crate::shape::Shape;
use heddle_hdl::{all, each, elements, prelude::*};

/// An instruction with its slot.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Slotted<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    pub decoded: Decoded<T>,
    /// See [`DecodeOut::registers`](super::decode::DecodeOut::registers).
    #[width(32)]
    pub registers: T,
    /// See [`DecodeOut::passes`](super::decode::DecodeOut::passes).
    #[when(s.passes())]
    pub passes: Option<T>,
}

/// What is known in this stage of an instruction that issues. All but `slot` and `pc` are 0 if none does.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Issued<T> {
    pub valid: T,
    pub slot: T,
    /// Instruction number.
    pub pc: T,
    /// It accesses memory, which answers.
    pub accesses: T,
    pub answers: T,
    pub divide: T,
    /// The divergence unit may hold it back.
    pub control: T,
}

/// What stage 5 knows of the instruction that issued in the cycle before.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Reading<T> {
    /// There is one; else `registers` are those of any other.
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(Registers::shape())]
    pub registers: Registers<T>,
}

/// The registers of an instruction.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Registers<T> {
    pub rs1: T,
    pub rs2: T,
    pub rd: T,
    /// It reads rs1, rs2; writes rd.
    pub use1: T,
    pub use2: T,
    pub writes: T,
    /// The number of the CSR that it reads, [`csr::BITS`] bits.
    pub csr: T,
}

impl Registers<Width> {
    fn shape() -> Registers<Width> {
        Registers { rs1: 5, rs2: 5, rd: 5, use1: 1, use2: 1, writes: 1, csr: csr::BITS }
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct IssueIn<T> {
    /// From decode.
    pub decoded: Slotted<T>,
    pub steer: Steer<T>,
    /// One bit per warp: it is started. Where the schedule is by age.
    #[width(s.warps)]
    #[when(by_age(s))]
    pub starts: Option<T>,
    /// See [`crate::block::Grid::group`]. Where the schedule is by block.
    #[width(s.warp_bits())]
    #[when(by_block(s))]
    pub group: Option<T>,
    /// From the scoreboard, one bit per slot: no register of its head will be pending in the next cycle.
    #[width(s.slots())]
    pub clear: T,
    /// There is a place for an access to memory / for one that is answered; the divider is free.
    pub access_room: T,
    pub load_room: T,
    pub divider_free: T,
    /// The divergence unit holds back control instructions and those on convergence barriers.
    pub hold_control: T,
    pub bubble: T,
    #[width(PairsIn::shape(s))]
    pub pairs: Option<PairsIn<T>>,
    /// One bit per slot: its control instructions are held back. For units that let warps run ahead.
    #[width(s.slots())]
    #[when(s.predicts())]
    pub held: Option<T>,
    /// One bit per slot: but for one that passes.
    #[width(s.slots())]
    #[when(s.passes())]
    pub may_pass: Option<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct IssueOut<T> {
    pub issued: Issued<T>,
    pub reading: Reading<T>,
    /// In stage 6: the instruction that issued two cycles before.
    pub decoded: Decoded<T>,
    /// The instruction is a replay.
    pub replay: T,
    /// For each slot, 32 bits: the registers that the head of its buffer reads or writes. They mean nothing where the
    /// buffer is empty.
    pub heads: T,
    /// Instructions in each buffer, `count_width(buffer)` bits per slot.
    pub buffered: T,
    pub idle: Idle<T>,
    /// Of the sibling of `resolved_slot`, where a warp has two slots.
    pub unissued: Option<Unissued<T>>,
    /// One bit per slot: its control instruction in stage 8 has no effect, and issues again. Where two of a warp may be
    /// unresolved.
    pub squashes: Option<T>,
}

/// Why slots with an instruction could not issue it, one bit per slot.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Idle<T> {
    #[width(s.slots())]
    pub filled: T,
    /// A register is pending, or was when it was looked up.
    #[width(s.slots())]
    pub scoreboard: T,
    /// No entry in the load queue, no divider, or issue is held.
    #[width(s.slots())]
    pub unit: T,
    /// It could go, but the divergence unit holds it back, or the other path of its warp.
    #[width(s.slots())]
    pub held: T,
    /// 1 bit: an access that memory answers finds no entry of the load queue.
    pub loads: T,
    /// 1 bit: the last issue takes this cycle, too.
    #[when(s.issue_interval > 1)]
    pub turn: Option<T>,
}

/// What a slot's head needs to know early, beside the shared buffer memory.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Head<T> {
    /// One bit per register: it reads or writes it. x0, which is never pending, is for whatever it does not use.
    registers: T,
    accesses: T,
    answers: T,
    divide: T,
    /// The divergence unit may hold it back.
    control: T,
    /// It is a conditional branch. Where two control instructions of a warp may be unresolved.
    branch: Option<T>,
    /// A warp that is ahead may pass it.
    passes: Option<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowIn<T> {
    push: T,
    pop: T,
    flush: Option<T>,
    entry: Head<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowOut<T> {
    head: Head<T>,
    count: T,
    /// Places of the first and of the next free entry.
    first: T,
    free: T,
}

/// Buffers of all slots with as many address bits are block RAM: distributed RAM would be larger.
const BLOCK_RAM: Width = 4;

/// The bookkeeping of one slot's buffer.
fn row(s: &Shape) -> TypedModule<RowIn<Width>, RowOut<Signal>> {
    let branch = s.overlaps_control().then_some(1);
    let passes = s.passes().then_some(1);
    let entry = Head { registers: 32, accesses: 1, answers: 1, divide: 1, control: 1, branch, passes };
    let place = index_width(s.buffer);
    let flush = (s.sides() > 1).then_some(1);
    module("issue_row", RowIn { push: 1, pop: 1, flush, entry }, |m, i| {
        m.doc("One slot's instruction buffer: places, count, and what its head needs.");
        let first = m.reg("first", place).reset(0u32);
        let free = m.reg("free", place).reset(0u32);
        let count = m.reg("count", count_width(s.buffer)).reset(0u32);
        let flush = i.flush.unwrap_or(m.lit(0u32, 1));
        first.next_if(i.pop | flush, flush.mux(free.q, first.q + 1));
        free.next_if(i.push, free.q + 1);
        let changed = i.push.mux(count.q + 1, count.q - 1);
        count.next_if((i.push ^ i.pop) | flush, flush.mux(changed.literal(0u32), changed));
        let entries = m.memory("heads", entry, place).style(MemoryStyle::Distributed);
        entries.write(i.push, free.q, i.entry);
        m.assert("no_overflow", !(i.push & !i.pop & count.q.eq(s.buffer)));
        m.assert("no_underflow", !(i.pop & count.q.eq(0)));
        if i.flush.is_some() {
            m.assert("nothing_is_pushed_that_is_flushed", !(i.push & flush));
        }
        m.cover("full", count.q.eq(s.buffer));
        RowOut { head: entries.read(first.q), count: count.q, first: first.q, free: free.q }
    })
}

pub fn issue(s: &Shape) -> TypedModule<IssueIn<Width>, IssueOut<Signal>> {
    module("issue", IssueIn::shape(s), |m, i| {
        m.doc("Stage 4: instruction buffers and the choice of an instruction to issue.");
        let d = i.decoded.decoded;
        let registers = i.decoded.registers;
        let entry = Head {
            registers,
            accesses: d.accesses(),
            answers: d.answers,
            divide: d.divide,
            control: d.takes_turn(),
            branch: s.overlaps_control().then_some(d.branch),
            passes: i.decoded.passes,
        };
        wire!(push = i.decoded.slot.decode(s.slots()) & i.decoded.valid.repeat(s.slots()));
        let pop = m.deferred("pop", s.slots());
        let entry = entry.map("", &mut |_, e| all(e));
        let flushed = i.pairs.map(|pairs| pairs.flush.slot.decode(s.slots()).only_if(pairs.flush.valid));
        let flush = flushed.map(each);
        let rows =
            m.replicate("row", s.slots(), &row(s), RowIn { push: each(push), pop: each(pop.value), flush, entry });

        let count_bits = count_width(s.buffer);
        wire!(filled = cat(&elements(rows.count, count_bits).into_iter().map(|c| c.any()).collect::<Vec<_>>()));
        // The next instruction of the slot is a replay.
        let replay = m.reg("replays", s.slots()).reset(0u32);
        wire!(steered = i.steer.slot.decode(s.slots()) & (i.steer.valid & i.steer.replay).repeat(s.slots()));
        let pairs = i.pairs.map(|pairs| Pairs::new(s, m, pairs));
        let may_replay = pairs.as_ref().map_or(replay.q, |pairs| replay.q & pairs.may_replay());
        let head = rows.head;
        // Found a cycle ago, of the instruction that is still the first: its registers are not pending; what it is.
        let registers_ok = m.reg("registers_ok", s.slots()).reset(0u32);
        let registers_ok_next = filled & (i.clear | may_replay);
        let [accesses, answers, divide, control] = [
            ("accesses", head.accesses),
            ("answers", head.answers),
            ("divide", head.divide),
            ("control", head.control),
        ]
        .map(|(name, bits)| m.pipe(&format!("first_{name}"), bits));
        let branch = head.branch.map(|bits| m.pipe("first_branch", bits));
        let passes = head.passes.map(|bits| m.pipe("first_passes", bits));
        let goes = i.may_pass.zip(passes).map(|(may_pass, passes)| may_pass & passes);
        let held = i.held.map(|held| goes.map_or(held, |goes| held & !goes));
        let no = |condition: Signal| (!condition).repeat(s.slots());
        // Cycles that are left of the last issue's.
        let turns = (s.issue_interval > 1).then(|| m.reg("turns_left", s.issue_interval.ilog2()).reset(0u32));
        let turn = turns.as_ref().map_or(m.lit(0u32, 1), |turns| turns.q.any());
        wire!(no_room = (accesses & no(i.access_room)) | (answers & no(i.load_room)) | (divide & no(i.divider_free)));
        wire!(
            unit_busy =
                no_room | (control & (i.hold_control.repeat(s.slots()) | held.unwrap_or(m.lit(0u32, s.slots()))))
        );
        wire!(open = !(i.bubble | turn));
        wire!(may_go = registers_ok.q & !unit_busy);
        wire!(ready = pairs.as_ref().map_or(may_go, |pairs| may_go & pairs.may_issue(control, branch)));
        let considered = pairs.as_ref().and_then(Pairs::considered);
        let waiting = considered.map_or(filled, |considered| filled & considered);
        let (choice, any) = choose(m, s, Candidates { waiting, ready, open, starts: i.starts, group: i.group });
        pop.drive(choice);
        let leaves = flushed.map_or(choice, |flushed| choice | flushed);
        registers_ok.next(registers_ok_next & !leaves);
        if let Some(turns) = turns {
            let last = turns.q.literal(s.issue_interval - 1);
            turns.next(any.mux(last, turns.q - turns.q.any().zext(turns.q.width())));
        }
        replay.next((replay.q & !choice) | steered);
        wire!(slot = choice.one_hot_index());
        let kept = keep(s, m, &i.decoded, &rows, Chosen { valid: any, slots: choice, slot });

        wire!(unit = registers_ok.q & (no_room | no(open)));
        let scoreboard = filled & !registers_ok.q;
        let held_back = registers_ok.q & !unit & !ready;
        let loads = (registers_ok.q & answers).any() & !i.load_room;
        let idle =
            Idle { filled, scoreboard, unit, held: held_back, loads, turn: (s.issue_interval > 1).then_some(turn) };
        cover_waits(m, &i, &idle, registers_ok.q, [accesses, answers, divide, control]);
        m.cover("several_could_issue", (ready & !choice).any() & open);
        m.cover("replay", (replay.q & choice).any());
        m.cover("replay_with_its_register_pending", (replay.q & choice & !m.pipe("was_clear", i.clear)).any());
        m.assert("first_instruction_is_there", !(registers_ok.q & !filled).any());
        let of_choice = |bits: Signal| (bits & choice).any();
        let issued = Issued {
            valid: any,
            slot,
            pc: kept.pc,
            accesses: of_choice(accesses),
            answers: of_choice(answers),
            divide: of_choice(divide),
            control: of_choice(control),
        };
        let noted = pairs.map(|pairs| pairs.issue(s, m, &issued, i.steer));
        IssueOut {
            issued,
            reading: kept.reading,
            decoded: kept.decoded,
            replay: (replay.q & choice).any(),
            heads: head.registers,
            buffered: rows.count,
            idle,
            unissued: noted.as_ref().map(|noted| noted.unissued),
            squashes: noted.and_then(|noted| noted.squashes),
        }
    })
}

/// The slot that issues.
struct Chosen {
    valid: Signal,
    /// One bit per slot, and its number.
    slots: Signal,
    slot: Signal,
}

/// What is read of its instruction.
struct Kept {
    pc: Signal,
    reading: Reading<Signal>,
    /// In stage 6.
    decoded: Decoded<Signal>,
}

/// Keeps instructions from decode until they issue. Those of all slots share memories, with the slot above the place.
fn keep(s: &Shape, m: Builder, coming: &Slotted<Signal>, rows: &RowOut<Signal>, chosen: Chosen) -> Kept {
    let (d, place) = (coming.decoded, index_width(s.buffer));
    let bits = s.slots().ilog2() + place;
    let style = if bits < BLOCK_RAM { MemoryStyle::Distributed } else { MemoryStyle::Block };
    let buffer = m.memory("buffer", Decoded::shape(s), bits).style(style);
    let at = |slot: Signal, place: Signal| if s.slots() == 1 { place } else { cat(&[place, slot]) };
    let written = at(coming.slot, rows.free.select(coming.slot, place));
    buffer.write(coming.valid, written, d);
    let read = at(chosen.slot, select_one_hot(&elements(rows.first, place), chosen.slots));
    let registers = m.memory("registers", Registers::shape(), bits).style(MemoryStyle::Distributed);
    let Decoded { rs1, rs2, rd, use1, use2, writes, .. } = d;
    let csr = d.imm.slice(0, csr::BITS);
    registers.write(coming.valid, written, Registers { rs1, rs2, rd, use1, use2, writes, csr });
    let (reads, read_at_5) = (m.pipe_reset("s5_reads", chosen.valid), m.pipe("s5_read", read));
    let decoded = buffer.read_sync_if(reads, read_at_5, Collision::Never);
    m.assert("an_instruction_is_read_before_its_place_is_filled", !(reads & coming.valid & written.eq(read_at_5)));
    // The pc is needed in this stage only where a path that is suspended goes on behind its last instruction.
    let pcs = m.memory("pcs", s.pc_bits(), bits).style(MemoryStyle::Distributed);
    pcs.write(coming.valid, written, d.pc);
    let slot = m.pipe("s5_slot", chosen.slot);
    Kept { pc: pcs.read(read), reading: Reading { valid: reads, slot, registers: registers.read(read_at_5) }, decoded }
}

/// What instructions wait for. Of the first of each slot: its registers are there; what it is.
fn cover_waits(
    m: Builder,
    i: &IssueIn<Signal>,
    idle: &Idle<Signal>,
    registers_ok: Signal,
    [accesses, answers, divide, control]: [Signal; 4],
) {
    m.cover("buffers_empty", !idle.filled.any());
    m.cover("waits_for_registers", idle.scoreboard.any());
    m.cover("waits_for_the_port", !i.access_room & (registers_ok & accesses).any());
    m.cover("waits_for_the_load_queue", !i.load_room & (registers_ok & answers).any());
    m.cover("waits_for_the_divider", !i.divider_free & (registers_ok & divide).any());
    m.cover("waits_for_the_divergence_unit", i.hold_control & (registers_ok & control).any());
    m.cover("bubble", i.bubble & idle.filled.any());
}

#[cfg(test)]
mod tests;

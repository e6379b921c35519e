//! Stages 5 to 10: what issued goes through them without a stall.

use super::memory_path::{Around, MemoryPath, memory_path};
use super::{Backward, CoreIn, FrontEnd};
use crate::divergence::interface::{Ahead, Announced, First, Hint, Hints, MixedIn, OfSlot, Outcome};
use crate::divergence::proof::held_since;
use crate::isa::{Alu, HintKind};
use crate::lane::multiplier::{MultiplierIn, multiplier};
use crate::pipeline::collect::{CollectIn, Instruction, IssuedThreads, Operands, Write, collect};
use crate::pipeline::divide::{DivideIn, DivideOut, Quotient, divide};
use crate::pipeline::execute::{ExecuteIn, ExecuteOut, Executed, execute};
use crate::pipeline::resolve::{ResolveIn, Resolved, resolve};
use crate::pipeline::timing::{
    ISSUE_TO_OUTCOME, ISSUE_TO_RESOLVE, ISSUE_TO_SECOND, MULTIPLIER_STAGES, SIDE_TABLE_REGISTERS,
};
use crate::pipeline::writeback::{WritebackIn, WritebackOut, writeback};
use crate::scoreboard::Pending;
use crate::shape::Shape;
use heddle_hdl::{all, each, prelude::*};

/// What it gives.
pub struct BackEnd {
    /// What is in the second cycle of stage 7, and in stage 8.
    pub in_execute: Instruction<Signal>,
    pub in_resolve: Instruction<Signal>,
    pub resolved: Resolved<Signal>,
    pub memory: MemoryPath,
    pub written: WritebackOut<Signal>,
    pub divider_free: Signal,
}

/// Builds it. `stopped`: a fault was before. [`Backward::faulted`]: one is now, so what comes to stage 8 has no effect.
pub fn back_end(
    s: &Shape,
    m: Builder,
    i: &CoreIn<Signal>,
    back: &Backward,
    front: &FrontEnd,
    stopped: Signal,
) -> BackEnd {
    let FrontEnd { unit, started, issued, scoreboard: marked, .. } = front;
    let write = m.deferred("write", Write::shape(s));
    let load_tag = m.deferred("load_tag", index_width(s.loads));

    // Stages 5 and 6, collect.
    let threads = IssuedThreads {
        valid: issued.issued.valid,
        slot: issued.issued.slot,
        mask: front.mask,
        homes: unit.more.mixed.and_then(|mixed| mixed.homes),
        tag: load_tag.value,
    };
    let collect_in = CollectIn {
        issued: threads,
        reading: issued.reading,
        decoded: issued.decoded,
        write: write.value,
        grid: i.grid,
        started: *started,
        counters: back.counters.as_ref().map(|counters| counters.value),
    };
    let operands = m.instance("collect", &collect(s), collect_in).operands;

    // Stage 7, execute, with multiplier and divider beside it.
    let execute_in = ExecuteIn { operands, group: i.grid.group, program_end: i.program_end };
    let ExecuteOut { executed, second, early, divisors } = m.instance("execute", &execute(s), execute_in);
    back.early.drive(early);
    let quotient_taken = m.deferred("quotient_taken", 1);
    let quotient_shown = m.deferred("quotient_shown", 1);
    let (taken, shown) = (quotient_taken.value, quotient_shown.value);
    let divided = division(s, m, DivideIn { reserve: issued.issued.divide, operands, divisors, taken, shown });
    back.divider_free.drive(divided.free);

    // Stage 8, resolve.
    let in_resolve = executed.instruction;
    let resolved = resolving(s, m, i, back, front, (operands.instruction, second, executed), stopped);
    let products = multiply(s, m, operands, resolved.result.valid & resolved.result.multiply);

    // Stage 9, memory. Its other half is the divergence unit.
    let response_taken = m.deferred("response_taken", 1);
    let around = Around {
        issued: issued.issued,
        reading: issued.reading,
        request_ready: i.request_ready,
        response: i.response,
        miss: i.miss,
        response_taken: response_taken.value,
        late: back.late.value,
        restart: i.restart,
    };
    let memory = memory_path(s, m, &resolved, around);
    back.access_room.drive(memory.access_room);
    back.load_room.drive(memory.load_room);
    load_tag.drive(memory.load_tag);
    if let Some((deferred, missed)) = back.missed.as_ref().zip(memory.loads.missing) {
        deferred.drive(m.pipe_reset("missed", missed));
    }

    // Stage 10, write back.
    let writeback_in = WritebackIn {
        computed: resolved.result,
        products,
        response: memory.response,
        load: memory.loads.load,
        owners: memory.loads.owners,
        load_last: memory.loads.last,
        quotient: divided.result,
    };
    let written = m.instance("writeback", &writeback(s), writeback_in);
    write.drive(Write { homes: unit.more.mixed.and_then(|mixed| mixed.written_homes), ..written.write });
    if let Some(mixed) = &back.mixed {
        let Instruction { slot: resolving, decoded, .. } = in_resolve;
        let (written, pc) = (written.write.warp, decoded.pc);
        let (quiet, group) = (marked.quiet, i.grid.group);
        mixed.drive(MixedIn { restart: i.restart, group, filling: i.filling, quiet, written, resolving, pc });
    }
    back.late.drive(written.late);
    if let Some((early, late)) = back.early_threads.as_ref().zip(back.late_threads.as_ref()) {
        early.drive(in_resolve.mask);
        late.drive(written.written_late.expect("the scoreboard knows threads"));
    }
    response_taken.drive(written.response_taken);
    quotient_taken.drive(written.quotient_taken);
    quotient_shown.drive(written.quotient_shown);
    back.bubble.drive(written.bubble);
    cover_awaited(m, front, &in_resolve, &written);
    BackEnd { in_execute: second, in_resolve, resolved, memory, written, divider_free: divided.free }
}

/// Resolve, and what it tells the divergence unit. `first`, `second`: the instructions in the two cycles of the stage
/// before.
fn resolving(
    s: &Shape,
    m: Builder,
    i: &CoreIn<Signal>,
    back: &Backward,
    FrontEnd { unit, issued, .. }: &FrontEnd,
    (first, second, executed): (Instruction<Signal>, Instruction<Signal>, Executed<Signal>),
    stopped: Signal,
) -> Resolved<Signal> {
    let stops = stopped | back.faulted.value;
    let squashed = squashed(back, issued.squashes, &executed.instruction);
    if let Some(hints) = &back.hints {
        hints.drive(instructions_on_barriers(s, (&first, &second), &executed, stops));
    }
    if let Some(announced) = &back.announced {
        // Whether it is at fault is known late: then its outcome does not come, nor anything else.
        let Instruction { valid, slot, decoded, .. } = executed.instruction;
        let announces = valid & decoded.control & !stopped;
        let valid = squashed.map_or(announces, |squashed| announces & !squashed);
        announced.drive(Announced { valid, slot, call: decoded.call, ret: decoded.ret });
    }
    let jump = unit.more.mixed.map(|mixed| mixed.jump);
    let resolve_in =
        ResolveIn { executed, stopped: stops, squashed, jump, count: unit.more.count, in_use: unit.more.in_use };
    let resolved = m.instance("resolve", &resolve(s), resolve_in);
    if let Some(hints) = &back.hints {
        obeys_hold(m, unit.hold, &hints.value, resolved.outcome.valid, stops);
    }
    // Block RAM answers late in its cycle, and what the unit does with the answer fills one.
    let registers = (0..SIDE_TABLE_REGISTERS).rev();
    let meets = registers.fold(i.meets, |meets, left| m.pipe(&format!("s{}_meets", 9 - left), meets));
    back.outcome.drive(Outcome { meets, ..resolved.outcome });
    if let Some((told, sequence)) = back.sequence.as_ref().zip(resolved.sequence) {
        told.drive(sequence);
    }
    if let Some(announced) = &back.announced {
        let Announced { valid, slot, .. } = m.pipe("was_announced", announced.value);
        let of = valid & slot.eq(resolved.outcome.slot);
        m.assert("outcomes_are_announced", !resolved.outcome.valid | of);
    }
    resolved
}

/// 1 bit: the instruction in stage 8 has no effect, since its path was suspended. Where that can be.
fn squashed(back: &Backward, squashes: Option<Signal>, at_8: &Instruction<Signal>) -> Option<Signal> {
    let Instruction { valid, slot, decoded, .. } = *at_8;
    back.arrives.as_ref().zip(squashes).map(|(arrives, squashes)| {
        let valid = valid & decoded.control;
        arrives.drive(OfSlot { valid, slot });
        valid & squashes.select(slot, 1)
    })
}

/// What the first instruction of a slot waited for, in the cycle in which it comes.
fn cover_awaited(m: Builder, front: &FrontEnd, in_resolve: &Instruction<Signal>, written: &WritebackOut<Signal>) {
    let issued = &front.issued;
    let awaited = |Pending { valid, slot, rd }: Pending<Signal>| {
        valid & issued.idle.filled.select(slot, 1) & issued.heads.select(slot, 32).select(rd, 1)
    };
    let Instruction { valid, slot, decoded, .. } = *in_resolve;
    wire!(early_awaited = awaited(Pending { valid: valid & decoded.computes(), slot, rd: decoded.rd }));
    wire!(late_awaited = awaited(written.late));
    let is_product = decoded.multiply;
    m.cover("result_was_awaited", early_awaited & !is_product);
    m.cover("product_was_awaited", early_awaited & is_product);
    m.cover("load_was_awaited", late_awaited & !written.of_divider);
    m.cover("quotient_was_awaited", late_awaited & written.of_divider);
}

/// What the divergence unit is told of the instructions on convergence barriers in stages 7 and 8.
fn instructions_on_barriers(
    s: &Shape,
    (first, at_7): (&Instruction<Signal>, &Instruction<Signal>),
    executed: &Executed<Signal>,
    stopped: Signal,
) -> Hints<Signal> {
    let of = |at: &Instruction<Signal>| at.decoded.converges.expect("a core with convergence barriers");
    let copies = at_7.decoded.converges_by(HintKind::Copy) | at_7.decoded.converges_by(HintKind::Move);
    let other = at_7.decoded.imm.slice(0, s.barrier_bits());
    let first = First { slot: first.slot, barrier: of(first).barrier };
    let ahead = Ahead {
        slot: at_7.slot,
        barrier: of(at_7).barrier,
        mask: at_7.mask,
        next: at_7.decoded.pc + 1,
        counts: at_7.decoded.converges_by(HintKind::Count),
        other,
        both: at_7.valid & copies,
    };
    let at_8 = &executed.instruction;
    let d = at_8.decoded;
    let present = at_8.valid & of(at_8).valid;
    let hint = Hint {
        valid: present & !stopped,
        slot: at_8.slot,
        operation: d.funct3,
        barrier: of(at_8).barrier,
        operand: d.imm.slice(0, 7),
        mask: at_8.mask,
        next: d.pc + 1,
        sync: executed.named.filter(|_| s.syncs()),
    };
    Hints { first, ahead, hint, present }
}

/// What the proof that releases come in time counts on: issue does what `hold` says, and an instruction that was named
/// comes.
fn obeys_hold(m: Builder, hold: Signal, hints: &Hints<Signal>, outcome: Signal, stopped: Signal) {
    let late = held_since(m, hold, ISSUE_TO_OUTCOME);
    let held = |back: u32| late[back as usize - 1];
    m.assert("hold_keeps_back_outcomes", !(outcome & held(ISSUE_TO_OUTCOME)));
    let both = hints.ahead.both;
    m.assert(
        "hold_keeps_back_instructions_on_barriers",
        !(hints.hint.valid & held(ISSUE_TO_RESOLVE)) & !(both & held(ISSUE_TO_SECOND)),
    );
    m.assert("what_was_named_comes", !m.pipe_reset("was_named", both) | hints.hint.valid | stopped);
}

/// The lanes' multipliers, from stage 7 to the write; zeros in a core without RV32M. `written`: stage 9 has an
/// instruction whose product is written.
fn multiply(s: &Shape, m: Builder, operands: Operands<Signal>, written: Signal) -> Signal {
    if !s.multiply {
        return m.lit(0u32, 32 * s.lanes);
    }
    let decoded = operands.instruction.decoded;
    let mut stages = vec![operands.instruction.valid & decoded.multiply];
    for stage in 1..MULTIPLIER_STAGES as usize - 1 {
        stages.push(m.pipe_reset(&format!("multiply_{}", stage + 1), stages[stage - 1]));
    }
    stages.push(written);
    let valid = all(cat(&stages));
    // Of a multiplication the ALU's operation is that of an address.
    let inputs = MultiplierIn {
        valid,
        operation: all(decoded.funct3),
        shift: all(decoded.alu.ne(Alu::Add)),
        arithmetic: all(decoded.alu.eq(Alu::Sra)),
        a: each(operands.a),
        b: each(operands.b),
    };
    m.replicate("multiplier", s.lanes, &multiplier(), inputs).result
}

/// The divider; one that is always free and never has a result in a core without RV32M.
fn division(s: &Shape, m: Builder, inputs: DivideIn<Signal>) -> DivideOut<Signal> {
    if !s.multiply {
        return DivideOut { free: m.lit(1u32, 1), result: m.zero(Quotient::shape(s)) };
    }
    m.instance("divide", &divide(s), inputs)
}

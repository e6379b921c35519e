//! The core: ten stages, the divergence unit and the scoreboard, wired together.
//!
//! ```text
//!            ┌────────────────────── steer: slot, pc ◄─────────────────────────────┐
//!            ▼                                                                     │
//!  1 steer ─► 2 fetch ─► 3 decode ─► 4 issue ─► 5,6 collect ─► 7 execute ─► 8 resolve ─► 9 converge (divergence unit)
//!                │           ▲         ▲ │            ▲             │          │         9 memory ─► request
//!                ▼           │         │ └► scoreboard │             ▼          ▼
//!          instruction    stop pc     mask            │          multiplier, divider
//!            memory                                   └──────────── 10 write back ◄── response
//! ```

mod memory_path;

use crate::barrier::{BarrierIn, barrier};
use crate::block::Grid;
use crate::divergence::interface::{
    Ahead, Announced, Culprit, Hint, Hints, MixedIn, Outcome, Refused, Start, TwoPaths, UnitIn, Wake, warp_of,
};
use crate::divergence::proof::held_since;
use crate::isa::{alu, cause, convergence};
use crate::lane::multiplier::{MultiplierIn, multiplier};
use crate::memory::port::{Request, Response};
use crate::memory::wishbone::BusError;
use crate::metrics::{Counts, MetricsIn, metrics};
use crate::pipeline::collect::{CollectIn, Counters, Going, Issued, Operands, Started, Write, collect};
use crate::pipeline::decode::{DecodeIn, decode};
use crate::pipeline::divide::{DivideIn, DivideOut, Quotient, divide};
use crate::pipeline::execute::{ExecuteIn, ExecuteOut, execute};
use crate::pipeline::fetch::{FetchIn, fetch};
use crate::pipeline::issue::{IssueIn, Reading, Slotted, issue};
use crate::pipeline::pairs::PairsIn;
use crate::pipeline::resolve::{Exit, Fault, ResolveIn, resolve};
use crate::pipeline::schedule::{by_age, by_block};
use crate::pipeline::steer::{Flush, SteerIn, steer};
use crate::pipeline::timing::{
    ISSUE_TO_OUTCOME, ISSUE_TO_RESOLVE, ISSUE_TO_SECOND, MULTIPLIER_STAGES, RESOLVE_TO_OUTCOME, SIDE_TABLE_REGISTERS,
};
use crate::pipeline::writeback::{WritebackIn, writeback};
use crate::reconvergence::Reconvergence;
use crate::scoreboard::{Pending, Release, ScoreboardIn, scoreboard};
use crate::shape::Shape;
use heddle_hdl::{all, each, prelude::*};
use memory_path::{Around, memory_path};

/// What a core needs from around it.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CoreIn<T> {
    /// Puts threads of the block `block` (32 bits) on an idle warp slot.
    pub start: Start<T>,
    #[width(32)]
    pub block: T,
    /// One bit a slot: not all warps of its block have been started.
    #[width(s.warps)]
    pub filling: T,
    /// Warps of the launch are still to be started.
    pub more: T,
    pub grid: Grid<T>,
    /// A launch begins: cycle and instruction counts go to 0.
    pub restart: T,
    /// The instruction at `fetch_pc` of the cycle before.
    #[width(32)]
    pub fetched: T,
    /// The side table's entry for the `executing` of the cycle before, for units that are told where threads meet.
    #[width(Outcome::shape(s).meets)]
    pub meets: Option<Reconvergence<T>>,
    /// The request is taken in this cycle.
    pub request_ready: T,
    /// Data of loads, until `response_ready`.
    pub response: Response<T>,
    /// First byte address that may be stored to, a multiple of 256.
    #[width(32)]
    pub program_end: T,
    /// If main memory is on a bus: it refused an access.
    #[width(s.bus_width().map(|_| BusError::shape(s)))]
    pub bus_error: Option<BusError<T>>,
}

/// What a core gives to memories, distributor and host.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CoreOut<T> {
    /// A start is taken in this cycle.
    pub start_ready: T,
    /// Instruction number for instruction memory, which answers in the next cycle.
    pub fetch_pc: T,
    /// Instruction number for the side table, which answers in the next cycle.
    pub executing: Option<T>,
    /// Stays until `request_ready`.
    pub request: Request<T>,
    /// The response is written back in this cycle.
    pub response_ready: T,
    /// Threads that end in this cycle.
    pub exit: Exit<T>,
    /// Why the core stopped; stays until reset.
    pub fault: Fault<T>,
    /// One bit a warp: it has live threads.
    pub live: T,
    /// One bit a warp: no register of it has a write under way.
    pub quiet: T,
    /// No thread is live and nothing is under way.
    pub idle: T,
    /// What the core did, if it is built with [`Metrics::Built`](crate::shape::Metrics::Built).
    pub counts: Option<Counts<T>>,
}

/// A fault stops what is in resolve when it comes out of it, and a block's stack is told of what is in resolve: the next outcome.
const _: () =
    assert!(RESOLVE_TO_OUTCOME == 1, "an instruction between resolve and its outcome would not be stopped by a fault");

/// The core of a shape that [`Shape::check`] accepts.
pub fn core(s: &Shape) -> TypedModule<CoreIn<Width>, CoreOut<Signal>> {
    module("core", CoreIn::shape(s), |m, i| {
        m.doc("The SIMT core.");
        // What later stages tell earlier ones.
        let outcome = m.deferred("outcome", Outcome::shape(s));
        let write = m.deferred("write", Write::shape(s));
        let early = m.deferred("early", Release::shape(s));
        let late = m.deferred("late", Pending::shape(s));
        let decode_slot = m.deferred("decode_slot", s.slot_bits());
        let issue_slot = m.deferred("issue_slot", s.slot_bits());
        let buffered = m.deferred("buffered", count_width(s.buffer) * s.slots());
        let stop_valid = m.deferred("stop_valid", 1);
        let stop_slot = m.deferred("stop_slot", s.slot_bits());
        let clear = m.deferred("clear", s.slots());
        let bubble = m.deferred("bubble", 1);
        let access_room = m.deferred("access_room", 1);
        let load_room = m.deferred("load_room", 1);
        let load_tag = m.deferred("load_tag", index_width(s.loads));
        let divider_free = m.deferred("divider_free", 1);
        let counters = Counters::shape(s).map(|shape| m.deferred("counters", shape));
        let wake = m.deferred("wake", Wake::shape(s));
        let own_clear = s.reissues_on_the_other_side().then(|| m.deferred("own_clear", s.slots()));
        let unissued = UnitIn::shape(s).unissued.map(|shape| m.deferred("unissued", shape));
        let mixed = UnitIn::shape(s).mixed.map(|shape| m.deferred("mixed", shape));
        let hints = UnitIn::shape(s).hints.map(|shape| m.deferred("hints", shape));
        let announced = UnitIn::shape(s).announced.map(|shape| m.deferred("announced", shape));

        // Stage 9, converge: the divergence unit. It also serves stages 3 and 4.
        let unit = m.instance(
            "divergence",
            &s.divergence.mechanism().unit(s),
            UnitIn {
                start: i.start,
                wake: wake.value,
                decode_slot: decode_slot.value,
                issue_slot: issue_slot.value,
                outcome: outcome.value,
                announced: announced.as_ref().map(|announced| announced.value),
                hints: hints.as_ref().map(|hints| hints.value),
                unissued: unissued.as_ref().map(|unissued| unissued.value),
                mixed: mixed.as_ref().map(|mixed| mixed.value),
            },
        );
        let flush = unit.more.two_paths.map(|dual| Flush { valid: dual.flush, slot: dual.flushed });

        if s.barriers && !s.divergence.capabilities().mixes_warps {
            let inputs = BarrierIn {
                live: unit.live,
                waiting: unit.waiting,
                filling: i.filling,
                group: i.grid.group,
                wake_ready: unit.wake_ready,
            };
            wake.drive(m.instance("barrier", &barrier(s), inputs).wake);
        } else {
            wake.drive(m.zero(Wake::shape(s)));
        }
        wire!(start_taken = i.start.valid & unit.start_ready);
        let started = Started { valid: start_taken, slot: i.start.slot, block: i.block };

        // Stage 1.
        let steered = m.instance(
            "steer",
            &steer(s),
            SteerIn {
                steer: unit.steer,
                stop_valid: stop_valid.value,
                stop_slot: stop_slot.value,
                flush,
                buffered: buffered.value,
            },
        );

        // Stage 2.
        let chosen = steered.chosen;
        let fetched = m.instance(
            "fetch",
            &fetch(s),
            FetchIn { chosen, word: i.fetched, stop_valid: stop_valid.value, stop_slot: stop_slot.value, flush },
        );

        // Stage 3.
        decode_slot.drive(fetched.decoding.slot);
        let decoded = m.instance(
            "decode",
            &decode(s),
            DecodeIn { word: fetched.instruction, pc: fetched.decoding.pc, stop: unit.stop },
        );
        let d = decoded.decoded;
        stop_valid.drive(fetched.decoding.valid & d.control);
        stop_slot.drive(fetched.decoding.slot);

        // Stage 4, with the scoreboard beside it.
        let stopped = m.reg("stopped", 1).reset(0u32);
        let flushed = flush.map_or(m.lit(0u32, 1), |flush| flush.drops(fetched.decoding.slot));
        let valid = fetched.decoding.valid & !flushed;
        let issue_in = IssueIn {
            decoded: Slotted { valid, slot: fetched.decoding.slot, decoded: d, registers: decoded.registers },
            steer: unit.steer,
            starts: by_age(s).then(|| started.slot.decode(s.warps).only_if(started.valid)),
            group: by_block(s).then_some(i.grid.group),
            clear: clear.value,
            access_room: access_room.value,
            load_room: load_room.value,
            divider_free: divider_free.value,
            hold_control: unit.hold,
            bubble: bubble.value | stopped.q,
            pairs: flush.zip(unit.more.two_paths).map(|(flush, TwoPaths { busy, active, changes_side, .. })| {
                let Outcome { valid, slot, .. } = outcome.value;
                let own_clear = own_clear.as_ref().map(|own_clear| own_clear.value);
                PairsIn { flush, resolved: valid, resolved_slot: slot, busy, active, changes_side, own_clear }
            }),
            held: unit.more.mixed.and_then(|mixed| mixed.ahead),
        };
        let issued = m.instance("issue", &issue(s), issue_in);
        buffered.drive(issued.buffered);
        if let Some((deferred, unissued)) = unissued.zip(issued.unissued) {
            deferred.drive(unissued);
        }
        let chosen = issued.issued;
        issue_slot.drive(chosen.slot);
        wire!(issue_mask = unit.mask);
        // What issued, how paths changed with it, and what was written late is told a cycle later. A slot that issued is looked up then,
        // and threads that come to another side are fetched for first. Those that stay have shadow bits already for what they left on
        // the other side.
        //
        // Whether a late write is the last of its register is found in the write's cycle, from loads that issued before it. A replay
        // that issues in that cycle is not among them, but its mark comes with the release, and a mark stays. What issues
        // later marks after the release. Nothing but a replay issues over a pending register. So the scoreboard sees all three in the
        // order in which they happen, with shadow bits, too: a copy in the cycle of the release is one of what is left then.
        let written_late = m.pipe_reset("s11_late", late.value.released(s));
        let Reading { valid, slot, registers } = issued.reading;
        let marks = Pending { valid: valid & registers.writes, slot, rd: registers.rd };
        let marked = m.instance(
            "scoreboard",
            &scoreboard(s),
            ScoreboardIn {
                changed: unit.more.two_paths.map(|dual| m.stage("s10_changed", dual.changed)),
                heads: issued.heads,
                issue: marks,
                early: early.value,
                late: written_late,
            },
        );
        clear.drive(marked.clear);
        if let Some((deferred, own_clear)) = own_clear.zip(marked.own_clear) {
            deferred.drive(own_clear);
        }

        // Stages 5 and 6.
        let collected = m.instance(
            "collect",
            &collect(s),
            CollectIn {
                issued: Going {
                    valid: chosen.valid,
                    slot: chosen.slot,
                    mask: issue_mask,
                    homes: unit.more.mixed.and_then(|mixed| mixed.homes),
                    tag: load_tag.value,
                },
                reading: issued.reading,
                decoded: issued.decoded,
                write: write.value,
                grid: i.grid,
                started,
                counters: counters.as_ref().map(|counters| counters.value),
            },
        );

        // Stage 7, with multiplier and divider beside it.
        let operands = collected.operands;
        let execute_in = ExecuteIn { operands, group: i.grid.group, program_end: i.program_end };
        let ExecuteOut { executed, second, early: releases, divisors } = m.instance("execute", &execute(s), execute_in);
        early.drive(releases);
        let quotient_taken = m.deferred("quotient_taken", 1);
        let quotient_shown = m.deferred("quotient_shown", 1);
        let (taken, shown) = (quotient_taken.value, quotient_shown.value);
        let divided = division(s, m, DivideIn { reserve: chosen.divide, operands, divisors, taken, shown });
        divider_free.drive(divided.free);

        // Stage 8.
        let faulted = m.deferred("faulted", 1);
        let jump = unit.more.mixed.map(|mixed| mixed.jump);
        if let Some(hints) = &hints {
            hints.drive(instructions_on_barriers(s, &second, &executed.issued, stopped.q | faulted.value));
        }
        if let Some(announced) = &announced {
            // Whether it is at fault is known late: then its outcome does not come, nor anything else.
            let Issued { valid, slot, decoded, .. } = executed.issued;
            let valid = valid & decoded.control & !stopped.q;
            announced.drive(Announced { valid, slot, call: decoded.call, ret: decoded.ret });
        }
        let resolve_in = ResolveIn { executed, stopped: stopped.q | faulted.value, jump, count: unit.more.count };
        let resolved = m.instance("resolve", &resolve(s), resolve_in);
        if let Some(hints) = &hints {
            obeys_hold(m, unit.hold, &hints.value, resolved.outcome.valid, stopped.q | faulted.value);
        }
        // Block RAM answers late in its cycle, and what the unit does with the answer fills one.
        let meets =
            (0..SIDE_TABLE_REGISTERS).rev().fold(i.meets, |meets, left| m.pipe(&format!("s{}_meets", 9 - left), meets));
        outcome.drive(Outcome { meets, ..resolved.outcome });
        if let Some(announced) = &announced {
            let Announced { valid, slot, .. } = m.pipe("was_announced", announced.value);
            let of = valid & slot.eq(resolved.outcome.slot);
            m.assert("outcomes_are_announced", !resolved.outcome.valid | of);
        }
        let products = multiply(s, m, operands, resolved.result.valid & resolved.result.multiply);

        // Stage 9, memory.
        let response_taken = m.deferred("response_taken", 1);
        let around = Around {
            issued: chosen,
            reading: issued.reading,
            request_ready: i.request_ready,
            response: i.response,
            response_taken: response_taken.value,
            late: late.value,
        };
        let memory = memory_path(s, m, &resolved, around);
        access_room.drive(memory.access_room);
        load_room.drive(memory.load_room);
        load_tag.drive(memory.load_tag);
        let (request, loads) = (memory.request, memory.loads);

        // Stage 10.
        let written = m.instance(
            "writeback",
            &writeback(s),
            WritebackIn {
                computed: resolved.result,
                products,
                response: memory.response,
                load: loads.load,
                load_last: loads.last,
                quotient: divided.result,
            },
        );
        write.drive(Write { homes: unit.more.mixed.and_then(|mixed| mixed.written_homes), ..written.write });
        if let Some(mixed) = mixed {
            let Issued { slot: resolving, decoded, .. } = executed.issued;
            let (written, pc) = (written.write.warp, decoded.pc);
            let (quiet, group) = (marked.quiet, i.grid.group);
            mixed.drive(MixedIn { restart: i.restart, group, filling: i.filling, quiet, written, resolving, pc });
        }
        late.drive(written.late);
        response_taken.drive(written.response_taken);
        quotient_taken.drive(written.quotient_taken);
        quotient_shown.drive(written.quotient_shown);
        bubble.drive(written.bubble);

        // A fault stops issue and whatever is behind it, and stays.
        let fault = resolved.fault;
        m.assert("one_fault", !(fault.valid & stopped.q));
        let fault = unit.more.refused.map_or(fault, |refused| {
            let Outcome { slot, taken, rest, homes, .. } = resolved.outcome;
            let pc = m.pipe("s9_pc", executed.issued.decoded.pc);
            let here = Culprit { slot: warp_of(s, slot), pc, mask: taken.mask | rest.mask, homes };
            let Refused { valid, cause, because } = refused;
            let Culprit { slot, pc, mask, homes } = because.unwrap_or(here);
            let of_unit = Fault { valid, cause, slot, pc, mask, homes, address: m.lit(0u32, 32) };
            let of_unit = m.stage("s10_refused", of_unit);
            fault.valid.mux(fault, Fault { valid: of_unit.valid & !stopped.q, ..of_unit })
        });
        let fault = i.bus_error.map_or(fault, |error| {
            let valid = error.valid & !stopped.q;
            let [cause, address] = [m.lit(cause::BUS_ERROR, cause::BITS), error.address.zext(32)];
            fault.valid.mux(fault, Fault { valid, cause, address, ..m.zero(Fault::shape(s)) })
        });
        faulted.drive(fault.valid);
        stopped.next(stopped.q | fault.valid);
        let held = m.pipe_if("held_fault", fault.valid, fault);

        // What the first instruction of a slot waited for, in the cycle in which it comes.
        let awaited = |Pending { valid, slot, rd }: Pending<Signal>| {
            valid & issued.idle.filled.select(slot, 1) & issued.heads.select(slot, 32).select(rd, 1)
        };
        let Issued { valid, slot, decoded, .. } = executed.issued;
        wire!(early_awaited = awaited(Pending { valid: valid & decoded.computes(), slot, rd: decoded.rd }));
        wire!(late_awaited = awaited(written.late));
        let is_product = decoded.multiply;
        m.cover("result_was_awaited", early_awaited & !is_product);
        m.cover("product_was_awaited", early_awaited & is_product);
        m.cover("load_was_awaited", late_awaited & !written.of_divider);
        m.cover("quotient_was_awaited", late_awaited & written.of_divider);

        wire!(committed = resolved.committed.count_ones());
        if let Some(counters) = counters {
            let cycles = m.reg("cycles", 64).reset(0u32);
            cycles.next(i.restart.mux(m.lit(0u32, 64), cycles.q + 1));
            let instructions = m.reg("instructions", 64).reset(0u32);
            let more = instructions.q + committed.zext(64);
            instructions.next(i.restart.mux(m.lit(0u32, 64), more));
            counters.drive(Counters { cycles: cycles.q, instructions: instructions.q });
        }

        wire!(
            flying = steered.running.any() | fetched.fetching.valid | fetched.decoding.valid | issued.idle.filled.any()
        );
        wire!(idle = !unit.live.any() & memory.idle & written.empty & divided.free & !flying);

        m.probe("issue_valid", chosen.valid);
        m.probe("issue_slot", warp_of(s, chosen.slot));
        m.probe("issue_pc", chosen.pc);
        m.probe("issue_mask", issue_mask);
        if let Some(homes) = unit.more.mixed.and_then(|mixed| mixed.homes) {
            m.probe("issue_homes", homes);
        }
        m.probe("issue_replay", issued.replay);
        m.probe("write_lanes", written.write.lanes);
        m.probe("write_slot", written.write.warp);
        if let Some(homes) = unit.more.mixed.and_then(|mixed| mixed.written_homes) {
            m.probe("write_homes", homes);
        }
        m.probe("write_rd", written.write.rd);
        m.probe("write_data", written.write.data);
        m.probe("start_taken", start_taken);
        m.probe("start_slot", i.start.slot);
        m.probe("start_pc", i.start.pc);
        m.probe("start_mask", i.start.mask);
        m.probe("start_block", i.block);
        m.probe("exit", resolved.exit);
        m.probe("live", unit.live);
        m.probe("waiting", unit.waiting);
        m.probe("running", steered.running);
        let counted = s.has_metrics().then(|| {
            let input = MetricsIn {
                restart: i.restart,
                stopped: stopped.q,
                started,
                live: unit.live,
                waiting: unit.waiting,
                more: i.more,
                issued: chosen.valid,
                idle: issued.idle,
                paths: unit.more.two_paths.map_or(m.lit(1u32, 2), |dual| dual.paths),
                loads_under_way: memory.under_way,
                access: memory.access,
                parts: memory.parts,
                committed,
                events: unit.events,
                exit: resolved.exit,
            };
            m.instance("metrics", &metrics(s), input)
        });
        CoreOut {
            start_ready: unit.start_ready,
            fetch_pc: steered.chosen.pc,
            executing: i.meets.map(|_| second.decoded.pc),
            request,
            response_ready: memory.response_ready,
            exit: resolved.exit,
            fault: Fault { valid: stopped.q, ..held },
            live: unit.live,
            quiet: marked.quiet,
            idle,
            counts: counted.and_then(|counted| counted.counts),
        }
    })
}

/// What the divergence unit is told of the instructions on convergence barriers in stages 7 and 8.
fn instructions_on_barriers(s: &Shape, at_7: &Issued<Signal>, at_8: &Issued<Signal>, stopped: Signal) -> Hints<Signal> {
    let of = |at: &Issued<Signal>| at.decoded.converges.expect("a core with convergence barriers");
    let copies = at_7.decoded.converges_by(convergence::COPY) | at_7.decoded.converges_by(convergence::MOVE);
    let other = at_7.decoded.imm.slice(0, s.barrier_bits());
    let ahead = Ahead { slot: at_7.slot, barrier: of(at_7).barrier, other, both: at_7.valid & copies };
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
    };
    Hints { ahead, hint, present }
}

/// What the proof that releases come in time counts on: issue does what `hold` says, and an instruction that was named comes.
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

/// The lanes' multipliers, from stage 7 to the write; zeros in a core without RV32M. `written`: stage 9 has an instruction whose product is
/// written.
fn multiply(s: &Shape, m: Builder, operands: Operands<Signal>, written: Signal) -> Signal {
    if !s.multiply {
        return m.lit(0u32, 32 * s.lanes);
    }
    let decoded = operands.issued.decoded;
    let mut stages = vec![operands.issued.valid & decoded.multiply];
    for stage in 1..MULTIPLIER_STAGES as usize - 1 {
        stages.push(m.pipe_reset(&format!("multiply_{}", stage + 1), stages[stage - 1]));
    }
    stages.push(written);
    let valid = all(cat(&stages));
    // Of a multiplication the ALU's operation is that of an address.
    let inputs = MultiplierIn {
        valid,
        operation: all(decoded.funct3),
        shift: all(decoded.alu.ne(alu::ADD)),
        arithmetic: all(decoded.alu.eq(alu::SRA)),
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

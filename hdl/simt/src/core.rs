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
//!
//! | part | file | |
//! |---|---|---|
//! | front end | `front_end.rs` | stages 1 to 4, divergence unit, barrier, scoreboard |
//! | back end | `back_end.rs`, `memory_path.rs` | stages 5 to 10 |
//! | faults | `faults.rs` | what stops the core |
//! | probes | `probes.rs` | what simulations look at |
//!
//! **What waits, and where.** Nothing stalls after issue. An instruction waits in its slot's buffer in stage 4, until
//! all of this is so: none of its registers is pending; its unit takes it (the divider is free, the load queue and the
//! queue of requests have room); the divergence unit does not hold back control; write-back has not taken the cycle for
//! an answer (`bubble`). Before it, stage 1 fetches for a slot only if its buffer has room for all that is under way,
//! and stages 1 and 2 drop what decode stops. Behind it, only accesses to memory wait, in the queues of
//! `memory_path.rs`, in which issue reserved a place.
//!
//! **Limits.** At most one control instruction of a slot is unresolved: the front end stops behind it, until it is
//! steered. There is no forwarding but that of the register banks. A fault stops the whole core, with all that is not
//! yet resolved. Instructions come from a memory that answers in one cycle.

mod back_end;
mod faults;
mod front_end;
mod memory_path;
mod probes;

use crate::block::Grid;
use crate::divergence::interface::{Announced, Hints, MixedIn, OfSlot, Outcome, SequenceTold, Start, UnitIn};
use crate::memory::port::{Miss, Request, Response};
use crate::memory::wishbone::BusError;
use crate::metrics::{Counts, MetricsIn, metrics};
use crate::pipeline::collect::Counters;
use crate::pipeline::resolve::{Exit, Fault};
use crate::pipeline::timing::RESOLVE_TO_OUTCOME;
use crate::reconvergence::Reconvergence;
use crate::scoreboard::exact::{ThreadsIn, Written};
use crate::scoreboard::{Pending, Release};
use crate::shape::Shape;
use back_end::{BackEnd, back_end};
use faults::faults;
use front_end::{FrontEnd, front_end};
use heddle_hdl::prelude::*;
use probes::probes;

/// What a core needs from around it.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CoreIn<T> {
    /// Puts threads of the block `block` (32 bits) on an idle warp slot.
    pub start: Start<T>,
    #[width(32)]
    pub block: T,
    /// One bit per slot: not all warps of its block have been started.
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
    /// 1 bit: the side table calls it uniform.
    #[when(s.passes())]
    pub uniform: Option<T>,
    /// The side table's entry for the `executing` of the cycle before, for units that are told where threads
    /// reconverge.
    #[width(Outcome::shape(s).meets)]
    pub meets: Option<Reconvergence<T>>,
    /// The request is taken in this cycle.
    pub request_ready: T,
    /// Data of loads, until `response_ready`.
    pub response: Response<T>,
    /// Where issue must know.
    #[width(Miss::of(s))]
    pub miss: Option<Miss<T>>,
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
    /// One bit per warp: it has live threads.
    pub live: T,
    /// One bit per warp: no register of it is pending in the scoreboard.
    pub quiet: T,
    /// No thread is live and nothing is under way.
    pub idle: T,
    /// What the core did, if it is built with [`Metrics::Built`](crate::shape::Metrics::Built).
    pub counts: Option<Counts<T>>,
}

/// What later stages tell earlier ones: wires that are used before they are driven.
struct Backward {
    /// Stage 8 to 9, and what the divergence unit is told beside it.
    outcome: Deferred<Outcome<Signal>>,
    sequence: Option<Deferred<SequenceTold<Signal>>>,
    announced: Option<Deferred<Announced<Signal>>>,
    hints: Option<Deferred<Hints<Signal>>>,
    mixed: Option<Deferred<MixedIn<Signal>>>,
    /// Stages 8 and 10 to the scoreboard.
    early: Deferred<Release<Signal>>,
    late: Deferred<Pending<Signal>>,
    /// Whose they are, for a scoreboard that knows threads.
    early_threads: Option<Deferred<Signal>>,
    late_threads: Option<Deferred<Written<Signal>>>,
    /// Stages 7, 9 and 10 to issue.
    divider_free: Deferred<Signal>,
    access_room: Deferred<Signal>,
    load_room: Deferred<Signal>,
    bubble: Deferred<Signal>,
    /// Stage 10 to issue: a slot one of whose loads missed.
    missed: Option<Deferred<OfSlot<Signal>>>,
    /// Stage 8 to issue, where two control instructions of a warp may be unresolved.
    arrives: Option<Deferred<OfSlot<Signal>>>,
    /// Counts of cycles and instructions to stage 6.
    counters: Option<Deferred<Counters<Signal>>>,
    /// There is a fault in this cycle.
    faulted: Deferred<Signal>,
}

impl Backward {
    fn new(s: &Shape, m: Builder) -> Backward {
        let UnitIn { sequence, announced, hints, mixed, .. } = UnitIn::shape(s);
        let threads = ThreadsIn::of(s);
        Backward {
            outcome: m.deferred("outcome", Outcome::shape(s)),
            sequence: sequence.map(|shape| m.deferred("sequence", shape)),
            announced: announced.map(|shape| m.deferred("announced", shape)),
            hints: hints.map(|shape| m.deferred("hints", shape)),
            mixed: mixed.map(|shape| m.deferred("mixed", shape)),
            early: m.deferred("early", Release::shape(s)),
            late: m.deferred("late", Pending::shape(s)),
            early_threads: threads.map(|threads| m.deferred("early_threads", threads.early)),
            late_threads: threads.map(|threads| m.deferred("late_threads", threads.late)),
            divider_free: m.deferred("divider_free", 1),
            access_room: m.deferred("access_room", 1),
            load_room: m.deferred("load_room", 1),
            bubble: m.deferred("bubble", 1),
            missed: s.tells_misses().then(|| m.deferred("missed", OfSlot::shape(s))),
            arrives: s.overlaps_control().then(|| m.deferred("arrives", OfSlot::shape(s))),
            counters: Counters::shape(s).map(|shape| m.deferred("counters", shape)),
            faulted: m.deferred("faulted", 1),
        }
    }
}

/// A fault stops what is in resolve when it comes out of it, and a block's stack is told of what is in resolve: the
/// next outcome.
const _: () =
    assert!(RESOLVE_TO_OUTCOME == 1, "an instruction between resolve and its outcome would not be stopped by a fault");

/// The core of a shape that [`Shape::check`] accepts.
pub fn core(s: &Shape) -> TypedModule<CoreIn<Width>, CoreOut<Signal>> {
    module("core", CoreIn::shape(s), |m, i| {
        m.doc("The SIMT core.");
        let backward = Backward::new(s, m);
        let stopped = m.reg("stopped", 1).reset(0u32);
        let front = front_end(s, m, &i, &backward, stopped.q);
        let back = back_end(s, m, &i, &backward, &front, stopped.q);
        let fault = faults(s, m, &i, &backward, (&front, &back), stopped);

        wire!(committed = back.resolved.committed.count_ones());
        if let Some(counters) = backward.counters {
            counters.drive(count(m, i.restart, committed));
        }
        let none_live = !front.unit.live.any();
        wire!(idle = none_live & back.memory.idle & back.written.empty & back.divider_free & !front.any());
        probes(s, m, &i, &front, &back);
        let metrics_in = MetricsIn {
            restart: i.restart,
            stopped: stopped.q,
            started: front.started,
            live: front.unit.live,
            waiting: front.unit.waiting,
            more: i.more,
            issued: front.issued.issued.valid,
            idle: front.issued.idle,
            steer: OfSlot { valid: front.unit.steer.valid, slot: front.unit.steer.slot },
            outcome: OfSlot { valid: backward.outcome.value.valid, slot: backward.outcome.value.slot },
            flush: front.unit.more.two_paths.map(|two| OfSlot { valid: two.flush, slot: two.flushed }),
            paths: front.unit.more.two_paths.map_or(m.lit(1u32, 2), |dual| dual.paths),
            loads_under_way: back.memory.under_way,
            waits_for_loads: front.issued.idle.loads | back.memory.waits_for_loads,
            access: back.memory.access,
            parts: back.memory.parts,
            committed,
            events: front.unit.events,
            exit: back.resolved.exit,
        };
        let counted = s.has_metrics().then(|| m.instance("metrics", &metrics(s), metrics_in));
        CoreOut {
            start_ready: front.unit.start_ready,
            fetch_pc: front.steered.chosen.pc,
            executing: i.meets.map(|_| back.in_execute.decoded.pc),
            request: back.memory.request,
            response_ready: back.memory.response_ready,
            exit: back.resolved.exit,
            fault,
            live: front.unit.live,
            quiet: front.scoreboard.quiet,
            idle,
            counts: counted.and_then(|counted| counted.counts),
        }
    })
}

/// Cycles and thread instructions of the launch.
fn count(m: Builder, restart: Signal, committed: Signal) -> Counters<Signal> {
    let zero = m.lit(0u32, 64);
    let cycles = m.reg("cycles", 64).reset(0u32);
    cycles.next(restart.mux(zero, cycles.q + 1));
    let instructions = m.reg("instructions", 64).reset(0u32);
    instructions.next(restart.mux(zero, instructions.q + committed.zext(64)));
    Counters { cycles: cycles.q, instructions: instructions.q }
}

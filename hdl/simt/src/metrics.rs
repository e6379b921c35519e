//! Counters of what the core did since the launch: [`Counts`]. In simulations they are probes of the module `metrics`;
//! in a core that is [built](Metrics::Built) with them, outputs as well, which a [host](crate::host) tells.
//!
//! A cycle counts from the first in which a thread is live to the last. Every such cycle is either an issue or idle for
//! exactly one cause, the first that holds in this order: the last issue takes this cycle, too
//! ([`Shape::issue_interval`]); the divergence unit holds an instruction back that could issue; `idle_memory`,
//! `idle_scoreboard`, `idle_barrier`; the divergence unit has all threads of a warp; else `idle_no_instruction`. The
//! unit has them from an outcome to the next steer, if it does not steer at once. Cycles before the first and after the
//! last live thread ("nothing live") are the caller's cycles less `cycles`. A fault stops the counters, and a reset puts
//! them to 0.
//!
//! Simulations also have `lost_…`, the cause of this cycle; `in_unit`, the warps that the divergence unit has;
//! `loads_under_way`; `waits_for_loads`, cycles in which an access waits for an entry of the load queue;
//! `idle_beside_unit`, cycles without an issue in which the divergence unit has all threads of a warp or holds back what
//! could issue, whatever other warps wait for; and `failures`, the number of threads that ended with an exit code other
//! than 0. The first failure of each hardware thread is in the memories `lane[…].first`, where `lane[…].failed` has its bit on.

use crate::divergence::Events;
use crate::divergence::interface::{OfSlot, Releases, by_side};
use crate::pipeline::collect::Started;
use crate::pipeline::issue::Idle;
use crate::pipeline::resolve::Exit;
use crate::shape::{Metrics, Shape};
use heddle_hdl::{all, each, elements, prelude::*};

/// Bits of a counter.
pub const COUNTER: Width = 48;

/// The counters, in the order in which a host tells them; each probe has the name of its field.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Counts<T> {
    /// Cycles from the first in which a thread is live to the last.
    pub cycles: T,
    /// Warp instructions issued.
    pub issued: T,
    /// Paths that can be scheduled of the warps that issue, one or two an issue: the sum of `dual-path-execution.txt`
    /// Equation 1.
    pub schedulable: T,
    /// Thread instructions that took effect: a replayed lane counts when it is served.
    pub committed: T,
    /// A slot has an instruction, but it waits for a unit, or for a register while a load is under way.
    pub idle_memory: T,
    /// A slot has an instruction that waits for a register.
    pub idle_scoreboard: T,
    /// All live threads wait at barriers.
    pub idle_barrier: T,
    /// No slot has an instruction: front ends wait for outcomes, or the next block is being started.
    pub idle_no_instruction: T,
    /// Accesses that went to memory or scratchpad, each of all lanes that are served together.
    pub accesses: T,
    /// Those of them that left lanes of their instruction behind, to be replayed or served after them.
    pub parts: T,
    /// Convergences: paths that became one with another.
    pub merges: T,
    /// Paths that went to the cold context table, came back, were exchanged by the sorter.
    pub inserts: T,
    pub extracts: T,
    pub swaps: T,
    /// The greatest number of paths that a warp held after an outcome.
    pub most_paths: T,
    /// The greatest number of levels of its stack that a warp had in use after an outcome.
    pub most_levels: T,
    /// Of convergence barriers, in a core that has some: times that threads went on, by reason, and what else happened.
    pub released: Option<Releases<T>>,
    /// Times that a path gave way to others of its warp, where paths do.
    pub gave_way: Option<T>,
    /// A slot has an instruction that could issue, but the divergence unit or the other path of its warp holds it back;
    /// or nothing else is the cause, and a warp that is live has no path in the pipeline, as one that waits for others of
    /// its block.
    pub idle_divergence: T,
    /// Where an issue takes several cycles, those after the first: no opportunity to issue.
    pub idle_interval: Option<T>,
}

impl Counts<Width> {
    pub fn shape(s: &Shape) -> Counts<Width> {
        Counts {
            cycles: COUNTER,
            issued: COUNTER,
            schedulable: COUNTER,
            committed: COUNTER,
            idle_memory: COUNTER,
            idle_scoreboard: COUNTER,
            idle_barrier: COUNTER,
            idle_no_instruction: COUNTER,
            accesses: COUNTER,
            parts: COUNTER,
            merges: COUNTER,
            inserts: COUNTER,
            extracts: COUNTER,
            swaps: COUNTER,
            most_paths: COUNTER,
            most_levels: COUNTER,
            released: Events::shape(s).releases.map(|releases| releases.map("", &mut |_, _| COUNTER)),
            gave_way: s.gives_way().then_some(COUNTER),
            idle_divergence: COUNTER,
            idle_interval: (s.issue_interval > 1).then_some(COUNTER),
        }
    }

    /// How many there are.
    pub fn number(s: &Shape) -> u32 {
        let mut number = 0;
        Counts::shape(s).visit("", &mut |_, _| number += 1);
        number
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct MetricsIn<T> {
    /// All counters go to 0.
    pub restart: T,
    /// A fault has stopped the core: nothing counts any more.
    pub stopped: T,
    /// A warp of a block starts.
    pub started: Started<T>,
    /// One bit per warp: it has live threads; all of them wait.
    #[width(s.warps)]
    pub live: T,
    #[width(s.warps)]
    pub waiting: T,
    /// Warps of the launch are still to be started.
    pub more: T,
    pub issued: T,
    pub idle: Idle<T>,
    /// The divergence unit lets a slot go on / hears of one; a slot is emptied.
    pub steer: OfSlot<T>,
    pub outcome: OfSlot<T>,
    #[when(s.sides() > 1)]
    pub flush: Option<OfSlot<T>>,
    /// Paths of the warp that issues that can be scheduled: 1 or 2, 2 bits.
    #[width(2)]
    pub paths: T,
    pub loads_under_way: T,
    /// An access waits for an entry of the load queue.
    pub waits_for_loads: T,
    /// An access goes to memory; it leaves lanes behind.
    pub access: T,
    pub parts: T,
    /// Thread instructions that took effect in this cycle.
    #[width(count_width(s.lanes))]
    pub committed: T,
    pub events: Events<T>,
    pub exit: Exit<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct FailureIn<T> {
    restart: T,
    exits: T,
    #[width(s.warp_bits())]
    slot: T,
    #[width(32)]
    block: T,
    #[width(32)]
    code: T,
}

/// A thread whose exit code is not 0: its block and the code.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Failure<T> {
    code: T,
    block: T,
}

/// The first thread of each warp slot that failed in one lane.
fn failure(s: &Shape) -> TypedModule<FailureIn<Width>, Vec<Signal>> {
    module("failure", FailureIn::shape(s), |m, i| {
        m.doc("The first failures of one lane's threads; read by simulations.");
        let failed = m.reg("failed", s.warps).reset(0u32);
        wire!(first = i.exits & i.code.any() & !failed.q.select(i.slot, 1));
        failed.next((failed.q | i.slot.decode(s.warps).only_if(first)) & !i.restart.repeat(s.warps));
        let failures = m.memory("first", Failure { code: 32, block: 32 }, s.warp_bits());
        failures.write(first, i.slot, Failure { code: i.code, block: i.block });
        vec![]
    })
}

/// The cause that takes a cycle without an issue, a bit each, for those who watch.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Lost<T> {
    interval: Option<T>,
    divergence: T,
    memory: T,
    scoreboard: T,
    barrier: T,
    no_instruction: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MetricsOut<T> {
    /// In a core that is [built](Metrics::Built) with them.
    pub counts: Option<Counts<T>>,
}

pub fn metrics(s: &Shape) -> TypedModule<MetricsIn<Width>, MetricsOut<Signal>> {
    module("metrics", MetricsIn::shape(s), |m, i| {
        m.doc("Counters of what the core did.");
        let zero = m.lit(0u32, COUNTER);
        wire!(goes = !i.stopped);
        let count = |name: &str, amount: Signal| {
            let counter = m.reg(&format!("count_{name}"), COUNTER).reset(0u32);
            // Without an enable: so the restart is a reset of flip-flops, and not a gate before each.
            counter.next(i.restart.mux(zero, counter.q + amount.only_if(goes).zext(COUNTER)));
            counter.q
        };
        let most = |name: &str, number: Signal| {
            let most = m.reg(name, number.width()).reset(0u32);
            let changes = i.restart | (number.gt(most.q) & goes);
            most.next_if(changes, i.restart.mux(number.literal(0u32), number));
            most.q
        };
        // Between blocks, no thread may be live.
        let begun = m.reg("begun", 1).reset(0u32);
        begun.next((begun.q & !i.restart) | i.started.valid);
        wire!(live = i.live.any());
        wire!(runs = live | (begun.q & i.more));
        let in_pipeline = m.reg("in_pipeline", s.slots()).reset(0u32);
        let leaves = i.flush.map_or(i.outcome.slots(s), |flush| i.outcome.slots(s) | flush.slots(s));
        in_pipeline.next((in_pipeline.q & !leaves) | i.steer.slots(s));
        let [left, right] = if s.sides() > 1 { by_side(in_pipeline.q, 1) } else { [in_pipeline.q; 2] };
        wire!(in_unit = i.live & !i.waiting & !left & !right);
        // Each cause takes the cycle that those before it have left.
        let mut left = runs & !i.issued;
        let mut taken_by = |cause: Signal| {
            let taken = left & cause;
            left = left & !cause;
            taken
        };
        let interval = i.idle.turn.map(&mut taken_by);
        let held = taken_by(i.idle.held.any());
        let memory = taken_by(i.idle.unit.any() | (i.idle.scoreboard.any() & i.loads_under_way));
        let scoreboard = taken_by(i.idle.scoreboard.any());
        let barrier = taken_by(live & !(i.live & !i.waiting).any());
        let divergence = held | taken_by(in_unit.any());
        let lost = Lost { interval, divergence, memory, scoreboard, barrier, no_instruction: left };
        m.probe("lost", lost.map("", &mut |_, cause| cause & goes));
        m.probe("in_unit", in_unit);
        m.probe("loads_under_way", i.loads_under_way);
        let Events { merges, insert, extract, swap, paths, levels, releases, gave_way } = i.events;
        let counts = Counts {
            cycles: count("cycles", runs),
            issued: count("issued", i.issued),
            schedulable: count("schedulable", i.paths.only_if(i.issued)),
            committed: count("committed", i.committed),
            idle_divergence: count("idle_divergence", divergence),
            idle_interval: interval.map(|interval| count("idle_interval", interval)),
            idle_memory: count("idle_memory", memory),
            idle_scoreboard: count("idle_scoreboard", scoreboard),
            idle_barrier: count("idle_barrier", barrier),
            idle_no_instruction: count("idle_no_instruction", left),
            accesses: count("accesses", i.access),
            parts: count("parts", i.parts),
            merges: count("merges", merges),
            inserts: count("inserts", insert),
            extracts: count("extracts", extract),
            swaps: count("swaps", swap),
            released: releases.map(|releases| Releases {
                complete: count("released_complete", releases.complete),
                threshold: count("released_threshold", releases.threshold),
                stuck: count("released_stuck", releases.stuck),
                patience: count("released_patience", releases.patience),
                fell_through: count("fell_through", releases.fell_through),
            }),
            gave_way: gave_way.map(|gave_way| count("gave_way", gave_way)),
            most_paths: most("most_paths", paths),
            most_levels: most("most_levels", levels),
        };
        m.probe("", counts);
        if s.metrics == Metrics::Built {
            return MetricsOut { counts: Some(counts.map("", &mut |_, count| count.zext(COUNTER))) };
        }
        m.probe("waits_for_loads", count("waits_for_loads", i.waits_for_loads));
        // Whatever others wait for.
        let opportunity = i.idle.turn.map_or(!i.issued, |turn| !i.issued & !turn);
        wire!(idle_beside_unit = runs & opportunity & (i.idle.held.any() | in_unit.any()));
        m.probe("idle_beside_unit", count("idle_beside_unit", idle_beside_unit));
        let exits = each(i.exit.mask.only_if(i.exit.valid));
        let blocks = m.memory("block_of_slot", 32, s.warp_bits());
        blocks.write(i.started.valid, i.started.slot, i.started.block);
        let failed = elements(i.exit.codes, 32).into_iter().map(|code| code.any()).collect::<Vec<_>>();
        m.probe("failures", count("failures", (i.exit.mask & cat(&failed)).only_if(i.exit.valid).count_ones()));
        let inputs = FailureIn {
            restart: all(i.restart),
            exits,
            slot: i.exit.homes.map_or(all(i.exit.slot), each),
            block: all(blocks.read(i.exit.slot)),
            code: each(i.exit.codes),
        };
        m.replicate("lane", s.lanes, &failure(s), inputs);
        MetricsOut { counts: None }
    })
}

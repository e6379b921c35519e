//! Counters of what the core did since the launch, for simulation.
//!
//! All are probes of the module `metrics`. A cycle counts from the first in which a thread is live to the last. Every
//! such cycle is either an issue or idle for exactly one cause; the first that holds, in this order:
//!
//! | probe | what |
//! |---|---|
//! | `cycles` | cycles from the first in which a thread is live to the last |
//! | `issued` | warp instructions issued |
//! | `schedulable` | paths that can be scheduled of the warps that issue, one or two an issue: the sum of `dual-path-execution.txt` Equation 1 |
//! | `committed` | thread instructions that took effect: a replayed lane counts when it is served |
//! | `accesses` | accesses that went to memory or scratchpad, each of all lanes that are served together |
//! | `parts` | those of them that left lanes of their instruction behind, to be replayed or served after them |
//! | `idle_memory` | a slot has an instruction, but it waits for a unit, or for a register while a load is under way |
//! | `idle_scoreboard` | a slot has an instruction that waits for a register |
//! | `idle_barrier` | all live threads wait at barriers |
//! | `idle_no_instruction` | no slot has an instruction: front ends wait for outcomes, or the next block is being started |
//! | `merges` | convergences: paths that became one with another |
//! | `inserts`, `extracts`, `swaps` | paths that went to the cold context table, came back, were exchanged by the sorter |
//! | `released_complete`, `released_threshold`, `released_stuck`, `released_patience` | times that threads at a convergence barrier went on, by reason |
//! | `fell_through` | times that participants of a convergence barrier came to another place and went on |
//! | `gave_way` | times that a path gave way to others of its warp |
//! | `failures` | threads that ended with an exit code other than 0 |
//! | `most_paths` | the greatest number of paths that a warp held after an outcome |
//! | `most_levels` | the greatest number of levels of its stack that a warp had in use after an outcome |
//!
//! The first failure of each hardware thread is in the memories `lane[…].first`, where `lane[…].failed` has its bit on.
//!
//! Cycles before the first and after the last live thread ("nothing live") are the caller's cycles less `cycles`.

use crate::divergence::Events;
use crate::divergence::convergence::Releases;
use crate::pipeline::collect::Started;
use crate::pipeline::issue::Idle;
use crate::pipeline::resolve::Exit;
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MetricsIn<T> {
    /// All counters go to 0.
    pub restart: T,
    /// A warp of a block starts.
    pub started: Started<T>,
    /// One bit a warp: it has live threads; all of them wait.
    pub live: T,
    pub waiting: T,
    /// Warps of the launch are still to be started.
    pub more: T,
    pub issued: T,
    pub idle: Idle<T>,
    /// Paths of the warp that issues that can be scheduled: 1 or 2, 2 bits.
    pub paths: T,
    pub loads_under_way: T,
    /// An access goes to memory; it leaves lanes behind.
    pub access: T,
    pub parts: T,
    /// Thread instructions that took effect in this cycle.
    pub committed: T,
    pub events: Events<T>,
    pub exit: Exit<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct FailureIn<T> {
    restart: T,
    exits: T,
    slot: T,
    block: T,
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
    let inputs = FailureIn { restart: 1, exits: 1, slot: s.warp_bits(), block: 32, code: 32 };
    module("failure", inputs, |m, i| {
        m.doc("The first failures of one lane's threads; read by simulations.");
        let failed = m.reg("failed", s.warps).reset(0u32);
        wire!(first = i.exits & i.code.any() & !failed.q.select(i.slot, 1));
        failed.next((failed.q | i.slot.decode(s.warps).only_if(first)) & !i.restart.repeat(s.warps));
        let failures = m.memory("first", Failure { code: 32, block: 32 }, s.warp_bits());
        failures.write(first, i.slot, Failure { code: i.code, block: i.block });
        vec![]
    })
}

pub fn metrics(s: &Shape) -> TypedModule<MetricsIn<Width>, Vec<Signal>> {
    let inputs = MetricsIn {
        restart: 1,
        started: Started::shape(s),
        live: s.warps,
        waiting: s.warps,
        more: 1,
        issued: 1,
        idle: Idle { filled: s.slots(), scoreboard: s.slots(), unit: s.slots() },
        paths: 2,
        loads_under_way: 1,
        access: 1,
        parts: 1,
        committed: count_width(s.lanes),
        events: Events::shape(s),
        exit: Exit::shape(s),
    };
    module("metrics", inputs, |m, i| {
        m.doc("Counters of what the core did; for simulation.");
        let zero = m.lit(0u32, 48);
        let count = |name: &str, amount: Signal| {
            let counter = m.reg(&format!("count_{name}"), 48).reset(0u32);
            counter.next_if(i.restart | amount.any(), i.restart.mux(zero, counter.q + amount.zext(48)));
            m.probe(name, counter.q);
        };
        // Between blocks, no thread may be live.
        let begun = m.reg("begun", 1).reset(0u32);
        begun.next((begun.q & !i.restart) | i.started.valid);
        wire!(live = i.live.any());
        wire!(runs = live | (begun.q & i.more));
        let idle = runs & !i.issued;
        wire!(memory = i.idle.unit.any() | (i.idle.scoreboard.any() & i.loads_under_way));
        wire!(scoreboard = !memory & i.idle.scoreboard.any());
        wire!(barrier = live & !memory & !scoreboard & !(i.live & !i.waiting).any());
        count("cycles", runs);
        count("issued", i.issued);
        count("schedulable", i.paths.only_if(i.issued));
        count("committed", i.committed);
        count("idle_memory", idle & memory);
        count("idle_scoreboard", idle & scoreboard);
        count("idle_barrier", idle & barrier);
        count("idle_no_instruction", idle & !memory & !scoreboard & !barrier);
        count("accesses", i.access);
        count("parts", i.parts);
        count("merges", i.events.merges);
        count("inserts", i.events.insert);
        count("extracts", i.events.extract);
        count("swaps", i.events.swap);
        if let Some(releases) = i.events.releases {
            let Releases { complete, threshold, stuck, patience, fell_through, gave_way } = releases;
            count("released_complete", complete);
            count("released_threshold", threshold);
            count("released_stuck", stuck);
            count("released_patience", patience);
            count("fell_through", fell_through);
            count("gave_way", gave_way);
        }
        for (name, number) in [("most_paths", i.events.paths), ("most_levels", i.events.levels)] {
            let most = m.reg(name, number.width()).reset(0u32);
            most.next_if(i.restart | number.gt(most.q), i.restart.mux(number.literal(0u32), number));
            m.probe(name, most.q);
        }
        let exits = each(i.exit.mask.only_if(i.exit.valid));
        let blocks = m.memory("block_of_slot", 32, s.warp_bits());
        blocks.write(i.started.valid, i.started.slot, i.started.block);
        let failed = elements(i.exit.codes, 32).into_iter().map(|code| code.any()).collect::<Vec<_>>();
        count("failures", (i.exit.mask & cat(&failed)).only_if(i.exit.valid).count_ones());
        let inputs = FailureIn {
            restart: all(i.restart),
            exits,
            slot: i.exit.homes.map_or(all(i.exit.slot), each),
            block: all(blocks.read(i.exit.slot)),
            code: each(i.exit.codes),
        };
        m.replicate("lane", s.lanes, &failure(s), inputs);
        vec![]
    })
}

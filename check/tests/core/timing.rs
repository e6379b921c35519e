//! When instructions issue: distances, branch cost, throughput; and whether the core is as its table of latencies says.

use crate::bench::{Core, shape};
use heddle_hdl::Bits;
use heddle_simt::pipeline::timing;
use heddle_simt::{Divergence, MOST_ALU_LATENCY, Shape};
use heddle_testbench::asm::*;
use heddle_testbench::grid::Grid;
use heddle_testbench::machine::{Machine, MachineOptions, Summary};

/// Distance in cycles between a producer and an instruction that uses its result, in one warp.
fn distance(producer: u32, consumer: u32) -> u64 {
    distance_on(&shape(2, 1), producer, consumer)
}

fn distance_on(shape: &Shape, producer: u32, consumer: u32) -> u64 {
    let program = Asm::default()
        .put([addi(6, ZERO, 0x400), addi(7, ZERO, 3), sw(7, 6, 0)])
        .put([NOP; 12])
        .label("p")
        .put([producer, consumer])
        .exit();
    let mut core = Core::new(shape, &program);
    core.run();
    let at = program.at("p");
    core.distance(at, at + 1)
}

#[test]
fn issue_distance_of_dependent_instructions() {
    let uses_5 = addi(8, 5, 1);
    let dependent = u64::from(timing::ISSUE_TO_DEPENDENT);
    let division = u64::from(timing::DIVISION_TO_DEPENDENT);
    let control = u64::from(timing::CONTROL_TO_NEXT);
    let next = u64::from(timing::ISSUE_TO_NEXT);
    assert_eq!(distance(addi(5, 7, 1), NOP), next, "independent");
    assert_eq!(distance(addi(5, 7, 1), uses_5), dependent);
    assert_eq!(distance(lui(5, 1), uses_5), dependent);
    assert_eq!(distance(csrr(5, LANE), uses_5), dependent);
    assert_eq!(distance(mul(5, 7, 7), uses_5), dependent);
    assert_eq!(distance(addi(5, 7, 1), addi(5, 7, 2)), dependent, "one write of a register at a time");
    assert_eq!(distance(divu(5, 7, 7), uses_5), division);
    assert_eq!(
        distance(divu(5, 7, 7), divu(8, 7, 7)),
        u64::from(timing::DIVISION_TO_DIVISION),
        "one division at a time"
    );
    assert_eq!(distance(divu(5, 7, 7), addi(8, 7, 1)), next, "others pass a division");
    assert_eq!(distance(lw(5, 6, 0), uses_5), control);
    assert_eq!(distance(lw(5, 6, 0), NOP), control, "a memory access is a control instruction");
    assert_eq!(distance(sw(5, 6, 0), NOP), control);
}

/// Longer ALUs delay what needs a result, and no other instruction.
#[test]
fn a_longer_alu_delays_who_needs_its_result() {
    for latency in [timing::ISSUE_TO_DEPENDENT, 9, MOST_ALU_LATENCY] {
        let shape = Shape { alu_latency: latency, ..shape(2, 1) };
        let after = |producer, consumer| distance_on(&shape, producer, consumer);
        for producer in [addi(5, 7, 1), lui(5, 1), mul(5, 7, 7)] {
            assert_eq!(after(producer, addi(8, 5, 1)), u64::from(latency), "reads it");
            assert_eq!(after(producer, addi(5, 7, 2)), u64::from(latency), "writes it");
            assert_eq!(after(producer, NOP), u64::from(timing::ISSUE_TO_NEXT));
        }
        assert_eq!(after(divu(5, 7, 7), addi(8, 5, 1)), u64::from(timing::DIVISION_TO_DEPENDENT));
        assert_eq!(after(sw(5, 6, 0), NOP), u64::from(timing::CONTROL_TO_NEXT));
    }
}

#[test]
fn what_an_outcome_costs() {
    let control = u64::from(timing::CONTROL_TO_NEXT);
    for (taken, condition) in [(true, BEQ), (false, BNE)] {
        let program = Asm::default()
            .put([NOP; 8])
            .label("b")
            .branch(condition, ZERO, ZERO, "t")
            .label("f")
            .put([NOP; 4])
            .label("t")
            .put([NOP])
            .exit();
        let mut core = Core::new(&shape(2, 1), &program);
        core.run();
        let next = program.at(if taken { "t" } else { "f" });
        assert_eq!(core.distance(program.at("b"), next), control, "taken: {taken}");
    }
    let jump = Asm::default().put([NOP; 8]).label("j").jal(RA, "t").put([NOP; 4]).label("t").put([NOP]).exit();
    let mut core = Core::new(&shape(2, 1), &jump);
    core.run();
    assert_eq!(core.distance(jump.at("j"), jump.at("t")), control);
    assert!(core.issues_of(jump.at("j") + 1).is_empty(), "what was fetched behind a jump does not issue");
}

#[test]
fn straight_line_code_of_one_warp_issues_as_often_as_a_warp_may() {
    let independent = (0..200).map(|k| addi(5 + k % 8, ZERO, k as i32));
    let program = Asm::default().label("from").put(independent).label("to").put([addi(A7, ZERO, 93), ECALL]);
    let mut core = Core::new(&shape(4, 1), &program);
    core.run();
    assert_eq!(core.distance(program.at("from"), program.at("to")), 200 * u64::from(timing::ISSUE_TO_NEXT));
    let (cycles, issued) = (core.metric("cycles"), core.metric("issued"));
    let ipc = issued as f64 / cycles as f64;
    assert_eq!(issued, 202);
    assert!(ipc > 0.9 / f64::from(timing::ISSUE_TO_NEXT), "warp IPC {ipc}: {issued} instructions in {cycles} cycles");
}

/// A loop of four instructions costs a warp as much as its branch and the three others, which is less than eight warps
/// have for it.
#[test]
fn eight_warps_hide_the_cost_of_branches() {
    const { assert!(timing::CONTROL_TO_NEXT + 3 * timing::ISSUE_TO_NEXT <= 8 * 4) }
    let program = Asm::default()
        .put([addi(5, ZERO, 200)])
        .label("loop")
        .put([addi(5, 5, -1), addi(6, ZERO, 1), addi(7, ZERO, 1)])
        .branch(BNE, 5, ZERO, "loop")
        .exit();
    let mut core = Core::new(&shape(2, 8), &program);
    core.run();
    let (cycles, issued) = (core.metric("cycles"), core.metric("issued"));
    let ipc = issued as f64 / cycles as f64;
    assert_eq!(issued, 8 * (1 + 200 * 4 + 2));
    assert!(ipc > 0.9, "warp IPC {ipc}");
}

#[test]
fn every_cycle_is_an_issue_or_idle_for_one_cause() {
    let program = Asm::default()
        .put([addi(6, ZERO, 0x400), csrr(5, LANE), addi(9, ZERO, 7)])
        .put([divu(7, 9, 5), divu(8, 7, 9), sw(8, 6, 0), lw(8, 6, 0), add(8, 8, 8), add(8, 8, 8)])
        .exit();
    let mut core = Core::new(&shape(2, 2), &program);
    core.run();
    let parts = ["issued", "idle_divergence", "idle_memory", "idle_scoreboard", "idle_barrier", "idle_no_instruction"]
        .map(|name| core.metric(name));
    assert_eq!(parts.iter().sum::<u64>(), core.metric("cycles"), "{parts:?}");
    assert_eq!(parts[0], core.issues.len() as u64);
    assert_eq!(parts[1], 0, "no threads part, and no warp waits for another");
    assert_eq!(core.metric("committed"), 2 * 2 * 11);
}

/// Threads of warp 0 go two ways, and warp 1 comes to that branch a division later.
#[test]
fn a_warp_that_waits_for_its_block_waits_for_the_divergence_unit() {
    let program = Asm::default()
        .put([csrr(5, LANE), csrr(6, 0xfc2), addi(9, ZERO, 7), addi(A0, ZERO, 0)])
        .branch(BEQ, 6, ZERO, "branch")
        .put([divu(7, 9, 9), add(7, 7, 7)])
        .label("branch")
        .branch(BNE, 5, ZERO, "end")
        .put([NOP; 4])
        .label("end")
        .exit();
    let idle = |divergence: Divergence| {
        let shape = Shape::new(2, 2).with_divergence(divergence);
        let mut machine = Machine::new(&shape, program.program(), &MachineOptions::default()).unwrap();
        machine.run().unwrap();
        let Summary { idle, idle_beside_unit, cycles, warp_instructions, .. } = machine.summary();
        let idle_beside_unit = idle_beside_unit.unwrap();
        assert!(
            (idle.divergence..=cycles - warp_instructions).contains(&idle_beside_unit),
            "{idle_beside_unit} cycles"
        );
        (idle.divergence, idle_beside_unit)
    };
    let ((alone, beside_alone), (of_a_block, beside)) = (idle(Divergence::STACK), idle(Divergence::BLOCK_STACK));
    let division = u64::from(timing::ISSUE_TO_QUOTIENT);
    // The other warp waits for the quotient, which is a cause of its own.
    assert!(beside > of_a_block && beside > beside_alone + division / 2, "{beside} cycles, {beside_alone} alone");
    assert!(alone < division / 2, "a stack per warp waits for nobody: {alone} cycles");
    assert!((division / 2..2 * division).contains(&of_a_block), "{of_a_block} cycles");
}

/// Warps that could issue in every cycle.
#[test]
fn cycles_that_an_issue_takes_are_no_opportunities() {
    let program = Asm::default().put([NOP; 40]).exit();
    for interval in [1, 4] {
        let mut core = Core::new(&Shape { issue_interval: interval, ..shape(2, 8) }, &program);
        core.run();
        let taken = if interval > 1 { core.metric("idle_interval") } else { 0 };
        let parts =
            ["issued", "idle_divergence", "idle_memory", "idle_scoreboard", "idle_barrier", "idle_no_instruction"]
                .map(|name| core.metric(name));
        assert_eq!(parts.iter().sum::<u64>() + taken, core.metric("cycles"), "{parts:?}");
        let whole = u64::from(interval - 1) * parts[0];
        assert!(taken <= whole && taken + u64::from(interval) > whole, "{taken} of {whole}: the last may be cut short");
    }
}

/// A division result waits while other warps' arithmetic writes every cycle, until issue leaves a cycle free.
#[test]
fn a_late_result_gets_the_write_port_in_the_end() {
    let program = Asm::default()
        .put([csrr(5, 0xfc2), addi(9, ZERO, 1)])
        .branch(BNE, 5, ZERO, "busy")
        .label("divide")
        .put([divu(7, 9, 9), addi(8, 7, 1)])
        .exit()
        .label("busy")
        .put((0..150).map(|k| addi(10 + k % 6, ZERO, 1)))
        .exit();
    let warps = 4;
    let mut core = Core::new(&shape(2, warps), &program);
    core.run();
    assert!(core.t.cover_hits("core.writeback.quotient_waits_for_the_pipeline") > 0);
    assert_eq!(core.t.cover_hits("core.issue.bubble"), 1, "one issue slot for one result");
    let at = program.at("divide");
    let distance = core.distance(at, at + 1);
    let least = timing::DIVISION_TO_DEPENDENT + 1;
    let most = timing::DIVISION_TO_DEPENDENT + timing::WAIT_BEFORE_BUBBLE + timing::ISSUE_TO_WRITE + warps;
    assert!((u64::from(least)..=u64::from(most)).contains(&distance), "{distance}");
}

/// What can be seen of an instruction in a cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// A warp is started; its front end runs; stage 2, and stage 3, have a fetch.
    starts: bool,
    runs: bool,
    fetches: bool,
    decodes: bool,
    /// The instruction that issues, and that takes effect.
    issues: Option<u64>,
    resolves: Option<u64>,
    /// Steps of the divider are left.
    divides: bool,
    /// The divergence unit changes a warp; threads end; a warp is live.
    has_outcome: bool,
    ends: bool,
    lives: bool,
    waits: bool,
    accesses: bool,
    writes: Option<u64>,
}

impl Core {
    fn seen(&mut self) -> Seen {
        let ends = self.t.peek().exit.valid == 1;
        let mut probe = |name: &str| self.t.probe(&format!("core.{name}"));
        let any = |bits: Bits| bits.low_u64() != 0;
        let pc = |valid: Bits, pc: Bits| any(valid).then(|| pc.low_u64());
        Seen {
            starts: any(probe("start_taken")),
            runs: any(probe("running")),
            issues: pc(probe("issue_valid"), probe("issue_pc")),
            resolves: pc(probe("resolve.commit_lanes"), probe("resolve.commit_pc")),
            has_outcome: any(probe("divergence.updates")),
            ends,
            lives: any(probe("live")),
            waits: any(probe("waiting")),
            accesses: any(probe("request_sent")),
            writes: pc(probe("write_lanes"), probe("write_rd")),
            fetches: any(self.t.register("core.fetch.fetching_valid")),
            decodes: any(self.t.register("core.fetch.decoding_valid")),
            divides: any(self.t.register("core.divide.steps")),
        }
    }
}

/// Every latency of the table that can be seen from outside of a stage. Those of the memories, of the cache and of what
/// waits are measured in the tests of their blocks, as is what lies within stages 5 to 7.
#[test]
fn stages_are_as_far_apart_as_the_table_says() {
    let (result, product, quotient, loaded) = (5, 9, 10, 11);
    let program = Asm::default()
        .label("first")
        .put([addi(6, ZERO, 0x400), addi(7, ZERO, 3)])
        .put([NOP; 16])
        .label("add")
        .put([addi(result, 7, 1)])
        .put([NOP; 16])
        .label("multiply")
        .put([mul(product, 7, 7)])
        .put([NOP; 16])
        .label("divide")
        .put([divu(quotient, 7, 7)])
        .put([NOP; 60])
        .label("load")
        .put([lw(loaded, 6, 0), addi(A0, ZERO, 0), addi(A7, ZERO, 93)])
        .put([NOP; 16])
        .label("barrier")
        .put([BARRIER])
        .put([NOP; 16])
        .label("end")
        .put([ECALL]);
    let mut core = Core::new(&Shape { barriers: true, ..shape(2, 1) }, &program);
    core.launch(Grid::one_block(2), 0);
    let mut trace = vec![];
    loop {
        trace.push(core.seen());
        if core.cycle().stopped == 1 {
            break;
        }
    }
    // The first cycle in which something is so, from another cycle on.
    let after = |from: usize, is: &dyn Fn(&Seen) -> bool| {
        from + trace[from..].iter().position(is).expect("it happens after the issue of its instruction")
    };
    let issue = |label: &str| after(0, &|seen| seen.issues == Some(program.at(label)));
    let mut wrong = vec![];
    let mut is = |what: &str, latency: u32, from: usize, to: usize| {
        if to - from != latency as usize {
            wrong.push(format!("{what}: {latency} in the table, {} in the core", to - from));
        }
    };

    let start = after(0, &|seen| seen.starts);
    is("OUTCOME_TO_STATE, of a start", timing::OUTCOME_TO_STATE, start, after(start, &|seen| seen.lives));
    is("STEER_TO_CHOICE", timing::STEER_TO_CHOICE, start, after(start, &|seen| seen.runs));
    let choice = after(start, &|seen| seen.runs);
    is("CHOICE_TO_FETCH", timing::CHOICE_TO_FETCH, choice, after(start, &|seen| seen.fetches));
    is("CHOICE_TO_DECODE", timing::CHOICE_TO_DECODE, choice, after(start, &|seen| seen.decodes));
    is("STEER_TO_ISSUE", timing::STEER_TO_ISSUE, start, issue("first"));

    for (label, register) in [("add", result), ("multiply", product)] {
        let (at, pc) = (issue(label), program.at(label));
        is("ISSUE_TO_RESOLVE", timing::ISSUE_TO_RESOLVE, at, after(at, &|seen| seen.resolves == Some(pc)));
        let written = after(at, &|seen| seen.writes == Some(register.into()));
        is(&format!("ISSUE_TO_WRITE of `{label}`"), timing::ISSUE_TO_WRITE, at, written);
    }
    let at = issue("divide");
    let steps = timing::ISSUE_TO_EXECUTE + timing::EXECUTE_TO_DIVISION;
    is("ISSUE_TO_EXECUTE and EXECUTE_TO_DIVISION", steps, at, after(at, &|seen| seen.divides));
    let written = after(at, &|seen| seen.writes == Some(quotient.into()));
    is("ISSUE_TO_QUOTIENT", timing::ISSUE_TO_QUOTIENT + timing::ANSWER_TO_WRITE, at, written);

    let at = issue("load");
    is("ISSUE_TO_ACCESS", timing::ISSUE_TO_ACCESS, at, after(at, &|seen| seen.accesses));
    is("ISSUE_TO_OUTCOME", timing::ISSUE_TO_OUTCOME, at, after(at, &|seen| seen.has_outcome));
    let written = after(at, &|seen| seen.writes == Some(loaded.into()));
    let answered = timing::ISSUE_TO_ACCESS + timing::ACCESS_TO_ANSWER;
    is("ACCESS_TO_ANSWER and ANSWER_TO_WRITE", answered + timing::ANSWER_TO_WRITE, at, written);

    let at = issue("barrier");
    let waits = after(at, &|seen| seen.waits);
    is("OUTCOME_TO_STATE, of a barrier", timing::OUTCOME_TO_STATE, after(at, &|seen| seen.has_outcome), waits);
    let woken = timing::WAITING_TO_WAKE + timing::WAKE_TO_STEER + timing::STEER_TO_CHOICE;
    is("WAITING_TO_WAKE", woken, waits, after(waits, &|seen| seen.runs));

    let at = issue("end");
    let ends = after(at, &|seen| seen.ends);
    is("RESOLVE_TO_OUTCOME, of an end", timing::ISSUE_TO_RESOLVE + timing::RESOLVE_TO_OUTCOME, at, ends);
    is("OUTCOME_TO_STATE, of an end", timing::OUTCOME_TO_STATE, ends, after(ends, &|seen| !seen.lives));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! When instructions issue: distances, branch cost, throughput.

use crate::bench::{Core, shape};
use heddle_testbench::asm::*;

/// Distance in cycles between a producer and an instruction that uses its result, in one warp.
fn distance(producer: u32, consumer: u32) -> u64 {
    let program = Asm::default()
        .put([addi(6, ZERO, 0x400), addi(7, ZERO, 3), sw(7, 6, 0)])
        .put([NOP; 12])
        .label("p")
        .put([producer, consumer])
        .exit();
    let mut core = Core::new(&shape(2, 1), &program);
    core.run();
    let at = program.at("p");
    core.distance(at, at + 1)
}

#[test]
fn issue_distance_of_dependent_instructions() {
    let uses_5 = addi(8, 5, 1);
    assert_eq!(distance(addi(5, 7, 1), NOP), 1, "independent");
    assert_eq!(distance(addi(5, 7, 1), uses_5), 5);
    assert_eq!(distance(lui(5, 1), uses_5), 5);
    assert_eq!(distance(csrr(5, LANE), uses_5), 5);
    assert_eq!(distance(mul(5, 7, 7), uses_5), 5);
    assert_eq!(distance(addi(5, 7, 1), addi(5, 7, 2)), 5, "one write of a register at a time");
    assert_eq!(distance(divu(5, 7, 7), uses_5), 37);
    assert_eq!(distance(divu(5, 7, 7), divu(8, 7, 7)), 37, "one division at a time");
    assert_eq!(distance(divu(5, 7, 7), addi(8, 7, 1)), 1, "others pass a division");
    assert_eq!(distance(lw(5, 6, 0), uses_5), 9);
    assert_eq!(distance(lw(5, 6, 0), NOP), 9, "a memory access is a control instruction");
    assert_eq!(distance(sw(5, 6, 0), NOP), 9);
}

#[test]
fn an_outcome_costs_nine_cycles() {
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
        assert_eq!(core.distance(program.at("b"), next), 9, "taken: {taken}");
    }
    let jump = Asm::default().put([NOP; 8]).label("j").jal(RA, "t").put([NOP; 4]).label("t").put([NOP]).exit();
    let mut core = Core::new(&shape(2, 1), &jump);
    core.run();
    assert_eq!(core.distance(jump.at("j"), jump.at("t")), 9);
    assert!(core.issues_of(jump.at("j") + 1).is_empty(), "what was fetched behind a jump does not issue");
}

#[test]
fn straight_line_code_of_one_warp_issues_back_to_back() {
    let independent = (0..200).map(|k| addi(5 + k % 8, ZERO, k as i32));
    let program = Asm::default().label("from").put(independent).label("to").put([addi(A7, ZERO, 93), ECALL]);
    let mut core = Core::new(&shape(4, 1), &program);
    core.run();
    assert_eq!(core.distance(program.at("from"), program.at("to")), 200);
    let (cycles, issued) = (core.metric("cycles"), core.metric("issued"));
    let ipc = issued as f64 / cycles as f64;
    assert_eq!(issued, 202);
    assert!(ipc > 0.9, "warp IPC {ipc}: {issued} instructions in {cycles} cycles");
}

/// A loop of four instructions a warp costs the warp 12 cycles, so three warps would do.
#[test]
fn eight_warps_hide_the_cost_of_branches() {
    let program = Asm::default()
        .put([addi(5, ZERO, 50)])
        .label("loop")
        .put([addi(5, 5, -1), addi(6, ZERO, 1), addi(7, ZERO, 1)])
        .branch(BNE, 5, ZERO, "loop")
        .exit();
    let mut core = Core::new(&shape(2, 8), &program);
    core.run();
    let (cycles, issued) = (core.metric("cycles"), core.metric("issued"));
    let ipc = issued as f64 / cycles as f64;
    assert_eq!(issued, 8 * (1 + 50 * 4 + 2));
    assert!(ipc > 0.95, "warp IPC {ipc}");
}

#[test]
fn every_cycle_is_an_issue_or_idle_for_one_cause() {
    let program = Asm::default()
        .put([addi(6, ZERO, 0x400), csrr(5, LANE), addi(9, ZERO, 7)])
        .put([divu(7, 9, 5), divu(8, 7, 9), sw(8, 6, 0), lw(8, 6, 0), add(8, 8, 8), add(8, 8, 8)])
        .exit();
    let mut core = Core::new(&shape(2, 2), &program);
    core.run();
    let parts = ["issued", "idle_memory", "idle_scoreboard", "idle_barrier", "idle_no_instruction"]
        .map(|name| core.metric(name));
    assert_eq!(parts.iter().sum::<u64>(), core.metric("cycles"), "{parts:?}");
    assert_eq!(parts[0], core.issues.len() as u64);
    assert_eq!(core.metric("committed"), 2 * 2 * 11);
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
    let mut core = Core::new(&shape(2, 4), &program);
    core.run();
    assert!(core.t.cover_hits("core.writeback.quotient_waits_for_the_pipeline") > 0);
    assert_eq!(core.t.cover_hits("core.issue.bubble"), 1, "one issue slot for one result");
    let at = program.at("divide");
    let distance = core.distance(at, at + 1);
    assert!((38..=37 + 16).contains(&distance), "{distance}");
}

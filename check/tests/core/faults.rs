//! Every cause that stops the core: cause, warp, pc, lanes, address.

use crate::bench::{Core, Fault, shape};
use heddle_simt::isa::FaultCause;
use heddle_simt::{Replay, Shape};
use heddle_testbench::asm::*;

/// Runs a program to its fault, which must be at a label.
fn fault(s: &Shape, program: Asm, at: &str) -> Fault {
    let mut core = Core::new(s, &program);
    let fault = core.run_from(0).expect("a fault");
    assert_eq!(fault.pc, program.at(at), "{fault:?}");
    fault
}

/// x5 = the lane, x7 = the end of memory, x8 = 0x400.
fn begin() -> Asm {
    Asm::default().put([csrr(5, LANE), lui(7, 4), addi(8, ZERO, 0x400)])
}

#[test]
fn faults_of_all_lanes() {
    let s = shape(4, 1);
    let outside = |instruction: u32| begin().label("x").put([instruction]).exit();
    let cases = [
        (begin().label("x").put([0]).exit(), FaultCause::IllegalInstruction, None),
        (begin().label("x").put([EBREAK]).exit(), FaultCause::Breakpoint, None),
        (begin().put([addi(A7, ZERO, 1)]).label("x").put([ECALL]), FaultCause::UnknownEcall, None),
        (begin().label("x").put([jalr(RA, 8, 2)]).exit(), FaultCause::FetchMisaligned, Some(0x402)),
        (begin().label("x").put([jalr(RA, 7, 0)]).exit(), FaultCause::FetchOutOfRange, Some(0x4000)),
        (outside(lw(9, 8, 2)), FaultCause::LoadMisaligned, Some(0x402)),
        (outside(load(1, 9, 8, 1)), FaultCause::LoadMisaligned, Some(0x401)),
        (outside(lw(9, 7, 0)), FaultCause::LoadOutOfRange, Some(0x4000)),
        (outside(lw(9, ZERO, -4)), FaultCause::LoadOutOfRange, Some(0xffff_fffc)),
        (outside(sw(9, 8, 1)), FaultCause::StoreMisaligned, Some(0x401)),
        (outside(store(1, 9, 8, 3)), FaultCause::StoreMisaligned, Some(0x403)),
        (outside(sw(9, 7, 0)), FaultCause::StoreOutOfRange, Some(0x4000)),
        (outside(sw(9, ZERO, 0)), FaultCause::StoreToProgram, Some(0)),
        (outside(store(0, 9, ZERO, 0xff)), FaultCause::StoreToProgram, Some(0xff)),
    ];
    for (program, cause, address) in cases {
        let got = fault(&s, program, "x");
        assert_eq!((got.cause, got.warp, got.lanes), (cause, 0, 0b1111), "{got:?}");
        assert!(address.is_none_or(|a| a == got.address), "{got:x?}");
    }
}

#[test]
fn the_edges_of_what_is_allowed() {
    let allowed = [
        store(0, 9, ZERO, 0x100),
        sw(9, 7, -4),
        lw(9, 7, -4),
        load(0, 9, 7, -1),
        load(1, 9, 8, 2),
        lw(9, ZERO, 0),
        0x0ff0_000f, // fence
    ];
    for instruction in allowed {
        let mut core = Core::new(&shape(4, 1), &begin().put([instruction]).exit());
        assert_eq!(core.run_from(0), None, "{instruction:#x}");
    }
}

#[test]
fn faults_of_some_lanes() {
    let s = shape(4, 1);
    // Lane 2 asks for another system call.
    let program = begin().put([addi(6, 5, -2), sltiu(6, 6, 1), addi(A7, 6, 93)]).label("x").put([ECALL]);
    assert_eq!(fault(&s, program, "x").lanes, 0b0100);
    // Lanes 2 and 3 of a branch to an address outside.
    let program = begin().put([sltiu(6, 5, 2)]).label("x").put([0x8000_0063 | 6 << 15]).exit();
    let got = fault(&s, program, "x");
    assert_eq!((got.cause, got.lanes), (FaultCause::FetchOutOfRange, 0b1100), "{got:x?}");
    // A branch to a misaligned address that no lane takes is no fault.
    let program = begin().put([0x0000_0163 | 1 << 12]).exit();
    assert_eq!(Core::new(&s, &program).run_from(0), None);
    // The bytes of lanes 1 and 3 are misaligned halves of the same line.
    let program =
        begin().put([andi(6, 5, 1), slli(5, 5, 2), add(5, 5, 6)]).label("x").put([load(1, 9, 5, 0x400)]).exit();
    assert_eq!(fault(&s, program, "x").lanes, 0b1010);
    // Only lane 3 jumps outside; the others have left already.
    let program = begin()
        .put([slli(6, 5, 12), addi(9, 5, -3)])
        .branch(BNE, 9, ZERO, "end")
        .label("x")
        .put([jalr(RA, 6, 0)])
        .label("end")
        .exit();
    let got = fault(&s, program, "x");
    assert_eq!((got.cause, got.lanes, got.address), (FaultCause::FetchOutOfRange, 0b1000, 0x3000));
}

#[test]
fn the_first_fault_stays_and_nothing_issues_after_it() {
    let program = Asm::default()
        .put([csrr(5, 0xfc2)])
        .branch(BEQ, 5, ZERO, "spin")
        .label("x")
        .put([0])
        .label("spin")
        .jal(ZERO, "spin");
    let mut core = Core::new(&shape(2, 2), &program);
    let fault = core.run_from(0).unwrap();
    assert_eq!((fault.cause, fault.warp), (FaultCause::IllegalInstruction, 1));
    core.t.steps(5);
    for _ in 0..50 {
        assert_eq!(core.t.peek().fault.slot, 1);
        assert_eq!(core.t.probe("core.issue_valid"), 0);
        core.t.step();
    }
}

/// Two warps stop at instructions of their own, one cycle after the other.
#[test]
fn a_second_fault_right_after_the_first_changes_nothing() {
    let program = Asm::default()
        .put([csrr(5, 0xfc2)])
        .branch(BEQ, 5, ZERO, "first")
        .put([NOP])
        .label("second")
        .put([EBREAK])
        .label("first")
        .put([NOP, 0]);
    let mut core = Core::new(&shape(2, 2), &program);
    let fault = core.run_from(0).unwrap();
    let first = (FaultCause::IllegalInstruction, 0, program.at("first") + 1);
    assert_eq!((fault.cause, fault.warp, fault.pc), first);
    core.t.steps(5);
    assert_eq!(core.t.cover_hits("core.resolve.behind_a_fault"), 1);
    let f = core.t.peek().fault;
    assert_eq!(f.cause, first.0);
    assert_eq!((f.slot.low_u64(), f.pc.low_u64()), (first.1, first.2));
}

/// A store and an exit that have issued behind the access at fault: nothing of them happens, even where they do not
/// wait for it.
#[test]
fn nothing_behind_a_fault_happens() {
    for replay in [Replay::Split, Replay::Serialise] {
        let s = Shape { replay, ..shape(2, 1) };
        let program = Asm::default()
            .put([addi(6, ZERO, 0x400), lui(7, 0xc0000), addi(A0, ZERO, 5), addi(A7, ZERO, 93), NOP, NOP, NOP, NOP])
            .label("bad")
            .put([sw(7, 7, 0), sw(A0, 6, 0), ECALL]);
        let mut core = Core::new(&s, &program);
        core.set_word(0x400, 1);
        let fault = core.run_from(0).unwrap();
        assert_eq!((fault.cause, fault.pc), (FaultCause::StoreOutOfRange, program.at("bad")));
        core.t.steps(20);
        assert_eq!(core.word(0x400), 1, "{replay:?}");
        assert_ne!(core.t.peek().live, 0u64, "{replay:?}: no thread has ended");
    }
}

#[test]
fn without_a_multiplier_its_instructions_are_illegal() {
    let s = Shape { multiply: false, ..shape(2, 1) };
    for instruction in [mul(5, 6, 7), divu(5, 6, 7)] {
        let got = fault(&s, begin().label("x").put([instruction]).exit(), "x");
        assert_eq!(got.cause, FaultCause::IllegalInstruction);
    }
    let program = begin().put([add(5, 6, 7)]).exit();
    assert_eq!(Core::new(&s, &program).run_from(0), None);
}

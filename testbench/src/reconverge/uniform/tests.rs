use crate::asm::*;
use crate::reconverge::analyse;

const SP: u32 = 2;
const S0: u32 = 8;
const S1: u32 = 9;
const A1: u32 = 11;
const A5: u32 = 15;

/// Whether the instruction behind each label is uniform.
#[track_caller]
fn check(asm: &Asm, want: &[(&str, bool)]) {
    let analysis = analyse(&asm.program()).unwrap();
    for &(label, uniform) in want {
        let branch = analysis.branch(4 * asm.at(label) as u32).unwrap_or_else(|| panic!("{label} is a branch"));
        assert_eq!(branch.uniform, uniform, "{label}");
    }
}

/// A branch to the next instruction on a register, with a label.
fn test(asm: Asm, label: &str, register: u32) -> Asm {
    let next = format!("{label} next");
    asm.label(label).branch(BEQ, register, ZERO, &next).label(&next)
}

#[test]
fn sources() {
    let threads = [MHARTID, LANE, THREAD_IN_BLOCK, 0xfc2, 0xc00];
    for csr in threads {
        check(&test(Asm::default().put([csrr(A0, csr)]), "b", A0).exit(), &[("b", false)]);
    }
    for csr in [BLOCK, BLOCK_THREADS, 0xfc0] {
        check(&test(Asm::default().put([csrr(A0, csr), addi(A0, A0, 1)]), "b", A0).exit(), &[("b", true)]);
    }
    // Registers at the start, memory, atomic operations.
    check(&test(Asm::default(), "b", A1).exit(), &[("b", false)]);
    check(&test(Asm::default().put([lw(A0, ZERO, 0x700)]), "b", A0).exit(), &[("b", false)]);
    check(&test(Asm::default().put([addi(A0, ZERO, 0x700), amo(0, A0, A0, A0)]), "b", A0).exit(), &[("b", false)]);
    // The program itself, which ends at 0x100.
    check(&test(Asm::default().put([lw(A0, ZERO, 0xfc)]), "b", A0).exit(), &[("b", true)]);
    check(&test(Asm::default().put([lw(A0, ZERO, 0x100)]), "b", A0).exit(), &[("b", false)]);
    check(&test(Asm::default().put([csrr(A1, LANE), andi(A1, A1, 4), lw(A0, A1, 0)]), "b", A0).exit(), &[("b", false)]);
}

#[test]
fn addresses() {
    let asm = Asm::default().put([csrr(A0, LANE), addi(A1, ZERO, 0x700)]);
    let one = asm.here();
    let asm = asm.put([lw(A5, A1, 0), sw(A0, A1, 4), lw(A5, A0, 0), amo(0, A5, A0, A1)]);
    // What was loaded varies, whatever the address was.
    let analysis = analyse(&asm.put([lw(A5, A5, 0)]).exit().program()).unwrap();
    let scattered: Vec<u32> = analysis.scattered.iter().map(|pc| pc / 4 - one as u32).collect();
    assert_eq!(scattered, [2, 4]);
}

#[test]
fn what_differs_on_two_sides_varies_where_they_meet() {
    let asm = Asm::default().put([csrr(A0, LANE), addi(A1, ZERO, 1), addi(A5, ZERO, 1)]);
    let asm = asm.branch(BEQ, A0, ZERO, "end").put([addi(A1, ZERO, 2)]);
    let asm = test(test(asm, "inside", A1).label("end"), "meets", A1);
    check(&test(asm, "other", A5).exit(), &[("inside", true), ("meets", false), ("other", true)]);
    // With a condition that is the same for all, nothing varies.
    let asm =
        Asm::default().put([csrr(A0, BLOCK), addi(A1, ZERO, 1)]).branch(BEQ, A0, ZERO, "end").put([addi(A1, ZERO, 2)]);
    check(&test(asm.label("end"), "meets", A1).exit(), &[("meets", true)]);
}

#[test]
fn a_loop_that_threads_leave_in_different_turns() {
    let asm = Asm::default().put([csrr(A0, LANE), addi(A1, ZERO, 0)]);
    let asm = asm.label("top").put([addi(A1, A1, 1)]);
    let asm = test(asm, "inside", A1).label("back").branch(BLT, A1, A0, "top");
    check(&test(asm, "after", A1).exit(), &[("inside", true), ("back", false), ("after", false)]);
    // All leave in the same turn.
    let asm = Asm::default().put([csrr(A0, BLOCK), addi(A1, ZERO, 0)]).label("top").put([addi(A1, A1, 1)]);
    let asm = asm.label("back").branch(BLT, A1, A0, "top");
    check(&test(asm, "after", A1).exit(), &[("back", true), ("after", true)]);
}

#[test]
fn a_counter_passes_an_inner_loop() {
    // for (i = 0; i < 9; i++) for (j = 0; j < lane; j++) ..
    let asm = Asm::default()
        .put([csrr(A0, LANE), addi(S0, ZERO, 0), addi(A5, ZERO, 9)])
        .label("top")
        .put([addi(A1, ZERO, 0)]);
    let asm = asm.label("inner").put([addi(A1, A1, 1)]).label("inner back").branch(BLT, A1, A0, "inner");
    let asm = asm.put([addi(S0, S0, 1)]).label("back").branch(BLT, S0, A5, "top").exit();
    check(&asm, &[("inner back", false), ("back", true)]);
}

#[test]
fn a_break_leaves_the_loop_uniform_and_what_is_behind_varying() {
    let asm = Asm::default().put([csrr(A0, LANE), addi(A1, ZERO, 0), addi(A5, ZERO, 9)]);
    let asm = asm.label("top").label("break").branch(BEQ, A0, A1, "out").put([addi(A1, A1, 1)]);
    let asm = asm.label("back").branch(BLT, A1, A5, "top").label("out");
    check(&test(asm, "after", A1).exit(), &[("break", false), ("back", true), ("after", false)]);
}

#[test]
fn a_break_on_one_side_leaves_the_counter_uniform() {
    // for (i) { if (lane) { if (i == lane) break; x = 1 } else x = 2; .. } if (x) ..
    let asm = Asm::default().put([csrr(A0, LANE), addi(S0, ZERO, 0), addi(A5, ZERO, 9)]);
    let asm = asm
        .label("top")
        .branch(BEQ, A0, ZERO, "else")
        .branch(BEQ, A0, S0, "out")
        .put([addi(A1, ZERO, 1)])
        .jal(ZERO, "both");
    let asm = asm.label("else").put([addi(A1, ZERO, 2)]).label("both").put([addi(S0, S0, 1)]);
    let asm = test(asm, "meets", A1).label("back").branch(BLT, S0, A5, "top").label("out");
    check(&test(asm, "after", S0).exit(), &[("back", true), ("meets", false), ("after", false)]);
}

#[test]
fn threads_that_meet_at_a_likely_point_may_have_left_an_inner_loop_in_different_turns() {
    // for (i) { for (j = 0; j != lane; j++) if (j == 9) return; if (j) .. }
    let asm = Asm::default().put([csrr(A0, LANE), addi(S0, ZERO, 0), addi(A5, ZERO, 9)]);
    let asm =
        asm.label("top").put([addi(A1, ZERO, 0)]).label("inner").branch(BEQ, A1, A5, "out").put([addi(A1, A1, 1)]);
    let asm = asm.branch(BNE, A1, A0, "inner").label("last").put([addi(S0, S0, 1)]);
    let asm = asm.label("back").branch(BLT, S0, A1, "top").label("out");
    check(&asm.exit(), &[("inner", true), ("back", false)]);
}

#[test]
fn arguments_and_results() {
    let f = |asm: Asm| test(asm.exit().label("f"), "in f", A0).put([jalr(ZERO, RA, 0)]);
    let call = |asm: Asm, csr: u32| asm.put([csrr(A0, csr)]).jal(RA, "f");
    check(&f(test(call(Asm::default(), BLOCK), "after", A0)), &[("in f", true), ("after", true)]);
    check(&f(test(call(Asm::default(), LANE), "after", A0)), &[("in f", false), ("after", false)]);
    // One call of two is enough for the function. What comes back is what went in, at each call.
    let twice = test(call(test(call(Asm::default(), BLOCK), "first", A0), LANE), "second", A0);
    check(&f(twice), &[("in f", false), ("first", true), ("second", false)]);
}

#[test]
fn results_of_two_returns_vary_if_threads_part_between_them() {
    let program = |csr: u32| {
        let asm = test(Asm::default().put([csrr(A0, csr)]).jal(RA, "f"), "after", A0).exit().label("f");
        let asm = asm.branch(BEQ, A0, ZERO, "one").put([addi(A0, ZERO, 2), jalr(ZERO, RA, 0)]);
        asm.label("one").put([addi(A0, ZERO, 1), jalr(ZERO, RA, 0)])
    };
    check(&program(LANE), &[("after", false)]);
    check(&program(BLOCK), &[("after", true)]);
}

#[test]
fn spilled_values_are_what_they_were() {
    let asm = Asm::default().put([addi(SP, SP, -16), csrr(S0, BLOCK), csrr(S1, LANE), sw(S0, SP, 4), sw(S1, SP, 8)]);
    let asm = test(asm.put([lw(A0, SP, 4), lw(A1, SP, 8)]), "uniform", A0);
    let asm = test(asm, "varying", A1);
    check(
        &test(asm.put([lw(A1, SP, 12)]), "never stored", A1).exit(),
        &[("uniform", true), ("varying", false), ("never stored", false)],
    );
}

#[test]
fn spilled_on_one_side_varies() {
    let asm = Asm::default().put([addi(SP, SP, -16), csrr(A0, LANE), addi(A1, ZERO, 1), sw(ZERO, SP, 4)]);
    let asm = asm.branch(BEQ, A0, ZERO, "end").put([sw(A1, SP, 4)]).label("end").put([lw(A1, SP, 4)]);
    check(&test(asm, "b", A1).exit(), &[("b", false)]);
}

#[test]
fn returns_are_uniform_calls_by_a_varying_address_are_not() {
    let asm = Asm::default().jal(RA, "f").label("call f").jal(RA, "f").exit();
    let asm = asm.label("f").label("return").put([jalr(ZERO, RA, 0)]);
    check(&asm, &[("return", true), ("call f", true)]);
    let asm = Asm::default().la(A0, "f").la(A1, "g").put([csrr(A5, LANE)]).branch(BEQ, A5, ZERO, "call");
    let asm = asm.put([addi(A0, A1, 0)]).label("call").put([jalr(RA, A0, 0)]);
    let asm = test(asm, "after", A0).exit();
    let asm = asm
        .label("f")
        .put([addi(A0, ZERO, 1), jalr(ZERO, RA, 0)])
        .label("g")
        .put([addi(A0, ZERO, 2), jalr(ZERO, RA, 0)]);
    check(&asm, &[("call", false), ("after", false)]);
}

#[test]
fn where_a_jump_is_not_known_to_lead_nothing_is_uniform() {
    let asm = Asm::default().put([csrr(A0, BLOCK)]);
    let known = test(Asm::default().put([csrr(A0, BLOCK)]), "b", A0).exit();
    check(&known, &[("b", true)]);
    let unknown = test(asm, "b", A0).put([lw(A0, ZERO, 0x700), jalr(ZERO, A0, 0)]);
    check(&unknown, &[("b", false)]);
}

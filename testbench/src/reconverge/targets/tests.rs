use crate::asm::*;
use crate::reconverge::{Branch, Kind, Reconvergence, analyse};

const A1: u32 = 11;

/// The instruction behind label `jump`.
fn jump(asm: &Asm) -> Branch {
    analyse(&asm.program()).unwrap().branch(4 * asm.at("jump") as u32).unwrap().clone()
}

fn at(asm: &Asm, label: &str) -> u32 {
    4 * asm.at(label) as u32
}

#[test]
fn a_constant_address() {
    let asm =
        Asm::default().la(A0, "f").label("jump").put([jalr(RA, A0, 0)]).exit().label("f").put([jalr(ZERO, RA, 0)]);
    let call = jump(&asm);
    assert_eq!((call.kind, call.uniform, call.next.as_slice()), (Kind::IndirectCall, true, &[call.pc + 4][..]));
}

/// A function that jumps to one of four cases: by `index` on, a register with an index in bytes.
fn cases(jump: Asm) -> Asm {
    let jump = jump.label("zero").jal(ZERO, "end").label("one").jal(ZERO, "end").label("two").put([NOP]);
    jump.label("end").exit()
}

#[test]
fn a_table_of_jumps() {
    let index = [csrr(A1, LANE), andi(A1, A1, 1), slli(A1, A1, 2)];
    let asm =
        cases(Asm::default().put(index).la(A0, "zero").put([add(A0, A0, A1)]).label("jump").put([jalr(ZERO, A0, 0)]));
    let found = jump(&asm);
    assert_eq!(found.next, [at(&asm, "zero"), at(&asm, "one")]);
    assert_eq!((found.rpc, found.uniform, found.interleavable), (Reconvergence::At(at(&asm, "end")), false, true));
}

/// A program whose last words are addresses.
fn with_table(asm: Asm, labels: &[&str]) -> Asm {
    let words: Vec<u32> = labels.iter().map(|label| at(&asm, label)).collect();
    asm.label("table").put(words)
}

/// As compilers make a `switch`: a comparison, a table of addresses.
fn switch(compare: impl Fn(Asm) -> Asm) -> Asm {
    // The table's address is known when the program is: twice as long as it need be does not matter.
    let asm = |table: u32| {
        let asm = compare(Asm::default().put([csrr(A1, LANE)])).put([slli(A1, A1, 2)]).put(li(A0, table));
        let asm = asm.put([add(A0, A0, A1), lw(A0, A0, 0)]).label("jump").put([jalr(ZERO, A0, 0)]);
        with_table(cases(asm), &["zero", "one", "two"])
    };
    let table = at(&asm(0), "table");
    asm(table)
}

#[test]
fn a_table_of_addresses() {
    let at_most = switch(|asm| asm.put([addi(A7, ZERO, 2)]).branch(BLTU, A7, A1, "end"));
    assert_eq!(jump(&at_most).next, ["zero", "one", "two"].map(|case| at(&at_most, case)));
    assert_eq!(jump(&at_most).rpc, Reconvergence::At(at(&at_most, "end")));
    let fewer = switch(|asm| asm.put([addi(A7, ZERO, 2)]).branch(BLTU + 1, A1, A7, "end"));
    assert_eq!(jump(&fewer).next, ["zero", "one"].map(|case| at(&fewer, case)));
    let masked = switch(|asm| asm.put([andi(A1, A1, 1)]));
    assert_eq!(jump(&masked).next, ["zero", "one"].map(|case| at(&masked, case)));
}

#[test]
fn an_index_without_bound_is_not_known() {
    let asm = switch(|asm| asm);
    let found = jump(&asm);
    assert_eq!((found.next.len(), found.rpc, found.interleavable), (0, Reconvergence::Return, true));
    assert_eq!(analyse(&asm.program()).unwrap().unknown, [found.pc]);
}

#[test]
fn functions_in_a_table_are_analysed() {
    // The table's address is an argument, so that nothing says which functions the call may reach.
    let asm = Asm::default().put([lw(A0, ZERO, 0x700)]).label("jump").put([jalr(RA, A0, 0)]).exit();
    let asm = asm.label("f").label("b").branch(BEQ, A0, ZERO, "end").put([NOP]).label("end").put([jalr(ZERO, RA, 0)]);
    let asm = with_table(asm, &["f"]);
    let analysis = analyse(&asm.program()).unwrap();
    assert_eq!(analysis.unknown, [4]);
    let branch = analysis.branch(at(&asm, "b")).unwrap();
    assert_eq!((branch.rpc, branch.uniform), (Reconvergence::At(at(&asm, "end")), false));
}

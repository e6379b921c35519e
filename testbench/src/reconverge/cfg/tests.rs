use super::*;
use crate::asm::*;

const T0: u32 = 5;

fn functions(asm: &Asm) -> BTreeMap<u32, Function> {
    Functions::find(&asm.program(), &Targets::new(), &BTreeSet::new()).unwrap()
}

/// Of each block the number of instructions and where it leads.
type Blocks = Vec<(usize, Vec<Way>)>;

/// Functions by their entries.
fn shape(asm: &Asm) -> Vec<(u32, Blocks)> {
    let blocks = |function: Function| function.blocks.into_iter().map(|b| (b.instructions.len(), b.ways)).collect();
    functions(asm).into_iter().map(|(entry, function)| (entry, blocks(function))).collect()
}

#[test]
fn blocks_end_at_branches_and_begin_at_targets() {
    let asm = Asm::default().put([NOP]).label("top").put([NOP]).branch(BEQ, 10, 0, "top").exit();
    let want = vec![(1, vec![Way::To(4)]), (2, vec![Way::To(12), Way::To(4)]), (2, vec![Way::End])];
    assert_eq!(shape(&asm), [(0, want)]);
}

#[test]
fn calls_go_on_behind_if_they_return() {
    let asm = Asm::default().jal(RA, "f").exit().label("f").put([jalr(ZERO, RA, 0)]);
    let main = vec![(1, vec![Way::To(4)]), (2, vec![Way::End])];
    assert_eq!(shape(&asm), [(0, main), (12, vec![(1, vec![Way::Return])])]);
    // What never returns has nothing behind its call: here data.
    let asm = Asm::default().jal(RA, "f").put([0xffff_ffff]).label("f").exit();
    assert_eq!(shape(&asm), [(0, vec![(1, vec![Way::End])]), (8, vec![(2, vec![Way::End])])]);
    let endless = Asm::default().jal(RA, "f").label("f").jal(RA, "f");
    assert_eq!(shape(&endless), [(0, vec![(1, vec![Way::End])]), (4, vec![(1, vec![Way::End])])]);
}

#[test]
fn both_link_registers_call_and_return() {
    let asm = Asm::default().jal(T0, "f").exit().label("f").put([jalr(ZERO, T0, 0)]);
    assert_eq!(functions(&asm).keys().copied().collect::<Vec<_>>(), [0, 12]);
}

#[test]
fn leaving_for_another_function_is_a_tail_call() {
    let asm = Asm::default().jal(RA, "f").jal(RA, "g").jal(RA, "h").exit();
    let asm = asm.label("f").branch(BEQ, 10, 0, "g").jal(ZERO, "h");
    // Running into the next function is one, too.
    let asm = asm.label("g").put([NOP]).label("h").put([jalr(ZERO, RA, 0)]);
    let found = functions(&asm);
    let ways = |at: usize| -> Vec<Vec<Way>> {
        found.values().nth(at).unwrap().blocks.iter().map(|block| block.ways.clone()).collect()
    };
    let (g, h) = (4 * asm.at("g") as u32, 4 * asm.at("h") as u32);
    assert_eq!(ways(1), [vec![Way::To(4 * asm.at("f") as u32 + 4), Way::Tail(g)], vec![Way::Tail(h)]]);
    assert_eq!(ways(2), [vec![Way::Tail(h)]]);
    assert!(found.values().all(|function| function.graph.returns.contains(&true) || function.entry == 0));
}

#[test]
fn recursion_is_no_tail_call() {
    let asm = Asm::default().jal(RA, "f").exit();
    let asm = asm.label("f").branch(BEQ, 10, 0, "end").jal(RA, "f").label("end").put([jalr(ZERO, RA, 0)]);
    let found = functions(&asm);
    assert_eq!(found.values().nth(1).unwrap().blocks.len(), 3);
    // A jump to the own beginning is a loop.
    let asm = Asm::default().jal(RA, "f").exit().label("f").branch(BEQ, 10, 0, "f").put([jalr(ZERO, RA, 0)]);
    let found = functions(&asm);
    assert_eq!(found.values().nth(1).unwrap().graph.next, [vec![1, 0], vec![]]);
}

#[test]
fn shared_code_belongs_to_both() {
    let asm = Asm::default().jal(RA, "f").jal(RA, "g").exit();
    let asm = asm.label("f").put([NOP]).jal(ZERO, "end").label("g").put([NOP]).label("end").put([jalr(ZERO, RA, 0)]);
    let end = 4 * asm.at("end") as u32;
    let found = functions(&asm);
    let has_end = |function: &&Function| function.blocks.iter().any(|b| b.instructions.iter().any(|i| i.pc == end));
    assert_eq!(found.values().filter(has_end).count(), 2);
}

#[test]
fn the_end_of_the_program_is_the_end_of_the_thread() {
    let asm = Asm::default().branch(BEQ, 10, 0, "there").label("there").put([NOP; 63]);
    assert_eq!(functions(&asm)[&0].blocks.last().unwrap().ways, [Way::End]);
}

#[test]
fn jumps_out_of_the_program_are_refused() {
    let program = Program::assembled(&[0x0000_106f], []);
    let refused = Functions::find(&program, &Targets::new(), &BTreeSet::new()).err().unwrap();
    assert_eq!(
        refused.to_string(),
        "the instruction at 0x00000000 leads to 0x00001000, where the program has no instruction"
    );
    let misaligned = Program::assembled(&[0x0020_006f], []);
    assert!(Functions::find(&misaligned, &Targets::new(), &BTreeSet::new()).is_err());
}

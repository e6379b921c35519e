use crate::asm::*;
use crate::reconverge::Code;

const SP: u32 = 2;
const S0: u32 = 8;

/// Whether the function at a label keeps a register.
fn keeps(asm: &Asm, label: &str, register: u32) -> bool {
    let program = asm.program();
    let code = Code::of(&program).unwrap();
    code.parts[&(4 * asm.at(label) as u32)].values.summary.preserves[register as usize]
}

fn calling(body: Asm) -> Asm {
    body.put([jalr(ZERO, RA, 0)])
}

fn start() -> Asm {
    Asm::default().jal(RA, "f").exit().label("f")
}

#[test]
fn what_is_saved_and_restored_is_kept() {
    let saves = start().put([addi(SP, SP, -16), sw(S0, SP, 8), addi(S0, ZERO, 1)]);
    let f = calling(saves.put([lw(S0, SP, 8), addi(SP, SP, 16)]));
    assert!(keeps(&f, "f", S0) && keeps(&f, "f", SP) && keeps(&f, "f", RA));
    let other = start().put([addi(SP, SP, -16), sw(S0, SP, 8), addi(S0, ZERO, 1)]);
    let f = calling(other.put([lw(S0, SP, 12), addi(SP, SP, 16)]));
    assert!(!keeps(&f, "f", S0) && keeps(&f, "f", SP));
}

#[test]
fn a_slot_that_is_stored_to_again_is_lost() {
    for (instruction, kept) in [(sw(A0, SP, 8), false), (store(0, A0, SP, 11), false), (sw(A0, SP, 4), true)] {
        let saves = start().put([addi(SP, SP, -16), sw(S0, SP, 8), addi(S0, ZERO, 1), instruction]);
        let f = calling(saves.put([lw(S0, SP, 8), addi(SP, SP, 16)]));
        assert_eq!(keeps(&f, "f", S0), kept);
    }
}

#[test]
fn calls_keep_what_their_functions_keep() {
    let saves = start().put([addi(SP, SP, -16), sw(RA, SP, 8)]).jal(RA, "g");
    let f = calling(saves.put([lw(RA, SP, 8), addi(SP, SP, 16)]));
    let clean = calling(f.label("g").put([addi(A0, A0, 1)]));
    assert!(keeps(&clean, "f", RA) && keeps(&clean, "f", S0) && !keeps(&clean, "f", A0));
    // It stores into its caller's frame.
    let saves = start().put([addi(SP, SP, -16), sw(RA, SP, 8)]).jal(RA, "g");
    let f = calling(saves.put([lw(RA, SP, 8), addi(SP, SP, 16)]));
    let dirty = calling(f.label("g").put([sw(A0, SP, 8)]));
    assert!(!keeps(&dirty, "f", RA));
}

#[test]
fn recursion_keeps_what_every_way_keeps() {
    let f = start().put([addi(SP, SP, -16), sw(RA, SP, 8), sw(S0, SP, 4), addi(S0, A0, 0)]);
    let f = f.branch(BEQ, A0, ZERO, "end").put([addi(A0, A0, -1)]).jal(RA, "f").label("end");
    let f = calling(f.put([lw(RA, SP, 8), lw(S0, SP, 4), addi(SP, SP, 16)]));
    assert!(keeps(&f, "f", RA) && keeps(&f, "f", S0) && !keeps(&f, "f", A0));
}

#[test]
fn a_frame_whose_address_is_known_elsewhere_keeps_saved_registers_only() {
    let body = |escape: &[u32]| {
        let f = start().put([addi(SP, SP, -16), sw(RA, SP, 8), sw(A0, SP, 4)]).put(escape.iter().copied());
        calling(f.put([addi(A0, ZERO, 0), lw(A0, SP, 4), lw(RA, SP, 8), addi(SP, SP, 16)]))
    };
    assert!(keeps(&body(&[]), "f", A0));
    let escaped = body(&[addi(A7, SP, 4), sw(A7, ZERO, 0x400)]);
    assert!(!keeps(&escaped, "f", A0) && keeps(&escaped, "f", RA));
    let indexed = body(&[add(A7, SP, A0), sw(ZERO, A7, 0)]);
    assert!(!keeps(&indexed, "f", A0));
}

#[test]
fn different_values_that_meet_are_a_new_one() {
    let f = start().branch(BEQ, A0, ZERO, "end").put([addi(S0, S0, 1)]).label("end");
    assert!(!keeps(&calling(f), "f", S0));
    let f = start().branch(BEQ, A0, ZERO, "end").put([addi(S0, S0, 1), addi(S0, S0, -1)]).label("end");
    assert!(keeps(&calling(f), "f", S0));
}

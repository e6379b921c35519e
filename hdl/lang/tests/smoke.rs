//! The language as its users meet it: a bundle through ports, registers, memories and muxes, and errors that name lines.

use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Path<T> {
    valid: T,
    pc: T,
}

#[derive(Bundle, Clone)]
struct In<T> {
    a: Path<T>,
    b: [Path<T>; 2],
    list: Vec<T>,
    sel: T,
}

#[derive(Bundle, Clone)]
struct Out<T> {
    x: Path<T>,
    sum: T,
}

fn example(width: Width) -> TypedModule<In<Width>, Out<Signal>> {
    let path = Path { valid: 1, pc: width };
    module("example", In { a: path, b: [path; 2], list: vec![4, 4], sel: 1 }, |m, i| {
        wire!(chosen = i.sel.mux(i.a, i.b[1]));
        let held = m.reg("held", path).reset_zero();
        held.next_if(i.sel, chosen);
        let table = m.memory("paths", path, 3);
        table.write(i.sel, i.list[0].slice(0, 3), held.q);
        let read = table.read(i.list[1].slice(1, 3));
        Out { x: read, sum: i.list[0] + i.list[1] + 1 }
    })
}

#[test]
fn bundles_become_named_ports() {
    let design = example(8).check().unwrap();
    let names: Vec<_> = design.netlist.inputs.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["a_valid", "a_pc", "b_0_valid", "b_0_pc", "b_1_valid", "b_1_pc", "list_0", "list_1", "sel"]);
    assert_eq!(design.netlist.registers[1].name, "held_pc");
    assert_eq!(design.netlist.memories[0].width, 9);
}

#[test]
fn a_width_error_names_both_sides_and_the_line() {
    #[derive(Bundle, Clone, Copy)]
    struct Two<T> {
        pc: T,
        offset: T,
    }
    let wrong = module("wrong", Two { pc: 32, offset: 12 }, |_, i| i.pc + i.offset);
    let text = wrong.check().err().unwrap().to_string();
    assert!(text.contains("smoke.rs:") && text.contains("pc is 32 bits"), "{text}");
    assert!(text.contains("offset is 12 bits") && text.contains("offset.zext(32) or .sext(32)"), "{text}");
}

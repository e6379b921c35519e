//! Registers, deferred wires and memories.

use crate::common::{Ports, refused};
use heddle_hdl::netlist::{Op, PropertyKind, ReadTiming};
use heddle_hdl::prelude::*;

/// A result for descriptions whose mistake is in a statement.
fn after(i: Ports<Signal>, statement: (u32, ())) -> (Signal, u32) {
    (i.a, statement.0)
}

#[test]
fn nothing_drives_it() {
    refused("nothing drives the register `count` of module `top`", |m, _| {
        let (count, at) = (m.reg("count", 8), line!());
        (count.q, at)
    });
    refused("nothing drives the deferred wire `back` of module `top`", |m, i| {
        let (back, at) = (m.deferred("back", 8), line!());
        (back.value + i.a, at)
    });
}

#[test]
fn driven_twice() {
    refused("driven twice: count is 8 bits", |m, i| {
        let count = m.reg("count", 8);
        count.next(i.a);
        after(i, (line!(), count.next_if(i.on, i.c)))
    });
    refused("driven twice: back is 8 bits", |m, i| {
        let back = m.deferred("back", 8);
        back.drive(i.a);
        after(i, (line!(), back.drive(i.c)))
    });
}

#[test]
fn widths_of_what_drives() {
    refused("`next`: count is 8 bits, b is 4 bits; try b.zext(8) or .sext(8)", |m, i| {
        let count = m.reg("count", 8);
        after(i, (line!(), count.next(i.b)))
    });
    refused("`drive`: back is 8 bits, b is 4 bits; try b.zext(8) or .sext(8)", |m, i| {
        let back = m.deferred("back", 8);
        after(i, (line!(), back.drive(i.b)))
    });
    refused("an enable must be 1 bit: b is 4 bits", |m, i| {
        let count = m.reg("count", 8);
        after(i, (line!(), count.next_if(i.b, i.a)))
    });
    refused("an enable must be 1 bit: b is 4 bits", |m, i| (m.pipe_if("held", i.b, i.a), line!()));
}

#[test]
fn reset_values() {
    refused("reset value 0x100 does not fit: count is 8 bits", |m, i| {
        let (count, at) = (m.reg("count", 8).reset(256u32), line!());
        count.next(i.a);
        (count.q, at)
    });
}

#[test]
fn a_name_for_each_register() {
    refused("the name `count` stands twice in module `top`", |m, i| {
        m.pipe("count", i.a);
        (m.pipe("count", i.a), line!())
    });
    refused("`logic` is a keyword of Verilog, SystemVerilog or C++", |m, i| (m.pipe("logic", i.a), line!()));
}

#[test]
fn addresses_have_the_width_of_the_memory() {
    refused("memory `words` has addresses of 5 bits, but b is 4 bits", |m, i| {
        (m.memory("words", 8, 5).read(i.b), line!())
    });
    refused("memory `words` has addresses of 3 bits, but b is 4 bits", |m, i| {
        (m.memory("words", 8, 3).read_sync(i.b, Collision::ReadOld), line!())
    });
    refused("memory `words` has addresses of 3 bits, but b is 4 bits", |m, i| {
        let words = m.memory("words", 8, 3);
        after(i, (line!(), words.write(i.on, i.b, i.a)))
    });
    for (address_width, given) in [(0, "0"), (33, "33"), (200, "200")] {
        refused(&format!("memory `words`: an address has 1 to 32 bits, not {given}"), |m, i| {
            let at = line!() + 1;
            m.memory("words", 8, address_width).init(vec![]);
            (i.a, at)
        });
    }
}

#[test]
fn enables_of_memories() {
    refused("the enable of a whole word must be 1 bit: b is 4 bits", |m, i| {
        let words = m.memory("words", 8, 4);
        after(i, (line!(), words.write(i.b, i.b, i.a)))
    });
    refused("memory `words`: 6 bits do not divide into equal parts, one an enable: b is 4 bits", |m, i| {
        let words = m.memory("words", 6, 4);
        after(i, (line!(), words.write_granules(i.b, i.b, i.a.slice(0, 6))))
    });
    refused("the enable of a read must be 1 bit: b is 4 bits", |m, i| {
        (m.memory("words", 8, 4).read_sync_if(i.b, i.b, Collision::ReadOld), line!())
    });
}

#[test]
fn words_of_memories() {
    refused("memory `words`: word is 6 bits, but a is 8 bits", |m, i| {
        let words = m.memory("words", 6, 4);
        after(i, (line!(), words.write(i.on, i.b, i.a)))
    });
    // Fields of the wrong widths, although the words as a whole would fit.
    refused("memory `words`: word_0 is 4 bits, but a is 8 bits", |m, i| {
        let words = m.memory("words", [4, 9], 4);
        after(i, (line!(), words.write(i.on, i.b, [i.a, i.a.zext(9)])))
    });
    refused("memory `words` has 2 words, 3 are given", |m, i| {
        let words = m.memory("words", 8, 1);
        (i.a, (line!(), words.init(vec![Bits::ZERO; 3])).0)
    });
    refused("memory `words`: word 1, 0x100, needs more than 8 bits", |m, i| {
        let words = m.memory("words", 8, 1);
        (i.a, (line!(), words.init(vec![Bits::ZERO, Bits::from(256u32)])).0)
    });
    refused("memory `words`: a word has at least 1 bit", |m, i| {
        let none: [Width; 0] = [];
        (i.a, (line!(), m.memory("words", none, 1)).0)
    });
}

#[test]
fn a_promise_of_no_collision_becomes_assertions() {
    let design = module("top", crate::common::PORTS, |m, i| {
        let words = m.memory("words", 8, 4);
        words.write(i.on, i.b, i.a);
        words.write_granules(i.a.slice(0, 2), i.b + 1, i.c);
        let x = words.read_sync(i.a.slice(4, 4), Collision::Never);
        let y = words.read_sync_if(i.on, i.b, Collision::Never);
        let z = words.read_sync_or_zero(i.on, i.b, Collision::Never);
        [x, y, words.read_sync(i.b, Collision::ReadOld), words.read(i.b), z]
    });
    let netlist = design.check().unwrap().netlist;
    let names: Vec<_> = netlist.properties.iter().map(|p| p.name.as_str()).collect();
    let wanted = ["words_read0_write0_apart", "words_read0_write1_apart"];
    assert_eq!(names[..2], wanted);
    assert_eq!(names[2..4], ["words_read1_write0_apart", "words_read1_write1_apart"]);
    assert_eq!(names[4..], ["words_read2_write0_apart", "words_read2_write1_apart"]);
    assert!(netlist.properties.iter().all(|p| p.kind == PropertyKind::Assert && netlist.node(p.node).op == Op::Not));
    assert!(matches!(netlist.memories[0].reads[1].timing, ReadTiming::Sync { enable: Some(_), .. }));
}

#[test]
fn what_registers_become() {
    let design = module("top", crate::common::PORTS, |m, i| {
        let plain = m.pipe("plain", i.a);
        let valid = m.pipe_reset("valid", i.on);
        let held = m.pipe_if("held", i.on, [i.a, i.c]);
        let count = m.reg("count", 8).reset(7u32);
        count.next_if(valid, count.q + 1);
        [plain, held[0], held[1], count.q]
    });
    let netlist = design.check().unwrap().netlist;
    let described: Vec<_> =
        netlist.registers.iter().map(|r| (r.name.as_str(), r.reset.clone(), r.enable.is_some())).collect();
    let (zero, seven) = (Some(Bits::ZERO), Some(Bits::from(7u32)));
    let wanted = [
        ("plain", None, false),
        ("valid", zero, false),
        ("held_0", None, true),
        ("held_1", None, true),
        ("count", seven, true),
    ];
    assert_eq!(described, wanted);
}

//! Structs of signals as ports, state, words, and arms of choices.

use crate::common::{PORTS, refused};
use heddle_hdl::netlist::Op;
use heddle_hdl::{case, each, prelude::*, select, unpack};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Path<T> {
    valid: T,
    pc: T,
}

#[derive(Bundle, Clone)]
struct In<T> {
    a: Path<T>,
    pair: [Path<T>; 2],
    list: Vec<T>,
    grid: Vec<[T; 2]>,
    some: Option<Path<T>>,
    none: Option<T>,
    on: T,
}

const PATH: Path<Width> = Path { valid: 1, pc: 8 };

fn shape() -> In<Width> {
    In { a: PATH, pair: [PATH; 2], list: vec![4, 2], grid: vec![[1, 2]], some: Some(PATH), none: None, on: 1 }
}

fn with<R: Signals>(body: impl FnOnce(Builder, In<Signal>) -> R) -> TypedModule<In<Width>, R> {
    module("top", shape(), body)
}

#[test]
fn every_leaf_is_a_port() {
    let design = with(|_, i| i.a).check().unwrap();
    let names: Vec<_> = design.netlist.inputs.iter().map(|p| p.name.as_str()).collect();
    let (pair, rest) = (["pair_0_valid", "pair_0_pc", "pair_1_valid", "pair_1_pc"], ["some_valid", "some_pc", "on"]);
    assert_eq!(names[..2], ["a_valid", "a_pc"]);
    assert_eq!(names[2..6], pair);
    assert_eq!(names[6..10], ["list_0", "list_1", "grid_0_0", "grid_0_1"]);
    assert_eq!(names[10..], rest);
    assert_eq!(design.netlist.outputs.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["valid", "pc"]);
    assert_eq!(width_of(&shape()), 9 * 4 + 6 + 3 + 1);
}

#[derive(Bundle, Clone, PartialEq, Debug)]
#[widths(lanes: u32)]
struct Lane<T> {
    on: T,
    #[width(lanes)]
    mask: T,
}

#[derive(Bundle, Clone, PartialEq, Debug)]
#[widths(lanes: u32)]
struct Derived<T> {
    #[width(2 * lanes)]
    words: [T; 3],
    bits: [T; 2],
    one: Lane<T>,
    #[width(Lane { on: 2, mask: 7 })]
    other: Lane<T>,
    both: [Lane<T>; 2],
    #[when(lanes > 4)]
    #[width(5)]
    leaf: Option<T>,
    #[when(lanes > 4)]
    lane: Option<Lane<T>>,
    #[when(lanes > 4)]
    #[width(lanes + 1)]
    pair: Option<[T; 2]>,
    #[width((lanes > 2).then_some(9))]
    other_leaf: Option<T>,
    #[width(vec![lanes, 1])]
    list: Vec<T>,
}

#[test]
fn widths_are_of_the_configuration() {
    let lane = |lanes| Lane { on: 1, mask: lanes };
    let small = Derived {
        words: [8; 3],
        bits: [1; 2],
        one: lane(4),
        other: Lane { on: 2, mask: 7 },
        both: [lane(4), lane(4)],
        leaf: None,
        lane: None,
        pair: None,
        other_leaf: Some(9),
        list: vec![4, 1],
    };
    assert_eq!(Derived::shape(4), small);
    let Derived { leaf, lane: of_8, pair, .. } = Derived::shape(8);
    assert_eq!((leaf, of_8, pair), (Some(5), Some(lane(8)), Some([9; 2])));
}

#[test]
fn registers_and_words() {
    let design = with(|m, i| {
        let held = m.reg("held", PATH).reset_zero();
        held.next_if(i.on, i.pair[1]);
        let paths = m.memory("paths", PATH, 3);
        paths.write(i.on, i.list[0].slice(0, 3), held.q);
        paths.read(i.list[0].slice(1, 3))
    });
    let netlist = design.check().unwrap().netlist;
    assert_eq!(netlist.registers.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["held_valid", "held_pc"]);
    assert_eq!(netlist.memories[0].width, 9);
}

#[test]
fn choices_go_leaf_by_leaf() {
    let count = |op: fn(&Op) -> bool, body: fn(Builder, In<Signal>) -> Path<Signal>| {
        let netlist = with(body).check().unwrap().netlist;
        netlist.nodes.iter().filter(|n| op(&n.op)).count()
    };
    assert_eq!(count(|op| *op == Op::Mux, |_, i| i.on.mux(i.a, i.pair[0])), 2);
    assert_eq!(count(|op| *op == Op::Mux, |_, i| pick([(i.on, i.a), (!i.on, i.pair[0])], i.pair[1])), 4);
    let case_of = |_, i: In<Signal>| case(i.list[1], &[(0u32, i.a), (2, i.pair[0])], i.pair[1]);
    assert_eq!(count(|op| matches!(op, Op::Case(_)), case_of), 2);
    assert_eq!(count(|op| *op == Op::Select, |_, i| select(&i.pair, i.on)), 2);
    assert_eq!(count(|op| *op == Op::And, |_, i| select_one_hot(&i.pair, i.list[1])), 4);
    assert_eq!(count(|op| *op == Op::And, |_, i| i.a.only_if(i.on)), 2);
    assert_eq!(count(|op| *op == Op::Xor, |_, i| i.a.zip(i.pair[0], &mut |x, y| x ^ y)), 2);
}

#[test]
fn packing_and_unpacking() {
    let netlist = with(|m, i| {
        let packed = i.a.pack();
        let back = unpack(PATH, packed);
        m.assert("same", back.same_as(i.a));
        m.zero(PATH).zip(back, &mut |x, y| x | y).same_as(m.value(PATH, Path { valid: Bits::ZERO, pc: 7u32.into() }))
    });
    assert!(netlist.check().is_ok());
}

#[test]
fn lists_of_unequal_length() {
    let text = |what| format!("{what}: bundles of 1 and of 2 signals; their lists differ in length");
    let (one, two) = (|s: Signal| vec![s], |s: Signal| vec![s, s]);
    refused(&text("zip"), |_, i| (i.on.mux(one(i.a), two(i.c)), line!()));
    refused(&text("zip"), |_, i| (one(i.a).zip(two(i.c), &mut |x, _| x), line!()));
    refused(&text("case"), |_, i| (case(i.b, &[(0u32, two(i.a))], one(i.c)), line!()));
    refused(&text("select"), |_, i| (select(&[one(i.a), two(i.c)], i.on), line!()));
    refused(&text("select_one_hot"), |_, i| (select_one_hot(&[one(i.a), two(i.c)], i.b.slice(0, 2)), line!()));
    refused(&text("same_as"), |_, i| (one(i.a).same_as(two(i.c)), line!()));
    refused(&text("next"), |m, i| {
        let held = m.reg("held", vec![8]);
        (i.a, (line!(), held.next(two(i.a))).0)
    });
    refused(&text("write"), |m, i| {
        let words = m.memory("words", vec![8], 4);
        (i.a, (line!(), words.write(i.on, i.b, two(i.a))).0)
    });
    refused(&text("value"), |m, _| (m.value(vec![8], vec![Bits::ZERO, Bits::ZERO]), line!()));
}

#[test]
fn a_lane_is_a_bundle_of_packed_values() {
    #[derive(Bundle, Clone)]
    struct Out<T> {
        next: Path<T>,
    }
    let lane = module("lane", PATH, |_, i| Out { next: Path { valid: !i.valid, pc: i.pc + 1 } });
    let top =
        module("top", PORTS, |m, i| m.replicate("lane", 4, &lane, Path { valid: each(i.b), pc: each(i.a.repeat(4)) }));
    let netlist = top.check().unwrap().netlist;
    let ports: Vec<_> = netlist.outputs.iter().map(|p| (p.name.as_str(), p.width)).collect();
    assert_eq!(ports, [("next_valid", 4), ("next_pc", 32)]);
}

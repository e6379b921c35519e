//! Every operation against its definition, `heddle_hdl::eval`, at widths around the limbs' edges, alone and in copies
//! of a replicated instance; memories; and designs that were compiled wrongly, slowly or not at all. Other whole
//! designs are compared in `tests/differential.rs`.

use super::*;
use crate::fuzz::{compare, random_bits};
use crate::interpreter::Interpreter;
use fastrand::Rng;
use heddle_hdl::eval::eval;
use heddle_hdl::netlist::{
    Connection, Instance, Memory, MemoryStyle, Module, Node, NodeId, Op, Port, ReadPort, ReadTiming, Register,
};
use heddle_hdl::{all, each, elements, prelude::*};
use std::panic::Location;

fn node(module: &mut Module, op: Op, width: u32, args: Vec<NodeId>) -> NodeId {
    module.nodes.push(Node { op, width, args, name: None, loc: Location::caller() });
    NodeId(module.nodes.len() as u32 - 1)
}

fn input(module: &mut Module, width: u32) -> NodeId {
    let port = module.inputs.len() as u32;
    let node = node(module, Op::Input(port), width, vec![]);
    module.inputs.push(Port { name: format!("i{port}"), width, node, loc: Location::caller() });
    node
}

fn output(module: &mut Module, node: NodeId) {
    let (name, width) = (format!("o{}", module.outputs.len()), module.node(node).width);
    module.outputs.push(Port { name, width, node, loc: Location::caller() });
}

/// An operation, its width and its operands' widths.
type Case = (Op, u32, Vec<u32>);

/// All operations with values of width `w`.
fn operations(w: u32, rng: &mut Rng) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for op in [Op::And, Op::Or, Op::Xor, Op::Add, Op::Sub, Op::Mul] {
        cases.push((op, w, vec![w, w]));
    }
    for op in [Op::Eq, Op::Ne, Op::Lt, Op::LtSigned] {
        cases.push((op, 1, vec![w, w]));
    }
    for op in [Op::Shl, Op::Shr, Op::Sar] {
        for amount in [1, 5, 6, 7, 8, 33, 70] {
            cases.push((op.clone(), w, vec![w, amount]));
        }
    }
    for op in [Op::MulFull, Op::MulFullSigned] {
        for other in [1, 32, 33, w] {
            cases.push((op.clone(), w + other, vec![w, other]));
        }
    }
    for op in [Op::Any, Op::All, Op::Parity] {
        cases.push((op, 1, vec![w]));
    }
    let low = rng.u32(0..w);
    cases.push((Op::Not, w, vec![w]));
    cases.push((Op::Buf, w, vec![w]));
    cases.push((Op::CountOnes, 32 - w.leading_zeros(), vec![w]));
    cases.push((Op::Slice(low), rng.u32(1..=w - low), vec![w]));
    cases.push((Op::ZExt, w + rng.u32(1..70), vec![w]));
    cases.push((Op::SExt, w + rng.u32(1..70), vec![w]));
    cases.push((Op::Cat, 2 * w + 3, vec![w, 3, w]));
    cases.push((Op::Mux, w, vec![1, w, w]));
    cases.push((Op::Case([2u8, 0, 3].map(Bits::from).to_vec()), w, vec![2, w, w, w, w]));
    cases.push((Op::Case([1u8, 0].map(Bits::from).to_vec()), 3, vec![w, 3, 3, 3]));
    for (elements, index) in [(1, 1), (3, 2), (4, 2), (9, 8), (5, 70)] {
        cases.push((Op::Select, w, vec![elements * w, index]));
    }
    cases
}

/// One design with all operations of a width, each with inputs of its own.
fn check(w: u32, level: OptLevel) {
    let mut rng = Rng::with_seed(w as u64);
    let cases = operations(w, &mut rng);
    let mut module = Module::empty("op");
    let mut inputs = Vec::new();
    for (op, width, widths) in &cases {
        let args: Vec<NodeId> = widths.iter().map(|&w| input(&mut module, w)).collect();
        inputs.push(args.iter().map(|a| module.inputs.iter().position(|p| p.node == *a).unwrap()).collect::<Vec<_>>());
        let result = node(&mut module, op.clone(), *width, args);
        output(&mut module, result);
    }
    let directory = Arc::new(Directory::new(&Arc::new(module)));
    let mut engine = Compiled::new(&directory, 1, level).unwrap();
    for _ in 0..12 {
        let values: Vec<Bits> = directory
            .inputs
            .iter()
            .map(|i| {
                if rng.bool() {
                    random_bits(&mut rng, i.width)
                } else {
                    Bits::from(rng.u32(0..w + 2)).truncate(i.width)
                }
            })
            .collect();
        values.iter().enumerate().for_each(|(k, value)| engine.poke(k, value));
        engine.settle();
        for (k, (op, width, widths)) in cases.iter().enumerate() {
            let args: Vec<&Bits> = inputs[k].iter().map(|&i| &values[i]).collect();
            let want = eval(op, *width, &args, widths);
            assert_eq!(engine.peek(k), want, "{op:?} to {width} bits of {args:?} ({widths:?} bits), {level:?}");
        }
    }
}

#[test]
fn operations_mean_what_eval_says() {
    for w in [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 66, 96, 127, 128, 129, 191, 192, 193, 200] {
        check(w, OptLevel::None);
        check(w, OptLevel::Gating);
    }
}

#[test]
fn very_wide_values() {
    check(1000, OptLevel::Gating);
}

#[test]
fn memory_words_of_all_sizes_start_as_init_says_and_take_writes() {
    let mut module = Module::empty("op");
    let widths = [1, 8, 9, 16, 31, 32, 33, 64, 65, 200];
    for (k, &width) in widths.iter().enumerate() {
        let mem = k as u32;
        let address = input(&mut module, 4);
        let out = node(&mut module, Op::MemRead { mem, port: 0 }, width, vec![]);
        output(&mut module, out);
        module.memories.push(Memory {
            name: format!("m{k}"),
            width,
            address_width: 4,
            init: None,
            reads: vec![ReadPort { address, out, timing: ReadTiming::Async }],
            writes: vec![],
            style: MemoryStyle::Auto,
            loc: Location::caller(),
        });
    }
    let directory = Arc::new(Directory::new(&Arc::new(module)));
    let mut engine = Compiled::new(&directory, 7, OptLevel::Gating).unwrap();
    let mut rng = Rng::with_seed(1);
    for address in 0..16 {
        for (k, &width) in widths.iter().enumerate() {
            let want = init::word(7, init::path_hash(&format!("m{k}")), address, width);
            assert_eq!(engine.memory_read(k, address), want);
            let new = random_bits(&mut rng, width);
            engine.memory_write(k, address, &new);
            assert_eq!(engine.memory_read(k, address), new);
            if address > 0 {
                let before = engine.memory_read(k, address - 1);
                engine.poke_u64(k, address - 1);
                engine.settle();
                assert_eq!(engine.peek(k), before, "{width} bits");
            }
        }
    }
}

/// Values of a width, the first lowest.
fn side_by_side(values: &[Bits], width: u32) -> Bits {
    let all = values.iter().rev().fold(Default::default(), |all, value| (all << width) | value.to_big());
    Bits::from_big(all)
}

/// The same in each copy of a replicated instance, with some operands that are the same in all copies.
fn check_in_lanes(w: u32, copies: u32) {
    let mut rng = Rng::with_seed(u64::from(w * 100 + copies));
    let mut cases = operations(w, &mut rng);
    // Twice, with other operands that are the same in all copies.
    cases.extend(operations(w, &mut rng));
    let (mut lane, mut top) = (Module::empty("lane"), Module::empty("top"));
    let mut connections = Vec::new();
    // For each case and operand: the top's input, and whether each copy has its own.
    let mut inputs: Vec<Vec<(usize, bool)>> = Vec::new();
    for (op, width, widths) in &cases {
        let mut args = Vec::new();
        let mut of_case = Vec::new();
        for &w in widths {
            let each = rng.u32(0..4) > 0;
            args.push(input(&mut lane, w));
            of_case.push((top.inputs.len(), each));
            let node = input(&mut top, if each { w * copies } else { w });
            connections.push(if each { Connection::Each(node) } else { Connection::All(node) });
        }
        inputs.push(of_case);
        let result = node(&mut lane, op.clone(), *width, args);
        output(&mut lane, result);
    }
    let lane = Arc::new(lane);
    let (replicas, loc) = (Some(copies), Location::caller());
    top.instances.push(Instance { name: "lane".into(), module: lane.clone(), replicas, inputs: connections, loc });
    for (port, output_of_lane) in (0..).zip(&lane.outputs) {
        let out = node(&mut top, Op::InstOut { inst: 0, port }, output_of_lane.width * copies, vec![]);
        output(&mut top, out);
    }
    let directory = Arc::new(Directory::new(&Arc::new(top)));
    let mut engine = Compiled::new(&directory, 1, OptLevel::Lanes).unwrap();
    for _ in 0..6 {
        let mut values = vec![Bits::ZERO; directory.inputs.len()];
        for ((_, _, widths), inputs) in cases.iter().zip(&inputs) {
            for (&width, &(input, each)) in widths.iter().zip(inputs) {
                let parts: Vec<Bits> = (0..if each { copies } else { 1 })
                    .map(|_| match rng.u32(0..3) {
                        0 => Bits::from(rng.u32(0..w + 2)).truncate(width),
                        _ => random_bits(&mut rng, width),
                    })
                    .collect();
                values[input] = side_by_side(&parts, width);
                engine.poke(input, &values[input]);
            }
        }
        engine.settle();
        for (k, (op, width, widths)) in cases.iter().enumerate() {
            for copy in 0..copies {
                let own = |(&width, &(input, each)): (&u32, &(usize, bool))| {
                    values[input].extract(if each { copy * width } else { 0 }, width)
                };
                let args: Vec<Bits> = widths.iter().zip(&inputs[k]).map(own).collect();
                let want = eval(op, *width, &args.iter().collect::<Vec<_>>(), widths);
                let got = engine.peek(k).extract(copy * width, *width);
                assert_eq!(got, want, "{op:?} to {width} bits of {args:?} ({widths:?} bits), copy {copy} of {copies}");
            }
        }
    }
}

#[test]
fn operations_mean_the_same_in_each_copy() {
    // Widths where containers end, and counts of copies where strips, and words of packed bits, end.
    for (w, copies) in [
        (1, 5),
        (1, 33),
        (1, 64),
        (2, 3),
        (8, 9),
        (31, 4),
        (32, 7),
        (33, 2),
        (63, 5),
        (64, 3),
        (65, 4),
        (129, 2),
        (8, 65),
    ] {
        check_in_lanes(w, copies);
    }
    check_in_lanes(32, 64);
}

fn register(module: &mut Module, width: u32) -> NodeId {
    let k = module.registers.len() as u32;
    let out = node(module, Op::Reg(k), width, vec![]);
    module.registers.push(Register {
        name: format!("r{k}"),
        width,
        reset: None,
        enable: None,
        next: out,
        out,
        loc: Location::caller(),
    });
    out
}

/// A top with a replicated instance of `lane`, which has no inputs and one output; that output.
fn replicated(lane: Module, copies: u32) -> (Module, NodeId) {
    let mut top = Module::empty("top");
    let width = lane.outputs[0].width * copies;
    let (module, loc) = (Arc::new(lane), Location::caller());
    top.instances.push(Instance { name: "lane".into(), module, replicas: Some(copies), inputs: vec![], loc });
    let out = node(&mut top, Op::InstOut { inst: 0, port: 0 }, width, vec![]);
    (top, out)
}

#[test]
fn one_copys_limb_of_a_wide_register_can_be_picked() {
    for low in [0, 64, 128] {
        let mut lane = Module::empty("lane");
        let wide = register(&mut lane, 192);
        let limb = node(&mut lane, Op::Slice(low), 64, vec![wide]);
        output(&mut lane, limb);
        let (mut top, all) = replicated(lane, 5);
        let index = input(&mut top, 3);
        let picked = node(&mut top, Op::Select, 64, vec![all, index]);
        output(&mut top, picked);
        let directory = Arc::new(Directory::new(&Arc::new(top)));
        let mut engine = Compiled::new(&directory, 1, OptLevel::Lanes).unwrap();
        for copy in 0..8 {
            engine.poke_u64(0, copy as u64);
            engine.settle();
            let want = if copy < 5 { engine.register(copy).extract(low, 64) } else { Bits::ZERO };
            assert_eq!(engine.peek(0), want, "bits from {low} on of copy {copy}");
        }
    }
}

#[test]
fn an_or_of_ors_many_times_over_is_quickly_compiled() {
    let mut lane = Module::empty("lane");
    let out = register(&mut lane, 8);
    output(&mut lane, out);
    let (mut top, _) = replicated(lane, 4);
    let (mut a, mut b) = (input(&mut top, 8), input(&mut top, 8));
    for _ in 0..45 {
        (a, b) = (b, node(&mut top, Op::Or, 8, vec![a, b]));
    }
    output(&mut top, b);
    let directory = Arc::new(Directory::new(&Arc::new(top)));
    let mut engine = Compiled::new(&directory, 1, OptLevel::Lanes).unwrap();
    engine.poke_u64(0, 3);
    engine.poke_u64(1, 5);
    engine.settle();
    assert_eq!(engine.peek(0), 7);
}

#[test]
fn a_register_behind_a_long_chain_is_no_deep_recursion() {
    let mut top = Module::empty("top");
    let out = register(&mut top, 8);
    let other = input(&mut top, 8);
    let next = (0..100_000).fold(out, |value, _| node(&mut top, Op::Xor, 8, vec![value, other]));
    top.registers[0].next = next;
    for level in OptLevel::ALL {
        Compiled::new(&Arc::new(Directory::new(&Arc::new(top.clone()))), 1, *level).unwrap();
    }
}

#[test]
fn registers_of_packed_values_are_kept_in_lanes() {
    let mut lane = Module::empty("lane");
    let own = register(&mut lane, 8);
    output(&mut lane, own);
    let (mut top, all) = replicated(lane, 5);
    let hold = input(&mut top, 1);
    let registers: Vec<NodeId> = [40, 40, 20, 40].map(|width| register(&mut top, width)).to_vec();
    let held = node(&mut top, Op::Mux, 40, vec![hold, registers[0], all]);
    let low_halves = (0..5).map(|k| node(&mut top, Op::Slice(8 * k), 4, vec![all])).collect();
    let low_halves = node(&mut top, Op::Cat, 20, low_halves);
    let sum = node(&mut top, Op::Add, 40, vec![all, registers[0]]);
    for (k, next) in [held, registers[0], low_halves, sum].into_iter().enumerate() {
        top.registers[k].next = next;
    }
    let directory = Directory::new(&Arc::new(top));
    for (vectors, want) in [(true, [(8, 5), (8, 5), (4, 5), (40, 1)]), (false, [(40, 1), (40, 1), (20, 1), (40, 1)])] {
        let cells = Cells::new(&directory, &Lanes::new(&directory, vectors));
        for (k, (width, lanes)) in want.into_iter().enumerate() {
            let register = directory.registers.iter().position(|e| e.path == format!("r{k}")).unwrap();
            let shape = cells.shapes[cells.registers[register].number as usize];
            assert_eq!((shape.width, shape.lanes), (width, lanes), "r{k}, {vectors}");
        }
    }
}

#[test]
fn copies_that_only_read_a_chain_of_others_stay_together() {
    let mut link = Module::empty("link");
    let (before, own) = (input(&mut link, 8), register(&mut link, 8));
    let after = node(&mut link, Op::Add, 8, vec![before, own]);
    output(&mut link, after);
    let mut reader = Module::empty("reader");
    let (last, own) = (input(&mut reader, 8), register(&mut reader, 8));
    let sum = node(&mut reader, Op::Add, 8, vec![last, own]);
    output(&mut reader, sum);

    let mut top = Module::empty("top");
    let first = input(&mut top, 8);
    let links = node(&mut top, Op::InstOut { inst: 0, port: 0 }, 24, vec![]);
    let but_last = node(&mut top, Op::Slice(0), 16, vec![links]);
    let before = node(&mut top, Op::Cat, 24, vec![first, but_last]);
    let last = node(&mut top, Op::Slice(16), 8, vec![links]);
    let sums = node(&mut top, Op::InstOut { inst: 1, port: 0 }, 56, vec![]);
    output(&mut top, sums);
    for (module, copies, from) in [(link, 3, Connection::Each(before)), (reader, 7, Connection::All(last))] {
        let (name, loc) = (module.name.clone(), Location::caller());
        top.instances.push(Instance {
            name,
            module: Arc::new(module),
            replicas: Some(copies),
            inputs: vec![from],
            loc,
        });
    }
    let directory = Directory::new(&Arc::new(top));
    let lanes = Lanes::new(&directory, true);
    let cells = Cells::new(&directory, &lanes);
    let flat = flatten(&directory, &lanes, &cells, Purpose::Settle).unwrap();
    let adds: Vec<u32> = flat.nodes.iter().filter(|n| n.op == crate::flat::Op::Add).map(|n| n.lanes).collect();
    assert_eq!(adds, [1, 1, 1, 7]);
}

#[test]
fn there_are_no_lanes_unless_asked_for() {
    let mut top = Module::empty("top");
    let value = input(&mut top, 4);
    let hits: Vec<NodeId> = (0..8u8)
        .map(|k| {
            let label = node(&mut top, Op::Const(Bits::from(k)), 4, vec![]);
            node(&mut top, Op::Eq, 1, vec![value, label])
        })
        .collect();
    let all = node(&mut top, Op::Cat, 8, hits);
    output(&mut top, all);
    let directory = Directory::new(&Arc::new(top));
    let lanes = Lanes::new(&directory, false);
    let cells = Cells::new(&directory, &lanes);
    let flat = flatten(&directory, &lanes, &cells, Purpose::Settle).unwrap();
    assert_eq!(flat.nodes.iter().find(|n| n.lanes > 1), None);
}

/// A design that multiplies much only where bits allow it: the compiler finds groups of nodes with shared conditions in
/// it.
struct Conditions {
    top: Module,
    bits: Vec<NodeId>,
    wide: NodeId,
}

impl Conditions {
    fn new(bits: u32) -> Conditions {
        let mut top = Module::empty("top");
        let bits = (0..bits).map(|_| input(&mut top, 1)).collect();
        let wide = input(&mut top, 16);
        Conditions { top, bits, wide }
    }

    fn bit(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        node(&mut self.top, op, 1, args.to_vec())
    }

    /// A product of so many factors, another one for each `start`.
    fn costly(&mut self, start: u8, factors: u32) -> NodeId {
        let start = node(&mut self.top, Op::Const(Bits::from(start)), 16, vec![]);
        let first = node(&mut self.top, Op::Xor, 16, vec![start, self.wide]);
        (0..factors).fold(first, |value, _| node(&mut self.top, Op::Mul, 16, vec![value, first]))
    }

    fn costly_bit(&mut self, start: u8, factors: u32) -> NodeId {
        let value = self.costly(start, factors);
        self.bit(Op::Parity, &[value])
    }

    fn check(self) {
        all_levels_agree(&Arc::new(self.top), 200);
    }
}

/// The compiled engine does at every level what the interpreter does.
fn all_levels_agree(top: &Arc<Module>, cycles: u64) {
    let directory = Arc::new(Directory::new(top));
    let mut interpreter = Interpreter::new(&directory, 1).unwrap();
    for &level in OptLevel::ALL {
        let mut compiled = Compiled::new(&directory, 1, level).unwrap();
        compare(&mut interpreter, &mut compiled, 1, cycles).unwrap_or_else(|m| panic!("{level:?}: {m}"));
    }
}

/// Each operand of an or matters only while the other is off; but one of them must be computed.
#[test]
fn an_or_of_two_that_are_not_computed_is_on() {
    let mut c = Conditions::new(2);
    let [l, m] = [c.bits[0], c.bits[1]];
    let operands = [(l, m, 3), (m, l, 5)].map(|(own, other, start)| {
        let value = c.costly_bit(start, 20);
        let also = c.bit(Op::Or, &[other, value]);
        output(&mut c.top, also);
        c.bit(Op::Or, &[own, value])
    });
    let or = c.bit(Op::Or, &operands);
    output(&mut c.top, or);
    c.check();
}

/// `either` is computed only under `m`; that it is on whenever `own` is on is no reason to look at it.
#[test]
fn a_condition_is_always_computed() {
    let mut c = Conditions::new(4);
    let [m, own] = [c.bits[0], c.bits[1]];
    let much = c.costly_bit(3, 40);
    let either = c.bit(Op::Or, &[own, much]);
    let under_m = c.bit(Op::And, &[m, either]);
    output(&mut c.top, under_m);
    let value = c.costly_bit(5, 20);
    for other in [c.bits[2], c.bits[3]] {
        let both = c.bit(Op::And, &[own, other]);
        let under_both = c.bit(Op::And, &[both, value]);
        output(&mut c.top, under_both);
    }
    c.check();
}

#[derive(Bundle, Clone, Copy)]
struct LaneIn<T> {
    word: T,
    other: T,
    carry: T,
    enables: T,
    starts: T,
    ends: T,
}

#[derive(Bundle, Clone, Copy)]
struct LaneOut<T> {
    sum: T,
    over: T,
    read: T,
    held: T,
    power: T,
    product: T,
}

/// What a lane of the core does: a sum with a carry in and out, a memory written where a sum says so, a register with
/// two reasons to change, single bits as a word, and parts of a product.
fn busy_lane(carry_of_all: bool) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    let inputs = LaneIn { word: 32, other: 32, carry: 1, enables: 4, starts: 1, ends: 1 };
    module("busy_lane", inputs, |m, i| {
        let comes_in = if carry_of_all { i.carry } else { i.carry ^ i.word.bit(3) };
        let wide = |word: Signal| cat(&[comes_in, word]).zext(34);
        let added = wide(i.word) + wide(i.other & !i.word);
        let (sum, over) = (added.slice(1, 32), added.msb());
        let words = m.memory("words", 32, 3);
        words.write_granules(i.enables.only_if(i.starts & over), i.word.slice(0, 3), sum);
        let read = words.read(i.other.slice(0, 3));
        let held = m.reg("held", 32);
        let stops = i.ends & i.word.bit(0);
        held.next_if(i.starts | stops, stops.mux(sum.literal(0u32), sum * sum));
        let power = cat(&(0..32u32).map(|k| i.word.slice(0, 5).eq(k) & i.other.bit(k % 3)).collect::<Vec<_>>());
        let product = i.word.slice(0, 17).mul_full_signed(i.other.slice(0, 17)).slice(3, 29);
        LaneOut { sum, over, read, held: held.q, power, product }
    })
}

/// Inputs for every lane, side by side, and two bits for all.
#[derive(Bundle, Clone, Copy)]
struct LanesIn<T> {
    words: T,
    others: T,
    enables: T,
    all: T,
}

/// Some lanes' results pass a register in the parent, which puts them together anew, on their way into other lanes.
fn busy_lanes(lanes: u32, carry_of_all: bool) -> TypedModule<LanesIn<Width>, LaneOut<Signal>> {
    let inputs = LanesIn { words: 32 * lanes, others: 32 * lanes, enables: 4 * lanes, all: 3 };
    module("busy", inputs, |m, i| {
        let lane = busy_lane(carry_of_all);
        let each_in = |word| LaneIn {
            word: each(word),
            other: each(i.others),
            carry: all(i.all.bit(0)),
            enables: each(i.enables),
            starts: all(i.all.bit(1)),
            ends: all(i.all.bit(2)),
        };
        let first = m.replicate("first", lanes, &lane, each_in(i.words));
        let anew = elements(first.sum, 32)
            .into_iter()
            .map(|word| i.all.bit(0).mux(cat(&[word.bit(0), word.literal(0u32).slice(0, 31)]), word));
        let between = m.pipe("between", cat(&anew.collect::<Vec<_>>()));
        let second = m.replicate("second", lanes, &lane, each_in(between));
        let both = |a: Signal, b: Signal| cat(&[a, b]);
        LaneOut {
            sum: both(first.sum, second.sum),
            over: both(first.over, second.over),
            read: both(first.read, second.read),
            held: both(first.held, second.held),
            power: both(first.power, second.power),
            product: both(first.product, second.product),
        }
    })
}

#[test]
fn what_lanes_of_the_core_do_is_the_same_in_all_engines() {
    for (lanes, carry_of_all) in [(1, true), (3, false), (5, true), (8, false), (9, true), (17, false), (33, true)] {
        println!("{lanes} lanes");
        all_levels_agree(&busy_lanes(lanes, carry_of_all).check().unwrap().netlist, 60);
    }
}

/// Sums and products are made in lanes of 32 bits, and what the parent puts together anew is kept in lanes.
#[test]
fn lanes_are_as_narrow_as_can_be() {
    for lanes in [8, 16] {
        are_as_narrow_as_can_be(lanes);
    }
}

fn are_as_narrow_as_can_be(count: u32) {
    use crate::flat;
    let directory = Directory::new(&busy_lanes(count, true).check().unwrap().netlist);
    let lanes = Lanes::new(&directory, true);
    let cells = Cells::new(&directory, &lanes);
    let between = directory.registers.iter().position(|e| e.path == "between").unwrap();
    assert_eq!(cells.shapes[cells.registers[between].number as usize].lanes, count);
    let purpose = Purpose::Edge { reset: false, checks: crate::checks::Checks::All, record: false };
    let flat = flatten(&directory, &lanes, &cells, purpose).unwrap();
    // Nodes, and all that they are computed from.
    let with_operands = |mut ahead: Vec<flat::Id>| {
        let mut found = vec![false; flat.nodes.len()];
        while let Some(id) = ahead.pop() {
            if !std::mem::replace(&mut found[id.index()], true) {
                ahead.extend(&flat.node(id).args);
            }
        }
        found
    };
    let among = |found: &[bool], what: &dyn Fn(&flat::Node) -> bool| {
        flat.nodes.iter().zip(found).any(|(node, found)| *found && what(node))
    };
    let actions = || flat.actions.iter().flatten().chain(&flat.late);
    let needed = with_operands(actions().flat_map(|a| a.operands().into_iter().chain(a.guard)).collect());
    let wide = |n: &flat::Node| matches!(n.op, flat::Op::Add | flat::Op::Mul) && n.lanes > 1 && n.width > 32;
    assert!(!among(&needed, &wide));
    // Neither write waits for the sum that its enable depends on.
    let adds = |id: flat::Id| among(&with_operands(vec![id]), &|n| n.op == flat::Op::Add);
    let writes = |a: &&flat::Action| a.effects.iter().any(|e| matches!(e, flat::Effect::Write { .. }));
    let guards: Vec<flat::Id> = flat.actions.iter().flatten().filter(writes).map(|a| a.guard.unwrap()).collect();
    assert_eq!((guards.len(), guards.into_iter().any(adds)), (2, false));
}

#[derive(Bundle, Clone, Copy)]
struct SenderIn<T> {
    to: T,
    all_to: T,
}

#[derive(Bundle, Clone, Copy)]
struct SenderOut<T> {
    next: T,
    alike: T,
    decoded: T,
}

#[derive(Bundle, Clone, Copy)]
struct ReceiverIn<T> {
    wanting: T,
    words: T,
    bytes: T,
}

#[derive(Bundle, Clone, Copy)]
struct ReceiverOut<T> {
    word: T,
    octet: T,
}

#[derive(Bundle, Clone, Copy)]
struct NetworkIn<T> {
    to: T,
    sends: T,
    words: T,
    bytes: T,
}

#[derive(Bundle, Clone, Copy)]
struct NetworkOut<T> {
    alike: T,
    decoded: T,
    word: T,
    octet: T,
}

/// Senders that each name a receiver with so many bits, which takes what the lowest of them sends: with bits for each
/// pair of a sender and a receiver, as a network between lanes and banks has them.
fn network(senders: u32, receivers: u32, name: u32) -> TypedModule<NetworkIn<Width>, NetworkOut<Signal>> {
    let inputs = NetworkIn { to: name * senders, sends: senders, words: 32 * senders, bytes: 8 * senders };
    module("network", inputs, |m, i| {
        let sender = module("sender", SenderIn { to: name, all_to: name * senders }, |_, i| {
            let alike = elements(i.all_to, name).iter().map(|other| other.eq(i.to)).collect::<Vec<_>>();
            SenderOut { next: i.to ^ i.all_to.slice(0, name), alike: cat(&alike), decoded: i.to.decode(receivers) }
        });
        let sent = m.replicate("sender", senders, &sender, SenderIn { to: each(i.to), all_to: all(i.to) });
        let to = m.pipe("kept", sent.next);
        let to: Vec<Signal> = elements(to, name).into_iter().map(|to| to.decode(receivers)).collect();
        let wanting = |k: u32| cat(&to.iter().map(|to| to.bit(k)).collect::<Vec<_>>()) & i.sends;
        let wanting = cat(&(0..receivers).map(wanting).collect::<Vec<_>>());
        let inputs = ReceiverIn { wanting: senders, words: 32 * senders, bytes: 8 * senders };
        let receiver = module("receiver", inputs, |_, i| {
            let first = i.wanting.lowest_one();
            let (words, bytes) = (elements(i.words, 32), elements(i.bytes, 8));
            ReceiverOut { word: select_one_hot(&words, first), octet: select_one_hot(&bytes, first) }
        });
        let inputs = ReceiverIn { wanting: each(wanting), words: all(i.words), bytes: all(i.bytes) };
        let got = m.replicate("receiver", receivers, &receiver, inputs);
        NetworkOut { alike: sent.alike, decoded: sent.decoded, word: got.word, octet: got.octet }
    })
}

/// Bits that name each of so many.
fn bits_of(many: u32) -> u32 {
    many.next_power_of_two().trailing_zeros().max(1)
}

#[test]
fn bits_for_each_pair_of_lanes_are_the_same_in_all_engines() {
    for lanes in [1, 7, 9, 33, 64] {
        println!("{lanes} lanes");
        all_levels_agree(&network(lanes, lanes, bits_of(lanes)).check().unwrap().netlist, 60);
    }
    // The last has receivers that nobody can name.
    for (senders, receivers, name) in [(16, 4, 2), (9, 33, 6), (16, 3, 4), (12, 16, 3)] {
        println!("{senders} senders, {receivers} receivers");
        all_levels_agree(&network(senders, receivers, name).check().unwrap().netlist, 60);
    }
}

/// A bit for each pair of lanes is packed for each of them, then chosen by, unless it stays in the lanes.
#[test]
fn bits_for_each_pair_of_lanes_stay_in_the_lanes() {
    use crate::flat;
    let directory = Directory::new(&network(16, 16, 4).check().unwrap().netlist);
    let lanes = Lanes::new(&directory, true);
    let cells = Cells::new(&directory, &lanes);
    let flat = flatten(&directory, &lanes, &cells, Purpose::Settle).unwrap();
    let needed = flat.needed();
    assert!(needed.contains(&true));
    let bits = flat.nodes.iter().zip(needed).filter(|(n, needed)| *needed && n.lanes > 1 && n.width == 1);
    assert_eq!(bits.map(|(n, _)| n).collect::<Vec<_>>(), Vec::<&flat::Node>::new());
}

//! `lr.w` and `sc.w` on the core, beside the instruction-set simulator: what is added up is all there, on every unit and
//! before every memory.

use heddle_check::checked;
use heddle_simt::isa::Atomic;
use heddle_simt::shape::Cache;
use heddle_simt::{Backing, Coalescing, Divergence, Order, Replay, Shape, SlaveModel, Timing};
use heddle_testbench::asm::*;
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::{Machine, MachineError, MachineOptions};

/// Words of main memory that threads add to.
const WORDS: u32 = 0x800;

/// Words of the block's scratchpad.
const SCRATCHPAD_UPPER: u32 = heddle_simt::address::SCRATCHPAD >> 12;

fn core(lanes: u32, warps: u32) -> Shape {
    let memory = (64 << 10u32).max((lanes * warps * 64 * 2).next_power_of_two());
    Shape { memory, program: 4 << 10, stack: 64, reservations: true, ..Shape::new(lanes, warps) }
}

fn machine(shape: &Shape, program: &Asm) -> Machine {
    let options = MachineOptions { max_cycles: 400_000, ..checked() };
    Machine::new(shape, program.program(), &options).unwrap()
}

/// Adds 1 to the word at x6, `rounds` times, each with a pair of its own.
fn add(program: Asm, rounds: i32) -> Asm {
    program
        .put([addi(9, ZERO, rounds)])
        .label("again")
        .put([lr(5, 6), addi(5, 5, 1), sc(7, 5, 6)])
        .branch(BNE, 7, ZERO, "again")
        .put([addi(9, 9, -1)])
        .branch(BNE, 9, ZERO, "again")
}

/// Shapes, units, memories, coalescing and replay; few of each.
fn cores() -> Vec<Shape> {
    let units = Divergence::ALL.iter().map(|&unit| core(4, 4).with_divergence(unit));
    let shapes = [(1, 1), (1, 4), (2, 2), (16, 2), (64, 1)].map(|(lanes, warps)| core(lanes, warps));
    let timing = Timing { latency: 20, jitter: 7, interval: 1, seed: 3 };
    let base = core(4, 4);
    let wishbone = |width| Backing::Wishbone { width, slave: SlaveModel { timing, error: None } };
    let cache = Cache { size: 1 << 10, ways: 2, line: 2, misses: 2 };
    let others = [
        Shape { replay: Replay::Serialise, ..base.clone() },
        Shape { coalescing: Coalescing::Full, ..base.clone() },
        Shape { coalescing: Coalescing::Full, replay: Replay::Serialise, scratchpad: 0, ..base.clone() },
        Shape { scratchpad: 0, ..base.clone() },
        Shape { scratchpad: 0, ..core(16, 2) },
        Shape { backing: Backing::Model(timing), ..base.clone() },
        Shape { backing: Backing::Model(timing), cache: Some(cache), ..base.clone() },
        Shape { backing: wishbone(32), replay: Replay::Serialise, ..base.clone() },
        Shape { backing: wishbone(128), ..base },
    ];
    shapes.into_iter().chain(units).chain(others).collect()
}

/// All threads add to one word.
#[test]
fn all_at_one_word() {
    let program = add(Asm::default().put([addi(6, ZERO, WORDS as i32 - 0x400), addi(6, 6, 0x400)]), 3);
    let program = program.put([addi(A0, ZERO, 0)]).exit();
    for shape in cores() {
        let mut machine = machine(&shape, &program);
        machine.write(WORDS, &[0; 4]).unwrap();
        machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        assert_eq!(machine.read(WORDS, 4).unwrap(), (3 * shape.threads()).to_le_bytes(), "{}", shape.options());
    }
}

/// Neighbours at words of their own, two lanes a word; and others that store beside them in the same lines.
#[test]
fn some_at_each_word() {
    let program = Asm::default()
        .put([csrr(5, LANE), andi(6, 5, -2), slli(6, 6, 2), addi(8, ZERO, WORDS as i32 - 0x400), addi(8, 8, 0x400)])
        .put([heddle_testbench::asm::add(6, 6, 8)]);
    // A store of its own to the word behind, half the time.
    let program = program.put([andi(10, 5, 1)]).branch(BEQ, 10, ZERO, "pairs").put([sw(5, 6, 4)]).label("pairs");
    let program = add(program, 4).put([addi(A0, ZERO, 0)]).exit();
    for shape in cores() {
        let mut machine = machine(&shape, &program);
        machine.write(WORDS, &[0; 512]).unwrap();
        machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        let lanes_a_word = shape.lanes.min(2);
        for word in 0..shape.lanes.div_ceil(2) {
            let got = machine.read(WORDS + 8 * word, 4).unwrap();
            assert_eq!(got, (4 * lanes_a_word * shape.warps).to_le_bytes(), "word {word}, {}", shape.options());
        }
    }
}

/// In the scratchpad, lanes at words of several lines.
#[test]
fn in_the_scratchpad() {
    let program = Asm::default()
        .put([csrr(5, LANE), andi(6, 5, 3), slli(6, 6, 6), lui(8, SCRATCHPAD_UPPER)])
        .put([heddle_testbench::asm::add(6, 6, 8)])
        // Thread 0 clears all words before the others begin.
        .put([csrr(10, MHARTID)])
        .branch(BNE, 10, ZERO, "cleared")
        .put((0..4).map(|k| sw(ZERO, 8, 64 * k)))
        .label("cleared")
        .put([BARRIER]);
    let program = add(program, 3)
        .put([BARRIER])
        .branch(BNE, 10, ZERO, "end")
        .put([addi(9, ZERO, WORDS as i32 - 0x400), addi(9, 9, 0x400)])
        .put((0..4).flat_map(|k| [lw(5, 8, 64 * k), sw(5, 9, 4 * k)]))
        .label("end")
        .put([addi(A0, ZERO, 0)])
        .exit();
    for shape in cores().into_iter().filter(|shape| shape.scratchpad > 0) {
        let mut machine = machine(&shape, &program);
        machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        for word in 0..shape.lanes.min(4) {
            let lanes = (0..shape.lanes).filter(|lane| lane & 3 == word).count() as u32;
            let got = machine.read(WORDS + 4 * word, 4).unwrap();
            assert_eq!(got, (3 * lanes * shape.warps).to_le_bytes(), "word {word}, {}", shape.options());
        }
    }
}

/// Locks and counters of both kinds beside each other: an atomic operation takes a reservation away.
#[test]
fn beside_atomic_operations() {
    let program = Asm::default().put([addi(6, ZERO, WORDS as i32 - 0x400), addi(6, 6, 0x400), addi(8, ZERO, 1)]);
    let program = program.put([csrr(10, MHARTID), andi(10, 10, 1)]).branch(BEQ, 10, ZERO, "pairs");
    let program = program.put([amo(Atomic::Add as u32, 5, 8, 6); 3]).jal(ZERO, "end").label("pairs");
    let program = add(program, 3).label("end").put([addi(A0, ZERO, 0)]).exit();
    for shape in cores() {
        let mut machine = machine(&shape, &program);
        machine.write(WORDS, &[0; 4]).unwrap();
        machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        assert_eq!(machine.read(WORDS, 4).unwrap(), (3 * shape.threads()).to_le_bytes(), "{}", shape.options());
    }
}

/// What no pair may do: succeed without `lr.w`, at another word, twice, or behind a store of its own. Results of the
/// `sc.w`s follow each other.
#[test]
fn without_a_reservation_it_fails() {
    let pairs = [
        vec![sc(5, 6, 6)],
        vec![lr(7, 6), addi(10, 6, 4), sc(5, 6, 10)],
        vec![lr(7, 6), addi(10, 6, 4), sc(5, 6, 10), sc(5, 6, 6)],
        vec![lr(7, 6), sc(5, 7, 6), sc(5, 7, 6)],
        vec![lr(7, 6), sw(7, 6, 0), sc(5, 6, 6)],
        vec![lr(7, 6), addi(10, 6, 4), lr(7, 10), sc(5, 6, 6)],
        vec![lr(7, 6), lr(7, 6), sc(5, 7, 6), addi(5, 5, 1)],
        vec![lr(7, 6), sc(ZERO, 7, 6), addi(5, ZERO, 1)],
    ];
    for shape in cores() {
        let mut program = Asm::default().put([csrr(8, MHARTID), slli(8, 8, 8), addi(6, 8, 0x400), addi(6, 6, 0x400)]);
        program = program.put([addi(11, ZERO, 0)]);
        for words in &pairs {
            program = program.put(words.iter().copied()).put([heddle_testbench::asm::add(11, 11, 5)]);
        }
        let all = pairs.len() as i32;
        let program = program.put([addi(A0, 11, -all)]).exit();
        let shape = Shape { memory: 256 << 10, ..shape };
        machine(&shape, &program).run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
    }
}

/// A core without reservations names the option.
#[test]
fn a_core_without_them_says_so() {
    let program = Asm::default().put([addi(6, ZERO, 0x400), lr(5, 6)]).exit();
    let shape = Shape { reservations: false, ..core(2, 1) };
    let error = machine(&shape, &program).run().unwrap_err();
    assert!(matches!(error, MachineError::Fault(_)), "{error}");
    assert!(error.to_string().contains("`lr.w` or `sc.w`, which this core lacks (--reservations on)"), "{error}");
    let shape = Shape { atomics: false, ..core(2, 1) };
    assert!(shape.check().unwrap_err().to_string().starts_with("reservations = on: needs atomics"));
}

/// Words that count failures of each lane.
const FAILURES: u32 = WORDS + 0x400;

/// Each lane adds to one word in code of its own, in a path of its own: none is kept from its `sc.w`, whenever its path
/// is to give way.
#[test]
fn a_path_does_not_give_way_before_its_sc() {
    let (lanes, rounds) = (4, 20);
    let mut program = Asm::default()
        .put([csrr(12, LANE), slli(13, 12, 2), addi(6, ZERO, WORDS as i32 - 0x400), addi(6, 6, 0x400)])
        .put([heddle_testbench::asm::add(13, 13, 6), addi(11, ZERO, 0)]);
    for lane in 0..lanes {
        let (again, next, other) = (format!("again {lane}"), format!("next {lane}"), format!("other than {lane}"));
        program = program
            .put([addi(14, ZERO, lane as i32)])
            .branch(BNE, 12, 14, &other)
            // At a time of its own.
            .put([NOP].repeat(lane))
            .put([addi(9, ZERO, rounds)])
            .label(&again)
            .put([lr(5, 6), addi(5, 5, 1)])
            .branch(BEQ, 5, ZERO, &next)
            .put([sc(7, 5, 6), heddle_testbench::asm::add(11, 11, 7)])
            .label(&next)
            .put([addi(9, 9, -1)])
            .branch(BNE, 9, ZERO, &again)
            .jal(ZERO, "end")
            .label(&other);
    }
    let program = program.label("end").put([sw(11, 13, 0x400), addi(A0, ZERO, 0)]).exit();
    let fair = Shape { fair: true, ..core(lanes as u32, 1) };
    let cores = [
        Shape { patience: 2, ..fair.clone() },
        Shape { patience: 16, ..fair.clone() },
        Shape { patience: 2, replay: Replay::Serialise, ..fair.clone() },
        Shape { patience: 2, divergence: Divergence::ARBITER, ..fair.clone() },
        Shape { patience: 2, divergence: Divergence::ARBITER, replay: Replay::Serialise, ..fair.clone() },
        Shape { order: Order::BreadthFirst, ..fair.clone() },
        Shape { order: Order::BreadthFirst, replay: Replay::Serialise, ..fair.clone() },
        Shape { order: Order::Swap, patience: 4, ..fair.clone() },
        Shape { order: Order::Majority, patience: 4, ..fair },
    ];
    for shape in cores {
        let mut machine = machine(&shape, &program);
        machine.write(WORDS, &[0; 4]).unwrap();
        machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        let mut word = |at: u32| u32::from_le_bytes(machine.read(at, 4).unwrap().try_into().unwrap());
        let failures: Vec<u32> = (0..shape.lanes).map(|lane| word(FAILURES + 4 * lane)).collect();
        assert_eq!(failures, [0; 4], "{}", shape.options());
        assert_eq!(word(WORDS), shape.lanes * rounds as u32, "{}", shape.options());
    }
}

/// Of a branch between `lr.w` and `sc.w`, the side that goes on to the `sc.w` runs first, whichever has more threads: the
/// other writes there.
#[test]
fn the_side_that_comes_to_the_sc_runs_first() {
    for (order, lane_leaves) in [
        (Order::DepthPc, true),
        (Order::Pc, false),
        (Order::Swap, true),
        (Order::Minority, true),
        (Order::Minority, false),
        (Order::Majority, true),
        (Order::Majority, false),
    ] {
        let program = Asm::default()
            .put([csrr(12, LANE), slli(13, 12, 2), addi(6, ZERO, WORDS as i32 - 0x400), addi(6, 6, 0x400)])
            .put([heddle_testbench::asm::add(13, 13, 6), addi(7, ZERO, 0)])
            .put([lr(5, 13), addi(5, 5, 1)])
            .branch(if lane_leaves { BEQ } else { BNE }, 12, ZERO, "leaves")
            .put([sc(7, 5, 13)])
            .jal(ZERO, "end")
            .label("leaves")
            .put([sw(ZERO, 6, 0)])
            .label("end")
            .put([sw(7, 13, 0x400), addi(A0, ZERO, 0)])
            .exit();
        let shape = Shape { order, ..core(4, 1) };
        let mut machine = machine(&shape, &program);
        machine.write(WORDS, &[0; 16]).unwrap();
        machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        assert_eq!(machine.read(FAILURES, 16).unwrap(), [0; 16], "{}, {lane_leaves}", shape.options());
    }
}

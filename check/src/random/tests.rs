use super::*;
use heddle_hdl::Code;
use heddle_simt::Shape;
use heddle_simt::isa::{Atomic, reservation};
use heddle_testbench::iss::{Iss, Operation};
use std::collections::BTreeSet;

/// Runs the program on the simulator; how many instructions it takes.
fn run(program: &RandomProgram, shape: &Shape, features: Features) -> u64 {
    let mut iss = Iss::new(&program.assemble(shape, features).program(), shape).unwrap();
    iss.set_limit(u64::from(shape.threads()) * 20_000);
    iss.run().unwrap_or_else(|error| panic!("{error}"));
    iss.executed()
}

/// A shape with all that is optional, and the smallest scratchpad.
fn with_all(lanes: u32, warps: u32) -> Shape {
    Shape { scratchpad: 8 * lanes * warps, ..Shape::new(lanes, warps) }
}

#[test]
fn every_program_ends() {
    for seed in 0..400 {
        println!("seed {seed}");
        run(&program(seed), &Shape::new(4, 2), Features::of(&Shape::new(4, 2)));
        run(&program(seed), &Shape { stack: 64, ..Shape::new(1, 1) }, Features::ONE_HART);
    }
}

/// With all features, in one block and in the program's own, on shapes of all kinds.
#[test]
fn every_program_ends_in_any_grid() {
    let small = Shape { stack: 64, memory: 32 << 10, program: 16 << 10, ..with_all(8, 4) };
    let shapes = [with_all(4, 4), with_all(1, 1), with_all(1, 8), with_all(16, 1), small];
    let (mut several, mut partial, mut turns) = (0, 0, 0);
    for seed in 0..300 {
        println!("seed {seed}");
        let program = program(seed);
        for shape in &shapes {
            run(&program, shape, Features::of(shape));
            let mut iss = Iss::new(&program.assemble(shape, Features::of(shape)).program(), shape).unwrap();
            let grid = program.grid(shape);
            iss.set_limit(u64::from(grid.blocks * grid.threads) * 20_000);
            iss.run_grid(grid).unwrap_or_else(|error| panic!("{grid:?}: {error}"));
            several += u32::from(grid.blocks > 1);
            partial += u32::from(!grid.threads.is_multiple_of(shape.lanes));
            turns += u32::from(grid.blocks > grid.resident(shape));
        }
    }
    assert!(several > 300 && partial > 200 && turns > 150, "{several} {partial} {turns}");
}

/// Accesses of every kind go to every place, and threads come to barriers before and after others have ended.
#[test]
fn features_are_used() {
    let shape = with_all(4, 2);
    let mut seen = BTreeSet::new();
    let (mut waits, mut waits_without_all) = (0, 0);
    for seed in 0..1000 {
        let mut iss = Iss::new(&program(seed).assemble(&shape, Features::of(&shape)).program(), &shape).unwrap();
        let live = |iss: &Iss| (0..8).filter(|&hart| iss.hart(hart).is_live()).collect::<Vec<_>>();
        while !live(&iss).is_empty() {
            for hart in live(&iss) {
                if iss.hart(hart).waits() {
                    continue;
                }
                let step = iss.step(hart).unwrap();
                waits += u32::from(step.barrier);
                waits_without_all += u32::from(step.barrier && live(&iss).len() < 8);
                if let Some(access) = step.access {
                    let kind = match access.operation {
                        Operation::Load => 0,
                        Operation::Store => 1,
                        Operation::Atomic { funct5, .. } => 2 + funct5,
                        Operation::Failed => 2 + reservation::STORE_CONDITIONAL,
                    };
                    seen.insert((access.address >> 28, kind, access.bytes));
                }
            }
        }
    }
    let places = [0, 4, 8].into_iter();
    let kinds = [1, 2, 4].into_iter().flat_map(|bytes| [(0, bytes), (1, bytes)]);
    let kinds: Vec<_> = kinds.chain(Atomic::ALL.iter().map(|&operation| (2 + operation as u32, 4))).collect();
    let wanted: BTreeSet<_> = places.flat_map(|at| kinds.iter().map(move |&(kind, bytes)| (at, kind, bytes))).collect();
    let missing: Vec<_> = wanted.difference(&seen).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(waits > 1000 && waits_without_all > 100, "{waits} {waits_without_all}");
}

#[test]
fn programs_are_neither_trivial_nor_all_alike() {
    let lengths: Vec<u64> =
        (0..100).map(|seed| run(&program(seed), &Shape::new(1, 1), Features::of(&Shape::new(4, 2)))).collect();
    assert!(lengths.iter().filter(|&&n| n > 200).count() > 20, "{lengths:?}");
    assert!(lengths.iter().collect::<BTreeSet<_>>().len() > 60, "{lengths:?}");
}

#[test]
fn a_seed_is_a_program() {
    let words = |seed| program(seed).assemble(&Shape::new(8, 8), Features::of(&Shape::new(4, 2))).words();
    assert_eq!(words(7), words(7));
    assert_ne!(words(7), words(8));
}

/// All conditions, ends and instructions of the core turn up.
#[test]
fn every_instruction_turns_up() {
    let mut names = BTreeSet::new();
    for seed in 0..60 {
        let words = program(seed).assemble(&Shape::new(4, 1), Features::of(&Shape::new(4, 2))).words();
        let text = words.into_iter().map(|word| heddle_testbench::disassemble(word, 0));
        names.extend(text.map(|text| text.split(' ').next().unwrap_or("").to_string()));
    }
    let wanted = "add sub sll slt sltu xor srl sra or and mul mulh mulhsu mulhu div divu rem remu addi slti sltiu xori ori \
                  andi slli srli srai lui auipc lb lh lw lbu lhu sb sh sw jal jalr beq bne blt bge bltu bgeu fence ecall csrr";
    for name in wanted.split_whitespace() {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
}

#[test]
fn a_failing_program_becomes_small() {
    let remainders = |p: &RandomProgram| {
        let words = p.assemble(&Shape::new(1, 1), Features::of(&Shape::new(4, 2))).words();
        words.iter().filter(|&&word| heddle_testbench::disassemble(word, 0).starts_with("remu")).count()
    };
    let check = |p: &RandomProgram| if remainders(p) == 0 { Ok(()) } else { Err("has a remainder".to_string()) };
    let failing = search(0..100, check).unwrap();
    let ops: usize = failing.program.functions.iter().flat_map(|f| &f.blocks).map(|b| b.ops.len()).sum();
    assert_eq!((ops, failing.program.functions.len()), (1, 1), "{:?}", failing.program);
    assert!(remainders(&program(failing.seed)) > 0);
    assert!(search(0..100, |_| Ok(())).is_none());
}

use super::*;
use crate::iss::Iss;
use heddle_simt::Shape;
use std::collections::BTreeSet;

/// Runs the program on the simulator; how many instructions it takes.
fn run(program: &RandomProgram, shape: &Shape, features: Features) -> u64 {
    let mut iss = Iss::new(&program.assemble(shape, features).program(), shape).unwrap();
    iss.set_limit(u64::from(shape.threads()) * 20_000);
    iss.run().unwrap_or_else(|error| panic!("{error}"));
    iss.executed()
}

#[test]
fn every_program_ends() {
    for seed in 0..400 {
        println!("seed {seed}");
        run(&program(seed), &Shape::new(4, 2), Features::Core);
        run(&program(seed), &Shape { stack: 64, ..Shape::new(1, 1) }, Features::OneHart);
    }
}

#[test]
fn programs_are_neither_trivial_nor_all_alike() {
    let lengths: Vec<u64> = (0..100).map(|seed| run(&program(seed), &Shape::new(1, 1), Features::Core)).collect();
    assert!(lengths.iter().filter(|&&n| n > 200).count() > 30, "{lengths:?}");
    assert!(lengths.iter().collect::<BTreeSet<_>>().len() > 60, "{lengths:?}");
}

#[test]
fn a_seed_is_a_program() {
    let words = |seed| program(seed).assemble(&Shape::new(8, 8), Features::Core).words();
    assert_eq!(words(7), words(7));
    assert_ne!(words(7), words(8));
}

/// All conditions, ends and instructions of the core turn up.
#[test]
fn every_instruction_turns_up() {
    let mut names = BTreeSet::new();
    for seed in 0..60 {
        let words = program(seed).assemble(&Shape::new(4, 1), Features::Core).words();
        let text = words.into_iter().map(|word| crate::disassemble(word, 0));
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
        let words = p.assemble(&Shape::new(1, 1), Features::Core).words();
        words.iter().filter(|&&word| crate::disassemble(word, 0).starts_with("remu")).count()
    };
    let check = |p: &RandomProgram| if remainders(p) == 0 { Ok(()) } else { Err("has a remainder".to_string()) };
    let failing = search(0..100, check).unwrap();
    let ops: usize = failing.program.functions.iter().flat_map(|f| &f.blocks).map(|b| b.ops.len()).sum();
    assert_eq!((ops, failing.program.functions.len()), (1, 1), "{:?}", failing.program);
    assert!(remainders(&program(failing.seed)) > 0);
    assert!(search(0..100, |_| Ok(())).is_none());
}

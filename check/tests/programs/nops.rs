//! Random programs are laid out again without changing what they do.

use heddle_check::random::{self, End, Features, Op};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::iss::Iss;
use heddle_testbench::predict::padded;
use heddle_testbench::program::Symbol;
use heddle_testbench::reconverge::instruction::{Flow, Instruction};

#[path = "../../../testbench/src/predict/tests/relocate.rs"]
mod relocate;

#[test]
fn random_programs_with_nops_everywhere_give_their_results() {
    let shape = Shape { stack: 1024, program: 256 << 10, ..Shape::new(1, 1) };
    for seed in 0..400 {
        let mut random = random::program(seed);
        for block in random.functions.iter_mut().flat_map(|function| &mut function.blocks) {
            // Tables of code at a computed distance, and what looks at its own address, cannot move.
            block.ops.retain(|op| !matches!(op, Op::Scatter(..) | Op::Upper(..)));
            if let End::Switch(_, [distance, ..]) = block.end {
                block.end = End::Jump(distance as i8);
            }
        }
        let program = random.assemble(&shape, Features::ONE_HART).program();
        let elf = relocate::elf(&program);
        let memory = |program: &Program| {
            let mut iss = Iss::new(program, &shape).unwrap();
            iss.set_limit(2_000_000);
            let result = iss.run().map_err(|error| error.to_string());
            assert_eq!(result, Ok(()), "seed {seed}");
            iss.memory()[random::DATA as usize..(shape.memory - shape.stack) as usize].to_vec()
        };
        let (padded, _) = padded(&elf, 1).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(memory(&program), memory(&Program::parse(&padded).unwrap()), "seed {seed}");
    }
}

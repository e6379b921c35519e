//! What the analysis of reconvergence says is enough for a stack, and true: programs on a [`StackMachine`], which
//! notices if not.

use crate::stack_machine::{Points, StackMachine};
use heddle_check::random::{self, Features};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::asm::*;
use heddle_testbench::kernels::{ALL, Device, Kernel};
use heddle_testbench::reconverge::{Branch, Kind, Reconvergence, analyse};

const SHAPES: [(u32, u32); 2] = [(4, 2), (8, 8)];

#[test]
fn kernels_run_on_a_stack() {
    let mut failures = Vec::new();
    for Kernel { name, elf, drive, .. } in ALL {
        let program = Program::parse(elf).unwrap();
        for (lanes, warps) in SHAPES {
            let shape = Shape { barriers: true, atomics: true, scratchpad: 64 << 10, ..Shape::new(lanes, warps) };
            for points in [Points::Rpc, Points::RpcAndLikely] {
                let mut machine = StackMachine::new(&program, &shape, points);
                let done = drive(&mut machine, 1);
                failures.extend(done.err().map(|e| format!("{name} on {lanes} × {warps} with {points:?}: {e}")));
            }
        }
    }
    assert_eq!(failures, [""; 0]);
}

#[test]
fn random_programs_run_on_a_stack() {
    let shape = Shape::new(4, 4);
    let (mut uniform, mut likely, mut parted) = (0, 0, 0);
    for seed in 0..600 {
        let mut random = random::program(seed);
        // A barrier that only some threads of a path come to is the end of it on a stack.
        random.barriers = 0;
        let program = random.assemble(&shape, Features { barriers: false, ..Features::of(&shape) }).program();
        // Without symbols, and with them.
        for program in [Program::parse(&program.elf()).unwrap(), program] {
            let analysis = analyse(&program).unwrap();
            let conditional = || analysis.branches.iter().filter(|branch| branch.kind == Kind::Branch);
            uniform += conditional().filter(|branch| branch.uniform).count();
            likely += conditional().filter(|branch| branch.likely.is_some()).count();
            for points in [Points::Rpc, Points::RpcAndLikely] {
                let mut machine = StackMachine::new(&program, &shape, points);
                machine.launch_grid(random.grid(&shape)).unwrap_or_else(|e| panic!("seed {seed} with {points:?}: {e}"));
                parted += machine.parted;
            }
        }
    }
    assert!(uniform > 100 && likely > 100 && parted > 1000, "{uniform} {likely} {parted}");
}

/// A machine that must notice what is wrong with an analysis.
#[test]
fn a_stack_notices_wrong_information() {
    let asm = Asm::default().put([csrr(A0, LANE)]).jal(RA, "f").put([NOP]).exit();
    let asm = asm.label("f").branch(BEQ, A0, ZERO, "end").put([NOP]).label("end").put([jalr(ZERO, RA, 0)]);
    let (f, end) = (4 * asm.at("f") as u32, 4 * asm.at("end") as u32);
    let program = asm.program();
    let run = |spoil: fn(&mut Branch)| {
        let mut machine = StackMachine::new(&program, &Shape::new(4, 1), Points::Rpc);
        machine.analysis.branches.iter_mut().filter(|b| b.kind == Kind::Branch).for_each(spoil);
        machine.launch().map_err(|e| e.to_string())
    };
    assert_eq!(run(|_| {}), Ok(()));
    assert_eq!(run(|b| b.uniform = true).unwrap_err(), format!("threads part at {f:#010x}, which is uniform"));
    // The RPC is an instruction that one side alone comes to.
    let wrong = format!("a thread returns at {end:#010x} without having come to {:#010x}", f + 4);
    assert_eq!(run(|b| b.rpc = Reconvergence::At(b.pc + 4)).unwrap_err(), wrong);
}

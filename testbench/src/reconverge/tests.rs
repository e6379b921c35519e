use super::*;
use crate::asm::*;
use crate::kernels::{self, Device, Kernel};
use crate::random::{self, Features};
use heddle_simt::Shape;
use std::fmt::Write as _;

mod stack;
use stack::{Points, StackMachine};

fn table(program: &Program) -> String {
    let analysis = analyse(program).unwrap();
    let mut text = String::new();
    for branch in &analysis.branches {
        let instruction = crate::disassemble(program.word(branch.pc).unwrap(), branch.pc);
        let function = program.nearest_symbol(branch.function).unwrap();
        let _ = write!(text, "{:#05x} {instruction:<24} {function:<8} {:x?}", branch.pc, branch.rpc);
        let _ = write!(text, "{}", if branch.uniform { " uniform" } else { "" });
        let _ = write!(text, "{}", branch.likely.map_or(String::new(), |likely| format!(" likely {likely:#x}")));
        let _ = writeln!(text, "{}", if branch.interleavable { " interleavable" } else { "" });
    }
    text
}

fn kernel(name: &str) -> Program {
    Program::parse(kernels::find(name).unwrap().elf).unwrap()
}

#[test]
fn kernels_as_they_were_read() {
    for name in ["nqueens", "scan", "search", "bitonic_small"] {
        insta::assert_snapshot!(name, table(&kernel(name)));
    }
}

fn without_symbols(program: &Program) -> Program {
    Program::parse(&program.elf()).unwrap()
}

#[test]
fn symbols_are_not_needed() {
    for Kernel { name, elf, .. } in kernels::ALL {
        let program = Program::parse(elf).unwrap();
        let (with, without) = (analyse(&program).unwrap(), analyse(&without_symbols(&program)).unwrap());
        for branch in &without.branches {
            // What only symbols name may be called by nobody: then it is not there.
            let Some(named) = with.branch(branch.pc) else { continue };
            assert_eq!((named.rpc, named.likely), (branch.rpc, branch.likely), "{name} {:#x}", branch.pc);
        }
    }
}

/// Every address is in the function, and what the hardware reads is what the analysis says.
#[test]
fn kernels_make_sense() {
    for Kernel { name, elf, .. } in kernels::ALL {
        let program = Program::parse(elf).unwrap();
        let analysis = analyse(&program).unwrap();
        let side_table = analysis.side_table();
        assert_eq!(side_table.len() as u32 * 4, program.program_end());
        for branch in &analysis.branches {
            let function = analysis.functions.iter().find(|f| f.entry == branch.function).unwrap();
            let is_block = |pc: u32| function.blocks.iter().any(|block| block.start == pc);
            let Branch { pc, rpc, uniform, likely, interleavable, .. } = *branch;
            assert!(
                matches!(rpc, Reconvergence::Return) || matches!(rpc, Reconvergence::At(at) if is_block(at)),
                "{name} {pc:#x}"
            );
            assert!(likely.is_none_or(|at| is_block(at) && Reconvergence::At(at) != rpc), "{name} {pc:#x}");
            assert!(!(uniform && (interleavable || likely.is_some())), "{name} {pc:#x}");
            assert_eq!(side_table[pc as usize / 4], Some(SideEntry { rpc, uniform, likely }));
        }
        assert!(analysis.branches.iter().any(|branch| !branch.uniform), "{name}: threads part");
    }
}

#[test]
fn arguments_are_the_same_for_all_threads() {
    // Whether a launch expands the frontier or advances it.
    let analysis = analyse(&kernel("bfs")).unwrap();
    let uniform = analysis.branches.iter().filter(|branch| branch.kind == Kind::Branch && branch.uniform);
    assert_eq!(uniform.count(), 1);
}

const SHAPES: [(u32, u32); 2] = [(4, 2), (8, 8)];

#[test]
fn kernels_run_on_a_stack() {
    let mut failures = Vec::new();
    for Kernel { name, elf, drive, .. } in kernels::ALL {
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
        for program in [without_symbols(&program), program] {
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

#[test]
fn too_large_programs_are_refused() {
    let program = Program::assembled(&vec![NOP; MOST_BYTES as usize / 4 + 1], []);
    assert!(analyse(&program).unwrap_err().to_string().starts_with("the program ends at 0x00100100"));
    let branch_to_itself = 0x63;
    let program = Program::assembled(&vec![branch_to_itself; MOST_BLOCKS + 64], []);
    assert!(analyse(&program).unwrap_err().to_string().contains("more than 16384 blocks"));
}

/// Whatever the words are, there is an answer or one line.
#[test]
fn words_at_random() {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut good = 0;
    for _ in 0..300 {
        let word = |rng: &mut fastrand::Rng| match rng.u32(..4) {
            0 => r(0, rng.u32(..4), rng.u32(..4), 0, 0, 0x63) | rng.u32(..16) << 8,
            1 => jalr(rng.u32(..8), rng.u32(..8), 0),
            2 => rng.u32(..64) << 21 | rng.u32(..3) << 7 | 0x6f,
            _ => addi(rng.u32(..8), rng.u32(..8), rng.i32(-9..9)),
        };
        let words: Vec<u32> = (0..60).map(|_| word(&mut rng)).collect();
        good += usize::from(analyse(&Program::assembled(&words, [])).is_ok());
    }
    assert!(good > 100, "{good}");
}

use super::*;
use crate::asm::*;
use crate::kernels::{self, Kernel};
use std::fmt::Write as _;

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

/// As in the loops that they have from MUMmerGPU and from a ray tracer of persistent threads. (thread-block-compaction.txt
/// §4)
#[test]
fn loops_that_a_break_leaves_have_likely_points() {
    for name in ["suffix", "work_queue"] {
        let branches = analyse(&kernel(name)).unwrap().branches;
        let goes_on = |branch: &Branch| branch.likely.is_some() && branch.interleavable;
        assert!(branches.iter().any(goes_on), "{name}");
    }
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

//! The commit-stream check is checked: state of the core is changed while it runs, and the check must say what went
//! wrong.

use crate::recorded::stepped;
use heddle_check::checked;
use heddle_check::commit::{CommitCheck, Mismatch};
use heddle_check::random::{Features, program as program_of};
use heddle_hdl::{Bits, mutate};
use heddle_sim::Checks;
use heddle_sim::Engine;
use heddle_simt::Shape;
use heddle_testbench::asm::*;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::{Machine, MachineError, MachineOptions, design};

const DATA: u32 = 0x1000;

/// Each thread adds its number to a word four times and stores the sum; odd threads go another way in between.
fn program() -> Asm {
    Asm::default()
        .put([csrr(5, MHARTID), slli(6, 5, 2), lui(7, DATA >> 12), add(7, 7, 6)])
        .put([addi(8, ZERO, 4)])
        .label("again")
        .put([lw(9, 7, 0), add(9, 9, 5), sw(9, 7, 0), andi(10, 5, 1)])
        .branch(BNE, 10, ZERO, "odd")
        .put([addi(11, 9, 2)])
        .jal(ZERO, "next")
        .label("odd")
        .put([divu(11, 9, 8)])
        .label("next")
        .put([addi(8, 8, -1)])
        .branch(BNE, 8, ZERO, "again")
        .put([sw(11, 7, 0), addi(A0, ZERO, 0)])
        .exit()
}

/// Runs the program on 4 lanes and 2 warps, and changes the engine's state before the given cycle.
fn run(at: u64, change: impl FnOnce(&mut dyn Engine)) -> Result<u64, Box<Mismatch>> {
    let shape = Shape { memory: 16 << 10, program: 4 << 10, stack: 64, ..Shape::new(4, 2) };
    let program = program().program();
    let options = MachineOptions { checks: Checks::None, ..MachineOptions::default() };
    let mut machine = Machine::new(&shape, program.clone(), &options).unwrap();
    let engine = machine.simulation().engine();
    let directory = engine.directory().clone();
    let mut check = CommitCheck::new(&directory, &program, &shape).unwrap();
    let launch = directory.inputs.find("launch").unwrap();
    let stopped = directory.outputs.find("stopped").unwrap();
    check.launch(engine, Grid::one_block(shape.threads()), program.entry()).unwrap();
    engine.poke_u64(launch, 1);
    let mut change = Some(change);
    for cycle in 0..2000 {
        if cycle == at {
            change.take().unwrap()(engine);
        }
        engine.settle();
        check.cycle(engine, 1)?;
        if engine.peek_u64(stopped) == 1 {
            check.end(engine, 1)?;
            return Ok(check.compared());
        }
        engine.step();
        engine.poke_u64(launch, 0);
    }
    panic!("the program does not end");
}

/// What is said when one bit of a memory's word is flipped before a cycle.
fn flipped(at: u64, memory: &str, address: u64, bit: u32) -> Mismatch {
    let changed = run(at, |engine| {
        let memory = engine.directory().memories.find(memory).unwrap_or_else(|| panic!("no memory {memory}"));
        let word = engine.memory_read(memory, address);
        engine.memory_write(memory, address, &flip(&word, bit));
    });
    *changed.expect_err("the change is found")
}

fn flip(word: &Bits, bit: u32) -> Bits {
    let mut limbs: Vec<u64> = (0..8).map(|k| word.limb(k)).collect();
    limbs[bit as usize / 64] ^= 1 << (bit % 64);
    Bits::from_limbs(&limbs)
}

#[test]
fn without_a_change_all_is_compared() {
    // Threads of both kinds, 4 times each.
    let (before, even, odd, after) = (5, 9, 8, 4);
    assert_eq!(run(0, |_| ()).unwrap(), 4 * (before + 4 * even + after) + 4 * (before + 4 * odd + after));
}

#[test]
fn a_register_is_wrong() {
    // x5 of lane 2, warp 1.
    let mismatch = flipped(40, "core.collect.lane[2].registers", 1 << 5 | 5, 3);
    assert_eq!((mismatch.thread.thread, mismatch.warp, mismatch.lane), (6, 1, 2), "{mismatch}");
    assert!(mismatch.what.contains("`add s1,s1,t0`"), "{mismatch}");
    assert!(mismatch.what.contains("s1 is 0x"), "{mismatch}");
}

#[test]
fn memory_is_wrong() {
    // The word of thread 3.
    let mismatch = flipped(10, "memory.main.bank[3].words", u64::from(DATA / 16), 0);
    assert_eq!(mismatch.thread.thread, 3, "{mismatch}");
    assert!(mismatch.what.contains("`lw s1,0(t2)`") && mismatch.what.contains("s1 is 0x"), "{mismatch}");
}

#[test]
fn an_instruction_is_wrong() {
    // `andi a0,t0,1` becomes `andi a0,t0,3`.
    let at = program().at("again") + 3;
    let mismatch = flipped(0, "instructions", at, 21);
    assert_eq!(u64::from(mismatch.pc), 4 * at, "{mismatch}");
    assert!(mismatch.what.contains("a0 is 0x2 in the core, should be 0x0"), "{mismatch}");
}

#[test]
fn a_path_is_wrong() {
    // A thread is forgotten, and seen when all others have ended.
    let depth_and_pc = Shape::default().depth_bits + 10;
    let mismatch = flipped(60, "core.divergence.hct0", 0, depth_and_pc);
    assert_eq!(mismatch.thread.thread, 0, "{mismatch}");
    assert!(mismatch.what.contains("the core says that it has ended"), "{mismatch}");
}

/// All of the text, once.
#[test]
fn what_a_mismatch_says() {
    let mismatch = flipped(10, "memory.main.bank[0].words", u64::from(DATA / 16), 4);
    let text = mismatch.to_string();
    let cycle = mismatch.cycle;
    let value = mismatch.what.split(" is ").nth(1).unwrap();
    let want = format!(
        "thread 0 of block 0 (warp 0, lane 0) is not what the instruction-set simulator says: `lw s1,0(t2)` at 0x00000014: s1 is {value}
cycle {cycle}, seed 1
last instructions of the thread:
  0x00000000  csrr t0,mhartid
  0x00000004  slli t1,t0,0x2
  0x00000008  lui t2,0x1
  0x0000000c  add t2,t2,t1
  0x00000010  li s0,4
  0x00000014  lw s1,0(t2)  (again)
program:
  0x00000004  slli t1,t0,0x2
  0x00000008  lui t2,0x1
  0x0000000c  add t2,t2,t1
  0x00000010  li s0,4
> 0x00000014  lw s1,0(t2)  (again)
  0x00000018  add s1,s1,t0  (again+0x4)
  0x0000001c  sw s1,0(t2)  (again+0x8)
  0x00000020  andi a0,t0,1  (again+0xc)
  0x00000024  bnez a0,0x30  (again+0x10)
paths of warp 0:
  HCT0    depth 0, pc 0x00000018, lanes 0xf"
    );
    assert_eq!(text, want);
}

/// The machine reports it as its own error, and its message is the same.
#[test]
fn a_machine_stops_at_the_first_difference() {
    let shape = Shape::new(4, 1);
    let mut machine = Machine::new(&shape, program().program(), &checked()).unwrap();
    machine.run().unwrap();
    assert!(machine.compared() > 0);
    let memory = machine.simulation().directory().memories.find("instructions").unwrap();
    let at = program().at("next");
    machine.simulation().engine().memory_load(memory, at, &[u64::from(addi(8, 8, -2))]);
    let Err(MachineError::Commit(mismatch)) = machine.run() else { panic!("the change is found") };
    assert!(mismatch.what.contains("s0 is 0x2 in the core, should be 0x3"), "{mismatch}");
}

/// What is said of a mutant of the core (`heddle_hdl::mutate`) that runs random programs, and at last one that faults:
/// the same if the check looks at each cycle.
fn said_of(mutant: &str) -> String {
    let all = said_to(checked(), mutant);
    assert_eq!(all, said_to(stepped(), mutant), "{mutant}: cycle by cycle on the right");
    all.lines().next().unwrap_or_default().to_string()
}

fn said_to(options: MachineOptions, mutant: &str) -> String {
    let shape = Shape { memory: 64 << 10, program: 16 << 10, stack: 64, ..Shape::new(4, 2) };
    let design = mutate::apply(&design(&shape).unwrap(), mutant).unwrap_or_else(|error| panic!("{error}"));
    let options = MachineOptions { checks: Checks::None, max_cycles: 20_000, ..options };
    let faults = Asm::default().put([addi(5, 0, 2), jalr(0, 5, 0)]).exit();
    let mut programs: Vec<Asm> = (0..4).map(|seed| program_of(seed).assemble(&shape, Features::of(&shape))).collect();
    programs.push(faults);
    let mut machine = Machine::with_design(&shape, &design, programs[0].program(), &options).unwrap();
    let run = |program: Asm| {
        machine.load(program.program()).unwrap();
        machine.run().err()
    };
    let error = programs.into_iter().find_map(run).expect("the last program faults");
    error.to_string()
}

/// Each thing that is compared, with a mistake that changes it.
#[test]
fn every_comparison_can_fail() {
    for (mutant, says) in [
        ("resolve:s9_access_valid:never_enabled", "its access does not go to memory"),
        ("resolve:s9_access_operation:never_enabled", "goes to memory, should be a"),
        ("resolve:s9_access_line:never_enabled", "accesses the word at"),
        ("resolve:s9_access_data:never_enabled", "is stored to byte"),
        ("resolve:s9_access_served:never_enabled", "is stored to byte"),
        ("resolve:s9_access_tag:never_enabled", "which no instruction under way writes"),
        ("resolve:s9_result_data:never_enabled", "in the core, should be"),
        ("resolve:s9_result_valid:never_enabled", "is still to be written by"),
        ("resolve:s9_exit_codes:never_enabled", "its exit code is"),
        ("resolve:s9_outcome_taken_pc:never_enabled", "is at 0x"),
        ("resolve:s9_fault_cause:never_enabled", "the core stops with"),
        ("resolve:s9_fault_address:never_enabled", "the core stops because of address"),
    ] {
        let said = said_of(mutant);
        assert!(said.contains(says), "{mutant}: {said}");
    }
}

/// What starts where is compared, too.
#[test]
fn starts_of_blocks_are_compared() {
    let shape = Shape { memory: 64 << 10, program: 16 << 10, stack: 64, ..Shape::new(4, 2) };
    let program = Asm::default().put([addi(A0, ZERO, 0)]).exit();
    for (mutant, says) in [
        ("distributor:block:never_enabled", "starts, should be 0 of 0"),
        ("distributor:entry_held:never_enabled", "should be 0x00000000"),
        ("distributor:last_mask:never_enabled", "start, should be 0x3"),
    ] {
        let design = mutate::apply(&design(&shape).unwrap(), mutant).unwrap_or_else(|error| panic!("{error}"));
        let options = MachineOptions { checks: Checks::None, max_cycles: 1000, ..checked() };
        let mut machine = Machine::with_design(&shape, &design, program.program(), &options).unwrap();
        let said = machine.launch_grid(Grid { blocks: 3, threads: 6 }).unwrap_err().to_string();
        assert!(said.contains(says), "{mutant}: {said}");
    }
}

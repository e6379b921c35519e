//! The simulated core as a device: how launches are watched and interrupted, and memory byte by byte.

use heddle_check::checked;
use heddle_simt::{Divergence, Shape};
use heddle_testbench::Program;
use heddle_testbench::asm::*;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{self, Device, KernelError};
use heddle_testbench::machine::{Machine, MachineError, MachineOptions, Progress, Summary, TraceLine, Watch};
use heddle_testbench::paths::Together;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

fn machine(kernel: &str, max_cycles: u64) -> Machine {
    let program = Program::parse(kernels::find(kernel).unwrap().elf).unwrap();
    let options = MachineOptions { max_cycles, ..checked() };
    Machine::new(&Shape::new(4, 2), program, &options).unwrap()
}

fn drive(kernel: &str, machine: &mut Machine) -> Result<usize, String> {
    let driven: Result<_, KernelError> = (kernels::find(kernel).unwrap().drive)(machine, 1);
    driven.map(|output| output.checked).map_err(|error| error.to_string())
}

/// Keeps what it is told, and breaks when it has been told `patience` times.
struct Note {
    told: Arc<Mutex<Vec<Progress>>>,
    patience: usize,
    trace: bool,
    /// The cycles in which something issued.
    issued: Arc<Mutex<Vec<u64>>>,
}

impl Watch for Note {
    fn issued(&mut self, line: TraceLine) {
        self.issued.lock().unwrap().push(line.cycle);
    }

    fn wants_trace(&self) -> bool {
        self.trace
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let mut told = self.told.lock().unwrap();
        told.push(progress);
        if told.len() > self.patience { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs a kernel with and without a watch; what came of it, and what the watch was told.
fn watched(kernel: &str, patience: usize, trace: bool) -> (Result<usize, String>, Summary, Vec<Progress>) {
    let mut machine = machine(kernel, MachineOptions::default().max_cycles);
    let told = Arc::new(Mutex::new(Vec::new()));
    machine.watch(Box::new(Note { told: told.clone(), patience, trace, issued: Arc::default() }));
    let result = drive(kernel, &mut machine);
    let summary = machine.summary();
    let told = told.lock().unwrap().clone();
    (result, summary, told)
}

#[test]
fn a_watch_changes_nothing() {
    for kernel in ["gcd", "pathfinder"] {
        let mut silent = machine(kernel, MachineOptions::default().max_cycles);
        let checked = drive(kernel, &mut silent);
        assert!(checked.is_ok());
        for trace in [false, true] {
            let (result, summary, told) = watched(kernel, usize::MAX, trace);
            assert_eq!((&result, summary), (&checked, silent.summary()), "{kernel}");
            assert_eq!(told.last().unwrap().launch, summary.launches);
        }
    }
}

/// Looks at blocks whose threads run together, in states that are far apart.
struct Blocks {
    seen: Arc<Mutex<Vec<State>>>,
    last: Vec<Together>,
}

/// Blocks, and how many threads are live.
type State = (Vec<Together>, u32);

impl Watch for Blocks {
    /// So that states are not far apart.
    fn wants_trace(&self) -> bool {
        true
    }

    fn wants_paths(&self) -> bool {
        true
    }

    fn together(&mut self, blocks: Vec<Together>) {
        self.last = blocks;
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.seen.lock().unwrap().push((self.last.clone(), progress.live_threads));
        ControlFlow::Continue(())
    }
}

/// Each live thread of a block runs in one place, or it waits.
#[test]
fn threads_of_a_block_run_or_wait() {
    let shape = Shape::new(4, 8).with_divergence(Divergence::BLOCK_STACK);
    let (mut states, mut formed, mut waits) = (0, 0, 0);
    for kernel in ["gcd", "pathfinder", "collatz", "reduce"] {
        let program = Program::parse(kernels::find(kernel).unwrap().elf).unwrap();
        let mut machine = Machine::new(&shape, program, &checked()).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        machine.watch(Box::new(Blocks { seen: seen.clone(), last: Vec::new() }));
        drive(kernel, &mut machine).unwrap();
        for (blocks, live) in seen.lock().unwrap().iter() {
            let run = blocks.iter().flat_map(|block| (0..).zip(&block.slots)).flat_map(|(slot, threads)| {
                (0..).zip(threads).filter_map(move |(lane, thread)| thread.map(|thread| (slot, lane, thread)))
            });
            let run: Vec<(u32, u32, u32)> = run.collect();
            assert!(run.iter().all(|(_, lane, thread)| thread % 4 == *lane), "{kernel}: {blocks:?}");
            formed += run.iter().filter(|(slot, _, thread)| thread / 4 != *slot).count();
            let parked: Vec<u32> = blocks.iter().flat_map(|block| &block.parked).map(|one| one.thread).collect();
            waits += parked.len();
            let mut all: Vec<u32> = run.iter().map(|(_, _, thread)| *thread).chain(parked).collect();
            all.sort();
            assert!(all.windows(2).all(|two| two[0] < two[1]), "{kernel}: {blocks:?}");
            assert_eq!(all.len(), *live as usize, "{kernel}: {blocks:?}");
            states += 1;
        }
    }
    assert!(states > 10 && formed > 0 && waits > 0, "{states} states, {formed} elsewhere, {waits} wait");
}

#[test]
fn progress_is_of_one_launch() {
    let (_, summary, told) = watched("gcd", usize::MAX, false);
    let live_threads = told[0].live_threads;
    let none = Progress { launch: 1, cycles: 0, live_threads, warp_instructions: 0, thread_instructions: 0 };
    assert_eq!(told[0], none);
    assert!(told.is_sorted_by_key(|p| (p.warp_instructions, p.thread_instructions)), "{told:?}");
    assert!(told.last().unwrap().thread_instructions <= summary.thread_instructions);
    assert!(told.is_sorted_by_key(|p| p.cycles) && told.last().unwrap().cycles < summary.cycles);
    assert!(told.iter().all(|p| p.launch == 1 && p.live_threads <= 8), "{told:?}");
    assert!(told.iter().any(|p| p.live_threads == 8), "{told:?}");
}

#[test]
fn a_break_ends_the_launch() {
    for trace in [false, true] {
        let (result, summary, told) = watched("gcd", 3, trace);
        assert_eq!(result, Err("interrupted".into()));
        assert_eq!(told.len(), 4);
        // The edge that launches comes before the first batch.
        assert_eq!(summary.cycles + summary.idle.nothing_live, told[3].cycles + 1);
        assert_eq!(summary.launches, 1);
    }
    let mut machine = machine("gcd", 1000);
    machine.watch(Box::new(Note { told: Arc::default(), patience: 0, trace: false, issued: Arc::default() }));
    assert!(matches!(machine.run(), Err(MachineError::Interrupted)));
}

#[test]
fn max_cycles_are_of_one_launch_and_exact() {
    for watch in [false, true] {
        let mut machine = machine("gcd", 777);
        if watch {
            machine.watch(Box::new(Note {
                told: Arc::default(),
                patience: usize::MAX,
                trace: false,
                issued: Arc::default(),
            }));
        }
        assert!(matches!(machine.run(), Err(MachineError::Endless { cycles: 777, .. })));
    }
}

/// And none of the cycles after the limit, in which the machine looks whether the program will never end.
#[test]
fn a_trace_has_every_instruction_up_to_the_limit() {
    let traced = |limit: u64| {
        let issued = Arc::new(Mutex::new(Vec::new()));
        let mut machine = machine("gcd", limit);
        machine.watch(Box::new(Note {
            told: Arc::default(),
            patience: usize::MAX,
            trace: true,
            issued: issued.clone(),
        }));
        let result = machine.run();
        drop(machine);
        (result, Arc::into_inner(issued).unwrap().into_inner().unwrap())
    };
    let (result, looked) = traced(777);
    assert!(matches!(result, Err(MachineError::Endless { cycles: 777, .. })));
    let (_, all) = traced(MachineOptions::default().max_cycles);
    let last = *looked.last().unwrap();
    assert!((700..800).contains(&last), "{last}");
    assert_eq!(looked, all[..looked.len()]);
    assert!(all[looked.len()] >= 777, "{}", all[looked.len()]);
}

#[test]
fn memory_is_bytes() {
    let mut machine = machine("gcd", 1);
    let base = 0x1000;
    let mut want: Vec<u8> = (0..32).collect();
    machine.write(base, &want).unwrap();
    for (at, length) in [(0, 4), (1, 2), (3, 2), (5, 9), (30, 2), (7, 0)] {
        let bytes: Vec<u8> = (0..length).map(|k| 200 + at as u8 + k as u8).collect();
        machine.write(base + at, &bytes).unwrap();
        want[at as usize..at as usize + length].copy_from_slice(&bytes);
        assert_eq!(machine.read(base, 32).unwrap(), want);
        assert_eq!(machine.read(base + at, length).unwrap(), bytes);
    }
    let end = machine.shape().memory;
    assert!(machine.read(end, 0).unwrap().is_empty());
    assert!(machine.read(end - 1, 2).is_err() && machine.write(end, &[0]).is_err());
}

#[test]
fn an_assertion_that_fails_is_an_error_in_every_run() {
    let calls_itself = Asm::default().label("again").jal(RA, "again").program();
    let options = MachineOptions { max_cycles: 10_000, ..checked() };
    let mut machine = Machine::new(&Shape::new(1, 1), calls_itself.clone(), &options).unwrap();
    for _ in 0..2 {
        let error = machine.run().unwrap_err().to_string();
        assert!(error.contains("call_depth_does_not_overflow"), "{error}");
        machine.load(calls_itself.clone()).unwrap();
    }
}

#[test]
fn what_is_outside_memory_is_refused_before_room_is_made_for_it() {
    let mut machine = machine("gcd", 1);
    let error = machine.read(0, usize::MAX / 2).unwrap_err().to_string();
    assert!(error.contains("outside memory"), "{error}");
}

/// A machine of 2 lanes and 2 warps with barriers.
fn small(program: &Asm, max_cycles: u64) -> Machine {
    let shape = Shape { barriers: true, ..Shape::new(2, 2) };
    let options = MachineOptions { max_cycles, ..checked() };
    Machine::new(&shape, program.program(), &options).unwrap()
}

#[test]
fn a_barrier_that_part_of_a_block_never_reaches_is_reported() {
    let program = Asm::default()
        .put([csrr(5, THREAD_IN_BLOCK), addi(6, ZERO, 1)])
        .branch(BLTU, 5, 6, "first")
        .put([BARRIER])
        .label("first")
        .jal(ZERO, "first");
    let error = small(&program, 500).launch_grid(Grid { blocks: 5, threads: 4 }).unwrap_err().to_string();
    let who = "thread 0 of block 0 goes round 0x00000010 (first) for ever; \
               threads 1-3 of block 0 waiting at the barrier at 0x0000000c";
    assert!(error.starts_with("the program hangs, ") && error.ends_with(who), "{error}");
    assert!(include_str!("../../../docs/reference/blocks.md").contains(&error), "the page on blocks lacks: {error}");
}

#[test]
fn failures_name_block_and_thread() {
    // The code is the number of the block in its last thread, and 0 in the others.
    let program = Asm::default()
        .put([csrr(5, THREAD_IN_BLOCK), csrr(A0, BLOCK), addi(6, ZERO, 2)])
        .branch(BEQ, 5, 6, "end")
        .put([addi(A0, ZERO, 0)])
        .label("end")
        .exit();
    let error = |blocks| small(&program, 10_000).launch_grid(Grid { blocks, threads: 3 }).unwrap_err().to_string();
    assert_eq!(error(2), "exit code not 0: thread 2 of block 1 with 1");
    assert_eq!(error(5), "exit code not 0: thread 2 of block 1 with 1 and 3 more");
    let program = Asm::default()
        .put([csrr(5, BLOCK), addi(6, ZERO, 2)])
        .branch(BNE, 5, 6, "end")
        .put([lw(5, ZERO, 1)])
        .label("end")
        .put([addi(A0, ZERO, 0)])
        .exit();
    let error = small(&program, 10_000).launch_grid(Grid { blocks: 4, threads: 3 }).unwrap_err().to_string();
    assert!(error.starts_with("misaligned load at 0x0000000c"), "{error}");
    assert!(error.contains(" of block 2 (warp "), "{error}");
}

#[test]
fn grids_that_cannot_be_launched_are_refused() {
    let program = Asm::default().put([addi(A0, ZERO, 0)]).exit();
    let mut machine = small(&program, 1000);
    let mut error = |blocks, threads| machine.launch_grid(Grid { blocks, threads }).unwrap_err().to_string();
    assert_eq!(error(0, 4), "a grid of no blocks: at least 1 is needed");
    assert_eq!(error(1, 5), "blocks of 5 threads: the core has 4");
    assert_eq!(error(u32::MAX, 3), "4294967295 blocks of 3 threads are more than 2^32 threads");
    machine.launch_grid(Grid { blocks: 20, threads: 1 }).unwrap();
    assert_eq!((machine.summary().blocks, machine.summary().threads), (20, 20));
}

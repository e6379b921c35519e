//! What the core counts, as its host tells.

use crate::bench::{PATIENCE, program, run, small, streams};
use heddle_simt::{Divergence, Metrics, Shape};
use heddle_testbench::Program;
use heddle_testbench::asm::{A0, Asm, BLT, BNE, MHARTID, ZERO, add, addi, andi, cancel, csrr, join, lw, wait};
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{self, Device};
use heddle_testbench::machine::{IdleCycles, Machine, MachineOptions, MemoryLimits, Summary};
use heddle_testbench::remote::simulated::Streams;
use heddle_testbench::remote::{Board, Client};

fn built(shape: &Shape) -> Shape {
    Shape { metrics: Metrics::Built, ..shape.clone() }
}

fn board(shape: &Shape, program: Program, seed: u64) -> Board<Streams> {
    Board::new(streams(&built(shape), seed), PATIENCE, &built(shape), program).unwrap()
}

fn machine(shape: &Shape, program: Program) -> Machine {
    Machine::new(shape, program, &MachineOptions::default()).unwrap()
}

/// Of a machine, without the cycle of each launch, which a host does not count, and what only simulations count.
fn alone(machine: &Machine) -> Summary {
    let s = machine.summary();
    let idle = IdleCycles { nothing_live: s.idle.nothing_live - u64::from(s.launches), ..s.idle };
    Summary { idle, memory_limits: MemoryLimits::default(), idle_beside_unit: None, ..s }
}

/// Kernels of one launch and of several, on every mechanism that has counters of its own, and on one lane.
#[test]
fn counters_are_those_of_the_core_alone() {
    for (seed, (shape, names)) in (31..).zip([
        (small(4, 2), &["if_else", "collatz", "bitonic_large"][..]),
        (small(1, 1), &["collatz"]),
        (small(8, 1).with_divergence(Divergence::DUAL_PATH), &["if_else", "collatz"]),
        (small(2, 2).with_divergence(Divergence::BLOCK_STACK), &["if_else"]),
        (small(4, 2).with_divergence(Divergence::ARBITER), &["if_else"]),
    ]) {
        let (mut board, mut machine) = (board(&shape, program(names[0]), seed), machine(&shape, program(names[0])));
        for name in names {
            run(&mut board, &[name], seed);
            machine.load(program(name)).unwrap();
            (kernels::find(name).unwrap().drive)(&mut machine, seed).unwrap();
            let (told, wanted) = (board.summary().unwrap(), alone(&machine));
            assert_eq!(told, wanted, "{name} with {}", shape.options());
            assert_eq!(told.cycles + told.idle.nothing_live, board.cycles(), "{name} with {}", shape.options());
            assert!(told.warp_instructions > 10 && told.thread_instructions > 10);
        }
    }
}

/// Threads wait for one other at a branch that each takes in its turn: the counters of convergence barriers, which only
/// some cores have.
#[test]
fn convergence_barriers_are_counted() {
    let waits = Asm::default()
        .put([csrr(5, MHARTID), addi(7, ZERO, 0), addi(8, ZERO, 16), join(0)])
        .label("again")
        .put([add(11, 7, 5), andi(11, 11, 3)])
        .branch(BNE, 11, ZERO, "past")
        .put([wait(0, 2), join(0)])
        .label("past")
        .put([addi(7, 7, 1)])
        .branch(BLT, 7, 8, "again")
        .put([cancel(0), addi(A0, ZERO, 0)])
        .exit()
        .program();
    let shape = Shape { convergence_barriers: 2, patience: 32, ..small(4, 2) };
    let (mut board, mut machine) = (board(&shape, waits.clone(), 37), machine(&shape, waits));
    for _ in 0..2 {
        board.launch().unwrap();
        machine.launch().unwrap();
        assert_eq!(board.summary().unwrap(), alone(&machine));
    }
    let released = board.summary().unwrap().convergence.unwrap();
    assert!(released.threshold + released.complete + released.patience > 0, "{released:?}");
}

/// The status is asked for, and the counters are, long after the core has stopped.
#[test]
fn a_fault_stops_the_counters() {
    let here = Asm::default().put([addi(5, ZERO, 2)]).label("here").put([lw(6, 5, 0)]).exit().program();
    let shape = small(4, 2);
    let (mut board, mut machine) = (board(&shape, here.clone(), 41), machine(&shape, here));
    let error = board.launch().unwrap_err().to_string();
    assert!(error.starts_with("misaligned load"), "{error}");
    machine.launch().unwrap_err();
    assert_eq!(board.summary().unwrap(), alone(&machine));
    // After the reset that a fault needs, the next launch begins with nothing.
    board.load(super::launches::counts()).unwrap();
    board.launch_grid(Grid { blocks: 1, threads: 1 }).unwrap();
    let one = board.summary().unwrap();
    assert_eq!((one.launches, one.threads, one.thread_instructions), (1, 1, one.warp_instructions));
    board.launch_grid(Grid { blocks: 1, threads: 1 }).unwrap();
    let two = board.summary().unwrap();
    assert_eq!((two.warp_instructions, two.most_paths), (2 * one.warp_instructions, one.most_paths));
}

/// While a launch is under way they go on, a reset ends them; and a core without them has nothing to tell.
#[test]
fn counters_are_told_at_any_time() {
    let shape = small(4, 2);
    let mut client = Client::connect(streams(&built(&shape), 51), PATIENCE, &built(&shape)).unwrap();
    let endless = Asm::default().label("here").jal(ZERO, "here").words();
    client.write(0, &endless).unwrap();
    assert_eq!(client.counts().unwrap().cycles, 0);
    client.launch(0, 8, 1, 256).unwrap();
    let [first, second] = [(); 2].map(|()| client.counts().unwrap());
    assert!(first.issued > 0 && second.issued > first.issued && second.cycles > first.cycles);
    client.reset().unwrap();
    assert_eq!(client.counts().unwrap().issued, 0);

    let without = Asm::default().put([addi(A0, ZERO, 0)]).exit().program();
    let mut board: Board<Streams> = Board::new(streams(&shape, 52), PATIENCE, &shape, without).unwrap();
    board.launch().unwrap();
    assert_eq!(board.summary(), None);
    let error = board.client().counts().unwrap_err().to_string();
    assert_eq!(error, "the host refuses to tell what the core counts: it does not know the command");
    let error = Client::connect(streams(&shape, 53), PATIENCE, &built(&shape)).err().unwrap().to_string();
    assert_eq!(error, "the core on the line has the features 71, not 103");
}

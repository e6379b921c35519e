//! Kernels over undamaged lines.

use crate::bench::{PATIENCE, board, pins, program, run, small, streams};
use heddle_simt::{Backing, Cache, Coalescing, Compaction, Divergence, Replay, Shape, Timing};
use heddle_testbench::Program;
use heddle_testbench::kernels::{self, Device};
use heddle_testbench::machine::{Machine, MachineOptions};
use heddle_testbench::remote::{Board, Client, Patience};
use std::io::Write;
use std::time::Duration;

/// Of the kernels that have no cycles to compare, one of so many runs unless `HEDDLE_LONG` asks for all.
const SHARE: usize = 5;

/// All that fit in 32 KiB, in their small size; of some, the cycles are those on the core alone.
#[test]
fn kernels_run_over_the_streams() {
    let shape = small(4, 2);
    assert_eq!((shape.memory, shape.threads() * shape.stack), (kernels::SMALL_MEMORY, kernels::SMALL_STACKS));
    let mut board = board(&shape, "nqueens", 1);
    let options = MachineOptions::default();
    let mut machine = Machine::new(&shape, program("nqueens"), &options).unwrap();
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    let mut left_out = Vec::new();
    for (number, kernel) in kernels::ALL.iter().enumerate() {
        let Ok(elf) = kernel.small() else { continue };
        let compared = ["if_else", "mandelbrot", "quicksort", "bfs"].contains(&kernel.name);
        if !long && !compared && !number.is_multiple_of(SHARE) {
            left_out.push(kernel.name);
            continue;
        }
        let (name, program) = (kernel.name, Program::parse(elf).unwrap());
        board.load(program.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let output = (kernel.drive)(&mut board, 1).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(output.checked > 0);
        println!("{name}: {} cycles", board.cycles());
        if compared {
            machine.load(program).unwrap();
            (kernel.drive)(&mut machine, 1).unwrap();
            let summary = machine.summary();
            // The machine counts the cycle of the launch, too.
            let alone = summary.cycles + summary.idle.nothing_live - u64::from(summary.launches);
            assert_eq!(board.cycles(), alone, "{name}");
        }
    }
    assert_eq!(board.client().retries(), 0);
    if !left_out.is_empty() {
        let (count, names) = (left_out.len(), left_out.join(", "));
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {count} kernels over the streams, which HEDDLE_LONG=1 asks for: {names}"
        );
    }
}

/// What the host reads is what was stored, whatever is before memory and however lanes go to it; side tables, too. One
/// kernel on each core and the other on the next; with `HEDDLE_LONG=1` both on all.
#[test]
fn kernels_run_on_every_kind_of_core() {
    let model = Backing::Model(Timing { latency: 9, jitter: 15, interval: 2, seed: 3 });
    let cache = |lanes: u32| Some(Cache { size: 64 * lanes, ways: 2, line: 2, misses: 4 });
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    let wide = Shape { coalescing: Coalescing::Full, replay: Replay::Serialise, ..small(8, 1) };
    for (seed, shape) in (2..).zip([
        small(1, 1),
        Shape { cache: cache(2), backing: model, ..small(2, 2) },
        Shape { backing: model, ..wide.clone() },
        Shape { cache: cache(8), ..wide },
        small(4, 1).with_divergence(Divergence::STACK),
        small(2, 2).with_divergence(Divergence::DUAL_PATH),
        Shape { compaction: Compaction::Predict, slack: 2, ..small(2, 2) }.with_divergence(Divergence::BLOCK_STACK),
        Shape { memory: 64 << 10, stack: 256, ..small(64, 1) },
    ]) {
        println!("{}", shape.options());
        let kernels = ["if_else", "collatz"];
        let first = seed as usize % 2;
        let chosen = if long { &kernels[..] } else { &kernels[first..=first] };
        run(&mut board(&shape, chosen[0], seed), chosen, seed);
    }
    if !long {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: the other kernel on each kind of core, which HEDDLE_LONG=1 asks for");
    }
}

/// Bytes that the line brings at its own pace, on two pins.
#[test]
fn kernels_run_over_the_uart() {
    let shape = small(4, 2);
    let divisor = 6;
    let byte = Duration::from_micros(10 * u64::from(divisor));
    let patience = Patience { byte, ..PATIENCE };
    let mut board = Board::new(pins(&shape, divisor, 5), patience, &shape, program("if_else")).unwrap();
    run(&mut board, &["if_else", "collatz"], 5);
    assert_eq!(board.client().retries(), 0);
}

/// Ranges that begin and end anywhere.
#[test]
fn any_bytes_are_written_and_read() {
    let shape = small(2, 1);
    let mut board = board(&shape, "nqueens", 6);
    let mut r = fastrand::Rng::with_seed(6);
    let mut memory = board.read(0, shape.memory as usize).unwrap();
    for _ in 0..60 {
        let length = if r.bool() { r.usize(..9) } else { r.usize(..2500) };
        let start = r.usize(..memory.len() - length);
        let data: Vec<u8> = (0..length).map(|_| r.u8(..)).collect();
        Device::write(&mut board, start as u32, &data).unwrap();
        memory[start..start + length].copy_from_slice(&data);
        let length = r.usize(..2500);
        let start = r.usize(..memory.len() - length);
        assert_eq!(board.read(start as u32, length).unwrap(), memory[start..start + length]);
    }
    assert_eq!(board.read(0, memory.len()).unwrap(), memory);
    let error = board.read(shape.memory - 3, 4).unwrap_err().to_string();
    assert_eq!(error, "0x00007ffd..0x00008001 is outside memory of 32768 bytes");
}

#[test]
fn another_core_is_refused() {
    let line = || streams(&small(4, 2), 7);
    let error = |shape: &Shape| match Client::connect(line(), PATIENCE, shape) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    assert_eq!(error(&small(8, 2)), "the core on the line has lanes: 4, not 8");
    assert_eq!(
        error(&Shape { memory: 64 << 10, ..small(4, 2) }),
        "the core on the line has bytes of memory: 32768, not 65536"
    );
    let other = small(4, 2).with_divergence(Divergence::ARBITER);
    assert_eq!(error(&other), "the core on the line has the divergence unit number 0, not 1");
    assert_eq!(error(&Shape { atomics: false, ..small(4, 2) }), "the core on the line has the features 71, not 70");
}

//! Kernels are right on cores of every shape.
//!
//! Always a dozen shapes, all kernels on one of them and a fifteenth on each other (a thirtieth on 64 lanes); with
//! `HEDDLE_LONG=1` (`./test --long`) all on all of lanes × warps {1, 2, 4 … 64}.

use heddle_check::checked;
use heddle_simt::{Compaction, Divergence, Schedule, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels::ALL;
use heddle_testbench::machine::{Machine, MachineOptions};
use std::io::Write;

/// Of the kernels a shape runs one of so many, 64 lanes half as many, and 8 lanes × 8 warps all; another shape runs
/// others.
const SHARE: usize = 15;

fn all_kernels(lanes: u32, warps: u32) {
    kernels(&Shape::new(lanes, warps), 1);
}

fn some_kernels(lanes: u32, warps: u32) {
    let share = match (lanes, warps) {
        (8, 8) => 1,
        (64, _) => 2 * SHARE,
        _ => SHARE,
    };
    kernels(&Shape::new(lanes, warps), share);
}

/// Runs every `share`-th kernel on one machine, which is built once; with `HEDDLE_LONG` all.
pub fn kernels(shape: &Shape, share: usize) {
    let Shape { lanes, warps, .. } = *shape;
    let options = MachineOptions { seed: u64::from(100 * lanes + warps), ..checked() };
    let share = if std::env::var_os("HEDDLE_LONG").is_some() { 1 } else { share };
    let first = (lanes.ilog2() + 2 * warps.ilog2()) as usize % share;
    let suitable = ALL.iter().filter(|kernel| kernel.suits(shape));
    let kernels: Vec<_> = suitable.skip(first).step_by(share).collect();
    let mut programs = kernels.iter().map(|kernel| Program::parse(kernel.elf).unwrap());
    let mut machine = Machine::new(shape, programs.next().unwrap(), &options).unwrap();
    let mut cycles = 0;
    for (number, kernel) in kernels.iter().enumerate() {
        if number > 0 {
            machine.load(programs.next().unwrap()).unwrap();
        }
        let context = || format!("{} on {lanes} lanes × {warps} warps, seed {}", kernel.name, options.seed);
        let output =
            (kernel.drive)(&mut machine, options.seed).unwrap_or_else(|error| panic!("{}: {error}", context()));
        assert!(output.checked > 0);
        let summary = machine.summary();
        let idle = summary.idle;
        let idle = idle.no_instruction + idle.divergence + idle.interval + idle.scoreboard + idle.memory + idle.barrier;
        assert_eq!(summary.warp_instructions + idle, summary.cycles, "{}", context());
        assert!(summary.most_paths <= u64::from(lanes), "{}", context());
        cycles += summary.cycles;
    }
    let _ = writeln!(std::io::stderr(), "{lanes} lanes × {warps} warps: {} kernels, {cycles} cycles", kernels.len());
}

/// A sixth of the kernels on 8 × 8, and some with likely-convergence points where there are such.
fn on(divergence: Divergence) {
    kernels(&Shape::new(8, 8).with_divergence(divergence), 6);
    if divergence.capabilities().likely_points {
        kernels(&Shape { likely: true, ..Shape::new(32, 1) }.with_divergence(divergence), SHARE);
    }
}

#[test]
fn arbiter() {
    on(Divergence::ARBITER);
}

#[test]
fn stack() {
    on(Divergence::STACK);
}

#[test]
fn dual_path() {
    on(Divergence::DUAL_PATH);
}

#[test]
fn block_stack() {
    on(Divergence::BLOCK_STACK);
}

#[test]
fn other_schedules() {
    kernels(&Shape { schedule: Schedule::Sticky, ..Shape::new(4, 16) }, SHARE);
    let dual_path = Shape::new(8, 4).with_divergence(Divergence::DUAL_PATH);
    kernels(&Shape { schedule: Schedule::GreedyThenOldest, path_forwarding: true, ..dual_path }, SHARE);
    let blocks = Shape::new(4, 16).with_divergence(Divergence::BLOCK_STACK);
    kernels(&Shape { schedule: Schedule::BlockAge, compaction: Compaction::Predict, slack: 2, ..blocks }, SHARE);
}

crate::shapes::sweep!("every kernel", some_kernels, all_kernels);

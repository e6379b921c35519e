//! Every kernel is right on cores of every shape.
//!
//! A dozen shapes always; all of lanes × warps {1, 2, 4 … 64} with `HEDDLE_LONG=1` (`./test --long`).

use heddle_simt::{Compaction, Divergence, Schedule, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels::ALL;
use heddle_testbench::machine::{Machine, MachineOptions};
use std::io::Write;

fn all_kernels(lanes: u32, warps: u32) {
    kernels(&Shape::new(lanes, warps));
}

/// Runs all kernels on one machine, which is built once.
fn kernels(shape: &Shape) {
    let Shape { lanes, warps, .. } = *shape;
    let options = MachineOptions { seed: u64::from(100 * lanes + warps), ..MachineOptions::default() };
    let kernels: Vec<_> = ALL.iter().filter(|kernel| kernel.suits(shape)).collect();
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
        let idle = idle.no_instruction + idle.scoreboard + idle.memory + idle.barrier;
        assert_eq!(summary.warp_instructions + idle, summary.cycles, "{}", context());
        assert!(summary.most_paths <= u64::from(lanes), "{}", context());
        cycles += summary.cycles;
    }
    let _ = writeln!(std::io::stderr(), "{lanes} lanes × {warps} warps: {} kernels, {cycles} cycles", kernels.len());
}

#[test]
fn other_divergence_units() {
    for &(_, divergence) in &Divergence::ALL[1..] {
        kernels(&Shape::new(8, 8).with_divergence(divergence));
        if divergence.has_likely_points() {
            kernels(&Shape { likely: true, ..Shape::new(32, 1) }.with_divergence(divergence));
        }
    }
}

#[test]
fn other_schedules() {
    kernels(&Shape { schedule: Schedule::Sticky, ..Shape::new(4, 16) });
    let dual_path = Shape::new(8, 4).with_divergence(Divergence::DualPath);
    kernels(&Shape { schedule: Schedule::GreedyThenOldest, path_forwarding: true, ..dual_path });
    let blocks = Shape::new(4, 16).with_divergence(Divergence::BlockStack);
    kernels(&Shape { schedule: Schedule::BlockAge, compaction: Compaction::Predict, ..blocks });
}

crate::shapes::sweep!("every kernel", all_kernels, all_kernels);

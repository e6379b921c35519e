//! Every kernel is right on cores of every shape.
//!
//! A dozen shapes always; all of lanes × warps {1, 2, 4 … 64} with `HEDDLE_LONG=1` (`./test --long`).

use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::kernels::ALL;
use heddle_testbench::machine::{Machine, MachineOptions};
use std::io::Write;

/// Runs all kernels on one machine, which is built once.
fn all_kernels(lanes: u32, warps: u32) {
    let shape = Shape::new(lanes, warps);
    let options = MachineOptions { seed: u64::from(100 * lanes + warps), ..MachineOptions::default() };
    let mut programs = ALL.iter().map(|kernel| Program::parse(kernel.elf).unwrap());
    let mut machine = Machine::new(&shape, programs.next().unwrap(), &options).unwrap();
    let mut cycles = 0;
    for (number, kernel) in ALL.iter().enumerate() {
        if number > 0 {
            machine.load(programs.next().unwrap()).unwrap();
        }
        let context = || format!("{} on {lanes} lanes × {warps} warps, seed {}", kernel.name, options.seed);
        let output =
            (kernel.drive)(&mut machine, options.seed).unwrap_or_else(|error| panic!("{}: {error}", context()));
        assert!(output.checked > 0);
        let summary = machine.summary();
        let idle = summary.idle.no_instruction + summary.idle.scoreboard + summary.idle.memory;
        assert_eq!(summary.warp_instructions + idle, summary.cycles, "{}", context());
        assert!(summary.most_paths <= u64::from(lanes), "{}", context());
        cycles += summary.cycles;
    }
    let _ = writeln!(std::io::stderr(), "{lanes} lanes × {warps} warps: {} kernels, {cycles} cycles", ALL.len());
}

macro_rules! shapes {
    ($($name:ident: $lanes:literal, $warps:literal;)*) => {
        $(#[test] fn $name() { all_kernels($lanes, $warps); })*
    };
}

shapes! {
    lanes_1_warps_1: 1, 1;
    lanes_1_warps_16: 1, 16;
    lanes_2_warps_1: 2, 1;
    lanes_2_warps_64: 2, 64;
    lanes_4_warps_2: 4, 2;
    lanes_4_warps_8: 4, 8;
    lanes_8_warps_1: 8, 1;
    lanes_8_warps_8: 8, 8;
    lanes_16_warps_4: 16, 4;
    lanes_32_warps_2: 32, 2;
    lanes_64_warps_1: 64, 1;
    lanes_64_warps_32: 64, 32;
}

#[test]
fn all_shapes() {
    if std::env::var_os("HEDDLE_LONG").is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: all 49 shapes, which HEDDLE_LONG=1 asks for");
        return;
    }
    let sizes = [1, 2, 4, 8, 16, 32, 64];
    for lanes in sizes {
        std::thread::scope(|scope| {
            // Two at a time: the machine of 64 lanes and 64 warps needs much memory.
            let (few, many) = sizes.split_at(4);
            scope.spawn(move || few.iter().for_each(|&warps| all_kernels(lanes, warps)));
            many.iter().for_each(|&warps| all_kernels(lanes, warps));
        });
    }
}

//! A simulated core behind its host.

use heddle_sim::Checks;
use heddle_sim::simulation::{Options, Simulation};
use heddle_simt::Shape;
use heddle_simt::host::Identity;
use heddle_simt::hosted::{hosted, over_uart};
use heddle_testbench::remote::simulated::{Pins, Streams};
use heddle_testbench::remote::{Board, Line, Patience};
use heddle_testbench::{Program, kernels};
use std::time::Duration;

/// A millisecond is a thousand cycles.
pub const CLOCK_KHZ: u32 = 1000;

/// For lines that take no time.
pub const PATIENCE: Patience = Patience {
    reply: Duration::from_millis(2),
    byte: Duration::ZERO,
    quiet: Duration::from_micros(200),
    attempts: 8,
    launch: Duration::from_secs(100),
    poll: Duration::from_millis(20),
};

/// 32 KiB for program, data and stacks.
pub fn small(lanes: u32, warps: u32) -> Shape {
    Shape { program: 8 << 10, memory: 32 << 10, stack: 512, scratchpad: 8 << 10, ..Shape::new(lanes, warps) }
}

fn options(seed: u64) -> Options {
    Options { seed, checks: Checks::Assertions, ..Options::default() }
}

pub fn streams(shape: &Shape, seed: u64) -> Streams {
    shape.check().unwrap();
    let design = hosted(shape, Identity { clock_khz: CLOCK_KHZ }).check().unwrap();
    Streams::new(Simulation::new(&design.netlist, &options(seed)).unwrap(), CLOCK_KHZ).unwrap()
}

pub fn pins(shape: &Shape, divisor: u32, seed: u64) -> Pins {
    let design = over_uart(shape, Identity { clock_khz: CLOCK_KHZ }, divisor).check().unwrap();
    Pins::new(Simulation::new(&design.netlist, &options(seed)).unwrap(), CLOCK_KHZ, divisor).unwrap()
}

pub fn program(kernel: &str) -> Program {
    Program::parse(kernels::find(kernel).unwrap().elf).unwrap()
}

pub fn board(shape: &Shape, kernel: &str, seed: u64) -> Board<Streams> {
    Board::new(streams(shape, seed), PATIENCE, shape, program(kernel)).unwrap_or_else(|e| panic!("{kernel}: {e}"))
}

/// Loads kernels one after the other, and runs each with its driver, which checks the results.
pub fn run<L: Line>(board: &mut Board<L>, names: &[&str], seed: u64) {
    for name in names {
        board.load(program(name)).unwrap_or_else(|e| panic!("{name}, seed {seed}: {e}"));
        let output = (kernels::find(name).unwrap().drive)(board, seed);
        assert!(output.unwrap_or_else(|e| panic!("{name}, seed {seed}: {e}")).checked > 0);
    }
}

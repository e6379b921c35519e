//! Every instruction of the core, with operands at the edges of what it can tell apart, on every shape: with all lanes
//! together, and parted before each case in several ways. What it should give comes from the manual by way of
//! `reference.rs`, and is compared with core and instruction-set simulator both. `docs/isa-tests.md` is the page about it.
//!
//! A dozen shapes always, with operands in turn; all of lanes × warps {1, 2, 4 … 64}, with all pairs of operands in every way,
//! with `HEDDLE_LONG=1` (`./test --long`).

mod faults;
mod harness;
mod reference;
mod suites;
mod table;

use harness::{Bench, CHOICES};
use heddle_simt::Shape;
use std::io::Write;
use std::time::Instant;

/// Cycles of a suite on a shape, about, unless all is asked for.
const CYCLES: u64 = 240_000;

fn every_instruction(lanes: u32, warps: u32, cycles: Option<u64>) {
    let started = Instant::now();
    let pairs = reference::pairs();
    let mut bench = Bench::new(Shape::new(lanes, warps));
    let seed = u64::from(7 * lanes + warps);
    for suite in suites::all(&CHOICES[0]) {
        bench.suite(&suite, &pairs, cycles, seed);
    }
    for choice in &CHOICES {
        bench.suite(&suites::each_register(choice), &pairs, cycles, seed);
    }
    bench.report(started);
}

macro_rules! shapes {
    ($($name:ident: $lanes:literal, $warps:literal;)*) => {
        $(#[test] fn $name() { every_instruction($lanes, $warps, Some(CYCLES)); })*
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
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: every instruction on all 49 shapes, which HEDDLE_LONG=1 asks for");
        return;
    }
    let sizes = [1, 2, 4, 8, 16, 32, 64];
    for lanes in sizes {
        std::thread::scope(|scope| {
            // Two at a time: the machine of 64 lanes and 64 warps needs much memory.
            let (few, many) = sizes.split_at(4);
            scope.spawn(move || few.iter().for_each(|&warps| every_instruction(lanes, warps, None)));
            many.iter().for_each(|&warps| every_instruction(lanes, warps, None));
        });
    }
}

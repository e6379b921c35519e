//! Every instruction of the core, with operands at the edges of what it can tell apart, on every shape: with all lanes
//! together, and parted before each case in several ways. What it should give comes from the manual by way of
//! `reference.rs`, and is compared with core and instruction-set simulator both. `docs/evidence/isa-tests.md` is the
//! page about it.
//!
//! A dozen shapes always; all of lanes × warps {1, 2, 4 … 64}, with more operands and every case in every way, with
//! `HEDDLE_LONG=1` (`./test --long`).

mod faults;
mod harness;
mod reference;
#[path = "../common/shapes.rs"]
mod shapes;
mod suites;
mod table;

use harness::{Bench, CHOICES, Effort};
use heddle_simt::{Divergence, Shape};
use heddle_testbench::asm::*;
use heddle_testbench::grid::ThreadId;
use heddle_testbench::iss::LaunchError;
use heddle_testbench::machine::MachineError;
use std::io::Write;
use std::time::Instant;

/// The time of a cycle grows with the lanes, and with very many threads; these take more cycles, too.
const fn short(lanes: u32, warps: u32) -> Effort {
    let lanes_or_more = if lanes * warps < 1024 { lanes } else { 4 * lanes };
    let together = if lanes * warps > 64 { 3 } else { 1 };
    Effort { cycles: if lanes < 32 { 60_000 } else { 400_000 / lanes_or_more as u64 }, together, every_body: false }
}

const LONG: Effort = Effort { cycles: 3_000_000, together: 1, every_body: true };

fn every_instruction(lanes: u32, warps: u32, effort: &Effort) {
    on_shape(Shape::new(lanes, warps), effort);
}

fn on_shape(shape: Shape, effort: &Effort) {
    let started = Instant::now();
    let pairs = reference::pairs();
    let seed = u64::from(7 * shape.lanes + shape.warps);
    let reconverges = shape.divergence.capabilities().reconverges;
    let mut bench = Bench::new(shape);
    // On a stack, threads that come to a barrier by ways of their own are refused.
    for suite in suites::all(&CHOICES[0]).into_iter().filter(|suite| !(reconverges && suite.name == "barriers")) {
        bench.suite(&suite, &pairs, effort, seed);
    }
    for choice in &CHOICES {
        bench.suite(&suites::each_register(choice), &pairs, effort, seed);
    }
    bench.report(started);
}

shapes::sweep!(
    "every instruction",
    |lanes, warps| every_instruction(lanes, warps, &short(lanes, warps)),
    |lanes, warps| { every_instruction(lanes, warps, &LONG) }
);

/// Half of the operands each without `HEDDLE_LONG`: all that computes is that of the same shape on the path table.
#[test]
fn other_divergence_units() {
    let mut effort = short(8, 2);
    if std::env::var_os("HEDDLE_LONG").is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: half of the operands on other divergence units, which HEDDLE_LONG=1 asks for"
        );
        effort.cycles /= 2;
    }
    for &divergence in &Divergence::ALL[1..] {
        on_shape(Shape::new(8, 2).with_divergence(divergence), &effort);
    }
}

/// `jal` by 1048572 bytes ahead and 1048576 back, the extremes of aligned targets.
#[test]
fn jumps_as_far_as_they_go() {
    const AHEAD: usize = 0xf_fffc / 4;
    let a = Asm::default().jal(1, "ahead").label("back").put([addi(A0, 5, -8), sub(A0, A0, 1)]).exit();
    let gap = AHEAD - a.here() as usize;
    let a = a.put(vec![NOP; gap]).label("ahead").put([NOP; 2]).jal(5, "back");
    assert_eq!((a.at("ahead"), a.words().len() as u64 - 1 - a.at("back")), (AHEAD as u64, 0x10_0000 / 4));
    let mut bench = Bench::new(Shape { memory: 8 << 20, program: 2 << 20, ..Shape::new(2, 2) });
    bench.load(&a.program());
    // The exit code is made of both links: x1 = 4, and x5 is behind the last instruction.
    let behind = 4 * a.words().len() as u32;
    let want = behind - 8 - 4;
    match bench.machine.run() {
        Err(MachineError::ExitCodes { first, count }) => {
            assert!(count == 4 && first.len() == 4 && first.iter().all(|c| c.code == want));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.iss.run(), Err(LaunchError::Exit { thread: ThreadId { block: 0, thread: 0 }, code: want }));
}

fn sub(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0x20, rs2, rs1, 0, rd, 0x33)
}

//! Launches, thread numbers, and what must not change a result.

use crate::bench::{Core, shape};
use heddle_simt::{BankAddress, Shape};
use heddle_testbench::asm::*;

/// A bit of everything: divergence, memory, multiplication, division; leaves results in x20 … x23 and in memory.
fn mixture() -> Asm {
    Asm::default()
        .put([csrr(5, MHARTID), csrr(6, LANE), addi(20, ZERO, 0), addi(9, 5, 3), slli(12, 5, 2)])
        .put([addi(12, 12, 0x400), sw(5, 12, 0)])
        .label("loop")
        .put([add(20, 20, 9), mul(9, 9, 9), andi(9, 9, 0xff), addi(6, 6, -1)])
        .branch(BLT, ZERO, 6, "loop")
        .put([divu(21, 20, 9), lw(22, 12, 0), mul(23, 22, 20), sw(23, 12, 0), addi(A0, ZERO, 0)])
        .exit()
}

/// Results of all threads, and cycles.
fn results(s: &Shape, seed: u64) -> (Vec<u32>, u64) {
    let mut core = Core::with_seed(s, &mixture(), seed);
    core.run();
    let mut values = vec![];
    for (warp, lane) in (0..s.warps).flat_map(|w| (0..s.lanes).map(move |l| (w, l))) {
        values.extend((20..24).map(|register| core.register(warp, lane, register)));
        values.push(core.word(0x400 + 4 * (warp * s.lanes + lane)));
    }
    (values, core.metric("cycles"))
}

/// What one thread computes.
fn model(thread: u32, lane: u32) -> Vec<u32> {
    let (mut sum, mut x, mut left) = (0u32, thread + 3, lane as i32);
    loop {
        sum = sum.wrapping_add(x);
        x = x.wrapping_mul(x) & 0xff;
        left -= 1;
        if left <= 0 {
            break;
        }
    }
    let product = thread.wrapping_mul(sum);
    vec![sum, sum.checked_div(x).unwrap_or(u32::MAX), thread, product, product]
}

#[test]
fn every_shape_computes_what_each_thread_would_alone() {
    for (lanes, warps) in [(1, 1), (1, 8), (2, 1), (2, 4), (4, 4), (8, 2), (16, 2)] {
        let expected: Vec<u32> = (0..lanes * warps).flat_map(|t| model(t, t % lanes)).collect();
        assert_eq!(results(&shape(lanes, warps), 1).0, expected, "{lanes} × {warps}");
    }
}

#[test]
fn neither_seed_nor_options_change_results_or_cycles() {
    let s = shape(4, 2);
    let expected = results(&s, 1);
    for seed in 2..6 {
        assert_eq!(results(&s, seed), expected, "seed {seed}");
    }
    let per_lane = Shape { bank_address: BankAddress::PerLane, ..s.clone() };
    assert_eq!(results(&per_lane, 1), expected);
    let narrow = Shape { loads: 2, buffer: 16, depth_bits: 2, ..s };
    assert_eq!(results(&narrow, 1).0, expected.0);
}

#[test]
fn csrs_number_the_threads() {
    let numbers = [0xf14, 0xfc0, 0xfc1, 0xfc2, 0xfc3, 0xfc4, 0xfc5, 0xfc6, 0xfc7, 0xfc8];
    let reads = numbers.iter().enumerate().map(|(k, &csr)| csrr(5 + k as u32, csr));
    let program = Asm::default().put(reads).exit();
    for (lanes, warps) in [(1, 1), (1, 4), (4, 1), (8, 4)] {
        let s = shape(lanes, warps);
        let mut core = Core::new(&s, &program);
        core.run();
        for (warp, lane) in (0..warps).flat_map(|w| (0..lanes).map(move |l| (w, l))) {
            let thread = warp * lanes + lane;
            let values: Vec<u32> = (5..15).map(|register| core.register(warp, lane, register)).collect();
            let expected = [thread, lanes, warps, warp, lane, 0, thread, lanes * warps, s.memory, s.stack.ilog2()];
            assert_eq!(values, expected, "{lanes} × {warps}");
        }
    }
}

#[test]
fn a_new_launch_keeps_memory_and_may_start_elsewhere() {
    let program = Asm::default()
        .put([csrr(5, MHARTID), slli(6, 5, 2), addi(6, 6, 0x400), addi(7, 5, 10), sw(7, 6, 0), addi(A0, ZERO, 1)])
        .exit()
        .label("second")
        .put([csrr(5, MHARTID), slli(6, 5, 2), addi(6, 6, 0x400), lw(7, 6, 0), addi(7, 7, 1), sw(7, 6, 0)])
        .put([csrr(8, 0xc00), csrr(9, 0xc02), addi(A0, ZERO, 2)])
        .exit();
    let mut core = Core::new(&shape(4, 2), &program);
    core.run();
    let first = core.metric("issued");
    for again in 1..4 {
        assert_eq!(core.run_from(program.at("second")), None);
        for thread in 0..8 {
            assert_eq!(core.word(0x400 + 4 * thread), thread + 10 + again);
            assert_eq!(core.exit_code(thread / 4, thread % 4), 2);
        }
        assert!(core.register(0, 0, 8) < 200, "cycles count from the launch");
        assert!(core.register(0, 0, 9) < 8 * 11, "so do instructions");
        assert_eq!(core.metric("issued"), 2 * 11, "and the metrics: {first} before");
    }
}

/// Between two reads, counters grow by the cycles that passed and by the thread instructions that took effect.
#[test]
fn counters_count_cycles_and_thread_instructions() {
    let reads = |cycle, instructions| [csrr(cycle, 0xc00), csrr(instructions, 0xc02)];
    let program = Asm::default().put([NOP; 16]).put(reads(5, 6)).put([NOP; 16]).put(reads(7, 8)).exit();
    let mut core = Core::new(&shape(4, 1), &program);
    core.run();
    let [cycle, instructions, later_cycle, later_instructions] = [5, 6, 7, 8].map(|r| core.register(0, 0, r));
    assert_eq!(u64::from(later_cycle - cycle), core.distance(16, 34));
    assert_eq!(later_instructions - instructions, 4 * 18);
    assert_eq!(instructions % 4, 0, "of four threads each");
}

//! Grids of blocks, and barriers. The instruction-set simulator beside the core sees to it that every block starts
//! once, in a free place, and that nobody passes a barrier early.

use crate::bench::{Core, shape};
use heddle_simt::Shape;
use heddle_simt::pipeline::timing;
use heddle_testbench::asm::*;
use heddle_testbench::grid::Grid;

const DATA: u32 = 0x1000;
const BLOCKS: u32 = 0xfc9;

fn with_barriers(lanes: u32, warps: u32) -> Shape {
    Shape { barriers: true, ..shape(lanes, warps) }
}

/// x5 = number in the block, x6 = number in the grid, x7 = address of the thread's word.
fn numbers() -> Asm {
    Asm::default()
        .put([csrr(5, THREAD_IN_BLOCK), csrr(6, BLOCK), csrr(7, BLOCK_THREADS), mul(6, 6, 7), add(6, 6, 5)])
        .put([slli(7, 6, 2), lui(8, DATA >> 12), add(7, 7, 8)])
}

#[test]
fn every_thread_of_every_block_runs_once() {
    // A word per thread: what it was, plus its number and the size of the grid.
    let program = numbers()
        .put([csrr(9, BLOCKS), add(9, 9, 6), lw(10, 7, 0), add(10, 10, 9), sw(10, 7, 0), addi(A0, ZERO, 0)])
        .exit();
    for (lanes, warps) in [(1, 1), (1, 4), (4, 1), (4, 4), (8, 2)] {
        let all = lanes * warps;
        let mut core = Core::new(&with_barriers(lanes, warps), &program);
        for threads in [1, lanes, lanes + 1, all / 2 + 1, all].into_iter().filter(|&threads| threads <= all) {
            for blocks in [1, 2, 9] {
                (0..blocks * threads).for_each(|k| core.set_word(DATA + 4 * k, 1000));
                assert_eq!(core.run_grid(Grid { blocks, threads }, 0), None);
                for k in 0..blocks * threads {
                    assert_eq!(core.word(DATA + 4 * k), 1000 + blocks + k, "{lanes} × {warps}: {blocks} of {threads}");
                }
            }
        }
    }
}

/// Rounds in which each thread takes over the word of the thread before it, with a barrier before and after.
fn rotation(rounds: i32) -> Asm {
    numbers()
        .put([sw(6, 7, 0), addi(20, ZERO, rounds)])
        // Of the thread before this one, around the block.
        .put([addi(9, 7, -4)])
        .branch(BNE, 5, ZERO, "round")
        .put([csrr(9, BLOCK_THREADS), slli(9, 9, 2), add(9, 9, 7), addi(9, 9, -4)])
        .label("round")
        .put([BARRIER, lw(10, 9, 0)])
        // Threads take as long as their number says.
        .put([andi(11, 5, 7)])
        .label("delay")
        .put([addi(11, 11, -1)])
        .branch(BLT, ZERO, 11, "delay")
        .put([BARRIER, sw(10, 7, 0), addi(20, 20, -1)])
        .branch(BNE, 20, ZERO, "round")
        .put([addi(A0, ZERO, 0)])
        .exit()
}

#[test]
fn a_barrier_orders_what_threads_of_a_block_do() {
    for (lanes, warps) in [(1, 1), (1, 8), (2, 2), (4, 4), (8, 2)] {
        let all = lanes * warps;
        let (blocks, rounds) = (3, 5);
        let mut core = Core::new(&with_barriers(lanes, warps), &rotation(rounds));
        for threads in [1, lanes + 1, all / 2, all].into_iter().filter(|threads| (1..=all).contains(threads)) {
            assert_eq!(core.run_grid(Grid { blocks, threads }, 0), None);
            for (block, thread) in (0..blocks).flat_map(|b| (0..threads).map(move |t| (b, t))) {
                let from = (thread + threads * rounds as u32 - rounds as u32) % threads;
                let word = core.word(DATA + 4 * (block * threads + thread));
                assert_eq!(word, block * threads + from, "{lanes} × {warps}, {threads} threads");
            }
        }
    }
}

#[test]
fn threads_that_end_hold_nobody_up() {
    // Odd threads end at once, those of the second half before the second barrier.
    let program = numbers()
        .put([andi(9, 5, 1), addi(A0, ZERO, 0)])
        .branch(BNE, 9, ZERO, "end")
        .put([BARRIER, addi(9, ZERO, 4)])
        .branch(BLTU, 5, 9, "stay")
        .label("end")
        .exit()
        .label("stay")
        .put([BARRIER, sw(6, 7, 0)])
        .exit();
    for (lanes, warps) in [(1, 8), (2, 4), (4, 2), (8, 1)] {
        let mut core = Core::new(&with_barriers(lanes, warps), &program);
        assert_eq!(core.run_grid(Grid { blocks: 5, threads: 8 }, 0), None);
        for block in 0..5 {
            assert_eq!([0, 2].map(|t| core.word(DATA + 4 * (8 * block + t))), [8 * block, 8 * block + 2]);
        }
        assert!(core.metric("idle_barrier") > 0);
    }
}

/// The figures of `docs/reference/blocks.md`: cycles from the issue of the last `barrier` to the next instruction of
/// each warp, and from the last `ecall` of a block to the first instruction of the next one on its slots.
#[test]
fn what_a_barrier_and_a_block_take() {
    let program = Asm::default().put([NOP, BARRIER, NOP, addi(A0, ZERO, 0)]).exit();
    let barrier = |warps| {
        let mut core = Core::new(&with_barriers(4, warps), &program);
        core.run();
        let last_arrival = core.issues_of(1).last().unwrap().cycle;
        core.issues_of(2).iter().map(|issue| issue.cycle - last_arrival).collect::<Vec<_>>()
    };
    let ends = Asm::default().put([addi(A0, ZERO, 0)]).exit();
    let mut core = Core::new(&with_barriers(4, 1), &ends);
    assert_eq!(core.run_grid(Grid { blocks: 2, threads: 4 }, 0), None);
    let block = core.issues_of(0)[1].cycle - core.issues_of(2)[0].cycle;
    let first = u64::from(timing::BARRIER_TO_NEXT);
    assert_eq!((barrier(1), barrier(4)), (vec![first], (first..first + 4).collect()));
    assert_eq!(block, u64::from(timing::END_TO_NEXT));
}

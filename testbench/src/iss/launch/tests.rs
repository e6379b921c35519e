use super::*;
use crate::asm::{self, A0, Asm, BARRIER, BEQ, BLTU, BNE, ZERO, add, addi, amo, csrr, lui, lw, slli, sw};
use crate::iss::{Access, Place};
use heddle_simt::{Shape, csr};

fn shape(lanes: u32, warps: u32) -> Shape {
    Shape { atomics: true, barriers: true, scratchpad: 1024, ..Shape::new(lanes, warps) }
}

fn iss(program: &Asm, shape: &Shape) -> Iss {
    Iss::new(&program.program(), shape).unwrap()
}

fn word(iss: &Iss, address: u32) -> u32 {
    u32::from_le_bytes(iss.memory()[address as usize..][..4].try_into().unwrap())
}

fn csr(name: &str) -> u32 {
    csr::MAP.iter().find(|csr| csr.name == name).unwrap().address.into()
}

/// Every thread of every block runs once and knows who it is, on all shapes and block sizes.
#[test]
fn every_thread_of_the_grid_runs_once() {
    const COUNTS: u32 = 0x1_0000;
    let threads = asm::BLOCK_THREADS;
    // counts[block * blockthreads + thread] += 1, and the last block leaves the sizes.
    let program = Asm::default()
        .put([csrr(5, asm::BLOCK), csrr(6, threads), asm::mul(5, 5, 6), csrr(6, asm::THREAD_IN_BLOCK), add(5, 5, 6)])
        .put([slli(5, 5, 2), lui(6, COUNTS >> 12), add(5, 5, 6), addi(6, ZERO, 1), amo(0, ZERO, 6, 5)])
        .put([csrr(5, csr("blocks")), csrr(6, threads), lui(7, 0x8), sw(5, 7, 0), sw(6, 7, 4), addi(A0, ZERO, 0)])
        .exit();
    for (lanes, warps) in [(1, 1), (4, 1), (1, 4), (4, 4), (8, 8)] {
        let shape = shape(lanes, warps);
        for threads in 1..=shape.threads() {
            for blocks in [1, 2, 7] {
                let mut iss = iss(&program, &shape);
                let grid = Grid { blocks, threads };
                iss.run_grid(grid).unwrap();
                let counts = (0..blocks * threads + 1).map(|n| word(&iss, COUNTS + 4 * n));
                assert!(counts.eq((0..=blocks * threads).map(|n| u32::from(n < blocks * threads))), "{grid:?}");
                assert_eq!([0x8000, 0x8004].map(|at| word(&iss, at)), [blocks, threads]);
            }
        }
    }
}

/// Thread t stores before a barrier and reads the next thread's word behind it, `rounds` times, in the scratchpad.
fn neighbours(rounds: u32) -> Asm {
    Asm::default()
        .put([
            csrr(5, asm::THREAD_IN_BLOCK),
            csrr(6, asm::BLOCK_THREADS),
            lui(7, 0x4_0000),
            addi(8, ZERO, rounds as i32),
        ])
        // x9: own word; x11: the next thread's.
        .put([slli(9, 5, 2), add(9, 9, 7), addi(11, 5, 1)])
        .branch(BNE, 11, 6, "not_last")
        .put([addi(11, ZERO, 0)])
        .label("not_last")
        .put([addi(14, 11, 0), slli(11, 11, 2), add(11, 11, 7)])
        .label("round")
        .put([asm::mul(12, 8, 8), add(13, 12, 5), sw(13, 9, 0), BARRIER, lw(13, 11, 0), BARRIER])
        .put([add(12, 12, 14)])
        .branch(BEQ, 12, 13, "right")
        .put([asm::EBREAK])
        .label("right")
        .put([addi(8, 8, -1)])
        .branch(BNE, 8, ZERO, "round")
        .put([addi(A0, ZERO, 0)])
        .exit()
}

#[test]
fn barriers_keep_the_threads_of_a_block_together() {
    for (lanes, warps) in [(1, 1), (1, 4), (4, 2), (8, 4)] {
        let shape = shape(lanes, warps);
        for threads in 1..=shape.threads() {
            iss(&neighbours(5), &shape).run_grid(Grid { blocks: 9, threads }).unwrap();
        }
    }
}

#[test]
fn a_barrier_does_not_wait_for_threads_that_have_ended() {
    // Thread t ends before its t-th barrier.
    let program = Asm::default()
        .put([csrr(5, asm::THREAD_IN_BLOCK), addi(A0, ZERO, 0)])
        .label("again")
        .branch(BEQ, 5, ZERO, "end")
        .put([BARRIER, addi(5, 5, -1)])
        .jal(ZERO, "again")
        .label("end")
        .exit();
    iss(&program, &shape(4, 4)).run_grid(Grid { blocks: 3, threads: 15 }).unwrap();
}

#[test]
fn threads_may_wait_for_a_word_of_another() {
    // Thread 0 waits for a flag that the last thread sets.
    let program = Asm::default()
        .put([csrr(5, asm::THREAD_IN_BLOCK), lui(6, 0x10), addi(7, ZERO, 1), addi(A0, ZERO, 0)])
        .branch(BNE, 5, ZERO, "set")
        .label("spin")
        .put([lw(8, 6, 0)])
        .branch(BEQ, 8, ZERO, "spin")
        .exit()
        .label("set")
        .put([sw(7, 6, 0)])
        .exit();
    iss(&program, &shape(2, 1)).run().unwrap();
}

#[test]
fn what_never_ends_is_reported_with_who_is_where() {
    let program = Asm::default()
        .put([csrr(5, asm::THREAD_IN_BLOCK), addi(6, ZERO, 2)])
        .branch(BLTU, 5, 6, "first")
        .put([BARRIER])
        .label("first")
        .jal(ZERO, "first");
    let mut iss = iss(&program, &shape(2, 2));
    iss.set_limit(1000);
    let error = iss.run_grid(Grid { blocks: 2, threads: 4 }).unwrap_err().to_string();
    assert_eq!(
        error,
        "still running after 1000 instructions: threads 0-1 of block 0 running at 0x00000010 (first); \
         threads 2-3 of block 0 waiting at the barrier at 0x0000000c"
    );
}

#[test]
fn errors_name_block_and_thread() {
    let program = Asm::default().put([csrr(A0, asm::THREAD_IN_BLOCK), csrr(5, asm::BLOCK)]).branch(BNE, 5, ZERO, "end");
    let program = program.put([addi(A0, ZERO, 0)]).label("end").exit();
    let grid = Grid { blocks: 5, threads: 3 };
    let mut device = iss(&program, &shape(1, 4));
    assert_eq!(device.run_grid(grid).unwrap_err().to_string(), "thread 1 of block 1 ended with exit code 1");
    let grid = Grid { blocks: 5, threads: 5 };
    assert_eq!(device.run_grid(grid).unwrap_err().to_string(), "blocks of 5 threads: the core has 4");
    let program = Asm::default().put([csrr(5, asm::BLOCK), addi(5, 5, -3)]).branch(BNE, 5, ZERO, "end");
    let program = program.put([asm::EBREAK]).label("end").put([addi(A0, ZERO, 0)]).exit();
    let error = iss(&program, &shape(1, 4)).run_grid(Grid { blocks: 5, threads: 1 }).unwrap_err();
    assert_eq!(error.to_string(), "thread 0 of block 3 at pc 0x0000000c: ebreak");
}

/// The scratchpad of a block is its group's part; what an earlier block left is still there.
#[test]
fn blocks_have_their_share_of_the_scratchpad() {
    let program = Asm::default().put([lui(5, 0x4_0000), csrr(6, asm::BLOCK), lw(7, 5, 0), sw(6, 5, 508)]);
    let program = program.put([lw(8, 5, 512)]).exit();
    let mut iss = iss(&program, &shape(2, 8));
    iss.begin(Grid { blocks: 8, threads: 7 }).unwrap();
    assert_eq!(iss.start_warp(7, 2), Ok(1));
    assert_eq!(iss.start_warp(4, 2), Ok(3));
    let place = |iss: &mut Iss, hart| {
        let [_, _, load, store] = [(); 4].map(|()| iss.step(hart).unwrap().access);
        let [load, store] = [load.unwrap(), store.unwrap()];
        [load, store].map(|Access { place, .. }| place)
    };
    assert_eq!(place(&mut iss, 8), [Place::Scratchpad(512), Place::Scratchpad(1020)]);
    assert_eq!(place(&mut iss, 14), [Place::Scratchpad(512), Place::Scratchpad(1020)]);
    let error = iss.step(8).unwrap_err().to_string();
    assert_eq!(error, "thread 0 of block 2 at pc 0x00000010: load outside memory, from 0x40000200");
    assert_eq!(iss.scratchpad()[1020..], [2, 0, 0, 0]);
    iss.begin(Grid { blocks: 1, threads: 1 }).unwrap();
    assert_eq!(iss.scratchpad()[1020..], [2, 0, 0, 0]);
}

#[test]
fn warps_start_where_and_when_they_can() {
    let program = Asm::default().put([BARRIER, addi(A0, ZERO, 0)]).exit();
    let mut iss = iss(&program, &shape(2, 4));
    iss.begin(Grid { blocks: 2, threads: 3 }).unwrap();
    let error = |iss: &mut Iss, slot, block| iss.start_warp(slot, block).unwrap_err().to_string();
    assert_eq!(error(&mut iss, 0, 2), "block 2 is started, but the grid has 2");
    assert_eq!(iss.start_warp(2, 0), Ok(0b11));
    assert_eq!(error(&mut iss, 3, 1), "block 1 is started in warp slot 3, where block 0 has not ended");
    // A block waits for warps that have not started.
    iss.step(4).unwrap();
    iss.step(5).unwrap();
    assert!(iss.hart(4).waits() && iss.hart(5).waits());
    assert_eq!(iss.start_warp(3, 0), Ok(0b01));
    assert!(!iss.hart(7).is_live());
    assert_eq!(error(&mut iss, 3, 0), "block 0 is started in warp slot 3 again");
    iss.step(6).unwrap();
    for hart in 4..7 {
        assert!(!iss.hart(hart).waits());
        let steps = [(); 3].map(|()| iss.step(hart).unwrap());
        assert_eq!((steps[2].exit, iss.hart(hart).exit()), (Some(0), Some(0)));
    }
    assert_eq!(iss.start_warp(2, 1), Ok(0b11));
    iss.begin(Grid { blocks: 1, threads: 5 }).unwrap();
    assert_eq!(error(&mut iss, 3, 0), "block 0 is started in warp slot 3, of which a block has no use");
}

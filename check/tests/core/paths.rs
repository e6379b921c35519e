//! What becomes of the threads of a warp that disagree: path lists, divergent jumps, calls, exits.

use crate::bench::{Core, Paths, shape};
use heddle_simt::pipeline::timing;
use heddle_testbench::asm::*;

/// Figure 1(e) of `papers/path-lists-simty.txt`: `if (A && B) C; else D; E`, thread 0 through ABCE, 1 through ADE, 2
/// and 3 through ABDE. Masks here have thread 0 lowest: the figure's 1011 is 1101.
#[test]
fn figure_1_e_path_lists_and_their_cycles() {
    let program = Asm::default()
        .put([csrr(5, LANE), addi(6, 5, -1)])
        .label("A")
        .branch(BEQ, 6, ZERO, "D")
        .label("B")
        .branch(BNE, 5, ZERO, "D")
        .label("C")
        .put([NOP])
        .jal(ZERO, "E")
        .label("D")
        .put([NOP])
        .label("E")
        .exit();
    let mut core = Core::new(&shape(4, 1), &program);
    core.run();
    let at = |label| program.at(label);
    let (one, dependent) = (u64::from(timing::CONTROL_TO_NEXT), u64::from(timing::ISSUE_TO_DEPENDENT));
    let next = u64::from(timing::ISSUE_TO_NEXT);
    let expected: [(u64, Paths); 6] = [
        (0, vec![(0, 0, 0b1111)]), // start
        // A: three instructions, each waits for the one before
        (one + 2 * dependent, vec![(0, at("B"), 0b1101), (0, at("D"), 0b0010)]),
        (one, vec![(0, at("C"), 0b0001), (0, at("D"), 0b1110)]), // B: some join D
        (one + next, vec![(0, at("D"), 0b1110), (0, at("E"), 0b0001)]), // C, two instructions: jumps ahead
        (one, vec![(0, at("E"), 0b1111)]),                       // D arrives at its stop pc
        (one + dependent, vec![]),                               // E: ecall waits for a7; all exit
    ];
    let start = core.updates[0].0;
    let mut last = start;
    let seen: Vec<(u64, Paths)> = core
        .updates
        .iter()
        .map(|(cycle, _, paths)| (cycle - std::mem::replace(&mut last, *cycle), paths.clone()))
        .collect();
    assert_eq!(seen, expected);
    let masks: Vec<(u64, u64)> = core.issues.iter().map(|i| (i.pc, i.mask)).collect();
    let blocks = [("A", 0b1111), ("B", 0b1101), ("C", 0b0001), ("D", 0b1110), ("E", 0b1111)];
    assert!(blocks.into_iter().all(|(block, mask)| masks.contains(&(at(block), mask))), "{masks:?}");
    assert_eq!(core.metric("merges"), 2);
    assert_eq!(core.metric("most_paths"), 2);
}

/// Every lane jumps to its own function; all come back to one path.
#[test]
fn divergent_calls_come_back_together() {
    for (lanes, link) in [(1, false), (2, true), (4, false), (4, true), (8, true), (64, false)] {
        let target = if link { RA } else { 6 };
        let mut program = Asm::default()
            .put([csrr(5, LANE), andi(5, 5, 7), slli(5, 5, 3)])
            .la(target, "table")
            .put([add(target, target, 5)])
            .label("call")
            .put([jalr(RA, target, 0)])
            .label("back")
            .put([addi(21, RA, 0)])
            .exit()
            .label("table");
        for k in 0..8 {
            program = program.put([addi(20, ZERO, 100 + k), jalr(ZERO, RA, 0)]);
        }
        let mut core = Core::new(&shape(lanes, 1), &program);
        core.run();
        let back = program.at("back");
        for lane in 0..lanes {
            assert_eq!(core.register(0, lane, 20), 100 + lane % 8, "{lanes} lanes, lane {lane}");
            assert_eq!(core.register(0, lane, 21), back as u32 * 4, "{lanes} lanes, lane {lane}");
        }
        let all = u64::MAX >> (64 - lanes);
        assert_eq!(core.issues_of(back).iter().map(|i| i.mask).collect::<Vec<_>>(), [all], "{lanes} lanes");
        assert_eq!(core.issues_of(program.at("call")).len(), lanes.min(8) as usize);
    }
}

/// `depth(n) = n == 0 ? 0 : 1 + depth(n - 1)`, n the lane: callers wait for deeper calls, then meet.
#[test]
fn recursion_sorts_by_call_depth() {
    let program = Asm::default()
        .put([csrr(5, LANE), csrr(2, MHARTID), slli(2, 2, 6), addi(2, 2, 0x7c0), addi(A0, ZERO, 0)])
        .jal(RA, "f")
        .label("back")
        .put([addi(20, A0, 0)])
        .exit()
        .label("f")
        .branch(BEQ, 5, ZERO, "end")
        .put([addi(2, 2, -4), sw(RA, 2, 0), addi(5, 5, -1)])
        .jal(RA, "f")
        .put([addi(A0, A0, 1), lw(RA, 2, 0), addi(2, 2, 4)])
        .label("end")
        .put([jalr(ZERO, RA, 0)]);
    for lanes in [2, 4, 8] {
        let mut core = Core::new(&shape(lanes, 2), &program);
        core.run();
        for (warp, lane) in (0..2).flat_map(|w| (0..lanes).map(move |l| (w, l))) {
            assert_eq!(core.register(warp, lane, 20), lane);
        }
        let all = u64::MAX >> (64 - lanes);
        let masks: Vec<u64> = core.issues_of(program.at("back")).iter().map(|i| i.mask).collect();
        assert_eq!(masks, [all, all], "one issue a warp: all threads are back");
        let deepest = core.updates.iter().flat_map(|(_, _, paths)| paths.iter().map(|p| p.0)).max();
        assert_eq!(deepest, Some(u64::from(lanes)));
        let last = core.updates.iter().rev().find(|(_, _, paths)| !paths.is_empty()).unwrap();
        assert_eq!(last.2[0].0, 0, "depth 0 at the end");
    }
}

/// Loops of a different length in every lane; the paths in the tables are always the live threads, each once.
#[test]
fn every_live_thread_is_in_one_path() {
    let program = Asm::default()
        .put([csrr(5, MHARTID), andi(5, 5, 15), addi(6, ZERO, 0)])
        .label("loop")
        .put([andi(7, 5, 3)])
        .branch(BEQ, 7, ZERO, "skip")
        .put([addi(6, 6, 1)])
        .label("skip")
        .put([addi(5, 5, -1)])
        .branch(BLT, ZERO, 5, "loop")
        .exit();
    for (lanes, warps) in [(2, 1), (4, 2), (8, 2), (16, 1)] {
        let mut core = Core::new(&shape(lanes, warps), &program);
        core.run();
        let mut live = vec![0u64; warps as usize];
        for (cycle, warp, paths) in &core.updates {
            let together = paths.iter().fold(0, |seen, &(_, _, mask)| {
                assert_eq!(seen & mask, 0, "cycle {cycle}: {paths:?}");
                seen | mask
            });
            let before = std::mem::replace(&mut live[*warp as usize], together);
            let ended = core.exits.iter().filter(|e| e.0 == *cycle && e.1 == *warp).fold(0, |m, e| m | e.2);
            assert!(before == 0 || before & !ended == together, "cycle {cycle}: {before:b} to {together:b}");
        }
        for (warp, lane) in (0..warps).flat_map(|w| (0..lanes).map(move |l| (w, l))) {
            let n = (warp * lanes + lane) % 16;
            let count = (1..=n).filter(|k| k % 4 != 0).count() as u32;
            assert_eq!(core.register(warp, lane, 6), count, "warp {warp} lane {lane}");
        }
    }
}

#[test]
fn part_of_a_warp_may_exit_anywhere() {
    let program = Asm::default()
        .put([csrr(5, LANE), andi(6, 5, 1), addi(A0, 5, 40)])
        .branch(BEQ, 6, ZERO, "even")
        .exit()
        .label("even")
        .put([addi(A0, A0, 100), andi(6, 5, 2)])
        .branch(BEQ, 6, ZERO, "end")
        .put([addi(A0, A0, 1)])
        .exit()
        .label("end")
        .exit();
    let mut core = Core::new(&shape(8, 2), &program);
    core.run();
    for (warp, lane) in (0..2).flat_map(|w| (0..8).map(move |l| (w, l))) {
        let code = match lane % 4 {
            0 => lane + 140,
            2 => lane + 141,
            _ => lane + 40,
        };
        assert_eq!(core.exit_code(warp, lane), code, "warp {warp} lane {lane}");
    }
    let ended: Vec<u64> = core.exits.iter().filter(|e| e.1 == 0).map(|e| e.2).collect();
    assert_eq!(ended, [0b1010_1010, 0b0100_0100, 0b0001_0001]);
}

//! Random writers and random threads, against a set of what each thread awaits.

use super::*;
use crate::divergence::Divergence;
use crate::divergence::interface::PathsChange;
use crate::pipeline::testing::packed;
use crate::scoreboard::testing::Needs;
use crate::scoreboard::{Pending, scoreboard};
use heddle_sim::Sim;
use std::collections::BTreeSet;

/// Of a warp and a register, the threads that await it.
type Waiting = BTreeSet<(u32, u32, u32)>;

fn of(waiting: &Waiting, warp: u32, rd: u32) -> u64 {
    waiting.iter().filter(|t| (t.0, t.2) == (warp, rd)).fold(0, |mask, t| mask | 1 << t.1)
}

/// Some threads of one (warp, register), other than `not`.
fn some(waiting: &Waiting, r: &mut fastrand::Rng, not: Option<(u32, u32, u64)>) -> Option<(u32, u32, u64)> {
    let all: Vec<_> = waiting.iter().collect();
    let &&(warp, lane, rd) = all.get(r.usize(..all.len().max(1)))?;
    let taken = not.filter(|not| (not.0, not.1) == (warp, rd)).map_or(0, |not| not.2);
    let threads = of(waiting, warp, rd) & (r.u64(..) | 1 << lane) & !taken;
    (threads != 0).then_some((warp, rd, threads))
}

#[test]
fn pending_is_a_set_of_threads_and_registers() {
    for (lanes, warps, seed) in [(1, 1, 1), (2, 2, 2), (4, 8, 3), (64, 1, 4), (8, 64, 5)] {
        println!("{lanes} × {warps}, seed {seed}");
        let shape = Shape::new(lanes, warps).with_divergence(Divergence::DUAL_PATH);
        let s = Shape { scoreboard: Scoreboard::Exact, ..shape };
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&scoreboard(&s).check().unwrap());
        t.reset();
        let everyone = u64::MAX >> (64 - lanes);
        let mut waiting = Waiting::new();
        let (mut waited, mut passed) = (0, 0);
        for cycle in 0..if warps == 64 { 300 } else { 2000 } {
            let heads: Vec<Needs> = (0..2 * warps).map(|_| Needs::random(&mut r)).collect();
            // The paths of a warp have no thread in common.
            let paths: Vec<u64> = (0..warps)
                .flat_map(|_| {
                    let (left, ran) = (r.u64(..), r.u64(..));
                    [left & ran, !left & ran]
                })
                .map(|path| path & everyone)
                .collect();
            let waits = |waiting: &Waiting, slot: u32| {
                let (head, path) = (&heads[slot as usize], paths[slot as usize]);
                waiting.iter().any(|&(warp, lane, rd)| warp == slot / 2 && path >> lane & 1 == 1 && head.names(rd))
            };
            let slot = r.u32(..2 * warps);
            let rd = heads[slot as usize].rd.filter(|_| paths[slot as usize] != 0 && !waits(&waiting, slot));
            let early = some(&waiting, &mut r, None).filter(|_| r.bool());
            let late = some(&waiting, &mut r, early).filter(|_| r.bool());
            let lanes_of = |masks: &[u64]| {
                let bits = masks.iter().flat_map(|mask| (0..lanes).map(move |lane| mask >> lane & 1 == 1));
                let mut limbs = vec![0u64; (masks.len() * lanes as usize).div_ceil(64)];
                bits.enumerate().for_each(|(k, bit)| limbs[k / 64] |= u64::from(bit) << (k % 64));
                Bits::from_limbs(&limbs)
            };
            let (early_warp, early_rd, early_threads) = early.unwrap_or((0, 5, 0));
            let side = r.u32(..2);
            let (late_warp, late_rd, late_threads) = late.unwrap_or((0, 5, 0));
            let threads = ThreadsIn {
                issue: paths[slot as usize].into(),
                early: early_threads.into(),
                late: Written { lanes: late_threads.into(), warp: late_warp.into(), rd: late_rd.into() },
                paths: lanes_of(&paths),
            };
            let none = || Release { slots: 0u64.into(), registers: 1u64.into() };
            t.poke(ScoreboardIn {
                heads: packed(&heads.iter().map(Needs::registers).collect::<Vec<_>>()),
                issue: Pending { valid: rd.is_some().into(), slot: slot.into(), rd: rd.unwrap_or(7).into() },
                early: Release {
                    slots: (u128::from(early.is_some()) << (2 * early_warp + side)).into(),
                    registers: (1u64 << early_rd).into(),
                },
                late: none(),
                changed: Some(PathsChange { valid: r.bool().into(), warp: r.u32(..warps).into() }),
                threads: Some(threads),
            });
            let out = t.peek();
            for warp in 0..warps {
                let quiet = waiting.iter().all(|thread| thread.0 != warp);
                assert_eq!(out.quiet.bit(warp), quiet, "cycle {cycle}, warp {warp}: {waiting:?}");
            }
            for (warp, rd, threads) in [early, late].into_iter().flatten() {
                waiting.retain(|t| (t.0, t.2) != (warp, rd) || threads >> t.1 & 1 == 0);
            }
            if let Some(rd) = rd {
                let path = paths[slot as usize];
                waiting.extend((0..lanes).filter(|lane| path >> lane & 1 == 1).map(|lane| (slot / 2, lane, rd)));
            }
            for slot in 0..2 * warps {
                let waits = waits(&waiting, slot);
                assert_eq!(out.clear.bit(slot), !waits, "cycle {cycle}, slot {slot}: {waiting:?}");
                waited += u32::from(waits);
                passed += u32::from(
                    !waits && waiting.iter().any(|&(w, _, rd)| w == slot / 2 && heads[slot as usize].names(rd)),
                );
            }
            t.step();
        }
        assert!(waited > 0 && (lanes == 1 || passed > 0), "{waited} heads waited, {passed} passed others' writes");
    }
}

//! Issue where a warp has two slots, against a model of buffers, of unresolved control instructions, and of whose turn
//! it is.

use super::*;
use crate::divergence::Divergence;
use crate::pipeline::decoded::Decoded;
use crate::pipeline::issue::Slotted;
use crate::pipeline::issue::{IssueIn, issue};
use crate::pipeline::timing::ISSUE_TO_RESOLVE;
use crate::shape::{Cache, PathScheduler, Replay};
use heddle_sim::Sim;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Instruction {
    pc: u64,
    answers: bool,
    control: bool,
    branch: bool,
    divide: bool,
}

/// A control instruction on its way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    side: usize,
    pc: u64,
    /// Cycles to stage 8; less than none behind it.
    left: i32,
    squashed: bool,
}

#[derive(Clone, Default)]
struct Warp {
    buffers: [VecDeque<Instruction>; 2],
    /// The first is the next to be resolved.
    under_way: VecDeque<UnderWay>,
    /// A control instruction issued in the cycle before.
    just: bool,
    /// The side whose turn it is.
    turn: usize,
    /// Behind the last instruction since the side was steered.
    following: [Option<u64>; 2],
    /// A control instruction of the side is in its buffer or under way: nothing comes behind it.
    closed: [bool; 2],
    /// The first instruction of the side was looked up, and its registers are not pending.
    registers_ok: [bool; 2],
    /// What is replayed was issued on the other side; the next instruction is a replay.
    changed_side: [bool; 2],
    replays: [bool; 2],
    pc: [u64; 2],
}

fn random_traffic(path_scheduler: PathScheduler, replay: Replay, unresolved: u32, warps: u32, seed: u64) {
    println!("{path_scheduler:?}, {replay:?}, {unresolved} unresolved, {warps} warps, seed {seed}");
    let cache = Some(Cache { size: 1 << 10, ways: 1, line: 1, misses: 2 });
    let s = Shape {
        path_scheduler,
        replay,
        unresolved,
        cache,
        ..Shape::new(2, warps).with_divergence(Divergence::DUAL_PATH)
    };
    let mut t = Sim::new(&issue(&s).check().unwrap());
    t.reset();
    let mut r = fastrand::Rng::with_seed(seed);
    let mut model = vec![Warp::default(); warps as usize];
    let last_pc = (1u64 << s.pc_bits()) - 1;
    // What issued in the cycle before, if the next instruction would take its place, which is still read.
    let mut still_read = None;
    let mut active = u64::MAX >> (64 - s.slots());
    let zero = IssueIn {
        decoded: Slotted::shape(&s),
        steer: Steer { valid: 1, slot: s.slot_bits(), pc: s.pc_bits(), replay: 1 },
        starts: None,
        group: None,
        held: None,
        may_pass: None,
        clear: s.slots(),
        access_room: 1,
        load_room: 1,
        divider_free: 1,
        hold_control: 1,
        bubble: 1,
        pairs: PairsIn::shape(&s),
    };
    let zero = zero.map("", &mut |_, _| Bits::ZERO);
    // Where the sibling of the slot goes on that was resolved in the cycle before.
    let mut suspended: Option<(usize, Option<u64>)> = None;
    // The slot that was flushed in the cycle before; the slot that has an outcome.
    let (mut flushed, mut outcome): (Option<usize>, Option<usize>) = (None, None);
    let (mut overlapped, mut squashed) = (false, 0);
    for _ in 0..4000 {
        let (w, side) = (r.usize(..warps as usize), r.usize(..2));
        if r.u8(..16) == 0 {
            active ^= 1 << r.u32(..s.slots());
        }
        let (clear, own_clear, busy) = (r.u64(..) | r.u64(..), r.u64(..), r.u64(..) & r.u64(..) & r.u64(..));
        // Control instructions come to stage 8 in order, one in a cycle at most, and have their outcome in the next.
        let resolved = outcome.take();
        let resolved_slot = resolved.unwrap_or(0);
        let flush = resolved.filter(|_| r.bool()).map(|slot| slot ^ 1);
        let comes = |warp: &Warp| warp.under_way.front().is_some_and(|first| first.left == 0);
        let arrives = (0..warps as usize).find(|&w| comes(&model[w])).map(|w| (w, model[w].under_way[0]));
        let room = !model[w].closed[side]
            && model[w].buffers[side].len() < s.buffer as usize
            && ![flush, still_read].contains(&Some(2 * w + side));
        let push = (room && r.u8(..3) > 0).then(|| {
            let pc = model[w].pc[side];
            let control = r.u8(..3) == 0;
            let branch = control && r.u8(..4) > 0;
            Instruction { pc, answers: r.u8(..4) == 0, control, branch, divide: r.u8(..8) == 0 }
        });
        // A slot is steered when its buffer is empty, for a replay or not, on the same side or the other.
        let steered = (r.usize(..warps as usize), r.usize(..2));
        let steers = model[steered.0].buffers[steered.1].is_empty() && push.is_none() && r.u8(..4) == 0;
        let (replay, changes_side) = (r.bool(), r.bool());

        let decoded = push.map_or(zero.decoded.decoded.clone(), |i| Decoded {
            pc: i.pc.into(),
            answers: i.answers.into(),
            load: i.answers.into(),
            control: i.control.into(),
            branch: i.branch.into(),
            divide: i.divide.into(),
            ..zero.decoded.decoded.clone()
        });
        let missed = (s.tells_misses() && r.u8(..4) == 0).then(|| r.usize(..2 * warps as usize));
        t.poke(IssueIn {
            decoded: Slotted {
                valid: push.is_some().into(),
                slot: (2 * w + side).into(),
                decoded,
                registers: Bits::ZERO,
                passes: None,
            },
            steer: Steer {
                valid: steers.into(),
                slot: (2 * steered.0 + steered.1).into(),
                pc: 0u32.into(),
                replay: replay.into(),
            },
            clear: Bits::from(clear).extract(0, s.slots()),
            access_room: true.into(),
            load_room: true.into(),
            divider_free: true.into(),
            pairs: Some(PairsIn {
                flush: Flush { valid: flush.is_some().into(), slot: flush.unwrap_or(0).into() },
                resolved: resolved.is_some().into(),
                resolved_slot: resolved_slot.into(),
                busy: Bits::from(busy).extract(0, s.warps),
                active: active.into(),
                missed: s
                    .tells_misses()
                    .then(|| OfSlot { valid: missed.is_some().into(), slot: missed.unwrap_or(0).into() }),
                arrives: s.overlaps_control().then(|| OfSlot {
                    valid: arrives.is_some().into(),
                    slot: arrives.map_or(0, |(w, first)| 2 * w + first.side).into(),
                }),
                changes_side: changes_side.into(),
                own_clear: (s.replay == Replay::Split).then(|| Bits::from(own_clear).extract(0, s.slots())),
            }),
            ..zero.clone()
        });
        let out = t.peek();

        let looked_up = |w: usize, side: usize| {
            let warp = &model[w];
            let bit = |bits: u64| bits >> (2 * w + side) & 1 == 1;
            let again =
                warp.replays[side] && (!warp.changed_side[side] || (s.replay == Replay::Split && bit(own_clear)));
            !warp.buffers[side].is_empty() && flush != Some(2 * w + side) && (bit(clear) || again)
        };
        let may = |w: usize, side: usize| {
            let warp = &model[w];
            let registers = warp.registers_ok[side];
            let turn = !path_scheduler.is_constrained() || warp.turn == side;
            let busy = busy >> w & 1 == 1;
            let parts = |i: &Instruction| {
                let under_way = |of: usize| warp.under_way.iter().any(|first| !first.squashed && first.side == of);
                let waits_for_sibling = under_way(1 - side) && !(s.overlaps_control() && i.branch);
                let too_soon = s.overlaps_control() && warp.just;
                !(busy || under_way(side) || waits_for_sibling || too_soon)
            };
            warp.buffers[side].front().is_some_and(|i| registers && turn && (!i.control || parts(i)))
        };
        let could: Vec<(usize, usize)> =
            (0..warps as usize).flat_map(|w| [(w, 0), (w, 1)]).filter(|&(w, side)| may(w, side)).collect();
        assert_eq!(out.issued.valid == 1, !could.is_empty());
        let issued = (out.issued.valid == 1).then(|| {
            let slot = out.issued.slot.low_u64() as usize;
            assert!(could.contains(&(slot / 2, slot % 2)), "slot {slot} of {could:?}");
            (slot / 2, slot % 2)
        });
        let ok: Vec<[bool; 2]> =
            (0..warps as usize).map(|w| [0, 1].map(|side| looked_up(w, side) && issued != Some((w, side)))).collect();
        model.iter_mut().zip(ok).for_each(|(warp, ok)| warp.registers_ok = ok);
        let warp_before = model.clone();
        let mut long = None;
        if let Some((w, side)) = issued {
            let warp = &mut model[w];
            let instruction = warp.buffers[side].pop_front().unwrap();
            assert_eq!(out.issued.pc, instruction.pc);
            warp.following[side] = Some((instruction.pc + 1) & last_pc);
            warp.replays[side] = false;
            let answers = instruction.answers && !s.tells_misses();
            long = (answers || instruction.control || instruction.divide).then_some(w);
            if instruction.control {
                warp.under_way.push_back(UnderWay {
                    side,
                    pc: instruction.pc,
                    left: ISSUE_TO_RESOLVE as i32,
                    squashed: false,
                });
            }
        }
        // What goes back: of the slot that was flushed in the cycle before.
        let goes_back = |w: usize, side: usize| flushed == Some(2 * w + side);
        if let Some((sibling, pc)) = suspended.take() {
            let unissued = out.unissued.unwrap();
            assert_eq!(unissued.valid == 1, pc.is_some());
            let (w, side): (usize, usize) = (sibling / 2, sibling % 2);
            let before = warp_before[w].under_way.iter().find(|first| first.side == side && !first.squashed);
            overlapped |= before.is_some();
            assert!(before.map(|first| first.pc).or(pc).is_none_or(|pc| unissued.pc == pc));
        }
        if let Some(squashes) = &out.squashes {
            for (w, warp) in warp_before.iter().enumerate() {
                for side in [0, 1] {
                    let of_side = warp.under_way.iter().filter(|first| first.side == side);
                    let expected = of_side.clone().any(|first| first.squashed || goes_back(w, side));
                    assert_eq!(squashes.bit((2 * w + side) as u32), expected, "warp {w}, side {side}");
                }
            }
        }
        for (w, warp) in model.iter_mut().enumerate() {
            warp.just = issued.is_some_and(|(of, _)| of == w)
                && warp.under_way.back().is_some_and(|last| last.left == ISSUE_TO_RESOLVE as i32);
            if resolved.is_some_and(|slot| slot / 2 == w) {
                let first = warp.under_way.pop_front().unwrap();
                assert_eq!(Some(2 * w + first.side), resolved);
                warp.closed[first.side] = false;
            }
            for first in &mut warp.under_way {
                let issued_before = first.left < ISSUE_TO_RESOLVE as i32;
                first.squashed |= issued_before && flushed == Some(2 * w + first.side);
            }
            if arrives.is_some_and(|(of, _)| of == w) {
                let first = warp.under_way[0];
                if first.squashed {
                    warp.under_way.pop_front();
                    warp.closed[first.side] = false;
                    squashed += 1;
                } else {
                    outcome = Some(2 * w + first.side);
                }
            }
            warp.under_way.iter_mut().for_each(|first| first.left -= 1);
        }
        for (w, warp) in model.iter_mut().enumerate() {
            let is_active = |side: usize| active >> (2 * w + side) & 1 == 1;
            let misses = missed == Some(2 * w + warp.turn);
            if (long == Some(w) || misses || !is_active(warp.turn)) && is_active(1 - warp.turn) {
                warp.turn = 1 - warp.turn;
            }
        }
        if let Some(instruction) = push {
            model[w].buffers[side].push_back(instruction);
            model[w].pc[side] = (instruction.pc + 1) & last_pc;
            model[w].closed[side] |= instruction.control;
        }
        let is_next = |&(w, side): &(usize, usize)| model[w].buffers[side].len() + 1 == s.buffer as usize;
        still_read = issued.filter(is_next).map(|(w, side)| 2 * w + side);
        if let Some(slot) = flush {
            let (warp, side) = (&mut model[slot / 2], slot % 2);
            warp.buffers[side].clear();
            warp.closed[side] = warp.under_way.iter().any(|first| first.side == side);
        }
        if steers {
            let (warp, side) = (&mut model[steered.0], steered.1);
            warp.following[side] = warp.following[side].filter(|_| issued == Some(steered));
            warp.changed_side[side] = changes_side;
            warp.replays[side] |= replay;
        }
        suspended = resolved.map(|slot| (slot ^ 1, model[slot / 2].following[1 - slot % 2]));
        flushed = flush;
        t.step();
    }
    let mut happened = |cover: &str| assert!(t.cover_hits(cover) > 0, "{cover}");
    happened("sibling_issues_when_it_is_suspended");
    assert_eq!(overlapped && squashed > 0, s.overlaps_control(), "{squashed} were squashed");
    if path_scheduler.is_constrained() {
        happened("path_changes");
    }
}

#[test]
fn one_control_instruction_of_a_warp_and_one_path_at_a_time() {
    for (seed, warps) in [1, 2, 8, 32].into_iter().enumerate() {
        for &(_, path_scheduler) in PathScheduler::ALL {
            random_traffic(path_scheduler, Replay::Serialise, 1, warps, seed as u64);
            random_traffic(path_scheduler, Replay::Split, 1, warps, seed as u64);
            random_traffic(path_scheduler, Replay::Serialise, 2, warps, seed as u64);
        }
    }
}

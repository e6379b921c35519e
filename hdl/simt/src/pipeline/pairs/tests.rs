//! Issue where a warp has two slots, against a model of buffers, of unresolved control instructions, and of whose turn
//! it is.

use super::*;
use crate::divergence::Divergence;
use crate::pipeline::decoded::Decoded;
use crate::pipeline::issue::Slotted;
use crate::pipeline::issue::{IssueIn, issue};
use crate::shape::Replay;
use heddle_sim::Sim;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Instruction {
    pc: u64,
    answers: bool,
    control: bool,
    divide: bool,
}

#[derive(Clone, Default)]
struct Warp {
    buffers: [VecDeque<Instruction>; 2],
    /// Where a side issued a control instruction that is unresolved.
    unresolved: Option<usize>,
    /// The side whose turn it is.
    turn: usize,
    /// Behind the last instruction since the side was steered.
    following: [Option<u64>; 2],
    /// The first instruction of the side was looked up, and its registers are not pending.
    registers_ok: [bool; 2],
    /// What is replayed was issued on the other side; the next instruction is a replay.
    changed_side: [bool; 2],
    replays: [bool; 2],
    pc: [u64; 2],
}

fn random_traffic(path_scheduler: PathScheduler, replay: Replay, warps: u32, seed: u64) {
    println!("{path_scheduler:?}, {replay:?}, {warps} warps, seed {seed}");
    let s = Shape { path_scheduler, replay, ..Shape::new(2, warps).with_divergence(Divergence::DUAL_PATH) };
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
    let mut suspended: Option<Option<u64>> = None;
    for _ in 0..4000 {
        let (w, side) = (r.usize(..warps as usize), r.usize(..2));
        if r.u8(..16) == 0 {
            active ^= 1 << r.u32(..s.slots());
        }
        let (clear, own_clear, busy) = (r.u64(..) | r.u64(..), r.u64(..), r.u64(..) & r.u64(..) & r.u64(..));
        let done: Vec<usize> = (0..warps as usize).filter(|&w| model[w].unresolved.is_some()).collect();
        let resolved = r.choice(&done).copied().filter(|_| r.u8(..4) == 0);
        let resolved_slot = resolved.map_or(0, |w| 2 * w + model[w].unresolved.unwrap());
        let flush = resolved.filter(|_| r.bool()).map(|_| resolved_slot ^ 1);
        let room =
            model[w].buffers[side].len() < s.buffer as usize && ![flush, still_read].contains(&Some(2 * w + side));
        let push = (room && r.u8(..3) > 0).then(|| {
            let pc = model[w].pc[side];
            Instruction { pc, answers: r.u8(..4) == 0, control: r.u8(..4) == 0, divide: r.u8(..8) == 0 }
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
            divide: i.divide.into(),
            ..zero.decoded.decoded.clone()
        });
        t.poke(IssueIn {
            decoded: Slotted {
                valid: push.is_some().into(),
                slot: (2 * w + side).into(),
                decoded,
                registers: Bits::ZERO,
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
            let turn = path_scheduler == PathScheduler::Full || warp.turn == side;
            let parts = warp.unresolved.is_none() && busy >> w & 1 == 0;
            warp.buffers[side].front().is_some_and(|i| registers && turn && (parts || !i.control))
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
        let mut long = None;
        if let Some((w, side)) = issued {
            let warp = &mut model[w];
            let instruction = warp.buffers[side].pop_front().unwrap();
            assert_eq!(out.issued.pc, instruction.pc);
            warp.following[side] = Some((instruction.pc + 1) & last_pc);
            warp.replays[side] = false;
            long = (instruction.answers || instruction.control || instruction.divide).then_some(w);
            if instruction.control {
                warp.unresolved = Some(side);
            }
        }
        if let Some(sibling) = suspended.take() {
            let unissued = out.unissued.unwrap();
            assert_eq!(unissued.valid == 1, sibling.is_some());
            assert!(sibling.is_none_or(|pc| unissued.pc == pc));
        }
        if let Some(resolved) = resolved {
            model[resolved].unresolved = None;
        }
        for (w, warp) in model.iter_mut().enumerate() {
            let is_active = |side: usize| active >> (2 * w + side) & 1 == 1;
            if (long == Some(w) || !is_active(warp.turn)) && is_active(1 - warp.turn) {
                warp.turn = 1 - warp.turn;
            }
        }
        if let Some(instruction) = push {
            model[w].buffers[side].push_back(instruction);
            model[w].pc[side] = (instruction.pc + 1) & last_pc;
        }
        let is_next = |&(w, side): &(usize, usize)| model[w].buffers[side].len() + 1 == s.buffer as usize;
        still_read = issued.filter(is_next).map(|(w, side)| 2 * w + side);
        if let Some(slot) = flush {
            model[slot / 2].buffers[slot % 2].clear();
        }
        if steers {
            let (warp, side) = (&mut model[steered.0], steered.1);
            warp.following[side] = warp.following[side].filter(|_| issued == Some(steered));
            warp.changed_side[side] = changes_side;
            warp.replays[side] |= replay;
        }
        suspended = resolved.map(|resolved| model[resolved].following[1 - resolved_slot % 2]);
        t.step();
    }
    let mut happened = |cover: &str| assert!(t.cover_hits(cover) > 0, "{cover}");
    happened("sibling_issues_when_it_is_suspended");
    if path_scheduler == PathScheduler::Constrained {
        happened("path_changes");
    }
}

#[test]
fn one_control_instruction_of_a_warp_and_one_path_at_a_time() {
    for (seed, warps) in [1, 2, 8, 32].into_iter().enumerate() {
        for &(_, path_scheduler) in PathScheduler::ALL {
            random_traffic(path_scheduler, Replay::Serialise, warps, seed as u64);
            random_traffic(path_scheduler, Replay::Split, warps, seed as u64);
        }
    }
}

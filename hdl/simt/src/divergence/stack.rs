//! The stack divergence unit: a warp runs one side of a branch to where both reconverge, then the other.
//!
//! `thread-block-compaction.txt` §2.2.2, the immediate post-dominator scheme. Of each warp the *top* {pc, call depth,
//! mask, rpc} runs until its threads reach the reconvergence place, the *rpc*. Below it lie levels, one for each branch
//! where the threads have diverged since: the side that has not run yet (the *sibling*), and the *group*: all threads
//! that meet at the top's rpc, and where these go on to reconverge with others. [`super::Outcome::meets`] says where
//! the threads of a branch meet.
//!
//! * A side that is at the rpc already is not pushed: its threads are in a group.
//! * If the branch's rpc is the top's, there is no new group; and if nothing is pushed then, no level.
//! * An rpc is a pc at a call depth, or, of a branch whose sides return, wherever the first of them returns to, one
//!   depth less.
//!
//! With [`Shape::likely`], threads also meet at likely-convergence points (§4): a branch that leaves both sides running
//! makes its level gather those who come to its point. They pop as at an rpc, and run on together when the sibling has
//! run, towards the rpc that they had. Branches of the same group with the same point or none inherit it (the level is
//! the paper's LPos); a new group has none, since it meets first.
//!
//! * If nobody has gathered when the sibling goes, nobody is to come either: it has the point outside of the level.
//! * If all of the group have gathered, nobody waits at its rpc: they have the rpc and the point outside.
//!
//! Each level parts the top's threads strictly, so `lanes - 1` levels per warp are always enough. With fewer
//! ([`Shape::levels`]) a branch that finds none left is refused, and the core stops with a fault: memory for what a
//! program is not expected to need would cost more than it saves.
//!
//! | turn | what follows |
//! |---|---|
//! | outcome | the top moves; parts (a level is pushed); or is where it reconverges with others, or is empty: the warp is *popping* |
//! | wake | as an outcome that does not move the top |
//! | pop | a level's sibling is the top; or those at its likely point; or its group. It is steered unless it has to pop again |
//! | start | the new threads are the top, over no level |
//!
//! An outcome always has its turn; then a wake, a pop, a start. Whose turn it is was chosen in the cycle before
//! ([`Claim`]), when an outcome is announced: so the words of the warp come from registers, and a pop's level from
//! block RAM. A warp that had the turn is not chosen for a pop in that cycle, since its words change: it pops two
//! cycles after its outcome.
//!
//! Whatever it is told about reconvergence, every thread does what its program says: threads become one path only at
//! one pc.
//!
//! What it does not do: siblings never run before the top has reached its rpc. So a barrier that the top reaches while
//! other threads of its warp live below is refused, and locks between threads of a warp can wait for ever. It cannot
//! replay a memory access for a part of its threads (`Replay::Split`).

use super::inspect::{Path, State};
use super::levels::{
    Found, Level, Likely, Parting, Pop, Sibling, Top, has_likely, is_at_point, levels, part, pop, stop_of,
};
use super::{
    Announced, Capabilities, Events, Mechanism, MoreOut, Refused, Steer, Stop, UnitIn, UnitOut, assume_announced,
    assume_legal, depth_after, hold, kind,
};
use crate::isa::cause;
use crate::proof::Proof;
use crate::shape::Shape;
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;

/// Whose turn it is, chosen in the cycle before. With no bit set it is that of a start, or of nobody.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Claim<T> {
    slot: T,
    /// 1 bit: an outcome was announced. If it does not come, the turn is lost.
    outcome: T,
    /// 1 bit: a wake was taken.
    wake: T,
    /// 1 bit: the slot is popping, and its uppermost level was read.
    pop: T,
}

/// A slot's words in the memories, read in the cycle before.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Words<T> {
    top: Top<T>,
    /// The call depth of the top's threads that take the branch, if an outcome was announced; else the top's.
    #[width(s.depth_bits)]
    after: T,
    #[width(s.lanes)]
    threads: T,
    #[width(count_width(levels(s)))]
    count: T,
}

/// What proofs look at.
struct Inside {
    live: Signal,
    /// One bit per slot: all its threads wait, or were woken in the cycle before.
    waiting: Signal,
    popping: Signal,
    tops: Mem<Top<Width>>,
    threads: Mem<Width>,
    counts: Mem<Width>,
    levels: Option<Mem<Level<Width>>>,
    gathered: Option<Mem<Width>>,
    claim: Claim<Signal>,
    words: Words<Signal>,
    head: Level<Signal>,
    ghost_live: Mem<Width>,
    outcomes: Signal,
}

/// The mechanism: a stack per warp.
pub struct Stack;

impl Mechanism for Stack {
    fn name(&self) -> &'static str {
        "stack"
    }

    fn number(&self) -> u8 {
        2
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { reconverges: true, likely_points: true, splits: false, announced: true, ..Capabilities::NONE }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        stack(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// The top; then level by level the path that has not run on, and the threads that have come to where they are
    /// likely to meet or to where they reconverge.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
        let slot = u64::from(warp);
        if !state.register(s.warps, "live").bit(warp) {
            return Vec::new();
        }
        let waits = s.barriers && state.register(s.warps, "parked").bit(warp);
        let mut found = Found::new(&state.word(s.lanes, "threads", slot), s.lanes);
        let Top { pc, depth, mask, mut rpc, likely } = state.word(Top::shape(s), "tops", slot);
        found.add("top", (pc.low_u64(), depth.low_u64()), mask.low_u64(), waits);
        let mut point = likely.map_or(0, |likely| likely.pc.low_u64());
        // A broken core may count more than there are.
        let count = state.word(count_width(levels(s)), "counts", slot).low_u64().min(levels(s).into());
        for k in (0..count).rev() {
            let at = slot << index_width(levels(s)) | k;
            let Level { sibling, group, likely } = state.word(Level::shape(s), "levels", at);
            found.add_sibling(&format!("level[{k}]"), &sibling, false);
            if let Some(gathering) = likely {
                if gathering.valid == 1 {
                    let gathered = state.word(s.lanes, "gathered", at).low_u64();
                    found.add(&format!("likely[{k}]"), (point, rpc.depth.low_u64()), gathered, false);
                }
                if gathering.valid == 1 || group.valid == 1 {
                    point = gathering.outer.pc.low_u64();
                }
            }
            if group.valid == 1 {
                found.add(&format!("met[{k}]"), rpc.place(), group.mask.low_u64(), false);
                rpc = group.rpc;
            }
        }
        found.rest_at(&rpc)
    }
}

/// The stack unit of a shape.
pub fn stack(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    module("stack", UnitIn::shape(s), |m, i| described(m, s, i).0)
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a stack of reconvergence points.");
    let UnitIn { start, wake, outcome, .. } = i;
    let slot_bits = s.warp_bits();
    let count_bits = count_width(levels(s));
    let index_bits = index_width(levels(s));
    let live = m.reg("live", s.warps).reset(0u32);
    let parked = s.barriers.then(|| m.reg("parked", s.warps).reset(0u32));
    let tops = m.memory("tops", Top::shape(s), slot_bits).style(MemoryStyle::Distributed);
    let threads = m.memory("threads", s.lanes, slot_bits).style(MemoryStyle::Distributed);
    let stops = m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, slot_bits).style(MemoryStyle::Distributed);
    let counts = m.memory("counts", count_bits, slot_bits).style(MemoryStyle::Distributed);
    let entry_bits = index_bits + s.warps.ilog2();
    let levels_held = (s.lanes > 1).then(|| m.memory("levels", Level::shape(s), entry_bits));
    let distributed = |name| m.memory(name, s.lanes, entry_bits).style(MemoryStyle::Distributed);
    let gathered = has_likely(s).then(|| distributed("gathered"));
    let popping = m.reg("popping", s.warps).reset(0u32);

    // Whose turn comes next.
    let never = m.lit(0u32, 1);
    let claim = m.reg("claim", Claim { slot: slot_bits, outcome: 1, wake: 1, pop: 1 }).reset_zero();
    let next_words = m.reg("words", Words::shape(s)).reset_zero();
    let (next_claim, claim, words) = (claim, claim.q, next_words.q);
    let Announced { valid: announced, slot: announced_slot, call, ret } = i.announced.expect("outcomes are announced");
    wire!(wake_ready = !announced & m.lit(s.barriers, 1));
    wire!(woken = wake.valid & wake_ready);
    wire!(could_pop = popping.q & !claim.slot.decode(s.warps).only_if(claim.pop));
    wire!(pops_next = !announced & !woken & could_pop.any());
    let asked = [(announced, announced_slot), (wake.valid & m.lit(s.barriers, 1), wake.slot)];
    wire!(next_slot = pick(asked, could_pop.lowest_one().one_hot_index()));
    next_claim.next(Claim { slot: next_slot, outcome: announced, wake: woken, pop: pops_next });
    let next_top = tops.read(next_slot);
    let next_count = counts.read(next_slot);
    next_words.next(Words {
        top: next_top,
        after: depth_after(announced & call, announced & ret, next_top.depth),
        threads: threads.read(next_slot),
        count: next_count,
    });

    // Whose turn it is.
    let (pops, wakes) = (claim.pop, claim.wake);
    wire!(start_ready = !claim.outcome & !pops & !wakes);
    wire!(starts = start.valid & start_ready);
    wire!(slot = starts.mux(start.slot, claim.slot));
    let at = slot.decode(s.warps);
    let top = words.top;
    wire!(count = words.count.only_if(!starts));

    let entry_of = |entry: Signal, slot: Signal| {
        let entry = entry.slice(0, index_bits);
        if s.warps > 1 { cat(&[entry, slot]) } else { entry }
    };
    let address = |entry: Signal| entry_of(entry, slot);

    // Outcome and wake: the threads move, and part or meet.
    let parting = part(m, s, &outcome, words.after, top, count);
    let Parting { parts, meeting, taken_is_there, full, pushes, pushed, gathers, towards, stay, .. } = parting;
    let here = Sibling { valid: outcome.valid, pc: top.pc, depth: top.depth, mask: top.mask };
    let side = outcome.valid.mux(parting.side, here);
    wire!(moves = outcome.valid | wakes);
    wire!(waits = outcome.valid & outcome.kind.eq(kind::WAIT));
    wire!(is_there = outcome.valid.mux(parting.is_at_tops, top.rpc.reached(top.pc, top.depth)));
    wire!(arrives = moves & !waits & !parts & is_there);
    let found = meeting.found(arrives | taken_is_there, taken_is_there.mux(outcome.taken.pc, side.pc));
    let mask = outcome.valid.mux(parts.mux(side.mask, stay), top.mask);
    let moved = Top { pc: side.pc, depth: side.depth, mask, rpc: found, likely: top.likely.map(|_| towards) };
    wire!(ended = moves & !mask.any());

    // Pop. The level stays until nothing is left of it.
    let remaining = words.threads;
    let (head, popped) = if let Some(levels) = &levels_held {
        let head = levels.read_sync_if(pops_next, entry_of(next_count - 1, next_slot), Collision::Never);
        let at_point = gathered.as_ref().map_or(m.lit(0u32, s.lanes), |gathered| gathered.read(address(count - 1)));
        let popped = pop(m, s, top, head, at_point, remaining, pops);
        let writes = pushes | (pops & popped.stays);
        levels.write(writes, address(pushes.mux(count, count - 1)), pushes.mux(pushed, popped.left));
        (head, popped)
    } else {
        (m.zero(Level::shape(s)), m.zero(Pop::shape(s)))
    };
    let Pop { to_sibling, to_point, arrives_again, .. } = popped;
    wire!(consumed = pops & !popped.stays);

    // Where it goes.
    let begun = m.zero(Top::shape(s));
    let begun = Top { pc: start.pc, mask: start.mask, ..begun };
    let comes = pick([(starts, begun), (pops, popped.top)], moved);
    let nowhere = m.zero(Likely::shape(s));
    let next_point = comes.likely.unwrap_or(nowhere);
    let at_point = is_at_point(&comes).unwrap_or(never);
    wire!(joins = ((moves & !waits & !arrives) | (pops & !arrives_again)) & at_point);
    let after = Top { mask: comes.mask & !joins.repeat(s.lanes), ..comes };
    if let Some(gathered) = &gathered {
        // Of those that a pop lets run, only such with the outer point can be there.
        wire!(joined = pops.mux(popped.outer.level, towards.level));
        m.assert("the_point_is_that_of_its_level", !joins | joined.eq(next_point.level));
        let entry = address(joined);
        let before = gathered.read(entry);
        gathered.write(gathers | joins, entry, before.only_if(!gathers) | comes.mask.only_if(joins));
        m.assert("nobody_comes_to_a_point_twice", !(joins & !gathers) | !(before & comes.mask).any());
    }
    let left = count + pushes.zext(count_bits) - consumed.zext(count_bits);
    wire!(pops_again = pops & (arrives_again | joins | !comes.mask.any()) & left.any());
    wire!(must_pop = ((arrives | ended | (moves & joins)) & left.any()) | pops_again);
    wire!(updates = moves | pops | starts);
    tops.write(updates, slot, after);
    counts.write(outcome.valid | pops | starts, slot, left);
    // Nothing is decoded of a slot in the cycle behind its steering.
    stops.write(m.pipe_reset("updated", updates), m.pipe("updated_slot", slot), stop_of(m.pipe("updated_top", after)));
    wire!(threads_after = starts.mux(start.mask, remaining & !(top.mask & !stay)));
    threads.write(outcome.valid | starts, slot, threads_after);
    wire!(ends = updates & !must_pop & !after.mask.any());
    live.next_if(updates, (live.q & !at) | at.only_if(!ends));
    popping.next_if(updates, (popping.q & !at) | at.only_if(must_pop));
    // Threads on levels below never come.
    wire!(part_waits = waits & (outcome.rest.mask.any() | moved.mask.ne(threads_after)));
    let waiting = parked.map_or(m.lit(0u32, s.warps), |parked| {
        parked.next_if(updates, (parked.q & !at) | at.only_if(waits & !part_waits));
        parked.q
    });
    // Who was woken in the cycle before waits no more.
    wire!(still_waiting = waiting & !at.only_if(wakes));
    let code = |c: u32| m.lit(c, cause::BITS);
    let cause = part_waits.mux(code(cause::BARRIER_OF_A_PART), code(cause::STACK_OVERFLOW));
    let refused = Some(Refused { valid: part_waits | full, cause, because: None });
    let steer = Steer { valid: updates & !must_pop & !waits & !ends, slot, pc: after.pc, replay: never };

    // Checks.
    let ghost_live = m.memory("ghost_live", s.lanes, slot_bits);
    ghost_live.write(outcome.valid | starts, slot, threads_after);
    assume_legal(m, s, &i, (live.q, still_waiting), top.mask, (starts, woken));
    assume_announced(m, &i, (claim.outcome, claim.slot), steer);
    let stale = m.pipe_reset("stale", updates & slot.eq(next_slot));
    m.assert("nobody_uses_stale_words", !(stale & (outcome.valid | wakes | pops)));
    m.assume("no_outcome_of_a_popping_slot", !(outcome.valid & popping.q.select(outcome.slot, 1)));
    if s.barriers {
        m.cover("part_of_a_warp_waits", part_waits);
    }
    m.assert("pops_of_popping_slots", !pops | (popping.q.select(slot, 1) & count.any()));
    wire!(live_after = (pops | wakes).mux(ghost_live.read(slot), threads_after));
    let top_is_live = after.mask.any() & !(after.mask & !live_after).any();
    m.assert("the_top_has_live_threads", !steer.valid | top_is_live);
    m.assert("the_lowest_has_all_threads", !(steer.valid & !left.any()) | after.mask.eq(live_after));
    m.assert("what_stays_does_not_pop", !(pops_again & popped.stays));
    let sibling = head.sibling.mask;
    m.assert("a_sibling_is_apart", !(pops & to_sibling) | !(sibling & top.mask).any());
    let of_the_group = !(top.mask & remaining & !head.group.mask).any();
    m.assert("the_top_is_of_its_group", !(pops & head.group.valid & !to_sibling) | of_the_group);
    m.cover("pops_again", pops_again);
    m.cover("pop_waits_for_an_outcome", could_pop.any() & announced);
    m.cover("meets_where_it_returns", arrives & top.rpc.returns);
    m.cover("warp_ends", ends);
    if has_likely(s) {
        let gathering = head.likely.map_or(never, |gathering| gathering.valid);
        let point = top.likely.unwrap_or(nowhere);
        let its_own = point.valid & point.level.eq((count - 1).slice(0, index_bits));
        m.assert("the_top_goes_to_the_point_of_its_level", !(pops & gathering) | its_own);
        m.assert("those_at_a_point_are_apart", !(pops & to_point) | !(comes.mask & top.mask).any());
        m.assert("a_point_has_its_level", !joins | next_point.level.zext(count_bits).lt(left));
        m.cover("a_side_is_at_the_point", pushes & joins);
        m.cover("joins_after_a_pop", pops & joins);
    }

    let wake_waits = wake.valid & announced & m.lit(s.barriers, 1);
    wire!(put_off = (start.valid & !start_ready) | wake_waits | popping.q.any());
    let (hold, outcomes) = hold(m, announced, |_| put_off);
    m.probe("updates", updates);
    m.probe("slot", slot);
    let wide = s.lane_bits() + 1;
    let events = Events {
        merges: (pops & !to_sibling & comes.mask.any()).zext(2),
        levels: left.zext(wide).only_if(outcome.valid),
        paths: (left.zext(wide) + m.lit(1u32, wide)).only_if(outcome.valid & !ends),
        ..Events::none(m, s)
    };
    let out = UnitOut {
        start_ready,
        wake_ready,
        live: live.q,
        waiting: still_waiting,
        stop: stops.read(i.decode_slot),
        mask: tops.read(i.issue_slot).mask,
        steer,
        hold,
        more: MoreOut { refused, ..MoreOut::NONE },
        events,
    };
    let (live, popping) = (live.q, popping.q);
    let inside = Inside {
        live,
        waiting,
        popping,
        tops,
        threads,
        counts,
        levels: levels_held,
        gathered,
        claim,
        words,
        head,
        ghost_live,
        outcomes,
    };
    (out, inside)
}

pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;

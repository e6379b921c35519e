//! The stack divergence unit: a warp runs one side of a branch to where both meet, then the other.
//!
//! `thread-block-compaction.txt` §2.2.2, the immediate post-dominator scheme. Of each warp the *top* {pc, call depth, mask, rpc}
//! runs until its threads reach the reconvergence place, the *rpc*. Below it lie levels, one for each branch that parted the
//! threads since: the side that has not run yet (the *sibling*), and the *group*: all threads that meet at the top's rpc,
//! and where these go on to meet others. [`super::Outcome::meets`] says where the threads of a branch meet.
//!
//! * A side that is at the rpc already is not pushed: its threads are in a group.
//! * If the branch's rpc is the top's, there is no new group; and if nothing is pushed then, no level.
//! * An rpc is a pc at a call depth, or, of a branch whose sides return, wherever the first of them returns to, one depth less.
//!
//! Each level parts the top's threads strictly, so `lanes - 1` levels a warp are always enough. With fewer ([`Shape::levels`])
//! a branch that finds none left is refused, and the core stops with a fault: memory for what a program is not expected to
//! need would cost more than it saves.
//!
//! | turn | what follows |
//! |---|---|
//! | outcome | the top moves; parts (a level is pushed); or reaches its rpc or is empty: the warp is *popping* |
//! | pop | a level's sibling is the top and is steered; or its group is, and is steered unless it has to pop again |
//! | start | the new threads are the top, over no level |
//! | wake | as an outcome that does not move the top |
//! | fetch | reads the head of a popping warp |
//!
//! An outcome always has its turn; then a pop, a start, a wake, a fetch. An outcome reads the head of its levels along
//! with it, so that the first pop can follow in the next cycle.
//!
//! Whatever it is told about meeting, every thread does what its program says: threads become one path only at one pc.
//!
//! What it does not do: siblings never run before the top has reached its rpc. So a barrier that the top reaches while other
//! threads of its warp live below is refused, and locks between threads of a warp can wait for ever. It cannot replay a memory
//! access for a part of its threads (`Replay::Split`).

use super::{Events, Refused, Steer, Stop, UnitIn, UnitOut, assume_legal, depth_after, hold, kind};
use crate::isa::cause;
use crate::shape::Shape;
use heddle_hdl::*;

/// Where threads meet.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Rpc<T> {
    /// 1 bit: nowhere, if it is 0.
    pub valid: T,
    /// 1 bit: where the function returns to, at one depth less. `known`: `pc` is right; it is not before the first return.
    pub returns: T,
    pub known: T,
    pub pc: T,
    /// Call depth of the branch.
    pub depth: T,
}

/// What runs.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Top<T> {
    pub pc: T,
    pub depth: T,
    pub mask: T,
    pub rpc: Rpc<T>,
}

/// What a branch has left. At least one of the two is valid.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Level<T> {
    pub sibling: Sibling<T>,
    pub group: Group<T>,
}

/// The side that has not run; its rpc is the top's.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Sibling<T> {
    pub valid: T,
    pub pc: T,
    pub depth: T,
    pub mask: T,
}

/// Those that meet at the top's rpc, and where they go on to meet others.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Group<T> {
    pub valid: T,
    pub mask: T,
    pub rpc: Rpc<T>,
}

/// A read that is done.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Read<T> {
    valid: T,
    at: T,
}

impl Top<Width> {
    pub fn shape(s: &Shape) -> Top<Width> {
        Top { pc: s.pc_bits(), depth: s.depth_bits, mask: s.lanes, rpc: Rpc::shape(s) }
    }
}

impl Level<Width> {
    pub fn shape(s: &Shape) -> Level<Width> {
        Level { sibling: Sibling::shape(s), group: Group::shape(s) }
    }
}

impl Rpc<Width> {
    pub fn shape(s: &Shape) -> Rpc<Width> {
        Rpc { valid: 1, returns: 1, known: 1, pc: s.pc_bits(), depth: s.depth_bits }
    }
}

impl Sibling<Width> {
    pub fn shape(s: &Shape) -> Sibling<Width> {
        Sibling { valid: 1, pc: s.pc_bits(), depth: s.depth_bits, mask: s.lanes }
    }
}

impl Group<Width> {
    pub fn shape(s: &Shape) -> Group<Width> {
        Group { valid: 1, mask: s.lanes, rpc: Rpc::shape(s) }
    }
}

impl Rpc<Signal> {
    /// Whether threads at this pc and depth have reached it.
    pub(super) fn reached(self, pc: Signal, depth: Signal) -> Signal {
        let level = self.returns.mux(depth + 1, depth).eq(self.depth);
        self.valid & level & (!self.known | pc.eq(self.pc))
    }

    /// The same, now that threads at `pc` have reached it.
    pub(super) fn found(self, reached: Signal, pc: Signal) -> Rpc<Signal> {
        Rpc { known: self.known | reached, pc: (reached & !self.known).mux(pc, self.pc), ..self }
    }
}

/// Levels of a warp.
pub fn levels(s: &Shape) -> u32 {
    s.levels.unwrap_or(s.lanes - 1).min(s.lanes - 1)
}

/// The stack unit of a shape.
pub fn stack(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    module("stack", UnitIn::shape(s), |m, i| described(m, s, i))
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> UnitOut<Signal> {
    m.doc("Divergence unit: a stack of reconvergence points.");
    let UnitIn { start, wake, outcome, .. } = i;
    let slot_bits = s.warp_bits();
    let count_bits = count_width(levels(s));
    let index_bits = index_width(levels(s));
    let live = m.reg("live", s.warps).reset(0u32);
    let parked = s.barriers.then(|| m.reg("waiting", s.warps).reset(0u32));
    let tops = m.memory("tops", Top::shape(s), slot_bits).style(MemoryStyle::Distributed);
    let threads = m.memory("threads", s.lanes, slot_bits).style(MemoryStyle::Distributed);
    let stops = m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, slot_bits).style(MemoryStyle::Distributed);
    let counts = m.memory("counts", count_bits, slot_bits).style(MemoryStyle::Distributed);
    let levels_held = (s.lanes > 1).then(|| m.memory("levels", Level::shape(s), index_bits + s.warps.ilog2()));
    let popping = m.reg("popping", s.warps).reset(0u32);
    let fetched = m.reg("fetched", Read { valid: 1, at: slot_bits }).reset_zero();

    // Whose turn it is.
    wire!(pops = fetched.q.valid & !outcome.valid);
    wire!(start_ready = !outcome.valid & !fetched.q.valid);
    wire!(starts = start.valid & start_ready);
    let wake_possible = m.lit(s.barriers, 1);
    wire!(wake_ready = start_ready & !start.valid & wake_possible);
    wire!(wakes = wake.valid & wake_ready);
    wire!(fetches = start_ready & !start.valid & !wakes & popping.q.any());
    let others =
        [(outcome.valid, outcome.slot), (fetched.q.valid, fetched.q.at), (start.valid, start.slot), (wakes, wake.slot)];
    wire!(slot = pick(others, popping.q.lowest_one().one_hot_index()));
    let at = slot.decode(s.warps);
    wire!(top = tops.read(slot));
    wire!(count = counts.read(slot).only_if(!starts));

    // Outcome and wake: the threads move, and part or meet.
    let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads meet") };
    wire!(taken_depth = depth_after(m, &outcome, top.depth));
    let (taken, rest) = (outcome.taken, outcome.rest);
    wire!(parts = outcome.valid & taken.mask.any() & rest.mask.any());
    let one = m.lit(1u32, 1);
    let branch = Rpc { valid: one, returns: meets.returns, known: !meets.returns, pc: meets.rpc, depth: top.depth };
    let same_place = top.rpc.returns & meets.returns | (!top.rpc.returns & !meets.returns & top.rpc.pc.eq(meets.rpc));
    wire!(same_group = top.rpc.valid & top.rpc.depth.eq(top.depth) & same_place);
    wire!(meeting = (parts & !same_group).mux(branch, top.rpc));
    wire!(taken_is_there = meeting.reached(taken.pc, taken_depth));
    wire!(rest_is_there = meeting.reached(rest.pc, top.depth));
    wire!(both_are_there = parts & taken_is_there & rest_is_there);
    wire!(goes_as_taken = taken.mask.any() & !(parts & taken_is_there & !rest_is_there));
    let here = Sibling { valid: one, pc: top.pc, depth: top.depth, mask: top.mask };
    let went = Sibling { valid: one, pc: taken.pc, depth: taken_depth, mask: taken.mask };
    let stayed = Sibling { valid: one, pc: rest.pc, depth: top.depth, mask: rest.mask };
    let side = outcome.valid.mux(goes_as_taken.mux(went, stayed), here);
    wire!(stay = taken.mask | rest.mask);
    wire!(moves = outcome.valid | wakes);
    wire!(waits = outcome.valid & outcome.kind.eq(kind::WAIT));
    // If both sides are at a place of their own, they go on together, on the way to the top's rpc.
    wire!(together = !parts | both_are_there);
    let on_the_way = (both_are_there & !same_group).mux(top.rpc, meeting);
    wire!(arrives = moves & !waits & together & on_the_way.reached(side.pc, side.depth));
    let found = on_the_way.found(arrives | (parts & taken_is_there), (parts & taken_is_there).mux(taken.pc, side.pc));
    let mask = outcome.valid.mux(together.mux(stay, side.mask), top.mask);
    let moved = Top { pc: side.pc, depth: side.depth, mask, rpc: found };
    wire!(ended = moves & !mask.any());

    // What a branch leaves.
    wire!(both_stay = parts & !taken_is_there & !rest_is_there);
    wire!(leaves = parts & !both_are_there & (!same_group | both_stay));
    let full = if levels(s) < s.lanes - 1 { leaves & count.eq(levels(s)) } else { m.lit(0u32, 1) };
    wire!(pushes = leaves & !full);
    let sibling = Sibling { valid: both_stay, ..stayed };
    let group = Group { valid: !same_group, mask: stay, rpc: top.rpc };
    let pushed = Level { sibling, group };

    // Pop: the sibling, else the group.
    wire!(remaining = threads.read(slot));
    let free = !(fetched.q.valid & outcome.valid);
    let head = levels_held.as_ref().map(|levels| {
        let address = |entry: Signal| {
            let entry = entry.slice(0, index_bits);
            if s.warps > 1 { cat(&[entry, slot]) } else { entry }
        };
        // After a pop of a group the next level below is read.
        wire!(next = count - 1 - pops.zext(count_bits));
        let head = levels.read_sync_if(free, address(next), Collision::Never);
        let spent = Level { sibling: Sibling { valid: !one, ..head.sibling }, ..head };
        let rewrites = pops & head.sibling.valid & head.group.valid;
        levels.write(pushes | rewrites, address(pushes.mux(count, count - 1)), pushes.mux(pushed, spent));
        head
    });
    let head = head.unwrap_or_else(|| m.zero(Level::shape(s)));
    let Sibling { pc, depth, mask, valid: to_sibling } = head.sibling;
    let sibling = Top { pc, depth, mask, rpc: top.rpc };
    let of_group = top.rpc.returns.mux(top.rpc.depth - 1, top.rpc.depth);
    let group_mask = head.group.mask & remaining;
    wire!(arrives_again = head.group.rpc.reached(top.rpc.pc, of_group));
    let rpc = head.group.rpc.found(arrives_again, top.rpc.pc);
    let group = Top { pc: top.rpc.pc, depth: of_group, mask: group_mask, rpc };
    wire!(popped = to_sibling.mux(sibling, group));
    wire!(consumed = pops & !(to_sibling & head.group.valid));

    // Where it goes.
    let begun = m.zero(Top::shape(s));
    let begun = Top { pc: start.pc, mask: start.mask, ..begun };
    let after = pick([(starts, begun), (pops, popped)], moved);
    let left = count + pushes.zext(count_bits) - consumed.zext(count_bits);
    wire!(pops_again = pops & !to_sibling & (arrives_again | !group_mask.any()) & left.any());
    wire!(must_pop = ((arrives | ended) & left.any()) | pops_again);
    wire!(updates = moves | pops | starts);
    tops.write(updates, slot, after);
    counts.write(outcome.valid | pops | starts, slot, left);
    let ahead =
        after.rpc.valid & after.rpc.known & after.rpc.returns.mux(after.depth + 1, after.depth).eq(after.rpc.depth);
    stops.write(updates, slot, Stop { valid: ahead, pc: after.rpc.pc });
    wire!(threads_after = starts.mux(start.mask, remaining & !(top.mask & !stay)));
    threads.write(outcome.valid | starts, slot, threads_after);
    wire!(ends = updates & !must_pop & !after.mask.any());
    live.next_if(updates, (live.q & !at) | at.only_if(!ends));
    popping.next_if(updates, (popping.q & !at) | at.only_if(must_pop));
    wire!(reads = free & (must_pop | fetches));
    fetched.next_if(free, Read { valid: reads, at: slot });
    // Threads on levels below never come.
    wire!(part_waits = waits & moved.mask.ne(threads_after));
    let waiting = parked.map_or(m.lit(0u32, s.warps), |parked| {
        parked.next_if(updates, (parked.q & !at) | at.only_if(waits & !part_waits));
        parked.q
    });
    let code = |c: u32| m.lit(c, cause::BITS);
    let cause = part_waits.mux(code(cause::BARRIER_OF_A_PART), code(cause::STACK_OVERFLOW));
    let refused = Some(Refused { valid: part_waits | full, cause });
    let steer = Steer { valid: updates & !must_pop & !waits & !ends, slot, pc: after.pc, replay: m.lit(0u32, 1) };

    // Checks.
    let ghost_live = m.memory("ghost_live", s.lanes, slot_bits);
    ghost_live.write(outcome.valid | starts, slot, threads_after);
    assume_legal(m, s, &i, (live.q, waiting), tops.read(outcome.slot).mask, (starts, wakes));
    m.assume("no_outcome_of_a_popping_slot", !(outcome.valid & popping.q.select(outcome.slot, 1)));
    let deepest = top.depth.all() & outcome.call & taken.mask.any();
    m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
    m.assert("a_push_has_room", !pushes | count.lt(levels(s)));
    if s.barriers {
        m.cover("part_of_a_warp_waits", part_waits);
    }
    if levels(s) < s.lanes - 1 {
        m.cover("no_level_is_left", full);
    }
    m.assert("pops_of_popping_slots", !pops | (popping.q.select(slot, 1) & count.any()));
    wire!(live_after = (pops | wakes).mux(ghost_live.read(slot), threads_after));
    let top_is_live = after.mask.any() & !(after.mask & !live_after).any();
    m.assert("the_top_has_live_threads", !steer.valid | top_is_live);
    m.assert("the_lowest_has_all_threads", !(steer.valid & !left.any()) | after.mask.eq(live_after));
    m.assert("a_sibling_is_apart", !(pops & to_sibling) | !(mask & top.mask).any());
    let of_the_group = !(top.mask & remaining & !head.group.mask).any();
    m.assert("the_top_is_of_its_group", !(pops & head.group.valid & !to_sibling) | of_the_group);
    m.assert("a_level_has_something", !pops | to_sibling | head.group.valid);
    m.assert("a_group_meets_somewhere", !(pops & !to_sibling & group_mask.any()) | top.rpc.known);
    m.cover("pops_a_sibling", pops & to_sibling);
    m.cover("pops_a_group", pops & !to_sibling);
    m.cover("pops_again", pops_again);
    m.cover("popped_head_waits", fetched.q.valid & outcome.valid);
    m.cover("fetches", fetches);
    m.cover("same_group", parts & same_group);
    m.cover("same_group_without_a_push", parts & same_group & !pushes);
    m.cover("one_side_is_there", parts & (taken_is_there ^ rest_is_there));
    m.cover("both_sides_are_there", both_are_there);
    m.cover("meets_where_it_returns", arrives & on_the_way.returns);
    m.cover("part_of_a_group_has_ended", pops & !to_sibling & (head.group.mask & !remaining).any());
    m.cover("a_whole_group_has_ended", pops & !to_sibling & !group_mask.any());
    m.cover("warp_ends", ends);

    wire!(put_off = ((start.valid | (wake.valid & wake_possible)) & !start_ready) | popping.q.any());
    let hold = hold(m, outcome.valid, |_| put_off);
    m.probe("updates", updates);
    m.probe("slot", slot);
    let wide = s.lane_bits() + 1;
    let none = m.lit(0u32, 1);
    let events = Events {
        merges: (pops & !to_sibling & group_mask.any()).zext(2),
        insert: none,
        extract: none,
        swap: none,
        levels: left.zext(wide).only_if(outcome.valid),
        paths: (left.zext(wide) + m.lit(1u32, wide)).only_if(outcome.valid & !ends),
    };
    UnitOut {
        start_ready,
        wake_ready,
        live: live.q,
        waiting,
        stop: stops.read(i.decode_slot),
        mask: tops.read(i.issue_slot).mask,
        steer,
        hold,
        refused,
        dual: None,
        events,
    }
}

#[cfg(test)]
mod tests;

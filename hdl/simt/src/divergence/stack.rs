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
//! With [`Shape::likely`], threads also meet at likely-convergence points (§4): a branch that leaves both sides running makes its
//! level gather those who come to its point. They pop as at an rpc, and run on together when the sibling has run, towards the
//! rpc that they had. Branches of the same group with the same point or none inherit it (the level is the paper's LPos); a new
//! group has none, since it meets first.
//!
//! * If nobody has gathered when the sibling goes, nobody is to come either: it has the point outside of the level.
//! * If all of the group have gathered, nobody waits at its rpc: they have the rpc and the point outside.
//!
//! Each level parts the top's threads strictly, so `lanes - 1` levels a warp are always enough. With fewer ([`Shape::levels`])
//! a branch that finds none left is refused, and the core stops with a fault: memory for what a program is not expected to
//! need would cost more than it saves.
//!
//! | turn | what follows |
//! |---|---|
//! | outcome | the top moves; parts (a level is pushed); or is where it meets others, or is empty: the warp is *popping* |
//! | pop | a level's sibling is the top; or those at its likely point; or its group. It is steered unless it has to pop again |
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
use crate::reconvergence::Reconvergence;
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

/// Where threads probably meet before their rpc, at the rpc's call depth.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Likely<T> {
    /// 1 bit: nowhere, if it is 0.
    pub valid: T,
    pub pc: T,
    /// The level that gathers them.
    pub level: T,
}

/// What runs.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Top<T> {
    pub pc: T,
    pub depth: T,
    pub mask: T,
    pub rpc: Rpc<T>,
    /// With [`Shape::likely`].
    pub likely: Option<Likely<T>>,
}

/// What a branch has left. At least one of the three is valid.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Level<T> {
    pub sibling: Sibling<T>,
    pub group: Group<T>,
    /// With [`Shape::likely`].
    pub likely: Option<Gathering<T>>,
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

/// Those that have come to the likely-convergence point which the top has while this level is the uppermost; there are some
/// when the sibling has run.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Gathering<T> {
    /// 1 bit.
    pub valid: T,
    /// The point, if any, of the threads that the level parted. It is of a group outside of this level's, if that has one.
    pub outer: Likely<T>,
}

/// What a popping warp becomes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Pop<T> {
    /// Its uppermost level.
    head: Level<T>,
    top: Top<T>,
    /// The likely point outside of that level.
    outer: Likely<T>,
    to_sibling: T,
    to_point: T,
    /// Out of the level's group.
    to_outer: T,
    /// Something is left of the level.
    stays: T,
    /// The new top is at its rpc, too.
    arrives_again: T,
}

/// A read that is done.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Read<T> {
    valid: T,
    at: T,
}

impl Likely<Width> {
    fn shape(s: &Shape) -> Likely<Width> {
        Likely { valid: 1, pc: s.pc_bits(), level: index_width(levels(s)) }
    }
}

impl Top<Width> {
    pub fn shape(s: &Shape) -> Top<Width> {
        let likely = has_likely(s).then(|| Likely::shape(s));
        Top { pc: s.pc_bits(), depth: s.depth_bits, mask: s.lanes, rpc: Rpc::shape(s), likely }
    }
}

impl Level<Width> {
    pub fn shape(s: &Shape) -> Level<Width> {
        let likely = has_likely(s).then(|| Gathering { valid: 1, outer: Likely::shape(s) });
        Level { sibling: Sibling::shape(s), group: Group::shape(s), likely }
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

impl Pop<Width> {
    fn shape(s: &Shape) -> Pop<Width> {
        let (head, top, outer) = (Level::shape(s), Top::shape(s), Likely::shape(s));
        Pop { head, top, outer, to_sibling: 1, to_point: 1, to_outer: 1, stays: 1, arrives_again: 1 }
    }
}

impl Rpc<Signal> {
    /// Where the threads of a branch at this depth meet.
    pub(super) fn of_branch(meets: Reconvergence<Signal>, depth: Signal) -> Rpc<Signal> {
        let Reconvergence { rpc: pc, returns, .. } = meets;
        Rpc { valid: returns.literal(1u32), returns, known: !returns, pc, depth }
    }

    /// Whether the threads of a branch at this depth meet here, too.
    pub(super) fn is_of(self, meets: Reconvergence<Signal>, depth: Signal) -> Signal {
        let same_pc = !self.returns & !meets.returns & self.pc.eq(meets.rpc);
        self.valid & self.depth.eq(depth) & (self.returns & meets.returns | same_pc)
    }

    /// Whether threads at this pc and depth have reached it.
    pub(super) fn reached(self, pc: Signal, depth: Signal) -> Signal {
        let level = self.returns.mux(depth + 1, depth).eq(self.depth);
        self.valid & level & (!self.known | pc.eq(self.pc))
    }

    /// The same, now that threads at `pc` have reached it.
    pub(super) fn found(self, reached: Signal, pc: Signal) -> Rpc<Signal> {
        Rpc { known: self.known | reached, pc: (reached & !self.known).mux(pc, self.pc), ..self }
    }

    /// Whether threads at this depth come to it by going on.
    pub(super) fn is_ahead(self, depth: Signal) -> Signal {
        self.valid & self.known & self.returns.mux(depth + 1, depth).eq(self.depth)
    }
}

impl Likely<Signal> {
    /// The point, if `keeps`; else none.
    fn only_if(self, keeps: Signal) -> Likely<Signal> {
        Likely { valid: self.valid & keeps, ..self }
    }
}

/// Levels of a warp.
pub fn levels(s: &Shape) -> u32 {
    s.levels.unwrap_or(s.lanes - 1).min(s.lanes - 1)
}

/// Whether there are branches that part, and likely points for them.
pub fn has_likely(s: &Shape) -> bool {
    s.likely && s.lanes > 1
}

/// What proofs look at.
struct Inside {
    live: Signal,
    waiting: Signal,
    popping: Signal,
    tops: Mem<Top<Width>>,
    threads: Mem<Width>,
    counts: Mem<Width>,
    levels: Option<Mem<Level<Width>>>,
    gathered: Option<Mem<Width>>,
    fetched: Read<Signal>,
    head: Level<Signal>,
    ghost_live: Mem<Width>,
    outcomes: Signal,
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
    let parked = s.barriers.then(|| m.reg("waiting", s.warps).reset(0u32));
    let tops = m.memory("tops", Top::shape(s), slot_bits).style(MemoryStyle::Distributed);
    let threads = m.memory("threads", s.lanes, slot_bits).style(MemoryStyle::Distributed);
    let stops = m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, slot_bits).style(MemoryStyle::Distributed);
    let counts = m.memory("counts", count_bits, slot_bits).style(MemoryStyle::Distributed);
    let entry_bits = index_bits + s.warps.ilog2();
    let levels_held = (s.lanes > 1).then(|| m.memory("levels", Level::shape(s), entry_bits));
    let distributed = |name| m.memory(name, s.lanes, entry_bits).style(MemoryStyle::Distributed);
    let gathered = has_likely(s).then(|| distributed("gathered"));
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

    let address = |entry: Signal| {
        let entry = entry.slice(0, index_bits);
        if s.warps > 1 { cat(&[entry, slot]) } else { entry }
    };

    // Outcome and wake: the threads move, and part or meet.
    let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads meet") };
    wire!(taken_depth = depth_after(m, &outcome, top.depth));
    let (taken, rest) = (outcome.taken, outcome.rest);
    wire!(apart = taken.pc.ne(rest.pc) | taken_depth.ne(top.depth));
    wire!(parts = outcome.valid & taken.mask.any() & rest.mask.any() & apart);
    let (never, one) = (m.lit(0u32, 1), m.lit(1u32, 1));
    wire!(same_group = top.rpc.is_of(meets, top.depth));
    wire!(meeting = (parts & !same_group).mux(Rpc::of_branch(meets, top.depth), top.rpc));
    wire!(taken_is_there = parts & meeting.reached(taken.pc, taken_depth));
    wire!(rest_is_there = parts & meeting.reached(rest.pc, top.depth));
    wire!(both_stay = parts & !taken_is_there & !rest_is_there);

    // What a branch leaves. A side that is at the likely point goes there first.
    wire!(leaves = parts & (!same_group | both_stay));
    let full = if levels(s) < s.lanes - 1 { leaves & count.eq(levels(s)) } else { never };
    wire!(pushes = leaves & !full);
    let nowhere = m.zero(Likely::shape(s));
    let point = top.likely.unwrap_or(nowhere);
    let told = Likely { valid: one, pc: meets.likely_pc, level: count.slice(0, index_bits) };
    let same_point = same_group & point.valid & point.pc.eq(meets.likely_pc);
    wire!(gathers = both_stay & pushes & meets.likely & !same_point & m.lit(has_likely(s), 1));
    let towards = gathers.mux(told, point.only_if(!parts | same_group));
    wire!(rest_first = both_stay & towards.valid & rest.pc.eq(towards.pc));
    wire!(goes_as_taken = taken.mask.any() & !taken_is_there & !rest_first);
    let here = Sibling { valid: one, pc: top.pc, depth: top.depth, mask: top.mask };
    let went = Sibling { valid: both_stay, pc: taken.pc, depth: taken_depth, mask: taken.mask };
    let stayed = Sibling { valid: both_stay, pc: rest.pc, depth: top.depth, mask: rest.mask };
    let side = outcome.valid.mux(goes_as_taken.mux(went, stayed), here);
    wire!(stay = taken.mask | rest.mask);
    let group = Group { valid: !same_group, mask: stay, rpc: top.rpc };
    let likely = top.likely.map(|outer| Gathering { valid: gathers, outer });
    let pushed = Level { sibling: rest_first.mux(went, stayed), group, likely };

    wire!(moves = outcome.valid | wakes);
    wire!(waits = outcome.valid & outcome.kind.eq(kind::WAIT));
    wire!(arrives = moves & !waits & !parts & top.rpc.reached(side.pc, side.depth));
    let found = meeting.found(arrives | taken_is_there, taken_is_there.mux(taken.pc, side.pc));
    let mask = outcome.valid.mux(parts.mux(side.mask, stay), top.mask);
    let moved = Top { pc: side.pc, depth: side.depth, mask, rpc: found, likely: top.likely.map(|_| towards) };
    wire!(ended = moves & !mask.any());

    // Pop: the sibling, else those at the likely point, else the group. The level stays until nothing is left of it; if
    // nobody is at the likely point when the sibling goes, the sibling has none to meet there.
    wire!(remaining = threads.read(slot));
    let free = !(fetched.q.valid & outcome.valid);
    let popped = if let Some(levels) = &levels_held {
        // After the last pop of a level the next one below is read.
        wire!(next = count - 1 - pops.zext(count_bits));
        let head = levels.read_sync_if(free, address(next), Collision::Never);
        let (sibling, group) = (head.sibling, head.group);
        let Gathering { valid: gathering, outer } = head.likely.unwrap_or(Gathering { valid: never, outer: nowhere });
        let at_point = gathered.as_ref().map_or(m.lit(0u32, s.lanes), |gathered| gathered.read(address(count - 1)));
        wire!(some_gathered = gathering & at_point.any());
        wire!(to_sibling = sibling.valid);
        wire!(to_point = !to_sibling & gathering);
        wire!(of_group = group.mask & remaining);
        wire!(to_outer = !to_sibling & (!gathering | (group.valid & at_point.eq(of_group))));
        wire!(group_stays = group.valid & !to_outer);
        wire!(gathering_stays = to_sibling & some_gathered);
        wire!(stays = group_stays | gathering_stays);
        let likely = head.likely.map(|gathering| Gathering { valid: gathering_stays, ..gathering });
        let spent = Level { sibling: Sibling { valid: never, ..sibling }, likely, ..head };
        levels.write(pushes | (pops & stays), address(pushes.mux(count, count - 1)), pushes.mux(pushed, spent));

        let group_depth = top.rpc.returns.mux(top.rpc.depth - 1, top.rpc.depth);
        let others = Sibling { pc: top.rpc.pc, depth: group_depth, mask: of_group, ..sibling };
        let likely_ones = Sibling { pc: point.pc, depth: top.rpc.depth, mask: at_point, ..sibling };
        let Sibling { pc, depth, mask, .. } = pick([(to_sibling, sibling), (to_point, likely_ones)], others);
        wire!(arrives_again = to_outer & group.rpc.reached(pc, depth));
        let rpc = to_outer.mux(group.rpc.found(arrives_again, pc), top.rpc);
        let keeps = to_sibling & (!gathering | some_gathered);
        let likely = head.likely.map(|_| keeps.mux(point, outer.only_if(!group_stays)));
        let top = Top { pc, depth, mask, rpc, likely };
        Pop { head, top, outer, to_sibling, to_point, to_outer, stays, arrives_again }
    } else {
        m.zero(Pop::shape(s))
    };
    let Pop { head, to_sibling, to_point, to_outer, arrives_again, .. } = popped;
    wire!(consumed = pops & !popped.stays);

    // Where it goes.
    let begun = m.zero(Top::shape(s));
    let begun = Top { pc: start.pc, mask: start.mask, ..begun };
    let comes = pick([(starts, begun), (pops, popped.top)], moved);
    let next_point = comes.likely.unwrap_or(nowhere);
    let at_point = next_point.valid & comes.pc.eq(next_point.pc) & comes.depth.eq(comes.rpc.depth);
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
    stops.write(updates, slot, stop_of(after));
    wire!(threads_after = starts.mux(start.mask, remaining & !(top.mask & !stay)));
    threads.write(outcome.valid | starts, slot, threads_after);
    wire!(ends = updates & !must_pop & !after.mask.any());
    live.next_if(updates, (live.q & !at) | at.only_if(!ends));
    popping.next_if(updates, (popping.q & !at) | at.only_if(must_pop));
    // A level that is being written is read later.
    wire!(reads = free & ((must_pop & !pushes) | fetches));
    fetched.next_if(free, Read { valid: reads, at: slot });
    // Threads on levels below never come.
    wire!(part_waits = waits & (rest.mask.any() | moved.mask.ne(threads_after)));
    let waiting = parked.map_or(m.lit(0u32, s.warps), |parked| {
        parked.next_if(updates, (parked.q & !at) | at.only_if(waits & !part_waits));
        parked.q
    });
    let code = |c: u32| m.lit(c, cause::BITS);
    let cause = part_waits.mux(code(cause::BARRIER_OF_A_PART), code(cause::STACK_OVERFLOW));
    let refused = Some(Refused { valid: part_waits | full, cause });
    let steer = Steer { valid: updates & !must_pop & !waits & !ends, slot, pc: after.pc, replay: never };

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
    m.assert("what_stays_does_not_pop", !(pops_again & popped.stays));
    m.assert("sides_that_are_there_are_one", !(taken_is_there & rest_is_there));
    let sibling = head.sibling.mask;
    m.assert("a_sibling_is_apart", !(pops & to_sibling) | !(sibling & top.mask).any());
    let of_the_group = !(top.mask & remaining & !head.group.mask).any();
    m.assert("the_top_is_of_its_group", !(pops & head.group.valid & !to_sibling) | of_the_group);
    m.assert("a_level_has_something", !pops | to_sibling | to_point | head.group.valid);
    m.assert("a_group_meets_somewhere", !(pops & to_outer & !to_point & comes.mask.any()) | top.rpc.known);
    m.cover("pops_a_sibling", pops & to_sibling);
    m.cover("pops_a_group", pops & to_outer & !to_point);
    m.cover("pops_again", pops_again);
    m.cover("popped_head_waits", fetched.q.valid & outcome.valid);
    m.cover("fetches", fetches);
    m.cover("same_group", parts & same_group);
    m.cover("same_group_without_a_push", parts & same_group & !pushes);
    m.cover("one_side_is_there", taken_is_there | rest_is_there);
    m.cover("sides_go_to_one_place", outcome.valid & taken.mask.any() & rest.mask.any() & !apart);
    m.cover("meets_where_it_returns", arrives & top.rpc.returns);
    m.cover("part_of_a_group_has_ended", pops & !to_sibling & (head.group.mask & !remaining).any());
    m.cover("a_whole_group_has_ended", pops & to_outer & !comes.mask.any());
    m.cover("warp_ends", ends);
    if has_likely(s) {
        let gathering = head.likely.map_or(never, |gathering| gathering.valid);
        let its_own = point.valid & point.level.eq((count - 1).slice(0, index_bits));
        m.assert("the_top_goes_to_the_point_of_its_level", !(pops & gathering) | its_own);
        m.assert("those_at_a_point_are_some", !(pops & to_point) | comes.mask.any());
        m.assert("those_at_a_point_are_apart", !(pops & to_point) | !(comes.mask & top.mask).any());
        m.assert("a_point_has_its_level", !joins | next_point.level.zext(count_bits).lt(left));
        m.cover("gathers", gathers);
        m.cover("same_point", both_stay & meets.likely & same_point);
        m.cover("a_side_is_at_the_point", pushes & joins);
        m.cover("the_rest_is_at_the_point", rest_first);
        m.cover("joins_after_a_pop", pops & joins);
        m.cover("pops_those_at_a_point", pops & to_point & !to_outer);
        m.cover("all_are_at_the_point", pops & to_point & to_outer & head.group.valid);
        m.cover("nobody_is_at_the_point", pops & to_sibling & gathering & !popped.stays);
    }

    wire!(put_off = ((start.valid | (wake.valid & wake_possible)) & !start_ready) | popping.q.any());
    let (hold, outcomes) = hold(m, outcome.valid, |_| put_off);
    m.probe("updates", updates);
    m.probe("slot", slot);
    let wide = s.lane_bits() + 1;
    let events = Events {
        merges: (pops & !to_sibling & comes.mask.any()).zext(2),
        insert: never,
        extract: never,
        swap: never,
        levels: left.zext(wide).only_if(outcome.valid),
        paths: (left.zext(wide) + m.lit(1u32, wide)).only_if(outcome.valid & !ends),
    };
    let out = UnitOut {
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
    };
    let (live, popping, fetched) = (live.q, popping.q, fetched.q);
    let inside = Inside {
        live,
        waiting,
        popping,
        tops,
        threads,
        counts,
        levels: levels_held,
        gathered,
        fetched,
        head,
        ghost_live,
        outcomes,
    };
    (out, inside)
}

/// Where a top comes to by going on: its rpc, or before it the likely point.
fn stop_of(top: Top<Signal>) -> Stop<Signal> {
    let Top { pc, depth, rpc, .. } = top;
    let meets = rpc.is_ahead(depth);
    top.likely.map_or(Stop { valid: meets, pc: rpc.pc }, |likely| {
        let may_join = likely.valid & depth.eq(rpc.depth) & pc.lt(likely.pc);
        let first = may_join & !(meets & pc.lt(rpc.pc) & rpc.pc.lt(likely.pc));
        Stop { valid: meets | may_join, pc: first.mux(likely.pc, rpc.pc) }
    })
}

pub mod proof;
#[cfg(test)]
mod tests;

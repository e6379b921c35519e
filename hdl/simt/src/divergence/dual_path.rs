//! The dual-path divergence unit: a stack whose entries hold both sides of a branch, which run side by side.
//!
//! `dual-path-execution.txt` §3.1. Of each warp the *top* has two paths, left and right, each a slot of the pipeline of its own, and
//! the reconvergence place where both meet, the *rpc* ([`super::levels::Rpc`]). Below lie levels, one for each path of a top that
//! parted since: the *sibling*, the other path of that top, suspended where its next instruction had not issued yet; and the
//! *group*: all threads of the path that parted, where they go on to meet the sibling, and on which side.
//!
//! * A side that is at the rpc already does not run: its threads are in a group. Sides that go to one place do not part.
//! * If the branch's rpc is the top's, there is no new group. Then a path that parts puts its other side into the free place of
//!   the top, if there is one, and nothing is pushed.
//! * A path that has come to the rpc is no more; when neither is left, the level above them is popped.
//!
//! Each level belongs to a path with fewer threads than the level below it, so `lanes - 1` levels are always enough. With
//! fewer ([`Shape::levels`]), a branch that finds none left is refused.
//!
//! | turn | what follows |
//! |---|---|
//! | outcome | the path moves; or parts (its sibling is flushed, a level pushed); or reaches the rpc or ends |
//! | pop | the group and the sibling of a level are the top |
//! | start | the new threads are the left path, over no level |
//! | wake | as an outcome that does not move the path |
//! | send | a path that came to the top beside another is steered |
//! | fetch | reads the head of a popping warp |
//!
//! An outcome always has its turn; then a pop, a start, a wake, and a send or a fetch. Of two paths that come to the top at once, one
//! is steered at once, the other *owed*. Whom a send or a fetch is for is chosen the cycle before ([`Due`]): it decides which top is
//! read, moved and written.
//!
//! The pipeline sees to it that at most one control instruction of a warp is unresolved, and none while [`Dual::busy`]. The
//! scoreboard is [`crate::scoreboard::dual`]; `docs/dual-path.md`.
//!
//! Under [`Replay::Split`], an access to memory that serves only some threads parts the path like a branch: those served go on as the
//! path, the others are the other side, which issues the access again, as far as the side table says (§7.2).
//!
//! With [`Shape::path_forwarding`], the sibling of the uppermost level comes up where a side of the top is free ([`forwarding`]).
//!
//! What it does not do: like [`super::stack`], it refuses a barrier that only a part of a warp reaches.

use self::forwarding::{Before, Forwarded, Forwarding};
use super::inspect::{Path, State};
use super::levels::{Found, Group, Rpc, Sibling, levels};
use super::{
    Capabilities, Events, Mechanism, MoreOut, PathsChange, Refused, Steer, Stop, TwoPaths, UnitIn, UnitOut,
    assume_legal, by_slot, depth_after, hold, kind, side_of, warp_of,
};
use crate::isa::cause;
use crate::proof::Proof;
use crate::shape::{Replay, Shape};
use heddle_hdl::*;

/// What runs: left and right, and where they meet.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Top<T> {
    pub left: Sibling<T>,
    pub right: Sibling<T>,
    pub rpc: Rpc<T>,
    /// With [`Shape::path_forwarding`].
    #[width(Forwarded::shape(s))]
    pub forwarded: Option<Forwarded<T>>,
}

/// What a path that parted has left. At least one of `sibling` and `group` is valid.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Level<T> {
    pub sibling: Sibling<T>,
    pub group: Group<T>,
    /// 1 bit: the group is the right path.
    pub side: T,
    /// With [`Shape::path_forwarding`].
    #[width(Before::shape(s))]
    pub before: Option<Before<T>>,
}

/// A read that is done.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Read<T> {
    valid: T,
    at: T,
}

/// What is to be sent or fetched next, if it is owed that or popping then. A popping warp is its left slot.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Due<T> {
    valid: T,
    slot: T,
}

/// What decode must know of a warp: the rpc, and for which sides it lies ahead.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Stops<T> {
    left: T,
    right: T,
    #[width(s.pc_bits())]
    pc: T,
    /// With [`Shape::path_forwarding`], the right side's.
    #[width(Forwarded::shape(s).map(|_| s.pc_bits()))]
    right_pc: Option<T>,
}

impl Top<Signal> {
    /// The path of a side, and the other.
    fn of(self, right: Signal) -> (Sibling<Signal>, Sibling<Signal>) {
        (right.mux(self.right, self.left), right.mux(self.left, self.right))
    }

    /// A top of a path on a side, and the other.
    fn with(right: Signal, own: Sibling<Signal>, other: Sibling<Signal>, rpc: Rpc<Signal>) -> Top<Signal> {
        Top { left: right.mux(other, own), right: right.mux(own, other), rpc, forwarded: None }
    }
}

/// The mechanism: a stack per warp with both sides of a branch.
pub struct DualPath;

impl Mechanism for DualPath {
    fn name(&self) -> &'static str {
        "dual-path"
    }

    fn number(&self) -> u8 {
        3
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { reconverges: true, two_paths: true, ..Capabilities::NONE }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        dual_path(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// Both paths of the top; then level by level the path that has not run on, and the threads that have come to where they meet.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
        let slot = u64::from(warp);
        if !state.register(s.warps, "live").bit(warp) {
            return Vec::new();
        }
        let waits = s.barriers && state.register(s.warps, "waiting").bit(warp);
        let mut found = Found::new(&state.word(s.lanes, "threads", slot));
        let Top { left, right, mut rpc, forwarded } = state.word(Top::shape(s), "tops", slot);
        found.add_sibling("left", &left, waits);
        found.add_sibling("right", &right, waits);
        // The sibling of the uppermost level: whether it has come up, and where it meets others.
        let (mut taken, mut its) = forwarded.map_or((false, None), |f| (f.taken == 1, Some(f.rpc)));
        // A broken core may count more than there are.
        let count = state.word(count_width(levels(s)), "counts", slot).low_u64().min(levels(s).into());
        for k in (0..count).rev() {
            let at = slot << index_width(levels(s)) | k;
            let Level { sibling, group, before, .. } = state.word(Level::shape(s), "levels", at);
            if !taken {
                found.add_sibling(&format!("level[{k}]"), &sibling, false);
            }
            let mut outer = group.rpc;
            if let (Some(before), Some(its)) = (before, &mut its) {
                taken = before.taken == 1;
                if before.sibling == 0 {
                    std::mem::swap(&mut outer, its);
                }
            }
            if group.valid == 1 {
                found.add(&format!("met[{k}]"), rpc.place(), group.mask.low_u64(), false);
                rpc = outer;
            }
        }
        found.rest_at(&rpc)
    }
}

/// The dual-path unit of a shape.
pub fn dual_path(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    module("dual_path", UnitIn::shape(s), |m, i| described(m, s, i).0)
}

/// What a proof must see of the unit.
struct Inside {
    live: Signal,
    waiting: Signal,
    popping: Signal,
    owed: Signal,
    active: Signal,
    replays: Signal,
    tops: Mem<Top<Width>>,
    threads: Mem<Width>,
    stops: Mem<Stops<Width>>,
    counts: Mem<Width>,
    levels: Option<Mem<Level<Width>>>,
    /// The level that was read, and of which warp it is.
    fetched: Read<Signal>,
    due: Due<Signal>,
    head: Level<Signal>,
    /// With path forwarding, the warps with room for a sibling, and the one that was read for it.
    forwarding: Option<(Signal, Read<Signal>)>,
    ghost_live: Mem<Width>,
    /// Outcomes towards `hold`.
    outcomes: Signal,
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a stack of reconvergence points whose entries hold both sides of a branch.");
    let UnitIn { start, wake, outcome, .. } = i;
    let warp_bits = s.warp_bits();
    let count_bits = count_width(levels(s));
    let index_bits = index_width(levels(s));
    let live = m.reg("live", s.warps).reset(0u32);
    let parked = s.barriers.then(|| m.reg("waiting", s.warps).reset(0u32));
    let tops = m.memory("tops", Top::shape(s), warp_bits).style(MemoryStyle::Distributed);
    let threads = m.memory("threads", s.lanes, warp_bits).style(MemoryStyle::Distributed);
    let stops = m.memory("stops", Stops::shape(s), warp_bits).style(MemoryStyle::Distributed);
    let counts = m.memory("counts", count_bits, warp_bits).style(MemoryStyle::Distributed);
    let levels_held = (s.lanes > 1).then(|| m.memory("levels", Level::shape(s), index_bits + s.warps.ilog2()));
    let popping = m.reg("popping", s.warps).reset(0u32);
    let owed = m.reg("owed", s.slots()).reset(0u32);
    let active = m.reg("active", s.slots()).reset(0u32);
    // The path is to be steered to an access that left its threads unserved.
    let replays = (s.replay == Replay::Split).then(|| m.reg("replays", s.slots()).reset(0u32));
    let fetched = m.reg("fetched", Read { valid: 1, at: warp_bits }).reset_zero();
    let due = m.reg("due", Due { valid: 1, slot: s.slot_bits() }).reset_zero();
    let forwarding = Forwarding::new(s, m);

    // Whose turn it is.
    wire!(pops = fetched.q.valid & !outcome.valid);
    wire!(start_ready = !outcome.valid & !fetched.q.valid);
    wire!(starts = start.valid & start_ready);
    let wake_possible = m.lit(s.barriers, 1);
    wire!(wake_ready = start_ready & !start.valid & wake_possible);
    wire!(wakes = wake.valid & wake_ready);
    wire!(waits_for_a_turn = owed.q | by_slot(popping.q, m.lit(0u32, s.warps)));
    wire!(due_turn = start_ready & !start.valid & !wakes);
    let due_warp = warp_of(s, due.q.slot);
    wire!(sends = due_turn & due.q.valid & owed.q.select(due.q.slot, 1));
    wire!(fetches = due_turn & due.q.valid & popping.q.select(due_warp, 1));
    let turn = forwarding.as_ref().map(|forwarding| {
        let free = due_turn & !due.q.valid & !waits_for_a_turn.any();
        forwarding.turn(m, free)
    });
    let takes = turn.map(|turn| turn.takes);
    let others = [
        (outcome.valid, warp_of(s, outcome.slot)),
        (fetched.q.valid, fetched.q.at),
        (start.valid, start.slot),
        (wakes, wake.slot),
    ];
    wire!(warp = pick(others, turn.map_or(due_warp, |turn| due.q.valid.mux(due_warp, turn.warp))));
    let at = warp.decode(s.warps);
    wire!(top = tops.read(warp));
    wire!(count = counts.read(warp).only_if(!starts));
    let one = m.lit(1u32, 1);
    let none = m.zero(Sibling::shape(s));

    // Outcome and wake: the threads of a path move, and part or meet.
    let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads meet") };
    wire!(side = outcome.valid.mux(side_of(s, outcome.slot), !top.left.valid));
    let (own, sibling) = top.of(side);
    wire!(taken_depth = depth_after(outcome.call, outcome.ret, own.depth));
    let (taken, rest) = (outcome.taken, outcome.rest);
    wire!(apart = taken.pc.ne(rest.pc) | taken_depth.ne(own.depth));
    wire!(parts = outcome.valid & taken.mask.any() & rest.mask.any() & apart);
    let own_rpc = top.rpc_of(side);
    wire!(same_group = own_rpc.is_of(meets, own.depth));
    wire!(meeting = (parts & !same_group).mux(Rpc::of_branch(meets, own.depth), own_rpc));
    wire!(taken_is_there = parts & meeting.reached(taken.pc, taken_depth));
    wire!(rest_is_there = parts & meeting.reached(rest.pc, own.depth));
    wire!(both_go = parts & !taken_is_there & !rest_is_there);
    wire!(goes_as_taken = taken.mask.any() & !taken_is_there);
    let here = Sibling { valid: one, ..own };
    let went = Sibling { valid: one, pc: taken.pc, depth: taken_depth, mask: taken.mask };
    let stayed = Sibling { valid: one, pc: rest.pc, depth: own.depth, mask: rest.mask };
    let goes = outcome.valid.mux(goes_as_taken.mux(went, stayed), here);
    wire!(stay = taken.mask | rest.mask);
    wire!(moves = outcome.valid | wakes);
    wire!(waits = outcome.valid & outcome.kind.eq(kind::WAIT));
    wire!(arrives = moves & !waits & !parts & own_rpc.reached(goes.pc, goes.depth));
    let found = meeting.found(arrives | taken_is_there, taken_is_there.mux(taken.pc, goes.pc));
    let mask = outcome.valid.mux(parts.mux(goes.mask, stay), own.mask);
    wire!(goes_on = moves & !arrives & mask.any());
    let moved = Sibling { valid: goes_on, mask, ..goes };

    // What a branch leaves, and where the sibling is.
    wire!(leaves = parts & (!same_group | (both_go & sibling.valid)));
    let full = if levels(s) < s.lanes - 1 { leaves & count.eq(levels(s)) } else { m.lit(0u32, 1) };
    wire!(pushes = leaves & !full);
    let Some(unissued) = i.unissued else { unreachable!("the pipeline says where the sibling is") };
    let sibling_slot = join(s, warp, !side);
    let suspended = Sibling { pc: unissued.valid.mux(unissued.pc, sibling.pc), ..sibling };
    let (group, before) = forwarding::left_by(&top, side, stay, same_group);
    let pushed = Level { sibling: suspended, group, side, before };
    let beside = both_go.mux(stayed, pushes.mux(none, sibling));
    wire!(changes = both_go | pushes);
    let moved = forwarding::moved(&top, side, (pushes, !sibling.valid), Top::with(side, moved, beside, found));

    // Pop: the group and the sibling; or the sibling comes up.
    wire!(remaining = threads.read(warp));
    let free = !(fetched.q.valid & outcome.valid);
    let head = levels_held.as_ref().map(|levels| {
        let address = |entry: Signal| {
            let entry = entry.slice(0, index_bits);
            if s.warps > 1 { cat(&[entry, warp]) } else { entry }
        };
        // After a pop of one level the next below is read.
        wire!(next = count - 1 - pops.zext(count_bits));
        let head = levels.read_sync_if(free, address(next), Collision::Never);
        levels.write(pushes, address(count), pushed);
        head
    });
    let head = head.unwrap_or_else(|| m.zero(Level::shape(s)));
    let of_group = top.rpc.returns.mux(top.rpc.depth - 1, top.rpc.depth);
    let group_mask = head.group.mask & remaining;
    let group_rpc = head.rpc(&top);
    wire!(arrives_again = head.group.valid & group_rpc.reached(top.rpc.pc, of_group));
    wire!(group_runs = head.group.valid & group_mask.any() & !arrives_again);
    let group = Sibling { valid: group_runs, pc: top.rpc.pc, depth: of_group, mask: group_mask };
    let popped = forwarding::popped(takes, &top, &head, group, group_rpc.found(arrives_again, top.rpc.pc));
    let renews = takes.map_or(pops, |takes| pops | takes);
    let drops = takes.map_or(pops, |takes| pops | (takes & !head.group.valid));

    // Where it goes.
    let begun = Sibling { valid: one, pc: start.pc, mask: start.mask, ..none };
    let lowest = m.zero(Top::shape(s));
    let forwarded = lowest.forwarded.map(|nothing| Forwarded { taken: one, ..nothing });
    let begun = Top { left: begun, forwarded, ..lowest };
    let after = pick([(starts, begun), (renews, popped)], moved);
    let runs = after.runs();
    let left = count + pushes.zext(count_bits) - drops.zext(count_bits);
    wire!(updates = moves | renews | starts);
    wire!(must_pop = updates & !runs & left.any());
    wire!(pops_again = pops & must_pop);
    tops.write(updates, warp, after);
    counts.write(outcome.valid | renews | starts, warp, left);
    let no = m.lit(0u32, 1);
    let (left_rpc, right_rpc) = (after.rpc_of(no), after.rpc_of(one));
    let ahead = |side: Sibling<Signal>, rpc: Rpc<Signal>| side.valid & rpc.is_ahead(side.depth);
    let (left_stops, right_stops) = (ahead(after.left, left_rpc), ahead(after.right, right_rpc));
    let right_pc = after.forwarded.map(|_| right_rpc.pc);
    stops.write(updates, warp, Stops { left: left_stops, right: right_stops, pc: left_rpc.pc, right_pc });
    wire!(threads_after = starts.mux(start.mask, remaining & !(own.mask & !stay)));
    threads.write(outcome.valid | starts, warp, threads_after);
    wire!(ends = updates & !must_pop & !runs);
    live.next_if(updates, (live.q & !at) | at.only_if(!ends));
    popping.next_if(updates, (popping.q & !at) | at.only_if(must_pop));
    wire!(reads = free & (must_pop | fetches));
    fetched.next_if(free, Read { valid: reads, at: warp });
    // Threads on levels below, or on the other side, never come.
    wire!(part_waits = waits & (rest.mask.any() | mask.ne(threads_after)));
    let waiting = parked.map_or(m.lit(0u32, s.warps), |parked| {
        parked.next_if(updates, (parked.q & !at) | at.only_if(waits & !part_waits));
        parked.q
    });
    let code = |c: u32| m.lit(c, cause::BITS);
    let cause = part_waits.mux(code(cause::BARRIER_OF_A_PART), code(cause::STACK_OVERFLOW));
    let refuses = part_waits | full;
    let refused = Some(Refused { valid: refuses, cause, because: None });
    let forwarding = forwarding.zip(turn).map(|(forwarding, turn)| {
        // A warp that was refused something stays as it is.
        wire!(room = after.has_room() & !refuses);
        forwarding.note(turn, updates, at, room)
    });

    // Who is steered: the path that moved, or one that came to the top; another that did is owed.
    let comes = |right: Signal, path: Sibling<Signal>| {
        let comes = path.valid & (starts | renews | changes | side.eq(right));
        let runs_on = takes.zip(top.forwarded).map(|(takes, forwarded)| {
            let (before, _) = top.of(right);
            (pops & forwarded.is(right)) | (takes & before.valid)
        });
        runs_on.map_or(comes, |runs_on| comes & !runs_on)
    };
    let (left_comes, right_comes) = (comes(no, after.left), comes(one, after.right));
    let steers_right = outcome.valid.mux(side, !left_comes);
    let (steered, other_comes) = (steers_right.mux(right_comes, left_comes), steers_right.mux(left_comes, right_comes));
    let slots_of = |warps: Signal| by_slot(warps, warps);
    let slot = join(s, warp, steers_right);
    wire!(renewed = starts | pops | changes);
    let other = join(s, warp, !steers_right);
    let other_slot = other.decode(s.slots());
    let sent = due.q.slot;
    let sent_now = sent.decode(s.slots()).only_if(sends);
    let dropped = slots_of(at).only_if(renewed);
    owed.next((owed.q & !sent_now & !dropped) | other_slot.only_if(renewed & (steered & other_comes)));
    // Next: somebody who waits and has no turn now; else a side that is owed from now on, if it is.
    wire!(later = waits_for_a_turn & !slots_of(at));
    let new = Due { valid: renewed, slot: other };
    let first = Due { valid: m.lit(1u32, 1), slot: later.lowest_one().one_hot_index() };
    due.next(later.any().mux(first, new));
    let actives = cat(&[after.left.valid, after.right.valid]).repeat(s.warps);
    let replay = replays.as_ref().map_or(m.lit(0u32, 1), |replays| {
        let left_unserved = outcome.valid & outcome.kind.eq(kind::MEMORY);
        let rest_alone = left_unserved & !goes_as_taken;
        let beside = other_slot.only_if(left_unserved & both_go);
        replays.next((replays.q & !sent_now & !dropped) | beside);
        sends.mux(replays.q.select(sent, 1), rest_alone & steered)
    });
    active.next_if(updates, (active.q & !slots_of(at)) | (slots_of(at) & actives));
    let (now, _) = top.of(side_of(s, sent));
    let steer = Steer {
        valid: sends | (updates & !waits & steered),
        slot: sends.mux(sent, slot),
        pc: sends.mux(now.pc, steers_right.mux(after.right, after.left).pc),
        replay,
    };
    let dual = TwoPaths {
        flush: pushes & sibling.valid,
        flushed: sibling_slot,
        changed: PathsChange { valid: changes | renews, warp },
        busy: popping.q | cat(&(0..s.warps).map(|w| owed.q.slice(2 * w, 2).any()).collect::<Vec<_>>()),
        active: active.q,
        changes_side: sends,
        paths: {
            let of = tops.read(warp_of(s, i.issue_slot));
            of.left.valid.zext(2) + of.right.valid.zext(2)
        },
    };

    // Checks.
    let ghost_live = m.memory("ghost_live", s.lanes, warp_bits);
    ghost_live.write(outcome.valid | starts, warp, threads_after);
    let outcome_top = tops.read(warp_of(s, outcome.slot));
    let (of_outcome, _) = outcome_top.of(side_of(s, outcome.slot));
    assume_legal(m, s, &i, (live.q, waiting), of_outcome.mask, (starts, wakes));
    m.assume("outcome_of_a_path", !outcome.valid | of_outcome.valid);
    m.assume("no_outcome_of_a_busy_warp", !(outcome.valid & dual.busy.select(warp_of(s, outcome.slot), 1)));
    let deepest = own.depth.all() & outcome.call & taken.mask.any();
    m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
    m.assert("a_push_has_room", !pushes | count.lt(levels(s)));
    m.assert("pops_of_popping_warps", !pops | (popping.q.select(warp, 1) & count.any()));
    m.assert("a_level_has_something", !pops | head.sibling.valid | head.group.valid);
    m.assert("sides_that_are_there_are_one", !(taken_is_there & rest_is_there));
    m.assert("sides_are_apart", !(updates & after.left.valid & after.right.valid) | !overlap(&after));
    wire!(live_after = (renews | wakes).mux(ghost_live.read(warp), threads_after));
    let masks = after.left.mask.only_if(after.left.valid) | after.right.mask.only_if(after.right.valid);
    m.assert("paths_have_live_threads", !updates | !(masks & !live_after).any());
    m.assert("the_lowest_have_all_threads", !(updates & !left.any() & !after.rpc.valid) | masks.eq(live_after));
    m.assert("a_group_meets_somewhere", !(pops & head.group.valid & group_mask.any()) | top.rpc.known);
    if s.lanes > 1 {
        m.cover("both_sides_run", both_go & !pushes);
        m.cover("suspends_a_sibling", dual.flush);
        m.cover("suspends_a_sibling_that_has_not_issued", dual.flush & !unissued.valid);
        m.cover("one_side_is_there", taken_is_there | rest_is_there);
        m.cover("one_side_is_there_without_a_push", (taken_is_there | rest_is_there) & !pushes);
        m.cover("sides_go_to_one_place", outcome.valid & taken.mask.any() & rest.mask.any() & !apart);
        m.cover("one_arrives_first", arrives & sibling.valid);
        m.cover("pops_a_group", pops & group_runs);
        m.cover("pops_a_sibling", pops & head.sibling.valid);
        m.cover("pops_both", pops & head.sibling.valid & group_runs);
        m.cover("pops_again", pops_again);
        m.cover("popped_head_waits", fetched.q.valid & outcome.valid);
        m.cover("fetches", fetches);
        m.cover("meets_where_it_returns", arrives & top.rpc.returns);
        m.cover("part_of_a_group_has_ended", pops & group_runs & (head.group.mask & !remaining).any());
        if s.barriers {
            m.cover("part_of_a_warp_waits", part_waits);
        }
        if levels(s) < s.lanes - 1 {
            m.cover("no_level_is_left", full);
        }
    }
    if let Some((takes, f)) = takes.zip(top.forwarded) {
        m.assert("what_is_not_taken_is_there", !(renews & !f.taken) | head.sibling.valid);
        let is_own = outcome.valid & f.is(side);
        m.cover("forwards", takes & head.group.valid);
        m.cover("comes_up_for_good", takes & !head.group.valid);
        m.cover("forwarded_parts", is_own & pushes);
        m.cover("forwarded_arrives", is_own & arrives);
        m.cover("forwarded_ends", is_own & !mask.any());
        m.cover("suspends_the_forwarded", pushes & f.is(!side));
        m.cover("pops_around_the_forwarded", pops & f.valid);
        m.cover("forwarded_is_still", pops & f.valid & after.forwarded.map_or(no, |after| after.is(f.right)));
        m.cover("pops_again_beside_the_forwarded", pops_again & f.valid);
    }
    m.cover("warp_ends", ends);

    wire!(put_off = ((start.valid | (wake.valid & wake_possible)) & !start_ready) | popping.q.any() | owed.q.any());
    let (hold, outcomes) = hold(m, outcome.valid, |_| put_off);
    // Siblings on the levels of each warp.
    let wide = s.lane_bits() + 1;
    let siblings = m.memory("siblings", wide, warp_bits);
    let untaken = top.forwarded.map_or(head.sibling.valid, |forwarded| !forwarded.taken);
    let more = (pushes & sibling.valid).zext(wide) - (renews & untaken).zext(wide);
    let suspended = siblings.read(warp).only_if(!starts) + more;
    siblings.write(outcome.valid | renews | starts, warp, suspended);
    let paths = suspended + after.left.valid.zext(wide) + after.right.valid.zext(wide);
    let events = Events {
        merges: (pops & group_runs).zext(2),
        levels: left.zext(wide).only_if(outcome.valid),
        paths: paths.only_if(outcome.valid & !ends),
        ..Events::none(m, s)
    };
    let of_decode = stops.read(warp_of(s, i.decode_slot));
    let (of_issue, _) = tops.read(warp_of(s, i.issue_slot)).of(side_of(s, i.issue_slot));
    let out = UnitOut {
        start_ready,
        wake_ready,
        live: live.q,
        waiting,
        stop: Stop {
            valid: side_of(s, i.decode_slot).mux(of_decode.right, of_decode.left),
            pc: of_decode.right_pc.map_or(of_decode.pc, |pc| side_of(s, i.decode_slot).mux(pc, of_decode.pc)),
        },
        mask: of_issue.mask,
        steer,
        hold,
        more: MoreOut { refused, two_paths: Some(dual), ..MoreOut::NONE },
        events,
    };
    let (live, popping, owed, active, fetched) = (live.q, popping.q, owed.q, active.q, fetched.q);
    let replays = replays.map_or(m.lit(0u32, s.slots()), |replays| replays.q);
    let inside = Inside {
        live,
        waiting,
        popping,
        owed,
        active,
        replays,
        tops,
        threads,
        stops,
        counts,
        levels: levels_held,
        fetched,
        due: due.q,
        head,
        forwarding,
        ghost_live,
        outcomes,
    };
    (out, inside)
}

fn overlap(top: &Top<Signal>) -> Signal {
    (top.left.mask & top.right.mask).any()
}

/// The slot of a side of a warp.
fn join(s: &Shape, warp: Signal, right: Signal) -> Signal {
    if s.warps > 1 { cat(&[right, warp]) } else { right }
}

mod forwarding;
pub use forwarding::forwards;
pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;

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
//! | wake | as an outcome that does not move the path |
//! | pop | the group and the sibling of a level are the top |
//! | send | a path that came to the top beside another is steered |
//! | start | the new threads are the left path, over no level |
//!
//! An outcome always has its turn; then a wake, a pop or a send, a start. Whose turn it is was chosen in the cycle before
//! ([`Claim`]), when an outcome is announced: so the words of the warp come from registers, and a pop's level from block RAM. A warp
//! that popped is not chosen for the next pop in that cycle, since its words change. Of two paths that come to the top at
//! once, one is steered at once, the other *owed*: it is sent in the next cycle, if nobody else has waited for that.
//!
//! The pipeline sees to it that at most one control instruction of a warp is unresolved, and none while [`Dual::busy`]. The
//! scoreboard is [`crate::scoreboard::dual`]; `docs/reference/dual-path.md`.
//!
//! Under [`Replay::Split`], an access to memory that serves only some threads parts the path like a branch: those served go on as the
//! path, the others are the other side, which issues the access again, as far as the side table says (§7.2).
//!
//! With [`Shape::path_forwarding`], the sibling of the uppermost level comes up where a side of the top is free ([`forwarding`]).
//!
//! What it does not do: like [`super::stack`], it refuses a barrier that only a part of a warp reaches.

use self::forwarding::{Before, Forwarded};
use super::inspect::{Path, State};
use super::levels::{Found, Group, Rpc, Sibling, levels};
use super::{
    Announced, Capabilities, Events, Mechanism, MoreOut, PathsChange, Refused, Steer, Stop, TwoPaths, UnitIn, UnitOut,
    assume_announced, assume_legal, by_slot, depth_after, hold, kind, side_of, warp_of,
};
use crate::isa::cause;
use crate::proof::Proof;
use crate::shape::{Replay, Shape};
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;

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

/// Whose turn it is, chosen in the cycle before. With no bit set it is that of a start, or of nobody. A warp is its left slot, unless one
/// of its sides is meant.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Claim<T> {
    slot: T,
    /// 1 bit: an outcome was announced. If it does not come, the turn is lost.
    outcome: T,
    /// 1 bit: a wake was taken.
    wake: T,
    /// 1 bit: the warp is popping, and its uppermost level was read.
    pop: T,
    /// 1 bit: the slot is owed its steering.
    send: T,
    /// 1 bit: the same, if it is owed that since the last turn.
    follows: T,
    /// With path forwarding, 1 bit: a side of the warp is free for the sibling of the uppermost level, which was read.
    take: Option<T>,
}

/// A warp's words in the memories, read in the cycle before.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Words<T> {
    top: Top<T>,
    /// The call depth of the threads of the slot that take the branch, if an outcome was announced; else the slot's.
    #[width(s.depth_bits)]
    after: T,
    #[width(s.lanes)]
    threads: T,
    #[width(count_width(levels(s)))]
    count: T,
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
        Capabilities { reconverges: true, two_paths: true, announced: true, ..Capabilities::NONE }
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
        let waits = s.barriers && state.register(s.warps, "parked").bit(warp);
        let mut found = Found::new(&state.word(s.lanes, "threads", slot), s.lanes);
        let Top { left, right, mut rpc, forwarded } = state.word(Top::shape(s), "tops", slot);
        found.add_sibling("left", &left, waits);
        found.add_sibling("right", &right, waits);
        // The sibling of the uppermost level: whether it has come up, and where it meets others.
        let (mut taken, mut its) = forwarded.map_or((false, None), |f| (f.taken == 1, Some(f.rpc)));
        // A broken core may count more than there are.
        let count = state.word(count_width(levels(s)), "counts", slot).low_u64().min(levels(s).into());
        for k in (0..count).rev() {
            let at = slot << index_width(levels(s)) | k;
            let is_pushed = k == count - 1 && state.register(s.warps, "pushed_warps").bit(warp);
            let Level { sibling, group, before, .. } = match is_pushed {
                true => state.register(Level::shape(s), "pushed_level"),
                false => state.word(Level::shape(s), "levels", at),
            };
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

/// A level that was pushed in the cycle before, and is written in this one.
#[derive(Clone, Copy)]
struct Pushed {
    valid: Signal,
    address: Signal,
    level: Level<Signal>,
}

/// What a proof must see of the unit.
struct Inside {
    live: Signal,
    /// One bit a warp: all its threads wait, or were woken in the cycle before.
    waiting: Signal,
    popping: Signal,
    owed: Signal,
    active: Signal,
    replays: Signal,
    tops: Mem<Top<Width>>,
    threads: Mem<Width>,
    stops: Mem<Stops<Width>>,
    /// What is written into it in this cycle, if it is: enable, warp, word.
    next_stops: (Signal, Signal, Stops<Signal>),
    counts: Mem<Width>,
    levels: Option<Mem<Level<Width>>>,
    pushed: Option<Pushed>,
    claim: Claim<Signal>,
    words: Words<Signal>,
    /// The place of the side that may have come beside another in the last turn.
    came: Signal,
    /// The level that was read for the claim.
    head: Level<Signal>,
    /// With path forwarding, one bit a warp: a side is free, and the uppermost level has a sibling for it.
    lends: Option<Signal>,
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
    let parked = s.barriers.then(|| m.reg("parked", s.warps).reset(0u32));
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
    let lends = forwards(s).then(|| m.reg("lends", s.warps).reset(0u32));

    // One bit a warp: it pushed a level in the cycle before.
    let pushed_warps = m.reg("pushed_warps", s.warps).reset(0u32);

    // Whose turn comes next.
    let (no, one) = (m.lit(0u32, 1), m.lit(1u32, 1));
    let of_slot = s.slot_bits();
    let shape =
        Claim { slot: of_slot, outcome: 1, wake: 1, pop: 1, send: 1, follows: 1, take: lends.as_ref().map(|_| 1) };
    let next_claim = m.reg("claim", shape).reset_zero();
    let next_words = m.reg("words", Words::shape(s)).reset_zero();
    let (claim, words) = (next_claim.q, next_words.q);
    let claimed_warp = warp_of(s, claim.slot);
    let claimed = claimed_warp.decode(s.warps);
    let Announced { valid: announced, slot: announced_slot, call, ret } = i.announced.expect("outcomes are announced");
    let wake_possible = m.lit(s.barriers, 1);
    wire!(wake_ready = !announced & wake_possible);
    wire!(woken = wake.valid & wake_ready);
    wire!(could_send = owed.q & !claim.slot.decode(s.slots()).only_if(claim.send | claim.follows));
    wire!(could_pop = by_slot(popping.q & !claimed.only_if(claim.pop), m.lit(0u32, s.warps)));
    wire!(could = could_send | could_pop);
    wire!(chosen = could.lowest_one());
    wire!(unclaimed = !announced & !woken);
    wire!(waits_for_a_turn = could.any());
    // A turn may bring two paths to the top. Then the one that is not steered is the other side of an outcome, else the right one.
    wire!(may_owe = claim.outcome | claim.pop);
    wire!(beside = join(s, claimed_warp, !(claim.outcome & side_of(s, claim.slot))));
    let claims = [claim.outcome, claim.wake, claim.pop, claim.send, claim.follows, claim.take.unwrap_or(no)];
    wire!(has_turn = cat(&claims).any());
    let could_take =
        lends.as_ref().map_or(m.lit(0u32, s.warps), |lends| lends.q & !claimed.only_if(has_turn) & !pushed_warps.q);
    let asked = [
        (announced, announced_slot),
        (wake.valid & wake_possible, join(s, wake.slot, no)),
        (waits_for_a_turn, chosen.one_hot_index()),
        (may_owe, beside),
    ];
    wire!(next_slot = pick(asked, join(s, could_take.lowest_one().one_hot_index(), no)));
    wire!(pops_next = unclaimed & (chosen & could_pop).any());
    wire!(takes_next = unclaimed & !waits_for_a_turn & !may_owe & could_take.any());
    next_claim.next(Claim {
        slot: next_slot,
        outcome: announced,
        wake: woken,
        pop: pops_next,
        send: unclaimed & (chosen & could_send).any(),
        follows: unclaimed & !waits_for_a_turn & may_owe,
        take: claim.take.map(|_| takes_next),
    });
    let next_warp = warp_of(s, next_slot);
    let next_top = tops.read(next_warp);
    let next_count = counts.read(next_warp);
    let (next_own, _) = next_top.of(side_of(s, next_slot));
    next_words.next(Words {
        top: next_top,
        after: depth_after(announced & call, announced & ret, next_own.depth),
        threads: threads.read(next_warp),
        count: next_count,
    });

    // Whose turn it is.
    let (pops, wakes) = (claim.pop, claim.wake);
    wire!(sends = claim.send | (claim.follows & owed.q.select(claim.slot, 1)));
    // The next turn may be that of an outcome of this warp, which needs its words as they are.
    let gives_way = announced & warp_of(s, announced_slot).eq(claimed_warp);
    let takes = claim.take.map(|take| take & !gives_way);
    wire!(start_ready = !has_turn);
    wire!(starts = start.valid & start_ready);
    wire!(warp = starts.mux(start.slot, claimed_warp));
    let at = warp.decode(s.warps);
    let top = words.top;
    wire!(count = words.count.only_if(!starts));
    let none = m.zero(Sibling::shape(s));

    // Outcome and wake: the threads of a path move, and part or meet.
    let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads meet") };
    wire!(side = claim.outcome.mux(side_of(s, claim.slot), !top.left.valid));
    let (own, sibling) = top.of(side);
    let taken_depth = words.after;
    let (taken, rest) = (outcome.taken, outcome.rest);
    wire!(apart = taken.pc.ne(rest.pc) | taken_depth.ne(own.depth));
    wire!(parts = outcome.valid & taken.mask.any() & rest.mask.any() & apart);
    let own_rpc = top.rpc_of(side);
    wire!(same_group = own_rpc.is_of(meets, own.depth));
    let of_branch = Rpc::of_branch(meets, own.depth);
    wire!(meeting = (parts & !same_group).mux(of_branch, own_rpc));
    // Each side is compared with both places, before it is known which of them counts.
    let there = |rpc: Rpc<Signal>| [rpc.reached(taken.pc, taken_depth), rpc.reached(rest.pc, own.depth)];
    let (at_own, at_branchs) = (there(own_rpc), there(of_branch));
    let [taken_there, rest_there] = [0, 1].map(|side| same_group.mux(at_own[side], at_branchs[side]));
    wire!(taken_is_there = parts & taken_there);
    wire!(rest_is_there = parts & rest_there);
    wire!(both_go = parts & !taken_is_there & !rest_is_there);
    wire!(goes_as_taken = taken.mask.any() & !taken_is_there);
    let here = Sibling { valid: one, ..own };
    let went = Sibling { valid: one, pc: taken.pc, depth: taken_depth, mask: taken.mask };
    let stayed = Sibling { valid: one, pc: rest.pc, depth: own.depth, mask: rest.mask };
    let goes = outcome.valid.mux(goes_as_taken.mux(went, stayed), here);
    wire!(stay = taken.mask | rest.mask);
    wire!(moves = outcome.valid | wakes);
    wire!(waits = outcome.valid & outcome.kind.eq(kind::WAIT));
    let moves_there = taken.mask.any().mux(at_own[0], at_own[1]);
    wire!(is_there = outcome.valid.mux(moves_there, own_rpc.reached(own.pc, own.depth)));
    wire!(arrives = moves & !waits & !parts & is_there);
    let found = meeting.found(arrives | taken_is_there, taken_is_there.mux(taken.pc, goes.pc));
    let mask = outcome.valid.mux(parts.mux(goes.mask, stay), own.mask);
    wire!(goes_on = moves & !arrives & mask.any());
    let moved = Sibling { valid: goes_on, mask, ..goes };

    // What a branch leaves, and where the sibling is.
    wire!(leaves = parts & (!same_group | (both_go & sibling.valid)));
    let full = if levels(s) < s.lanes - 1 { leaves & count.eq(levels(s)) } else { m.lit(0u32, 1) };
    wire!(pushes = leaves & !full);
    let sibling_slot = join(s, warp, !side);
    let (group, before) = forwarding::left_by(&top, side, stay, same_group);
    let pushed = Level { sibling, group, side, before };
    let beside = both_go.mux(stayed, pushes.mux(none, sibling));
    wire!(changes = both_go | pushes);
    let moved = forwarding::moved(&top, side, (pushes, !sibling.valid), Top::with(side, moved, beside, found));

    // A level is written in the next cycle, when the pipeline says how far the sibling has come.
    let address = |entry: Signal, warp: Signal| {
        let entry = entry.slice(0, index_bits);
        if s.warps > 1 { cat(&[entry, warp]) } else { entry }
    };
    let Some(unissued) = i.unissued else { unreachable!("the pipeline says where the sibling is") };
    pushed_warps.next(at.only_if(pushes));
    let pushed = levels_held.as_ref().map(|_| {
        let level = m.pipe("pushed_level", pushed);
        let sibling = Sibling { pc: unissued.valid.mux(unissued.pc, level.sibling.pc), ..level.sibling };
        let address = m.pipe("pushed_address", address(count, warp));
        Pushed { valid: pushed_warps.q.any(), address, level: Level { sibling, ..level } }
    });

    // Pop: the group and the sibling; or the sibling comes up.
    let remaining = words.threads;
    let head = levels_held.as_ref().map(|levels| {
        let reads = pops_next | takes_next;
        let head = levels.read_sync_if(reads, address(next_count - 1, next_warp), Collision::Never);
        if let Some(Pushed { valid, address, level }) = pushed {
            levels.write(valid, address, level);
        }
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
    // Nothing is decoded of a slot in the cycle behind its steering.
    let decoded = m.pipe("updated_top", after);
    let (left_rpc, right_rpc) = (decoded.rpc_of(no), decoded.rpc_of(one));
    let ahead = |side: Sibling<Signal>, rpc: Rpc<Signal>| side.valid & rpc.is_ahead(side.depth);
    let (left_stops, right_stops) = (ahead(decoded.left, left_rpc), ahead(decoded.right, right_rpc));
    let right_pc = decoded.forwarded.map(|_| right_rpc.pc);
    let updated = (m.pipe_reset("updated", updates), m.pipe("updated_warp", warp));
    let next_stops = Stops { left: left_stops, right: right_stops, pc: left_rpc.pc, right_pc };
    stops.write(updated.0, updated.1, next_stops);
    wire!(threads_after = starts.mux(start.mask, remaining & !(own.mask & !stay)));
    threads.write(outcome.valid | starts, warp, threads_after);
    wire!(ends = updates & !must_pop & !runs);
    live.next_if(updates, (live.q & !at) | at.only_if(!ends));
    popping.next_if(updates, (popping.q & !at) | at.only_if(must_pop));
    // Threads on levels below, or on the other side, never come.
    wire!(part_waits = waits & (rest.mask.any() | mask.ne(threads_after)));
    let waiting = parked.map_or(m.lit(0u32, s.warps), |parked| {
        parked.next_if(updates, (parked.q & !at) | at.only_if(waits & !part_waits));
        parked.q
    });
    // Who was woken in the cycle before waits no more.
    wire!(still_waiting = waiting & !at.only_if(wakes));
    let code = |c: u32| m.lit(c, cause::BITS);
    let cause = part_waits.mux(code(cause::BARRIER_OF_A_PART), code(cause::STACK_OVERFLOW));
    let refuses = part_waits | full;
    let refused = Some(Refused { valid: refuses, cause, because: None });
    let lends = lends.map(|lends| {
        // A warp that was refused something stays as it is.
        wire!(room = after.has_room() & !refuses);
        lends.next_if(updates, (lends.q & !at) | at.only_if(room));
        lends.q
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
    let sent = claim.slot;
    let sent_now = sent.decode(s.slots()).only_if(sends);
    let dropped = slots_of(at).only_if(renewed);
    owed.next((owed.q & !sent_now & !dropped) | other_slot.only_if(renewed & (steered & other_comes)));
    let actives = cat(&[after.left.valid, after.right.valid]).repeat(s.warps);
    let replay = replays.as_ref().map_or(m.lit(0u32, 1), |replays| {
        let left_unserved = outcome.valid & outcome.kind.eq(kind::MEMORY);
        let rest_alone = left_unserved & !goes_as_taken;
        let beside = other_slot.only_if(left_unserved & both_go);
        replays.next((replays.q & !sent_now & !dropped) | beside);
        sends.mux(replays.q.select(sent, 1), rest_alone & steered)
    });
    active.next_if(updates, (active.q & !slots_of(at)) | (slots_of(at) & actives));
    // Its place is not in the words yet, if it came with the last turn.
    let came = m.reg("came", s.pc_bits());
    came.next(steers_right.mux(after.left, after.right).pc);
    let (waited, _) = top.of(side_of(s, sent));
    let sent_pc = claim.follows.mux(came.q, waited.pc);
    let steer = Steer {
        valid: sends | (updates & !waits & steered),
        slot: sends.mux(sent, slot),
        pc: sends.mux(sent_pc, steers_right.mux(after.right, after.left).pc),
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
    assume_legal(m, s, &i, (live.q, still_waiting), own.mask, (starts, woken));
    assume_announced(m, &i, (claim.outcome, claim.slot), steer);
    let changes_now = (moves | pops | starts) & warp.eq(next_warp);
    m.assume(
        "no_outcome_of_a_warp_that_had_a_turn_just_before",
        !(outcome.valid & m.pipe_reset("changed", changes_now)),
    );
    let stale = m.pipe_reset("stale", updates & warp.eq(next_warp));
    let uses = outcome.valid | wakes | pops | claim.send | takes.unwrap_or(no);
    m.assert("nobody_uses_stale_words", !(stale & uses));
    m.assume("outcome_of_a_path", !outcome.valid | own.valid);
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
        m.cover("pop_waits_for_an_outcome", could_pop.any() & announced);
        m.cover("sent_in_the_next_cycle", claim.follows & sends);
        m.cover("sent_later", claim.send);
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
        m.cover("gives_way", claim.take.unwrap_or(no) & gives_way);
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

    let wake_waits = wake.valid & announced & wake_possible;
    wire!(put_off = (start.valid & !start_ready) | wake_waits | popping.q.any() | owed.q.any());
    let (hold, outcomes) = hold(m, announced, |_| put_off);
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
        waiting: still_waiting,
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
    let (live, popping, owed, active) = (live.q, popping.q, owed.q, active.q);
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
        next_stops: (updated.0, updated.1, next_stops),
        counts,
        levels: levels_held,
        pushed,
        claim,
        words,
        came: came.q,
        head,
        lends,
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

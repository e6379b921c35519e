//! The dual-path unit as a whole: whatever it is told about reconvergence, every live thread of a warp is in exactly
//! one place, at the pc and call depth that instructions gave it; each side is steered once when it comes to the top,
//! in bounded time.
//!
//! A thread's place is a side of the top; else the topmost level whose sibling, unless that was forwarded, or group
//! holds it. One thread is followed, any of them, through outcomes and the straight-line instructions between them,
//! which may run past any stop pc: each slot has a front end that goes where it is steered, one pc an instruction,
//! until it has an outcome or is flushed. The other assertions say of every warp, from its top down, what makes that
//! inductive. With all levels; a warp whose outcome is refused stays as it is, since the core stops.

mod warp;

use super::state::{Claim, Level, Stops, Top, Words};
use super::{Inside, described, levels};
use crate::divergence::levels::{Rpc, Sibling};
use crate::divergence::proof::{
    Followed, ProofIn, Turns, Waits, Whereabouts, held_since, in_time, legal, with_announced,
};
use crate::divergence::{Outcome, OutcomeKind, Unissued, UnitIn, UnitOut, depth_after, side_of, warp_of};
use crate::isa::FaultCause;
use crate::pipeline::timing::ISSUE_TO_RESOLVE;
use crate::proof::{cover, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use heddle_hdl::select;
use warp::{Above, Held, Slot, Warp, is_within, no_forwarded, threads_of, warp};

/// The unit with every legal input: outcomes of sides that run, of warps that are not busy, with threads of the path
/// and anything about reconvergence; starts of idle warps, wakes of those that wait; `hold` is obeyed.
pub fn dual_path_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    module("dual_path_proof", ProofIn::shape(s), |m, i| {
        let unit_in = m.deferred("unit_in", UnitIn::shape(s));
        let (out, inside) = described(m, s, unit_in.value);
        let late = held_since(m, out.hold, ISSUE_TO_RESOLVE);
        let refused = m.reg("refused", s.warps).reset(0u32);
        let may = !late[late.len() - 1];
        let depth = |slot| inside.store.tops.read(warp_of(s, slot)).of(side_of(s, slot)).0.depth;
        let i = with_announced(m, s, &i, out.steer, may, depth);
        let (slots, passed, told) = front_ends(m, s, &i, &inside, refused.q, &out);
        unit_in.drive(told);
        let refuses = refuses(m, s, &inside, &told, &out);
        refused.next(refused.q | (warp_of(s, told.outcome.slot).decode(s.warps) & refuses.repeat(s.warps)));

        let steered = out.steer.slot.decode(s.slots()).only_if(out.steer.valid);
        let just = m.pipe_reset("slots_just_steered", steered);
        let warps: Vec<Warp> = (0..s.warps).map(|n| warp(m, s, n, refused.q, &slots, &inside)).collect();
        for warp in &warps {
            from_the_top_down(m, warp, passed);
            levels_suffice(m, s, warp);
            between_turns(m, s, warp, passed, &inside);
            stops_are_there(m, s, warp, just, &inside);
            steers(m, warp, &told, &out);
        }
        claims(m, s, &told, &inside);
        let waits = |warp: &Warp| {
            let Warp { popping, count, live, owed, .. } = *warp;
            Waits { popping, count, waiting: warp.waits(), one: !live | owed.any() }
        };
        let waits: Vec<Waits> = warps.iter().map(waits).collect();
        let Claim { slot, outcome, wake, pop, send, follows, .. } = inside.store.claim.q;
        let turns = Turns { outcome, wake, other: pop | send | (follows & inside.store.owed.q.select(slot, 1)) };
        let busy = inside.store.owed.q.any() | inside.store.popping.q.any();
        in_time(m, levels(s), &waits, busy, turns, (out.hold, &late, inside.outcomes));
        follow(m, s, (&i, just), &warps, &inside, &told, &out);

        cover(m, "ends", m.pipe_reset("was_live", inside.store.live.q.any()) & !inside.store.live.q.any());
        if s.lanes > 1 {
            let any = |f: &dyn Fn(&Warp) -> Signal| cat(&warps.iter().map(f).collect::<Vec<_>>()).any();
            let dual = out.more.two_paths.expect("it has two sides");
            cover(m, "both_run", any(&|warp| warp.live & warp.slots[0].runs & warp.slots[1].runs));
            cover(m, "meets", out.events.merges.any());
            cover(m, "all_levels", any(&|warp| warp.live & warp.count.eq(levels(s))));
            if s.lanes > 2 {
                cover(m, "flushes", dual.flush);
                cover(m, "resumes", inside.store.claim.q.pop & inside.popped.head.sibling.valid & out.steer.valid);
                if inside.store.lends.is_some() {
                    let forwarded = any(&|warp| warp.live & warp.top.forwarded.expect("it forwards").valid);
                    cover(m, "forwards", forwarded);
                    cover(m, "runs_on", m.pipe_reset("was_forwarded", forwarded) & inside.store.claim.q.pop);
                }
            }
        }
        if s.barriers {
            cover(m, "wakes", told.wake.valid & out.wake_ready);
        }
        out
    })
}

/// What the slots do; whether one has ever run past a stop pc; and what the unit is told: of the sibling, how far it
/// is.
fn front_ends(
    m: Builder,
    s: &Shape,
    i: &ProofIn<Signal>,
    inside: &Inside,
    refused: Signal,
    out: &UnitOut<Signal>,
) -> (Vec<Slot>, Signal, UnitIn<Signal>) {
    let dual = out.more.two_paths.expect("it has two sides");
    let bits = |name: &str| m.reg(name, s.slots()).reset(0u32);
    let (runs, issued) = (bits("runs"), bits("issued"));
    let slot = i.unit.outcome.slot;
    let (path, _) = inside.store.tops.read(warp_of(s, slot)).of(side_of(s, slot));
    let warp_runs = inside.store.live.q & !dual.busy & !refused;
    // Outcomes of a warp are two cycles apart at least, and none comes while it is busy.
    let alone = m.reg("alone", 1).reset(0u32);
    let may = warp_runs.select(warp_of(s, slot), 1) & runs.q.select(slot, 1) & alone.q;
    let told = legal(m, s, i, (inside.store.live.q, out.waiting), may, (path.mask, path.depth));

    let next = warp_of(s, i.unit.announced.expect("outcomes are announced").slot);
    let another = told.outcome.valid & next.eq(warp_of(s, slot));
    alone.next(!dual.busy.select(next, 1) & !another);

    let acts = slot.decode(s.slots()).only_if(told.outcome.valid);
    let flushed = dual.flushed.decode(s.slots()).only_if(dual.flush);
    let steered = out.steer.slot.decode(s.slots()).only_if(out.steer.valid);
    wire!(issues = i.issues.expect("it has two sides") & runs.q & !acts);
    runs.next((runs.q & !acts & !flushed) | steered);
    issued.next((issued.q | issues) & !steered);
    let (mut pcs, mut passes) = (Vec::new(), Vec::new());
    let slots = (0..s.slots()).map(|n| {
        let pc = m.reg(&format!("slot_{n}_pc"), s.pc_bits());
        let next = issues.bit(n).mux(pc.q + 1, pc.q);
        pc.next(steered.bit(n).mux(out.steer.pc, next));
        pcs.push(pc.q);
        let stops = stops_of(m, s, inside, n / 2);
        let (left, right) = ((stops.left, stops.pc), (stops.right, stops.right_pc.unwrap_or(stops.pc)));
        let (stop, stop_pc) = if n % 2 == 0 { left } else { right };
        passes.push(issues.bit(n) & stop & next.eq(stop_pc));
        Slot { runs: runs.q.bit(n), issued: issued.q.bit(n), pc: pc.q, issues: issues.bit(n) }
    });
    let slots: Vec<Slot> = slots.collect();
    let passed = m.reg("passed", 1).reset(0u32);
    passed.next(passed.q | cat(&passes).any());
    let sibling = slot ^ 1;
    let ran = m.pipe_reset("sibling_ran", runs.q.select(sibling, 1));
    let sibling = m.pipe("sibling_was", sibling);
    let any = i.unit.unissued.expect("it has two sides");
    // One that has issued nothing, or whose only instruction is to issue again, is where it was steered.
    let valid = any.valid | (ran & issued.q.select(sibling, 1));
    let pc = valid.mux(select(&pcs, sibling), any.pc);
    (slots, passed.q, UnitIn { unissued: Some(Unissued { valid, pc }), ..told })
}

/// What was chosen in the cycle before, and the words that were read for it.
fn claims(m: Builder, s: &Shape, told: &UnitIn<Signal>, inside: &Inside) {
    let (claim, words) = (inside.store.claim.q, inside.store.words.q);
    let (slot, no) = (claim.slot, m.lit(0u32, 1));
    let warp = warp_of(s, slot);
    m.assert("claimed_slot_is_there", slot.eq(index_of(s.slots(), slot)));
    let take = claim.take.unwrap_or(no);
    let claims = cat(&[claim.outcome, claim.wake, claim.pop, claim.send, claim.follows, take]);
    m.assert("nothing_else_is_claimed", claims.eq(claims.lowest_one()));
    m.assert("claimed_wake_is_of_one_that_waits", implies(claim.wake, inside.updated.waiting.select(warp, 1)));
    m.assert("claimed_send_is_owed", implies(claim.send, inside.store.owed.q.select(slot, 1)));
    let Outcome { valid: comes, slot: of, call, ret, .. } = told.outcome;
    m.assert("announced_outcome_is_claimed", implies(claim.outcome, slot.eq(of)));
    let used = comes | claim.wake | claim.pop | claim.send | take;
    let top = inside.store.tops.read(warp);
    let (waits_for_it, _) = top.of(side_of(s, slot));
    let right = claim.outcome.mux(side_of(s, slot), !top.left.valid);
    let (own, _) = top.of(right);
    let read = Words {
        top,
        own,
        own_rpc: top.forwarded.map(|_| rpc_of(&top, right)),
        after: claim.outcome.mux(depth_after(call, ret, own.depth), words.after),
        threads: inside.store.threads.read(warp),
        count: inside.store.counts.read(warp),
    };
    m.assert("words_of_the_claim", implies(used, read.same_as(words)));
    let follows = claim.follows & inside.store.owed.q.select(slot, 1);
    m.assert("what_came_is_there", implies(follows, waits_for_it.pc.eq(inside.store.came.q)));
}

/// A barrier is refused exactly if a live thread of the warp does not come to it, and nothing else is.
fn refuses(m: Builder, s: &Shape, inside: &Inside, told: &UnitIn<Signal>, out: &UnitOut<Signal>) -> Signal {
    let outcome = told.outcome;
    let (taken, stay) = (outcome.taken.mask, outcome.taken.mask | outcome.rest.mask);
    let (path, _) = inside.store.tops.read(warp_of(s, outcome.slot)).of(side_of(s, outcome.slot));
    let live = inside.store.threads.read(warp_of(s, outcome.slot)) & !(path.mask & !stay);
    let refused = out.more.refused.expect("it can refuse");
    wire!(should = outcome.valid & outcome.kind.eq(OutcomeKind::Wait) & taken.ne(live));
    m.assert("refuses_barriers_of_a_part", refused.valid.eq(should));
    m.assert("says_why", implies(refused.valid, refused.cause.eq(FaultCause::BarrierOfAPart)));
    should
}

/// Each path has fewer threads than the path it is a part of, siblings are apart from all above them, threads that have
/// met know where; and while no stop pc is passed, nobody is where they reconverge without being there.
fn from_the_top_down(m: Builder, warp: &Warp, passed: Signal) {
    for (k, held) in warp.levels.iter().enumerate() {
        let Held { valid, level, above, sibling, .. } = *held;
        let Above { threads, rpc, parts, taken, forwarded, forwarded_rpc } = above;
        let Level { sibling: path, group, before, .. } = level;
        let level = |what: &str, holds: Signal| {
            m.assert(&warp.name(&format!("level_{k}_{what}")), implies(warp.runs() & valid, holds));
        };
        let untaken = path.valid & !taken;
        level("has_something", path.valid | group.valid);
        level("meets", rpc.valid & (rpc.returns | rpc.known));
        level("sibling_has_threads", implies(untaken, sibling.any()) & is_within(sibling, warp.threads));
        let of_group = threads | group.mask.only_if(group.valid);
        level("sibling_is_apart", !((sibling | forwarded) & of_group).any());
        let mine = group.valid.mux(group.rpc, rpc);
        let siblings_rpc = before.map_or(mine, |b| (group.valid | b.sibling).mux(forwarded_rpc, rpc));
        let is_there = siblings_rpc.reached(path.pc, path.depth);
        level("sibling_is_on_its_way", implies(untaken & !passed, !is_there));
        level("sibling_is_elsewhere_than_what_is_unknown", implies(untaken, !is_unknown(siblings_rpc, path)));
        level("group_has_them", implies(group.valid, is_within(threads, group.mask)));
        level("group_is_parted", implies(group.valid, parts[0].ne(group.mask) & parts[1].ne(group.mask)));
        let met = group.mask & warp.threads & !threads;
        level("group_knows_where", implies(group.valid & met.any(), rpc.known));
        if let Some(before) = before {
            level("sibling_is_taken_or_there", taken | path.valid);
            level("forwarded_was_taken", implies(forwarded.any(), taken));
            level("one_was_forwarded", !(before.group & before.sibling));
            level("what_was_forwarded_was_taken", implies(before.group | before.sibling, before.taken));
            level("forwards_from_a_group", implies(taken | before.group, group.valid));
        }
    }
}

/// Each level takes a thread: those of all paths that may run, less the paths, and the levels are never more than
/// `lanes - 1`; nor were they when a level was pushed.
fn levels_suffice(m: Builder, s: &Shape, warp: &Warp) {
    const BITS: Width = 8;
    let number = |n: u32| m.lit(n, BITS);
    let spare = |path: Signal| path.count_ones().zext(BITS) - path.any().zext(BITS);
    let mut suspended = number(0);
    for (k, Held { valid, level, above, sibling }) in warp.levels.iter().enumerate() {
        let k = k as u32;
        let parted = spare(level.group.mask) + spare(*sibling | above.forwarded) + suspended;
        let fits = (parted + number(k)).lt(s.lanes);
        m.assert(
            &warp.name(&format!("level_{k}_is_one_of_all")),
            implies(warp.runs() & *valid & level.group.valid, fits),
        );
        suspended = suspended + spare(*sibling).only_if(*valid);
    }
    let top = spare(threads_of(warp.top.left)) + spare(threads_of(warp.top.right)) + suspended;
    let fits = (top + warp.count.zext(BITS)).lt(s.lanes);
    m.assert(&warp.name("has_levels_left"), implies(warp.runs(), fits));
}

/// What holds of a warp's top, and of the level that was read for it.
fn between_turns(m: Builder, s: &Shape, warp: &Warp, passed: Signal, inside: &Inside) {
    let Warp { live, waiting, popping, top, count, threads, active, owed, .. } = *warp;
    let all = |what: &str, holds: Signal| m.assert(&warp.name(what), holds);
    let one_state =
        implies(waiting | popping, live) & !(waiting & popping) & implies(warp.refused, live & !waiting & !popping);
    all("is_in_one_state", one_state);
    let runs = warp.runs();
    let (left, right) = (threads_of(top.left), threads_of(top.right));
    let forwarded = top.forwarded.unwrap_or(no_forwarded(top.rpc));
    let on = |right: Signal| !forwarded.is(right);
    let (no, one) = (m.lit(0u32, 1), m.lit(1u32, 1));
    let some = (top.left.valid & on(no)) | (top.right.valid & on(one));
    all("pops_without_sides", implies(runs, popping.eq(!some)));
    all("forwarded_is_a_side", implies(runs & forwarded.valid, forwarded.right.mux(top.right, top.left).valid));
    all("does_not_pop_what_is_owed", !(popping & owed.any()));
    all("pops_a_level", implies(popping, count.any()));
    all("count_is_bounded", implies(runs, count.le(warp.levels.len() as u32)));
    all("sides_are_apart", implies(runs, !(left & right).any()));
    let live_ones = |path: Sibling<Signal>| implies(path.valid, path.mask.any()) & is_within(threads_of(path), threads);
    all("sides_are_live", implies(runs, live_ones(top.left) & live_ones(top.right)));
    all("waits_together", implies(waiting, (top.left.valid ^ top.right.valid) & (left | right).eq(threads)));
    let valid = cat(&[top.left.valid, top.right.valid]);
    all("active_are_its_sides", implies(!warp.refused, active.eq(valid.only_if(live))));
    let none_waits = !(owed & !active).any() & !(waiting & owed.any());
    all("owed_are_active", implies(!warp.refused, none_waits));
    all("owed_is_one", owed.eq(owed.lowest_one()));
    let replays = inside.replays(m).slice(2 * warp.number, 2);
    all("replays_are_owed", implies(!warp.refused, is_within(replays, owed)));
    let stops = stops_of(m, s, inside, warp.number);
    let rpcs = [no, one].map(|right| rpc_of(&top, right));
    let ahead = |path: Sibling<Signal>, rpc: Rpc<Signal>| path.valid & rpc.known & rpc.reached(rpc.pc, path.depth);
    let sides = stops.left.eq(ahead(top.left, rpcs[0])) & stops.right.eq(ahead(top.right, rpcs[1]));
    let pcs = stops.pc.eq(rpcs[0].pc) & stops.right_pc.unwrap_or(stops.pc).eq(rpcs[1].pc);
    all("stops_where_it_meets", implies(live, sides & pcs));
    let unknown = cat(&[is_unknown(rpcs[0], top.left), is_unknown(rpcs[1], top.right)]);
    all("sides_are_elsewhere_than_what_is_unknown", implies(runs & !waiting, !unknown.any()));
    let mut rpcs = rpcs.into_iter();
    let are_there = warp.sides().map(|(path, slot)| {
        let rpc = rpcs.next().expect("two sides");
        path.valid & rpc.reached(slot.runs.mux(slot.pc, path.pc), path.depth)
    });
    all("sides_are_on_their_way", implies(runs & !waiting & !passed, !cat(&are_there).any()));
    let pops = inside.store.claim.q.pop & warp.is(warp_of(s, inside.store.claim.q.slot));
    let heads: Vec<Signal> =
        (1..).zip(&warp.levels).map(|(k, held)| count.eq(k as u32) & same(held.level, inside.popped.head)).collect();
    if heads.is_empty() {
        all("head_was_read", !pops);
    } else {
        all("head_was_read", implies(pops, popping & cat(&heads).any()));
    }
    if let Some([lends, offered]) = warp.lends {
        let room = live & (top.left.valid ^ top.right.valid) & !forwarded.taken;
        all("lends_if_it_can", lends.eq(room & !warp.refused) & !(lends & (popping | waiting)));
        all("head_was_offered", implies(offered, lends & cat(&heads).any()));
    }
}

/// Where a warp's sides stop, once what was found in the cycle before is written.
fn stops_of(m: Builder, s: &Shape, inside: &Inside, warp: u32) -> Stops<Signal> {
    let at = m.lit(warp, s.warp_bits());
    let (writes, written, next) = inside.updated.next_stops;
    (writes & written.eq(at)).mux(next, inside.store.stops.read(at))
}

/// Where a side that runs stops is written already, but in the cycle behind its steering.
fn stops_are_there(m: Builder, s: &Shape, warp: &Warp, just: Signal, inside: &Inside) {
    let (is, will_be) =
        (inside.store.stops.read(m.lit(warp.number, s.warp_bits())), stops_of(m, s, inside, warp.number));
    let of = |stops: Stops<Signal>, side: u32| match side {
        0 => (stops.left, stops.pc),
        _ => (stops.right, stops.right_pc.unwrap_or(stops.pc)),
    };
    for side in [0, 1] {
        let ((is, at), (will_be, later)) = (of(is, side), of(will_be, side));
        let same = is.eq(will_be) & implies(is, at.eq(later));
        let runs = warp.live & !warp.refused & warp.slots[side as usize].runs & !just.bit(2 * warp.number + side);
        m.assert(&warp.name(&format!("side_{side}_has_its_stop")), implies(runs, same));
    }
}

/// A path at the call depth where threads reconverge wherever the first of them comes to, while none has.
fn is_unknown(rpc: Rpc<Signal>, path: Sibling<Signal>) -> Signal {
    path.valid & !rpc.known & rpc.reached(path.pc, path.depth)
}

/// Where the path of a side reconverges with others.
fn rpc_of(top: &Top<Signal>, right: Signal) -> Rpc<Signal> {
    top.forwarded.map_or(top.rpc, |forwarded| (forwarded.valid & forwarded.right.eq(right)).mux(forwarded.rpc, top.rpc))
}

fn same(a: Level<Signal>, b: Level<Signal>) -> Signal {
    cat(&a.leaves().iter().zip(b.leaves()).map(|(a, b)| a.eq(b)).collect::<Vec<_>>()).all()
}

/// A side of a warp that does not wait runs, since it was steered once, unless it is owed that; and only sides that run
/// are flushed.
fn steers(m: Builder, warp: &Warp, told: &UnitIn<Signal>, out: &UnitOut<Signal>) {
    let dual = out.more.two_paths.expect("it has two sides");
    for (side, (path, slot)) in warp.sides().into_iter().enumerate() {
        let number = 2 * warp.number + side as u32;
        let is = |slot: Signal| slot.eq(slot.literal(number));
        let name = |what: &str| format!("slot_{number}_{what}");
        let (acts, flushed) = (told.outcome.valid & is(told.outcome.slot), dual.flush & is(dual.flushed));
        let steered = out.steer.valid & is(out.steer.slot);
        let side = side as u32;
        let should = warp.active.bit(side) & !warp.owed.bit(side) & !warp.waiting;
        m.assert(&name("runs_if_it_is_active"), implies(!warp.refused, slot.runs.eq(should)));
        m.assert(&name("is_steered_once"), implies(!warp.refused & steered, !slot.runs | acts | flushed));
        m.assert(&name("is_flushed_while_it_runs"), implies(flushed, slot.runs & !acts));
        let there = slot.pc.eq(path.pc);
        m.assert(&name("begins_where_it_was_steered"), implies(!warp.refused & slot.runs & !slot.issued, there));
    }
}

/// One thread's pc and depth, in the place that is its.
fn follow(
    m: Builder,
    s: &Shape,
    (i, just): (&ProofIn<Signal>, Signal),
    warps: &[Warp],
    inside: &Inside,
    told: &UnitIn<Signal>,
    out: &UnitOut<Signal>,
) {
    let thread = Followed::any(m, s, i);
    let dual = out.more.two_paths.expect("it has two sides");
    let is_in = |path: Sibling<Signal>| path.valid & thread.is_in(path.mask);
    let of_sides = |f: &dyn Fn(Sibling<Signal>, Slot, u32) -> Signal| {
        let of_side = |warp: &Warp, side: u32| {
            let (path, slot) = warp.sides()[side as usize];
            warp.live & warp.is(thread.warp) & is_in(path) & f(path, slot, 2 * warp.number + side)
        };
        let sides = [0, 1].map(|side| cat(&warps.iter().map(|warp| of_side(warp, side)).collect::<Vec<_>>()).any());
        cat(&sides)
    };
    wire!(acts = told.outcome.valid & of_sides(&|_, _, n| told.outcome.slot.eq(told.outcome.slot.literal(n))).any());
    wire!(issues = of_sides(&|_, slot, _| slot.issues).any());
    let is = thread.moved(m, s, told, out, (acts, issues));
    let memory = told.outcome.kind.eq(OutcomeKind::Memory);
    let unserved = m.reg("unserved", 1).reset(0u32);
    unserved.next(pick([(acts, is.stays & memory), (issues | is.begins, m.lit(0u32, 1))], unserved.q));
    let Whereabouts { alive, pc, depth, waits, begins, .. } = is;
    let refused = cat(&warps.iter().map(|warp| warp.is(thread.warp) & warp.refused).collect::<Vec<_>>()).any();

    for warp in warps {
        let mine = warp.is(thread.warp) & !warp.refused;
        m.assert(&warp.name("thread_has_ended_with_it"), implies(mine & !warp.live, !alive));
        let all = |what: &str, holds: Signal| m.assert(&warp.name(what), implies(mine & warp.live, holds));
        all("thread_is_live", alive.eq(thread.is_in(warp.threads)));
        all("thread_waits", implies(alive, waits.eq(warp.waits())));
        let mut places = Vec::new();
        for (path, slot) in warp.sides() {
            places.push((is_in(path), [slot.runs.mux(slot.pc, path.pc), path.depth]));
        }
        for Held { valid, level, above, .. } in warp.levels.iter().rev() {
            let Level { sibling, group, .. } = *level;
            let Above { rpc, taken, .. } = *above;
            let of_group = rpc.returns.mux(rpc.depth - 1, rpc.depth);
            places.push((*valid & is_in(sibling) & !taken, [sibling.pc, sibling.depth]));
            places.push((*valid & group.valid & thread.is_in(group.mask), [rpc.pc, of_group]));
        }
        let is_somewhere = cat(&places.iter().map(|place| place.0).collect::<Vec<_>>()).any();
        let [at, of] = pick(places, [pc, depth]);
        all("thread_keeps_its_place", implies(alive, is_somewhere & at.eq(pc) & of.eq(depth)));
    }

    // The scoreboard is told when a thread comes to a side.
    wire!(sides = of_sides(&|_, _, _| m.lit(1u32, 1)));
    let changed = begins | (dual.changed.valid & dual.changed.warp.eq(thread.warp));
    let comes = sides & !m.pipe_reset("were", sides);
    m.assert("thread_comes_with_a_change", implies(comes.any() & !refused, m.pipe_reset("has_changed", changed)));
    // What the front end asks about a side.
    let issue = i.unit.issue_slot;
    let asked = of_sides(&|_, slot, n| slot.runs & issue.eq(issue.literal(n)));
    m.assert("thread_is_in_the_mask", implies(asked.any(), thread.is_in(out.mask)));
    let decode = i.unit.decode_slot;
    let rpc = rpc_of(&inside.store.tops.read(thread.warp), side_of(s, decode));
    let stops = rpc.valid & rpc.known & rpc.reached(rpc.pc, depth);
    let right = out.stop.valid.eq(stops) & implies(stops, out.stop.pc.eq(rpc.pc));
    // Nothing is decoded of a slot in the cycle behind its steering.
    let asked = of_sides(&|_, slot, n| slot.runs & !just.bit(n) & decode.eq(decode.literal(n)));
    m.assert("thread_stops_where_it_meets", implies(asked.any() & !refused, right));
    // Replays are of threads that an access has left.
    let replays = of_sides(&|_, _, n| inside.replays(m).bit(n));
    m.assert("thread_that_is_owed_a_replay", implies(replays.any() & !refused, unserved.q));
    let steered =
        m.pipe_reset("replayed", out.steer.slot.decode(s.slots()).only_if(out.steer.valid & out.steer.replay));
    let replayed = of_sides(&|_, _, n| steered.bit(n));
    m.assert("thread_that_is_replayed", implies(replayed.any() & !refused, unserved.q));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Divergence;
    use crate::proof::testing::holds_at_random;
    use crate::shape::Replay;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps, barriers) in [(1, 1, false), (2, 2, true), (4, 2, true), (8, 2, false)] {
            for (replay, path_forwarding) in
                [(Replay::Serialise, false), (Replay::Split, false), (Replay::Serialise, true), (Replay::Split, true)]
            {
                let s = Shape { program: 16, depth_bits: 1, barriers, ..Shape::new(lanes, warps) };
                let s = Shape { replay, path_forwarding, ..s.with_divergence(Divergence::DUAL_PATH) };
                holds_at_random(&dual_path_proof(&s).check().unwrap().netlist, 20_000);
            }
        }
    }
}

//! The stack as a whole: whatever it is told about reconvergence, every live thread of a warp is in exactly one place,
//! which has the pc and call depth that outcomes gave the thread; a warp is steered once, to the top, in bounded time.
//!
//! A thread's place is the topmost that holds it: the top, or a level's sibling, those at its likely point, or its
//! group. One thread is followed, any of them. The other assertions say of every warp, from its top down, what makes
//! that inductive. With all levels; a warp whose outcome is refused stays as it is, since the core stops.

use super::state::Words;
use super::{Inside, described};
use crate::divergence::levels::{Gathering, Level, Likely, Rpc, Top, has_likely, levels};
use crate::divergence::proof::{
    Followed, ProofIn, Turns, Waits, Whereabouts, held_since, in_time, legal, with_announced,
};
use crate::divergence::{Outcome, UnitIn, UnitOut, depth_after};
use crate::pipeline::timing::ISSUE_TO_RESOLVE;
use crate::proof::{cover, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// A warp's state.
struct Warp {
    number: u32,
    live: Signal,
    waiting: Signal,
    /// It was woken in the cycle before.
    woken: Signal,
    popping: Signal,
    refused: Signal,
    threads: Signal,
    top: Top<Signal>,
    count: Signal,
    /// From the lowest.
    levels: Vec<Held>,
}

/// A level of a warp.
struct Held {
    /// It is one of `count`.
    valid: Signal,
    level: Level<Signal>,
    gathering: Gathering<Signal>,
    /// Those at the likely point.
    gathered: Signal,
    /// Where the threads above it meet, and are likely to.
    rpc: Rpc<Signal>,
    point: Likely<Signal>,
    /// The threads above it.
    above: Signal,
}

/// The stack with every legal input: outcomes of warps that run, with threads of the top and anything about
/// reconvergence; starts of idle slots, wakes of those that wait; `hold` is obeyed.
pub fn stack_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    module("stack_proof", ProofIn::shape(s), |m, i| {
        let unit_in = m.deferred("unit_in", UnitIn::shape(s));
        let (out, inside) = described(m, s, unit_in.value);
        let refused = m.reg("refused", s.warps).reset(0u32);
        let warps: Vec<Warp> = (0..s.warps).map(|number| warp(m, s, number, refused.q, &inside)).collect();
        let late = held_since(m, out.hold, ISSUE_TO_RESOLVE);
        let may = !late[late.len() - 1];
        let i = with_announced(m, s, &i, out.steer, may, |slot| inside.store.tops.read(slot).depth);
        let number = i.unit.outcome.slot;
        let runs = inside.store.live.q & !inside.store.waiting() & !inside.store.popping.q & !refused.q;
        let top = inside.store.tops.read(number);
        let told = legal(m, s, &i, (inside.store.live.q, out.waiting), runs.select(number, 1), (top.mask, top.depth));
        unit_in.drive(told);
        let refuses = out.more.refused.map_or(m.lit(0u32, 1), |refused| refused.valid & told.outcome.valid);
        refused.next(refused.q | (told.outcome.slot.decode(s.warps) & refuses.repeat(s.warps)));

        for warp in &warps {
            from_the_top_down(m, s, warp);
            between_turns(m, warp, &inside);
            steers(m, warp, &told, &out);
        }
        claims(m, s, &told, &inside);
        let waits = |warp: &Warp| {
            let Warp { popping, count, live, .. } = *warp;
            Waits { popping, count, waiting: warp.waits(), one: !live }
        };
        let waits: Vec<Waits> = warps.iter().map(waits).collect();
        let turns = Turns {
            outcome: inside.store.claim.q.outcome,
            wake: inside.store.claim.q.wake,
            other: inside.store.claim.q.pop,
        };
        in_time(m, levels(s), &waits, inside.store.popping.q.any(), turns, (out.hold, &late, inside.outcomes));
        follow(m, s, &i, &warps, &told, &out);

        cover(m, "ends", m.pipe_reset("was_live", inside.store.live.q.any()) & !inside.store.live.q.any());
        let any = |f: &dyn Fn(&Warp) -> Signal| cat(&warps.iter().map(f).collect::<Vec<_>>()).any();
        if s.lanes > 1 {
            cover(m, "all_levels", any(&|warp| warp.live & warp.count.eq(levels(s))));
            cover(m, "pops", inside.store.claim.q.pop & out.steer.valid);
            cover(m, "meets", out.events.merges.any());
        }
        if has_likely(s) {
            let gathers =
                |warp: &Warp| cat(&warp.levels.iter().map(|k| k.valid & k.gathered.any()).collect::<Vec<_>>());
            cover(m, "gathers", any(&|warp| warp.live & gathers(warp).any()));
        }
        if s.barriers {
            cover(m, "wakes", told.wake.valid & out.wake_ready);
        }
        out
    })
}

fn warp(m: Builder, s: &Shape, number: u32, refused: Signal, inside: &Inside) -> Warp {
    let at = m.lit(number, s.warp_bits());
    let (top, count) = (inside.store.tops.read(at), inside.store.counts.read(at));
    let (nobody, nowhere) = (m.lit(0u32, s.lanes), m.zero(Likely::shape(s)));
    let (mut above, mut rpc, mut point) = (top.mask, top.rpc, top.likely.unwrap_or(nowhere));
    let entry_bits = index_width(levels(s));
    let mut held = Vec::new();
    for k in (0..levels(s)).rev() {
        let entry = m.lit(number << entry_bits | k, entry_bits + s.warps.ilog2());
        let valid = count.gt(k);
        let level = inside.store.levels.as_ref().expect("it has levels").read(entry);
        let none = Gathering { valid: m.lit(0u32, 1), outer: nowhere };
        let gathering = level.likely.unwrap_or(none);
        let gathered = inside.store.gathered.as_ref().map_or(nobody, |gathered| gathered.read(entry));
        let gathered = gathered.only_if(gathering.valid);
        held.push(Held { valid, level, gathering, gathered, rpc, point, above });
        let below =
            level.group.valid.mux(level.group.mask, above | level.sibling.mask.only_if(level.sibling.valid) | gathered);
        above = valid.mux(below, above);
        rpc = (valid & level.group.valid).mux(level.group.rpc, rpc);
        point = (valid & (level.group.valid | gathering.valid)).mux(gathering.outer, point);
    }
    let warp = Warp {
        number,
        live: inside.store.live.q.bit(number),
        waiting: inside.store.waiting().bit(number),
        woken: inside.store.claim.q.wake & inside.store.claim.q.slot.eq(at),
        popping: inside.store.popping.q.bit(number),
        refused: refused.bit(number),
        threads: inside.store.threads.read(at),
        top,
        count,
        levels: held.into_iter().rev().collect(),
    };
    let all = |what: &str, holds: Signal| m.assert(&warp.name(what), implies(warp.runs(), holds));
    all("lowest_has_all", !(warp.threads & !above).any());
    all("lowest_meets_nobody", !rpc.valid & !point.valid);
    let of_the_unit = inside.ghost_live.read(at);
    all("has_its_threads", warp.threads.eq(of_the_unit));
    warp
}

impl Warp {
    fn name(&self, what: &str) -> String {
        format!("slot_{}_{what}", self.number)
    }

    fn runs(&self) -> Signal {
        self.live & !self.refused
    }

    /// It waits until it is woken.
    fn waits(&self) -> Signal {
        self.waiting & !self.woken
    }

    fn is(&self, slot: Signal) -> Signal {
        slot.eq(slot.literal(self.number))
    }
}

/// What was chosen in the cycle before, and the words that were read for it.
fn claims(m: Builder, s: &Shape, told: &UnitIn<Signal>, inside: &Inside) {
    let (claim, words) = (inside.store.claim.q, inside.store.words.q);
    let slot = claim.slot;
    m.assert("claimed_slot_is_there", slot.eq(index_of(s.warps, slot)));
    let one = !(claim.outcome & (claim.wake | claim.pop)) & !(claim.wake & claim.pop);
    m.assert("nothing_else_is_claimed", one);
    m.assert("claimed_wake_is_of_one_that_waits", implies(claim.wake, inside.store.waiting().select(slot, 1)));
    let Outcome { valid: comes, slot: of, call, ret, .. } = told.outcome;
    m.assert("announced_outcome_is_claimed", implies(claim.outcome, slot.eq(of)));
    let used = comes | claim.wake | claim.pop;
    let depth = inside.store.tops.read(slot).depth;
    let after = depth_after(claim.outcome & call, claim.outcome & ret, depth);
    let read = Words {
        top: inside.store.tops.read(slot),
        after,
        threads: inside.store.threads.read(slot),
        count: inside.store.counts.read(slot),
    };
    m.assert("words_of_the_claim", implies(used, read.same_as(words)));
}

fn is_within(part: Signal, whole: Signal) -> Signal {
    !(part & !whole).any()
}

/// Whether threads at this place have come to the likely point of a group that meets at `rpc`.
fn is_at(point: Likely<Signal>, rpc: Rpc<Signal>, pc: Signal, depth: Signal) -> Signal {
    point.valid & pc.eq(point.pc) & depth.eq(rpc.depth)
}

/// Levels part the threads above them strictly, threads that have met know where, and nobody is where they reconverge
/// without being there.
fn from_the_top_down(m: Builder, s: &Shape, warp: &Warp) {
    for (k, held) in warp.levels.iter().enumerate() {
        let Held { level, gathering, gathered, rpc, point, above, .. } = *held;
        let (sibling, group) = (level.sibling, level.group);
        let level = |what: &str, holds: Signal| {
            m.assert(&warp.name(&format!("level_{k}_{what}")), implies(warp.runs() & held.valid, holds));
        };
        level("has_something", sibling.valid | group.valid | gathering.valid);
        level("meets", rpc.valid & (rpc.returns | rpc.known));
        let of_sibling = sibling.mask.only_if(sibling.valid);
        level("sibling_is_apart", !(of_sibling & (above | gathered)).any() & is_within(of_sibling, warp.threads));
        let is_there = rpc.reached(sibling.pc, sibling.depth) | is_at(point, rpc, sibling.pc, sibling.depth);
        level("sibling_is_on_its_way", implies(sibling.valid, sibling.mask.any() & !is_there));
        let all = above | of_sibling | gathered;
        level("group_has_them", implies(group.valid, is_within(all, group.mask)));
        let parted = above.ne(group.mask) & of_sibling.ne(group.mask);
        level("group_is_parted", implies(group.valid, parted));
        let met = group.mask & warp.threads & !all;
        level("group_knows_where", implies(group.valid & met.any(), rpc.known));
        if has_likely(s) {
            let its_own = point.valid & point.level.eq(k as u32);
            level("point_is_its_own", implies(gathering.valid, its_own));
            level("point_is_of_the_group", implies(group.valid & !gathering.valid, !point.valid));
            level("gathered_are_apart", !(gathered & above).any() & is_within(gathered, warp.threads));
            let before = gathered.any() & !rpc.reached(point.pc, rpc.depth);
            level("gathered_are_some", implies(gathering.valid & !sibling.valid, gathered.any()));
            level("gathered_are_not_there", implies(gathered.any(), before));
        }
    }
}

/// What holds of a warp's top, and of the level that was read for it.
fn between_turns(m: Builder, warp: &Warp, inside: &Inside) {
    let Warp { live, waiting, popping, top, count, threads, .. } = *warp;
    let all = |what: &str, holds: Signal| m.assert(&warp.name(what), holds);
    let one_state =
        implies(waiting | popping, live) & !(waiting & popping) & implies(warp.refused, !waiting & !popping);
    all("is_in_one_state", one_state);
    all("count_is_bounded", implies(warp.runs(), count.le(warp.levels.len() as u32)));
    all("pops_a_level", implies(popping, count.any()));
    let runs = warp.runs();
    all("top_is_live", implies(runs, is_within(top.mask, threads) & (popping | top.mask.any())));
    let is_there = top.rpc.reached(top.pc, top.depth);
    all("waits_together", implies(waiting, top.mask.eq(threads)));
    let point = top.likely.map_or(m.lit(0u32, 1), |likely| is_at(likely, top.rpc, top.pc, top.depth));
    all("top_is_on_its_way", implies(runs & !popping & !waiting, !is_there & !point));
    all("top_is_there", implies(popping & top.mask.any(), is_there & top.rpc.known));
    let pops = inside.store.claim.q.pop & warp.is(inside.store.claim.q.slot);
    let heads: Vec<Signal> =
        (1..).zip(&warp.levels).map(|(k, held)| count.eq(k as u32) & same(held.level, inside.head)).collect();
    if !heads.is_empty() {
        all("head_was_read", implies(pops, popping & cat(&heads).any()));
    } else {
        all("head_was_read", !pops);
    }
}

fn same(a: Level<Signal>, b: Level<Signal>) -> Signal {
    cat(&a.leaves().iter().zip(b.leaves()).map(|(a, b)| a.eq(b)).collect::<Vec<_>>()).all()
}

/// A warp is steered once after each outcome, start or wake, when it does not pop any more, and to its top; unless it
/// waits, has ended or is refused.
fn steers(m: Builder, warp: &Warp, told: &UnitIn<Signal>, out: &UnitOut<Signal>) {
    let acts = told.outcome.valid & warp.is(told.outcome.slot);
    let begins = told.start.valid & out.start_ready & warp.is(told.start.slot);
    let wakes = told.wake.valid & out.wake_ready & warp.is(told.wake.slot);
    let steered = out.steer.valid & warp.is(out.steer.slot);
    let owes = m.reg(&warp.name("owes"), 1).reset(0u32);
    owes.next((owes.q | acts | begins | wakes) & !steered);
    m.assert(&warp.name("is_steered"), implies(warp.runs(), owes.q.eq(warp.popping | warp.waiting)));
    m.assert(&warp.name("is_steered_once"), implies(steered, owes.q | acts | begins | wakes));
    let to_top = warp.live & warp.top.pc.eq(m.pipe(&warp.name("steered_pc"), out.steer.pc));
    let was_steered = m.pipe_reset(&warp.name("steered"), steered);
    m.assert(&warp.name("is_steered_to_its_top"), implies(was_steered & !warp.refused, to_top));
}

/// One thread's pc and depth, in the place that is its.
fn follow(m: Builder, s: &Shape, i: &ProofIn<Signal>, warps: &[Warp], told: &UnitIn<Signal>, out: &UnitOut<Signal>) {
    let thread = Followed::any(m, s, i);
    let runs = |warp: &Warp| warp.is(thread.warp) & thread.is_in(warp.top.mask);
    let runs = cat(&warps.iter().map(runs).collect::<Vec<_>>()).any();
    wire!(acts = told.outcome.valid & told.outcome.slot.eq(thread.warp) & runs);
    let Whereabouts { alive, pc, depth, waits, .. } = thread.moved(m, s, told, out, (acts, m.lit(0u32, 1)));

    for warp in warps {
        let mine = warp.is(thread.warp) & !warp.refused;
        let dead = implies(mine & !warp.live, !alive);
        m.assert(&warp.name("thread_has_ended_with_it"), dead);
        m.assert(&warp.name("thread_is_live"), implies(mine & warp.live, alive.eq(thread.is_in(warp.threads))));
        let waits = implies(mine & warp.live & alive, waits.eq(warp.waits()));
        m.assert(&warp.name("thread_waits"), waits);
        let mut places = vec![(thread.is_in(warp.top.mask), [warp.top.pc, warp.top.depth])];
        for Held { valid, level, gathered, rpc, point, .. } in warp.levels.iter().rev() {
            let Level { sibling, group, .. } = *level;
            let of_group = rpc.returns.mux(rpc.depth - 1, rpc.depth);
            places.push((*valid & sibling.valid & thread.is_in(sibling.mask), [sibling.pc, sibling.depth]));
            places.push((*valid & thread.is_in(*gathered), [point.pc, rpc.depth]));
            places.push((*valid & group.valid & thread.is_in(group.mask), [rpc.pc, of_group]));
        }
        let is_somewhere = cat(&places.iter().map(|place| place.0).collect::<Vec<_>>()).any();
        let [at, of] = pick(places, [pc, depth]);
        let right = is_somewhere & at.eq(pc) & of.eq(depth);
        m.assert(&warp.name("thread_keeps_its_place"), implies(mine & warp.live & alive, right));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Divergence;
    use crate::proof::testing::holds_at_random;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps, barriers) in [(1, 1, false), (2, 2, true), (4, 2, true), (8, 2, false)] {
            for likely in [false, true] {
                let s = Shape { program: 16, depth_bits: 1, barriers, likely, ..Shape::new(lanes, warps) };
                holds_at_random(&stack_proof(&s.with_divergence(Divergence::STACK)).check().unwrap().netlist, 20_000);
            }
        }
    }
}

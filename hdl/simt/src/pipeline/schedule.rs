//! The choice of a slot to issue among those that could: [`Schedule`].
//!
//! State and logic stand in the module that asks ([`choose`]), except for the ages of warps.
//!
//! In the cycle after its issue a slot cannot issue, since its next instruction is looked up in the scoreboard. That is
//! no stall: whoever issues in this cycle does not become the last one.
//!
//! **Nobody waits for ever** that could issue. Loose round robin comes to every slot within as many issues as there are
//! slots. A slot that runs on stalls behind its next branch or jump at the latest, so sticky comes to every slot within
//! as many such runs. Greedy then oldest, the oldest block first, and a block until it stalls would leave a slot aside
//! for as long as others find work, such as waiting for what that slot must store; so every [`TURN_EVERY`] cycles it is
//! some slot's *turn*: slots with an instruction get it one after the other, and whoever has it goes first as soon as
//! it can. It ends with one instruction, after which greed is for this slot.
//!
//! Where a warp has two slots, all of this is of slots. Under [`PathScheduler::SideFirst`] it is of warps, and of a warp's
//! two sides that could go the one goes that did not issue last: a side that can go only now and then is promised nothing
//! before its sibling is no more.
//!
//! Three choose among blocks first (`thread-block-compaction.txt` §6.2); among the slots of a block it is always the
//! next one after the last.
//!
//! A slot that can go only now and then, because others take the unit that it needs, may be missed under loose round
//! robin, sticky and block round robin again and again; a turn lasts until it gets it. With [`Shape::fair`], these have
//! turns, too.

use super::timing::TURN_EVERY;
use crate::arbiter::{places_above, round_robin};
use crate::block::same_group;
use crate::divergence::Divergence;
use crate::divergence::interface::{by_side, by_slot};
use crate::shape::{PathScheduler, Schedule, Shape};
use heddle_hdl::{all, each, elements, prelude::*};

/// What the choice depends on.
#[derive(Clone, Copy)]
pub struct Candidates {
    /// One bit per slot: it has an instruction, which goes some day even if no other slot goes any more.
    pub waiting: Signal,
    /// One bit per slot: its instruction, which is waiting, can go now, if any can.
    pub ready: Signal,
    /// 1 bit: an instruction can go now.
    pub open: Signal,
    /// One bit per warp: it is started, at most one in a cycle; no slot of it is ready before. Where [`by_age`] says
    /// so.
    pub starts: Option<Signal>,
    /// See [`crate::block::Grid::group`]. Where [`by_block`] says so.
    pub group: Option<Signal>,
}

/// Whether the choice depends on when warps were started.
pub fn by_age(s: &Shape) -> bool {
    matches!(s.schedule, Schedule::GreedyThenOldest | Schedule::BlockAge) && s.warps > 1
}

/// Whether it depends on the blocks of slots.
pub fn by_block(s: &Shape) -> bool {
    matches!(s.schedule, Schedule::BlockAge | Schedule::BlockRoundRobin | Schedule::BlockSticky) && s.warps > 1
}

/// One of the slots that are ready (one-hot, none if none is), and whether there is one.
pub fn choose(m: Builder, s: &Shape, candidates: Candidates) -> (Signal, Signal) {
    match s.path_scheduler {
        PathScheduler::SideFirst => side_first(m, s, candidates),
        _ => among(m, s, candidates),
    }
}

/// Of each warp the side that could go, of both the one that did not issue last; and of those, a warp's, as if it had no
/// other. (`dual-path-execution.txt` §3.3)
fn side_first(m: Builder, s: &Shape, candidates: Candidates) -> (Signal, Signal) {
    let went_right = m.reg("went_right", s.warps).reset(0u32);
    let [left, right] = by_side(candidates.ready, 1);
    wire!(goes_right = right & !(left & went_right.q));
    let of_warps = |slots: Signal| {
        let [left, right] = by_side(slots, 1);
        left | right
    };
    let of_warp = Candidates { waiting: of_warps(candidates.waiting), ready: left | right, ..candidates };
    // The schedule of a core whose warps have one path each.
    let one_path = Shape { path_scheduler: PathScheduler::Full, ..s.clone().with_divergence(Divergence::STACK) };
    let (warp, any) = among(m, &one_path, of_warp);
    went_right.next((went_right.q & !warp) | (warp & goes_right));
    m.cover("both_sides_could_go", (warp & left & right).any());
    (by_slot(warp & !goes_right, warp & goes_right), any)
}

/// One of the slots.
fn among(m: Builder, s: &Shape, candidates: Candidates) -> (Signal, Signal) {
    let Candidates { ready, open, .. } = candidates;
    let can_go = Candidates { ready: ready.only_if(open), ..candidates };
    match s.schedule {
        Schedule::GreedyThenOldest if s.slots() > 1 => greedy_then_oldest(m, s, can_go),
        Schedule::Sticky => sticky(m, s, can_go),
        _ if by_block(s) => block_first(m, s, can_go),
        _ => loose_round_robin(m, s, candidates, can_go),
    }
}

/// Whether a slot may be missed again and again without [turns](in_turn), and that is to be so.
fn without_turns(s: &Shape) -> bool {
    !s.fair || s.slots() == 1
}

fn loose_round_robin(m: Builder, s: &Shape, candidates: Candidates, can_go: Candidates) -> (Signal, Signal) {
    let Candidates { ready, open, .. } = candidates;
    let after = m.reg("after", s.slots()).reset(0u32);
    wire!(otherwise = round_robin(ready, after.q).only_if(open));
    wire!(any = ready.any() & open);
    let choice = if without_turns(s) { otherwise } else { in_turn(m, s, can_go, otherwise).0 };
    after.next_if(any, places_above(choice));
    (choice, any)
}

/// Round robin that begins at the last slot and not above it.
fn sticky(m: Builder, s: &Shape, candidates: Candidates) -> (Signal, Signal) {
    let ready = candidates.ready;
    let from = m.reg("from", s.slots()).reset(0u32);
    wire!(otherwise = round_robin(ready, from.q));
    let choice = if without_turns(s) { otherwise } else { in_turn(m, s, candidates, otherwise).0 };
    wire!(any = ready.any());
    let last = from.q.lowest_one();
    from.next_if(any & !issued_just_now(m, choice, last), choice | places_above(choice));
    m.cover("stays", (choice & last).any() & (ready & !choice).any());
    m.cover("goes_on", any & from.q.any() & !(choice & last).any());
    (choice, any)
}

fn greedy_then_oldest(m: Builder, s: &Shape, candidates: Candidates) -> (Signal, Signal) {
    let oldest = oldest(m, s, candidates);
    let ready = candidates.ready;
    let last = m.reg("last", s.slots()).reset(0u32);
    wire!(last_ready = ready & last.q);
    wire!(runs_on = last_ready.any());
    wire!(otherwise = runs_on.mux(last_ready, oldest));
    wire!(any = ready.any());
    let (choice, takes_turn) = in_turn(m, s, candidates, otherwise);
    last.next_if(any & (takes_turn | !issued_just_now(m, choice, last.q)), choice);
    m.cover("runs_on_before_an_older_one", runs_on & !(last_ready & oldest).any());
    m.cover("oldest_is_not_the_lowest", !runs_on & !oldest.eq(ready.lowest_one()));
    m.cover("turn_changes_the_choice", takes_turn & !choice.eq(otherwise));
    (choice, any)
}

/// A slot of the block that is preferred, the next one after the last of that block.
fn block_first(m: Builder, s: &Shape, candidates: Candidates) -> (Signal, Signal) {
    let Candidates { ready, group, .. } = candidates;
    let group = group.expect("blocks have a size");
    // Of a slot's number, both paths of a warp are of its block.
    let group = if s.sides() == 1 { group } else { cat(&[m.lit(1u32, 1), group]) };
    let from = |slot: Signal| {
        let one = slot.decode(s.slots());
        one | places_above(one)
    };
    wire!(any = ready.any());
    let at = (s.schedule != Schedule::BlockAge).then(|| m.reg("block", s.slot_bits()).reset(0u32));
    wire!(preferred = at.as_ref().map_or_else(|| oldest(m, s, candidates), |at| round_robin(ready, from(at.q))));
    let slot = preferred.one_hot_index();
    wire!(members = same_group(slot, group, s.slots()));
    // The last slot of each block.
    let last = m.reg("last", s.slots()).reset(0u32);
    wire!(in_block = round_robin(ready & members, places_above(last.q & members)));
    let (choice, takes_turn) = match s.schedule {
        Schedule::BlockRoundRobin if without_turns(s) => (in_block, m.lit(0u32, 1)),
        _ => in_turn(m, s, candidates, in_block),
    };
    if let Some(at) = at {
        match s.schedule {
            Schedule::BlockRoundRobin => at.next((at.q & !group) + group + 1),
            _ => {
                let of_block = same_group(at.q, group, s.slots());
                at.next_if(any & !issued_just_now(m, choice, of_block), preferred.one_hot_index() & !group);
            }
        }
    }
    let of_choice = same_group(choice.one_hot_index(), group, s.slots());
    last.next_if(any, (last.q & !of_choice) | choice);
    m.assert("a_block_has_one_last", (last.q & members).eq((last.q & members).lowest_one()));
    m.cover("a_block_goes_before_another", any & !takes_turn & (ready & !members).any());
    m.cover("several_of_a_block_could_go", any & (ready & members & !in_block).any());
    (choice, any)
}

/// 1 bit: one of the slots issued in the cycle before.
fn issued_just_now(m: Builder, choice: Signal, slots: Signal) -> Signal {
    (m.pipe_reset("issued", choice) & slots).any()
}

/// The slot of the warp that was started first, of those that are ready, and of a warp's paths the left one.
fn oldest(m: Builder, s: &Shape, candidates: Candidates) -> Signal {
    let Candidates { ready, starts, .. } = candidates;
    let oldest_of = |ready: Signal| {
        let by_start = |starts| {
            let (starts_here, ready_here) = (each(starts), each(ready));
            let rows = AgeIn { starts_here, starts: all(starts), ready_here, ready: all(ready) };
            m.replicate("age", s.warps, &age(s), rows).oldest
        };
        starts.map_or(ready, by_start)
    };
    let oldest = if s.sides() == 1 {
        oldest_of(ready)
    } else {
        let paths = elements(ready, s.sides());
        let warp = oldest_of(cat(&paths.iter().map(|paths| paths.any()).collect::<Vec<_>>()));
        cat(&(0..).zip(paths).map(|(w, paths)| paths.lowest_one().only_if(warp.bit(w))).collect::<Vec<_>>())
    };
    m.assert("one_is_oldest", oldest.any().eq(ready.any()) & !(oldest & (oldest - 1)).any());
    oldest
}

/// The choice, unless it is another slot's turn; and whether it is.
fn in_turn(m: Builder, s: &Shape, candidates: Candidates, otherwise: Signal) -> (Signal, Signal) {
    let Candidates { waiting, ready, .. } = candidates;
    let turn = m.reg("turn", s.slots()).reset(1u32);
    let due = m.reg("due", 1).reset(0u32);
    let cycles = m.reg("cycles", TURN_EVERY.ilog2()).reset(0u32);
    cycles.next(cycles.q + 1);
    wire!(turn_ready = (ready & turn.q).only_if(due.q));
    wire!(takes_turn = turn_ready.any());
    due.next((due.q & !takes_turn) | cycles.q.all());
    let following = cat(&[turn.q.bit(s.slots() - 1), turn.q.slice(0, s.slots() - 1)]);
    turn.next_if(due.q & (takes_turn | !(waiting & turn.q).any()), following);

    wire!(choice = takes_turn.mux(turn_ready, otherwise));
    m.cover("turn_waits", due.q & (waiting & !ready & turn.q).any());
    (choice, takes_turn)
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct AgeIn<T> {
    /// This warp is started / one bit per warp.
    starts_here: T,
    #[width(s.warps)]
    starts: T,
    /// This warp has a slot that is ready / one bit per warp.
    ready_here: T,
    #[width(s.warps)]
    ready: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct AgeOut<T> {
    /// This warp is ready, and no older one.
    oldest: T,
}

/// A warp's row of the matrix that says who is older than whom.
fn age(s: &Shape) -> TypedModule<AgeIn<Width>, AgeOut<Signal>> {
    module("schedule_age", AgeIn::shape(s), |m, i| {
        m.doc("Which warps are older than this one, one bit a warp; and whether it is the oldest that is ready.");
        let older = m.reg("older", s.warps);
        older.next((older.q | i.starts_here.repeat(s.warps)) & !i.starts);
        AgeOut { oldest: i.ready_here & !(i.ready & older.q).any() }
    })
}

#[cfg(test)]
mod tests;

//! The choice of a slot to issue among those that could: [`Schedule`].
//!
//! State and logic stand in the module that asks ([`choose`]), except for the ages of slots.
//!
//! **Nobody waits for ever** that could issue. Loose round robin comes to every slot within as many issues as there are
//! slots. A slot that runs on stalls behind its next branch, jump or memory instruction at the latest, so sticky comes to
//! every slot within as many such runs. Greedy then oldest alone would leave a young slot aside for as long as older ones
//! find work, such as waiting for what the young one must store; so every [`PATIENCE`] cycles it is some slot's *turn*:
//! slots with an instruction get it one after the other, and whoever has it goes first as soon as it can. It ends with
//! one instruction, after which greed is for this slot.
//!
//! A slot that can go only now and then, because others take the unit that it needs, may be missed under loose round robin
//! and sticky again and again; a turn lasts until it gets it.

use crate::arbiter::{places_above, round_robin};
use crate::shape::{Shape, name_of};
use heddle_hdl::*;

/// Who issues when several slots could.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// The next one after the last.
    LooseRoundRobin,
    /// The last one until it stalls, then the one whose warp was started first.
    GreedyThenOldest,
    /// The last one until it stalls, then the next one after it.
    Sticky,
}

impl Schedule {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Schedule)] = &[
        ("loose-round-robin", Schedule::LooseRoundRobin),
        ("greedy-then-oldest", Schedule::GreedyThenOldest),
        ("sticky", Schedule::Sticky),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Schedule::ALL, self)
    }
}

/// Cycles from one turn to the next.
pub const PATIENCE: u32 = 64;

/// What the choice depends on, one bit a slot.
#[derive(Clone, Copy)]
pub struct Slots {
    /// It has an instruction.
    pub filled: Signal,
    /// Which can go.
    pub ready: Signal,
    /// A warp is started on it, one in a cycle; no slot is ready before. Where [`by_age`] says so.
    pub starts: Option<Signal>,
}

/// Whether the choice depends on when warps were started.
pub fn by_age(s: &Shape) -> bool {
    s.schedule == Schedule::GreedyThenOldest && s.warps > 1
}

/// One of the slots that are ready (one-hot, none if none is), and whether there is one.
pub fn choose(m: Builder, s: &Shape, slots: Slots) -> (Signal, Signal) {
    match (slots.starts, s.schedule) {
        (Some(starts), _) => greedy_then_oldest(m, s, slots, starts),
        (None, Schedule::Sticky) => sticky(m, s, slots.ready),
        (None, _) => loose_round_robin(m, s, slots.ready),
    }
}

fn loose_round_robin(m: Builder, s: &Shape, ready: Signal) -> (Signal, Signal) {
    let after = m.reg("after", s.warps).reset(0u32);
    wire!(choice = round_robin(ready, after.q));
    wire!(any = ready.any());
    after.next_if(any, places_above(choice));
    (choice, any)
}

/// Round robin that begins at the last slot and not above it.
fn sticky(m: Builder, s: &Shape, ready: Signal) -> (Signal, Signal) {
    let from = m.reg("from", s.warps).reset(0u32);
    wire!(choice = round_robin(ready, from.q));
    wire!(any = ready.any());
    from.next_if(any, choice | places_above(choice));
    let last = from.q.lowest_one();
    m.cover("stays", (choice & last).any() & (ready & !choice).any());
    m.cover("goes_on", any & from.q.any() & !(choice & last).any());
    (choice, any)
}

fn greedy_then_oldest(m: Builder, s: &Shape, slots: Slots, starts: Signal) -> (Signal, Signal) {
    let Slots { filled, ready, .. } = slots;
    let rows = AgeIn { starts_here: each(starts), starts: all(starts), ready_here: each(ready), ready: all(ready) };
    wire!(oldest = m.replicate("age", s.warps, &age(s), rows).oldest);
    let last = m.reg("last", s.warps).reset(0u32);
    wire!(last_ready = ready & last.q);

    let turn = m.reg("turn", s.warps).reset(1u32);
    let due = m.reg("due", 1).reset(0u32);
    let cycles = m.reg("cycles", PATIENCE.ilog2()).reset(0u32);
    cycles.next(cycles.q + 1);
    wire!(turn_ready = (ready & turn.q).only_if(due.q));
    wire!(takes_turn = turn_ready.any());
    due.next((due.q & !takes_turn) | cycles.q.all());
    let following = cat(&[turn.q.bit(s.warps - 1), turn.q.slice(0, s.warps - 1)]);
    turn.next_if(due.q & (takes_turn | !(filled & turn.q).any()), following);

    wire!(runs_on = last_ready.any());
    wire!(otherwise = runs_on.mux(last_ready, oldest));
    wire!(choice = takes_turn.mux(turn_ready, otherwise));
    wire!(any = ready.any());
    last.next_if(any, choice);
    m.assert("one_is_oldest", oldest.any().eq(any) & !(oldest & (oldest - 1)).any());
    m.cover("runs_on_before_an_older_one", runs_on & !(last_ready & oldest).any());
    m.cover("oldest_is_not_the_lowest", !runs_on & !oldest.eq(ready.lowest_one()));
    m.cover("turn_changes_the_choice", takes_turn & !turn_ready.eq(otherwise));
    m.cover("turn_waits", due.q & (filled & !ready & turn.q).any());
    (choice, any)
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct AgeIn<T> {
    /// A warp is started on this slot / one bit a slot.
    starts_here: T,
    starts: T,
    /// This slot is ready / one bit a slot.
    ready_here: T,
    ready: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct AgeOut<T> {
    /// This slot is ready, and no older one.
    oldest: T,
}

/// A slot's row of the matrix that says who is older than whom.
fn age(s: &Shape) -> TypedModule<AgeIn<Width>, AgeOut<Signal>> {
    let inputs = AgeIn { starts_here: 1, starts: s.warps, ready_here: 1, ready: s.warps };
    module("schedule_age", inputs, |m, i| {
        m.doc("Which slots are older than this one, one bit a slot; and whether it is the oldest that is ready.");
        let older = m.reg("older", s.warps);
        older.next((older.q | i.starts_here.repeat(s.warps)) & !i.starts);
        AgeOut { oldest: i.ready_here & !(i.ready & older.q).any() }
    })
}

#[cfg(test)]
mod tests;

//! Which path of a warp gives way to the others, and when: time is told by the outcomes of a warp.
//!
//! Where paths run in an order of their own, one of them may wait for ever for those before it. `path-lists-simty.txt`
//! §2 has traversals that are fair instead. This one is the usual order with exceptions, which are rare and brief, for
//! a divergent loop *is* one path that runs while those that have left the loop wait.
//!
//! * A warp is *parted* while it has more than one path. After [`Shape::patience`] outcomes of a parted warp the active
//!   path gives way: it comes after all that have not, and does not run before them. Each of the others gives way
//!   after [`brief`] outcomes.
//! * When all that could run have given way, nobody has: a new *round* begins.
//! * With [`Shape::fair`], patience is halved with each round down to [`least_patience`], and whole again when a warp
//!   that was parted for some time has become one path without a path that gave way: where threads wait for each other
//!   again and again, as at a lock, they soon wait for shorter times.
//!
//! In an [LR/SC sequence](super::sequence) a path does not give way. If its time is over there, it does as soon as the
//! sequence ends.
//!
//! A path whose `sync` finds its barrier in use gives way at once.
//!
//! Under [`crate::Order::BreadthFirst`] every outcome of a parted warp makes its path give way: a round is an outcome of each.
//!
//! Without [`Shape::fair`] a warp is parted only from when threads wait at a convergence barrier until it is one path
//! again, so that no barrier keeps threads from what others wait for.
//!
//! **The bound.** With [`Shape::fair`], a thread that does not wait runs at least once in [`bound`] outcomes of its
//! warp: those that have not given way in this round have a brief turn each, the first path of the next round has all
//! of the patience, and the others of that round a brief turn each. It is asserted in every run ([`assert_bound`]) and proven
//! at small shapes.
//!
//! What it does not do: it knows nothing of locks. A path that gives way may hold one.

use super::sequence;
use crate::pipeline::timing::{CONTROL_TO_NEXT, ISSUE_TO_OUTCOME, OUTCOMES_BEFORE_HOLD, TURN_EVERY};
use crate::shape::Shape;
use heddle_hdl::elements;
use heddle_hdl::prelude::*;

/// Outcomes that a path has before it gives way, where another one has.
pub fn brief(s: &Shape) -> u32 {
    if s.order.takes_turns() { 1 } else { (s.patience / 2).min(16) }
}

/// Outcomes of a parted warp before its first path gives way, at the most.
pub fn first_turn(s: &Shape) -> u32 {
    if s.order.takes_turns() { 1 } else { s.patience }
}

/// Outcomes of a parted warp before its first path gives way, at the least.
pub fn least_patience(s: &Shape) -> u32 {
    s.patience.min(4 * brief(s))
}

/// Outcomes until a path has given way whose time is over with the last of so many, at the most.
fn until(s: &Shape, outcomes: u32) -> u32 {
    outcomes - 1 + sequence::latest(s)
}

/// With [`Shape::fair`]: outcomes of a warp in which each thread that does not wait runs at least once.
///
/// Where each outcome ends a turn, those of a path whose `sync` queues are one.
pub fn bound(s: &Shape) -> u32 {
    let turns = until(s, first_turn(s)) + 2 * (s.lanes - 1) * until(s, brief(s));
    if s.order.takes_turns() && s.syncs() { s.lanes * turns } else { turns }
}

/// With [`Shape::fair`]: cycles in which each thread that does not wait at a barrier issues at least once. `straight` is the
/// most instructions of the program from one with an outcome to the next, that included; `latency` the most cycles from the
/// issue of an instruction until all of its lanes have their results, whatever memory and the others of a cache or bus
/// do.
///
/// Of [`bound`] outcomes, each comes after `straight` issues. A slot's turn comes after one of each slot, which begins at
/// most every [`TURN_EVERY`] cycles and lasts until an instruction could issue: for `latency`, or until there is one again.
/// After an outcome the divergence unit may have to look through all cold tables, and puts off others for that.
pub fn cycles(s: &Shape, straight: u32, latency: u32) -> u64 {
    let slots = u64::from(s.warps) + 1;
    let ready = u64::from(latency.max(CONTROL_TO_NEXT));
    let issue = slots * ready.max(u64::from(TURN_EVERY));
    let entries = 4 * u64::from(s.lanes);
    let steering = u64::from(OUTCOMES_BEFORE_HOLD + ISSUE_TO_OUTCOME) + slots * entries;
    u64::from(bound(s)) * (u64::from(straight) * (issue + ready) + steering)
}

/// What a unit tells, 1 bit each unless stated.
#[derive(Clone, Copy)]
pub struct Told {
    /// An outcome of this slot.
    pub outcome: Signal,
    pub slot: Signal,
    /// Its path could not go on, and gives way at once. Where there is `sync`.
    pub at_once: Option<Signal>,
    /// It is in an LR/SC sequence, which lasts. Where something is kept of them.
    pub lasts: Option<Signal>,
    /// The paths of this slot change: now there is one or none.
    pub turn: Signal,
    pub turn_slot: Signal,
    pub alone: Signal,
    /// A new round begins for it; threads of it are woken.
    pub new_round: Signal,
    pub wakes: Signal,
    /// Threads start on this slot.
    pub start: Signal,
    pub start_slot: Signal,
    /// One bit per slot: threads of it wait at convergence barriers. Where there are any.
    pub holding: Option<Signal>,
}

/// The registers and memories, a bit or a word a slot.
pub struct Fairness {
    m: Builder,
    s: Shape,
    pub parted: Reg<Signal>,
    /// The path that has the next outcome gives way.
    pub yields: Reg<Signal>,
    /// A path has given way in this round.
    pub others: Reg<Signal>,
    /// Outcomes, modulo patience.
    pub ages: Mem<Width>,
    /// With [`Shape::fair`], a bit for each of the upper ones of `ages`: it does not count, for patience is less.
    shorter: Option<Mem<Width>>,
}

impl Fairness {
    /// All of it, as at reset.
    pub fn new(m: Builder, s: &Shape) -> Fairness {
        let memory = |name: &str, bits: Width| m.memory(name, bits, s.warp_bits()).style(MemoryStyle::Distributed);
        let halvings = s.patience.ilog2() - least_patience(s).ilog2();
        Fairness {
            parted: m.reg("parted", s.warps).reset(0u32),
            yields: m.reg("yields", s.warps).reset(0u32),
            others: m.reg("others_gave_way", s.warps).reset(0u32),
            ages: memory("ages", s.patience.ilog2()),
            shorter: (s.fair && halvings > 0 && !s.order.takes_turns()).then(|| memory("shorter", halvings)),
            m,
            s: s.clone(),
        }
    }

    /// 1 bit: the time of the slot's active path is over: it is to give way with its outcome.
    pub fn is_due(&self, slot: Signal) -> Signal {
        let at = slot.decode(self.s.warps);
        self.yields(at) & (self.parted.q & at).any()
    }

    /// 1 bit: the active path of the slot gives way with its outcome; `at_once`, for another reason than its time. `lasts`
    /// as in [`Told`].
    pub fn gives_way(&self, slot: Signal, lasts: Option<Signal>, at_once: Option<Signal>) -> Signal {
        let at = slot.decode(self.s.warps);
        let yields = self.yields(at);
        let yields = lasts.map_or(yields, |lasts| yields & !lasts);
        at_once.map_or(yields, |at_once| yields | at_once) & (self.parted.q & at).any()
    }

    /// 1 bit: whether the path of the slot with this bit gives way if it is parted.
    fn yields(&self, at: Signal) -> Signal {
        if self.s.order.takes_turns() { at.bit(0).literal(1u32) } else { (self.yields.q & at).any() }
    }

    /// Goes on by a cycle. Returns, 1 bit each: patience of the outcome's slot is over; its path gives way now.
    pub fn goes_on(&self, told: &Told) -> (Signal, Signal) {
        let Fairness { m, s, parted, yields, others, ages, .. } = self;
        let &Told { outcome, slot, at_once, lasts, turn, turn_slot, alone, new_round, .. } = told;
        let &Told { wakes, start, start_slot, holding, .. } = told;
        let outcome_at = slot.decode(s.warps);
        let start_at = start_slot.decode(s.warps).only_if(start);
        let turn_at = turn_slot.decode(s.warps);
        let before = if s.fair { m.lit(Bits::ones(s.warps), s.warps) } else { parted.q };
        let stays = before.only_if(!alone);
        wire!(stays_parted = holding.map_or(stays, |holding| holding | stays) & turn_at);
        parted.next_if(turn | start, (parted.q & !turn_at.only_if(turn) & !start_at) | stays_parted.only_if(turn));

        let passed = ages.read(slot) + 1;
        wire!(is_parted = (parted.q & outcome_at).any());
        // Time stands still while a path is due and does not give way.
        let put_off = lasts.map(|lasts| lasts & self.yields(outcome_at) & is_parted);
        let put_off = put_off.map(|put_off| at_once.map_or(put_off, |at_once| put_off & !at_once));
        let stands_still = put_off.filter(|_| !s.order.takes_turns());
        let counts = stands_still.map_or(outcome, |stands_still| outcome & !stands_still);
        ages.write(counts, slot, passed.only_if(is_parted));
        let all_passed = self
            .shorter
            .as_ref()
            .map_or(passed, |shorter| passed | cat(&[m.lit(0u32, least_patience(s).ilog2()), shorter.read(slot)]));
        let over = is_parted & all_passed.all();
        wire!(tick = stands_still.map_or(over, |stands_still| over & !stands_still));
        let brief = brief(s).ilog2();
        wire!(brief = if brief == 0 { is_parted } else { is_parted & passed.slice(0, brief).all() });
        wire!(gives_way = self.gives_way(slot, lasts, at_once));
        let gave = outcome_at.only_if(outcome & gives_way);
        let round_ends = if s.fair { new_round | wakes | (turn & alone) } else { new_round };
        let ended_round = turn_at.only_if(round_ends);
        others.next((others.q | gave) & !ended_round & !start_at);
        wire!(brief_turn = ((others.q | gave) & outcome_at).any());
        let turn_ends = tick | (brief & brief_turn);
        let yields_next = outcome_at.only_if(put_off.map_or(turn_ends, |put_off| turn_ends | put_off));
        yields.next_if(
            outcome | start,
            (yields.q & !outcome_at.only_if(outcome) & !start_at) | yields_next.only_if(outcome),
        );
        if let Some(shorter) = &self.shorter {
            let gave_since = m.reg("gave_way_since_alone", s.warps).reset(0u32);
            let since = gave_since.q | gave;
            let joins = turn_at.only_if(turn & alone) & parted.q;
            gave_since.next(since & !joins & !start_at);
            // Not where paths parted for a moment, as by an access to memory.
            let long = ages.read(turn_slot).from_bit(least_patience(s).ilog2() - 1).any();
            let whole = start | ((joins & !since).any() & long);
            let old = shorter.read(turn_slot);
            let halved = if old.width() > 1 { cat(&[old.from_bit(1), m.lit(1u32, 1)]) } else { m.lit(1u32, 1) };
            shorter.write(whole | new_round, start.mux(start_slot, turn_slot), halved.only_if(!whole));
            m.cover("patience_is_halved", new_round & !whole);
            m.cover("patience_is_whole_again", whole & old.any());
        }
        if let Some(put_off) = put_off {
            m.cover("gives_way_later_for_a_sequence", put_off & outcome);
        }
        m.cover("somebody_gives_way", gave.any());
        m.cover("somebody_gives_way_briefly", gave.any() & (others.q & outcome_at).any());
        (tick, gave.any())
    }
}

/// Asserts [`bound`]: counts, for each thread, the outcomes of its warp since it ran, or waited. `runnable` and `ran` are
/// threads of the outcome's slot: those that do not wait, and those of the active path. Returns the counters, a word a
/// slot.
pub fn assert_bound(m: Builder, s: &Shape, told: &Told, runnable: Signal, ran: Signal) -> Mem<Width> {
    let bits = count_width(bound(s));
    let since = m.memory("ghost_outcomes_since", bits * s.lanes, s.warp_bits());
    let counts = elements(since.read(told.slot), bits).into_iter().enumerate();
    let after: Vec<Signal> =
        counts.map(|(k, count)| (count + 1).only_if(runnable.bit(k as u32) & !ran.bit(k as u32))).collect();
    let within: Vec<Signal> = after.iter().map(|count| count.le(bound(s))).collect();
    m.assert("each_thread_has_its_turn", !told.outcome | cat(&within).all());
    let at = told.start.mux(told.start_slot, told.slot);
    since.write(told.outcome | told.start, at, cat(&after).only_if(!told.start));
    since
}

pub mod proof;

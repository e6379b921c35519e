//! Warps that are ahead of their block for more than one basic block: [`Shape::slack`].
//!
//! A warp that is [`ahead`](super::ahead) passes control instructions that cannot part it: branches and jumps that the
//! side table calls uniform, but for calls and returns. It stays ahead, of the same threads. What it must not pass is a
//! place where threads reconverge. When it is released, its block's top has the places of the branch that it was ahead
//! of, or those that the top had then; so it stops at either. Where it comes to one by a branch it is *parked*, and as
//! soon as it is released it arrives there: that outcome is made here, in a cycle without another.
//!
//! An outcome may be under way while its warp is released. What the block's top is then comes with it
//! ([`TopBegins`](super::state::TopBegins)).

use super::super::interface::OfSlot;
use super::super::levels::{Top, is_at_point, stop_of};
use super::super::{Announced, Outcome, OutcomeKind, Side, Stop};
use super::ahead::{Going, nearer};
use super::state::{Ends, Store};
use crate::arbiter::{places_above, round_robin};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Where the threads of the branch that a warp is ahead of meet, and where those of the top did.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Both<T> {
    #[width(Ends::shape(s))]
    branchs: Ends<T>,
    #[width(Ends::shape(s))]
    tops: Ends<T>,
}

/// What a warp that passes comes to.
#[derive(Clone, Copy)]
pub struct Passing {
    /// 1 bit: a place where it may have to wait for others.
    pub parks: Signal,
    /// Its stop pc; or where it is parked.
    pub stop: Stop<Signal>,
}

/// The state.
pub struct Slack {
    /// By slot, and of the slot of the next outcome.
    both: Mem<Both<Width>>,
    of_slot: Reg<Both<Signal>>,
    /// One bit per slot.
    pub parked: Reg<Signal>,
    /// By slot: the control instructions that its warp has passed.
    passed: Vec<Reg<Signal>>,
    /// The slot whose warp goes on from where it was parked.
    resumed: Reg<OfSlot<Signal>>,
    after: Reg<Signal>,
}

impl Slack {
    pub fn new(m: Builder, s: &Shape) -> Slack {
        let both = Both::shape(s);
        let passed = |slot| m.reg(&format!("passed_{slot}"), count_width(s.slack - 1));
        Slack {
            both: m.memory("ahead_ends", both, s.warp_bits()).style(MemoryStyle::Distributed),
            of_slot: m.reg("ahead_of_slot", both),
            parked: m.reg("parked", s.warps).reset(0u32),
            passed: (0..s.warps).map(passed).collect(),
            resumed: m.reg("resumed", OfSlot::shape(s)).reset_zero(),
            after: m.reg("resumed_after", s.warps).reset(0u32),
        }
    }

    /// One bit per slot: its warp may pass one more.
    pub fn may_pass(&self, s: &Shape) -> Signal {
        cat(&self.passed.iter().map(|passed| passed.q.lt(s.slack - 1)).collect::<Vec<_>>())
    }

    /// One bit per slot: its warp is parked, and `ahead` no longer, and does not go on in this cycle.
    pub fn waits(&self, s: &Shape, ahead: Signal) -> Signal {
        self.parked.q & !ahead & !self.resumed.q.slots(s)
    }

    /// A warp that is ahead comes to `to` and goes on.
    pub fn passes(&self, m: Builder, to: Top<Signal>) -> Passing {
        let Both { branchs, tops } = self.of_slot.q;
        let [branchs, tops] = [branchs, tops].map(|Ends { rpc, likely }| Top { rpc, likely, ..to });
        let meets = |top: Top<Signal>| top.rpc.reached(to.pc, to.depth) | is_at_point(&top).unwrap_or(m.lit(0u32, 1));
        let parks = meets(branchs) | meets(tops);
        let next = nearer(to.pc, stop_of(branchs), stop_of(tops));
        Passing { parks, stop: Stop { valid: parks | next.valid, pc: parks.mux(to.pc, next.pc) } }
    }

    /// What follows of an outcome: a warp goes ahead of the block's `top`, or passes.
    pub fn follows(
        &self,
        s: &Shape,
        slot: Signal,
        (going, top): (Going, Top<Signal>),
        (passes, parks): (Signal, Signal),
    ) {
        self.both.write(going.goes, slot, Both { branchs: Ends::of(going.at), tops: Ends::of(top) });
        for (number, passed) in (0..).zip(&self.passed) {
            let here = slot.eq(number);
            let goes = going.goes & here;
            passed.next_if(goes | (passes & here), (passed.q + 1).only_if(!goes));
        }
        let parks = OfSlot { valid: parks, slot };
        self.parked.next((self.parked.q | parks.slots(s)) & !self.resumed.q.slots(s));
    }
}

impl Store {
    fn slack(&self) -> Option<&Slack> {
        self.ahead.as_ref().and_then(|ahead| ahead.slack.as_ref())
    }

    /// 1 bit, of an outcome: its warp is ahead, and passes what it executes.
    pub fn is_passing(&self, outcome: &Outcome<Signal>) -> Signal {
        match self.slack() {
            Some(_) => outcome.valid & self.ahead_slots().select(outcome.slot, 1),
            None => self.m.lit(0u32, 1),
        }
    }

    /// What it comes to.
    pub fn passing(&self, to: Top<Signal>) -> Option<Passing> {
        self.slack().map(|slack| slack.passes(self.m, to))
    }

    /// One bit per slot: its warp is parked; and may go on.
    pub fn parked(&self) -> Option<(Signal, Signal)> {
        self.slack().map(|slack| (slack.parked.q, slack.waits(&self.s, self.ahead_slots())))
    }

    /// One bit per slot: if its warp is ahead, it may pass one more control instruction.
    pub fn may_pass(&self) -> Option<Signal> {
        self.slack().map(|slack| slack.may_pass(&self.s))
    }

    /// What is announced: what the pipeline announces; else a warp that was parked. Its outcome is the next one.
    pub fn announce(&self, announced: Announced<Signal>) -> Announced<Signal> {
        let Store { m, s, .. } = self;
        let Some(slack) = self.slack() else { return announced };
        let waits = slack.waits(s, self.ahead_slots());
        let choice = round_robin(waits, slack.after.q);
        let valid = waits.any() & !announced.valid;
        slack.after.next_if(valid, places_above(choice));
        let slot = announced.valid.mux(announced.slot, choice.one_hot_index());
        slack.resumed.next(OfSlot { valid, slot });
        slack.of_slot.next(slack.both.read(slot));
        m.cover("goes_on_from_where_it_was_parked", slack.resumed.q.valid);
        let [call, ret] = [announced.call, announced.ret].map(|told| told & announced.valid);
        Announced { valid: announced.valid | valid, slot, call, ret }
    }

    /// The outcome: that of the pipeline; else of a warp that was parked, as if it had come there now.
    pub fn outcome(&self, told: Outcome<Signal>) -> Outcome<Signal> {
        let Store { m, .. } = self;
        let Some(slack) = self.slack() else { return told };
        let OfSlot { valid, slot } = slack.resumed.q;
        m.assert("one_outcome_at_a_time", !(valid & told.valid));
        let warp = self.of_slot.q.warp;
        let here = Side { mask: warp.mask, pc: self.stops.read(slot).pc };
        // Nothing but where it goes on counts of one that has come to a place.
        let comes = Outcome {
            valid,
            slot,
            kind: m.code(OutcomeKind::Arrived),
            taken: here,
            rest: Side { mask: here.mask.literal(0u32), ..here },
            call: told.call.literal(0u32),
            ret: told.ret.literal(0u32),
            ..told
        };
        valid.mux(comes, told)
    }
}

//! Divergence units: what decides which threads of a warp run when they disagree.
//!
//! The pipeline knows one interface, [`interface`], and what a mechanism is capable of beyond it ([`Capabilities`]),
//! but no mechanism. A *slot* is a schedulable front-end context: a warp; or, where two paths of a warp may issue, a
//! side of a warp, whose number is twice the warp's, plus one for the right side.
//!
//! | when | pipeline → unit | unit → pipeline |
//! |---|---|---|
//! | start | `start`: a slot, its pc and mask | `start_ready` |
//! | stage 3 (decode) | the slot | its stop pc |
//! | stage 4 (issue) | the slot | its mask |
//! | stage 8 (resolve) | `announced`: there may be an outcome of the slot in the next cycle, a call, a return or neither | |
//! | stage 9 (converge) | `outcome` of its control instruction | `steer`: the slot's next pc, in this cycle or later |
//! | wake | `wake`: a slot whose threads all wait | `waiting`, `wake_ready`, and `steer` in this cycle or the next |
//!
//! After an outcome a slot is steered exactly once, unless no thread is left that could run: its last thread ended, or
//! all of them wait. Until then it takes no outcome, nor in the cycle after. At most one outcome of a slot is in
//! flight. Decode of the first instruction comes [`STEER_TO_DECODE`](crate::pipeline::timing::STEER_TO_DECODE) cycles
//! after the steering, issue one later, and the answers to them need not be right before.
//!
//! Threads wait (at a barrier) after an outcome of the kind [`OutcomeKind::Wait`], which the instruction `barrier` makes. When
//! all live threads of a slot do, its bit in `waiting` rises within a bounded time and stays until `wake`, which lets
//! all of them go on. Only with [`Shape::barriers`].
//!
//! With [`Shape::convergence_barriers`] the pipeline also tells of their instructions, in stage 8 (and which barriers
//! they name, in stage 7): [`UnitIn::hints`]. They come in order; only `wait` is followed by an outcome, of the kind
//! [`OutcomeKind::Converge`], in the next cycle.

use crate::pipeline::timing::OUTCOMES_BEFORE_HOLD;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

pub mod arbiter;
pub mod block_stack;
pub mod capabilities;
pub mod dual_path;
pub mod fairness;
pub mod inspect;
pub mod interface;
pub mod levels;
pub mod list;
pub mod mechanism;
pub mod path_table;
pub mod proof;
pub mod sequence;
pub mod stack;

pub use capabilities::Capabilities;
pub use interface::*;
pub use mechanism::{Divergence, Mechanism};

impl Divergence {
    /// Sorted path tables, as in Simty.
    pub const PATH_TABLE: Divergence = Divergence::new(&path_table::PathTable);
    /// A pc a thread and a tree of comparators.
    pub const ARBITER: Divergence = Divergence::new(&arbiter::Arbiter);
    /// A stack of reconvergence points.
    pub const STACK: Divergence = Divergence::new(&stack::Stack);
    /// A stack whose entries hold both sides of a branch, which run side by side.
    pub const DUAL_PATH: Divergence = Divergence::new(&dual_path::DualPath);
    /// A stack per block, whose threads form new warps where they diverge.
    pub const BLOCK_STACK: Divergence = Divergence::new(&block_stack::BlockStack);

    /// The mechanisms of this crate. A new one is a line here.
    pub const ALL: &[Divergence] = &[
        Divergence::PATH_TABLE,
        Divergence::ARBITER,
        Divergence::STACK,
        Divergence::DUAL_PATH,
        Divergence::BLOCK_STACK,
        Divergence::new(&list::List),
    ];
}

impl Default for Divergence {
    fn default() -> Divergence {
        Divergence::PATH_TABLE
    }
}

/// A path: the threads of a warp that have this pc. (`path-lists-simty.txt` §2)
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Path<T> {
    /// 1 bit. The other fields mean something only where it is 1; then the mask is not empty.
    pub valid: T,
    /// Call depth, `depth_bits`. Where paths [give way](fairness) there is a bit above it: 1 unless the path has, so that
    /// those that have come after all others that can run.
    #[width(s.rank_bits())]
    pub depth: T,
    /// Instruction number (byte address / 4), `pc_bits`.
    #[width(s.pc_bits())]
    pub pc: T,
    /// One bit per lane, lane 0 lowest.
    #[width(s.lanes)]
    pub mask: T,
    /// 1 bit: the threads wait. Such a path comes after all that can run, and becomes one only with its like.
    pub waits: T,
}

impl Path<Signal> {
    /// The path; without [`Shape::barriers`] it never waits, so that nothing is built for it.
    fn as_built(self, s: &Shape) -> Path<Signal> {
        if s.barriers { self } else { Path { waits: self.waits.literal(0u32), ..self } }
    }

    /// 1 bit: it has given way.
    fn is_late(self, s: &Shape) -> Signal {
        if s.gives_way() { !self.depth.msb() } else { self.waits.literal(0u32) }
    }
}

/// The call depth of the threads that took the branch, of a path at this one. A program may return more often than it
/// calls: the least is 0.
pub fn depth_after(call: Signal, ret: Signal, depth: Signal) -> Signal {
    // One sum with 1, 0, or all ones, which is -1: the bit below it carries where there is a call.
    let carry = call.literal(1u32);
    let sum = cat(&[carry, depth]) + cat(&[call, ret.repeat(depth.width())]);
    sum.from_bit(1).only_if(!ret | depth.any())
}

/// [`UnitOut::hold`]: from [`OUTCOMES_BEFORE_HOLD`] outcomes on in a time in which something else is put off without a pause, as `put_off`
/// says of what is returned here. And the number of those outcomes.
pub fn hold(m: Builder, outcome: Signal, put_off: impl FnOnce(Signal) -> Signal) -> (Signal, Signal) {
    let width = count_width(OUTCOMES_BEFORE_HOLD);
    let outcomes = m.reg("outcomes", width).reset(0u32);
    wire!(hold = outcomes.q.all());
    let one_more = outcome & !hold;
    outcomes.next((outcomes.q + one_more.zext(width)).only_if(put_off(hold)));
    m.cover("holds", hold);
    (hold, outcomes.q)
}

/// What every unit may count on. `live` and `waiting` are the unit's outputs, `active` is the mask of the outcome's
/// slot; `starts` and `wakes` are those that are taken.
pub fn assume_legal(
    m: Builder,
    s: &Shape,
    i: &UnitIn<Signal>,
    (live, waiting): (Signal, Signal),
    active: Signal,
    (starts, wakes): (Signal, Signal),
) {
    let Outcome { valid, slot, kind, taken, rest, call, ret, .. } = i.outcome;
    let waits = kind.eq(OutcomeKind::Wait);
    let slot = warp_of(s, slot);
    m.assume("outcome_of_a_live_slot", !valid | live.select(slot, 1));
    m.assume("start_on_an_idle_slot", !starts | !live.select(i.start.slot, 1));
    m.assume("not_both_call_and_return", !(valid & call & ret));
    m.assume("only_jumps_call_and_return", !(valid & (call | ret)) | kind.eq(OutcomeKind::Jump));
    m.assume("outcome_masks_are_disjoint", !(valid & (taken.mask & rest.mask).any()));
    m.assume("outcome_masks_are_of_x", !(valid & ((taken.mask | rest.mask) & !active).any()));
    if s.barriers {
        m.assume("outcome_of_a_slot_that_runs", !valid | !waiting.select(slot, 1));
        m.assume("wake_of_a_waiting_slot", !wakes | waiting.select(i.wake.slot, 1));
    } else {
        m.assume("no_path_waits", !(valid & waits));
    }
    if let Some(sequence) = i.sequence {
        m.assume("a_sequence_begins_or_ends_and_does_where_threads_wait", sequence.same_as(sequence.legal(&i.outcome)));
    }
}

/// What every unit may count on to which outcomes are announced: `claim` says whether one was in the cycle before, and
/// of which slot.
fn assume_announced(m: Builder, i: &UnitIn<Signal>, (claimed, slot): (Signal, Signal), steer: Steer<Signal>) {
    let outcome = i.outcome;
    m.assume("outcome_was_announced", !outcome.valid | (claimed & outcome.slot.eq(slot)));
    let (was_steered, steered_slot) = (m.pipe_reset("was_steered", steer.valid), m.pipe("steered_slot", steer.slot));
    m.assume("no_outcome_right_after_the_steering", !(outcome.valid & was_steered & outcome.slot.eq(steered_slot)));
    let Announced { call, ret, .. } = i.announced.expect("outcomes are announced");
    let (was_call, was_ret) = (m.pipe("was_call", call), m.pipe("was_ret", ret));
    m.assume("outcome_calls_as_announced", !outcome.valid | (outcome.call.eq(was_call) & outcome.ret.eq(was_ret)));
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

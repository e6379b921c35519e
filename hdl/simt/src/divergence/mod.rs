//! Divergence units: what decides which threads of a warp run when they disagree.
//!
//! The pipeline knows one interface, below; each mechanism is one module behind it. A *slot* is a schedulable front-end
//! context: a warp; or, where two paths of a warp may issue, a side of a warp, whose number is twice the warp's, plus one for the
//! right side.
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
//! After an outcome a slot is steered exactly once, unless no thread is left that could run: its last thread ended, or all
//! of them wait. Until then it takes no outcome, nor in the cycle after. At most one outcome of a slot is in flight. Decode of the first instruction
//! comes [`STEER_TO_DECODE`](crate::pipeline::timing::STEER_TO_DECODE) cycles after the steering, issue one later, and the answers to them need not be right before.
//!
//! Threads wait (at a barrier) after an outcome of the kind [`kind::WAIT`], which the instruction `barrier` makes. When all live threads of a slot do, its bit in
//! `waiting` rises within a bounded time and stays until `wake`, which lets all of them go on. Only with
//! [`Shape::barriers`].
//!
//! With [`Shape::convergence_barriers`] the pipeline also tells of their instructions, in stage 8 (and which barriers they name, in
//! stage 7): [`UnitIn::hints`]. They come in order; only `wait` is followed by an outcome, of the kind [`kind::CONVERGE`], in the
//! next cycle.

use crate::pipeline::timing::OUTCOMES_BEFORE_HOLD;
use crate::reconvergence::Reconvergence;
use crate::shape::{Shape, name_of};
use heddle_hdl::*;

pub mod arbiter;
pub mod block_stack;
pub mod ccs;
pub mod cct;
pub mod convergence;
pub mod dual_path;
pub mod levels;
pub mod path_table;
pub mod proof;
pub mod stack;

/// The mechanisms, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Divergence {
    /// Sorted path tables, as in Simty.
    #[default]
    PathTable,
    /// A pc a thread and a tree of comparators.
    Arbiter,
    /// A stack of reconvergence points.
    Stack,
    /// A stack whose entries hold both sides of a branch, which run side by side.
    DualPath,
    /// A stack a block, whose threads form new warps where they part.
    BlockStack,
}

impl Divergence {
    /// Every mechanism with its name on the command line. A new mechanism is one line here and one in [`unit()`].
    pub const ALL: &[(&str, Divergence)] = &[
        ("path-table", Divergence::PathTable),
        ("arbiter", Divergence::Arbiter),
        ("stack", Divergence::Stack),
        ("dual-path", Divergence::DualPath),
        ("block-stack", Divergence::BlockStack),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Divergence::ALL, self)
    }

    /// Whether it runs one side of a branch to where [`crate::reconvergence`] says that both meet, and the other after it.
    /// Then threads that wait for others of their warp, at a barrier or for a lock, may wait for ever.
    pub fn reconverges(self) -> bool {
        matches!(self, Divergence::Stack | Divergence::DualPath | Divergence::BlockStack)
    }

    /// Whether [`Shape::likely`] is a choice.
    pub fn has_likely_points(self) -> bool {
        matches!(self, Divergence::Stack | Divergence::BlockStack)
    }

    /// Whether it forms warps of threads of several: then a slot's lanes may have different static warps.
    pub fn compacts(self) -> bool {
        self == Divergence::BlockStack
    }

    /// Slots of a warp: paths of it that may issue.
    pub fn sides(self) -> u32 {
        if self == Divergence::DualPath { 2 } else { 1 }
    }
}

/// The divergence unit of a shape.
pub fn unit(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    match s.divergence {
        Divergence::PathTable => path_table::path_table(s),
        Divergence::Arbiter => arbiter::arbiter(s),
        Divergence::Stack => stack::stack(s),
        Divergence::DualPath => dual_path::dual_path(s),
        Divergence::BlockStack => block_stack::block_stack(s),
    }
}

/// A path: the threads of a warp that have this pc. (`path-lists-simty.txt` §2)
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Path<T> {
    /// 1 bit. The other fields mean something only where it is 1; then the mask is not empty.
    pub valid: T,
    /// Call depth, `depth_bits`. With convergence barriers there is a bit above it: 1 unless the path has given way
    /// ([`convergence`]), so that those that have come after all others that can run.
    pub depth: T,
    /// Instruction number (byte address / 4), `pc_bits`.
    pub pc: T,
    /// One bit a lane, lane 0 lowest.
    pub mask: T,
    /// 1 bit: the threads wait. Such a path comes after all that can run, and becomes one only with its like.
    pub waits: T,
}

impl Path<Width> {
    pub fn shape(s: &Shape) -> Path<Width> {
        Path { valid: 1, depth: s.rank_bits(), pc: s.pc_bits(), mask: s.lanes, waits: 1 }
    }
}

impl Path<Signal> {
    /// The path; without [`Shape::barriers`] it never waits, so that nothing is built for it.
    fn as_built(self, s: &Shape) -> Path<Signal> {
        if s.barriers { self } else { Path { waits: self.waits.literal(0u32), ..self } }
    }

    /// 1 bit: it has given way.
    fn is_late(self, s: &Shape) -> Signal {
        if s.convergence_barriers > 0 { !self.depth.msb() } else { self.waits.literal(0u32) }
    }
}

/// Puts threads on an idle slot.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Start<T> {
    /// 1 bit; taken in a cycle in which `start_ready` is 1. The slot must be idle.
    pub valid: T,
    pub slot: T,
    pub pc: T,
    pub mask: T,
}

/// Lets the threads of a slot go on.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Wake<T> {
    /// 1 bit; taken in a cycle in which `wake_ready` is 1. The slot's bit in `waiting` must be 1.
    pub valid: T,
    pub slot: T,
}

/// What a control instruction (or one that reached a stop pc) did, at the end of resolve.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Outcome<T> {
    /// 1 bit.
    pub valid: T,
    pub slot: T,
    /// One of [`kind`].
    pub kind: T,
    /// The threads that took the branch, jumped, were served, or arrived; where they go.
    pub taken: Side<T>,
    /// The threads that did not: they go on at this pc (pc + 1 for a branch, the same pc for a replay). Threads in
    /// neither mask have ended.
    pub rest: Side<T>,
    /// 1 bit: the taken threads' call depth grows by one / shrinks by one. Never both, and only of jumps.
    pub call: T,
    pub ret: T,
    /// Where the threads of the branch meet again, for units that [reconverge](Divergence::reconverges).
    pub meets: Option<Reconvergence<T>>,
    /// The static warp of each lane, where a slot [mixes](Shape::mixes) them.
    pub homes: Option<T>,
}

/// An outcome that may come in the next cycle: no other does.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Announced<T> {
    /// 1 bit.
    pub valid: T,
    pub slot: T,
    /// Those of the outcome, if it comes.
    pub call: T,
    pub ret: T,
}

/// Threads and where they go next.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Side<T> {
    /// May be empty.
    pub mask: T,
    pub pc: T,
}

/// The kinds of outcomes, 3 bits.
pub mod kind {
    use heddle_hdl::Width;

    pub const BITS: Width = 3;
    /// A conditional branch: taken goes to the target, rest to pc + 1.
    pub const BRANCH: u32 = 0;
    /// A jump: the served threads go to the target, the others stay at this pc.
    pub const JUMP: u32 = 1;
    /// A memory access: the served threads go to pc + 1, the others stay at this pc.
    pub const MEMORY: u32 = 2;
    /// The instruction before a stop pc: all go to pc + 1.
    pub const ARRIVED: u32 = 3;
    /// `ecall`: all threads of the path end.
    pub const EXIT: u32 = 4;
    /// `barrier`: the taken threads go to taken.pc and wait there; the others go on. Only with `Shape::barriers`.
    pub const WAIT: u32 = 5;
    /// `wait` of a convergence barrier: the taken threads go to taken.pc, all or, as the unit knows, some of them now. Only with
    /// `Shape::convergence_barriers`.
    pub const CONVERGE: u32 = 6;
}

impl Start<Width> {
    pub fn shape(s: &Shape) -> Start<Width> {
        Start { valid: 1, slot: s.warp_bits(), pc: s.pc_bits(), mask: s.lanes }
    }
}

impl Wake<Width> {
    pub fn shape(s: &Shape) -> Wake<Width> {
        Wake { valid: 1, slot: s.warp_bits() }
    }
}

impl Side<Width> {
    pub fn shape(s: &Shape) -> Side<Width> {
        Side { mask: s.lanes, pc: s.pc_bits() }
    }
}

impl Outcome<Width> {
    pub fn shape(s: &Shape) -> Outcome<Width> {
        let side = Side::shape(s);
        Outcome {
            valid: 1,
            slot: s.slot_bits(),
            kind: kind::BITS,
            taken: side,
            rest: side,
            call: 1,
            ret: 1,
            meets: s.divergence.reconverges().then(|| Reconvergence::shape(s)),
            homes: s.homes_bits(),
        }
    }
}

/// The pipeline's side of the interface.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct UnitIn<T> {
    pub start: Start<T>,
    pub wake: Wake<T>,
    /// The slot in decode.
    pub decode_slot: T,
    /// The slot in issue.
    pub issue_slot: T,
    pub outcome: Outcome<T>,
    /// Who may have an outcome in the next cycle, for units that choose a cycle before whose turn it is.
    pub announced: Option<Announced<T>>,
    /// Instructions on convergence barriers.
    pub hints: Option<convergence::Hints<T>>,
    /// Of the sibling of the outcome's slot, for units with two slots a warp.
    pub unissued: Option<dual_path::Unissued<T>>,
    /// Of blocks and their registers, for units that [compact](Divergence::compacts).
    pub block: Option<block_stack::BlockIn<T>>,
}

impl UnitIn<Width> {
    pub fn shape(s: &Shape) -> UnitIn<Width> {
        let slot = s.slot_bits();
        UnitIn {
            start: Start::shape(s),
            wake: Wake::shape(s),
            decode_slot: slot,
            issue_slot: slot,
            outcome: Outcome::shape(s),
            announced: (s.divergence == Divergence::PathTable).then_some(Announced { valid: 1, slot, call: 1, ret: 1 }),
            hints: (s.convergence_barriers > 0).then(|| convergence::Hints::shape(s)),
            unissued: (s.sides() > 1).then(|| dual_path::Unissued::shape(s)),
            block: s.divergence.compacts().then(|| block_stack::BlockIn::shape(s)),
        }
    }
}

/// The unit's side of the interface. All outputs belong to the same cycle as the inputs they answer.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct UnitOut<T> {
    /// 1 bit: a start is taken in this cycle.
    pub start_ready: T,
    /// 1 bit: a wake is taken in this cycle.
    pub wake_ready: T,
    /// One bit a slot: it has live threads.
    pub live: T,
    /// One bit a slot: it is live, and all its live threads wait, and no wake of it was taken.
    pub waiting: T,
    /// The stop pc of `decode_slot`.
    pub stop: Stop<T>,
    /// The mask of `issue_slot`'s active path.
    pub mask: T,
    /// Where a slot goes on after an outcome, a start or a wake.
    pub steer: Steer<T>,
    /// 1 bit: issue must hold back control instructions, so that a waiting update gets its turn.
    pub hold: T,
    /// Of the instruction on convergence barriers in stage 8: the number of threads that participate, `count_width(lanes)`.
    pub count: Option<T>,
    /// Of units that [reconverge](Divergence::reconverges).
    pub refused: Option<Refused<T>>,
    /// Of units with two slots a warp.
    pub dual: Option<dual_path::Dual<T>>,
    /// Of units that [compact](Divergence::compacts).
    pub block: Option<block_stack::BlockOut<T>>,
    pub events: Events<T>,
}

/// The unit cannot go on: the core must stop.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Refused<T> {
    /// 1 bit.
    pub valid: T,
    /// One of [`crate::isa::cause`].
    pub cause: T,
    /// Because of whom, if not of the outcome in this cycle.
    pub because: Option<Culprit<T>>,
}

/// Threads that cannot go on.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Culprit<T> {
    /// Their slot, and the instruction number of what they did last.
    pub slot: T,
    pub pc: T,
    pub mask: T,
    pub homes: Option<T>,
}

/// Where the front end must hand over: an instruction at pc - 1 reports *arrived*.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Stop<T> {
    pub valid: T,
    pub pc: T,
}

/// The next pc of a slot.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Steer<T> {
    pub valid: T,
    pub slot: T,
    pub pc: T,
    /// 1 bit: the threads are those a memory access left unserved, and no others: the instruction at `pc` is issued again
    /// without waiting for its own registers.
    pub replay: T,
}

/// What happened in this cycle, for counters; 1 bit each unless stated.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Events<T> {
    /// Paths that became one with another, 2 bits.
    pub merges: T,
    /// A path went to the cold context table / came back / was exchanged by the sorter.
    pub insert: T,
    pub extract: T,
    pub swap: T,
    /// Paths that the warp of an outcome holds after it, `lane_bits + 1`, in the cycle of the outcome or a later one; else 0.
    pub paths: T,
    /// Of units that [reconverge](Divergence::reconverges), levels in use of the warp of an outcome after it, or of a block;
    /// `levels_bits`; else 0.
    pub levels: T,
    /// Of convergence barriers.
    pub releases: Option<convergence::Releases<T>>,
}

impl Events<Width> {
    pub fn shape(s: &Shape) -> Events<Width> {
        let paths = s.lane_bits() + 1;
        let releases = (s.convergence_barriers > 0).then(convergence::Releases::shape);
        Events { merges: 2, insert: 1, extract: 1, swap: 1, paths, levels: s.levels_bits(), releases }
    }
}

/// The warp of a slot.
pub fn warp_of(s: &Shape, slot: Signal) -> Signal {
    match s.sides() {
        1 => slot,
        _ if s.warps == 1 => slot.literal(0u32),
        _ => slot.from_bit(1),
    }
}

/// 1 bit: the slot is the right side of its warp.
pub fn side_of(s: &Shape, slot: Signal) -> Signal {
    if s.sides() > 1 { slot.bit(0) } else { slot.bit(0).literal(0u32) }
}

/// One bit a slot, of one bit a warp each for left and right sides.
pub fn by_slot(left: Signal, right: Signal) -> Signal {
    cat(&(0..left.width()).flat_map(|w| [left.bit(w), right.bit(w)]).collect::<Vec<_>>())
}

/// The other way round, with as many bits a slot.
pub fn by_side(slots: Signal, width: Width) -> [Signal; 2] {
    let of_slots = elements(slots, width);
    [0, 1].map(|side| cat(&of_slots.iter().copied().skip(side).step_by(2).collect::<Vec<_>>()))
}

/// The call depth of the threads that took the branch. A program may return more often than it calls: the least is 0.
fn depth_after(call: Signal, ret: Signal, depth: Signal) -> Signal {
    // One sum with 1, 0, or all ones, which is -1: the bit below it carries where there is a call.
    let carry = call.literal(1u32);
    let sum = cat(&[carry, depth]) + cat(&[call, ret.repeat(depth.width())]);
    sum.from_bit(1).only_if(!ret | depth.any())
}

/// [`UnitOut::hold`]: from [`OUTCOMES_BEFORE_HOLD`] outcomes on in a time in which something else is put off without a pause, as `put_off`
/// says of what is returned here. And the number of those outcomes.
fn hold(m: Builder, outcome: Signal, put_off: impl FnOnce(Signal) -> Signal) -> (Signal, Signal) {
    let width = count_width(OUTCOMES_BEFORE_HOLD);
    let outcomes = m.reg("outcomes", width).reset(0u32);
    wire!(hold = outcomes.q.all());
    let one_more = outcome & !hold;
    outcomes.next((outcomes.q + one_more.zext(width)).only_if(put_off(hold)));
    m.cover("holds", hold);
    (hold, outcomes.q)
}

/// What every unit may count on. `live` and `waiting` are the unit's outputs, `active` is the mask of the outcome's slot;
/// `starts` and `wakes` are those that are taken.
fn assume_legal(
    m: Builder,
    s: &Shape,
    i: &UnitIn<Signal>,
    (live, waiting): (Signal, Signal),
    active: Signal,
    (starts, wakes): (Signal, Signal),
) {
    let Outcome { valid, slot, kind, taken, rest, call, ret, .. } = i.outcome;
    let waits = kind.eq(kind::WAIT);
    let slot = warp_of(s, slot);
    m.assume("outcome_of_a_live_slot", !valid | live.select(slot, 1));
    m.assume("start_on_an_idle_slot", !starts | !live.select(i.start.slot, 1));
    m.assume("not_both_call_and_return", !(valid & call & ret));
    m.assume("only_jumps_call_and_return", !(valid & (call | ret)) | kind.eq(kind::JUMP));
    m.assume("outcome_masks_are_disjoint", !(valid & (taken.mask & rest.mask).any()));
    m.assume("outcome_masks_are_of_x", !(valid & ((taken.mask | rest.mask) & !active).any()));
    if s.barriers {
        m.assume("outcome_of_a_slot_that_runs", !valid | !waiting.select(slot, 1));
        m.assume("wake_of_a_waiting_slot", !wakes | waiting.select(i.wake.slot, 1));
    } else {
        m.assume("no_path_waits", !(valid & waits));
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

//! The interface between the pipeline and a divergence unit: bundles only.
//!
//! [`super`] says what is told when. What only some units need is there if the mechanism has the
//! [capability](super::Capabilities) for it:
//!
//! | capability | pipeline → unit | unit → pipeline |
//! |---|---|---|
//! | outcomes are announced | [`UnitIn::announced`] | |
//! | reconverges | [`Outcome::meets`] | [`MoreOut::refused`], [`Events::levels`] |
//! | two paths per warp | [`UnitIn::unissued`] | [`MoreOut::two_paths`] |
//! | lanes of several warps | [`UnitIn::mixed`], [`Outcome::homes`] | [`MoreOut::mixed`] |
//! | convergence barriers | [`UnitIn::hints`] | [`MoreOut::count`], [`Events::releases`] |

use crate::pipeline::primitives::Named;
use crate::reconvergence::Reconvergence;
use crate::shape::Shape;
use heddle_hdl::elements;
use heddle_hdl::prelude::*;

/// Puts threads on an idle slot.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Start<T> {
    /// 1 bit; taken in a cycle in which `start_ready` is 1. The slot must be idle.
    pub valid: T,
    #[width(s.warp_bits())]
    pub slot: T,
    #[width(s.pc_bits())]
    pub pc: T,
    #[width(s.lanes)]
    pub mask: T,
}

/// Lets the threads of a slot go on.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Wake<T> {
    /// 1 bit; taken in a cycle in which `wake_ready` is 1. The slot's bit in `waiting` must be 1.
    pub valid: T,
    #[width(s.warp_bits())]
    pub slot: T,
}

/// What a control instruction (or one that reached a stop pc) did, at the end of resolve.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Outcome<T> {
    /// 1 bit.
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    /// An [`OutcomeKind`].
    #[width(OutcomeKind::WIDTH)]
    pub kind: T,
    /// The threads that took the branch, jumped, were served, or arrived; where they go.
    pub taken: Side<T>,
    /// The threads that did not: they go on at this pc (pc + 1 for a branch, the same pc for a replay). Threads in
    /// neither mask have ended.
    pub rest: Side<T>,
    /// 1 bit: the taken threads' call depth grows by one / shrinks by one. Never both, and only of jumps.
    pub call: T,
    pub ret: T,
    /// Where the threads of the branch meet again, for units that reconverge.
    #[when(s.divergence.capabilities().reconverges)]
    pub meets: Option<Reconvergence<T>>,
    /// The static warp of each lane, where a slot [mixes](Shape::mixes) them.
    #[width(s.homes_bits())]
    pub homes: Option<T>,
}

/// What an instruction is to the [LR/SC sequence](super::sequence) of its path, at the end of resolve; 1 bit each, never
/// both. With or without an outcome in the same cycle; the slot is that of [`UnitIn::outcome`].
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(_s: &Shape)]
pub struct SequenceTold<T> {
    /// `lr.w`, of all of its threads or of some.
    pub begins: T,
    /// `sc.w` of all threads of the path, a jump backwards of any, `jalr`, `ecall`, or threads wait; with an outcome.
    pub ends: T,
}

impl SequenceTold<Signal> {
    /// As it can be with the outcome, out of any.
    pub fn legal(self, outcome: &Outcome<Signal>) -> SequenceTold<Signal> {
        let kind = outcome.kind;
        let ends =
            outcome.valid & (kind.eq(OutcomeKind::Wait) | kind.eq(OutcomeKind::Converge) | kind.eq(OutcomeKind::Queue));
        SequenceTold { begins: self.begins & !ends, ends: (self.ends & !self.begins) | ends }
    }
}

/// An outcome that may come in the next cycle: no other does.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Announced<T> {
    /// 1 bit.
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    /// Those of the outcome, if it comes.
    pub call: T,
    pub ret: T,
}

/// Threads and where they go next.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Side<T> {
    /// May be empty.
    #[width(s.lanes)]
    pub mask: T,
    #[width(s.pc_bits())]
    pub pc: T,
}

/// The kind of an outcome.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OutcomeKind {
    /// A conditional branch: taken goes to the target, rest to pc + 1.
    #[default]
    Branch,
    /// A jump: the served threads go to the target, the others stay at this pc; or a `sync` whose named threads are all here,
    /// which go to pc + 1.
    Jump,
    /// A memory access: the served threads go to pc + 1, the others stay at this pc.
    Memory,
    /// The instruction before a stop pc: all go to pc + 1.
    Arrived,
    /// `ecall`: all threads of the path end.
    Exit,
    /// `barrier`: the taken threads go to taken.pc and wait there; the others go on. Only with `Shape::barriers`.
    Wait,
    /// `wait` of a convergence barrier, or a `sync` whose named threads are not all here: the taken threads go to taken.pc,
    /// all or, as the unit knows, some of them now; the others, of a `sync`, stay at this pc. Only with
    /// `Shape::convergence_barriers`.
    Converge,
    /// A `sync` whose barrier is in use: all threads stay at this pc, and the rest, which came for that barrier, gives way to
    /// all others. Only with [`syncs`](crate::shape::Shape::syncs).
    Queue,
}

/// The pipeline's side of the interface.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct UnitIn<T> {
    pub start: Start<T>,
    pub wake: Wake<T>,
    /// The slot in decode.
    #[width(s.slot_bits())]
    pub decode_slot: T,
    /// The slot in issue.
    #[width(s.slot_bits())]
    pub issue_slot: T,
    pub outcome: Outcome<T>,
    /// Where something is kept of LR/SC sequences.
    #[when(s.keeps_sequences())]
    pub sequence: Option<SequenceTold<T>>,
    /// Who may have an outcome in the next cycle, for units to which outcomes are announced.
    #[when(s.divergence.capabilities().announced)]
    pub announced: Option<Announced<T>>,
    /// Instructions on convergence barriers, for units with them.
    #[when(s.convergence_barriers > 0)]
    pub hints: Option<Hints<T>>,
    /// Of the sibling of the slot that had an outcome in the cycle before, for units with two paths per warp.
    #[when(s.divergence.capabilities().two_paths)]
    pub unissued: Option<Unissued<T>>,
    /// Of blocks and their registers, for units with lanes of several warps.
    #[when(s.divergence.capabilities().mixes_warps)]
    pub mixed: Option<MixedIn<T>>,
}

/// The unit's side of the interface. All outputs belong to the same cycle as the inputs they answer.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct UnitOut<T> {
    /// 1 bit: a start is taken in this cycle.
    pub start_ready: T,
    /// 1 bit: a wake is taken in this cycle.
    pub wake_ready: T,
    /// One bit per slot: it has live threads.
    pub live: T,
    /// One bit per slot: it is live, and all its live threads wait, and no wake of it was taken.
    pub waiting: T,
    /// The stop pc of `decode_slot`.
    pub stop: Stop<T>,
    /// The mask of `issue_slot`'s active path.
    pub mask: T,
    /// Where a slot goes on after an outcome, a start or a wake.
    pub steer: Steer<T>,
    /// 1 bit: issue must hold back control instructions, so that a waiting update gets its turn.
    pub hold: T,
    /// What only units with a certain capability say.
    pub more: MoreOut<T>,
    pub events: Events<T>,
}

/// What a unit says that has the [capability](super::Capabilities) for it; a unit without any writes [`MoreOut::NONE`].
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MoreOut<T> {
    /// With convergence barriers, of the instruction on them in stage 8: the number of threads that participate,
    /// `count_width(lanes)`.
    pub count: Option<T>,
    /// With convergence barriers and warp primitives, of the `sync` in stage 8: its barrier is in use, 1 bit.
    pub in_use: Option<T>,
    /// Of units that reconverge.
    pub refused: Option<Refused<T>>,
    /// Of units with two paths per warp.
    pub two_paths: Option<TwoPaths<T>>,
    /// Of units with lanes of several warps.
    pub mixed: Option<MixedOut<T>>,
}

impl<T> MoreOut<T> {
    pub const NONE: MoreOut<T> = MoreOut { count: None, in_use: None, refused: None, two_paths: None, mixed: None };
}

/// The unit cannot go on: the core must stop.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Refused<T> {
    /// 1 bit.
    pub valid: T,
    /// A [`FaultCause`](crate::isa::FaultCause).
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
#[widths(s: &Shape)]
pub struct Stop<T> {
    pub valid: T,
    #[width(s.pc_bits())]
    pub pc: T,
}

/// The next pc of a slot.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Steer<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(s.pc_bits())]
    pub pc: T,
    /// 1 bit: the threads are those a memory access left unserved, and no others: the instruction at `pc` is issued
    /// again without waiting for its own registers.
    pub replay: T,
}

/// What happened in this cycle, for counters; 1 bit each unless stated.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Events<T> {
    /// Paths that became one with another, 2 bits.
    #[width(2)]
    pub merges: T,
    /// A path went to the cold context table / came back / was exchanged by the sorter.
    pub insert: T,
    pub extract: T,
    pub swap: T,
    /// Paths that the warp of an outcome holds after it, `lane_bits + 1`, in the cycle of the outcome or a later one;
    /// else 0.
    #[width(s.lane_bits() + 1)]
    pub paths: T,
    /// Of units that reconverge, levels in use of the warp of an outcome after it, or of a block;
    /// `levels_bits`; else 0.
    #[width(s.levels_bits())]
    pub levels: T,
    /// Of convergence barriers.
    #[when(s.convergence_barriers > 0)]
    pub releases: Option<Releases<T>>,
    /// 1 bit: a path gave way.
    #[when(s.gives_way())]
    pub gave_way: Option<T>,
}

impl Events<Signal> {
    /// Nothing happened.
    pub fn none(m: Builder, s: &Shape) -> Events<Signal> {
        m.zero(Events::shape(s))
    }
}

/// Something of a slot.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct OfSlot<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
}

impl OfSlot<Signal> {
    /// One bit per warp: it is of this one.
    pub fn warps(self, s: &Shape) -> Signal {
        warp_of(s, self.slot).decode(s.warps).only_if(self.valid)
    }

    /// One bit per slot: it is of this one.
    pub fn slots(self, s: &Shape) -> Signal {
        self.slot.decode(s.slots()).only_if(self.valid)
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

/// One bit per slot, of one bit per warp each for left and right sides.
pub fn by_slot(left: Signal, right: Signal) -> Signal {
    cat(&(0..left.width()).flat_map(|w| [left.bit(w), right.bit(w)]).collect::<Vec<_>>())
}

/// The other way round, with as many bits per slot.
pub fn by_side(slots: Signal, width: Width) -> [Signal; 2] {
    let of_slots = elements(slots, width);
    [0, 1].map(|side| cat(&of_slots.iter().copied().skip(side).step_by(2).collect::<Vec<_>>()))
}

/// An instruction on convergence barriers in stage 8. It has an effect: its barriers exist.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Hint<T> {
    /// 1 bit.
    pub valid: T,
    #[width(s.warp_bits())]
    pub slot: T,
    /// A [`HintKind`](crate::isa::HintKind).
    #[width(crate::isa::HintKind::WIDTH)]
    pub operation: T,
    #[width(s.barrier_bits())]
    pub barrier: T,
    /// The other barrier, or the threshold, 7 bits.
    #[width(7)]
    pub operand: T,
    /// The threads that execute it: all of the active path.
    #[width(s.lanes)]
    pub mask: T,
    /// Instruction number of the next one.
    #[width(s.pc_bits())]
    pub next: T,
    /// Of a `sync`, whom it names. In a core with warp primitives.
    #[width(Named::of(s).filter(|_| s.syncs()))]
    pub sync: Option<Named<T>>,
}

/// The barrier that the instruction in the first cycle of stage 7 will name.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct First<T> {
    #[width(s.warp_bits())]
    pub slot: T,
    #[width(s.barrier_bits())]
    pub barrier: T,
}

/// What the instruction in the second cycle of stage 7 will be in the next.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Ahead<T> {
    /// As in [`Hint`]; the barrier is that of [`First`] in the cycle before.
    #[width(s.warp_bits())]
    pub slot: T,
    #[width(s.barrier_bits())]
    pub barrier: T,
    #[width(s.lanes)]
    pub mask: T,
    #[width(s.pc_bits())]
    pub next: T,
    /// 1 bit: it is a `count`.
    pub counts: T,
    #[width(s.barrier_bits())]
    pub other: T,
    /// 1 bit: it may name `other`.
    pub both: T,
}

/// What the pipeline tells a unit with convergence barriers.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Hints<T> {
    pub first: First<T>,
    pub ahead: Ahead<T>,
    pub hint: Hint<T>,
    /// 1 bit, early: an instruction is in stage 8. It may have no effect since the core has stopped.
    pub present: T,
}

/// Why threads that waited go on, and what else happened in this cycle; 1 bit each.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Releases<T> {
    /// All that participate wait.
    pub complete: T,
    /// As many wait as the last arrival asks for.
    pub threshold: T,
    /// No path of the warp can run.
    pub stuck: T,
    /// They have waited long.
    pub patience: T,
    /// Participants came to another place than those that wait: they left the barrier and went on.
    pub fell_through: T,
}

/// What the pipeline tells a unit with two paths per warp in the cycle behind an outcome: where the sibling of its slot
/// is.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Unissued<T> {
    /// 1 bit: it has issued something since it was steered, in the outcome's cycle too.
    pub valid: T,
    /// Then, the instruction behind that.
    #[width(s.pc_bits())]
    pub pc: T,
}

/// What a unit with two paths per warp says.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct TwoPaths<T> {
    /// 1 bit, and the slot: what has not issued of it by the end of this cycle is dropped.
    pub flush: T,
    pub flushed: T,
    /// The paths of a warp change.
    pub changed: PathsChange<T>,
    /// One bit per warp: paths are still to be popped or steered.
    pub busy: T,
    /// One bit per slot: it has a path.
    pub active: T,
    /// 1 bit: what [`UnitOut::steer`] replays was issued on the other side: writes of this side's own may be under way.
    pub changes_side: T,
    /// Paths of the warp of `issue_slot` that can be scheduled: 1 or 2, 2 bits.
    pub paths: T,
    /// With [`Scoreboard::Exact`], one bit per lane and slot: the threads of its path, if it has one.
    pub threads: Option<T>,
}

/// The paths of a warp change at the end of the cycle: a thread may get another side.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct PathsChange<T> {
    /// 1 bit.
    pub valid: T,
    #[width(s.warp_bits())]
    pub warp: T,
}

/// What a unit with lanes of several warps must know of blocks, and of registers.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct MixedIn<T> {
    /// 1 bit: a launch begins.
    pub restart: T,
    /// See [`crate::block::Grid::group`].
    #[width(s.warp_bits())]
    pub group: T,
    /// One bit per slot: not all warps of its block have been started.
    #[width(s.warps)]
    pub filling: T,
    /// One bit per slot: no register of it awaits a write.
    #[width(s.warps)]
    pub quiet: T,
    /// The slot whose register is written in this cycle.
    #[width(s.warp_bits())]
    pub written: T,
    /// Slot and pc of the instruction in stage 8.
    #[width(s.warp_bits())]
    pub resolving: T,
    #[width(s.pc_bits())]
    pub pc: T,
}

/// What a unit with lanes of several warps says.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MixedOut<T> {
    /// The static warp of each lane of `issue_slot`, and of `written`.
    pub homes: Option<T>,
    pub written_homes: Option<T>,
    /// One bit per slot: its warp is ahead, and must not issue a control instruction.
    pub ahead: Option<T>,
    /// One bit per slot: but for one that [passes](crate::shape::Shape::slack), which it may issue.
    pub may_pass: Option<T>,
    /// The target of the `jalr` in stage 8, if a warp of the block has arrived at it.
    pub jump: Jump<T>,
}

/// The target of a `jalr` that other warps of the block have executed.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Jump<T> {
    /// 1 bit; then, threads with another target are not served.
    pub valid: T,
    /// Instruction number.
    #[width(s.pc_bits())]
    pub pc: T,
}

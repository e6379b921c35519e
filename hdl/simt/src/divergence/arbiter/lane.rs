//! The threads of a lane: where they are, and how they compare.

use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// A thread in the table.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Thread<T> {
    pub place: Place<T>,
    /// 1 bit: it is live. The place means something only then.
    pub valid: T,
}

/// Where threads are.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Place<T> {
    /// Call depth, `depth_bits`.
    #[width(s.depth_bits)]
    pub depth: T,
    /// Instruction number, `pc_bits`.
    #[width(s.pc_bits())]
    pub pc: T,
    /// 1 bit: they have given way; in the table, xor the round of their warp, unless they wait.
    #[when(s.fair)]
    pub late: Option<T>,
    /// 1 bit: they wait; in the table, xor the phase of their warp.
    pub waits: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct LaneIn<T> {
    /// The thread of `slot` is written: whether it is live, and where it is, `taken` or `rest`.
    pub write: T,
    #[width(s.warp_bits())]
    pub slot: T,
    pub valid: T,
    pub goes: T,
    pub taken: Place<T>,
    pub rest: Place<T>,
    /// The warp that enters the first tree, its phase and its round.
    #[width(s.warp_bits())]
    pub entering: T,
    pub entering_phase: T,
    #[when(s.fair)]
    pub entering_round: Option<T>,
    /// The warp that leaves it (1 bit: there is one), its phase and its round, and the least rank of its threads.
    pub leaves: T,
    #[width(s.warp_bits())]
    pub leaving: T,
    pub leaving_phase: T,
    #[when(s.fair)]
    pub leaving_round: Option<T>,
    #[width(rank_bits(s))]
    pub first: T,
    /// For counters, of the warp that enters: the ranks of taken and rest.
    #[width(rank_bits(s) - 1)]
    #[when(s.has_metrics())]
    pub sides: Option<[T; 2]>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct LaneOut<T> {
    /// Of the warp that enters: the thread's [`rank`].
    pub rank: T,
    /// Of the warp that leaves: the thread has the least rank / is at the same depth and at another pc; its pc.
    pub same: T,
    pub beside: T,
    pub pc: T,
    /// Of the warp that leaves, 1 bit: the thread is live.
    pub live: T,
    /// For counters, of the warp that enters: the thread is where taken, rest go.
    pub at_sides: Option<[T; 2]>,
}

impl Place<Signal> {
    /// The number that live threads are sorted by, least first: those that can run, those that have not given way,
    /// greatest depth, least pc.
    pub fn rank(self) -> Signal {
        let mut parts = vec![self.pc, !self.depth];
        parts.extend(self.late);
        parts.push(self.waits);
        cat(&parts)
    }

    /// Of who waits as `waits` says: between the table and the trees.
    pub fn of_round(self, round: Option<Signal>) -> Place<Signal> {
        Place { late: self.late.zip(round).map(|(late, round)| late ^ (round & !self.waits)), ..self }
    }
}

impl Thread<Signal> {
    /// The same for all threads: those that are not live come last.
    pub fn rank(self) -> Signal {
        cat(&[self.place.rank(), !self.valid])
    }

    /// Between the table and the trees; without [`Shape::barriers`] nobody waits.
    pub fn turned(self, s: &Shape, phase: Signal, round: Option<Signal>) -> Thread<Signal> {
        let waits = if s.barriers { self.place.waits ^ phase } else { phase.literal(0u32) };
        Thread { place: Place { waits, ..self.place }.of_round(round), ..self }
    }
}

/// Bits of a thread's rank.
pub fn rank_bits(s: &Shape) -> Width {
    width_of(&Thread::shape(s))
}

/// The place of a live thread's rank.
pub fn unpack_rank(s: &Shape, rank: Signal) -> Place<Signal> {
    let pc_bits = s.pc_bits();
    let depth = !rank.slice(pc_bits, s.depth_bits);
    let above = pc_bits + s.depth_bits;
    let late = s.fair.then(|| rank.bit(above));
    Place { pc: rank.slice(0, pc_bits), depth, late, waits: rank.bit(above + Width::from(s.fair)) }
}

/// One thread of each warp.
pub fn lane(s: &Shape) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    module("arbiter_lane", LaneIn::shape(s), |m, i| {
        m.doc("The threads of a lane: where they are, and how they compare.");
        let threads = m.memory("threads", Thread::shape(s), s.warp_bits()).style(MemoryStyle::Distributed);
        let (out, is_before) = compared(s, &threads, i);
        m.assert("nobody_is_before_the_first", !(i.leaves & is_before));
        out
    })
}

/// The lane's answers; and whether the thread of the warp that leaves comes before those that were found first.
pub fn compared(s: &Shape, threads: &Mem<Thread<Width>>, i: LaneIn<Signal>) -> (LaneOut<Signal>, Signal) {
    threads.write(i.write, i.slot, Thread { place: i.goes.mux(i.taken, i.rest), valid: i.valid });
    let entering = threads.read(i.entering).turned(s, i.entering_phase, i.entering_round);
    let leaving = threads.read(i.leaving).turned(s, i.leaving_phase, i.leaving_round);
    let rank = leaving.rank();
    let beside = rank.from_bit(s.pc_bits()).eq(i.first.from_bit(s.pc_bits()));
    let same_pc = leaving.place.pc.eq(i.first.slice(0, s.pc_bits()));
    let out = LaneOut {
        rank: entering.rank(),
        same: beside & same_pc,
        beside: beside & !same_pc,
        pc: leaving.place.pc,
        live: leaving.valid,
        at_sides: i.sides.map(|sides| sides.map(|side| entering.valid & entering.place.rank().eq(side))),
    };
    (out, rank.lt(i.first))
}

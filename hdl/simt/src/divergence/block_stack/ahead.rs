//! Warps of a block stack that are ahead of their block, and what a prediction learns from: compaction-adequacy
//! prediction (CAPRI, `capri.txt` §3), for [`Compaction::Predict`](crate::shape::Compaction::Predict).
//!
//! A warp that a branch does not part runs on at once, *ahead* of its block; and so does one that is parted, with the
//! side that goes first, where the [prediction table](mod@super::capt) says that forming warps is not worth it. A warp
//! that is ahead gets no further than its next control instruction, or with [`slack`](super::slack) a later one, which is
//! held back until its threads are the top; then it goes on as one of the top's warps. Jumps that may diverge are always
//! waited for. When a side becomes the top, the table learns whether its threads fit into fewer warps than they came in.
//!
//! A warp that comes as a whole to where the branch's threads meet goes past that, too, unless the top's threads meet
//! there, or it is the branch's likely point. If no thread of the block goes the other way, it is one of the top's when
//! all have arrived; else it is ahead of the branch's group, until that runs.
//!
//! | when | block stack → here | here → block stack |
//! |---|---|---|
//! | a warp arrives | [`Arriving`] | [`Going`]: it goes ahead; with which side, to where |
//! | the stack acts for a block | [`Turn`] | [`Ahead::branch`]: what to keep with the level |
//! | warps are formed | | [`Ahead::threads`]: those that are left out |
//!
//! State: a bit per slot, and for each slot the side that its warp is of; a bit per thread (the paper's UMask has one
//! per warp); by block, the warps that came to its branch with threads for each side.
//!
//! Slots suffice: a warp that is ahead with the side that goes second, or with the group, is whole, so the others of its
//! branch came in as many warps as there are other slots, and no lane has more threads of them than that. Nobody goes
//! ahead in part where both sides are one place: then the others of the warp would need another slot.

use super::super::levels::{Compared, Sides, Top, is_at_point, levels, sides, stop_of};
use super::super::{Outcome, Side, Stop};
use super::capt::{CaptIn, CaptOut, capt};
use super::slack::Slack;
use super::state::Count;
use crate::shape::Shape;
use heddle_hdl::elements;
use heddle_hdl::prelude::*;

/// A branch, for the prediction table.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Branch<T> {
    /// Behind the branch.
    #[width(s.pc_bits())]
    pub pc: T,
    /// Warps that came with threads for the side.
    #[width(count_width(s.warps))]
    pub warps: T,
}

/// Warps that came with threads for each side of a branch.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Came<T> {
    taken: T,
    rest: T,
}

/// Which threads the warp of a slot that is ahead is of.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Place<T> {
    /// Those of the branch where the block's warps arrive; and then, on the taken side.
    at_branch: T,
    taken: T,
    /// Else those of this level: of its group; or of its sibling.
    level: T,
    group: T,
}

/// A warp's outcome.
#[derive(Clone, Copy)]
pub struct Arriving<'a> {
    pub outcome: &'a Outcome<Signal>,
    /// Its block's top, at the warp's call depth; and the outcome's sides, if it parted that.
    pub top: Top<Signal>,
    pub compared: Compared<Signal>,
    /// 1 bit: it is a branch where warps wait; threads of the warp go both ways.
    pub parting: Signal,
    pub splits: Signal,
    /// The block's lowest slot; 1 bit: no warp of the block has arrived yet.
    pub block: Signal,
    pub is_first: Signal,
}

/// How a warp goes ahead.
#[derive(Clone, Copy)]
pub struct Going {
    /// 1 bit: it does.
    pub goes: Signal,
    /// 1 bit: with the side that took the branch; and that side.
    pub on_taken: Signal,
    pub side: Side<Signal>,
    /// Where it is then, and where it reconverges with others; the mask is the whole warp's.
    pub at: Top<Signal>,
    pub stop: Stop<Signal>,
}

/// What the stack does for a block in this cycle.
#[derive(Clone, Copy)]
pub struct Turn {
    /// The block's slots, a bit each.
    pub slots: Signal,
    /// 1 bit: all have arrived; at a conditional branch; which makes them diverge, and its taken side goes first.
    pub begins: Signal,
    pub branch: Signal,
    pub apart: Signal,
    pub goes_as_taken: Signal,
    /// 1 bit: the side that does not go first runs next; else it is where the branch's threads meet.
    pub both_stay: Signal,
    /// 1 bit: the uppermost level is popped; to its sibling, or out of its group.
    pub pops: Signal,
    pub to_sibling: Signal,
    pub to_outer: Signal,
    /// The branch where all have arrived, or that of the level.
    pub of: Branch<Signal>,
    /// Levels in use.
    pub count: Count<Signal>,
    /// 1 bit: who runs now is where it meets others, too.
    pub arrives_again: Signal,
    /// 1 bit: warps are formed next, of these threads and of those that are ahead with them.
    pub forms: Signal,
    pub threads: Signal,
}

/// What the checks look at: slots that run, threads that live, threads that are being formed into warps.
#[derive(Clone, Copy)]
pub struct Others {
    pub running: Signal,
    pub live: Signal,
    pub forming: Signal,
}

/// The state.
pub struct Ahead {
    slots: Reg<Signal>,
    threads: Reg<Signal>,
    places: Vec<Reg<Place<Signal>>>,
    came: Mem<Came<Width>>,
    /// The table's word on the branch of the warp that arrives.
    adequate: Deferred<Signal>,
    /// With [`Shape::passes`].
    pub slack: Option<Slack>,
    /// The core, and the shape whose one warp is the block.
    s: Shape,
    wide: Shape,
}

impl Ahead {
    /// `wide` is what [`super::super::levels`] sees.
    pub fn new(m: Builder, s: &Shape, wide: &Shape) -> Ahead {
        let came = Came { taken: count_width(s.warps), rest: count_width(s.warps) };
        let place = Place { at_branch: 1, taken: 1, level: index_width(levels(wide)), group: 1 };
        Ahead {
            came: m.memory("came", came, s.warp_bits()).style(MemoryStyle::Distributed),
            slots: m.reg("ahead", s.warps).reset(0u32),
            threads: m.reg("ahead_threads", s.threads()).reset(0u32),
            places: (0..s.warps).map(|slot| m.reg(&format!("ahead_{slot}"), place).reset_zero()).collect(),
            adequate: m.deferred("predicted", 1),
            slack: s.passes().then(|| Slack::new(m, s)),
            s: s.clone(),
            wide: wide.clone(),
        }
    }

    /// One bit per slot: its warp is ahead.
    pub fn slots(&self) -> Signal {
        self.slots.q
    }

    /// One bit per thread: it is ahead.
    pub fn threads(&self) -> Signal {
        self.threads.q
    }

    /// Whether a warp goes ahead.
    pub fn goes(&self, m: Builder, arriving: &Arriving) -> Going {
        let Arriving { outcome, top, compared, parting, splits, .. } = *arriving;
        let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads reconverge") };
        let Compared { apart, taken_is_there, rest_is_there, .. } = compared;
        let Sides { meeting, towards, taken_first, .. } = sides(m, &self.wide, meets, &top, compared);
        let on_taken = splits.mux(taken_first, outcome.taken.mask.any());
        let side = on_taken.mux(outcome.taken, outcome.rest);
        let if_together = Top { pc: side.pc, ..top };
        let at_point = is_at_point(&if_together).unwrap_or(m.lit(0u32, 1));
        wire!(meets_there = top.rpc.reached(side.pc, top.depth) | at_point);
        // Where the branch's threads meet, the others come to a warp that is whole.
        wire!(is_there = on_taken.mux(taken_is_there, rest_is_there));
        let may_run = !meets_there & !(towards.valid & side.pc.eq(towards.pc));
        let goes = parting & may_run & (!splits | (apart & !self.adequate.value));
        m.assert("who_goes_to_where_threads_meet_is_whole", !(goes & splits & is_there));
        m.cover("goes_past_where_threads_meet", goes & is_there);
        let at = Top { pc: side.pc, rpc: meeting, likely: top.likely.map(|_| towards), ..top };
        Going { goes, on_taken, side, at, stop: nearer(side.pc, stop_of(at), stop_of(if_together)) }
    }

    /// The branch that the warps of a block have arrived at, `pc` behind it: what the table is to know of a side.
    pub fn branch(&self, block: Signal, pc: Signal, taken: Signal) -> Branch<Signal> {
        let came = self.came.read(block);
        Branch { pc, warps: taken.mux(came.taken, came.rest) }
    }

    /// What follows from what a warp does (which `passes`, and `parks`, or not), from the threads that go ahead with it,
    /// and from what the stack does. One bit per slot: its warp is ahead no longer.
    pub fn follows(
        &self,
        m: Builder,
        (arriving, going, go): (&Arriving, Going, Signal),
        (passes, parks): (Signal, Signal),
        turn: Turn,
        restart: Signal,
    ) -> Signal {
        let Arriving { outcome, parting, splits, block, is_first, .. } = *arriving;
        if let Some(slack) = &self.slack {
            slack.follows(&self.s, outcome.slot, (going, arriving.top), (passes, parks));
        }
        let Turn { slots: of_block, begins, apart, pops, to_sibling, to_outer, count, forms, .. } = turn;
        let (never, one) = (m.lit(0u32, 1), m.lit(1u32, 1));

        // Warps that are ahead go on with the top when it is theirs.
        let level_bits = index_width(levels(&self.wide));
        let below = count.below.slice(0, level_bits);
        let mut released = Vec::new();
        for (slot, place) in (0..).zip(&self.places) {
            let is_ahead = self.slots.q.bit(slot) & of_block.bit(slot);
            let Place { at_branch, taken, level, group } = place.q;
            let with_branch = begins & at_branch & (!apart | taken.eq(turn.goes_as_taken));
            let with_level = pops & group.mux(to_outer, to_sibling) & !at_branch & level.eq(below);
            released.push(is_ahead & (with_branch | with_level));
            let goes = going.goes & outcome.slot.eq(slot);
            let new = Place { at_branch: one, taken: going.on_taken, level, group };
            let to_level =
                Place { at_branch: never, taken, level: count.now.slice(0, level_bits), group: !turn.both_stay };
            place.next_if(goes | (is_ahead & begins & at_branch), goes.mux(new, to_level));
        }
        wire!(released = cat(&released));
        let comes = outcome.slot.decode(self.s.warps).only_if(going.goes);
        self.slots.next((self.slots.q | comes) & !released);
        self.threads.next((self.threads.q | go.only_if(going.goes)) & !turn.threads.only_if(forms));

        // What the table learns from.
        let Came { taken, rest } = self.came.read(block).only_if(!is_first);
        let one_more = |count: Signal, side: Side<Signal>| count + side.mask.any().zext(count.width());
        self.came.write(
            parting,
            block,
            Came { taken: one_more(taken, outcome.taken), rest: one_more(rest, outcome.rest) },
        );
        // Counted in the cycle after, and learned in the one behind that.
        let learns = m.pipe_reset("counts_threads", forms & (turn.branch | (pops & to_sibling)));
        let Branch { pc, warps } = m.pipe("counted", turn.of);
        let lanes = elements(m.pipe("counted_threads", turn.threads), self.s.warps);
        let fewer = lanes.into_iter().map(|lane| lane.count_ones().lt(warps)).reduce(|a, b| a & b).expect("a lane");
        let inputs = CaptIn {
            clear: restart,
            asks: parting & splits,
            asked: outcome.rest.pc,
            learns: m.pipe_reset("learns", learns),
            learned: m.pipe("learned", pc),
            was_adequate: m.pipe("was_adequate", fewer),
        };
        let CaptOut { adequate, known } = m.instance("capt", &capt(&self.s), inputs);
        self.adequate.drive(adequate);

        m.probe("released", released.count_ones());
        m.cover("goes_ahead_whole", going.goes & !splits);
        m.cover("goes_ahead_in_part", going.goes & splits);
        m.cover("parts_and_waits", parting & splits & known & adequate);
        m.cover("second_side_is_ahead", begins & apart & (of_block & self.slots.q & !released).any());
        m.cover("goes_on_with_a_level", pops & to_sibling & released.any());
        m.cover("goes_on_with_a_group", pops & to_outer & released.any());
        m.assert("those_ahead_of_a_group_do_not_meet_again", !(pops & turn.arrives_again & released.any()));
        m.cover("all_were_ahead", forms & !(turn.threads & !self.threads.q).any());
        released
    }

    /// Nobody is in two warps.
    pub fn check(&self, m: Builder, others: Others) {
        let Others { running, live, forming } = others;
        m.assert("a_warp_that_is_ahead_runs", !(self.slots.q & !running).any());
        m.assert("formed_threads_are_not_ahead", !(forming & self.threads.q).any());
        m.assert("ahead_threads_are_live", !(self.threads.q & !live).any());
    }
}

/// The first of two places that threads come to from here.
pub fn nearer(pc: Signal, a: Stop<Signal>, b: Stop<Signal>) -> Stop<Signal> {
    let ahead = |stop: Stop<Signal>| stop.valid & stop.pc.gt(pc);
    let a_first = ahead(a) & !(ahead(b) & b.pc.lt(a.pc));
    a_first.mux(a, b)
}

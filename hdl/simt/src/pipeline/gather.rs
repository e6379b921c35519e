//! The gather register: holds what comes late, the answer to a load or a quotient, until stage 10 has a free cycle.
//!
//! An answer goes in at once if the register is empty or is being written. Under [`Replay::Split`] it is offered for
//! writing from the next cycle on.
//!
//! Under [`Replay::Serialise`], a load of a warp may be several accesses, and their answers are put together, so that
//! they are one register write: an answer also goes in if the register holds earlier lanes of the same load, and what
//! it holds is offered when it has the load's last lanes, or when something else has been waiting behind it for a
//! cycle: whose answer has come is known late, and whether it goes in decides about the next request. So each owner of
//! what may come is compared with what is held, before it is known which comes, and one register write serves all
//! accesses of a load whose answers come one after the other. Any order of answers is right.
//!
//! ```text
//! answer ───┬─► [ held: slot, rd, lanes, words ] ─► stage 10, which aligns
//! quotient ─┘
//! ```
//!
//! With many lanes, without a crossbar and under [`Replay::Split`], banks' words go in as they are, the leader's beside
//! them, and who gets which is [chosen behind](leader_behind).
//!
//! With [`Scoreboard::Exact`], two loads of one slot and register may be under way, for different threads. Those of one
//! size are put together as if they were one, and are written when both have come or something else waits.
//!
//! What it does not do: it holds one load; answers that alternate between two loads are written one by one.

use super::load_queue::{Owner, Owners};
use super::network::{Leader, leader_behind};
use crate::shape::{Replay, Scoreboard, Shape};
use heddle_hdl::{each, prelude::*};

/// Lanes of a late result, for the register banks.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Loaded<T> {
    /// 1 bit.
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    /// Not 0.
    #[width(5)]
    pub rd: T,
    /// One bit per lane.
    #[width(s.lanes)]
    pub lanes: T,
    /// 32 bits per lane: words, of which the lanes want the part at the byte offset, 2 bits per lane, of this size, as
    /// an instruction that loads says it in 3 bits. With `leader`, those of banks, which the lanes want that it says.
    #[width(32 * s.lanes)]
    pub words: T,
    /// With [the choice behind](leader_behind).
    #[width(leader_behind(s).then(|| Leader::shape(s)))]
    pub leader: Option<Leader<T>>,
    #[width(2 * s.lanes)]
    pub offset: T,
    #[width(3)]
    pub size: T,
    /// 1 bit: no lane of the register is under way behind these.
    pub last: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct GatherIn<T> {
    /// Stays until `taken`, but another may come in its place: a quotient's, or the other memory's.
    pub answer: Loaded<T>,
    /// What is offered is written in this cycle.
    pub written: T,
    /// Where scratchpad and memory port [both may answer](Shape::two_answers).
    #[width(s.two_answers().then(|| Candidates::shape(s)))]
    pub candidates: Option<Candidates<T>>,
}

/// Whose an answer is that may come, from each place that it may come from.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Candidates<T> {
    #[width(Owners::shape(s))]
    pub loads: Owners<T>,
    #[width(Owner::shape(s))]
    pub quotient: Owner<T>,
    /// 1 bit: the answer is a load's.
    pub from_load: T,
}

impl Candidates<Signal> {
    /// What is found of the owner of the answer: of all, and then chosen.
    fn of_answer(self, find: impl Fn(Owner<Signal>) -> Signal) -> Signal {
        self.from_load.mux(self.loads.of_answer(&find), find(self.quotient))
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct GatherOut<T> {
    /// The answer goes in.
    pub taken: T,
    /// What can be written.
    pub offered: Loaded<T>,
    /// Nothing is held.
    pub empty: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct WordIn<T> {
    enable: T,
    part: Part<T>,
}

/// A word, and where in it is what the lane wants.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Part<T> {
    word: T,
    offset: T,
}

fn word() -> TypedModule<WordIn<Width>, Part<Signal>> {
    module("gather_word", WordIn { enable: 1, part: Part { word: 32, offset: 2 } }, |m, i| {
        m.doc("One lane's word of the gather register.");
        m.pipe_if("held", i.enable, i.part)
    })
}

pub fn gather(s: &Shape) -> TypedModule<GatherIn<Width>, GatherOut<Signal>> {
    module("gather", GatherIn::shape(s), |m, i| {
        m.doc("Holds late results, and puts the answers to one load together.");
        let GatherIn { answer, written, candidates } = i;
        let held = m.reg("held", 1).reset(0u32);
        let last = m.reg("last", 1).reset(0u32);
        let lanes = m.reg("lanes", s.lanes).reset(0u32);
        let taken = m.deferred("taken", 1);
        let slot = m.pipe_if("slot", taken.value, answer.slot);
        let rd = m.pipe_if("rd", taken.value, answer.rd);

        let gathers = s.replay == Replay::Serialise;
        // Of one slot and register, two loads may be under way, if the scoreboard tells threads from each other.
        let size = m.pipe_if("size", taken.value, answer.size);
        let (owner, of_answer) = (Owner { slot, rd }, Owner { slot: answer.slot, rd: answer.rd });
        let of_held = match candidates {
            Some(candidates) => {
                let matches = candidates.of_answer(|candidate| candidate.is(of_answer));
                m.assume("the_answer_is_of_its_candidate", !answer.valid | matches);
                candidates.of_answer(|candidate| candidate.is(owner))
            }
            None => of_answer.is(owner),
        };
        wire!(same = held.q & !last.q & of_held & m.lit(gathers, 1));
        let joins = if s.scoreboard == Scoreboard::Exact { same & size.eq(answer.size) } else { same };
        let joins = joins.named("joins");
        let ready = if gathers {
            last.q | m.pipe_reset("another_waits", answer.valid & held.q & !joins & !written)
        } else {
            m.lit(1u32, 1)
        };
        wire!(offered = held.q & ready);
        taken.drive(answer.valid & (!held.q | joins | written));
        held.next(taken.value | (held.q & !written));
        last.next_if(taken.value, answer.last);
        // What is offered since another has waited may be written in the cycle in which more of it comes.
        let keeps = if gathers { joins & !written } else { joins };
        lanes.next_if(taken.value, answer.lanes | lanes.q.only_if(keeps));
        let leader = answer.leader.map(|leader| m.pipe_if("leader", taken.value, leader));
        let enables = answer.lanes.only_if(taken.value);
        let parts =
            WordIn { enable: each(enables), part: Part { word: each(answer.words), offset: each(answer.offset) } };
        let parts = m.replicate("word", s.lanes, &word(), parts);

        m.assume("answers_have_a_register", !answer.valid | answer.rd.any());
        m.assert("only_what_is_offered_is_written", !written | offered);
        m.assert("a_lane_is_answered_once", !(taken.value & joins) | !(answer.lanes & lanes.q).any());
        if gathers {
            m.cover("joins", taken.value & joins);
            m.cover("more_comes_as_it_is_written", written & joins);
            m.cover("another_load_comes_between", offered & !last.q);
        }
        m.cover("goes_in_as_it_is_written", taken.value & written);
        m.cover("waits_for_a_write", answer.valid & !taken.value);
        let (words, offset, lanes, last) = (parts.word, parts.offset, lanes.q, last.q);
        let offered = Loaded { valid: offered, slot, rd, lanes, words, leader, offset, size, last };
        GatherOut { taken: taken.value, offered, empty: !held.q }
    })
}

#[cfg(test)]
mod tests;

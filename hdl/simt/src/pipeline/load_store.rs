//! The load-store unit: serves the lanes of one access after the other, group by group, while their warp runs on.
//!
//! Only under [`Replay::Serialise`]. Behind resolve an instruction that accesses memory has taken effect for the pipeline;
//! what is left of it waits here in a queue, in the order of issue, until memory has taken all of its lanes. Issue takes a
//! place in the queue beforehand, so the pipeline never stalls for it.
//!
//! ```text
//! resolve ─► queue ─► [ coalesce: a group a cycle ] ─► register ─► stage 9 ─► memory port or scratchpad
//!                              │ ▲ load queue has room
//!                              └─► load queue
//! ```
//!
//! [`Replay::Serialise`]: crate::shape::Replay::Serialise

use super::coalesce::{CoalesceIn, coalesce};
use super::memory::{Access, Asked, Lanes};
use crate::queue::Queue;
use crate::scoreboard::Pending;
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*};

/// An instruction's access to memory, all its lanes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Whole<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    /// 0 where memory does not answer, or nobody wants the answer.
    #[width(5)]
    pub rd: T,
    #[width(Asked::shape())]
    pub asked: Asked<T>,
    #[width(s.lanes)]
    pub mask: T,
    /// [`Shape::place_bits`] a lane.
    #[width(s.place_bits() * s.lanes)]
    pub places: T,
    /// 32 bits a lane.
    #[width(32 * s.lanes)]
    pub data: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct LoadStoreIn<T> {
    /// From resolve: registered there.
    pub whole: Whole<T>,
    /// The load queue has a free entry, and its number.
    pub load_room: T,
    #[width(index_width(s.loads))]
    pub load_tag: T,
    /// Memory takes `access` in this cycle.
    pub taken: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct LoadStoreOut<T> {
    /// A group is chosen: its access, for the load queue to remember if `answers`.
    pub chosen: Access<T>,
    pub answers: T,
    /// The instruction that is being served, and whether it is.
    pub serving: Pending<T>,
    /// The group chosen before, for memory, until `taken`.
    pub access: Access<T>,
    /// An instruction has left the queue.
    pub left: T,
    /// Nothing waits here.
    pub empty: T,
    /// The group chosen is not the last of its instruction.
    pub parts: T,
}

pub fn load_store(s: &Shape) -> TypedModule<LoadStoreIn<Width>, LoadStoreOut<Signal>> {
    module("load_store", LoadStoreIn::shape(s), |m, i| {
        m.doc("The load-store unit: serves the lanes of an access group by group.");
        let queue = Queue::new(m, "queue", Whole::shape(s), s.requests, i.whole.valid, i.whole);
        let (head, waits) = (queue.head, queue.waits);

        // The lanes of the head that were served before.
        let served = m.reg("served", s.lanes).reset(0u32);
        wire!(mask = head.mask & !served.q);
        wire!(leader = mask.lowest_one());
        wire!(first_place = select_one_hot(&elements(head.places, s.place_bits()), leader));
        let chosen = m.instance(
            "coalesce",
            &coalesce(s),
            CoalesceIn {
                mask,
                leader,
                store: head.asked.is_store(),
                atomic: head.asked.is_atomic(),
                places: head.places,
                first: first_place,
            },
        );

        let held = m.reg("held", 1).reset(0u32);
        wire!(answers = head.asked.answers());
        wire!(goes = waits & (!held.q | i.taken) & (!answers | i.load_room));
        wire!(rest = mask & !chosen.served);
        wire!(leaves = goes & !rest.any());
        served.next_if(goes, (served.q | chosen.served).only_if(rest.any()));
        queue.leaves(leaves);
        held.next((held.q & !i.taken) | goes);

        let lanes = Lanes { valid: goes, tag: i.load_tag, places: head.places, data: head.data };
        let access = Access::of(s, head.asked, lanes, first_place, chosen);
        let sent = m.pipe_if("sent", goes, access);

        m.assert("some_lane_is_left", !waits | mask.any());
        m.assert("a_lane_is_served_once", !goes | !(chosen.served & !mask).any());
        m.assert("the_leader_is_served", !goes | (chosen.served & leader).any());
        m.assert("taken_is_held", !i.taken | held.q);
        m.cover("full", queue.full);
        m.cover("in_parts", goes & rest.any());
        m.cover("waits_for_memory", waits & held.q & !i.taken);
        m.cover("waits_for_the_load_queue", waits & answers & !i.load_room);
        LoadStoreOut {
            chosen: access,
            answers: goes & answers,
            serving: Pending { valid: waits, slot: head.slot, rd: head.rd },
            access: Access { valid: held.q, ..sent },
            left: leaves,
            empty: !waits & !held.q,
            parts: goes & rest.any(),
        }
    })
}

#[cfg(test)]
mod tests;

//! The load-store unit: serves the lanes of one access after the other, group by group, while their warp runs on.
//!
//! Only under [`Replay::Serialise`]. Behind resolve an instruction that accesses memory has taken effect for the
//! pipeline; what is left of it waits here in a queue, in the order of issue, until memory has taken all of its lanes.
//! Issue takes a place in the queue beforehand, so the pipeline never stalls for it.
//!
//! ```text
//! resolve ─► queue ─► turn ─► [ coalesce: a group a cycle ] ─► register ─► stage 9 ─► memory port or scratchpad
//!                       ▲              │ ▲ load queue has room
//!            the others └──────────────┤
//!                                      └─► load queue
//! ```
//!
//! Who is served next depends on who is served now, so this loop has to be short. What it needs of the first
//! instruction, its lanes, where they access, the leader and where that one does, is in registers ([`Turn`]). The
//! leader of the lanes that are left, and that of the next instruction, are found beside each other, before it is known
//! which it is.
//!
//! [`Replay::Serialise`]: crate::shape::Replay::Serialise

use super::coalesce::{CoalesceIn, coalesce};
use super::memory::{Access, Asked, Lanes};
use crate::divergence::interface::warp_of;
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
    /// The static warp of each lane, where a slot [mixes](Shape::mixes) them, in a core with reservations.
    #[width(s.homes_bits().filter(|_| s.reservations))]
    pub homes: Option<T>,
    /// 0 where memory does not answer, or nobody wants the answer.
    #[width(5)]
    pub rd: T,
    #[width(Asked::shape(s))]
    pub asked: Asked<T>,
    #[width(s.lanes)]
    pub mask: T,
    /// [`Shape::place_bits`] a lane.
    #[width(s.place_bits() * s.lanes)]
    pub places: T,
    /// 32 bits per lane.
    #[width(32 * s.lanes)]
    pub data: T,
}

/// What an instruction is served by.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Served<T> {
    #[width(Asked::shape(s))]
    asked: Asked<T>,
    #[width(s.lanes)]
    mask: T,
    #[width(s.place_bits() * s.lanes)]
    places: T,
}

/// What else there is of an instruction.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Carried<T> {
    #[width(s.slot_bits())]
    slot: T,
    #[width(s.homes_bits().filter(|_| s.reservations))]
    homes: Option<T>,
    #[width(5)]
    rd: T,
    #[width(32 * s.lanes)]
    data: T,
}

/// The lanes of the first instruction that are left, and who of them leads.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Turn<T> {
    /// Empty if there is no instruction.
    #[width(s.lanes)]
    mask: T,
    /// The lowest lane of `mask`, alone.
    #[width(s.lanes)]
    leader: T,
    /// Where that one accesses.
    #[width(s.place_bits())]
    first: T,
}

impl Turn<Signal> {
    fn of(s: &Shape, mask: Signal, places: Signal) -> Turn<Signal> {
        let leader = mask.lowest_one();
        Turn { mask, leader, first: select_one_hot(&elements(places, s.place_bits()), leader) }
    }
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
    /// A group is not chosen for want of an entry of the load queue.
    pub waits_for_loads: T,
}

pub fn load_store(s: &Shape) -> TypedModule<LoadStoreIn<Width>, LoadStoreOut<Signal>> {
    module("load_store", LoadStoreIn::shape(s), |m, i| {
        m.doc("The load-store unit: serves the lanes of an access group by group.");
        let Whole { valid: comes, slot, homes, rd, asked, mask, places, data } = i.whole;
        let queue = Queue::new(m, "queue", Carried::shape(s), s.requests, comes, Carried { slot, homes, rd, data });
        let first = queue.head;

        let turn_reg = m.reg("turn", Turn::shape(s)).reset_zero();
        let (asked_reg, places_reg) = (m.reg("asked", Asked::shape(s)), m.reg("places", s.place_bits() * s.lanes));
        let (turn, asked_now, places_now) = (turn_reg.q, asked_reg.q, places_reg.q);
        wire!(waits = turn.mask.any());
        let chosen = m.instance(
            "coalesce",
            &coalesce(s),
            CoalesceIn {
                mask: turn.mask,
                leader: turn.leader,
                store: asked_now.is_store(),
                atomic: asked_now.is_atomic(),
                one_line: asked_now.is_reserving(),
                places: places_now,
                first: turn.first,
            },
        );

        let held = m.reg("held", 1).reset(0u32);
        wire!(answers = asked_now.answers());
        wire!(can_go = (!held.q | i.taken) & (!answers | i.load_room));
        wire!(goes = waits & can_go);
        wire!(rest = turn.mask & !chosen.served);
        wire!(parts = rest.any());
        wire!(leaves = goes & !parts);
        queue.leaves(leaves);

        // The next instruction: the first of those that wait behind this one, or else the one that comes.
        let next = m.deferred("next_is_taken", 1);
        let come = Served { asked, mask, places };
        let behind = Queue::new(m, "behind", Served::shape(s), s.requests, comes & !next.value, come);
        wire!(taken = leaves | !waits);
        behind.leaves(taken & behind.waits);
        next.drive(taken & !behind.waits);
        let Served { asked, mask, places } = behind.waits.mux(behind.head, come);
        let next_turn = Turn::of(s, mask.only_if(behind.waits | comes), places);
        turn_reg.next_if(goes | !waits, parts.mux(Turn::of(s, rest, places_now), next_turn));
        asked_reg.next_if(taken, asked);
        places_reg.next_if(taken, places);
        held.next((held.q & !i.taken) | goes);

        let lanes = Lanes { valid: goes, tag: i.load_tag, places: places_now, data: first.data };
        let rows = first.homes.unwrap_or(warp_of(s, first.slot));
        let access = Access::of(s, asked_now, (lanes, rows), turn.first, chosen);
        let sent = m.pipe_if("sent", goes, access);

        m.assert("the_first_has_its_turn", queue.waits.eq(waits));
        m.assert("a_lane_is_served_once", !goes | !(chosen.served & !turn.mask).any());
        m.assert("the_leader_is_served", !goes | (chosen.served & turn.leader).any());
        m.assert("taken_is_held", !i.taken | held.q);
        m.cover("full", queue.full);
        m.cover("in_parts", goes & parts);
        m.cover("waits_for_memory", waits & held.q & !i.taken);
        wire!(waits_for_loads = waits & answers & !i.load_room);
        m.cover("waits_for_the_load_queue", waits_for_loads);
        LoadStoreOut {
            chosen: access,
            answers: goes & answers,
            serving: Pending { valid: waits, slot: first.slot, rd: first.rd },
            access: Access { valid: held.q, ..sent },
            left: leaves,
            empty: !waits & !held.q,
            parts: goes & parts,
            waits_for_loads,
        }
    })
}

#[cfg(test)]
mod tests;

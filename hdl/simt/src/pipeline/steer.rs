//! Stage 1, steer: chooses the slot to fetch for, and its pc.
//!
//! A slot is chosen in every other cycle at most, which is as often as it issues
//! ([`ISSUE_TO_NEXT`](super::timing::ISSUE_TO_NEXT)).
//!
//! A slot runs along straight-line code from the pc that the divergence unit gave it until decode meets an instruction
//! that stops the front end. Slots with no undecoded fetch come first; a slot with one is chosen only when no other
//! wants the cycle, since what lies behind the undecoded instruction may be squashed.

use super::timing::{CHOICE_TO_DECODE, ISSUE_TO_NEXT};
use crate::arbiter::{places_above, round_robin};
use crate::divergence::Steer;
use crate::shape::Shape;
use heddle_hdl::*;

/// An instruction on its way from stage 1 to stage 3.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Fetch<T> {
    pub valid: T,
    pub slot: T,
    pub pc: T,
}

impl Fetch<Width> {
    pub fn shape(s: &Shape) -> Fetch<Width> {
        Fetch { valid: 1, slot: s.slot_bits(), pc: s.pc_bits() }
    }
}

/// What has not issued of a slot is dropped, for units with two slots a warp: a path that parts suspends the other.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Flush<T> {
    pub valid: T,
    pub slot: T,
}

impl Flush<Width> {
    pub fn shape(s: &Shape) -> Option<Flush<Width>> {
        (s.sides() > 1).then(|| Flush { valid: 1, slot: s.slot_bits() })
    }
}

impl Flush<Signal> {
    /// Whether it is of this slot.
    pub fn drops(self, slot: Signal) -> Signal {
        self.valid & self.slot.eq(slot)
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SteerIn<T> {
    /// The divergence unit (re)starts a slot.
    pub steer: Steer<T>,
    /// Decode stops this slot's front end (`valid`, `slot`).
    pub stop_valid: T,
    pub stop_slot: T,
    pub flush: Option<Flush<T>>,
    /// Instructions in each slot's buffer: `count_width(buffer)` bits a slot.
    pub buffered: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SteerOut<T> {
    /// For stage 2, which squashes it if decode stops the slot in this cycle. The pc is at instruction memory.
    pub chosen: Fetch<T>,
    /// One bit a slot: its front end runs.
    pub running: T,
}

/// A slot's credit counts the fetches in stages 1 to 3, and [`super::fetch`] squashes those in stages 1 and 2.
const _: () = assert!(CHOICE_TO_DECODE == 2, "a fetch under way would be neither counted nor squashed");
const _: () = assert!(ISSUE_TO_NEXT >= 2, "a slot would be fetched for less often than it issues");

pub fn steer(s: &Shape) -> TypedModule<SteerIn<Width>, SteerOut<Signal>> {
    let count_bits = count_width(s.buffer);
    let inputs = SteerIn {
        steer: Steer { valid: 1, slot: s.slot_bits(), pc: s.pc_bits(), replay: 1 },
        stop_valid: 1,
        stop_slot: s.slot_bits(),
        flush: Flush::shape(s),
        buffered: count_bits * s.slots(),
    };
    module("steer", inputs, |m, i| {
        m.doc("Stage 1: chooses the slot to fetch for.");
        let on = |valid: Signal, slot: Signal| slot.decode(s.slots()) & valid.repeat(s.slots());
        let flushed = i.flush.map_or(m.lit(0u32, s.slots()), |flush| on(flush.valid, flush.slot));
        wire!(stopped = on(i.stop_valid, i.stop_slot) | flushed);
        wire!(steered = on(i.steer.valid, i.steer.slot));

        let running = m.reg("running", s.slots()).reset(0u32);
        running.next((running.q & !stopped) | steered);
        // The next pc is where the unit steered the slot to (fresh), or where the last fetch left it.
        let fresh = m.reg("fresh", s.slots());

        // One bit a slot: stage 2, and stage 3, has a fetch of it, be it squashed.
        let in_fetch = m.reg("in_fetch", s.slots()).reset(0u32);
        let in_decode = m.pipe_reset("in_decode", in_fetch.q);
        // Room was found a cycle ago, after all that was chosen by then: what left the buffer since is not counted.
        let room = m.reg("room", s.slots()).reset(Bits::ones(s.slots()));
        // A slot in stage 2 has its following pc only behind this cycle; it could not issue as fast, either.
        wire!(wanting = running.q & room.q & !in_fetch.q);
        wire!(preferred = wanting & !in_decode);
        let after = m.reg("after", s.slots()).reset(0u32);
        wire!(choice = preferred.any().mux(round_robin(preferred, after.q), round_robin(wanting, after.q)));
        wire!(any = choice.any());
        after.next_if(any, places_above(choice));
        in_fetch.next(choice);
        let rooms = elements(i.buffered, count_bits).into_iter().enumerate().map(|(slot, count)| {
            let flying = cat(&[choice, in_fetch.q, in_decode].map(|stage| stage.bit(slot as Width))).count_ones();
            let width = count_width(s.buffer + CHOICE_TO_DECODE + 1);
            (count.zext(width) + flying.zext(width)).lt(s.buffer)
        });
        room.next(cat(&rooms.collect::<Vec<_>>()));
        wire!(slot = choice.one_hot_index());

        let steered_pc = m.memory("steered_pc", s.pc_bits(), s.slot_bits()).style(MemoryStyle::Distributed);
        steered_pc.write(i.steer.valid, i.steer.slot, i.steer.pc);
        let following_pc = m.memory("following_pc", s.pc_bits(), s.slot_bits()).style(MemoryStyle::Distributed);
        wire!(pc = (fresh.q & choice).any().mux(steered_pc.read(slot), following_pc.read(slot)));
        let chosen = Fetch { valid: any, slot, pc };
        let before = m.stage_always("before", chosen);
        following_pc.write(before.valid, before.slot, before.pc + 1);
        fresh.next((fresh.q & !choice) | steered);

        m.assert("steered_slot_was_stopped", !(steered & running.q).any());
        m.cover("fetch_past_undecoded", any & !preferred.any());
        m.cover("squashed", (choice & stopped).any());
        m.cover("buffer_has_no_room", (running.q & !wanting).any());
        SteerOut { chosen, running: running.q }
    })
}

#[cfg(test)]
mod tests;

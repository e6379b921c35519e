//! Stage 1, steer: the pc of the slot to fetch for, which was chosen a cycle before.
//!
//! A slot is chosen in every other cycle at most, which is as often as it issues
//! ([`ISSUE_TO_NEXT`](super::timing::ISSUE_TO_NEXT)).
//!
//! A slot runs along straight-line code from the pc that the divergence unit gave it until decode meets an instruction
//! that stops the front end. Slots with no undecoded fetch come first, in turn. Then the slot that the unit steers in
//! this very cycle, which no turn is waited for: it would be late, and the unit is late itself. A slot with an
//! undecoded fetch is chosen only when nothing else wants the cycle, since what lies behind the undecoded instruction
//! may be squashed.

use super::timing::{CHOICE_TO_DECODE, ISSUE_TO_NEXT};
use crate::arbiter::{places_above, round_robin};
use crate::divergence::interface::Steer;
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*};

/// An instruction on its way from stage 1 to stage 3.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Steered<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(s.pc_bits())]
    pub pc: T,
}

/// What has not issued of a slot is dropped, for units with two slots per warp: a path that diverges suspends the
/// other.
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
#[widths(s: &Shape)]
pub struct SteerIn<T> {
    /// The divergence unit (re)starts a slot.
    pub steer: Steer<T>,
    /// Decode stops this slot's front end (`valid`, `slot`).
    pub stop_valid: T,
    #[width(s.slot_bits())]
    pub stop_slot: T,
    #[width(Flush::shape(s))]
    pub flush: Option<Flush<T>>,
    /// Instructions in each slot's buffer: `count_width(buffer)` bits per slot.
    #[width(count_width(s.buffer) * s.slots())]
    pub buffered: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SteerOut<T> {
    /// For stage 2, which squashes it if decode stops the slot in this cycle. The pc is at instruction memory.
    pub chosen: Steered<T>,
    /// One bit per slot: its front end runs.
    pub running: T,
}

/// A slot's credit counts the fetches in stages 1 to 3, and [`super::fetch`] squashes those in stages 1 and 2.
const _: () = assert!(CHOICE_TO_DECODE == 2, "a fetch under way would be neither counted nor squashed");
const _: () = assert!(ISSUE_TO_NEXT >= 2, "a slot would be fetched for less often than it issues");

pub fn steer(s: &Shape) -> TypedModule<SteerIn<Width>, SteerOut<Signal>> {
    module("steer", SteerIn::shape(s), |m, i| {
        m.doc("Stage 1: chooses the slot to fetch for.");
        let on = |valid: Signal, slot: Signal| slot.decode(s.slots()) & valid.repeat(s.slots());
        let flushed = i.flush.map_or(m.lit(0u32, s.slots()), |flush| on(flush.valid, flush.slot));
        wire!(stopped = on(i.stop_valid, i.stop_slot) | flushed);
        wire!(steered = on(i.steer.valid, i.steer.slot));

        let running = m.reg("running", s.slots()).reset(0u32);
        running.next((running.q & !stopped) | steered);
        // The next pc is where the unit steered the slot to (fresh), or where the last fetch left it.
        let fresh = m.reg("fresh", s.slots());

        // One bit per slot: stages 1, 2 and 3 have a fetch of it, be it squashed.
        let chosen = m.reg("chosen", s.slots()).reset(0u32);
        // Decode may have stopped it in the cycle in which it was chosen.
        wire!(choice = chosen.q & running.q);
        let in_fetch = m.pipe_reset("in_fetch", choice);
        let in_decode = m.pipe_reset("in_decode", in_fetch);
        // Room was found a cycle ago, after all that was chosen by then: what left the buffer since is not counted.
        let room = m.reg("room", s.slots()).reset(Bits::ones(s.slots()));
        // A slot in stage 1 has its following pc only two cycles later; it could not issue as fast, either.
        wire!(wanting = running.q & room.q & !chosen.q);
        wire!(preferred = wanting & !in_fetch & !in_decode);
        let after = m.reg("after", s.slots()).reset(0u32);
        wire!(turn = preferred.any().mux(round_robin(preferred, after.q), round_robin(wanting, after.q)));
        wire!(ahead = i.steer.valid & !preferred.any());
        after.next_if(turn.any() & !ahead, places_above(turn));
        chosen.next(ahead.mux(i.steer.slot.decode(s.slots()), turn));
        let counts = elements(i.buffered, count_width(s.buffer));
        wire!(empty = cat(&counts.iter().map(|count| count.eq(0)).collect::<Vec<_>>()));
        let rooms = counts.into_iter().enumerate().map(|(slot, count)| {
            let flying = cat(&[choice, in_fetch, in_decode].map(|stage| stage.bit(slot as Width))).count_ones();
            let width = count_width(s.buffer + CHOICE_TO_DECODE + 1);
            (count.zext(width) + flying.zext(width)).lt(s.buffer)
        });
        room.next(cat(&rooms.collect::<Vec<_>>()));
        wire!(slot = chosen.q.one_hot_index());

        let steered_pc = m.memory("steered_pc", s.pc_bits(), s.slot_bits()).style(MemoryStyle::Distributed);
        steered_pc.write(i.steer.valid, i.steer.slot, i.steer.pc);
        let following_pc = m.memory("following_pc", s.pc_bits(), s.slot_bits()).style(MemoryStyle::Distributed);
        wire!(pc = (fresh.q & chosen.q).any().mux(steered_pc.read(slot), following_pc.read(slot)));
        let fetch = Steered { valid: choice.any(), slot, pc };
        let before = m.stage_always("before", fetch);
        following_pc.write(before.valid, before.slot, before.pc + 1);
        fresh.next((fresh.q & !choice) | steered);

        m.assert("steered_slot_was_stopped", !(steered & running.q).any());
        // Its room is not asked for.
        m.assert("steered_slot_has_no_instructions", !(steered & !empty).any());
        m.cover("fetch_past_undecoded", turn.any() & !preferred.any() & !i.steer.valid);
        m.cover("squashed", (choice & stopped).any());
        m.cover("stopped_when_chosen", (chosen.q & !running.q).any());
        m.cover("steered_waits", i.steer.valid & preferred.any());
        m.cover("buffer_has_no_room", (running.q & !room.q).any());
        SteerOut { chosen: fetch, running: running.q }
    })
}

#[cfg(test)]
mod tests;

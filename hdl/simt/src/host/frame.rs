//! The frame that comes, in the buffer until its end; a checksum goes there, too.

use super::judge::Asked;
use super::progress::{Progress, State};
use super::protocol::{FRAME_WORDS, LEAST_WORDS, RESIDUE};
use super::range::Range;
use super::serial::{Passing, Received, Sending, Serial};
use heddle_hdl::prelude::*;

/// Bits of a word's number in the buffer, which holds [`FRAME_WORDS`].
pub const POINTER: Width = FRAME_WORDS.ilog2();

/// The buffer, and the words in it.
pub struct Frame {
    m: Builder,
    /// Words that have come; one more than the longest frame has stands for all that are too many.
    pub length: Reg<Signal>,
    /// 1 bit each: it has too many words; too few.
    too_long: Signal,
    runt: Signal,
    /// The number of the word that the buffer gives next.
    pub pointer: Reg<Signal>,
    buffer: Mem<Width>,
}

/// What has come, 1 bit each.
pub struct Ended {
    /// A word is complete; the frame.
    complete: Signal,
    pub frame_ends: Signal,
    /// From the end of the frame on: nothing of it was damaged.
    pub good: Signal,
}

impl Frame {
    pub fn new(m: Builder) -> Frame {
        let length = m.reg("length", POINTER + 1).reset(0u32);
        wire!(too_long = length.q.gt(FRAME_WORDS));
        wire!(runt = length.q.lt(LEAST_WORDS));
        let pointer = m.reg("pointer", POINTER);
        let buffer = m.memory("buffer", 32, POINTER).style(MemoryStyle::Block);
        Frame { m, length, too_long, runt, pointer, buffer }
    }

    /// Whether a frame ends, and how.
    pub fn ended(&self, serial: &Serial, received: &Received) -> Ended {
        let Frame { m, length, too_long, runt, .. } = self;
        let Received { ends, shifts_in, .. } = *received;
        wire!(complete = shifts_in & serial.last_of_word);
        wire!(frame_ends = ends & !*runt);
        let undamaged = serial.crc.q.eq(RESIDUE) & !*too_long & !serial.bit.q.any() & !serial.escaped.q;
        let good = m.pipe_if("good", frame_ends, undamaged);
        m.cover("runt", ends & *runt & length.q.any());
        m.cover("frame_too_long", frame_ends & *too_long);
        m.cover("ends_in_an_escape", frame_ends & serial.escaped.q);
        Ended { complete, frame_ends, good }
    }

    /// What the buffer gives: the word at the pointer in the cycle before. Words that are complete are written behind
    /// those that have come.
    pub fn out(&self, progress: &Progress, serial: &Serial, ended: &Ended, passing: &Passing) -> Signal {
        let Frame { length, pointer, buffer, .. } = self;
        let writes = (ended.complete & !length.q.msb()) | (progress.keeping & serial.last_of_word);
        buffer.write(writes, length.q.slice(0, POINTER), passing.shifted);
        let reads = !progress.receiving & !progress.keeping;
        wire!(out = buffer.read_sync_if(reads, pointer.q, Collision::Never));
        out
    }

    /// Where the pointer goes, and how many words have come. `goes` says that the command is to be done.
    pub fn step(
        &self,
        progress: &Progress,
        (received, sending): (&Received, &Sending),
        ended: &Ended,
        (asked, range, goes): (&Asked, &Range, Signal),
    ) {
        let Frame { length, too_long, runt, pointer, .. } = self;
        let Progress { checking, keeping, .. } = *progress;
        let ends = received.ends;
        let restarts = ends | (checking & goes & asked.is_told_from_0());
        let pointer_next =
            pick([(restarts, pointer.q.literal(0u32)), (keeping, length.q.slice(0, POINTER))], pointer.q + 1);
        let [fetch, header, address, count, side_low] =
            [State::Fetch, State::Header, State::Address, State::Count, State::SideLow].map(|at| progress.at(at));
        let bursts = fetch | header | address | count | checking | side_low;
        pointer.next_if(restarts | keeping | bursts | range.steps, pointer_next);
        let length_next = too_long.mux(length.q, length.q + 1);
        wire!(forgets = sending.over | (ends & *runt) | asked.is_reply);
        length.next_if(ended.complete | forgets, forgets.mux(length.q.literal(0u32), length_next));
    }
}

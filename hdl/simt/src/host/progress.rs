//! How far a frame and its reply are: the state of the host, and what comes next.

use super::frame::Ended;
use super::judge::Asked;
use super::range::Range;
use super::serial::{Sending, Serial};
use heddle_hdl::{case, prelude::*};

/// What the host does in a cycle, 5 bits.
pub mod state {
    /// Takes bytes.
    pub const RECEIVE: u32 = 0;
    /// The buffer gives the header next.
    pub const FETCH: u32 = 1;
    /// The buffer gives this word of the frame.
    pub const HEADER: u32 = 2;
    pub const ADDRESS: u32 = 3;
    pub const COUNT: u32 = 4;
    /// It is done or refused, as is known now.
    pub const CHECK: u32 = 5;
    /// Writes a word to memory.
    pub const WRITE: u32 = 6;
    /// Writes an entry of the side table, whose low word is held; holds the next low word.
    pub const SIDE: u32 = 7;
    pub const SIDE_LOW: u32 = 8;
    pub const LAUNCH: u32 = 9;
    pub const RESET: u32 = 10;
    /// Offers a flag, before or after a reply.
    pub const SEND_FLAG: u32 = 11;
    /// The header is the word to send.
    pub const BEGIN: u32 = 12;
    /// Asks memory, or the buffer, for a word; it becomes the word to send.
    pub const ACCESS: u32 = 13;
    pub const TAKE: u32 = 14;
    /// Offers a byte, and then shifts it away.
    pub const SEND_BYTE: u32 = 15;
    pub const SHIFT: u32 = 16;
    /// The CRC becomes the word to send.
    pub const TRAILER: u32 = 17;
    /// A checksum goes to the buffer.
    pub const KEEP: u32 = 18;
    /// Between count and check: everything is known but whether to do it; the buffer gives the fourth word.
    pub const JUDGE: u32 = 19;
    pub const BITS: u32 = 5;
}

/// Which part of a reply goes out, 2 bits.
pub mod part {
    pub const HEADER: u32 = 0;
    pub const PAYLOAD: u32 = 1;
    pub const TRAILER: u32 = 2;
    pub const END: u32 = 3;
}

/// The state, and the wires that tell it.
pub struct Progress {
    m: Builder,
    state: Reg<Signal>,
    /// Which part of a reply goes out.
    pub part: Reg<Signal>,
    /// 1 bit: words of memory are summed up, and do not go out.
    pub summing: Reg<Signal>,
    /// 1 bit each: the host is in this state.
    pub receiving: Signal,
    pub judging: Signal,
    pub checking: Signal,
    pub taking: Signal,
    pub keeping: Signal,
}

impl Progress {
    pub fn new(m: Builder) -> Progress {
        let state = m.reg("state", state::BITS).reset(state::RECEIVE);
        let at = |which: u32| state.q.eq(which);
        wire!(receiving = at(state::RECEIVE));
        wire!(judging = at(state::JUDGE));
        wire!(checking = at(state::CHECK));
        wire!(taking = at(state::TAKE));
        wire!(keeping = at(state::KEEP));
        let (part, summing) = (m.reg("part", 2), m.reg("summing", 1).reset(0u32));
        Progress { m, state, part, summing, receiving, judging, checking, taking, keeping }
    }

    /// 1 bit: the host is in this [`state`].
    pub fn at(&self, which: u32) -> Signal {
        self.state.q.eq(which)
    }

    /// What comes next: the state, the part of the reply, and whether words are summed up. `goes` says that the command
    /// is to be done.
    pub fn proceed(
        &self,
        ended: &Ended,
        (asked, range, goes): (&Asked, &Range, Signal),
        serial: &Serial,
        sending: &Sending,
    ) {
        let Progress { m, state, part, summing, .. } = self;
        wire!(begins_sum = self.checking & goes & asked.sums);
        summing.next_if(self.checking | self.keeping, begins_sum);
        wire!(word_over = self.at(state::SHIFT) & serial.last_of_word);
        wire!(reply_ends = word_over & !summing.q & part.q.eq(part::TRAILER));
        self.next_part(reply_ends);

        let to = |which: u32| m.lit(which, state::BITS);
        let does = [
            (!goes, to(state::SEND_FLAG)),
            (asked.writes | asked.fills, to(state::WRITE)),
            (asked.sides, to(state::SIDE)),
            (asked.sums, to(state::ACCESS)),
            (asked.launching, to(state::LAUNCH)),
            (asked.resetting, to(state::RESET)),
        ];
        let after_word = pick(
            [(!summing.q & part.q.eq(part::TRAILER), to(state::SEND_FLAG)), (range.count.q.any(), to(state::ACCESS))],
            to(state::TRAILER),
        );
        let after_bit =
            pick([(word_over, after_word), (serial.last_of_byte & !summing.q, to(state::SEND_BYTE))], state.q);
        let after_flag = sending.over.mux(to(state::RECEIVE), to(state::BEGIN));
        let or_stay = |leaves: Signal, next: u32| leaves.mux(to(next), state.q);
        let next = case(
            state.q,
            &[
                (state::RECEIVE, or_stay(ended.frame_ends, state::FETCH)),
                (state::FETCH, to(state::HEADER)),
                (state::HEADER, asked.is_reply.mux(to(state::RECEIVE), to(state::ADDRESS))),
                (state::ADDRESS, to(state::COUNT)),
                (state::COUNT, to(state::JUDGE)),
                (state::JUDGE, to(state::CHECK)),
                (state::CHECK, pick(does, to(state::SEND_FLAG))),
                (state::WRITE, or_stay(range.last, state::SEND_FLAG)),
                (state::SIDE, range.last.mux(to(state::SEND_FLAG), to(state::SIDE_LOW))),
                (state::SIDE_LOW, to(state::SIDE)),
                (state::SEND_FLAG, sending.flag_sent.mux(after_flag, state.q)),
                (state::BEGIN, to(state::SEND_BYTE)),
                (state::ACCESS, to(state::TAKE)),
                (state::TAKE, summing.q.mux(to(state::SHIFT), to(state::SEND_BYTE))),
                (state::SEND_BYTE, or_stay(sending.sent, state::SHIFT)),
                (state::SHIFT, after_bit),
                (state::TRAILER, summing.q.mux(to(state::KEEP), to(state::SEND_BYTE))),
                (state::KEEP, or_stay(serial.last_of_word, state::SEND_FLAG)),
            ],
            to(state::SEND_FLAG),
        );
        state.next(next);
    }

    /// Which part of the reply is next.
    fn next_part(&self, reply_ends: Signal) {
        let Progress { part, checking, keeping, .. } = *self;
        let part_next = pick(
            [(checking, part.q.literal(part::HEADER)), (self.at(state::ACCESS), part.q.literal(part::PAYLOAD))],
            self.at(state::TRAILER).mux(part.q.literal(part::TRAILER), part.q.literal(part::END)),
        );
        let changes = checking | self.at(state::ACCESS) | self.at(state::TRAILER) | keeping | reply_ends;
        part.next_if(changes, part_next.only_if(!keeping));
    }
}

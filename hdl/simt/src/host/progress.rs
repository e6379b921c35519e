//! How far a frame and its reply are: the state of the host, and what comes next.

use super::frame::Ended;
use super::judge::Asked;
use super::range::Range;
use super::serial::{Sending, Serial};
use heddle_hdl::{case, prelude::*};

/// What the host does in a cycle.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Takes bytes.
    Receive,
    /// The buffer gives the header next.
    Fetch,
    /// The buffer gives this word of the frame.
    Header,
    Address,
    Count,
    /// It is done or refused, as is known now.
    Check,
    /// Writes a word to memory.
    Write,
    /// Writes an entry of the side table, whose low word is held; holds the next low word.
    Side,
    SideLow,
    Launch,
    Reset,
    /// Offers a flag, before or after a reply.
    SendFlag,
    /// The header is the word to send.
    Begin,
    /// Asks memory, or the buffer, for a word; it becomes the word to send.
    Access,
    Take,
    /// Offers a byte, and then shifts it away.
    SendByte,
    Shift,
    /// The CRC becomes the word to send.
    Trailer,
    /// A checksum goes to the buffer.
    Keep,
    /// Between count and check: everything is known but whether to do it; the buffer gives the fourth word.
    Judge,
}

/// Which part of a reply goes out.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Header,
    Payload,
    Trailer,
    End,
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
        let state = m.reg("state", State::WIDTH).reset(State::Receive);
        let at = |which: State| state.q.eq(which);
        wire!(receiving = at(State::Receive));
        wire!(judging = at(State::Judge));
        wire!(checking = at(State::Check));
        wire!(taking = at(State::Take));
        wire!(keeping = at(State::Keep));
        let (part, summing) = (m.reg("part", Part::WIDTH), m.reg("summing", 1).reset(0u32));
        Progress { m, state, part, summing, receiving, judging, checking, taking, keeping }
    }

    /// 1 bit: the host is in this state.
    pub fn at(&self, which: State) -> Signal {
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
        wire!(word_over = self.at(State::Shift) & serial.last_of_word);
        wire!(reply_ends = word_over & !summing.q & part.q.eq(Part::Trailer));
        self.next_part(reply_ends);

        let to = |which: State| m.code(which);
        let does = [
            (!goes, to(State::SendFlag)),
            (asked.writes | asked.fills, to(State::Write)),
            (asked.sides, to(State::Side)),
            (asked.sums, to(State::Access)),
            (asked.launching, to(State::Launch)),
            (asked.resetting, to(State::Reset)),
        ];
        let after_word = pick(
            [(!summing.q & part.q.eq(Part::Trailer), to(State::SendFlag)), (range.count.q.any(), to(State::Access))],
            to(State::Trailer),
        );
        let after_bit =
            pick([(word_over, after_word), (serial.last_of_byte & !summing.q, to(State::SendByte))], state.q);
        let after_flag = sending.over.mux(to(State::Receive), to(State::Begin));
        let or_stay = |leaves: Signal, next: State| leaves.mux(to(next), state.q);
        let next = case(
            state.q,
            &[
                (State::Receive, or_stay(ended.frame_ends, State::Fetch)),
                (State::Fetch, to(State::Header)),
                (State::Header, asked.is_reply.mux(to(State::Receive), to(State::Address))),
                (State::Address, to(State::Count)),
                (State::Count, to(State::Judge)),
                (State::Judge, to(State::Check)),
                (State::Check, pick(does, to(State::SendFlag))),
                (State::Write, or_stay(range.last, State::SendFlag)),
                (State::Side, range.last.mux(to(State::SendFlag), to(State::SideLow))),
                (State::SideLow, to(State::Side)),
                (State::SendFlag, sending.flag_sent.mux(after_flag, state.q)),
                (State::Begin, to(State::SendByte)),
                (State::Access, to(State::Take)),
                (State::Take, summing.q.mux(to(State::Shift), to(State::SendByte))),
                (State::SendByte, or_stay(sending.sent, State::Shift)),
                (State::Shift, after_bit),
                (State::Trailer, summing.q.mux(to(State::Keep), to(State::SendByte))),
                (State::Keep, or_stay(serial.last_of_word, State::SendFlag)),
            ],
            to(State::SendFlag),
        );
        state.next(next);
    }

    /// Which part of the reply is next.
    fn next_part(&self, reply_ends: Signal) {
        let Progress { part, checking, keeping, .. } = *self;
        let part_next = pick(
            [(checking, part.q.literal(Part::Header)), (self.at(State::Access), part.q.literal(Part::Payload))],
            self.at(State::Trailer).mux(part.q.literal(Part::Trailer), part.q.literal(Part::End)),
        );
        let changes = checking | self.at(State::Access) | self.at(State::Trailer) | keeping | reply_ends;
        part.next_if(changes, part_next.only_if(!keeping));
    }
}

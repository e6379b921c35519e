//! What a frame asks for, and whether it is done or refused.

use super::HostIn;
use super::frame::{Frame, POINTER};
use super::launch::Launch;
use super::progress::Progress;
use super::protocol::{Command, Reason};
use super::range::Range;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// What the header of a frame says, from the cycle after it on unless stated.
pub struct Asked {
    /// The number of the frame, and the command's; 0 of a frame that was damaged.
    pub sequence: Signal,
    pub command: Signal,
    /// 1 bit, with the header: it is a reply that came back.
    pub is_reply: Signal,
    /// 1 bit each: the launch has the number of the next one; that of the last one.
    is_next: Signal,
    is_last: Signal,
    /// 1 bit each: the command is this.
    pub reads: Signal,
    pub writes: Signal,
    pub fills: Signal,
    pub sums: Signal,
    pub sides: Signal,
    pub launching: Signal,
    pub resetting: Signal,
    pub identifies: Signal,
    pub tells: Signal,
    /// With counters, 1 bit: it asks for them.
    pub counters: Option<Signal>,
    /// 1 bit: it is about words of memory, or entries of the side table.
    pub has_range: Signal,
}

impl Asked {
    /// Out of the first word of the frame, which is `good`.
    pub fn decode(
        m: Builder,
        s: &Shape,
        i: &HostIn<Signal>,
        header: Signal,
        (good, out): (Signal, Signal),
        launch: &Launch,
    ) -> Asked {
        wire!(is_reply = header & good & out.bit(15));
        let sequence = m.pipe_if("asked_number", header, out.slice(0, 8).only_if(good));
        let asked = m.pipe_if("asked", header, out.slice(8, Command::WIDTH).only_if(good));
        let number = out.slice(16, 8);
        let is_next = m.pipe_if("is_next", header, number.eq(launch.launches.q + 1));
        let is_last = m.pipe_if("is_last", header, number.eq(launch.launches.q));
        let is = |which: Command| asked.eq(which);
        wire!(reads = is(Command::Read));
        wire!(writes = is(Command::Write));
        wire!(fills = is(Command::Fill));
        wire!(sums = is(Command::Checksum));
        wire!(sides = if s.divergence.capabilities().reconverges { is(Command::SideTable) } else { m.lit(0u32, 1) });
        wire!(launching = is(Command::Launch));
        wire!(has_range = reads | writes | fills | sums | sides);
        m.cover("reply_came_back", is_reply);
        Asked {
            sequence,
            command: asked,
            is_reply,
            is_next,
            is_last,
            reads,
            writes,
            fills,
            sums,
            sides,
            launching,
            resetting: is(Command::Reset),
            identifies: is(Command::Identify),
            tells: is(Command::Status),
            counters: i.counts.map(|_| is(Command::Metrics)),
            has_range,
        }
    }

    /// 1 bit: the host knows the command.
    fn is_known(&self) -> Signal {
        let known = self.has_range | self.launching | self.resetting | self.identifies | self.tells;
        self.counters.map_or(known, |asks| known | asks)
    }

    /// 1 bit: the words of its reply are numbered from 0.
    pub fn is_told_from_0(&self) -> Signal {
        let told = self.identifies | self.tells;
        self.counters.map_or(told, |asks| told | asks)
    }
}

/// Whether the command is done, from the state after judge on.
pub struct Verdict {
    /// A [`Reason`], or 0.
    pub refusal: Signal,
    /// 1 bit: it is to be done.
    pub goes: Signal,
}

/// Whether to do it: the first reason to refuse it, if there is one. A launch that is asked for again was done.
pub fn judge(
    m: Builder,
    s: &Shape,
    i: &HostIn<Signal>,
    progress: &Progress,
    (frame, good, out): (&Frame, Signal, Signal),
    (asked, range, launch): (&Asked, &Range, &Launch),
) -> Verdict {
    let judging = progress.judging;
    let Asked { reads, sums, launching, has_range, is_next, is_last, .. } = *asked;
    let running = launch.running.q;
    let bad_range = range.is_bad(s, asked, out);
    let mismatch = mismatch(m, frame, asked, range);
    let known = asked.is_known();
    let launched = running | i.done | i.fault.valid;
    wire!(again = launching & is_last & launched);
    wire!(busy = !i.idle | running | (launching & i.fault.valid));
    let reasons = [
        (!good, m.code(Reason::Damaged)),
        (!known, m.code(Reason::Command)),
        (mismatch, m.code(Reason::Length)),
        (if s.bus_width().is_some() { reads | sums } else { m.lit(0u32, 1) }, m.code(Reason::Bus)),
        (bad_range, m.code(Reason::Range)),
        ((has_range | launching) & busy & !again, m.code(Reason::Busy)),
        (launching & !is_next & !again, m.code(Reason::Number)),
    ];
    wire!(refused = pick(reasons, m.lit(0u32, Reason::WIDTH)));
    let refusal = m.pipe_if("refusal", judging, refused);
    // Only the host launches, so what is idle stays so.
    let goes = m.pipe_if("goes", judging, !refused.any() & !again);
    m.cover("launched_again", judging & again & !refused.any());
    m.cover("busy_for_a_fault", judging & launching & i.fault.valid & refused.eq(Reason::Busy));
    Verdict { refusal, goes }
}

/// 1 bit: the frame has not as many words as the command has.
fn mismatch(m: Builder, frame: &Frame, asked: &Asked, range: &Range) -> Signal {
    let Asked { writes, sides, .. } = *asked;
    let count = range.count.q;
    let low = count.slice(0, POINTER);
    // Words after header, two arguments and the CRC; fewer than none for those that have no arguments.
    wire!(behind = frame.length.q - 4);
    let exactly = |words: u32| behind.literal(words);
    let wanted = pick(
        [
            (writes, count.slice(0, behind.width())),
            (sides, cat(&[m.lit(0u32, 1), low])),
            (asked.reads | asked.sums, exactly(0)),
            (asked.fills, exactly(1)),
            (asked.launching, exactly(2)),
        ],
        exactly((1 << behind.width()) - 2),
    );
    // More than a frame holds, of which `wanted` lacks upper bits: an entry of the side table is two words.
    let beyond_a_frame = |least: Width| range.count_above | count.from_bit(least).any();
    let too_long_a_list = (writes & beyond_a_frame(POINTER)) | (sides & beyond_a_frame(POINTER - 1));
    wire!(mismatch = behind.ne(wanted) | too_long_a_list);
    mismatch
}

//! What a frame is about: a word's number in memory, and a count of words, entries or threads. Both step from word to
//! word; then the count is that of the reply's words.

use super::frame::POINTER;
use super::identity::counts_words;
use super::judge::Asked;
use super::progress::{Progress, State};
use super::protocol::{DATA_WORDS, IDENTIFY_WORDS, STATUS_WORDS};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Address and count.
pub struct Range {
    m: Builder,
    pub address: Reg<Signal>,
    pub count: Reg<Signal>,
    /// 1 bit each: both step; the step is the last.
    pub steps: Signal,
    pub last: Signal,
    /// 1 bit each: the address is not that of a word of memory; the count has bits above `count`; or is 0.
    address_bad: Signal,
    pub count_above: Signal,
    count_bad: Signal,
}

impl Range {
    /// Out of the second and the third word of the frame.
    pub fn new(m: Builder, s: &Shape, progress: &Progress, out: Signal) -> Range {
        let words = s.address_bits() - 2;
        let address = m.reg("address", words);
        let count = m.reg("count", words + 1);
        let [at_address, at_count] = [State::Address, State::Count].map(|which| progress.at(which));
        wire!(steps = progress.at(State::Write) | progress.at(State::Side) | progress.taking);
        address.next_if(at_address | steps, steps.mux(address.q + 1, out.slice(2, words)));
        let address_bad = out.slice(0, 2).any() | out.from_bit(words + 2).any();
        let address_bad = m.pipe_if("address_bad", at_address, address_bad);
        let above = if words + 1 < 32 { out.from_bit(words + 1).any() } else { m.lit(0u32, 1) };
        let count_above = m.pipe_if("count_above", at_count, above);
        let count_bad = count_above | !count.q.any();
        wire!(last = count.q.eq(1));
        m.assert("a_count_does_not_pass_0", !steps | count.q.any());
        Range { m, address, count, steps, last, address_bad, count_above, count_bad }
    }

    /// 1 bit: the command is not about what is there. `out` is the fourth word of the frame.
    pub fn is_bad(&self, s: &Shape, asked: &Asked, out: Signal) -> Signal {
        let Range { m, address, count, address_bad, count_bad, .. } = self;
        let Asked { has_range, launching, reads, .. } = *asked;
        let wide = count.q.width() + 1;
        wire!(range_end = address.q.zext(wide) + count.q.zext(wide));
        let bus = s.bus_width().is_some();
        let in_program = asked.sides | (if bus { asked.writes | asked.fills } else { m.lit(0u32, 1) });
        wire!(outside = in_program.mux(beyond(range_end, s.program / 4), beyond(range_end, s.memory / 4)));
        // What is written is in the frame; what is read must fit one.
        let low = count.q.slice(0, POINTER);
        wire!(too_many = reads & (count.q.from_bit(POINTER).any() | low.gt(DATA_WORDS)));
        let no_entry = address.q.zext(count.q.width()).from_bit(s.pc_bits()).any();
        let no_block = beyond(count.q, s.threads());
        wire!(no_launch = launching & (no_entry | no_block | !out.any()));
        let counted = has_range | launching;
        wire!(range = (counted & (*address_bad | *count_bad)) | (has_range & outside) | too_many | no_launch);
        range
    }

    /// The count comes from the frame; when the command is done or refused, it becomes that of the words to send, or to
    /// sum up; after a sum there is one. `goes` says that the command is to be done.
    pub fn update_count(&self, s: &Shape, progress: &Progress, asked: &Asked, goes: Signal, out: Signal) {
        let Range { count, steps, .. } = self;
        let Progress { checking, keeping, .. } = *progress;
        let [at_count, launch] = [State::Count, State::Launch].map(|which| progress.at(which));
        let none = count.q.literal(0u32);
        let payload = [
            (!goes | asked.resetting, none),
            (asked.identifies, count.q.literal(IDENTIFY_WORDS)),
            (asked.tells, count.q.literal(STATUS_WORDS)),
        ];
        let payload_of_counts = asked.counters.map(|asks| (asks, count.q.literal(counts_words(s))));
        let payload = pick(payload.into_iter().chain(payload_of_counts), count.q);
        let count_next = pick(
            [
                (checking, payload),
                (at_count, out.slice(0, count.q.width())),
                (launch, none),
                (keeping, count.q.literal(1u32)),
            ],
            count.q - 1,
        );
        count.next_if(checking | at_count | launch | keeping | *steps, count_next);
    }
}

/// Whether a value is greater than a power of two, without a comparator.
fn beyond(value: Signal, power: u32) -> Signal {
    let bit = power.ilog2();
    let above = (value.width() > bit + 1).then(|| value.from_bit(bit + 1).any());
    let at = value.bit(bit) & if bit == 0 { value.bit(0).literal(0u32) } else { value.slice(0, bit).any() };
    above.map_or(at, |above| above | at)
}

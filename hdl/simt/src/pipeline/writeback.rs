//! Stage 10, write back: one write a cycle into the register banks.
//!
//! What the pipeline computed has a fixed time and goes first. A load's line or the divider's result goes into the
//! [gather register](super::gather), and from there, chosen if need be and aligned, into the banks in a cycle in which
//! the pipeline writes nothing. A late result that waits long makes issue insert a bubble, and no other before that one
//! has come here.

use super::collect::Write;
use super::divide::Quotient;
use super::gather::{Candidates, GatherIn, GatherOut, Loaded, gather};
use super::load_queue::{Load, Owner, Owners};
use super::network::{self, Leader};
use super::resolve::Computed;
use super::timing::{ISSUE_TO_WRITE, WAIT_BEFORE_BUBBLE};
use crate::divergence::interface::warp_of;
use crate::memory::port::Response;
use crate::scoreboard::Pending;
use crate::scoreboard::exact::Written;
use crate::shape::{Replay, Scoreboard, Shape};
use heddle_hdl::{all, each, elements, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct WritebackIn<T> {
    /// From stage 8, registered here once more.
    pub computed: Computed<T>,
    /// Results of the multiplier in this stage, 32 bits per lane; 0 unless it has what is written.
    #[width(32 * s.lanes)]
    pub products: T,
    pub response: Response<T>,
    /// The load that the response belongs to.
    pub load: Load<T>,
    /// As [`LoadQueueOut::owners`](super::load_queue::LoadQueueOut::owners).
    #[width(s.two_answers().then(|| Owners::shape(s)))]
    pub owners: Option<Owners<T>>,
    /// As [`LoadQueueOut::last`](super::load_queue::LoadQueueOut::last): under [`Replay::Serialise`], of this load;
    /// else of what is written late.
    pub load_last: T,
    /// Its words are 0 unless `quotient_shown` is on.
    pub quotient: Quotient<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct WritebackOut<T> {
    pub write: Write<T>,
    /// The response / the divider's result is taken.
    pub response_taken: T,
    pub quotient_taken: T,
    /// The divider's words are joined with those of a response: it must show them only now.
    pub quotient_shown: T,
    /// What is written late is a quotient.
    pub of_divider: T,
    /// A late write is done.
    pub late: Pending<T>,
    /// What is written late in this cycle, for a scoreboard that knows threads.
    pub written_late: Option<Written<T>>,
    /// Issue must leave this cycle free.
    pub bubble: T,
    /// Nothing waits here to be written.
    pub empty: T,
}

/// The size of `lw`.
const WORD: u32 = 2;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct AlignIn<T> {
    word: T,
    offset: T,
    size: T,
}

fn align() -> TypedModule<AlignIn<Width>, Signal> {
    module("writeback_align", AlignIn { word: 32, offset: 2, size: 3 }, |m, i| {
        m.doc("One lane's part of a word, extended.");
        // The offset is a multiple of the size, so the lowest byte is always the one at the offset.
        wire!(half = i.offset.bit(1).mux(i.word.slice(16, 16), i.word.slice(0, 16)));
        wire!(low_byte = i.offset.bit(0).mux(half.slice(8, 8), half.slice(0, 8)));
        wire!(is_byte = i.size.slice(0, 2).eq(0));
        wire!(sign = is_byte.mux(low_byte.msb(), half.msb()) & !i.size.bit(2));
        let second_byte = is_byte.mux(sign.repeat(8), half.slice(8, 8));
        let upper_half = i.size.bit(1).mux(i.word.slice(16, 16), sign.repeat(16));
        cat(&[low_byte, second_byte, upper_half])
    })
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneIn<T> {
    /// At most one of these two is not 0, and none if something late is written.
    computed: T,
    product: T,
    late: T,
    from_late: T,
}

fn lane() -> TypedModule<LaneIn<Width>, Signal> {
    let [computed, product, late] = [32; 3];
    module("writeback_lane", LaneIn { computed, product, late, from_late: 1 }, |m, i| {
        m.doc("One lane of stage 10: the value to write.");
        // A bit is a table of four inputs; a choice would be two.
        i.computed | i.product | i.late.only_if(i.from_late)
    })
}

pub fn writeback(s: &Shape) -> TypedModule<WritebackIn<Width>, WritebackOut<Signal>> {
    module("writeback", WritebackIn::shape(s), |m, i| {
        m.doc("Stage 10: the write into the register banks.");
        let Computed { valid, slot, rd, mask, multiply, common, word, data } = i.computed;
        let computed_target = m.pipe_if("s10", valid, Target { lanes: mask, slot, rd });
        // A bit is a table of four inputs, as above; or none, above the common word: registers with a reset give zeros for
        // nothing.
        wire!(of_lane = valid & !multiply & !common);
        wire!(of_all = word.only_if(valid & common));
        let value = |lane: Signal| {
            let upper = lane.from_bit(word.width());
            let lower = lane.slice(0, word.width()).only_if(of_lane) | of_all;
            cat(&[lower, of_lane.mux(upper, upper.literal(0u32))])
        };
        let computed = cat(&elements(data, 32).into_iter().map(value).collect::<Vec<_>>());
        let computed = m.pipe("s10_computed", computed);
        let valid = m.pipe_reset("s10_valid", valid);

        // What was loaded, and who it is for. Nobody waits for a load without a register, but it has its turn: whether
        // it has one is known late.
        let (load, quotient) = (i.load, i.quotient);
        wire!(has_register = i.owners.map_or(load.rd.any(), |owners| owners.of_answer(|owner| owner.rd.any())));
        // An access may be answered in every cycle only where it is served in parts: there, the divider takes turns.
        let divider_next = (s.replay == Replay::Serialise).then(|| m.reg("divider_next", 1).reset(0u32));
        let turn = divider_next.as_ref().map_or(m.lit(0u32, 1), |next| next.q);
        wire!(from_load = i.response.valid & !(turn & quotient.valid));
        wire!(from_quotient = quotient.valid & !from_load);
        // Block RAM answers late in its cycle. So with the leader network and 8 lanes a bit is two tables of four
        // inputs for the leader's word, and one for the choice of it or the own word, with the quotient's. A quotient is
        // a whole word. Without a divider there is nothing to choose from.
        let only_if = s.multiply.then_some(from_load);
        let (line, kept) = (i.response.data, load.route.route);
        let leader = network::leader_behind(s).then(|| Leader::of(s, line, kept));
        let loaded = match leader {
            Some(_) => only_if.map_or(line, |on| line.only_if(on)),
            None => network::to_lanes(s, m, line, kept, only_if),
        };
        // What an `sc.w` gets is not in the line.
        let loaded = load.route.conditional.map_or(loaded, |sc| {
            let fails = elements(sc.fails, 1).into_iter().map(|fails| fails.zext(32));
            (sc.valid & from_load).mux(cat(&fails.collect::<Vec<_>>()), loaded)
        });
        let not_in_the_line = [only_if.map(|on| !on), load.route.conditional.map(|sc| sc.valid)];
        let leader = leader.map(|leader| not_in_the_line.into_iter().flatten().fold(leader, Leader::own_if));
        let words = loaded | quotient.data;
        let offset = load.route.offset;
        let offset = only_if.map_or(offset, |on| on.mux(offset, offset.literal(0u32)));
        let answer = Loaded {
            valid: has_register,
            slot: load.slot,
            rd: load.rd,
            lanes: load.route.served,
            words,
            leader,
            offset,
            size: load.route.size,
            last: i.load_last,
        };
        let Quotient { slot, rd, mask: lanes, .. } = quotient;
        let (size, last) = (m.lit(WORD, 3), m.lit(1u32, 1));
        let of_divider = Loaded { valid: from_quotient, slot, rd, lanes, words, leader, offset, size, last };
        let comes = pick([(from_load, answer)], of_divider);
        let candidates = i.owners.map(|loads| Candidates { loads, quotient: Owner { slot, rd }, from_load });
        let written = m.deferred("written_late", 1);
        let GatherOut { taken, offered, empty } =
            m.instance("gather", &gather(s), GatherIn { answer: comes, written: written.value, candidates });
        wire!(response_taken = from_load & (taken | !has_register));
        wire!(quotient_taken = taken & !from_load);
        if let Some(next) = divider_next {
            next.next((turn | response_taken) & quotient.valid & !quotient_taken);
        }
        wire!(from_late = offered.valid & !valid);
        written.drive(from_late);
        let words = offered.leader.map_or(offered.words, |leader| leader.choose(s, m, offered.words));
        let aligned = AlignIn { word: each(words), offset: each(offered.offset), size: all(offered.size) };
        let late = m.replicate("align", s.lanes, &align(), aligned);
        let lanes =
            LaneIn { computed: each(computed), product: each(i.products), late: each(late), from_late: all(from_late) };
        let data = m.replicate("lane", s.lanes, &lane(), lanes);
        let late_target = Target { lanes: offered.lanes.only_if(from_late), slot: offered.slot, rd: offered.rd };
        let target = valid.mux(computed_target, late_target);

        let waited = m.reg("waited", count_width(WAIT_BEFORE_BUBBLE)).reset(0u32);
        wire!(waiting = offered.valid & valid);
        wire!(impatient = waited.q.eq(WAIT_BEFORE_BUBBLE));
        let flying = m.reg("bubbles", ISSUE_TO_WRITE).reset(0u32);
        // Issue finds it in a register.
        let bubble = m.reg("bubble", 1).reset(0u32);
        wire!(waits = waiting.mux(impatient.mux(waited.q, waited.q + 1), waited.q.literal(0u32)));
        wire!(flies = cat(&[bubble.q, flying.q.slice(0, ISSUE_TO_WRITE - 1)]));
        bubble.next(waits.eq(WAIT_BEFORE_BUBBLE) & !flies.any());
        flying.next(flies);
        waited.next(waits);
        let bubble = bubble.q;
        m.assume("quotients_have_a_register", !quotient.valid | quotient.rd.any());
        let of_divider = m.pipe_if("of_divider", taken, quotient_taken);
        m.cover("load_waits_for_the_pipeline", waiting & !of_divider);
        m.cover("quotient_waits_for_the_pipeline", waiting & of_divider);
        m.cover("quotient_waits_for_a_load", quotient.valid & response_taken);
        m.cover("bubble", bubble);

        let last = if s.replay == Replay::Serialise { offered.last } else { i.load_last };
        let late = Pending { valid: from_late & last, slot: offered.slot, rd: offered.rd };
        let Target { lanes: enables, slot, rd } = target;
        let write = Write { lanes: enables, warp: warp_of(s, slot), homes: None, rd, data };
        let quotient_shown = !from_load;
        let written_late = (s.scoreboard == Scoreboard::Exact).then(|| {
            let Target { lanes, slot, rd } = late_target;
            Written { lanes, warp: warp_of(s, slot), rd }
        });
        WritebackOut {
            write,
            response_taken,
            quotient_taken,
            quotient_shown,
            of_divider,
            late,
            written_late,
            bubble,
            empty,
        }
    })
}

/// Where a write goes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Target<T> {
    lanes: T,
    slot: T,
    rd: T,
}

#[cfg(test)]
mod tests;

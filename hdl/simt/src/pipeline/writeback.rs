//! Stage 10, write back: one write a cycle into the register banks.
//!
//! What the pipeline computed has a fixed time and goes first; a load's line (gathered and aligned here) or the divider's
//! result takes the cycle if the pipeline writes nothing. A late result that waits long makes issue insert a bubble, and no
//! other before that one has come here. Under [`Replay::Serialise`], loads come by way of the [gather register](super::gather).

use super::collect::Write;
use super::divide::Quotient;
use super::gather::{GatherIn, Loaded, gather};
use super::load_queue::Load;
use super::network;
use super::resolve::Computed;
use super::timing::{ISSUE_TO_WRITE, WAIT_BEFORE_BUBBLE};
use crate::divergence::warp_of;
use crate::memory::port::Response;
use crate::scoreboard::Pending;
use crate::shape::{Replay, Shape};
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct WritebackIn<T> {
    /// From stage 8, registered here once more.
    pub computed: Computed<T>,
    /// Results of the multiplier in this stage, 32 bits a lane; 0 unless it has what is written.
    pub products: T,
    pub response: Response<T>,
    /// The load that the response belongs to, and whether it is the last of its register.
    pub load: Load<T>,
    pub load_last: T,
    pub quotient: Quotient<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct WritebackOut<T> {
    pub write: Write<T>,
    /// The response is taken.
    pub response_taken: T,
    /// A load / the divider's result is written in this cycle.
    pub load_written: T,
    pub quotient_taken: T,
    /// A late write is done.
    pub late: Pending<T>,
    /// Issue must leave this cycle free.
    pub bubble: T,
    /// No load waits here to be written.
    pub empty: T,
}

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
    /// At most one of these is not 0, and none if something late is written.
    computed: T,
    word: T,
    product: T,
    loaded: T,
    quotient: T,
    from_load: T,
    from_quotient: T,
}

fn lane() -> TypedModule<LaneIn<Width>, Signal> {
    let [computed, word, product, loaded, quotient] = [32; 5];
    let inputs = LaneIn { computed, word, product, loaded, quotient, from_load: 1, from_quotient: 1 };
    module("writeback_lane", inputs, |m, i| {
        m.doc("One lane of stage 10: the value to write.");
        // A bit is two tables of four inputs; a choice would be four.
        let late = i.loaded.only_if(i.from_load) | i.quotient.only_if(i.from_quotient);
        i.computed | i.word | i.product | late
    })
}

pub fn writeback(s: &Shape) -> TypedModule<WritebackIn<Width>, WritebackOut<Signal>> {
    let inputs = WritebackIn {
        computed: Computed::shape(s),
        products: 32 * s.lanes,
        response: Response::shape(s),
        load: Load::shape(s),
        load_last: 1,
        quotient: Quotient::shape(s),
    };
    module("writeback", inputs, |m, i| {
        m.doc("Stage 10: the write into the register banks.");
        let Computed { valid, slot, rd, mask, multiply, common, word, data } = i.computed;
        let computed_target = m.pipe_if("s10", valid, Target { lanes: mask, slot, rd });
        let computed = m.pipe("s10_computed", (valid & !multiply & !common).mux(data, data.literal(0u32)));
        let word = m.pipe("s10_word", (valid & common).mux(word, word.literal(0u32)));
        let valid = m.pipe_reset("s10_valid", valid);

        // What was loaded, and who it is for. Nobody waits for a load without a register.
        let (load, quotient) = (i.load, i.quotient);
        wire!(words = network::to_lanes(s, m, i.response.data, load.route.route));
        let aligned = AlignIn { word: each(words), offset: each(load.route.offset), size: all(load.route.size) };
        let data = m.replicate("align", s.lanes, &align(), aligned);
        wire!(has_register = load.rd.any());
        let answer = Loaded {
            valid: i.response.valid & has_register,
            slot: load.slot,
            rd: load.rd,
            lanes: load.route.served,
            data,
            last: i.load_last,
        };
        let load_written = m.deferred("load_written", 1);
        let (loaded, answer_taken, empty) = if s.replay == Replay::Serialise {
            let gathered = m.instance("gather", &gather(s), GatherIn { answer, written: load_written.value });
            (gathered.offered, gathered.taken, gathered.empty)
        } else {
            (answer, load_written.value, m.lit(1u32, 1))
        };
        wire!(response_taken = i.response.valid & (answer_taken | !has_register));

        // An access may be answered in every cycle only where it is served in parts: there, the divider takes turns.
        let divider_next = (s.replay == Replay::Serialise).then(|| m.reg("divider_next", 1).reset(0u32));
        let turn = divider_next.as_ref().map_or(m.lit(0u32, 1), |next| next.q);
        wire!(from_load = loaded.valid & !valid & !(turn & quotient.valid));
        wire!(from_quotient = quotient.valid & !valid & !from_load);
        load_written.drive(from_load);
        if let Some(next) = divider_next {
            next.next((turn | from_load) & quotient.valid & !from_quotient);
        }
        let data = m.replicate(
            "lane",
            s.lanes,
            &lane(),
            LaneIn {
                computed: each(computed),
                word: all(word),
                product: each(i.products),
                quotient: each(quotient.data),
                loaded: each(loaded.data),
                from_load: all(from_load),
                from_quotient: all(from_quotient),
            },
        );
        let target = pick(
            [
                (valid, computed_target),
                (from_load, Target { lanes: loaded.lanes, slot: loaded.slot, rd: loaded.rd }),
                (from_quotient, Target { lanes: quotient.mask, slot: quotient.slot, rd: quotient.rd }),
            ],
            Target { lanes: mask.literal(0u32), ..computed_target },
        );

        let waited = m.reg("waited", count_width(WAIT_BEFORE_BUBBLE)).reset(0u32);
        wire!(waiting = (loaded.valid & !from_load) | (quotient.valid & !from_quotient));
        wire!(impatient = waited.q.eq(WAIT_BEFORE_BUBBLE));
        let flying = m.reg("bubbles", ISSUE_TO_WRITE).reset(0u32);
        wire!(bubble = impatient & !flying.q.any());
        flying.next(cat(&[bubble, flying.q.slice(0, ISSUE_TO_WRITE - 1)]));
        waited.next(waiting.mux(impatient.mux(waited.q, waited.q + 1), waited.q.literal(0u32)));
        m.assume("quotients_have_a_register", !quotient.valid | quotient.rd.any());
        m.cover("load_waits_for_the_pipeline", loaded.valid & valid);
        m.cover("quotient_waits_for_the_pipeline", quotient.valid & valid);
        m.cover("quotient_waits_for_a_load", quotient.valid & from_load);
        m.cover("bubble", bubble);

        let late = Pending { valid: (from_load & loaded.last) | from_quotient, slot: target.slot, rd: target.rd };
        let Target { lanes: enables, slot, rd } = target;
        let write = Write { lanes: enables, warp: warp_of(s, slot), homes: None, rd, data };
        WritebackOut {
            write,
            response_taken,
            load_written: from_load,
            quotient_taken: from_quotient,
            late,
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

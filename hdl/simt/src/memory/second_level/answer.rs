//! When the response with one tag is due: after the second level's latency, and not before the line is there.

use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct AnswerIn<T> {
    /// A request with this tag is taken; it waits for a line; the number of the miss.
    pub start: T,
    pub waits: T,
    pub miss: T,
    /// One bit a miss: it is under way; its line is there in this cycle.
    pub under_way: T,
    pub fills: T,
    /// The response leaves.
    pub leave: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct AnswerOut<T> {
    pub busy: T,
    /// Until it leaves.
    pub due: T,
}

/// Of one tag; the second level has so many misses, and takes so many cycles to a response.
pub fn answer(misses: u32, latency: u32) -> TypedModule<AnswerIn<Width>, AnswerOut<Signal>> {
    let inputs = AnswerIn { start: 1, waits: 1, miss: index_width(misses), under_way: misses, fills: misses, leave: 1 };
    module("second_level_answer", inputs, |m, i| {
        m.doc("When the response with one tag is due.");
        let busy = m.reg("busy", 1).reset(0u32);
        busy.next((busy.q & !i.leave) | i.start);
        let left = m.reg("left", count_width(latency));
        let cycles = left.q.literal(latency);
        left.next_if(i.start | left.q.any(), i.start.mux(cycles, left.q) - 1);
        let miss = m.pipe_if("of", i.start, i.miss);
        let of_miss = |all: Signal| all.select(miss, 1);
        let waits = m.reg("waiting", 1).reset(0u32);
        wire!(still = waits.q & !of_miss(i.fills));
        waits.next(i.start.mux(i.waits, still));
        m.assert("a_tag_is_used_once", !(i.start & busy.q & !i.leave));
        m.assert("what_it_waits_for_is_under_way", !(busy.q & waits.q) | of_miss(i.under_way));
        wire!(due = busy.q & !left.q.any() & !still);
        m.assert("leaves_when_due", !i.leave | due);
        AnswerOut { busy: busy.q, due }
    })
}

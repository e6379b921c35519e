//! What the cache is for: every request is answered once, with what was stored last.
//!
//! Any one line, of one word, is followed: its value as requests are taken from the core, and what memory has. The
//! memory here takes requests when it likes, answers loads in any order, and of other lines with any data. The
//! assertions inside the cache, such as that a line is in one way only, are proven with it.

use super::super::port::{Operation, Request, Response};
use super::super::proof::{Found, after, remembered, stays};
use super::{CacheIn, CacheOut, cache, tag_bits};
use crate::proof::{cover, held, implies};
use crate::shape::Shape;
use heddle_hdl::{prelude::*, select};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub request: Request<T>,
    pub response_ready: T,
    /// Memory takes a request.
    pub memory_ready: T,
    /// What it answers.
    pub answer: Response<T>,
    /// The line that is followed.
    pub line: T,
}

/// The cache of a shape with one lane and a cache, with all legal inputs: a tag is used again after its response.
pub fn cache_proof(s: &Shape) -> TypedModule<ProofIn<Width>, CacheOut<Signal>> {
    let c = s.cache.as_ref().expect("the shape has a cache");
    let CacheIn { request, below_response: answer, .. } = CacheIn::shape(s, c);
    let inputs = ProofIn { request, response_ready: 1, memory_ready: 1, answer, line: s.line_bits() };
    module("cache_proof", inputs, |m, i| {
        let line = held(m, "line_followed", i.line);

        // What is asked for stays until it is taken, and an answer too.
        let tags = 1 << i.request.tag.width();
        let waiting = m.reg("waiting", tags).reset(0u32);
        let silent = i.request.operation.bit(Operation::SILENT);
        let kind = if s.atomics { i.request.operation } else { cat(&[silent, m.lit(0u32, 1)]) };
        let whole = i.request.enables.bit(0).repeat(4);
        let legal = Request {
            valid: i.request.valid & (silent | !waiting.q.select(i.request.tag, 1)),
            operation: kind,
            enables: kind.eq(Operation::Store).mux(i.request.enables, whole),
            ..i.request
        };
        let request_waits = m.deferred("request_waits", 1);
        let request = stays(m, "request", legal, request_waits.value);
        let asked_tags = 1 << tag_bits(c);
        let asked = m.reg("asked", asked_tags).reset(0u32);
        let found = m.deferred("found", Found { followed: 1, word: 32 });
        let legal = Response {
            valid: i.answer.valid & asked.q.select(i.answer.tag, 1),
            data: found.value.followed.mux(found.value.word, i.answer.data),
            ..i.answer
        };
        let answer_waits = m.deferred("answer_waits", 1);
        let answer = stays(m, "answer", legal, answer_waits.value);

        let inputs = CacheIn {
            restart: m.lit(0u32, 1),
            request,
            response_ready: i.response_ready,
            below_request_ready: i.memory_ready,
            below_response: answer,
        };
        let out = m.instance("cache", &cache(s, c), inputs);
        request_waits.drive(request.valid & !out.request_ready);
        answer_waits.drive(answer.valid & !out.below_response_ready);

        // Memory.
        let below = out.below_request;
        let memory_word = m.reg("memory_word", 32).reset(0u32);
        wire!(sent = below.valid & i.memory_ready);
        wire!(sent_here = sent & below.line.eq(line));
        memory_word.next_if(sent_here, after(s, below, memory_word.q));
        let asks = below.tag.decode(asked_tags).only_if(sent & below.operation.eq(Operation::Load));
        let came = answer.tag.decode(asked_tags).only_if(answer.valid & out.below_response_ready);
        asked.next((asked.q & !came) | asks);
        let read = remembered(m, "read", asks, Found { followed: sent_here, word: memory_word.q });
        found.drive(select(&read, i.answer.tag));
        m.assert("memory_tags_are_used_once", !(asks & asked.q).any());
        m.assert("memory_answers_loads_only", implies(sent & !asks.any(), below.operation.bit(Operation::SILENT)));

        // The core.
        let word = m.reg("word", 32).reset(0u32);
        wire!(taken = request.valid & out.request_ready);
        wire!(taken_here = taken & request.line.eq(line));
        word.next_if(taken_here, after(s, request, word.q));
        let begins = request.tag.decode(tags).only_if(taken & !request.operation.bit(Operation::SILENT));
        let wanted = remembered(m, "wanted", begins, Found { followed: taken_here, word: word.q });
        let response = out.response;
        let ends = response.tag.decode(tags).only_if(response.valid & i.response_ready);
        waiting.next((waiting.q & !ends) | begins);
        let expected = select(&wanted, response.tag);
        wire!(right = response.data.eq(expected.word));
        m.assert("a_response_is_waited_for", implies(response.valid, waiting.q.select(response.tag, 1)));
        m.assert("it_has_what_was_stored_last", implies(response.valid & expected.followed, right));
        m.assert("no_response_is_lost", implies(out.idle, !waiting.q.any()));
        m.assert("memory_has_everything", implies(out.idle, memory_word.q.eq(word.q)));

        cover(m, "what_was_stored_comes_back", response.valid & expected.followed & expected.word.any());
        cover(m, "two_wait", (waiting.q & !waiting.q.lowest_one()).any());
        let after_all = out.idle & word.q.any();
        cover(m, "memory_has_what_was_stored", after_all);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::{Cache, Metrics};

    #[test]
    fn holds_at_random_inputs() {
        for (ways, line, misses, atomics) in [(2, 2, 2, true), (2, 1, 2, false), (1, 2, 1, true)] {
            let cache = Some(Cache { size: 2 * ways * line * 4, ways, line, misses });
            let s = Shape { cache, atomics, metrics: Metrics::Off, memory: 128, loads: 4, ..Shape::new(1, 1) };
            holds_at_random(&cache_proof(&s).check().unwrap().netlist, 5000);
        }
    }
}

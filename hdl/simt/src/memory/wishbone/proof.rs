//! What the bridge is for: whatever the slave does, the rules of the bus hold; every request goes over the bus once and
//! is answered once, with what was stored last; and an error is told with its address.
//!
//! Any one word is followed: its value as requests are taken from the core, and what the memory on the bus has. The
//! slave stalls and answers when it likes, in the cycle in which it takes a beat at the earliest, with errors too, and
//! with any data for other words. After an error, only the rules and the number of responses are looked at.

use super::super::port::{Operation, Request};
use super::super::proof::{Found, after, remembered, stays};
use super::super::{MainIn, MainOut};
use super::rules::{RulesIn, rules};
use super::{FromSlave, ToSlave, wishbone};
use crate::proof::{cover, held, implies};
use crate::queue::Queue;
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*, select};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub request: Request<T>,
    pub response_ready: T,
    /// What the slave does.
    pub slave: FromSlave<T>,
    /// The number of the word that is followed.
    pub follow: T,
}

/// A beat that the slave has taken.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Beat<T> {
    adr: T,
    /// It reads the word that is followed, which was this.
    reads: T,
    word: T,
}

/// The bridge of a shape with a bus, with all legal inputs: a tag is used again after its response.
pub fn wishbone_proof(s: &Shape) -> TypedModule<ProofIn<Width>, MainOut<Signal>> {
    let width = s.bus_width().expect("the shape has a bus");
    let MainIn { request, response_ready, load, .. } = MainIn::shape(s, index_width(s.loads));
    let inputs = ProofIn { request, response_ready, slave: FromSlave::shape(width), follow: s.address_bits() - 2 };
    module("wishbone_proof", inputs, |m, i| {
        let followed = held(m, "followed", i.follow);
        // Of the word followed, in a line, or in a beat.
        let part = |packed: Signal, size: Width| {
            let parts = elements(packed, size);
            if parts.len() == 1 { packed } else { select(&parts, followed.slice(0, index_width(parts.len() as u32))) }
        };

        // The core: what it asks for stays until it is taken.
        let tags = 1 << i.request.tag.width();
        let waiting = m.reg("waiting", tags).reset(0u32);
        let silent = i.request.operation.bit(Operation::SILENT);
        let kind = if s.atomics { i.request.operation } else { cat(&[silent, m.lit(0u32, 1)]) };
        let whole: Vec<Signal> = elements(i.request.enables, 4).iter().map(|e| e.bit(0).repeat(4)).collect();
        let legal = Request {
            valid: i.request.valid & (silent | !waiting.q.select(i.request.tag, 1)),
            operation: kind,
            enables: kind.eq(Operation::Store).mux(i.request.enables, cat(&whole)),
            ..i.request
        };
        let request_waits = m.deferred("request_waits", 1);
        let request = stays(m, "request", legal, request_waits.value);

        let from_slave = m.deferred("from_slave", i.slave.map("", &mut |_, s: Signal| s.width()));
        let wb = Some(from_slave.value);
        let inputs = MainIn {
            request,
            response_ready: i.response_ready,
            load: m.zero(load),
            restart: None,
            set_jitter: None,
            wb,
        };
        let out = m.instance("bridge", &wishbone(s, width, i.request.tag.width()), inputs);
        request_waits.drive(request.valid & !out.request_ready);

        // The slave. A beat takes effect when it is taken, and memory is what it leaves.
        let bus: ToSlave<Signal> = out.wb.expect("the bridge is the bus's master");
        let memory_word = m.reg("memory_word", 32).reset(0u32);
        wire!(taken = bus.stb_o & !i.slave.stall_i);
        let low = (width / 8).ilog2();
        wire!(here = bus.adr_o.from_bit(low).eq(followed.from_bit(low - 2)));
        let sel = part(bus.sel_o, 4);
        wire!(writes_here = taken & here & bus.we_o & sel.any());
        memory_word.next_if(writes_here, written(part(bus.dat_o, 32), memory_word.q, sel));
        let beat = Beat { adr: bus.adr_o, reads: here & !bus.we_o, word: memory_word.q };
        let comes = m.deferred("beat_comes", 1);
        let shape = Beat { adr: s.address_bits(), reads: 1, word: 32 };
        let beats = Queue::new(m, "beats", shape, super::MOST_UNDER_WAY, comes.value, beat);
        wire!(answers = (i.slave.ack_i | i.slave.err_i) & (beats.waits | taken));
        comes.drive(taken & !(answers & !beats.waits));
        beats.leaves(answers & beats.waits);
        wire!(answered = beats.waits.mux(beats.head, beat));
        let fails = answers & !i.slave.ack_i;
        wire!(right_word = answered.reads & !fails);
        let data = elements(i.slave.dat_i, 32).into_iter().zip(0..).map(|(any, k)| {
            let at = if width == 32 { right_word } else { right_word & followed.slice(0, low - 2).eq(k) };
            at.mux(answered.word, any)
        });
        let dat_i = cat(&data.collect::<Vec<_>>());
        let slave = FromSlave { ack_i: answers & i.slave.ack_i, err_i: fails, dat_i, ..i.slave };
        from_slave.drive(slave);
        m.instance("rules", &rules(s, width), RulesIn { master: bus, slave });

        // What the core should find.
        let failed = m.reg("failed", 1).reset(0u32);
        failed.next(failed.q | fails);
        let word = m.reg("word", 32).reset(0u32);
        wire!(goes = request.valid & out.request_ready);
        let own = Request { enables: part(request.enables, 4), data: part(request.data, 32), ..request };
        let lane_bits = s.lanes.ilog2();
        wire!(goes_here = goes & own.enables.any() & request.line.eq(followed.from_bit(lane_bits)));
        word.next_if(goes_here, after(s, own, word.q));
        let begins = request.tag.decode(tags).only_if(goes & !request.operation.bit(Operation::SILENT));
        let wanted = remembered(m, "wanted", begins, Found { followed: goes_here, word: word.q });
        let response = out.response;
        let ends = response.tag.decode(tags).only_if(response.valid & i.response_ready);
        waiting.next((waiting.q & !ends) | begins);
        let expected = select(&wanted, response.tag);
        let counter = |name: &str, counts: Signal| {
            let count = m.reg(name, 3).reset(0u32);
            count.next_if(counts, count.q + 1);
            count.q
        };
        let stores = counter("stores", goes_here & request.operation.ne(Operation::Load));
        let writes = counter("writes", writes_here);
        wire!(over = out.idle & !request.valid);
        let good = !failed.q & !fails;
        m.assert("a_response_is_waited_for", implies(response.valid, waiting.q.select(response.tag, 1)));
        let as_stored = part(response.data, 32).eq(expected.word);
        m.assert("it_has_what_was_stored_last", implies(good & response.valid & expected.followed, as_stored));
        m.assert("no_response_is_lost", implies(over, !waiting.q.any()));
        m.assert("memory_has_everything", implies(good & over, memory_word.q.eq(word.q)));
        m.assert("a_store_goes_once", implies(good & over, stores.eq(writes)));
        m.assert("idle_when_all_is_answered", implies(out.idle, !beats.waits));
        let error = out.error.expect("the bridge tells errors");
        m.assert("an_error_is_told", error.valid.eq(m.pipe_reset("was_fails", fails)));
        m.assert("with_its_address", !error.valid | error.address.eq(m.pipe("was_adr", answered.adr)));

        cover(m, "what_was_stored_comes_back", good & response.valid & expected.followed & expected.word.any());
        cover(m, "two_wait", (waiting.q & !waiting.q.lowest_one()).any());
        cover(m, "memory_has_what_was_stored", good & over & word.q.any());
        cover(m, "an_error", error.valid);
        cover(m, "answered_at_once", answers & !beats.waits);
        if s.atomics {
            cover(m, "an_atomic", good & goes_here & request.operation.eq(Operation::Atomic) & word.q.any());
        }
        out
    })
}

/// The word after a write of some of its bytes.
fn written(new: Signal, old: Signal, sel: Signal) -> Signal {
    let bytes = elements(new, 8).into_iter().zip(elements(old, 8)).zip(elements(sel, 1));
    cat(&bytes.map(|((new, old), sel)| sel.mux(new, old)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::{Backing, SlaveModel, Timing};

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, width, atomics) in [(1, 32, true), (2, 32, true), (4, 64, false), (4, 128, true)] {
            let slave = SlaveModel { timing: Timing::FASTEST, error: None };
            let backing = Backing::Wishbone { width, slave };
            let s = Shape { backing, atomics, memory: 64, loads: 4, ..Shape::new(lanes, 1) };
            holds_at_random(&wishbone_proof(&s).check().unwrap().netlist, 5000);
        }
    }
}

//! On-chip memory, one bank a lane: takes a request in every cycle, answers a load in the next.

use super::port::{Response, operation};
use super::{MemorySystemIn, MemorySystemOut};
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct BankIn<T> {
    line: T,
    enables: T,
    store: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct BankOut<T> {
    data: T,
}

/// One bank of on-chip memory: one word of every line.
fn bank(s: &Shape) -> TypedModule<BankIn<Width>, BankOut<Signal>> {
    module(
        "memory_bank",
        BankIn { line: s.line_bits(), enables: 4, store: 32 },
        |m, BankIn { line, enables, store }| {
            m.doc("One bank of on-chip memory.");
            let words = m.memory("words", 32, s.line_bits()).style(MemoryStyle::Block);
            words.write_granules(enables, line, store);
            BankOut { data: words.read_sync(line, Collision::ReadOld) }
        },
    )
}

/// On-chip memory of a shape.
///
/// A load writes nothing in its own stage 10, so the response is always taken at once.
pub fn ram(s: &Shape) -> TypedModule<MemorySystemIn<Width>, MemorySystemOut<Signal>> {
    module("ram", MemorySystemIn::shape(s), |m, MemorySystemIn { request, response_ready, load }| {
        m.doc("On-chip memory, one bank a lane.");
        let line_low = 2 + s.lanes.ilog2();
        let load_bank = if s.lanes == 1 { load.valid } else { load.address.slice(2, s.lane_bits()).decode(s.lanes) };
        let load_enables = cat(&elements(load_bank, 1).into_iter().map(|b| b.repeat(4)).collect::<Vec<_>>());
        wire!(line = load.valid.mux(load.address.from_bit(line_low), request.line));
        wire!(storing = request.valid & request.operation.eq(operation::STORE));
        wire!(enables = load.valid.mux(load_enables, request.enables.only_if(storing)));
        wire!(store = load.valid.mux(load.word.repeat(s.lanes), request.data));
        m.assert("load_only_while_idle", !(load.valid & request.valid));
        let inputs = BankIn { line: all(line), enables: each(enables), store: each(store) };
        let banks = m.replicate("bank", s.lanes, &bank(s), inputs);
        let valid = m.pipe_reset("valid", request.valid & !request.operation.bit(operation::SILENT));
        m.assert("response_taken_at_once", !valid | response_ready);
        let always = m.lit(1u32, 1);
        MemorySystemOut {
            request_ready: always,
            response: Response { valid, tag: m.pipe("tag", request.tag), data: banks.data },
            idle: always,
        }
    })
}

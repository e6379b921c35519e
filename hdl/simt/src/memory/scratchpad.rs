//! The scratchpad: memory of a block, one bank per lane, each with a line of its own in every cycle.
//!
//! It takes a request in a cycle in which `ready` is 1 and answers a load or atomic in the next; the answer stays until
//! it is taken.

use super::bank::{BankAtomic, BankIn, bank};
use super::port::{Operation, Response};
use crate::shape::Shape;
use heddle_hdl::{all, each, prelude::*};

/// A request: at most one word per bank.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ScratchpadRequest<T> {
    pub valid: T,
    /// An [`Operation`].
    #[width(Operation::WIDTH)]
    pub operation: T,
    /// Of an atomic: an [`Atomic`](crate::isa::Atomic).
    #[width(5)]
    pub function: T,
    /// Comes back with the answer.
    #[width(index_width(s.loads))]
    pub tag: T,
    /// [`Shape::scratchpad_line_bits`] a bank.
    #[width(s.scratchpad_line_bits() * s.lanes)]
    pub lines: T,
    /// Four bits per bank: bytes to store, words to read or modify.
    #[width(4 * s.lanes)]
    pub enables: T,
    /// 32 bits per bank, as at the [port](super::port::Request::data).
    #[width(32 * s.lanes)]
    pub data: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ScratchpadIn<T> {
    pub request: ScratchpadRequest<T>,
    pub response_ready: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ScratchpadOut<T> {
    pub ready: T,
    pub response: Response<T>,
}

/// The scratchpad of a shape that has one.
pub fn scratchpad(s: &Shape) -> TypedModule<ScratchpadIn<Width>, ScratchpadOut<Signal>> {
    module("scratchpad", ScratchpadIn::shape(s), |m, ScratchpadIn { request, response_ready }| {
        m.doc("Memory of blocks, one bank a lane.");
        // The banks' outputs hold an answer that waits.
        let answered = m.reg("answered", 1).reset(0u32);
        wire!(held = answered.q & !response_ready);
        wire!(taken = request.valid & !held);
        answered.next(held | (taken & !request.operation.bit(Operation::SILENT)));
        wire!(writes = request.operation.ne(Operation::Load));
        let atomic = BankAtomic { valid: request.operation.bit(Operation::IS_ATOMIC), function: request.function };
        let inputs = BankIn {
            access: all(taken),
            line: each(request.lines),
            writes: all(writes),
            enables: each(request.enables),
            data: each(request.data),
            atomic: s.atomics.then(|| all(atomic)),
        };
        let banks = m.replicate("bank", s.lanes, &bank(s.scratchpad_line_bits(), s.atomics), inputs);
        m.cover("answer_waits", held);
        let tag = m.pipe_if("tag", taken, request.tag);
        ScratchpadOut { ready: !held, response: Response { valid: answered.q, tag, data: banks.word } }
    })
}

#[cfg(test)]
mod tests;

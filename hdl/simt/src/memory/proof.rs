//! What the proofs of what has the memory port share.

use super::atomic;
use super::port::{Operation, Request};
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*};

/// What a load is to find, if it is of what is followed.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Found<T> {
    pub followed: T,
    pub word: T,
}

/// What is offered, and while it waits, what was offered first.
pub fn stays<B: Signals>(m: Builder, name: &str, offered: B, waits: Signal) -> B {
    let waited = m.pipe_reset(&format!("{name}_waited"), waits);
    let first = m.pipe_if(&format!("{name}_offered"), !waited, offered.clone());
    waited.mux(first, offered)
}

/// `found` of the last time that each bit of `when` was on.
pub fn remembered(m: Builder, name: &str, when: Signal, found: Found<Signal>) -> Vec<Found<Signal>> {
    elements(when, 1).into_iter().enumerate().map(|(k, when)| m.pipe_if(&format!("{name}_{k}"), when, found)).collect()
}

/// The word that a request of one lane leaves.
pub fn after(s: &Shape, r: Request<Signal>, word: Signal) -> Signal {
    let stored = if s.atomics {
        r.operation.bit(Operation::IS_ATOMIC).mux(atomic::after(r.function, word, r.data), r.data)
    } else {
        r.data
    };
    let writes = r.operation.ne(Operation::Load);
    let bytes = elements(stored, 8).into_iter().zip(elements(word, 8)).zip(elements(r.enables, 1));
    cat(&bytes.map(|((new, old), enable)| (enable & writes).mux(new, old)).collect::<Vec<_>>())
}

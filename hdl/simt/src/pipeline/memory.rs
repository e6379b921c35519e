//! Stage 9, memory: the access goes out to the memory port.
//!
//! A request is one line of `lanes` words: bank k holds word k. Loads read the whole line; a store enables bytes bank by
//! bank. Each bank gets its own lane's data, but the leader's bank gets that of the highest-numbered lane that stores to
//! the leader's word.

use super::resolve::Access;
use crate::memory::port::{Request, operation};
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MemoryIn<T> {
    pub access: Access<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MemoryOut<T> {
    pub request: Request<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct AlignIn<T> {
    size: T,
    offset: T,
    value: T,
}

/// Data at its place in a word, and the bytes it covers.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Aligned<T> {
    data: T,
    enables: T,
}

fn align() -> TypedModule<AlignIn<Width>, Aligned<Signal>> {
    module("store_align", AlignIn { size: 2, offset: 2, value: 32 }, |m, AlignIn { size, offset, value }| {
        m.doc("Puts a lane's store data at its bytes of the word.");
        let byte = value.slice(0, 8).repeat(4);
        let half = value.slice(0, 16).repeat(2);
        let halves = offset.bit(1).mux(m.lit(0b1100u32, 4), m.lit(0b0011u32, 4));
        let arms =
            [(0u32, Aligned { data: byte, enables: offset.decode(4) }), (1, Aligned { data: half, enables: halves })];
        case(size, &arms, Aligned { data: value, enables: m.lit(0b1111u32, 4) })
    })
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct BankIn<T> {
    /// The lane stores into its own bank, and what.
    own: T,
    lane: Aligned<T>,
    /// This is the leader's bank, and what goes there.
    is_leader: T,
    leader: Aligned<T>,
    /// Anything is stored at all.
    storing: T,
}

fn bank() -> TypedModule<BankIn<Width>, Aligned<Signal>> {
    let aligned = Aligned { data: 32, enables: 4 };
    let inputs = BankIn { own: 1, lane: aligned, is_leader: 1, leader: aligned, storing: 1 };
    module("store_bank", inputs, |m, i| {
        m.doc("What a bank of the line is to store.");
        let enables = i.is_leader.mux(i.leader.enables, i.lane.enables.only_if(i.own));
        Aligned { data: i.is_leader.mux(i.leader.data, i.lane.data), enables: enables.only_if(i.storing) }
    })
}

pub fn memory(s: &Shape) -> TypedModule<MemoryIn<Width>, MemoryOut<Signal>> {
    module("memory", MemoryIn { access: Access::shape(s) }, |m, MemoryIn { access }| {
        m.doc("Stage 9: the memory port's requests.");
        let inputs =
            AlignIn { size: all(access.size.slice(0, 2)), offset: each(access.offset), value: each(access.data) };
        let lanes = m.replicate("align", s.lanes, &align(), inputs);
        let words = elements(lanes.data, 32);
        let bytes = elements(lanes.enables, 4);
        let storing = access.valid & access.store;

        // The highest-numbered served lane at the leader's word; all of them store the same bytes.
        wire!(at_leader = access.served & !access.own);
        wire!(winner = highest_one(at_leader));
        wire!(leader_data = select_one_hot(&words, winner));
        wire!(leader_bytes = select_one_hot(&bytes, winner));
        wire!(own = access.served & access.own);
        wire!(leader_bank = access.bank.decode(s.lanes));
        let inputs = BankIn {
            own: each(own),
            lane: Aligned { data: each(lanes.data), enables: each(lanes.enables) },
            is_leader: each(leader_bank),
            leader: Aligned { data: all(leader_data), enables: all(leader_bytes) },
            storing: all(storing),
        };
        let banks = m.replicate("bank", s.lanes, &bank(), inputs);
        let request = Request {
            valid: access.valid,
            operation: access.store.mux(m.lit(operation::STORE, 2), m.lit(operation::LOAD, 2)),
            function: m.lit(0u32, 5),
            tag: access.tag,
            line: access.line,
            enables: banks.enables,
            data: banks.data,
        };
        MemoryOut { request }
    })
}

/// The highest bit that is on, alone.
fn highest_one(bits: Signal) -> Signal {
    let reversed: Vec<Signal> = elements(bits, 1).into_iter().rev().collect();
    let lowest = cat(&reversed).lowest_one();
    cat(&elements(lowest, 1).into_iter().rev().collect::<Vec<_>>())
}

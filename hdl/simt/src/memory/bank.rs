//! A bank: one word of every line, with the atomic operations. Takes a request in every cycle.
//!
//! | cycle | with atomic operations | without |
//! |---|---|---|
//! | request | the word is read | a load reads the word, a store writes it |
//! | next | the word is at the output; what a store or an atomic operation makes of it is written | the word is at the output |
//!
//! With atomic operations, a request to the same word in the next cycle reads what is being written, so requests take
//! effect in their order without anything to wait for. Block RAM has no such read: tools put a register beside the
//! bank, comparators, and a choice behind the output, where time is short. Without them, no word is ever read while it
//! is written. On-chip memory, scratchpad and cache are made of banks.
//!
//! What it does not do: it does not say whether a write is under way; who asks knows when it last wrote.

use super::atomic::{AtomicIn, atomic};
use crate::isa::Atomic;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct BankIn<T> {
    /// There is a request. Without one, the output stays.
    pub access: T,
    /// The bank's word.
    pub line: T,
    /// The request is a store or an atomic operation.
    pub writes: T,
    /// Bytes to write if it is, 4 bits; all for an atomic operation.
    pub enables: T,
    /// What to write, or the operand of an atomic operation, 32 bits; of some, [inverted](super::atomic::INVERTS).
    pub data: T,
    /// In a core with atomic operations.
    pub atomic: Option<BankAtomic<T>>,
}

/// The atomic operation of a request.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct BankAtomic<T> {
    /// The request is one.
    pub valid: T,
    /// An [`Atomic`](crate::isa::Atomic), 5 bits.
    pub function: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct BankOut<T> {
    /// The word as it was before the last request, unless that was a store, 32 bits; from the cycle after the request
    /// to the next one.
    pub word: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Write<T> {
    valid: T,
    line: T,
    enables: T,
    data: T,
}

/// A bank of `2^line_bits` words. All banks of a design have atomic operations or none has.
pub fn bank(line_bits: Width, atomics: bool) -> TypedModule<BankIn<Width>, BankOut<Signal>> {
    let atomic_in = atomics.then_some(BankAtomic { valid: 1, function: 5 });
    let inputs = BankIn { access: 1, line: line_bits, writes: 1, enables: 4, data: 32, atomic: atomic_in };
    module(&format!("bank{line_bits}"), inputs, |m, i| {
        m.doc(&format!("A bank of {} words.", 1u64 << line_bits));
        let words = m.memory("words", 32, line_bits).style(MemoryStyle::Block);
        let enables = i.enables.only_if(i.writes);
        let Some(a) = i.atomic else {
            let word = words.read_sync_if(i.access & !i.writes, i.line, Collision::Never);
            words.write_granules(enables.only_if(i.access), i.line, i.data);
            return BankOut { word };
        };
        let word = words.read_sync_if(i.access, i.line, Collision::ReadNew);
        let write = m.stage("write", Write { valid: i.access, line: i.line, enables, data: i.data });
        // A store is a swap.
        let code = m.pipe_if("code", i.access, a.valid.mux(a.function, a.function.literal(Atomic::Swap)));
        let changed = m.instance("atomic", &atomic(), AtomicIn { code, word, operand: write.data });
        m.cover("atomic_after_a_write", a.valid & i.access & write.valid & write.enables.any() & write.line.eq(i.line));
        words.write_granules(write.enables.only_if(write.valid & changed.changes), write.line, changed.result);
        BankOut { word }
    })
}

#[cfg(test)]
mod tests {
    use super::super::atomic::reference;
    use super::*;
    use crate::isa::Atomic;
    use heddle_sim::Sim;

    /// Reads, writes of bytes, and atomic operations, on few words, so that they follow each other on one.
    #[test]
    fn requests_take_effect_in_order() {
        for (line_bits, atomics, seed) in [(1, true, 1), (1, false, 2), (4, true, 3)] {
            println!("{line_bits} bits, atomics: {atomics}, seed {seed}");
            let mut r = fastrand::Rng::with_seed(seed);
            let mut t = Sim::new(&bank(line_bits, atomics).check().unwrap());
            t.reset();
            let mut words: Vec<u32> = (0..1 << line_bits).map(|_| r.u32(..)).collect();
            for (at, &word) in words.iter().enumerate() {
                t.memory_write("words", at as u64, word);
            }
            let mut shown = None;
            for _ in 0..3000 {
                let (access, line, data) = (r.u8(..4) > 0, r.usize(..words.len()), r.u32(..));
                let is_atomic = atomics && r.bool();
                let function = *r.choice(Atomic::ALL).unwrap();
                let enables = if is_atomic { 15 } else { r.u32(..16) };
                let writes = is_atomic || r.bool();
                t.poke(BankIn {
                    access: access.into(),
                    line: line.into(),
                    writes: writes.into(),
                    enables: enables.into(),
                    data: data.into(),
                    atomic: atomics.then(|| BankAtomic { valid: is_atomic.into(), function: function.into() }),
                });
                if let Some(word) = shown {
                    assert_eq!(t.peek().word, u64::from(word));
                }
                t.step();
                if access {
                    shown = (atomics || !writes).then_some(words[line]);
                    let enables = if writes { enables } else { 0 };
                    let new = if is_atomic { reference(function, words[line], data) } else { data };
                    let mask = (0..4).filter(|k| enables >> k & 1 == 1).fold(0, |mask, k| mask | 0xff << (8 * k));
                    words[line] = words[line] & !mask | new & mask;
                }
            }
            t.poke_port("access", false);
            t.step();
            for (at, &word) in words.iter().enumerate() {
                assert_eq!(t.memory_read("words", at as u64), u64::from(word));
            }
            assert!(!atomics || t.cover_hits("atomic_after_a_write") > 0);
        }
    }
}

//! What an atomic operation makes of one word. Combinational.
//!
//! The operand of a minimum or maximum comes [inverted](INVERTS): so it is subtracted, to compare it, by a carry chain
//! that only adds. A bit of the result is two tables of four inputs beside that.

use crate::isa::Atomic;
use crate::lane::{Sum, sum_of};
use heddle_hdl::{case, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct AtomicIn<T> {
    /// An [`Atomic`](crate::isa::Atomic), 5 bits.
    pub code: T,
    /// The word in memory, 32 bits.
    pub word: T,
    /// The other operand, 32 bits, or [that inverted](INVERTS).
    pub operand: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct AtomicOut<T> {
    /// The word that memory gets, 32 bits, if it gets one.
    pub result: T,
    /// It gets one; else a minimum or maximum leaves the word as it is.
    pub changes: T,
}

pub fn atomic() -> TypedModule<AtomicIn<Width>, AtomicOut<Signal>> {
    let inputs = AtomicIn { code: Atomic::WIDTH, word: 32, operand: 32 };
    module("atomic", inputs, |m, AtomicIn { code, word, operand }| {
        m.doc("What an atomic operation makes of one word.");
        of(code, word, operand)
    })
}

/// This bit of the code is on: it is a minimum or maximum, whose operand goes to memory inverted.
pub const INVERTS: u32 = 1 << 4;

/// 1 bit: the operand of this code goes to memory inverted.
pub fn inverts(code: Signal) -> Signal {
    (code & code.literal(INVERTS)).any()
}

fn of(code: Signal, word: Signal, operand: Signal) -> AtomicOut<Signal> {
    // Bit 2 is on in the codes of maximum, bit 3 in those of unsigned order.
    let extreme = inverts(code);
    let Sum { sum, carry } = sum_of(word, operand, extreme);
    wire!(below = !carry ^ (!code.bit(3) & (word.msb() ^ !operand.msb())));
    wire!(keeps = extreme & (below ^ code.bit(2)));
    let of_bits = [(Atomic::Xor, word ^ operand), (Atomic::Or, word | operand), (Atomic::And, word & operand)];
    let of_bits = of_bits.map(|(code, value)| (code.code() >> 2, value));
    wire!(moved = case(code.slice(2, 2).only_if(!extreme), &of_bits, operand) ^ extreme.repeat(32));
    AtomicOut { result: code.eq(Atomic::Add).mux(sum, moved), changes: !keeps }
}

/// The word that memory has afterwards.
pub(super) fn after(code: Signal, word: Signal, operand: Signal) -> Signal {
    let AtomicOut { result, changes } = of(code, word, operand);
    changes.mux(result, word)
}

/// What goes to memory of an operand, and the operand of what has gone, of this code; in Rust, for those who look at the
/// port.
pub fn sent(code: u32, operand: u32) -> u32 {
    if code & INVERTS != 0 { !operand } else { operand }
}

/// What memory gets, in Rust, for tests; of what has gone there.
#[cfg(test)]
pub fn reference(f: Atomic, word: u32, gone: u32) -> u32 {
    let operand = sent(f.code() as u32, gone);
    match f {
        Atomic::Add => word.wrapping_add(operand),
        Atomic::Swap => operand,
        Atomic::Xor => word ^ operand,
        Atomic::Or => word | operand,
        Atomic::And => word & operand,
        Atomic::Min => (word as i32).min(operand as i32) as u32,
        Atomic::Max => (word as i32).max(operand as i32) as u32,
        Atomic::Minu => word.min(operand),
        Atomic::Maxu => word.max(operand),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;

    #[test]
    fn every_function_at_the_edges() {
        let mut t = Sim::new(&atomic().check().unwrap());
        let values = [0u32, 1, 2, 0x7fff_fffe, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ffff, 0x1234_5678];
        for &f in Atomic::ALL {
            for (word, operand) in values.into_iter().flat_map(|a| values.map(|b| (a, b))) {
                t.poke(AtomicIn { code: f.into(), word: word.into(), operand: operand.into() });
                let want = u64::from(reference(f, word, operand));
                let AtomicOut { result, changes } = t.peek();
                let after = if changes == 1 { result.low_u64() } else { u64::from(word) };
                assert_eq!(after, want, "{f:?} of {word:#x}, {operand:#x}");
            }
        }
    }
}

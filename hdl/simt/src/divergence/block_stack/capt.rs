//! The compaction-adequacy prediction table (CAPT): whether forming new warps at a branch was worth waiting for, so
//! far.
//!
//! `capri.txt` §3.1: fully associative, the tag is the branch's pc. Entries are in the order of their last use, the
//! latest first: an entry that is used or comes moves to the front, and what is last when one comes is forgotten. A
//! branch without an entry is adequate.
//!
//! | event | what follows |
//! |---|---|
//! | a warp parts at a branch (`asks`) | its entry is used, or one comes, which says adequate |
//! | new warps were formed behind a branch (`learns`) | its entry, if there is one, learns whether that was adequate |
//!
//! What an entry says: under [`History::Latest`] what it learned last; under [`History::Sticky`] adequate, since a warp
//! has parted; under [`History::Counter`] the upper half of a saturating counter of 2 bits, which begins as 2.

use crate::shape::{History, Shape};
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CaptIn<T> {
    /// 1 bit: all is forgotten.
    pub clear: T,
    /// 1 bit: a warp has parted at `asked`, an instruction number; else the answer is for whoever looks.
    pub asks: T,
    #[width(s.pc_bits())]
    pub asked: T,
    /// 1 bit: what the branch at `learned` did was adequate, or was not.
    pub learns: T,
    #[width(s.pc_bits())]
    pub learned: T,
    pub was_adequate: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CaptOut<T> {
    /// 1 bit: the branch at `asked` is adequate.
    pub adequate: T,
    /// 1 bit: it has an entry.
    pub known: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Entry<T> {
    valid: T,
    pc: T,
    /// 1 or 2 bits.
    history: T,
}

/// The table of a shape.
pub fn capt(s: &Shape) -> TypedModule<CaptIn<Width>, CaptOut<Signal>> {
    module("capt", CaptIn::shape(s), |m, i| described(m, s, i).0)
}

/// The table, and its entries.
fn described(m: Builder, s: &Shape, i: CaptIn<Signal>) -> (CaptOut<Signal>, Vec<Entry<Signal>>) {
    m.doc("Compaction-adequacy prediction table: fully associative, the latest used entry first.");
    let history = s.capt.history;
    let bits = if history == History::Counter { 2 } else { 1 };
    let entry = Entry { valid: 1, pc: s.pc_bits(), history: bits };
    let entries: Vec<_> = (0..s.capt.entries).map(|k| m.reg(&format!("entry_{k}"), entry).reset_zero()).collect();
    let learned: Vec<Entry<Signal>> = entries.iter().map(|entry| learn(&i, history, entry.q)).collect();
    wire!(hits = cat(&entries.iter().map(|entry| entry.q.valid & entry.q.pc.eq(i.asked)).collect::<Vec<_>>()));
    wire!(hit = hits.any());
    let says = |entry: Entry<Signal>| entry.history.msb();
    let found = select_one_hot(&entries.iter().map(|entry| entry.q).collect::<Vec<_>>(), hits);
    let fresh = Entry { valid: m.lit(1u32, 1), pc: i.asked, history: m.lit(Bits::from(1u32 << (bits - 1)), bits) };
    let front = hit.mux(select_one_hot(&learned, hits), fresh);
    let mut earlier = m.lit(0u32, 1);
    for (k, entry) in entries.iter().enumerate() {
        // Up to the place of the entry that moves to the front, all move back by one.
        let moves = i.asks & !earlier;
        let before = if k == 0 { front } else { learned[k - 1] };
        let next = moves.mux(before, learned[k]);
        entry.next(Entry { valid: next.valid & !i.clear, ..next });
        earlier = earlier | hits.bit(k as u32);
    }
    m.assert("a_branch_has_one_entry", hits.eq(hits.lowest_one()));
    m.cover("is_known", i.asks & hit);
    m.cover("comes", i.asks & !hit);
    m.cover("forgets", i.asks & !hit & entries[entries.len() - 1].q.valid);
    m.cover("is_inadequate", i.asks & hit & !says(found));
    (CaptOut { adequate: !hit | says(found), known: hit }, entries.iter().map(|entry| entry.q).collect())
}

/// An entry after what is learned in this cycle.
fn learn(i: &CaptIn<Signal>, history: History, entry: Entry<Signal>) -> Entry<Signal> {
    let learns = i.learns & entry.valid & entry.pc.eq(i.learned);
    let old = entry.history;
    let new = match history {
        History::Latest => i.was_adequate,
        History::Sticky => old,
        History::Counter => {
            let (up, down) = (old.all().mux(old, old + 1), old.any().mux(old - 1, old));
            i.was_adequate.mux(up, down)
        }
    };
    Entry { history: learns.mux(new, old), ..entry }
}

pub mod proof;
#[cfg(test)]
mod tests;

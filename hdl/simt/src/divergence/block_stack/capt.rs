//! The compaction-adequacy prediction table (CAPT): whether forming new warps at a branch was worth waiting for, so far.
//!
//! `capri.txt` §3.1: fully associative, the tag is the branch's pc. Entries are in the order of their last use, the latest first: an entry
//! that is used or comes moves to the front, and what is last when one comes is forgotten. A branch without an entry is
//! adequate.
//!
//! | event | what follows |
//! |---|---|
//! | a warp parts at a branch (`asks`) | its entry is used, or one comes, which says adequate |
//! | new warps were formed behind a branch (`learns`) | its entry, if there is one, learns whether that was adequate |
//!
//! What an entry says: under [`History::Latest`] what it learned last; under [`History::Sticky`] adequate, since a warp has parted;
//! under [`History::Counter`] the upper half of a saturating counter of 2 bits, which begins as 2.

use crate::shape::{History, Shape};
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CaptIn<T> {
    /// 1 bit: all is forgotten.
    pub clear: T,
    /// 1 bit: a warp has parted at `asked`, an instruction number; else the answer is for whoever looks.
    pub asks: T,
    pub asked: T,
    /// 1 bit: what the branch at `learned` did was adequate, or was not.
    pub learns: T,
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

impl CaptIn<Width> {
    pub fn shape(s: &Shape) -> CaptIn<Width> {
        let pc = s.pc_bits();
        CaptIn { clear: 1, asks: 1, asked: pc, learns: 1, learned: pc, was_adequate: 1 }
    }
}

/// The table of a shape.
pub fn capt(s: &Shape) -> TypedModule<CaptIn<Width>, CaptOut<Signal>> {
    module("capt", CaptIn::shape(s), |m, i| {
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
        CaptOut { adequate: !hit | says(found), known: hit }
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Capt;
    use heddle_sim::Sim;

    /// The table as a list, the latest used first.
    struct Model {
        entries: Vec<(u32, u32)>,
        capt: Capt,
    }

    impl Model {
        fn says(&self, pc: u32) -> bool {
            let top = if self.capt.history == History::Counter { 2 } else { 1 };
            self.entries.iter().find(|(tag, _)| *tag == pc).is_none_or(|(_, history)| history >= &top)
        }

        fn learn(&mut self, pc: u32, adequate: bool) {
            for (_, history) in self.entries.iter_mut().filter(|(tag, _)| *tag == pc) {
                *history = match self.capt.history {
                    History::Latest => u32::from(adequate),
                    History::Sticky => *history,
                    History::Counter if adequate => (*history + 1).min(3),
                    History::Counter => history.saturating_sub(1),
                };
            }
        }

        fn ask(&mut self, pc: u32) {
            let first = if self.capt.history == History::Counter { 2 } else { 1 };
            let at = self.entries.iter().position(|(tag, _)| *tag == pc);
            let entry = at.map_or((pc, first), |at| self.entries.remove(at));
            self.entries.insert(0, entry);
            self.entries.truncate(self.capt.entries as usize);
        }
    }

    #[test]
    fn a_list_in_the_order_of_use() {
        for (seed, entries) in [1, 2, 3, 8, 32].into_iter().enumerate() {
            for &(name, history) in History::ALL {
                println!("{entries} entries, {name}, seed {seed}");
                let capt = Capt { entries, history };
                let s = Shape { capt, ..Shape::new(2, 2) };
                let mut r = fastrand::Rng::with_seed(seed as u64);
                let mut t = Sim::new(&super::capt(&s).check().unwrap());
                t.reset();
                let mut model = Model { entries: vec![], capt };
                let branches = entries + 1 + entries / 4;
                for _ in 0..2000 {
                    let (asked, learned) = (r.u32(..branches), r.u32(..branches));
                    let (asks, learns, adequate, clear) = (r.bool(), r.bool(), r.bool(), r.u8(..) == 0);
                    t.poke(CaptIn {
                        clear: clear.into(),
                        asks: asks.into(),
                        asked: asked.into(),
                        learns: learns.into(),
                        learned: learned.into(),
                        was_adequate: adequate.into(),
                    });
                    let out = t.peek();
                    assert_eq!(out.adequate == 1, model.says(asked), "{asked} in {:?}", model.entries);
                    assert_eq!(out.known == 1, model.entries.iter().any(|(tag, _)| *tag == asked));
                    t.step();
                    if learns {
                        model.learn(learned, adequate);
                    }
                    if asks {
                        model.ask(asked);
                    }
                    if clear {
                        model.entries.clear();
                    }
                }
            }
        }
    }
}

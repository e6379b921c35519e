//! The table against a list in the order of use, with random branches.

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
            let mut model = Model { entries: vec![], capt };
            let branches = entries + 1 + entries / 4;
            for cycle in 0..2000 {
                if cycle % 500 == 0 {
                    t.reset();
                    model.entries.clear();
                }
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

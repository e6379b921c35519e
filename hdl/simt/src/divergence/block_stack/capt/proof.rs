//! What the table knows, whatever comes: one branch is followed, any of them. It has an entry exactly if a warp has
//! parted there, and fewer other branches than there are entries since; the entry lies behind those of these others.

use super::{CaptIn, CaptOut, Entry, described, learn};
use crate::proof::{cover, held, implies};
use crate::shape::{History, Shape};
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ProofIn<T> {
    pub capt: CaptIn<T>,
    /// The branch that is followed.
    #[width(s.pc_bits())]
    pub pc: T,
}

/// The table with all inputs.
pub fn capt_proof(s: &Shape) -> TypedModule<ProofIn<Width>, CaptOut<Signal>> {
    module("capt_proof", ProofIn::shape(s), |m, i| {
        let branches = 1 << s.pc_bits();
        let (out, entries) = described(m, s, i.capt);
        let pc = held(m, "pc_followed", i.pc);
        let is_it = |entry: &Entry<Signal>| entry.valid & entry.pc.eq(pc);

        // Branches that were asked for since this one was, and what this one has learned.
        let others = m.reg("others", branches).reset(0u32);
        let asked = m.reg("asked_since_clear", 1).reset(0u32);
        wire!(asks = i.capt.asks & i.capt.asked.eq(pc));
        asked.next((asked.q | asks) & !i.capt.clear);
        let other = i.capt.asked.decode(branches).only_if(i.capt.asks);
        others.next((others.q | other).only_if(!asks));
        wire!(known = asked.q & others.q.count_ones().lt(s.capt.entries));
        let bits = entries[0].history.width();
        let history = m.reg("history", bits).reset(0u32);
        let learned = learn(&i.capt, s.capt.history, Entry { valid: known, pc, history: history.q });
        let fresh = m.lit(if bits == 2 { 2u32 } else { 1u32 }, bits);
        history.next((asks & !known).mux(fresh, learned.history));

        for (k, entry) in entries.iter().enumerate() {
            let holds = |what: &str, holds: Signal| m.assert(&format!("entry_{k}_{what}"), holds);
            let before = &entries[..k];
            let twice: Vec<Signal> = before.iter().map(|other| other.valid & other.pc.eq(entry.pc)).collect();
            if let Some(last) = before.last() {
                holds("leaves_no_gap", implies(entry.valid, last.valid));
                holds("is_the_only_one", implies(entry.valid, !cat(&twice).any()));
            }
            let later = before.iter().map(|other| other.pc.decode(branches)).reduce(|a, b| a | b);
            let later = later.unwrap_or(m.lit(0u32, branches));
            holds("is_behind_what_was_used_later", implies(is_it(entry), known & others.q.eq(later)));
            holds("learns", implies(is_it(entry), entry.history.eq(history.q)));
        }
        let has_entry = cat(&entries.iter().map(is_it).collect::<Vec<_>>()).any();
        m.assert("known_has_an_entry", known.eq(has_entry));
        m.assert("it_is_not_among_the_others", !others.q.select(pc, 1));
        wire!(looks = i.capt.asked.eq(pc));
        m.assert("says_whether_it_knows", implies(looks, out.known.eq(known)));
        m.assert("says_what_was_learned", implies(looks, out.adequate.eq(!known | history.q.msb())));
        if s.capt.history == History::Sticky {
            m.assert("stays_adequate", implies(known, history.q.msb()) & implies(looks, out.adequate));
        } else {
            cover(m, "inadequate", looks & !out.adequate);
        }
        cover(m, "forgotten", asked.q & !known);
        cover(m, "last_entry", is_it(&entries[entries.len() - 1]));
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::Capt;

    #[test]
    fn holds_at_random_inputs() {
        for entries in [1, 2] {
            for &(_, history) in History::ALL {
                let s = Shape { program: 16, capt: Capt { entries, history }, ..Shape::new(2, 2) };
                holds_at_random(&capt_proof(&s).check().unwrap().netlist, 5000);
            }
        }
    }
}

//! New warps out of a block's threads, one a cycle.

use super::super::levels::Top;
use super::act::Acting;
use super::compactor::{CompactorIn, CompactorOut, compactor};
use super::state::{Formed, Mixing, Store, Warp};
use crate::shape::Compaction;
use heddle_hdl::prelude::*;

/// The warp that is formed in this cycle, if any is.
pub struct Forming {
    /// 1 bit.
    pub valid: Signal,
    /// 1 bit: it is a static warp.
    pub fixed: Signal,
    /// Its slot, its threads, and where they are.
    pub into: Signal,
    pub warp: Warp<Signal>,
    pub top: Top<Signal>,
    /// One bit per thread: it is still to be formed into a warp.
    pub threads: Signal,
}

impl Store {
    /// Forms the next warp where it `forms`; what the stack is done with comes next.
    pub fn form(&self, forms: Signal, acting: &Acting, quiet: Signal) -> Forming {
        let Store { m, s, formed, running, .. } = self;
        let m = *m;
        let Formed { valid, fixed, block, top } = formed.q;
        let compacted = m.instance("compactor", &compactor(s), CompactorIn { threads: top.mask, fixed });
        let CompactorOut { mask, homes, left, first, mixes } = compacted;
        wire!(last = forms & !left.any());
        // A slot whose warp has arrived since may still owe a write.
        let unused = self.slots_of(block) & !running.q & !self.arrived.q;
        wire!(into = fixed.mux(first, unused.lowest_one().one_hot_index()));
        let again = Formed { valid: !last, top: Top { mask: left, ..top }, ..formed.q };

        let Acting { due, acts, forms: forms_next, comes, .. } = acting;
        let off = m.lit(s.compaction == Compaction::Off, 1);
        let to_form = comes.mask & !self.ahead_threads();
        let static_again = comes.mask.eq(due.live);
        let next_top = Top { mask: to_form, ..*comes };
        let some = *forms_next & to_form.any();
        let new = Formed { valid: some, fixed: off | static_again, block: due.at, top: next_top };
        formed.next_if(forms | *acts, forms.mux(again, new));

        // A static warp knows the homes of writes of lanes that it is formed without, too.
        let homes = homes.map(|homes| fixed.mux(into.repeat(s.lanes), homes));
        if let Some(Mixing { regrouped, .. }) = &self.mixing {
            let owes = unused & !quiet;
            m.assert(
                "no_thread_leaves_a_write_behind",
                !forms | !(owes & (regrouped.q | (!fixed).repeat(s.warps))).any(),
            );
        }
        m.assert("a_warp_is_formed_in_its_block", !forms | self.block_of(into).eq(block));
        m.assert("formed_threads_are_live", !(top.mask & !self.live.q).any() | !valid);
        m.cover("warps_are_static_again", *forms_next & new.fixed & due.pops);
        if s.warps > 1 {
            m.cover("warps_are_mixed", forms & !fixed & mixes);
        }
        m.probe("forms", forms);
        Forming { valid: forms, fixed, into, warp: Warp { mask, homes }, top, threads: top.mask.only_if(valid) }
    }
}

//! Time, by outcomes of a warp whose threads wait: who has waited long, and which path gives way.

use super::TableIn;
use super::state::Store;
use super::warden::Visit;
use heddle_hdl::prelude::*;

/// Outcomes that a path has before it gives way, where another one has.
pub const BRIEF: u32 = 16;

impl Store {
    /// Notes who ends, and which warps the warden must look at for it.
    pub fn end_threads(&self, i: &TableIn<Signal>, visit: &Visit) {
        let Store { s, alive, exited, .. } = self;
        let outcome_at = i.outcome_slot.decode(s.warps);
        wire!(ends = i.outcome & i.ended.any());
        let remain = alive.read(i.outcome_slot) & !i.ended;
        alive.write(ends | i.start, i.start.mux(i.start_slot, i.outcome_slot), i.start.mux(i.start_mask, remain));
        let noted = visit.noted | self.started(i);
        exited.next((exited.q & !noted) | (outcome_at & self.holding.q).only_if(ends));
    }

    /// Counts outcomes. Returns, 1 bit each: the active path of the outcome's slot gives way; it does so now.
    pub fn give_way(&self, i: &TableIn<Signal>, visit: &Visit) -> (Signal, Signal) {
        let Store { m, s, ticked, holding, .. } = self;
        let outcome_at = i.outcome_slot.decode(s.warps);
        let start_at = self.started(i);
        let noted = visit.noted | start_at;
        let turn_at = i.turn_slot.decode(s.warps);
        let parted = m.reg("parted", s.warps).reset(0u32);
        wire!(stays_parted = (holding.q | parted.q.only_if(!i.alone)) & turn_at);
        parted.next_if(
            i.turn | i.start,
            (parted.q & !turn_at.only_if(i.turn) & !start_at) | stays_parted.only_if(i.turn),
        );
        let counter_bits = s.patience.ilog2();
        let counter = m.memory("ages", counter_bits, s.warp_bits()).style(MemoryStyle::Distributed);
        let passed = counter.read(i.outcome_slot) + 1;
        wire!(is_parted = (parted.q & outcome_at).any());
        counter.write(i.outcome, i.outcome_slot, passed.only_if(is_parted));
        wire!(tick = is_parted & passed.all());
        wire!(brief = is_parted & passed.slice(0, BRIEF.ilog2()).all());
        ticked.next((ticked.q & !noted) | (outcome_at & holding.q).only_if(i.outcome & tick));
        let gives = m.reg("yields", s.warps).reset(0u32);
        let others = m.reg("others_gave_way", s.warps).reset(0u32);
        wire!(gives_way = (gives.q & outcome_at).any() & is_parted);
        let gave = outcome_at.only_if(i.outcome & gives_way);
        let ended_round = turn_at.only_if(i.new_round);
        others.next((others.q | gave) & !ended_round & !start_at);
        wire!(brief_turn = ((others.q | gave) & outcome_at).any());
        let gives_next = outcome_at.only_if(tick | (brief & brief_turn));
        gives.next_if(
            i.outcome | i.start,
            (gives.q & !outcome_at.only_if(i.outcome) & !start_at) | gives_next.only_if(i.outcome),
        );
        m.cover("somebody_gives_way", gave.any());
        m.cover("somebody_gives_way_briefly", gave.any() & (others.q & outcome_at).any());
        (gives_way, gave.any())
    }

    /// One bit per warp: threads start in it.
    fn started(&self, i: &TableIn<Signal>) -> Signal {
        i.start_slot.decode(self.s.warps).only_if(i.start)
    }
}

//! Of warps whose threads wait: who ends, and who has waited long.

use super::TableIn;
use super::state::Store;
use super::warden::Visit;
use heddle_hdl::prelude::*;

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

    /// Notes where patience is over.
    pub fn tick(&self, i: &TableIn<Signal>, visit: &Visit) {
        let Store { s, ticked, holding, .. } = self;
        let outcome_at = i.outcome_slot.decode(s.warps);
        let noted = visit.noted | self.started(i);
        ticked.next((ticked.q & !noted) | (outcome_at & holding.q).only_if(i.outcome & i.tick));
    }

    /// One bit per warp: threads start in it.
    fn started(&self, i: &TableIn<Signal>) -> Signal {
        i.start_slot.decode(self.s.warps).only_if(i.start)
    }
}

//! The sorter: reads the next entry and compares the last but one.

use super::{CctIn, Read, Stacked, Table, Turn};
use heddle_hdl::prelude::*;

/// What it does in this cycle, 1 bit each unless stated.
#[derive(Clone, Copy)]
pub struct Sorted {
    /// Some warp is seeking; the slot is one that it does not pass over.
    pub any_seeking: Signal,
    pub goes_here: Signal,
    /// It reads an entry; its pass over the slot ends.
    pub more: Signal,
    pub ends: Signal,
    /// See [`super::CctOut`].
    pub sorts: Signal,
    pub swap: Signal,
    pub seen: Signal,
    /// The warp behind its own.
    pub next_warp: Signal,
}

impl Table {
    /// What the sorter does.
    pub fn sort(&self, i: &CctIn<Signal>, turn: &Turn, stack: &Stacked) -> Sorted {
        let Table { s, seeking, scan, index, scanned, compared, .. } = self;
        let &Turn { back, sort, waits, steps, at, .. } = turn;
        let &Stacked { count, grown, .. } = stack;
        let seekers = self.seekers();
        wire!(any_seeking = seekers.any());
        wire!(goes_here = !any_seeking | seekers.select(i.slot, 1));
        wire!(more = steps & i.has_y & index.q.lt(count) & goes_here);
        wire!(ends = steps & !more & !scanned.q.valid);
        // What is compared takes part in the sort before it is known whether the turn is used.
        // With convergence barriers that is also where a start takes the turn.
        let late_start = s.convergence_barriers > 0;
        let claimed = if late_start { i.sort } else { i.sort & !i.start };
        wire!(sorts = claimed & !i.stale & i.has_y & compared.q.valid);
        let swaps = sorts & i.before_y & !i.gives_way;
        wire!(swap = if late_start { swaps & !i.start } else { swaps });
        wire!(disturbed = (scanned.q.valid | compared.q.valid) & !sort);
        let from_bottom = index.q.literal(0u32);
        let again = compared.q.valid.mux(compared.q.at, scanned.q.at);
        wire!(seeks = (i.outcome | back) & i.x_waits & grown.any());
        index.next(pick([(more, index.q + 1), (ends | seeks, from_bottom), (disturbed, again)], index.q));
        scanned.next_if(!waits, Read { valid: more, at: index.q });
        compared.next_if(!waits, Read { valid: scanned.q.valid & sort, at: scanned.q.at });
        let next_warp = if s.warps > 1 { scan.q + 1 } else { scan.q };
        scan.next_if(ends, next_warp);
        if let Some(seeking) = seeking {
            wire!(found = ends | (steps & !i.x_waits));
            seeking.next_if(i.outcome | back | found, (seekers & !at) | at.only_if(seeks));
        }
        wire!(seen = ((i.outcome | back | i.start) & !grown.any()) | ends);
        Sorted { any_seeking, goes_here, more, ends, sorts, swap, seen, next_warp }
    }
}

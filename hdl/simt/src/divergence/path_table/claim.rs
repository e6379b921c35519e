//! Whose turn comes next, and what it will find in the tables.

use super::state::{Claim, Store, Words};
use super::turn::Turn;
use crate::divergence::{Announced, Start, Wake, depth_after};
use heddle_hdl::prelude::*;

/// Whose turn comes next.
#[derive(Clone, Copy)]
pub struct Next {
    pub slot: Signal,
    /// 1 bit: a wake would be taken, and one is.
    pub wake_ready: Signal,
    pub woken: Signal,
    /// 1 bit: the warden is somewhere.
    pub visits: Signal,
}

impl Store {
    /// Chooses it: an outcome that is announced, a return, a release, a wake, the sorter.
    pub fn claim_next(&self, announced: &Announced<Signal>, wake: &Wake<Signal>) -> Next {
        let Store { m, s, cold, .. } = self;
        wire!(unclaimed = !announced.valid & !cold.must.valid);
        let visits = self.barriers_or(m.lit(0u32, 1), |barriers| barriers.visits);
        wire!(wake_ready = unclaimed & !visits & m.lit(s.barriers, 1));
        wire!(woken = wake.valid & wake_ready);
        let mut claims = vec![(announced.valid, announced.slot), (cold.must.valid, cold.must.at)];
        claims.extend(self.barriers.map(|barriers| (visits, barriers.release.slot)));
        claims.extend(s.barriers.then_some((wake.valid, wake.slot)));
        wire!(next_slot = pick(claims, cold.next));
        self.claim.next(Claim {
            slot: next_slot,
            outcome: announced.valid,
            release: unclaimed & visits,
            wake: woken,
            sort: unclaimed & !visits & !woken & cold.next_sorts,
        });
        Next { slot: next_slot, wake_ready, woken, visits }
    }

    /// Reads the tables for it: what they hold before this cycle's write, if `changes`, to the slot of the turn.
    pub fn read_next(&self, next: &Next, turn: &Turn, announced: &Announced<Signal>, changes: Signal) {
        self.stale.next(changes & turn.slot.eq(next.slot));
        let hct0 = self.hct0.read(next.slot);
        let Announced { valid, call, ret, .. } = *announced;
        let counts = |change: Signal| valid & change & self.m.lit(self.s.order.counts_calls(), 1);
        self.words.next(Words {
            live: self.live.q.select(next.slot, 1),
            phase: self.phases.as_ref().map(|phases| phases.read(next.slot)),
            round: self.rounds.as_ref().map(|rounds| rounds.read(next.slot)),
            hct0,
            after: depth_after(counts(call), counts(ret), self.call_depth(hct0.depth)),
            hct1: self.hct1.as_ref().map(|hct1| hct1.read(next.slot)),
        });
    }

    /// What waits for a turn, so that outcomes are to be put off, but for paths that return: a start, a wake, a release.
    pub fn put_off(&self, next: &Next, turn: &Turn, start: &Start<Signal>, wake: &Wake<Signal>) -> Signal {
        let wake_waits = wake.valid & !next.wake_ready & self.m.lit(self.s.barriers, 1);
        let host_waits = (start.valid & !turn.start_ready) | wake_waits;
        wire!(put_off = self.barriers_or(host_waits, |barriers| host_waits | barriers.put_off));
        put_off
    }
}

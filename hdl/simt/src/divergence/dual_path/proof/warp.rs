//! A warp's state, and its levels from the top down.

use super::super::forwarding::{Before, Forwarded};
use super::super::state::{Level, Top};
use super::super::{Inside, levels};
use crate::divergence::levels::{Rpc, Sibling};
use crate::divergence::warp_of;
use crate::proof::implies;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// The front end of a slot.
#[derive(Clone, Copy)]
pub struct Slot {
    /// It has been steered, and neither had an outcome nor been flushed since.
    pub runs: Signal,
    /// Something has issued since.
    pub issued: Signal,
    /// Of the next instruction.
    pub pc: Signal,
    /// Something issues in this cycle.
    pub issues: Signal,
}

/// A warp's state.
pub struct Warp {
    pub number: u32,
    pub live: Signal,
    pub waiting: Signal,
    /// It was woken in the cycle before.
    pub woken: Signal,
    pub popping: Signal,
    pub refused: Signal,
    pub threads: Signal,
    pub top: Top<Signal>,
    /// Left and right; one bit each.
    pub active: Signal,
    pub owed: Signal,
    pub slots: [Slot; 2],
    pub count: Signal,
    /// From the lowest.
    pub levels: Vec<Held>,
    /// With path forwarding: it lends, and a turn for that is chosen.
    pub lends: Option<[Signal; 2]>,
}

/// A level of a warp.
pub struct Held {
    /// It is one of `count`.
    pub valid: Signal,
    pub level: Level<Signal>,
    pub above: Above,
    /// Its sibling, if it has not been forwarded.
    pub sibling: Signal,
}

/// A warp above a level: as it is, or as it will be when the levels in between have been popped.
#[derive(Clone, Copy)]
pub struct Above {
    /// The threads that come from the level's group, where they reconverge, and both sides of them, each with the
    /// siblings of levels between that have no group.
    pub threads: Signal,
    pub rpc: Rpc<Signal>,
    pub parts: [Signal; 2],
    /// What became of the level's sibling, and its threads if it came up.
    pub taken: Signal,
    pub forwarded: Signal,
    pub forwarded_rpc: Rpc<Signal>,
}

/// The warp of this number.
pub fn warp(m: Builder, s: &Shape, number: u32, refused: Signal, slots: &[Slot], inside: &Inside) -> Warp {
    let at = m.lit(number, s.warp_bits());
    let no = m.lit(0u32, 1);
    let of_claim = warp_of(s, inside.store.claim.q.slot).eq(at);
    let (top, count) = (inside.store.tops.read(at), inside.store.counts.read(at));
    let of_sides = |is: &dyn Fn(Signal) -> Signal| {
        let (left, right) = (m.lit(0u32, 1), m.lit(1u32, 1));
        [threads_of(top.left).only_if(is(left)), threads_of(top.right).only_if(is(right))]
    };
    let forwarded = top.forwarded.unwrap_or(no_forwarded(top.rpc));
    let parts = of_sides(&|right| !forwarded.is(right));
    let mut above = Above {
        threads: parts[0] | parts[1],
        rpc: top.rpc,
        parts,
        taken: forwarded.taken,
        forwarded: of_sides(&|right| forwarded.is(right)).into_iter().reduce(|a, b| a | b).expect("two sides"),
        forwarded_rpc: forwarded.rpc,
    };
    let entry_bits = index_width(levels(s));
    let mut held = Vec::new();
    for k in (0..levels(s)).rev() {
        let entry = m.lit(number << entry_bits | k, entry_bits + s.warps.ilog2());
        let valid = count.gt(k);
        let level = inside.store.levels.as_ref().expect("it has levels").read(entry);
        let pushed = inside.popped.pushed.expect("it has levels");
        let level = (pushed.valid & pushed.address.eq(entry)).mux(pushed.level, level);
        let sibling = threads_of(level.sibling).only_if(!above.taken);
        held.push(Held { valid, level, above, sibling });
        above = above.below(valid, level, sibling);
    }
    let first = 2 * number as usize;
    let warp = Warp {
        number,
        live: inside.store.live.q.bit(number),
        waiting: inside.updated.waiting.bit(number),
        woken: inside.store.claim.q.wake & of_claim,
        popping: inside.store.popping.q.bit(number),
        refused: refused.bit(number),
        threads: inside.store.threads.read(at),
        top,
        active: inside.store.active.q.slice(2 * number, 2),
        owed: inside.store.owed.q.slice(2 * number, 2),
        slots: [slots[first], slots[first + 1]],
        count,
        levels: held.into_iter().rev().collect(),
        lends: inside
            .store
            .lends
            .as_ref()
            .map(|lends| [lends.q.bit(number), of_claim & inside.store.claim.q.take.unwrap_or(no)]),
    };
    let all = |what: &str, holds: Signal| m.assert(&warp.name(what), implies(warp.runs(), holds));
    all("lowest_has_all", is_within(warp.threads, above.threads));
    all("lowest_meets_nobody", !above.rpc.valid);
    all("lowest_forwards_nobody", !above.forwarded.any());
    if top.forwarded.is_some() {
        all("lowest_has_no_sibling", above.taken);
    }
    all("has_its_threads", warp.threads.eq(inside.ghost_live.read(at)));
    warp
}

impl Above {
    /// The warp below a level, if that is one of its levels.
    fn below(self, valid: Signal, level: Level<Signal>, sibling: Signal) -> Above {
        let Level { group, before, .. } = level;
        let sibling = sibling | self.forwarded;
        let none = sibling.only_if(valid.literal(0u32));
        let (normal, forwarded, before) = match before {
            None => (sibling, none, no_before(valid)),
            Some(before) => (sibling.only_if(!before.sibling), sibling.only_if(before.sibling), before),
        };
        let parts = [group.mask.only_if(!before.group), normal];
        let parts = group.valid.mux(parts, self.parts.map(|part| part | normal));
        let (mine, others) = match level.before {
            None => (group.rpc, self.forwarded_rpc),
            Some(before) => {
                let (of_sibling, other) = (self.forwarded_rpc, group.rpc);
                (before.sibling.mux(other, of_sibling), before.sibling.mux(of_sibling, other))
            }
        };
        let below = Above {
            threads: group.valid.mux(parts[0] | parts[1], self.threads | normal),
            rpc: group.valid.mux(mine, self.rpc),
            parts,
            taken: before.taken,
            forwarded: before.group.mux(group.mask, forwarded),
            forwarded_rpc: others,
        };
        let Above { threads, rpc, parts, taken, forwarded, forwarded_rpc } = self;
        Above {
            threads: valid.mux(below.threads, threads),
            rpc: valid.mux(below.rpc, rpc),
            parts: valid.mux(below.parts, parts),
            taken: valid.mux(below.taken, taken),
            forwarded: valid.mux(below.forwarded, forwarded),
            forwarded_rpc: valid.mux(below.forwarded_rpc, forwarded_rpc),
        }
    }
}

pub fn no_forwarded(rpc: Rpc<Signal>) -> Forwarded<Signal> {
    let no = rpc.valid.literal(0u32);
    Forwarded { taken: no, valid: no, right: no, rpc }
}

fn no_before(any: Signal) -> Before<Signal> {
    let no = any.literal(0u32);
    Before { taken: no, group: no, sibling: no }
}

impl Warp {
    pub fn name(&self, what: &str) -> String {
        format!("warp_{}_{what}", self.number)
    }

    pub fn runs(&self) -> Signal {
        self.live & !self.refused
    }

    /// It waits until it is woken.
    pub fn waits(&self) -> Signal {
        self.waiting & !self.woken
    }

    pub fn is(&self, warp: Signal) -> Signal {
        warp.eq(warp.literal(self.number))
    }

    pub fn sides(&self) -> [(Sibling<Signal>, Slot); 2] {
        [(self.top.left, self.slots[0]), (self.top.right, self.slots[1])]
    }
}

pub fn threads_of(path: Sibling<Signal>) -> Signal {
    path.mask.only_if(path.valid)
}

pub fn is_within(part: Signal, whole: Signal) -> Signal {
    !(part & !whole).any()
}

//! The tags of all ways, what else a set remembers, and the sweep that forgets everything.

use super::geometry::{Geometry, Parts};
use crate::shape::Cache;
use heddle_hdl::{all, each, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct WayIn<T> {
    set: T,
    tag: T,
    /// The set's line in this way becomes the one with this tag.
    replace: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct WayOut<T> {
    same: T,
}

/// The tags of one way.
fn way(g: &Geometry) -> TypedModule<WayIn<Width>, WayOut<Signal>> {
    module("cache_way", WayIn { set: g.set.max(1), tag: g.tag, replace: 1 }, |m, WayIn { set, tag, replace }| {
        m.doc("The tags of one way of the cache.");
        let tags = m.memory("tags", g.tag, g.set.max(1)).style(MemoryStyle::Distributed);
        tags.write(replace, set, tag);
        WayOut { same: tags.read(set).eq(tag) }
    })
}

/// What a set remembers beside its tags.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SetState<T> {
    /// One bit a way.
    pub valid: T,
    /// The way that is replaced next.
    pub oldest: T,
}

/// What the tags say of the request that is first.
pub struct Tags {
    m: Builder,
    /// 1 bit: it begins a miss, so the victim becomes its line.
    pub begins: Deferred<Signal>,
    sets: Mem<SetState<Width>>,
    /// Its set.
    pub state: SetState<Signal>,
    /// One bit a way: the one that is replaced next; the one that it hits.
    pub victim: Signal,
    pub hits: Signal,
    /// 1 bit: the lines are being forgotten.
    pub sweeping: Reg<Signal>,
}

impl Tags {
    /// Of a request to these parts.
    pub fn look(m: Builder, c: &Cache, g: &Geometry, parts: Parts<Signal>) -> Tags {
        let begins = m.deferred("begins", 1);
        let sets_shape = SetState { valid: c.ways, oldest: index_width(c.ways) };
        let sets = m.memory("sets", sets_shape, g.set.max(1)).style(MemoryStyle::Distributed);
        let state = sets.read(parts.set);
        wire!(victim = state.oldest.decode(c.ways));
        let inputs = WayIn { set: all(parts.set), tag: all(parts.tag), replace: each(victim.only_if(begins.value)) };
        let ways = m.replicate("way", c.ways, &way(g), inputs);
        wire!(hits = ways.same & state.valid);
        let sweeping = m.reg("sweeping", 1).reset(1u32);
        m.assert("a_line_is_in_one_way", sweeping.q | !(hits & !hits.lowest_one()).any());
        Tags { m, begins, sets, state, victim, hits, sweeping }
    }

    /// A set changes when a miss begins; at a launch, one after the other.
    pub fn update(&self, c: &Cache, g: &Geometry, restart: Signal, parts: Parts<Signal>) {
        let Tags { m, state, victim, sweeping, .. } = self;
        let sweep = m.reg("sweep", g.set.max(1)).reset(0u32);
        wire!(swept = sweep.q.eq((1u32 << g.set) - 1));
        sweep.next_if(sweeping.q, swept.mux(sweep.q.literal(0u32), sweep.q + 1));
        sweeping.next(restart | (sweeping.q & !swept));
        let next_way = if c.ways > 1 { state.oldest + 1 } else { state.oldest };
        let changed = SetState { valid: state.valid | *victim, oldest: next_way };
        let set = sweeping.q.mux(sweep.q, parts.set);
        self.sets.write(sweeping.q | self.begins.value, set, changed.only_if(!sweeping.q));
    }
}

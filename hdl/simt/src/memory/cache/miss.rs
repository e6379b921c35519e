//! The misses under way: which cache line each is for, the beats that it lacks, and how many requests wait for it.

use super::WAITING;
use super::geometry::{Geometry, Parts};
use crate::shape::Cache;
use heddle_hdl::{all, each, elements, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct MissIn<T> {
    /// What first asks for.
    set: T,
    tag: T,
    /// It begins this miss, in this way.
    allocate: T,
    way: T,
    /// It, or the request that began the miss, waits for it.
    push: T,
    /// A beat comes.
    beat: T,
    /// The request that has waited longest goes on.
    pop: T,
}

/// Where the line of a miss goes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Held<T> {
    pub tag: T,
    pub set: T,
    pub way: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MissOut<T> {
    pub busy: T,
    /// First asks for this miss's cache line.
    pub same: T,
    /// Of first's set, the way that this miss will fill; one bit a way.
    pub reserved: T,
    pub held: Held<T>,
    /// All beats have come.
    pub filled: T,
    /// Another request may wait, and its place.
    pub room: T,
    pub free_place: T,
    /// The place of the one that has waited longest.
    pub head: T,
}

/// A miss under way.
fn miss(g: &Geometry, c: &Cache) -> TypedModule<MissIn<Width>, MissOut<Signal>> {
    let inputs =
        MissIn { set: g.set.max(1), tag: g.tag, allocate: 1, way: index_width(c.ways), push: 1, beat: 1, pop: 1 };
    module("cache_miss", inputs, |m, i| {
        m.doc("A miss of the cache under way.");
        let held = m.pipe_if("held", i.allocate, Held { tag: i.tag, set: i.set, way: i.way });
        let count = m.reg("count", count_width(WAITING)).reset(0u32);
        let head = m.reg("head", index_width(WAITING)).reset(0u32);
        let missing = m.reg("missing", count_width(c.line)).reset(0u32);
        count.next(count.q + i.push.zext(count.q.width()) - i.pop.zext(count.q.width()));
        head.next_if(i.pop, head.q + 1);
        missing.next_if(i.allocate | i.beat, i.allocate.mux(missing.q.literal(c.line), missing.q - 1));
        wire!(busy = count.q.any());
        wire!(filled = busy & !missing.q.any());
        m.assert("allocated_when_free", !i.allocate | (!busy & i.push));
        m.assert("joined_when_there_is_room", !i.push | !count.q.eq(WAITING));
        m.assert("popped_when_filled", !i.pop | filled);
        m.assert("a_beat_comes_when_one_is_missing", !i.beat | (busy & missing.q.any()));
        m.assert("nothing_is_missing_without_a_miss", busy | !missing.q.any());
        let here = busy & held.set.eq(i.set);
        MissOut {
            busy,
            same: here & held.tag.eq(i.tag),
            reserved: held.way.decode(c.ways).only_if(here),
            held,
            filled,
            room: !count.q.eq(WAITING),
            free_place: head.q + count.q.slice(0, head.q.width()),
            head: head.q,
        }
    })
}

/// All of them, and what the request that is first finds: a bit a miss, unless stated.
pub struct Misses {
    pub all: MissOut<Signal>,
    /// One that is free.
    pub free: Signal,
    /// 1 bit: the way that would be replaced waits for the line of a miss.
    pub victim_reserved: Signal,
    /// Each begins; has one more request that waits; one less; gets a beat.
    pub allocates: Deferred<Signal>,
    pub pushes: Deferred<Signal>,
    pub pops: Deferred<Signal>,
    pub beats: Deferred<Signal>,
}

impl Misses {
    /// Of a request to these parts, whose set replaces the way `oldest`, one-hot `victim`, next.
    pub fn look(
        m: Builder,
        c: &Cache,
        g: &Geometry,
        parts: Parts<Signal>,
        (oldest, victim): (Signal, Signal),
    ) -> Misses {
        let [allocates, pushes, pops, beats] =
            ["allocates", "pushes", "pops", "beats"].map(|name| m.deferred(name, c.misses));
        let inputs = MissIn {
            set: all(parts.set),
            tag: all(parts.tag),
            way: all(oldest),
            allocate: each(allocates.value),
            push: each(pushes.value),
            beat: each(beats.value),
            pop: each(pops.value),
        };
        let misses = m.replicate("miss", c.misses, &miss(g, c), inputs);
        wire!(free_miss = (!misses.busy).lowest_one());
        let reserved = elements(misses.reserved, c.ways).into_iter().reduce(|a, b| a | b).unwrap_or(victim);
        wire!(victim_reserved = (reserved & victim).any());
        m.assert("a_line_has_one_miss", !(misses.same & !misses.same.lowest_one()).any());
        Misses { all: misses, free: free_miss, victim_reserved, allocates, pushes, pops, beats }
    }
}

//! What each set of the second level holds: the lines of its ways, which of them were written, and which was used last.
//!
//! Ages are ranks: 0 for the way that was used last, one more for the one before … The way with the greatest is replaced,
//! so ways without a line come first. A set that no request has come to since the launch is empty, whatever its words
//! say; one bit a set remembers that, so a launch need not empty one set after the other.

use super::super::cache::geometry::{Geometry, Parts};
use crate::shape::Cache;
use heddle_hdl::{elements, prelude::*, select_one_hot};

/// What a set remembers.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Ways<T> {
    /// The tag of each way.
    tags: T,
    /// One bit a way: it has a line; the line was written.
    valid: T,
    dirty: T,
    /// The rank of each way.
    ages: T,
}

/// What the tags say of a request.
pub struct Tags {
    sets: Mem<Ways<Width>>,
    touched: Reg<Signal>,
    parts: Parts<Signal>,
    state: Ways<Signal>,
    /// One bit a way: it has the line, or the line is on its way there.
    pub hits: Signal,
    /// One bit a way: the least recently used one.
    pub victim: Signal,
    /// 1 bit: the victim's line was written.
    pub writes_back: Signal,
}

/// A request is taken.
pub struct Use {
    pub taken: Signal,
    /// The line is in no way: it gets the victim.
    pub missed: Signal,
    pub writes: Signal,
}

impl Tags {
    /// Of a request to these parts.
    pub fn look(m: Builder, c: &Cache, g: &Geometry, parts: Parts<Signal>) -> Tags {
        let (ways, age) = (c.ways, index_width(c.ways));
        let shape = Ways { tags: ways * g.tag, valid: ways, dirty: ways, ages: ways * age };
        let sets = m.memory("sets", shape, g.set.max(1)).style(MemoryStyle::Distributed);
        let touched = m.reg("touched", 1 << g.set.max(1)).reset(0u32);
        let ranks: Vec<Signal> = (0..ways).map(|way| m.lit(way, age)).collect();
        let none = m.lit(0u32, ways);
        let empty = Ways { tags: m.lit(0u32, ways * g.tag), valid: none, dirty: none, ages: cat(&ranks) };
        wire!(state = touched.q.select(parts.set, 1).mux(sets.read(parts.set), empty));
        let of_ways = |packed, width, has: &dyn Fn(Signal) -> Signal| {
            cat(&elements(packed, width).into_iter().map(has).collect::<Vec<_>>())
        };
        wire!(same = of_ways(state.tags, g.tag, &|tag| tag.eq(parts.tag)));
        wire!(hits = same & state.valid);
        wire!(victim = of_ways(state.ages, age, &|rank| rank.eq(ways - 1)));
        let one = |ways: Signal| !(ways & !ways.lowest_one()).any();
        m.assert("a_line_is_in_one_way", one(hits));
        m.assert("one_way_is_the_oldest", one(victim) & victim.any());
        m.assert("what_was_written_is_there", !(state.dirty & !state.valid).any());
        let writes_back = (state.dirty & victim).any();
        Tags { sets, touched, parts, state, hits, victim, writes_back }
    }

    /// At a launch, nothing is there.
    pub fn update(&self, c: &Cache, g: &Geometry, restart: Signal, of: Use) {
        let Tags { touched, parts, state, .. } = self;
        wire!(replaced = self.victim.only_if(of.missed));
        wire!(used = of.missed.mux(self.victim, self.hits));
        let bits = |packed| elements(packed, 1);
        let tags = elements(state.tags, g.tag).into_iter().zip(bits(replaced));
        let tags: Vec<Signal> = tags.map(|(tag, replaced)| replaced.mux(parts.tag, tag)).collect();
        let ages = elements(state.ages, index_width(c.ways));
        let rank_of_used = select_one_hot(&ages, used);
        let aged = |(rank, used): (Signal, Signal)| {
            let older = rank.lt(rank_of_used).mux(rank + 1, rank);
            used.mux(rank.literal(0u32), older)
        };
        let ages: Vec<Signal> = ages.into_iter().zip(bits(used)).map(aged).collect();
        let changed = Ways {
            tags: cat(&tags),
            valid: state.valid | used,
            dirty: (state.dirty & !replaced) | used.only_if(of.writes),
            ages: cat(&ages),
        };
        self.sets.write(of.taken, parts.set, changed);
        let with_this = touched.q | parts.set.decode(touched.q.width());
        touched.next_if(restart | of.taken, restart.mux(touched.q.literal(0u32), with_this));
    }
}

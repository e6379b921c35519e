//! Second-level cache and the channel behind it, before the [model](super::model) of memory: time only, for simulation.
//!
//! All data are in the model's banks, where a request takes effect when it is taken; what is here says when its response
//! is due. So no order of misses and write-backs can make data wrong, and lock-step, the commit check and the host see
//! the same memory as without it. A *cache line* is some memory lines (of `lanes` words).
//!
//! A request a cycle looks at the tags in the cycle in which it is taken:
//!
//! | it is | its response is due | the channel is asked for |
//! |---|---|---|
//! | a hit | after `latency` cycles | |
//! | to a line that is under way | when the line is there, after `latency` cycles at the least | |
//! | a store of all of a line, a miss | (stores have none) | the old line, if it was written |
//! | another miss | when the line is there: after `latency` cycles, the wait for the channel, and memory's latency | the line, and behind it the old one, if it was written |
//!
//! The channel carries a memory line every `interval` cycles of the model; a cache line is there when its last memory
//! line is. What finds no room is not taken, and holds up those behind it: a miss when all are under way, one whose way
//! waits for its own line, and a store of all of a line when the channel has as much to do as all misses would give it.
//! Any number of requests may wait for a line.
//!
//! **Write-back**: stores and atomic operations mark the line, and it goes over the channel when it is replaced. A miss
//! of any kind gets a place, and brings the line in unless all of it is stored. **Replacement** is least recently used;
//! a line counts as used from the request on. At a launch all lines are forgotten, and what was written in the last one
//! is not written back.
//!
//! What it does not have: banks, a limit to the requests that wait for a line, a time for tags apart from that for data,
//! rows and turnarounds of a DRAM.

mod answer;
mod channel;
mod metrics;
mod miss;
pub mod proof;
mod tags;
#[cfg(test)]
mod tests;

use super::cache::geometry::Geometry;
use super::cache::metrics::{MetricsIn as OfRequests, Visit};
use super::port::{Operation, Request};
use crate::shape::{Metrics, SecondLevel, Shape, Timing};
use answer::{AnswerIn, answer};
use channel::Channel;
use heddle_hdl::{all, each, elements, prelude::*};
use metrics::{MetricsIn, metrics};
use miss::{MissIn, miss};
use tags::{Tags, Use};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SecondLevelIn<T> {
    /// A launch begins: everything is forgotten. Only while idle.
    pub restart: T,
    pub valid: T,
    pub operation: T,
    pub tag: T,
    pub line: T,
    pub enables: T,
    /// Cycles that memory takes to a line that is asked for now, at least 1.
    pub memory: T,
    /// One bit a tag: its response leaves.
    pub leave: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SecondLevelOut<T> {
    /// The request is taken, if there is one.
    pub ready: T,
    /// It brings a line in.
    pub fetches: T,
    /// One bit a tag: it has a request under way; its response is due, until it leaves.
    pub busy: T,
    pub due: T,
    /// Nothing is under way.
    pub idle: T,
}

impl SecondLevelIn<Width> {
    /// With tags of so many bits, and so many bits for the cycles that memory takes.
    pub fn shape(s: &Shape, tag: Width, memory: Width) -> SecondLevelIn<Width> {
        let Request { operation, line, enables, .. } = Request::shape(s);
        SecondLevelIn { restart: 1, valid: 1, operation, tag, line, enables, memory, leave: 1 << tag }
    }
}

/// The second level of a shape, before memory with the timing `t`.
pub fn second_level(
    s: &Shape,
    l: &SecondLevel,
    t: Timing,
    inputs: SecondLevelIn<Width>,
) -> TypedModule<SecondLevelIn<Width>, SecondLevelOut<Signal>> {
    module("second_level", inputs, |m, i| described(m, s, l, t, i))
}

fn described(m: Builder, s: &Shape, l: &SecondLevel, t: Timing, i: SecondLevelIn<Signal>) -> SecondLevelOut<Signal> {
    let SecondLevel { cache: c, latency } = l;
    m.doc(&format!("Second level: {} bytes, {} ways, {} misses; time only.", c.size, c.ways, c.misses));
    let g = Geometry::new(s, c);
    let parts = g.parts(i.line);
    let tags = Tags::look(m, c, &g, parts);
    let channel = Channel::new(m, l, t);

    // The misses under way.
    let begins = m.deferred("begins", c.misses);
    let wait_bits = channel.wait().width().max(i.memory.width()) + 2;
    let bits = wait_bits.max(count_width(*latency + c.line * t.interval) + 2);
    wire!(way = tags.victim.one_hot_index());
    let fixed = m.lit(latency + (c.line - 1) * t.interval, bits);
    wire!(cycles = fixed + channel.wait().zext(bits) + i.memory.zext(bits));
    let inputs = MissIn {
        set: all(parts.set),
        tag: all(parts.tag),
        begins: each(begins.value),
        way: all(way),
        cycles: all(cycles),
    };
    let misses = m.replicate("miss", c.misses, &miss(&g, c, bits), inputs);
    wire!(free = (!misses.busy).lowest_one());
    let reserved = elements(misses.reserved, c.ways).into_iter().reduce(|a, b| a | b).expect("there is a miss");
    wire!(victim_reserved = (reserved & tags.victim).any());
    m.assert("a_line_has_one_miss", !(misses.same & !misses.same.lowest_one()).any());

    // What the request finds, and whether there is room for it.
    let writes = i.operation.ne(Operation::Load);
    let responds = !i.operation.bit(Operation::SILENT);
    wire!(joins = misses.same.any());
    wire!(missed = !tags.hits.any());
    m.assert("a_line_under_way_has_its_place", !joins | !missed);
    let stores_all = i.operation.eq(Operation::Store) & i.enables.all();
    wire!(whole = if c.line == 1 { stores_all } else { m.lit(0u32, 1) });
    let room = whole.mux(channel.room | !tags.writes_back, free.any());
    wire!(ready = !missed | (room & !victim_reserved));
    wire!(taken = i.valid & ready);
    wire!(fetches = taken & missed & !whole);
    begins.drive(free.only_if(fetches));
    wire!(writes_back = taken & missed & tags.writes_back);
    channel.asked(m, fetches, writes_back);
    tags.update(c, &g, i.restart, Use { taken, missed, writes });

    // When responses are due.
    let count = 1 << i.tag.width();
    let inputs = AnswerIn {
        start: each(i.tag.decode(count).only_if(taken & responds)),
        waits: all(missed | joins),
        miss: all(joins.mux(misses.same, free).one_hot_index()),
        under_way: all(misses.busy),
        fills: all(misses.fills),
        leave: each(i.leave),
    };
    let answers = m.replicate("answer", count, &answer(c.misses, *latency), inputs);

    wire!(idle = !(answers.busy.any() | misses.busy.any() | channel.busy()));
    m.assert("restart_only_while_idle", !i.restart | (idle & !i.valid));
    m.cover("hit_under_a_miss", taken & !missed & !joins & misses.busy.any());
    m.cover("miss_under_a_miss", fetches & misses.busy.any());
    m.cover("joined", taken & joins);
    m.cover("all_misses_under_way", i.valid & missed & !whole & !free.any());
    m.cover("victim_reserved", i.valid & missed & victim_reserved);
    m.cover("written_back", writes_back);
    m.cover("waits_for_the_channel", fetches & channel.busy());
    if s.metrics == Metrics::Simulated {
        let visit = |kind: Signal| Visit { hit: kind & !missed & !joins, missed: kind & missed, joined: kind & joins };
        let requests = OfRequests {
            restart: i.restart,
            answered: visit(taken & responds),
            silent: visit(taken & !responds),
            waited: i.valid & !ready,
            full: i.valid & missed & !whole & !free.any(),
        };
        let channel = channel.busy() | fetches | writes_back;
        let inputs = MetricsIn { requests, write_back: writes_back, channel };
        m.instance("metrics", &metrics(), inputs);
    }
    SecondLevelOut { ready, fetches, busy: answers.busy, due: answers.due, idle }
}

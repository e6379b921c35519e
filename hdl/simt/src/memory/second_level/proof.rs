//! What the second level is for, as far as its ports show it: every response is due once, in its time.
//!
//! Any one tag and any one line are followed. Requests are any, memory takes any time to each line, and responses leave
//! when they like.

use super::super::port::Operation;
use super::{SecondLevelIn, SecondLevelOut, second_level};
use crate::proof::{cover, held, implies};
use crate::shape::{SecondLevel, Shape, Timing};
use heddle_hdl::prelude::*;

/// Bits of the cycles that memory takes to a line.
const MEMORY_BITS: Width = 2;

/// Bits of the time since a request.
const AGE_BITS: Width = 6;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ProofIn<T> {
    /// Those that are illegal are made legal: a tag is used again after its response has left.
    pub inputs: SecondLevelIn<T>,
    /// The tag and the line that are followed.
    pub tag: T,
    pub line: T,
}

/// The second level of a shape that has one, of one lane.
pub fn second_level_proof(s: &Shape) -> TypedModule<ProofIn<Width>, SecondLevelOut<Signal>> {
    let l = s.second_level.as_ref().expect("the shape has a second level");
    let t = s.modelled().expect("memory is modelled");
    let inputs = SecondLevelIn::shape(s, index_width(s.loads), MEMORY_BITS);
    let shape = ProofIn { inputs, tag: inputs.tag, line: inputs.line };
    module("second_level_proof", shape, |m, i| described(m, s, l, t, i))
}

fn described(m: Builder, s: &Shape, l: &SecondLevel, t: Timing, i: ProofIn<Signal>) -> SecondLevelOut<Signal> {
    let (tag, line) = (held(m, "tag_followed", i.tag), held(m, "line_followed", i.line));
    let i = i.inputs;
    let tags = 1 << i.tag.width();
    let shape = SecondLevelIn::shape(s, i.tag.width(), MEMORY_BITS);
    let [busy, due] = ["busy", "due"].map(|name| m.deferred(name, tags));
    let idle = m.deferred("idle", 1);
    wire!(restart = i.restart & idle.value);
    let operation = if s.atomics { i.operation } else { cat(&[i.operation.bit(Operation::SILENT), m.lit(0u32, 1)]) };
    wire!(responds = !operation.bit(Operation::SILENT));
    let legal = SecondLevelIn {
        restart,
        valid: i.valid & !restart & !(responds & busy.value.select(i.tag, 1)),
        operation,
        memory: i.memory | 1,
        leave: i.leave & due.value,
        ..i
    };
    let out = m.instance("second_level", &second_level(s, l, t, shape), legal);
    busy.drive(out.busy);
    due.drive(out.due);
    idle.drive(out.idle);

    // Every tag.
    wire!(taken = legal.valid & out.ready);
    let waiting = m.reg("waiting", tags).reset(0u32);
    waiting.next((waiting.q & !legal.leave) | i.tag.decode(tags).only_if(taken & responds));
    m.assert("who_waits_is_known", out.busy.eq(waiting.q));
    m.assert("what_is_due_is_waited_for", !(out.due & !waiting.q).any());
    m.assert("nothing_is_lost", implies(out.idle, !waiting.q.any()));

    // The one that is followed.
    wire!(here = i.line.eq(line));
    let beats = l.cache.line * t.interval;
    wire!(follows = taken & responds & i.tag.eq(tag));
    let age = m.reg("age", AGE_BITS);
    age.next(pick([(follows, age.q.literal(1u32)), (age.q.all(), age.q)], age.q + 1));
    // A line that nobody has asked for since the launch comes from memory.
    let known = m.reg("known", 1).reset(0u32);
    known.next(
        !restart & (known.q | (taken & i.line.from_bit(l.cache.line.ilog2()).eq(line.from_bit(l.cache.line.ilog2())))),
    );
    let least = m.lit(l.latency, AGE_BITS);
    let from_memory = least + legal.memory.zext(AGE_BITS) + (beats - t.interval);
    let least = m.pipe_if("least", follows, (here & !known.q).mux(from_memory, least));
    wire!(is_due = out.due.select(tag, 1));
    m.assert("not_before_its_time", implies(is_due, age.q.ge(least)));
    // What was used last is there, once all has come.
    let last = m.reg("last", 1).reset(0u32);
    last.next(pick([(restart, m.lit(0u32, 1)), (taken, here)], last.q));
    let found = m.pipe_if("found", follows, last.q & out.idle & here);
    wire!(in_time = found & waiting.q.select(tag, 1) & age.q.eq(l.latency));
    m.assert("what_was_used_last_is_there", implies(in_time, is_due));

    cover(m, "found", in_time);
    cover(m, "from_memory", is_due & age.q.gt(m.lit(l.latency, AGE_BITS)));
    cover(m, "two_wait", (waiting.q & !waiting.q.lowest_one()).any());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::{Backing, Cache, Metrics};

    #[test]
    fn holds_at_random_inputs() {
        for (ways, line, misses, interval) in [(1, 1, 1, 1), (2, 1, 2, 2), (4, 2, 4, 1), (2, 2, 1, 3)] {
            let cache = Cache { size: 2 * ways * line * 4, ways, line, misses };
            let second_level = Some(SecondLevel { cache, latency: 1 + misses });
            let backing = Backing::Model(Timing { interval, ..Timing::FASTEST });
            let s = Shape { second_level, backing, metrics: Metrics::Off, memory: 128, loads: 4, ..Shape::new(1, 1) };
            holds_at_random(&second_level_proof(&s).check().unwrap().netlist, 5000);
        }
    }
}

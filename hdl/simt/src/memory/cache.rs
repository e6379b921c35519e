//! First-level data cache: write-through, no place for a line that is only stored to, several misses under way.
//!
//! A *cache line* is some memory lines, its *beats*. Requests pass these steps, a request a cycle:
//!
//! | cycle | what happens |
//! |---|---|
//! | 1 | taken from the port, becomes *first* |
//! | 2 | first looks at the tags and at the misses under way, and goes one of the ways below |
//! | 3 | hits: the banks are read; stores and atomic operations are carried out as in any [`super::bank`](mod@super::bank) |
//! | 4 | hits: the response, until it is taken; all steps wait meanwhile |
//!
//! | first is | it |
//! |---|---|
//! | to a cache line with a miss under way | joins the requests that wait for this |
//! | a hit | goes to the banks; if it writes, to memory too |
//! | a miss that wants a response | begins a miss, as the first to wait for it; the cache line is asked of memory |
//! | another miss | goes to memory |
//! | none of it, for want of room, of a miss or of a way | stays first |
//!
//! A beat that comes back goes to the banks before anything else; when all have come, the requests that wait for the
//! miss go to the banks in their order, and after them first again. What goes to memory passes one queue, the *outbox*,
//! so memory takes requests to a word in the order in which the cache looked at them.
//!
//! **Replacement** is first in, first out: every set counts through its ways. A way whose miss is under way is not
//! replaced; its set's next miss waits. The tags name the new cache line from the beginning of the miss, so a line is
//! never in two ways, and the requests that wait find it in the way of their miss.
//!
//! **Atomic operations** are carried out twice, here and in memory, which takes them like stores: so nothing waits for
//! a result, and words that a bus master changed are not overwritten by old ones.
//!
//! At a launch all lines are forgotten, a set a cycle: the host may have written memory. It never needs to be flushed,
//! since memory always has everything. What other masters write during a launch is not seen.

pub(super) mod geometry;
pub(super) mod metrics;
mod miss;
mod outbox;
pub mod proof;
mod tags;
#[cfg(test)]
mod tests;
mod turn;

use super::bank::{BankAtomic, BankIn, bank};
use super::port::{Miss, Operation, Request, Response};
use crate::shape::{Cache, Metrics, Shape};
use geometry::Geometry;
use heddle_hdl::{all, each, prelude::*};
use metrics::{MetricsIn, Visit, metrics};
use turn::{First, Look, Turn};

/// Requests that may wait for one miss.
pub const WAITING: u32 = 4;

/// Requests that may wait for memory.
pub const OUTBOX: u32 = 8;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CacheIn<T> {
    /// Everything is forgotten. Only while idle.
    pub restart: T,
    /// From the core.
    pub request: Request<T>,
    pub response_ready: T,
    /// From memory, whose tags have [`tag_bits`].
    pub below_request_ready: T,
    pub below_response: Response<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CacheOut<T> {
    /// To the core.
    pub request_ready: T,
    pub response: Response<T>,
    /// In a core that is told of it.
    pub miss: Option<Miss<T>>,
    /// Nothing is under way here.
    pub idle: T,
    /// To memory.
    pub below_request: Request<T>,
    pub below_response_ready: T,
}

impl CacheIn<Width> {
    pub fn shape(s: &Shape, c: &Cache) -> CacheIn<Width> {
        CacheIn {
            restart: 1,
            request: Request::shape(s),
            response_ready: 1,
            below_request_ready: 1,
            below_response: Response { tag: tag_bits(c), ..Response::shape(s) },
        }
    }
}

/// Bits of the tag of a request to memory: the miss, and the beat.
pub fn tag_bits(c: &Cache) -> Width {
    index_width(c.misses) + c.line.ilog2()
}

/// A request on its way. `line` is a place in the banks, a beat, or a line of memory; `tag` the core's, or a miss.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Entry<T> {
    operation: T,
    function: T,
    tag: T,
    line: T,
    enables: T,
    data: T,
}

impl Entry<Width> {
    fn shape(s: &Shape, tag: Width, line: Width) -> Entry<Width> {
        let Request { operation, function, enables, data, .. } = Request::shape(s);
        Entry { operation, function, tag, line, enables, data }
    }
}

pub fn cache(s: &Shape, c: &Cache) -> TypedModule<CacheIn<Width>, CacheOut<Signal>> {
    module("cache", CacheIn::shape(s, c), |m, i| described(m, s, c, i))
}

/// What the steps of a request look at.
struct Steps<'a> {
    m: Builder,
    s: &'a Shape,
    c: &'a Cache,
    g: Geometry,
    i: &'a CacheIn<Signal>,
    /// 1 bit: no response waits to be taken.
    advance: Signal,
}

fn described(m: Builder, s: &Shape, c: &Cache, i: CacheIn<Signal>) -> CacheOut<Signal> {
    m.doc(&format!("Data cache: {} bytes, {} ways, lines of {} beats, {} misses.", c.size, c.ways, c.line, c.misses));
    let answered = m.reg("answered", 1).reset(0u32);
    wire!(advance = !answered.q | i.response_ready);
    let steps = Steps { m, s, c, g: Geometry::new(s, c), i: &i, advance };
    let first = steps.first();
    let look = steps.look(&first);
    let turn = steps.turn(&first, &look);
    steps.wait(&first, &look, &turn);
    look.tags.update(c, &steps.g, i.restart, first.parts);
    let (access_valid, response) = steps.access(&first, &look, &turn, answered);
    let below_request = steps.to_memory(&first, &look, &turn);

    wire!(idle = !(first.valid.q | look.misses.all.busy.any() | access_valid | answered.q | below_request.valid));
    m.assert("restart_only_while_idle", !i.restart | idle);
    steps.covers(&first, &look, &turn);
    if s.metrics == Metrics::Simulated {
        steps.count(&first, &look, &turn);
    }
    let miss = s.tells_misses().then(|| Miss { valid: turn.waits(&first, &look), tag: first.entry.tag });
    CacheOut { request_ready: first.ready, response, miss, idle, below_request, below_response_ready: advance }
}

impl Steps<'_> {
    /// 3 and 4: the banks, and the response. Whether an access is in the banks, 1 bit, comes with it.
    fn access(&self, first: &First, look: &Look, turn: &Turn, answered: Reg<Signal>) -> (Signal, Response<Signal>) {
        let Steps { m, s, g, i, advance, .. } = self;
        let beat = Entry {
            operation: m.code(Operation::Store),
            line: g.place(turn.of_miss, turn.miss_way),
            enables: m.lit(Bits::ones(4 * s.lanes), 4 * s.lanes),
            data: i.below_response.data,
            ..first.entry
        };
        let hit_entry = Entry { line: g.place(first.parts, look.tags.hits.one_hot_index()), ..first.entry };
        let replay_entry = Entry { line: g.place(turn.replay_parts, turn.miss_way), ..turn.replay };
        let chosen = pick([(turn.beats, beat), (turn.replays, replay_entry)], hit_entry);
        let access_valid = m.reg("access_valid", 1).reset(0u32);
        access_valid.next_if(*advance, turn.beats | turn.replays | (turn.firsts & look.hit));
        let access = m.pipe_if("access", *advance, chosen);
        wire!(accesses = access_valid.q & *advance);
        let is_load = access.operation.eq(Operation::Load);
        let valid = access.operation.bit(Operation::IS_ATOMIC);
        let inputs = BankIn {
            access: all(accesses),
            line: all(access.line),
            writes: all(!is_load),
            enables: each(access.enables),
            data: each(access.data),
            atomic: s.atomics.then(|| all(BankAtomic { valid, function: access.function })),
        };
        let banks = m.replicate("bank", s.lanes, &bank(g.place_bits(), s.atomics), inputs);
        answered.next_if(*advance, accesses & !access.operation.bit(Operation::SILENT));
        let tag = m.pipe_if("answer_tag", accesses, access.tag);
        (access_valid.q, Response { valid: answered.q, tag, data: banks.word })
    }

    /// Counts what requests find.
    fn count(&self, first: &First, look: &Look, turn: &Turn) {
        let &Look { ref misses, joins, hit, missed, .. } = look;
        let visit = |kind: Signal| Visit { hit: kind & hit, missed: kind & missed, joined: kind & joins };
        let inputs = MetricsIn {
            restart: self.i.restart,
            answered: visit(turn.firsts & first.responds),
            silent: visit(turn.firsts & !first.responds),
            waited: first.valid.q & !turn.firsts,
            full: first.valid.q & missed & first.responds & !misses.free.any(),
        };
        self.m.instance("metrics", &metrics(), inputs);
        // What awaits no answer and joins a miss counts as a hit.
        let Visit { hit, missed, joined } = visit(turn.firsts);
        let silent = joined & !first.responds;
        self.m.probe("found", Visit { hit: hit | silent, missed, joined: joined & !silent });
    }
}

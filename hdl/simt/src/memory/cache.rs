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

mod metrics;
pub mod proof;

use super::bank::{BankAtomic, BankIn, bank};
use super::port::{Request, Response, operation};
use crate::queue::Queue;
use crate::shape::{Cache, Metrics, Shape};
use heddle_hdl::{all, each, elements, prelude::*, select};
use metrics::{MetricsIn, Visit, metrics};

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

/// The parts of a line's number. Sets and beats have a bit even if there is only one.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Parts<T> {
    beat: T,
    set: T,
    tag: T,
}

/// The bits of the parts of a line's number.
struct Geometry {
    beat: Width,
    set: Width,
    way: Width,
    tag: Width,
}

impl Geometry {
    fn new(s: &Shape, c: &Cache) -> Geometry {
        let (beat, set) = (c.line.ilog2(), (c.size / (c.ways * c.line * 4 * s.lanes)).ilog2());
        Geometry { beat, set, way: c.ways.ilog2(), tag: s.line_bits() - beat - set }
    }

    fn parts(&self, line: Signal) -> Parts<Signal> {
        let part = |low, width| if width == 0 { line.bit(0).literal(0u32) } else { line.slice(low, width) };
        Parts { beat: part(0, self.beat), set: part(self.beat, self.set), tag: line.from_bit(self.beat + self.set) }
    }

    fn line(&self, p: Parts<Signal>) -> Signal {
        cat(&[self.low(p), vec![p.tag]].concat())
    }

    /// The place of a beat in the banks.
    fn place(&self, p: Parts<Signal>, way: Signal) -> Signal {
        let way = (self.way > 0).then_some(way);
        let bits: Vec<Signal> = self.low(p).into_iter().chain(way).collect();
        if bits.is_empty() { p.set } else { cat(&bits) }
    }

    fn place_bits(&self) -> Width {
        (self.beat + self.set + self.way).max(1)
    }

    fn low(&self, p: Parts<Signal>) -> Vec<Signal> {
        [(self.beat, p.beat), (self.set, p.set)].into_iter().filter(|(bits, _)| *bits > 0).map(|(_, p)| p).collect()
    }
}

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
struct SetState<T> {
    /// One bit a way.
    valid: T,
    /// The way that is replaced next.
    oldest: T,
}

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
struct Held<T> {
    tag: T,
    set: T,
    way: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct MissOut<T> {
    busy: T,
    /// First asks for this miss's cache line.
    same: T,
    /// Of first's set, the way that this miss will fill; one bit a way.
    reserved: T,
    held: Held<T>,
    /// All beats have come.
    filled: T,
    /// Another request may wait, and its place.
    room: T,
    free_place: T,
    /// The place of the one that has waited longest.
    head: T,
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

fn described(m: Builder, s: &Shape, c: &Cache, i: CacheIn<Signal>) -> CacheOut<Signal> {
    m.doc(&format!("Data cache: {} bytes, {} ways, lines of {} beats, {} misses.", c.size, c.ways, c.line, c.misses));
    let g = Geometry::new(s, c);
    let answered = m.reg("answered", 1).reset(0u32);
    wire!(advance = !answered.q | i.response_ready);

    // 1: the request that is first.
    let first_goes = m.deferred("first_goes", 1);
    let first_valid = m.reg("first_valid", 1).reset(0u32);
    wire!(request_ready = !first_valid.q | first_goes.value);
    first_valid.next((first_valid.q & !first_goes.value) | i.request.valid);
    let Request { operation, function, tag, line, enables, data, .. } = i.request;
    let first = m.pipe_if("first", request_ready, Entry { operation, function, tag, line, enables, data });
    let parts = g.parts(first.line);
    wire!(responds = !first.operation.bit(operation::SILENT));
    wire!(writes = !first.operation.eq(operation::LOAD));

    // 2: the tags, and the misses under way.
    let begins = m.deferred("begins", 1);
    let sets_shape = SetState { valid: c.ways, oldest: index_width(c.ways) };
    let sets = m.memory("sets", sets_shape, g.set.max(1)).style(MemoryStyle::Distributed);
    let state = sets.read(parts.set);
    wire!(victim = state.oldest.decode(c.ways));
    let inputs = WayIn { set: all(parts.set), tag: all(parts.tag), replace: each(victim.only_if(begins.value)) };
    let ways = m.replicate("way", c.ways, &way(&g), inputs);
    wire!(hits = ways.same & state.valid);

    let [allocates, pushes, pops, beats] =
        ["allocates", "pushes", "pops", "beats"].map(|name| m.deferred(name, c.misses));
    let inputs = MissIn {
        set: all(parts.set),
        tag: all(parts.tag),
        way: all(state.oldest),
        allocate: each(allocates.value),
        push: each(pushes.value),
        beat: each(beats.value),
        pop: each(pops.value),
    };
    let misses = m.replicate("miss", c.misses, &miss(&g, c), inputs);
    wire!(free_miss = (!misses.busy).lowest_one());
    let reserved = elements(misses.reserved, c.ways).into_iter().reduce(|a, b| a | b).unwrap_or(victim);
    wire!(victim_reserved = (reserved & victim).any());

    let outbox_room = m.deferred("outbox_room", 1);
    wire!(joins = misses.same.any());
    wire!(hit = !joins & hits.any());
    wire!(missed = !joins & !hit);
    let possible = pick(
        [
            (joins, (misses.same & misses.room).any()),
            (hit & !writes, m.lit(1u32, 1)),
            (missed & responds, outbox_room.value & free_miss.any() & !victim_reserved),
        ],
        outbox_room.value,
    );

    // Whose turn the banks are: a beat's, a waiting request's, first's.
    let miss_bits = index_width(c.misses);
    wire!(beat_turn = i.below_response.valid & advance);
    let beat_miss = i.below_response.tag.slice(0, miss_bits);
    beats.drive(beat_miss.decode(c.misses).only_if(beat_turn));
    wire!(replaying = misses.filled.lowest_one());
    wire!(replay_miss = replaying.one_hot_index());
    let chosen = beat_turn.mux(beat_miss, replay_miss);
    let of_chosen = |packed, bits| select(&elements(packed, bits), chosen);
    let place_bits = index_width(WAITING);
    let waiting_shape = Entry::shape(s, first.tag.width(), g.beat.max(1));
    let waiting = m.memory("waiting", waiting_shape, place_bits + miss_bits).style(MemoryStyle::Distributed);
    wire!(replay = waiting.read(cat(&[of_chosen(misses.head, place_bits), chosen])));
    wire!(replay_writes = !replay.operation.eq(operation::LOAD));
    wire!(replay_turn = misses.filled.any() & advance & !beat_turn & (!replay_writes | outbox_room.value));
    pops.drive(replaying.only_if(replay_turn));
    let sweeping = m.reg("sweeping", 1).reset(1u32);
    wire!(first_turn = first_valid.q & advance & possible & !sweeping.q & !replay_turn & !(hit & beat_turn));
    first_goes.drive(first_turn);

    // First begins a miss, or waits for one.
    begins.drive(first_turn & missed & responds);
    allocates.drive(free_miss.only_if(begins.value));
    wire!(waits_for = joins.mux(misses.same, free_miss));
    wire!(waits = first_turn & (joins | (missed & responds)));
    pushes.drive(waits_for.only_if(waits));
    let free_place = select_one_hot(&elements(misses.free_place, place_bits), waits_for);
    let entry = Entry { line: parts.beat, ..first };
    waiting.write(waits, cat(&[free_place, waits_for.one_hot_index()]), entry);

    // A set changes when a miss begins; at a launch, one after the other.
    let sweep = m.reg("sweep", g.set.max(1)).reset(0u32);
    wire!(swept = sweep.q.eq((1u32 << g.set) - 1));
    sweep.next_if(sweeping.q, swept.mux(sweep.q.literal(0u32), sweep.q + 1));
    sweeping.next(i.restart | (sweeping.q & !swept));
    let next_way = if c.ways > 1 { state.oldest + 1 } else { state.oldest };
    let changed = SetState { valid: state.valid | victim, oldest: next_way };
    let set = sweeping.q.mux(sweep.q, parts.set);
    sets.write(sweeping.q | begins.value, set, changed.only_if(!sweeping.q));

    // 3: the banks.
    let miss_way = of_chosen(misses.held.way, index_width(c.ways));
    let of_miss = Parts {
        beat: if g.beat == 0 { parts.beat.literal(0u32) } else { i.below_response.tag.from_bit(miss_bits) },
        set: of_chosen(misses.held.set, g.set.max(1)),
        tag: of_chosen(misses.held.tag, g.tag),
    };
    let replay_parts = Parts { beat: replay.line, ..of_miss };
    let beat = Entry {
        operation: m.lit(operation::STORE, operation::BITS),
        line: g.place(of_miss, miss_way),
        enables: m.lit(Bits::ones(4 * s.lanes), 4 * s.lanes),
        data: i.below_response.data,
        ..first
    };
    let hit_entry = Entry { line: g.place(parts, hits.one_hot_index()), ..first };
    let replay_entry = Entry { line: g.place(replay_parts, miss_way), ..replay };
    let turn = pick([(beat_turn, beat), (replay_turn, replay_entry)], hit_entry);
    let access_valid = m.reg("access_valid", 1).reset(0u32);
    access_valid.next_if(advance, beat_turn | replay_turn | (first_turn & hit));
    let access = m.pipe_if("access", advance, turn);
    wire!(accesses = access_valid.q & advance);
    let is_load = access.operation.eq(operation::LOAD);
    let valid = access.operation.bit(operation::IS_ATOMIC);
    let inputs = BankIn {
        access: all(accesses),
        line: all(access.line),
        writes: all(!is_load),
        enables: each(access.enables),
        data: each(access.data),
        atomic: s.atomics.then(|| all(BankAtomic { valid, function: access.function })),
    };
    let banks = m.replicate("bank", s.lanes, &bank(g.place_bits(), s.atomics), inputs);

    // 4: the response.
    answered.next_if(advance, accesses & !access.operation.bit(operation::SILENT));
    let response = Response { valid: answered.q, tag: m.pipe_if("answer_tag", accesses, access.tag), data: banks.word };

    // To memory: what writes, without a response, and a miss as one entry.
    let written = |e: Entry<Signal>, line| Entry {
        operation: e.operation | 1 << operation::SILENT,
        line,
        tag: m.lit(0u32, miss_bits),
        ..e
    };
    let operation = begins.value.mux(m.lit(operation::LOAD, operation::BITS), first.operation | 1 << operation::SILENT);
    let from_first = Entry { operation, tag: free_miss.one_hot_index(), ..first };
    let pushed = replay_turn.mux(written(replay, g.line(replay_parts)), from_first);
    wire!(pushing = (replay_turn & replay_writes) | (first_turn & !joins & (writes | missed)));
    let outbox = Queue::new(m, "outbox", Entry::shape(s, miss_bits, s.line_bits()), OUTBOX, pushing, pushed);
    wire!(leaving = outbox.head);
    wire!(refills = leaving.operation.eq(operation::LOAD));
    wire!(sent = outbox.waits & i.below_request_ready);
    let (last_beat, line, tag) = if g.beat == 0 {
        (m.lit(1u32, 1), leaving.line, leaving.tag)
    } else {
        let beat = m.reg("beat", g.beat).reset(0u32);
        beat.next_if(sent & refills, beat.q + 1);
        let line = g.line(Parts { beat: beat.q, ..g.parts(leaving.line) });
        (beat.q.all(), refills.mux(line, leaving.line), cat(&[leaving.tag, beat.q]))
    };
    wire!(leaves = sent & (!refills | last_beat));
    outbox.leaves(leaves);
    outbox_room.drive(!outbox.full);
    let below_request = Request {
        valid: outbox.waits,
        operation: leaving.operation,
        function: leaving.function,
        tag,
        line,
        enables: leaving.enables | refills.repeat(4 * s.lanes),
        data: leaving.data,
    };

    wire!(idle = !(first_valid.q | misses.busy.any() | access_valid.q | answered.q | outbox.waits));
    m.assert("a_line_is_in_one_way", sweeping.q | !(hits & !hits.lowest_one()).any());
    m.assert("a_line_has_one_miss", !(misses.same & !misses.same.lowest_one()).any());
    m.assert("restart_only_while_idle", !i.restart | idle);
    m.cover("hit_under_a_miss", first_turn & hit & misses.busy.any());
    m.cover("miss_under_a_miss", begins.value & misses.busy.any());
    m.cover("joined", first_turn & joins);
    m.cover("no_room_to_join", first_valid.q & joins & !possible);
    m.cover("victim_reserved", first_valid.q & missed & responds & victim_reserved);
    m.cover("outbox_full", !outbox_room.value);
    m.cover("hit_waits_for_a_beat", first_valid.q & hit & beat_turn);
    m.cover("replaced", begins.value & (state.valid & victim).any());
    m.cover("atomic_replayed", replay_turn & replay.operation.bit(operation::IS_ATOMIC));
    m.cover("response_held", !advance);
    let below_response_ready = advance;
    if s.metrics == Metrics::Simulated {
        let visit = |kind: Signal| Visit { hit: kind & hit, missed: kind & missed, joined: kind & joins };
        let inputs = MetricsIn {
            restart: i.restart,
            answered: visit(first_turn & responds),
            silent: visit(first_turn & !responds),
            waited: first_valid.q & !first_turn,
        };
        m.instance("metrics", &metrics(), inputs);
    }
    CacheOut { request_ready, response, idle, below_request, below_response_ready }
}

#[cfg(test)]
mod tests;

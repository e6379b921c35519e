//! The request that is first: what it finds, and when it has its turn at the banks, among beats and requests that have
//! waited.

use super::geometry::Parts;
use super::miss::Misses;
use super::tags::Tags;
use super::{Entry, Steps, WAITING};
use crate::memory::port::{Operation, Request};
use heddle_hdl::{elements, prelude::*, select};

/// The request that is first.
pub struct First {
    pub valid: Reg<Signal>,
    /// 1 bit: it goes on.
    goes: Deferred<Signal>,
    /// 1 bit: the port's request becomes first.
    pub ready: Signal,
    pub entry: Entry<Signal>,
    pub parts: Parts<Signal>,
    /// 1 bit each: it wants a response; it writes.
    pub responds: Signal,
    pub writes: Signal,
}

/// What it finds.
pub struct Look {
    pub tags: Tags,
    pub misses: Misses,
    /// 1 bit: one more may wait for memory.
    pub outbox_room: Deferred<Signal>,
    /// 1 bit each: a miss of its cache line is under way; a hit; neither.
    pub joins: Signal,
    pub hit: Signal,
    pub missed: Signal,
    /// 1 bit: there is room for what it is to do.
    possible: Signal,
}

/// Whose turn the banks are.
pub struct Turn {
    /// 1 bit each: a beat's; a request's that waited for a miss; first's, which may need no bank.
    pub beats: Signal,
    pub replays: Signal,
    pub firsts: Signal,
    /// The beat's place, and the way of its cache line or of that of the request that waited.
    pub of_miss: Parts<Signal>,
    pub miss_way: Signal,
    /// The request that waited; 1 bit: it writes.
    pub replay: Entry<Signal>,
    pub replay_parts: Parts<Signal>,
    pub replay_writes: Signal,
    /// The requests that wait, by miss and place.
    waiting: Mem<Entry<Width>>,
}

impl Turn {
    /// 1 bit: first begins a miss, or waits for one; if it is answered.
    pub fn waits(&self, first: &First, look: &Look) -> Signal {
        self.firsts & !look.hit & first.responds
    }
}

impl Steps<'_> {
    /// 1: the request that is first.
    pub fn first(&self) -> First {
        let Steps { m, g, i, .. } = self;
        let first_goes = m.deferred("first_goes", 1);
        let first_valid = m.reg("first_valid", 1).reset(0u32);
        wire!(request_ready = !first_valid.q | first_goes.value);
        first_valid.next((first_valid.q & !first_goes.value) | i.request.valid);
        let Request { operation, function, tag, line, enables, data, .. } = i.request;
        let first = m.pipe_if("first", request_ready, Entry { operation, function, tag, line, enables, data });
        wire!(responds = !first.operation.bit(Operation::SILENT));
        wire!(writes = !first.operation.eq(Operation::Load));
        let parts = g.parts(first.line);
        First { valid: first_valid, goes: first_goes, ready: request_ready, entry: first, parts, responds, writes }
    }

    /// 2: the tags, and the misses under way.
    pub fn look(&self, first: &First) -> Look {
        let Steps { m, c, g, .. } = self;
        let tags = Tags::look(*m, c, g, first.parts);
        let misses = Misses::look(*m, c, g, first.parts, (tags.state.oldest, tags.victim));
        let outbox_room = m.deferred("outbox_room", 1);
        wire!(joins = misses.all.same.any());
        wire!(hit = !joins & tags.hits.any());
        wire!(missed = !joins & !hit);
        let begins = outbox_room.value & misses.free.any() & !misses.victim_reserved;
        let possible = pick(
            [
                (joins, (misses.all.same & misses.all.room).any()),
                (hit & !first.writes, m.lit(1u32, 1)),
                (missed & first.responds, begins),
            ],
            outbox_room.value,
        );
        Look { tags, misses, outbox_room, joins, hit, missed, possible }
    }

    /// Whose turn it is: a beat's, a waiting request's, first's.
    pub fn turn(&self, first: &First, look: &Look) -> Turn {
        let Steps { m, s, c, g, i, advance } = self;
        let (misses, advance) = (&look.misses, *advance);
        let (miss_bits, place_bits) = (index_width(c.misses), index_width(WAITING));
        wire!(beat_turn = i.below_response.valid & advance);
        let beat_miss = i.below_response.tag.slice(0, miss_bits);
        misses.beats.drive(beat_miss.decode(c.misses).only_if(beat_turn));
        wire!(replaying = misses.all.filled.lowest_one());
        wire!(replay_miss = replaying.one_hot_index());
        let chosen = beat_turn.mux(beat_miss, replay_miss);
        let of_chosen = |packed, bits| select(&elements(packed, bits), chosen);
        let waiting_shape = Entry::shape(s, first.entry.tag.width(), g.beat.max(1));
        let waiting = m.memory("waiting", waiting_shape, place_bits + miss_bits).style(MemoryStyle::Distributed);
        wire!(replay = waiting.read(cat(&[of_chosen(misses.all.head, place_bits), chosen])));
        wire!(replay_writes = !replay.operation.eq(Operation::Load));
        let room = !replay_writes | look.outbox_room.value;
        wire!(replay_turn = misses.all.filled.any() & advance & !beat_turn & room);
        misses.pops.drive(replaying.only_if(replay_turn));
        let sweeping = look.tags.sweeping.q;
        let waits_for_beat = look.hit & beat_turn;
        wire!(first_turn = first.valid.q & advance & look.possible & !sweeping & !replay_turn & !waits_for_beat);
        first.goes.drive(first_turn);
        let of_miss = Parts {
            beat: if g.beat == 0 { first.parts.beat.literal(0u32) } else { i.below_response.tag.from_bit(miss_bits) },
            set: of_chosen(misses.all.held.set, g.set.max(1)),
            tag: of_chosen(misses.all.held.tag, g.tag),
        };
        Turn {
            beats: beat_turn,
            replays: replay_turn,
            firsts: first_turn,
            of_miss,
            miss_way: of_chosen(misses.all.held.way, index_width(c.ways)),
            replay,
            replay_parts: Parts { beat: replay.line, ..of_miss },
            replay_writes,
            waiting,
        }
    }

    /// First begins a miss, or waits for one.
    pub fn wait(&self, first: &First, look: &Look, turn: &Turn) {
        let (misses, first_turn) = (&look.misses, turn.firsts);
        let &Look { joins, missed, .. } = look;
        let begins = look.tags.begins;
        begins.drive(first_turn & missed & first.responds);
        misses.allocates.drive(misses.free.only_if(begins.value));
        wire!(waits_for = joins.mux(misses.all.same, misses.free));
        wire!(waits = first_turn & (joins | (missed & first.responds)));
        misses.pushes.drive(waits_for.only_if(waits));
        let free_place = select_one_hot(&elements(misses.all.free_place, index_width(WAITING)), waits_for);
        let entry = Entry { line: first.parts.beat, ..first.entry };
        turn.waiting.write(waits, cat(&[free_place, waits_for.one_hot_index()]), entry);
    }

    /// What tests should meet.
    pub fn covers(&self, first: &First, look: &Look, turn: &Turn) {
        let Steps { m, advance, .. } = self;
        let &Look { ref tags, ref misses, joins, hit, missed, possible, .. } = look;
        let first_valid = first.valid.q;
        m.cover("hit_under_a_miss", turn.firsts & hit & misses.all.busy.any());
        m.cover("miss_under_a_miss", tags.begins.value & misses.all.busy.any());
        m.cover("joined", turn.firsts & joins);
        m.cover("no_room_to_join", first_valid & joins & !possible);
        m.cover("victim_reserved", first_valid & missed & first.responds & misses.victim_reserved);
        m.cover("outbox_full", !look.outbox_room.value);
        m.cover("hit_waits_for_a_beat", first_valid & hit & turn.beats);
        m.cover("replaced", tags.begins.value & (tags.state.valid & tags.victim).any());
        m.cover("atomic_replayed", turn.replays & turn.replay.operation.bit(Operation::IS_ATOMIC));
        m.cover("response_held", !*advance);
    }
}

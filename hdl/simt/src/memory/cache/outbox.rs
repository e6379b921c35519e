//! What goes to memory: what writes, without a response, and a miss as one entry.

use super::geometry::Parts;
use super::turn::{First, Look, Turn};
use super::{Entry, OUTBOX, Steps};
use crate::memory::port::{Operation, Request};
use crate::queue::Queue;
use heddle_hdl::prelude::*;

impl Steps<'_> {
    /// The request to memory; its `valid` says that the outbox is not empty.
    pub fn to_memory(&self, first: &First, look: &Look, turn: &Turn) -> Request<Signal> {
        let Steps { m, s, c, g, i, .. } = self;
        let miss_bits = index_width(c.misses);
        let written = |e: Entry<Signal>, line| Entry {
            operation: e.operation | 1 << Operation::SILENT,
            line,
            tag: m.lit(0u32, miss_bits),
            ..e
        };
        let silent = first.entry.operation | 1 << Operation::SILENT;
        let operation = look.tags.begins.value.mux(m.code(Operation::Load), silent);
        let from_first = Entry { operation, tag: look.misses.free.one_hot_index(), ..first.entry };
        let pushed = turn.replays.mux(written(turn.replay, g.line(turn.replay_parts)), from_first);
        let of_first = turn.firsts & !look.joins & (first.writes | look.missed);
        wire!(pushing = (turn.replays & turn.replay_writes) | of_first);
        let outbox = Queue::new(*m, "outbox", Entry::shape(s, miss_bits, s.line_bits()), OUTBOX, pushing, pushed);
        wire!(leaving = outbox.head);
        wire!(refills = leaving.operation.eq(Operation::Load));
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
        look.outbox_room.drive(!outbox.full);
        Request {
            valid: outbox.waits,
            operation: leaving.operation,
            function: leaving.function,
            tag,
            line,
            enables: leaving.enables | refills.repeat(4 * s.lanes),
            data: leaving.data,
        }
    }
}

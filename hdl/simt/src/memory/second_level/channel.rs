//! The channel between second level and memory: a memory line every `interval` cycles, in the order in which they were
//! asked for.
//!
//! Nothing overtakes on it, so all there is to know is how long it is taken: who comes now has it after so many cycles.

use crate::shape::{SecondLevel, Timing};
use heddle_hdl::prelude::*;

/// The cycles for which the channel is taken.
pub struct Channel {
    taken: Reg<Signal>,
    /// Of a cache line.
    line: u32,
    /// 1 bit: fewer cache lines wait for it than misses may be under way.
    pub room: Signal,
}

impl Channel {
    pub fn new(m: Builder, l: &SecondLevel, t: Timing) -> Channel {
        let line = l.cache.line * t.interval;
        let taken = m.reg("channel_taken", count_width(Channel::most(l, t))).reset(0u32);
        wire!(room = taken.q.lt(l.cache.misses * line));
        Channel { taken, line, room }
    }

    /// Cycles for which it can be taken: for the line of every miss under way and one to write back behind it, for those
    /// that no miss is for, which stop coming at [`Channel::room`], and one of each whose time is just over.
    fn most(l: &SecondLevel, t: Timing) -> u32 {
        3 * (l.cache.misses + 1) * l.cache.line * t.interval
    }

    /// Cycles until a line that is asked for now is on it; they say when the last of its memory lines is, too.
    pub fn wait(&self) -> Signal {
        self.taken.q
    }

    /// 1 bit: it is taken, or a line waits for it.
    pub fn busy(&self) -> Signal {
        self.taken.q.any()
    }

    /// It is asked for a line, and to write one back.
    pub fn asked(&self, m: Builder, fetches: Signal, writes_back: Signal) {
        let taken = self.taken.q;
        let bits = taken.width() + 1;
        let cost = |asks: Signal| m.lit(self.line, bits).only_if(asks);
        wire!(after = taken.zext(bits) + cost(fetches) + cost(writes_back));
        wire!(next = after.any().mux(after - 1, after));
        m.assert("the_channel_has_an_end", !next.msb());
        self.taken.next(next.slice(0, taken.width()));
    }
}

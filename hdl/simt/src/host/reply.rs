//! The words of replies: header, and what a command tells.

use super::identity::{Identity, identify};
use super::judge::{Asked, Verdict};
use super::launch::{Launch, Launched};
use super::progress::Progress;
use super::protocol::{REPLY, STATUS_WORDS};
use super::range::Range;
use super::{HostIn, frame::Frame};
use crate::shape::Shape;
use heddle_hdl::{prelude::*, select};

/// What a reply is made of.
pub struct Reply<'a> {
    pub m: Builder,
    pub s: &'a Shape,
    pub i: &'a HostIn<Signal>,
    pub asked: &'a Asked,
    pub launch: &'a Launch,
}

impl Reply<'_> {
    /// The header.
    pub fn header(&self, verdict: &Verdict) -> Signal {
        let Reply { m, i, asked, launch, .. } = self;
        let flags = cat(&[launch.running.q, i.done, i.fault.valid]).zext(8);
        cat(&[asked.sequence, asked.command, m.lit(REPLY >> 7, 1), verdict.refusal.zext(8), flags])
    }

    /// The word that is taken: of memory, of what is told, or of the buffer, which gave `out`.
    pub fn payload(
        &self,
        identity: Identity,
        progress: &Progress,
        (frame, range): (&Frame, &Range),
        launched: &Launched,
        out: Signal,
    ) -> Signal {
        let Reply { m, s, i, asked, .. } = self;
        let pointer = frame.pointer.q;
        let told = select(&identify(s, identity).map(|word| m.lit(word, 32)), pointer.slice(0, 3));
        let status = select(&self.status(launched), pointer.slice(0, 4));
        let bank = range.address.q.slice(0, s.lanes.ilog2().max(1));
        let in_memory = i.line.map(|line| if s.lanes == 1 { line } else { line.select(bank, 32) });
        let asks_memory = asked.reads | progress.summing.q;
        // A counter has two words, the low one first.
        let counted = asked.counters.zip(i.counts).map(|(asks, counts)| {
            let counters = counts.leaves();
            let words = counters.iter().flat_map(|counter| [counter.slice(0, 32), counter.from_bit(32).zext(32)]);
            let words: Vec<Signal> = words.collect();
            (asks, select(&words, pointer.slice(0, index_width(words.len() as u32))))
        });
        let other = pick([(asked.identifies, told), (asked.tells, status)].into_iter().chain(counted), out);
        in_memory.map_or(other, |line| asks_memory.mux(line, other))
    }

    /// The words of the status.
    fn status(&self, launched: &Launched) -> [Signal; STATUS_WORDS as usize] {
        let Reply { m, i, launch, .. } = self;
        let (fault, failed) = (i.fault, launched.failed);
        let kinds = cat(&[launch.running.q, i.done, fault.valid, failed.any, fault.cause]);
        let address_of = |pc: Signal| cat(&[m.lit(0u32, 2), pc]).zext(32);
        let mask = fault.mask.zext(64);
        [
            cat(&[launch.launches.q, kinds, fault.slot.zext(8), m.lit(0u32, 8)]),
            address_of(fault.pc),
            mask.slice(0, 32),
            mask.slice(32, 32),
            fault.address,
            failed.count,
            failed.thread,
            failed.code,
            launch.cycles.q.slice(0, 32),
            launch.cycles.q.from_bit(32).zext(32),
        ]
    }
}

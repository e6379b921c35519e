//! Where a line of memory lies in the cache.

use crate::shape::{Cache, Shape};
use heddle_hdl::prelude::*;

/// The parts of a line's number. Sets and beats have a bit even if there is only one.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Parts<T> {
    pub beat: T,
    pub set: T,
    pub tag: T,
}

/// The bits of the parts of a line's number.
pub struct Geometry {
    pub beat: Width,
    pub set: Width,
    pub way: Width,
    pub tag: Width,
}

impl Geometry {
    pub fn new(s: &Shape, c: &Cache) -> Geometry {
        let (beat, set) = (c.line.ilog2(), (c.size / (c.ways * c.line * 4 * s.lanes)).ilog2());
        Geometry { beat, set, way: c.ways.ilog2(), tag: s.line_bits() - beat - set }
    }

    pub fn parts(&self, line: Signal) -> Parts<Signal> {
        let part = |low, width| if width == 0 { line.bit(0).literal(0u32) } else { line.slice(low, width) };
        Parts { beat: part(0, self.beat), set: part(self.beat, self.set), tag: line.from_bit(self.beat + self.set) }
    }

    pub fn line(&self, p: Parts<Signal>) -> Signal {
        cat(&[self.low(p), vec![p.tag]].concat())
    }

    /// The place of a beat in the banks.
    pub fn place(&self, p: Parts<Signal>, way: Signal) -> Signal {
        let way = (self.way > 0).then_some(way);
        let bits: Vec<Signal> = self.low(p).into_iter().chain(way).collect();
        if bits.is_empty() { p.set } else { cat(&bits) }
    }

    pub fn place_bits(&self) -> Width {
        (self.beat + self.set + self.way).max(1)
    }

    fn low(&self, p: Parts<Signal>) -> Vec<Signal> {
        [(self.beat, p.beat), (self.set, p.set)].into_iter().filter(|(bits, _)| *bits > 0).map(|(_, p)| p).collect()
    }
}

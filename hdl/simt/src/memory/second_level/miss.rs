//! A line that is on its way from memory: its place, and the cycles until it is there.

use super::super::cache::geometry::Geometry;
use crate::shape::Cache;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MissIn<T> {
    /// What the request at the port asks for.
    pub set: T,
    pub tag: T,
    /// It begins this miss, in this way, and the line is there after so many cycles, at least 1.
    pub begins: T,
    pub way: T,
    pub cycles: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MissOut<T> {
    pub busy: T,
    /// The request at the port asks for this line.
    pub same: T,
    /// Of that request's set, the way of this line; one bit a way.
    pub reserved: T,
    /// The line is there in this cycle: from now on it is as any other.
    pub fills: T,
}

/// Where the line goes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Held<T> {
    set: T,
    tag: T,
    way: T,
}

/// A miss under way, whose line takes up to `2^bits - 1` cycles.
pub fn miss(g: &Geometry, c: &Cache, bits: Width) -> TypedModule<MissIn<Width>, MissOut<Signal>> {
    let way = index_width(c.ways);
    let inputs = MissIn { set: g.set.max(1), tag: g.tag, begins: 1, way, cycles: bits };
    module("second_level_miss", inputs, |m, i| {
        m.doc("A miss of the second level under way.");
        let held = m.pipe_if("held", i.begins, Held { set: i.set, tag: i.tag, way: i.way });
        let busy = m.reg("busy", 1).reset(0u32);
        let left = m.reg("left", bits);
        wire!(fills = busy.q & !left.q.any());
        busy.next((busy.q & !fills) | i.begins);
        left.next_if(i.begins | left.q.any(), i.begins.mux(i.cycles, left.q) - 1);
        m.assert("begins_when_free", !(i.begins & busy.q));
        let here = busy.q & !fills & held.set.eq(i.set);
        let reserved = held.way.decode(c.ways).only_if(here);
        MissOut { busy: busy.q, same: here & held.tag.eq(i.tag), reserved, fills }
    })
}

//! A model of a slower memory: on-chip memory that takes fewer requests and answers later. For simulation only.
//!
//! A request is taken every `interval` cycles at most and takes effect then. Its response comes `latency` cycles later, or up
//! to `jitter` more, drawn for each from a shift register that starts at the seed; so responses overtake each other
//! if there is jitter. Every tag has its place for a response, so as many may be under way as there are tags. One response
//! leaves in a cycle, and those that are due wait in turn.
//!
//! It stands for what is behind a memory controller. Its banks hold all of memory in block RAM, so there is no use in
//! building it: the command line writes no Verilog of it. Lock-step does.

use super::port::{Response, operation};
use super::ram::banks;
use super::{MainIn, MainOut};
use crate::arbiter::{places_above, round_robin};
use crate::shape::{Shape, Timing};
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct DueIn<T> {
    /// A response with this tag begins to wait, for so many cycles, at least 1.
    start: T,
    cycles: T,
    /// It leaves.
    leave: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct DueOut<T> {
    busy: T,
    due: T,
}

/// When the response with one tag is due.
fn due(bits: Width) -> TypedModule<DueIn<Width>, DueOut<Signal>> {
    module("model_due", DueIn { start: 1, cycles: bits, leave: 1 }, |m, DueIn { start, cycles, leave }| {
        m.doc("When the response with one tag is due.");
        let busy = m.reg("busy", 1).reset(0u32);
        busy.next((busy.q & !leave) | start);
        let left = m.reg("left", bits);
        left.next_if(start | left.q.any(), start.mux(cycles, left.q) - 1);
        m.assert("a_tag_is_used_once", !(start & busy.q & !leave));
        DueOut { busy: busy.q, due: busy.q & !left.q.any() }
    })
}

/// The model of a shape's main memory, with the timing `t`.
pub fn model(s: &Shape, t: Timing, tag_bits: Width) -> TypedModule<MainIn<Width>, MainOut<Signal>> {
    module("memory_model", MainIn::shape(s, tag_bits), |m, MainIn { request, response_ready, load, .. }| {
        m.doc("A model of a slower memory, for simulation only.");
        let pause = m.reg("pause", count_width(t.interval - 1)).reset(0u32);
        wire!(request_ready = !pause.q.any());
        wire!(taken = request.valid & request_ready);
        pause.next_if(taken | pause.q.any(), taken.mux(pause.q.literal(t.interval - 1), pause.q - 1));
        let data = banks(m, s, taken, request, load);

        wire!(responds = taken & !request.operation.bit(operation::SILENT));
        let bits = count_width(t.latency + t.jitter);
        let latency = m.lit(t.latency, bits);
        let cycles = if t.jitter == 0 {
            latency
        } else {
            latency + xorshift(m, t.seed, responds).slice(0, count_width(t.jitter)).zext(bits)
        };
        let tags = 1 << tag_bits;
        let leaving = m.deferred("leaving", tags);
        let start = request.tag.decode(tags).only_if(responds);
        let inputs = DueIn { start: each(start), cycles: all(cycles), leave: each(leaving.value) };
        let waiting = m.replicate("due", tags, &due(bits), inputs);

        // What was read in the cycle before is not yet in its place.
        let fresh = m.pipe_reset("fresh", responds);
        let fresh_tag = m.pipe("fresh_tag", request.tag);
        let lines = m.memory("lines", 32 * s.lanes, tag_bits).style(MemoryStyle::Distributed);
        lines.write(fresh, fresh_tag, data);
        let after = m.reg("after", tags).reset(0u32);
        // A response that is shown stays until it is taken.
        let held = m.reg("held", tags).reset(0u32);
        wire!(choice = held.q.any().mux(held.q, round_robin(waiting.due, after.q)));
        held.next(choice.only_if(!response_ready));
        after.next_if(choice.any(), places_above(choice));
        leaving.drive(choice.only_if(response_ready));
        wire!(tag = choice.one_hot_index());
        wire!(is_fresh = fresh & fresh_tag.eq(tag));
        m.cover("overtakes", fresh & choice.any() & !is_fresh);
        m.cover("several_due", (waiting.due & !choice).any());
        MainOut {
            request_ready,
            response: Response { valid: choice.any(), tag, data: is_fresh.mux(data, lines.read(tag)) },
            idle: !(waiting.busy.any() | m.pipe_reset("writing", taken | load.valid)),
            wb: None,
            error: None,
        }
    })
}

/// Marsaglia's xorshift with period 2^32 - 1: no state is followed by one like it. A step whenever `steps`.
pub(super) fn xorshift(m: Builder, seed: u32, steps: Signal) -> Signal {
    let state = m.reg("random", 32).reset(if seed == 0 { !0 } else { seed });
    let a = state.q ^ state.q.shl(m.lit(13u32, 4));
    let b = a ^ a.shr(m.lit(17u32, 5));
    state.next_if(steps, b ^ b.shl(m.lit(5u32, 3)));
    state.q
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Traffic};
    use crate::shape::{Backing, Shape, Timing};

    fn shape(lanes: u32, timing: Timing) -> Shape {
        let backing = Backing::Model(timing);
        Shape { backing, atomics: true, memory: 64 << 10, stack: 64, ..Shape::new(lanes, 1) }
    }

    #[test]
    fn requests_take_effect_in_order() {
        for (k, (latency, jitter, interval)) in
            [(1, 0, 1), (2, 3, 1), (1, 1023, 1), (30, 7, 4), (4096, 0, 256)].into_iter().enumerate()
        {
            let seed = k as u32;
            let s = shape(1 << k, Timing { latency, jitter, interval, seed });
            let mut bench = Bench::new(&s, seed.into());
            bench.run(&Traffic { cycles: 4000, ..Traffic::default() });
        }
    }

    /// With all responses taken at once, each comes within its time, and requests are as far apart as the interval says.
    #[test]
    fn latency_and_interval_are_as_said() {
        for (latency, jitter, interval) in [(1, 0, 1), (5, 0, 1), (9, 0, 4), (20, 15, 16)] {
            let s = Shape { loads: 64, ..shape(2, Timing { latency, jitter, interval, seed: 7 }) };
            let mut bench = Bench::new(&s, 7);
            let measured = bench.run(&Traffic::eager());
            let least = u64::from(latency);
            // Two that are due in one cycle leave one after the other.
            let most = least + u64::from(jitter) + if jitter > 0 { 4 } else { 0 };
            assert_eq!(*measured.latency.start(), least);
            assert!(*measured.latency.end() <= most, "{measured:?}");
            assert!(*measured.latency.end() >= least + u64::from(jitter) / 2, "{measured:?}");
            assert_eq!(measured.cycles, (measured.requests - 1) * u64::from(interval) + 1);
        }
    }

    #[test]
    fn responses_overtake() {
        let s = shape(2, Timing { latency: 2, jitter: 31, interval: 1, seed: 3 });
        let mut bench = Bench::new(&s, 3);
        bench.run(&Traffic::default());
        assert!(bench.t.cover_hits("main.overtakes") > 0 && bench.t.cover_hits("main.several_due") > 0);
    }
}

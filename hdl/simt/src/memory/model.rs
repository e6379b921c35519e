//! A model of a slower memory: on-chip memory that takes fewer requests and answers later. For simulation only.
//!
//! A request is taken every `interval` cycles at most and takes effect then. Its response comes `latency` cycles later,
//! or up to `jitter` more, drawn for each from a shift register that starts at the seed; so responses overtake each
//! other if there is jitter. Every tag has its place for a response, so as many may be under way as there are tags. One
//! response leaves in a cycle, and those that are due wait in turn. The host may set seed and jitter ([`SetJitter`]),
//! so that one build serves many draws.
//!
//! Behind a [second level](mod@super::second_level), all of this is about what it brings in: `latency` and `jitter` are
//! a line's, `interval` is the channel's, and the second level says which requests are taken and which responses are due.
//!
//! It stands for what is behind a memory controller. Its banks hold all of memory in block RAM, so there is no use in
//! building it: the command line writes no Verilog of it. Lock-step does.

use super::port::{Operation, Request, Response};
use super::ram::banks;
use super::second_level::{SecondLevelIn, second_level};
use super::{MainIn, MainOut};
use crate::arbiter::{places_above, round_robin};
use crate::shape::{SecondLevel, Shape, Timing};
use heddle_hdl::{all, each, prelude::*};

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

/// When requests are taken, and when their responses are due.
struct Times {
    /// 1 bit each: a request would be taken; it is; nothing is under way.
    ready: Signal,
    taken: Signal,
    idle: Signal,
    /// One bit a tag: the response is due, until it leaves.
    due: Signal,
}

/// Those of memory alone: a request every `interval` cycles, a response after `latency`. One bit a tag says which
/// response is `leaving`.
fn direct(m: Builder, t: Timing, request: &Request<Signal>, set: Option<SetJitter<Signal>>, leaving: Signal) -> Times {
    let pause = m.reg("pause", count_width(t.interval - 1)).reset(0u32);
    wire!(request_ready = !pause.q.any());
    wire!(taken = request.valid & request_ready);
    pause.next_if(taken | pause.q.any(), taken.mux(pause.q.literal(t.interval - 1), pause.q - 1));
    wire!(responds = taken & !request.operation.bit(Operation::SILENT));
    let cycles = cycles(m, t, set, responds);
    let tags = leaving.width();
    let start = request.tag.decode(tags).only_if(responds);
    let inputs = DueIn { start: each(start), cycles: all(cycles), leave: each(leaving) };
    let waiting = m.replicate("due", tags, &due(cycles.width()), inputs);
    Times { ready: request_ready, taken, idle: !waiting.busy.any(), due: waiting.due }
}

/// Those of memory behind a second level, which forgets all at a `restart`.
fn behind(
    m: Builder,
    (s, l, t): (&Shape, &SecondLevel, Timing),
    request: &Request<Signal>,
    (set, restart): (Option<SetJitter<Signal>>, Signal),
    leaving: Signal,
) -> Times {
    let fetches = m.deferred("fetches", 1);
    let cycles = cycles(m, t, set, fetches.value);
    let &Request { valid, operation, tag, line, enables, .. } = request;
    let inputs = SecondLevelIn { restart, valid, operation, tag, line, enables, memory: cycles, leave: leaving };
    let shape = SecondLevelIn::shape(s, tag.width(), cycles.width());
    let out = m.instance("second_level", &second_level(s, l, t, shape), inputs);
    fetches.drive(out.fetches);
    wire!(taken = valid & out.ready);
    Times { ready: out.ready, taken, idle: out.idle, due: out.due }
}

/// Cycles that memory takes to a line or response that it begins to bring now; the random part is drawn anew after each
/// that it `brings`.
fn cycles(m: Builder, t: Timing, set: Option<SetJitter<Signal>>, brings: Signal) -> Signal {
    let bits = count_width(t.latency + t.jitter);
    let latency = m.lit(t.latency, bits);
    let Some(set) = set else { return latency };
    let Jitter { random, most } = jitter(m, t, set, brings);
    latency + (random.slice(0, most.width()) & most).zext(bits)
}

/// The model of a shape's main memory, with the timing `t`.
pub fn model(s: &Shape, t: Timing, inputs: MainIn<Width>) -> TypedModule<MainIn<Width>, MainOut<Signal>> {
    let tag_bits = inputs.request.tag;
    module("memory_model", inputs, |m, i| {
        let MainIn { request, response_ready, load, set_jitter, restart, .. } = i;
        m.doc("A model of a slower memory, for simulation only.");
        let tags = 1 << tag_bits;
        let leaving = m.deferred("leaving", tags);
        let times = match s.second_level.as_ref().zip(restart) {
            None => direct(m, t, &request, set_jitter, leaving.value),
            Some((l, restart)) => behind(m, (s, l, t), &request, (set_jitter, restart), leaving.value),
        };
        let taken = times.taken;
        let data = banks(m, s, taken, request, load);

        // What was read in the cycle before is not yet in its place.
        let fresh = m.pipe_reset("fresh", taken & !request.operation.bit(Operation::SILENT));
        let fresh_tag = m.pipe("fresh_tag", request.tag);
        let lines = m.memory("lines", 32 * s.lanes, tag_bits).style(MemoryStyle::Distributed);
        lines.write(fresh, fresh_tag, data);
        let after = m.reg("after", tags).reset(0u32);
        // A response that is shown stays until it is taken.
        let held = m.reg("held", tags).reset(0u32);
        wire!(choice = held.q.any().mux(held.q, round_robin(times.due, after.q)));
        held.next(choice.only_if(!response_ready));
        after.next_if(choice.any(), places_above(choice));
        leaving.drive(choice.only_if(response_ready));
        wire!(tag = choice.one_hot_index());
        wire!(is_fresh = fresh & fresh_tag.eq(tag));
        m.cover("overtakes", fresh & choice.any() & !is_fresh);
        m.cover("several_due", (times.due & !choice).any());
        MainOut {
            request_ready: times.ready,
            response: Response { valid: choice.any(), tag, data: is_fresh.mux(data, lines.read(tag)) },
            idle: times.idle & !m.pipe_reset("writing", taken | load.valid),
            loaded: load.read.map(|_| data),
            wb: None,
            error: None,
        }
    })
}

/// Puts another seed and another jitter in place of the timing's, while nothing is under way.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SetJitter<T> {
    pub valid: T,
    /// 32 bits.
    pub seed: T,
    /// Random cycles at most: 0 or a power of two less 1, as wide as the jitter that is built.
    pub jitter: T,
}

impl SetJitter<Width> {
    /// What a timing has to set: nothing without jitter.
    pub fn shape(t: Timing) -> Option<SetJitter<Width>> {
        (t.jitter > 0).then(|| SetJitter { valid: 1, seed: 32, jitter: count_width(t.jitter) })
    }
}

/// A source of random cycles.
#[derive(Clone, Copy)]
pub(super) struct Jitter {
    /// 32 bits.
    pub random: Signal,
    /// The bits of a random number that count.
    pub most: Signal,
}

/// Marsaglia's xorshift with period 2^32 - 1: no state is followed by one like it. A step whenever `steps`.
pub(super) fn jitter(m: Builder, t: Timing, set: SetJitter<Signal>, steps: Signal) -> Jitter {
    let most = m.reg("jitter", set.jitter.width()).reset(t.jitter);
    most.next_if(set.valid, set.jitter);
    let state = m.reg("random", 32).reset(if t.seed == 0 { !0 } else { t.seed });
    let a = state.q ^ state.q.shl(m.lit(13u32, 4));
    let b = a ^ a.shr(m.lit(17u32, 5));
    // From 0 it would never come away.
    let seed = set.seed.any().mux(set.seed, set.seed.literal(!0u32));
    state.next_if(steps | set.valid, set.valid.mux(seed, b ^ b.shl(m.lit(5u32, 3))));
    Jitter { random: state.q, most: most.q }
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

    /// With all responses taken at once, each comes within its time, and requests are as far apart as the interval
    /// says.
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

    /// Of the same traffic, the cycles of every response.
    #[test]
    fn seed_and_jitter_that_the_host_sets_are_as_if_built() {
        let times = |built: (u32, u32), set: Option<(u32, u32)>| {
            let (jitter, seed) = built;
            let mut bench = Bench::new(&shape(2, Timing { latency: 5, jitter, interval: 1, seed }), 9);
            match set {
                Some((jitter, seed)) => bench.set_jitter(seed, jitter),
                None => bench.t.steps(1),
            }
            bench.run(&Traffic::eager()).responses
        };
        let built = times((31, 7), None);
        assert_eq!(times((31, 3), Some((31, 7))), built);
        assert_ne!(times((31, 7), Some((31, 3))), built);
        assert_eq!(times((31, 3), Some((7, 7))), times((7, 7), None));
        assert_eq!(times((31, 3), Some((0, 7))), times((0, 7), None));
        assert_eq!(times((31, 3), Some((31, 0))), times((31, 0), None));
    }

    #[test]
    fn responses_overtake() {
        let s = shape(2, Timing { latency: 2, jitter: 31, interval: 1, seed: 3 });
        let mut bench = Bench::new(&s, 3);
        bench.run(&Traffic::default());
        assert!(bench.t.cover_hits("main.overtakes") > 0 && bench.t.cover_hits("main.several_due") > 0);
    }
}

use super::*;
use heddle_hdl::{Collision, Signal, TypedModule, cat, each, module};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Word<T> {
    enable: T,
    address: T,
    data: T,
}

#[derive(Bundle, Clone, PartialEq, Debug)]
struct Reads<T> {
    now: T,
    earlier: T,
    later: T,
}

/// An input and an output of one signal.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct X<T> {
    x: T,
}
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Y<T> {
    y: T,
}

/// 16 words of 8 bits in two granules; one asynchronous and two synchronous reads of the written address.
fn memory() -> TypedModule<Word<Width>, Reads<Signal>> {
    module("memory", Word { enable: 2, address: 4, data: 8 }, |m, i| {
        let ram = m.memory("ram", 8, 4);
        ram.write_granules(i.enable, i.address, i.data);
        let now = ram.read(i.address);
        let earlier = ram.read_sync(i.address, Collision::ReadOld);
        let later = ram.read_sync_if(i.enable.any(), i.address, Collision::ReadNew);
        Reads { now, earlier, later }
    })
}

fn word(enable: u32, address: u32, data: u32) -> Word<Bits> {
    Word { enable: enable.into(), address: address.into(), data: data.into() }
}

#[test]
fn reads_and_writes_meet_at_an_edge() {
    let mut t = Sim::new(&memory().check().unwrap());
    t.memory_write("ram", 5, 0x21u32);
    t.poke(word(0b01, 5, 0x43));
    assert_eq!(t.peek().now, 0x21);
    t.step();
    let got = t.peek();
    assert_eq!((got.now, got.earlier, got.later), (0x23u32.into(), 0x21u32.into(), 0x23u32.into()));
    t.poke(word(0b00, 5, 0xff));
    t.memory_write("ram", 5, 0x77u32);
    t.step();
    let got = t.peek();
    assert_eq!(got.earlier, 0x77);
    assert_eq!(got.later, 0x23, "not enabled: the old data stays");
    assert_eq!(t.memory_read("ram", 5), 0x77);
}

#[test]
fn what_is_not_read_is_zero() {
    let described = |m: heddle_hdl::Builder, i: Word<Signal>| {
        let ram = m.memory("ram", 8, 4);
        ram.write_granules(i.enable, i.address, i.data);
        let apart = ram.read_sync_or_zero(!i.enable.any(), i.address, Collision::Never);
        let new = ram.read_sync_or_zero(i.address.bit(0), i.address, Collision::ReadNew);
        Y { y: cat(&[apart, new]) }
    };
    let design = module("or_zero", Word { enable: 2, address: 4, data: 8 }, described);
    let mut t = Sim::new(&design.check().unwrap());
    t.memory_write("ram", 5, 0x21u32);
    let mut reads = |enable, address, data| {
        t.poke(word(enable, address, data));
        t.step();
        (t.peek().y.low_u64() & 0xFF, t.peek().y.low_u64() >> 8)
    };
    assert_eq!(
        [reads(0b00, 5, 0x43), reads(0b11, 5, 0x43), reads(0b00, 5, 0)],
        [(0x21, 0x21), (0, 0x43), (0x43, 0x43)]
    );
    assert_eq!([reads(0b11, 4, 0x55), reads(0b00, 4, 0)], [(0, 0), (0x55, 0)]);
}

#[test]
fn reset_gates_writes() {
    let mut t = Sim::new(&memory().check().unwrap());
    t.memory_write("ram", 5, 0x21u32);
    t.poke(word(0b11, 5, 0x43));
    t.reset();
    assert_eq!(t.memory_read("ram", 5), 0x21);
    assert_eq!(t.peek().later, 0x21, "reset does not stop a read");
    t.step();
    assert_eq!(t.memory_read("ram", 5), 0x43);
}

#[test]
fn the_later_port_wins() {
    let two = module("two", X { x: 16 }, |m, X { x }| {
        let (a, b) = (x.slice(0, 8), x.slice(8, 8));
        let ram = m.memory("ram", 8, 1);
        let (on, zero) = (m.lit(1u32, 1), m.lit(0u32, 1));
        ram.write(on, zero, a);
        ram.write_granules(m.lit(0b10u32, 2), zero, b);
        Y { y: ram.read(zero) }
    });
    let mut t = Sim::new(&two.check().unwrap());
    t.poke(X { x: 0x3412u32.into() });
    t.step();
    assert_eq!(t.peek().y, 0x32);
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Counted<T> {
    with_reset: T,
    without: T,
}

/// Two counters: one with a reset, one without.
fn counters() -> TypedModule<X<Width>, Counted<Signal>> {
    module("counters", X { x: 1 }, |m, X { x: enable }| {
        let a = m.reg("a", 40).reset(7u32);
        let b = m.reg("b", 100);
        a.next_if(enable, a.q + 1);
        b.next_if(enable, b.q + 1);
        m.assert("a_below_10", a.q.lt(10u32));
        m.cover("a_is_8", a.q.eq(8u32));
        Counted { with_reset: a.q, without: b.q }
    })
}

#[test]
fn seeds_differ_until_reset_and_only_where_there_is_no_reset() {
    let design = counters().check().unwrap();
    let run = |seed| {
        let mut t = Sim::with(&design, &Options { seed, ..Options::default() });
        t.poke(X { x: Bits::ZERO });
        let start = t.peek();
        t.reset();
        (start, t.peek())
    };
    let ((start1, after1), (start2, after2)) = (run(1), run(2));
    assert_eq!(run(1), (start1.clone(), after1.clone()), "one seed, one run");
    assert_ne!(start1.with_reset, start2.with_reset);
    assert_ne!(start1.without, start2.without);
    assert_eq!(after1.with_reset, 7);
    assert_eq!(after2.with_reset, 7);
    assert_ne!(after1.without, after2.without);
}

#[cfg(feature = "jit")] // the interpreter looks at all
#[test]
fn properties_that_are_not_looked_at_neither_fail_nor_count() {
    use crate::Checks;
    let design = counters().check().unwrap();
    for (checks, fails, hits) in [(Checks::None, false, 0), (Checks::Assertions, true, 0), (Checks::All, true, 1)] {
        let mut t = Sim::with(&design, &Options { checks, ..Options::default() });
        t.poke(X { x: Bits::from(true) });
        t.reset();
        t.steps(3);
        assert_eq!(t.try_step().is_err(), fails, "{checks:?}");
        assert_eq!(t.cover_hits("a_is_8"), hits, "{checks:?}");
    }
}

#[test]
fn a_failed_assertion_is_named_once() {
    let mut t = Sim::new(&counters().check().unwrap());
    t.poke(X { x: Bits::from(true) });
    t.reset();
    t.steps(3);
    let error = t.try_step().unwrap_err().to_string();
    assert_eq!(error, "assertion `a_below_10` failed in cycle 4 (seed 1)");
    t.step();
    assert_eq!(t.cover_hits("a_is_8"), 1);
    assert_eq!(t.cycle(), 6);
}

#[test]
fn a_run_ends_at_the_edge_where_the_output_is_on() {
    let done = module("done", X { x: 1 }, |m, _| {
        let count = m.reg("count", 8).reset(0u32);
        count.next(count.q + 1);
        Y { y: count.q.eq(20u32) }
    });
    let mut t = Sim::new(&done.check().unwrap());
    t.poke(X { x: Bits::ZERO });
    t.reset();
    assert_eq!(t.run_until("y", 100), 21);
    assert_eq!(t.register("count"), 21);
}

#[test]
#[should_panic(expected = "input `address` has 4 bits, and 0x10 does not fit")]
fn a_value_that_does_not_fit_is_refused() {
    Sim::new(&memory().check().unwrap()).poke(word(0, 16, 0));
}

#[derive(Bundle, Clone, Copy)]
struct Lane<T> {
    x: T,
    carry: T,
}

/// Prefix sums by a chain from lane to lane; a probe in each lane.
#[test]
fn lanes_may_feed_each_other() {
    let lane = module("adder", Lane { x: 4, carry: 4 }, |m, i| {
        m.probe("carry_in", i.carry);
        Y { y: i.x + i.carry }
    });
    let chain = module("chain", X { x: 16 }, |m, X { x }| {
        let carries = m.deferred("carries", 16);
        let sums = m.replicate("lane", 4, &lane, Lane { x: each(x), carry: each(carries.value) });
        carries.drive(cat(&[m.lit(0u32, 4), sums.y.slice(0, 12)]));
        sums
    });
    let mut t = Sim::new(&chain.check().unwrap());
    t.poke(X { x: Bits::from(0x4321u32) });
    assert_eq!(t.peek().y, 0xa631);
    assert_eq!(t.probe("lane[2].carry_in"), 3);
}

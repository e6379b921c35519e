use super::super::port::Operation;
use super::super::testing::{Bench, Traffic, mixed_traffic};
use super::*;
use crate::shape::{Backing, Cache};
use heddle_sim::Sim;
use heddle_sim::simulation::Options;
use std::collections::HashMap;

fn level(size: u32, ways: u32, line: u32, misses: u32, latency: u32) -> SecondLevel {
    SecondLevel { cache: Cache { size, ways, line, misses }, latency }
}

fn timing(latency: u32, jitter: u32, interval: u32) -> Timing {
    Timing { latency, jitter, interval, seed: 5 }
}

fn shape(lanes: u32, l: SecondLevel, t: Timing) -> Shape {
    let memory = (64 << 10u32).max(2 * l.cache.size);
    Shape { second_level: Some(l), backing: Backing::Model(t), memory, stack: 64, ..Shape::new(lanes, 1) }
}

/// The block alone, whose responses leave in the cycle in which they are due.
struct Block {
    t: Sim<SecondLevelIn<Width>, SecondLevelOut<Signal>>,
    cycle: u64,
    /// By tag: the cycle in which the response was due.
    due: HashMap<u32, u64>,
}

/// What is asked for in a cycle.
#[derive(Clone, Copy)]
struct Ask {
    operation: Operation,
    tag: u32,
    line: u32,
    /// All bytes of the line.
    whole: bool,
}

fn load(tag: u32, line: u32) -> Ask {
    Ask { operation: Operation::Load, tag, line, whole: true }
}

fn store(line: u32, whole: bool) -> Ask {
    Ask { operation: Operation::Store, tag: 0, line, whole }
}

/// Cycles that memory takes where a test does not say otherwise.
const MEMORY: u32 = 30;

impl Block {
    fn new(s: &Shape, seed: u64) -> Block {
        s.check().unwrap();
        let (l, t) = (s.second_level.unwrap(), s.modelled().unwrap());
        let inputs = SecondLevelIn::shape(s, index_width(s.loads), 8);
        let design = second_level(s, &l, t, inputs).check().unwrap();
        let mut t = Sim::with(&design, &Options { seed, ..Options::default() });
        t.reset();
        Block { t, cycle: 0, due: HashMap::new() }
    }

    /// A cycle; whether the request was taken.
    fn step(&mut self, ask: Option<Ask>, restart: bool, memory: u32) -> bool {
        let Ask { operation, tag, line, whole } = ask.unwrap_or(load(0, 0));
        let inputs = |leave: Bits| SecondLevelIn {
            restart: restart.into(),
            valid: ask.is_some().into(),
            operation: operation.into(),
            tag: tag.into(),
            line: line.into(),
            enables: if whole { !0u32 >> 24 } else { 15 }.into(),
            memory: memory.into(),
            leave,
        };
        self.t.poke(inputs(Bits::ZERO));
        let out = self.t.peek();
        for tag in (0..).take(64).filter(|&tag| out.due.bit(tag)) {
            assert!(self.due.insert(tag, self.cycle).is_none(), "cycle {}: tag {tag} is due again", self.cycle);
        }
        self.t.poke(inputs(out.due));
        self.t.step();
        self.cycle += 1;
        ask.is_some() && out.ready == 1
    }

    /// Asks until it is taken, and says when that was.
    fn ask(&mut self, ask: Ask) -> u64 {
        (0..1000).find(|_| self.step(Some(ask), false, MEMORY)).expect("a request is taken some time");
        self.cycle - 1
    }

    /// Cycles from a request, alone, to its response.
    fn latency(&mut self, line: u32) -> u64 {
        self.quiet();
        let taken = self.ask(load(0, line));
        self.quiet();
        self.due.remove(&0).expect("it was answered") - taken
    }

    /// Until all has come.
    fn quiet(&mut self) {
        (0..1000).find(|_| {
            self.step(None, false, MEMORY);
            self.t.peek().idle == 1
        });
    }
}

/// Of one set with two ways; a hit takes 5 cycles, a miss 35; the channel a line every 4.
fn two_ways(misses: u32) -> Block {
    Block::new(&shape(2, level(16, 2, 1, misses, 5), timing(MEMORY, 0, 4)), 1)
}

const HIT: u64 = 5;
const MISS: u64 = 5 + MEMORY as u64;

#[test]
fn a_miss_takes_the_latency_of_both_and_a_hit_that_of_the_second_level() {
    let mut b = two_ways(4);
    assert_eq!([b.latency(1), b.latency(1), b.latency(2), b.latency(1), b.latency(2)], [MISS, HIT, MISS, HIT, HIT]);
}

#[test]
fn the_least_recently_used_line_is_replaced() {
    let mut b = two_ways(4);
    let lines = [1, 2, 1, 3, 1, 2, 3];
    assert_eq!(lines.map(|line| b.latency(line)), [MISS, MISS, HIT, MISS, HIT, MISS, MISS]);
}

#[test]
fn a_launch_forgets_all() {
    let mut b = two_ways(4);
    assert_eq!([b.latency(1), b.latency(1)], [MISS, HIT]);
    b.quiet();
    b.step(None, true, MEMORY);
    assert_eq!([b.latency(1), b.latency(1)], [MISS, HIT]);
}

/// A request to a line that is on its way has the line when it is there, and not before a hit would.
#[test]
fn requests_join_a_miss() {
    let mut b = two_ways(4);
    let first = b.ask(load(0, 1));
    let second = b.ask(load(1, 1));
    for _ in second..first + MISS - 2 {
        b.step(None, false, MEMORY);
    }
    let third = b.ask(load(2, 1));
    assert_eq!(third, first + MISS - 1);
    b.quiet();
    assert_eq!((b.due[&0], b.due[&1], b.due[&2]), (first + MISS, first + MISS, third + HIT));
}

/// Misses take the channel one after the other; hits pass them.
#[test]
fn misses_wait_for_the_channel() {
    let mut b = Block::new(&shape(2, level(64, 8, 1, 4, 5), timing(MEMORY, 0, 4)), 1);
    b.latency(9);
    b.quiet();
    let first = b.ask(load(0, 1));
    b.ask(load(1, 2));
    b.ask(load(2, 3));
    let hit = b.ask(load(3, 9));
    assert_eq!(hit, first + 3);
    b.quiet();
    assert_eq!([0, 1, 2].map(|tag| b.due[&tag] - first), [MISS, MISS + 4, MISS + 8]);
    assert_eq!(b.due[&3] - hit, HIT);
}

/// Of a cache line of 4 memory lines, the channel carries all.
#[test]
fn a_longer_line_takes_the_channel_longer() {
    let mut b = Block::new(&shape(2, level(256, 2, 4, 4, 5), timing(MEMORY, 0, 4)), 1);
    assert_eq!([b.latency(5), b.latency(6), b.latency(4)], [MISS + 12, HIT, HIT]);
    b.quiet();
    let first = b.ask(load(0, 16));
    b.ask(load(1, 32));
    b.quiet();
    assert_eq!([0, 1].map(|tag| b.due[&tag] - first), [MISS + 12, MISS + 28]);
}

/// With two misses under way, the third waits until the cycle after the first is there.
#[test]
fn a_miss_waits_while_all_are_under_way() {
    let mut b = Block::new(&shape(2, level(64, 8, 1, 2, 5), timing(MEMORY, 0, 4)), 1);
    let first = b.ask(load(0, 1));
    b.ask(load(1, 2));
    assert_eq!(b.ask(load(2, 3)), first + MISS + 1);
    assert!(b.t.cover_hits("all_misses_under_way") > 0);
}

/// Both ways wait for their lines: nothing replaces them.
#[test]
fn a_line_on_its_way_is_not_replaced() {
    let mut b = two_ways(4);
    let first = b.ask(load(0, 1));
    b.ask(load(1, 2));
    assert_eq!(b.ask(load(2, 3)), first + MISS);
    assert!(b.t.cover_hits("victim_reserved") > 0);
}

/// A store of a part of a line brings it in; one of all of it does not, and needs no miss. What is written goes back
/// over the channel, behind the line that comes in its place.
#[test]
fn what_was_stored_is_written_back() {
    let mut b = two_ways(4);
    for whole in [false, true] {
        b.ask(store(1, whole));
        b.quiet();
        assert_eq!([b.latency(1), b.latency(2)], [HIT, MISS], "whole: {whole}");
        b.quiet();
        let first = b.ask(load(0, 3));
        b.ask(load(1, 4));
        b.quiet();
        // Line 1 was written, line 2 was not.
        assert_eq!([0, 1].map(|tag| b.due.remove(&tag).unwrap() - first), [MISS, MISS + 8], "whole: {whole}");
        assert_eq!([b.latency(3), b.latency(4)], [HIT, HIT]);
    }
    // No store waits for a miss. The fourth has line 2 written back behind line 1; with one miss, that is all for which the
    // channel has room, so the fifth waits until line 2 is on it, and the sixth for a line more.
    let mut b = two_ways(1);
    let taken: Vec<u64> = (1..7).map(|line| b.ask(store(line, true))).collect();
    assert_eq!(taken, [0, 1, 2, 3, 7, 11]);
}

/// The same as a list of what was used last, and of what is under way until when.
struct Plain {
    l: SecondLevel,
    interval: u64,
    sets: Vec<Vec<(u32, bool)>>,
    /// Cache lines under way, and when each is there.
    under_way: Vec<(u32, u64)>,
    channel_free: u64,
}

impl Plain {
    /// Nothing if it is not taken; else when its response is due, if it has one.
    fn ask(&mut self, now: u64, ask: Ask, memory: u32) -> Option<Option<u64>> {
        let SecondLevel { cache, latency } = self.l;
        let line = ask.line / cache.line;
        let number = line as usize % self.sets.len();
        let set = &mut self.sets[number];
        self.under_way.retain(|(_, there)| *there >= now);
        let comes = |line| self.under_way.iter().find(|&&(other, there)| other == line && there > now).map(|of| of.1);
        let writes = ask.operation != Operation::Load;
        let hit = now + u64::from(latency);
        let due = match set.iter().position(|(other, _)| *other == line) {
            Some(place) => {
                let (_, dirty) = set.remove(place);
                set.insert(0, (line, dirty || writes));
                comes(line).map_or(hit, |there| there.max(hit))
            }
            None => {
                let old = if set.len() == cache.ways as usize { set.last().copied() } else { None };
                let whole = cache.line == 1 && ask.whole && ask.operation == Operation::Store;
                let line_time = u64::from(cache.line) * self.interval;
                let wait = self.channel_free.saturating_sub(now);
                let write_back = old.is_some_and(|(_, dirty)| dirty);
                let room = match whole {
                    true => !write_back || wait < u64::from(cache.misses) * line_time,
                    false => self.under_way.len() < cache.misses as usize,
                };
                if !room || old.is_some_and(|(old, _)| comes(old).is_some()) {
                    return None;
                }
                set.truncate(cache.ways as usize - 1);
                set.insert(0, (line, writes));
                self.channel_free = now + wait + line_time * (u64::from(!whole) + u64::from(write_back));
                let there = hit + wait + u64::from(cache.line - 1) * self.interval + u64::from(memory);
                if !whole {
                    self.under_way.push((line, there));
                }
                there
            }
        };
        Some(ask.operation.answers().then_some(due))
    }
}

/// Random requests, each taken and answered in the very cycle in which the plain list says so.
#[test]
fn every_request_takes_the_time_that_a_plain_list_says() {
    for (k, (l, interval)) in [
        (level(16, 2, 1, 4, 3), 1),
        (level(8, 1, 1, 1, 1), 1),
        (level(128, 4, 2, 2, 7), 2),
        (level(64, 8, 1, 8, 2), 5),
        (level(512, 64, 1, 4, 20), 1),
        (level(256, 2, 4, 16, 4), 3),
    ]
    .into_iter()
    .enumerate()
    {
        let mut b = Block::new(&Shape { loads: 8, ..shape(2, l, timing(1, 0, interval)) }, k as u64);
        let sets = (l.cache.size / (l.cache.ways * l.cache.line * 8)) as usize;
        let mut plain =
            Plain { l, interval: interval.into(), sets: vec![vec![]; sets], under_way: vec![], channel_free: 0 };
        let mut r = fastrand::Rng::with_seed(k as u64);
        let mut expected: HashMap<u32, u64> = HashMap::new();
        let lines = 2 * l.cache.size / 8;
        let mut ask = None;
        for _ in 0..20_000 {
            let free: Vec<u32> = (0..8).filter(|tag| !expected.contains_key(tag)).collect();
            if ask.is_none() && r.u8(..8) < 6 {
                let operation = *r.choice(Operation::ALL).unwrap();
                let tag = r.choice(&free).copied();
                ask = tag.map(|tag| Ask { operation, tag, line: r.u32(..lines), whole: r.bool() });
            }
            let memory = r.u32(1..64);
            let due = ask.and_then(|ask| plain.ask(b.cycle, ask, memory));
            let taken = b.step(ask, false, memory);
            assert_eq!(taken, due.is_some(), "{l:?}, cycle {}", b.cycle);
            if let Some((ask, due)) = ask.take_if(|_| taken).zip(due.flatten()) {
                expected.insert(ask.tag, due);
            }
            for (tag, due) in b.due.drain() {
                assert_eq!(expected.remove(&tag), Some(due), "{l:?}, cycle {}: tag {tag}", b.cycle);
            }
            assert!(expected.values().all(|due| *due >= b.cycle), "{l:?}, cycle {}: a response is late", b.cycle);
        }
        for cover in ["hit_under_a_miss", "joined", "written_back", "waits_for_the_channel"] {
            let possible = l.cache.misses > 1 || !matches!(cover, "hit_under_a_miss" | "waits_for_the_channel");
            assert!(!possible || b.t.cover_hits(cover) > 0, "{l:?}: {cover}");
        }
    }
}

/// Before all kinds of cores: data are right, with and without a first level, with and without atomic operations.
#[test]
fn requests_take_effect_in_order() {
    let first = |size, ways, line, misses| Some(Cache { size, ways, line, misses });
    let shapes = [
        shape(1, level(16, 2, 2, 1, 1), timing(1, 0, 1)),
        shape(2, level(256, 4, 1, 4, 10), timing(50, 31, 2)),
        Shape { cache: first(64, 2, 1, 2), ..shape(2, level(256, 4, 1, 4, 10), timing(50, 31, 2)) },
        Shape { cache: first(256, 4, 4, 4), ..shape(4, level(2048, 2, 2, 8, 5), timing(9, 0, 4)) },
        Shape { cache: first(256, 2, 1, 4), ..shape(4, level(1024, 64, 1, 64, 5), timing(9, 3, 1)) },
        Shape { atomics: false, ..shape(8, level(512, 1, 2, 2, 3), timing(20, 7, 1)) },
        Shape { loads: 64, ..shape(64, level(8192, 4, 1, 16, 20), timing(100, 15, 4)) },
    ];
    mixed_traffic(&shapes);
}

/// The channel is for what the second level lacks: requests to lines that it has come one a cycle, whatever the interval.
#[test]
fn hits_do_not_wait_for_the_channel() {
    let s = Shape { loads: 64, ..shape(4, level(4096, 4, 1, 4, 6), timing(50, 0, 16)) };
    let mut bench = Bench::new(&s, 1);
    let loads = Traffic { lines: 4, loads: 8, ..Traffic::eager() };
    bench.run(&loads);
    let measured = bench.run(&loads);
    assert_eq!((*measured.latency.start(), *measured.latency.end()), (6, 6));
    assert_eq!(measured.requests, measured.cycles);
}

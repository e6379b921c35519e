//! Random traffic on the memory port, for the tests of everything that has one.

use super::atomic::reference;
use super::model::SetJitter;
use super::port::{Load, Operation, Request};
use super::wishbone::{FromSlave, slave};
use super::{MemorySystemIn, MemorySystemOut, banks, described, memory_system};
use crate::isa::Atomic;
use crate::shape::{Backing, Shape};
use heddle_hdl::prelude::*;
use heddle_sim::Sim;
use heddle_sim::simulation::Options;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// A memory system, and what its memory should hold.
pub struct Bench {
    pub t: Sim<MemorySystemIn<Width>, MemorySystemOut<Signal>>,
    s: Shape,
    r: fastrand::Rng,
    words: Vec<u32>,
    /// By tag: when the request was taken, and the words that somebody wants.
    waiting: HashMap<u32, (u64, Vec<(u32, u32)>)>,
}

/// What is asked for.
pub struct Traffic {
    pub cycles: u32,
    /// Lines in use: few make requests follow each other on one.
    pub lines: u32,
    /// In how many of 8 cycles there is a request, and a response may be taken.
    pub request_odds: u8,
    pub response_odds: u8,
    /// How many of 8 requests are loads, and of those that are not, how many of 8 are atomic.
    pub loads: u8,
    pub atomics: u8,
    /// Of the requests under way, fewer than there are tags.
    pub tags: u32,
    /// Every load is of all words of its line.
    pub whole: bool,
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic {
            cycles: 2000,
            lines: 4,
            request_odds: 7,
            response_odds: 5,
            loads: 3,
            atomics: 4,
            tags: u32::MAX,
            whole: false,
        }
    }
}

impl Traffic {
    /// A request in every cycle, and every response is taken at once.
    pub fn eager() -> Traffic {
        Traffic { request_odds: 8, response_odds: 8, ..Traffic::default() }
    }
}

/// What happened.
#[derive(Debug)]
pub struct Measured {
    pub requests: u64,
    /// To the last request.
    pub cycles: u64,
    /// Cycles from a request to its response.
    pub latency: RangeInclusive<u64>,
    /// When each response came.
    pub responses: Vec<u64>,
}

impl Bench {
    pub fn new(s: &Shape, seed: u64) -> Bench {
        println!("{s:?}, seed {seed}");
        s.check().unwrap();
        let mut t = Sim::with(&simulated(s).check().unwrap(), &Options { seed, ..Options::default() });
        let mut r = fastrand::Rng::with_seed(seed);
        // A request in reset is not answered.
        t.poke_port("request_valid", true);
        t.reset();
        assert_eq!(t.peek().response.valid, 0);
        t.poke_port("request_valid", false);
        let words: Vec<u32> = (0..s.memory / 4).map(|_| r.u32(..)).collect();
        let mut bench = Bench { t, s: s.clone(), r, words, waiting: HashMap::new() };
        bench.fill();
        bench
    }

    /// The host's words: some through the port, unless memory is on a bus, the others as simulations do.
    fn fill(&mut self) {
        for (at, &word) in self.words.iter().enumerate() {
            let banks = banks(&self.s);
            self.t.memory_write(&path(&banks[at % banks.len()]), (at / banks.len()) as u64, word);
        }
        let through_port = if self.s.bus_width().is_some() { 0 } else { 20 };
        for _ in 0..through_port {
            let at = self.r.usize(..self.words.len());
            self.words[at] = self.r.u32(..);
            let load = Load { valid: true.into(), address: (4 * at).into(), word: self.words[at].into(), read: None };
            self.t.poke(MemorySystemIn { load, ..self.quiet() });
            self.t.step();
        }
    }

    fn quiet(&self) -> MemorySystemIn<Bits> {
        inputs(&self.s).map("", &mut |_, _| Bits::ZERO)
    }

    /// As the host does it.
    pub fn set_jitter(&mut self, seed: u32, jitter: u32) {
        let set_jitter = SetJitter { valid: true.into(), seed: seed.into(), jitter: jitter.into() };
        self.t.poke(MemorySystemIn { set_jitter: Some(set_jitter), ..self.quiet() });
        self.t.step();
        self.t.poke(self.quiet());
    }

    /// Requests to random lines; every response has what was there when its request was taken, and at the end memory
    /// holds what it should.
    pub fn run(&mut self, traffic: &Traffic) -> Measured {
        let mut measured =
            Measured { requests: 0, cycles: 0, latency: RangeInclusive::new(u64::MAX, 0), responses: Vec::new() };
        let mut next = None;
        let mut cycle = 0;
        loop {
            let asking = cycle < u64::from(traffic.cycles);
            if next.is_none() && asking && self.r.u8(..8) < traffic.request_odds {
                next = self.request(traffic);
            }
            let asked = next.is_some();
            let request = next.clone().unwrap_or_else(|| self.quiet().request);
            let ready = self.r.u8(..8) < traffic.response_odds;
            self.t.poke(MemorySystemIn { request, response_ready: ready.into(), ..self.quiet() });
            let out = self.t.peek();
            if out.response.valid == 1 && ready {
                let tag = out.response.tag.low_u64() as u32;
                let (since, wanted) =
                    self.waiting.remove(&tag).unwrap_or_else(|| panic!("cycle {cycle}: nobody asked for tag {tag}"));
                for (k, word) in wanted {
                    let got = out.response.data.extract(32 * k, 32).low_u64() as u32;
                    assert_eq!(got, word, "cycle {cycle}: word {k} for tag {tag}, asked for in cycle {since}");
                }
                measured.responses.push(cycle);
                let latency = cycle - since;
                let (least, most) = measured.latency.into_inner();
                measured.latency = least.min(latency)..=most.max(latency);
            }
            if out.request_ready == 1
                && let Some(request) = next.take()
            {
                measured.requests += 1;
                measured.cycles = cycle + 1;
                self.take(cycle, &request);
            }
            if out.idle == 1 && !asking && !asked {
                break;
            }
            assert!(cycle < u64::from(traffic.cycles) + 100_000, "not idle; waiting: {:?}", self.waiting.keys());
            self.t.step();
            cycle += 1;
        }
        assert!(self.waiting.is_empty(), "idle, but tags {:?} wait", self.waiting.keys());
        let banks = banks(&self.s);
        for (at, &word) in self.words.iter().enumerate() {
            let got = self.t.memory_read(&path(&banks[at % banks.len()]), (at / banks.len()) as u64);
            assert_eq!(got, u64::from(word), "word {at} of memory at the end");
        }
        measured
    }

    fn request(&mut self, traffic: &Traffic) -> Option<Request<Bits>> {
        let shape = Request::shape(&self.s);
        let free: Vec<u32> =
            (0..traffic.tags.min(1 << shape.tag)).filter(|tag| !self.waiting.contains_key(tag)).collect();
        let loads = self.r.u8(..8) < traffic.loads;
        let atomic = self.s.atomics && self.r.u8(..8) < traffic.atomics;
        let operation = match (loads, atomic) {
            (true, _) => Operation::Load,
            (_, false) => Operation::Store,
            (_, true) => self.r.choice([Operation::Atomic, Operation::AtomicSilent]).unwrap(),
        };
        let tag = self.r.choice(&free).copied();
        if operation.answers() && tag.is_none() {
            return None;
        }
        let mut random = |bits: Width| {
            let limbs: Vec<u64> = (0..bits.div_ceil(64)).map(|_| self.r.u64(..)).collect();
            Bits::from_limbs(&limbs).extract(0, bits)
        };
        let (mut enables, data) = (random(shape.enables), random(shape.data));
        if operation != Operation::Store {
            let mut whole = vec![0u64; shape.enables.div_ceil(64) as usize];
            for k in (0..self.s.lanes).filter(|k| traffic.whole || enables.bit(4 * k)) {
                whole[(k / 16) as usize] |= 15 << (4 * (k % 16));
            }
            enables = Bits::from_limbs(&whole);
        }
        let function = *self.r.choice(Atomic::ALL).unwrap();
        Some(Request {
            valid: true.into(),
            operation: operation.into(),
            function: function.into(),
            tag: tag.unwrap_or(0).into(),
            // Lines far apart fall on one set of a cache, lines side by side into one of its lines.
            line: self.line(traffic.lines).into(),
            enables,
            data,
        })
    }

    fn line(&mut self, lines: u32) -> u32 {
        let (bits, near) = (self.s.line_bits(), lines.min(8));
        let far = self.r.u32(..(lines / near).max(1));
        (far << bits.saturating_sub(5) | self.r.u32(..near)) & ((1 << bits) - 1)
    }

    /// A request takes effect.
    fn take(&mut self, cycle: u64, request: &Request<Bits>) {
        let operation = Operation::from_bits(&request.operation).expect("every number of 2 bits is one");
        let line = request.line.low_u64() as u32;
        let mut wanted = vec![];
        for k in 0..self.s.lanes {
            let enables = request.enables.extract(4 * k, 4).low_u64();
            let data = request.data.extract(32 * k, 32).low_u64() as u32;
            let word = &mut self.words[(line * self.s.lanes + k) as usize];
            if enables != 0 && operation.answers() {
                wanted.push((k, *word));
            }
            let mask = (0..4).filter(|b| enables >> b & 1 == 1).fold(0, |mask, b| mask | 0xffu32 << (8 * b));
            *word = match operation {
                Operation::Load => *word,
                Operation::Store => (*word & !mask) | (data & mask),
                _ if enables == 15 => {
                    let function = Atomic::from_bits(&request.function).expect("an atomic operation");
                    reference(function, *word, data)
                }
                _ => *word,
            };
        }
        if operation.answers() {
            assert!(self.waiting.insert(request.tag.low_u64() as u32, (cycle, wanted)).is_none());
        }
    }
}

/// The memory of a shape, with a slave on its bus if it has one.
fn simulated(s: &Shape) -> TypedModule<MemorySystemIn<Width>, MemorySystemOut<Signal>> {
    let Backing::Wishbone { width, slave: model } = s.backing else { return memory_system(s, Load::shape(s)) };
    module("memory_system", inputs(s), |m, i| {
        let from_slave = m.deferred("from_slave", FromSlave::shape(width));
        let out = described(m, s, MemorySystemIn { wb: Some(from_slave.value), set_jitter: None, ..i });
        let master = out.wb.expect("a memory system with a bus is its master");
        from_slave.drive(slave::attach(m, s, width, model, master, i.set_jitter));
        MemorySystemOut { wb: None, ..out }
    })
}

/// The host's ports of a memory system with its slave.
fn inputs(s: &Shape) -> MemorySystemIn<Width> {
    let set_jitter = s.simulated_timing().and_then(SetJitter::shape);
    MemorySystemIn { wb: None, set_jitter, ..MemorySystemIn::shape(s) }
}

/// From a path in the system to one in the memory system.
fn path(path: &str) -> String {
    path.strip_prefix("memory.").unwrap_or(path).to_string()
}

/// Requests to few lines and to many, seldom and often, to each of these memories.
pub fn mixed_traffic(shapes: &[Shape]) {
    for (s, seed) in shapes.iter().zip(1..) {
        let mut bench = Bench::new(s, seed);
        for lines in [2, 16, 64] {
            bench.run(&Traffic { lines, ..Traffic::default() });
            bench.run(&Traffic { lines, cycles: 1000, loads: 7, ..Traffic::eager() });
        }
    }
}

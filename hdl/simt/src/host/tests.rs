//! The host against a model of it in software, on random bytes: frames that are right, refused, damaged, cut and
//! doubled.

use super::protocol::{
    Command, Damaged, Decoder, ESCAPE, FLAG, FRAME_WORDS, REPLY, Reason, crc32, encode, feature, state as flags,
};
use super::*;
use crate::divergence::Divergence;
use crate::reconvergence::Reconvergence;
use crate::shape::{Backing, Replay, SlaveModel, Timing};
use crate::testing::cases;
use heddle_sim::Sim;
use heddle_sim::simulation::Options;
use std::collections::{BTreeMap, VecDeque};

const CLOCK_KHZ: u32 = 25_000;

/// What the core is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Core {
    Idle,
    Runs,
    Done,
    Stopped,
}

/// A launch as the core gets it: entry (an instruction's number), blocks, threads of a block, end of the program.
type Launch = (u32, u32, u32, u32);

/// A command in the first word of a frame.
fn header(command: Command) -> u32 {
    (command as u32) << 8
}

/// The host, and around it a memory and a core that does nothing by itself.
struct Bench {
    t: Sim<HostIn<Width>, HostOut<Signal>>,
    s: Shape,
    r: fastrand::Rng,
    /// In how many of 8 cycles there is a byte, and one is taken.
    odds: (u8, u8),
    memory: Vec<u32>,
    side: BTreeMap<u32, Vec<u64>>,
    core: Core,
    launched: Vec<Launch>,
    resets: u32,
    /// Cycles since the launch, while it runs.
    cycles: u64,
    inputs: HostIn<Bits>,
    /// They are not what they were.
    changed: bool,
    /// Inputs and outputs that are looked at in every cycle, by their numbers.
    narrow: [usize; 3],
    shown: [usize; 6],
    sides: Option<usize>,
}

/// Words side by side, the first lowest.
fn packed(words: &[u32]) -> Bits {
    let limbs: Vec<u64> =
        words.chunks(2).map(|pair| pair.iter().rev().fold(0, |limb, &word| limb << 32 | u64::from(word))).collect();
    Bits::from_limbs(&limbs)
}

impl Bench {
    fn new(s: &Shape, seed: u64) -> Bench {
        println!("{} × {}, {} bytes, seed {seed}", s.lanes, s.warps, s.memory);
        s.check().unwrap();
        let design = host(s, Identity { clock_khz: CLOCK_KHZ }).check().unwrap();
        let mut t = Sim::with(&design, &Options { seed, ..Options::default() });
        t.reset();
        let mut r = fastrand::Rng::with_seed(seed);
        // No test touches more, so that the largest memory is as quick as any.
        let memory = (0..(s.memory / 4).min(4096)).map(|_| r.u32(..)).collect();
        let inputs = HostIn::shape(s).map("", &mut |_, _| Bits::ZERO);
        let directory = t.simulation().directory().clone();
        let narrow = ["rx_valid", "rx_data", "tx_ready"].map(|name| directory.inputs.find(name).unwrap());
        let shown = ["rx_ready", "tx_valid", "tx_data", "load_valid", "launch", "resets"];
        let shown = shown.map(|name| directory.outputs.find(name).unwrap());
        let sides = directory.outputs.find("load_side_valid");
        Bench {
            t,
            s: s.clone(),
            r,
            odds: (8, 8),
            memory,
            side: BTreeMap::new(),
            core: Core::Idle,
            launched: Vec::new(),
            resets: 0,
            cycles: 0,
            inputs,
            changed: true,
            narrow,
            shown,
            sides,
        }
    }

    /// The core has counted something else, if it counts.
    fn count(&mut self) -> Vec<u64> {
        let (mut counters, shape) = (Vec::new(), HostIn::shape(&self.s).counts);
        self.inputs.counts = shape.map(|shape| {
            shape.map("", &mut |_, bits| {
                counters.push(self.r.u64(..) >> (64 - bits));
                Bits::from(counters[counters.len() - 1])
            })
        });
        self.changed = true;
        counters
    }

    /// Words are where they are modulo what is kept.
    fn place(&self, word: u32) -> usize {
        word as usize % self.memory.len()
    }

    /// A clock cycle with a byte at the input, or none; the byte is taken or not, one may come out.
    fn cycle(&mut self, byte: Option<u8>, ready: bool) -> (bool, Option<u8>) {
        let runs = self.core == Core::Runs;
        // All other inputs change seldom, and some are wide.
        if self.changed {
            self.inputs.idle = matches!(self.core, Core::Idle | Core::Done).into();
            self.inputs.done = (self.core == Core::Done).into();
            self.inputs.fault.valid = (self.core == Core::Stopped).into();
            self.t.poke(self.inputs.clone());
            self.changed = false;
        }
        let engine = self.t.simulation().engine();
        let values = [byte.is_some().into(), byte.unwrap_or(0).into(), ready.into()];
        self.narrow.into_iter().zip(values).for_each(|(input, value)| engine.poke_u64(input, value));
        engine.settle();
        let [rx_ready, tx_valid, tx_data, events @ ..] = self.shown.map(|output| engine.peek_u64(output));
        if events != [0; 3] || self.sides.is_some_and(|side| engine.peek_u64(side) == 1) {
            let out = self.t.peek();
            self.t.step();
            self.event(out);
        } else {
            self.t.step();
        }
        if runs && self.core == Core::Runs {
            self.cycles += 1;
        }
        (byte.is_some() && rx_ready == 1, (ready && tx_valid == 1).then_some(tx_data as u8))
    }

    /// What the host does with memory and core.
    fn event(&mut self, out: HostOut<Bits>) {
        let lanes = self.s.lanes;
        self.changed = true;
        let word = out.load.address.low_u64() as u32 / 4;
        if out.load.valid == 1 {
            assert!(matches!(self.core, Core::Idle | Core::Done), "memory is accessed while the core runs");
            if out.load.read.is_some_and(|read| read == 1) {
                let words = (word / lanes * lanes..).take(lanes as usize).map(|word| self.memory[self.place(word)]);
                self.inputs.line = Some(packed(&words.collect::<Vec<_>>()));
            } else {
                let place = self.place(word);
                self.memory[place] = out.load.word.low_u64() as u32;
            }
        }
        if let Some(side) = out.load_side.filter(|side| side.valid == 1) {
            let Reconvergence { rpc, returns, uniform, likely, likely_pc } = side.entry;
            let fields = [rpc, returns, uniform, likely, likely_pc];
            self.side.insert(side.pc.low_u64() as u32, fields.iter().map(Bits::low_u64).collect());
        }
        if out.launch == 1 {
            let [entry, blocks, threads] = [out.entry, out.blocks, out.block_threads].map(|b| b.low_u64() as u32);
            // It is there from the next cycle on.
            let program_end = self.t.peek().program_end.low_u64() as u32;
            self.launched.push((entry, blocks, threads, program_end));
            (self.core, self.cycles) = (Core::Runs, 0);
        }
        if out.resets == 1 {
            self.core = Core::Idle;
            self.resets += 1;
        }
    }

    /// Sends bytes with stalls until the host waits for more; the frames that come back.
    fn send(&mut self, bytes: &[u8]) -> Vec<Result<Vec<u32>, Damaged>> {
        let mut left = VecDeque::from(bytes.to_vec());
        let (mut decoder, mut replies, mut offers) = (Decoder::default(), Vec::new(), false);
        let limit = 4000 + 100 * bytes.len() + 40 * self.memory.len() * 8 + 200_000;
        for _ in 0..limit {
            offers = !left.is_empty() && (offers || self.r.u8(..8) < self.odds.0);
            let byte = left.front().copied().filter(|_| offers);
            let ready = self.r.u8(..8) < self.odds.1;
            let (taken, came) = self.cycle(byte, ready);
            if taken {
                left.pop_front();
                offers = false;
            }
            replies.extend(came.and_then(|byte| decoder.push(byte)));
            if left.is_empty() && self.t.register("state") == State::Receive {
                return replies;
            }
        }
        panic!("the host does not come to an end of {bytes:x?}");
    }

    fn ask(&mut self, words: &[u32]) -> Vec<u32> {
        let replies = self.send(&encode(words));
        let [Ok(reply)] = &replies[..] else { panic!("{words:x?} has the replies {replies:x?}") };
        reply.clone()
    }

    /// Threads end: the lanes of a slot, with these codes.
    fn exit(&mut self, slot: u32, codes: &[(u32, u32)]) {
        let mask = codes.iter().fold(0u64, |mask, (lane, _)| mask | 1 << lane);
        let mut all = vec![0; self.s.lanes as usize];
        codes.iter().for_each(|&(lane, code)| all[lane as usize] = code);
        let exit = &mut self.inputs.exit;
        (exit.valid, exit.slot, exit.mask, exit.codes) = (true.into(), slot.into(), mask.into(), packed(&all));
        self.changed = true;
        self.cycle(None, false);
        self.inputs.exit.valid = false.into();
        self.changed = true;
    }

    /// Some cycles later, the launch ends.
    fn end(&mut self, with: Core, fault: Fault<Bits>) {
        for _ in 0..self.r.u32(..50) {
            self.cycle(None, false);
        }
        self.inputs.fault = fault;
        self.core = with;
        self.changed = true;
        // The host looks at it in the next cycle.
        self.cycle(None, false);
        self.cycles += 1;
    }
}

/// What the host should say and do, frame by frame.
struct Model {
    s: Shape,
    memory: Vec<u32>,
    side: BTreeMap<u32, Vec<u64>>,
    launches: u8,
    core: Core,
    launched: Vec<Launch>,
    resets: u32,
    counters: Vec<u64>,
}

impl Model {
    fn of(b: &Bench) -> Model {
        Model {
            s: b.s.clone(),
            memory: b.memory.clone(),
            side: BTreeMap::new(),
            launches: 0,
            core: Core::Idle,
            launched: Vec::new(),
            resets: 0,
            counters: Vec::new(),
        }
    }

    /// The replies to bytes.
    fn replies(&mut self, bytes: &[u8]) -> Vec<Result<Vec<u32>, Damaged>> {
        let mut decoder = Decoder::default();
        let frames: Vec<_> = bytes.iter().filter_map(|&byte| decoder.push(byte)).collect();
        let replies = frames.into_iter().filter_map(|frame| match frame {
            Err(Damaged) => Some(self.reply(0, Some(Reason::Damaged), vec![])),
            Ok(words) if words[0] >> 15 & 1 == 1 => None,
            Ok(words) => {
                let refused = self.refused(&words);
                let payload = if refused.is_none() { self.does(&words) } else { vec![] };
                Some(self.reply(words[0], refused, payload))
            }
        });
        replies.map(Ok).collect()
    }

    fn reply(&self, header: u32, refused: Option<Reason>, payload: Vec<u32>) -> Vec<u32> {
        let state = match self.core {
            Core::Idle => 0,
            Core::Runs => flags::RUNNING,
            Core::Done => flags::DONE,
            Core::Stopped => flags::FAULT,
        };
        let refused = refused.map_or(0, |reason| reason as u32);
        [vec![header & 0x7fff | REPLY << 8 | refused << 16 | state << 24], payload].concat()
    }

    fn again(&self, words: &[u32]) -> bool {
        self.core != Core::Idle && words[0] >> 16 & 0xff == u32::from(self.launches)
    }

    fn refused(&self, words: &[u32]) -> Option<Reason> {
        let (s, asked) = (&self.s, Command::from_bits(words[0] >> 8 & 0xff));
        let bus = s.bus_width().is_some();
        let argument = |k: usize| u64::from(words.get(k).copied().unwrap_or(0));
        let (address, count) = (argument(1), argument(2));
        // The frame's words, with the CRC.
        let length = words.len() as u64 + 1;
        let (wanted, memory, idle, most) = match asked {
            Some(Command::Identify | Command::Status | Command::Reset) => (2, None, false, u64::MAX),
            Some(Command::Metrics) if s.metrics == Metrics::Built => (2, None, false, u64::MAX),
            Some(Command::Read) => (4, Some(s.memory), true, 252),
            Some(Command::Checksum) => (4, Some(s.memory), true, u64::MAX),
            Some(Command::Write) => (count + 4, Some(if bus { s.program } else { s.memory }), true, 252),
            Some(Command::Fill) => (5, Some(if bus { s.program } else { s.memory }), true, u64::MAX),
            Some(Command::SideTable) if s.divergence.capabilities().reconverges => {
                (2 * count + 4, Some(s.program), true, u64::MAX)
            }
            Some(Command::Launch) => (6, None, true, u64::MAX),
            _ => return Some(Reason::Command),
        };
        let launch = asked == Some(Command::Launch);
        let outside = |end: u32| address % 4 != 0 || count == 0 || count > most || address + 4 * count > u64::from(end);
        let no_grid = address % 4 != 0
            || address >= u64::from(s.program)
            || count == 0
            || count > u64::from(s.threads())
            || argument(3) == 0;
        let again = launch && self.again(words);
        let next = words[0] >> 16 & 0xff == u32::from(self.launches.wrapping_add(1));
        let busy = self.core == Core::Runs || self.core == Core::Stopped;
        match () {
            () if length != wanted => Some(Reason::Length),
            () if bus && matches!(asked, Some(Command::Read | Command::Checksum)) => Some(Reason::Bus),
            () if memory.is_some_and(outside) || launch && no_grid => Some(Reason::Range),
            () if idle && busy && !again => Some(Reason::Busy),
            () if launch && !again && !next => Some(Reason::Number),
            () => None,
        }
    }

    fn does(&mut self, words: &[u32]) -> Vec<u32> {
        let s = self.s.clone();
        let argument = |k: usize| words.get(k).copied().unwrap_or(0);
        let (first, count) = (argument(1) / 4, argument(2));
        let place = |word: u32, memory: &[u32]| word as usize % memory.len();
        let read = |memory: &[u32]| (first..first + count).map(|word| memory[place(word, memory)]).collect::<Vec<_>>();
        match Command::from_bits(words[0] >> 8 & 0xff).expect("a command that is done") {
            Command::Identify => {
                let unit = u32::from(s.divergence.number());
                let side = if s.divergence.capabilities().reconverges { feature::SIDE_TABLE } else { 0 };
                let bus = if s.bus_width().is_some() { feature::BUS } else { 0 };
                let metrics = if s.metrics == Metrics::Built { feature::METRICS } else { 0 };
                let has = feature::ATOMICS + feature::BARRIERS + feature::MULTIPLY + feature::COUNTERS;
                let has = has + side + bus + metrics;
                let pad = s.scratchpad.checked_ilog2().unwrap_or(0);
                let last = s.stack.ilog2() | pad << 8 | s.convergence_barriers << 16 | has << 24;
                vec![1 | s.lanes << 8 | s.warps << 16 | unit << 24, s.memory, s.program, CLOCK_KHZ, last]
            }
            Command::Read => read(&self.memory),
            Command::Checksum => vec![crc32(read(&self.memory).into_iter().flat_map(u32::to_le_bytes))],
            asked @ (Command::Write | Command::Fill) => {
                for k in 0..count {
                    let place = place(first + k, &self.memory);
                    self.memory[place] = argument(3 + if asked == Command::Write { k as usize } else { 0 });
                }
                vec![]
            }
            Command::SideTable => {
                for k in 0..count as usize {
                    let entry = u64::from(argument(3 + 2 * k)) | u64::from(argument(4 + 2 * k)) << 32;
                    let (pc, mut low) = (s.pc_bits(), 0);
                    let fields = [pc, 1, 1, 1, pc].map(|bits| {
                        low += bits;
                        entry >> (low - bits) & ((1 << bits) - 1)
                    });
                    self.side.insert(first + k as u32, fields.to_vec());
                }
                vec![]
            }
            Command::Launch => {
                if !self.again(words) {
                    self.launched.push((first, argument(3), count, argument(4)));
                    self.launches = self.launches.wrapping_add(1);
                    self.core = Core::Runs;
                }
                vec![]
            }
            Command::Reset => {
                self.resets += 1;
                self.launches = 0;
                self.core = Core::Idle;
                vec![]
            }
            Command::Metrics => self.counters.iter().flat_map(|&count| [count as u32, (count >> 32) as u32]).collect(),
            Command::Status => panic!("no test sends it here"),
        }
    }
}

/// Shapes of all kinds; the sizes of memory are as odd as powers of two can be.
fn shapes() -> Vec<Shape> {
    let small = |lanes, warps, memory, program| Shape { memory, program, stack: 64, ..Shape::new(lanes, warps) };
    let slave = SlaveModel { timing: Timing::FASTEST, error: None };
    vec![
        Shape { metrics: Metrics::Built, ..small(1, 1, 4 << 10, 1 << 10) },
        small(4, 2, 4 << 10, 4 << 10),
        Shape { convergence_barriers: 3, metrics: Metrics::Built, ..Shape::new(8, 8) },
        small(64, 1, 64 << 10, 2 << 10),
        Shape { memory: 64 << 20, program: 16 << 20, ..Shape::new(2, 64) },
        Shape::new(4, 2).with_divergence(Divergence::STACK),
        Shape { memory: 64 << 20, program: 16 << 20, ..Shape::new(4, 4).with_divergence(Divergence::BLOCK_STACK) },
        Shape { backing: Backing::Wishbone { width: 32, slave }, scratchpad: 0, ..Shape::new(4, 2) },
    ]
}

/// A request of any command, mostly one that can be done.
fn request(b: &mut Bench, model: &Model) -> Vec<u32> {
    let (s, r) = (&b.s, &mut b.r);
    // A status has a test of its own.
    let number = [1, 3, 3, 3, 4, 4, 4, 5, 6, 7, 8, 8, 9, 10, 0][r.usize(..15)];
    let asked = Command::from_bits(number);
    let end = if asked == Some(Command::SideTable) || r.u8(..4) == 0 { s.program / 4 } else { s.memory / 4 };
    let count = match r.u8(..40) {
        0 | 1 => 0,
        2 => 252,
        3 => 253,
        _ => 1 + r.u32(..12),
    };
    let mut address = 4 * (if r.bool() { r.u32(..end) } else { end.saturating_sub(count) });
    let mut words = vec![0, address, count];
    match asked {
        Some(Command::Identify | Command::Reset | Command::Metrics) => words.truncate(1),
        Some(Command::Write) => words.extend((0..count).map(|_| r.u32(..))),
        Some(Command::Fill) => words.push(r.u32(..)),
        Some(Command::SideTable) => {
            words[2] = count.min(120);
            words.extend((0..2 * words[2]).map(|_| r.u32(..)));
        }
        Some(Command::Launch) => {
            address = if r.u8(..8) == 0 { s.program } else { 4 * r.u32(..s.program / 4) };
            let threads = if r.u8(..8) == 0 { s.threads() + 1 } else { 1 + r.u32(..s.threads()) };
            words = vec![0, address, threads, r.u32(..8), r.u32(..)];
        }
        _ => {}
    }
    if r.u8(..8) == 0 && words.len() > 1 {
        let at = 1 + r.usize(..2.min(words.len() - 1));
        let changed = words[at] ^ 1 << r.u32(..32);
        // No count that is legal and takes the host millions of cycles.
        if at == 1 || !(4096..=s.memory / 4).contains(&changed) {
            words[at] = changed;
        }
    }
    match r.u8(..20) {
        0 => words.push(r.u32(..)),
        1 if words.len() > 1 => drop(words.pop()),
        _ => {}
    }
    words.truncate(FRAME_WORDS as usize - 1);
    let launch = match r.u8(..4) {
        0 => model.launches,
        1 => r.u8(..),
        _ => model.launches.wrapping_add(1),
    };
    let back = if r.u8(..30) == 0 { REPLY } else { 0 };
    words[0] = u32::from(r.u8(..)) | (number | back) << 8 | u32::from(launch) << 16 | u32::from(r.u8(..)) << 24;
    words
}

/// Bits that change, bytes that are lost, doubled or made up, a frame that is cut.
fn damage(r: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
    for _ in 0..1 + r.usize(..3) {
        let at = r.usize(..bytes.len());
        match r.u8(..8) {
            0..3 => bytes[at] ^= 1 << r.u8(..8),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, if r.bool() { [FLAG, ESCAPE][r.usize(..2)] } else { r.u8(..) }),
            5 => bytes[at] = [FLAG, ESCAPE][r.usize(..2)],
            6 => bytes.truncate(at.max(1)),
            _ => drop(bytes.splice(0..0, (0..r.usize(..12)).map(|_| r.u8(..)).collect::<Vec<_>>())),
        }
        if bytes.is_empty() {
            bytes.push(FLAG);
        }
    }
}

/// Everything that the host says and does is what the model says, on every shape, with and without stalls and damage.
#[test]
fn every_frame_has_the_replies_and_effects_that_the_model_says() {
    let covers = ["runt", "reply_came_back", "launched_again", "busy_for_a_fault"];
    let mut hits = [0; 4];
    for (seed, s) in (1..).zip(shapes()) {
        let mut b = Bench::new(&s, seed);
        let mut model = Model::of(&b);
        let mut reasons = [0; 8];
        for round in 0..cases(1500) {
            b.odds = *b.r.choice(&[(8, 8), (8, 3), (2, 8), (4, 4)]).unwrap();
            let words = request(&mut b, &model);
            let mut bytes = encode(&words);
            if b.r.u8(..3) == 0 {
                damage(&mut b.r, &mut bytes);
            }
            // The flag ends what the damage left open.
            bytes.push(FLAG);
            if round == 0 || b.r.u8(..8) == 0 {
                model.counters = b.count();
            }
            let (want, got) = (model.replies(&bytes), b.send(&bytes));
            assert_eq!(got, want, "round {round}: {words:x?} as {bytes:x?}");
            got.iter().flatten().for_each(|reply| reasons[(reply[0] >> 16 & 0xff) as usize] += 1);
            assert_eq!(b.launched, model.launched, "round {round}: {words:x?}");
            assert_eq!((b.core, b.resets), (model.core, model.resets), "round {round}: {words:x?}");
            assert!(b.memory == model.memory && b.side == model.side, "round {round}: {words:x?} as {bytes:x?}");
            if b.core == Core::Runs && b.r.bool() {
                let with = if b.r.u8(..3) == 0 { Core::Stopped } else { Core::Done };
                let nothing = b.inputs.fault.clone();
                b.end(with, nothing);
                model.core = with;
            }
        }
        let bus = s.bus_width().is_some();
        let missing: Vec<usize> = (0..8).filter(|&k| reasons[k] == 0 && (k != 6 || bus)).collect();
        assert!(missing.is_empty(), "no reply had the reasons {missing:?}: {reasons:?}");
        hits.iter_mut().zip(covers).for_each(|(hits, cover)| *hits += b.t.cover_hits(cover));
    }
    assert!(hits.iter().all(|&hits| hits > 2), "{covers:?} were met {hits:?} times");
}

#[test]
fn a_frame_that_is_too_long_or_ends_in_an_escape_is_damaged() {
    let mut b = Bench::new(&Shape::new(4, 2), 3);
    let damaged = Ok(vec![REPLY << 8 | (Reason::Damaged as u32) << 16]);
    for words in [256, 257, 300, 600, 1000] {
        assert_eq!(b.send(&encode(&vec![0x0100; words])), std::slice::from_ref(&damaged), "{words} words");
    }
    let mut bytes = encode(&[header(Command::Identify)]);
    bytes.insert(bytes.len() - 1, ESCAPE);
    assert_eq!(b.send(&bytes), std::slice::from_ref(&damaged));
    assert_eq!(b.ask(&[header(Command::Identify)]).len(), 6);
    assert!(b.t.cover_hits("frame_too_long") == 5 && b.t.cover_hits("ends_in_an_escape") == 1);
}

/// Noise of any length, and after a flag the next frame is understood.
#[test]
fn after_noise_a_flag_is_enough() {
    let mut b = Bench::new(&Shape::new(1, 1), 4);
    for _ in 0..cases(300) {
        let noise: Vec<u8> = (0..b.r.usize(..40)).map(|_| b.r.u8(..)).collect();
        b.send(&noise);
        b.send(&[FLAG]);
        assert_eq!(b.ask(&[header(Command::Identify) | 0x55])[0], 0x55 | REPLY << 8 | header(Command::Identify));
    }
}

fn no_fault(s: &Shape) -> Fault<Bits> {
    Fault::shape(s).map("", &mut |_, _| Bits::ZERO)
}

fn status(b: &mut Bench) -> Vec<u32> {
    b.ask(&[header(Command::Status)])
}

fn launch(b: &mut Bench, number: u32) -> u32 {
    b.ask(&[header(Command::Launch) | number << 16, 4, b.s.threads(), 3, 0x300])[0] >> 16
}

#[test]
fn status_tells_how_a_launch_went() {
    for (seed, s) in (10..).zip([Shape::new(1, 1), Shape::new(4, 2), Shape::new(8, 8), Shape::new(64, 1)]) {
        let mut b = Bench::new(&s, seed);
        let told = status(&mut b);
        assert_eq!((told[1], told[6], &told[9..]), (0, 0, &[0, 0][..]), "nothing has happened");
        assert_eq!(launch(&mut b, 1), flags::RUNNING << 8);
        assert_eq!(b.launched, [(1, 3, s.threads(), 0x300)]);
        assert_eq!(status(&mut b)[1], 1 | 1 << 8, "under way");
        // All of a slot end well, then two lanes do not, then one more.
        let (slot, last) = (s.warps - 1, s.lanes - 1);
        b.exit(0, &(0..s.lanes).map(|lane| (lane, 0)).collect::<Vec<_>>());
        b.exit(slot, &[(last, 0xdead_beef)]);
        b.exit(0, &[(0, 7)]);
        b.end(Core::Done, no_fault(&s));
        let cycles = b.cycles;
        let told = status(&mut b);
        assert_eq!(told[0] >> 24, flags::DONE);
        assert_eq!(told[1], 1 | 1 << 9 | 1 << 11);
        assert_eq!(told[6..9], [2, slot * s.lanes + last, 0xdead_beef]);
        assert_eq!(u64::from(told[9]) | u64::from(told[10]) << 32, cycles);
        // The next launch begins with nothing, and stops by a fault.
        assert_eq!(launch(&mut b, 2), flags::RUNNING << 8);
        let mask = u64::MAX >> (64 - s.lanes);
        let fault = Fault {
            cause: 5u32.into(),
            slot: slot.into(),
            pc: 0x21u32.into(),
            mask: mask.into(),
            address: 0x8765_4321u32.into(),
            ..no_fault(&s)
        };
        b.end(Core::Stopped, fault);
        let told = status(&mut b);
        assert_eq!(told[0] >> 24, flags::FAULT);
        assert_eq!(told[1], 2 | 1 << 10 | 5 << 12 | slot << 16);
        assert_eq!(told[2..6], [0x84, mask as u32, (mask >> 32) as u32, 0x8765_4321]);
        assert_eq!(told[6], 0);
        // Until the reset: no launch but the last again, and no memory.
        assert_eq!(launch(&mut b, 3), Reason::Busy as u32 | flags::FAULT << 8);
        assert_eq!(launch(&mut b, 2), flags::FAULT << 8);
        assert_eq!(b.ask(&[header(Command::Read), 0, 1])[0] >> 16, Reason::Busy as u32 | flags::FAULT << 8);
        assert_eq!(b.ask(&[header(Command::Reset)])[0] >> 16, 0);
        assert_eq!(launch(&mut b, 3), Reason::Number as u32);
        assert_eq!(launch(&mut b, 0), Reason::Number as u32, "none has been, so none is the last");
        assert_eq!(launch(&mut b, 1), flags::RUNNING << 8);
        assert_eq!(b.launched.len(), 3);
    }
}

/// At any time, as status; and nothing where there are none.
#[test]
fn counters_are_told() {
    let built = Shape { metrics: Metrics::Built, ..Shape::new(4, 2) };
    let barriers = Shape { convergence_barriers: 4, ..built.clone() };
    for (seed, (s, number)) in (20..).zip([(built, 17), (barriers, 23)]) {
        let mut b = Bench::new(&s, seed);
        let asked = |b: &mut Bench, flags: u32| {
            let counters = b.count();
            let reply = b.ask(&[header(Command::Metrics)]);
            assert_eq!((reply[0] >> 16, counters.len()), (flags << 8, number));
            let mut told = Vec::new();
            told_counts(&s, &reply[1..]).map("", &mut |_, count: u64| told.push(count));
            assert_eq!(told, counters);
        };
        asked(&mut b, 0);
        assert_eq!(launch(&mut b, 1), flags::RUNNING << 8);
        asked(&mut b, flags::RUNNING);
        b.end(Core::Stopped, no_fault(&s));
        asked(&mut b, flags::FAULT);
        assert_eq!(b.ask(&[header(Command::Metrics), 0])[0] >> 16, Reason::Length as u32 | flags::FAULT << 8);
    }
    let mut b = Bench::new(&Shape::new(4, 2), 22);
    assert_eq!(b.ask(&[header(Command::Metrics)])[0] >> 16, Reason::Command as u32);
}

/// The names on the page, in the order of the words.
#[test]
fn the_page_has_the_counters() {
    let page = include_str!("../../../../docs/reference/host.md");
    let rows = page.lines().skip_while(|line| *line != "| words | counter |").take_while(|line| line.starts_with('|'));
    let mut listed = Vec::new();
    for row in rows.skip(2) {
        let (words, names) = row.trim_matches('|').split_once('|').unwrap();
        let first: usize = words.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(first, 2 * listed.len(), "{row}");
        listed.extend(names.split('`').skip(1).step_by(2).map(str::to_string));
    }
    let mut names = Vec::new();
    let s = Shape { convergence_barriers: 1, issue_interval: 2, ..Shape::default() };
    Counts::shape(&s).visit("", &mut |name, _| names.push(name.to_string()));
    assert_eq!(listed, names);
}

#[test]
fn numbers_of_launches_go_round() {
    let mut b = Bench::new(&Shape::new(1, 1), 5);
    let nothing = no_fault(&b.s);
    for number in 1..=600u32 {
        assert_eq!(launch(&mut b, number & 0xff), flags::RUNNING << 8);
        b.end(Core::Done, nothing.clone());
        assert_eq!(launch(&mut b, number & 0xff), flags::DONE << 8, "the same again");
        assert_eq!(b.launched.len(), number as usize);
    }
}

/// The side table's entries are those that the analysis encodes.
#[test]
fn entries_of_the_side_table_come_as_they_are_encoded() {
    use crate::reconvergence::Meet;
    let s = Shape::new(4, 2).with_divergence(Divergence::STACK);
    let mut b = Bench::new(&s, 6);
    let entries =
        [Reconvergence::new(Meet::At(0x123), false, Some(0x77)), Reconvergence::new(Meet::Return, true, None)];
    let words = entries.iter().flat_map(|entry| {
        let word = entry.encode(&s).low_u64();
        [word as u32, (word >> 32) as u32]
    });
    let frame: Vec<u32> = [header(Command::SideTable), 40, 2].into_iter().chain(words).collect();
    assert_eq!(b.ask(&frame)[0] >> 16, 0);
    let fields =
        |entry: &Reconvergence<u64>| vec![entry.rpc, entry.returns, entry.uniform, entry.likely, entry.likely_pc];
    assert_eq!(b.side, BTreeMap::from([(10, fields(&entries[0])), (11, fields(&entries[1]))]));
}

/// A frame without arguments has those of the frame before in the buffer: they do not count, whatever they are.
#[test]
fn arguments_are_those_of_the_frame() {
    for s in [Shape::new(4, 2), Shape::new(4, 2).with_divergence(Divergence::STACK)] {
        let mut b = Bench::new(&s, 8);
        for count in (120..260).chain([s.memory / 4, u32::MAX, u32::MAX / 2, u32::MAX - 1]) {
            assert_eq!(b.ask(&[header(Command::Read), 0, count])[0] >> 8 & 0xff, REPLY | Command::Read as u32);
            for asked in
                [Command::Read, Command::Write, Command::Fill, Command::Checksum, Command::SideTable, Command::Launch]
            {
                let refused = b.ask(&[header(asked) | 1 << 16])[0] >> 16;
                let known = asked != Command::SideTable || s.divergence.capabilities().reconverges;
                let want = if known { Reason::Length } else { Reason::Command };
                assert_eq!(Reason::from_bits(refused), Some(want), "{asked:?} after {count}");
            }
        }
        assert!(b.side.is_empty() && b.launched.is_empty());
    }
}

/// A checksum of more than a frame's words, and of all of memory.
#[test]
fn a_checksum_of_all_of_memory() {
    let mut b = Bench::new(&Shape { stack: 64, memory: 8 << 10, program: 1 << 10, ..Shape::new(2, 2) }, 7);
    let sum = crc32(b.memory.iter().flat_map(|word| word.to_le_bytes()));
    assert_eq!(b.ask(&[header(Command::Checksum), 0, 2048])[1..], [sum]);
}

/// What identify tells of a shape is a shape of which it tells the same; and what is none is refused.
#[test]
fn a_shape_is_known_by_what_identify_tells() {
    let clock = Identity { clock_khz: CLOCK_KHZ };
    let bus = SlaveModel { timing: Timing::FASTEST, error: None };
    let mut shapes = vec![
        Shape::default(),
        Shape::small(1, 1),
        Shape { multiply: false, stack: 512, ..Shape::new(64, 2) },
        Shape { convergence_barriers: 4, replay: Replay::Serialise, ..Shape::new(4, 4) },
        Shape { backing: Backing::Wishbone { width: 64, slave: bus }, ..Shape::default() },
        Shape { counters: false, ..Shape::default() },
        Shape { metrics: Metrics::Built, ..Shape::default() },
        Shape { metrics: Metrics::Built, fair: true, reservations: true, ..Shape::default() },
        Shape { fair: true, convergence_barriers: 16, ..Shape::default() },
        Shape { warp_primitives: true, fair: true, convergence_barriers: 16, ..Shape::default() },
        Shape { warp_primitives: true, ..Shape::default() },
    ];
    shapes.extend(Divergence::ALL.iter().map(|unit| Shape::new(4, 2).with_divergence(*unit)));
    for shape in &shapes {
        let found =
            identified(&identify(shape, clock), Divergence::ALL).unwrap_or_else(|e| panic!("{}: {e}", shape.options()));
        assert_eq!(identify(&found, clock), identify(shape, clock), "{}", shape.options());
        assert_eq!(found.warp_primitives, shape.warp_primitives, "{}", shape.options());
        assert_eq!((found.counters, found.metrics), (shape.counters, shape.hardware().metrics));
        assert_eq!((found.fair, counts_words(&found)), (shape.fair, counts_words(shape)), "{}", shape.options());
    }
    let changed = |word: usize, shift: u32, value: u32| {
        let mut words = identify(&Shape::default(), clock);
        words[word] = words[word] & !(0xff << shift) | value << shift;
        identified(&words, Divergence::ALL).unwrap_err()
    };
    assert_eq!(changed(0, 8, 3), "lanes = 3: must be a power of two from 1 to 64");
    assert_eq!(changed(0, 24, 200), "divergence unit number 200");
    assert_eq!(changed(4, 0, 32), "2^32 bytes");
    assert!(changed(1, 0, 1).starts_with("memory = "), "{}", changed(1, 0, 1));
}

use super::*;
use crate::isa::cause;
use crate::memory::port::operation;
use crate::pipeline::collect::Issued;
use crate::pipeline::memory::{MemoryIn, MemoryOut, memory};
use crate::pipeline::testing::packed;
use heddle_sim::Sim;
use std::collections::HashMap;

/// What an instruction in stage 8 is, as far as this stage looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// An instruction with a result; `last` before a stop pc.
    Plain {
        last: bool,
    },
    Branch,
    Jal,
    Jalr,
    Load,
    Store,
    Barrier,
    Ecall,
    Ebreak,
    Illegal,
}

/// An instruction in stage 8.
#[derive(Clone, Debug)]
struct At8 {
    kind: Kind,
    pc: u32,
    /// 0 byte, 1 half, 2 word.
    size: u32,
    mask: u64,
    /// A lane's result, address or jump target.
    results: Vec<u32>,
    data: Vec<u32>,
    /// Lanes that take the branch; lanes whose a7 asks for exit.
    taken: u64,
    exits: u64,
    target: u32,
}

fn lanes_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |k| mask >> k & 1 == 1)
}

/// The rules of a memory access: which lanes are served.
fn served(lanes: u32, store: bool, mask: u64, addresses: &[u32]) -> u64 {
    let leader = addresses[mask.trailing_zeros() as usize];
    let (word, line) = (|a: u32| a / 4, |a: u32| a / 4 / lanes);
    let (mut served, mut all_so_far) = (0, true);
    for k in lanes_of(mask) {
        let a = addresses[k];
        let own = line(a) == line(leader) && word(a) % lanes == k as u32;
        let goes = match store {
            false => own || word(a) == word(leader),
            true => a == leader || (own && word(a) != word(leader) && all_so_far),
        };
        served |= u64::from(goes) << k;
        all_so_far &= goes;
    }
    served
}

/// What must come of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Comes {
    /// Cause, lanes.
    Fault(u32, u64),
    /// Kind, taken lanes and their pc, other lanes and theirs.
    Outcome(u32, u64, u32, u64, u32),
    Nothing,
}

const PROGRAM_END: u32 = 0x200;

/// The rules, one instruction at a time; and the lanes for which it took effect.
fn model(s: &Shape, i: &At8) -> (Comes, u64) {
    let (mask, next) = (i.mask, i.pc + 1);
    let leader = i.results[mask.trailing_zeros() as usize];
    let fault = |cause, lanes| (Comes::Fault(cause, lanes), 0);
    let jump = |target: u32, lanes: u64| match target {
        t if t % 4 != 0 => Err((Comes::Fault(cause::FETCH_MISALIGNED, lanes), 0)),
        t if t >= s.program => Err((Comes::Fault(cause::FETCH_OUT_OF_RANGE, lanes), 0)),
        t => Ok(t / 4),
    };
    match i.kind {
        Kind::Illegal => fault(cause::ILLEGAL_INSTRUCTION, mask),
        Kind::Ebreak => fault(cause::BREAKPOINT, mask),
        Kind::Ecall if mask & !i.exits != 0 => fault(cause::UNKNOWN_ECALL, mask & !i.exits),
        Kind::Ecall => (Comes::Outcome(kind::EXIT, 0, next, 0, i.pc), mask),
        Kind::Barrier => (Comes::Outcome(kind::WAIT, mask, next, 0, i.pc), mask),
        Kind::Plain { last: false } => (Comes::Nothing, mask),
        Kind::Plain { last: true } => (Comes::Outcome(kind::ARRIVED, mask, next, 0, i.pc), mask),
        Kind::Branch => {
            let taken = mask & i.taken;
            match jump(i.target, taken) {
                Err(fault) if taken != 0 => fault,
                _ => (Comes::Outcome(kind::BRANCH, taken, i.target / 4, mask & !taken, next), mask),
            }
        }
        Kind::Jal => match jump(i.target, mask) {
            Ok(pc) => (Comes::Outcome(kind::JUMP, mask, pc, 0, i.pc), mask),
            Err(fault) => fault,
        },
        Kind::Jalr => {
            let same = lanes_of(mask).filter(|&k| i.results[k] & !1 == leader & !1).fold(0, |m, k| m | 1 << k);
            match jump(leader & !1, same) {
                Ok(pc) => (Comes::Outcome(kind::JUMP, same, pc, mask & !same, i.pc), same),
                Err(fault) => fault,
            }
        }
        Kind::Load | Kind::Store => {
            let store = i.kind == Kind::Store;
            let served = served(s.lanes, store, mask, &i.results);
            let misaligned =
                lanes_of(served).filter(|&k| !i.results[k].is_multiple_of(1 << i.size)).fold(0, |m, k| m | 1 << k);
            let causes = if store {
                [cause::STORE_MISALIGNED, cause::STORE_OUT_OF_RANGE]
            } else {
                [cause::LOAD_MISALIGNED, cause::LOAD_OUT_OF_RANGE]
            };
            if misaligned != 0 {
                fault(causes[0], misaligned)
            } else if leader >= s.memory {
                fault(causes[1], served)
            } else if store && leader < PROGRAM_END {
                fault(cause::STORE_TO_PROGRAM, served)
            } else {
                (Comes::Outcome(kind::MEMORY, served, next, mask & !served, i.pc), served)
            }
        }
    }
}

struct Bench {
    s: Shape,
    t: Sim<ResolveIn<Width>, Resolved<Signal>>,
    port: Sim<MemoryIn<Width>, MemoryOut<Signal>>,
}

impl Bench {
    fn new(lanes: u32) -> Bench {
        let s = Shape { memory: 64 << 10, program: 4 << 10, stack: 64, ..Shape::new(lanes, 2) };
        let mut t = Sim::new(&resolve(&s).check().unwrap());
        t.reset();
        let port = Sim::new(&memory(&s).check().unwrap());
        Bench { s, t, port }
    }

    /// The instruction passes the stage.
    fn pass(&mut self, i: &At8) -> Resolved<Bits> {
        let zero = Executed::shape(&self.s).map("", &mut |_, _| Bits::ZERO);
        let is = |kind: Kind| Bits::from(i.kind == kind);
        let last = i.kind == Kind::Plain { last: true };
        let plain = matches!(i.kind, Kind::Plain { .. });
        let writes = plain || matches!(i.kind, Kind::Jal | Kind::Jalr | Kind::Load);
        let decoded = Decoded {
            pc: i.pc.into(),
            rd: if writes { 9u32 } else { 0 }.into(),
            writes: writes.into(),
            funct3: i.size.into(),
            branch: is(Kind::Branch),
            jal: is(Kind::Jal),
            jalr: is(Kind::Jalr),
            load: is(Kind::Load),
            store: is(Kind::Store),
            barrier: is(Kind::Barrier),
            ecall: is(Kind::Ecall),
            ebreak: is(Kind::Ebreak),
            illegal: is(Kind::Illegal),
            last: last.into(),
            control: (!plain || last).into(),
            ..zero.issued.decoded
        };
        let issued = Issued { valid: true.into(), slot: 1u32.into(), mask: i.mask.into(), decoded, tag: 2u32.into() };
        let executed = Executed {
            issued,
            result: packed(&i.results),
            taken: i.taken.into(),
            target: i.target.into(),
            data: packed(&i.data),
            exits: i.exits.into(),
        };
        self.t.poke(ResolveIn { executed, program_end: PROGRAM_END.into() });
        let early = self.t.peek().early;
        assert_eq!(early.valid == 1, writes && i.kind != Kind::Load, "{i:x?}");
        self.t.step();
        self.t.peek()
    }

    /// Passes an instruction and compares everything with the rules.
    fn compare(&mut self, i: &At8) -> Comes {
        let out = self.pass(i);
        let (comes, effect) = model(&self.s, i);
        let word = |b: &Bits| b.low_u64();
        let got = if out.fault.valid == 1 {
            Comes::Fault(word(&out.fault.cause) as u32, word(&out.fault.mask))
        } else if out.outcome.valid == 1 {
            let o = &out.outcome;
            let (taken, rest) = (word(&o.taken.mask), word(&o.rest.mask));
            assert_eq!(taken & rest, 0, "{i:x?}");
            Comes::Outcome(word(&o.kind) as u32, taken, word(&o.taken.pc) as u32, rest, word(&o.rest.pc) as u32)
        } else {
            Comes::Nothing
        };
        // The pc of a side without threads is free.
        let free = |comes: Comes| match comes {
            Comes::Outcome(kind, taken, a, rest, b) => {
                Comes::Outcome(kind, taken, if taken == 0 { 0 } else { a }, rest, if rest == 0 { 0 } else { b })
            }
            other => other,
        };
        assert_eq!(free(got), free(comes.clone()), "{i:x?}");
        if let Comes::Fault(..) = comes {
            assert_eq!(out.outcome.valid, 0, "nothing of the instruction happens");
            assert_eq!(out.fault.pc, u64::from(i.pc));
            let first = i.results[lanes_of(word(&out.fault.mask)).next().unwrap()];
            let address = match i.kind {
                Kind::Branch | Kind::Jal => Some(i.target),
                Kind::Jalr => Some(first & !1),
                Kind::Load | Kind::Store => Some(first),
                _ => None,
            };
            assert!(address.is_none_or(|a| out.fault.address == u64::from(a)), "{:x?} of {i:x?}", out.fault);
        }
        assert_eq!(word(&out.committed), effect, "{i:x?}");
        let happens = effect != 0;
        let writes = matches!(i.kind, Kind::Plain { .. } | Kind::Jal | Kind::Jalr);
        assert_eq!(out.result.valid == 1, happens && writes, "{i:x?}");
        if writes && happens {
            assert_eq!(word(&out.result.mask), effect);
            let jump = matches!(i.kind, Kind::Jal | Kind::Jalr);
            for k in lanes_of(effect) {
                let value = if jump { i.pc * 4 + 4 } else { i.results[k] };
                assert_eq!(out.result.data.extract(32 * k as u32, 32), u64::from(value));
            }
        }
        assert_eq!(out.exit.valid == 1, happens && i.kind == Kind::Ecall);
        let accesses = happens && matches!(i.kind, Kind::Load | Kind::Store);
        assert_eq!(out.access.valid == 1, accesses, "{i:x?}");
        if accesses {
            assert_eq!(word(&out.access.served), effect);
            self.port_obeys(i, out.access, effect);
        }
        comes
    }

    /// The memory port's request: line, bytes and data of a store, and where a load's lanes find their words.
    fn port_obeys(&mut self, i: &At8, access: Access<Bits>, served: u64) {
        let lanes = self.s.lanes;
        let leader = i.results[i.mask.trailing_zeros() as usize];
        for k in lanes_of(served) {
            let bank = if access.own.bit(k as u32) { k as u64 } else { access.bank.low_u64() };
            assert_eq!(u64::from(i.results[k] / 4 % lanes), bank, "lane {k} of {i:x?}");
            assert_eq!(access.offset.extract(2 * k as u32, 2), u64::from(i.results[k] % 4));
        }
        self.port.poke(MemoryIn { access });
        let request = self.port.peek().request;
        assert_eq!((request.valid.clone(), request.tag.clone()), (true.into(), 2u32.into()));
        assert_eq!(request.line, u64::from(leader / 4 / lanes));
        assert_eq!(request.operation == u64::from(operation::STORE), i.kind == Kind::Store);
        // Bytes of the line after the stores of the served lanes in order.
        let mut line: HashMap<u32, u8> = HashMap::new();
        for k in lanes_of(served).filter(|_| i.kind == Kind::Store) {
            for byte in 0..1 << i.size {
                line.insert((i.results[k] + byte) % (4 * lanes), (i.data[k] >> (8 * byte)) as u8);
            }
        }
        for at in 0..4 * lanes {
            let stored = request.enables.bit(at).then(|| request.data.extract(8 * at, 8).low_u64() as u8);
            assert_eq!(stored, line.get(&at).copied(), "byte {at} of {i:x?}");
        }
    }

    /// Issues an access again for the lanes left over until all are served.
    fn until_all_are_served(&mut self, mut i: At8) {
        for _ in 0..self.s.lanes {
            match self.compare(&i) {
                Comes::Outcome(_, served, _, rest, _) => {
                    assert_eq!(served | rest, i.mask, "the served and the others are all");
                    assert_eq!(served & 1 << i.mask.trailing_zeros(), 1 << i.mask.trailing_zeros(), "the leader goes");
                    i.mask = rest;
                }
                other => panic!("{other:?} of {i:x?}"),
            }
            if i.mask == 0 {
                return;
            }
        }
        panic!("lanes are left after {} replays: {i:x?}", self.s.lanes);
    }

    /// Stores until all are served; the memory must end as if the lanes had stored one after the other.
    fn highest_lane_stays(&mut self, i: &At8) {
        let mut stored: HashMap<u32, u8> = HashMap::new();
        let put = |k: usize, memory: &mut HashMap<u32, u8>| {
            memory.extend((0..1 << i.size).map(|byte| (i.results[k] + byte, (i.data[k] >> (8 * byte)) as u8)));
        };
        let mut rest = i.mask;
        while rest != 0 {
            let go = served(self.s.lanes, true, rest, &i.results);
            lanes_of(go).for_each(|k| put(k, &mut stored));
            rest &= !go;
        }
        let mut expected = HashMap::new();
        lanes_of(i.mask).for_each(|k| put(k, &mut expected));
        assert_eq!(stored, expected, "{i:x?}");
        self.until_all_are_served(i.clone());
    }
}

fn access(kind: Kind, size: u32, mask: u64, addresses: Vec<u32>) -> At8 {
    let data = (0..addresses.len() as u32).map(|k| 0x1111_1111 * (k % 14 + 1) + k).collect();
    At8 { kind, pc: 40, size, mask, results: addresses, data, taken: 0, exits: 0, target: 0 }
}

/// All ways to give `lanes` lanes one of `choices` each.
fn patterns(lanes: u32, choices: &[u32]) -> impl Iterator<Item = Vec<u32>> {
    let count = choices.len();
    (0..count.pow(lanes)).map(move |n| (0..lanes).map(|k| choices[n / count.pow(k) % count]).collect())
}

/// 2 lanes: every pattern of addresses in two lines, every mask, every size.
#[test]
fn all_accesses_of_two_lanes() {
    let mut bench = Bench::new(2);
    for size in 0..3 {
        let choices: Vec<u32> = (0x400..0x410).step_by(1 << size).collect();
        for (addresses, mask) in patterns(2, &choices).flat_map(|p| (1..4).map(move |m| (p.clone(), m))) {
            bench.until_all_are_served(access(Kind::Load, size, mask, addresses.clone()));
            bench.highest_lane_stays(&access(Kind::Store, size, mask, addresses));
        }
    }
}

/// 4 lanes: words of a line and one of the next; bytes of three words; every mask.
#[test]
fn all_accesses_of_four_lanes() {
    let mut bench = Bench::new(4);
    for (size, choices) in [(2, [0x400, 0x404, 0x408, 0x40c, 0x410]), (0, [0x400, 0x401, 0x404, 0x407, 0x411])] {
        for addresses in patterns(4, &choices) {
            for mask in [1, 0b0110, 0b1011, 0b1100, 0b1111] {
                bench.until_all_are_served(access(Kind::Load, size, mask, addresses.clone()));
                bench.highest_lane_stays(&access(Kind::Store, size, mask, addresses.clone()));
            }
        }
    }
}

#[test]
fn random_accesses_of_one_eight_and_sixty_four_lanes() {
    for (lanes, runs, seed) in [(1, 200, 1), (8, 500, 2), (64, 60, 3)] {
        println!("{lanes} lanes, seed {seed}");
        let mut r = fastrand::Rng::with_seed(seed);
        let mut bench = Bench::new(lanes);
        for _ in 0..runs {
            let size = r.u32(..3);
            let words = [1, 2, lanes, 3 * lanes][r.usize(..4)];
            // Mostly a lane's own word, so that much is served at once; else anything near.
            let odds = r.u8(..5);
            let addresses = (0..lanes)
                .map(|k| {
                    let word = if r.u8(..4) < odds { k } else { r.u32(..words) };
                    0x800 + 4 * word + (r.u32(..4) >> size << size)
                })
                .collect();
            let mask = loop {
                let mask = if r.bool() { u64::MAX } else { r.u64(..) } & u64::MAX >> (64 - lanes);
                if mask != 0 {
                    break mask;
                }
            };
            let i = access(Kind::Load, size, mask, addresses);
            bench.until_all_are_served(i.clone());
            bench.highest_lane_stays(&At8 { kind: Kind::Store, ..i });
        }
    }
}

/// All kinds of instructions with addresses, targets and masks good and bad.
#[test]
fn random_instructions_against_the_rules() {
    let kinds = [
        Kind::Plain { last: false },
        Kind::Plain { last: true },
        Kind::Branch,
        Kind::Jal,
        Kind::Jalr,
        Kind::Load,
        Kind::Store,
        Kind::Barrier,
        Kind::Ecall,
        Kind::Ebreak,
        Kind::Illegal,
    ];
    for (lanes, runs, seed) in [(1, 1500, 1), (2, 1500, 2), (4, 2000, 3), (8, 1500, 4), (64, 200, 5)] {
        println!("{lanes} lanes, seed {seed}");
        let mut r = fastrand::Rng::with_seed(seed);
        let mut bench = Bench::new(lanes);
        let all = u64::MAX >> (64 - lanes);
        let (mut faults, mut outcomes) = (0, 0);
        for _ in 0..runs {
            let base = [0u32, 0x1f0, 0x1000 - 8, 0x400, 0x1_0000 - 4, 0xffff_fffc][r.usize(..6)];
            let step = [1, 2, 4, 4, 4][r.usize(..5)];
            let near = |r: &mut fastrand::Rng| base.wrapping_add(r.u32(..5) * step);
            let i = At8 {
                kind: kinds[r.usize(..kinds.len())],
                pc: r.u32(..1000),
                size: r.u32(..3),
                mask: Some(r.u64(..) & all).filter(|&m| m != 0).unwrap_or(all),
                results: (0..lanes).map(|_| near(&mut r)).collect(),
                data: (0..lanes).map(|_| r.u32(..)).collect(),
                taken: if r.u8(..3) == 0 { 0 } else { r.u64(..) & all },
                exits: if r.bool() { all } else { r.u64(..) & all },
                target: near(&mut r),
            };
            match bench.compare(&i) {
                Comes::Fault(..) => faults += 1,
                Comes::Outcome(..) => outcomes += 1,
                Comes::Nothing => {}
            }
        }
        assert!(faults > runs / 10 && outcomes > runs / 10, "{faults} faults, {outcomes} outcomes");
    }
}

use super::*;
use crate::address::SCRATCHPAD;
use crate::divergence::interface::OutcomeKind;
use crate::isa::{FaultCause, HintKind};
use crate::memory::port::Operation;
use crate::pipeline::collect::Instruction;
use crate::pipeline::decoded::{Converges, Decoded};
use crate::pipeline::memory::{MemoryIn, MemoryOut, memory};
use crate::pipeline::place::Wrong;
use crate::pipeline::primitives::{Named, Primitive};
use crate::pipeline::reservations::Reserving;
use crate::pipeline::testing::packed;
use crate::pipeline::timing::RESOLVE_TO_OUTCOME;
use crate::shape::Coalescing;
use crate::testing::{cases, long};
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
    /// Its result is used, or is not.
    Atomic {
        answers: bool,
    },
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
    /// A lane's result, place or jump target.
    results: Vec<u32>,
    data: Vec<u32>,
    /// Lanes that take the branch; of an `ecall`, lanes whose a7 asks for exit.
    taken: u64,
    target: u32,
}

fn lanes_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |k| mask >> k & 1 == 1)
}

impl Kind {
    fn accesses(self) -> bool {
        matches!(self, Kind::Load | Kind::Store | Kind::Atomic { .. })
    }
}

/// Whether a place is in the scratchpad.
fn in_scratchpad(place: u32) -> bool {
    place & SCRATCHPAD != 0
}

/// The rules of a memory access: which lanes are served.
fn served(s: &Shape, kind: Kind, mask: u64, places: &[u32]) -> u64 {
    let lanes = s.lanes;
    let leader = places[mask.trailing_zeros() as usize];
    let (word, line, bank) = (|a: u32| a / 4, |a: u32| a / 4 / lanes, |a: u32| a / 4 % lanes);
    let (mut served, mut all_so_far) = (0, true);
    for k in lanes_of(mask) {
        let a = places[k];
        if in_scratchpad(a) != in_scratchpad(leader) {
            all_so_far = false;
            continue;
        }
        let first_of_bank = lanes_of(mask)
            .map(|k| places[k])
            .filter(|&p| in_scratchpad(p) == in_scratchpad(leader) && (in_scratchpad(p) || line(p) == line(leader)))
            .find(|&p| bank(p) == bank(a));
        let is_first = || {
            let before = lanes_of(mask & ((1 << k) - 1));
            let rivals = before.map(|k| places[k]).filter(|&p| in_scratchpad(p) == in_scratchpad(leader));
            rivals.filter(|&p| in_scratchpad(p) || line(p) == line(leader)).all(|p| bank(p) != bank(a))
        };
        let own = line(a) == line(leader) && bank(a) == k as u32;
        let goes = match (in_scratchpad(leader), s.coalescing, kind) {
            (true, _, Kind::Load) => first_of_bank.is_some_and(|first| word(first) == word(a)),
            (true, ..) => is_first(),
            (false, Coalescing::Full, Kind::Atomic { .. }) => line(a) == line(leader) && is_first(),
            (false, Coalescing::Full, _) => line(a) == line(leader),
            (false, Coalescing::Aligned, Kind::Load) => own || word(a) == word(leader),
            (false, Coalescing::Aligned, _) => {
                let with_leader = match kind {
                    Kind::Store => a == leader,
                    _ => k as u32 == mask.trailing_zeros(),
                };
                with_leader || (own && word(a) != word(leader) && all_so_far)
            }
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
    Fault(FaultCause, u64),
    /// Kind, taken lanes and their pc, other lanes and theirs.
    Outcome(OutcomeKind, u64, u32, u64, u32),
    Nothing,
}

const PROGRAM_END: u32 = 0x200;

/// The rules, one instruction at a time; and the lanes for which it took effect.
fn model(s: &Shape, i: &At8) -> (Comes, u64) {
    let (mask, next) = (i.mask, i.pc + 1);
    let leader = i.results[mask.trailing_zeros() as usize];
    let fault = |cause, lanes| (Comes::Fault(cause, lanes), 0);
    let jump = |target: u32, lanes: u64| match target {
        t if t % 4 != 0 => Err((Comes::Fault(FaultCause::FetchMisaligned, lanes), 0)),
        t if t >= s.program => Err((Comes::Fault(FaultCause::FetchOutOfRange, lanes), 0)),
        t => Ok(t / 4),
    };
    match i.kind {
        Kind::Illegal => fault(FaultCause::IllegalInstruction, mask),
        Kind::Ebreak => fault(FaultCause::Breakpoint, mask),
        Kind::Ecall if mask & !i.taken != 0 => fault(FaultCause::UnknownEcall, mask & !i.taken),
        Kind::Ecall => (Comes::Outcome(OutcomeKind::Exit, 0, next, 0, i.pc), mask),
        Kind::Barrier => (Comes::Outcome(OutcomeKind::Wait, mask, next, 0, i.pc), mask),
        Kind::Plain { last: false } => (Comes::Nothing, mask),
        Kind::Plain { last: true } => (Comes::Outcome(OutcomeKind::Arrived, mask, next, 0, i.pc), mask),
        Kind::Branch => {
            let taken = mask & i.taken;
            match jump(i.target, taken) {
                Err(fault) if taken != 0 => fault,
                _ => (Comes::Outcome(OutcomeKind::Branch, taken, i.target / 4, mask & !taken, next), mask),
            }
        }
        Kind::Jal => match jump(i.target, mask) {
            Ok(pc) => (Comes::Outcome(OutcomeKind::Jump, mask, pc, 0, i.pc), mask),
            Err(fault) => fault,
        },
        Kind::Jalr => {
            let same = lanes_of(mask).filter(|&k| i.results[k] & !1 == leader & !1).fold(0, |m, k| m | 1 << k);
            match jump(leader & !1, same) {
                Ok(pc) => (Comes::Outcome(OutcomeKind::Jump, same, pc, mask & !same, i.pc), same),
                Err(fault) => fault,
            }
        }
        Kind::Load | Kind::Store | Kind::Atomic { .. } => {
            let Wrongs { misaligned, outside, program } = wrongs(s, i);
            let causes = match i.kind {
                Kind::Load => [FaultCause::LoadMisaligned, FaultCause::LoadOutOfRange],
                _ => [FaultCause::StoreMisaligned, FaultCause::StoreOutOfRange],
            };
            match () {
                () if misaligned != 0 => fault(causes[0], misaligned),
                () if outside != 0 => fault(causes[1], outside),
                () if program != 0 => fault(FaultCause::StoreToProgram, program),
                () => {
                    let served = served(s, i.kind, mask, &i.results);
                    (Comes::Outcome(OutcomeKind::Memory, served, next, mask & !served, i.pc), served)
                }
            }
        }
    }
}

/// What stage 7 says is wrong, one bit per lane of the mask.
struct Wrongs {
    misaligned: u64,
    outside: u64,
    program: u64,
}

fn wrongs(s: &Shape, i: &At8) -> Wrongs {
    let lanes = |wrong: &dyn Fn(u32) -> bool| {
        let wrong = lanes_of(i.mask).filter(|&k| i.kind.accesses() && wrong(i.results[k]));
        wrong.fold(0, |all, k| all | 1u64 << k)
    };
    let pad = |a: u32| s.scratchpad > 0 && a >= SCRATCHPAD && a - SCRATCHPAD < s.scratchpad;
    Wrongs {
        misaligned: lanes(&|a| !a.is_multiple_of(1 << i.size)),
        outside: lanes(&|a| a >= s.memory && !pad(a)),
        program: lanes(&|a| i.kind != Kind::Load && a < PROGRAM_END),
    }
}

struct Bench {
    s: Shape,
    t: Sim<ResolveIn<Width>, Resolved<Signal>>,
    port: Sim<MemoryIn<Width>, MemoryOut<Signal>>,
}

impl Bench {
    fn new(lanes: u32) -> Bench {
        Bench::of(&Shape::new(lanes, 2))
    }

    fn of(s: &Shape) -> Bench {
        println!("{:?}, {} bytes of scratchpad", s.coalescing, s.scratchpad);
        let s = Shape { memory: 64 << 10, program: 4 << 10, stack: 64, ..s.clone() };
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
        let answers = matches!(i.kind, Kind::Load | Kind::Atomic { answers: true });
        let writes = plain || answers || matches!(i.kind, Kind::Jal | Kind::Jalr);
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
            atomic: matches!(i.kind, Kind::Atomic { .. }).into(),
            answers: answers.into(),
            barrier: is(Kind::Barrier),
            ecall: is(Kind::Ecall),
            ebreak: is(Kind::Ebreak),
            illegal: is(Kind::Illegal),
            last: last.into(),
            control: (!plain || last).into(),
            ..zero.instruction.decoded
        };
        let instruction = Instruction {
            valid: true.into(),
            slot: 1u32.into(),
            mask: i.mask.into(),
            homes: None,
            decoded,
            tag: 2u32.into(),
        };
        let executed = Executed {
            instruction,
            leader: (i.mask & i.mask.wrapping_neg()).into(),
            leader_result: i.results[i.mask.trailing_zeros() as usize].into(),
            result: packed(&i.results),
            wrong: {
                let Wrongs { misaligned, outside, program } = wrongs(&self.s, i);
                Wrong { misaligned: misaligned.into(), outside: outside.into(), in_program: program.into() }
            },
            taken: i.taken.into(),
            target: i.target.into(),
            data: packed(&i.data),
            named: None,
        };
        self.t.poke(ResolveIn {
            executed,
            stopped: 0u32.into(),
            squashed: None,
            jump: None,
            count: None,
            in_use: None,
        });
        self.t.steps(u64::from(RESOLVE_TO_OUTCOME));
        self.t.peek()
    }

    /// Passes an instruction and compares everything with the rules.
    fn compare(&mut self, i: &At8) -> Comes {
        let out = self.pass(i);
        let (comes, effect) = model(&self.s, i);
        let word = |b: &Bits| b.low_u64();
        let got = if out.fault.valid == 1 {
            Comes::Fault(FaultCause::from_bits(&out.fault.cause).expect("a cause"), word(&out.fault.mask))
        } else if out.outcome.valid == 1 {
            let o = &out.outcome;
            let (taken, rest) = (word(&o.taken.mask), word(&o.rest.mask));
            assert_eq!(taken & rest, 0, "{i:x?}");
            let kind = OutcomeKind::from_bits(&o.kind).expect("a kind");
            Comes::Outcome(kind, taken, word(&o.taken.pc) as u32, rest, word(&o.rest.pc) as u32)
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
                kind if kind.accesses() => Some(first),
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
            assert_eq!(out.result.common == 1, jump);
            assert!(!jump || out.result.word == u64::from(i.pc * 4 + 4));
            for k in lanes_of(effect).filter(|_| !jump) {
                assert_eq!(out.result.data.extract(32 * k as u32, 32), u64::from(i.results[k]));
            }
        }
        assert_eq!(out.exit.valid == 1, happens && i.kind == Kind::Ecall);
        let accesses = happens && i.kind.accesses();
        let access = out.access.expect("under split");
        assert_eq!(access.valid == 1, accesses, "{i:x?}");
        if accesses {
            assert_eq!(word(&access.served), effect);
            self.port_obeys(i, access, effect);
        }
        comes
    }

    /// The request to the memory port or the scratchpad: operation, lines, bytes and data of what is written, words
    /// that are read.
    fn port_obeys(&mut self, i: &At8, access: Access<Bits>, served: u64) {
        let lanes = self.s.lanes;
        let leader = i.results[i.mask.trailing_zeros() as usize];
        for k in lanes_of(served) {
            assert_eq!(access.offset.extract(2 * k as u32, 2), u64::from(i.results[k] % 4));
        }
        let operation = match i.kind {
            Kind::Load => Operation::Load,
            Kind::Store => Operation::Store,
            Kind::Atomic { answers: true } => Operation::Atomic,
            _ => Operation::AtomicSilent,
        };
        self.port.poke(MemoryIn { access, decided: None });
        let MemoryOut { request, scratchpad } = self.port.peek();
        let to_scratchpad = in_scratchpad(leader);
        assert_eq!(request.valid == 1, !to_scratchpad);
        let (got, tag, enables, data) = match scratchpad {
            Some(pad) if to_scratchpad => {
                assert_eq!(pad.valid, 1);
                for k in lanes_of(served) {
                    let (bank, line) = (i.results[k] / 4 % lanes, (i.results[k] ^ SCRATCHPAD) / 4 / lanes);
                    let bits = self.s.scratchpad_line_bits();
                    assert_eq!(pad.lines.extract(bits * bank, bits), u64::from(line), "bank {bank} of {i:x?}");
                }
                (pad.operation, pad.tag, pad.enables, pad.data)
            }
            pad => {
                assert!(pad.is_none_or(|pad| pad.valid == 0));
                assert_eq!(request.line, u64::from(leader / 4 / lanes));
                (request.operation, request.tag, request.enables, request.data)
            }
        };
        assert_eq!((got, tag), (operation.into(), 2u32.into()));
        // Bytes of the banks after the writes of the served lanes in order.
        let mut written: HashMap<u32, u8> = HashMap::new();
        for k in lanes_of(served).filter(|_| i.kind != Kind::Load) {
            for byte in 0..1 << i.size {
                written.insert((i.results[k] + byte) % (4 * lanes), (i.data[k] >> (8 * byte)) as u8);
            }
        }
        for at in 0..4 * lanes {
            let (enabled, byte) = (enables.bit(at), data.extract(8 * at, 8).low_u64() as u8);
            if i.kind == Kind::Load {
                let read = lanes_of(served).any(|k| i.results[k] / 4 % lanes == at / 4);
                assert_eq!(enabled, read, "byte {at} of {i:x?}");
            } else {
                assert_eq!(enabled.then_some(byte), written.get(&at).copied(), "byte {at} of {i:x?}");
            }
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
            let go = served(&self.s, i.kind, rest, &i.results);
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
    At8 { kind, pc: 40, size, mask, results: addresses, data, taken: 0, target: 0 }
}

/// All ways to give `lanes` lanes one of `choices` each.
fn patterns(lanes: u32, choices: &[u32]) -> impl Iterator<Item = Vec<u32>> {
    let count = choices.len();
    (0..count.pow(lanes)).map(move |n| (0..lanes).map(|k| choices[n / count.pow(k) % count]).collect())
}

/// Both ways of coalescing, with and without a scratchpad, all with atomics.
fn shapes(lanes: u32) -> impl Iterator<Item = Shape> {
    let choices = [Coalescing::Aligned, Coalescing::Full].into_iter().flat_map(|c| [(c, 0), (c, 4096)]);
    choices.map(move |(coalescing, scratchpad)| Shape { coalescing, scratchpad, atomics: true, ..Shape::new(lanes, 2) })
}

/// An access as load, as store, and if it is of words as atomic, until all lanes are served.
fn in_all_ways(bench: &mut Bench, size: u32, mask: u64, places: &[u32]) {
    bench.until_all_are_served(access(Kind::Load, size, mask, places.to_vec()));
    bench.highest_lane_stays(&access(Kind::Store, size, mask, places.to_vec()));
    if size == 2 {
        bench.until_all_are_served(access(Kind::Atomic { answers: true }, size, mask, places.to_vec()));
    }
}

/// 2 lanes: every pattern of places in two lines, and of the scratchpad, every mask, every size.
#[test]
fn all_accesses_of_two_lanes() {
    for s in shapes(2) {
        let mut bench = Bench::of(&s);
        for size in 0..3 {
            let mut choices: Vec<u32> = (0x400..0x410).step_by(1 << size).collect();
            if s.scratchpad > 0 {
                choices.extend((SCRATCHPAD..SCRATCHPAD + 16).step_by(4));
            }
            for (places, mask) in patterns(2, &choices).flat_map(|p| (1..4).map(move |m| (p.clone(), m))) {
                in_all_ways(&mut bench, size, mask, &places);
            }
        }
    }
}

/// 4 lanes: words of a line and one of the next; bytes of three words; every mask.
#[test]
fn all_accesses_of_four_lanes() {
    for s in shapes(4) {
        let mut bench = Bench::of(&s);
        let pad = if s.scratchpad > 0 { SCRATCHPAD } else { 0x400 };
        let choices = [(2, [0x400, 0x404, 0x40c, 0x410, pad + 4]), (0, [0x400, 0x401, 0x407, 0x411, pad + 2])];
        for (size, choices) in choices {
            for places in patterns(4, &choices) {
                for mask in [1, 0b0110, 0b1011, 0b1111] {
                    in_all_ways(&mut bench, size, mask, &places);
                }
            }
        }
    }
}

/// 64 lanes take long to compile: both ways of coalescing, one of them with a scratchpad, unless the tests do all.
#[test]
fn random_accesses_of_one_eight_and_sixty_four_lanes() {
    for (lanes, runs, seed) in [(1, 100, 1), (8, 200, 2), (64, 20, 3)] {
        println!("{lanes} lanes, seed {seed}");
        let mut r = fastrand::Rng::with_seed(seed);
        let step = if lanes < 64 || long() { 1 } else { 3 };
        let mut bench = None;
        for (s, run) in shapes(lanes).step_by(step).flat_map(|s| (0..cases(runs)).map(move |run| (s.clone(), run))) {
            if run == 0 {
                bench = Some(Bench::of(&s));
            }
            let size = r.u32(..3);
            let words = [1, 2, lanes, 3 * lanes][r.usize(..4)];
            // Mostly a lane's own word, so that much is served at once; else anything near.
            let odds = r.u8(..5);
            let addresses: Vec<u32> = (0..lanes)
                .map(|k| {
                    let word = if r.u8(..4) < odds { k } else { r.u32(..words) };
                    let pad = s.scratchpad > 0 && r.u8(..4) == 0;
                    (if pad { SCRATCHPAD } else { 0x800 }) + 4 * word + (r.u32(..4) >> size << size)
                })
                .collect();
            let mask = loop {
                let mask = if r.bool() { u64::MAX } else { r.u64(..) } & u64::MAX >> (64 - lanes);
                if mask != 0 {
                    break mask;
                }
            };
            in_all_ways(bench.as_mut().unwrap(), size, mask, &addresses);
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
        Kind::Atomic { answers: false },
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
        for _ in 0..cases(runs) {
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
                taken: [0, all, r.u64(..) & all][r.usize(..3)],
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

/// A `sync`: who is served, and what its outcome says; where nobody can be kept waiting, whether it is refused.
#[test]
fn a_sync_serves_those_it_names() {
    let (pc, lanes) = (40u32, 4);
    let all = 0b1111u64;
    for (barriers, there) in [(2, true), (2, false), (0, false)] {
        let s = Shape { warp_primitives: true, convergence_barriers: barriers, ..Shape::new(lanes, 2) };
        let mut t = Sim::new(&resolve(&s).check().unwrap());
        t.reset();
        let zero = Executed::shape(&s).map("", &mut |_, _| Bits::ZERO);
        for (mask, here, lacks, in_use) in (1..=all)
            .flat_map(|mask| (1..=all).map(move |here| (mask, here & mask)))
            .filter(|(_, here)| *here != 0)
            .flat_map(|(mask, here)| {
                [(false, false), (true, false), (true, true), (false, true)].map(|(l, u)| (mask, here, l, u))
            })
        {
            let primitive =
                Primitive { votes: 0u32.into(), shuffles: 0u32.into(), syncs: 1u32.into(), function: 0u32.into() };
            let converges = (barriers > 0).then(|| Converges { valid: there.into(), barrier: 1u32.into() });
            let decoded = Decoded {
                pc: pc.into(),
                funct3: HintKind::Sync.into(),
                primitive: Some(primitive),
                converges,
                control: there.into(),
                ..zero.instruction.decoded.clone()
            };
            let instruction = Instruction {
                valid: true.into(),
                slot: 1u32.into(),
                mask: mask.into(),
                decoded,
                ..zero.instruction.clone()
            };
            let leader = here & here.wrapping_neg();
            let named = Named { all: here.into(), here: here.into(), lacks: lacks.into() };
            let executed = Executed { instruction, leader: leader.into(), named: Some(named), ..zero.clone() };
            let in_use_in = (barriers > 0).then(|| in_use.into());
            let count = (barriers > 0).then(|| 0u32.into());
            t.poke(ResolveIn { executed, stopped: 0u32.into(), squashed: None, jump: None, count, in_use: in_use_in });
            t.steps(u64::from(RESOLVE_TO_OUTCOME));
            let out = t.peek();
            let context = format!("{barriers} barriers, there {there}: {mask:#b} {here:#b} {lacks} {in_use}");
            let committed = out.committed.low_u64();
            if !there {
                let refused = lacks || here != mask;
                assert_eq!((out.fault.valid == 1, out.outcome.valid == 1), (refused, false), "{context}");
                assert_eq!(committed, if refused { 0 } else { mask }, "{context}");
                if refused {
                    assert_eq!(
                        (out.fault.cause, out.fault.mask),
                        (FaultCause::NamedIsAbsent.into(), here.into()),
                        "{context}"
                    );
                }
                continue;
            }
            let others = mask & !here;
            let (kind, taken, to, rest) = match (lacks, in_use) {
                (false, _) => (OutcomeKind::Jump, here, pc + 1, others),
                (true, false) => (OutcomeKind::Converge, here, pc + 1, others),
                (true, true) => (OutcomeKind::Queue, others, pc, here),
            };
            let outcome = &out.outcome;
            assert_eq!((outcome.valid.low_u64(), OutcomeKind::from_bits(&outcome.kind)), (1, Some(kind)), "{context}");
            assert_eq!((outcome.taken.mask.low_u64(), outcome.rest.mask.low_u64()), (taken, rest), "{context}");
            assert!(taken == 0 || outcome.taken.pc == u64::from(to), "{context}");
            assert!(rest == 0 || outcome.rest.pc == u64::from(pc), "{context}");
            assert_eq!(committed, if lacks && in_use { 0 } else { here }, "{context}");
        }
    }
}

/// What begins and ends an LR/SC sequence, of two lanes: a backward jump is one by its immediate, and a branch only if it
/// is taken by some.
#[test]
fn a_sequence_begins_and_ends() {
    type Set = fn(Decoded<Bits>) -> Decoded<Bits>;
    const BACK: u32 = (-8i32) as u32;
    let cases: [(&str, Set, [bool; 2]); 11] = [
        ("addi", |d| d, [false; 2]),
        ("lr.w", |d| reserving(d, 1, 0), [true, false]),
        ("sc.w", |d| reserving(d, 0, 1), [false, true]),
        ("lw", |d| Decoded { load: 1u32.into(), ..d }, [false; 2]),
        ("jal back", |d| Decoded { jal: 1u32.into(), imm: BACK.into(), ..d }, [false, true]),
        ("jal", |d| Decoded { jal: 1u32.into(), ..d }, [false; 2]),
        ("branch back", |d| Decoded { branch: 1u32.into(), imm: BACK.into(), ..d }, [false, true]),
        ("branch", |d| Decoded { branch: 1u32.into(), ..d }, [false; 2]),
        ("jalr", |d| Decoded { jalr: 1u32.into(), ..d }, [false, true]),
        ("ecall", |d| Decoded { ecall: 1u32.into(), ..d }, [false, true]),
        ("barrier", |d| Decoded { barrier: 1u32.into(), ..d }, [false, true]),
    ];
    for replay in [Replay::Split, Replay::Serialise] {
        let s = Shape { reservations: true, replay, ..Shape::new(2, 2) };
        let mut t = Sim::new(&resolve(&s).check().unwrap());
        t.reset();
        let zero = Executed::shape(&s).map("", &mut |_, _| Bits::ZERO);
        let mut told = |decoded: &Decoded<Bits>, taken: u64, stopped: bool, apart: bool| {
            let decoded = Decoded { control: 1u32.into(), ..decoded.clone() };
            let instruction = Instruction {
                valid: 1u32.into(),
                slot: 1u32.into(),
                mask: 0b11u64.into(),
                decoded,
                ..zero.instruction.clone()
            };
            // Words of two lines, or of one.
            let result = packed(&[0x400, if apart { 0x440 } else { 0x404 }]);
            let executed = Executed {
                instruction,
                leader: 1u32.into(),
                leader_result: 0x400u32.into(),
                result,
                taken: taken.into(),
                target: 0x10u32.into(),
                ..zero.clone()
            };
            t.poke(ResolveIn {
                executed,
                stopped: stopped.into(),
                squashed: None,
                jump: None,
                count: None,
                in_use: None,
            });
            t.steps(u64::from(RESOLVE_TO_OUTCOME));
            let told = t.peek().sequence.expect("something is kept of sequences");
            [told.begins == 1, told.ends == 1]
        };
        for (name, set, wanted) in cases {
            let decoded = set(zero.instruction.decoded.clone());
            assert_eq!(told(&decoded, 0b11, false, false), wanted, "{name}");
            assert_eq!(told(&decoded, 0b11, true, false), [false; 2], "{name} in a core that has stopped");
            if decoded.branch == 1 {
                assert_eq!(told(&decoded, 0b10, false, false), wanted, "{name} of one");
                assert_eq!(told(&decoded, 0, false, false), [false; 2], "{name} not taken");
            }
            let whole = replay == Replay::Serialise || wanted != [false, true] || decoded.atomic != 1;
            let of_a_part = if whole { wanted } else { [false; 2] };
            assert_eq!(told(&decoded, 0b11, false, true), of_a_part, "{name} of a part");
        }
    }
}

fn reserving(d: Decoded<Bits>, reserves: u32, conditional: u32) -> Decoded<Bits> {
    let reserving = Reserving { reserves: reserves.into(), conditional: conditional.into() };
    Decoded { load: reserves.into(), atomic: conditional.into(), reserving: Some(reserving), ..d }
}

//! The unit against a model that knows only threads: each has a pc and a call depth of its own and runs or waits, which
//! outcomes and wakes change. In every cycle the paths in the tables must be those threads, each in exactly one path; and what the cycle did to the
//! paths of its slot must be one of the few things that may happen (an outcome, a return, a start, a wake, an exchange, nothing).

use super::*;
use crate::divergence::{Side, Start, Wake};
use heddle_hdl::netlist::{Memory, Module, NodeId, PropertyKind};
use heddle_sim::Sim;
use heddle_sim::simulation::{Failed, SimulationError};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

type Unit = Sim<UnitIn<Width>, UnitOut<Signal>>;
type Plan = Design<UnitIn<Width>, UnitOut<Signal>>;

/// A path of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct P {
    depth: u64,
    pc: u64,
    mask: u64,
    waits: bool,
}

impl P {
    fn key(&self) -> (bool, Reverse<u64>, u64) {
        (self.waits, Reverse(self.depth), self.pc)
    }
}

/// The paths of a warp as they stand in the tables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Tables {
    x: Option<P>,
    y: Option<P>,
    /// Bottom first.
    cold: Vec<P>,
}

impl Tables {
    fn all(&self) -> Vec<P> {
        self.x.into_iter().chain(self.y).chain(self.cold.iter().copied()).collect()
    }

    /// What an outcome or a return leaves: the valid ones of three paths, sorted and merged, over this cold table.
    fn sorted(paths: [Option<P>; 3], mut cold: Vec<P>) -> Tables {
        let mut list: Vec<P> = paths.into_iter().flatten().collect();
        list.sort_by_key(P::key);
        list.dedup_by(|q, p| {
            let same = p.key() == q.key();
            p.mask |= if same { q.mask } else { 0 };
            same
        });
        let mut list = list.into_iter();
        let (x, y) = (list.next(), list.next());
        cold.extend(list);
        Tables { x, y, cold }
    }

    /// Whether the sorter may make `after` of this: y exchanged for an entry that belongs before it. If x waits, x, y and
    /// the entry, which are different then, are sorted.
    fn may_swap_to(&self, after: &Tables) -> bool {
        let places = 0..self.cold.len();
        let (Some(x), Some(y)) = (self.x, self.y) else { return false };
        places.into_iter().filter(|&k| self.cold[k].key() < y.key()).any(|k| {
            let mut three = [x, y, self.cold[k]];
            three[if x.waits { 0 } else { 1 }..].sort_by_key(P::key);
            let mut swapped = Tables { x: Some(three[0]), y: Some(three[1]), ..self.clone() };
            swapped.cold[k] = three[2];
            swapped == *after && !(x.waits && three[0].key() == three[1].key())
        })
    }

    /// There are paths, and all of them wait.
    fn all_wait(&self) -> bool {
        self.x.is_some() && self.all().iter().all(|p| p.waits)
    }

    /// The same with no path that waits.
    fn woken(&self) -> Tables {
        let wake = |p: P| P { waits: false, ..p };
        Tables { x: self.x.map(wake), y: self.y.map(wake), cold: self.cold.iter().copied().map(wake).collect() }
    }
}

/// What the pipeline would do with a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Slot {
    Idle,
    /// Steered; its next outcome may come.
    Runs,
    /// Gave an outcome in this cycle and has not been steered since, or not been found to wait.
    Waits(u64),
    /// All its threads wait, and the unit says so.
    Parked,
}

/// The most that a slot may wait for its steering once `hold` is obeyed.
fn most_wait(s: &Shape) -> u64 {
    u64::from(24 + 3 * s.warps + 2 * s.lanes + if s.barriers { s.warps * (s.lanes + 4) } else { 0 })
}

/// Cycles from the issue of an instruction to its outcome.
const ISSUE_TO_OUTCOME: u32 = 5;

struct Bench {
    t: Unit,
    s: Shape,
    random: fastrand::Rng,
    slots: Vec<Slot>,
    /// Depth and pc of every thread and whether it waits, by slot and lane.
    threads: Vec<Vec<Option<(u64, u64, bool)>>>,
    /// The slot to be woken in the next cycle.
    wake: Option<usize>,
    tables: Vec<Tables>,
    /// `hold` in the last cycles, a bit each, the last lowest.
    held: u32,
    /// Whether the unit is compared with the model, or only runs with its own assertions.
    compares: bool,
}

/// What the pipeline says in a cycle, in plain values.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    slot: usize,
    kind: u32,
    taken: P,
    rest: P,
    call: bool,
    ret: bool,
}

impl Bench {
    fn new(design: &Plan, s: &Shape, seed: u64) -> Bench {
        println!("{} lanes, {} warps, seed {seed}", s.lanes, s.warps);
        let mut t = Sim::new(design);
        t.reset();
        let warps = s.warps as usize;
        Bench {
            t,
            s: s.clone(),
            random: fastrand::Rng::with_seed(seed),
            slots: vec![Slot::Idle; warps],
            threads: vec![vec![None; s.lanes as usize]; warps],
            wake: None,
            tables: vec![Tables::default(); warps],
            held: 0,
            compares: true,
        }
    }

    fn of_shape(lanes: u32, warps: u32, seed: u64) -> Bench {
        let s = Shape::new(lanes, warps);
        Bench::new(&path_table(&s).check().unwrap(), &s, seed)
    }

    /// With paths that may wait.
    fn that_waits(lanes: u32, warps: u32, seed: u64) -> Bench {
        let s = Shape { barriers: true, ..Shape::new(lanes, warps) };
        Bench::new(&path_table(&s).check().unwrap(), &s, seed)
    }

    /// Reads the paths of a slot out of the tables.
    fn read(&mut self, slot: usize) -> Tables {
        if !self.t.register("live").bit(slot as u32) {
            return Tables::default();
        }
        let (depth, pc) = (self.s.depth_bits, self.s.pc_bits());
        let lanes = self.s.lanes;
        let phase = self.s.barriers && self.t.memory_read("phases", slot as u64).bit(0);
        let context = |word: &Bits, low: u32| P {
            depth: word.extract(low, depth).low_u64(),
            pc: word.extract(low + depth, pc).low_u64(),
            mask: word.extract(low + depth + pc, lanes).low_u64(),
            waits: word.bit(low + depth + pc + lanes) != phase,
        };
        let x = Some(context(&self.t.memory_read("hct0", slot as u64), 0));
        let mut tables = Tables { x, ..Tables::default() };
        if lanes > 1 {
            let word = self.t.memory_read("hct1", slot as u64);
            tables.y = word.bit(0).then(|| context(&word, 1));
        }
        if lanes > 2 {
            let count = self.t.memory_read("cct.counts", slot as u64).low_u64();
            let base = (slot as u64) << index_width(lanes - 2);
            tables.cold = (0..count).map(|k| context(&self.t.memory_read("cct.cold", base + k), 0)).collect();
        }
        tables
    }

    /// The paths of the slot are its threads, each in exactly one.
    fn check_threads(&self, slot: usize) {
        let (tables, threads) = (&self.tables[slot], &self.threads[slot]);
        let mut seen = 0;
        for path in tables.all() {
            assert_ne!(path.mask, 0, "slot {slot}: {tables:x?}");
            assert_eq!(seen & path.mask, 0, "slot {slot}: {tables:x?}");
            seen |= path.mask;
            for lane in (0..threads.len()).filter(|lane| path.mask >> lane & 1 == 1) {
                assert_eq!(
                    threads[lane],
                    Some((path.depth, path.pc, path.waits)),
                    "slot {slot} lane {lane}: {tables:x?}"
                );
            }
        }
        let live = (0..threads.len()).filter(|&lane| threads[lane].is_some()).fold(0, |m, lane| m | 1 << lane);
        assert_eq!(seen, live, "slot {slot}: {tables:x?}");
    }

    /// What a control instruction of the slot could do.
    fn invent(&mut self, slot: usize) -> Told {
        let x = self.tables[slot].x.expect("a slot that runs has an active path");
        let r = &mut self.random;
        let last = (1 << self.s.pc_bits()) - 1;
        let here = (x.pc + r.u64(..6)) & last;
        let kind = match r.u32(..100) {
            0..4 => kind::EXIT,
            4..20 => kind::ARRIVED,
            20..35 if self.s.barriers => kind::WAIT,
            20..40 => kind::JUMP,
            40..60 => kind::MEMORY,
            _ => kind::BRANCH,
        };
        let some = x.mask & if r.u8(..3) == 0 { r.u64(..) } else { u64::MAX };
        let served = if some == 0 { x.mask } else { some };
        let (taken, target, stays) = match kind {
            kind::EXIT => (0, r.u64(..=last), here),
            kind::ARRIVED => (x.mask, here + 1, here),
            kind::JUMP => (served, r.u64(..12), here),
            kind::MEMORY => (served, here + 1, here),
            kind::WAIT => (served, [here + 1, 9][r.usize(..2)], here),
            _ => (x.mask & r.u64(..), r.u64(..12), here + 1),
        };
        let rest = if kind == kind::EXIT { 0 } else { x.mask & !taken };
        let call = kind == kind::JUMP && x.depth < 3 && r.u8(..3) == 0;
        let ret = kind == kind::JUMP && !call && r.bool();
        let depth = if ret { x.depth.saturating_sub(1) } else { x.depth + u64::from(call) };
        let taken = P { depth, pc: target & last, mask: taken, waits: kind == kind::WAIT };
        let rest = P { depth: x.depth, pc: stays & last, mask: rest, waits: false };
        Told { slot, kind, taken, rest, call, ret }
    }

    fn move_threads(&mut self, told: &Told, x: Option<P>) {
        let x = x.map_or(0, |p| p.mask);
        for (lane, thread) in self.threads[told.slot].iter_mut().enumerate().filter(|(lane, _)| x >> lane & 1 == 1) {
            let at = |p: &P| (p.mask >> lane & 1 == 1).then_some((p.depth, p.pc, p.waits));
            *thread = at(&told.taken).or(at(&told.rest));
        }
    }

    /// One cycle with an outcome, a start, `wake`, any of them or none; compares everything that can be seen of it.
    fn cycle(&mut self, told: Option<Told>, start: Option<(usize, P)>) -> Result<(), SimulationError> {
        let (asked, issued) = (self.random.usize(..self.slots.len()), self.random.usize(..self.slots.len()));
        self.poke(told, start, asked, issued);
        let out = self.t.peek();
        let slot = self.t.probe("slot").low_u64() as usize;
        let updates = self.t.probe("updates") == 1;
        let cycle = self.t.cycle();
        let woken = self.wake.take().filter(|_| out.wake_ready == 1);
        self.t.try_step()?;

        let after = self.read(slot);
        let before = std::mem::replace(&mut self.tables[slot], after);
        if self.compares {
            let start = start.filter(|_| out.start_ready == 1);
            self.compare(slot, &before, &out, told, start, woken);
            let may_steer = updates || woken.is_some() || (out.events.swap == 1 && before.x.is_some_and(|x| x.waits));
            self.compare_steering(slot, may_steer, &out, told);
            self.compare_answers(slot, asked, issued, &before, &out);
        }
        self.slots[slot] = match self.slots[slot] {
            _ if out.steer.valid == 1 => Slot::Runs,
            _ if self.tables[slot].x.is_none() => Slot::Idle,
            Slot::Runs if updates => Slot::Waits(cycle),
            as_before => as_before,
        };
        let waiting = self.t.peek().waiting;
        for (slot, state) in self.slots.iter_mut().enumerate() {
            if matches!(state, Slot::Waits(_)) && waiting.bit(slot as u32) {
                *state = Slot::Parked;
            }
        }
        for (slot, state) in self.slots.iter().enumerate() {
            if let Slot::Waits(since) = state {
                assert!(cycle - since <= most_wait(&self.s), "slot {slot} waits since cycle {since}");
            }
        }
        Ok(())
    }

    fn poke(&mut self, told: Option<Told>, start: Option<(usize, P)>, asked: usize, issued: usize) {
        let side = |p: P| Side { mask: p.mask.into(), pc: p.pc.into() };
        let o = told.unwrap_or_default();
        let (slot, begun) = start.unwrap_or_default();
        let (pc, mask) = (begun.pc.into(), begun.mask.into());
        self.t.poke(UnitIn {
            start: Start { valid: start.is_some().into(), slot: slot.into(), pc, mask },
            wake: Wake { valid: self.wake.is_some().into(), slot: self.wake.unwrap_or(0).into() },
            decode_slot: asked.into(),
            issue_slot: issued.into(),
            outcome: Outcome {
                valid: told.is_some().into(),
                slot: o.slot.into(),
                kind: o.kind.into(),
                taken: side(o.taken),
                rest: side(o.rest),
                call: o.call.into(),
                ret: o.ret.into(),
            },
        });
    }

    /// What the cycle did to the paths of its slot is what it had to do, and they are still the threads.
    fn compare(
        &mut self,
        slot: usize,
        before: &Tables,
        out: &UnitOut<Bits>,
        told: Option<Told>,
        start: Option<(usize, P)>,
        woken: Option<usize>,
    ) {
        let valid = |p: P| (p.mask != 0).then_some(p);
        let after = self.tables[slot].clone();
        let expected = if let Some(o) = told {
            assert_eq!(slot, o.slot);
            self.move_threads(&o, before.x);
            Tables::sorted([valid(o.taken), valid(o.rest), before.y], before.cold.clone())
        } else if out.events.extract == 1 {
            let (head, cold) = before.cold.split_last().expect("an entry came back");
            assert_eq!(before.y, None);
            Tables::sorted([before.x, None, Some(*head)], cold.to_vec())
        } else if let Some((at, begun)) = start {
            assert_eq!(slot, at);
            for lane in (0..self.s.lanes as usize).filter(|lane| begun.mask >> lane & 1 == 1) {
                self.threads[at][lane] = Some((0, begun.pc, false));
            }
            Tables { x: valid(begun), ..Tables::default() }
        } else if let Some(at) = woken {
            assert_eq!(slot, at);
            self.threads[at].iter_mut().flatten().for_each(|thread| thread.2 = false);
            before.woken()
        } else if out.events.swap == 1 {
            assert!(before.may_swap_to(&after), "slot {slot}: {before:x?} to {after:x?}");
            after.clone()
        } else {
            before.clone()
        };
        assert_eq!(after, expected, "slot {slot}, before {before:x?}, {told:x?}");
        self.check_threads(slot);
        let paths = if told.is_some() { after.all().len() } else { 0 };
        assert_eq!(out.events.paths, paths as u64);
    }

    /// A slot is steered to its new x, now or, if cold paths must come back first, later; and only if it waits for it.
    fn compare_steering(&self, slot: usize, may_steer: bool, out: &UnitOut<Bits>, told: Option<Told>) {
        let tables = &self.tables[slot];
        let due = tables.x.filter(|x| may_steer && !x.waits && (tables.y.is_some() || tables.cold.is_empty()));
        assert_eq!(out.steer.valid == 1, due.is_some(), "slot {slot}: {tables:x?}");
        if let Some(x) = due {
            assert_eq!((out.steer.slot.low_u64(), out.steer.pc.low_u64()), (slot as u64, x.pc));
            let replay = told.is_some_and(|o| o.kind == kind::MEMORY && x == o.rest);
            assert_eq!(out.steer.replay == 1, replay);
        }
    }

    /// Stop pc and mask, as asked for in the cycle that has passed; `before` is the slot whose turn it was.
    fn compare_answers(&self, slot: usize, asked: usize, issued: usize, before: &Tables, out: &UnitOut<Bits>) {
        let then = |k: usize| if k == slot { before } else { &self.tables[k] };
        if let Some(x) = then(asked).x {
            let stop = then(asked).y.filter(|y| (y.waits, y.depth) == (x.waits, x.depth) && y.pc > x.pc);
            assert_eq!(out.stop.valid == 1, stop.is_some(), "slot {asked}: {:x?}", then(asked));
            assert!(stop.is_none_or(|y| out.stop.pc == y.pc));
        }
        if let Some(x) = then(issued).x {
            assert_eq!(out.mask, x.mask);
        }
        for k in 0..self.slots.len() {
            assert_eq!(out.live.bit(k as u32), then(k).x.is_some(), "slot {k}");
            assert!(then(k).all_wait() || !out.waiting.bit(k as u32), "slot {k}: {:x?}", then(k));
            assert!(out.waiting.bit(k as u32) || self.slots[k] != Slot::Parked, "slot {k} is no longer waiting");
        }
    }

    /// One cycle of random events: an outcome with a chance of `density` in 100.
    fn random_cycle(&mut self, density: u32) -> Result<(), SimulationError> {
        // What `hold` kept from being issued does not come when it would be resolved.
        let kept = self.held >> (ISSUE_TO_OUTCOME - 1) & 1 == 1;
        self.held = self.held << 1 | u32::from(self.t.peek().hold == 1);
        let ready = |want: Slot, slots: &[Slot]| (0..slots.len()).filter(|&k| slots[k] == want).collect::<Vec<_>>();
        let (running, idle) = (ready(Slot::Runs, &self.slots), ready(Slot::Idle, &self.slots));
        let may = !running.is_empty() && !kept && self.random.u32(..100) < density;
        let told = may.then(|| {
            let slot = running[self.random.usize(..running.len())];
            self.invent(slot)
        });
        let start = (!idle.is_empty() && self.random.u8(..8) == 0).then(|| {
            let lanes = u64::MAX >> (64 - self.s.lanes);
            let mask = if self.random.u8(..4) == 0 { self.random.u64(..) & lanes } else { lanes };
            let pc = self.random.u64(..12);
            (idle[self.random.usize(..idle.len())], P { depth: 0, pc, mask, waits: false })
        });
        let parked = ready(Slot::Parked, &self.slots);
        self.wake = (!parked.is_empty() && self.random.u8(..8) == 0).then(|| parked[self.random.usize(..parked.len())]);
        self.cycle(told, start)
    }

    /// Cycles in phases of different density. Every now and then all tables are read and compared.
    fn random_cycles(&mut self, cycles: u32) -> Result<(), SimulationError> {
        let mut density = 50;
        for k in 0..cycles {
            if k % 64 == 0 {
                density = [4, 20, 50, 80, 100][self.random.usize(..5)];
                for slot in 0..self.slots.len() {
                    assert_eq!(self.read(slot), self.tables[slot], "slot {slot}");
                }
            }
            self.random_cycle(density)?;
        }
        Ok(())
    }

    /// Adds this run's covers to `hits`.
    fn count_covers(&mut self, hits: &mut BTreeMap<String, u64>) {
        let directory = self.t.simulation().directory().clone();
        let covers = (0..directory.properties.len()).filter(|&k| directory.property_kind(k) == PropertyKind::Cover);
        for k in covers {
            let path = &directory.properties[k].path;
            *hits.entry(path.clone()).or_default() += self.t.cover_hits(path);
        }
    }
}

/// The lanes of a mask as text, thread 0 leftmost, as in the paper's figure.
fn lanes(mask: u64) -> String {
    (0..4).map(|lane| if mask >> lane & 1 == 1 { '1' } else { '0' }).collect()
}

/// The mask of such a text.
fn mask(text: &str) -> u64 {
    text.chars().rev().fold(0, |m, bit| 2 * m + u64::from(bit == '1'))
}

/// `path-lists-simty.txt` Figure 1(e): `if (A && B) C; else D; E`, thread 0 through ABCE, 1 through ADE, 2 and 3 through
/// ABDE. One path list an outcome.
#[test]
fn figure_1e() {
    const BLOCKS: [(char, u64); 5] = [('A', 0), ('B', 10), ('C', 20), ('D', 30), ('E', 40)];
    let pc = |block: char| BLOCKS.iter().find(|b| b.0 == block).unwrap().1;
    let side = |block: char, threads: &str| P { pc: pc(block), mask: mask(threads), ..P::default() };
    let branch = |taken: P, rest: P| Told { kind: kind::BRANCH, taken, rest, ..Told::default() };
    let mut bench = Bench::of_shape(4, 1, 1);
    let list = |bench: &Bench| {
        let name = |p: P| format!("{} {}", BLOCKS.iter().find(|b| b.1 == p.pc).unwrap().0, lanes(p.mask));
        let tables = &bench.tables[0];
        let others = tables.y.into_iter().chain(tables.cold.iter().copied());
        tables.x.into_iter().map(name).chain(others.map(|p| format!("({})", name(p)))).collect::<Vec<_>>().join(" ")
    };

    bench.cycle(None, Some((0, side('A', "1111")))).unwrap();
    assert_eq!(list(&bench), "A 1111");
    bench.cycle(Some(branch(side('D', "0100"), side('B', "1011"))), None).unwrap();
    assert_eq!(list(&bench), "B 1011 (D 0100)");
    bench.cycle(Some(branch(side('D', "0011"), side('C', "1000"))), None).unwrap();
    assert_eq!(list(&bench), "C 1000 (D 0111)");
    let jump = Told { kind: kind::JUMP, taken: side('E', "1000"), ..Told::default() };
    bench.cycle(Some(jump), None).unwrap();
    assert_eq!(list(&bench), "D 0111 (E 1000)");
    assert_eq!(bench.t.peek().stop, Stop { valid: true.into(), pc: pc('E').into() });
    let arrived = Told { kind: kind::ARRIVED, taken: side('E', "0111"), ..Told::default() };
    bench.cycle(Some(arrived), None).unwrap();
    assert_eq!(list(&bench), "E 1111");
}

/// The cold table cycle by cycle: insertions, two exchanges by the sorter, a merge, a return. `docs/path-tables.md` shows
/// this trace.
#[test]
fn cold_table_cycle_by_cycle() {
    let mut bench = Bench::of_shape(4, 1, 1);
    let side = |pc: u64, threads: &str| P { pc, mask: mask(threads), ..P::default() };
    let split = |taken: P, rest: P| Told { kind: kind::BRANCH, taken, rest, ..Told::default() };
    let jump = |taken: P| Told { kind: kind::JUMP, taken, ..Told::default() };
    let name = |p: &P| format!("{}:{}", p.pc, lanes(p.mask));
    let mut trace = String::new();
    let mut cycle = |bench: &mut Bench, told: Option<Told>, start: Option<(usize, P)>| {
        bench.cycle(told, start).unwrap();
        let t = &bench.tables[0];
        let [x, y] = [t.x, t.y].map(|p| p.as_ref().map_or("-".into(), name));
        let cold: Vec<String> = t.cold.iter().map(name).collect();
        let steered = if bench.slots[0] == Slot::Runs { "runs" } else { "waits" };
        trace += format!("{x:7} {y:7} {steered:5} {}", cold.join(" ")).trim_end();
        trace += "\n";
    };
    cycle(&mut bench, None, Some((0, side(0, "1111"))));
    cycle(&mut bench, Some(split(side(40, "0001"), side(1, "1110"))), None);
    cycle(&mut bench, Some(split(side(30, "0010"), side(2, "1100"))), None);
    cycle(&mut bench, Some(split(side(20, "0100"), side(3, "1000"))), None);
    cycle(&mut bench, Some(jump(side(60, "1000"))), None);
    (0..3).for_each(|_| cycle(&mut bench, None, None));
    cycle(&mut bench, Some(jump(side(30, "0100"))), None);
    cycle(&mut bench, None, None);
    let expected = "\
0:1111  -       runs
1:1110  40:0001 runs
2:1100  30:0010 runs  40:0001
3:1000  20:0100 runs  40:0001 30:0010
20:0100 60:1000 runs  40:0001 30:0010
20:0100 60:1000 runs  40:0001 30:0010
20:0100 40:0001 runs  60:1000 30:0010
20:0100 30:0010 runs  60:1000 40:0001
30:0110 -       waits 60:1000 40:0001
30:0110 40:0001 runs  60:1000
";
    assert_eq!(trace, expected, "\n{trace}");
}

/// Threads reach a barrier at different times, one ends on the way, all are woken and meet. `docs/path-tables.md` shows
/// this trace; `w` marks a path that waits.
#[test]
fn barrier_cycle_by_cycle() {
    let mut bench = Bench::that_waits(4, 1, 1);
    let side = |pc: u64, threads: &str| P { pc, mask: mask(threads), ..P::default() };
    let split = |taken: P, rest: P| Told { kind: kind::BRANCH, taken, rest, ..Told::default() };
    let jump = |taken: P| Told { kind: kind::JUMP, taken, ..Told::default() };
    let wait = |p: P| Told { kind: kind::WAIT, taken: P { waits: true, ..p }, ..Told::default() };
    let name = |p: &P| format!("{}{}:{}", if p.waits { "w" } else { "" }, p.pc, lanes(p.mask));
    let mut trace = String::new();
    let mut cycle = |bench: &mut Bench, told: Option<Told>| {
        bench.cycle(told, None).unwrap();
        let t = &bench.tables[0];
        let [x, y] = [t.x, t.y].map(|p| p.as_ref().map_or("-".into(), name));
        let cold: Vec<String> = t.cold.iter().map(name).collect();
        let state = match bench.slots[0] {
            Slot::Runs => "runs",
            Slot::Parked => "parked",
            _ => "-",
        };
        trace += format!("{x:8} {y:8} {state:6} {}", cold.join(" ")).trim_end();
        trace += "\n";
    };
    bench.cycle(None, Some((0, side(0, "1111")))).unwrap();
    cycle(&mut bench, Some(split(side(40, "0001"), side(1, "1110"))));
    cycle(&mut bench, Some(split(side(30, "0010"), side(2, "1100"))));
    cycle(&mut bench, Some(split(side(20, "0100"), side(3, "1000"))));
    cycle(&mut bench, Some(wait(side(50, "1000"))));
    cycle(&mut bench, Some(Told { kind: kind::EXIT, ..Told::default() }));
    cycle(&mut bench, None);
    cycle(&mut bench, Some(wait(side(60, "0010"))));
    (0..2).for_each(|_| cycle(&mut bench, None));
    cycle(&mut bench, Some(wait(side(50, "0001"))));
    cycle(&mut bench, None);
    bench.wake = Some(0);
    cycle(&mut bench, None);
    cycle(&mut bench, Some(jump(side(60, "1001"))));
    let expected = "\
1:1110   40:0001  runs
2:1100   30:0010  runs   40:0001
3:1000   20:0100  runs   40:0001 30:0010
20:0100  w50:1000 runs   40:0001 30:0010
w50:1000 -        -      40:0001 30:0010
30:0010  w50:1000 runs   40:0001
w50:1000 w60:0010 -      40:0001
w50:1000 w60:0010 -      40:0001
40:0001  w50:1000 runs   w60:0010
w50:1001 -        -      w60:0010
w50:1001 w60:0010 parked
50:1001  60:0010  runs
60:1011  -        runs
";
    assert_eq!(trace, expected, "\n{trace}");
}

/// A wake and a start get their turn although other slots would give an outcome in every cycle.
#[test]
fn outcomes_do_not_starve_a_wake() {
    for lanes in [1, 4] {
        let mut bench = Bench::that_waits(lanes, 4, 1);
        let all = P { mask: (1 << lanes) - 1, ..P::default() };
        bench.cycle(None, Some((0, all))).unwrap();
        bench.cycle(None, Some((1, all))).unwrap();
        let wait = Told { slot: 1, kind: kind::WAIT, taken: P { waits: true, ..all }, ..Told::default() };
        bench.cycle(Some(wait), None).unwrap();
        assert_eq!(bench.slots[1], Slot::Parked);
        let mut cycles = 0;
        while bench.slots[1] == Slot::Parked || bench.slots[2] == Slot::Idle {
            let spin = Told { kind: kind::JUMP, taken: all, ..Told::default() };
            let held = bench.t.peek().hold == 1;
            bench.wake = (bench.slots[1] == Slot::Parked).then_some(1);
            let start = (bench.slots[2] == Slot::Idle).then_some((2, all));
            bench.cycle((!held).then_some(spin), start).unwrap();
            cycles += 1;
            assert!(cycles < 32, "{:?}", bench.slots);
        }
    }
}

/// A call at the greatest depth is an assertion failure; a return at depth 0 stays there.
#[test]
fn call_depth_has_bounds() {
    let s = Shape { depth_bits: 1, ..Shape::new(4, 1) };
    let mut bench = Bench::new(&path_table(&s).check().unwrap(), &s, 1);
    let to = |depth: u64, pc: u64| P { depth, pc, mask: 0b1111, waits: false };
    let jump = |taken: P| Told { kind: kind::JUMP, taken, ..Told::default() };
    bench.cycle(None, Some((0, to(0, 0)))).unwrap();
    bench.cycle(Some(Told { ret: true, ..jump(to(0, 5)) }), None).unwrap();
    bench.cycle(Some(Told { call: true, ..jump(to(1, 10)) }), None).unwrap();
    let error = bench.cycle(Some(Told { call: true, ..jump(to(0, 20)) }), None).unwrap_err();
    assert!(error.to_string().starts_with("assertion `call_depth_does_not_overflow` failed"), "{error}");
}

/// Random outcomes of several warps, the sorter racing insertions and extractions.
#[test]
fn tables_are_the_threads() {
    let mut covers = BTreeMap::new();
    for (k, lanes) in [1, 2, 4, 8, 16, 64].into_iter().enumerate() {
        for warps in [1, 2, 8] {
            let seed = 100 * k as u64 + u64::from(warps);
            let mut bench = Bench::of_shape(lanes, warps, seed);
            bench.random_cycles(3000).unwrap();
            bench.count_covers(&mut covers);
            let mut bench = Bench::that_waits(lanes, warps, seed);
            bench.random_cycles(3000).unwrap();
            bench.count_covers(&mut covers);
        }
    }
    let never: Vec<_> = covers.iter().filter(|(_, hits)| **hits == 0).map(|(path, _)| path).collect();
    assert!(never.is_empty(), "never happened: {never:?}");
}

/// With every thread on a path of its own, the cold table is full; nothing is lost on the way there and back.
#[test]
fn a_path_a_thread() {
    for lanes in [2, 4, 8, 64] {
        let mut bench = Bench::of_shape(lanes, 2, 1);
        let all = u64::MAX >> (64 - lanes);
        bench.cycle(None, Some((1, P { pc: 100, mask: all, ..P::default() }))).unwrap();
        for lane in 0..lanes - 1 {
            let x = bench.tables[1].x.unwrap();
            let taken = P { pc: 1000 - u64::from(lane), mask: 1 << lane, ..P::default() };
            let rest = P { pc: x.pc + 1, mask: x.mask & !taken.mask, ..P::default() };
            bench.cycle(Some(Told { slot: 1, taken, rest, ..Told::default() }), None).unwrap();
        }
        assert_eq!(bench.tables[1].all().len(), lanes as usize);
        (0..4 * lanes).for_each(|_| bench.cycle(None, None).unwrap());
        let y = bench.tables[1].y.unwrap();
        assert!(bench.tables[1].cold.iter().all(|p| y.key() < p.key()), "{:?}", bench.tables[1]);
        while let Some(x) = bench.tables[1].x {
            let out = P { pc: 2000, mask: x.mask, ..P::default() };
            let kind = if x.pc == 2000 { kind::EXIT } else { kind::JUMP };
            let taken = if x.pc == 2000 { P::default() } else { out };
            bench.cycle(Some(Told { slot: 1, kind, taken, ..Told::default() }), None).unwrap();
            while let Slot::Waits(_) = bench.slots[1] {
                bench.cycle(None, None).unwrap();
            }
        }
        assert_eq!(bench.slots[1], Slot::Idle);
    }
}

/// The assertion that ends random events on a design of 8 lanes and 2 warps with a change in the unit or in its cold table.
fn caught_by(change: impl Fn(&mut Module, &mut Module)) -> String {
    let s = Shape { barriers: true, ..Shape::new(8, 2) };
    let mut design = path_table(&s).check().unwrap();
    let mut unit = (*design.netlist).clone();
    let place = unit.instances.iter().position(|i| i.name == "cct").unwrap();
    let mut cct = (*unit.instances[place].module).clone();
    change(&mut unit, &mut cct);
    unit.instances[place].module = Arc::new(cct);
    design.netlist = Arc::new(unit);
    let mut bench = Bench::new(&design, &s, 1);
    bench.compares = false;
    match (0..20_000).find_map(|_| bench.random_cycle(50).err()) {
        Some(SimulationError::Failed(Failed { path, .. })) => path,
        other => panic!("no assertion failed: {other:?}"),
    }
}

fn memory<'m>(module: &'m mut Module, name: &str) -> &'m mut Memory {
    module.memories.iter_mut().find(|m| m.name == name).unwrap()
}

fn named(module: &Module, name: &str) -> NodeId {
    NodeId(module.nodes.iter().position(|n| n.name.as_deref() == Some(name)).unwrap() as u32)
}

#[test]
fn a_lost_insertion_is_caught() {
    let path = caught_by(|_, cct| memory(cct, "cold").writes[0].enable = named(cct, "swap"));
    assert!(path.contains("cold"), "{path}");
}

#[test]
fn half_an_exchange_is_caught() {
    let path = caught_by(|unit, _| memory(unit, "hct1").writes[0].enable = named(unit, "updates"));
    assert_eq!(path, "every_live_thread_is_in_one_path");
}

/// A sorter that keeps its comparison across an outcome, as if only the cold table's own changes mattered.
#[test]
fn an_exchange_that_is_not_abandoned_is_caught() {
    let path = caught_by(|_, cct| {
        let sort = named(cct, "sort");
        cct.registers.iter_mut().filter(|r| r.name.starts_with("compared")).for_each(|r| r.enable = Some(sort));
    });
    assert!(path.contains("cold") || path.contains("one_path"), "{path}");
}

/// A wake that does not change the phase: the paths would be steered and still wait.
#[test]
fn a_wake_that_wakes_nobody_is_caught() {
    let path = caught_by(|unit, _| memory(unit, "phases").writes.clear());
    assert!(path.contains("wait") || path == "outcome_of_a_path_that_runs", "{path}");
}

/// A unit that takes a slot for waiting without having looked through its cold table.
#[test]
fn a_slot_that_is_called_waiting_too_early_is_caught() {
    let path = caught_by(|unit, _| {
        let (all_wait, x_waits) = (named(unit, "all_wait"), named(unit, "x_waits"));
        unit.nodes[all_wait.index()].args = vec![x_waits, x_waits];
    });
    assert_eq!(path, "all_threads_of_a_waiting_slot_wait");
}

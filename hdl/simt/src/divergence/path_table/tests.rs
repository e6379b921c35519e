//! The unit against a model that knows only threads: each has a pc and a call depth of its own and runs or waits, which
//! outcomes and wakes change. In every cycle the paths in the tables must be those threads, each in exactly one path;
//! and what the cycle did to the paths of its slot must be one of the few things that may happen (an outcome, a return,
//! a start, a wake, an exchange, nothing).

use super::order::testing::{Turn, stacked};
use super::*;
use crate::divergence::testing::{Begun, P, Pipeline, Plan, Slot, Told, all_hit, lanes, mask};
use crate::divergence::{OutcomeKind, Stop};
use crate::shape::Order;
use crate::testing::cases;
use heddle_hdl::netlist::{Memory, Module, NodeId};
use heddle_sim::simulation::{Failed, SimulationError};
use std::collections::BTreeMap;
use std::sync::Arc;

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

    /// What an outcome or a return leaves: three paths in order and merged, over this cold table. Some may be empty.
    fn sorted(order: Order, turn: Turn, paths: [P; 3], mut cold: Vec<P>) -> Tables {
        let list = if order.is_stack() {
            stacked(order, turn, paths)
        } else {
            let mut list: Vec<P> = paths.into_iter().filter(|p| p.mask != 0).collect();
            list.sort_by_key(P::key);
            list.dedup_by(|q, p| {
                let same = p.key() == q.key();
                p.mask |= if same { q.mask } else { 0 };
                same
            });
            list
        };
        let mut list = list.into_iter();
        let (x, y) = (list.next(), list.next());
        cold.extend(list);
        Tables { x, y, cold }
    }

    /// Whether the sorter may make `after` of this: y exchanged for an entry that belongs before it. If x waits, x, y
    /// and the entry, which are different then, are sorted.
    fn may_swap_to(&self, order: Order, after: &Tables) -> bool {
        let mut places = 0..self.cold.len();
        let (Some(x), Some(y)) = (self.x, self.y) else { return false };
        if order.is_stack() {
            // Only to find a path that can run, or one to be before those that wait.
            return y.waits
                && places.any(|k| {
                    let (first, second) = if x.waits { (self.cold[k], x) } else { (x, self.cold[k]) };
                    let mut swapped = Tables { x: Some(first), y: Some(second), ..self.clone() };
                    swapped.cold[k] = y;
                    !self.cold[k].waits && swapped == *after
                });
        }
        places.filter(|&k| self.cold[k].key() < y.key()).any(|k| {
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

struct Bench {
    pipeline: Pipeline,
    tables: Vec<Tables>,
    /// The slot whose wake was taken in the cycle before: it is woken in this.
    taken: Option<usize>,
    /// The slot that was steered in the cycle before: its outcome comes later.
    steered: Option<usize>,
    /// Whether the unit is compared with the model, or only runs with its own assertions.
    compares: bool,
}

impl Bench {
    fn new(design: &Plan, s: &Shape, seed: u64) -> Bench {
        let pipeline = Pipeline::new(design, s, seed);
        Bench {
            pipeline,
            tables: vec![Tables::default(); s.warps as usize],
            taken: None,
            steered: None,
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
        if !self.pipeline.t.register("live").bit(slot as u32) {
            return Tables::default();
        }
        let (depth, pc) = (self.pipeline.s.depth_bits, self.pipeline.s.pc_bits());
        let lanes = self.pipeline.s.lanes;
        let phase = self.pipeline.s.barriers && self.pipeline.t.memory_read("phases", slot as u64).bit(0);
        let context = |word: &Bits, low: u32| P {
            depth: word.extract(low, depth).low_u64(),
            pc: word.extract(low + depth, pc).low_u64(),
            mask: word.extract(low + depth + pc, lanes).low_u64(),
            waits: word.bit(low + depth + pc + lanes) != phase,
        };
        let x = Some(context(&self.pipeline.t.memory_read("hct0", slot as u64), 0));
        let mut tables = Tables { x, ..Tables::default() };
        if lanes > 1 {
            let word = self.pipeline.t.memory_read("hct1", slot as u64);
            tables.y = word.bit(0).then(|| context(&word, 1));
        }
        if lanes > 2 {
            let count = self.pipeline.t.memory_read("cct.counts", slot as u64).low_u64();
            let base = (slot as u64) << index_width(lanes - 2);
            let mut late = |field: &str| self.pipeline.t.register(&format!("cct.late_{field}"));
            let late = (late("valid").bit(0)).then(|| {
                (late("address").low_u64(), ["depth", "pc", "mask", "waits"].map(|part| late(&format!("path_{part}"))))
            });
            tables.cold = (base..base + count)
                .map(|address| match &late {
                    Some((to, [d, p, mask, waits])) if *to == address => {
                        P { depth: d.low_u64(), pc: p.low_u64(), mask: mask.low_u64(), waits: waits.bit(0) != phase }
                    }
                    _ => context(&self.pipeline.t.memory_read("cct.cold", address), 0),
                })
                .collect();
        }
        tables
    }

    /// The paths of the slot are its threads, each in exactly one.
    fn check_threads(&self, slot: usize) {
        let (tables, threads) = (&self.tables[slot], &self.pipeline.threads[slot]);
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

    /// One cycle with an outcome, a start, `wake`, any of them or none; compares everything that can be seen of it.
    fn cycle(&mut self, told: Option<Told>, start: Option<Begun>) -> Result<(), SimulationError> {
        if !self.pipeline.may_tell(&told) {
            self.cycle(None, None)?;
        }
        let (asked, issued) = (
            self.pipeline.random.usize(..self.pipeline.slots.len()),
            self.pipeline.random.usize(..self.pipeline.slots.len()),
        );
        self.pipeline.poke(told, start, asked, issued);
        let out = self.pipeline.t.peek();
        let slot = self.pipeline.t.probe("slot").low_u64() as usize;
        let updates = self.pipeline.t.probe("updates") == 1;
        let cycle = self.pipeline.t.cycle();
        let taken = self.pipeline.wake.take_if(|_| out.wake_ready == 1);
        let woken = std::mem::replace(&mut self.taken, taken);
        self.pipeline.t.try_step()?;
        self.pipeline.pass();
        self.steered = (out.steer.valid == 1).then(|| out.steer.slot.low_u64() as usize);

        let after = self.read(slot);
        let before = std::mem::replace(&mut self.tables[slot], after);
        if self.compares {
            let start = start.filter(|_| out.start_ready == 1);
            self.compare(slot, &before, &out, told, start, woken);
            let may_steer = updates || woken.is_some() || (out.events.swap == 1 && before.x.is_some_and(|x| x.waits));
            self.compare_steering(slot, may_steer, &out, told);
            self.compare_answers(slot, asked, issued, &before, &out);
        }
        self.pipeline.slots[slot] = match self.pipeline.slots[slot] {
            _ if out.steer.valid == 1 => Slot::Runs,
            _ if self.tables[slot].x.is_none() => Slot::Idle,
            Slot::Runs if updates => Slot::Waits(cycle),
            as_before => as_before,
        };
        if let Some(slot) = taken {
            self.pipeline.slots[slot] = Slot::Waits(cycle);
        }
        let waiting = self.pipeline.t.peek().waiting;
        for (slot, state) in self.pipeline.slots.iter_mut().enumerate() {
            if matches!(state, Slot::Waits(_)) && waiting.bit(slot as u32) {
                *state = Slot::Parked;
            }
        }
        for (slot, state) in self.pipeline.slots.iter().enumerate() {
            if let Slot::Waits(since) = state {
                assert!(cycle - since <= self.pipeline.most_wait(), "slot {slot} waits since cycle {since}");
            }
        }
        Ok(())
    }

    /// What the cycle did to the paths of its slot is what it had to do, and they are still the threads.
    fn compare(
        &mut self,
        slot: usize,
        before: &Tables,
        out: &UnitOut<Bits>,
        told: Option<Told>,
        start: Option<Begun>,
        woken: Option<usize>,
    ) {
        let order = self.pipeline.s.order;
        let there = |p: Option<P>| p.unwrap_or_default();
        let after = self.tables[slot].clone();
        let expected = if let Some(o) = told {
            assert_eq!(slot, o.slot);
            self.pipeline.move_threads(&o, before.x.map_or(0, |x| x.mask));
            Tables::sorted(order, Turn::Outcome, [o.taken, o.rest, there(before.y)], before.cold.clone())
        } else if out.events.extract == 1 {
            let (head, cold) = before.cold.split_last().expect("an entry came back");
            assert_eq!(before.y, None);
            Tables::sorted(order, Turn::Return, [there(before.x), *head, P::default()], cold.to_vec())
        } else if let Some((at, begun)) = start {
            assert_eq!(slot, at);
            self.pipeline.start_threads((at, begun));
            Tables { x: (begun.mask != 0).then_some(begun), ..Tables::default() }
        } else if let Some(at) = woken {
            assert_eq!(slot, at);
            self.pipeline.wake_threads(at);
            before.woken()
        } else if out.events.swap == 1 {
            assert!(before.may_swap_to(order, &after), "slot {slot}: {before:x?} to {after:x?}");
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
            let replay = told.is_some_and(|o| o.kind == OutcomeKind::Memory && x == o.rest);
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
        for k in 0..self.pipeline.slots.len() {
            assert_eq!(out.live.bit(k as u32), then(k).x.is_some(), "slot {k}");
            assert!(then(k).all_wait() || !out.waiting.bit(k as u32), "slot {k}: {:x?}", then(k));
            assert!(
                out.waiting.bit(k as u32) || self.pipeline.slots[k] != Slot::Parked,
                "slot {k} is no longer waiting"
            );
        }
    }

    /// One cycle of random events: an outcome with a chance of `density` in 100. Any slot that runs may have one two
    /// cycles after the steering.
    fn random_cycle(&mut self, density: u32) -> Result<(), SimulationError> {
        let tables = &self.tables;
        let invent = |p: &mut Pipeline, slot: usize| {
            p.invent(slot, tables[slot].x.expect("a slot that runs has an active path"), None)
        };
        let steered = self.steered;
        let (told, start) = self.pipeline.random_events(density, |_, slot| steered != Some(slot), invent);
        self.cycle(told, start)
    }

    /// Cycles in phases of different density. Every now and then all tables are read and compared.
    fn random_cycles(&mut self, cycles: u32) -> Result<(), SimulationError> {
        let mut density = 50;
        for k in 0..cycles {
            if k % 64 == 0 {
                density = [4, 20, 50, 80, 100][self.pipeline.random.usize(..5)];
                for slot in 0..self.pipeline.slots.len() {
                    assert_eq!(self.read(slot), self.tables[slot], "slot {slot}");
                }
            }
            self.random_cycle(density)?;
        }
        Ok(())
    }
}

/// `path-lists-simty.txt` Figure 1(e): `if (A && B) C; else D; E`, thread 0 through ABCE, 1 through ADE, 2 and 3
/// through ABDE. One path list an outcome.
#[test]
fn figure_1e() {
    const BLOCKS: [(char, u64); 5] = [('A', 0), ('B', 10), ('C', 20), ('D', 30), ('E', 40)];
    let pc = |block: char| BLOCKS.iter().find(|b| b.0 == block).unwrap().1;
    let side = |block: char, threads: &str| P { pc: pc(block), mask: mask(threads), ..P::default() };
    let branch = |taken: P, rest: P| Told { kind: OutcomeKind::Branch, taken, rest, ..Told::default() };
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
    let jump = Told { kind: OutcomeKind::Jump, taken: side('E', "1000"), ..Told::default() };
    bench.cycle(Some(jump), None).unwrap();
    assert_eq!(list(&bench), "D 0111 (E 1000)");
    assert_eq!(bench.pipeline.t.peek().stop, Stop { valid: true.into(), pc: pc('E').into() });
    let arrived = Told { kind: OutcomeKind::Arrived, taken: side('E', "0111"), ..Told::default() };
    bench.cycle(Some(arrived), None).unwrap();
    assert_eq!(list(&bench), "E 1111");
}

/// The cold table cycle by cycle: insertions, two exchanges by the sorter, a merge, a return.
/// `docs/reference/path-tables.md` shows this trace.
#[test]
fn cold_table_cycle_by_cycle() {
    let mut bench = Bench::of_shape(4, 1, 1);
    let side = |pc: u64, threads: &str| P { pc, mask: mask(threads), ..P::default() };
    let split = |taken: P, rest: P| Told { kind: OutcomeKind::Branch, taken, rest, ..Told::default() };
    let jump = |taken: P| Told { kind: OutcomeKind::Jump, taken, ..Told::default() };
    let name = |p: &P| format!("{}:{}", p.pc, lanes(p.mask));
    let mut trace = String::new();
    let mut cycle = |bench: &mut Bench, told: Option<Told>, start: Option<Begun>| {
        bench.cycle(told, start).unwrap();
        let t = &bench.tables[0];
        let [x, y] = [t.x, t.y].map(|p| p.as_ref().map_or("-".into(), name));
        let cold: Vec<String> = t.cold.iter().map(name).collect();
        let steered = if bench.pipeline.slots[0] == Slot::Runs { "runs" } else { "waits" };
        trace += format!("{x:7} {y:7} {steered:5} {}", cold.join(" ")).trim_end();
        trace += "\n";
    };
    cycle(&mut bench, None, Some((0, side(0, "1111"))));
    let outcomes = [
        None,
        Some(split(side(40, "0001"), side(1, "1110"))),
        None,
        Some(split(side(30, "0010"), side(2, "1100"))),
        None,
        Some(split(side(20, "0100"), side(3, "1000"))),
        None,
        Some(jump(side(60, "1000"))),
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        Some(jump(side(30, "0100"))),
        None,
        None,
    ];
    for (announces, outcome) in announced(&outcomes) {
        bench.pipeline.announces = announces;
        cycle(&mut bench, outcome, None);
    }
    let expected = "\
0:1111  -       runs
0:1111  -       runs
1:1110  40:0001 runs
1:1110  40:0001 runs
2:1100  30:0010 runs  40:0001
2:1100  30:0010 runs  40:0001
3:1000  20:0100 runs  40:0001 30:0010
3:1000  20:0100 runs  40:0001 30:0010
20:0100 60:1000 runs  40:0001 30:0010
20:0100 60:1000 runs  40:0001 30:0010
20:0100 60:1000 runs  40:0001 30:0010
20:0100 60:1000 runs  40:0001 30:0010
20:0100 40:0001 runs  60:1000 30:0010
20:0100 40:0001 runs  60:1000 30:0010
20:0100 30:0010 runs  60:1000 40:0001
20:0100 30:0010 runs  60:1000 40:0001
30:0110 -       waits 60:1000 40:0001
30:0110 -       waits 60:1000 40:0001
30:0110 40:0001 runs  60:1000
";
    assert_eq!(trace, expected, "\n{trace}");
}

/// Each outcome of slot 0, or none, with who is announced beside it: the one after it.
fn announced(outcomes: &[Option<Told>]) -> impl Iterator<Item = (Option<usize>, Option<Told>)> {
    let next = outcomes.iter().skip(1).map(|next| next.map(|_| 0)).chain([None]);
    next.zip(outcomes.iter().copied())
}

/// Threads reach a barrier at different times, one ends on the way, all are woken and meet.
/// `docs/reference/path-tables.md` shows this trace; `w` marks a path that waits.
#[test]
fn barrier_cycle_by_cycle() {
    let mut bench = Bench::that_waits(4, 1, 1);
    let side = |pc: u64, threads: &str| P { pc, mask: mask(threads), ..P::default() };
    let split = |taken: P, rest: P| Told { kind: OutcomeKind::Branch, taken, rest, ..Told::default() };
    let jump = |taken: P| Told { kind: OutcomeKind::Jump, taken, ..Told::default() };
    let wait = |p: P| Told { kind: OutcomeKind::Wait, taken: P { waits: true, ..p }, ..Told::default() };
    let name = |p: &P| format!("{}{}:{}", if p.waits { "w" } else { "" }, p.pc, lanes(p.mask));
    let mut trace = String::new();
    let mut cycle = |bench: &mut Bench, told: Option<Told>| {
        bench.cycle(told, None).unwrap();
        let t = &bench.tables[0];
        let [x, y] = [t.x, t.y].map(|p| p.as_ref().map_or("-".into(), name));
        let cold: Vec<String> = t.cold.iter().map(name).collect();
        let state = match bench.pipeline.slots[0] {
            Slot::Runs => "runs",
            Slot::Parked => "parked",
            _ => "-",
        };
        trace += format!("{x:8} {y:8} {state:6} {}", cold.join(" ")).trim_end();
        trace += "\n";
    };
    bench.cycle(None, Some((0, side(0, "1111")))).unwrap();
    let outcomes = [
        None,
        Some(split(side(40, "0001"), side(1, "1110"))),
        None,
        Some(split(side(30, "0010"), side(2, "1100"))),
        None,
        Some(split(side(20, "0100"), side(3, "1000"))),
        None,
        Some(wait(side(50, "1000"))),
        None,
        Some(Told { kind: OutcomeKind::Exit, ..Told::default() }),
        None,
        None,
        None,
        Some(wait(side(60, "0010"))),
        None,
        None,
        None,
        None,
        None,
        Some(wait(side(50, "0001"))),
        None,
        None,
    ];
    for (announces, outcome) in announced(&outcomes) {
        bench.pipeline.announces = announces;
        cycle(&mut bench, outcome);
    }
    bench.pipeline.wake = Some(0);
    (0..2).for_each(|_| cycle(&mut bench, None));
    bench.pipeline.announces = Some(0);
    cycle(&mut bench, None);
    cycle(&mut bench, Some(jump(side(60, "1001"))));
    let expected = "\
0:1111   -        runs
1:1110   40:0001  runs
1:1110   40:0001  runs
2:1100   30:0010  runs   40:0001
2:1100   30:0010  runs   40:0001
3:1000   20:0100  runs   40:0001 30:0010
3:1000   20:0100  runs   40:0001 30:0010
20:0100  w50:1000 runs   40:0001 30:0010
20:0100  w50:1000 runs   40:0001 30:0010
w50:1000 -        -      40:0001 30:0010
w50:1000 -        -      40:0001 30:0010
30:0010  w50:1000 runs   40:0001
30:0010  w50:1000 runs   40:0001
w50:1000 w60:0010 -      40:0001
w50:1000 w60:0010 -      40:0001
w50:1000 w60:0010 -      40:0001
w50:1000 w60:0010 -      40:0001
40:0001  w50:1000 runs   w60:0010
40:0001  w50:1000 runs   w60:0010
w50:1001 -        -      w60:0010
w50:1001 -        -      w60:0010
w50:1001 w60:0010 parked
w50:1001 w60:0010 -
50:1001  60:0010  runs
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
        bench.cycle(None, Some((3, all))).unwrap();
        let wait = Told { slot: 1, kind: OutcomeKind::Wait, taken: P { waits: true, ..all }, ..Told::default() };
        bench.cycle(Some(wait), None).unwrap();
        assert_eq!(bench.pipeline.slots[1], Slot::Parked);
        let mut cycles = 0;
        while bench.pipeline.slots[1] == Slot::Parked || bench.pipeline.slots[2] == Slot::Idle {
            let spin = |slot: usize| Told { slot, kind: OutcomeKind::Jump, taken: all, ..Told::default() };
            let spin = bench.pipeline.announced.map(spin);
            let next = if bench.pipeline.announced == Some(0) { 3 } else { 0 };
            bench.pipeline.announces = (bench.pipeline.t.peek().hold == 0).then_some(next);
            bench.pipeline.wake = (bench.pipeline.slots[1] == Slot::Parked).then_some(1);
            let start = (bench.pipeline.slots[2] == Slot::Idle).then_some((2, all));
            bench.cycle(spin, start).unwrap();
            cycles += 1;
            assert!(cycles < 32, "{:?}", bench.pipeline.slots);
        }
    }
}

/// A turn that is kept for an outcome is nobody else's, whether the outcome comes or not; nothing else is lost by it.
#[test]
fn an_announced_outcome_may_not_come() {
    let mut bench = Bench::that_waits(4, 2, 1);
    let all = P { mask: 0b1111, ..P::default() };
    let side = |pc: u64, threads: &str| P { pc, mask: mask(threads), ..P::default() };
    let split = |taken: P, rest: P| Told { taken, rest, ..Told::default() };
    let jump = |slot: usize, taken: P| Told { slot, kind: OutcomeKind::Jump, taken, ..Told::default() };
    let cycle = |bench: &mut Bench, announces: Option<usize>, told: Option<Told>, start: Option<Begun>| {
        bench.pipeline.announces = announces;
        bench.cycle(told, start).unwrap();
        bench.pipeline.slots.clone()
    };
    let start = |slot: usize| Some((slot, all));
    cycle(&mut bench, Some(0), None, start(0));
    // A start is not taken in the turn that was announced, but right before the next.
    assert_eq!(cycle(&mut bench, None, None, start(1)), [Slot::Runs, Slot::Idle]);
    assert_eq!(cycle(&mut bench, Some(0), None, start(1)), [Slot::Runs, Slot::Runs]);
    cycle(&mut bench, Some(1), Some(jump(0, all)), None);
    // A wake is offered in the cycle of an announcement, taken in the next, and steers in that of another announcement.
    let wait = Told { kind: OutcomeKind::Wait, ..jump(1, P { waits: true, ..all }) };
    assert_eq!(cycle(&mut bench, None, Some(wait), None), [Slot::Runs, Slot::Parked]);
    bench.pipeline.wake = Some(1);
    assert_eq!(cycle(&mut bench, Some(0), None, None), [Slot::Runs, Slot::Parked]);
    assert!(matches!(cycle(&mut bench, None, None, None)[1], Slot::Waits(_)));
    assert_eq!(cycle(&mut bench, Some(0), None, None), [Slot::Runs, Slot::Runs]);
    // A path returns when two announced turns of the other slot have passed: one with an outcome, one without.
    for (taken, rest) in
        [(side(40, "0001"), side(1, "1110")), (side(30, "0010"), side(2, "1100")), (side(20, "0100"), side(3, "1000"))]
    {
        cycle(&mut bench, None, Some(split(taken, rest)), None);
        cycle(&mut bench, Some(0), None, None);
    }
    assert!(matches!(cycle(&mut bench, Some(1), Some(jump(0, side(20, "1000"))), None)[0], Slot::Waits(_)));
    assert!(matches!(cycle(&mut bench, Some(1), Some(jump(1, all)), None)[0], Slot::Waits(_)));
    assert!(matches!(cycle(&mut bench, None, None, None)[0], Slot::Waits(_)));
    assert_eq!(cycle(&mut bench, None, None, None)[0], Slot::Runs);
    assert_eq!(bench.tables[0].x, Some(side(20, "1100")));
}

/// A call at the greatest depth is an assertion failure; a return at depth 0 stays there.
#[test]
fn call_depth_has_bounds() {
    let s = Shape { depth_bits: 1, ..Shape::new(4, 1) };
    let mut bench = Bench::new(&path_table(&s).check().unwrap(), &s, 1);
    let to = |depth: u64, pc: u64| P { depth, pc, mask: 0b1111, waits: false };
    let jump = |taken: P| Told { kind: OutcomeKind::Jump, taken, ..Told::default() };
    bench.cycle(None, Some((0, to(0, 0)))).unwrap();
    bench.cycle(Some(Told { ret: true, ..jump(to(0, 5)) }), None).unwrap();
    bench.cycle(Some(Told { call: true, ..jump(to(1, 10)) }), None).unwrap();
    let error = bench.cycle(Some(Told { call: true, ..jump(to(0, 20)) }), None).unwrap_err();
    assert!(error.to_string().starts_with("assertion `call_depth_does_not_overflow` failed"), "{error}");
}

/// Three warps with a path each in the cold table begin to return in consecutive cycles, two others have an outcome in
/// each cycle behind them: two heads wait, and that of the third has to be fetched. Returns how many cycles without an
/// outcome it takes.
fn three_heads(covers: &mut BTreeMap<String, u64>) -> usize {
    let mut bench = Bench::of_shape(4, 8, 1);
    let all = P { mask: 0b1111, ..P::default() };
    let side = |pc: u64, threads: &str| P { pc, mask: mask(threads), ..P::default() };
    let split = |slot: usize, taken: P, rest: P| Told { slot, taken, rest, ..Told::default() };
    let jump = |slot: usize, taken: P| Told { slot, kind: OutcomeKind::Jump, taken, ..Told::default() };
    for slot in 0..5 {
        bench.cycle(None, Some((slot, all))).unwrap();
    }
    for slot in 0..3 {
        bench.cycle(Some(split(slot, side(30, "0001"), side(1, "1110"))), None).unwrap();
        bench.cycle(Some(split(slot, side(20, "0010"), side(2, "1100"))), None).unwrap();
    }
    bench.pipeline.announces = Some(0);
    bench.cycle(None, None).unwrap();
    let slots = [0, 1, 2, 3, 4, 3];
    for (k, &slot) in slots.iter().enumerate() {
        bench.pipeline.announces = slots.get(k + 1).copied();
        let to = if slot < 3 { side(20, "1100") } else { all };
        bench.cycle(Some(jump(slot, to)), None).unwrap();
    }
    let mut cycles = 0;
    while bench.pipeline.slots.iter().any(|slot| matches!(slot, Slot::Waits(_))) {
        bench.cycle(None, None).unwrap();
        cycles += 1;
    }
    bench.pipeline.count_covers(covers);
    cycles
}

#[test]
fn a_third_head_is_fetched() {
    let mut covers = BTreeMap::new();
    // Two heads that were read return; the third is chosen, fetched and read, and returns.
    assert_eq!(three_heads(&mut covers), 6);
    assert_eq!((covers["cct.has_no_room_for_a_head"], covers["cct.fetches"]), (1, 1));
}

/// Random outcomes of several warps, the sorter racing insertions and extractions.
#[test]
fn tables_are_the_threads() {
    let mut covers = BTreeMap::new();
    three_heads(&mut covers);
    for (k, lanes) in [1, 2, 4, 8, 16, 64].into_iter().enumerate() {
        for warps in [1, 2, 8] {
            let seed = 100 * k as u64 + u64::from(warps);
            let mut bench = Bench::of_shape(lanes, warps, seed);
            bench.random_cycles(cases(3000)).unwrap();
            bench.pipeline.count_covers(&mut covers);
            let mut bench = Bench::that_waits(lanes, warps, seed);
            bench.random_cycles(cases(3000)).unwrap();
            bench.pipeline.count_covers(&mut covers);
        }
    }
    all_hit(&covers);
}

/// The same in other orders, which see the same threads.
#[test]
fn tables_of_every_order_are_the_threads() {
    for order in [Order::Pc, Order::Swap, Order::Minority, Order::Majority] {
        let mut covers = BTreeMap::new();
        for (k, lanes) in [1, 2, 4, 8, 16, 64].into_iter().enumerate() {
            for (warps, barriers) in [(1, false), (2, true), (4, true)] {
                let s = Shape { barriers, order, ..Shape::new(lanes, warps) };
                let mut bench = Bench::new(&path_table(&s).check().unwrap(), &s, 100 * k as u64 + u64::from(warps));
                bench.random_cycles(cases(3000)).unwrap();
                bench.pipeline.count_covers(&mut covers);
            }
        }
        let found = "cct.sorter_finds_a_path_that_can_run";
        assert!(covers[found] > 0 && covers["cct.sorter_finds_that_all_wait"] > 0, "{}", order.name());
    }
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
            let kind = if x.pc == 2000 { OutcomeKind::Exit } else { OutcomeKind::Jump };
            let taken = if x.pc == 2000 { P::default() } else { out };
            bench.cycle(Some(Told { slot: 1, kind, taken, ..Told::default() }), None).unwrap();
            while let Slot::Waits(_) = bench.pipeline.slots[1] {
                bench.cycle(None, None).unwrap();
            }
        }
        assert_eq!(bench.pipeline.slots[1], Slot::Idle);
    }
}

/// The assertion that ends random events on a design of 8 lanes and 2 warps with a change in the unit or in its cold
/// table.
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
    match (0..20_000).find_map(|_| bench.random_cycle(20).err()) {
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
    let path = caught_by(|_, cct| {
        let swap = named(cct, "swap");
        cct.registers.iter_mut().find(|r| r.name == "late_valid").unwrap().next = swap;
    });
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
    assert!(
        ["cold", "one_path", "between_read_and_swap", "inputs_disjoint"].iter().any(|name| path.contains(name)),
        "{path}"
    );
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

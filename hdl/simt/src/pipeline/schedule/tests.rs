use super::*;
use crate::divergence::Divergence;
use crate::testing::cases;
use heddle_sim::Sim;
use std::collections::{BTreeSet, HashMap};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct In<T> {
    waiting: T,
    ready: T,
    starts: Option<T>,
    group: Option<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Out<T> {
    choice: T,
    any: T,
}

/// A scheduler and its reference.
struct Bench {
    t: Sim<In<Width>, Out<Signal>>,
    s: Shape,
    /// The slot that went last.
    last: Option<u32>,
    /// Who went in the cycle before.
    before: Option<u32>,
    /// Warps, the oldest first.
    ages: Vec<u32>,
    turn: u32,
    due: bool,
    cycle: u32,
    /// Slots of a block less 1.
    group: u32,
    /// The first slot of the block that is preferred, and the last slot that went of each block.
    block: u32,
    last_of: HashMap<u32, u32>,
}

impl Bench {
    /// With blocks of so many warps.
    fn new(schedule: Schedule, warps: u32, divergence: Divergence, of_block: u32) -> Bench {
        Bench::of(Shape { schedule, ..Shape::new(2, warps).with_divergence(divergence) }, of_block)
    }

    fn of(s: Shape, of_block: u32) -> Bench {
        let warps = s.warps;
        let group = by_block(&s).then(|| s.warp_bits());
        let inputs = In { waiting: s.slots(), ready: s.slots(), starts: by_age(&s).then_some(warps), group };
        let scheduler = module("scheduler", inputs, |m, In { waiting, ready, starts, group }| {
            let (choice, any) = choose(m, &s, Candidates { waiting, ready, open: m.lit(1u32, 1), starts, group });
            Out { choice, any }
        });
        let mut t = Sim::new(&scheduler.check().unwrap());
        let group = of_block * s.sides() - 1;
        let (starts, warps) = (by_age(&s).then_some(Bits::ZERO), by_block(&s).then(|| (of_block - 1).into()));
        t.poke(In { waiting: Bits::ZERO, ready: Bits::ZERO, starts, group: warps });
        t.reset();
        let last_of = HashMap::new();
        Bench {
            t,
            s,
            last: None,
            before: None,
            ages: Vec::new(),
            turn: 0,
            due: false,
            cycle: 0,
            group,
            block: 0,
            last_of,
        }
    }

    /// The next one of the slot's block after the block's last.
    fn in_block(&self, slot: u32, ready: u128) -> Option<u32> {
        let first = slot & !self.group;
        let from = self.last_of.get(&first).map_or(0, |last| last + 1 - first);
        (0..=self.group).map(|k| first + ((from + k) & self.group)).find(|slot| ready >> slot & 1 == 1)
    }

    /// The first that is ready, counted from `from`, around the circle.
    fn around(&self, from: u32, ready: u128) -> Option<u32> {
        let slots = self.s.slots();
        (0..slots).map(|k| (from + k) % slots).find(|slot| ready >> slot & 1 == 1)
    }

    /// Who should go.
    fn expected(&self, ready: u128) -> Option<u32> {
        let is_ready = |slot: &u32| ready >> slot & 1 == 1;
        let turn = || Some(self.turn).filter(|slot| self.due && is_ready(slot));
        let paths = |&warp: &u32| warp * self.s.sides()..(warp + 1) * self.s.sides();
        let oldest = || self.ages.iter().flat_map(paths).find(is_ready);
        let preferred = || self.around(self.block, ready);
        let if_fair = || turn().filter(|_| self.s.fair);
        match self.s.schedule {
            Schedule::LooseRoundRobin => if_fair().or_else(|| self.around(self.last.map_or(0, |last| last + 1), ready)),
            Schedule::Sticky => if_fair().or_else(|| self.around(self.last.unwrap_or(0), ready)),
            Schedule::GreedyThenOldest => turn().or(self.last.filter(is_ready)).or_else(oldest),
            _ if !by_block(&self.s) => if_fair().or_else(|| self.around(self.last.map_or(0, |last| last + 1), ready)),
            Schedule::BlockRoundRobin => if_fair().or_else(|| preferred().and_then(|slot| self.in_block(slot, ready))),
            Schedule::BlockAge => turn().or_else(|| oldest().and_then(|slot| self.in_block(slot, ready))),
            Schedule::BlockSticky => turn().or_else(|| preferred().and_then(|slot| self.in_block(slot, ready))),
        }
    }

    /// One cycle: who goes.
    fn choose(&mut self, waiting: u128, ready: u128, starts: Option<u32>) -> Option<u32> {
        let choice = self.look(waiting, ready, starts).choice;
        self.t.step();
        assert!(choice.count_ones() <= 1);
        (0..self.s.slots()).find(|&slot| choice.bit(slot))
    }

    fn look(&mut self, waiting: u128, ready: u128, starts: Option<u32>) -> Out<Bits> {
        let starts_port = by_age(&self.s).then_some(Bits::from(starts.map_or(0, |warp| 1u64 << warp)));
        let group = by_block(&self.s).then(|| (self.group / self.s.sides()).into());
        self.t.poke(In { waiting: waiting.into(), ready: ready.into(), starts: starts_port, group });
        self.t.peek()
    }

    /// One cycle, compared with the reference. Who goes.
    fn cycle(&mut self, waiting: u128, ready: u128, starts: Option<u32>) -> Option<u32> {
        let out = self.look(waiting, ready, starts);
        let expected = self.expected(ready);
        let name = self.s.schedule.name();
        assert_eq!(out.any == 1, expected.is_some());
        let one_hot = Bits::from(expected.map_or(0, |slot| 1u128 << slot));
        assert_eq!(out.choice, one_hot, "{name}: {ready:b} after {:?}, ages {:?}", self.last, self.ages);
        let taken = self.due && expected == Some(self.turn);
        if self.due && (taken || waiting >> self.turn & 1 == 0) {
            self.turn = (self.turn + 1) % self.s.slots();
        }
        self.due = self.due && !taken || self.cycle % TURN_EVERY == TURN_EVERY - 1;
        self.cycle += 1;
        // In the cycle after its issue a slot does not stall.
        let stays = self.last.is_some() && self.before == self.last;
        let stays = match self.s.schedule {
            Schedule::Sticky => stays,
            Schedule::GreedyThenOldest if self.s.slots() > 1 => stays && !taken,
            _ => false,
        };
        self.last = if stays { self.last } else { expected.or(self.last) };
        let of_block = self.before.is_some_and(|slot| slot & !self.group == self.block);
        self.before = expected;
        if let Some(slot) = expected {
            self.last_of.insert(slot & !self.group, slot);
        }
        match self.s.schedule {
            Schedule::BlockRoundRobin => self.block = (self.block + self.group + 1) % self.s.slots(),
            _ if of_block => {}
            _ => self.block = self.around(self.block, ready).map_or(self.block, |slot| slot & !self.group),
        }
        if let Some(warp) = starts {
            self.ages.retain(|&other| other != warp);
            self.ages.push(warp);
        }
        self.t.step();
        expected
    }

    fn start(&mut self, warps: impl IntoIterator<Item = u32>) {
        warps.into_iter().for_each(|warp| assert_eq!(self.cycle(0, 0, Some(warp)), None));
    }
}

/// Every schedule with one and with two slots per warp, and of a core that is fair.
fn benches(warps: u32) -> impl Iterator<Item = Bench> {
    let bench = move |&(_, schedule): &(&str, Schedule)| {
        let units = [Divergence::PATH_TABLE, Divergence::DUAL_PATH].into_iter();
        let blocks = [1, 2, warps].map(|of_block| of_block.min(warps)).into_iter().collect::<BTreeSet<_>>();
        let is_by_block = by_block(&Shape { schedule, ..Shape::new(2, warps) });
        let blocks: Vec<u32> = blocks.into_iter().filter(|of_block| is_by_block || *of_block == 1).collect();
        let fair = [(Divergence::PATH_TABLE, true)];
        units.map(|unit| (unit, false)).chain(fair).flat_map(move |(divergence, fair)| {
            let s = Shape { schedule, fair, ..Shape::new(2, warps).with_divergence(divergence) };
            blocks.clone().into_iter().map(move |of_block| Bench::of(s.clone(), of_block))
        })
    };
    Schedule::ALL.iter().flat_map(bench)
}

/// All orders of so many warps.
fn orders(warps: u32) -> Vec<Vec<u32>> {
    let Some(last) = warps.checked_sub(1) else { return vec![vec![]] };
    let insert = |order: Vec<u32>| {
        (0..=last as usize).map(move |place| {
            let mut longer = order.clone();
            longer.insert(place, last);
            longer
        })
    };
    orders(last).into_iter().flat_map(insert).collect()
}

#[test]
fn every_choice_after_every_start_and_every_choice() {
    for mut bench in [1, 2, 4].into_iter().flat_map(benches) {
        let slots = bench.s.slots();
        for order in orders(bench.s.warps) {
            bench.start(order);
            for (last, ready) in (0..slots).flat_map(|last| (0..1 << slots).map(move |ready| (last, ready))) {
                assert_eq!(bench.cycle(1 << last, 1 << last, None), Some(last));
                bench.cycle(ready, ready, None);
            }
        }
    }
}

#[test]
fn random_slots_against_the_rules() {
    for (warps, seed) in [(1, 1), (2, 2), (8, 3), (32, 4), (64, 5)] {
        for mut bench in benches(warps) {
            let sides = bench.s.sides();
            println!("{}, {warps} warps of {sides}, seed {seed}", bench.s.schedule.name());
            let mut r = fastrand::Rng::with_seed(seed);
            let slots_of = |warp: u32| ((1 << sides) - 1) << (warp * sides);
            let mut started = 0u128;
            for _ in 0..cases(3000) {
                let starts = Some(r.u32(..warps)).filter(|_| r.u8(..8) == 0);
                let starting = starts.map_or(0, slots_of);
                let waiting = started & (r.u128(..) | r.u128(..)) & !starting;
                let ready = waiting & r.u128(..) & if r.bool() { r.u128(..) } else { u128::MAX };
                bench.cycle(waiting, ready, starts);
                started |= starting;
            }
        }
    }
}

/// Of each warp one side stands for it, the other one in turn; and warps are chosen among as if they had one path.
#[test]
fn a_side_stands_for_its_warp() {
    for (&(name, schedule), warps) in Schedule::ALL.iter().flat_map(|s| [1, 2, 8, 64].map(|warps| (s, warps))) {
        println!("{name}, {warps} warps");
        let dual_path = Shape::new(2, warps).with_divergence(Divergence::DUAL_PATH);
        let s = Shape { schedule, path_scheduler: PathScheduler::SideFirst, ..dual_path };
        let of_block = if by_block(&s) { warps.min(2) } else { 1 };
        let mut sides = Bench::of(s, of_block);
        let mut of_warps = Bench::new(schedule, warps, Divergence::STACK, of_block);
        let mut r = fastrand::Rng::with_seed(u64::from(warps));
        let mut last_side = vec![0; warps as usize];
        let mut both = 0;
        let start = |bench: &mut Bench| bench.start(0..warps);
        start(&mut of_warps);
        (0..warps).for_each(|warp| assert_eq!(sides.choose(0, 0, Some(warp)), None));
        for _ in 0..cases(2000) {
            let waiting = r.u128(..) & u128::MAX >> (128 - 2 * warps);
            let ready = waiting & r.u128(..);
            let any = |slots: u128| (0..warps).filter(|w| slots >> (2 * w) & 3 != 0).fold(0, |bits, w| bits | 1 << w);
            let expected = of_warps.cycle(any(waiting), any(ready), None).map(|warp| {
                let of_warp = ready >> (2 * warp) & 3;
                let last = &mut last_side[warp as usize];
                *last = if of_warp == 3 { 1 - *last } else { (of_warp >> 1) as u32 };
                both += u32::from(of_warp == 3);
                2 * warp + *last
            });
            assert_eq!(sides.choose(waiting, ready, None), expected);
        }
        assert!(both > 10, "{both} times");
    }
}

/// Slots stall as programs make them: after a run of instructions there is a pause. Whoever could go goes in the end.
#[test]
fn nobody_starves() {
    const RUN: u32 = 6;
    for (warps, seed) in [(2, 1), (8, 2), (64, 3)] {
        for mut bench in benches(warps) {
            println!("{}, {warps} warps of {}, seed {seed}", bench.s.schedule.name(), bench.s.sides());
            let mut r = fastrand::Rng::with_seed(seed);
            bench.start(0..warps);
            let slots = bench.s.slots();
            let bound = match bench.s.schedule {
                Schedule::LooseRoundRobin if !bench.s.fair => slots,
                Schedule::Sticky if !bench.s.fair => slots * (RUN + 1),
                _ => (slots + 1) * TURN_EVERY,
            };
            // Of each slot: instructions left of its run, cycles to the next run, cycles since it could go.
            let mut states = vec![(0, 0, 0); slots as usize];
            for _ in 0..cases(20_000) {
                for (run, pause, _) in states.iter_mut().filter(|(run, ..)| *run == 0) {
                    *pause -= 1i32;
                    if *pause < 0 {
                        *run = r.u32(1..=RUN);
                    }
                }
                let runs = (0..).zip(&states).filter(|(_, (run, ..))| *run > 0);
                let ready = runs.fold(0, |bits, (slot, _)| bits | 1 << slot);
                let goes = bench.cycle(ready, ready, None);
                for (slot, (run, pause, waits)) in (0..).zip(&mut states) {
                    if goes == Some(slot) {
                        (*run, *pause, *waits) = (*run - 1, 2, 0);
                    } else if *run > 0 {
                        *waits += 1;
                        assert!(*waits <= bound, "slot {slot} waits for {waits} cycles");
                    }
                }
            }
        }
    }
}

/// A turn waits for a slot that has an instruction and cannot go, and is not taken by those without one.
#[test]
fn a_turn_lasts_until_it_is_taken() {
    let mut bench = Bench::new(Schedule::GreedyThenOldest, 4, Divergence::PATH_TABLE, 1);
    bench.start(0..4);
    let mut only = |waiting, ready, slot| assert_eq!(bench.cycle(waiting, ready, None), Some(slot));
    // The first turn is slot 0's, the second finds nobody at 1 and 2.
    (0..3 * TURN_EVERY).for_each(|_| only(0b1001, 0b0001, 0));
    only(0b1001, 0b1001, 3);
    only(0b1001, 0b1001, 3);
    // It stalls in the second cycle only.
    only(0b1001, 0b0001, 0);
    only(0b1001, 0b0001, 0);
    only(0b1001, 0b1001, 0);
}

/// A slot that can go only where another one would go before it: it never goes, or where the core is fair, in its turn.
#[test]
fn fair_schedules_miss_nobody() {
    for schedule in [Schedule::LooseRoundRobin, Schedule::Sticky, Schedule::BlockRoundRobin] {
        for fair in [false, true] {
            let mut bench = Bench::of(Shape { schedule, fair, ..Shape::new(2, 4) }, 1);
            bench.start(0..4);
            let mut goes = 0;
            for _ in 0..8 * TURN_EVERY {
                let others = 0b0111;
                let would = bench.expected(others | 0b1000);
                let ready = if would == Some(3) && !(fair && bench.due && bench.turn == 3) { others } else { 0b1111 };
                goes += u32::from(bench.cycle(0b1111, ready, None) == Some(3));
            }
            assert_eq!(goes > 0, fair, "{}: {goes} times", schedule.name());
        }
    }
}

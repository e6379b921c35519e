use super::*;
use heddle_sim::Sim;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct In<T> {
    filled: T,
    ready: T,
    starts: Option<T>,
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
    /// Slots, the oldest first.
    ages: Vec<u32>,
    turn: u32,
    due: bool,
    cycle: u32,
}

impl Bench {
    fn new(schedule: Schedule, warps: u32) -> Bench {
        let s = Shape { schedule, ..Shape::new(1, warps) };
        let inputs = In { filled: warps, ready: warps, starts: by_age(&s).then_some(warps) };
        let scheduler = module("scheduler", inputs, |m, In { filled, ready, starts }| {
            let (choice, any) = choose(m, &s, Slots { filled, ready, starts });
            Out { choice, any }
        });
        let mut t = Sim::new(&scheduler.check().unwrap());
        t.poke(In { filled: Bits::ZERO, ready: Bits::ZERO, starts: by_age(&s).then_some(Bits::ZERO) });
        t.reset();
        Bench { t, s, last: None, ages: Vec::new(), turn: 0, due: false, cycle: 0 }
    }

    /// The first that is ready, counted from `from`, around the circle.
    fn around(&self, from: u32, ready: u64) -> Option<u32> {
        let warps = self.s.warps;
        (0..warps).map(|k| (from + k) % warps).find(|slot| ready >> slot & 1 == 1)
    }

    /// Who should go.
    fn expected(&self, ready: u64) -> Option<u32> {
        let is_ready = |slot: &u32| ready >> slot & 1 == 1;
        match self.s.schedule {
            Schedule::LooseRoundRobin => self.around(self.last.map_or(0, |last| last + 1), ready),
            Schedule::Sticky => self.around(self.last.unwrap_or(0), ready),
            Schedule::GreedyThenOldest => {
                let turn = Some(self.turn).filter(|slot| self.due && is_ready(slot));
                turn.or(self.last.filter(is_ready)).or(self.ages.iter().copied().find(is_ready))
            }
        }
    }

    /// One cycle, compared with the reference. Who goes.
    fn cycle(&mut self, filled: u64, ready: u64, starts: Option<u32>) -> Option<u32> {
        let port = starts.map_or(0u64, |slot| 1 << slot);
        let starts_port = by_age(&self.s).then_some(port.into());
        self.t.poke(In { filled: filled.into(), ready: ready.into(), starts: starts_port });
        let out = self.t.peek();
        let expected = self.expected(ready);
        assert_eq!(out.any == 1, expected.is_some());
        assert_eq!(
            out.choice,
            expected.map_or(0u64, |slot| 1 << slot),
            "{} of {}: {ready:b} after {:?}, ages {:?}",
            self.s.schedule.name(),
            self.s.warps,
            self.last,
            self.ages
        );
        let taken = self.due && expected == Some(self.turn);
        if self.due && (taken || filled >> self.turn & 1 == 0) {
            self.turn = (self.turn + 1) % self.s.warps;
        }
        self.due = self.due && !taken || self.cycle % PATIENCE == PATIENCE - 1;
        self.cycle += 1;
        self.last = expected.or(self.last);
        if let Some(slot) = starts {
            self.ages.retain(|&other| other != slot);
            self.ages.push(slot);
        }
        self.t.step();
        expected
    }
}

fn orders(warps: u32) -> Vec<Vec<u32>> {
    if warps == 0 {
        return vec![vec![]];
    }
    let insert = |order: Vec<u32>| {
        (0..warps as usize).map(move |place| {
            let mut longer = order.clone();
            longer.insert(place, warps - 1);
            longer
        })
    };
    orders(warps - 1).into_iter().flat_map(insert).collect()
}

#[test]
fn every_choice_after_every_start_and_every_choice() {
    for (_, schedule) in Schedule::ALL {
        for warps in [1, 2, 4] {
            let mut bench = Bench::new(*schedule, warps);
            for order in orders(warps) {
                order.iter().for_each(|&slot| assert_eq!(bench.cycle(0, 0, Some(slot)), None));
                for (last, ready) in (0..warps).flat_map(|last| (0..1u64 << warps).map(move |ready| (last, ready))) {
                    assert_eq!(bench.cycle(1 << last, 1 << last, None), Some(last));
                    bench.cycle(ready, ready, None);
                }
            }
        }
    }
}

#[test]
fn random_slots_against_the_rules() {
    for (_, schedule) in Schedule::ALL {
        for (warps, seed) in [(1, 1), (2, 2), (8, 3), (32, 4), (64, 5)] {
            println!("{}, {warps} slots, seed {seed}", schedule.name());
            let mut r = fastrand::Rng::with_seed(seed);
            let mut bench = Bench::new(*schedule, warps);
            let mut started = 0u64;
            for _ in 0..3000 {
                let starts = Some(r.u32(..warps)).filter(|_| r.u8(..8) == 0);
                let filled = started & (r.u64(..) | r.u64(..));
                let filled = starts.map_or(filled, |slot| filled & !(1 << slot));
                let ready = filled & r.u64(..) & if r.bool() { r.u64(..) } else { u64::MAX };
                bench.cycle(filled, ready, starts);
                started |= starts.map_or(0, |slot| 1 << slot);
            }
        }
    }
}

/// Slots that stall as programs make them do: each has runs of instructions with pauses between. Whoever is ready goes in
/// the end.
#[test]
fn nobody_starves() {
    const RUN: u32 = 6;
    for (_, schedule) in Schedule::ALL {
        for (warps, seed) in [(2, 1), (8, 2), (64, 3)] {
            println!("{}, {warps} slots, seed {seed}", schedule.name());
            let mut r = fastrand::Rng::with_seed(seed);
            let mut bench = Bench::new(*schedule, warps);
            (0..warps).for_each(|slot| assert_eq!(bench.cycle(0, 0, Some(slot)), None));
            let bound = match schedule {
                Schedule::LooseRoundRobin => warps,
                Schedule::Sticky => warps * RUN,
                Schedule::GreedyThenOldest => (warps + 1) * PATIENCE,
            };
            // Of each slot: instructions left of its run, cycles to the next run, cycles since it could go.
            let mut slots = vec![(0, 0, 0); warps as usize];
            for _ in 0..20_000 {
                for (run, pause, _) in slots.iter_mut().filter(|(run, ..)| *run == 0) {
                    *pause -= 1i32;
                    if *pause < 0 {
                        *run = r.u32(1..=RUN);
                    }
                }
                let ready =
                    (0..warps).filter(|&slot| slots[slot as usize].0 > 0).fold(0, |bits, slot| bits | 1 << slot);
                let goes = bench.cycle(ready, ready, None);
                for (slot, (run, pause, waits)) in (0..).zip(&mut slots) {
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
    let mut bench = Bench::new(Schedule::GreedyThenOldest, 4);
    (0..4).for_each(|slot| assert_eq!(bench.cycle(0, 0, Some(slot)), None));
    for _ in 0..3 * PATIENCE {
        assert_eq!(bench.cycle(0b1001, 0b0001, None), Some(0), "slot 3 is to wait");
    }
    assert_eq!(bench.cycle(0b1001, 0b1001, None), Some(3), "its turn came, and stayed");
    assert_eq!(bench.cycle(0b1001, 0b1001, None), Some(3), "the last one goes on");
    assert_eq!(bench.cycle(0b1001, 0b0001, None), Some(0));
    assert_eq!(bench.cycle(0b1001, 0b1001, None), Some(0), "and only one turn came");
}

use super::*;
use crate::testing::cases;
use heddle_sim::Sim;

/// What a warp is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Warp {
    /// No thread: ended, or not of a block.
    Idle,
    /// To be started.
    Coming,
    /// Runs for so many cycles.
    Runs(u32),
    Waits,
}

/// Blocks of warps that run for random times between barriers.
struct Bench {
    t: Sim<BarrierIn<Width>, BarrierOut<Signal>>,
    r: fastrand::Rng,
    /// Slots of a group, warps of a block.
    size: u32,
    block: u32,
    warps: Vec<Warp>,
    /// Barriers that each has passed since its block began.
    passed: Vec<u32>,
    /// Cycles with `wake_ready` since all live warps of the group have arrived.
    overdue: Vec<u32>,
    laps: u32,
}

impl Bench {
    fn new(warps: u32, block: u32, seed: u64) -> Bench {
        println!("{warps} warps, blocks of {block}, seed {seed}");
        let mut t = Sim::new(&barrier(&Shape::new(1, warps)).check().unwrap());
        t.reset();
        let n = warps as usize;
        Bench {
            t,
            r: fastrand::Rng::with_seed(seed),
            size: block.next_power_of_two(),
            block,
            warps: vec![Warp::Idle; n],
            passed: vec![0; n],
            overdue: vec![0; n],
            laps: 0,
        }
    }

    fn members(&self, slot: usize) -> std::ops::Range<usize> {
        let size = self.size as usize;
        slot / size * size..(slot / size + 1) * size
    }

    fn filling(&self, slot: usize) -> bool {
        self.members(slot).any(|k| self.warps[k] == Warp::Coming)
    }

    /// All live warps of its block have reached the barrier that this warp waits at.
    fn due(&self, slot: usize) -> bool {
        let arrived = |k: usize| match self.warps[k] {
            Warp::Idle => true,
            Warp::Coming => false,
            Warp::Runs(_) => self.passed[k] > self.passed[slot],
            Warp::Waits => self.passed[k] >= self.passed[slot],
        };
        self.warps[slot] == Warp::Waits && self.members(slot).all(arrived)
    }

    fn cycle(&mut self, pace: u32) {
        let n = self.warps.len();
        let mask = |on: &dyn Fn(usize) -> bool| Bits::from((0..n).fold(0u64, |m, k| m | u64::from(on(k)) << k));
        let live = mask(&|k| matches!(self.warps[k], Warp::Runs(_) | Warp::Waits));
        let ready = self.r.u8(..3) > 0;
        let inputs = BarrierIn {
            live,
            waiting: mask(&|k| self.warps[k] == Warp::Waits),
            filling: mask(&|k| self.filling(k)),
            group: (self.size - 1).into(),
            wake_ready: ready.into(),
        };
        self.t.poke(inputs);
        let wake = self.t.peek().wake;
        self.t.step();

        for slot in 0..n {
            let waits_long = self.due(slot) && ready;
            self.overdue[slot] = if waits_long { self.overdue[slot] + 1 } else { self.overdue[slot] };
            assert!(self.overdue[slot] <= n as u32 + 1, "warp {slot} is not woken: {:?}", self.warps);
        }
        let woken = (wake.valid == 1 && ready).then(|| wake.slot.low_u64() as usize);
        if let Some(slot) = woken {
            assert!(self.due(slot), "warp {slot} is woken too early: {:?} {:?}", self.warps, self.passed);
        }
        for slot in 0..n {
            self.warps[slot] = match self.warps[slot] {
                Warp::Coming if self.r.u8(..4) == 0 => Warp::Runs(self.r.u32(..pace)),
                Warp::Runs(0) if self.r.u8(..12) == 0 => Warp::Idle,
                Warp::Runs(0) => Warp::Waits,
                Warp::Runs(k) => Warp::Runs(k - 1),
                other => other,
            };
        }
        if let Some(slot) = woken {
            self.passed[slot] += 1;
            self.overdue[slot] = 0;
            // Some warps are fast.
            self.warps[slot] = Warp::Runs(if slot % 2 == 0 { 0 } else { self.r.u32(..pace) });
        }
        for first in (0..n).step_by(self.size as usize) {
            let group = self.members(first);
            self.laps += u32::from(group.clone().any(|k| {
                self.warps[k] == Warp::Waits
                    && group.clone().any(|o| self.warps[o] == Warp::Waits && self.passed[o] < self.passed[k])
            }));
            if group.clone().all(|k| self.warps[k] == Warp::Idle) && self.r.u8(..8) == 0 {
                for k in group.take(self.block as usize) {
                    (self.warps[k], self.passed[k]) = (Warp::Coming, 0);
                }
            }
        }
    }
}

#[test]
fn no_phase_is_lost() {
    let shapes = [(1, 1), (2, 1), (2, 2), (4, 3), (8, 1), (8, 2), (8, 5), (8, 8), (64, 1), (64, 7), (64, 64)];
    for (seed, (warps, block)) in shapes.into_iter().enumerate() {
        let mut bench = Bench::new(warps, block, seed as u64);
        let cycles = cases(20_000);
        for k in 0..cycles {
            bench.cycle(if k < cycles / 2 { 3 } else { 40 });
        }
        assert!(bench.t.cover_hits("block_is_released") > 100);
        assert!(block == 1 || bench.laps > 0 && bench.t.cover_hits("warp_laps_another") > 0, "no warp laps another");
        assert!(block == 1 || bench.t.cover_hits("waits_for_a_start") > 0);
    }
}

#[test]
fn a_wake_in_every_cycle_when_it_is_taken() {
    let warps = 8;
    let mut t = Sim::new(&barrier(&Shape::new(1, warps)).check().unwrap());
    t.reset();
    let mut waiting = Bits::from(0xffu64);
    let mut woken = Vec::new();
    for cycle in 0..10 {
        let inputs = BarrierIn {
            live: 0xffu64.into(),
            waiting: waiting.clone(),
            filling: 0u64.into(),
            group: 7u64.into(),
            wake_ready: (cycle != 4).into(),
        };
        t.poke(inputs);
        let wake = t.peek().wake;
        if wake.valid == 1 && cycle != 4 {
            let slot = wake.slot.low_u64();
            woken.push((cycle, slot));
            waiting = Bits::from(waiting.low_u64() & !(1 << slot));
        }
        t.step();
    }
    assert_eq!(woken, [(1, 0), (2, 1), (3, 2), (5, 3), (6, 4), (7, 5), (8, 6), (9, 7)]);
}

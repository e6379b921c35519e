//! The dual-path unit from its ports: both paths of a warp have threads that are where outcomes and straight-line
//! instructions left them, whatever the unit is told about reconvergence; told right, they meet there.

use super::super::OutcomeKind;
use super::*;
use crate::divergence::testing::{all_hit, mask};
use crate::divergence::{Announced, Divergence, Outcome, Side, Start, Unissued, Wake};
use crate::pipeline::timing::{ISSUE_TO_OUTCOME, ISSUE_TO_RESOLVE, OUTCOMES_BEFORE_HOLD, STEER_TO_ISSUE};
use crate::reconvergence::{Meet, Reconvergence};
use crate::testing::cases;
use heddle_hdl::netlist::PropertyKind;
use heddle_sim::Sim;
use std::collections::BTreeMap;

fn shape(lanes: u32, warps: u32) -> Shape {
    Shape { barriers: false, ..Shape::new(lanes, warps).with_divergence(Divergence::DUAL_PATH) }
}

/// The same with path forwarding.
fn forwarding(lanes: u32, warps: u32) -> Shape {
    Shape { path_forwarding: true, ..shape(lanes, warps) }
}

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    depth: u64,
    pc: u64,
}

/// What a control instruction does.
#[derive(Clone, Copy, Debug)]
struct Told {
    slot: u32,
    kind: OutcomeKind,
    taken: u64,
    target: u64,
    rest: u64,
    stays: u64,
    call: bool,
    ret: bool,
}

/// The unit under a pipeline.
struct Bench {
    t: Sim<UnitIn<Width>, UnitOut<Signal>>,
    s: Shape,
    random: fastrand::Rng,
    meets: Reconvergence<u64>,
    /// By warp and lane, of live threads.
    threads: Vec<Vec<Option<Place>>>,
    /// Of slots that run: when they were steered, and whether they have issued something since.
    runs: Vec<Option<(u64, bool)>>,
    /// When a warp last ran, was started or had an outcome.
    heard: Vec<u64>,
    parked: Vec<bool>,
    /// What is announced for the next cycle, and what was for this.
    announces: Option<Coming>,
    announced: Option<Coming>,
    /// What is announced for the next cycle may come: at the time, its slot runs, and nothing else of its warp is
    /// unresolved.
    may_come: bool,
    /// `hold` in the last cycles, a bit each, the last lowest.
    held: u32,
    /// Where the sibling of the slot goes on that had an outcome in the last cycle, if it has issued something.
    suspended: Option<u64>,
}

/// An outcome that may come: its slot, and whether it is a call or a return.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Coming {
    slot: u32,
    call: bool,
    ret: bool,
}

impl Bench {
    fn new(s: &Shape, seed: u64) -> Bench {
        println!("{} lanes, {} warps, seed {seed}", s.lanes, s.warps);
        let mut t = Sim::new(&dual_path(s).check().unwrap());
        t.reset();
        Bench {
            t,
            s: s.clone(),
            random: fastrand::Rng::with_seed(seed),
            meets: Reconvergence::new(Meet::At(0), false, None),
            threads: vec![vec![None; s.lanes as usize]; s.warps as usize],
            runs: vec![None; s.slots() as usize],
            heard: vec![0; s.warps as usize],
            parked: vec![false; s.warps as usize],
            announces: None,
            announced: None,
            may_come: false,
            held: 0,
            suspended: None,
        }
    }

    fn poke(&mut self, told: Option<Told>, start: Option<(u32, u64, u64)>, wake: Option<u32>, asked: u32) {
        let o = told.unwrap_or(Told {
            slot: 0,
            kind: OutcomeKind::Branch,
            taken: 0,
            target: 0,
            rest: 0,
            stays: 0,
            call: false,
            ret: false,
        });
        let (warp, pc, mask) = start.unwrap_or_default();
        let unissued = self.suspended.unwrap_or_else(|| self.random.u64(..8));
        self.t.poke(UnitIn {
            start: Start { valid: start.is_some().into(), slot: warp.into(), pc: pc.into(), mask: mask.into() },
            wake: Wake { valid: wake.is_some().into(), slot: wake.unwrap_or(0).into() },
            decode_slot: asked.into(),
            issue_slot: asked.into(),
            outcome: Outcome {
                valid: told.is_some().into(),
                slot: o.slot.into(),
                kind: o.kind.into(),
                taken: Side { mask: o.taken.into(), pc: o.target.into() },
                rest: Side { mask: o.rest.into(), pc: o.stays.into() },
                call: o.call.into(),
                ret: o.ret.into(),
                meets: Some(self.meets.map("", &mut |_, v: u64| v.into())),
                homes: None,
            },
            sequence: None,
            announced: Some(Announced {
                valid: self.announces.is_some().into(),
                slot: self.announces.map_or(0, |coming| coming.slot).into(),
                call: self.announces.is_some_and(|coming| coming.call).into(),
                ret: self.announces.is_some_and(|coming| coming.ret).into(),
            }),
            hints: None,
            unissued: Some(Unissued { valid: self.suspended.is_some().into(), pc: unissued.into() }),
            mixed: None,
        });
    }

    /// Mask and stop pc of a slot.
    fn ask(&mut self, slot: u32) -> (u64, Option<u64>) {
        self.poke(None, None, None, slot);
        let out = self.t.peek();
        (out.mask.low_u64(), (out.stop.valid == 1).then(|| out.stop.pc.low_u64()))
    }

    /// Where the threads of a slot are: all in one place.
    fn place(&mut self, slot: u32) -> Place {
        let mask = self.ask(slot).0;
        let threads = &self.threads[(slot / 2) as usize];
        let mut places: Vec<Place> = (0..self.s.lanes as usize)
            .filter(|lane| mask >> lane & 1 == 1)
            .map(|lane| threads[lane].unwrap_or_else(|| panic!("lane {lane} of slot {slot} has ended")))
            .collect();
        places.dedup();
        assert!(places.len() == 1, "slot {slot}, mask {mask:#b}: {places:?}");
        places[0]
    }

    fn put(&mut self, warp: u32, mask: u64, place: Option<Place>) {
        for lane in (0..self.s.lanes as usize).filter(|lane| mask >> lane & 1 == 1) {
            self.threads[warp as usize][lane] = place;
        }
    }

    /// One cycle; another one before it, if the outcome has not been announced.
    fn cycle(&mut self, told: Option<Told>, start: Option<(u32, u64, u64)>, wake: Option<u32>) {
        let comes = told.map(|Told { slot, call, ret, .. }| Coming { slot, call, ret });
        if comes.is_some() && self.announced != comes {
            self.announces = comes;
            self.cycle(None, None, None);
        }
        let asked = told.map(|told| (told.slot, self.place(told.slot), self.ask(told.slot).0));
        let sibling = told.map(|told| told.slot ^ 1);
        let issued = sibling.filter(|&slot| self.runs[slot as usize].is_some_and(|(_, issued)| issued));
        let suspended = issued.map(|slot| self.place(slot).pc);
        self.poke(told, start, wake, 0);
        let (out, cycle) = (self.t.peek(), self.t.cycle());
        self.t.step();
        self.announced = self.announces.take();
        self.suspended = suspended;
        let dual = out.more.two_paths.unwrap();
        if let Some((told, (slot, place, mask))) = told.zip(asked) {
            let depth = if told.ret { place.depth.saturating_sub(1) } else { place.depth + u64::from(told.call) };
            self.put(slot / 2, mask, None);
            self.put(slot / 2, told.taken, Some(Place { depth, pc: told.target }));
            self.put(slot / 2, told.rest, Some(Place { pc: told.stays, ..place }));
            self.runs[slot as usize] = None;
            self.heard[(slot / 2) as usize] = cycle;
            self.parked[(slot / 2) as usize] = told.kind == OutcomeKind::Wait;
        }
        if let Some((warp, pc, mask)) = start.filter(|_| out.start_ready == 1) {
            self.put(warp, mask, Some(Place { depth: 0, pc }));
            self.heard[warp as usize] = cycle;
        }
        if let Some(warp) = wake.filter(|_| out.wake_ready == 1) {
            self.heard[warp as usize] = cycle;
            self.parked[warp as usize] = false;
        }
        if dual.flush == 1 {
            self.runs[dual.flushed.low_u64() as usize] = None;
        }
        if out.steer.valid == 1 {
            let (slot, pc) = (out.steer.slot.low_u64() as u32, out.steer.pc.low_u64());
            assert!(self.runs[slot as usize].is_none(), "slot {slot} is steered while it runs");
            self.runs[slot as usize] = Some((cycle, false));
            assert_eq!(self.place(slot).pc, pc, "slot {slot} is steered to {pc}");
        }
        self.check(cycle);
    }

    /// Both sides of each warp.
    fn check(&mut self, cycle: u64) {
        self.poke(None, None, None, 0);
        let out = self.t.peek();
        for warp in 0..self.s.warps {
            let lives = self.threads[warp as usize].iter().any(Option::is_some);
            assert!(out.live.bit(warp) || !lives, "warp {warp}");
            let masks = [0, 1].map(|side| match self.runs[(2 * warp + side) as usize] {
                Some(_) => self.ask(2 * warp + side).0,
                None => 0,
            });
            assert_eq!(masks[0] & masks[1], 0, "warp {warp}");
            if masks != [0; 2] || !out.live.bit(warp) || self.parked[warp as usize] {
                self.heard[warp as usize] = cycle;
            }
            let outcomes = 2 * (OUTCOMES_BEFORE_HOLD + ISSUE_TO_OUTCOME);
            let most = u64::from(outcomes + 4 * self.s.warps + 2 * self.s.lanes);
            assert!(cycle - self.heard[warp as usize] < most, "warp {warp} is not steered, or does not end");
        }
    }

    /// The slot may have an outcome.
    fn is_ready(&mut self, slot: u32) -> bool {
        self.poke(None, None, None, slot);
        let busy = self.t.peek().more.two_paths.unwrap().busy.bit(slot / 2);
        !busy
            && self.runs[slot as usize]
                .is_some_and(|(since, _)| since + u64::from(STEER_TO_ISSUE + ISSUE_TO_OUTCOME) <= self.t.cycle())
    }

    /// A straight-line instruction of the slot issues.
    fn advance(&mut self, slot: u32) {
        let (mask, stop) = self.ask(slot);
        let Place { depth, pc } = self.place(slot);
        if stop != Some(pc + 1) && pc + 1 < 1 << self.s.pc_bits() {
            self.put(slot / 2, mask, Some(Place { depth, pc: pc + 1 }));
            self.runs[slot as usize].as_mut().unwrap().1 = true;
        }
    }

    /// What a control instruction that was announced could do.
    fn invent(&mut self, coming: Coming) -> Told {
        let Coming { slot, call, ret } = coming;
        let (mask, stop) = self.ask(slot);
        let Place { depth: _, pc } = self.place(slot);
        let live = &self.threads[(slot / 2) as usize];
        let alone = (0..).zip(live).all(|(lane, thread)| thread.is_none() || mask >> lane & 1 == 1);
        let may_wait = self.s.barriers && alone;
        let r = &mut self.random;
        let last = (1 << self.s.pc_bits()) - 1;
        let next = (pc + 1) & last;
        let some = mask & r.u64(..);
        let kind = match r.u32(..100) {
            _ if call || ret => OutcomeKind::Jump,
            0..6 => OutcomeKind::Exit,
            6..25 => OutcomeKind::Arrived,
            25..45 => OutcomeKind::Jump,
            45..55 if may_wait => OutcomeKind::Wait,
            _ => OutcomeKind::Branch,
        };
        let kind = if stop == Some(pc + 1) && kind == OutcomeKind::Arrived { OutcomeKind::Arrived } else { kind };
        let (taken, target, stays) = match kind {
            OutcomeKind::Exit => (0, 0, next),
            OutcomeKind::Arrived | OutcomeKind::Wait => (mask, next, pc),
            OutcomeKind::Jump => (if r.u8(..3) == 0 && some != 0 { some } else { mask }, r.u64(..12), pc),
            _ => (some, if r.u8(..8) == 0 { next } else { r.u64(..12) }, next),
        };
        let rest = if kind == OutcomeKind::Exit { 0 } else { mask & !taken };
        Told { slot, kind, taken, target, rest, stays, call, ret }
    }

    fn random_cycle(&mut self, density: u32) {
        let meet = if self.random.u8(..4) == 0 { Meet::Return } else { Meet::At(self.random.u32(..14)) };
        self.meets = Reconvergence::new(meet, false, None);
        let live = self.t.peek().live;
        // What `hold` kept from being issued is not announced when it would be resolved.
        let kept = self.held >> (ISSUE_TO_RESOLVE - 1) & 1 == 1;
        self.held = self.held << 1 | u32::from(self.t.peek().hold == 1);
        let ready: Vec<u32> = (0..self.s.slots()).filter(|&slot| self.is_ready(slot)).collect();
        for &slot in &ready {
            if self.random.u8(..3) == 0 {
                self.advance(slot);
            }
        }
        let comes = self.announced.filter(|coming| self.may_come && ready.contains(&coming.slot));
        // A call that was announced and is too deep does not come.
        let comes = comes.filter(|coming| !coming.call || self.place(coming.slot).depth < 3);
        let told = comes.map(|coming| self.invent(coming));
        // One of another warp, now and then any, whose outcome does not come.
        let warp = told.map(|told| told.slot / 2);
        let others: Vec<u32> = ready.into_iter().filter(|slot| Some(slot / 2) != warp).collect();
        self.may_come = self.random.u8(..16) != 0 && !others.is_empty();
        let r = &mut self.random;
        let slot = if self.may_come { others[r.usize(..others.len())] } else { r.u32(..self.s.slots()) };
        let jump = self.random.u8(..16);
        let coming = Coming { slot, call: jump == 0, ret: (1..3).contains(&jump) };
        self.announces = (!kept && self.random.u32(..100) < density).then_some(coming);
        let idle = (0..self.s.warps).find(|&warp| !live.bit(warp));
        let begins = idle.filter(|_| self.random.u8(..8) == 0);
        let start = begins.map(|warp| (warp, self.random.u64(..12), u64::MAX >> (64 - self.s.lanes)));
        let parked = (0..self.s.warps).find(|&warp| self.parked[warp as usize]);
        let wake = parked.filter(|_| self.random.u8(..4) == 0);
        self.cycle(told, start, wake);
    }

    fn count_covers(&mut self, hits: &mut BTreeMap<String, u64>) {
        let directory = self.t.simulation().directory().clone();
        for (k, property) in directory.properties.iter().enumerate() {
            if directory.property_kind(k) == PropertyKind::Cover {
                *hits.entry(property.path.clone()).or_default() += self.t.cover_hits(&property.path);
            }
        }
    }
}

#[test]
fn threads_are_where_instructions_left_them() {
    let mut covers = BTreeMap::new();
    for (k, lanes) in [1, 2, 4, 8, 64].into_iter().enumerate() {
        for warps in [1, 2, 8] {
            for s in [shape(lanes, warps), forwarding(lanes, warps)] {
                let s = Shape { barriers: warps == 2, ..s };
                let mut bench = Bench::new(&s, 10 * k as u64 + u64::from(warps));
                for cycle in 0..cases(8000) {
                    bench.random_cycle([15, 100][cycle / 64 % 2]);
                }
                bench.count_covers(&mut covers);
            }
        }
    }
    // A barrier for a part of a warp stops the core.
    covers.retain(|path, _| !path.ends_with("part_of_a_warp_waits"));
    all_hit(&covers);
}

/// Masks of both slots of warp 0, of those that run.
fn sides(bench: &mut Bench) -> [Option<(u64, u64)>; 2] {
    (0..40).for_each(|_| bench.cycle(None, None, None));
    [0, 1].map(|slot| bench.runs[slot].map(|_| (bench.place(slot as u32).pc, bench.ask(slot as u32).0)))
}

/// Stop pcs of both slots of warp 0.
fn stops(bench: &mut Bench) -> [Option<u64>; 2] {
    [0, 1].map(|slot| bench.ask(slot).1)
}

fn branch(slot: u32, taken: &str, target: u64, rest: &str, stays: u64) -> Told {
    let (taken, rest) = (mask(taken), mask(rest));
    Told { slot, kind: OutcomeKind::Branch, taken, target, rest, stays, call: false, ret: false }
}

fn arrives(slot: u32, threads: &str, at: u64) -> Told {
    Told { kind: OutcomeKind::Arrived, ..branch(slot, threads, at, "00000000", at) }
}

/// `dual-path-execution.txt` Figure 4 (the control flow of Figure 1): A; if B else { C; if D else E; F }; G. While C is
/// parted, B is suspended behind what it has issued; D and E meet at F, then F and B run side by side again, and meet
/// at G.
///
/// With path forwarding (§7.1), B runs beside D or E when the other of them is at F, and on beside F.
#[test]
fn figure_4() {
    for forwards in [false, true] {
        let mut bench = Bench::new(&if forwards { forwarding(8, 1) } else { shape(8, 1) }, 1);
        let (a, b, c, d, e, f, g) = (0, 10, 20, 30, 40, 50, 60);
        let meet = |bench: &mut Bench, at: u64| bench.meets = Reconvergence::new(Meet::At(at as u32), false, None);
        bench.cycle(None, Some((0, a, 0xff)), None);
        assert_eq!(sides(&mut bench), [Some((a, 0xff)), None]);

        meet(&mut bench, g);
        bench.cycle(Some(branch(0, "11000000", b, "00111111", c)), None, None);
        assert_eq!(sides(&mut bench), [Some((b, mask("11000000"))), Some((c, mask("00111111")))]);
        assert_eq!(stops(&mut bench), [Some(g), Some(g)]);
        bench.advance(0);
        bench.advance(0);

        meet(&mut bench, f);
        bench.cycle(Some(branch(1, "00110000", d, "00001111", e)), None, None);
        assert_eq!(sides(&mut bench), [Some((e, mask("00001111"))), Some((d, mask("00110000")))]);
        bench.cycle(Some(arrives(0, "00001111", f)), None, None);
        let mut next = b + 2;
        let forwarded = forwards.then_some((next, mask("11000000")));
        assert_eq!(sides(&mut bench), [forwarded, Some((d, mask("00110000")))]);
        assert_eq!(stops(&mut bench), [forwarded.map(|_| g), Some(f)]);
        if forwards {
            bench.advance(0);
            next += 1;
        }
        bench.cycle(Some(arrives(1, "00110000", f)), None, None);
        assert_eq!(sides(&mut bench), [Some((next, mask("11000000"))), Some((f, mask("00111111")))]);

        bench.cycle(Some(arrives(1, "00111111", g)), None, None);
        assert_eq!(sides(&mut bench), [Some((next, mask("11000000"))), None]);
        bench.cycle(Some(arrives(0, "11000000", g)), None, None);
        assert_eq!(sides(&mut bench), [Some((g, 0xff)), None]);
    }
}

/// Figure 4 with path forwarding, where B parts while it is forwarded, into H and I, which meet at J: D is suspended,
/// forwarded when H is at J, and at F before I is at J. So B and C's threads reconverge their own, though the levels
/// alternate.
#[test]
fn a_forwarded_path_parts() {
    let mut bench = Bench::new(&forwarding(8, 1), 1);
    let (a, b, c, d, e, f, g, h, i, j) = (0, 10, 20, 30, 40, 50, 60, 12, 14, 16);
    let meet = |bench: &mut Bench, at: u64| bench.meets = Reconvergence::new(Meet::At(at as u32), false, None);
    bench.cycle(None, Some((0, a, 0xff)), None);
    sides(&mut bench);
    meet(&mut bench, g);
    bench.cycle(Some(branch(0, "11000000", b, "00111111", c)), None, None);
    sides(&mut bench);
    meet(&mut bench, f);
    bench.cycle(Some(branch(1, "00110000", d, "00001111", e)), None, None);
    sides(&mut bench);
    bench.cycle(Some(arrives(0, "00001111", f)), None, None);
    assert_eq!(sides(&mut bench), [Some((b, mask("11000000"))), Some((d, mask("00110000")))]);

    bench.advance(1);
    meet(&mut bench, j);
    bench.cycle(Some(branch(0, "10000000", h, "01000000", i)), None, None);
    assert_eq!(sides(&mut bench), [Some((h, mask("10000000"))), Some((i, mask("01000000")))]);
    bench.cycle(Some(arrives(0, "10000000", j)), None, None);
    assert_eq!(sides(&mut bench), [Some((d + 1, mask("00110000"))), Some((i, mask("01000000")))]);
    bench.cycle(Some(arrives(0, "00110000", f)), None, None);
    assert_eq!(sides(&mut bench), [None, Some((i, mask("01000000")))]);
    bench.cycle(Some(arrives(1, "01000000", j)), None, None);
    assert_eq!(sides(&mut bench), [Some((j, mask("11000000"))), Some((f, mask("00111111")))]);
}

/// An instruction that takes all threads of a slot to one place. Path forwarding beside a function: what comes up runs
/// at another call depth than the path beside it, and each stops where it meets its own.
#[test]
fn a_forwarded_path_is_at_a_depth_of_its_own() {
    for (side, deep, other) in [(0, (0b0001, 0b0010), 0b1100), (1, (0b0100, 0b1000), 0b0011)] {
        let mut bench = begun(&forwarding(4, 1));
        tell(&mut bench, parts(0, (0b0011, 10), (0b1100, 20)), Meet::At(60));
        tell(&mut bench, call(side, deep.0 | deep.1, 30), Meet::At(60));
        tell(&mut bench, parts(side, (deep.0, 40), (deep.1, 31)), Meet::At(50));
        assert_eq!(stops(&mut bench), [Some(50); 2]);
        let first = sides(&mut bench)[0].expect("a path on the left").1;
        let both = tell(&mut bench, jump(0, first, 50), Meet::At(50));
        assert_eq!(both[0].map(|path| path.1), Some(other), "the outer path comes up");
        assert_eq!(stops(&mut bench), [Some(60), Some(50)]);
    }
}

fn jump(slot: u32, threads: u64, target: u64) -> Told {
    Told { slot, kind: OutcomeKind::Jump, taken: threads, target, rest: 0, stays: 0, call: false, ret: false }
}

fn call(slot: u32, threads: u64, target: u64) -> Told {
    Told { call: true, ..jump(slot, threads, target) }
}

fn ret(slot: u32, threads: u64, target: u64) -> Told {
    Told { ret: true, ..jump(slot, threads, target) }
}

fn parts(slot: u32, (taken, target): (u64, u64), (rest, stays): (u64, u64)) -> Told {
    Told { kind: OutcomeKind::Branch, rest, stays, ..jump(slot, taken, target) }
}

/// A warp of four threads that run at 0.
fn begin() -> Bench {
    begun(&shape(4, 1))
}

fn begun(s: &Shape) -> Bench {
    let mut bench = Bench::new(s, 1);
    bench.cycle(None, Some((0, 0, 0b1111)), None);
    sides(&mut bench);
    bench
}

/// Where both paths of the warp are after an instruction.
fn tell(bench: &mut Bench, told: Told, meet: Meet) -> [Option<(u64, u64)>; 2] {
    bench.meets = Reconvergence::new(meet, false, None);
    bench.cycle(Some(told), None, None);
    sides(bench)
}

/// An `if` without `else` within a side does not suspend the other side if it meets where both do, and does otherwise.
#[test]
fn one_side_is_at_the_place_already() {
    for (at, sibling) in [(60, Some((10, 0b0011))), (50, None)] {
        let mut bench = begin();
        tell(&mut bench, parts(0, (0b0011, 10), (0b1100, 1)), Meet::At(60));
        let both = tell(&mut bench, parts(1, (0b0100, at), (0b1000, 2)), Meet::At(at as u32));
        assert_eq!(both, [sibling, Some((2, 0b1000))]);
    }
}

/// A branch within a function to the next instruction says nothing about where the function returns to.
#[test]
fn a_branch_that_parts_nobody_is_no_return() {
    let mut bench = begin();
    tell(&mut bench, call(0, 0b1111, 10), Meet::At(1));
    tell(&mut bench, parts(0, (0b0011, 20), (0b1100, 11)), Meet::Return);
    let both = tell(&mut bench, parts(0, (0b0001, 21), (0b0010, 21)), Meet::At(21));
    assert_eq!(both, [Some((21, 0b0011)), Some((11, 0b1100))]);
    assert_eq!(tell(&mut bench, ret(0, 0b0011, 1), Meet::Return), [None, Some((11, 0b1100))]);
    assert_eq!(tell(&mut bench, ret(1, 0b1100, 1), Meet::Return), [Some((1, 0b1111)), None]);
}

/// Threads of a branch within the function meet before those that meet where it returns to.
#[test]
fn a_branch_on_a_side_that_returns() {
    let mut bench = begin();
    tell(&mut bench, call(0, 0b1111, 10), Meet::At(1));
    tell(&mut bench, parts(0, (0b0111, 20), (0b1000, 11)), Meet::Return);
    let both = tell(&mut bench, parts(0, (0b0001, 25), (0b0110, 21)), Meet::At(30));
    assert_eq!(both, [Some((25, 0b0001)), Some((21, 0b0110))]);
    assert_eq!(tell(&mut bench, jump(0, 0b0001, 30), Meet::At(0)), [None, Some((21, 0b0110))]);
    assert_eq!(tell(&mut bench, jump(1, 0b0110, 30), Meet::At(0)), [Some((30, 0b0111)), Some((11, 0b1000))]);
    assert_eq!(tell(&mut bench, ret(0, 0b0111, 1), Meet::Return), [None, Some((11, 0b1000))]);
    assert_eq!(tell(&mut bench, ret(1, 0b1000, 1), Meet::Return), [Some((1, 0b1111)), None]);
}

/// Of a `jalr` that returns, the leader's threads are where the others come to.
#[test]
fn a_return_in_two_parts() {
    let mut bench = begin();
    tell(&mut bench, call(0, 0b1111, 10), Meet::At(1));
    let first = Told { rest: 0b1100, stays: 10, ..ret(0, 0b0011, 1) };
    assert_eq!(tell(&mut bench, first, Meet::Return), [Some((10, 0b1100)), None]);
    assert_eq!(tell(&mut bench, ret(0, 0b1100, 1), Meet::Return), [Some((1, 0b1111)), None]);
}

/// A function that some call last before the others wait: those that meet where it returns to are there, too.
#[test]
fn a_return_to_where_others_wait() {
    let mut bench = begin();
    tell(&mut bench, parts(0, (0b0111, 5), (0b1000, 1)), Meet::At(6));
    tell(&mut bench, call(0, 0b0111, 20), Meet::At(6));
    let both = tell(&mut bench, parts(0, (0b0001, 30), (0b0110, 21)), Meet::Return);
    assert_eq!(both, [Some((30, 0b0001)), Some((21, 0b0110))]);
    assert_eq!(tell(&mut bench, ret(0, 0b0001, 6), Meet::Return), [None, Some((21, 0b0110))]);
    assert_eq!(tell(&mut bench, ret(1, 0b0110, 6), Meet::Return), [None, Some((1, 0b1000))]);
    assert_eq!(tell(&mut bench, jump(1, 0b1000, 6), Meet::At(0)), [Some((6, 0b1111)), None]);
}

/// A function that calls itself: those of the inner activation meet where that returns to, not where the outer one
/// does.
#[test]
fn an_inner_activation_returns_before_the_outer_one() {
    let mut bench = begin();
    tell(&mut bench, call(0, 0b1111, 10), Meet::At(1));
    tell(&mut bench, parts(0, (0b0111, 20), (0b1000, 11)), Meet::Return);
    assert_eq!(tell(&mut bench, call(0, 0b0111, 10), Meet::At(21)), [Some((10, 0b0111)), Some((11, 0b1000))]);
    let both = tell(&mut bench, parts(0, (0b0001, 20), (0b0110, 11)), Meet::Return);
    assert_eq!(both, [Some((20, 0b0001)), Some((11, 0b0110))]);
    assert_eq!(tell(&mut bench, ret(0, 0b0001, 21), Meet::Return), [None, Some((11, 0b0110))]);
    assert_eq!(tell(&mut bench, ret(1, 0b0110, 21), Meet::Return), [Some((21, 0b0111)), Some((11, 0b1000))]);
    assert_eq!(tell(&mut bench, ret(0, 0b0111, 1), Meet::Return), [None, Some((11, 0b1000))]);
    assert_eq!(tell(&mut bench, ret(1, 0b1000, 1), Meet::Return), [Some((1, 0b1111)), None]);
}

/// A function that calls itself, with a branch whose sides reconverge at the place that its inner activation returns
/// to.
#[test]
fn a_branch_meets_where_others_have_returned_to() {
    let mut bench = begin();
    tell(&mut bench, call(0, 0b1111, 10), Meet::At(1));
    tell(&mut bench, call(0, 0b1111, 10), Meet::At(21));
    tell(&mut bench, parts(0, (0b0001, 20), (0b1110, 11)), Meet::Return);
    assert_eq!(tell(&mut bench, ret(0, 0b0001, 21), Meet::Return), [None, Some((11, 0b1110))]);
    let both = tell(&mut bench, parts(1, (0b0010, 15), (0b1100, 12)), Meet::At(21));
    assert_eq!(both, [Some((12, 0b1100)), Some((15, 0b0010))]);
    assert_eq!(tell(&mut bench, jump(1, 0b0010, 21), Meet::At(0)), [Some((12, 0b1100)), None]);
    assert_eq!(tell(&mut bench, jump(0, 0b1100, 21), Meet::At(0)), [None, Some((21, 0b1110))]);
    assert_eq!(tell(&mut bench, ret(1, 0b1110, 21), Meet::Return), [Some((21, 0b1111)), None]);
}

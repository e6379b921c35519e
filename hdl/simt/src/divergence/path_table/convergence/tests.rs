//! The path-table unit with convergence barriers, against a model that knows only threads: each has a pc and a call
//! depth, runs, waits at the block's barrier or at one of the convergence barriers, whose P and W are sets as the docs
//! say. Instructions and outcomes are random, as the pipeline makes them. Whoever the unit lets go on, it must have a
//! reason; whoever runs must be where the model has them; and a slot with live threads is always steered, or found to
//! wait, within a bound.

use super::*;
use crate::divergence::interface::{Ahead, First, Hint};
use crate::divergence::path_table::path_table;
use crate::divergence::path_table::proof::release::looked_at_after;
use crate::divergence::testing::{P, all_hit, lanes as shown, mask as lanes_of};
use crate::divergence::{Announced, Outcome, OutcomeKind, Side, Start, UnitIn, UnitOut, Wake};
use crate::isa::HintKind;
use crate::pipeline::primitives::Named;
use crate::pipeline::timing::STEER_TO_DECODE;
use crate::testing::cases;
use heddle_hdl::netlist::PropertyKind;
use heddle_sim::Sim;
use std::collections::BTreeMap;

type Unit = Sim<UnitIn<Width>, UnitOut<Signal>>;

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Listed,
    /// At the block's barrier.
    Parked,
    /// At a convergence barrier.
    Held(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Thread {
    depth: u64,
    pc: u64,
    place: Place,
}

/// A barrier: who participates, and who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Barrier {
    participants: u64,
    waiting: u64,
    place: (u64, u64),
    /// Outcomes of the warp since the last arrival.
    age: u64,
    /// Who waits does so by `sync`; one has found it in use otherwise.
    hard: bool,
    wanted: bool,
    /// A `sync` has wanted it since threads began to wait: they go on soon, even if it has passed meanwhile.
    hastened: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Idle,
    /// Steered in this cycle; what it runs is asked for.
    Runs(u64),
    /// Nothing runs since this cycle.
    Waits(u64),
    /// The unit says that all wait at the block's barrier.
    Parked,
}

/// An instruction in stage 8.
#[derive(Clone, Copy, Debug)]
struct Told {
    slot: usize,
    operation: HintKind,
    barrier: usize,
    operand: u64,
    mask: u64,
    next: u64,
    /// Of a `sync`: whom it names, and who of them executes it.
    sync: (u64, u64),
}

impl Told {
    /// It has an outcome of its own.
    fn waits(&self) -> bool {
        matches!(self.operation, HintKind::Wait | HintKind::Sync)
    }
}

/// The slot of an outcome, and whether it is a call or a return from one.
type Announces = (usize, bool, bool);

struct Bench {
    t: Unit,
    s: Shape,
    r: fastrand::Rng,
    threads: Vec<Vec<Option<Thread>>>,
    barriers: Vec<Vec<Barrier>>,
    slots: Vec<Slot>,
    /// A `wait` or `sync` whose outcome comes in this cycle, and the threads that go on by the model.
    waited: Option<(Told, u64)>,
    /// A `sync` that found its barrier in use, or of which all are here; its outcome comes in this cycle.
    queued: Option<Told>,
    jumped: Option<Told>,
    /// What is in the first cycle of stage 7, and in the second.
    first: Option<Told>,
    ahead: Option<Told>,
    /// Instructions of the active path before its outcome.
    left: Vec<u32>,
    /// Who has an outcome in the next cycle, and who may have one in this.
    announces: Option<Announces>,
    announced: Option<Announces>,
    wake: Option<usize>,
    held: u32,
    /// By reason, as in [`Releases`].
    released: [u64; 6],
}

impl Bench {
    fn new(s: &Shape, seed: u64) -> Bench {
        println!("{}, seed {seed}", s.options());
        let mut t = Sim::new(&path_table(s).check().unwrap());
        t.reset();
        let (warps, lanes) = (s.warps as usize, s.lanes as usize);
        Bench {
            t,
            s: s.clone(),
            r: fastrand::Rng::with_seed(seed),
            threads: vec![vec![None; lanes]; warps],
            barriers: vec![vec![Barrier::default(); s.convergence_barriers as usize]; warps],
            slots: vec![Slot::Idle; warps],
            waited: None,
            queued: None,
            jumped: None,
            first: None,
            ahead: None,
            left: vec![0; warps],
            announces: None,
            announced: None,
            wake: None,
            held: 0,
            released: [0; 6],
        }
    }

    fn live(&self, slot: usize) -> u64 {
        self.set(slot, |_| true)
    }

    fn set(&self, slot: usize, is: impl Fn(&Thread) -> bool) -> u64 {
        let threads = self.threads[slot].iter().enumerate();
        threads.filter(|(_, t)| t.as_ref().is_some_and(&is)).fold(0, |mask, (lane, _)| mask | 1 << lane)
    }

    fn place(&mut self, slot: usize, mask: u64, change: impl Fn(&mut Thread)) {
        for (lane, thread) in self.threads[slot].iter_mut().enumerate() {
            if mask >> lane & 1 == 1 {
                change(thread.as_mut().expect("a thread that lives"));
            }
        }
    }

    /// What is asked of the unit in this cycle, with nothing else going on.
    fn poke(
        &mut self,
        told: Option<Told>,
        outcome: Option<(usize, OutcomeKind, P, P, bool, bool)>,
        start: Option<(usize, P)>,
        asked: usize,
    ) {
        let side = |p: P| Side { mask: p.mask.into(), pc: p.pc.into() };
        let (slot, kind, taken, rest, call, ret) = outcome.unwrap_or_default();
        let (begun_slot, begun) = start.unwrap_or_default();
        let hint = |told: Option<Told>| -> Hint<Bits> {
            let nothing =
                Told { slot: 0, operation: HintKind::Join, barrier: 0, operand: 0, mask: 0, next: 0, sync: (0, 0) };
            let Told { slot, operation, barrier, operand, mask, next, sync: (all, here) } = told.unwrap_or(nothing);
            let lacks = all & !here != 0;
            let sync = Named { all: all.into(), here: here.into(), lacks: lacks.into() };
            Hint {
                valid: told.is_some().into(),
                slot: slot.into(),
                operation: operation.into(),
                barrier: barrier.into(),
                operand: operand.into(),
                mask: mask.into(),
                next: next.into(),
                sync: self.s.syncs().then_some(sync),
            }
        };
        let Hint { slot: first_slot, barrier: first_barrier, .. } = hint(self.first);
        let to_come = hint(self.ahead);
        let copies = matches!(self.ahead, Some(Told { operation: HintKind::Copy | HintKind::Move, .. }));
        let other: Bits = to_come.operand.extract(0, self.s.barrier_bits());
        let counts = matches!(self.ahead, Some(Told { operation: HintKind::Count, .. }));
        let first = First { slot: first_slot, barrier: first_barrier };
        let ahead = Ahead {
            slot: to_come.slot,
            barrier: to_come.barrier,
            mask: to_come.mask,
            next: to_come.next,
            counts: counts.into(),
            other,
            both: copies.into(),
        };
        self.t.poke(UnitIn {
            start: Start {
                valid: start.is_some().into(),
                slot: begun_slot.into(),
                pc: begun.pc.into(),
                mask: begun.mask.into(),
            },
            wake: Wake { valid: self.wake.is_some().into(), slot: self.wake.unwrap_or(0).into() },
            decode_slot: asked.into(),
            issue_slot: asked.into(),
            outcome: Outcome {
                valid: outcome.is_some().into(),
                slot: slot.into(),
                kind: kind.into(),
                taken: side(taken),
                rest: side(rest),
                call: call.into(),
                ret: ret.into(),
                meets: None,
                homes: None,
            },
            sequence: None,
            announced: Some(Announced {
                valid: self.announces.is_some().into(),
                slot: self.announces.map_or(0, |(slot, ..)| slot).into(),
                call: self.announces.is_some_and(|(_, call, _)| call).into(),
                ret: self.announces.is_some_and(|(_, _, ret)| ret).into(),
            }),
            hints: Some(Hints { first, ahead, hint: hint(told), present: told.is_some().into() }),
            unissued: None,
            mixed: None,
        });
    }

    /// The active path of a slot that runs.
    fn active(&mut self, slot: usize) -> P {
        let wake = self.wake.take();
        self.poke(None, None, None, slot);
        self.wake = wake;
        let mask = self.t.peek().mask.low_u64();
        let first = self.threads[slot][mask.trailing_zeros() as usize].expect("the active path has live threads");
        let same = self.set(slot, |t| *t == first);
        assert_eq!(mask & !same, 0, "slot {slot} runs {mask:#x}: {:?}", self.threads[slot]);
        assert_eq!(first.place, Place::Listed, "slot {slot}");
        P { depth: first.depth, pc: first.pc, mask, waits: false }
    }

    /// What an instruction does to the model; of `wait`, who goes on.
    fn instruct(&mut self, told: Told, depth: u64) -> u64 {
        let Told { slot, operation, barrier, operand, mask, next, .. } = told;
        let live = self.live(slot);
        let others = self.barriers[slot].get(operand as usize).copied().unwrap_or_default();
        let copies = matches!(operation, HintKind::Copy | HintKind::Move);
        let b = &mut self.barriers[slot][barrier];
        let barred = b.hard || b.wanted || copies && (others.hard || others.wanted);
        if barred && !matches!(operation, HintKind::Count | HintKind::Sync) {
            return mask;
        }
        match operation {
            HintKind::Join => b.participants |= mask,
            HintKind::Cancel => b.participants &= !mask,
            HintKind::Count => {
                let count = self.t.peek().more.count.expect("a count").low_u64();
                assert_eq!(count, u64::from((b.participants & live).count_ones()), "{told:?}");
            }
            HintKind::Copy | HintKind::Move if operand as usize == barrier => {}
            HintKind::Copy => b.participants = others.participants | b.waiting,
            HintKind::Move => {
                b.participants = others.participants | b.waiting;
                let c = &mut self.barriers[slot][operand as usize];
                c.participants = c.waiting;
            }
            HintKind::Sync => return self.sync(told, depth),
            HintKind::Wait => return self.wait(told, depth),
        }
        let _ = next;
        mask
    }

    /// A `sync`: who goes on now. It may also find its barrier in use.
    fn sync(&mut self, told: Told, depth: u64) -> u64 {
        let Told { slot, barrier, next, sync: (named, here), .. } = told;
        let live = self.live(slot);
        let all = named & live;
        let b = &mut self.barriers[slot][barrier];
        let passes = all & !here == 0;
        let same = b.hard && b.place == (depth, next) && b.participants & live == all;
        let in_use = !passes && b.waiting != 0 && !same;
        assert_eq!(self.t.peek().more.in_use.expect("a core with sync") == 1, in_use, "{told:?} {b:?}");
        if in_use {
            b.wanted |= !b.hard;
            b.hastened |= !b.hard;
            self.queued = Some(told);
            return 0;
        }
        b.wanted = false;
        if passes {
            if named & !here == 0 {
                self.jumped = Some(told);
            }
            return here;
        }
        *b = Barrier { participants: all, waiting: b.waiting | here, place: (depth, next), hard: true, ..*b };
        if b.waiting != all {
            return 0;
        }
        *b = Barrier { participants: 0, waiting: 0, hard: false, ..*b };
        all
    }

    fn wait(&mut self, Told { slot, barrier, operand, mask, next, .. }: Told, depth: u64) -> u64 {
        let live = self.live(slot);
        let b = &mut self.barriers[slot][barrier];
        let arrive = mask & b.participants;
        if arrive == 0 {
            return mask;
        }
        if b.waiting != 0 && b.place != (depth, next) {
            b.participants &= !arrive;
            self.released[4] += 1;
            return mask;
        }
        b.place = (depth, next);
        b.waiting |= arrive;
        b.age = 0;
        if b.waiting == b.participants & live || operand > 0 && u64::from(b.waiting.count_ones()) >= operand {
            let released = b.waiting;
            b.participants &= !released;
            b.waiting = 0;
            return mask | released;
        }
        mask & !arrive
    }

    /// One cycle; another one before it, if the outcome has not been announced.
    fn cycle(
        &mut self,
        told: Option<Told>,
        outcome: Option<(usize, OutcomeKind, P, P, bool, bool)>,
        start: Option<(usize, P)>,
    ) {
        let comes = outcome.map(|(slot, .., call, ret)| (slot, call, ret));
        if comes.is_some() && self.announced != comes {
            self.announces = comes;
            self.cycle(None, None, None);
        }
        let waits = told.filter(Told::waits);
        self.announces = waits.map(|told| (told.slot, false, false)).or(self.announces);
        let asked = self.r.usize(..self.slots.len());
        self.poke(told, outcome, start, asked);
        let (out, cycle) = (self.t.peek(), self.t.cycle());
        let (waited, ..) = (self.waited.take(), self.queued.take(), self.jumped.take());
        let release = [self.t.probe("release_valid"), self.t.probe("release_slot"), self.t.probe("release_mask")];
        let [is_release, at, released] = release.map(|bits| bits.low_u64());
        let reasons = out.events.releases.as_ref().expect("releases");
        let reasons = [
            &reasons.complete,
            &reasons.threshold,
            &reasons.stuck,
            &reasons.patience,
            &reasons.fell_through,
            out.events.gave_way.as_ref().expect("paths give way"),
        ];
        let reasons: Vec<bool> = reasons.into_iter().map(|bit| *bit == 1).collect();
        let woken = self.wake.take_if(|_| out.wake_ready == 1);
        if let Some(told) = told {
            let depth = self.threads[told.slot][told.mask.trailing_zeros() as usize].expect("it runs").depth;
            let goes = self.instruct(told, depth);
            if told.waits() && self.queued.is_none() && self.jumped.is_none() {
                self.waited = Some((told, goes));
            }
        }
        if is_release == 1 {
            self.release(at as usize, released, &reasons);
        }
        for (count, _) in
            self.released.iter_mut().zip(&reasons).enumerate().filter(|(k, (_, on))| *k != 4 && **on).map(|(_, c)| c)
        {
            *count += 1;
        }
        if let Some((slot, kind, taken, rest, ..)) = outcome {
            let active = taken.mask | rest.mask | if kind == OutcomeKind::Exit { self.exiting(slot) } else { 0 };
            self.tell(slot, kind, taken, rest, active, waited);
            self.slots[slot] = Slot::Waits(cycle);
            for b in &mut self.barriers[slot] {
                b.age += 1;
            }
        }
        if let Some((slot, begun)) = start.filter(|_| out.start_ready == 1) {
            let thread = Thread { depth: 0, pc: begun.pc, place: Place::Listed };
            for (lane, to) in self.threads[slot].iter_mut().enumerate() {
                *to = (begun.mask >> lane & 1 == 1).then_some(thread);
            }
            self.barriers[slot].fill(Barrier::default());
            self.slots[slot] = Slot::Waits(cycle);
        }
        if let Some(slot) = woken {
            self.place(slot, self.live(slot), |t| t.place = Place::Listed);
            self.slots[slot] = Slot::Waits(cycle);
        }
        if out.steer.valid == 1 {
            let (slot, pc) = (out.steer.slot.low_u64() as usize, out.steer.pc.low_u64());
            assert!(matches!(self.slots[slot], Slot::Waits(_)), "slot {slot} is steered twice");
            assert_ne!(self.set(slot, |t| t.pc == pc && t.place == Place::Listed), 0, "slot {slot} is steered to {pc}");
            self.slots[slot] = Slot::Runs(cycle);
            self.left[slot] = self.r.u32(..4);
        }
        self.t.try_step().unwrap_or_else(|error| panic!("cycle {cycle}: {error}"));
        self.announced = self.announces.take();
        self.after_the_edge(cycle);
    }

    /// Threads that end: those of the active path, which the tables still have.
    fn exiting(&mut self, slot: usize) -> u64 {
        self.t.memory_read("hct0", slot as u64).extract(self.s.rank_bits() + self.s.pc_bits(), self.s.lanes).low_u64()
    }

    fn tell(&mut self, slot: usize, kind: OutcomeKind, taken: P, rest: P, active: u64, waited: Option<(Told, u64)>) {
        let goes = waited.map_or(taken.mask, |(_, goes)| goes);
        for lane in 0..self.s.lanes as usize {
            let (bit, thread) = (1 << lane, &mut self.threads[slot][lane]);
            let at = |p: P, place| Some(Thread { depth: p.depth, pc: p.pc, place });
            if goes & bit != 0 {
                *thread = at(taken, if kind == OutcomeKind::Wait { Place::Parked } else { Place::Listed });
            } else if taken.mask & bit != 0 {
                *thread = at(taken, Place::Held(waited.expect("a wait").0.barrier));
            } else if rest.mask & bit != 0 {
                *thread = at(rest, Place::Listed);
            } else if active & bit != 0 {
                *thread = None;
            }
        }
    }

    /// The unit lets threads go on: those that wait at one barrier, for the reason that it says.
    fn release(&mut self, slot: usize, mask: u64, reasons: &[bool]) {
        let live = self.live(slot);
        let runs = self.set(slot, |t| t.place == Place::Listed) != 0;
        let which = (self.barriers[slot].iter()).position(|b| b.waiting == mask && mask != 0);
        let which = which.unwrap_or_else(|| panic!("{mask:#x} of {:?}", self.barriers[slot]));
        let b = &mut self.barriers[slot][which];
        let patience = u64::from(self.s.patience);
        assert!(!b.hard || b.waiting == b.participants & live, "who syncs waits for all: {b:?}");
        match reasons {
            [true, false, false, false, ..] => assert_eq!(b.waiting, b.participants & live, "complete"),
            [false, false, true, false, ..] => assert!(!runs, "stuck"),
            [false, false, false, true, ..] => assert!(b.age >= patience || b.hastened, "patience after {}", b.age),
            _ => panic!("one reason: {reasons:?}"),
        }
        b.participants &= !b.waiting;
        b.waiting = 0;
        b.hard = false;
        b.hastened = false;
        self.place(slot, mask, |t| t.place = Place::Listed);
    }

    fn after_the_edge(&mut self, cycle: u64) {
        let out = self.t.peek();
        for slot in 0..self.slots.len() {
            let (live, waits) = (out.live.bit(slot as u32), out.waiting.bit(slot as u32));
            let all = self.live(slot);
            assert_eq!(live, all != 0, "slot {slot}");
            self.slots[slot] = match self.slots[slot] {
                Slot::Waits(_) if waits => Slot::Parked,
                Slot::Waits(_) if all == 0 => Slot::Idle,
                Slot::Waits(since) => {
                    let Shape { lanes, warps, convergence_barriers, .. } = self.s;
                    let most = u64::from(60 + 8 * warps + 2 * lanes + warps * (lanes + 4 + 4 * convergence_barriers));
                    assert!(cycle - since <= most, "slot {slot} waits since cycle {since}: {:?}", self.threads[slot]);
                    Slot::Waits(since)
                }
                state => state,
            };
            assert_eq!(waits, self.slots[slot] == Slot::Parked, "slot {slot}");
            assert!(!waits || self.set(slot, |t| t.place != Place::Parked) == 0, "slot {slot}");
            for (k, b) in self.barriers[slot].iter().enumerate() {
                let held = self.set(slot, |t| t.place == Place::Held(k));
                let coming = self.waited.filter(|(told, _)| (told.slot, told.barrier) == (slot, k));
                assert!(held == b.waiting || coming.is_some(), "slot {slot}, barrier {k}: {held:#x} {b:?}");
            }
        }
    }

    /// A random instruction on a barrier, or an outcome, of a path.
    fn invent(&mut self, slot: usize, x: P) -> Result<Told, (usize, OutcomeKind, P, P, bool, bool)> {
        let n = self.s.convergence_barriers as usize;
        if self.left[slot] > 0 {
            self.left[slot] -= 1;
            let operation = [
                HintKind::Join,
                HintKind::Join,
                HintKind::Join,
                HintKind::Cancel,
                HintKind::Count,
                HintKind::Copy,
                HintKind::Move,
            ][self.r.usize(..7)];
            let (barrier, operand) = (self.r.usize(..n), self.r.usize(..n) as u64);
            return Ok(Told { slot, operation, barrier, operand, mask: x.mask, next: x.pc, sync: (0, 0) });
        }
        let r = &mut self.r;
        let last = (1 << self.s.pc_bits()) - 1;
        if self.s.syncs() && r.u8(..100) < 30 {
            // The threads of even lanes wait for each other, and those of odd ones; so all come in the end.
            let even = 0x5555_5555_5555_5555 & u64::MAX >> (64 - self.s.lanes);
            let odd = !even & u64::MAX >> (64 - self.s.lanes);
            let own = if even >> x.mask.trailing_zeros() & 1 == 1 { even } else { odd };
            let (operation, sync) = (HintKind::Sync, (own, own & x.mask));
            return Ok(Told { slot, operation, barrier: 0, operand: 0, mask: x.mask, next: 7, sync });
        }
        if r.u8(..100) < 40 {
            let operand = if r.bool() { 0 } else { r.u64(..=u64::from(self.s.lanes) + 1) };
            // Few places, so that threads come to the same.
            let next = if r.u8(..8) == 0 { r.u64(..12) } else { 7 };
            let barrier = r.usize(..n);
            return Ok(Told { slot, operation: HintKind::Wait, barrier, operand, mask: x.mask, next, sync: (0, 0) });
        }
        let some = x.mask & if r.u8(..3) == 0 { r.u64(..) } else { u64::MAX };
        let kind = match r.u32(..100) {
            0..3 => OutcomeKind::Exit,
            3..15 if self.s.barriers && !self.s.syncs() => OutcomeKind::Wait,
            3..40 => OutcomeKind::Jump,
            _ => OutcomeKind::Branch,
        };
        let taken = if kind == OutcomeKind::Exit {
            0
        } else if some == 0 {
            x.mask
        } else {
            some
        };
        let call = kind == OutcomeKind::Jump && !self.s.syncs() && x.depth < 3 && r.u8(..3) == 0;
        let ret = kind == OutcomeKind::Jump && !self.s.syncs() && !call && r.bool();
        let depth = if ret { x.depth.saturating_sub(1) } else { x.depth + u64::from(call) };
        let taken = P { depth, pc: r.u64(..12) & last, mask: taken, waits: false };
        let rest = if kind == OutcomeKind::Exit { 0 } else { x.mask & !taken.mask };
        Err((slot, kind, taken, P { depth: x.depth, pc: (x.pc + 1) & last, mask: rest, waits: false }, call, ret))
    }

    /// The outcome of a `wait`, or of a `sync`.
    fn outcome_of(&self, told: Told, kind: OutcomeKind) -> (usize, OutcomeKind, P, P, bool, bool) {
        let Told { slot, mask, next, sync: (_, here), .. } = told;
        let first = self.threads[slot][mask.trailing_zeros() as usize].expect("it waits");
        let at = |mask, pc| P { depth: first.depth, pc, mask, waits: false };
        match (told.operation == HintKind::Sync, kind) {
            (true, OutcomeKind::Queue) => (slot, kind, at(mask & !here, first.pc), at(here, first.pc), false, false),
            (true, _) => (slot, kind, at(here, next), at(mask & !here, first.pc), false, false),
            (false, _) => (slot, kind, at(mask, next), P::default(), false, false),
        }
    }

    fn random_cycles(&mut self, cycles: u32) {
        let (mut density, mut next_outcome) = (50, None);
        for k in 0..cycles {
            if k % 64 == 0 {
                density = [4, 20, 50, 80, 100][self.r.usize(..5)];
            }
            // What `hold` kept from being issued does not come: neither outcomes nor instructions.
            let kept = |cycles: u32| self.held >> cycles & 1 == 1;
            let [kept, instruction_kept] = [kept(4), kept(3)];
            let told = self.ahead.take();
            self.ahead = self.first.take();
            let outcome = match (self.waited, self.queued, self.jumped) {
                (Some((told, _)), ..) => Some(self.outcome_of(told, OutcomeKind::Converge)),
                (_, Some(told), _) => Some(self.outcome_of(told, OutcomeKind::Queue)),
                (.., Some(told)) => Some(self.outcome_of(told, OutcomeKind::Jump)),
                _ => next_outcome.take(),
            };
            // What comes next is not of a slot whose outcome is on its way, or that has an instruction in the cycle
            // before.
            let cycle = self.t.cycle();
            let busy = [told.filter(Told::waits), self.ahead].map(|told| told.map(|t| t.slot));
            let busy = [busy[0], busy[1], outcome.map(|o| o.0)];
            let runs =
                |k: &usize| matches!(self.slots[*k], Slot::Runs(since) if cycle > since + u64::from(STEER_TO_DECODE));
            let ready: Vec<usize> = (0..self.slots.len()).filter(|k| runs(k) && !busy.contains(&Some(*k))).collect();
            if !ready.is_empty() && !kept && self.r.u32(..100) < density {
                let slot = ready[self.r.usize(..ready.len())];
                let x = self.active(slot);
                match self.invent(slot, x) {
                    Ok(hint) => self.first = Some(hint).filter(|_| !instruction_kept),
                    // In stage 9 with the instruction that follows, of another slot, a `wait` may not be in stage 9,
                    // too.
                    Err(told_later) if told.is_none_or(|t| !t.waits()) => {
                        let in_flight = told.is_some_and(|t| t.slot == slot);
                        next_outcome = (!in_flight).then_some(told_later);
                    }
                    Err(_) => {}
                }
            }
            let all = |want: Slot| (0..self.slots.len()).filter(|&k| self.slots[k] == want).collect::<Vec<_>>();
            let (idle, parked) = (all(Slot::Idle), all(Slot::Parked));
            let lanes = u64::MAX >> (64 - self.s.lanes);
            let start = (!idle.is_empty() && self.r.u8(..4) == 0).then(|| {
                let some = if self.r.u8(..4) == 0 { self.r.u64(..) & lanes } else { lanes };
                let mask = if some == 0 { lanes } else { some };
                (idle[self.r.usize(..idle.len())], P { pc: self.r.u64(..12), mask, ..P::default() })
            });
            if self.wake.is_none() && !parked.is_empty() && self.r.u8(..4) == 0 {
                self.wake = Some(parked[self.r.usize(..parked.len())]);
            }
            self.announces = next_outcome.map(|(slot, .., call, ret)| (slot, call, ret));
            self.poke(None, None, None, 0);
            let hold = self.t.peek().hold == 1;
            self.held = self.held << 1 | u32::from(hold);
            self.cycle(told, outcome, start);
        }
    }

    fn count_covers(&mut self, hits: &mut BTreeMap<String, u64>) {
        let directory = self.t.simulation().directory().clone();
        let covers = (0..directory.properties.len()).filter(|&k| directory.property_kind(k) == PropertyKind::Cover);
        for path in covers.map(|k| directory.properties[k].path.clone()).filter(|path| path.starts_with("convergence"))
        {
            *hits.entry(path.clone()).or_default() += self.t.cover_hits(&path);
        }
    }

    // For traces: one thing after the other.

    /// An instruction of the active path.
    fn tells(&mut self, operation: HintKind, barrier: usize, operand: u64) -> u64 {
        self.settle();
        let x = self.active(0);
        self.first = Some(Told { slot: 0, operation, barrier, operand, mask: x.mask, next: x.pc + 1, sync: (0, 0) });
        self.cycle(None, None, None);
        self.ahead = self.first.take();
        self.cycle(None, None, None);
        let told = self.ahead.take();
        self.poke(told, None, None, 0);
        let count = self.t.peek().more.count.expect("a count").low_u64();
        self.cycle(told, None, None);
        if let Some((told, _)) = self.waited {
            let taken = P { depth: x.depth, pc: told.next, mask: told.mask, waits: false };
            self.cycle(None, Some((0, OutcomeKind::Converge, taken, P::default(), false, false)), None);
        }
        count
    }

    /// An outcome of the active path, which is these threads: `taken` go to one place, the others to another.
    fn branches(&mut self, taken: (&str, u64), rest: u64) {
        self.settle();
        let x = self.active(0);
        let side = |mask, pc| P { depth: x.depth, pc, mask, waits: false };
        let to = lanes_of(taken.0);
        let outcome = (0, OutcomeKind::Branch, side(to, taken.1), side(x.mask & !to, rest), false, false);
        self.cycle(None, Some(outcome), None);
    }

    fn ends(&mut self) {
        self.settle();
        self.active(0);
        self.cycle(None, Some((0, OutcomeKind::Exit, P::default(), P::default(), false, false)), None);
    }

    /// Until a path runs, and what there was to look at has been looked at.
    fn settle(&mut self) {
        for _ in 0..40 {
            self.cycle(None, None, None);
        }
    }

    /// Who runs, the other paths, and who waits where.
    fn state(&mut self) -> String {
        self.settle();
        let active = match self.slots[0] {
            Slot::Runs(_) => {
                let x = self.active(0);
                format!("{}:{}", x.pc, shown(x.mask))
            }
            _ => "-".into(),
        };
        let x = if active == "-" { 0 } else { self.active(0).mask };
        let mut others: Vec<(u64, u64)> = Vec::new();
        for (lane, thread) in self.threads[0].iter().enumerate() {
            if let Some(t) = thread.filter(|t| t.place == Place::Listed && x >> lane & 1 == 0) {
                match others.iter_mut().find(|(pc, _)| *pc == t.pc) {
                    Some((_, mask)) => *mask |= 1 << lane,
                    None => others.push((t.pc, 1 << lane)),
                }
            }
        }
        others.sort_unstable();
        let mut text = active;
        for (pc, mask) in others {
            text += &format!(" ({pc}:{})", shown(mask));
        }
        for (k, b) in self.barriers[0].iter().enumerate() {
            let live = self.live(0);
            if b.participants & live != 0 {
                text += &format!(" | b{k} P {} W {}", shown(b.participants & live), shown(b.waiting));
            }
        }
        text
    }
}

fn shape(lanes: u32, warps: u32, barriers: u32) -> Shape {
    Shape { convergence_barriers: barriers, patience: 32, ..Shape::new(lanes, warps) }
}

/// A bench with four threads at pc 0.
fn four(barriers: u32) -> Bench {
    let mut bench = Bench::new(&shape(4, 1, barriers), 1);
    bench.cycle(None, None, Some((0, P { mask: 0b1111, ..P::default() })));
    bench
}

/// `speculative-reconvergence.txt` Figure 4: threads come to BB3 in different rounds of the loop, wait there, and go on
/// together. `docs/reference/convergence-barriers.md` shows this trace.
#[test]
fn figure_4() {
    let (bb1, bb3, bb4, bb5) = (10, 20, 30, 40);
    let mut bench = four(1);
    bench.tells(HintKind::Join, 0, 0);
    let mut trace = Vec::new();
    let mut see = |bench: &mut Bench| trace.push(bench.state());
    bench.branches(("1111", bb1), 1);
    see(&mut bench);
    // Threads 0 and 1 take the branch in this round, thread 2 in the next; thread 3 never does, and leaves.
    bench.branches(("1100", bb3), bb4);
    see(&mut bench);
    bench.tells(HintKind::Wait, 0, 0);
    see(&mut bench);
    bench.branches(("0011", bb1), bb1);
    bench.branches(("0010", bb3), bb4);
    bench.tells(HintKind::Wait, 0, 0);
    see(&mut bench);
    bench.branches(("0001", bb5), bb5);
    bench.tells(HintKind::Cancel, 0, 0);
    see(&mut bench);
    bench.branches(("0001", bb5 + 5), bb5);
    see(&mut bench);
    bench.tells(HintKind::Join, 0, 0);
    see(&mut bench);
    let expected = [
        "10:1111 | b0 P 1111 W 0000",
        "20:1100 (30:0011) | b0 P 1111 W 0000",
        "30:0011 | b0 P 1111 W 1100",
        "30:0001 | b0 P 1111 W 1110",
        "40:0001 (21:1110)",
        "21:1110 (45:0001)",
        "21:1110 (45:0001) | b0 P 1110 W 0000",
    ];
    assert_eq!(trace, expected, "{trace:#?}");
    assert_eq!(bench.released[..5], [1, 0, 0, 0, 0]);
}

/// Figure 5 (c), dynamic deconfliction: who comes to BB3 leaves b1, which the others wait at behind the loop, before
/// waiting at b0.
#[test]
fn figure_5() {
    let (bb3, bb5) = (20, 40);
    let mut bench = four(2);
    bench.tells(HintKind::Join, 0, 0);
    bench.tells(HintKind::Join, 1, 0);
    bench.branches(("1000", bb3), bb5);
    bench.tells(HintKind::Cancel, 1, 0);
    bench.tells(HintKind::Wait, 0, 0);
    assert_eq!(bench.state(), "40:0111 | b0 P 1111 W 1000 | b1 P 0111 W 0000");
    bench.tells(HintKind::Cancel, 0, 0);
    // All that participate in b1 are here; thread 0 goes on alone.
    bench.branches(("0111", 45), 45);
    assert_eq!(bench.state(), "21:1000 (45:0111) | b1 P 0111 W 0000");
    bench.branches(("1000", 50), 50);
    bench.tells(HintKind::Wait, 1, 0);
    assert_eq!(bench.state(), "46:0111 (50:1000)");
    assert_eq!(bench.released[..5], [1, 0, 0, 0, 0]);
}

/// Figure 6 with the table of the docs: threshold 2 of 4. b0 counts, b1 is bTemp, b2 is bAll.
#[test]
fn figure_6_with_threshold_2_of_4() {
    let (come, bb6) = (10, 20);
    let mut bench = four(3);
    bench.tells(HintKind::Join, 2, 0);
    bench.tells(HintKind::Copy, 1, 2);
    bench.branches(("1000", come), 100);
    for (count, next) in [(1, "0100"), (2, "0010")] {
        bench.tells(HintKind::Join, 0, 0);
        assert_eq!(bench.tells(HintKind::Count, 0, 0), count);
        bench.branches(("", bb6), bb6);
        bench.tells(HintKind::Wait, 1, 0);
        bench.branches((next, come), 100);
    }
    assert_eq!(bench.state(), "10:0010 (100:0001) | b0 P 1100 W 0000 | b1 P 1111 W 1100 | b2 P 1111 W 0000");
    bench.tells(HintKind::Join, 0, 0);
    assert_eq!(bench.tells(HintKind::Count, 0, 0), 3);
    bench.tells(HintKind::Move, 1, 0);
    bench.branches(("", bb6), bb6);
    assert_eq!(bench.state(), "20:0010 (100:0001) | b1 P 1110 W 1100 | b2 P 1111 W 0000");
    bench.tells(HintKind::Wait, 1, 0);
    assert_eq!(bench.state(), "21:1110 (100:0001) | b2 P 1111 W 0000");
    bench.tells(HintKind::Copy, 1, 2);
    assert_eq!(bench.state(), "21:1110 (100:0001) | b1 P 1111 W 0000 | b2 P 1111 W 0000");
    // T3 leaves, and is not waited for.
    bench.branches(("", bb6), bb6);
    bench.tells(HintKind::Wait, 1, 0);
    assert_eq!(bench.state(), "100:0001 | b1 P 1111 W 1110 | b2 P 1111 W 0000");
    bench.tells(HintKind::Cancel, 1, 0);
    bench.tells(HintKind::Cancel, 2, 0);
    assert_eq!(bench.state(), "100:0001 (21:1110) | b2 P 1110 W 0000");
    assert_eq!(bench.released[..5], [2, 0, 0, 0, 0]);
}

/// The paper's `WaitBarrier` with a threshold in one instruction: that of the last arrival counts.
#[test]
fn a_threshold_of_the_last_arrival() {
    let mut bench = four(1);
    bench.tells(HintKind::Join, 0, 0);
    bench.branches(("1000", 10), 20);
    bench.tells(HintKind::Wait, 0, 4);
    bench.branches(("0100", 10), 20);
    bench.tells(HintKind::Wait, 0, 3);
    assert_eq!(bench.state(), "20:0011 | b0 P 1111 W 1100");
    bench.branches(("0010", 10), 20);
    bench.tells(HintKind::Wait, 0, 3);
    assert_eq!(bench.state(), "11:1110 (20:0001) | b0 P 0001 W 0000");
    bench.branches(("", 30), 30);
    bench.tells(HintKind::Wait, 0, 64);
    assert_eq!(bench.state(), "21:0001 (30:1110)");
}

/// Threads that come to another place leave the barrier and go on; those that wait stay, and are released if they were
/// the last.
#[test]
fn only_who_falls_through_leaves() {
    let mut bench = four(1);
    bench.tells(HintKind::Join, 0, 0);
    bench.branches(("1000", 10), 20);
    bench.tells(HintKind::Wait, 0, 0);
    bench.branches(("0100", 30), 20);
    bench.branches(("0011", 40), 40);
    bench.tells(HintKind::Wait, 0, 0);
    assert_eq!(bench.state(), "31:0100 (40:0011) | b0 P 1011 W 1000");
    bench.branches(("", 50), 50);
    bench.tells(HintKind::Wait, 0, 0);
    assert_eq!(bench.state(), "41:0011 (11:1000) (50:0100)");
    assert_eq!(bench.released[..5], [1, 0, 0, 0, 2]);
}

/// Where nobody can run, who is complete goes first, and then one barrier after the other.
#[test]
fn nobody_runs() {
    let mut bench = four(2);
    bench.tells(HintKind::Join, 1, 0);
    bench.branches(("1110", 10), 20);
    bench.tells(HintKind::Join, 0, 0);
    bench.branches(("1100", 15), 18);
    bench.tells(HintKind::Wait, 0, 0);
    bench.branches(("0010", 25), 25);
    bench.tells(HintKind::Wait, 1, 0);
    assert_eq!(bench.state(), "25:0010 | b0 P 1110 W 1100 | b1 P 1111 W 0001");
    bench.ends();
    assert_eq!(bench.state(), "16:1100 | b1 P 1101 W 0001");
    assert_eq!(bench.released[..4], [1, 0, 0, 0]);
    bench.tells(HintKind::Join, 0, 0);
    bench.branches(("1000", 30), 35);
    bench.tells(HintKind::Wait, 0, 0);
    bench.tells(HintKind::Wait, 1, 0);
    // At two places of b1: thread 1 has left it; it ends.
    assert_eq!(bench.state(), "36:0100 | b0 P 1100 W 1000 | b1 P 1001 W 0001");
    bench.ends();
    assert_eq!(bench.state(), "31:1000 | b1 P 1001 W 0001");
    bench.tells(HintKind::Wait, 1, 0);
    bench.ends();
    bench.ends();
    assert_eq!(bench.state(), "-");
    assert_eq!(bench.slots[0], Slot::Idle);
}

/// Random programs of the unit. Those of 64 lanes have most of the releases that are rare.
#[test]
fn threads_are_where_they_should_be() {
    let mut covers = BTreeMap::new();
    let mut released = [0; 6];
    for (k, (lanes, warps)) in
        [(1, 1), (1, 4), (2, 1), (2, 4), (4, 1), (4, 8), (8, 2), (16, 1), (64, 2)].into_iter().enumerate()
    {
        for (barriers, with) in [(1, true), (2, false), (3, true), (16, true)] {
            for warp_primitives in [false, true] {
                let s = Shape { barriers: with, warp_primitives, ..shape(lanes, warps, barriers) };
                let mut bench = Bench::new(&s, 10 * k as u64 + u64::from(barriers));
                bench.random_cycles(if lanes < 64 { cases(20_000) } else { 20_000 });
                bench.count_covers(&mut covers);
                released.iter_mut().zip(bench.released).for_each(|(sum, count)| *sum += count);
            }
        }
    }
    println!("{released:?}");
    assert!(released.iter().all(|&count| count > 10), "{released:?}");
    all_hit(&covers);
}

/// Of two warps whose instructions make the warden look at barriers all the time, a third barrier has its turn, too:
/// that of warp 0 which is complete. Nobody obeys `hold` here.
#[test]
fn every_barrier_has_its_turn() {
    let s = shape(4, 2, 2);
    let most = u64::from(looked_at_after(&s));
    let mut t = Sim::new(&convergence_table(&s).check().unwrap());
    let zero = TableIn::shape(&s).map("", &mut |_, _| Bits::from(0u32));
    for (period, phase) in (6..20).flat_map(|period| (1..period).map(move |phase| (period, phase))) {
        t.poke(zero.clone());
        t.reset();
        let cycle = |t: &mut Sim<TableIn<Width>, TableOut<Signal>>, [told, next, last]: [Option<Told>; 3]| {
            let hint = |told: Told| Hint {
                valid: 1u32.into(),
                slot: told.slot.into(),
                operation: told.operation.into(),
                barrier: told.barrier.into(),
                operand: told.operand.into(),
                mask: told.mask.into(),
                next: told.next.into(),
                sync: None,
            };
            let ahead = next.map_or(zero.hints.ahead.clone(), |next| Ahead {
                slot: next.slot.into(),
                barrier: next.barrier.into(),
                mask: next.mask.into(),
                next: next.next.into(),
                ..zero.hints.ahead.clone()
            });
            let first = last.map_or(zero.hints.first.clone(), |last| First {
                slot: last.slot.into(),
                barrier: last.barrier.into(),
            });
            let present = told.is_some().into();
            let hints = Hints { first, ahead, hint: told.map_or(zero.hints.hint.clone(), hint), present };
            t.poke(TableIn { hints, free: 1u32.into(), ..zero.clone() });
            let out = t.peek().release;
            t.step();
            (out.valid == 1).then(|| (out.slot.low_u64(), out.mask.low_u64()))
        };
        for slot in 0..2usize {
            let start =
                TableIn { start: 1u32.into(), start_slot: slot.into(), start_mask: 0b1111u32.into(), ..zero.clone() };
            t.poke(start);
            t.step();
        }
        let tell =
            |slot, operation, barrier, mask| Told { slot, operation, barrier, operand: 0, mask, next: 5, sync: (0, 0) };
        let both = |slot| {
            [
                (HintKind::Join, 0, 0b1111),
                (HintKind::Join, 1, 0b1111),
                (HintKind::Wait, 0, 0b0001),
                (HintKind::Wait, 1, 0b0010),
            ]
            .map(|(operation, barrier, mask)| tell(slot, operation, barrier, mask))
        };
        for told in both(0).into_iter().chain(both(1)).chain([tell(0, HintKind::Cancel, 1, 0b1101)]) {
            cycle(&mut t, [None, None, Some(told)]);
            cycle(&mut t, [None, Some(told), None]);
            assert_eq!(cycle(&mut t, [Some(told), None, None]), None);
        }
        // Nobody leaves: the barriers stay as they are.
        let told_at = |cycle: u64| match cycle % period {
            0 => Some(tell(0, HintKind::Cancel, 0, 0)),
            at if at == phase => Some(tell(1, HintKind::Cancel, 1, 0)),
            _ => None,
        };
        cycle(&mut t, [None, None, told_at(0)]);
        cycle(&mut t, [None, told_at(0), told_at(1)]);
        let released = (0..most).find_map(|at| cycle(&mut t, [0, 1, 2].map(|later| told_at(at + later))));
        assert_eq!(released, Some((0, 0b0010)), "an instruction every {period} cycles, the other {phase} later");
    }
}

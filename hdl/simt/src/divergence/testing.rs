//! What the tests of divergence units share: a pipeline that makes random outcomes, starts and wakes, and the threads
//! as they should be, each with a pc and a call depth of its own, that runs or waits.

use super::{Announced, Outcome, OutcomeKind, SequenceTold, Side, Start, UnitIn, UnitOut, Wake};
use crate::pipeline::timing::{ISSUE_TO_OUTCOME, OUTCOMES_BEFORE_HOLD, STEER_TO_DECODE};
use crate::reconvergence::Reconvergence;
use crate::shape::Shape;
use heddle_hdl::netlist::PropertyKind;
use heddle_hdl::prelude::*;
use heddle_sim::Sim;
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub type Unit = Sim<UnitIn<Width>, UnitOut<Signal>>;
pub type Plan = Design<UnitIn<Width>, UnitOut<Signal>>;

/// Threads of a warp that are in the same place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct P {
    pub depth: u64,
    pub pc: u64,
    pub mask: u64,
    pub waits: bool,
}

/// Paths are sorted by it, least first.
pub type Key = (bool, Reverse<u64>, u64);

impl P {
    pub fn key(&self) -> Key {
        (self.waits, Reverse(self.depth), self.pc)
    }
}

/// What the pipeline would do with a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Slot {
    Idle,
    /// Steered; its next outcome may come.
    Runs,
    /// Gave an outcome in this cycle and has not been steered since, or not been found to wait.
    Waits(u64),
    /// All its threads wait, and the unit says so.
    Parked,
}

/// What the pipeline says in a cycle, in plain values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    pub slot: usize,
    pub kind: OutcomeKind,
    pub taken: P,
    pub rest: P,
    pub call: bool,
    pub ret: bool,
    /// It begins or ends an LR/SC sequence, where something is kept of them.
    pub begins: bool,
    pub ends: bool,
}

/// A start: the slot, and its threads.
pub type Begun = (usize, P);

pub struct Pipeline {
    pub t: Unit,
    pub s: Shape,
    pub random: fastrand::Rng,
    pub slots: Vec<Slot>,
    /// Depth and pc of every live thread and whether it waits, by slot and lane.
    pub threads: Vec<Vec<Option<(u64, u64, bool)>>>,
    /// The slot that is to be woken, until it is.
    pub wake: Option<usize>,
    /// The slot that may have an outcome in the next cycle, and the one that may have one in this.
    pub announces: Option<usize>,
    pub announced: Option<usize>,
    /// Whether that outcome is a call, and whether a return from one.
    announces_depth: (bool, bool),
    announced_depth: (bool, bool),
    /// What units that are told are told of an outcome.
    pub meets: Option<Reconvergence<u64>>,
    /// A random start and wake stay until they are taken.
    offered: (Option<Begun>, Option<usize>),
    /// `hold` in the last cycles, a bit each, the last lowest.
    held: u32,
}

impl Pipeline {
    pub fn new(design: &Plan, s: &Shape, seed: u64) -> Pipeline {
        println!("{} lanes, {} warps, seed {seed}", s.lanes, s.warps);
        let mut t = Sim::new(design);
        t.reset();
        let warps = s.warps as usize;
        Pipeline {
            t,
            s: s.clone(),
            random: fastrand::Rng::with_seed(seed),
            slots: vec![Slot::Idle; warps],
            threads: vec![vec![None; s.lanes as usize]; warps],
            wake: None,
            announces: None,
            announced: None,
            announces_depth: (false, false),
            announced_depth: (false, false),
            meets: None,
            offered: (None, None),
            held: 0,
        }
    }

    /// The most cycles that a slot may wait for its steering once `hold` is obeyed.
    pub fn most_wait(&self) -> u64 {
        let Shape { lanes, warps, barriers, .. } = self.s;
        let outcomes = 2 * (OUTCOMES_BEFORE_HOLD + ISSUE_TO_OUTCOME);
        u64::from(outcomes + 3 * warps + 2 * lanes + if barriers { warps * (2 * lanes + 4) } else { 0 })
    }

    /// The unit is told of an outcome a cycle before it comes.
    pub fn is_told_ahead(&self) -> bool {
        self.s.divergence.capabilities().announced
    }

    /// Whether the outcome may come now; if not, it is announced for the next cycle.
    pub fn may_tell(&mut self, told: &Option<Told>) -> bool {
        let unannounced = told.filter(|told| self.is_told_ahead() && self.announced != Some(told.slot));
        if let Some(told) = unannounced {
            (self.announces, self.announces_depth) = (Some(told.slot), (told.call, told.ret));
        }
        unannounced.is_none()
    }

    /// A clock edge has passed: what was announced may come.
    pub fn pass(&mut self) {
        self.announced = self.announces.take();
        self.announced_depth = std::mem::take(&mut self.announces_depth);
    }

    /// The inputs of a cycle.
    pub fn poke(&mut self, told: Option<Told>, start: Option<Begun>, asked: usize, issued: usize) {
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
                meets: self.meets.map(|m| m.map("", &mut |_, v: u64| v.into())),
                homes: None,
            },
            sequence: (self.s.keeps_sequences()).then(|| SequenceTold { begins: o.begins.into(), ends: o.ends.into() }),
            announced: self.is_told_ahead().then(|| Announced {
                valid: self.announces.is_some().into(),
                slot: self.announces.unwrap_or(0).into(),
                call: self.announces_depth.0.into(),
                ret: self.announces_depth.1.into(),
            }),
            hints: None,
            unissued: None,
            mixed: None,
        });
    }

    /// What a control instruction of the slot, whose active path is `x`, could do; it lies before the stop pc.
    pub fn invent(&mut self, slot: usize, x: P, stop: Option<u64>) -> Told {
        let (told_ahead, announced) = (self.is_told_ahead(), self.announced_depth);
        let r = &mut self.random;
        let last = (1 << self.s.pc_bits()) - 1;
        let here = ((x.pc + r.u64(..6)) & last).min(stop.map_or(last, |stop| stop.wrapping_sub(1)));
        let kind = match r.u32(..100) {
            _ if told_ahead && announced != (false, false) => OutcomeKind::Jump,
            0..4 => OutcomeKind::Exit,
            4..20 => OutcomeKind::Arrived,
            20..35 if self.s.barriers => OutcomeKind::Wait,
            20..40 => OutcomeKind::Jump,
            40..60 => OutcomeKind::Memory,
            _ => OutcomeKind::Branch,
        };
        let some = x.mask & if r.u8(..3) == 0 { r.u64(..) } else { u64::MAX };
        let served = if some == 0 { x.mask } else { some };
        let (taken, target, stays) = match kind {
            OutcomeKind::Exit => (0, r.u64(..=last), here),
            OutcomeKind::Arrived => (x.mask, here + 1, here),
            OutcomeKind::Jump => (served, r.u64(..12), here),
            OutcomeKind::Memory => (served, here + 1, here),
            OutcomeKind::Wait => (served, [here + 1, 9][r.usize(..2)], here),
            _ => (x.mask & r.u64(..), if r.u8(..8) == 0 { here + 1 } else { r.u64(..12) }, here + 1),
        };
        let rest = if kind == OutcomeKind::Exit { 0 } else { x.mask & !taken };
        let call = kind == OutcomeKind::Jump && x.depth < 3 && r.u8(..3) == 0;
        let ret = kind == OutcomeKind::Jump && !call && r.bool();
        let (call, ret) = if told_ahead { announced } else { (call, ret) };
        let depth = match (self.s.order.counts_calls(), ret) {
            (false, _) => 0,
            (true, true) => x.depth.saturating_sub(1),
            (true, false) => x.depth + u64::from(call),
        };
        let taken = P { depth, pc: target & last, mask: taken, waits: kind == OutcomeKind::Wait };
        let rest = P { depth: x.depth, pc: stays & last, mask: rest, waits: false };
        let begins = self.s.keeps_sequences() && kind == OutcomeKind::Memory && self.random.bool();
        let ends = kind == OutcomeKind::Wait || (self.s.keeps_sequences() && !begins && self.random.u8(..3) == 0);
        Told { slot, kind, taken, rest, call, ret, begins, ends }
    }

    /// Random events for a cycle, the outcome with a chance of `density` in 100; `ready` says which slots may have one.
    pub fn random_events(
        &mut self,
        density: u32,
        ready: impl Fn(&mut Pipeline, usize) -> bool,
        invent: impl FnOnce(&mut Pipeline, usize) -> Told,
    ) -> (Option<Told>, Option<Begun>) {
        // What `hold` kept from being issued does not come when it would be resolved, nor is it announced.
        let kept = self.held >> (ISSUE_TO_OUTCOME - 1) & 1 == 1;
        self.held = self.held << 1 | u32::from(self.t.peek().hold == 1);
        let kept_next = self.held >> (ISSUE_TO_OUTCOME - 1) & 1 == 1;
        let all = |p: &Pipeline, want: Slot| (0..p.slots.len()).filter(|&k| p.slots[k] == want).collect::<Vec<_>>();
        let (mut running, idle, parked) = (all(self, Slot::Runs), all(self, Slot::Idle), all(self, Slot::Parked));
        let to_come = running.clone();
        running.retain(|&slot| ready(self, slot));
        if self.is_told_ahead() {
            running.retain(|&slot| self.announced == Some(slot));
        }
        let may = !running.is_empty() && !kept && (self.is_told_ahead() || self.random.u32(..100) < density);
        let told = may.then(|| {
            let slot = running[self.random.usize(..running.len())];
            invent(self, slot)
        });
        // A call that was announced and is too deep does not come.
        let told = told.filter(|told| !(told.call && told.taken.depth >> self.s.depth_bits != 0));
        if self.is_told_ahead() && !kept_next {
            // One that runs, if there is another; else the same again. Now and then any: if it does not run, its
            // outcome does not come.
            let others = to_come.into_iter().filter(|&slot| told.is_none_or(|told| told.slot != slot));
            let others: Vec<usize> = others.collect();
            let again = told.map(|told| told.slot);
            let next = if others.is_empty() { again } else { Some(others[self.random.usize(..others.len())]) };
            let any = (self.random.u8(..16) == 0).then(|| self.random.usize(..self.slots.len()));
            self.announces = any.or(next).filter(|_| self.random.u32(..100) < density);
            let depth = self.random.u8(..16);
            self.announces_depth = (depth == 0, (1..3).contains(&depth));
        }
        let (start, wake) = self.offered;
        let start = start.filter(|(slot, _)| idle.contains(slot));
        let start = start.or_else(|| (!idle.is_empty() && self.random.u8(..8) == 0).then(|| self.begin(&idle)));
        let wake = wake.filter(|slot| parked.contains(slot));
        let chosen = |r: &mut fastrand::Rng| parked[r.usize(..parked.len())];
        let random = &mut self.random;
        let wake = wake.or_else(|| (!parked.is_empty() && random.u8(..8) == 0).then(|| chosen(random)));
        self.offered = (start, wake);
        self.wake = wake;
        (told, start)
    }

    fn begin(&mut self, idle: &[usize]) -> Begun {
        let lanes = u64::MAX >> (64 - self.s.lanes);
        let some = if self.random.u8(..4) == 0 { self.random.u64(..) & lanes } else { lanes };
        let mask = if some == 0 { lanes } else { some };
        (idle[self.random.usize(..idle.len())], P { depth: 0, pc: self.random.u64(..12), mask, waits: false })
    }

    /// What an outcome does to the threads of the active path, `active`.
    pub fn move_threads(&mut self, told: &Told, active: u64) {
        for (lane, thread) in self.threads[told.slot].iter_mut().enumerate().filter(|(lane, _)| active >> lane & 1 == 1)
        {
            let at = |p: &P| (p.mask >> lane & 1 == 1).then_some((p.depth, p.pc, p.waits));
            *thread = at(&told.taken).or(at(&told.rest));
        }
    }

    pub fn start_threads(&mut self, (slot, begun): Begun) {
        for lane in (0..self.s.lanes as usize).filter(|lane| begun.mask >> lane & 1 == 1) {
            self.threads[slot][lane] = Some((0, begun.pc, false));
        }
    }

    pub fn wake_threads(&mut self, slot: usize) {
        self.threads[slot].iter_mut().flatten().for_each(|thread| thread.2 = false);
    }

    /// The threads of a slot by place, in the order of their keys.
    pub fn places(&self, slot: usize) -> Vec<P> {
        let mut places: BTreeMap<Key, P> = BTreeMap::new();
        for (lane, thread) in self.threads[slot].iter().enumerate() {
            if let &Some((depth, pc, waits)) = thread {
                let p = P { depth, pc, waits, mask: 0 };
                places.entry(p.key()).or_insert(p).mask |= 1 << lane;
            }
        }
        places.into_values().collect()
    }

    /// Adds this run's covers to `hits`.
    pub fn count_covers(&mut self, hits: &mut BTreeMap<String, u64>) {
        let directory = self.t.simulation().directory().clone();
        let covers = (0..directory.properties.len()).filter(|&k| directory.property_kind(k) == PropertyKind::Cover);
        for k in covers {
            let path = &directory.properties[k].path;
            *hits.entry(path.clone()).or_default() += self.t.cover_hits(path);
        }
    }
}

/// A unit under a pipeline, seen from its ports only: where it steers a slot to, and what it answers decode and issue.
pub struct Watch {
    pub pipeline: Pipeline,
    /// Of each slot: when and where it was steered last; as a replay; the threads it runs.
    steered: Vec<Steered>,
    /// The threads that its last outcome, a memory access, left unserved.
    left: Vec<Option<P>>,
    /// Paths that met in the model, less those that left others whom the unit had not let them meet; and in the unit.
    pub met: i64,
    pub merges: i64,
}

#[derive(Clone, Copy, Default)]
struct Steered {
    cycle: u64,
    pc: u64,
    replay: bool,
    runs: P,
}

impl Watch {
    pub fn new(design: &Plan, s: &Shape, seed: u64) -> Watch {
        let slots = s.warps as usize;
        let pipeline = Pipeline::new(design, s, seed);
        Watch { pipeline, steered: vec![Steered::default(); slots], left: vec![None; slots], met: 0, merges: 0 }
    }

    /// The active path of a slot that runs, and its stop pc. Its threads are all in one place, where it was steered to.
    pub fn asked(&mut self, slot: usize) -> (P, Option<u64>) {
        asked(&mut self.pipeline, slot, &mut self.steered[slot], self.left[slot])
    }

    /// Whether decode and issue may have asked for the slot since it was steered.
    pub fn is_ready(&mut self, slot: usize) -> bool {
        ready(&mut self.pipeline, &self.steered[slot])
    }

    /// One cycle of random events; `check` looks at the slot that has an outcome, at its active path and stop pc.
    pub fn random_cycle(&mut self, density: u32, check: impl Fn(&Pipeline, usize, P, Option<u64>)) {
        let (steered, left) = (&mut self.steered, &self.left);
        let times: Vec<Steered> = steered.clone();
        let invent = |p: &mut Pipeline, slot: usize| {
            let (x, stop) = asked(p, slot, &mut steered[slot], left[slot]);
            check(p, slot, x, stop);
            p.invent(slot, x, stop)
        };
        let (told, start) = self.pipeline.random_events(density, |p, slot| ready(p, &times[slot]), invent);
        self.cycle(told, start);
    }

    /// Cycles in phases of different density.
    pub fn random_cycles(&mut self, cycles: u32, check: impl Fn(&Pipeline, usize, P, Option<u64>)) {
        let mut density = 50;
        for k in 0..cycles {
            if k % 64 == 0 {
                density = [4, 20, 50, 80, 100][self.pipeline.random.usize(..5)];
            }
            self.random_cycle(density, &check);
        }
    }

    /// An outcome of a slot, once it was steered and decode and issue have asked for it.
    pub fn tell(&mut self, told: Told) {
        self.settle(told.slot);
        self.asked(told.slot);
        self.cycle(Some(told), None);
    }

    /// Runs until a slot is no longer waiting to be steered.
    pub fn settle(&mut self, slot: usize) {
        while matches!(self.pipeline.slots[slot], Slot::Waits(_)) || !self.is_ready(slot) {
            self.cycle(None, None);
        }
    }

    /// One cycle with an outcome, a start, the pipeline's `wake`, any of them or none.
    pub fn cycle(&mut self, told: Option<Told>, start: Option<Begun>) {
        if !self.pipeline.may_tell(&told) {
            self.cycle(None, None);
        }
        let p = &mut self.pipeline;
        let slots = p.slots.len();
        let (asked, issued) = (p.random.usize(..slots), p.random.usize(..slots));
        p.poke(told, start, asked, issued);
        let (out, cycle) = (p.t.peek(), p.t.cycle());
        let woken = p.wake.take_if(|_| out.wake_ready == 1);
        p.t.step();
        p.pass();

        if let Some(told) = &told {
            let before = p.places(told.slot).len();
            p.move_threads(told, self.steered[told.slot].runs.mask);
            let parts = usize::from(told.taken.mask != 0) + usize::from(told.rest.mask != 0);
            self.met += (before + parts) as i64 - (1 + p.places(told.slot).len()) as i64;
            p.slots[told.slot] = Slot::Waits(cycle);
            self.left[told.slot] = (told.kind == OutcomeKind::Memory && told.rest.mask != 0).then_some(told.rest);
        }
        if let Some(begun) = start.filter(|_| out.start_ready == 1) {
            p.start_threads(begun);
            p.slots[begun.0] = Slot::Waits(cycle);
            self.left[begun.0] = None;
        }
        if let Some(slot) = woken {
            p.wake_threads(slot);
            p.slots[slot] = Slot::Waits(cycle);
            self.left[slot] = None;
        }
        self.merges += out.events.merges.low_u64() as i64;
        if out.steer.valid == 1 {
            let (slot, pc) = (out.steer.slot.low_u64() as usize, out.steer.pc.low_u64());
            assert!(matches!(p.slots[slot], Slot::Waits(_)), "slot {slot} is steered twice");
            let runs = p.places(slot).into_iter().find(|place| place.pc == pc && !place.waits);
            assert!(runs.is_some(), "slot {slot} is steered to {pc}: {:?}", p.places(slot));
            p.slots[slot] = Slot::Runs;
            self.steered[slot] = Steered { cycle, pc, replay: out.steer.replay == 1, runs: P::default() };
        }
        self.after_the_edge(cycle);
    }

    /// The state of every slot, now that the clock has passed `cycle`.
    fn after_the_edge(&mut self, cycle: u64) {
        let p = &mut self.pipeline;
        let out = p.t.peek();
        for slot in 0..p.slots.len() {
            let (live, waits) = (out.live.bit(slot as u32), out.waiting.bit(slot as u32));
            let threads = p.threads[slot].iter().flatten();
            p.slots[slot] = match p.slots[slot] {
                Slot::Waits(_) if waits => {
                    assert!(live && threads.clone().all(|thread| thread.2), "slot {slot}: {:?}", p.threads[slot]);
                    Slot::Parked
                }
                Slot::Waits(_) if threads.clone().count() == 0 && !live => Slot::Idle,
                Slot::Waits(since) => {
                    assert!(cycle - since <= p.most_wait(), "slot {slot} waits since cycle {since}");
                    Slot::Waits(since)
                }
                state => {
                    assert_eq!(live, state != Slot::Idle, "slot {slot}");
                    assert_eq!(waits, state == Slot::Parked, "slot {slot}");
                    state
                }
            };
        }
    }
}

fn ready(p: &mut Pipeline, steered: &Steered) -> bool {
    p.t.cycle() > steered.cycle + u64::from(STEER_TO_DECODE)
}

fn asked(p: &mut Pipeline, slot: usize, steered: &mut Steered, left: Option<P>) -> (P, Option<u64>) {
    p.poke(None, None, slot, slot);
    let out = p.t.peek();
    let mask = out.mask.low_u64();
    let place = p.places(slot).into_iter().find(|place| place.mask & mask != 0);
    let runs = P { mask, ..place.expect("a slot that runs has an active path") };
    let all = place.is_some_and(|place| place.mask & mask == mask && place.pc == steered.pc && !place.waits);
    assert!(all, "slot {slot} runs {mask:#x} at {}: {:x?}", steered.pc, p.places(slot));
    assert!(!steered.replay || left.is_some_and(|left| (left.mask, left.pc) == (mask, steered.pc)), "slot {slot}");
    steered.runs = runs;
    (runs, (out.stop.valid == 1).then(|| out.stop.pc.low_u64()))
}

/// No cover was missed.
pub fn all_hit(hits: &BTreeMap<String, u64>) {
    let never: Vec<_> = hits.iter().filter(|(_, hits)| **hits == 0).map(|(path, _)| path).collect();
    assert!(never.is_empty(), "never happened: {never:?}");
}

/// The lanes of a mask as text, thread 0 leftmost, as in the paper's figure.
pub fn lanes(mask: u64) -> String {
    (0..4).map(|lane| if mask >> lane & 1 == 1 { '1' } else { '0' }).collect()
}

/// The mask of such a text.
pub fn mask(text: &str) -> u64 {
    text.chars().rev().fold(0, |m, bit| 2 * m + u64::from(bit == '1'))
}

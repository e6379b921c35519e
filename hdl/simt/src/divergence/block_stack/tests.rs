//! The unit from its ports, under a pipeline that runs warps of whole blocks: whatever happens in it, threads are where
//! outcomes sent them, each in one warp or waiting; then the papers' examples.

use super::super::{Announced, Outcome, Side};
use super::*;
use crate::divergence::testing::{Unit, all_hit};
use crate::divergence::{Divergence, MixedIn, Start, Wake};
use crate::pipeline::timing::{ISSUE_TO_RESOLVE, STEER_TO_DECODE, STEER_TO_ISSUE};
use crate::reconvergence::Meet;
use crate::reconvergence::Reconvergence;
use crate::shape::{Capt, History};
use crate::testing::cases;
use heddle_hdl::netlist::PropertyKind;
use heddle_sim::Sim;
use std::collections::BTreeMap;

/// Where outcomes sent a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct At {
    pc: u64,
    depth: u64,
}

/// What a slot runs.
#[derive(Clone, Debug)]
struct Running {
    mask: u64,
    at: At,
    since: u64,
    ahead: bool,
    /// It has come to where it may have to wait, and may not go on by itself.
    parked: bool,
    /// Where its [`Segment`] begins, and the control instructions of that which it is past.
    origin: At,
    passed: usize,
}

#[derive(Clone, Debug)]
struct SlotModel {
    runs: Option<Running>,
    /// The static warp of each lane, kept while a write is under way.
    homes: Vec<usize>,
    /// Cycles to the last write, and the threads whose registers await one.
    pending: u32,
    owes: Vec<usize>,
}

/// What all warps of a block do from where they were formed on, as far as one has come yet.
#[derive(Clone, Debug, Default)]
struct Segment {
    begin: Option<At>,
    controls: Vec<Control>,
}

/// A control instruction, and what each thread of the core would do.
#[derive(Clone, Debug)]
struct Control {
    pc: u64,
    kind: OutcomeKind,
    targets: Vec<Option<u64>>,
    call: bool,
    ret: bool,
    meets: Reconvergence<u64>,
}

impl Control {
    /// A warp that is ahead may execute it.
    fn passes(&self) -> bool {
        let Control { kind, call, ret, meets, .. } = self;
        [OutcomeKind::Branch, OutcomeKind::Jump].contains(kind) && meets.uniform == 1 && !call && !ret
    }
}

/// An outcome in plain values.
#[derive(Clone, Copy, Debug)]
struct Told {
    slot: usize,
    kind: OutcomeKind,
    taken: (u64, u64),
    rest: (u64, u64),
    call: bool,
    ret: bool,
    meets: Reconvergence<u64>,
}

/// An instruction that has its outcome in the next cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Resolving {
    slot: usize,
    pc: u64,
    call: bool,
    ret: bool,
}

impl Resolving {
    fn of(slot: usize, control: &Control) -> Resolving {
        let Control { pc, call, ret, .. } = *control;
        Resolving { slot, pc, call, ret }
    }
}

/// A block that is being started.
#[derive(Clone, Copy, Debug)]
struct Filling {
    slot: usize,
    last: usize,
    last_mask: u64,
    pc: u64,
}

struct Pipeline {
    t: Unit,
    s: Shape,
    random: fastrand::Rng,
    /// Slots of a block.
    group: usize,
    slots: Vec<SlotModel>,
    /// Lane by lane, the threads of all static warps.
    threads: Vec<Option<At>>,
    segments: Vec<Segment>,
    /// By block: what those that are ahead do, by where they went.
    futures: Vec<BTreeMap<At, Vec<Control>>>,
    filling: Option<Filling>,
    /// Cycles since a block could have gone on.
    idle: Vec<u32>,
    /// `hold` in the last cycles, a bit each, the last lowest.
    held: u32,
    refused: Option<Refusal>,
}

/// Why the core stops, and the instruction and the warp that it says it was.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Refusal {
    cause: FaultCause,
    slot: u64,
    pc: u64,
    threads: String,
}

fn elsewhere() -> Reconvergence<u64> {
    Reconvergence::new(Meet::At(0), false, None)
}

fn meets_at(pc: u64) -> Reconvergence<u64> {
    Reconvergence::new(Meet::At(pc as u32), false, None)
}

/// Where a function returns to.
fn returns() -> Reconvergence<u64> {
    Reconvergence::new(Meet::Return, false, None)
}

fn lanes_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |lane| mask >> lane & 1 == 1)
}

impl Pipeline {
    fn new(s: &Shape, group: u32, seed: u64) -> Pipeline {
        let Shape { lanes, warps, compaction, .. } = *s;
        println!("{lanes} lanes, {warps} warps, {group} a block, {}, seed {seed}", compaction.name());
        let mut t = Sim::new(&block_stack(s).check().unwrap());
        t.reset();
        let slot = SlotModel { runs: None, homes: vec![0; s.lanes as usize], pending: 0, owes: vec![] };
        Pipeline {
            t,
            s: s.clone(),
            random: fastrand::Rng::with_seed(seed),
            group: group as usize,
            slots: vec![slot; s.warps as usize],
            threads: vec![None; s.threads() as usize],
            segments: vec![Segment::default(); (s.warps / group) as usize],
            futures: vec![BTreeMap::new(); (s.warps / group) as usize],
            filling: None,
            idle: vec![0; (s.warps / group) as usize],
            held: 0,
            refused: None,
        }
    }

    fn thread(&self, lane: usize, warp: usize) -> usize {
        lane * self.s.warps as usize + warp
    }

    fn slots_of(&self, block: usize) -> std::ops::Range<usize> {
        block * self.group..(block + 1) * self.group
    }

    /// The threads of a slot.
    fn members(&self, slot: usize) -> Vec<usize> {
        let SlotModel { runs, homes, .. } = &self.slots[slot];
        let mask = runs.as_ref().map_or(0, |runs| runs.mask);
        lanes_of(mask).map(|lane| self.thread(lane, homes[lane])).collect()
    }

    fn is_waiting(&self, thread: usize) -> bool {
        self.threads[thread].is_some() && (0..self.slots.len()).all(|slot| !self.members(slot).contains(&thread))
    }

    fn is_filling(&self, block: usize) -> bool {
        self.filling.is_some_and(|filling| filling.slot / self.group == block)
    }

    /// No other warp of its block runs, or is to be formed.
    fn is_lone(&self, slot: usize) -> bool {
        let block = slot / self.group;
        let runs = |other: usize| other != slot && self.slots[other].runs.is_some();
        !self.s.predicts() && !self.is_filling(block) && !self.slots_of(block).any(runs)
    }

    fn runs_with_block(&self, slot: usize) -> bool {
        self.slots[slot].runs.as_ref().is_some_and(|runs| !runs.ahead)
    }

    fn poke(&mut self, told: Option<Told>, starts: bool, asked: usize, written: usize, resolving: Option<Resolving>) {
        let is_announced = resolving.is_some();
        let resolving = resolving.unwrap_or_default();
        let side = |(pc, mask): (u64, u64)| Side { mask: mask.into(), pc: pc.into() };
        let none = Told {
            slot: 0,
            kind: OutcomeKind::Branch,
            taken: (0, 0),
            rest: (0, 0),
            call: false,
            ret: false,
            meets: elsewhere(),
        };
        let o = told.unwrap_or(none);
        let begun = self.filling.filter(|_| starts);
        let first = begun.unwrap_or(Filling { slot: 0, last: 0, last_mask: 0, pc: 0 });
        let all = u64::MAX >> (64 - self.s.lanes);
        let bits = |bits: &mut dyn Iterator<Item = bool>| {
            Bits::from(bits.enumerate().fold(0u64, |word, (k, bit)| word | u64::from(bit) << k))
        };
        let slot_bits = self.s.warp_bits();
        let homes = self.s.homes_bits().map(|width| {
            let mut limbs = vec![0u64; width.div_ceil(64) as usize];
            for (lane, &home) in self.slots[o.slot].homes.iter().enumerate() {
                for k in (0..slot_bits as usize).filter(|k| home >> k & 1 == 1) {
                    let bit = lane * slot_bits as usize + k;
                    limbs[bit / 64] |= 1 << (bit % 64);
                }
            }
            Bits::from_limbs(&limbs)
        });
        let filling = bits(&mut (0..self.slots.len()).map(|slot| self.is_filling(slot / self.group)));
        let quiet = bits(&mut self.slots.iter().map(|slot| slot.pending == 0));
        self.t.poke(UnitIn {
            start: Start {
                valid: begun.is_some().into(),
                slot: first.slot.into(),
                pc: first.pc.into(),
                mask: if first.slot == first.last { first.last_mask } else { all }.into(),
            },
            wake: Wake { valid: false.into(), slot: 0u32.into() },
            decode_slot: asked.into(),
            issue_slot: asked.into(),
            outcome: Outcome {
                valid: told.is_some().into(),
                slot: o.slot.into(),
                kind: o.kind.into(),
                taken: side(o.taken),
                rest: side(o.rest),
                call: o.call.into(),
                ret: o.ret.into(),
                meets: Some(o.meets.map("", &mut |_, v: u64| v.into())),
                homes,
            },
            sequence: None,
            announced: Some(Announced {
                valid: is_announced.into(),
                slot: resolving.slot.into(),
                call: resolving.call.into(),
                ret: resolving.ret.into(),
            }),
            hints: None,
            unissued: None,
            mixed: Some(MixedIn {
                restart: false.into(),
                group: (self.group - 1).into(),
                filling,
                quiet,
                written: written.into(),
                resolving: resolving.slot.into(),
                pc: resolving.pc.into(),
            }),
        });
    }

    /// An instruction whose write comes after some cycles.
    fn issues(&mut self, slot: usize, cycles: u32) {
        let members = self.members(slot);
        let SlotModel { pending, owes, .. } = &mut self.slots[slot];
        if *pending == 0 {
            owes.clear();
        }
        owes.extend(members);
        *pending = cycles.max(*pending);
    }

    /// What the unit says of a slot: its warp's lanes and their static warps, its stop pc, and whether it is ahead.
    fn asks(&mut self, slot: usize) -> (u64, Vec<usize>, Option<u64>, bool) {
        self.poke(None, false, slot, slot, None);
        let out = self.t.peek();
        let block = out.more.mixed.unwrap();
        let stop = (out.stop.valid == 1).then(|| out.stop.pc.low_u64());
        let ahead = block.ahead.is_some_and(|ahead| ahead.bit(slot as u32));
        (out.mask.low_u64(), self.unpack(block.homes), stop, ahead)
    }

    fn unpack(&self, homes: Option<Bits>) -> Vec<usize> {
        let bits = self.s.warp_bits();
        let home = |lane: u32| homes.as_ref().map_or(0, |homes| homes.extract(lane * bits, bits).low_u64() as usize);
        (0..self.s.lanes).map(home).collect()
    }

    /// One cycle with an outcome, or none; `resolving` is what has its outcome in the next one. Its target, if the unit
    /// says one.
    fn cycle(&mut self, told: Option<Told>, resolving: Option<Resolving>) -> Option<u64> {
        let written = (0..self.slots.len()).find(|&slot| self.slots[slot].pending == 1).unwrap_or(0);
        self.poke(told, true, 0, written, resolving);
        let (out, now) = (self.t.peek(), self.t.cycle());
        let block = out.more.mixed.unwrap();
        if self.slots[written].pending > 0 && self.s.mixes() {
            let homes = self.unpack(block.written_homes);
            assert_eq!(homes, self.slots[written].homes, "slot {written} has other threads while they await a write");
        }
        if let Some(refused) = out.more.refused.filter(|refused| refused.valid == 1) {
            let Culprit { slot, pc, mask, homes } = refused.because.unwrap();
            let threads = self.shown(mask.low_u64(), &self.unpack(homes));
            let cause = FaultCause::from_bits(&refused.cause).expect("a cause");
            let (slot, pc) = (slot.low_u64(), pc.low_u64());
            self.refused = Some(Refusal { cause, slot, pc, threads });
        }
        let steered = (out.steer.valid == 1).then(|| (out.steer.slot.low_u64() as usize, out.steer.pc.low_u64()));
        let jump = (block.jump.valid == 1).then(|| block.jump.pc.low_u64());
        let starts = self.filling.is_some() && out.start_ready == 1;
        let resumed = (self.s.passes() && self.t.register("resumed_valid") == 1)
            .then(|| self.t.register("resumed_slot").low_u64() as usize);
        self.held = self.held << 1 | u32::from(out.hold == 1);
        self.t.step();
        if self.refused.is_some() {
            return jump;
        }

        if let Some(told) = told {
            let goes_on = steered.filter(|&(slot, _)| slot == told.slot).map(|(_, pc)| pc);
            assert_eq!(resumed, None, "two outcomes at once");
            self.acts(told, goes_on, now);
        } else if let Some(slot) = resumed {
            let goes_on = steered.filter(|&(other, _)| other == slot).map(|(_, pc)| pc);
            self.resumes(slot, goes_on, now);
        } else if let Some(filling) = self.filling.filter(|_| starts) {
            assert_eq!(steered, Some((filling.slot, filling.pc)), "a start is a steering");
            self.starts(filling, now);
        } else if let Some((slot, pc)) = steered {
            self.forms(slot, pc, now);
        }
        self.slots.iter_mut().for_each(|slot| slot.pending = slot.pending.saturating_sub(1));
        self.after_the_edge();
        jump
    }

    /// An outcome: its threads move, and go on at `goes_on` or wait.
    fn acts(&mut self, told: Told, goes_on: Option<u64>, now: u64) {
        let before = self.members(told.slot);
        let lone = self.is_lone(told.slot);
        let was = self.slots[told.slot].runs.take().expect("a warp that runs");
        let Running { mask, at, passed, origin, ahead: was_ahead, parked, .. } = was;
        assert!(!parked, "{told:?} of a warp that is parked");
        let homes = self.slots[told.slot].homes.clone();
        let deeper = if told.ret { at.depth.saturating_sub(1) } else { at.depth + u64::from(told.call) };
        for (lane, &home) in homes.iter().enumerate() {
            let thread = self.thread(lane, home);
            let is_in = |(_, mask): (u64, u64)| mask >> lane & 1 == 1;
            if before.contains(&thread) {
                let taken = is_in(told.taken).then_some(At { pc: told.taken.0, depth: deeper });
                self.threads[thread] = taken.or(is_in(told.rest).then_some(At { pc: told.rest.0, ..at }));
            }
        }
        let Some(pc) = goes_on else {
            if was_ahead {
                let to = if told.taken.1 != 0 { told.taken.0 } else { told.rest.0 };
                self.runs(told.slot, mask, to, now, true);
                let runs = self.slots[told.slot].runs.as_mut().unwrap();
                (runs.origin, runs.passed, runs.parked) = (origin, passed + 1, true);
            }
            return;
        };
        if was_ahead {
            self.runs(told.slot, mask, pc, now, true);
            let runs = self.slots[told.slot].runs.as_mut().unwrap();
            (runs.origin, runs.passed) = (origin, passed + 1);
            return;
        }
        let (mask, same_homes, _, ahead) = self.asks(told.slot);
        assert!(lanes_of(mask).all(|lane| same_homes[lane] == homes[lane]), "slot {} has other threads", told.slot);
        let is_control = told.kind == OutcomeKind::Branch || told.kind == OutcomeKind::Jump;
        let splits = told.taken.1 != 0 && told.rest.1 != 0;
        let always = match self.s.compaction {
            Compaction::Every => true,
            Compaction::Always => told.kind == OutcomeKind::Branch,
            _ => false,
        };
        let may_part = is_control && (told.meets.uniform == 0 || splits || always);
        assert_eq!(ahead, may_part && !lone, "{told:?} goes on");
        assert!(!ahead || (told.kind == OutcomeKind::Branch && self.s.predicts()), "{told:?} goes ahead");
        self.runs(told.slot, mask, pc, now, ahead);
        let now_run = self.members(told.slot);
        assert!(now_run.iter().all(|thread| before.contains(thread)), "{told:?}");
        assert!(ahead || now_run == before, "{told:?}: some threads do not go on");
        let runs = self.slots[told.slot].runs.as_mut().unwrap();
        if !ahead {
            (runs.origin, runs.passed) = (origin, passed + usize::from(told.kind != OutcomeKind::Arrived));
        }
    }

    /// A warp that was parked goes on, or has arrived where it was.
    fn resumes(&mut self, slot: usize, goes_on: Option<u64>, now: u64) {
        let Running { mask, at, origin, passed, ahead, parked, .. } = self.slots[slot].runs.take().expect("it runs");
        assert!(parked && !ahead, "slot {slot} goes on from where it was not parked");
        if let Some(pc) = goes_on {
            assert_eq!(pc, at.pc, "slot {slot}");
            self.runs(slot, mask, pc, now, false);
            let runs = self.slots[slot].runs.as_mut().unwrap();
            (runs.origin, runs.passed) = (origin, passed);
        }
    }

    /// A slot runs these lanes, all of which outcomes sent to one place.
    fn runs(&mut self, slot: usize, mask: u64, pc: u64, since: u64, ahead: bool) {
        assert_ne!(mask, 0, "slot {slot} has no threads");
        let first = lanes_of(mask).next().unwrap();
        let at = self.threads[self.thread(first, self.slots[slot].homes[first])].expect("a live thread");
        assert_eq!(at.pc, pc, "slot {slot} is steered elsewhere");
        self.slots[slot].runs = Some(Running { mask, at, since, ahead, parked: false, origin: at, passed: 0 });
        for thread in self.members(slot) {
            assert_eq!(self.threads[thread], Some(at), "slot {slot}, {:?}", self.slots[slot]);
        }
    }

    fn starts(&mut self, filling: Filling, now: u64) {
        let Filling { slot, last, last_mask, pc } = filling;
        let mask = if slot == last { last_mask } else { u64::MAX >> (64 - self.s.lanes) };
        for lane in lanes_of(mask) {
            let thread = self.thread(lane, slot);
            self.threads[thread] = Some(At { pc, depth: 0 });
        }
        self.slots[slot].homes.fill(slot);
        self.runs(slot, mask, pc, now, false);
        self.joins(slot);
        self.filling = (slot != last).then_some(Filling { slot: slot + 1, ..filling });
    }

    /// A new warp, of threads that wait.
    fn forms(&mut self, slot: usize, pc: u64, now: u64) {
        assert!(self.slots[slot].runs.is_none(), "slot {slot} is formed anew while it runs");
        let block = slot / self.group;
        assert!(!self.is_filling(block), "a warp is formed of a block that is not complete");
        let (mask, homes, _, ahead) = self.asks(slot);
        let own = vec![slot; self.s.lanes as usize];
        let stays = homes == own && self.slots[slot].homes == own;
        assert!(stays || self.slots[slot].pending == 0, "slot {slot} is formed anew while it awaits a write");
        assert!(!ahead, "slot {slot} is new");
        for lane in lanes_of(mask) {
            assert_eq!(homes[lane] / self.group, block, "a thread leaves its block");
            assert!(self.is_waiting(self.thread(lane, homes[lane])), "lane {lane} of slot {slot} runs twice");
        }
        self.slots[slot].homes = homes;
        self.runs(slot, mask, pc, now, false);
        self.joins(slot);
        let members = self.members(slot);
        let owing = self.slots.iter().enumerate().filter(|(other, theirs)| *other != slot && theirs.pending > 0);
        for (_, SlotModel { owes, .. }) in owing {
            assert!(!members.iter().any(|thread| owes.contains(thread)), "slot {slot} runs threads that await a write");
        }
    }

    /// A slot's warp is one of those that its block runs now, and so is what it did when it was ahead.
    fn joins(&mut self, slot: usize) {
        let block = slot / self.group;
        let origin = self.slots[slot].runs.as_ref().unwrap().origin;
        let Segment { begin, controls } = &mut self.segments[block];
        assert_eq!(*begin.get_or_insert(origin), origin, "slot {slot} is elsewhere than its block");
        let done = self.futures[block].get(&origin).into_iter().flatten();
        controls.extend(done.skip(controls.len()).cloned());
    }

    fn after_the_edge(&mut self) {
        let out = self.t.peek();
        let ahead = out.more.mixed.unwrap().ahead.unwrap_or(Bits::ZERO);
        let released: Vec<usize> = (0..self.slots.len())
            .filter(|&slot| !ahead.bit(slot as u32))
            .filter(|&slot| self.slots[slot].runs.as_ref().is_some_and(|runs| runs.ahead))
            .collect();
        for slot in released {
            self.slots[slot].runs.as_mut().unwrap().ahead = false;
            self.joins(slot);
        }
        for (block, futures) in self.futures.iter_mut().enumerate() {
            let of_block = self.slots[block * self.group..][..self.group].iter();
            let ahead: Vec<At> = of_block
                .filter_map(|slot| slot.runs.as_ref())
                .filter(|runs| runs.ahead)
                .map(|runs| runs.origin)
                .collect();
            futures.retain(|origin, _| ahead.contains(origin));
        }
        let live = self.t.register("live_threads");
        for (thread, at) in self.threads.iter().enumerate() {
            assert_eq!(live.bit(thread as u32), at.is_some(), "thread {thread}");
        }
        let forming =
            (self.t.register("formed_valid") == 1).then(|| self.t.register("formed_block").low_u64() as usize);
        let patience = 400 + 40 * self.segments.len() as u32 * (self.s.warps + block_levels(&self.s).min(16));
        for block in 0..self.segments.len() {
            let slots = self.slots_of(block);
            let runs = slots.clone().any(|slot| self.runs_with_block(slot));
            if !runs && !self.is_filling(block) && forming.is_none_or(|slot| slot / self.group != block) {
                self.segments[block] = Segment::default();
            }
            let has_threads = (0..self.threads.len())
                .any(|thread| self.threads[thread].is_some() && slots.contains(&(thread % self.s.warps as usize)));
            let quiet = slots.clone().all(|slot| self.slots[slot].pending == 0);
            let must_go_on = has_threads && !runs && quiet && !self.is_filling(block);
            self.idle[block] = if must_go_on { self.idle[block] + 1 } else { 0 };
            assert!(self.idle[block] < patience, "block {block} waits for ever");
        }
    }

    /// What a slot does next: a control instruction of its block, which may be new, or it comes to its stop pc before
    /// that.
    fn next(
        &mut self,
        slot: usize,
        stop: Option<u64>,
        invent: impl FnOnce(&mut Pipeline, usize, At) -> Control,
    ) -> Control {
        let block = slot / self.group;
        let Running { at, passed, ahead, origin, .. } = self.slots[slot].runs.clone().unwrap();
        let known = match ahead {
            true => self.futures[block].entry(origin).or_default(),
            false => &mut self.segments[block].controls,
        };
        let control = known.get(passed).cloned().unwrap_or_else(|| {
            let control = invent(self, slot, at);
            let known =
                if ahead { self.futures[block].get_mut(&origin).unwrap() } else { &mut self.segments[block].controls };
            known.push(control.clone());
            control
        });
        match stop.filter(|&stop| at.pc < stop && stop <= control.pc) {
            Some(stop) => {
                let targets = vec![Some(stop); self.threads.len()];
                let uniform = Reconvergence { uniform: 1, ..elsewhere() };
                Control { pc: stop - 1, kind: OutcomeKind::Arrived, targets, call: false, ret: false, meets: uniform }
            }
            None => control,
        }
    }

    /// A control instruction's outcome for a slot; `jump` is the target that the unit has said.
    fn outcome(&self, slot: usize, control: &Control, jump: Option<u64>) -> Told {
        let Control { pc, kind, ref targets, call, ret, meets } = *control;
        let SlotModel { runs, homes, .. } = &self.slots[slot];
        let mask = runs.as_ref().unwrap().mask;
        let goes = |lane: usize| targets[self.thread(lane, homes[lane])];
        let bits =
            |of: &dyn Fn(usize) -> bool| lanes_of(mask).filter(|&lane| of(lane)).fold(0, |bits, lane| bits | 1 << lane);
        let first = lanes_of(mask).next().and_then(goes);
        let target = if kind == OutcomeKind::Jump { jump.or(first) } else { lanes_of(mask).find_map(goes) };
        let taken = bits(&|lane| target.is_some() && goes(lane) == target);
        let last = (1 << self.s.pc_bits()) - 1;
        let stays = if kind == OutcomeKind::Branch { (pc + 1) & last } else { pc };
        let rest = if kind == OutcomeKind::Exit { 0 } else { mask & !taken };
        // A branch that nobody takes has a target all the same.
        let target = target.or(targets.iter().copied().flatten().next()).unwrap_or(stays);
        Told { slot, kind, taken: (target, taken), rest: (stays, rest), call, ret, meets }
    }

    fn count_covers(&mut self, hits: &mut BTreeMap<String, u64>) {
        let directory = self.t.simulation().directory().clone();
        let covers = (0..directory.properties.len()).filter(|&k| directory.property_kind(k) == PropertyKind::Cover);
        for k in covers {
            let path = &directory.properties[k].path;
            *hits.entry(path.clone()).or_default() += self.t.cover_hits(path);
        }
    }
}

/// Random programs.
impl Pipeline {
    fn random_cycles(&mut self, cycles: u32, begins: bool, invent: impl Fn(&mut Pipeline, usize, At) -> Control) {
        let (mut density, mut coming, mut jump) = (50, None::<(usize, Control)>, None);
        for cycle in 0..cycles {
            if cycle % 64 == 0 {
                density = [4, 20, 50, 80, 100][self.random.usize(..5)];
            }
            if begins && self.filling.is_none() && self.random.u8(..8) == 0 {
                self.begin_any();
            }
            for slot in 0..self.slots.len() {
                let may_issue =
                    |runs: &Running| !runs.parked && self.t.cycle() >= runs.since + u64::from(STEER_TO_ISSUE);
                if self.slots[slot].runs.as_ref().is_some_and(may_issue) && self.random.u8(..8) == 0 {
                    let cycles = self.random.u32(1..20);
                    self.issues(slot, cycles);
                }
            }
            let told = coming.take().map(|(slot, control)| self.outcome(slot, &control, jump));
            // What `hold` kept from being issued is not resolved when it would be.
            let kept = self.held >> (ISSUE_TO_RESOLVE - 1) & 1 == 1;
            if !kept && self.random.u32(..100) < density {
                coming = self.next_of_any(told.map(|told| told.slot), &invent);
            }
            let resolving = coming.as_ref().map(|(slot, control)| Resolving::of(*slot, control));
            jump = self.cycle(told, resolving);
            if self.refused.is_some() {
                return;
            }
        }
    }

    /// What comes next of a warp that may have an outcome.
    fn next_of_any(
        &mut self,
        but: Option<usize>,
        invent: impl Fn(&mut Pipeline, usize, At) -> Control,
    ) -> Option<(usize, Control)> {
        let now = self.t.cycle();
        let asked = |runs: &Running| now > runs.since + u64::from(STEER_TO_DECODE);
        let may_pass = |runs: &Running| !runs.ahead || runs.passed + 1 < self.s.slack as usize;
        let may = |runs: &Running| !runs.parked && asked(runs) && may_pass(runs);
        let ready = |slot: &usize| self.slots[*slot].runs.as_ref().is_some_and(may);
        let ready: Vec<usize> = (0..self.slots.len()).filter(|slot| Some(*slot) != but).filter(ready).collect();
        let slot = *ready.get(self.random.usize(..ready.len().max(1)))?;
        let stop = self.asks(slot).2;
        if !self.runs_with_block(slot) {
            let control = self.next(slot, stop, invent);
            return control.passes().then_some((slot, control));
        }
        if self.random.u8(..50) == 0 {
            let at = self.slots[slot].runs.as_ref().unwrap().at;
            return Some((slot, exit(self, at.pc)));
        }
        Some((slot, self.next(slot, stop, invent)))
    }

    /// Begins to start a block where none is.
    fn begin_any(&mut self) {
        self.poke(None, false, 0, 0, None);
        let live = self.t.peek().live;
        let is_free = |slot: usize| !live.bit(slot as u32) && self.slots[slot].pending == 0;
        let free: Vec<usize> = (0..self.segments.len()).filter(|&block| self.slots_of(block).all(is_free)).collect();
        if free.is_empty() {
            return;
        }
        let slot = free[self.random.usize(..free.len())] * self.group;
        let last = slot + self.random.usize(self.group / 2..self.group);
        let all = u64::MAX >> (64 - self.s.lanes);
        let last_mask = Some(self.random.u64(..) & all).filter(|mask| *mask != 0).unwrap_or(all);
        self.filling = Some(Filling { slot, last, last_mask, pc: self.random.u64(..12) });
    }
}

fn exit(p: &Pipeline, pc: u64) -> Control {
    let targets = vec![None; p.threads.len()];
    Control { pc, kind: OutcomeKind::Exit, targets, call: false, ret: false, meets: elsewhere() }
}

/// A control instruction for all warps of a slot's block.
fn any_control(p: &mut Pipeline, slot: usize, at: At) -> Control {
    let block = slot / p.group;
    let run_now: Vec<usize> =
        p.slots_of(block).filter(|&slot| p.runs_with_block(slot)).flat_map(|slot| p.members(slot)).collect();
    let of_block = |thread: &usize| thread % p.s.warps as usize / p.group == block && p.threads[*thread].is_some();
    let all_run = (0..p.threads.len()).filter(of_block).all(|thread| run_now.contains(&thread));
    let (r, count, last) = (&mut p.random, p.threads.len(), (1 << p.s.pc_bits()) - 1);
    let pc = (at.pc + r.u64(..4)).min(last);
    let kind = match r.u32(..100) {
        0..3 => OutcomeKind::Exit,
        3..12 if all_run => OutcomeKind::Wait,
        3..25 => OutcomeKind::Jump,
        _ => OutcomeKind::Branch,
    };
    // A block comes to a jump that may diverge once only before it waits, since the table says the same each time.
    let uniform = match kind {
        OutcomeKind::Jump => pc % 2 == 0,
        _ => kind != OutcomeKind::Wait && r.u8(..3) == 0,
    };
    let (target, other, dense) = (r.u64(..14), r.u64(..14), r.u8(..=4));
    let goes = |thread: u8| if uniform { dense > 1 } else { thread < dense };
    let targets = (0..count).map(|_| match (kind, goes(r.u8(..4))) {
        (OutcomeKind::Exit, _) | (OutcomeKind::Branch, false) => None,
        (OutcomeKind::Wait, _) => Some((pc + 1) & last),
        (OutcomeKind::Jump, true) if !uniform => Some(other),
        _ => Some(target),
    });
    let targets = targets.collect();
    let call = kind == OutcomeKind::Jump && at.depth < 3 && r.u8(..3) == 0;
    let ret = kind == OutcomeKind::Jump && !call && r.bool();
    // Few places, so that branches meet where others do.
    let meet = if r.u8(..4) == 0 { Meet::Return } else { Meet::At(r.u32(10..13)) };
    let likely = r.bool().then(|| r.u32(7..13));
    Control { pc, kind, targets, call, ret, meets: Reconvergence::new(meet, uniform, likely) }
}

fn shape(lanes: u32, warps: u32) -> Shape {
    Shape::new(lanes, warps).with_divergence(Divergence::BLOCK_STACK)
}

/// Covers of what stops the core: other tests.
const REFUSED: [&str; 3] = ["not_uniform", "part_of_a_block_waits", "no_level_is_left"];

#[test]
fn threads_are_where_outcomes_sent_them() {
    let mut covers = BTreeMap::new();
    let mut seed = 0;
    for (lanes, warps, groups) in
        [(1, 1, &[1][..]), (1, 4, &[4]), (4, 1, &[1]), (2, 2, &[1, 2]), (4, 4, &[2, 4]), (8, 16, &[4]), (4, 32, &[32])]
    {
        for &(_, compaction) in Compaction::ALL {
            for (likely, history, slack) in [
                (false, History::Latest, 1),
                (true, History::Counter, 1),
                (false, History::Latest, 2),
                (true, History::Latest, 4),
            ] {
                let predicts = compaction == Compaction::Predict;
                if slack > 1 && !predicts {
                    continue;
                }
                let capt = if predicts { Capt { entries: 4, history } } else { Capt::DEFAULT };
                let s =
                    Shape { likely, compaction, capt, slack, program: 256, levels: Some(127), ..shape(lanes, warps) };
                for &group in groups {
                    seed += 1;
                    let mut p = Pipeline::new(&s, group, seed);
                    p.random_cycles(cases(if s.threads() > 16 { 1000 } else { 3000 }), true, any_control);
                    p.random_cycles(1000, false, |p, _, at| exit(p, at.pc));
                    assert_eq!(p.refused, None);
                    assert!(p.threads.iter().all(Option::is_none), "some threads were lost");
                    p.count_covers(&mut covers);
                }
            }
        }
    }
    covers.retain(|path, _| !REFUSED.iter().any(|refused| path.ends_with(refused)));
    all_hit(&covers);
}

/// The papers' examples.
impl Pipeline {
    /// A block of all slots that begins at 0, with these threads of its last warp.
    fn begun(s: &Shape, warps: usize) -> Pipeline {
        let mut p = Pipeline::new(s, s.warps, 1);
        p.filling = Some(Filling { slot: 0, last: warps - 1, last_mask: u64::MAX >> (64 - s.lanes), pc: 0 });
        p.settle();
        p
    }

    /// Runs until nothing more comes of itself.
    fn settle(&mut self) {
        for _ in 0..40 {
            self.cycle(None, None);
        }
    }

    /// A warp's threads, lane by lane, numbered from 0 static warp after static warp.
    fn shown(&self, mask: u64, homes: &[usize]) -> String {
        let lane = |lane: u32| {
            let number = homes[lane as usize] as u32 * self.s.lanes + lane;
            if mask >> lane & 1 == 1 { char::from_digit(number, 36).unwrap() } else { 'x' }
        };
        (0..self.s.lanes).map(lane).collect()
    }

    /// The warps that run: where, and their threads.
    fn shows(&self) -> Vec<(u64, String)> {
        let slots = self.slots.iter().filter_map(|slot| slot.runs.as_ref().map(|runs| (slot, runs)));
        slots.map(|(slot, runs)| (runs.at.pc, self.shown(runs.mask, &slot.homes))).collect()
    }

    /// The core stops for this cause, and says that it was this instruction of these threads.
    fn assert_refused(&self, cause: FaultCause, (slot, pc, threads): (u64, u64, &str)) {
        assert_eq!(self.refused, Some(Refusal { cause, slot, pc, threads: threads.into() }));
    }

    fn assert_shows_at(&self, warps: &[(u64, &str)]) {
        assert_eq!(self.shows(), warps.iter().map(|&(pc, warp)| (pc, warp.to_string())).collect::<Vec<_>>());
    }

    fn assert_shows(&self, pc: u64, warps: &[&str]) {
        assert_eq!(self.shows(), warps.iter().map(|warp| (pc, warp.to_string())).collect::<Vec<_>>());
    }

    /// A control instruction where these threads, and no others, go to a target.
    fn control(&self, kind: OutcomeKind, pc: u64, target: u64, who: &str, meets: Reconvergence<u64>) -> Control {
        let number =
            |thread: usize| (thread % self.s.warps as usize) as u32 * self.s.lanes + thread as u32 / self.s.warps;
        let goes = |thread: usize| who.contains(char::from_digit(number(thread), 16).unwrap());
        let targets = (0..self.threads.len()).map(|thread| goes(thread).then_some(target)).collect();
        Control { pc, kind, targets, call: false, ret: false, meets }
    }

    /// A slot comes to a control instruction; whatever comes of it.
    fn tell(&mut self, slot: usize, control: &Control) {
        let jump = self.cycle(None, Some(Resolving::of(slot, control)));
        let told = self.outcome(slot, control, jump);
        self.cycle(Some(told), None);
        self.settle();
    }

    /// All warps that run come to it.
    fn tell_all(&mut self, control: &Control) {
        let slots: Vec<usize> = (0..self.slots.len()).filter(|&slot| self.runs_with_block(slot)).collect();
        slots.into_iter().for_each(|slot| self.tell(slot, control));
    }

    /// A slot comes to a control instruction: in which cycles after its outcome a warp is steered.
    fn steered_after(&mut self, slot: usize, control: &Control) -> Vec<usize> {
        let jump = self.cycle(None, Some(Resolving::of(slot, control)));
        let told = self.outcome(slot, control, jump);
        let mut running = self.shows().len() - 1;
        let mut outcome = Some(told);
        let mut steered = Vec::new();
        for cycle in 0..40 {
            self.cycle(outcome.take(), None);
            if self.shows().len() > running {
                steered.push(cycle);
                running += 1;
            }
        }
        steered
    }

    /// The instruction before a stop pc.
    fn arrival(&self, stop: u64) -> Control {
        self.control(OutcomeKind::Arrived, stop - 1, stop, EVERYBODY, meets_at(0))
    }

    /// All warps that run call a function.
    fn call(&mut self, pc: u64, function: u64) {
        let jump =
            self.control(OutcomeKind::Jump, pc, function, EVERYBODY, Reconvergence { uniform: 1, ..meets_at(pc + 1) });
        self.tell_all(&Control { call: true, ..jump });
    }

    /// All warps that run return.
    fn ret(&mut self, pc: u64, to: u64) {
        let jump = self.control(OutcomeKind::Jump, pc, to, EVERYBODY, returns());
        self.tell_all(&Control { ret: true, ..jump });
    }

    /// All that run come to this stop pc.
    fn arrive(&mut self, stop: u64) {
        let slots: Vec<usize> = (0..self.slots.len()).filter(|&slot| self.runs_with_block(slot)).collect();
        assert!(slots.iter().all(|&slot| self.asks(slot).2 == Some(stop)), "all stop at {stop}");
        let control = self.arrival(stop);
        slots.into_iter().for_each(|slot| self.tell(slot, &control));
    }
}

const EVERYBODY: &str = "0123456789abcdef";

/// Where the examples' blocks lie.
const B: u64 = 10;
const C: u64 = 20;
const D: u64 = 30;
const E: u64 = 40;
const F: u64 = 50;

/// `thread-block-compaction.txt` Figure 7 and Example 1, threads numbered from 0: 0, 5 and 6 run C, as one warp; the
/// others B, as two. In D the static warps are back.
#[test]
fn figure_7() {
    for order in [[0, 1], [1, 0]] {
        let mut p = Pipeline::begun(&shape(4, 2), 2);
        p.assert_shows(0, &["0123", "4567"]);
        let branch = p.control(OutcomeKind::Branch, B - 1, C, "056", meets_at(D));
        p.tell(order[0], &branch);
        assert_eq!(p.shows().len(), 1, "the first warp waits for the other");
        p.tell(order[1], &branch);
        p.assert_shows(C, &["056x"]);
        p.arrive(D);
        p.assert_shows(B, &["4123", "xxx7"]);
        p.arrive(D);
        p.assert_shows(D, &["0123", "4567"]);
    }
    let mut p = Pipeline::begun(&Shape { compaction: Compaction::Off, ..shape(4, 2) }, 2);
    let branch = p.control(OutcomeKind::Branch, B - 1, C, "056", meets_at(D));
    p.tell_all(&branch);
    p.assert_shows(C, &["0xxx", "x56x"]);
}

/// §3.3: warps come to the branch in the order W2, W3, W1; it is all the same.
#[test]
fn warps_arrive_in_any_order() {
    let mut p = Pipeline::begun(&shape(4, 4), 3);
    let branch = p.control(OutcomeKind::Branch, B - 1, C, "04a", meets_at(D));
    for slot in [1, 2, 0] {
        p.tell(slot, &branch);
    }
    p.assert_shows(C, &["0xax", "4xxx"]);
    p.arrive(D);
    p.assert_shows(B, &["8123", "x567", "x9xb"]);
}

/// A warp is not formed before the writes of all of the block have come.
#[test]
fn writes_are_waited_for() {
    let mut p = Pipeline::begun(&shape(4, 2), 2);
    let branch = p.control(OutcomeKind::Branch, B - 1, C, "056", meets_at(D));
    p.tell(0, &branch);
    p.issues(1, 70);
    p.tell(1, &branch);
    assert_eq!(p.shows(), vec![]);
    p.settle();
    p.assert_shows(C, &["056x"]);
}

/// The cycles from the outcome of the last warp that arrives to the steering of each new one.
#[test]
fn how_long_going_on_takes() {
    for compaction in [Compaction::SkipUniform, Compaction::Off, Compaction::Predict] {
        let mut p = Pipeline::begun(&Shape { compaction, ..shape(4, 2) }, 2);
        let branch = p.control(OutcomeKind::Branch, B - 1, C, "05", meets_at(D));
        p.tell(0, &branch);
        let off = compaction == Compaction::Off;
        assert_eq!(p.steered_after(1, &branch), if off { vec![2, 3] } else { vec![2] });
        // Its uppermost level is popped in the cycle in which others act.
        let arrival = p.arrival(D);
        if off {
            p.tell(1, &arrival);
        }
        assert_eq!(p.steered_after(0, &arrival), [2, 3]);
        p.tell(0, &arrival);
        assert_eq!(p.steered_after(1, &arrival), [2, 3]);
        p.assert_shows(D, &["0123", "4567"]);
    }
}

/// The end of a loop that some threads have left before: the branch, and two cycles more to pop the level of those who
/// meet there.
#[test]
fn how_long_popping_takes() {
    let mut p = Pipeline::begun(&shape(4, 2), 2);
    let leaves = p.control(OutcomeKind::Branch, B, F, "05", meets_at(F));
    p.tell_all(&leaves);
    p.assert_shows(B + 1, &["4123", "xx67"]);
    let all_leave = p.control(OutcomeKind::Branch, B + 3, F, EVERYBODY, meets_at(F));
    p.tell(0, &all_leave);
    assert_eq!(p.steered_after(1, &all_leave), [4, 5]);
    p.assert_shows(F, &["0123", "4567"]);
}

/// Where writes are under way when the last warp arrives, its block is chosen in a cycle of its own.
#[test]
fn going_on_after_writes() {
    let mut p = Pipeline::begun(&shape(4, 2), 2);
    let branch = p.control(OutcomeKind::Branch, B - 1, C, "056", meets_at(D));
    p.tell(0, &branch);
    // The write is done in the cycle after the outcome.
    p.issues(1, 3);
    assert_eq!(p.steered_after(1, &branch), [4]);
}

/// Two blocks, of two warps each, that have begun at 0.
fn two_blocks(s: &Shape) -> Pipeline {
    let mut p = Pipeline::new(s, 2, 1);
    for slot in [0, 2] {
        p.filling = Some(Filling { slot, last: slot + 1, last_mask: u64::MAX >> (64 - s.lanes), pc: 0 });
        p.settle();
    }
    p
}

/// Of blocks whose last writes are done in one cycle, the one for which the stack did something last is not the first.
#[test]
fn blocks_take_turns() {
    for last in [0, 1] {
        let mut p = two_blocks(&shape(4, 4));
        let (first, second) = (2 * last, 2 * last + 1);
        let together = p.control(OutcomeKind::Branch, B - 1, C, EVERYBODY, meets_at(F));
        p.tell(first, &together);
        p.tell(second, &together);
        let apart = p.control(OutcomeKind::Branch, C, D, "058d", meets_at(F));
        p.tell(first, &apart);
        p.issues(second, 200);
        p.tell(second, &apart);
        let left = p.slots[second].pending;
        let other = p.control(OutcomeKind::Branch, B - 1, E, "058d", meets_at(F));
        let [others_first, others_second] = [3 - second, 3 - first];
        p.tell(others_first, &other);
        p.issues(others_second, p.slots[second].pending);
        assert!(left > p.slots[second].pending && p.slots[second].pending > 50);
        p.tell(others_second, &other);
        assert_eq!(p.shows(), vec![]);
        let mut order = Vec::new();
        for _ in 0..200 {
            p.cycle(None, None);
            for (pc, _) in p.shows().into_iter().filter(|(pc, _)| [D, E].contains(pc)) {
                if !order.contains(&pc) {
                    order.push(pc);
                }
            }
        }
        assert_eq!(order, [E, D], "block {last} had its turn");
    }
}

/// A warp that runs alone, while no other of its block has arrived, waits for none where its threads stay together.
#[test]
fn the_only_warp_does_not_wait() {
    for compaction in [Compaction::SkipUniform, Compaction::Every, Compaction::Off] {
        let mut p = Pipeline::begun(&Shape { compaction, ..shape(4, 2) }, 2);
        let branch = p.control(OutcomeKind::Branch, B - 1, C, "01", meets_at(F));
        p.tell(0, &branch);
        // The other has arrived.
        assert_eq!(p.steered_after(1, &branch), [2]);
        let together = p.control(OutcomeKind::Branch, C, C + 4, EVERYBODY, meets_at(E));
        assert_eq!(p.steered_after(0, &together), [0]);
        p.assert_shows(C + 4, &["01xx"]);
        let jump = p.control(OutcomeKind::Jump, C + 4, C, EVERYBODY, meets_at(F));
        assert_eq!(p.steered_after(0, &jump), [0]);
        let apart = p.control(OutcomeKind::Branch, C, C + 4, "1", meets_at(E));
        assert_eq!(p.steered_after(0, &apart), [2]);
        p.assert_shows(C + 4, &["x1xx"]);
        p.arrive(E);
        p.assert_shows(C + 1, &["0xxx"]);
        p.arrive(E);
        p.assert_shows(E, &["01xx"]);
        // At the rpc of its block's top it arrives.
        let to_rpc = p.control(OutcomeKind::Branch, E, F, EVERYBODY, meets_at(F));
        assert_eq!(p.steered_after(0, &to_rpc), [2, 3]);
        p.assert_shows(B, if compaction == Compaction::Off { &["xx23", "4567"] } else { &["4523", "xx67"] });
    }
}

/// Static warps that stay as they are go on with a write under way; threads do not leave it behind.
#[test]
fn static_warps_do_not_wait_for_writes() {
    let mut p = Pipeline::begun(&shape(4, 2), 2);
    let together = p.control(OutcomeKind::Branch, B - 1, C, EVERYBODY, meets_at(D));
    p.tell(0, &together);
    p.issues(1, 150);
    p.tell(1, &together);
    p.assert_shows(C, &["0123", "4567"]);
    let apart = p.control(OutcomeKind::Branch, C, C + 2, "056", meets_at(D));
    p.tell_all(&apart);
    assert_eq!(p.shows(), vec![]);
    p.settle();
    p.assert_shows(C + 2, &["056x"]);

    // With warps that never change, no side has to wait.
    let mut p = Pipeline::begun(&Shape { compaction: Compaction::Off, ..shape(4, 2) }, 2);
    p.issues(1, 1000);
    p.tell_all(&p.control(OutcomeKind::Branch, B - 1, C, "056", meets_at(D)));
    p.assert_shows(C, &["0xxx", "x56x"]);
}

/// Threads that have ended do not keep the others from their static warps.
#[test]
fn static_warps_after_exits() {
    let mut p = Pipeline::begun(&shape(4, 2), 2);
    let branch = p.control(OutcomeKind::Branch, B - 1, C, "056", meets_at(D));
    p.tell_all(&branch);
    let ends = exit(&p, C);
    p.tell_all(&ends);
    p.assert_shows(B, &["x123", "4xx7"]);
    p.arrive(D);
    p.assert_shows(D, &["x123", "4xx7"]);
}

/// Without and with a prediction, which here has every warp wait.
const WAITING: [Compaction; 2] = [Compaction::SkipUniform, Compaction::Predict];

/// §2.2.2, of a block: `if (a) { if (b) B; else C; D } else E; F`.
#[test]
fn nested_branches() {
    for compaction in WAITING {
        let mut p = Pipeline::begun(&Shape { compaction, ..shape(4, 2) }, 2);
        let branch = p.control(OutcomeKind::Branch, 1, B, "012456", meets_at(F));
        p.tell_all(&branch);
        p.assert_shows(B, &["012x", "456x"]);
        let branch = p.control(OutcomeKind::Branch, B, C, "04", meets_at(D));
        p.tell_all(&branch);
        p.assert_shows(C, &["0xxx", "4xxx"]);
        p.arrive(D);
        p.assert_shows(B + 1, &["x12x", "x56x"]);
        p.arrive(D);
        p.assert_shows(D, &["012x", "456x"]);
        let jump = p.control(OutcomeKind::Jump, D + 1, F, EVERYBODY, Reconvergence { uniform: 1, ..meets_at(F) });
        p.tell_all(&jump);
        p.assert_shows(2, &["xxx3", "xxx7"]);
        p.arrive(F);
        p.assert_shows(F, &["0123", "4567"]);
    }
}

/// Sides of a branch that meet where their function returns to, which the first of them to return says; among them
/// those of another such branch.
#[test]
fn branches_of_a_function_that_returns() {
    for compaction in WAITING {
        let mut p = Pipeline::begun(&Shape { compaction, ..shape(4, 2) }, 2);
        p.call(1, C);
        let branch = p.control(OutcomeKind::Branch, C, D, "04", returns());
        p.tell_all(&branch);
        p.assert_shows(D, &["0xxx", "4xxx"]);
        p.ret(D, 2);
        p.assert_shows(C + 1, &["x123", "x567"]);
        let branch = p.control(OutcomeKind::Branch, C + 1, E, "15", returns());
        p.tell_all(&branch);
        p.assert_shows(E, &["x1xx", "x5xx"]);
        p.ret(E, 2);
        p.assert_shows(C + 2, &["xx23", "xx67"]);
        p.ret(C + 2, 2);
        p.assert_shows(2, &["0123", "4567"]);
    }
}

/// A function that calls itself, with a branch whose sides reconverge at the place that its inner activation returns
/// to.
#[test]
fn a_branch_meets_where_others_have_returned_to() {
    for compaction in WAITING {
        let mut p = Pipeline::begun(&Shape { compaction, ..shape(4, 2) }, 2);
        for pc in [1, C] {
            p.call(pc, C);
        }
        let branch = p.control(OutcomeKind::Branch, C + 1, D, "04", returns());
        p.tell_all(&branch);
        p.ret(D, E);
        p.assert_shows(C + 2, &["x123", "x567"]);
        let branch = p.control(OutcomeKind::Branch, C + 2, D, "15", meets_at(E));
        p.tell_all(&branch);
        p.assert_shows(D, &["x1xx", "x5xx"]);
        p.arrive(E);
        p.assert_shows(C + 3, &["xx23", "xx67"]);
        p.arrive(E);
        p.assert_shows(E, &["x123", "x567"]);
        p.ret(E, E);
        p.assert_shows(E, &["0123", "4567"]);
    }
}

/// A uniform branch is no place to wait, nor is a jump, unless that is wanted.
#[test]
fn uniform_branches() {
    let uniform = Reconvergence { uniform: 1, ..meets_at(D) };
    for (compaction, waits_at_branches, waits_at_jumps) in
        [(Compaction::SkipUniform, false, false), (Compaction::Always, true, false), (Compaction::Every, true, true)]
    {
        for (kind, waits) in [(OutcomeKind::Branch, waits_at_branches), (OutcomeKind::Jump, waits_at_jumps)] {
            let mut p = Pipeline::begun(&Shape { compaction, ..shape(2, 2) }, 2);
            let control = p.control(kind, 1, C, EVERYBODY, uniform);
            p.tell(0, &control);
            assert_eq!(p.shows().len(), if waits { 1 } else { 2 }, "{compaction:?}, {kind:?}");
            p.tell(1, &control);
            p.assert_shows(C, &["01", "23"]);
        }
    }
}

/// §4, Example 2 and Figure 10, of a block: `while (A) { if (A) B; else if (C) break (D); E } F`. Threads 0 and 1 meet
/// at E, long before F, where 2 and 3 wait.
#[test]
fn likely_points() {
    let told = Reconvergence::new(Meet::At(F as u32), false, Some(E as u32));
    let mut p = Pipeline::begun(&Shape { likely: true, ..shape(2, 2) }, 2);
    let branch = p.control(OutcomeKind::Branch, B - 1, C, "123", told);
    p.tell_all(&branch);
    p.assert_shows(C, &["21", "x3"]);
    let branch = p.control(OutcomeKind::Branch, C, D, "23", told);
    p.tell_all(&branch);
    p.assert_shows(D, &["23"]);
    let leaves = p.control(OutcomeKind::Jump, D, F, EVERYBODY, Reconvergence { uniform: 1, ..told });
    p.tell_all(&leaves);
    p.assert_shows(C + 1, &["x1"]);
    p.arrive(E);
    p.assert_shows(B, &["0x"]);
    p.arrive(E);
    p.assert_shows(E, &["01"]);
    p.arrive(F);
    p.assert_shows(F, &["01", "23"]);
}

/// A `jalr` goes where the first thread of the first warp goes; the others are served after it.
#[test]
fn jumps_to_several_places() {
    let mut p = Pipeline::begun(&shape(2, 2), 2);
    let one = p.control(OutcomeKind::Jump, 1, C, "12", meets_at(F));
    let other = p.control(OutcomeKind::Jump, 1, D, "03", meets_at(F));
    let targets = one.targets.iter().zip(&other.targets).map(|(one, other)| one.or(*other)).collect();
    let jump = Control { targets, ..one };
    p.tell(1, &jump);
    p.tell(0, &jump);
    p.assert_shows(C, &["21"]);
    p.arrive(F);
    p.assert_shows(1, &["03"]);
    p.tell_all(&jump);
    p.assert_shows(D, &["03"]);
    p.arrive(F);
    p.assert_shows(F, &["01", "23"]);
}

/// All live threads of a block meet at a barrier, or none ever gets past it.
#[test]
fn barriers() {
    let mut p = Pipeline::begun(&shape(2, 2), 2);
    let barrier = p.control(OutcomeKind::Wait, 1, 2, EVERYBODY, meets_at(0));
    p.tell_all(&barrier);
    p.assert_shows(2, &["01", "23"]);
    let branch = p.control(OutcomeKind::Branch, 3, C, "0", meets_at(D));
    p.tell_all(&branch);
    let barrier = p.control(OutcomeKind::Wait, C, C + 1, EVERYBODY, meets_at(0));
    p.tell_all(&barrier);
    p.assert_refused(FaultCause::BarrierOfAPart, (0, C, "0x"));
}

/// Warps that a table calls together come to different branches.
#[test]
fn a_uniform_branch_that_parts() {
    let mut p = Pipeline::begun(&shape(2, 2), 2);
    let branch = p.control(OutcomeKind::Branch, 1, C, "01", Reconvergence { uniform: 1, ..meets_at(D) });
    p.tell_all(&branch);
    assert_eq!(p.shows(), vec![(C, "01".into()), (2, "23".into())]);
    for (slot, pc) in [(0, C + 1), (1, 3)] {
        assert_eq!(p.refused, None);
        let branch = p.control(OutcomeKind::Branch, pc, D, "0", meets_at(D));
        p.tell(slot, &branch);
    }
    p.assert_refused(FaultCause::NotUniform, (1, 3, "23"));
}

#[test]
fn too_many_levels() {
    for kind in [OutcomeKind::Branch, OutcomeKind::Jump] {
        let mut p = Pipeline::begun(&Shape { levels: Some(1), ..shape(2, 2) }, 2);
        let branch = p.control(OutcomeKind::Branch, 1, C, "012", meets_at(F));
        p.tell_all(&branch);
        let parts = p.control(kind, C, D, "2", meets_at(E));
        p.tell_all(&parts);
        p.assert_refused(FaultCause::StackOverflow, (0, C, "01"));
    }
}

/// `capri.txt` Figures 7 and 8: W0 does not part, and goes on. W1 and W2 do for the first time, so they wait. B's lanes
/// have 3, 2, 1 and 2 threads, which came in 3 warps: so the next time nobody waits.
#[test]
fn capri_figure_7() {
    let capt = Capt { entries: 2, history: History::Latest };
    let mut p = Pipeline::begun(&Shape { compaction: Compaction::Predict, capt, ..shape(4, 4) }, 3);
    let branch = p.control(OutcomeKind::Branch, 5, B, "01234789", meets_at(F));
    p.tell(0, &branch);
    assert_eq!(p.shows(), vec![(B, "0123".into()), (0, "4567".into()), (0, "89ab".into())]);
    assert!(!p.runs_with_block(0), "W0 is ahead");
    p.tell(1, &branch);
    assert_eq!(p.shows().len(), 2, "W1 waits");
    p.tell(2, &branch);
    p.assert_shows(B, &["0123", "49x7", "8xxx"]);
    assert!(p.runs_with_block(0), "W0 runs with the others");
    p.arrive(F);
    p.assert_shows(6, &["x56b", "xxax"]);
    p.arrive(F);
    p.assert_shows(F, &["0123", "4567", "89ab"]);

    let back = p.control(OutcomeKind::Jump, F + 1, 0, EVERYBODY, Reconvergence { uniform: 1, ..meets_at(F) });
    p.tell_all(&back);
    p.assert_shows(0, &["0123", "4567", "89ab"]);
    p.tell(1, &branch);
    assert_eq!(p.shows()[1], (B, "4xx7".into()), "W1 goes ahead with the side that goes first");
    p.tell(2, &branch);
    p.tell(0, &branch);
    p.assert_shows(B, &["0123", "4xx7", "89xx"]);
    p.arrive(F);
    p.assert_shows(6, &["x56b", "xxax"]);
    p.arrive(F);
    p.assert_shows(F, &["0123", "4567", "89ab"]);
}

/// A warp that a branch does not part runs past the place where the branch's threads meet. Where nobody goes the other
/// way it has lost nothing; else those who do come to it.
#[test]
fn a_whole_warp_runs_past_where_threads_meet() {
    let begun = || Pipeline::begun(&Shape { compaction: Compaction::Predict, ..shape(4, 4) }, 3);
    let mut p = begun();
    let skip = p.control(OutcomeKind::Branch, 5, F, EVERYBODY, meets_at(F));
    for slot in [2, 0] {
        assert_eq!(p.steered_after(slot, &skip), [0]);
        assert!(!p.runs_with_block(slot), "slot {slot} is ahead");
    }
    assert_eq!(p.steered_after(1, &skip), [0]);
    assert!((0..3).all(|slot| p.runs_with_block(slot)), "all have come");
    p.assert_shows(F, &["0123", "4567", "89ab"]);

    let mut p = begun();
    let branch = p.control(OutcomeKind::Branch, 5, F, "012345", meets_at(F));
    p.tell(0, &branch);
    p.tell(1, &branch);
    p.tell(2, &branch);
    assert_eq!(p.shows(), vec![(F, "0123".into()), (6, "xx67".into()), (6, "89ab".into())]);
    assert_eq!([0, 1, 2].map(|slot| p.runs_with_block(slot)), [false, true, true]);
    // Within the other side, too, and not where that side's threads meet those of the first.
    let inner = p.control(OutcomeKind::Branch, 6, E, "689ab", meets_at(E));
    p.tell(2, &inner);
    assert!(!p.runs_with_block(2), "ahead of the inner branch's group");
    p.tell(1, &inner);
    p.assert_shows_at(&[(F, "0123"), (7, "xxx7"), (E, "89ab")]);
    p.arrive(E);
    p.assert_shows_at(&[(F, "0123"), (E, "xx67"), (E, "89ab")]);
    let leaves = p.control(OutcomeKind::Branch, E, F, EVERYBODY, meets_at(F));
    p.tell(2, &leaves);
    p.assert_shows_at(&[(F, "0123"), (E, "xx67")]);
    p.tell(1, &leaves);
    p.assert_shows(F, &["0123", "4567", "89ab"]);
    assert!((0..3).all(|slot| p.runs_with_block(slot)), "all have met");
}

/// With slack a warp that is ahead passes what cannot part it; where threads meet, it waits until it is of the top.
#[test]
fn a_warp_that_is_ahead_passes() {
    let s = Shape { compaction: Compaction::Predict, slack: 2, ..shape(4, 4) };
    let passing = |p: &Pipeline, target: u64| {
        p.control(OutcomeKind::Jump, B + 1, target, EVERYBODY, Reconvergence { uniform: 1, ..elsewhere() })
    };
    let begun = || {
        let mut p = Pipeline::begun(&s, 3);
        let branch = p.control(OutcomeKind::Branch, 5, B, "01234789", meets_at(F));
        p.tell(0, &branch);
        (p, branch)
    };
    let (mut p, branch) = begun();
    let jump = passing(&p, C);
    assert_eq!(p.steered_after(0, &jump), [0]);
    assert!(!p.runs_with_block(0), "it is still ahead");
    p.tell(1, &branch);
    p.tell(2, &branch);
    p.assert_shows_at(&[(C, "0123"), (B, "49x7"), (B, "8xxx")]);
    assert!(p.runs_with_block(0), "it runs with the others");
    p.tell(1, &jump);
    p.tell(2, &jump);
    p.arrive(F);
    p.assert_shows(6, &["x56b", "xxax"]);
    p.arrive(F);
    p.assert_shows(F, &["0123", "4567", "89ab"]);

    // It comes to where the branch's threads meet.
    let (mut p, branch) = begun();
    let jump = passing(&p, F);
    p.tell(0, &jump);
    assert!(p.slots[0].runs.as_ref().is_some_and(|runs| runs.parked), "it is not steered");
    p.tell(1, &branch);
    p.tell(2, &branch);
    p.assert_shows_at(&[(B, "49x7"), (B, "8xxx")]);
    p.tell(1, &jump);
    p.tell(2, &jump);
    p.assert_shows(6, &["x56b", "xxax"]);
    p.arrive(F);
    p.assert_shows(F, &["0123", "4567", "89ab"]);

    // Nobody goes the other way, so it is no place to wait at.
    let (mut p, _) = begun();
    let stays = p.control(OutcomeKind::Branch, 5, B, EVERYBODY, meets_at(F));
    let jump = passing(&p, F);
    p.tell(0, &jump);
    p.tell(1, &stays);
    p.tell(2, &stays);
    p.assert_shows_at(&[(F, "0123"), (B, "4567"), (B, "89ab")]);
    assert!((0..3).all(|slot| p.runs_with_block(slot)), "all went the same way");
}

/// The table calls it uniform, but it parts a warp that is ahead.
#[test]
fn a_uniform_branch_that_parts_one_that_is_ahead() {
    let mut p = Pipeline::begun(&Shape { compaction: Compaction::Predict, slack: 2, ..shape(2, 2) }, 2);
    let branch = p.control(OutcomeKind::Branch, 1, C, "01", meets_at(D));
    p.tell(0, &branch);
    let parts = p.control(OutcomeKind::Branch, C + 2, E, "0", Reconvergence { uniform: 1, ..meets_at(D) });
    p.tell(0, &parts);
    p.assert_refused(FaultCause::NotUniform, (0, C + 2, "01"));
}

/// Where all live threads meet, those that are not ahead are in their static warps again, full or not.
#[test]
fn static_warps_beside_one_that_is_ahead() {
    let mut p = Pipeline::begun(&Shape { compaction: Compaction::Predict, ..shape(4, 4) }, 3);
    let some_end = p.control(OutcomeKind::Branch, 1, 3, "016b", meets_at(4));
    p.tell_all(&some_end);
    let ends = exit(&p, 3);
    p.tell_all(&ends);
    p.assert_shows(2, &["xx23", "45x7", "89ax"]);
    let branch = p.control(OutcomeKind::Branch, 5, F, "4578", meets_at(F));
    p.tell_all(&branch);
    assert_eq!(p.shows(), vec![(6, "xx23".into()), (F, "45x7".into()), (6, "x9ax".into())]);
    p.arrive(F);
    p.assert_shows(F, &["xx23", "45x7", "89ax"]);
    assert!((0..3).all(|slot| p.runs_with_block(slot)), "all have met");
}

/// `capri.txt` §3.3: each side of a branch says whether forming warps was worth it, that is, whether its fullest lane
/// has fewer threads than warps came with some.
#[test]
fn each_side_is_learned_from() {
    let to_the_rest = meets_at(6);
    let both = meets_at(F);
    for (who, meets, waits) in [
        // Three threads of three warps in one lane, or two of them.
        ("048", to_the_rest, false),
        ("049", to_the_rest, true),
        // The side that runs last says otherwise: lane 3 has all of its threads, or no lane has.
        ("05a", both, false),
        ("01468b", both, true),
    ] {
        let capt = Capt { entries: 2, history: History::Latest };
        let mut p = Pipeline::begun(&Shape { compaction: Compaction::Predict, capt, ..shape(4, 4) }, 3);
        let branch = p.control(OutcomeKind::Branch, 5, B, who, meets);
        p.tell_all(&branch);
        if meets == both {
            p.arrive(F);
            p.arrive(F);
        } else {
            p.arrive(6);
        }
        p.assert_shows(if meets == both { F } else { 6 }, &["0123", "4567", "89ab"]);
        let back = p.control(OutcomeKind::Jump, F, 0, EVERYBODY, Reconvergence { uniform: 1, ..meets_at(F) });
        p.tell_all(&back);
        p.tell(1, &branch);
        assert_eq!(p.shows().len(), if waits { 2 } else { 3 }, "{who}");
    }
}

/// From the outcome of the last warp that arrives: its side becomes the top, its threads are counted, the table learns, and
/// a warp of another block at the same branch is told.
#[test]
fn how_long_learning_takes() {
    let ahead_after = |cycles: u32| {
        let capt = Capt { entries: 2, history: History::Latest };
        let mut p = two_blocks(&Shape { compaction: Compaction::Predict, capt, ..shape(4, 4) });
        let branch = p.control(OutcomeKind::Branch, 5, B, "048c", meets_at(6));
        p.tell(0, &branch);
        let resolved = p.cycle(None, Some(Resolving::of(1, &branch)));
        let told = p.outcome(1, &branch, resolved);
        p.cycle(Some(told), None);
        (2..cycles).for_each(|_| {
            p.cycle(None, None);
        });
        let resolved = p.cycle(None, Some(Resolving::of(2, &branch)));
        let told = p.outcome(2, &branch, resolved);
        p.cycle(Some(told), None);
        p.slots[2].runs.as_ref().is_some_and(|runs| runs.ahead)
    };
    let ahead: Vec<bool> = (2..8).map(ahead_after).collect();
    assert_eq!(ahead, [false, false, true, true, true, true]);
}

//! The arbiter divergence unit: every thread has a pc of its own, and a tree of comparators finds who runs.
//!
//! `path-lists-simty.txt` §3.1. A table, indexed by warp, holds pc and call depth of each thread. Of a warp's live
//! threads those at the greatest depth run, of these those at the least pc; threads that wait come after all others. A
//! second tree finds the stop pc: the least pc of the other threads at that depth. `docs/reference/arbiter.md` has the
//! picture.
//!
//! An outcome, a start or a wake changes the table, and then the warp *passes* the trees. One pass can begin in each
//! cycle:
//!
//! | cycle | what happens |
//! |---|---|
//! | 0 | the table is written |
//! | 1 … [`first_cycles`] | first tree, [`LEVELS`] comparators in a row a cycle |
//! | then | each thread is compared with the first: the mask; steers |
//! | 1 or 2 cycles | second tree, whose numbers are narrower, [`STOP_LEVELS`] in a row a cycle; the stop pc is written |
//!
//! Decode asks for the stop pc 3 cycles after the steering at the earliest, so it is always there. As every thread
//! takes part in each pass, no path runs beyond the stop pc, and the threads that a memory access left unserved are
//! always those that run next, alone.
//!
//! With [`Shape::fair`], threads that have given way ([`mod@super::fairness`]) come after all others that can run, and a
//! path is the threads that are at one place and have given way, or have not. A bit per warp, its *round*, changes where
//! all have, and then none has. Threads that wait have not, whatever the round; a wake begins with the first round.
//!
//! What it does not do: without [`Shape::fair`] nothing is fair between paths, as with the path tables. There is no list of paths, so what they
//! are is only known to counters, which [`Shape::metrics`] adds.

use super::fairness::{self, Fairness, Told};
use super::inspect::{Path, State};
use super::sequence::Sequences;
use super::{
    Capabilities, Events, Mechanism, MoreOut, Steer, Stop, UnitIn, UnitOut, assume_legal, depth_after, hold, kind,
};
use crate::LaneMask;
use crate::proof::Proof;
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use heddle_hdl::{Errors, all, each, elements};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Comparators in a row in a cycle, of the first and of the second tree.
const LEVELS: u32 = 2;
const STOP_LEVELS: u32 = 3;

/// A thread in the table.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Thread<T> {
    pub place: Place<T>,
    /// 1 bit: it is live. The place means something only then.
    pub valid: T,
}

/// Where threads are.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Place<T> {
    /// Call depth, `depth_bits`.
    #[width(s.depth_bits)]
    pub depth: T,
    /// Instruction number, `pc_bits`.
    #[width(s.pc_bits())]
    pub pc: T,
    /// 1 bit: they have given way; in the table, xor the round of their warp, unless they wait.
    #[when(s.fair)]
    pub late: Option<T>,
    /// 1 bit: they wait; in the table, xor the phase of their warp.
    pub waits: T,
}

/// The threads that run, and their depth.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Active<T> {
    depth: T,
    mask: T,
}

/// A warp on its way through the trees.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Pass<T> {
    valid: T,
    slot: T,
    /// After a memory access that left threads unserved.
    replay: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct LaneIn<T> {
    /// The thread of `slot` is written: whether it is live, and where it is, `taken` or `rest`.
    write: T,
    #[width(s.warp_bits())]
    slot: T,
    valid: T,
    goes: T,
    taken: Place<T>,
    rest: Place<T>,
    /// The warp that enters the first tree, its phase and its round.
    #[width(s.warp_bits())]
    entering: T,
    entering_phase: T,
    #[when(s.fair)]
    entering_round: Option<T>,
    /// The warp that leaves it (1 bit: there is one), its phase and its round, and the least rank of its threads.
    leaves: T,
    #[width(s.warp_bits())]
    leaving: T,
    leaving_phase: T,
    #[when(s.fair)]
    leaving_round: Option<T>,
    #[width(rank_bits(s))]
    first: T,
    /// For counters, of the warp that enters: the ranks of taken and rest.
    #[width(rank_bits(s) - 1)]
    #[when(s.has_metrics())]
    sides: Option<[T; 2]>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneOut<T> {
    /// Of the warp that enters: the thread's [`rank`].
    rank: T,
    /// Of the warp that leaves: the thread has the least rank / is at the same depth and at another pc; its pc.
    same: T,
    beside: T,
    pc: T,
    /// Of the warp that leaves, 1 bit: the thread is live.
    live: T,
    /// For counters, of the warp that enters: the thread is where taken, rest go.
    at_sides: Option<[T; 2]>,
}

impl Place<Signal> {
    /// The number that live threads are sorted by, least first: those that can run, those that have not given way,
    /// greatest depth, least pc.
    fn rank(self) -> Signal {
        let mut parts = vec![self.pc, !self.depth];
        parts.extend(self.late);
        parts.push(self.waits);
        cat(&parts)
    }

    /// Of who waits as `waits` says: between the table and the trees.
    fn of_round(self, round: Option<Signal>) -> Place<Signal> {
        Place { late: self.late.zip(round).map(|(late, round)| late ^ (round & !self.waits)), ..self }
    }
}

impl Thread<Signal> {
    /// The same for all threads: those that are not live come last.
    fn rank(self) -> Signal {
        cat(&[self.place.rank(), !self.valid])
    }

    /// Between the table and the trees; without [`Shape::barriers`] nobody waits.
    fn turned(self, s: &Shape, phase: Signal, round: Option<Signal>) -> Thread<Signal> {
        let waits = if s.barriers { self.place.waits ^ phase } else { phase.literal(0u32) };
        Thread { place: Place { waits, ..self.place }.of_round(round), ..self }
    }
}

/// Bits of a thread's rank.
fn rank_bits(s: &Shape) -> Width {
    width_of(&Thread::shape(s))
}

/// Cycles of the first tree.
fn first_cycles(s: &Shape) -> u32 {
    s.lanes.ilog2().div_ceil(LEVELS)
}

/// Cycles of the second tree; 0 without one.
fn stop_cycles(s: &Shape) -> u32 {
    s.lanes.ilog2().div_ceil(STOP_LEVELS)
}

/// The least of the numbers, with a register after every `levels` comparators but the last ones.
fn least(m: Builder, name: &str, numbers: Vec<Signal>, levels: u32) -> Signal {
    let (mut numbers, mut level) = (numbers, 0);
    while numbers.len() > 1 {
        if level > 0 && level % levels == 0 {
            let pipe = |(k, &n): (usize, &Signal)| m.pipe(&format!("{name}_{level}_{k}"), n);
            numbers = numbers.iter().enumerate().map(pipe).collect();
        }
        numbers = numbers.chunks(2).map(|pair| pair[0].lt(pair[1]).mux(pair[0], pair[1])).collect();
        level += 1;
    }
    numbers[0]
}

/// The mechanism: a pc a thread.
pub struct Arbiter;

impl Mechanism for Arbiter {
    fn name(&self) -> &'static str {
        "arbiter"
    }

    fn number(&self) -> u8 {
        1
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { fair: true, ..Capabilities::NONE }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        arbiter(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// The threads that are in the same place, in the order in which they run.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
        let slot = u64::from(warp);
        if !state.register(s.warps, "live").bit(warp) {
            return Vec::new();
        }
        // A thread waits if its bit is not that of its warp's phase, and else has given way likewise.
        let round = s.fair && state.register(s.warps, "rounds").bit(warp);
        let phase = s.barriers && state.word(1, "phases", slot).bit(0);
        let none = LaneMask::repeat(false, s.lanes as usize);
        let mut paths = BTreeMap::new();
        for lane in 0..s.lanes {
            let Thread { place, valid } =
                state.within(&format!("lane[{lane}]")).word(Thread::shape(s), "threads", slot);
            let (depth, pc) = (place.depth.low_u64(), place.pc.low_u64());
            let waits = s.barriers && place.waits.bit(0) != phase;
            if valid == 1 {
                let path = Path { place: "threads".into(), depth, pc: 4 * pc as u32, mask: none.clone(), waits };
                let late = !waits && place.late.is_some_and(|late| late.bit(0) != round);
                paths.entry((waits, late, Reverse(depth), pc)).or_insert(path).mask.set(lane as usize, true);
            }
        }
        paths.into_values().collect()
    }
}

/// The arbiter of a shape.
pub fn arbiter(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    let lanes = |m: Builder, i: LaneIn<LaneInput>| m.replicate("lane", s.lanes, &lane(s), i);
    module("arbiter", UnitIn::shape(s), |m, i| described(m, s, i, lanes).0)
}

/// One thread of each warp.
fn lane(s: &Shape) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    module("arbiter_lane", LaneIn::shape(s), |m, i| {
        m.doc("The threads of a lane: where they are, and how they compare.");
        let threads = m.memory("threads", Thread::shape(s), s.warp_bits()).style(MemoryStyle::Distributed);
        let (out, is_before) = compared(s, &threads, i);
        m.assert("nobody_is_before_the_first", !(i.leaves & is_before));
        out
    })
}

/// The lane's answers; and whether the thread of the warp that leaves comes before those that were found first.
fn compared(s: &Shape, threads: &Mem<Thread<Width>>, i: LaneIn<Signal>) -> (LaneOut<Signal>, Signal) {
    threads.write(i.write, i.slot, Thread { place: i.goes.mux(i.taken, i.rest), valid: i.valid });
    let entering = threads.read(i.entering).turned(s, i.entering_phase, i.entering_round);
    let leaving = threads.read(i.leaving).turned(s, i.leaving_phase, i.leaving_round);
    let rank = leaving.rank();
    let beside = rank.from_bit(s.pc_bits()).eq(i.first.from_bit(s.pc_bits()));
    let same_pc = leaving.place.pc.eq(i.first.slice(0, s.pc_bits()));
    let out = LaneOut {
        rank: entering.rank(),
        same: beside & same_pc,
        beside: beside & !same_pc,
        pc: leaving.place.pc,
        live: leaving.valid,
        at_sides: i.sides.map(|sides| sides.map(|side| entering.valid & entering.place.rank().eq(side))),
    };
    (out, rank.lt(i.first))
}

/// The state, as a proof sees it.
struct Inside {
    live: Signal,
    waiting: Signal,
    active: Mem<Active<Width>>,
    stops: Option<Mem<Stop<Width>>>,
    phases: Option<Mem<Width>>,
    /// One bit per warp.
    rounds: Option<Signal>,
    ghost_live: Mem<Width>,
    fairness: Option<Fairness>,
    sequences: Option<Sequences>,
    /// With [`Shape::fair`], of each thread: outcomes since it ran, and whether it waits.
    ghosts: Option<[Mem<Width>; 2]>,
    /// Passes by their cycle, from 1 on; the warp is steered in the one numbered `steers`.
    passes: Vec<Pass<Signal>>,
    steers: usize,
}

/// The unit, with lanes that `place_lanes` makes.
fn described(
    m: Builder,
    s: &Shape,
    i: UnitIn<Signal>,
    place_lanes: impl FnOnce(Builder, LaneIn<LaneInput>) -> LaneOut<Signal>,
) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a pc a thread, and a tree of comparators.");
    let UnitIn { start, wake, outcome, .. } = i;
    let live = m.reg("live", s.warps).reset(0u32);
    let waiting = s.barriers.then(|| m.reg("waiting", s.warps).reset(0u32));
    let active = m.memory("active", Active { depth: s.depth_bits, mask: s.lanes }, s.warp_bits());
    let active = active.style(MemoryStyle::Distributed);
    let phases = s.barriers.then(|| m.memory("phases", 1, s.warp_bits()).style(MemoryStyle::Distributed));
    let phase_of = |slot: Signal| phases.as_ref().map_or(m.lit(0u32, 1), |p| p.read(slot));

    let fairness = s.fair.then(|| Fairness::new(m, s));
    let rounds = s.fair.then(|| m.reg("rounds", s.warps).reset(0u32));
    let round_of = |slot: Signal| rounds.as_ref().map(|rounds| rounds.q.select(slot, 1));

    // Cycle 0: whose turn it is, and what it changes.
    wire!(start_ready = !outcome.valid);
    wire!(starts = start.valid & start_ready);
    let wake_possible = m.lit(s.barriers, 1);
    wire!(wake_ready = start_ready & !start.valid & wake_possible);
    wire!(wakes = wake.valid & wake_ready);
    wire!(slot = pick([(outcome.valid, outcome.slot), (start.valid, start.slot)], wake.slot));
    wire!(phase = phase_of(slot));
    if let Some(phases) = &phases {
        phases.write(wakes, slot, !phase);
    }
    wire!(running = active.read(outcome.slot));
    let depth = depth_after(outcome.call, outcome.ret, running.depth);
    let waits = outcome.kind.eq(kind::WAIT);
    let runs = m.lit(0u32, 1);
    let sequences = Sequences::new(m, s);
    let lasts = fairness
        .as_ref()
        .zip(sequences.as_ref())
        .zip(i.sequence)
        .map(|((fairness, sequences), told)| sequences.goes_on(told, &outcome, fairness.is_due(outcome.slot)));
    let late = fairness.as_ref().map(|fairness| fairness.gives_way(outcome.slot, lasts, None));
    let never = late.map(|_| runs);
    // Who waits has not given way.
    let taken_late = late.map(|late| if s.barriers { late & !waits } else { late });
    let taken = Place { depth, pc: outcome.taken.pc, late: taken_late, waits };
    let rest = Place { depth: running.depth, pc: outcome.rest.pc, late, waits: runs };
    let begun = Place { depth: depth.literal(0u32), pc: start.pc, late: never, waits: runs };
    wire!(round = round_of(slot).map(|round| round & outcome.valid));
    let stored = |p: Place<Signal>| {
        let turned = p.of_round(round);
        Place { waits: if s.barriers { p.waits ^ phase } else { runs }, ..turned }
    };
    wire!(stay = outcome.taken.mask | outcome.rest.mask);
    wire!(threads_written = outcome.valid.mux(running.mask, starts.repeat(s.lanes)));

    // The passes: cycle 1, the first tree, the comparison with its result, the second tree.
    // Behind the last instruction of all, pc + 1 is the first.
    let replay = outcome.kind.eq(kind::MEMORY) & outcome.rest.mask.any() & !outcome.rest.pc.all();
    // Who gives way is not who runs next.
    let replay = late.map_or(replay, |late| replay & !late);
    let mut passes =
        vec![m.stage("entering", Pass { valid: outcome.valid | starts | wakes, slot, replay: outcome.valid & replay })];
    for cycle in 2..=1 + first_cycles(s) + stop_cycles(s) {
        passes.push(m.stage(&format!("pass_{cycle}"), passes[passes.len() - 1]));
    }
    let steers = first_cycles(s) as usize;
    let (entering, leaving) = (passes[0], passes[steers]);
    let first = m.deferred("first", rank_bits(s));
    let sides = s.has_metrics().then(|| m.pipe("sides", [taken.rank(), rest.rank()]));
    let lane_in = LaneIn {
        write: each(threads_written),
        slot: all(slot),
        valid: each(outcome.valid.mux(stay, start.mask)),
        goes: each(outcome.taken.mask | starts.repeat(s.lanes)),
        taken: all(stored(outcome.valid.mux(taken, begun))),
        rest: all(stored(rest)),
        entering: all(entering.slot),
        entering_phase: all(phase_of(entering.slot)),
        entering_round: round_of(entering.slot).map(all),
        leaves: all(leaving.valid),
        leaving: all(leaving.slot),
        leaving_phase: all(phase_of(leaving.slot)),
        leaving_round: round_of(leaving.slot).map(all),
        first: all(first.value),
        sides: sides.map(|sides| sides.map(all)),
    };
    let lanes = place_lanes(m, lane_in);
    let ranks = elements(lanes.rank, rank_bits(s));
    let found = least(m, "ranks", ranks, LEVELS);
    first.drive(if s.lanes > 1 { m.pipe("least_rank", found) } else { found });
    wire!(any = !first.value.msb());
    let place = unpack_rank(s, first.value);

    // Who runs.
    wire!(mask = lanes.same.only_if(any));
    active.write(leaving.valid, leaving.slot, Active { depth: place.depth, mask });
    wire!(ends = leaving.slot.decode(s.warps).only_if(leaving.valid & !any));
    wire!(begins = start.slot.decode(s.warps).only_if(starts));
    live.next((live.q & !ends) | begins);
    if let Some(waiting) = &waiting {
        wire!(woken = wake.slot.decode(s.warps).only_if(wakes));
        wire!(parked = leaving.slot.decode(s.warps).only_if(leaving.valid & any & place.waits));
        waiting.next((waiting.q & !woken) | parked);
    }
    let waiting = waiting.map_or(m.lit(0u32, s.warps), |w| w.q);
    let steer =
        Steer { valid: leaving.valid & any & !place.waits, slot: leaving.slot, pc: place.pc, replay: leaving.replay };

    // Who gives way: if all have that could run, nobody has.
    let told = place.late.map(|late| Told {
        outcome: outcome.valid,
        slot: outcome.slot,
        at_once: None,
        lasts,
        turn: leaving.valid,
        turn_slot: leaving.slot,
        alone: !(lanes.live & !mask).any(),
        new_round: leaving.valid & any & !place.waits & late,
        wakes: m.lit(0u32, 1),
        start: starts,
        start_slot: start.slot,
        holding: None,
    });
    let gave_way = fairness.as_ref().zip(told.as_ref()).map(|(fairness, told)| fairness.goes_on(told).1);
    if let Some((rounds, told)) = rounds.as_ref().zip(told.as_ref()) {
        wire!(next_round = leaving.slot.decode(s.warps).only_if(told.new_round));
        wire!(first_round = slot.decode(s.warps).only_if(starts | wakes));
        rounds.next((rounds.q ^ next_round) & !first_round);
    }

    // Whom they may meet.
    let stops = (s.lanes > 1).then(|| {
        let others = elements(lanes.pc, s.pc_bits());
        let rank = |(k, pc): (u32, Signal)| m.pipe(&format!("other_{k}"), cat(&[pc, !(lanes.beside.bit(k) & any)]));
        let least = least(m, "others", (0..).zip(others).map(rank).collect(), STOP_LEVELS);
        let last = passes[passes.len() - 1];
        let stops = m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, s.warp_bits());
        let stops = stops.style(MemoryStyle::Distributed);
        stops.write(last.valid, last.slot, Stop { valid: !least.msb(), pc: least.slice(0, s.pc_bits()) });
        stops
    });
    let stop = |slot: Signal| match &stops {
        Some(stops) => stops.read(slot),
        None => m.zero(Stop { valid: 1, pc: s.pc_bits() }),
    };

    // Checks.
    let ghost_live = m.memory("ghost_live", s.lanes, s.warp_bits());
    let remain = ghost_live.read(slot) & !(running.mask & !stay);
    ghost_live.write(outcome.valid | starts, slot, outcome.valid.mux(remain, start.mask));
    assume_legal(m, s, &i, (live.q, waiting), running.mask, (starts, wakes));
    let deepest = running.depth.all() & outcome.call & outcome.taken.mask.any();
    m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
    let turn = leaving.valid;
    let threads = ghost_live.read(leaving.slot);
    m.assert("every_live_thread_is_in_one_path", !turn | lanes.live.eq(threads));
    m.assert("a_live_warp_has_a_mask", !turn | mask.any().eq(threads.any()));
    let under_way = |of: Signal| cat(&passes.iter().map(|p| p.valid & p.slot.eq(of)).collect::<Vec<_>>()).any();
    m.assume("no_outcome_before_the_stop_pc_is_there", !outcome.valid | !under_way(outcome.slot));
    let left = outcome.valid & outcome.rest.mask.any();
    let ahead = stop(outcome.slot);
    let access = outcome.kind.eq(kind::MEMORY);
    let before_stop = !ahead.valid | outcome.rest.pc.lt(ahead.pc);
    m.assume("memory_accesses_come_before_the_stop_pc", !(left & access) | before_stop);
    let ghost_rest = m.memory("ghost_rest", s.lanes, s.warp_bits());
    ghost_rest.write(outcome.valid, outcome.slot, outcome.rest.mask);
    m.assert("a_replay_is_alone", !(turn & leaving.replay) | mask.eq(ghost_rest.read(leaving.slot)));
    let mut ghosts = None;
    if let Some(told) = &told {
        let ghost_waits = m.memory("ghost_waits", s.lanes, s.warp_bits());
        let wait = ghost_waits.read(slot);
        let arrive = outcome.taken.mask.only_if(waits);
        ghost_waits.write(outcome.valid | starts | wakes, slot, (wait | arrive).only_if(outcome.valid));
        let runnable = ghost_live.read(slot) & !wait;
        let since = fairness::assert_bound(m, s, told, runnable, running.mask);
        ghosts = Some([since, ghost_waits]);
        m.cover("new_round", told.new_round);
    }
    m.cover("warp_ends", turn & !any);
    m.cover("replays", steer.valid & steer.replay);
    m.cover("calls", outcome.valid & outcome.call & outcome.taken.mask.any());
    let returns = outcome.valid & outcome.ret & outcome.taken.mask.any();
    m.cover("returns_from_a_call", returns & running.depth.any());
    m.cover("returns_at_depth_zero", returns & !running.depth.any());
    m.cover("start_waits", start.valid & !start_ready);
    if s.warps > 1 {
        m.cover("several_pass", cat(&passes.iter().map(|p| p.valid).collect::<Vec<_>>()).all());
    }
    if s.lanes > 1 {
        let other = lanes.live & !mask;
        m.cover("path_ends_and_others_go_on", outcome.valid & !stay.any() & remain.any());
        m.cover("runs_towards_others", steer.valid & lanes.beside.any());
        m.cover("runs_deeper_than_others", steer.valid & other.any() & !lanes.beside.any());
    }
    if s.barriers {
        m.cover("all_wait", turn & any & place.waits);
    }

    wire!(put_off = (start.valid | (wake.valid & wake_possible)) & !start_ready);
    let (hold, _) = hold(m, outcome.valid, |_| put_off);
    m.probe("updates", turn);
    m.probe("slot", leaving.slot);
    let out = UnitOut {
        start_ready,
        wake_ready,
        live: live.q,
        waiting,
        stop: stop(i.decode_slot),
        mask: active.read(i.issue_slot).mask,
        steer,
        hold,
        more: MoreOut::NONE,
        events: Events { gave_way, ..events(m, s, &i, starts, running.mask, entering, lanes.at_sides) },
    };
    let live = live.q;
    let rounds = rounds.map(|rounds| rounds.q);
    (
        out,
        Inside {
            live,
            waiting,
            active,
            stops,
            phases,
            rounds,
            ghost_live,
            fairness,
            sequences,
            ghosts,
            passes,
            steers,
        },
    )
}

/// The place of a live thread's rank.
fn unpack_rank(s: &Shape, rank: Signal) -> Place<Signal> {
    let pc_bits = s.pc_bits();
    let depth = !rank.slice(pc_bits, s.depth_bits);
    let above = pc_bits + s.depth_bits;
    let late = s.fair.then(|| rank.bit(above));
    Place { pc: rank.slice(0, pc_bits), depth, late, waits: rank.bit(above + Width::from(s.fair)) }
}

/// What counters want: how many paths per warp has, and which of them met. An outcome parts one path in up to two, and
/// each of these meets another path if a thread of that is in its place.
fn events(
    m: Builder,
    s: &Shape,
    i: &UnitIn<Signal>,
    starts: Signal,
    active: Signal,
    entering: Pass<Signal>,
    at_sides: Option<[Signal; 2]>,
) -> Events<Signal> {
    let count = s.lane_bits() + 1;
    let Some([at_taken, at_rest]) = at_sides else { return Events::none(m, s) };
    let [taken, rest] = [i.outcome.taken.mask, i.outcome.rest.mask];
    let came = m.pipe_reset("outcome_entering", i.outcome.valid);
    let started = m.pipe_reset("start_entering", starts);
    let [others, taken, rest] = m.pipe("masks_entering", [!active, taken, rest]);
    wire!(both = taken.any() & rest.any());
    wire!(meet = both & (at_taken & rest).any());
    wire!(taken_meets = taken.any() & (at_taken & others).any());
    wire!(rest_meets = rest.any() & !meet & (at_rest & others).any());
    wire!(merges = cat(&[meet, taken_meets, rest_meets]).count_ones());

    let counts = m.memory("paths", count, s.warp_bits());
    let narrow = |n: Signal| n.zext(count);
    let parts = narrow(taken.any()) + narrow(rest.any());
    let parted = counts.read(entering.slot) - m.lit(1u32, count) + parts - merges.zext(count);
    wire!(paths = started.mux(m.lit(1u32, count), parted));
    counts.write(came | started, entering.slot, paths);
    m.cover("paths_meet", came & merges.any());
    if s.lanes > 2 {
        m.cover("both_sides_meet_others", came & taken_meets & rest_meets);
    }
    Events { merges: merges.only_if(came), paths: paths.only_if(came), ..Events::none(m, s) }
}

pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;

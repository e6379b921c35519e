//! The cycles of a launch: block distribution, the front end, the scoreboard, issue, and what follows an issue. Times
//! are those of the core's table, [`timing`].

use super::ModelError;
use super::cycles;
use super::memory::{Access, Kind, Memory};
use super::op::{Class, Op};
use super::policy::{Front, Meeting, Outcome, Policy, Thread, Warp};
use super::writeback::{Late, Writeback};
use heddle_simt::Shape;
use heddle_simt::pipeline::timing;
use heddle_testbench::grid::{Grid, ThreadId};
use heddle_testbench::iss::{Iss, Operation};
use heddle_testbench::machine::{IdleCycles, Issues};
use heddle_testbench::reconverge::SideEntry;
use heddle_testbench::reconverge::instruction::Flow;
use std::collections::{HashSet, VecDeque};

/// What follows from the order of a cycle's steps here.
const _: () = assert!(timing::FREE_TO_START == 1, "the model's distributor starts a warp in the next cycle");

/// The fetch of a warp's next instruction.
fn fetch_next(warp: &mut Warp, at: u64, ops: &[Op], policy: &dyn Policy) {
    warp.front.chosen = Some(at);
    if warp.front.stops.is_some() {
        return;
    }
    let pc = warp.pc + 4 * warp.front.fetched.len() as u32;
    let control = ops.get(pc as usize / 4).is_none_or(|op| op.class == Class::Control);
    warp.front.fetched.push_back(at);
    warp.front.stops = (control || policy.stops(warp, pc + 4)).then_some(at + cycles(timing::CHOICE_TO_DECODE));
}

/// Registers that a warp waits for, a bit each: its threads', or those of all threads of its static warp.
fn pending_of(warp: &Warp, is_one: bool, lanes: u32, pending: &[u32]) -> u32 {
    let all = |harts: &mut dyn Iterator<Item = u32>| harts.fold(0, |all, hart| all | pending[hart as usize]);
    if is_one {
        let first = warp.harts[0] / lanes * lanes;
        return all(&mut (first..first + lanes));
    }
    all(&mut warp.harts.iter().copied())
}

/// A register that some threads wait for.
struct Pending {
    harts: Vec<u32>,
    rd: u8,
}

/// What a launch came to.
#[derive(Default)]
pub struct Counts {
    pub cycles: u64,
    pub issued: u64,
    pub thread_instructions: u64,
    /// Of the issuing warp, those that could be scheduled, summed over all issues; and the most.
    pub paths: u64,
    pub most_paths: u64,
    pub issues: Issues,
    pub idle: IdleCycles,
}

/// Whose turn a cycle of the divergence unit is, as it was chosen in the cycle before.
enum Turn {
    /// Nobody's that had to be chosen: that of a start, if there is one.
    Free,
    Outcome,
    Wake(u32),
    /// That of a warp that pops, with the levels to go.
    Pop(u64, Warp),
}

/// A launch under way.
pub struct Launch<'a> {
    shape: &'a Shape,
    iss: &'a mut Iss,
    ops: &'a [Op],
    side_table: &'a [Option<SideEntry>],
    policy: &'a mut dyn Policy,
    pub memory: Memory,
    writeback: Writeback,
    now: u64,
    /// Warps whose next instruction has the registers that it needs; others.
    pool: Vec<Warp>,
    waiting: Vec<Warp>,
    /// Who had the last turn at fetch: the first of its harts.
    last_fetch: u32,
    /// Nobody without an undecoded fetch wants the next cycle's.
    none_preferred: bool,
    /// What has its turn at the divergence unit, one a cycle: outcomes; static warps that are woken; warps that pop,
    /// with the levels to go; and static warps that start.
    outcomes: VecDeque<(u64, Outcome)>,
    wakes: VecDeque<(u64, u32)>,
    popping: VecDeque<(u64, Warp)>,
    starts: VecDeque<u32>,
    /// Whose turn this cycle is.
    turn: Turn,
    /// Outcomes that something else has waited for without a pause; control instructions do not issue.
    outcomes_before: u64,
    hold: bool,
    /// When the next instruction may issue.
    next_issue: u64,
    /// Of each hart: pending registers, a bit each; call depth.
    pending: Vec<u32>,
    depth: Vec<u32>,
    /// Of each thread, a [number](Thread::calls) for each call that it has not returned from.
    calls: Vec<Vec<u64>>,
    /// Results of fixed time, and those that came late, the cycle in which each can be used.
    computed: VecDeque<(u64, Pending)>,
    late: VecDeque<(u64, Pending)>,
    /// Cycles in which the pipeline writes registers.
    writes: VecDeque<u64>,
    /// Loads under way; the first is never one, but stands for those without a register.
    loads: Vec<Option<Pending>>,
    division: Option<(u64, Pending)>,
    /// The register of a quotient that waits to be written.
    quotient: Option<Pending>,
    blocks: u32,
    /// Of each group of warp slots: threads that have not ended, and since when there are none.
    live: Vec<(u32, u64)>,
    /// Static warps that wait at a barrier.
    asleep: Vec<u32>,
    failed: Option<(ThreadId, u32)>,
    pub counts: Counts,
}

/// An odd number whose multiples differ in their upper bits: 2^64 over the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl<'a> Launch<'a> {
    pub fn new(
        shape: &'a Shape,
        iss: &'a mut Iss,
        ops: &'a [Op],
        side_table: &'a [Option<SideEntry>],
        policy: &'a mut dyn Policy,
    ) -> Launch<'a> {
        let threads = shape.threads() as usize;
        let groups = iss.grid().resident(shape) as usize;
        Launch {
            shape,
            ops,
            side_table,
            policy,
            memory: Memory::new(shape),
            writeback: Writeback::default(),
            now: 0,
            pool: Vec::new(),
            waiting: Vec::new(),
            last_fetch: 0,
            none_preferred: false,
            outcomes: VecDeque::new(),
            popping: VecDeque::new(),
            turn: Turn::Free,
            starts: VecDeque::new(),
            wakes: VecDeque::new(),
            outcomes_before: 0,
            hold: false,
            next_issue: 0,
            pending: vec![0; threads],
            depth: vec![0; threads],
            calls: vec![Vec::new(); threads],
            computed: VecDeque::new(),
            late: VecDeque::new(),
            writes: VecDeque::new(),
            loads: vec![None],
            division: None,
            quotient: None,
            blocks: 0,
            live: vec![(0, 0); groups],
            asleep: Vec::new(),
            failed: None,
            counts: Counts::default(),
            iss,
        }
    }

    /// All cycles, at most so many.
    pub fn run(&mut self, most: u64) -> Result<(), ModelError> {
        let Grid { blocks, .. } = self.iss.grid();
        while self.blocks < blocks || self.live.iter().any(|&(live, _)| live > 0) {
            if self.now == most {
                return Err(ModelError::Endless { cycles: most });
            }
            self.cycle()?;
            self.now += 1;
        }
        self.counts.cycles = self.now - cycles(timing::LAUNCH_TO_LIVE);
        self.failed.map_or(Ok(()), |(thread, code)| Err(ModelError::Exit { thread, code }))
    }

    fn cycle(&mut self) -> Result<(), ModelError> {
        let has_come = |(at, _): &mut (u64, Pending)| *at <= self.now;
        while let Some((_, done)) = self.computed.pop_front_if(has_come).or_else(|| self.late.pop_front_if(has_come)) {
            for hart in done.harts {
                self.pending[hart as usize] &= !(1 << done.rd);
            }
        }
        self.fetch();
        self.converge();
        self.fetch_past_undecoded();
        self.distribute();
        self.fill_pool();
        if self.now < self.next_issue {
            self.counts.idle.interval += 1;
        } else if self.writeback.bubble(self.now) {
            self.idle(false);
        } else {
            self.issue()?;
        }
        let busy = self.writes.pop_front_if(|at| *at <= self.now).is_some();
        let quotient = self.division.as_ref().is_some_and(|(at, _)| *at <= self.now);
        let has_register = |load: usize| self.loads[load].as_ref().is_some_and(|load| load.rd != 0);
        let cycle = self.writeback.cycle(self.now, busy, quotient, &mut self.memory, has_register);
        let done = match cycle.written {
            Some(Late::Load(load)) => self.loads[load].take(),
            Some(Late::Quotient) => self.quotient.take(),
            None => None,
        };
        self.late.extend(done.map(|done| (self.now + cycles(timing::WRITE_TO_ISSUE), done)));
        if cycle.quotient_taken {
            self.quotient = self.division.take().map(|(_, division)| division);
        }
        self.memory.cycle(self.now);
        Ok(())
    }

    /// Starts warps of the next blocks, one a cycle.
    fn distribute(&mut self) {
        let grid = self.iss.grid();
        let slots = grid.slots(self.shape);
        let free = |(group, &(live, since)): (usize, &(u32, u64))| {
            let first = group * (slots * self.shape.lanes) as usize;
            let quiet = || self.pending[first..first + grid.threads as usize].iter().all(|&pending| pending == 0);
            (live == 0 && since <= self.now && quiet()).then_some(group)
        };
        if self.blocks == grid.blocks || !self.starts.is_empty() {
            return;
        }
        let Some(group) = self.live.iter().enumerate().find_map(free) else { return };
        for warp in 0..grid.warps(self.shape) {
            let slot = group as u32 * slots + warp;
            self.iss.start_warp(slot, self.blocks).expect("the group is free");
            self.starts.push_back(slot);
        }
        self.blocks += 1;
        self.live[group] = (grid.threads, 0);
    }

    /// The divergence unit's cycle: the turn that was chosen in the cycle before, or else a start; and the choice of
    /// the next.
    fn converge(&mut self) {
        let announced = self.outcomes.iter().any(|(at, _)| *at == self.now + 1);
        let wakes = self.wakes.front().is_some_and(|(from, _)| *from <= self.now);
        let turn = std::mem::replace(&mut self.turn, Turn::Free);
        let put_off = !matches!(turn, Turn::Free) && !self.starts.is_empty()
            || wakes && announced
            || matches!(turn, Turn::Pop(..))
            || !self.popping.is_empty();
        self.hold = self.outcomes_before == cycles(timing::OUTCOMES_BEFORE_HOLD);
        let one_more = u64::from(announced && !self.hold);
        self.outcomes_before = if put_off { self.outcomes_before + one_more } else { 0 };
        if announced {
            self.turn = Turn::Outcome;
        } else if wakes {
            let (_, slot) = self.wakes.pop_front().expect("one wakes");
            self.turn = Turn::Wake(slot);
        } else {
            self.popping.make_contiguous().sort_by_key(|(_, warp)| warp.harts[0]);
            self.turn = self.popping.pop_front().map_or(Turn::Free, |(left, warp)| Turn::Pop(left, warp));
        }
        match turn {
            Turn::Outcome => {
                let (_, outcome) = self.outcomes.pop_front().expect("it was announced");
                self.resolve(&outcome);
            }
            Turn::Wake(slot) => self.begin(slot),
            Turn::Pop(1, warp) => self.steer(warp),
            Turn::Pop(left, warp) => self.popping.push_back((left - 1, warp)),
            Turn::Free => {
                if let Some(slot) = self.starts.pop_front() {
                    let harts = (slot * self.shape.lanes) as usize..((slot + 1) * self.shape.lanes) as usize;
                    self.depth[harts.clone()].fill(0);
                    self.calls[harts].iter_mut().for_each(Vec::clear);
                    self.begin(slot);
                }
            }
        }
    }

    fn steer(&mut self, mut warp: Warp) {
        warp.front.from = self.now + cycles(timing::OUTCOME_TO_STEER + timing::STEER_TO_CHOICE);
        let mut warp = self.joined(warp);
        if self.none_preferred && warp.front.chosen.is_none() {
            let from = warp.front.from;
            fetch_next(&mut warp, from, self.ops, self.policy);
            self.none_preferred = false;
        }
        self.waiting.push(warp);
    }

    /// A warp that has come to its next instruction, with those that stand there, if they go on together.
    fn joined(&mut self, warp: Warp) -> Warp {
        for warps in [&mut self.pool, &mut self.waiting] {
            if let Some(at) = warps.iter().position(|other| self.policy.joins(other, &warp)) {
                return warps.remove(at).and(warp);
            }
        }
        warp
    }

    /// The threads of a static warp start, or are woken.
    fn begin(&mut self, slot: u32) {
        let lanes = self.shape.lanes;
        let harts = (slot * lanes..(slot + 1) * lanes).filter(|&hart| self.iss.hart(hart).is_live());
        let going: Vec<Thread> = harts.map(|hart| self.thread(hart)).collect();
        let outcome = Outcome { going, ended: Vec::new(), next: 0, meets: None };
        self.resolve(&outcome);
    }

    fn thread(&self, hart: u32) -> Thread {
        let calls = self.calls[hart as usize].last().copied().unwrap_or(0);
        Thread { hart, pc: self.iss.hart(hart).pc(), depth: self.depth[hart as usize], calls }
    }

    fn resolve(&mut self, outcome: &Outcome) {
        for (pops, warp) in self.policy.outcome(outcome) {
            match pops {
                0 => self.steer(warp),
                _ => self.popping.push_back((pops, warp)),
            }
        }
        let in_group = self.iss.grid().slots(self.shape) * self.shape.lanes;
        for hart in &outcome.ended {
            let (live, since) = &mut self.live[(hart / in_group) as usize];
            *live -= 1;
            *since = self.now + cycles(timing::OUTCOME_TO_STATE);
        }
    }

    /// Chooses whom to fetch for in the next cycle, in turn: those without an undecoded fetch. If there is none, who is
    /// steered in this cycle comes before [the others](Self::fetch_past_undecoded).
    fn fetch(&mut self) {
        self.none_preferred = !self.take_turn(false);
    }

    fn fetch_past_undecoded(&mut self) {
        if self.none_preferred {
            self.take_turn(true);
        }
    }

    /// Whether there was one.
    fn take_turn(&mut self, past_undecoded: bool) -> bool {
        let (now, buffer, harts) = (self.now, self.shape.buffer as usize, self.shape.threads());
        let wants = |front: &Front| {
            let runs = front.from <= now && front.stops.is_none_or(|last| now <= last);
            let undecoded = |chosen| now <= chosen + cycles(timing::CHOICE_TO_DECODE);
            let (last, next) = (front.chosen, past_undecoded);
            runs && front.counted(now) < buffer && last.is_none_or(|last| !undecoded(last) || next && last != now)
        };
        let turn = |warp: &&mut Warp| (warp.harts[0] + harts - self.last_fetch - 1) % harts;
        let warps = self.pool.iter_mut().chain(&mut self.waiting).filter(|warp| wants(&warp.front));
        let Some(warp) = warps.min_by_key(turn) else { return false };
        self.last_fetch = warp.harts[0];
        fetch_next(warp, now + 1, self.ops, self.policy);
        true
    }

    fn fill_pool(&mut self) {
        let (pending, ops, lanes, policy) = (&self.pending, self.ops, self.shape.lanes, &*self.policy);
        let can = |warp: &mut Warp| {
            let needs = ops.get(warp.pc as usize / 4).map_or(0, |op| op.needs);
            pending_of(warp, policy.is_one(warp), lanes, pending) & needs == 0
        };
        let ready: Vec<Warp> = self.waiting.extract_if(.., can).collect();
        for warp in ready {
            self.policy.enter(&mut self.pool, warp);
        }
    }

    /// Counts a cycle without an issue; `held`, if the divergence unit holds back what could issue.
    fn idle(&mut self, held: bool) {
        if self.now < cycles(timing::LAUNCH_TO_LIVE) {
            return;
        }
        let pending = |warp: &Warp| pending_of(warp, self.policy.is_one(warp), self.shape.lanes, &self.pending);
        let blocked = |warp: &Warp| pending(warp) != 0;
        let blocked = self.waiting.iter().any(blocked);
        let stands = self.pool.iter().any(|warp| warp.front.is_buffered(self.now));
        let cause: fn(&mut IdleCycles) -> &mut u64 = match () {
            () if held => |idle| &mut idle.divergence,
            () if stands || blocked && self.memory.loads_wait() => |idle| &mut idle.memory,
            () if blocked => |idle| &mut idle.scoreboard,
            () if self.has_warp_in_unit() => |idle| &mut idle.divergence,
            () if !self.asleep.is_empty() => |idle| &mut idle.barrier,
            () => |idle| &mut idle.no_instruction,
        };
        *cause(&mut self.counts.idle) += 1;
    }

    /// Whether all threads of a static warp are with the divergence unit.
    fn has_warp_in_unit(&self) -> bool {
        let lanes = self.shape.lanes;
        let under_way = self.outcomes.iter().filter(|(at, _)| *at > self.now).flat_map(|(_, outcome)| &outcome.going);
        let in_pipeline = self.pool.iter().chain(&self.waiting).flat_map(|warp| &warp.harts).copied();
        let elsewhere: HashSet<u32> = (in_pipeline.chain(under_way.map(|thread| thread.hart)).map(|hart| hart / lanes))
            .chain(self.asleep.iter().chain(&self.starts).copied())
            .chain(self.wakes.iter().map(|(_, slot)| *slot))
            .collect();
        let is_live = |slot: u32| (slot * lanes..(slot + 1) * lanes).any(|hart| self.iss.hart(hart).is_live());
        (0..self.shape.warps).any(|slot| !elsewhere.contains(&slot) && is_live(slot))
    }

    fn issue(&mut self) -> Result<(), ModelError> {
        let room = |warp: &Warp| match self.ops.get(warp.pc as usize / 4).map(|op| op.class) {
            Some(Class::Access) => self.memory.queued() < self.shape.requests as usize,
            Some(Class::Divide) => self.division.is_none(),
            _ => true,
        };
        let held = |front: &Front| self.hold && front.stops.is_some() && front.fetched.len() == 1;
        let could = |warp: &Warp| warp.front.is_buffered(self.now) && room(warp);
        let could: Vec<usize> = (0..self.pool.len()).filter(|&at| could(&self.pool[at])).collect();
        let can: Vec<usize> = could.iter().copied().filter(|&at| !held(&self.pool[at].front)).collect();
        if can.is_empty() {
            self.idle(!could.is_empty());
            return Ok(());
        }
        let choice = self.policy.choose(&self.pool, &can);
        let warp = self.pool.remove(choice);
        self.next_issue = self.now + u64::from(self.shape.issue_interval);
        self.execute(warp)
    }

    fn execute(&mut self, warp: Warp) -> Result<(), ModelError> {
        let Warp { pc, ref harts, .. } = warp;
        let mut ended = Vec::new();
        let mut places = Vec::new();
        let (mut kind, mut words) = (Kind::Load, true);
        let mut is_barrier = false;
        for &hart in harts {
            let step = self.iss.step(hart)?;
            if let Some(access) = step.access {
                places.push(access.place);
                words &= access.bytes == 4;
                kind = match access.operation {
                    Operation::Load => Kind::Load,
                    Operation::Store => Kind::Store,
                    Operation::Atomic { .. } | Operation::Failed => Kind::Atomic,
                };
            }
            is_barrier |= step.barrier;
            if let Some(code) = step.exit {
                ended.push(hart);
                let exit = (self.iss.hart(hart).thread(), code);
                self.failed = self.failed.into_iter().chain((code != 0).then_some(exit)).min();
            }
        }
        self.counts.issued += 1;
        self.counts.thread_instructions += harts.len() as u64;
        let paths = self.policy.paths(&warp);
        self.counts.paths += paths;
        self.counts.most_paths = self.counts.most_paths.max(paths);
        self.counts.issues.count(harts.len() as u32, self.shape.lanes);
        let op = self.ops[pc as usize / 4];
        let pending = Pending { harts: harts.clone(), rd: op.rd };
        if op.rd != 0 {
            pending.harts.iter().for_each(|&hart| self.pending[hart as usize] |= 1 << op.rd);
        }
        match op.class {
            Class::Computed | Class::Control if op.rd != 0 => {
                self.writes.push_back(self.now + cycles(timing::ISSUE_TO_WRITE));
                self.computed.push_back((self.now + cycles(self.shape.alu_latency), pending));
            }
            Class::Divide if op.rd != 0 => {
                self.division = Some((self.now + cycles(timing::ISSUE_TO_QUOTIENT), pending))
            }
            Class::Access => {
                let answered = kind == Kind::Load || op.rd != 0;
                let load = answered.then(|| self.remember(pending));
                let from = self.now + cycles(timing::ISSUE_TO_SERVED);
                self.memory.issue(Access { from, kind, load, words, places });
            }
            _ => {}
        }
        if op.class == Class::Control || self.policy.stops(&warp, pc + 4) {
            self.part(&warp, op.flow, is_barrier, ended);
        } else {
            let mut front = warp.front;
            front.fetched.pop_front();
            front.issued = Some(self.now);
            // The threads that it was to stop for may have joined others.
            front.stops = front.stops.filter(|_| !front.fetched.is_empty());
            let warp = self.joined(Warp { pc: pc + 4, front, ..warp });
            self.waiting.push(warp);
        }
        Ok(())
    }

    fn remember(&mut self, load: Pending) -> usize {
        if load.rd == 0 {
            return 0;
        }
        let free = (1..self.loads.len()).find(|&at| self.loads[at].is_none());
        let at = free.unwrap_or_else(|| {
            self.loads.push(None);
            self.loads.len() - 1
        });
        self.loads[at] = Some(load);
        at
    }

    /// The threads of a control instruction go on with its outcome, or wait at a barrier; who waited for them goes on.
    fn part(&mut self, warp: &Warp, flow: Flow, is_barrier: bool, ended: Vec<u32>) {
        let lanes = self.shape.lanes;
        let depth = self.depth[warp.harts[0] as usize];
        let meets = self.side_table.get(warp.pc as usize / 4).copied().flatten();
        let meets = meets.map(|entry| Meeting { at: entry.rpc, depth });
        let number = |calls: &[u64]| {
            let before = calls.last().copied().unwrap_or(0);
            (before ^ u64::from(warp.pc + 4)).wrapping_mul(MIX).rotate_left(32)
        };
        for &hart in &warp.harts {
            let (depth, calls) = (&mut self.depth[hart as usize], &mut self.calls[hart as usize]);
            match flow {
                Flow::Call { .. } | Flow::IndirectCall => {
                    *depth = depth.wrapping_add(1);
                    calls.push(number(calls));
                }
                Flow::Exchange => {
                    calls.pop();
                    calls.push(number(calls));
                }
                Flow::Return => {
                    *depth = depth.wrapping_sub(1);
                    calls.pop();
                }
                _ => {}
            }
        }
        let going: Vec<Thread> = if is_barrier {
            self.asleep.extend(warp.harts.iter().map(|hart| hart / lanes));
            Vec::new()
        } else {
            let still = warp.harts.iter().filter(|hart| !ended.contains(hart));
            let mut going: Vec<Thread> = still.map(|&hart| self.thread(hart)).collect();
            going.sort_by_key(|thread| thread.hart);
            going
        };
        let at = self.now + cycles(timing::ISSUE_TO_OUTCOME);
        if is_barrier || !ended.is_empty() {
            let waits = |slot: &mut u32| (*slot * lanes..(*slot + 1) * lanes).any(|hart| self.iss.hart(hart).waits());
            let mut awake: Vec<u32> = self.asleep.extract_if(.., |slot| !waits(slot)).collect();
            awake.sort_unstable();
            awake.dedup();
            self.wakes.extend(awake.into_iter().map(|slot| (at + cycles(timing::OUTCOME_TO_WAKE), slot)));
        }
        self.outcomes.push_back((at, Outcome { going, ended, next: warp.pc + 4, meets }));
    }
}

//! Follows what was recorded of the core, cycle by cycle: the simulator executes what took effect, and everything is
//! compared.

use super::effects::{self, Effect, Touch};
use super::owed::{AllOwed, Expected, Owed, name};
use super::places::{Places, What, limb, word};
use super::port::Ports;
use super::recent::Recent;
use super::reserved::Reserved;
use super::sync::Syncs;
use super::{Committed, Difference, bits, core_code};
use heddle_sim::directory::Directory;
use heddle_sim::{Engine, Records};
use heddle_simt::Shape;
use heddle_simt::isa::{self, FaultCause};
use heddle_simt::pipeline::timing::RESOLVE_TO_OUTCOME;
use heddle_testbench::grid::{Grid, GridError};
use heddle_testbench::iss::{Given, Iss, MOST, Step, Together};
use heddle_testbench::program::{Program, ProgramError};
use std::collections::VecDeque;

/// Channels in the order in which those of one cycle are followed.
const ORDER: [What; 6] = [What::Main, What::Scratchpad, What::Write, What::Exit, What::Start, What::Commit];

/// The simulator, and what it has done that the core has not yet.
pub struct Follower {
    pub iss: Iss,
    pub shape: Shape,
    pub program: Program,
    pub places: Places,
    /// Of [`ORDER`], those that there are, with their numbers.
    channels: Vec<(What, usize)>,
    /// By thread: the registers at the start of the launch.
    registers: Vec<[u32; 32]>,
    owed: AllOwed,
    /// Threads that have ended, with the cycle in which the core says so, the pc and the exit code.
    ended: VecDeque<(u64, u32, u32, u32)>,
    /// The entry point of the launch; the block and the warp of it that start next.
    entry: u32,
    next: (u32, u32),
    ports: Ports,
    reserved: Reserved,
    /// The last cycle in which something became known of an `sc.w`.
    known_since: u64,
    syncs: Syncs,
    pub recent: Recent,
    pub compared: u64,
    /// Since they were asked for last; none are kept before the first time.
    pub effects: Option<Vec<Effect>>,
    /// Room for the threads of an instruction, and what it does.
    threads: Vec<u32>,
    together: Together,
}

/// The cycle that a difference is of.
type At = (u64, Difference);

impl Follower {
    pub fn new(directory: &Directory, program: &Program, shape: &Shape) -> Result<Follower, ProgramError> {
        let places = Places::new(directory, shape);
        Ok(Follower {
            iss: Iss::new(program, shape)?,
            shape: shape.clone(),
            program: program.clone(),
            channels: ORDER.into_iter().filter_map(|what| Some((what, places.channel(what)?))).collect(),
            registers: vec![[0; 32]; shape.threads() as usize],
            owed: AllOwed::new(shape.threads()),
            ended: VecDeque::new(),
            entry: program.entry(),
            next: (0, 0),
            ports: Ports::new(shape, &places),
            reserved: Reserved::new(shape),
            known_since: 0,
            syncs: Syncs::new(shape.threads(), shape.lanes),
            recent: Recent::new(shape.threads()),
            compared: 0,
            effects: None,
            threads: Vec::with_capacity(MOST),
            together: Together::default(),
            places,
        })
    }

    pub fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        self.iss.begin(grid)?;
        self.entry = entry;
        self.next = (0, 0);
        self.owed.clear();
        self.ports.clear();
        self.ended.clear();
        self.reserved.clear();
        self.known_since = 0;
        self.syncs.clear();
        self.places.scratchpad(engine, self.iss.scratchpad_mut());
        self.places.registers(engine, &mut self.registers);
        self.recent.clear();
        Ok(())
    }

    /// Nothing becomes known of any `sc.w` any more: what is not known to succeed, fails.
    pub fn fail_the_rest(&mut self) {
        self.reserved.fail_the_rest();
    }

    /// The last cycle in which something became known that others wait for.
    pub fn known_since(&self) -> u64 {
        self.known_since
    }

    /// Follows the cycles before `end`, as far as is known what happened in them.
    pub fn look(&mut self, records: &mut Records, end: u64) -> Result<(), At> {
        let [decided, wrapped] = [What::Decided, What::Wrapped].map(|what| self.places.channel(what));
        let first = |records: &Records, channel: Option<usize>| {
            channel.and_then(|channel| Some((records.first(channel)?[0], channel))).filter(|&(cycle, _)| cycle < end)
        };
        // What becomes known in a cycle may decide what happened before, and changes nothing that was known then.
        while let Some((cycle, channel)) = first(records, wrapped).into_iter().chain(first(records, decided)).min() {
            self.follow(records, cycle)?;
            match records.first(channel) {
                Some(row) if Some(channel) == decided => {
                    self.reserved.decided(row, self.places.value(channel, row, 2));
                }
                _ => self.reserved.wrapped(),
            }
            self.known_since = cycle;
            records.take(channel);
        }
        self.follow(records, end)
    }

    /// The same, where nothing becomes known of an `sc.w`.
    fn follow(&mut self, records: &mut Records, end: u64) -> Result<(), At> {
        loop {
            let cycles = self.channels.iter().filter_map(|&(_, channel)| Some(records.first(channel)?[0]));
            let cycle = cycles.min().unwrap_or(u64::MAX).min(end);
            self.missed(cycle)?;
            if cycle == end || self.undecided(records, cycle) {
                return Ok(());
            }
            for k in 0..self.channels.len() {
                let (what, channel) = self.channels[k];
                if let Some(row) = records.first(channel).filter(|row| row[0] == cycle) {
                    self.event(what, channel, row).map_err(|difference| (cycle, difference))?;
                    records.take(channel);
                }
                if what == What::Main && !self.channels.iter().any(|&(what, _)| what == What::Scratchpad)
                    || what == What::Scratchpad
                {
                    self.late(cycle + 1)?;
                }
                if what == What::Exit {
                    self.unsaid(cycle + 1)?;
                }
            }
        }
    }

    /// Whether an `sc.w` took effect in this cycle of which it is not known whether it succeeds.
    fn undecided(&mut self, records: &Records, cycle: u64) -> bool {
        let row = self.places.channel(What::Commit).and_then(|channel| Some((channel, records.first(channel)?)));
        let Some((channel, row)) = row.filter(|(_, row)| self.shape.reservations && row[0] == cycle) else {
            return false;
        };
        if !self.is_conditional(4 * row[limb::PC] as u32) {
            return false;
        }
        let mut threads = std::mem::take(&mut self.threads);
        self.places.threads(row[limb::LANES], row[limb::SLOT] as u32, self.homes(channel, row, 3), &mut threads);
        let decided = self.reserved.is_decided(&threads);
        self.threads = threads;
        !decided
    }

    /// What should have happened before cycle `end` and did not: accesses, and ends of threads.
    fn missed(&self, end: u64) -> Result<(), At> {
        let late = self.ports.late(end);
        match self.ended.front() {
            Some(&(due, ..)) if due < end && late.as_ref().is_none_or(|&(cycle, _)| due < cycle) => self.unsaid(end),
            _ => late.map_or(Ok(()), Err),
        }
    }

    fn late(&self, end: u64) -> Result<(), At> {
        self.ports.late(end).map_or(Ok(()), Err)
    }

    /// Threads of which the core should have said before cycle `end` that they end.
    fn unsaid(&self, end: u64) -> Result<(), At> {
        match self.ended.front() {
            Some(&(due, thread, pc, _)) if due < end => {
                Err((due, Difference { thread, pc, text: "the core does not say that it ends".into() }))
            }
            _ => Ok(()),
        }
    }

    /// What a row says.
    fn event(&mut self, what: What, channel: usize, row: &[u64]) -> Result<(), Difference> {
        if matches!(what, What::Main | What::Scratchpad) {
            return self.ports.sent(&self.places, what, row);
        }
        if what == What::Start {
            return self.starts(row);
        }
        let narrow = if what == What::Exit { 2 } else { 3 };
        let wide = self.places.value(channel, row, narrow + usize::from(self.shape.mixes()));
        let mut threads = std::mem::take(&mut self.threads);
        let homes = self.homes(channel, row, narrow);
        self.places.threads(row[limb::LANES], row[limb::SLOT] as u32, homes, &mut threads);
        let followed = match what {
            What::Write => self.writes(row[limb::REGISTER] as u8, row[limb::LANES], &threads, wide),
            What::Exit => self.exits(row[limb::LANES], &threads, wide, row[0]),
            _ => self.commits(Committed { pc: 4 * row[limb::PC] as u32, threads: &threads }, row[0]),
        };
        self.threads = threads;
        followed
    }

    /// The static warp of each lane, where a slot mixes warps: a row's `k`-th probe.
    fn homes<'a>(&self, channel: usize, row: &'a [u64], k: usize) -> &'a [u64] {
        if self.shape.mixes() { self.places.value(channel, row, k) } else { &[] }
    }

    /// Whether there is an `sc.w` at a pc.
    fn is_conditional(&self, pc: u32) -> bool {
        self.shape.reservations
            && self
                .program
                .word(pc)
                .is_some_and(|word| word & 0x707f == 0x202f && word >> 27 == isa::reservation::STORE_CONDITIONAL)
    }

    /// After the last cycle of a launch that ended without a fault: nothing may be left.
    pub fn end(&self, records: &Records) -> Result<(), Difference> {
        if let Some((channel, row)) =
            self.places.channel(What::Commit).and_then(|channel| Some((channel, records.first(channel)?)))
        {
            let mut threads = Vec::new();
            self.places.threads(row[limb::LANES], row[limb::SLOT] as u32, self.homes(channel, row, 3), &mut threads);
            let text = "its sc.w never goes to memory".into();
            return Err(Difference { thread: threads[0], pc: 4 * row[limb::PC] as u32, text });
        }
        let live = (0..self.shape.threads()).find(|&thread| self.iss.hart(thread).is_live());
        if let Some(thread) = live {
            let text = "the core says that it has ended".into();
            return Err(Difference { thread, pc: self.iss.hart(thread).pc(), text });
        }
        self.all_written(0..self.shape.threads())?;
        let ((block, warp), blocks) = (self.next, self.iss.grid().blocks);
        match block < blocks {
            true => {
                let text = format!("the core says that all have ended; warp {warp} of block {block} has not started");
                Err(Difference { thread: 0, pc: self.entry, text })
            }
            false => self.ports.end(),
        }
    }

    /// No register of these threads is still to be written.
    fn all_written(&self, threads: impl Iterator<Item = u32>) -> Result<(), Difference> {
        match self.owed.first(threads) {
            Some((thread, register, Owed { pc, .. })) => {
                Err(Difference { thread, pc, text: format!("{} is never written", name(register)) })
            }
            None => Ok(()),
        }
    }

    /// The thread's next instruction must have this fault.
    pub fn faults(
        &mut self,
        thread: u32,
        cause: Option<FaultCause>,
        pc: u32,
        address: Option<u32>,
    ) -> Result<(), Difference> {
        self.at(thread, pc)?;
        let stepped = self.iss.step(thread);
        let wanted = match &stepped {
            Err(fault) => Some(core_code(fault.cause)),
            // The simulator blames the target.
            Ok(_) if self.iss.hart(thread).pc() >= self.shape.program => {
                Some((FaultCause::FetchOutOfRange, Some(self.iss.hart(thread).pc())))
            }
            Ok(_) => None,
        };
        let differs = |text: String| Err(Difference { thread, pc, text });
        let Some((_, at)) = wanted.filter(|&(want, _)| cause == Some(want)) else {
            let says = stepped.map_or_else(|fault| fault.cause.to_string(), |_| "no fault".into());
            return differs(format!("the core stops with `{}`, should be: {says}", FaultCause::describe_told(cause)));
        };
        match (address, at) {
            (Some(got), Some(want)) if got != want => {
                differs(format!("the core stops because of address {got:#x}, should be {want:#x}"))
            }
            _ => Ok(()),
        }
    }

    /// A warp that starts: the next in order, in a slot where the simulator's threads have ended and nothing is to be
    /// written.
    fn starts(&mut self, row: &[u64]) -> Result<(), Difference> {
        let [slot, pc, block] = [limb::SLOT, limb::PC, limb::BLOCK].map(|at| row[at] as u32);
        let (mask, lanes, grid) = (row[limb::LANES], self.shape.lanes, self.iss.grid());
        let first = slot * lanes;
        let differs = |text: String| Err(Difference { thread: first, pc: 4 * pc, text });
        let warp = slot % grid.slots(&self.shape);
        let (next_block, next_warp) = self.next;
        if (block, warp) != self.next {
            return differs(format!("warp {warp} of block {block} starts, should be {next_warp} of {next_block}"));
        }
        if 4 * pc != self.entry {
            return differs(format!("a warp starts at {:#010x}, should be {:#010x}", 4 * pc, self.entry));
        }
        for thread in first..first + lanes {
            let hart = self.iss.hart(thread);
            if hart.exit().is_some() {
                self.registers[thread as usize] = std::array::from_fn(|register| hart.register(register as u8));
            }
        }
        let want = match self.iss.start_warp(slot, block) {
            Ok(want) => want,
            Err(error) => return differs(error.to_string()),
        };
        if mask != want {
            return differs(format!("lanes {mask:#x} start, should be {want:#x}"));
        }
        self.next = if warp + 1 < grid.warps(&self.shape) { (block, warp + 1) } else { (block + 1, 0) };
        self.all_written(bits(mask).map(|lane| first + lane))?;
        for thread in bits(mask).map(|lane| first + lane) {
            let hart = self.iss.hart_mut(thread);
            hart.set_pc(self.entry);
            let registers = &self.registers[thread as usize];
            (0..).zip(registers).for_each(|(register, &value)| hart.set_register(register, value));
            self.recent.clear_thread(thread);
            let started = Effect { thread, pc: None, next: Some(self.entry), touch: None };
            self.effects.iter_mut().for_each(|told| told.push(started));
        }
        Ok(())
    }

    /// Exit codes against those of the instructions that ended threads.
    fn exits(&mut self, lanes: u64, threads: &[u32], codes: &[u64], now: u64) -> Result<(), Difference> {
        let mut left: Vec<(u32, u32)> =
            bits(lanes).zip(threads).map(|(lane, &thread)| (thread, word(codes, lane))).collect();
        while let Some((_, thread, pc, want)) = self.ended.pop_front_if(|(due, ..)| *due <= now) {
            let Some(at) = left.iter().position(|&(ends, _)| ends == thread) else {
                return Err(Difference { thread, pc, text: "the core does not say that it ends".into() });
            };
            let (_, got) = left.swap_remove(at);
            if got != want {
                let text = format!("its exit code is {got} in the core, should be {want}");
                return Err(Difference { thread, pc, text });
            }
        }
        match left.first() {
            None => Ok(()),
            Some(&(thread, _)) => {
                let text = "the core says that it ends, without an exit".into();
                Err(Difference { thread, pc: self.last_pc(thread), text })
            }
        }
    }

    /// Register writes against those that are owed.
    fn writes(&mut self, register: u8, lanes: u64, threads: &[u32], data: &[u64]) -> Result<(), Difference> {
        for (lane, &thread) in bits(lanes).zip(threads) {
            let got = word(data, lane);
            let Some(owed) = self.owed.take(thread, register) else {
                let text = format!("{got:#x} is written to {}, which no instruction under way writes", name(register));
                return Err(Difference { thread, pc: self.last_pc(thread), text });
            };
            let want = match owed.value {
                Expected::Exactly(want) if want != got => format!("{want:#x}"),
                Expected::AtMost(most) if got > most => format!("at most {most}"),
                Expected::Exactly(_) => continue,
                Expected::Any | Expected::AtMost(_) => {
                    self.iss.hart_mut(thread).set_register(register, got);
                    continue;
                }
            };
            let text = format!("{} is {got:#x} in the core, should be {want}", name(register));
            return Err(Difference { thread, pc: owed.pc, text });
        }
        Ok(())
    }

    /// Instructions that take effect: the simulator executes them.
    fn commits(&mut self, commit: Committed, now: u64) -> Result<(), Difference> {
        let Committed { pc, threads } = commit;
        threads.iter().try_for_each(|&thread| self.at(thread, pc))?;
        let word = self.program.word(pc);
        let mut with = Vec::new();
        if self.shape.warp_primitives {
            let of_warp = word.filter(|&word| isa::warp::has(word));
            let syncs = of_warp.is_some_and(isa::warp::syncs);
            let gone_on = self.syncs.go_on(&self.iss, commit, of_warp.is_some() && !syncs);
            let followed = gone_on.and_then(|()| if syncs { self.syncs.arrive(&self.iss, commit) } else { Ok(()) });
            followed.map_err(|(thread, text)| Difference { thread, pc, text })?;
            with = of_warp.map_or(with, |_| self.iss.together(threads));
        }
        // Reservations are followed access by access.
        let reserves = self.shape.reservations && word.is_some_and(|word| matches!(word & 0x7f, 0x03 | 0x23 | 0x2f));
        if reserves || !self.commits_together(commit, now)? { self.commits_apart(commit, &with, now) } else { Ok(()) }
    }

    /// The same for what threads do at once; false if they do not.
    fn commits_together(&mut self, commit: Committed, now: u64) -> Result<bool, Difference> {
        let Committed { pc, threads } = commit;
        let stepped = self.iss.step_together(threads, &mut self.together).map_err(|(at, fault)| {
            self.compared += at as u64;
            takes_effect(threads[at], pc, fault.cause)
        })?;
        if !stepped {
            return Ok(false);
        }
        let Together { rd, values, counter, accesses, .. } = &self.together;
        for (place, (&thread, &value)) in threads.iter().zip(values).enumerate() {
            self.compared += 1;
            self.recent.push(thread, pc);
            let touch = accesses.get(place).map(|&access| Touch::of(access, false));
            effects::tell(&mut self.effects, &self.iss, thread, pc, touch);
            if let &Some(register) = rd {
                let value = if *counter { Expected::Any } else { Expected::Exactly(value) };
                add(&mut self.owed, thread, register, Owed { pc, value })?;
            }
        }
        if !self.together.accesses.is_empty() {
            self.ports.expect(pc, threads.iter().copied().zip(self.together.accesses.iter().copied()), now);
        }
        Ok(true)
    }

    /// The same, thread by thread; `with` is what each of them brings to an instruction that all execute together.
    fn commits_apart(&mut self, commit: Committed, with: &[(u32, u32)], now: u64) -> Result<(), Difference> {
        let Committed { pc, threads } = commit;
        // Of an `sc.w`, those that succeed come first: they may be why others fail.
        let conditional = self.is_conditional(pc);
        let decided = |&thread: &u32| (thread, !conditional || self.reserved.take(thread));
        let mut order: Vec<(u32, bool)> = threads.iter().map(decided).collect();
        order.sort_by_key(|&(_, succeeds)| !succeeds);
        let mut accesses = Vec::new();
        for (thread, succeeds) in order {
            let differs = |text: String| Difference { thread, pc, text };
            let reserved = self.iss.reserved(thread);
            let step = self.iss.step_as(thread, Given { fails: !succeeds, together: with });
            let step = step.map_err(|fault| takes_effect(thread, pc, fault.cause))?;
            if let Some(access) = step.access.filter(|_| self.shape.reservations) {
                self.reserved.follow(thread, &step, access, reserved, succeeds).map_err(differs)?;
            }
            self.compared += 1;
            self.recent.push(thread, pc);
            let touch = step.access.map(|access| Touch::of(access, conditional));
            effects::tell(&mut self.effects, &self.iss, thread, pc, touch);
            if let Some((register, _)) = step.rd {
                let value = self.expected(&step);
                add(&mut self.owed, thread, register, Owed { pc, value })?;
            }
            if let Some(code) = step.exit {
                self.ended.push_back((now + u64::from(RESOLVE_TO_OUTCOME), thread, pc, code));
            }
            accesses.extend(step.access.map(|access| (thread, access)));
        }
        self.reserved.scattered(&accesses);
        self.ports.expect(pc, accesses.into_iter(), now);
        Ok(())
    }

    /// What a step must write.
    fn expected(&self, step: &Step) -> Expected {
        match (step.counter, step.rd) {
            (true, _) if step.word & 0x7f == isa::CUSTOM => {
                Expected::AtMost(if self.shape.convergence_barriers > 0 { self.shape.lanes } else { 0 })
            }
            (false, Some((_, value))) => Expected::Exactly(value),
            _ => Expected::Any,
        }
    }

    /// The thread must be at this pc, and run.
    fn at(&self, thread: u32, pc: u32) -> Result<(), Difference> {
        let hart = self.iss.hart(thread);
        let text = match () {
            () if !hart.is_live() => "has ended, and executes an instruction".into(),
            () if hart.waits() => "waits at a barrier, and executes an instruction".into(),
            () if hart.pc() != pc => format!("is at {pc:#010x} in the core, should be at {:#010x}", hart.pc()),
            () => return Ok(()),
        };
        Err(Difference { thread, pc, text })
    }

    fn last_pc(&self, thread: u32) -> u32 {
        self.recent.of(thread).next_back().unwrap_or(0)
    }
}

/// A write is owed from now on.
fn add(all: &mut AllOwed, thread: u32, register: u8, owed: Owed) -> Result<(), Difference> {
    all.add(thread, register, owed).map_err(|before| {
        let text = format!("{} is still to be written by {:#x}", name(register), before.pc);
        Difference { thread, pc: owed.pc, text }
    })
}

fn takes_effect(thread: u32, pc: u32, cause: heddle_testbench::iss::Cause) -> Difference {
    Difference { thread, pc, text: format!("takes effect, should be a fault: {cause}") }
}

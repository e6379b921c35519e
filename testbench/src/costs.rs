//! Where the cycles of a run went: by instruction, and over time.
//!
//! **Cycles.** In each cycle of a launch an instruction issues, or the cycle is lost for one [`Cause`], as the core counts
//! them ([`heddle_simt::metrics`]), or no thread is live. An issue is a cycle of its instruction. A lost cycle is that
//! of the instructions that a warp waits with or behind, each of which gets the same share of it:
//!
//! | cause | instructions |
//! |---|---|
//! | `memory` | the first of each warp's buffer that waits for a unit, or for a register while a load is under way |
//! | `scoreboard` | those that wait for a register |
//! | `divergence` | those that the divergence unit holds back; if none, the last that issued of each warp whose threads the unit has |
//! | `barrier` | the last that issued of each warp, the barrier |
//! | `interval` | the one whose issue takes this cycle, too |
//! | `no_instruction` | the last that issued of each warp that does not wait at a barrier: the branch or jump whose outcome its front end waits for |
//!
//! A warp that has not issued yet waits with the first instruction of the program. So the shares of all instructions
//! sum up to the counters of the run's [`Summary`](crate::machine::Summary).
//!
//! **Accesses.** Instructions that access memory go there in the order in which they take effect, in one group of lanes
//! or in several; and the cache looks at what goes there in that order. So each group and each visit of the cache is
//! found to be of an instruction.

mod time;

pub use time::{Bin, COLUMNS, STATES, State, Time};

use crate::Program;
use crate::machine::{Cause, Chosen, Committed, Cycle, Found, TraceLine, Wait};
use heddle_simt::{Replay, Shape};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

/// Cycles by cause.
pub type Lost = [f64; Cause::ALL.len()];

/// What an instruction cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instruction {
    /// How often it issued, for a warp or a part of one.
    pub issues: u64,
    /// Those of its issues that were for lanes which an access left behind.
    pub replays: u64,
    /// Thread instructions that took effect.
    pub threads: u64,
    /// Its shares of cycles without an issue.
    pub lost: Lost,
    /// Of a branch or an indirect jump: how often it took effect, and how often threads went different ways.
    pub executed: u64,
    /// See `executed`.
    pub diverged: u64,
    /// If it accesses memory.
    pub access: Option<Access>,
}

impl Instruction {
    /// Cycles: of its issues, and its shares of others.
    pub fn cycles(&self) -> f64 {
        self.issues as f64 + self.lost.iter().sum::<f64>()
    }
}

/// What an instruction that accesses memory did there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// How often it went to memory for all its lanes; those of them whose lanes went together.
    pub executed: u64,
    /// See `executed`.
    pub coalesced: u64,
    /// Groups of lanes that went together.
    pub accesses: u64,
    /// Groups that left lanes behind: in main memory, since they go elsewhere; in the scratchpad, since they want the
    /// same bank.
    pub parts: u64,
    /// See `parts`.
    pub conflicts: u64,
    /// What groups found in the data cache.
    pub hits: u64,
    /// See `hits`.
    pub misses: u64,
    /// See `hits`.
    pub joined: u64,
}

/// What a run cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// By address.
    pub instructions: BTreeMap<u32, Instruction>,
    /// Over time.
    pub time: Time,
    /// Cycles of each launch.
    pub launches: Vec<Range<u64>>,
}

/// An access on its way.
struct UnderWay {
    pc: u32,
    /// None of its lanes has gone.
    whole: bool,
    is_new: bool,
}

/// Accounts for a run, cycle by cycle.
pub struct Account {
    costs: Costs,
    program: Program,
    split: bool,
    has_cache: bool,
    /// What issues in this cycle: its warp, lanes, address.
    issues: Option<(u32, Vec<bool>, u32)>,
    /// The last that issued of each warp, and of all.
    last: Vec<u32>,
    last_of_all: u32,
    /// Whether what issued last of a warp at an address was a replay.
    replays: HashMap<(u32, u32), bool>,
    /// What took effect and is to go to memory; what went there and is to come to the cache.
    under_way: VecDeque<UnderWay>,
    to_cache: VecDeque<u32>,
}

impl Account {
    /// Of a program on a core; over time in these cycles.
    pub fn new(program: &Program, shape: &Shape, range: Range<u64>) -> Account {
        Account {
            costs: Costs { instructions: BTreeMap::new(), time: Time::new(shape, range), launches: Vec::new() },
            program: program.clone(),
            split: shape.replay == Replay::Split,
            has_cache: shape.cache.is_some(),
            issues: None,
            last: vec![program.entry(); shape.warps as usize],
            last_of_all: program.entry(),
            replays: HashMap::new(),
            under_way: VecDeque::new(),
            to_cache: VecDeque::new(),
        }
    }

    /// The next launch: its threads are others.
    pub fn launched(&mut self) {
        self.last.fill(self.program.entry());
        self.replays.clear();
        self.under_way.clear();
        self.to_cache.clear();
        self.costs.launches.push(0..0);
    }

    /// An instruction issues, in the cycle that is told of next.
    pub fn issued(&mut self, line: &TraceLine) {
        let count = self.costs.instructions.entry(line.pc).or_default();
        count.issues += 1;
        count.replays += u64::from(line.replay);
        self.replays.insert((line.warp, line.pc), line.replay);
        self.issues = Some((line.warp, line.mask.iter().by_vals().collect(), line.pc));
    }

    /// A cycle.
    pub fn cycle(&mut self, cycle: &Cycle) {
        let at = cycle.cycle;
        let launch = self.costs.launches.last_mut().expect("cycles are those of a launch");
        if launch.is_empty() {
            // The launch itself takes a cycle, in which nothing is live.
            *launch = at.saturating_sub(1)..at;
            self.costs.time.nothing(launch.start);
        }
        launch.end = at + 1;
        if let Some((warp, pc)) = cycle.started {
            self.last[warp as usize] = pc;
        }
        if let Some(cause) = cycle.lost {
            self.lose(cause, cycle);
        }
        let issues = self.issues.take();
        self.costs.time.cycle(cycle, issues.as_ref().map(|(warp, lanes, _)| (*warp, &lanes[..])));
        if let Some((warp, _, pc)) = issues {
            self.last[warp as usize] = pc;
            self.last_of_all = pc;
        }
        // In the order of stages, the last first: what takes effect goes to memory in a later cycle.
        if let Some(found) = cycle.found {
            self.found(found);
        }
        if let Some(chosen) = cycle.chosen {
            self.chosen(chosen);
        }
        if let Some(committed) = cycle.committed {
            self.committed(committed);
        }
    }

    /// What there is so far.
    pub fn costs(self) -> Costs {
        self.costs
    }

    fn lose(&mut self, cause: Cause, cycle: &Cycle) {
        let mut pcs = self.waiting(cause, cycle);
        if pcs.is_empty() {
            pcs.push(self.program.entry());
        }
        let share = 1.0 / pcs.len() as f64;
        for pc in pcs {
            self.costs.instructions.entry(pc).or_default().lost[cause as usize] += share;
        }
    }

    /// The instructions that are to blame for a cycle.
    fn waiting(&self, cause: Cause, cycle: &Cycle) -> Vec<u32> {
        let heads = |of: &dyn Fn(Wait) -> bool| -> Vec<u32> {
            cycle.slots.iter().filter(|slot| slot.wait.is_some_and(of)).filter_map(|slot| slot.pc).collect()
        };
        let last = |of: &dyn Fn(u32) -> bool| -> Vec<u32> {
            (0..).zip(&self.last).filter(|(warp, _)| of(*warp)).map(|(_, &pc)| pc).collect()
        };
        match cause {
            Cause::Interval => vec![self.last_of_all],
            Cause::Memory => heads(&|wait| wait == Wait::Unit || (wait == Wait::Register && cycle.loads_under_way)),
            Cause::Scoreboard => heads(&|wait| wait == Wait::Register),
            Cause::Divergence => {
                let held = heads(&|wait| wait == Wait::Held);
                if held.is_empty() { last(&|warp| cycle.in_unit.bit(warp)) } else { held }
            }
            Cause::Barrier => last(&|warp| cycle.live.bit(warp)),
            Cause::NoInstruction => last(&|warp| cycle.live.bit(warp) && !cycle.waiting.bit(warp)),
        }
    }

    fn committed(&mut self, Committed { warp, pc, lanes, rest }: Committed) {
        let count = self.costs.instructions.entry(pc).or_default();
        count.threads += u64::from(lanes);
        match self.program.word(pc).map(|word| word & 0x7f) {
            Some(BRANCH) => {
                count.executed += 1;
                count.diverged += u64::from(rest > 0 && rest < lanes);
            }
            Some(INDIRECT_JUMP) => {
                count.executed += 1;
                count.diverged += u64::from(rest > 0);
            }
            Some(LOAD | STORE | ATOMIC) => {
                let is_new = !(self.split && self.replays.get(&(warp, pc)).copied().unwrap_or(false));
                self.under_way.push_back(UnderWay { pc, whole: true, is_new });
            }
            _ => {}
        }
    }

    fn chosen(&mut self, Chosen { parts, to_scratchpad, .. }: Chosen) {
        let Some(first) = self.under_way.front_mut() else { return };
        let pc = first.pc;
        let count = self.costs.instructions.entry(pc).or_default().access.get_or_insert_default();
        count.accesses += 1;
        if first.whole && first.is_new {
            count.executed += 1;
            count.coalesced += u64::from(!parts);
        }
        count.parts += u64::from(parts && !to_scratchpad);
        count.conflicts += u64::from(parts && to_scratchpad);
        first.whole = false;
        if self.split || !parts {
            self.under_way.pop_front();
        }
        if self.has_cache && !to_scratchpad {
            self.to_cache.push_back(pc);
        }
    }

    fn found(&mut self, found: Found) {
        let Some(pc) = self.to_cache.pop_front() else { return };
        let count = self.costs.instructions.entry(pc).or_default().access.get_or_insert_default();
        match found {
            Found::Hit => count.hits += 1,
            Found::Miss => count.misses += 1,
            Found::Joined => count.joined += 1,
        }
    }
}

const LOAD: u32 = 0x03;
const STORE: u32 = 0x23;
const ATOMIC: u32 = 0x2f;
const BRANCH: u32 = 0x63;
const INDIRECT_JUMP: u32 = 0x67;

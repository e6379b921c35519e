//! What a core did over all launches, from its counters: those of a simulation, or those that a host tells.

use crate::grid::Grid;
use heddle_simt::Shape;
use heddle_simt::metrics::Counts;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// What the core did, over all launches.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Launches.
    pub launches: u32,
    /// Blocks that were launched.
    pub blocks: u64,
    /// Their threads.
    pub threads: u64,
    /// The warps that these are in, some of which may be partly empty.
    pub launched_warps: u64,
    /// The most warps of a launch that are resident at once, if its blocks fit or others follow them.
    pub resident_warps: u32,
    /// The most waves of a launch: its blocks over those that are resident at once, rounded up.
    pub waves: u32,
    /// Cycles from the first fetch to the last exit of each launch.
    pub cycles: u64,
    /// Thread instructions that took effect.
    pub thread_instructions: u64,
    /// Instructions issued.
    pub warp_instructions: u64,
    /// Thread instructions a cycle.
    pub thread_ipc: f64,
    /// Warp instructions a cycle.
    pub warp_ipc: f64,
    /// Active lanes an issued instruction, of all lanes.
    pub simt_efficiency: f64,
    /// Paths of the issuing warp that can be scheduled, an issued instruction: 1, or up to 2 under
    /// [`heddle_simt::Divergence::DUAL_PATH`]. (`dual-path-execution.txt` Equation 1)
    pub avg_path: f64,
    /// Cycles without an issue, by cause.
    pub idle: IdleCycles,
    /// Accesses that went to memory or scratchpad, each of all lanes that are served together.
    pub accesses: u64,
    /// Those of them that left lanes of their instruction behind, to be replayed or served after them.
    pub parts: u64,
    /// The greatest number of paths that a warp held.
    pub most_paths: u64,
    /// The greatest number of levels of its stack that a warp had in use.
    pub most_levels: u64,
    /// Paths that became one with another.
    pub convergences: u64,
    /// Paths that went to the cold context table.
    pub cct_insertions: u64,
    /// Paths that came back from it.
    pub cct_extractions: u64,
    /// Exchanges by its sorter.
    pub cct_swaps: u64,
    /// What the data cache did, if there is one.
    pub cache: Option<CacheVisits>,
    /// What its second level did, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_level: Option<SecondLevelVisits>,
    /// Cycles in which nothing issued, although one could, and the divergence unit had all threads of a warp or held back
    /// what could issue, whatever other warps waited for; of all causes, and not one of [`Summary::idle`]. In simulations only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_beside_unit: Option<u64>,
    /// What kept more from being under way in memory.
    #[serde(default)]
    pub memory_limits: MemoryLimits,
    /// What convergence barriers did, in a core that has some.
    pub convergence: Option<Convergence>,
    /// Times that a path gave way to others of its warp, in a core where paths do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_way: Option<u64>,
    /// Warps before and after compactions, where a [monitor](crate::machine::Monitor) counts them.
    pub compaction: Option<Compactions>,
    /// Decisions of warps to wait for a compaction or not, likewise.
    pub prediction: Option<Prediction>,
    /// Cycles without an issue in which a warp that is ahead of its block is held at a branch or jump that the side table
    /// calls uniform, and that is no call or return. Likewise, where warps go ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ahead: Option<u64>,
    /// Opportunities to issue that were not taken while nothing but writes under way kept a block from forming warps anew.
    /// Likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed: Option<u64>,
    /// Instructions issued, by active lanes, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<Issues>,
}

/// Parts of a warp's lanes that [`Issues`] tells apart.
pub const PARTS: usize = 8;

/// Instructions issued with up to an eighth of the lanes active, with more and up to two eighths, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Issues(pub [u64; PARTS]);

impl Issues {
    /// An instruction issues with so many of a warp's lanes active, at least one.
    pub fn count(&mut self, active: u32, lanes: u32) {
        self.0[(PARTS as u32 * active).div_ceil(lanes) as usize - 1] += 1;
    }
}

/// How often threads at convergence barriers went on, by reason, and what else they came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Convergence {
    /// All that participated waited; without those who waited for nobody.
    pub complete: u64,
    /// As many waited as the last arrival asked for.
    pub threshold: u64,
    /// No path of the warp could run.
    pub stuck: u64,
    /// They had waited long.
    pub patience: u64,
    /// Participants that came to another place than those who waited, and went on.
    pub fell_through: u64,
    /// Times that a path gave way to others of its warp.
    pub gave_way: u64,
}

/// Warps before and after compactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Compactions {
    /// Times that threads which a branch or jump sent one way became warps.
    pub times: u64,
    /// Warps that came there with at least one of these threads.
    pub warps_before: u64,
    /// Warps that ran them afterwards.
    pub warps_after: u64,
    /// The most entries that a block's stack had in use, as `thread-block-compaction.txt` has them: what runs, the sides
    /// that have not run, and the groups that reconverge with others later.
    pub most_entries: u64,
}

/// A warp's decisions at branches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Prediction {
    /// It did not wait, and that was right.
    pub bypass_right: u64,
    /// It did not wait, and had it done so there would have been fewer warps.
    pub bypass_wrong: u64,
    /// It waited, as it had to for the fewest warps.
    pub stall_right: u64,
    /// It waited in vain.
    pub stall_wrong: u64,
    /// Of those that did not wait to form warps: it went as a whole to where threads reconverge, and waited there.
    #[serde(default)]
    pub bypass_waits: u64,
}

impl Prediction {
    /// All decisions.
    pub fn all(&self) -> u64 {
        self.bypass_right + self.bypass_wrong + self.stall_right + self.stall_wrong
    }

    /// The share of those that are right; none without a decision.
    pub fn accuracy(&self) -> Option<f64> {
        let right = self.bypass_right + self.stall_right;
        (self.all() > 0).then(|| right as f64 / self.all() as f64)
    }
}

/// Cycles in which there could not be more under way in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryLimits {
    /// An access waited for an entry of the load queue (`--loads`).
    pub loads: u64,
    /// A request waited at the cache, since as many misses as it can have were under way.
    pub misses: u64,
    /// The same at the second level.
    #[serde(default)]
    pub second_level: u64,
}

/// What requests found in the data cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CacheVisits {
    /// Loads and atomic operations with a result that found their line.
    pub hits: u64,
    /// Those that did not.
    pub misses: u64,
    /// Those that found that it was already asked for.
    pub joined: u64,
    /// Stores, and atomic operations without a result, that found their line or that it was asked for.
    pub silent_hits: u64,
    /// Those that did not.
    pub silent_misses: u64,
}

/// What requests found in the second level, and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SecondLevelVisits {
    /// What they found.
    #[serde(flatten)]
    pub found: CacheVisits,
    /// Lines that were written and were replaced.
    pub write_backs: u64,
    /// Cycles in which the channel to memory was taken.
    pub channel: u64,
}

/// Cycles in which nothing issued.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct IdleCycles {
    /// Front ends wait for outcomes.
    pub no_instruction: u64,
    /// The divergence unit, or the other path of a warp, holds back what could issue; or nothing else is the cause, and
    /// all threads of a warp wait in the unit, as for others of their block.
    #[serde(default)]
    pub divergence: u64,
    /// An issue takes several cycles, and this is one after its first: no opportunity to issue.
    #[serde(default)]
    pub interval: u64,
    /// Instructions wait for registers.
    pub scoreboard: u64,
    /// Instructions wait for loads or for a unit.
    pub memory: u64,
    /// All threads wait at barriers.
    pub barrier: u64,
    /// Cycles of the simulation in which no thread was live: between launch and first fetch, and after the last exit.
    pub nothing_live: u64,
}

/// The counters of launches, summed up.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    pub summary: Summary,
    /// Paths that could be scheduled, summed over instructions issued.
    schedulable: u64,
}

impl Counted {
    /// Adds a launch that took so many cycles, those before the first and after the last live thread included.
    pub fn add(&mut self, shape: &Shape, grid: Grid, cycles: u64, counts: &Counts<u64>) {
        let s = &mut self.summary;
        s.add_grid(shape, grid);
        s.cycles += counts.cycles;
        s.thread_instructions += counts.committed;
        s.warp_instructions += counts.issued;
        s.idle += IdleCycles {
            no_instruction: counts.idle_no_instruction,
            divergence: counts.idle_divergence,
            interval: counts.idle_interval.unwrap_or_default(),
            scoreboard: counts.idle_scoreboard,
            memory: counts.idle_memory,
            barrier: counts.idle_barrier,
            nothing_live: cycles.saturating_sub(counts.cycles),
        };
        s.accesses += counts.accesses;
        s.parts += counts.parts;
        self.schedulable += counts.schedulable;
        s.most_levels = s.most_levels.max(counts.most_levels);
        s.most_paths = s.most_paths.max(counts.most_paths);
        s.convergences += counts.merges;
        s.cct_insertions += counts.inserts;
        s.cct_extractions += counts.extracts;
        s.cct_swaps += counts.swaps;
        if let Some(released) = &counts.released {
            *s.convergence.get_or_insert_default() += Convergence {
                complete: released.complete,
                threshold: released.threshold,
                stuck: released.stuck,
                patience: released.patience,
                fell_through: released.fell_through,
                gave_way: counts.gave_way.unwrap_or_default(),
            };
        }
        if let Some(gave_way) = counts.gave_way {
            *s.gave_way.get_or_insert_default() += gave_way;
        }
        s.set_rates(shape.lanes);
        s.avg_path = ratio(self.schedulable, s.warp_instructions);
    }
}

impl Summary {
    /// Adds a launch of a grid that the core can run, without what it comes to.
    pub fn add_grid(&mut self, shape: &Shape, grid: Grid) {
        let (blocks, warps) = (u64::from(grid.blocks), grid.warps(shape));
        let at_once = grid.resident(shape);
        self.launches += 1;
        self.blocks += blocks;
        self.threads += blocks * u64::from(grid.threads);
        self.launched_warps += blocks * u64::from(warps);
        self.resident_warps = self.resident_warps.max(warps * at_once.min(grid.blocks));
        self.waves = self.waves.max(grid.blocks.div_ceil(at_once));
    }

    /// The rates that follow from the counts, of a core of so many lanes.
    pub fn set_rates(&mut self, lanes: u32) {
        self.thread_ipc = ratio(self.thread_instructions, self.cycles);
        self.warp_ipc = ratio(self.warp_instructions, self.cycles);
        self.simt_efficiency = ratio(self.thread_instructions, self.warp_instructions * u64::from(lanes));
    }

    /// What several runs of a program did together, with other inputs each, on a core of so many lanes. Counts are summed
    /// up, and what is most is that of any; launches, blocks and threads are those of the first.
    pub fn together(runs: &[Summary], lanes: u32) -> Option<Summary> {
        let (first, more) = runs.split_first()?;
        let mut all = *first;
        for s in more {
            let schedulable = all.avg_path * all.warp_instructions as f64 + s.avg_path * s.warp_instructions as f64;
            all.cycles += s.cycles;
            all.thread_instructions += s.thread_instructions;
            all.warp_instructions += s.warp_instructions;
            all.avg_path = schedulable / all.warp_instructions.max(1) as f64;
            all.idle += s.idle;
            all.accesses += s.accesses;
            all.parts += s.parts;
            all.most_paths = all.most_paths.max(s.most_paths);
            all.most_levels = all.most_levels.max(s.most_levels);
            all.convergences += s.convergences;
            all.cct_insertions += s.cct_insertions;
            all.cct_extractions += s.cct_extractions;
            all.cct_swaps += s.cct_swaps;
            all.memory_limits += s.memory_limits;
            add(&mut all.idle_beside_unit, s.idle_beside_unit);
            add(&mut all.cache, s.cache);
            add(&mut all.second_level, s.second_level);
            add(&mut all.convergence, s.convergence);
            add(&mut all.gave_way, s.gave_way);
            add(&mut all.compaction, s.compaction);
            add(&mut all.prediction, s.prediction);
            add(&mut all.held_ahead, s.held_ahead);
            add(&mut all.owed, s.owed);
            add(&mut all.issues, s.issues);
        }
        all.set_rates(lanes);
        Some(all)
    }

    /// Opportunities to issue that were not taken, of all: cycles that an issue takes after its first are none.
    pub fn idle_share(&self) -> f64 {
        let opportunities = self.cycles - self.idle.interval;
        ratio(opportunities - self.warp_instructions, opportunities)
    }

    /// Opportunities to issue that the divergence unit takes away, of all.
    pub fn divergence_share(&self) -> f64 {
        ratio(self.idle.divergence, self.cycles - self.idle.interval)
    }

    /// Opportunities to issue that the divergence unit or memory takes away, of all.
    pub fn held_share(&self) -> f64 {
        ratio(self.idle.divergence + self.idle.memory, self.cycles - self.idle.interval)
    }
}

/// What both have.
fn add<T: AddAssign>(sum: &mut Option<T>, more: Option<T>) {
    if let Some((sum, more)) = sum.as_mut().zip(more) {
        *sum += more;
    }
}

impl AddAssign for IdleCycles {
    fn add_assign(&mut self, more: IdleCycles) {
        self.no_instruction += more.no_instruction;
        self.divergence += more.divergence;
        self.interval += more.interval;
        self.scoreboard += more.scoreboard;
        self.memory += more.memory;
        self.barrier += more.barrier;
        self.nothing_live += more.nothing_live;
    }
}

impl AddAssign for Issues {
    fn add_assign(&mut self, more: Issues) {
        self.0.iter_mut().zip(more.0).for_each(|(sum, more)| *sum += more);
    }
}

impl AddAssign for MemoryLimits {
    fn add_assign(&mut self, more: MemoryLimits) {
        self.loads += more.loads;
        self.misses += more.misses;
        self.second_level += more.second_level;
    }
}

impl AddAssign for Convergence {
    fn add_assign(&mut self, more: Convergence) {
        self.complete += more.complete;
        self.threshold += more.threshold;
        self.stuck += more.stuck;
        self.patience += more.patience;
        self.fell_through += more.fell_through;
        self.gave_way += more.gave_way;
    }
}

impl AddAssign for Compactions {
    fn add_assign(&mut self, more: Compactions) {
        self.times += more.times;
        self.warps_before += more.warps_before;
        self.warps_after += more.warps_after;
        self.most_entries = self.most_entries.max(more.most_entries);
    }
}

impl AddAssign for Prediction {
    fn add_assign(&mut self, more: Prediction) {
        self.bypass_right += more.bypass_right;
        self.bypass_wrong += more.bypass_wrong;
        self.stall_right += more.stall_right;
        self.stall_wrong += more.stall_wrong;
        self.bypass_waits += more.bypass_waits;
    }
}

impl AddAssign for CacheVisits {
    fn add_assign(&mut self, more: CacheVisits) {
        self.hits += more.hits;
        self.misses += more.misses;
        self.joined += more.joined;
        self.silent_hits += more.silent_hits;
        self.silent_misses += more.silent_misses;
    }
}

impl AddAssign for SecondLevelVisits {
    fn add_assign(&mut self, more: SecondLevelVisits) {
        self.found += more.found;
        self.write_backs += more.write_backs;
        self.channel += more.channel;
    }
}

/// 0 where there is nothing to divide by.
fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_together_are_as_one_that_did_both() {
        let run = |n: u64| {
            let idle = IdleCycles { memory: 10 * n, ..IdleCycles::default() };
            let compaction =
                Some(Compactions { times: n, warps_before: 3 * n, warps_after: 2 * n, most_entries: 9 - n });
            let issues = Some(Issues([n; PARTS]));
            let counts = Summary {
                launches: 1,
                cycles: 100 * n,
                thread_instructions: 200,
                warp_instructions: 50,
                ..Summary::default()
            };
            Summary { idle, compaction, issues, avg_path: n as f64, most_levels: n, ..counts }
        };
        assert_eq!(Summary::together(&[], 8), None);
        let both = Summary::together(&[run(1), run(3)], 8).unwrap();
        assert_eq!((both.launches, both.cycles, both.thread_ipc, both.simt_efficiency), (1, 400, 1.0, 0.5));
        assert_eq!((both.idle.memory, both.avg_path, both.most_levels), (40, 2.0, 3));
        let made = Compactions { times: 4, warps_before: 12, warps_after: 8, most_entries: 8 };
        assert_eq!((both.compaction, both.issues, both.cache), (Some(made), Some(Issues([4; PARTS])), None));
    }
}

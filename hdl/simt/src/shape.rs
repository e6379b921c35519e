//! The configuration of a core: one struct, checked once.

use crate::divergence::mechanism::Divergence;
use crate::isa::convergence;
use crate::pipeline::timing::{ACCESS_TO_ANSWER, LEAST_BUFFER};
use heddle_hdl::{Width, index_width};

/// What can be chosen about a core. [`Shape::check`] says whether a choice can be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Threads of a warp: 1, 2, 4 … 64.
    pub lanes: u32,
    /// Warps of the core: 1, 2, 4 … 64.
    pub warps: u32,
    /// Bytes of memory from address 0: a power of two, 4 KiB … 64 MiB, at least the program memory.
    pub memory: u32,
    /// Bytes of instruction memory, a copy of the bottom of memory: a power of two, 1 KiB … 16 MiB.
    pub program: u32,
    /// Bytes of stack of each thread, at the top of memory: a power of two, 64 … 1 MiB.
    pub stack: u32,
    /// The mechanism that decides what runs when the threads of a warp disagree.
    pub divergence: Divergence,
    /// Levels of a warp's stack, for mechanisms that have one: 1 … lanes - 1; without a number `lanes - 1`, which are always
    /// enough. Of a block's stack: 1 … threads - 1, without a number [`DEFAULT_LEVELS`] or as many as are always enough. A program
    /// that needs more ends with a fault.
    ///
    /// [`DEFAULT_LEVELS`]: crate::divergence::block_stack::DEFAULT_LEVELS
    pub levels: Option<u32>,
    /// Under [`Divergence::DUAL_PATH`]: which paths of a warp are considered for issue in a cycle.
    pub path_scheduler: PathScheduler,
    /// Under [`Divergence::DUAL_PATH`]: a suspended path runs where a side of its warp is free.
    pub path_forwarding: bool,
    /// Under [`Divergence::BLOCK_STACK`]: where the warps of a block wait for each other, and what becomes of them.
    pub compaction: Compaction,
    /// Under [`Compaction::Predict`]: the prediction table.
    pub capt: Capt,
    /// Stacks let threads meet at likely-convergence points, too.
    pub likely: bool,
    /// Bits of the call depth that paths are sorted by: 1 … 16. A deeper call is an assertion failure.
    pub depth_bits: u32,
    /// The instruction `barrier`. Without it, it is illegal, and the divergence unit has no logic for threads that wait.
    pub barriers: bool,
    /// Convergence barriers of a warp: 0 … 16. Without any, their instructions do nothing. Only under [`Divergence::PATH_TABLE`].
    pub convergence_barriers: u32,
    /// Outcomes of a warp without an arrival, after which threads that wait at a convergence barrier go on, and after which its
    /// active path gives way to others while threads wait or have waited: a power of two, 32 … 65536.
    pub patience: u32,
    /// Where paths become one. [`Merge::Barriers`] needs convergence barriers and [`Replay::Serialise`].
    pub merge: Merge,
    /// Entries of a slot's instruction buffer: 4, 8 or 16.
    pub buffer: u32,
    /// Cycles from one issue to the next, of all slots: 1, 2, 4 or 8. More than 1 is the time of a core whose warps take turns on
    /// fewer ALUs, a warp of 32 threads on 8 in 4 cycles, for studies: there are `lanes` ALUs all the same.
    pub issue_interval: u32,
    /// Which slot issues when several could.
    pub schedule: Schedule,
    /// Loads that may be under way at once: a power of two, 2 … 64.
    pub loads: u32,
    /// The address of a register bank: one for all lanes, or one a lane (for mechanisms that mix warps).
    pub bank_address: BankAddress,
    /// Which lanes of a memory access go together.
    pub coalescing: Coalescing,
    /// What becomes of the lanes that do not.
    pub replay: Replay,
    /// Memory instructions that may wait for the memory port: a power of two, 2 … 64. Only where something can wait:
    /// under [`Replay::Serialise`], or before a memory that does not take a request in every cycle.
    pub requests: u32,
    /// Bytes of scratchpad, shared among the resident blocks: a power of two, at least `8 × lanes × warps`, at most 1 MiB;
    /// 0 for none.
    pub scratchpad: u32,
    /// The atomic memory operations of RV32A. Without them their instructions are illegal.
    pub atomics: bool,
    /// A first-level data cache between core and main memory.
    pub cache: Option<Cache>,
    /// What main memory is.
    pub backing: Backing,
    /// RV32M: multiplier and divider. Without it their instructions are illegal.
    pub multiply: bool,
    /// The cycle and instruction counters that programs read. Without them their CSRs are illegal.
    pub counters: bool,
    /// Counters of what the core did: `metrics` in the hierarchy.
    pub metrics: Metrics,
}

/// Where there are counters of what the core did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metrics {
    Off,
    /// In simulations, as probes; beside them the first failures of every lane's threads.
    Simulated,
    /// In hardware, as outputs for a [host](crate::host).
    Built,
}

/// How the register banks are addressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BankAddress {
    Shared,
    PerLane,
}

impl BankAddress {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, BankAddress)] = &[("shared", BankAddress::Shared), ("per-lane", BankAddress::PerLane)];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(BankAddress::ALL, self)
    }
}

/// Where paths of a warp become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// Where they have the same pc and call depth.
    Pc,
    /// At convergence barriers only, as on hardware that does not compare pcs.
    Barriers,
}

impl Merge {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Merge)] = &[("pc", Merge::Pc), ("barriers", Merge::Barriers)];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Merge::ALL, self)
    }
}

/// Which paths of a warp are considered for issue. (`dual-path-execution.txt` §3.3)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathScheduler {
    /// Both.
    Full,
    /// One, until it issues an instruction that takes long.
    Constrained,
}

impl PathScheduler {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, PathScheduler)] =
        &[("full", PathScheduler::Full), ("constrained", PathScheduler::Constrained)];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(PathScheduler::ALL, self)
    }
}

/// Where the warps of a block wait for each other to form new warps. (`thread-block-compaction.txt` §3.1, `capri.txt` §2.2)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compaction {
    /// As `SkipUniform`, but threads stay in their static warps, for programs that count on them.
    Off,
    /// At every conditional branch.
    Always,
    /// At branches that may part the block.
    SkipUniform,
    /// Where it was worth it before, says the [prediction table](Capt). (CAPRI)
    Predict,
}

/// The compaction-adequacy prediction table. (`capri.txt` §3.1)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capt {
    /// Branches that it holds: 1 … 32.
    pub entries: u32,
    pub history: History,
}

impl Capt {
    /// The paper's default.
    pub const DEFAULT: Capt = Capt { entries: 32, history: History::Latest };
}

/// What an entry of the prediction table knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// Whether the last time was worth it, 1 bit.
    Latest,
    /// That a warp has parted there, 1 bit.
    Sticky,
    /// A saturating counter, 2 bits.
    Counter,
}

impl History {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, History)] =
        &[("latest", History::Latest), ("sticky", History::Sticky), ("counter", History::Counter)];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(History::ALL, self)
    }
}

impl Compaction {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Compaction)] = &[
        ("off", Compaction::Off),
        ("always", Compaction::Always),
        ("skip-uniform", Compaction::SkipUniform),
        ("predict", Compaction::Predict),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Compaction::ALL, self)
    }
}

/// Which lanes of a memory access go together, given the line (of `lanes` words) of the first active lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coalescing {
    /// Those that access their own bank's word of the line, or the first lane's word: no crossbar.
    Aligned,
    /// All that access the line.
    Full,
}

impl Coalescing {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Coalescing)] = &[("aligned", Coalescing::Aligned), ("full", Coalescing::Full)];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Coalescing::ALL, self)
    }
}

/// What becomes of lanes that do not go together with the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// They stay at the instruction: their path splits off. (`path-lists-simty.txt` §2.3)
    Split,
    /// They follow in the next cycles, while the warp runs on.
    Serialise,
}

impl Replay {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Replay)] = &[("split", Replay::Split), ("serialise", Replay::Serialise)];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Replay::ALL, self)
    }
}

/// Who issues when several slots could.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// The next one after the last.
    LooseRoundRobin,
    /// The last one until it stalls, then that of the warp that was started first; of the paths of a warp, the left one.
    GreedyThenOldest,
    /// The last one until it stalls, then the next one after it.
    Sticky,
    /// One of the block that was started first.
    BlockAge,
    /// One of another block every cycle.
    BlockRoundRobin,
    /// One of the last block until all of it stalls, then one of the next.
    BlockSticky,
}

impl Schedule {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Schedule)] = &[
        ("loose-round-robin", Schedule::LooseRoundRobin),
        ("greedy-then-oldest", Schedule::GreedyThenOldest),
        ("sticky", Schedule::Sticky),
        ("block-age", Schedule::BlockAge),
        ("block-round-robin", Schedule::BlockRoundRobin),
        ("block-sticky", Schedule::BlockSticky),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Schedule::ALL, self)
    }
}

/// A data cache: write-through, so that main memory is always right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cache {
    /// Bytes of data: a power of two.
    pub size: u32,
    /// Places for a line: a power of two, 1 … 16.
    pub ways: u32,
    /// Memory lines (of `lanes` words) of a cache line: a power of two, 1 … 16.
    pub line: u32,
    /// Misses under way at once: a power of two, 1 … 16.
    pub misses: u32,
}

/// What main memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// Block RAM: a request a cycle, the answer in the next.
    OnChip,
    /// A model for simulation: on-chip memory that answers later.
    Model(Timing),
    /// Outside, on a Wishbone B4 bus (pipelined) of `width` data bits: a power of two, 32 … 32 × lanes. Simulations have this
    /// slave on it, which is not part of the hardware.
    Wishbone { width: u32, slave: SlaveModel },
}

/// The memory on the bus of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlaveModel {
    /// Of a beat; stalls are up to 3 cycles longer than the interval if there is jitter.
    pub timing: Timing,
    /// Whoever accesses the beat with this byte address gets an error.
    pub error: Option<u32>,
}

/// The time that a modelled memory takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Cycles from a request to its response, at least: 1 … 4096.
    pub latency: u32,
    /// Cycles more, at most; each response draws its own. 0, or a power of two less 1, up to 1023.
    pub jitter: u32,
    /// Cycles from one request taken to the next, at least: 1 … 256.
    pub interval: u32,
    /// Of the drawn latencies.
    pub seed: u32,
}

/// A shape that cannot be built: the field, its value, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field} = {value}: {allowed}")]
pub struct ShapeError {
    pub field: &'static str,
    pub value: String,
    pub allowed: String,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            lanes: 8,
            warps: 8,
            memory: Shape::default_memory(8, 8, 1024),
            program: 64 << 10,
            stack: 1024,
            divergence: Divergence::default(),
            levels: None,
            path_scheduler: PathScheduler::Full,
            path_forwarding: false,
            compaction: Compaction::SkipUniform,
            capt: Capt::DEFAULT,
            likely: false,
            depth_bits: 8,
            barriers: true,
            convergence_barriers: 0,
            patience: 4096,
            merge: Merge::Pc,
            buffer: LEAST_BUFFER.next_power_of_two(),
            issue_interval: 1,
            schedule: Schedule::LooseRoundRobin,
            loads: 8,
            bank_address: BankAddress::Shared,
            coalescing: Coalescing::Aligned,
            replay: Replay::Split,
            requests: 8,
            scratchpad: Shape::default_scratchpad(8, 8),
            atomics: true,
            cache: None,
            backing: Backing::OnChip,
            multiply: true,
            counters: true,
            metrics: Metrics::Simulated,
        }
    }
}

impl Shape {
    /// The default core with other lanes and warps, and memory to match.
    pub fn new(lanes: u32, warps: u32) -> Shape {
        let memory = Shape::default_memory(lanes, warps, 1024);
        Shape { lanes, warps, memory, scratchpad: Shape::default_scratchpad(lanes, warps), ..Shape::default() }
    }

    /// The core without what costs area and not every program needs: barriers, atomics, scratchpad.
    pub fn small(lanes: u32, warps: u32) -> Shape {
        Shape { barriers: false, atomics: false, scratchpad: 0, ..Shape::new(lanes, warps) }
    }

    /// The same core with another divergence unit, and with [`Replay::Serialise`] for one that [reconverges](Capabilities::reconverges),
    /// [`BankAddress::PerLane`] for one that [compacts](Capabilities::mixes_warps).
    pub fn with_divergence(self, divergence: Divergence) -> Shape {
        let replay = if divergence.capabilities().reconverges { Replay::Serialise } else { self.replay };
        let bank_address = if divergence.capabilities().mixes_warps { BankAddress::PerLane } else { self.bank_address };
        Shape { divergence, replay, bank_address, ..self }
    }

    /// 64 bytes of scratchpad a thread, and at least 256 a warp and 8 KiB.
    pub fn default_scratchpad(lanes: u32, warps: u32) -> u32 {
        let bytes = u64::from(lanes.max(4)).saturating_mul(u64::from(warps)).saturating_mul(64);
        bytes.clamp(8 << 10, 1 << 20).next_power_of_two() as u32
    }

    /// Memory that holds 256 KiB and every thread's stack, rounded up to a power of two.
    pub fn default_memory(lanes: u32, warps: u32, stack: u32) -> u32 {
        let bytes = (256u64 << 10) + u64::from(lanes) * u64::from(warps) * u64::from(stack);
        bytes.next_power_of_two().min(1 << 31) as u32
    }

    /// Refuses what cannot be built, naming the field.
    pub fn check(&self) -> Result<(), ShapeError> {
        power("lanes", self.lanes, 1, 64)?;
        power("warps", self.warps, 1, 64)?;
        power("memory", self.memory, 4 << 10, 64 << 20)?;
        power("program", self.program, 1 << 10, 16 << 20)?;
        power("stack", self.stack, 64, 1 << 20)?;
        power("buffer", self.buffer, LEAST_BUFFER.next_power_of_two(), 16)?;
        power("issue_interval", self.issue_interval, 1, 8)?;
        power("loads", self.loads, 2, 64)?;
        range("depth_bits", self.depth_bits, 1, 16)?;
        range("convergence_barriers", self.convergence_barriers, 0, convergence::BARRIERS)?;
        power("patience", self.patience, 32, 65536)?;
        if self.convergence_barriers > 0 && !self.divergence.capabilities().convergence_barriers {
            let allowed = format!("divergence = {} has no convergence barriers", self.divergence.name());
            let value = self.convergence_barriers.to_string();
            return Err(ShapeError { field: "convergence_barriers", value, allowed });
        }
        if self.merge == Merge::Barriers {
            let allowed = match (self.convergence_barriers, self.replay) {
                (0, _) => "needs convergence_barriers of at least 1",
                (_, Replay::Split) => {
                    "needs replay = serialise: a path that an access splits would never be whole again"
                }
                _ => "",
            };
            if !allowed.is_empty() {
                let (field, value) = ("merge", self.merge.name().into());
                return Err(ShapeError { field, value, allowed: allowed.into() });
            }
        }
        if let Some(levels) = self.levels {
            let together = if self.divergence.capabilities().mixes_warps { self.threads() } else { self.lanes };
            range("levels", levels, 1, (together - 1).max(1))?;
            if !self.divergence.capabilities().reconverges {
                let allowed = format!("divergence = {} has no stack", self.divergence.name());
                return Err(ShapeError { field: "levels", value: levels.to_string(), allowed });
            }
        }
        if self.path_scheduler != PathScheduler::Full && self.sides() == 1 {
            let (field, value) = ("path_scheduler", self.path_scheduler.name().into());
            let allowed = format!("divergence = {} has one path of a warp to consider", self.divergence.name());
            return Err(ShapeError { field, value, allowed });
        }
        if self.path_forwarding && self.sides() == 1 {
            let allowed = format!("divergence = {} has no paths to forward", self.divergence.name());
            return Err(ShapeError { field: "path_forwarding", value: "on".into(), allowed });
        }
        if self.likely && !self.divergence.capabilities().likely_points {
            let allowed = format!("divergence = {} has no likely-convergence points", self.divergence.name());
            return Err(ShapeError { field: "likely", value: "on".into(), allowed });
        }
        if !self.divergence.capabilities().splits && self.replay == Replay::Split {
            let allowed = format!("divergence = {} needs replay = serialise", self.divergence.name());
            return Err(ShapeError { field: "replay", value: self.replay.name().into(), allowed });
        }
        if self.divergence.capabilities().mixes_warps && self.bank_address == BankAddress::Shared {
            let allowed = format!("divergence = {} needs bank_address = per-lane", self.divergence.name());
            return Err(ShapeError { field: "bank_address", value: self.bank_address.name().into(), allowed });
        }
        range("capt.entries", self.capt.entries, 1, 32)?;
        if self.capt != Capt::DEFAULT && self.compaction != Compaction::Predict {
            let allowed = format!("compaction = {} predicts nothing", self.compaction.name());
            let value = format!("{},history={}", self.capt.entries, self.capt.history.name());
            return Err(ShapeError { field: "capt", value, allowed });
        }
        if self.compaction != Compaction::SkipUniform && !self.divergence.capabilities().mixes_warps {
            let allowed = format!("divergence = {} forms no warps", self.divergence.name());
            return Err(ShapeError { field: "compaction", value: self.compaction.name().into(), allowed });
        }
        if self.program > self.memory {
            let allowed = format!("must not exceed the memory of {} bytes", self.memory);
            return Err(ShapeError { field: "program", value: self.program.to_string(), allowed });
        }
        power("requests", self.requests, 2, 64)?;
        let least = 8 * self.threads();
        if self.scratchpad != 0 && !(self.scratchpad.is_power_of_two() && (least..=1 << 20).contains(&self.scratchpad))
        {
            let allowed = format!("must be 0, or a power of two from {least} (two words a thread) to {}", 1 << 20);
            return Err(ShapeError { field: "scratchpad", value: self.scratchpad.to_string(), allowed });
        }
        let stacks = u64::from(self.stack) * u64::from(self.threads());
        if stacks >= u64::from(self.memory) {
            let allowed =
                format!("{} threads' stacks of {} bytes need more than {stacks} bytes", self.threads(), self.stack);
            return Err(ShapeError { field: "memory", value: self.memory.to_string(), allowed });
        }
        self.check_memory_system()
    }

    /// The part about what is behind the memory port.
    fn check_memory_system(&self) -> Result<(), ShapeError> {
        if let Some(cache) = &self.cache {
            power("cache.ways", cache.ways, 1, 16)?;
            power("cache.line", cache.line, 1, 16)?;
            power("cache.misses", cache.misses, 1, 16)?;
            let set = cache.ways * cache.line * 4 * self.lanes;
            let most = (self.memory / 2).min(4 << 20);
            if set > most {
                let allowed = format!("a set of {} ways has {set} bytes, and the cache at most {most}", cache.ways);
                return Err(ShapeError { field: "cache.ways", value: cache.ways.to_string(), allowed });
            }
            power("cache.size", cache.size, set, most)?;
        }
        match self.backing {
            Backing::OnChip => Ok(()),
            Backing::Model(timing) => timing.check(),
            Backing::Wishbone { width, slave } => {
                power("wishbone.width", width, 32, 32 * self.lanes)?;
                slave.timing.check()
            }
        }
    }

    /// The options of the command line that choose this core, for what reproduces a run. What is as
    /// [`Shape::default`] has it is left out, except for lanes, warps and memory.
    pub fn options(&self) -> String {
        let Shape { lanes, warps, memory, .. } = self;
        let usual = Shape { lanes: *lanes, warps: *warps, memory: *memory, ..Shape::default() };
        let usual = usual.with_divergence(self.divergence);
        let mut text = format!("--lanes {lanes} --warps {warps} --memory {memory}");
        let mut option = |name: &str, differs: bool, value: String| {
            if differs {
                text += &format!(" --{name} {value}");
            }
        };
        let on = |on: bool| if on { "on" } else { "off" }.to_string();
        option("divergence", self.divergence != Divergence::default(), self.divergence.name().into());
        if let Some(levels) = self.levels {
            option("levels", true, levels.to_string());
        }
        option("path-scheduler", self.path_scheduler != usual.path_scheduler, self.path_scheduler.name().into());
        option("path-forwarding", self.path_forwarding, on(self.path_forwarding));
        option("compaction", self.compaction != usual.compaction, self.compaction.name().into());
        let Capt { entries, history } = self.capt;
        option("capt", self.capt != usual.capt, format!("{entries},history={}", history.name()));
        option("likely", self.likely, on(self.likely));
        option("program", self.program != usual.program, self.program.to_string());
        option("stack", self.stack != usual.stack, self.stack.to_string());
        option("depth-bits", self.depth_bits != usual.depth_bits, self.depth_bits.to_string());
        option("barriers", self.barriers != usual.barriers, on(self.barriers));
        let barriers = self.convergence_barriers;
        option("convergence-barriers", barriers != usual.convergence_barriers, barriers.to_string());
        option("patience", self.patience != usual.patience, self.patience.to_string());
        option("merge", self.merge != usual.merge, self.merge.name().into());
        option("buffer", self.buffer != usual.buffer, self.buffer.to_string());
        option("issue-interval", self.issue_interval != usual.issue_interval, self.issue_interval.to_string());
        option("schedule", self.schedule != usual.schedule, self.schedule.name().into());
        option("loads", self.loads != usual.loads, self.loads.to_string());
        option("bank-address", self.bank_address != usual.bank_address, self.bank_address.name().into());
        option("coalescing", self.coalescing != usual.coalescing, self.coalescing.name().into());
        option("replay", self.replay != usual.replay, self.replay.name().into());
        option("requests", self.requests != usual.requests, self.requests.to_string());
        let scratchpad = Shape::default_scratchpad(*lanes, *warps);
        option("scratchpad", self.scratchpad != scratchpad, self.scratchpad.to_string());
        option("atomics", self.atomics != usual.atomics, on(self.atomics));
        option("multiply", self.multiply != usual.multiply, on(self.multiply));
        option("counters", self.counters != usual.counters, on(self.counters));
        if let Some(Cache { size, ways, line, misses }) = self.cache {
            option("cache", true, format!("{size},ways={ways},line={line},misses={misses}"));
        }
        let timing = match self.backing {
            Backing::OnChip => None,
            Backing::Model(timing) => Some(timing),
            Backing::Wishbone { width, slave } => {
                option("bus", true, width.to_string());
                Some(slave.timing)
            }
        };
        if let Some(Timing { latency, jitter, interval, seed }) = timing {
            let fields = format!("latency={latency},jitter={jitter},interval={interval},seed={seed}");
            option("memory-model", true, fields);
        }
        if self.metrics == Metrics::Built {
            text += " --metrics";
        }
        text
    }

    /// The core as it is built: what is for simulations is left out.
    pub fn hardware(&self) -> Shape {
        let metrics = if self.metrics == Metrics::Built { Metrics::Built } else { Metrics::Off };
        Shape { metrics, ..self.clone() }
    }

    /// Whether there are counters of what the core did.
    pub fn has_metrics(&self) -> bool {
        self.metrics != Metrics::Off
    }

    pub fn threads(&self) -> u32 {
        self.lanes * self.warps
    }

    /// Bits of a warp number.
    pub fn warp_bits(&self) -> Width {
        index_width(self.warps)
    }

    /// Paths of a warp that may issue.
    pub fn sides(&self) -> u32 {
        if self.divergence.capabilities().two_paths { 2 } else { 1 }
    }

    /// An access may be issued again on the other side of its warp, which awaits its register.
    pub fn reissues_on_the_other_side(&self) -> bool {
        self.sides() > 1 && self.replay == Replay::Split
    }

    /// Front-end contexts: paths that may issue.
    pub fn slots(&self) -> u32 {
        self.warps * self.sides()
    }

    /// Bits of a slot number.
    pub fn slot_bits(&self) -> Width {
        index_width(self.slots())
    }

    /// Bits of a lane number.
    pub fn lane_bits(&self) -> Width {
        index_width(self.lanes)
    }

    /// Bits of the number of a convergence barrier.
    pub fn barrier_bits(&self) -> Width {
        index_width(self.convergence_barriers)
    }

    /// Whether the first path of a list may be one that cannot run.
    pub fn may_park(&self) -> bool {
        self.barriers || self.convergence_barriers > 0
    }

    /// Bits of what paths are sorted by before their pc: the call depth, and with convergence barriers, whether the path has
    /// given way.
    pub fn rank_bits(&self) -> Width {
        self.depth_bits + Width::from(self.convergence_barriers > 0)
    }

    /// Bits of a pc. Inside the core a pc counts instructions, not bytes: it is the byte address divided by 4.
    pub fn pc_bits(&self) -> Width {
        self.program.ilog2() - 2
    }

    /// Whether a slot may hold threads of several static warps.
    pub fn mixes(&self) -> bool {
        self.divergence.capabilities().mixes_warps && self.warps > 1
    }

    /// Whether warps may run ahead of their block.
    pub fn predicts(&self) -> bool {
        self.mixes() && self.compaction == Compaction::Predict
    }

    /// Bits of the static warps of a slot's lanes, `warp_bits` a lane, where they may differ.
    pub fn homes_bits(&self) -> Option<Width> {
        self.mixes().then(|| self.lanes * self.warp_bits())
    }

    /// Bits of a number of levels of a stack.
    pub fn levels_bits(&self) -> Width {
        let together = if self.divergence.capabilities().mixes_warps { self.threads() } else { self.lanes };
        index_width(together) + 1
    }

    /// Bits of a register number together with its warp: the address of a register bank.
    pub fn bank_bits(&self) -> Width {
        self.warps.ilog2() + 5
    }

    /// Bits of a byte address in memory.
    pub fn address_bits(&self) -> Width {
        self.memory.ilog2()
    }

    /// Bits of the address of a byte of the scratchpad.
    fn scratchpad_bits(&self) -> Width {
        self.scratchpad.checked_ilog2().unwrap_or(0)
    }

    /// Bits of the number of a scratchpad line: `lanes` words side by side.
    pub fn scratchpad_line_bits(&self) -> Width {
        self.scratchpad_bits() - 2 - self.lanes.ilog2()
    }

    /// Bits of a lane's place ([`crate::pipeline::place`]) behind stage 7: the byte address in its memory, and above it
    /// whether that is the scratchpad (if there is one).
    pub fn place_bits(&self) -> Width {
        self.address_bits().max(self.scratchpad_bits()) + Width::from(self.scratchpad > 0)
    }

    /// Whether the memory port may have to wait.
    pub fn memory_stalls(&self) -> bool {
        self.cache.is_some() || self.backing != Backing::OnChip
    }

    /// Whether answers at the memory port may have to wait for write-back. Else each is there in its own instruction's stage 10, in which
    /// the pipeline writes nothing, and is taken at once.
    pub fn answers_wait(&self) -> bool {
        self.memory_stalls() || self.replay == Replay::Serialise
    }

    /// Data bits of the bus, if main memory is on one.
    pub fn bus_width(&self) -> Option<Width> {
        match self.backing {
            Backing::Wishbone { width, .. } => Some(width),
            Backing::OnChip | Backing::Model(_) => None,
        }
    }

    /// The timing of a memory that is modelled on chip.
    pub fn modelled(&self) -> Option<Timing> {
        match self.backing {
            Backing::Model(timing) => Some(timing),
            Backing::OnChip | Backing::Wishbone { .. } => None,
        }
    }

    /// The timing of a simulation's memory, on chip or on the bus; none if it is as fast as can be.
    pub fn simulated_timing(&self) -> Option<Timing> {
        match self.backing {
            Backing::OnChip => None,
            Backing::Model(timing) => Some(timing),
            Backing::Wishbone { slave, .. } => Some(slave.timing),
        }
    }

    /// Bits of the number of a memory line: `lanes` words side by side.
    pub fn line_bits(&self) -> Width {
        self.address_bits() - 2 - self.lanes.ilog2()
    }
}

impl Backing {
    /// Memory of a simulation that takes another time to its answer, if any is modelled.
    pub fn with_latency(self, latency: u32) -> Backing {
        let at = |timing| Timing { latency, ..timing };
        match self {
            Backing::OnChip => Backing::OnChip,
            Backing::Model(timing) => Backing::Model(at(timing)),
            Backing::Wishbone { width, slave } => {
                Backing::Wishbone { width, slave: SlaveModel { timing: at(slave.timing), ..slave } }
            }
        }
    }
}

impl Timing {
    /// An answer in the next cycle, and a request in every one.
    pub const FASTEST: Timing = Timing { latency: ACCESS_TO_ANSWER, jitter: 0, interval: 1, seed: 1 };

    /// Fails if no memory can be modelled so.
    pub fn check(&self) -> Result<(), ShapeError> {
        range("model.latency", self.latency, 1, 4096)?;
        range("model.interval", self.interval, 1, 256)?;
        if self.jitter > 1023 || !(self.jitter + 1).is_power_of_two() {
            let allowed = "must be 0, 1, 3, 7 … 1023: a power of two less 1".into();
            return Err(ShapeError { field: "model.jitter", value: self.jitter.to_string(), allowed });
        }
        Ok(())
    }
}

/// The name of a choice in the list of all.
pub(crate) fn name_of<T: PartialEq>(all: &[(&'static str, T)], choice: T) -> &'static str {
    all.iter().find(|(_, other)| *other == choice).map_or("?", |(name, _)| name)
}

fn power(field: &'static str, value: u32, least: u32, most: u32) -> Result<(), ShapeError> {
    if value.is_power_of_two() && (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ShapeError {
        field,
        value: value.to_string(),
        allowed: format!("must be a power of two from {least} to {most}"),
    })
}

fn range(field: &'static str, value: u32, least: u32, most: u32) -> Result<(), ShapeError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ShapeError { field, value: value.to_string(), allowed: format!("must be from {least} to {most}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_can_be_built_and_errors_name_the_field() {
        assert_eq!(Shape::default().check(), Ok(()));
        let odd = Shape { lanes: 3, ..Shape::default() };
        assert_eq!(odd.check().unwrap_err().to_string(), "lanes = 3: must be a power of two from 1 to 64");
        let small = Shape { memory: 64 << 10, ..Shape::default() };
        assert_eq!(small.check().unwrap_err().field, "memory");
    }

    #[test]
    fn what_a_divergence_unit_does_not_have_is_refused() {
        let error = |s: Shape| s.check().unwrap_err().to_string();
        let with = |divergence| Shape::new(4, 2).with_divergence(divergence);
        for &divergence in Divergence::ALL {
            assert_eq!(with(divergence).check(), Ok(()));
        }
        let split = Shape { replay: Replay::Split, ..with(Divergence::STACK) };
        assert_eq!(error(split), "replay = split: divergence = stack needs replay = serialise");
        let levels = |divergence, levels| Shape { levels: Some(levels), ..with(divergence) };
        assert_eq!(error(levels(Divergence::STACK, 4)), "levels = 4: must be from 1 to 3");
        assert_eq!(error(levels(Divergence::ARBITER, 3)), "levels = 3: divergence = arbiter has no stack");
        let constrained = Shape { path_scheduler: PathScheduler::Constrained, ..with(Divergence::STACK) };
        let allowed = "path_scheduler = constrained: divergence = stack has one path of a warp to consider";
        assert_eq!(error(constrained), allowed);
        let barriers = Shape { convergence_barriers: 4, ..with(Divergence::ARBITER) };
        assert_eq!(error(barriers), "convergence_barriers = 4: divergence = arbiter has no convergence barriers");
        let many = Shape { convergence_barriers: 17, ..with(Divergence::PATH_TABLE) };
        assert_eq!(error(many), "convergence_barriers = 17: must be from 0 to 16");
        let apart = Shape { merge: Merge::Barriers, ..with(Divergence::PATH_TABLE) };
        assert_eq!(error(apart.clone()), "merge = barriers: needs convergence_barriers of at least 1");
        let split = Shape { convergence_barriers: 1, ..apart };
        assert!(error(split.clone()).starts_with("merge = barriers: needs replay = serialise"));
        assert_eq!(Shape { replay: Replay::Serialise, ..split }.check(), Ok(()));
        let hasty = Shape { patience: 1000, ..with(Divergence::PATH_TABLE) };
        assert_eq!(error(hasty), "patience = 1000: must be a power of two from 32 to 65536");
        let forwarding = Shape { path_forwarding: true, ..with(Divergence::STACK) };
        assert_eq!(error(forwarding), "path_forwarding = on: divergence = stack has no paths to forward");
    }

    #[test]
    fn a_memory_system_is_checked() {
        let error = |s: Shape| s.check().unwrap_err().to_string();
        let cache =
            |size, ways, line, misses| Shape { cache: Some(Cache { size, ways, line, misses }), ..Shape::default() };
        assert_eq!(cache(4096, 4, 2, 4).check(), Ok(()));
        assert_eq!(error(cache(4096, 3, 2, 4)), "cache.ways = 3: must be a power of two from 1 to 16");
        assert_eq!(error(cache(4096, 4, 32, 4)), "cache.line = 32: must be a power of two from 1 to 16");
        assert_eq!(error(cache(4096, 4, 1, 0)), "cache.misses = 0: must be a power of two from 1 to 16");
        assert_eq!(error(cache(128, 4, 2, 4)), "cache.size = 128: must be a power of two from 256 to 262144");
        let wide = Shape { memory: 1 << 16, lanes: 64, warps: 1, stack: 64, ..cache(1 << 15, 16, 16, 1) };
        assert_eq!(error(wide), "cache.ways = 16: a set of 16 ways has 65536 bytes, and the cache at most 32768");
        let model = |latency, jitter, interval| {
            let backing = Backing::Model(Timing { latency, jitter, interval, seed: 1 });
            Shape { backing, ..Shape::default() }
        };
        assert_eq!(model(4096, 1023, 256).check(), Ok(()));
        assert_eq!(error(model(0, 0, 1)), "model.latency = 0: must be from 1 to 4096");
        assert_eq!(error(model(1, 2, 1)), "model.jitter = 2: must be 0, 1, 3, 7 … 1023: a power of two less 1");
        assert_eq!(error(model(1, u32::MAX, 1)).split(':').next(), Some("model.jitter = 4294967295"));
        assert_eq!(error(model(1, 0, 257)), "model.interval = 257: must be from 1 to 256");
        let bus = |width| {
            let slave = SlaveModel { timing: Timing::FASTEST, error: None };
            Shape { backing: Backing::Wishbone { width, slave }, ..Shape::default() }
        };
        assert_eq!(bus(256).check(), Ok(()));
        assert_eq!(error(bus(16)), "wishbone.width = 16: must be a power of two from 32 to 256");
        assert_eq!(error(bus(512)), "wishbone.width = 512: must be a power of two from 32 to 256");
    }
}

//! The configuration of a core: one struct, checked once.
//!
//! | file | what |
//! |---|---|
//! | `pipeline.rs`, `divergence.rs`, `memory.rs` | types of what can be chosen |
//! | `check.rs` | which choices are refused |
//! | `options.rs` | a core as options of the command line |

mod check;
mod divergence;
mod memory;
mod options;
mod pipeline;
#[cfg(test)]
mod tests;

pub use check::{MOST_ALU_LATENCY, ShapeError};
pub(crate) use check::{power, range};
pub use divergence::{Capt, Compaction, History, Merge, Order, PathScheduler, Scoreboard};
pub use memory::{Backing, Cache, SecondLevel, SlaveModel, Timing};
pub use pipeline::{BankAddress, Coalescing, Metrics, Replay, Schedule};

use crate::divergence::mechanism::Divergence;
use crate::pipeline::timing::{ISSUE_TO_DEPENDENT, LEAST_BUFFER};
use heddle_hdl::{Width, count_width, index_width};

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
    /// Levels of a warp's stack, for mechanisms that have one: 1 … lanes - 1; without a number `lanes - 1`, which are
    /// always enough. Of a block's stack: 1 … threads - 1, without a number [`DEFAULT_LEVELS`] or as many as are always
    /// enough. A program that needs more ends with a fault.
    ///
    /// [`DEFAULT_LEVELS`]: crate::divergence::block_stack::DEFAULT_LEVELS
    pub levels: Option<u32>,
    /// Under [`Divergence::DUAL_PATH`]: which paths of a warp are considered for issue in a cycle.
    pub path_scheduler: PathScheduler,
    /// Under [`Divergence::DUAL_PATH`]: control instructions of a warp that may be unresolved, 1 or 2. Of two, the second is
    /// a conditional branch of the other path. Not with `path_forwarding`, nor with [`Replay::Split`].
    pub unresolved: u32,
    /// Under [`Divergence::DUAL_PATH`]: a suspended path runs where a side of its warp is free.
    pub path_forwarding: bool,
    /// Under [`Divergence::DUAL_PATH`]: what makes a path wait for a register. [`Scoreboard::Exact`] needs
    /// [`Replay::Serialise`].
    pub scoreboard: Scoreboard,
    /// Under [`Divergence::BLOCK_STACK`]: where the warps of a block wait for each other, and what becomes of them.
    pub compaction: Compaction,
    /// Under [`Compaction::Predict`]: the prediction table.
    pub capt: Capt,
    /// Under [`Compaction::Predict`]: the basic blocks that a warp may be ahead of its block, 1 … 4. It passes what ends
    /// the others: uniform branches, and uniform jumps that neither call nor return.
    pub slack: u32,
    /// Stacks let threads reconverge at likely-convergence points, too.
    pub likely: bool,
    /// Bits of the call depth that paths are sorted by: 1 … 16. A deeper call is an assertion failure.
    pub depth_bits: u32,
    /// The instruction `barrier`. Without it, it is illegal, and the divergence unit has no logic for threads that
    /// wait.
    pub barriers: bool,
    /// Convergence barriers of a warp: 0 … 16. Without any, their instructions do nothing. Only under
    /// [`Divergence::PATH_TABLE`].
    pub convergence_barriers: u32,
    /// Outcomes of a warp without an arrival, after which threads that wait at a convergence barrier go on, and after
    /// which its active path gives way to others while threads wait or have waited, or, if it is fair, while there are
    /// others: a power of two, 2 … 65536.
    pub patience: u32,
    /// Paths of a warp give way to each other ([`fairness`](mod@crate::divergence::fairness)), and warps take turns: a
    /// thread that does not wait at a barrier runs again within a bounded time. Needs a mechanism that can.
    pub fair: bool,
    /// Where paths become one. [`Merge::Barriers`] needs convergence barriers and [`Replay::Serialise`].
    pub merge: Merge,
    /// Which of a warp's paths runs. Others than [`Order::DepthPc`] only under [`Divergence::PATH_TABLE`];
    /// [`Order::BreadthFirst`] is [fair](Self::fair).
    pub order: Order,
    /// Entries of a slot's instruction buffer: 4, 8 or 16.
    pub buffer: u32,
    /// Cycles from one issue to the next, of all slots: 1, 2, 4 or 8. More than 1 is the time of a core whose warps
    /// take turns on fewer ALUs, a warp of 32 threads on 8 in 4 cycles, for studies: there are `lanes` ALUs all the
    /// same.
    pub issue_interval: u32,
    /// Cycles from an instruction whose result the pipeline itself computes to the first that needs or writes its
    /// register: [`ISSUE_TO_DEPENDENT`], which this pipeline takes, … [`MOST_ALU_LATENCY`]. More is the time of a core with
    /// longer ALUs, for studies: the results are there all the same.
    pub alu_latency: u32,
    /// Which slot issues when several could.
    pub schedule: Schedule,
    /// Loads that may be under way at once: a power of two, 2 … 64.
    pub loads: u32,
    /// The address of a register bank: one for all lanes, or one per lane (for mechanisms that mix warps).
    pub bank_address: BankAddress,
    /// Which lanes of a memory access go together.
    pub coalescing: Coalescing,
    /// What becomes of the lanes that do not.
    pub replay: Replay,
    /// Memory instructions that may wait for the memory port: a power of two, 2 … 64. Only where something can wait:
    /// under [`Replay::Serialise`], or before a memory that does not take a request in every cycle.
    pub requests: u32,
    /// Bytes of scratchpad, shared among the resident blocks: a power of two, at least `8 × lanes × warps`, at most 1
    /// MiB; 0 for none.
    pub scratchpad: u32,
    /// The atomic memory operations of RV32A. Without them their instructions are illegal.
    pub atomics: bool,
    /// `lr.w` and `sc.w`, the rest of RV32A; needs `atomics`. Without it they are illegal.
    pub reservations: bool,
    /// The [warp primitives](crate::isa::warp): votes, shuffles and `sync`. Without them their instructions are illegal.
    pub warp_primitives: bool,
    /// A first-level data cache between core and main memory.
    pub cache: Option<Cache>,
    /// A second level behind it, before the model of main memory: for simulation.
    pub second_level: Option<SecondLevel>,
    /// What main memory is.
    pub backing: Backing,
    /// RV32M: multiplier and divider. Without it their instructions are illegal.
    pub multiply: bool,
    /// The cycle and instruction counters that programs read. Without them their CSRs are illegal.
    pub counters: bool,
    /// Counters of what the core did: `metrics` in the hierarchy.
    pub metrics: Metrics,
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
            unresolved: 1,
            path_forwarding: false,
            scoreboard: Scoreboard::Shadows,
            compaction: Compaction::SkipUniform,
            capt: Capt::DEFAULT,
            slack: 1,
            likely: false,
            depth_bits: 8,
            barriers: true,
            convergence_barriers: 0,
            patience: 4096,
            fair: false,
            merge: Merge::Pc,
            order: Order::DepthPc,
            buffer: LEAST_BUFFER.next_power_of_two(),
            issue_interval: 1,
            alu_latency: ISSUE_TO_DEPENDENT,
            schedule: Schedule::LooseRoundRobin,
            loads: 8,
            bank_address: BankAddress::Shared,
            coalescing: Coalescing::Aligned,
            replay: Replay::Split,
            requests: 8,
            scratchpad: Shape::default_scratchpad(8, 8),
            atomics: true,
            reservations: false,
            warp_primitives: false,
            cache: None,
            second_level: None,
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

    /// The same core with another divergence unit, and with [`Replay::Serialise`] for one that
    /// [reconverges](Capabilities::reconverges) or never [splits](Capabilities::splits), [`BankAddress::PerLane`] for one that
    /// [compacts](Capabilities::mixes_warps).
    pub fn with_divergence(self, divergence: Divergence) -> Shape {
        let has = divergence.capabilities();
        let replay = if has.reconverges || !has.splits { Replay::Serialise } else { self.replay };
        let bank_address = if has.mixes_warps { BankAddress::PerLane } else { self.bank_address };
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

    /// Whether both paths of a warp may have a control instruction unresolved.
    pub fn overlaps_control(&self) -> bool {
        self.unresolved > 1
    }

    /// Whether the cache says which loads it finds without their line.
    pub fn tells_misses(&self) -> bool {
        self.path_scheduler == PathScheduler::ConstrainedMiss
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

    /// Whether `sync` may keep threads waiting: with warp primitives and convergence barriers.
    pub fn syncs(&self) -> bool {
        self.warp_primitives && self.convergence_barriers > 0
    }

    /// Whether the first path of a list may be one that cannot run.
    pub fn may_park(&self) -> bool {
        self.barriers || self.gives_way()
    }

    /// Whether paths give way to others: with convergence barriers, or if it is fair.
    pub fn gives_way(&self) -> bool {
        self.fair || self.convergence_barriers > 0
    }

    /// Whether a path is kept first from `lr.w` to `sc.w`: where another might be chosen, by a list of paths or by fairness.
    pub fn keeps_sequences(&self) -> bool {
        self.reservations && (self.fair || self.divergence.capabilities().orders)
    }

    /// Bits of what paths are sorted by before their pc: the call depth, and whether the path has given way, where paths
    /// do.
    pub fn rank_bits(&self) -> Width {
        self.depth_bits + Width::from(self.gives_way())
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

    /// Whether warps that are ahead may pass control instructions.
    pub fn passes(&self) -> bool {
        self.predicts() && self.slack > 1
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

    /// Whether answers at the memory port may have to wait for write-back. Else each is there in its own instruction's
    /// stage 10, in which the pipeline writes nothing, and is taken at once.
    pub fn answers_wait(&self) -> bool {
        self.memory_stalls() || self.replay == Replay::Serialise
    }

    /// Bits of a result that all lanes share: a return address, or a number of threads.
    pub fn common_bits(&self) -> Width {
        (self.pc_bits() + 2).max(count_width(self.lanes))
    }

    /// Bits of the number of a memory line: `lanes` words side by side.
    pub fn line_bits(&self) -> Width {
        self.address_bits() - 2 - self.lanes.ilog2()
    }
}

/// The name of a choice in the list of all.
fn name_of<T: PartialEq>(all: &[(&'static str, T)], choice: T) -> &'static str {
    all.iter().find(|(_, other)| *other == choice).map_or("?", |(name, _)| name)
}

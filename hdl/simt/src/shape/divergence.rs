//! What can be chosen about mechanisms for divergence. Who refuses which choice: [`Mechanism::check`],
//! [`Capabilities`].
//!
//! [`Mechanism::check`]: crate::divergence::Mechanism::check
//! [`Capabilities`]: crate::divergence::Capabilities

use super::name_of;

/// Which paths of a warp are considered for issue. (`dual-path-execution.txt` §3.3)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathScheduler {
    /// Both; each takes part in the [schedule](super::Schedule) as if it were a warp.
    Full,
    /// Both; the one that could go and has not issued last stands for the warp, which takes part in the schedule.
    SideFirst,
    /// One, until it issues an instruction that takes long.
    Constrained,
    /// One, until an access of its misses the cache, or it issues another instruction that takes long.
    ConstrainedMiss,
}

impl PathScheduler {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, PathScheduler)] = &[
        ("full", PathScheduler::Full),
        ("side-first", PathScheduler::SideFirst),
        ("constrained", PathScheduler::Constrained),
        ("constrained-miss", PathScheduler::ConstrainedMiss),
    ];

    /// Whether one path of a warp is considered at a time.
    pub fn is_constrained(self) -> bool {
        matches!(self, PathScheduler::Constrained | PathScheduler::ConstrainedMiss)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(PathScheduler::ALL, self)
    }
}

/// What makes one of two paths of a warp wait for a register. (`dual-path-execution.txt` §3.2, §6.4)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scoreboard {
    /// A write that issued on its own side, or on the other before the paths last changed: two bits a register and side.
    Shadows,
    /// A write to one of its threads: a bit a register and thread, for studies.
    Exact,
}

impl Scoreboard {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Scoreboard)] = &[("shadows", Scoreboard::Shadows), ("exact", Scoreboard::Exact)];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Scoreboard::ALL, self)
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

/// The order in which the paths of a warp are traversed. (`path-lists-simty.txt` §2)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The greatest call depth first, of these the least pc: a sorted list.
    DepthPc,
    /// The least pc first, whatever the call depth: a sorted list.
    Pc,
    /// Depth first, the side with the lesser pc before the other: a stack whose top changes places with a path that jumps
    /// beyond it.
    Swap,
    /// Depth first, the side with fewer threads before the other: a stack.
    Minority,
    /// Depth first, the side with more threads before the other: a stack.
    Majority,
    /// In rounds: each path has an outcome, then the next has.
    BreadthFirst,
}

impl Order {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Order)] = &[
        ("depth-pc", Order::DepthPc),
        ("pc", Order::Pc),
        ("swap", Order::Swap),
        ("minority", Order::Minority),
        ("majority", Order::Majority),
        ("breadth-first", Order::BreadthFirst),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Order::ALL, self)
    }

    /// Whether the list is a stack; else it is sorted.
    pub fn is_stack(self) -> bool {
        matches!(self, Order::Swap | Order::Minority | Order::Majority)
    }

    /// Whether a path's call depth is counted; else it is 0.
    pub fn counts_calls(self) -> bool {
        self != Order::Pc
    }

    /// Whether each path gives way with each outcome, so that only a [fair](crate::Shape::fair) core can have it.
    pub fn takes_turns(self) -> bool {
        self == Order::BreadthFirst
    }
}

/// Where the warps of a block wait for each other to form new warps. (`thread-block-compaction.txt` §3.1, `capri.txt`
/// §2.2)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compaction {
    /// As `SkipUniform`, but threads stay in their static warps, for programs that count on them; so they need not wait for
    /// writes.
    Off,
    /// At every branch and every jump. (TBC as `capri.txt` has it)
    Every,
    /// At every conditional branch.
    Always,
    /// At branches where the block may diverge.
    SkipUniform,
    /// Where it was worth it before, says the [prediction table](Capt). (CAPRI)
    Predict,
}

impl Compaction {
    /// Every choice with its name on the command line.
    pub const ALL: &[(&str, Compaction)] = &[
        ("off", Compaction::Off),
        ("every", Compaction::Every),
        ("always", Compaction::Always),
        ("skip-uniform", Compaction::SkipUniform),
        ("predict", Compaction::Predict),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        name_of(Compaction::ALL, self)
    }
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

    /// As on the command line.
    pub(crate) fn text(self) -> String {
        format!("{},history={}", self.entries, self.history.name())
    }
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

//! What can be chosen about the pipeline.

use super::name_of;

/// Who issues when several slots could.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// The next one after the last.
    LooseRoundRobin,
    /// The last one until it stalls, then that of the warp that was started first; of the paths of a warp, the left
    /// one.
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

/// Where there are counters of what the core did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metrics {
    Off,
    /// In simulations, as probes; beside them the first failures of every lane's threads.
    Simulated,
    /// In hardware, as outputs for a [host](crate::host).
    Built,
}

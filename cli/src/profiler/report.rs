//! What a profile says. The page and the text show nothing that is not here.

use anyhow::{Result, ensure};
use heddle_testbench::costs::{COLUMNS, Instruction, Lost};
use heddle_testbench::machine::{Cause, Summary};
use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, Serializer};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A run, by line, branch, access and over time.
#[derive(Serialize, Deserialize)]
pub struct Report {
    /// What made it.
    pub command: String,
    pub kernel: String,
    pub lanes: u32,
    pub warps: u32,
    pub divergence: String,
    /// The options that choose the core.
    pub core: String,
    pub seed: u64,
    /// Why the run has not come to a good end, if it has not: costs are then those up to there.
    #[serde(default)]
    pub error: Option<String>,
    /// What else the reader should know, a line each.
    pub notes: Vec<String>,
    pub summary: Summary,
    /// Those that cost most cycles first.
    pub lines: Vec<Line>,
    /// Those that diverged most often first.
    pub branches: Vec<Branch>,
    /// Those with the most accesses first.
    pub accesses: Vec<Access>,
    pub predict: Advice,
    /// By address.
    pub instructions: Vec<Instr>,
    pub time: Time,
}

/// What instructions cost.
#[derive(Clone, Serialize, Deserialize, Default)]
pub struct Cost {
    /// Cycles: an issue each, and those that were lost.
    pub cycles: f64,
    /// Warp instructions that issued, replays included.
    pub executions: u64,
    /// Thread instructions that took effect.
    pub thread_instructions: u64,
    /// Thread instructions a warp instruction, of all lanes.
    pub simt_efficiency: f64,
    pub cycles_lost: CyclesLost,
}

/// Shares of cycles in which nothing issued, by cause.
#[derive(Clone, Copy, Serialize, Deserialize, Default, PartialEq, Debug)]
pub struct CyclesLost {
    pub no_instruction: f64,
    pub divergence: f64,
    pub interval: f64,
    pub scoreboard: f64,
    pub memory: f64,
    pub barrier: f64,
}

impl CyclesLost {
    pub fn all(&self) -> f64 {
        self.by_cause().iter().map(|(_, cycles)| cycles).sum()
    }

    /// In the order of [`Cause::ALL`].
    pub fn by_cause(&self) -> [(Cause, f64); 6] {
        let CyclesLost { no_instruction, divergence, interval, scoreboard, memory, barrier } = *self;
        let cycles = [no_instruction, divergence, interval, scoreboard, memory, barrier];
        std::array::from_fn(|k| (Cause::ALL[k], cycles[k]))
    }
}

impl From<Lost> for CyclesLost {
    fn from(lost: Lost) -> CyclesLost {
        let of = |cause: Cause| lost[cause as usize];
        CyclesLost {
            no_instruction: of(Cause::NoInstruction),
            divergence: of(Cause::Divergence),
            interval: of(Cause::Interval),
            scoreboard: of(Cause::Scoreboard),
            memory: of(Cause::Memory),
            barrier: of(Cause::Barrier),
        }
    }
}

impl Cost {
    /// Of instructions on a core of so many lanes.
    pub fn of<'a>(instructions: impl Iterator<Item = &'a Instruction>, lanes: u32) -> Cost {
        let (mut issues, mut threads, mut lost) = (0, 0, Lost::default());
        for instruction in instructions {
            issues += instruction.issues;
            threads += instruction.threads;
            lost.iter_mut().zip(instruction.lost).for_each(|(sum, more)| *sum += more);
        }
        let all = issues * u64::from(lanes);
        Cost {
            cycles: issues as f64 + lost.iter().sum::<f64>(),
            executions: issues,
            thread_instructions: threads,
            simt_efficiency: if all == 0 { 0.0 } else { threads as f64 / all as f64 },
            cycles_lost: lost.into(),
        }
    }
}

/// Where an instruction comes from.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// For people: `file:line`, a function, or an address.
    pub place: String,
    /// As the compiler names it.
    pub file: Option<String>,
    pub line: Option<u32>,
}

#[derive(Serialize, Deserialize)]
pub struct Line {
    #[serde(flatten)]
    pub place: Place,
    pub function: Option<String>,
    /// Of its first instruction.
    pub address: u32,
    #[serde(flatten)]
    pub cost: Cost,
}

#[derive(Serialize, Deserialize)]
pub struct Instr {
    pub address: u32,
    pub text: String,
    #[serde(flatten)]
    pub place: Place,
    /// Where the function that it is of was inlined, the innermost call first.
    pub inlined_at: Vec<String>,
    #[serde(flatten)]
    pub cost: Cost,
}

#[derive(Serialize, Deserialize)]
pub struct Branch {
    pub address: u32,
    pub text: String,
    #[serde(flatten)]
    pub place: Place,
    /// How often it took effect, for the threads of a path.
    pub executed: u64,
    /// How often they went different ways.
    pub diverged: u64,
    /// Where they are sure to reconverge: an address, or nothing if that is behind the return.
    pub reconverges: Option<Meets>,
    /// Where they are likely to do so earlier.
    pub likely: Option<Meets>,
}

#[derive(Serialize, Deserialize)]
pub struct Meets {
    pub address: Option<u32>,
    pub place: String,
}

#[derive(Serialize, Deserialize)]
pub struct Access {
    pub address: u32,
    pub text: String,
    #[serde(flatten)]
    pub place: Place,
    /// How often it went to memory for a path; with all lanes at once.
    pub executed: u64,
    pub coalesced: u64,
    /// Groups of lanes that went together.
    pub accesses: u64,
    /// Issues for lanes that were left behind.
    pub replays: u64,
    /// Groups that left lanes behind, in main memory and in the scratchpad.
    pub parts: u64,
    pub bank_conflicts: u64,
    /// What they found in the data cache, in a core with one.
    pub hits: Option<u64>,
    pub misses: Option<u64>,
    pub joined: Option<u64>,
}

/// What `heddle predict --auto` would do with this run's profile.
#[derive(Serialize, Deserialize, Default)]
pub struct Advice {
    /// Why it does nothing.
    pub error: Option<String>,
    pub placements: Vec<Placement>,
    pub notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub struct Placement {
    pub what: String,
    /// Threads that wait for each other; 0 is all.
    pub threshold: u32,
    /// Where threads wait.
    pub waits: Vec<Meets>,
    /// Addresses at which they are waited for.
    pub live: Vec<u32>,
}

/// What happened in the cycles `first ..`, bin by bin.
#[derive(Serialize, Deserialize)]
pub struct Time {
    pub first: u64,
    pub cycles_per_bin: u64,
    pub bins: usize,
    /// Cycles of each launch: the first, and the first behind it.
    pub launches: Vec<[u64; 2]>,
    /// Cycles by what issue did: `issued`, a cause, or `nothing_live`.
    pub slots: BTreeMap<String, Vec<u32>>,
    /// Active lanes of what issued.
    pub active: Vec<u32>,
    /// The same in a few rows.
    pub overview: Vec<Row>,
    /// Of each warp, cycles by what it did.
    pub warps: Vec<BTreeMap<String, Vec<u32>>>,
    pub warps_in_all: Vec<BTreeMap<String, u64>>,
    /// Of each lane of each warp, in how many issues it was active.
    pub lanes: Lanes,
}

#[derive(Serialize, Deserialize)]
pub struct Row {
    pub first: u64,
    pub cycles: u64,
    pub slots: BTreeMap<String, u64>,
    pub simt_efficiency: f64,
}

#[derive(Serialize, Deserialize)]
pub struct Lanes {
    pub cycles_per_bin: u64,
    /// By number of the hardware thread: `warp * lanes + lane`.
    pub active: Vec<Vec<u32>>,
    pub in_all: Vec<u64>,
}

impl Report {
    /// Of a profile that was read: what about its numbers over time does not fit together.
    pub fn check(&self) -> Result<()> {
        let Time { first, cycles_per_bin, bins, slots, warps, .. } = &self.time;
        let most = 1 << 53;
        ensure!(!self.command.contains(char::is_control), "its command is not one line of text");
        ensure!(*bins <= COLUMNS, "`bins` is {bins}, and {COLUMNS} at most are possible");
        ensure!((1..most).contains(cycles_per_bin), "`cycles_per_bin` is {cycles_per_bin}");
        ensure!(*first < most, "`first` is {first}");
        ensure!(warps.len() as u64 == u64::from(self.warps), "there are {} warps of {}", warps.len(), self.warps);
        for (name, counts) in warps.iter().chain([slots]).flatten() {
            ensure!(counts.len() == *bins, "`{name}` has {} numbers for {bins} bins", counts.len());
        }
        Ok(())
    }

    /// As JSON, with a line each for lines, branches, accesses and instructions.
    pub fn json(&self) -> Result<String> {
        let mut text = Vec::new();
        self.serialize(&mut Serializer::with_formatter(&mut text, Shallow { depth: 0 }))?;
        text.push(b'\n');
        Ok(String::from_utf8(text)?)
    }
}

/// Lines for what is up to two levels deep.
struct Shallow {
    depth: usize,
}

impl Shallow {
    fn line(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        if self.depth <= 2 { write!(out, "\n{:1$}", "", 2 * self.depth) } else { Ok(()) }
    }

    fn next(&self, out: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b"," })?;
        self.line(out)
    }

    fn end(&mut self, out: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < 2 {
            self.line(out)?;
        }
        out.write_all(bracket)
    }
}

impl Formatter for Shallow {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

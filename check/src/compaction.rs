//! What compaction did, and whether it was worth it: of a simulated core with block stacks
//! ([`heddle_simt::divergence::block_stack`]), from what is recorded of its probes and registers.
//!
//! **Warps before and after.** Each time threads that a branch or jump sent one way become the top of their block's
//! stack, the warps that came there with at least one of them are counted, and the warps that run them afterwards:
//! those that are formed, and those that are ahead. Threads that meet again are not counted.
//!
//! **Entries.** A level of the unit's stack is what one branch has left: the side that has not run, and those that meet
//! where its threads reconverge, if they reconverge with others later. `thread-block-compaction.txt` has an entry for each
//! of them, and one for what runs; so many entries are in use. Points of likely convergence have none of their own.
//!
//! **Owed.** Where warps form anew, a block waits for the writes of its threads once all of its warps have come.
//! Opportunities to issue that were not taken while one did are counted; others may have waited, too.
//!
//! **Prediction.** A *dynamic branch* is one execution of a conditional branch by the warps that run a block's top.
//! Each of its warps waits for the others (*stall*) or does not (*bypass*: it goes on alone, or ahead). [`needed`] says
//! how many of them had to wait for the fewest warps behind the branch. As `capri.txt` §5.1 compares that number with
//! how many waited: those that waited are right up to it, wrong beyond it; where fewer waited, so many that did not are
//! wrong, and the others right.
//!
//! Where the paper says no more, it is so here:
//!
//! * A side that is where threads reconverge already does not run, so nothing is to be gained for it. A warp with
//!   [`Compaction::Predict`] that goes there as a whole goes on, or, where those of the top reconverge, waits for the
//!   others to meet them, not to form warps: it bypasses. How many wait is counted beside the four classes
//!   ([`Prediction::bypass_waits`]).
//! * A warp that need not wait, since no other of its block runs and it does not part, counts as one that waits for itself
//!   alone: it stalls, and becomes one warp. So it is counted alike whether the unit lets it go on or has it arrive.
//! * Several choices may be the least: numbers are compared, not warps.
//! * What a decision does to the branches behind it does not count.
//! * Jumps are always waited at, and no decision. [`Compaction::Off`] waits for the same warps as if it formed new ones,
//!   and is classed so.

mod ahead;

use ahead::Ahead;
use heddle_sim::directory::Directory;
use heddle_sim::{Channel, Engine, Recording, Records, Seen};
use heddle_simt::{Compaction, Shape};
use heddle_testbench::Program;
use heddle_testbench::grid::{Grid, GridError};
use heddle_testbench::machine::{Compactions, Monitor, Prediction, Summary};
use heddle_testbench::program::ProgramError;
use std::collections::HashMap;
use std::sync::Arc;

/// Counts on a machine whose core compacts warps.
pub fn monitor(
    directory: &Directory,
    _program: &Program,
    shape: &Shape,
) -> Result<Option<Box<dyn Monitor>>, ProgramError> {
    let counts = || Box::new(Watched::new(directory, "core", shape)) as Box<dyn Monitor>;
    Ok(shape.divergence.capabilities().mixes_warps.then(counts))
}

/// A warp that executes a branch.
#[derive(Clone, Copy)]
struct Passing {
    /// One bit per lane, of the threads that took it and of the others.
    sides: [u64; 2],
    waits: bool,
    /// As a whole, it has come to where it waits for others to reconverge.
    meets: bool,
}

/// Adds the decisions of a branch's warps, of whose sides `runs` says which have threads that run on; the sides run
/// `apart` from each other or together.
fn decide(decisions: &mut Prediction, warps: &[Passing], runs: [bool; 2], apart: bool) {
    let waited = warps.iter().filter(|warp| warp.waits).count() as u64;
    let sides = |warp: &Passing| match apart {
        true => [0, 1].map(|side| if runs[side] { warp.sides[side] } else { 0 }),
        false => [if runs[0] { warp.sides[0] | warp.sides[1] } else { 0 }, 0],
    };
    let needed = needed(&warps.iter().map(sides).collect::<Vec<_>>()).into();
    let bypassed = warps.len() as u64 - waited;
    decisions.bypass_waits += warps.iter().filter(|warp| warp.meets && !warp.waits).count() as u64;
    let (stall_right, bypass_wrong) = (waited.min(needed), needed.saturating_sub(waited));
    decisions.stall_right += stall_right;
    decisions.stall_wrong += waited - stall_right;
    decisions.bypass_wrong += bypass_wrong;
    decisions.bypass_right += bypassed - bypass_wrong;
}

/// What is known of a block.
#[derive(Clone, Default)]
struct Block {
    /// Warps that have come to where all arrive; and whether that is no jump.
    came: Vec<Passing>,
    branch: bool,
    /// Branches that its warps did not wait at since they were formed, in their order.
    passed: Vec<Vec<Passing>>,
    /// For each level of the stack with a sibling, the warps that came with its threads.
    siblings: Vec<u64>,
    /// For each level, the entries that it stands for.
    entries: Vec<u64>,
}

/// Watches the core of one launch after another.
pub struct Watched {
    recording: Arc<Recording>,
    /// What was not looked at yet.
    records: Records,
    shape: Shape,
    predicts: bool,
    /// Slots of a block.
    group: u32,
    /// By slot; of blocks, their first.
    blocks: Vec<Block>,
    /// Branches that the warp of a slot has passed since it was formed; and those that are not yet of its block, since it
    /// was ahead there.
    passed: Vec<usize>,
    passed_ahead: Vec<Vec<Passing>>,
    /// Whether the warps that are being formed are those of a compaction.
    counts: bool,
    compactions: Compactions,
    prediction: Prediction,
    /// [`Summary::owed`].
    owed: u64,
    /// Where warps go ahead.
    ahead: Option<Ahead>,
}

impl Watched {
    /// A core whose probes are in the directory, under the path `core`.
    pub fn new(directory: &Directory, core: &str, shape: &Shape) -> Watched {
        let warps = shape.warps as usize;
        let recording = Recording::new(directory, channels(directory, core, shape));
        let one_limb_each = |(k, channel): (usize, &Channel)| recording.row(k) == at(channel.values.len());
        assert!(recording.channels().iter().enumerate().all(one_limb_each), "a value has more than 64 bits");
        Watched {
            records: Records::new(&recording),
            recording,
            shape: shape.clone(),
            predicts: shape.compaction == Compaction::Predict,
            group: shape.warps,
            blocks: vec![Block::default(); warps],
            passed: vec![0; warps],
            passed_ahead: vec![Vec::new(); warps],
            counts: false,
            compactions: Compactions::default(),
            prediction: Prediction::default(),
            owed: 0,
            ahead: shape.predicts().then(|| Ahead::new(directory, core, shape)),
        }
    }
}

impl Monitor for Watched {
    fn launch(&mut self, _engine: &dyn Engine, grid: Grid, _entry: u32) -> Result<(), GridError> {
        self.records.clear();
        self.group = grid.slots(&self.shape);
        self.blocks.fill(Block::default());
        self.passed.fill(0);
        self.passed_ahead.iter_mut().for_each(Vec::clear);
        self.counts = false;
        if let Some(ahead) = &mut self.ahead {
            ahead.launch();
        }
        Ok(())
    }

    fn may_find(&self) -> bool {
        false
    }

    fn recorder(&mut self) -> Option<(&Arc<Recording>, &mut Records)> {
        Some((&self.recording, &mut self.records))
    }

    fn look(&mut self, end: u64) -> Result<(), u64> {
        self.follow(end);
        Ok(())
    }

    fn summarise(&self, summary: &mut Summary) {
        summary.compaction = Some(self.compactions);
        summary.prediction = Some(self.prediction);
        summary.owed = Some(self.owed);
        summary.held_ahead = self.ahead.as_ref().map(|ahead| ahead.cycles);
    }
}

impl Watched {
    /// Follows the cycles before `end`, of those with a row each.
    fn follow(&mut self, end: u64) {
        let channels = self.recording.channels().len();
        loop {
            let awaited = self.ahead.as_ref().and_then(Ahead::next);
            let recorded = (0..channels).filter_map(|channel| Some(self.records.first(channel)?[0]));
            let Some(now) = recorded.chain(awaited).min().filter(|now| *now < end) else { return };
            if let Some(ahead) = &mut self.ahead {
                let issued = self.records.take_of(What::Issued as usize, now).is_some();
                ahead.cycle(now, issued, self.records.take_of(What::Held as usize, now));
            }
            if let Some(row) = self.records.take_of(What::Owed as usize, now) {
                // Neither an issue nor the turns of one.
                self.owed += u64::from(row[at(0)..].iter().all(|&taken| taken == 0));
            }
            if let Some(row) = self.records.take_of(What::Outcome as usize, now).map(<[u64]>::to_vec) {
                self.outcome(&row);
            }
            if let Some(row) = self.records.take_of(What::Acts as usize, now).map(<[u64]>::to_vec) {
                self.acts(&row);
            }
            let forms = self.records.take_of(What::Forms as usize, now).is_some();
            self.compactions.warps_after += u64::from(forms && self.counts);
        }
    }

    /// A warp has executed a control instruction.
    fn outcome(&mut self, row: &[u64]) {
        let [passes, slot, _, _, _, parts, _, _, _, call, ret] = first(row);
        if let Some(ahead) = &mut self.ahead {
            ahead.outcome(slot as usize, passes == 1 && [parts, call, ret] == [0; 3]);
        }
        if passes == 1 {
            self.passes(row);
        }
    }

    /// A branch or jump.
    fn passes(&mut self, row: &[u64]) {
        let [_, slot, taken, rest] = first(row);
        let [jump, parts, lone, arrives, ahead] = std::array::from_fn(|k| row[at(4 + k)] == 1);
        let is_ahead = row.get(at(11)).is_some_and(|mask| mask >> slot & 1 == 1);
        let slot = slot as usize;
        let block = &mut self.blocks[slot & !(self.group as usize - 1)];
        if parts {
            let whole = taken == 0 || rest == 0;
            let meets = self.predicts && whole && !ahead;
            let waits = !(ahead || meets);
            block.came.push(Passing { sides: [taken, rest], waits, meets });
            block.branch = !jump;
        } else if lone {
            if !jump {
                let warp = Passing { sides: [taken, rest], waits: true, meets: false };
                decide(&mut self.prediction, &[warp], [!arrives; 2], false);
            }
            if !arrives {
                self.compactions.times += 1;
                self.compactions.warps_before += 1;
                self.compactions.warps_after += 1;
            }
        } else if !jump {
            // Where it reconverges with others it does not run.
            let sides = if arrives { [0, 0] } else { [taken, rest] };
            self.passed_ahead[slot].push(Passing { sides, waits: false, meets: arrives });
            if !is_ahead {
                self.joins(slot);
            }
        }
    }

    /// What a warp has passed is of what its block does now.
    fn joins(&mut self, slot: usize) {
        let passed = &mut self.passed[slot];
        let block = &mut self.blocks[slot & !(self.group as usize - 1)];
        for warp in self.passed_ahead[slot].drain(..) {
            if block.passed.len() == *passed {
                block.passed.push(Vec::new());
            }
            block.passed[*passed].push(warp);
            *passed += 1;
        }
    }

    /// The stack of a block begins to run threads, or pops a level.
    fn acts(&mut self, row: &[u64]) {
        let [first, count] = first(row).map(|number: u64| number as usize);
        let [begins, at_branch, apart, as_taken, leaves_sibling, leaves_group, to_sibling, forms] =
            std::array::from_fn(|k| row[at(2 + k)] == 1);
        let [released, ahead] = [10, 11].map(|k| row.get(at(k)).copied().unwrap_or(0));
        if begins {
            for slot in (first..first + self.group as usize).filter(|slot| ahead >> slot & 1 == 0) {
                self.joins(slot);
            }
        }
        let block = &mut self.blocks[first];
        let mut before = to_sibling.then(|| block.siblings[count - 1]);
        block.entries.truncate(count);
        if to_sibling {
            block.entries[count - 1] -= 1;
        }
        if leaves_sibling || leaves_group {
            block.entries.push(u64::from(leaves_sibling) + u64::from(leaves_group));
        }
        let entries = 1 + block.entries.iter().sum::<u64>();
        self.compactions.most_entries = self.compactions.most_entries.max(entries);
        if begins {
            let side = usize::from(!as_taken);
            let (came, passed) = (std::mem::take(&mut block.came), std::mem::take(&mut block.passed));
            let with = |side: usize| came.iter().filter(|warp| warp.sides[side] != 0).count() as u64;
            if at_branch {
                before = Some(if apart { with(side) } else { came.len() as u64 });
                if leaves_sibling {
                    block.siblings.resize(count + 1, 0);
                    block.siblings[count] = with(1 - side);
                }
                if block.branch {
                    let runs = if as_taken || !apart { [forms, leaves_sibling] } else { [leaves_sibling, forms] };
                    decide(&mut self.prediction, &came, runs, apart);
                }
            }
            passed.iter().for_each(|warps| decide(&mut self.prediction, warps, [true; 2], true));
            self.passed[first..first + self.group as usize].fill(0);
        }
        if forms {
            self.counts = before.is_some();
        }
        if let Some(before) = before.filter(|_| forms) {
            self.compactions.times += 1;
            self.compactions.warps_before += before;
            self.compactions.warps_after += released;
        }
    }
}

/// Of warps at a branch, with a bit per lane for the threads of each side: how many must wait, at least, so that as few
/// warps run behind it as can be. That is, over all choices of those that wait, found by search: a warp that does not
/// wait is one warp behind the branch for each side that has threads of it; those that wait are, for each side, as many
/// as one lane has threads at most.
pub fn needed(warps: &[[u64; 2]]) -> u32 {
    let count = |side: usize, lane: u32| warps.iter().filter(|warp| warp[side] >> lane & 1 == 1).count() as u32;
    let most = [0, 1].map(|side| (0..64).map(|lane| count(side, lane)).max().unwrap_or(0));
    let came = [0, 1].map(|side| warps.iter().filter(|warp| warp[side] != 0).count() as u32);
    if most == came {
        return 0;
    }
    // A warp may go on without waiting if, in each lane where it has no thread of a side that it has threads of, that
    // side has fewer threads than the most. Each that does so leaves one less to spare.
    let all = warps.iter().flatten().fold(0, |all, side| all | side);
    let spare = |row: u32| most[row as usize / 64] - count(row as usize / 64, row % 64);
    let lacks = |side: u64| if side == 0 { 0 } else { u128::from(all & !side) };
    let mut kinds: HashMap<u128, u32> = HashMap::new();
    for &[taken, rest] in warps {
        *kinds.entry(lacks(taken) | lacks(rest) << 64).or_default() += 1;
    }
    let mut kinds: Vec<Kind> = kinds.into_iter().map(|(lacks, warps)| Kind { lacks, warps }).collect();
    kinds.sort_by_key(|kind| (kind.lacks.count_ones(), kind.lacks));
    let mut search = Search { rows: rows(u128::from(all) | u128::from(all) << 64).collect(), best: 0 };
    search.from(&kinds, 0, std::array::from_fn(|row| spare(row as u32)));
    warps.len() as u32 - search.best
}

/// Warps that are alike: a bit per lane and side where they have no thread.
#[derive(Clone, Copy)]
struct Kind {
    lacks: u128,
    warps: u32,
}

/// The search for the most warps that may go on without waiting.
struct Search {
    /// Lanes of both sides.
    rows: Vec<usize>,
    best: u32,
}

/// Threads that a lane of a side has less than the most.
type Spare = [u32; 128];

impl Search {
    /// With so many gone already, of these kinds, those with few bits first.
    fn from(&mut self, kinds: &[Kind], gone: u32, spare: Spare) {
        self.best = self.best.max(gone);
        let fits = |kind: &Kind| {
            let least = rows(kind.lacks).map(|row| spare[row]).min();
            let warps = least.map_or(kind.warps, |least| least.min(kind.warps));
            (warps > 0).then_some(Kind { warps, ..*kind })
        };
        let kinds: Vec<Kind> = kinds.iter().filter_map(fits).collect();
        let Some((first, others)) = kinds.split_first() else { return };
        if gone + self.bound(&kinds, &spare) <= self.best {
            return;
        }
        for go in (0..=first.warps).rev() {
            let mut left = spare;
            rows(first.lacks).for_each(|row| left[row] -= go);
            self.from(others, gone + go, left);
        }
    }

    /// At least as many as may go: as if only one lane's spare threads counted, or the sum of all.
    fn bound(&self, kinds: &[Kind], spare: &Spare) -> u32 {
        let of_row = |&row: &usize| {
            let (lack, others): (Vec<Kind>, Vec<Kind>) = kinds.iter().partition(|kind| kind.lacks >> row & 1 == 1);
            let count = |kinds: Vec<Kind>| kinds.iter().map(|kind| kind.warps).sum::<u32>();
            count(others) + count(lack).min(spare[row])
        };
        let mut left: u32 = self.rows.iter().map(|&row| spare[row]).sum();
        let of_sum = kinds.iter().map(|kind| {
            let go = left.checked_div(kind.lacks.count_ones()).map_or(kind.warps, |fit| fit.min(kind.warps));
            left -= go * kind.lacks.count_ones();
            go
        });
        let of_sum: u32 = of_sum.sum();
        self.rows.iter().map(of_row).min().map_or(of_sum, |least| least.min(of_sum))
    }
}

/// The numbers of the bits that are 1.
fn rows(mut mask: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let row = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (row < 128).then_some(row as usize)
    })
}

/// The channels of the recording, in its order.
#[derive(Clone, Copy)]
enum What {
    /// There is an outcome. Whether it is a branch or jump; slot and the lanes of both sides; whether it is a jump, may part,
    /// goes on as the only warp, arrives, goes ahead; is a call, a return. With a prediction, one bit per slot: it is ahead.
    Outcome,
    /// A block's stack acts: the block's first slot, and its levels; eight bits of what it does. With a prediction, warps
    /// that are released, and one bit per slot: it is ahead.
    Acts,
    /// A warp is formed.
    Forms,
    /// Nothing but writes under way keeps a block from going on: whether an instruction issues; where an issue takes several
    /// cycles, how many are left of the last.
    Owed,
    /// With a prediction: [`ahead::held`] and [`ahead::issued`].
    Held,
    Issued,
}

/// Where a row has its `k`-th value: each has a limb.
fn at(k: usize) -> usize {
    1 + k
}

/// The first values of a row.
fn first<const N: usize>(row: &[u64]) -> [u64; N] {
    std::array::from_fn(|k| row[at(k)])
}

fn channels(directory: &Directory, core: &str, shape: &Shape) -> Vec<Channel> {
    let probe = |name: &str| {
        let path = format!("{core}.divergence.{name}");
        Seen::Probe(directory.probes.find(&path).expect("a block stack's probe"))
    };
    let register = |name: &str| {
        let path = format!("{core}.{name}");
        Seen::Register(directory.registers.find(&path).expect("a register of block stacks"))
    };
    let ahead = shape.predicts().then(|| register("divergence.ahead"));
    let mut outcome = vec![probe("passes")];
    outcome.extend(
        ["slot", "taken", "rest", "jump", "parts", "lone", "arrives", "ahead"]
            .map(|name| probe(&format!("passes_{name}"))),
    );
    outcome.extend(["call", "ret"].map(|name| register(&format!("resolve.s9_outcome_{name}"))));
    outcome.extend(ahead);
    let mut acts: Vec<Seen> = ["block", "count", "begins", "at_branch", "apart", "as_taken", "leaves_sibling"]
        .into_iter()
        .chain(["leaves_group", "to_sibling", "forms"])
        .map(|name| probe(&format!("acts_{name}")))
        .collect();
    acts.extend(shape.predicts().then(|| probe("released")).into_iter().chain(ahead));
    let issues = directory.probes.find(&format!("{core}.issue_valid")).expect("every core has this probe");
    let turns = directory.registers.find(&format!("{core}.issue.turns_left")).map(Seen::Register);
    let taken = [Seen::Probe(issues)].into_iter().chain(turns).collect();
    let mut channels = vec![
        Channel { guard: register("resolve.s9_outcome_valid"), values: outcome },
        Channel { guard: probe("acts"), values: acts },
        Channel { guard: probe("forms"), values: Vec::new() },
        Channel { guard: probe("owed"), values: taken },
    ];
    if shape.predicts() {
        channels.extend([ahead::held(directory, core, shape), ahead::issued(directory, core)]);
    }
    channels
}

#[cfg(test)]
mod tests;

//! What a run of a program did at each instruction: `heddle run --profile`, which `heddle predict --auto` reads.

use super::PredictError;
use crate::program::Program;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Threads of the widest warp.
const MOST_LANES: u32 = 64;

/// Counts of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How often it issued; the replays of an access are not counted.
    pub issues: u64,
    /// Active lanes, of all issues.
    pub lanes: u64,
    /// How often it would have issued if the threads of a warp had always executed it together: of each warp the count
    /// of the thread that did so most often.
    pub least: u64,
    /// From its issues to the next ones of their warps, replays not counted.
    pub cycles: u64,
}

/// An instruction that issues.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    /// When.
    pub cycle: u64,
    /// In which warp of the core.
    pub warp: u32,
    /// Address.
    pub pc: u32,
    /// The block of its threads.
    pub block: u32,
}

/// What runs of a program did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Of a warp.
    pub lanes: u32,
    /// Says which program it is: a hash of its instructions.
    pub code: String,
    /// By address.
    pub instructions: BTreeMap<u32, Count>,
}

/// A profile in the making.
pub struct Recording {
    profile: Profile,
    /// Numbers of threads, by block and number in the block.
    threads: HashMap<(u32, u32), usize>,
    /// By address and number of a thread, how often the thread executed it.
    counts: BTreeMap<u32, Vec<u32>>,
    /// Cycle and address of each warp's last issue.
    last: HashMap<u32, (u64, u32)>,
}

impl Recording {
    /// Of no run yet.
    pub fn new(program: &Program, lanes: u32) -> Recording {
        let profile = Profile { lanes, code: code(program), instructions: BTreeMap::new() };
        Recording { profile, threads: HashMap::new(), counts: BTreeMap::new(), last: HashMap::new() }
    }

    /// An instruction issued for these threads of a block.
    pub fn issued(&mut self, Issue { cycle, warp, pc, block }: Issue, threads: impl Iterator<Item = u32>) {
        if let Some((since, before)) = self.last.insert(warp, (cycle, pc)) {
            self.profile.instructions.entry(before).or_default().cycles += cycle - since;
        }
        let count = self.profile.instructions.entry(pc).or_default();
        count.issues += 1;
        let of_threads = self.counts.entry(pc).or_default();
        for thread in threads {
            count.lanes += 1;
            let new = self.threads.len();
            let number = *self.threads.entry((block, thread)).or_insert(new);
            of_threads.resize(of_threads.len().max(number + 1), 0);
            of_threads[number] += 1;
        }
    }

    /// The next launch, whose threads are others.
    pub fn launched(&mut self) {
        let mut warps: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
        for (&(block, thread), &number) in &self.threads {
            warps.entry((block, thread / self.profile.lanes)).or_default().push(number);
        }
        for (pc, counts) in &self.counts {
            let most = |warp: &Vec<usize>| warp.iter().filter_map(|&thread| counts.get(thread)).max().copied();
            let least: u64 = warps.values().filter_map(most).map(u64::from).sum();
            self.profile.instructions.entry(*pc).or_default().least += least;
        }
        self.threads.clear();
        self.counts.clear();
        self.last.clear();
    }

    /// What there is so far.
    pub fn profile(mut self) -> Profile {
        self.launched();
        self.profile
    }
}

impl Profile {
    /// Refuses the profile of another program.
    pub fn check(&self, program: &Program) -> Result<(), PredictError> {
        if self.code != code(program) {
            return Err(PredictError::Profile {
                why: "is of another program: make it with `heddle run --profile`".into(),
            });
        }
        let has = |why: String| Err(PredictError::Profile { why: format!("has {why}") });
        if !(1..=MOST_LANES).contains(&self.lanes) {
            return has(format!("warps of {} threads: a core has 1 to {MOST_LANES}", self.lanes));
        }
        let all = |issues: u64| issues.saturating_mul(self.lanes.into());
        let possible = |count: &Count| {
            let cycles = count.cycles == 0 || count.issues > 0;
            cycles && count.issues <= count.lanes && count.lanes <= all(count.issues) && count.lanes <= all(count.least)
        };
        let is_there = |pc: u32| pc.is_multiple_of(4) && program.word(pc).is_some();
        match self.instructions.iter().find(|&(&pc, count)| !is_there(pc) || !possible(count)) {
            Some((&pc, _)) if !is_there(pc) => has(format!("counts at {pc:#x}, where the program has no instruction")),
            Some((pc, _)) => has(format!("counts at {pc:#x} that no run has")),
            None => Ok(()),
        }
    }
}

/// Instructions may be moved to other addresses and not be others, so addresses count too.
fn code(program: &Program) -> String {
    let mut context = md5::Context::new();
    for pc in (0..program.program_end()).step_by(4) {
        context.consume(program.word(pc).unwrap_or(0).to_le_bytes());
    }
    format!("{:x}", context.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::{A0, Asm, addi};

    #[test]
    fn a_profile_is_of_one_program() {
        let one = Asm::default().put([addi(A0, 0, 1)]).exit().program();
        let other = Asm::default().put([addi(A0, 0, 2)]).exit().program();
        let mut recording = Recording::new(&one, 4);
        let issue = |cycle, warp, block| Issue { cycle, warp, pc: 0, block };
        recording.issued(issue(5, 0, 0), [0, 1, 3].into_iter());
        recording.issued(issue(8, 0, 0), 0..4);
        // Other warps, and other launches.
        recording.issued(issue(9, 1, 0), [4].into_iter());
        recording.issued(issue(19, 1, 0), [5].into_iter());
        recording.issued(issue(20, 2, 1), [0].into_iter());
        recording.launched();
        recording.issued(issue(1, 2, 0), [0].into_iter());
        let mut profile = recording.profile();
        assert_eq!(profile.instructions[&0], Count { issues: 6, lanes: 11, least: 2 + 1 + 1 + 1, cycles: 3 + 10 });
        assert_eq!(profile.check(&one), Ok(()));
        assert!(profile.check(&other).unwrap_err().to_string().contains("another program"));
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
        let is_refused = |profile: &Profile, why: &str| {
            let error = profile.check(&one).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        for lanes in [0, 65, u32::MAX] {
            is_refused(&Profile { lanes, ..profile.clone() }, "a core has 1 to 64");
        }
        for outside in [2, one.program_end(), u32::MAX - 3] {
            let mut profile = profile.clone();
            profile.instructions.insert(outside, Count { issues: 1, lanes: 1, least: 1, cycles: 1 });
            is_refused(&profile, "where the program has no instruction");
        }
        for (issues, lanes, least, cycles) in [(1, 5, 2, 0), (2, 1, 1, 0), (2, 8, 1, 0), (3, 9, 2, 0), (0, 0, 0, 1)] {
            profile.instructions.insert(4, Count { issues, lanes, least, cycles });
            is_refused(&profile, "counts at 0x4 that no run has");
        }
    }
}

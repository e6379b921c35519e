//! `sync`: no thread goes on behind it before all threads that it names are there, and those execute a vote or shuffle right
//! behind it together.
//!
//! Threads that come to it together name the same, themselves among them. If those are all that they name, there is nothing
//! to follow. A thread that has ended is waited for no more.

use super::Committed;
use heddle_testbench::iss::Iss;

/// Where a thread waits, and for which lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waits {
    pc: u32,
    lanes: u64,
}

/// The threads that wait, by hardware thread.
pub struct Syncs {
    lanes: u32,
    waits: Vec<Option<Waits>>,
}

impl Syncs {
    pub fn new(threads: u32, lanes: u32) -> Syncs {
        Syncs { lanes, waits: vec![None; threads as usize] }
    }

    pub fn clear(&mut self) {
        self.waits.fill(None);
    }

    /// Before threads execute an instruction, which is a vote or a shuffle if `together`: may those that have waited go
    /// on? Returns who may not, and why.
    pub fn go_on(&mut self, iss: &Iss, commit: Committed, together: bool) -> Result<(), (u32, String)> {
        for &thread in commit.threads {
            let Some(waits) = self.waits[thread as usize] else { continue };
            let first = thread - thread % self.lanes;
            let live = |lanes: u64| {
                super::bits(lanes).map(move |lane| first + lane).filter(|&other| iss.hart(other).is_live())
            };
            let group: Vec<u32> = live(waits.lanes).collect();
            for &other in &group {
                let same = |others: Waits| others.pc == waits.pc && live(others.lanes).eq(live(waits.lanes));
                if !self.waits[other as usize].is_some_and(same) {
                    return Err((thread, format!("goes on behind its sync before thread {other}, which that names")));
                }
                if together && !commit.threads.contains(&other) {
                    return Err((thread, format!("without thread {other}, which came to the sync with it")));
                }
            }
            group.into_iter().for_each(|other| self.waits[other as usize] = None);
        }
        Ok(())
    }

    /// Threads execute a `sync`. Returns who should not with the others, and why.
    pub fn arrive(&mut self, iss: &Iss, commit: Committed) -> Result<(), (u32, String)> {
        let here = commit.threads.iter().fold(0u64, |lanes, thread| lanes | 1 << (thread % self.lanes));
        let lanes = iss.named(commit.threads[0]);
        if let Some(&other) = commit.threads.iter().find(|&&thread| iss.named(thread) != lanes) {
            return Err((other, format!("comes with threads that name {lanes:#x}")));
        }
        if here & !lanes != 0 {
            return Err((commit.threads[0], format!("comes with lanes {here:#x}, which it does not name")));
        }
        if here != lanes {
            let waits = Some(Waits { pc: commit.pc, lanes });
            commit.threads.iter().for_each(|&thread| self.waits[thread as usize] = waits);
        }
        Ok(())
    }
}

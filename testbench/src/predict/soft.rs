//! The instructions of a barrier, by number; those of a threshold in both ways (§4.6).
//!
//! `wait b,t` has the threshold itself. As Figure 6 builds it, of three barriers: bAll has all threads of the region;
//! bTemp is where they wait, first for all of bAll; bCount counts those that have arrived. Who arrives as the last that
//! is needed moves bCount to bTemp, so that exactly those who are here go on, and behind the wait all are expected
//! again. The figure does not cancel bCount where threads leave the region; without that they would be waited for
//! later. It cancels bTemp before bAll; where another path may run in between, and copy bAll, the order must be the
//! other.

use super::linked::Linked;
use super::place::Barrier;
use crate::asm;

/// How thresholds are built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Soft {
    /// Into the wait.
    #[default]
    Wait,
    /// Of three barriers, which count.
    Count,
}

impl Soft {
    /// Numbers that a barrier needs.
    pub(super) fn wants(self, barrier: &Barrier) -> u32 {
        if self.counts(barrier) { 3 } else { 1 }
    }

    fn counts(self, barrier: &Barrier) -> bool {
        self == Soft::Count && barrier.threshold > 0
    }

    pub(super) fn join(self, barrier: &Barrier, numbers: &[u32]) -> Vec<u32> {
        match *numbers {
            [temp, all, _] if self.counts(barrier) => vec![asm::join(all), asm::copy(temp, all)],
            _ => vec![asm::join(numbers[0])],
        }
    }

    pub(super) fn cancel(self, numbers: &[u32]) -> Vec<u32> {
        // bTemp last: in between, others may copy the rest to it.
        numbers.iter().rev().map(|&number| asm::cancel(number)).collect()
    }

    /// The wait, and the rejoin if there is one. `free` is a register that the program does not use.
    pub(super) fn wait(self, barrier: &Barrier, numbers: &[u32], again: bool, free: u32) -> Vec<u32> {
        match *numbers {
            [temp, all, count] if self.counts(barrier) => {
                let threshold = barrier.threshold as i32;
                // Over the move, to the wait.
                let skip = asm::r(0, 0, free, asm::BNE, 0, 0x63) | 8 << 7;
                let mut words =
                    vec![asm::join(count), asm::count(free, count), asm::sltiu(free, free, threshold), skip];
                words.extend([asm::move_(temp, count), asm::wait(temp, 0)]);
                words.push(if again { asm::copy(temp, all) } else { asm::cancel(all) });
                words
            }
            _ => {
                let rejoin = again.then(|| asm::join(numbers[0]));
                [asm::wait(numbers[0], barrier.threshold)].into_iter().chain(rejoin).collect()
            }
        }
    }
}

/// A register that no instruction of the program names.
pub fn free_register(linked: &Linked) -> Option<u32> {
    let mut used = [false; 32];
    used[0] = true;
    for &pc in &linked.reached {
        let instruction = linked.instruction(pc);
        instruction.reads().chain(instruction.writes()).for_each(|register| used[register as usize] = true);
    }
    // The arguments of `ecall`, and what its convention gives a meaning.
    [1, 2, 3, 10, 17].iter().for_each(|&register| used[register] = true);
    (0..32).rev().find(|&register| !used[register]).map(|register| register as u32)
}

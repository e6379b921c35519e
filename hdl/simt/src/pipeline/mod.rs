//! The ten stages, in the order in which an instruction passes them.
//!
//! | stage | file | what happens |
//! |---|---|---|
//! | 1 steer | [`steer`] | choose the slot to fetch for |
//! | 2 fetch | [`fetch`] | instruction memory read |
//! | 3 decode | [`decode`] | into the slot's instruction buffer |
//! | 4 issue | [`issue`] | scoreboard check, choose a ready slot, take its mask |
//! | 5, 6 collect | [`collect`] | register file read, one bank a lane |
//! | 7 execute | [`execute`], [`divide`] | ALU, branch condition, address; the divider starts |
//! | 8 resolve | [`resolve`] | taken masks, targets, served lanes, faults |
//! | 9 converge ∥ memory | [`crate::divergence`], [`memory`], [`load_queue`] | paths are updated; memory is accessed |
//! | 10 write back | [`writeback`] | gather, align, register write |

pub mod collect;
pub mod decode;
pub mod divide;
pub mod execute;
pub mod fetch;
pub mod issue;
pub mod load_queue;
pub mod memory;
pub mod resolve;
pub mod steer;
pub mod writeback;

#[cfg(test)]
mod testing {
    use heddle_hdl::Bits;

    /// Words side by side, the first lowest: a value of 32 bits a lane.
    pub fn packed(words: &[u32]) -> Bits {
        let pair = |p: &[u32]| u64::from(p[0]) | u64::from(p.get(1).copied().unwrap_or(0)) << 32;
        Bits::from_limbs(&words.chunks(2).map(pair).collect::<Vec<u64>>())
    }
}

//! The ten stages, in the order in which an instruction passes them.
//!
//! | stage | file | what happens |
//! |---|---|---|
//! | 1 steer | [`steer`] | choose the slot to fetch for |
//! | 2 fetch | [`fetch`] | instruction memory read |
//! | 3 decode | [`decode`] | into the slot's instruction buffer |
//! | 4 issue | [`issue`], [`schedule`] | scoreboard check, choose a ready slot, take its mask |
//! | 5, 6 collect | [`collect`] | register file read, one bank per lane |
//! | 7 execute | [`execute`], [`divide`] | ALU, branch condition, address; the divider starts |
//! | 8 resolve | [`resolve`] | taken masks, targets, served lanes, faults |
//! | 9 converge ∥ memory | [`crate::divergence`], [`memory`], [`load_queue`] | paths are updated; memory is accessed |
//! | 10 write back | [`writeback`], [`gather`](mod@gather) | gather, align, register write |
//!
//! What a stage hands on of an instruction has that stage's name: it is chosen by steer, fetched, decoded, issued,
//! executed, resolved. From stage 6 on, all that is known of it beside values is an
//! [`Instruction`](collect::Instruction), in a field `instruction`.
//!
//! How many cycles lie between them is in one table, [`timing`].

pub mod coalesce;
pub mod collect;
pub mod decode;
pub mod decoded;
pub mod divide;
pub mod execute;
pub mod fetch;
pub mod gather;
pub mod issue;
pub mod load_queue;
pub mod load_store;
pub mod memory;
pub mod network;
pub mod pairs;
pub mod place;
pub mod primitives;
pub mod request_queue;
pub mod reservations;
pub mod resolve;
pub mod schedule;
pub mod steer;
pub mod timing;
pub mod writeback;

#[cfg(test)]
pub(crate) mod testing {
    use heddle_hdl::Bits;

    /// Words side by side, the first lowest: a value of 32 bits per lane.
    pub fn packed(words: &[u32]) -> Bits {
        let pair = |p: &[u32]| u64::from(p[0]) | u64::from(p.get(1).copied().unwrap_or(0)) << 32;
        Bits::from_limbs(&words.chunks(2).map(pair).collect::<Vec<u64>>())
    }

    /// Values of `width` bits side by side, the first lowest.
    pub fn fields(values: &[u32], width: u32) -> Bits {
        let mut limbs = vec![0u64; (values.len() as u32 * width).div_ceil(64).max(1) as usize];
        for (k, &value) in (0..).zip(values) {
            let ones = (0..width).filter(|bit| value >> bit & 1 == 1).map(|bit| k * width + bit);
            ones.for_each(|at| limbs[at as usize / 64] |= 1 << (at % 64));
        }
        Bits::from_limbs(&limbs)
    }
}

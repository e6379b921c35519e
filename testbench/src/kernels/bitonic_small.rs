//! Driver of `bitonic_small`: lists of random pairs.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

/// Pairs of a list that fits in the scratchpad.
pub(super) const LENGTH: usize = 512;
pub(super) const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let lists = device.capacity("keys")? / LENGTH;
    let pairs = pairs(lists * LENGTH, seed);
    write(device, &pairs)?;
    device.launch_grid(Grid { blocks: lists as u32, threads: device.block_threads(THREADS) })?;
    let mut want = pairs;
    want.chunks_exact_mut(LENGTH).for_each(<[_]>::sort_unstable);
    check_pairs(device, &want)
}

/// A key and its value. No two keys are the same, so there is one order.
pub(super) type Pair = (u32, u32);

pub(super) fn pairs(count: usize, seed: u64) -> Vec<Pair> {
    let mut rng = Rng::with_seed(seed);
    let count = count as u32;
    let pair = |number| (rng.u32(..u32::MAX / count) * count + number, number);
    (0..count).map(pair).collect()
}

pub(super) fn write(device: &mut dyn Device, pairs: &[Pair]) -> Result<(), KernelError> {
    let (keys, values): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    device.write_words("keys", &keys)?;
    device.write_words("values", &values)
}

pub(super) fn check_pairs(device: &mut dyn Device, want: &[Pair]) -> Result<Output, KernelError> {
    let (keys, values): (Vec<u32>, Vec<u32>) = want.iter().copied().unzip();
    check("keys", &keys, &device.read_words("keys", keys.len())?)?;
    check("values", &values, &device.read_words("values", values.len())?)?;
    Ok(Output::checked(keys.len() + values.len()))
}

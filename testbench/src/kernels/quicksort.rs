//! Driver of `quicksort`: random lists, some of few different values; as many as the core has blocks at a time.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

/// At least.
const LISTS: usize = 12;
const LENGTH: usize = 128;
const THREADS: RangeInclusive<u32> = 8..=64;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let lanes = device.shape().lanes;
    let threads = lanes.clamp(*THREADS.start(), *THREADS.end()).min(device.threads());
    let most = device.capacity("data")? / LENGTH;
    let blocks = ((device.threads() / threads) as usize).clamp(LISTS, most);
    let mut lists: Vec<u32> = Vec::new();
    for list in 0..blocks {
        let most = if list % 4 == 0 { 15 } else { u32::MAX };
        lists.extend((0..LENGTH).map(|_| rng.u32(..=most)));
    }
    device.write_words("data", &lists)?;
    device.launch_grid(Grid { blocks: blocks as u32, threads })?;
    lists.chunks_mut(LENGTH).for_each(|list| list.sort_unstable());
    check("data", &lists, &device.read_words("data", lists.len())?)?;
    Ok(Output::checked(lists.len()))
}

//! Driver of `quicksort`: random lists, some of few different values.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

const LISTS: usize = 12;
const LENGTH: usize = 128;
const THREADS: RangeInclusive<u32> = 8..=16;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let mut lists: Vec<u32> = Vec::new();
    for list in 0..LISTS {
        let most = if list % 4 == 0 { 15 } else { u32::MAX };
        lists.extend((0..LENGTH).map(|_| rng.u32(..=most)));
    }
    device.write_words("data", &lists)?;
    let lanes = device.shape().lanes;
    let threads = lanes.clamp(*THREADS.start(), *THREADS.end()).min(device.threads());
    device.launch_grid(Grid { blocks: LISTS as u32, threads })?;
    lists.chunks_mut(LENGTH).for_each(|list| list.sort_unstable());
    check("data", &lists, &device.read_words("data", lists.len())?)?;
    Ok(Output::checked(lists.len()))
}

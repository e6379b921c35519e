//! Driver of `rsbench_single`: the inputs of `rsbench`, a thread a lookup.

use super::rsbench::look_up;
use super::{Device, KernelError, Output};

const LOOKUPS: usize = 256;
const MOST_LOOKUPS: usize = 1024;
const THREADS: u32 = 128;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let lookups = device.items(LOOKUPS, MOST_LOOKUPS.min(device.capacity("seeds")?));
    let grid = device.grid_of(lookups, THREADS);
    look_up(device, seed, grid, lookups)
}

//! Driver of `bitonic_large`: a launch for lists that fit in the scratchpad, then for longer and longer runs a launch a
//! stage in main memory, and one for the stages that fit.

use super::bitonic_small::{LENGTH, THREADS, check_pairs, pairs, write};
use super::{Device, KernelError, Output};
use crate::grid::Grid;

const CAPACITY: usize = 2048;

/// Values of `phase`.
const SORT: u32 = 0;
const STAGE: u32 = 1;
const MERGE: u32 = 2;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let pairs = pairs(CAPACITY, seed);
    write(device, &pairs)?;
    let grid = Grid { blocks: (CAPACITY / LENGTH) as u32, threads: device.block_threads(THREADS) };
    let mut launch = |phase, run: usize, distance: usize| -> Result<(), KernelError> {
        device.write_word("phase", phase)?;
        device.write_word("run", run as u32)?;
        device.write_word("distance", distance as u32)?;
        Ok(device.launch_grid(grid)?)
    };
    launch(SORT, 0, 0)?;
    let mut run = 2 * LENGTH;
    while run <= CAPACITY {
        let mut distance = run / 2;
        while distance >= LENGTH {
            launch(STAGE, run, distance)?;
            distance /= 2;
        }
        launch(MERGE, run, 0)?;
        run *= 2;
    }
    let mut want = pairs;
    want.sort_unstable();
    check_pairs(device, &want)
}

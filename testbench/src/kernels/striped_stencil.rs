//! Driver of `striped_stencil`: as `blocked_stencil`, with blocks of up to four rows.

use super::blocked_stencil::{rows, run};
use super::{Device, KernelError, Output};
use crate::grid::Grid;

const MOST_COLUMNS: u32 = 32;
const MOST_THREADS: u32 = 128;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let threads = device.threads().min(MOST_THREADS);
    let columns = threads.min(MOST_COLUMNS);
    device.write_word("log2columns", columns.ilog2())?;
    let blocks = rows(device)? as u32 / (threads / columns);
    run(device, seed, Grid { blocks, threads })
}

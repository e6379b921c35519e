//! Driver of `transpose`: a random matrix that is no square.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const ROWS: usize = 192;
const COLUMNS: usize = 128;
const SIDE: usize = 32;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let matrix = words(ROWS * COLUMNS, || rng.u32(..));
    device.write_words("in", &matrix)?;
    let blocks = (ROWS / SIDE * (COLUMNS / SIDE)) as u32;
    device.launch_grid(Grid { blocks, threads: device.block_threads(THREADS) })?;
    let column = |x: usize| matrix.iter().skip(x).step_by(COLUMNS).copied();
    let want: Vec<u32> = (0..COLUMNS).flat_map(column).collect();
    check("out", &want, &device.read_words("out", want.len())?)?;
    Ok(Output::checked(want.len()))
}

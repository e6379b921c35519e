//! Driver of `transpose`: a random matrix that is no square.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

/// Of the usual size and the small one.
const SIZES: [(usize, usize); 2] = [(192, 128), (96, 32)];
const SIDE: usize = 32;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let room = device.capacity("in")?;
    let (rows, columns) = SIZES.into_iter().find(|(rows, columns)| rows * columns <= room).unwrap_or(SIZES[1]);
    let mut rng = Rng::with_seed(seed);
    let matrix = words(rows * columns, || rng.u32(..));
    device.write_words("in", &matrix)?;
    let blocks = (rows / SIDE * (columns / SIDE)) as u32;
    device.launch_grid(Grid { blocks, threads: device.block_threads(THREADS) })?;
    let column = |x: usize| matrix.iter().skip(x).step_by(columns).copied();
    let want: Vec<u32> = (0..columns).flat_map(column).collect();
    check("out", &want, &device.read_words("out", want.len())?)?;
    Ok(Output::checked(want.len()))
}

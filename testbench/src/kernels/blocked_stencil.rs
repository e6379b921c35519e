//! Driver of `blocked_stencil`, and what the other stencil shares with it: random words, sums modulo 2^32.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const COLUMNS: usize = 128;
const TILE: usize = 32 * 8;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let threads = device.block_threads(THREADS);
    let blocks = (rows(device)? * COLUMNS / TILE) as u32;
    run(device, seed, Grid { blocks, threads })
}

pub(super) fn rows(device: &dyn Device) -> Result<usize, KernelError> {
    Ok(device.capacity("in")? / COLUMNS)
}

pub(super) fn run(device: &mut dyn Device, seed: u64, grid: Grid) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let rows = rows(device)?;
    let points = words(rows * COLUMNS, || rng.u32(..));
    device.write_words("in", &points)?;
    device.launch_grid(grid)?;
    let at = |x: usize, y: usize| if x < COLUMNS && y < rows { points[y * COLUMNS + x] } else { 0 };
    let sum = |place: usize| {
        let (x, y) = (place % COLUMNS, place / COLUMNS);
        let neighbours = [at(x.wrapping_sub(1), y), at(x + 1, y), at(x, y.wrapping_sub(1)), at(x, y + 1)];
        neighbours.iter().fold(at(x, y), |sum, word| sum.wrapping_add(*word))
    };
    let want: Vec<u32> = (0..rows * COLUMNS).map(sum).collect();
    check("out", &want, &device.read_words("out", want.len())?)?;
    Ok(Output::checked(want.len()))
}

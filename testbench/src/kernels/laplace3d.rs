//! Driver of `laplace3d`: random values below 2^13, of which the product with a sixth of 2^18 rounds down as the
//! division does.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

/// Width and most height of the usual size and the small one: 4 more than a multiple of a part's columns, as the 100 of
/// the papers' box.
const PLANES: [(usize, usize); 2] = [(100, 32), (36, 12)];
const DEPTH: usize = 6;
/// What a block takes of a plane, and rows of parts.
const COLUMNS: usize = 32;
const ROWS: usize = 4;
const LEAST: usize = 2;
const THREADS: u32 = 128;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let plane = device.capacity("after")? / DEPTH;
    let [usual, small] = PLANES;
    let (width, most) = if usual.0 * usual.1 == plane { usual } else { small };
    let across = width.div_ceil(COLUMNS);
    let row = across * COLUMNS * ROWS;
    let rows = device.items(LEAST * row, most / ROWS * row) / row;
    let (blocks, height) = (rows * across, rows * ROWS);
    let before = words(DEPTH * plane, || rng.u32(..1 << 13));
    device.write_words("before", &before)?;
    device.launch_grid(Grid { blocks: blocks as u32, threads: device.block_threads(THREADS) })?;
    let inside = |coordinate: usize, end: usize| (1..end - 1).contains(&coordinate);
    let value = |place: usize| {
        let (x, y, z) = (place % width, place % plane / width, place / plane);
        if y >= height {
            0
        } else if inside(x, width) && inside(y, height) && inside(z, DEPTH) {
            [1, width, plane].iter().map(|apart| before[place - apart] + before[place + apart]).sum::<u32>() / 6
        } else {
            before[place]
        }
    };
    let want: Vec<u32> = (0..before.len()).map(value).collect();
    check("after", &want, &device.read_words("after", want.len())?)?;
    Ok(Output::checked(DEPTH * width * height))
}

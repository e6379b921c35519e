//! Driver of `laplace3d`: random values below 2^13, of which the product with a sixth of 2^18 rounds down as the
//! division does.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const WIDTH: usize = 32;
const DEPTH: usize = 8;
/// Rows of a plane that a block takes, and blocks.
const ROWS: usize = 4;
const BLOCKS: usize = 4;
const THREADS: u32 = 128;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let part = ROWS * WIDTH;
    let plane = device.capacity("after")? / DEPTH;
    let blocks = device.items(BLOCKS * part, plane) / part;
    let before = words(DEPTH * plane, || rng.u32(..1 << 13));
    device.write_words("before", &before)?;
    device.launch_grid(Grid { blocks: blocks as u32, threads: device.block_threads(THREADS) })?;
    let inside = |coordinate: usize, end: usize| (1..end - 1).contains(&coordinate);
    let value = |place: usize| {
        let (x, y, z) = (place % WIDTH, place % plane / WIDTH, place / plane);
        if y >= blocks * ROWS {
            0
        } else if inside(x, WIDTH) && inside(y, blocks * ROWS) && inside(z, DEPTH) {
            [1, WIDTH, plane].iter().map(|apart| before[place - apart] + before[place + apart]).sum::<u32>() / 6
        } else {
            before[place]
        }
    };
    let want: Vec<u32> = (0..before.len()).map(value).collect();
    check("after", &want, &device.read_words("after", want.len())?)?;
    Ok(Output::checked(DEPTH * WIDTH * ROWS * blocks))
}

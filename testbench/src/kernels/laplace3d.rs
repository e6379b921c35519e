//! Driver of `laplace3d`: random values below 2^13, of which the product with a sixth of 2^18 rounds down as the division does.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const SIDE: usize = 16;
const PLANE: usize = SIDE * SIDE;
const ROWS: usize = 4;
const THREADS: u32 = 32;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let before = words(SIDE * PLANE, || rng.u32(..1 << 13));
    device.write_words("before", &before)?;
    device.launch_grid(Grid { blocks: (SIDE / ROWS) as u32, threads: device.block_threads(THREADS) })?;
    let inside = |coordinate: usize| (1..SIDE - 1).contains(&coordinate);
    let value = |place: usize| {
        if inside(place % SIDE) && inside(place / SIDE % SIDE) && inside(place / PLANE) {
            [1, SIDE, PLANE].iter().map(|apart| before[place - apart] + before[place + apart]).sum::<u32>() / 6
        } else {
            before[place]
        }
    };
    let want: Vec<u32> = (0..before.len()).map(value).collect();
    check("after", &want, &device.read_words("after", want.len())?)?;
    Ok(Output::checked(want.len()))
}

//! Driver of `motion`: two frames of random pixels.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const WIDTH: usize = 64;
const REGION: usize = 16;
const PATCH: usize = 4;
const RADIUS: usize = 4;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let height = device.capacity("frame")? / WIDTH;
    let mut rng = Rng::with_seed(seed);
    let mut pixels = || words(WIDTH * height, || rng.u32(..256));
    let (frame, previous) = (pixels(), pixels());
    device.write_words("frame", &frame)?;
    device.write_words("previous", &previous)?;
    let blocks = (WIDTH / REGION * (height / REGION)) as u32;
    device.launch_grid(Grid { blocks, threads: device.block_threads(THREADS) })?;
    let mut want = Vec::new();
    for (top, left) in places(height, WIDTH, REGION) {
        for (down, right) in places(REGION, REGION, PATCH) {
            for (up, back) in places(2 * RADIUS, 2 * RADIUS, 1) {
                let mut sad = 0;
                for (row, column) in places(PATCH, PATCH, 1) {
                    let (y, x) = (top + down + row, left + right + column);
                    let (from_y, from_x) = ((y + up).wrapping_sub(RADIUS), (x + back).wrapping_sub(RADIUS));
                    let inside = from_y < height && from_x < WIDTH;
                    let before = if inside { previous[from_y * WIDTH + from_x] } else { 0 };
                    sad += frame[y * WIDTH + x].abs_diff(before);
                }
                want.push(sad);
            }
        }
    }
    check("sads", &want, &device.read_words("sads", want.len())?)?;
    Ok(Output::checked(want.len()))
}

/// (y, x) of the squares of `side` in a rectangle, row by row.
fn places(height: usize, width: usize, side: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..height).step_by(side).flat_map(move |y| (0..width).step_by(side).map(move |x| (y, x)))
}

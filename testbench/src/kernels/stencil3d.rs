//! Driver of `stencil3d`: random words, sums modulo 2^32.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

/// Of the usual size and the small one.
const SIDES: [usize; 2] = [16, 8];
const TILE: usize = 8;
const CENTRE: u32 = 6;
const THREADS: u32 = 32;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let room = device.capacity("in")?;
    let side = SIDES.into_iter().find(|side| side.pow(3) <= room).unwrap_or(SIDES[1]);
    let plane = side * side;
    let mut rng = Rng::with_seed(seed);
    let points = words(side * plane, || rng.u32(..));
    device.write_words("in", &points)?;
    let blocks = (side / TILE).pow(2) as u32;
    device.launch_grid(Grid { blocks, threads: device.block_threads(THREADS) })?;
    let mut want: Vec<u32> = points.iter().map(|point| point.wrapping_mul(CENTRE).wrapping_neg()).collect();
    // Each pair of neighbours, along each axis.
    for apart in [1, side, plane] {
        for low in (0..points.len()).filter(|place| place / apart % side < side - 1) {
            want[low] = want[low].wrapping_add(points[low + apart]);
            want[low + apart] = want[low + apart].wrapping_add(points[low]);
        }
    }
    check("out", &want, &device.read_words("out", want.len())?)?;
    Ok(Output::checked(want.len()))
}

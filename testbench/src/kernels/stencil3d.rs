//! Driver of `stencil3d`: random words, sums modulo 2^32.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

/// Columns and most rows of the usual size and the small one.
const PLANES: [(usize, usize); 2] = [(64, 64), (32, 16)];
const DEPTH: usize = 4;
/// Of a tile, and how many tiles there are at least.
const WIDTH: usize = 32;
const HEIGHT: usize = 4;
const LEAST: usize = 8;
const CENTRE: u32 = 6;
const THREADS: u32 = (WIDTH * HEIGHT) as u32;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let plane = device.capacity("in")? / DEPTH;
    let [usual, small] = PLANES;
    let (side, most) = if usual.0 * usual.1 == plane { usual } else { small };
    // Tiles of all rows of tiles: as many as there is work for.
    let tile = WIDTH * HEIGHT;
    let across = side / WIDTH;
    let blocks = device.items(LEAST * tile, most * side) / (across * tile) * across;
    let rows = blocks / across * HEIGHT;
    let mut rng = Rng::with_seed(seed);
    let points = words(DEPTH * plane, || rng.u32(..));
    device.write_words("in", &points)?;
    device.launch_grid(Grid { blocks: blocks as u32, threads: device.block_threads(THREADS) })?;
    let is_inside = |place: usize| place % plane / side < rows;
    let centre = |place: usize| if is_inside(place) { points[place].wrapping_mul(CENTRE).wrapping_neg() } else { 0 };
    let mut want: Vec<u32> = (0..points.len()).map(centre).collect();
    // Each pair of neighbours, along each axis.
    let coordinates = |place: usize| [place % side, place % plane / side, place / plane];
    for (axis, (apart, length)) in [(1, side), (side, rows), (plane, DEPTH)].into_iter().enumerate() {
        let has_next = |place: usize| is_inside(place) && coordinates(place)[axis] < length - 1;
        for low in (0..points.len()).filter(|&place| has_next(place)) {
            want[low] = want[low].wrapping_add(points[low + apart]);
            want[low + apart] = want[low + apart].wrapping_add(points[low]);
        }
    }
    check("out", &want, &device.read_words("out", want.len())?)?;
    Ok(Output::checked(want.len()))
}

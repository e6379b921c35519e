//! Driver of `lu`: random factors are the result that is wanted, their product is the matrix. Of odd pivots there is
//! one only. As many matrices as the core has blocks at a time.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

const SIZE: usize = 32;
/// Matrices at least.
const LEAST: usize = 4;
const THREADS: u32 = 64;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let threads = device.block_threads(THREADS);
    let most = device.capacity("matrices")? / (SIZE * SIZE);
    let blocks = ((device.threads() / threads) as usize).clamp(LEAST, most);
    let mut want: Vec<u32> = (0..blocks * SIZE * SIZE).map(|_| rng.u32(..)).collect();
    for factors in want.chunks_mut(SIZE * SIZE) {
        factors.iter_mut().step_by(SIZE + 1).for_each(|pivot| *pivot |= 1);
    }
    let matrices: Vec<u32> = want.chunks(SIZE * SIZE).flat_map(product).collect();
    device.write_words("matrices", &matrices)?;
    // From 4 + 4 threads to 16 + 16, so that the halves of a warp go different ways.
    device.write_word("tile", (device.shape().lanes / 2).clamp(4, 16))?;
    device.launch_grid(Grid { blocks: blocks as u32, threads })?;
    check("matrices", &want, &device.read_words("matrices", want.len())?)?;
    Ok(Output::checked(want.len()))
}

/// Of the factors in a matrix.
fn product(factors: &[u32]) -> Vec<u32> {
    let lower = |row: usize, k: usize| if k < row { factors[row * SIZE + k] } else { (k == row) as u32 };
    let upper = |k: usize, column: usize| if k <= column { factors[k * SIZE + column] } else { 0 };
    let element = |place: usize| {
        let (row, column) = (place / SIZE, place % SIZE);
        (0..SIZE).fold(0u32, |sum, k| sum.wrapping_add(lower(row, k).wrapping_mul(upper(k, column))))
    };
    (0..SIZE * SIZE).map(element).collect()
}

//! Driver of `lu`: random factors are the result that is wanted, their product is the matrix. Of odd pivots there is
//! one only.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

const SIZE: usize = 48;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let mut want: Vec<u32> = (0..SIZE * SIZE).map(|_| rng.u32(..)).collect();
    for pivot in want.iter_mut().step_by(SIZE + 1) {
        *pivot |= 1;
    }
    let lower = |row: usize, k: usize| if k < row { want[row * SIZE + k] } else { (k == row) as u32 };
    let upper = |k: usize, column: usize| if k <= column { want[k * SIZE + column] } else { 0 };
    let element = |place: usize| {
        let (row, column) = (place / SIZE, place % SIZE);
        (0..SIZE).fold(0u32, |sum, k| sum.wrapping_add(lower(row, k).wrapping_mul(upper(k, column))))
    };
    let matrix: Vec<u32> = (0..want.len()).map(element).collect();
    device.write_words("a", &matrix)?;
    // A warp is one unit of threads, from 4 + 4 to 16 + 16, so that its halves go different ways.
    device.write_word("tile", (device.shape().lanes / 2).clamp(4, 16))?;
    device.launch_grid(Grid::one_block(device.threads().min(THREADS)))?;
    check("a", &want, &device.read_words("a", want.len())?)?;
    Ok(Output::checked(want.len()))
}

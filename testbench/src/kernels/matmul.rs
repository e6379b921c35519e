//! Driver of `matmul`: random matrices, products modulo 2^32.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const ROWS: usize = 32;
const INNER: usize = 64;
const COLUMNS: usize = 32;
const MOST_SIDE: u32 = 32;
const THREADS: u32 = 256;
const MOST_THREADS: u32 = 512;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let a = words(ROWS * INNER, || rng.u32(..));
    let b = words(INNER * COLUMNS, || rng.u32(..));
    device.write_words("a", &a)?;
    device.write_words("b", &b)?;
    let threads = device.block_threads(THREADS).min(MOST_THREADS);
    device.write_word("log2side", threads.min(MOST_SIDE).ilog2())?;
    device.launch_grid(Grid { blocks: (ROWS * COLUMNS) as u32 / threads, threads })?;
    let mut want = vec![0u32; ROWS * COLUMNS];
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            for k in 0..INNER {
                let product = a[row * INNER + k].wrapping_mul(b[k * COLUMNS + column]);
                let element = &mut want[row * COLUMNS + column];
                *element = element.wrapping_add(product);
            }
        }
    }
    check("c", &want, &device.read_words("c", want.len())?)?;
    Ok(Output::checked(want.len()))
}

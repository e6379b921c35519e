//! Driver of `matvec`: a random matrix and vector, products modulo 2^32.

use fastrand::Rng;
use heddle_simt::Shape;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const COLUMNS: usize = 1024;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let rows = device.capacity("product")?;
    let mut rng = Rng::with_seed(seed);
    let matrix = words(rows * COLUMNS, || rng.u32(..));
    let vector = words(COLUMNS, || rng.u32(..));
    device.write_words("matrix", &matrix)?;
    device.write_words("vector", &vector)?;
    let &Shape { lanes, warps, .. } = device.shape();
    device.launch_grid(Grid { blocks: warps.min(rows as u32), threads: lanes })?;
    let dot = |row: &[u32]| {
        let products = row.iter().zip(&vector).map(|(a, b)| a.wrapping_mul(*b));
        products.fold(0, u32::wrapping_add)
    };
    let want: Vec<u32> = matrix.chunks_exact(COLUMNS).map(dot).collect();
    check("product", &want, &device.read_words("product", rows)?)?;
    Ok(Output::checked(rows))
}

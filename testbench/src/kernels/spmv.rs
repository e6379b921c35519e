//! Driver of `spmv`: in each row, columns at random distances of 0 to 15, as many as a row of that many columns may
//! hold.

use fastrand::Rng;
use heddle_simt::Shape;

use super::{Device, Heap, KernelError, Output, check};
use crate::grid::Grid;

/// One column of so many has an element, about.
const SPARSITY: usize = 8;
const LEAST_ROWS: usize = 256;
const MOST_ELEMENTS: usize = 1 << 17;
const MOST_WIDTH: usize = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let mut heap = Heap::new(device);
    let &Shape { lanes, .. } = device.shape();
    let rows = LEAST_ROWS.max(device.threads() as usize);
    // Besides indices and elements, there are a vector and a result.
    let fits = heap.words().saturating_sub(rows + SPARSITY * MOST_WIDTH) / (2 * rows);
    let width = (MOST_ELEMENTS / rows).min(MOST_WIDTH).min(fits).max(1);
    let columns = SPARSITY * width;
    let mut indices = vec![0; rows * width];
    let mut elements = vec![0; rows * width];
    for row in 0..rows {
        let mut column = 0;
        for n in 0..width {
            column += rng.usize(..2 * SPARSITY);
            if column >= columns {
                break;
            }
            indices[n * rows + row] = column as u32;
            elements[n * rows + row] = rng.u32(..);
        }
    }
    let vector: Vec<u32> = (0..columns).map(|_| rng.u32(..)).collect();
    heap.put(device, "indices", &indices)?;
    heap.put(device, "elements", &elements)?;
    heap.put(device, "vector", &vector)?;
    let product = heap.put(device, "product", &vec![0; rows])?;
    device.write_word("rows", rows as u32)?;
    device.write_word("width", width as u32)?;
    device.launch_grid(Grid { blocks: rows as u32 / lanes, threads: lanes })?;
    let mut want = vec![0u32; rows];
    for (place, (index, element)) in indices.iter().zip(&elements).enumerate() {
        let dot = &mut want[place % rows];
        *dot = dot.wrapping_add(element.wrapping_mul(vector[*index as usize]));
    }
    let got = device.read(product, 4 * rows)?;
    check("product", &want, &super::from_bytes(&got))?;
    Ok(Output::checked(rows))
}

//! Driver of `reduce`: random words, sums modulo 2^32.

use fastrand::Rng;

use super::{Device, Heap, KernelError, Output, check, words};
use crate::grid::Grid;

/// Words a thread, if memory holds so many: enough for the tree at the end not to matter.
const SHARE: usize = 512;
const MOST_THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let mut heap = Heap::new(device);
    let length = (SHARE * device.threads() as usize).min(heap.words());
    let data = words(length, || rng.u32(..));
    heap.put(device, "data", &data)?;
    device.write_word("length", length as u32)?;
    device.write_word("total", 0)?;
    let threads = device.threads().min(MOST_THREADS);
    device.launch_grid(Grid { blocks: device.threads() / threads, threads })?;
    let want = data.iter().fold(0u32, |sum, word| sum.wrapping_add(*word));
    check("total", &[want], &device.read_words("total", 1)?)?;
    Ok(Output::checked(1))
}

//! Drivers of `scan` and `warp_scan`: rows of random words, sums modulo 2^32.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const LENGTH: usize = 1024;
const MOST_THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let threads = device.threads().min(MOST_THREADS);
    in_blocks(device, seed, threads)
}

/// Whose blocks are warps.
pub(super) mod warp_scan {
    use super::*;

    pub fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        let lanes = device.shape().lanes;
        in_blocks(device, seed, lanes)
    }
}

fn in_blocks(device: &mut dyn Device, seed: u64, threads: u32) -> Result<Output, KernelError> {
    let rows = device.capacity("sums")? / LENGTH;
    let mut rng = Rng::with_seed(seed);
    let data = words(rows * LENGTH, || rng.u32(..));
    device.write_words("data", &data)?;
    device.launch_grid(Grid { blocks: rows as u32, threads })?;
    let sums = |row: &[u32]| -> Vec<u32> {
        let add = |sum: &mut u32, word: &u32| {
            *sum = sum.wrapping_add(*word);
            Some(*sum)
        };
        row.iter().scan(0, add).collect()
    };
    let want: Vec<u32> = data.chunks_exact(LENGTH).flat_map(sums).collect();
    check("sums", &want, &device.read_words("sums", want.len())?)?;
    Ok(Output::checked(want.len()))
}

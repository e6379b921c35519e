//! Driver of `loop_merge`: a thread's inner loops have from 1 to 30 trips, few more often than many.

use fastrand::Rng;

use super::fixed::next;
use super::iteration_delay::mixed;
use super::{Device, KernelError, Output, check, words};

const ITERATIONS: u32 = 32;
const ROUNDS: u32 = 4;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let grid = device.coarse_grid();
    let seeds = words((grid.blocks * grid.threads) as usize, || rng.u32(1..));
    device.write_words("seeds", &seeds)?;
    device.launch_grid(grid)?;
    let want: Vec<u32> = seeds.iter().map(|&seed| sum(seed)).collect();
    check("sums", &want, &device.read_words("sums", want.len())?)?;
    Ok(Output::checked(want.len()))
}

fn sum(mut state: u32) -> u32 {
    (0..ITERATIONS).fold(0, |sum: u32, _| {
        let random = next(&mut state);
        let product: u32 = [27, 22, 17].iter().map(|shift| random >> shift & 31).product();
        sum.rotate_left(1) ^ (0..=product >> 10).fold(random, |x, _| mixed(x, ROUNDS))
    })
}

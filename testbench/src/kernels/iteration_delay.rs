//! Driver of `iteration_delay`: one iteration of eight takes the expensive way.

use fastrand::Rng;

use super::fixed::next;
use super::{Device, KernelError, Output, check, words};

const ITERATIONS: u32 = 128;
const ROUNDS: u32 = 32;
const ODDS: u32 = (1 << 16) / 8;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let grid = device.coarse_grid();
    let seeds = words((grid.blocks * grid.threads) as usize, || rng.u32(1..));
    device.write_words("seeds", &seeds)?;
    device.write_word("odds", ODDS)?;
    device.launch_grid(grid)?;
    let want: Vec<u32> = seeds.iter().map(|&seed| sum(seed)).collect();
    check("sums", &want, &device.read_words("sums", want.len())?)?;
    Ok(Output::checked(want.len()))
}

fn sum(mut state: u32) -> u32 {
    (0..ITERATIONS).fold(0, |sum: u32, _| {
        let random = next(&mut state);
        let more = if random >> 16 < ODDS { mixed(random, ROUNDS) } else { 0 };
        (sum ^ more).rotate_left(1).wrapping_add(random)
    })
}

/// The C's `expensive`.
pub(super) fn mixed(x: u32, rounds: u32) -> u32 {
    (0..rounds).fold(x, |x, round| x.wrapping_mul(0x9e37_79b1).wrapping_add(round).rotate_left(13))
}

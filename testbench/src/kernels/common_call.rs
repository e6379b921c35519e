//! Driver of `common_call`: one iteration of two takes the first side.

use fastrand::Rng;

use super::fixed::next;
use super::iteration_delay::mixed;
use super::{Device, KernelError, Output, check, words};

const ITERATIONS: u32 = 32;
const ROUNDS: u32 = 24;
const ODDS: u32 = (1 << 16) / 2;

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
        let sum = if random >> 16 < ODDS {
            sum ^ mixed(random, ROUNDS)
        } else {
            let other = random ^ sum >> 3;
            sum.wrapping_add(mixed(other.wrapping_add(other << 5), ROUNDS) >> 1)
        };
        sum.rotate_left(1)
    })
}

//! Driver of `monte_carlo`: random seeds, drift and volatility. The host takes one path after another.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

const PATHS: usize = 512;
const STEPS: usize = 16;
const FRACTION_BITS: u32 = 12;
const ONE: i32 = 1 << FRACTION_BITS;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let paths = device.items(PATHS, device.capacity("payoffs")?);
    let seeds = words(paths, || rng.u32(..));
    // Steps are near 1 % of the price.
    let (drift, volatility, strike) = (rng.i32(0..ONE / 256), rng.i32(ONE / 64..ONE / 16), rng.i32(ONE * 7 / 8..ONE));
    device.write_words("seeds", &seeds)?;
    device.write_word("drift", drift as u32)?;
    device.write_word("volatility", volatility as u32)?;
    device.write_word("paths", paths as u32)?;
    device.write_word("strike", strike as u32)?;
    let grid = device.grid_of(paths, THREADS);
    device.launch_grid(grid)?;
    let payoff = |&seed: &u32| {
        let mut price = ONE;
        let step = |random: &u32| {
            let [_, bytes @ ..] = random.to_le_bytes();
            let normal = bytes.iter().map(|&byte| i32::from(byte) - 128).sum::<i32>();
            let rise = drift + ((volatility * normal) >> 8);
            price += (price * rise) >> FRACTION_BITS;
            price
        };
        let next = |random: u32| random.wrapping_mul(1664525).wrapping_add(1013904223);
        let randoms: Vec<u32> =
            std::iter::successors(Some(next(seed)), |&random| Some(next(random))).take(STEPS).collect();
        (randoms.iter().map(step).sum::<i32>() / STEPS as i32 - strike).max(0) as u32
    };
    let want: Vec<u32> = seeds.iter().map(payoff).collect();
    check("payoffs", &want, &device.read_words("payoffs", paths)?)?;
    Ok(Output::checked(paths))
}

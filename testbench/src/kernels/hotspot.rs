//! Driver of `hotspot`: a chip of random power and temperature, for some steps.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const SIDE: usize = 40;
const TILE: usize = 12;
const STEPS: usize = 2;
const LAUNCHES: usize = 2;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let power = words(SIDE * SIDE, || rng.u32(..8 << 12));
    let start = words(SIDE * SIDE, || (60 << 12) + rng.u32(..20 << 12));
    device.write_words("power", &power)?;
    let grid = Grid { blocks: (SIDE.div_ceil(TILE) as u32).pow(2), threads: device.block_threads(THREADS) };
    device.write_words("heat", &start)?;
    for launch in 0..LAUNCHES {
        device.write_word("launch", launch as u32)?;
        device.launch_grid(grid)?;
    }
    let mut want = start.clone();
    let mut heat = start;
    for _ in 0..LAUNCHES {
        heat = (0..STEPS).fold(heat, |heat, _| step(&heat, &power));
        want.extend_from_slice(&heat);
    }
    check("heat", &want, &device.read_words("heat", want.len())?)?;
    Ok(Output::checked(want.len()))
}

/// A step in time: an eighth of the differences to the neighbours that there are, and of the power.
fn step(heat: &[u32], power: &[u32]) -> Vec<u32> {
    let next = |place: usize| {
        let (x, y) = (place % SIDE, place / SIDE);
        let here = heat[place] as i32;
        let towards = |there: bool, neighbour: usize| if there { heat[neighbour] as i32 - here } else { 0 };
        let flow = towards(x > 0, place.wrapping_sub(1))
            + towards(x < SIDE - 1, place + 1)
            + towards(y > 0, place.wrapping_sub(SIDE))
            + towards(y < SIDE - 1, place + SIDE);
        (here + ((flow + power[place] as i32) >> 3)) as u32
    };
    (0..heat.len()).map(next).collect()
}

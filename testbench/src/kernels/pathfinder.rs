//! Driver of `pathfinder`: random costs, and a launch for every few rows.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const COLUMNS: usize = 256;
const TILE: usize = 24;
const STEPS: usize = 4;
const THREADS: u32 = (TILE + 2 * STEPS) as u32;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let rows = device.capacity("cost")? / COLUMNS;
    let mut rng = Rng::with_seed(seed);
    let cost = words(rows * COLUMNS, || rng.u32(..10));
    device.write_words("cost", &cost)?;
    let grid = Grid { blocks: COLUMNS.div_ceil(TILE) as u32, threads: device.block_threads(THREADS) };
    device.write_words("way", &cost[..COLUMNS])?;
    for launch in 0..(rows - 1) / STEPS {
        device.write_word("launch", launch as u32)?;
        device.launch_grid(grid)?;
    }

    let mut want = Vec::new();
    let mut way = vec![0; COLUMNS];
    for (row, costs) in cost.chunks(COLUMNS).enumerate() {
        let least = |column: usize| way[column.saturating_sub(1)..COLUMNS.min(column + 2)].iter().min().unwrap_or(&0);
        way = costs.iter().enumerate().map(|(column, cost)| least(column) + cost).collect();
        if row % STEPS == 0 {
            want.extend_from_slice(&way);
        }
    }
    check("way", &want, &device.read_words("way", want.len())?)?;
    Ok(Output::checked(want.len()))
}

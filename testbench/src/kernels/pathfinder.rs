//! Driver of `pathfinder`: random costs, and a launch for every few rows. The more threads, the more columns.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const ROWS: usize = 9;
const TILE: usize = 24;
const STEPS: usize = 4;
/// Places that a block computes, and the least blocks.
const WIDTH: usize = TILE + 2 * STEPS;
const BLOCKS: usize = 40;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let most = device.capacity("cost")? / ROWS;
    let blocks = device.items(BLOCKS * WIDTH, most / TILE * WIDTH) / WIDTH;
    let columns = blocks * TILE;
    let mut rng = Rng::with_seed(seed);
    let cost = words(ROWS * most, || rng.u32(..10));
    device.write_words("cost", &cost)?;
    device.write_word("columns", columns as u32)?;
    let grid = Grid { blocks: blocks as u32, threads: device.block_threads(WIDTH as u32) };
    device.write_words("way", &cost[..columns])?;
    for launch in 0..(ROWS - 1) / STEPS {
        device.write_word("launch", launch as u32)?;
        device.launch_grid(grid)?;
    }

    let mut want = Vec::new();
    let mut way = vec![0; columns];
    for (row, costs) in cost.chunks(most).enumerate() {
        let least = |column: usize| way[column.saturating_sub(1)..columns.min(column + 2)].iter().min().unwrap_or(&0);
        way = costs[..columns].iter().enumerate().map(|(column, cost)| least(column) + cost).collect();
        if row % STEPS == 0 {
            want.extend_from_slice(&way);
            want.resize(want.len().next_multiple_of(most), 0);
        }
    }
    check("way", &want, &device.read_words("way", want.len())?)?;
    Ok(Output::checked(want.len()))
}

//! Driver of `needle`: random sequences of four letters, the second in part a copy of the first.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

const TILE: usize = 16;
const MATCH: i32 = 5;
const MISMATCH: i32 = -3;
const GAP: i32 = -4;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let length = 4 * device.capacity("across")?;
    let (tiles, side) = (length / TILE, length + 1);
    let mut rng = Rng::with_seed(seed);
    let across: Vec<u8> = (0..length).map(|_| rng.u8(..4)).collect();
    let down: Vec<u8> = across.iter().map(|&letter| if rng.u8(..3) == 0 { rng.u8(..4) } else { letter }).collect();
    device.write_bytes("across", &across)?;
    device.write_bytes("down", &down)?;
    let mut edges = vec![0; side * side];
    for i in 0..side {
        edges[i] = GAP * i as i32;
        edges[i * side] = GAP * i as i32;
    }
    device.write_words("score", &edges.iter().map(|&score| score as u32).collect::<Vec<_>>())?;
    let threads = device.block_threads(TILE as u32);
    for diagonal in 0..2 * tiles - 1 {
        let left = (diagonal + 1).saturating_sub(tiles);
        device.write_word("diagonal", diagonal as u32)?;
        device.write_word("left", left as u32)?;
        device.launch_grid(Grid { blocks: (diagonal.min(tiles - 1) - left + 1) as u32, threads })?;
    }

    let mut want = edges;
    for row in 1..side {
        for column in 1..side {
            let same = across[column - 1] == down[row - 1];
            let aligned = want[(row - 1) * side + column - 1] + if same { MATCH } else { MISMATCH };
            let gap = want[row * side + column - 1].max(want[(row - 1) * side + column]) + GAP;
            want[row * side + column] = aligned.max(gap);
        }
    }
    let want: Vec<u32> = want.into_iter().map(|score| score as u32).collect();
    check("score", &want, &device.read_words("score", want.len())?)?;
    Ok(Output::checked(want.len()))
}

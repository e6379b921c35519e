//! Driver of `needle`: random sequences of four letters, the second of a pair in part a copy of the first. As many pairs
//! as let the tiles of the longest diagonal fill the core.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

/// Of a pair, along each sequence.
const TILES: usize = 2;
/// Of a tile.
const ROWS: usize = 32;
const COLUMNS: usize = 30;
const WIDTH: usize = TILES * COLUMNS;
const HEIGHT: usize = TILES * ROWS;
const SIDE: usize = WIDTH + 1;
const MATCH: i16 = 5;
const MISMATCH: i16 = -3;
const GAP: i16 = -4;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let most = 4 * device.capacity("down")? / HEIGHT;
    let pairs = (device.threads() as usize).div_ceil(TILES * ROWS).min(most);
    let mut rng = Rng::with_seed(seed);
    let across: Vec<u8> = (0..pairs * WIDTH).map(|_| rng.u8(..4)).collect();
    let changed = |rng: &mut Rng, letter: u8| if rng.u8(..3) == 0 { rng.u8(..4) } else { letter };
    let beside = |row: usize| across[row / HEIGHT * WIDTH + row % HEIGHT % WIDTH];
    let down: Vec<u8> = (0..pairs * HEIGHT).map(|row| changed(&mut rng, beside(row))).collect();
    device.write_bytes("across", &across)?;
    device.write_bytes("down", &down)?;
    let mut edges = vec![0; (HEIGHT + 1) * SIDE];
    (0..=WIDTH).for_each(|column| edges[column] = GAP * column as i16);
    (0..=HEIGHT).for_each(|row| edges[row * SIDE] = GAP * row as i16);
    device.write_bytes("score", &bytes(&edges).repeat(pairs))?;
    device.write_word("pairs", pairs as u32)?;
    let threads = device.block_threads(ROWS as u32);
    for diagonal in 0..2 * TILES - 1 {
        let left = (diagonal + 1).saturating_sub(TILES);
        device.write_word("diagonal", diagonal as u32)?;
        device.write_word("left", left as u32)?;
        let of_pair = diagonal.min(TILES - 1) - left + 1;
        device.launch_grid(Grid { blocks: (pairs * of_pair) as u32, threads })?;
    }

    let mut want = Vec::new();
    for (across, down) in across.chunks(WIDTH).zip(down.chunks(HEIGHT)) {
        let mut score = edges.clone();
        for row in 1..=HEIGHT {
            for column in 1..SIDE {
                let same = across[column - 1] == down[row - 1];
                let aligned = score[(row - 1) * SIDE + column - 1] + if same { MATCH } else { MISMATCH };
                let gap = score[row * SIDE + column - 1].max(score[(row - 1) * SIDE + column]) + GAP;
                score[row * SIDE + column] = aligned.max(gap);
            }
        }
        want.extend(bytes(&score));
    }
    check("score", &want, &device.read_bytes("score", want.len())?)?;
    Ok(Output::checked(want.len() / 2))
}

fn bytes(scores: &[i16]) -> Vec<u8> {
    scores.iter().flat_map(|score| score.to_le_bytes()).collect()
}

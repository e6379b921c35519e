//! Driver of `suffix_array`: text and queries as those of `suffix`, but shorter.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::suffix::{self, Queries};
use super::{Device, KernelError, Output, check};

const TEXT: usize = 256;
const QUERIES: usize = 384;
const LENGTHS: RangeInclusive<usize> = 3..=6;
/// Above all letters.
const END: u8 = u8::MAX;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let text = suffix::text(&mut rng, TEXT);
    let queries = Queries::random(&mut rng, &text, device.items(QUERIES, device.capacity("lengths")?), LENGTHS);
    let ended = [&text[..], &[END]].concat();
    let mut suffixes: Vec<u16> = (0..TEXT as u16).collect();
    suffixes.sort_by_key(|&from| &ended[from as usize..]);
    device.write_bytes("text", &ended)?;
    device.write_bytes("suffixes", &suffixes.iter().flat_map(|from| from.to_le_bytes()).collect::<Vec<_>>())?;
    device.write_bytes("queries", &queries.letters)?;
    device.write_words("lengths", &queries.lengths)?;
    let count = queries.lengths.len();
    device.write_word("count", count as u32)?;
    let grid = device.grid_of(count, THREADS);
    device.launch_grid(grid)?;
    let want = queries.matched(&text);
    check("matched", &want, &device.read_bytes("matched", want.len())?)?;
    Ok(Output::checked(queries.starts()))
}

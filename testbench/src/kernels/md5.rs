//! Driver of `md5`: random messages that fit in a block with what the standard puts behind them.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, from_bytes};

const MESSAGES: usize = 256;
/// Bytes of a block, and of them those of the message's length.
const BLOCK: usize = 64;
const LENGTH: usize = 8;
const STEPS: usize = 64;
const THREADS: u32 = 128;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let most = device.capacity("digests")? / 4;
    let count = device.items(MESSAGES, most);
    let mut message = || (0..rng.usize(..BLOCK - LENGTH)).map(|_| rng.u8(..)).collect();
    let messages: Vec<Vec<u8>> = (0..count).map(|_| message()).collect();
    let blocks: Vec<Vec<u32>> = messages.iter().map(|message| from_bytes(&padded(message))).collect();
    let digests: Vec<Vec<u32>> = messages.iter().map(|message| from_bytes(&md5::compute(message).0)).collect();
    let sines: Vec<u32> = (1..=STEPS).map(|step| ((step as f64).sin().abs() * 2f64.powi(32)) as u32).collect();
    device.write_words("messages", &by_word(&blocks, most))?;
    device.write_word("count", count as u32)?;
    device.write_words("sines", &sines)?;
    let grid = device.grid_of(count, THREADS);
    device.launch_grid(grid)?;
    let want = by_word(&digests, most);
    check("digests", &want, &device.read_words("digests", want.len())?)?;
    Ok(Output::checked(4 * count))
}

/// A message, a one, zeros, and the message's length in bits.
fn padded(message: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    block[BLOCK - LENGTH..].copy_from_slice(&(8 * message.len() as u64).to_le_bytes());
    block
}

/// Word 0 of all, then word 1; each with room for the most.
fn by_word(all: &[Vec<u32>], most: usize) -> Vec<u32> {
    let mut words = vec![0; all[0].len() * most];
    for (number, one) in all.iter().enumerate() {
        (0..).zip(one).for_each(|(word, &value): (usize, _)| words[word * most + number] = value);
    }
    words
}

//! Driver of `search`: random lines of few letters, so that beginnings of the word are common.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};

const WIDTH: usize = 64;
const WORD: &[u8] = b"heddle";
const LETTERS: &[u8] = b"hedl";

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let count = 4 * device.capacity("text")? / WIDTH;
    let mut rng = Rng::with_seed(seed);
    let lines: Vec<Vec<u8>> = (0..count).map(|_| line(&mut rng)).collect();
    let mut text = vec![0; count * WIDTH];
    for (line, place) in lines.iter().zip(text.chunks_mut(WIDTH)) {
        place[..line.len()].copy_from_slice(line);
    }
    device.write_bytes("text", &text)?;
    device.write_bytes("word", &[WORD, &[0]].concat())?;
    device.launch()?;

    let want: Vec<u32> = lines.iter().map(|line| column(line)).collect();
    let got = device.read_bytes("column", 2 * count)?;
    let got: Vec<u32> = got.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]) as u32).collect();
    check("column", &want, &got)?;
    let want: Vec<u32> = want.iter().map(|&w| (w != NOWHERE) as u32).collect();
    let got = device.read_bytes("found", count)?;
    let got: Vec<u32> = got.into_iter().map(u32::from).collect();
    check("found", &want, &got)?;
    Ok(Output::checked(2 * count))
}

/// −1 in 16 bits.
const NOWHERE: u32 = 0xffff;

/// A line of 0 to 63 letters; two of three have the word somewhere.
fn line(rng: &mut Rng) -> Vec<u8> {
    let length = rng.usize(..WIDTH);
    let mut line: Vec<u8> = (0..length).map(|_| LETTERS[rng.usize(..LETTERS.len())]).collect();
    if length >= WORD.len() && rng.u32(..3) > 0 {
        let at = rng.usize(..=length - WORD.len());
        line[at..at + WORD.len()].copy_from_slice(WORD);
    }
    line
}

fn column(line: &[u8]) -> u32 {
    let at = line.windows(WORD.len()).position(|window| window == WORD);
    at.map_or(NOWHERE, |at| at as u32)
}

//! Driver of `backprop`: random inputs, weights and targets; an identity in place of the sigmoid.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const NEURONS: usize = 16;
const ROWS: usize = 16;
const FRACTION_BITS: u32 = 12;
const THREADS: u32 = 256;

/// Values of `phase`.
const FORWARD: u32 = 0;
const ADJUST: u32 = 1;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let inputs = device.capacity("input")?;
    let blocks = inputs / ROWS;
    let mut rng = Rng::with_seed(seed);
    // Between −1 and 1.
    let mut numbers = |count| words(count, || rng.i32(-(1 << FRACTION_BITS)..1 << FRACTION_BITS) as u32);
    let (input, target) = (numbers(inputs), numbers(NEURONS));
    let (weight, change) = (numbers(inputs * NEURONS), numbers(inputs * NEURONS));
    device.write_words("input", &input)?;
    device.write_words("weight", &weight)?;
    device.write_words("change", &change)?;
    let grid = Grid { blocks: blocks as u32, threads: device.block_threads(THREADS) };
    device.write_word("phase", FORWARD)?;
    device.launch_grid(grid)?;
    let product = |place: usize| times(input[place / NEURONS], weight[place]);
    let sum = |neuron: usize, inputs: usize, first: usize| {
        (first..first + inputs).fold(0u32, |sum, input| sum.wrapping_add(product(input * NEURONS + neuron)))
    };
    let want: Vec<u32> = (0..blocks * NEURONS).map(|i| sum(i % NEURONS, ROWS, i / NEURONS * ROWS)).collect();
    check("partial", &want, &device.read_words("partial", want.len())?)?;

    let off = |neuron: usize| (target[neuron].wrapping_sub(sum(neuron, inputs, 0)) as i32 >> 4) as u32;
    let error: Vec<u32> = (0..NEURONS).map(off).collect();
    device.write_words("error", &error)?;
    device.write_word("phase", ADJUST)?;
    device.launch_grid(grid)?;
    let momentum = |place: usize| (change[place] as i32 >> 2) as u32;
    let by = |place: usize| times(error[place % NEURONS], input[place / NEURONS]).wrapping_add(momentum(place));
    let want: Vec<u32> = weight.iter().enumerate().map(|(place, weight)| weight.wrapping_add(by(place))).collect();
    check("weight", &want, &device.read_words("weight", want.len())?)?;
    Ok(Output::checked(blocks * NEURONS + want.len()))
}

/// A product in fixed point, in 32 bits.
fn times(a: u32, b: u32) -> u32 {
    (a.wrapping_mul(b) as i32 >> FRACTION_BITS) as u32
}

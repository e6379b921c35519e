//! Driver of `particle_filter`: a bright disc that moves over a dark picture with noise, and filters that follow it,
//! each with its own particles. The host adds weights one after another and divides the sums to draw.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const FRAMES: i32 = 2;
const FILTERS: usize = 2;
const PARTICLES: usize = 256;
const THREADS: u32 = 256;
const SIDE: i32 = 64;
const PLACE_BITS: u32 = 8;
const RADIUS: i32 = 3;
const OFFSETS: [(i32, i32); 4] = [(2, 0), (-2, 0), (0, 2), (0, -2)];
const WEIGHTS: usize = 256;
const BACKGROUND: i32 = 100;
const DISC: i32 = 228;
const TO_WEIGHT: u32 = 10;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let filters = device.items(FILTERS * PARTICLES, device.capacity("seeds")?) / PARTICLES;
    let all = filters * PARTICLES;
    let centre = [rng.i32(0..SIDE), rng.i32(0..SIDE)];
    let mut place = |axis: usize| {
        let spread = RADIUS << PLACE_BITS;
        words(all, || ((centre[axis] << PLACE_BITS) + rng.i32(-spread..spread)) as u32)
    };
    let (mut x, mut y) = (place(0), place(1));
    let mut seeds = words(all, || rng.u32(..));
    let weight = |entry: usize| (65535.0 * ((entry as f64 - 255.0) / 32.0).exp()) as u32 + 1;
    let weights: Vec<u32> = (0..WEIGHTS).map(weight).collect();
    device.write_words("x", &x)?;
    device.write_words("y", &y)?;
    device.write_words("seeds", &seeds)?;
    device.write_words("weights", &weights)?;
    device.write_words("offset_x", &OFFSETS.map(|(x, _)| x as u32))?;
    device.write_words("offset_y", &OFFSETS.map(|(_, y)| y as u32))?;
    for number in 1..=FRAMES {
        let frame = frame(&mut rng, [centre[0] + number, centre[1] + number]);
        let start = rng.u32(..);
        device.write_bytes("frame", &frame)?;
        device.write_word("start", start)?;
        device.launch_grid(Grid { blocks: filters as u32, threads: device.block_threads(THREADS) })?;

        let (mut drawn_x, mut drawn_y) = (Vec::new(), Vec::new());
        let filters = x.chunks(PARTICLES).zip(y.chunks(PARTICLES)).zip(seeds.chunks_mut(PARTICLES));
        for ((x, y), seeds) in filters {
            let (x, y) = draw(x, y, seeds, &frame, &weights, start);
            drawn_x.extend(x);
            drawn_y.extend(y);
        }
        (x, y) = (drawn_x, drawn_y);
    }
    check("x", &x, &device.read_words("x", all)?)?;
    check("y", &y, &device.read_words("y", all)?)?;
    Ok(Output::checked(2 * all))
}

/// The particles of a filter after a frame: they move at random and are drawn anew.
fn draw(x: &[u32], y: &[u32], seeds: &mut [u32], frame: &[u8], weights: &[u32], start: u32) -> (Vec<u32>, Vec<u32>) {
    let (mut sums, mut moved, mut sum) = (Vec::new(), Vec::new(), 0);
    for ((x, y), random) in x.iter().zip(y).zip(seeds) {
        let mut go = |place: &u32| {
            *random = random.wrapping_mul(1664525).wrapping_add(1013904223);
            let [_, _, a, b] = random.to_le_bytes();
            place.wrapping_add(u32::from(a) + u32::from(b)).wrapping_sub(256)
        };
        let to = (go(x), go(y));
        sum += weights[(likelihood(frame, to) >> TO_WEIGHT) as usize];
        sums.push(sum);
        moved.push(to);
    }
    let apart = sum / PARTICLES as u32;
    let drawn = |number: usize| {
        let wanted = start % apart + number as u32 * apart;
        moved[sums.partition_point(|&sum| sum <= wanted)]
    };
    (0..PARTICLES).map(drawn).unzip()
}

/// Edges meet the opposite ones.
fn frame(rng: &mut Rng, centre: [i32; 2]) -> Vec<u8> {
    let mut pixel = |place: i32| {
        let apart = |at: i32, centre: i32| (at - centre + SIDE / 2).rem_euclid(SIDE) - SIDE / 2;
        let (x, y) = (apart(place % SIDE, centre[0]), apart(place / SIDE, centre[1]));
        let light = if x * x + y * y <= RADIUS * RADIUS { DISC } else { BACKGROUND };
        (light + rng.i32(-20..20)) as u8
    };
    (0..SIDE * SIDE).map(&mut pixel).collect()
}

/// Above 0.
fn likelihood(frame: &[u8], (x, y): (u32, u32)) -> i32 {
    let at = |(by_x, by_y): &(i32, i32)| {
        let pixel = |place: u32, by: i32| ((place >> PLACE_BITS) as i32 + by).rem_euclid(SIDE) as usize;
        i32::from(frame[pixel(y, *by_y) * SIDE as usize + pixel(x, *by_x)])
    };
    // The difference of two squares, which is 0 for a black pixel, with that of a black pixel.
    OFFSETS.iter().map(at).map(|pixel| 2 * (DISC - BACKGROUND) * pixel).sum()
}

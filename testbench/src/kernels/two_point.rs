//! Driver of `two_point`: a survey in which half of the points are near others; angles of bins shrink by a constant
//! factor.

use std::f64::consts::{PI, TAU};

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

const POINTS: usize = 512;
const RANDOM: usize = 16;
const BINS: usize = 20;
/// Bins of a word, with five bits each.
const OF_WORD: usize = 6;
const FRACTION_BITS: u32 = 14;
const ONE: f64 = (1 << FRACTION_BITS) as f64;
const FACTOR: f64 = 1.25;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let random: Vec<[f64; 3]> = (0..RANDOM).map(|_| direction(&mut rng)).collect();
    let near = |rng: &mut Rng| {
        let ([a, b, c], [x, y, z]) = (random[rng.usize(..RANDOM)], direction(rng));
        let apart = rng.f64() / 2.0;
        unit([a + apart * x, b + apart * y, c + apart * z])
    };
    let most = device.capacity("points")? / 3;
    let count = device.items(POINTS, most);
    let points: Vec<[f64; 3]> =
        (0..count).map(|_| if rng.bool() { near(&mut rng) } else { direction(&mut rng) }).collect();
    let (points, random) = (fixed(&points), fixed(&random));
    let edges: Vec<i32> = (1..BINS as i32).map(|bin| (ONE * (PI / FACTOR.powi(bin)).cos()) as i32).collect();
    device.write_words("points", &coordinates(&points, most))?;
    device.write_words("random", &coordinates(&random, RANDOM))?;
    device.write_words("edges", &edges.iter().map(|&edge| edge as u32).collect::<Vec<_>>())?;
    device.write_word("count", count as u32)?;
    let threads = device.block_threads(THREADS).min(THREADS);
    device.launch_grid(Grid { blocks: (count as u32).div_ceil(threads), threads })?;
    let mut want = vec![0; BINS.div_ceil(OF_WORD) * most];
    for (number, point) in points.iter().enumerate() {
        for other in &random {
            let cosine = (0..3).map(|axis| point[axis] * other[axis]).sum::<i32>() >> FRACTION_BITS;
            let bin = edges.iter().filter(|&&edge| edge <= cosine).count();
            want[bin / OF_WORD * most + number] += 1 << (bin % OF_WORD * 5);
        }
    }
    check("histograms", &want, &device.read_words("histograms", want.len())?)?;
    Ok(Output::checked(BINS * count))
}

/// All directions are as likely.
fn direction(rng: &mut Rng) -> [f64; 3] {
    let (height, turn) = (2.0 * rng.f64() - 1.0, TAU * rng.f64());
    let radius = (1.0 - height * height).sqrt();
    [radius * turn.cos(), radius * turn.sin(), height]
}

fn unit(vector: [f64; 3]) -> [f64; 3] {
    let length = vector.iter().map(|c| c * c).sum::<f64>().sqrt();
    vector.map(|c| c / length)
}

fn fixed(vectors: &[[f64; 3]]) -> Vec<[i32; 3]> {
    vectors.iter().map(|vector| vector.map(|c| (c * ONE) as i32)).collect()
}

/// All x, then all y, then all z, each with room for so many.
fn coordinates(vectors: &[[i32; 3]], room: usize) -> Vec<u32> {
    let along = |axis: usize| vectors.iter().map(move |vector| vector[axis] as u32);
    (0..3).flat_map(|axis| along(axis).chain(std::iter::repeat(0)).take(room)).collect()
}

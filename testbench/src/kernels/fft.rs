//! Driver of `fft`: random complex numbers; the host transforms the even and the odd half and joins them, the
//! definition's way.

use std::f64::consts::TAU;

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

const TRANSFORMS: usize = 4;
const LENGTH: usize = 256;
const FRACTION_BITS: u32 = 14;
const THREADS: u32 = 128;

/// Real and imaginary part.
type Complex = (i32, i32);

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let transforms = device.items(TRANSFORMS * LENGTH, device.capacity("real")?) / LENGTH;
    let mut number = || rng.i32(-(1 << 14)..1 << 14);
    let numbers: Vec<Complex> = (0..transforms * LENGTH).map(|_| (number(), number())).collect();
    let roots = roots();
    let (real, imaginary) = parts(&numbers);
    let (cosine, sine) = parts(&roots);
    device.write_words("real", &real)?;
    device.write_words("imaginary", &imaginary)?;
    device.write_words("cosine", &cosine)?;
    device.write_words("sine", &sine)?;
    device.launch_grid(Grid { blocks: transforms as u32, threads: device.block_threads(THREADS) })?;
    let want: Vec<Complex> = numbers.chunks(LENGTH).flat_map(|numbers| transform(numbers, &roots)).collect();
    let (real, imaginary) = parts(&want);
    check("real", &real, &device.read_words("real", real.len())?)?;
    check("imaginary", &imaginary, &device.read_words("imaginary", imaginary.len())?)?;
    Ok(Output::checked(2 * want.len()))
}

fn roots() -> Vec<Complex> {
    let fixed = |number: f64| (number * f64::from(1 << FRACTION_BITS)).round() as i32;
    let angles = (0..LENGTH / 2).map(|root| -TAU * root as f64 / LENGTH as f64);
    angles.map(|angle| (fixed(angle.cos()), fixed(angle.sin()))).collect()
}

fn parts(numbers: &[Complex]) -> (Vec<u32>, Vec<u32>) {
    numbers.iter().map(|&(real, imaginary)| (real as u32, imaginary as u32)).unzip()
}

/// The transform, over its length.
fn transform(numbers: &[Complex], roots: &[Complex]) -> Vec<Complex> {
    let length = numbers.len();
    if length == 1 {
        return numbers.to_vec();
    }
    let half = |first: usize| {
        let numbers: Vec<Complex> = numbers[first..].iter().copied().step_by(2).collect();
        transform(&numbers, roots)
    };
    let (even, odd) = (half(0), half(1));
    let mean = |a: i32, b: i32| (a + b) >> 1;
    let pair = |place: usize| {
        let ((re, im), (cosine, sine)) = (odd[place], roots[place * (LENGTH / length)]);
        let (by_re, by_im) = ((re * cosine - im * sine) >> FRACTION_BITS, (re * sine + im * cosine) >> FRACTION_BITS);
        let (re, im) = even[place];
        ((mean(re, by_re), mean(im, by_im)), (mean(re, -by_re), mean(im, -by_im)))
    };
    let (low, high): (Vec<Complex>, Vec<Complex>) = (0..length / 2).map(pair).unzip();
    [low, high].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_near_its_definition() {
        let mut rng = Rng::with_seed(1);
        let numbers: Vec<Complex> = (0..LENGTH).map(|_| (rng.i32(-9999..9999), rng.i32(-9999..9999))).collect();
        for (frequency, (re, im)) in transform(&numbers, &roots()).into_iter().enumerate() {
            let (mut want_re, mut want_im) = (0.0, 0.0);
            for (place, &(re, im)) in numbers.iter().enumerate() {
                let (sine, cosine) = (-TAU * (frequency * place) as f64 / LENGTH as f64).sin_cos();
                want_re += f64::from(re) * cosine - f64::from(im) * sine;
                want_im += f64::from(re) * sine + f64::from(im) * cosine;
            }
            let off = |got: i32, want: f64| (f64::from(got) - want / LENGTH as f64).abs();
            assert!(off(re, want_re) < 4.0 && off(im, want_im) < 4.0, "{frequency}: {re} {im}, {want_re} {want_im}");
        }
    }
}

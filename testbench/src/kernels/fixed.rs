//! Numbers in fixed point, vectors of them, and random numbers, as the C's `fixed.h` has them.

pub(super) const FRACTION_BITS: u32 = 12;
pub(super) const ONE: i32 = 1 << FRACTION_BITS;

pub(super) type Vector = [i32; 3];

pub(super) fn times(a: i32, b: i32) -> i32 {
    (a * b) >> FRACTION_BITS
}

pub(super) fn dot(a: Vector, b: Vector) -> i32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<i32>() >> FRACTION_BITS
}

pub(super) fn scaled(a: Vector, by: i32) -> Vector {
    a.map(|part| times(part, by))
}

pub(super) fn plus(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| a[axis] + b[axis])
}

pub(super) fn minus(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

pub(super) fn root(square: i32) -> i32 {
    (square << FRACTION_BITS).isqrt()
}

/// The nearest.
pub(super) fn fixed(number: f64) -> i32 {
    (number * f64::from(ONE)).round() as i32
}

/// Marsaglia's xorshift; never 0.
pub(super) fn next(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

/// Little-endian halfwords.
pub(super) fn halfwords(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| (number as u16).to_le_bytes()).collect()
}

/// Words of numbers that may be negative.
pub(super) fn signed(numbers: impl IntoIterator<Item = i32>) -> Vec<u32> {
    numbers.into_iter().map(|number| number as u32).collect()
}

/// Of `entries` equal parts of the numbers from 0 to 1, the middles.
pub(super) fn middles(entries: usize) -> impl Iterator<Item = f64> {
    (0..entries).map(move |entry| (entry as f64 + 0.5) / entries as f64)
}

/// A direction of length 1, but for rounding, all as likely.
pub(super) fn direction(rng: &mut fastrand::Rng) -> Vector {
    let z = 2.0 * rng.f64() - 1.0;
    let (sine, cosine) = (std::f64::consts::TAU * rng.f64()).sin_cos();
    let across = (1.0 - z * z).sqrt();
    [across * cosine, across * sine, z].map(fixed)
}

//! Driver of `gcd`: random pairs of 1 to 256.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

/// Pairs a thread, within bounds.
const SHARE: usize = 32;
const LEAST: usize = 2048;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let length = (SHARE * device.threads() as usize).clamp(LEAST, device.capacity("divisor")?);
    let a = words(length, || rng.u32(1..=256));
    let b = words(length, || rng.u32(1..=256));
    device.write_words("a", &a)?;
    device.write_words("b", &b)?;
    device.write_word("length", length as u32)?;
    device.launch()?;
    let want: Vec<u32> = a.iter().zip(&b).map(|(&a, &b)| gcd(a, b)).collect();
    check("divisor", &want, &device.read_words("divisor", length)?)?;
    Ok(Output::checked(length))
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

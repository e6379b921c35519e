//! Driver of `collatz`: random starts whose sequences stay within 32 bits.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

const LENGTH: usize = 1024;
/// No sequence that starts below passes 2^31.
const STARTS: std::ops::Range<u32> = 1..100_000;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let start = words(LENGTH, || rng.u32(STARTS));
    device.write_words("start", &start)?;
    device.write_word("length", LENGTH as u32)?;
    device.launch()?;
    let want: Vec<u32> = start.iter().map(|&value| steps(value)).collect();
    check("steps", &want, &device.read_words("steps", LENGTH)?)?;
    Ok(Output::checked(LENGTH))
}

fn steps(start: u32) -> u32 {
    let next = |&n: &u32| match n {
        1 => None,
        n if n % 2 == 1 => Some(3 * n + 1),
        n => Some(n / 2),
    };
    std::iter::successors(Some(start), next).count() as u32 - 1
}

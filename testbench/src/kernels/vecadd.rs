//! Driver of `vecadd`: random words, wrapping sums.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let length = device.capacity("sum")?;
    let mut rng = Rng::with_seed(seed);
    let a = words(length, || rng.u32(..));
    let b = words(length, || rng.u32(..));
    device.write_words("a", &a)?;
    device.write_words("b", &b)?;
    device.write_word("length", length as u32)?;
    device.launch()?;
    let want: Vec<u32> = a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect();
    check("sum", &want, &device.read_words("sum", length)?)?;
    Ok(Output::checked(length))
}

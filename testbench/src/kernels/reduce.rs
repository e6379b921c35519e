//! Driver of `reduce`: a launch for every level of the tree, until one word is left.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

const LENGTH: usize = 16384;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let data = words(LENGTH, || rng.u32(..));
    device.write_words("data", &data)?;
    let mut half = LENGTH / 2;
    while half > 0 {
        device.write_word("half", half as u32)?;
        device.launch()?;
        half /= 2;
    }
    let want = data.iter().fold(0u32, |sum, word| sum.wrapping_add(*word));
    check("data", &[want], &device.read_words("data", 1)?)?;
    Ok(Output::checked(1))
}

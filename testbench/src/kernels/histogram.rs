//! Driver of `histogram`: random bytes, counted by one block.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};

const BINS: usize = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let length = 4 * device.capacity("data")?;
    let mut rng = Rng::with_seed(seed);
    let data: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
    device.write_bytes("data", &data)?;
    device.write_word("length", length as u32)?;
    device.launch()?;
    let mut want = [0; BINS];
    data.iter().for_each(|&byte| want[byte as usize] += 1);
    check("counts", &want, &device.read_words("counts", BINS)?)?;
    Ok(Output::checked(BINS))
}

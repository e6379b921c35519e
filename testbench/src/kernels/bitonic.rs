//! Driver of `bitonic`: a launch for every stage of the network.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

const LENGTH: usize = 1024;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let data = words(LENGTH, || rng.u32(..));
    device.write_words("data", &data)?;
    let mut run = 2;
    while run <= LENGTH {
        device.write_word("run", run as u32)?;
        let mut distance = run / 2;
        while distance > 0 {
            device.write_word("distance", distance as u32)?;
            device.launch()?;
            distance /= 2;
        }
        run *= 2;
    }
    let mut want = data;
    want.sort_unstable();
    check("data", &want, &device.read_words("data", LENGTH)?)?;
    Ok(Output::checked(LENGTH))
}

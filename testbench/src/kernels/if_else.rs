//! Driver of `if_else`: a launch of all threads, without inputs.

use super::{Device, KernelError, Output, check};

pub(super) fn drive(device: &mut dyn Device, _seed: u64) -> Result<Output, KernelError> {
    device.launch()?;
    let result = |thread: u32| if [0, 5, 6].contains(&(thread % 8)) { thread.pow(2) + 3 } else { 3 * thread + 5 };
    let want: Vec<u32> = (0..device.threads()).map(result).collect();
    check("result", &want, &device.read_words("result", want.len())?)?;
    Ok(Output::checked(want.len()))
}

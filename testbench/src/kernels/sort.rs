//! Driver of `sort`: random lists, element k of list i at k × LISTS + i.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

const LENGTH: usize = 32;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let lists = device.capacity("data")? / LENGTH;
    let mut rng = Rng::with_seed(seed);
    let data = words(lists * LENGTH, || rng.u32(..));
    device.write_words("data", &data)?;
    device.launch()?;
    let mut want = vec![0; data.len()];
    for list in 0..lists {
        let column = data.iter().skip(list).step_by(lists);
        let mut sorted: Vec<i32> = column.map(|&word| word as i32).collect();
        sorted.sort_unstable();
        for (k, value) in sorted.into_iter().enumerate() {
            want[k * lists + list] = value as u32;
        }
    }
    check("data", &want, &device.read_words("data", want.len())?)?;
    Ok(Output::checked(want.len()))
}

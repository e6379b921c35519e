//! Driver of `dispatch`: random operations on random words.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

const OPERATIONS: u32 = 8;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let length = device.capacity("result")?;
    let mut rng = Rng::with_seed(seed);
    let operation = words(length, || rng.u32(..OPERATIONS));
    let x = words(length, || rng.u32(..));
    let y = words(length, || {
        // Small divisors make long quotients; 0 is a divisor too in RISC-V, but not in C.
        let bits = rng.u32(1..=32);
        (rng.u32(..) >> (32 - bits)).max(1)
    });
    device.write_words("operation", &operation)?;
    device.write_words("x", &x)?;
    device.write_words("y", &y)?;
    device.write_word("length", length as u32)?;
    device.launch()?;
    let want: Vec<u32> = (0..length).map(|i| apply(operation[i], x[i], y[i])).collect();
    check("result", &want, &device.read_words("result", length)?)?;
    Ok(Output::checked(length))
}

/// The table of the C file.
fn apply(operation: u32, a: u32, b: u32) -> u32 {
    match operation {
        0 => a.wrapping_add(b),
        1 => ((a as u64 * b as u64) >> 32) as u32,
        2 => (((a as u64) << 16) / b as u64) as u32,
        3 => (a as i32).wrapping_rem(b as i32) as u32,
        4 => a.rotate_left(b & 31),
        5 => (a as i32).min(b as i32) as u32,
        6 => (a ^ b).count_ones(),
        _ => a
            .wrapping_add(b)
            .to_le_bytes()
            .iter()
            .fold(2_166_136_261, |hash: u32, &byte| (hash ^ byte as u32).wrapping_mul(16_777_619)),
    }
}

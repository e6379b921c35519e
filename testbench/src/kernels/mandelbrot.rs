//! Driver of `mandelbrot`: the whole set on a terminal of 80 columns, two pixels a character. The seed changes nothing.

use super::{Device, KernelError, Output, check};
use crate::image::{Image, heat};

const WIDTH: u32 = 80;
const HEIGHT: u32 = 48;
const LIMIT: u32 = 64;
const FRACTION_BITS: u32 = 12;

/// Distance of two pixels, 0.046875, and the top left corner such that −0.6 is in the middle.
const PIXEL: i32 = 192;
const LEFT: i32 = -(0.6 * (1 << FRACTION_BITS) as f64) as i32 - PIXEL * WIDTH as i32 / 2;
const TOP: i32 = -PIXEL * (HEIGHT as i32 - 1) / 2;

pub(super) fn drive(device: &mut dyn Device, _seed: u64) -> Result<Output, KernelError> {
    device.write_word("left", LEFT as u32)?;
    device.write_word("top", TOP as u32)?;
    device.write_word("pixel", PIXEL as u32)?;
    device.write_word("limit", LIMIT)?;
    device.launch()?;
    let pixels = (WIDTH * HEIGHT) as usize;
    let want: Vec<u32> = (0..pixels as i32)
        .map(|i| {
            let (row, column) = (i / WIDTH as i32, i % WIDTH as i32);
            escape(LEFT + column * PIXEL, TOP + row * PIXEL)
        })
        .collect();
    let got = device.read_words("iterations", pixels)?;
    check("iterations", &want, &got)?;
    Ok(Output {
        checked: pixels,
        image: Some(Image { width: WIDTH, height: HEIGHT, pixels: got.into_iter().map(colour).collect() }),
    })
}

/// Iterations until a point leaves the circle of radius 2, at most `LIMIT`.
fn escape(x0: i32, y0: i32) -> u32 {
    let (mut x, mut y) = (0i32, 0i32);
    for n in 0..LIMIT {
        let (xx, yy) = ((x * x) >> FRACTION_BITS, (y * y) >> FRACTION_BITS);
        if xx + yy > 4 << FRACTION_BITS {
            return n;
        }
        y = ((x * y) >> (FRACTION_BITS - 1)) + y0;
        x = xx - yy + x0;
    }
    LIMIT
}

/// Black inside the set. Outside from deep blue over orange to white, the later a point escaped; by the logarithm, as
/// most escape early.
fn colour(iterations: u32) -> [u8; 3] {
    if iterations == LIMIT {
        return [0; 3];
    }
    heat(((iterations + 2) as f32).ln() / ((LIMIT + 2) as f32).ln())
}

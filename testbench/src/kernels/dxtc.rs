//! Driver of `dxtc`: squares of two random colours, mixed, with noise. The host adds errors up pixel by pixel.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

const PIXELS: usize = 16;
/// Squares at least.
const SQUARES: usize = 8;
const THREADS: u32 = 64;
const TURNS: usize = 4;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let most = device.capacity("pixels")? / PIXELS;
    let threads = device.block_threads(THREADS).min(THREADS);
    let each = THREADS as usize;
    let squares = device.items(SQUARES * each, most * each) / each;
    let pixels: Vec<[i32; 3]> = (0..squares).flat_map(|_| square(&mut rng)).collect();
    let ways = ways();
    let words = |of: &dyn Fn(&Way) -> u32| -> Vec<u32> { ways.iter().map(of).collect() };
    let packed = |pixel: &[i32; 3]| pixel.iter().rev().fold(0, |word, &channel| word << 8 | channel as u32);
    device.write_words("pixels", &pixels.iter().map(packed).collect::<Vec<_>>())?;
    device.write_words("ways", &words(&|way| way.bits(|place| place)))?;
    device.write_words("reciprocals", &words(&|way| way.reciprocal() as u32))?;
    device.launch_grid(Grid { blocks: squares as u32, threads })?;
    let want: Vec<u32> = pixels.chunks(PIXELS).flat_map(|square| compressed(square, &ways)).collect();
    check("compressed", &want, &device.read_words("compressed", want.len())?)?;
    Ok(Output::checked(want.len()))
}

fn square(rng: &mut Rng) -> Vec<[i32; 3]> {
    let ends = [(); 2].map(|()| [(); 3].map(|()| rng.i32(0..256)));
    let pixel = |_| {
        let part = rng.i32(0..=16);
        [0, 1, 2]
            .map(|c: usize| ((ends[0][c] * part + ends[1][c] * (16 - part)) / 16 + rng.i32(-12..=12)).clamp(0, 255))
    };
    (0..PIXELS).map(pixel).collect()
}

/// For each place in the order along the axis, thirds of the first colour.
struct Way([i32; PIXELS]);

/// All ways to part the order into four of even lengths, from the first colour to the second, that need two colours.
fn ways() -> Vec<Way> {
    let ends = || (0..=PIXELS).step_by(2);
    let all = ends().flat_map(|a| ends().flat_map(move |b| ends().map(move |c| [a, b, c])));
    let ordered = all.filter(|ends| ends.is_sorted());
    let way =
        |ends: [usize; 3]| Way(std::array::from_fn(|place| ends.iter().filter(|&&end| end > place).count() as i32));
    ordered.map(way).filter(|way| way.0[0] != way.0[PIXELS - 1]).collect()
}

impl Way {
    /// Two for each pixel, whose place in the order is given.
    fn bits(&self, place: impl Fn(usize) -> usize) -> u32 {
        (0..PIXELS).map(|pixel| (self.0[place(pixel)] as u32) << (2 * pixel)).sum()
    }

    /// Products of thirds of the first colour with themselves, with those of the second, and of these with themselves.
    fn products(&self) -> [i32; 3] {
        let sum = |product: fn(i32, i32) -> i32| self.0.iter().map(|&part| product(part, 3 - part)).sum();
        [sum(|a, _| a * a), sum(|a, b| a * b), sum(|_, b| b * b)]
    }

    fn reciprocal(&self) -> i64 {
        let [aa, ab, bb] = self.products();
        (3 << 32) / i64::from(aa * bb - ab * ab)
    }

    /// The two colours of least error, in 5, 6 and 5 bits a channel.
    fn colours(&self, ordered: &[[i32; 3]]) -> [[i32; 3]; 2] {
        let ([aa, ab, bb], reciprocal) = (self.products(), self.reciprocal());
        let channel = |channel: usize, most: i32| {
            let [own, rest] = [0, 3].map(|all: i32| -> i32 {
                self.0.iter().zip(ordered).map(|(part, pixel)| (all - part).abs() * pixel[channel]).sum()
            });
            let solved = |numerator: i32| ((i64::from(numerator) * reciprocal) >> 32).clamp(0, 255) as i32;
            [solved(own * bb - rest * ab), solved(rest * aa - own * ab)].map(|value| (value * most + 127) / 255)
        };
        let [red, green, blue] = [channel(0, 31), channel(1, 63), channel(2, 31)];
        [0, 1].map(|end| [red[end], green[end], blue[end]])
    }

    /// Nine times the sum of squares by which pixels are off.
    fn error(&self, ordered: &[[i32; 3]], [first, second]: [[i32; 3]; 2]) -> i32 {
        let of_pixel = |(part, pixel): (&i32, &[i32; 3])| -> i32 {
            (0..3).map(|c| (part * first[c] + (3 - part) * second[c] - 3 * pixel[c]).pow(2)).sum()
        };
        self.0.iter().zip(ordered).map(of_pixel).sum()
    }
}

/// The axis along which pixels differ most, about.
fn axis(pixels: &[[i32; 3]]) -> [i32; 3] {
    let sum = |of: &dyn Fn(&[i32; 3]) -> i32| -> i32 { pixels.iter().map(of).sum() };
    let covariance = |a: usize, b: usize| {
        (PIXELS as i32 * sum(&|pixel| pixel[a] * pixel[b]) - sum(&|pixel| pixel[a]) * sum(&|pixel| pixel[b])) >> 10
    };
    let mut axis = [1 << 10; 3];
    for _ in 0..TURNS {
        axis = [0, 1, 2].map(|a| (0..3).map(|b| covariance(a, b) * axis[b]).sum());
        while axis.iter().any(|coordinate: &i32| coordinate.abs() >= 1 << 13) {
            axis = axis.map(|coordinate| coordinate >> 4);
        }
    }
    axis
}

/// What stands for a square: two colours, and an index a pixel.
fn compressed(pixels: &[[i32; 3]], ways: &[Way]) -> [u32; 2] {
    let axis = axis(pixels);
    let along = |pixel: usize| -> i32 { (0..3).map(|c| pixels[pixel][c] * axis[c]).sum() };
    let mut order: Vec<usize> = (0..PIXELS).collect();
    order.sort_by_key(|&pixel| along(pixel));
    let ordered: Vec<[i32; 3]> = order.iter().map(|&pixel| pixels[pixel]).collect();
    let expanded = |[red, green, blue]: [i32; 3]| [red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2];
    // In quarters, and without what all have.
    let black: i32 = pixels.iter().flatten().map(|channel| 9 * channel * channel).sum();
    let error = |way: &&Way| (way.error(&ordered, way.colours(&ordered).map(expanded)) - black) >> 2;
    let best = ways.iter().min_by_key(error).expect("there are ways");
    let [first, second] = best.colours(&ordered).map(|[red, green, blue]| (red << 11 | green << 5 | blue) as u32);
    let thirds = best.bits(|pixel| order.iter().position(|&other| other == pixel).expect("a pixel has a place"));
    // Of thirds from 0 up.
    let index = |pixel: usize| [1, 3, 2, 0][(thirds >> (2 * pixel) & 3) as usize] << (2 * pixel);
    let indices: u32 = (0..PIXELS).map(index).sum();
    if first < second { [first << 16 | second, indices ^ 0x5555_5555] } else { [second << 16 | first, indices] }
}

//! Driver of `quasi_random`: the first two dimensions of Sobol's sequence, from random shifts on. The host goes from
//! point to point.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, words};

const DIMENSIONS: usize = 2;
const BITS: usize = 14;
const RUN: usize = 8;
const RUNS: usize = 512;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let shifts = words(DIMENSIONS, || rng.u32(..));
    let directions = directions();
    device.write_words("shifts", &shifts)?;
    device.write_words("directions", &directions.concat())?;
    let most = device.capacity("points")? / (DIMENSIONS * RUN);
    let runs = device.items(RUNS, most);
    device.write_word("runs", runs as u32)?;
    let grid = device.grid_of(runs, THREADS);
    device.launch_grid(grid)?;
    let mut want = vec![0; DIMENSIONS * RUN * most];
    for ((places, mut place), directions) in want.chunks_mut(RUN * most).zip(shifts).zip(&directions) {
        for number in 0..RUN * runs {
            if number > 0 {
                place ^= directions[number.trailing_zeros() as usize];
            }
            places[number % RUN * most + number / RUN] = place;
        }
    }
    check("points", &want, &device.read_words("points", want.len())?)?;
    Ok(Output::checked(DIMENSIONS * RUN * runs))
}

/// Of van der Corput's sequence; and of the polynomial x + 1, by Sobol's recurrence.
fn directions() -> [Vec<u32>; DIMENSIONS] {
    let next = |&direction: &u32| Some(direction ^ direction >> 1);
    let sobol = std::iter::successors(Some(1 << 31), next);
    [(0..BITS).map(|bit| 1 << (31 - bit)).collect(), sobol.take(BITS).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What makes the sequence Sobol's: of the first 2^(a+b) points, one is in each box of 2^-a × 2^-b.
    #[test]
    fn points_fill_boxes_evenly() {
        let [x, y] = directions();
        for (a, b) in [(0, 8), (4, 4), (3, 5), (8, 0)] {
            let place = |number: usize, directions: &[u32]| {
                let gray = number ^ number >> 1;
                (0..BITS).filter(|bit| gray >> bit & 1 == 1).fold(0, |place, bit| place ^ directions[bit])
            };
            let part = |place: u32, bits: u32| u64::from(place) >> (32 - bits);
            let mut boxes: Vec<_> =
                (0..1 << (a + b)).map(|number| (part(place(number, &x), a), part(place(number, &y), b))).collect();
            boxes.sort_unstable();
            boxes.dedup();
            assert_eq!(boxes.len(), 1 << (a + b), "{a} {b}");
        }
    }
}

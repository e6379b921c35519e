//! Driver of `face_detection`: a picture of smooth light and noise, and a cascade of random features, of which each
//! stage rejects more than half of the windows that come to it. The host adds pixels, not corners of the integral.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};

const ACROSS: usize = 32;
const DOWN: usize = 16;
const WINDOW: usize = 16;
const WIDTH: usize = ACROSS + WINDOW;
/// Features of each stage.
const STAGES: [usize; 6] = [2, 3, 4, 5, 6, 7];
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let most = device.capacity("passed")?;
    let windows = device.items(ACROSS * DOWN, most);
    let picture = picture(&mut rng, most / ACROSS + WINDOW);
    let (mut features, mut stages) = (Vec::new(), Vec::new());
    let (mut passed, mut score) = (vec![0; windows], vec![0; windows]);
    let mut left: Vec<usize> = (0..windows).collect();
    for count in STAGES {
        let stage: Vec<Feature> = (0..count).map(|_| Feature::random(&mut rng, &picture)).collect();
        for &window in &left {
            score[window] = stage.iter().map(|feature| feature.vote(&picture, window)).sum();
        }
        let mut scores: Vec<i32> = left.iter().map(|&window| score[window]).collect();
        scores.sort_unstable();
        let least = scores[scores.len() * 2 / 3];
        left.retain(|&window| score[window] >= least);
        left.iter().for_each(|&window| passed[window] += 1);
        stages.extend([count as u32, least as u32]);
        features.extend(stage.iter().flat_map(Feature::words));
    }
    device.write_words("integral", &integral(&picture))?;
    device.write_words("features", &features)?;
    device.write_words("stages", &stages)?;
    device.write_word("windows", windows as u32)?;
    let grid = device.grid_of(windows, THREADS);
    device.launch_grid(grid)?;
    check("passed", &passed, &device.read_words("passed", windows)?)?;
    let score: Vec<u32> = score.iter().map(|&score| score as u32).collect();
    check("score", &score, &device.read_words("score", windows)?)?;
    Ok(Output::checked(2 * windows))
}

fn picture(rng: &mut Rng, height: usize) -> Vec<i32> {
    const PATCH: usize = 6;
    let light: Vec<i32> = (0..WIDTH * height / PATCH).map(|_| rng.i32(0..192)).collect();
    let pixel = |place: usize| light[place / WIDTH / PATCH * WIDTH + place % WIDTH / PATCH];
    (0..WIDTH * height).map(|place| pixel(place) + rng.i32(0..64)).collect()
}

/// Of the pixels above and left of a place, their sum.
fn integral(picture: &[i32]) -> Vec<u32> {
    let mut sums = vec![0; picture.len()];
    for row in 1..picture.len() / WIDTH {
        for column in 1..WIDTH {
            let place = row * WIDTH + column;
            let above_left = place - WIDTH - 1;
            sums[place] = sums[place - 1] + sums[place - WIDTH] - sums[above_left] + picture[above_left] as u32;
        }
    }
    sums
}

/// From a window's corner.
struct Rectangle {
    column: usize,
    row: usize,
    width: usize,
    height: usize,
}

impl Rectangle {
    fn brightness(&self, picture: &[i32], window: usize) -> i32 {
        let corner = (window / ACROSS + self.row) * WIDTH + window % ACROSS + self.column;
        (0..self.height).flat_map(|row| &picture[corner + row * WIDTH..][..self.width]).sum()
    }

    fn words(&self) -> [u32; 3] {
        [self.row * WIDTH + self.column, self.width, self.height * WIDTH].map(|number| number as u32)
    }
}

/// The C's `struct feature`.
struct Feature {
    whole: Rectangle,
    part: Rectangle,
    weight: i32,
    threshold: i32,
    below: i32,
    above: i32,
}

impl Feature {
    /// One of two or three upright stripes, whose threshold is its contrast in some window.
    fn random(rng: &mut Rng, picture: &[i32]) -> Feature {
        let stripes = rng.usize(2..=3);
        let (stripe, height) = (rng.usize(2..=WINDOW / stripes), rng.usize(4..=WINDOW));
        let width = stripes * stripe;
        let (column, row) = (rng.usize(..=WINDOW - width), rng.usize(..=WINDOW - height));
        let whole = Rectangle { column, row, width, height };
        let part = Rectangle { column: column + rng.usize(..stripes) * stripe, width: stripe, ..whole };
        let (below, above) = (rng.i32(-20..=20), rng.i32(-20..=20));
        let mut feature = Feature { whole, part, weight: stripes as i32, threshold: 0, below, above };
        feature.threshold = feature.contrast(picture, rng.usize(..ACROSS * DOWN));
        feature
    }

    fn contrast(&self, picture: &[i32], window: usize) -> i32 {
        self.weight * self.part.brightness(picture, window) - self.whole.brightness(picture, window)
    }

    fn vote(&self, picture: &[i32], window: usize) -> i32 {
        if self.contrast(picture, window) < self.threshold { self.below } else { self.above }
    }

    fn words(&self) -> Vec<u32> {
        let numbers = [self.weight, self.threshold, self.below, self.above].map(|number| number as u32);
        [&self.whole.words()[..], &self.part.words(), &numbers].concat()
    }
}

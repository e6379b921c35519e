//! Driver of `pathtracer`: three spheres, one of them a mirror, in a box with a red and a green wall. The host traces
//! the same paths.

use fastrand::Rng;

use super::fixed::{
    FRACTION_BITS, ONE, Vector, direction, dot, fixed, halfwords, minus, next, plus, root, scaled, signed, times,
};
use super::traverse::roots;
use super::{Device, KernelError, Output, check, words};
use crate::image::Image;

const WIDTH: i32 = 32;
const HEIGHT: i32 = 24;
const PIXELS: usize = (WIDTH * HEIGHT) as usize;
/// For each pixel; fewer on a core of few threads.
/// For as many threads as share the pixels at most.
const MOST_SAMPLES: u32 = 8;
const BOUNCES: u32 = 16;
const DIRECTIONS: usize = 1024;
const HALF: i32 = 2 * ONE;
const FRONT: i32 = 4 * ONE;
const LIGHT: i32 = ONE * 3 / 2;
const BRIGHT: i32 = ONE * 9 / 8;
const AMBIENT: i32 = ONE / 4;
const LEAST_DISTANCE: i32 = ONE / 64;
const EYE: Vector = [0, 0, -FRONT + ONE / 16];

/// Red, green and blue of what is thrown back, in percent.
type Colour = [i32; 3];

const WHITE: Colour = [60, 60, 60];
const RED: Colour = [70, 15, 10];
const GREEN: Colour = [15, 60, 20];
/// Left and right, floor and ceiling, front and back.
const WALLS: [Colour; 6] = [RED, GREEN, WHITE, WHITE, [30, 30, 30], WHITE];
const CEILING: usize = 3;

struct Sphere {
    centre: Vector,
    radius: i32,
    mirror: bool,
    colour: Colour,
}

const SPHERES: [Sphere; 3] = [
    Sphere { centre: [-ONE, -ONE * 9 / 8, ONE * 3 / 4], radius: ONE * 7 / 8, mirror: true, colour: [92, 92, 92] },
    Sphere { centre: [ONE, -ONE * 5 / 4, -ONE / 4], radius: ONE * 3 / 4, mirror: false, colour: [75, 60, 20] },
    Sphere { centre: [ONE / 4, -ONE * 13 / 8, -ONE], radius: ONE * 3 / 8, mirror: false, colour: [20, 35, 75] },
];

/// Of 2^16 paths how many go on, the brightest part of the colour; and what of the others' parts they keep.
fn surface(colour: Colour) -> (Vector, u32) {
    let brightest = colour.into_iter().max().unwrap_or(0);
    (colour.map(|part| part * ONE / brightest), (brightest as u32) * (1 << 16) / 100)
}

impl Sphere {
    fn square_radius(&self) -> i32 {
        times(self.radius, self.radius)
    }

    fn inverse_radius(&self) -> i32 {
        (ONE << FRACTION_BITS) / self.radius
    }

    fn words(&self) -> impl Iterator<Item = i32> {
        let (kept, goes_on) = surface(self.colour);
        let numbers = [self.square_radius(), self.inverse_radius(), i32::from(self.mirror)];
        self.centre.into_iter().chain(numbers).chain(kept).chain([goes_on as i32])
    }
}

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let samples = (3 * device.threads() / 64).clamp(1, MOST_SAMPLES);
    let directions: Vec<Vector> = (0..DIRECTIONS).map(|_| direction(&mut rng)).collect();
    let rays: Vec<Vector> = (0..HEIGHT).flat_map(|row| (0..WIDTH).map(move |column| ray(column, row))).collect();
    let seeds = words(PIXELS, || rng.u32(1..));
    let walls = WALLS.iter().flat_map(|&colour| {
        let (kept, goes_on) = surface(colour);
        kept.into_iter().chain([goes_on as i32])
    });
    device.write_words("spheres", &signed(SPHERES.iter().flat_map(Sphere::words)))?;
    device.write_words("walls", &signed(walls))?;
    device.write_bytes("roots", &halfwords(&roots()))?;
    device.write_words("rays", &signed(rays.iter().flatten().copied()))?;
    device.write_words("directions", &signed(directions.iter().flatten().copied()))?;
    device.write_words("seeds", &seeds)?;
    device.write_word("samples", samples)?;
    let grid = device.coarse_grid();
    device.launch_grid(grid)?;
    let sums: Vec<Vector> = rays
        .iter()
        .zip(&seeds)
        .map(|(&along, &seed)| {
            let mut state = seed;
            (0..samples).fold([0; 3], |sum, _| plus(sum, path(along, &directions, &mut state)))
        })
        .collect();
    let want = signed(sums.iter().flatten().copied());
    check("picture", &want, &device.read_words("picture", want.len())?)?;
    let pixels = sums.iter().map(|sum| sum.map(|part| shown(part / samples as i32))).collect();
    let image = Image { width: WIDTH as u32, height: HEIGHT as u32, pixels };
    Ok(Output { checked: want.len(), image: Some(image) })
}

/// As screens want it: the eye sees the root of light.
fn shown(light: i32) -> u8 {
    (f64::from(light) / f64::from(ONE)).sqrt().min(1.0).mul_add(255.0, 0.5) as u8
}

/// The direction in which a pixel is seen.
fn ray(column: i32, row: i32) -> Vector {
    let across = f64::from(2 * column + 1 - WIDTH) / f64::from(HEIGHT);
    let up = f64::from(HEIGHT - 2 * row - 1) / f64::from(HEIGHT);
    let along = [across, up, 1.6];
    let length = along.iter().map(|part| part * part).sum::<f64>().sqrt();
    along.map(|part| fixed(part / length))
}

/// The light that a path from the eye ends at.
fn path(first: Vector, directions: &[Vector], state: &mut u32) -> Vector {
    let (mut from, mut along, mut weight) = (EYE, first, [ONE; 3]);
    for _ in 0..BOUNCES {
        let met = met(from, along);
        from = met.place;
        if met.is_light() {
            return scaled(weight, BRIGHT);
        }
        let (kept, goes_on) = surface(met.colour);
        weight = [0, 1, 2].map(|part| times(weight[part], kept[part]));
        let random = next(state);
        if random >> 16 >= goes_on {
            return scaled(weight, AMBIENT);
        }
        if met.mirror {
            along = minus(along, scaled(met.upright, 2 * dot(met.upright, along)));
        } else {
            let pair = [random, random >> 10].map(|number| directions[number as usize % DIRECTIONS]);
            let [cosine, other] = pair.map(|direction| dot(met.upright, direction));
            let (steeper, cosine) = if other.abs() > cosine.abs() { (pair[1], other) } else { (pair[0], cosine) };
            along = if cosine < 0 { steeper.map(|part| -part) } else { steeper };
        }
    }
    [0; 3]
}

/// What a ray meets.
struct Met {
    place: Vector,
    upright: Vector,
    colour: Colour,
    mirror: bool,
    wall: Option<usize>,
}

impl Met {
    fn is_light(&self) -> bool {
        let [x, _, z] = self.place;
        self.wall == Some(CEILING) && x.abs() < LIGHT && z.abs() < LIGHT
    }
}

fn met(from: Vector, along: Vector) -> Met {
    let low = [-HALF, -HALF, -FRONT];
    let room = |axis: usize| if along[axis] < 0 { from[axis] - low[axis] } else { HALF - from[axis] };
    let over = |axis: usize| along[axis].abs() | 1;
    // Distances compare as fractions do; of equal ones the first counts.
    let axis = (1..3).fold(0, |best, axis| if room(axis) * over(best) < room(best) * over(axis) { axis } else { best });
    let to_wall = (room(axis) << FRACTION_BITS) / over(axis);

    let entries = SPHERES.iter().filter_map(|sphere| {
        let to = minus(sphere.centre, from);
        let middle = dot(to, along);
        let square = times(middle, middle) - dot(to, to) + sphere.square_radius();
        (square > 0 && middle > 0).then(|| (middle - root(square), sphere))
    });
    let near = entries.filter(|&(entry, _)| entry > LEAST_DISTANCE && entry < to_wall);
    if let Some((distance, sphere)) = near.min_by_key(|&(entry, _)| entry) {
        let place = plus(from, scaled(along, distance));
        let upright = scaled(minus(place, sphere.centre), sphere.inverse_radius());
        return Met { place, upright, colour: sphere.colour, mirror: sphere.mirror, wall: None };
    }
    let mut place = plus(from, scaled(along, to_wall));
    let mut upright = [0; 3];
    let back = along[axis] < 0;
    place[axis] = if back { low[axis] } else { HALF };
    upright[axis] = if back { ONE } else { -ONE };
    let wall = 2 * axis + usize::from(!back);
    Met { place, upright, colour: WALLS[wall], mirror: false, wall: Some(wall) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_is_as_bright_as_it_is_and_red_walls_are_red() {
        let mut rng = Rng::with_seed(1);
        let directions: Vec<Vector> = (0..DIRECTIONS).map(|_| direction(&mut rng)).collect();
        let mut mean = |column, row| {
            let samples = 2000;
            let mut state = rng.u32(1..);
            let sum = (0..samples).fold([0; 3], |sum, _| plus(sum, path(ray(column, row), &directions, &mut state)));
            sum.map(|part| part / samples)
        };
        assert_eq!(mean(WIDTH / 2, 1), [BRIGHT; 3]);
        let [red, green, blue] = mean(0, HEIGHT / 2);
        assert!(red > 3 * green / 2 && red > 3 * blue / 2 && red < ONE, "{red} {green} {blue}");
        let [red, green, blue] = mean(WIDTH - 1, HEIGHT / 2);
        assert!(green > 3 * red / 2 && green > 3 * blue / 2, "{red} {green} {blue}");
    }
}

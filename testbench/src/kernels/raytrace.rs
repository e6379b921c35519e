//! Driver of `raytrace`: four spheres on a floor. The host traces the same rays. The seed changes nothing.

use super::fixed::{FRACTION_BITS, ONE, Vector, dot, minus, plus, root, scaled, signed, times};
use super::{Device, KernelError, Output, check};
use crate::image::Image;

const WIDTH: i32 = 64;
const HEIGHT: i32 = 40;
const BOUNCES: u32 = 3;
const FAR: i32 = 11 * ONE;
const FLOOR: i32 = -ONE;
const SIDE: i32 = 4 * ONE;
const AMBIENT: i32 = ONE / 4;
const LEAST_WEIGHT: i32 = ONE / 16;

/// Length 1, but for rounding.
const SUN: Vector = [-2365, 3072, -1344];

struct Sphere {
    centre: Vector,
    radius: i32,
    colour: Vector,
    mirror: i32,
}

const SPHERES: [Sphere; 4] = [
    Sphere { centre: [0, 0, ONE], radius: ONE, colour: [ONE, ONE, ONE], mirror: ONE * 3 / 4 },
    Sphere {
        centre: [-ONE * 7 / 4, -ONE * 3 / 8, 0],
        radius: ONE * 5 / 8,
        colour: [ONE * 7 / 8, ONE / 8, ONE / 8],
        mirror: ONE / 8,
    },
    Sphere {
        centre: [ONE * 3 / 2, -ONE / 2, -ONE / 2],
        radius: ONE / 2,
        colour: [ONE / 8, ONE * 5 / 8, ONE / 4],
        mirror: ONE / 4,
    },
    Sphere {
        centre: [-ONE / 4, -ONE * 3 / 4, -ONE * 3 / 2],
        radius: ONE / 4,
        colour: [ONE, ONE * 3 / 4, ONE / 8],
        mirror: 0,
    },
];

impl Sphere {
    fn words(&self) -> impl Iterator<Item = i32> {
        let numbers = [self.square_radius(), self.inverse_radius(), self.mirror];
        self.centre.into_iter().chain(self.colour).chain(numbers)
    }

    fn square_radius(&self) -> i32 {
        times(self.radius, self.radius)
    }

    fn inverse_radius(&self) -> i32 {
        (ONE << FRACTION_BITS) / self.radius
    }

    /// The square of half of a ray's way through the sphere, and the distance to the middle of it, of a ray that meets
    /// it.
    fn inside(&self, from: Vector, along: Vector) -> Option<(i32, i32)> {
        let to = minus(self.centre, from);
        let middle = dot(to, along);
        let square = times(middle, middle) - dot(to, to) + self.square_radius();
        (square > 0 && middle > 0).then_some((square, middle))
    }
}

pub(super) fn drive(device: &mut dyn Device, _seed: u64) -> Result<Output, KernelError> {
    device.write_words("spheres", &signed(SPHERES.iter().flat_map(Sphere::words)))?;
    device.write_words("sun", &signed(SUN))?;
    device.launch()?;
    let pixels = || (0..HEIGHT).flat_map(|row| (0..WIDTH).map(move |column| (column, row)));
    let colours: Vec<[u8; 3]> = pixels().map(|(column, row)| pixel(column, row)).collect();
    let want: Vec<u32> = colours.iter().map(|&[red, green, blue]| u32::from_be_bytes([0, red, green, blue])).collect();
    check("picture", &want, &device.read_words("picture", want.len())?)?;
    let image = Image { width: WIDTH as u32, height: HEIGHT as u32, pixels: colours };
    Ok(Output { checked: want.len(), image: Some(image) })
}

fn pixel(column: i32, row: i32) -> [u8; 3] {
    let eye = [0, ONE / 2, -5 * ONE];
    let across = (2 * column + 1 - WIDTH) * ONE / WIDTH;
    let up = (HEIGHT - 2 * row - 1) * ONE / WIDTH - ONE / 4;
    let to = [across, up, ONE * 3 / 2];
    let along = scaled(to, (ONE << FRACTION_BITS) / root(dot(to, to)));
    colour(eye, along, ONE, BOUNCES).map(|part| ((part * 255) >> FRACTION_BITS) as u8)
}

/// What is seen along a ray, times a weight.
fn colour(from: Vector, along: Vector, weight: i32, bounces: u32) -> Vector {
    if bounces == 0 || weight <= LEAST_WEIGHT {
        return [0; 3];
    }
    let Some(Surface { place, upright, colour: own, mirror }) = sphere(from, along).or_else(|| floor(from, along))
    else {
        let height = along[1].max(0);
        return scaled([ONE * 3 / 4 - height / 2, ONE * 7 / 8 - height / 4, ONE], weight);
    };
    let facing = dot(upright, SUN);
    let lit = facing > 0 && SPHERES.iter().all(|sphere| sphere.inside(place, SUN).is_none());
    let bright = AMBIENT + if lit { times(ONE - AMBIENT, facing) } else { 0 };
    let direct = scaled(own, times(times(weight, ONE - mirror), bright));
    let thrown_back = minus(along, scaled(upright, 2 * dot(upright, along)));
    plus(direct, colour(place, thrown_back, times(weight, mirror), bounces - 1))
}

/// What a ray meets.
struct Surface {
    place: Vector,
    upright: Vector,
    colour: Vector,
    mirror: i32,
}

fn sphere(from: Vector, along: Vector) -> Option<Surface> {
    let entries = SPHERES.iter().filter_map(|sphere| {
        let (square, middle) = sphere.inside(from, along)?;
        Some((middle - root(square), sphere))
    });
    let (distance, sphere) = entries.filter(|&(distance, _)| distance < FAR).min_by_key(|&(distance, _)| distance)?;
    let place = plus(from, scaled(along, distance));
    let upright = scaled(minus(place, sphere.centre), sphere.inverse_radius());
    Some(Surface { place, upright, colour: sphere.colour, mirror: sphere.mirror })
}

fn floor(from: Vector, along: Vector) -> Option<Surface> {
    if along[1] >= 0 {
        return None;
    }
    let distance = ((from[1] - FLOOR) << FRACTION_BITS) / -along[1];
    if distance >= FAR {
        return None;
    }
    let place = plus(from, scaled(along, distance));
    let [x, _, z] = place;
    if ![x, z].iter().all(|part| (-SIDE..SIDE).contains(part)) {
        return None;
    }
    let light = (x.div_euclid(ONE) + z.div_euclid(ONE)).rem_euclid(2) == 1;
    let colour = if light { [ONE, ONE, ONE * 7 / 8] } else { [ONE / 4, ONE / 8, ONE / 8] };
    Some(Surface { place, upright: [0, ONE, 0], colour, mirror: ONE / 8 })
}

//! Driver of `traverse`: random spheres, a tree over them, and random rays among them. The host tries every sphere,
//! without the tree.

use fastrand::Rng;

use super::fixed::{ONE, Vector, direction, dot, halfwords, minus, root, signed, times};
use super::{Device, KernelError, Output, check};

const SPHERES: usize = 64;
const OF_WORKER: usize = 8;
const FAR: u32 = 1 << 17;
const SPHERE_BITS: u32 = 6;
/// Of a direction: so that 1 divided by it fits.
const LEAST_PART: i32 = ONE / 24;
const RADII: std::ops::Range<i32> = ONE / 6..ONE / 3;
/// Where spheres' centres are, and where rays begin, from the middle.
const SPHERES_WITHIN: i32 = ONE * 3 / 2;
const RAYS_WITHIN: i32 = 2 * ONE;
/// A direction's length is 1 but for rounding, so that rays may meet spheres that they miss by less than this.
const MARGIN: i32 = ONE / 16;

struct Sphere {
    centre: Vector,
    radius: i32,
}

impl Sphere {
    fn square_radius(&self) -> i32 {
        times(self.radius, self.radius)
    }

    /// How far a ray goes until it enters the sphere.
    fn entry(&self, from: Vector, along: Vector) -> Option<u32> {
        let to = minus(self.centre, from);
        let middle = dot(to, along);
        let square = times(middle, middle) - dot(to, to) + self.square_radius();
        (square > 0).then(|| middle - root(square)).filter(|&entry| entry > 0).map(|entry| entry as u32)
    }
}

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let grid = device.coarse_grid();
    let spheres: Vec<Sphere> = (0..SPHERES).map(|_| sphere(&mut rng)).collect();
    let count = device.pieces(OF_WORKER).min(device.capacity("met")?);
    let rays: Vec<[Vector; 2]> = (0..count).map(|_| ray(&mut rng)).collect();
    let words = spheres.iter().flat_map(|sphere| sphere.centre.into_iter().chain([sphere.square_radius()]));
    device.write_words("spheres", &signed(words))?;
    device.write_bytes("nodes", &halfwords(Tree::of(&spheres).0.as_flattened()))?;
    device.write_bytes("roots", &halfwords(&roots()))?;
    device.write_words("rays", &signed(rays.iter().flatten().flatten().copied()))?;
    device.write_word("count", count as u32)?;
    device.launch_grid(grid)?;
    let want: Vec<u32> = rays.iter().map(|&[from, along]| first_met(&spheres, from, along)).collect();
    check("met", &want, &device.read_words("met", count)?)?;
    Ok(Output::checked(count))
}

/// Square roots of numbers from 0 to 1.
pub(super) fn roots() -> Vec<i32> {
    (0..ONE).map(root).collect()
}

fn sphere(rng: &mut Rng) -> Sphere {
    Sphere { centre: [(); 3].map(|()| rng.i32(-SPHERES_WITHIN..SPHERES_WITHIN)), radius: rng.i32(RADII) }
}

/// From where, and in which direction.
fn ray(rng: &mut Rng) -> [Vector; 2] {
    let from = [(); 3].map(|()| rng.i32(-RAYS_WITHIN..RAYS_WITHIN));
    loop {
        let along = direction(rng);
        if along.iter().all(|part| part.abs() >= LEAST_PART) {
            return [from, along];
        }
    }
}

/// The least distance of all spheres, with the sphere in its lowest bits.
fn first_met(spheres: &[Sphere], from: Vector, along: Vector) -> u32 {
    let met = (0..).zip(spheres).filter_map(|(number, sphere): (u32, _)| {
        let entry = sphere.entry(from, along)?;
        Some(entry << SPHERE_BITS | number)
    });
    met.min().unwrap_or(FAR << SPHERE_BITS)
}

/// The C's `struct node`s: three low sides, three high sides, where to go on, the sphere.
struct Tree(Vec<[i32; 8]>);

impl Tree {
    fn of(spheres: &[Sphere]) -> Tree {
        let mut tree = Tree(Vec::new());
        tree.add(spheres, &mut (0..spheres.len()).collect::<Vec<_>>());
        tree
    }

    /// Spheres of so many numbers: a box, then one half of them, then the other, along the longest side.
    fn add(&mut self, spheres: &[Sphere], numbers: &mut [usize]) {
        let side = |axis: usize, sign: i32| {
            let sides = numbers.iter().map(|&number| sign * spheres[number].centre[axis] + spheres[number].radius);
            sign * (sides.max().unwrap_or(0) + MARGIN)
        };
        let (low, high) = ([0, 1, 2].map(|axis| side(axis, -1)), [0, 1, 2].map(|axis| side(axis, 1)));
        let place = self.0.len();
        self.0.push([low[0], low[1], low[2], high[0], high[1], high[2], 0, SPHERES as i32]);
        if let [number] = numbers[..] {
            self.0[place][7] = number as i32;
        } else {
            let longest = (0..3).max_by_key(|&axis| high[axis] - low[axis]).unwrap_or(0);
            numbers.sort_by_key(|&number| spheres[number].centre[longest]);
            let (lower, upper) = numbers.split_at_mut(numbers.len() / 2);
            self.add(spheres, lower);
            self.add(spheres, upper);
        }
        self.0[place][6] = self.0.len() as i32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_every_sphere_once_and_boxes_within_boxes() {
        let mut rng = Rng::with_seed(1);
        let spheres: Vec<Sphere> = (0..SPHERES).map(|_| sphere(&mut rng)).collect();
        let Tree(nodes) = Tree::of(&spheres);
        assert_eq!(nodes.len(), 2 * SPHERES - 1);
        let mut found: Vec<i32> = nodes.iter().map(|node| node[7]).filter(|&sphere| sphere < SPHERES as i32).collect();
        found.sort();
        assert_eq!(found, (0..SPHERES as i32).collect::<Vec<_>>());
        for (place, node) in nodes.iter().enumerate() {
            for inner in &nodes[place + 1..node[6] as usize] {
                assert!((0..3).all(|axis| node[axis] <= inner[axis] && inner[axis + 3] <= node[axis + 3]));
            }
        }
    }

    #[test]
    fn some_rays_meet_nothing() {
        let mut rng = Rng::with_seed(1);
        let spheres: Vec<Sphere> = (0..SPHERES).map(|_| sphere(&mut rng)).collect();
        let met = (0..1000)
            .map(|_| ray(&mut rng))
            .filter(|&[from, along]| first_met(&spheres, from, along) >> SPHERE_BITS < FAR);
        assert!((200..900).contains(&met.count()));
    }
}

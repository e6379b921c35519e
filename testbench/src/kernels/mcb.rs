//! Driver of `mcb`: zones of random materials, some of them nearly empty. The host lets the same particles wander, one
//! after another.

use std::f64::consts::TAU;

use fastrand::Rng;

use super::fixed::{FRACTION_BITS, ONE, fixed, halfwords, middles, next, signed, times};
use super::{Device, KernelError, Output, check, words};

const SIDE: i32 = 16;
const ZONES: usize = (SIDE * SIDE) as usize;
const ENTRIES: usize = 256;
const OF_WORKER: usize = 8;
const WEIGHT: u32 = 1 << 16;
const LEAST_WEIGHT: u32 = WEIGHT / 16;
const CHANCE: u32 = 4;
/// How far particles go.
const CENSUS: i32 = 8 * ONE;
/// What the inverse of a cosine is at most, so that its product with a zone's side fits in 32 bits.
const MOST_INVERSE: f64 = 64.0;

/// The C's `struct zone`.
struct Zone {
    mean: i32,
    stays: u32,
}

/// The C's `struct direction`; an axis each.
struct Direction {
    along: [i32; 2],
    inverse: [i32; 2],
}

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let grid = device.coarse_grid();
    let square = Square::random(&mut rng);
    let seeds = words(device.pieces(OF_WORKER), || rng.u32(1..));
    let zones: Vec<i32> = square.zones.iter().flat_map(|zone| [zone.mean, zone.stays as i32]).collect();
    let directions = square.directions.iter().flat_map(|direction| [direction.along, direction.inverse]).flatten();
    device.write_bytes("zones", &halfwords(&zones))?;
    device.write_words("directions", &signed(directions))?;
    device.write_bytes("logarithm", &halfwords(&square.logarithm))?;
    device.write_words("seeds", &seeds)?;
    device.write_word("count", seeds.len() as u32)?;
    device.write_word("census", CENSUS as u32)?;
    device.launch_grid(grid)?;
    let mut scores = Scores { flux: vec![0; ZONES], left: vec![0; ZONES + 1] };
    seeds.iter().for_each(|&seed| square.wander(seed, &mut scores));
    check("flux", &scores.flux, &device.read_words("flux", ZONES)?)?;
    check("left", &scores.left, &device.read_words("left", ZONES + 1)?)?;
    Ok(Output::checked(2 * ZONES + 1))
}

struct Square {
    zones: Vec<Zone>,
    directions: Vec<Direction>,
    logarithm: Vec<i32>,
}

struct Scores {
    flux: Vec<u32>,
    left: Vec<u32>,
}

impl Square {
    fn random(rng: &mut Rng) -> Square {
        let mut zone = || {
            let mean = if rng.u32(..4) == 0 { rng.i32(4 * ONE..8 * ONE) } else { rng.i32(ONE / 4..2 * ONE) };
            Zone { mean, stays: rng.u32(WEIGHT / 2..WEIGHT) }
        };
        let direction = |part: f64| {
            let parts = [(TAU * part).cos(), (TAU * part).sin()];
            Direction {
                along: parts.map(fixed),
                inverse: parts.map(|part| fixed((1.0 / part.abs()).min(MOST_INVERSE))),
            }
        };
        Square {
            zones: (0..ZONES).map(|_| zone()).collect(),
            directions: middles(ENTRIES).map(direction).collect(),
            logarithm: middles(ENTRIES).map(|part| fixed(-part.ln())).collect(),
        }
    }

    fn wander(&self, seed: u32, scores: &mut Scores) {
        let mut state = seed;
        let mut next = || next(&mut state);
        let place = next();
        let mut at = [place >> 16, place & 0xffff].map(|axis| axis as i32);
        let mut cell = at.map(|axis| axis >> FRACTION_BITS);
        let mut along = &self.directions[(next() >> 24) as usize];
        let (mut weight, mut way) = (WEIGHT, CENSUS);
        loop {
            let number = (cell[1] * SIDE + cell[0]) as usize;
            let zone = &self.zones[number];
            let collision = (self.logarithm[(next() >> 24) as usize] * zone.mean) >> FRACTION_BITS;
            let sides = [0, 1].map(|axis| {
                let side = (cell[axis] + i32::from(along.along[axis] >= 0)) * ONE;
                let room = if along.along[axis] < 0 { at[axis] - side } else { side - at[axis] };
                times(room.max(0), along.inverse[axis])
            });
            let distance = sides[0].min(sides[1]).min(collision).min(way);
            (0..2).for_each(|axis| at[axis] += times(along.along[axis], distance));
            way -= distance;
            scores.flux[number] += ((weight >> 4) * distance as u32) >> FRACTION_BITS;
            if way == 0 {
                scores.left[number] += weight;
                return;
            }
            if distance == collision {
                weight = (weight * zone.stays) >> 16;
                along = &self.directions[(next() >> 24) as usize];
                if weight < LEAST_WEIGHT {
                    if next() % CHANCE != 0 {
                        return;
                    }
                    weight *= CHANCE;
                }
                continue;
            }
            let axis = usize::from(sides[0] >= sides[1]);
            let back = along.along[axis] < 0;
            cell[axis] += if back { -1 } else { 1 };
            at[axis] = (cell[axis] + i32::from(back)) * ONE;
            if !(0..SIDE).contains(&cell[axis]) {
                scores.left[ZONES] += weight;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_particles_stay_and_few_zones_are_never_visited() {
        let mut rng = Rng::with_seed(1);
        let square = Square::random(&mut rng);
        let mut scores = Scores { flux: vec![0; ZONES], left: vec![0; ZONES + 1] };
        let particles = 5000;
        (0..particles).for_each(|_| square.wander(rng.u32(1..), &mut scores));
        let leaves = f64::from(scores.left[ZONES]) / f64::from(WEIGHT) / f64::from(particles);
        assert!((0.01..0.5).contains(&leaves), "{leaves}");
        assert!(scores.flux.iter().all(|&flux| flux > 0));
    }
}

//! Driver of `mcgpu`: a slice of a body, of soft tissue with lungs and bones. The host lets the same photons wander,
//! one after another.

use std::f64::consts::TAU;

use fastrand::Rng;

use super::fixed::{FRACTION_BITS, ONE, Vector, dot, fixed, halfwords, middles, next, plus, scaled, times};
use super::{Device, KernelError, Output, check, words};

const SIDE: usize = 16;
const PLACE_BITS: u32 = FRACTION_BITS + 4;
const PIXELS: usize = SIDE * SIDE;
const VOXELS: usize = SIDE * PIXELS;
const ENERGIES: usize = 128;
const ENTRIES: usize = 256;
const OF_WORKER: usize = 12;
const ELECTRON: u32 = 511;
const LEAST_ENERGY: u32 = 8;
/// The tube's photons, in keV.
const SPECTRUM: std::ops::RangeInclusive<u8> = 40..=110;
/// Mean cosine of the angles by which light atoms turn photons.
const ANISOTROPY: f64 = 0.8;

/// Of a material: electrons in a voxel, times their cross section; and what that of absorption at 30 keV is beside it.
/// Absorption falls with the third power of energy.
struct Material {
    scatters: f64,
    absorbs: f64,
}

/// Lungs and what is around the body, soft tissue, bone.
const MATERIALS: [Material; 3] = [
    Material { scatters: 0.002, absorbs: 0.001 },
    Material { scatters: 0.18, absorbs: 0.12 },
    Material { scatters: 0.30, absorbs: 0.75 },
];
/// Of scattering, the part by whole atoms at 30 keV, which falls with energy.
const BY_ATOMS: f64 = 0.25;

impl Material {
    /// Absorption, and scattering by atoms and by electrons, in a voxel.
    fn odds(&self, energy: usize) -> [f64; 3] {
        let slow = 30.0 / energy.max(1) as f64;
        let by_atoms = self.scatters * BY_ATOMS * slow.min(2.0);
        [self.absorbs * slow.powi(3).min(20.0), by_atoms, self.scatters]
    }
}

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let grid = device.coarse_grid();
    let scene = Scene::random(&mut rng);
    let seeds = words(device.pieces(OF_WORKER), || rng.u32(1..));
    device.write_bytes("voxels", &scene.voxels)?;
    device.write_bytes("interactions", &halfwords(scene.interactions.as_flattened()))?;
    device.write_bytes("steps", &halfwords(&scene.steps))?;
    device.write_bytes("logarithm", &halfwords(&scene.logarithm))?;
    device.write_bytes("spectrum", &scene.spectrum)?;
    device.write_bytes("forward", &halfwords(&scene.forward))?;
    device.write_bytes("around", &halfwords(&scene.around))?;
    device.write_bytes("sine", &halfwords(&scene.sine))?;
    device.write_words("inverse_sine", &super::fixed::signed(scene.inverse_sine.iter().copied()))?;
    device.write_words("seeds", &seeds)?;
    device.write_word("count", seeds.len() as u32)?;
    device.launch_grid(grid)?;
    let mut scores = Scores { image: vec![0; PIXELS + 1], dose: vec![0; VOXELS] };
    seeds.iter().for_each(|&seed| scene.wander(seed, &mut scores));
    check("image", &scores.image, &device.read_words("image", PIXELS + 1)?)?;
    check("dose", &scores.dose, &device.read_words("dose", VOXELS)?)?;
    Ok(Output::checked(PIXELS + 1 + VOXELS))
}

struct Scene {
    voxels: Vec<u8>,
    /// By material and energy: what changes the photon, what of that absorbs it, and what absorbs it or turns it only.
    interactions: Vec<[i32; 3]>,
    steps: Vec<i32>,
    logarithm: Vec<i32>,
    spectrum: Vec<u8>,
    forward: Vec<i32>,
    around: Vec<i32>,
    sine: Vec<i32>,
    inverse_sine: Vec<i32>,
}

struct Scores {
    image: Vec<u32>,
    dose: Vec<u32>,
}

impl Scene {
    fn random(rng: &mut Rng) -> Scene {
        let sum = |material: &Material, energy| material.odds(energy).iter().sum::<f64>();
        let densest = |energy| MATERIALS.iter().map(|material| sum(material, energy)).fold(0.0, f64::max);
        let part = |part: f64| (part * 65535.0) as i32;
        let interaction = |material: &Material, energy| {
            let [absorb, by_atoms, _] = material.odds(energy);
            let all = sum(material, energy);
            [part(all / densest(energy)), part(absorb / all), part((absorb + by_atoms) / all)]
        };
        // Henyey and Greenstein's distribution.
        let forward = |part: f64| {
            let g = ANISOTROPY;
            let ratio = (1.0 - g * g) / (1.0 - g + 2.0 * g * part);
            (1.0 + g * g - ratio * ratio) / (2.0 * g)
        };
        let sines: Vec<f64> = (0..=ENTRIES)
            .map(|entry| ((entry as f64 + 0.5) / ENTRIES as f64).min(1.0 - 0.25 / ENTRIES as f64))
            .map(|cosine| (1.0 - cosine * cosine).sqrt())
            .collect();
        let materials = MATERIALS.iter().flat_map(|material| (0..ENERGIES).map(move |energy| (material, energy)));
        Scene {
            voxels: body(rng),
            interactions: materials.map(|(material, energy)| interaction(material, energy)).collect(),
            steps: (0..ENERGIES).map(|energy| fixed(1.0 / densest(energy))).collect(),
            logarithm: middles(ENTRIES).map(|part| fixed(-part.ln())).collect(),
            spectrum: (0..ENTRIES).map(|_| rng.u8(SPECTRUM)).collect(),
            forward: middles(ENTRIES).map(|part| fixed(forward(part))).collect(),
            around: (0..ENTRIES).map(|entry| fixed((TAU * entry as f64 / ENTRIES as f64).cos())).collect(),
            sine: sines.iter().map(|&sine| fixed(sine)).collect(),
            inverse_sine: sines.iter().map(|sine| fixed(1.0 / sine)).collect(),
        }
    }

    fn wander(&self, seed: u32, scores: &mut Scores) {
        let mut state = seed;
        let mut next = || next(&mut state);
        let place = next();
        let mut energy = u32::from(self.spectrum[(next() >> 24) as usize]);
        let mut at = [0, (place >> 16) as i32, (place & 0xffff) as i32];
        let mut along = [ONE, 0, 0];
        while energy != 0 {
            let way = self.logarithm[(next() >> 24) as usize] as u32 * self.steps[energy as usize] as u32;
            at = plus(at, scaled(along, (way >> FRACTION_BITS) as i32));
            let inside = at.map(|axis| (0..1 << PLACE_BITS).contains(&axis));
            let [x, y, z] = at.map(|axis| (axis >> FRACTION_BITS) as usize);
            if inside != [true; 3] {
                let seen = at[0] > 0 && inside[1..] == [true; 2];
                scores.image[if seen { y * SIDE + z } else { PIXELS }] += energy;
                return;
            }
            let voxel = x * PIXELS + y * SIDE + z;
            let [real, absorb, turn] = self.interactions[self.voxels[voxel] as usize * ENERGIES + energy as usize];
            if (next() >> 16) as i32 >= real {
                continue;
            }
            let (kind, angle) = ((next() >> 16) as i32, next());
            let left = if kind < absorb {
                0
            } else if kind < turn {
                along = self.turned(along, self.forward[(angle >> 24) as usize], angle);
                energy
            } else {
                let cosine = (angle >> 19) as i32 - ONE;
                along = self.turned(along, cosine, angle);
                // Compton's formula.
                let rest = ELECTRON << FRACTION_BITS;
                let left = energy * rest / (rest + energy * (ONE - cosine) as u32);
                if left < LEAST_ENERGY { 0 } else { left }
            };
            scores.dose[voxel] += energy - left;
            energy = left;
        }
    }

    fn turned(&self, along: Vector, cosine: i32, random: u32) -> Vector {
        let [x, y, z] = along;
        let around = |entry: u32| self.around[entry as usize % ENTRIES];
        let (east, north) = (around(random), around(random.wrapping_sub(ENTRIES as u32 / 4)));
        let entry = |cosine: i32| ((cosine.abs() >> (FRACTION_BITS - 8)) as usize).min(ENTRIES);
        let (across, upright) = (self.sine[entry(cosine)], self.sine[entry(z)]);
        let part = times(across, self.inverse_sine[entry(z)]);
        let height = times(z, east);
        let aside = [
            times(part, times(x, height) - times(y, north)),
            times(part, times(y, height) + times(x, north)),
            -times(times(across, east), upright),
        ];
        let now = plus(scaled(along, cosine), aside);
        scaled(now, (3 * ONE - dot(now, now)) / 2)
    }
}

/// An ellipse of tissue, two lungs and a spine in it, and ribs at random places around.
fn body(rng: &mut Rng) -> Vec<u8> {
    const AIR: u8 = 0;
    const TISSUE: u8 = 1;
    const BONE: u8 = 2;
    let ribs: Vec<bool> = (0..SIDE).map(|_| rng.bool()).collect();
    let voxel = |number: usize| {
        let [x, y, z] = [number / PIXELS, number / SIDE % SIDE, number % SIDE];
        let within = |x0: f64, y0: f64, a: f64, b: f64| {
            let [x, y] = [(x as f64 + 0.5 - x0) / a, (y as f64 + 0.5 - y0) / b];
            x * x + y * y < 1.0
        };
        if !within(8.0, 8.0, 6.0, 7.5) {
            AIR
        } else if within(11.5, 8.0, 1.5, 1.5) || ribs[z] && !within(8.0, 8.0, 5.0, 6.5) {
            BONE
        } else if within(7.0, 5.0, 3.0, 2.0) || within(7.0, 11.0, 3.0, 2.0) {
            AIR
        } else {
            TISSUE
        }
    };
    (0..VOXELS).map(voxel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_energy_is_lost_and_bone_takes_more_than_lungs() {
        let mut rng = Rng::with_seed(1);
        let scene = Scene::random(&mut rng);
        let mut scores = Scores { image: vec![0; PIXELS + 1], dose: vec![0; VOXELS] };
        let seeds = words(20_000, || rng.u32(1..));
        seeds.iter().for_each(|&seed| scene.wander(seed, &mut scores));
        let began = seeds.iter().map(|&seed| {
            let mut state = seed;
            next(&mut state);
            u32::from(scene.spectrum[(next(&mut state) >> 24) as usize])
        });
        assert_eq!(scores.image.iter().chain(&scores.dose).sum::<u32>(), began.sum::<u32>());
        let mean = |material: u8| {
            let doses = || (0..VOXELS).filter(|&voxel| scene.voxels[voxel] == material);
            f64::from(doses().map(|voxel| scores.dose[voxel]).sum::<u32>()) / doses().count() as f64
        };
        assert!(mean(2) > mean(1) && mean(1) > 10.0 * mean(0));
    }

    #[test]
    fn a_turn_is_by_its_angle() {
        let scene = Scene::random(&mut Rng::with_seed(1));
        for (along, cosine) in [([ONE, 0, 0], 0), ([0, -ONE, 0], ONE / 2), ([2365, 2365, 2365], ONE / 4)] {
            for random in 0..ENTRIES as u32 {
                let now = scene.turned(along, cosine, random);
                assert!((dot(now, now) - ONE).abs() < ONE / 16, "{now:?}");
                assert!((dot(now, along) - cosine).abs() < ONE / 16, "{now:?}");
            }
        }
    }
}

//! Driver of `rsbench`: random resonances, and materials of random nuclides in the numbers and shares of the benchmark.

use fastrand::Rng;

use super::fixed::{FRACTION_BITS, ONE, halfwords, middles, next};
use super::{Device, KernelError, Output, check, words};
use crate::grid::Grid;

const NUCLIDES: usize = 321;
const OF_WORKER: usize = 8;
const WINDOWS: usize = 8;
const TO_WINDOW: u32 = 13;
const SHAPE: usize = 256;
const TO_SHAPE: u32 = 16;
/// About the top of the shape's curve: less than 1, so that strength and what a resonance gives multiply in 32 bits.
const HIGHEST: f64 = 0.9 * ONE as f64;
/// How narrow resonances are. The narrowest still has the whole window in its shape's table.
const NARROW: std::ops::Range<i32> = 64..1 << (TO_SHAPE + 7 - TO_WINDOW);

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let grid = device.coarse_grid();
    let lookups = device.pieces(OF_WORKER).min(device.capacity("seeds")?);
    look_up(device, seed, grid, lookups)
}

/// With a thread for each lookup, or for several.
pub(super) fn look_up(device: &mut dyn Device, seed: u64, grid: Grid, lookups: usize) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let inputs = Inputs::random(&mut rng);
    let seeds = words(lookups, || rng.u32(1..));
    device.write_bytes("resonances", &halfwords(inputs.resonances.as_flattened()))?;
    inputs.materials.write(device)?;
    device.write_bytes("shape", &halfwords(&inputs.shape))?;
    device.write_words("seeds", &seeds)?;
    device.write_word("count", lookups as u32)?;
    device.launch_grid(grid)?;
    let results: Vec<[u32; 3]> = seeds.iter().map(|&seed| inputs.lookup(seed)).collect();
    for (column, name) in ["total", "absorption", "absorbed"].into_iter().enumerate() {
        let want: Vec<u32> = results.iter().map(|result| result[column]).collect();
        check(name, &want, &device.read_words(name, lookups)?)?;
    }
    Ok(Output::checked(3 * lookups))
}

/// The materials of a reactor: nuclides of each, and how densely they lie; and of 256 neutrons, the material in which
/// each is.
pub(super) struct Materials {
    nuclides: Vec<Vec<(usize, u32)>>,
    choices: Vec<u8>,
}

impl Materials {
    /// Of 1000 neutrons, how many are in a material: fuel, cladding, cold and hot water, the vessel, reflectors and
    /// plates, nozzles, and what is above and below the fuel.
    const SHARES: [usize; 12] = [140, 52, 275, 134, 154, 64, 66, 55, 8, 15, 25, 12];
    /// The nuclides of all but the fuel.
    const NUCLIDES: [usize; 11] = [5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9];

    /// The fuel has some of `nuclides`; so have the others.
    pub fn random(rng: &mut Rng, nuclides: usize, fuel: usize) -> Materials {
        let counts = [fuel].into_iter().chain(Self::NUCLIDES);
        let nuclides = counts.map(|count| {
            let chosen = rng.choose_multiple(0..nuclides, count);
            chosen.into_iter().map(|nuclide| (nuclide, rng.u32(1 << 8..1 << 16))).collect()
        });
        let nuclides = nuclides.collect();
        let material = |part: f64| {
            let mut above = Self::SHARES.iter().scan(0, |sum, share| {
                *sum += share;
                Some(*sum as f64)
            });
            above.position(|sum| part * 1000.0 < sum).unwrap_or(0) as u8
        };
        Materials { nuclides, choices: middles(256).map(material).collect() }
    }

    pub fn write(&self, device: &mut dyn Device) -> Result<(), KernelError> {
        let entries = self.nuclides.iter().flatten().map(|&(nuclide, density)| (nuclide as u32) << 16 | density);
        let ends = self.nuclides.iter().scan(0, |first, material| {
            let range = [*first, *first + material.len() as u32];
            *first = range[1];
            Some(range)
        });
        device.write_words("entries", &entries.collect::<Vec<_>>())?;
        device.write_words("materials", &ends.flatten().collect::<Vec<_>>())?;
        device.write_bytes("choices", &self.choices)
    }

    /// Nuclides and densities of a random number's material.
    pub fn chosen(&self, random: u32) -> &[(usize, u32)] {
        &self.nuclides[self.choices[(random >> 24) as usize] as usize]
    }
}

struct Inputs {
    /// By nuclide and window: centre, narrowness, total and absorption.
    resonances: Vec<[i32; 4]>,
    materials: Materials,
    shape: Vec<i32>,
}

impl Inputs {
    fn random(rng: &mut Rng) -> Inputs {
        let mut resonance = |window: usize| {
            let total = rng.i32(1 << 8..1 << 16);
            let centre = (window << TO_WINDOW) as i32 + rng.i32(0..1 << TO_WINDOW);
            [centre, rng.i32(NARROW), total, rng.i32(1..=total)]
        };
        let resonances = (0..NUCLIDES).flat_map(|_| 0..WINDOWS).map(&mut resonance).collect();
        // Breit and Wigner's, which scattering at the nucleus makes steeper on one side.
        let shape = |part: f64| {
            let x = 16.0 * (2.0 * part - 1.0);
            (HIGHEST * (1.0 + 0.5 * x / (1.0 + x * x).sqrt()) / (1.0 + x * x)) as i32
        };
        Inputs {
            resonances,
            materials: Materials::random(rng, NUCLIDES, NUCLIDES),
            shape: middles(SHAPE).map(shape).collect(),
        }
    }

    /// Total, absorption, and whether the neutron is absorbed.
    fn lookup(&self, mut state: u32) -> [u32; 3] {
        let energy = (next(&mut state) >> 16) as i32;
        let material = self.materials.chosen(next(&mut state));
        let sums = material.iter().fold([0u32; 2], |sums, &(nuclide, density)| {
            let [centre, narrow, gives @ ..] = self.resonances[nuclide * WINDOWS + (energy >> TO_WINDOW) as usize];
            let place = (SHAPE / 2) as i32 + (((energy - centre) * narrow) >> TO_SHAPE);
            let strength = (density * self.shape[place as usize] as u32) >> FRACTION_BITS;
            [0, 1].map(|kind: usize| sums[kind] + ((strength * gives[kind] as u32) >> FRACTION_BITS))
        });
        let [total, absorption] = sums;
        [total, absorption, u32::from((next(&mut state) >> 16) * (total >> 16) < absorption)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seventh_of_the_neutrons_is_in_the_fuel() {
        let materials = Materials::random(&mut Rng::with_seed(1), NUCLIDES, NUCLIDES);
        let counts: Vec<usize> = (0..256).map(|number| materials.chosen(number << 24).len()).collect();
        assert_eq!(counts.iter().filter(|&&count| count == NUCLIDES).count(), 36);
        assert_eq!(counts.iter().min(), Some(&4));
    }
}

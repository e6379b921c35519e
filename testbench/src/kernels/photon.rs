//! Driver of `photon`: three layers in air, whose surfaces throw light back as Fresnel has it. The host lets the same
//! photons wander, one after another.

use std::f64::consts::{LN_2, TAU};

use fastrand::Rng;

use super::fixed::{FRACTION_BITS, ONE, fixed, halfwords, middles, next};
use super::{Device, KernelError, Output, check, to_bytes, words};

const PHOTONS: usize = 320;
const BINS: usize = 32;
const BIN_BITS: u32 = 12;
const ENTRIES: usize = 256;
const WEIGHT: u32 = 1 << 16;
const LEAST_WEIGHT: u32 = WEIGHT / 64;
const CHANCE: u32 = 8;

/// Of light in tissue and out of it, and the mean cosine of the angles by which it is scattered.
const REFRACTIVE_INDEX: f64 = 1.4;
const ANISOTROPY: f64 = 0.7;

/// The C's `struct layer`.
struct Layer {
    edge: u32,
    step: u32,
    scattered: u32,
}

/// From above. The lowest edge is in the last bin, since a photon may be absorbed there.
const LAYERS: [Layer; 3] = [
    Layer { edge: 0x4000, step: 0x1800, scattered: 0xd800 },
    Layer { edge: 0xc000, step: 0x3c00, scattered: 0xf000 },
    Layer { edge: ((BINS as u32) << BIN_BITS) - 1, step: 0x3000, scattered: 0xe800 },
];

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let tables = Tables::new();
    let seeds = words(PHOTONS, || rng.u32(1..));
    let layers: Vec<u32> = LAYERS.iter().flat_map(|layer| [layer.edge, layer.step, layer.scattered]).collect();
    device.write_words("layers", &layers)?;
    device.write_words("seeds", &seeds)?;
    device.write_bytes("logarithm", &halfwords(&tables.logarithm))?;
    device.write_bytes("scattering", &halfwords(&tables.scattering))?;
    device.write_bytes("around", &halfwords(&tables.around))?;
    device.write_bytes("sine", &halfwords(&tables.sine))?;
    device.write_bytes("mirrored", &to_bytes(&tables.mirrored))?;
    device.launch()?;
    let want = wander(&tables, &seeds);
    check("absorbed", &want.absorbed, &device.read_words("absorbed", BINS)?)?;
    check("left", &want.left, &device.read_words("left", 2)?)?;
    Ok(Output::checked(BINS + 2))
}

struct Tables {
    logarithm: Vec<i32>,
    scattering: Vec<i32>,
    around: Vec<i32>,
    sine: Vec<i32>,
    mirrored: Vec<u32>,
}

impl Tables {
    fn new() -> Tables {
        let cosines = || (0..=ENTRIES).map(|entry| entry as f64 / ENTRIES as f64);
        // Henyey and Greenstein's distribution.
        let scattering = |part: f64| {
            let g = ANISOTROPY;
            let ratio = (1.0 - g * g) / (1.0 - g + 2.0 * g * part);
            (1.0 + g * g - ratio * ratio) / (2.0 * g)
        };
        Tables {
            logarithm: middles(ENTRIES).map(|part| fixed(LN_2 - part.ln_1p())).collect(),
            scattering: middles(ENTRIES).map(|part| fixed(scattering(part))).collect(),
            around: middles(ENTRIES).map(|part| fixed((TAU * part).cos())).collect(),
            sine: cosines().map(|cosine| fixed((1.0 - cosine * cosine).sqrt())).collect(),
            mirrored: cosines().map(|cosine| (fresnel(cosine) * 65536.0) as u32).collect(),
        }
    }
}

/// The part of unpolarised light that the surface throws back into the tissue.
fn fresnel(cosine: f64) -> f64 {
    let sine_outside = REFRACTIVE_INDEX * (1.0 - cosine * cosine).sqrt();
    if sine_outside >= 1.0 {
        return 1.0;
    }
    let outside = (1.0 - sine_outside * sine_outside).sqrt();
    let part = |a: f64, b: f64| ((a - b) / (a + b)).powi(2);
    (part(REFRACTIVE_INDEX * cosine, outside) + part(cosine, REFRACTIVE_INDEX * outside)) / 2.0
}

/// Where the weight of photons ended.
struct Scores {
    absorbed: [u32; BINS],
    left: [u32; 2],
}

fn wander(tables: &Tables, seeds: &[u32]) -> Scores {
    let mut scores = Scores { absorbed: [0; BINS], left: [0; 2] };
    for &seed in seeds {
        let mut random = seed;
        let mut next = || next(&mut random);
        let (mut depth, mut cosine, mut weight, mut layer) = (0u32, ONE, WEIGHT, 0);
        loop {
            let Layer { edge, step, scattered } = LAYERS[layer];
            let number = next();
            let halvings = number.leading_zeros();
            let steps = 2839 * halvings + tables.logarithm[((number << halvings >> 23) & 255) as usize] as u32;
            let length = (((steps * step) >> FRACTION_BITS) * cosine.unsigned_abs()) >> FRACTION_BITS;
            let up = cosine < 0;
            let target = match (up, layer) {
                (false, _) => edge,
                (true, 0) => 0,
                (true, _) => LAYERS[layer - 1].edge,
            };
            if length < depth.abs_diff(target) {
                depth = if up { depth - length } else { depth + length };
                let stays = (weight * scattered) >> 16;
                scores.absorbed[(depth >> BIN_BITS) as usize] += weight - stays;
                weight = stays;
                cosine = scatter(tables, cosine, next());
                if weight < LEAST_WEIGHT {
                    if next() % CHANCE != 0 {
                        break;
                    }
                    weight *= CHANCE;
                }
                continue;
            }
            depth = target;
            match (up, layer) {
                (true, 1..) => layer -= 1,
                (false, 0..2) => layer += 1,
                _ if next() >> 16 < tables.mirrored[entry(cosine)] => cosine = -cosine,
                _ => {
                    scores.left[usize::from(!up)] += weight;
                    break;
                }
            }
        }
    }
    scores
}

/// Where tables by the size of a cosine have it.
fn entry(cosine: i32) -> usize {
    (cosine.unsigned_abs() >> (FRACTION_BITS - 8)) as usize
}

/// The cosine after an angle is added in a random direction, by the spherical law of cosines.
fn scatter(tables: &Tables, cosine: i32, random: u32) -> i32 {
    let [turn, aside] = [&tables.scattering, &tables.around].map(|table| &table[..]);
    let (turn, aside) = (turn[random as usize % ENTRIES], aside[(random >> 8) as usize % ENTRIES]);
    let across = (tables.sine[entry(cosine)] * tables.sine[entry(turn)]) >> FRACTION_BITS;
    ((cosine * turn + across * aside) >> FRACTION_BITS).clamp(-ONE, ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_is_lost_but_to_chance() {
        let mut rng = Rng::with_seed(1);
        let photons = 20_000;
        let Scores { absorbed, left } = wander(&Tables::new(), &words(photons, || rng.u32(1..)));
        let part = |weight: u32| f64::from(weight) / f64::from(WEIGHT) / photons as f64;
        let absorbed: f64 = absorbed.into_iter().map(part).sum();
        let [reflected, transmitted] = left.map(part);
        assert!((absorbed + reflected + transmitted - 1.0).abs() < 0.01);
        assert!(absorbed > 0.3 && reflected > 0.05 && transmitted > 0.01);
    }

    #[test]
    fn light_that_meets_the_surface_too_flatly_stays_inside() {
        assert_eq!(fresnel(0.0), 1.0);
        assert_eq!(fresnel(0.69), 1.0);
        assert!((fresnel(1.0) - (0.4f64 / 2.4).powi(2)).abs() < 1e-12);
    }

    #[test]
    fn scattering_has_its_mean() {
        let tables = Tables::new();
        let mean = tables.scattering.iter().sum::<i32>() as f64 / ENTRIES as f64 / f64::from(ONE);
        assert!((mean - ANISOTROPY).abs() < 0.01, "{mean}");
    }
}

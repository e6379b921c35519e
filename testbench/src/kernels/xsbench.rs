//! Driver of `xsbench`: random tables of nuclides, and materials as in `rsbench`, with the fuel of the benchmark's
//! small reactor. The host looks a nuclide's points up in its own table, without the grid.

use fastrand::Rng;

use super::fixed::{FRACTION_BITS, halfwords, next, times};
use super::rsbench::Materials;
use super::{Device, KernelError, Output, check, words};

const NUCLIDES: usize = 68;
const FUEL: usize = 34;
const POINTS: usize = 16;
const REACTIONS: usize = 5;
const OF_WORKER: usize = 8;
const DIGEST: u32 = 5381;
const TURN: u32 = 33;
/// Between a point's energy and the next, at least, so that 2^16 divided by it fits in 16 bits.
const LEAST_GAP: i32 = 2;

/// A line of a nuclide's table.
struct Point {
    energy: i32,
    reactions: [i32; REACTIONS],
}

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let tables: Vec<Vec<Point>> = (0..NUCLIDES).map(|_| table(&mut rng)).collect();
    let materials = Materials::random(&mut rng, NUCLIDES, FUEL);
    let grid = device.coarse_grid();
    let lookups = device.pieces(OF_WORKER);
    let seeds = words(lookups, || rng.u32(1..));

    let points = tables.iter().flat_map(|table| {
        let inverses = table.windows(2).map(|pair| inverse(&pair[0], &pair[1])).chain([0]);
        table
            .iter()
            .zip(inverses)
            .flat_map(|(point, inverse)| [point.energy, inverse].into_iter().chain(point.reactions).chain([0]))
    });
    let mut energies: Vec<i32> = tables.iter().flatten().map(|point| point.energy).collect();
    energies.sort();
    let nearest = energies.iter().flat_map(|&energy| tables.iter().map(move |table| below(table, energy) as u8));
    device.write_bytes("points", &halfwords(&points.collect::<Vec<_>>()))?;
    device.write_bytes("nearest", &nearest.collect::<Vec<_>>())?;
    device.write_bytes("grid", &halfwords(&energies))?;
    materials.write(device)?;
    device.write_words("seeds", &seeds)?;
    device.write_word("count", lookups as u32)?;
    device.launch_grid(grid)?;

    let sums: Vec<[u32; REACTIONS]> = seeds.iter().map(|&seed| lookup(&tables, &materials, seed)).collect();
    let total: Vec<u32> = sums.iter().map(|sums| sums[0]).collect();
    let digests: Vec<u32> = sums.iter().map(|sums| digest(sums)).collect();
    check("total", &total, &device.read_words("total", lookups)?)?;
    check("digests", &digests, &device.read_words("digests", lookups)?)?;
    Ok(Output::checked(2 * lookups))
}

/// From energy 0 to the highest, so that all are between two points.
fn table(rng: &mut Rng) -> Vec<Point> {
    const HIGHEST: i32 = (1 << 16) - 1;
    let mut energies: Vec<i32> = (2..POINTS).map(|_| rng.i32(0..HIGHEST / LEAST_GAP - POINTS as i32)).collect();
    energies.sort();
    // Equal ones are taken apart.
    let inner = energies.iter().scan(0, |last, &energy| {
        *last = (energy * LEAST_GAP).max(*last + LEAST_GAP);
        Some(*last)
    });
    let energies = [0].into_iter().chain(inner).chain([HIGHEST]);
    energies.map(|energy| Point { energy, reactions: std::array::from_fn(|_| rng.i32(0..1 << 12)) }).collect()
}

/// The last point but one that is not above an energy.
fn below(table: &[Point], energy: i32) -> usize {
    table[1..POINTS - 1].iter().take_while(|point| point.energy <= energy).count()
}

fn inverse(low: &Point, high: &Point) -> i32 {
    (1 << 16) / (high.energy - low.energy)
}

fn lookup(tables: &[Vec<Point>], materials: &Materials, mut state: u32) -> [u32; REACTIONS] {
    let energy = (next(&mut state) >> 16) as i32;
    let material = materials.chosen(next(&mut state));
    material.iter().fold([0; REACTIONS], |sums, &(nuclide, density)| {
        let table = &tables[nuclide];
        let at = below(table, energy);
        let (low, high) = (&table[at], &table[at + 1]);
        let part = ((energy - low.energy) * inverse(low, high)) >> 4;
        std::array::from_fn(|r| {
            let value = low.reactions[r] + times(high.reactions[r] - low.reactions[r], part);
            sums[r] + ((density * value as u32) >> FRACTION_BITS)
        })
    })
}

/// Of all bytes of the sums (Bernstein's).
fn digest(sums: &[u32]) -> u32 {
    let bytes = sums.iter().flat_map(|sum| sum.to_le_bytes());
    bytes.fold(DIGEST, |digest, byte| digest.wrapping_mul(TURN).wrapping_add(u32::from(byte)))
}

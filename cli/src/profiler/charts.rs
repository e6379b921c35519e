//! Pictures of what happened over time: a column a bin, as PNG, which stays sharp at any zoom and needs no script.

use super::report::Time;
use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use heddle_testbench::image::Image;

type Colour = [u8; 3];

/// What issue and warps do, bottom up, with its colour.
pub const KINDS: [(&str, Colour); 10] = [
    ("issued", [31, 95, 168]),
    ("ready", [169, 200, 232]),
    ("memory", [217, 95, 2]),
    ("scoreboard", [230, 171, 2]),
    ("divergence", [123, 63, 160]),
    ("barrier", [27, 158, 119]),
    ("no_instruction", [222, 96, 140]),
    ("interval", [140, 140, 140]),
    ("nothing_live", [236, 236, 236]),
    ("idle", [236, 236, 236]),
];

const WHITE: Colour = [255; 3];
/// Lanes that take part, and that do not while others of their warp do.
pub const ACTIVE: Colour = [16, 72, 140];
pub const INACTIVE: Colour = [250, 200, 150];

/// Pixels of issue slots, from top to bottom.
const SLOTS: u32 = 72;

/// Pixels that all warps have together, about, and those of one.
const WARPS: u32 = 480;
const WARP: [u32; 2] = [6, 24];

/// The same of all lanes; rows at most.
const LANES: u32 = 640;
const LANE: [u32; 2] = [1, 8];
const ROWS: u32 = 1024;

/// A picture and how it lies over time.
pub struct Chart {
    /// A `data:` address.
    pub address: String,
    /// Pixels of the page, top to bottom.
    pub height: u32,
    /// Pixels of each of its rows.
    pub row: u32,
}

impl Chart {
    fn of(image: &Image, row: u32) -> Result<Chart> {
        let mut png = Vec::new();
        image.write_png(&mut png, 1)?;
        let address = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png));
        Ok(Chart { address, height: image.height, row })
    }
}

/// `rgb(…)`.
pub fn css([red, green, blue]: Colour) -> String {
    format!("rgb({red},{green},{blue})")
}

fn image(width: usize, height: u32) -> Image {
    let width = width.max(1) as u32;
    Image { width, height, pixels: vec![WHITE; (width * height) as usize] }
}

/// Fills a column between two rows from the bottom up, each kind by its share.
fn stack(image: &mut Image, column: usize, rows: std::ops::Range<u32>, counts: &[(Colour, u32)]) {
    let all: u64 = counts.iter().map(|(_, count)| u64::from(*count)).sum();
    let height = rows.end - rows.start;
    let (mut sum, mut below) = (0, 0);
    for &(colour, count) in counts.iter().filter(|_| all > 0) {
        sum += u64::from(count);
        let to = (u64::from(height) * sum).div_ceil(all) as u32;
        for up in below..to {
            let y = rows.end - 1 - up;
            image.pixels[(y * image.width) as usize + column] = colour;
        }
        below = to.max(below);
    }
}

/// What issue did.
pub fn slots(time: &Time) -> Result<Chart> {
    let mut picture = image(time.bins, SLOTS);
    for bin in 0..time.bins {
        let counts = KINDS.map(|(name, colour)| (colour, time.slots.get(name).map_or(0, |counts| counts[bin])));
        stack(&mut picture, bin, 0..SLOTS, &counts);
    }
    Chart::of(&picture, SLOTS)
}

/// What each warp did.
pub fn warps(time: &Time) -> Result<Chart> {
    let number = time.warps.len() as u32;
    let row = (WARPS / number.max(1)).clamp(WARP[0], WARP[1]);
    let mut picture = image(time.bins, row * number);
    for (top, states) in (0..number).map(|warp| warp * row).zip(&time.warps) {
        for bin in 0..time.bins {
            let counts = KINDS.map(|(name, colour)| (colour, states.get(name).map_or(0, |counts| counts[bin])));
            stack(&mut picture, bin, top + 1..top + row, &counts);
        }
    }
    Chart::of(&picture, row)
}

/// In which share of its warp's issues each lane took part; several lanes a row if there are very many.
pub fn lanes(time: &Time, lanes: u32) -> Result<Chart> {
    let active = &time.lanes.active;
    let threads = active.len() as u32;
    let together = threads.div_ceil(ROWS).next_power_of_two().min(lanes);
    let rows = threads / together.max(1);
    let row = (LANES / rows.max(1)).clamp(LANE[0], LANE[1]);
    let bins = active.first().map_or(0, Vec::len);
    let narrow = (time.lanes.cycles_per_bin / time.cycles_per_bin.max(1)) as usize;
    let mut picture = image(bins, rows * row);
    for line in 0..rows {
        let of_row = &active[(line * together) as usize..((line + 1) * together) as usize];
        let warp = (line * together / lanes) as usize;
        let issued = time.warps[warp]["issued"].chunks(narrow).map(|counts| counts.iter().sum::<u32>());
        for (bin, issued) in issued.enumerate().filter(|(_, issued)| *issued > 0) {
            let sum: u32 = of_row.iter().map(|counts| counts[bin]).sum();
            let share = f64::from(sum) / f64::from(issued * together);
            let mix = |k: usize| (share * f64::from(ACTIVE[k]) + (1.0 - share) * f64::from(INACTIVE[k])).round() as u8;
            let colour = std::array::from_fn(mix);
            // A gap behind each warp, and between rows if there is room.
            let is_last = ((line + 1) * together).is_multiple_of(lanes);
            let filled = if row > 2 || (row > 1 && is_last) { row - 1 } else { row };
            for y in line * row..line * row + filled {
                picture.pixels[(y * picture.width) as usize + bin] = colour;
            }
        }
    }
    Chart::of(&picture, row * (lanes / together))
}

/// Round numbers of cycles, about so many in a range.
pub fn ticks(first: u64, cycles: u64, about: u64) -> Vec<u64> {
    let least = (cycles / about).max(1);
    let steps = (0..18).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    let step = steps.into_iter().find(|&step| step >= least).unwrap_or(u64::MAX);
    (first.next_multiple_of(step)..=first + cycles).step_by(step as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_filled_by_shares() {
        let mut picture = image(2, 10);
        let (a, b) = ([1; 3], [2; 3]);
        stack(&mut picture, 1, 0..10, &[(a, 3), (b, 1)]);
        let column = |x: usize| (0..10).map(|y| picture.pixels[y * 2 + x]).collect::<Vec<_>>();
        assert_eq!(column(0), [WHITE; 10]);
        assert_eq!(column(1).iter().filter(|pixel| **pixel == a).count(), 8);
        assert_eq!(column(1)[0], b);
        stack(&mut picture, 0, 0..10, &[(a, 0), (b, 0)]);
    }

    #[test]
    fn ticks_are_round_and_in_the_range() {
        assert_eq!(ticks(0, 500, 10), [0, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500]);
        assert_eq!(ticks(3, 4, 10), [3, 4, 5, 6, 7]);
        assert_eq!(ticks(1234, 100_000, 10).first(), Some(&10_000));
        assert_eq!(ticks(0, 0, 10), [0]);
    }
}

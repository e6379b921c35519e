//! Where cells and memories are in the state buffer, and access to them from the host.
//!
//! A cell of up to 32 bits has 4 bytes, a wider one 8 for each limb. A memory word of up to 64 bits has 1, 2, 4 or 8
//! bytes, a wider one 8 for each limb. Bits above the width are 0.
//!
//! Where there are lanes, each has 4 bytes (up to 32 bits) or 8, and they lie side by side, limb after limb; their
//! number is rounded up to whole [`STRIP`]s. Cells with lanes of 1 bit are packed instead: bit k is lane k.

use crate::directory::Directory;
use crate::engine::Piece;
use crate::flat::cells::{CellShape as Shape, Cells, Place};
use crate::flat::{container, limb_width, limbs};
use heddle_hdl::Bits;
use heddle_hdl::bits::low_mask;

/// So many lanes are computed together.
pub const STRIP: u32 = 4;

/// Alignment of the state, of memories, and of cells with lanes, in bytes.
pub const LINE: usize = 64;

/// Offsets and sizes in bytes.
#[derive(Clone)]
pub struct Layout {
    pub cells: Vec<Form>,
    pub memories: Vec<Form>,
    /// Where the last cell ends: a multiple of 8.
    pub cells_end: usize,
    /// A multiple of [`LINE`].
    pub size: usize,
}

/// How a cell, or a word of a memory, lies. Offsets and distances are in bytes.
#[derive(Clone, Copy)]
pub struct Form {
    /// Of the first word.
    pub offset: usize,
    pub shape: Shape,
    /// How many words there are; 1 for a cell.
    pub words: u64,
    /// From one word, limb, lane to the next; 0 between the lanes of packed bits.
    pub stride: usize,
    pub limb: usize,
    pub lane: usize,
}

impl Form {
    fn plain(shape: Shape, bytes: usize) -> Form {
        Form { offset: 0, shape, words: 1, stride: bytes, limb: 8, lane: 0 }
    }

    fn side_by_side(shape: Shape) -> Form {
        let lane = container(shape.width) as usize / 8;
        let limb = lane * shape.lanes.next_multiple_of(STRIP) as usize;
        Form { offset: 0, shape, words: 1, stride: limb * limbs(shape.width) as usize, limb, lane }
    }

    fn of_cell(shape: Shape) -> Form {
        match shape {
            Shape { width: 1, lanes: 0..=32 } => Form::plain(shape, 4),
            Shape { width: 1, .. } => Form::plain(shape, 8),
            Shape { lanes: 2.., .. } => Form::side_by_side(shape),
            Shape { width: 0..=32, .. } => Form::plain(shape, 4),
            Shape { width, .. } => Form::plain(shape, 8 * limbs(width) as usize),
        }
    }

    fn of_memory(shape: Shape, words: u64) -> Form {
        let form = match shape {
            Shape { lanes: 2.., .. } => Form::side_by_side(shape),
            Shape { width: 0..=64, .. } => Form::plain(shape, (shape.width.div_ceil(8) as usize).next_power_of_two()),
            Shape { width, .. } => Form::plain(shape, 8 * limbs(width) as usize),
        };
        Form { words, ..form }
    }

    pub fn has_packed_bits(&self) -> bool {
        self.shape.lanes > 1 && self.lane == 0
    }

    /// The offset of limb 0 of a word, in one lane.
    pub fn at(&self, word: u64, lane: u32) -> usize {
        self.offset + word as usize * self.stride + lane as usize * self.lane
    }

    /// A word of one lane; without `lane`, of all of them side by side (at most 64 bits each).
    pub fn read(&self, state: &[u64], word: u64, lane: Option<u32>) -> Bits {
        if self.shape.width <= 64 && (lane.is_some() || self.shape.lanes <= 1) {
            return Bits::from(self.read_u64(state, word, lane.unwrap_or(0)));
        }
        let mut limbs = Vec::new();
        self.read_limbs(state, word, lane, &mut limbs);
        Bits::from_limbs(&limbs)
    }

    /// The same as limbs, which it appends.
    pub fn read_limbs(&self, state: &[u64], word: u64, lane: Option<u32>, to: &mut Vec<u64>) {
        let width = self.shape.width;
        match lane {
            None if self.has_packed_bits() => to.push(read_u64(state, self.at(word, 0), self.shape.lanes)),
            None if self.shape.lanes > 1 => {
                let first = to.len();
                to.resize(first + limbs(width * self.shape.lanes) as usize, 0);
                let packed = &mut to[first..];
                for k in 0..self.shape.lanes {
                    let (value, at) = (self.read_u64(state, word, k), k * width);
                    packed[at as usize / 64] |= value << (at % 64);
                    if at % 64 + width > 64 {
                        packed[at as usize / 64 + 1] |= value >> (64 - at % 64);
                    }
                }
            }
            _ if width <= 64 => to.push(self.read_u64(state, word, lane.unwrap_or(0))),
            _ => {
                let at = self.at(word, lane.unwrap_or(0));
                to.extend((0..limbs(width) as usize).map(|k| state[(at + k * self.limb) / 8]));
            }
        }
    }

    /// Where the bits of word 0 are that `read` would put together, the lowest first.
    pub fn pieces(&self, lane: Option<u32>) -> Vec<Piece> {
        let Shape { width, lanes } = self.shape;
        let piece = |offset: usize, shift: u32, width: u32| {
            let shift = offset as u32 % 8 * 8 + shift;
            Piece { limb: offset / 8, shift, width }
        };
        match lane {
            None if self.has_packed_bits() => vec![piece(self.offset, 0, lanes)],
            None if lanes > 1 => (0..lanes).map(|k| piece(self.at(0, k), 0, width)).collect(),
            Some(lane) if self.has_packed_bits() => vec![piece(self.offset, lane, 1)],
            _ => {
                let at = self.at(0, lane.unwrap_or(0));
                (0..limbs(width)).map(|k| piece(at + k as usize * self.limb, 0, limb_width(width, k))).collect()
            }
        }
    }

    /// The low 64 bits of a word of one lane.
    pub fn read_u64(&self, state: &[u64], word: u64, lane: u32) -> u64 {
        if self.has_packed_bits() {
            return read_u64(state, self.at(word, 0), self.shape.lanes) >> lane & 1;
        }
        read_u64(state, self.at(word, lane), self.shape.width.min(64))
    }

    /// Writes a word, cut to its width, of one lane; without `lane`, of all of them side by side.
    pub fn write(&self, state: &mut [u64], word: u64, lane: Option<u32>, value: &Bits) {
        let Shape { width, lanes } = self.shape;
        match lane {
            None if lanes > 1 => {
                (0..lanes).for_each(|k| self.write(state, word, Some(k), &value.extract(k * width, width)));
            }
            _ if width <= 64 => self.write_u64(state, word, lane.unwrap_or(0), value.low_u64()),
            _ => {
                let at = self.at(word, lane.unwrap_or(0));
                for k in 0..limbs(width) {
                    state[(at + k as usize * self.limb) / 8] = value.limb(k as usize) & low_mask(limb_width(width, k));
                }
            }
        }
    }

    /// Writes a word of one lane that has at most 64 bits, to which the value is cut.
    pub fn write_u64(&self, state: &mut [u64], word: u64, lane: u32, value: u64) {
        let (offset, low) = if self.has_packed_bits() { (self.at(word, 0), lane) } else { (self.at(word, lane), 0) };
        let shift = offset % 8 * 8 + low as usize;
        let mask = low_mask(self.shape.width) << shift;
        let limb = &mut state[offset / 8];
        *limb = *limb & !mask | value << shift & mask;
    }
}

fn read_u64(state: &[u64], offset: usize, width: u32) -> u64 {
    state[offset / 8] >> (offset % 8 * 8) & low_mask(width)
}

impl Layout {
    pub fn new(directory: &Directory, cells: &Cells) -> Layout {
        fn place(form: Form, align: usize, size: &mut usize) -> Form {
            let offset = size.next_multiple_of(align);
            *size = offset + form.stride * form.words as usize;
            Form { offset, ..form }
        }
        let mut size: usize = 0;
        let forms = cells.shapes.iter().map(|&shape| Form::of_cell(shape));
        let align = |form: &Form| if form.lane > 0 { LINE } else { form.stride.min(8) };
        let forms = forms.map(|form| place(form, align(&form), &mut size)).collect();
        let cells_end = size.next_multiple_of(8);
        let mut memories = vec![None; cells.memory_shapes.len()];
        for (k, at) in cells.memories.iter().enumerate() {
            memories[at.number as usize].get_or_insert_with(|| {
                let words = 1 << directory.memory(k).address_width;
                place(Form::of_memory(cells.memory_shapes[at.number as usize], words), LINE, &mut size)
            });
        }
        let memories = memories.into_iter().map(|form| form.expect("every memory has its place")).collect();
        Layout { cells: forms, memories, cells_end, size: size.next_multiple_of(LINE) }
    }

    /// Places cells and memories that were numbered since, memories of so many words, behind all others.
    pub fn grow(&mut self, cells: &Cells, words: u64) {
        let mut place = |form: Form| {
            let offset = self.size.next_multiple_of(LINE);
            self.size = offset + form.stride * form.words as usize;
            Form { offset, ..form }
        };
        let shapes = &cells.shapes[self.cells.len()..];
        self.cells.extend(shapes.iter().map(|&shape| place(Form::of_cell(shape))));
        let shapes = &cells.memory_shapes[self.memories.len()..];
        self.memories.extend(shapes.iter().map(|&shape| place(Form::of_memory(shape, words))));
        self.size = self.size.next_multiple_of(LINE);
    }

    pub fn cell(&self, place: Place) -> &Form {
        &self.cells[place.number as usize]
    }
}

/// How many bytes to load or store for a part of `width` bits of a word of `all` bits that has `bytes` bytes.
pub fn access_bytes(all: u32, bytes: usize, width: u32) -> usize {
    match width {
        _ if all <= 64 && width == all => bytes,
        8 | 16 => width as usize / 8,
        0..=32 => 4,
        _ => 8,
    }
}

#[cfg(all(test, feature = "fuzz"))]
mod tests {
    use super::*;
    use crate::fuzz::random_bits;
    use fastrand::Rng;

    /// Every word and lane of a form keeps what is written to it, whatever is written to the others, and nothing else
    /// in the buffer changes.
    fn check(form: Form) {
        let Shape { width, lanes } = form.shape;
        let mut rng = Rng::with_seed(u64::from(width * 100 + lanes));
        let size = form.words as usize * form.stride;
        let form = Form { offset: LINE, ..form };
        let mut state = vec![0; (size + 2 * LINE).div_ceil(8)];
        let places: Vec<(u64, u32)> =
            (0..form.words).flat_map(|word| (0..lanes).map(move |lane| (word, lane))).collect();
        let values: Vec<Bits> = places.iter().map(|_| random_bits(&mut rng, width)).collect();
        for before in [Bits::ZERO, Bits::ones(width)] {
            for &(word, lane) in &places {
                match width {
                    0..=64 => form.write_u64(&mut state, word, lane, before.low_u64()),
                    _ => form.write(&mut state, word, Some(lane), &before),
                }
            }
            for (&(word, lane), value) in places.iter().zip(&values) {
                // Bits above the width are cut.
                let above = Bits::from_big(value.to_big() | (random_bits(&mut rng, 9).to_big() << width));
                form.write(&mut state, word, Some(lane), &above);
            }
            for (&(word, lane), value) in places.iter().zip(&values) {
                assert_eq!(&form.read(&state, word, Some(lane)), value, "{:?}, lane {lane}", form.shape);
                assert_eq!(form.read_u64(&state, word, lane), value.low_u64(), "{:?}, lane {lane}", form.shape);
            }
            assert!(state[..LINE / 8].iter().all(|&limb| limb == 0), "{:?}: before", form.shape);
            assert!(state[(LINE + size).div_ceil(8)..].iter().all(|&limb| limb == 0), "{:?}: behind", form.shape);
        }
        let ones: u32 = values.iter().map(Bits::count_ones).sum();
        assert_eq!(state.iter().map(|limb| limb.count_ones()).sum::<u32>(), ones, "{:?}: bits above", form.shape);
        if lanes > 1 && width <= 64 {
            let packed = form.read(&state, 0, None);
            for (lane, value) in (0..lanes).zip(&values) {
                assert_eq!(&packed.extract(lane * width, width), value, "{:?}, lane {lane} of all", form.shape);
            }
            form.write(&mut state, 0, None, &Bits::ZERO);
            assert_eq!(form.read(&state, 0, None), Bits::ZERO);
            form.write(&mut state, 0, None, &packed);
            assert_eq!(form.read(&state, 0, None), packed);
        }
    }

    #[test]
    fn words_and_lanes_do_not_meet() {
        for width in [1, 2, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 129] {
            for lanes in [1, 2, 3, 4, 5, 31, 32, 33, 63, 64] {
                let shape = Shape { width, lanes };
                check(Form::of_cell(shape));
                check(Form::of_memory(shape, 5));
            }
        }
    }

    #[test]
    fn strips_are_aligned_and_whole() {
        for width in [2, 32, 33, 64, 65, 129] {
            for lanes in [2, 3, 4, 5, 63, 64] {
                let shape = Shape { width, lanes };
                for form in [Form::of_cell(shape), Form::of_memory(shape, 2)] {
                    let lane = if width <= 32 { 4 } else { 8 };
                    assert_eq!(form.lane, lane, "{shape:?}");
                    assert_eq!(form.limb, lane * lanes.next_multiple_of(STRIP) as usize, "{shape:?}");
                    assert_eq!(form.stride, form.limb * limbs(width) as usize, "{shape:?}");
                    assert!(form.stride.is_multiple_of(16), "{shape:?}");
                }
            }
        }
    }
}

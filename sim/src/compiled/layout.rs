//! Where cells and memories are in the state buffer, and access to them from the host.
//!
//! A cell of up to 32 bits has 4 bytes, a wider one 8 for each limb. A memory word of up to 64 bits has 1, 2, 4 or 8
//! bytes, a wider one 8 for each limb. Bits above the width are 0.

use crate::directory::Directory;
use crate::flat::cells::Cells;
use crate::flat::limbs;
use heddle_hdl::Bits;
use heddle_hdl::bits::low_mask;

/// Offsets and sizes in bytes.
pub struct Layout {
    pub cells: Vec<usize>,
    pub memories: Vec<MemoryPlace>,
    /// A multiple of 8.
    pub size: usize,
}

#[derive(Clone, Copy)]
pub struct MemoryPlace {
    pub offset: usize,
    /// From one word to the next.
    pub stride: usize,
    /// In bits.
    pub width: u32,
    pub words: u64,
}

impl Layout {
    pub fn new(directory: &Directory, cells: &Cells) -> Layout {
        const LINE: usize = 64;
        let mut size: usize = 0;
        let mut place = |bytes: usize, align: usize| {
            let offset = size.next_multiple_of(align);
            size = offset + bytes;
            offset
        };
        let cells = cells.widths.iter().map(|&width| match width {
            0..=32 => place(4, 4),
            _ => place(8 * limbs(width) as usize, 8),
        });
        let cells = cells.collect();
        let memories = (0..directory.memories.len()).map(|k| {
            let memory = directory.memory(k);
            let stride = match memory.width {
                0..=64 => (memory.width.div_ceil(8) as usize).next_power_of_two(),
                width => 8 * limbs(width) as usize,
            };
            let words = 1 << memory.address_width;
            let offset = place(words as usize * stride, LINE);
            MemoryPlace { offset, stride, width: memory.width, words }
        });
        let memories = memories.collect();
        Layout { cells, memories, size: size.next_multiple_of(LINE) }
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

/// The value of `width` bits at a byte offset of the buffer.
pub fn read(state: &[u64], offset: usize, width: u32) -> Bits {
    if width <= 64 {
        return Bits::from(read_u64(state, offset, width));
    }
    let first = offset / 8;
    Bits::from_limbs(&state[first..first + limbs(width) as usize])
}

/// The low 64 bits of it.
pub fn read_u64(state: &[u64], offset: usize, width: u32) -> u64 {
    state[offset / 8] >> (offset % 8 * 8) & low_mask(width)
}

/// Writes a value, cut to `width` bits.
pub fn write(state: &mut [u64], offset: usize, width: u32, value: &Bits) {
    if width <= 64 {
        return write_u64(state, offset, width, value.low_u64());
    }
    for k in 0..limbs(width) {
        let width = crate::flat::limb_width(width, k);
        state[offset / 8 + k as usize] = value.limb(k as usize) & low_mask(width);
    }
}

/// Writes a value of at most 64 bits, cut to `width` bits.
pub fn write_u64(state: &mut [u64], offset: usize, width: u32, value: u64) {
    let shift = offset % 8 * 8;
    let mask = low_mask(width) << shift;
    let limb = &mut state[offset / 8];
    *limb = *limb & !mask | value << shift & mask;
}

//! What changed from one cycle to the next: an engine's values as limbs, compared with the last ones.
//!
//! An engine with an image of its own ([`Engine::image`]) is read there; of others, values are put into one here.

use crate::engine::{Engine, Item, Piece};
use heddle_hdl::Bits;
use std::ops::Range;

/// So many limbs are compared at once.
const STRIDE: usize = 8;

/// The last cycle's limbs.
pub struct Image {
    /// For each item, nothing if the engine does not keep it.
    pub pieces: Vec<Vec<Piece>>,
    /// Which limbs to compare: whole strides, but for the last.
    ranges: Vec<Range<usize>>,
    last: Vec<u64>,
    /// The items, and where to put them, of an engine without an image.
    own: Option<(Vec<Item>, Vec<u64>)>,
}

impl Image {
    /// Of an engine, which shows signals if it can.
    pub fn new(engine: &dyn Engine, items: &[Item]) -> Image {
        let (pieces, own) = match engine.image() {
            Some(_) => (items.iter().map(|&item| engine.pieces(item)).collect::<Vec<_>>(), None),
            None => {
                let (pieces, limbs) = side_by_side(engine, items);
                (pieces, Some((items.to_vec(), vec![0; limbs])))
            }
        };
        let limbs = own.as_ref().map(|(_, limbs)| limbs.len()).or(engine.image().map(<[u64]>::len)).unwrap_or(0);
        Image { ranges: ranges(&pieces, limbs), pieces, last: vec![0; limbs], own }
    }

    /// How many limbs there are.
    pub fn limbs(&self) -> usize {
        self.last.len()
    }

    /// Every limb that anything lies in, with its value.
    pub fn all(&mut self, engine: &dyn Engine, mut each: impl FnMut(u32, u64)) {
        let now = now(&mut self.own, &self.pieces, engine);
        self.last.copy_from_slice(now);
        self.ranges.iter().flat_map(Clone::clone).for_each(|limb| each(limb as u32, now[limb]));
    }

    /// The limbs that are not as they were at the last call, or at that of `all`, with their values.
    pub fn changes(&mut self, engine: &dyn Engine, mut each: impl FnMut(u32, u64)) {
        let now = now(&mut self.own, &self.pieces, engine);
        for range in &self.ranges {
            let (now, last) = (&now[range.clone()], &mut self.last[range.clone()]);
            let (now_strides, now_rest) = now.as_chunks::<STRIDE>();
            let (last_strides, last_rest) = last.as_chunks_mut::<STRIDE>();
            let mut limb = range.start as u32;
            for (now, last) in now_strides.iter().zip(last_strides) {
                if now.iter().zip(last.iter()).fold(0, |all, (now, last)| all | now ^ last) != 0 {
                    differences(now, last, limb, &mut each);
                }
                limb += STRIDE as u32;
            }
            differences(now_rest, last_rest, limb, &mut each);
        }
    }
}

/// The present limbs.
fn now<'a>(own: &'a mut Option<(Vec<Item>, Vec<u64>)>, pieces: &[Vec<Piece>], engine: &'a dyn Engine) -> &'a [u64] {
    match own {
        Some((items, limbs)) => {
            read(engine, items, pieces, limbs);
            limbs
        }
        None => engine.image().expect("an engine with an image keeps it"),
    }
}

fn differences(now: &[u64], last: &mut [u64], first: u32, each: &mut impl FnMut(u32, u64)) {
    for ((limb, &now), last) in (first..).zip(now).zip(last) {
        if *last != now {
            *last = now;
            each(limb, now);
        }
    }
}

/// The limbs with pieces; small gaps are not worth a range.
fn ranges(pieces: &[Vec<Piece>], limbs: usize) -> Vec<Range<usize>> {
    let mut used: Vec<usize> = pieces.iter().flatten().map(|piece| piece.limb / STRIDE).collect();
    used.sort_unstable();
    used.dedup();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for stride in used {
        let (start, end) = (stride * STRIDE, ((stride + 1) * STRIDE).min(limbs));
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges
}

/// Limbs of its own for each item that the engine keeps; how many in all.
fn side_by_side(engine: &dyn Engine, items: &[Item]) -> (Vec<Vec<Piece>>, usize) {
    let directory = engine.directory();
    let mut limbs = 0;
    let mut pieces = Vec::new();
    for &item in items {
        let width = match item {
            Item::Output(k) => directory.outputs[k].width,
            Item::Signal(k) => directory.signals[k].width,
            Item::Register(k) => directory.registers[k].width,
            Item::ReadRegister(k) => directory.read_registers[k].width,
            Item::Probe(k) => directory.probes[k].width,
        };
        let count = if value(engine, item).is_some() { width.div_ceil(64) } else { 0 };
        let piece = |k: u32| Piece { limb: limbs + k as usize, shift: 0, width: (width - 64 * k).min(64) };
        pieces.push((0..count).map(piece).collect());
        limbs += count as usize;
    }
    (pieces, limbs)
}

/// Puts the values of items into their limbs.
fn read(engine: &dyn Engine, items: &[Item], pieces: &[Vec<Piece>], limbs: &mut [u64]) {
    for (&item, pieces) in items.iter().zip(pieces) {
        if let Some(value) = value(engine, item) {
            pieces.iter().enumerate().for_each(|(k, piece)| limbs[piece.limb] = value.limb(k));
        }
    }
}

/// None: the engine does not keep it.
fn value(engine: &dyn Engine, item: Item) -> Option<Bits> {
    match item {
        Item::Output(k) => Some(engine.peek(k)),
        Item::Signal(k) => engine.signal(k),
        Item::Register(k) => Some(engine.register(k)),
        Item::ReadRegister(k) => Some(engine.read_register(k)),
        Item::Probe(k) => Some(engine.probe(k)),
    }
}

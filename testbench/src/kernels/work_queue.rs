//! Driver of `work_queue`: a scene of random rectangles, and windows from small to large. The host looks at every
//! rectangle.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

const SEARCHES: usize = 1024;
const RECTANGLES: usize = 128;
const LEAF: usize = 4;
/// With so many a search ends.
const WANTED: usize = 2;
const SIDE: i16 = 1024;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let mut rectangles: Vec<Rectangle> = (0..RECTANGLES).map(|_| Rectangle::random(&mut rng, 8..48)).collect();
    let mut nodes = Vec::new();
    hierarchy(&mut rectangles, 0, &mut nodes);
    let window = |rng: &mut Rng| {
        let most = 8 << rng.u32(..4);
        Rectangle::random(rng, most / 2..most)
    };
    let searches = device.items(SEARCHES, device.capacity("found")?);
    let windows: Vec<Rectangle> = (0..searches).map(|_| window(&mut rng)).collect();
    let bytes = |all: &[Rectangle]| -> Vec<u8> { all.iter().flat_map(|r| halfwords(&r.0)).collect() };
    device.write_bytes("nodes", &nodes.iter().flat_map(Node::bytes).collect::<Vec<_>>())?;
    device.write_bytes("rectangles", &bytes(&rectangles))?;
    device.write_bytes("windows", &bytes(&windows))?;
    device.write_word("searches", windows.len() as u32)?;
    device.write_word("queue", 0)?;
    let threads = device.block_threads(THREADS);
    device.launch_grid(Grid { blocks: device.threads() / threads, threads })?;
    let found = |window: &Rectangle| {
        let numbered = (1..).zip(&rectangles);
        let found = numbered.filter(|(_, rectangle)| rectangle.overlaps(window)).map(|(number, _)| number);
        found.take(WANTED).sum()
    };
    let want: Vec<u32> = windows.iter().map(found).collect();
    check("found", &want, &device.read_words("found", want.len())?)?;
    Ok(Output::checked(want.len()))
}

fn halfwords(numbers: &[i16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Left, top, right and bottom, without the last two.
#[derive(Clone, Copy)]
struct Rectangle([i16; 4]);

impl Rectangle {
    fn random(rng: &mut Rng, sides: std::ops::Range<i16>) -> Rectangle {
        let [width, height] = [(); 2].map(|()| rng.i16(sides.clone()));
        let (left, top) = (rng.i16(0..SIDE - width), rng.i16(0..SIDE - height));
        Rectangle([left, top, left + width, top + height])
    }

    fn overlaps(&self, other: &Rectangle) -> bool {
        (0..2).all(|axis| self.0[axis].max(other.0[axis]) < self.0[axis + 2].min(other.0[axis + 2]))
    }

    fn around(all: &[Rectangle]) -> Rectangle {
        let all = || all.iter().map(|rectangle| rectangle.0);
        let least = |side: usize| all().map(|sides| sides[side]).min().unwrap_or(0);
        let most = |side: usize| all().map(|sides| sides[side]).max().unwrap_or(0);
        Rectangle([least(0), least(1), most(2), most(3)])
    }
}

/// The C's `struct node`.
struct Node {
    around: Rectangle,
    next: usize,
    first: Option<usize>,
}

impl Node {
    fn bytes(&self) -> Vec<u8> {
        let first = self.first.map_or(-1, |first| first as i16);
        halfwords(&[&self.around.0[..], &[self.next as i16, first]].concat())
    }
}

/// Adds a node for rectangles, the first of which has a number, and the nodes below it: halves along the longer side.
fn hierarchy(rectangles: &mut [Rectangle], first: usize, nodes: &mut Vec<Node>) {
    let number = nodes.len();
    let around = Rectangle::around(rectangles);
    let is_leaf = rectangles.len() == LEAF;
    nodes.push(Node { around, next: 0, first: is_leaf.then_some(first) });
    if !is_leaf {
        let [left, top, right, bottom] = around.0;
        let axis = usize::from(bottom - top > right - left);
        rectangles.sort_by_key(|rectangle| rectangle.0[axis] + rectangle.0[axis + 2]);
        let (below, above) = rectangles.split_at_mut(rectangles.len() / 2);
        hierarchy(below, first, nodes);
        hierarchy(above, first + below.len(), nodes);
    }
    nodes[number].next = nodes.len();
}

//! Driver of `cfd`: a mesh of squares, cut in two, whose corners are moved at random, with a hole for the body;
//! elements are numbered nearly in order. A gas streams from left to right.

use std::collections::HashMap;

use fastrand::Rng;

use super::{Device, KernelError, Output, check};

/// Squares along a side of the mesh, and along one of the body.
const SIDE: usize = 16;
const BODY: usize = 2;
const SIDES: usize = 3;
/// Places by which an element's number is off, at most.
const DISORDER: usize = 8;
const WALL: usize = u32::MAX as usize;
const FRACTION_BITS: u32 = 12;
const ONE: i32 = 1 << FRACTION_BITS;
const PRESSURE: i32 = 1638;
const FASTEST: i32 = 2 * ONE;
/// In units of 2^-FRACTION_BITS.
const DURATION: i64 = 400;
const THREADS: u32 = 256;

/// Values of `phase`.
const DERIVE: u32 = 0;
const FLOW: u32 = 1;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let most = device.capacity("durations")?;
    let squares = device.items(2 * SIDE * SIDE, most + 2 * BODY * BODY) / 2;
    let elements = mesh(&mut rng, squares.isqrt());
    let mut about = |middle: i32| middle + rng.i32(-ONE / 8..ONE / 8);
    let states: Vec<State> =
        (0..=elements.len()).map(|_| State([about(ONE), about(ONE / 2), about(0), about(5 * ONE / 2)])).collect();
    let by_side = |value: fn(&Side) -> i32| -> Vec<u32> {
        let of_side = |side: usize| with_room(elements.iter().map(move |element| value(&element.sides[side])), most);
        (0..SIDES).flat_map(of_side).collect()
    };
    device.write_word("elements", elements.len() as u32)?;
    device.write_words("neighbours", &by_side(|side| side.neighbour as i32))?;
    device.write_words("normals_x", &by_side(|side| side.normal[0]))?;
    device.write_words("normals_y", &by_side(|side| side.normal[1]))?;
    device.write_words("lengths", &by_side(|side| side.length))?;
    device.write_words("durations", &elements.iter().map(|element| element.duration as u32).collect::<Vec<_>>())?;
    let quantity = |number: usize| states.iter().map(|state| state.0[number] as u32).collect::<Vec<_>>();
    for (number, name) in ["density", "momentum_x", "momentum_y", "energy"].into_iter().enumerate() {
        device.write_words(name, &quantity(number))?;
    }
    let grid = device.grid_of(states.len(), THREADS);
    for phase in [DERIVE, FLOW] {
        device.write_word("phase", phase)?;
        device.launch_grid(grid)?;
    }
    let after: Vec<[i32; 4]> =
        elements.iter().zip(&states).map(|(element, state)| element.step(*state, &states)).collect();
    let want: Vec<u32> =
        (0..4).flat_map(|number| with_room(after.iter().map(move |after| after[number]), most)).collect();
    check("after", &want, &device.read_words("after", want.len())?)?;
    Ok(Output::checked(4 * after.len()))
}

/// A value of each element, with room for those of the largest mesh.
fn with_room(values: impl Iterator<Item = i32>, most: usize) -> impl Iterator<Item = u32> {
    values.map(|value| value as u32).chain(std::iter::repeat(0)).take(most)
}

fn times(a: i32, b: i32) -> i32 {
    (a * b) >> FRACTION_BITS
}

fn dot(a: [i32; 2], b: [i32; 2]) -> i32 {
    times(a[0], b[0]) + times(a[1], b[1])
}

/// Density, momentum along x and y, energy.
#[derive(Clone, Copy)]
struct State([i32; 4]);

impl State {
    fn velocity(&self) -> [i32; 2] {
        let inverse = (ONE << FRACTION_BITS) / self.0[0];
        [times(self.0[1], inverse), times(self.0[2], inverse)]
    }

    fn pressure(&self) -> i32 {
        times(PRESSURE, self.0[3] - (dot([self.0[1], self.0[2]], self.velocity()) >> 1))
    }
}

struct Side {
    /// An element, the number of elements for what is far away, or the wall.
    neighbour: usize,
    normal: [i32; 2],
    length: i32,
}

struct Element {
    sides: [Side; SIDES],
    duration: i32,
}

impl Element {
    /// The state after a step.
    fn step(&self, here: State, states: &[State]) -> [i32; 4] {
        let mut twice_out = [0; 4];
        for side in &self.sides {
            // A wall pushes back, and lets nothing pass.
            let there = states.get(side.neighbour);
            let push = here.pressure() + there.unwrap_or(&here).pressure();
            twice_out[1] += times(push, side.normal[0]);
            twice_out[2] += times(push, side.normal[1]);
            let Some(there) = there else { continue };
            let [speed_here, speed_there] = [&here, there].map(|state| dot(state.velocity(), side.normal));
            for (number, out) in twice_out.iter_mut().enumerate() {
                let (a, b) = (here.0[number], there.0[number]);
                *out += times(a, speed_here) + times(b, speed_there) - times(times(FASTEST, side.length), b - a);
            }
            twice_out[3] += times(here.pressure(), speed_here) + times(there.pressure(), speed_there);
        }
        std::array::from_fn(|number| here.0[number] - (times(twice_out[number], self.duration) >> 1))
    }
}

fn mesh(rng: &mut Rng, across: usize) -> Vec<Element> {
    let corner = |x: usize, y: usize| y * (across + 1) + x;
    let body = (across - BODY) / 2..(across + BODY) / 2;
    let mut place = |number: usize| {
        [number % (across + 1), number / (across + 1)].map(|at| at as i32 * ONE + rng.i32(-ONE / 5..ONE / 5))
    };
    let places: Vec<[i32; 2]> = (0..=corner(across, across)).map(&mut place).collect();
    // Corners of each triangle, against the clock.
    let mut triangles = Vec::new();
    for (x, y) in (0..across * across).map(|square| (square % across, square / across)) {
        if !(body.contains(&x) && body.contains(&y)) {
            let [a, b, c, d] = [corner(x, y), corner(x + 1, y), corner(x + 1, y + 1), corner(x, y + 1)];
            triangles.extend([[a, b, c], [a, c, d]]);
        }
    }
    triangles.chunks_mut(DISORDER).for_each(|near| rng.shuffle(near));
    let ends = |triangle: &[usize; SIDES], side: usize| (triangle[side], triangle[(side + 1) % SIDES]);
    let mut owner = HashMap::new();
    for (number, triangle) in triangles.iter().enumerate() {
        (0..SIDES).for_each(|side| _ = owner.insert(ends(triangle, side), number));
    }
    let at_rim = |number: usize| [number % (across + 1), number / (across + 1)].iter().any(|at| at % across == 0);
    let element = |triangle: &[usize; SIDES]| {
        let side = |side: usize| {
            let (from, to) = ends(triangle, side);
            let beyond = if at_rim(from) && at_rim(to) { triangles.len() } else { WALL };
            let [x, y] = [0, 1].map(|axis| places[to][axis] - places[from][axis]);
            let neighbour = owner.get(&(to, from)).copied().unwrap_or(beyond);
            Side { neighbour, normal: [y, -x], length: f64::from(x).hypot(f64::from(y)) as i32 }
        };
        let sides = [0, 1, 2].map(side);
        let [[a, b], [c, d]] = [sides[0].normal, sides[1].normal].map(|normal| normal.map(i64::from));
        let twice_area = (a * d - b * c) >> FRACTION_BITS;
        Element { sides, duration: (((2 * DURATION) << FRACTION_BITS) / twice_area) as i32 }
    };
    triangles.iter().map(element).collect()
}

//! The paths of a warp as they stand in the tables of the core's divergence unit: for tests, and for people who ask why.

use crate::grid::Grid;
use heddle_hdl::eval::concat;
use heddle_hdl::{Bits, index_width};
use heddle_sim::Engine;
use heddle_simt::Shape;
use heddle_simt::divergence::block_stack::block_levels;
use heddle_simt::divergence::levels::{has_likely, levels};
use heddle_simt::divergence::{Divergence, dual_path};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// A path and the place that holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// The table, and the entry of a table with several.
    pub place: String,
    /// Call depth.
    pub depth: u64,
    /// Byte address of the path's next instruction that has an outcome, or of one before it.
    pub pc: u32,
    /// One bit a lane, lane 0 lowest.
    pub mask: u64,
    /// Its threads wait at the barrier before `pc`.
    pub waits: bool,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Path { place, depth, pc, mask, waits } = self;
        let waits = if *waits { ", waiting" } else { "" };
        write!(f, "{place:<8}depth {depth}, pc {pc:#010x}, lanes {mask:#x}{waits}")
    }
}

/// The paths of a warp, the one that runs first, and behind them its threads at convergence barriers; none where
/// threads of several warps run together, or where it is not known here how a mechanism keeps them. The engine must show
/// memories; `core` is the path of the core's instance, empty if it is the top.
pub fn paths(engine: &dyn Engine, core: &str, shape: &Shape, warp: u32) -> Vec<Path> {
    if shape.divergence.capabilities().mixes_warps {
        return Vec::new();
    }
    let unit = if core.is_empty() { "divergence".into() } else { format!("{core}.divergence") };
    let live = if shape.convergence_barriers > 0 { "listed" } else { "live" };
    let live =
        engine.directory().registers.find(&format!("{unit}.{live}")).expect("a divergence unit knows who is live");
    let listed = engine.register(live).bit(warp);
    let word = |memory: &str, address: u64| {
        let memory = engine.directory().memories.find(&format!("{unit}.{memory}"));
        engine.memory_read(memory.expect("the divergence unit has this memory"), address)
    };
    let register = |register: &str| {
        let register = engine.directory().registers.find(&format!("{unit}.{register}"));
        engine.register(register.expect("the divergence unit has this register"))
    };
    let held = if shape.convergence_barriers > 0 { at_convergence_barriers(&word, shape, warp) } else { vec![] };
    if !listed {
        return held;
    }
    // A path waits if its bit is not that of its warp's phase.
    let phase = || shape.barriers && word("phases", u64::from(warp)).bit(0);
    if shape.divergence == Divergence::PATH_TABLE {
        of_path_table(&word, &register, shape, warp, phase()).into_iter().chain(held).collect()
    } else if shape.divergence == Divergence::ARBITER {
        of_arbiter(&word, shape, warp, phase())
    } else if shape.divergence.capabilities().reconverges {
        let waiting = engine.directory().registers.find(&format!("{unit}.parked"));
        let waits = waiting.is_some_and(|waiting| engine.register(waiting).bit(warp));
        of_stack(&word, shape, warp, waits)
    } else {
        Vec::new()
    }
}

/// Reads a word of a memory of the unit.
type Word<'a> = &'a dyn Fn(&str, u64) -> Bits;
/// Reads a register of the unit.
type Register<'a> = &'a dyn Fn(&str) -> Bits;

/// HCT0, HCT1, then the cold context table from its bottom, with what is about to be written there.
fn of_path_table(word: Word, register: Register, shape: &Shape, warp: u32, phase: bool) -> Vec<Path> {
    let slot = u64::from(warp);
    let (rank, pc) = (shape.rank_bits(), shape.pc_bits());
    let path = |place: String, word: Bits, low: u32| {
        let field = |at: u32, width: u32| word.extract(low + at, width).low_u64();
        let mask = field(rank + pc, shape.lanes);
        let waits = shape.barriers && word.bit(low + rank + pc + shape.lanes) != phase;
        Path { place, depth: field(0, shape.depth_bits), pc: 4 * field(rank, pc) as u32, mask, waits }
    };
    let mut paths = vec![path("HCT0".into(), word("hct0", slot), 0)];
    if shape.lanes > 1 {
        let second = word("hct1", slot);
        if second.bit(0) {
            paths.push(path("HCT1".into(), second, 1));
        }
    }
    if shape.lanes > 2 {
        let base = slot << index_width(shape.lanes - 2);
        // A broken core may count more than there are.
        let count = word("cct.counts", slot).low_u64().min(u64::from(shape.lanes - 2));
        let late = register("cct.late_valid").bit(0).then(|| register("cct.late_address").low_u64());
        let cold = |address: u64| match late {
            Some(to) if to == address => {
                let part = |name: &str, width: u32| (register(&format!("cct.late_path_{name}")), width);
                let parts = [part("depth", rank), part("pc", pc), part("mask", shape.lanes), part("waits", 1)];
                concat(parts.iter().map(|(part, width)| (part, *width)))
            }
            _ => word("cct.cold", address),
        };
        paths.extend((0..count).map(|k| path(format!("CCT[{k}]"), cold(base + k), 0)));
    }
    paths
}

/// The threads that wait at each convergence barrier of the warp. They go on at `pc`.
fn at_convergence_barriers(word: Word, shape: &Shape, warp: u32) -> Vec<Path> {
    let Shape { convergence_barriers: barriers, lanes, depth_bits, .. } = *shape;
    let holds = word("convergence.words", warp.into()).extract(barriers, barriers);
    let path = |barrier: u32| {
        let entry = word("convergence.entries", u64::from(warp) << shape.barrier_bits() | u64::from(barrier));
        let field = |at: u32, width: u32| entry.extract(at, width).low_u64();
        let pc = 4 * field(2 * lanes + depth_bits, shape.pc_bits()) as u32;
        let (depth, mask) = (field(2 * lanes, depth_bits), field(lanes, lanes));
        Path { place: format!("wait {barrier}"), depth, pc, mask, waits: true }
    };
    (0..barriers).filter(|&barrier| holds.bit(barrier)).map(path).collect()
}

/// Reads the fields of a word one after the other.
struct Fields<'a> {
    shape: &'a Shape,
    word: Bits,
    at: u32,
}

/// Where threads meet.
#[derive(Clone, Copy)]
struct Meeting {
    pc: u64,
    /// Call depth of the branch.
    depth: u64,
    /// At one depth less.
    returns: u64,
}

impl Meeting {
    /// In a function that none of them has returned from, nobody has come there.
    fn place(self) -> (u64, u64) {
        (self.pc, self.depth.saturating_sub(self.returns))
    }
}

impl Fields<'_> {
    fn take(&mut self, width: u32) -> u64 {
        self.at += width;
        self.word.extract(self.at - width, width).low_u64()
    }

    /// Pc, depth and mask.
    fn path(&mut self) -> ((u64, u64), u64) {
        let (pc, depth) = (self.take(self.shape.pc_bits()), self.take(self.shape.depth_bits));
        ((pc, depth), self.take(self.shape.lanes))
    }

    /// The same behind a bit that says whether there is such a path.
    fn valid_path(&mut self) -> Option<((u64, u64), u64)> {
        let valid = self.take(1) == 1;
        Some(self.path()).filter(|_| valid)
    }

    fn meeting(&mut self) -> Meeting {
        let [_, returns, _] = [0; 3].map(|_| self.take(1));
        Meeting { returns, pc: self.take(self.shape.pc_bits()), depth: self.take(self.shape.depth_bits) }
    }

    /// The pc where threads are likely to meet, at the depth of their branch.
    fn point(&mut self) -> u64 {
        let [_, pc, _] = [1, self.shape.pc_bits(), index_width(levels(self.shape))].map(|width| self.take(width));
        pc
    }
}

/// The top, or both paths of it; then level by level the path that has not run on, and the threads that have come to where
/// they are likely to meet or to where they meet.
fn of_stack(word: Word, shape: &Shape, warp: u32, waits: bool) -> Vec<Path> {
    let slot = u64::from(warp);
    let fields = |word: Bits| Fields { shape, word, at: 0 };
    let mut left = word("threads", slot).low_u64();
    let mut paths = Vec::new();
    let mut add = |place: String, (pc, depth): (u64, u64), mask: u64, waits: bool| {
        let mask = mask & left;
        left &= !mask;
        if mask != 0 {
            paths.push(Path { place, depth, pc: 4 * pc as u32, mask, waits });
        }
    };
    let mut top = fields(word("tops", slot));
    if shape.sides() > 1 {
        for side in ["left", "right"] {
            if let Some((at, mask)) = top.valid_path() {
                add(side.into(), at, mask, waits);
            }
        }
    } else {
        let (at, mask) = top.path();
        add("top".into(), at, mask, waits);
    }
    let mut meet = top.meeting();
    let forwards = dual_path::forwards(shape);
    // The sibling of the uppermost level: whether it is no more there, and where it meets others.
    let [mut taken, ..] = [0; 3].map(|_| if forwards { top.take(1) } else { 0 });
    let mut forwarded = if forwards { top.meeting() } else { meet };
    let levels = levels(shape);
    let entry = |k: u64| slot << index_width(levels) | k;
    let with_points = has_likely(shape);
    let mut likely = if with_points { top.point() } else { 0 };
    // A broken core may count more than there are.
    let count = word("counts", slot).low_u64().min(u64::from(levels));
    for k in (0..count).rev() {
        let mut level = fields(word("levels", entry(k)));
        if let Some((at, mask)) = level.valid_path().filter(|_| taken == 0) {
            add(format!("level[{k}]"), at, mask, false);
        }
        let (valid, mask) = (level.take(1) == 1, level.take(shape.lanes));
        let mut outer = level.meeting();
        if forwards {
            let [_side, before, _group, sibling] = [0; 4].map(|_| level.take(1));
            taken = before;
            if sibling == 0 {
                std::mem::swap(&mut outer, &mut forwarded);
            }
        }
        if with_points {
            let gathers = level.take(1) == 1;
            if gathers {
                add(format!("likely[{k}]"), (likely, meet.depth), word("gathered", entry(k)).low_u64(), false);
            }
            if gathers || valid {
                likely = level.point();
            }
        }
        if valid {
            add(format!("met[{k}]"), meet.place(), mask, false);
            meet = outer;
        }
    }
    add("met".into(), meet.place(), u64::MAX, false);
    paths
}

/// The threads that are in the same place, in the order in which they run.
fn of_arbiter(word: Word, shape: &Shape, warp: u32, phase: bool) -> Vec<Path> {
    let (depth, pc) = (shape.depth_bits, shape.pc_bits());
    let mut paths = BTreeMap::new();
    for lane in 0..shape.lanes {
        let thread = word(&format!("lane[{lane}].threads"), u64::from(warp));
        let (of, at) = (thread.extract(0, depth).low_u64(), thread.extract(depth, pc).low_u64());
        let waits = shape.barriers && thread.bit(depth + pc) != phase;
        if thread.bit(depth + pc + 1) {
            let path = Path { place: "threads".into(), depth: of, pc: 4 * at as u32, mask: 0, waits };
            paths.entry((waits, Reverse(of), at)).or_insert(path).mask |= 1 << lane;
        }
    }
    paths.into_values().collect()
}

/// Of the block on the warp slots from `first`: threads that wait at a barrier, and those that have not run since a branch parted
/// them; whether they wait, and the byte address where they go on. For [`Divergence::BLOCK_STACK`].
pub fn of_block(engine: &dyn Engine, core: &str, shape: &Shape, grid: &Grid, first: u32) -> Vec<(u32, bool, u32)> {
    let unit = format!("{core}.divergence");
    let memory = |name: &str, address: u64| {
        let memory = engine.directory().memories.find(&format!("{unit}.{name}"));
        engine.memory_read(memory.expect("the divergence unit has this memory"), address)
    };
    let register = |name: &str| {
        let register = engine.directory().registers.find(&format!("{unit}.{name}"));
        engine.register(register.expect("the divergence unit has this register"))
    };
    let slots = first..first + grid.slots(shape);
    let threads = |mask: Bits| {
        // A lane's warps are side by side.
        let of_warp =
            move |warp| (0..shape.lanes).map(move |lane| (lane * shape.warps + warp, warp * shape.lanes + lane));
        slots.clone().flat_map(of_warp).filter(move |(bit, _)| mask.bit(*bit)).map(|(_, thread)| thread)
    };
    let place = memory("places", first.into());
    let is_barrier = register("recorded").bit(first) && place.extract(0, 2).low_u64() == 3;
    let pc_at = |word: &Bits, at: u32| 4 * word.extract(at, shape.pc_bits()).low_u64() as u32;
    let waiting = threads(register("taken")).filter(|_| is_barrier).map(|thread| (thread, true, pc_at(&place, 2)));
    let mut found: Vec<_> = waiting.collect();
    if shape.threads() > 1 {
        let most = block_levels(shape);
        for level in 0..memory("counts", first.into()).low_u64().min(most.into()) {
            let held = memory("levels", u64::from(first) << index_width(most) | level);
            if held.bit(0) {
                found.extend(threads(memory("siblings", level)).map(|thread| (thread, false, pc_at(&held, 1))));
            }
        }
    }
    found
}

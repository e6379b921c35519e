//! What issued and what warps did over time, in so many bins at most: a bin is a cycle of a short run, and twice as long
//! whenever there would be too many.

use crate::machine::{Cause, Cycle, Slot, Wait};
use heddle_simt::Shape;
use std::ops::Range;

/// Bins at most.
pub const COLUMNS: usize = 1024;

/// What a warp does in a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// An instruction of it issues.
    Issued,
    /// One could, but another warp issues, or no issue begins.
    Ready,
    /// As the [`Cause`] of this name.
    Memory,
    /// As the [`Cause`] of this name.
    Scoreboard,
    /// As the [`Cause`] of this name.
    Divergence,
    /// Its threads wait at a barrier.
    Barrier,
    /// As the [`Cause`] of this name.
    NoInstruction,
    /// None of its threads is live.
    Idle,
}

/// How many states there are.
pub const STATES: usize = 8;

impl State {
    /// All states.
    pub const ALL: [State; STATES] = [
        State::Issued,
        State::Ready,
        State::Memory,
        State::Scoreboard,
        State::Divergence,
        State::Barrier,
        State::NoInstruction,
        State::Idle,
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        ["issued", "ready", "memory", "scoreboard", "divergence", "barrier", "no_instruction", "idle"][self as usize]
    }
}

/// Some cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Instructions that issued.
    pub issued: u32,
    /// Their active lanes.
    pub active: u32,
    /// Cycles without an issue, by [`Cause`].
    pub lost: [u32; Cause::ALL.len()],
    /// Cycles in which no thread was live.
    pub nothing_live: u32,
    /// Of each warp, cycles by [`State`].
    pub warps: Vec<[u32; STATES]>,
    /// Of each lane of each warp, in how many issues it was active.
    pub lanes: Vec<u32>,
}

impl Bin {
    fn add(&mut self, other: &Bin) {
        self.issued += other.issued;
        self.active += other.active;
        self.nothing_live += other.nothing_live;
        self.lost.iter_mut().zip(other.lost).for_each(|(sum, more)| *sum += more);
        let (states, others) = (self.warps.as_flattened_mut(), other.warps.as_flattened());
        states.iter_mut().zip(others).for_each(|(sum, more)| *sum += more);
        self.lanes.iter_mut().zip(&other.lanes).for_each(|(sum, more)| *sum += more);
    }
}

/// A run over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// Cycles that are looked at.
    range: Range<u64>,
    /// The first cycle that was seen in it.
    first: Option<u64>,
    /// Cycles of a bin.
    width: u64,
    bins: Vec<Bin>,
    warps: usize,
    lanes: usize,
    sides: usize,
}

impl Time {
    /// Of a core, in a range of cycles.
    pub fn new(shape: &Shape, range: Range<u64>) -> Time {
        Time {
            range,
            first: None,
            width: 1,
            bins: Vec::new(),
            warps: shape.warps as usize,
            lanes: shape.lanes as usize,
            sides: shape.sides() as usize,
        }
    }

    /// The first cycle of the first bin.
    pub fn first(&self) -> u64 {
        self.first.unwrap_or(0)
    }

    /// Cycles of a bin.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// The bins, each right behind the one before.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// A cycle in which nothing is live.
    pub fn nothing(&mut self, cycle: u64) {
        let warps = self.warps;
        if let Some(bin) = self.at(cycle) {
            bin.nothing_live += 1;
            (0..warps).for_each(|warp| bin.warps[warp][State::Idle as usize] += 1);
        }
    }

    /// A cycle, with the warp that issues and its active lanes.
    pub fn cycle(&mut self, cycle: &Cycle, issues: Option<(u32, &[bool])>) {
        let (sides, lanes) = (self.sides, self.lanes);
        let Some(bin) = self.at(cycle.cycle) else { return };
        match (issues, cycle.lost) {
            (Some((warp, active)), _) => {
                bin.issued += 1;
                let first = warp as usize * lanes;
                for (lane, _) in active.iter().enumerate().filter(|(_, active)| **active) {
                    bin.active += 1;
                    bin.lanes[first + lane] += 1;
                }
            }
            (None, Some(cause)) => bin.lost[cause as usize] += 1,
            (None, None) => bin.nothing_live += 1,
        }
        let issuing = issues.map(|(warp, _)| warp);
        for (warp, (states, slots)) in (0..).zip(bin.warps.iter_mut().zip(cycle.slots.chunks(sides))) {
            let state = if issuing == Some(warp) { State::Issued } else { state(warp, cycle, slots) };
            states[state as usize] += 1;
        }
    }

    /// The bin of a cycle, if that is in the range. Cycles come in their order.
    fn at(&mut self, cycle: u64) -> Option<&mut Bin> {
        if !self.range.contains(&cycle) {
            return None;
        }
        let first = *self.first.get_or_insert(cycle);
        while (cycle - first) / self.width >= COLUMNS as u64 {
            self.halve();
        }
        let number = ((cycle - first) / self.width) as usize;
        let (warps, lanes) = (self.warps, self.lanes);
        self.bins.resize_with(self.bins.len().max(number + 1), || Bin {
            issued: 0,
            active: 0,
            lost: [0; Cause::ALL.len()],
            nothing_live: 0,
            warps: vec![[0; STATES]; warps],
            lanes: vec![0; warps * lanes],
        });
        self.bins.get_mut(number)
    }

    fn halve(&mut self) {
        let old = std::mem::take(&mut self.bins);
        let mut bins = old.into_iter();
        while let Some(mut bin) = bins.next() {
            if let Some(next) = bins.next() {
                bin.add(&next);
            }
            self.bins.push(bin);
        }
        self.width *= 2;
    }
}

/// What a warp does that issues nothing, of its one or two heads.
fn state(warp: u32, cycle: &Cycle, slots: &[Slot]) -> State {
    let of_head = |slot: &Slot| match slot.wait {
        None => State::Ready,
        Some(Wait::Held) => State::Divergence,
        Some(Wait::Register) if !cycle.loads_under_way => State::Scoreboard,
        Some(Wait::Unit | Wait::Register) => State::Memory,
    };
    slots.iter().filter(|slot| slot.filled).map(of_head).min_by_key(|state| *state as usize).unwrap_or_else(|| {
        match () {
            () if !cycle.live.bit(warp) => State::Idle,
            () if cycle.waiting.bit(warp) => State::Barrier,
            () if cycle.in_unit.bit(warp) => State::Divergence,
            () => State::NoInstruction,
        }
    })
}

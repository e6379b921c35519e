//! The state of a divergence unit in a simulation, and the paths of a warp as they are read out of it: for tests, and
//! for people who ask why. Each mechanism reads its own state ([`Mechanism::paths`](super::Mechanism::paths)).

use crate::LaneMask;
use heddle_hdl::{Bits, Bundle, Width};
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
    /// Its threads.
    pub mask: LaneMask,
    /// Its threads wait at the barrier before `pc`.
    pub waits: bool,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Path { place, depth, pc, mask, waits } = self;
        let waits = if *waits { ", waiting" } else { "" };
        write!(f, "{place:<8}depth {depth}, pc {pc:#010x}, lanes {}{waits}", Bits::from(mask.as_bitslice()))
    }
}

/// A thread of a block that does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parked {
    /// Its number in the core: that of its static warp times the lanes, plus its lane.
    pub thread: u32,
    /// At a barrier; else it has not run since a branch.
    pub waits: bool,
    /// Byte address where it goes on.
    pub pc: u32,
}

/// Registers and memories of a unit in a simulation, by the names that its description gives them.
#[derive(Clone)]
pub struct State<'a> {
    register: &'a dyn Fn(&str) -> Bits,
    word: &'a dyn Fn(&str, u64) -> Bits,
    /// The path of the instance, with a dot behind it.
    at: String,
}

impl<'a> State<'a> {
    /// Of the instance with the path `unit`, in a simulation in which `register` reads a register and `word` a word of
    /// a memory by their paths.
    pub fn new(unit: &str, register: &'a dyn Fn(&str) -> Bits, word: &'a dyn Fn(&str, u64) -> Bits) -> State<'a> {
        State { register, word, at: format!("{unit}.") }
    }

    /// Of an instance in the unit.
    pub fn within(&self, instance: &str) -> State<'a> {
        State { at: format!("{}{instance}.", self.at), ..*self }
    }

    /// A register that was made with this shape.
    ///
    /// # Panics
    /// If the unit has no such register.
    pub fn register<B: Bundle<Width>>(&self, shape: B, name: &str) -> B::With<Bits> {
        shape.map(name, &mut |name, _| (self.register)(&format!("{}{name}", self.at)))
    }

    /// A word of a memory that was made with this shape.
    ///
    /// # Panics
    /// If the unit has no such memory.
    pub fn word<B: Bundle<Width>>(&self, shape: B, memory: &str, address: u64) -> B::With<Bits> {
        (self.word)(&format!("{}{memory}", self.at), address).unpack(shape)
    }
}

//! A mechanism for divergence: what the configuration, the core and the command ask of one.

use super::capabilities::Capabilities;
use super::inspect::{Parked, Path, State};
use super::interface::{UnitIn, UnitOut};
use crate::proof::Proof;
use crate::shape::{Shape, ShapeError};
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;
use std::fmt;
use std::ops::Range;

/// A mechanism for divergence. A [`Shape`] holds one as a [`Divergence`], and with it the way to its hardware: so a
/// mechanism may come from any crate.
pub trait Mechanism: Sync {
    /// Its name on the command line. Mechanisms of one name are the same.
    fn name(&self) -> &'static str;

    /// By which a host in hardware tells it, one of its own among the mechanisms of a command. Those of this crate
    /// count from 0.
    fn number(&self) -> u8 {
        u8::MAX
    }

    /// What it can do beyond the plain interface, and needs for it.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    /// Refuses what its hardware cannot have of a shape that is right else. Options that need a capability that it has
    /// not are refused already.
    ///
    /// # Errors
    /// The field, and what is allowed.
    fn check(&self, _s: &Shape) -> Result<(), ShapeError> {
        Ok(())
    }

    /// The divergence unit of a shape that has this mechanism and that [`Shape::check`] accepts.
    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>>;

    /// What is proven of its unit and of the parts that only it has. Names of proofs are like no other's.
    ///
    /// # Errors
    /// If a harness has mistakes.
    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        Ok(Vec::new())
    }

    /// The paths of a warp in a simulation, the one that runs first, and behind them its threads at convergence
    /// barriers: each live thread once. None where threads of several warps run together.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path>;

    /// Where threads of several warps run together: those of the block on these warp slots that do not run.
    fn parked(&self, _s: &Shape, _state: &State, _block: Range<u32>) -> Vec<Parked> {
        Vec::new()
    }

    /// Where threads of several warps run together: the thread on each lane of the warp that runs on this slot, by its
    /// number in the core, as [`Parked::thread`] is. Nothing where no warp runs.
    fn formed(&self, _s: &Shape, _state: &State, _slot: u32) -> Vec<Option<u32>> {
        Vec::new()
    }

    /// The number of live threads in a simulation.
    fn live_threads(&self, s: &Shape, state: &State) -> u32 {
        let paths = (0..s.warps).flat_map(|warp| self.paths(s, state, warp));
        paths.map(|path| path.mask.count_ones() as u32).sum()
    }
}

/// The mechanism of a configuration.
#[derive(Clone, Copy)]
pub struct Divergence(&'static dyn Mechanism);

impl Divergence {
    /// This mechanism.
    pub const fn new(mechanism: &'static dyn Mechanism) -> Divergence {
        Divergence(mechanism)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// See [`Mechanism::number`].
    pub fn number(self) -> u8 {
        self.0.number()
    }

    /// What it can do beyond the plain interface, and needs for it.
    pub fn capabilities(self) -> Capabilities {
        self.0.capabilities()
    }

    /// The mechanism itself.
    pub fn mechanism(self) -> &'static dyn Mechanism {
        self.0
    }
}

impl PartialEq for Divergence {
    fn eq(&self, other: &Divergence) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Divergence {}

impl fmt::Debug for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Divergence({})", self.name())
    }
}

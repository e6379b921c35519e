//! The paths of a warp as they stand in the core's divergence unit, in a simulation: for tests, and for people who ask
//! why.

use heddle_hdl::Bits;
use heddle_sim::Engine;
use heddle_simt::Shape;
use heddle_simt::divergence::inspect::State;
use std::ops::Range;

pub use heddle_simt::divergence::inspect::{Parked, Path};

/// The paths of a warp, the one that runs first, and behind them its threads at convergence barriers; none where
/// threads of several warps run together. The engine must show memories; `core` is the path of the core's instance,
/// empty if it is the top.
pub fn paths(engine: &dyn Engine, core: &str, shape: &Shape, warp: u32) -> Vec<Path> {
    read(engine, core, |state| shape.divergence.mechanism().paths(shape, state, warp))
}

/// The threads that do not run of the block on these slots, where threads of several warps run together.
pub fn parked(engine: &dyn Engine, core: &str, shape: &Shape, slots: Range<u32>) -> Vec<Parked> {
    read(engine, core, |state| shape.divergence.mechanism().parked(shape, state, slots.clone()))
}

/// A block where threads of several warps run together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Together {
    /// For each of its slots: the thread on each lane of the warp that runs there, as [`Parked::thread`] numbers them;
    /// nothing where no warp runs.
    pub slots: Vec<Vec<Option<u32>>>,
    /// Its threads that do not run.
    pub parked: Vec<Parked>,
}

/// The block on these slots, where threads of several warps run together.
pub fn together(engine: &dyn Engine, core: &str, shape: &Shape, slots: Range<u32>) -> Together {
    let formed = |slot| read(engine, core, |state| shape.divergence.mechanism().formed(shape, state, slot));
    Together { slots: slots.clone().map(formed).collect(), parked: parked(engine, core, shape, slots) }
}

/// What the unit's mechanism reads out of its state.
pub(crate) fn read<T>(engine: &dyn Engine, core: &str, by: impl FnOnce(&State) -> T) -> T {
    let unit = if core.is_empty() { "divergence".into() } else { format!("{core}.divergence") };
    let register = |path: &str| -> Bits {
        let register = engine.directory().registers.find(path);
        engine.register(register.unwrap_or_else(|| panic!("the mechanism reads a register {path}, which there is not")))
    };
    let word = |path: &str, address: u64| -> Bits {
        let memory = engine.directory().memories.find(path);
        let memory = memory.unwrap_or_else(|| panic!("the mechanism reads a memory {path}, which there is not"));
        engine.memory_read(memory, address)
    };
    by(&State::new(&unit, &register, &word))
}

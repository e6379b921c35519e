//! What checks the core, and what measures it. Programs and the machine that runs them are in [`heddle_testbench`],
//! which knows nothing of this crate.
//!
//! Checks:
//!
//! * [`commit`]: every instruction of every thread on the core against the instruction-set simulator.
//! * [`random`]: programs whose threads diverge and meet in every way.
//! * [`coverage`]: which covers of the description the programs hit.
//! * [`prove`]: formal proofs of blocks.
//!
//! Measurements, for studies and for boards:
//!
//! * [`compaction`]: what a core that forms warps anew gains by it.
//! * [`issues`]: how many lanes are active when a core issues.
//! * [`model`]: a core that forms or parts warps in other ways, as a cycle model.
//! * [`synth`]: the core on an FPGA: its cells and its clock.
//!
//! [`commit::monitor`], [`compaction::monitor`] and [`issues::monitor`] are [monitors](heddle_testbench::machine::Monitor) of a machine.
//! [`prove`] and [`synth`] run no programs: they give Verilog to Yosys and its like, and keep what comes of it.

#![warn(missing_docs)]

use heddle_testbench::machine::MachineOptions;

pub mod commit;
pub mod compaction;
pub mod coverage;
pub mod issues;
mod kept;
pub mod model;
mod process;
pub mod prove;
pub mod random;
pub mod synth;

/// Options of a machine whose every instruction is compared with the instruction-set simulator.
pub fn checked() -> MachineOptions {
    MachineOptions { monitors: vec![commit::monitor], ..MachineOptions::default() }
}

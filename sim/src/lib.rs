//! Simulation: interpreter, compiled engine and Verilator behind one interface, waveforms, lock-step and random tests.
//!
//! Start at [`Sim`] to test a block, at [`Simulation`] for any design by its paths, and at [`engine`] for the interface
//! that all engines have. From a design on: [`directory`] gives everything in it a path and a number, [`init`] the start
//! values; [`interpreter`] is the oracle, [`flat`] and [`compiled`] make machine code, [`verilator`] runs the generated
//! Verilog, [`lockstep`] makes two engines one, [`fuzz`] makes random designs. `docs/simulator.md` is the page about it.

mod checks;
pub mod compiled;
pub mod directory;
pub mod engine;
pub mod flat;
pub mod fuzz;
pub mod init;
pub mod interpreter;
pub mod lockstep;
mod mutant;
pub mod sim;
pub mod simulation;
pub mod verilator;
pub mod wave;

pub use engine::Engine;
pub use mutant::{MUTANT, SURVEY};
pub use sim::Sim;
pub use simulation::{EngineKind, Options, Simulation};

/// The code in the language guide, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/reference/language.md")]
struct LanguageGuide;

/// The code in the page on the simulator, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../docs/reference/simulator.md")]
struct SimulatorGuide;

/// The example in the README, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

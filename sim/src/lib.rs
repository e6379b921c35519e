//! Simulation: a plain interpreter and a compiled engine behind one interface, with waveforms and random tests.

pub mod compiled;
pub mod directory;
pub mod engine;
pub mod flat;
pub mod fuzz;
pub mod init;
pub mod interpreter;
pub mod lockstep;
pub mod sim;
pub mod simulation;
pub mod verilator;
pub mod wave;

pub use engine::Engine;
pub use sim::Sim;
pub use simulation::{EngineKind, Options, Simulation};

/// The code in the language guide, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/language.md")]
struct LanguageGuide;

/// The example in the README, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

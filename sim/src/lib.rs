//! Simulation: interpreter, compiled engine and Verilator behind one interface, waveforms, lock-step and random tests.
//!
//! ```
//! use heddle_hdl::prelude::*;
//! use heddle_sim::{Options, Sim, ToVerilog};
//!
//! #[derive(Bundle, Clone, Copy)]
//! struct In<T> {
//!     enable: T,
//! }
//! #[derive(Bundle, Clone, Copy)]
//! struct Out<T> {
//!     count: T,
//! }
//!
//! let counter = module("counter", In { enable: 1 }, |m, i| {
//!     let count = m.reg("count", 8).reset(0u32);
//!     count.next_if(i.enable, count.q + 1);
//!     m.assert("below_200", count.q.lt(200));
//!     Out { count: count.q }
//! });
//! let design = counter.check().unwrap();
//!
//! // Simulated, with a waveform for GTKWave or Surfer.
//! let wave = std::env::temp_dir().join(format!("counter-{}.fst", std::process::id()));
//! let mut t = Sim::with(&design, &Options { wave: Some(wave.clone()), ..Options::default() });
//! t.reset();
//! t.poke(In { enable: true.into() });
//! t.steps(3);
//! assert_eq!(t.peek().count, 3);
//! drop(t); // completes the waveform
//! assert!(std::fs::metadata(&wave).unwrap().len() > 0);
//! # std::fs::remove_file(&wave).unwrap();
//!
//! // As Verilog.
//! assert!(design.verilog().contains("module counter ("));
//! ```
//!
//! Start at [`Sim`] to test a block, at [`Simulation`] for any design by its paths, and at [`engine`] for the interface
//! that all engines have. From a design on: [`directory`] gives everything in it a path and a number, [`init`] the
//! start values; [`interpreter`] is the oracle, `flat` and [`compiled`] make machine code, [`verilator`] runs the
//! generated Verilog, [`lockstep`] makes two engines one, [`fuzz`] makes random designs. Each of the features `jit`,
//! `verilator`, `wave` and `fuzz` can be left out; without `jit` the interpreter is the default engine.
//! `docs/reference/simulator.md` is the page about it.

mod checks;
#[cfg(feature = "jit")]
pub mod compiled;
pub mod directory;
pub mod engine;
#[cfg(feature = "jit")]
mod flat;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod init;
pub mod interpreter;
pub mod lockstep;
mod mutant;
#[cfg(any(feature = "jit", feature = "wave"))]
mod origin;
pub mod record;
pub mod sim;
pub mod simulation;
#[cfg(feature = "verilator")]
pub mod verilator;
#[cfg(feature = "wave")]
pub mod wave;

pub use checks::Checks;
pub use engine::Engine;
pub use heddle_gen::ToVerilog;
pub use mutant::{MUTANT, SURVEY};
pub use record::{Channel, Recording, Records, Seen};
pub use sim::Sim;
pub use simulation::{EngineKind, Options, Simulation};

/// The code in the language guide, compiled and run as documentation tests.
#[cfg(all(doctest, feature = "jit", feature = "wave"))]
#[doc = include_str!("../../docs/reference/language.md")]
struct LanguageGuide;

/// The code in the guide to a block of one's own, likewise.
#[cfg(all(doctest, feature = "jit", feature = "wave"))]
#[doc = include_str!("../../docs/guide/simulate-your-own-block.md")]
struct OwnBlock;

/// The code in the page on the simulator, likewise.
#[cfg(all(doctest, feature = "jit", feature = "wave"))]
#[doc = include_str!("../../docs/reference/simulator.md")]
struct SimulatorGuide;

/// The example in the README, likewise.
#[cfg(all(doctest, feature = "jit", feature = "wave"))]
#[doc = include_str!("../../README.md")]
struct Readme;

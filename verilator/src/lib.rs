//! Tests Verilog from `cargo test`.
//!
//! Any Verilog or SystemVerilog that Verilator takes is compiled at run time, with whatever Verilator, make and g++ are
//! installed, and loaded as a library. Nothing is generated into the crate that tests it, and nothing needs a build
//! script.
//!
//! ```no_run
//! use heddle_verilated::Verilog;
//!
//! let mut adder = Verilog::new("adder")
//!     .source("adder.v", "module adder(input [3:0] a, b, output [4:0] sum); assign sum = a + b; endmodule")
//!     .model()
//!     .unwrap();
//! adder.set("a", 9);
//! adder.set("b", 8);
//! adder.eval();
//! assert_eq!(adder.get("sum"), 17);
//! ```
//!
//! [`Verilog`] says what is compiled and how; [`Model`] is one model of it, with ports by their names, a clock,
//! memories and a waveform; [`Library`] makes several models of one build. Builds are kept in the [`cache`] by a hash
//! of all that they are made from, so only the first run of a test waits for them.
//!
//! What cannot be built is a [`BuildError`] of one line. A name that is not there, or a value that does not fit, panics
//! at the line of the test, as an assertion does.
//!
//! What it does not do: ports in both directions and arrays as ports are refused; delays need `.argument("--timing")`
//! or `.argument("--no-timing")`; memories are seen only if [`Verilog::visible`] names them; headers must be given as
//! files, beside those that include them; and what the Verilog reads at run time, as with `$readmemh`, it looks for
//! where the test runs.

#![warn(missing_docs)]

mod build;
mod error;
mod library;
mod model;
mod ports;
mod shim;
mod tool;

pub use build::{Optimise, Verilog, cache};
pub use error::{BuildError, Stopped};
pub use library::Library;
pub use model::Model;
pub use ports::{Direction, Port};
pub use tool::Tool;

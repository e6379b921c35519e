//! Heddle's description language.
//!
//! A design is an ordinary Rust function of a run-time configuration that returns a module:
//!
//! ```
//! use heddle_hdl::prelude::*;
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
//! fn counter(width: Width) -> TypedModule<In<Width>, Out<Signal>> {
//!     module("counter", In { enable: 1 }, |m, In { enable }| {
//!         let count = m.reg("count", width).reset(0u32);
//!         count.next_if(enable, count.q + 1);
//!         Out { count: count.q }
//!     })
//! }
//!
//! assert!(counter(8).check().is_ok());
//!
//! // A mistake is one line of the errors, with the place in the description.
//! let wrong = module("wrong", [8, 4], |_, [a, b]| [a + b]);
//! let mistakes = wrong.check().err().unwrap().to_string();
//! assert!(mistakes.contains("`+`: in_0 is 8 bits") && mistakes.contains("in_1 is 4 bits"));
//! ```
//!
//! `heddle-sim` simulates a checked design; `heddle_gen::ToVerilog`, which `heddle-sim` has too, gives its Verilog.
//!
//! Start at [`module`] (definitions and instances), [`Signal`] (operators), [`Bundle`] (structs of signals), [`Code`]
//! (enums as numbers), [`Builder`] (registers, memories, properties), [`Foreign`] (modules that are not described
//! here). [`netlist`] is what comes out: plain data for the back ends; [`eval`] says what each of its operations means,
//! [`order`] in which order they can be computed, [`canonical`] whether two are the same machine; [`mutate`] puts
//! mistakes into it.
//! `docs/reference/language.md` is the guide.

#![warn(missing_docs)]

extern crate self as heddle_hdl;

pub mod bits;
mod builder;
pub mod bundle;
pub mod canonical;
mod check;
pub mod code;
mod diagnostic;
pub mod eval;
mod foreign;
mod memory;
mod module;
pub mod mutate;
pub mod names;
pub mod netlist;
pub mod order;
pub mod prelude;
mod register;
pub mod reset;
mod signal;

pub use bits::Bits;
pub use builder::Builder;
pub use bundle::{
    Bundle, Signals, Width, case, cat, count_width, elements, gather, index_width, pick, select, select_one_hot,
    unpack, width_of,
};
pub use check::Design;
pub use code::Code;
pub use diagnostic::{Diagnostic, Errors};
pub use foreign::Foreign;
pub use heddle_hdl_derive::{Bundle, Code};
pub use memory::Mem;
pub use module::{LaneInput, TypedModule, all, each, module};
pub use netlist::{Collision, MemoryStyle, Parameter};
pub use register::{Deferred, Reg};
pub use signal::{Operand, Signal};

//! Formal proofs of blocks: SymbiYosys (`sby`) with Yosys and the solver yices, on the generated Verilog.
//!
//! * [`list`]: what is proven, one entry per block and shape; a mechanism has its own in its folder.
//! * [`tools`]: where the provers are.
//! * [`verilog`]: the text that they read.
//! * [`run`]: one proof; those that held are kept for the next time.
//!
//! `docs/evidence/proofs.md` is the page on it.

pub mod list;
pub mod run;
pub mod tools;
pub mod verilog;

pub use heddle_simt::proof::{Method, Proof};
pub use list::proofs;
pub use run::{Counterexample, Proven, Stopped, Verdict, prove, prove_all};
pub use tools::{Missing, Tools};

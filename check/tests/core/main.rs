//! The core as a whole: small programs on [`heddle_simt::system`], cycle by cycle.
//!
//! `docs/reference/pipeline.md` names these tests where it states a figure.

mod bench;
mod blocks;
mod commit;
mod convergence;
mod faults;
mod machine;
mod memory;
mod memory_system;
mod orders;
mod paths;
mod random;
mod recorded;
mod reservations;
mod threads;
mod timing;
mod waiting;

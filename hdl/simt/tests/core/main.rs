//! The core as a whole: small programs on [`heddle_simt::system`], cycle by cycle.
//!
//! `docs/pipeline.md` names these tests where it states a figure.

mod asm;
mod bench;
mod faults;
mod memory;
mod paths;
mod threads;
mod timing;

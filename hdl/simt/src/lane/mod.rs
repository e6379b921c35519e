//! The arithmetic of one lane.

pub mod alu;
pub mod divider;
pub mod multiplier;

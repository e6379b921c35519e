//! The engines on random designs.

mod differential;
mod mutants;
mod recording;
mod reset;

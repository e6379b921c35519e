//! The `heddle` command as a user sees it.

mod bad_input;
mod common;
mod cosim;
mod cover;
mod debug;
mod diff;
mod hash;
mod host;
mod hostile;
mod mechanism;
mod mutate;
mod own;
mod predict;
mod profile;
mod prove;
mod reconverge;
mod run;
mod study;
mod sweep;
mod synth;
mod verilog;
mod viewers;

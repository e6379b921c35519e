//! Descriptions that are accepted, and what of those that are not is said where.

mod bundles;
mod codes;
mod common;
mod foreign;
mod loops;
mod modules;
mod names;
mod state;
mod widths;

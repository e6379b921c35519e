//! A host description: what a program is launched with and what should come of it, as a file in TOML instead of a driver
//! in Rust. `docs/reference/host-description.md` has every field.
//!
//! | file | what it has |
//! |---|---|
//! | `file.rs` | what is written, and where in the file |
//! | `elements.rs` | buffers as numbers: types, fills, files of numbers |
//! | `resolve.rs` | it against a program: symbols that are there, files that are read |
//! | `driver.rs` | what a kernel's driver does: fill, launch, compare; and what is to be seen afterwards |
//! | `reference.rs` | a function of the program, run by one thread of the instruction-set simulator |
//! | `picture.rs` | a buffer as a picture |
//!
//! All that can be wrong with the file, its files and the program's symbols is found before anything runs.

mod driver;
mod elements;
mod file;
mod picture;
mod reference;
mod resolve;
#[cfg(test)]
mod tests;

pub use driver::{Driver, DriverError, Results, Shown};
pub use file::{CoreOption, Description};
pub use resolve::GridSpec;

use thiserror::Error;

/// What is wrong with a description, in a line that names its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {what}")]
pub struct DescriptionError {
    /// The file, and the line where there is one.
    pub place: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

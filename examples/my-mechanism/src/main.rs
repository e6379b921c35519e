//! The heddle command with one mechanism more.

use std::process::ExitCode;

mod mine;

fn main() -> ExitCode {
    heddle::main_with(&[&mine::Mine])
}

//! The `heddle` command, with the project's own mechanisms.

use std::process::ExitCode;

fn main() -> ExitCode {
    heddle::main_with(&[])
}

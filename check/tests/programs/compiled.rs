//! Programs in C beside these tests.

use heddle_testbench::Program;
use heddle_testbench::compile::{compile_flags, link_flags};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread;

/// `NAME.c`, with these files of `testbench/programs`; `None`, said aloud, without a compiler.
pub fn compiled(name: &str, with: &[&str]) -> Option<Program> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = here.join("../testbench/programs");
    // Tests run side by side.
    let thread = thread::current().id();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{thread:?}.elf"));
    let compiled = Command::new("riscv64-unknown-elf-gcc")
        .args(compile_flags().chain(link_flags()).chain(["-std=c11", "-Wall", "-Wextra", "-Werror"]))
        .arg("-I")
        .arg(programs.join("include"))
        .arg("-T")
        .args([programs.join("heddle.ld"), programs.join("crt0.S")])
        .args(with.iter().map(|file| programs.join(file)))
        .arg(here.join("tests/programs").join(name).with_extension("c"))
        .arg("-o")
        .arg(&out)
        .output();
    let Ok(compiled) = compiled else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {name} in C, riscv64-unknown-elf-gcc not installed");
        return None;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(Program::parse(&fs::read(out).unwrap()).unwrap())
}

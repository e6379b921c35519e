//! A mechanism from another crate: `examples/my-mechanism`, which is outside of the workspace, built and used as
//! `docs/guide/add-a-mechanism.md` says. `check/tests/programs/examples.rs` has its hardware run programs.

use crate::common::*;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command with the mechanism `mine`, built beside what the workspace has built.
fn build() -> PathBuf {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let target = Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/.."));
    let folder = root.join("examples/my-mechanism");
    // The same versions of other crates, so that they need not be built again.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder).args(["build", "--quiet", "--target-dir"]).arg(target.canonicalize().unwrap());
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success(), "{cargo:?}");
    target.join(if cfg!(debug_assertions) { "debug" } else { "release" }).join("my-mechanism").canonicalize().unwrap()
}

/// With `HEDDLE_LONG=1`, since all of heddle is built for it.
#[test]
fn a_crate_outside_adds_a_mechanism() {
    if std::env::var_os("HEDDLE_LONG").is_none() {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: the crate of a mechanism from outside, which HEDDLE_LONG=1 asks for");
        return;
    }
    let (place, program) = (Place::new().running(build()), Place::new());
    let core = "--lanes 4 --warps 2";
    for kernel in ["if_else", "collatz", "nqueens"] {
        let out = place.good(&format!("run {kernel} --size small {core} --divergence mine --check iss"));
        for says in ["right: ", "instructions are those of the instruction-set simulator", "4 lanes × 2 warps, mine"] {
            assert!(out.contains(says), "{out}");
        }
    }
    let hash = |place: &Place, options: &str| place.good(&format!("hash {core} {options}"));
    let (mine, stack) = (hash(&place, "--divergence mine"), hash(&place, "--divergence stack"));
    assert!(mine.ends_with("--divergence mine\n"), "{mine}");
    assert_ne!(mine.split(' ').next(), stack.split(' ').next());
    assert_eq!(stack, hash(&program, "--divergence stack"));
    place.good(&format!("gen {core} --divergence mine --out build/"));
    assert!(place.path().join("build/mine.v").is_file(), "{:?}", fs::read_dir(place.path().join("build")));
    assert!(place.good("prove --list").contains("mine-2x1 mine-4x1 mine-2x2, bounded"));
    let all = "path-table, arbiter, stack, dual-path, block-stack, list, mine]";
    assert!(place.bad("run gcd --divergence yours").contains(all));
    assert!(place.good("run --help").contains(all));
    let error = place.bad(&format!("hash {core} --divergence mine --likely on"));
    assert_eq!(error, "likely = on: divergence = mine has no likely-convergence points");
    let error = program.bad("run gcd --divergence mine");
    assert!(error.contains("block-stack, list]"), "{error}");
}

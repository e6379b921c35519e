//! `heddle prove` as a user sees it; `check/tests/verilog/prove.rs` proves.

use crate::common::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

#[test]
fn examples_of_the_help_name_what_is_there() {
    examples(&Place::new(), "prove");
}

#[test]
fn a_page_is_of_all_proofs() {
    let place = Place::new();
    for some in ["ccs", "--quick"] {
        let error = place.bad(&format!("prove {some} --docs ."));
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

/// With provers of which sby never ends.
#[test]
fn an_interruption_leaves_no_prover_and_no_folder() {
    for ends in [interrupt as fn(&Child), terminate] {
        let place = Place::new();
        fs::create_dir(place.path().join("bin")).unwrap();
        fs::create_dir(place.path().join("cache")).unwrap();
        for name in ["sby", "yosys", "yosys-smtbmc", "yosys-witness", "yices-smt2"] {
            let path = place.path().join("bin").join(name);
            let sby = format!("echo $$ >{0}/new; mv {0}/new {0}/process; exec sleep 60", place.path().display());
            let does = if name == "sby" { sby.as_str() } else { "exit 0" };
            fs::write(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = place.command("prove ccs-1x1");
        command.env("PATH", format!("{}/bin:/usr/bin:/bin", place.path().display()));
        command.env("HEDDLE_CACHE", place.path().join("cache"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let process = place.path().join("process");
        interrupted(child, &process, "sby", ends);
        assert_eq!(fs::read_dir(place.path().join("cache")).unwrap().count(), 0);
    }
}

//! `heddle cosim` and `heddle bench` as a user sees them.

use crate::common::*;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Where the command is, or a note that a test is skipped.
fn verilator() -> Option<String> {
    let found = Command::new("sh").args(["-c", "command -v verilator"]).output().unwrap();
    let path = String::from_utf8(found.stdout).unwrap().trim().to_string();
    if path.is_empty() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: a test of `heddle cosim`, which needs verilator");
        return None;
    }
    Some(path)
}

/// What models are built without, so that they are built fast.
const SMALL: &str = "--barriers off --atomics off --scratchpad 0 --counters off";

#[test]
fn without_verilator_it_says_how_to_install_it() {
    let place = Place::new();
    let cosim = || place.command("cosim gcd --lanes 1 --warps 1");
    let error = place.bad_command(cosim().env("PATH", "").env_remove("HEDDLE_VERILATOR"));
    assert_eq!(error, "verilator is not installed; on Debian: apt-get install verilator g++ make");
    let chosen = |program: &str| place.bad_command(cosim().env("HEDDLE_VERILATOR", program));
    assert_eq!(chosen("nowhere/verilator"), "HEDDLE_VERILATOR names nowhere/verilator, which is not there");
    place.file("silent", b"#!/bin/sh\nexit 1\n");
    fs::set_permissions(place.path().join("silent"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(chosen("./silent"), "HEDDLE_VERILATOR names ./silent, which does not tell its version: it says nothing");
}

#[test]
fn bad_input_is_refused_before_anything_is_built() {
    let place = Place::new();
    let bad =
        |arguments: &str| place.bad_command(place.command(arguments).env("PATH", "").env_remove("HEDDLE_VERILATOR"));
    assert!(bad("cosim gccd").contains("did you mean `gcd`?"));
    assert!(bad("cosim gcd --warps 5").starts_with("warps = 5"));
    assert!(bad("cosim gcd --lanes 64 --warps 64 --stack 16K").starts_with("memory = "));
    place.file("p.elf", &ends());
    assert_eq!(bad("bench sim p.elf"), "p.elf is a file: bench is for built-in kernels");
    assert_eq!(bad("bench sim gccd"), "no kernel is called `gccd`; did you mean `gcd`?");
    assert_eq!(bad("bench check gccd"), "no kernel is called `gccd`; did you mean `gcd`?");
    assert!(bad("bench check gcd --rounds 0").contains("--rounds <N>"));
    assert!(bad("bench sim gcd --lanes 3").starts_with("lanes = 3"));
    assert!(bad("bench sim gcd --rounds 0").contains("--rounds <N>"));
    assert!(
        bad("bench sim --docs none")
            .ends_with("cannot write none/evidence/simulation-speed.md: there is no such folder")
    );
    assert!(bad("bench sim --docs p.elf").contains("cannot write p.elf/evidence/simulation-speed.md"));
    let missing = "verilator is not installed; on Debian: apt-get install verilator g++ make";
    assert_eq!(bad("bench sim gcd --docs ."), missing);
}

/// All of it before any tool is looked for.
#[test]
fn a_netlist_that_cannot_be_simulated_is_refused() {
    let (place, cache) = (Place::new(), Place::new());
    let bad = |arguments: &str| {
        let mut command = place.command(&format!("cosim collatz --lanes 2 --warps 1 {arguments}"));
        place.bad_command(command.env("PATH", "").env("HEDDLE_CACHE", cache.path()))
    };
    let gowin = "a netlist for Gowin cannot be simulated: there are no models of its cells";
    assert_eq!(bad("--netlist tangprimer-20k"), gowin);
    assert_eq!(bad("--netlist ulx3s-85f --bus 64"), "--bus: the memory on it is no part of a netlist");
    assert!(bad("--netlist ulx3s-85f --memory-model latency=9").starts_with("--memory-model is for simulations only"));
    assert!(bad("--netlist ulx3s").contains("ulx3s-85f, colorlight-i5, icebreaker"));
    assert!(bad("--netlist ulx3s-85f --waves x").contains("cannot be used with"));
    let missing = bad("--netlist ulx3s-85f");
    assert_eq!(missing, "python3 is not installed; on Debian: apt-get install python3 python3-venv");
}

#[test]
fn equal_machines_are_said_to_be_equal() {
    if verilator().is_none() {
        return;
    }
    let place = Place::with_shared_cache();
    let report: Value =
        serde_json::from_str(&place.good(&format!("cosim gcd --lanes 2 --warps 1 --json {SMALL}"))).unwrap();
    assert_eq!(report["ok"], true);
    assert!(report["compared"].as_u64().unwrap() > 1000);
    let text = place.good(&format!("cosim gcd --lanes 2 --warps 1 {SMALL}"));
    assert!(text.starts_with("gcd on 2 lanes × 1 warps: no difference in "), "{text}");
    assert!(place.names().is_empty());
}

#[test]
fn an_interruption_reports_what_was_compared() {
    if verilator().is_none() {
        return;
    }
    let place = Place::with_shared_cache();
    place.file("loop.elf", &endless());
    place.good(&format!("cosim gcd --lanes 2 --warps 1 {SMALL}")); // the model
    let mut command = place.command(&format!("cosim loop.elf --lanes 2 --warps 1 --json {SMALL}"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_secs(1));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: loop.elf: interrupted\n");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["ok"], &report["interrupted"]), (&false.into(), &true.into()));
    assert!(report["compared"].as_u64().unwrap() > 0);
    assert_eq!(place.names(), ["loop.elf"]);
}

/// A `verilator` that changes an operator of the Verilog first, and says so, as its models are kept beside those of
/// others.
#[test]
fn a_difference_is_reported_with_waveforms() {
    let Some(verilator) = verilator() else { return };
    let place = Place::with_shared_cache();
    let change = "0,/ + /s// - /";
    let version = format!("[ \"$1\" != --version ] || {{ echo 'Verilator after {change}'; exit; }}");
    let script =
        format!("#!/bin/sh\n{version}\n[ ! -f alu.sv ] || sed -i '{change}' alu.sv\nexec {verilator} \"$@\"\n");
    place.file("verilator", script.as_bytes());
    let wrapper = place.path().join("verilator");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    place.file("p.elf", &ends());
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
    let mut command = place.command(&format!("cosim p.elf --lanes 1 --warps 1 --multiply off {SMALL} --waves w"));
    command.env("PATH", path).env_remove("HEDDLE_VERILATOR");
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("differs in cycle") && error.contains("in Rust") && error.contains("in Verilog"), "{error}");
    assert!(error.trim_end().ends_with("w.rust.vcd, w.verilog.vcd"), "{error}");
    assert_eq!(place.names(), ["p.elf", "verilator", "w.rust.vcd", "w.verilog.vcd"]);
}

#[test]
fn bench_check_has_a_row_a_kernel() {
    let place = Place::new();
    let text = place.good(&format!("bench check if_else gcd --lanes 2 --warps 1 --rounds 1 --json {SMALL}"));
    let rows: Value = serde_json::from_str(&text).unwrap();
    let kernels: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["kernel"].as_str().unwrap()).collect();
    assert_eq!(kernels, ["if_else", "gcd"]);
    for row in rows.as_array().unwrap() {
        assert!(row["cycles"].as_u64().unwrap() > 0 && row["compared"].as_u64().unwrap() > 0, "{row}");
        let [checked, unchecked, ratio] = ["checked_cycles_per_second", "unchecked_cycles_per_second", "ratio"]
            .map(|name| row[name].as_f64().unwrap());
        assert!((ratio - checked / unchecked).abs() < 1e-9, "{row}");
        assert_eq!((&row["lanes"], &row["warps"]), (&2.into(), &1.into()));
    }
}

#[test]
fn bench_has_a_row_an_engine() {
    let place = Place::with_shared_cache();
    let mut command = place.command("bench sim reduce --lanes 1 --warps 1 --rounds 1 --json --counters off");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let engines: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["engine"].as_str().unwrap()).collect();
    let compiled = engines.iter().filter(|engine| engine.starts_with("compiled")).count();
    assert_eq!(
        engines[..=compiled],
        [
            "interpreter",
            "compiled-none",
            "compiled-gating",
            "compiled-lanes",
            "compiled-tables",
            "compiled-c",
            "compiled-tables-unchecked",
            "compiled-c-unchecked"
        ]
    );
    for row in rows.as_array().unwrap() {
        let is_compiled = row["engine"].as_str().unwrap().starts_with("compiled");
        for field in ["compile_seconds", "nodes", "code_bytes", "state_bytes"] {
            let is_of_c = row["engine"].as_str().unwrap().starts_with("compiled-c");
            assert!(row[field].is_number() || !is_compiled || is_of_c && field == "code_bytes", "{row}");
        }
        assert_eq!(row["cycles"].is_u64(), row["engine"] != "interpreter");
        assert!(row["cycles_per_second"].as_f64().unwrap() > 0.0);
        assert_eq!(row["ratio_to_verilator"].is_f64(), engines.len() > 1 + compiled);
        assert_eq!((&row["lanes"], &row["warps"], &row["kernel"]), (&1.into(), &1.into(), &"reduce".into()));
    }
}

#[test]
fn bench_has_a_row_a_waveform() {
    let place = Place::new();
    let rows: Value =
        serde_json::from_str(&place.good(&format!("bench wave gcd --lanes 2 --warps 1 --rounds 1 --json {SMALL}")))
            .unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.iter().map(|row| &row["wave"]).collect::<Vec<_>>(), [&Value::Null, &"fst".into(), &"vcd".into()]);
    for row in rows {
        assert_eq!((&row["lanes"], &row["warps"], &row["kernel"]), (&2.into(), &1.into(), &"gcd".into()));
        assert_eq!(row["cycles"], rows[0]["cycles"]);
        assert!(row["cycles_per_second"].as_f64().unwrap() > 0.0 && row["processor_seconds"].is_f64());
        assert_eq!(row["bytes"].is_u64(), row["wave"].is_string());
    }
}

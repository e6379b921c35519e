//! `heddle reconverge` as a user sees it.

use crate::common::*;
use serde_json::Value;
use std::fs;

#[test]
fn a_line_for_every_control_flow_instruction() {
    let text = Place::new().good("reconverge nqueens");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["pc", "instruction", "function", "RPC", "uniform", "likely", "interleavable"]);
    assert!(lines.contains(&vec!["0x50", "beq", "a0,a5,0xb0", "place", "0xb0", "-", "-", "-"]), "{text}");
    assert!(lines.contains(&vec!["0xd0", "ret", "place", "return", "yes", "-", "-"]), "{text}");
}

#[test]
fn json_has_the_table_that_the_hardware_reads() {
    let place = Place::new();
    let report: Value = serde_json::from_str(&place.good("reconverge nqueens --json")).unwrap();
    let branch = report["branches"].as_array().unwrap().iter().find(|branch| branch["pc"] == 0x50).unwrap();
    assert_eq!((&branch["kind"], &branch["rpc"]["at"]), (&"branch".into(), &0xb0.into()));
    let rows = report["side_table"].as_array().unwrap();
    let row = |pc: u32| rows.iter().find(|row| row["pc"] == pc).unwrap();
    assert_eq!((&row(0x50)["rpc"]["at"], &row(0xd0)["rpc"]), (&0xb0.into(), &"return".into()));
    assert_eq!((&row(0x50)["uniform"], &row(0xd0)["uniform"]), (&false.into(), &true.into()));
    let functions = report["functions"].as_array().unwrap();
    let names: Vec<&Value> = functions.iter().map(|function| &function["name"]).collect();
    assert_eq!(names, ["_start", "place", "main"]);
}

#[test]
fn an_elf_file_needs_no_symbols() {
    let place = Place::new();
    place.file("p.elf", &ends());
    assert_eq!(place.good("reconverge p.elf").lines().count(), 1);
    // A branch, a call, and a function at 0x14 that has no name.
    let code = [0x0000_0463, 0x00c0_00ef, li(A7, 93), ECALL, 0x0000_8067];
    place.file("p.elf", &elf(&code));
    let text = place.good("reconverge p.elf");
    let cells = |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(cells(2), ["0x8", "jal", "0x14", "0x4", "0xc", "yes", "-", "-"]);
    assert_eq!(cells(3), ["0x14", "ret", "0x14", "return", "yes", "-", "-"]);
}

#[test]
fn targets_that_are_not_known_are_named() {
    let text = Place::new().good("reconverge dispatch");
    assert!(text.ends_with("jalr a5: its targets are not known\n"), "{text}");
}

#[test]
fn graphs_are_written() {
    let place = Place::new();
    place.good("reconverge nqueens --svg n.svg --dot n.dot");
    let file = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    let (svg, dot) = (file("n.svg"), file("n.dot"));
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    for text in ["place", "beq a0,a5,0xb0", "RPC 0xb0"] {
        assert!(svg.contains(text) && dot.contains(text), "{text}");
    }
    assert!(dot.contains("\"2c_2c\" -> \"2c_b0\" [style=dashed"), "{dot}");
}

//! `heddle study` on small cores.

mod common;
use common::*;
use serde_json::Value;

#[test]
fn rows_are_those_asked_for_and_the_chart_is_written() {
    let place = Place::new();
    let json = place.good("study simtight vecadd histogram --lanes 4 --warps 2 --json --svg ipc.svg");
    let report: Value = serde_json::from_str(&json).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["kernel"].as_str().unwrap()).collect();
    assert_eq!(names, ["vecadd", "histogram"]);
    for row in rows {
        let number = |field: &str| row[field].as_f64().unwrap();
        assert!(number("thread_ipc") > 0.0 && number("thread_ipc") <= number("bound") + 1e-9 && number("bound") <= 4.0);
        assert!((number("share_of_bound") - number("thread_ipc") / number("bound")).abs() < 1e-9);
    }
    let picture = std::fs::read_to_string(place.path().join("ipc.svg")).unwrap();
    assert!(picture.contains("4 lanes × 2 warps"));
}

#[test]
fn what_cannot_be_studied_is_one_line() {
    let place = Place::new();
    let bad = |options: &str| place.bad(&format!("study simtight {options}"));
    assert_eq!(bad("vecad"), "no kernel is called `vecad`; did you mean `vecadd`?");
    assert!(bad("mandelbrot").starts_with("mandelbrot is no kernel of SIMTight's; those are vecadd, histogram, "));
    assert_eq!(bad("--lanes 3"), "lanes = 3: must be a power of two from 1 to 64");
    assert_eq!(bad("vecadd --svg none/x.svg"), "cannot write none/x.svg: there is no such folder");
    assert!(bad("--docs none").ends_with("none/study-simtight.md: there is no such folder"));
    assert!(bad("vecadd --docs .").contains("--docs"));
    let off = "histogram --lanes 2 --warps 1 --atomics off";
    assert_eq!(bad(off), "histogram: the kernel needs atomic memory operations, which the core does not have");
}

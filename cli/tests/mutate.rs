//! `heddle mutate` as a user sees it, and the checks of the core checked on a small sample of mutants.

mod common;
use common::*;
use serde_json::Value;
use std::io::Write;

/// The checks catch nearly all mistakes. `heddle mutate` without arguments looks at more; `docs/mutation.md` has the figures.
#[test]
fn most_mutants_that_change_behaviour_are_caught() {
    let report = Place::new().good("mutate --sample 30 --seed 1 --lanes 4 --warps 2 --json");
    let report: Value = serde_json::from_str(&report).unwrap();
    let number = |field: &str| report[field].as_u64().unwrap();
    let outcomes = report["outcomes"].as_array().unwrap();
    let survivors: Vec<&Value> = outcomes.iter().filter(|o| o["changes"] == true && o["caught"] == false).collect();
    let _ = writeln!(std::io::stderr(), "{} of {} mutants caught; {survivors:#?}", number("caught"), number("change"));
    assert!(number("examined") >= 25 && number("change") >= 20, "{report:#}");
    assert!(number("caught") * 100 >= number("change") * 95, "{survivors:#?}");
    // Every layer has its share.
    for layer in ["assertions", "block_tests", "run", "lockstep"] {
        assert!(number(layer) * 4 >= number("change"), "{layer}: {report:#}");
    }
}

#[test]
fn mutants_are_listed_by_module() {
    let list = Place::new().good("mutate --list --module ccs --lanes 4 --warps 2");
    assert!(list.lines().count() > 50, "{list}");
    assert!(list.lines().all(|line| line.starts_with("ccs:")), "{list}");
    assert!(list.contains(":and:or  "), "{list}");
}

#[test]
fn what_is_not_there_is_refused() {
    let place = Place::new();
    let error = place.bad("mutate --module none");
    assert!(error.starts_with("there are no mutants of `none`; modules are "), "{error}");
    let error = place.bad("mutate --mutant ccs:none:nothing");
    assert_eq!(error, "there is no mutant `ccs:none:nothing`; `heddle mutate --list` has all");
    let error = place.bad("mutate --docs none/there --sample 1");
    assert!(error.ends_with("there is no such folder"), "{error}");
}

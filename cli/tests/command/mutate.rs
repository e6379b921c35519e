//! `heddle mutate` as a user sees it, and the checks of the core checked on a small sample of mutants.

use crate::common::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// The checks catch nearly all mistakes: of a sample so small, at most one may survive without a known reason, since
/// any change of the core gives another sample. That 95 % are caught is measured on the larger one of
/// `docs/evidence/mutation.md`. And each layer catches what it is there for; those mutants are named by module and
/// signal, since their lines change.
///
/// One command puts all of them in: it begins with the tests of the unchanged blocks, which take longer than all
/// mutants.
#[test]
fn most_mutants_that_change_behaviour_are_caught_and_some_by_each_layer() {
    let place = Place::new();
    let shape = "--lanes 4 --warps 2 --seed 1";
    let list = |which: &str| -> Vec<(String, String)> {
        let list = place.good(&format!("mutate --list {which} {shape}"));
        let entries = list.lines().map(|line| line.split_once("  ").unwrap());
        entries.map(|(name, signal)| (name.to_string(), signal.to_string())).collect()
    };
    let sample: Vec<String> = list("--sample 5").into_iter().map(|(name, _)| name).collect();
    let of_signal = |module: &str, signal: &str| {
        let mut mutants = list(&format!("--module {module}")).into_iter();
        mutants.find(|(name, of)| name.ends_with(":and:or") && of == signal).unwrap().0
    };
    let (ccs, alu) = (of_signal("ccs", "x_depth"), of_signal("alu", "b_negative"));
    let all = sample.iter().chain([&ccs, &alu]).map(|name| format!(" --mutant {name}")).collect::<String>();
    let report: Value = serde_json::from_str(&place.good(&format!("mutate{all} {shape} --json"))).unwrap();
    let outcome = |name: &String| report["outcomes"].as_array().unwrap().iter().find(|o| o["name"] == **name);

    // Those that make a loop are left out.
    let sampled: Vec<&Value> = sample.iter().filter_map(outcome).collect();
    let changing: Vec<&Value> = sampled.iter().copied().filter(|o| o["changes"] == true).collect();
    let survives = |o: &&&Value| o["caught"] == false && o["reason"].is_null();
    let survivors: Vec<&&Value> = changing.iter().filter(survives).collect();
    let caught = changing.iter().filter(|o| o["caught"] == true).count();
    let _ = writeln!(std::io::stderr(), "{caught} of {} mutants caught; {survivors:#?}", changing.len());
    assert!(sampled.len() >= 4 && changing.len() >= 3, "{report:#}");
    assert!(survivors.len() <= 1, "{survivors:#?}");

    // Paths that meet where they do not are what the unit's assertions are about.
    for (name, layers) in [(ccs, ["assertions", "block_tests", "lockstep"]), (alu, ["block_tests", "run", "lockstep"])]
    {
        let outcome = outcome(&name).unwrap();
        layers.iter().for_each(|layer| assert!(outcome[layer].is_string(), "{layer}: {outcome:#}"));
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
fn a_list_is_of_all_or_of_a_sample() {
    let place = Place::new();
    let count = |arguments: &str| place.good(&format!("mutate --list --lanes 2 --warps 1 {arguments}")).lines().count();
    assert_eq!((count("--sample 400"), count("--sample 3")), (400, 3));
    assert!(count("") > 1000);
    assert_eq!(count(""), count("--all"));
}

#[test]
fn examples_of_the_help_name_what_is_there() {
    examples(&Place::new(), "mutate");
}

/// Ctrl-C at a terminal, which the block tests get too: while they are looked for, and while they run on a mutant.
#[test]
fn an_interruption_leaves_no_page() {
    let list = Place::new().good("mutate --list --lanes 4 --warps 2");
    let modules: BTreeSet<&str> = list.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    let has: String = modules.iter().map(|module| format!("echo 'HEDDLE_MUTANT: t has {module}' >&2; ")).collect();
    let survey = format!("{has}exit 0");
    for (surveyed, reported) in [("true", false), (survey.as_str(), true)] {
        let place = Place::new();
        let tests = format!("#!/bin/sh\n[ \"$HEDDLE_MUTANT\" != '?' ] || {{ {surveyed}; }}\n>begun\nexec sleep 60\n");
        place.file("tests", tests.as_bytes());
        fs::set_permissions(place.path().join("tests"), fs::Permissions::from_mode(0o755)).unwrap();
        let arguments = "mutate --tests ./tests --lanes 4 --warps 2 --docs .";
        let mut command = place.command(arguments);
        let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !place.path().join("begun").exists() {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
            sleep(Duration::from_millis(10));
        }
        interrupt_group(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: interrupted\n");
        assert_eq!(!output.stdout.is_empty(), reported, "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(place.names(), ["begun", "tests"]);
    }
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

//! `heddle study` on small cores.

use crate::common::*;
use serde_json::Value;

/// The options of a memory that answers soon, so that there are fewer cycles; with `HEDDLE_LONG=1` none: memory is the
/// study's own.
fn quick_memory(model: &str) -> String {
    if std::env::var_os("HEDDLE_LONG").is_some() { String::new() } else { format!("--memory-model {model}") }
}

#[test]
fn rows_are_those_asked_for_and_the_chart_is_written() {
    let place = Place::new();
    let json = place.good("study simtight vecadd histogram --lanes 4 --warps 2 --json --svg ipc.svg");
    let report: Value = serde_json::from_str(&json).unwrap();
    check_rows(&report, "simtight", None, true);
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
fn runs_that_are_kept_are_not_run_again() {
    let place = Place::new();
    let study = |draws: u32| {
        let line = format!("study mechanisms if_else --lanes 2 --warps 1 --draws {draws} --json --results runs");
        let text = place.good(&line);
        let report: Value = serde_json::from_str(&text).unwrap();
        check_rows(&report, "mechanisms", Some(draws.into()), true);
        (report["rows"].as_array().unwrap().clone(), report["processor_seconds"].as_f64().unwrap())
    };
    let files = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(place.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).collect()
    };
    let (rows, took) = study(1);
    assert_eq!(files().len(), rows.len());
    let again = study(1);
    assert_eq!(again.0, rows);
    assert!(again.1 < took, "{} s, and {took} s before", again.1);
    // What is kept is believed; what is not is run.
    for path in files() {
        let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        record["result"]["thread_ipc"] = 99.5.into();
        std::fs::write(&path, record.to_string()).unwrap();
    }
    let (rows, _) = study(2);
    assert_eq!(files().len(), 2 * rows.len());
    for row in rows {
        let draws: Vec<f64> = row["ipc_of_draws"].as_array().unwrap().iter().map(|ipc| ipc.as_f64().unwrap()).collect();
        assert!(draws[0] == 99.5 && draws[1] < 2.0, "{row}");
    }
}

/// Each study's rows have the same keys; a kernel that stops or never ends there has no results. `draws` are those of the
/// study if it draws, `compared` is whether it compares with a baseline.
#[track_caller]
fn check_rows(report: &Value, study: &str, draws: Option<u64>, compared: bool) {
    assert_eq!(report["study"], study);
    let rows = report["rows"].as_array().unwrap();
    let ran: Vec<&Value> = rows.iter().filter(|row| row.get("thread_ipc").is_some()).collect();
    assert!(ran.len() > 5 || ran.len() == rows.len(), "{study}");
    for row in rows {
        assert_eq!(row["study"], study);
        assert_ne!(row.get("thread_ipc").is_some(), row.get("failed").is_some(), "{study}: {row}");
        for key in ["kernel", "variant", "divergence"] {
            assert!(row[key].is_string(), "{study}: {key} of {row}");
        }
        assert!(row.get("set").is_some(), "{study}: {row}");
    }
    for row in ran {
        assert!(row["thread_ipc"].as_f64().unwrap() > 0.0, "{study}: {row}");
        assert_eq!(row.get("draws").map(|draws| draws.as_u64().unwrap()), draws, "{study}: {row}");
        assert_eq!(row.get("gain").is_some(), compared, "{study}: {row}");
        for (key, there) in [("range", draws.is_some()), ("gain_range", draws.is_some() && compared)] {
            assert_eq!(row.get(key).is_some_and(|range| range.as_array().unwrap().len() == 2), there, "{row}");
        }
    }
}

/// Of those studies that other tests here do not run.
#[test]
fn rows_of_all_studies_share_keys() {
    let place = Place::new();
    let small = "--lanes 4 --warps 2 --draws 1";
    for (line, study, compared) in [
        (format!("order if_else {small}"), "order", true),
        (format!("blocks gcd {small}"), "blocks", true),
        (format!("locks {small} --patience 256"), "locks", false),
        ("warp --draws 1".into(), "warp-primitives", true),
    ] {
        let report: Value = serde_json::from_str(&place.good(&format!("study {line} --json"))).unwrap();
        let rows = report["rows"].as_array().unwrap();
        assert!(study == "locks" || rows.iter().all(|row| row.get("thread_ipc").is_some()), "{line}");
        check_rows(&report, study, Some(1), compared);
    }
}

#[test]
fn what_cannot_be_studied_is_one_line() {
    let place = Place::new();
    let bad = |options: &str| place.bad(&format!("study simtight {options}"));
    assert_eq!(bad("vecad"), "no kernel is called `vecad`; did you mean `vecadd`?");
    assert!(bad("mandelbrot").starts_with("mandelbrot is no kernel of this study; those are vecadd, histogram, "));
    assert_eq!(bad("--lanes 3"), "lanes = 3: must be a power of two from 1 to 64");
    assert_eq!(bad("vecadd --svg none/x.svg"), "cannot write none/x.svg: there is no such folder");
    assert!(bad("--docs none").ends_with("none/studies/simtight.md: there is no such folder"));
    assert!(bad("vecadd --docs .").contains("--docs"));
    for study in
        ["blocks", "compaction", "dual-path", "locks", "mechanisms", "order", "simtight", "speculative", "warp"]
    {
        let error = place.bad(&format!("study {study} --warps 4 --docs ."));
        let wanted = "--docs writes the page of the usual core: leave --warps=4 away, or --docs";
        assert_eq!(error, wanted, "{study}");
    }
    let off = "histogram --lanes 2 --warps 1 --atomics off";
    assert_eq!(bad(off), "histogram: the kernel needs atomic memory operations, which the core does not have");
}

#[test]
fn dual_path_is_compared_with_the_others_on_one_core() {
    let place = Place::new();
    let json = place.good("study dual-path lu bfs --lanes 8 --warps 2 --draws 1 --json --svg ipc.svg");
    let report: Value = serde_json::from_str(&json).unwrap();
    check_rows(&report, "dual-path", Some(1), true);
    let rows = report["rows"].as_array().unwrap();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_string();
    let units: Vec<String> = rows.iter().map(|row| text(row, "variant")).collect();
    assert_eq!(units[..6], ["stack", "side-first", "constrained-miss", "full", "arbiter", "path-table"]);
    assert_eq!(units[6..10], ["constrained", "exact", "two-unresolved", "exact, two-unresolved"]);
    assert_eq!(units[10..15], ["steady-stack", "model-stack", "dws-10", "dws-50", "dws-100"]);
    assert_eq!(units[..15], units[15..]);
    let row = |kernel: &str, unit: &str| {
        rows.iter().find(|row| text(row, "kernel") == kernel && text(row, "variant") == unit).unwrap()
    };
    let number = |row: &Value, field: &str| row[field].as_f64().unwrap();
    for kernel in ["lu", "bfs"] {
        let [stack, dual] = ["stack", "side-first"].map(|unit| row(kernel, unit));
        // The same instructions for the same threads.
        for field in ["simt_efficiency", "thread_instructions"] {
            assert_eq!(number(stack, field), number(dual, field), "{kernel}");
        }
        assert_eq!(number(stack, "avg_path"), 1.0);
        // The model's stack is the core's, and what is subdivided runs the same threads.
        let [model, subdivided] = ["model-stack", "dws-10"].map(|unit| row(kernel, unit));
        let steady = number(row(kernel, "steady-stack"), "cycles");
        assert!((number(model, "cycles") / steady - 1.0).abs() < 0.02, "{kernel}");
        for field in ["thread_instructions", "simt_efficiency"] {
            assert_eq!(number(model, field), number(stack, field), "{kernel}");
        }
        assert_eq!(number(subdivided, "thread_instructions"), number(stack, "thread_instructions"), "{kernel}");
        assert!(number(subdivided, "avg_path") > 1.0, "{kernel}");
    }
    assert!(number(row("lu", "side-first"), "avg_path") > 1.1);
    assert!(number(row("lu", "side-first"), "thread_ipc") > number(row("lu", "stack"), "thread_ipc"));
    assert_eq!(number(row("bfs", "side-first"), "avg_path"), 1.0);
    assert!(std::fs::read_to_string(place.path().join("ipc.svg")).unwrap().contains("8 lanes × 2 warps"));
    // The core has what there is no model of.
    let text = place.good("study dual-path bfs --lanes 4 --warps 1 --draws 1 --bus 32 --thresholds 0,7");
    let why = "the cycle model has no bus";
    assert!(text.ends_with(&format!("\nbfs on dws-0: {why}\n\nbfs on dws-7: {why}\n")), "{text}");
    assert!(!text.contains("Figure 10"), "{text}");
    let bad = |options: &str| place.bad(&format!("study dual-path {options}"));
    assert_eq!(bad("lu --thresholds 3,7,3"), "thresholds: 3 is there twice");
    assert!(bad("--thresholds 3 --docs .").contains("--docs"));
    assert!(bad("gcd").starts_with("gcd is no kernel of this study; those are lu, quicksort, "));
    assert_eq!(bad("lu --lanes 4 --levels 4"), "levels = 4: must be from 1 to 3");
}

#[test]
fn compaction_is_compared_with_a_stack_a_warp_in_the_settings_of_two_papers() {
    let place = Place::new();
    let memory = quick_memory("latency=20,jitter=3");
    let json = place.good(&format!(
        "study compaction face_detection two_point monte_carlo --lanes 4 --warps 4 --draws 1 {memory} --json --svg ipc.svg"
    ));
    let report: Value = serde_json::from_str(&json).unwrap();
    check_rows(&report, "compaction", Some(1), true);
    let rows = report["rows"].as_array().unwrap();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_string();
    let variants = |config: &str, kernel: &str| -> Vec<String> {
        let is_of = |row: &&Value| text(row, "config") == config && text(row, "kernel") == kernel;
        rows.iter().filter(is_of).map(|row| text(row, "variant")).collect()
    };
    for kernel in ["face_detection", "monte_carlo"] {
        let tbc = variants("tbc-paper", kernel);
        assert_eq!(tbc[..5], ["never", "never, block-age", "never, block-age, likely", "wait", "tbc"]);
        assert_eq!(tbc[5..], ["path-table", "never, steady", "model-never", "dwf", "dwf-wb"]);
    }
    for kernel in ["two_point", "monte_carlo"] {
        let capri = variants("capri-paper", kernel);
        assert_eq!(capri[..4], ["never", "tbc", "tbc+", "capri-latest-32"]);
        assert_eq!(capri[11..], ["capri-slack-2", "capri-slack-3", "capri-slack-4", "path-table"]);
    }
    let small = ["never", "tbc", "tbc, round robin", "model-never", "dwf", "dwf-wb"];
    assert_eq!(variants("small-second-level", "monte_carlo"), small);
    let row = |config: &str, kernel: &str, variant: &str| {
        let names = [config, kernel, variant].map(String::from);
        rows.iter().find(|row| ["config", "kernel", "variant"].map(|field| text(row, field)) == names).unwrap()
    };
    let number = |row: &Value, field: &str| row[field].as_f64().unwrap();
    for (config, divergent) in [("tbc-paper", "face_detection"), ("capri-paper", "two_point")] {
        let [never, tbc] = ["never", "tbc"].map(|variant| row(config, divergent, variant));
        assert!(number(tbc, "simt_efficiency") > number(never, "simt_efficiency"));
        let over_never = number(tbc, "thread_ipc") / number(never, "thread_ipc");
        assert!((number(tbc, "gain") - over_never).abs() < 1e-9);
        assert_eq!(text(never, "measured_set") == "divergent", number(never, "simt_efficiency") < 0.76);
        let coherent = row(config, "monte_carlo", "tbc");
        assert_eq!((text(coherent, "set").as_str(), number(coherent, "simt_efficiency")), ("coherent", 1.0));
    }
    for row in rows.iter().filter(|row| ["tbc-paper", "second-level"].contains(&row["config"].as_str().unwrap())) {
        let issues: u64 = row["issues"].as_array().into_iter().flatten().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(issues > 0, row["config"] == "tbc-paper" || row["model"] == true, "{row}");
        assert!(number(row, "resident_warps") <= 4.0 && number(row, "waves") >= 1.0, "{row}");
    }
    for (config, bytes) in [("second-level", 131072), ("small-second-level", 16384)] {
        let core = text(row(config, "face_detection", "never"), "core");
        assert!(core.contains("--cache 16384,") && core.contains(&format!("--second-level {bytes},")), "{core}");
    }
    assert!(!text(&rows[0], "core").contains("--second-level"));
    assert!(std::fs::read_to_string(place.path().join("ipc.svg")).unwrap().contains("4 lanes × 4 warps"));
    let few =
        place.good("study compaction suffix_array --config tbc-paper --lanes 4 --warps 4 --draws 1 --levels 1 --json");
    let report: Value = serde_json::from_str(&few).unwrap();
    let tbc = report["rows"].as_array().unwrap().iter().find(|row| row["variant"] == "tbc").unwrap();
    assert!(tbc["thread_ipc"].is_null() && text(tbc, "failed").contains("of block"), "{tbc}");
    let bad = |options: &str| place.bad(&format!("study compaction {options}"));
    assert!(bad("gcd").starts_with("gcd is no kernel of this study; those are bfs, face_detection, "));
    assert!(bad("two_point --config tbc-paper").starts_with("two_point is no kernel of this study; those are bfs, "));
    assert_eq!(bad("bfs --lanes 4 --warps 2 --block-threads 9"), "blocks of 9 threads: the core has 8");
    assert_eq!(bad("bfs --lanes 4 --warps 2 --levels 8"), "levels = 8: must be from 1 to 7");
}

#[test]
fn predicted_programs_are_compared_with_their_baselines_draw_by_draw() {
    let place = Place::new();
    let memory = quick_memory("latency=20,jitter=7");
    // Which of two kernels it is makes no difference here; the first takes fewer cycles.
    let kernel = if memory.is_empty() { "xsbench" } else { "mcgpu" };
    let rows_of = |kernel: &str, draws: u32| -> Vec<Value> {
        let study = format!("study speculative {kernel} --lanes 4 --warps 1 --draws {draws} {memory} --json");
        let report: Value = serde_json::from_str(&place.good(&study)).unwrap();
        check_rows(&report, "speculative", Some(draws.into()), true);
        report["rows"].as_array().unwrap().clone()
    };
    let rows = [rows_of("common_call", 2), rows_of(kernel, 1)].concat();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_string();
    let variants = |kernel: &str, baseline: &str| -> Vec<String> {
        let is_of = |row: &&Value| text(row, "kernel") == kernel && text(row, "baseline") == baseline;
        rows.iter().filter(is_of).map(|row| text(row, "variant")).collect()
    };
    let of_volta = ["baseline", "predict", "predict-static", "predict-rejoin"];
    assert_eq!(variants("common_call", "volta"), of_volta);
    assert_eq!(variants(kernel, "path-table"), ["baseline", "predict", "soft-1", "soft-4", "auto", "auto-profile"]);
    for unit in ["path-table-near", "stack", "block-stack", "dual-path", "arbiter"] {
        assert_eq!(variants(kernel, unit), ["baseline", "predict"]);
    }
    for row in &rows {
        let range = [0, 1].map(|at| row["gain_range"][at].as_f64().unwrap());
        let (mean, is_baseline) = (row["gain"].as_f64().unwrap(), text(row, "variant") == "baseline");
        assert!(range[0] <= mean && mean <= range[1], "{row}");
        assert_eq!(row["changed"] == false, range == [1.0, 1.0], "{row}");
        assert!(!is_baseline || row["changed"] == false, "{row}");
        assert!(!is_baseline || mean == 1.0, "{row}");
        let predicts = ["volta", "path-table", "path-table-near"].contains(&text(row, "baseline").as_str());
        assert_eq!(predicts, !row["convergence"].is_null(), "{row}");
    }
    let row = |variant: &str, baseline: &str| {
        rows.iter().find(|row| row["variant"] == variant && row["baseline"] == baseline).unwrap()
    };
    for baseline in ["volta", "path-table"] {
        assert!(row("predict", baseline)["gain_range"][0].as_f64().unwrap() > 1.2);
        assert!(row("predict", baseline)["efficiency_gain"].as_f64().unwrap() > 1.2);
    }
    assert!(row("predict", "stack")["gain"].as_f64().unwrap() <= 1.0);
    let bad = |options: &str| place.bad(&format!("study speculative {options}"));
    assert!(bad("gcd").starts_with("gcd is no kernel of this study; those are rsbench, xsbench, "));
    assert!(bad("--draws 0").contains("--draws"));
    assert!(bad("common_call --convergence-barriers 17").starts_with("convergence_barriers = 17: "));
    assert!(bad("common_call --lanes 4 --convergence-barriers 0").contains("barriers"));
    assert!(bad("common_call --docs .").contains("--docs"));
}

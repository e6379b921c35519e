//! `heddle sweep`: runs by a file, kept, resumed, shared and told.

use crate::common::*;
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Eight runs on two cores.
const SMALL: &str = "command = \"run\"\ndraws = 2\n[options]\nkernel = [\"gcd\", \"vecadd\"]\nlanes = [2, 4]\nwarps = 1\nsize = \"small\"\n\
                     [table]\ncolumns = [\"cycles\", \"thread_ipc\"]\nbaseline = { lanes = 2 }\n";

fn with(text: &str) -> Place {
    let place = Place::new();
    place.file("s.toml", text.as_bytes());
    place
}

fn results(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

fn wait_for(what: impl Fn() -> bool) {
    while !what() {
        sleep(Duration::from_millis(5));
    }
}

/// `N run now` of the last line.
fn computed(text: &str) -> usize {
    let before = text.split(" run now").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn every_combination_runs_once_and_is_what_the_command_makes_of_it() {
    let place = with(SMALL);
    let listed = place.good("sweep s.toml --dry-run");
    assert!(listed.ends_with("4 combinations × 2 draws on 2 cores: 8 runs, 0 known, 8 to run\n"), "{listed}");
    assert_eq!(place.names(), ["s.toml"]);
    let text = place.good("sweep s.toml");
    assert!(text.ends_with("\n8 runs: 0 known, 8 run now; results in s.results\n"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(words[..3], ["kernel", "lanes", "cycles"]);
    assert!(
        lines[1].starts_with("gcd     2") && lines[4].starts_with("vecadd  4") && lines[4].contains(" %"),
        "{text}"
    );
    let again = place.good("sweep s.toml");
    assert_eq!(again, text.replace("0 known, 8 run now", "8 known, 0 run now"));
    let more = place.good("sweep s.toml --json");
    let report: Value = serde_json::from_str(&more).unwrap();
    assert_eq!((&report["runs"], &report["computed"], &report["failed"]), (&8.into(), &0.into(), &0.into()));
    for row in report["rows"].as_array().unwrap() {
        let line = row["command"].as_str().unwrap().strip_prefix("heddle ").unwrap();
        let alone: Value = serde_json::from_str(&place.good(&format!("{line} --json"))).unwrap();
        let kept = &row["result"];
        for (key, value) in alone.as_object().unwrap().iter().filter(|(key, _)| *key != "seconds") {
            assert_eq!(value, &kept[key], "{line}: {key}");
        }
    }
    // What is new, and no more.
    place.file("s.toml", SMALL.replace("draws = 2", "draws = 3").replace("[2, 4]", "[2, 4, 8]").as_bytes());
    let text = place.good("sweep s.toml");
    assert!(text.ends_with("18 runs: 8 known, 10 run now; results in s.results\n"), "{text}");
    assert!(place.good("sweep s.toml --dry-run").contains("18 runs, 18 known, 0 to run"));
    assert_eq!(results(&place.path().join("s.results")).len(), 18);
    assert_eq!(fs::read_dir(place.path().join("s.results/.locks")).unwrap().count(), 0);
}

#[test]
fn csv_has_a_line_a_run() {
    let place =
        with("command = \"run\"\ndraws = 2\n[options]\nkernel = \"gcd\"\nlanes = 2\nwarps = 1\nsize = \"small\"\n");
    place.good("sweep s.toml --results r --csv runs.csv --jobs 1");
    let text = fs::read_to_string(place.path().join("runs.csv")).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..7], ["kernel", "lanes", "warps", "size", "draw", "ok", "error"]);
    assert_eq!(lines[1][..7], ["gcd", "2", "1", "small", "1", "true", ""]);
    assert_eq!((lines[2][4], lines.len()), ("2", 3));
    assert!(lines[0].contains(&"idle.memory") && lines[0].contains(&"thread_ipc"));
    assert_eq!(results(&place.path().join("r")).len(), 2);
}

#[test]
fn what_fails_is_told_kept_and_run_again_only_if_asked_for() {
    let group =
        |kernel: &str| format!("[[options]]\nkernel = \"{kernel}\"\nlanes = 1\nwarps = 1\nmax-cycles = 100000\n");
    let place =
        with(&format!("command = \"run\"\n{}{}{}", group("good.elf"), group("./endless.elf"), group("./bad.elf")));
    place.file("good.elf", &ends());
    place.file("endless.elf", &endless());
    place.file("bad.elf", &elf(&[li(A0, 3), li(A7, 93), ECALL]));
    let fails = |arguments: &str, counts: &str| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: 2 of 3 runs failed\n");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(counts), "{text}");
        let told: Vec<&str> = text.lines().filter(|line| line.starts_with("failed: ")).collect();
        assert!(
            told[0].starts_with("failed: kernel=./endless.elf lanes=1 ") && told[0].contains("did not end"),
            "{text}"
        );
        assert!(told[1].contains("exit code not 0: "), "{text}");
        assert!(text.contains("0 of 1"), "{text}");
    };
    fails("sweep s.toml", "3 runs: 0 known, 3 run now, 2 failed;");
    fails("sweep s.toml", "3 runs: 3 known, 0 run now, 2 failed;");
    fails("sweep s.toml --again", "3 runs: 1 known, 2 run now, 2 failed;");
    assert!(place.good("sweep s.toml --dry-run").contains("1 of 1 known, 1 failed"));
}

#[test]
fn a_sweep_that_was_killed_leaves_whole_results_and_goes_on() {
    let place = with(&SMALL.replace("draws = 2", "draws = 6"));
    let folder = place.path().join("s.results");
    let mut child = place.command("sweep s.toml --jobs 1").stdout(Stdio::null()).spawn().unwrap();
    wait_for(|| results(&folder).len() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let there = results(&folder);
    assert!((3..24).contains(&there.len()), "{} results", there.len());
    for path in &there {
        let record: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(record["ok"], true);
    }
    let text = place.good("sweep s.toml");
    assert!(text.contains(&format!("24 runs: {} known, {} run now;", there.len(), 24 - there.len())), "{text}");
}

#[test]
fn two_sweeps_at_a_time_share_their_work() {
    let place = with(&SMALL.replace("draws = 2", "draws = 5"));
    let start = || place.command("sweep s.toml --jobs 2").stdout(Stdio::piped()).spawn().unwrap();
    let texts = [start(), start()].map(|child: Child| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    });
    assert_eq!(texts.iter().map(|text| computed(text)).sum::<usize>(), 20, "{texts:?}");
    let table = |text: &str| text.split("\n\n").next().unwrap().to_string();
    assert_eq!(table(&texts[0]), table(&texts[1]));
    assert_eq!(results(&place.path().join("s.results")).len(), 20);
}

#[test]
fn ctrl_c_ends_it_with_what_there_is() {
    let options = "lanes = 1\nwarps = 1\nmax-cycles = 4000000000\n";
    let place = with(&format!(
        "command = \"run\"\n[[options]]\nkernel = \"./good.elf\"\n{options}[[options]]\nkernel = \"./loop.elf\"\n{options}"
    ));
    place.file("good.elf", &ends());
    place.file("loop.elf", &endless());
    for ends in [interrupt, terminate] {
        let mut command = place.command("sweep s.toml");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(|| results(&place.path().join("s.results")).len() == 1);
        sleep(Duration::from_millis(300));
        ends(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("0 of 1") && text.contains("1 missing"), "{text}");
        assert_eq!(results(&place.path().join("s.results")).len(), 1);
    }
}

#[test]
fn other_commands_run_in_processes_of_their_own() {
    let place = with("command = \"hash\"\n[options]\nlanes = 2\nwarps = [1, 2]\nmetrics = [false, true]\n");
    let text = place.good("sweep s.toml");
    assert!(text.ends_with("4 runs: 0 known, 4 run now; results in s.results\n"), "{text}");
    let alone = place.good("hash --lanes 2 --warps 2 --metrics");
    assert!(text.contains(alone.split(' ').next().unwrap()), "{text}\n{alone}");
    assert!(place.good("sweep s.toml").contains("4 known, 0 run now"));
}

#[test]
fn mistakes_are_a_line_with_their_place_before_anything_runs() {
    let place = with("");
    let bad = |text: &str| {
        place.file("s.toml", text.as_bytes());
        place.bad("sweep s.toml")
    };
    let run = |options: &str| bad(&format!("command = \"run\"\n[options]\nkernel = \"gcd\"\n{options}\n"));
    assert_eq!(place.bad("sweep none.toml"), "cannot read none.toml: No such file or directory (os error 2)");
    assert_eq!(
        bad("command = \"profile\"\n[options]\na = 1\n"),
        "s.toml:1: command = \"profile\": wanted is one of run, hash, synth, study"
    );
    assert!(run("lanes = [8, \"x\"]").starts_with("s.toml:4: lanes = \"x\": invalid value 'x' for '--lanes <N>'"));
    assert!(run("lines = 8").starts_with("s.toml:4: lines = 8: unexpected argument '--lines' found"));
    assert_eq!(run("json = true"), "s.toml:4: json = true: results are JSON in any case");
    let unknown = bad("command = \"run\"\n[options]\nkernel = [\"gcd\", \"gccd\"]\n");
    assert_eq!(unknown, "s.toml:3: kernel = \"gccd\": no kernel is called `gccd`; did you mean `gcd`?");
    assert!(bad("command = \"run\"\n[options]\nlanes = 8\n").starts_with("s.toml: lanes=8: `kernel` is missing"));
    let refused = run("lanes = [3, 4, 5]\nwarps = 1");
    assert_eq!(
        refused,
        "s.toml: kernel=gcd lanes=3 warps=1: lanes = 3: must be a power of two from 1 to 64 (and 1 more); \
         `skip_refused = true` leaves such combinations out"
    );
    let needs = bad("command = \"run\"\n[options]\nkernel = \"spin_lock\"\n");
    assert!(needs.contains("spin_lock needs paths that give way to each other (--fair on)"), "{needs}");
    assert!(run("set = \"a=1\"").contains("--set is for ELF files"));
    assert!(run("elf = \"none.elf\"").contains("cannot read none.elf"));
    assert_eq!(run("[table]\nrows = [\"warps\"]"), "s.toml:5: rows: `warps` is none of the options above");
    place.file("s.toml", SMALL.as_bytes());
    assert_eq!(place.bad("sweep s.toml --batch 9"), "--batch 9: there are 2, from 0 on");
    assert!(place.bad("sweep s.toml --csv none/x.csv").ends_with("there is no such folder"));
    assert!(place.bad("sweep s.toml --results s.toml").starts_with("cannot write folder s.toml"));
    assert!(place.bad("sweep s.toml --jobs 0").contains("--jobs"));
}

#[test]
fn what_a_core_refuses_can_be_left_out() {
    let options = "[options]\nkernel = \"gcd\"\nlanes = [1, 3, 5]\nwarps = 1\nsize = \"small\"\n";
    let place = with(&format!("command = \"run\"\nskip_refused = true\n{options}"));
    let text = place.good("sweep s.toml");
    assert!(
        text.contains("\nleft out: kernel=gcd lanes=3 warps=1 size=small: lanes = 3: must be a power of two"),
        "{text}"
    );
    assert!(text.contains("1 run: 0 known, 1 run now;"), "{text}");
}

/// Those in the folder `examples`, which the pages and the help name.
#[test]
fn the_examples_are_sweeps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/sweeps");
    let place = Place::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // Studies have many cores, whose hashes take long; a unit test reads them.
        if path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("studies.toml") {
            let listed = place.good(&format!("sweep {} --dry-run --results none", path.display()));
            assert!(listed.contains(" known, "), "{listed}");
            count += 1;
        }
    }
    assert!(count >= 5, "{count} examples");
    let small = folder.join("small.toml").display().to_string();
    let text = place.good(&format!("sweep {small} --results r"));
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/sweep.md")).unwrap();
    // Heads and names of rows: figures are of the core as it was.
    let names = |table: &str| -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().take(3).map(String::from).collect();
        table.lines().map(words).collect()
    };
    let table = page.split("```text\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    assert_eq!(names(table), names(text.split("\n\n").next().unwrap()));
    let shown = fs::read_to_string(&small).unwrap();
    assert!(page.contains(&shown), "docs/guide/sweep.md shows another file than small.toml");
}

/// Its rows are those of the study alone, and what it ran is kept for the next time that it runs.
#[test]
fn a_study_is_swept() {
    let options = "[options]\nstudy = \"simtight\"\nkernel = \"vecadd\"\nlanes = [2, 4]\nwarps = 1\n";
    let place = with(&format!("command = \"study\"\n{options}"));
    let text = place.good("sweep s.toml");
    assert!(text.contains("processor_seconds") && text.contains("2 runs: 0 known, 2 run now"), "{text}");
    let report: Value = serde_json::from_str(&place.good("sweep s.toml --json")).unwrap();
    assert_eq!(report["computed"], 0);
    let alone = "study simtight vecadd --lanes 4 --warps 1 --json";
    let alone: Value = serde_json::from_str(&place.good(alone)).unwrap();
    let swept = &report["rows"][1];
    assert_eq!(swept["command"], "heddle study simtight vecadd --lanes=4 --warps=1");
    assert_eq!(swept["result"]["rows"], alone["rows"]);
    assert!(alone["processor_seconds"].as_f64().unwrap() > 0.0);
    let kept = results(&place.path().join("s.results")).len();
    assert_eq!(kept, 4, "two studies, and what they ran");
    place.file("area.toml", format!("command = \"study\"\n{}", options.replace("simtight", "area")).as_bytes());
    let error = String::from_utf8(place.run("sweep area.toml").stderr).unwrap();
    assert!(
        error.starts_with("error: area.toml:3: study = \"area\": it keeps its rows in a file of its own"),
        "{error}"
    );
}

/// What studies take is known of all of them, from nothing.
#[test]
fn a_page_is_of_no_other_sweep() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").display().to_string();
    let place = with("command = \"study\"\n[options]\nstudy = \"order\"\n");
    let error = |line: &str| String::from_utf8(place.run(line).stderr).unwrap();
    let other = error(&format!("sweep s.toml --docs {docs}"));
    assert!(
        other.starts_with("error: --docs is of every study with the options of its page: `heddle study "),
        "{other}"
    );
    let none = error("sweep s.toml --docs missing");
    assert!(none.starts_with("error: cannot read missing/studies/"), "{none}");
    assert!(!place.path().join("s.results").exists());
}

/// The example has the study's variants, and each draw's figures are the same.
#[test]
fn the_example_on_mechanisms_is_the_study() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/sweeps/mechanisms.toml");
    let kernels = "kernel = [\"bfs\", \"collatz\", \"gcd\", \"mandelbrot\", \"nqueens\", \"sort\"]";
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(kernels));
    let small = text.replace(kernels, "kernel = \"if_else\"\nlanes = 2\nwarps = 1").replace("draws = 8", "draws = 2");
    let place = with(&small);
    let parsed =
        |line: &str| serde_json::from_str::<Value>(&place.good(line)).unwrap()["rows"].as_array().unwrap().clone();
    let swept = parsed("sweep s.toml --json");
    let study = parsed("study mechanisms if_else --lanes 2 --warps 1 --draws 2 --json");
    assert_eq!(swept.len(), 2 * study.len());
    let name = |row: &Value| {
        let options = &row["options"];
        let more = [("fair", ", fair"), ("replay", ", serialise"), ("compaction", ", predict")];
        let more = more.into_iter().filter(|(key, _)| options.get(key).is_some()).map(|(_, more)| more);
        format!("{}{}", options["divergence"].as_str().unwrap(), more.collect::<String>())
    };
    for row in study {
        let of_it = swept.iter().filter(|other| row["variant"] == name(other));
        let draws: Vec<Value> = of_it.map(|other| other["result"]["thread_ipc"].clone()).collect();
        assert_eq!(row["ipc_of_draws"], Value::Array(draws), "{}", row["variant"]);
    }
}

/// Where the command is, or a note that the test is skipped.
fn snakemake() -> Option<PathBuf> {
    if std::env::var_os("HEDDLE_LONG").is_none() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "SKIPPED: a sweep in Snakemake, which HEDDLE_LONG=1 asks for");
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([heddle_sim::verilator::cache().join("snakemake/bin")]);
    let found = folders.map(|folder| folder.join("snakemake")).find(|program| program.is_file());
    if found.is_none() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "SKIPPED: a sweep in Snakemake, which is not installed");
    }
    found
}

#[test]
fn snakemake_runs_the_pieces_is_killed_and_goes_on() {
    let Some(snakemake) = snakemake() else { return };
    let place = with(&SMALL.replace("draws = 2", "draws = 6"));
    assert_eq!(place.good("sweep s.toml --snakemake flow --batch-runs 3"), "");
    let flow = place.path().join("flow");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&snakemake);
        command.args(["--snakefile", "flow/Snakefile", "--cores", "2"]).args(arguments).current_dir(place.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut child = command(&[]).process_group(0).spawn().unwrap();
    wait_for(|| results(&flow.join("results")).len() >= 4);
    let kill = format!("kill -KILL -{}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    child.wait().unwrap();
    sleep(Duration::from_millis(500));
    let there = results(&flow.join("results")).len();
    assert!((4..24).contains(&there) && !flow.join("table.csv").exists(), "{there}");
    let good = |arguments: &[&str]| {
        let output = command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    good(&["--unlock"]);
    good(&["--rerun-incomplete"]);
    let lines = fs::read_to_string(flow.join("table.csv")).unwrap();
    assert_eq!(lines.lines().count(), 25);
    let table = fs::read_to_string(flow.join("table.txt")).unwrap();
    assert!(table.contains("24 runs: 24 known, 0 run now;"), "{table}");
    // The same as without Snakemake.
    let alone = place.good("sweep s.toml");
    assert_eq!(alone.split("\n\n").next(), table.split("\n\n").next());
}

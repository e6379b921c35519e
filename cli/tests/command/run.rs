//! `heddle run` and `heddle kernels` as a user sees them.

use crate::common::*;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const SMALL: &str = "--lanes 4 --warps 2";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn kernels_are_listed() {
    let place = Place::new();
    let names = place.good("kernels --names");
    assert!(names.lines().any(|name| name == "mandelbrot"));
    assert!(names.lines().all(|name| !name.contains(' ')));
    let lines = place.good("kernels");
    let (usual, others) = lines.split_once("\n\n").expect("lock programs are apart");
    let (locks, of_warps) = others.split_once("\n\n").expect("so are those with warp primitives");
    assert!(usual.lines().map(|line| line.split(' ').next().unwrap()).eq(names.lines()));
    assert!(locks.contains("--fair on") && locks.lines().any(|line| line.starts_with("spin_lock ")));
    assert!(of_warps.contains("--warp-primitives on") && of_warps.lines().any(|line| line.starts_with("warp_scan ")));
    // A line each of the latter two is a title.
    let all = usual.lines().count() + locks.lines().count() - 1 + of_warps.lines().count() - 1;
    let rows = json(&place.good("kernels --json"));
    assert_eq!(rows.as_array().unwrap().len(), all);
    assert!(
        rows.as_array()
            .unwrap()
            .iter()
            .any(|row| row["name"] == "mcs_lock" && row["needs"].to_string().contains("fair"))
    );
}

#[test]
fn a_kernel_is_checked_and_counted() {
    let report = json(&Place::new().good(&format!("run gcd {SMALL} --json")));
    assert_eq!(report["ok"], true);
    assert!(report["checked"].as_u64().unwrap() > 0);
    let number = |field: &str| report[field].as_f64().unwrap();
    let idle: f64 = ["no_instruction", "divergence", "scoreboard", "memory", "barrier"]
        .iter()
        .map(|f| report["idle"][f].as_f64().unwrap())
        .sum();
    assert_eq!(number("warp_instructions") + idle, number("cycles"), "every cycle is an issue or idle for one cause");
    assert!((number("thread_ipc") * number("cycles") - number("thread_instructions")).abs() < 1.0);
    assert!(number("simt_efficiency") > 0.0 && number("simt_efficiency") <= 1.0);
    assert!(number("convergences") > 0.0);
}

#[test]
fn every_thread_instruction_is_compared_on_demand() {
    let report = json(&Place::new().good(&format!("run reduce {SMALL} --json --check iss")));
    assert!(report["compared"].as_u64().unwrap() > 0);
    assert_eq!(report["compared"], report["thread_instructions"]);
    assert!(
        Place::new()
            .good(&format!("run gcd {SMALL} --check iss"))
            .contains("are those of the instruction-set simulator")
    );
}

#[test]
fn a_grid_of_blocks_is_launched() {
    let place = Place::new();
    place.file("p.elf", &ends());
    let run = format!("run p.elf {SMALL} --blocks 20 --block-threads 5 --check iss");
    let report = json(&place.good(&format!("{run} --json")));
    assert_eq!((&report["blocks"], &report["threads"]), (&20.into(), &100.into()));
    assert_eq!(report["thread_instructions"], 300);
    assert!(place.good(&run).contains("20, 100 threads"));
}

#[test]
fn one_seed_gives_one_result() {
    let place = Place::new();
    let run = |seed: u32| {
        let mut report = json(&place.good(&format!("run gcd {SMALL} --json --seed {seed}")));
        report["seconds"].take();
        report
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5)["cycles"], run(6)["cycles"]);
}

#[test]
fn failures_are_json_too() {
    let output = Place::new().run(&format!("run gcd {SMALL} --json --max-cycles 50"));
    assert_eq!(output.status.code(), Some(1));
    let report = json(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(report["ok"], false);
    assert!(report["error"].as_str().unwrap().contains("did not end in 50 cycles"));
}

#[test]
fn an_elf_file_takes_arguments_and_shows_results() {
    let place = Place::new();
    let vecadd = heddle_testbench::kernels::find("vecadd").unwrap();
    place.file("v.elf", vecadd.elf);
    let report =
        json(&place.good("run v.elf --lanes 2 --warps 1 --json --set length=4 --set a=7 --show sum --show length"));
    assert_eq!(report["variables"][0]["words"][0], 7);
    assert_eq!(report["variables"][1]["words"], json("[4]"));
}

#[test]
fn a_trace_has_a_line_an_instruction() {
    let place = Place::new();
    place.file("p.elf", &ends());
    let text = place.good("run p.elf --lanes 2 --warps 1 --trace");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["cycle", "warp", "pc", "mask", "instruction"]);
    let instructions: Vec<String> = lines[1..4].iter().map(|line| line[1..].join(" ")).collect();
    assert_eq!(instructions, ["0 0x00000004 11 li a0,0", "0 0x00000008 11 li a7,93", "0 0x0000000c 11 ecall"]);
}

#[test]
fn a_timeline_shows_which_threads_ran_together() {
    let place = Place::new();
    place.good("run if_else --lanes 4 --warps 2 --divergence block-stack --timeline t.svg");
    let picture = std::fs::read_to_string(place.path().join("t.svg")).unwrap();
    let words: Vec<&str> = picture.split(['<', '>']).map(str::trim).filter(|word| word.len() < 10).collect();
    let of_block = |name: &str| {
        let at = |k: usize| words[k..].iter().skip(1).filter_map(|word| word.parse::<u32>().ok());
        let lines = words.iter().enumerate().filter(|(_, word)| **word == name).map(|(k, _)| at(k));
        lines.map(|threads| threads.take(4).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(of_block("main A"), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert_eq!(of_block("main C")[0][..3], [0, 5, 6]);
    assert_eq!((of_block("main B")[0].as_slice(), of_block("main B")[1][0]), ([4, 1, 2, 3].as_slice(), 7));
    assert_eq!(of_block("main D"), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    let late = place.bad("run if_else --lanes 4 --warps 2 --timeline l.svg --window 100000..");
    assert!(late.contains("nothing issues in these cycles"), "{late}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let place = Place::new();
    let files = "--wave w.fst --timeline t.svg --profile p.json";
    let mut command = place.command(&format!("run gcd {SMALL} --trace {files}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    // As at Ctrl-C: what there is so far, and no profile.
    assert_eq!(place.names(), ["t.svg", "w.fst", "w.gtkw", "w.instructions", "w.sucl"]);
}

#[test]
fn waveforms_and_pictures_are_files() {
    let place = Place::new();
    place.file("p.elf", &ends());
    place.good("run p.elf --lanes 1 --warps 1 --wave w.vcd");
    place.good("run p.elf --lanes 1 --warps 1 --wave w.fst");
    assert_eq!(place.names(), ["p.elf", "w.fst", "w.gtkw", "w.instructions", "w.sucl", "w.vcd"]);
    let vcd = std::fs::read_to_string(place.path().join("w.vcd")).unwrap();
    assert!(vcd.contains("$enddefinitions"));
}

/// The command under way on a program that never ends, with a waveform that has begun.
fn under_way(place: &Place, arguments: &str, wave: &str) -> Child {
    place.file("loop.elf", &endless());
    let mut command = place.command(&format!("run loop.elf --lanes 2 --warps 1 --wave {wave} {arguments}"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !place.path().join(format!("{wave}.partial")).exists() {
        sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn an_interrupted_run_reports_and_completes_its_waveform() {
    let place = Place::new();
    let child = under_way(&place, "", "w.vcd");
    // Long enough for progress, which a pipe must not see.
    sleep(Duration::from_millis(1500));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: loop.elf: interrupted\n");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("loop.elf             interrupted\n") && text.contains("\nSIMT efficiency "), "{text}");
    assert_eq!(place.names(), ["loop.elf", "w.gtkw", "w.instructions", "w.sucl", "w.vcd"]);
    // All of it is large.
    let mut file = fs::File::open(place.path().join("w.vcd")).unwrap();
    file.seek(SeekFrom::End(-10_000)).unwrap();
    let mut vcd = String::new();
    file.read_to_string(&mut vcd).unwrap();
    assert!(vcd.ends_with("\n"));
    let last = vcd.lines().rev().find_map(|line| line.strip_prefix('#')).unwrap();
    let cycles = text.lines().find_map(|line| line.strip_prefix("cycles ")).unwrap();
    let cycles: u64 = cycles.split_whitespace().next().unwrap().parse().unwrap();
    assert!(last.parse::<u64>().unwrap() >= 10 * cycles && cycles > 0, "{last} {cycles}");
}

#[test]
fn an_interruption_is_json_too() {
    for ends in [interrupt as fn(&Child), terminate] {
        let place = Place::new();
        let child = under_way(&place, "--json", "w.fst");
        ends(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let report = json(std::str::from_utf8(&output.stdout).unwrap());
        assert_eq!((&report["ok"], &report["interrupted"]), (&false.into(), &true.into()));
        assert!(report["cycles"].is_u64());
        assert_eq!(place.names(), ["loop.elf", "w.fst", "w.gtkw", "w.instructions", "w.sucl"]);
    }
}

/// `script` gives the command a terminal.
#[test]
fn progress_is_for_terminals() {
    let place = Place::new();
    place.file("loop.elf", &endless());
    let run = "run loop.elf --lanes 1 --warps 1 --max-cycles 4000000000 --json";
    let command = format!("(sleep 3; kill -INT $$) & exec {} {run} > out", env!("CARGO_BIN_EXE_heddle"));
    let mut script = Command::new("script");
    let script = script.args(["-qec", &command, "typed"]).env("SHELL", "/bin/sh").current_dir(place.path()).output();
    if script.is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: a test of progress, which needs script");
        return;
    }
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    let typed = read("typed");
    assert!(
        typed.contains("/4000.00M cycles, ") && typed.contains(", 1/1 threads live, SIMT efficiency 100.0 %, at most "),
        "{typed}"
    );
    assert_eq!(json(&read("out"))["interrupted"], true);
}

#[test]
fn help_shows_examples() {
    let place = Place::new();
    let benches = ["bench --help", "bench sim --help", "bench check --help", "bench wave --help"];
    for help in ["--help", "new --help", "build --help", "run --help", "gen --help", "cosim --help", "kernels --help"]
        .into_iter()
        .chain(benches)
    {
        assert!(place.good(help).contains("Examples:"), "{help}");
    }
}

#[test]
fn a_missing_c_compiler_is_named() {
    let place = Place::new();
    let mut command = place.command("run vecadd --lanes 2 --warps 1 --engine compiled-c");
    let error = place.bad_command(command.env("HEDDLE_CC", "nowhere/cc"));
    assert_eq!(error, "no C compiler `nowhere/cc`: install one, as with `apt install gcc`, or name it in HEDDLE_CC");
}

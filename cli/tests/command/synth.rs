//! `heddle synth` as a user sees it, with stand-ins for Yosys and nextpnr; `check/tests/verilog/synth.rs` has Yosys
//! itself.

use crate::common::*;
use heddle_check::synth::Board;
use heddle_check::synth::tools::{Package, YOSYS};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A place with a cache folder of its own, in which tools are installed that do what the test says.
struct Tools(Place);

const CELLS: &str = r#"{"modules": {"heddle": {"cells": {"core.a_LUT4_Z": {"type": "LUT4"}, "b_CCU2C_S0": {"type": "CCU2C"}}},
                                    "core": {"cells": {"a": {"type": "alu"}, "b": {"type": "alu"}}},
                                    "alu": {"cells": {"x": {"type": "LUT4"}}}, "host": {"cells": {}},
                                    "board": {"cells": {"top.system.heddle.core.a_LUT4_Z": {"type": "LUT4"}, "rst_LUT4_Z": {"type": "LUT4"},
                                                        "top.system.heddle.instructions.0.0": {"type": "DP16KD"}}}}}"#;
const REPORT: &str = r#"{"fmax": {"clk": {"achieved": 4SEED.5}}, "critical_paths": [{"from": "posedge clk", "to": "posedge clk", "path": [
    {"type": "clk-to-q", "delay": 0.5, "from": {"cell": "heddle.core.a_TRELLIS_FF_Q"}, "to": {"cell": "heddle.core.a_TRELLIS_FF_Q"}},
    {"type": "routing", "delay": 1.25, "from": {"cell": "heddle.core.a_TRELLIS_FF_Q"}, "to": {"cell": "heddle.core.b_LUT4_Z"}}]}]}"#;
/// Writes the report; `seed` is the number behind `--seed`.
const PLACES: &str = r#"while [ "$1" != --seed ]; do shift; done; sed "s/SEED/$2/" "$0.report" >report.json; echo "seed $2" >>"$0.calls""#;
/// Writes the cells of all, and of what is around the core.
const MAPS: &str = r#"cat "$0.cells" >cells.json
    echo '{"modules": {"heddle": {"cells": {"b": {"type": "CCU2C"}}}, "board": {"cells": {"rst": {"type": "LUT4"}}}}}' >rest.json
    echo netlist >netlist.json; echo synthesis >>"$0.calls""#;

impl Tools {
    fn new() -> Tools {
        let tools = Tools(Place::new());
        let nextpnr = &Board::ALL[0].family.nextpnr;
        tools.install(&YOSYS, "python", MAPS, ("cells", CELLS));
        tools.install(nextpnr, nextpnr.name, PLACES, ("report", REPORT));
        tools
    }

    fn cache(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    fn program(&self, package: &Package, name: &str) -> PathBuf {
        let folder = format!("synth/{}-{}", package.name, package.version);
        self.cache().join(folder).join("bin").join(name)
    }

    /// A program that does so, and a file beside it.
    fn install(&self, package: &Package, name: &str, does: &str, (extension, text): (&str, &str)) {
        let program = self.program(package, name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        script(&program, does);
        fs::write(format!("{}.{extension}", program.display()), text).unwrap();
        fs::write(program.parent().unwrap().with_file_name("complete"), "").unwrap();
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = self.0.command(&format!("synth --lanes 1 --warps 1 {arguments}"));
        command.env("HEDDLE_CACHE", self.cache());
        command
    }

    fn good(&self, arguments: &str) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        assert!(output.stderr.is_empty(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn bad(&self, arguments: &str) -> String {
        self.0.bad_command(&mut self.command(arguments))
    }

    /// What the tools were called for.
    fn calls(&self) -> Vec<String> {
        let nextpnr = &Board::ALL[0].family.nextpnr;
        let of = |program: PathBuf| fs::read_to_string(format!("{}.calls", program.display())).unwrap_or_default();
        let all = of(self.program(&YOSYS, "python")) + &of(self.program(nextpnr, nextpnr.name));
        all.lines().map(String::from).collect()
    }

    /// Folders of runs that are left.
    fn left(&self) -> usize {
        let entries =
            fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.filter(|name| name.starts_with("synthesis-")).count()
    }
}

fn script(path: &Path, does: &str) {
    fs::write(path, format!("#!/bin/sh\n{does}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn examples_of_the_help_are_valid() {
    let place = Place::new();
    let help = place.good("synth --help");
    let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  heddle ")).collect();
    assert!(examples.len() > 3, "{help}");
    for example in examples {
        let example = example.split("  ").next().unwrap_or(example).replace("--list", "");
        let line = format!("exec \"$0\" {example} --list");
        let output = Command::new("sh").args(["-c", &line, env!("CARGO_BIN_EXE_heddle")]).output().unwrap();
        assert!(output.status.success(), "{example}: {output:?}");
    }
}

/// Rows of the study of area are written as they are found, and found once.
#[test]
fn the_study_of_area_goes_on_where_it_was() {
    let tools = Tools::new();
    let docs = tools.0.path().join("docs");
    fs::create_dir(&docs).unwrap();
    let study = |arguments: &str| {
        let mut command = tools.0.command(&format!("study area --part lanes --docs docs {arguments}"));
        let output = command.env("HEDDLE_CACHE", tools.cache()).output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        (fs::read_to_string(docs.join("studies/area.md")).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (page, said) = study("--limit 0");
    assert!(tools.calls().is_empty() && page.contains("| 64 | `path-table` |"), "{page}");
    assert_eq!(said, "40 of 40 measurements are still missing\n");
    let results = || -> Vec<Value> {
        serde_json::from_str(&fs::read_to_string(docs.join("studies/area.json")).unwrap()).unwrap()
    };
    assert!(results().is_empty());
    let other = File::open(&docs).unwrap();
    other.lock().unwrap();
    let busy = "cannot write docs/studies/area.json: another `heddle study area` does; wait for its end";
    assert_eq!(tools.0.bad("study area --docs docs --limit 0"), busy);
    drop(other);
    // One core by its options, of which another has more; cores by what is in their options.
    let core = "--lanes 2 --warps 8 --memory 128K --program 16K --stack 128 --barriers off --atomics off --scratchpad 0 \
                --multiply off";
    let mut command = tools.0.command("study area --part lanes --docs docs --seeds 0 --core");
    let output = command.arg(core).env("HEDDLE_CACHE", tools.cache()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!((results().len(), results()[0]["core"].as_str()), (1, Some(core)));
    let (_, said) = study("--seeds 0 --core arbiter");
    assert_eq!((said.as_str(), results().len()), ("", 7));
    let error = tools.0.bad("study area --part lanes --core dual-path");
    assert!(
        error.starts_with("--core 'dual-path': no core that is measured has this in its options; one is '--lanes 2 ")
    );
    let (page, said) = study("--seeds 1");
    assert_eq!((said.as_str(), results().len()), ("", 24));
    // Cells are asked for before clocks, and of each core a netlist serves both unless others come between.
    let count = |what: &str| tools.calls().iter().filter(|call| *call == what).count();
    let (synthesis, seeds) = (count("synthesis"), count("seed 1"));
    assert!((12..=24).contains(&synthesis) && seeds == 12, "{:?}", tools.calls());
    assert!(page.contains("| 41.5 MHz | ≈ 11500 | 57 MHz |  |"), "{page}");
    for chart in ["studies/area.svg", "studies/area-clock.svg"] {
        assert!(fs::read_to_string(docs.join(chart)).unwrap().contains("64 lanes"));
    }
    // What the file has is not looked for in the cache either.
    fs::remove_dir_all(tools.cache().join("synthesis")).unwrap();
    let (again, _) = study("--seeds 1");
    assert_eq!((again, count("synthesis")), (page, synthesis));
    // Of another core: here its hash is.
    let json = fs::read_to_string(docs.join("studies/area.json")).unwrap();
    let hash = results()[0]["hash"].as_str().unwrap().to_string();
    fs::write(docs.join("studies/area.json"), json.replace(&hash, "another")).unwrap();
    let (older, _) = study("--limit 0");
    let (goals, lanes) = older.split_once("## Lanes").unwrap();
    assert_eq!(lanes.matches("of an older core |").count(), 1, "{older}");
    assert_eq!(goals.matches("of an older core |").count(), 1, "{older}");
    let (renewed, _) = study("--seeds 1");
    assert!(!renewed.contains("of an older core |") && count("synthesis") > synthesis);
    assert_eq!(tools.left(), 0);
}

#[test]
fn json_has_cells_clock_and_path() {
    let tools = Tools::new();
    let rows: Value = serde_json::from_str(&tools.good("--json --seeds 3")).unwrap();
    let row = &rows[0];
    for (name, value) in [("luts", 3), ("core_luts", 1), ("lut4", 1), ("carry", 1), ("ff", 0), ("bram", 0), ("dsp", 0)]
    {
        assert_eq!(row[name], value, "{name} of {row}");
    }
    for name in ["distributed_ram", "memory_bram"] {
        assert_eq!(row[name], 0, "{name} of {row}");
    }
    assert_eq!(row["board"], "ulx3s-85f");
    assert!(row["configuration"].as_str().unwrap().starts_with("--lanes 1 --warps 1 "));
    assert_eq!((&row["fits"], &row["fmax_mhz"]), (&Value::from(true), &Value::from(42.5)));
    assert_eq!(row["seeds"], Value::from(vec![41.5, 42.5, 43.5]));
    assert_eq!(row["critical_path"], Value::from(vec!["core.a", "core.b"]));
    assert_eq!(row["critical_path_ns"], Value::from(vec![0.5, 1.75]));
    assert_eq!(row.get("module"), None);
    assert_eq!(row["tools"], Value::from(vec![YOSYS.title(), Board::ALL[0].family.nextpnr.title()]));
    let rows: Value = serde_json::from_str(&tools.good("--json --modules")).unwrap();
    assert_eq!(
        rows[0]["modules"][0],
        serde_json::json!({"module": "alu", "copies": 2, "luts": 1, "lut4": 1, "carry": 0, "ff": 0,
        "distributed_ram": 0, "bram": 0, "dsp": 0})
    );
    assert_eq!(tools.left(), 0);
}

/// A module alone: its cells are all its own, and its path is printed step by step.
#[test]
fn a_module_alone_has_cells_clock_and_path() {
    let tools = Tools::new();
    let text = tools.good("--module alu --path");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert!(lines[1].contains(", alu alone ") && lines[1].ends_with("41.5  core.a -> core.b"), "{text}");
    assert!(lines[3].ends_with(", alu alone"), "{text}");
    assert_eq!(lines[4..], ["0.50  core.a", "1.75  core.b"]);
    let rows: Value = serde_json::from_str(&tools.good("--module alu --json --seeds 0")).unwrap();
    assert_eq!((&rows[0]["module"], &rows[0]["luts"], &rows[0]["core_luts"]), (&"alu".into(), &1.into(), &1.into()));
    // What is kept of the whole core is another thing.
    let whole: Value = serde_json::from_str(&tools.good("--json --seeds 0")).unwrap();
    assert_eq!(whole[0]["luts"], 3);
    let error = tools.bad("--module alus");
    assert!(error.contains("--module alus: --lanes 1 --warps 1"), "{error}");
    assert!(error.contains("has no such module; it has align, alu, "), "{error}");
    assert!(error.contains(", host, host_failures, "), "{error}");
    assert!(tools.good("--module host --seeds 0").contains(", host alone "));
    let error = tools.bad("--path --seeds 0");
    assert_eq!(error, "--path: with --seeds 0 nothing is placed, so there is no path");
}

/// What is known is only reported; what is not is found, with what it needs.
#[test]
fn results_are_kept_each_for_itself() {
    let tools = Tools::new();
    let first = tools.good("--seeds 0");
    assert_eq!(tools.calls(), ["synthesis"]);
    assert_eq!(tools.good("--seeds 0"), first);
    assert_eq!(tools.calls(), ["synthesis"]);
    tools.good("--seeds 2");
    let twice = ["synthesis", "synthesis", "seed 1", "seed 2"];
    assert_eq!(tools.calls(), twice);
    tools.good("--seeds 2");
    tools.good("--seeds 1");
    assert_eq!(tools.calls(), twice);
    tools.good("--seeds 1 --clock 50");
    assert_eq!(tools.calls(), ["synthesis", "synthesis", "synthesis", "seed 1", "seed 2", "seed 1"]);
    tools.good("--seeds 0 --again");
    assert_eq!(tools.calls().len(), 7);
    tools.good("--seeds 0 --divergence arbiter");
    assert_eq!(tools.calls().len(), 8);
}

#[test]
fn several_cores_have_a_row_each() {
    let tools = Tools::new();
    let mut command = tools.0.command("synth --seeds 0 --json");
    command.env("HEDDLE_CACHE", tools.cache()).args([
        "--core",
        "--lanes 1 --warps 1",
        "--core",
        "--lanes 2 --warps 1 --divergence stack",
    ]);
    let rows: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let cores: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["configuration"].as_str().unwrap()).collect();
    assert_eq!(cores.len(), 2);
    assert!(cores[0].starts_with("--lanes 1 ") && cores[1].contains("--divergence stack"), "{cores:?}");
}

/// A run that is interrupted while the second seed is placed tells of the first, and goes on with the second.
#[test]
fn an_interruption_ends_the_tool_and_keeps_what_was_found() {
    for ends in [interrupt as fn(&Child), terminate] {
        let tools = Tools::new();
        let nextpnr = &Board::ALL[0].family.nextpnr;
        let process = tools.0.path().join("process");
        let hangs = format!(
            "case \"$*\" in *'--seed 2'*) echo $$ >{0}.new; mv {0}.new {0}; exec sleep 60;; esac",
            process.display()
        );
        tools.install(nextpnr, nextpnr.name, &format!("{hangs}\n{PLACES}"), ("report", REPORT));
        let mut command = tools.command("--seeds 2 --json");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = interrupted(child, &process, "nextpnr", ends);
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(rows[0]["seeds"], Value::from(vec![41.5]));
        assert_eq!(tools.left(), 0);

        tools.install(nextpnr, nextpnr.name, PLACES, ("report", REPORT));
        tools.good("--seeds 2");
        assert_eq!(tools.calls(), ["synthesis", "synthesis", "seed 1", "seed 2"]);
    }
}

#[test]
fn shapes_that_do_not_fit() {
    let tools = Tools::new();
    let many: String = (0..209).map(|k| format!(r#""core.r{k}": {{"type": "DP16KD"}}, "#)).collect();
    let cells = CELLS.replacen(r#""core.a_"#, &format!(r#"{many}"core.a_"#), 1);
    tools.install(&YOSYS, "python", MAPS, ("cells", &cells));
    assert!(tools.good("--seeds 0").contains("  does not fit: 209 block RAMs wanted, 208 there\n"));
    let output = tools.command("--seeds 2").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("does not fit"));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.ends_with(" does not fit ulx3s-85f: 209 block RAMs wanted, 208 there\n"), "{error}");
    assert_eq!(error.lines().count(), 1);
    assert_eq!(tools.calls(), ["synthesis"]);

    let tools = Tools::new();
    let nextpnr = &Board::ALL[0].family.nextpnr;
    let full =
        "echo 'Info: Device utilisation:'; echo 'Info: TRELLIS_COMB: 90000/ 83640 107%'; echo 'ERROR: no room'; exit 1";
    tools.install(nextpnr, nextpnr.name, full, ("report", REPORT));
    let output = tools.command("").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.ends_with(" does not fit ulx3s-85f: 90000 TRELLIS_COMB wanted, 83640 there\n"), "{error}");
}

#[test]
fn tools_that_fail_or_write_something_else() {
    let (yosys, nextpnr) = (YOSYS.title(), &Board::ALL[0].family.nextpnr);
    let tools = Tools::new();
    tools.install(&YOSYS, "python", "echo note; echo 'ERROR: no such pass'; exit 1", ("cells", ""));
    assert_eq!(tools.bad(""), format!("{yosys} failed: no such pass"));
    for (text, why) in [("{", "EOF while parsing"), (r#"{"modules": {}}"#, "it has no module `heddle`")] {
        tools.install(&YOSYS, "python", MAPS, ("cells", text));
        assert!(tools.bad("").starts_with(&format!("cannot read what {yosys} wrote: {why}")), "{}", tools.bad(""));
    }
    tools.install(&YOSYS, "python", "true", ("cells", ""));
    assert!(tools.bad("").ends_with("cells.json: No such file or directory (os error 2)"), "{}", tools.bad(""));
    assert_eq!(tools.left(), 0);

    let tools = Tools::new();
    let error = |tools: &Tools| {
        let output = tools.command("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(error.lines().count(), 1, "{error}");
        error.trim_end().to_string()
    };
    tools.install(nextpnr, nextpnr.name, PLACES, ("report", r#"{"fmax": {}, "critical_paths": []}"#));
    assert_eq!(error(&tools), format!("error: cannot read what {} wrote: it has 0 clocks", nextpnr.title()));
    tools.install(nextpnr, nextpnr.name, "kill -9 $$", ("report", ""));
    assert_eq!(error(&tools), format!("error: {} failed: no message", nextpnr.title()));
    assert_eq!(tools.left(), 0);
}

/// Installations that come to nothing; nothing is complete then.
#[test]
fn tools_that_cannot_be_installed() {
    let place = Place::new();
    let bin = place.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let bad = |cache: &str| {
        let mut command = place.command("synth --lanes 1 --warps 1");
        place.bad_command(command.env("PATH", &bin).env("HEDDLE_CACHE", cache))
    };
    fs::create_dir(place.path().join("cache")).unwrap();
    assert_eq!(bad("cache"), "python3 is not installed; on Debian: apt-get install python3 python3-venv");
    script(
        &bin.join("python3"),
        "echo 'The virtual environment was not created because ensurepip is not available.'; exit 1",
    );
    assert_eq!(bad("cache"), "python3-venv is not installed; on Debian: apt-get install python3-venv");
    let pip = "echo \"#!/bin/sh\necho \\\"ERROR: broken by NewConnectionError\\\"; exit 1\"";
    let venv = format!("/bin/mkdir -p $4/bin; {pip} >$4/bin/python; /bin/chmod +x $4/bin/python");
    script(&bin.join("python3"), &venv);
    let error = bad("cache");
    assert!(error.starts_with(&format!("cannot install {} into ", YOSYS.title())), "{error}");
    assert!(error.ends_with(": PyPI is out of reach"), "{error}");
    assert!(!place.path().join(format!("cache/synth/{}-{}/complete", YOSYS.name, YOSYS.version)).exists());
    place.file("file", b"");
    assert!(bad("file").starts_with("file/synth"), "{}", bad("file"));
    assert!(bad("/proc/heddle").starts_with("/proc/heddle/synth"), "{}", bad("/proc/heddle"));
}

#[test]
fn questions_that_are_wrong() {
    let place = Place::new();
    let error = place.bad("synth --board ulx4s");
    for board in Board::ALL {
        assert!(error.contains(board.name), "{error}");
    }
    assert_eq!(place.bad("synth --lanes 3"), "lanes = 3: must be a power of two from 1 to 64");
    assert!(place.bad("synth --seeds 1001").contains("--seeds"));
    assert!(place.bad("synth --clock 0").contains("--clock"));
    assert!(place.bad("synth --sede 0").contains("'--sede'"), "{}", place.bad("synth --sede 0"));
    assert!(place.bad("synth --modules --seeds 2").contains("cannot be used with"));
    for beside in ["--lanes 4", "--metrics"] {
        let error = place.bad(&format!("synth {beside} --core arbiter"));
        assert!(error.starts_with("--core 'arbiter': all options of a core"), "{error}");
    }
    assert!(place.bad("synth --memory-model latency=9").starts_with("--memory-model is for simulations only"));
    assert!(place.bad("synth --second-level 64K").starts_with("--second-level is for simulations only"));
}

/// Stand-ins of which place and route reaches 60 MHz where it aims at 100, and otherwise a little more than 55.
fn for_boards() -> Tools {
    let tools = Tools::new();
    let nextpnr = &Board::ALL[0].family.nextpnr;
    let report = REPORT.replace("4SEED.5", "MHZ");
    let places = r#"case "$*" in *'--freq 100 '*) M=60.01;; *'--freq 60 '*) M=55.2;; *) M=55.1;; esac
        echo "$*" | sed 's/.*--freq \([^ ]*\).*/freq \1/' >>"$0.calls"; cat pins.lpf >/dev/null && sed "s/MHZ/$M/" "$0.report" >report.json"#;
    tools.install(nextpnr, nextpnr.name, places, ("report", &report));
    tools.install(nextpnr, "yowasp-ecppack", r#"for out; do :; done; printf 'bits\377' >$out"#, ("text", ""));
    tools
}

/// The highest step is found by going down; what is known is not looked for again; the folder has all that was made.
#[test]
fn a_bitstream_has_the_highest_clock_that_is_met() {
    let tools = for_boards();
    let text = tools.good("--bitstream out");
    assert!(text.contains("55 MHz; 55.1 MHz would be possible"), "{text}");
    assert_eq!(tools.calls(), ["synthesis", "synthesis", "synthesis", "freq 100", "freq 60", "freq 55"]);
    let out = tools.0.path().join("out");
    let mut names: Vec<String> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["board.json", "board.v", "heddle.bit", "heddle.v", "pins.lpf"]);
    assert_eq!(fs::read(out.join("heddle.bit")).unwrap(), b"bits\xff");
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    assert!(read("board.v").contains("heddle_uart top (") && read("heddle.v").contains("module heddle_uart"));
    let json: Value = serde_json::from_str(&read("board.json")).unwrap();
    for (name, value) in [("clock_khz", 55_000), ("baud", 115_200), ("divisor", 477), ("luts", 2), ("core_luts", 1)] {
        assert_eq!(json[name], value, "{name} of {json}");
    }
    assert_eq!((&json["memory_bram"], &json["mhz"]), (&1.into(), &55.1.into()));
    assert_eq!(serde_json::from_str::<Value>(&tools.good("--bitstream out --json")).unwrap(), json);
    assert_eq!(tools.calls().len(), 6, "it is known");
    assert!(tools.good("--bitstream out --clock 50").contains("50 MHz; 55.1 MHz would"));
    assert_eq!(tools.left(), 0);
}

#[test]
fn bitstreams_that_cannot_be() {
    let tools = for_boards();
    let core = "--lanes 1 --warps 1 ";
    let error = |arguments: &str| tools.bad(&format!("--bitstream out {arguments}"));
    let slow = error("--clock 75 --seeds 3");
    assert!(
        slow.starts_with(core) && slow.ends_with("on ulx3s-85f: too slow for 75 MHz: 55.1 MHz were reached"),
        "{slow}"
    );
    let placed = tools.calls().iter().filter(|call| *call == "freq 75").count();
    assert_eq!(placed, 3, "{:?}", tools.calls());
    let none = error("--clock 51");
    assert!(none.ends_with("the board has no clock of 51 MHz; the nearest are 50 MHz and 53.125 MHz"), "{none}");
    assert!(error("--clock x").contains("wanted is a number of MHz"));
    assert_eq!(error("--seeds 0"), "--bitstream needs place and route: --seeds 1 or more");
    assert_eq!(error("--bus 32"), "--bus: no board here has memory on a bus");
    let mut command = tools.0.command("synth --bitstream out --core=--lanes=1 --core=--lanes=2");
    assert!(tools.0.bad_command(&mut command).starts_with("--bitstream is for one core, and 2 are asked for"));
    let calls = tools.calls().len();
    tools.0.file("file", b"");
    assert_eq!(tools.bad("--bitstream file"), "cannot write folder file: it is there and not a folder");
    assert!(tools.bad("--bitstream /proc/heddle").starts_with("cannot write folder /proc/heddle"));
    assert_eq!(tools.calls().len(), calls, "before any work");

    let nextpnr = &Board::ALL[0].family.nextpnr;
    tools.install(nextpnr, "yowasp-ecppack", "echo 'ERROR: no such tile'; exit 1", ("text", ""));
    assert!(error("--clock 40").ends_with("yowasp-ecppack failed: no such tile"), "{}", error("--clock 40"));
    let many: String = (0..209).map(|k| format!(r#""r{k}": {{"type": "DP16KD"}}, "#)).collect();
    let cells = CELLS.replacen(r#""rst_LUT4_Z""#, &format!(r#"{many}"rst_LUT4_Z""#), 1);
    tools.install(&YOSYS, "python", MAPS, ("cells", &cells));
    let full = error("--clock 35");
    assert!(full.ends_with(" does not fit ulx3s-85f: 210 block RAMs wanted, 208 there"), "{full}");
    assert!(!tools.0.path().join("out").exists());
    assert_eq!(tools.left(), 0);
}

/// What is over is named, and the largest core that fits, which the smallest tell first.
#[test]
fn the_largest_core_that_fits_is_told() {
    let tools = Tools::new();
    let counts = r#"N=$(sed -n 's/.*(lane_i = 0; lane_i < \([0-9]*\);.*/\1/p' heddle.v | head -1); echo "$N lanes" >>"$0.calls"
        RAM=$(seq $((60 * N)) | sed 's/.*/"r&": {"type": "DP16KD"},/'); echo netlist >netlist.json
        echo '{"modules": {"heddle": {"cells": {}}, "board": {"cells": {}}}}' >rest.json
        echo "{\"modules\": {\"heddle\": {\"cells\": {$RAM \"a\": {\"type\": \"LUT4\"}}},
            \"board\": {\"cells\": {$RAM \"a\": {\"type\": \"LUT4\"}}}}}" >cells.json"#;
    tools.install(&YOSYS, "python", counts, ("cells", ""));
    let error = |arguments: &str| {
        let mut command = tools.0.command(&format!("synth {arguments}"));
        let output = command.env("HEDDLE_CACHE", tools.cache()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let over = " does not fit ulx3s-85f: 480 block RAMs wanted, 208 there; --lanes 2 --warps 8 fits, by the cells after synthesis\n";
    let told = error("--json");
    assert!(told.ends_with(over), "{told}");
    assert_eq!(tools.calls(), ["8 lanes", "1 lanes", "2 lanes", "4 lanes"]);
    let told = error("--bitstream out");
    assert!(told.ends_with(over), "{told}");
    assert!(!tools.0.path().join("out").exists());
    let told = error("--bitstream out --board colorlight-i5 --lanes 4 --warps 2 --memory 16K");
    assert!(told.ends_with("; nor does any with fewer lanes and warps\n"), "{told}");
}

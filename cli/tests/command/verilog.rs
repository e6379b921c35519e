//! `heddle gen` as a user sees it, and Verilator's opinion of what it writes.

use crate::common::*;
use heddle_sim::verilator::{Tool, cache};
use heddle_verilated::Verilog;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// By every Verilator that is found.
#[test]
fn verilog_is_lint_clean() {
    let place = Place::new();
    let shapes = [
        "--lanes 4 --warps 2",
        "--lanes 4 --warps 2 --bus 64",
        "--lanes 1 --warps 1",
        "--lanes 4 --warps 4 --divergence block-stack",
        "--lanes 2 --warps 2 --divergence dual-path --metrics",
        "--lanes 4 --warps 2 --host 50000",
        "--lanes 1 --warps 2 --host 50000 --metrics --convergence-barriers 2",
        "--lanes 2 --warps 1 --host 0 --divergence stack --bus 32",
    ];
    let tools = Tool::found().unwrap();
    if tools.is_empty() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: lint of the Verilog, which needs verilator");
    }
    for shape in shapes {
        place.good(&format!("gen {shape} --out build/"));
        assert!(place.path().join("build/heddle.f").is_file());
        for tool in &tools {
            let _ = writeln!(std::io::stderr(), "lint by {tool}: {shape}");
            lint_is_clean(&place, tool);
        }
        fs::remove_dir_all(place.path().join("build")).unwrap();
    }
}

fn lint_is_clean(place: &Place, tool: &Tool) {
    let mut command = tool.command();
    let lint =
        command.current_dir(place.path()).args(["--lint-only", "-Wall", "-f", "build/heddle.f"]).output().unwrap();
    let text = String::from_utf8_lossy(&lint.stderr);
    assert!(lint.status.success() && text.is_empty(), "{tool}: {text}");
}

/// FuseSoC, where `./test` installs it or on the path, or nothing and a note.
fn fusesoc() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([cache().join("fusesoc/bin")]);
    let found = folders.map(|folder| folder.join("fusesoc")).find(|program| program.is_file());
    if found.is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: a core file in FuseSoC, which is not installed");
    }
    found
}

/// FuseSoC finds the core and lints it; and says so if it is not clean.
#[test]
fn fusesoc_lints_the_core() {
    let place = Place::new();
    place.good("gen --lanes 1 --warps 1 --host 50000 --out build --fusesoc");
    let core = fs::read_to_string(place.path().join("build/heddle.core")).unwrap();
    let files = core.lines().filter_map(|line| line.strip_prefix("      - "));
    let files: Vec<&str> = files.collect();
    assert!(files.len() > 5 && files.iter().all(|file| place.path().join("build").join(file).is_file()), "{core}");
    assert!(core.contains("toplevel: heddle_host\n"), "{core}");
    let (Some(fusesoc), Ok(_)) = (fusesoc(), Tool::selected()) else { return };
    let lint = || {
        let mut command = Command::new(&fusesoc);
        command.args(["--cores-root", "build", "run", "--target=lint", "heddle"]).current_dir(place.path());
        // Its settings are those of nobody.
        let output = command.env("XDG_CONFIG_HOME", place.path()).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        (output.status.success(), said)
    };
    let (clean, said) = lint();
    assert!(clean && !said.contains("%Warning"), "{said}");
    let alu = place.path().join("build/alu.v");
    let text = fs::read_to_string(&alu).unwrap();
    fs::write(&alu, text.replacen("endmodule", "  wire [1:0] unread = 2'd1;\nendmodule", 1)).unwrap();
    let (clean, said) = lint();
    assert!(!clean && said.contains("unread"), "{said}");
}

/// As `examples/rust-hdl` says: the wrapper is built, rust-hdl's own checks pass, and its Verilog runs the program.
/// With `HEDDLE_LONG=1`, since rust-hdl is fetched and built for it.
#[test]
fn rust_hdl_instantiates_the_core() {
    if std::env::var_os("HEDDLE_LONG").is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the core in rust-hdl, which HEDDLE_LONG=1 asks for");
        return;
    }
    let place = Place::new();
    let example = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/rust-hdl"));
    fs::create_dir(place.path().join("src")).unwrap();
    for file in ["Cargo.toml", "src/main.rs"] {
        fs::copy(example.join(file), place.path().join(file)).unwrap();
    }
    let main = fs::read_to_string(example.join("src/main.rs")).unwrap();
    let line = main.lines().find_map(|line| line.strip_prefix("//! heddle ")).expect("the command");
    place.good(line.split('#').next().unwrap());
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--target-dir", concat!(env!("CARGO_TARGET_TMPDIR"), "/rust-hdl")]);
    assert!(cargo.current_dir(place.path()).status().unwrap().success(), "{cargo:?}");
    if Tool::selected().is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the Verilog of rust-hdl, which needs verilator");
        return;
    }
    let list = fs::read_to_string(place.path().join("build/heddle.f")).unwrap();
    let files = list.lines().filter(|line| !line.starts_with("//")).chain(["build/top.v"]);
    let design = files.fold(Verilog::new("top"), |design, file| design.file(place.path().join(file)));
    let mut top = design.argument("-Wno-fatal").argument("-Wno-lint").model().unwrap();
    let cycles = top.run_until("done", 1000);
    assert_eq!((top.get("done"), top.get("fault")), (1, 0), "after {cycles} cycles");
    assert!(cycles > 10, "{cycles}");
}

#[test]
fn every_listed_file_is_there() {
    let place = Place::new();
    place.good("gen vecadd --lanes 2 --warps 1 --out a/b");
    let list = fs::read_to_string(place.path().join("a/b/heddle.f")).unwrap();
    let launched = list.lines().nth(1).unwrap();
    assert!(launched.starts_with("// vecadd: entry = 0, program_end = "), "{launched}");
    assert!(launched.ends_with(", blocks = 1, block_threads = 2"), "{launched}");
    let files: Vec<&str> = list.lines().filter(|line| !line.starts_with("//")).collect();
    assert!(files.len() > 5, "{list}");
    for file in files {
        assert!(place.path().join(file).is_file(), "{file}");
    }
}

/// The module that the page shows is what is written.
#[test]
fn the_page_has_a_module_as_it_is() {
    let place = Place::new();
    place.good("gen --lanes 16 --warps 4 --out o");
    let module = fs::read_to_string(place.path().join("o/writeback_align.v")).unwrap();
    let page = include_str!("../../../docs/reference/verilog.md");
    assert!(page.contains(&module), "{module}");
}

#[test]
fn all_modules_in_one_file_beside_what_is_there() {
    let place = Place::new();
    fs::create_dir(place.path().join("o")).unwrap();
    fs::write(place.path().join("o/mine.v"), "").unwrap();
    place.good("gen --lanes 1 --warps 1 --out o --single-file");
    let mut names: Vec<String> =
        fs::read_dir(place.path().join("o")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["bank_0.hex", "heddle.f", "heddle.v", "instructions.hex", "mine.v"]);
}

#[test]
fn memory_images_hold_program_and_inputs() {
    let place = Place::new();
    place.good("gen vecadd --lanes 2 --warps 1 --out o");
    let lines = |name: &str| fs::read_to_string(place.path().join("o").join(name)).unwrap().lines().count();
    assert_eq!(lines("instructions.hex"), (64 << 10) / 4);
    assert_eq!(lines("bank_0.hex") + lines("bank_1.hex"), (512 << 10) / 4);
}

/// A line for each instruction: the reconvergence pc lies lowest. `collatz` has a branch that is told of one.
#[test]
fn stacks_come_with_their_side_table() {
    let place = Place::new();
    place.good("gen collatz --lanes 2 --warps 1 --program 128K --divergence stack --out o");
    let text = fs::read_to_string(place.path().join("o/side_table.hex")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), (128 << 10) / 4);
    // Two pcs of 15 bits, and 3 bits.
    assert!(lines.iter().all(|line| line.len() == 33usize.div_ceil(4)));
    let json = place.good("reconverge collatz --json");
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().map(|address| address as usize / 4);
    let entries = found["side_table"].as_array().unwrap();
    let meetings: Vec<_> = entries.iter().filter_map(|e| Some((number(&e["pc"])?, number(&e["rpc"]["at"])?))).collect();
    assert!(!meetings.is_empty(), "{found}");
    for (pc, rpc) in meetings {
        assert_eq!(usize::from_str_radix(lines[pc], 16).unwrap() & 0x7fff, rpc, "{}", lines[pc]);
    }
    place.good("gen collatz --lanes 2 --warps 1 --out p");
    assert!(!place.path().join("p/side_table.hex").exists());
}

/// Bit by bit, what of the side table is read with instructions: above a pc and a bit. A core of one warp has none.
#[test]
fn slack_comes_with_what_is_uniform() {
    let place = Place::new();
    let slack = "--program 64K --divergence block-stack --compaction predict --slack 2";
    place.good(&format!("gen collatz --lanes 2 --warps 2 {slack} --out o"));
    let lines = |name: &str| -> Vec<u64> {
        let text = fs::read_to_string(place.path().join("o").join(name)).unwrap();
        text.lines().map(|line| u64::from_str_radix(line, 16).unwrap()).collect()
    };
    let [side, uniform] = ["side_table.hex", "uniform.hex"].map(lines);
    assert_eq!(side.iter().map(|entry| entry >> 15 & 1).collect::<Vec<_>>(), uniform);
    assert!(uniform.contains(&1) && uniform.contains(&0));
    place.good(&format!("gen collatz --lanes 2 --warps 1 {slack} --out p"));
    assert!(!place.path().join("p/uniform.hex").exists());
    let one = place.good(&format!("run collatz --lanes 2 --warps 1 {slack} --json"));
    assert!(one.contains("\"cycles\""), "{one}");
}

/// The bus of a core, without what simulations put on it.
#[test]
fn memory_on_a_bus_is_outside() {
    let place = Place::new();
    place.good("gen vecadd --lanes 2 --warps 1 --bus 32 --out o");
    let read = |name: &str| fs::read_to_string(place.path().join("o").join(name)).unwrap();
    assert_eq!(read("memory.hex").lines().count(), (512 << 10) / 4);
    assert!(read("heddle.v").contains("output wire wb_stb_o"));
    let list = read("heddle.f");
    assert!(list.contains("o/wishbone.v") && !list.contains("slave") && !list.contains("rules"), "{list}");
    let refused = place.bad("gen --bus 32 --memory-model latency=9 --out p");
    assert!(refused.starts_with("--memory-model is for simulations only"), "{refused}");
    for with in ["", " --memory-model latency=9", " --bus 32"] {
        let refused = place.bad(&format!("gen --second-level 64K{with} --out p"));
        assert!(refused.starts_with("--second-level is for simulations only"), "{refused}");
    }
}

#[test]
fn bad_folders() {
    let place = Place::new();
    place.file("file", b"");
    assert_eq!(place.bad("gen --out file"), "cannot write folder file: it is there and not a folder");
    fs::create_dir_all(place.path().join("there/heddle.f")).unwrap();
    assert_eq!(place.bad("gen --out there"), "cannot write folder there: heddle.f in it is a folder");
    assert_eq!(fs::read_dir(place.path().join("there")).unwrap().count(), 1, "nothing is half-written");
    assert!(place.bad("gen --out file/x").starts_with("cannot write folder file/x: "));
    assert!(place.bad("gen --out /proc/heddle").starts_with("cannot write folder /proc/heddle: "));
    assert!(place.bad("gen").contains("--out <DIR>"));
    assert!(place.bad("gen vecad --out o").contains("did you mean `vecadd`?"));
    assert!(place.bad("gen --lanes 5 --out o").starts_with("lanes = 5"));
}

//! Post-synthesis: the netlist that Yosys makes of a core with a host, in Verilator beside models of the device's
//! cells, runs kernels that come over its stream of bytes. And blocks are proven to be what their netlists are.

use heddle_check::synth::{self, Error, Session, Synthesis, simulate};
use heddle_gen::Files;
use heddle_hdl::netlist::Module;
use heddle_sim::Checks;
use heddle_sim::Simulation;
use heddle_sim::directory::Directory;
use heddle_sim::simulation::Options;
use heddle_sim::verilator::{BuildError, Optimise, Recipe, Tool, Verilator};
use heddle_simt::host::Identity;
use heddle_simt::hosted::hosted;
use heddle_simt::system::system;
use heddle_simt::{Metrics, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels;
use heddle_testbench::remote::simulated::Streams;
use heddle_testbench::remote::{Board, Patience};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const CLOCK_KHZ: u32 = 1000;
const PATIENCE: Patience = Patience {
    reply: Duration::from_millis(2),
    byte: Duration::ZERO,
    quiet: Duration::from_micros(200),
    attempts: 2,
    launch: Duration::from_secs(100),
    poll: Duration::from_millis(20),
};
/// 32 KiB for program, data and stacks.
fn small(lanes: u32, warps: u32) -> Shape {
    Shape { program: 8 << 10, memory: 32 << 10, stack: 512, metrics: Metrics::Off, ..Shape::new(lanes, warps) }
}

fn skipped(why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: post-synthesis simulation: {why}");
}

/// The netlist, or nothing and a note where there is no Yosys.
fn mapped(board: &str, top: &Arc<Module>) -> Option<Files> {
    let session = Session { stop: &|| false, says: &|_| {}, again: false };
    match simulate::netlist(synth::Board::find(board).unwrap(), top, session) {
        Err(error @ (Error::Missing(..) | Error::Install(..))) => {
            skipped(error);
            None
        }
        files => Some(files.unwrap_or_else(|error| panic!("{error}"))),
    }
}

fn model(top: &Arc<Module>, files: &Files, optimise: Optimise) -> Option<Verilator> {
    let recipe = Recipe { optimise, probes: false, ..Recipe::default() };
    match Verilator::of_files(&Arc::new(Directory::new(top)), 1, recipe, files) {
        Err(missing @ BuildError::Missing { .. }) => {
            skipped(missing);
            None
        }
        model => Some(model.unwrap_or_else(|error| panic!("{error}"))),
    }
}

/// Each kernel with its driver and checks: on the netlist, and in as many cycles as in the simulation of the
/// description.
fn runs(board: &str, shape: &Shape, names: &[&str], optimise: Optimise) {
    let top = hosted(shape, Identity { clock_khz: CLOCK_KHZ }).check().unwrap().netlist;
    let Some(verilog) = mapped(board, &top).and_then(|files| model(&top, &files, optimise)) else { return };
    let options = Options { seed: 1, checks: Checks::Assertions, ..Options::default() };
    let described = Simulation::new(&top, &options).unwrap();
    let program = |name: &str| Program::parse(kernels::find(name).unwrap().elf).unwrap();
    let board = |simulation| {
        Board::new(Streams::new(simulation, CLOCK_KHZ).unwrap(), PATIENCE, shape, program(names[0])).unwrap()
    };
    let [mut mapped, mut described] = [board(Simulation::over(Box::new(verilog), 1)), board(described)];
    for (place, name) in names.iter().enumerate() {
        for board in [&mut mapped, &mut described] {
            if place > 0 {
                board.load(program(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            let output = (kernels::find(name).unwrap().drive)(board, 1);
            assert!(output.unwrap_or_else(|error| panic!("{name}: {error}")).checked > 0);
        }
        assert_eq!(mapped.cycles(), described.cycles(), "{name}");
    }
    let cycles = mapped.client().line().simulation().engine().cycle();
    let _ = writeln!(std::io::stderr(), "{} cycles of a netlist: {names:?} on {}", cycles, shape.options());
}

/// A kernel of few cycles: a netlist is slow.
#[test]
fn the_netlist_of_a_small_core_runs_a_kernel() {
    let small = Shape { memory: 16 << 10, program: 4 << 10, stack: 256, scratchpad: 0, loads: 2, ..small(1, 1) };
    runs("ulx3s-85f", &Shape { atomics: false, barriers: false, ..small }, &["spmv"], Optimise::O0);
}

fn long(board: &str) {
    if std::env::var_os("HEDDLE_LONG").is_none() {
        skipped(format_args!("4 lanes × 4 warps on {board}, which HEDDLE_LONG=1 asks for"));
        return;
    }
    runs(board, &small(4, 4), &["if_else", "spmv", "loop_merge"], Optimise::O1);
}

/// With `HEDDLE_LONG=1`.
#[test]
fn the_netlist_of_a_larger_core_runs_kernels_on_an_ecp5() {
    long("ulx3s-85f");
}

/// With `HEDDLE_LONG=1`. The device has no room for it, but its cells are simulated.
#[test]
fn the_netlist_of_a_larger_core_runs_kernels_on_an_ice40() {
    long("icebreaker");
}

/// Blocks against what Yosys maps them to, proven: those that take seconds.
#[test]
fn blocks_are_equivalent_to_their_netlists() {
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    let quick = ["alu", "coalesce", "scoreboard", "writeback_align"];
    let slow = ["ccs", "barrier", "decode", "place", "steer", "divider_lane", "network_bank", "path_table", "issue"];
    let shape = Shape { metrics: Metrics::Off, ..Shape::new(4, 2) };
    let top = system(&shape).check().unwrap().netlist;
    let session = Session { stop: &|| false, says: &|_| {}, again: false };
    let boards = ["ulx3s-85f", "icebreaker"].map(|name| synth::Board::find(name).unwrap());
    for board in &boards[..if long { 2 } else { 1 }] {
        let synthesis = Synthesis::new(board, &top, session);
        for block in quick.iter().chain(slow.iter().filter(|_| long)) {
            match synthesis.is_equivalent(block, synthesis.verilog()) {
                Err(error @ (Error::Missing(..) | Error::Install(..))) => return skipped(error),
                proven => assert!(proven.unwrap_or_else(|error| panic!("{block}: {error}")) > 1, "{block}"),
            }
        }
    }
    // One that is not is found: the block that is mapped subtracts.
    let synthesis = Synthesis::new(boards[0], &top, session);
    let (before, alu) = synthesis.verilog().split_once("\nmodule alu ").unwrap();
    let mapped = format!("{before}\nmodule alu {}", alu.replacen(" + ", " - ", 1));
    let error = synthesis.is_equivalent("alu", &mapped).unwrap_err().to_string();
    assert!(error.contains("unproven $equiv cells"), "{error}");
}

/// What the models of cells do not describe is refused, not simulated as something else.
#[test]
fn a_mode_without_a_model_is_an_error() {
    let Ok(tool) = Tool::selected() else { return skipped("verilator is not installed") };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("models");
    std::fs::create_dir_all(&folder).unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/synth/models/ecp5.v");
    let lint = |cell: &str| {
        let file = folder.join("top.v");
        std::fs::write(&file, format!("module top (input clk, output q);\n  {cell};\nendmodule\n")).unwrap();
        let mut command: Command = tool.command();
        command
            .args(["--lint-only", "-sv", "-Wno-lint", "-Wno-style", "-Wno-MULTIDRIVEN", "--top-module", "top"])
            .arg(&file)
            .arg(&models);
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let ram = |parameter: &str| lint(&format!("DP16KD #({parameter}) ram (.CLKA(clk), .DOA0(q))"));
    let (fine, said) = ram(r#".DATA_WIDTH_A(9), .RESETMODE("ASYNC"), .WRITEMODE_A("READBEFOREWRITE")"#);
    assert!(fine, "{said}");
    for (parameter, says) in [
        (".DATA_WIDTH_A(3)", "no model of widths 3 and 18"),
        (r#".REGMODE_B("OUTREG")"#, "no model of output registers"),
        (r#".CSDECODE_A("0b001")"#, "no model of chip selects"),
        (r#".CLKAMUX("INV")"#, "no model of an inverted clock"),
        (r#".WRITEMODE_B("FAST")"#, "no model of WRITEMODE"),
    ] {
        let (fine, said) = ram(parameter);
        assert!(!fine && said.contains(says), "{parameter}: {said}");
    }
    let (fine, said) = lint(r#"MULT18X18D #(.REG_OUTPUT_CLK("CLK0")) m (.A0(clk), .P0(q))"#);
    assert!(!fine && said.contains("no model of registers"), "{said}");
    let (fine, said) = lint("MULT18X18D m (.A0(clk), .SRIA0(clk), .P0(q))");
    assert!(!fine && said.contains("SRIA0"), "{said}");
}

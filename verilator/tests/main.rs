//! Verilog that nobody generated, compiled and driven; and what cannot be, in one line.

use heddle_verilated::{BuildError, Direction, Optimise, Verilog};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

/// Whether there is a Verilator; says so if not.
fn is_there() -> bool {
    let tool = heddle_verilated::Tool::selected();
    if let Err(error) = &tool {
        // Of what a test prints itself, nothing is seen if it passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {error}");
    }
    tool.is_ok()
}

const COUNTER: &str =
    "module counter #(parameter STEP = 1) (input clock, input rst, output reg [7:0] count, output [99:0] wide);
    reg [11:0] table_of [0:15];
    assign wide = {92'd5, count};
    initial table_of[3] = 12'd77;
    always @(posedge clock) begin
        count <= rst ? 0 : count + STEP;
        if (count == 40) $stop;
    end
endmodule\n";

fn counter() -> Verilog {
    Verilog::new("counter").source("counter.v", COUNTER).clock("clock").optimise(Optimise::O0)
}

/// What it panics with.
fn panics(what: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(what)).expect_err("it panics");
    let text = panic.downcast_ref::<String>().cloned();
    text.or(panic.downcast_ref::<&str>().map(|text| text.to_string())).expect("a message")
}

#[test]
fn ports_clock_memories_and_parameters() {
    if !is_there() {
        return;
    }
    let library = counter().parameter("STEP", 3).visible("counter", "table_of").library().unwrap();
    let mut t = library.model();
    let names: Vec<(&str, Direction, u32)> =
        t.ports().iter().map(|p| (p.name.as_str(), p.direction, p.width)).collect();
    assert!(names.contains(&("clock", Direction::Input, 1)) && names.contains(&("wide", Direction::Output, 100)));
    t.set("rst", 1);
    t.step();
    t.set("rst", 0);
    t.steps(5);
    t.eval();
    assert_eq!((t.get("count"), t.cycles()), (15, 6));
    assert_eq!(t.get_wide("wide"), [5 << 8 | 15, 0]);
    assert_eq!((t.memory_read("table_of", 3), t.memory_read("table_of", 0)), (77, 0));
    t.memory_write("table_of", 15, 0xabc);
    assert_eq!(t.memory_read("table_of", 15), 0xabc);
    // Another model of the same build has a state of its own.
    let mut other = library.model();
    other.set("rst", 1);
    other.step();
    other.eval();
    assert_eq!((other.get("count"), t.get("count"), other.memory_read("table_of", 15)), (0, 15, 0));

    assert_eq!(panics(|| t.set("rest", 1)), "there is no input `rest`; there is clock, rst");
    assert_eq!(panics(|| t.set("rst", 2)), "input `rst` has 1 bits, and 0x2 does not fit");
    assert_eq!(panics(|| _ = t.get("wide")), "`wide` has 100 bits: `get_wide` gives them");
    assert_eq!(panics(|| _ = t.memory_read("table_of", 16)), "word 16 is beyond `table_of`, which has 16");
    assert!(panics(|| _ = t.memory_read("nothing", 0)).starts_with("there is no memory `nothing`"));
}

#[test]
fn verilog_that_stops_says_where() {
    if !is_there() {
        return;
    }
    let mut t = counter().model().unwrap();
    t.set("rst", 1);
    t.step();
    t.set("rst", 0);
    t.steps(40);
    let stopped = t.try_step().unwrap_err().to_string();
    assert!(stopped.contains("counter.v:7: $stop"), "{stopped}");
}

#[test]
fn what_cannot_be_built_is_one_line() {
    if !is_there() {
        return;
    }
    let line = |verilog: Verilog| {
        let error = verilog.library().err().expect("it is refused").to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let broken =
        line(Verilog::new("broken").source("broken.v", "module broken(input a);\n  assign b = ;\nendmodule\n"));
    assert!(broken.contains("broken.v:2") && broken.contains("syntax error"), "{broken}");
    assert_eq!(
        line(Verilog::new("pad").source("pad.v", "module pad(inout a); endmodule\n")),
        "port `a` is an inout, which is not supported"
    );
    assert_eq!(line(counter().clock("tick")), "`counter` has no input `tick` for the clock");
    assert_eq!(line(Verilog::new("empty")), "`empty` has no source: `file` or `source` adds one");
    assert_eq!(line(counter().source("counter.v", "")), "two sources are called `counter.v`");
    assert_eq!(line(counter().source("../x.v", "")), "a source is called `../x.v`, which is no name of a file");
    let gone = line(Verilog::new("gone").file("gone.v"));
    assert!(gone.starts_with("cannot read gone.v: "), "{gone}");
    let waves = counter().model().unwrap().wave(std::path::Path::new("/nowhere/x.vcd")).unwrap_err();
    assert!(matches!(waves, BuildError::Write { .. }), "{waves}");
}

/// Without Verilator, and with one that is none, there is one line that says what to do. In a process of its own, which
/// has another path.
#[test]
fn without_verilator_it_says_how_to_get_it() {
    const ASKED: &str = "ASKED_FOR_A_TOOL";
    if std::env::var_os(ASKED).is_some() {
        println!("told: {}", heddle_verilated::Tool::selected().expect_err("there is none"));
        return;
    }
    let told = |path: &str, selected: &str| {
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "without_verilator_it_says_how_to_get_it", "--nocapture"])
            .envs([(ASKED, "yes"), ("PATH", path), ("HEDDLE_VERILATOR", selected)])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        let line = text.lines().find_map(|line| line.split("told: ").nth(1));
        line.unwrap_or_else(|| panic!("{text}")).to_string()
    };
    assert_eq!(told("/nowhere", ""), "verilator is not installed; on Debian: apt-get install verilator g++ make");
    assert_eq!(told("/nowhere", "/nowhere/verilator"), "HEDDLE_VERILATOR names /nowhere/verilator, which is not there");
    let another = told("/usr/bin:/bin", "false");
    assert!(another.starts_with("HEDDLE_VERILATOR names false, which does not tell its version: "), "{another}");
}

/// The example does what it says.
#[test]
fn the_example_runs() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--release", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .args(["--example", "verilog_fifo"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(
        text.starts_with("1001 cycles, no difference; word 0 is "),
        "{text}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(folder.path().join("fifo.vcd").exists());
}

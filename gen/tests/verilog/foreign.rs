//! Foreign Verilog: instances, declarations without contents, and who makes clock and reset. What tools say to it is
//! tested in `heddle-sim`.

use heddle_gen::{Files, Options, verilog};
use heddle_hdl::{Parameter, each, prelude::*};

#[derive(Bundle, Clone, Copy)]
struct Standby<T> {
    standby: T,
}

#[derive(Bundle, Clone, Copy)]
struct Status<T> {
    lock: T,
}

#[derive(Bundle, Clone, Copy)]
struct Count<T> {
    count: T,
}

fn pll() -> TypedModule<Standby<Width>, Status<Signal>> {
    let stub = module("pll_50", Standby { standby: 1 }, |_, i| Status { lock: !i.standby });
    let cell = Foreign::new("EHXPLLL").upper_case().port("standby", "STDBY");
    let cell = cell.parameter("CLKI_DIV", 1).parameter("FEEDBK_PATH", "CLKOP").attribute("FREQUENCY_PIN_CLKOP", "50");
    stub.stands_for(cell.clock("CLKFB").clock_pin("CLKI", "clk_25mhz").gives_clock("CLKOP"))
}

fn files(board: TypedModule<Standby<Width>, Count<Signal>>, stubs: bool) -> Files {
    verilog(&board.check().unwrap().netlist, &Options { stubs, ..Options::default() })
}

fn board() -> TypedModule<Standby<Width>, Count<Signal>> {
    module("board", Standby { standby: 1 }, |m, i| {
        let status = m.instance("pll", &pll(), i);
        wire!(start = !m.pipe("locked", status.lock));
        m.reset_from(start);
        let count = m.reg("count", 8).reset(0u32);
        wire!(more = count.q + 1);
        count.next(more);
        Count { count: count.q }
    })
}

#[test]
fn a_clock_and_a_reset_made_in_the_top_module() {
    let files = files(board(), false);
    let want = r#"module board (
  input  wire clk_25mhz,
  input  wire standby,
  output reg  [7:0] count
);
  wire clk;
  wire rst;
  reg  locked;
  wire pll_lock;
  wire start = ~locked;
  wire [7:0] more = count + 8'h1;
  always @(posedge clk) begin
    locked <= pll_lock;
  end
  always @(posedge clk) begin
    if (rst) begin
      count <= 8'h0;
    end else begin
      count <= more;
    end
  end
  (* FREQUENCY_PIN_CLKOP = "50" *)
  EHXPLLL #(
    .CLKI_DIV(1),
    .FEEDBK_PATH("CLKOP")
  ) pll (
    .CLKI(clk_25mhz),
    .CLKOP(clk),
    .CLKFB(clk),
    .STDBY(standby),
    .LOCK(pll_lock)
  );
  assign rst = start;
endmodule
"#;
    assert_eq!(files.sources, [("board.v".to_string(), want.to_string())]);
    let want = r#"(* blackbox *)
module EHXPLLL #(
  parameter CLKI_DIV = 1,
  parameter FEEDBK_PATH = "CLKOP"
) (
  input  wire CLKI,
  input  wire CLKFB,
  input  wire STDBY,
  output wire CLKOP,
  output wire LOCK
);
  assign CLKOP = 1'd0;
  assign LOCK = 1'd0;
  wire unused = &{1'b0, CLKI, CLKFB, STDBY, CLKI_DIV == CLKI_DIV, FEEDBK_PATH == FEEDBK_PATH};
endmodule
"#;
    assert_eq!(files.blackboxes, want);
}

#[test]
fn with_stubs_clock_and_reset_come_from_outside() {
    let files = files(board(), true);
    assert_eq!(files.blackboxes, "");
    let names: Vec<&str> = files.sources.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["pll_50.v", "board.v"]);
    let want = r#"module board (
  input  wire clk,
  input  wire rst,
  input  wire standby,
  output reg  [7:0] count
);
  wire pll_lock;
  wire [7:0] more = count + 8'h1;
  always @(posedge clk) begin
    if (rst) begin
      count <= 8'h0;
    end else begin
      count <= more;
    end
  end
  pll_50 pll (
    .clk(clk),
    .rst(rst),
    .standby(standby),
    .lock(pll_lock)
  );
  wire unused = &{1'b0, pll_lock};
endmodule
"#;
    assert_eq!(files.sources[1].1, want);
    let netlist = board().check().unwrap().netlist;
    let cosim = verilog(&netlist, &Options { cosim: true, ..Options::default() }).single();
    assert!(cosim.contains("module pll_50") && !cosim.contains("EHXPLLL"), "{cosim}");
}

#[test]
fn an_oscillator_needs_no_pin() {
    let stub = module("oscillator", Standby { standby: 1 }, |_, i| Status { lock: i.standby });
    let oscillator = stub.stands_for(Foreign::new("OSCG").upper_case().gives_clock("OSC"));
    let top = module("board", Standby { standby: 1 }, |m, i| {
        let status = m.instance("oscillator", &oscillator, i);
        Count { count: m.pipe("count", status.lock) }
    });
    let text = files(top, false).single();
    let ports = "module board (\n  input  wire rst,\n  input  wire standby,\n  output reg  count\n);\n  wire clk;\n";
    assert!(text.starts_with(ports), "{text}");
    assert!(text.contains("OSCG oscillator (\n    .OSC(clk),\n    .STANDBY(standby),"), "{text}");
}

#[test]
fn copies_odd_names_values_of_all_kinds_and_reset_of_both_polarities() {
    let stub = module("cell_0", Standby { standby: 2 }, |m, i| Status { lock: m.pipe("late", i.standby) });
    let cell = Foreign::new("odd.cell").port("standby", "in").port("lock", "do").clock("CK").reset("R").reset_low("RN");
    let cell = cell.parameter("INIT", Parameter::bits(0xa5u32, 12)).parameter("RATIO", 2.0).parameter("SKEW", -3);
    let cell = stub.stands_for(cell.parameter("P[0]", "say \"\\\"").attribute("keep", 1));
    let other = module("cell_1", Standby { standby: 2 }, |_, i| Status { lock: i.standby });
    let other_is =
        Foreign::new("odd.cell").port("standby", "in").port("lock", "do").clock("CK").reset("R").reset_low("RN");
    let other = other.stands_for(other_is.parameter("MODE", "FAST"));
    let top = module("board", Standby { standby: 6 }, |m, i| {
        let one = m.replicate("drive", 3, &cell, Standby { standby: each(i.standby) });
        let two = m.instance("other", &other, Standby { standby: i.standby.slice(0, 2) });
        Count { count: cat(&[one.lock, two.lock]) }
    });
    let files = files(top, false);
    let want = r#"    for (drive_i = 0; drive_i < 3; drive_i = drive_i + 1) begin : drive
      (* keep = 1 *)
      \odd.cell  #(
        .INIT(12'ha5),
        .RATIO(2.0),
        .SKEW(-3),
        .\P[0] ("say \"\\\"")
      ) replica (
        .CK(clk),
        .R(rst),
        .RN(~rst),
        .in(standby[drive_i*2 +: 2]),
        .\do (drive_lock[drive_i*2 +: 2])
      );
    end
"#;
    let text = files.single();
    assert!(text.contains(want), "{text}");
    assert!(text.contains("  \\odd.cell  #(\n    .MODE(\"FAST\")\n  ) other (\n    .CK(clk),"), "{text}");
    let parameters = "module \\odd.cell  #(\n  parameter INIT = 12'ha5,\n  parameter RATIO = 2.0,\n  parameter SKEW = -3,\n  \
                      parameter \\P[0]  = \"say \\\"\\\\\\\"\",\n  parameter MODE = \"FAST\"\n) (\n";
    assert!(files.blackboxes.contains(parameters), "{}", files.blackboxes);
    assert!(files.blackboxes.contains("  input  wire RN,\n  input  wire [1:0] in,\n"), "{}", files.blackboxes);
}

#[test]
fn a_foreign_module_without_state_leaves_clock_and_reset_unread() {
    let stub = module("gate", Standby { standby: 1 }, |_, i| Status { lock: i.standby });
    let gate = stub.stands_for(Foreign::new("GATE"));
    let top = module("board", Standby { standby: 1 }, |m, i| Count { count: m.instance("gate", &gate, i).lock });
    let text = files(top, false).single();
    assert!(text.contains("  GATE gate (\n    .standby(standby),\n    .lock(gate_lock)\n  );"), "{text}");
    assert!(text.contains("wire unused = &{1'b0, clk, rst};"), "{text}");
}

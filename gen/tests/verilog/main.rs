//! What the Verilog of small modules looks like. That it means the same as the netlist is tested against Verilator, in
//! `heddle-sim`.

mod foreign;

use heddle_gen::{Options, ToVerilog, cosim_probes, verilog};
use heddle_hdl::{all, each, prelude::*};

#[derive(Bundle, Clone, Copy)]
struct In<T> {
    a: T,
    b: T,
    sel: T,
}

#[derive(Bundle, Clone, Copy)]
struct Out<T> {
    y: T,
}

/// The Verilog of a module with inputs a, b (8 bits) and sel (2 bits).
fn text(body: impl FnOnce(Builder, In<Signal>) -> Signal) -> String {
    let top = module("sample", In { a: 8, b: 8, sel: 2 }, |m, i| Out { y: body(m, i) });
    verilog(&top.check().unwrap().netlist, &Options::default()).single()
}

/// Whether the lines stand in the text one after the other.
#[track_caller]
fn has(text: &str, lines: &[&str]) {
    let all: Vec<&str> = text.lines().map(str::trim).collect();
    let found = all.windows(lines.len()).any(|window| window == lines);
    assert!(found, "{lines:?} is not in\n{text}");
}

#[test]
fn a_whole_module() {
    let text = text(|m, i| {
        m.doc("Counts.");
        let count = m.reg("count", 8).reset(3u32);
        count.next_if(i.sel.bit(0), count.q + i.a);
        count.q
    });
    let want = "\
// Counts.
module sample (
  input  wire clk,
  input  wire rst,
  input  wire [7:0] a,
  input  wire [7:0] b,
  input  wire [1:0] sel,
  output wire [7:0] y
);
  reg  [7:0] count;
  wire [7:0] SUM = count + a;  // main.rs:LINE
  always @(posedge clk) begin
    if (rst) begin
      count <= 8'h3;
    end else begin
      if (sel[0]) count <= SUM;
    end
  end
  assign y = count;
  wire unused = &{1'b0, b, sel[1]};
endmodule
";
    // The unnamed sum has its node's number, and a comment with its line here.
    let sum = text.lines().find(|l| l.contains("count + a")).unwrap();
    let (name, line) = (sum.split_whitespace().nth(2).unwrap(), sum.rsplit(':').next().unwrap());
    assert_eq!(text, want.replace("SUM", name).replace("LINE", line));
}

#[test]
fn growing_operators_have_wires_and_widths_are_written_out() {
    let text = text(|_, i| (i.a.zext(9) + i.b.sext(9)).slice(1, 8));
    assert!(text.contains("{1'd0, a} + {{1{b[7]}}, b}"), "{text}");
}

#[test]
fn a_reduction_of_a_negation_is_not_another_operator() {
    let text = text(|_, i| cat(&[(!i.a).parity(), (!i.b).any(), i.sel]).zext(8));
    assert!(text.contains("^(~a)") && text.contains("|(~b)"), "{text}");
}

#[test]
fn mux_chains_on_one_selector_are_case() {
    let text = text(|_, i| pick([(i.sel.eq(0), i.a), (i.sel.eq(1), i.b), (i.sel.eq(2), i.a & i.b)], i.a | i.b));
    has(&text, &["case (sel)"]);
    assert!(text.contains("default:") && text.matches("2'h").count() == 3, "{text}");
}

#[test]
fn memories_are_arrays_with_their_style_and_collisions() {
    let text = text(|m, i| {
        let memory = m.memory("words", 8, 2).style(MemoryStyle::Block);
        memory.write_granules(i.b.slice(0, 2), i.sel, i.a);
        memory.read_sync(i.sel, Collision::ReadNew)
    });
    has(&text, &["(* ram_style = \"block\" *)", "reg  [7:0] words [0:3];"]);
    assert!(text.contains("words[sel][3:0] <= a[3:0];"), "{text}");
    assert!(text.contains("words_read0[7:4] <= a[7:4];"), "{text}");
}

#[test]
fn what_is_kept_says_so() {
    let text = text(|m, i| {
        wire!(both = i.a & i.b);
        m.keep(both);
        both | i.a
    });
    assert!(text.contains("(* keep *) wire [7:0] both = a & b;"), "{text}");
}

#[test]
fn what_is_not_read_is_zero() {
    let never = text(|m, i| m.memory("words", 8, 2).read_sync_or_zero(i.b.bit(0), i.sel, Collision::Never));
    has(&never, &["(* no_rw_check *)"]);
    assert!(never.contains("if (b[0]) words_read0 <= words[sel];\n    else words_read0 <= 8'h0;"), "{never}");
    let new = text(|m, i| {
        let words = m.memory("words", 8, 2);
        words.write(i.b.bit(1), i.sel, i.a);
        words.read_sync_or_zero(i.b.bit(0), i.sel, Collision::ReadNew)
    });
    assert!(new.contains("words_read0 <= a;\n    end\n    else words_read0 <= 8'h0;"), "{new}");
}

#[test]
fn copies_are_a_loop_and_read_their_part() {
    let lane = module("lane", In { a: 2, b: 8, sel: 1 }, |_, i| Out { y: i.a & i.b.slice(0, 2) & i.sel.repeat(2) });
    let text = text(|m, i| {
        let inputs = In { a: each(i.a), b: all(i.b), sel: each(cat(&[i.sel, i.sel])) };
        m.replicate("lane", 4, &lane, inputs).y
    });
    assert!(text.contains("for (lane_i = 0; lane_i < 4; lane_i = lane_i + 1) begin : lane"), "{text}");
    assert!(text.contains(".a(a[lane_i*2 +: 2])") && text.contains(".b(b)"), "{text}");
}

#[test]
fn what_only_properties_need_is_behind_formal() {
    let text = text(|m, i| {
        let was = m.pipe("was", i.a);
        m.assert("steady", was.eq(i.a));
        i.b
    });
    let (hardware, formal) = text.split_once("`ifdef FORMAL").unwrap();
    assert!(!hardware.contains("was") && formal.contains("was <= a;"), "{text}");
    assert!(formal.contains("assert_steady: assert ((was == a));"), "{text}");
}

#[test]
fn long_contents_are_a_file_named_from_the_folder() {
    let top = module("rom", In { a: 8, b: 1, sel: 1 }, |m, i| {
        let words = (0..200u32).map(Bits::from).collect();
        Out { y: m.memory("table_", 8, 8).init(words).read(i.a) }
    });
    let options = Options { images: "build".into(), ..Options::default() };
    let files = verilog(&top.check().unwrap().netlist, &options);
    assert!(files.single().contains("$readmemh(\"build/rom.table_.hex\", table_)"), "{}", files.single());
    assert_eq!(files.images[0].0, "rom.table_.hex");
    assert_eq!(files.images[0].1.lines().count(), 256);
}

#[test]
fn one_text_has_long_contents_and_modules_before_their_users() {
    let rom = module("rom", In { a: 8, b: 1, sel: 1 }, |m, i| {
        let words = (0..200u32).map(Bits::from).collect();
        Out { y: m.memory("table_", 8, 8).init(words).read(i.a) }
    });
    let top = module("top", In { a: 8, b: 1, sel: 1 }, |m, i| m.instance("rom", &rom, i));
    let text = top.check().unwrap().verilog();
    assert!(
        !text.contains("$readmemh") && text.contains("    table_[199] = 8'hc7;\n    table_[200] = 8'h0;"),
        "{text}"
    );
    assert!(text.find("module rom (").unwrap() < text.find("module top (").unwrap(), "{text}");
}

#[test]
fn probes_of_copies_are_packed_into_ports() {
    let lane = module("lane", In { a: 2, b: 1, sel: 1 }, |m, i| {
        m.probe("seen", i.a);
        Out { y: i.a }
    });
    let top = module("top", In { a: 8, b: 1, sel: 1 }, |m, i| {
        let inputs = In { a: each(i.a), b: all(i.b), sel: all(i.sel) };
        Out { y: m.replicate("lane", 4, &lane, inputs).y }
    });
    let netlist = top.check().unwrap().netlist;
    let ports = cosim_probes(&netlist);
    assert_eq!(ports.iter().map(|p| (p.name.as_str(), p.width)).collect::<Vec<_>>(), [("probe_lane_seen", 8)]);
    let last = &ports[0].parts[3];
    assert_eq!((last.path.as_str(), last.low, last.width), ("lane[3].seen", 6, 2));
    for probes in [true, false] {
        let text = verilog(&netlist, &Options { cosim: true, probes, ..Options::default() }).single();
        assert_eq!(text.contains("probe_"), probes, "{text}");
    }
}

//! A wrapper for rust-hdl: the top module as a struct of its signals, which instantiates the Verilog.

use crate::folder::Entry;
use heddle_hdl::netlist::Module;
use std::fmt::Write as _;

/// The wrapper of the top module: `about` says what core it is.
pub fn entry(top: &Module, about: &str) -> Entry {
    Entry { name: "heddle.rs".into(), text: wrapper(&top.name, &pins(top), about) }
}

/// A port of the Verilog, other than the clock.
struct Pin<'a> {
    is_input: bool,
    name: &'a str,
    width: u32,
}

/// Inputs, reset first, then outputs.
fn pins(top: &Module) -> Vec<Pin<'_>> {
    let reset = Pin { is_input: true, name: "rst", width: 1 };
    let inputs = top.inputs.iter().map(|port| Pin { is_input: true, name: &port.name, width: port.width });
    let outputs = top.outputs.iter().map(|port| Pin { is_input: false, name: &port.name, width: port.width });
    [reset].into_iter().chain(inputs).chain(outputs).collect()
}

fn wrapper(name: &str, pins: &[Pin], about: &str) -> String {
    let kind = type_name(name);
    let mut text = format!(
        "//! {about}; for rust-hdl 0.46.
//!
//! `heddle gen --rust-hdl` wrote this beside the Verilog that it instantiates: the files that `heddle.f` lists. It
//! simulates nothing: in rust-hdl's own simulator the outputs stay 0.

use rust_hdl::prelude::*;

/// The module `{name}`; heddle's docs/reference/verilog.md says what its ports mean.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct {kind} {{
    pub clk: Signal<In, Clock>,
"
    );
    for Pin { is_input, name, width } in pins {
        let direction = if *is_input { "In" } else { "Out" };
        let value = if *width == 1 { "Bit".to_string() } else { format!("Bits<{width}>") };
        let _ = writeln!(text, "    pub {name}: Signal<{direction}, {value}>,");
    }
    let _ =
        write!(text, "}}\n\nimpl Logic for {kind} {{\n    fn update(&mut self) {{}}\n\n    fn connect(&mut self) {{\n");
    for pin in pins.iter().filter(|pin| !pin.is_input) {
        let _ = writeln!(text, "        self.{}.connect();", pin.name);
    }
    let connections: String = pins.iter().map(|pin| format!(",\n  .{0}({0})", pin.name)).collect();
    text += "    }\n\n    fn hdl(&self) -> Verilog {\n";
    text += "        Verilog::Wrapper(Wrapper { code: INSTANCE.into(), cores: BLACKBOX.into() })\n    }\n}\n\n";
    let _ = writeln!(text, "const INSTANCE: &str = \"{name} {name} (\n  .clk(clk){connections}\n);\";\n");
    text += "/// For Yosys, by which rust-hdl checks what it wrote. Other tools read the module itself.\n";
    let _ = writeln!(text, "const BLACKBOX: &str = \"{}\";", blackbox(name, pins));
    text
}

/// The module without its contents, once however many there are of it in the design.
fn blackbox(name: &str, pins: &[Pin]) -> String {
    let mut ports = "  input wire clk".to_string();
    for Pin { is_input, name, width } in pins {
        let direction = if *is_input { "input" } else { "output" };
        let range = if *width == 1 { String::new() } else { format!("[{}:0] ", width - 1) };
        let _ = write!(ports, ",\n  {direction} wire {range}{name}");
    }
    let once = format!("{}_BLACKBOX", name.to_uppercase());
    let module = format!("(* blackbox *)\nmodule {name} (\n{ports}\n);\nendmodule");
    format!("`ifdef YOSYS\n`ifndef {once}\n`define {once}\n{module}\n`endif\n`endif\n")
}

/// `HeddleHost` of `heddle_host`.
fn type_name(module: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    module.split('_').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_signals_and_connected() {
        let pin = |is_input, name, width| Pin { is_input, name, width };
        let text = wrapper("a_core", &[pin(true, "rst", 1), pin(true, "word", 32), pin(false, "done", 1)], "A core");
        for says in [
            "pub struct ACore {\n    pub clk: Signal<In, Clock>,\n    pub rst: Signal<In, Bit>,\n\
             \x20   pub word: Signal<In, Bits<32>>,\n    pub done: Signal<Out, Bit>,\n}",
            "    fn connect(&mut self) {\n        self.done.connect();\n    }",
            "a_core a_core (\n  .clk(clk),\n  .rst(rst),\n  .word(word),\n  .done(done)\n);",
            "`ifndef A_CORE_BLACKBOX\n",
            "module a_core (\n  input wire clk,\n  input wire rst,\n  input wire [31:0] word,\n  output wire done\n);",
        ] {
            assert!(text.contains(says), "{says}\n\n{text}");
        }
    }
}

//! The top of a measurement, in place of a board's.
//!
//! The ports of `heddle` are more than a package has pins. Here a shift register gives the inputs, and the parity of
//! all outputs, registered, goes out: so every path is one between registers, and no logic is removed as unread. The
//! harness is made of the device's own cells and joins the core when that is mapped, so that the core's cells can be
//! counted alone.

use heddle_hdl::netlist::{Module, Port};
use std::fmt::Write;

/// The name of the top.
pub(super) const TOP: &str = "harness";

/// The Verilog of a harness around `module`. `cells` declares what it is made of: `harness_register`; `harness_parity`,
/// of four bits; `harness_in` and `harness_out`, between a pin and the rest.
pub(super) fn harness(module: &Module, cells: &str) -> String {
    let connect = |ports: &[Port], vector: &str, mut low: u32| {
        let mut text = String::new();
        for port in ports {
            let _ = write!(text, ", .{}({vector}[{low} +: {}])", port.name, port.width);
            low += port.width;
        }
        text
    };
    let width = |ports: &[Port]| ports.iter().map(|port| port.width).sum::<u32>();
    let (given, seen) = (width(&module.inputs), width(&module.outputs));
    let (inputs, outputs) = (connect(&module.inputs, "chain", 1), connect(&module.outputs, "outputs", 0));
    let name = &module.name;
    let (last_given, last_seen) = (given - 1, seen - 1);
    let mut text = format!(
        "{cells}
module {TOP} (input clk_pin, input rst_pin, input in_pin, output out_pin);
  wire clk, rst, in, out;
  harness_in pins [2:0] (.pin({{clk_pin, rst_pin, in_pin}}), .net({{clk, rst, in}}));
  harness_out pin (.net(out), .pin(out_pin));
  wire [{given}:0] chain;
  assign chain[0] = in;
  harness_register shift [{last_given}:0] (.clk(clk), .d(chain[{last_given}:0]), .q(chain[{given}:1]));
  wire [{last_seen}:0] outputs;
  {name} {name} (.clk(clk), .rst(rst){inputs}{outputs});
  wire [{last_seen}:0] level0;
  harness_register sample [{last_seen}:0] (.clk(clk), .d(outputs), .q(level0));
"
    );
    let (mut bits, mut level) = (seen, 0);
    while bits > 1 {
        let groups = bits.div_ceil(4);
        let (last, next) = (groups - 1, level + 1);
        let of = match 4 * groups - bits {
            0 => format!("level{level}"),
            missing => format!("{{{missing}'d0, level{level}}}"),
        };
        let _ = writeln!(text, "  wire [{last}:0] level{next};");
        let _ = writeln!(text, "  harness_parity parity{next} [{last}:0] (.of({of}), .parity(level{next}));");
        (bits, level) = (groups, next);
    }
    let _ = writeln!(text, "  harness_register result (.clk(clk), .d(level{level}[0]), .q(out));\nendmodule");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::family::ECP5;
    use heddle_simt::Shape;
    use heddle_simt::system::system;

    /// Every port has its own bits, and all bits are of a port.
    #[test]
    fn all_ports_are_connected() {
        for shape in [Shape::small(1, 1), Shape::small(4, 2)] {
            let module = system(&shape).check().unwrap().netlist;
            let text = harness(&module, ECP5.cells);
            for (ports, vector, first) in [(&module.inputs, "chain", 1), (&module.outputs, "outputs", 0)] {
                let mut low = first;
                for port in ports {
                    let connection = format!(".{}({vector}[{low} +: {}])", port.name, port.width);
                    assert_eq!(text.matches(&connection).count(), 1, "{connection}\n{text}");
                    low += port.width;
                }
                assert!(text.contains(&format!("wire [{}:0] {vector};", low - 1)), "{vector}\n{text}");
            }
        }
    }
}

//! Foreign modules: their instances, and declarations of them for tools that do not know them.
//!
//! A netlist has the stub of a foreign module where it is used. Verilog with stubs is that; Verilog for synthesis has
//! the foreign module under its own names, and makes clock and reset if the top module says how.

use crate::values::{literal, range};
use heddle_hdl::names::verilog;
use heddle_hdl::netlist::{ClockPin, Foreign, Module, Parameter};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

/// The modules to write, those below before those who use them: without stubs, none of a foreign module.
pub fn described(top: &Arc<Module>, stubs: bool) -> Vec<Arc<Module>> {
    fn visit(m: &Arc<Module>, stubs: bool, seen: &mut HashSet<*const Module>, out: &mut Vec<Arc<Module>>) {
        if (stubs || m.foreign.is_none()) && seen.insert(Arc::as_ptr(m)) {
            m.instances.iter().for_each(|i| visit(&i.module, stubs, seen, out));
            out.push(m.clone());
        }
    }
    let mut out = Vec::new();
    visit(top, stubs, &mut HashSet::new(), &mut out);
    out
}

/// Makes foreign modules those of their stubs, and takes away who makes clock and reset.
pub fn forget(m: &mut Module) {
    m.reset = None;
    for instance in m.instances.iter_mut().filter(|i| i.module.foreign.is_some()) {
        let mut stub = (*instance.module).clone();
        stub.foreign = None;
        instance.module = Arc::new(stub);
    }
}

/// The input of the top module that takes the board's clock, if there is one.
pub fn clock_pin(m: &Module) -> Option<&ClockPin> {
    m.clock_source()?.input.as_ref()
}

/// The names of the ports of a module that is described: inputs, then outputs.
pub fn own_names(m: &Module) -> Vec<String> {
    m.inputs.iter().chain(&m.outputs).map(|p| p.name.clone()).collect()
}

/// The names of a foreign module's ports, as Verilog writes them: the stub's inputs, then its outputs.
pub fn names(foreign: &Foreign) -> Vec<String> {
    foreign.ports.iter().map(|port| verilog(port)).collect()
}

/// The pins of an instance that have to do with clock and reset.
pub fn clock_and_reset_pins(foreign: &Foreign) -> Vec<String> {
    let pin = |port: &str, value: &str| format!(".{}({value})", verilog(port));
    let mut pins = Vec::new();
    if let Some(source) = &foreign.clock_source {
        pins.extend(source.input.iter().map(|input| pin(&input.port, &input.pin)));
        pins.push(pin(&source.output, "clk"));
    }
    pins.extend(foreign.clocks.iter().map(|port| pin(port, "clk")));
    pins.extend(foreign.resets.iter().map(|r| pin(&r.port, if r.active_low { "~rst" } else { "rst" })));
    pins
}

/// What stands before the name of an instance: attributes, the module, parameters.
pub fn head(foreign: &Foreign, indent: &str) -> String {
    let mut text = String::new();
    for (name, value) in &foreign.attributes {
        let _ = writeln!(text, "{indent}(* {} = {} *)", verilog(name), written(value));
    }
    let _ = write!(text, "{indent}{}", verilog(&foreign.name));
    if !foreign.parameters.is_empty() {
        let parameters = foreign.parameters.iter().map(|(name, v)| format!(".{}({})", verilog(name), written(v)));
        let parameters: Vec<String> = parameters.collect();
        let separator = format!(",\n{indent}  ");
        let _ = write!(text, " #(\n{indent}  {}\n{indent})", parameters.join(&separator));
    }
    text
}

/// The value in Verilog.
fn written(value: &Parameter) -> String {
    match value {
        Parameter::Integer(value) => value.to_string(),
        Parameter::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Parameter::Bits(bits, width) => literal(bits, *width),
        // Always with a point or an exponent.
        Parameter::Real(value) => format!("{value:?}"),
    }
}

/// The foreign modules of a design, each once, by name.
pub fn blackboxes(top: &Arc<Module>, stubs: bool) -> String {
    let mut by_name: BTreeMap<&str, Vec<(&Module, &Foreign)>> = BTreeMap::new();
    let modules = described(top, stubs);
    for instance in modules.iter().filter(|_| !stubs).flat_map(|m| &m.instances) {
        if let Some(foreign) = &instance.module.foreign {
            by_name.entry(&foreign.name).or_default().push((&instance.module, foreign));
        }
    }
    by_name.values().map(|stubs| blackbox(stubs)).collect::<Vec<_>>().join("\n")
}

/// A module with ports and parameters only, those of all its stubs. What is in it is for lint, which asks what drives
/// and reads them; a tool for synthesis does not look at the inside of a blackbox.
fn blackbox(stubs: &[(&Module, &Foreign)]) -> String {
    let (stub, foreign) = stubs[0];
    let mut parameters: Vec<&(String, Parameter)> = Vec::new();
    for parameter in stubs.iter().flat_map(|(_, foreign)| &foreign.parameters) {
        if parameters.iter().all(|(name, _)| *name != parameter.0) {
            parameters.push(parameter);
        }
    }
    let mut inputs: Vec<(&str, u32)> = Vec::new();
    let mut outputs: Vec<(&str, u32)> = Vec::new();
    if let Some(source) = &foreign.clock_source {
        inputs.extend(source.input.iter().map(|input| (input.port.as_str(), 1)));
        outputs.push((&source.output, 1));
    }
    inputs.extend(foreign.clocks.iter().map(|port| (port.as_str(), 1)));
    inputs.extend(foreign.resets.iter().map(|reset| (reset.port.as_str(), 1)));
    let mut ports = foreign.ports.iter();
    inputs.extend(stub.inputs.iter().zip(&mut ports).map(|(p, name)| (name.as_str(), p.width)));
    outputs.extend(stub.outputs.iter().zip(&mut ports).map(|(p, name)| (name.as_str(), p.width)));

    let mut text = format!("(* blackbox *)\nmodule {}", verilog(&foreign.name));
    if !parameters.is_empty() {
        let lines = parameters.iter().map(|(name, v)| format!("  parameter {} = {}", verilog(name), written(v)));
        let _ = write!(text, " #(\n{}\n)", lines.collect::<Vec<_>>().join(",\n"));
    }
    let port =
        |direction: &str, (name, width): &(&str, u32)| format!("  {direction} wire {}{}", range(*width), verilog(name));
    let lines = inputs.iter().map(|p| port("input ", p)).chain(outputs.iter().map(|p| port("output", p)));
    let _ = write!(text, " (\n{}\n);\n", lines.collect::<Vec<_>>().join(",\n"));
    for (name, width) in &outputs {
        let _ = writeln!(text, "  assign {} = {width}'d0;", verilog(name));
    }
    let read = inputs.iter().map(|(name, _)| verilog(name));
    let compared = parameters.iter().map(|(name, _)| format!("{0} == {0}", verilog(name)));
    let read: Vec<String> = read.chain(compared).collect();
    if !read.is_empty() {
        let _ = writeln!(text, "  wire unused = &{{1'b0, {}}};", read.join(", "));
    }
    text + "endmodule\n"
}

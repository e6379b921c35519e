//! The Verilog of a proof.

use heddle_gen::Options;
use heddle_hdl::netlist::{Module, Property, PropertyKind};
use heddle_simt::proof::COVER;
use std::sync::Arc;

/// The name of the top module.
pub const TOP: &str = "proof";

/// The harness under a top that resets it in the first cycle, and only then.
pub fn verilog(harness: &Module) -> String {
    let options = Options { stubs: true, ..Options::default() };
    let mut text = heddle_gen::verilog(&Arc::new(with_obligations(harness)), &options).single();
    let mut ports = String::new();
    let mut pins = String::new();
    for port in &harness.inputs {
        ports += &format!(",\n  input wire [{}:0] {}", port.width - 1, port.name);
        pins += &format!(", .{0}({0})", port.name);
    }
    text += &format!(
        "\n// Reset in the first cycle.\nmodule {TOP} (\n  input wire clk{ports}\n);\n  reg running = 1'b0;\n  \
         always @(posedge clk) running <= 1'b1;\n  {} harness (.clk(clk), .rst(!running){pins});\nendmodule\n",
        harness.name
    );
    text
}

/// How many covers the Verilog has.
pub(super) fn covers(module: &Module) -> usize {
    let own = module.properties.iter().filter(|p| is_cover(p)).count();
    own + module.instances.iter().map(|instance| covers(&instance.module)).sum::<usize>()
}

/// Whether it is one of the harness's own.
fn is_cover(property: &Property) -> bool {
    property.kind == PropertyKind::Cover && property.name.starts_with(COVER)
}

/// What a block assumes is proven too, since its harness makes legal inputs; of covers, only the harness's own are
/// asked for.
fn with_obligations(module: &Module) -> Module {
    let mut module = module.clone();
    for instance in &mut module.instances {
        instance.module = Arc::new(with_obligations(&instance.module));
    }
    module.properties.retain(|p| p.kind != PropertyKind::Cover || is_cover(p));
    for property in module.properties.iter_mut().filter(|p| p.kind == PropertyKind::Assume) {
        property.kind = PropertyKind::Assert;
    }
    module
}

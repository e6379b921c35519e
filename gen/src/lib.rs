//! A checked design as Verilog.
//!
//! ```
//! use heddle_gen::ToVerilog;
//! use heddle_hdl::prelude::*;
//!
//! let sum = module("sum", [8, 8], |_, [a, b]| [a + b]);
//! let text = sum.check().unwrap().verilog();
//! assert!(text.contains("= in_0 + in_1;"));
//! ```
//!
//! Verilog-2005, hierarchical, one Verilog module for each module of the netlist. Every literal is sized; operators
//! that can grow have a wire of their own; bits that nothing reads go to an explicit sink, so
//! `verilator --lint-only -Wall` is clean without waivers. Logic and state that only assertions and covers need stands
//! behind `ifdef FORMAL` with them.
//!
//! Start at [`ToVerilog`] for one text, at [`verilog`] for a folder of files and for co-simulation; `emit` writes a
//! module, `values` its expressions, `memory` its memories, `foreign` what is not described here.
//! `docs/reference/verilog.md` shows what comes out.

#![warn(missing_docs)]

mod emit;
mod foreign;
mod liveness;
mod memory;
mod simplify;
mod unused;
mod values;

use heddle_hdl::Design;
use heddle_hdl::netlist::Module;
use std::sync::Arc;

/// How Verilog is written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// For Verilator as an engine: start values and host access to memories go through DPI functions, and logic that
    /// serves only probes and properties is there. SystemVerilog.
    pub cosim: bool,
    /// Only with `cosim`: probes are output ports of the top, `probe_` and the path with `_` for dots, replicas packed.
    pub probes: bool,
    /// Foreign modules are their stubs, and clock and reset come from outside. Always so with `cosim`.
    pub stubs: bool,
    /// The folder of memory images as a tool will see it, for `$readmemh`; empty: the folder that the tool runs in.
    pub images: String,
    /// Contents of memories are in their modules however long they are, and no file is needed beside the Verilog.
    pub one_text: bool,
}

/// Files by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Files {
    /// Verilog files, modules before those who use them.
    pub sources: Vec<(String, String)>,
    /// Contents of memories, for `$readmemh`.
    pub images: Vec<(String, String)>,
    /// Foreign modules without their contents, for tools that do not know them; empty if there are none.
    pub blackboxes: String,
}

/// The Verilog of a checked design, one file a module.
pub fn verilog(top: &Arc<Module>, options: &Options) -> Files {
    let stubs = options.cosim || options.stubs;
    let mut files = Files { blackboxes: foreign::blackboxes(top, stubs), ..Files::default() };
    let extension = if options.cosim { "sv" } else { "v" };
    if options.cosim {
        files.sources.push(("heddle_dpi.sv".to_string(), DPI.to_string()));
    }
    for m in foreign::described(top, stubs) {
        let mut simple = simplify::simplify(&m);
        if stubs {
            foreign::forget(&mut simple);
        }
        files.sources.push((format!("{}.{extension}", m.name), emit::emit(&simple, options)));
        for memory in &m.memories {
            if let Some(words) = memory::in_file(memory, options) {
                let digits = memory.width.div_ceil(4) as usize;
                let mut text: String = words.iter().map(|w| format!("{w:0digits$x}\n")).collect();
                let rest = (1usize << memory.address_width) - words.len();
                if rest > 0 {
                    let zero = "0".repeat(digits);
                    text.extend(std::iter::repeat_n(format!("{zero}\n"), rest));
                }
                files.images.push((memory::image_file(&m.name, &memory.name), text));
            }
        }
    }
    files
}

/// Verilog of a checked design, by one method.
pub trait ToVerilog {
    /// All modules in one text, those that are used before those that use them; the top module is the last and has the
    /// name and the ports of the design, beside `clk` and `rst`. Contents of memories are in it. Foreign modules are
    /// instantiated, but not described.
    fn verilog(&self) -> String;
}

impl<I, O> ToVerilog for Design<I, O> {
    fn verilog(&self) -> String {
        verilog(&self.netlist, &Options { one_text: true, ..Options::default() }).single()
    }
}

impl Files {
    /// All modules in one text, without the foreign ones.
    pub fn single(&self) -> String {
        self.sources.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// An output port that shows probes in co-simulation. A replicated instance's probes are packed, the first copy lowest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbePort {
    /// Of the port of the top, with `probe_` before it.
    pub name: String,
    /// In bits: of all its parts.
    pub width: u32,
    /// The probes in it, the lowest first.
    pub parts: Vec<ProbePart>,
}

/// Where in its port a probe is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbePart {
    /// Of the probe, from the module of the port down, as `lane[3].seen`.
    pub path: String,
    /// Its lowest bit.
    pub low: u32,
    /// In bits.
    pub width: u32,
}

/// The probe ports of the top for co-simulation, in their order.
pub fn cosim_probes(top: &Module) -> Vec<ProbePort> {
    emit::probes(top)
}

/// What the co-simulated Verilog asks the host: where it is in the hierarchy, start values 32 bits at a time, and, at a
/// rising edge of `host`, which word of a memory the host wants to read or write.
const DPI: &str = "package heddle_dpi;
  import \"DPI-C\" function int heddle_open(input string path);
  import \"DPI-C\" function int heddle_word(input int handle, input int index, input int limb);
  import \"DPI-C\" function int heddle_request(input int handle);
  import \"DPI-C\" function int heddle_writes(input int handle);
  import \"DPI-C\" function void heddle_report(input int handle, input int limb, input int value);
endpackage
";

//! The netlist that Yosys made of a design, to be simulated: post-synthesis.
//!
//! The mapped design is written as Verilog, flat, and stands beside models of the device's cells under a top with the
//! design's own name and ports. So what drives the Verilog of a design in Verilator drives its netlist. The models are
//! Yosys' own; the two cells of the ECP5 that Yosys knows from outside only are in `models/ecp5.v`.

use super::boards::Board;
use super::run::{Error, Session, Synthesis, Workplace, at};
use super::tools::YOSYS;
use crate::kept::Kept;
use heddle_gen::Files;
use heddle_hdl::netlist::{Module, Port};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// The netlist's module.
const NAME: &str = "netlist";
const FILE: &str = "netlist.v";

/// What simulates a family's cells.
struct Models {
    /// Files of Yosys.
    yosys: &'static [&'static str],
    /// Ours, of what is a blackbox there.
    own: &'static str,
}

fn models(board: &Board) -> Result<Models, Error> {
    match board.family.name {
        "ECP5" => {
            Ok(Models { yosys: &["lattice/common_sim.vh", "lattice/ccu2c_sim.vh"], own: include_str!("models/ecp5.v") })
        }
        "iCE40" => Ok(Models { yosys: &["ice40/cells_sim.v"], own: "" }),
        other => Err(Error::NoModels(other)),
    }
}

/// The netlist of a design as mapped for a board, with models of its cells, as [`Verilator::of_files`] takes it:
/// without probes.
///
/// [`Verilator::of_files`]: heddle_sim::verilator::Verilator::of_files
pub fn netlist(board: &'static Board, top: &Arc<Module>, session: Session) -> Result<Files, Error> {
    let models = models(board)?;
    // Installs it, if it is not there.
    YOSYS.program("python", &session)?;
    let share = share()?;
    let read = |name: &&str| {
        let path = share.join(name);
        Ok((name.replace(['/', '.'], "_") + ".v", fs::read_to_string(&path).map_err(at(&path))?))
    };
    let library = models.yosys.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    let mapped = Synthesis::new(board, top, session).mapped(top)?;
    let text = |name: &str, text: String| (name.to_string(), text);
    // Each file of the library is here; and not every Verilator knows inputs that have a value unless they are
    // connected, which Yosys leaves none.
    let defines = "`define NO_INCLUDES\n`define NO_ICE40_DEFAULT_ASSIGNMENTS\n";
    let mut sources = vec![text("library.v", defines.into())];
    sources.extend(library);
    sources.push(text("models.v", models.own.into()));
    sources.push(text(FILE, mapped));
    sources.push(text("top.v", wrapper(top)));
    Ok(Files { sources, ..Files::default() })
}

impl Synthesis<'_> {
    /// The Verilog of the mapped design, which is the module [`NAME`].
    fn mapped(&self, top: &Module) -> Result<String, Error> {
        // Yosys keeps what was a scope as a cell. Bits that are wires of their own leave no loops of vectors to a
        // simulator.
        let steps = ["delete t:$scopeinfo", "splitnets", &format!("rename {} {NAME}", top.name)].map(String::from);
        let writes = vec![format!("write_verilog -noattr {FILE}")];
        let steps = [self.synthesis(&top.name, ""), steps.to_vec(), writes].concat();
        let kept = Kept::of("synthesis", "netlist", (&self.verilog, &steps, YOSYS.title()));
        self.session.kept(&kept, || {
            let work = Workplace::new(&[("heddle.v", &self.verilog)])?;
            self.session.yosys("synthesis", work.path(), &steps)?;
            let file = work.path().join(FILE);
            fs::read_to_string(&file).map_err(at(&file))
        })
    }
}

/// Where Yosys has its cell libraries: of whichever Python made the virtual environment.
fn share() -> Result<PathBuf, Error> {
    let lib = YOSYS.folder().join("lib");
    let pythons = fs::read_dir(&lib).map_err(at(&lib))?.flatten();
    let mut found = pythons.map(|python| python.path().join("site-packages/pyosys/share"));
    let missing = || Error::Unreadable(YOSYS.title(), format!("{} has no cell libraries", lib.display()));
    found.find(|share| share.is_dir()).ok_or_else(missing)
}

/// A top with the name and ports of the design, clock, reset, and the port by which memories of a model are written,
/// which a netlist does not have.
fn wrapper(top: &Module) -> String {
    let port = |way: &str, port: &Port| format!("  {way} [{}:0] {}", port.width - 1, port.name);
    let inputs = top.inputs.iter().map(|p| port("input", p));
    let outputs = top.outputs.iter().map(|p| port("output", p));
    let clock = ["clk", "rst", "host"].map(|name| format!("  input {name}"));
    let ports: Vec<String> = clock.into_iter().chain(inputs).chain(outputs).collect();
    let names = top.inputs.iter().chain(&top.outputs).map(|p| p.name.as_str());
    let pins: Vec<String> = ["clk", "rst"].into_iter().chain(names).map(|name| format!(".{name}({name})")).collect();
    format!("module {} (\n{}\n);\n  {NAME} {NAME} ({});\nendmodule\n", top.name, ports.join(",\n"), pins.join(", "))
}

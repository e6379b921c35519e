//! Synthesis, and place and route, of one core. What was found before is not looked for again.

use super::boards::Board;
use super::family::Family;
use super::harness::{self, harness};
use super::netlist::{Flat, Netlist, Row};
use super::timing::Timing;
use super::tools::YOSYS;
use crate::kept::Kept;
use crate::process::{Folder, wait};
use heddle_hdl::netlist::Module;
use heddle_sim::verilator::cache;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why there is no result. One line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It was asked to end.
    #[error("interrupted")]
    Interrupted,
    /// What is not installed, and Debian's packages that have it.
    #[error("{0} is not installed; on Debian: apt-get install {1}")]
    Missing(&'static str, &'static str),
    /// A package of PyPI, the folder for it, and why it could not be installed.
    #[error("cannot install {0} into {path}: {2}", path = .1.display())]
    Install(String, PathBuf, String),
    /// What the board has too little of.
    #[error("the board is too small: {0}")]
    Full(String),
    /// What failed, and its own words.
    #[error("{0} failed: {1}")]
    Failed(String, String),
    /// What a tool wrote is not what is expected of it.
    #[error("cannot read what {0} wrote: {1}")]
    Unreadable(String, String),
    /// A family whose cells nobody has described.
    #[error("a netlist for {0} cannot be simulated: there are no models of its cells")]
    NoModels(&'static str),
    /// A clock in kHz that the PLL does not make, and the nearest that it does.
    #[error("the board has no clock of {} MHz; the nearest are {}", mhz(*.0), list(.1))]
    NoStep(u32, Vec<u32>),
    /// A clock in kHz, and what was reached instead.
    #[error("too slow for {} MHz: {} MHz were reached", mhz(*.0), mhz(*.1))]
    Slow(u32, u32),
    /// A file or program that could not be written, read or started.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, io::Error),
}

pub(super) fn mhz(khz: u32) -> f64 {
    f64::from(khz) / 1000.0
}

fn list(khz: &[u32]) -> String {
    khz.iter().map(|&khz| format!("{} MHz", mhz(khz))).collect::<Vec<_>>().join(" and ")
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |error| Error::File(path, error)
}

/// Who waits for a result.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// Whether to end; asked all the time.
    pub stop: &'a dyn Fn() -> bool,
    /// Is told what begins.
    pub says: &'a dyn Fn(&str),
    /// Do again what was done before.
    pub again: bool,
}

impl Session<'_> {
    /// Runs a command to its end; if it fails, what it printed. The log is for that.
    pub(super) fn run(&self, command: &mut Command, log: &Path) -> Result<Result<(), String>, Error> {
        let program = PathBuf::from(command.get_program());
        let printed = File::create(log).map_err(at(log))?;
        let errors = printed.try_clone().map_err(at(log))?;
        command.stdin(Stdio::null()).stdout(printed).stderr(errors);
        let mut child = command.spawn().map_err(at(&program))?;
        if !wait(&mut child, self.stop).map_err(at(&program))? {
            return Err(Error::Interrupted);
        }
        if child.wait().map_err(at(&program))?.success() {
            return Ok(Ok(()));
        }
        let printed = fs::read(log).map_err(at(log))?;
        Ok(Err(String::from_utf8_lossy(&printed).into_owned()))
    }

    /// Runs Yosys' steps in a folder, and says what that is.
    pub(super) fn yosys(&self, what: &str, work: &Path, steps: &[String]) -> Result<(), Error> {
        let mut command = YOSYS.program("python", self)?;
        (self.says)(what);
        command.current_dir(work).args(["-c", PASSES]).args(steps);
        let ended = self.run(&mut command, &work.join("yosys.log"))?;
        ended.map_err(|printed| Error::Failed(YOSYS.title(), telling(&printed)))
    }

    /// Runs a family's place and route in a folder, and says what that is; the report, which the arguments ask for.
    pub(super) fn nextpnr(
        &self,
        family: &Family,
        what: &str,
        work: &Path,
        arguments: &[&[&str]],
    ) -> Result<Vec<u8>, Error> {
        let mut command = family.nextpnr.program(family.nextpnr.name, self)?;
        (self.says)(what);
        command.current_dir(work).args(arguments.concat());
        let ended = self.run(&mut command, &work.join("nextpnr.log"))?;
        ended.map_err(|printed| match full(&printed) {
            Some(over) => Error::Full(over),
            None => Error::Failed(family.nextpnr.title(), telling(&printed)),
        })?;
        let report = work.join(REPORT);
        fs::read(&report).map_err(at(&report))
    }

    pub(super) fn kept<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        kept: &Kept,
        find: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let (false, Some(found)) = (self.again, kept.read()) {
            return Ok(found);
        }
        find().inspect(|found| kept.write(found))
    }
}

/// The core on a board.
pub struct Synthesis<'a> {
    pub(super) board: &'static Board,
    pub(super) session: Session<'a>,
    pub(super) verilog: String,
    /// The module that is built, with all that is in it.
    module: String,
    harness: String,
    /// Where the netlist is, if it was needed.
    work: Option<Workplace>,
}

/// A new folder with files for a tool, which goes away.
pub(super) struct Workplace(Folder);

impl Workplace {
    pub(super) fn new(files: &[(&str, &str)]) -> Result<Workplace, Error> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = cache().join(format!("synthesis-{}.{number}", std::process::id()));
        let folder = Folder::create(path.clone()).map_err(at(&path))?;
        for (name, text) in files {
            let file = path.join(name);
            fs::write(&file, text).map_err(at(&file))?;
        }
        Ok(Workplace(folder))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Runs the passes that are its arguments.
const PASSES: &str = "
import sys
from pyosys import libyosys
design = libyosys.Design()
for step in sys.argv[1:]:
    libyosys.run_pass(step, design)
";

/// The name of the whole.
const TOP_OF_ALL: &str = "heddle";
pub(super) const CELLS: &str = "cells.json";
/// The cells of what is around the core.
pub(super) const REST: &str = "rest.json";
const NETLIST: &str = "netlist.json";
pub(super) const REPORT: &str = "report.json";

/// The same lines without comments: they say where in the Rust a line is from, and what is kept of a core would be lost
/// with any edit of its file.
fn without_comments(verilog: &str) -> String {
    let code = verilog.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    code.collect::<Vec<_>>().join("\n") + "\n"
}

impl<'a> Synthesis<'a> {
    /// Of `top`, the module `heddle`.
    pub fn new(board: &'static Board, top: &Arc<Module>, session: Session<'a>) -> Synthesis<'a> {
        Synthesis::of_module(board, top, top, session)
    }

    /// Of one `module` of `top`, alone: all its ports end at registers of the harness. What its surroundings would fix,
    /// share with it or leave unread is not seen.
    pub fn of_module(board: &'static Board, top: &Arc<Module>, module: &Module, session: Session<'a>) -> Synthesis<'a> {
        let verilog = without_comments(&heddle_gen::verilog(top, &heddle_gen::Options::default()).single());
        let harness = harness(module, board.family.cells);
        Synthesis { board, session, verilog, module: module.name.clone(), harness, work: None }
    }

    /// Its cells.
    pub fn cells(&mut self) -> Result<Flat, Error> {
        let family = self.board.family;
        let made = (&self.verilog, self.around(), self.mapping(), YOSYS.title(), family.counted);
        let kept = Kept::of("synthesis", "cells", made);
        let session = self.session;
        session.kept(&kept, || {
            let work = self.netlist()?;
            let netlist = read(&work.join(CELLS))?;
            let rest = (!self.around().is_empty()).then(|| read(&work.join(REST))).transpose()?;
            netlist.flat(family, &self.module, "", rest.as_ref()).map_err(unreadable(&YOSYS.title()))
        })
    }

    /// Its cells module by module, without main and instruction memory. The hierarchy is kept.
    pub fn modules(&self) -> Result<Vec<Row>, Error> {
        let family = self.board.family;
        let mapping = self.synthesis("core", " -noflatten");
        let kept = Kept::of("synthesis", "modules", (&self.verilog, &mapping, YOSYS.title(), family.counted));
        self.session.kept(&kept, || {
            let work = Workplace::new(&[("heddle.v", &self.verilog)])?;
            self.session.yosys("synthesis", work.path(), &mapping)?;
            let netlist = read(&work.path().join(CELLS))?;
            netlist.rows(family, "core").map_err(unreadable(&YOSYS.title()))
        })
    }

    /// Its clock after place and route, which aims at `clock` MHz. Fails if the board is too small.
    pub fn timing(&mut self, clock: f64, seed: u32) -> Result<Timing, Error> {
        let Board { family, nextpnr: device, pins, .. } = self.board;
        let options = format!("--freq {clock} --timing-allow-fail --seed {seed} --json {NETLIST} --report {REPORT}");
        let netlist = (&self.verilog, &self.harness, self.mapping(), self.joining(), YOSYS.title());
        let kept = Kept::of("synthesis", "timing", (netlist, family.nextpnr.title(), device, pins, &options));
        if let Some(over) = self.cells()?.over(self.board) {
            return Err(Error::Full(over));
        }
        let session = self.session;
        session.kept(&kept, || {
            let work = self.netlist()?;
            let arguments = [*device, &options.split(' ').collect::<Vec<_>>()];
            let report = session.nextpnr(family, &format!("place and route, seed {seed}"), &work, &arguments)?;
            Timing::read(&report).map_err(unreadable(&family.nextpnr.title()))
        })
    }

    /// How results are made of the Verilog: tools, their versions and steps, for whoever keeps them.
    pub fn recipe(&self) -> String {
        let Board { family, nextpnr, .. } = self.board;
        let steps = [self.around(), self.mapping(), self.joining()].concat().join("; ");
        format!("{}: {steps}; {}: {}", YOSYS.title(), family.nextpnr.title(), nextpnr.join(" "))
    }

    /// Yosys' steps from Verilog to a mapped module.
    pub(super) fn synthesis(&self, top: &str, options: &str) -> Vec<String> {
        let Board { family, synth, .. } = self.board;
        let synth = format!("{synth}{} -top {top} -json {CELLS}{options}", family.without_pins);
        ["read_verilog heddle.v"].iter().chain(family.before).map(|step| step.to_string()).chain([synth]).collect()
    }

    /// The steps that map what is around the core, of which nothing is left but its cells; none, of a module alone.
    fn around(&self) -> Vec<String> {
        if self.module != TOP_OF_ALL {
            return Vec::new();
        }
        let Board { family, synth, .. } = self.board;
        without_core(&["read_verilog heddle.v"], family.before, &format!("{synth}{}", family.without_pins), TOP_OF_ALL)
    }

    /// The steps to what is built, flat.
    fn mapping(&self) -> Vec<String> {
        self.synthesis(&self.module, "")
    }

    /// The steps from there to what is placed and routed. The harness comes when the core is mapped: afterwards, names
    /// of cells would not tell its tables from the core's.
    fn joining(&self) -> Vec<String> {
        let hierarchy = format!("hierarchy -top {}", harness::TOP);
        vec!["read_verilog harness.v".into(), hierarchy, "flatten".into(), format!("write_json {NETLIST}")]
    }

    /// The folder with the netlist, which is made if it is not there.
    fn netlist(&mut self) -> Result<PathBuf, Error> {
        if let Some(work) = &self.work {
            return Ok(work.path().to_path_buf());
        }
        let files =
            [("heddle.v", self.verilog.as_str()), ("harness.v", self.harness.as_str()), ("pins.cst", self.board.pins)];
        let work = Workplace::new(&files)?;
        self.session.yosys("synthesis", work.path(), &[self.around(), self.mapping(), self.joining()].concat())?;
        Ok(self.work.insert(work).path().to_path_buf())
    }
}

/// A netlist that Yosys wrote.
pub(super) fn read(path: &Path) -> Result<Netlist, Error> {
    let text = fs::read(path).map_err(at(path))?;
    serde_json::from_slice(&text).map_err(|error| unreadable(&YOSYS.title())(error.to_string()))
}

/// Yosys' steps to the cells of a top without what is in the module `core`, in [`REST`]. Names of cells do not tell
/// those in it: what is merged across its ports has the name of either side.
pub(super) fn without_core(reads: &[&str], before: &[&str], synth: &str, top: &str) -> Vec<String> {
    let map = format!("{synth} -top {top} -json {REST}");
    let steps = reads.iter().chain(before).copied().chain(["blackbox core", &map, "design -reset"]);
    steps.map(String::from).collect()
}

pub(super) fn unreadable(tool: &str) -> impl FnOnce(String) -> Error {
    let tool = tool.to_string();
    move |why| Error::Unreadable(tool, why)
}

/// What nextpnr says it wants more of than there is, after packing: lines such as `Info: ICESTORM_LC: 5392/ 5280 102%`.
pub(super) fn full(printed: &str) -> Option<String> {
    let lines = printed.lines().skip_while(|line| !line.contains("Device utilisation:")).skip(1);
    let over = lines.take_while(|line| !line.trim().is_empty()).filter_map(|line| {
        let (what, numbers) = line.strip_prefix("Info:")?.split_once(':')?;
        let (wanted, there) = numbers.split_once('/')?;
        let wanted: u32 = wanted.trim().parse().ok()?;
        let there: u32 = there.split_whitespace().next()?.parse().ok()?;
        (wanted > there).then(|| format!("{wanted} {} wanted, {there} there", what.trim()))
    });
    let over: Vec<String> = over.collect();
    (!over.is_empty()).then(|| over.join("; "))
}

/// The line of a log that says why a tool failed.
pub(super) fn telling(printed: &str) -> String {
    let error = printed.lines().find(|line| line.to_ascii_lowercase().starts_with("error"));
    let line = error.or_else(|| printed.lines().rfind(|line| !line.trim().is_empty())).unwrap_or("no message");
    line.trim_start_matches("ERROR: ").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "Info: constraints\n\nInfo: Device utilisation:\nInfo: \t         ICESTORM_LC:    5392/   5280   102%\n\
                       Info: \t        ICESTORM_RAM:      28/     30    93%\nInfo: \t               SB_IO:       4/     96     4%\n\n\
                       Info: Placed 0 cells\nERROR: Failed to expand region (0, 0) |_> (25, 31) of 5392 ICESTORM_LCs\n0 warnings\n";

    #[test]
    fn nextpnr_says_what_is_too_small() {
        assert_eq!(full(LOG).unwrap(), "5392 ICESTORM_LC wanted, 5280 there");
        assert_eq!(full(&LOG.replace("5280 ", "5400 ")), None);
        assert_eq!(full("ERROR: no such device"), None);
    }

    #[test]
    fn the_first_error_of_a_log_is_its_reason() {
        assert_eq!(telling(LOG), "Failed to expand region (0, 0) |_> (25, 31) of 5392 ICESTORM_LCs");
        assert_eq!(telling("Traceback:\n  File x\nRuntimeError: broken\n\n"), "RuntimeError: broken");
        assert_eq!(telling(""), "no message");
    }
}

//! `heddle synth`: the core's cells and clock on an FPGA.

mod bitstream;
mod progress;
mod tables;

use crate::interrupt::Interrupt;
use crate::output::{print, print_json};
use crate::shape::{HardwareArgs, ShapeArgs, buildable};
use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser};
use heddle_check::synth::fit;
use heddle_check::synth::tools::YOSYS;
use heddle_check::synth::{Board, Error, Flat, Row, Session, Synthesis, Timing, median};
use heddle_hdl::netlist::Module;
use heddle_simt::Shape;
use heddle_simt::host::Identity;
use heddle_simt::hosted::over_uart;
use heddle_simt::system::system;
use progress::Progress;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
pub use tables::boards;
use tables::{modules_table, paths, table};

/// What the host tells, and cycles of a bit on the UART's pins, where a module of them is built alone: some board's.
const ON_A_BOARD: (Identity, u32) = (Identity { clock_khz: 50_000 }, 434);

/// Build the core for an FPGA, with Yosys and nextpnr: its cells, and its clock, or a bitstream.
///
/// The top `heddle` is built, memory and work distributor included; in place of a board's pins are a shift register for
/// the inputs and the parity of the outputs, which are not counted. LUTs are all tables of four inputs that are taken:
/// by logic, by carry cells, by distributed RAM. Block RAM of main and instruction memory stands behind a plus.
///
/// With --bitstream, the core is built with its host and a UART, and a top that has PLL and pins only. The clock that
/// the bitstream has is told by its host, so each clock is built anew: the highest step of the PLL that meets timing is
/// found by going down.
///
/// Yosys and nextpnr come from PyPI into the user's cache folder (or $HEDDLE_CACHE) when they are first needed. So do
/// results: what is known is only reported, and a run that was interrupted goes on where it was.
///
/// Ctrl-C ends it with the report so far; the exit code is then 130.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle synth                                               8 lanes and 8 warps on a ULX3S; takes minutes
  heddle synth --seeds 0 --lanes 4 --warps 4 --memory 64K    cells only, after synthesis
  heddle synth --board colorlight-i5 --seeds 3 --json        another board; the clock is the median of three
  heddle synth --modules --divergence arbiter                the cells of each module
  heddle synth --module path_table --path                    a module alone, and the path that limits its clock
  heddle synth --board colorlight-i5 --bitstream board/      for the board, at the highest clock; then docs/reference/boards/
  heddle synth --board ulx3s-85f --bitstream board/ --clock 40 --lanes 4 --warps 4 --memory 64K --program 16K
  heddle synth --core '--lanes 4 --warps 4 --memory 64K' --core '--lanes 2 --warps 8 --memory 64K'
  heddle synth --modules --metrics --lanes 4 --warps 4       what its counters take: the row `metrics`
  heddle synth --list                                        the boards",
    mut_arg("seed", |arg| arg.hide(true)),
    mut_arg("memory_model", |arg| arg.hide(true)),
    mut_arg("second_level", |arg| arg.hide(true)),
)]
pub struct Synth {
    /// The board; without any option of the core, the core is the board's usual one
    #[arg(long, default_value = Board::ALL[0].name, value_name = "NAME", value_parser = board())]
    board: &'static Board,
    /// Runs of place and route, of which the clock is the median; 0 for none
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    seeds: u32,
    /// The clock that place and route aims at [default: 100, more than it reaches, so that it keeps trying]; of a
    /// bitstream, its clock [default: the highest that the PLL makes and the paths allow]
    #[arg(long, value_name = "MHZ", value_parser = clock)]
    clock: Option<f64>,
    /// Instead, the cells of each module of the core, without main and instruction memory
    #[arg(long, conflicts_with_all = ["seeds", "clock", "bitstream"])]
    modules: bool,
    /// Instead of the core, one module of it or of its host alone, by its name in --modules, between registers: in far less time than a
    /// core takes, which path limits it. What the rest of the core fixes, shares or leaves unread is not seen
    #[arg(long, value_name = "NAME", conflicts_with_all = ["modules", "bitstream"])]
    module: Option<String>,
    /// Print below the table the path that limits each clock, step by step, with nanoseconds from the clock's edge
    #[arg(long, conflicts_with_all = ["modules", "bitstream", "json"])]
    path: bool,
    /// Instead, a bitstream of the core with its host and UART, and what it was made from, in this folder; --seeds are
    /// placements tried at each clock
    #[arg(long, value_name = "DIR")]
    bitstream: Option<PathBuf>,
    /// Run also what is known; otherwise it is only reported
    #[arg(long)]
    again: bool,
    /// List the boards and do no more
    #[arg(long)]
    list: bool,
    /// Print an array of objects instead of a table
    #[arg(long)]
    json: bool,
    /// A core, its options in quotes; several may be asked for
    #[arg(long = "core", value_name = "OPTIONS", allow_hyphen_values = true)]
    cores: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// A core on a board.
#[derive(Serialize)]
struct Built {
    board: &'static str,
    /// The options of the core.
    configuration: String,
    /// The module of it that is built, alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    #[serde(flatten)]
    flat: Flat,
    /// There is enough of everything on the device.
    fits: bool,
    /// The median of the seeds.
    fmax_mhz: Option<f64>,
    /// The clock is lower, since nextpnr leaves paths out.
    fmax_is_bound: bool,
    seeds: Vec<f64>,
    /// That of the median.
    critical_path: Vec<String>,
    /// When the path is there, from the clock's edge on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    critical_path_ns: Vec<f64>,
    tools: Vec<String>,
    #[serde(skip)]
    runs: Vec<Timing>,
    /// What there is too little of.
    #[serde(skip)]
    over: Option<String>,
}

/// A core module by module.
#[derive(Serialize)]
struct Modules {
    board: &'static str,
    configuration: String,
    modules: Vec<Row>,
    tools: Vec<String>,
}

impl Synth {
    pub fn run(self) -> Result<()> {
        if self.list {
            return print(&boards());
        }
        let shapes = self.shapes()?;
        let interrupt = Interrupt::catch()?;
        if let Some(folder) = &self.bitstream {
            return self.bitstream(&shapes, folder, &interrupt);
        }
        let steps = if self.modules { 1 } else { 1 + self.seeds };
        let progress = Progress::new(shapes.len() as u64 * u64::from(steps));
        let stop = || interrupt.poll().is_break();
        let says = |what: &str| progress.says(what);
        let session = Session { stop: &stop, says: &says, again: self.again };
        if self.modules {
            let mut all = Vec::new();
            let ended = shapes.iter().try_for_each(|shape| {
                all.push(self.modules(shape, session)?);
                progress.0.inc(1);
                Ok(())
            });
            drop(progress);
            self.report(&all, |rows| rows.iter().map(modules_table).collect::<Vec<_>>().join("\n"))?;
            return interrupt.or(ended);
        }
        let mut all = Vec::new();
        let ended = shapes.iter().try_for_each(|shape| self.build(shape, session, &progress, &mut all));
        drop(progress);
        self.report(&all, |rows| table(rows) + &if self.path { paths(rows) } else { String::new() })?;
        interrupt.or(ended)?;
        let over = all.iter().zip(&shapes).find_map(|(built, shape)| Some((shape, built.over.as_ref()?)));
        let Some((shape, over)) = over.filter(|_| self.seeds > 0) else { return Ok(()) };
        if let Some(module) = &self.module {
            bail!("{module} of {} does not fit {}: {over}", shape.options(), self.board.name);
        }
        let progress = Progress::new(0);
        let says = |what: &str| progress.says(&format!("what fits: {what}"));
        let session = Session { stop: &stop, says: &says, again: false };
        let has_room = |shape: &Shape| match self.synthesis(shape, session) {
            Ok(mut synthesis) => Ok(synthesis.cells()?.over(self.board).is_none()),
            Err(_) => Ok(false),
        };
        let found = fit::largest(shape, has_room);
        drop(progress);
        Err(self.too_large(shape, over, interrupt.or(found.map_err(anyhow::Error::from))?))
    }

    /// What is over, and what would fit.
    fn too_large(&self, shape: &Shape, over: &str, largest: Option<Shape>) -> anyhow::Error {
        let fits = fit::told(shape, largest.as_ref());
        anyhow::anyhow!("{} does not fit {}: {over}{fits}", shape.options(), self.board.name)
    }

    /// The cores that are asked for.
    fn shapes(&self) -> Result<Vec<Shape>> {
        if self.path && self.seeds == 0 {
            bail!("--path: with --seeds 0 nothing is placed, so there is no path");
        }
        if let Some(shape) = self.shape.asked() {
            buildable(shape.second_level.is_some(), false)?;
        }
        let shapes = match self.shape.asked() {
            shape if !self.cores.is_empty() && (shape.is_some() || self.hardware.metrics) => {
                bail!("--core '{}': all options of a core stand in its quotes", self.cores[0])
            }
            Some(shape) => vec![self.hardware.of(&shape.shape()?)],
            None if self.cores.is_empty() => vec![self.hardware.of(&usual(self.board)?)],
            None => self.cores.iter().map(|core| parse(core)).collect::<Result<_>>()?,
        };
        for shape in &shapes {
            buildable(shape.second_level.is_some(), shape.modelled().is_some())?;
        }
        Ok(shapes)
    }

    fn synthesis<'a>(&self, shape: &Shape, session: Session<'a>) -> Result<Synthesis<'a>> {
        let top = system(shape).check()?.netlist;
        let Some(name) = &self.module else { return Ok(Synthesis::new(self.board, &top, session)) };
        let find = |top: &Arc<Module>| top.modules().into_iter().find(|module| module.name == *name);
        if let Some(module) = find(&top) {
            return Ok(Synthesis::of_module(self.board, &top, &module, session));
        }
        let top = over_uart(shape, ON_A_BOARD.0, ON_A_BOARD.1).check()?.netlist;
        let module = find(&top).with_context(|| {
            let modules = top.modules();
            let names: BTreeSet<&str> = modules.iter().map(|module| module.name.as_str()).collect();
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            format!("--module {name}: {} has no such module; it has {names}", shape.options())
        })?;
        Ok(Synthesis::of_module(self.board, &top, &module, session))
    }

    /// Appends what is found about one core, as far as it comes.
    fn build(&self, shape: &Shape, session: Session, progress: &Progress, all: &mut Vec<Built>) -> Result<()> {
        let mut synthesis = self.synthesis(shape, session)?;
        let flat = synthesis.cells()?;
        progress.0.inc(1);
        let over = flat.over(self.board);
        let nextpnr = (self.seeds > 0).then(|| self.board.family.nextpnr.title());
        let mut built = Built {
            board: self.board.name,
            configuration: shape.options(),
            module: self.module.clone(),
            flat,
            fits: over.is_none(),
            fmax_mhz: None,
            fmax_is_bound: self.board.family.clock_is_bound,
            seeds: Vec::new(),
            critical_path: Vec::new(),
            critical_path_ns: Vec::new(),
            tools: [YOSYS.title()].into_iter().chain(nextpnr).collect(),
            runs: Vec::new(),
            over,
        };
        let ended = (1..=self.seeds).try_for_each(|seed| {
            progress.0.inc(1);
            // What does not fit with one seed does with none.
            if built.fits { built.add(synthesis.timing(self.clock.unwrap_or(100.0), seed)) } else { Ok(()) }
        });
        all.push(built);
        ended
    }

    fn modules(&self, shape: &Shape, session: Session) -> Result<Modules> {
        let modules = self.synthesis(shape, session)?.modules()?;
        let tools = vec![YOSYS.title()];
        Ok(Modules { board: self.board.name, configuration: shape.options(), modules, tools })
    }

    /// Prints what there is, if there is any.
    fn report<T: Serialize>(&self, all: &[T], text: impl Fn(&[T]) -> String) -> Result<()> {
        match all {
            [] => Ok(()),
            _ if self.json => print_json(&all),
            _ => print(&text(all)),
        }
    }
}

impl Built {
    /// Adds a run of place and route, or what it found too small.
    fn add(&mut self, run: Result<Timing, Error>) -> Result<()> {
        match run {
            Ok(timing) => self.runs.push(timing),
            Err(Error::Full(over)) => (self.fits, self.over) = (false, Some(over)),
            Err(error) => return Err(error.into()),
        }
        self.seeds = self.runs.iter().map(|run| run.mhz).collect();
        if let Some(Timing { mhz, path, at_ns }) = median(&self.runs) {
            self.fmax_mhz = Some(*mhz);
            (self.critical_path, self.critical_path_ns) = (path.clone(), at_ns.clone());
        }
        Ok(())
    }
}

/// The board of a name.
pub fn board() -> impl TypedValueParser<Value = &'static Board> {
    let names = PossibleValuesParser::new(Board::ALL.map(|board| board.name));
    names.try_map(|name| Board::find(&name).ok_or("not in the list"))
}

/// A clock in MHz.
fn clock(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|mhz| (1.0..=1000.0).contains(mhz));
    number.ok_or_else(|| "wanted is a number of MHz, 1 to 1000".into())
}

/// The board's usual core.
pub fn usual(board: &Board) -> Result<Shape> {
    parse(board.shape)
}

/// The core of options in one text.
fn parse(options: &str) -> Result<Shape> {
    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        shape: ShapeArgs,
        #[command(flatten)]
        hardware: HardwareArgs,
    }
    let line = Line::try_parse_from(["heddle"].into_iter().chain(options.split_whitespace()));
    let shape = line.map_err(|error| {
        let text = error.to_string();
        anyhow::anyhow!("{}", text.lines().next().unwrap_or_default().trim_start_matches("error: "))
    });
    shape.and_then(|line| Ok(line.hardware.of(&line.shape.shape()?))).with_context(|| format!("--core '{options}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_check::synth::Cells;
    use heddle_simt::Metrics;

    fn built(configuration: &str, over: Option<&str>) -> Built {
        let cells = Cells { luts: 26516, lut4: 21464, carry: 2076, ff: 7617, distributed_ram: 150, bram: 25, dsp: 32 };
        Built {
            board: "ulx3s-85f",
            configuration: configuration.into(),
            module: None,
            flat: Flat { cells, core_luts: 23268, memory_bram: 80 },
            fits: over.is_none(),
            fmax_mhz: None,
            fmax_is_bound: false,
            seeds: Vec::new(),
            critical_path: Vec::new(),
            critical_path_ns: Vec::new(),
            tools: Vec::new(),
            runs: Vec::new(),
            over: over.map(String::from),
        }
    }

    fn timing(mhz: f64, path: &[&str]) -> Timing {
        Timing { mhz, path: path.iter().map(|name| name.to_string()).collect(), at_ns: Vec::new() }
    }

    #[test]
    fn a_row_has_the_median_and_the_ends_of_its_path() {
        let mut rows = [built("--lanes 8 --warps 8", None), built("--lanes 8", None), built("", Some("1 LUT wanted"))];
        rows[0].fmax_is_bound = true;
        for run in [timing(50.0, &["a"]), timing(43.5, &["core.cct", "core.steer", "core.pc"]), timing(40.0, &["b"])] {
            rows[0].add(Ok(run)).unwrap();
        }
        rows[1].add(Err(Error::Full("5392 ICESTORM_LC wanted, 5280 there".into()))).unwrap();
        assert!(rows[2].add(Err(Error::Interrupted)).is_err());
        let text = table(&rows);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let cells = ["26516", "23268", "21464", "2076", "7617", "150", "25+80", "32"];
        assert_eq!(
            words[0].join(" "),
            "LUTs in core LUT4 carry FF distributed RAM block RAM multipliers MHz critical path"
        );
        assert_eq!(words[1][4..], [&cells[..], &["<43.5", "core.cct", "->", "core.pc"]].concat());
        assert_eq!(
            words[2][2..],
            [&cells[..], &["does", "not", "fit:", "5392", "ICESTORM_LC", "wanted,", "5280", "there"]].concat()
        );
        assert_eq!(words[3], [&cells[..], &["does", "not", "fit:", "1", "LUT", "wanted"]].concat());
        assert_eq!(rows[0].seeds, [50.0, 43.5, 40.0]);
        let ends = |line: &str, text: &str| line.find(text).map(|at| at + text.len());
        let lines: Vec<&str> = text.lines().collect();
        for (title, number) in [("LUT4", "21464"), ("block RAM", "25+80"), ("MHz", "43.5")] {
            assert_eq!(ends(lines[0], title), ends(lines[1], number), "{text}");
        }
    }

    #[test]
    fn modules_have_a_line_each() {
        let cells = Cells { luts: 603, lut4: 539, carry: 32, ..Cells::default() };
        let modules = vec![Row { module: "alu".into(), copies: 8, cells }];
        let text = modules_table(&Modules { board: "", configuration: "--lanes 8".into(), modules, tools: Vec::new() });
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["--lanes", "8"]);
        assert_eq!(words[2], ["alu", "8", "603", "539", "32", "0", "0", "0", "0"]);
        assert_eq!(text.lines().nth(1).map(str::len), text.lines().nth(2).map(str::len));
    }

    /// Every board's usual core can be built, and is listed.
    #[test]
    fn boards_have_a_core() {
        let text = boards();
        for board in Board::ALL {
            parse(board.shape).unwrap();
            assert!(text.contains(board.name) && text.contains(board.shape), "{text}");
        }
    }

    /// Counters are built where they are asked for, and nowhere else.
    #[test]
    fn a_core_is_built_as_its_options_say() {
        let with = parse("--lanes 4 --metrics --warps 2").unwrap();
        let without = parse("--lanes 4 --warps 2").unwrap();
        assert_eq!((with.metrics, without.metrics), (Metrics::Built, Metrics::Off));
        assert_eq!(with.options(), format!("{} --metrics", without.options()));
        for shape in [with, without] {
            assert_eq!(parse(&shape.options()).unwrap(), shape);
        }
    }

    #[test]
    fn mistakes_in_quotes_are_told() {
        let error = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert_eq!(error("--lanes 3"), "--core '--lanes 3': lanes = 3: must be a power of two from 1 to 64");
        assert_eq!(error("--lane 4"), "--core '--lane 4': unexpected argument '--lane' found");
        assert!(error("--lanes many").starts_with("--core '--lanes many': invalid value 'many' for '--lanes <N>'"));
        assert_eq!(error("mandelbrot"), "--core 'mandelbrot': unexpected argument 'mandelbrot' found");
    }
}

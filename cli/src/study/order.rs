//! `heddle study order`: every kernel in every order of traversal, on path tables.

use super::age;
use super::draws::{self, Compared, DrawsArgs, Subject, mean};
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::{Run, usual};
use super::table::{gain, markdown, plain, share};
use super::told;
use crate::interrupt::Interrupt;
use crate::shape::ShapeArgs;
use anyhow::{Context, Result};
use clap::Args;
use heddle_simt::{Divergence, Order, Replay, Shape};
use heddle_testbench::kernels::{ALL, Kernel};
use heddle_testbench::machine::{CacheVisits, Summary};
use heddle_testbench::predict::{Options, predict};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// SIMT efficiency, IPC, paths and traffic of the cold table of every kernel in every order of traversal, on path tables.
///
/// Orders that bring paths together run programs as they are; the others, and the usual one for comparison, also programs
/// with convergence barriers at the post-dominators of branches, as `heddle predict --pdom` places them. Lanes of an access
/// are served one after the other (--replay serialise) unless asked otherwise: an access that parts threads is no branch
/// that they meet behind.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study order gcd sort --draws 1
  heddle study order raytrace --lanes 32 --warps 4
  heddle study order --json | jq '.rows[] | {kernel, order, program, gain, simt_efficiency, paths}'
  heddle study order --docs docs                  tables as a page; takes long",
    mut_arg("order", |arg| arg.hide(true)),
    mut_arg("divergence", |arg| arg.hide(true)),
)]
pub struct Orders {
    /// Some of the kernels
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    draws: DrawsArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Print one JSON object with an array `rows` instead of tables
    #[arg(long)]
    json: bool,
    /// Write studies/order.md into this folder, too, of the usual core
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels"])]
    docs: Option<PathBuf>,
}

const STUDY: &str = "order";
const BARRIERS: u32 = 16;

/// Which program of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Made {
    /// As it is.
    Plain,
    /// With barriers at post-dominators.
    Pdom,
}

/// An order, and which programs run in it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Variant {
    order: Order,
    made: Made,
}

/// The usual order first.
const VARIANTS: [Variant; 11] = {
    const fn of(order: Order, made: Made) -> Variant {
        Variant { order, made }
    }
    [
        of(Order::DepthPc, Made::Plain),
        of(Order::DepthPc, Made::Pdom),
        of(Order::Pc, Made::Plain),
        of(Order::Swap, Made::Plain),
        of(Order::Swap, Made::Pdom),
        of(Order::Minority, Made::Plain),
        of(Order::Minority, Made::Pdom),
        of(Order::Majority, Made::Plain),
        of(Order::Majority, Made::Pdom),
        of(Order::BreadthFirst, Made::Plain),
        of(Order::BreadthFirst, Made::Pdom),
    ]
};

impl Variant {
    fn name(self) -> String {
        match self.made {
            Made::Plain => self.order.name().into(),
            Made::Pdom => format!("{}, pdom", self.order.name()),
        }
    }

    fn row(self, kernel: &'static str, figures: Option<Figures>, failed: Option<String>) -> Row {
        let divergence = Divergence::PATH_TABLE.name();
        let of = Subject { study: STUDY, kernel: Some(kernel), set: None, variant: self.name(), divergence };
        Row { of, order: self.order.name(), program: self.made, figures, failed }
    }

    fn shape(self, shape: &Shape) -> Result<Shape> {
        let convergence_barriers = if self.made == Made::Pdom { BARRIERS } else { 0 };
        let fair = shape.fair || self.order.takes_turns();
        let shape = Shape { order: self.order, convergence_barriers, fair, ..shape.clone() };
        shape.check().with_context(|| self.name())?;
        Ok(shape)
    }

    fn run(self, kernel: &'static Kernel, shape: &Shape) -> Result<Run> {
        let run = Run::new(kernel, self.shape(shape)?);
        Ok(match self.made {
            Made::Plain => run,
            Made::Pdom => {
                let options = Options { barriers: BARRIERS, pdom: true, directives: false, ..Options::default() };
                let elf: Arc<[u8]> = predict(kernel.elf, &options).with_context(|| kernel.name)?.elf.into();
                Run { elf, ..run }
            }
        })
    }
}

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    /// The options of the core in the usual order.
    core: String,
    draws: u32,
    /// By kernel, in the order of the variants.
    rows: Vec<Row>,
}

/// A kernel in an order.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    of: Subject,
    order: &'static str,
    program: Made,
    /// Of all draws; none if a draw failed.
    #[serde(flatten)]
    figures: Option<Figures>,
    /// Why a draw failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

#[derive(Serialize)]
struct Figures {
    /// With the usual order's plain program.
    #[serde(flatten)]
    compared: Compared,
    /// Arithmetic means over the draws.
    simt_efficiency: f64,
    cycles: f64,
    /// The greatest number of paths that a warp held in any draw.
    paths: u64,
    /// Paths that went to the cold table or came back, and exchanges in it, of 1000 warp instructions.
    cold_traffic: f64,
    /// What the data cache did in all draws, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheVisits>,
}

impl Figures {
    fn new(draws: &[Summary], first: Option<&[f64]>) -> Figures {
        let mean = |value: &dyn Fn(&Summary) -> f64| draws::average(draws, value);
        let ipc = draws::ipc(draws);
        let traffic = |s: &Summary| (s.cct_insertions + s.cct_extractions + s.cct_swaps) as f64;
        Figures {
            compared: first.map_or(Compared::alone(&ipc), |first| Compared::new(first, &ipc)),
            simt_efficiency: mean(&|s| s.simt_efficiency),
            cycles: mean(&|s| s.cycles as f64),
            paths: draws.iter().map(|s| s.most_paths).max().unwrap_or(0),
            cold_traffic: mean(&|s| 1000.0 * traffic(s) / s.warp_instructions.max(1) as f64),
            cache: draws::counted(draws, |s| s.cache),
        }
    }
}

impl Row {
    fn kernel(&self) -> &'static str {
        self.of.kernel.expect("a row is of one")
    }
}

impl Orders {
    pub fn run(self) -> Result<()> {
        let (kernels, shape) = (self.kernels()?, self.shape()?);
        self.docs.as_deref().map(|folder| page::check(folder, self.shape.given(), STUDY, &[])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let results = draws::each_as(&runs, self.draws, &usual(self.shape.seed), kept.as_ref(), &interrupt)?;
        let mut rows = Vec::new();
        for (kernel, on_cores) in kernels.iter().zip(draws::by_program(&results, kernels.len())) {
            let first = on_cores[0].as_deref().ok().map(draws::ipc);
            for (variant, drawn) in VARIANTS.iter().zip(on_cores) {
                let (figures, failed) = match drawn {
                    Ok(draws) => (Some(Figures::new(&draws, first.as_deref())), None),
                    Err(why) => (None, Some(why)),
                };
                rows.push(variant.row(kernel.name, figures, failed));
            }
        }
        let (lanes, warps, core) = (shape.lanes, shape.warps, shape.options());
        let report = Report { study: STUDY, lanes, warps, core, draws: self.draws.draws, rows };
        if let Some(folder) = &self.docs {
            let page = age::of_now(folder, &text(&report), &runs, &interrupt)?;
            page::write(folder, STUDY, &page, &[])?;
        }
        told(self.json, &report, tables)
    }

    /// A machine runs all kernels before the next is built.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let (kernels, shape) = (self.kernels()?, self.shape()?);
        let all = VARIANTS.into_iter().flat_map(|v| kernels.iter().map(move |kernel| (v, *kernel)));
        all.map(|(variant, kernel)| variant.run(kernel, &shape)).collect()
    }

    fn kernels(&self) -> Result<Vec<&'static Kernel>> {
        let names: Vec<&'static str> = ALL.iter().map(|kernel| kernel.name).collect();
        Ok(chosen(&self.kernels, &names)?.into_iter().map(|(_, kernel)| kernel).collect())
    }

    /// That of the usual order and of programs as they are.
    fn shape(&self) -> Result<Shape> {
        let replay = self.shape.replay.or(Some(Replay::Serialise));
        let args = ShapeArgs { order: None, divergence: Divergence::PATH_TABLE, replay, ..self.shape.clone() };
        args.shape()
    }
}

const NONE: &str = "-";

/// A line for each kernel, a cell for each variant, below its names.
fn table(report: &Report, cell: impl Fn(&Figures) -> String) -> Vec<Vec<String>> {
    let mut lines = vec![std::iter::once("kernel".into()).chain(VARIANTS.map(Variant::name)).collect::<Vec<String>>()];
    for rows in report.rows.chunks(VARIANTS.len()) {
        let cells = rows.iter().map(|row| row.figures.as_ref().map_or(NONE.into(), &cell));
        lines.push(std::iter::once(rows[0].kernel().to_string()).chain(cells).collect());
    }
    lines
}

/// Of the first the figure, of others how much more.
fn ipc(report: &Report) -> Vec<Vec<String>> {
    let mut lines = table(report, |f| f.compared.gain.map_or(NONE.into(), gain));
    for (line, rows) in lines[1..].iter_mut().zip(report.rows.chunks(VARIANTS.len())) {
        line[1] = rows[0].figures.as_ref().map_or(NONE.into(), |f| {
            let Compared { thread_ipc, range, .. } = f.compared;
            let [least, greatest] = range.expect("there are draws");
            format!("{thread_ipc:.2} ({least:.2} … {greatest:.2})")
        });
    }
    let of = |variant: usize| {
        let rows = report.rows.chunks(VARIANTS.len());
        mean(rows.filter_map(move |rows| rows[variant].figures.as_ref()?.compared.gain))
    };
    let means = (1..VARIANTS.len()).map(|variant| gain(of(variant)));
    lines.push(["mean".to_string(), String::new()].into_iter().chain(means).collect());
    lines
}

fn efficiencies(report: &Report) -> Vec<Vec<String>> {
    table(report, |f| share(f.simt_efficiency))
}

fn paths(report: &Report) -> Vec<Vec<String>> {
    table(report, |f| f.paths.to_string())
}

fn traffic(report: &Report) -> Vec<Vec<String>> {
    table(report, |f| format!("{:.1}", f.cold_traffic))
}

/// What failed, a line each.
fn failures(report: &Report) -> String {
    let line = |row: &Row| {
        let program = if row.program == Made::Pdom { " with barriers" } else { "" };
        row.failed.as_ref().map(|why| format!("* {}{program} in the order {}: {why}\n", row.kernel(), row.order))
    };
    let lines: String = report.rows.iter().filter_map(line).collect();
    if lines.is_empty() { "All kernels ran in all orders.\n".into() } else { lines }
}

fn tables(report: &Report) -> String {
    format!(
        "{}\nthread IPC, and over the first\n{}\nSIMT efficiency\n{}\nmost paths of a warp\n{}\n\
         cold table: insertions, returns and exchanges of 1000 warp instructions\n{}\n{}",
        report.core,
        plain(&ipc(report), 1),
        plain(&efficiencies(report), 1),
        plain(&paths(report), 1),
        plain(&traffic(report), 1),
        failures(report)
    )
}

fn text(report: &Report) -> String {
    include_str!("order/page.md")
        .replace("{core}", &format!("{} lanes × {} warps", report.lanes, report.warps))
        .replace("{options}", &report.core)
        .replace("{draws}", &report.draws.to_string())
        .replace("{barriers}", &BARRIERS.to_string())
        .replace("{ipc}", markdown(&ipc(report)).trim_end())
        .replace("{efficiencies}", markdown(&efficiencies(report)).trim_end())
        .replace("{paths}", markdown(&paths(report)).trim_end())
        .replace("{traffic}", markdown(&traffic(report)).trim_end())
        .replace("{failures}", failures(report).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    fn study(line: &str) -> Orders {
        let command = Orders::augment_args(clap::Command::new("order").no_binary_name(true));
        Orders::from_arg_matches(&command.get_matches_from(line.split_whitespace())).unwrap()
    }

    #[test]
    fn every_order_is_there_and_those_that_need_barriers_with_them() {
        for (_, order) in Order::ALL {
            let of = |made| VARIANTS.contains(&Variant { order: *order, made });
            assert!(of(Made::Plain));
            // By these, paths in the same place come to be side by side.
            assert!(matches!(order, Order::DepthPc | Order::Pc) || of(Made::Pdom));
        }
        assert!(VARIANTS[0] == Variant { order: Order::DepthPc, made: Made::Plain });
    }

    #[test]
    fn barriers_are_in_the_programs_that_say_so() {
        let runs = study("gcd --lanes 4 --warps 2").runs().unwrap();
        assert_eq!(runs.len(), VARIANTS.len());
        for (run, variant) in runs.iter().zip(VARIANTS) {
            let pdom = variant.made == Made::Pdom;
            assert_eq!(
                (run.shape.convergence_barriers > 0, run.elf != runs[0].elf),
                (pdom, pdom),
                "{}",
                variant.name()
            );
            assert_eq!(run.shape.order, variant.order);
            assert_eq!(run.shape.replay, Replay::Serialise);
        }
    }

    #[test]
    fn tables_have_a_cell_for_each() {
        let summary =
            |thread_ipc: f64| Summary { thread_ipc, warp_instructions: 100, cct_swaps: 3, ..Summary::default() };
        let first = [2.0, 4.0];
        let row = |variant: Variant| {
            let failed = (variant.order == Order::Majority).then(|| "stopped".to_string());
            let draws = first.map(|ipc| summary(ipc / 2.0));
            let figures = failed.is_none().then(|| Figures::new(&draws, Some(&first)));
            variant.row("gcd", figures, failed)
        };
        let rows = VARIANTS.map(row).into();
        let report = Report { study: STUDY, lanes: 8, warps: 8, core: "--lanes 8".into(), draws: 2, rows };
        let ipc = ipc(&report);
        assert_eq!(ipc[1][..3], ["gcd", "1.41 (1.00 … 2.00)", "-50.0 %"]);
        assert_eq!(traffic(&report)[1][1], "30.0");
        assert_eq!(ipc[1][8], NONE);
        assert!(
            failures(&report).contains("* gcd with barriers in the order majority: stopped"),
            "{}",
            failures(&report)
        );
        assert!(!text(&report).contains(['{', '}']), "{}", text(&report));
    }
}

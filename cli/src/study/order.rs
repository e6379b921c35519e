//! `heddle study order`: every kernel in every order of traversal, on path tables.

use super::age;
use super::draws::{self, Compared, DrawsArgs, Gain, Subject, mean};
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

/// SIMT efficiency, time, paths and traffic of the cold table of every kernel in every order of traversal, on path tables.
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
    /// In cycles, with the usual order's plain program: instructions on barriers are no work.
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
    fn new(draws: &[Summary], first: Option<&[Summary]>) -> Figures {
        let mean = |value: &dyn Fn(&Summary) -> f64| draws::average(draws, value);
        let alone = Compared::alone(&draws::ipc(draws));
        let cycles = |draws: &[Summary]| draws.iter().map(|draw| draw.cycles as f64).collect::<Vec<_>>();
        let traffic = |s: &Summary| (s.cct_insertions + s.cct_extractions + s.cct_swaps) as f64;
        Figures {
            compared: first.map_or(alone, |first| alone.over(Gain::paired(&cycles(draws), &cycles(first)))),
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
            let first = on_cores[0].clone().ok();
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
    table_of(report, |_| true, cell)
}

/// The same, of some of the variants.
fn table_of(report: &Report, is: impl Fn(Variant) -> bool, cell: impl Fn(&Figures) -> String) -> Vec<Vec<String>> {
    let names = VARIANTS.into_iter().filter(|variant| is(*variant)).map(Variant::name);
    let mut lines: Vec<Vec<String>> = vec![std::iter::once("kernel".into()).chain(names).collect()];
    for rows in report.rows.chunks(VARIANTS.len()) {
        let some = VARIANTS.iter().zip(rows).filter(|(variant, _)| is(**variant));
        let cells = some.map(|(_, row)| row.figures.as_ref().map_or(NONE.into(), &cell));
        lines.push(std::iter::once(rows[0].kernel().to_string()).chain(cells).collect());
    }
    lines
}

/// Of programs as they are, or with barriers, in how much less time than the usual order; of that its thread IPC.
fn times(report: &Report, made: Made) -> Vec<Vec<String>> {
    let is = |variant: Variant| variant.made == made;
    let mut lines = table_of(report, is, |f| f.compared.gain().map_or(NONE.into(), |gain| gain.with_range()));
    let of = |place: usize| {
        let rows = report.rows.chunks(VARIANTS.len());
        mean(rows.filter_map(move |rows| rows[place].figures.as_ref()?.compared.gain))
    };
    let places = (0..VARIANTS.len()).filter(|&place| is(VARIANTS[place]));
    lines.push(std::iter::once("mean".into()).chain(places.map(|place| gain(of(place)))).collect());
    if made == Made::Plain {
        lines[0][1] += ", thread IPC";
        for (line, rows) in lines[1..].iter_mut().zip(report.rows.chunks(VARIANTS.len())) {
            line[1] = rows[0].figures.as_ref().map_or(NONE.into(), |f| {
                let Compared { thread_ipc, range, .. } = f.compared;
                let [least, greatest] = range.expect("there are draws");
                format!("{thread_ipc:.2} ({least:.2} … {greatest:.2})")
            });
        }
        lines.last_mut().expect("there is the mean")[1].clear();
    }
    lines
}

/// The most entries of a stack with the minority first, beside the active path. (`path-lists-simty.txt` §2.2)
fn bound(report: &Report) -> u32 {
    report.lanes.ilog2()
}

/// Which kernels have more paths than that, with the minority first.
fn beyond(report: &Report, made: Made) -> String {
    let rows = report.rows.iter().filter(|row| row.order == Order::Minority.name() && row.program == made);
    let paths: Vec<(&str, u64)> = rows.filter_map(|row| Some((row.kernel(), row.figures.as_ref()?.paths))).collect();
    let is_beyond = |&&(_, paths): &&(&str, u64)| paths > u64::from(bound(report)) + 1;
    let more: Vec<String> =
        paths.iter().filter(is_beyond).map(|(kernel, paths)| format!("{kernel} ({paths})")).collect();
    let within = format!("{} of {} kernels stay within it", paths.len() - more.len(), paths.len());
    if more.is_empty() { format!("{within}.") } else { format!("{within}; more paths have {}.", more.join(", ")) }
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
        "{}\nthread IPC, and of others time over the first\n{}\nthe same with barriers\n{}\nSIMT efficiency\n{}\n\
         most paths of a warp\n{}\n\
         cold table: insertions, returns and exchanges of 1000 warp instructions\n{}\n{}",
        report.core,
        plain(&times(report, Made::Plain), 1),
        plain(&times(report, Made::Pdom), 1),
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
        .replace("{times}", markdown(&times(report, Made::Plain)).trim_end())
        .replace("{times_pdom}", markdown(&times(report, Made::Pdom)).trim_end())
        .replace("{efficiencies}", markdown(&efficiencies(report)).trim_end())
        .replace("{paths}", markdown(&paths(report)).trim_end())
        .replace("{lanes}", &report.lanes.to_string())
        .replace("{bound}", &bound(report).to_string())
        .replace("{beyond}", &beyond(report, Made::Plain))
        .replace("{beyond_pdom}", &beyond(report, Made::Pdom))
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

    /// Programs with barriers have half of the thread IPC, and take half of the time in the first draw.
    fn example() -> Report {
        let summary = |thread_ipc, cycles, most_paths| Summary {
            thread_ipc,
            cycles,
            most_paths,
            warp_instructions: 100,
            cct_swaps: 3,
            ..Summary::default()
        };
        let first = [summary(2.0, 200, 4), summary(4.0, 400, 4)];
        let row = |kernel, variant: Variant| {
            let failed = (variant.order == Order::Majority).then(|| "stopped".to_string());
            let own = match (variant.made, variant.order) {
                (Made::Plain, Order::Minority) => [summary(1.0, 400, 5), summary(2.0, 800, 3)],
                (Made::Plain, _) => first,
                (Made::Pdom, _) => [summary(1.0, 100, 4), summary(2.0, if kernel == "gcd" { 500 } else { 100 }, 4)],
            };
            let figures = failed.is_none().then(|| Figures::new(&own, Some(&first)));
            variant.row(kernel, figures, failed)
        };
        let rows = ["gcd", "sort"].iter().flat_map(|kernel| VARIANTS.map(|variant| row(kernel, variant))).collect();
        Report { study: STUDY, lanes: 8, warps: 8, core: "--lanes 8".into(), draws: 2, rows }
    }

    #[test]
    fn programs_are_compared_by_time() {
        let report = example();
        let plain = times(&report, Made::Plain);
        assert_eq!(plain[0][..3], ["kernel", "depth-pc, thread IPC", "pc"]);
        assert_eq!(plain[1], ["gcd", "2.83 (2.00 … 4.00)", "+0.0 %", "+0.0 %", "-50.0 %", NONE, "+0.0 %"]);
        assert_eq!(plain[3], ["mean", "", "+0.0 %", "+0.0 %", "-50.0 %", NONE, "+0.0 %"]);
        let pdom = times(&report, Made::Pdom);
        assert_eq!(pdom[0][..2], ["kernel", "depth-pc, pdom"]);
        let none = "none (-20.0 … +100.0 %)";
        assert_eq!(pdom[1], ["gcd", none, none, none, NONE, none]);
        assert_eq!(pdom[2][1], "+182.8 % (+100.0 … +300.0 %)");
        assert!((report.rows[1].figures.as_ref().unwrap().compared.gain.unwrap() - 1.6f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn kernels_with_more_paths_than_the_bound_are_named() {
        let mut report = example();
        assert_eq!(beyond(&report, Made::Plain), "0 of 2 kernels stay within it; more paths have gcd (5), sort (5).");
        // The active path and three others.
        assert_eq!(beyond(&report, Made::Pdom), "2 of 2 kernels stay within it.");
        report.lanes = 16;
        assert_eq!(beyond(&report, Made::Plain), "2 of 2 kernels stay within it.");
    }

    #[test]
    fn tables_have_a_cell_for_each() {
        let report = example();
        assert_eq!((traffic(&report)[0].len(), traffic(&report)[1][1].as_str()), (1 + VARIANTS.len(), "30.0"));
        assert_eq!(paths(&report)[1][8], NONE);
        assert!(
            failures(&report).contains("* gcd with barriers in the order majority: stopped"),
            "{}",
            failures(&report)
        );
        let text = text(&report);
        assert!(!text.contains(['{', '}']), "{text}");
        assert!([Made::Plain, Made::Pdom].iter().all(|made| text.contains(&beyond(&report, *made))), "{text}");
        assert!(text.contains("| sort | +182.8 % (+100.0 … +300.0 %) |"), "{text}");
    }
}

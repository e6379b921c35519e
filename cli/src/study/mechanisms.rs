//! `heddle study mechanisms`: every kernel on every mechanism, on one core.

use super::age;
use super::chart::{Bars, Chart};
use super::draws::{self, Compared, DIVERGENT, DrawsArgs, Gain, Subject, mean};
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::{Run, usual};
use super::table::{markdown, plain, share};
use super::told;
use crate::interrupt::Interrupt;
use crate::mechanisms::mechanisms;
use crate::shape::ShapeArgs;
use anyhow::{Context, Result};
use clap::Args;
use heddle_simt::{Compaction, Replay, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels::{ALL, Kernel};
use heddle_testbench::machine::{CacheVisits, IdleCycles, SecondLevelVisits, Summary};
use serde::Serialize;
use std::path::PathBuf;

/// Thread instructions a cycle and SIMT efficiency of every kernel on every mechanism, which are otherwise one core.
///
/// Mechanisms are compared with the one of the options of the core, path tables unless --divergence names another. Path
/// tables stand there twice, the second time with accesses that do not leave lanes behind (--replay serialise), as
/// stacks have them; block stacks twice, the second time with prediction (CAPRI); path tables and arbiter also with paths that
/// give way to each other (--fair on). Each kernel runs with several inputs.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle study mechanisms                               all kernels on 8 lanes and 8 warps; takes minutes
  heddle study mechanisms gcd sort --lanes 32           two of them on another core
  heddle study mechanisms --draws 1 --json | jq '.rows[] | {kernel, variant, thread_ipc}'
  heddle study mechanisms --results runs                goes on where it was ended
  heddle study mechanisms --docs docs                   tables and chart as a page")]
pub struct Mechanisms {
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
    /// Write studies/mechanisms.md and studies/mechanisms.svg into this folder, too, of the usual core
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels"])]
    docs: Option<PathBuf>,
}

const STUDY: &str = "mechanisms";
/// Mechanisms in the chart, at most.
const CHARTED: usize = 5;

/// A mechanism, and the core that has it.
struct Variant {
    name: String,
    shape: Shape,
}

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    /// The options of the core that others are compared with.
    core: String,
    draws: u32,
    mechanisms: Vec<String>,
    /// Those of the chart: they serve the lanes of an access one after the other, all alike.
    #[serde(skip)]
    charted: Vec<usize>,
    /// By kernel and mechanism.
    rows: Vec<Row>,
}

/// A kernel on a mechanism.
#[derive(Serialize)]
struct Row {
    /// The set is what the SIMT efficiency on the first mechanism says.
    #[serde(flatten)]
    of: Subject,
    /// Of all draws; none if a draw failed.
    #[serde(flatten)]
    figures: Option<Figures>,
    /// Why a draw failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

#[derive(Serialize)]
struct Figures {
    /// With the first mechanism.
    #[serde(flatten)]
    compared: Compared,
    /// Arithmetic means over the draws.
    cycles: f64,
    warp_ipc: f64,
    simt_efficiency: f64,
    /// Shares of cycles without an issue: no instruction, register, memory, barrier, divergence unit.
    idle: [f64; 5],
    /// What the data cache did in all draws.
    cache: Option<CacheVisits>,
    /// What its second level did.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_level: Option<SecondLevelVisits>,
    most_paths: u64,
    /// Of each draw.
    ipc_of_draws: Vec<f64>,
}

impl Figures {
    fn new(draws: &[Summary], first: Option<&[f64]>) -> Figures {
        let mean = |value: &dyn Fn(&Summary) -> f64| draws::average(draws, value);
        let idle = |cause: fn(&IdleCycles) -> u64| mean(&|s| cause(&s.idle) as f64 / s.cycles as f64);
        let ipc_of_draws = draws::ipc(draws);
        let alone = Compared::alone(&ipc_of_draws);
        Figures {
            compared: first.map_or(alone, |first| Compared::new(first, &ipc_of_draws)),
            cycles: mean(&|s| s.cycles as f64),
            warp_ipc: mean(&|s| s.warp_ipc),
            simt_efficiency: mean(&|s| s.simt_efficiency),
            idle: [
                idle(|i| i.no_instruction),
                idle(|i| i.scoreboard),
                idle(|i| i.memory),
                idle(|i| i.barrier),
                idle(|i| i.divergence),
            ],
            cache: draws::counted(draws, |s| s.cache),
            second_level: draws::counted(draws, |s| s.second_level),
            most_paths: draws.iter().map(|s| s.most_paths).max().unwrap_or(0),
            ipc_of_draws,
        }
    }

    fn gain(&self) -> Option<Gain> {
        self.compared.gain()
    }
}

impl Mechanisms {
    pub fn run(self) -> Result<()> {
        let (kernels, variants) = (self.kernels()?, self.variants()?);
        let first = &variants[0].shape;
        for kernel in &kernels {
            Program::parse(kernel.elf)?.check(first).context(kernel.name)?;
        }
        self.docs.as_deref().map(|folder| page::check(folder, self.shape.given(), STUDY, &[""])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let results = draws::each_as(&runs, self.draws, &usual(self.shape.seed), kept.as_ref(), &interrupt)?;
        let mut rows = Vec::new();
        for (kernel, on_cores) in kernels.iter().zip(draws::by_program(&results, kernels.len())) {
            let first = on_cores[0].as_deref().ok().map(draws::ipc);
            let efficiency = |draws: &Vec<Summary>| draws::average(draws, |s| s.simt_efficiency);
            let set = on_cores[0].as_ref().ok().map(|draws| set(efficiency(draws)));
            for (variant, drawn) in variants.iter().zip(on_cores) {
                let (figures, failed) = match drawn {
                    Ok(draws) => (Some(Figures::new(&draws, first.as_deref())), None),
                    Err(why) => (None, Some(why)),
                };
                let divergence = variant.shape.divergence.name();
                let kernel = Some(kernel.name);
                let of = Subject { study: STUDY, kernel, set, variant: variant.name.clone(), divergence };
                rows.push(Row { of, figures, failed });
            }
        }
        let report = Report {
            study: STUDY,
            lanes: first.lanes,
            warps: first.warps,
            core: first.options(),
            draws: self.draws.draws,
            mechanisms: variants.iter().map(|variant| variant.name.clone()).collect(),
            charted: charted(&variants),
            rows,
        };
        if let Some(folder) = &self.docs {
            let page = age::of_now(folder, &text(&report), &runs, &interrupt)?;
            page::write(folder, STUDY, &page, &[("", chart(&report))])?;
        }
        told(self.json, &report, tables)
    }

    /// A machine runs all kernels before the next is built.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let kernels = self.kernels()?;
        let of = |v: Variant| kernels.iter().map(move |kernel| Run::new(kernel, v.shape.clone())).collect::<Vec<_>>();
        Ok(self.variants()?.into_iter().flat_map(of).collect())
    }

    /// Those that are asked for, or all.
    fn kernels(&self) -> Result<Vec<&'static Kernel>> {
        let names: Vec<&'static str> = ALL.iter().map(|kernel| kernel.name).collect();
        Ok(chosen(&self.kernels, &names)?.into_iter().map(|(_, kernel)| kernel).collect())
    }

    /// That of the options first.
    fn variants(&self) -> Result<Vec<Variant>> {
        let shape = self.shape.shape()?;
        let others = mechanisms().iter().filter(|mechanism| **mechanism != shape.divergence);
        let mut variants = Vec::new();
        for &divergence in [&shape.divergence].into_iter().chain(others) {
            let (name, can) = (divergence.name(), divergence.capabilities());
            let core = shape.clone().with_divergence(divergence);
            let mut with = |more: &str, shape: Shape| -> Result<()> {
                shape.check().with_context(|| format!("{name}{more}"))?;
                variants.push(Variant { name: format!("{name}{more}"), shape });
                Ok(())
            };
            with("", core.clone())?;
            if can.fair && !core.fair {
                with(", fair", Shape { fair: true, ..core.clone() })?;
            }
            if can.splits && core.replay != Replay::Serialise {
                with(", serialise", Shape { replay: Replay::Serialise, ..core.clone() })?;
            }
            if can.mixes_warps && core.compaction != Compaction::Predict {
                with(", predict", Shape { compaction: Compaction::Predict, ..core })?;
            }
        }
        Ok(variants)
    }
}

/// The first of those that serialise; of all, if none or one does.
fn charted(variants: &[Variant]) -> Vec<usize> {
    let serialises = |at: &usize| variants[*at].shape.replay == Replay::Serialise;
    let charted: Vec<usize> = (0..variants.len()).filter(serialises).take(CHARTED).collect();
    if charted.len() > 1 { charted } else { (0..variants.len().min(CHARTED)).collect() }
}

impl Report {
    fn kernels(&self) -> impl Iterator<Item = &[Row]> {
        self.rows.chunks(self.mechanisms.len())
    }

    /// The geometric mean of a mechanism over the first, of all kernels or the divergent ones; of those that ran.
    fn mean(&self, mechanism: usize, divergent: bool) -> f64 {
        let rows = self.kernels().filter(|rows| !divergent || is_divergent(rows));
        mean(rows.filter_map(|rows| Some(rows[mechanism].figures.as_ref()?.gain()?.mean)))
    }
}

/// Of a kernel with this SIMT efficiency on the first mechanism.
fn set(efficiency: f64) -> &'static str {
    if efficiency < DIVERGENT { "divergent" } else { "coherent" }
}

fn is_divergent(rows: &[Row]) -> bool {
    rows[0].of.set == Some("divergent")
}

impl Row {
    fn kernel(&self) -> &'static str {
        self.of.kernel.expect("a row is of one")
    }
}

const NONE: &str = "-";

fn cell(row: &Row, of: impl Fn(&Figures) -> String) -> String {
    row.figures.as_ref().map_or(NONE.into(), of)
}

/// Thread IPC of the first mechanism, and the others over it.
fn gains(report: &Report) -> Vec<Vec<String>> {
    let mut lines = vec![std::iter::once("kernel".to_string()).chain(report.mechanisms.iter().cloned()).collect()];
    for rows in report.kernels() {
        let others = rows[1..].iter().map(|row| cell(row, |f| f.gain().map_or(NONE.into(), |gain| gain.with_range())));
        let first = cell(&rows[0], |f| format!("{:.2}", f.compared.thread_ipc));
        lines.push([rows[0].kernel().to_string(), first].into_iter().chain(others).collect());
    }
    for (name, divergent) in [("mean of all", false), ("mean of the divergent", true)] {
        let means = (1..report.mechanisms.len()).map(|mechanism| super::table::gain(report.mean(mechanism, divergent)));
        lines.push([name.to_string(), String::new()].into_iter().chain(means).collect());
    }
    lines
}

fn efficiencies(report: &Report) -> Vec<Vec<String>> {
    let mut lines = vec![std::iter::once("kernel".to_string()).chain(report.mechanisms.iter().cloned()).collect()];
    for rows in report.kernels() {
        let cells = rows.iter().map(|row| cell(row, |f| share(f.simt_efficiency)));
        lines.push(std::iter::once(rows[0].kernel().to_string()).chain(cells).collect());
    }
    lines
}

/// Where the first mechanism's cycles went.
fn cycles(report: &Report) -> Vec<Vec<String>> {
    let heads =
        ["kernel", "cycles", "thread IPC", "warp IPC", "SIMT efficiency", "no instruction", "register", "memory"];
    let mut lines =
        vec![heads.into_iter().chain(["barrier", "divergence", "most paths"]).map(String::from).collect::<Vec<_>>()];
    for rows in report.kernels() {
        let Some(f) = &rows[0].figures else { continue };
        let mut line = vec![rows[0].kernel().to_string(), format!("{:.0} k", f.cycles / 1000.0)];
        line.extend([format!("{:.2}", f.compared.thread_ipc), format!("{:.3}", f.warp_ipc), share(f.simt_efficiency)]);
        line.extend(f.idle.map(share));
        line.push(f.most_paths.to_string());
        lines.push(line);
    }
    lines
}

/// What failed, a line each.
fn failures(report: &Report) -> String {
    let failed =
        |row: &Row| row.failed.as_ref().map(|why| format!("* {} on {}: {why}\n", row.kernel(), row.of.variant));
    let lines: String = report.rows.iter().filter_map(failed).collect();
    if lines.is_empty() { "All kernels ran on all mechanisms.\n".into() } else { lines }
}

fn tables(report: &Report) -> String {
    format!(
        "{}\nthread IPC, and over the first\n{}\nSIMT efficiency\n{}\nwhere cycles went, on {}\n{}\n{}",
        report.core,
        plain(&gains(report), 1),
        plain(&efficiencies(report), 1),
        report.mechanisms[0],
        plain(&cycles(report), 1),
        failures(report)
    )
}

fn text(report: &Report) -> String {
    let core = format!("{} lanes × {} warps", report.lanes, report.warps);
    include_str!("mechanisms/page.md")
        .replace("{core}", &core)
        .replace("{options}", &report.core)
        .replace("{draws}", &report.draws.to_string())
        .replace("{first}", &report.mechanisms[0])
        .replace("{limit}", &format!("{:.0} %", 100.0 * DIVERGENT))
        .replace("{gains}", markdown(&gains(report)).trim_end())
        .replace("{efficiencies}", markdown(&efficiencies(report)).trim_end())
        .replace("{cycles}", markdown(&cycles(report)).trim_end())
        .replace("{failures}", failures(report).trim_end())
}

/// The divergent kernels, and what their SIMT efficiency on the first of the chart allows.
fn chart(report: &Report) -> String {
    let group = |rows: &[Row]| {
        let figures = report.charted.iter().map(|&at| rows[at].figures.as_ref()).collect::<Vec<_>>();
        let bound = |f: &Figures| f64::from(report.lanes) * f.simt_efficiency;
        Bars {
            heading: None,
            name: rows[0].kernel().into(),
            values: figures.iter().map(|figures| figures.map(|f| f.compared.thread_ipc)).collect(),
            mark: figures[0].map(bound),
        }
    };
    let title =
        format!("Thread instructions a cycle of divergent kernels, {} lanes × {} warps", report.lanes, report.warps);
    let groups: Vec<Bars> = report.kernels().filter(|rows| is_divergent(rows)).map(group).collect();
    let values = groups.iter().flat_map(|bars| bars.values.iter().flatten().chain(&bars.mark));
    let most = values.fold(1.0, |most: f64, &value| most.max(value)).ceil();
    let series: Vec<&str> = report.charted.iter().map(|&at| report.mechanisms[at].as_str()).collect();
    Chart { title: &title, series: &series, mark: "bound of the first", most, step: 1.0, groups }.svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    fn study(line: &str) -> Mechanisms {
        let command = Mechanisms::augment_args(clap::Command::new("mechanisms").no_binary_name(true));
        Mechanisms::from_arg_matches(&command.get_matches_from(line.split_whitespace())).unwrap()
    }

    fn of(kernel: &'static str, divergence: &'static str) -> Subject {
        Subject { study: STUDY, kernel: Some(kernel), set: Some(set(0.5)), variant: divergence.into(), divergence }
    }

    fn report(ipc: [&[f64]; 2]) -> Report {
        let summary =
            |&thread_ipc: &f64| Summary { thread_ipc, cycles: 1000, simt_efficiency: 0.5, ..Summary::default() };
        let draws = ipc.map(|ipc| ipc.iter().map(summary).collect::<Vec<_>>());
        let mut rows: Vec<Row> = ["path-table", "stack"]
            .into_iter()
            .zip(&draws)
            .map(|(name, draws)| Row {
                of: of("gcd", name),
                figures: Some(Figures::new(draws, Some(ipc[0]))),
                failed: None,
            })
            .collect();
        let row = |mechanism, figures, failed| Row { of: of("sort", mechanism), figures, failed };
        rows.push(row("path-table", Some(Figures::new(&draws[0], Some(ipc[0]))), None));
        rows.push(row("stack", None, Some("stopped".into())));
        let mechanisms = vec!["path-table".into(), "stack".into()];
        let (core, charted) = ("--lanes 8".into(), vec![0, 1]);
        Report { study: STUDY, lanes: 8, warps: 8, core, draws: 2, mechanisms, charted, rows }
    }

    #[test]
    fn others_are_over_the_first_draw_by_draw() {
        let report = report([&[2.0, 4.0], &[1.0, 3.0]]);
        let lines = gains(&report);
        assert_eq!(lines[1], ["gcd", "2.83", "-38.8 % (-50.0 … -25.0 %)"]);
        assert_eq!(gains(&self::report([&[2.0, 4.0], &[1.0, 2.0]]))[1], ["gcd", "2.83", "-50.0 %"]);
        // What failed is no zero, and not in the mean.
        assert_eq!(lines[2], ["sort", "2.83", NONE]);
        assert_eq!(lines[3], ["mean of all", "", "-38.8 %"]);
        assert_eq!(lines[3][1..], lines[4][1..]);
        assert!(text(&report).contains("* sort on stack: stopped"), "{}", text(&report));
        assert!(!text(&report).contains(['{', '}']), "{}", text(&report));
        assert!(chart(&report).contains("gcd"));
    }

    #[test]
    fn every_mechanism_is_there_and_that_of_the_options_first() {
        let names = |line: &str| study(line).variants().unwrap().into_iter().map(|v| v.name).collect::<Vec<_>>();
        let all = names("");
        assert_eq!(all[..3], ["path-table", "path-table, fair", "path-table, serialise"]);
        assert!(mechanisms().iter().all(|mechanism| all.iter().any(|name| name == mechanism.name())));
        assert!(all.contains(&"block-stack, predict".to_string()), "{all:?}");
        let shown = charted(&study("").variants().unwrap()).into_iter().map(|at| all[at].as_str()).collect::<Vec<_>>();
        assert_eq!(shown, ["path-table, serialise", "arbiter, serialise", "stack", "dual-path", "block-stack"]);
        let stack_first = names("--divergence stack");
        // All have accesses as the stack has them; two can be fair.
        assert_eq!((stack_first[0].as_str(), stack_first.len()), ("stack", mechanisms().len() + 3));
        assert_eq!(study("gcd sort").runs().unwrap().len(), 2 * all.len());
    }
}

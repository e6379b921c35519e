//! `heddle study locks`: which mechanism ends programs whose threads wait for each other, and how soon.

use super::age;
use super::draws::{self, Compared, DrawsArgs, Subject};
use super::kept::KeptArgs;
use super::page;
use super::runs::{self, Run};
use super::table::{markdown, plain};
use super::told;
use crate::interrupt::Interrupt;
use crate::mechanisms::mechanisms;
use crate::shape::ShapeArgs;
use anyhow::{Context, Error, Result};
use clap::Args;
use heddle_simt::{Divergence, Order, Shape};
use heddle_testbench::kernels::{Device, Kernel, LOCKS};
use heddle_testbench::machine::{CacheVisits, MachineOptions, Summary};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Whether each lock program ends on each mechanism, and in how many cycles; where it does not, who goes round and where.
///
/// Every mechanism is there as it is, and those whose paths can give way with --fair on, path tables in every order of
/// traversal. All have `lr.w` and `sc.w`.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study locks
  heddle study locks --lanes 4 --warps 2 --patience 256 --draws 1
  heddle study locks --json | jq '.rows[] | select(.ends | not) | {kernel, variant, failed}'
  heddle study locks --docs docs                  tables as a page",
    mut_arg("order", |arg| arg.hide(true)),
    mut_arg("divergence", |arg| arg.hide(true)),
    mut_arg("fair", |arg| arg.hide(true)),
    mut_arg("reservations", |arg| arg.hide(true)),
)]
pub struct Locks {
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    draws: DrawsArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Print one JSON object with an array `rows` instead of tables
    #[arg(long)]
    json: bool,
    /// Write studies/locks.md into this folder, too, of the usual core
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
}

const STUDY: &str = "locks";

/// Cycles after which nobody waits for an end.
const MOST_CYCLES: u64 = 20_000_000;

/// Cycles after which it is asked whether they never come to it: most of these programs hang.
const FIRST_LOOK: u64 = 1 << 16;

/// A core, and what it is called.
struct Variant {
    name: String,
    shape: Shape,
}

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    /// The options of the core with path tables, before any is changed.
    core: String,
    draws: u32,
    variants: Vec<String>,
    /// By program, in the order of the variants.
    rows: Vec<Row>,
}

/// A program on a core.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    of: Subject,
    /// With nothing; none if a draw does not end.
    #[serde(flatten)]
    compared: Option<Compared>,
    /// In every draw.
    ends: bool,
    /// Mean over the draws, least and greatest.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<[f64; 3]>,
    /// Why not, in the first draw that does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// What the data cache did in all draws, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheVisits>,
}

impl Row {
    fn new(program: &'static str, variant: &Variant, drawn: Result<Vec<Summary>, String>) -> Row {
        let divergence = variant.shape.divergence.name();
        let of = Subject { study: STUDY, kernel: Some(program), set: None, variant: variant.name.clone(), divergence };
        let draws = match drawn {
            Ok(draws) => draws,
            Err(why) => {
                return Row { of, compared: None, ends: false, cycles: None, failed: Some(why), cache: None };
            }
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let cycles: Vec<f64> = draws.iter().map(|draw| draw.cycles as f64).collect();
        let least = cycles.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = cycles.iter().copied().fold(0.0, f64::max);
        let compared = Some(Compared::alone(&draws::ipc(&draws)));
        let cache = draws::counted(&draws, |s| s.cache);
        Row { of, compared, ends: true, cycles: Some([mean(&cycles), least, greatest]), failed: None, cache }
    }

    fn cell(&self) -> String {
        let thousands = |cycles: f64| format!("{:.1}", cycles / 1000.0);
        match (self.cycles, &self.failed) {
            (Some([mean, least, greatest]), _) if greatest - least < 50.0 => thousands(mean),
            (Some([mean, least, greatest]), _) => {
                format!("{} ({} … {})", thousands(mean), thousands(least), thousands(greatest))
            }
            (None, Some(why)) if why.contains("hangs") => "hangs".into(),
            (None, Some(why)) if why.contains("did not end") => "does not end".into(),
            _ => "stops".into(),
        }
    }
}

impl Locks {
    pub fn run(self) -> Result<()> {
        let (shape, variants) = (self.shape()?, self.variants()?);
        self.docs.as_deref().map(|folder| page::check(folder, self.shape.given(), STUDY, &[])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let usual = runs::usual(self.shape.seed);
        let options = MachineOptions { max_cycles: MOST_CYCLES, first_look: FIRST_LOOK, ..usual };
        let results = draws::each_as(&runs, self.draws, &options, kept.as_ref(), &interrupt)?;
        let mut rows = Vec::new();
        for (kernel, on_cores) in LOCKS.iter().zip(draws::by_program(&results, LOCKS.len())) {
            rows.extend(variants.iter().zip(on_cores).map(|(variant, drawn)| Row::new(kernel.name, variant, drawn)));
        }
        let (lanes, warps, core) = (shape.lanes, shape.warps, shape.options());
        let names = variants.into_iter().map(|variant| variant.name).collect();
        let report = Report { study: STUDY, lanes, warps, core, draws: self.draws.draws, variants: names, rows };
        if let Some(folder) = &self.docs {
            let page = age::of_now(folder, &text(&report), &runs, &interrupt)?;
            page::write(folder, STUDY, &page, &[])?;
        }
        told(self.json, &report, tables)
    }

    /// A machine runs all programs before the next is built.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let of = |variant: Variant| LOCKS.iter().map(move |kernel| run(kernel, &variant.shape));
        Ok(self.variants()?.into_iter().flat_map(of).collect())
    }

    fn shape(&self) -> Result<Shape> {
        let args = ShapeArgs {
            order: None,
            fair: None,
            divergence: Divergence::PATH_TABLE,
            reservations: Some(true),
            ..self.shape.clone()
        };
        args.shape()
    }

    /// Every mechanism as it is, then those that are fair.
    fn variants(&self) -> Result<Vec<Variant>> {
        let shape = self.shape()?;
        let mut variants = Vec::new();
        let mut with = |name: String, shape: Shape| -> Result<()> {
            shape.check().with_context(|| name.clone())?;
            variants.push(Variant { name, shape });
            Ok(())
        };
        for mechanism in mechanisms() {
            with(mechanism.name().into(), shape.clone().with_divergence(*mechanism))?;
        }
        for mechanism in mechanisms().iter().filter(|mechanism| mechanism.capabilities().fair) {
            let core = Shape { fair: true, ..shape.clone().with_divergence(*mechanism) };
            with(format!("{}, fair", mechanism.name()), core.clone())?;
            if mechanism.capabilities().orders {
                for &(name, order) in Order::ALL.iter().filter(|(_, order)| *order != core.order) {
                    with(format!("{}, fair, {name}", mechanism.name()), Shape { order, ..core.clone() })?;
                }
            }
        }
        Ok(variants)
    }
}

/// The program, whether the core suits it or not.
fn run(kernel: &'static Kernel, shape: &Shape) -> Run {
    let drive = |device: &mut dyn Device, seed| (kernel.drive_unasked)(device, seed).map(drop).map_err(Error::from);
    Run::of(kernel.name.into(), kernel.elf.into(), shape.clone(), Arc::new(drive))
}

/// A line for each variant, a cell for each program.
fn table(report: &Report) -> Vec<Vec<String>> {
    let mut lines =
        vec![std::iter::once("").chain(LOCKS.iter().map(|kernel| kernel.name)).map(String::from).collect::<Vec<_>>()];
    for (v, variant) in report.variants.iter().enumerate() {
        let rows = report.rows.chunks(report.variants.len()).map(|rows| rows[v].cell());
        lines.push(std::iter::once(variant.clone()).chain(rows).collect());
    }
    lines
}

/// Who goes round and where, a line each.
fn reasons(report: &Report) -> String {
    let line = |row: &Row| {
        row.failed
            .as_ref()
            .map(|why| format!("* {} on {}: {why}\n", row.of.kernel.expect("a row is of one"), row.of.variant))
    };
    let lines: String = report.rows.iter().filter_map(line).collect();
    if lines.is_empty() { "All programs end on all cores.\n".into() } else { lines }
}

fn tables(report: &Report) -> String {
    format!("{}\nthousands of cycles\n{}\n{}", report.core, plain(&table(report), 1), reasons(report))
}

fn text(report: &Report) -> String {
    include_str!("locks/page.md")
        .replace("{core}", &format!("{} lanes × {} warps", report.lanes, report.warps))
        .replace("{options}", &report.core)
        .replace("{draws}", &report.draws.to_string())
        .replace("{table}", markdown(&table(report)).trim_end())
        .replace("{reasons}", reasons(report).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    fn study(line: &str) -> Locks {
        let command = Locks::augment_args(clap::Command::new("locks").no_binary_name(true));
        Locks::from_arg_matches(&command.get_matches_from(line.split_whitespace())).unwrap()
    }

    #[test]
    fn every_mechanism_is_there_and_every_order_that_is_fair() {
        let variants = study("--lanes 4 --warps 2").variants().unwrap();
        let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
        assert!(mechanisms().iter().all(|mechanism| names.contains(&mechanism.name())), "{names:?}");
        for name in ["arbiter, fair", "path-table, fair", "path-table, fair, swap", "path-table, fair, breadth-first"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(variants.iter().all(|variant| variant.shape.reservations));
        assert!(variants.iter().all(|variant| variant.shape.fair == variant.name.contains("fair")));
    }

    fn variant(name: &str) -> Variant {
        Variant { name: name.into(), shape: Shape::default() }
    }

    #[test]
    fn a_cell_says_how_long_or_that_it_hangs() {
        let summary = |cycles| Ok(Summary { cycles, thread_ipc: 1.0, ..Summary::default() });
        let cell = |drawn: &[Result<Summary, String>]| {
            let mut programs = draws::by_program(&[drawn.to_vec()], 1);
            Row::new("spin_lock", &variant("stack"), programs.remove(0).remove(0)).cell()
        };
        assert_eq!(cell(&[summary(1500), summary(1500)]), "1.5");
        assert_eq!(cell(&[summary(1000), summary(2000)]), "1.5 (1.0 … 2.0)");
        assert_eq!(cell(&[summary(1000), Err("the program hangs, as".into())]), "hangs");
        assert_eq!(cell(&[Err("the program did not end in 5 cycles".into())]), "does not end");
        assert_eq!(cell(&[Err("barrier of a part".into())]), "stops");
    }

    #[test]
    fn the_page_has_them_all() {
        let variants = vec!["stack".to_string(), "arbiter, fair".into()];
        let of = |kernel: &Kernel| {
            let hangs = Row::new(kernel.name, &variant("stack"), Err("the program hangs, as".into()));
            let ends = Ok(vec![Summary { cycles: 100, ..Summary::default() }]);
            [hangs, Row::new(kernel.name, &variant("arbiter, fair"), ends)]
        };
        let rows = LOCKS.iter().flat_map(of).collect();
        let report = Report { study: STUDY, lanes: 8, warps: 8, core: "--lanes 8".into(), draws: 2, variants, rows };
        assert_eq!(table(&report)[1][..2], ["stack", "hangs"]);
        assert_eq!(table(&report)[2][..2], ["arbiter, fair", "0.1"]);
        assert!(reasons(&report).contains("* spin_lock on stack: the program hangs"), "{}", reasons(&report));
        assert!(!text(&report).contains(['{', '}']), "{}", text(&report));
    }
}

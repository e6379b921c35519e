//! `heddle study per-area`: thread instructions a second, and for the LUTs that they take, of every mechanism.

use super::age;
use super::area::cores::{COMPARED, MECHANISMS, Of, board, compared, simulated, with};
use super::area::page::Figures;
use super::area::results::{Outcome, Results};
use super::area::{Nows, RESULTS, nows};
use super::draws::{self, Compared, DIVERGENT, DrawsArgs, Subject, mean};
use super::kept::KeptArgs;
use super::page;
use super::runs::{Run, usual};
use super::table::{gain, markdown, plain, share};
use super::told;
use crate::interrupt::Interrupt;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_simt::Shape;
use heddle_testbench::kernels::{ALL, Kernel};
use heddle_testbench::machine::Summary;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Clock × IPC ÷ area: what each mechanism for divergence makes of an FPGA.
///
/// IPC is simulated here, with every kernel that fits 32 KiB; clock and LUTs are those of the same cores that `heddle study
/// area` has measured. A mechanism whose core has not been measured as it is has no more than its IPC.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle study per-area                          in the project's folder
  heddle study per-area --area area.json --draws 1 --json | jq '.rows[] | {variant, per_area_gain}'
  heddle study per-area --docs docs              tables as a page")]
pub struct PerArea {
    /// What `heddle study area` has found [default: studies/area.json of --docs, or docs/studies/area.json]
    #[arg(long, value_name = "FILE")]
    area: Option<PathBuf>,
    #[command(flatten)]
    draws: DrawsArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Print one JSON object with an array `rows` instead of tables
    #[arg(long)]
    json: bool,
    /// Write studies/per-area.md into this folder, too
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
}

const STUDY: &str = "per-area";

/// The page.
pub const PAGE: &str = "studies/per-area.md";

const SETS: [&str; 2] = ["all", "divergent"];

#[derive(Serialize)]
struct Report {
    study: &'static str,
    draws: u32,
    /// Those that ran on every mechanism of every core, by set.
    kernels: [Vec<&'static str>; 2],
    /// Why others are left out.
    left_out: Vec<LeftOut>,
    /// Between the slowest and the fastest run of place and route of one core, over the fastest: the most of those
    /// of which there are several runs, as they are or older ones.
    clock_spread: Option<Spread>,
    /// By core, set and mechanism.
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct LeftOut {
    kernel: &'static str,
    why: String,
}

/// A mechanism on a core, with a set of kernels.
#[derive(Clone, Serialize)]
struct Row {
    #[serde(flatten)]
    of: Subject,
    /// With the first mechanism; thread IPC is the geometric mean over the kernels.
    #[serde(flatten)]
    compared: Compared,
    lanes: u32,
    warps: u32,
    /// Thread IPC of each draw.
    by_draw: Vec<f64>,
    /// The options of the core that it has.
    options: &'static str,
    /// As measured, of the core as it is.
    luts: Option<u32>,
    mhz: Option<f64>,
    /// Thread instructions a second, in millions, and of 1000 LUTs; each over the first mechanism's.
    mips: Option<f64>,
    mips_gain: Option<f64>,
    per_area: Option<f64>,
    per_area_gain: Option<f64>,
    /// What is missing, or why.
    note: String,
}

/// A mechanism's core, and what is known of it.
struct Variant {
    size: (u32, u32),
    name: String,
    options: &'static str,
    /// All options.
    core: String,
    shape: Shape,
}

impl PerArea {
    pub fn run(self) -> Result<()> {
        self.docs.as_deref().map(|folder| page::check(folder, &[], STUDY, &[])).transpose()?;
        let file = self.area_file();
        if !file.exists() {
            bail!("{} is not there: name what `heddle study area` has found with --area", file.display());
        }
        let measured = Results::read(&file)?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let (runs, variants, kernels) = (self.runs()?, variants()?, kernels());
        let results = draws::each_as(&runs, self.draws, &usual(1), kept.as_ref(), &interrupt)?;
        let by_kernel = draws::by_program(&results, kernels.len());
        let report = Report::new(self.draws.draws, &kernels, &variants, &by_kernel, (&measured, &nows()?));
        if let Some(folder) = &self.docs {
            let text = text(&report, &digest(&measured)?);
            page::write(folder, STUDY, &age::of_now(folder, &text, &runs, &interrupt)?, &[])?;
        }
        told(self.json, &report, tables)
    }

    /// What `heddle study area` has found.
    pub fn area_file(&self) -> PathBuf {
        let of = |docs: &Path| docs.join(RESULTS);
        self.area.clone().unwrap_or_else(|| of(self.docs.as_deref().unwrap_or(Path::new("docs"))))
    }

    /// A machine runs all kernels before the next is built.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let kernels = kernels();
        let of = |v: Variant| kernels.iter().map(move |kernel| small(kernel, &v.shape)).collect::<Vec<_>>();
        Ok(variants()?.into_iter().flat_map(of).collect())
    }
}

/// Those that there is a small program of, for any core.
fn kernels() -> Vec<&'static Kernel> {
    ALL.iter().filter(|kernel| kernel.needs.is_empty() && kernel.small().is_ok()).collect()
}

fn small(kernel: &'static Kernel, shape: &Shape) -> Run {
    Run { elf: kernel.small().expect("it was chosen").into(), ..Run::new(kernel, shape.clone()) }
}

fn variants() -> Result<Vec<Variant>> {
    let mut variants = Vec::new();
    for size in COMPARED {
        let mut unit = "";
        for (short, options) in MECHANISMS {
            let name = match short.strip_prefix("the same") {
                Some(more) => format!("{unit}{more}"),
                None if short.ends_with("barriers") => format!("{unit}, {short}"),
                None => {
                    unit = short;
                    short.to_string()
                }
            };
            let core = with(&compared(size), options);
            variants.push(Variant { size, name, options, shape: simulated(&core)?, core });
        }
    }
    Ok(variants)
}

/// What a kernel did on each core, by draw, or why not.
type OnCores = Vec<Result<Vec<Summary>, String>>;

impl Report {
    fn new<'a>(
        draws: u32,
        kernels: &[&'static Kernel],
        variants: &[Variant],
        by_kernel: &'a [OnCores],
        area: (&Results, &Nows),
    ) -> Report {
        let mut left_out = Vec::new();
        let mut ran: Vec<(&'static str, Vec<&'a [Summary]>)> = Vec::new();
        for (kernel, on_cores) in kernels.iter().zip(by_kernel) {
            let of_variant = |(drawn, variant): (&'a Result<Vec<Summary>, String>, &Variant)| match drawn {
                Ok(draws) => Ok(draws.as_slice()),
                Err(why) => Err(format!("{} on {} × {}: {why}", variant.name, variant.size.0, variant.size.1)),
            };
            match on_cores.iter().zip(variants).map(of_variant).collect::<Result<Vec<_>, _>>() {
                Ok(drawn) => ran.push((kernel.name, drawn)),
                Err(why) => left_out.push(LeftOut { kernel: kernel.name, why }),
            }
        }
        let divergent = |drawn: &[&[Summary]]| draws::average(drawn[0], |s| s.simt_efficiency) < DIVERGENT;
        let is_in = |set: usize, drawn: &[&[Summary]]| set == 0 || divergent(drawn);
        let names = |set| ran.iter().filter(|(_, drawn)| is_in(set, drawn)).map(|(name, _)| *name).collect::<Vec<_>>();
        let mut rows = Vec::new();
        for (at, of_core) in (0..).step_by(MECHANISMS.len()).zip(variants.chunks(MECHANISMS.len())) {
            for (set, name) in SETS.into_iter().enumerate() {
                // Of each draw, the mean over the kernels.
                let ipc = |variant: usize| -> Vec<f64> {
                    let of_draw = |draw: usize| {
                        let some = ran.iter().filter(|(_, drawn)| is_in(set, drawn));
                        mean(some.map(|(_, drawn)| drawn[variant][draw].thread_ipc))
                    };
                    (0..draws as usize).map(of_draw).collect()
                };
                let first = ipc(at);
                let begin = rows.len();
                for (k, variant) in of_core.iter().enumerate() {
                    let row = Row::new(name, variant, &ipc(at + k), &first, area);
                    let over = rows.get(begin).cloned().unwrap_or_else(|| row.clone());
                    rows.push(row.over(&over));
                }
            }
        }
        let clock_spread = clock_spread(area.0);
        Report { study: STUDY, draws, kernels: [names(0), names(1)], left_out, clock_spread, rows }
    }
}

impl Row {
    fn new(set: &'static str, v: &Variant, ipc: &[f64], first: &[f64], (measured, now): (&Results, &Nows)) -> Row {
        let figures = Figures::of(measured, now, board(), &v.core);
        let known = (!figures.is_older()).then_some(&figures);
        let luts = known.and_then(|figures| Some(figures.flat?.core_luts));
        let mhz = known.and_then(Figures::mhz);
        let of = Subject {
            study: STUDY,
            kernel: None,
            set: Some(set),
            variant: v.name.clone(),
            divergence: v.shape.divergence.name(),
        };
        let compared = Compared::new(first, ipc);
        let mips = mhz.map(|mhz| mhz * compared.thread_ipc);
        Row {
            of,
            compared,
            lanes: v.size.0,
            warps: v.size.1,
            by_draw: ipc.to_vec(),
            options: v.options,
            luts,
            mhz,
            mips,
            mips_gain: None,
            per_area: mips.zip(luts).map(|(mips, luts)| 1000.0 * mips / f64::from(luts)),
            per_area_gain: None,
            note: figures.note(true),
        }
    }

    fn is_of(&self, size: (u32, u32), set: &str) -> bool {
        (self.lanes, self.warps) == size && self.of.set == Some(set)
    }

    fn over(self, first: &Row) -> Row {
        let ratio = |of: Option<f64>, first: Option<f64>| of.zip(first).map(|(of, first)| of / first);
        Row { mips_gain: ratio(self.mips, first.mips), per_area_gain: ratio(self.per_area, first.per_area), ..self }
    }
}

/// How far runs of place and route of one core are apart at most, of its fastest.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
struct Spread {
    share: f64,
    /// Cores with several runs, as they are or were.
    cores: usize,
}

fn clock_spread(measured: &Results) -> Option<Spread> {
    let mut runs: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for found in measured.all().iter().filter(|found| found.board == board().name) {
        if let Outcome::Timing(timing) = &found.outcome {
            runs.entry((&found.core, &found.hash)).or_default().push(timing.mhz);
        }
    }
    let spread = |runs: &Vec<f64>| {
        let [least, most] = [f64::min, f64::max].map(|of| runs.iter().copied().reduce(of).expect("there is a run"));
        (runs.len() > 1).then_some((most - least) / most)
    };
    let spreads: Vec<f64> = runs.values().filter_map(spread).collect();
    let share = spreads.iter().copied().reduce(f64::max)?;
    Some(Spread { share, cores: spreads.len() })
}

/// Of the figures that the page is made of besides simulations.
fn digest(measured: &Results) -> Result<String> {
    let variants = variants()?;
    let mut hash = md5::Context::new();
    for found in measured.all().iter().filter(|found| found.of != Of::Modules && found.board == board().name) {
        // Runs of any core tell how far clocks of one are apart.
        if matches!(found.of, Of::Seed(_)) || variants.iter().any(|variant| variant.core == found.core) {
            hash.consume(serde_json::to_vec(found)?);
        }
    }
    Ok(format!("{:x}", hash.finalize())[..8].to_string())
}

fn table(report: &Report, size: (u32, u32), set: &str) -> Vec<Vec<String>> {
    let heads = ["mechanism", "thread IPC", "over the first", "LUTs in `core`", "clock", "million a second"];
    let heads = heads.into_iter().chain(["over the first", "for 1000 LUTs", "over the first", ""]);
    let mut lines = vec![heads.map(String::from).collect::<Vec<_>>()];
    let number = |value: Option<f64>, digits: usize| value.map_or(String::new(), |value| format!("{value:.digits$}"));
    for row in report.rows.iter().filter(|row| row.is_of(size, set)) {
        lines.push(vec![
            row.of.variant.clone(),
            format!("{:.2}", row.compared.thread_ipc),
            row.compared.gain().map_or(String::new(), |gain| gain.with_range()),
            row.luts.map_or(String::new(), |luts| luts.to_string()),
            row.mhz.map_or(String::new(), |mhz| format!("{mhz:.1} MHz")),
            number(row.mips, 0),
            row.mips_gain.map_or(String::new(), gain),
            number(row.per_area, 2),
            row.per_area_gain.map_or(String::new(), gain),
            row.note.clone(),
        ]);
    }
    lines
}

/// Which mechanism makes most of an FPGA, among those whose cores were measured, and which are not told apart from it.
fn best(report: &Report, size: (u32, u32), set: &str) -> String {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.is_of(size, set)).collect();
    let spread = report.clock_spread;
    let most = |value: fn(&Row) -> Option<f64>, near: &dyn Fn(&Row, &Row) -> bool| {
        let known = rows.iter().filter(|row| value(row).is_some());
        let first = known.clone().max_by(|a, b| value(a).partial_cmp(&value(b)).expect("figures are numbers"))?;
        let name = |row: &&Row| row.of.variant.clone();
        let same: Vec<String> = known.filter(|row| name(row) != name(first) && near(row, first)).map(name).collect();
        let apart =
            if same.is_empty() { String::new() } else { format!("; not told apart from it: {}", same.join("; ")) };
        Some(format!("{}{apart}", name(first)))
    };
    // In each draw, as gains are.
    let overlaps = |row: &Row, first: &Row| !row.by_draw.iter().zip(&first.by_draw).all(|(row, first)| row < first);
    let within = |value: fn(&Row) -> Option<f64>| {
        move |row: &Row, first: &Row| {
            // Without it nothing is told apart.
            let least = 1.0 - spread.map_or(1.0, |spread| spread.share);
            value(row).zip(value(first)).is_some_and(|(a, b)| a >= b * least)
        }
    };
    let mut lines: Vec<String> = Vec::new();
    lines.extend(most(|row| Some(row.compared.thread_ipc), &overlaps).map(|who| format!("* a cycle: {who}\n")));
    lines.extend(most(|row| row.mips, &within(|row| row.mips)).map(|who| format!("* a second: {who}\n")));
    lines.extend(most(|row| row.per_area, &within(|row| row.per_area)).map(|who| format!("* for its area: {who}\n")));
    let known = rows.iter().filter(|row| row.per_area.is_some()).count();
    let of = match known {
        0 => "no clock is known".to_string(),
        _ => format!(
            "clock and area are known of {known} of {}, {}",
            rows.len(),
            spread.map_or("each of one run, so clocks tell none apart".into(), |spread| {
                let Spread { share: apart, cores } = spread;
                format!(
                    "and clocks of one core are up to {} apart, by {cores} that were placed several times",
                    share(apart)
                )
            })
        ),
    };
    format!("Most thread instructions ({of}):\n\n{}", lines.concat())
}

fn sections(section: impl Fn((u32, u32), &'static str) -> String) -> String {
    let of = |size| SETS.map(|set| section(size, set)).concat();
    COMPARED.map(of).concat()
}

fn left_out(report: &Report) -> String {
    let lines = report.left_out.iter().map(|LeftOut { kernel, why }| format!("* `{kernel}`: {why}\n"));
    let lines: String = lines.collect();
    if lines.is_empty() { "None.\n".into() } else { lines }
}

fn tables(report: &Report) -> String {
    let all = sections(|size, set| {
        let heading = format!("{} lanes × {} warps, {set} kernels", size.0, size.1);
        format!("{heading}\n{}\n{}\n", plain(&table(report, size, set), 1), best(report, size, set))
    });
    format!("{all}left out\n{}", left_out(report))
}

fn text(report: &Report, digest: &str) -> String {
    let all = sections(|size, set| {
        let head = match set {
            "all" => format!("\n## {} lanes, {} warps\n\n`{}`\n\nAll kernels:\n", size.0, size.1, compared(size)),
            _ => "\nThe divergent ones:\n".to_string(),
        };
        format!(
            "{head}\n{}\n\n{}\n",
            best(report, size, set).trim_end(),
            markdown(&table(report, size, set)).trim_end()
        )
    });
    let list = |set: usize| report.kernels[set].iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    include_str!("per_area/page.md")
        .replace("{draws}", &report.draws.to_string())
        .replace("{digest}", digest)
        .replace("{all}", &list(0))
        .replace("{divergent}", &list(1))
        .replace("{limit}", &format!("{:.0} %", 100.0 * DIVERGENT))
        .replace("{left_out}", left_out(report).trim_end())
        .replace("{sections}", all.trim())
}

/// Whether a page is of the figures of area and clock that a tree of pages has.
pub fn is_of(page: &str, docs: &Path) -> Result<bool> {
    is_of_figures(page, &Results::read(&docs.join(RESULTS))?)
}

fn is_of_figures(page: &str, measured: &Results) -> Result<bool> {
    let digest = digest(measured)?;
    let said = page.split_once("figures `").and_then(|(_, rest)| rest.split_once('`')).map(|(said, _)| said);
    let said = said.context("the page does not say of which figures of area.json it is")?;
    Ok(said == digest)
}

#[cfg(test)]
mod tests {
    use super::super::area::cores::Key;
    use super::super::area::tests::{flat, nows, timing};
    use super::*;

    fn variants_of(size: (u32, u32)) -> Vec<Variant> {
        variants().unwrap().into_iter().filter(|variant| variant.size == size).collect()
    }

    #[test]
    fn a_mechanism_is_worth_its_clock_times_ipc_over_its_area() {
        let (now, variants) = (nows(), variants_of(COMPARED[0]));
        let mut results = Results::default();
        let mut set = |variant: &Variant, hash: &str, of, outcome: Outcome| {
            results.set(&Key { board: board().name.into(), core: variant.core.clone(), of }, hash, outcome);
        };
        for (k, (luts, mhz)) in [(10_100, 50.0), (20_100, 40.0)].into_iter().enumerate() {
            set(&variants[k], "now", Of::Cells, flat(luts));
            set(&variants[k], "now", Of::Seed(1), timing(mhz));
        }
        set(&variants[2], "before", Of::Cells, flat(5000));
        let row = |k: usize, ipc: &[f64]| Row::new("all", &variants[k], ipc, &[2.0, 8.0], (&results, &now));
        let first = row(0, &[2.0, 8.0]);
        let first = first.clone().over(&first);
        assert_eq!((first.compared.thread_ipc, first.luts, first.mips), (4.0, Some(10_000), Some(200.0)));
        assert_eq!((first.per_area, first.per_area_gain), (Some(20.0), Some(1.0)));
        let second = row(1, &[4.0, 16.0]).over(&first);
        let [mips, per_area] = [second.mips_gain, second.per_area_gain].map(Option::unwrap);
        assert!((mips - 1.6).abs() < 1e-12 && (per_area - 0.8).abs() < 1e-12 && second.compared.gain == Some(2.0));
        // What is of an older core, or not measured, is no figure.
        let third = row(2, &[4.0, 16.0]).over(&first);
        assert_eq!((third.luts, third.per_area_gain), (None, None));
        assert!(third.note.contains("older"), "{}", third.note);
        assert_eq!(row(3, &[1.0, 1.0]).note, "not measured");
        assert_eq!(clock_spread(&results), None, "each has one run");
        let mut several = results;
        let key = Key { board: board().name.into(), core: variants[0].core.clone(), of: Of::Seed(2) };
        several.set(&key, "now", timing(40.0));
        let spread = |results: &Results| clock_spread(results).map(|Spread { share, cores }| (share, cores));
        assert!(spread(&several).is_some_and(|(share, cores)| (share - 0.2).abs() < 1e-12 && cores == 1));
        several.set(&key, "after", timing(30.0));
        assert_eq!(
            spread(&several).map(|(_, cores)| cores),
            Some(1),
            "of an older core they stay, and of two are none"
        );
    }

    #[test]
    fn kernels_that_fail_somewhere_are_in_no_mean() {
        let (now, variants, all) = (nows(), variants().unwrap(), kernels());
        let summary = |thread_ipc, simt_efficiency| vec![Summary { thread_ipc, simt_efficiency, ..Summary::default() }];
        let fine: OnCores = variants.iter().map(|_| Ok(summary(3.0, 0.9))).collect();
        let divergent: OnCores = variants.iter().map(|_| Ok(summary(1.0, 0.3))).collect();
        let mut failing = fine.clone();
        failing[4] = Err("it stopped".into());
        let report = Report::new(1, &all[..3], &variants, &[fine, divergent, failing], (&Results::default(), &now));
        assert_eq!(report.kernels, [vec![all[0].name, all[1].name], vec![all[1].name]]);
        assert_eq!(report.rows.len(), COMPARED.len() * SETS.len() * MECHANISMS.len());
        let ipc = |set: &str| report.rows.iter().find(|row| row.of.set == Some(set)).unwrap().compared.thread_ipc;
        assert!((ipc("all") - 3.0f64.sqrt()).abs() < 1e-12 && ipc("divergent") == 1.0);
        let page = text(&report, "0123abcd");
        assert!(page.contains(&format!("* `{}`: arbiter on 8 × 8: it stopped", all[2].name)), "{page}");
        let names: Vec<&str> = variants[..4].iter().map(|variant| variant.name.as_str()).collect();
        let expected =
            ["path tables", "path tables, serialised", "path tables, 4 barriers", "path tables, 16 barriers"];
        assert_eq!((names, variants[11].name.as_str()), (expected.to_vec(), "block stack, CAPRI"));
        assert!(page.contains("no clock is known") && !page.contains(['{', '}']), "{page}");
        let is_of = |page: &str| is_of_figures(page, &Results::default());
        assert!(is_of(&page).is_ok_and(|is| !is) && is_of("# A").is_err());
        let of_none = digest(&Results::default()).unwrap();
        assert!(is_of(&text(&report, &of_none)).unwrap());
    }
}

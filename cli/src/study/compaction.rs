//! `heddle study compaction`: warps formed anew from the threads of a block, on the kernels of *Thread Block Compaction
//! for Efficient SIMT Control Flow* and of *CAPRI*, each in the setting of its paper.

mod cycles;
mod papers;
mod prediction;
mod tables;

use super::age;
use super::chart::{Bars, Chart};
use super::core::{CoreArgs, without_jitter};
use super::draws::{self, Compared, DrawsArgs, Gain, Subject};
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::{Run, usual};
use super::told;
use super::workloads::{Workload, measured_set};
use crate::interrupt::Interrupt;
use crate::output::ResultFile;
use crate::shape::second_level_of;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_check::{compaction, issues};
use heddle_simt::{BankAddress, Cache, Divergence, Schedule, SecondLevel, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels::Kernel;
use heddle_testbench::machine::{
    CacheVisits, Compactions, IdleCycles, Issues, MachineOptions, Prediction, SecondLevelVisits, Summary,
};
use papers::{CONFIGURATIONS, Configuration, Name, Set, Studied, Variant};
use serde::Serialize;
use std::io::Write as _;
use std::path::PathBuf;

/// Thread instructions a cycle where the warps of a block form new ones, against a stack per warp, on otherwise one
/// core.
///
/// There are two main configurations. tbc-paper: a warp issues in every fourth cycle, as on 8 ALUs, and the oldest block
/// goes first. capri-paper: a warp issues in every cycle, and the last block goes on until it stalls; beside thread
/// block compaction at every branch (tbc) and at those that may diverge the block (tbc+) there is that which predicts
/// where it is worth it (CAPRI). likely-points is as tbc-paper, on kernels with points of likely convergence;
/// second-level and small-second-level are, too, with a second level behind the data cache, of eight times its size or
/// as large. The kernels have the control structure of those that the papers measured, in a divergent and a coherent
/// set. All cores serve the lanes of an access that do not go together one after the other (--replay serialise).
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study compaction                                       all kernels of both papers on 32 lanes and 32 warps
  heddle study compaction --config tbc-paper                    those of one
  heddle study compaction bfs suffix_array --block-threads 256  two of them in blocks of 8 warps
  heddle study compaction --schedule block-round-robin          another order of blocks
  heddle study compaction --issue-interval 1                    a warp issues in every cycle in both
  heddle study compaction --config capri-paper --draws 1        with one input each, in a quarter of the time
  heddle study compaction --json | jq '.rows[] | {config, kernel, set, variant, thread_ipc, gain}'
  heddle study compaction --docs docs                           tables and chart as a page",
    mut_arg("warps", |arg| arg.help("Warps of the core: 1, 2, 4 … 64 [default: 32]")),
    mut_arg("issue_interval", |arg| arg.help("Cycles from one issue to the next [default: the paper's, see above]")),
    mut_arg("schedule", |arg| arg.help("Which slot issues when several could [default: the paper's, see above]")),
    mut_arg("levels", |arg| arg.help("Levels of a block's stack: 1 … threads - 1 [default: 128, or as many as can be needed]")),
    mut_arg("memory_model", |arg| arg.help(
        "Memory behind the cache; none has jitter before cycle models [default: latency=200,jitter=31]"
    )),
    mut_arg("likely", |arg| arg.hide(true)),
)]
pub struct Compaction {
    /// Some of the kernels
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    /// One of the configurations
    #[arg(long, value_name = "NAME")]
    config: Option<Name>,
    /// Threads of a block, instead of what each kernel asks for; fewer if the core has no more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    block_threads: Option<u32>,
    #[command(flatten)]
    core: CoreArgs,
    #[command(flatten)]
    draws: DrawsArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Print one JSON object with an array `rows` instead of tables
    #[arg(long)]
    json: bool,
    /// Write a chart
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Write a chart of the warps' decisions at branches, on capri-paper
    #[arg(long, value_name = "FILE.svg")]
    decisions: Option<PathBuf>,
    /// Write a chart of where opportunities to issue went, on tbc-paper
    #[arg(long, value_name = "FILE.svg")]
    cycles: Option<PathBuf>,
    /// Write studies/compaction.md and its charts into this folder, too, of the usual core
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels", "config", "block_threads", "svg", "decisions", "cycles"])]
    docs: Option<PathBuf>,
}

/// What bars of the chart stand for.
const CHARTED: [&str; 5] = ["never", "tbc", "tbc+", "capri-latest-32", "path-table"];

const STUDY: &str = "compaction";
const WARPS: u32 = 32;

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    /// The options that choose the core, but for the variants'.
    core: String,
    /// Threads of a block, if not what each kernel asks for.
    block_threads: Option<u32>,
    draws: u32,
    rows: Vec<Row>,
    means: Vec<Mean>,
}

/// A kernel on a variant.
#[derive(Serialize)]
struct Row {
    /// The set is the paper's.
    #[serde(flatten)]
    of: Subject,
    config: Name,
    /// Its namesake in the paper.
    paper: &'static str,
    /// By its SIMT efficiency on the stack per warp; none if that failed.
    measured_set: Option<&'static str>,
    /// From the cycle model, not from the core.
    model: bool,
    /// The options that choose the variant's core, but for how the model forms warps.
    core: String,
    /// Cycles from one issue to the next.
    issue_interval: u32,
    #[serde(flatten)]
    figures: Option<Figures>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// Entries of a block's stack that the paper's kernel used, where it says so.
    published_entries: Option<u32>,
    /// SIMT efficiency of the paper's kernel on its stack per warp, where it says so.
    published_efficiency: Option<f64>,
}

/// Counts are sums over the draws, shares and ratios are of them; launches, blocks and threads are those of the first.
#[derive(Clone, Serialize)]
struct Figures {
    /// With never, or with the model's never.
    #[serde(flatten)]
    compared: Compared,
    /// Thread IPC over never's in each draw.
    gains: Option<Vec<f64>>,
    #[serde(flatten)]
    workload: Workload,
    cycles: u64,
    thread_instructions: u64,
    /// Active lanes an issued instruction, of all lanes.
    simt_efficiency: f64,
    /// Instructions issued by active lanes, in eighths of them.
    issues: Option<Issues>,
    /// Cycles without an issue; over never's.
    idle_cycles: u64,
    idle_over_never: Option<f64>,
    /// Opportunities to issue that were not taken, of all; those of them that the divergence unit takes away, and those
    /// that it or memory does. Which of the two it is where it is both is the core's choice: see [`IdleCycles`].
    idle_share: f64,
    divergence_share: f64,
    held_share: f64,
    /// Of all, too: those not taken while nothing but writes under way kept a block from forming warps anew.
    owed_share: Option<f64>,
    idle: IdleCycles,
    /// What the data cache did; its misses over never's.
    cache: Option<CacheVisits>,
    misses_over_never: Option<f64>,
    /// What its second level did.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_level: Option<SecondLevelVisits>,
    /// Lines between the cache and memory: those that loads missed, and stores, which all go there; over never's.
    traffic: Option<u64>,
    traffic_over_never: Option<f64>,
    /// Accesses to memory or scratchpad, each of lanes that go together; over never's.
    accesses: u64,
    accesses_over_never: Option<f64>,
    /// Levels in use at most of a warp's or a block's stack.
    most_levels: u64,
    /// Of block stacks.
    compaction: Option<Compactions>,
    prediction: Option<Prediction>,
}

/// Cycles without an issue.
fn idle(s: &Summary) -> u64 {
    s.cycles - s.warp_instructions
}

/// Lines of memory that go between it and the cache, whose lines are of so many of them.
fn traffic(s: &Summary, beats: u32) -> Option<u64> {
    let CacheVisits { misses, silent_hits, silent_misses, .. } = s.cache?;
    Some(misses * u64::from(beats) + silent_hits + silent_misses)
}

impl Figures {
    /// Of at least one draw, and of never's in the same.
    fn new(draws: &[Summary], never: Option<&[Summary]>, shape: &Shape) -> Figures {
        let beats = shape.cache.map_or(1, |cache| cache.line);
        let own = draws::ipc(draws);
        let gains =
            never.map(|never| own.iter().zip(draws::ipc(never)).map(|(own, never)| own / never).collect::<Vec<_>>());
        let compared = Compared::alone(&own);
        let together = |draws| Summary::together(draws, shape.lanes);
        let (s, never) = (&together(draws).expect("a draw"), never.and_then(together));
        // Over never's, if that has any.
        let over = |value: &dyn Fn(&Summary) -> Option<u64>| {
            let (own, never) = (value(s)?, value(never.as_ref()?)?);
            (never > 0).then(|| own as f64 / never as f64)
        };
        Figures {
            compared: gains.as_ref().map_or(compared, |gains| compared.over(Gain::of(gains.iter().copied()))),
            gains,
            workload: Workload::new(s, shape.lanes),
            cycles: s.cycles,
            thread_instructions: s.thread_instructions,
            simt_efficiency: s.simt_efficiency,
            issues: s.issues,
            idle_cycles: idle(s),
            idle_over_never: over(&|s| Some(idle(s))),
            idle_share: s.idle_share(),
            divergence_share: s.divergence_share(),
            held_share: s.held_share(),
            owed_share: s.owed.map(|owed| owed as f64 / (s.cycles - s.idle.interval) as f64),
            idle: s.idle,
            cache: s.cache,
            second_level: s.second_level,
            misses_over_never: over(&|s| Some(s.cache?.misses)),
            traffic: traffic(s, beats),
            traffic_over_never: over(&|s| traffic(s, beats)),
            accesses: s.accesses,
            accesses_over_never: over(&|s| Some(s.accesses)),
            most_levels: s.most_levels,
            compaction: s.compaction,
            prediction: s.prediction,
        }
    }

    /// Warps before and after a compaction.
    fn warps(&self) -> Option<[f64; 2]> {
        let Compactions { times, warps_before, warps_after, .. } = self.compaction?;
        (times > 0).then(|| [warps_before, warps_after].map(|warps| warps as f64 / times as f64))
    }
}

/// What kernels are in a set by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Paper,
    /// [`measured_set`].
    Measurement,
}

/// A variant on a set.
#[derive(Serialize)]
struct Mean {
    config: Name,
    set: Set,
    by: By,
    variant: &'static str,
    /// Those that ran.
    kernels: usize,
    /// Harmonic mean of the IPC over never's: the geometric mean over the draws, and their least and greatest.
    gain: Option<f64>,
    gain_range: Option<[f64; 2]>,
    published: Option<f64>,
    /// Arithmetic means.
    simt_efficiency: Option<f64>,
    idle_share: Option<f64>,
    divergence_share: Option<f64>,
    held_share: Option<f64>,
    owed_share: Option<f64>,
    /// Warps before and after a compaction.
    warps: Option<[f64; 2]>,
    /// Shares of decisions at branches: bypass and stall that are right, bypass and stall that are wrong.
    decisions: Option<[f64; 4]>,
    /// Decisions to bypass after which a warp waits all the same, where threads reconverge, of all.
    bypass_waits: Option<f64>,
}

impl Report {
    fn mean(&self, config: Name, by: By, set: Set, variant: &str) -> Option<&Mean> {
        let wanted = (config, by, set, variant);
        self.means.iter().find(|mean| (mean.config, mean.by, mean.set, mean.variant) == wanted)
    }
}

type Draw = fn(&Report) -> String;

/// A configuration's part of the study.
struct Part {
    configuration: &'static Configuration,
    kernels: Vec<(&'static Studied, &'static Kernel)>,
    shapes: Vec<Shape>,
}

impl Compaction {
    pub fn run(self) -> Result<()> {
        let parts = self.parts()?;
        for part in &parts {
            for (_, kernel) in &part.kernels {
                Program::parse(kernel.elf)?.check(&part.shapes[0]).context(kernel.name)?;
            }
        }
        let create = |path: &Option<PathBuf>| path.as_deref().map(ResultFile::create).transpose();
        let charts: [(_, Draw); 3] = [("", chart), ("decisions", prediction::chart), ("cycles", cycles::chart)];
        let files = [&self.svg, &self.decisions, &self.cycles].into_iter().zip(charts);
        let files = files.map(|(path, (_, chart))| Ok((create(path)?, chart))).collect::<Result<Vec<_>>>()?;
        self.docs
            .as_deref()
            .map(|folder| page::check(folder, self.core.shape.given(), STUDY, &charts.map(|(name, _)| name)))
            .transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let runs = self.runs()?;
        let mut rows = Vec::new();
        let mut left = &runs[..];
        for part in &parts {
            let runs = left.split_off(..part.shapes.len() * part.kernels.len()).expect("a run a shape and kernel");
            let options = part.options(self.core.shape.seed);
            let results = draws::each_as(runs, self.draws, &options, kept.as_ref(), &interrupt)?;
            rows.extend(part.rows(&draws::by_program(&results, part.kernels.len())));
        }
        let shape = &parts[0].shapes[0];
        let issue_interval = self.core.shape.issue_interval.unwrap_or(1);
        let report = Report {
            study: STUDY,
            lanes: shape.lanes,
            warps: shape.warps,
            core: Shape { schedule: Schedule::LooseRoundRobin, issue_interval, ..shape.clone() }.options(),
            block_threads: self.block_threads,
            draws: self.draws.draws,
            means: parts.iter().flat_map(|part| means(part.configuration, &rows)).collect(),
            rows,
        };
        for (file, chart) in files {
            if let Some(mut file) = file {
                file.writer().write_all(chart(&report).as_bytes())?;
                file.finish()?;
            }
        }
        if let Some(folder) = &self.docs {
            let charts = charts.map(|(name, chart)| (name, chart(&report)));
            page::write(folder, STUDY, &age::of_now(folder, &tables::page(&report), &runs, &interrupt)?, &charts)?;
        }
        told(self.json, &report, tables::plain_text)
    }

    /// A machine runs all kernels before the next is built.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let of_part = |part: &Part| {
            let variants = part.configuration.variants.iter().zip(&part.shapes);
            let runs = variants.flat_map(|variant| part.kernels.iter().map(move |&(_, kernel)| (kernel, variant)));
            let run = |(kernel, (variant, shape)): (_, (&Variant, &Shape))| Run {
                block_threads: self.block_threads,
                model: variant.model,
                ..Run::new(kernel, shape.clone())
            };
            runs.map(run).collect::<Vec<_>>()
        };
        Ok(self.parts()?.iter().flat_map(of_part).collect())
    }

    /// Of the configurations that are asked for, those that have one of the kernels that are.
    fn parts(&self) -> Result<Vec<Part>> {
        let asked =
            CONFIGURATIONS.iter().filter(|configuration| self.config.is_none_or(|name| name == configuration.name));
        let configurations: Vec<&'static Configuration> = asked.collect();
        let mut all: Vec<&'static str> = Vec::new();
        for kernel in configurations.iter().flat_map(|configuration| configuration.kernels) {
            if !all.contains(&kernel.name) {
                all.push(kernel.name);
            }
        }
        let asked = chosen(&self.kernels, &all)?;
        let part = |configuration: &'static Configuration| {
            let studied = |kernel: &Kernel| configuration.kernels.iter().find(|studied| studied.name == kernel.name);
            let kernels = asked.iter().filter_map(|&(_, kernel)| Some((studied(kernel)?, kernel))).collect();
            let shapes = configuration
                .variants
                .iter()
                .map(|variant| self.shape(configuration, variant))
                .collect::<Result<_>>()?;
            Ok(Part { configuration, kernels, shapes })
        };
        let parts: Vec<Part> = configurations.into_iter().map(part).collect::<Result<_>>()?;
        Ok(parts.into_iter().filter(|part| !part.kernels.is_empty()).collect())
    }

    fn shape(&self, configuration: &Configuration, variant: &Variant) -> Result<Shape> {
        let shape = self.core.with_jitter(draws::JITTER).shape(Divergence::BLOCK_STACK, WARPS)?;
        let shape = if variant.steady { without_jitter(shape) } else { shape };
        let compacts = variant.divergence.capabilities().mixes_warps;
        if let Some(threads) = self.block_threads.filter(|threads| *threads > shape.threads()) {
            bail!("blocks of {threads} threads: the core has {}", shape.threads());
        }
        let shape = Shape {
            levels: shape.levels.filter(|_| compacts),
            bank_address: self.core.shape.bank_address.unwrap_or(BankAddress::Shared),
            issue_interval: self.core.shape.issue_interval.unwrap_or(configuration.issue_interval),
            schedule: self.core.shape.schedule.unwrap_or(variant.schedule),
            likely: variant.likely,
            compaction: variant.waits,
            capt: variant.capt,
            slack: variant.slack,
            ..shape
        };
        let behind = |(first, times): (Cache, u32)| {
            let usual = second_level_of(first.size * times);
            SecondLevel { cache: Cache { line: first.line, misses: first.misses, ..usual.cache }, ..usual }
        };
        let second_level = shape.cache.zip(configuration.second_level).map(behind);
        let shape = Shape { second_level: shape.second_level.or(second_level), ..shape };
        let shape = shape.with_divergence(variant.divergence);
        shape.check()?;
        Ok(shape)
    }
}

impl Part {
    /// Active lanes of issues are counted where the page shows them.
    fn options(&self, seed: u64) -> MachineOptions {
        let shown = self.configuration.name == Name::TbcPaper;
        let monitors = if shown { vec![compaction::monitor, issues::monitor] } else { usual(seed).monitors };
        MachineOptions { monitors, ..usual(seed) }
    }

    /// A row a kernel and variant, of the results by kernel and variant.
    fn rows(&self, results: &[Vec<Result<Vec<Summary>, String>>]) -> Vec<Row> {
        let row = |at: usize, variant: usize| {
            let result = |variant: usize| results[at][variant].as_ref();
            let kernel = self.kernels[at].0;
            let variants = self.configuration.variants;
            let is_model = variants[variant].model.is_some();
            let never = variants.iter().position(|variant| variant.model.is_some() == is_model).unwrap_or(0);
            let drawn = |variant: usize| result(variant).ok().map(Vec::as_slice);
            let on_stack = drawn(0).and_then(|never| Summary::together(never, self.shapes[0].lanes));
            Row {
                of: Subject {
                    study: STUDY,
                    kernel: Some(kernel.name),
                    set: Some(kernel.set.text()),
                    variant: variants[variant].name.into(),
                    divergence: variants[variant].divergence.name(),
                },
                config: self.configuration.name,
                paper: kernel.paper,
                measured_set: on_stack.map(|never| measured_set(never.simt_efficiency)),
                model: is_model,
                core: self.shapes[variant].options(),
                issue_interval: self.shapes[variant].issue_interval,
                figures: drawn(variant).map(|draws| Figures::new(draws, drawn(never), &self.shapes[variant])),
                failed: result(variant).err().cloned(),
                published_entries: kernel.entries,
                published_efficiency: kernel.utilisation,
            }
        };
        let kernels = 0..self.kernels.len();
        kernels
            .flat_map(|at| (0..self.shapes.len()).map(move |variant| (at, variant)))
            .map(|(at, v)| row(at, v))
            .collect()
    }
}

impl Row {
    fn kernel(&self) -> &'static str {
        self.of.kernel.expect("a row is of one")
    }

    /// That of the paper.
    fn set(&self) -> &'static str {
        self.of.set.expect("every kernel of a paper is in one")
    }

    fn is_of(&self, config: Name, variant: &str) -> bool {
        self.config == config && self.of.variant == variant
    }
}

/// The harmonic mean over kernels of ratios that each has for a draw, in each draw; nothing without kernels.
fn harmonic(kernels: &[&[f64]]) -> Option<Gain> {
    let draws = kernels.iter().map(|ratios| ratios.len()).min().filter(|draws| *draws > 0)?;
    let of_draw = |draw: usize| kernels.len() as f64 / kernels.iter().map(|ratios| ratios[draw].recip()).sum::<f64>();
    Some(Gain::of((0..draws).map(of_draw)))
}

/// The means of a configuration's rows, of each set by variant.
fn means(configuration: &Configuration, rows: &[Row]) -> Vec<Mean> {
    let mean = |by: By, set: Set, variant: &Variant| {
        let set_of = |row: &Row| if by == By::Paper { row.of.set } else { row.measured_set };
        let is_of = |row: &&Row| row.is_of(configuration.name, variant.name) && set_of(row) == Some(set.text());
        let figures: Vec<&Figures> = rows.iter().filter(is_of).filter_map(|row| row.figures.as_ref()).collect();
        let average = |value: &dyn Fn(&Figures) -> Option<f64>| {
            let values: Vec<f64> = figures.iter().filter_map(|figures| value(figures)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let shares = |figures: &Figures| prediction::shares(figures.prediction.as_ref()?);
        let gain = harmonic(&figures.iter().filter_map(|figures| figures.gains.as_deref()).collect::<Vec<_>>());
        Mean {
            config: configuration.name,
            set,
            by,
            variant: variant.name,
            kernels: figures.len(),
            gain: gain.map(|gain| gain.mean),
            gain_range: gain.map(|gain| [gain.least, gain.greatest]),
            published: variant.published[set as usize].filter(|_| by == By::Paper),
            simt_efficiency: average(&|figures| Some(figures.simt_efficiency)),
            idle_share: average(&|figures| Some(figures.idle_share)),
            divergence_share: average(&|figures| Some(figures.divergence_share)),
            held_share: average(&|figures| Some(figures.held_share)),
            owed_share: average(&|figures| figures.owed_share),
            warps: all([0, 1].map(|when| average(&|figures| Some(figures.warps()?[when])))),
            bypass_waits: average(&|figures| prediction::waits(figures.prediction.as_ref()?)),
            decisions: all([0, 1, 2, 3].map(|class| average(&|figures| Some(shares(figures)?[class])))),
        }
    };
    let sets = [By::Paper, By::Measurement].into_iter().flat_map(|by| Set::ALL.map(|set| (by, set)));
    sets.flat_map(|(by, set)| configuration.variants.iter().map(move |variant| mean(by, set, variant))).collect()
}

impl Mean {
    /// Where kernels ran.
    fn gain(&self) -> Option<Gain> {
        let [least, greatest] = self.gain_range?;
        Some(Gain { mean: self.gain?, least, greatest })
    }
}

/// All of them, or nothing.
fn all<const N: usize>(values: [Option<f64>; N]) -> Option<[f64; N]> {
    values.iter().all(Option::is_some).then(|| values.map(Option::unwrap_or_default))
}

fn chart(report: &Report) -> String {
    let lanes = f64::from(report.lanes);
    let group = |(number, rows): (usize, &[Row])| {
        let of = |name: &&str| rows.iter().find(|row| row.of.variant == **name)?.figures.as_ref();
        let first = number == 0;
        Bars {
            heading: first.then(|| rows[0].config.text().into()),
            name: rows[0].kernel().into(),
            values: CHARTED.iter().map(|name| of(name).map(|figures| figures.compared.thread_ipc)).collect(),
            mark: of(&"never").map(|never| lanes / f64::from(rows[0].issue_interval) * never.simt_efficiency),
        }
    };
    let configurations = report.rows.chunk_by(|a, b| a.config == b.config);
    let papers = configurations.filter(|rows| [Name::TbcPaper, Name::CapriPaper].contains(&rows[0].config));
    let groups = papers.flat_map(|rows| rows.chunk_by(|a, b| a.kernel() == b.kernel()).enumerate().map(group));
    let title = format!("Thread instructions a cycle, {} lanes × {} warps", report.lanes, report.warps);
    let chart = Chart {
        title: &title,
        series: &CHARTED,
        mark: "bound of never",
        most: lanes,
        step: lanes / 8.0,
        groups: groups.collect(),
    };
    chart.svg()
}

#[cfg(test)]
mod tests {
    use super::papers::CAPRI_VARIANTS;
    use super::*;
    use heddle_testbench::kernels::find;

    /// A divergent and a coherent kernel in both papers' settings; block stacks do a quarter more than others on the
    /// first, and CAPRI's paper's divergent one stops its cores with a fault under `tbc+`.
    pub(super) fn example() -> Report {
        let never = Summary {
            cycles: 1000,
            warp_instructions: 600,
            thread_ipc: 10.0,
            // Half of 8 lanes.
            thread_instructions: 2400,
            most_levels: 2,
            issues: Some(Issues([300, 0, 0, 0, 0, 0, 0, 300])),
            accesses: 200,
            cache: Some(CacheVisits { misses: 10, silent_misses: 10, ..CacheVisits::default() }),
            ..Summary::default()
        };
        let never =
            Summary { launches: 1, blocks: 4, threads: 32, launched_warps: 4, resident_warps: 4, waves: 1, ..never };
        let compaction = Some(Compactions { times: 4, warps_before: 10, warps_after: 7, most_entries: 5 });
        let prediction =
            Some(Prediction { bypass_right: 5, bypass_wrong: 1, stall_right: 3, stall_wrong: 1, bypass_waits: 2 });
        let block = Summary { thread_ipc: 12.5, cycles: 800, thread_instructions: 3600, most_levels: 3, ..never };
        let cache = Some(CacheVisits { misses: 15, silent_misses: 15, ..CacheVisits::default() });
        let block = Summary { compaction, prediction, cache, accesses: 250, ..block };
        let part = |configuration: &'static Configuration| {
            let studied = |set| configuration.kernels.iter().find(|kernel| kernel.set == set).unwrap();
            let kernels = [Set::Divergent, Set::Coherent].map(|set| (studied(set), find(studied(set).name).unwrap()));
            let shapes =
                configuration.variants.iter().map(|v| Shape::default().with_divergence(v.divergence)).collect();
            Part { configuration, kernels: kernels.to_vec(), shapes }
        };
        let rows = |part: &Part| {
            let of = |variant: &Variant, set| match variant.name {
                "tbc+" if set == Set::Divergent => Err("stack overflow".into()),
                _ if variant.divergence.capabilities().mixes_warps && set == Set::Divergent => Ok(vec![block]),
                _ => Ok(vec![never]),
            };
            let results = [Set::Divergent, Set::Coherent]
                .map(|set| part.configuration.variants.iter().map(|variant| of(variant, set)).collect());
            part.rows(&results)
        };
        let rows: Vec<Row> = CONFIGURATIONS.iter().flat_map(|configuration| rows(&part(configuration))).collect();
        Report {
            study: STUDY,
            lanes: 32,
            warps: 16,
            core: "--lanes 32 --warps 16".into(),
            block_threads: None,
            draws: 1,
            means: CONFIGURATIONS.iter().flat_map(|configuration| means(configuration, &rows)).collect(),
            rows,
        }
    }

    #[test]
    fn means_are_harmonic_and_leave_out_what_failed() {
        let report = example();
        let mean_by = |by, config, set, variant| {
            let mean = report.mean(config, by, set, variant).unwrap();
            (mean.kernels, mean.gain)
        };
        let mean = |config, set, variant| mean_by(By::Paper, config, set, variant);
        // Both kernels have a SIMT efficiency of a half on never.
        let measured = |set| mean_by(By::Measurement, Name::TbcPaper, set, "tbc");
        assert_eq!((measured(Set::Coherent), measured(Set::Divergent).0), ((0, None), 2));
        assert_eq!(mean(Name::TbcPaper, Set::Divergent, "tbc"), (1, Some(1.25)));
        assert_eq!(mean(Name::TbcPaper, Set::Coherent, "tbc"), (1, Some(1.0)));
        assert_eq!(mean(Name::CapriPaper, Set::Divergent, "tbc+"), (0, None));
        let rows = |ipcs: [f64; 2]| {
            let summary = |thread_ipc| Summary { thread_ipc, cycles: 1, ..Summary::default() };
            let row = |ipc: f64| Row {
                of: Subject {
                    study: STUDY,
                    kernel: Some(""),
                    set: Some("divergent"),
                    variant: "tbc".into(),
                    divergence: "block-stack",
                },
                config: Name::TbcPaper,
                paper: "",
                measured_set: None,
                model: false,
                core: String::new(),
                issue_interval: 1,
                figures: Some(Figures::new(&[summary(ipc)], Some(&[summary(1.0)]), &Shape::default())),
                failed: None,
                published_entries: None,
                published_efficiency: None,
            };
            ipcs.map(row)
        };
        // 2 / (1 / 1 + 1 / 3)
        let means = means(&CONFIGURATIONS[0], &rows([1.0, 3.0]));
        assert_eq!(means.iter().find(|mean| mean.variant == "tbc").unwrap().gain, Some(1.5));
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(example()).unwrap();
        let rows = json["rows"].as_array().unwrap();
        let tbc = rows.iter().find(|row| row["variant"] == "tbc").unwrap();
        let text = |row: &serde_json::Value, field: &str| row[field].as_str().unwrap_or("nothing").to_string();
        let names = ["study", "kernel", "set", "variant"].map(|field| text(tbc, field));
        assert_eq!(names, ["compaction", "bfs", "divergent", "tbc"]);
        assert_eq!((tbc["range"][0].as_f64(), tbc["gain"].as_f64()), (Some(12.5), Some(1.25)));
        assert_eq!([text(tbc, "config"), text(tbc, "measured_set")], ["tbc-paper", "divergent"]);
        assert_eq!((tbc["traffic"].as_u64(), tbc["traffic_over_never"].as_f64()), (Some(30), Some(1.5)));
        assert_eq!((tbc["draws"].as_u64(), tbc["gain_range"][1].as_f64()), (Some(1), Some(1.25)));
        for field in [
            "divergence",
            "full_lanes",
            "resident_warps",
            "waves",
            "issues",
            "accesses_over_never",
            "misses_over_never",
            "simt_efficiency",
            "idle_cycles",
            "idle_over_never",
            "idle_share",
            "divergence_share",
            "held_share",
            "owed_share",
            "cache",
            "most_levels",
            "compaction",
            "prediction",
        ] {
            assert!(tbc.get(field).is_some(), "{field}");
        }
        let failed = rows.iter().find(|row| row["variant"] == "tbc+").unwrap();
        assert_eq!((failed["thread_ipc"].as_f64(), text(failed, "failed").as_str()), (None, "stack overflow"));
    }

    #[test]
    fn every_kernel_of_the_study_is_there_and_never_comes_first() {
        for configuration in &CONFIGURATIONS {
            assert_eq!(configuration.variants[0].name, "never");
            for kernel in configuration.kernels {
                assert_eq!(find(kernel.name).unwrap().name, kernel.name);
            }
        }
        for name in CHARTED {
            assert!(CAPRI_VARIANTS.iter().any(|variant| variant.name == name), "{name}");
        }
    }

    #[test]
    fn the_chart_has_the_bars_of_both_papers() {
        let picture = chart(&example());
        // A divergent kernel has one bar less with CAPRI; the background; the legend.
        assert_eq!(picture.matches("<rect ").count(), 3 + 3 + 4 + 5 + 1 + CHARTED.len());
        assert!(picture.contains("tbc-paper") && picture.contains("capri-paper"));
    }
}

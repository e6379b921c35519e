//! `heddle sweep`: a command's options as lists, all combinations, several at a time.
//!
//! | file | what it has |
//! |---|---|
//! | `file.rs` | what is written |
//! | `expand.rs` | lists become combinations |
//! | `command.rs` | whose options they are |
//! | `plan.rs` | runs, and the names of their results; `key.rs`: what a name is made of |
//! | `store.rs` | results, a file each |
//! | `work.rs` | who runs what; `simulate.rs`: here; `child.rs`: in a process of its own |
//! | `table.rs`, `rows.rs`, `page.rs` | what comes out |
//! | `snakemake.rs` | the same for several machines |

mod child;
mod command;
mod expand;
mod file;
pub mod key;
pub mod page;
mod plan;
mod rows;
mod simulate;
mod snakemake;
pub mod store;
pub mod table;
mod work;

use crate::interrupt::Interrupt;
use crate::output::{ResultFile, print, print_json};
use anyhow::{Context, Result, bail};
use clap::Args;
use command::Command;
use file::File;
use plan::Plan;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use store::{Record, Store};
use table::Table;
use work::{Done, work};

/// Run a command with every combination of options that a file lists.
///
/// The file says the command (run, hash, synth or study), and its options with a value or a list of values each; every
/// combination of these runs, with as many seeds as there are draws. Runs of one core follow each other on a machine
/// that is built once. A result is a JSON file, named by the hash of hardware, program, options and seed, and is never
/// computed twice: what was interrupted goes on, and a sweep that has grown runs only what is new. Several sweeps may
/// use one folder of results at the same time.
///
/// At the end is a table. A run that failed is in it and told below, and the exit code is then 1. Ctrl-C ends it with
/// the table so far; the exit code is then 130. docs/guide/sweep.md goes through a file.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle sweep examples/sweeps/mechanisms.toml --dry-run          what would run, and what is known
  heddle sweep examples/sweeps/mechanisms.toml --csv runs.csv     a line a run, for pandas
  heddle sweep examples/sweeps/locks.toml --json | jq '.rows[] | {options, draw, cycles: .result.cycles}'
  heddle sweep examples/sweeps/latency.toml --jobs 4 --results /tmp/latency
  heddle sweep examples/sweeps/orders.toml --again                runs anew what failed
  heddle sweep examples/sweeps/studies.toml --results /tmp/all    every study; what each takes
  heddle sweep examples/sweeps/studies.toml --results /tmp/new --docs docs   the same, and a page
  heddle sweep examples/sweeps/orders.toml --snakemake flow && snakemake --snakefile flow/Snakefile --cores 8")]
pub struct Sweep {
    /// What to run
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Where results are [default: FILE.results, beside FILE.toml]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Runs at a time [default: as many as there are processors; one study, which takes all of them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Run also what is known to fail
    #[arg(long)]
    again: bool,
    /// List what would run, and how much of it is known, and do no more
    #[arg(long, conflicts_with_all = ["csv", "json", "batch", "snakemake", "again"])]
    dry_run: bool,
    /// Write every run as a line, with all values of its result
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Print one JSON object with an array `rows`, a run each, instead of the table
    #[arg(long)]
    json: bool,
    /// Run one piece of the sweep and print no table, as jobs of another engine do: pieces are numbered from 0, and each
    /// has runs of one core
    #[arg(long, value_name = "K", conflicts_with_all = ["csv", "json"])]
    batch: Option<usize>,
    /// Runs that a piece has at most
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    batch_runs: u32,
    /// Write a workflow for Snakemake into this folder, whose jobs are the pieces, and do no more
    #[arg(long, value_name = "DIR", conflicts_with_all = ["csv", "json", "batch"])]
    snakemake: Option<PathBuf>,
    /// Write evidence/study-time.md into this folder, too; of a sweep of every study, with a folder of results that is
    /// empty
    #[arg(long, value_name = "DIR", conflicts_with_all = ["batch", "dry_run", "snakemake", "jobs"])]
    docs: Option<PathBuf>,
    /// Where paths in the file begin [default: its folder]
    #[arg(long, value_name = "DIR")]
    paths: Option<PathBuf>,
}

/// What --json prints.
#[derive(Serialize)]
struct Report<'a> {
    runs: usize,
    computed: usize,
    failed: usize,
    /// Interrupted, or one of several pieces.
    missing: usize,
    /// Combinations that are left out, and why.
    refused: Vec<[String; 2]>,
    rows: Vec<rows::Row<'a>>,
}

impl Sweep {
    pub fn run(self) -> Result<()> {
        let name = self.file.display().to_string();
        let file = File::read(&self.file)?;
        let interrupt = Interrupt::catch()?;
        let folder = self.paths.clone().unwrap_or_else(|| command::folder_of(&self.file));
        let mut plan = Plan::new(&name, &file, &folder)?;
        // A study takes all processors by itself.
        let threads = match plan.command {
            Command::Study => 1,
            _ => thread::available_parallelism().map_or(1, |n| n.get()),
        };
        let threads = self.jobs.map_or(threads, |jobs| jobs as usize);
        plan.end_at(&interrupt);
        let table = Table::new(&name, &file, plan.command)?;
        let results = self.results.clone().unwrap_or_else(|| self.file.with_extension("results"));
        if let Some(folder_of_flow) = &self.snakemake {
            let pieces = plan.pieces(self.batch_runs as usize).len();
            return snakemake::write(
                folder_of_flow,
                &self.file,
                &folder,
                self.results.as_deref(),
                pieces,
                self.batch_runs,
                plan.command,
            );
        }
        let store = Store::new(&results);
        if let Some(docs) = &self.docs {
            page::check(&plan, docs)?;
            if !store.is_empty() {
                bail!("{} has results: what they took is not known; name an empty folder", results.display());
            }
        }
        let jobs = match self.batch {
            None => (0..plan.jobs.len()).collect(),
            Some(piece) => self.piece(&plan, piece)?,
        };
        plan.find_keys(&jobs, threads, &interrupt)?;
        if self.dry_run {
            return print(&listed(&plan, &store));
        }
        let csv = self.csv.as_deref().map(ResultFile::create).transpose()?;
        store.create()?;
        let done = work(&plan, &jobs, &store, threads, self.again, &interrupt);
        let failed = done.records.iter().flatten().filter(|record| !record.ok).count();
        let elsewhere = jobs.len() - done.computed;
        if let Some(docs) = self.docs.as_ref().filter(|_| failed == 0 && elsewhere == 0) {
            page::write(&plan, &done.records, docs)?;
        }
        if let Some(mut file) = csv {
            file.writer().write_all(&rows::csv(&plan, &done.records)?).context("cannot write the CSV")?;
            file.finish()?;
        }
        if self.batch.is_some() {
            print(&format!("{}\n", counted(&jobs, &done, failed)))?;
            return done.stopped.map_or(Ok(()), Err);
        }
        if self.json {
            print_json(&report(&plan, &done, failed))?;
        } else {
            let text = table.text(&plan, &done.records)?;
            let below = format!("{}{}", failures(&plan, &done.records), left_out(&plan));
            print(&format!("{text}\n{below}{}; results in {}\n", counted(&jobs, &done, failed), results.display()))?;
        }
        match done.stopped {
            Some(error) => Err(error),
            None if failed > 0 => bail!("{failed} of {} failed", many(jobs.len(), "run")),
            None if self.docs.is_some() && elsewhere > 0 => {
                bail!(
                    "no page: {elsewhere} of {} were another's, and what they took is not known",
                    many(jobs.len(), "run")
                )
            }
            None => Ok(()),
        }
    }

    /// The jobs of a piece.
    fn piece(&self, plan: &Plan, piece: usize) -> Result<Vec<usize>> {
        let mut pieces = plan.pieces(self.batch_runs as usize);
        match pieces.len() {
            count if piece >= count => bail!("--batch {piece}: there are {count}, from 0 on"),
            _ => Ok(pieces.swap_remove(piece)),
        }
    }
}

fn report<'a>(plan: &'a Plan, done: &'a Done, failed: usize) -> Report<'a> {
    Report {
        runs: plan.jobs.len(),
        computed: done.computed,
        failed,
        missing: done.records.iter().filter(|record| record.is_none()).count(),
        refused: plan.refused.iter().map(|(combination, why)| [combination.to_string(), why.clone()]).collect(),
        rows: rows::rows(plan, &done.records),
    }
}

/// `8 runs: 3 known, 4 run now, 1 missing, 2 failed`.
fn counted(jobs: &[usize], done: &Done, failed: usize) -> String {
    let found = jobs.iter().filter(|at| done.records[**at].is_some()).count();
    let (known, all) = (found - done.computed, many(jobs.len(), "run"));
    let mut text = format!("{all}: {known} known, {} run now", done.computed);
    for (count, what) in [(jobs.len() - found, "missing"), (failed, "failed")] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text
}

/// `1 run`, `2 runs`.
fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What would run, a line a combination.
fn listed(plan: &Plan, store: &Store) -> String {
    let mut text = String::new();
    let draws = plan.jobs.len() / plan.combinations.len();
    let (mut known, mut failed) = (0, 0);
    for (planned, jobs) in plan.combinations.iter().zip(plan.jobs.chunks(draws)) {
        let records: Vec<Record> = jobs.iter().filter_map(|job| store.read(&job.key)).collect();
        let bad = records.iter().filter(|record| !record.ok).count();
        let state = match (records.len(), bad) {
            (0, _) => String::new(),
            (all, 0) => format!("  {all} of {draws} known"),
            (all, bad) => format!("  {all} of {draws} known, {bad} failed"),
        };
        let _ = writeln!(text, "{}{state}", planned.combination);
        (known, failed) = (known + records.len(), failed + bad);
    }
    text += &left_out(plan);
    let (runs, combinations) = (plan.jobs.len(), plan.combinations.len());
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let (combinations, draws) = (many(combinations, "combination"), many(draws, "draw"));
    let (cores, all, left) = (many(plan.batches.len(), "core"), many(runs, "run"), runs - known);
    let _ = writeln!(text, "{combinations} × {draws} on {cores}: {all}, {known} known{failed}, {left} to run");
    text
}

/// A line for each combination that fails, with the first draw that does.
fn failures(plan: &Plan, records: &[Option<Record>]) -> String {
    let draws = plan.jobs.len() / plan.combinations.len();
    let line = |(planned, records): (&plan::Planned, &[Option<Record>])| {
        let failed: Vec<&Record> = records.iter().flatten().filter(|record| !record.ok).collect();
        let first = failed.first()?;
        let count = if draws == 1 { String::new() } else { format!(" in {} of {draws} draws", failed.len()) };
        let why = crate::one_line(first.error.as_deref().unwrap_or_default());
        Some(format!("failed{count}: {}: {why}\n", planned.combination))
    };
    plan.combinations.iter().zip(records.chunks(draws)).filter_map(line).collect()
}

/// Combinations that are refused, by why.
fn left_out(plan: &Plan) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (combination, why) in &plan.refused {
        match reasons.iter_mut().find(|(other, _)| other == why) {
            Some((_, all)) => all.push(combination.to_string()),
            None => reasons.push((why, vec![combination.to_string()])),
        }
    }
    let line = |(why, all): (&str, Vec<String>)| match all.len() {
        1 => format!("left out: {}: {why}\n", all[0]),
        n => format!("left out: {} and {} more: {why}\n", all[0], n - 1),
    };
    reasons.into_iter().map(line).collect()
}

/// The whole path of something that is there.
fn whole(path: &Path) -> Result<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
}

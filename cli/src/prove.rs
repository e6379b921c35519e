//! `heddle prove`: formal proofs of blocks.

mod page;

use crate::docs::age::Stamp;
use crate::docs::evidence::of_proofs;
use crate::docs::tree;
use crate::interrupt::Interrupt;
use crate::mechanisms::mechanisms;
use crate::output::{print, print_json, tell};
use crate::progress::steps;
use anyhow::{Result, bail};
use clap::Args;
use heddle_check::prove::{Proof, Proven, Tools, Verdict, proofs, prove_all};
use indicatif::ProgressBar;
pub use page::PAGE;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// Prove properties of blocks with SymbiYosys, Yosys and the solver yices.
///
/// A proof that fails names its assertion and leaves a waveform; the exit code is then 1. Every proof also looks for
/// its covers: one that is out of reach counts as a failure, because the proof may say nothing. The provers are found
/// in PATH or in a virtual environment in the user's cache folder (or $HEDDLE_CACHE), which `./test` makes.
///
/// Ctrl-C or SIGTERM ends all proofs under way; the exit code is then 130.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle prove                       all of them, two at a time
  heddle prove --list                what there is
  heddle prove ccs scoreboard-2x8    all of a block, and one
  heddle prove --quick --json        a few shapes of each block
  heddle prove ccs --again           also if it held before, with the same text and provers
  heddle prove cache --limit 8       each for 8 minutes at most")]
pub struct Prove {
    /// Proofs, or blocks for all of theirs [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only those that run with the tests: a few shapes of each block, which take less than a minute each
    #[arg(long)]
    quick: bool,
    /// Run also what held before; otherwise it is only reported
    #[arg(long)]
    again: bool,
    /// End a proof that takes longer than so many minutes; it counts as a failure, and the page says so
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// List the proofs and what they say
    #[arg(long)]
    list: bool,
    /// Print an array of objects instead of a table
    #[arg(long)]
    json: bool,
    /// Where waveforms of failures go
    #[arg(long, default_value = "counterexamples", value_name = "DIR")]
    waves: PathBuf,
    /// Write evidence/proofs.md into this folder, too; only with all proofs
    #[arg(long, value_name = "DIR", conflicts_with_all = ["list", "names", "quick"])]
    docs: Option<PathBuf>,
}

/// A proof, and what came out of it if it was run.
#[derive(Serialize)]
struct Row {
    name: String,
    block: &'static str,
    shape: String,
    engine: &'static str,
    depth: u32,
    #[serde(flatten)]
    result: Option<Outcome>,
    /// What holds.
    says: &'static str,
}

#[derive(Serialize)]
struct Outcome {
    seconds: f64,
    /// Covers of the harness that were reached, of how many.
    covers: String,
    result: Verdict,
    /// It held before, in so many seconds, and was not run again.
    kept: bool,
}

impl Row {
    fn new(proof: &Proof, proven: Option<&Proven>) -> Row {
        Row {
            name: proof.name.clone(),
            block: proof.block,
            shape: proof.shape.clone(),
            engine: proof.method.name(),
            depth: proof.depth,
            result: proven.map(|p| Outcome {
                seconds: (p.seconds * 10.0).round() / 10.0,
                covers: format!("{}/{}", p.covers.0, p.covers.1),
                result: p.verdict.clone(),
                kept: p.kept,
            }),
            says: proof.says,
        }
    }

    /// It is known not to hold, or says nothing; unlike one that only takes too long.
    fn is_refuted(&self) -> bool {
        !matches!(self.result.as_ref().map(|outcome| &outcome.result), Some(Verdict::Holds | Verdict::NoEnd { .. }))
    }
}

impl Prove {
    pub fn run(self) -> Result<()> {
        let chosen = self.chosen()?;
        if self.list {
            let rows: Vec<Row> = chosen.iter().map(|proof| Row::new(proof, None)).collect();
            return if self.json { print_json(&rows) } else { print(&list(&rows)) };
        }
        self.docs.as_deref().map(|docs| tree::check(docs, [PAGE])).transpose()?;
        let interrupt = Interrupt::catch()?;
        let stop = || interrupt.poll().is_break();
        let tools = Tools::find()?;
        let progress = Progress::new(chosen.len());
        let version = tools.version(&stop)?;
        let known = (!self.again).then_some(version.as_str());
        let limit = self.limit.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
        let shows = |proof: &Proof, begins| progress.show(proof, begins);
        let results = prove_all(&chosen, &tools, known, limit, &self.waves, &stop, &shows);
        drop(progress);

        let mut rows = Vec::new();
        let mut first = Ok(());
        for (proof, result) in chosen.iter().zip(results) {
            match result {
                Ok(proven) => {
                    if let Some(waveform) = proven.verdict.waveform() {
                        tell(&format!("{}: {}; its waveform is {}\n", proof.name, proven.verdict, waveform.display()));
                    }
                    rows.push(Row::new(proof, Some(&proven)));
                }
                Err(stopped) => first = first.and(Err(stopped)),
            }
        }
        if self.json {
            print_json(&rows)?
        } else {
            print(&table(&rows))?
        }
        first?;
        if let Some(docs) = self.docs.as_ref().filter(|_| !rows.iter().any(Row::is_refuted)) {
            let stamp = Stamp::now(docs, of_proofs(&chosen)?, None);
            tree::write(docs, [(PAGE, stamp.on(&page::page(&rows, &version)).as_str())])?;
        }
        let fail = |row: &&Row| row.result.as_ref().is_none_or(|outcome| outcome.result != Verdict::Holds);
        if let Some(row) = rows.iter().find(fail) {
            let why = row.result.as_ref().map_or_else(String::new, |outcome| outcome.result.to_string());
            bail!("{} of {} proofs failed; {}: {why}", rows.iter().filter(fail).count(), rows.len(), row.name);
        }
        Ok(())
    }

    /// The proofs that are asked for.
    fn chosen(&self) -> Result<Vec<Proof>> {
        let all = proofs(mechanisms())?;
        let is = |proof: &Proof, name: &String| {
            proof.name == *name || proof.name.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('-'))
        };
        if let Some(unknown) = self.names.iter().find(|name| !all.iter().any(|proof| is(proof, name))) {
            bail!("there is no proof {unknown}; `heddle prove --list` lists them");
        }
        let asked = |proof: &Proof| self.names.is_empty() || self.names.iter().any(|name| is(proof, name));
        let chosen: Vec<Proof> = all.into_iter().filter(|proof| asked(proof) && (proof.quick || !self.quick)).collect();
        if chosen.is_empty() {
            bail!("none of these is quick");
        }
        Ok(chosen)
    }
}

/// The names of what is under way, on a terminal.
struct Progress {
    bar: ProgressBar,
    under_way: Mutex<Vec<String>>,
}

impl Progress {
    fn new(proofs: usize) -> Progress {
        let bar = steps(proofs as u64);
        bar.enable_steady_tick(Duration::from_millis(500));
        bar.set_message("starting Yosys, which takes minutes the first time");
        Progress { bar, under_way: Mutex::default() }
    }

    fn show(&self, proof: &Proof, begins: bool) {
        let Ok(mut names) = self.under_way.lock() else { return };
        if begins {
            names.push(proof.name.clone());
        } else {
            names.retain(|name| *name != proof.name);
            self.bar.inc(1);
        }
        self.bar.set_message(names.join(", "));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The proofs of each property side by side, in the order of the first ones.
fn by_property(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut properties: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match properties.iter_mut().find(|same| same[0].says == row.says) {
            Some(same) => same.push(row),
            None => properties.push(vec![row]),
        }
    }
    properties
}

fn list(rows: &[Row]) -> String {
    let mut text = String::new();
    for block in by_property(rows) {
        let names: Vec<&str> = block.iter().map(|row| row.name.as_str()).collect();
        let _ = writeln!(text, "{}, {} {}\n  {}", names.join(" "), block[0].engine, block[0].depth, block[0].says);
    }
    text
}

fn table(rows: &[Row]) -> String {
    let widest = |heading: &str, of: fn(&Row) -> &str| {
        rows.iter().map(|row| of(row).chars().count()).fold(heading.chars().count(), usize::max)
    };
    let (names, blocks) = (widest("name", |row| &row.name), widest("block", |row| row.block));
    let (shapes, engines) = (widest("lanes × warps", |row| &row.shape), widest("engine", |row| row.engine));
    let mut text = format!(
        "{:<names$} {:<blocks$} {:<shapes$} {:<engines$} {:>5} {:>8} {:>7}  {}\n",
        "name", "block", "lanes × warps", "engine", "depth", "seconds", "covers", "result"
    );
    for row in rows {
        let (seconds, covers, result) = row.result.as_ref().map_or_else(Default::default, |outcome| {
            (
                format!("{:.1}", outcome.seconds),
                outcome.covers.clone(),
                outcome.result.to_string() + if outcome.kept { " (kept)" } else { "" },
            )
        });
        let _ = writeln!(
            text,
            "{:<names$} {:<blocks$} {:<shapes$} {:<engines$} {:>5} {seconds:>8} {covers:>7}  {result}",
            row.name, row.block, row.shape, row.engine, row.depth
        );
    }
    text
}

//! `heddle study area`: cells and clock of the core with every mechanism for divergence, beside what papers have.
//!
//! * `cores`: what is measured; `queue`: by whom, where several are measured at a time; `results`: what was found, in
//!   `area.json`.
//! * `goals`: what is aimed at; `page`: `area.md`; `charts`: its pictures.
//!
//! The page is made of the results and the hashes of the cores as they are, of nothing else: so it can be written at
//! any time, and says of each row whether it is of the core as it is.

mod charts;
pub mod cores;
mod goals;
pub mod page;
mod queue;
pub mod results;

use crate::docs::tree;
use crate::interrupt::Interrupt;
use crate::output::{print, tell};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use cores::{Core, Key, Of};
use heddle_check::synth::{Board, Error, Session, Synthesis};
use indicatif::{ProgressBar, ProgressStyle};
use page::Page;
use queue::Queue;
use results::{Found, Now, Outcome, Results, modules};
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Cells and clock of the core on FPGAs: by lanes beside another core, by mechanism, by option, by board.
///
/// Cells are those after synthesis with Yosys, the clock is the median of several runs of place and route with nextpnr,
/// as `heddle synth` has them; both come from PyPI when they are first needed. All of it takes days. With --docs, each
/// row is written as soon as it is found, into area.json, from which the page area.md and its charts are made; a later
/// call goes on with what is missing, or is of an older core.
///
/// Ctrl-C ends it with what there is; the exit code is then 130.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle study area --docs docs                          what is missing on the page, cheap rows first; takes days
  heddle study area --docs docs --limit 60 --jobs 2      for an hour, on two processors
  heddle study area --docs docs --part lanes --seeds 0   one part of it, cells only
  heddle study area --docs docs --core '--lanes 8 --warps 8 --memory 128K --program 32K --divergence stack' --seeds 1
  heddle study area --docs docs --limit 0                only write the page, of what is known
  heddle study area --part boards --seeds 1              to standard output")]
pub struct Area {
    /// Only this part of the page; several may be named
    #[arg(long = "part", value_name = "NAME")]
    parts: Vec<Part>,
    /// Only the core with these options, as the page has them, or if there is none, all with this in their options;
    /// several may be named
    #[arg(long = "core", value_name = "OPTIONS", allow_hyphen_values = true)]
    cores: Vec<String>,
    /// Runs of place and route, of which the clock is the median; 0 for cells only [default: 3, 1 above 16 lanes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=99))]
    seeds: Option<u32>,
    /// Write studies/area.json, the page and its charts into this folder, and go on with what is there
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
    /// End after so many minutes
    #[arg(long, value_name = "MINUTES")]
    limit: Option<u32>,
    /// Cores that are measured at a time, each on one processor
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,
    /// Measure also what is known of the core as it is
    #[arg(long)]
    again: bool,
    /// Print the results as an array of objects instead of the page
    #[arg(long)]
    json: bool,
}

/// Parts of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Part {
    /// What is aimed at, and how far it is reached
    Goals,
    /// 2 to 64 lanes, path tables and arbiter, beside Simty
    Lanes,
    /// Every mechanism for divergence at 8 and at 16 lanes, module by module
    Mechanisms,
    /// Units alone, beside what papers say of them
    Units,
    /// What options cost
    Options,
    /// The cores of the boards
    Boards,
}

impl Part {
    pub const ALL: [Part; 6] = [Part::Goals, Part::Lanes, Part::Mechanisms, Part::Units, Part::Options, Part::Boards];
}

/// What place and route aims at: more than it reaches, so that it keeps trying.
const CLOCK: f64 = 100.0;

pub const RESULTS: &str = "studies/area.json";
pub const PAGE: &str = "studies/area.md";

/// Cores by board and options.
pub type Nows = HashMap<(&'static str, String), Now>;

impl Area {
    pub fn run(self) -> Result<()> {
        if let Some(folder) = &self.docs {
            tree::check(folder, [RESULTS, PAGE].into_iter().chain(charts::NAMES))?;
        }
        let _alone = self.docs.as_deref().map(alone).transpose()?;
        let file = self.docs.as_ref().map(|folder| folder.join(RESULTS));
        let mut results = file.as_deref().map_or_else(|| Ok(Results::default()), Results::read)?;
        let interrupt = Interrupt::catch()?;
        let now = nows()?;
        results.keep(|found| now.keys().any(|(board, core)| (*board, core) == (found.board.as_str(), &found.core)));
        let mut wanted = self.wanted()?;
        let all = wanted.len();
        wanted.retain(|key| self.again || !is_known(&results, key, &now));
        let ended = self.measure(&wanted, &mut results, &now, &interrupt);
        if let Some(folder) = &self.docs {
            write(folder, &results, &now)?;
        }
        let missing = wanted.iter().filter(|key| !is_known(&results, key, &now)).count();
        if missing > 0 {
            tell(&format!("{missing} of {all} measurements are still missing\n"));
        }
        match &self.docs {
            _ if self.json => print(&results.text()?)?,
            Some(folder) => print(&format!("{}\n", folder.join(PAGE).display()))?,
            None => print(&Page { results: &results, now: &now, parts: &self.parts() }.text()?)?,
        }
        interrupt.or(ended)
    }

    /// As many at a time as there are jobs. The first error ends it all.
    fn measure(&self, wanted: &[Key], results: &mut Results, now: &Nows, interrupt: &Interrupt) -> Result<()> {
        let begun = Instant::now();
        let over = || self.limit.is_some_and(|limit| begun.elapsed() >= Duration::from_secs(60 * u64::from(limit)));
        let failed = AtomicBool::new(false);
        let stop = || interrupt.poll().is_break() || over() || failed.load(Ordering::Relaxed);
        let progress = progress(wanted.len());
        let shared = Mutex::new((Queue::new(wanted), results));
        let lock = || shared.lock().expect("no thread panics while it has it");
        let work = |worker: usize| -> Result<()> {
            let core = Cell::new("");
            let says = |what: &str| progress.set_message(format!("{}: {what}", core.get()));
            let session = Session { stop: &stop, says: &says, again: self.again };
            // Netlists are large: only that of the last core is at hand.
            let mut last: Option<(&str, &str, Synthesis)> = None;
            while !stop() {
                let Some(key) = lock().0.next(worker) else { break };
                progress.inc(1);
                core.set(&key.core);
                // What is too large with one seed is with all.
                if !self.again && is_known(&*lock().1, key, now) {
                    continue;
                }
                let found @ Now { board, top, .. } = find(now, key);
                if last.as_ref().is_none_or(|(board, core, _)| (*board, *core) != (key.board.as_str(), &key.core)) {
                    last = Some((&key.board, &key.core, Synthesis::new(board, top, session)));
                }
                let (_, _, synthesis) = last.as_mut().expect("it was set");
                let outcome = match key.of {
                    Of::Cells => synthesis.cells().map(Outcome::Cells),
                    Of::Modules => synthesis.modules().map(|rows| Outcome::Modules(modules(rows, top))),
                    Of::Seed(seed) => {
                        synthesis.timing(CLOCK, seed).map(|timing| Outcome::Timing(timing.without_times()))
                    }
                };
                let outcome = match outcome {
                    Err(Error::Interrupted) => break,
                    Err(Error::Full(over)) => Outcome::Full(over),
                    Err(error @ Error::Failed(..)) => Outcome::Failed(error.to_string()),
                    outcome => outcome?,
                };
                let mut guard = lock();
                let (_, results) = &mut *guard;
                results.set(key, found.hash(key.of), outcome);
                self.docs.as_deref().map_or(Ok(()), |folder| write(folder, results, now))?;
            }
            Ok(())
        };
        let work = |worker| work(worker).inspect_err(|_| failed.store(true, Ordering::Relaxed));
        let ended = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs as usize).map(|worker| scope.spawn(move || work(worker))).collect();
            let ended = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            ended.collect::<Vec<_>>().into_iter().collect()
        });
        progress.finish_and_clear();
        ended
    }

    fn parts(&self) -> Vec<Part> {
        if self.parts.is_empty() { Part::ALL.to_vec() } else { self.parts.clone() }
    }

    /// What is to be measured, each once, the cheapest first.
    fn wanted(&self) -> Result<Vec<Key>> {
        let cores: Vec<Core> = self.parts().into_iter().flat_map(Part::cores).collect();
        let mut all: Vec<(u32, Key)> = Vec::new();
        for key in cores.iter().map(|core| core.keys(self.seeds)).collect::<Result<Vec<_>>>()?.concat() {
            if !all.iter().any(|(_, other)| *other == key) {
                all.push((key.effort()?, key));
            }
        }
        let mut named: Vec<String> = Vec::new();
        for core in &self.cores {
            let has = |key: &Key| key.core.contains(core);
            let found: Vec<&str> = all.iter().filter(|(_, key)| has(key)).map(|(_, key)| key.core.as_str()).collect();
            if found.is_empty() {
                let first = all.first().map_or("", |(_, key)| &key.core);
                bail!("--core '{core}': no core that is measured has this in its options; one is '{first}'");
            }
            let whole = found.contains(&core.as_str());
            named.extend(found.into_iter().filter(|found| !whole || found == core).map(String::from));
        }
        all.retain(|(_, key)| self.cores.is_empty() || named.contains(&key.core));
        all.sort_by_key(|(effort, _)| *effort);
        Ok(all.into_iter().map(|(_, key)| key).collect())
    }
}

/// The folder, locked: of two that write their results there each would lose what the other found. None on a file system
/// without locks.
fn alone(docs: &Path) -> Result<Option<File>> {
    let folder = File::open(docs)?;
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => {
            bail!("cannot write {}: another `heddle study area` does; wait for its end", docs.join(RESULTS).display())
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// The cores of all parts as they are.
pub fn nows() -> Result<Nows> {
    let cores = Part::ALL.into_iter().flat_map(Part::cores);
    let mut all = Nows::new();
    for Core { board, options, .. } in cores {
        if !all.contains_key(&(board.name, options.clone())) {
            let now = Now::of(board, &options)?;
            all.insert((board.name, options), now);
        }
    }
    Ok(all)
}

fn find<'a>(now: &'a Nows, key: &Key) -> &'a Now {
    let board = Board::find(&key.board).expect("it is a board's");
    &now[&(board.name, key.core.clone())]
}

/// Whether it was measured on the core as it is; or a seed before it found that it does not fit.
fn is_known(results: &Results, key: &Key, now: &Nows) -> bool {
    let is_now = |key: &Key| results.of(key).find(|found| found.hash == find(now, key).hash(key.of));
    let first = Key { of: Of::Seed(1), ..key.clone() };
    let is_small = |found: &Found| matches!(found.outcome, Outcome::Full(_));
    is_now(key).is_some() || matches!(key.of, Of::Seed(_)) && is_now(&first).is_some_and(is_small)
}

/// The files of the study: results, page and charts, by their names.
fn files(results: &Results, now: &Nows) -> Result<Vec<(&'static str, String)>> {
    let page = Page { results, now, parts: &Part::ALL }.text()?;
    let charts = charts::NAMES.into_iter().zip(charts::all(results, now));
    Ok([(RESULTS, results.text()?), (PAGE, page)].into_iter().chain(charts).collect())
}

/// Writes them, each whole or not at all.
fn write(folder: &Path, results: &Results, now: &Nows) -> Result<()> {
    let files = files(results, now)?;
    tree::write(folder, files.iter().map(|(name, text)| (*name, text.as_str())))
}

/// Those of the folder that are not what its results and the cores as they are make of them: another row may be of an
/// older core now.
pub fn outdated(folder: &Path) -> Result<Vec<&'static str>> {
    let all = files(&Results::read(&folder.join(RESULTS))?, &nows()?)?;
    let is_as_before =
        |(name, text): &(&str, String)| fs::read_to_string(folder.join(name)).is_ok_and(|old| old == *text);
    Ok(all.iter().filter(|file| !is_as_before(file)).map(|(name, _)| *name).collect())
}

/// Writes those anew.
pub fn renew(folder: &Path) -> Result<()> {
    match outdated(folder)?[..] {
        [] => Ok(()),
        _ => {
            let _alone = alone(folder)?;
            write(folder, &Results::read(&folder.join(RESULTS))?, &nows()?)
        }
    }
}

fn progress(steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} ({elapsed})");
    let bar = ProgressBar::new(steps as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use heddle_check::synth::{Flat, Timing};
    use heddle_hdl::netlist::Module;
    use results::tests::cells;
    use std::sync::{Arc, LazyLock};

    /// Cores as they are, without what is in them.
    pub fn nows() -> Nows {
        let of = |core: Core| {
            let now = Now {
                board: core.board,
                top: Arc::new(Module::empty("heddle")),
                flat: "now".into(),
                modules: LazyLock::new(Box::new(|| "now".into())),
            };
            ((core.board.name, core.options), now)
        };
        Part::ALL.into_iter().flat_map(Part::cores).map(of).collect()
    }

    pub fn flat(luts: u32) -> Outcome {
        Outcome::Cells(Flat { cells: cells(luts), core_luts: luts - 100, memory_bram: 80 })
    }

    pub fn timing(mhz: f64) -> Outcome {
        Outcome::Timing(Timing { mhz, path: vec!["core.issue".into(), "core.fetch".into()], at_ns: vec![] })
    }

    fn area(line: &str) -> Area {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            area: Area,
        }
        <Line as clap::Parser>::parse_from(["area"].into_iter().chain(line.split_whitespace())).area
    }

    #[test]
    fn what_is_wanted_is_there_once_and_the_cheapest_first() {
        let wanted = area("").wanted().unwrap();
        let effort: Vec<u32> = wanted.iter().map(|key| key.effort().unwrap()).collect();
        assert!(effort.is_sorted());
        assert!((1..wanted.len()).all(|k| !wanted[..k].contains(&wanted[k])));
        // Modules at 8 x 8 are of two parts.
        let usual = Key { board: "ulx3s-85f".into(), core: cores::PRICED[0].into(), of: Of::Modules };
        for part in ["mechanisms", "units"] {
            assert!(area(&format!("--part {part}")).wanted().unwrap().contains(&usual), "{part}");
        }
        let cells = area("--part lanes --seeds 0").wanted().unwrap();
        assert!(cells.len() == 12 && cells.iter().all(|key| key.of == Of::Cells));
        // A netlist serves all seeds that follow it.
        let mut seeds = area("--part lanes --seeds 2").wanted().unwrap();
        seeds.retain(|key| key.of != Of::Cells);
        assert!(seeds.chunks(2).all(|pair| pair[0].core == pair[1].core));
    }

    #[test]
    fn what_is_known_is_of_the_core_as_it_is() {
        let now = nows();
        let key = |of| Key { board: "ulx3s-85f".into(), core: cores::simty(4, "arbiter"), of };
        let mut results = Results::default();
        results.set(&key(Of::Cells), "before", flat(1000));
        results.set(&key(Of::Seed(1)), "now", timing(40.0));
        let is_known = |results: &Results, of| is_known(results, &key(of), &now);
        assert!(!is_known(&results, Of::Cells) && !is_known(&results, Of::Modules));
        assert!(is_known(&results, Of::Seed(1)) && !is_known(&results, Of::Seed(2)));
        // Too large with one seed, too large with all.
        results.set(&key(Of::Seed(1)), "now", Outcome::Full("5 wanted, 4 there".into()));
        assert!(is_known(&results, Of::Seed(2)) && !is_known(&results, Of::Cells));
    }
}

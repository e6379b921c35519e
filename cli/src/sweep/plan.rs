//! What a sweep's file comes to: runs, each with the name of its result.

use super::command::Command;
use super::expand::{Combination, expand};
use super::file::{File, Value};
use super::key;
use super::simulate::{Ready, Refusal};
use crate::interrupt::Interrupt;
use crate::run::Run;
use crate::shape::{HardwareArgs, ShapeArgs};
use crate::study::{self, Study, age};
use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgMatches, FromArgMatches};
use heddle_check::synth::family::NEXTPNR;
use heddle_check::synth::tools::YOSYS;
use heddle_hdl::canonical;
use heddle_hdl::netlist::Module;
use heddle_simt::Shape;
use heddle_simt::system::system;
use heddle_testbench::machine;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ScopedJoinHandle};

pub struct Plan {
    pub command: Command,
    pub combinations: Vec<Planned>,
    /// Draws of a combination follow each other.
    pub jobs: Vec<Job>,
    /// Machines that runs share.
    pub batches: Vec<Batch>,
    /// Combinations that are left out, and why.
    pub refused: Vec<(Combination, String)>,
}

pub struct Planned {
    pub combination: Combination,
    /// The command line without a seed.
    pub words: Vec<String>,
    pub how: How,
    pub batch: usize,
    /// Its part of the key.
    rest: String,
}

/// How it runs.
pub enum How {
    Here(Box<Ready>),
    /// In a process of its own.
    Child,
}

/// A run of a combination.
pub struct Job {
    pub combination: usize,
    pub draw: Option<u32>,
    /// The name of its result; empty until it is asked for.
    pub key: String,
}

pub struct Batch {
    /// Runs of the same machine have the same.
    machine: String,
    pub shape: Shape,
    /// What the study comes from that is the batch's one run; its cores are many.
    study: Option<Studied>,
    /// The canonical hash of the hardware; empty until keys are asked for.
    pub design: String,
}

/// What the figures of a study come from.
struct Studied {
    runs: Vec<study::runs::Run>,
    files: Vec<PathBuf>,
}

impl Batch {
    /// The netlist.
    pub fn module(&self, command: Command) -> Result<Arc<Module>> {
        Ok(match command {
            Command::Run => machine::design(&self.shape)?,
            Command::Hash | Command::Synth | Command::Study => system(&self.shape).check()?.netlist,
        })
    }

    /// The hash of a study's cores and programs, once keys were asked for.
    pub fn studied(&self) -> Option<&str> {
        self.study.as_ref().and(self.design.rsplit_once('-')).map(|(hash, _)| hash)
    }

    /// The hash of what runs there: of the hardware, or of all cores and programs of a study.
    fn hash(&self, command: Command) -> Result<String> {
        match &self.study {
            Some(Studied { runs, files }) => Ok(format!("{}-{}", age::hash(runs)?, beside(files)?)),
            None => Ok(format!("{:016x}", canonical::hash(&self.module(command)?)?)),
        }
    }
}

impl Plan {
    /// Of a file whose name is for messages, with paths from a folder.
    pub fn new(name: &str, file: &File, folder: &Path) -> Result<Plan> {
        let command = command(name, file)?;
        let draws = match (&file.draws, command.has_draws()) {
            (Some(draws), false) => {
                bail!("{name}:{}: draws: `heddle {}` has no seed; leave them away", draws.line, command.name())
            }
            (draws, true) => (1..=draws.as_ref().map_or(1, |draws| draws.it)).map(Some).collect(),
            (None, false) => vec![None],
        };
        check_values(name, file, command, folder)?;
        let mut plan = Plan { command, combinations: vec![], jobs: vec![], batches: vec![], refused: vec![] };
        for combination in expand(name, file)? {
            plan.add(name, combination, folder)?;
        }
        if let (Some((combination, why)), false) = (plan.refused.first(), file.skip_refused) {
            let more = match plan.refused.len() - 1 {
                0 => String::new(),
                n => format!(" (and {n} more)"),
            };
            bail!("{name}: {combination}: {why}{more}; `skip_refused = true` leaves such combinations out");
        }
        if plan.combinations.is_empty() {
            bail!("{name}: no combination is left");
        }
        let job = |combination: usize, draw: Option<u32>| Job { combination, draw, key: String::new() };
        let of = |combination: usize| draws.iter().map(move |draw| job(combination, *draw));
        plan.jobs = (0..plan.combinations.len()).flat_map(of).collect();
        Ok(plan)
    }

    /// References of host descriptions end at Ctrl-C.
    pub fn end_at(&mut self, interrupt: &Interrupt) {
        for planned in &mut self.combinations {
            if let How::Here(ready) = &mut planned.how {
                ready.end_at(interrupt);
            }
        }
    }

    /// A combination that runs, or is refused.
    fn add(&mut self, name: &str, combination: Combination, folder: &Path) -> Result<()> {
        let wrong = |why: String| anyhow!("{name}: {combination}: {why}");
        if let Some(missing) = self.command.missing(&combination) {
            return Err(wrong(missing));
        }
        let words = self.command.words(&combination, folder);
        let matches = self.command.parse(&words).map_err(wrong)?;
        let mut rest = key::rest(self.command, &matches);
        let mut studied = None;
        let planned = match self.command {
            Command::Study => {
                let own = Study::from_arg_matches(&matches)?;
                own.runs().map_err(Refusal::Refused).map(|runs| {
                    studied = Some(Studied { runs, files: own.files() });
                    (words.join(" "), Shape::default(), How::Child)
                })
            }
            Command::Run => Ready::new(Run::from_arg_matches(&matches)?).map(|ready| {
                rest += &ready.program();
                (ready.machine(), ready.shape.clone(), How::Here(Box::new(ready)))
            }),
            Command::Hash | Command::Synth => hardware(&matches).map(|shape| {
                if self.command == Command::Synth {
                    rest += &format!("{} {NEXTPNR}", YOSYS.title());
                }
                (shape.options(), shape, How::Child)
            }),
        };
        match planned {
            Ok((machine, shape, how)) => {
                let batch = self.batch(machine, shape, studied);
                self.combinations.push(Planned { combination, words, how, batch, rest });
            }
            Err(Refusal::Refused(why)) => self.refused.push((combination, format!("{why:#}"))),
            Err(Refusal::Wrong(why)) => return Err(wrong(format!("{why:#}"))),
        }
        Ok(())
    }

    fn batch(&mut self, machine: String, shape: Shape, study: Option<Studied>) -> usize {
        let found = self.batches.iter().position(|batch| batch.machine == machine);
        found.unwrap_or_else(|| {
            self.batches.push(Batch { machine, shape, study, design: String::new() });
            self.batches.len() - 1
        })
    }

    /// Finds the keys of these jobs. The hash of a design takes a moment.
    pub fn find_keys(&mut self, jobs: &[usize], threads: usize, interrupt: &Interrupt) -> Result<()> {
        let batch_of = |plan: &Plan, at: usize| plan.combinations[plan.jobs[at].combination].batch;
        let wanted: BTreeSet<usize> = jobs.iter().map(|at| batch_of(self, *at)).collect();
        let wanted: Vec<usize> = wanted.into_iter().collect();
        let (next, progress) = (AtomicUsize::new(0), ProgressBar::new(wanted.len() as u64));
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} hashes of cores");
        progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let work = || -> Result<Vec<(usize, String)>> {
            let mut hashes = Vec::new();
            while let Some(&batch) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                interrupt.or(Ok(()))?;
                hashes.push((batch, self.batches[batch].hash(self.command)?));
                progress.inc(1);
            }
            Ok(hashes)
        };
        let hashes = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.min(wanted.len())).map(|_| scope.spawn(work)).collect();
            let join = |worker: ScopedJoinHandle<_>| worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            workers.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?;
        progress.finish_and_clear();
        for (batch, hash) in hashes.into_iter().flatten() {
            self.batches[batch].design = hash;
        }
        for &at in jobs {
            let Planned { rest, batch, .. } = &self.combinations[self.jobs[at].combination];
            let Batch { design, shape, .. } = &self.batches[*batch];
            self.jobs[at].key = key::key(self.command.name(), design, shape, rest, self.jobs[at].draw);
        }
        Ok(())
    }

    /// The jobs in pieces of at most so many, each on one machine: what one process of several computes.
    pub fn pieces(&self, most: usize) -> Vec<Vec<usize>> {
        let of = |batch: usize| {
            let jobs = self.jobs.iter().enumerate();
            let jobs = jobs.filter(move |(_, job)| self.combinations[job.combination].batch == batch);
            jobs.map(|(at, _)| at).collect::<Vec<usize>>()
        };
        (0..self.batches.len())
            .flat_map(|batch| of(batch).chunks(most).map(<[usize]>::to_vec).collect::<Vec<_>>())
            .collect()
    }
}

/// The hash of what a study's figures come from beside cores and programs: this program, which has its variants and the
/// cycle model, and files.
fn beside(files: &[PathBuf]) -> Result<String> {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    let program = match PROGRAM.get() {
        Some(program) => program,
        None => {
            let path = std::env::current_exe().context("cannot tell where this command is")?;
            let digest = md5::compute(read(&path)?).to_vec();
            PROGRAM.get_or_init(|| digest)
        }
    };
    let mut all = md5::Context::new();
    all.consume(program);
    for file in files {
        all.consume(read(file)?);
    }
    Ok(format!("{:x}", all.finalize()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn command(name: &str, file: &File) -> Result<Command> {
    Command::find(&file.command.it).ok_or_else(|| {
        let all = Command::ALL.map(Command::name).join(", ");
        anyhow!("{name}:{}: command = \"{}\": wanted is one of {all}", file.command.line, file.command.it)
    })
}

/// Refuses the first value that the command does not take.
fn check_values(name: &str, file: &File, command: Command, folder: &Path) -> Result<()> {
    let mut known = HashSet::new();
    for dimension in file.groups.iter().flatten() {
        for value in &dimension.values {
            let key = &dimension.key;
            if known.insert((key, value.it.to_string())) {
                let shown = match &value.it {
                    Value::Words(words) if words.len() == 1 && words[0].parse::<f64>().is_err() => {
                        format!("{:?}", words[0])
                    }
                    other => other.to_string(),
                };
                let checked = command.check(key, &value.it, folder);
                checked.map_err(|why| anyhow!("{name}:{}: {key} = {shown}: {why}", value.line))?;
            }
        }
    }
    let keys: HashSet<&str> = file.groups.iter().flatten().map(|dimension| dimension.key.as_str()).collect();
    let excludes = file.excludes.iter().flatten().map(|dimension| ("exclude", dimension));
    for (place, dimension) in excludes.chain(file.table.baseline.iter().map(|dimension| ("baseline", dimension))) {
        if !keys.contains(dimension.key.as_str()) {
            bail!("{name}:{}: {place}: `{}` is none of the options above", dimension.line, dimension.key);
        }
    }
    Ok(())
}

/// The core that a line asks for.
fn hardware(matches: &ArgMatches) -> Result<Shape, Refusal> {
    let parsed =
        ShapeArgs::from_arg_matches(matches).and_then(|shape| Ok((shape, HardwareArgs::from_arg_matches(matches)?)));
    let (shape, hardware) = parsed.map_err(|error| Refusal::Wrong(error.into()))?;
    Ok(hardware.of(&shape.shape().map_err(Refusal::Refused)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan> {
        Plan::new("s.toml", &File::parse("s.toml", text)?, Path::new(""))
    }

    fn keys(text: &str) -> Vec<String> {
        let mut plan = plan(text).unwrap();
        let jobs: Vec<usize> = (0..plan.jobs.len()).collect();
        plan.find_keys(&jobs, 2, &Interrupt::default()).unwrap();
        plan.jobs.into_iter().map(|job| job.key).collect()
    }

    #[test]
    fn the_same_run_has_the_same_key_however_it_is_written() {
        let head = "command = \"run\"\n[options]\nkernel = \"gcd\"\nwarps = 1\n";
        let usual = keys(&format!("{head}lanes = [4, 2]\n"));
        let written_out = format!("{head}lanes = 2\ndivergence = \"path-table\"\nfair = \"off\"\nsize = \"usual\"\n");
        assert_eq!(keys(&written_out)[0], usual[1]);
        assert_ne!(usual[0], usual[1]);
        assert_ne!(keys(&format!("{head}lanes = 2\nsize = \"small\"\n"))[0], usual[1]);
        // Inputs of another kernel's driver, on the same core.
        assert_ne!(keys(&format!("{}lanes = 2\n", head.replace("gcd", "sort")))[0], usual[1]);
    }

    #[test]
    fn a_synthesis_is_of_both_tools() {
        let plan = plan("command = \"synth\"\n[options]\nlanes = 1\nwarps = 1\n").unwrap();
        let rest = &plan.combinations[0].rest;
        assert!(rest.contains(&YOSYS.title()) && rest.contains(NEXTPNR), "{rest}");
    }

    #[test]
    fn a_study_is_of_its_files_too() {
        let folder = tempfile::tempdir().unwrap();
        let text = "command = \"study\"\n[options]\nstudy = \"per-area\"\narea = \"area.json\"\n";
        let beside = || {
            let plan = Plan::new("s.toml", &File::parse("s.toml", text).unwrap(), folder.path()).unwrap();
            beside(&plan.batches[0].study.as_ref().unwrap().files)
        };
        let missing = beside().unwrap_err().to_string();
        assert!(missing.starts_with("cannot read ") && missing.ends_with("area.json"), "{missing}");
        let of = |content: &str| {
            fs::write(folder.path().join("area.json"), content).unwrap();
            beside().unwrap()
        };
        assert_eq!(of("[]"), of("[]"));
        assert_ne!(of("[]"), of("[ ]"));
    }

    #[test]
    fn pieces_have_every_run_once_and_one_machine_each() {
        let text = "command = \"run\"\ndraws = 3\n[options]\nkernel = [\"gcd\", \"sort\"]\nlanes = [2, 4]\nwarps = 1\n";
        let plan = plan(text).unwrap();
        let pieces = plan.pieces(4);
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2, 4, 2]);
        let mut all: Vec<usize> = pieces.concat();
        all.sort();
        assert_eq!(all, (0..12).collect::<Vec<_>>());
        for piece in pieces {
            let batch = |at: &usize| plan.combinations[plan.jobs[*at].combination].batch;
            assert!(piece.iter().all(|at| batch(at) == batch(&piece[0])));
        }
    }

    #[test]
    fn options_that_others_name_must_be_there() {
        let error = |text: &str| {
            let head = "command = \"run\"\n[options]\nkernel = \"gcd\"\nlanes = 2\n";
            plan(&format!("{head}{text}")).err().unwrap().to_string()
        };
        assert_eq!(error("[exclude]\nwarps = 2\n"), "s.toml:6: exclude: `warps` is none of the options above");
        let baseline = error("[table]\nbaseline = { warps = 2 }\n");
        assert_eq!(baseline, "s.toml:6: baseline: `warps` is none of the options above");
        let draws = plan("command = \"hash\"\ndraws = 2\n[options]\nlanes = 2\n").err().unwrap().to_string();
        assert_eq!(draws, "s.toml:2: draws: `heddle hash` has no seed; leave them away");
    }
}

//! One proof: the harness proven, and its covers reached.

use super::tools::Tools;
use super::verilog::{TOP, covers, verilog};
use super::{Method, Proof};
use crate::kept::Kept;
use crate::process::{Folder, wait};
use heddle_sim::verilator::cache;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What came out of a proof.
#[derive(Clone, Debug)]
pub struct Proven {
    /// Of the proof and of the search for covers.
    pub seconds: f64,
    /// Covers of the harness: how many were reached, of how many.
    pub covers: (usize, usize),
    /// Whether it holds.
    pub verdict: Verdict,
    /// It held before, and was not run again.
    pub kept: bool,
}

/// Whether what is to be proven holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    Fails(Counterexample),
    /// It does for as many cycles as the depth, but no induction shows it for ever.
    NotInductive(Counterexample),
    /// It does, but these covers are out of reach within the depth for them: perhaps it says nothing.
    Unreached(Vec<String>),
    /// It was ended before that was known, or before covers were looked for.
    NoEnd {
        /// After so long.
        after: Duration,
        /// Of a bounded proof that came so far: the cycles from reset for which it holds.
        cycles: Option<u32>,
    },
}

/// A run that breaks an assertion; for an induction, one that may not be possible from reset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// The assertion's path from the harness.
    pub assertion: String,
    /// Where the run's waveform is.
    pub waveform: PathBuf,
}

impl Verdict {
    /// The waveform that shows why not.
    pub fn waveform(&self) -> Option<&Path> {
        match self {
            Verdict::Fails(run) | Verdict::NotInductive(run) => Some(&run.waveform),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Verdict::Holds => write!(f, "holds"),
            Verdict::Fails(run) => write!(f, "{} fails", run.assertion),
            Verdict::NotInductive(run) => write!(f, "{} is not inductive", run.assertion),
            Verdict::Unreached(covers) => write!(f, "not reached: {}", covers.join(", ")),
            Verdict::NoEnd { after, cycles } => {
                let held = match cycles {
                    None => String::new(),
                    Some(1) => "; 1 cycle holds".into(),
                    Some(cycles) => format!("; {cycles} cycles hold"),
                };
                write!(f, "no end within {} s{held}", after.as_secs())
            }
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// Why a proof came to no end.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// It was asked to.
    #[error("interrupted")]
    Interrupted,
    /// The prover failed; what it said last.
    #[error("{0}: the prover failed: {1}")]
    Failed(String, String),
    /// Files of the proof could not be written or read.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, io::Error),
}

/// Proves; `verilog` is [`super::verilog::verilog`] of the harness. A waveform of a failure goes into the folder
/// `waves`. Ends soon after `stop` says so, or after `limit`, and leaves nothing behind.
pub fn prove(
    proof: &Proof,
    verilog: &str,
    tools: &Tools,
    limit: Option<Duration>,
    waves: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<Proven, Stopped> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = cache().join(format!("proof-{}.{}.{number}", proof.name, std::process::id()));
    let folder = Folder::create(path.clone()).map_err(at(&path))?;
    let started = Instant::now();
    let over = || limit.filter(|&limit| started.elapsed() >= limit);
    let ends = || stop() || over().is_some();
    let run = Run { proof, verilog, tools, folder: folder.path(), stop: &ends };
    let found = run.assertions(waves).and_then(|verdict| Ok((verdict, run.covers()?)));
    let (verdict, covers) = match (found, over()) {
        (Err(Stopped::Interrupted), Some(after)) if !stop() => {
            (Verdict::NoEnd { after, cycles: run.cycles()? }, (0, covers(&proof.harness)))
        }
        (found, _) => {
            let (verdict, (reached, unreached)) = found?;
            let covers = (reached, reached + unreached.len());
            let is_empty = verdict == Verdict::Holds && !unreached.is_empty();
            (if is_empty { Verdict::Unreached(unreached) } else { verdict }, covers)
        }
    };
    Ok(Proven { seconds: started.elapsed().as_secs_f64(), covers, verdict, kept: false })
}

/// Proves all of them, two at a time; results in their order. `shows` is told when one begins (true) and ends. With the
/// `version` of the provers, what held before is not run again. One that takes longer than `limit` is ended.
pub fn prove_all(
    proofs: &[Proof],
    tools: &Tools,
    version: Option<&str>,
    limit: Option<Duration>,
    waves: &Path,
    stop: &(dyn Fn() -> bool + Sync),
    shows: &(dyn Fn(&Proof, bool) + Sync),
) -> Vec<Result<Proven, Stopped>> {
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<Result<Proven, Stopped>>> = proofs.iter().map(|_| OnceLock::new()).collect();
    let take = || {
        let k = next.fetch_add(1, Ordering::Relaxed);
        Some((proofs.get(k)?, results.get(k)?))
    };
    let work = || {
        while let Some((proof, place)) = take() {
            let result = if stop() {
                Err(Stopped::Interrupted)
            } else {
                shows(proof, true);
                let verilog = verilog(&proof.harness);
                let kept = version.map(|version| kept(proof, &verilog, version));
                match kept.as_ref().and_then(Kept::read) {
                    Some(Held { seconds, covers }) => {
                        Ok(Proven { seconds, covers, verdict: Verdict::Holds, kept: true })
                    }
                    None => prove(proof, &verilog, tools, limit, waves, stop).inspect(|proven| {
                        kept.iter().zip(Held::of(proven)).for_each(|(kept, held)| kept.write(&held));
                    }),
                }
            };
            shows(proof, false);
            let _ = place.set(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    results.into_iter().map(|result| result.into_inner().expect("every proof was taken by somebody")).collect()
}

/// What is kept of a proof that held. One that fails is run again.
#[derive(Serialize, Deserialize)]
struct Held {
    seconds: f64,
    covers: (usize, usize),
}

impl Held {
    fn of(proven: &Proven) -> Option<Held> {
        let Proven { seconds, covers, .. } = *proven;
        (proven.verdict == Verdict::Holds).then_some(Held { seconds, covers })
    }
}

/// Where the result of a proof is kept: by its text, what is asked of the provers, and their version.
fn kept(proof: &Proof, verilog: &str, version: &str) -> Kept {
    let key = (verilog, proof.method.name(), proof.depth, proof.cover_depth, version);
    Kept::of("proofs", &proof.name, key)
}

struct Run<'a> {
    proof: &'a Proof,
    verilog: &'a str,
    tools: &'a Tools,
    folder: &'a Path,
    stop: &'a dyn Fn() -> bool,
}

impl Run<'_> {
    fn assertions(&self, waves: &Path) -> Result<Verdict, Stopped> {
        let mode = match self.proof.method {
            Method::Induction => "prove",
            Method::Bounded => "bmc",
        };
        // A property is looked at one step after the cycle that it is about.
        let log = self.sby(mode, self.proof.depth + 1)?;
        let status = log.lines().rev().find_map(|line| line.split_once("DONE (")?.1.split([',', ')']).next());
        let counterexample = |trace: &str| {
            let assertion = named(&log, "Assert failed in ").into_iter().next();
            let waveform = self.keep(mode, trace, waves)?;
            Ok(Counterexample { assertion: assertion.unwrap_or_else(|| "an assertion".into()), waveform })
        };
        match status {
            Some("PASS") => Ok(Verdict::Holds),
            Some("FAIL") => Ok(Verdict::Fails(counterexample("trace.vcd")?)),
            Some("UNKNOWN") => Ok(Verdict::NotInductive(counterexample("trace_induct.vcd")?)),
            _ => Err(self.failed(mode, &log)),
        }
    }

    /// Of a proof that was ended: if it is bounded, for how many cycles it holds. Fails if an assertion is known not to
    /// hold, of which there is no waveform yet.
    fn cycles(&self) -> Result<Option<u32>, Stopped> {
        if self.proof.method != Method::Bounded {
            return Ok(None);
        }
        let log = fs::read_to_string(self.folder.join("bmc.log")).unwrap_or_default();
        match log.lines().find(|line| line.contains("Assert failed in ")) {
            Some(line) => Err(Stopped::Failed(self.proof.name.clone(), format!("ended before its waveform: {line}"))),
            None => Ok(cycles(&log, self.proof.depth)),
        }
    }

    /// How many covers are reached, and the names of those that are not.
    fn covers(&self) -> Result<(usize, Vec<String>), Stopped> {
        let log = self.sby("cover", self.proof.cover_depth + 1)?;
        let Some(done) = log.lines().rfind(|line| line.contains("DONE (PASS") || line.contains("DONE (FAIL")) else {
            return Err(self.failed("cover", &log));
        };
        let covers = covers(&self.proof.harness);
        reached(&log, done, covers).ok_or_else(|| {
            Stopped::Failed(self.proof.name.clone(), format!("not all of {covers} covers are told of before: {done}"))
        })
    }

    /// Runs sby and returns what it printed.
    fn sby(&self, mode: &str, depth: u32) -> Result<String, Stopped> {
        let script = format!(
            "[options]\nmode {mode}\ndepth {depth}\n[engines]\nsmtbmc yices\n[script]\nread_verilog -formal {TOP}.v\n\
             prep -flatten -top {TOP}\n[files]\n{TOP}.v\n"
        );
        let file = |name: String| self.folder.join(name);
        write(&file(format!("{TOP}.v")), self.verilog)?;
        write(&file(format!("{mode}.sby")), &script)?;
        let printed = file(format!("{mode}.log"));
        let to = |path: &Path| File::create(path).map_err(at(path));
        let mut command = self.tools.sby(Path::new(&format!("{mode}.sby")));
        command
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(to(&printed)?)
            .stderr(to(&file(format!("{mode}.err")))?);
        let ended = wait(&mut command.spawn().map_err(at(self.folder))?, self.stop).map_err(at(self.folder))?;
        if !ended {
            return Err(Stopped::Interrupted);
        }
        fs::read_to_string(&printed).map_err(at(&printed))
    }

    /// Moves a waveform to where it stays.
    fn keep(&self, mode: &str, name: &str, waves: &Path) -> Result<PathBuf, Stopped> {
        fs::create_dir_all(waves).map_err(at(waves))?;
        let kept = waves.join(format!("{}.vcd", self.proof.name));
        fs::copy(self.folder.join(mode).join("engine_0").join(name), &kept).map_err(at(&kept))?;
        Ok(kept)
    }

    fn failed(&self, mode: &str, log: &str) -> Stopped {
        let errors = fs::read_to_string(self.folder.join(format!("{mode}.err"))).unwrap_or_default();
        let lines = log.lines().chain(errors.lines());
        let telling = lines.clone().rfind(|line| line.contains("ERROR")).or(lines.last());
        Stopped::Failed(self.proof.name.clone(), telling.unwrap_or("no message").to_string())
    }
}

/// The cycles from reset of which a bounded proof's log says that they hold, of so many as its depth. The steps before
/// the one that it is at do; a property is looked at one step after its cycle.
fn cycles(log: &str, depth: u32) -> Option<u32> {
    if log.contains("DONE (PASS") {
        return Some(depth);
    }
    let at =
        |line: &str| line.split_once("Checking ")?.1.split_once(" in step ")?.1.strip_suffix("..")?.parse::<u32>().ok();
    log.lines().rev().find_map(at)?.checked_sub(1).filter(|&cycles| cycles > 0)
}

/// How many covers a log says are reached, and the names of the others. None if it does not tell of so many covers, or
/// if they are not what its last line says.
fn reached(log: &str, done: &str, covers: usize) -> Option<(usize, Vec<String>)> {
    let reached = named(log, "Reached cover statement in ").len();
    let unreached = named(log, "Unreached cover statement at ");
    let agrees = done.contains("DONE (PASS") == unreached.is_empty();
    (agrees && reached + unreached.len() == covers).then_some((reached, unreached))
}

/// Labels of properties in lines such as `Assert failed in proof: harness.ccs.assert_no_gap (proof.v:20.9-20.40)`, as
/// `ccs.no_gap`, each once.
fn named(log: &str, what: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in log.lines() {
        let Some((_, rest)) = line.split_once(what) else { continue };
        let Some((_, label)) = rest.split_once(": ") else { continue };
        let path = label.split(" (").next().unwrap_or(label).trim_start_matches("harness.");
        let name = path.replace("assert_", "").replace("cover_proof_", "");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn write(path: &Path, text: &str) -> Result<(), Stopped> {
    fs::write(path, text).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Stopped {
    let path = path.to_path_buf();
    move |error| Stopped::File(path, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_not_kept() {
        let held = Proven { seconds: 2.5, covers: (3, 3), verdict: Verdict::Holds, kept: false };
        assert!(Held::of(&held).is_some_and(|held| (held.seconds, held.covers) == (2.5, (3, 3))));
        assert!(Held::of(&Proven { verdict: Verdict::Unreached(vec!["c".into()]), ..held }).is_none());
    }

    #[test]
    fn a_bounded_proof_holds_up_to_where_it_was_ended() {
        let step = |what: &str, step: u32| {
            format!("SBY 10:31:42 [bmc] engine_0: ##   0:00:55  Checking {what} in step {step}..\n")
        };
        let waits = "SBY 10:32:42 [bmc] engine_0: ##   0:01:55  waiting for solver (1 minute)\n";
        let log = step("assertions", 0) + &step("assumptions", 1) + &step("assertions", 1);
        assert_eq!((cycles("", 9), cycles(&step("assertions", 0), 9), cycles(&log, 9)), (None, None, None));
        assert_eq!(cycles(&(log.clone() + &step("assumptions", 2)), 9), Some(1));
        assert_eq!(cycles(&(log + &step("assumptions", 8) + &step("assertions", 8) + waits), 9), Some(7));
        assert_eq!(cycles("SBY 10:32:42 [bmc] DONE (PASS, rc=0)\n", 9), Some(9));
    }

    #[test]
    fn covers_that_a_log_does_not_tell_of_are_no_success() {
        let line =
            |what: &str, name: &str| format!("SBY engine_0: ##   {what} proof: harness.cover_proof_{name} (p.v:1)\n");
        let (one, two) =
            (line("Reached cover statement in step 2 at", "one"), line("Unreached cover statement at", "two"));
        let (pass, fail) = ("SBY DONE (PASS, rc=0)", "SBY DONE (FAIL, rc=2)");
        assert_eq!(reached(&one, pass, 1), Some((1, vec![])));
        assert_eq!(reached(&(one.clone() + &two), fail, 2), Some((1, vec!["two".to_string()])));
        for (log, done, covers) in [(&one, pass, 2), (&one, fail, 1), (&one, fail, 2), (&two, pass, 1)] {
            assert_eq!(reached(log, done, covers), None, "{log}{done}");
        }
    }
}

//! The unit tests of the blocks, on a mutant: their test binary as a process, with the mutant's name in its
//! environment.

use crate::interrupt::Interrupt;
use anyhow::{Context, Result, bail};
use heddle_hdl::mutate::Mutant;
use heddle_sim::{MUTANT, SURVEY};
use heddle_simt::Divergence;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// The crate whose tests they are.
const CRATE: &str = "heddle-simt";

pub struct Blocks {
    binary: PathBuf,
    /// For each module, the tests that build a design with it.
    tests: BTreeMap<String, BTreeSet<String>>,
    /// After this, a test never ends.
    limit: Duration,
}

impl Blocks {
    /// Has the tests built, unless their binary is given, and run once on the unchanged design, which has this unit.
    pub fn find(binary: Option<PathBuf>, unit: Divergence, interrupt: &Interrupt) -> Result<Blocks> {
        let binary = interrupt.or(binary.map_or_else(build, Ok))?;
        let started = Instant::now();
        let mut survey = command(&binary);
        // Tests of proofs simulate harnesses as they are, which no mutant is in; the host is in none either. Tests in
        // the folder of another unit build that unit alone.
        let others = Divergence::ALL.iter().filter(|other| **other != unit);
        let folders = others.map(|unit| format!("divergence::{}::", unit.name().replace('-', "_")));
        let output = survey
            .args(["--skip", "::proof::", "--skip", "host::"])
            .args(folders.flat_map(|folder| ["--skip".into(), folder]))
            .env(MUTANT, SURVEY)
            .output()
            .with_context(|| format!("cannot run {}", binary.display()));
        let output = interrupt.or(output)?;
        if !output.status.success() {
            bail!("the block tests fail on the unchanged design; see `cargo test -p {CRATE} --lib`");
        }
        let mut tests: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stderr).lines().filter_map(told) {
            if let Some((test, modules)) = line.split_once(" has ") {
                modules.split(' ').for_each(|m| _ = tests.entry(m.to_string()).or_default().insert(test.to_string()));
            }
        }
        if tests.is_empty() {
            bail!("{} builds no design", binary.display());
        }
        Ok(Blocks { binary, tests, limit: 10 * started.elapsed() + Duration::from_secs(20) })
    }

    /// The test that fails on the mutant, of those that build its module.
    pub fn test(&self, mutant: &Mutant) -> Option<String> {
        let tests = self.tests.get(&mutant.module)?;
        let mut command = command(&self.binary);
        command.args(["--exact", "--test-threads=1"]).args(tests);
        command.env(MUTANT, &mutant.name).env("HEDDLE_LONG", "1");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
        let failed = first_failure(&mut child, self.limit);
        let _ = child.kill();
        let _ = child.wait();
        failed
    }
}

/// The test that fails first. None if all pass, or if no design had the mutant.
fn first_failure(child: &mut Child, limit: Duration) -> Option<String> {
    let (lines, results) = channel();
    let stdout = BufReader::new(child.stdout.take()?);
    let stderr = BufReader::new(child.stderr.take()?);
    spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let errors = spawn(move || {
        let mut applied = false;
        for line in stderr.lines().map_while(Result::ok) {
            applied |= told(&line).is_some_and(|text| text.ends_with(" is in the design"));
        }
        applied
    });
    let started = Instant::now();
    let failed = loop {
        match results.recv_timeout(limit.saturating_sub(started.elapsed())) {
            Ok(line) => {
                if let Some(test) = line.strip_prefix("test ").and_then(|l| l.strip_suffix(" ... FAILED")) {
                    break Some(test.to_string());
                }
            }
            Err(RecvTimeoutError::Timeout) => break Some("never ends".to_string()),
            Err(RecvTimeoutError::Disconnected) => {
                let passed = child.wait().is_ok_and(|status| status.success());
                break (!passed).then(|| "ends the test process".to_string());
            }
        }
    };
    let _ = child.kill();
    let applied = errors.join().unwrap_or(false);
    failed.filter(|_| applied)
}

fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.stdin(Stdio::null()).env("RUST_BACKTRACE", "0");
    command
}

/// What the test bench says of mutants.
fn told(line: &str) -> Option<&str> {
    line.strip_prefix(MUTANT)?.strip_prefix(": ")
}

/// Builds the tests as `./test` does, so that after it nothing is to be built.
fn build() -> Result<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    if !root.join("Cargo.toml").is_file() {
        bail!("the block tests are built from the source tree, which is not there any more; give --tests");
    }
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["test", "--workspace", "--lib", "--no-run", "--quiet", "--message-format=json"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot run cargo to build the block tests")?;
    let mut messages = String::new();
    child.stdout.take().context("cargo has an output")?.read_to_string(&mut messages)?;
    if !child.wait()?.success() {
        bail!("cargo cannot build the block tests");
    }
    let binary = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).find_map(|message: Value| {
        let ours = message["target"]["name"].as_str()? == CRATE.replace('-', "_");
        let path = message["executable"].as_str()?;
        ours.then(|| PathBuf::from(path))
    });
    binary.with_context(|| format!("cargo built no tests of {CRATE}"))
}

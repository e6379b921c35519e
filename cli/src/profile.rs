//! `heddle run --profile`: what a run did at each instruction, as a file for `heddle predict --auto`.

use crate::interrupt::Interrupt;
use crate::output::ResultFile;
use anyhow::{Context, Error, Result, anyhow};
use heddle_testbench::Program;
use heddle_testbench::machine::{Progress, TraceLine, Watch};
use heddle_testbench::predict::{Issue, Profile, Recording};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file, and what records the profile that it is to have.
pub struct Recorded {
    file: ResultFile,
    recorder: Recorder,
}

impl Recorded {
    /// Refuses a path that cannot be written, before the run.
    pub fn create(path: &Path, program: &Program, lanes: u32, interrupt: &Interrupt) -> Result<Recorded> {
        Ok(Recorded { file: ResultFile::create(path)?, recorder: Recorder::new(program, lanes, interrupt) })
    }

    /// What counts during the run.
    pub fn watch(&self) -> Box<dyn Watch> {
        Box::new(self.recorder.clone())
    }

    pub fn finish(mut self) -> Result<()> {
        let profile = self.recorder.profile()?;
        writeln!(self.file.writer(), "{}", serde_json::to_string(&profile)?).context("cannot write the profile")?;
        self.file.finish()
    }
}

/// Records a profile; clones record the same.
#[derive(Clone)]
pub struct Recorder {
    recording: Arc<Mutex<Option<Recording>>>,
    launch: u32,
    interrupt: Interrupt,
}

impl Recorder {
    pub fn new(program: &Program, lanes: u32, interrupt: &Interrupt) -> Recorder {
        let recording = Arc::new(Mutex::new(Some(Recording::new(program, lanes))));
        Recorder { recording, launch: 1, interrupt: interrupt.clone() }
    }

    /// What was recorded, once.
    pub fn profile(&self) -> Result<Profile> {
        Ok(self.recording().take().context("the profile was taken before")?.profile())
    }

    fn recording(&self) -> MutexGuard<'_, Option<Recording>> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Recorder {
    fn issued(&mut self, TraceLine { cycle, warp, pc, block, threads, replay, .. }: TraceLine) {
        if let Some(recording) = self.recording().as_mut().filter(|_| !replay) {
            recording.issued(Issue { cycle, warp, pc, block }, threads.into_iter().flatten());
        }
    }

    fn wants_trace(&self) -> bool {
        true
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        if std::mem::replace(&mut self.launch, progress.launch) != progress.launch {
            self.recording().iter_mut().for_each(Recording::launched);
        }
        self.interrupt.poll()
    }
}

/// No profile is larger, of whatever program.
const MOST_BYTES: u64 = 256 << 20;

/// The profile in a file.
pub fn read(path: &Path) -> Result<Profile> {
    read_as(path, "`heddle run --profile` writes", |_| Ok(()))
}

/// The profile in a file, of the kind that a command makes, if it passes a check.
pub fn read_as<T: DeserializeOwned>(path: &Path, made: &str, check: impl Fn(&T) -> Result<()>) -> Result<T> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text));
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let parsed = serde_json::from_slice(&text).map_err(Error::from);
    let checked = parsed.and_then(|profile| check(&profile).map(|()| profile));
    checked.map_err(|error| anyhow!("{} is no profile, as {made} them: {error}", path.display()))
}

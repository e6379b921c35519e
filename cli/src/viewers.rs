//! `heddle run --konata` and `--perfetto`: traces for viewers that people have, written while the program runs.

mod konata;
mod owed;
mod perfetto;

use crate::output::ResultFile;
use anyhow::{Context, Result};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::machine::{Cycle, Pipeline, Progress, TraceLine, Watch};
use heddle_testbench::paths::{self, Together};
use konata::Konata;
use perfetto::Perfetto;
use std::io::Write as _;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A format.
trait Viewer: Send {
    /// What comes of a cycle.
    fn cycle(&mut self, pipeline: &Pipeline, out: &mut String);
    /// What comes of the end.
    fn end(&mut self, out: &mut String);
}

/// A trace that is being written, and its file.
pub struct Traced {
    state: Arc<Mutex<State>>,
}

struct State {
    /// None after [`Traced::finish`].
    file: Option<ResultFile>,
    viewer: Box<dyn Viewer>,
    out: String,
    error: Option<anyhow::Error>,
}

/// Bytes that are written at once.
const CHUNK: usize = 1 << 16;

impl Traced {
    /// A log for Konata, of the instructions that are fetched in these cycles.
    pub fn konata(path: &Path, program: &Program, shape: &Shape, cycles: Range<u64>) -> Result<Traced> {
        Traced::create(path, Box::new(Konata::new(program, shape, cycles)))
    }

    /// A trace for Perfetto and Chrome, of what issues in these cycles.
    pub fn perfetto(path: &Path, program: &Program, shape: &Shape, cycles: Range<u64>) -> Result<Traced> {
        Traced::create(path, Box::new(Perfetto::new(program, shape, cycles).context("--perfetto")?))
    }

    fn create(path: &Path, viewer: Box<dyn Viewer>) -> Result<Traced> {
        let state = State { file: Some(ResultFile::create(path)?), viewer, out: String::new(), error: None };
        Ok(Traced { state: Arc::new(Mutex::new(state)) })
    }

    /// What follows the run.
    pub fn watch(&self) -> Box<dyn Watch> {
        Box::new(Follow { state: self.state.clone() })
    }

    /// Completes the file.
    pub fn finish(self) -> Result<()> {
        let mut state = lock(&self.state);
        let State { viewer, out, .. } = &mut *state;
        viewer.end(out);
        state.flush();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        state.file.take().map_or(Ok(()), ResultFile::finish)
    }
}

impl State {
    /// The first error is kept, and nothing is written after it.
    fn flush(&mut self) {
        if let (Some(file), None) = (&mut self.file, &self.error) {
            self.error = file.writer().write_all(self.out.as_bytes()).context("cannot write the trace").err();
        }
        self.out.clear();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Follow {
    state: Arc<Mutex<State>>,
}

impl Watch for Follow {
    fn pipeline(&mut self, pipeline: &Pipeline) {
        let mut state = lock(&self.state);
        let State { viewer, out, .. } = &mut *state;
        viewer.cycle(pipeline, out);
        if out.len() >= CHUNK {
            state.flush();
        }
    }

    fn wants_pipeline(&self) -> bool {
        true
    }

    /// A full disk ends the run.
    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        if lock(&self.state).error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Several that look at one run; each is told what it wants.
#[derive(Default)]
pub struct Watches(Vec<Box<dyn Watch>>);

impl Watches {
    pub fn add(&mut self, watch: Box<dyn Watch>) {
        self.0.push(watch);
    }
}

impl Watch for Watches {
    fn issued(&mut self, line: TraceLine) {
        self.0.iter_mut().filter(|watch| watch.wants_trace()).for_each(|watch| watch.issued(line.clone()));
    }

    fn wants_trace(&self) -> bool {
        self.0.iter().any(|watch| watch.wants_trace())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        self.0.iter_mut().filter(|watch| watch.wants_pipeline()).for_each(|watch| watch.pipeline(pipeline));
    }

    fn wants_pipeline(&self) -> bool {
        self.0.iter().any(|watch| watch.wants_pipeline())
    }

    fn cycle(&mut self, cycle: &Cycle) {
        self.0.iter_mut().filter(|watch| watch.wants_cycles()).for_each(|watch| watch.cycle(cycle));
    }

    fn wants_cycles(&self) -> bool {
        self.0.iter().any(|watch| watch.wants_cycles())
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        // Each is told, whatever the others say.
        let told: Vec<_> = self.0.iter_mut().map(|watch| watch.progress(progress)).collect();
        if told.iter().any(ControlFlow::is_break) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn wants_paths(&self) -> bool {
        self.0.iter().any(|watch| watch.wants_paths())
    }

    fn paths(&mut self, warps: Vec<Vec<paths::Path>>) {
        self.0.iter_mut().filter(|watch| watch.wants_paths()).for_each(|watch| watch.paths(warps.clone()));
    }

    fn together(&mut self, blocks: Vec<Together>) {
        self.0.iter_mut().filter(|watch| watch.wants_paths()).for_each(|watch| watch.together(blocks.clone()));
    }
}

//! A simulation for programs: an engine of choice, failed assertions as errors, and a waveform if one is wanted.

use crate::checks::Checks;
#[cfg(feature = "jit")]
use crate::compiled::{Compiled, OptLevel};
use crate::directory::Directory;
use crate::engine::{Engine, Failure, RunEnd, Saved};
use crate::interpreter::Interpreter;
use crate::lockstep::Mismatch;
use crate::record::Recording;
#[cfg(feature = "wave")]
use crate::wave::{Wave, WaveError};
use heddle_hdl::netlist::{Module, PropertyKind};
use heddle_hdl::order::Loop;
#[cfg(feature = "wave")]
use std::path::PathBuf;
use std::sync::Arc;

/// Which engine runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineKind {
    /// Slow and obviously right.
    Interpreter,
    /// Machine code; takes a moment to compile.
    #[cfg(feature = "jit")]
    Compiled(OptLevel),
}

impl EngineKind {
    /// Every engine: tests hold each against the interpreter.
    #[cfg(feature = "jit")]
    pub const ALL: &[EngineKind] = &{
        let mut all = [EngineKind::Interpreter; 1 + OptLevel::ALL.len()];
        let mut k = 0;
        while k < OptLevel::ALL.len() {
            all[1 + k] = EngineKind::Compiled(OptLevel::ALL[k]);
            k += 1;
        }
        all
    };

    /// Every engine: tests hold each against the interpreter.
    #[cfg(not(feature = "jit"))]
    pub const ALL: &[EngineKind] = &[EngineKind::Interpreter];
}

impl Default for EngineKind {
    /// The fastest: the compiled engine, or the interpreter where that is left out.
    fn default() -> EngineKind {
        #[cfg(feature = "jit")]
        return EngineKind::Compiled(OptLevel::default());
        #[cfg(not(feature = "jit"))]
        return EngineKind::Interpreter;
    }
}

/// What a simulation is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// What computes the cycles.
    pub engine: EngineKind,
    /// Of the random start values; the same seed gives the same run.
    pub seed: u64,
    /// Which properties to look at: the fewer, the faster is the compiled engine. The interpreter looks at all.
    pub checks: Checks,
    /// Write a waveform: `.vcd` or `.fst`.
    #[cfg(feature = "wave")]
    pub wave: Option<PathBuf>,
}

impl Default for Options {
    /// The fastest engine, seed 1, with checks, no waveform.
    fn default() -> Options {
        Options {
            engine: EngineKind::default(),
            seed: 1,
            checks: Checks::All,
            #[cfg(feature = "wave")]
            wave: None,
        }
    }
}

/// Why a simulation cannot begin or go on. One line each.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The design, which was not checked, has a combinational loop.
    #[error("{0}")]
    Loop(#[from] Loop),
    /// The waveform cannot be written.
    #[cfg(feature = "wave")]
    #[error(transparent)]
    Wave(#[from] WaveError),
    /// An assertion or assumption failed at the last edge.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// Two engines in lock-step differ.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// An assertion or assumption that was 0 at a clock edge.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} `{path}` failed in cycle {cycle} (seed {seed})")]
pub struct Failed {
    /// `assertion` or `assumption`.
    pub what: &'static str,
    /// Of the property, from the top.
    pub path: String,
    /// The number of edges before the one where it failed.
    pub cycle: u64,
    /// Of the start values: the run fails again with it.
    pub seed: u64,
}

/// A waveform being written, and whether reset is on, which engines do not tell.
#[cfg(feature = "wave")]
struct Recorder {
    wave: Wave,
    reset: bool,
}

/// A design on an engine, with its failures as errors.
pub struct Simulation {
    engine: Box<dyn Engine>,
    seed: u64,
    #[cfg(feature = "wave")]
    recorder: Option<Recorder>,
    /// How many of the engine's failures have been returned as errors.
    reported: usize,
}

impl Simulation {
    /// A design (a checked netlist) at its start.
    pub fn new(top: &Arc<Module>, options: &Options) -> Result<Simulation, SimulationError> {
        Simulation::recording(top, options, |_| None)
    }

    /// The same for who is going to [record](crate::record), which saves the compiled engine code for edges that do not.
    pub fn recording(
        top: &Arc<Module>,
        options: &Options,
        recording: impl FnOnce(&Directory) -> Option<Arc<Recording>>,
    ) -> Result<Simulation, SimulationError> {
        let directory = Arc::new(Directory::new(top));
        #[cfg(not(feature = "jit"))]
        let _ = recording;
        #[cfg_attr(not(feature = "wave"), allow(unused_mut, reason = "only a waveform asks the engine for something"))]
        let mut engine: Box<dyn Engine> = match options.engine {
            EngineKind::Interpreter => Box::new(Interpreter::new(&directory, options.seed)?),
            #[cfg(feature = "jit")]
            EngineKind::Compiled(level) => {
                let (seed, checks) = (options.seed, options.checks);
                Box::new(Compiled::recording(&directory, seed, level, checks, recording(&directory).as_ref())?)
            }
        };
        #[cfg(feature = "wave")]
        let recorder = match &options.wave {
            Some(path) => {
                engine.show_signals();
                Some(Recorder { wave: Wave::create(path, &directory)?, reset: false })
            }
            None => None,
        };
        Ok(Simulation {
            engine,
            seed: options.seed,
            #[cfg(feature = "wave")]
            recorder,
            reported: 0,
        })
    }

    /// A simulation on an engine made elsewhere, such as [`crate::lockstep::Lockstep`]; it is at its start with `seed`.
    pub fn over(engine: Box<dyn Engine>, seed: u64) -> Simulation {
        Simulation {
            engine,
            seed,
            #[cfg(feature = "wave")]
            recorder: None,
            reported: 0,
        }
    }

    /// What there is in the design, by path and number.
    pub fn directory(&self) -> &Arc<Directory> {
        self.engine.directory()
    }

    /// The engine, for everything that this type does not wrap: pokes, peeks, memories, probes.
    ///
    /// Clock edges made on it directly are not in the waveform, and failures are reported with the next step here.
    pub fn engine(&mut self) -> &mut dyn Engine {
        self.engine.as_mut()
    }

    /// Back to the start with a seed, as [`Engine::start`]; what fails again is an error again. A waveform goes on.
    pub fn start(&mut self, seed: u64) {
        self.engine.start(seed);
        self.seed = seed;
        self.note_reset(false);
        self.reported = 0;
    }

    /// Of the present run's start values.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Turns reset on or off, from the next edge on, in the waveform too.
    pub fn set_reset(&mut self, on: bool) {
        self.note_reset(on);
        self.engine.set_reset(on);
    }

    /// For the waveform.
    fn note_reset(&mut self, on: bool) {
        #[cfg(feature = "wave")]
        if let Some(recorder) = &mut self.recorder {
            recorder.reset = on;
        }
        let _ = on;
    }

    /// One clock edge with reset on; then reset is off.
    pub fn reset(&mut self) -> Result<(), SimulationError> {
        self.set_reset(true);
        let stepped = self.step();
        self.set_reset(false);
        stepped
    }

    /// One clock edge. An assertion that fails at it for the first time is an error; the edge is made all the same.
    pub fn step(&mut self) -> Result<(), SimulationError> {
        #[cfg(feature = "wave")]
        if let Some(recorder) = &mut self.recorder {
            self.engine.settle();
            recorder.wave.sample(self.engine.as_ref(), recorder.reset)?;
        }
        self.engine.step();
        self.check()
    }

    /// Clock edges with the inputs as they are: until the output numbered `stop` is not 0 at an edge (which is still
    /// made), or `max_cycles`.
    pub fn run(&mut self, max_cycles: u64, stop: Option<usize>) -> Result<RunEnd, SimulationError> {
        #[cfg(feature = "wave")]
        if self.recorder.is_some() {
            return self.run_recorded(max_cycles, stop);
        }
        let end = self.engine.run(max_cycles, stop);
        self.check()?;
        Ok(end)
    }

    /// The same edge by edge, as the waveform wants to see each.
    #[cfg(feature = "wave")]
    fn run_recorded(&mut self, max_cycles: u64, stop: Option<usize>) -> Result<RunEnd, SimulationError> {
        for cycles in 1..=max_cycles {
            self.engine.settle();
            let stopped = stop.is_some_and(|output| self.is_on(output));
            self.step()?;
            if stopped {
                return Ok(RunEnd { cycles, why: crate::engine::Why::Stop });
            }
        }
        Ok(RunEnd { cycles: max_cycles, why: crate::engine::Why::Limit })
    }

    /// Whether edges have to be made here, one by one, for a waveform.
    pub fn writes_wave(&self) -> bool {
        #[cfg(feature = "wave")]
        return self.recorder.is_some();
        #[cfg(not(feature = "wave"))]
        return false;
    }

    /// Goes back to what the [engine has saved](Engine::save); what fails again is an error again.
    pub fn restore(&mut self, saved: &Saved) {
        self.engine.restore(saved);
        self.reported = self.engine.failures().len();
    }

    /// Whether an output is not 0.
    #[cfg(feature = "wave")]
    fn is_on(&self, output: usize) -> bool {
        self.engine.peek_u64(output) != 0 || !self.engine.peek(output).is_zero()
    }

    /// Completes the waveform, if there is one. Dropping the simulation does it too, but without telling of errors.
    pub fn finish(self) -> Result<(), SimulationError> {
        #[cfg(feature = "wave")]
        if let Some(recorder) = self.recorder {
            recorder.wave.finish()?;
        }
        Ok(())
    }

    /// After edges that were made on the engine: a difference in lock-step, or a new failure.
    pub fn check(&mut self) -> Result<(), SimulationError> {
        if let Some(mismatch) = self.engine.mismatch() {
            return Err(mismatch.clone().into());
        }
        Ok(self.new_failure()?)
    }

    /// The first failure that has not been returned yet; later ones of the same edge count as returned.
    fn new_failure(&mut self) -> Result<(), Failed> {
        let failures = self.engine.failures();
        let new = failures.get(self.reported).copied();
        self.reported = failures.len();
        match new {
            Some(failure) => Err(self.describe(failure)),
            None => Ok(()),
        }
    }

    fn describe(&self, failure: Failure) -> Failed {
        let directory = self.engine.directory();
        let what = match directory.property_kind(failure.property) {
            PropertyKind::Assume => "assumption",
            _ => "assertion",
        };
        let path = directory.properties[failure.property].path.clone();
        Failed { what, path, cycle: failure.cycle, seed: self.seed }
    }
}

//! The second tier: while a long run goes on with Cranelift's code, the system's C compiler makes better code of the
//! same function in the background.
//!
//! A run that has taken a second looks whether the code is in the cache; one that has taken four has it compiled, one
//! function at a time in this process, at the run's own priority. When it is there, it makes every other batch of cycles
//! for a second, and stays if it was faster. If there is no compiler, or it fails, the run goes on as it is. The state is
//! the same for both, so what is swapped is only the code.

use super::cc::{Compiler, CompilerError, POLL};
use super::jit::Function;
use super::{Plan, Tier};
use crate::directory::Directory;
use crate::flat::Purpose;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When to do what, by the time that cycles have taken.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub look: Duration,
    pub build: Duration,
    pub trial: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times { look: Duration::from_secs(1), build: Duration::from_secs(4), trial: Duration::from_secs(1) }
    }
}

/// The design, how it lies in the state, and the function.
type Job<'a> = (&'a Arc<Directory>, &'a Arc<Plan>, Purpose);

pub struct Tiers {
    /// The function whose code it is about: the first that made a batch.
    of: Option<Purpose>,
    times: Times,
    spent: Duration,
    /// Cycles of a batch.
    batch: u64,
    stage: Stage,
}

enum Stage {
    Waiting,
    /// In the background; it is told when to compile.
    Working {
        thread: JoinHandle<Result<PathBuf, CompilerError>>,
        compile: Option<Sender<()>>,
        stop: Arc<AtomicBool>,
    },
    /// Time and cycles of the first tier, then of the second.
    Trial {
        second: Box<Function>,
        time: [Duration; 2],
        cycles: [u64; 2],
        turn: usize,
    },
    Over(Tier),
}

impl Drop for Tiers {
    fn drop(&mut self) {
        // A process that ends leaves no compiler behind, and nothing half-made in the cache.
        if let Stage::Working { thread, compile, stop } = std::mem::replace(&mut self.stage, Stage::Over(Tier::First)) {
            stop.store(true, Ordering::Relaxed);
            drop(compile);
            // What it found or failed at is of no use any more.
            let _ = thread.join();
        }
    }
}

impl Tiers {
    pub fn new(times: Times) -> Tiers {
        Tiers { of: None, times, spent: Duration::ZERO, batch: 1000, stage: Stage::Waiting }
    }

    /// Begins anew, as the state has another layout.
    pub fn restart(&mut self) {
        *self = Tiers::new(self.times);
    }

    /// Whose code it is.
    pub fn tier(&self) -> Tier {
        match self.stage {
            Stage::Over(tier) => tier,
            _ => Tier::First,
        }
    }

    /// Makes up to `most` edges with `first`, which may be replaced; returns how many.
    pub fn call(&mut self, job: Job, first: &mut Function, state: &mut [u64], most: u64) -> u64 {
        const BATCH: Duration = Duration::from_millis(20);
        if *self.of.get_or_insert(job.2) != job.2 || matches!(self.stage, Stage::Over(_)) {
            return first.call(state, most);
        }
        let (asked, started) = (most.min(self.batch), Instant::now());
        let made = match &mut self.stage {
            Stage::Trial { second, turn: 1, .. } => second.call(state, asked),
            _ => first.call(state, asked),
        };
        let took = started.elapsed();
        if made == self.batch {
            self.batch = if took < BATCH { self.batch * 2 } else { (self.batch / 2).max(1) };
        }
        self.spent += took;
        self.advance(job, first, state.len(), made, took);
        made
    }

    fn advance(&mut self, job: Job, first: &mut Function, state: usize, made: u64, took: Duration) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over(Tier::First));
        self.stage = match stage {
            Stage::Waiting if self.spent >= self.times.look => start(job),
            Stage::Working { thread, .. } if thread.is_finished() => {
                let library = thread.join().expect("what compiles does not panic");
                match library.ok().and_then(|path| Function::load(&path, 8 * state).ok()) {
                    None => Stage::Over(Tier::First),
                    Some(second) => {
                        Stage::Trial { second: Box::new(second), time: [Duration::ZERO; 2], cycles: [0; 2], turn: 0 }
                    }
                }
            }
            Stage::Working { thread, compile, stop } => {
                if self.spent >= self.times.build
                    && let Some(sender) = compile
                {
                    // It may have ended just now, with what it found in the cache.
                    let _ = sender.send(());
                    Stage::Working { thread, compile: None, stop }
                } else {
                    Stage::Working { thread, compile, stop }
                }
            }
            Stage::Trial { second, mut time, mut cycles, turn } => {
                time[turn] += took;
                cycles[turn] += made;
                if time[0] + time[1] < self.times.trial || cycles[1] == 0 {
                    Stage::Trial { second, time, cycles, turn: 1 - turn }
                } else {
                    // Time for a cycle, crosswise.
                    let faster = time[1].as_secs_f64() * cycles[0] as f64 <= time[0].as_secs_f64() * cycles[1] as f64;
                    if faster {
                        *first = *second;
                    }
                    Stage::Over(if faster { Tier::Second } else { Tier::First })
                }
            }
            other => other,
        };
    }
}

fn start((directory, plan, purpose): Job) -> Stage {
    let (sender, receiver) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let (directory, plan, stopped) = (directory.clone(), plan.clone(), stop.clone());
    let thread = std::thread::spawn(move || library((&directory, &plan, purpose), &receiver, &stopped));
    Stage::Working { thread, compile: Some(sender), stop }
}

/// The library of a function, from the cache; or, when that is asked for, compiled.
fn library(
    (directory, plan, purpose): Job,
    compile: &Receiver<()>,
    stop: &AtomicBool,
) -> Result<PathBuf, CompilerError> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let compiler = Compiler::found()?;
    let source = plan.in_c(directory, purpose, compiler.vectors);
    let library = compiler.library(&source);
    if library.exists() {
        return Ok(library);
    }
    // Without a sender nobody waits.
    compile.recv().map_err(|_| CompilerError::Stopped)?;
    loop {
        match ONE_AT_A_TIME.try_lock() {
            Err(TryLockError::WouldBlock) if stop.load(Ordering::Relaxed) => return Err(CompilerError::Stopped),
            Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
            Ok(_turn) => return compiler.compile(&source, stop),
            // Nobody is at it: who was has panicked.
            Err(TryLockError::Poisoned(_)) => ONE_AT_A_TIME.clear_poison(),
        }
    }
}

#[cfg(all(test, feature = "fuzz"))]
mod tests;

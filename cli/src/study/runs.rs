//! Runs of kernels on cores, as many at a time as there are processors.

use crate::interrupt::Interrupt;
use anyhow::{Context, Result};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::kernels::{Device, Kernel};
use heddle_testbench::machine::{Machine, MachineOptions, Progress, Summary, Watch};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// A kernel on a core.
pub struct Run {
    pub kernel: &'static Kernel,
    pub shape: Shape,
}

/// What the cores did, in the order of the runs. Results are checked, and assertions. The first failure ends it all.
pub fn all(runs: &[Run], seed: u64, interrupt: &Interrupt) -> Result<Vec<Summary>> {
    let progress = ProgressBar::new(runs.len() as u64);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} ({elapsed})");
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Summary)>> {
        let mut done = Vec::new();
        let mut worker = Worker { machine: None, seed, interrupt };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(number) else { return Ok(done) };
            progress.set_message(run.kernel.name);
            let summary = worker.run(run).with_context(|| run.kernel.name).inspect_err(|_| {
                // Nobody begins another.
                next.store(runs.len(), Ordering::Relaxed);
            })?;
            progress.inc(1);
            done.push((number, summary));
        }
    };
    let workers = thread::available_parallelism().map_or(1, |n| n.get()).min(runs.len());
    let done: Result<Vec<_>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let join = |worker: ScopedJoinHandle<_>| worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        workers.into_iter().map(join).collect()
    });
    progress.finish_and_clear();
    let mut done: Vec<(usize, Summary)> = done?.into_iter().flatten().collect();
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, summary)| summary).collect())
}

/// Keeps the machine of its last run, which takes longer to build than many a program to run.
struct Worker<'a> {
    machine: Option<Machine>,
    seed: u64,
    interrupt: &'a Interrupt,
}

impl Worker<'_> {
    fn run(&mut self, Run { kernel, shape }: &Run) -> Result<Summary> {
        let program = Program::parse(kernel.elf)?;
        let machine = match self.machine.take().filter(|machine| machine.shape() == shape) {
            Some(mut machine) => {
                machine.load(program)?;
                machine
            }
            None => {
                let options = MachineOptions { seed: self.seed, iss: false, ..MachineOptions::default() };
                let mut machine = Machine::new(shape, program, &options)?;
                machine.watch(Box::new(Poll(self.interrupt.clone())));
                machine
            }
        };
        let machine = self.machine.insert(machine);
        (kernel.drive)(machine, self.seed)?;
        Ok(machine.summary())
    }
}

/// Ends a launch at Ctrl-C.
struct Poll(Interrupt);

impl Watch for Poll {
    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        self.0.poll()
    }
}

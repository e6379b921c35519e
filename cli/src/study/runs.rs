//! Runs of kernels on cores, as many at a time as there are processors.

use crate::interrupt::Interrupt;
use crate::machine_error;
use anyhow::{Context, Result};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{Device, DeviceError, Kernel};
use heddle_testbench::machine::{Machine, MachineError, MachineOptions, Progress, Summary, Watch};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// A kernel on a core.
pub struct Run {
    pub kernel: &'static Kernel,
    pub shape: Shape,
    /// Threads of a block, instead of what the kernel asks for.
    pub block_threads: Option<u32>,
}

/// What the cores did, in the order of the runs. Results are checked, and assertions. The first failure ends it all.
pub fn all(runs: &[Run], seed: u64, interrupt: &Interrupt) -> Result<Vec<Summary>> {
    outcomes(runs, seed, interrupt, |result| result)
}

/// As [`all`], but that a core stops with a fault is a result, too: its message.
pub fn each(runs: &[Run], seed: u64, interrupt: &Interrupt) -> Result<Vec<Result<Summary, String>>> {
    let or_fault = |result: Result<Summary>| match result {
        Ok(summary) => Ok(Ok(summary)),
        Err(error) => match machine_error(&error) {
            Some(fault @ (MachineError::Fault(_) | MachineError::PartWaits { .. })) => Ok(Err(fault.to_string())),
            _ => Err(error),
        },
    };
    outcomes(runs, seed, interrupt, or_fault)
}

/// What a function makes of the result of each run.
fn outcomes<T: Send>(
    runs: &[Run],
    seed: u64,
    interrupt: &Interrupt,
    outcome: impl Fn(Result<Summary>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let progress = ProgressBar::new(runs.len() as u64);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} ({elapsed})");
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, T)>> {
        let mut done = Vec::new();
        let mut worker = Worker { machine: None, seed, interrupt };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(number) else { return Ok(done) };
            progress.set_message(run.kernel.name);
            let done_by_it = outcome(worker.run(run)).with_context(|| run.kernel.name).inspect_err(|_| {
                // Nobody begins another.
                next.store(runs.len(), Ordering::Relaxed);
            })?;
            progress.inc(1);
            done.push((number, done_by_it));
        }
    };
    let workers = thread::available_parallelism().map_or(1, |n| n.get()).min(runs.len());
    let done: Result<Vec<_>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let join = |worker: ScopedJoinHandle<_>| worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        workers.into_iter().map(join).collect()
    });
    progress.finish_and_clear();
    let mut done: Vec<(usize, T)> = done?.into_iter().flatten().collect();
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Keeps the machine of its last run, which takes longer to build than many a program to run.
struct Worker<'a> {
    machine: Option<Machine>,
    seed: u64,
    interrupt: &'a Interrupt,
}

impl Worker<'_> {
    fn run(&mut self, Run { kernel, shape, block_threads }: &Run) -> Result<Summary> {
        let program = Program::parse(kernel.elf)?;
        let mut machine = match self.machine.take().filter(|machine| machine.shape() == shape) {
            Some(mut machine) => {
                machine.load(program)?;
                machine
            }
            None => {
                let options =
                    MachineOptions { seed: self.seed, iss: false, compaction: true, ..MachineOptions::default() };
                let mut machine = Machine::new(shape, program, &options)?;
                machine.watch(Box::new(Poll(self.interrupt.clone())));
                machine
            }
        };
        match *block_threads {
            None => (kernel.drive)(&mut machine, self.seed)?,
            Some(threads) => (kernel.drive)(&mut OtherBlocks { machine: &mut machine, threads }, self.seed)?,
        };
        // One that failed is not used again.
        Ok(self.machine.insert(machine).summary())
    }
}

/// A machine for whose blocks kernels take another size.
struct OtherBlocks<'a> {
    machine: &'a mut Machine,
    threads: u32,
}

impl Device for OtherBlocks<'_> {
    fn program(&self) -> &Program {
        self.machine.program()
    }

    fn shape(&self) -> &Shape {
        Device::shape(self.machine)
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        Device::write(self.machine, address, bytes)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        Device::read(self.machine, address, length)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        Device::launch_grid(self.machine, grid)
    }

    fn preferred_threads(&self, _: u32) -> u32 {
        self.threads
    }
}

/// Ends a launch at Ctrl-C.
struct Poll(Interrupt);

impl Watch for Poll {
    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        self.0.poll()
    }
}

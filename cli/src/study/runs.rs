//! Runs of kernels on cores, as many at a time as there are processors.

use super::draws::Draw;
use super::kept::Kept;
use crate::device_error;
use crate::interrupt::Interrupt;
use crate::profile::Recorder;
use crate::progress::steps;
use anyhow::{Context, Error, Result};
use heddle_check::compaction;
use heddle_check::model::{Mechanism, Model, ModelError};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{Device, DeviceError, Kernel};
use heddle_testbench::machine::{Machine, MachineError, MachineOptions, Progress, Summary, Watch};
use heddle_testbench::predict::Profile;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// What runs a program on a device that has it loaded, with inputs of a seed.
pub type Drive = Arc<dyn Fn(&mut dyn Device, u64) -> Result<()> + Send + Sync>;

/// A program on a core.
#[derive(Clone)]
pub struct Run {
    /// What errors and progress call it. A name has one driver: runs that differ in nothing else are one run.
    pub name: String,
    pub elf: Arc<[u8]>,
    pub drive: Drive,
    pub shape: Shape,
    /// Threads of a block, instead of what the kernel asks for.
    pub block_threads: Option<u32>,
    /// The cycle model with this mechanism runs it, instead of the core.
    pub model: Option<Mechanism>,
    /// Inputs and times of memory, instead of those that the seed gives.
    pub draw: Option<Draw>,
}

/// What the cores did, on machines of these options, in the order of the runs; those that are kept are not run. Results
/// are checked, and assertions. The first failure ends it all.
pub fn all(runs: &[Run], options: &MachineOptions, kept: Option<&Kept>, interrupt: &Interrupt) -> Result<Vec<Summary>> {
    outcomes(runs, options, interrupt, |worker, run| {
        let place = kept.map(|kept| kept.place(run, options)).transpose()?.flatten();
        let (Some(kept), Some(place)) = (kept, place) else { return worker.run(run) };
        // Why a run failed is found by running it.
        if let Some(Ok(summary)) = kept.read(&place) {
            return Ok(summary);
        }
        let summary = worker.run(run)?;
        kept.write(place, run, &Ok(summary))?;
        Ok(summary)
    })
}

/// What each instruction did, on the [usual] machines.
pub fn profiles(runs: &[Run], seed: u64, interrupt: &Interrupt) -> Result<Vec<Profile>> {
    outcomes(runs, &usual(seed), interrupt, |worker, run| worker.profile(run))
}

/// As [`all`], but that a program stops the core or never ends is a result, too, and so are all errors of the model: its
/// message.
pub fn each(
    runs: &[Run],
    options: &MachineOptions,
    kept: Option<&Kept>,
    interrupt: &Interrupt,
) -> Result<Vec<Result<Summary, String>>> {
    let or_fault = |result: Result<Summary>| match result {
        Ok(summary) => Ok(Ok(summary)),
        Err(error) => match (device_error::<MachineError>(&error), device_error::<ModelError>(&error)) {
            (Some(stop), _) if stop.is_of_the_program() => Ok(Err(stop.to_string())),
            (_, Some(error)) => Ok(Err(error.to_string())),
            _ => Err(error),
        },
    };
    outcomes(runs, options, interrupt, |worker, run| {
        let place = kept.map(|kept| kept.place(run, options)).transpose()?.flatten();
        let (Some(kept), Some(place)) = (kept, place) else { return or_fault(worker.run(run)) };
        if let Some(known) = kept.read(&place) {
            return Ok(known);
        }
        let result = or_fault(worker.run(run))?;
        kept.write(place, run, &result)?;
        Ok(result)
    })
}

/// Of studies: results are checked by drivers.
pub fn usual(seed: u64) -> MachineOptions {
    MachineOptions { seed, monitors: vec![compaction::monitor], ..MachineOptions::default() }
}

/// What a function makes of each run, which it is given once where several are the same.
fn outcomes<T: Send + Clone>(
    runs: &[Run],
    options: &MachineOptions,
    interrupt: &Interrupt,
    outcome: impl Fn(&mut Worker, &Run) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let mut different: Vec<&Run> = Vec::new();
    let mut places = Vec::new();
    for run in runs {
        let known = different.iter().position(|other| other.is_same(run));
        places.push(known.unwrap_or(different.len()));
        if known.is_none() {
            different.push(run);
        }
    }
    let made = of_different(&different, options, interrupt, outcome)?;
    Ok(places.into_iter().map(|place| made[place].clone()).collect())
}

/// What a function makes of each run, or the error of the first that fails: the same however threads take turns,
/// since the runs before one that was begun have been begun.
fn of_different<T: Send>(
    runs: &[&Run],
    options: &MachineOptions,
    interrupt: &Interrupt,
    outcome: impl Fn(&mut Worker, &Run) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let progress = steps(runs.len() as u64);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        let mut worker = Worker { machine: None, options, interrupt };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(number) else { return done };
            progress.set_message(run.name.clone());
            let result = outcome(&mut worker, run).with_context(|| run.name.clone());
            if result.is_err() {
                // Nobody begins another.
                next.store(runs.len(), Ordering::Relaxed);
            }
            progress.inc(1);
            done.push((number, result));
        }
    };
    let workers = thread::available_parallelism().map_or(1, |n| n.get()).min(runs.len());
    let mut done: Vec<(usize, Result<T>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let join = |worker: ScopedJoinHandle<_>| worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        workers.into_iter().flat_map(join).collect()
    });
    progress.finish_and_clear();
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

impl Run {
    /// The kernel as it is.
    pub fn new(kernel: &'static Kernel, shape: Shape) -> Run {
        let drive = |device: &mut dyn Device, seed| (kernel.drive)(device, seed).map(drop).map_err(Error::from);
        Run::of(kernel.name.into(), kernel.elf.into(), shape, Arc::new(drive))
    }

    pub fn of(name: String, elf: Arc<[u8]>, shape: Shape, drive: Drive) -> Run {
        Run { name, elf, drive, shape, block_threads: None, model: None, draw: None }
    }

    /// Whether it does the same.
    pub fn is_same(&self, other: &Run) -> bool {
        let of = |run: &Run| (run.block_threads, run.model, run.draw);
        self.name == other.name && of(self) == of(other) && self.shape == other.shape && self.elf == other.elf
    }

    fn program(&self) -> Result<Program> {
        Ok(Program::parse(&self.elf)?)
    }

    fn drive(&self, device: &mut dyn Device, seed: u64) -> Result<()> {
        let seed = self.draw.map_or(seed, |draw| draw.inputs);
        match self.block_threads {
            None => (self.drive)(device, seed),
            Some(threads) => (self.drive)(&mut OtherBlocks { device, threads, also_one: false }, seed),
        }
    }
}

/// Keeps the machine of its last run, which takes longer to build than many a program to run.
struct Worker<'a> {
    machine: Option<Machine>,
    options: &'a MachineOptions,
    interrupt: &'a Interrupt,
}

impl Worker<'_> {
    fn run(&mut self, run: &Run) -> Result<Summary> {
        if let Some(mechanism) = run.model {
            let mut model = Model::new(&run.shape, &run.program()?, mechanism)?;
            run.drive(&mut model, self.options.seed)?;
            return Ok(model.summary());
        }
        let mut machine = self.machine(run)?;
        run.drive(&mut machine, self.options.seed)?;
        // One that failed is not used again.
        Ok(self.machine.insert(machine).summary())
    }

    fn profile(&mut self, run: &Run) -> Result<Profile> {
        let mut machine = self.machine(run)?;
        let recorder = Recorder::new(&run.program()?, run.shape.lanes, self.interrupt);
        machine.watch(Box::new(recorder.clone()));
        run.drive(&mut machine, self.options.seed)?;
        machine.watch(Box::new(Poll(self.interrupt.clone())));
        self.machine = Some(machine);
        recorder.profile()
    }

    /// One that has the program and is as the draw wants it.
    fn machine(&mut self, run @ Run { shape, draw, .. }: &Run) -> Result<Machine> {
        let program = run.program()?;
        let mut machine = match self.machine.take().filter(|machine| machine.shape() == shape) {
            Some(mut machine) => {
                machine.load(program)?;
                machine
            }
            None => {
                let mut machine = Machine::new(shape, program, self.options)?;
                machine.watch(Box::new(Poll(self.interrupt.clone())));
                machine
            }
        };
        if let (Some(draw), Some(timing)) = (draw, shape.simulated_timing()) {
            machine.set_jitter(draw.memory, timing.jitter)?;
        }
        Ok(machine)
    }
}

/// A device for whose blocks kernels take another size.
pub struct OtherBlocks<'a> {
    pub device: &'a mut dyn Device,
    /// Threads of a block.
    pub threads: u32,
    /// Whether a launch of one block of all threads is one of several, too. All of them are resident together, so they
    /// are the threads that they were.
    pub also_one: bool,
}

impl Device for OtherBlocks<'_> {
    fn program(&self) -> &Program {
        self.device.program()
    }

    fn shape(&self) -> &Shape {
        self.device.shape()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(address, bytes)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        self.device.read(address, length)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        let all = self.shape().threads();
        let several = Grid { blocks: all / self.threads, threads: self.threads };
        self.device.launch_grid(if self.also_one && grid == Grid::one_block(all) { several } else { grid })
    }

    fn preferred_threads(&self, _: u32) -> u32 {
        self.threads
    }
}

/// Ends a launch at Ctrl-C.
pub struct Poll(pub Interrupt);

impl Watch for Poll {
    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        self.0.poll()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use heddle_testbench::kernels::find;
    use std::time::Duration;

    /// The second to begin fails first where two processors run them.
    #[test]
    fn of_two_failures_the_first_run_s_is_told() {
        let run = |name: &str| Run { name: name.into(), ..Run::new(find("reduce").unwrap(), Shape::default()) };
        let runs = ["slow", "quick", "last"].map(run);
        let outcome = |_: &mut Worker, run: &Run| -> Result<()> {
            if run.name == "slow" {
                thread::sleep(Duration::from_millis(50));
            }
            bail!("fails")
        };
        let interrupt = Interrupt::default();
        for _ in 0..5 {
            let error = outcomes(&runs, &usual(0), &interrupt, outcome).unwrap_err();
            assert_eq!(format!("{error:#}"), "slow: fails");
        }
    }

    #[test]
    fn the_same_run_is_made_once() {
        let run = || Run::new(find("reduce").unwrap(), Shape::default());
        let draw = |inputs, memory| Run { draw: Some(Draw { inputs, memory }), ..run() };
        let different = [
            run(),
            Run { name: "other".into(), ..run() },
            Run { elf: find("gcd").unwrap().elf.into(), ..run() },
            Run { shape: Shape::new(1, 1), ..run() },
            Run { block_threads: Some(8), ..run() },
            Run { model: Some(Mechanism::Stack), ..run() },
            draw(1, 1),
            draw(2, 1),
            draw(1, 2),
        ];
        let runs: Vec<Run> = different.iter().chain(different.iter().rev()).cloned().collect();
        let made = AtomicUsize::new(0);
        let outcome = |_: &mut Worker, run: &Run| -> Result<usize> {
            made.fetch_add(1, Ordering::Relaxed);
            Ok(different.iter().position(|other| other.is_same(run)).unwrap())
        };
        let of = outcomes(&runs, &usual(0), &Interrupt::default(), outcome).unwrap();
        assert_eq!((made.into_inner(), of), (9, (0..9).chain((0..9).rev()).collect()));
    }
}

//! Kernels on a mutant: with assertions, with their results, and in lock-step with the unchanged core.

use anyhow::{Context, Result};
use heddle_hdl::netlist::Module;
use heddle_sim::Engine;
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::lockstep::Lockstep;
use heddle_sim::simulation::{Options, Simulation};
use heddle_sim::verilator::{Recipe, Verilator};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::kernels::{self, Kernel, KernelError};
use heddle_testbench::machine::{Machine, MachineError, MachineOptions, design};
use std::sync::Arc;

/// The kernels, the cheapest first. Between them they use every instruction and every cause of divergence.
const KERNELS: [&str; 8] = ["vecadd", "gcd", "dispatch", "reduce", "search", "sort", "bitonic", "nqueens"];

/// A launch of a mutant may take so many times the cycles of all launches of the unchanged core, and a few more.
const PATIENCE: u64 = 3;

/// A core of one shape with its workload.
pub struct Bench {
    pub shape: Shape,
    pub design: Arc<Module>,
    directory: Arc<Directory>,
    work: Vec<Work>,
    seed: u64,
}

struct Work {
    kernel: &'static Kernel,
    program: Program,
    max_cycles: u64,
}

impl Bench {
    /// Runs everything on the unchanged core, which must be right.
    pub fn new(shape: &Shape, seed: u64) -> Result<Bench> {
        let design = design(shape)?;
        let directory = Arc::new(Directory::new(&design));
        let mut work = Vec::new();
        for name in KERNELS {
            let kernel = kernels::find(name)?;
            work.push(Work { kernel, program: Program::parse(kernel.elf)?, max_cycles: 0 });
        }
        let options = MachineOptions { seed, ..MachineOptions::default() };
        let mut machine = Machine::with_design(shape, &design, work[0].program.clone(), &options)?;
        for work in &mut work {
            machine.load(work.program.clone())?;
            (work.kernel.drive)(&mut machine, seed).context(work.kernel.name)?;
            work.max_cycles = PATIENCE * machine.simulation().engine().cycle() + 1000;
        }
        Ok(Bench { shape: shape.clone(), design, directory, work, seed })
    }

    /// The names of the kernels.
    pub fn names(&self) -> Vec<String> {
        self.work.iter().map(|work| work.kernel.name.to_string()).collect()
    }

    /// The first assertion of the description that fails, whatever the results are.
    pub fn assertions(&self, mutated: &Arc<Module>) -> Option<String> {
        let simulation = self.simulation(mutated, true);
        self.each(simulation, |machine, work| {
            let _ = (work.kernel.drive)(machine, self.seed);
            let engine = machine.simulation().engine();
            let failure = engine.failures().first()?;
            Some(engine.directory().properties[failure.property].path.clone())
        })
    }

    /// Why the first kernel that is not right is not; the description's assertions are off.
    pub fn run(&self, mutated: &Arc<Module>) -> Option<String> {
        let simulation = self.simulation(mutated, false);
        self.each(simulation, |machine, work| {
            let error = (work.kernel.drive)(machine, self.seed).err()?;
            Some(why(&error).to_string())
        })
    }

    /// The first output or probe that differs from the unchanged core's.
    pub fn lockstep(&self, mutated: &Arc<Module>) -> Option<String> {
        let directory = Arc::new(Directory::new(mutated));
        let mutant = Compiled::unchecked(&directory, self.seed, OptLevel::default()).expect("no loop was found");
        self.differs(Box::new(mutant))
    }

    /// The same with the mutant's Verilog in Verilator.
    pub fn verilog(&self, mutated: &Arc<Module>) -> Result<Option<String>> {
        let recipe = Recipe::default();
        let files = heddle_gen::verilog(mutated, &recipe.verilog());
        let directory = Arc::new(Directory::new(mutated));
        let mutant = Verilator::of_files(&directory, self.seed, recipe, &files)?;
        Ok(self.differs(Box::new(mutant)))
    }

    fn differs(&self, mutant: Box<dyn Engine>) -> Option<String> {
        let original = Compiled::unchecked(&self.directory, self.seed, OptLevel::default()).expect("it has no loop");
        let both = Lockstep::new(Box::new(original), mutant, self.seed);
        self.each(Simulation::over(Box::new(both), self.seed), |machine, work| {
            let _ = (work.kernel.drive)(machine, self.seed);
            let mismatch = machine.simulation().engine().mismatch()?;
            Some(format!("{} in cycle {} of {}", mismatch.path, mismatch.cycle, work.kernel.name))
        })
    }

    fn simulation(&self, mutated: &Arc<Module>, checks: bool) -> Simulation {
        let options = Options { seed: self.seed, checks, ..Options::default() };
        Simulation::new(mutated, &options).expect("no loop was found")
    }

    /// Looks at one kernel after the other on one machine, until there is something to tell.
    fn each(
        &self,
        simulation: Simulation,
        mut look: impl FnMut(&mut Machine, &Work) -> Option<String>,
    ) -> Option<String> {
        let options = MachineOptions { seed: self.seed, ..MachineOptions::default() };
        let mut machine = match Machine::over(&self.shape, simulation, self.work[0].program.clone(), &options) {
            Ok(machine) => machine,
            Err(error) => return Some(error.to_string()),
        };
        self.work.iter().find_map(|work| {
            machine.set_max_cycles(work.max_cycles);
            match machine.load(work.program.clone()) {
                Ok(()) => look(&mut machine, work),
                Err(error) => Some(error.to_string()),
            }
        })
    }
}

/// The kind of failure, in a word or two.
fn why(error: &KernelError) -> &'static str {
    let KernelError::Device(device) = error else { return "wrong result" };
    match device.downcast_ref() {
        Some(MachineError::Fault(_)) => "fault",
        Some(MachineError::Endless { .. }) => "never ends",
        Some(MachineError::ExitCodes(_)) => "exit code",
        _ => "other",
    }
}

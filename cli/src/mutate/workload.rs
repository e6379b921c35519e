//! Programs on a mutant: with assertions, with every instruction compared, and in lock-step with the unchanged core.

use anyhow::{Result, bail};
use heddle_check::checked;
use heddle_check::coverage::directed;
use heddle_check::random::{self, Features};
use heddle_hdl::netlist::Module;
use heddle_sim::Checks;
use heddle_sim::Engine;
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::lockstep::Lockstep;
use heddle_sim::simulation::{Options, Simulation, SimulationError};
use heddle_sim::verilator::{Recipe, Verilator};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::asm::*;
use heddle_testbench::kernels::{self, Kernel, KernelError, LOCKS, WARP};
use heddle_testbench::machine::{Machine, MachineError, MachineOptions, design};
use std::sync::Arc;

/// The kernels. Between them they use every instruction that all cores have, and every cause of divergence. Lock programs
/// and those of warp primitives are beside them where the core has what they need.
const KERNELS: [&str; 8] = ["vecadd", "gcd", "dispatch", "reduce", "search", "sort", "bitonic_small", "nqueens"];

/// How many random programs there are beside them.
const PROGRAMS: u64 = 12;

/// Cycles after which a program that has not ended is broken off, in the unchanged core too. It has been compared until
/// then.
const BUDGET: u64 = 6000;

/// A launch of a program that ends may take so many times the cycles of all its launches on the unchanged core, and a
/// few more.
const SLOWDOWN: u64 = 3;

/// A core of one shape with its workload.
pub struct Bench {
    pub shape: Shape,
    pub design: Arc<Module>,
    directory: Arc<Directory>,
    work: Vec<Work>,
    seed: u64,
}

struct Work {
    name: String,
    program: Program,
    /// None: a random program.
    kernel: Option<&'static Kernel>,
    max_cycles: u64,
    /// What the unchanged core does: it faults, or does not end within the budget.
    expected: Option<String>,
}

impl Bench {
    /// Runs everything on the unchanged core, which must be right.
    pub fn new(shape: &Shape, seed: u64) -> Result<Bench> {
        let design = design(shape)?;
        let directory = Arc::new(Directory::new(&design));
        let mut work = Vec::new();
        let mut add = |name: String, program: Program, kernel: Option<&'static Kernel>| {
            work.push(Work { name, program, kernel, max_cycles: BUDGET, expected: None });
        };
        let usual = KERNELS.iter().map(|name| kernels::find(name)).collect::<Result<Vec<_>, _>>()?;
        let others = LOCKS.iter().chain(WARP).filter(|kernel| kernel.suits(shape));
        for kernel in usual.into_iter().chain(others) {
            let name = kernel.name;
            add(name.into(), Program::parse(kernel.elf)?, Some(kernel));
        }
        for number in 0..PROGRAMS {
            let program = random::program(number).assemble(shape, Features::of(shape)).program();
            add(format!("random program {number}"), program, None);
        }
        for directed in directed::programs(shape).into_iter().filter(|directed| directed.fault.is_none()) {
            add(directed.name.into(), directed.program.program(), None);
        }
        for (number, program) in faults(shape).into_iter().enumerate() {
            add(format!("fault {number}"), program, None);
        }
        let options = MachineOptions { seed, ..checked() };
        let mut machine = Machine::with_design(shape, &design, work[0].program.clone(), &options)?;
        for work in &mut work {
            machine.load(work.program.clone())?;
            machine.set_max_cycles(BUDGET);
            work.expected = work.run(&mut machine, seed);
            match work.expected.as_deref() {
                Some(NEVER_ENDS) => {}
                None | Some(FAULT) => work.max_cycles = SLOWDOWN * machine.simulation().engine().cycle() + 1000,
                Some(why) => bail!("{} on the unchanged core: {why}", work.name),
            }
        }
        work.sort_by_key(|work| work.max_cycles);
        Ok(Bench { shape: shape.clone(), design, directory, work, seed })
    }

    /// The names of the kernels, and how many other programs there are.
    pub fn names(&self) -> String {
        let kernels: Vec<&str> = self.work.iter().filter(|w| w.kernel.is_some()).map(|w| w.name.as_str()).collect();
        let faults = faults(&self.shape).len();
        let directed = self.work.len() - kernels.len() - PROGRAMS as usize - faults;
        format!(
            "{}, {PROGRAMS} random programs, {directed} short ones, {faults} programs that fault",
            kernels.join(", ")
        )
    }

    /// The first assertion of the description that fails, whatever the results are.
    pub fn assertions(&self, mutated: &Arc<Module>) -> Option<String> {
        let simulation = self.simulation(mutated, Checks::Assertions);
        self.each(simulation, false, |machine, work| {
            let _ = work.run(machine, self.seed);
            let engine = machine.simulation().engine();
            let failure = engine.failures().first()?;
            Some(engine.directory().properties[failure.property].path.clone())
        })
    }

    /// Why the first program that is not right is not, its every instruction looked at; the description's assertions
    /// are off.
    pub fn run(&self, mutated: &Arc<Module>) -> Option<String> {
        let simulation = self.simulation(mutated, Checks::None);
        self.each(simulation, true, |machine, work| {
            let got = work.run(machine, self.seed);
            (got != work.expected).then(|| got.unwrap_or("no fault".into()))
        })
    }

    /// The first output or probe that differs from the unchanged core's.
    pub fn lockstep(&self, mutated: &Arc<Module>) -> Option<String> {
        let directory = Arc::new(Directory::new(mutated));
        let mutant = self.unchecked(&directory);
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
        let original = self.unchecked(&self.directory);
        let both = Lockstep::new(Box::new(original), mutant, self.seed);
        self.each(Simulation::over(Box::new(both), self.seed), false, |machine, work| {
            let _ = work.run(machine, self.seed);
            let mismatch = machine.simulation().engine().mismatch()?;
            Some(format!("{} in cycle {} of {}", mismatch.path, mismatch.cycle, work.name))
        })
    }

    fn unchecked(&self, directory: &Arc<Directory>) -> Compiled {
        Compiled::with_checks(directory, self.seed, OptLevel::default(), Checks::None).expect("no loop was found")
    }

    fn simulation(&self, mutated: &Arc<Module>, checks: Checks) -> Simulation {
        let options = Options { seed: self.seed, checks, ..Options::default() };
        Simulation::new(mutated, &options).expect("no loop was found")
    }

    /// Looks at one program after the other on one machine, until there is something to tell. `iss`: the machine
    /// compares every instruction with the instruction-set simulator.
    fn each(
        &self,
        simulation: Simulation,
        iss: bool,
        mut look: impl FnMut(&mut Machine, &Work) -> Option<String>,
    ) -> Option<String> {
        let options = MachineOptions { seed: self.seed, ..if iss { checked() } else { MachineOptions::default() } };
        let mut machine = match Machine::over(&self.shape, simulation, self.work[0].program.clone(), &options) {
            Ok(machine) => machine,
            Err(error) => return Some(at_reset(&error)),
        };
        self.work.iter().find_map(|work| {
            machine.set_max_cycles(work.max_cycles);
            match machine.load(work.program.clone()) {
                Ok(()) => look(&mut machine, work),
                Err(error) => Some(at_reset(&error)),
            }
        })
    }
}

/// What failed before the first instruction.
fn at_reset(error: &MachineError) -> String {
    match error {
        MachineError::Simulation(SimulationError::Failed(failed)) => failed.path.clone(),
        MachineError::Simulation(SimulationError::Mismatch(mismatch)) => format!("{} at reset", mismatch.path),
        _ => error.to_string(),
    }
}

impl Work {
    /// Runs it on a machine that has it loaded. The kind of failure, in a word or two.
    fn run(&self, machine: &mut Machine, seed: u64) -> Option<String> {
        let why = match self.kernel {
            Some(kernel) => match (kernel.drive)(machine, seed).err()? {
                KernelError::Device(device) => device.downcast_ref().map_or("other", kind),
                _ => "wrong result",
            },
            None => kind(&machine.run().err()?),
        };
        Some(why.to_string())
    }
}

/// Programs that fault in all warps but the first, by every kind of instruction that can.
fn faults(shape: &Shape) -> Vec<Program> {
    let last = [
        vec![0],
        vec![EBREAK],
        vec![addi(A7, ZERO, 1), ECALL],
        vec![jalr(RA, 8, 2)],
        vec![jalr(RA, 7, 0)],
        vec![lw(9, 8, 2)],
        vec![lw(9, 7, 0)],
        vec![sw(9, 8, 1)],
        vec![sw(9, 7, 0)],
        vec![sw(9, ZERO, 0)],
    ];
    let program = |last: Vec<u32>| {
        // x7 is outside memory, x8 inside.
        let begin = [csrr(5, MHARTID), addi(6, ZERO, shape.lanes as i32), lui(7, 0xc0000), addi(8, ZERO, 0x400)];
        Asm::default().put(begin).branch(BLT, 5, 6, "end").put(last).label("end").exit().program()
    };
    last.into_iter().map(program).collect()
}

/// The kinds of failure of a launch that is given up, and of one that the core stops.
const NEVER_ENDS: &str = "never ends";
const FAULT: &str = "fault";

fn kind(error: &MachineError) -> &'static str {
    match error {
        MachineError::Commit(_) => "commit stream",
        MachineError::Fault(_) | MachineError::Bus { .. } => FAULT,
        MachineError::Endless { .. } | MachineError::Hangs { .. } => NEVER_ENDS,
        MachineError::ExitCodes { .. } => "exit code",
        MachineError::Memory { .. } => "wrong result",
        _ => "other",
    }
}

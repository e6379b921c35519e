//! `heddle bench batch`: whether several runs of one core are faster in one engine than one after the other.
//!
//! The engine is of a design of our own: copies of the core side by side, as a replicated instance. The copies are then
//! lanes to it, so that one vector has a value in all runs, and what is gated is gated by "any run needs it".

use super::runner::{Launches, MOST, Sample, launch, processor_time};
use crate::engine::Engine as Name;
use crate::output::{print, print_json};
use crate::progress::steps;
use crate::report::si;
use crate::shape::ShapeArgs;
use crate::target::Target;
use anyhow::{Context, Result, ensure};
use clap::Args;
use heddle_hdl::Bits;
use heddle_hdl::netlist::{Connection, Instance, Loc, Module, Node, NodeId, Op, Port};
use heddle_sim::compiled::cc::Compiler;
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::engine::{Engine, Failure, RunEnd, Why};
use heddle_sim::simulation::EngineKind;
use heddle_sim::{Checks, Simulation};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{Device, DeviceError};
use heddle_testbench::machine::{Machine, MachineOptions, design};
use rustix::time::ClockId;
use serde::Serialize;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Cycles per second of several runs of one core, one after the other and side by side in one engine.
///
/// Run n has the inputs of seed n, unless all are to have the same. Side by side, the core is there once for each run,
/// and the engine computes a value of all runs with one vector instruction. Results are checked, and the cycle at which
/// the last run ends. Figures are of processor time, the best of several rounds, and count the cycles of all runs up to
/// the end of each.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle bench batch                                    three kernels, 8 runs, on 8 lanes and 8 warps
  heddle bench batch collatz --runs 16 --lanes 1        16 runs of a core with little but control
  heddle bench batch collatz --same-inputs              8 times the same run: all need the same in every cycle
  heddle bench batch matmul --json | jq '.[].gain'")]
pub struct Batch {
    /// Built-in kernels of one launch
    #[arg(value_name = "KERNEL", default_values = ["mandelbrot", "collatz", "matmul"])]
    kernels: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Runs side by side
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=64))]
    runs: u32,
    /// Give every run the inputs of seed 1, so that in every cycle all need what one needs
    #[arg(long)]
    same_inputs: bool,
    /// Print an array of objects instead of a table
    #[arg(long)]
    json: bool,
    /// Rounds, of which the best counts
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// A kernel's speeds in an engine.
#[derive(Serialize, Debug)]
struct Row {
    lanes: u32,
    warps: u32,
    kernel: String,
    engine: String,
    runs: u32,
    /// All runs have the inputs of seed 1.
    same_inputs: bool,
    /// Of all runs.
    cycles: u64,
    /// One run after the other.
    single_cycles_per_second: f64,
    /// Side by side, of all runs together.
    batch_cycles_per_second: f64,
    /// Of the second to the first.
    gain: f64,
    /// To flatten and compile the design of all runs.
    compile_seconds: f64,
}

impl Batch {
    pub fn run(self) -> Result<()> {
        let targets: Vec<Target> = self.kernels.iter().map(|name| super::kernel(name)).collect::<Result<_>>()?;
        let shape = self.shape.shape()?;
        for target in &targets {
            target.program.check(&shape).with_context(|| target.name.clone())?;
        }
        let levels = [OptLevel::Tables, OptLevel::C].into_iter();
        let levels: Vec<_> = levels.filter(|level| *level != OptLevel::C || Compiler::found().is_ok()).collect();
        let progress = steps((levels.len() * (1 + targets.len())) as u64);
        let mut rows = Vec::new();
        for level in levels {
            progress.set_message(format!("{}: compiling", name(level)));
            let mut bench = Bench::new(&self, &shape, level, &targets[0])?;
            progress.inc(1);
            for target in &targets {
                progress.set_message(format!("{}: {}", name(level), target.name));
                rows.push(bench.row(&self, &shape, target).with_context(|| target.name.clone())?);
                progress.inc(1);
            }
        }
        progress.finish_and_clear();
        if self.json { print_json(&rows) } else { print(&table(&rows)) }
    }
}

fn name(level: OptLevel) -> String {
    Name::from(EngineKind::Compiled(level)).name()
}

/// A core by itself, and as often as there are runs, in engines of one level.
struct Bench {
    level: OptLevel,
    single: Machine,
    all: Rc<RefCell<Compiled>>,
    copies: Vec<Machine>,
    compile: Duration,
}

impl Bench {
    fn new(batch: &Batch, shape: &Shape, level: OptLevel, target: &Target) -> Result<Bench> {
        let design = design(shape)?;
        let directory = Arc::new(Directory::new(&design));
        let options = MachineOptions::default();
        let compiled = |directory: &Arc<Directory>| {
            let engine = Compiled::with_checks(directory, batch.shape.seed, level, Checks::Assertions);
            engine.map_err(|error| anyhow::anyhow!("{error}"))
        };
        let machine = |engine: Box<dyn Engine>| {
            let simulation = Simulation::over(engine, batch.shape.seed);
            Machine::over(shape, simulation, target.program.clone(), &options)
        };
        let single = machine(Box::new(compiled(&directory)?))?;
        let all = compiled(&Arc::new(Directory::new(&side_by_side(&design, batch.runs))))?;
        let report = all.report();
        let all = Rc::new(RefCell::new(all));
        let copy = |number| Copy { all: all.clone(), directory: directory.clone(), number };
        let copies = (0..batch.runs as usize).map(|number| machine(Box::new(copy(number))));
        let copies = copies.collect::<Result<_, _>>()?;
        Ok(Bench { level, single, all, copies, compile: report.flatten + report.compile })
    }

    fn row(&mut self, batch: &Batch, shape: &Shape, target: &Target) -> Result<Row> {
        let seeds = (1..=u64::from(batch.runs)).map(|run| if batch.same_inputs { 1 } else { run });
        let (mut cycles, mut best) = (0, [f64::INFINITY; 2]);
        for _ in 0..batch.rounds {
            let single: Vec<Sample> = seeds.clone().map(|seed| self.single(target, seed)).collect::<Result<_>>()?;
            cycles = single.iter().map(|run| run.cycles).sum();
            let last = single.iter().map(|run| run.cycles).max().expect("there are runs");
            let Sample { cycles: ended, time } = self.side_by_side(target, seeds.clone())?;
            ensure!(ended == last, "alone, the last of the runs ends after {last} cycles, side by side after {ended}");
            let alone: Duration = single.iter().map(|run| run.time).sum();
            best = [best[0].min(alone.as_secs_f64()), best[1].min(time.as_secs_f64())];
        }
        let [alone, together] = best.map(|seconds| cycles as f64 / seconds);
        Ok(Row {
            lanes: shape.lanes,
            warps: shape.warps,
            kernel: target.name.clone(),
            engine: name(self.level),
            runs: batch.runs,
            same_inputs: batch.same_inputs,
            cycles,
            single_cycles_per_second: alone,
            batch_cycles_per_second: together,
            gain: together / alone,
            compile_seconds: self.compile.as_secs_f64(),
        })
    }

    /// Cycles and time of a run by itself.
    fn single(&mut self, target: &Target, seed: u64) -> Result<Sample> {
        self.single.load(target.program.clone())?;
        let (mut launches, mut sample) = (0, Sample::default());
        let launch = |machine: &mut Machine, grid| {
            launches += 1;
            launch(machine, grid, MOST, ClockId::ThreadCPUTime, &mut sample)
        };
        target.drive(&mut Launches { machine: &mut self.single, launch }, seed)?;
        ensure!(launches == 1, "it launches {launches} times: only runs of one launch can be side by side");
        Ok(sample)
    }

    /// Cycles and time until the last of all runs has ended.
    fn side_by_side(&mut self, target: &Target, seeds: impl Iterator<Item = u64> + Clone) -> Result<Sample> {
        self.all.borrow_mut().start(0);
        for (machine, seed) in self.copies.iter_mut().zip(seeds.clone()) {
            machine.load(target.program.clone())?;
            let break_off = |machine: &mut Machine, grid| {
                machine.set_grid(grid)?;
                Err("broken off".into())
            };
            let begun = target.drive(&mut Launches { machine, launch: break_off }, seed);
            ensure!(begun.is_err(), "it ends without a launch");
        }
        self.set_launch(1);
        self.all.borrow_mut().step();
        self.set_launch(0);
        let ended = self.all.borrow().directory().outputs.find(ENDED);
        let started = processor_time();
        let RunEnd { cycles, why } = self.all.borrow_mut().run(MOST, ended);
        let time = processor_time() - started;
        ensure!(why == Why::Stop, "no end in {cycles} cycles: {why:?}");
        self.all.borrow_mut().settle();
        for (machine, seed) in self.copies.iter_mut().zip(seeds) {
            target.drive(&mut After { machine }, seed)?;
        }
        Ok(Sample { cycles, time })
    }

    /// The input that launches, of all copies.
    fn set_launch(&mut self, value: u64) {
        for machine in &mut self.copies {
            let simulation = machine.simulation();
            let launch = simulation.directory().inputs.find("launch").expect("the system has this input");
            simulation.engine().poke_u64(launch, value);
        }
    }
}

/// The output that says that all copies have stopped.
const ENDED: &str = "ended";

/// So many copies of a design as one, whose inputs are those of copy 0, then those of copy 1 and so on. Outputs are those
/// of all copies packed, and at last [`ENDED`].
fn side_by_side(design: &Arc<Module>, copies: u32) -> Arc<Module> {
    let loc: Loc = Location::caller();
    let mut top = Module::empty("batch");
    let push = |nodes: &mut Vec<Node>, op, width, args| {
        nodes.push(Node { op, width, args, name: None, loc });
        NodeId(nodes.len() as u32 - 1)
    };
    let inputs = design.inputs.len();
    for copy in 0..copies {
        for port in &design.inputs {
            let node = push(&mut top.nodes, Op::Input(top.inputs.len() as u32), port.width, Vec::new());
            top.inputs.push(Port { name: format!("{}_{copy}", port.name), width: port.width, node, loc });
        }
    }
    let connect = |(k, port): (usize, &Port)| {
        let args = (0..copies as usize).map(|copy| top.inputs[copy * inputs + k].node).collect();
        Connection::Each(push(&mut top.nodes, Op::Cat, port.width * copies, args))
    };
    let inputs = design.inputs.iter().enumerate().map(connect).collect();
    top.instances.push(Instance { name: "run".into(), module: design.clone(), replicas: Some(copies), inputs, loc });
    for (k, port) in (0..).zip(&design.outputs) {
        let width = port.width * copies;
        let node = push(&mut top.nodes, Op::InstOut { inst: 0, port: k }, width, Vec::new());
        top.outputs.push(Port { name: port.name.clone(), width, node, loc });
    }
    let stopped = top.outputs.iter().find(|port| port.name == "stopped").expect("the system has this output").node;
    let node = push(&mut top.nodes, Op::All, 1, vec![stopped]);
    top.outputs.push(Port { name: ENDED.into(), width: 1, node, loc });
    Arc::new(top)
}

/// One of the copies. Reset, start and steps are those of all.
struct Copy {
    all: Rc<RefCell<Compiled>>,
    /// Of the design that there are copies of.
    directory: Arc<Directory>,
    number: usize,
}

impl Copy {
    fn input(&self, input: usize) -> usize {
        self.number * self.directory.inputs.len() + input
    }

    fn memory(&self, memory: usize) -> usize {
        self.number * self.directory.memories.len() + memory
    }
}

impl Engine for Copy {
    fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Whoever has all copies starts them.
    fn start(&mut self, _: u64) {}

    fn poke(&mut self, input: usize, value: &Bits) {
        self.all.borrow_mut().poke(self.input(input), value);
    }

    fn poke_u64(&mut self, input: usize, value: u64) {
        self.all.borrow_mut().poke_u64(self.input(input), value);
    }

    fn set_reset(&mut self, on: bool) {
        self.all.borrow_mut().set_reset(on);
    }

    fn settle(&mut self) {
        self.all.borrow_mut().settle();
    }

    fn peek(&self, output: usize) -> Bits {
        let width = self.directory.outputs[output].width;
        self.all.borrow().peek(output).extract(self.number as u32 * width, width)
    }

    fn peek_u64(&self, output: usize) -> u64 {
        self.peek(output).low_u64()
    }

    fn probe(&self, _: usize) -> Bits {
        unreachable!("only memories and outputs are looked at")
    }

    fn show_signals(&mut self) -> bool {
        false
    }

    fn signal(&self, _: usize) -> Option<Bits> {
        None
    }

    fn shows_registers(&self) -> bool {
        false
    }

    fn register(&self, _: usize) -> Bits {
        unreachable!("it shows no registers")
    }

    fn read_register(&self, _: usize) -> Bits {
        unreachable!("it shows no registers")
    }

    fn memory_read(&self, memory: usize, address: u64) -> Bits {
        self.all.borrow().memory_read(self.memory(memory), address)
    }

    fn memory_write(&mut self, memory: usize, address: u64, value: &Bits) {
        self.all.borrow_mut().memory_write(self.memory(memory), address, value);
    }

    fn step(&mut self) {
        self.all.borrow_mut().step();
    }

    fn run(&mut self, max_cycles: u64, _: Option<usize>) -> RunEnd {
        self.all.borrow_mut().run(max_cycles, None)
    }

    fn cycle(&self) -> u64 {
        self.all.borrow().cycle()
    }

    fn failures(&self) -> &[Failure] {
        &[]
    }

    fn cover_hits(&self, _: usize) -> u64 {
        0
    }
}

/// A machine after its launch: its driver, which begins anew, finds what the launch left.
struct After<'a> {
    machine: &'a mut Machine,
}

impl Device for After<'_> {
    fn program(&self) -> &Program {
        self.machine.program()
    }

    fn shape(&self) -> &Shape {
        self.machine.shape()
    }

    fn write(&mut self, _: u32, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        self.machine.read(address, length)
    }

    fn launch_grid(&mut self, _: Grid) -> Result<(), DeviceError> {
        Ok(())
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut line = |[kernel, engine, runs, cycles, single, batch, gain, compile]: [&str; 8]| {
        let _ =
            writeln!(text, "{kernel:<12}{engine:<16}{runs:>9}{cycles:>9}{single:>14}{batch:>18}{gain:>8}{compile:>11}");
    };
    line(["kernel", "engine", "runs", "cycles", "one by one/s", "side by side/s", "gain", "compile"]);
    for row in rows {
        line([
            &row.kernel,
            &row.engine,
            &format!("{}{}", row.runs, if row.same_inputs { " alike" } else { "" }),
            &si(row.cycles as f64),
            &si(row.single_cycles_per_second),
            &si(row.batch_cycles_per_second),
            &format!("{:.2}x", row.gain),
            &format!("{:.2} s", row.compile_seconds),
        ]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        batch: Batch,
    }

    /// Results are checked, and cycles compared, in every row.
    #[test]
    fn runs_side_by_side_do_what_each_does_alone() {
        let batch = Line::parse_from("batch collatz --lanes 2 --warps 2 --runs 3 --rounds 1".split(' ')).batch;
        let target = super::super::kernel("collatz").unwrap();
        let shape = batch.shape.shape().unwrap();
        let mut bench = Bench::new(&batch, &shape, OptLevel::Tables, &target).unwrap();
        let row = bench.row(&batch, &shape, &target).unwrap();
        assert!(row.cycles > 0 && row.gain > 0.0);
        let alike = bench.row(&Batch { same_inputs: true, ..batch }, &shape, &target).unwrap();
        let alone = bench.single(&target, 1).unwrap().cycles;
        assert_eq!((alike.cycles, row.cycles == alike.cycles), (3 * alone, false));
        assert_eq!(table(&[row]).lines().count(), 2);
    }

    #[test]
    fn a_kernel_of_several_launches_is_refused() {
        let batch = Line::parse_from("batch bfs --lanes 2 --warps 2 --runs 2 --rounds 1".split(' ')).batch;
        let target = super::super::kernel("bfs").unwrap();
        let shape = batch.shape.shape().unwrap();
        let mut bench = Bench::new(&batch, &shape, OptLevel::Tables, &target).unwrap();
        let error = bench.row(&batch, &shape, &target).unwrap_err().to_string();
        assert!(error.contains("launches") && error.contains("times"), "{error}");
    }
}

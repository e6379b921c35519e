//! The core in the Rust simulation and the core's Verilog in Verilator are one machine, cycle by cycle.
//!
//! A few shapes, one Verilator build each, several kernels and random programs on each; and one operator of the Verilog
//! changed on purpose, which must be found. Beside both, the instruction-set simulator follows every thread.

use heddle_check::checked;
use heddle_check::random::{self, Features};
use heddle_gen::Files;
use heddle_hdl::netlist::Module;
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::lockstep::Lockstep;
use heddle_sim::verilator::{BuildError, Optimise, Recipe, Tool, Verilator};
use heddle_sim::{Engine, Simulation};
use heddle_simt::host::Identity;
use heddle_simt::hosted::over_uart;
use heddle_simt::{
    Backing, Cache, Capt, Compaction, Divergence, History, Metrics, Order, PathScheduler, Replay, Schedule, Scoreboard,
    SecondLevel, Shape, SlaveModel, Timing,
};
use heddle_testbench::Program;
use heddle_testbench::kernels::{self, Device, Kernel, KernelError};
use heddle_testbench::machine::{Machine, MachineOptions, design};
use heddle_testbench::remote::simulated::Pins;
use heddle_testbench::remote::{Board, Patience};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// Random programs on each shape.
const PROGRAMS: u64 = 5;

/// The build takes longer than the run.
const RECIPE: Recipe = Recipe { optimise: Optimise::O1, probes: true, trace: false, threads: 1 };

/// A core in both, or nothing and a note where there is no Verilator.
struct Twin {
    shape: Shape,
    directory: Arc<Directory>,
    files: Files,
    seed: u64,
}

impl Twin {
    fn new(shape: Shape) -> Twin {
        let netlist = design(&shape).unwrap();
        Twin::of(shape, netlist)
    }

    fn of(shape: Shape, netlist: Arc<Module>) -> Twin {
        let seed = u64::from(10 * shape.lanes + shape.warps);
        let files = heddle_gen::verilog(&netlist, &RECIPE.verilog());
        Twin { shape, directory: Arc::new(Directory::new(&netlist)), files, seed }
    }

    fn verilog(&self, recipe: Recipe) -> Option<Verilator> {
        match Verilator::of_files(&self.directory, self.seed, recipe, &self.files) {
            Err(missing @ BuildError::Missing { .. }) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED: lock-step with Verilator: {missing}");
                None
            }
            model => Some(model.unwrap_or_else(|error| panic!("{error}"))),
        }
    }

    /// A machine that is two in lock-step.
    fn machine(&self, kernel: &Kernel) -> Option<Machine> {
        Some(self.machine_with(self.verilog(RECIPE)?, kernel))
    }

    fn machine_with(&self, verilog: Verilator, kernel: &Kernel) -> Machine {
        let options = MachineOptions { seed: self.seed, ..checked() };
        Machine::over(&self.shape, self.both(verilog), program(kernel), &options).unwrap()
    }

    fn both(&self, verilog: Verilator) -> Simulation {
        let rust = Compiled::new(&self.directory, self.seed, OptLevel::default()).unwrap();
        let both = Lockstep::new(Box::new(rust), Box::new(verilog), self.seed);
        Simulation::over(Box::new(both), self.seed)
    }
}

fn program(kernel: &Kernel) -> Program {
    Program::parse(kernel.elf).unwrap()
}

fn kernels(shape: Shape, names: &[&str]) {
    kernels_and_more(shape, names, &[]);
}

/// And with `HEDDLE_LONG` more of them.
fn kernels_and_more(shape: Shape, names: &[&str], more: &[&str]) {
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    if !long && !more.is_empty() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: more kernels in lock-step, which HEDDLE_LONG=1 asks for");
    }
    let names = &[names, if long { more } else { &[] }].concat();
    let twin = Twin::new(shape);
    if let Some(machine) = twin.machine(kernels::find(names[0]).unwrap()) {
        run(&twin, machine, names);
    }
}

/// Kernels and random programs, one after the other.
fn run(twin: &Twin, mut machine: Machine, names: &[&str]) {
    let Shape { lanes, warps, .. } = twin.shape;
    let all: Vec<&Kernel> = names.iter().map(|name| kernels::find(name).unwrap()).collect();
    for kernel in all {
        machine.load(program(kernel)).unwrap();
        let result: Result<_, KernelError> = (kernel.drive)(&mut machine, twin.seed);
        let context = || format!("{} on {lanes} lanes × {warps} warps, seed {}", kernel.name, twin.seed);
        assert!(result.unwrap_or_else(|error| panic!("{}: {error}", context())).checked > 0);
    }
    for seed in 0..PROGRAMS {
        let random = random::program(seed);
        machine.load(random.assemble(&twin.shape, Features::of(&twin.shape)).program()).unwrap();
        let launched = machine.launch_grid(random.grid(&twin.shape));
        launched.unwrap_or_else(|error| panic!("random program {seed} on {lanes} lanes × {warps} warps: {error}"));
    }
    let compared = machine.simulation().engine().lockstep().unwrap().compared();
    let _ = writeln!(
        std::io::stderr(),
        "{lanes} lanes × {warps} warps: {names:?}, {PROGRAMS} random programs, {compared} cycles compared"
    );
}

#[test]
fn one_lane_two_warps() {
    kernels(Shape::new(1, 2), &["gcd"]);
}

#[test]
fn four_lanes_sixteen_warps_with_convergence_barriers() {
    // So many entries are in block RAM.
    let shape = Shape { convergence_barriers: 7, warp_primitives: true, ..Shape::new(4, 16) };
    kernels(Shape { patience: 32, order: Order::Minority, ..shape }, &["gcd"]);
}

#[test]
fn one_lane_one_warp_before_a_second_level() {
    let cache = |size| Cache { size, ways: 2, line: 1, misses: 2 };
    let second_level = Some(SecondLevel { cache: cache(512), latency: 9 });
    let backing = Backing::Model(Timing { latency: 20, jitter: 7, interval: 4, seed: 1 });
    kernels(Shape { cache: Some(cache(64)), second_level, backing, ..Shape::new(1, 1) }, &["gcd"]);
}

#[test]
fn four_lanes_one_warp_on_a_bus() {
    let timing = Timing { latency: 6, jitter: 7, interval: 1, seed: 1 };
    let backing = Backing::Wishbone { width: 64, slave: SlaveModel { timing, error: None } };
    let shape = Shape { backing, fair: true, patience: 16, order: Order::Swap, ..Shape::new(4, 1) };
    kernels(shape, &["search", "spin_lock", "nested_locks"]);
}

#[test]
fn eight_lanes_eight_warps() {
    kernels_and_more(Shape::new(8, 8), &["mandelbrot", "dispatch", "search"], &["nqueens", "sort", "bitonic_small"]);
}

/// With `HEDDLE_LONG=1`.
#[test]
fn sixteen_lanes_four_warps() {
    if std::env::var_os("HEDDLE_LONG").is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: lock-step of 16 lanes × 4 warps, which HEDDLE_LONG=1 asks for");
        return;
    }
    kernels(Shape::new(16, 4), &["collatz", "nqueens", "reduce", "matmul", "histogram"]);
}

#[test]
fn arbiter_four_lanes_two_warps() {
    let shape = Shape { reservations: true, warp_primitives: true, fair: true, patience: 8, ..Shape::new(4, 2) };
    kernels_and_more(shape.with_divergence(Divergence::ARBITER), &["dispatch", "mcs_lock"], &["search", "nqueens"]);
}

#[test]
fn stack_four_lanes_two_warps() {
    let shape = Shape::new(4, 2).with_divergence(Divergence::STACK);
    kernels_and_more(Shape { likely: true, ..shape }, &["raytrace"], &["gcd", "quicksort", "nqueens"]);
}

#[test]
fn dual_path_four_lanes_two_warps() {
    let shape = Shape::new(4, 2).with_divergence(Divergence::DUAL_PATH);
    let shape = Shape { path_scheduler: PathScheduler::Constrained, path_forwarding: true, ..shape };
    kernels_and_more(shape, &["quicksort"], &["gcd", "nqueens"]);
}

#[test]
fn block_stack_four_lanes_four_warps() {
    let shape = Shape::new(4, 4).with_divergence(Divergence::BLOCK_STACK);
    let capt = Capt { entries: 2, history: History::Counter };
    let shape = Shape {
        reservations: true,
        compaction: Compaction::Predict,
        capt,
        likely: true,
        schedule: Schedule::BlockSticky,
        ..shape
    };
    kernels_and_more(shape, &["raytrace"], &["gcd", "quicksort"]);
}

/// Warps that pass control instructions while they are ahead, and are parked.
#[test]
fn block_stack_with_slack() {
    let shape = Shape::new(2, 4).with_divergence(Divergence::BLOCK_STACK);
    kernels(Shape { compaction: Compaction::Predict, slack: 3, ..shape }, &["collatz"]);
}

/// Without a prediction, where the only warp of a block goes on at once.
#[test]
fn block_stack_two_lanes_two_warps() {
    kernels(Shape::new(2, 2).with_divergence(Divergence::BLOCK_STACK), &["if_else"]);
}

/// With `HEDDLE_LONG=1`: ways of compaction, schedules, and options of dual path that no other core here has.
#[test]
fn variants_of_block_stack_and_dual_path() {
    if std::env::var_os("HEDDLE_LONG").is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: lock-step of variants, which HEDDLE_LONG=1 asks for");
        return;
    }
    let blocks = |lanes, warps, compaction, schedule| {
        Shape { compaction, schedule, ..Shape::new(lanes, warps) }.with_divergence(Divergence::BLOCK_STACK)
    };
    let pairs = |path_scheduler| {
        let shape = Shape { path_scheduler, replay: Replay::Serialise, ..Shape::new(4, 2) };
        shape.with_divergence(Divergence::DUAL_PATH)
    };
    let backing = Backing::Model(Timing { latency: 20, jitter: 7, interval: 1, seed: 1 });
    let cache = Some(Cache { size: 256, ways: 2, line: 1, misses: 2 });
    for shape in [
        blocks(4, 4, Compaction::Off, Schedule::BlockAge),
        blocks(2, 4, Compaction::Every, Schedule::BlockRoundRobin),
        blocks(4, 2, Compaction::Always, Schedule::GreedyThenOldest),
        Shape { slack: 4, likely: true, ..blocks(2, 4, Compaction::Predict, Schedule::BlockAge) },
        Shape { unresolved: 2, ..pairs(PathScheduler::SideFirst) },
        Shape { scoreboard: Scoreboard::Exact, alu_latency: 9, ..pairs(PathScheduler::Full) },
        Shape { cache, backing, ..pairs(PathScheduler::ConstrainedMiss) },
    ] {
        kernels(shape, &["quicksort", "gcd"]);
    }
}

/// The top of boards, with host and UART, driven over its pins; a launch is cut off by the host's reset.
#[test]
fn four_lanes_two_warps_with_host_and_uart() {
    const CLOCK_KHZ: u32 = 1000;
    const DIVISOR: u32 = 4;
    let metrics = Metrics::Built;
    let shape = Shape { program: 8 << 10, memory: 32 << 10, stack: 512, metrics, ..Shape::new(4, 2) };
    let top = over_uart(&shape, Identity { clock_khz: CLOCK_KHZ }, DIVISOR).check().unwrap();
    let twin = Twin::of(shape, top.netlist);
    let Some(verilog) = twin.verilog(RECIPE) else { return };
    let line = Pins::new(twin.both(verilog), CLOCK_KHZ, DIVISOR).unwrap();
    let patience = Patience {
        reply: Duration::from_millis(2),
        byte: Duration::from_micros(10 * u64::from(DIVISOR)),
        quiet: Duration::from_micros(200),
        attempts: 2,
        launch: Duration::from_millis(1),
        poll: Duration::from_millis(1),
    };
    let kernel = kernels::find("nqueens").unwrap();
    let mut board = Board::new(line, patience, &twin.shape, program(kernel)).unwrap();
    let error = (kernel.drive)(&mut board, 1).unwrap_err().to_string();
    assert_eq!(error, "the program did not end in 1ms; the core was reset");
    board.set_patience(Patience { launch: Duration::from_secs(100), ..patience });
    assert!((kernel.drive)(&mut board, 1).unwrap().checked > 0);
    assert!(board.summary().unwrap().warp_instructions > 100);
    let simulation = board.client().line().simulation();
    let compared = simulation.engine().lockstep().unwrap().compared();
    let _ = writeln!(std::io::stderr(), "4 lanes × 2 warps with host and UART: nqueens, {compared} cycles compared");
}

/// A small core on every Verilator that is found, and which those are.
#[test]
fn every_verilator() {
    let tools = Tool::found().unwrap();
    if tools.is_empty() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: lock-step with every Verilator: none is installed");
        return;
    }
    let twin = Twin::new(Shape::small(1, 1));
    for tool in tools {
        let _ = writeln!(std::io::stderr(), "lock-step with {tool}");
        let model = Verilator::of_tool(&tool, &twin.directory, twin.seed, RECIPE, &twin.files).unwrap();
        let names = ["vecadd"];
        run(&twin, twin.machine_with(model, kernels::find(names[0]).unwrap()), &names);
    }
}

/// The check is checked: the Verilog's adder subtracts.
#[test]
fn a_changed_operator_is_found() {
    let mut twin = Twin::new(Shape { multiply: false, ..Shape::small(1, 1) });
    let (_, alu) = twin.files.sources.iter_mut().find(|(name, _)| name.starts_with("alu.")).unwrap();
    assert!(alu.contains(" + "), "{alu}");
    *alu = alu.replacen(" + ", " - ", 1);
    let kernel = kernels::find("vecadd").unwrap();
    let Some(mut machine) = twin.machine(kernel) else { return };
    let error = (kernel.drive)(&mut machine, 1).unwrap_err().to_string();
    assert!(error.contains("differs in cycle"), "{error}");

    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutation");
    let traced = twin.verilog(Recipe { trace: true, ..RECIPE }).unwrap();
    let both = machine.simulation().engine().lockstep().unwrap();
    let mismatch = both.mismatch().unwrap().clone();
    assert_ne!(mismatch.left, mismatch.right);
    for wave in both.waveforms(&folder, traced).unwrap() {
        let text = std::fs::read_to_string(&wave).unwrap();
        assert!(text.contains(&format!("#{}", 10 * mismatch.cycle)), "{}", wave.display());
    }
}

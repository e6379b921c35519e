//! Random programs on cores of many shapes: every instruction of every thread, and all of memory at the end, as on the
//! instruction-set simulator.
//!
//! `HEDDLE_PROGRAMS` sets how many programs each shape runs (thousands with `./test --long`), `HEDDLE_SEED` the first
//! seed. A program that fails is made small, printed, and left as an ELF file for `heddle run FILE --check iss`.

use heddle_check::checked;
use heddle_check::random::{DATA, Failing, Features, RandomProgram, search};
use heddle_simt::divergence::Divergence;
use heddle_simt::{
    Backing, BankAddress, Cache, Capt, Coalescing, Compaction, History, Merge, Order, PathScheduler, Replay, Schedule,
    Scoreboard, SecondLevel, Shape, SlaveModel, Timing,
};
use heddle_testbench::disassemble;
use heddle_testbench::grid::Grid;
use heddle_testbench::iss::Iss;
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::{Machine, MachineOptions};
use std::io::Write;
use std::ops::Range;
use std::path::Path;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number of programs, or a seed"))
}

/// Seeds of the programs on a shape and divergence unit, unless the environment says otherwise: few where a cycle takes
/// long, and without that of the longest program.
fn seeds(shape: &Shape) -> Range<u64> {
    let is_set = |variable| std::env::var_os(variable).is_some();
    let few = (shape.lanes == 64 || shape.threads() > 128) && !is_set("HEDDLE_PROGRAMS");
    let first = number("HEDDLE_SEED", u64::from(few));
    first..first + number("HEDDLE_PROGRAMS", if few { 2 } else { 4 })
}

/// Runs one program to its end.
fn check(machine: &mut Machine, program: &RandomProgram, features: Features) -> Result<(), String> {
    let shape = machine.shape().clone();
    machine.load(program.assemble(&shape, features).program()).map_err(|error| error.to_string())?;
    machine.launch_grid(program.grid(&shape)).map_err(|error| error.to_string())?;
    if features.races {
        return Ok(());
    }
    // No thread sees another: memory is as in any other order, with instructions on convergence barriers that do
    // nothing.
    let mut iss = Iss::new(&program.assemble(&shape, features).program(), &shape).unwrap();
    iss.run_grid(program.grid(&shape)).map_err(|error| error.to_string())?;
    let length = (shape.memory - shape.stack * shape.threads() - DATA) as usize;
    let [got, want] = [machine.read(DATA, length), iss.read(DATA, length)].map(|bytes| bytes.unwrap());
    match (0..length).find(|&at| got[at] != want[at]) {
        Some(at) => Err(format!("byte {:#x} is {:#x}, should be {:#x}", DATA as usize + at, got[at], want[at])),
        None => Ok(()),
    }
}

fn explain(shape: &Shape, failing: &Failing, features: Features) -> String {
    let asm = failing.program.assemble(shape, features);
    let program = asm.program();
    let line = |(at, word): (u32, u32)| {
        let symbol = program.nearest_symbol(at).unwrap_or_default();
        format!("{at:#06x} {symbol:<14} {}\n", disassemble(word, at))
    };
    let listing: String = (0..).step_by(4).zip(asm.words()).map(line).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-{}.elf", failing.seed));
    std::fs::write(&file, program.elf()).expect("the test's folder can be written to");
    let options = shape.options();
    let Grid { blocks, threads } = failing.program.grid(shape);
    format!(
        "{options}, seed {}:\n{listing}{}\nheddle run {} --check iss {options} --blocks {blocks} --block-threads {threads}",
        failing.seed,
        failing.message,
        file.display()
    )
}

/// On the path table and every other divergence unit in turn, with `HEDDLE_LONG` on all; and with likely-convergence
/// points where there are such.
fn programs(shape: &Shape) {
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    let turn = (shape.lanes.ilog2() + shape.warps.ilog2()) as usize;
    let chosen = Divergence::ALL.iter().enumerate().filter(|(k, _)| long || *k == 0 || (k + turn).is_multiple_of(2));
    for (_, divergence) in chosen {
        let shape = shape.clone().with_divergence(*divergence);
        programs_on(&shape);
        if divergence.capabilities().likely_points {
            programs_on(&Shape { likely: true, ..shape.clone() });
        }
        if divergence.capabilities().mixes_warps {
            let capt = Capt { entries: 2, history: History::Latest };
            programs_on(&Shape { compaction: Compaction::Predict, capt, likely: true, ..shape });
        }
    }
}

pub fn programs_on(shape: &Shape) {
    programs_with(&mut machine(shape), Features::of(shape));
}

fn machine(shape: &Shape) -> Machine {
    let options = MachineOptions { max_cycles: 2_000_000, ..checked() };
    let nothing = heddle_testbench::asm::Asm::default().exit().program();
    Machine::new(shape, nothing, &options).unwrap()
}

fn programs_with(machine: &mut Machine, features: Features) {
    let shape = machine.shape().clone();
    let name = shape.divergence.name();
    let seeds = seeds(&shape);
    let (mut issued, mut committed, mut most_paths) = (0, 0, 0);
    let failing = search(seeds.clone(), |program| {
        let checked = check(machine, program, features);
        let summary = machine.summary();
        issued += summary.warp_instructions;
        committed += summary.thread_instructions;
        most_paths = most_paths.max(summary.most_paths);
        checked
    });
    if let Some(failing) = failing {
        panic!("{name}, {}", explain(&shape, &failing, features));
    }
    let efficiency = 100.0 * committed as f64 / (issued * u64::from(shape.lanes)) as f64;
    let _ = writeln!(
        std::io::stderr(),
        "{name}, {} lanes × {} warps: programs {seeds:?}, {committed} thread instructions, \
         SIMT efficiency {efficiency:.0} %, at most {most_paths} paths in a warp",
        shape.lanes,
        shape.warps
    );
}

macro_rules! shapes {
    ($($name:ident: $shape:expr;)*) => {
        $(#[test] fn $name() { programs(&$shape); })*
    };
}

/// The same core with memory of another kind.
fn with(shape: Shape, coalescing: Coalescing, replay: Replay, backing: Backing) -> Shape {
    Shape { coalescing, replay, backing, ..shape }
}

/// The same core with another schedule.
fn scheduled(shape: Shape, schedule: Schedule) -> Shape {
    Shape { schedule, ..shape }
}

/// The same core with `lr.w` and `sc.w`.
fn reserving(shape: Shape) -> Shape {
    Shape { reservations: true, ..shape }
}

/// A memory that answers late and out of order.
const LATE: Backing = Backing::Model(Timing { latency: 20, jitter: 31, interval: 2, seed: 1 });

/// The same behind a second level so small that lines are replaced all the time.
fn second(shape: Shape) -> Shape {
    let cache = Cache { size: 64 * shape.lanes, ways: 4, line: 1, misses: 2 };
    let second_level = Some(SecondLevel { cache, latency: 7 });
    Shape { second_level, backing: LATE, ..shape }
}

/// Memory on a bus, with half a line of 4 lanes in a beat.
const BUS: Backing = {
    let timing = Timing { latency: 6, jitter: 7, interval: 1, seed: 1 };
    Backing::Wishbone { width: 64, slave: SlaveModel { timing, error: None } }
};

/// Every way in which the warps of a block wait for each other, with memory that answers late, so that writes are under
/// way; a core of 1024 threads with one of them, unless `HEDDLE_LONG` asks for all.
#[test]
fn compactions() {
    let blocks =
        |lanes, warps| Shape { backing: LATE, ..Shape::new(lanes, warps) }.with_divergence(Divergence::BLOCK_STACK);
    let capt = |compaction| match compaction {
        Compaction::Predict => Capt { entries: 2, history: History::Sticky },
        _ => Capt::DEFAULT,
    };
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    for &(_, compaction) in Compaction::ALL {
        let with = |shape: Shape| Shape { compaction, capt: capt(compaction), ..shape };
        programs_on(&with(blocks(4, 4)));
        programs_on(&Shape { likely: true, ..with(blocks(8, 2)) });
        if long || compaction == Compaction::SkipUniform {
            programs_on(&with(blocks(32, 32)));
        }
    }
    for (lanes, warps, slack, likely) in [(4, 4, 2, false), (8, 2, 4, true), (2, 16, 3, false)] {
        let capt = Capt { entries: 2, history: History::Latest };
        programs_on(&Shape { compaction: Compaction::Predict, capt, slack, likely, ..blocks(lanes, warps) });
    }
}

/// Every schedule of blocks, before the same memory.
#[test]
fn block_schedules() {
    for schedule in [Schedule::BlockAge, Schedule::BlockRoundRobin, Schedule::BlockSticky] {
        for (lanes, warps, compaction, slack) in [
            (4, 4, Compaction::SkipUniform, 1),
            (2, 8, Compaction::Every, 1),
            (8, 2, Compaction::Off, 1),
            (4, 8, Compaction::Predict, 3),
            (1, 4, Compaction::Always, 1),
        ] {
            let shape = Shape { compaction, slack, backing: LATE, ..Shape::new(lanes, warps) };
            programs_on(&scheduled(shape, schedule).with_divergence(Divergence::BLOCK_STACK));
        }
    }
}

/// What the dual path alone has: paths that diverge at accesses to memory, one path considered at a time, paths
/// forwarded.
#[test]
fn dual_path_options() {
    let (full, constrained) = (PathScheduler::Full, PathScheduler::Constrained);
    for (lanes, warps, path_scheduler, replay, path_forwarding) in [
        (2, 1, constrained, Replay::Split, false),
        (4, 4, full, Replay::Split, false),
        (16, 2, constrained, Replay::Split, true),
        (4, 1, full, Replay::Serialise, true),
        (8, 4, full, Replay::Split, true),
        (32, 2, constrained, Replay::Serialise, true),
    ] {
        let shape = Shape { backing: LATE, ..Shape::new(lanes, warps) }.with_divergence(Divergence::DUAL_PATH);
        programs_on(&Shape { path_scheduler, replay, path_forwarding, ..shape });
    }
}

/// A scoreboard that knows threads, with loads of one register under way on one side for different threads; the side that
/// stands for its warp; a path that is considered until a load misses; branches of both paths under way; ALUs that take
/// long.
#[test]
fn dual_path_studies() {
    let cache = Some(Cache { size: 1 << 10, ways: 1, line: 2, misses: 2 });
    for (lanes, warps, path_scheduler, scoreboard, alu_latency) in [
        (1, 1, PathScheduler::SideFirst, Scoreboard::Exact, 6),
        (4, 1, PathScheduler::ConstrainedMiss, Scoreboard::Exact, 20),
        (8, 4, PathScheduler::SideFirst, Scoreboard::Exact, 7),
        (16, 2, PathScheduler::ConstrainedMiss, Scoreboard::Shadows, 12),
        (64, 1, PathScheduler::Full, Scoreboard::Exact, 6),
    ] {
        let shape = Shape { backing: LATE, cache, ..Shape::new(lanes, warps) }.with_divergence(Divergence::DUAL_PATH);
        let shape = Shape { path_scheduler, scoreboard, alu_latency, ..shape };
        programs_on(&Shape { unresolved: 2, ..shape.clone() });
        programs_on(&Shape { path_forwarding: true, coalescing: Coalescing::Full, loads: 32, ..shape });
    }
}

/// Instructions on convergence barriers anywhere, on cores that have some of the barriers, and on all units.
#[test]
fn convergence_barriers() {
    let with =
        |lanes, warps, convergence_barriers| Shape { convergence_barriers, patience: 32, ..Shape::new(lanes, warps) };
    for shape in [
        with(1, 4, 2),
        with(2, 2, 1),
        Shape { barriers: false, ..with(4, 1, 3) },
        Shape { backing: LATE, ..with(4, 8, 16) },
        Shape { replay: Replay::Serialise, ..with(8, 2, 5) },
        with(16, 4, 2),
        with(64, 1, 3),
        Shape { replay: Replay::Serialise, merge: Merge::Barriers, ..with(8, 4, 4) },
    ] {
        let mut machine = machine(&shape);
        programs_with(&mut machine, Features::of(&shape));
        programs_with(&mut machine, Features { races: false, ..Features::of(&shape) });
    }
    for divergence in Divergence::ALL {
        let shape = Shape::new(4, 4).with_divergence(*divergence);
        programs_with(&mut machine(&shape), Features { hints: true, ..Features::of(&shape) });
    }
}

/// Paths that give way to each other, in turns as short as can be and in usual ones.
#[test]
fn fair() {
    let with = |lanes, warps, patience| Shape { fair: true, patience, ..Shape::new(lanes, warps) };
    for shape in [
        with(1, 4, 2),
        with(2, 2, 2),
        Shape { barriers: false, ..with(4, 1, 4) },
        Shape { backing: LATE, reservations: true, ..with(4, 4, 8) },
        Shape { schedule: Schedule::Sticky, ..with(8, 2, 64) },
        Shape { replay: Replay::Serialise, ..with(16, 4, 2) },
        with(64, 1, 16),
    ] {
        for divergence in [Divergence::PATH_TABLE, Divergence::ARBITER] {
            programs_on(&Shape { divergence, ..shape.clone() });
        }
        let barriers = Shape { convergence_barriers: 3, ..shape.clone() };
        programs_with(&mut machine(&barriers), Features { races: false, ..Features::of(&barriers) });
    }
}

/// Votes, shuffles and `sync` where threads can be kept waiting, with hints at the same barriers, in every order.
#[test]
fn warp_primitives_with_convergence_barriers() {
    for (lanes, warps, barriers) in [(1, 2, 1), (2, 2, 2), (4, 4, 1), (8, 2, 16), (32, 1, 2), (64, 1, 3)] {
        for &(_, order) in Order::ALL {
            if order != Order::DepthPc && lanes != 4 && lanes != 8 {
                continue;
            }
            let fair = order.takes_turns() || lanes == 8;
            let shape = Shape {
                warp_primitives: true,
                convergence_barriers: barriers,
                patience: 64,
                order,
                fair,
                ..Shape::new(lanes, warps)
            };
            programs_on(&shape);
            let races = |races| Features { races, ..Features::of(&shape) };
            programs_with(&mut machine(&shape), races(false));
        }
        let shape = Shape { warp_primitives: true, convergence_barriers: barriers, ..Shape::new(lanes, warps) };
        programs_on(&Shape { merge: Merge::Barriers, replay: Replay::Serialise, ..shape });
    }
}

/// Every order of traversal, with and without convergence barriers.
#[test]
fn orders() {
    for (k, (_, order)) in Order::ALL.iter().enumerate().skip(1) {
        let with = |lanes, warps| {
            let fair = order.takes_turns();
            Shape { order: *order, fair, patience: 32, ..Shape::new(lanes, warps) }
        };
        let merge = if k % 2 == 0 { Merge::Barriers } else { Merge::Pc };
        for shape in [
            with(1, 2),
            with(2, 2),
            Shape { barriers: false, ..with(4, 1) },
            Shape { backing: LATE, fair: true, reservations: true, ..with(8, 4) },
            with(64, 1),
        ] {
            programs_on(&shape);
        }
        for shape in [
            Shape { convergence_barriers: 2, ..with(4, 2) },
            Shape { convergence_barriers: 5, replay: Replay::Serialise, merge, ..with(16, 2) },
        ] {
            programs_with(&mut machine(&shape), Features { races: false, ..Features::of(&shape) });
        }
    }
}

shapes! {
    lanes_1_warps_1: Shape::new(1, 1);
    lanes_1_warps_4: reserving(with(Shape::new(1, 4), Coalescing::Full, Replay::Serialise, Backing::OnChip));
    lanes_2_warps_1: with(Shape { requests: 2, reservations: true, ..Shape::new(2, 1) }, Coalescing::Aligned, Replay::Serialise, LATE);
    lanes_1_warps_2_second_level: second(Shape::new(1, 2));
    lanes_2_warps_2_second_level: reserving(second(Shape { cache: Some(Cache { size: 128, ways: 2, line: 2, misses: 2 }), ..Shape::new(2, 2) }));
    lanes_64_warps_1_second_level: second(Shape { replay: Replay::Serialise, ..Shape::new(64, 1) });
    lanes_2_warps_4_voting: Shape { warp_primitives: true, ..Shape::new(2, 4) };
    lanes_2_warps_8: with(scheduled(Shape::new(2, 8), Schedule::GreedyThenOldest), Coalescing::Full, Replay::Split, Backing::OnChip);
    lanes_4_warps_1: Shape::small(4, 1);
    lanes_4_warps_2: scheduled(Shape { loads: 2, ..Shape::new(4, 2) }, Schedule::Sticky);
    lanes_4_warps_4: reserving(with(Shape::new(4, 4), Coalescing::Full, Replay::Serialise, BUS));
    lanes_8_warps_2: Shape { buffer: 8, reservations: true, backing: LATE, ..Shape::new(8, 2) };
    lanes_8_warps_4_voting: with(Shape { warp_primitives: true, ..Shape::new(8, 4) }, Coalescing::Aligned, Replay::Serialise, LATE);
    lanes_8_warps_8: with(scheduled(Shape::new(8, 8), Schedule::Sticky), Coalescing::Aligned, Replay::Split, LATE);
    lanes_16_warps_4: Shape { reservations: true, bank_address: BankAddress::PerLane, ..Shape::new(16, 4) };
    lanes_16_warps_2_small: reserving(Shape { atomics: true, ..Shape::small(16, 2) });
    lanes_32_warps_1: Shape::new(32, 1);
    lanes_32_warps_2: with(scheduled(Shape::new(32, 2), Schedule::GreedyThenOldest), Coalescing::Full, Replay::Serialise, Backing::OnChip);
    lanes_64_warps_1_small: Shape { backing: LATE, ..Shape::small(64, 1) };
    lanes_64_warps_1_voting: Shape { warp_primitives: true, ..Shape::new(64, 1) };
    lanes_64_warps_2: reserving(with(Shape::new(64, 2), Coalescing::Aligned, Replay::Serialise, Backing::OnChip));
    lanes_4_warps_64: Shape::new(4, 64);
}

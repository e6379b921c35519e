//! Kernels are right, instruction by instruction, whatever is behind the memory port.

use heddle_check::checked;
use heddle_simt::{Backing, Cache, Coalescing, Replay, SecondLevel, Shape, SlaveModel, Timing};
use heddle_testbench::Program;
use heddle_testbench::kernels::find;
use heddle_testbench::machine::{Machine, MachineOptions, Summary};

fn run(shape: &Shape, kernels: &[&str], seed: u64) -> Summary {
    let kernels: Vec<_> = kernels.iter().map(|name| find(name).unwrap()).collect();
    let options = MachineOptions { seed, ..checked() };
    let mut machine = Machine::new(shape, Program::parse(kernels[0].elf).unwrap(), &options).unwrap();
    for kernel in &kernels {
        machine.load(Program::parse(kernel.elf).unwrap()).unwrap();
        (kernel.drive)(&mut machine, seed).unwrap_or_else(|e| panic!("{} on {shape:?}, seed {seed}: {e}", kernel.name));
    }
    machine.summary()
}

/// With all that kernels need.
fn shape(lanes: u32, warps: u32) -> Shape {
    Shape { scratchpad: 16 << 10, atomics: true, ..Shape::new(lanes, warps) }
}

fn model(latency: u32, jitter: u32, interval: u32) -> Backing {
    Backing::Model(Timing { latency, jitter, interval, seed: 11 })
}

fn bus(width: u32, latency: u32, jitter: u32, interval: u32) -> Backing {
    let timing = Timing { latency, jitter, interval, seed: 11 };
    Backing::Wishbone { width, slave: SlaveModel { timing, error: None } }
}

/// Responses late and out of order, with and without a cache, that is small enough to replace lines all the time.
#[test]
fn kernels_are_right_behind_every_memory() {
    let small = |lanes: u32| Some(Cache { size: 64 * lanes, ways: 2, line: 2, misses: 4 });
    for (k, (lanes, warps, cache, backing)) in [
        (4, 2, None, model(9, 15, 2)),
        (4, 4, small(4), model(20, 31, 1)),
        (8, 8, small(8), Backing::OnChip),
        (1, 1, small(1), model(3, 0, 1)),
        (16, 2, Some(Cache { size: 1024, ways: 1, line: 1, misses: 1 }), model(1, 1, 3)),
        (1, 2, None, bus(32, 1, 0, 1)),
        (4, 4, None, bus(64, 5, 7, 2)),
        (8, 4, small(8), bus(256, 9, 15, 1)),
    ]
    .into_iter()
    .enumerate()
    {
        let ways = [(Coalescing::Aligned, Replay::Split), (Coalescing::Full, Replay::Serialise)];
        let long = std::env::var_os("HEDDLE_LONG").is_some();
        for (_, (coalescing, replay)) in ways.into_iter().enumerate().filter(|(way, _)| long || (way + k) % 2 == 0) {
            let shape = Shape { cache, backing, coalescing, replay, ..shape(lanes, warps) };
            let summary = run(&shape, &["vecadd", "histogram"], k as u64);
            assert!(summary.cache.is_none_or(|c| c.misses > 0 && c.silent_misses + c.silent_hits > 0), "{summary:?}");
        }
    }
}

fn second_level(size: u32, ways: u32, misses: u32, latency: u32) -> Option<SecondLevel> {
    Some(SecondLevel { cache: Cache { size, ways, line: 1, misses }, latency })
}

/// The same before a second level, with and without a first.
#[test]
fn kernels_are_right_before_a_second_level() {
    let first = |lanes: u32| Some(Cache { size: 64 * lanes, ways: 2, line: 2, misses: 4 });
    for (k, (lanes, warps, cache, second_level, backing)) in [
        (4, 2, None, second_level(1024, 4, 4, 3), model(9, 15, 2)),
        (1, 1, first(1), second_level(512, 8, 1, 9), model(30, 0, 4)),
        (8, 8, first(8), second_level(8 << 10, 16, 16, 20), model(50, 31, 1)),
        (64, 1, None, second_level(16 << 10, 4, 2, 5), model(20, 0, 8)),
    ]
    .into_iter()
    .enumerate()
    {
        for (coalescing, replay) in [(Coalescing::Aligned, Replay::Split), (Coalescing::Full, Replay::Serialise)] {
            let shape = Shape { cache, second_level, backing, coalescing, replay, ..shape(lanes, warps) };
            let found = run(&shape, &["histogram", "vecadd"], k as u64).second_level.unwrap();
            assert!(found.found.misses > 0 && found.write_backs > 0 && found.channel > 0, "{found:?}");
        }
    }
}

/// What the first level lacks and the second has does not take a slow channel: one of a line in 64 cycles is taken all
/// the time without a second level, and for what comes in once with it.
#[test]
fn a_second_level_spares_the_channel() {
    let first = Some(Cache { size: 1 << 10, ways: 4, line: 1, misses: 8 });
    let one = Shape { cache: first, backing: model(100, 0, 64), ..shape(8, 8) };
    let without = run(&one, &["spmv"], 1);
    let two = run(&Shape { second_level: second_level(128 << 10, 8, 16, 20), ..one }, &["spmv"], 1);
    assert!(two.cycles * 2 < without.cycles, "{} and {} cycles", two.cycles, without.cycles);
    let found = two.second_level.unwrap();
    assert!(found.found.hits > found.found.misses, "{found:?}");
    assert!(without.second_level.is_none());
}

/// What the host writes between launches is seen, though lines of it were in the cache.
#[test]
fn a_launch_begins_with_an_empty_cache() {
    let cache = Some(Cache { size: 64 << 10, ways: 4, line: 4, misses: 8 });
    let shape = Shape { cache, ..shape(4, 2) };
    let kernel = find("vecadd").unwrap();
    let program = Program::parse(kernel.elf).unwrap();
    let mut machine = Machine::new(&shape, program, &checked()).unwrap();
    for seed in [3, 4] {
        (kernel.drive)(&mut machine, seed).unwrap_or_else(|e| panic!("vecadd, seed {seed}: {e}"));
    }
}

/// One machine serves many draws: it takes the cycles of a machine that is built so.
#[test]
fn the_host_sets_seed_and_jitter() {
    let timing = |jitter, seed| Timing { latency: 20, jitter, interval: 1, seed };
    let on_chip: fn(Timing) -> Backing = Backing::Model;
    let on_a_bus = |timing| Backing::Wishbone { width: 64, slave: SlaveModel { timing, error: None } };
    let kernel = find("vecadd").unwrap();
    for backing in [on_chip, on_a_bus] {
        let machine = |jitter, seed| {
            let shape = Shape { backing: backing(timing(jitter, seed)), ..shape(4, 2) };
            let options = MachineOptions::default();
            Machine::new(&shape, Program::parse(kernel.elf).unwrap(), &options).unwrap()
        };
        let cycles = |machine: &mut Machine, set: Option<(u32, u32)>| {
            machine.load(Program::parse(kernel.elf).unwrap()).unwrap();
            if let Some((jitter, seed)) = set {
                machine.set_jitter(seed, jitter).unwrap();
            }
            (kernel.drive)(machine, 1).unwrap();
            machine.summary().cycles
        };
        let mut one = machine(31, 1);
        let seventh = cycles(&mut machine(31, 7), None);
        assert_eq!(cycles(&mut one, Some((31, 7))), seventh);
        assert_ne!(cycles(&mut one, None), seventh, "a load brings back what was built");
        assert_eq!(cycles(&mut one, Some((7, 5))), cycles(&mut machine(7, 5), None));
        assert_eq!(cycles(&mut one, Some((0, 5))), cycles(&mut machine(0, 5), None));
        let error = |machine: &mut Machine, jitter| machine.set_jitter(1, jitter).unwrap_err().to_string();
        assert_eq!(error(&mut one, 63), "a jitter of 63 cycles: the memory that was built has 31 at most");
        assert_eq!(error(&mut one, 2), "model.jitter = 2: must be 0, 1, 3, 7 … 1023: a power of two less 1");
        let mut without = machine(0, 1);
        without.set_jitter(1, 0).unwrap();
        assert_eq!(error(&mut without, 1), "a jitter of 1 cycles: the memory that was built has 0 at most");
    }
}

/// A cache hides most of a slow memory's latency from a kernel that uses its data again.
#[test]
fn a_cache_pays() {
    let shape = Shape { backing: model(100, 0, 1), ..shape(8, 8) };
    let without = run(&shape, &["spmv"], 1).cycles;
    let cache = Some(Cache { size: 4096, ways: 4, line: 2, misses: 4 });
    let with = run(&Shape { cache, ..shape }, &["spmv"], 1);
    assert!(with.cycles * 2 < without, "{} and {without} cycles", with.cycles);
    let found = with.cache.unwrap();
    assert!(found.hits > found.misses, "{found:?}");
}

/// Loads or stores of one beat of a variable are refused, with and without a cache: the launch ends with the address.
#[test]
fn an_error_on_the_bus_ends_the_launch_and_is_told() {
    let kernel = find("vecadd").unwrap();
    let program = Program::parse(kernel.elf).unwrap();
    for (variable, cache) in
        [("a", None), ("sum", None), ("a", Some(Cache { size: 1024, ways: 2, line: 2, misses: 4 }))]
    {
        let address = program.symbol(variable).unwrap().address;
        let timing = Timing { latency: 7, jitter: 3, interval: 1, seed: 1 };
        let backing = Backing::Wishbone { width: 64, slave: SlaveModel { timing, error: Some(address + 40) } };
        let shape = Shape { backing, cache, ..shape(4, 2) };
        let mut machine = Machine::new(&shape, program.clone(), &checked()).unwrap();
        let error = (kernel.drive)(&mut machine, 1).unwrap_err().to_string();
        let refused = (address + 40) & !7;
        let wanted = format!("bus error: the memory on the bus refused the access to {refused:#010x}");
        assert!(error.ends_with(&wanted), "{error}, should be {wanted}");
        // After a reset, all is as before.
        machine.load(program.clone()).unwrap();
        assert!((kernel.drive)(&mut machine, 1).unwrap_err().to_string().ends_with(&wanted));
    }
}

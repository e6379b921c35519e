//! What becomes of threads that wait for others: of their warp, by divergence unit; of other warps, by schedule.

use heddle_check::checked;
use heddle_sim::Checks;
use heddle_simt::isa::Atomic;
use heddle_simt::{
    Backing, Cache, Coalescing, Compaction, Divergence, PathScheduler, Schedule, Scoreboard, Shape, Timing,
};
use heddle_testbench::asm::*;
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::{Machine, MachineError, MachineOptions};
use std::io::Write;

fn machine(shape: &Shape, program: &Asm) -> Machine {
    let options = MachineOptions { max_cycles: 20_000, ..checked() };
    Machine::new(shape, program.program(), &options).unwrap()
}

fn reconverging() -> impl Iterator<Item = Divergence> {
    Divergence::ALL.iter().copied().filter(|divergence| divergence.capabilities().reconverges)
}

/// Address of a lock, and behind it of a count of those who had it.
const LOCK: i32 = 0x400;

/// x7 = 0 if the thread has got the lock.
fn take(asm: Asm) -> Asm {
    asm.put([addi(6, ZERO, LOCK), addi(5, ZERO, 1)]).put([amo(Atomic::Swap as u32, 7, 5, 6)])
}

/// Counts, and gives the lock back.
fn count_and_release(asm: Asm) -> Asm {
    asm.put([lw(8, 6, 4), addi(8, 8, 1), sw(8, 6, 4), sw(ZERO, 6, 0)])
}

fn shapes() -> impl Iterator<Item = Shape> {
    let shapes = [(2, 1), (4, 2), (16, 1)].map(|(lanes, warps)| Shape::new(lanes, warps));
    shapes.into_iter().flat_map(|shape| {
        let of = |divergence| shape.clone().with_divergence(divergence);
        let forwarding = Shape { path_forwarding: true, ..of(Divergence::DUAL_PATH) };
        let units = Divergence::ALL.iter().map(|&divergence| of(divergence));
        units.chain([forwarding]).collect::<Vec<_>>()
    })
}

/// Whoever has the lock comes after those who want it, on every unit: they go round for ever.
#[test]
fn a_lock_that_is_held_behind_the_loop_is_a_deadlock() {
    let program = count_and_release(take(Asm::default().label("again")).branch(BNE, 7, ZERO, "again"));
    let program = program.put([addi(A0, ZERO, 0)]).exit();
    for shape in shapes() {
        let result = machine(&shape, &program).run();
        assert!(matches!(result, Err(MachineError::Hangs { .. })), "{}: {result:?}", shape.options());
    }
}

/// A launch is looked at when it has run for as long as it is told, and not before.
#[test]
fn a_hang_is_found_at_the_first_look() {
    let program = Asm::default().label("again").branch(BEQ, ZERO, ZERO, "again");
    for first_look in [1000, 50_000] {
        let options = MachineOptions { first_look, ..checked() };
        let result = Machine::new(&Shape::new(2, 1), program.program(), &options).unwrap().run();
        let Err(MachineError::Hangs { cycles, .. }) = result else { panic!("{result:?}") };
        assert!((first_look..first_look + 1000).contains(&cycles), "{cycles} after {first_look}");
    }
}

/// Whoever has the lock gives it back before the others try again, on every unit.
#[test]
fn a_lock_that_is_given_back_within_the_loop_is_none() {
    let program = take(Asm::default().put([addi(9, ZERO, 0)]).label("again")).branch(BNE, 7, ZERO, "not_yet");
    let program = count_and_release(program).put([addi(9, ZERO, 1)]);
    let program = program.label("not_yet").branch(BEQ, 9, ZERO, "again").put([addi(A0, ZERO, 0)]).exit();
    for shape in shapes() {
        let mut machine = machine(&shape, &program);
        machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        assert_eq!(machine.read(LOCK as u32 + 4, 4).unwrap(), shape.threads().to_le_bytes());
    }
}

/// Stacks run the other side of a branch only when this one has come to where both reconverge.
#[test]
fn a_barrier_on_one_side_of_a_branch_is_refused() {
    let program = Asm::default()
        .put([csrr(5, LANE), addi(6, ZERO, 2)])
        .branch(BLTU, 5, 6, "wait")
        .put([NOP])
        .jal(ZERO, "end")
        .label("wait")
        .put([BARRIER])
        .label("end")
        .put([addi(A0, ZERO, 0)])
        .exit();
    for divergence in reconverging() {
        let shape = Shape::new(4, 2).with_divergence(divergence);
        let error = machine(&shape, &program).run().unwrap_err().to_string();
        let rest =
            error.strip_prefix("barrier that only a part of the warp has reached at 0x00000014 (wait) in threads ");
        let rest = rest.unwrap_or_else(|| panic!("{error}"));
        assert!(
            ["0-1 of block 0 (warp 0, ", "4-5 of block 0 (warp 1, "].iter().any(|t| rest.starts_with(t)),
            "{error}"
        );
        let others = ["threads 2-3 of block 0 running at 0x0000000c", "threads 6-7 of block 0 running at 0x0000000c"];
        assert!(others.iter().any(|t| error.contains(t)) || error.contains("threads 2-3, 6-7 of block 0"), "{error}");
    }
}

/// Lane k of 4 is parted from the later ones at a branch within the branches before.
#[test]
fn branches_deeper_than_the_stack_are_refused() {
    let program = Asm::default()
        .put([csrr(5, LANE), addi(6, ZERO, 1), addi(7, ZERO, 2), addi(A0, ZERO, 0)])
        .branch(BLTU, 5, 6, "a")
        .branch(BLTU, 5, 7, "b")
        .put([NOP])
        .label("b")
        .put([NOP])
        .label("a")
        .exit();
    for divergence in reconverging() {
        let run = |levels| {
            let shape = Shape { levels, ..Shape::new(4, 1).with_divergence(divergence) };
            machine(&shape, &program).run().map_err(|error| error.to_string())
        };
        assert_eq!((run(None), run(Some(3)), run(Some(2))), (Ok(()), Ok(()), Ok(())));
        let error = run(Some(1)).unwrap_err();
        assert!(error.starts_with("no level left on the reconvergence stack at 0x00000014 in threads 1-3"), "{error}");
    }
}

/// All warps but the one that is started last wait in a loop for what that stores. A round of the loop is long enough
/// for a few warps to find work in every cycle, and they come to it first, because the one divider is theirs first.
#[test]
fn no_schedule_forgets_the_warp_that_all_others_wait_for() {
    let units = [Divergence::PATH_TABLE, Divergence::DUAL_PATH];
    for (&(_, schedule), divergence) in Schedule::ALL.iter().flat_map(|schedule| units.map(|unit| (schedule, unit))) {
        for (lanes, warps) in [(1, 32), (4, 8)] {
            let shape = Shape { schedule, ..Shape::new(lanes, warps).with_divergence(divergence) };
            let program = Asm::default()
                .put([csrr(5, MHARTID), addi(6, ZERO, LOCK), addi(7, ZERO, (shape.threads() - lanes) as i32)])
                .put([addi(8, ZERO, 1), addi(A0, ZERO, 0), divu(8, 8, 8), addi(8, 8, 0)])
                .branch(BLTU, 5, 7, "wait")
                .put([addi(10, ZERO, 8)])
                .label("work")
                .put([addi(10, 10, -1)])
                .branch(BNE, 10, ZERO, "work")
                .put([sw(8, 6, 0)])
                .jal(ZERO, "end")
                .label("wait")
                .put([NOP; 30])
                .put([lw(9, 6, 0)])
                .branch(BEQ, 9, ZERO, "wait")
                .label("end")
                .exit();
            let options = MachineOptions { max_cycles: 200_000, ..checked() };
            let mut machine = Machine::new(&shape, program.program(), &options).unwrap();
            machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
            let cycles = machine.summary().cycles;
            let _ = writeln!(std::io::stderr(), "{}: {cycles} cycles", shape.options());
        }
    }
}

/// `dual-path-execution.txt` §7.1: the odd lanes have many loads, one after the other; of the even ones lane 0 as well,
/// behind a branch that lane 2 has little to do after. With path forwarding those of lane 0 and of the odd lanes are
/// under way together.
#[test]
fn a_forwarded_path_does_not_wait() {
    let loads = || [lw(9, 8, 0), andi(9, 9, 0), add(8, 8, 9)].repeat(20);
    let program = Asm::default()
        .put([csrr(5, LANE), andi(6, 5, 1), andi(7, 5, 2), addi(8, ZERO, LOCK), addi(A0, ZERO, 0)])
        .branch(BNE, 6, ZERO, "odd")
        .branch(BNE, 7, ZERO, "meet")
        .put([NOP])
        .put(loads())
        .label("meet")
        .put([NOP])
        .jal(ZERO, "end")
        .label("odd")
        .put(loads())
        .label("end")
        .exit();
    let backing = Backing::Model(Timing { latency: 40, ..Timing::FASTEST });
    let shape = Shape { backing, ..Shape::new(4, 1) }.with_divergence(Divergence::DUAL_PATH);
    let [without, with] = [false, true].map(|path_forwarding| {
        let mut machine = machine(&Shape { path_forwarding, ..shape.clone() }, &program);
        machine.run().unwrap();
        machine.summary()
    });
    println!("{} cycles, with path forwarding {}", without.cycles, with.cycles);
    assert_eq!(without.warp_instructions, with.warp_instructions);
    assert!(3 * with.cycles < 2 * without.cycles, "{} {}", without.cycles, with.cycles);
}

/// Figure 7 of `dual-path-execution.txt`: loads of path B are under way when it is suspended, and paths D and E, which use
/// the same register number, wait for them in vain, unless the scoreboard knows threads. Then loads of one register are
/// under way on one side for different threads, of different size.
#[test]
fn a_path_need_not_wait_for_threads_that_are_not_its_own() {
    let uses = [lw(9, 8, 0), add(12, 12, 9)].repeat(6);
    let program = Asm::default()
        .put([csrr(5, LANE), andi(6, 5, 1), andi(7, 5, 2), slli(8, 5, 6), addi(8, 8, LOCK), addi(12, ZERO, 0)])
        .put([addi(11, ZERO, 0x6b5), sw(11, 8, 0), addi(A0, ZERO, 0)])
        .put([NOP; 12])
        .branch(BNE, 6, ZERO, "B")
        .put([NOP; 8])
        .branch(BNE, 7, ZERO, "E")
        .put(uses.clone())
        .jal(ZERO, "meet")
        .label("E")
        .put(uses.clone())
        .label("meet")
        .put([NOP])
        .jal(ZERO, "end")
        .label("B")
        .put([load(0, 9, 8, 1), add(12, 12, 9)])
        .put(uses)
        .label("end")
        .put([sw(12, 8, 4)])
        .exit();
    for (latency, jitter, coalescing) in [
        (40, 0, Coalescing::Aligned),
        (80, 0, Coalescing::Full),
        (30, 31, Coalescing::Aligned),
        (90, 63, Coalescing::Full),
    ] {
        for seed in 1..3 {
            let backing = Backing::Model(Timing { latency, jitter, interval: 1, seed });
            let shape = Shape { backing, coalescing, ..Shape::new(4, 1) }.with_divergence(Divergence::DUAL_PATH);
            let [shadows, exact] = [Scoreboard::Shadows, Scoreboard::Exact].map(|scoreboard| {
                let mut machine = machine(&Shape { scoreboard, ..shape.clone() }, &program);
                machine.run().unwrap();
                machine.summary().cycles
            });
            println!(
                "latency {latency}, jitter {jitter}: {shadows} cycles, of a scoreboard that knows threads {exact}"
            );
            assert!(exact < shadows);
        }
    }
}

/// A path keeps its turn while what it loads is in the cache, and gives it to the other path with a miss.
#[test]
fn a_miss_gives_the_turn_to_the_other_path() {
    let loads = |by: i32| (0..8).map(move |k| lw(16 + k as u32, 8, by * k));
    let turns = |path_scheduler, by: i32| {
        let asm = Asm::default()
            .put([csrr(5, LANE), andi(6, 5, 1), addi(8, ZERO, LOCK), lw(9, 8, 0), andi(A0, 9, 0)])
            .branch(BNE, 6, ZERO, "odd")
            .put(loads(by))
            .jal(ZERO, "end")
            .label("odd")
            .put(loads(by));
        let program = asm.label("end").exit();
        let cache = Some(Cache { size: 1 << 12, ways: 4, line: 1, misses: 16 });
        let backing = Backing::Model(Timing { latency: 100, ..Timing::FASTEST });
        let shape = Shape { cache, backing, loads: 16, ..Shape::new(2, 1) }.with_divergence(Divergence::DUAL_PATH);
        let options = MachineOptions { checks: Checks::All, ..checked() };
        let shape = Shape { path_scheduler, ..shape };
        let mut machine = Machine::new(&shape, program.program(), &options).unwrap();
        machine.run().unwrap();
        ["a_path_misses_in_its_turn", "path_changes"].map(|cover| hits(&mut machine, cover))
    };
    let [_, often] = turns(PathScheduler::Constrained, 0);
    let [no_misses, seldom] = turns(PathScheduler::ConstrainedMiss, 0);
    let [misses, _] = turns(PathScheduler::ConstrainedMiss, 64);
    println!("{often} turns, of hits {seldom}, {misses} misses in turns");
    assert_eq!(no_misses, 1, "of the load that brings the line");
    assert!(seldom * 2 < often, "{seldom} {often}");
    assert!(misses >= 2, "{misses}");
}

/// How often a cover was met.
fn hits(machine: &mut Machine, cover: &str) -> u64 {
    let engine = machine.simulation().engine();
    let directory = engine.directory().clone();
    let properties = directory.properties.iter().enumerate();
    let of_name =
        properties.filter(|(_, entry)| directory.scopes[entry.scope].module.properties[entry.index].name == cover);
    of_name.map(|(property, _)| engine.cover_hits(property)).sum()
}

/// Both sides of a branch are branches. One that may not overlap the other side's has to wait for it: not for long, since
/// it is resolved halfway to its next one.
#[test]
fn branches_of_both_paths_overlap() {
    let branches = |asm: Asm, side: &str| {
        (0..40).fold(asm, |asm, k| {
            let next = format!("{side}{k}");
            asm.branch(BNE, ZERO, ZERO, &next).label(&next)
        })
    };
    let asm = Asm::default().put([csrr(5, LANE), andi(6, 5, 1), addi(A0, ZERO, 0)]).branch(BNE, 6, ZERO, "odd");
    let asm = branches(asm, "left").jal(ZERO, "end").label("odd");
    let program = branches(asm, "right").label("end").exit();
    let shape = Shape::new(4, 1).with_divergence(Divergence::DUAL_PATH);
    let [one, two] = [1, 2].map(|unresolved| {
        let mut machine = machine(&Shape { unresolved, ..shape.clone() }, &program);
        machine.run().unwrap();
        machine.summary()
    });
    println!("{} cycles, with two unresolved {}", one.cycles, two.cycles);
    assert_eq!(one.thread_instructions, two.thread_instructions);
    assert!(two.cycles + 20 < one.cycles, "{} {}", one.cycles, two.cycles);
}

/// A warp-synchronous program: within a branch, the two threads of the last warp exchange words without a barrier, since a
/// warp executes a store before the load behind it. The first threads of all other warps take the branch, too: so formed
/// anew, the two are in the first warp and in the last. (`thread-block-compaction.txt` §3.3)
#[test]
fn a_warp_synchronous_program_needs_static_warps() {
    const WARPS: u32 = 8;
    const WORDS: i32 = 0x400;
    let last = 2 * WARPS as i32 - 1;
    let program = Asm::default()
        .put([csrr(5, THREAD_IN_BLOCK), andi(6, 5, 1), addi(A0, ZERO, 0), addi(7, ZERO, 0)])
        .put([sltiu(13, 5, last), r(0, 13, 6, 7, 13, 0x33)])
        .put([slli(8, 5, 2), addi(8, 8, WORDS), addi(9, 5, 100), slli(11, 6, 3), r(0x20, 11, 8, 0, 12, 0x33)])
        .branch(BNE, 13, ZERO, "meet")
        .put([sw(9, 8, 0), lw(7, 12, 4)])
        .label("meet")
        .put([sw(7, 8, 128)])
        .exit();
    let got = |shape: &Shape| {
        let options = MachineOptions { max_cycles: 20_000, ..MachineOptions::default() };
        let mut machine = Machine::new(shape, program.program(), &options).unwrap();
        machine.run().unwrap();
        let word = |thread: i32| i32::from(machine.read((WORDS + 128 + 4 * thread) as u32, 4).unwrap()[0]);
        [last - 1, last].map(word)
    };
    let right = [100 + last, 99 + last];
    for divergence in Divergence::ALL {
        let shape = Shape::new(2, WARPS).with_divergence(*divergence);
        let compaction = if shape.mixes() { Compaction::Off } else { shape.compaction };
        let shape = Shape { compaction, ..shape };
        assert_eq!(got(&shape), right, "{}", shape.options());
    }
    let blocks = Shape::new(2, WARPS).with_divergence(Divergence::BLOCK_STACK);
    for compaction in [Compaction::SkipUniform, Compaction::Always, Compaction::Every] {
        assert_ne!(got(&Shape { compaction, ..blocks.clone() }), right, "{}", compaction.name());
    }
}

/// `thread-block-compaction.txt` §4, Example 2: `while (A) { if (x) B; else if (C) break; E }`. At each turn half of
/// the threads go through B; from the 25th on, one a turn leaves at C.
#[test]
fn threads_that_meet_at_a_likely_point_run_together() {
    let program = Asm::default()
        .put([csrr(5, LANE), addi(6, ZERO, 0), addi(7, ZERO, 32), addi(9, 5, 25), addi(A0, ZERO, 0)])
        .label("A")
        .put([add(8, 5, 6), andi(8, 8, 1)])
        .branch(BNE, 8, ZERO, "C")
        .put([NOP])
        .jal(ZERO, "E")
        .label("C")
        .branch(BEQ, 6, 9, "F")
        .label("E")
        .put([NOP; 9])
        .put([addi(6, 6, 1)])
        .branch(BLT, 6, 7, "A")
        .label("F")
        .exit();
    for divergence in reconverging().filter(|divergence| divergence.capabilities().likely_points) {
        let efficiency = |likely| {
            let mut machine = machine(&Shape { likely, ..Shape::new(8, 1).with_divergence(divergence) }, &program);
            machine.run().unwrap();
            machine.summary().simt_efficiency
        };
        let (without, with) = (efficiency(false), efficiency(true));
        println!("{}: SIMT efficiency {without:.2}, with likely points {with:.2}", divergence.name());
        assert!(without < 0.6 && with > 0.8, "{without} {with}");
    }
}

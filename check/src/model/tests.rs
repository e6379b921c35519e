//! The model beside the core, and what becomes of programs whose threads diverge.

use super::*;
use crate::random::{self, DATA, Features, RandomProgram, search};
use heddle_simt::{Cache, Divergence, SecondLevel, Timing};
use heddle_testbench::asm::*;
use heddle_testbench::kernels::find;
use heddle_testbench::machine::{Machine, MachineOptions};

const AT: u32 = 6;
const BASE: u32 = 7;
const LEFT: u32 = 8;
const MINE: u32 = 9;
const OTHER: u32 = 11;

const ALL: [Mechanism; 3] = [Mechanism::Stack, Mechanism::Formation, Mechanism::WarpBarriers];

/// From never to always.
const THRESHOLDS: [u32; 5] = [0, 3, 10, 50, u32::MAX];

/// All of them, with each threshold.
fn mechanisms() -> impl Iterator<Item = Mechanism> {
    ALL.into_iter().chain(THRESHOLDS.map(Mechanism::Subdivision))
}

/// 4 × 4, on-chip memory.
fn shape() -> Shape {
    Shape { coalescing: Coalescing::Full, ..Shape::new(4, 4).with_divergence(Divergence::STACK) }
}

/// 20 turns of a loop; `MINE` is the lane, `BASE` and `AT` an address in main memory.
fn turns(body: impl FnOnce(Asm) -> Asm) -> Program {
    let asm = Asm::default().put(li(BASE, 0x8000)).put([addi(AT, BASE, 0), addi(LEFT, ZERO, 20), csrr(MINE, LANE)]);
    let asm = body(asm.label("turn")).put([addi(LEFT, LEFT, -1)]).branch(BNE, LEFT, ZERO, "turn");
    asm.put([addi(A0, ZERO, 0)]).exit().program()
}

/// Odd threads and even ones take different ways in each turn.
fn sides() -> Program {
    turns(|asm| {
        let asm = asm.put([andi(A0, MINE, 1)]).branch(BNE, A0, ZERO, "odd").put([NOP]).jal(ZERO, "both");
        asm.label("odd").put([NOP; 2]).label("both")
    })
}

fn programs() -> Vec<(&'static str, Program)> {
    let lane_times = |asm: Asm, by: u32| asm.put([slli(AT, MINE, by), add(AT, AT, BASE)]);
    vec![
        ("results", turns(|asm| asm.put([add(A0, A0, LEFT); 10]))),
        ("hits", turns(|asm| asm.put([lw(AT, BASE, 0), add(AT, AT, BASE), lw(AT, AT, 0)]))),
        ("misses", turns(|asm| asm.put([lw(A0, AT, 0), add(AT, AT, A0), addi(AT, AT, 64)]))),
        ("groups", turns(|asm| lane_times(asm, 4).put([lw(A0, AT, 0), add(AT, AT, A0)]))),
        ("no register", turns(|asm| lane_times(asm, 4).put([lw(ZERO, AT, 0), lw(A0, AT, 4), add(A0, A0, A0)]))),
        ("stores", turns(|asm| lane_times(asm, 6).put([sw(A0, AT, 0), sw(A0, AT, 4)]))),
        ("scratchpad", turns(|asm| asm.put([lui(AT, 0x40000), sw(ZERO, AT, 0), lw(A0, AT, 0), add(A0, A0, A0)]))),
        ("banks", turns(|asm| lane_times(asm.put([lui(BASE, 0x40000)]), 4).put([lw(A0, AT, 0), add(A0, A0, A0)]))),
        ("atomics", turns(|asm| asm.put([amo(0, A0, LEFT, BASE), add(A0, A0, A0)]))),
        ("divisions", turns(|asm| asm.put([divu(A0, BASE, LEFT), add(A0, A0, A0)]))),
        ("sides", sides()),
        ("barriers", turns(|asm| asm.put([BARRIER]))),
    ]
}

/// With and without a cache, one warp, all warps in one block, and more blocks than fit.
#[test]
fn with_a_stack_it_takes_as_long_as_the_core() {
    let late = Timing { latency: 50, ..Timing::FASTEST };
    let cache = Cache { size: 1 << 10, ways: 2, line: 1, misses: 2 };
    let cached = Shape { cache: Some(cache), backing: Backing::Model(late), ..shape() };
    let second = Cache { size: 2 << 10, ways: 4, line: 1, misses: 2 };
    let second_level = Some(SecondLevel { cache: second, latency: 9 });
    let narrow = Backing::Model(Timing { interval: 4, ..late });
    let second_alone = Shape { second_level, backing: narrow, ..shape() };
    let second_behind = Shape { second_level, backing: narrow, ..cached.clone() };
    let long = Shape { alu_latency: 17, ..shape() };
    for shape in [shape(), cached, second_alone, second_behind, long] {
        let options = MachineOptions::default();
        let mut machine = Machine::new(&shape, programs()[0].1.clone(), &options).unwrap();
        for (name, program) in programs() {
            for (blocks, threads) in [(1, 4), (1, 16), (6, 8)] {
                machine.load(program.clone()).unwrap();
                machine.launch_grid(Grid { blocks, threads }).unwrap();
                let mut model = Model::new(&shape, &program, Mechanism::Stack).unwrap();
                model.run_grid(Grid { blocks, threads }).unwrap();
                let (core, model) = (machine.summary(), model.summary());
                let what = format!("{name}, {blocks} blocks of {threads}, {}", shape.options());
                assert_eq!(model.warp_instructions, core.warp_instructions, "{what}");
                assert_eq!(model.thread_instructions, core.thread_instructions, "{what}");
                assert_eq!(model.cycles, core.cycles, "{what}");
                assert_eq!((model.cache, model.second_level), (core.cache, core.second_level), "{what}");
                let idle = model.idle;
                let idle = idle.divergence
                    + idle.interval
                    + idle.memory
                    + idle.scoreboard
                    + idle.barrier
                    + idle.no_instruction;
                assert_eq!(model.cycles, model.warp_instructions + idle, "{what}");
                assert_eq!(model.idle.divergence, core.idle.divergence, "{what}");
                assert_eq!(model.idle.interval, core.idle.interval, "{what}");
            }
        }
    }
}

fn run(program: &Program, mechanism: Mechanism) -> Summary {
    let mut model = Model::new(&shape(), program, mechanism).unwrap();
    model.run_grid(Grid { blocks: 3, threads: 16 }).unwrap();
    model.summary()
}

#[test]
fn threads_that_agree_stay_together() {
    for (name, program) in programs().into_iter().filter(|(name, _)| *name != "sides") {
        for mechanism in mechanisms() {
            assert_eq!(run(&program, mechanism).simt_efficiency, 1.0, "{name} {mechanism:?}");
        }
    }
}

/// Both sides of a branch call one function, in which they meet, and from which they return to places of their own.
#[test]
fn sides_that_call_one_function_return_to_their_own() {
    let program = turns(|asm| {
        let asm = asm.put([andi(A0, MINE, 1)]).branch(BNE, A0, ZERO, "odd");
        let asm = asm.put([addi(OTHER, ZERO, 3)]).jal(RA, "function").put([NOP; 4]).jal(ZERO, "both");
        let asm = asm.label("odd").put([addi(OTHER, ZERO, 5)]).jal(RA, "function").jal(ZERO, "both");
        let asm = asm.label("function").put([addi(OTHER, OTHER, -1)]).branch(BNE, OTHER, ZERO, "function");
        asm.put([jalr(ZERO, RA, 0)]).label("both").put([BARRIER])
    });
    let wanted = run(&program, Mechanism::Stack).thread_instructions;
    for mechanism in mechanisms() {
        assert_eq!(run(&program, mechanism).thread_instructions, wanted, "{mechanism:?}");
    }
}

/// Lanes that are alike in all warps: threads that keep their lanes cannot fill each other's warps.
#[test]
fn who_has_the_same_lane_is_never_together() {
    let stack = run(&sides(), Mechanism::Stack).simt_efficiency;
    assert!(run(&sides(), Mechanism::WarpBarriers).simt_efficiency <= stack);
    assert!(run(&sides(), Mechanism::Formation).simt_efficiency <= stack);
}

/// One way for odd threads of odd warps and even ones of even warps: two halves make a warp.
#[test]
fn halves_of_warps_become_one() {
    let program = turns(|asm| {
        let asm = asm.put([csrr(OTHER, 0xfc2), add(OTHER, OTHER, MINE), andi(OTHER, OTHER, 1)]);
        let asm = asm.branch(BNE, OTHER, ZERO, "odd").put([NOP; 20]).jal(ZERO, "both");
        asm.label("odd").put([NOP; 20]).label("both")
    });
    let [stack, formation, barriers] = ALL.map(|mechanism| run(&program, mechanism));
    assert!(stack.simt_efficiency < 0.65, "{stack:?}");
    assert!(formation.simt_efficiency > 0.8, "{formation:?}");
    assert!(barriers.simt_efficiency > 0.8, "{barriers:?}");
}

/// A lane of each warp takes a detour: its thread falls behind, and nothing brings it back but a warp barrier.
/// (`thread-block-compaction.txt` Figure 1(a), §2.3)
#[test]
fn who_falls_behind_is_left_alone_without_warp_barriers() {
    let program = turns(|asm| {
        let asm = asm.put([addi(A0, LEFT, -20), add(A0, A0, MINE)]).branch(BNE, A0, ZERO, "others");
        asm.put([divu(OTHER, BASE, LEFT), add(OTHER, OTHER, OTHER)]).label("others").put([NOP; 12])
    });
    let [stack, formation, barriers] = ALL.map(|mechanism| run(&program, mechanism).simt_efficiency);
    assert!(formation < 0.85 && barriers > 0.9 && stack > 0.9, "{formation} {barriers} {stack}");
}

/// A manager writes what its warp's workers read behind the place where they reconverge, without a barrier: only on a
/// stack and with warp barriers do they wait. (`thread-block-compaction.txt` §2.3, NVRT)
#[test]
fn implicit_synchronisation_of_a_warp_needs_warp_barriers() {
    let wait = [divu(A0, BASE, BASE), add(A0, A0, A0)];
    let program = Asm::default().put(li(BASE, 0x8000)).put([csrr(MINE, LANE)]).branch(BNE, MINE, ZERO, "workers");
    let program = program.put(wait).put([addi(OTHER, ZERO, 1), sw(OTHER, BASE, 0)]).label("workers");
    let program = program.put([lw(A0, BASE, 0), addi(A0, A0, -1)]).exit().program();
    let result = |mechanism| {
        let mut model = Model::new(&shape(), &program, mechanism).unwrap();
        model.run_grid(Grid { blocks: 1, threads: 4 })
    };
    result(Mechanism::Stack).unwrap();
    result(Mechanism::WarpBarriers).unwrap();
    let error = result(Mechanism::Formation).unwrap_err().to_string();
    assert_eq!(error, "thread 1 of block 0 ended with exit code 4294967295");
}

/// `work_queue`, too, whose managers and workers meet at barriers.
#[test]
fn kernels_are_right_on_all_mechanisms() {
    let shape = Shape { memory: 1 << 20, ..Shape { coalescing: Coalescing::Full, ..Shape::new(8, 8) } };
    let shape = shape.with_divergence(Divergence::STACK);
    for name in ["bfs", "laplace3d", "work_queue", "dispatch", "nqueens", "cfd", "reduce"] {
        let kernel = find(name).unwrap();
        let mut summaries = Vec::new();
        for mechanism in mechanisms() {
            let mut model = Model::new(&shape, &Program::parse(kernel.elf).unwrap(), mechanism).unwrap();
            (kernel.drive)(&mut model, 1).unwrap_or_else(|error| panic!("{name} {mechanism:?}: {error}"));
            summaries.push((mechanism, model.summary()));
        }
        let of = |mechanism| summaries.iter().find(|(other, _)| *other == mechanism).unwrap().1;
        assert_eq!(of(Mechanism::Subdivision(0)), of(Mechanism::Stack), "{name}");
    }
}

/// A warp of four threads, alone.
fn warp(program: &Program, mechanism: Mechanism) -> Summary {
    let mut model = Model::new(&shape(), program, mechanism).unwrap();
    model.run_grid(Grid::one_block(4)).unwrap();
    model.summary()
}

/// Figure 1 of dual-path-execution.txt: three instructions in each block but F, which has one. Thread 0 goes A B G,
/// thread 1 A C D F G, the others A C E F G.
fn figure_1(d: [u32; 2], e: [u32; 3], f: u32) -> Program {
    let asm = Asm::default().put([csrr(MINE, LANE), addi(OTHER, MINE, -1)]).branch(BNE, MINE, ZERO, "c");
    let asm = asm.put([NOP; 2]).jal(ZERO, "g").label("c").put([NOP; 2]).branch(BNE, OTHER, ZERO, "e");
    let asm = asm.put(d).jal(ZERO, "f").label("e").put(e).label("f").put([f]).label("g").put([addi(A0, ZERO, 0)]);
    asm.exit().program()
}

/// The instructions that issue, and of those that issue while the warp has splits, how many it has, counted by hand.
#[track_caller]
fn expect(program: &Program, mechanism: Mechanism, issued: u64, paths: u64) {
    let summary = warp(program, mechanism);
    let threads: u64 = [3 + 3 + 3, 3 + 3 + 3 + 1 + 3, 2 * (3 + 3 + 3 + 1 + 3)].iter().sum();
    assert_eq!((summary.warp_instructions, summary.thread_instructions), (issued, threads), "{mechanism:?}");
    assert_eq!(summary.avg_path, paths as f64 / issued as f64, "{mechanism:?}");
}

/// D waits for a quotient, so E has run past F, which executes twice, as in Figure 3 (c) and (d); and with all branches
/// subdivided G three times, as nobody waits for anyone on the bottom of the stack.
#[test]
fn splits_that_miss_each_other_execute_twice() {
    let program = figure_1([divu(A0, MINE, MINE), add(A0, A0, A0)], [NOP; 3], NOP);
    expect(&program, Mechanism::Stack, 19, 19);
    expect(&program, Mechanism::Subdivision(0), 19, 19);
    // E, F and the division of D while both are splits.
    expect(&program, Mechanism::Subdivision(2), 20, 20 + 5);
    // B and C are splits, then B, D and E. The last of D and F, and of B's and E's G, issue ever more alone.
    let all = warp(&program, Mechanism::Subdivision(3));
    assert_eq!(all.warp_instructions, 26);
    assert!(all.avg_path > 1.5 && all.most_paths == 3, "{all:?}");
    assert!(all.simt_efficiency < warp(&program, Mechanism::Stack).simt_efficiency);
}

/// F waits for a quotient of E, so D finds E there, and F executes once.
#[test]
fn splits_that_meet_execute_once() {
    let program = figure_1([NOP; 2], [divu(A0, MINE, MINE), NOP, NOP], add(A0, A0, A0));
    expect(&program, Mechanism::Stack, 19, 19);
    // All of D and of E.
    expect(&program, Mechanism::Subdivision(2), 19, 19 + 6);
}

/// Both sides load three words, each at an address that depends on the last; then they wait for each other's.
#[test]
fn sides_that_wait_for_memory_wait_together() {
    let chase = [lw(AT, AT, 0), add(AT, AT, BASE), lw(AT, AT, 0), add(AT, AT, BASE), lw(AT, AT, 0)];
    let asm = Asm::default().put(li(BASE, 0x8000)).put([csrr(MINE, LANE), addi(AT, BASE, 0), andi(A0, MINE, 1)]);
    let asm = asm.branch(BNE, A0, ZERO, "odd").put(chase).jal(ZERO, "both").label("odd").put(chase);
    let program = asm.label("both").put([add(A0, AT, ZERO)]).exit().program();
    let late = Timing { latency: 50, ..Timing::FASTEST };
    let shape = Shape { backing: Backing::Model(late), ..shape() };
    let [stack, never, always] = [Mechanism::Stack, Mechanism::Subdivision(0), Mechanism::Subdivision(10)].map(|m| {
        let mut model = Model::new(&shape, &program, m).unwrap();
        model.run_grid(Grid::one_block(4)).unwrap();
        model.summary()
    });
    assert_eq!(stack, never);
    assert_eq!(always.simt_efficiency, stack.simt_efficiency);
    assert!(10 * always.cycles < 6 * stack.cycles, "{always:?} {stack:?}");
}

/// One thread takes a detour in each turn. The turn's end is short, so subdivision leaves it alone, with nobody to wait
/// for it on the bottom of the stack.
#[test]
fn subdivision_loses_who_falls_behind() {
    let program = turns(|asm| {
        let asm = asm.put([addi(A0, LEFT, -20), add(A0, A0, MINE)]).branch(BNE, A0, ZERO, "others");
        asm.put([divu(OTHER, BASE, LEFT), add(OTHER, OTHER, OTHER)]).label("others").put([NOP; 12])
    });
    let [stack, never, always] =
        [Mechanism::Stack, Mechanism::Subdivision(10), Mechanism::Subdivision(50)].map(|m| run(&program, m));
    assert_eq!(stack, never);
    assert!(stack.simt_efficiency > 0.9 && always.simt_efficiency < 0.85, "{stack:?} {always:?}");
}

/// Odd threads wait in a loop for what the even ones write behind it: splits make progress each for itself, and a stack
/// runs one side to its end. The threshold decides.
#[test]
fn splits_wait_for_each_other_without_end_on_the_stack_alone() {
    let asm = Asm::default().put(li(BASE, 0x8000)).put([csrr(MINE, LANE), andi(A0, MINE, 1)]);
    let asm = asm.branch(BNE, A0, ZERO, "wait").put([NOP, addi(LEFT, ZERO, 1), sw(LEFT, BASE, 0)]).jal(ZERO, "both");
    let asm = asm.label("wait").put([lw(LEFT, BASE, 0)]).branch(BEQ, LEFT, ZERO, "wait");
    let program = asm.label("both").put([addi(A0, ZERO, 0)]).exit().program();
    let result = |mechanism| {
        let mut model = Model::new(&shape(), &program, mechanism).unwrap();
        model.set_max_cycles(20_000);
        model.run_grid(Grid { blocks: 1, threads: 4 }).map_err(|error| error.to_string())
    };
    for mechanism in [Mechanism::Stack, Mechanism::Subdivision(2)] {
        assert_eq!(result(mechanism).unwrap_err(), "the program did not end in 20000 cycles");
    }
    assert_eq!(result(Mechanism::Subdivision(3)), Ok(()));
}

/// With a threshold of 0 nothing is subdivided: all that there is to count is the stack's.
#[test]
fn without_subdivision_it_is_the_stack() {
    let late = Timing { latency: 50, ..Timing::FASTEST };
    let cache = Cache { size: 1 << 10, ways: 2, line: 1, misses: 2 };
    let cached = Shape { cache: Some(cache), backing: Backing::Model(late), ..shape() };
    let summary = |shape: &Shape, program: &Program, grid, mechanism| {
        let mut model = Model::new(shape, program, mechanism).unwrap();
        model.run_grid(grid).unwrap();
        model.summary()
    };
    let alike = |shape: &Shape, program: &Program, grid, name: &str| {
        let stack = summary(shape, program, grid, Mechanism::Stack);
        assert_eq!(summary(shape, program, grid, Mechanism::Subdivision(0)), stack, "{name}, {:?}", shape.cache);
    };
    for shape in [shape(), cached] {
        for (name, program) in programs() {
            for (blocks, threads) in [(1, 4), (1, 16), (6, 8)] {
                alike(&shape, &program, Grid { blocks, threads }, name);
            }
        }
        let features = Features { races: false, ..Features::of(&shape) };
        for seed in 0..60 {
            let random = random::program(seed);
            let program = random.assemble(&shape, features).program();
            alike(&shape, &program, random.grid(&shape), &format!("seed {seed}"));
        }
    }
}

/// Threads that race for nothing leave memory as one after the other would, whoever runs with whom.
#[test]
fn random_programs_are_right_however_they_are_subdivided() {
    let shape = shape();
    let features = Features { races: false, ..Features::of(&shape) };
    let length = (shape.memory - shape.stack * shape.threads() - DATA) as usize;
    let mut most_paths = 0;
    let check = |random: &RandomProgram| {
        let program = random.assemble(&shape, features).program();
        let mut iss = Iss::new(&program, &shape).unwrap();
        iss.run_grid(random.grid(&shape)).map_err(|error| error.to_string())?;
        let right = iss.read(DATA, length).unwrap();
        let mechanisms = [Mechanism::Stack, Mechanism::Formation, Mechanism::WarpBarriers].into_iter();
        for mechanism in mechanisms.chain(THRESHOLDS.map(Mechanism::Subdivision)) {
            let mut model = Model::new(&shape, &program, mechanism).unwrap();
            model.run_grid(random.grid(&shape)).map_err(|error| format!("{mechanism:?}: {error}"))?;
            most_paths = most_paths.max(model.summary().most_paths);
            if model.read(DATA, length).unwrap() != right {
                return Err(format!("{mechanism:?}: memory differs"));
            }
        }
        Ok(())
    };
    if let Some(failing) = search(0..60, check) {
        panic!("seed {}: {} {:?}", failing.seed, failing.message, failing.program);
    }
    assert_eq!(most_paths, 4);
}

#[test]
fn what_it_has_not_is_refused() {
    let program = sides();
    let refused = |shape: Shape| Model::new(&shape, &program, Mechanism::Stack).err().unwrap().to_string();
    assert_eq!(refused(Shape::new(4, 4)), "the cycle model has no coalescing but `full`");
    let split = Shape { replay: Replay::Split, ..shape() };
    assert_eq!(refused(split), "the cycle model has no replay but `serialise`");
    let mut model = Model::new(&shape(), &program, Mechanism::Stack).unwrap();
    model.set_max_cycles(100);
    let error = model.run_grid(Grid::one_block(4)).unwrap_err().to_string();
    assert_eq!(error, "the program did not end in 100 cycles");
}

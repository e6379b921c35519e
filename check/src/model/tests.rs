//! The model beside the core, and what becomes of programs whose threads diverge.

use super::*;
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
    for shape in [shape(), cached, second_alone, second_behind] {
        let options = MachineOptions::default();
        let mut machine = Machine::new(&shape, programs()[0].1.clone(), &options).unwrap();
        for (name, program) in programs() {
            for (blocks, threads) in [(1, 4), (1, 16), (6, 8)] {
                machine.load(program.clone()).unwrap();
                machine.launch_grid(Grid { blocks, threads }).unwrap();
                let mut model = Model::new(&shape, &program, Mechanism::Stack).unwrap();
                model.run_grid(Grid { blocks, threads }).unwrap();
                let (core, model) = (machine.summary(), model.summary());
                let what = format!("{name}, {blocks} blocks of {threads}, {:?}, {:?}", shape.cache, shape.second_level);
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
        for mechanism in ALL {
            assert_eq!(run(&program, mechanism).simt_efficiency, 1.0, "{name} {mechanism:?}");
        }
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
        for mechanism in ALL {
            let mut model = Model::new(&shape, &Program::parse(kernel.elf).unwrap(), mechanism).unwrap();
            (kernel.drive)(&mut model, 1).unwrap_or_else(|error| panic!("{name} {mechanism:?}: {error}"));
        }
    }
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

//! Votes, shuffles, and `sync`, which keeps threads until all that it names are there: whatever the order in which paths
//! run, and every instruction as on the instruction-set simulator.

use crate::compiled::compiled;
use heddle_check::checked;
use heddle_simt::isa::{Shuffle, Vote};
use heddle_simt::{Divergence, Merge, Order, Replay, Shape};
use heddle_testbench::Program;
use heddle_testbench::asm::*;
use heddle_testbench::kernels::{self, Device, WARP};
use heddle_testbench::machine::{Machine, MachineOptions};

/// Words that threads write, one a thread, and their next ones.
const OUT: u32 = 0x1000;
const NEXT: u32 = 0x1800;

/// Registers: lane, thread, 1, the threads that are named, where the thread writes.
const LANE_OF: u32 = 5;
const THREAD: u32 = 6;
const ONE: u32 = 8;
const NAMED: [u32; 2] = [18, 19];
const PLACE: u32 = 20;

fn core(lanes: u32, warps: u32) -> Shape {
    Shape { warp_primitives: true, convergence_barriers: 2, patience: 32, ..Shape::new(lanes, warps) }
}

/// Cores that can keep threads waiting: in every order of paths, fair and not, with paths that only barriers merge.
fn waiting() -> Vec<Shape> {
    let mut cores = vec![core(1, 2), core(2, 2), core(4, 1), core(8, 4), core(32, 1), core(64, 2)];
    cores.extend(Order::ALL.iter().skip(1).flat_map(|&(_, order)| {
        let fair = order.takes_turns();
        [Shape { order, fair, ..core(4, 2) }, Shape { order, fair, ..core(16, 1) }]
    }));
    cores.push(Shape { fair: true, ..core(8, 2) });
    cores.push(Shape { replay: Replay::Serialise, merge: Merge::Barriers, ..core(8, 2) });
    cores.push(Shape { patience: 4096, convergence_barriers: 16, ..core(8, 2) });
    cores
}

fn begin() -> Asm {
    Asm::default()
        .put([csrr(LANE_OF, LANE), csrr(THREAD, MHARTID), addi(ONE, ZERO, 1), addi(A0, ZERO, 0)])
        .put([addi(NAMED[0], ZERO, -1), addi(NAMED[1], ZERO, -1), slli(PLACE, THREAD, 2)])
        .put(li(21, OUT))
        .put([add(PLACE, PLACE, 21)])
}

/// The threads that come first run first: the code behind a loop of as many turns as x7 says comes before it.
fn late_comers(code: impl FnOnce(Asm) -> Asm, turns: u32) -> Asm {
    let program = begin().put([addi(7, turns, 0)]).jal(ZERO, "loop").label("done");
    let program = code(program).exit();
    program.label("loop").branch(BEQ, 7, ZERO, "done").put([addi(7, 7, -1)]).jal(ZERO, "loop")
}

fn name(b: u32) -> u32 {
    sync(b, NAMED[0], NAMED[1])
}

fn machine(shape: &Shape, program: Asm, max_cycles: u64) -> Machine {
    let options = MachineOptions { max_cycles, ..checked() };
    Machine::new(shape, program.program(), &options).unwrap_or_else(|error| panic!("{}: {error}", shape.options()))
}

/// Runs it; what threads wrote.
fn run(shape: &Shape, program: Asm, at: u32) -> Vec<u32> {
    let mut machine = machine(shape, program, 400_000);
    machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
    let bytes = machine.read(at, 4 * shape.threads() as usize).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn error(shape: &Shape, program: Asm) -> String {
    machine(shape, program, 40_000).run().unwrap_err().to_string()
}

/// Lanes of a warp that there are, of 0 to 31 and from 32 on.
fn all_lanes(lanes: u32) -> [u32; 2] {
    let all = u64::MAX >> (64 - lanes);
    [all as u32, (all >> 32) as u32]
}

#[test]
fn kernels_on_every_mechanism() {
    for shape in [core(1, 1), core(2, 4), core(8, 2), core(64, 1)] {
        for divergence in Divergence::ALL {
            let holds = divergence.capabilities().convergence_barriers;
            let shape = Shape { convergence_barriers: if holds { 1 } else { 0 }, ..shape.clone() };
            let shape = shape.with_divergence(*divergence);
            for kernel in WARP {
                let elf = kernel.small().unwrap();
                let mut machine = Machine::new(&shape, Program::parse(elf).unwrap(), &checked()).unwrap();
                let output = (kernel.drive)(&mut machine, 1);
                output.unwrap_or_else(|error| panic!("{} on {}: {error}", kernel.name, shape.options()));
            }
        }
    }
    let mut without = Machine::new(&Shape::new(4, 1), Program::parse(WARP[0].elf).unwrap(), &checked()).unwrap();
    let error = (WARP[0].drive)(&mut without, 1).unwrap_err().to_string();
    assert_eq!(error, "the kernel needs warp primitives (--warp-primitives on), which the core does not have");
    assert!(kernels::find("warp_scan").is_ok());
}

/// Every primitive of `heddle.h`, of threads that come one after another.
#[test]
fn all_that_heddle_h_has() {
    let Some(program) = compiled("warp", &[]) else { return };
    for shape in waiting() {
        let mut machine = Machine::new(&shape, program.clone(), &checked()).unwrap();
        machine.launch().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
        let device: &mut dyn Device = &mut machine;
        let right = device.read_words("right", shape.threads() as usize).unwrap();
        assert_eq!(right, vec![0xfff; shape.threads() as usize], "{}", shape.options());
    }
}

/// Threads come one after another, and vote together.
#[test]
fn threads_that_come_at_different_times_vote_together() {
    for shape in waiting() {
        let [lower, upper] = all_lanes(shape.lanes);
        let vote = |function| late_comers(|a| a.put([name(0), vote(function, 9, ONE), sw(9, PLACE, 0)]), LANE_OF);
        assert_eq!(run(&shape, vote(Vote::Ballot), OUT), vec![lower; shape.threads() as usize], "{}", shape.options());
        assert_eq!(run(&shape, vote(Vote::BallotUpper), OUT), vec![upper; shape.threads() as usize]);
    }
}

/// The same from the last lane on, and they hand on what they bring to the next lane; the last one keeps its own.
#[test]
fn shuffles_of_threads_that_come_at_different_times() {
    for shape in waiting() {
        let program =
            late_comers(|a| a.put([name(1), shuffle(Shuffle::Down, 9, THREAD, ONE), sw(9, PLACE, 0)]), LANE_OF);
        let next = |thread: u32| if (thread + 1).is_multiple_of(shape.lanes) { thread } else { thread + 1 };
        let want: Vec<u32> = (0..shape.threads()).map(next).collect();
        assert_eq!(run(&shape, program, OUT), want, "{}", shape.options());
    }
}

/// Threads of even lanes name each other, those of odd lanes, too: at one barrier, where the ones queue behind the
/// others, and alone where they come together.
#[test]
fn two_sets_at_one_barrier() {
    for shape in waiting() {
        for turns in [ZERO, LANE_OF] {
            let program = late_comers(
                |a| {
                    a.put([andi(9, LANE_OF, 1), addi(9, 9, 1)]).put(li(11, 0x5555_5555)).put([
                        mul(NAMED[0], 11, 9),
                        mul(NAMED[1], 11, 9),
                        name(0),
                        vote(Vote::Ballot, 9, ONE),
                        r(0, NAMED[0], 9, 7, 9, 0x33),
                        sw(9, PLACE, 0),
                    ])
                },
                turns,
            );
            let [lower, _] = all_lanes(shape.lanes);
            let own = |thread: u32| lower & (0x5555_5555 << (thread % shape.lanes % 2));
            let want: Vec<u32> = (0..shape.threads()).map(own).collect();
            assert_eq!(run(&shape, program, OUT), want, "{}", shape.options());
        }
    }
}

/// Sets that overlap and wait at one time: 0 and 1 meet at a barrier, 1 and 2 at another, and so on. In its first round
/// each thread meets the one before, if there is one, and in its second the one behind.
#[test]
fn a_chain_of_meetings() {
    // The lower of the two lanes, the round, meetings.
    let (lower, round, met) = (9, 14, 15);
    for shape in waiting().into_iter().filter(|shape| shape.lanes <= 16) {
        let last = shape.lanes as i32 - 1;
        let program = late_comers(
            |a| {
                let a = a
                    .put([addi(round, ZERO, 0), addi(16, ZERO, last), addi(17, ZERO, 2), addi(lower, LANE_OF, -1)])
                    .put([addi(met, ZERO, 0)])
                    .label("round")
                    .branch(BLT, lower, ZERO, "met")
                    .branch(BEQ, lower, 16, "met")
                    .put([addi(NAMED[0], ZERO, 3), r(0, lower, NAMED[0], 1, NAMED[0], 0x33), addi(NAMED[1], ZERO, 0)])
                    .la(11, "meetings")
                    .put([slli(12, lower, 3), add(11, 11, 12), jalr(ZERO, 11, 0)])
                    .label("meetings");
                let meetings = (0..16).fold(a, |a, b| a.put([name(b)]).jal(ZERO, "meet"));
                meetings
                    .label("meet")
                    .put([addi(met, met, 1)])
                    .label("met")
                    .put([addi(round, round, 1), addi(lower, LANE_OF, 0)])
                    .branch(BNE, round, 17, "round")
                    .put([sw(met, PLACE, 0)])
            },
            LANE_OF,
        );
        let meetings = |thread: u32| {
            let lane = thread % shape.lanes;
            u32::from(lane > 0) + u32::from(lane + 1 < shape.lanes)
        };
        let want: Vec<u32> = (0..shape.threads()).map(meetings).collect();
        let shape = Shape { convergence_barriers: 16, ..shape };
        assert_eq!(run(&shape, program, OUT), want, "{}", shape.options());
    }
}

/// A thread that has ended is waited for no more: the last lane ends, late, without coming.
#[test]
fn a_named_thread_that_ends() {
    for shape in waiting().into_iter().filter(|shape| shape.lanes > 1) {
        let last = shape.lanes as i32 - 1;
        let program = begin()
            .put([addi(7, ZERO, last), addi(12, ZERO, 30)])
            .branch(BEQ, LANE_OF, 7, "last")
            .put([name(0), vote(Vote::Ballot, 9, ONE), sw(9, PLACE, 0)])
            .exit()
            .label("last")
            .put([addi(12, 12, -1)])
            .branch(BNE, 12, ZERO, "last")
            .put([sw(ONE, PLACE, 0)])
            .exit();
        let [lower, _] = all_lanes(shape.lanes - 1);
        let want = (0..shape.threads()).map(|thread| if (thread + 1).is_multiple_of(shape.lanes) { 1 } else { lower });
        assert_eq!(run(&shape, program, OUT), want.collect::<Vec<_>>(), "{}", shape.options());
    }
}

/// Hints at the same barrier give way to a sync, also where threads come to them again and again until one has synced.
#[test]
fn hints_at_the_barrier_of_a_sync() {
    for shape in waiting().into_iter().filter(|shape| shape.lanes >= 4) {
        // Lanes 0 and 1 meet, late, then set a flag; the others join and wait until it is set.
        let program = begin()
            .put([addi(7, ZERO, 2), csrr(12, 0xfc2), slli(12, 12, 2), join(0)])
            .put(li(13, NEXT))
            .put([add(12, 12, 13), addi(NAMED[0], ZERO, 3), addi(NAMED[1], ZERO, 0), addi(13, ZERO, 40)])
            .branch(BLTU, LANE_OF, 7, "late")
            .label("others")
            .put([wait(0, 0), join(0), lw(11, 12, 0)])
            .branch(BEQ, 11, ZERO, "others")
            .put([sw(ONE, PLACE, 0)])
            .exit()
            .label("two")
            .put([name(0), shuffle(Shuffle::Xor, 9, THREAD, ONE), sw(ONE, 12, 0), sw(9, PLACE, 0)])
            .exit()
            .label("late")
            .put([addi(13, 13, -1)])
            .branch(BEQ, LANE_OF, 13, "two")
            .jal(ZERO, "late");
        let want = |thread: u32| if thread % shape.lanes < 2 { thread ^ 1 } else { 1 };
        assert_eq!(
            run(&shape, program, OUT),
            (0..shape.threads()).map(want).collect::<Vec<_>>(),
            "{}",
            shape.options()
        );
    }
}

/// In a function that calls itself, threads meet those that are as deep.
#[test]
fn a_sync_in_a_recursive_function() {
    for shape in waiting() {
        let program = late_comers(|a| a.put([addi(9, ZERO, 3)]).jal(RA, "f").put([sw(12, PLACE, 0)]), LANE_OF)
            .label("f")
            .put([addi(2, 2, -4), sw(RA, 2, 0), name(0), vote(Vote::All, 11, ONE), add(12, 12, 11), addi(9, 9, -1)])
            .branch(BEQ, 9, ZERO, "back")
            .jal(RA, "f")
            .label("back")
            .put([name(1), shuffle(Shuffle::Xor, 11, ONE, ONE), add(12, 12, 11), lw(RA, 2, 0), addi(2, 2, 4)])
            .put([jalr(ZERO, RA, 0)]);
        let begins = Asm::default().put([csrr(7, MHARTID), slli(7, 7, 10)]).put(li(2, shape.memory));
        let sub = r(0x20, 7, 2, 0, 2, 0x33);
        let program = program.program();
        let words = (0..program.program_end()).step_by(4).filter_map(|pc| program.word(pc));
        let program = begins.put([sub, addi(12, ZERO, 0)]).put(words);
        assert_eq!(run(&shape, program, OUT), vec![6; shape.threads() as usize], "{}", shape.options());
    }
}

/// Where none can be kept waiting, a sync is right if exactly those execute it that it names.
#[test]
fn refused_where_nobody_can_be_kept() {
    let wanted = "sync of other threads than those that execute it, where none can be kept waiting";
    let together = || begin().put([name(1), vote(Vote::Ballot, 9, ONE), sw(9, PLACE, 0)]).exit();
    let parted = || {
        let odd = begin().put([andi(9, LANE_OF, 1)]).branch(BEQ, 9, ZERO, "even");
        odd.put([name(1), sw(ONE, PLACE, 0)]).label("even").exit()
    };
    for divergence in Divergence::ALL {
        let shape = Shape { convergence_barriers: 0, ..core(4, 2) }.with_divergence(*divergence);
        assert_eq!(run(&shape, together(), OUT), vec![15; 8], "{}", divergence.name());
        let error = error(&shape, parted());
        assert!(error.contains(wanted) && error.contains("0x"), "{}: {error}", divergence.name());
    }
    // The barrier that it names is none of the core's.
    let shape = Shape { convergence_barriers: 1, ..core(4, 1) };
    assert_eq!(run(&shape, together(), OUT), vec![15; 4]);
    let error = error(&shape, parted());
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn illegal_in_a_core_without_them() {
    for word in [name(0), vote(Vote::Any, 9, ONE), shuffle(Shuffle::Up, 9, ONE, ONE)] {
        let error = error(&Shape::new(2, 1), begin().put([word]).exit());
        assert!(error.contains("a warp primitive, which this core lacks (--warp-primitives on)"), "{error}");
    }
}

/// A named thread that waits at the block's barrier never comes: the hang says where it is.
#[test]
fn a_named_thread_at_the_barrier_is_told() {
    let program =
        begin().branch(BEQ, LANE_OF, ZERO, "first").put([name(0)]).exit().label("first").put([BARRIER]).exit();
    let error = error(&core(4, 1), program);
    assert!(error.contains("thread 0 of block 0 waiting at the barrier at "), "{error}");
    assert!(error.contains("threads 1-3 of block 0 waiting at the sync at "), "{error}");
}

//! Programs on convergence barriers: threads that wait for each other, by every kind of release; and threads that spin
//! until others have done something, which must end with barriers wherever they are if they end without.

use heddle_check::checked;
use heddle_simt::isa::Atomic;
use heddle_simt::{Merge, Replay, Shape};
use heddle_testbench::asm::*;
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::{Convergence, Machine, MachineOptions};
use std::io::Write;

/// Addresses of words that threads share.
const FLAG: i32 = 0x400;
const LOCK: i32 = 0x440;
const COUNT: i32 = 0x480;

fn machine(shape: &Shape, program: &Asm) -> Machine {
    let options = MachineOptions { max_cycles: 400_000, ..checked() };
    Machine::new(shape, program.program(), &options).unwrap_or_else(|error| panic!("{}: {error}", shape.options()))
}

/// Runs it, every instruction compared with the instruction-set simulator.
fn run(shape: &Shape, program: &Asm) -> Machine {
    let mut machine = machine(shape, program);
    machine.run().unwrap_or_else(|error| panic!("{}: {error}", shape.options()));
    machine
}

fn word(machine: &mut Machine, address: i32) -> u32 {
    u32::from_le_bytes(machine.read(address as u32, 4).unwrap().try_into().unwrap())
}

fn with(barriers: u32, shape: Shape) -> Shape {
    Shape { convergence_barriers: barriers, patience: 32, ..shape }
}

fn counts(machine: &Machine) -> Convergence {
    machine.summary().convergence.expect("a core with convergence barriers")
}

/// x5 is the lane, x6 the thread; a0 = 0.
fn begin() -> Asm {
    Asm::default().put([csrr(5, LANE), csrr(6, MHARTID), addi(A0, ZERO, 0)])
}

/// `speculative-reconvergence.txt` Figure 4: `for (i = 0; i < 16; i++) { prolog; if (divergent) expensive; epilog }`,
/// where another lane takes the branch in each round, waits at BB3 and rejoins, and cancels at BB5.
fn iteration_delay(threshold: u32) -> Asm {
    begin()
        .put([addi(7, ZERO, 0), addi(8, ZERO, 16), addi(9, ZERO, 0), join(0)])
        .label("BB1")
        .put([add(11, 7, 5), andi(11, 11, 3)])
        .branch(BNE, 11, ZERO, "BB4")
        .put([wait(0, threshold), join(0)])
        .put([addi(9, 9, 1); 20])
        .label("BB4")
        .put([addi(7, 7, 1)])
        .branch(BLT, 7, 8, "BB1")
        .put([cancel(0)])
        .exit()
}

#[test]
fn figure_4_waits_for_all_and_runs_the_expensive_part_together() {
    for (lanes, warps) in [(4, 1), (8, 2), (32, 1), (64, 2)] {
        let plain = run(&with(0, Shape::new(lanes, warps)), &iteration_delay(0)).summary();
        let machine = run(&with(1, Shape::new(lanes, warps)), &iteration_delay(0));
        let (summary, counts) = (machine.summary(), counts(&machine));
        println!("{lanes} × {warps}: {:.3} to {:.3}, {counts:?}", plain.simt_efficiency, summary.simt_efficiency);
        assert!(summary.simt_efficiency > 1.2 * plain.simt_efficiency);
        assert!(counts.complete > 0);
        assert_eq!((counts.stuck, counts.patience, counts.fell_through, counts.threshold), (0, 0, 0, 0));
    }
}

/// `wait b, t`: as many go on.
#[test]
fn a_threshold_releases_those_who_wait() {
    for lanes in [4, 16, 64] {
        let machine = run(&with(2, Shape::new(lanes, 1)), &iteration_delay(2));
        let counts = counts(&machine);
        println!("{lanes}: {counts:?}");
        assert!(counts.threshold > 0);
        assert_eq!((counts.stuck, counts.patience), (0, 0));
    }
}

/// §4.6, Figure 6: threads are counted as they come; who comes when not more than the threshold have waits at bTemp,
/// which all that are in the loop participate in; the next one makes it those who have come. BB8 leaves bCount, too.
fn soft_barrier(threshold: i32) -> Asm {
    const PDOM: u32 = 0;
    const COUNT: u32 = 1;
    const TEMP: u32 = 2;
    const ALL: u32 = 3;
    begin()
        // Each lane goes round the outer loop 4 times and the inner one 1 to 4 times.
        .put([addi(7, ZERO, 4), addi(12, ZERO, threshold), join(ALL), copy(TEMP, ALL)])
        .label("BB1")
        .put([join(PDOM), add(9, 5, 7), andi(9, 9, 3), addi(9, 9, 1)])
        .label("BB3")
        .put([join(COUNT), count(8, COUNT)])
        .branch(BLTU, 12, 8, "BB5")
        .put([cancel(PDOM)])
        .jal(ZERO, "BB6")
        .label("BB5")
        .put([move_(TEMP, COUNT)])
        .label("BB6")
        .put([wait(TEMP, 0), copy(TEMP, ALL)])
        .put([addi(11, 11, 1); 12])
        .put([addi(9, 9, -1)])
        .branch(BNE, 9, ZERO, "BB3")
        .put([wait(PDOM, 0), addi(7, 7, -1)])
        .branch(BNE, 7, ZERO, "BB1")
        .put([cancel(TEMP), cancel(ALL), cancel(COUNT), cancel(PDOM)])
        .exit()
}

#[test]
fn figure_6_ends_without_stuck_or_impatient_threads() {
    for (lanes, threshold) in [(4, 2), (8, 3), (16, 8), (64, 20)] {
        let machine = run(&with(4, Shape::new(lanes, 2)), &soft_barrier(threshold));
        let counts = counts(&machine);
        println!("{lanes} lanes, threshold {threshold}: {counts:?}");
        assert!(counts.complete > 0);
        assert_eq!((counts.patience, counts.threshold), (0, 0));
    }
}

/// Instructions on convergence barriers for the next place of a program.
type Next<'a> = &'a mut dyn FnMut() -> Vec<u32>;
/// A program with such instructions in all its places.
type Spins<'a> = &'a dyn Fn(Next) -> Asm;

/// Lane 0 of each warp sets the flag of its warp. The others spin at a lesser pc, which they come to when it has done
/// so, unless something keeps it back.
fn flag(hints: Next) -> Asm {
    begin()
        .put([csrr(12, 0xfc2), slli(12, 12, 2), addi(8, ZERO, 1)])
        .put(hints())
        .branch(BNE, 5, ZERO, "others")
        .jal(ZERO, "sets")
        .label("others")
        .put(hints())
        .jal(ZERO, "far")
        .label("spins")
        .put(hints())
        .put([lw(9, 12, FLAG)])
        .put(hints())
        .branch(BEQ, 9, ZERO, "spins")
        .jal(ZERO, "end")
        .label("sets")
        .put(hints())
        .put([sw(8, 12, FLAG)])
        .put(hints())
        .jal(ZERO, "end")
        .label("far")
        .put(hints())
        .jal(ZERO, "spins")
        .label("end")
        .put(hints())
        .exit()
}

/// Lane 0 of warp 0 sets the flag that all others wait for.
fn flag_of_another_warp(hints: Next) -> Asm {
    begin()
        .put([addi(8, ZERO, 1)])
        .put(hints())
        .branch(BNE, 6, ZERO, "far")
        .put(hints())
        .put([sw(8, ZERO, FLAG)])
        .put(hints())
        .jal(ZERO, "end")
        .label("spins")
        .put(hints())
        .put([lw(9, ZERO, FLAG)])
        .put(hints())
        .branch(BEQ, 9, ZERO, "spins")
        .jal(ZERO, "end")
        .label("far")
        .put(hints())
        .jal(ZERO, "spins")
        .label("end")
        .put(hints())
        .exit()
}

/// Each thread takes a lock, adds 1 to a count, and gives it back before the others try again.
fn lock(hints: Next) -> Asm {
    begin()
        .put([addi(12, ZERO, LOCK), addi(8, ZERO, 1), addi(9, ZERO, 0)])
        .put(hints())
        .label("again")
        .put(hints())
        .put([amo(Atomic::Swap as u32, 7, 8, 12)])
        .branch(BNE, 7, ZERO, "not yet")
        .put(hints())
        .put([lw(11, ZERO, COUNT), addi(11, 11, 1)])
        .put(hints())
        .put([sw(11, ZERO, COUNT), sw(ZERO, 12, 0), addi(9, ZERO, 1)])
        .label("not yet")
        .put(hints())
        .branch(BEQ, 9, ZERO, "again")
        .put(hints())
        .exit()
}

/// Threads in pairs, `apart` threads apart: one puts numbers into a word when that is 0, the other takes them out and
/// adds them up.
fn producer_and_consumer(apart: u32, hints: Next) -> Asm {
    begin()
        .put([andi(7, 6, apart as i32), addi(12, ZERO, apart as i32), r(0x20, 7, 6, 0, 12, 0x33), slli(12, 12, 2)])
        .put([addi(8, ZERO, 4), addi(11, ZERO, 0)])
        .put(hints())
        .label("again")
        .put([lw(9, 12, 0x500)])
        .put(hints())
        .branch(BNE, 7, ZERO, "consumer")
        .put(hints())
        .branch(BNE, 9, ZERO, "next")
        .put(hints())
        .put([sw(8, 12, 0x500), addi(8, 8, -1)])
        .jal(ZERO, "next")
        .label("consumer")
        .put(hints())
        .branch(BEQ, 9, ZERO, "next")
        .put(hints())
        .put([sw(ZERO, 12, 0x500), add(11, 11, 9), addi(8, 8, -1)])
        .label("next")
        .put(hints())
        .branch(BNE, 8, ZERO, "again")
        .put(hints())
        // A consumer's sum, or 0, is 4 + 3 + 2 + 1 or 0; else the thread fails.
        .branch(BEQ, 11, ZERO, "right")
        .put([addi(11, 11, -10), addi(A0, 11, 0)])
        .label("right")
        .exit()
}

/// Random hints on few barriers, some of which the core may not have.
fn random_hints(r: &mut fastrand::Rng) -> Vec<u32> {
    let hint = |r: &mut fastrand::Rng| {
        let b = if r.u8(..16) == 0 { 15 } else { r.u32(..2) };
        match r.u8(..12) {
            0..4 => join(b),
            4..8 => wait(b, if r.bool() { 0 } else { r.u32(..4) }),
            8 => cancel(b),
            9 => count(13, b),
            10 => copy(b, r.u32(..3)),
            _ => move_(b, r.u32(..3)),
        }
    };
    (0..r.usize(..4)).map(|_| hint(r)).collect()
}

/// Programs that end without hints end with any, and have the same results.
#[test]
fn spinning_programs_end_with_any_hints() {
    let programs = (std::env::var("HEDDLE_PROGRAMS")).map_or(3, |text| text.parse().expect("a number of programs"));
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    if !long {
        let what = "spinning programs with each replay on every shape, not in turn";
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}, which HEDDLE_LONG=1 asks for");
    }
    for (k, (lanes, warps)) in [(2, 1), (4, 2), (8, 4), (16, 2), (64, 1)].into_iter().enumerate() {
        let replays = [Replay::Split, Replay::Serialise];
        for replay in if long { &replays[..] } else { &replays[k % 2..=k % 2] }.iter().copied() {
            let shape = Shape { replay, ..with([2, 1, 3, 16, 4][k], Shape::new(lanes, warps)) };
            let mut total = Convergence::default();
            let nothing = Asm::default().exit();
            let mut without = machine(&Shape { convergence_barriers: 0, ..shape.clone() }, &nothing);
            let mut machine = machine(&shape, &nothing);
            for seed in 0..programs {
                let kernels: [(&str, Spins); 5] = [
                    ("flag", &flag),
                    ("flag of another warp", &flag_of_another_warp),
                    ("lock", &lock),
                    ("pairs of a warp", &|next| producer_and_consumer(1, next)),
                    ("pairs of two halves", &|next| producer_and_consumer(shape.threads() / 2, next)),
                ];
                for (name, kernel) in kernels {
                    let mut r = fastrand::Rng::with_seed(seed);
                    let program = kernel(&mut || random_hints(&mut r));
                    if seed == 0 {
                        without.load(program.program()).unwrap();
                        without.run().unwrap_or_else(|e| panic!("{name} without hints, {}: {e}", shape.options()));
                    }
                    machine.load(program.program()).unwrap();
                    machine.run().unwrap_or_else(|e| panic!("{name}, seed {seed}, {}: {e}", shape.options()));
                    if name == "lock" {
                        assert_eq!(word(&mut machine, COUNT), shape.threads());
                    }
                    total += counts(&machine);
                }
            }
            println!("{}: {total:?}", shape.options());
        }
    }
}

/// The thread that the others wait for is kept back, and let go on behind a path that spins before it in the order of
/// the list.
#[test]
fn a_path_that_spins_gives_way_to_one_that_a_hint_kept_back() {
    let at = |places: &[(usize, u32)]| {
        let mut place = 0;
        flag(&mut || {
            place += 1;
            places.iter().filter(|(at, _)| at + 1 == place).map(|(_, word)| *word).collect()
        })
    };
    let programs = [
        // By patience; by the others' leaving.
        ("patience", at(&[(0, join(0)), (4, wait(0, 0))])),
        ("cancel", at(&[(0, join(0)), (4, wait(0, 0)), (6, cancel(0))])),
    ];
    for (name, program) in programs {
        for lanes in [2, 4, 32] {
            let machine = run(&with(1, Shape::new(lanes, 2)), &program);
            let counts = counts(&machine);
            println!("{name}, {lanes} lanes: {counts:?}");
            assert!(counts.gave_way > 0 && counts.patience + counts.complete > 0, "{counts:?}");
        }
    }
}

/// Threads at a convergence barrier and threads at the block's: the former go on, so that the latter can.
#[test]
fn the_barrier_of_the_block_releases_who_waits_elsewhere() {
    let program = begin()
        .put([join(0), sltiu(7, 5, 1)])
        .branch(BEQ, 7, ZERO, "others")
        .put([wait(0, 0), BARRIER])
        .jal(ZERO, "end")
        .label("others")
        .put([BARRIER])
        .label("end")
        .exit();
    for (lanes, warps) in [(2, 1), (4, 4), (8, 2), (64, 1)] {
        let machine = run(&with(1, Shape::new(lanes, warps)), &program);
        let counts = counts(&machine);
        assert_eq!((counts.stuck, counts.patience), (u64::from(warps), 0), "{counts:?}");
    }
}

/// On a core without convergence barriers, or without this one, nothing happens and nobody participates.
#[test]
fn a_barrier_that_is_not_there_does_nothing() {
    use heddle_simt::Divergence;
    let program = begin()
        .put([join(3), count(A0, 3), wait(3, 0), copy(3, 0), move_(0, 3), wait(3, 2), cancel(3), count(ZERO, 3)])
        .exit();
    for &divergence in Divergence::ALL {
        for (lanes, warps) in [(1, 1), (4, 2)] {
            run(&Shape::new(lanes, warps).with_divergence(divergence), &program);
        }
    }
    run(&Shape::new(64, 1), &program);
    for barriers in [1, 2, 3] {
        run(&with(barriers, Shape::new(4, 2)), &program);
    }
    let error = machine(&with(4, Shape::new(4, 1)), &program).run().unwrap_err().to_string();
    assert!(error.contains("thread 0 of block 0 with 4"), "{error}");
}

/// Under `--merge barriers` paths reconverge at barriers only: with one where the sides of each branch meet, as they do
/// without the option; and without one, never again.
#[test]
fn without_comparing_pcs_paths_meet_at_barriers_only() {
    let program = |at_end: &[u32]| {
        begin()
            .put([addi(7, ZERO, 8)])
            .label("again")
            .put([join(0), add(8, 5, 7), andi(8, 8, 1)])
            .branch(BNE, 8, ZERO, "odd")
            .put([NOP; 2])
            .jal(ZERO, "meet")
            .label("odd")
            .put([NOP; 3])
            .label("meet")
            .put(at_end.iter().copied())
            .put([NOP; 20])
            .put([addi(7, 7, -1)])
            .branch(BNE, 7, ZERO, "again")
            .exit()
    };
    for (lanes, warps) in [(2, 1), (8, 2), (32, 1)] {
        let serialise = Shape { replay: Replay::Serialise, ..with(1, Shape::new(lanes, warps)) };
        let apart = Shape { merge: Merge::Barriers, ..serialise.clone() };
        let efficiency = |shape, at_end: &[u32]| run(shape, &program(at_end)).summary().simt_efficiency;
        let [usual, with_barrier] = [&serialise, &apart].map(|shape| efficiency(shape, &[wait(0, 0)]));
        let without = efficiency(&apart, &[cancel(0)]);
        println!("{lanes} lanes: {usual:.3}, barriers only {with_barrier:.3}, none {without:.3}");
        // Each side executes the `wait`, and nothing else twice.
        assert!(
            usual > with_barrier && usual - with_barrier < 0.05 && without < 0.6,
            "{usual} {with_barrier} {without}"
        );
    }
}

/// Every shape of core has them: one thread, one warp, many lanes, with and without barriers of blocks.
#[test]
fn shapes_of_all_kinds() {
    for (k, (lanes, warps)) in [(1, 1), (1, 4), (2, 1), (2, 8), (16, 1), (64, 2)].into_iter().enumerate() {
        for (barriers, n) in [[(true, 1), (false, 16)], [(false, 2), (true, 5)]][k % 2] {
            let shape = Shape { barriers, ..with(n, Shape::new(lanes, warps)) };
            let machine = run(&shape, &iteration_delay(0));
            let counts = counts(&machine);
            assert_eq!((counts.stuck, counts.patience), (0, 0), "{}: {counts:?}", shape.options());
            run(&shape, &soft_barrier(1));
        }
    }
}

use super::*;
use crate::checked;
use heddle_simt::{Backing, Capt, Divergence, History, Shape, Timing};
use heddle_testbench::asm::*;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{self, KernelError};
use heddle_testbench::machine::{Attach, Machine, MachineOptions, Mismatch, Summary};

/// Of what the warps of which bits are 1 wait for: warps behind the branch.
fn behind(warps: &[[u64; 2]], waits: u32) -> u32 {
    let of_side = |side: usize| {
        let of = |waiting: bool| {
            let is = move |k: usize| (waits >> k & 1 == 1) == waiting;
            warps.iter().enumerate().filter(move |(k, _)| is(*k)).map(move |(_, warp)| warp[side])
        };
        let lane = |lane: u32| of(true).filter(|mask| mask >> lane & 1 == 1).count();
        of(false).filter(|mask| *mask != 0).count() + (0..64).map(lane).max().unwrap()
    };
    (of_side(0) + of_side(1)) as u32
}

/// All choices.
fn exhaustive(warps: &[[u64; 2]]) -> u32 {
    let all = 1 << warps.len();
    let least = (0..all).map(|waits| behind(warps, waits)).min().unwrap();
    assert_eq!(least, behind(warps, all - 1), "it is best if all wait");
    (0..all).filter(|&waits| behind(warps, waits) == least).map(u32::count_ones).min().unwrap()
}

#[test]
fn needed_is_the_least_of_all_choices() {
    assert_eq!(needed(&[]), 0);
    // Figure 7 of `thread-block-compaction.txt`.
    assert_eq!(needed(&[[0b0001, 0b1110], [0b0110, 0b1001]]), 2);
    // Figure 8 of `capri.txt`: the warp that takes the branch as a whole need not wait, nor need others for it.
    assert_eq!(needed(&[[0b1111, 0], [0b1001, 0b0110], [0b0011, 0b1100]]), 0);
    assert_eq!(needed(&[[0b1111, 0], [0b1001, 0b0110], [0b0100, 0b1011]]), 2);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..3000 {
        let (lanes, warps) = (random.u32(1..=6), random.usize(1..=8));
        let share = random.u32(1..=4);
        let warp = |random: &mut fastrand::Rng| {
            let live = if random.bool() { u64::MAX } else { random.u64(..) } & ((1 << lanes) - 1);
            let taken = (0..share).fold(u64::MAX, |mask, _| mask & random.u64(..));
            [live & taken, live & !taken]
        };
        let warps: Vec<_> = (0..warps).map(|_| warp(&mut random)).collect();
        assert_eq!(needed(&warps), exhaustive(&warps), "{warps:x?}");
    }
}

fn shape(lanes: u32, warps: u32, compaction: Compaction) -> Shape {
    Shape { compaction, ..Shape::new(lanes, warps).with_divergence(Divergence::BLOCK_STACK) }
}

fn counted(iss: bool) -> MachineOptions {
    let mut options = if iss { checked() } else { MachineOptions::default() };
    options.monitors.push(monitor);
    options
}

/// `thread-block-compaction.txt` Figure 7: of two warps of four threads, three go to C and five to B.
fn figure_7(compaction: Compaction) -> (Compactions, Prediction) {
    let program = Asm::default()
        .put([csrr(5, THREAD_IN_BLOCK), addi(6, ZERO, 0b0110_0001)])
        .put([r(0, 5, 6, 5, 6, 0x33), andi(6, 6, 1)])
        .branch(BNE, 6, ZERO, "c")
        .put([addi(7, ZERO, 1)])
        .jal(ZERO, "d")
        .label("c")
        .put([addi(7, ZERO, 2)])
        .label("d")
        .put([addi(A0, ZERO, 0)])
        .exit();
    let mut machine = Machine::new(&shape(4, 2, compaction), program.program(), &counted(true)).unwrap();
    machine.run().unwrap();
    let Summary { compaction, prediction, .. } = machine.summary();
    (compaction.unwrap(), prediction.unwrap())
}

#[test]
fn figure_7_of_thread_block_compaction() {
    let both_wait = Prediction { stall_right: 2, ..Prediction::default() };
    let counted = Compactions { times: 2, warps_before: 4, warps_after: 3, most_entries: 3 };
    for compaction in [Compaction::SkipUniform, Compaction::Always, Compaction::Every, Compaction::Predict] {
        assert_eq!(figure_7(compaction), (counted, both_wait), "{}", compaction.name());
    }
    assert_eq!(figure_7(Compaction::Off), (Compactions { warps_after: 4, ..counted }, both_wait));
}

/// A loop of 8 turns on two warps of four threads, whose branch diverges both alike in the first four, so that nothing
/// is gained; then the other way round in the second warp, so that each side fits into one.
#[test]
fn a_prediction_follows_the_branch() {
    let (lane, half, turn, late) = (5, 6, 7, 8);
    let program = Asm::default()
        .put([csrr(lane, LANE), sltiu(lane, lane, 2), csrr(half, THREAD_IN_BLOCK), sltiu(half, half, 4)])
        .put([addi(turn, ZERO, 0), addi(9, ZERO, 8)])
        .label("again")
        .put([sltiu(late, turn, 4), r(0, late, half, 6, late, 0x33), r(0, lane, late, 4, late, 0x33)])
        .branch(BNE, late, ZERO, "c")
        .put([addi(10, ZERO, 1)])
        .jal(ZERO, "d")
        .label("c")
        .put([addi(10, ZERO, 2)])
        .label("d")
        .put([addi(turn, turn, 1)])
        .branch(BNE, turn, 9, "again")
        .put([addi(A0, ZERO, 0)])
        .exit()
        .program();
    let of = |history| {
        let capt = Capt { history, ..Capt::DEFAULT };
        let shape = Shape { capt, ..shape(4, 2, Compaction::Predict) };
        let mut machine = Machine::new(&shape, program.clone(), &counted(true)).unwrap();
        machine.run().unwrap();
        machine.summary().prediction.unwrap()
    };
    // The branch at the end of the loop parts nobody. That in it is waited at first; after the turns in which that was
    // in vain it is not, until the table has seen that there is something to be gained.
    let latest = Prediction { bypass_right: 16 + 6, bypass_wrong: 2, stall_right: 6, stall_wrong: 2, bypass_waits: 0 };
    assert_eq!(of(History::Latest), latest);
    let sticky = Prediction { bypass_right: 16, bypass_wrong: 0, stall_right: 8, stall_wrong: 8, bypass_waits: 0 };
    assert_eq!(of(History::Sticky), sticky);
}

/// Of two warps, one goes as a whole to where a thread waits for all others, and so does a thread of the other warp.
#[test]
fn who_waits_where_threads_reconverge_bypasses_and_is_counted() {
    let program = Asm::default()
        .put([csrr(5, THREAD_IN_BLOCK)])
        .branch(BEQ, 5, ZERO, "end")
        .put([sltiu(5, 5, 3)])
        .branch(BEQ, 5, ZERO, "end")
        .put([addi(6, ZERO, 1)])
        .label("end")
        .put([addi(A0, ZERO, 0)])
        .exit()
        .program();
    let of = |compaction| {
        let mut machine = Machine::new(&shape(4, 2, compaction), program.clone(), &counted(true)).unwrap();
        machine.run().unwrap();
        machine.summary().prediction.unwrap()
    };
    let predicted = of(Compaction::Predict);
    assert_eq!((predicted.all(), predicted.bypass_right, predicted.bypass_waits), (4, 2, 1), "{predicted:?}");
    let stalled = of(Compaction::SkipUniform);
    assert_eq!((stalled.all(), stalled.bypass_right, stalled.bypass_waits), (4, 0, 0), "{stalled:?}");
}

/// Of two warps, one comes first to a branch that parts neither, and then is ahead: to the end of a loop's body, which it
/// does not get past; or to its own end, which is no branch.
#[test]
fn cycles_in_which_a_uniform_branch_is_held_are_counted() {
    let program = |turns: i32| {
        let again = |code: Asm| if turns > 1 { code.branch(BNE, 6, ZERO, "again") } else { code };
        let code = Asm::default()
            .put([csrr(5, THREAD_IN_BLOCK), sltiu(5, 5, 4), addi(6, ZERO, turns)])
            .label("again")
            .put([addi(6, 6, -1)])
            // The second warp divides first.
            .branch(BNE, 5, ZERO, "late")
            .put([divu(7, 6, 6), addi(7, 7, 1)])
            .label("late")
            .put([addi(8, 8, 1)]);
        again(code).put([addi(A0, ZERO, 0)]).exit().program()
    };
    let of = |compaction, turns, slack| {
        let shape = Shape { slack, ..shape(4, 2, compaction) };
        let mut machine = Machine::new(&shape, program(turns), &counted(true)).unwrap();
        machine.run().unwrap();
        machine.summary()
    };
    assert_eq!(of(Compaction::SkipUniform, 4, 1).held_ahead, None);
    assert_eq!(of(Compaction::Predict, 1, 1).held_ahead, Some(0));
    let s = of(Compaction::Predict, 4, 1);
    assert!((1..=s.idle.divergence).contains(&s.held_ahead.unwrap()), "{:?} of {:?}", s.held_ahead, s.idle);
    // With slack it gets on, to the branch of the next turn, which may part it.
    for slack in [2, 4] {
        let passes = of(Compaction::Predict, 4, slack);
        assert_eq!((passes.held_ahead, passes.prediction), (Some(0), s.prediction), "{slack}");
        assert!(passes.cycles <= s.cycles, "{} after {}", passes.cycles, s.cycles);
    }
}

/// What a kernel did.
fn ran(kernel: &str, shape: &Shape) -> Summary {
    let kernel = kernels::find(kernel).unwrap();
    let program = heddle_testbench::Program::parse(kernel.elf).unwrap();
    let mut machine = Machine::new(shape, program, &counted(false)).unwrap();
    let driven: Result<_, KernelError> = (kernel.drive)(&mut machine, 1);
    driven.unwrap();
    machine.summary()
}

#[test]
fn counts_agree_with_each_other() {
    for kernel in ["dispatch", "fft"] {
        let with_slack = |slack, compaction| {
            let summary = ran(kernel, &Shape { slack, ..shape(4, 4, compaction) });
            (summary.compaction.unwrap(), summary.prediction.unwrap())
        };
        let of = |compaction| with_slack(1, compaction);
        let (off, stalled) = of(Compaction::Off);
        assert_eq!(off.warps_before, off.warps_after, "{kernel}");
        let (skips, skipped) = of(Compaction::SkipUniform);
        assert!(skips.times > 0 && skips.warps_after <= skips.warps_before, "{kernel}: {skips:?}");
        assert_eq!(skips.times, off.times, "{kernel}: waiting is the same");
        let (_, always) = of(Compaction::Always);
        assert_eq!((always.bypass_right, always.bypass_wrong), (0, 0), "{kernel} always waits");
        // Branches that the side table calls uniform have nothing to gain.
        assert_eq!((skipped.bypass_wrong, skipped.all()), (0, always.all()), "{kernel}");
        assert!(stalled.all() >= always.all(), "{kernel}: no fewer warps without compaction");
        for slack in [1, 2, 4] {
            let (predicts, predicted) = with_slack(slack, Compaction::Predict);
            assert!(predicts.warps_after <= predicts.warps_before, "{kernel}: {predicts:?}");
            assert!(predicted.bypass_right > 0, "{kernel}: {predicted:?}");
            // Where no warp ever parts, each comes to each branch once, wherever it waits.
            assert!(kernel != "fft" || predicted.all() == always.all(), "{kernel}: {predicted:?}, {always:?}");
        }
    }
    let one_warp = ran("fft", &shape(4, 1, Compaction::Predict)).compaction.unwrap();
    assert_eq!(one_warp.warps_before, one_warp.warps_after);
}

/// Does not say that it records.
struct Stepped(Watched);

impl Monitor for Stepped {
    fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        self.0.launch(engine, grid, entry)
    }

    fn cycle(&mut self, engine: &mut dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        self.0.cycle(engine, seed)
    }

    fn summarise(&self, summary: &mut Summary) {
        self.0.summarise(summary);
    }
}

/// Kernels with several launches, on cores with and without a prediction, an issue in every cycle or not.
#[test]
fn what_is_recorded_is_what_each_cycle_shows() {
    let stepped: Attach = |directory, _, shape| Ok(Some(Box::new(Stepped(Watched::new(directory, "core", shape)))));
    for (compaction, slack, issue_interval) in [
        (Compaction::SkipUniform, 1, 1),
        (Compaction::Off, 1, 2),
        (Compaction::Predict, 1, 1),
        (Compaction::Predict, 3, 1),
        (Compaction::Predict, 1, 4),
    ] {
        let shape = Shape { slack, issue_interval, ..shape(4, 4, compaction) };
        for kernel in ["bfs", "hotspot"] {
            let kernel = kernels::find(kernel).unwrap();
            let [together, stepped] =
                [vec![monitor as Attach, crate::issues::monitor], vec![stepped]].map(|monitors| {
                    let options = MachineOptions { monitors, ..MachineOptions::default() };
                    let program = heddle_testbench::Program::parse(kernel.elf).unwrap();
                    let mut machine = Machine::new(&shape, program, &options).unwrap();
                    let driven: Result<_, KernelError> = (kernel.drive)(&mut machine, 1);
                    driven.unwrap();
                    machine.summary()
                });
            let of = |s: &Summary| (s.cycles, s.compaction, s.prediction, s.held_ahead);
            assert_eq!(of(&together), of(&stepped), "{}, {}, {slack}", kernel.name, compaction.name());
            assert!(together.compaction.unwrap().times > 0, "{}", kernel.name);
            assert_eq!(together.held_ahead.is_some(), compaction == Compaction::Predict);
        }
    }
}

/// Both warps come to a branch that parts them while the value of a load, which nobody wants yet, takes its time.
#[test]
fn who_waits_for_writes_alone_is_counted() {
    let program = |loads: bool| {
        let start = Asm::default().put([csrr(5, LANE), andi(5, 5, 1)]);
        let start = if loads { start.put([lw(6, ZERO, 0)]) } else { start };
        let program = start.branch(BNE, 5, ZERO, "end").put([addi(7, ZERO, 1)]).label("end");
        program.put([addi(A0, ZERO, 0)]).exit().program()
    };
    let owed = |compaction, latency, loads| {
        let timing = Timing { latency, ..Timing::FASTEST };
        let shape = Shape { backing: Backing::Model(timing), ..shape(4, 2, compaction) };
        let mut machine = Machine::new(&shape, program(loads), &counted(false)).unwrap();
        machine.run().unwrap();
        machine.summary().owed.unwrap()
    };
    let forms = Compaction::SkipUniform;
    let [soon, late] = [50, 150].map(|latency| owed(forms, latency, true));
    assert!(soon > 0 && late == soon + 100, "{soon} and {late}");
    assert_eq!(owed(forms, 150, false), 0);
    // Warps that stay as they are need not wait.
    assert_eq!(owed(Compaction::Off, 150, true), 0);
}

/// Two warps of two threads at an `if` in an `if`, or at one, each without an `else`.
#[test]
fn entries_are_sides_and_groups() {
    let (thread, turn, other) = (5, 6, 7);
    let program = |nested: bool| {
        let start = Asm::default().put([csrr(thread, THREAD_IN_BLOCK), andi(other, thread, 1), addi(turn, ZERO, 0)]);
        let first = start.branch(BNE, other, ZERO, "end").put([addi(turn, ZERO, 1)]);
        let second = if nested { first.branch(BNE, thread, ZERO, "join") } else { first };
        second
            .put([addi(turn, ZERO, 2)])
            .label("join")
            .put([addi(turn, turn, 1)])
            .label("end")
            .put([addi(A0, ZERO, 0)])
            .exit()
    };
    let most = |nested: bool| {
        let shape = shape(2, 2, Compaction::SkipUniform);
        let mut machine = Machine::new(&shape, program(nested).program(), &counted(true)).unwrap();
        machine.run().unwrap();
        machine.summary().compaction.unwrap().most_entries
    };
    // One runs, and for each branch a group waits for it.
    assert_eq!([false, true].map(most), [2, 3]);
}

#[test]
fn blocks_beside_each_other_are_told_apart() {
    let kernel = kernels::find("hotspot").unwrap();
    let program = heddle_testbench::Program::parse(kernel.elf).unwrap();
    let mut machine = Machine::new(&shape(4, 8, Compaction::Predict), program, &counted(false)).unwrap();
    machine.set_grid(Grid { blocks: 8, threads: 8 }).unwrap();
    machine.run().unwrap();
    let compactions = machine.summary().compaction.unwrap();
    assert!(compactions.warps_before <= 2 * compactions.times && compactions.warps_after <= compactions.warps_before);
}

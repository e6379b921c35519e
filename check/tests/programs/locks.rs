//! Programs whose threads wait for other threads of their warp: they end on every core that is fair, and hang on one
//! that is not.

use heddle_check::checked;
use heddle_simt::divergence::fairness;
use heddle_simt::pipeline::timing;
use heddle_simt::{Backing, Divergence, Order, Replay, Shape, Timing};
use heddle_testbench::Program;
use heddle_testbench::asm::*;
use heddle_testbench::kernels::{self, Device, Kernel, KernelError, LOCKS};
use heddle_testbench::machine::{Machine, MachineOptions, Progress, TraceLine, Watch};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The CSR that counts cycles.
const CYCLE: u32 = 0xc00;

fn drive(shape: &Shape, kernel: &Kernel) -> Result<usize, KernelError> {
    let options = MachineOptions { max_cycles: 3_000_000, ..checked() };
    let mut machine = Machine::new(shape, Program::parse(kernel.elf).unwrap(), &options).unwrap();
    (kernel.drive)(&mut machine, 1).map(|output| output.checked)
}

#[test]
fn every_one_ends_on_every_fair_core() {
    let late = Backing::Model(Timing { latency: 20, jitter: 15, interval: 1, seed: 5 });
    let core = |lanes, warps| Shape { fair: true, reservations: true, patience: 64, ..Shape::new(lanes, warps) };
    for shape in [
        core(1, 2),
        core(4, 2),
        Shape { patience: 4096, ..core(8, 4) },
        Shape { backing: late, ..core(4, 1) },
        Shape { replay: Replay::Serialise, ..core(2, 4) },
        Shape { convergence_barriers: 2, replay: Replay::Serialise, ..core(4, 4) },
        Shape { patience: 2, ..core(16, 1) },
    ] {
        for divergence in [Divergence::PATH_TABLE, Divergence::ARBITER] {
            let shape = match divergence.capabilities().convergence_barriers {
                true => Shape { divergence, ..shape.clone() },
                false => Shape { divergence, convergence_barriers: 0, ..shape.clone() },
            };
            for kernel in LOCKS {
                let checked = drive(&shape, kernel);
                let checked = checked.unwrap_or_else(|error| panic!("{} on {}: {error}", kernel.name, shape.options()));
                assert!(checked > 0, "{}", kernel.name);
            }
        }
    }
}

#[test]
fn locks_are_refused_on_a_core_that_is_not_fair() {
    let error = drive(&Shape::new(4, 1), kernels::find("spin_lock").unwrap()).unwrap_err().to_string();
    let wanted = "the kernel needs paths that give way to each other (--fair on), which the core does not have";
    assert_eq!(error, wanted);
}

/// When each thread issued last, and the most cycles between two issues of one.
#[derive(Default)]
struct Gaps {
    last: BTreeMap<(u32, u32), u64>,
    most: Arc<AtomicU64>,
}

impl Watch for Gaps {
    fn issued(&mut self, line: TraceLine) {
        for thread in line.threads.into_iter().flatten() {
            let last = self.last.insert((line.block, thread), line.cycle);
            self.most.fetch_max(last.map_or(0, |last| line.cycle - last), Ordering::Relaxed);
        }
    }

    fn wants_trace(&self) -> bool {
        true
    }

    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The most instructions to one that may have an outcome, that included.
fn straight(program: &Program) -> u32 {
    let words = (0..program.program_end()).step_by(4).map(|pc| program.word(pc).unwrap_or(0));
    let (mut most, mut run) = (0, 0);
    for word in words {
        run += 1;
        most = most.max(run);
        if matches!(word & 0x7f, 0x63 | 0x67 | 0x6f | 0x73) {
            run = 0;
        }
    }
    most
}

/// The bound in cycles, with lock programs that have no barrier. It is far: no turn takes its longest each time.
#[test]
fn threads_issue_within_the_bound() {
    let late = Backing::Model(Timing { latency: 40, jitter: 15, interval: 1, seed: 5 });
    for (shape, memory) in [
        (Shape { patience: 2, ..Shape::new(4, 2) }, 0),
        (Shape { patience: 64, ..Shape::new(8, 4) }, 0),
        (Shape { patience: 16, backing: late, ..Shape::new(4, 2) }, 40 + 15),
    ] {
        let shape = Shape { fair: true, reservations: true, ..shape };
        // Each lane's access may be served alone, after those of all others.
        let latency = timing::ISSUE_TO_WRITE + 4 + shape.threads() * (memory + 2);
        for kernel in LOCKS.iter().filter(|kernel| kernel.name != "lock_and_barrier") {
            let program = Program::parse(kernel.elf).unwrap();
            let bound = fairness::cycles(&shape, straight(&program), latency);
            let gaps = Gaps::default();
            let most = gaps.most.clone();
            let mut machine = Machine::new(&shape, program, &MachineOptions::default()).unwrap();
            machine.watch(Box::new(gaps));
            (kernel.drive)(&mut machine, 1).unwrap();
            let most = most.load(Ordering::Relaxed);
            let _ = writeln!(std::io::stderr(), "{} on {}: {most} of {bound} cycles", kernel.name, shape.options());
            assert!(0 < most && most <= bound, "{} on {}: {most} > {bound}", kernel.name, shape.options());
        }
    }
}

/// Whatever the order of traversal.
#[test]
fn every_one_ends_in_every_order() {
    for &(_, order) in Order::ALL.iter().skip(1) {
        for (lanes, warps, barriers, patience) in [(4, 2, 0, 64), (8, 1, 2, 512)] {
            let shape = Shape { fair: true, reservations: true, order, patience, ..Shape::new(lanes, warps) };
            let shape = Shape { convergence_barriers: barriers, ..shape };
            for kernel in LOCKS {
                let checked = drive(&shape, kernel);
                let checked = checked.unwrap_or_else(|error| panic!("{} on {}: {error}", kernel.name, shape.options()));
                assert!(checked > 0, "{}", kernel.name);
            }
        }
    }
}

/// The same program, which is not asked whether the core suits it: the threads that spin and the one that has the lock are
/// named.
#[test]
fn a_lock_hangs_where_paths_do_not_give_way() {
    let spins = "threads 1-7 of block 0 go round 0x00000040 … 0x0000004c (main+0x14) for ever; thread 0 of block 0 \
                 suspended at 0x00000050 (main+0x24)";
    for divergence in Divergence::ALL {
        for reservations in [false, true] {
            let shape = Shape { reservations, ..Shape::new(4, 2) }.with_divergence(*divergence);
            let options = MachineOptions { max_cycles: 20_000, ..MachineOptions::default() };
            let program = Program::parse(kernels::find("spin_lock").unwrap().elf).unwrap();
            let mut machine = Machine::new(&shape, program, &options).unwrap();
            let error = machine.launch().unwrap_err().to_string();
            assert!(error.starts_with("the program hangs, as its state after "), "{}: {error}", divergence.name());
            assert!(error.ends_with(spins), "{}: {error}", divergence.name());
        }
    }
}

/// Programs that spin and do not hang: one ends, one counts, one looks at the clock, one is about to see what it waits for.
#[test]
fn who_spins_for_a_time_is_not_said_to_hang() {
    let counts = Asm::default().label("loop").put([addi(5, 5, 1)]).jal(ZERO, "loop");
    let looks = Asm::default().label("loop").put([csrr(5, CYCLE)]).jal(ZERO, "loop");
    let looks_away = Asm::default().label("loop").put([csrr(5, CYCLE), addi(5, ZERO, 0)]).jal(ZERO, "loop");
    let spins = Asm::default().label("loop").put([addi(5, ZERO, 1)]).jal(ZERO, "loop");
    let waits = Asm::default()
        .put([csrr(5, LANE), addi(6, ZERO, 1), slli(6, 6, 15)])
        .branch(BNE, 5, ZERO, "wait")
        .label("work")
        .put([addi(6, 6, -1)])
        .branch(BNE, 6, ZERO, "work")
        .put([sw(6, ZERO, 0x400)])
        .jal(ZERO, "end")
        .label("wait")
        .put([lw(7, ZERO, 0x400)])
        .branch(BNE, 7, ZERO, "wait")
        .label("end")
        .put([addi(A0, ZERO, 0)])
        .exit();
    for (program, hangs, ends) in [
        (counts, false, false),
        (looks, false, false),
        (looks_away, false, false),
        (spins, true, false),
        (waits, false, true),
    ] {
        for shape in [Shape::new(2, 1), Shape::new(2, 1).with_divergence(Divergence::DUAL_PATH)] {
            let options = MachineOptions { max_cycles: if ends { 1 << 20 } else { 10_000 }, ..checked() };
            let mut machine = Machine::new(&shape, program.program(), &options).unwrap();
            machine.write(0x400, &1u32.to_le_bytes()).unwrap();
            let result = machine.launch().map_err(|error| error.to_string());
            assert_eq!(result.is_ok(), ends, "{result:?}");
            let error = result.err().unwrap_or_default();
            assert_eq!(error.contains("hangs"), hangs, "{error}");
            assert!(ends || hangs || error.contains("did not end in 10000 cycles"), "{error}");
        }
    }
}

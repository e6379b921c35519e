//! Programs whose threads wait for other threads of their warp: they end on every core that is fair, and hang on one
//! that is not.

use heddle_check::checked;
use heddle_simt::{Backing, Divergence, Order, Replay, Shape, Timing};
use heddle_testbench::Program;
use heddle_testbench::kernels::{self, Device, Kernel, KernelError, LOCKS};
use heddle_testbench::machine::{Machine, MachineOptions};

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

/// The same program, which is not asked whether the core suits it.
#[test]
fn a_lock_hangs_where_paths_do_not_give_way() {
    for divergence in Divergence::ALL {
        let shape = Shape::new(4, 1).with_divergence(*divergence);
        let options = MachineOptions { max_cycles: 100_000, ..checked() };
        let program = Program::parse(kernels::find("spin_lock").unwrap().elf).unwrap();
        let mut machine = Machine::new(&shape, program, &options).unwrap();
        let error = machine.launch().unwrap_err().to_string();
        assert!(error.contains("100000 cycles"), "{}: {error}", divergence.name());
    }
}

//! The commit check looks at many cycles at once: that says what looking at each does, on every mechanism and however a
//! launch ends.

use heddle_check::commit::{CommitCheck, Mismatch};
use heddle_check::random::{self, Features};
use heddle_check::{checked, compaction, issues};
use heddle_sim::Engine;
use heddle_sim::directory::Directory;
use heddle_simt::Shape;
use heddle_simt::divergence::mechanism::Divergence;
use heddle_testbench::Program;
use heddle_testbench::asm::*;
use heddle_testbench::grid::{Grid, GridError};
use heddle_testbench::kernels::DeviceError;
use heddle_testbench::machine::{
    Attach, Machine, MachineError, MachineOptions, Monitor, Progress, Stop, Summary, Watch,
};
use heddle_testbench::program::ProgramError;
use std::ops::ControlFlow;

/// The same check, which does not say that it records.
struct Stepped(CommitCheck);

impl Monitor for Stepped {
    fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        self.0.launch(engine, grid, entry)
    }

    fn cycle(&mut self, engine: &mut dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        Monitor::cycle(&mut self.0, engine, seed)
    }

    fn end(&mut self, engine: &dyn Engine, seed: u64, stop: Option<&Stop>) -> Result<(), Box<Mismatch>> {
        Monitor::end(&mut self.0, engine, seed, stop)
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.0.write(address, bytes)
    }

    fn memory(&self) -> Option<&[u8]> {
        Monitor::memory(&self.0)
    }

    fn compared(&self) -> u64 {
        self.0.compared()
    }
}

fn attach(directory: &Directory, program: &Program, shape: &Shape) -> Result<Option<Box<dyn Monitor>>, ProgramError> {
    Ok(Some(Box::new(Stepped(CommitCheck::new(directory, program, shape)?))))
}

/// Options of a machine whose check looks at each cycle.
pub fn stepped() -> MachineOptions {
    MachineOptions { monitors: vec![attach], ..checked() }
}

/// A machine of each kind.
fn both(shape: &Shape, program: &Program, options: &MachineOptions) -> [Machine; 2] {
    [checked(), stepped()].map(|MachineOptions { monitors, .. }| {
        let options = MachineOptions { monitors, ..options.clone() };
        Machine::new(shape, program.clone(), &options).unwrap()
    })
}

/// What a launch comes to: the error, the cycle, what was compared, and the counters.
fn end(machine: &mut Machine) -> (String, u64, u64, String) {
    let said = machine.run().map_or_else(|error| error.to_string(), |()| "good".into());
    (said, machine.simulation().engine().cycle(), machine.compared(), format!("{:?}", machine.summary()))
}

fn shape() -> Shape {
    Shape { memory: 64 << 10, program: 16 << 10, stack: 64, ..Shape::new(4, 2) }
}

/// Goes round, so many thousand cycles and some more, before it ends.
fn long(thousands: i32) -> Asm {
    Asm::default()
        .put([lui(5, thousands as u32), addi(6, ZERO, 0)])
        .label("again")
        .put([addi(5, 5, -16), add(6, 6, 5)])
        .branch(BNE, 5, ZERO, "again")
        .label("after")
        .put([addi(7, 6, 1), addi(A0, ZERO, 0)])
        .exit()
}

#[test]
fn random_programs_on_every_mechanism() {
    let mut mechanisms = 0;
    for &divergence in Divergence::ALL {
        let shape = shape().with_divergence(divergence);
        let features = Features::of(&shape);
        let first = random::program(0).assemble(&shape, features).program();
        let [mut left, mut right] = both(&shape, &first, &MachineOptions::default());
        for seed in 0..4 {
            let program = random::program(seed).assemble(&shape, features).program();
            left.load(program.clone()).unwrap();
            right.load(program).unwrap();
            let ended = end(&mut left);
            assert_eq!(ended, end(&mut right), "{divergence:?}, seed {seed}");
            assert!(ended.2 > 0, "{divergence:?}, seed {seed}");
        }
        mechanisms += 1;
    }
    assert!(mechanisms >= 5);
}

/// What is wrong late shows as it does when each cycle is looked at: with the state that the core had then.
#[test]
fn what_is_wrong_late_is_found_where_it_is() {
    let program = long(32);
    let [mut left, mut right] = both(&shape(), &program.program(), &MachineOptions::default());
    for machine in [&mut left, &mut right] {
        let memory = machine.simulation().directory().memories.find("instructions").unwrap();
        let wrong = [u64::from(addi(7, 6, 2))];
        machine.simulation().engine().memory_load(memory, program.at("after"), &wrong);
    }
    let ended = end(&mut left);
    assert!(ended.0.contains("t2 is 0x") && ended.0.contains("paths of warp 0:\n  HCT0"), "{}", ended.0);
    assert!(ended.1 > 1 << 15, "{} cycles: no state has been saved since the first", ended.1);
    assert_eq!(ended, end(&mut right));
}

/// Those that only count have counted what was before it, and nothing behind it.
#[test]
fn who_counts_stops_where_something_is_wrong() {
    let (turn, side) = (5, 9);
    // Each turn parts the lanes.
    let turns = |code: Asm, name: &str, turns: i32| {
        let skip = format!("{name}_skip");
        code.put([addi(turn, ZERO, turns)])
            .label(name)
            .put([csrr(side, LANE), add(side, side, turn), andi(side, side, 1)])
            .branch(BNE, side, ZERO, &skip)
            .put([addi(6, 6, 1)])
            .label(&skip)
            .put([addi(turn, turn, -1)])
            .branch(BNE, turn, ZERO, name)
    };
    let first = turns(Asm::default().put([addi(6, ZERO, 0)]), "first", 300).label("after").put([addi(7, 6, 1)]);
    let program = turns(first, "second", 300).put([addi(A0, ZERO, 0)]).exit();
    let shape = Shape { issue_interval: 2, ..shape().with_divergence(Divergence::BLOCK_STACK) };
    let ends = |wrong: bool| {
        [checked(), stepped()].map(|options| {
            let monitors = [vec![compaction::monitor as Attach], options.monitors, vec![issues::monitor]].concat();
            let options = MachineOptions { monitors, ..checked() };
            let mut machine = Machine::new(&shape, program.program(), &options).unwrap();
            if wrong {
                let memory = machine.simulation().directory().memories.find("instructions").unwrap();
                let word = [u64::from(addi(7, 6, 2))];
                machine.simulation().engine().memory_load(memory, program.at("after"), &word);
            }
            let ended = end(&mut machine);
            (ended, machine.summary())
        })
    };
    let [(good, whole), (_, stepped)] = ends(false);
    assert_eq!((good.0.as_str(), whole), ("good", stepped));
    let [(left, part), (right, stepped)] = ends(true);
    assert!(left.0.contains("t2 is 0x"), "{}", left.0);
    assert_eq!((left, part), (right, stepped));
    let times = |s: Summary| s.compaction.unwrap().times;
    assert!(times(part) > 0 && times(part) < times(whole), "{} of {}", times(part), times(whole));
}

#[test]
fn launches_that_are_given_up_are_given_up_in_the_same_cycle() {
    for max_cycles in [1, 511, 512, 513, 5000] {
        let options = MachineOptions { max_cycles, ..MachineOptions::default() };
        let [mut left, mut right] = both(&shape(), &long(64).program(), &options);
        let ended = end(&mut left);
        assert!(ended.0.contains(&format!("did not end in {max_cycles} cycles")), "{}", ended.0);
        assert_eq!(ended, end(&mut right));
    }
}

#[test]
fn a_hang_is_found() {
    let forever = Asm::default().label("here").jal(ZERO, "here");
    let mut machine = Machine::new(&shape(), forever.program(), &checked()).unwrap();
    let error = machine.run().unwrap_err();
    assert!(matches!(error, MachineError::Hangs { .. }), "{error}");
}

#[test]
fn faults_and_failed_assertions_are_the_same() {
    let faults = Asm::default().put([addi(5, 0, 2), jalr(0, 5, 0)]).exit();
    let [mut left, mut right] = both(&shape(), &faults.program(), &MachineOptions::default());
    let ended = end(&mut left);
    assert!(ended.0.contains(" at 0x00000004"), "{}", ended.0);
    assert_eq!(ended, end(&mut right));
    // A call that is too deep fails an assertion, in the middle of a batch.
    let deep = Asm::default().label("again").jal(1, "again");
    let [mut left, mut right] = both(&shape(), &deep.program(), &MachineOptions::default());
    let ended = end(&mut left);
    assert!(ended.0.starts_with("assertion `"), "{}", ended.0);
    assert_eq!(ended, end(&mut right));
}

/// Breaks the launch off at the sixth look, and asks for a trace if it is to.
struct Breaks {
    looks: u32,
    traces: bool,
}

impl Watch for Breaks {
    fn wants_trace(&self) -> bool {
        self.traces
    }

    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        self.looks += 1;
        if self.looks == 6 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_launch_can_be_broken_off_between_batches_and_traced() {
    let mut machine = Machine::new(&shape(), long(64).program(), &checked()).unwrap();
    machine.watch(Box::new(Breaks { looks: 0, traces: false }));
    let error = machine.run().unwrap_err();
    assert!(matches!(error, MachineError::Interrupted), "{error}");
    assert!(machine.compared() > 0);
    machine.load(long(1).program()).unwrap();
    machine.watch(Box::new(Breaks { looks: 6, traces: true }));
    machine.run().unwrap();
    let traced = machine.compared();
    machine.unwatch();
    machine.load(long(1).program()).unwrap();
    machine.run().unwrap();
    assert_eq!(machine.compared(), traced);
}

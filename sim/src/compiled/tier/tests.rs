use super::*;
use crate::checks::Checks;
use crate::compiled::cc::compiler_or_note;
use crate::compiled::jit::Allocation;
use crate::compiled::vector::Vectors;
use crate::compiled::{Compiled, OptLevel, QUICK_EDGES};
use crate::engine::Engine;
use crate::fuzz::{Limits, compare, design, seeds};
use crate::interpreter::Interpreter;

const EDGE: Purpose = Purpose::Edge { reset: false, checks: Checks::All, record: false };

/// Waits for what is done in the background.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn code_of_c_with_vectors_of_every_width_does_what_the_interpreter_does() {
    let Some(compiler) = compiler_or_note() else { return };
    for (seed, bits) in seeds(9).zip([128, 256, 512].into_iter().cycle()) {
        let limits = if seed % 4 == 3 { Limits::default() } else { Limits::lanes(3..=64) };
        let directory = Arc::new(Directory::new(&design(seed, &limits)));
        let mut engine = Compiled::new(&directory, seed, OptLevel::Tables).unwrap();
        let source = engine.plan.in_c(&directory, EDGE, Vectors { bits });
        let library = compiler.compile(&source, &AtomicBool::new(false)).unwrap();
        engine.functions[0].function = Function::load(&library, engine.plan.layout.size).unwrap();
        assert_eq!((engine.functions[0].purpose, engine.tier()), (EDGE, Tier::Second));
        let mut interpreter = Interpreter::new(&directory, seed).unwrap();
        compare(&mut interpreter, &mut engine, seed, 40)
            .unwrap_or_else(|mismatch| panic!("seed {seed}, vectors of {bits} bits: {mismatch}"));
    }
}

/// A design, in the tiers with these times, and in the first tier alone.
fn two(seed: u64, times: Times) -> [Compiled; 2] {
    let directory = Arc::new(Directory::new(&design(seed, &Limits::default())));
    let mut tiered = Compiled::new(&directory, seed, OptLevel::Tiered).unwrap();
    tiered.tiers = Some(Tiers::new(times));
    [tiered, Compiled::new(&directory, seed, OptLevel::Tables).unwrap()]
}

fn same(engines: &mut [Compiled; 2]) {
    let [left, right] = engines;
    assert_eq!(left.cycle(), right.cycle());
    assert!(left.state == right.state, "the states differ in cycle {}", left.cycle());
}

#[test]
fn a_run_goes_on_in_the_second_tier_with_the_same_state() {
    if compiler_or_note().is_none() {
        return;
    }
    let mut engines = two(3, Times { look: Duration::ZERO, build: Duration::ZERO, trial: Duration::from_millis(20) });
    let started = Instant::now();
    let over = |engine: &Compiled| matches!(engine.tiers.as_ref().unwrap().stage, Stage::Over(_));
    while !over(&engines[0]) && started.elapsed() < LONG {
        let ends = engines.each_mut().map(|engine| engine.run(5000, None));
        assert_eq!(ends[0], ends[1]);
        same(&mut engines);
    }
    assert!(over(&engines[0]), "nothing came of it in {LONG:?}");
    let ends = engines.each_mut().map(|engine| engine.run(5000, None));
    assert_eq!(ends[0], ends[1]);
    same(&mut engines);
}

#[test]
fn a_run_goes_on_in_thorough_code_with_the_same_state() {
    for (seed, edges) in seeds(6).zip([1, 2, 7, 16, 40, 64].into_iter().cycle()) {
        let mut engines = two(seed, Times::default());
        assert_eq!(engines[0].functions[0].quick, Some(QUICK_EDGES));
        assert_eq!(engines[1].functions[0].quick, None);
        engines[0].functions[0].quick = Some(edges);
        for cycles in [1, 10, 1, 30, 1, 40] {
            let ends = engines.each_mut().map(|engine| engine.run(cycles, None));
            assert_eq!(ends[0], ends[1], "seed {seed}");
            same(&mut engines);
        }
        let code = engines.each_ref().map(|engine| engine.functions[0].function.code_bytes);
        assert!(code[0] == code[1] && engines[0].functions[0].quick.is_none(), "seed {seed}: {code:?}");
    }
}

#[test]
fn the_faster_of_two_stays() {
    let [mut tiered, plain] = two(3, Times { look: LONG, build: LONG, trial: Duration::from_secs(1) });
    let state = tiered.state.len();
    for (second, stays) in [(500, Tier::Second), (700, Tier::First)] {
        let code = plain.plan.compile(&plain.plan.flatten(&plain.directory, EDGE).unwrap(), Allocation::Thorough);
        let first = Duration::from_millis(600);
        let tiers = tiered.tiers.as_mut().unwrap();
        tiers.stage =
            Stage::Trial { second: Box::new(code), time: [first, Duration::ZERO], cycles: [1000, 0], turn: 1 };
        tiers.advance(
            (&plain.directory, &plain.plan, EDGE),
            &mut tiered.functions[0].function,
            state,
            1000,
            Duration::from_millis(second),
        );
        assert_eq!(tiers.tier(), stays, "600 and {second} ms for as many cycles");
    }
}

#[test]
fn short_runs_start_nothing_and_what_is_dropped_is_given_up() {
    let mut engines = two(5, Times::default());
    engines[0].run(2000, None);
    assert!(matches!(engines[0].tiers.as_ref().unwrap().stage, Stage::Waiting));

    let (sender, receiver) = channel::<()>();
    drop(sender);
    let directory = engines[0].directory.clone();
    let stop = AtomicBool::new(false);
    if let Ok(compiler) = Compiler::found() {
        let source = engines[0].plan.in_c(&directory, EDGE, compiler.vectors);
        let _ = std::fs::remove_file(compiler.library(&source));
        let result = library((&directory, &engines[0].plan, EDGE), &receiver, &stop);
        assert!(matches!(result, Err(CompilerError::Stopped)), "{result:?}");
    }
}

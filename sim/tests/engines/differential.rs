//! Every engine against the interpreter on random designs: every output, probe, signal, register and memory word, each
//! cycle. `HEDDLE_FUZZ=5000 cargo test --release -p heddle-sim --test engines differential` tries more of them;
//! `HEDDLE_SEED=17` tries one.

use heddle_hdl::netlist::Module;
use heddle_sim::compiled::OptLevel;
use heddle_sim::fuzz::{Limits, Mismatch, compare, hunt, none_left_out, seeds};
use heddle_sim::simulation::{EngineKind, Options, Simulation};
use std::sync::Arc;

/// Different shapes: deep and mixed; many lanes of 32 bits; one large flat module.
fn limits(seed: u64) -> Limits {
    match seed % 4 {
        0 | 1 => Limits::default(),
        2 => Limits { depth: 1, replicas: 17, width: 32, ..Limits::default() },
        _ => Limits { depth: 0, nodes: 200, ..Limits::default() },
    }
}

fn differs(top: &Arc<Module>, engine: EngineKind, seed: u64) -> Result<(), Box<Mismatch>> {
    let make = |engine| {
        let options = Options { engine, seed, ..Options::default() };
        Simulation::new(top, &options).expect("random designs have no loops")
    };
    let (mut left, mut right) = (make(EngineKind::Interpreter), make(engine));
    compare(left.engine(), right.engine(), seed, 25)
}

/// Each engine on the design of a seed; C, which takes long to compile, on every eighth, unless more are asked for than
/// usual. The tiers are two of the others, one after the other.
fn check(seed: u64, limits: &Limits) {
    let is_chosen = |engine: &EngineKind| match engine {
        EngineKind::Interpreter | EngineKind::Compiled(OptLevel::Tiered) => false,
        EngineKind::Compiled(OptLevel::C) => seed.is_multiple_of(8) || none_left_out(),
        EngineKind::Compiled(_) => true,
    };
    for &engine in EngineKind::ALL.iter().filter(|engine| is_chosen(engine)) {
        hunt(seed, limits, |top| differs(top, engine, seed))
            .unwrap_or_else(|report| panic!("{engine:?} on the right: {report}"));
    }
}

#[test]
fn engines_agree_on_random_designs() {
    seeds(120).for_each(|seed| check(seed, &limits(seed)));
}

#[test]
fn engines_agree_on_replicated_instances() {
    let usual = if std::env::var_os("HEDDLE_LONG").is_some() { 100 } else { 50 };
    seeds(usual).for_each(|seed| check(seed, &Limits::lanes(1..=64)));
}

#[test]
fn engines_agree_on_every_number_of_copies() {
    // All small numbers and those around multiples of 8, unless the environment asks for more.
    let all = none_left_out();
    let is_chosen = |copies: u32| all || copies <= 17 || matches!(copies % 8, 0 | 1 | 7);
    let numbers = seeds(64).map(|seed| (seed, seed as u32 % 64 + 1));
    numbers.filter(|&(_, copies)| is_chosen(copies)).for_each(|(seed, copies)| {
        check(seed, &Limits::lanes(copies..=copies));
    });
}

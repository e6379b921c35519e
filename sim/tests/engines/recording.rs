//! Recordings of every engine against those of the interpreter, on random designs: what was recorded, and state.

use heddle_hdl::netlist::Module;
use heddle_sim::fuzz::{Limits, Mismatch, compare_recordings, hunt, seeds};
use heddle_sim::simulation::{EngineKind, Options, Simulation};
use std::sync::Arc;

fn differs(top: &Arc<Module>, engine: EngineKind, seed: u64) -> Result<(), Box<Mismatch>> {
    let make = |engine| {
        let options = Options { engine, seed, ..Options::default() };
        Simulation::new(top, &options).expect("random designs have no loops")
    };
    let (mut left, mut right) = (make(EngineKind::Interpreter), make(engine));
    compare_recordings(left.engine(), right.engine(), seed, 120)
}

fn check(seed: u64, limits: &Limits) {
    for &engine in EngineKind::ALL.iter().filter(|e| **e != EngineKind::Interpreter) {
        hunt(seed, limits, |top| differs(top, engine, seed))
            .unwrap_or_else(|report| panic!("{engine:?} on the right: {report}"));
    }
}

#[test]
fn recordings_agree_on_random_designs() {
    seeds(30).for_each(|seed| check(seed, &Limits::default()));
}

#[test]
fn recordings_agree_on_replicated_instances() {
    seeds(15).for_each(|seed| check(seed, &Limits::lanes(1..=17)));
}

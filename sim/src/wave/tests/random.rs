//! Waveforms of random designs: what files say is what an interpreter's values are, for every engine.

#![cfg(feature = "fuzz")]

use super::read::Read;
use super::{Wave, file};
use crate::directory::{Directory, Table};
use crate::engine::Engine;
use crate::fuzz::{Limits, Stimulus, design, seeds};
use crate::interpreter::Interpreter;
use crate::simulation::{EngineKind, Options, Simulation};
use heddle_hdl::Bits;
use heddle_hdl::netlist::Module;
use std::collections::BTreeMap;
use std::sync::Arc;

/// In one file.
const CYCLES: u64 = 30;

/// Runs an engine with the inputs of a seed; `each` sees every cycle, settled, and whether reset is on.
fn drive(engine: &mut dyn Engine, seed: u64, mut each: impl FnMut(&dyn Engine, bool)) {
    let mut stimulus = Stimulus::new(seed);
    for cycle in 0..CYCLES {
        let reset = cycle % 7 == 1;
        stimulus.drive(&mut [&mut *engine]);
        engine.set_reset(reset);
        engine.settle();
        each(engine, reset);
        engine.step();
    }
}

/// Paths, with values as digits, as a file should have them.
fn values(engine: &dyn Engine, directory: &Directory) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let top = &directory.top.name;
    let mut add = |table: &Table, value: &dyn Fn(usize) -> Bits| {
        for (k, entry) in table.iter().enumerate() {
            let scope = &directory.scopes[entry.scope].path;
            let name = entry.path[if scope.is_empty() { 0 } else { scope.len() + 1 }..].replace('.', "_");
            let path = if scope.is_empty() { format!("{top}.{name}") } else { format!("{top}.{scope}.{name}") };
            let value = value(k);
            let digits = (0..entry.width).rev().map(|bit| if value.bit(bit) { '1' } else { '0' }).collect();
            values.entry(path).or_insert(digits);
        }
    };
    add(&directory.outputs, &|k| engine.peek(k));
    add(&directory.registers, &|k| engine.register(k));
    add(&directory.signals, &|k| engine.signal(k).unwrap());
    add(&directory.read_registers, &|k| engine.read_register(k));
    add(&directory.probes, &|k| engine.probe(k));
    values
}

/// What a file should say, from an interpreter that is asked for one value after the other.
fn expected(top: &Arc<Module>, seed: u64) -> BTreeMap<String, Vec<(u64, String)>> {
    let directory = Arc::new(Directory::new(top));
    let mut engine = Interpreter::new(&directory, seed).unwrap();
    engine.show_signals();
    let mut changes: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    drive(&mut engine, seed, |engine, reset| {
        let mut now = values(engine, &directory);
        now.insert(format!("{}.rst", top.name), u8::from(reset).to_string());
        for (path, value) in now {
            let changes = changes.entry(path).or_default();
            if changes.last().is_none_or(|(_, last)| *last != value) {
                changes.push((10 * engine.cycle(), value));
            }
        }
    });
    let clock = (0..2 * CYCLES + 1).map(|half| (5 * half, ((half + 1) % 2).to_string()));
    changes.insert(format!("{}.clk", top.name), clock.collect());
    changes
}

/// An engine's run in a file of each format.
fn recorded(top: &Arc<Module>, engine: EngineKind, seed: u64) -> [Read; 2] {
    let mut simulation = Simulation::new(top, &Options { engine, seed, ..Options::default() }).unwrap();
    simulation.engine().show_signals();
    let paths = ["vcd", "fst"].map(|format| file(&format!("{seed}-random.{format}")));
    let mut waves = paths.each_ref().map(|path| Wave::create(path, simulation.directory()).unwrap());
    drive(simulation.engine(), seed, |engine, reset| {
        waves.iter_mut().for_each(|wave| wave.sample(engine, reset).unwrap());
    });
    waves.into_iter().for_each(|wave| wave.finish().unwrap());
    paths.map(|path| {
        let read = Read::of(&path);
        std::fs::remove_file(path).unwrap();
        read
    })
}

fn check(limits: &Limits, seed: u64) {
    let top = design(seed, limits);
    let expected = expected(&top, seed);
    for &engine in EngineKind::ALL {
        for (format, read) in ["vcd", "fst"].into_iter().zip(recorded(&top, engine, seed)) {
            let here = format!("seed {seed} (HEDDLE_SEED={seed}), {engine:?}, {format}");
            assert_eq!(read.end, 10 * CYCLES, "{here}");
            assert!(read.changes.keys().eq(expected.keys()), "{here}: other names");
            for (path, changes) in &read.changes {
                assert_eq!(changes, &expected[path], "{here}: {path}");
                assert_eq!(read.widths[path] as usize, changes[0].1.len(), "{here}: {path}");
            }
        }
    }
}

#[test]
fn waveforms_have_the_values_of_random_designs() {
    seeds(20).for_each(|seed| check(&Limits::default(), seed));
}

#[test]
fn waveforms_have_the_values_of_replicated_instances() {
    seeds(20).for_each(|seed| check(&Limits::lanes(1..=64), seed));
}

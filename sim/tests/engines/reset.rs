//! A module that is reset alone does what the design's reset does to it: on random designs, every output, register,
//! memory word, failure and cover, each cycle.

use heddle_hdl::reset::resettable;
use heddle_sim::directory::Directory;
use heddle_sim::engine::Engine;
use heddle_sim::fuzz::{Limits, design, random_bits, seeds};
use heddle_sim::interpreter::Interpreter;
use std::panic::Location;
use std::sync::Arc;

#[test]
fn a_part_is_reset_as_a_design_is() {
    let mut resettables = 0;
    for seed in seeds(150) {
        let top = design(seed, &if seed % 3 == 0 { Limits::lanes(1..=8) } else { Limits::default() });
        let other = resettable(&top, Location::caller());
        let local = other.inputs.len() - 1;
        if other.inputs.len() == top.inputs.len() {
            continue;
        }
        resettables += 1;
        let engine = |top| Interpreter::new(&Arc::new(Directory::new(top)), seed).unwrap();
        let (mut left, mut right) = (engine(&top), engine(&other));
        let mut r = fastrand::Rng::with_seed(seed);
        for _ in 0..40 {
            for (k, input) in top.inputs.iter().enumerate() {
                let value = random_bits(&mut r, input.width);
                left.poke(k, &value);
                right.poke(k, &value);
            }
            let reset = r.u32(..4) == 0;
            left.set_reset(reset);
            right.poke_u64(local, reset.into());
            left.settle();
            right.settle();
            same(&left, &right, seed);
            left.step();
            right.step();
        }
        same(&left, &right, seed);
    }
    assert!(resettables > 0);
}

fn same(left: &dyn Engine, right: &dyn Engine, seed: u64) {
    let d = left.directory();
    let at = |path: &str| format!("`{path}` in cycle {}, seed {seed}", left.cycle());
    for (k, e) in d.outputs.iter().enumerate() {
        assert_eq!(left.peek(k), right.peek(k), "{}", at(&e.path));
    }
    for (k, e) in d.registers.iter().enumerate() {
        assert_eq!(left.register(k), right.register(k), "{}", at(&e.path));
    }
    for (k, e) in d.memories.iter().enumerate() {
        for address in 0..1 << d.memory(k).address_width {
            assert_eq!(left.memory_read(k, address), right.memory_read(k, address), "{}", at(&e.path));
        }
    }
    for (k, e) in d.properties.iter().enumerate() {
        assert_eq!(left.cover_hits(k), right.cover_hits(k), "{}", at(&e.path));
    }
    assert_eq!(left.failures(), right.failures(), "cycle {}, seed {seed}", left.cycle());
}

//! Mutants of random designs are designs: legal, equal in every engine, and Verilog can be made of them.

use heddle_hdl::mutate::mutants;
use heddle_sim::Engine;
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::fuzz::{Limits, compare, design, is_legal};
use heddle_sim::interpreter::Interpreter;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Of each design so many mutants, spread over its list.
const OF_EACH: usize = 12;

#[test]
fn mutants_are_designs() {
    let mut kinds = BTreeSet::new();
    let (mut made, mut looped) = (0, 0);
    for seed in 0..40 {
        let top = design(seed, &Limits::default());
        let original = Directory::new(&top);
        let all = mutants(&top);
        for mutant in all.iter().skip(seed as usize % 7).step_by((all.len() / OF_EACH).max(1)) {
            let context = format!("seed {seed}, {}", mutant.name);
            let Ok(mutated) = mutant.apply(&top) else {
                looped += 1;
                continue;
            };
            assert!(mutated.modules().iter().all(|m| is_legal(m)), "{context}");
            let directory = Arc::new(Directory::new(&mutated));
            let paths = |d: &Directory| -> Vec<String> {
                [&d.outputs, &d.signals, &d.registers, &d.memories, &d.probes, &d.properties]
                    .iter()
                    .flat_map(|table| table.iter().map(|e| format!("{} {}", e.path, e.width)))
                    .collect()
            };
            assert_eq!(paths(&directory), paths(&original), "{context}");
            let mut interpreter = Interpreter::new(&directory, seed).unwrap();
            let mut compiled = Compiled::new(&directory, seed, OptLevel::default()).unwrap();
            let engines: [&mut dyn Engine; 2] = [&mut interpreter, &mut compiled];
            let [left, right] = engines;
            compare(left, right, seed, 30).unwrap_or_else(|e| panic!("{context}: {e}"));
            assert!(!heddle_gen::verilog(&mutated, &heddle_gen::Options::default()).sources.is_empty(), "{context}");
            kinds.insert(mutant.kind.clone());
            made += 1;
        }
    }
    assert!(made > 300 && looped * 10 < made, "{made} made, {looped} would loop");
    assert!(kinds.len() > 40, "{kinds:?}");
}

//! A block by itself on random inputs, the mutant beside the original.

use heddle_hdl::netlist::{Module, PropertyKind};
use heddle_sim::Engine;
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::fuzz::random_bits;
use std::sync::Arc;

/// Starts, and cycles of each.
const STARTS: u64 = 300;
const CYCLES: u64 = 400;

/// The first output in which the module of the two designs differs. A start ends where the inputs break an assumption
/// of the module, since what it does then does not matter.
pub fn differs_alone(top: &Arc<Module>, mutated: &Arc<Module>, module: &str, seed: u64) -> Option<String> {
    let engine = |design: &Arc<Module>| {
        let module = design.modules().into_iter().find(|m| m.name == module).expect("the design has the module");
        Compiled::new(&Arc::new(Directory::new(&module)), seed, OptLevel::default()).expect("no loop was found")
    };
    let (mut original, mut mutant) = (engine(top), engine(mutated));
    (0..STARTS).find_map(|start| differs(&mut original, &mut mutant, seed.wrapping_add(start)))
}

fn differs(original: &mut Compiled, mutant: &mut Compiled, seed: u64) -> Option<String> {
    let directory = original.directory().clone();
    let mut random = fastrand::Rng::with_seed(seed);
    let assumed = |engine: &Compiled| {
        engine.failures().iter().all(|f| directory.property_kind(f.property) != PropertyKind::Assume)
    };
    // How often inputs of one bit are on in this start, of 8.
    let often = random.u32(1..8);
    original.start(seed);
    mutant.start(seed);
    for cycle in 0..CYCLES {
        for (k, input) in directory.inputs.iter().enumerate() {
            let value = match input.width {
                1 => u64::from(random.u32(0..8) < often).into(),
                _ if random.u32(0..3) == 0 => continue,
                width => random_bits(&mut random, width),
            };
            original.poke(k, &value);
            mutant.poke(k, &value);
        }
        let reset = cycle == 0 || random.u32(0..200) == 0;
        original.set_reset(reset);
        mutant.set_reset(reset);
        original.settle();
        mutant.settle();
        let outputs = directory.outputs.iter().enumerate();
        let mut differing = outputs.filter(|(k, _)| original.peek(*k) != mutant.peek(*k));
        let differing = (cycle > 0).then(|| differing.next()).flatten();
        original.step();
        mutant.step();
        if !assumed(original) {
            return None;
        }
        if let Some((_, output)) = differing {
            return Some(format!("{} in cycle {cycle}", output.path));
        }
    }
    None
}

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
/// of the module, since what it does then does not matter; nor does `load_rd` where `load_valid` is 0.
pub fn differs_alone(top: &Arc<Module>, mutated: &Arc<Module>, module: &str, seed: u64) -> Option<String> {
    let engine = |design: &Arc<Module>| {
        let module = design.modules().into_iter().find(|m| m.name == module).expect("the design has the module");
        Compiled::new(&Arc::new(Directory::new(&module)), seed, OptLevel::default()).expect("no loop was found")
    };
    let (mut original, mut mutant) = (engine(top), engine(mutated));
    (0..STARTS).find_map(|start| differs(&mut original, &mut mutant, seed.wrapping_add(start)))
}

/// For each output, the valid bits of the bundles that it is in.
fn valids(directory: &Directory) -> Vec<Vec<usize>> {
    let outputs = || directory.outputs.iter().enumerate();
    let prefixes: Vec<(usize, &str)> = outputs()
        .filter_map(|(v, o)| Some((v, o.path.strip_suffix("valid")?)))
        .filter(|(_, p)| p.ends_with('_'))
        .collect();
    let of = |path: &str| prefixes.iter().filter(|(_, p)| path.starts_with(p)).map(|(v, _)| *v).collect();
    outputs().map(|(_, o)| of(&o.path)).collect()
}

fn differs(original: &mut Compiled, mutant: &mut Compiled, seed: u64) -> Option<String> {
    let directory = original.directory().clone();
    let mut random = fastrand::Rng::with_seed(seed);
    let assumed = |engine: &Compiled| {
        engine.failures().iter().all(|f| directory.property_kind(f.property) != PropertyKind::Assume)
    };
    let valids = valids(&directory);
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
        let matters = |k: usize| valids[k].iter().all(|&v| original.peek_u64(v) == 1 || mutant.peek_u64(v) == 1);
        let mut differing = outputs.filter(|(k, _)| original.peek(*k) != mutant.peek(*k) && matters(*k));
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

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_hdl::mutate::{Mutant, mutants};
    use heddle_hdl::prelude::*;

    #[derive(Bundle, Clone, Copy)]
    struct Load<T> {
        valid: T,
        rd: T,
    }
    #[derive(Bundle, Clone, Copy)]
    struct Out<T> {
        load: Load<T>,
    }

    /// Whether the mutants of a register's enable differ, where the register is valid one cycle after its enable.
    #[test]
    fn what_is_not_valid_does_not_matter() {
        let top = module("top", Load { valid: 1, rd: 5 }, |m, i| {
            let rd = m.pipe_if("held_rd", i.valid, i.rd);
            Out { load: Load { valid: m.pipe_reset("held", i.valid), rd } }
        });
        let top = top.check().unwrap().netlist;
        let of = |name: &str| -> Mutant { mutants(&top).into_iter().find(|m| m.name == name).unwrap() };
        let differs = |name: &str| differs_alone(&top, &of(name).apply(&top).unwrap(), "top", 1);
        assert_eq!(differs("top:held_rd:always_enabled"), None);
        assert!(differs("top:held_rd:never_enabled").unwrap().starts_with("load_rd in cycle "));
        assert!(differs("top:held:never_enabled").unwrap().starts_with("load_valid in cycle "));
    }
}

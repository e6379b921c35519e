//! The generated Verilog in Verilator against the Rust engines: many random designs in one build, cycle by cycle; a
//! mutation that must be caught; start values, memories and waveforms.
//!
//! `HEDDLE_FUZZ=400 cargo test --release -p heddle-sim --test verilator` packs more designs into the build,
//! `HEDDLE_SEED=17` only that one.

mod foreign;

use heddle_gen::{Files, Options, verilog};
use heddle_hdl::netlist::{Connection, Instance, Module, Node, NodeId, Op, Port};
use heddle_sim::compiled::{Compiled, OptLevel};
use heddle_sim::directory::Directory;
use heddle_sim::engine::Engine;
use heddle_sim::fuzz::{Limits, Stimulus, design, none_left_out, seeds};
use heddle_sim::lockstep::Lockstep;
use heddle_sim::verilator::{BuildError, Optimise, Recipe, Tool, Verilator};
use std::collections::HashMap;
use std::io::Write;
use std::panic::Location;
use std::sync::Arc;

/// Random designs run for few cycles: the build is what takes time.
const QUICK: Recipe = Recipe { optimise: Optimise::O0, probes: true, trace: false, threads: 1 };

/// Every Verilator that is found, said on the terminal.
fn every_verilator(test: &str) -> Vec<Tool> {
    let tools = Tool::found().unwrap();
    if tools.is_empty() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: verilator is not installed");
    }
    for tool in &tools {
        let _ = writeln!(std::io::stderr(), "{test}: {tool}");
    }
    tools
}

/// Gives the module and all below it names of their own.
fn rename(m: &Arc<Module>, prefix: &str, done: &mut HashMap<*const Module, Arc<Module>>) -> Arc<Module> {
    if let Some(known) = done.get(&Arc::as_ptr(m)) {
        return known.clone();
    }
    let mut copy = (**m).clone();
    copy.name = format!("{prefix}{}", m.name);
    for instance in &mut copy.instances {
        instance.module = rename(&instance.module, prefix, done);
    }
    let copy = Arc::new(copy);
    done.insert(Arc::as_ptr(m), copy.clone());
    copy
}

/// Designs of all kinds and designs about replicated instances; few copies, as they cost Verilator's time.
fn limits(seed: u64) -> Limits {
    match seed % 4 {
        0 => Limits::default(),
        1 => Limits::lanes(1..=40),
        _ => Limits::lanes(1..=9),
    }
}

/// Whether bits of a wire drive other bits of it without passing an instance. The language allows it, the engines do
/// it, and Verilator's lint warns of it (UNOPTFLAT).
fn wire_drives_itself(m: &Module) -> bool {
    let mut left: Vec<usize> = (0..m.nodes.len()).collect();
    let mut done = vec![false; m.nodes.len()];
    loop {
        let before = left.len();
        left.retain(|&k| {
            done[k] = m.nodes[k].args.iter().all(|a| done[a.index()]);
            !done[k]
        });
        if left.len() == before {
            return !left.is_empty();
        }
    }
}

/// Random designs side by side in one top module, their ports with a prefix each.
fn side_by_side(seeds: impl Iterator<Item = u64>) -> Arc<Module> {
    let loc = Location::caller();
    let mut top = Module::empty("designs");
    let designs = seeds.map(|seed| (seed, design(seed, &limits(seed))));
    let designs = designs.filter(|(_, design)| !design.modules().iter().any(|m| wire_drives_itself(m)));
    for (inst, (seed, design)) in designs.enumerate() {
        let module = rename(&design, &format!("d{seed}_"), &mut HashMap::new());
        let node = |top: &mut Module, op: Op, name: &str, width: u32| {
            let node = Node { op, width, args: vec![], name: Some(format!("d{seed}_{name}")), loc };
            top.nodes.push(node);
            NodeId(top.nodes.len() as u32 - 1)
        };
        let port = |name: &str, width: u32, node: NodeId| Port { name: format!("d{seed}_{name}"), width, node, loc };
        let mut inputs = Vec::new();
        for p in &module.inputs {
            let op = Op::Input(top.inputs.len() as u32);
            let id = node(&mut top, op, &p.name, p.width);
            top.inputs.push(port(&p.name, p.width, id));
            inputs.push(Connection::All(id));
        }
        for (k, p) in module.outputs.iter().enumerate() {
            let id = node(&mut top, Op::InstOut { inst: inst as u32, port: k as u32 }, &p.name, p.width);
            top.outputs.push(port(&p.name, p.width, id));
        }
        top.instances.push(Instance { name: format!("d{seed}"), module, replicas: None, inputs, loc });
    }
    Arc::new(top)
}

fn lockstep(top: &Arc<Module>, files: &Files, seed: u64) -> Result<Lockstep, BuildError> {
    let directory = Arc::new(Directory::new(top));
    let left = Compiled::new(&directory, seed, OptLevel::default()).expect("random designs have no loops");
    let right = Verilator::of_files(&directory, seed, QUICK, files)?;
    Ok(Lockstep::new(Box::new(left), Box::new(right), seed))
}

#[test]
fn random_designs_agree_and_lint() {
    let tools = every_verilator("random designs in Verilator");
    if tools.is_empty() {
        return;
    }
    // The third takes as long as all others and is of the fourth's kind.
    let all = none_left_out();
    let top = side_by_side(seeds(6).filter(|&seed| all || seed != 2));
    let mut lockstep = lockstep(&top, &verilog(&top, &QUICK.verilog()), 1).unwrap();
    for seed in 1..=4 {
        lockstep.start(seed);
        let mut stimulus = Stimulus::new(seed);
        for _ in 0..60 {
            stimulus.drive(&mut [&mut lockstep]);
            lockstep.step();
            if let Some(mismatch) = lockstep.mismatch() {
                panic!("start and stimulus seed {seed}: {mismatch}");
            }
        }
        compare_memories(&lockstep, &top, seed);
    }
    tools.iter().for_each(|tool| lint_with(tool, "designs", &verilog(&top, &Options::default())));
}

/// Its threads ask for start values, and for words of memories.
#[test]
fn a_model_of_two_threads_does_the_same() {
    if every_verilator("two threads in Verilator").is_empty() {
        return;
    }
    let top = design(3, &Limits::default());
    let directory = Arc::new(Directory::new(&top));
    let left = Compiled::new(&directory, 1, OptLevel::default()).expect("random designs have no loops");
    let recipe = Recipe { threads: 2, ..QUICK };
    let right = Verilator::of_files(&directory, 1, recipe, &verilog(&top, &recipe.verilog())).unwrap();
    let mut lockstep = Lockstep::new(Box::new(left), Box::new(right), 1);
    let mut stimulus = Stimulus::new(1);
    for _ in 0..60 {
        stimulus.drive(&mut [&mut lockstep]);
        lockstep.step();
        assert!(lockstep.mismatch().is_none(), "{}", lockstep.mismatch().unwrap());
    }
    assert!(!directory.memories.is_empty(), "it has memories");
    compare_memories(&lockstep, &top, 1);
}

/// The last words of each memory, through host access on both sides.
fn compare_memories(lockstep: &Lockstep, top: &Arc<Module>, seed: u64) {
    let directory = Directory::new(top);
    for (k, memory) in directory.memories.iter().enumerate() {
        let last = (1 << directory.memory(k).address_width) - 1;
        for address in [0, last] {
            let [left, right] = lockstep.both(|engine| engine.memory_read(k, address));
            assert_eq!(left, right, "seed {seed}: `{}` at {address}", memory.path);
        }
    }
}

/// The Verilog for synthesis is clean under `-Wall`.
fn lint_with(tool: &Tool, top: &str, files: &Files) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tool.command();
    command.args(["--lint-only", "-Wall", "--top-module", top]).current_dir(&folder);
    for (name, text) in &files.sources {
        std::fs::write(folder.path().join(name), text).unwrap();
        command.arg(name);
    }
    if !files.blackboxes.is_empty() {
        std::fs::write(folder.path().join("blackboxes.v"), &files.blackboxes).unwrap();
        command.args(["-v", "blackboxes.v"]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.is_empty(), "{tool}: {text}");
}

#[test]
fn a_changed_operator_is_caught_with_two_waveforms() {
    if every_verilator("a mutation in Verilator").is_empty() {
        return;
    }
    let top = design(3, &Limits { depth: 1, nodes: 25, ..Limits::default() });
    let folder = tempfile::tempdir().unwrap();
    let directory = Arc::new(Directory::new(&top));
    let mutant = mutate(&top);
    let mut lockstep = lockstep(&top, &verilog(&mutant, &QUICK.verilog()), 9).unwrap();
    let mut stimulus = Stimulus::new(9);
    for _ in 0..200 {
        stimulus.drive(&mut [&mut lockstep]);
        lockstep.step();
        if lockstep.mismatch().is_some() {
            break;
        }
    }
    let mismatch = lockstep.mismatch().expect("the mutation is caught").clone();
    assert_ne!(mismatch.left, mismatch.right);
    let recipe = Recipe { trace: true, ..QUICK };
    let traced = Verilator::of_files(&directory, 9, recipe, &verilog(&mutant, &QUICK.verilog())).unwrap();
    for path in lockstep.waveforms(&folder.path().join("mutant"), traced).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("$enddefinitions") && text.lines().count() > 20, "{}", path.display());
    }
}

/// The design with the operator behind one of its outputs changed.
fn mutate(top: &Arc<Module>) -> Arc<Module> {
    let mut mutant = (**top).clone();
    let node = mutant.nodes.iter_mut().find(|n| matches!(n.op, Op::Add | Op::Xor | Op::And | Op::Or | Op::Not));
    let node = node.expect("a random design has an operator");
    node.op = match node.op {
        Op::Add => Op::Sub,
        Op::Xor => Op::Or,
        Op::And => Op::Or,
        Op::Or => Op::And,
        _ => Op::Buf,
    };
    Arc::new(mutant)
}

#[test]
fn a_missing_tool_is_named_with_the_way_to_install_it() {
    let missing = BuildError::Missing { tool: "verilator" }.to_string();
    assert_eq!(missing, "verilator is not installed; on Debian: apt-get install verilator g++ make");
}

use super::features::{features, wanted};
use super::legal::is_legal;
use super::*;
use crate::directory::Directory;
use crate::interpreter::Interpreter;
use heddle_hdl::Bits;
use heddle_hdl::netlist::{Collision, Module, Node, NodeId, Op, ReadTiming};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

fn interpreter(top: &Arc<Module>) -> Interpreter {
    Interpreter::new(&Arc::new(Directory::new(top)), 0).unwrap()
}

#[test]
fn designs_are_well_formed_and_of_all_kinds() {
    let mut kinds = HashSet::new();
    for seed in 0..150 {
        let top = design(seed, &Limits::default());
        assert!(heddle_hdl::order::order(&top).is_ok());
        for module in top.modules() {
            assert!(is_legal(&module), "seed {seed}");
            kinds.extend(module.nodes.iter().map(|n| std::mem::discriminant(&n.op)));
            assert!(module.memories.iter().flat_map(|m| &m.reads).all(|r| {
                matches!(r.timing, ReadTiming::Async | ReadTiming::Sync { .. }) && module.node(r.out).args.is_empty()
            }));
        }
    }
    assert_eq!(kinds.len(), 33, "every operation but Poison");
}

#[test]
fn designs_about_lanes_have_every_feature() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..300 {
        let top = design(seed, &Limits::lanes(1..=64));
        assert!(heddle_hdl::order::order(&top).is_ok());
        assert!(top.modules().iter().all(|m| is_legal(m)), "seed {seed}");
        features(&top).into_iter().for_each(|feature| *found.entry(feature).or_default() += 1);
    }
    let lines =
        wanted().into_iter().map(|(feature, least)| (found.get(&feature).copied().unwrap_or(0), least, feature));
    let lines: Vec<_> = lines.collect();
    lines.iter().for_each(|(count, _, feature)| println!("{count:4} of 300: {feature}"));
    let rare: Vec<_> = lines.iter().filter(|(count, least, _)| count < least).collect();
    assert!(rare.is_empty(), "(designs, wanted, feature): {rare:?}");
}

#[test]
fn one_seed_is_one_run_and_two_seeds_differ() {
    for seed in 0..20 {
        let top = design(seed, &Limits::default());
        compare(&mut interpreter(&top), &mut interpreter(&top), seed, 20).unwrap();
    }
}

/// An adder that is off by one: found, and shrunk to little more than the adder.
#[test]
fn a_wrong_operation_is_found_and_shrunk() {
    let wrong = |top: &Arc<Module>| -> Arc<Module> {
        let mut copy = (**top).clone();
        for n in &mut copy.nodes {
            if n.op == Op::Add {
                n.op = Op::Sub;
            }
        }
        Arc::new(copy)
    };
    let mismatch = |top: &Arc<Module>| compare(&mut interpreter(top), &mut interpreter(&wrong(top)), 3, 30).err();
    let limits = Limits { depth: 0, ..Limits::default() };
    let (seed, top) = (0..).map(|seed| (seed, design(seed, &limits))).find(|(_, top)| mismatch(top).is_some()).unwrap();
    let small = shrink(&top, |top| mismatch(top).is_some());
    let count = |top: &Module| top.nodes.iter().filter(|n| !n.args.is_empty()).count();
    assert!(count(&small) < count(&top).min(4), "seed {seed}: {} of {}", count(&small), count(&top));

    let report = hunt(seed, &limits, |top| mismatch(top).map_or(Ok(()), Err)).unwrap_err();
    assert!(report.starts_with(&format!("seed {seed} ")) && report.contains("Add"), "{report}");
}

/// A vector that is one lane short where the number of copies is odd and above 4: found, and shrunk to one instance.
#[test]
fn a_wrong_lane_is_found_and_shrunk() {
    // The last lane is computed like the one before it.
    let wrong = |top: &Arc<Module>| -> Arc<Module> {
        let mut copy = (**top).clone();
        for k in 0..copy.nodes.len() {
            let Op::InstOut { inst, .. } = copy.nodes[k].op else { continue };
            let (count, all) = (copy.instances[inst as usize].copies(), copy.nodes[k].width);
            if count % 2 == 1 && count > 4 {
                let (lane, first) = (all / count, copy.nodes.len() as u32);
                let right = Node { name: None, ..copy.nodes[k].clone() };
                let part = |low, width| Node { op: Op::Slice(low), width, args: vec![NodeId(first)], ..right.clone() };
                copy.nodes.extend([right.clone(), part(0, all - lane), part(all - 2 * lane, lane)]);
                (copy.nodes[k].op, copy.nodes[k].args) = (Op::Cat, vec![NodeId(first + 1), NodeId(first + 2)]);
            }
        }
        Arc::new(copy)
    };
    let mismatch = |top: &Arc<Module>| {
        let wrong = wrong(top);
        let runs = heddle_hdl::order::order(&wrong).is_ok();
        runs.then(|| compare(&mut interpreter(top), &mut interpreter(&wrong), 3, 30).err()).flatten()
    };
    let limits = Limits::lanes(1..=64);
    let broken: Vec<u64> = (0..40).filter(|&seed| mismatch(&design(seed, &limits)).is_some()).collect();
    assert!(broken.len() > 5, "{broken:?}");
    for &seed in &broken[..5] {
        let small = shrink(&design(seed, &limits), |top| mismatch(top).is_some());
        let nodes: usize = small.modules().iter().map(|m| m.nodes.len()).sum();
        let copies: Vec<u32> = small.modules().iter().flat_map(|m| &m.instances).map(|i| i.copies()).collect();
        println!("seed {seed}: {nodes} nodes, copies {copies:?}");
        assert!(nodes < 12 && copies.iter().all(|&n| n <= 5), "seed {seed}:\n{}", listing(&small, 100));
    }
}

/// Each way to be wrong about replicated instances shows in many designs.
#[test]
fn wrong_lanes_show() {
    fn operations(change: fn(&mut Module, usize)) -> impl Fn(&mut Module) {
        move |m| (0..m.nodes.len()).for_each(|k| change(m, k))
    }
    type Change = Box<dyn Fn(&mut Module)>;
    let wrong: [(&str, Change); 10] = [
        ("comparisons without sign", Box::new(operations(|m, k| replace(m, k, Op::LtSigned, Op::Lt)))),
        ("shifts without sign", Box::new(operations(|m, k| replace(m, k, Op::Sar, Op::Shr)))),
        ("products without sign", Box::new(operations(|m, k| replace(m, k, Op::MulFullSigned, Op::MulFull)))),
        ("any for all", Box::new(operations(|m, k| replace(m, k, Op::All, Op::Any)))),
        (
            "a case without its last label",
            Box::new(operations(|m, k| {
                if let Op::Case(labels) = &mut m.nodes[k].op {
                    labels.pop();
                    m.nodes[k].args.pop();
                }
            })),
        ),
        ("no register enables", Box::new(|m| m.registers.iter_mut().for_each(|r| r.enable = None))),
        ("no resets", Box::new(|m| m.registers.iter_mut().for_each(|r| r.reset = None))),
        ("collisions read old", Box::new(|m| synchronous(m, |_, collision| *collision = Collision::ReadOld))),
        ("no read enables", Box::new(|m| synchronous(m, |enable, _| *enable = None))),
        ("the first write wins", Box::new(|m| m.memories.iter_mut().for_each(|memory| memory.writes.reverse()))),
    ];
    let designs: Vec<_> = (0..60).map(|seed| design(seed, &Limits::lanes(2..=64))).collect();
    for (name, change) in wrong {
        let differs = |top: &&Arc<Module>| {
            let wrong = in_copies(top, &change);
            wrong != **top && compare(&mut interpreter(top), &mut interpreter(&wrong), 3, 25).is_err()
        };
        let found = designs.iter().filter(differs).count();
        println!("{found} of 60: {name}");
        assert!(found >= 5, "{name}: {found} of 60");
    }
}

/// The design with the modules changed of which there are two copies or more side by side.
fn in_copies(m: &Arc<Module>, change: &dyn Fn(&mut Module)) -> Arc<Module> {
    let mut copy = (**m).clone();
    for instance in &mut copy.instances {
        let mut module = (*in_copies(&instance.module, change)).clone();
        if instance.copies() > 1 {
            change(&mut module);
        }
        instance.module = Arc::new(module);
    }
    Arc::new(copy)
}

fn replace(m: &mut Module, node: usize, from: Op, to: Op) {
    if m.nodes[node].op == from {
        m.nodes[node].op = to;
    }
}

fn synchronous(m: &mut Module, change: fn(&mut Option<NodeId>, &mut Collision)) {
    for read in m.memories.iter_mut().flat_map(|m| &mut m.reads) {
        if let ReadTiming::Sync { enable, collision, .. } = &mut read.timing {
            change(enable, collision);
        }
    }
}

#[test]
fn a_panic_is_a_mismatch() {
    let multiplies = |top: &Arc<Module>| top.modules().iter().any(|m| m.nodes.iter().any(|n| n.op == Op::MulFull));
    let limits = Limits::lanes(2..=4);
    let seed = (0..).find(|&seed| multiplies(&design(seed, &limits))).unwrap();
    let differs = |top: &Arc<Module>| if multiplies(top) { panic!("no multiplier") } else { Ok(()) };
    let report = hunt(seed, &limits, differs).unwrap_err();
    assert!(report.contains("no multiplier on the right") && report.contains("MulFull"), "{report}");
    assert!(report.lines().count() < 20, "{report}");
}

#[test]
fn random_bits_fit() {
    let mut rng = fastrand::Rng::with_seed(1);
    for width in 1..200 {
        assert!(super::design::random_bits(&mut rng, width).bit_length() <= width);
    }
    assert_eq!(Bits::ones(200).bit_length(), 200);
}

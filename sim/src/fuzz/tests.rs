use super::*;
use crate::directory::Directory;
use crate::interpreter::Interpreter;
use heddle_hdl::Bits;
use heddle_hdl::netlist::{Module, Op, ReadTiming};
use std::collections::HashSet;
use std::sync::Arc;

fn interpreter(top: &Arc<Module>) -> Interpreter {
    Interpreter::new(&Arc::new(Directory::new(top)), 0).unwrap()
}

/// What an operand must look like is the contract of `netlist.rs`.
fn check_widths(module: &Module) {
    let width = |k: heddle_hdl::netlist::NodeId| module.node(k).width;
    for n in &module.nodes {
        let args: Vec<u32> = n.args.iter().map(|&a| width(a)).collect();
        let sum: u32 = args.iter().sum();
        let fits = match &n.op {
            Op::Const(value) => value.bit_length() <= n.width,
            Op::Not | Op::Buf | Op::And | Op::Or | Op::Xor | Op::Add | Op::Sub | Op::Mul => {
                args.iter().all(|w| *w == n.width)
            }
            Op::MulFull | Op::MulFullSigned | Op::Cat => sum == n.width,
            Op::Shl | Op::Shr | Op::Sar => args[0] == n.width,
            Op::Eq | Op::Ne | Op::Lt | Op::LtSigned => args[0] == args[1] && n.width == 1,
            Op::Mux => args == [1, n.width, n.width],
            Op::Case(labels) => {
                let distinct = labels.iter().collect::<HashSet<_>>().len() == labels.len();
                distinct
                    && labels.iter().all(|l| l.bit_length() <= args[0])
                    && args[1..].iter().all(|w| *w == n.width)
                    && args.len() == labels.len() + 2
            }
            Op::Select => args[0].is_multiple_of(n.width),
            Op::Slice(low) => low + n.width <= args[0],
            Op::ZExt | Op::SExt => args[0] < n.width,
            Op::Any | Op::All | Op::Parity => n.width == 1,
            Op::CountOnes => args[0] < 1 << n.width,
            Op::Input(_) | Op::InstOut { .. } | Op::Reg(_) | Op::MemRead { .. } => args.is_empty(),
            Op::Poison => false,
        };
        assert!(fits && n.width > 0, "{n:?} of widths {args:?}");
    }
    for r in &module.registers {
        assert!(width(r.next) == r.width && r.enable.is_none_or(|e| width(e) == 1));
    }
    for m in &module.memories {
        assert!(m.reads.iter().all(|r| width(r.address) == m.address_width && width(r.out) == m.width));
        assert!(m.writes.iter().all(|w| width(w.address) == m.address_width && width(w.data) == m.width));
        assert!(m.writes.iter().all(|w| m.width.is_multiple_of(width(w.enable))));
    }
    for i in &module.instances {
        for (port, connection) in i.module.inputs.iter().zip(&i.inputs) {
            let copies = match connection {
                heddle_hdl::netlist::Connection::All(_) => 1,
                heddle_hdl::netlist::Connection::Each(_) => i.replicas.unwrap(),
            };
            assert_eq!(width(connection.node()), port.width * copies);
        }
    }
}

#[test]
fn designs_are_well_formed_and_of_all_kinds() {
    let mut kinds = HashSet::new();
    for seed in 0..150 {
        let top = design(seed, &Limits::default());
        assert!(heddle_hdl::order::order(&top).is_ok());
        for module in top.modules() {
            check_widths(&module);
            kinds.extend(module.nodes.iter().map(|n| std::mem::discriminant(&n.op)));
            assert!(module.memories.iter().flat_map(|m| &m.reads).all(|r| {
                matches!(r.timing, ReadTiming::Async | ReadTiming::Sync { .. }) && module.node(r.out).args.is_empty()
            }));
        }
    }
    assert_eq!(kinds.len(), 33, "every operation but Poison");
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
    assert!(report.starts_with(&format!("seed {seed}: ")) && report.contains("Add"), "{report}");
}

#[test]
fn random_bits_fit() {
    let mut rng = fastrand::Rng::with_seed(1);
    for width in 1..200 {
        assert!(super::design::random_bits(&mut rng, width).bit_length() <= width);
    }
    assert_eq!(Bits::ones(200).bit_length(), 200);
}

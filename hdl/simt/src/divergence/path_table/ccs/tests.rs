use super::*;
use crate::divergence::path_table::order::testing::{Turn, stacked};
use crate::divergence::testing::P;
use crate::shape::Order;
use heddle_hdl::netlist;
use heddle_sim::Sim;

type Plain = Path<Bits>;

/// A path with plain values; valid if its mask is not empty.
fn path(depth: u64, pc: u64, mask: u64, waits: bool) -> Plain {
    Path { valid: Bits::from(mask != 0), depth: depth.into(), pc: pc.into(), mask: mask.into(), waits: waits.into() }
}

/// The reference: a list, sorted, equal neighbours merged. If the sequence `lasts`, the last of the paths goes behind the
/// others, where it can run as they can, unless it meets one.
fn reference(paths: [P; 3], a_first: bool, lasts: bool) -> Vec<P> {
    let [a, b, c] = paths;
    let meets = [a, b].iter().any(|p| p.mask != 0 && p.key() == c.key());
    if lasts && !meets && c.mask != 0 {
        let mut list = reference([a, b, P::default()], false, false);
        let behind = list.iter().take_while(|p| p.waits <= c.waits).count();
        list.insert(behind, c);
        return list;
    }
    let (fixed, free) = paths.split_at(a_first as usize);
    let mut list: Vec<P> = free.iter().copied().filter(|p| p.mask != 0).collect();
    list.sort_by_key(P::key);
    list.dedup_by(|q, p| {
        let same = p.key() == q.key();
        p.mask |= if same { q.mask } else { 0 };
        same
    });
    [fixed, &list].concat()
}

fn check(t: &mut Sim<CcsIn<Width>, CcsOut<Signal>>, paths: [P; 3], a_first: bool, lasts: Option<bool>) {
    let [a, b, c] = paths.map(|p| path(p.depth, p.pc, p.mask, p.waits));
    t.poke(CcsIn { a, b, c, a_first: a_first.into(), stacks: None, lasts: lasts.map(|lasts| lasts.into()) });
    let out = t.peek();
    let expected = reference(paths, a_first, lasts == Some(true));
    let got: Vec<P> = [&out.x, &out.y, &out.z]
        .into_iter()
        .filter(|p| p.valid == 1)
        .map(|p| P { depth: p.depth.low_u64(), pc: p.pc.low_u64(), mask: p.mask.low_u64(), waits: p.waits == 1 })
        .collect();
    assert_eq!(got, expected, "{paths:x?} {a_first}");
    let given = paths.iter().filter(|p| p.mask != 0).count();
    assert_eq!(out.merges, (given - expected.len()) as u64, "{paths:x?} {a_first}");
    let x_is_b = expected.first() == Some(&paths[1]) && paths[1].mask != 0;
    assert_eq!(out.x_is_b == 1, x_is_b, "{paths:x?} {a_first}");
    let before = |p: P, q: P| p.key() < q.key();
    let [_, b, c] = paths;
    // Asked of what is below a path that runs.
    assert!(
        lasts == Some(true) || (out.b_before_c == 1) == (b.mask != 0 && c.mask != 0 && before(b, c)),
        "{paths:x?} {a_first}"
    );
    let level = |p: P| (p.waits, p.depth);
    let ahead = expected.len() > 1 && level(expected[0]) == level(expected[1]) && expected[0].pc < expected[1].pc;
    assert_eq!(out.y_ahead == 1, ahead, "{paths:x?} {a_first}");
}

/// 4 lanes, 2-bit pcs, 1-bit depth: every key of the three paths, valid or not, and every way to give each lane to one
/// of them or to none. A path is valid exactly if its mask is not empty.
#[test]
fn every_case_at_four_lanes() {
    every_case(false, false);
}

/// The same where some paths wait, with 1-bit pcs: each of the three may.
#[test]
fn every_case_at_four_lanes_with_waiting() {
    every_case(true, false);
}

/// In LR/SC sequences and outside.
#[test]
fn every_case_at_four_lanes_with_sequences() {
    every_case(false, true);
    every_case(true, true);
}

fn every_case(barriers: bool, reservations: bool) {
    let s = Shape { program: 16, depth_bits: 1, barriers, reservations, ..Shape::new(4, 1) };
    let mut t = Sim::new(&ccs(&s).check().unwrap());
    for owners in 0..256u64 {
        let mask = |who: u64| (0..4).filter(|lane| owners >> (2 * lane) & 3 == who).fold(0, |m, lane| m | 1 << lane);
        let masks = [mask(0), mask(1), mask(2)];
        for keys in 0..512u64 {
            let paths = [0, 1, 2].map(|k| P {
                depth: keys >> (3 * k) & 1,
                pc: keys >> (3 * k + 1) & if barriers { 1 } else { 3 },
                mask: masks[k as usize],
                waits: barriers && keys >> (3 * k + 2) & 1 == 1,
            });
            let outside = reservations.then_some(false);
            check(&mut t, paths, false, outside);
            if masks[0] != 0 {
                check(&mut t, paths, true, outside);
            }
            if reservations {
                check(&mut t, paths, false, Some(true));
            }
        }
    }
}

/// Every case of the orders that are stacks, and every turn of a list; outcomes in LR/SC sequences, too.
#[test]
fn stacks_at_four_lanes() {
    let stacks = [Order::Swap, Order::Minority, Order::Majority];
    for (order, lasts) in [false, true].into_iter().flat_map(|lasts| stacks.map(|order| (order, lasts))) {
        let s = Shape { program: 16, depth_bits: 1, order, reservations: lasts, ..Shape::new(4, 1) };
        let mut t = Sim::new(&ccs(&s).check().unwrap());
        for (owners, keys) in (0..256u64).flat_map(|owners| (0..512u64).map(move |keys| (owners, keys))) {
            let mask = |who: u64| (0..4).filter(|lane| owners >> (2 * lane) & 3 == who).fold(0, |m, k| m | 1 << k);
            let paths = [0, 1, 2].map(|k| P {
                depth: keys >> (3 * k) & 1,
                pc: keys >> (3 * k + 1) & 1,
                mask: mask(k),
                waits: keys >> (3 * k + 2) & 1 == 1,
            });
            for turn in [Turn::Outcome, Turn::Return, Turn::Seek, Turn::Release] {
                let a_first = turn == Turn::Release;
                let (outcome, seeks) = (turn == Turn::Outcome, turn == Turn::Seek);
                // Only the path that runs is kept first, and of a return there is no second path yet.
                if a_first && (paths[0].mask == 0 || paths[0].waits) || turn == Turn::Return && paths[2].mask != 0 {
                    continue;
                }
                let [a, b, c] = paths.map(|p| path(p.depth, p.pc, p.mask, p.waits));
                // Then the side with the lesser pc is first, and none changes places with what was there.
                let as_order = match (lasts && outcome, paths[0].mask != 0 && paths[1].mask != 0) {
                    (true, true) => Order::Swap,
                    (true, false) => Order::Minority,
                    _ => order,
                };
                let lasts = lasts.then(|| outcome.into());
                let stacks = Some(Stacks { outcome: outcome.into(), seeks: seeks.into() });
                t.poke(CcsIn { a, b, c, a_first: a_first.into(), stacks, lasts });
                let out = t.peek();
                let got: Vec<P> = [&out.x, &out.y, &out.z]
                    .into_iter()
                    .filter(|p| p.valid == 1)
                    .map(|p| P {
                        depth: p.depth.low_u64(),
                        pc: p.pc.low_u64(),
                        mask: p.mask.low_u64(),
                        waits: p.waits == 1,
                    })
                    .collect();
                assert_eq!(got, stacked(as_order, turn, paths), "{} {paths:x?} {turn:?}", order.name());
                let [_, b, c] = paths;
                let b_runs_before = b.mask != 0 && c.mask != 0 && c.waits && !b.waits;
                assert!(
                    !seeks || out.merges != 0 || (out.b_before_c == 1) == b_runs_before,
                    "{} {paths:x?}",
                    order.name()
                );
            }
        }
    }
}

/// 64 lanes, random paths over few keys and over all of them; the block's own assertions and covers too.
#[test]
fn random_cases_at_64_lanes() {
    let s = Shape { barriers: true, ..Shape::new(64, 8) };
    let mut t = Sim::new(&ccs(&s).check().unwrap());
    let seed = 1;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for k in 0..20_000 {
        let (depths, pcs) = if k % 2 == 0 { (2, 3) } else { (1 << s.depth_bits, 1 << s.pc_bits()) };
        let (r, q, keep) = (random.u64(..), random.u64(..), random.u8(..8));
        let masks = [r & q, r & !q, !r & q].map(|m| if random.u8(..8) <= keep { m } else { 0 });
        let paths = masks.map(|mask| {
            let (depth, pc, waits) = (random.u64(..depths), random.u64(..pcs), random.u8(..4) == 0);
            P { depth, pc, mask, waits }
        });
        check(&mut t, paths, masks[0] != 0 && random.u8(..4) == 0, None);
        t.step();
    }
    let covers = ["order_abc", "order_acb", "order_bac", "order_bca", "order_cab", "order_cba"];
    for cover in
        covers.into_iter().chain(["a_meets_b", "a_meets_c", "b_meets_c", "all_meet", "one_waits", "waiting_paths_meet"])
    {
        assert!(t.cover_hits(cover) > 0, "{cover} never happened");
    }
}

/// The assertions are themselves checked: a unit that forgets c's threads where c merges into a is caught.
#[test]
fn a_unit_that_loses_threads_is_caught() {
    let mut design = ccs(&Shape::new(4, 1)).check().unwrap();
    let mut netlist = (*design.netlist).clone();
    let named = |name: &str| netlist.nodes.iter().position(|n| n.name.as_deref() == Some(name)).unwrap();
    let (x_mask, c_mask) = (named("x_mask"), named("c_mask"));
    let masked_c = netlist.nodes[x_mask].args[1];
    let zero = netlist::NodeId(netlist.nodes.len() as u32);
    assert_eq!(netlist.node(masked_c).args[0].index(), c_mask, "x's mask ends with `| c.mask & …`");
    let loc = netlist.node(masked_c).loc;
    netlist.nodes.push(netlist::Node { op: netlist::Op::Const(Bits::ZERO), width: 4, args: vec![], name: None, loc });
    netlist.nodes[x_mask].args[1] = zero;
    design.netlist = std::sync::Arc::new(netlist);

    let mut t = Sim::new(&design);
    let meet = CcsIn {
        a: path(0, 5, 0b0011, false),
        b: path(0, 7, 0b0100, false),
        c: path(0, 5, 0b1000, false),
        a_first: Bits::ZERO,
        stacks: None,
        lasts: None,
    };
    t.poke(meet);
    let error = t.try_step().unwrap_err().to_string();
    assert!(error.starts_with("assertion `no_thread_lost` failed in cycle 0"), "{error}");
}

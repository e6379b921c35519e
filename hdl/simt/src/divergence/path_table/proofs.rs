//! What is proven of path tables, and at which shapes.

use super::proof::fair::fair_proof;
use super::proof::release::release_proof;
use super::proof::{path_table_proof, sorted_after, sorter_proof};
use crate::divergence::path_table::ccs::proof::ccs_proof;
use crate::proof::{Block, Method, Proof};
use crate::shape::{Order, Shape};
use heddle_hdl::Errors;

const CCS: Block = Block {
    name: "ccs",
    block: "divergence/path_table/ccs.rs",
    says: "Every thread that comes in goes out in exactly one path, with the depth and pc it had; paths come out in strict \
           order, without gaps, equal ones merged.",
    method: Method::Induction,
    cover_depth: 3,
};

const PATH_TABLE: Block = Block {
    name: "path-table",
    block: "divergence/path_table.rs",
    says: "Every live thread of a warp is in exactly one path, or waits at exactly one convergence barrier, which has the pc and \
           call depth that outcomes gave the thread; a path waits from its barrier to the wake; the cold table neither loses \
           nor doubles a path and never overflows; a slot in `waiting` has no path that can run; after an outcome or a wake a \
           live slot is steered once, to the active path, if one can run.",
    method: Method::Induction,
    cover_depth: 14,
};

const RELEASE: Block = Block {
    name: "release",
    block: "divergence/path_table/convergence.rs",
    says: "In a bounded number of cycles, what there is to look at is decided; and where threads of a warp wait at convergence \
           barriers and no path of it can run, some of them go on.",
    method: Method::Induction,
    cover_depth: 14,
};

const RELEASE_WITH_SYNC: Block = Block {
    says: "The same where threads may wait by sync, of those that wait otherwise; and who waits by sync is released only when all \
           whom it names, and who live, are there.",
    ..RELEASE
};

const FAIR: Block = Block {
    name: "fair",
    block: "divergence/fairness.rs",
    says: "A thread that does not wait at a barrier runs at least once in as many outcomes of its warp as patience, and two brief \
           turns of each other thread, each with an LR/SC sequence at its end where there may be one.",
    method: Method::Induction,
    cover_depth: 14,
};

const SORTER: Block = Block {
    name: "sorter",
    block: "divergence/path_table/cct.rs",
    says: "In a bounded number of cycles without start and wake, and without an outcome or one that is announced, whatever came \
           before, all returns are done, the second path of the warp belongs before all its cold ones, but for one equal to a \
           first that waits, and where the first waits, it is known whether all do.",
    method: Method::Induction,
    cover_depth: 32,
};

/// All of them.
pub fn proofs() -> Result<Vec<Proof>, Errors> {
    let mut all = Vec::new();
    plain(&mut all)?;
    orders(&mut all)?;
    converging(&mut all)?;
    fair(&mut all)?;
    for barriers in [false, true] {
        let s = Shape { program: 16, depth_bits: 1, barriers, ..shape(4, 1) };
        all.push(SORTER.at(&s, sorted_after(&s) + 3, !barriers, sorter_proof)?);
    }
    Ok(all)
}

/// A shape of the cores that are proven.
fn shape(lanes: u32, warps: u32) -> Shape {
    Shape { barriers: false, ..Shape::new(lanes, warps) }
}

/// In the order of depth and pc.
fn plain(all: &mut Vec<Proof>) -> Result<(), Errors> {
    for (lanes, barriers) in [(1, false), (2, false), (4, false), (8, false), (8, true), (16, false), (64, true)] {
        let quick = matches!((lanes, barriers), (2, false) | (8, true));
        all.push(CCS.at(&Shape { barriers, ..Shape::new(lanes, 1) }, 2, quick, ccs_proof)?);
    }
    for (lanes, warps, barriers) in [
        (1, 1, false),
        (2, 1, false),
        (2, 2, false),
        (4, 1, false),
        (4, 2, false),
        (8, 1, false),
        (2, 1, true),
        (2, 2, true),
        (4, 1, true),
        (4, 2, true),
        (8, 1, true),
    ] {
        let s = Shape { program: 16, depth_bits: 1, barriers, ..shape(lanes, warps) };
        let quick = matches!((lanes, warps, barriers), (1, 1, _) | (2, 2, true));
        all.push(PATH_TABLE.at(&s, 2, quick, path_table_proof)?);
    }
    Ok(())
}

/// In other orders.
fn orders(all: &mut Vec<Proof>) -> Result<(), Errors> {
    for (order, lanes, warps, barriers, quick) in [
        (Order::Pc, 4, 1, true, false),
        (Order::Swap, 2, 2, true, true),
        (Order::Swap, 4, 1, true, false),
        (Order::Minority, 2, 2, true, false),
        (Order::Minority, 4, 1, true, false),
        (Order::Majority, 4, 1, true, false),
    ] {
        let s = Shape { program: 16, depth_bits: 1, barriers, order, ..shape(lanes, warps) };
        all.push(CCS.at(&Shape { warps: 1, ..s.clone() }, 2, false, ccs_proof)?);
        all.push(PATH_TABLE.at(&s, 2, quick, path_table_proof)?);
    }
    Ok(())
}

/// With convergence barriers, and what else lets paths give way.
fn converging(all: &mut Vec<Proof>) -> Result<(), Errors> {
    let converging = |lanes, warps, barriers, convergence_barriers| Shape {
        program: 16,
        depth_bits: 1,
        patience: 32,
        barriers,
        convergence_barriers,
        ..shape(lanes, warps)
    };
    for (lanes, warps, barriers, convergence_barriers, quick) in [
        (2, 1, true, 1, true),
        (2, 1, true, 2, false),
        (2, 2, true, 1, false),
        (4, 1, true, 1, false),
        (4, 1, true, 2, false),
        (4, 2, true, 2, false),
    ] {
        all.push(PATH_TABLE.at(
            &converging(lanes, warps, barriers, convergence_barriers),
            2,
            quick,
            path_table_proof,
        )?);
    }
    for (order, lanes, warps, convergence_barriers, quick) in [
        (Order::DepthPc, 2, 2, 0, false),
        (Order::DepthPc, 4, 1, 0, true),
        (Order::DepthPc, 4, 2, 0, false),
        (Order::DepthPc, 4, 1, 1, false),
        (Order::Swap, 4, 1, 0, false),
        (Order::Minority, 4, 1, 0, false),
    ] {
        let s = Shape { order, reservations: true, ..converging(lanes, warps, true, convergence_barriers) };
        if (warps, convergence_barriers) == (1, 0) {
            all.push(CCS.at(&s, 2, false, ccs_proof)?);
        }
        all.push(PATH_TABLE.at(&s, 2, quick, path_table_proof)?);
    }
    for (lanes, warps, convergence_barriers, quick) in
        [(2, 1, 1, true), (2, 1, 2, false), (2, 2, 1, false), (4, 1, 1, false)]
    {
        let s = Shape { warp_primitives: true, ..converging(lanes, warps, true, convergence_barriers) };
        all.push(PATH_TABLE.at(&s, 2, quick, path_table_proof)?);
        all.push(RELEASE_WITH_SYNC.at(&s, 2, false, release_proof)?);
    }
    for (lanes, warps, convergence_barriers, quick) in
        [(2, 1, 2, true), (2, 2, 2, false), (4, 1, 1, false), (4, 1, 2, false), (4, 2, 1, false)]
    {
        all.push(RELEASE.at(&converging(lanes, warps, true, convergence_barriers), 2, quick, release_proof)?);
    }
    Ok(())
}

/// With turns.
fn fair(all: &mut Vec<Proof>) -> Result<(), Errors> {
    for (lanes, warps, barriers, quick) in [
        (2, 1, false, true),
        (2, 1, true, false),
        (2, 2, false, false),
        (2, 2, true, false),
        (4, 1, false, false),
        (4, 1, true, false),
    ] {
        for reservations in [false, true] {
            let s = Shape { program: 16, depth_bits: 1, barriers, reservations, ..shape(lanes, warps) };
            let s = Shape { fair: true, patience: 2, ..s };
            all.push(FAIR.at(&s, 2, quick, fair_proof)?);
            if (lanes, warps) != (2, 2) {
                let s = Shape { order: Order::BreadthFirst, ..s };
                all.push(FAIR.at(&s, 2, false, fair_proof)?);
            }
        }
    }
    Ok(())
}

//! That path tables are fair: [`crate::divergence::fairness::proof`], with what their tables hold.

use super::{Harness, Slot, harness};
use crate::divergence::fairness::proof::{Warp, has_its_turn};
use crate::divergence::proof::ProofIn;
use crate::divergence::{Path, UnitOut};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// The path-table unit of a shape that is fair, with every legal input.
pub fn fair_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "fair_proof", false, &|m, s, h| {
        let fairness = h.tables.store.fairness.as_ref().expect("paths give way");
        for slot in h.slots {
            has_its_turn(m, s, fairness, &warp(m, s, h, slot));
        }
    })
}

fn warp(m: Builder, s: &Shape, h: &Harness, slot: &Slot) -> Warp {
    let none = m.lit(0u32, s.lanes);
    let threads_of = |which: &dyn Fn(Path<Signal>) -> Signal| {
        let masks = slot.paths().into_iter().map(|p| p.mask.only_if(p.valid & which(p)));
        masks.fold(none, |all, mask| all | mask)
    };
    wire!(late = threads_of(&|p| p.is_late(s) & !p.waits));
    wire!(in_time = threads_of(&|p| !p.is_late(s) & !p.waits));
    let waits_late = slot.paths().into_iter().map(|p| p.valid & p.waits & p.is_late(s)).collect::<Vec<_>>();
    Warp {
        number: slot.number,
        live: slot.live,
        settled: m.lit(1u32, 1),
        several: slot.y.valid | slot.count.any(),
        late,
        in_time,
        held: h.barriers.map(|_| {
            let held = slot.held.iter().fold(none, |all, p| all | p.mask.only_if(p.valid));
            [held, slot.x.mask.only_if(slot.runs())]
        }),
        waits_late: cat(&waits_late).any(),
        sequence: h.tables.store.sequences.as_ref().map(|sequences| sequences.of(m.lit(slot.number, s.warp_bits()))),
        since: h.tables.ghosts.ghost_since.expect("it is fair"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::Order;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps, barriers, patience) in
            [(2, 1, false, 2), (2, 2, true, 2), (4, 1, false, 2), (4, 2, true, 4), (8, 1, true, 8), (8, 2, false, 64)]
        {
            for order in [Order::DepthPc, Order::Swap, Order::Minority, Order::BreadthFirst] {
                let s = Shape { program: 16, depth_bits: 1, barriers, fair: true, ..Shape::new(lanes, warps) };
                for (reservations, convergence_barriers) in [(false, 0), (true, 0), (false, 1), (false, 2), (true, 2)] {
                    let s = Shape { patience, order, reservations, convergence_barriers, ..s.clone() };
                    holds_at_random(&fair_proof(&s).check().unwrap().netlist, 20_000);
                }
            }
        }
    }
}

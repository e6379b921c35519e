//! That paths which give way are fair: every thread that does not wait runs at least once in [`bound`] outcomes of its
//! warp.
//!
//! The unit counts for each thread the outcomes since it ran. Here it is shown that this number and a *rank*, the most
//! outcomes that may still come before it runs, are together never more than the bound. The rank is a turn for each
//! path that has not given way, the one that runs first; a thread that has given way must wait for the next round, in
//! which it may be the last.

use super::{Harness, Slot, harness};
use crate::divergence::fairness::{Fairness, bound, brief, first_turn, takes_turns};
use crate::divergence::proof::ProofIn;
use crate::divergence::{Path, UnitOut};
use crate::proof::{cover, implies};
use crate::shape::Shape;
use heddle_hdl::elements;
use heddle_hdl::prelude::*;

/// Bits of a rank.
const RANK: Width = 12;

/// The path-table unit of a shape that is fair, with every legal input.
pub fn fair_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "fair_proof", false, &|m, s, h| {
        for slot in h.slots {
            has_its_turn(m, s, h, slot);
        }
    })
}

fn has_its_turn(m: Builder, s: &Shape, h: &Harness, slot: &Slot) {
    let n = slot.number;
    let at = m.lit(n, s.warp_bits());
    let name = |what: &str| format!("slot_{n}_{what}");
    let fairness = h.tables.store.fairness.as_ref().expect("paths give way");
    let Fairness { parted, yields, others, ages, .. } = fairness;
    let (parted, others) = (parted.q.bit(n), others.q.bit(n));
    let yields = if takes_turns(s) { m.lit(1u32, 1) } else { yields.q.bit(n) };
    let age = ages.read(at);
    let none = m.lit(0u32, s.lanes);
    let threads_of = |which: &dyn Fn(Path<Signal>) -> Signal| {
        let masks = slot.paths().into_iter().map(|p| p.mask.only_if(p.valid & which(p)));
        masks.fold(none, |all, mask| all | mask)
    };
    wire!(late = threads_of(&|p| p.is_late(s) & !p.waits));
    wire!(in_time = threads_of(&|p| !p.is_late(s) & !p.waits));

    // Who waits has not given way, so nobody has after a wake.
    let waiting = slot.paths().into_iter().map(|p| implies(p.valid & p.waits, !p.is_late(s)));
    m.assert(&name("who_waits_has_not_given_way"), cat(&waiting.collect::<Vec<_>>()).all());
    // A warp of several paths is parted, and somebody has given way only while it is.
    let several = slot.live & (slot.y.valid | slot.count.any());
    m.assert(&name("is_parted"), implies(several, parted));
    m.assert(&name("others_give_way_where_it_is_parted"), implies(slot.live & others, parted));
    m.assert(&name("others_have_given_way"), implies(late.any(), others));
    // Time is over where a turn ends.
    let at_end = if brief(s) > 1 { age.slice(0, brief(s).ilog2()).all() } else { m.lit(1u32, 1) };
    m.assert(&name("gives_way_at_the_end_of_a_turn"), implies(slot.live & parted & yields, at_end));
    let over = age.all() | (at_end & others);
    m.assert(&name("gives_way_when_time_is_over"), implies(slot.live & parted & over, yields));

    // Outcomes until the active path gives way, that outcome included.
    let number = |k: u32| m.lit(k, RANK);
    let of_turn = if brief(s) > 1 { age.slice(0, brief(s).ilog2()).zext(RANK) } else { number(0) };
    let left = others.mux(number(brief(s)) - of_turn, number(first_turn(s)) - age.zext(RANK));
    wire!(left = yields.mux(number(1), left));
    let count = in_time.count_ones().zext(RANK);
    let turns = |count: Signal| number(brief(s)) * count;
    let round = number(first_turn(s) + (s.lanes - 1) * brief(s));
    let rank = in_time.any().mux(left + turns(count - 1), number(0));
    let since = fairness_counts(s, h, at);
    for (k, since) in (0..s.lanes).zip(since) {
        let since = since.zext(RANK);
        let (is_late, runs) = (late.bit(k), late.bit(k) | in_time.bit(k));
        m.assert(&format!("slot_{n}_lane_{k}_counts_while_it_can_run"), implies(slot.live & !runs, !since.any()));
        let rest = is_late.mux(rank + round, rank);
        // Who is alone runs next.
        let in_turn = (since + rest.only_if(parted)).le(bound(s));
        m.assert(&format!("slot_{n}_lane_{k}_has_its_turn"), implies(slot.live & runs, in_turn));
    }
    if s.lanes > 1 {
        cover(m, &name("new_round"), m.pipe_reset(&name("had_late"), slot.live & late.any()) & slot.live & !late.any());
    }
}

/// Outcomes since each thread of a slot ran.
fn fairness_counts(s: &Shape, h: &Harness, at: Signal) -> Vec<Signal> {
    let counts = h.tables.ghosts.ghost_since.as_ref().expect("it is fair");
    elements(counts.read(at), count_width(bound(s)))
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
                let s = Shape { patience, order, ..s };
                holds_at_random(&fair_proof(&s).check().unwrap().netlist, 20_000);
            }
        }
    }
}

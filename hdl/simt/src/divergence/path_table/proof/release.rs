//! Releases come within a bound: what the warden looks at is decided, and of a warp of which no path can run, threads
//! go on.
//!
//! Two ranks say so, each by what is left at most. *Left of a decision* falls in every cycle in which there is
//! something to look at and nothing is decided: it counts the warden's steps, the returns that have the turn before a
//! release, and the outcomes and instructions that `hold` still lets through, each of which may send the warden back.
//! *Left of a release* is the decisions that may come before it, each as long as that.

use super::{Harness, Slot, harness};
use crate::divergence::UnitOut;
use crate::divergence::path_table::cct::{self, entries};
use crate::divergence::path_table::convergence;
use crate::divergence::proof::ProofIn;
use crate::pipeline::timing::{ISSUE_TO_OUTCOME, OUTCOMES_BEFORE_HOLD};
use crate::proof::{cover, implies};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Bits of numbers of cycles.
const CYCLES: Width = 14;

/// Steps of the warden from a choice that has become void: it leaves, chooses a warp, notes, chooses a barrier, weighs,
/// decides.
const STEPS: u32 = 6;
/// What a named instruction on two barriers may cost in the cycle before it comes.
const NAMED: u32 = 3;
/// In the cycle in which an outcome is announced nothing is released in its warp.
const ANNOUNCED: u32 = 1;
/// In the cycle after an outcome, a return or a start the words of its warp are stale, and nothing is released in it.
const WRITTEN: u32 = 1;
/// A start may make a choice void.
const OF_A_START: u32 = 5 + WRITTEN;
/// A warp where nobody waits any more is visited only to note that.
const STALE: u32 = 3;

/// The unit of a shape with convergence barriers, in a pipeline that obeys `hold`.
pub fn release_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "release_proof", true, &|m, s, h| {
        let b = h.barriers.expect("a shape with convergence barriers");
        let left = left_of_a_decision(m, s, h, b);
        for slot in h.slots {
            stuck(m, s, slot, b, left);
            if entries(s) == 0 {
                looked_at(m, s, slot, b, left);
            }
        }
    })
}

/// Of a warp that returns: the fetch, and the turn that is kept behind the last path, or the cycle after it.
const OF_RETURNS: u32 = 2 + WRITTEN;

/// What one outcome or instruction on convergence barriers may add: steps, a named instruction, a path that is to
/// return with all behind it, a warp that ends and may be started, and one of which threads end after the last has been
/// released.
fn of_an_outcome(s: &Shape) -> u32 {
    STEPS + NAMED + ANNOUNCED + WRITTEN + 2 * entries(s) + OF_RETURNS + OF_A_START + STALE
}

/// Cycles in a row at most in which there is something to look at and nothing is decided.
pub fn decided_after(s: &Shape) -> u32 {
    let of_a_warp = 2 * entries(s) + OF_RETURNS + OF_A_START + STALE;
    STEPS + WRITTEN + s.warps * of_a_warp + 2 * (OUTCOMES_BEFORE_HOLD + ISSUE_TO_OUTCOME) * of_an_outcome(s)
}

/// Cycles at most from when no path of a warp can run, while threads of it wait, to a release: one decision about the
/// barrier that is read, then one for each that a note gives reason to look at, and the release; between two of them
/// those about other warps.
pub fn released_after(s: &Shape) -> u32 {
    (s.convergence_barriers + 2) * s.warps * (decided_after(s) + 1)
}

fn number(m: Builder, n: u32) -> Signal {
    m.lit(n, CYCLES)
}

/// `n` where the condition holds, else 0.
fn if_so(m: Builder, condition: Signal, n: u32) -> Signal {
    number(m, n).only_if(condition)
}

fn sum(m: Builder, terms: impl IntoIterator<Item = Signal>) -> Signal {
    terms.into_iter().fold(number(m, 0), |sum, term| sum + term)
}

/// What is left until something is decided, if there is something to look at: at least the cycles.
fn left_of_a_decision(m: Builder, s: &Shape, h: &Harness, b: &convergence::Inside) -> Signal {
    let of_warp = |bits: Signal| bits.select(b.store.at_slot.q, 1);
    let void = !of_warp(b.visit.due);
    let steps = pick(
        [
            (!b.store.at.q, number(m, STEPS - 1)),
            (void, number(m, STEPS)),
            (!b.store.read.q & of_warp(b.store.noted()), number(m, 4)),
            (!b.store.read.q, number(m, 3)),
            (!b.store.weighed.q, number(m, 2)),
        ],
        number(m, 1),
    );
    // What may still come: an instruction on barriers in stage 8, and an outcome in stage 9, of each that has issued.
    let (outcome, both) = h.late.split_last().expect("cycles from issue to outcome");
    let both = sum(m, both.iter().map(|&held| if_so(m, !held, 2)));
    let counted = number(m, OUTCOMES_BEFORE_HOLD + ISSUE_TO_OUTCOME) - h.tables.outcomes.zext(CYCLES);
    let outcomes = h.out.hold.mux(both + if_so(m, !*outcome, 1), counted + counted);
    let of_outcomes = outcomes.mul_full(number(m, of_an_outcome(s))).slice(0, CYCLES);
    let warps = h.slots.iter().map(|slot| {
        let n = slot.number;
        let idle = if_so(m, !h.out.live.bit(n), OF_A_START);
        let stale = if_so(m, b.store.noted().bit(n) & !b.store.holding.q.bit(n), STALE);
        // Each path is read and comes back.
        let count = slot.count.zext(CYCLES);
        let returns = (count + count + OF_RETURNS).only_if(slot.returning);
        idle + stale + returns
    });
    let no = m.lit(0u32, 1);
    let (reading, fetched, must) =
        h.cold.map_or((no, no, no), |c: &cct::Inside| (c.reading.valid, c.fetched.valid, c.must));
    // A turn that is kept for a return which does not come.
    let kept = m.pipe_reset("kept", must & !h.announced.valid) & !reading & !fetched;
    let of_heads = if_so(m, reading, 1) + if_so(m, fetched, 2);
    let of_returns = sum(m, warps) + kept.zext(CYCLES) - of_heads;
    let stale = h.tables.store.stale.q & h.tables.store.claim.q.release & of_warp(b.store.holding.q);
    let to_come = if_so(m, h.comes, NAMED) + if_so(m, h.tables.store.claim.q.outcome, ANNOUNCED);
    let left = steps + of_outcomes + of_returns + if_so(m, stale, WRITTEN) - to_come;
    let left = left.named("left_of_a_decision");
    let since = m.reg("undecided_since", CYCLES).reset(0u32);
    since.next((since.q + 1).only_if(b.visit.put_off));
    let most = decided_after(s);
    m.assert("something_is_decided_in_time", (since.q + left).le(most) & since.q.le(most));
    m.assert("instructions_are_counted", h.out.hold.eq(h.tables.outcomes.eq(OUTCOMES_BEFORE_HOLD)));
    cover(m, "something_is_decided", since.q.any() & b.visit.decides);
    left
}

/// Where no path of a warp can run and threads of it wait, some of them go on in time.
fn stuck(m: Builder, s: &Shape, slot: &Slot, b: &convergence::Inside, left: Signal) {
    let n = slot.number;
    let waits = b.store.softly.as_ref().map_or(slot.holds(m), |softly| softly.q.bit(n));
    let stuck = waits & (!slot.live | slot.waiting);
    let noted = b.store.noted().bit(n);
    let word = b.store.words.read(m.lit(n, s.warp_bits()));
    let here = b.store.at_slot.q.eq(b.store.at_slot.q.literal(n));
    let look = word.look.count_ones().zext(CYCLES);
    let read = b.store.read.q & here;
    let own = noted.mux(number(m, s.convergence_barriers) + read.zext(CYCLES), look);
    let until = until(m, s, n, b, own, left);
    let since = m.reg(&format!("stuck_since_{n}"), CYCLES).reset(0u32);
    let goes_on = b.visit.releases & here;
    since.next((since.q + 1).only_if(stuck & !goes_on));
    let most = released_after(s);
    assert!(most < 1 << (CYCLES - 1), "{most} cycles need more than {CYCLES} bits");
    m.assert(&format!("slot_{n}_is_released_in_time"), implies(stuck, (since.q + until).le(most)) & since.q.le(most));
    m.assert(&format!("slot_{n}_that_is_stuck_is_due"), implies(stuck, b.visit.due.bit(n)));
    let at_read = b.store.read_barrier.q.decode(s.convergence_barriers);
    let last = stuck & !noted & !word.look.any() & (word.soft() & at_read).any();
    let chosen = b.store.forced.q.mux(last, (word.look & at_read).any());
    m.assert(&format!("slot_{n}_has_what_is_read"), implies(read, chosen));
    cover(m, &format!("slot_{n}_is_released"), stuck & goes_on & since.q.any());
}

/// Cycles until the warden has decided about a warp that is due all the time, after `own` other decisions about it.
fn until(m: Builder, s: &Shape, n: u32, b: &convergence::Inside, own: Signal, left: Signal) -> Signal {
    // Decisions about others before the next one about it.
    let distance = m.lit(n, CYCLES) - b.store.at_slot.q.zext(CYCLES);
    let distance = distance.slice(0, s.warps.ilog2().max(1)).zext(CYCLES).only_if(m.lit(s.warps > 1, 1));
    let round = number(m, s.warps - 1);
    let before =
        b.store.at.q.mux(distance, b.store.at_slot.q.eq(b.store.at_slot.q.literal(n)).mux(round, distance - 1));
    let decisions = own.mul_full(number(m, s.warps)).slice(0, CYCLES) + before;
    decisions.mul_full(number(m, decided_after(s) + 1)).slice(0, CYCLES) + left
}

/// Each barrier that is to be looked at has its turn, whatever instructions of this warp and of others make the warden
/// look at. Only without a cold table: a warp that is returning whenever its turn comes is passed over.
fn looked_at(m: Builder, s: &Shape, slot: &Slot, b: &convergence::Inside, left: Signal) {
    let (n, barriers) = (slot.number, s.convergence_barriers);
    assert!(barriers.is_power_of_two(), "turns are counted around {barriers} barriers");
    let at = m.lit(n, s.warp_bits());
    let look = b.store.words.read(at).look.only_if(b.store.looking.q.bit(n));
    let bits = barriers.ilog2();
    // Decisions about this warp, with the one about barrier k.
    let turns = |k: Signal| {
        let ahead = k - b.store.last.read(at);
        let ahead = if bits > 0 { ahead.slice(0, bits).zext(CYCLES) } else { number(m, 0) };
        ahead.any().mux(ahead, number(m, barriers))
    };
    let here = b.store.at_slot.q.eq(b.store.at_slot.q.literal(n));
    for k in 0..barriers {
        let turns_left = turns(m.lit(k, s.barrier_bits()));
        let first = turns(b.store.read_barrier.q).le(turns_left);
        m.assert(&format!("slot_{n}_barrier_{k}_has_its_turn"), implies(look.bit(k) & b.store.read.q & here, first));
        let until = until(m, s, n, b, turns_left - 1, left);
        let since = m.reg(&format!("to_be_looked_at_{n}_{k}"), CYCLES).reset(0u32);
        let decided = b.visit.decides & here & b.store.read_barrier.q.eq(k);
        since.next((since.q + 1).only_if(look.bit(k) & !decided));
        let most = looked_at_after(s);
        let in_time = implies(look.bit(k), (since.q + until).le(most)) & since.q.le(most);
        m.assert(&format!("slot_{n}_barrier_{k}_is_looked_at_in_time"), in_time);
        cover(m, &format!("slot_{n}_barrier_{k}_is_looked_at"), look.bit(k) & decided & since.q.any());
    }
}

/// Cycles at most from when something gives reason to look at a barrier to the decision.
pub fn looked_at_after(s: &Shape) -> u32 {
    s.convergence_barriers * s.warps * (decided_after(s) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps, barriers, convergence_barriers) in
            [(2, 1, false, 1), (2, 2, true, 2), (4, 1, true, 1), (4, 2, true, 2), (8, 1, true, 3)]
        {
            let s = Shape { program: 16, depth_bits: 1, barriers, ..Shape::new(lanes, warps) };
            let s = Shape { convergence_barriers, patience: 32, ..s };
            for warp_primitives in [false, true] {
                let s = Shape { warp_primitives, ..s.clone() };
                holds_at_random(&release_proof(&s).check().unwrap().netlist, 20_000);
            }
        }
    }
}

//! That paths which give way are fair: every thread that does not wait runs at least once in [`bound`] outcomes of its
//! warp, on whatever unit.
//!
//! The unit counts for each thread the outcomes since it ran. Here it is shown that this number and a *rank*, the most
//! outcomes that may still come before it runs, are together never more than the bound. The rank is a turn for each
//! path that has not given way, the one that runs first, with an LR/SC sequence at its end; a thread that has given way
//! must wait for the next round, in which it may be the last. Threads that a convergence barrier holds count as one path
//! each, but not for those of the path that runs: who comes back does so behind it.

use super::super::sequence::longest;
use super::{Fairness, bound, brief, first_turn, until};
use crate::proof::{cover, implies};
use crate::shape::Shape;
use heddle_hdl::elements;
use heddle_hdl::prelude::*;

/// Bits of a rank.
const RANK: Width = 12;

/// What a unit has of a warp; 1 bit, or a bit a thread.
pub struct Warp {
    /// Its number, and what messages call it.
    pub number: u32,
    pub live: Signal,
    /// The unit knows which path runs: nothing is on its way.
    pub settled: Signal,
    /// It has more than one path.
    pub several: Signal,
    /// Threads that have given way, and that have not, of those that do not wait; those that wait.
    pub late: Signal,
    pub in_time: Signal,
    /// With convergence barriers, those that wait there; and those of the path that runs.
    pub held: Option<[Signal; 2]>,
    /// A thread that waits has given way.
    pub waits_late: Signal,
    /// The counters of [`super::assert_bound`].
    pub since: Mem<Width>,
    /// What is kept of LR/SC sequences, where something is ([`super::super::sequence::Sequences::of`]).
    pub sequence: Option<[Signal; 3]>,
}

pub fn has_its_turn(m: Builder, s: &Shape, fairness: &Fairness, warp: &Warp) {
    let &Warp { number: n, live, settled, several, late, in_time, held, waits_late, sequence, ref since } = warp;
    let at = m.lit(n, s.warp_bits());
    let name = |what: &str| format!("slot_{n}_{what}");
    let Fairness { parted, yields, others, ages, .. } = fairness;
    let (parted, others) = (parted.q.bit(n), others.q.bit(n));
    let yields = if s.order.takes_turns() { m.lit(1u32, 1) } else { yields.q.bit(n) };
    let age = ages.read(at);

    // Who waits has not given way, so nobody has after a wake.
    m.assert(&name("who_waits_has_not_given_way"), !waits_late);
    // A warp of several paths is parted, and somebody has given way only while it is.
    m.assert(&name("is_parted"), implies(settled & live & several, parted));
    m.assert(&name("others_give_way_where_it_is_parted"), implies(live & others, parted));
    m.assert(&name("others_have_given_way"), implies(late.any(), others));
    // Time is over where a turn ends.
    let at_end = if brief(s) > 1 { age.slice(0, brief(s).ilog2()).all() } else { m.lit(1u32, 1) };
    m.assert(&name("gives_way_at_the_end_of_a_turn"), implies(live & parted & yields, at_end));
    let over = age.all() | (at_end & others);
    m.assert(&name("gives_way_when_time_is_over"), implies(live & parted & over, yields));

    // Outcomes until the active path gives way, that outcome included.
    let number = |k: u32| m.lit(k, RANK);
    let of_turn = if brief(s) > 1 { age.slice(0, brief(s).ilog2()).zext(RANK) } else { number(0) };
    let left = others.mux(number(until(s, brief(s))) - of_turn, number(until(s, first_turn(s))) - age.zext(RANK));
    let at_last = sequence.map_or(number(1), |[more, left, prolongs]| {
        m.assert(&name("sequence_lasts_for_some_outcomes"), implies(more, left.from_bit(1).any()));
        let left = more.mux(left.zext(RANK), number(1));
        prolongs.mux(left, left + number(longest(s)))
    });
    wire!(left = yields.mux(at_last, left));
    // Threads that a convergence barrier holds come back in time, unless somebody has given way.
    let may_come = held.map_or(in_time, |[held, _]| in_time | (held & !late).only_if(!others));
    let count = may_come.count_ones().zext(RANK);
    let turns = |count: Signal| number(until(s, brief(s))) * count;
    let round = number(until(s, first_turn(s)) + (s.lanes - 1) * until(s, brief(s)));
    let rank = in_time.any().mux(left + turns(count - 1), number(0));
    for (k, since) in (0..s.lanes).zip(elements(since.read(at), count_width(bound(s)))) {
        let since = since.zext(RANK);
        let (is_late, runs) = (late.bit(k), late.bit(k) | in_time.bit(k));
        m.assert(&format!("slot_{n}_lane_{k}_counts_while_it_can_run"), implies(live & !runs, !since.any()));
        let rest = is_late.mux(rank + round, rank);
        // Who comes back from a barrier does so behind the path that runs.
        let rest = held.map_or(rest, |[_, active]| active.bit(k).mux(number(1), rest));
        // Who is alone runs next.
        let in_turn = (since + rest.only_if(parted)).le(bound(s));
        m.assert(&format!("slot_{n}_lane_{k}_has_its_turn"), implies(live & runs, in_turn));
    }
    if s.lanes > 1 {
        cover(m, &name("new_round"), m.pipe_reset(&name("had_late"), live & late.any()) & live & !late.any());
    }
}

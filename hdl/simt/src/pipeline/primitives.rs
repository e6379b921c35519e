//! Stage 7, second cycle: votes and shuffles among the threads of a warp that execute an instruction together, and for
//! `sync` who of the named threads does not.
//!
//! Combinational, behind the ALUs, whose results are the values that lanes bring. A lane that does not execute the
//! instruction has no vote, and gives nothing: who asks for its value gets the own one. So does who asks for a lane that
//! there is not; lane numbers are compared in full, not modulo the lanes.
//!
//! What it does not do: it waits for nobody. That is `sync`, which the divergence unit carries out
//! (`docs/reference/warp-primitives.md`).

use crate::isa::{Shuffle, Vote};
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*};

/// Which instruction of [`warp`] it is, 1 bit each, and what it does, 2 bits.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Primitive<T> {
    pub votes: T,
    pub shuffles: T,
    pub syncs: T,
    pub function: T,
}

impl Primitive<Width> {
    /// In a core with them.
    pub fn shape(s: &Shape) -> Option<Primitive<Width>> {
        s.warp_primitives.then_some(Primitive { votes: 1, shuffles: 1, syncs: 1, function: 2 })
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct PrimitivesIn<T> {
    #[width(Primitive::shape(s).expect("a core with warp primitives"))]
    pub primitive: Primitive<T>,
    /// The threads that execute it, and the lowest of them alone.
    #[width(s.lanes)]
    pub mask: T,
    #[width(s.lanes)]
    pub leader: T,
    /// 32 bits a lane: rs1, rs2.
    #[width(32 * s.lanes)]
    pub values: T,
    #[width(32 * s.lanes)]
    pub operands: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct PrimitivesOut<T> {
    /// 32 bits a lane: the result of a vote or shuffle; else rs1.
    pub result: T,
    pub named: Named<T>,
}

/// Of a `sync`: whom the lowest thread that executes it names. A thread always names itself, too.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Named<T> {
    /// One bit per lane: these threads.
    #[width(s.lanes)]
    pub all: T,
    /// Of them, those that execute it and name the same.
    #[width(s.lanes)]
    pub here: T,
    /// 1 bit: there are others.
    pub lacks: T,
}

impl Named<Width> {
    /// In a core with warp primitives.
    pub fn of(s: &Shape) -> Option<Named<Width>> {
        s.warp_primitives.then(|| Named::shape(s))
    }
}

pub fn primitives(s: &Shape) -> TypedModule<PrimitivesIn<Width>, PrimitivesOut<Signal>> {
    module("primitives", PrimitivesIn::shape(s), |m, i| {
        m.doc("Votes, shuffles, and whom a sync names.");
        let PrimitivesIn { primitive, mask, leader, values, operands } = i;
        let (own, asked) = (elements(values, 32), elements(operands, 32));
        wire!(voters = mask & cat(&own.iter().map(|value| value.any()).collect::<Vec<_>>()));
        let vote = voted(m, s, primitive.function, voters, mask);
        let lanes = own.iter().zip(&asked).zip(0..s.lanes).map(|((&own, &asked), lane)| {
            let (there, source) = source(m, s, primitive.function, asked, lane);
            let takes = primitive.shuffles & there & mask.select(source, 1);
            primitive.votes.mux(vote, takes.mux(values.select(source, 32), own))
        });
        let result = cat(&lanes.collect::<Vec<_>>());

        let named: Vec<Signal> = (own.iter().zip(&asked).zip(0..s.lanes))
            .map(|((&lower, &upper), lane)| cat(&[lower, upper]).slice(0, s.lanes) | m.lit(1u64 << lane, s.lanes))
            .collect();
        wire!(all = select_one_hot(&named, leader));
        let same = named.iter().map(|named| named.eq(all)).collect::<Vec<_>>();
        wire!(here = mask & all & cat(&same));
        m.cover("shuffles_with_somebody_absent", primitive.shuffles & !mask.all());
        m.cover("syncs_with_other_names", primitive.syncs & (mask & all & !here).any());
        PrimitivesOut { result, named: Named { all, here, lacks: (all & !here).any() } }
    })
}

/// The word that all lanes get from a vote.
fn voted(m: Builder, s: &Shape, function: Signal, voters: Signal, mask: Signal) -> Signal {
    let lower = if s.lanes > 32 { voters.slice(0, 32) } else { voters.zext(32) };
    let upper = if s.lanes > 32 { voters.from_bit(32).zext(32) } else { m.lit(0u32, 32) };
    let is = |vote: Vote| function.eq(vote);
    let (any, all) = (voters.any().zext(32), voters.eq(mask).zext(32));
    pick([(is(Vote::BallotUpper), upper), (is(Vote::Any), any), (is(Vote::All), all)], lower)
}

/// The lane that a lane asks for: whether there is one, 1 bit; its number, `lane_bits`.
fn source(m: Builder, s: &Shape, function: Signal, asked: Signal, lane: u32) -> (Signal, Signal) {
    let bits = s.lane_bits();
    let (low, own) = (asked.slice(0, bits), m.lit(lane, bits));
    let is = |shuffle: Shuffle| function.eq(shuffle);
    let (up, down) = (is(Shuffle::Up), is(Shuffle::Down));
    // One sum for both: less the operand is plus what it lacks to all ones, plus 1.
    let carry = up;
    let sum = cat(&[m.lit(1u32, 1), own]).zext(bits + 2) + cat(&[carry, low ^ up.repeat(bits)]).zext(bits + 2);
    let (moved, beyond) = (sum.slice(1, bits), sum.bit(bits + 1));
    let number = (up | down).mux(moved, is(Shuffle::Xor).mux(own ^ low, low));
    // Upwards a carry says that the difference is not below 0; downwards that the sum is above the lanes.
    let in_range = up.mux(beyond, !(down & beyond));
    let there = in_range & !asked.from_bit(bits).any();
    // Of one lane, a number has a bit too many.
    (if s.lanes == 1 { there & !number.any() } else { there }, number)
}

#[cfg(test)]
mod tests;

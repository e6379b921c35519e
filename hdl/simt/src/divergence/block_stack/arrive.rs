//! What a warp's outcome means: it goes on alone, or ahead of its block, or arrives.

use super::super::levels::{Top, compare, is_at_point};
use super::super::{Announced, Outcome, OutcomeKind, Side, depth_after};
use super::ahead::{Arriving, Going};
use super::slack::Passing;
use super::state::{OfSlot, Place, PlaceKind, Store};
use crate::shape::Compaction;
use heddle_hdl::prelude::*;

/// An outcome.
pub struct Arrival<'a> {
    /// What [`super::ahead`] is told of it, and says.
    pub arriving: Arriving<'a>,
    pub going: Option<Going>,
    /// With [`Shape::passes`](crate::shape::Shape::passes), where one that passes comes to.
    pub passing: Option<Passing>,
    /// The words of its slot and of its block.
    pub of_slot: OfSlot<Signal>,
    /// 1 bit each: a branch; a jump; of which threads go both ways, or might, unless no other warp of the block runs.
    pub branches: Signal,
    pub jumps: Signal,
    pub parts: Signal,
    /// 1 bit: no other warp runs, and its threads stay together where they might have gone both ways.
    pub lone: Signal,
    /// 1 bit each: the warp is ahead and passes; and is parked.
    pub passes: Signal,
    pub parks: Signal,
    /// 1 bit each: the warp goes on; and has not arrived with some of its threads; has arrived with some, or with all;
    /// its threads have ended.
    pub goes_on: Signal,
    pub goes_ahead: Signal,
    pub arrives: Signal,
    pub exits: Signal,
    /// 1 bit each: the first of its block has arrived; this warp is somewhere else.
    pub records: Signal,
    pub elsewhere: Signal,
    /// Where the warps of its block arrive, if it does.
    pub place: Place<Signal>,
    /// What runs, if it goes on.
    pub alone: Top<Signal>,
    /// One bit per thread: the warp's; those that have arrived on the side that takes the branch, and on the other.
    pub moved: Signal,
    pub joins_taken: Signal,
    pub joins_rest: Signal,
}

impl Store {
    /// What the outcome means; and reads the words of the `announced` one.
    pub fn arrive<'a>(
        &self,
        outcome: &'a Outcome<Signal>,
        announced: &Announced<Signal>,
        filling: Signal,
    ) -> Arrival<'a> {
        let Store { m, s, .. } = self;
        let m = *m;
        let never = m.lit(0u32, 1);
        let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads reconverge") };
        let is = |kind: OutcomeKind| outcome.valid & outcome.kind.eq(kind);
        wire!(block = self.block_of(outcome.slot));
        let of_slot = self.of_slot.q;
        let OfSlot { warp, depth, after: taken_depth, ends: before, first, .. } = of_slot;
        let all_go = outcome.taken.mask.any();
        wire!(splits = all_go & outcome.rest.mask.any());
        wire!(jumps = is(OutcomeKind::Jump));
        wire!(branches = is(OutcomeKind::Branch));
        let all_wait = match s.compaction {
            Compaction::Every => m.lit(1u32, 1),
            Compaction::Always => branches,
            Compaction::Off | Compaction::SkipUniform | Compaction::Predict => never,
        };
        wire!(is_first = !self.recorded.q.select(block, 1));
        let others = self.slots_of(block) & (self.running.q | filling) & !self.bit(outcome.slot, !never);
        let are_formed = self.formed.q.valid & self.formed.q.block.eq(block);
        // A prediction learns from each branch.
        let may_be_lone = m.lit(!s.predicts(), 1);
        wire!(waits_for_none = may_be_lone & is_first & !others.any() & !are_formed);
        wire!(may_differ = !meets.uniform | all_wait);
        wire!(may_part = splits | (may_differ & !waits_for_none));
        wire!(lone = (branches | jumps) & !splits & may_differ & waits_for_none);
        wire!(passes = self.is_passing(outcome));
        wire!(parts = (branches | jumps) & may_part & !passes);
        wire!(parting_branch = branches & parts);
        wire!(moves = ((branches | jumps) & !may_part) | is(OutcomeKind::Arrived));
        let gone = Side { mask: taken_depth, pc: outcome.taken.pc };
        let stayed = Side { mask: depth, pc: outcome.rest.pc };
        let Side { mask: to_depth, pc: to } = all_go.mux(gone, stayed);
        let found = !is_first & first.kind.eq(PlaceKind::Rpc);
        let rpc = before.rpc.found(found, first.pc);
        wire!(meets_here = moves & !passes & rpc.reached(to, to_depth));
        let would_be = Top { pc: to, depth: to_depth, mask: warp.mask, rpc, likely: before.likely };
        wire!(at_point = moves & !passes & !meets_here & is_at_point(&would_be).unwrap_or(never));
        let passing = self.passing(would_be);
        wire!(parks = passes & moves & passing.map_or(never, |passing| passing.parks));
        wire!(goes_on = moves & !meets_here & !at_point & !parks);
        wire!(waits = is(OutcomeKind::Wait));
        wire!(exits = is(OutcomeKind::Exit));
        wire!(arrives = outcome.valid & !passes & !goes_on);

        let top = Top { depth, ..would_be };
        let compared = compare(m, &self.wide, outcome, taken_depth, &top);
        let arriving = Arriving { outcome, top, compared, parting: parting_branch, splits, block, is_first };
        let going = self.ahead.as_ref().map(|ahead| ahead.goes(m, &arriving));
        wire!(goes_ahead = going.map_or(never, |going| going.goes));

        let at_end = [
            (meets_here, m.code(PlaceKind::Rpc)),
            (at_point, m.code(PlaceKind::Point)),
            (waits, m.code(PlaceKind::Barrier)),
        ];
        let here = Place {
            kind: pick(at_end, m.code(PlaceKind::Branch)),
            pc: parts.mux(outcome.rest.pc, to),
            depth: parts.mux(depth, to_depth),
            jump: jumps & parts,
            call: outcome.call,
            ret: outcome.ret,
            target: outcome.taken.pc,
            meets,
            sides: compared,
        };
        // A jump's pc is its own, a branch's is that behind it.
        let same_kind = here.kind.eq(first.kind) & here.jump.eq(first.jump);
        let same = same_kind & here.pc.eq(first.pc) & here.depth.eq(first.depth);
        wire!(records = arrives & !exits & is_first);
        wire!(elsewhere = (arrives & !exits & !is_first & !same) | (passes & splits));
        self.places.write(records, block, here);
        self.read_announced(announced, (records, block, here));

        let moved = self.spread(warp.mask, warp.homes, outcome.slot);
        let on_sides = |side: Side<Signal>| self.spread(side.mask, warp.homes, outcome.slot);
        let joins_taken = on_sides(outcome.taken).only_if(parts | waits) | moved.only_if(at_point);
        let joins_rest = on_sides(outcome.rest).only_if(parts);

        let here_already = self.taken.q | self.rest.q;
        let nobody = |threads: Signal| !threads.any();
        m.assert("nobody_arrives_twice", nobody(joins_taken & here_already) & nobody(joins_rest & here_already));
        m.assert("who_arrives_is_live", nobody((joins_taken | joins_rest) & !self.live.q));
        m.assert(
            "jumps_go_where_the_first_goes",
            !(arrives & jumps & parts & !is_first & all_go & same) | first.target.eq(outcome.taken.pc),
        );
        m.cover("goes_on_alone", goes_on & (branches | jumps));
        m.cover("not_uniform", elsewhere);
        if !s.predicts() {
            m.cover("goes_on_since_no_other_runs", lone & goes_on);
        }
        let alone = Top { rpc: before.rpc, ..would_be };
        Arrival {
            arriving,
            going,
            passing,
            of_slot,
            branches,
            jumps,
            parts,
            lone,
            passes,
            parks,
            goes_on,
            goes_ahead,
            arrives,
            exits,
            records,
            elsewhere,
            place: is_first.mux(here, first),
            alone,
            moved,
            joins_taken,
            joins_rest,
        }
    }

    /// Reads the words of an outcome that is announced. Where the first of its block has arrived may be said just now, and,
    /// of a warp that was ahead until now, what its block's top is.
    fn read_announced(&self, announced: &Announced<Signal>, (records, block, here): (Signal, Signal, Place<Signal>)) {
        let Announced { slot: next_slot, call, ret, .. } = *announced;
        wire!(next_block = self.block_of(next_slot));
        let next_depth = self.depths.read(next_slot);
        let (mut ends, mut count) = (self.ends.read(next_block), self.counts.read(next_block));
        if let Some(begins) = self.top_begins.as_ref().map(|begins| begins.value) {
            wire!(just_now = begins.valid & begins.block.eq(next_block));
            (ends, count) = (just_now.mux(begins.ends, ends), just_now.mux(begins.count, count));
        }
        self.of_slot.next(OfSlot {
            warp: self.warps.read(next_slot),
            depth: next_depth,
            after: depth_after(call, ret, next_depth),
            ends,
            count,
            first: (records & block.eq(next_block)).mux(here, self.places.read(next_block)),
        });
    }

    /// What simulations look at.
    pub fn probe_outcome(&self, arrival: &Arrival) {
        let (m, outcome) = (self.m, arrival.arriving.outcome);
        m.probe("passes", arrival.branches | arrival.jumps);
        m.probe("passes_jump", arrival.jumps);
        m.probe("passes_parts", arrival.parts);
        m.probe("passes_lone", arrival.lone);
        m.probe("passes_arrives", arrival.arrives | arrival.parks);
        m.probe("passes_ahead", arrival.goes_ahead);
        m.probe("passes_slot", outcome.slot);
        m.probe("passes_taken", outcome.taken.mask);
        m.probe("passes_rest", outcome.rest.mask);
    }
}

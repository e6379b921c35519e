//! What the stack does for a block: all threads of it have arrived, and do one thing; or a level is popped.
//!
//! A block is chosen when the last of its warps has arrived and no register of them awaits a write, unless its warps are
//! static ones and stay so. If that is so in the very cycle in which the warp arrives, the words are those of the outcome,
//! and the uppermost level is read then. Else the words are read when the block is chosen, and a level that is popped in
//! one cycle more. Then it *acts*: once for the place where its threads have arrived, which at an rpc pops a level, and
//! once more for each further level that is popped before threads run.

use super::super::levels::{
    Likely, Parting, Pop, Rpc, Top, compare, has_likely, is_at_point, levels, part_compared, pop,
};
use super::super::{MixedIn, Outcome, OutcomeKind, Side, Start, depth_after};
use super::ahead::{Arriving, Branch, Turn};
use super::arrive::Arrival;
use super::state::{Count, Ends, Held, Mixing, OfBlock, Place, PlaceKind, Step, Store, TopBegins};
use crate::arbiter::{places_above, round_robin};
use crate::block::whole_group;
use heddle_hdl::prelude::*;

/// What the stack does in this cycle.
pub struct Acting {
    pub due: Due,
    /// 1 bit: it does something; warps are formed next, of these threads.
    pub acts: Signal,
    pub forms: Signal,
    pub comes: Top<Signal>,
    /// What becomes of a branch of the whole block; of the level that is popped.
    pub parting: Parting,
    pub popped: Pop<Signal>,
    /// Levels in use, then.
    pub left: Count<Signal>,
    /// With [`Shape::predicts`](crate::shape::Shape::predicts).
    pub turn: Option<Turn>,
    /// Words of masks of levels: siblings, groups, and those at likely points.
    pub levels: Vec<Mem<Width>>,
}

/// The block whose turn it is, and what is to be done.
pub struct Due {
    /// Its lowest slot; one bit per slot and one per thread: they are of it.
    pub at: Signal,
    pub slots: Signal,
    pub columns: Signal,
    /// 1 bit: all its threads have arrived; a level is popped. Both where they have arrived at an rpc.
    pub begins: Signal,
    pub pops: Signal,
    /// 1 bit: first the level is read.
    reads_level: Signal,
    /// 1 bit: not all of it have arrived at a barrier, and the others never come.
    pub part_waits: Signal,
    /// 1 bit: where all have arrived.
    pub branch: Signal,
    pub barrier: Signal,
    pub met: Signal,
    pub point: Signal,
    pub place: Place<Signal>,
    pub ends: Ends<Signal>,
    pub count: Count<Signal>,
    /// One bit per thread of it: that lives; on either side.
    pub live: Signal,
    taken: Signal,
    rest: Signal,
}

/// All threads of a block do one thing.
struct Begun {
    whole: Outcome<Signal>,
    top: Top<Signal>,
    parting: Parting,
    /// 1 bit: they are at their rpc now.
    at_rpc: Signal,
    /// What runs next, if no level is popped.
    next: Top<Signal>,
}

/// What comes to be the top, and what is left in the levels.
struct Uppermost {
    popped: Pop<Signal>,
    comes: Top<Signal>,
    /// 1 bit: it waits at a likely point; something is left of the level that is popped.
    joins: Signal,
    stays: Signal,
    /// The branch of the level that is popped.
    branch: Option<Branch<Signal>>,
    words: Vec<Mem<Width>>,
}

impl Store {
    /// What it does; blocks of which one `starts` begin without levels.
    pub fn act(&self, mixed: &MixedIn<Signal>, starts: &Start<Signal>, arrival: &Arrival) -> Acting {
        let Store { m, s, wide, step, .. } = self;
        let m = *m;
        let choice = self.choose(mixed);
        wire!(chosen_block = self.block_of(choice.one_hot_index()));
        let arriving = &arrival.arriving;
        let completes = self.completes(mixed, arrival) & !choice.any();
        let told = OfBlock { count: arrival.of_slot.count, place: arrival.place, ends: arrival.of_slot.ends };
        let due = self.due(chosen_block, (completes, told));
        let Due { at, begins, pops, count, reads_level, .. } = due;
        let begun = self.begin(&due);
        let Parting { pushes, goes_as_taken, .. } = begun.parting;
        let branch_of = |taken: Signal| self.ahead.as_ref().map(|ahead| ahead.branch(at, due.place.pc, taken));
        let Uppermost { popped, comes, joins, stays, branch, words } =
            self.uppermost(&due, &begun, arrival, branch_of(!goes_as_taken));
        wire!(joins = joins);
        let Count { now, below } = count;
        wire!(gives_up = pops & !stays);
        let left = pick(
            [(pushes, Count { now: now + 1, below: now }), (gives_up, Count { now: below, below: below - 1 })],
            count,
        );
        wire!(acts = begins | pops);
        // Not of `comes`, which is known late.
        wire!(nobody_left = pops.mux(popped.nobody, !begun.parting.stay.any()));
        wire!(must_pop = (acts & (joins | nobody_left)) | begun.at_rpc | (pops & popped.arrives_again));
        // Not of `left`, which is known late.
        wire!(some_left = pushes | gives_up.mux(now.gt(1), now.any()));
        wire!(pops_next = must_pop & some_left);
        wire!(forms_next = acts & !must_pop);

        let now_ends = Ends::of(comes);
        let first_ends = m.zero(Ends { rpc: Rpc::shape(s), likely: comes.likely.map(|_| Likely::shape(wide)) });
        let of = acts.mux(at, self.block_of(starts.slot));
        self.ends.write(acts | starts.valid, of, acts.mux(now_ends, first_ends));
        self.counts.write(acts | starts.valid, of, left.only_if(acts));
        if let Some(begins) = &self.top_begins {
            begins.drive(TopBegins { valid: acts, block: at, count: left, ends: now_ends });
        }

        let (never, one) = (m.lit(0u32, 1), m.lit(1u32, 1));
        let block = completes.mux(arriving.block, chosen_block);
        let slots = self.slots_of(block);
        let chosen = Step { valid: choice.any() | completes, block, slots, arrived: one, read: one, level: completes };
        let pop_next = Step { valid: one, arrived: never, read: never, level: never, ..step.q };
        let read = Step { read: one, level: one, ..step.q };
        wire!(done = !step.q.valid | (acts & !pops_next));
        let continues = acts.mux(pop_next, (!step.q.read | reads_level).mux(read, step.q));
        step.next(done.mux(chosen, continues));

        m.assert("live_threads_go_on", !(done & step.q.valid & must_pop & !some_left) | !due.live.any());
        m.assert("below_is_one_less", !(acts & now.any()) | below.eq(now - 1));
        m.assert("some_are_left_or_none", some_left.eq(left.now.any()) | !acts);
        m.cover("a_block_ends", acts & must_pop & !some_left);
        m.cover("pops_again", pops & pops_next);
        let of = branch_of(goes_as_taken).zip(branch).map(|(new, held)| pops.mux(held, new));
        let turn = of.map(|of| Turn {
            slots: due.slots,
            begins,
            branch: due.branch & !due.place.jump,
            apart: begun.parting.parts,
            goes_as_taken,
            both_stay: begun.parting.both_stay,
            pops,
            to_sibling: popped.to_sibling,
            to_outer: popped.to_outer,
            arrives_again: popped.arrives_again,
            of,
            count,
            forms: forms_next,
            threads: comes.mask,
        });
        Acting { due, acts, forms: forms_next, comes, parting: begun.parting, popped, left, turn, levels: words }
    }

    /// One bit per slot, at most one of them on: its block goes on. The last of its warps has arrived, and no write is
    /// under way that a thread would leave behind.
    fn choose(&self, mixed: &MixedIn<Signal>) -> Signal {
        let Store { m, s, group, step, formed, running, arrived, .. } = self;
        let (group, filled) = (*group, !mixed.filling);
        let still_if = |settled: Signal| whole_group(((!running.q & settled) | self.ahead_slots()) & filled, group);
        let still = match &self.mixing {
            Some(Mixing { regrouped, not_taken, not_rest }) => {
                let known = |others: Signal, side: Signal| others.eq(self.static_warps(self.live.q & !side));
                let both = known(not_taken.q, self.taken.q) & known(not_rest.q, self.rest.q);
                m.assert("who_has_not_arrived_is_known", both);
                let nobody = |others: Signal| whole_group(!others & !self.ahead_slots(), group);
                // All threads that are not ahead have arrived on one side; so that has the static warps, and a slot whose
                // warp was its static one runs that again. Writes that it owes come to the same registers as ever, and its
                // scoreboard knows of them.
                wire!(on_one_side = nobody(not_taken.q) | nobody(not_rest.q));
                still_if(mixed.quiet) | (on_one_side & still_if(mixed.quiet | !regrouped.q))
            }
            None => still_if(!m.lit(0u32, s.warps)),
        };
        let being_formed = self.slots_of(formed.q.block).only_if(formed.q.valid);
        wire!(busy = step.q.slots.only_if(step.q.valid) | being_formed);
        let above = places_above(step.q.block.decode(s.warps)) & !step.q.slots;
        wire!(after = step.q.valid.mux(above, self.after.q));
        self.after.next(after);
        wire!(choice = round_robin(arrived.q & still & !busy, after));
        let quiet = whole_group(mixed.quiet | self.ahead_slots(), group);
        m.cover("goes_on_with_writes_under_way", (choice & !quiet).any());
        let all_came = whole_group(!running.q & filled, group);
        m.cover("waits_for_writes", (arrived.q & !still).any() & all_came.any());
        let came = whole_group((!running.q | self.ahead_slots()) & filled, group);
        m.probe("owed", (arrived.q & came & !still).any());
        choice
    }

    /// 1 bit: the warp that arrives is the last of its block, and no write is under way. What comes of it has the time of
    /// this cycle that is left; so static warps with writes under way are left to [`Store::choose`].
    fn completes(&self, mixed: &MixedIn<Signal>, arrival: &Arrival) -> Signal {
        let Store { m, s, step, formed, running, .. } = self;
        let Arriving { outcome, block, .. } = arrival.arriving;
        let settled = if self.mixing.is_some() { mixed.quiet } else { !m.lit(0u32, s.warps) };
        let of_block = self.slots_of(block);
        let others = of_block & !self.bit(outcome.slot, !m.lit(0u32, 1));
        wire!(others_come = !(others & ((running.q | !settled) & !self.ahead_slots())).any());
        wire!(no_more_comes = !(of_block & mixed.filling).any());
        wire!(in_hand = formed.q.valid & formed.q.block.eq(block));
        let may = others_come & no_more_comes & !in_hand;
        let acts_for_it = step.q.valid & step.q.block.eq(block);
        m.assert("nobody_arrives_where_all_have", !(arrival.arrives & acts_for_it));
        arrival.arrives & may & (settled.select(outcome.slot, 1) | arrival.goes_ahead)
    }

    /// The words of the block whose turn it is; and reads those of the block that is chosen next, unless this one's are
    /// still to be read or used, or that `completes`, whose words are `told`.
    fn due(&self, chosen_block: Signal, (completes, told_now): (Signal, OfBlock<Signal>)) -> Due {
        let Store { s, .. } = self;
        let Step { block: at, slots, valid, arrived, read, level } = self.step.q;
        let free = !self.formed.q.valid;
        wire!(due = valid & arrived & read & free);
        wire!(own_columns = slots.repeat(s.lanes));
        wire!(to_read = (valid & !read).mux(at, chosen_block));
        let count = self.counts.read(to_read);
        let now = OfBlock { count, place: self.places.read(to_read), ends: self.ends.read(to_read) };
        let OfBlock { count, place: told, ends } = self.of_block.q;
        wire!(all_taken = self.taken.q & own_columns);
        wire!(all_rest = self.rest.q & own_columns);
        wire!(all_live = self.live.q & own_columns);
        let is_recorded = self.recorded.q.select(at, 1);
        wire!(part_waits = due & is_recorded & told.kind.eq(PlaceKind::Barrier) & all_taken.ne(all_live));
        let at_rpc = is_recorded & told.kind.eq(PlaceKind::Rpc);
        wire!(reads_level = due & at_rpc & !level);
        let keeps = valid & read & (!free | part_waits | reads_level);
        let takes_now = completes & (!valid | read);
        self.of_block.next_if(!keeps, takes_now.mux(told_now, now));
        wire!(begins = due & !part_waits & !reads_level);
        wire!(together = is_recorded & begins);
        let of_kind = |kind: PlaceKind| together & told.kind.eq(kind);
        wire!(branch = of_kind(PlaceKind::Branch));
        wire!(barrier = of_kind(PlaceKind::Barrier));
        wire!(met = due & at_rpc & level);
        wire!(pops = valid & read & free & (!arrived | (at_rpc & level)));
        wire!(point = of_kind(PlaceKind::Point));
        Due {
            at,
            slots,
            columns: own_columns,
            begins,
            pops,
            reads_level,
            part_waits,
            branch,
            barrier,
            met,
            point,
            place: told,
            ends,
            count,
            taken: all_taken,
            rest: all_rest,
            live: all_live,
        }
    }

    /// The stack sees one branch of the whole block. After a barrier, all go on as one side of one.
    fn begin(&self, due: &Due) -> Begun {
        let Store { m, wide, .. } = self;
        let m = *m;
        let &Due { branch, barrier, point, place: told, ends: kept, .. } = due;
        let whole = Outcome {
            valid: branch | barrier,
            slot: due.at,
            kind: told.jump.mux(m.code(OutcomeKind::Jump), m.code(OutcomeKind::Branch)),
            taken: Side { mask: due.taken, pc: barrier.mux(told.pc, told.target) },
            rest: Side { mask: due.rest, pc: told.pc },
            call: told.call & branch,
            ret: told.ret & branch,
            meets: Some(told.meets),
            homes: None,
        };
        let rpc = kept.rpc.found(due.met, told.pc);
        let mask = due.taken | due.rest;
        let top = Top { pc: told.pc, depth: told.depth, mask, rpc, likely: kept.likely };
        wire!(depth_of_taken = depth_after(whole.call, whole.ret, top.depth));
        let parting = part_compared(m, wide, &whole, depth_of_taken, top, due.count.now, told.sides);
        let Parting { parts: apart, meeting, taken_is_there, towards, side, stay, .. } = parting;
        let sides = compare(m, wide, &whole, depth_of_taken, &top);
        m.assert("sides_are_as_when_the_first_arrived", !branch | sides.same_as(told.sides));
        m.assert(
            "a_barrier_is_where_its_first_arrived",
            !barrier | sides.taken_is_at_tops.eq(told.sides.taken_is_at_tops),
        );
        wire!(at_rpc = whole.valid & !apart & parting.is_at_tops);
        let reached = meeting.found(at_rpc | taken_is_there, taken_is_there.mux(whole.taken.pc, side.pc));
        let next = Top {
            pc: side.pc,
            depth: side.depth,
            mask: apart.mux(side.mask, stay),
            rpc: reached,
            likely: top.likely.map(|_| point.mux(kept.likely.unwrap_or(towards), towards)),
        };
        m.cover("meets_where_it_returns", due.met & kept.rpc.returns);
        Begun { whole, top, parting, at_rpc, next }
    }

    /// The memories of levels: what is a block's own, and the words of masks, which blocks share. `pushed_of` is the
    /// branch of a level that is pushed.
    fn uppermost(&self, due: &Due, begun: &Begun, arrival: &Arrival, pushed_of: Option<Branch<Signal>>) -> Uppermost {
        let Store { m, s, wide, step, .. } = self;
        let m = *m;
        let &Begun { ref whole, top, ref parting, at_rpc, next } = begun;
        let &Due { at, columns, begins, pops, point, count, live, reads_level, .. } = due;
        let &Arriving { outcome, block, .. } = &arrival.arriving;
        let (never, threads) = (m.lit(0u32, 1), s.threads());
        if threads == 1 {
            let popped = m.zero(Pop::shape(wide));
            return Uppermost { popped, comes: next, joins: never, stays: never, branch: None, words: Vec::new() };
        }
        let index_bits = index_width(levels(wide));
        let entry_of = |block: Signal, level: Signal| {
            let level = level.slice(0, index_bits);
            if s.warps > 1 { cat(&[level, block]) } else { level }
        };
        let entry = |level: Signal| entry_of(at, level);
        let held = m.memory("levels", Held::shape(wide), index_bits + s.warps.ilog2());
        let masks = |name| m.memory(name, threads, index_bits).style(MemoryStyle::Distributed);
        let (siblings, groups) = (masks("siblings"), masks("groups"));
        let gathered = has_likely(wide).then(|| masks("gathered"));
        // A level is pushed at a branch only, and popped elsewhere. So one read of the masks does.
        wire!(at_branch = step.q.arrived & due.place.kind.eq(PlaceKind::Branch));
        wire!(here = at_branch.mux(count.now, count.below).slice(0, index_bits));
        m.assert("pushes_at_a_branch_and_pops_elsewhere", (!parting.pushes | at_branch) & !(pops & at_branch));
        let own = |masks: &Mem<Width>, level: Signal| masks.read(level) & columns;
        let put = |masks: &Mem<Width>, enable: Signal, level: Signal, mask: Signal| {
            masks.write(enable, level, (masks.read(level) & !columns) | (mask & columns));
        };
        wire!(reads_own = step.q.valid & (!step.q.read | reads_level));
        // Apart from the words of the block that is chosen, which are known late.
        let of_own = entry(reads_level.mux(count, self.counts.read(at)).below);
        let of_outcome = entry_of(block, arrival.of_slot.count.below);
        // Of a warp that passes the level is not asked for, and may be written now.
        let arrives = outcome.valid & !arrival.passes;
        let reads = reads_own | (arrives & (!step.q.valid | begins | pops));
        let read = held.read_sync_if(reads, reads_own.mux(of_own, of_outcome), Collision::Never);
        let head = read.with(own(&siblings, here), own(&groups, here));
        let at_point = gathered.as_ref().map_or(m.lit(0u32, threads), |gathered| own(gathered, here));
        let popped = pop(m, wide, top, head, at_point, live, pops);
        let Parting { pushes, pushed, gathers, towards, .. } = *parting;
        put(&siblings, pushes, here, pushed.sibling.mask);
        put(&groups, pushes, here, pushed.group.mask);
        let held_next = pushes.mux(Held::of(pushed, pushed_of), Held::of(popped.left, read.branch));
        held.write(pushes | (pops & popped.stays), entry(here), held_next);

        let comes = pops.mux(popped.top, next);
        let comes_to_point = is_at_point(&comes).unwrap_or(never);
        let joins = point | (((whole.valid & !at_rpc) | (pops & !popped.arrives_again)) & comes_to_point);
        if let (Some(gathered), Some(now)) = (&gathered, due.ends.likely) {
            let level = pick([(pops, popped.outer.level), (point, now.level)], towards.level);
            let some = comes.mask.only_if(joins);
            put(gathered, gathers | joins, level, own(gathered, level).only_if(!gathers) | some);
            m.cover("joins_after_a_pop", pops & joins);
            m.cover("arrives_at_a_likely_point", point);
        }
        m.assert("a_sibling_is_live", !(pops & popped.to_sibling) | !(head.sibling.mask & !live).any());
        let words = [siblings, groups].into_iter().chain(gathered).collect();
        Uppermost { popped, comes, joins, stays: pops & popped.stays, branch: read.branch, words }
    }

    /// What simulations look at.
    pub fn probe_stack(&self, acting: &Acting) {
        let (m, Acting { due, parting, popped, .. }) = (self.m, acting);
        m.probe("acts", acting.acts);
        m.probe("acts_block", due.at);
        m.probe("acts_count", due.count.now);
        m.probe("acts_begins", due.begins);
        m.probe("acts_at_branch", due.branch);
        m.probe("acts_apart", parting.parts);
        m.probe("acts_as_taken", parting.goes_as_taken);
        m.probe("acts_leaves_sibling", parting.pushes & parting.pushed.sibling.valid);
        m.probe("acts_leaves_group", parting.pushes & parting.pushed.group.valid);
        m.probe("acts_to_sibling", due.pops & popped.to_sibling);
        m.probe("acts_forms", acting.forms);
    }
}

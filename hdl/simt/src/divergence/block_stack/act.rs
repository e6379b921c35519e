//! What the stack does for a block: all threads of it have arrived, and do one thing; or a level is popped.
//!
//! A block is chosen when the last of its warps has arrived and no register of them awaits a write, unless its warps are
//! static ones and stay so. If that is so in the very cycle in which the warp arrives, the words are those of the outcome,
//! and the uppermost level is read then. Else the words are read when the block is chosen, and a level that is popped in
//! one cycle more. Then it *acts*: once for the place where its threads have arrived, which at an rpc pops a level, and
//! once more for each further level that is popped before threads run.

use super::super::levels::{Likely, Parting, Pop, Rpc, Top, has_likely, is_at_point, levels, part, pop};
use super::super::{MixedIn, Outcome, OutcomeKind, Side, Start, depth_after};
use super::ahead::{Arriving, Branch, Turn};
use super::arrive::Arrival;
use super::state::{Ends, Held, OfBlock, Place, PlaceKind, Step, Store, TopBegins};
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
    pub left: Signal,
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
    /// Levels in use, now and as read for the next cycle.
    pub count: Signal,
    count_now: Signal,
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
        let left = count + pushes.zext(count.width()) - (pops & !stays).zext(count.width());
        wire!(acts = begins | pops);
        wire!(nobody_left = !comes.mask.any());
        wire!(must_pop = (acts & (joins | nobody_left)) | begun.at_rpc | (pops & popped.arrives_again));
        wire!(pops_next = must_pop & left.any());
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
        let chosen = Step { valid: choice.any() | completes, block, arrived: one, read: one, level: completes };
        let pop_next = Step { valid: one, block: at, arrived: never, read: never, level: never };
        let read = Step { read: one, level: one, ..step.q };
        wire!(done = !step.q.valid | (acts & !pops_next));
        let continues = acts.mux(pop_next, (!step.q.read | reads_level).mux(read, step.q));
        step.next(done.mux(chosen, continues));
        self.after.next_if(done & choice.any(), places_above(choice));

        m.assert("live_threads_go_on", !(done & step.q.valid & must_pop & !left.any()) | !due.live.any());
        m.cover("a_block_ends", acts & must_pop & !left.any());
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
        let Store { m, group, step, formed, running, arrived, .. } = self;
        let (group, filled) = (*group, !mixed.filling);
        wire!(settled = mixed.quiet | self.stay());
        wire!(still = whole_group(((!running.q & settled) | self.ahead_slots()) & filled, group));
        let in_hand = |slot: Signal, valid: Signal| self.slots_of(slot).only_if(valid);
        wire!(busy = in_hand(step.q.block, step.q.valid) | in_hand(formed.q.block, formed.q.valid));
        wire!(choice = round_robin(arrived.q & still & !busy, self.after.q));
        let quiet = whole_group(mixed.quiet | self.ahead_slots(), group);
        m.cover("goes_on_with_writes_under_way", (choice & !quiet).any());
        let all_came = whole_group(!running.q & filled, group);
        m.cover("waits_for_writes", (arrived.q & !still).any() & all_came.any());
        choice
    }

    /// 1 bit: the warp that arrives is the last of its block, and no write is under way. What comes of it has the time of
    /// this cycle that is left; so static warps with writes under way are left to [`Store::choose`].
    fn completes(&self, mixed: &MixedIn<Signal>, arrival: &Arrival) -> Signal {
        let Store { m, s, step, formed, running, .. } = self;
        let Arriving { outcome, block, .. } = arrival.arriving;
        let settled = if self.regrouped.is_some() { mixed.quiet } else { !m.lit(0u32, s.warps) };
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

    /// One bit per slot: its threads are those of its static warp and go on in it, so writes that it owes come to the
    /// same registers as ever, and its scoreboard knows of them. All threads of the block have arrived on one side then,
    /// which has the static warps.
    fn stay(&self) -> Signal {
        let Store { m, s, group, live, taken, rest, .. } = self;
        let Some(regrouped) = &self.regrouped else { return !m.lit(0u32, s.warps) };
        let nobody = |threads: Signal| whole_group(!self.static_warps(threads) & !self.ahead_slots(), *group);
        wire!(on_one_side = nobody(live.q & !taken.q) | nobody(live.q & !rest.q));
        on_one_side & !regrouped.q
    }

    /// The words of the block whose turn it is; and reads those of the block that is chosen next, unless this one's are
    /// still to be read or used, or that `completes`, whose words are `told`.
    fn due(&self, chosen_block: Signal, (completes, told_now): (Signal, OfBlock<Signal>)) -> Due {
        let Store { s, .. } = self;
        let Step { block: at, valid, arrived, read, level } = self.step.q;
        let free = !self.formed.q.valid;
        wire!(due = valid & arrived & read & free);
        let slots = self.slots_of(at);
        wire!(own_columns = slots.repeat(s.lanes));
        wire!(to_read = (valid & !read).mux(at, chosen_block));
        let count_now = self.counts.read(to_read);
        let now = OfBlock { count: count_now, place: self.places.read(to_read), ends: self.ends.read(to_read) };
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
            count_now,
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
            taken: Side { mask: due.taken.only_if(branch | barrier), pc: barrier.mux(told.pc, told.target) },
            rest: Side { mask: due.rest.only_if(branch), pc: told.pc },
            call: told.call & branch,
            ret: told.ret & branch,
            meets: Some(told.meets),
            homes: None,
        };
        let rpc = kept.rpc.found(due.met, told.pc);
        let mask = due.taken | due.rest;
        let top = Top { pc: told.pc, depth: told.depth, mask, rpc, likely: kept.likely };
        wire!(depth_of_taken = depth_after(whole.call, whole.ret, top.depth));
        let parting = part(m, wide, &whole, depth_of_taken, top, due.count);
        let Parting { parts: apart, meeting, taken_is_there, towards, side, stay, .. } = parting;
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
        let (below, above) = ((count - 1).slice(0, index_bits), count.slice(0, index_bits));
        let own = |masks: &Mem<Width>, level: Signal| masks.read(level) & columns;
        let put = |masks: &Mem<Width>, enable: Signal, level: Signal, mask: Signal| {
            masks.write(enable, level, (masks.read(level) & !columns) | (mask & columns));
        };
        wire!(reads_own = step.q.valid & (!step.q.read | reads_level));
        let of_own = entry(reads_level.mux(count, due.count_now) - 1);
        let of_outcome = entry_of(block, arrival.of_slot.count - 1);
        // Of a warp that passes the level is not asked for, and may be written now.
        let arrives = outcome.valid & !arrival.passes;
        let reads = reads_own | (arrives & (!step.q.valid | begins | pops));
        let read = held.read_sync_if(reads, reads_own.mux(of_own, of_outcome), Collision::Never);
        let head = read.with(own(&siblings, below), own(&groups, below));
        let at_point = gathered.as_ref().map_or(m.lit(0u32, threads), |gathered| own(gathered, below));
        let popped = pop(m, wide, top, head, at_point, live, pops);
        let Parting { pushes, pushed, gathers, towards, .. } = *parting;
        put(&siblings, pushes, above, pushed.sibling.mask);
        put(&groups, pushes, above, pushed.group.mask);
        let held_next = pushes.mux(Held::of(pushed, pushed_of), Held::of(popped.left, read.branch));
        held.write(pushes | (pops & popped.stays), entry(pushes.mux(count, count - 1)), held_next);

        let comes = pops.mux(popped.top, next);
        let comes_to_point = is_at_point(&comes).unwrap_or(never);
        let joins = point | (((whole.valid & !at_rpc) | (pops & !popped.arrives_again)) & comes_to_point);
        if let (Some(gathered), Some(now)) = (&gathered, due.ends.likely) {
            let level = pick([(pops, popped.outer.level), (point, now.level)], towards.level);
            let some = point.mux(due.taken, comes.mask).only_if(joins);
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
        m.probe("acts_count", due.count);
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

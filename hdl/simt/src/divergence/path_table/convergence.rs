//! The convergence barriers of the path tables: threads that wait leave the path list for a table of N entries per
//! warp.
//!
//! `speculative-reconvergence.txt` Table 1 and §4.6; `docs/reference/convergence-barriers.md` has the instructions, a
//! trace and the corner cases. Of barrier b of a warp, W(b) are the threads that wait and E(b) those that are still
//! expected; those that participate are P(b) = E(b) ∪ W(b). With E instead of P a release writes no entry, and W = P is
//! "no thread of E lives".
//!
//! | state | of | what |
//! |---|---|---|
//! | `entries` | a barrier of a warp | E, W, and the pc and call depth at which W goes on; written by instructions only |
//! | `words` | a warp | five bits a barrier, [`Word`]: whether E and W mean something, and what is to be looked at |
//! | `alive` | a warp | the threads that have not ended; a thread that ends stays in E, where this masks it |
//!
//! **Instructions** act in stage 8, in order, one a cycle; the entries are read in the cycle before, and a word that is
//! written at that edge is read new. What a `wait` does to the path list follows in stage 9, as its outcome:
//! [`TableOut::goes`] says who goes on.
//!
//! **Releases.** A `wait` that completes its barrier releases it by itself: its threads and those that waited are at
//! one pc and depth. Every other release is found by the *warden*, which visits one barrier at a time, and takes a turn
//! of its own at the compact-and-sort unit, which it claims a cycle before as long as it is at a warp:
//!
//! | step | what it does |
//! |---|---|
//! | choose a warp | in turn, of those with something to look at, or where nobody can run |
//! | choose a barrier | first notes what ended threads or passed time give reason to look at; then in turn, of those to look at; else, where nobody can run, of those where threads wait; reads its entry |
//! | weigh | W = P, or patience is over, or nobody can run: they are to be released; else there is nothing to do |
//! | decide | in a cycle without an instruction here: released if the CCS was claimed for it, or nothing |
//!
//! It begins anew if an instruction of the warp comes in between, so it never decides about what has changed. Only
//! threads that end while it weighs may be missed, and those are noted for the next visit.
//!
//! **Patience.** Of a warp that is *parted* (below) outcomes are counted. Every [`Shape::patience`] of them, who has
//! waited since the last time without an arrival is released.
//!
//! **Giving way.** The path list runs the least pc and is not fair. That is no reason for a program to hang that ends
//! without hints, unless a hint has kept a thread back that others now wait for. So from when threads wait until the
//! warp is one path again, it is *parted*, and paths give way: after [`Shape::patience`] outcomes the active path, and
//! after [`BRIEF`] each one after it, comes behind all that have not given way. When all have, nobody has: a new round
//! begins.
//!
//! What it does not do: it does not know why a program waits. A thread that waits for others which never come costs
//! time.

use crate::arbiter::{places_above, round_robin};
use crate::divergence::inspect::{self, State};
use crate::divergence::interface::{Hint, Hints, Releases};
use crate::isa::convergence;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Outcomes that a path has before it gives way, where another one has.
pub const BRIEF: u32 = 16;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct TableIn<T> {
    pub hints: Hints<T>,
    /// Call depth of the active path of the hint's slot.
    #[width(s.depth_bits)]
    pub depth: T,
    /// An outcome, and the threads that end with it.
    pub outcome: T,
    #[width(s.warp_bits())]
    pub outcome_slot: T,
    #[width(s.lanes)]
    pub ended: T,
    /// 1 bit: the CCS takes a release in this cycle; only if [`TableOut::visits`] was 1 in the cycle before.
    pub free: T,
    /// 1 bit: the path list of `turn_slot` changes; then it is one path or none.
    pub turn: T,
    #[width(s.warp_bits())]
    pub turn_slot: T,
    pub alone: T,
    /// 1 bit: a new round begins for `turn_slot`.
    pub new_round: T,
    /// A start that is taken.
    pub start: T,
    #[width(s.warp_bits())]
    pub start_slot: T,
    #[width(s.lanes)]
    pub start_mask: T,
    /// One bit per warp: no path of the list can run.
    #[width(s.warps)]
    pub stopped: T,
    /// One bit per warp: it is returning or seeking.
    #[width(s.warps)]
    pub busy: T,
}

/// Threads that go on from a barrier.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Release<T> {
    /// 1 bit: they enter the path list in this cycle.
    pub valid: T,
    pub slot: T,
    pub depth: T,
    pub pc: T,
    pub mask: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct TableOut<T> {
    /// Of the hint: the number of P(b), `count_width(lanes)`.
    pub count: T,
    /// Of the `wait` in the cycle before: the threads that go on behind it.
    pub goes: T,
    /// There was one, of this slot.
    pub waited: T,
    pub waited_slot: T,
    /// One bit per warp: threads of it wait.
    pub holding: T,
    /// 1 bit: the warden is at `release.slot`, and may release threads in the next cycle. Else it does not.
    pub visits: T,
    pub release: Release<T>,
    /// 1 bit: a start must wait.
    pub writes: T,
    /// 1 bit: there is something to look at, and nothing is decided in this cycle.
    pub put_off: T,
    /// 1 bit: the active path of `outcome_slot` gives way.
    pub gives_way: T,
    pub releases: Releases<T>,
}

/// Five bits a barrier.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Word<T> {
    /// The entry's E means something; else nobody is expected.
    #[width(s.convergence_barriers)]
    pub expects: T,
    /// Threads wait; else W, pc and depth of the entry mean nothing.
    #[width(s.convergence_barriers)]
    pub holds: T,
    /// Nobody has arrived since the last time that patience was looked after.
    #[width(s.convergence_barriers)]
    pub old: T,
    /// Nobody had arrived between the last two.
    #[width(s.convergence_barriers)]
    pub tired: T,
    /// To be visited.
    #[width(s.convergence_barriers)]
    pub look: T,
}

/// A barrier of a warp.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Entry<T> {
    #[width(s.lanes)]
    pub expected: T,
    #[width(s.lanes)]
    pub waiting: T,
    #[width(s.depth_bits)]
    pub depth: T,
    #[width(s.pc_bits())]
    pub pc: T,
}

/// The threads of a warp that wait at each barrier, in the table's state. They go on at `pc`.
pub fn held(s: &Shape, state: &State, warp: u32) -> Vec<inspect::Path> {
    let Word { holds, .. } = state.word(Word::shape(s), "words", warp.into());
    let path = |barrier: u32| {
        let address = u64::from(warp) << s.barrier_bits() | u64::from(barrier);
        let Entry { waiting, depth, pc, .. } = state.word(Entry::shape(s), "entries", address);
        let (place, pc) = (format!("wait {barrier}"), 4 * pc.low_u64() as u32);
        inspect::Path { place, depth: depth.low_u64(), pc, mask: waiting.to_bitvec(s.lanes), waits: true }
    };
    (0..s.convergence_barriers).filter(|&barrier| holds.bit(barrier)).map(path).collect()
}

/// Why threads that wait at the barrier that was read are to be released, if they are.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Reason<T> {
    wanted: T,
    complete: T,
    tired: T,
}

/// The table of a shape with convergence barriers.
pub fn convergence_table(s: &Shape) -> TypedModule<TableIn<Width>, TableOut<Signal>> {
    module("convergence", TableIn::shape(s), |m, i| described(m, s, i).0)
}

/// The table's state, as a proof sees it.
pub(super) struct Inside {
    pub entries: Mem<Entry<Width>>,
    pub words: Mem<Word<Width>>,
    pub alive: Mem<Width>,
    pub holding: Signal,
    pub looking: Signal,
    /// One bit per warp: something of it is to be noted.
    pub noted: Signal,
    /// What was read: of the barrier in stage 8; of the other one, or for the warden.
    pub found: [Entry<Signal>; 2],
    /// Of the `wait` in the cycle before.
    pub goes: Signal,
    pub waited: Signal,
    pub waited_slot: Signal,
    /// The warden: the warp, the barrier if its entry is read.
    pub at: Signal,
    pub at_slot: Signal,
    pub read: Signal,
    pub read_barrier: Signal,
    /// 1 bit: it was weighed, which entry, and that it is to be released.
    pub weighed: Signal,
    pub weighed_entry: Entry<Signal>,
    pub wanted: Signal,
    /// Of each warp, the barrier that it decided about last.
    pub last: Mem<Width>,
    /// 1 bit: it was chosen because nobody can run.
    pub forced: Signal,
    /// One bit per warp: it is to be visited.
    pub due: Signal,
    /// 1 bit: it decides in this cycle, and releases.
    pub decides: Signal,
    pub releases: Signal,
    pub put_off: Signal,
}

/// The address of a barrier's entry.
pub(super) fn address(s: &Shape, slot: Signal, barrier: Signal) -> Signal {
    if s.warps > 1 { cat(&[barrier, slot]) } else { barrier }
}

pub(super) fn described(m: Builder, s: &Shape, i: TableIn<Signal>) -> (TableOut<Signal>, Inside) {
    m.doc("Convergence barriers: who participates, who waits, and who may go on.");
    let n = s.convergence_barriers;
    let Hint { valid, slot, operation, barrier, operand, mask, next } = i.hints.hint;
    let entries = m.memory("entries", Entry::shape(s), s.warps.ilog2() + s.barrier_bits());
    let words = m.memory("words", Word::shape(s), s.warp_bits()).style(MemoryStyle::Distributed);
    let alive = m.memory("alive", s.lanes, s.warp_bits()).style(MemoryStyle::Distributed);
    let holding = m.reg("holding", s.warps).reset(0u32);
    let looking = m.reg("looking", s.warps).reset(0u32);
    let nobody = m.lit(0u32, s.lanes);
    let none = m.lit(0u32, n);

    // Instructions: what the entries say.
    let is = |code: u32| operation.eq(code);
    let (joins, waits, cancels) = (is(convergence::JOIN), is(convergence::WAIT), is(convergence::CANCEL));
    wire!(is_count = is(convergence::COUNT));
    wire!(moves = is(convergence::MOVE));
    wire!(copies = moves | is(convergence::COPY));
    let other = operand.slice(0, s.barrier_bits());
    // Of one barrier with itself there is nothing to copy.
    wire!(changes = valid & !is_count & !(copies & other.eq(barrier)));
    let word = words.read(slot);
    let at_b = barrier.decode(n);
    let at_c = other.decode(n);
    wire!(living = alive.read(slot));
    let warden_reads = m.deferred("warden_reads", 1);
    let warden_address = m.deferred("warden_address", s.warps.ilog2() + s.barrier_bits());
    let ahead = i.hints.ahead;
    let first_entry = entries.read_sync(address(s, ahead.slot, ahead.barrier), Collision::ReadNew);
    let second_address = ahead.both.mux(address(s, ahead.slot, ahead.other), warden_address.value);
    let second_entry = entries.read_sync_if(ahead.both | warden_reads.value, second_address, Collision::ReadNew);
    let has = |bits: Signal, at: Signal| (bits & at).any();
    wire!(held = has(word.holds, at_b));
    wire!(expected = first_entry.expected & living.only_if(has(word.expects, at_b)));
    wire!(waiters = first_entry.waiting.only_if(held));
    wire!(
        other_participants = (second_entry.expected & living.only_if(has(word.expects, at_c)))
            | second_entry.waiting.only_if(has(word.holds, at_c))
    );

    // A wait.
    wire!(arrive = mask & expected);
    wire!(same_place = first_entry.pc.eq(next) & first_entry.depth.eq(i.depth));
    wire!(here = !held | same_place);
    wire!(some_arrive = arrive.any());
    wire!(enters = waits & some_arrive & here);
    wire!(falls = waits & some_arrive & !here);
    wire!(still_expected = expected & !mask);
    let number = (waiters | is_count.mux(expected, arrive)).count_ones();
    let count = number;
    let wide = count.width().max(7);
    wire!(full = !still_expected.any());
    wire!(enough = operand.any() & count.zext(wide).ge(operand.zext(wide)));
    wire!(completes = enters & (full | enough));
    let stay = (waiters | arrive).only_if(enters);
    wire!(go = (mask & !stay) | stay.only_if(completes));
    let goes = m.pipe("go_on", go);
    wire!(waited = m.pipe_reset("waited", valid & waits));
    let waited_slot = m.pipe("waited_slot", slot);

    // What is written.
    let copied = other_participants & !waiters;
    let after = pick([(joins, expected | mask), (copies, copied)], still_expected);
    let arrived = Entry { expected: after, waiting: waiters | arrive, depth: i.depth, pc: next };
    let entry = enters.mux(arrived, Entry { expected: after, ..first_entry });
    entries.write(changes, address(s, slot, barrier), entry);
    let (set, clear) = (|bits: Signal, at: Signal| bits | at, |bits: Signal, at: Signal| bits & !at);
    let at_both = at_b | at_c.only_if(moves);
    let arrival = at_b.only_if(enters);
    let changed = Word {
        expects: clear(set(word.expects, at_b), at_c.only_if(moves)),
        holds: clear(set(word.holds, arrival), at_b.only_if(completes)),
        old: clear(word.old, arrival),
        tired: clear(word.tired, arrival),
        look: clear(word.look | (word.holds & at_both.only_if(cancels | falls | copies)), at_b.only_if(completes)),
    };

    // The warden.
    let exited = m.reg("exited", s.warps).reset(0u32);
    let ticked = m.reg("ticked", s.warps).reset(0u32);
    wire!(stuck = i.stopped & holding.q);
    wire!(due = (looking.q | stuck | exited.q | ticked.q) & !i.busy);
    let at = m.reg("at", 1).reset(0u32);
    let at_slot = m.reg("at_slot", s.warp_bits()).reset(0u32);
    let here_at = at_slot.q.decode(s.warps);
    let of_warp = |bits: Signal| (bits & here_at).any();
    let read = m.reg("read", 1).reset(0u32);
    let weighed = m.reg("weighed", 1).reset(0u32);
    let forced = m.reg("forced", 1);
    let read_barrier = m.reg("read_barrier", s.barrier_bits());
    let visited = words.read(at_slot.q);
    wire!(is_disturbed = changes & slot.eq(at_slot.q));
    wire!(withdraws = at.q & of_warp(i.busy));
    wire!(notes = at.q & !read.q & !withdraws & !i.hints.present & of_warp(exited.q | ticked.q));
    wire!(chooses = at.q & !read.q & !withdraws & !is_disturbed & !ahead.both & !of_warp(exited.q | ticked.q));
    // Of each warp: else those of others would decide whose turn it is.
    let last = m.memory("last_decided", s.barrier_bits(), s.warp_bits()).style(MemoryStyle::Distributed);
    let order = places_above(last.read(at_slot.q).decode(n));
    wire!(nobody_runs = of_warp(stuck));
    wire!(looks = visited.look.any());
    let candidates = looks.mux(visited.look, visited.holds.only_if(nobody_runs));
    wire!(choice = round_robin(candidates, order));
    let choice_number = choice.one_hot_index();
    wire!(finds = chooses & choice.any());
    warden_reads.drive(finds);
    warden_address.drive(address(s, at_slot.q, choice_number));
    read_barrier.next_if(finds, choice_number);
    forced.next_if(finds, !looks);

    let at_read = read_barrier.q.decode(n);
    wire!(survivors = second_entry.expected & alive.read(at_slot.q).only_if(has(visited.expects, at_read)));
    wire!(complete = !survivors.any());
    wire!(tired = has(visited.tired, at_read));
    wire!(wanted = has(visited.holds, at_read) & (forced.q | complete | tired));
    // What is found in tables is weighed in a cycle of its own: a release goes through the CCS and on to stage 1.
    let reason = m.pipe("reason", Reason { wanted, complete, tired });
    let weighed_entry = m.pipe("weighed_entry", second_entry);
    wire!(decides = weighed.q & !withdraws & !i.hints.present);
    wire!(releases = decides & reason.wanted & i.free);
    wire!(passes = decides & !reason.wanted);
    wire!(has_decided = releases | passes);
    wire!(warden_acts = notes | has_decided);
    last.write(has_decided, at_slot.q, read_barrier.q);
    wire!(again = is_disturbed | ahead.both);
    wire!(stays_read = read.q & !withdraws & !releases & !passes & !again);
    read.next(finds | stays_read);
    weighed.next(stays_read);
    wire!(leaves = withdraws | has_decided | (chooses & !finds));
    wire!(next_warp = round_robin(due, places_above(here_at)));
    at.next((at.q & !leaves) | (!at.q & due.any()));
    at_slot.next_if(!at.q & due.any(), next_warp.one_hot_index());

    let done = at_read.only_if(has_decided);
    let gone = at_read.only_if(releases);
    let older = visited.holds.only_if(notes & of_warp(ticked.q));
    let kept = Word {
        expects: visited.expects,
        holds: clear(visited.holds, gone),
        old: clear(visited.old | older, gone),
        tired: clear(visited.tired | (visited.old & older), gone),
        look: clear(visited.look | visited.holds.only_if(notes), done),
    };

    // One write port.
    let fresh = Word { expects: none, holds: none, old: none, tired: none, look: none };
    let written = changes.mux(changed, i.start.mux(fresh, kept));
    let written_slot = pick([(changes, slot), (i.start, i.start_slot)], at_slot.q);
    wire!(writes = changes | i.start | warden_acts);
    words.write(writes, written_slot, written);
    let written_at = written_slot.decode(s.warps);
    let follow = |bits: Signal, any: Signal| (bits & !written_at) | written_at.only_if(any);
    holding.next_if(writes, follow(holding.q, written.holds.any()));
    looking.next_if(writes, follow(looking.q, written.look.any()));

    // Threads that end.
    let outcome_at = i.outcome_slot.decode(s.warps);
    let start_at = i.start_slot.decode(s.warps).only_if(i.start);
    wire!(ends = i.outcome & i.ended.any());
    let remain = alive.read(i.outcome_slot) & !i.ended;
    alive.write(ends | i.start, i.start.mux(i.start_slot, i.outcome_slot), i.start.mux(i.start_mask, remain));
    let noted = here_at.only_if(notes) | start_at;
    exited.next((exited.q & !noted) | (outcome_at & holding.q).only_if(ends));

    // Patience, and giving way.
    let turn_at = i.turn_slot.decode(s.warps);
    let parted = m.reg("parted", s.warps).reset(0u32);
    wire!(stays_parted = (holding.q | parted.q.only_if(!i.alone)) & turn_at);
    parted.next_if(i.turn | i.start, (parted.q & !turn_at.only_if(i.turn) & !start_at) | stays_parted.only_if(i.turn));
    let counter_bits = s.patience.ilog2();
    let counter = m.memory("ages", counter_bits, s.warp_bits()).style(MemoryStyle::Distributed);
    let passed = counter.read(i.outcome_slot) + 1;
    wire!(is_parted = (parted.q & outcome_at).any());
    counter.write(i.outcome, i.outcome_slot, passed.only_if(is_parted));
    wire!(tick = is_parted & passed.all());
    wire!(brief = is_parted & passed.slice(0, BRIEF.ilog2()).all());
    ticked.next((ticked.q & !noted) | (outcome_at & holding.q).only_if(i.outcome & tick));
    let gives = m.reg("yields", s.warps).reset(0u32);
    let others = m.reg("others_gave_way", s.warps).reset(0u32);
    wire!(gives_way = (gives.q & outcome_at).any() & is_parted);
    let gave = outcome_at.only_if(i.outcome & gives_way);
    let ended_round = turn_at.only_if(i.new_round);
    others.next((others.q | gave) & !ended_round & !start_at);
    wire!(brief_turn = ((others.q | gave) & outcome_at).any());
    let gives_next = outcome_at.only_if(tick | (brief & brief_turn));
    gives.next_if(
        i.outcome | i.start,
        (gives.q & !outcome_at.only_if(i.outcome) & !start_at) | gives_next.only_if(i.outcome),
    );

    // Checks.
    m.assert("an_instruction_is_present", !valid | i.hints.present);
    m.assert("who_waits_is_alive", !valid | !(waiters & !living).any());
    m.assert("who_executes_does_not_wait", !valid | !(waiters & mask).any());
    m.assert("who_executes_is_alive", !valid | !(mask & !living).any());
    m.assert("somebody_waits_where_it_says_so", !valid | !held | waiters.any());
    let as_before = entry.waiting.only_if(held).eq(waiters) & entry.expected.eq(still_expected);
    m.assert("only_who_falls_through_leaves", !(valid & falls) | (as_before & go.eq(mask)));
    m.assert("only_who_waits_stays", !(valid & waits) | (mask & !go & !expected).eq(nobody));
    m.assert("what_is_looked_at_holds", !at.q | !(visited.look & !visited.holds).any());
    m.assert("who_is_released_is_alive", !releases | !(weighed_entry.waiting & !alive.read(at_slot.q)).any());
    m.assert("somebody_is_released", !releases | weighed_entry.waiting.any());
    m.assert("what_was_weighed_is_as_it_was", !decides | (weighed_entry.waiting.eq(second_entry.waiting) & read.q));
    m.assume("no_start_while_it_writes", !(i.start & (changes | warden_acts)));
    m.assume("no_start_with_an_outcome", !(i.start & i.outcome));
    m.cover("joins", changes & joins);
    m.cover("cancels_where_others_wait", changes & cancels & held);
    m.cover("counts_some", valid & is_count & count.any());
    m.cover("copies", changes & copies & !moves);
    m.cover("moves_with_waiting_threads", changes & moves & held);
    m.cover("completes_with_others", valid & completes & full & held);
    m.cover("completes_by_threshold", valid & completes & !full);
    m.cover("waits_without_participants", valid & waits & !some_arrive);
    m.cover("waits_with_some_participants", valid & enters & (mask & !arrive).any());
    m.cover("falls_through", valid & falls);
    m.cover("released_complete", releases & reason.complete);
    m.cover("released_stuck", releases & !reason.complete & !reason.tired);
    m.cover("released_by_patience", releases & !reason.complete & reason.tired);
    m.cover("looked_for_nothing", passes);
    m.cover("warden_is_disturbed", read.q & again);
    m.cover("warden_withdraws", withdraws);
    m.cover("release_waits_for_its_turn", decides & reason.wanted & !i.free);
    m.cover("release_waits_for_an_instruction", weighed.q & i.hints.present & !is_disturbed);
    m.cover("somebody_gives_way", gave.any());
    m.cover("somebody_gives_way_briefly", gave.any() & (others.q & outcome_at).any());

    wire!(put_off = due.any() & !has_decided);
    let counted = |what: Signal| what & valid;
    let out = TableOut {
        count,
        goes,
        waited,
        waited_slot,
        holding: holding.q,
        visits: at.q,
        release: Release {
            valid: releases,
            slot: at_slot.q,
            depth: weighed_entry.depth,
            pc: weighed_entry.pc,
            mask: weighed_entry.waiting,
        },
        // Whether an instruction that is present has an effect is known late.
        writes: i.hints.present | warden_acts,
        put_off,
        gives_way,
        releases: Releases {
            complete: counted(completes & full & held) | (releases & reason.complete),
            threshold: counted(completes & !full),
            stuck: releases & !reason.complete & !reason.tired,
            patience: releases & !reason.complete & reason.tired,
            fell_through: counted(falls),
            gave_way: gave.any(),
        },
    };
    let inside = Inside {
        entries,
        words,
        alive,
        holding: holding.q,
        looking: looking.q,
        noted: exited.q | ticked.q,
        goes,
        waited,
        waited_slot,
        found: [first_entry, second_entry],
        at: at.q,
        at_slot: at_slot.q,
        read: read.q,
        read_barrier: read_barrier.q,
        weighed: weighed.q,
        weighed_entry,
        wanted: reason.wanted,
        last,
        forced: forced.q,
        due,
        decides: has_decided,
        releases,
        put_off,
    };
    (out, inside)
}

#[cfg(test)]
mod tests;
